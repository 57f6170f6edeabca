"""The command `cas pull`."""

from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option
from cli.commands.remote import only_remote
from cli.screen.progress import CHECKING, Progress
from cli.screen.terminal import flush, shown_name, write, write_json
from cli.selection.elsewhere import Elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from objstore import Carried, Json, PulledMember, Workspace

__all__ = ["FETCHED", "PULLING", "pull"]

PULLING = {"bytes": "fetching", **CHECKING}
"""Progress words of a pull."""

FETCHED = "Interrupted: what was fetched is kept. Run the command again to finish."


@command("pull")
@click.argument("name", metavar="[REMOTE]", default="")
@click.option("--no-carry", is_flag=True, help="Only fetch; leave what others decided on this store for later.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be fetched; fetch nothing.")
@json_option
def pull(*, name: str, no_carry: bool, dry_run: bool, as_json: bool) -> None:
    """Fetch what others have pushed to a remote, check it as an import does, and carry out what they decided.

    `cas log NAME/` then lists the edits of the store NAME, and `cas reject NAME/12:2 -m REASON` decides on one. What
    others decided on this store is carried out by the rules for your own decisions, and `cas undo` takes it back; in an
    agent's shell nothing is. Your files change by nothing else.
    """
    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        name = name or only_remote(workspace)
        with Progress(PULLING, interrupted=FETCHED) as progress:
            found = workspace.remotes.pull(name, dry_run=dry_run, progress=progress.report)
        with workspace.messages.held():  # agents are sent what others said once the person was shown it
            carried: list[Carried] = []
            try:
                if not (no_carry or dry_run):
                    _carry(workspace, name, carried)
            finally:  # what was carried out before an error changed files, too
                if as_json:
                    write_json(_pulled_shape(each, name, dry_run=dry_run) for each in found)
                    write_json(map(_carried_shape, carried))
                else:
                    remote = workspace.remotes.get(name)[0]
                    undecided = {
                        str(each.member.lane): Elsewhere(workspace, remote, each.member).undecided_edits()
                        for each in found
                        if each.is_new and not (each.error or dry_run)
                    }
                    write(_rows(found, invocation, name, undecided, dry_run=dry_run, is_alone=not carried))
                    write(map(invocation.screen().line, map(_carried_line, carried)))
                flush()
    if any(each.error for each in found):
        for each in found:
            if each.error:
                click.echo(f"cas: {each.member.name}: {shown_name(each.error)}", err=True)
        click.get_current_context().exit(1)


def _carry(workspace: "Workspace", name: str, carried: "list[Carried]") -> None:
    """Carry out what others decided, and add it to `carried`, unless an agent's shell asks for it."""
    from objstore import AgentDecides

    try:
        workspace.remote_decisions.carry(name, carried.append)
    except AgentDecides as error:
        click.echo(f"cas: what others decided here was not carried out. {error}", err=True)


def _pulled_shape(each: "PulledMember", remote: str, *, dry_run: bool) -> "dict[str, Json]":
    return {
        "remote": remote,
        "store": each.member.name,
        "lane": each.member.lane,
        "edits": each.member.edits,
        "is_new": each.is_new,
        "bytes": each.size,
        "error": each.error or None,
        "dry_run": dry_run,
    }


def _carried_line(each: "Carried") -> str:
    from cli.render.net_diff import named_units

    did = "comment on" if each.action is None else f"{each.action.value} of"
    what = f"{did} {named_units(each.units)} by {shown_name(each.who) or 'somebody'}"
    because = ":" if each.action is None else ", because:"
    reason = f"{because} {shown_name(each.reason)}" if each.reason else ""
    match each.result:
        case "carried":
            return f"{'Took over' if each.action is None else 'Carried out'}: {what}{reason}"
        case "refused":
            return f"Refused: {what}{reason}: {shown_name(each.why)}"
        case _:
            return f"Waits: {what}{reason}: {shown_name(each.why)}"


def _carried_shape(each: "Carried") -> "dict[str, Json]":
    units: list[Json] = [*map(str, each.units)]
    return {
        "entry": each.number,
        "action": "comment" if each.action is None else each.action.value,
        "units": units,
        "who": each.who,
        "reason": each.reason or None,
        "result": each.result,
        "why": each.why or None,
    }


def _rows(
    found: "list[PulledMember]",
    invocation: Invocation,
    name: str,
    undecided: "Mapping[str, int]",
    *,
    dry_run: bool,
    is_alone: bool,
) -> "Iterator[bytes]":
    from cli.render.status import size_text
    from objstore import counted

    screen = invocation.screen()
    for each in found:
        if each.error:
            continue
        if not each.is_new:
            yield screen.line(f"{each.member.name}: nothing new.")
            continue
        did = "would fetch" if dry_run else "fetched"
        left = undecided.get(each.member.lane, 0)
        rest = f"; {left} undecided (`{invocation.program} review {each.member.name}/`)" if left else ""
        yield screen.line(
            f"{each.member.name}: {did} {size_text(each.size)}, {counted(each.member.edits, 'edit')}{rest}."
        )
    if is_alone and not found:
        yield screen.line(f"No other store has pushed to {name} yet.")
