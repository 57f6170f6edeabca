"""The command `cas status`: the workspace at a glance, or the edits that match a filter."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option
from cli.render.status import status_text
from cli.screen.terminal import Screen, write, write_json
from cli.search.candidates import conversation_option, file_option, takes_turns
from cli.selection.turn_selection import TurnSelection
from objstore import Status

if TYPE_CHECKING:
    from objstore import Remote, RemoteState, Workspace

__all__ = ["status"]


@command("status", takes_others=True)
@takes_turns("List the edits")
@conversation_option("List the edits of this conversation.")
@file_option("List the edits of the files that were ever at PATH.")
@click.option(
    "--status", "decided", type=click.Choice([status.value for status in Status]), help="List the edits of this status."
)
@click.option("--short", is_flag=True, help="Only what is pending, in a few words for a shell's prompt; else nothing.")
@json_option
def status(*, by: TurnSelection, conversation: str, file: str, decided: str | None, short: bool, as_json: bool) -> None:
    """Show the changes to review by turn, what changed outside, and how much is stored.

    With --turn, --session, --agent, --conversation, --file or --status, list the matching edits instead, newest first:
    number, id, time, status, operation, file and turn. With --json, one object a line, as `cas log --json`.
    """
    invocation = Invocation.current()
    if short and (conversation or file or decided or by.is_given or as_json):
        raise click.UsageError("--short takes no other option.")
    with invocation.reviewed_workspace() as workspace:
        if short:
            write(_short(workspace, invocation.screen()))
            return
        if conversation or file or decided or by.is_given:
            wanted = None if decided is None else Status(decided)
            _list_edits(workspace, conversation, file, wanted, by, as_json=as_json)
            return
        report = workspace.review.status()
        seen = workspace.review.seen_counts() if report.pending else None
        lost = workspace.lost_histories()
        remotes = _remotes(workspace) if workspace.has_remotes else []
    if as_json:
        from objstore import status_shape

        behind = [(remote.name, state.failure, edits) for remote, state, edits in remotes]
        write_json([status_shape(report, seen, lost, behind)])
    else:
        write(status_text(report, invocation.screen(), seen, lost, remotes))


def _remotes(workspace: "Workspace") -> "list[tuple[Remote, RemoteState, int]]":
    """Return each remote with what was seen of it, and how far it is behind."""
    return [(remote, state, workspace.remotes.behind(state)) for remote, state in workspace.remotes.all()]


def _short(workspace: "Workspace", screen: Screen) -> Iterator[bytes]:
    """Yield one line about what is pending, or nothing if nothing is."""
    pending, unattributed = workspace.review.pending_counts()
    said = [f"{pending - unattributed} pending"] if pending > unattributed else []
    said += [f"{unattributed} unattributed"] if unattributed else []
    if said:
        yield screen.line(", ".join(said))


def _list_edits(
    workspace: "Workspace", conversation: str, file: str, status: Status | None, by: TurnSelection, *, as_json: bool
) -> None:
    """List the edits that meet every condition given. Raises NoSuchName, AmbiguousName, PathError."""
    # Imported here: the overview needs none of it, and its start-up time matters.
    from dataclasses import replace
    from itertools import chain

    from cli.render.rows import Rows
    from cli.render.unreadable import ReadErrors
    from cli.search.edit_list import EditConditions, matching
    from cli.selection.selectors import edit_filter, places_named

    places = places_named(workspace, [file] if file else [], hidden=True)
    wanted = replace(edit_filter(workspace, conversation=conversation, status=status, by=by), path=places.file)
    terms = EditConditions(places=places, turns=frozenset(by.turns), agent=by.agent)
    views = matching(workspace, wanted, terms, None)
    read_errors = ReadErrors()
    if as_json:
        from objstore import edit_shape

        verdicts = workspace.history.verdicts()
        write_json(edit_shape(workspace, view, read_errors.note, verdicts) for view in views)
        read_errors.raise_first()
        return
    newest = next(views, None)
    if newest is None:
        click.echo("No edit matches.", err=True)
        return
    rows = Rows(workspace, Invocation.current().screen(), with_id=True)
    write(chain.from_iterable(map(rows.of, chain([newest], views))), paged=True)
