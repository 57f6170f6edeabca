"""Find the syntax of the rows that a page shows, in a separate process.

Pygments' lexers are regular expressions, which a hostile text can make slow. `cli.screen.syntax` interrupts them by a
signal, which only the main thread of a process can handle. So one process does nothing else: it answers each line by a
line, and ends with its input. The first request that needs it starts it. It imports this module, which therefore
imports little.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from selectors import EVENT_READ, DefaultSelector
from typing import Final

from cli.screen.syntax import Mark, syntax_of
from cli.web.kept import Kept

__all__ = ["SyntaxMarks", "main"]

_PATIENCE: Final = 5.0
"""Seconds to wait for the process: it starts within one second, and gives up a text after a quarter."""

_MOST_TEXTS: Final = 64
_MOST_BYTES: Final = 8_000_000
"""Texts whose marks are kept, and bytes of both: a page requests the rows of one diff in several steps."""

_Asked = tuple[str, tuple[str, ...]]


def _held(asked: _Asked, found: list[list[Mark]]) -> int:
    return sum(map(len, asked[1])) + 100 * sum(map(len, found))


class SyntaxMarks:
    """Computes the syntax marks of texts. Safe to use from several threads."""

    def __init__(self) -> None:
        """Start without a process."""
        self._asking: Final = threading.Lock()  # the process answers one request at a time
        self._lock: Final = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        self._known: Final = Kept[_Asked, list[list[Mark]]](_MOST_TEXTS, _MOST_BYTES, _held)

    def of(self, path: str, lines: Sequence[str]) -> list[list[Mark]]:
        """Return the marks of each line of a file, given as shown; [] for a file of no known language."""
        asked = (path, tuple(lines))
        found = self._known.get(asked)
        if found is None:
            found = self._found(*asked)
            self._known.put(asked, found)
        return found

    def close(self) -> None:
        """End the process and wait for it. A request that is still running gets no marks, and starts no other."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
        with self._asking:
            self._end_process()

    def _found(self, path: str, lines: tuple[str, ...]) -> list[list[Mark]]:
        if not lines:
            return []
        with self._asking:
            process = self._running()
            if process is None:
                return []
            answer = _answer(process, json.dumps([path, lines]).encode() + b"\n")
            if answer is None:
                self._end_process()
                return []
        return [[Mark(*mark) for mark in line] for line in json.loads(answer)]

    def _running(self) -> subprocess.Popen[bytes] | None:
        """Return the process, and start it if there is none; None if this is closed."""
        with self._lock:
            if self._process is None and not self._is_closed:
                # It finds modules where the server does: in no folder where agents write. In a session of its own, it
                # gets no Ctrl-C of the terminal; it ends when the server's end of its input is closed.
                code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"
                command = [sys.executable, "-P", "-c", code]
                pipe = subprocess.PIPE
                self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True)  # noqa: S603 -- this very module
            return None if self._is_closed else self._process

    def _end_process(self) -> None:
        """End the process, if there is one; the caller holds `_asking`."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()  # closes the pipes and waits


def _answer(process: subprocess.Popen[bytes], asked: bytes) -> bytes | None:
    """Return the line that the process answers a line by; None: it has ended, or takes too long."""
    assert process.stdin is not None  # noqa: S101 -- both are pipes
    assert process.stdout is not None  # noqa: S101 -- as above
    try:
        process.stdin.write(asked)
        process.stdin.flush()
        with DefaultSelector() as selector:
            selector.register(process.stdout, EVENT_READ)
            answer = process.stdout.readline() if selector.select(_PATIENCE) else b""
    except OSError:
        return None
    return answer if answer.endswith(b"\n") else None


def main() -> None:
    """Answer each line of standard input, a path and the lines of a text, by the marks of these lines."""
    for asked in sys.stdin.buffer:
        path, lines = json.loads(asked)
        sys.stdout.write(json.dumps(syntax_of(path, path, (), lines).new) + "\n")
        sys.stdout.flush()
