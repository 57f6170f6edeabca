"""Retention: which history goes by age, and which by the size of the store; planned first, then recorded.

What goes, goes as ripeness allows (see `ripeness`): by an age limit, and beyond that the oldest first, until as much is
let go as a size limit asks for. Letting go is a record; the bytes go when segments are rewritten.
"""

import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from objstore.config.settings import RetentionLimits
from objstore.errors import CasError
from objstore.fastclass import value
from objstore.history.document_loader import delete_cached_document
from objstore.index.refcounts import held_blobs
from objstore.log.segment_files import GENERATION, Place
from objstore.model.basic_types import MAX_INT, Progress, Status, Unit
from objstore.model.ids import BlobId
from objstore.model.ranges import Range, ranges_of
from objstore.model.records import Decision, Expiry, Pin
from objstore.retention.expiry_rules import (
    GONE,
    AgedEdit,
    DatedDecision,
    ExpiryTimes,
    ExpiryTimeTable,
    between,
    expiry_times,
)
from objstore.retention.log_position import LogPosition, log_position_of, log_still_holds
from objstore.store.object_store import Store
from objstore.store.write_batch import now
from objstore.transaction.journal import Journal

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
"""A store over its limit is brought this part of it below, so that not every edit has to make room again."""

_BATCH: Final = 50
"""Edits that one record lets go, so that nobody waits longer for the lock than for a write."""

_FEW: Final = 5
"""Decisions that one record lets go: each is read, and may have named thousands of hunks."""

_ASKED_AT_ONCE: Final = 1_000
"""Edits that the index is asked about together: of a long history, more would fill the memory."""

_EVER: Final = MAX_INT
"""A moment later than any."""


@value
class ExpiryBatch:
    """What is let go for one reason."""

    reason: str  # as records say it
    edits: tuple[Range, ...]  # ascending
    decisions: tuple[Range, ...]
    newest: int  # microseconds since 1970-01-01 UTC: of what goes, nothing is later
    parts: tuple[tuple[int, ...], ...]  # the edits again, in parts that may go one after the other

    @property
    def edit_count(self) -> int:
        """Return how many edits go."""
        return sum(map(len, self.parts))


@value
class ExpiryPlan:
    """What is to be let go, and what the journal was when that was worked out."""

    batches: tuple[ExpiryBatch, ...]
    blobs: int  # that nothing will hold any more; those that nothing holds already are not among them
    blob_bytes: int  # of their frames
    missing: int  # bytes over the size limit that no ripe history would free
    log_position: LogPosition
    next_edit: int
    next_decision: int
    next_pin: int

    @property
    def edit_count(self) -> int:
        """Return how many edits go."""
        return sum(expiry_batch.edit_count for expiry_batch in self.batches)


def plan_expiry(journal: Journal, limits: RetentionLimits, *, moment: int | None = None) -> ExpiryPlan:
    """Return what the limits let go at `moment` (microseconds since 1970-01-01 UTC; None: now). Nothing is changed.

    Raises StoreDamaged.
    """
    index = journal.store.index
    # One moment for all: meanwhile, others may go on.
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
    """Record what the plan lets go, part by part; return how many edits went.

    Where somebody decides or pins something meanwhile, or the log has no more what the plan is of, the rest stays: it
    has to be planned anew. Raises what Journal.writing and Journal.commit raise.
    """
    gone, total = 0, sum(expiry_batch.edit_count for expiry_batch in plan.batches)
    newer = _RecordedSincePlan(journal, plan)
    for expiry_batch in plan.batches:
        for part in expiry_batch.parts:
            if not _let_go(journal, newer, expiry_batch.reason, who, edits=part):
                return gone
            gone += len(part)
            if progress is not None:
                progress("edits", gone, total)
        numbers = [number for first, last in expiry_batch.decisions for number in range(first, last + 1)]
        for start in range(0, len(numbers), _FEW):
            if not _let_go(journal, newer, expiry_batch.reason, who, decisions=numbers[start : start + _FEW]):
                return gone
    return gone


def _let_go(
    journal: Journal,
    newer: "_RecordedSincePlan",
    reason: str,
    who: str,
    *,
    edits: Sequence[int] = (),
    decisions: Sequence[int] = (),
) -> bool:
    with journal.reading():
        newer.follow()
    with journal.writing(may_use_reserve=True) as batch:
        began = time.monotonic()
        if newer.keeps_any_of(edits):
            return False
        for document in set(map(journal.store.index.edits.document_of, edits)):
            with suppress(CasError, OSError):
                if document is not None:
                    delete_cached_document(
                        journal, document
                    )  # it begins with what goes, so nobody would take it up any more
        expiry = Expiry(time=now(), edits=ranges_of(edits), decisions=ranges_of(decisions), reason=reason, who=who)
        batch.record(expiry)
        journal.commit(batch, ())
    # Whoever waits for the lock looks for it again and again; it must be free for as long as it was taken.
    time.sleep(time.monotonic() - began)
    return True


class _RecordedSincePlan:
    """What was recorded since a plan."""

    def __init__(self, journal: Journal, plan: ExpiryPlan) -> None:
        self._journal: Final = journal
        self._plan: Final = plan
        self._seen = plan.log_position
        self._next = plan.next_edit
        self._conversations: set[str] = set()

    def follow(self) -> bool:
        """Look at the edits that were recorded since this was last done.

        Return whether the log has all that was seen until then.
        """
        store = self._journal.store
        if not log_still_holds(store, self._seen):
            return False  # numbers may have been given again
        following = store.index.numbers.next_seq()
        if following > self._next:
            self._conversations |= store.index.edits.conversations_between(self._next, following - 1)
            self._next = following
        self._seen = log_position_of(store)
        return True

    def keeps_any_of(self, edits: Sequence[int]) -> bool:
        """Return whether something was recorded that keeps any of the edits. Call it while `writing`."""
        index = self._journal.store.index
        if (index.numbers.next_decision(), index.numbers.next_pin()) != (self._plan.next_decision, self._plan.next_pin):
            return True
        if not self.follow():
            return True
        # A new edit is pending, and with it its conversation.
        return bool(self._conversations) and any(
            not self._conversations.isdisjoint(index.edits.conversations_between(first, last))
            for first, last in ranges_of(edits)
        )


class _Planner:
    """One plan in the making."""

    def __init__(self, journal: Journal, limits: RetentionLimits, moment: int) -> None:
        self._store = journal.store
        self._limits = limits
        self._moment = moment
        self._documents = array("q", [0]) * journal.store.index.numbers.next_seq()  # of each edit that has not expired
        self._ripe = ExpiryTimes(ExpiryTimeTable.none(0), ExpiryTimeTable.none(0))
        self.freed = _Freed(journal.store)
        self.batches: list[ExpiryBatch] = []
        self.missing = 0

    def plan(self) -> None:
        limit, older_than = self._limits.max_size, self._limits.older_than
        # Bytes that nothing holds go by themselves: a store is over its limit only by what would stay.
        size = self._store.log.total_bytes() - self._store.index.blobs.unheld()[1]
        is_over = limit is not None and size > limit
        if older_than is None and not is_over:
            return
        self._ripe = self._eligible()
        aged = _Chosen([], [])
        if older_than is not None:
            cut = self._moment - older_than * _MICROSECONDS
            aged = _Chosen(*(between(moments.since, GONE, cut) for moments in self._ripe))
            self._take(f"older than {format_age(older_than)}", aged)
            self.freed.let_go(aged)
        if limit is not None and is_over:
            wanted = size - (limit - limit // _ROOM)
            self._take(f"the store was over {format_size(limit)}", self._oldest(wanted, aged))
            self.missing = max(0, wanted - self.freed.bytes)

    def _eligible(self) -> ExpiryTimes:
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
        """Plan to let go what was chosen."""
        edits, decisions = chosen
        if edits or decisions:
            expiry_batch = ExpiryBatch(
                reason=reason,
                edits=ranges_of(edits),
                decisions=ranges_of(decisions),
                newest=max((self._ripe.edits.made[seq] for seq in edits), default=GONE),
                parts=tuple(self._parts(edits)),
            )
            self.batches.append(expiry_batch)

    def _parts(self, edits: list[int]) -> Iterator[tuple[int, ...]]:
        """Yield the edits in parts. What has to go together does, and a document's edits go in their order."""
        since, made = self._ripe.edits
        part: list[int] = []
        ordered = sorted(edits, key=self._documents.__getitem__)
        for _, together in groupby(ordered, lambda seq: (self._documents[seq], since[seq], made[seq])):
            part += together
            if len(part) >= _BATCH:
                yield tuple(part)
                part = []
        if part:
            yield tuple(part)

    def _oldest(self, wanted: int, beside: "_Chosen") -> "_Chosen":
        """Return the oldest of what is ripe, as much of it as frees `wanted` bytes. `beside`: what goes anyway."""
        chosen = _Chosen([], [])
        of_edits, of_decisions = self._ripe.edits.made, self._ripe.decisions.made
        ripe = [(of_edits[seq], 0, seq) for seq in between(of_edits, GONE, _EVER)]
        ripe += [(of_decisions[number], 1, number) for number in between(of_decisions, GONE, _EVER)]
        going = (set(beside.edits), set(beside.decisions))
        for _, together in groupby(sorted(ripe), itemgetter(0)):
            if self.freed.bytes >= wanted:
                break
            fresh = [(kind, number) for _, kind, number in together if number not in going[kind]]
            step = _Chosen(*([number for kind, number in fresh if kind == which] for which in (0, 1)))
            self.freed.let_go(step)
            chosen.edits.extend(step.edits)
            chosen.decisions.extend(step.decisions)
        return chosen


class _Chosen(NamedTuple):
    """Edits and decisions that are to go, by their numbers."""

    edits: list[int]
    decisions: list[int]


class _Freed:
    """Counts what letting go frees, by the references that the index has counted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left: dict[BlobId, int] = {}  # references of blobs that have lost some and not all
        self.blobs = 0
        self.bytes = 0  # of their frames

    def let_go(self, chosen: _Chosen) -> None:
        """Count that edits and decisions mention nothing any more."""
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
    """Yield every decision that has not expired, oldest first, with what it flipped."""
    dead: set[Unit] = set()  # units that are out of the text, after the decisions so far
    for number, moment, place in store.index.decisions.aged():
        record, _ = store.record(place)
        if not isinstance(record, Decision):
            continue
        rejected = {unit for unit, status in record.verdicts if status is Status.REJECTED}
        others = {unit for unit, status in record.verdicts if status is not Status.REJECTED}
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
    """Return a number that ascends in the order of the journal."""
    # A segment has one generation at a time, so its frames are in order by their positions.
    return place.segment * GENERATION + place.position


def format_age(seconds: int) -> str:
    """Return an age as a person says it: `30 days`."""
    for name, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds // length} {name}{'' if seconds == length else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def format_size(size: int) -> str:
    """Return a size as a person says it: `2 GB`."""
    for name, length in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size and size % (length // 10) == 0 and size >= length:
            return f"{size / length:g} {name}"
    return f"{size} byte{'' if size == 1 else 's'}"
