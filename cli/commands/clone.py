"""The command `cas clone`."""

import click

from cli.app.invocation import Invocation, command, json_option
from cli.commands.pull import PULLING
from cli.render.imports import imported_lines, imported_shape
from cli.screen.progress import Progress
from cli.screen.terminal import write

__all__ = ["clone"]


@command("clone")
@click.argument("url", metavar="URL")
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--store", metavar="NAME", default="", help="Which store, if the bucket has several.")
@json_option
def clone(*, url: str, directory: str, store: str, as_json: bool) -> None:
    """Make a workspace in the new or empty DIR from what was pushed to URL: its files and their whole history.

    Everything is verified before anything is kept. A clone that breaks off goes on where it was if you run it again.
    """
    from objstore import clone_remote

    with Progress(PULLING) as progress:
        made, remote = clone_remote(url, directory, store=store, progress=progress.report)
    if as_json:
        from objstore import json_line

        write([json_line({**imported_shape(made), "remote": remote.name})])
        return
    write(imported_lines(Invocation.current().screen(), made))
