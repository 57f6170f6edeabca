"""An agent for tests: the official client, talking to a real server process over its standard streams."""

import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.extension import ClientExtension
from mcp.client.session import ClientRequestContext, ElicitationFnT, ListRootsFnT, MessageHandlerFnT
from mcp.client.stdio import stdio_client
from mcp.types import (
    BlobResourceContents,
    CallToolResult,
    Implementation,
    ListRootsResult,
    Root,
    TextContent,
    TextResourceContents,
    Tool,
)
from pydantic import FileUrl

from objstore import EditView, NotAWorkspace, Workspace
from tests.support.fork_server import INSTEAD, forked_program

if TYPE_CHECKING:
    from concurrent.futures import Future

REPOSITORY: Final = Path(__file__).resolve().parents[2]
SECONDS_TO_ANSWER: Final = 60.0

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a tool call."""

    refused: bool
    structured: dict[str, Any]
    texts: list[str]

    @property
    def text(self) -> str:
        """Return the message or content according to the contract: the first text, or the message in it if it is JSON.

        The text of a patch tool's result is its structured content, as its document says.
        """
        if not self.is_json:
            return self.texts[0]
        return str(self.structured.get("error") or self.structured["message"])

    @property
    def notes(self) -> str:
        """Return the notes of an answer, one a line."""
        return "\n".join(self.structured.get("notes", [])) if self.is_json else "\n".join(self.texts[1:])

    @property
    def is_json(self) -> bool:
        """Return whether the text is the structured content."""
        return self.texts == [json.dumps(self.structured, indent=2, ensure_ascii=False)]

    @property
    def error(self) -> dict[str, Any]:
        """Return the error of a refused call."""
        assert self.refused, self.structured
        error: dict[str, Any] = self.structured["error"]
        return error


class Agent:
    """A client with its server, and the first of the server's directories."""

    def __init__(self, portal: BlockingPortal, client: Client, root: Path) -> None:
        self.root = root
        self._portal = portal
        self._client = client

    def tools(self) -> list[Tool]:
        """Return the tools that the server offers."""
        return self._portal.call(self._client.list_tools).tools

    def call(self, tool: str, **arguments: object) -> Result:
        """Call a tool; return its result."""
        return self.call_concurrently([(tool, arguments)])[0]

    def done(self, tool: str, **arguments: object) -> Result:
        """Call a tool, which has to succeed; return its result."""
        result = self.call(tool, **arguments)
        assert not result.refused, result.structured
        return result

    def call_concurrently(self, calls: Sequence[tuple[str, Mapping[str, object]]]) -> list[Result]:
        """Make calls concurrently; return their results when all have ended."""
        return self._portal.call(self._call_concurrently, calls)

    def start(self, calls: Sequence[tuple[str, Mapping[str, object]]]) -> "Future[list[Result]]":
        """Start calls concurrently, without waiting for them."""
        return self._portal.start_task_soon(self._call_concurrently, calls)

    def resource(self, address: str) -> TextResourceContents | BlobResourceContents:
        """Return the resource at an address."""
        (content,) = self._portal.call(self._client.read_resource, address).contents
        return content

    def run(self, work: Callable[[Client], Awaitable[ResultT]]) -> ResultT:
        """Run a coroutine with the client, with a time limit; return its result."""

        async def with_timeout() -> ResultT:
            with anyio.fail_after(SECONDS_TO_ANSWER):
                return await work(self._client)

        return self._portal.call(with_timeout)

    def history(self) -> list[EditView]:
        """Return the edits recorded in the store of the first directory; none if it has no store yet."""
        try:
            with Workspace.open(self.root) as workspace:
                return workspace.history.edits()
        except NotAWorkspace:
            return []

    async def _call_concurrently(self, calls: Sequence[tuple[str, Mapping[str, object]]]) -> list[Result]:
        results: dict[int, Result] = {}

        async def call_one(index: int, tool: str, arguments: Mapping[str, object]) -> None:
            with anyio.fail_after(SECONDS_TO_ANSWER):
                results[index] = _result(await self._client.call_tool(tool, dict(arguments)))

        async with anyio.create_task_group() as tasks:
            for index, (tool, arguments) in enumerate(calls):
                tasks.start_soon(call_one, index, tool, arguments)
        return [results[index] for index in range(len(calls))]


@contextmanager
def connected(  # noqa: PLR0913 - each is one thing that a test may choose
    *roots: Path,
    mode: str = "auto",
    options: Sequence[str] = (),
    person: ElicitationFnT | None = None,
    served: Sequence[Path] | None = None,
    client_roots: Callable[[], Sequence[str]] | None = None,
    on_message: MessageHandlerFnT | None = None,
    environment: dict[str, str] | None = None,
    program: Sequence[str] = (),
    extensions: Sequence[ClientExtension] = (),
    expected: str = "",
) -> Iterator[Agent]:
    """Start a server on directories, and connect to it. If it logs anything but `expected`, the test fails.

    `served`: the directories on the command line, if they are not `roots`. `client_roots`: returns the addresses that
    the client answers whenever it is asked for its roots. `on_message`: gets the notifications of the server.
    `program`: another module whose `main` runs as the server, and its first arguments. `extensions`: of the client. All
    tools are offered, unless `options` choose.
    """
    log = roots[0].parent / f"{roots[0].name}.log"
    command, *arguments = server_command()
    if program:
        arguments += program[1:]
        environment = {**(environment or {}), INSTEAD: program[0]}
    elif "--tools" not in options:
        arguments += ["--tools", "all"]
    arguments += [*options, *map(str, roots if served is None else served)]
    server = StdioServerParameters(command=command, args=arguments, cwd=REPOSITORY, env=environment)
    with log.open("w") as errors, start_blocking_portal() as portal:
        client = Client(
            stdio_client(server, errors),
            mode=mode,
            elicitation_callback=person,
            list_roots_callback=None if client_roots is None else _list_roots_callback(client_roots),
            message_handler=on_message,
            extensions=extensions,
            client_info=Implementation(name="test agent", version="1.2.3"),
        )
        with portal.wrap_async_context_manager(client):
            yield Agent(portal, client, roots[0])
    logged = log.read_text()
    assert logged == expected, logged


def server_command() -> Sequence[str]:
    """Return the command that starts a server, to which its arguments are appended."""
    return (sys.executable, "-m", "mcptools") if _is_cold.get() else forked_program("mcptools", _begun_by.get()).command


@contextmanager
def cold_starts() -> Iterator[None]:
    """Start servers cold instead of forked: slower, for tests that concern the start itself."""
    token = _is_cold.set(True)
    try:
        yield
    finally:
        _is_cold.reset(token)


@contextmanager
def begun_by(*command: str) -> Iterator[None]:
    """Fork servers from a process that a command began, as for `forked_program`: with a limit, or fewer rights."""
    token = _begun_by.set(command)
    try:
        yield
    finally:
        _begun_by.reset(token)


_is_cold: Final = ContextVar("is_cold", default=False)
_begun_by: Final[ContextVar[tuple[str, ...]]] = ContextVar("begun_by", default=())


def _list_roots_callback(client_roots: Callable[[], Sequence[str]]) -> ListRootsFnT:
    async def names(context: ClientRequestContext) -> ListRootsResult:
        del context
        return ListRootsResult(roots=[Root(uri=FileUrl(address)) for address in client_roots()])

    return names


def _result(found: CallToolResult) -> Result:
    texts = [part.text for part in found.content if isinstance(part, TextContent)]
    assert len(texts) == len(found.content)
    return Result(refused=bool(found.is_error), structured=dict(found.structured_content or {}), texts=texts)
