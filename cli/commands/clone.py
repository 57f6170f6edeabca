"""The command `cas clone`."""

import click

from cli.app.invocation import Invocation, command, json_option
from cli.commands.pull import PULLING
from cli.screen.progress import Progress
from cli.screen.terminal import shown_name, write

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
        from objstore import json_line, text_shape

        write(
            [
                json_line(
                    {
                        "workspace": text_shape(made.root),
                        "remote": remote.name,
                        "records": made.records,
                        "blobs": made.blobs,
                        "files": made.files,
                    }
                )
            ]
        )
        return
    from cli.render.status import counted

    screen = Invocation.current().screen()
    verified = f"Verified {counted(made.records, 'record')} and {counted(made.blobs, 'blob')}: nothing is wrong."
    there = f"{shown_name(made.root)} is a workspace with the same history; {counted(made.files, 'file')} written."
    write([screen.line(verified), screen.line(there)])
