"""The command `cas remote`: where this store is shared, what is not pushed yet, and what others have there."""

from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command_group, json_option
from cli.screen.terminal import Screen, shown_name, write, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from objstore import Json, Member, Remote, RemoteState, Workspace

__all__ = ["only_remote", "remote"]

_WHEN = click.Choice(["never", "stop"])


@command_group("remote", otherwise="list")
def remote() -> None:
    """Share this store through a bucket or a folder: a copy elsewhere, and reviews by others."""


@remote.command("list")
@json_option
def listing(*, as_json: bool) -> None:
    """List the remotes: what is not pushed yet, and what of others is undecided, as far as it was pulled.

    With --json, one object a line.
    """
    invocation = Invocation.current()
    screen = invocation.screen()
    with invocation.workspace() as workspace:
        found = [(each, state, workspace.remotes.behind(state)) for each, state in workspace.remotes.all()]
        waiting = {each.name: workspace.remote_decisions.waiting(each) for each, _, _ in found}
        undecided = {
            str(member.lane): _undecided(workspace, each, member)
            for each, state, _ in found
            for member in state.members.values()
        }
        if as_json:
            shapes = (_shape(each, state, behind, waiting[each.name], undecided) for each, state, behind in found)
            write_json(shapes)
            return
        for each, state, behind in found:
            write(_rows(each, state, behind, undecided, screen))
            if waiting[each.name]:
                noun = "decision or comment" if waiting[each.name] == 1 else "decisions or comments"
                decided = f"{waiting[each.name]} {noun} of others to be carried out"
                write([screen.line(f"  {decided} (`{invocation.program} pull {each.name}`)")])
    if not found:
        click.echo(f"There are no remotes. `{invocation.program} remote add NAME URL` adds one.", err=True)


@remote.command("add")
@click.argument("name", metavar="NAME")
@click.argument("url", metavar="URL")
@click.option(
    "--as", "label", metavar="LABEL", default="", help="What this store is called there. Default: its folder."
)
@click.option(
    "--push", type=_WHEN, default="never", help="Push after each turn of an agent (stop), or only by `cas push`."
)
@json_option
def add(*, name: str, url: str, label: str, push: str, as_json: bool) -> None:
    """Add a remote: s3://BUCKET/PREFIX, az://, gs:// or file:///FOLDER.

    Eight writers try whether the bucket lets only one of them create an object; one that doesn't is refused. Keys come
    from the environment, and are not written down. Encryption is the bucket's, or none.
    """
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        workspace.review.require_person()
        added = workspace.remotes.add(name, url, label=label, push=push)
        state = workspace.remotes.get(name)[1]
        if as_json:
            shape = _shape(added.remote, state, workspace.remotes.behind(state))
            write_json([{**shape, "probe": {"writers": added.probed.writers, "keys": added.probed.keys}}])
            return
    screen, probed = invocation.screen(), added.probed
    found = f"of {probed.writers} writers that created {probed.keys} objects at once, one succeeded each time"
    write([screen.line(f"Added {name}: {found}. `{invocation.program} push {name}` sends the store.")])


@remote.command("set")
@click.argument("name", metavar="NAME")
@click.option(
    "--push", type=_WHEN, required=True, help="Push after each turn of an agent (stop), or only by `cas push`."
)
def change(*, name: str, push: str) -> None:
    """Say when a remote is pushed to."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        workspace.review.require_person()
        workspace.remotes.set_push(name, push)
    when = "after each turn of an agent" if push == "stop" else f"only by `{invocation.program} push`"
    write([invocation.screen().line(f"{name} is pushed to {when}.")])


@remote.command("remove")
@click.argument("name", metavar="NAME")
def remove(*, name: str) -> None:
    """Forget a remote and the copies of others' stores; the bucket keeps what it has."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        workspace.review.require_person()
        workspace.remotes.remove(name)
    write([invocation.screen().line(f"Forgot {name}. What was pushed is still there.")])


@remote.command("gc")
@click.argument("name", metavar="NAME", default="")
@click.option(
    "--purge", is_flag=True, help="Remove at once, after a `cas purge`: whoever is pulling has to begin again."
)
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be removed; remove nothing.")
@json_option
def collect(*, name: str, purge: bool, dry_run: bool, as_json: bool) -> None:
    """Remove from a bucket what the newest push of this store doesn't need.

    What is found is noted, and removed by the first collection a day later, so that whoever is pulling can finish.
    """
    from objstore import WAIT_HOURS

    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        workspace.review.require_person()
        name = name or only_remote(workspace)
        done = workspace.remotes.collect(name, purge=purge, dry_run=dry_run)
    if as_json:
        from objstore import json_line

        write(
            [
                json_line(
                    {
                        "remote": name,
                        "removed": done.removed,
                        "removed_bytes": done.removed_bytes,
                        "waiting": done.waiting,
                        "waiting_bytes": done.waiting_bytes,
                        "dry_run": dry_run,
                    }
                )
            ]
        )
        return
    from cli.render.status import size_text
    from objstore import counted

    screen = invocation.screen()
    would = "Would remove" if dry_run else "Removed"
    write([screen.line(f"{would} {counted(done.removed, 'object')}, {size_text(done.removed_bytes)}.")])
    if done.waiting:
        later = f"{counted(done.waiting, 'object')}, {size_text(done.waiting_bytes)}, can go in {WAIT_HOURS} hours"
        write([screen.line(f"{later}: whoever is pulling may need them until then.")])
    if purge and not dry_run:
        write([screen.line("If the bucket keeps versions, or has backups, these may still hold the removed bytes.")])


def only_remote(workspace: "Workspace") -> str:
    """Return the name of the only remote. Raises click.UsageError if there are several, and RemoteUnknown if none."""
    names = [each.name for each, _ in workspace.remotes.all()]
    if len(names) > 1:
        raise click.UsageError(f"Name one of the remotes {', '.join(names)}.")
    return names[0] if names else workspace.remotes.get("origin")[0].name


def _undecided(workspace: "Workspace", each: "Remote", member: "Member") -> int | None:
    """Return how many edits of another store are undecided (None: its mirror can't be read)."""
    from cli.selection.elsewhere import Elsewhere
    from objstore import CasError

    try:
        return Elsewhere(workspace, each, member).undecided_edits()
    except CasError:
        return None


def _rows(
    each: "Remote", state: "RemoteState", behind: int, undecided: "Mapping[str, int | None]", screen: Screen
) -> "Iterator[bytes]":
    from cli.render.status import behind_words
    from objstore import counted

    when = ", after each turn" if each.push == "stop" else ""
    yield screen.line(f"{each.name}  {shown_name(each.url)}  {behind_words(state, behind)}{when}")
    for member in state.members.values():
        left, edits = undecided[member.lane], counted(member.edits, "edit")
        if left is None:
            edits = f"{edits}, but the copy here can't be read"
        elif left:
            edits = f"{edits}, {left} undecided"
        yield screen.line(f"  {member.name}  {edits}  {member.lane}")


def _shape(
    each: "Remote",
    state: "RemoteState",
    behind: int,
    waiting: int = 0,
    undecided: "Mapping[str, int | None] | None" = None,
) -> "dict[str, Json]":
    members: list[Json] = [
        {
            "name": member.name,
            "lane": member.lane,
            "edits": member.edits,
            "undecided": (undecided or {}).get(member.lane, 0),
            "head": member.seen.number,
        }
        for member in state.members.values()
    ]
    return {
        "name": each.name,
        "url": each.url,
        "label": each.label,
        "lane": each.lane,
        "push": each.push,
        "pushed": None if state.pushed is None else {"head": state.pushed.number, "edits": state.pushed_edits},
        "is_behind": state.pushed is None or behind != 0,
        "edits_behind": max(behind, 0),
        "failure": state.failure or None,
        "stores": members,
        "waiting": waiting,
    }
