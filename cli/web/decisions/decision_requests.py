"""Make the decisions that the page requests: check that the changes are still as shown, then call the core."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cli.app.invocation import reviewer
from cli.render.outcomes import shown_units
from cli.screen.terminal import shown_name, visible
from cli.selection.elsewhere import BECOMES
from cli.web.decisions.outcomes import WayOut, done_shape, outcome_of, overtaken, shown_outcome
from cli.web.on_screen import UnshownChange, row_count, unshown_changes, unshown_shape
from cli.web.request_fields import Answer
from cli.web.server_state import DecisionRequest, ServerState, Ticket
from cli.web.shapes import units_named
from objstore import (
    Action,
    AmbiguousName,
    ChangesGone,
    Conflicted,
    Decided,
    DecisionOutcome,
    NoSuchName,
    NothingSelected,
    Status,
    Unit,
    broken_words,
    changes_counted,
    counted_edits,
    decided_words,
    few,
    replace,
    value,
)

if TYPE_CHECKING:
    from cli.selection.elsewhere import Elsewhere
    from objstore import ChangeSummary, FileSummary, Workspace

__all__ = ["Hold", "Resolved", "Step", "decided", "resolved", "stepped"]

Shape = dict[str, Any]

Step: TypeAlias = "Callable[[Workspace], Callable[..., DecisionOutcome]]"
"""Returns what undoes or redoes."""

Touched: TypeAlias = "Sequence[tuple[FileSummary, Sequence[ChangeSummary]]]"
"""Files, each with the changes that a decision is on."""

_FEW_PATHS: Final = 50
_FEW_NAMED: Final = 5
_DOES: Final = {Action.ACCEPT: "accepts", Action.REJECT: "rejects", Action.RESET: "makes pending again"}
_TOO_OLD: Final = "The server no longer remembers what you were shown. Look at the changes again, then decide."


@value
class Resolved:
    """The hunks and files that a request's decision covers."""

    shown: Mapping[Unit, Status]
    named: tuple[Unit, ...]  # those of them that change anything
    accepted: tuple[Unit, ...]  # of these: a rejection takes them back
    paths: tuple[str, ...]  # of the files that the decision may change, before and after it
    unreviewed: tuple[str, ...]  # files that are left out, because `review.always` asks for a look at them


Hold: TypeAlias = Callable[[Resolved], Shape | None]
"""Returns an outcome in place of a decision that covers this (None: it is made)."""


def resolved(server: ServerState, workspace: "Workspace", request: DecisionRequest) -> Resolved | str:
    """Return what a request's decision covers, or a sentence that says why the changes are no longer as shown."""
    known = [change for key in request.selection.keys if (change := server.changes.get(key)) is not None]
    near = {path for change in known for path in change.paths}
    if len(near) > _FEW_PATHS or len(known) < len(request.selection.keys):
        near = set()  # to read all files is faster than to look up that many by name
    selection = replace(request.selection, near=tuple(sorted(near)))
    try:
        found = workspace.review.select(request.action, selection)
    except ChangesGone as error:
        return _what_happened(server, workspace, error)
    except (NoSuchName, NothingSelected, AmbiguousName) as error:
        return str(error)
    if found.changes - {*selection.keys, *(key for change in known for key in change.together)}:
        return f"A change that is decided with this one, in {shown_name(found.files[0])}, is not as it was shown."
    paths = tuple(sorted({*found.files, *near}))
    shown = {**found.units, **dict(request.statuses)}
    return Resolved(shown=shown, named=found.named, accepted=found.accepted, paths=paths, unreviewed=found.unreviewed)


def decided(
    server: ServerState,
    workspace: "Workspace",
    request: DecisionRequest,
    hold: Hold = lambda _: None,
    *,
    can_ask: bool = True,
) -> Shape:
    """Make a decision and return its outcome. A refusal by the core is an outcome, too.

    `hold`: returns an outcome in place of the decision, given what it covers (None: it is made). `can_ask`: whether
    someone answers if it breaks names. Raises CasError and OSError.
    """
    answered = server.shown(request.ticket)
    if answered is None:
        return overtaken(_TOO_OLD)
    found = resolved(server, workspace, request)
    if isinstance(found, str):
        return overtaken(found)
    touched = _touched(workspace, request, found)
    instead = _question(server, workspace, request, found, touched, answered)
    if instead is None and server.elsewhere is not None:
        return _decided_elsewhere(server, server.elsewhere, request, found, _subject(request, touched))
    instead = instead or hold(found)
    if instead is not None:
        return instead
    stops_at_broken = can_ask and not answered.knows_broken
    outcome = _checked(server, workspace, request, found, answered, stops_at_broken=stops_at_broken)
    if isinstance(outcome, Decided) and not outcome.number:
        return _question_about_names(server, outcome, found, answered, _subject(request, touched))
    preview = None
    if not (request.cascade or request.markers or request.keep_lines):
        preview = partial(_previewed, workspace, request, found, answered)
    shape = shown_outcome(
        server,
        workspace,
        request.action,
        outcome,
        answered=answered,
        preview=preview,
        subject=_subject(request, touched),
    )
    return _with_left_out(shape, found)


def stepped(server: ServerState, action: Action, answer: Answer, step: Step) -> Shape:
    """Undo or redo a decision and return the outcome."""
    if server.elsewhere is not None:
        return overtaken(f"{server.elsewhere.no_undo} After a `cas pull` that shows it as decided, reopen the change.")
    answered = server.shown(answer.ticket)
    if answered is None:
        return overtaken(_TOO_OLD)

    def decide(workspace: "Workspace") -> Shape:
        made = step(workspace)
        outcome = made(who=reviewer(), on_external=answer.on_external, expected=answered.expected)
        return shown_outcome(server, workspace, action, outcome, answered=answered)

    return outcome_of(server, decide)


# ---- inside


def _decided_elsewhere(
    server: ServerState, elsewhere: "Elsewhere", request: DecisionRequest, found: Resolved, subject: str
) -> Shape:
    """Decide on what another store has, by the log of the bucket, and return the outcome; no file changes here."""
    units, words = elsewhere.decide(request.action, found.shown, request.reason)
    server.touch()
    becomes = BECOMES[request.action].value
    changed = [{"name": str(unit), "status": becomes, "cascaded": False} for unit in units]
    done = f"{decided_words(request.action, subject or shown_units(units))}."
    return done_shape(request.action.value, 0, done, changed=changed, notes=[visible(words)])


def _checked(
    server: ServerState,
    workspace: "Workspace",
    request: DecisionRequest,
    found: Resolved,
    answered: Ticket,
    *,
    stops_at_broken: bool,
) -> DecisionOutcome:
    """Make a decision, after the check of the settings if there is one. Raises CheckFailed and CheckedElse."""
    decide = partial(_outcome, workspace, request, found, answered)
    check = None if request.markers or request.action is Action.RESET else workspace.trials.check()
    if check is None:
        return decide(reason=request.reason, stops_at_broken=stops_at_broken)
    with server.checking(check.command) as running:
        return workspace.trials.checked(
            check,
            decide,
            workspace.review.preview,
            reason=request.reason,
            stops_at_broken=stops_at_broken,
            stopped=running.stopped.is_set,
        )


def _outcome(
    workspace: "Workspace",
    request: DecisionRequest,
    found: Resolved,
    answered: Ticket,
    *,
    refused: Conflicted | None = None,
    **options: Any,  # noqa: ANN401 - `review.decide` names and checks them
) -> DecisionOutcome:
    shown = found.shown
    goes_further = request.cascade or request.keep_lines
    refused = refused or (answered.refused if goes_further else None)
    if refused is not None and request.cascade:
        goes = [unit for unit in refused.reject_first if unit.seq not in refused.outside]
        views = {seq: workspace.history.edit(seq) for seq in {unit.seq for unit in goes}}
        shown = {**{unit: views[unit.seq].units[unit.hunk] for unit in goes}, **shown}
    return workspace.decide(
        request.action,
        [*found.shown],
        who=reviewer(),
        cascade=request.cascade,
        markers=request.markers,
        keeps_lines=request.keep_lines,
        on_external=request.on_external,
        expected=answered.expected,
        shown=shown,
        refused=refused if goes_further else None,
        **options,
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
    from objstore import NothingToDo

    if way is not WayOut.MARKERS and request.action is not Action.REJECT:
        return NothingToDo()
    tried = replace(
        request,
        cascade=way is WayOut.CASCADE,
        markers=way is WayOut.MARKERS,
        keep_lines=way is WayOut.KEEP_LINES,
    )
    return _outcome(workspace, tried, found, answered, refused=refused, dry_run=True)


def _question(
    server: ServerState,
    workspace: "Workspace",
    request: DecisionRequest,
    found: Resolved,
    touched: "Touched",
    answered: Ticket,
) -> Shape | None:
    """Return the question that must be answered before a decision; None: there is none, or it was answered.

    What is pending must have been on the screen. What was decided before, such as accepted edits that a rejection
    takes back, is listed first.
    """
    unshown = _unshown(server, workspace, request, found, touched)
    if unshown is not None:
        return unshown
    is_rejection = request.action is Action.REJECT
    # Who names single hunks sees their statuses; that a rejection takes accepted ones out of the file is asked too.
    asked = {Status.ACCEPTED} if is_rejection else set()
    if not request.selection.units:
        asked = set(Status) - {Status.PENDING}
    if {unit for unit in found.named if found.shown[unit] in asked} <= answered.listed:
        return None
    listed = replace(answered, listed=frozenset(found.shown))
    taken = found.accepted if is_rejection else ()
    named = f": {shown_units(taken)}" if taken else ""
    message = f"This {_DOES[request.action]} {counted_edits(found.shown, taken)}{named}."
    return _confirm("More goes along", message, found, taken, server.ticket(listed))


def _question_about_names(
    server: ServerState, outcome: Decided, found: Resolved, answered: Ticket, subject: str
) -> Shape:
    """Return the question before a decision that breaks names."""
    taken = found.accepted if outcome.action is Action.REJECT else ()
    message = " ".join(said.removeprefix("Note: ") for said in broken_words(outcome, subject))
    return _confirm("This breaks names", message, found, taken, server.ticket(replace(answered, knows_broken=True)))


def _confirm(title: str, message: str, found: Resolved, taken: Sequence[Unit], ticket: str) -> Shape:
    """Return a question. `taken`: the accepted hunks among those that it is about."""
    return {
        "outcome": "confirm",
        "title": title,
        "message": visible(message),
        "hunks": units_named(found.named),
        "accepted": units_named(unit for unit in taken if unit in found.named),
        "ticket": ticket,
    }


def _with_left_out(shape: Shape, found: Resolved) -> Shape:
    """Return an outcome that also says which files were left out."""
    if not found.unreviewed:
        return shape
    named = few(found.unreviewed, _FEW_NAMED, ", ", shown_name)
    said = f"Not accepted, because review.always asks for a look: {named}. Accept them one by one."
    return {**shape, "message": f"{shape['message']} {said}"}


def _touched(workspace: "Workspace", request: DecisionRequest, found: Resolved) -> "Touched":
    """Return the files with the pending changes that a decision is on; [] if it names single hunks."""
    if request.selection.units:
        return []
    pending = _pending(found)
    files = workspace.review.change_summaries(units=pending, unreadable=lambda _: None)
    return [(file, [each for each in file.changes if not pending.isdisjoint(each.units)]) for file in files]


def _pending(found: Resolved) -> frozenset[Unit]:
    return frozenset(unit for unit in found.named if found.shown[unit] is Status.PENDING)


def _subject(request: DecisionRequest, touched: "Touched") -> str:
    """Return what a decision is on, as a person counts: changes; "" if it names single hunks."""
    count = sum(len(changes) for _, changes in touched)
    names = [shown_name(os.path.basename(file.path)) for file, changes in touched if changes]  # noqa: PTH119 -- as everywhere for names on disk
    return changes_counted(count, names, turn=next(iter(request.selection.turns), 0))


def _unshown(
    server: ServerState, workspace: "Workspace", request: DecisionRequest, found: Resolved, touched: "Touched"
) -> Shape | None:
    """Return the outcome of a decision that covers what was not on the screen (None: it does not)."""
    changes: list[UnshownChange] = []
    units = found.named
    if request.action is Action.RESET:  # it makes a decided change again what the page shows it as
        known = ((key, server.changes.get(key)) for key in request.screen.changes)
        whole = (each for key, each in known if each and request.screen.missing(key, each.rows) is None)
        units = tuple(sorted({*units}.difference(*(each.units for each in whole))))
    if not request.selection.units:
        changes, units = unshown_changes(request.screen, touched, _pending(found))
    # What was decided in this moment is refused as such.
    same = [unit for unit in units if workspace.history.edit(unit.seq).units[unit.hunk] is found.shown[unit]]
    counts = {unit: row_count(workspace, unit) for unit in same}
    missing = {
        unit: rows
        for unit, count in counts.items()
        if count is not None and (rows := request.screen.missing(unit, count)) is not None
    }
    return unshown_shape(changes, missing) if changes or missing else None


def _what_happened(server: ServerState, workspace: "Workspace", error: ChangesGone) -> str:
    """Return a sentence that says what happened to changes that are gone."""
    decided: dict[Unit, Status] = {}
    for key in error.keys:
        known = server.changes.get(key)
        for unit in known.units if known else ():
            try:
                status = workspace.history.edit(unit.seq).units[unit.hunk]
            except NoSuchName:
                continue
            if status is not Status.PENDING:
                decided[unit] = status
    if decided:
        words = " and ".join(sorted({status.value for status in decided.values()}))
        they = "it is" if len(error.keys) == 1 else "they are"
        return f"Decided elsewhere meanwhile: {they} {words} now."
    return str(error)
