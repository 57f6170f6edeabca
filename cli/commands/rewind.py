"""The command `cas rewind`: take out what a session of an agent did from one of its turns on."""

from os import fsdecode
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import command, reviewer
from cli.app.member_names import NumberName
from cli.commands.check import takes_check
from cli.commands.decision_command import DecisionCommand, WayOut, takes_decision_options, takes_reason
from cli.commands.reject import KEEP_LINES_HELP
from cli.render.external_prompt import refuse
from cli.render.outcomes import effect_line, effect_text
from cli.render.turns import TurnRows, session_name
from cli.screen.progress import DECIDING, showing_progress
from cli.screen.terminal import shown_name, write, write_json
from cli.search.candidates import named, names
from cli.selection.unit_selection import UnitSelection
from objstore import (
    MAX_INT,
    Action,
    Conflicted,
    Decided,
    DecisionOutcome,
    ExternalChanges,
    NothingToDo,
    OnExternal,
    Selected,
    Status,
    counted,
    counted_edits,
    outcome_name,
    shown_edits,
    value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.screen.terminal import Screen
    from objstore import CallOutcome, Json, SessionView, TurnView, Workspace

__all__ = ["rewind"]

_SHOWN: Final = 20
"""Turns of which the list shows what going back does: each is tried."""


@command("rewind")
@click.argument("turn", metavar="[TURN]", type=NumberName(1, MAX_INT, names("turn")), required=False)
@click.option(
    "--session",
    metavar="N|NAME",
    default="",
    type=named("session"),
    help="List the turns of this session. Default: the one that worked last.",
)
@takes_reason
@click.option("--cascade", is_flag=True, help="Also reject what others did that depends on it.")
@click.option("--keep-lines", is_flag=True, help=KEEP_LINES_HELP)
@click.option("--exact", is_flag=True, help="Restore all recorded files as they were then, others' changes included.")
@takes_check
@takes_decision_options
def rewind(
    *,
    decision_command: DecisionCommand,
    turn: int | None,
    session: str,
    reason: str,
    cascade: bool,
    keep_lines: bool,
    exact: bool,
) -> None:
    """Go back to before a turn: reject what its session did from TURN on, and nothing else.

    Without TURN, list the turns of a session, newest first, with what going back to before each would do. The edits of
    other sessions and your own stay. With --exact, restore all recorded files as they were when that prompt was given,
    as edits of yours. `cas undo` takes either back.
    """
    if exact and (cascade or keep_lines or reason or decision_command.check):
        given = "--cascade, --keep-lines, --check and --reason"
        raise click.UsageError(f"--exact restores files and rejects nothing: leave out {given}.")
    if cascade and keep_lines:
        raise click.UsageError("--cascade and --keep-lines exclude each other: pass one of them.")
    with decision_command.invocation.reviewed_workspace() as workspace:
        if turn is None:
            if cascade or keep_lines or reason or exact or decision_command.check:
                raise click.UsageError("Name the turn to go back to.")
            _list_turns(workspace, decision_command, session)
            return
        start = workspace.sessions.turn(turn)
        of = workspace.sessions.session(start.session)
        if session and workspace.sessions.find_session(session).number != of.number:
            raise click.UsageError(f"Turn {turn} is of session {of.number} ({shown_name(of.client or 'agent')}).")
        if exact:
            _restore(workspace, decision_command, turn)
            return
        units = workspace.review.units_since_turn(turn)
        accepted = [unit for unit, status in units.items() if status is Status.ACCEPTED]
        if units and decision_command.asks:
            whose = f"what {shown_name(session_name(of))} did from turn {turn} on"
            click.confirm(f"This rejects {counted_edits(units, accepted)}: {whose}. Go ahead?", abort=True, err=True)
        selection = UnitSelection(names=(str(turn),), command="rewind")
        way_out = WayOut(cascade=cascade, keeps_lines=keep_lines)
        decision_command.decide_units(
            workspace,
            Action.REJECT,
            selection,
            Selected(units=units, named=tuple(sorted(units))),
            way_out,
            reason=reason,
        )


def _restore(workspace: "Workspace", decision_command: DecisionCommand, turn: int) -> None:
    """Restore the files as they were before a turn, and report it; exits 1 when it is refused."""
    on_external = decision_command.on_external or OnExternal.ABORT

    def restored(*, dry_run: bool) -> "CallOutcome":
        with showing_progress(workspace, DECIDING):
            found = workspace.review.rewind_exactly(turn, who=reviewer(), on_external=on_external, dry_run=dry_run)
        if isinstance(found, ExternalChanges):
            refuse(workspace, found.changes, on_external, decision_command.invocation.program)
        return found

    dry_run = decision_command.dry_run
    if decision_command.asks and (edits := restored(dry_run=True).edits):
        files = counted(len({view.edit.path for view in edits}), "file")
        click.confirm(f"This restores {files} as before turn {turn}. Go ahead?", abort=True, err=True)
    outcome = restored(dry_run=dry_run)
    if decision_command.as_json:
        from cli.json_shapes.diffs import with_diffs
        from objstore import path_shape, restored_shape

        shape = restored_shape(workspace, outcome, dry_run=dry_run)
        shape["older"] = [path_shape(workspace.root, path) for path in outcome.older]
        write_json([with_diffs(workspace, outcome.files, shape) if dry_run else shape])
        return
    write(_restored_text(workspace, decision_command, outcome), paged=dry_run)


def _restored_text(
    workspace: "Workspace", decision_command: DecisionCommand, outcome: "CallOutcome"
) -> "Iterator[bytes]":
    screen, dry_run = decision_command.invocation.screen(), decision_command.dry_run
    if dry_run:
        yield screen.line("Dry run: nothing was changed.")
    for view in outcome.external:
        name = shown_name(fsdecode(view.edit.path))
        if dry_run:
            yield screen.line(f"Would record the change from outside to {name}.")
        else:
            yield screen.line(f"Recorded the change from outside to {name} as edit {view.seq}.")
    for effect in outcome.files:
        yield screen.line(effect_line(effect, dry_run=dry_run))
    for path in outcome.older:
        yield screen.line(
            f"Kept {shown_name(path)}: it came into sight later, and it or what it was made of may have been there."
        )
    if not outcome.edits:
        yield screen.line(f"No file {'changes' if dry_run else 'changed'}: all recorded files are as they were then.")
    elif dry_run:
        yield from effect_text(outcome.files, workspace.review.preview, screen)
    else:
        numbers = shown_edits([view.seq for view in outcome.edits])
        edits = f"edit{'' if len(outcome.edits) == 1 else 's'} {numbers}"
        yield screen.line(
            f"Recorded as {edits} of yours; `{decision_command.invocation.program} undo` takes that back."
        )
    if outcome.given_to:
        from objstore import given_words

        yield screen.line(given_words("What was restored", outcome.given_to))


# ---- the list


@value
class _Effect:
    """The effect of rewinding to before a turn."""

    outcome: DecisionOutcome
    paths: tuple[str, ...]  # files that it would change
    added: int  # lines
    removed: int


def _list_turns(workspace: "Workspace", decision_command: DecisionCommand, session: str) -> None:
    of = workspace.sessions.find_session(session) if session else _newest(workspace)
    if of is None:
        raise click.ClickException("No turn of an agent is recorded yet.")
    turns = workspace.sessions.turns(of.number)[: -_SHOWN - 1 : -1]
    if not turns:
        client = shown_name(session_name(of))
        raise click.ClickException(
            f"No turn of {client} is recorded; `cas reject --session {of.number}` rejects it all."
        )
    with showing_progress(workspace, DECIDING):
        found = [(turn, _effect(workspace, turn)) for turn in turns]
    if decision_command.as_json:
        from objstore import turn_shape

        write_json(turn_shape(turn) | {"rewind": _shape(effect)} for turn, effect in found)
        return
    screen = decision_command.invocation.screen()
    write(_text(found, of, screen, decision_command.invocation.program), paged=True)


def _newest(workspace: "Workspace") -> "SessionView | None":
    """Return the session with turns that worked last."""
    return max((of for of in workspace.sessions.sessions() if of.turns), key=lambda of: of.ended, default=None)


def _effect(workspace: "Workspace", turn: "TurnView") -> _Effect:
    from cli.render.diffstat import file_change

    units = workspace.review.units_since_turn(turn.number)
    outcome: DecisionOutcome = NothingToDo()
    if units:
        outcome = workspace.decide(Action.REJECT, [*units], who=reviewer(), shown=units, with_names=False, dry_run=True)
    files = outcome.files if isinstance(outcome, Decided) else ()
    names = tuple(effect.path_before or effect.path_after or "" for effect in files)
    changes = [file_change(name, *workspace.review.preview(effect)) for name, effect in zip(names, files, strict=True)]
    added, removed = sum(change.added for change in changes), sum(change.removed for change in changes)
    return _Effect(outcome=outcome, paths=names, added=added, removed=removed)


def _text(
    found: "list[tuple[TurnView, _Effect]]", of: "SessionView", screen: "Screen", program: str
) -> "Iterator[bytes]":
    rows = TurnRows([of], screen)
    for turn, effect in found:
        yield rows.of_turn(turn)
        yield screen.line(f"{'':7}{_words(effect, turn, program)}")


def _words(effect: _Effect, turn: "TurnView", program: str) -> str:
    """Return in words what going back to before a turn would do."""
    command = f"{program} rewind {turn.number}"
    match effect.outcome:
        case Decided():
            taken = effect.outcome.taken_back
            edits = counted_edits(effect.outcome.decided, taken)
            of = f" ({edits})" if taken else ""
            return f"{command}: {counted(len(effect.paths), 'file')}, +{effect.added} -{effect.removed}{of}"
        case Conflicted(conflicts=conflicts):
            return f"{command}: {counted(len(conflicts), 'conflict')} (--dry-run shows)"
        case ExternalChanges(changes=changes):
            return f"{command}: {counted(len(changes), 'file')} changed outside first (see `{program} diff`)"
        case NothingToDo():
            return "nothing to take out"


def _shape(effect: _Effect) -> "dict[str, Json]":
    conflicts = effect.outcome.conflicts if isinstance(effect.outcome, Conflicted) else ()
    decided = effect.outcome.decided if isinstance(effect.outcome, Decided) else ()
    taken = effect.outcome.taken_back if isinstance(effect.outcome, Decided) else ()
    return {
        "outcome": outcome_name(effect.outcome),
        "paths": list(effect.paths),
        "lines_added": effect.added,
        "lines_removed": effect.removed,
        "edits": len({unit.seq for unit in decided}),
        "accepted_edits": len({unit.seq for unit in taken}),
        "conflicts": len(conflicts),
    }
