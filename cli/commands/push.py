"""The command `cas push`."""

from typing import Final

import click

from cli.app.invocation import Invocation, command, json_option
from cli.commands.remote import only_remote
from cli.screen.progress import Progress
from cli.screen.terminal import write, write_json

__all__ = ["push"]

_INTERRUPTED: Final = "Interrupted: what was sent stays there. Run the command again to finish."


@command("push")
@click.argument("name", metavar="[REMOTE]", default="")
@click.option("--again", is_flag=True, help="The bucket was rolled back or emptied: send what it lacks.")
@click.option("--new-lane", is_flag=True, help="The bucket has another history of this store: go on next to it.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be sent; send nothing.")
@click.option("--background", is_flag=True, hidden=True)
@json_option
def push(*, name: str, again: bool, new_lane: bool, dry_run: bool, background: bool, as_json: bool) -> None:
    """Send what a remote lacks of this store. A push that breaks off goes on where it was.

    Files are not sent as such: the store is, and it holds every recorded state of them. `cas clone URL DIR` makes a
    workspace of it.
    """
    from objstore import CasError, PushPlan

    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        name = name or only_remote(workspace)
        if new_lane or again:
            workspace.review.require_person()
        try:
            with Progress({"bytes": "sending"}, interrupted=_INTERRUPTED) as progress:
                done = workspace.remotes.push(
                    name, again=again, new_lane=new_lane, dry_run=dry_run, progress=progress.report
                )
        except CasError as error:
            if background:
                workspace.remotes.note_failure(name, str(error))
            raise
    sent, size = (len(done.sent), done.size) if isinstance(done, PushPlan) else (done.pieces, done.size)
    if as_json:
        head = None if isinstance(done, PushPlan) else done.head.number
        write_json([{"remote": name, "objects": sent, "bytes": size, "head": head, "dry_run": dry_run}])
        return
    from cli.render.status import size_text
    from objstore import counted

    what = f"{counted(sent, 'object')}, {size_text(size)}"
    if isinstance(done, PushPlan):
        said = f"Would send {what} to {name}."
    elif done.is_new:
        said = f"Sent {what} to {name}, which has {counted(done.head.edits, 'edit')} now."
    else:
        said = f"{name} has everything already."
    write([invocation.screen().line(said)])
