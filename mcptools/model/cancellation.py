"""Cancel a running call at the points where it has changed nothing yet, and report its progress.

A tool runs on a thread, which cannot be stopped from outside. So it checks for cancellation wherever it can still end
without an effect: between two names of a walk, between two files, and for the last time before a change is recorded.
From then on the change is completed. A context variable holds the current call, so that tools need not pass it on.
"""

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, TypeAlias, TypeVar

__all__ = ["Cancelled", "Report", "Watch", "checkpoint", "progress"]

ResultT = TypeVar("ResultT")

Report: TypeAlias = Callable[[float, float | None, str], None]
"""Reports to a client how much is done, of how much (None: unknown), and in words. It returns without waiting."""

_INTERVAL: Final = 0.1
"""Seconds between two reports."""


class Cancelled(Exception):
    """The client cancelled the call, which has changed nothing."""


class Watch:
    """One call that runs on a thread."""

    def __init__(self, report: Report | None = None) -> None:
        """Watch a call. `report` runs on the call's thread; None: the client did not ask for progress."""
        self.is_cancelled = False
        self._report = report
        self._next = 0.0

    def cancel(self) -> None:
        """End the call at its next check."""
        self.is_cancelled = True

    def run(self, work: Callable[[], ResultT]) -> ResultT:
        """Do the work on this thread and return its result.

        Raises Cancelled if the call is cancelled, even before it began, and what the work raises.
        """
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

    def report(self, done: float, total: float | None, words: str) -> None:
        """Report progress, unless the last report was less than a tenth of a second ago."""
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
    """End this thread's call if it was cancelled; otherwise report its progress. Raises Cancelled."""
    watch = _current.get()
    if watch is not None:
        watch.check()
        watch.report(done, total, words)
