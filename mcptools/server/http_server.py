"""Serve over streamable HTTP, for programs on this machine that have the server's token.

A page in a browser can send requests to any port of the machine it runs on, and can make its own host name resolve to
that machine. So in addition to the SDK's checks, each request is first checked here: that its Host header names this
machine, that no page of another origin sent it, and that it has the token.
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
from mcptools.server.request_client import CLIENT_NAME, NAME_IN_SCOPE
from mcptools.transport.message_checks import INVALID_ID, has_invalid_id, with_broken_argument_named

__all__ = ["AuthGuard", "BodyValidator", "ClientAddresses", "application", "names_of", "serve"]

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
_App: TypeAlias = Callable[[_Message, _Receive, _Send], Awaitable[None]]

_PATH: Final = "/mcp"
_CASELESS: Final = {b"host", b"origin"}
_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")
_USUAL_PORT: Final = 80
"""The default port, which clients leave out of the Host header."""

_CHALLENGE: Final = ((b"www-authenticate", b"Bearer"),)
"""The header that says which kind of token is missing."""

_GRACE: Final = 1
"""Seconds that running requests get when the server ends."""

_BACKLOG: Final = 128
"""Connections that may wait to be accepted."""

_TOO_MANY: Final = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

_NO_DESCRIPTOR: Final = {errno.EMFILE, errno.ENFILE}

_NO_MORE_FILES: Final = (
    b"editledger: too many open files: no connection is accepted until some are closed. Raise the limit with "
    b"`ulimit -n`, or lower --max-connections.\n"
)

_QUIET: Final = 60
"""Seconds between two of these lines, because the event loop reports the error again and again."""

_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""The beginning of an escape that may be half a surrogate pair; pairs match it too."""

_INVALID_ID: Final = re.compile(rb'"id"\s*:\s*(?:[ntf{\[]|-?[0-9]+[.eE])')
"""The beginning of a member `id` that is neither a string nor a whole number; nested members match it too."""

_NO_NAME: Final = (
    f"A client's address is {_PATH}/NAME: NAME begins with a letter or digit, has at most 128 letters, digits, and .-_~"
)

_HOW_TO_NAME: Final = (
    "editledger: give each client an address of its own: add a NAME that no other client uses, as in {}/NAME. "
    "Otherwise a client without sessions can't use Undo, and nothing that it reads counts as read.\n"
)

_ESCAPED_BYTE: Final = 6
"""Characters that one byte of a file takes at most in a request: a JSON escape."""


class AuthGuard:
    """An ASGI middleware that refuses requests with a wrong host, origin or token."""

    def __init__(self, app: _App, names: Collection[str], token: str | None) -> None:
        """Guard `app`. `names`: the server's, as from `names_of`; `token`: None if clients need to send none."""
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
            return  # no other protocol is supported; the server closes the connection
        sent: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            sent.setdefault(name.lower(), []).append(value)
        refusal = self._refusal(sent)
        if refusal is None:
            # These headers are compared without case here, but the SDK compares them exactly.
            headers = [
                (name, value.lower() if name.lower() in _CASELESS else value) for name, value in scope["headers"]
            ]
            await self._app({**scope, "headers": headers}, receive, send)
            return
        status, words = refusal
        others = _CHALLENGE if status == 401 else ()  # noqa: PLR2004 - the code that a challenge goes with
        await _answer(send, status, {"error": words}, others)

    def _refusal(self, sent: MutableMapping[bytes, list[bytes]]) -> tuple[int, str] | None:
        """Return the status and reason with which a request is refused, or None if it is served."""
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


class ClientAddresses:
    """An ASGI middleware that takes the name of a client from the address that it calls, `/mcp/NAME`.

    Versions of the protocol without sessions have nothing else that distinguishes two clients of one program. The name
    admits to nothing: the token does that.
    """

    def __init__(self, app: _App) -> None:
        self._app = app

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Serve a request, or refuse one with a name that no client can have."""
        name = str(scope.get("path", "")).removeprefix(f"{_PATH}/")
        if scope["type"] != "http" or not name or name == scope["path"]:
            await self._app(scope, receive, send)
            return
        if CLIENT_NAME.fullmatch(name) is None:
            await _answer(send, 404, {"error": _NO_NAME})
            return
        await self._app({**scope, "path": _PATH, "raw_path": _PATH.encode(), NAME_IN_SCOPE: name}, receive, send)


class BodyValidator:
    """An ASGI middleware for request bodies that the SDK would misread.

    A call with half a surrogate pair is passed on with a note, so that its tool refuses it: the SDK takes it for
    invalid JSON, and the model would not learn what to correct. A request with an invalid id is refused: the SDK takes
    it for a notification, and the client would wait for an answer for ever.
    """

    def __init__(self, app: _App, most: int) -> None:
        """Check requests for `app`, which itself refuses bodies of more than `most` bytes."""
        self._app = app
        self._most = most

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        come = [await receive()]
        size = len(come[0].get("body", b""))
        while come[-1].get("more_body") and size <= self._most:
            come.append(await receive())
            size += len(come[-1].get("body", b""))
        if come[-1]["type"] == "http.disconnect":
            return  # the client is gone; the SDK would log that as an error
        if size <= self._most:
            message = _suspicious_json(b"".join(part.get("body", b"") for part in come))
            if has_invalid_id(message):
                error = {"code": INVALID_REQUEST, "message": INVALID_ID}
                await _answer(send, 400, {"jsonrpc": "2.0", "id": None, "error": error})
                return
            body = with_broken_argument_named(message)
            if body is not None:
                headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
                headers.append((b"content-length", str(len(body)).encode()))
                scope = {**scope, "headers": headers}
                come = [{"type": "http.request", "body": body, "more_body": False}]
        again = iter(come)

        async def received() -> _Message:
            for part in again:
                return part
            return await receive()

        await self._app(scope, received, send)


def _suspicious_json(body: bytes) -> object:
    """Return the JSON of a body that may have half a surrogate pair or an invalid id; None: it has neither."""
    if _HALF.search(body) is None and _INVALID_ID.search(body) is None:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


async def _answer(send: _Send, status: int, content: object, others: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """Answer a request with JSON. `others`: headers in addition to content type and length."""
    body = json.dumps(content).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *others]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class _Config(uvicorn.Config):
    """uvicorn's configuration, with limits that uvicorn does not have."""

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
        # A call opens files of the store, so connections must not use up the file descriptors of this process.
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
    """A server that does not wait for clients when it ends, and does not log the requests that it cuts off."""

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Start to accept connections."""
        asyncio.get_running_loop().set_exception_handler(_LoopExceptionHandler())
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """End; running requests get the grace period to finish."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        # After a want of descriptors the loop tries to accept again, a second later, also from a socket that is closed.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


class _LoopExceptionHandler:
    """The event loop's exception handler, which logs one line instead of thousands if descriptors run out."""

    def __init__(self) -> None:
        self._quiet_until = 0.0  # in the loop's time

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log the error. The loop continues by itself: it accepts connections again a second later."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _NO_DESCRIPTOR:
            loop.default_exception_handler(context)
        elif loop.time() >= self._quiet_until:
            self._quiet_until = loop.time() + _QUIET
            with suppress(OSError):
                os.write(2, _NO_MORE_FILES)


def _canonical(header: bytes) -> bytes:
    """Return an Authorization header with the scheme `Bearer` in its usual case."""
    scheme, _, rest = header.partition(b" ")
    return (b"Bearer " if scheme.lower() == b"bearer" else scheme + b" ") + rest.strip()


def names_of(host: str, port: int) -> list[str]:
    """Return the Host headers with which a server at a loopback address can be addressed."""
    names = dict.fromkeys((*_LOCAL, _in_url(host)))
    return [*(f"{name}:{port}" for name in names), *(names if port == _USUAL_PORT else ())]


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def application(server: MCPServer, host: str, port: int, token: str | None, limits: ServerLimits) -> AuthGuard:
    """Return the application for a loopback address, with its middleware. `token`: as for AuthGuard."""
    names = names_of(host, port)
    most = _ESCAPED_BYTE * limits.max_file_bytes + (1 << 20)
    app = server.streamable_http_app(
        streamable_http_path=_PATH,
        host=host,
        max_request_body_size=most,
        transport_security=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        ),
    )
    return AuthGuard(ClientAddresses(BodyValidator(app, most)), names, token)


def serve(server: MCPServer, listener: socket, token: str | None, limits: ServerLimits) -> None:
    """Serve at a listening socket until interrupted. `token`: as for AuthGuard."""
    host, port = listener.getsockname()[:2]
    guarded = application(server, host, port, token, limits)
    address = f"http://{_in_url(host)}:{port}{_PATH}"
    sys.stderr.write(f"editledger: serving at {address}\n{_HOW_TO_NAME.format(address)}")
    sys.stderr.flush()
    web = _Web(_Config(guarded, limits))
    anyio.run(functools.partial(web.serve, sockets=[listener]))
