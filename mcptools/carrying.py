"""Carrying out: a call's work is done on a thread, so that no other call waits for the disk that it may wait for."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final, TypeAlias, TypeVar

import anyio

from mcptools.watching import Cancelled, Report, Watch, checkpoint

__all__ = ["Tell", "carried_out"]

ResultT = TypeVar("ResultT")

Tell: TypeAlias = Callable[[float, float | None, str], Awaitable[None]]
"""Tells a client, from the event loop, what a `Report` says."""

_MOST: Final = 40
"""Calls that are carried out at once; others wait for their turn."""

_LOOK: Final = 0.1
"""Seconds after which work that waits for a report to be taken looks whether it is still wanted."""

_threads: Final = ThreadPoolExecutor(_MOST, thread_name_prefix="call")


async def carried_out(work: Callable[[], ResultT], tell: Tell | None = None) -> ResultT:
    """Return what the work returns, done on a thread. If the caller is cancelled, tell the work, and wait for its end.

    `tell`: gets reports of progress; None: nobody wants to know. Raises what the work raises.
    """
    loop = asyncio.get_running_loop()
    watch = Watch(None if tell is None else _report(tell, loop))
    ended = anyio.Event()
    doing = _threads.submit(watch.run, work)
    doing.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set))
    try:
        await ended.wait()
    except anyio.get_cancelled_exc_class():
        watch.cancel()
        doing.cancel()  # if it has not begun
        with anyio.CancelScope(shield=True):
            await ended.wait()
        raise
    return doing.result()


def _report(tell: Tell, loop: asyncio.AbstractEventLoop) -> Report:
    """Return what tells the client of progress, from a call's thread."""

    async def telling(done: float, total: float | None, words: str) -> None:
        await tell(done, total, words)

    def report(done: float, total: float | None, words: str) -> None:
        told = asyncio.run_coroutine_threadsafe(telling(done, total, words), loop)
        try:
            while not wait([told], _LOOK).done:
                checkpoint()  # the client may never read it
        except Cancelled:
            told.cancel()
            raise
        told.result()

    return report
