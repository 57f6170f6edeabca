"""Send events to the open pages when the store has changed; one task watches the store for all of them.

The task does not read the store while no page is open and no rejection waits.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from time import monotonic
from traceback import print_exception
from typing import Final

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from cli.web.decisions.waiting_rejections import make_due
from cli.web.memory import give_back
from cli.web.server_state import ServerState

__all__ = ["ROUTES", "Watcher"]

_PAUSE: Final = 0.1
"""Seconds between two reads of the store's version; one takes some 50 µs."""

_MAKING: Final = 1.0
"""Seconds after which waiting rejections are tried again, though nothing has changed."""

_LEAST: Final = 0.25
"""Seconds between two events for changes that follow one another; the first one after a quiet time goes out at once."""

_MOST: Final = 1.0
"""Seconds for which an event waits, at most, until the pages have their answers to the one before."""

_TIDYING: Final = 5.0
"""Seconds between two moments in which memory is given back, while the store changes."""

_ALIVE: Final = 15.0
"""Seconds of silence after which a page gets a sign of life: without it, the page takes the stream for dead."""


class Watcher:
    """Polls the version of the store and wakes the event streams when it has changed.

    Each stream has a flag of its own, and nothing is locked, so a page that goes away at any moment holds up no other.
    """

    def __init__(self, server: ServerState, is_busy: Callable[[], bool] = lambda: False) -> None:
        """Watch the store of `server` as long as `run` runs. `is_busy`: returns whether pages are being answered."""
        self._server: Final = server
        self._is_busy: Final = is_busy
        self._version = ""
        self._woken = 0.0
        self._streams: Final[set[asyncio.Event]] = set()
        self._has_ended = False
        self._made = 0.0
        self._tidied = monotonic()
        self._tidy_version = ""

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            if self._streams or self._server.waiting:
                try:
                    await self._look_and_make()
                except Exception as error:  # noqa: BLE001 -- it is reported, and pages must get later events
                    print_exception(error, file=sys.stderr)
            await asyncio.sleep(_PAUSE)

    async def _look_and_make(self) -> None:
        """Wake the streams if the version has changed, and try waiting rejections if it is time."""
        has_changed = await self._look()
        if self._version != self._tidy_version and monotonic() - self._tidied > _TIDYING:
            await run_sync(give_back)
            self._tidied, self._tidy_version = monotonic(), self._version
        if self._server.waiting and (has_changed or monotonic() - self._made > _MAKING):
            self._made = monotonic()
            await run_sync(make_due, self._server)

    def end(self) -> None:
        """End all streams."""
        self._has_ended = True
        self._wake()

    async def stream(self) -> AsyncIterator[str]:
        """Yield the events for one page: the version now, each later one, and a sign of life in between."""
        wake = asyncio.Event()
        self._streams.add(wake)
        try:
            self._woken = 0.0  # a new page begins with the newest version
            await self._look()
            sent = ""
            while not self._has_ended:
                wake.clear()
                if self._version != sent:
                    sent = self._version
                    yield _event("changed", version=sent)
                    continue
                try:
                    await asyncio.wait_for(wake.wait(), _ALIVE)
                except TimeoutError:
                    yield _event("alive")
            yield _event("end")
        finally:
            self._streams.discard(wake)

    async def _look(self) -> bool:
        """Read the version, wake the streams if it is a new one, and return whether it is.

        While agents work fast, changes are put together, so that the pages' requests don't take all of the machine.
        """
        passed = monotonic() - self._woken
        if self._version and (passed < _LEAST or (passed < _MOST and self._is_busy())):
            return False
        version = await run_sync(self._server.version)
        has_changed = version != self._version
        if has_changed:
            self._version, self._woken = version, monotonic()
            self._wake()
        return has_changed

    def _wake(self) -> None:
        for wake in self._streams:
            wake.set()


async def events(request: Request) -> Response:
    """Answer with a stream of server-sent events."""
    watcher: Watcher = request.app.state.watcher
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    return StreamingResponse(watcher.stream(), media_type="text/event-stream")


def _event(kind: str, **data: str) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"


ROUTES: Final[list[Route]] = [Route("/api/events", events, methods=["GET"])]
