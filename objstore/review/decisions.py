"""Carry out decision requests: plan them, record them and change the files; find what undo and redo take back."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from typing import Final

from objstore.history.documents.marked_text import units_set_aside, written_by
from objstore.history.edit_queries import decision, edit, short_decisions, statuses_before
from objstore.history.expired import refuse_expired
from objstore.model.basic_types import Action, DocumentId, OnExternal, Origin, Seq, Status, Unit
from objstore.model.ids import BlobId
from objstore.model.records import Decision
from objstore.model.replay_records import ReplayDecision
from objstore.model.results import (
    Broken,
    Conflicted,
    Decided,
    DecisionOutcome,
    ExternalChange,
    ExternalChanges,
    FileEffect,
    NothingToDo,
)
from objstore.model.views import Act, DecisionInForce, HistoryEnd, reason_with_broken, reason_with_failed
from objstore.review.acts import act, given_to
from objstore.review.along import has_visible_effect, taken_back, unshown
from objstore.review.planning.plan import Plan
from objstore.review.planning.planner import Planner, require_expected
from objstore.review.trial.failed_checks import FailedCheck
from objstore.storage.store.write_batch import Batch
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.space_reserve import release_reserve
from objstore.values.errors import DiskFull, FileExists, NoSpaceToRecord
from objstore.values.fastclass import field, replace, value
from objstore.values.request_errors import CheckedElse, DecidedMeanwhile, EditAway, NoSuchName

__all__ = ["DecisionRequest", "FindBroken", "FindFailed", "act_numbered", "decide", "in_force"]

FindBroken = Callable[[Decided, Callable[[BlobId], bytes]], tuple[Broken, ...]]
"""Return what a planned decision breaks, given what reads the texts in it."""

FindFailed = Callable[[Decided, Callable[[BlobId], bytes]], Iterable[tuple[FailedCheck, bool]]]
"""Return the failed checks that concern a planned decision, each with whether it failed on the files before it."""

_MOST_LOOKS: Final = 10
"""How often a decision looks for lines that are back: of a line with many copies, some may be found only then."""


@value
class DecisionRequest:
    """A decision that a reviewer asks for."""

    action: Action
    verdicts: Mapping[Unit, Status] = field(default_factory=dict)  # for an undo or redo: computed under the lock
    who: str
    reason: str = ""
    commit: str = ""  # the git commit that makes the decision, in hex; "": a person does
    cascade: bool = False  # also reject the hunks that depend on the rejected ones
    markers: bool = False  # set conflicting hunks aside, and write both versions into the text
    keeps_lines: bool = False  # keep a file of which the creation is rejected, with the lines that others inserted
    on_external: OnExternal
    expected: tuple[ExternalChange, ...]  # external changes that the reviewer was shown; (): none
    shown: Mapping[Unit, Status] = field(default_factory=dict)  # statuses that were shown, those to cascade included
    refusal: Conflicted | None = None  # the refusal that the reviewer saw before asking for a cascade; None: none
    checked: tuple[FileEffect, ...] | None = None  # the effects that a check has seen; None: there was none
    find_broken: FindBroken | None = None  # None: what it breaks is not asked
    find_failed: FindFailed | None = None  # which failed checks concern it; None: there are none
    stops_at_broken: bool = False  # if it breaks names, only report what it would do
    stops_at_unshown: bool = False  # if it takes along what is not in `shown`, only report what it would do
    end: HistoryEnd | None = None  # for an undo or redo: the end of the history that the reviewer saw; None: not known
    dry_run: bool
    is_claim: bool = False  # for an undo or redo: whether it is that of a claim, which may change no status
    takes_back: int = 0  # number of the decision that an undo or redo takes back; 0: the next one
    past: frozenset[int] = frozenset()  # for an undo: later decisions to keep
    act: Act | None = None  # for an undo or redo: what it takes back or makes again; found under the lock, as `before`
    before: Seq = Seq(0)  # for an undo or redo: the newest edit before that decision, also found under the lock


def decide(journal: Journal, request: DecisionRequest) -> tuple[DecisionOutcome, Callable[[BlobId], bytes]]:
    """Carry out a request, or return why not; also return a function that loads the text of a blob.

    That function also knows the blobs that a dry run would write. A decision that changes no file may use the space
    reserve, so that a reviewer can decide on a full disk, and expire history then.
    Raises NoSuchName, EditExpired, EditAway, EditTakenOut, FileChanged, DecidedMeanwhile, HistoryBroken, and what
    Journal.commit raises.
    """
    try:
        return _decided(journal, request)
    except NoSpaceToRecord:
        release_reserve(journal)
        return _decided(journal, request)


def in_force(journal: Journal) -> list[DecisionInForce]:
    """Return the decisions that were not undone, except what git did, in the order in which an undo finds them."""
    effective, _ = _stacks(journal)
    return [DecisionInForce(number=number, units=made.units) for number, made in reversed(effective)]


def act_numbered(journal: Journal, number: int) -> Act:
    """Return what a decision was, if it is in force or was undone since. Raises NoSuchName."""
    effective, undone = _stacks(journal)
    for own, made in [*effective, *(made for made, _ in undone)]:
        if own == number:
            return act(journal, own, decision(journal, made.number))
    raise NoSuchName(str(number), "decision")


def _decided(journal: Journal, request: DecisionRequest) -> tuple[DecisionOutcome, Callable[[BlobId], bytes]]:
    with journal.session(dry_run=request.dry_run) as (batch, is_writing):
        if request.end is not None:
            _refuse_if_decided_since(journal, request.end)
        match request.action:
            case Action.UNDO:
                request = _undo(journal, request)
            case Action.REDO:
                request = _redo(journal, request)
        planned = batch
        for _ in range(_MOST_LOOKS if is_writing else 0):
            if not _record_returned(journal, request, planned):
                break
            request, planned = replace(request, expected=()), Batch(journal.store)
        return _outcome(journal, request, planned, is_writing=is_writing)


def _refuse_if_decided_since(journal: Journal, end: HistoryEnd) -> None:
    """Raise DecidedMeanwhile if anyone decided after `end`."""
    made = [each for each in short_decisions(journal) if each.number >= end.next_decision]
    since = [decision(journal, each.number) for each in made if each.action is not Action.GIT]
    if since:
        raise DecidedMeanwhile({str(unit): status.value for each in since for unit, status in each.verdicts})


def _undo(journal: Journal, request: DecisionRequest) -> DecisionRequest:
    """Return the request with the verdicts that take back the newest effective decision, or the one in `takes_back`.

    Without verdicts if there is no such decision, or if later decisions that are not in `past`, or of the same units,
    were made.
    """
    effective, _ = _stacks(journal)
    kept_units = set[Unit]()
    while effective and request.takes_back not in {0, effective[-1][0]} and effective[-1][0] in request.past:
        kept_units |= effective.pop()[1].units
    if not effective or request.takes_back not in {0, effective[-1][0]}:
        return request
    number, short = effective[-1]
    if not kept_units.isdisjoint(short.units):
        return request
    taken = decision(journal, short.number)
    verdicts = dict.fromkeys(written_by(journal, number), Status.REJECTED) | statuses_before(journal, taken.number)
    verdicts |= dict.fromkeys(_made_with(journal, number, taken), Status.REJECTED)
    verdicts |= dict.fromkeys(_made_after(journal, number), Status.REJECTED)
    before = journal.store.index.history.newest_edit_before(taken.number)
    is_claim = _is_claim(journal, number)
    return replace(
        request,
        verdicts=verdicts,
        takes_back=number,
        before=before,
        is_claim=is_claim,
        act=act(journal, number, taken),
    )


def _made_with(journal: Journal, number: int, made: Decision) -> Iterable[Unit]:
    """Return the units of the edits that were made together with a decision, as by an exact rewind: before, none was.

    `made`: the record of the decision, or of its last redo.
    """
    if not made.verdicts:
        return ()
    first = edit(journal, made.verdicts[0][0].seq).edit
    return (unit for unit, _ in made.verdicts) if first.is_made_by(number) else ()


def _made_after(journal: Journal, number: int) -> Iterator[Unit]:
    """Yield the units of the edits that were recorded right after a decision and by it, to keep lines of others."""
    seq = journal.store.index.history.newest_edit_before(number)
    while (row := journal.store.index.edits.get(Seq(seq := Seq(seq + 1)))) is not None:
        if not edit(journal, seq).edit.is_made_by(number):
            return
        yield from (Unit(seq, hunk) for hunk in range(len(row.units)))


def _redo(journal: Journal, request: DecisionRequest) -> DecisionRequest:
    """Return the request with the verdicts that repeat the decision that the last undo took back."""
    _, undone = _stacks(journal)
    if not undone:
        return request
    (number, short), undo = undone[-1]
    made, decided = decision(journal, short.number), short.units
    # Amendments that the undo also rejected come back; external edits that it discarded do not.
    verdicts = {
        unit: status
        for unit, status in statuses_before(journal, undo.number).items()
        if unit in decided or not _is_from_outside(journal, unit)
    }
    before = journal.store.index.history.newest_edit_before(undo.number)
    return replace(
        request,
        verdicts=verdicts,
        reason=made.reason,
        takes_back=undo.number,
        before=before,
        is_claim=_is_claim(journal, number),
        act=act(journal, number, made),
    )


def _is_claim(journal: Journal, number: int) -> bool:
    return decision(journal, number).action is Action.CLAIM


def _is_from_outside(journal: Journal, unit: Unit) -> bool:
    """Return whether a unit is of an edit that was found on disk, is no known call's, and amends no other edit."""
    record = edit(journal, unit.seq).edit
    return record.origin in {Origin.EXTERNAL, Origin.UNATTRIBUTED} and record.amends is None


_UndoneDecision = tuple[int, ReplayDecision]
"""The number of a decision, and what says what it changed: the decision itself, or its last redo."""


def _stacks(journal: Journal) -> tuple[list[_UndoneDecision], list[tuple[_UndoneDecision, ReplayDecision]]]:
    """Return the effective decisions, and the undone ones with their undo, each list with the next one to change last.

    A new decision after an undo empties the second list: there is nothing to redo then. What git did to files is in
    neither list, and changes nothing in them.
    """
    effective: list[_UndoneDecision] = []
    undone: list[tuple[_UndoneDecision, ReplayDecision]] = []
    for made in short_decisions(journal):
        match made.action:
            case Action.GIT:
                pass
            case Action.UNDO if effective:
                # The newest, except for later ones that the undo kept.
                at = next((at for at, (number, _) in enumerate(effective) if number == made.takes_back), -1)
                undone.append((effective.pop(at), made))
            case Action.REDO if undone:
                (number, _), _ = undone.pop()
                effective.append((number, made))
            case _:
                effective.append((made.number, made))
                undone.clear()
    return effective, undone


def _record_returned(journal: Journal, request: DecisionRequest, batch: Batch) -> bool:
    """Record which lines of edits are back in files that a decision keeps as it finds them; return whether any are.

    Then the batch is spent. As by every look at the files, this is recorded before a decision that is then refused, and
    in a dry run too, which otherwise would show another decision than the one that follows.
    """
    reduced = _without_no_ops(journal, request) if request.on_external is OnExternal.KEEP else None
    if reduced is None:
        return False
    reduced, _ = _without_absent(journal, reduced)
    planner = Planner(journal=journal, batch=batch, before=reduced.before)
    found = planner.external_changes(reduced.verdicts)
    require_expected(reduced.expected, found)
    return bool(found) and planner.record_returned(reduced.verdicts)


def _outcome(
    journal: Journal, request: DecisionRequest, batch: Batch, *, is_writing: bool
) -> tuple[DecisionOutcome, Callable[[BlobId], bytes]]:
    """Plan a decision, and make it unless that is a dry run; return the outcome, and what reads the texts in it."""
    outcome = _made(journal, request, batch, is_writing=is_writing)
    return outcome, batch.text if request.dry_run else journal.store.text


def _made(journal: Journal, request: DecisionRequest, batch: Batch, *, is_writing: bool) -> DecisionOutcome:
    _refuse_decided(journal, request)
    reduced = _without_no_ops(journal, request)
    if reduced is None:
        return NothingToDo()
    request, absent = _without_absent(journal, reduced)
    planner = Planner(journal=journal, batch=batch, before=request.before)
    found = planner.external_changes(request.verdicts)
    if found and request.on_external is OnExternal.ABORT:
        return ExternalChanges(changes=found)
    if request.refusal is not None:
        refused = _plan(
            Planner(journal=journal, batch=Batch(journal.store)), replace(request, cascade=False, keeps_lines=False)
        )
        if isinstance(refused, Conflicted) and refused != request.refusal:
            return refused
    plan = _plan(planner, request)
    if isinstance(plan, Conflicted):
        return plan
    if request.checked is not None:
        _require_checked(request.checked, plan.effects())
    if request.is_claim:
        plan.verdicts = dict(request.verdicts) | plan.verdicts
    planned = _planned(journal, request, plan, tuple(dict.fromkeys(absent.values())))
    broken = () if request.find_broken is None else request.find_broken(planned, batch.text)
    along = unshown(journal, request.shown, planned) if request.stops_at_unshown else ()
    planned = replace(planned, broken=broken, unshown=along)
    if not (request.dry_run or along or (broken and request.stops_at_broken)):
        return _committed(journal, request, planner, plan, planned)
    if is_writing:
        with _naming_the_edit(journal, plan):
            journal.check_commit(batch, plan.steps(), plan.disk_stats)
    return planned


def _planned(journal: Journal, request: DecisionRequest, plan: Plan, absent: tuple[str, ...]) -> Decided:
    """Return what a plan would do, without what it breaks."""
    return Decided(
        action=request.action,
        number=0,
        verdicts=tuple(sorted(plan.verdicts.items())),
        cascaded=plan.cascaded,
        files=plan.effects(),
        external=(),
        unrecorded=tuple(plan.external),
        notices=plan.notices,
        markers=tuple(file.report(0) for file in plan.marked.files),
        unmarked=plan.unmarked,
        returned=plan.returned,
        repeated=plan.repeated,
        taken_out=plan.taken_out,
        kept=tuple(file.report(0) for file in plan.kept.files),
        act=request.act,
        taken_back=taken_back(journal, plan) if request.takes_back or request.action is Action.REJECT else (),
        older=plan.older,
        absent=absent,
    )


def _committed(journal: Journal, request: DecisionRequest, planner: Planner, plan: Plan, planned: Decided) -> Decided:
    """Record a plan and change the files, and return what was done.

    What it breaks, and which checks have failed, is in a rejection's reason.
    """
    reason = request.reason
    if request.find_failed is not None:
        found = [*request.find_failed(planned, planner.batch.text)]
        for check, is_before in sorted(found, key=itemgetter(1)):  # each is put before those that are there
            reason = reason_with_failed(reason, check.command, check.how, check.output, is_before=is_before)
    if planned.broken and request.action is Action.REJECT:
        reason = reason_with_broken(reason, [*map(str, planned.broken)])
    decision, markers, kept = planner.record(
        plan, request.action, who=request.who, reason=reason, takes_back=request.takes_back, commit=request.commit
    )
    steps = plan.steps()
    try:
        with _naming_the_edit(journal, plan):
            journal.commit(planner.batch, steps, plan.disk_stats, possibly_empty=plan.emptied)
    except DiskFull as error:
        if steps:
            raise
        raise NoSpaceToRecord(error.path) from error
    effects = plan.effects()
    return replace(
        planned,
        number=decision.number,
        verdicts=tuple(sorted(plan.verdicts.items())),
        files=effects,
        external=tuple(edit(journal, found.seq) for found in plan.external),
        unrecorded=(),
        notices=plan.notices,
        markers=markers,
        given_to=given_to(journal, effects),
        kept=kept,
    )


def _without_absent(journal: Journal, request: DecisionRequest) -> tuple[DecisionRequest, dict[Unit, str]]:
    """Return the request without the units of files whose file systems are not mounted now, and these units' paths.

    If there are no others, the request is as it was, and so is one that repeats or takes back a decision as a whole.
    """
    if request.takes_back or request.is_claim:
        return request, {}
    absent = Planner(journal=journal, batch=Batch(journal.store)).absent(request.verdicts)
    if not absent or len(absent) == len(request.verdicts):
        return request, {}
    verdicts = {unit: status for unit, status in request.verdicts.items() if unit not in absent}
    return replace(request, verdicts=verdicts), absent


def _require_checked(checked: tuple[FileEffect, ...], now: tuple[FileEffect, ...]) -> None:
    """Raise CheckedElse unless the files would become what the check has seen."""
    expected, found = ({replace(effect, document=DocumentId(1)) for effect in each} for each in (checked, now))
    if expected != found:
        paths = {effect.path_after or effect.path_before or "" for effect in expected ^ found}
        raise CheckedElse(sorted(paths))


@contextmanager
def _naming_the_edit(journal: Journal, plan: Plan) -> Iterator[None]:
    """Add to a FileExists which of the decided edits would put a file where another file is."""
    try:
        yield
    except FileExists as error:
        documents = {file.document for file in plan.effects() if file.path_after == error.path and not error.held}
        found = {change.seq for change in plan.external}  # not recorded now, as the decision is refused
        for unit, status in sorted(plan.verdicts.items()) if documents else ():
            if unit.hunk or unit.seq in found:
                continue
            if edit(journal, unit.seq).edit.document in documents:
                is_without = status is Status.REJECTED
                raise FileExists(error.path, edit=unit.seq, is_without=is_without, what=error.what) from error
        raise


def _plan(planner: Planner, request: DecisionRequest) -> Plan | Conflicted:
    with planner.journal.store.index.still():
        return planner.plan(
            request.verdicts,
            cascade=request.cascade,
            markers=request.markers,
            keeps_lines=request.keeps_lines,
            on_external=request.on_external,
            expected=request.expected,
            is_new=not request.takes_back,
        )


def _refuse_decided(journal: Journal, request: DecisionRequest) -> None:
    """Raise DecidedMeanwhile if a unit has neither the status that was shown nor the requested one.

    For a unit that was shown and has no verdict, the requested status is rejected: it goes with a cascade.
    """
    rows = journal.store.index.edits.rows({unit.seq for unit in request.shown})
    decided: dict[str, str] = {}
    for unit, was in request.shown.items():
        row = rows.get(unit.seq)
        if row is None or not 0 <= unit.hunk < len(row.units) or not has_visible_effect(row, unit):
            continue
        status = row.units[unit.hunk]
        if status not in {was, request.verdicts.get(unit, Status.REJECTED)}:
            decided[str(unit)] = status.value
    if decided:
        raise DecidedMeanwhile(decided)


def _without_no_ops(journal: Journal, request: DecisionRequest) -> DecisionRequest | None:
    """Return the request without verdicts that change nothing visible; None: none is left.

    A whole-file part without an effect is decided together with the rest of its edit, and ignored if that has the
    requested status already, because it is not shown. An undo or redo takes back every verdict, and None only if there
    is no decision to take back. Raises EditAway.
    """
    # Each edit is read once, with all its units: thousands of them may be decided.
    rows = journal.store.index.edits.rows({unit.seq for unit in request.verdicts})
    without_effect: set[Unit] = set()
    away: list[Unit] = []
    changed_edits: set[int] = set()
    for unit, wanted in request.verdicts.items():
        row = rows.get(unit.seq)
        if row is None or not 0 <= unit.hunk < len(row.units):
            raise NoSuchName(str(unit), "hunk")
        if row.units[unit.hunk] is Status.AWAY and has_visible_effect(row, unit):
            away.append(unit)
        if row.units[unit.hunk] is not wanted:
            if request.takes_back or has_visible_effect(row, unit):
                changed_edits.add(unit.seq)
            else:
                without_effect.add(unit)
    for row in rows.values():
        refuse_expired(journal, row)
    if away:
        raise EditAway([str(unit) for unit in sorted(away)])
    # An undo or redo that changes nothing, because of git or a repeated edit, is recorded: the next goes on from it.
    # Units that markers set aside are rejected only until the conflict is resolved.
    if not request.verdicts or not (
        changed_edits or request.takes_back or not units_set_aside(journal).isdisjoint(request.verdicts)
    ):
        return None
    verdicts = request.verdicts.items()
    effective = {unit: to for unit, to in verdicts if unit not in without_effect or unit.seq in changed_edits}
    return replace(request, verdicts=effective)
