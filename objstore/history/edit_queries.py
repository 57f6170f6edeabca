"""Query the edits and decisions of a workspace as views for surfaces."""

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from objstore.history.expired import expiration, expiration_by
from objstore.history.revspec import find_session, recorded_paths
from objstore.model.basic_types import DocumentId, FileState, Seq, Status, Unit
from objstore.model.records import Decision, Edit
from objstore.model.views import DecisionView, EditFilter, EditView, Expiration, HistoryEnd, Rejection
from objstore.storage.index.rows import EditConditions, EditRow, decode_reasons
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import UNREADABLE, CasError
from objstore.values.request_errors import NoSuchName

if TYPE_CHECKING:
    from objstore.model.replay_records import ReplayDecision

__all__ = [
    "changed_since",
    "decision",
    "decisions",
    "edit",
    "edits",
    "edits_between",
    "edits_numbered",
    "history_end",
    "may_continue",
    "rejections",
    "short_decisions",
    "statuses_before",
]


def edits(journal: Journal, wanted: EditFilter) -> list[EditView]:
    """Return the edits that match, in order. Raises NoSuchName, AmbiguousName, and what path lookups raise."""
    paths = recorded_paths(journal, wanted.path) if wanted.path else []
    conditions = EditConditions(
        conversation=wanted.conversation,
        paths=paths,
        status=wanted.status,
        turn=wanted.turn,
        session=find_session(journal, wanted.session) if wanted.session else 0,
        before=wanted.before,
    )
    rows = journal.store.index.edits.matching(
        conditions, newest_first=wanted.newest_first, limit=wanted.limit, skip=wanted.skip
    )
    numbers = {row.expired for row in rows} - {0}
    expirations = {number: expiration_by(journal, number) for number in numbers}
    found = []
    for done, row in enumerate(rows):
        journal.progress("records", done, len(rows))
        found.append(_view(journal, row, expirations.get(row.expired)))
    return found


def edits_between(journal: Journal, first: int, last: int) -> list[EditView]:
    """Return the edits from `first` to `last`, in order."""
    newest = edits(journal, EditFilter(newest_first=True, limit=1))
    last = min(last, newest[0].seq if newest else 0)
    if first > last:
        return []
    found = edits(journal, EditFilter(before=last + 1, newest_first=True, limit=last - first + 1))
    return [view for view in reversed(found) if view.seq >= first]


def edit(journal: Journal, seq: int) -> EditView:
    """Return one edit. Raises NoSuchName."""
    row = journal.store.index.edits.get(seq)
    if row is None:
        raise NoSuchName(str(seq), "edit")
    return _view(journal, row, expiration(journal, row))


def edits_numbered(journal: Journal, seqs: Collection[Seq]) -> list[EditView]:
    """Return edits in the order of their numbers. Raises NoSuchName."""
    rows = journal.store.index.edits.rows(seqs)
    for seq in seqs:
        if seq not in rows:
            raise NoSuchName(str(seq), "edit")
    return [_view(journal, rows[seq], expiration(journal, rows[seq])) for seq in sorted(seqs)]


def rejections(journal: Journal, units: Iterable[Unit]) -> list[Rejection]:
    """Return the rejections of these units, edit by edit, each with the reason of its decision."""
    by_edit: dict[int, list[Unit]] = {}
    for unit in units:
        by_edit.setdefault(unit.seq, []).append(unit)
    found: list[Rejection] = []
    for seq, own in by_edit.items():
        view = edit(journal, seq)
        by_reason: dict[str, list[Unit]] = {}
        for unit in own:
            by_reason.setdefault(view.reasons[unit.hunk], []).append(unit)
        is_all = view.status is Status.REJECTED and len(own) == len(view.units) - (not view.whole)
        for reason, theirs in by_reason.items():
            is_whole = is_all and len(by_reason) == 1
            found.append(Rejection(edit=view, units=tuple(theirs), is_whole=is_whole, reason=reason))
    return found


def decisions(journal: Journal) -> list[DecisionView]:
    """Return every decision, oldest first."""
    found = [(name, journal.store.record(place)[0]) for name, place in journal.store.index.decisions.places()]
    return [DecisionView(id=name, decision=record) for name, record in found if isinstance(record, Decision)]


def short_decisions(journal: Journal) -> "Iterator[ReplayDecision]":
    """Yield every decision, oldest first, without what only its record has: large ones are decoded once."""
    for name, place in journal.store.index.decisions.places():
        yield journal.store.short_decision(name, place)


def decision(journal: Journal, number: int) -> Decision:
    """Return the record of a decision. Raises NoSuchName."""
    place = journal.store.index.decisions.place(number)
    record = None if place is None else journal.store.record(place)[0]
    if not isinstance(record, Decision):
        raise NoSuchName(str(number), "decision")
    return record


def history_end(journal: Journal) -> HistoryEnd:
    """Return how far the history extends now."""
    return HistoryEnd(next_edit=journal.store.next_seq(), next_decision=journal.store.index.numbers.next_decision())


def changed_since(journal: Journal, before: HistoryEnd) -> list[EditView]:
    """Return the edits that were recorded or decided on since the history extended to `before`, in order."""
    now = history_end(journal)
    changed = set(range(before.next_edit, now.next_edit))
    for number in range(before.next_decision, now.next_decision):
        place = journal.store.index.decisions.place(number)
        record = None if place is None else journal.store.record(place)[0]
        if isinstance(record, Decision):
            changed |= {unit.seq for unit, _ in record.verdicts}
    # A call that was rolled back leaves numbers that no edit has.
    rows = [row for seq in sorted(changed) if (row := journal.store.index.edits.get(seq)) is not None]
    return [_view(journal, row, expiration(journal, row)) for row in rows]


def statuses_before(journal: Journal, number: int) -> dict[Unit, Status]:
    """Return the status that each unit of decision `number` had before it; empty if there is no such decision."""
    place = journal.store.index.decisions.place(number)
    if place is None:
        return {}
    units = [unit for unit, _ in decision(journal, number).verdicts]
    seqs = sorted({unit.seq for unit in units})
    recorded = {seq: edit(journal, seq).edit.status for seq in seqs}
    before = {unit: recorded[unit.seq] for unit in units}
    for earlier in short_decisions(journal):
        if earlier.number == number:
            break
        before |= {unit: status for unit, status in earlier.of_edits(seqs).items() if unit in before}
    return before


def _view(journal: Journal, row: EditRow, expired: Expiration | None) -> EditView:
    record, name = journal.store.record(row.place)
    if not isinstance(record, Edit) or record.seq != row.seq:
        raise row.place.damaged(f"edit {row.seq} is not where the index says")
    return EditView(
        id=name,
        edit=record,
        status=row.status,
        units=row.units,
        whole=row.whole,
        reasons=decode_reasons(row.reasons, len(row.units)),
        owner=row.owner,
        expired=expired,
    )


def may_continue(journal: Journal, document: DocumentId, state: FileState) -> bool:
    """Return whether a state may follow in a document that has no file now: both are of links, or both of files.

    The states of a document are all of one kind; where its edits can't be read, of files.
    """
    newest = journal.store.index.history.newest_edit(document)
    try:
        made = None if newest is None else edit(journal, newest).edit
    except (*UNREADABLE, CasError):
        made = None
    if made is None:
        return not state.is_link
    known = made.before if made.after is None else made.after
    return known is None or known.is_link is state.is_link
