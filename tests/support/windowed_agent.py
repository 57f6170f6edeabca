"""An agent for tests whose client says that it draws windows of a server (MCP Apps)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from mcp.client import advertise
from mcp.client.extension import ClientExtension
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID

from tests.support.command_runner import cas
from tests.support.mcp_agent import Agent, connected

__all__ = ["LINES", "TICKET", "allow_deciding", "raw_call", "ticket_of", "windowed"]

LINES: Final = "".join(f"{number}\n" for number in range(1, 21))
"""The text of the file that the tests of the window change."""

TICKET: Final = "editledger/ticket"
"""The member of a result's `_meta` that has the ticket."""


@contextmanager
def windowed(
    root: Path,
    *,
    mode: str = "auto",
    options: Sequence[str] = ("--tools", "default"),
    client_roots: Callable[[], Sequence[str]] | None = None,
    others: Sequence[ClientExtension] = (),
    environment: dict[str, str] | None = None,
) -> Iterator[Agent]:
    """Start a server on a directory, and connect a client that draws windows.

    `client_roots`, `environment`: as of `connected`. `others`: further extensions of the client.
    """
    extensions = [advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]}), *others]
    with connected(
        root, mode=mode, options=options, extensions=extensions, client_roots=client_roots, environment=environment
    ) as agent:
        yield agent


def allow_deciding(root: Path) -> None:
    """Let a person decide in windows, as the person does in a terminal."""
    assert cas("config", "set", "review.in_chat", "on", folder=root).status == 0


def raw_call(agent: Agent, tool: str, meta: dict[str, Any] | None = None, **arguments: object) -> dict[str, Any]:
    """Call a tool; return its result as it is on the wire. `meta`: the `_meta` of the request."""
    result = agent.run(lambda client: client.call_tool(tool, dict(arguments), meta=meta))  # type: ignore[arg-type]  # the SDK names the members that it knows
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def ticket_of(result: dict[str, Any]) -> str:
    """Return the ticket of a result; "": it has none."""
    ticket = result.get("_meta", {}).get(TICKET, "")
    assert isinstance(ticket, str)
    return ticket
