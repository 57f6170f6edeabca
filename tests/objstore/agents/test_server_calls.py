"""Calls of our server that hooks have announced: each is taken once, by the same call, while its program runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore import AgentCall, HookSessions, Workspace, arguments_digest
from tests.support.hooked_agents import evidence, put_evidence

GIVEN = {"path": "a.txt", "content": "1\n", "more": [1, 2.5, None, {"é": True}]}


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[HookSessions]:
    with Workspace.init(tmp_path) as workspace:
        yield workspace.hooks


def call(name: str = "1", *, began: int = 0, tool: str = "mcp__editledger__write_file") -> AgentCall:
    return AgentCall(conversation="session", id=name, tool=tool, paths=(), asks=arguments_digest(GIVEN), began=began)


def test_an_announced_call_is_taken_once_by_the_same_tool_and_arguments(hooks: HookSessions) -> None:
    hooks.begin(call())
    assert hooks.server_calls.take("edit_file", GIVEN) is None
    assert hooks.server_calls.take("write_file", GIVEN | {"more": []}) is None
    made = hooks.server_calls.take("write_file", dict(reversed(GIVEN.items())))
    assert made is not None
    assert made.turn is not None
    assert (made.turn.session, made.turn.conversation) == ("session", "session")
    assert hooks.server_calls.take("write_file", GIVEN) is None
    hooks.begin(call())  # reported twice
    assert hooks.server_calls.take("write_file", GIVEN) is None


@pytest.mark.parametrize("end", ["end", "fail", "mark_not_run", "pause", "over", "start"])
def test_a_call_that_has_ended_is_not_taken(hooks: HookSessions, end: str) -> None:
    hooks.begin(call())
    getattr(hooks, end)("session" if end in {"pause", "over", "start"} else call())
    assert hooks.server_calls.take("write_file", GIVEN) is None


def test_calls_of_programs_that_died_and_damaged_notes_are_removed(hooks: HookSessions, tmp_path: Path) -> None:
    hooks.begin(call("old", began=1))
    hooks.begin(call("damaged"))
    damaged = next(name for name, held in evidence(tmp_path, "asks-").items() if held["id"] == "damaged")
    put_evidence(tmp_path, damaged, {"conversation": 1})
    assert hooks.server_calls.take("write_file", GIVEN) is None
    assert not evidence(tmp_path, "asks-")


def test_equal_calls_at_once_are_taken_one_by_one(hooks: HookSessions) -> None:
    hooks.begin(call("1"))
    hooks.begin(call("2"))
    assert [hooks.server_calls.take("write_file", GIVEN) is not None for _ in range(3)] == [True, True, False]


def test_arguments_are_the_same_as_a_map_and_as_its_json() -> None:
    assert arguments_digest('{"b": 1, "a": "\\u00e9"}') == arguments_digest({"a": "é", "b": 1}) != ""
    assert arguments_digest("no JSON") == arguments_digest({"a": {1, 2}}) == arguments_digest("[" * 10_000) == ""
