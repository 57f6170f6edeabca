"""Refuse requests that are not the user's own, and add the security headers to every answer.

Any page in a browser can send requests to any port of the machine that it runs on, and can make its own host name
resolve to that machine. Other users of the machine can connect as well. So the guard checks each request first: its
Host is this server, no page of another origin sent it, and it has the cookie. The address that `cas web` prints has a
token, for which the browser gets the cookie.

A browser sends a cookie to every port of a host, so another local server can get it. Whatever shows or changes
something therefore also needs the page's own secret, which the browser gets with the cookie, in the fragment of the
page's address: the page keeps it in the storage of its origin, which has the port.
"""

import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs

__all__ = ["App", "Client", "Guard", "Message", "Receive", "Send"]

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]
Headers: TypeAlias = dict[bytes, list[bytes]]
Client: TypeAlias = tuple[str, int]
"""The address and the port at the other end of a connection."""

TOKEN: Final = "token"  # noqa: S105 -- the name of the parameter
_SECRET: Final = "secret"  # noqa: S105 -- as above, where an address can't come with headers
_SECRET_HEADER: Final = b"x-editledger-secret"
_OPEN: Final = ("/static/",)
"""Beginnings of paths of the page itself: they show nothing of the workspace, and need the cookie only."""

_LEFT_OUT: Final = 80
"""The port that browsers leave out of the Host header."""

_METHODS: Final = frozenset({"GET", "HEAD", "POST"})
_OWN: Final = frozenset({b"same-origin", b"none"})
"""Values of Sec-Fetch-Site for requests by this server's own page, or by the user at the address bar."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
"""The headers of every answer, unless the answer itself has one of that name."""

_OPEN_AGAIN: Final = "This browser is not connected. Open the address that `cas web` printed in your terminal."
_UNKNOWN_PAGE: Final = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>editledger</title><h1>Not connected</h1><p>{}</p></html>"
)
_FORWARD_PAGE: Final = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>editledger</title>"
    '<meta http-equiv=refresh content="0;url={0}"><p><a href="{0}">Continue to the review</a></p></html>'
)


class Guard:
    """An ASGI middleware that passes on requests of the user's own browser and refuses all others."""

    def __init__(self, app: App, port: int, token: str, let_in: Callable[[Client | None], object]) -> None:
        """Guard `app`, which is served at `port` of 127.0.0.1.

        `token`: the secret in the printed address. `let_in`: called with the other end of each connection on which a
        request is passed on.
        """
        self._app: Final = app
        self._note_let_in: Final = let_in
        after = ("", ":80") if port == _LEFT_OUT else (f":{port}",)
        self._hosts: Final = {f"{name}{end}".encode() for name in ("127.0.0.1", "localhost") for end in after}
        self._origins: Final = {b"http://" + host for host in self._hosts}
        self._token: Final = token.encode()
        # Browsers share cookies between ports, so the cookie's name has the port.
        self._cookie: Final = f"editledger-{port}".encode()
        self._key: Final = secrets.token_urlsafe(32).encode()
        self._secret: Final = secrets.token_urlsafe(32)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass on a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no other protocol is supported; the server closes the connection
        sent: Headers = {}
        for name, value in scope["headers"]:
            sent.setdefault(name.lower(), []).append(value)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message.get("headers", [])}
                own = [(name, value) for name, value in _HEADERS.items() if name not in given]
                message = {**message, "headers": [*message.get("headers", []), *own]}
            await send(message)

        refusal = self._foreign(scope, sent)
        if refusal is not None:
            await _refuse(guarded, *refusal)
        elif self._has_token(scope):
            await self._let_in(sent, guarded)
        elif not self._is_known(sent):
            await _refuse_unknown(guarded, is_page=not scope["path"].startswith("/api/"))
        else:
            given, scope = _without_secret(scope, sent)
            is_page = scope["path"] == "/" or scope["path"].startswith(_OPEN)
            if is_page or hmac.compare_digest(given, self._secret.encode()):
                self._note_let_in(scope["client"])
                await self._app(scope, receive, guarded)
            else:
                await _refuse_unknown(guarded, is_page=not scope["path"].startswith("/api/"))

    def _foreign(self, scope: Message, sent: Headers) -> tuple[int, str] | None:
        """Return the status and reason for refusing a request that may come from another site; None: it does not."""
        hosts = sent.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "The Host header does not name this server."
        if scope["method"] not in _METHODS:
            return 405, "Only GET, HEAD and POST are served."
        origins = sent.get(b"origin", [])
        if any(origin.lower() not in self._origins for origin in origins) or len(origins) > 1:
            return 403, "The Origin header names another site."
        if scope["method"] == "POST" and not origins:
            return 403, "The Origin header is missing."
        if not all(site in _OWN for site in sent.get(b"sec-fetch-site", [])) and not self._has_token(scope):
            return 403, "Another site made this request."
        return None

    def _has_token(self, scope: Message) -> bool:
        """Return whether a request is for the printed address, with its token."""
        if scope["path"] != "/" or scope["method"] == "POST" or not scope["query_string"]:
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get(TOKEN, [])
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), self._token)

    def _is_known(self, sent: Headers) -> bool:
        """Return whether a request has the cookie."""
        pairs = (pair.strip().partition(b"=") for line in sent.get(b"cookie", []) for pair in line.split(b";"))
        return any(name == self._cookie and hmac.compare_digest(value, self._key) for name, _, value in pairs)

    async def _let_in(self, sent: Headers, send: Send) -> None:
        """Give the browser the cookie, and send it on to the page without the token.

        If the request came from another site, such as the file that `cas web` opens, a browser would follow a redirect
        without the new cookie, because it is a strict one. A page that goes on by itself makes the next request one of
        this site.
        """
        cookie = self._cookie + b"=" + self._key + b"; Path=/; HttpOnly; SameSite=Strict"
        page = f"/#{_SECRET}={self._secret}"
        if all(site in _OWN for site in sent.get(b"sec-fetch-site", [])):
            await _answer(send, 303, "text/plain", b"", [(b"location", page.encode()), (b"set-cookie", cookie)])
        else:
            forward = _FORWARD_PAGE.format(page).encode()
            await _answer(send, 200, "text/html; charset=utf-8", forward, [(b"set-cookie", cookie)])


def _without_secret(scope: Message, sent: Headers) -> tuple[bytes, Message]:
    """Return the secret that a request has, in its header or its query, and the request without it in the query."""
    mark = f"{_SECRET}=".encode()
    pairs = scope["query_string"].split(b"&") if scope["query_string"] else []
    given = list(sent.get(_SECRET_HEADER, []))
    if scope["method"] != "POST":
        given += [pair.removeprefix(mark) for pair in pairs if pair.startswith(mark)]
    rest = b"&".join(pair for pair in pairs if not pair.startswith(mark))
    return (given[0] if len(given) == 1 else b""), {**scope, "query_string": rest}


async def _refuse(send: Send, status: int, words: str) -> None:
    others = [(b"allow", b"GET, HEAD, POST")] if status == 405 else []  # noqa: PLR2004 -- as the status requires
    await _answer(send, status, "application/json", json.dumps({"error": words}).encode(), others)


async def _refuse_unknown(send: Send, *, is_page: bool) -> None:
    if is_page:
        page = _UNKNOWN_PAGE.format(_OPEN_AGAIN.replace("`", "")).encode()
        await _answer(send, 401, "text/html; charset=utf-8", page, [])
    else:
        await _refuse(send, 401, _OPEN_AGAIN)


async def _answer(send: Send, status: int, kind: str, body: bytes, others: list[tuple[bytes, bytes]]) -> None:
    """Answer with a body. `others`: headers in addition to content type and length."""
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode()), *others]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
