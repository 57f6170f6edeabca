"""The command `cas pull`."""

from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option
from cli.commands.remote import only_remote
from cli.screen.progress import Progress
from cli.screen.terminal import Screen, shown_name, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from objstore import PulledMember

__all__ = ["PULLING", "pull"]

PULLING = {"bytes": "fetching", "blobs": "checking", "documents": "replaying"}
"""Progress words of a pull."""


@command("pull")
@click.argument("name", metavar="[REMOTE]", default="")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be fetched; fetch nothing.")
@json_option
def pull(*, name: str, dry_run: bool, as_json: bool) -> None:
    """Fetch what others have pushed to a remote, and check it as an import does; your files stay as they are.

    `cas log NAME/` then lists the edits of the store NAME.
    """
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        name = name or only_remote(workspace)
        with Progress(PULLING) as progress:
            found = workspace.remotes.pull(name, dry_run=dry_run, progress=progress.report)
    if as_json:
        from objstore import json_line

        write(
            json_line(
                {
                    "remote": name,
                    "store": each.member.name,
                    "lane": each.member.lane,
                    "edits": each.member.edits,
                    "is_new": each.is_new,
                    "bytes": each.size,
                    "error": each.error or None,
                    "dry_run": dry_run,
                }
            )
            for each in found
        )
    else:
        write(_rows(found, invocation.screen(), name, dry_run=dry_run))
    if any(each.error for each in found):
        for each in found:
            if each.error:
                click.echo(f"cas: {each.member.name}: {shown_name(each.error)}", err=True)
        click.get_current_context().exit(1)


def _rows(found: "list[PulledMember]", screen: Screen, name: str, *, dry_run: bool) -> "Iterator[bytes]":
    from cli.render.status import counted, size_text

    for each in found:
        if each.error:
            continue
        if not each.is_new:
            yield screen.line(f"{each.member.name}: nothing new.")
            continue
        did = "would fetch" if dry_run else "fetched"
        yield screen.line(f"{each.member.name}: {did} {size_text(each.size)}, {counted(each.member.edits, 'edit')}.")
    if not found:
        yield screen.line(f"No other store has pushed to {name} yet.")
