"""Find keywords, strings and comments in the lines of a file, in a separate process.

Pygments' lexers are regular expressions, which a hostile text can make slow. `cli.screen.syntax` interrupts them by a
signal, which only the main thread of a process can handle. So one process does nothing else; the first request that
needs it starts it.
"""

import multiprocessing
import os
import signal
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec
from typing import Final

from cli.screen.syntax import Mark, syntax_of

__all__ = ["SyntaxMarks"]

_PATIENCE: Final = 5.0
"""Seconds to wait for the process: it starts within one second, and gives up a text after a quarter."""

_MOST_TEXTS: Final = 64
"""Texts whose marks are kept, because a page requests the rows of one diff in several steps."""


class SyntaxMarks:
    """Computes the syntax marks of texts. Safe to use from several threads."""

    def __init__(self) -> None:
        """Start without a process."""
        self._lock: Final = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._known: Final[OrderedDict[tuple[str, tuple[str, ...]], list[list[Mark]]]] = OrderedDict()

    def of(self, path: str, lines: Sequence[str]) -> list[list[Mark]]:
        """Return the marks of each line of a file, given as shown; [] for a file of no known language."""
        asked = (path, tuple(lines))
        with self._lock:
            if asked in self._known:
                self._known.move_to_end(asked)
                return self._known[asked]
        found = self._found(path, asked[1])
        with self._lock:
            self._known[asked] = found
            while len(self._known) > _MOST_TEXTS:
                self._known.popitem(last=False)
        return found

    def close(self) -> None:
        """End the process and wait for it."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)

    def _found(self, path: str, lines: tuple[str, ...]) -> list[list[Mark]]:
        if not lines or find_spec("pygments") is None:
            return []
        try:
            return self._worker().submit(_marks, path, lines).result(_PATIENCE)
        except TimeoutError:
            return []
        except BrokenProcessPool:
            self.close()
            return []

    def _worker(self) -> ProcessPoolExecutor:
        with self._lock:
            if self._pool is None:
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
