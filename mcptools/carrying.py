"""Carrying out: a call's work is done on a thread, so that no other call waits for the disk that it may wait for."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, Generic, TypeAlias, TypeVar

import anyio

from mcptools.watching import Watch, checkpoint

__all__ = ["Begun", "Tell"]

ResultT = TypeVar("ResultT")

Tell: TypeAlias = Callable[[float, float | None, str], Awaitable[None]]
"""Tells a client, from the event loop, what a `Report` says."""

_MOST: Final = 40
"""Calls of one kind that are carried out at once; others wait for their turn."""

_LOOK: Final = 0.1
"""Seconds after which an answer that waits for a report to be taken looks whether it is still wanted."""


class _Job(Generic[ResultT]):
    """What a call wants done, and what came of it."""

    def __init__(self, work: Callable[[], ResultT], watch: Watch, end: Callable[[], object]) -> None:
        """`end`: is called when it is done, on the thread that did it."""
        self._work = work
        self._watch = watch
        self._end = end
        self._results: list[ResultT] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do it, unless it is not wanted any more before it has begun."""
        try:
            self._watch.check()
            self._results.append(self._watch.run(self._work))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
            self._error = error
        finally:
            self._end()

    def result(self) -> ResultT:
        """Return what came of it. Raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._results[0]


class _Crew:
    """Threads, as many as there ever was work for at once, up to a limit.

    An executor's way from `submit` to the thread takes twice as long, in which a client waits.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: SimpleQueue[_Job[Any]] = SimpleQueue()
        self._lock = Lock()
        self._threads = 0
        self._wanted = 0  # jobs that are not done

    def do(self, job: _Job[Any]) -> None:
        """Have a job done."""
        with self._lock:
            self._wanted += 1
            is_short = self._threads < min(self._wanted, self._most)
            self._threads += is_short
        if is_short:
            # Whoever wants a job done waits for its end, so nothing is under way when the process ends.
            Thread(target=self._work, name="call", daemon=True).start()
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            self._jobs.get().run()
            with self._lock:
                self._wanted -= 1


_reading: Final = _Crew(_MOST)
_changing: Final = _Crew(_MOST)  # all of which may wait for another process


class Begun(Generic[ResultT]):
    """A call whose work is being done on a thread. Of one event loop."""

    def __init__(self, work: Callable[[], ResultT], tell: Tell | None = None, *, changes: bool = False) -> None:
        """Begin the work.

        `tell`: gets reports of progress; None: nobody wants to know. `changes`: it may wait for its turn to write,
        which is to keep no thread from those that only read.
        """
        self._loop: Final = asyncio.get_running_loop()
        self._reports: Final = None if tell is None else _Reports(tell, self._loop)
        self._watch: Final = Watch() if self._reports is None else Watch(self._reports, self._reports.settle)
        self._over: Final = anyio.Event()
        self._job: Final = _Job(work, self._watch, lambda: self._loop.call_soon_threadsafe(self._end))
        self._when_over: Callable[[], object] = lambda: None
        (_changing if changes else _reading).do(self._job)

    @property
    def is_over(self) -> bool:
        """Return whether the work has come to its end."""
        return self._over.is_set()

    def when_over(self, act: Callable[[], object]) -> None:
        """Have something done on the event loop at the end of the work, which is not over yet."""
        self._when_over = act

    async def result(self) -> ResultT:
        """Return what the work returns, and raise what it raises. If the caller is cancelled, it is abandoned."""
        try:
            await self._over.wait()
            if self._reports is not None:
                await self._reports.taken()
        except anyio.get_cancelled_exc_class():
            await self.abandon()
            raise
        return self._job.result()

    async def abandon(self) -> None:
        """Tell the work that nobody wants it any more, and wait for its end, whether or not the caller is cancelled.

        It may be done all the same.
        """
        self._watch.cancel()
        with anyio.CancelScope(shield=True):
            await self._over.wait()

    def _end(self) -> None:
        self._over.set()
        self._when_over()


class _Reports:
    """Tells the client of progress, from a call's thread, which may hold the writer's lock and waits for no client.

    What comes while the last report has not been taken is left out.
    """

    def __init__(self, tell: Tell, loop: asyncio.AbstractEventLoop) -> None:
        self._tell = tell
        self._loop = loop
        self._last: Future[None] | None = None

    def __call__(self, done: float, total: float | None, words: str) -> None:
        if self._last is None or self._last.done():
            self._last = asyncio.run_coroutine_threadsafe(self._telling(done, total, words), self._loop)

    async def _telling(self, done: float, total: float | None, words: str) -> None:
        await self._tell(done, total, words)

    async def taken(self) -> None:
        """Wait until the last report is taken: what comes behind the answer is heard by nobody."""
        if self._last is not None:
            await asyncio.wait([asyncio.wrap_future(self._last)])

    def settle(self) -> None:
        """Wait for the same on the call's thread, which may hold no lock then.

        Raises Cancelled if nobody waits for the call any more.
        """
        while self._last is not None and not wait([self._last], _LOOK).done:
            checkpoint()  # the client may never read it
