"""Standard input for the SDK's `stdio_server`: lines that the event loop waits for, malformed ones answered.

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
"""The members that a message begins with, as far as clients write them plainly."""


class Answers(ObjectSendStream[SessionMessage]):
    """The stream to the client. What is sent goes out even if the sender is cancelled, as it is at the end of input."""

    def __init__(self, send: Callable[[SessionMessage], Awaitable[None]], close: Callable[[], Awaitable[None]]) -> None:
        self._send: Final = send
        self._close: Final = close

    async def send(self, item: SessionMessage) -> None:
        """Send a message."""
        with anyio.CancelScope(shield=True):
            await self._send(item)

    async def aclose(self) -> None:
        """Send no more."""
        await self._close()


class StdinLines(anyio.AsyncFile[str]):
    r"""Lines that end in b"\n" alone, as the protocol says: a CR is white space of JSON."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(sys.stdin)
        self._descriptor: Final = descriptor
        self.answers: Answers  # to be set before the first line is read

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines that are messages, and answer the others."""
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
        with suppress(PermissionError):  # a file, which an event loop can't wait for and need not
            await anyio.wait_readable(self._descriptor)
        try:
            return os.read(self._descriptor, _PIECE)
        except OSError:
            return b""  # the client has gone, and what it had not sent is lost


@contextmanager
def private_stdin() -> Iterator[StdinLines]:
    """Give standard input to the server alone: until the end, descriptor 0 is empty for everything else that runs."""
    descriptor = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)  # no standard one
    try:
        with open(os.devnull, "rb") as empty:  # noqa: PTH123 - a device
            os.dup2(empty.fileno(), 0)
        yield StdinLines(descriptor)
    finally:
        os.dup2(descriptor, 0)
        os.close(descriptor)


def _checked(line: bytes) -> str | list[types.JSONRPCError]:
    """Return the line if it is a message, another message for the SDK in its place, or the answers: none to a blank."""
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
        # It answers a request of ours: that fails, and the client gets no answer to an answer.
        return _error(_id(message), code, words).model_dump_json(by_alias=True)
    ids = [_id(part) for part in message] if isinstance(message, list) else [_id(message)]
    known = [number for number in ids if number is not None]
    return [_error(number, code, words) for number in known or (None,)]


def _error(number: int | str | None, code: int, words: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=types.ErrorData(code=code, message=words))


def _members(line: bytes) -> Any:  # noqa: ANN401 - whatever a client sends
    """Return what a line says; of malformed JSON, the members that say which request it is."""
    text = line.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        head = _HEAD.match(text)
        message: dict[str, Any] = {} if head is None else json.loads(f"{{{head[1]}}}")
        return message if "method" in message else {}  # the id may be that of an answer


def _id(message: object) -> int | str | None:
    """Return the id by which a request is answered; None: it can't be told."""
    number = message.get("id") if isinstance(message, dict) else None
    if isinstance(number, bool) or not isinstance(number, int | str) or not is_text(number):
        return None
    return number
