"""A day of two agents: 66 edits for 9 prompts in 2 sessions, which make 85 changes in 14 files."""

from typing import Final

from objstore import Call, CallInfo, Operation, TurnInfo
from tests.support.command_runner import CommandRunner

__all__ = ["CHANGES", "EDITS", "PROMPTS", "work_a_day"]

EDITS: Final = 66
CHANGES: Final = 85
PROMPTS: Final = (
    "Give routes a name",
    "Return 405 with the methods that are allowed",
    "Stream large responses",
    "Move the cookies into a module of their own",
    "Type the request",
    "Fix the flaky test of the pool",
    "Retry a request that was cut off",
    "Document the hooks",
    "Remove what is deprecated",
)

_PLACES: Final = 8
"""Places of a file that are changed; enough lines are between them to be changes of their own."""


def _text(name: str) -> bytes:
    return b"".join(b"%s line %d\n" % (name.encode(), number) for number in range(6 * _PLACES))


def work_a_day(runner: CommandRunner) -> None:
    """Record the day in a new workspace. The first edit creates a file longer than a screen, the second deletes one."""
    names = [f"src/part{number:02}.py" for number in range(11)]
    (runner.folder / "src").mkdir()
    for name in (*names, "src/old.py"):
        (runner.folder / name).write_bytes(_text(name))
    runner.done("record")
    places = [(name, place) for name in names for place in range(_PLACES)]
    with runner.workspace() as workspace:
        for number in range(EDITS):
            at = number * len(PROMPTS) // EDITS
            session = f"session-{at % 2}"
            turn = TurnInfo(session=session, began=1 + at, prompt=PROMPTS[at], client="claude-code")
            with workspace.call(CallInfo(tool="Edit", conversation=session, turn=turn)) as call:
                if number == 0:
                    call.write("src/fresh.py", _text("fresh") * 3)
                elif number == 1:
                    call.delete("src/old.py")
                else:
                    _edited(call, [places.pop(0) for _ in range(2 if number <= CHANGES - EDITS + 1 else 1)], number)
                call.commit()


def _edited(call: Call, places: list[tuple[str, int]], number: int) -> None:
    """Change a line at each of some places, which are in one file."""
    name = places[0][0]
    lines = call.read(name).bytes.splitlines(keepends=True)
    for _, place in places:
        lines[6 * place + 2] = b"changed by edit %d at place %d\n" % (number + 1, place)
    call.write(name, b"".join(lines), operation=Operation.EDIT)
