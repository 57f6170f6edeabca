"""The command `cas hash`."""

import click

from cli.app.invocation import Invocation, command, json_option
from cli.commands.plumbing import json_row, json_text
from cli.screen.terminal import shown_name, write

__all__ = ["hash_file"]


@command("hash")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@json_option
def hash_file(*, files: tuple[str, ...], as_json: bool) -> None:
    """Print the name under which each FILE's bytes are stored: their BLAKE3 hash, as printed by `b3sum`."""
    from blake3 import blake3

    screen = Invocation.current().screen()
    lines = []
    for name in files:
        # It may be of any size, so it is hashed in place.
        digest = blake3().update_mmap(name).hexdigest()
        lines.append(
            json_row({"file": json_text(name), "blob": digest}) if as_json else screen.line(_row(digest, name))
        )
    write(lines)


def _row(digest: str, name: str) -> str:
    return f"{digest}  {shown_name(name)}"
