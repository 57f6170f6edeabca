"""Following: while somebody listens, tells of what anybody records or decides, in this process or in another."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import anyio.to_thread

from mcptools.feeds.change_feed import Changed, ChangeFeed, addresses
from mcptools.files.workspaces import Directories
from mcptools.server.clients import Client, Clients

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

__all__ = ["SubscriptionFeed", "Telling"]

Telling: TypeAlias = Callable[[str | None], Awaitable[None]]
"""Tells somebody that an address reads anew; None: that something is listed anew."""

_ROUND: Final = 0.5
"""Seconds between two looks for what others have done."""


class SubscriptionFeed:
    """Who listens to one server: on streams, or by having subscribed to addresses on a connection of the older era."""

    def __init__(
        self, change_feed: ChangeFeed, clients: Clients, within: Callable[[Client, tuple[str, ...]], Directories]
    ) -> None:
        """`within`: narrows the directories to a client's roots."""
        self._change_feed = change_feed
        self._clients = clients
        self._within = within
        self._beginning = anyio.Lock()
        self._opening = 0  # streams that are there, or are about to be
        self._streams: dict[object, tuple[Client, Telling]] = {}
        self._is_on = anyio.Event()  # set while somebody listens
        self._is_new = anyio.Event()  # set where there are news for sure
        self._tasks: TaskGroup | None = None  # of who is being told something

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look again and again while this is entered, as long as somebody listens."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._look)
            yield
            self._tasks.cancel_scope.cancel()

    async def _look(self) -> None:
        while True:
            await self._is_on.wait()
            with anyio.move_on_after(_ROUND):
                await self._is_new.wait()
            self._is_new = anyio.Event()
            if self.has_listeners():
                await self._tell()
            else:
                self._is_on = anyio.Event()

    def poll_now(self) -> None:
        """Look at once, where somebody listens, and don't wait for that."""
        self._is_new.set()

    def has_listeners(self) -> bool:
        """Return whether anybody listens."""
        return self._opening > 0 or bool(self._clients.subscribers())

    async def begin(self) -> None:
        """Make whatever is recorded or decided from now on news."""
        async with self._beginning:  # what the first listener is to hear of must not be no news for the second
            if not self._is_on.is_set():
                await anyio.to_thread.run_sync(self._change_feed.begin)
                self._is_on.set()

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[None]:
        """Count a stream as listening while this is entered."""
        await self.begin()
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    def hear(self, tell: Telling) -> Callable[[], None]:
        """Have the news told on a stream of the client whose message is being answered. Return what ends that."""
        stream, client = object(), self._clients.current()
        self._streams[stream] = client, tell
        client.streams += 1

        def end() -> None:
            client.streams -= self._streams.pop(stream, None) is not None

        return end

    def tell(self, client: Client, addresses: Iterable[str | None]) -> None:
        """Have a client of the older era told, as soon as it takes that: who does not read holds up nobody.

        What it has still to be told it is told once.
        """
        client.pending_notifications.update(dict.fromkeys(addresses))
        if client.pending_notifications and not client.is_being_told and self._tasks is not None:
            client.is_being_told = True
            self._tasks.start_soon(self._tell_all, client)

    async def _tell_all(self, client: Client) -> None:
        try:
            while client.pending_notifications:
                address = next(iter(client.pending_notifications))
                del client.pending_notifications[address]  # what changes from now on is to be told again
                if client.tell is not None:
                    await client.tell(address)
        finally:
            client.is_being_told = False

    async def _tell(self) -> None:
        """Tell the news, if there are any, to streams and to each connection that has subscribed."""
        changed = await anyio.to_thread.run_sync(self._change_feed.since)
        if not changed:
            return
        for client, tell in list(self._streams.values()):
            for address in await self._heard_by(client, changed):
                await tell(address)
        for client in self._clients.subscribers():
            heard = await self._heard_by(client, changed)
            self.tell(client, [address for address in heard if address is None or address in client.subscribed])

    async def _heard_by(self, client: Client, changed: Sequence[Changed]) -> list[str | None]:
        """Return what a client is told of changes: of none that lie outside its roots, or may do so."""
        scope = client.scope
        if scope is None:
            return []
        found = await anyio.to_thread.run_sync(lambda: addresses(changed, self._within(client, scope)))
        return [None, *found] if found else []
