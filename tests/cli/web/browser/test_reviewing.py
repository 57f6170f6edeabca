"""Reviewing in the browser: each key and button for changes, and each outcome of a decision."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.review_ui.keys import KEYS
from tests.cli.web.browser.conftest import Opener
from tests.support.command_runner import cas
from tests.support.hooked_agents import ClaudeCode, recorded_project
from tests.support.review_browser import ReviewPage, expect, needs_browser
from tests.support.review_project import done, new_project
from tests.support.review_server import ReviewServer
from tests.support.shared_stores import pull, pushed_desk

pytestmark = needs_browser


@pytest.fixture
def review(project: Path, serve: Callable[..., ReviewServer], opened: Opener) -> ReviewPage:
    """Return the page of a project in which agents have worked."""
    return opened(serve(project))


def statuses(root: Path, seq: int) -> list[str]:
    """Return the statuses of an edit's hunks."""
    (edit,) = cas("show", str(seq), "--json", folder=root).json()["edits"]
    return [hunk["status"] for hunk in edit["hunks"]]


def test_queue_shows_turns_with_prompts_and_files_with_counts(review: ReviewPage) -> None:
    turns = review.page.locator("section.turn[aria-label^='Turn']")
    expect(turns).to_have_count(3)
    expect(turns.nth(0)).to_contain_text("Large orders should cost less")
    expect(review.page.locator(".session").first).to_contain_text("claude-code 1")
    expect(turns.nth(0).get_by_role("link", name="test_cart.py")).to_contain_text("+1 \u22121")
    expect(review.page.locator(".notices")).to_contain_text("claude-code 1 and codex 2 have both changed shop/cart.py")
    expect(review.progress).to_have_text("0 of 14 changes decided")


def test_the_page_opens_on_the_first_change(review: ReviewPage) -> None:
    expect(review.head_of("shop/cart.py")).to_be_visible()
    expect(review.current).to_contain_text("Line 30")
    expect(review.page.locator(".queue a[aria-current]")).to_have_attribute("title", "shop/cart.py")


def test_the_open_file_is_marked_once_however_many_turns_change_it(review: ReviewPage) -> None:
    review.file("shop/cart.py")
    for arrangement in ("As folders", "By turn"):
        review.page.get_by_role("button", name=arrangement, exact=True).click()
        expect(review.page.locator(".queue a[aria-current]")).to_have_count(1)


def test_keys_go_through_changes_and_files(review: ReviewPage) -> None:
    review.file("shop/cart.py", turn=1)
    expect(review.current).to_contain_text("Line 30")
    review.press("j")
    expect(review.current).to_contain_text("Lines 34")
    review.press("k")
    expect(review.current).to_contain_text("Line 30")
    review.press("J")
    expect(review.head_of("tests/test_cart.py")).to_be_visible()
    expect(review.current).to_contain_text("Line 9")
    review.press("K")
    expect(review.head_of("shop/cart.py")).to_be_visible()
    expect(review.current).to_contain_text("Lines 44")  # the first that was not wholly on the screen yet
    review.file("tests/test_cart.py")  # as folders, it is the last one
    review.press("j")
    expect(review.said).to_contain_text("last change")
    review.press("q")
    expect(review.page.locator(".done-page h1")).to_contain_text("14 changes left to decide")
    review.page.get_by_role("link", name="Go on").click()
    expect(review.current).to_be_visible()


def test_accepting_and_rejecting_go_on_and_undo_takes_back(review: ReviewPage, project: Path) -> None:
    review.file("shop/cart.py", turn=1)
    review.press("a")
    expect(review.said).to_contain_text("Accepted")
    expect(review.current).to_contain_text("Lines 34")
    expect(review.heads.first).to_contain_text("Accepted")
    expect(review.progress).to_have_text("1 of 14 changes decided")
    assert statuses(project, 1)[0] == "accepted"
    review.press("x")
    expect(review.sheet).to_contain_text("leaves `country` undefined in shop/cart.py:37")
    review.sheet.get_by_role("button", name="Reject").click()
    expect(review.said).to_contain_text("Rejected")
    assert "5_000" in (project / "shop/cart.py").read_text()
    review.press("u")
    expect(review.said).to_contain_text("Undid the ")
    assert "4_000" in (project / "shop/cart.py").read_text()
    review.press("U")
    expect(review.said).to_contain_text("Redid the ")
    assert "5_000" in (project / "shop/cart.py").read_text()


def test_buttons_of_a_heading_decide_on_its_change(review: ReviewPage, project: Path) -> None:
    review.file("README.md")
    review.heads.nth(1).get_by_role("button", name="Reject").click()
    expect(review.said).to_contain_text("Rejected")
    assert "## Test it" not in (project / "README.md").read_text()
    assert "15 %" in (project / "README.md").read_text()
    review.page.get_by_role("button", name="Undo").click()
    expect(review.said).to_contain_text("Undid the ")
    assert "## Test it" in (project / "README.md").read_text()


def test_a_file_is_accepted_as_a_whole_and_the_next_is_shown(review: ReviewPage, project: Path) -> None:
    review.file("README.md", turn=2)
    review.press("f")
    review.sheet.get_by_role("button", name="Accept 2 changes").click()
    expect(review.head_of("logo.png")).to_be_visible()
    assert statuses(project, 7) == ["accepted", "accepted"]


def test_the_turn_of_a_change_without_one_is_its_session(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    root = recorded_project(tmp_path / "work", "a", "b")
    one, two = ClaudeCode(root, "one"), ClaudeCode(root, "two")
    for agent in (one, two):
        agent.start()
    one.write("a", "no prompt yet\n")
    one.write("c", "nor now\n")
    calls = [agent.another_call(is_shell=True) for agent in (one, two)]
    for agent, (begins, _) in zip((one, two), calls, strict=True):
        agent.tell(begins)
    (root / "b").write_text("of either agent\n")
    for agent, (_, ends) in zip((one, two), calls, strict=True):
        agent.tell(ends)
    review = opened(serve(root))
    review.page.get_by_role("button", name="As folders", exact=True).click()
    review.page.locator(".queue .tree").get_by_title("b", exact=True).click()
    review.head_of("b").wait_for()
    review.press("t")
    expect(review.said).to_have_text("No turn or session is known that made this change.")
    assert cas("claim", "3", "--session", "1", folder=root).status == 0
    expect(review.page.get_by_text("unattributed")).to_have_count(0)
    review.settle()
    review.press("t")
    expect(review.sheet).to_contain_text("The whole of session claude-code 1")
    expect(review.sheet).to_contain_text("in 3 files")
    review.press("x")
    review.sheet.get_by_role("button", name="Reject all of it").click()  # other files were not on the screen
    expect(review.said).to_have_text("Rejected 3 changes in 3 files.")
    assert (root / "a").read_text() == (root / "b").read_text() == "1\n2\n3\n"
    assert not (root / "c").exists()


def test_a_turn_is_rejected_as_a_whole_and_comes_back(review: ReviewPage, project: Path) -> None:
    before = (project / "README.md").read_bytes()
    review.file("README.md", turn=2)
    review.press("t")
    expect(review.sheet).to_contain_text("Now tidy up")
    review.press("x")
    expect(review.sheet).to_contain_text("not on the screen")
    review.sheet.get_by_role("button", name="Reject").click()
    expect(review.said).to_contain_text("Rejected 8 changes of turn 2")
    expect(review.page.locator("section.turn", has_text="Now tidy up")).to_have_count(0)
    expect(review.page.locator("details.turn.done", has_text="Now tidy up")).to_have_count(1)
    assert (project / "README.md").read_bytes() != before
    review.page.get_by_role("button", name="Undo").click()
    expect(review.page.locator("section.turn", has_text="Now tidy up")).to_have_count(1)
    assert (project / "README.md").read_bytes() == before


def test_a_rejection_gives_its_reason(review: ReviewPage, project: Path) -> None:
    review.file("tests/test_cart.py")
    review.press("X")
    review.sheet.get_by_role("textbox").fill("Keep the old price.")
    review.sheet.get_by_role("button", name="Reject").click()
    expect(review.said).to_contain_text("Rejected")
    assert "Keep the old price." in done(project, "show", "3")


def test_a_comment_is_kept_over_a_reload_and_then_shown_with_its_change(review: ReviewPage) -> None:
    review.file("tests/test_cart.py")
    review.press("c")
    review.sheet.get_by_role("textbox").fill("Why 17?")
    review.page.reload()
    review.current.wait_for()
    review.press("c")
    expect(review.sheet.get_by_role("textbox")).to_have_value("Why 17?")
    review.sheet.get_by_role("button", name="Comment").click()
    expect(review.current.locator(".thread")).to_contain_text("Why 17?")
    review.current.get_by_role("button", name="Resolve").click()
    expect(review.current.locator(".thread")).to_contain_text("resolved")


def test_comment_on_another_store_waits_with_its_change(
    serve: Callable[..., ReviewServer], opened: Opener, tmp_path: Path
) -> None:
    lap = new_project(tmp_path / "lap")
    pull(lap, pushed_desk(tmp_path))
    review = opened(serve(lap, "desk/"))
    review.file("a.txt")
    review.press("c")
    expect(review.sheet).to_contain_text("It goes to desk (team)")
    review.sheet.get_by_role("textbox").fill("Why in capitals?")
    review.sheet.get_by_role("button", name="Comment").click()
    expect(review.current.locator(".thread")).to_contain_text("not taken over yet")
    expect(review.current.locator(".thread")).to_contain_text("Why in capitals?")
    assert review.current.get_by_role("button", name="Resolve").count() == 0


def test_single_edits_are_shown_and_decided_on(review: ReviewPage, project: Path) -> None:
    review.file("shop/cart.py")
    review.press("j")
    expect(review.current).to_contain_text("Lines 34")
    review.press("e")
    expect(review.sheet).to_contain_text("Large orders should cost less")
    expect(review.sheet).to_contain_text("Let shipping depend on the country")
    review.sheet.get_by_role("button", name="Accept 1:2").click()
    expect(review.sheet.locator(".hunk").first).to_contain_text("accepted")
    assert statuses(project, 1) == ["pending", "accepted"]
    review.press("Escape")
    expect(review.sheet).to_have_count(0)


def test_a_hunk_is_split_and_a_part_taken_out(review: ReviewPage, project: Path) -> None:
    review.file("shop/cart.py", turn=1)
    review.press("j")
    review.press("j")
    expect(review.current).to_contain_text("Lines 44")
    review.press("s")
    review.sheet.get_by_role("checkbox").first.check()
    before = (project / "shop/cart.py").read_text()
    review.sheet.get_by_role("button", name="Take out 1 line").click()
    review.sheet.wait_for(state="hidden")
    assert (project / "shop/cart.py").read_text() != before


def test_a_change_is_marked_seen_by_its_key_and_by_going_on(review: ReviewPage) -> None:
    review.file("shop/cart.py", turn=1)
    review.press(".")
    expect(review.current).to_contain_text("seen")
    row = review.page.locator(".queue a[aria-current]")
    expect(row).to_contain_text("3 to decide, 1 seen")
    review.press("j")
    review.press("j")
    expect(row).to_contain_text("3 to decide, 2 seen")


def test_white_space_that_is_the_change_is_drawn_and_never_folded(reading: ReviewPage) -> None:
    reading.file("shop/limits.ini")
    expect(reading.current).to_contain_text("White space only")
    expect(reading.page.locator(".r.add").first).to_be_visible()
    removed = reading.page.locator(".r.del .c")
    expect(removed.locator(".sp")).to_have_count(2)
    expect(removed).to_have_text(re.compile("^  price=9000$"), use_inner_text=True)  # what is copied is true


def test_gaps_open(reading: ReviewPage) -> None:
    reading.file("shop/cart.py")
    reading.page.get_by_role("button", name="unchanged lines").first.click()
    expect(reading.page.locator(".code")).to_contain_text("Carts: what a customer wants")
    numbers = reading.page.eval_on_selector_all(".r.same .n.old", "all => all.map(each => each.textContent)")
    assert numbers[0] == "1"


def test_what_no_line_shows_is_said_in_words(reading: ReviewPage) -> None:
    said = {
        "shop/names.py": "shop/old_names.py",
        "shop/run.sh": "0755",
        "shop/countries.py": "New file, 12 bytes",
        "prices.bin": "1,024 bytes",
    }
    for name, words in said.items():
        reading.file(name)
        expect(reading.page.locator(".scroll")).to_contain_text(words)


def test_the_keys_that_do_something_on_a_screen_are_listed_there(reading: ReviewPage) -> None:
    reading.file("tests/test_cart.py")
    reading.press("?")
    reading.sheet.wait_for()
    on_file = reading.sheet.locator("kbd").all_inner_texts()
    assert {*KEYS} <= {*on_file}
    reading.press("Escape")
    reading.go("#/store")
    reading.page.get_by_role("heading", name="Store", level=1).wait_for()
    reading.press("?")
    reading.sheet.wait_for()
    assert {*on_file} - {*reading.sheet.locator("kbd").all_inner_texts()} == {*"axXcse.tfb", "Shift ↓"}
    reading.press("Escape")
    expect(reading.sheet).to_have_count(0)
    for key in "axXcse.tfb":
        reading.press(key)
        reading.settle()
        assert reading.sheet.count() == 0, key
    expect(reading.said).to_contain_text("No change is open")


@pytest.mark.parametrize("key", ["J", "/"])
def test_a_key_that_leads_to_a_file_from_another_screen_shows_it(reading: ReviewPage, key: str) -> None:
    reading.go("#/store")
    reading.page.get_by_role("heading", name="Store", level=1).wait_for()
    reading.settle()
    reading.press(key)
    expect(reading.current).to_be_visible()


def test_all_keys_are_listed_and_can_be_turned_off(reading: ReviewPage) -> None:
    reading.file("tests/test_cart.py")
    reading.press("?")
    expect(reading.sheet).to_contain_text("undo the newest decision")
    reading.sheet.get_by_role("checkbox").uncheck()
    reading.press("Escape")
    reading.press("x")
    reading.press("?")
    reading.settle()
    expect(reading.sheet).to_have_count(0)
    expect(reading.said).to_have_count(0)


# ---- outcomes


def test_a_conflict_says_who_needs_whom_and_a_cascade_rejects_both(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    root = conflicting(tmp_path / "shop")
    review = opened(serve(root))
    review.file("a.txt", turn=1)
    review.press("e")
    review.sheet.get_by_role("button", name="Reject 1:1").click()
    expect(review.sheet).to_contain_text("2:1 needs 1:1")
    expect(review.sheet).to_contain_text("Would also reject edit 2, which depends on it. 1 file changes")
    expect(review.sheet).to_contain_text("Build on it")
    review.sheet.get_by_role("radio", name="Leave it").check()
    review.sheet.get_by_role("button", name="Leave it").click()
    assert (root / "a.txt").read_text() == "1\nTWO\n2b\n3\n"
    review.press("e")
    review.sheet.get_by_role("button", name="Reject 1:1").click()
    review.sheet.get_by_role("button", name="Reject these too").click()
    expect(review.said).to_contain_text("Rejected")
    assert (root / "a.txt").read_text() == "1\n2\n3\n"


def test_accepted_hunks_that_go_along_are_listed_before_and_cancel_leaves_them(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    root = conflicting(tmp_path / "shop")
    (tmp_path / "new").write_text("1\nTWO!\n2b\ndrei\n")
    done(root, "accept", "1")
    done(root, "amend", "2", "--from", str(tmp_path / "new"))
    review = opened(serve(root))
    review.file("a.txt", turn=2)
    review.press("x")
    taken = review.sheet.get_by_role("listitem")
    expect(review.sheet).to_contain_text("This rejects 2 edits, 1 of them accepted: ")
    expect(taken).to_have_text(["3:1, accepted", "3:2, accepted"])
    review.sheet.get_by_role("button", name="Cancel").click()
    assert statuses(root, 3) == ["accepted", "accepted"]
    review.press("x")
    review.sheet.get_by_role("button", name="Reject").click()
    expect(review.said).to_contain_text("1 of them accepted")
    assert (root / "a.txt").read_text() == "1\ntwo\n2a\n3\n"
    review.press("u")
    expect(review.said).to_contain_text("Undid the ")
    assert statuses(root, 3) == ["accepted", "accepted"]


def test_undo_lists_what_it_rejects_besides_and_cancel_leaves_it(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    root = conflicting(tmp_path / "shop")
    done(root, "reject", "1", "--markers")
    resolved = "1\nmine\n2b\n3\n"
    (root / "a.txt").write_text(resolved)
    done(root, "record")
    review = opened(serve(root))
    review.press("u")
    expect(review.sheet).to_contain_text("Would undo the rejection of")
    expect(review.sheet).to_contain_text("Would also reject edit")
    expect(review.sheet).to_contain_text("One redo brings all of it back.")
    review.sheet.get_by_role("button", name="Cancel").click()
    assert (root / "a.txt").read_text() == resolved
    review.press("u")
    review.sheet.get_by_role("button", name="Undo").click()
    expect(review.said).to_contain_text("Undid the rejection of")
    assert (root / "a.txt").read_text() == "1\nTWO\n2b\n3\n"


def conflicting(root: Path) -> Path:
    """Make a project in which one edit changes a line that another one inserted."""
    root.mkdir()
    (root / "a.txt").write_text("1\n2\n3\n")
    done(root, "init")
    done(root, "record")
    agent = ClaudeCode(root, "one")
    agent.start()
    agent.ask("Begin")
    agent.write("a.txt", "1\ntwo\n2a\n3\n")
    agent.stop()
    agent.ask("Build on it")
    agent.write("a.txt", "1\nTWO\n2b\n3\n")
    agent.stop()
    return root


@pytest.mark.parametrize(("button", "has_line"), [("Keep the changes", True), ("Drop them", False)])
def test_a_change_outside_is_kept_or_discarded(
    review: ReviewPage, project: Path, button: str, *, has_line: bool
) -> None:
    review.file("tests/test_cart.py")
    path = project / "tests/test_cart.py"
    path.write_text(path.read_text() + "# by hand\n")
    review.press("x")
    expect(review.sheet).to_contain_text("# by hand")
    review.sheet.get_by_role("button", name=button).click()
    expect(review.said).to_contain_text("Rejected")
    assert ("# by hand" in path.read_text()) == has_line
    assert "18_000" in path.read_text()


def test_the_page_says_what_is_in_the_place_of_a_file_that_is_gone(review: ReviewPage, project: Path) -> None:
    review.file("tests/test_cart.py")
    path = project / "tests/test_cart.py"
    path.unlink()
    path.symlink_to("nowhere")
    review.press("x")
    expect(review.sheet).to_contain_text("A link is now at tests/test_cart.py.")
    expect(review.sheet).to_contain_text("deleted, a link is there now")
    review.sheet.get_by_role("button", name="Abort").click()
    review.page.reload()
    expect(review.page.locator(".notices")).to_contain_text("A link is there now.")


def test_what_another_reviewer_decided_is_overtaken(review: ReviewPage, project: Path) -> None:
    review.file("tests/test_cart.py")
    review.page.route("**/api/queue", lambda route: route.abort())  # this page gets no news
    review.page.route("**/api/events", lambda route: route.abort())
    done(project, "accept", "3")
    review.press("x")
    expect(review.failure).to_contain_text("Decided elsewhere meanwhile")
    assert statuses(project, 3) == ["accepted"]
    review.wrong.clear()


def test_a_rejection_waits_for_the_end_of_the_turn(review: ReviewPage, project: Path) -> None:
    agent = ClaudeCode(project, "third")
    agent.start()
    agent.ask("Run the tests")
    begun, ended = agent.another_call(is_shell=True, command="pytest")
    agent.tell(begun)
    review.file("tests/test_cart.py")
    expect(review.page.locator(".notices")).to_contain_text("runs Bash")
    review.press("x")
    expect(review.sheet).to_contain_text("Bash")
    review.sheet.get_by_role("button", name="Wait for the end").click()
    expect(review.page.locator(".notices")).to_contain_text("waits for the end of the turn")
    assert statuses(project, 3) == ["pending"]
    agent.tell(ended)
    agent.stop()
    review.page.locator(".notices", has_text="waits for").wait_for(state="detached")
    assert statuses(project, 3) == ["rejected"]


def test_a_rejection_is_made_though_a_call_is_open(review: ReviewPage, project: Path) -> None:
    agent = ClaudeCode(project, "third")
    agent.start()
    agent.ask("Run the tests")
    begun, _ = agent.another_call(is_shell=True, command="pytest")
    agent.tell(begun)
    review.file("tests/test_cart.py")
    review.press("x")
    review.sheet.get_by_role("button", name="Reject now").click()
    expect(review.said).to_contain_text("Rejected")
    assert statuses(project, 3) == ["rejected"]


def test_nothing_is_left_in_the_end(tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener) -> None:
    root = conflicting(tmp_path / "shop")
    review = opened(serve(root))
    review.current.wait_for()
    review.press("a")
    expect(review.page.locator(".done-page h1")).to_contain_text("The change is decided")
    expect(review.page.locator(".done-page")).to_contain_text("You can close this page")
    review.press("u")
    expect(review.current).to_contain_text("Lines 2")


def test_an_empty_workspace_says_what_to_do(tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener) -> None:
    root = tmp_path / "empty"
    root.mkdir()
    done(root, "init")
    review = opened(serve(root))
    expect(review.page.locator(".done-page")).to_contain_text("Connect an agent with cas setup")


def test_names_and_contents_full_of_markup_are_text(reading: ReviewPage) -> None:
    reading.file("<img src=x onerror=alert(1)>.txt")
    expect(reading.page.locator(".code")).to_contain_text("<script>alert(2)</script>")
    expect(reading.page.locator(".code")).to_contain_text("</div><iframe src='javascript:alert(3)'></iframe>")
    assert reading.page.locator(".scroll img, .scroll iframe, .scroll script").count() == 0
    assert "\u202e" not in reading.page.locator(".code").inner_text()
    assert "\x1b" not in reading.page.locator(".code").inner_text()


def test_a_link_is_shown_by_its_text_and_decided_on(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    root = tmp_path / "linked"
    root.mkdir()
    (root / "one.txt").write_text("1\n")
    (root / "outside").symlink_to("one.txt")
    (root / "replaced").symlink_to("one.txt")
    done(root, "init")
    done(root, "record")
    agent = ClaudeCode(root)
    agent.start()
    agent.ask("Change the links")
    agent.run("ln -sfn ../secret outside; rm replaced; echo text > replaced; ln -s nowhere new")
    agent.stop()
    (tmp_path / "secret").write_text("not for this page\n")
    review = opened(serve(root))
    review.file("outside")
    expect(review.page.locator(".code")).to_contain_text("one.txt")
    expect(review.page.locator(".code")).to_contain_text("../secret")
    expect(review.page.locator("body")).not_to_contain_text("not for this page")
    review.file("outside")
    review.press("x")
    expect(review.said).to_contain_text("Rejected")
    assert (root / "outside").readlink() == Path("one.txt")
    review.file("new")
    expect(review.page.locator(".code")).to_contain_text("nowhere")
    review.press("x")
    expect(review.head_of("replaced")).to_be_visible()
    assert not (root / "new").is_symlink()
    expect(review.current).to_contain_text("Link deleted")
    review.press("t")
    review.press("x")
    review.sheet.get_by_role("button", name="Reject").click()
    expect(review.page.locator(".done-page")).to_be_visible()
    assert (root / "replaced").readlink() == Path("one.txt")
