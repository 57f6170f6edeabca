"""The command `cas claim`: claim changes that were found on disk, for the user or for an agent's session."""

from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option, reviewer
from cli.render.outcomes import shown_units
from cli.render.turns import session_name
from cli.screen.terminal import shown_name, write, write_json
from cli.search.candidates import named
from cli.selection.selectors import edits_named
from objstore import Action, Decided, EditFilter, Status

if TYPE_CHECKING:
    from objstore import EditView, Seq, SessionView, Workspace

__all__ = ["claim"]


@command("claim")
@click.argument("names", metavar="[EDIT]...", nargs=-1, type=named("edit"))
@click.option("--mine", is_flag=True, help="You made the changes: they are accepted.")
@click.option(
    "--session",
    metavar="N|NAME",
    default="",
    type=named("session"),
    help="This session of an agent made them: they await review with its edits.",
)
@click.option("--all", "everything", is_flag=True, help="All pending edits that are unattributed.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be claimed; change nothing.")
@json_option
def claim(*, names: tuple[str, ...], mine: bool, session: str, everything: bool, dry_run: bool, as_json: bool) -> None:
    """Claim unattributed changes (12, or 3..7): as yours, or as those of an agent's session.

    A change that an agent may have made, though no call is known to have made it, is unattributed and pending. `cas
    log` names the sessions that may have made it. No file changes; `cas undo` takes a claim back.
    """
    if mine == bool(session):
        raise click.UsageError("Pass --mine, or --session N (`cas log --sessions` lists them).")
    if bool(names) == everything:
        raise click.UsageError("Name edits (12), or pass --all.")
    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        of = workspace.sessions.find_session(session) if session else None
        outcome = workspace.review.claim(
            _unclaimed(workspace) if everything else _named(workspace, names),
            session=None if of is None else of.number,
            who=reviewer(),
            dry_run=dry_run,
        )
        if as_json:
            from objstore import outcome_shape

            # A claim changes no file, so a dry run has no diffs to show.
            write_json([outcome_shape(workspace, Action.CLAIM, outcome, dry_run=dry_run)])
            return
        if isinstance(outcome, Decided):
            units = shown_units((unit for unit, _ in outcome.verdicts), workspace.history.edit)
            said = f"{'Would claim' if dry_run else 'Claimed'} {units} {_for(of)}."
        else:
            said = "Nothing to do: claimed like that already." if names else "Nothing to do: no change is unattributed."
    write([invocation.screen().line(said)])


def _for(of: "SessionView | None") -> str:
    return "as yours, and accepted" if of is None else f"for {shown_name(session_name(of))}"


def _named(workspace: "Workspace", names: tuple[str, ...]) -> "list[Seq]":
    """Return the named edits; of a range or a conversation, those that are unattributed."""
    seqs: list[Seq] = []
    for name in names:
        views = [view for view, _ in edits_named(workspace, name)]
        seqs += [view.seq for view in views if len(views) == 1 or view.is_unattributed]
    return seqs


def _unclaimed(workspace: "Workspace") -> "list[Seq]":
    def is_unclaimed(view: "EditView") -> bool:
        return view.is_unattributed and view.expired is None

    return [view.seq for view in workspace.history.edits(EditFilter(status=Status.PENDING)) if is_unclaimed(view)]
