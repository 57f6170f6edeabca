"""Plan which history expires by age and by store size, then record it.

`expiry_rules` says what may expire. An age limit comes first; then the oldest edits expire until a size limit is met.
Expiry is a record; compaction frees the bytes later.
"""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from objstore.disk.config.setting_sources import RetentionLimits
from objstore.history.documents.loader import delete_cached_document
from objstore.model.basic_types import MAX_INT, Progress, Unit
from objstore.model.ids import BlobId
from objstore.model.ranges import Range, ranges_of
from objstore.model.records import Decision, Expiry, Pin
from objstore.storage.index.refcounts import held_blobs
from objstore.storage.log.segment_files import GENERATION, Place
from objstore.storage.store.object_store import Store
from objstore.storage.store.write_batch import now
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.retention.expiry_rules import (
    GONE,
    AgedEdit,
    DatedDecision,
    ExpiryTimes,
    ExpiryTimeTable,
    between,
    expiry_times,
)
from objstore.upkeep.retention.log_position import LogPosition, log_position_of, log_still_holds
from objstore.values.errors import CasError
from objstore.values.fastclass import value

__all__ = [
    "ExpiryBatch",
    "ExpiryPlan",
    "dated_decisions",
    "expire",
    "format_age",
    "format_size",
    "ordinal_of",
    "plan_expiry",
]

_MICROSECONDS: Final = 1_000_000

_ROOM: Final = 10
"""A store over its size limit is brought a tenth below it, so that not every edit has to free space again."""

_BATCH: Final = 50
"""Edits per expiry record, so that no writer waits longer for the lock than for another write."""

_FEW: Final = 5
"""Decisions per expiry record: each is read, and may name thousands of hunks."""

_ASKED_AT_ONCE: Final = 1_000
"""Edits per query of the index: for a long history, more would fill the memory."""

_EVER: Final = MAX_INT
"""A moment later than any recorded one."""


@value
class ExpiryBatch:
    """The history that expires for one reason."""

    reason: str  # as it is recorded
    edits: tuple[Range, ...]  # ascending
    decisions: tuple[Range, ...]
    newest: int  # time of the newest edit among them, in microseconds since 1970-01-01 UTC
    parts: tuple[tuple[int, ...], ...]  # the edits again, in parts that may expire one after the other

    @property
    def edit_count(self) -> int:
        """Return how many edits expire."""
        return sum(map(len, self.parts))


@value
class ExpiryPlan:
    """The plan of an expiry, and the state of the journal for which it was computed."""

    batches: tuple[ExpiryBatch, ...]
    blobs: int  # that nothing will hold any more, besides those that nothing holds already
    blob_bytes: int  # of their frames
    missing: int  # bytes over the size limit that expiring all eligible history would not free
    log_position: LogPosition
    next_edit: int
    next_decision: int
    next_pin: int

    @property
    def edit_count(self) -> int:
        """Return how many edits expire."""
        return sum(expiry_batch.edit_count for expiry_batch in self.batches)


def plan_expiry(journal: Journal, limits: RetentionLimits, *, moment: int | None = None) -> ExpiryPlan:
    """Return what the limits make expire at `moment` (microseconds since 1970-01-01 UTC; None: now); change nothing.

    Raises StoreDamaged.
    """
    index = journal.store.index
    # All of it from one state of the index: other processes may write meanwhile.
    with index.still():
        log_position = log_position_of(journal.store)
        numbers = (index.numbers.next_seq(), index.numbers.next_decision(), index.numbers.next_pin())
        planner = _Planner(journal, limits, now() if moment is None else moment)
        planner.plan()
    return ExpiryPlan(
        batches=tuple(planner.batches),
        blobs=planner.freed.blobs,
        blob_bytes=planner.freed.bytes,
        missing=planner.missing,
        log_position=log_position,
        next_edit=numbers[0],
        next_decision=numbers[1],
        next_pin=numbers[2],
    )


def expire(journal: Journal, plan: ExpiryPlan, *, who: str, progress: Progress | None = None) -> int:
    """Record the expiry that was planned, part by part; return how many edits expired.

    If another process decides or pins something meanwhile, or the log no longer has what the plan was computed from,
    the rest does not expire and has to be planned again. Raises what Journal.writing and Journal.commit raise.
    """
    gone, total = 0, sum(expiry_batch.edit_count for expiry_batch in plan.batches)
    newer = _RecordedSincePlan(journal, plan)
    for reason, edits, decisions in _parts(plan):
        if not _expire_part(journal, newer, reason, who, edits=edits, decisions=decisions):
            return gone
        gone += len(edits)
        if progress is not None and edits:
            progress("edits", gone, total)
    return gone


def _parts(plan: ExpiryPlan) -> Iterator[tuple[str, Sequence[int], Sequence[int]]]:
    """Yield what to record in one group each: the reason, and edits or decisions."""
    for expiry_batch in plan.batches:
        for part in expiry_batch.parts:
            yield expiry_batch.reason, part, ()
        numbers = [number for first, last in expiry_batch.decisions for number in range(first, last + 1)]
        for start in range(0, len(numbers), _FEW):
            yield expiry_batch.reason, (), numbers[start : start + _FEW]


def _expire_part(
    journal: Journal,
    newer: "_RecordedSincePlan",
    reason: str,
    who: str,
    *,
    edits: Sequence[int],
    decisions: Sequence[int],
) -> bool:
    with journal.reading():
        newer.follow()
    with journal.writing(may_use_reserve=True) as batch:
        if newer.keeps_any_of(edits):
            return False
        for document in set(map(journal.store.index.edits.document_of, edits)):
            with suppress(CasError, OSError):
                if document is not None:
                    # Its cache begins with the expired edits, so it could not be used any more.
                    delete_cached_document(journal, document)
        expiry = Expiry(
            time=now(),
            edits=ranges_of(edits),
            decisions=ranges_of(decisions),
            reason=reason,
            who=who,
            via=journal.decider.via,
            agent=journal.decider.agent,
        )
        batch.record(expiry)
        journal.commit(batch, ())
    return True


class _RecordedSincePlan:
    """The edits that were recorded since a plan was computed."""

    def __init__(self, journal: Journal, plan: ExpiryPlan) -> None:
        self._journal: Final = journal
        self._plan: Final = plan
        self._seen = plan.log_position
        self._next = plan.next_edit
        self._conversations: set[str] = set()

    def follow(self) -> bool:
        """Read the edits that were recorded since the last call.

        Return whether the log still has everything that was seen until then.
        """
        store = self._journal.store
        if not log_still_holds(store, self._seen):
            return False  # edits may have been renumbered
        following = store.index.numbers.next_seq()
        if following > self._next:
            self._conversations |= store.index.edits.conversations_between(self._next, following - 1)
            self._next = following
        self._seen = log_position_of(store)
        return True

    def keeps_any_of(self, edits: Sequence[int]) -> bool:
        """Return whether something was recorded since that keeps any of the edits. Call it inside `journal.writing`."""
        index = self._journal.store.index
        if (index.numbers.next_decision(), index.numbers.next_pin()) != (self._plan.next_decision, self._plan.next_pin):
            return True
        if not self.follow():
            return True
        # A new edit is pending, so its conversation is pending again.
        return bool(self._conversations) and any(
            not self._conversations.isdisjoint(index.edits.conversations_between(first, last))
            for first, last in ranges_of(edits)
        )


class _Planner:
    """The computation of one plan."""

    def __init__(self, journal: Journal, limits: RetentionLimits, moment: int) -> None:
        self._store = journal.store
        self._limits = limits
        self._moment = moment
        self._documents = array("q", [0]) * journal.store.index.numbers.next_seq()  # of each edit that has not expired
        self._times = ExpiryTimes(ExpiryTimeTable.none(0), ExpiryTimeTable.none(0))
        self.freed = _Freed(journal.store)
        self.batches: list[ExpiryBatch] = []
        self.missing = 0

    def plan(self) -> None:
        limit, older_than = self._limits.max_size, self._limits.older_than
        # Compaction frees the bytes that nothing holds, so only the rest counts against the limit.
        size = self._store.log.files.total_bytes() - self._store.index.blobs.unheld()[1]
        is_over = limit is not None and size > limit
        if older_than is None and not is_over:
            return
        self._times = self._expiry_times()
        aged = _Chosen([], [])
        if older_than is not None:
            cut = self._moment - older_than * _MICROSECONDS
            aged = _Chosen(*(between(moments.since, GONE, cut) for moments in self._times))
            self._take(f"older than {format_age(older_than)}", aged)
            self.freed.expire(aged)
        if limit is not None and is_over:
            wanted = size - (limit - limit // _ROOM)
            self._take(f"the store was over {format_size(limit)}", self._oldest(wanted, aged))
            self.missing = max(0, wanted - self.freed.bytes)

    def _expiry_times(self) -> ExpiryTimes:
        index = self._store.index
        pinned = {int(seq) for record in self._pins() for seq in record.edits}
        return expiry_times(
            self._aged(pinned),
            dated_decisions(self._store),
            index.numbers.next_seq() - 1,
            index.numbers.next_decision() - 1,
        )

    def _aged(self, pinned: set[int]) -> Iterator[AgedEdit]:
        for seq, document, moment, place, is_free in self._store.index.edits.aged():
            self._documents[seq] = document
            yield AgedEdit(seq, document, moment, ordinal_of(place), is_free and seq not in pinned)

    def _pins(self) -> list[Pin]:
        records = (self._store.record(row.place)[0] for row in self._store.index.holders.pins() if not row.expired)
        return [record for record in records if isinstance(record, Pin)]

    def _take(self, reason: str, chosen: "_Chosen") -> None:
        """Add what was chosen to the plan."""
        edits, decisions = chosen
        if edits or decisions:
            expiry_batch = ExpiryBatch(
                reason=reason,
                edits=ranges_of(edits),
                decisions=ranges_of(decisions),
                newest=max((self._times.edits.made[seq] for seq in edits), default=GONE),
                parts=tuple(self._parts(edits)),
            )
            self.batches.append(expiry_batch)

    def _parts(self, edits: list[int]) -> Iterator[tuple[int, ...]]:
        """Yield the edits in parts: what expires together stays together, and a document's edits stay in order."""
        since, made = self._times.edits
        part: list[int] = []
        ordered = sorted(edits, key=self._documents.__getitem__)
        for _, together in groupby(ordered, lambda seq: (self._documents[seq], since[seq], made[seq])):
            part += together
            if len(part) >= _BATCH:
                yield tuple(part)
                part = []
        if part:
            yield tuple(part)

    def _oldest(self, wanted: int, also: "_Chosen") -> "_Chosen":
        """Return the oldest eligible history, as much as frees `wanted` bytes. `also`: what expires anyway."""
        chosen = _Chosen([], [])
        of_edits, of_decisions = self._times.edits.made, self._times.decisions.made
        eligible = [(of_edits[seq], 0, seq) for seq in between(of_edits, GONE, _EVER)]
        eligible += [(of_decisions[number], 1, number) for number in between(of_decisions, GONE, _EVER)]
        going = (set(also.edits), set(also.decisions))
        for _, together in groupby(sorted(eligible), itemgetter(0)):
            if self.freed.bytes >= wanted:
                break
            fresh = [(kind, number) for _, kind, number in together if number not in going[kind]]
            step = _Chosen(*([number for kind, number in fresh if kind == which] for which in (0, 1)))
            self.freed.expire(step)
            chosen.edits.extend(step.edits)
            chosen.decisions.extend(step.decisions)
        return chosen


class _Chosen(NamedTuple):
    """The numbers of edits and decisions that expire."""

    edits: list[int]
    decisions: list[int]


class _Freed:
    """Count what expiry frees, by the reference counts of the index."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left: dict[BlobId, int] = {}  # references left to blobs that have lost some but not all
        self.blobs = 0
        self.bytes = 0  # of their frames

    def expire(self, chosen: _Chosen) -> None:
        """Subtract the references of edits and decisions."""
        for blob in self._mentions(chosen):
            left = self._left.pop(blob, None)
            if left is None:
                left = self._store.index.blobs.refs(blob)
            if left == 1:
                self.blobs += 1
                self.bytes += self._store.index.blobs.frame_bytes(blob)
            else:
                self._left[blob] = left - 1

    def _mentions(self, chosen: _Chosen) -> Iterator[BlobId]:
        index = self._store.index
        for first, last in ranges_of(chosen.edits):
            for at in range(first, last + 1, _ASKED_AT_ONCE):
                yield from index.edits.mentions(at, min(at + _ASKED_AT_ONCE - 1, last))
        for place in map(index.decisions.place, chosen.decisions):
            if place is not None:
                yield from held_blobs(self._store.record(place)[0])


def dated_decisions(store: Store) -> Iterator[DatedDecision]:
    """Yield every decision that has not expired, oldest first, with the edits whose text it removed or brought back."""
    dead: set[Unit] = set()  # units that are rejected or away after the decisions so far
    for number, moment, place in store.index.decisions.aged():
        record, _ = store.record(place)
        if not isinstance(record, Decision):
            continue
        rejected = {unit for unit, status in record.verdicts if not status.is_live}
        others = {unit for unit, status in record.verdicts if status.is_live}
        flipped = (rejected - dead) | (others & dead)
        dead = (dead | rejected) - others
        yield DatedDecision(
            number=number,
            time=moment,
            place=ordinal_of(place),
            edits=sorted({int(unit.seq) for unit in rejected | others}),
            flipped=sorted({int(unit.seq) for unit in flipped}),
        )


def ordinal_of(place: Place) -> int:
    """Return a number that ascends with places in the order of the journal."""
    # A segment has one generation at a time, so positions give the order of its frames.
    return place.segment * GENERATION + place.position


def format_age(seconds: int) -> str:
    """Return an age for people: `30 days`."""
    for name, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds // length} {name}{'' if seconds == length else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def format_size(size: int) -> str:
    """Return a size for people: `2 GB`."""
    for name, length in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size and size % (length // 10) == 0 and size >= length:
            return f"{size / length:g} {name}"
    return f"{size} byte{'' if size == 1 else 's'}"
