"""The first thing that `cas` runs: what is waited for at every prompt or tool call, else the command.

Next to nothing is imported here that Python has not imported by itself.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as type checkers know it: importing `typing` takes 5 ms
if TYPE_CHECKING:
    from typing import Final, NoReturn

__all__ = ["main"]

_COLLECT_AFTER: Final = 100_000
"""Objects that a command makes before the garbage collector looks at them."""

_LONGEST_EVENT: Final = 64 << 20
"""Bytes of a hook's event that are read: it may hold a whole file, twice."""

_INTERRUPTED: Final = 130  # as `cli.main` has it, which may be what was being imported


def main() -> int:
    """Run `cas` with the arguments of the process and return its exit status."""
    try:
        return _run()
    except KeyboardInterrupt:
        # While it still gathered what it needs.
        return _ended(_INTERRUPTED)


def _run() -> int:
    if sys.argv[1:2] == ["hook"] and not any(word.startswith("-") for word in sys.argv[2:]) and not _is_typed():
        # Before click is imported: an agent waits for this before and after each of its tools.
        _hook(sys.argv[2:])
    if "status" in sys.argv[1:4]:
        # As little as can be, for as often as a prompt asks.
        import gc

        gc.disable()  # as for a hook
        from cli.plainstatus import plain_status

        ended = plain_status(sys.argv[1:])
        if ended is not None:
            return _ended(ended)
        gc.enable()
    import gc

    # What a command imports and loads is all in use; at the default of 700 objects, looking through it takes a tenth of
    # the time of a decision. A command that runs for long still has it done.
    gc.set_threshold(_COLLECT_AFTER)
    if "record" in sys.argv[1:4] or "snapshot" in sys.argv[1:4]:
        from cli.lookahead import look_ahead

        with look_ahead(sys.argv[1:]) as ahead:
            from cli.main import main as run

            ended = run(ahead=ahead)
        return _ended(ended)
    from cli.main import main as run

    return _ended(run())


def _is_typed() -> bool:
    """Return whether a person named no client, and would sit before a command that waits for an event."""
    return len(sys.argv) == 2 and sys.stdin is not None and sys.stdin.isatty()  # noqa: PLR2004 - `cas hook`


def _ended(status: int) -> int:
    """End the process with that status at once, unless threads are left, which end as the interpreter does."""
    threading = sys.modules.get("threading")
    if threading is None or threading.active_count() == 1:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass  # what could not be written was told, or there is nobody to tell
        # Taking the interpreter apart takes a tenth of a short command's time, and nothing of it would be missed.
        os._exit(status)
    return status


def _hook(arguments: list[str]) -> NoReturn:
    """Handle the event on standard input, and end with status 0."""
    try:
        _handle(arguments)
    except Exception as error:  # noqa: BLE001 - an agent must go on, whatever fails here
        try:
            from cli.hooking import log_fault

            log_fault(os.getcwd(), arguments, error)  # noqa: PTH109 - pathlib costs 4 ms of start-up
        except Exception:  # noqa: BLE001, S110 - where the program itself is broken, there is nobody left to tell
            pass
    except KeyboardInterrupt:
        pass  # a client's own Ctrl-C reached this too; it is as if the client had ended it
    # As in `_ended`: nothing of the interpreter would be missed.
    os._exit(0)


def _handle(arguments: list[str]) -> None:
    """Handle the event. Raises what an unfinished installation or a poor system may raise."""
    try:
        os.getcwd()  # noqa: PTH109 - pathlib costs 4 ms of start-up
    except OSError:
        # A tool may have removed the folder that the agent was in; the event says itself where that was.
        os.chdir("/")
    try:
        given = sys.stdin.buffer.read(_LONGEST_EVENT)
    except (AttributeError, OSError):
        given = b""  # an event that makes no sense, and is told as one
    import gc

    gc.disable()  # a short life leaves little to collect, and looking for it takes a tenth of the time
    from cli.hooking import main as handle

    handle(arguments, given)
