"""The window of a review in a browser, in a host with two origins, connected to a real client and server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from objstore import Status, Workspace
from tests.support.command_runner import cas
from tests.support.mcp_agent import Agent
from tests.support.review_browser import needs_browser
from tests.support.window_host import WindowHost, hosting
from tests.support.windowed_agent import LINES, allow_deciding, windowed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Error, FrameLocator, Page

pytestmark = needs_browser


@pytest.fixture
def agent(root: Path) -> Iterator[Agent]:
    """Yield an agent that has changed a file in two places, where the person may decide in the window."""
    with windowed(root) as agent:
        edits = [{"old_string": "2\n3\n", "new_string": "two\n3\n"}, {"old_string": "18\n", "new_string": "18!\n"}]
        agent.done("multi_edit_text_file", path=str(root / "a.txt"), edits=edits)
        allow_deciding(root)
        yield agent


@pytest.fixture
def host(agent: Agent) -> Iterator[WindowHost]:
    with hosting(agent) as host:
        yield host


@pytest.fixture(scope="module")
def only_page(browser: "Browser") -> "Page":
    """Return the page of all tests, one after the other: a new one for each would take twice the time."""
    return browser.new_page()


@pytest.fixture
def page(only_page: "Page") -> "Iterator[Page]":
    """Yield an empty page; the test fails if the browser reports any error."""
    reported: list[str] = []

    def note_error(error: "Error") -> None:
        reported.append(str(error))

    def note(message: "ConsoleMessage") -> None:
        if message.type == "error":
            reported.append(message.text)

    only_page.set_viewport_size({"width": 700, "height": 900})
    only_page.on("pageerror", note_error)
    only_page.on("console", note)
    yield only_page
    only_page.goto("about:blank")  # what hosts and windows have stored is of their origins, which no other test has
    only_page.remove_listener("pageerror", note_error)
    only_page.remove_listener("console", note)
    assert [text for text in reported if "favicon" not in text and "404" not in text] == []


def opened(page: "Page", host: WindowHost) -> "FrameLocator":
    page.goto(host.page)
    window = page.frame_locator("#window")
    window.get_by_role("heading", level=1).filter(has_text="to review").wait_for()
    return window


def article(window: "FrameLocator", at: int) -> Any:  # noqa: ANN401 -- playwright need not be installed
    return window.get_by_role("article").nth(at)


def status(window: "FrameLocator", words: str) -> None:
    """Wait until the status has these words."""
    window.get_by_role("status").filter(has_text=words).wait_for()


def contexts(page: "Page") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate("() => seen.contexts")
    return found


def statuses(root: Path) -> list[Status]:
    with Workspace.open(root) as workspace:
        return [status for view in workspace.history.edits() for status in view.units[1:]]


def test_each_change_is_shown_with_its_lines(page: "Page", host: WindowHost) -> None:
    window = opened(page, host)
    assert window.get_by_role("heading", level=1).inner_text() == "2 changes to review"
    shown = article(window, 0)
    assert shown.get_by_role("heading").inner_text().endswith("a.txt:2")
    assert shown.locator("pre > *").all_inner_texts() == [" 1", "-2", "+two", " 3", " 4", " 5"]
    assert [each.inner_text() for each in shown.get_by_role("button").all()] == ["Accept", "Reject…", "Comment…"]


def test_accept_reject_and_undo_reach_the_files_and_the_model(page: "Page", host: WindowHost, root: Path) -> None:
    window = opened(page, host)
    article(window, 0).get_by_role("button", name="Accept").click()
    status(window, "Accepted hunk 1:1, of a.txt.")
    assert statuses(root) == [Status.ACCEPTED, Status.PENDING]
    article(window, 0).get_by_role("button", name="Reject").click()
    window.get_by_role("textbox").fill("18 was <b>right</b>")
    window.get_by_role("button", name="Reject now").click()
    status(window, "Rejected hunk 1:2, of a.txt. Rewrote a.txt.")
    assert (root / "a.txt").read_text() == LINES.replace("2\n", "two\n", 1)
    assert window.get_by_role("heading", level=1).inner_text() == "0 changes to review"
    text = contexts(page)[-1]["content"][0]["text"]
    assert (
        "- Accepted hunk 1:1, of a.txt.\n- Rejected hunk 1:2, of a.txt. Rewrote a.txt. Reason: 18 was <b>right</b>"
        in text
    )
    window.get_by_role("button", name="Undo: Accepted").click()
    status(window, "Undid the acceptance of hunk 1:1.")
    assert statuses(root) == [Status.PENDING, Status.REJECTED]
    assert "(taken back)" in contexts(page)[-1]["content"][0]["text"]
    assert "ui/message" not in page.evaluate("() => seen.methods")


def test_a_comment_is_recorded_and_shown(page: "Page", host: WindowHost, root: Path) -> None:
    window = opened(page, host)
    article(window, 1).get_by_role("button", name="Comment").click()
    window.get_by_role("textbox").fill("Why?")
    window.get_by_role("textbox").press("Control+Enter")
    status(window, "Comment 1 waits for the agent.")
    assert article(window, 1).get_by_role("listitem").inner_text().endswith(": Why?")
    with Workspace.open(root) as workspace:
        assert [view.comment.text for view in workspace.comments.all()] == ["Why?"]
    assert "It says: Why?" in contexts(page)[-1]["content"][0]["text"]


def test_what_a_rejection_takes_out_is_asked_about_where_the_reason_was_written(
    page: "Page", host: WindowHost, root: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    new.write_text(LINES.replace("2\n", "zwei\n", 1).replace("18\n", "18!\n"))
    assert cas("amend", "1:1", "--from", str(new), folder=root).status == 0
    window = opened(page, host)
    article(window, 0).get_by_role("button", name="Reject").click()
    window.get_by_role("textbox").fill("no")
    window.get_by_role("button", name="Reject now").click()
    again = article(window, 0).get_by_role("button", name="Reject all of it")
    again.wait_for()
    assert "2 edits, 1 of them accepted" in article(window, 0).locator("div p").inner_text()
    assert window.get_by_role("textbox").input_value() == "no"
    assert (root / "a.txt").read_text() == new.read_text()
    again.click()
    window.get_by_role("heading", level=1, name="1 change to review").wait_for()
    assert (root / "a.txt").read_text() == LINES.replace("18\n", "18!\n")


def test_the_keyboard_is_enough(page: "Page", host: WindowHost, root: Path) -> None:
    window = opened(page, host)
    article(window, 0).focus()
    page.keyboard.press("u")
    status(window, "Nothing that was decided in this window can be undone.")
    page.keyboard.press("j")
    page.keyboard.press("a")
    status(window, "Accepted hunk 1:2, of a.txt.")
    assert article(window, 0).evaluate("(article) => article === document.activeElement")
    page.keyboard.press("x")
    page.keyboard.type("ax")  # in the field, keys are text
    page.keyboard.press("Escape")
    assert article(window, 0).evaluate("(article) => article === document.activeElement")
    page.keyboard.press("u")
    status(window, "Undid the acceptance of hunk 1:2.")
    assert statuses(root) == [Status.PENDING, Status.PENDING]
    page.keyboard.press("a")  # outside of a change, keys decide nothing
    window.get_by_role("button", name="Look again").click()
    window.locator("#status:empty").wait_for(state="attached")
    assert statuses(root) == [Status.PENDING, Status.PENDING]


def test_the_ticket_is_in_nothing_that_the_page_shows_or_the_model_gets(page: "Page", host: WindowHost) -> None:
    window = opened(page, host)
    tickets = [window.locator("html").evaluate("() => ticket")]
    article(window, 0).get_by_role("button", name="Accept").click()
    status(window, "Accepted")
    tickets.append(window.locator("html").evaluate("() => ticket"))
    assert len({*tickets}) == 2
    shown = window.locator("body").inner_html() + json.dumps(contexts(page))
    assert not [ticket for ticket in tickets if not ticket or ticket in shown]


def test_an_overtaken_change_is_shown_as_it_is_now(page: "Page", host: WindowHost, agent: Agent, root: Path) -> None:
    window = opened(page, host)
    edits = [{"old_string": "two\n", "new_string": "zwei\n"}]
    agent.done("multi_edit_text_file", path=str(root / "a.txt"), edits=edits)
    article(window, 0).get_by_role("button", name="Accept").click()
    status(window, "The change is no longer as it was shown.")
    assert statuses(root)[0] is Status.PENDING
    assert contexts(page) == []


def test_a_long_review_has_pages(page: "Page", host: WindowHost, agent: Agent, root: Path) -> None:
    turn = ""
    for number in range(8):
        path = str(root / f"{number}.txt")
        done = agent.done("write_file", path=path, content="word " * 3000 + "\n", mcp_conversation_id=turn)
        turn = done.structured["mcp_conversation_id"]
    window = opened(page, host)
    heading = window.get_by_role("heading", level=1)
    assert heading.inner_text() == "8 changes to review (1 to 4 here)"
    window.get_by_role("button", name="Next page").click()
    heading.filter(has_text="5 to 8 here").wait_for()
    article(window, 3).get_by_role("button", name="Accept").click()
    heading.filter(has_text="7 changes to review (5 to 7 here)").wait_for()
    window.get_by_role("button", name="Previous page").click()
    heading.filter(has_text="1 to 4 here").wait_for()
    assert article(window, 0).get_by_role("heading").inner_text().endswith("0.txt:1 (new file, 15,001 bytes)")


def test_a_newer_review_leaves_the_older_window_without_a_ticket(page: "Page", host: WindowHost, root: Path) -> None:
    window = opened(page, host)
    host.review()
    article(window, 0).get_by_role("button", name="Reject").click()
    window.get_by_role("textbox").fill("A long reason")
    window.get_by_role("button", name="Reject now").click()
    status(window, "This review was replaced by a newer one")
    assert window.get_by_role("textbox").input_value() == "A long reason"  # what was written is not lost
    assert statuses(root) == [Status.PENDING, Status.PENDING]


def test_a_host_that_denies_the_call_leaves_the_window_as_it_is(page: "Page", host: WindowHost, root: Path) -> None:
    window = opened(page, host)
    host.denied = "the person said no"
    article(window, 0).get_by_role("button", name="Accept").click()
    status(window, "The client did not do this: the person said no")
    assert statuses(root) == [Status.PENDING, Status.PENDING]
    host.denied = ""
    article(window, 0).get_by_role("button", name="Accept").click()
    status(window, "Accepted hunk 1:1, of a.txt.")


@pytest.mark.parametrize("why", ["the setting is off", "the host drops the ticket"])
def test_without_the_setting_or_the_ticket_there_is_nothing_to_press(
    page: "Page", host: WindowHost, root: Path, why: str
) -> None:
    if why == "the setting is off":
        assert cas("config", "set", "review.in_chat", "off", folder=root).status == 0
    else:
        host.keeps_meta = False
    window = opened(page, host)
    assert article(window, 1).get_by_role("button").count() == 0
    words = {"the setting is off": "cas config set review.in_chat on", "the host drops the ticket": "no valid ticket"}
    assert words[why] in window.locator("#why").inner_text()


def test_what_a_file_holds_is_text(page: "Page", host: WindowHost, agent: Agent, root: Path) -> None:
    evil = '<img src=x onerror="parent.postMessage(1)"><script>alert(1)</script>\u202etxt.exe\x1b[31m\r\n'
    name = "<b>bold<b>&amp;.txt"
    agent.done("write_file", path=str(root / name), content=evil)
    host.arguments = {"path": str(root / name)}
    window = opened(page, host)
    assert article(window, 0).get_by_role("heading").inner_text().endswith(f"{name}:1 (new file, 85 bytes)")
    (line,) = article(window, 0).locator("ins").all_inner_texts()
    assert line == '+<img src=x onerror="parent.postMessage(1)"><script>alert(1)</script>⟦U+202E⟧txt.exe⟦U+001B⟧[31m␍'
    assert window.locator("img, b, article script").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_window_follows_the_hosts_theme(page: "Page", host: WindowHost, theme: str) -> None:
    host.context = {"theme": theme}
    window = opened(page, host)
    colour = window.locator("body").evaluate("(body) => getComputedStyle(body).backgroundColor")
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 25, 29)"}[theme]


def test_the_window_tells_its_size_and_never_scrolls_sideways(page: "Page", host: WindowHost) -> None:
    page.set_viewport_size({"width": 360, "height": 700})
    window = opened(page, host)
    height = window.locator("html").evaluate("(html) => Math.ceil(html.getBoundingClientRect().height)")
    page.wait_for_timeout(0)
    assert page.evaluate("() => seen.sizes.at(-1).height") == height
    assert window.locator("html").evaluate("(html) => html.scrollWidth <= html.clientWidth")
