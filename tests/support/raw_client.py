"""A server process, and a client that speaks to it byte by byte."""

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.support.command_runner import ANYBODY
from tests.support.fork_server import forked_program
from tests.support.mcp_agent import REPOSITORY, SECONDS_TO_ANSWER

__all__ = ["INITIALIZE", "NEWER", "Message", "RawClient", "called", "ping", "started", "told_of", "unprivileged_server"]

INITIALIZE: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": "begin",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}},
}
INITIALIZED: Final = {"jsonrpc": "2.0", "method": "notifications/initialized"}

NEWER: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}

Message: TypeAlias = dict[str, Any]


class RawClient:
    """A server process, and this side of its standard streams."""

    def __init__(self, process: subprocess.Popen[bytes], root: Path, writing: FileIO, reading: FileIO) -> None:
        self.process = process
        self.root = root
        self.writing = writing
        self.reading = reading
        self._come = b""

    def write(self, sent: bytes) -> None:
        """Send bytes as they are."""
        while sent:
            sent = sent[self.writing.write(sent) or 0 :]

    def send(self, *messages: Message) -> None:
        """Send messages, all of them at once."""
        self.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def line(self) -> bytes:
        """Return the next line; b"": there are no more. Each has to come soon, and whole."""
        while b"\n" not in self._come:
            ready, _, _ = select.select([self.reading], [], [], SECONDS_TO_ANSWER)
            assert ready, f"nothing came behind {self._come[-100:]!r}"
            piece = self.reading.read(1 << 16)
            if not piece:
                assert not self._come, "the last line is cut off"
                return b""
            self._come += piece
        line, _, self._come = self._come.partition(b"\n")
        return line

    def answer(self, number: object) -> Message:
        """Return the answer to a request; what comes before it is passed over."""
        while (message := self.next_answer())["id"] != number:
            pass
        return message

    def next_answer(self) -> Message:
        """Return the next answer to a request; what the server says unasked is passed over."""
        while "id" not in (message := json.loads(self.line())):
            pass
        return dict(message)

    def ended(self) -> tuple[int, bytes]:
        """Return the status that it ends with, by itself, and what it wrote where errors go."""
        _, errors = self.process.communicate(timeout=SECONDS_TO_ANSWER)
        return self.process.returncode, errors


def called(number: int | str, tool: str, **arguments: object) -> Message:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def told_of(token: int, call: Message) -> Message:
    """Return a call whose client wants to know how far it has come."""
    return {**call, "params": {**call["params"], "_meta": {"progressToken": token}}}


def ping(number: int) -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": "ping"}


def unprivileged_server() -> Sequence[str]:
    """Return what starts a server with no more rights to the files than their modes give."""
    return forked_program("mcptools", (sys.executable, "-c", ANYBODY)).command


@contextmanager
def started(
    root: Path,
    *,
    command: Sequence[str] = (),
    sockets: bool = False,
    capabilities: Message | None = None,
    greets: bool = True,
) -> Iterator[RawClient]:
    """Start a server between two pipes, or on one socket as Node gives its children, and greet it."""
    with ExitStack() as opened:
        if sockets:
            ours, theirs = socket.socketpair()
            fds = [theirs.detach(), ours.detach()]
            fds = [fds[0], os.dup(fds[1]), fds[1], os.dup(fds[0])]
        else:
            fds = [*os.pipe(), *os.pipe()]
        stdin, writing, reading, stdout = (
            opened.enter_context(FileIO(fd, mode)) for fd, mode in zip(fds, ("r", "w", "r", "w"), strict=True)
        )
        process = subprocess.Popen(
            [*(command or forked_program("mcptools").command), str(root)],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        opened.callback(process.communicate)
        opened.callback(process.kill)
        opened.callback(writing.close)  # which ends the server where the process is only what stands for it
        raw = RawClient(process, root, writing, reading)
        if greets:
            params = {**INITIALIZE["params"], "capabilities": capabilities or {}}
            raw.send({**INITIALIZE, "params": params}, INITIALIZED)
            assert raw.answer("begin")["result"]["serverInfo"]["name"] == "editledger"
        # What is open belongs to whoever shares it: a shell, or the client itself.
        assert os.get_blocking(stdin.fileno())
        assert os.get_blocking(stdout.fileno())
        stdin.close()
        stdout.close()
        yield raw
