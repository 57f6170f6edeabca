"""Run a call's work on a thread, so that other calls don't wait while it waits for the disk or a lock."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeAlias, TypeVar

import anyio
import anyio.lowlevel

from mcptools.model.cancellation import Cancelled, Watch

__all__ = ["SendProgress", "run_on_thread"]

ResultT = TypeVar("ResultT")

SendProgress: TypeAlias = Callable[[float, float | None, str], Awaitable[None]]
"""Sends a client, from the event loop, the progress that a `Report` reports."""

_MOST: Final = 40
"""Calls of one kind that run at once; others wait for their turn."""

_reading: Final = ThreadPoolExecutor(_MOST, "read")
_changing: Final = ThreadPoolExecutor(_MOST, "change")  # these may all wait for another process


async def run_on_thread(
    work: Callable[[], ResultT], send: SendProgress | None = None, *, changes: bool = False
) -> ResultT:
    """Return what the work returns, and raise what it raises.

    If the caller is cancelled, the work either ends at its next check, without an effect, or is completed: then its
    result is returned all the same, so that the client learns what was done. Only work that ended early raises the
    cancellation.

    `send`: sends progress reports; None: the client did not ask for them. `changes`: the work may wait for its turn to
    write, so it runs on threads of its own, and calls that only read keep theirs.
    """
    await anyio.lowlevel.checkpoint_if_cancelled()
    loop = asyncio.get_running_loop()
    reports = None if send is None else _ProgressReporter(send, loop)
    watch = Watch(reports)
    done = loop.run_in_executor(_changing if changes else _reading, watch.run, work)
    try:
        await asyncio.wait([done])
        if reports is not None:
            await reports.sent()
    except asyncio.CancelledError:
        watch.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([done])
        if isinstance(done.exception(), Cancelled):
            raise
    return done.result()


class _ProgressReporter:
    """Sends progress reports from a call's thread, which may hold the writers' lock and must not wait for a client.

    Reports that come while the last one is still being sent are dropped.
    """

    def __init__(self, send: SendProgress, loop: asyncio.AbstractEventLoop) -> None:
        self._send = send
        self._loop = loop
        self._last: Future[None] | None = None

    def __call__(self, done: float, total: float | None, words: str) -> None:
        if self._last is None or self._last.done():
            self._last = asyncio.run_coroutine_threadsafe(self._sending(done, total, words), self._loop)

    async def _sending(self, done: float, total: float | None, words: str) -> None:
        await self._send(done, total, words)

    async def sent(self) -> None:
        """Wait until the last report has been sent: clients ignore progress that arrives after the answer."""
        if self._last is not None:
            await asyncio.wait([asyncio.wrap_future(self._last)])
