"""The command `cas store`: commands that look into the store, under one name."""

from typing import Final

import click

from cli.app.invocation import CommandGroup, imported_command

__all__ = ["store"]

_COMMANDS: Final = {
    "stats": "cli.commands.stats:stats",
    "convert": "cli.commands.convert:convert",
    "salvage": "cli.commands.salvage:salvage",
    "purge": "cli.commands.purge:purge",
    "pin": "cli.commands.pin:pin",
    "ls": "cli.commands.ls:listing",
    "cat": "cli.commands.cat:cat",
    "hash": "cli.commands.hash:hash_file",
    "verify": "cli.commands.verify:verify",
    "records": "cli.commands.records:records",
    "segments": "cli.commands.segments:segments",
}


class _Store(CommandGroup):
    """A group that imports a command when it is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Return the names of the commands, in the order of help."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's
        """Return the command of that name, or None."""
        if cmd_name not in _COMMANDS:
            return None
        return imported_command(_COMMANDS[cmd_name])


@click.group("store", cls=_Store)
def store() -> None:
    """Look into the store: sizes, blobs, records and segments; convert, rescue, pin and purge.

    All of these but `convert` work without `store`, too: `cas pin`, `cas purge PATH`.
    """
