"""Read single keys and whole lines from a person at a terminal, and leave the terminal as it was."""

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
"""Position of the local modes and of the control characters in termios' list."""

_SEQUENCE_SECONDS: Final = 0.05
"""Time that a terminal may take from the first byte of a key to the others."""

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that would end the process and leave the terminal changed."""


class Keyboard:
    """A terminal that returns each key when it is pressed, without showing it. Ctrl-C and Ctrl-Z work as usual."""

    def __init__(self) -> None:
        """Take standard input, which must be a terminal, and leave it unchanged until the keyboard is entered."""
        self._fd: Final = sys.stdin.fileno()
        self._found: Final[list[Any]] = termios.tcgetattr(self._fd)
        self._held = False
        self._is_line_typed = False
        self.question = b""  # what the next key or line answers; shown again to a person who comes back to it

    def __enter__(self) -> Self:
        """Switch to single keys."""
        self._handlers: dict[signal.Signals, Any] = {signal.SIGCONT: signal.signal(signal.SIGCONT, self._on_continue)}
        for number in _ENDING:
            # Signals that were ignored, as under nohup, stay ignored.
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, self._on_ending)
        self._hold()
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the terminal."""
        self._release()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def key(self) -> str:
        """Return the next key: a character; ESCAPE for that key, and "" for one that sends more, such as an arrow.

        Raises EOFError when the terminal is gone.
        """
        first = self._byte()
        if first == ESCAPE.encode():
            sequence = b""
            while self._is_waiting() and len(sequence) < 16:  # noqa: PLR2004 -- no key sends more
                sequence += self._byte()
            return "" if sequence else ESCAPE
        # The first byte of a character in UTF-8 gives the number of bytes.
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
        """Restore the terminal for a while: for an editor, a pager, or a line to be typed."""
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
        # The shell that had the terminal meanwhile has set its own modes.
        if self._held:
            self._hold()
        if self._held or self._is_line_typed:
            # A partly typed line is gone: the terminal drops it when it stops its reader.
            with suppress(OSError):  # no one would see it
                os.write(sys.stdout.fileno(), self.question)

    def _on_ending(self, number: int, _frame: FrameType | None) -> None:
        if self._held:
            # Don't wait: the terminal may be gone, or its output may be stopped.
            with suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSANOW, self._found)
        # Decisions are already recorded, so ending like any other process is enough.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def await_typing(fd: int) -> None:
    """Wait until typed input can be read. A signal's handler runs at once, so Ctrl-C ends the wait.

    Python notices a signal that comes just before a read begins only when the read ends: with the next key.
    """
    woken, waker = os.pipe()
    try:
        os.set_blocking(waker, False)
        known = signal.set_wakeup_fd(waker)
        try:
            while fd not in select.select([fd, woken], [], [])[0]:
                os.read(woken, 64)
        finally:
            signal.set_wakeup_fd(known)
    finally:
        os.close(woken)
        os.close(waker)
