"""Limit the connections of strangers: whoever sends no request with the cookie can't use up the server's connections.

Any process of the machine can connect. A connection counts as a stranger's until a request on it has the cookie and the
page's secret. It is closed if that takes too long, and the oldest of them is closed when there are too many.
"""

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

from cli.web.guard import Client

__all__ = ["Strangers"]

_MOST: Final = 50
"""Connections of strangers; a browser of the user's own opens at most six, and uses each at once."""

_SECONDS: Final = 10
"""How long a connection may stay a stranger's."""


class Strangers:
    """The open connections on which no request was let in."""

    def __init__(self) -> None:
        """Begin with none."""
        self._open: Final[dict[Client | None, tuple[asyncio.Transport, asyncio.TimerHandle]]] = {}  # the oldest first

    def protocol(self) -> type[H11Protocol]:
        """Return the class of the server's connections: each is a stranger's at first."""
        strangers = self

        class Connection(H11Protocol):
            """A connection that is counted."""

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.Transport)  # noqa: S101 -- it is a stream's
                super().connection_made(transport)
                strangers.add(self.client, transport)

            def connection_lost(self, exc: Exception | None) -> None:
                strangers.forget(self.client)
                super().connection_lost(exc)

        return Connection

    def add(self, client: Client | None, transport: asyncio.Transport) -> None:
        """Count a new connection; close the oldest stranger's if there are too many."""
        self.forget(client)
        timer = asyncio.get_running_loop().call_later(_SECONDS, transport.abort)
        self._open[client] = transport, timer
        if len(self._open) > _MOST:
            oldest = next(iter(self._open))
            transport, _ = self._open[oldest]
            self.forget(oldest)
            transport.abort()

    def forget(self, client: Client | None) -> None:
        """Count a connection no longer: a request on it was let in, or it is closed."""
        _, timer = self._open.pop(client, (None, None))
        if timer is not None:
            timer.cancel()
