"""Each connection of a client is a session, and each `mcp_conversation_id` a turn of it."""

from pathlib import Path

import pytest
from mcp import Client
from mcp.types import CallToolResult

from objstore import SessionView, TurnView, Workspace
from tests.support.http_server import serving
from tests.support.mcp_agent import Agent, connected


def recorded(root: Path) -> tuple[list[SessionView], list[TurnView]]:
    with Workspace.open(root) as workspace:
        return workspace.sessions.sessions(), workspace.sessions.turns()


def write(agent: Agent, name: str, content: str, conversation: str = "") -> str:
    """Write a file in a conversation ("": a new one); return the conversation's id."""
    given = {"mcp_conversation_id": conversation} if conversation else {}
    done = agent.done("write_file", path=name, content=content, **given)
    return str(done.structured["mcp_conversation_id"])


def test_calls_of_one_conversation_are_one_turn_of_the_connection(tmp_path: Path) -> None:
    with connected(tmp_path) as agent:
        first = write(agent, "a", "1\n")
        write(agent, "b", "1\n", first)
        write(agent, "a", "2\n")
        write(agent, "c", "1\n", first)
        listed = agent.done("list_edits").structured["edits"]
    (session,), turns = recorded(tmp_path)
    assert session.client == "test agent"
    assert [(turn.session, turn.seqs, turn.paths) for turn in turns] == [
        (session.number, (1, 2, 4), ("a", "b", "c")),
        (session.number, (3,), ("a",)),
    ]
    assert [(edit["edit"], edit["turn"]) for edit in listed] == [(4, 1), (3, 2), (2, 1), (1, 1)]


def test_each_connection_is_a_session_of_its_own(tmp_path: Path) -> None:
    for content in ("1\n", "2\n"):
        with connected(tmp_path) as agent:
            write(agent, "a", content, "shared")
    sessions, turns = recorded(tmp_path)
    assert [session.edits for session in sessions] == [1, 1]
    assert [(turn.session, turn.conversation) for turn in turns] == [(1, "shared"), (2, "shared")]


def test_concurrent_calls_of_a_new_conversation_are_one_turn(tmp_path: Path) -> None:
    with connected(tmp_path) as agent:
        calls = [
            ("write_file", {"path": f"{number}", "content": "x\n", "mcp_conversation_id": "one"}) for number in range(4)
        ]
        assert not any(result.refused for result in agent.call_concurrently(calls))
    _, (turn,) = recorded(tmp_path)
    assert len(turn.seqs) == 4


@pytest.mark.parametrize("refused", ["missing", "."])
def test_refused_call_leaves_no_turn(tmp_path: Path, refused: str) -> None:
    with connected(tmp_path) as agent:
        write(agent, "a", "1\n")
        assert agent.call("delete_file", path=refused).refused
    _, turns = recorded(tmp_path)
    assert len(turns) == 1


def test_each_session_over_http_is_a_session_of_its_own(tmp_path: Path) -> None:
    async def work(client: Client) -> CallToolResult:
        return await client.call_tool("write_file", {"path": "a", "content": "x\n" * len(recorded_turns(tmp_path))})

    def recorded_turns(root: Path) -> list[int]:
        return [0] if not (root / ".cas").exists() else [0, *(turn.number for turn in recorded(root)[1])]

    with serving(tmp_path) as served:
        for _ in range(2):
            assert not served.with_client(work, mode="legacy").is_error
    sessions, turns = recorded(tmp_path)
    assert [session.turns for session in sessions] == [1, 1]
    assert [turn.session for turn in turns] == [1, 2]
