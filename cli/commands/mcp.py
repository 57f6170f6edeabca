"""The command `cas mcp`."""

import os
import sys

import click

from cli.app.invocation import command
from cli.search.candidates import folders

__all__ = ["mcp"]


@command("mcp")
@click.argument("arguments", metavar="[DIR]...", nargs=-1, type=click.UNPROCESSED, shell_complete=folders)
def mcp(arguments: tuple[str, ...]) -> None:
    """Start the MCP server for DIR... on stdin and stdout. Its own options follow `--`."""
    # -P: Python must not import from the folder that the server starts in, where the agent writes.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "editledger", *arguments])  # noqa: S606 -- no shell
