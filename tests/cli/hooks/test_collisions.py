"""Two sessions that change one file are each sent one message about it, and so is the person."""

from pathlib import Path

import pytest

from objstore import CallInfo, Workspace
from tests.support.command_runner import cas
from tests.support.hooked_agents import ClaudeCode, Codex, recorded_project


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return recorded_project(tmp_path / "project", "a.txt")


def test_each_session_gets_one_message_about_a_file_that_another_one_changed(folder: Path) -> None:
    one, other = ClaudeCode(folder, "one"), Codex(folder, "other")
    assert one.run("echo 4 >> a.txt") == ""
    message = other.run("echo 5 >> a.txt")
    assert message.startswith("Another agent has changed files that you have changed too")
    assert message.endswith("\n- 'a.txt'")
    assert other.run("echo 6 >> a.txt") == ""
    assert "- 'a.txt'" in one.ask("go on")
    assert one.run("true") == ""
    shown = cas("status", folder=folder)
    assert "several sessions have changed the same file:\n  a.txt  claude-code 1: 1; codex 2: 2 3\n" in shown.text
    (collision,) = cas("status", "--json", folder=folder).json()["collisions"]
    assert collision["file_path"] == str(folder / "a.txt")
    assert collision["sessions"] == [{"session": 1, "edits": [1]}, {"session": 2, "edits": [2, 3]}]


def test_decided_edits_collide_with_nothing(folder: Path) -> None:
    one, other = ClaudeCode(folder, "one"), ClaudeCode(folder, "other")
    one.run("echo 4 >> a.txt")
    assert cas("accept", "--all", folder=folder).status == 0
    assert other.run("echo 5 >> a.txt") == ""
    assert cas("status", "--json", folder=folder).json()["collisions"] == []


def test_sessions_in_different_files_get_no_message(folder: Path) -> None:
    one, other = ClaudeCode(folder, "one"), ClaudeCode(folder, "other")
    assert one.run("echo 4 >> a.txt") == ""
    assert other.run("echo 5 >> b.txt") == ""
    assert one.ask("?") == ""


def test_an_agent_does_not_collide_with_its_own_calls_of_our_server(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("echo 4 >> a.txt")
    with Workspace.open(folder) as workspace, workspace.call(CallInfo(tool="write_file", conversation="turn")) as call:
        call.write("a.txt", b"1\n")
        call.commit()
    with Workspace.open(folder) as workspace:
        (collision,) = workspace.sessions.collisions()
        assert (collision.path, collision.edits) == ("a.txt", {1: (1,), 2: (2,)})
        assert workspace.review.status().collisions == (collision,)
        workspace.hooks.join("session-1", "turn", "mcp__editledger__write_file")
        assert workspace.sessions.collisions() == []
        assert workspace.review.status().collisions == ()
    assert session.ask("go on") == ""
