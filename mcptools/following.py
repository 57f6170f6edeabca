"""Following: while somebody listens, tells of what anybody records or decides, in this process or in another."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import anyio
import anyio.to_thread

from mcptools.clients import Clients
from mcptools.news import News

__all__ = ["Following", "Telling"]

Telling: TypeAlias = Callable[[str | None], Awaitable[None]]
"""Tells somebody that an address reads anew; None: that something is listed anew."""

_ROUND: Final = 0.5
"""Seconds between two looks for what others have done."""


class Following:
    """Who listens to one server: on streams, or by having subscribed to addresses on a connection of the older era."""

    def __init__(self, news: News, clients: Clients, tell_streams: Telling) -> None:
        self._news = news
        self._clients = clients
        self._tell_streams = tell_streams
        self._streams = 0
        self._is_on = anyio.Event()  # set while somebody listens
        self._telling = anyio.Lock()

    async def run(self) -> None:
        """Look again and again, for as long as the server runs; while nobody listens, wait."""
        while True:
            await self._is_on.wait()
            await anyio.sleep(_ROUND)
            if self.is_heard():
                await self.tell()
            else:
                self._is_on = anyio.Event()

    def is_heard(self) -> bool:
        """Return whether anybody listens."""
        return self._streams > 0 or bool(self._clients.subscribers())

    async def begin(self) -> None:
        """Make whatever is recorded or decided from now on news."""
        if not self._is_on.is_set():
            await anyio.to_thread.run_sync(self._news.begin)
            self._is_on.set()

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[None]:
        """Count a stream as listening while this is entered."""
        await self.begin()
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    async def tell(self) -> None:
        """Tell the news, if there are any, to streams and to each connection that has subscribed."""
        async with self._telling:
            addresses = await anyio.to_thread.run_sync(self._news.since)
            if not addresses:
                return
            subscribers = [(client, client.tell) for client in self._clients.subscribers() if client.tell is not None]
            for tell in (self._tell_streams, *(tell for _, tell in subscribers)):
                await tell(None)
            for address in addresses:
                await self._tell_streams(address)
                for client, tell in subscribers:
                    if address in client.subscribed:
                        await tell(address)
