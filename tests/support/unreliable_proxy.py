"""A proxy on loopback in front of an object server: it loses, delays and repeats answers, or kills the client.

It can also change requests to a server that speaks S3, and signs those again with the client's key: then the server
takes them for those of a client whose clock is off, or one that does not ask for create-if-absent.
"""

import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import urlsplit

__all__ = ["Proxy", "unreliable"]

PUT: Final = "PUT"


class Proxy:
    """What happens to the requests, in their order; each may be changed while it runs."""

    def __init__(self, target: str, port: int) -> None:
        self.target: Final = urlsplit(target).netloc
        self.endpoint: Final = f"http://127.0.0.1:{port}"
        self.count = 0
        self.loses: Callable[[int, str], bool] = lambda _, __: False  # by number and method: the answer is lost
        self.repeats: Callable[[int, str], bool] = lambda _, __: False  # the request is sent twice
        self.delay = 0.0  # of each answer, in seconds
        self.drops_request: Callable[[int], bool] = lambda _: False  # by number: it is not passed on, nor answered
        self.signs: tuple[str, str] | None = (
            None  # the key and secret with which requests are signed (None: as they are)
        )
        self.clock = timedelta(0)  # how far the clock of the client is off, where requests are signed
        self.drops = ""  # a header that is left out, in lower case ("": none)
        self._lock: Final = threading.Lock()

    def next_number(self) -> int:
        """Return the number of the next request, from 1."""
        with self._lock:
            self.count += 1
            return self.count


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def pass_on(self) -> None:
        """Pass a request on, and its answer back, or not."""
        assert isinstance(self.server, _Server)
        proxy = self.server.proxy
        number = proxy.next_number()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if proxy.drops_request(number):
            self.close_connection = True
            return
        if proxy.repeats(number, self.command):
            self._answered(proxy, body)
        status, headers, answer = self._answered(proxy, body)
        time.sleep(proxy.delay)
        if proxy.loses(number, self.command):
            self.close_connection = True
            return
        with suppress(OSError):  # the client is gone
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in {"transfer-encoding", "connection", "content-length"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

    def _answered(self, proxy: Proxy, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = HTTPConnection(proxy.target, timeout=60)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            headers = [(name, value) for name, value in self.headers.items() if name.lower() != proxy.drops]
            if proxy.signs is not None:
                headers = _signed(self.command, self.path, headers, proxy.signs, datetime.now(UTC) + proxy.clock)
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on  # noqa: N815 - names that the server looks for


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: Proxy

    def handle_error(self, *_: object) -> None:
        """Say nothing: a client that was killed is no error."""


def _signed(
    method: str, path: str, headers: list[tuple[str, str]], key: tuple[str, str], now: datetime
) -> list[tuple[str, str]]:
    """Return the headers of a request to S3 with its time and its signature (AWS4-HMAC-SHA256) made again."""
    given = {name.lower(): value for name, value in headers}
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    given["x-amz-date"] = stamp
    _, _, fields = given["authorization"].partition(" ")
    parts = dict(field.strip().split("=", 1) for field in fields.split(","))
    scope = "/".join([stamp[:8], *parts["Credential"].split("/")[2:]])
    names = [name for name in parts["SignedHeaders"].split(";") if name in given]
    place, _, query = path.partition("?")
    canonical = "\n".join(
        [
            method,
            place,
            "&".join(sorted(field if "=" in field else f"{field}=" for field in query.split("&") if field)),
            *(f"{name}:{' '.join(given[name].split())}" for name in names),
            "",
            ";".join(names),
            given["x-amz-content-sha256"],
        ]
    )
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    signing = f"AWS4{key[1]}".encode()
    for part in scope.split("/"):
        signing = hmac.digest(signing, part.encode(), "sha256")
    signature = hmac.digest(signing, text.encode(), "sha256").hex()
    given["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={key[0]}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return list(given.items())


@contextmanager
def unreliable(target: str) -> Iterator[Proxy]:
    """Run a proxy in front of an address."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.proxy = Proxy(target, server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server.proxy
        finally:
            server.shutdown()
            thread.join()
