"""A proxy on loopback in front of an object server: it loses, delays and repeats answers, or kills the client."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
        self.refuses = b""  # what each answer says instead, with the status 403; b"": the server answers
        self.delay = 0.0  # of each answer, in seconds
        self.before: Callable[[int], object] = lambda _: None  # called before a request is passed on
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
        proxy.before(number)
        if proxy.repeats(number, self.command):
            self._answered(proxy, body)
        status, headers, answer = (403, [], proxy.refuses) if proxy.refuses else self._answered(proxy, body)
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
            for name, value in self.headers.items():
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
