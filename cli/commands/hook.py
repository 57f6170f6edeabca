"""The command `cas hook`."""

import sys

import click

from cli.app.invocation import command
from cli.commands.client_names import ClientName

__all__ = ["hook"]


@command("hook")
@click.argument("client", type=ClientName(), metavar="CLIENT")
def hook(*, client: str) -> None:
    """Record what a tool of CLIENT does, from an event on standard input. `cas setup` makes clients call this.

    It never fails, and prints only what the client's agent should read: which of its edits were rejected, and why.
    Errors go to `.cas/hook.log`, which `cas status` mentions and `cas doctor` shows.
    """
    from cli.hooks.handler import main

    main([client], sys.stdin.buffer.read())
