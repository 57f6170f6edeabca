"""A server in which no call reaches its tool while a certain file exists: its first argument."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from mcptools.server import command
from mcptools.server.mcp_server import EditServer

__all__ = ["main"]


def main() -> None:
    """Run the server."""
    held, notice = Path(sys.argv.pop(1)), EditServer._notice  # noqa: SLF001 -- calls pass there before their tool

    async def holding(server: EditServer, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> object:  # noqa: ANN401 -- as the SDK has it
        while ctx.method == "tools/call" and held.exists():  # noqa: ASYNC110, ASYNC240 -- the test is another process
            await anyio.sleep(0.01)
        return await notice(server, ctx, call_next)

    EditServer._notice = holding  # type: ignore[method-assign, assignment]  # noqa: SLF001 -- as above
    command.main()
