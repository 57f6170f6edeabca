"""Find the syntax of the rows that a page shows, in a separate process.

Pygments' lexers are regular expressions, which a hostile text can make slow. `cli.screen.syntax` interrupts them by a
signal, which only the main thread of a process can handle. So one process does nothing else; the first request that
needs it starts it. It imports this module, which therefore imports little.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final

from cli.screen.syntax import Mark, syntax_of
from cli.web.kept import Kept

__all__ = ["SyntaxMarks"]

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
        self._lock: Final = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
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
        self._end_process()

    def _end_process(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)

    def _found(self, path: str, lines: tuple[str, ...]) -> list[list[Mark]]:
        if not lines:
            return []
        worker = self._worker()
        if worker is None:
            return []
        try:
            return worker.submit(_marks, path, lines).result(_PATIENCE)
        except BrokenProcessPool:
            self._end_process()
            return []
        except (TimeoutError, CancelledError, RuntimeError):  # too long, or closed meanwhile
            return []

    def _worker(self) -> ProcessPoolExecutor | None:
        with self._lock:
            if self._pool is None and not self._is_closed:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_follow_server)
            return self._pool


def _follow_server() -> None:
    """End when the server ends, even if it is killed, and ignore Ctrl-C, which a terminal sends to both."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = multiprocessing.parent_process()

    def end() -> None:
        if server is not None:
            server.join()
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()


def _marks(path: str, lines: tuple[str, ...]) -> list[list[Mark]]:
    return [list(marks) for marks in syntax_of(path, path, (), lines).new]
