"""Notify listening clients of edits that this or another process records or decides."""

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

__all__ = ["Notify", "SubscriptionFeed"]

Notify: TypeAlias = Callable[[str | None], Awaitable[None]]
"""Notifies a client that the resource at an address has changed; None: that the list of resources has."""

_ROUND: Final = 0.5
"""Seconds between two polls for changes by other processes."""


class SubscriptionFeed:
    """The listeners of one server: streams, and clients of the older protocol that have subscribed to addresses."""

    def __init__(
        self, change_feed: ChangeFeed, clients: Clients, within: Callable[[Client, tuple[str, ...]], Directories]
    ) -> None:
        """`within`: narrows the directories to a client's roots."""
        self._change_feed = change_feed
        self._clients = clients
        self._within = within
        self._beginning = anyio.Lock()
        self._opening = 0  # streams that are open or being opened
        self._streams: dict[object, tuple[Client, Notify]] = {}
        self._is_on = anyio.Event()  # set while a client listens
        self._is_new = anyio.Event()  # set to poll at once
        self._tasks: TaskGroup | None = None  # tasks that send notifications

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Poll for changes while this context is entered and a client listens."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._poll)
            yield
            self._tasks.cancel_scope.cancel()

    async def _poll(self) -> None:
        while True:
            await self._is_on.wait()
            with anyio.move_on_after(_ROUND):
                await self._is_new.wait()
            self._is_new = anyio.Event()
            if self.has_listeners():
                await self._notify_all()
            else:
                self._is_on = anyio.Event()

    def poll_now(self) -> None:
        """Poll at once if a client listens, without waiting for it."""
        self._is_new.set()

    def has_listeners(self) -> bool:
        """Return whether any client listens."""
        return self._opening > 0 or bool(self._clients.subscribers())

    async def begin(self) -> None:
        """Begin to watch: whatever is recorded or decided from now on is reported."""
        async with self._beginning:  # a second listener must not reset what the first is still to get
            if not self._is_on.is_set():
                await anyio.to_thread.run_sync(self._change_feed.begin)
                self._is_on.set()

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[None]:
        """Count a stream as listening while this context is entered."""
        await self.begin()
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    def listen(self, notify: Notify) -> Callable[[], None]:
        """Send changes to a stream of the current message's client. Return a function that ends that."""
        stream, client = object(), self._clients.current()
        self._streams[stream] = client, notify
        client.streams += 1

        def end() -> None:
            client.streams -= self._streams.pop(stream, None) is not None

        return end

    def notify(self, client: Client, addresses: Iterable[str | None]) -> None:
        """Queue notifications for a client of the older protocol. A client that does not read them delays no other.

        A notification that is already queued is not sent twice.
        """
        client.pending_notifications.update(dict.fromkeys(addresses))
        if client.pending_notifications and not client.is_being_notified and self._tasks is not None:
            client.is_being_notified = True
            self._tasks.start_soon(self._notify_queued, client)

    async def _notify_queued(self, client: Client) -> None:
        try:
            while client.pending_notifications:
                address = next(iter(client.pending_notifications))
                del client.pending_notifications[address]  # a change from now on must be sent again
                if client.notify is not None:
                    await client.notify(address)
        finally:
            client.is_being_notified = False

    async def _notify_all(self) -> None:
        """Send new changes to all streams and to each client that has subscribed."""
        changed = await anyio.to_thread.run_sync(self._change_feed.since)
        if not changed:
            return
        for client, notify in list(self._streams.values()):
            for address in await self._visible_to(client, changed):
                await notify(address)
        for client in self._clients.subscribers():
            visible = await self._visible_to(client, changed)
            self.notify(client, [address for address in visible if address is None or address in client.subscribed])

    async def _visible_to(self, client: Client, changed: Sequence[Changed]) -> list[str | None]:
        """Return the notifications for a client about changes inside its roots; none if its roots are unknown."""
        scope = client.scope
        if scope is None:
            return []
        found = await anyio.to_thread.run_sync(lambda: addresses(changed, self._within(client, scope)))
        return [None, *found] if found else []
