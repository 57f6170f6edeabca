"""A server for tests that listens for HTTP, and ways to talk to it: raw requests, and the official client."""

import http.client
import json
import re
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import anyio
import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation

from tests.mcp.agent import REPOSITORY, SECONDS_TO_ANSWER, Agent, server_command

ResultT = TypeVar("ResultT")

INITIALIZE = {
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
class Served:
    """A server that listens."""

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
    def agent(self, *, mode: str, name: str = "test", heard: MessageHandlerFnT | None = None) -> Iterator[Agent]:
        """Connect the official client. `heard`: gets what the server says unasked."""
        with start_blocking_portal() as portal:
            headers = {"Authorization": f"Bearer {self.token}"}
            with portal.wrap_async_context_manager(httpx2.AsyncClient(headers=headers, timeout=None)) as connection:
                transport = streamable_http_client(f"http://127.0.0.1:{self.port}/mcp", http_client=connection)
                named = Implementation(name=name, version="1")
                client = Client(transport, mode=mode, client_info=named, message_handler=heard)
                with portal.wrap_async_context_manager(client):
                    yield Agent(portal, client, self.root)

    def with_client(
        self,
        work: Callable[[Client], Awaitable[ResultT]],
        *,
        mode: str,
        name: str = "test",
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> ResultT:
        """Do something with the official client. `headers`: sent with each request; `transport`: which sends them."""

        async def connected() -> ResultT:
            sent = {"Authorization": f"Bearer {self.token}", **(headers or {})}
            async with httpx2.AsyncClient(headers=sent, transport=transport) as connection:
                streams = streamable_http_client(f"http://127.0.0.1:{self.port}/mcp", http_client=connection)
                named = Implementation(name=name, version="1")
                async with Client(streams, mode=mode, client_info=named) as client:
                    with anyio.fail_after(SECONDS_TO_ANSWER):
                        return await work(client)

        return anyio.run(connected)


@contextmanager
def serving(root: Path, *options: str, environment: dict[str, str] | None = None) -> Iterator[Served]:
    """Start a server that listens at a free port."""
    with subprocess.Popen(
        [*server_command(), "--http", "127.0.0.1:0", *options, str(root)],
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
                    yield Served(root=root, port=int(found[1]), token=token, process=process)
                    break
            else:
                pytest.fail("the server did not say where it listens")
        finally:
            process.terminate()
        assert process.stderr.read() == ""
