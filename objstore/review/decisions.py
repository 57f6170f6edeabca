"""Decisions as requests and as history: what is asked becomes a plan, and the plan a record and a change on disk."""

from collections.abc import Callable, Mapping

from objstore.errors import DecidedMeanwhile, DiskFull, NoSpaceToRecord, NoSuchName
from objstore.fastclass import field, replace, value
from objstore.history.edit_queries import decisions, edit, statuses_before
from objstore.history.expired import refuse_expired
from objstore.history.marked_text import units_set_aside, written_by
from objstore.index.rows import EditRow
from objstore.model.basic_types import Action, OnExternal, Origin, Seq, Status, Unit
from objstore.model.ids import BlobId
from objstore.model.records import Decision
from objstore.model.results import Conflicted, Decided, DecisionOutcome, ExternalChanges, NothingToDo
from objstore.model.views import ExternalChange, Seen
from objstore.review.planner import Plan, Planner
from objstore.store.write_batch import Batch
from objstore.transaction.journal import Journal
from objstore.transaction.space_reserve import release_reserve

__all__ = ["DecisionRequest", "decide"]


@value
class DecisionRequest:
    """What a reviewer asks for."""

    action: Action
    verdicts: Mapping[Unit, Status] = field(default_factory=dict)  # of an undo or redo: worked out under the lock
    who: str
    reason: str = ""
    cascade: bool = False  # reject also what can't be live without what is rejected
    markers: bool = False  # set aside what can't stand with the decision, and put both into the text
    on_external: OnExternal
    expected: tuple[ExternalChange, ...]  # what the reviewer was shown; (): nothing
    shown: Mapping[Unit, Status] = field(default_factory=dict)  # what units were then, and what goes with a cascade
    told: Conflicted | None = None  # why it was refused before they said to cascade; None: they were told of nothing
    seen: Seen | None = None  # of an undo or redo: how far the history went when they looked; None: they did not
    dry_run: bool
    takes_back: int = 0  # number of the decision that an undo or redo takes back; 0: the one that is next to go
    past: frozenset[int] = frozenset()  # of an undo: decisions made since the one that it takes back, which stay
    before: Seq = Seq(0)  # of an undo or redo: the newest edit before that decision, found under the lock, too


def decide(journal: Journal, request: DecisionRequest) -> tuple[DecisionOutcome, Callable[[BlobId], bytes]]:
    """Do what is asked, or say why not; also return what reads texts of states, also those that a dry run would write.

    A decision that changes no file may use the space reserve, so on a full disk history can be decided and let go.
    Raises NoSuchName, EditExpired, FileChanged, DecidedMeanwhile, HistoryBroken and what Journal.commit raises.
    """
    try:
        return _decided(journal, request)
    except NoSpaceToRecord:
        release_reserve(journal)
        return _decided(journal, request)


def _decided(journal: Journal, request: DecisionRequest) -> tuple[DecisionOutcome, Callable[[BlobId], bytes]]:
    with journal.session(dry_run=request.dry_run) as (batch, is_writing):
        if request.seen is not None:
            _refuse_if_decided_since(journal, request.seen)
        match request.action:
            case Action.UNDO:
                request = _undo(journal, request)
            case Action.REDO:
                request = _redo(journal, request)
        outcome = _outcome(journal, request, batch, is_writing=is_writing)
        return outcome, batch.text if request.dry_run else journal.store.text


def _refuse_if_decided_since(journal: Journal, seen: Seen) -> None:
    """Raise DecidedMeanwhile where anything was decided since the history went as far as `seen`."""
    since = [view.decision for view in decisions(journal) if view.decision.number >= seen.next_decision]
    if since:
        raise DecidedMeanwhile({str(unit): status.value for decision in since for unit, status in decision.verdicts})


def _undo(journal: Journal, request: DecisionRequest) -> DecisionRequest:
    """Return what has to be asked for to take back the newest standing decision, or the one meant.

    No verdicts where there is none, or where others than those to be passed were made since, or some of the same units.
    """
    standing, _ = _stacks(journal)
    passed = set[Unit]()
    while standing and request.takes_back not in {0, standing[-1][0]} and standing[-1][0] in request.past:
        passed.update(unit for unit, _ in standing.pop()[1].verdicts)
    if not standing or request.takes_back not in {0, standing[-1][0]}:
        return request
    number, taken = standing[-1]
    if not passed.isdisjoint(unit for unit, _ in taken.verdicts):
        return request
    verdicts = dict.fromkeys(written_by(journal, number), Status.REJECTED) | statuses_before(journal, taken.number)
    before = journal.store.index.history.newest_edit_before(taken.number)
    return replace(request, verdicts=verdicts, takes_back=number, before=before)


def _redo(journal: Journal, request: DecisionRequest) -> DecisionRequest:
    """Return what has to be asked for to make the decision again that the last undo took back."""
    _, undone = _stacks(journal)
    if not undone:
        return request
    (_, decision), undo = undone[-1]
    decided = {unit for unit, _ in decision.verdicts}
    # What the undo took along, as amendments, comes back; what was changed outside, and discarded with it, does not.
    verdicts = {
        unit: status
        for unit, status in statuses_before(journal, undo.number).items()
        if unit in decided or not _is_from_outside(journal, unit)
    }
    before = journal.store.index.history.newest_edit_before(undo.number)
    return replace(request, verdicts=verdicts, reason=decision.reason, takes_back=undo.number, before=before)


def _is_from_outside(journal: Journal, unit: Unit) -> bool:
    """Return whether a unit is of a change that was found on disk, and that is part of no other edit."""
    record = edit(journal, unit.seq).edit
    return record.origin is Origin.EXTERNAL and record.amends is None


_UndoneDecision = tuple[int, Decision]
"""The number of a decision, and the record that says what it changed: its own, or that of its last redo."""


def _stacks(journal: Journal) -> tuple[list[_UndoneDecision], list[tuple[_UndoneDecision, Decision]]]:
    """Return the decisions that stand, and those taken back, each with its undo; the next to go stands last.

    Whoever decides something new after an undo has gone another way: then there is nothing to make again.
    """
    standing: list[_UndoneDecision] = []
    undone: list[tuple[_UndoneDecision, Decision]] = []
    for view in decisions(journal):
        match view.decision.action:
            case Action.UNDO if standing:
                # The newest but for those that were passed, which stay.
                at = next((at for at, (number, _) in enumerate(standing) if number == view.decision.takes_back), -1)
                undone.append((standing.pop(at), view.decision))
            case Action.REDO if undone:
                (number, _), _ = undone.pop()
                standing.append((number, view.decision))
            case _:
                standing.append((view.decision.number, view.decision))
                undone.clear()
    return standing, undone


def _outcome(journal: Journal, request: DecisionRequest, batch: Batch, *, is_writing: bool) -> DecisionOutcome:
    _refuse_decided(journal, request)
    telling = _without_no_ops(journal, request)
    if telling is None:
        return NothingToDo()
    request = telling
    planner = Planner(journal=journal, batch=batch, before=request.before)
    found = planner.external_changes(request.verdicts)
    if found and request.on_external is OnExternal.ABORT:
        return ExternalChanges(changes=found)
    if request.told is not None:
        refused = _plan(Planner(journal=journal, batch=Batch(journal.store)), replace(request, cascade=False))
        if isinstance(refused, Conflicted) and refused != request.told:
            return refused
    plan = _plan(planner, request)
    if isinstance(plan, Conflicted):
        return plan
    number = 0
    markers = tuple(file.report(0) for file in plan.marked.files)
    if not request.dry_run:
        decision, markers = planner.record(
            plan, request.action, who=request.who, reason=request.reason, takes_back=request.takes_back
        )
        steps = plan.steps()
        try:
            journal.commit(batch, steps, plan.looked, left=plan.left)
        except DiskFull as error:
            if steps:
                raise
            raise NoSpaceToRecord(error.path) from error
        number = decision.number
    elif is_writing:
        journal.check_commit(batch, plan.steps(), plan.looked)
    return Decided(
        action=request.action,
        number=number,
        verdicts=tuple(sorted(plan.verdicts.items())),
        cascaded=plan.cascaded,
        files=plan.effects(),
        external=() if request.dry_run else tuple(edit(journal, found.seq) for found in plan.external),
        unrecorded=tuple(plan.external) if request.dry_run else (),
        notices=plan.notices,
        markers=markers,
        unmarked=plan.unmarked,
        returned=plan.returned,
    )


def _plan(planner: Planner, request: DecisionRequest) -> Plan | Conflicted:
    return planner.plan(
        request.verdicts,
        cascade=request.cascade,
        markers=request.markers,
        on_external=request.on_external,
        expected=request.expected,
        is_new=not request.takes_back,
    )


def _refuse_decided(journal: Journal, request: DecisionRequest) -> None:
    """Raise DecidedMeanwhile where a unit is neither as it was shown nor as it shall be.

    What is shown and not named is to go with what is.
    """
    rows = {seq: journal.store.index.edits.get(seq) for seq in {unit.seq for unit in request.shown}}
    decided: dict[str, str] = {}
    for unit, was in request.shown.items():
        row = rows[unit.seq]
        if row is None or not 0 <= unit.hunk < len(row.units) or not _has_visible_effect(row, unit):
            continue
        now_is = row.units[unit.hunk]
        if now_is not in {was, request.verdicts.get(unit, Status.REJECTED)}:
            decided[str(unit)] = now_is.value
    if decided:
        raise DecidedMeanwhile(decided)


def _has_visible_effect(row: EditRow, unit: Unit) -> bool:
    """Return whether anything follows from a unit: it is not one that nobody is shown beside its edit's hunks."""
    return bool(unit.hunk) or row.whole or len(row.units) == 1


def _without_no_ops(journal: Journal, request: DecisionRequest) -> DecisionRequest | None:
    """Return what the request asks for that can be told; None: nothing is otherwise than it shall be.

    A whole-file part from which nothing follows is decided with the rest of its edit, and not where that is decided
    already: nobody is shown it. A step back takes back whatever was decided.
    """
    # Each edit once: it is read with all of its units, of which thousands may be decided.
    rows = {seq: journal.store.index.edits.get(seq) for seq in {unit.seq for unit in request.verdicts}}
    idle: set[Unit] = set()
    telling: set[int] = set()
    for unit, wanted in request.verdicts.items():
        row = rows[unit.seq]
        if row is None or not 0 <= unit.hunk < len(row.units):
            raise NoSuchName(str(unit), "hunk")
        if row.units[unit.hunk] is not wanted:
            if request.takes_back or _has_visible_effect(row, unit):
                telling.add(unit.seq)
            else:
                idle.add(unit)
    for row in filter(None, rows.values()):
        refuse_expired(journal, row)
    # What was set aside is rejected for the time being only.
    if not telling and (request.takes_back or units_set_aside(journal).isdisjoint(request.verdicts)):
        return None
    verdicts = request.verdicts.items()
    return replace(request, verdicts={unit: to for unit, to in verdicts if unit not in idle or unit.seq in telling})
