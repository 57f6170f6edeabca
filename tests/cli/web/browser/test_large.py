"""Large changes in the browser: tens of thousands of rows, hundreds of files, a line of a megabyte."""

from collections.abc import Callable
from pathlib import Path

from tests.cli.web.browser.conftest import Opener
from tests.support.faulty_disk import WHOLE
from tests.support.hooked_agents import ClaudeCode
from tests.support.review_browser import expect, needs_browser
from tests.support.review_project import done
from tests.support.review_server import ReviewServer

pytestmark = needs_browser

ROWS = 50_000 if WHOLE else 20_000


def written(root: Path, files: dict[str, tuple[str, str]]) -> ClaudeCode:
    """Make a workspace, and let an agent's shell replace the texts of files."""
    root.mkdir()
    for name, (before, _) in files.items():
        (root / name).write_text(before)
    done(root, "init")
    done(root, "record")
    agent = ClaudeCode(root, "one")
    agent.start()
    agent.ask("Rewrite")
    begun, ended = agent.another_call(is_shell=True)
    agent.tell(begun)
    for name, (_, after) in files.items():
        (root / name).write_text(after)
    agent.tell(ended)
    agent.stop()
    return agent


def test_tens_of_thousands_of_rows_are_gone_through_from_end_to_end(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    half = ROWS // 2
    before = "".join(f"line {number}\n" for number in range(half))
    after = "".join(f"LINE {number}\n" if number % 10 < 8 else f"line {number}\n" for number in range(half))
    root = tmp_path / "large"
    agent = written(root, {"a.txt": (before, after)})
    review = opened(serve(root), width=1000)
    review.file("a.txt")
    expect(review.page.locator(".r.add").first).to_contain_text("LINE 0")
    drawn = review.page.locator(".code .r").count()
    assert drawn < 4_000  # the rest comes when it is looked at
    review.page.locator(".scroll").evaluate("pane => { pane.scrollTop = pane.scrollHeight / 2 }")
    middle = review.page.locator(".r.add", has_text=f"LINE {half // 2 - half // 2 % 10}")
    expect(middle.first).to_be_attached()
    review.page.locator(".scroll").evaluate("pane => { pane.scrollTop = pane.scrollHeight }")
    last = review.page.locator(".code .r", has_text=f"line {half - 1}").first
    expect(last).to_be_in_viewport()
    row = review.page.locator(".r.add", has_text=f"LINE {half - 3}").first
    top = review.top(row)
    agent.ask("And above")
    agent.write("a.txt", f"first\n{after}")
    expect(review.page.locator(".file-head .plus")).to_have_text(f"+{half * 8 // 10 + 1:,}")
    expect(row).to_be_in_viewport()
    assert abs(review.top(row) - top) <= 1
    review.page.locator(".scroll").focus()
    review.press("j")
    expect(review.current).to_be_in_viewport()


def test_a_change_of_many_rows_is_drawn_in_parts(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    root = tmp_path / "new"
    written(root, {"a.txt": ("", "".join(f"new {number}\n" for number in range(10_000)))})
    review = opened(serve(root))
    review.file("a.txt")
    expect(review.heads).to_have_count(1)
    review.page.locator(".scroll").evaluate("pane => { pane.scrollTop = pane.scrollHeight }")
    expect(review.page.locator(".code .r", has_text="new 9999")).to_be_in_viewport()
    review.press("x")
    review.sheet.get_by_role("button", name="Reject").click()
    expect(review.said).to_contain_text("Rejected")
    assert (root / "a.txt").read_text() == ""


def test_hundreds_of_files_are_one_queue(tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener) -> None:
    root = tmp_path / "many"
    written(root, {f"file-{number:03}.txt": ("a\n", f"b {number}\n") for number in range(200)})
    review = opened(serve(root))
    expect(review.progress).to_have_text("0 of 200 changes decided")
    link = review.page.locator("section.turn").get_by_role("link", name="file-199.txt")
    link.scroll_into_view_if_needed()
    link.click()
    expect(review.page.locator(".r.add")).to_contain_text("b 199")
    review.press("k")
    expect(review.page.locator(".r.add")).to_contain_text("b 198")


def test_a_line_of_a_megabyte_is_cut_and_shown_on_demand(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    root = tmp_path / "minified"
    written(root, {"a.js": ("var a=1;\n", "var a=1;" * 125_000 + "\n")})
    review = opened(serve(root))
    review.file("a.js")
    row = review.page.locator(".r.add")
    expect(row).to_contain_text("998,000 more characters")
    assert len(row.inner_text()) < 2_100
    assert review.overflow() <= 0
    row.get_by_role("button").click()
    expect(row).to_contain_text("898,000 more characters")
