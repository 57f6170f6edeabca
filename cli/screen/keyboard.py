"""The keyboard: single keys and whole lines from a person at a terminal, which is left as it was found."""

import os
import select
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, Self

__all__ = ["END", "ENTER", "ESCAPE", "Keyboard", "await_typing"]

ENTER: Final = "\n"
ESCAPE: Final = "\x1b"
END: Final = "\x04"  # Ctrl-D

_LOCAL: Final = 3
_CONTROL: Final = 6
"""Where termios keeps the local modes, and the control characters."""

_SEQUENCE_SECONDS: Final = 0.05
"""How long a terminal may take from the first byte of a key to its others."""

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that would end the process and leave the terminal as it is."""


class Keyboard:
    """A terminal that gives each key as it is pressed, without showing it. Ctrl-C and Ctrl-Z work as ever."""

    def __init__(self) -> None:
        """Take standard input, which must be a terminal, and leave it as it is until the keyboard is entered."""
        self._fd: Final = sys.stdin.fileno()
        self._found: Final[list[Any]] = termios.tcgetattr(self._fd)
        self._held = False
        self._is_line_typed = False
        self.question = b""  # what the next key or line answers; shown again to a person who comes back to it

    def __enter__(self) -> Self:
        """Ask for single keys."""
        self._handlers: dict[signal.Signals, Any] = {signal.SIGCONT: signal.signal(signal.SIGCONT, self._on_continue)}
        for number in _ENDING:
            # What is ignored, as under nohup, stays so.
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, self._on_ending)
        self._hold()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the terminal back."""
        self._release()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def key(self) -> str:
        """Return the next key: a character; ESCAPE for that key and "" for one that sends more, such as an arrow.

        Raises EOFError when the terminal is gone.
        """
        first = self._byte()
        if first == ESCAPE.encode():
            sequence = b""
            while self._is_waiting() and len(sequence) < 16:  # noqa: PLR2004 -- no key sends more
                sequence += self._byte()
            return "" if sequence else ESCAPE
        # Of a character in UTF-8, the first byte tells how many there are.
        more = sum(first[0] >= start for start in (0xC0, 0xE0, 0xF0))
        return (first + b"".join(self._byte() for _ in range(more))).decode(errors="replace").replace("\r", ENTER)

    def line(self) -> str | None:
        """Return a line as the person has typed and corrected it (None: ended with Ctrl-D instead)."""
        typed = b""
        with self.released():
            self._is_line_typed = True
            try:
                while not typed.endswith(b"\n"):
                    await_typing(self._fd)
                    piece = os.read(self._fd, 1)
                    if not piece:
                        return None
                    typed += piece
            finally:
                self._is_line_typed = False
        return typed.decode(errors="replace").strip()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Give the terminal back for a while: to an editor, a pager, or a line that is typed."""
        self._release()
        try:
            yield
        finally:
            self._hold()

    # ---- inside

    def _byte(self) -> bytes:
        await_typing(self._fd)
        piece = os.read(self._fd, 1)
        if not piece:
            raise EOFError
        return piece

    def _is_waiting(self) -> bool:
        return bool(select.select([self._fd], [], [], _SEQUENCE_SECONDS)[0])

    def _hold(self) -> None:
        modes = termios.tcgetattr(self._fd)
        modes[_LOCAL] &= ~(termios.ECHO | termios.ICANON)
        modes[_CONTROL][termios.VMIN], modes[_CONTROL][termios.VTIME] = 1, 0
        termios.tcsetattr(self._fd, termios.TCSADRAIN, modes)
        self._held = True

    def _release(self) -> None:
        self._held = False
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._found)

    def _on_continue(self, _signal: int, _frame: FrameType | None) -> None:
        # The shell that had the terminal in between has set it as it likes it.
        if self._held:
            self._hold()
        if self._held or self._is_line_typed:
            # What was typed of a line is gone: the terminal drops it when it stops who reads it.
            with suppress(OSError):  # nobody sees it, then
                os.write(sys.stdout.fileno(), self.question)

    def _on_ending(self, number: int, _frame: FrameType | None) -> None:
        if self._held:
            # Nothing is waited for: the terminal may be gone, or have been told to stop its output.
            with suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSANOW, self._found)
        # What was decided is recorded, so no more has to be done than to end as anything else does.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def await_typing(fd: int) -> None:
    """Wait until something can be read that was typed. A signal's handler runs at once, so Ctrl-C ends the wait.

    A signal that comes just before a read begins is heard by Python only when the read ends: with the next key.
    """
    heard, hears = os.pipe()
    try:
        os.set_blocking(hears, False)
        known = signal.set_wakeup_fd(hears)
        try:
            while fd not in select.select([fd, heard], [], [])[0]:
                os.read(heard, 64)
        finally:
            signal.set_wakeup_fd(known)
    finally:
        os.close(heard)
        os.close(hears)
