"""What a picky reviewer does: types ahead, goes back and forth, resizes, uses two tabs; and files with odd names."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.cli.web.browser.conftest import Opener
from tests.support.command_runner import PROGRAM, cas, environment
from tests.support.hooked_agents import ClaudeCode
from tests.support.review_browser import ReviewPage, expect, needs_browser
from tests.support.review_project import done
from tests.support.review_server import ReviewServer

pytestmark = needs_browser


@pytest.fixture
def review(project: Path, serve: Callable[..., ReviewServer], opened: Opener) -> ReviewPage:
    """Return the page of a project in which agents have worked."""
    review = opened(serve(project))
    review.current.wait_for()
    return review


def slowly(review: ReviewPage, name: str) -> None:
    """Let requests of this name take a moment longer."""

    def late(route: "object") -> None:
        review.page.wait_for_timeout(300)
        route.continue_()  # type: ignore[attr-defined]  # a Route

    review.page.route(f"**/api/{name}*", late)


def test_what_is_typed_after_the_key_of_a_field_is_text_though_a_decision_is_in_progress(review: ReviewPage) -> None:
    slowly(review, "decide")
    review.press("a")
    review.press("/")
    review.page.keyboard.type("xau")
    expect(review.page.get_by_role("searchbox", name="Filter")).to_have_value("xau")
    expect(review.progress).to_have_text("1 of 14 changes decided")
    review.page.unroute_all(behavior="wait")
    review.press("Escape")
    slowly(review, "decide")
    for key in "aHau":  # "u" would undo
        review.press(key)
    expect(review.page.get_by_role("heading", name="Search", level=1)).to_be_visible()
    expect(review.progress).to_have_text("2 of 14 changes decided")


def test_the_filter_s_key_leads_to_the_queue_where_it_is_not_on_the_screen(
    only_read: ReviewServer, opened: Opener
) -> None:
    review = opened(only_read, width=390, height=844)
    review.file("tests/test_cart.py", turn=1)
    review.press("/")
    review.page.keyboard.type("ax")
    expect(review.page.get_by_role("searchbox", name="Filter")).to_have_value("ax")
    expect(review.progress).to_have_text("0 of 14 changes decided")
    review.go("#/store")
    review.page.get_by_role("heading", name="Store", level=1).wait_for()
    review.press("/")
    review.page.keyboard.type("u")
    expect(review.page.get_by_role("searchbox", name="Filter")).to_have_value("u")


def test_a_phone_shows_two_rows_above_the_file_and_who_made_it_on_demand(
    only_read: ReviewServer, opened: Opener
) -> None:
    review = opened(only_read, width=390, height=844)
    review.file("shop/cart.py", turn=1)
    pane = review.page.get_by_role("region", name="The file")
    box = review.box(pane)
    assert box["y"] <= 2 * 48
    review.press("j")
    review.press("j")
    review.page.locator(".phone-bar").get_by_label("More to do with this change").click()
    review.page.get_by_role("button", name="Who and why").click()
    expect(review.page.locator(".why-line blockquote").first).to_be_in_viewport()


def test_a_comment_that_is_being_written_stays_as_it_is_while_the_agent_changes_the_file(
    review: ReviewPage, project: Path
) -> None:
    review.file("shop/cart.py")
    number = review.page.locator(".r.add .n:not(.old)").first
    number.click()
    review.press("c")
    expect(review.sheet).to_contain_text("line 30")
    review.page.keyboard.type("Why ")
    agent = ClaudeCode(project, "third")
    agent.start()
    agent.ask("Say who wrote it.")
    agent.write("shop/cart.py", '"""By us."""\n' + (project / "shop/cart.py").read_text())
    expect(review.page.locator(".queue")).to_contain_text("claude-code 3")
    review.page.keyboard.type("85?")
    expect(review.sheet.get_by_role("textbox")).to_have_value("Why 85?")
    review.sheet.get_by_role("button", name="Comment").click()
    expect(review.sheet).to_have_count(0)
    (comment,) = review.server.queue()["comments"]
    lines = (project / "shop/cart.py").read_text().splitlines()
    assert lines[comment["line"]] == "        return total * 85 // 100"


def test_a_reason_that_is_typed_where_no_dialog_opens_decides_nothing(review: ReviewPage) -> None:
    review.go("#/timeline")
    review.page.get_by_role("heading", name="Timeline", level=1).wait_for()
    review.page.keyboard.type("Xtax u")
    expect(review.said).to_have_text("No change is open. Review leads to the next one that is left.")
    expect(review.page.get_by_role("heading", name="Timeline", level=1)).to_be_visible()
    review.go("#/")
    review.file("shop/cart.py")
    review.press("a")
    expect(review.progress).to_have_text("1 of 14 changes decided")
    review.press("k")
    for key in "Xs.":
        review.page.keyboard.type(f"{key}ax" if key == "X" else key)
        expect(review.said).to_have_text("It is accepted already. Reopen it to decide again.")
        review.page.get_by_role("button", name="Close the message").click()
        review.page.wait_for_timeout(1_100)  # longer than between two keys of a text
    expect(review.progress).to_have_text("1 of 14 changes decided")
    review.press("c")
    review.sheet.get_by_role("textbox").fill("Well done.")
    review.sheet.get_by_role("button", name="Comment").click()
    expect(review.page.locator(".queue .comments")).to_contain_text("Well done.")
    review.current.get_by_role("button", name="Reopen").click()
    expect(review.progress).to_have_text("0 of 14 changes decided")


def test_back_and_forward_go_through_files_and_close_dialogs(review: ReviewPage) -> None:
    review.file("shop/cart.py", turn=1)
    review.file("README.md", turn=2)
    review.page.go_back()
    expect(review.head_of("cart.py")).to_be_visible()
    review.press("j")
    review.press("e")
    expect(review.sheet).to_be_visible()
    review.page.go_forward()
    expect(review.sheet).to_have_count(0)
    expect(review.head_of("README.md")).to_be_visible()
    expect(review.current).to_be_visible()
    review.press("a")
    expect(review.progress).to_have_text("1 of 14 changes decided")


def test_the_current_change_stays_in_view_while_the_window_is_resized(review: ReviewPage) -> None:
    review.file("shop/cart.py")
    for _ in range(3):
        review.press("j")
    expect(review.current).to_have_attribute("aria-label", "Change 4 of 4, lines 44\u201347: 4 added, 1 removed")
    for width, height in ((390, 844), (1440, 900), (720, 450), (1100, 700)):
        review.page.set_viewport_size({"width": width, "height": height})
        expect(review.current.locator(".change-head")).to_be_in_viewport()
        assert review.overflow() <= 0
        overlapping = review.page.evaluate(OVERLAPPING)
        assert overlapping == []


OVERLAPPING: Final = """
() => [".change-bar", ".file-head", ".top", ".phone-bar"].flatMap((name) => {
  const parts = [...document.querySelectorAll(`${name} > *`)]
    .filter((each) => each.checkVisibility() && each.getBoundingClientRect().width);
  return parts.slice(1).flatMap((each, at) => {
    const gap = each.getBoundingClientRect().left - parts[at].getBoundingClientRect().right;
    const cut = parts[at].scrollWidth - parts[at].clientWidth;
    return gap < -1 || (parts[at].matches(".what") && cut > 24) ? [`${name}: ${each.textContent}, ${gap}, ${cut}`] : [];
  });
})
"""


def test_dark_and_light_follow_the_system_and_the_switch_at_once(review: ReviewPage) -> None:
    def ground() -> str:
        return str(review.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = ground()
    review.page.emulate_media(color_scheme="dark")
    dark = ground()
    assert dark != light
    review.page.get_by_role("button", name="Light or dark").click()
    assert ground() == light
    review.page.reload()
    review.current.wait_for()
    assert ground() == light


def test_two_tabs_that_decide_on_the_same_change_count_it_once(
    project: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    server = serve(project)
    one, other = opened(server), opened(server)
    for tab in (one, other):
        tab.file("README.md")
        tab.page.route("**/api/events*", lambda route: route.abort())
    one.press("a")
    other.press("x")
    expect(one.progress).to_contain_text("of 14")
    other.page.unroute_all()
    expect(other.progress).to_have_text("1 of 14 changes decided")
    statuses = {edit["status"] for edit in cas("log", "README.md", "--json", folder=project).lines()}
    assert len(statuses) == 1


def test_undo_of_another_tab_s_decision_goes_to_the_change_that_it_was_on(
    project: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    server = serve(project)
    one, other = opened(server), opened(server)
    one.file("README.md")
    other.file("shop/cart.py")
    one.press("a")
    for tab in (one, other):
        expect(tab.progress).to_have_text("1 of 14 changes decided")
    stays = one.page.url
    other.press("u")
    expect(other.head_of("README.md")).to_be_visible()
    expect(other.current).to_be_focused()
    expect(other.said).to_contain_text("Undid the acceptance of 1 change in README.md")
    expect(one.progress).to_have_text("0 of 14 changes decided")
    assert one.page.url == stays


def test_lines_that_were_chosen_are_ticked_in_the_dialog_that_splits(review: ReviewPage, project: Path) -> None:
    review.file("shop/cart.py")
    for _ in range(3):
        review.press("j")
    rows = review.current.locator(".r.add .n:not(.old)")
    first, last = review.box(rows.nth(1)), review.box(rows.nth(2))
    review.page.mouse.move(first["x"] + 5, first["y"] + 5)
    review.page.mouse.down()
    review.page.mouse.move(last["x"] + 5, last["y"] + 5, steps=5)
    review.page.mouse.up()
    review.press("s")
    boxes = review.sheet.get_by_role("checkbox")
    expect(boxes).to_have_count(5)
    assert [boxes.nth(at).is_checked() for at in range(boxes.count())] == [False, False, True, True, False]
    review.sheet.get_by_role("button", name="Take out 2 lines").click()
    expect(review.sheet).to_have_count(0)
    text = (project / "shop/cart.py").read_text()
    assert "You save" not in text
    assert "total = cart.total()" in text


HEBREW: Final = "\u05e9\u05dc\u05d5\u05dd/\u05e2\u05d5\u05dc\u05dd.py"
NAMES: Final = {
    "\U0001f986 na\u00efve.txt": ("ducks\n", "ducks \U0001f986\U0001f986\n"),
    HEBREW: (
        "x = '\u0645\u0631\u062d\u0628\u0627'\n",
        "y = '\u0645\u0631'\n",
    ),
    "two\nlines.txt": ("a\nb\n", "a\nc\n"),
    "tab\tand \u202etxt.exe": ("\tif x:\n", "    if x:\n"),
    "folder/" * 8 + "positional_arguments_and_defaults_and_more_of_them_than_fit.py": ("x = 1\n", "x = 2\n"),
    "long.js": ("word " * 900 + "\n", "word " * 899 + "other\n"),
    os.fsdecode(b"latin-\xe9.txt"): ("one\n", "two\n"),
}


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Return a project whose files have odd names and lines, all of them changed for a long prompt."""
    root = tmp_path / "odd"
    root.mkdir()
    for name, (before, _) in NAMES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(before)
    done(root, "init")
    done(root, "record")
    agent = ClaudeCode(root, "first")
    agent.start()
    agent.ask("<b>Please</b> do all of this & then some more. " * 40)
    for name, (_, after) in NAMES.items():
        if name.isprintable() or "\n" in name or "\t" in name:
            agent.write(name, after)
        else:
            agent.run(f"printf 'two\\n' > {name!r}" if name.isascii() else "printf 'two\\n' > latin-*.txt")
    agent.stop()
    return root


@pytest.mark.parametrize("size", [(390, 844), (720, 450), (1440, 900)], ids=["phone", "zoomed", "wide"])
def test_odd_names_and_lines_are_shown_in_full_and_decided_on(
    odd: Path, serve: Callable[..., ReviewServer], opened: Opener, size: tuple[int, int]
) -> None:
    server = serve(odd)
    review = opened(server, width=size[0], height=size[1])
    files = server.queue()["files"]
    assert len(files) == len(NAMES)
    for file in files:
        review.go(f"#/file/{file['document']}")
        review.current.wait_for()
        expect(review.page.locator(".file-head h1")).to_have_attribute("title", file["name"])
        assert review.overflow() <= 0, file["name"]
        assert review.page.evaluate(OVERLAPPING) == [], file["name"]
        if size[0] == 1440:
            expect(review.page.get_by_role("heading", name="If you reject it")).to_be_in_viewport()
    for number, _ in enumerate(files, 1):
        review.press("a")
        again = review.sheet.get_by_role("button", name="Accept")  # a part of the long line was not shown
        again.or_(review.progress.filter(has_text=f"{number} of")).first.wait_for()
        if again.count():
            again.click()
            review.settle()  # until then, a key that decides is one for the dialog
        expect(review.progress).to_have_text(f"{number} of {len(files)} changes decided")
    assert server.queue()["changes"] == 0


def test_a_comment_is_answered_and_resolved_between_the_lines(review: ReviewPage) -> None:
    review.file("shop/cart.py")
    review.press("c")
    review.sheet.get_by_role("textbox").fill("Why 85?")
    review.sheet.get_by_role("button", name="Comment").click()
    expect(review.sheet).to_have_count(0)  # the thread is there before, behind the dialog
    thread = review.current.locator(".thread")
    answer = thread.get_by_role("textbox", name="Answer to comment 1")
    answer.fill("Marketing")
    review.page.reload()
    expect(answer).to_have_value("Marketing")  # what was typed is kept
    answer.fill("Marketing wants it.")
    answer.press("Enter")
    expect(thread.get_by_role("article")).to_have_count(2)
    expect(thread).to_contain_text("Marketing wants it.")
    expect(answer).to_have_value("")
    thread.get_by_role("button", name="Resolve").click()
    expect(review.page.locator(".queue .comments")).to_have_count(0)
    ((comment, *_), *_) = [change["comments"] for change in review.server.file("shop/cart.py")["all"]]
    assert (comment["state"], [said["text"] for said in comment["answers"]]) == ("resolved", ["Marketing wants it."])


def test_an_answer_that_is_being_typed_stays_text_while_the_thread_and_the_file_change(
    review: ReviewPage, project: Path
) -> None:
    review.file("shop/cart.py")
    review.press("c")
    review.sheet.get_by_role("textbox").fill("Why 85?")
    review.sheet.get_by_role("button", name="Comment").click()
    expect(review.sheet).to_have_count(0)  # the thread is there before, behind the dialog
    thread = review.page.locator(".change .thread")
    answer = thread.get_by_role("textbox", name="Answer to comment 1")
    answer.click()
    review.page.keyboard.type("max")
    cas("comment", "--reply", "1", "-m", "Ask sales.", folder=project)
    expect(thread.get_by_role("article")).to_have_count(2)
    review.page.keyboard.type(" tax")
    review.page.keyboard.press("Home")
    agent = ClaudeCode(project, "third")
    agent.start()
    agent.ask("Say who wrote it.")
    agent.write("shop/cart.py", '"""By us."""\n' + (project / "shop/cart.py").read_text())
    expect(review.page.get_by_role("region", name="The file").get_by_text("By us.")).to_be_attached()
    review.page.keyboard.type("a x: ")
    expect(answer).to_have_value("a x: max tax")
    expect(answer).to_be_focused()
    expect(review.page.get_by_role("dialog")).to_have_count(0)
    assert review.server.queue()["decided"] == 0


CLICK_AND_COMMENT: Final = """
(link) => {
  link.click();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "c", bubbles: true, cancelable: true }));
}
"""


def test_a_key_that_follows_a_click_on_a_link_at_once_is_of_the_file_to_which_the_link_leads(
    review: ReviewPage,
) -> None:
    review.page.get_by_role("button", name="As folders").click()
    for name in ("shop/cart.py", "README.md"):  # the first is on the screen already, as the first turn's
        review.page.locator(".queue .tree").get_by_title(name, exact=True).evaluate(CLICK_AND_COMMENT)
        expect(review.sheet.get_by_role("heading")).to_contain_text(f"Comment on {Path(name).name}")
        review.settle()
        expect(review.sheet).to_have_count(1)
        review.press("Escape")
        expect(review.sheet).to_have_count(0)


TYPING_ON: Final = """
() => new Promise((resolve) => {
  const field = document.activeElement;
  let left = 30;
  const timer = setInterval(() => {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
    if (field.isConnected || (left -= 1)) return;
    clearInterval(timer);
    resolve();
  }, 50);
})
"""


def test_an_answer_whose_file_is_left_while_it_is_typed_decides_nothing(review: ReviewPage, project: Path) -> None:
    review.file("README.md")
    review.press("c")
    review.sheet.get_by_role("textbox").fill("Why?")
    review.sheet.get_by_role("button", name="Comment").click()
    expect(review.sheet).to_have_count(0)
    review.page.get_by_role("textbox", name="Answer to comment 1").click()
    changes = len(review.server.file("README.md")["all"])
    with subprocess.Popen([*PROGRAM, "accept", "README.md"], cwd=project, env=environment({})):
        review.page.evaluate(TYPING_ON)
    expect(review.head_of("README.md")).to_have_count(0)
    review.settle()
    expect(review.progress).to_have_text(f"{changes} of 14 changes decided")


def test_a_phone_decides_by_its_bar_and_its_menu(review: ReviewPage) -> None:
    review.page.set_viewport_size({"width": 390, "height": 844})
    review.go("#/file/1")
    review.current.wait_for()
    bar = review.page.locator(".phone-bar")
    bar.get_by_role("button", name="Accept").click()
    expect(review.progress).to_have_text("1 of 14 changes decided")
    review.settle()
    bar.get_by_role("button", name="Reject", exact=True).click()
    expect(review.sheet).to_contain_text("Rejecting 1 change in cart.py leaves `country` undefined in shop/cart.py:37")
    review.sheet.get_by_role("button", name="Reject").click()
    expect(review.progress).to_have_text("2 of 14 changes decided")
    review.settle()
    bar.get_by_label("More to do with this change").click()
    review.page.get_by_role("button", name="Reject with a reason").click()
    review.sheet.get_by_role("textbox").fill("no")
    review.sheet.get_by_role("button", name="Reject 1 change").click()
    expect(review.progress).to_have_text("3 of 14 changes decided")
    review.settle()
    bar.get_by_role("button", name="Comment").click()
    expect(review.sheet.get_by_role("heading", level=2)).to_contain_text("Comment on cart.py")
    review.sheet.get_by_role("button", name="Cancel").click()
    bar.get_by_label("More to do with this change").click()
    review.page.get_by_role("button", name="The rest of the file").click()
    expect(review.sheet).to_contain_text("1 change left to decide, of all turns")


def test_the_theme_that_a_person_chose_stays(review: ReviewPage) -> None:
    review.page.get_by_role("button", name="Light or dark").click()
    expect(review.page.locator("html")).to_have_attribute("data-theme", "dark")
    review.page.reload()
    expect(review.page.locator("html")).to_have_attribute("data-theme", "dark")
    review.page.get_by_role("button", name="Light or dark").click()
    expect(review.page.locator("html")).to_have_attribute("data-theme", "light")
