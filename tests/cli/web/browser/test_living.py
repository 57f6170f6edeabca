"""Changes while a person reads: an agent edits, another page decides, the server ends and is started again."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.web.browser.conftest import Opener
from tests.support.command_runner import cas
from tests.support.hooked_agents import ClaudeCode
from tests.support.mcp_agent import connected
from tests.support.review_browser import expect, needs_browser
from tests.support.review_project import done
from tests.support.review_server import ReviewServer

if TYPE_CHECKING:
    from playwright.sync_api import Route

pytestmark = needs_browser

LINES = [f"line {number}\n" for number in range(1, 401)]


def edited(*changed: int, word: str = "LINE") -> list[str]:
    """Return the lines with some of them changed, counted from 1."""
    return [f"{word} {number}\n" if number in changed else line for number, line in enumerate(LINES, start=1)]


@pytest.fixture(scope="module")
def shouted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with a file of 400 lines, of which an agent changed every tenth; it is only copied."""
    root = tmp_path_factory.mktemp("shouted") / "long"
    root.mkdir()
    (root / "a.txt").write_text("".join(LINES))
    done(root, "init")
    done(root, "record")
    agent = ClaudeCode(root, "one")
    agent.start()
    agent.ask("Shout")
    agent.write("a.txt", "".join(edited(*range(10, 400, 10))))
    agent.stop()
    return root


@pytest.fixture
def long_file(shouted: Path, tmp_path: Path) -> Path:
    """Return a project of the test's own like that."""
    return Path(shutil.copytree(shouted, tmp_path / "long"))


def test_edits_of_a_running_agent_appear_and_the_line_under_the_cursor_stays(
    long_file: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(long_file))
    review.file("a.txt")
    for _ in range(10):
        review.press("j")
    expect(review.current).to_contain_text("Line 110")
    row = review.page.locator(".r.add", has_text="LINE 110")
    before = review.top(row)
    with connected(long_file.resolve()) as agent:
        for number in range(3):
            new = f"line 1\nabove {number}\n" if number == 0 else f"above {number - 1}\nabove {number}\n"
            old = "line 1\n" if number == 0 else f"above {number - 1}\n"
            edits = [{"old_string": old, "new_string": new}]
            agent.done("multi_edit_text_file", path=str(long_file.resolve() / "a.txt"), edits=edits)
            expect(review.current).to_contain_text(f"Line {111 + number}")
            assert review.top(row) == pytest.approx(before, abs=1)
    expect(review.heads.first).to_contain_text("Lines 2\u20134")


def test_a_reader_who_scrolled_away_from_the_cursor_keeps_the_line(
    long_file: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(long_file), width=900)
    review.file("a.txt")
    row = review.page.locator(".r.add", has_text="LINE 300")
    row.scroll_into_view_if_needed()
    before = review.top(row)
    agent = ClaudeCode(long_file, "two")
    agent.start()
    agent.ask("More")
    agent.write("a.txt", "".join(["new 1\n", "new 2\n", *edited(*range(10, 400, 10))]))
    expect(review.progress).to_have_text("0 of 40 changes decided")
    expect(review.heads.nth(1)).to_contain_text("Line 12")
    assert review.top(row) == pytest.approx(before, abs=1)


def test_a_change_that_the_agent_altered_stays_current_and_says_so(
    long_file: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(long_file))
    review.file("a.txt")
    for _ in range(3):
        review.press("j")
    expect(review.current).to_contain_text("Line 40")
    before = review.top(review.current)
    agent = ClaudeCode(long_file, "two")
    agent.start()
    agent.ask("More")
    lines = edited(*range(10, 400, 10))
    agent.write("a.txt", "".join([*lines[:40], "after forty\n", *lines[40:]]))
    expect(review.current).to_contain_text("changed since you looked")
    expect(review.page.locator(".change-bar")).to_contain_text("+2 \u22121")
    assert review.top(review.current) == pytest.approx(before, abs=1)
    review.press("x")
    expect(review.said).to_contain_text("Rejected")
    assert "after forty" not in (long_file / "a.txt").read_text()
    assert "line 40\n" in (long_file / "a.txt").read_text()


def test_an_edit_after_the_decision_was_asked_for_is_never_decided_with_it(
    long_file: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(long_file))
    review.file("a.txt")
    expect(review.current).to_contain_text("Line 10")
    review.page.route("**/api/queue", lambda route: route.abort())  # this page gets no news
    lines = edited(*range(10, 400, 10))
    agent = ClaudeCode(long_file, "two")
    agent.start()
    agent.ask("More")
    agent.write("a.txt", "".join([*lines[:10], "not shown yet\n", *lines[10:]]))
    review.press("a")
    expect(review.failure).not_to_be_empty()
    review.wrong.clear()
    assert "accepted" not in done(long_file, "show", "1").partition("1:2")[0]


SHIFTS = """
() => {
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const { sources, hadRecentInput } of list.getEntries()) {
      for (const { node, previousRect, currentRect } of hadRecentInput ? [] : sources) {
        const element = node instanceof Element ? node : node?.parentElement;
        const is_moved = previousRect.y !== currentRect.y || element?.matches("a, button");
        if (element && is_moved && !element.closest(".notices.meanwhile")) {
          const places = [previousRect, currentRect].map(({ x, y }) => `${x},${y}`);
          window.shifts.push(`${element.className} ${element.textContent?.slice(0, 60)} ${places.join(" to ")}`);
        }
      }
    }
  }).observe({ type: "layout-shift" });
}
"""
"""Collects what moved on the screen by itself, not after a key.

A count that gets another digit grows to its left, and notices grow upwards from the bottom of the queue: that is all.
"""


def test_nothing_on_the_screen_moves_while_an_agent_works(
    long_file: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(long_file))
    review.file("a.txt", turn=1)
    for _ in range(10):
        review.press("j")
    expect(review.current).to_contain_text("Line 110")
    review.page.wait_for_timeout(700)  # what a key moved counts as moved by the person for half a second
    review.page.evaluate(SHIFTS)
    agent = ClaudeCode(long_file, "two")
    agent.start()
    agent.ask("More files")
    began, ended = agent.another_call(is_shell=True, command="make")
    agent.tell(began)
    running = review.page.locator(".notices", has_text="runs Bash")
    expect(running).to_be_visible()
    (long_file / "new.txt").write_text("new\n")
    agent.tell(ended)
    agent.write("a.txt", "".join(["above\n", *edited(*range(10, 400, 10))]))
    expect(review.current).to_contain_text("Line 111")
    agent.write("also_new.txt", "new\n")
    expect(review.page.locator(".queue a.row", has_text="also_new")).to_have_count(1)
    (long_file / "outside.txt").write_text("by hand\n")
    done(long_file, "status")
    agent.stop()
    expect(running).to_have_count(0)
    assert review.page.evaluate("window.shifts") == []


def test_a_decision_in_one_tab_shows_in_the_other(
    project: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    server = serve(project)
    one, two = opened(server), opened(server)
    one.file("README.md")
    two.file("README.md")
    one.press("x")
    expect(one.said).to_contain_text("Rejected")
    expect(two.heads).to_have_count(1)
    expect(two.current).to_contain_text("Lines 11")
    two.press("u")
    expect(two.said).to_contain_text("Undid")
    expect(one.heads).to_have_count(2)


def test_a_gap_of_a_file_that_is_decided_before_the_server_answers_says_so(
    long_file: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(long_file))
    review.file("a.txt")

    def decided_before(route: "Route") -> None:
        assert cas("accept", "--all", folder=long_file).status == 0
        route.continue_()

    review.page.route("**/api/lines?*", decided_before)
    review.page.locator(".fold").first.click()
    expect(review.failure).to_contain_text("Nothing is pending")
    review.page.unroute("**/api/lines?*")


def test_a_check_is_shown_where_it_was_asked_for_and_can_be_stopped_there(
    project: Path, serve: Callable[..., ReviewServer], opened: Opener, tmp_path: Path
) -> None:
    own = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert cas("config", "set", "review.check", "echo waiting; sleep 1000", folder=project, settings=own).status == 0
    review = opened(serve(project, settings=own))
    review.file("README.md")
    review.press("x")
    expect(review.page.locator(".notices")).to_contain_text("Checking with echo waiting; sleep 1000")
    review.page.set_viewport_size({"width": 390, "height": 844})  # a phone shows no queue next to the file
    expect(review.page.locator(".notices")).to_be_hidden()
    expect(review.page.get_by_role("list", name="Running checks")).to_contain_text("Checking with echo waiting")
    review.page.get_by_role("button", name="Stop it").click()
    expect(review.sheet.get_by_role("heading", name="The check was stopped")).to_be_visible()
    expect(review.sheet).to_contain_text("was stopped on a copy of what this would leave")
    expect(review.sheet).to_contain_text("waiting")
    expect(review.page.locator(".notices")).not_to_contain_text("Checking")
    review.press("Escape")
    review.page.set_viewport_size({"width": 1440, "height": 900})
    review.page.get_by_role("button", name="What you did").click()
    expect(review.sheet.get_by_role("listitem")).to_have_count(1)
    expect(review.sheet).to_contain_text("The check was stopped, so nothing was decided.")
    assert "15 %" in (project / "README.md").read_text()


def test_a_reload_in_the_middle_returns_to_the_same_file(
    project: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(project))
    review.file("README.md", turn=2)
    review.file("shop/cart.py", turn=1)
    review.press("a")
    expect(review.said).to_contain_text("Accepted")
    review.page.reload()
    expect(review.head_of("shop/cart.py")).to_be_visible()
    expect(review.heads).to_have_count(2)
    review.page.go_back()
    expect(review.head_of("README.md")).to_be_visible()


def test_a_server_that_ended_and_came_back_is_said_and_nothing_typed_is_lost(
    project: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    server = serve(project, is_cold=True)
    review = opened(server)
    review.file("tests/test_cart.py")
    review.press("c")
    review.sheet.get_by_role("textbox").fill("A long thought")
    server.process.kill()
    server.process.wait()
    banner = review.page.locator(".banner")
    expect(banner).to_contain_text("The server is gone")
    review.sheet.get_by_role("button", name="Comment").click()
    expect(review.failure).to_contain_text("No answer")
    expect(review.sheet.get_by_role("textbox")).to_have_value("A long thought")
    again = serve(project, "--port", str(server.port))
    review.press("Escape")
    expect(banner).to_contain_text("Open the new address")
    review.page.context.new_page().goto(f"{again.origin}/?token={again.token}")
    banner.get_by_role("button", name="Try now").click()
    expect(banner).to_be_hidden()
    review.press("c")
    expect(review.sheet.get_by_role("textbox")).to_have_value("A long thought")
    review.sheet.get_by_role("button", name="Comment").click()
    expect(review.current.locator(".thread")).to_contain_text("A long thought")
    review.wrong.clear()
