"""A history of turns of two sessions."""

from collections.abc import Callable
from typing import Final

import pytest

from objstore import Call, TurnInfo
from tests.support.command_runner import CommandRunner

DAY: Final = 86_400_000_000


def turn(session: str, number: int, prompt: str = "", client: str = "claude-code") -> TurnInfo:
    """Return the turn that begins on a day of 1970 in a session."""
    return TurnInfo(session=session, began=number * DAY, prompt=prompt, client=client, model="m")


def take_turns(runner: CommandRunner) -> None:
    def write(path: str, content: bytes) -> Callable[[Call], None]:
        return lambda call: call.write(path, content)

    runner.call(write("a", b"1\n2\n3\n"), conversation="one", turn=turn("one", 1, "Write a\nand be brief"))
    runner.call(write("a", b"1\ntwo\n3\n"), conversation="one", turn=turn("one", 2, "Spell two"))
    runner.call(write("b", b"b\n"), conversation="one", turn=turn("one", 2, "Spell two"))
    runner.call(write("a", b"1\ntwo\n3\n4\n"), conversation="chat", turn=turn("two", 3, client="codex"))
    runner.call(write("a", b"1\ntwo\nthree\n4\n"), conversation="one", turn=turn("one", 4, "Spell three"))


@pytest.fixture
def turns(runner: CommandRunner) -> CommandRunner:
    """Return a workspace in which two sessions took turns at two files."""
    return runner.prepared(take_turns)
