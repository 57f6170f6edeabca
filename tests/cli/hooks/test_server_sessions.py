"""What an agent changes through our server, a real process, belongs to the session and the turn that its hooks report.

Without hooks, or without a call that a hook announced, the connection to the server is a session of its own.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from objstore import EditView, SessionView, TurnView, Workspace
from tests.support.command_runner import CommandRunner, cas
from tests.support.hooked_agents import (
    AGENTS,
    ClaudeCode,
    Codex,
    Copilot,
    Cursor,
    Gemini,
    OpenCode,
    Session,
    VSCode,
)
from tests.support.mcp_agent import Agent, Result, connected

PREFIXES: dict[type[Session], str] = {
    ClaudeCode: "mcp__editledger__",
    Codex: "mcp__editledger__",
    Gemini: "mcp_editledger_",
    Cursor: "MCP:",
    OpenCode: "editledger_",
    VSCode: "mcp_editledger_",
    Copilot: "editledger-",
}
"""What each client puts in front of the names of our server's tools."""


def record_file(runner: CommandRunner) -> None:
    (runner.folder / "a.txt").write_text("one\ntwo\nthree\n")
    runner.done("record")


@pytest.fixture
def folder(runner: CommandRunner) -> Path:
    return runner.prepared(record_file).folder


@pytest.fixture
def server(folder: Path) -> Iterator[Agent]:
    with connected(folder) as agent:
        yield agent


def report(session: Session, tool: str, given: dict[str, Any], answer: Result | None = None) -> str:
    """Report that a call of our server begins, or has ended with an answer; return what the agent reads."""
    event = session.write_event("a.txt", "x", before=answer is None)
    named = PREFIXES[type(session)] + tool
    fields = {"tool": named, "args": given} if type(session) is OpenCode else {"tool_name": named, "tool_input": given}
    event = {name: value for name, value in event.items() if name not in {"tool_response", "tool_result"}} | fields
    if answer is not None:
        kept = "tool_output" if type(session) is Cursor else "result" if type(session) is OpenCode else "tool_response"
        event[kept] = answer.texts[-1] if type(session) is OpenCode else {"structuredContent": answer.structured}
    return session.tell(event)


def call(session: Session, server: Agent, tool: str, **given: object) -> Result:
    """Call a tool of our server, as the agent's program does with its hooks around."""
    session.calls += 1
    report(session, tool, given)
    answer = server.done(tool, **given)
    report(session, tool, given, answer)
    return answer


def write(session: Session, server: Agent, path: str, content: str, conversation: str = "") -> str:
    """Write a file by our server; return the id of the conversation."""
    given = {"path": path, "content": content} | ({"mcp_conversation_id": conversation} if conversation else {})
    return str(call(session, server, "write_file", **given).structured["mcp_conversation_id"])


def recorded(folder: Path) -> tuple[list[SessionView], list[TurnView], list[EditView]]:
    with Workspace.open(folder) as workspace:
        return workspace.sessions.sessions(), workspace.sessions.turns(), workspace.history.edits()


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.__name__)
def test_edits_through_the_server_are_of_the_turn_that_hooks_report(
    agent: type[Session], folder: Path, server: Agent
) -> None:
    session = agent(folder)
    session.start()
    session.ask("first")
    conversation = write(session, server, "b.txt", "1\n")
    session.run("echo 1 > n.txt")
    session.stop()
    session.ask("second")
    session.run("echo 2 > n.txt")
    assert write(session, server, "c.txt", "2\n", conversation) == conversation
    session.stop()
    sessions, turns, made = recorded(folder)
    assert [(view.name, view.turns, view.edits) for view in sessions] == [("session-1", 2, 4)]
    assert [(turn.prompt, turn.paths) for turn in turns] == [
        ("first", ("b.txt", "n.txt")),
        ("second", ("c.txt", "n.txt")),
    ]
    assert {view.edit.conversation for view in made} == {"session-1", conversation}


def test_rejecting_a_turn_takes_out_what_the_server_wrote_in_it(folder: Path, server: Agent) -> None:
    session = ClaudeCode(folder)
    session.ask("first")
    conversation = write(session, server, "a.txt", "1\n")
    session.ask("second")
    write(session, server, "a.txt", "1\n2\n", conversation)
    session.run("echo 2 > n.txt")
    assert cas("reject", "--turn", "2", "--reason", "not so", folder=folder).status == 0
    assert (folder / "a.txt").read_text() == "1\n"
    assert not (folder / "n.txt").exists()
    assert session.ask("third").count("not so") == 2
    assert cas("rewind", "1", folder=folder).status == 0
    assert (folder / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_what_a_subagent_does_through_the_server_is_its_own_and_of_the_prompt_that_sent_it(
    folder: Path, server: Agent
) -> None:
    session = ClaudeCode(folder)
    helper = {"agent_id": "agent-7", "agent_type": "worker"}
    session.ask("send a helper")
    session.tell(session.base("SubagentStart") | helper)
    session.ask("and this")
    given = {"path": "b.txt", "content": "1\n"}
    before, after = (session.tool_event("mcp__editledger__write_file", given, before=each) for each in (True, False))
    session.tell(before | helper)
    server.done("write_file", **given)
    session.tell(after | helper)
    write(session, server, "c.txt", "1\n")
    _, turns, (theirs, own) = recorded(folder)
    assert [turn.prompt for turn in turns if turn.number == theirs.edit.turn] == ["send a helper"]
    assert (theirs.edit.notes["agent"], theirs.edit.notes["subagent"]) == ("worker", "agent-7")
    assert "subagent" not in own.edit.notes
    assert cas("reject", "--agent", "agent-7", folder=folder).status == 0
    assert {path.name for path in folder.glob("?.txt")} == {"a.txt", "c.txt"}


def test_an_agent_without_hooks_keeps_its_own_session_next_to_a_hooked_one(folder: Path, server: Agent) -> None:
    hooked = ClaudeCode(folder)
    hooked.ask("go")
    write(hooked, server, "a.txt", "1\n")
    with connected(folder) as other:
        other.done("write_file", path="b.txt", content="1\n")
        # It passes the id of the other agent's conversation, which names nothing but these edits.
        answer = server.done("list_edits").structured["edits"][-1]
        other.done("write_file", path="c.txt", content="1\n", mcp_conversation_id=answer["mcp_conversation_id"])
    sessions, turns, _ = recorded(folder)
    assert [(session.client, session.edits) for session in sessions] == [("claude-code", 1), ("test agent", 2)]
    assert [(turn.session, turn.paths) for turn in turns] == [(1, ("a.txt",)), (2, ("b.txt",)), (2, ("c.txt",))]


def test_an_announced_call_is_taken_once_and_not_after_its_end(folder: Path, server: Agent) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    given = {"path": "b.txt", "content": "1\n"}
    report(session, "write_file", given)
    server.done("write_file", **given)
    with connected(folder) as other:
        other.done("write_file", **given | {"mcp_conversation_id": "same"})
        other.done("write_file", path="b.txt", content="2\n")
        report(session, "delete_file", {"path": "b.txt"})
        session.stop()
        other.done("delete_file", path="b.txt")
    sessions, _, made = recorded(folder)
    assert [(view.client, view.edits) for view in sessions] == [("claude-code", 1), ("test agent", len(made) - 1)]
    assert len(made) == 3


def test_a_call_that_two_sessions_have_announced_is_of_neither(folder: Path, server: Agent) -> None:
    given = {"path": "b.txt", "content": "1\n"}
    for session in (ClaudeCode(folder), Codex(folder, "session-2")):
        session.ask("go")
        report(session, "write_file", given)
    server.done("write_file", **given)
    sessions, (turn,), _ = recorded(folder)
    assert ([session.client for session in sessions], turn.prompt) == (["test agent"], "")


@pytest.mark.parametrize(
    "given",
    [
        {"path": "b.txt", "content": "2\n"},
        {"path": "b.txt"},
        {},
        "not JSON",
        None,
        {"path": "b.txt", "content": "1\n", "mcp_conversation_id": "session-1"},
    ],
)
def test_a_call_with_other_arguments_than_announced_is_not_joined(folder: Path, server: Agent, given: object) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    event = session.tool_event("mcp__editledger__write_file", {}, before=True)
    assert session.tell(event | {"tool_input": given}) == ""
    server.done("write_file", path="b.txt", content="1\n")
    sessions, _, _ = recorded(folder)
    assert [view.client for view in sessions] == ["test agent"]


def test_a_session_is_named_by_its_client_and_not_by_what_an_agent_writes(folder: Path, server: Agent) -> None:
    session, other = ClaudeCode(folder), ClaudeCode(folder, "session-2")
    session.ask("mine")
    other.ask("theirs")
    # The agent passes the other session's name as its conversation: its edits stay its own.
    write(other, server, "b.txt", "1\n", "session-1")
    sessions, (turn,), _ = recorded(folder)
    assert [view.name for view in sessions] == ["session-2"]
    assert turn.prompt == "theirs"


def test_each_tool_call_of_several_files_is_joined_as_a_whole(folder: Path, server: Agent) -> None:
    session = ClaudeCode(folder)
    session.ask("patch")
    (folder / "b.txt").write_text("two\n")
    assert cas("record", folder=folder).status == 0
    patch = "--- a/{0}\n+++ b/{0}\n@@ -1 +1,2 @@\n+1\n {1}\n"
    patches = [
        {"file_path": name, "patch": patch.format(name, line)} for name, line in (("a.txt", "one"), ("b.txt", "two"))
    ]
    call(session, server, "apply_patches", strategy="atomic", patches=patches)
    sessions, (turn,), made = recorded(folder)
    assert [view.name for view in sessions] == ["session-1"]
    assert turn.seqs == (2, 3)
    assert len(made) == 3


def test_a_call_before_any_reported_prompt_begins_a_turn_of_the_session(folder: Path, server: Agent) -> None:
    session = ClaudeCode(folder)
    write(session, server, "b.txt", "1\n")
    session.run("echo 1 > n.txt")
    sessions, (turn,), _ = recorded(folder)
    assert [(view.name, view.client) for view in sessions] == [("session-1", "claude-code")]
    assert turn.paths == ("b.txt", "n.txt")
