"""The command `cas clone`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option
from cli.commands.pull import FETCHED, PULLING
from cli.render.imports import imported_lines, imported_shape, not_empty
from cli.screen.progress import Progress
from cli.screen.terminal import shown_name, write, write_json

if TYPE_CHECKING:
    from objstore import Json

__all__ = ["clone"]


@command("clone")
@click.argument("url", metavar="URL")
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--store", metavar="NAME", default="", help="Which store, if the bucket has several.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be fetched; fetch nothing.")
@json_option
def clone(*, url: str, directory: str, store: str, dry_run: bool, as_json: bool) -> None:
    """Make a workspace in the new or empty DIR from what was pushed to URL: its files and their whole history.

    Everything is verified before anything is kept. A clone that breaks off goes on where it was if you run it again.
    """
    from objstore import clone_remote, plan_clone

    if dry_run:
        with _into(directory):
            member, size = plan_clone(url, directory, store=store)
        if as_json:
            shape: dict[str, Json] = {"store": member.name, "lane": member.lane, "edits": member.edits, "bytes": size}
            write_json([{**shape, "dry_run": True}])
            return
        from cli.render.status import size_text
        from objstore import counted

        of = f"{shown_name(member.name)}, {counted(member.edits, 'edit')}"
        write([Invocation.current().screen().line(f"Would fetch {size_text(size)}: {of}.")])
        return
    with Progress(PULLING, interrupted=FETCHED) as progress, _into(directory):
        made, remote = clone_remote(url, directory, store=store, progress=progress.report)
    if as_json:
        write_json([{**imported_shape(made), "remote": remote.name}])
        return
    write(imported_lines(Invocation.current().screen(), made))


@contextmanager
def _into(directory: str) -> Iterator[None]:
    """Say what to do if the directory is not empty."""
    from objstore import FileExists

    try:
        yield
    except FileExists as error:
        raise click.ClickException(f"{not_empty(error.path, directory)} Clone into a new folder.") from error
