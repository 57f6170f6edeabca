"""The command `cas hash`."""

import click

from cli.app.invocation import Invocation, command, json_option
from cli.screen.terminal import shown_name, write, write_json

__all__ = ["hash_file"]


@command("hash")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@json_option
def hash_file(*, files: tuple[str, ...], as_json: bool) -> None:
    """Print the name under which each FILE's bytes are stored: their BLAKE3 hash, as printed by `b3sum`."""
    from blake3 import blake3

    # A file may be of any size, so it is hashed in place.
    found = [(name, blake3().update_mmap(name).hexdigest()) for name in files]
    if as_json:
        from objstore import text_shape

        write_json({"file": text_shape(name), "blob": digest} for name, digest in found)
    else:
        screen = Invocation.current().screen()
        write(screen.line(f"{digest}  {shown_name(name)}") for name, digest in found)
