"""Watching: whether a call is still wanted, and how far it has come.

A tool runs on a thread, which nothing can stop from outside. So it asks, wherever it can still end with nothing done:
between two names of a walk, between two files, and last before a change is recorded. After that the change is carried
out whole. The call of a thread is found through a context variable, so that tools need not hand it down.
"""

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, TypeAlias, TypeVar

__all__ = ["Cancelled", "Report", "Watch", "checkpoint", "progress"]

ResultT = TypeVar("ResultT")

Report: TypeAlias = Callable[[float, float | None, str], None]
"""Tells a client how much of how much (None: nobody knows) is done, and in words. It waits for nobody."""

_INTERVAL: Final = 0.1
"""Seconds between two reports."""


class Cancelled(Exception):
    """Nobody waits for the call any more; it has changed nothing."""


class Watch:
    """One call that is under way on a thread."""

    def __init__(self, report: Report | None = None) -> None:
        """Watch a call. `report` is called on its thread; None: the client did not ask for progress."""
        self.is_cancelled = False
        self._report = report
        self._next = 0.0

    def cancel(self) -> None:
        """Let the call end where it next asks."""
        self.is_cancelled = True

    def run(self, work: Callable[[], ResultT]) -> ResultT:
        """Do the work, on this thread. Raises Cancelled, also if it was cancelled before, and what the work raises."""
        self.check()
        token = _current.set(self)
        try:
            return work()
        finally:
            _current.reset(token)

    def check(self) -> None:
        """Raise Cancelled if the call was cancelled."""
        if self.is_cancelled:
            raise Cancelled

    def tell(self, done: float, total: float | None, words: str) -> None:
        """Report progress, now and then."""
        now = time.monotonic()
        if self._report is not None and now >= self._next:
            self._next = now + _INTERVAL
            self._report(done, total, words)


_current: ContextVar[Watch | None] = ContextVar("watch", default=None)


def checkpoint() -> None:
    """End this thread's call if it was cancelled. Raises Cancelled."""
    watch = _current.get()
    if watch is not None:
        watch.check()


def progress(done: float, total: float | None, words: str) -> None:
    """End this thread's call if it was cancelled; else tell how far it has come. Raises Cancelled."""
    watch = _current.get()
    if watch is not None:
        watch.check()
        watch.tell(done, total, words)
