"""Compute once what several pages ask for at the same time: when the store changes, every open page asks again.

An answer is computed for all who asked for it before it began, and for those who ask while it is computed, if the store
is still as it was when it began. Nothing is kept beyond that, so no answer is older than its request or this state.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.responses import Response

__all__ = ["Asked", "SharedAnswers"]

Asked: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""The path of a request, and its parameters in order."""

_AT_ONCE: Final = 2
"""Most answers of one kind that are computed at the same time, so that others and decisions find a processor soon."""


class SharedAnswers:
    """The answers that are being computed. Its methods run on the event loop."""

    def __init__(self, version: Callable[[], str]) -> None:
        """Compute nothing yet. `version`: returns a text that changes with the store."""
        self._version: Final = version
        self._one: Final = CapacityLimiter(1)
        self._limiters: Final[dict[str, CapacityLimiter]] = {}
        self._running: Final[dict[Asked, asyncio.Task[Response]]] = {}
        self._next: Final[dict[Asked, asyncio.Task[Response]]] = {}
        self._began: Final[dict[asyncio.Task[Response], str]] = {}

    def is_busy(self) -> bool:
        """Return whether an answer is being computed."""
        return bool(self._running)

    async def answer(self, asked: Asked, compute: Callable[[], Response]) -> Response:
        """Return the answer to a request that `asked` identifies. Raises what `compute` raises."""
        running = self._running.get(asked)
        if running is not None and self._began.get(running) == await self._now() and not running.done():
            return await asyncio.shield(running)
        following = self._next.get(asked)
        if following is None:
            following = asyncio.create_task(self._after(self._running.get(asked), asked, compute))
            following.add_done_callback(_noticed)
            self._next[asked] = following
        return await asyncio.shield(following)

    async def _after(
        self, running: "asyncio.Task[Response] | None", asked: Asked, compute: Callable[[], Response]
    ) -> Response:
        """Compute an answer when the one before it has ended."""
        if running is not None:
            await asyncio.wait([running])
        this = self._next.pop(asked)
        self._running[asked] = this
        try:
            self._began[this] = await self._now()
            limiter = self._limiters.setdefault(asked[0], CapacityLimiter(_AT_ONCE))
            return await run_sync(compute, limiter=limiter)
        finally:
            self._began.pop(this, None)
            if self._running.get(asked) is this:
                del self._running[asked]

    def _now(self) -> Awaitable[str]:
        # One at a time: it is read faster than a thread starts, and each thread keeps memory of its own.
        return run_sync(self._version, limiter=self._one)


def _noticed(task: "asyncio.Task[Response]") -> None:
    """Take note of an error, which is otherwise reported as unnoticed if all who asked have gone away."""
    if not task.cancelled():
        task.exception()
