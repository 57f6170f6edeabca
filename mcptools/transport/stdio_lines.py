"""Read standard input for the SDK's `stdio_server` on the event loop, and answer malformed lines.

`docs/decisions/0034-stdio.md` says what the SDK's own input does with malformed lines.
"""

import fcntl
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import anyio
from anyio.abc import ObjectSendStream
from mcp import types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from mcptools.transport.message_checks import INVALID_ID, has_invalid_id, is_text, with_broken_argument_named

__all__ = ["Answers", "StdinLines", "private_stdin"]

_PIECE: Final = 1 << 16
"""Bytes of one read: as much as a pipe holds."""

_MEMBER: Final = r'"(?:jsonrpc|id|method)"\s*:\s*(?:-?(?:0|[1-9][0-9]{0,17})|"[^"\\\x00-\x1f]*")'
_HEAD: Final = re.compile(rf"\s*\{{\s*({_MEMBER}(?:\s*,\s*{_MEMBER})*)\s*,")
"""The members at the start of a message, if a client writes them before anything nested."""


class Answers(ObjectSendStream[SessionMessage]):
    """The stream to the client. A message goes out even if its sender is cancelled, as happens at the end of input."""

    def __init__(self, send: Callable[[SessionMessage], Awaitable[None]], close: Callable[[], Awaitable[None]]) -> None:
        self._send: Final = send
        self._close: Final = close

    async def send(self, item: SessionMessage) -> None:
        """Send a message."""
        with anyio.CancelScope(shield=True):
            await self._send(item)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._close()


class StdinLines(anyio.AsyncFile[str]):
    r"""The lines of standard input. Only b"\n" ends a line, as the protocol says: a CR is white space in JSON."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(sys.stdin)
        self._descriptor: Final = descriptor
        self.answers: Answers  # must be set before the first line is read

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines that are messages, and answer the malformed ones with an error."""
        async for line in self._lines():
            found = _checked(line)
            if isinstance(found, str):
                yield found
                continue
            for refusal in found:
                with suppress(anyio.BrokenResourceError):  # the client has gone, which ends the server
                    await self.answers.send(SessionMessage(refusal))

    async def _lines(self) -> AsyncIterator[bytes]:
        begun: list[bytes] = []  # pieces of the line whose end has not come
        while piece := await self._read():
            *ended, rest = piece.split(b"\n")
            for end in ended:
                yield b"".join([*begun, end])
                begun.clear()
            if rest:
                begun.append(rest)
        yield b"".join(begun)

    async def _read(self) -> bytes:
        with suppress(PermissionError):  # standard input is a file, which is always readable
            await anyio.wait_readable(self._descriptor)
        try:
            return os.read(self._descriptor, _PIECE)
        except OSError:
            return b""  # the client is gone


@contextmanager
def private_stdin() -> Iterator[StdinLines]:
    """Reserve standard input for the server: until it ends, descriptor 0 is empty for child processes."""
    descriptor = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)  # above the standard descriptors
    try:
        with open(os.devnull, "rb") as empty:  # noqa: PTH123 - a device
            os.dup2(empty.fileno(), 0)
        yield StdinLines(descriptor)
    finally:
        os.dup2(descriptor, 0)
        os.close(descriptor)


def _checked(line: bytes) -> str | list[types.JSONRPCError]:
    """Return the message to pass to the SDK, possibly corrected, or the error answers to a malformed line.

    A blank line gets no answer.
    """
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        return _refused(line, error) if line.strip() else []
    if isinstance(message, types.JSONRPCNotification) and has_invalid_id(json.loads(line)):
        return [_error(None, types.INVALID_REQUEST, INVALID_ID)]
    return line.decode()


def _refused(line: bytes, error: ValidationError) -> str | list[types.JSONRPCError]:
    message = _members(line)
    wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
    code, words = types.INVALID_REQUEST, "Invalid request: a line has to be one JSON-RPC 2.0 message"
    if wrong["type"] == "json_invalid":
        call = with_broken_argument_named(message)
        if call is not None and _id(message) is not None:
            return call.decode()
        code, words = types.PARSE_ERROR, f"Parse error: {wrong['msg']}"
    if isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message):
        # A malformed response: the SDK gets an error response in its place, so that our request fails.
        return _error(_id(message), code, words).model_dump_json(by_alias=True)
    ids = [_id(part) for part in message] if isinstance(message, list) else [_id(message)]
    known = [number for number in ids if number is not None]
    return [_error(number, code, words) for number in known or (None,)]


def _error(number: int | str | None, code: int, words: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=types.ErrorData(code=code, message=words))


def _members(line: bytes) -> Any:  # noqa: ANN401 - whatever a client sends
    """Return a line's JSON; if it is malformed, the members at its start that identify the request."""
    text = line.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        head = _HEAD.match(text)
        message: dict[str, Any] = {} if head is None else json.loads(f"{{{head[1]}}}")
        return message if "method" in message else {}  # the id may be that of an answer


def _id(message: object) -> int | str | None:
    """Return the id with which to answer a request, or None if it has no usable one."""
    number = message.get("id") if isinstance(message, dict) else None
    if isinstance(number, bool) or not isinstance(number, int | str) or not is_text(number):
        return None
    return number
