"""The way through a day's changes: one key a change, to the end, with nothing decided that was not on the screen."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.web.browser.conftest import Opener
from tests.support.command_runner import cas
from tests.support.faulty_disk import WHOLE
from tests.support.review_browser import ReviewPage, expect, needs_browser
from tests.support.review_server import ReviewServer
from tests.support.worked_day import CHANGES, day_worked

pytestmark = needs_browser


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project in which two agents worked for a day; it is only copied."""
    return day_worked(tmp_path_factory.mktemp("day") / "pond")


@pytest.fixture
def day(worked: Path, tmp_path: Path) -> Path:
    """Return a project of the test's own like that."""
    return Path(shutil.copytree(worked, tmp_path / "pond"))


@pytest.fixture(scope="module")
def looked_at(worked: Path, serve_for_module: Callable[[Path], ReviewServer]) -> ReviewServer:
    """Return a server for tests that decide on nothing."""
    return serve_for_module(worked)


SEEN = """
() => {
  const shown = window.shown = [];
  const posted = window.fetch;
  window.fetch = (address, options) => {
    if (String(address).endsWith("/api/decide")) {
      const rows = [...document.querySelectorAll(".change.now .r")].filter((row) => row.checkVisibility());
      shown.push(rows.map((row) => row.querySelector(".c").textContent));
    }
    return posted(address, options);
  };
}
"""


def test_85_changes_take_85_keys_and_each_decided_line_was_on_the_screen(
    day: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    assert CHANGES == 85
    pressed = CHANGES if WHOLE else 25
    review = opened(serve(day))
    review.current.wait_for()
    expect(review.progress).to_have_text("0 of 85 changes decided")
    review.page.evaluate(SEEN)
    keys = 0
    while keys < pressed:
        row = review.page.locator(".queue a[aria-current]")
        expect(row).to_be_in_viewport()
        review.press("x" if keys % 10 == 3 else "a")
        keys += 1
        expect(review.progress).to_have_text(f"{keys} of 85 changes decided")
    shown = review.page.evaluate("window.shown")
    assert len(shown) == pressed
    assert all(shown)
    if pressed == CHANGES:
        expect(review.page.locator(".done-page h1")).to_have_text("All 85 changes are decided")
        assert cas("status", "--json", folder=day).json()["pending"] == 0


def test_keys_pressed_while_something_loads_are_kept(
    day: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(day))
    for _ in range(10):  # over the ends of files and turns, some of them before the first change is there
        review.press("a")
    expect(review.progress).to_have_text("10 of 85 changes decided")
    expect(review.current).to_be_visible()


def test_undo_goes_back_to_the_change_in_its_file(
    day: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(day))
    review.current.wait_for()
    review.press("a")
    expect(review.head_of("config.rst")).to_be_visible()
    review.press("u")
    expect(review.head_of("CHANGES.rst")).to_be_visible()
    expect(review.said).to_contain_text("Undid the acceptance of 1 change in CHANGES.rst")
    expect(review.progress).to_have_text("0 of 85 changes decided")
    review.page.get_by_role("button", name="What you did").click()
    expect(review.sheet.get_by_role("listitem")).to_have_count(2)
    expect(review.sheet.get_by_role("listitem").last).to_contain_text("Accepted 1 change in CHANGES.rst")


def test_the_queue_is_filtered_and_shown_as_folders(looked_at: ReviewServer, opened: Opener) -> None:
    review = opened(looked_at)
    review.current.wait_for()
    review.press("/")
    review.page.keyboard.type("sess")
    rows = review.page.locator(".queue a.row")
    expect(rows).to_have_count(3)  # two of them by their prompt
    review.page.get_by_role("button", name="As folders").click()
    expect(rows).to_have_count(1)
    review.page.get_by_role("searchbox", name="Filter").press("Enter")
    expect(review.head_of("sessions.py")).to_be_visible()
    expect(review.heads).to_have_count(12)
    review.press("/")
    review.page.keyboard.press("Escape")
    expect(rows).to_have_count(15)
    expect(review.page.locator(".queue .tree summary", has_text="src/pond")).to_contain_text("65")


def test_lines_are_chosen_by_their_numbers_and_commented_on(
    day: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    server = serve(day)
    review = opened(server)
    review.file("docs/config.rst")
    numbers = review.page.locator(".r.same .n:not(.old)")
    numbers.nth(0).click()
    numbers.nth(2).click(modifiers=["Shift"])
    expect(review.page.locator(".change-bar")).to_contain_text("3 lines chosen")
    review.press("c")
    expect(review.sheet).to_contain_text("lines 7\u20139")
    review.sheet.get_by_role("textbox").fill("Say it shorter.")
    review.sheet.get_by_role("button", name="Comment").click()
    expect(review.page.locator(".queue .comments")).to_contain_text("Say it shorter.")
    (comment,) = server.queue()["comments"]
    assert (comment["line"], comment["line_count"]) == (6, 3)


def test_lines_are_chosen_by_dragging_and_by_keys(looked_at: ReviewServer, opened: Opener) -> None:
    review = opened(looked_at)
    review.file("docs/config.rst")
    numbers = review.page.locator(".r .n:not(.old)")
    first, last = review.box(numbers.nth(0)), review.box(numbers.nth(1))
    review.page.mouse.move(first["x"] + 5, first["y"] + 5)
    review.page.mouse.down()
    review.page.mouse.move(last["x"] + 5, last["y"] + 5)
    review.page.mouse.up()
    bar = review.page.locator(".change-bar")
    expect(bar).to_contain_text("2 lines chosen")
    review.press("Escape")
    expect(bar).not_to_contain_text("chosen")
    review.press("Shift+ArrowDown")
    review.press("Shift+ArrowDown")
    expect(bar).to_contain_text("2 lines chosen")


def test_the_panel_says_who_made_a_change_and_why(looked_at: ReviewServer, opened: Opener) -> None:
    review = opened(looked_at)
    review.file("src/pond/config.py")
    why = review.page.get_by_role("complementary", name="Who and why")
    expect(why).to_contain_text("Turn 1 asked")
    expect(why.locator("blockquote")).to_contain_text("Keep from_file as it is")
    expect(why).to_contain_text("claude-code 1")
    review.page.set_viewport_size({"width": 1200, "height": 900})
    expect(why).to_be_hidden()
    line = review.page.locator(".why-line")
    expect(line.locator("summary")).to_contain_text("Add Config.from_toml")
    line.locator("summary").click()
    expect(line.locator("blockquote")).to_be_visible()


def test_the_whole_file_is_what_every_turn_left_of_it_and_what_was_not_shown_is_shown_first(
    day: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(day))
    review.file("src/pond/app.py", turn=2)
    expect(review.heads).to_have_count(3)
    review.press("f")
    expect(review.sheet).to_contain_text("8 changes left to decide, of all turns")
    review.press("x")
    expect(review.sheet).to_contain_text("not on the screen")
    expect(review.progress).to_have_text("0 of 85 changes decided")
    review.sheet.get_by_role("button", name="Reject").click()
    expect(review.said).to_contain_text("Rejected 8 changes in app.py")
    expect(review.progress).to_have_text("8 of 85 changes decided")
    names = [edit["seq"] for edit in cas("log", "src/pond/app.py", "--status", "pending", "--json", folder=day).lines()]
    assert names == []


def test_no_key_does_anything_in_a_field(reading_day: ReviewPage) -> None:
    reading_day.press("/")
    reading_day.page.keyboard.type("axu")
    expect(reading_day.page.get_by_role("searchbox", name="Filter")).to_have_value("axu")
    expect(reading_day.progress).to_have_text("0 of 85 changes decided")


@pytest.fixture
def reading_day(looked_at: ReviewServer, opened: Opener) -> ReviewPage:
    """Return a page of the day for a test that decides on nothing."""
    review = opened(looked_at)
    review.current.wait_for()
    return review


TREE = """\
- complementary "Queue":
  - heading "Queue" [level=2]
  - searchbox "Filter the queue"
  - group "Arrange the queue":
    - button "By turn" [pressed]
    - button "As folders"
- main:
  - heading "CHANGES.rst" [level=1]
  - group "The current change":
    - button "Previous change"
    - button "Next change"
    - button "Accept"
    - button "Reject"
    - button "Comment"
  - region "The file":
    - 'group "Change 1 of 1, line 10: 1 added, 1 removed"':
      - button "Line 10"
- complementary "Who and why":
  - heading "Turn 1 asked" [level=2]
  - heading "If you reject it" [level=2]
"""


def test_a_screen_reader_finds_queue_file_change_and_why_by_name(reading_day: ReviewPage) -> None:
    from playwright.sync_api import expect as expected  # noqa: PLC0415 -- tests are collected without it too

    expected(reading_day.page.locator(".app")).to_match_aria_snapshot(TREE)
    reading_day.press("J")
    expect(reading_day.head_of("config.rst")).to_be_visible()
    expect(reading_day.current).to_be_focused()


def test_the_keyboard_alone_reaches_every_part(reading_day: ReviewPage) -> None:
    page = reading_day.page
    page.locator(".skip").focus()
    reached: list[str] = []
    for _ in range(90):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "() => (document.activeElement.getAttribute('aria-label') || document.activeElement.textContent).trim()"
        )
        reached.append(name.split("\n")[0][:30])
        if name.startswith("The file"):
            break
    wanted = ["Review", "Timeline", "Filter the queue", "By turn", "As folders", "Accept", "Reject", "Comment"]
    assert [name for name in wanted if not any(name in each for each in reached)] == []


def test_rows_keep_the_colours_of_their_own_text_when_changes_are_decided_and_drawn_again(
    day: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(day))
    review.file("src/pond/app.py")
    review.page.locator(".code .k").first.wait_for()
    for key in "ax":
        review.press(key)
        expect(review.said).to_contain_text("1 change in app.py")
        review.settle()
        review.page.get_by_role("button", name="Side by side" if key == "a" else "Unified").click()
        review.settle()
        words = review.page.locator(".code .k").all_inner_texts()
        assert set(words) <= {"False", "True", "None", "if", "is", "raise"}
        assert len(words) > 10
