"""Standard streams: the protocol's messages, one a line, between the server and the client that has started it.

These are the streams that the SDK serves on, in place of its own, which have a thread read each line, another write
each, and a third flush it: as much time as all else that the SDK does in a call.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Final, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from mcptools.wire import Wire, can_be_waited_for, standard_streams

__all__ = ["Incoming", "Outgoing", "are_waitable", "messages"]


def are_waitable() -> bool:
    """Return whether `messages` can serve on what standard input and output are."""
    return sys.stdin is not None and sys.stdout is not None and can_be_waited_for(0, 1)


@asynccontextmanager
async def messages() -> AsyncIterator[tuple["Incoming", "Outgoing"]]:
    """Give the messages on standard input, and where those for standard output go."""
    with standard_streams() as (reading, writing), closing(Wire(reading, writing)) as wire:
        yield Incoming(wire), Outgoing(wire)


class _End:
    """One end of what messages take."""

    def __init__(self, wire: Wire) -> None:
        self._wire: Final = wire

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Let go of it."""


class Incoming(_End):
    """Messages from the client."""

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, or what is wrong with it. Raises anyio.EndOfStream."""
        line = await self._wire.line()
        if line is None:
            raise anyio.EndOfStream
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line.decode(errors="replace"), by_name=False))
        except ValueError as error:
            return error

    def __aiter__(self) -> Self:
        """Return itself."""
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        """Return what `receive` does."""
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class Outgoing(_End):
    """Messages to the client."""

    async def send(self, item: SessionMessage) -> None:
        """Send a message. Raises anyio.BrokenResourceError if the client has gone."""
        await self._wire.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def aclose(self) -> None:
        """Wait until everything is sent."""
        await self._wire.written()
