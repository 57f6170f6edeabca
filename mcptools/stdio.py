"""Standard streams: the protocol's messages, one a line, between the server and the client that has started it.

These are the streams that the SDK serves on, in place of its own, which have a thread read each line, another write
each, and a third flush it: as much time as all else that the SDK does in a call.
"""

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from typing import Any, Final, Self

import anyio
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from mcptools.display import shown
from mcptools.wire import Wire, can_be_waited_for, standard_streams

__all__ = [
    "HALF_CHARACTER",
    "HalfCharacter",
    "Incoming",
    "Outgoing",
    "are_waitable",
    "half_character",
    "is_unnumbered",
    "messages",
    "unnumbered",
]

HALF_CHARACTER: Final = "editledger.half_character"
"""Where a request over HTTP has its HalfCharacter, in its scope."""

_MEMBER: Final = r'"(?:jsonrpc|id|method)"\s*:\s*(?:-?(?:0|[1-9][0-9]{0,17})|"[^"\\\x00-\x1f]*")'
_HEAD: Final = re.compile(rf"\s*\{{\s*({_MEMBER}(?:\s*,\s*{_MEMBER})*)\s*,")
"""The members that a message begins with, as far as any client writes them plainly."""


def are_waitable() -> bool:
    """Return whether `messages` can serve on what standard input is. As standard output anything will do."""
    return sys.stdin is not None and sys.stdout is not None and can_be_waited_for(0)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfCharacter:
    """Said of a call as what its transport knows of it: its arguments hold half a character, which no file can hold."""

    where: str  # names of arguments, and numbers of items, with dots between them


class Incoming(_End):
    """Messages from the client."""

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message; a line that is none is answered. Raises anyio.EndOfStream."""
        while (line := await self._wire.line()) is not None:
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                if not isinstance(message, JSONRPCNotification) or "id" not in json.loads(line):
                    return SessionMessage(message)
                found: SessionMessage | list[JSONRPCError] = [unnumbered()]
            except ValidationError as error:
                found = _read_anew(line, error)
            if isinstance(found, SessionMessage):
                return found
            for refused in found:
                with suppress(anyio.BrokenResourceError):  # the client has gone, and no more lines come
                    await self._wire.write(_spelt(refused))
        raise anyio.EndOfStream

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
        await self._wire.write(_spelt(item.message))

    async def aclose(self) -> None:
        """Wait until everything is sent."""
        await self._wire.written()


def _spelt(message: JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


# ---- lines that the SDK can't read


def is_unnumbered(said: object) -> bool:
    """Return whether a message is a request with a number that is none: the SDK would take it for a notification."""
    if not isinstance(said, dict) or not {"method", "id"}.issubset(said):
        return False
    return isinstance(said["id"], bool) or not isinstance(said["id"], int | str)


def unnumbered() -> JSONRPCError:
    """Return the answer to such a request."""
    words = "Invalid request: an id has to be a string or a whole number"
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=INVALID_REQUEST, message=words))


def _read_anew(line: bytes, error: ValidationError) -> SessionMessage | list[JSONRPCError]:
    """Return a message instead of a line that was refused, or the answers to it: none to a blank one.

    The SDK would pass the line over, and whoever has sent it would wait for ever.
    """
    if not line.strip():
        return []
    said = _said(line)
    wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if wrong["type"] != "json_invalid":
        refusal = ErrorData(code=INVALID_REQUEST, message="Invalid request: a line has to be one JSON-RPC 2.0 message")
    else:
        refusal = ErrorData(code=PARSE_ERROR, message=f"Parse error: {wrong['msg']}")
        if (half := half_character(said)) is not None and (number := _number(said)) is not None:
            request = JSONRPCRequest(jsonrpc="2.0", id=number, method=said["method"], params=said["params"])
            return SessionMessage(request, ServerMessageMetadata(request_context=half))
    if isinstance(said, dict) and "method" not in said and ("result" in said or "error" in said):
        # Its number is one of ours: what has asked the client is told, and the client is not.
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=_number(said), error=refusal))
    numbers = [_number(part) for part in said] if isinstance(said, list) else [_number(said)]
    known = [number for number in numbers if number is not None]
    return [JSONRPCError(jsonrpc="2.0", id=number, error=refusal) for number in known or (None,)]


def _said(line: bytes) -> Any:  # noqa: ANN401 - whatever a client sends
    """Return what a line says; of what is no JSON, the members that say which request it is."""
    text = line.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        head = _HEAD.match(text)
        said: dict[str, Any] = {} if head is None else json.loads(f"{{{head[1]}}}")
        return said if "method" in said else {}  # the number may be that of an answer


def _number(said: object) -> int | str | None:
    """Return by which number a request is to be answered; None: nobody can say."""
    number = said.get("id") if isinstance(said, dict) else None
    if isinstance(number, bool) or not isinstance(number, int | str) or not _is_text(number):
        return None
    return number


def half_character(said: object) -> HalfCharacter | None:
    """Return where a call's arguments hold half a character; None: nowhere, or the rest of the message does as well."""
    match said:
        case {"jsonrpc": "2.0", "method": "tools/call", "params": {"arguments": dict(arguments), **others}, **rest}:
            return _first_half(arguments) if _is_text([others, rest]) else None
    return None


def _first_half(arguments: dict[str, Any]) -> HalfCharacter | None:
    found: list[tuple[str, object]] = [("", arguments)]
    while found:
        where, value = found.pop()
        match value:
            case str() if not _is_text(value):
                return HalfCharacter(where=where)
            case dict():
                items = [(f"{where}.{shown(name)}".lstrip("."), name, item) for name, item in value.items()]
                found += reversed([(place, part) for place, name, item in items for part in (name, item)])
            case list():
                found += reversed([(f"{where}.{number}", item) for number, item in enumerate(value)])
    return None


def _is_text(value: object) -> bool:
    """Return whether no text in what JSON said holds half a character."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True
