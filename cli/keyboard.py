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

from cli.terminal import await_typing

__all__ = ["END", "ENTER", "ESCAPE", "Keyboard"]

ENTER: Final = "\n"
ESCAPE: Final = "\x1b"
END: Final = "\x04"  # Ctrl-D

_LOCAL: Final = 3
_CONTROL: Final = 6
"""Where termios keeps the local modes, and the control characters."""

_SEQUENCE_SECONDS: Final = 0.05
"""How long a terminal may take from the first byte of a key to its others."""


class Keyboard:
    """A terminal that gives each key as it is pressed, without showing it. Ctrl-C and Ctrl-Z work as ever."""

    def __init__(self) -> None:
        """Take standard input, which must be a terminal, and leave it as it is until the keyboard is entered."""
        self._fd: Final = sys.stdin.fileno()
        self._found: Final[list[Any]] = termios.tcgetattr(self._fd)
        self._held = False
        self.question = b""  # what the next key answers; shown again to a person who comes back to it

    def __enter__(self) -> Self:
        """Ask for single keys."""
        self._continued: Any = signal.signal(signal.SIGCONT, self._on_continue)
        self._hold()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the terminal back."""
        self._release()
        signal.signal(signal.SIGCONT, self._continued)

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
            while not typed.endswith(b"\n"):
                await_typing(self._fd)
                piece = os.read(self._fd, 1)
                if not piece:
                    return None
                typed += piece
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
            with suppress(OSError):  # nobody sees it, then
                os.write(sys.stdout.fileno(), self.question)
