"""An agent for tests: the official client, talking to a real server process over its standard streams."""

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
from tests.support.fork_server import forked_program

if TYPE_CHECKING:
    from concurrent.futures import Future

REPOSITORY: Final = Path(__file__).resolve().parents[2]
SECONDS_TO_ANSWER: Final = 60.0

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool call came back with."""

    refused: bool
    structured: dict[str, Any]
    texts: list[str]

    @property
    def text(self) -> str:
        """Return the first text, which is the document's message or content."""
        return self.texts[0]

    @property
    def error(self) -> dict[str, Any]:
        """Return what a failure says of itself."""
        assert self.refused, self.structured
        error: dict[str, Any] = self.structured["error"]
        return error


class Agent:
    """One client with its server, and the first of the server's directories."""

    def __init__(self, portal: BlockingPortal, client: Client, root: Path) -> None:
        self.root = root
        self._portal = portal
        self._client = client

    def tools(self) -> list[Tool]:
        """Return what the server offers."""
        return self._portal.call(self._client.list_tools).tools

    def call(self, tool: str, **arguments: object) -> Result:
        """Call a tool, and wait for what it says."""
        return self.together([(tool, arguments)])[0]

    def done(self, tool: str, **arguments: object) -> Result:
        """Call a tool that has to succeed."""
        result = self.call(tool, **arguments)
        assert not result.refused, result.structured
        return result

    def together(self, calls: Sequence[tuple[str, Mapping[str, object]]]) -> list[Result]:
        """Make calls at once, and wait for all of them."""
        return self._portal.call(self._together, calls)

    def start(self, calls: Sequence[tuple[str, Mapping[str, object]]]) -> "Future[list[Result]]":
        """Make calls at once, and don't wait."""
        return self._portal.start_task_soon(self._together, calls)

    def resource(self, address: str) -> TextResourceContents | BlobResourceContents:
        """Return what stands at an address."""
        (content,) = self._portal.call(self._client.read_resource, address).contents
        return content

    def run(self, work: Callable[[Client], Awaitable[ResultT]]) -> ResultT:
        """Do with the client what has no method here, and wait for it, but not for ever."""

        async def bounded() -> ResultT:
            with anyio.fail_after(SECONDS_TO_ANSWER):
                return await work(self._client)

        return self._portal.call(bounded)

    def history(self) -> list[EditView]:
        """Return what the first directory's store has recorded; nothing where there is none yet."""
        try:
            with Workspace.open(self.root) as workspace:
                return workspace.history.edits()
        except NotAWorkspace:
            return []

    async def _together(self, calls: Sequence[tuple[str, Mapping[str, object]]]) -> list[Result]:
        results: dict[int, Result] = {}

        async def one(index: int, tool: str, arguments: Mapping[str, object]) -> None:
            with anyio.fail_after(SECONDS_TO_ANSWER):
                results[index] = _result(await self._client.call_tool(tool, dict(arguments)))

        async with anyio.create_task_group() as tasks:
            for index, (tool, arguments) in enumerate(calls):
                tasks.start_soon(one, index, tool, arguments)
        return [results[index] for index in range(len(calls))]


@contextmanager
def connected(
    *roots: Path,
    mode: str = "auto",
    options: Sequence[str] = (),
    person: ElicitationFnT | None = None,
    served: Sequence[Path] | None = None,
    named: Callable[[], Sequence[str]] | None = None,
    heard: MessageHandlerFnT | None = None,
    environment: dict[str, str] | None = None,
    program: Sequence[str] = (),
) -> Iterator[Agent]:
    """Start a server on directories, and connect to it. Whatever the server logs is a failure of the test.

    `served`: those on its command line, where they are not `roots`. `named`: the addresses that the client names as
    its roots, whenever it is asked. `heard`: gets what the server says unasked.
    `program`: another module that is the server, and its first arguments.
    """
    log = roots[0].parent / f"{roots[0].name}.log"
    command, *arguments = (sys.executable, "-m", *program) if program else server_command()
    arguments += [*options, *map(str, roots if served is None else served)]
    server = StdioServerParameters(command=command, args=arguments, cwd=REPOSITORY, env=environment)
    with log.open("w") as errors, start_blocking_portal() as portal:
        client = Client(
            stdio_client(server, errors),
            mode=mode,
            elicitation_callback=person,
            list_roots_callback=None if named is None else _names(named),
            message_handler=heard,
            client_info=Implementation(name="test agent", version="1.2.3"),
        )
        with portal.wrap_async_context_manager(client):
            yield Agent(portal, client, roots[0])
    said = log.read_text()
    assert said == "", said


def server_command() -> Sequence[str]:
    """Return what starts a server, for its words to stand behind."""
    return (sys.executable, "-m", "mcptools") if _is_cold.get() else forked_program("mcptools").command


@contextmanager
def cold_starts() -> Iterator[None]:
    """Have servers started with all that their start does: slower, and for tests of which that is a part."""
    token = _is_cold.set(True)
    try:
        yield
    finally:
        _is_cold.reset(token)


_is_cold: Final = ContextVar("is_cold", default=False)


def _names(named: Callable[[], Sequence[str]]) -> ListRootsFnT:
    async def names(context: ClientRequestContext) -> ListRootsResult:
        del context
        return ListRootsResult(roots=[Root(uri=FileUrl(address)) for address in named()])

    return names


def _result(found: CallToolResult) -> Result:
    texts = [part.text for part in found.content if isinstance(part, TextContent)]
    assert len(texts) == len(found.content)
    return Result(refused=bool(found.is_error), structured=dict(found.structured_content or {}), texts=texts)
