"""Make the decisions that the page requests: check that the changes are still as shown, then call the core."""

import os
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cli.app.invocation import reviewer
from cli.render.outcomes import shown_units
from cli.screen.terminal import shown_name
from cli.selection.turn_selection import TurnSelection
from cli.web.decisions.outcomes import WayOut, failure_shape, outcome_shape, overtaken
from cli.web.server_state import DecisionRequest, ServerState, Ticket
from cli.web.shapes import changes_digest
from objstore import Action, CasError, Conflicted, DecisionOutcome, NoSuchName, OnExternal, Status, Unit, value

if TYPE_CHECKING:
    from objstore import ExternalChange, FileSummary, Workspace

__all__ = ["Resolved", "Step", "decided", "resolved", "stepped"]

Shape = dict[str, Any]

Step: TypeAlias = "Callable[[Workspace, OnExternal, tuple[ExternalChange, ...]], DecisionOutcome]"
"""Undoes or redoes, given what to do about external changes and which of them the reviewer was shown."""

_FEW_PATHS: Final = 50
_NONE: Final = Ticket()
_TOO_OLD: Final = "The server no longer remembers what you were shown. Look at the changes again, then decide."


@value
class Resolved:
    """The hunks and files that a request's decision covers."""

    shown: tuple[tuple[Unit, Status], ...]
    paths: tuple[str, ...]  # of the files that the decision may change, before and after it


def resolved(server: ServerState, workspace: "Workspace", request: DecisionRequest) -> Resolved | str:
    """Return what a request's decision covers, or a sentence that says why the changes are no longer as shown."""
    if request.turn:
        return _of_turn(workspace, request.turn, request.shown)
    if not request.keys:
        seqs = dict.fromkeys(unit.seq for unit, _ in request.units)
        try:
            edits = [workspace.history.edit(seq).edit for seq in seqs]
        except NoSuchName as error:
            return str(error)
        named = {os.fsdecode(path) for edit in edits for path in (edit.path, edit.source) if path is not None}
        return Resolved(shown=request.units, paths=tuple(sorted(named)))
    known_paths = {path for key in request.keys for path in _paths(server, key)}
    if len(known_paths) > _FEW_PATHS:
        known_paths = set()  # to read all files is faster than to look up that many by name
    files = workspace.review.change_summaries(known_paths, unreadable=lambda _: None)
    if known_paths and not set(request.keys) <= {change.key for file in files for change in file.changes}:
        files = workspace.review.change_summaries(unreadable=lambda _: None)  # some may have moved
    places = {change.key: (file, at) for file in files for at, change in enumerate(file.changes)}
    wanted = set(request.keys)
    gone = [key for key in request.keys if key not in places]
    if gone:
        return _what_happened(server, workspace, gone)
    chosen: dict[int, set[int]] = {}
    touched: dict[int, FileSummary] = {}
    for key in request.keys:
        file, at = places[key]
        together = {at, *file.changes[at].shares_with}
        known = server.change(key)
        unseen = {file.changes[other].key for other in together} - wanted - (known.together if known else {key})
        if unseen:
            return f"A change that is decided with this one, in {shown_name(file.path)}, is not as it was shown."
        chosen.setdefault(file.document, set()).update(together)
        touched[file.document] = file
    units: set[Unit] = set()
    for document, file in touched.items():
        units.update(unit for at in chosen[document] for unit in file.changes[at].units)
        if len(chosen[document]) == len(file.changes):
            units.update(file.cancelled)  # nothing else of the file is left to decide on
    paths = sorted({path for file in touched.values() for path in (file.path, file.path_before)})
    return Resolved(shown=tuple((unit, Status.PENDING) for unit in sorted(units)), paths=tuple(paths))


def decided(server: ServerState, workspace: "Workspace", request: DecisionRequest) -> Shape:
    """Make a decision and return its outcome. A refusal by the core is an outcome, too."""
    answered = server.shown(request.ticket) if request.ticket else _NONE
    if answered is None:
        return overtaken(_TOO_OLD)
    try:
        found = resolved(server, workspace, request)
        if isinstance(found, str):
            return overtaken(found)
        outcome = _outcome(workspace, request, found, answered)
        preview = None
        if not (request.cascade or request.markers or request.keep_lines):
            preview = partial(_previewed, workspace, request, found, answered)
        return outcome_shape(server, workspace, outcome, answered=answered, preview=preview)
    except (CasError, OSError) as error:
        return failure_shape(server, error)


def stepped(server: ServerState, on_external: OnExternal, ticket: str, step: Step) -> Shape:
    """Undo or redo a decision and return the outcome."""
    answered = server.shown(ticket) if ticket else _NONE
    if answered is None:
        return overtaken(_TOO_OLD)
    try:
        with server.workspace(notes_git=True) as workspace:
            outcome = step(workspace, on_external, answered.expected)
            return outcome_shape(server, workspace, outcome, answered=answered)
    except (CasError, OSError) as error:
        return failure_shape(server, error)


# ---- inside


def _outcome(
    workspace: "Workspace",
    request: DecisionRequest,
    found: Resolved,
    answered: Ticket,
    *,
    refused: Conflicted | None = None,
    dry_run: bool = False,
) -> DecisionOutcome:
    shown = dict(found.shown)
    goes_further = request.cascade or request.keep_lines
    refused = refused or (answered.refused if goes_further else None)
    if refused is not None and request.cascade:
        goes = [unit for unit in refused.reject_first if unit.seq not in refused.outside]
        views = {seq: workspace.history.edit(seq) for seq in {unit.seq for unit in goes}}
        shown = {unit: views[unit.seq].units[unit.hunk] for unit in goes} | shown
    return workspace.decide(
        request.action,
        [unit for unit, _ in found.shown],
        reason=request.reason,
        who=reviewer(),
        cascade=request.cascade,
        markers=request.markers,
        keeps_lines=request.keep_lines,
        on_external=request.on_external,
        expected=answered.expected,
        shown=shown,
        refused=refused if goes_further else None,
        dry_run=dry_run,
    )


def _previewed(
    workspace: "Workspace",
    request: DecisionRequest,
    found: Resolved,
    answered: Ticket,
    refused: Conflicted,
    way: WayOut,
) -> DecisionOutcome:
    """Return what a way out of a conflict would do; nothing is changed."""
    from objstore import NothingToDo, replace

    if way is not WayOut.MARKERS and request.action is not Action.REJECT:
        return NothingToDo()
    tried = replace(
        request,
        cascade=way is WayOut.CASCADE,
        markers=way is WayOut.MARKERS,
        keep_lines=way is WayOut.KEEP_LINES,
    )
    return _outcome(workspace, tried, found, answered, refused=refused, dry_run=True)


def _of_turn(workspace: "Workspace", turn: int, shown: str) -> Resolved | str:
    """Return the hunks of all changes of a turn, with those that cancel out, or why they are not as shown."""
    try:
        units = TurnSelection(turns=(turn,)).pending_units(workspace)
    except NoSuchName as error:
        return str(error)
    files = workspace.review.change_summaries(units=units)
    if changes_digest(change.key for file in files for change in file.changes) != shown:
        return "The changes of this turn are not as shown any more: the agent, or you, changed some since you looked."
    paths = sorted({path for file in files for path in (file.path, file.path_before)})
    found = sorted({unit for file in files for unit in file.units})
    return Resolved(shown=tuple((unit, Status.PENDING) for unit in found), paths=tuple(paths))


def _paths(server: ServerState, key: bytes) -> tuple[str, ...]:
    known = server.change(key)
    return known.paths if known else ()


def _what_happened(server: ServerState, workspace: "Workspace", gone: Collection[bytes]) -> str:
    """Return a sentence that says what happened to changes that are gone."""
    decided: dict[Unit, Status] = {}
    for key in gone:
        known = server.change(key)
        for unit in known.units if known else ():
            try:
                status = workspace.history.edit(unit.seq).units[unit.hunk]
            except NoSuchName:
                continue
            if status is not Status.PENDING:
                decided[unit] = status
    if decided:
        words = " and ".join(sorted({status.value for status in decided.values()}))
        units = shown_units(sorted(decided))
        return f"Decided elsewhere meanwhile: {units} {'is' if len(decided) == 1 else 'are'} {words} now."
    what = "This change is" if len(gone) == 1 else f"{len(gone)} of these changes are"
    return f"{what} not as shown any more: the agent, or you, changed the lines since you looked."
