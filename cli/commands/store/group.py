"""The command `cas store`: commands that look into the store, under one name."""

from typing import Final

import click

from cli.app.invocation import CommandGroup, imported_command

__all__ = ["store"]

_COMMANDS: Final = {
    "stats": "cli.commands.store.stats:stats",
    "salvage": "cli.commands.store.fsck_salvage:salvage",
    "purge": "cli.commands.keeping.purge:purge",
    "pin": "cli.commands.keeping.pin:pin",
    "ls": "cli.commands.store.plumbing:listing",
    "cat": "cli.commands.reviewing.diff_cat:cat",
    "hash": "cli.commands.store.plumbing:hash_file",
    "verify": "cli.commands.store.plumbing:verify",
    "records": "cli.commands.store.plumbing:records",
    "segments": "cli.commands.store.plumbing:segments",
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
    """Look into the store: sizes, blobs, records and segments; rescue, pin and purge."""
