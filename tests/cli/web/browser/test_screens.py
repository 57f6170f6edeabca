"""Each screen of the page: what it shows, its layout at every size, and its accessibility."""

import os
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Final

import pytest

from tests.cli.web.browser.conftest import Opener
from tests.support.command_runner import AS_ANYBODY, cas
from tests.support.faulty_disk import WHOLE
from tests.support.git_repository import git, new_repository
from tests.support.hooked_agents import ClaudeCode
from tests.support.review_browser import ReviewPage, expect, needs_browser
from tests.support.review_project import changed_outside, done
from tests.support.review_server import ReviewServer
from tests.support.review_tour import SCREENS

pytestmark = needs_browser

NPM: Final = Path(os.environ.get("EDITLEDGER_NPM", Path(__file__).resolve().parents[4] / "build" / "npm"))
AXE: Final = NPM / "node_modules" / "axe-core" / "axe.min.js"
IS_AXE_REQUIRED: Final = "axe-core" in os.environ.get("EDITLEDGER_REQUIRES", "").split()
RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

TARGETS: Final = """
least => [...document.querySelectorAll("button, a, summary, select, input, label:has(input)")]
  .filter((each) => each.checkVisibility() && !each.closest("[inert]"))
  .filter((each) => !each.matches("label input"))
  .map((each) => [each.textContent || each.getAttribute("aria-label"), each.getBoundingClientRect(), each])
  .filter(([, box, each]) => box.width && getComputedStyle(each).display !== "inline")
  .filter(([, box]) => Math.min(box.width, box.height) < least)
  .map(([name, box]) => `${name}: ${box.width} x ${box.height}`)
"""


@pytest.fixture
def review(project: Path, serve: Callable[..., ReviewServer], opened: Opener) -> ReviewPage:
    """Return the page of a project in which agents have worked and one file was changed outside."""
    changed_outside(project)
    return opened(serve(project))


LAYOUTS: Final = list(product(((1440, 900), (390, 844), (820, 1100)), ("light", "dark")))
"""Sizes of a window, each in both colour schemes. Without WHOLE, each takes its part of the screens."""

PHONE: Final = 700
THUMB: Final = 44
"""Least pixels of a target on a phone; elsewhere, WCAG's 24."""

DRAWN: Final = [name for name in SCREENS if name != "running"]  # the other sheets are of the same parts


@pytest.mark.parametrize(
    ("layout", "screens"),
    [(layout, DRAWN if WHOLE else DRAWN[at :: len(LAYOUTS)]) for at, layout in enumerate(LAYOUTS)],
    ids=[f"{width}-{look}" for (width, _), look in LAYOUTS],
)
def test_no_screen_has_a_barrier_scrolls_sideways_or_has_too_small_a_target(
    project: Path,
    serve: Callable[..., ReviewServer],
    opened: Opener,
    layout: tuple[tuple[int, int], str],
    screens: list[str],
) -> None:
    (width, height), scheme = layout
    changed_outside(project)
    review = opened(serve(project), width=width, height=height, scheme=scheme)
    script = AXE.read_text() if AXE.exists() or IS_AXE_REQUIRED else ""
    found: dict[str, object] = {}
    for name in screens:
        SCREENS[name](review)
        found[f"{name}: pixels too wide"] = max(0, review.overflow())
        found[f"{name}: targets too small"] = review.page.evaluate(TARGETS, THUMB if width < PHONE else 24)
        if script:
            found |= {f"{name}: {rule}": nodes for rule, nodes in barriers(review, script).items()}
        if review.sheet.count():
            review.press("Escape")
    assert {what: value for what, value in found.items() if value} == {}


def barriers(review: ReviewPage, script: str) -> dict[str, object]:
    """Return the accessibility faults that axe finds on the screen, by rule."""
    review.page.evaluate(f"() => {{ if (!window.axe) {{ {script} }} }}")
    asked = {"runOnly": RULES, "iframes": False, "resultTypes": ["violations"]}
    found = review.page.evaluate("asked => axe.run(document, asked)", asked)["violations"]
    return {rule["id"]: [(node["html"][:200], node["failureSummary"]) for node in rule["nodes"][:3]] for rule in found}


def reach(review: ReviewPage, name: str, *, key: str = "Tab") -> None:
    """Press a key until what is named has the focus."""
    for _ in range(150):
        found = review.page.evaluate(
            "() => (document.activeElement.getAttribute('aria-label') || document.activeElement.textContent).trim()"
        )
        if str(found).startswith(name):
            return
        review.press(key)
    raise AssertionError(f"{name} can't be reached.")


def test_the_keyboard_alone_leads_through_every_screen(
    project: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(project))
    page = review.page
    review.current.wait_for()
    for key, title in {
        "?": "Keys",
        "t": "The whole of turn 1",
        "f": "The rest of the file",
        "e": "Single edits",
    }.items():
        review.press(key)
        expect(review.sheet.get_by_role("heading", level=2).first).to_have_text(title)
        review.press("Escape")
        expect(review.sheet).to_have_count(0)
    review.press("/")
    page.keyboard.type("cart.py")
    review.press("Enter")
    expect(review.head_of("cart.py")).to_be_visible()
    review.press("j")
    review.press("e")
    reach(review, "Reject 1:2")
    review.press("Enter")
    expect(review.sheet).to_contain_text("1 edit needs this")
    reach(review, "Cancel")
    review.press("Enter")
    expect(review.sheet).to_have_count(0)
    review.press("s")
    expect(review.sheet).to_be_visible()
    review.press("Escape")
    review.press("c")
    page.keyboard.type("Why 85?")
    review.press("Escape")
    expect(review.sheet).to_have_count(0)
    review.press("b")
    expect(page.locator(".blame-page, .blame").first).to_be_visible()
    review.press("h")
    slider = page.get_by_role("slider", name="Moment")
    slider.wait_for()
    reach(review, "Moment")
    before = slider.get_attribute("aria-valuetext")
    assert before
    review.press("ArrowLeft")
    expect(slider).not_to_have_attribute("aria-valuetext", before)
    review.press("H")
    page.keyboard.type("saved")
    review.press("Enter")
    expect(page.locator(".hits")).to_contain_text("You save {saved}")
    review.press("Escape")
    reach(review, "Store", key="Shift+Tab")
    review.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Store")).to_be_visible()
    review.press("q")
    expect(page.get_by_role("heading", level=1, name="changes left to decide")).to_be_visible()
    reach(review, "Go on")
    review.press("Enter")
    expect(review.current).to_be_visible()
    expect(review.progress).to_have_text("0 of 14 changes decided")


NAMELESS: Final = """
() => [...document.querySelectorAll(
  "button, a[href], input, select, textarea, summary, dialog[open], aside, nav, [role=group], [role=region]")]
  .filter((each) => each.checkVisibility() && !each.closest("[inert], [aria-hidden=true]"))
  .filter((each) => ![
    each.getAttribute("aria-label"), each.title, each.matches("input") && each.placeholder,
    [...(each.labels ?? [])].map((label) => label.textContent).join(""),
    document.getElementById(each.getAttribute("aria-labelledby"))?.textContent,
    each.matches("aside, nav, [role=group], [role=region], dialog") ? "" : each.textContent,
  ].some((name) => name && name.trim()))
  .map((each) => each.outerHTML.slice(0, 120))
"""


@pytest.mark.parametrize("name", DRAWN if WHOLE else DRAWN[::3])
def test_a_screen_readers_tree_has_one_main_headings_in_order_and_a_name_for_everything(
    only_read: ReviewServer, opened: Opener, name: str
) -> None:
    review = opened(only_read)
    if name == "outside":
        return  # no file of this project was changed outside; the sheet is of the same parts as the others
    SCREENS[name](review)
    page = review.page
    if not review.sheet.count():
        expect(page.get_by_role("main")).to_have_count(1)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
    assert page.evaluate(NAMELESS) == []
    levels = page.evaluate(
        "() => [...(document.querySelector('dialog[open]') ?? document).querySelectorAll('h1, h2, h3, h4')]"
        ".filter((each) => each.checkVisibility()).map((each) => Number(each.tagName[1]))"
    )
    assert levels
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels)), levels


def test_focus_goes_into_a_dialog_and_back(reading: ReviewPage) -> None:
    reading.file("shop/cart.py")
    reading.press("j")
    expect(reading.current).to_be_focused()
    reading.press("c")
    expect(reading.sheet.get_by_role("textbox")).to_be_focused()
    reading.press("Escape")
    expect(reading.current).to_be_focused()
    reading.press("?")
    expect(reading.sheet.get_by_role("checkbox")).to_be_focused()
    reading.press("Escape")
    reading.page.set_viewport_size({"width": 1440, "height": 300})
    reading.press("?")
    expect(reading.sheet.get_by_role("region", name="Details")).to_be_focused()  # the control is further down
    reading.press("Escape")
    reading.page.set_viewport_size({"width": 1440, "height": 900})
    reading.press("s")
    expect(reading.sheet.get_by_role("button", name="Cancel")).to_be_focused()  # its lines are still to come


def test_a_phone_shows_the_queue_or_a_file(only_read: ReviewServer, opened: Opener) -> None:
    review = opened(only_read, width=390, height=844)
    review.file("tests/test_cart.py", turn=1)
    expect(review.page.locator(".queue")).to_be_hidden()
    expect(review.page.locator(".r.add")).to_be_visible()
    review.page.get_by_role("link", name="Back to the queue").click()
    expect(review.page.locator(".queue")).to_be_visible()


def test_side_by_side_is_a_choice_and_needs_1100_pixels(only_read: ReviewServer, opened: Opener) -> None:
    review = opened(only_read, width=1100)
    review.file("tests/test_cart.py")
    removed, inserted = review.page.locator(".code .c.del, .r.del"), review.page.locator(".code .c.add, .r.add")
    assert review.top(removed) < review.top(inserted)
    review.page.get_by_role("button", name="Side by side").click()
    expect(review.page.locator(".r.pair").first).to_be_visible()
    assert review.top(removed) == review.top(inserted)
    drawn = "rows => new Set(rows.map((row) => getComputedStyle(row).borderBottomWidth))"
    assert review.page.locator(".r.pair").evaluate_all(f"rows => [...({drawn})(rows)]") == ["0px"]
    review.page.set_viewport_size({"width": 1099, "height": 900})
    expect(review.page.locator(".r.pair")).to_have_count(0)
    assert review.top(removed) < review.top(inserted)


def test_syntax_and_words_that_differ_are_marked(reading: ReviewPage) -> None:
    reading.file("shop/cart.py")
    changed = reading.page.locator(".r.add", has_text="return total * 85 // 100").locator(".w")
    expect(changed.first).to_be_visible()
    assert "".join(changed.all_text_contents()) == "85 // 100"  # in parts, where syntax has several
    expect(reading.page.locator(".code .k", has_text="return").first).to_be_visible()


def test_numbers_and_names_are_marked_too(reading: ReviewPage) -> None:
    reading.file("shop/cart.py")
    expect(reading.page.locator(".code .n1", has_text="100").first).to_be_visible()
    expect(reading.page.locator(".code .f", has_text="shipping").first).to_be_visible()


def test_lines_that_only_moved_are_grey_and_lead_to_their_other_end(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    root = tmp_path / "moves"
    root.mkdir()
    block = [f"    the line {number} that moves together\n" for number in range(3)]
    rest = [f"line {number}\n" for number in range(40)]
    (root / "a.py").write_text("".join([*block, *rest]))
    done(root, "init")
    done(root, "record")
    agent = ClaudeCode(root, "one")
    agent.start()
    agent.ask("Move it to the end")
    agent.write("a.py", "".join([*rest, *block, "and one more\n"]))
    agent.stop()
    review = opened(serve(root))
    review.file("a.py")
    moved = review.page.locator(".r.mv")
    expect(moved).to_have_count(6)
    expect(moved.first).to_contain_text("moved away")
    expect(moved.last).to_contain_text("moved here")
    review.heads.first.get_by_role("button", name="moved to 41").click()
    expect(review.current).to_contain_text("Lines 41\u201344")
    # The other end has a line of its own too: what is new is not told as moved.
    expect(review.current.locator(".r.add:not(.mv)")).to_contain_text("and one more")
    expect(review.current.get_by_role("button", name="moved from")).to_have_count(0)


def test_a_row_of_the_queue_says_what_is_special_about_its_file(
    project: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    agent = ClaudeCode(project, "third")
    agent.start()
    agent.ask("Make it")
    (project / "who.txt").write_text("x\n")
    agent.tell(agent.another_call(is_shell=True, command="make")[1])  # its beginning no hook reported
    agent.stop()
    assert cas("reject", "1:2", "--markers", folder=project).status == 0
    changed_outside(project)
    review = opened(serve(project))
    chips = {
        name: review.page.locator(f".queue a.row[title='{name}'] .chip").all_text_contents()
        for name in ("who.txt", "shop/cart.py", "tests/test_cart.py", "README.md")
    }
    assert set(chips["who.txt"]) == {"unattributed"}
    assert {"shared", "conflict"} <= set(chips["shop/cart.py"])
    assert set(chips["tests/test_cart.py"]) == {"outside"}
    assert chips["README.md"] == []


def test_edits_that_are_away_are_counted_in_the_queue(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    root = new_repository(tmp_path / "gone")
    (root / ".gitignore").write_text(".cas/\n")
    for name in ("a.txt", "b.txt"):
        (root / name).write_text("one\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    done(root, "init")
    done(root, "record")
    agent = ClaudeCode(root, "one")
    agent.start()
    agent.ask("Change both")
    agent.write("a.txt", "two\n")
    agent.stop()
    git(root, "stash", "-q")
    agent.write("b.txt", "two\n")
    review = opened(serve(root))
    expect(review.page.locator(".notices")).to_contain_text("1 edit is away: git put other content there.")


def test_images_and_documents_are_shown_before_and_after(reading: ReviewPage) -> None:
    reading.file("logo.png")
    for image in reading.page.locator(".images img").all():
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 48
    reading.file("README.md")
    reading.page.get_by_role("button", name="Rendered").click()
    frame = reading.page.locator("iframe")
    assert frame.get_attribute("sandbox") == ""
    expect(frame.content_frame.locator("strong:visible", has_text="15 %")).to_have_count(1)
    reading.page.get_by_role("button", name="Rendered").click()
    expect(frame).to_have_count(0)
    expect(reading.heads).to_have_count(2)


def test_blame_shows_the_prompt_behind_a_line(reading: ReviewPage) -> None:
    reading.file("shop/cart.py")
    reading.press("b")
    behind = reading.page.locator(".block", has_text="85 // 100")
    expect(behind.locator(".by")).to_contain_text("Large orders should cost less")


def test_timeline_goes_back_and_restores(review: ReviewPage, project: Path) -> None:
    review.file("shop/cart.py")
    review.press("h")
    slider = review.page.get_by_role("slider", name="Moment")
    expect(slider).to_have_attribute(
        "aria-valuetext", "3 of 3: edit 11, " + str(slider.get_attribute("aria-valuetext"))[17:]
    )
    slider.press("Home")
    expect(review.page.locator(".point")).to_contain_text("Edit 1")
    life = review.page.locator(".figure")
    assert life.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    life.locator("summary").click()
    expect(life.locator("tbody tr")).to_have_count(3)
    review.page.get_by_role("button", name="Restore the file as it was after edit 1").click()
    expect(review.sheet).to_contain_text("shop/cart.py")
    assert "country" in (project / "shop/cart.py").read_text()  # nothing was done yet
    review.sheet.get_by_role("button", name="Restore").click()
    expect(review.said).to_contain_text("estored")
    assert "country" not in (project / "shop/cart.py").read_text()
    review.go("#/timeline")
    expect(review.page.locator(".point")).to_contain_text("shop/cart.py")


def test_timeline_of_the_workspace_lists_what_differs(reading: ReviewPage) -> None:
    reading.go("#/timeline")
    reading.page.get_by_role("slider", name="Moment").press("Home")
    expect(reading.page.locator(".items")).to_contain_text("README.md")
    reading.page.locator(".items").get_by_role("link", name="README.md").click()
    expect(reading.page.locator(".timeline-page .head")).to_contain_text("README.md")


def test_search_finds_what_came_and_went(reading: ReviewPage) -> None:
    reading.go("#/search")
    reading.page.get_by_role("searchbox", name="What to search for").fill("saved")
    reading.press("Enter")
    expect(reading.page.locator(".hits")).to_contain_text("You save {saved}")
    reading.page.get_by_role("combobox").select_option("prompt")
    reading.page.get_by_role("searchbox", name="What to search for").fill("country")
    reading.page.get_by_role("button", name="Search").click()
    expect(reading.page.locator(".hits")).to_contain_text("shop/countries.py")


def test_store_shows_plots_with_their_tables(reading: ReviewPage) -> None:
    reading.go("#/store")
    plot = reading.page.locator(".figure").first
    expect(plot).to_contain_text("The store over time")
    assert plot.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    plot.locator("summary").click()
    assert plot.locator("tbody tr").count() > 0


def test_whose_an_unattributed_edit_is_can_be_said(
    project: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    agent = ClaudeCode(project, "third")
    agent.start()
    agent.ask("Make it")
    (project / "who.txt").write_text("x\n")
    # The end of a call whose beginning no hook reported.
    agent.tell(agent.another_call(is_shell=True, command="make")[1])
    agent.stop()
    review = opened(serve(project))
    whose = review.page.locator("section", has_text="Whose are these?")
    expect(review.page.locator(".queue a.row[title='who.txt']")).to_have_count(1)
    whose.get_by_role("link", name="who.txt").click()
    review.page.set_viewport_size({"width": 390, "height": 844})
    form = review.page.locator("form.claim")
    assert form.evaluate("form => [...form.children].every(({ offsetLeft: x, offsetWidth: w }) => x + w <= 390)")
    review.page.set_viewport_size({"width": 1440, "height": 900})
    review.page.get_by_role("combobox").select_option("codex 2 · Let shipping depend on the country.")
    review.page.get_by_role("button", name="Claim").click()
    expect(whose).to_have_count(0)


def test_a_workspace_that_can_only_be_read_says_why(
    project: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    modes = {path: path.stat().st_mode & 0o7777 for path in [project / ".cas", *(project / ".cas").rglob("*")]}
    for path, mode in modes.items():
        path.chmod(mode & 0o555)
    try:
        review = opened(serve(project, begun_by=AS_ANYBODY))
        expect(review.page.get_by_role("list", name="Faults")).to_contain_text("can't be written")
        review.file("README.md")
        expect(review.page.locator(".change-bar").get_by_role("button", name="Accept")).to_be_disabled()
        expect(review.page.locator(".change-bar").get_by_role("button", name="Reject")).to_be_disabled()
        review.press("a")
        expect(review.failure).to_contain_text("can't be written")
        review.press("j")
        expect(review.current).to_contain_text("Lines 11")
        expect(review.heads).to_have_count(2)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    (edit,) = cas("show", "7", "--json", folder=project).json()["edits"]
    assert edit["status"] == "pending"
