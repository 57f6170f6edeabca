"""A model on loopback that asks for the tools of a script, one step a request, whatever the request says."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import zstandard

from tests.clients.dialects import Answer, ToolCall, dialect_of

__all__ = ["ScriptedModel", "Step", "scripted_model"]

Step = ToolCall | Sequence[ToolCall] | Callable[[], object]
"""What a script goes on with: one call or several at once, or what happens before the model answers next."""

LONGEST_WAIT: Final = 60
"""Requests after which a tool that isn't offered is asked for all the same."""

NOTHING: Final[dict[str, Any]] = {"data": [], "models": [], "object": "list", "input_tokens": 1, "totalTokens": 1}
"""The answer to all that is no request for an answer: lists of models, and counts of tokens."""


class ScriptedModel:
    """The scripts, by name, and what was asked. A client is given the address of its script as that of its model."""

    def __init__(self, port: int) -> None:
        self._port: Final = port
        self._lock: Final = threading.Lock()
        self._left: Final[dict[str, list[Step]]] = {}
        self._asked: Final[dict[str, list[str]]] = {}
        self._waiting: Final[dict[str, ToolCall]] = {}
        self.refused: Final[set[str]] = set()  # hosts beyond loopback that a client wanted to reach
        self.faults: Final[list[Exception]] = []  # of what happens between the steps

    def address(self, script: str) -> str:
        """Return the address of the model that follows a script."""
        return f"http://127.0.0.1:{self._port}/{script}"

    @property
    def proxy(self) -> str:
        """Return the address of a proxy that refuses every connection, and remembers it."""
        return f"http://127.0.0.1:{self._port}"

    def play(self, script: str, *steps: Step, waiting: ToolCall) -> None:
        """Add steps to a script: the calls of each are asked for in one answer.

        `waiting`: what is asked for instead, as long as a tool of our server isn't offered: it may still be starting.
        """
        with self._lock:
            self._left.setdefault(script, []).extend(steps)
            self._waiting[script] = waiting

    def asked(self, script: str) -> list[str]:
        """Return the bodies of the agent's own requests, in order."""
        with self._lock:
            return list(self._asked.get(script, []))

    def next_step(self, script: str, body: str, offered: Sequence[str]) -> Sequence[ToolCall]:
        """Return the calls to ask for next; none at the end."""
        with self._lock:
            asked = self._asked.setdefault(script, [])
            asked.append(body)
            steps = self._left.get(script, [])
        while steps:
            if isinstance(steps[0], ToolCall) and not steps[0].is_offered(offered) and len(asked) < LONGEST_WAIT:
                return [self._waiting[script]]
            step = steps.pop(0)
            if isinstance(step, ToolCall):
                return [step]
            if not callable(step):
                return step
            try:
                step()
            except Exception as error:  # noqa: BLE001 - it is reported by the run that waits for the client
                self.faults.append(error)
        return ()


@contextmanager
def scripted_model() -> Iterator[ScriptedModel]:
    """Serve a model on a free port of loopback."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.model = model = ScriptedModel(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: ScriptedModel


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _model(self) -> ScriptedModel:
        assert isinstance(self.server, _Server)
        return self.server.model

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Print nothing."""

    def do_CONNECT(self) -> None:
        self._model.refused.add(self.path)
        self.close_connection = True
        self.send_error(403)

    def do_HEAD(self) -> None:
        self._send(Answer(document=NOTHING))

    def do_GET(self) -> None:
        if not self.path.startswith("/"):
            self.do_CONNECT()
            return
        self._send(Answer(document=NOTHING))

    def do_POST(self) -> None:
        body = self._body()
        if not self.path.startswith("/"):
            self.do_CONNECT()
            return
        path = self.path.partition("?")[0]
        dialect = dialect_of(path)
        if dialect is None:
            self._send(Answer(document=NOTHING))
            return
        asked = json.loads(body)
        script = path.split("/")[1]
        offered = dialect.tools(asked)
        calls = self._model.next_step(script, body.decode(), offered) if offered else ()
        streams = asked.get("stream") is True or ":stream" in path
        self._send(dialect.answer(asked, calls, streams=streams))

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("transfer-encoding", ""):
            body = b"".join(self._chunks())
        else:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
        match self.headers.get("content-encoding", ""):
            case "gzip":
                return gzip.decompress(body)
            case "zstd":
                return zstandard.ZstdDecompressor().decompressobj().decompress(body)
        return body

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _send(self, answer: Answer) -> None:
        self.send_response(200)
        if answer.document is None:
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.close_connection = True
            self.end_headers()
            self.wfile.write(b"".join(self._event(event, are_named=answer.are_named) for event in answer.events))
            return
        body = json.dumps(answer.document).encode()
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    @staticmethod
    def _event(event: dict[str, Any] | str, *, are_named: bool) -> bytes:
        said = event if isinstance(event, str) else json.dumps(event)
        name = f"event: {event['type']}\n" if are_named and isinstance(event, dict) else ""
        return f"{name}data: {said}\n\n".encode()
