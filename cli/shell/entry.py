"""Entry point of the `cas` script: answer a hook, or run a command."""

from __future__ import annotations

import gc
import os
import sys
from typing import Final, NoReturn

__all__ = ["main"]

_COLLECT_AFTER: Final = 100_000
"""New objects after which garbage is collected. With Python's 700 a status takes 5 % longer, and finds no garbage."""

_LONGEST_EVENT: Final = 64 << 20
"""Maximum bytes of a hook's event that are read: it may hold a whole file, twice."""

_INTERRUPTED: Final = 130  # as in `cli.shell.main`, which may be what is being imported


def main() -> int:
    """Run `cas` with the arguments of the process and return its exit status."""
    try:
        if sys.argv[1:2] == ["hook"] and not any(word.startswith("-") for word in sys.argv[2:]) and not _is_typed():
            # Before click is imported: an agent waits for this before and after each of its tools.
            _hook(sys.argv[2:])
        gc.set_threshold(_COLLECT_AFTER)
        gc.enable()
        from cli.shell.main import main as run

        return run()
    except KeyboardInterrupt:
        return _INTERRUPTED  # while modules were being imported; later `cli.shell.main` handles it
    finally:
        # Skip the collection at the interpreter's end: 14 % of a status, for memory that is freed anyway.
        gc.freeze()


def _is_typed() -> bool:
    """Return whether a person typed `cas hook` without a client, and would wait for an event at the terminal."""
    return len(sys.argv) == 2 and sys.stdin is not None and sys.stdin.isatty()  # noqa: PLR2004 - `cas hook`


def _hook(arguments: list[str]) -> NoReturn:
    """Handle the event on standard input, and end with status 0, or with 1 if it failed and that can't be noted."""
    import signal  # other commands need it later, if at all

    # A client's own Ctrl-C reaches this too: end as if the client had ended it. A KeyboardInterrupt could get lost:
    # Python drops one that is raised in the callback of a weak reference, and each import has one.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    status = 0
    try:
        status = _handle(arguments)
    except Exception as error:  # noqa: BLE001 - an agent must go on, whatever fails here
        try:
            from cli.hooks.handler import log_fault

            place = os.getcwd()  # noqa: PTH109 - pathlib costs 4 ms of start-up
            status = 0 if log_fault(place, arguments, error) else 1
        except Exception:  # noqa: BLE001 - the program itself is broken: the shell that runs it leaves the mark
            status = 1
    # Even if the client has closed the pipe: the interpreter would flush it at its end, and report that.
    os._exit(status)


def _handle(arguments: list[str]) -> int:
    """Handle the event and return the status. Raises what an incomplete installation or a bare system may raise."""
    try:
        os.getcwd()  # noqa: PTH109 - pathlib costs 4 ms of start-up
    except OSError:
        # A tool may have removed the folder that the agent was in; the event says itself where that was.
        os.chdir("/")
    try:
        given = sys.stdin.buffer.read(_LONGEST_EVENT)
    except (AttributeError, OSError):
        given = b""  # an invalid event, reported as such
    gc.disable()  # a short process leaves little to collect, and looking for it takes a tenth of the time
    from cli.hooks.handler import main as handle

    return handle(arguments, given)
