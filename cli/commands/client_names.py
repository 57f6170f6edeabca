"""The names of clients, for the commands that connect them."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cli.hooks.clients.described import DESCRIBED, is_description

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from cli.setup.plans import Programs


__all__ = ["CLIENTS", "NAMES", "ClientName", "programs_at"]

NAMES: Final = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "opencode": "opencode",
}
"""What each client calls itself."""

CLIENTS: Final = (*NAMES, *DESCRIBED)


class ClientName(click.ParamType[str]):
    """A client by its name, or by the path of the file that describes it."""

    name = "client"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or the absolute path. Fails for what is neither."""
        if is_description(value):
            return str(Path(value).resolve())
        return str(click.Choice(CLIENTS).convert(value, param, ctx))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        """Return the names that begin so."""
        return click.Choice(CLIENTS).shell_complete(ctx, param, incomplete)


def programs_at(address: str = "") -> "Programs":
    """Return the commands that clients should call: by name if it leads to this installation, else by path.

    `address`: of a server over HTTP. A client gets an address of its own there, unless this one has a name already.
    """
    from cli.setup.plans import Programs

    return Programs(cas=_program("cas"), server=_program("editledger"), address=address, name=os.urandom(8).hex())


def _program(name: str) -> str:
    own = Path(sys.executable).with_name(name)
    # A client that is started elsewhere doesn't have the activated environment of this shell.
    active = os.environ.get("VIRTUAL_ENV")
    places = [place for place in os.get_exec_path() if not active or not Path(place).is_relative_to(active)]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is not None and (not own.exists() or os.path.realpath(found) == os.path.realpath(own)):
        return name
    return str(own)
