"""When agents are sent rejections and comments: not in the middle of a review, and not before a person wants it."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from objstore import CallInfo, TurnInfo, Workspace
from tests.support.command_runner import cas
from tests.support.hooked_agents import (
    ClaudeCode,
    Codex,
    Copilot,
    Cursor,
    Gemini,
    OpenCode,
    Session,
    VSCode,
    recorded_project,
)
from tests.support.terminal_driver import TerminalDriver, run_in_terminal

Review = Callable[..., AbstractContextManager[TerminalDriver]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return recorded_project(tmp_path / "project", "a.txt", "b.txt", "c.txt")


@pytest.fixture
def review(folder: Path, tmp_path: Path) -> Review:
    def begin(*words: str) -> AbstractContextManager[TerminalDriver]:
        scratch = tmp_path / "stage"
        for leftover in scratch.glob("*") if scratch.exists() else ():
            leftover.unlink()
        kind = "plain"
        return run_in_terminal(
            kind,
            "review",
            *words,
            folder=folder,
            scratch=scratch,
            XDG_STATE_HOME=str(tmp_path / "state"),
            COLUMNS="200",
        )

    return begin


def press(terminal: TerminalDriver, keys: str, then: str) -> str:
    terminal.type(keys)
    return terminal.wait_for(then)


def changed(folder: Path, name: str = "session-1") -> ClaudeCode:
    """Return a session that has changed three files."""
    session = ClaudeCode(folder, name)
    session.ask("count on")
    session.run("for name in a b c; do echo 4 >> $name.txt; done")
    return session


@pytest.mark.parametrize("agent", [ClaudeCode, Codex, Gemini])
def test_the_end_of_a_turn_shows_the_person_how_much_there_is_to_review(folder: Path, agent: type[Session]) -> None:
    session = agent(folder)
    session.ask("count on")
    assert session.stop() == ""
    session.run("for name in a b c; do echo 4 >> $name.txt; done")
    assert session.stop() == "editledger: 3 edits to review (cas review)"
    session.ask("what did you do?")
    assert session.stop() == ""  # as many as before, and none is new
    assert cas("accept", "--all", folder=folder).status == 0
    session.ask("well done")
    assert session.stop() == ""
    session.run("echo 5 >> a.txt")
    assert session.stop() == "editledger: 1 edit to review (cas review)"


@pytest.mark.parametrize("agent", [Copilot, Cursor, OpenCode, VSCode])
def test_a_client_that_could_take_a_notice_for_a_prompt_gets_none(folder: Path, agent: type[Session]) -> None:
    session = agent(folder)
    session.ask("count on")
    session.run("echo 4 >> a.txt")
    assert session.stop() == ""


def test_copilot_gets_no_notice_from_the_hooks_of_claude_code(folder: Path) -> None:
    session = Copilot(folder)
    session.client = "claude-code"
    session.ask("count on")
    session.run("echo 4 >> a.txt")
    assert session.stop() == ""


def test_a_subagents_end_and_an_idle_session_are_no_end_of_a_turn(folder: Path) -> None:
    session = changed(folder)
    assert session.answer(session.base("SubagentStop") | {"agent_id": "1"}) == {}
    assert session.answer(session.base("Notification") | {"notification_type": "idle_prompt"}) == {}
    assert session.answer(session.base("StopFailure")) == {}
    assert session.stop() == "editledger: 3 edits to review (cas review)"


ASKED = r"Decide on \[[^]]*\] \[.*\] $"


@pytest.mark.parametrize("way", [(), ("--each",)])
def test_what_a_review_says_is_one_message_at_its_end(folder: Path, review: Review, way: tuple[str, ...]) -> None:
    session = changed(folder)
    asked = r"Decide on .* \[.*\] $"
    with review(*way) as terminal:
        terminal.wait_for(asked)
        press(terminal, "X", "Reason:")
        press(terminal, "no four\n", asked)
        assert session.run("true") == ""  # the agent goes on meanwhile
        press(terminal, "x", asked)
        press(terminal, "c", "Comment:")
        press(terminal, "why?\n", asked)
        assert session.ask("and now?") == ""
        end = press(terminal, "q", r"next prompt or tool\.")
        assert "2 rejections and 1 comment go to claude-code 1 (count on) at its next prompt or tool." in end
        assert terminal.wait_for_exit() == 0
    message = session.run("true")
    assert (message.count("- edit"), message.count("- comment"), message.count("no four")) == (2, 1, 1)
    assert session.run("true") == ""


def test_a_review_that_is_killed_holds_nothing_back(folder: Path, review: Review) -> None:
    session = changed(folder)
    with review() as terminal:
        terminal.wait_for(ASKED)
        press(terminal, "x", ASKED)
        assert session.run("true") == ""
        terminal.kill()
    assert "rejected" in session.run("true")


def test_two_reviews_hold_back_until_both_have_ended(folder: Path) -> None:
    session = changed(folder)
    with Workspace.open(folder) as one, Workspace.open(folder) as other:
        with one.messages.held():
            with other.messages.held():
                assert cas("reject", "1", folder=folder).status == 0
                assert session.run("true") == ""
            assert session.run("true") == ""
        assert "rejected" in session.run("true")


def test_a_collision_is_reported_during_a_review(folder: Path) -> None:
    session = changed(folder)
    with Workspace.open(folder) as workspace, workspace.messages.held():
        assert "Another agent" in ClaudeCode(folder, "other").run("echo 5 >> a.txt")
        assert "Another agent" in session.run("true")


def test_manual_waits_for_cas_send(folder: Path, review: Review) -> None:
    assert cas("config", "set", "review.send", "manual", folder=folder).status == 0
    session = changed(folder)
    with review("a.txt") as terminal:
        terminal.wait_for(ASKED)
        press(terminal, "x", "go on with them .*")
        terminal.type("q")
        terminal.wait_for(r"1 rejection waits until you run `cas send`, for claude-code 1 \(count on\)\.")
    assert cas("comment", "b.txt:4", "-m", "why?", folder=folder).status == 0
    assert session.run("true") == ""
    sent = cas("send", folder=folder)
    assert sent.text.endswith("1 rejection and 1 comment go to claude-code 1 (count on) at its next prompt or tool.\n")
    assert cas("reject", "3", folder=folder).status == 0  # after it: waits for the next one
    assert cas("comment", "b.txt:4", "-m", "and why?", folder=folder).status == 0
    message = session.run("true")
    assert (message.count("- edit"), message.count("- comment"), "edit 1" in message) == (1, 1, True)
    assert session.run("true") == ""
    assert cas("send", folder=folder).status == 0
    message = session.run("true")
    assert (message.count("- edit"), message.count("- comment"), "edit 3" in message) == (1, 1, True)


def test_what_is_rejected_once_more_waits_again(folder: Path) -> None:
    assert cas("config", "set", "review.send", "manual", folder=folder).status == 0
    session = changed(folder)
    assert cas("reject", "1", folder=folder).status == 0
    assert cas("send", folder=folder).status == 0
    assert "edit 1" in session.run("true")
    assert cas("accept", "1", folder=folder).status == 0
    assert session.run("true") == ""
    assert cas("reject", "1", folder=folder).status == 0
    assert session.run("true") == ""
    assert cas("send", folder=folder).status == 0
    assert "edit 1" in session.run("true")


def test_a_comment_that_is_sent_to_a_session_does_not_wait(folder: Path) -> None:
    assert cas("config", "set", "review.send", "manual", folder=folder).status == 0
    changed(folder)
    other = ClaudeCode(folder, "other")
    other.run("echo x > d.txt")
    assert cas("comment", "a.txt:4", "-m", "for another one", folder=folder).status == 0
    assert other.run("true") == ""
    assert cas("send", "1", "--session", "other", folder=folder).status == 0
    assert "for another one" in other.run("true")


@pytest.mark.parametrize("answer", ["y", "n"])
def test_ask_asks_at_the_end_of_a_review(folder: Path, review: Review, answer: str) -> None:
    assert cas("config", "set", "review.send", "ask", folder=folder).status == 0
    session = changed(folder)
    with review() as terminal:
        terminal.wait_for(ASKED)
        press(terminal, "x", ASKED)
        shown = press(terminal, "q", r"Send this to the agents now\? .*\] $")
        assert "1 rejection waits until you run `cas send`, for claude-code 1 (count on)." in shown
        terminal.type(answer)
        assert terminal.wait_for_exit() == 0
    assert bool(session.run("true")) is (answer == "y")
    assert cas("send", folder=folder).status == 0
    assert bool(session.run("true")) is (answer != "y")


def test_a_review_names_only_the_sessions_that_it_is_about(folder: Path, review: Review) -> None:
    ClaudeCode(folder, "left").run("echo 0 >> c.txt")
    assert cas("reject", "--all", folder=folder).status == 0
    assert cas("comment", "c.txt", "-m", "by and by", folder=folder).status == 0
    changed(folder)
    with review("a.txt") as terminal:
        terminal.wait_for(ASKED)
        press(terminal, "x", "go on with them .*")
        terminal.type("q")
        shown = terminal.wait_for(r"next prompt or tool\.")
        assert "1 rejection goes to claude-code 2 (count on) at its next prompt or tool." in shown
        assert terminal.wait_for_exit() == 0
    assert "claude-code 1" not in shown
    assert "1 rejection goes to claude-code 1 at" in cas("send", folder=folder).text


def test_a_review_without_a_word_says_nothing_of_agents(folder: Path, review: Review) -> None:
    changed(folder)
    with review() as terminal:
        terminal.wait_for(ASKED)
        press(terminal, "a", ASKED)
        shown = press(terminal, "q", "left pending in 2 files")
        assert terminal.wait_for_exit() == 0
    assert re.search(r"session|agent", shown.rpartition("1 change accepted")[2]) is None


def test_a_session_without_hooks_is_said_to_look_itself(folder: Path, review: Review) -> None:
    turn = TurnInfo(session="mcp_1", began=1, client="desk")
    with Workspace.open(folder) as workspace:
        info = CallInfo(tool="write_file", conversation="turn", turn=turn)
        with workspace.call(info) as call:
            call.write("a.txt", b"1\n")
            call.commit()
    with review() as terminal:
        terminal.wait_for(ASKED)
        terminal.type("x")
        terminal.wait_for(r"desk 1 has no hooks: it gets 1 rejection when it lists its edits\.")


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"decision": "x", "comment": 1}', b"\0" * 100])
def test_a_damaged_note_of_what_was_released_holds_everything_back(folder: Path, content: bytes) -> None:
    assert cas("config", "set", "review.send", "manual", folder=folder).status == 0
    session = changed(folder)
    assert cas("reject", "1", folder=folder).status == 0
    assert cas("send", folder=folder).status == 0
    (folder / ".cas/agents/released").write_bytes(content)
    assert session.run("true") == ""
    assert cas("send", folder=folder).status == 0
    assert "edit 1" in session.run("true")
