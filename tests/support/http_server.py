"""A server for tests that listens for HTTP, and ways to talk to it: raw requests, and the official client."""

import http.client
import json
import re
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.extension import ClientExtension
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation
from starlette.applications import Starlette

from mcptools.server.mcp_server import EditServer
from tests.support.mcp_agent import REPOSITORY, SECONDS_TO_ANSWER, Agent, server_command
from tests.support.plain_http import NO_CERTIFICATES

ResultT = TypeVar("ResultT")

INITIALIZE: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "0"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    """A server that listens for HTTP."""

    root: Path
    port: int
    token: str
    process: subprocess.Popen[str]

    def ask(self, body: object = INITIALIZE, *, method: str = "POST", path: str = "/mcp", **headers: str) -> int:
        """Send a request with its headers as they are given, and return the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_TO_ANSWER)
        given = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            content = json.dumps(body).encode()
            for name, value in given.items():
                if value:
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(content)))
            connection.endheaders(content)
            return connection.getresponse().status
        finally:
            connection.close()

    @contextmanager
    def talk(self, capabilities: Mapping[str, object]) -> Iterator["LegacyHttpSession"]:
        """Begin a session of the older protocol version that opens no stream for notifications."""
        token = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        headers = {**token, "Accept": "application/json, text/event-stream"}
        url = f"http://127.0.0.1:{self.port}"
        with httpx2.Client(
            base_url=url, headers=headers, verify=NO_CERTIFICATES, timeout=SECONDS_TO_ANSWER
        ) as connection:
            params = {**INITIALIZE["params"], "capabilities": capabilities}
            response = connection.post("/mcp", json={**INITIALIZE, "params": params})
            connection.headers["Mcp-Session-Id"] = response.headers["mcp-session-id"]
            talk = LegacyHttpSession(connection)
            talk.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield talk

    def address_of(self, client: str) -> str:
        """Return the address of a client with this name; "": the address for clients without one."""
        return f"http://127.0.0.1:{self.port}/mcp{'/' if client else ''}{client.replace(' ', '-')}"

    @contextmanager
    def agent(
        self,
        *,
        mode: str,
        name: str = "test",
        at: str | None = None,
        token: str | None = None,
        on_message: MessageHandlerFnT | None = None,
        extensions: Sequence[ClientExtension] = (),
    ) -> Iterator[Agent]:
        """Connect the official client. `name`: of its program; `at`: in its address (None: the same; "": it has none).

        `token`: that it sends (None: the one that the server printed). `on_message`: gets the notifications of the
        server. `extensions`: of the client.
        """
        with start_blocking_portal() as portal:
            headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
            client_of_http = httpx2.AsyncClient(headers=headers, verify=NO_CERTIFICATES, timeout=None)
            with portal.wrap_async_context_manager(client_of_http) as connection:
                address = self.address_of(name if at is None else at)
                transport = streamable_http_client(address, http_client=connection)
                client_implementation = Implementation(name=name, version="1")
                client = Client(
                    transport,
                    mode=mode,
                    client_info=client_implementation,
                    message_handler=on_message,
                    extensions=extensions,
                )
                with portal.wrap_async_context_manager(client):
                    yield Agent(portal, client, self.root)

    def with_client(
        self,
        work: Callable[[Client], Awaitable[ResultT]],
        *,
        mode: str,
        name: str = "test",
        at: str | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> ResultT:
        """Run a coroutine with the official client. `name`, `at`: as for `agent`.

        `headers`: sent with each request; `transport`: sends them.
        """

        async def connected() -> ResultT:
            sent = {"Authorization": f"Bearer {self.token}", **(headers or {})}
            async with httpx2.AsyncClient(headers=sent, verify=NO_CERTIFICATES, transport=transport) as connection:
                address = self.address_of(name if at is None else at)
                streams = streamable_http_client(address, http_client=connection)
                client_implementation = Implementation(name=name, version="1")
                async with Client(streams, mode=mode, client_info=client_implementation) as client:
                    with anyio.fail_after(SECONDS_TO_ANSWER):
                        return await work(client)

        return anyio.run(connected)


class LegacyHttpSession:
    """A session of the older protocol version over HTTP, message by message."""

    def __init__(self, connection: httpx2.Client) -> None:
        self._connection = connection
        self._last_id = 1

    @property
    def session(self) -> str:
        """Return the session's id."""
        session: str = self._connection.headers["Mcp-Session-Id"]
        return session

    def say(self, message: Mapping[str, object]) -> None:
        """Send a notification or an answer."""
        assert self.post(message).status_code == 202

    def post(self, message: Mapping[str, object]) -> httpx2.Response:
        """Send a message, and return the whole answer."""
        return self._connection.post("/mcp", json=message)

    def ask(
        self, method: str, params: Mapping[str, object], answers: Mapping[str, Mapping[str, object]]
    ) -> tuple[dict[str, Any], list[str]]:
        """Send a request; return its result and methods of the server's requests. `answers`: to these, by method."""
        self._last_id += 1
        requested: list[str] = []
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        with self._connection.stream("POST", "/mcp", json=message) as answer:
            for line in answer.iter_lines():
                if not line.startswith("data: {"):
                    continue
                received: dict[str, Any] = json.loads(line.removeprefix("data: "))
                if "method" not in received:
                    return received["result"], requested
                requested.append(received["method"])
                self.say({"jsonrpc": "2.0", "id": received["id"], "result": answers[received["method"]]})
        raise AssertionError(f"the stream ended without an answer: {requested}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessServer:
    """A server in this process, used with the older protocol version over HTTP without a socket."""

    app: Starlette
    connection: httpx2.AsyncClient

    async def session(self) -> dict[str, str]:
        """Begin a session, and return the headers of its requests."""
        response = await self.connection.post("/mcp", json=INITIALIZE)
        session = {"Mcp-Session-Id": response.headers["mcp-session-id"]}
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await self.connection.post("/mcp", json=initialized, headers=session)).is_success
        return session

    async def ask(self, session: Mapping[str, str], method: str, **params: object) -> dict[str, Any]:
        """Send a request; return its result within a time limit."""
        message = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
        with anyio.fail_after(SECONDS_TO_ANSWER):
            answer = await self.connection.post("/mcp", json=message, headers=session)
        (line,) = [line for line in answer.text.splitlines() if line.startswith("data: {")]
        result: dict[str, Any] = json.loads(line.removeprefix("data: "))["result"]
        return result

    async def listen(self, session: Mapping[str, str], take: Callable[[bytes], Awaitable[None]]) -> None:
        """Open the stream of a session, and pass each message to `take`; the server waits while `take` does."""
        headers = {**self.connection.headers, **session}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }

        bodies = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> dict[str, object]:
            for body in bodies:
                return body
            await anyio.sleep_forever()
            raise AssertionError

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.body":
                await take(message["body"])

        await self.app(scope, receive, send)


@asynccontextmanager
async def inside(server: EditServer) -> AsyncIterator[InProcessServer]:
    """Run a server in this process."""
    app = server.streamable_http_app()
    headers = {"Accept": "application/json, text/event-stream", "Host": "127.0.0.1:8000"}
    transport = httpx2.ASGITransport(app)
    async with (
        server.session_manager.run(),
        httpx2.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000", verify=NO_CERTIFICATES, headers=headers
        ) as connection,
    ):
        yield InProcessServer(app=app, connection=connection)


@contextmanager
def serving(
    root: Path, *options: str, environment: dict[str, str] | None = None, descriptors: int = 0
) -> Iterator[HttpServer]:
    """Start a server that listens at a free port. All tools are offered, unless `options` choose.

    `descriptors`: how many files it may open (0: as many as this process); it has to be started cold.
    """
    tools = () if "--tools" in options else ("--tools", "all")
    limited = ("sh", "-c", 'ulimit -Sn "$0" && exec "$@"', str(descriptors)) if descriptors else ()
    with subprocess.Popen(
        [*limited, *server_command(), "--http", "127.0.0.1:0", *tools, *options, str(root)],
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stderr is not None
        token = ""
        try:
            for line in process.stderr:
                token = line.removeprefix("Authorization: Bearer ").strip() if "Bearer" in line else token
                found = re.fullmatch(r"editledger: serving at http://127\.0\.0\.1:(\d+)/mcp\n", line)
                if found is not None:
                    assert "give each client an address of its own" in process.stderr.readline()
                    yield HttpServer(root=root, port=int(found[1]), token=token, process=process)
                    break
            else:
                pytest.fail("the server did not say where it listens")
        finally:
            process.terminate()
        left = process.stderr.read()
        assert left == "", left
