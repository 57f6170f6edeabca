"""A server process, and a client that sends it raw bytes and messages."""

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
from tests.support.fork_server import INSTEAD, forked_program
from tests.support.mcp_agent import REPOSITORY, SECONDS_TO_ANSWER

__all__ = [
    "INITIALIZE",
    "NEWER_VERSION_META",
    "Message",
    "RawClient",
    "ping",
    "started",
    "tool_call",
    "unprivileged_server",
    "with_progress",
]

INITIALIZE: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": "begin",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}},
}
INITIALIZED: Final = {"jsonrpc": "2.0", "method": "notifications/initialized"}

NEWER_VERSION_META: Final = {
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
        self._received = b""

    def write(self, sent: bytes) -> None:
        """Send bytes as they are."""
        while sent:
            sent = sent[self.writing.write(sent) or 0 :]

    def send(self, *messages: Message) -> None:
        """Send messages in one write."""
        self.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def line(self) -> bytes:
        """Return the next line, or b"" at the end of the output. Each line has to arrive in time and complete."""
        while b"\n" not in self._received:
            ready, _, _ = select.select([self.reading], [], [], SECONDS_TO_ANSWER)
            assert ready, f"no output followed {self._received[-100:]!r}"
            piece = self.reading.read(1 << 16)
            if not piece:
                assert not self._received, "the last line is cut off"
                return b""
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        return line

    def answer(self, number: object) -> Message:
        """Return the answer to a request, skipping earlier messages."""
        while (message := self.next_answer())["id"] != number:
            pass
        return message

    def next_answer(self) -> Message:
        """Return the next answer to a request, skipping notifications."""
        while "id" not in (message := json.loads(self.line())):
            pass
        return dict(message)

    def ended(self) -> tuple[int, bytes]:
        """Wait until the process ends by itself; return its exit status and its standard error."""
        _, errors = self.process.communicate(timeout=SECONDS_TO_ANSWER)
        return self.process.returncode, errors


def tool_call(number: int | str, tool: str, **arguments: object) -> Message:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def with_progress(token: int, call: Message) -> Message:
    """Return a call that requests progress reports."""
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
    program: Sequence[str] = (),
    sockets: bool = False,
    capabilities: Message | None = None,
    greets: bool = True,
) -> Iterator[RawClient]:
    """Start a server on two pipes, or on a socket as Node gives its children, and do the handshake.

    `program`: another module whose `main` runs as the server, and its first arguments, as for `connected`.
    """
    instead = {INSTEAD: program[0]} if program else {}
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
            [*(command or forked_program("mcptools").command), *program[1:], "--tools", "all", str(root)],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **instead},
        )
        opened.callback(process.communicate)
        opened.callback(process.kill)
        opened.callback(writing.close)  # which ends a forked server, of which the process is only a proxy
        raw = RawClient(process, root, writing, reading)
        if greets:
            params = {**INITIALIZE["params"], "capabilities": capabilities or {}}
            raw.send({**INITIALIZE, "params": params}, INITIALIZED)
            assert raw.answer("begin")["result"]["serverInfo"]["name"] == "editledger"
        # The server must leave these open files blocking: a shell or the client may share them.
        assert os.get_blocking(stdin.fileno())
        assert os.get_blocking(stdout.fileno())
        stdin.close()
        stdout.close()
        yield raw
