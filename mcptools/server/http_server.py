"""The web: the server over streamable HTTP, for programs of this machine that know its token.

A page in a browser can send requests to any port of the machine it runs on, and can make a name of its own mean that
machine. So whatever the SDK checks, each request is checked here first: that it was addressed to this machine by a
name of its own, that no page of another origin sent it, and that it carries the token.
"""

import asyncio
import errno
import functools
import hmac
import json
import logging
import os
import re
import resource
import sys
from collections.abc import Awaitable, Callable, Collection, MutableMapping, Sequence
from contextlib import suppress
from socket import socket
from typing import Any, Final, TypeAlias

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import INVALID_REQUEST
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from mcptools.model.limits import ServerLimits
from mcptools.transport.message_checks import INVALID_ID, has_invalid_id, with_broken_argument_named

__all__ = ["AuthGuard", "BodyValidator", "application", "names_of", "serve"]

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
_App: TypeAlias = Callable[[_Message, _Receive, _Send], Awaitable[None]]

_PATH: Final = "/mcp"
_CASELESS: Final = {b"host", b"origin"}
_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")
_USUAL_PORT: Final = 80
"""The port that clients leave out."""

_CHALLENGE: Final = ((b"www-authenticate", b"Bearer"),)
"""What says which token is missing."""

_GRACE: Final = 1
"""Seconds that requests have which are not over when the server is to end."""

_BACKLOG: Final = 128
"""Connections that wait to be accepted at most."""

_TOO_MANY: Final = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

_NO_DESCRIPTOR: Final = {errno.EMFILE, errno.ENFILE}

_NO_MORE_FILES: Final = (
    b"editledger: too many open files: no connection is accepted until some are closed. Raise the limit with "
    b"`ulimit -n`, or lower --max-connections.\n"
)

_QUIET: Final = 60
"""Seconds between two of these lines: the loop comes upon that over and over."""

_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""What every escape of half a character begins with, and those of some whole ones."""

_NO_NUMBER: Final = re.compile(rb'"id"\s*:\s*(?:[ntf{\[]|-?[0-9]+[.eE])')
"""What every number of a request that is none begins with, and what else has that name."""

_SPELT: Final = 6
"""Characters that a byte of a file takes at most in a request: an escape of JSON."""


class AuthGuard:
    """What stands before the application and lets nobody through whom it can't trust."""

    def __init__(self, app: _App, names: Collection[str], token: str | None) -> None:
        """Guard `app`. `names`: those of the server, as `names_of` gives them; `token`: None: clients send none."""
        self._app = app
        self._hosts = {name.encode() for name in names}
        self._origins = {b"http://" + host for host in self._hosts}
        self._wanted = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing else is spoken here; the server closes the connection
        sent: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            sent.setdefault(name.lower(), []).append(value)
        refusal = self._refusal(sent)
        if refusal is None:
            # What is compared without case here, the SDK compares as it is.
            headers = [
                (name, value.lower() if name.lower() in _CASELESS else value) for name, value in scope["headers"]
            ]
            await self._app({**scope, "headers": headers}, receive, send)
            return
        status, words = refusal
        others = _CHALLENGE if status == 401 else ()  # noqa: PLR2004 - the code that a challenge goes with
        await _answer(send, status, {"error": words}, others)

    def _refusal(self, sent: MutableMapping[bytes, list[bytes]]) -> tuple[int, str] | None:
        """Return status and words of why a request is not served; None: it is."""
        hosts = sent.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "The Host header does not name this machine and port"
        if any(origin.lower() not in self._origins for origin in sent.get(b"origin", [])):
            return 403, "The Origin header names another site"
        if self._wanted is not None:
            given = sent.get(b"authorization", [])
            if len(given) != 1 or not hmac.compare_digest(_canonical(given[0]), self._wanted):
                return 401, "The Authorization header does not hold this server's bearer token"
        return None


class BodyValidator:
    """What stands before the application and reads what the SDK would take for something else than it is.

    A call that holds half a character is let through, for its tool to refuse: the SDK takes it for no JSON, and a
    model could not be told what to mend. One with a number that is none is refused: the SDK takes it for a
    notification, and whoever has sent it would wait for ever.
    """

    def __init__(self, app: _App, most: int) -> None:
        """Stand before `app`, which refuses bodies of more than `most` bytes."""
        self._app = app
        self._most = most

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Have a request served, or refuse it."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        come = [await receive()]
        size = len(come[0].get("body", b""))
        while come[-1].get("more_body") and size <= self._most:
            come.append(await receive())
            size += len(come[-1].get("body", b""))
        if come[-1]["type"] == "http.disconnect":
            return  # who was sending it has gone; the SDK would take that for a fault, and log it
        if size <= self._most:
            said = _said(b"".join(message.get("body", b"") for message in come))
            if has_invalid_id(said):
                error = {"code": INVALID_REQUEST, "message": INVALID_ID}
                await _answer(send, 400, {"jsonrpc": "2.0", "id": None, "error": error})
                return
            body = with_broken_argument_named(said)
            if body is not None:
                headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
                headers.append((b"content-length", str(len(body)).encode()))
                scope = {**scope, "headers": headers}
                come = [{"type": "http.request", "body": body, "more_body": False}]
        again = iter(come)

        async def received() -> _Message:
            for message in again:
                return message
            return await receive()

        await self._app(scope, received, send)


def _said(body: bytes) -> object:
    """Return what a body says that may hold half a character, or no number; None: it is no JSON, or holds neither."""
    if _HALF.search(body) is None and _NO_NUMBER.search(body) is None:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


async def _answer(send: _Send, status: int, said: object, others: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """Answer a request with JSON. `others`: headers beside those that say what it is."""
    body = json.dumps(said).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *others]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class _Config(uvicorn.Config):
    """How connections are served, with the limits that uvicorn has none of."""

    def __init__(self, app: AuthGuard, limits: ServerLimits) -> None:
        super().__init__(
            app,
            http=_Connection,
            ws="none",
            backlog=_BACKLOG,
            log_level="error",
            server_header=False,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=_GRACE,
        )
        self.request_seconds: Final = limits.request_seconds
        # A call opens files of the store, so connections may not take all descriptors that this process may have.
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.max_connections: Final = (
            limits.max_connections if soft == resource.RLIM_INFINITY else min(limits.max_connections, max(1, soft // 2))
        )


class _Connection(H11Protocol):
    """A connection that is closed when a request takes too long to arrive, or when there are too many connections.

    The time for a request runs from the connection, or from the first byte of a later request, until headers and body
    are complete; bytes that arrive don't extend it. While an answer is made or streamed, it does not run. uvicorn
    itself only limits the time between an answer and the next byte (timeout_keep_alive).
    """

    def __init__(
        self,
        config: _Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._request_seconds = config.request_seconds
        self._max_connections = config.max_connections
        self._deadline: asyncio.TimerHandle | None = None  # None: no request is arriving

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn itself
        super().connection_made(transport)
        if len(self.connections) > self._max_connections:
            transport.write(_TOO_MANY)
            transport.close()
        else:
            self._set_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # uvicorn declares its cycle without the None that it is before the first request.
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:  # type: ignore[redundant-expr]  # see above
            if self._deadline is None and not self.transport.is_closing():
                self._set_deadline()
        else:
            self._clear_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(self._request_seconds, self._end)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None

    def _end(self) -> None:
        """Close the connection, unless it waits for this server to take in what has arrived."""
        if self.transport.is_reading():
            self.transport.abort()
        else:
            self._set_deadline()


class _Web(uvicorn.Server):
    """A server that waits for no client when it is to end, and tells of none that it left."""

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to accept connections."""
        asyncio.get_running_loop().set_exception_handler(_LoopExceptionHandler())
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """End, with what is under way as far as it comes to an end by itself."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


class _LoopExceptionHandler:
    """The event loop's exception handler: of descriptors that have run out, one line instead of thousands."""

    def __init__(self) -> None:
        self._quiet_until = 0.0  # in the loop's time

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Say what went wrong. The loop goes on by itself: it accepts connections again a second later."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _NO_DESCRIPTOR:
            loop.default_exception_handler(context)
        elif loop.time() >= self._quiet_until:
            self._quiet_until = loop.time() + _QUIET
            with suppress(OSError):
                os.write(2, _NO_MORE_FILES)


def _canonical(header: bytes) -> bytes:
    """Return an Authorization header with its scheme spelt as it is compared."""
    scheme, _, rest = header.partition(b" ")
    return (b"Bearer " if scheme.lower() == b"bearer" else scheme + b" ") + rest.strip()


def names_of(host: str, port: int) -> list[str]:
    """Return as what a server that listens at an address of this machine can be addressed, as Host headers say it."""
    names = dict.fromkeys((*_LOCAL, _spelt(host)))
    return [*(f"{name}:{port}" for name in names), *(names if port == _USUAL_PORT else ())]


def _spelt(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def application(server: MCPServer, host: str, port: int, token: str | None, limits: ServerLimits) -> AuthGuard:
    """Return what serves at an address of this machine, with all that stands before it. `token`: as a Guard has it."""
    names = names_of(host, port)
    most = _SPELT * limits.max_file_bytes + (1 << 20)
    app = server.streamable_http_app(
        streamable_http_path=_PATH,
        host=host,
        max_request_body_size=most,
        transport_security=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        ),
    )
    return AuthGuard(BodyValidator(app, most), names, token)


def serve(server: MCPServer, listener: socket, token: str | None, limits: ServerLimits) -> None:
    """Serve at a socket that listens already, until interrupted. `token`: as a Guard has it."""
    host, port = listener.getsockname()[:2]
    guarded = application(server, host, port, token, limits)
    sys.stderr.write(f"editledger: serving at http://{_spelt(host)}:{port}{_PATH}\n")
    sys.stderr.flush()
    web = _Web(_Config(guarded, limits))
    anyio.run(functools.partial(web.serve, sockets=[listener]))
