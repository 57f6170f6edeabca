"""Ripeness: from which moment on an edit may expire, worked out from the journal's order alone.

An edit is *ripe* when it is decided, its whole conversation is, nothing pins it, all edits of its document before it
are ripe, and no decision took any of these out of the text, or back into it, after the document's next edit was
recorded. For then the next edit stands on exactly what they left, and replaying can begin with it. Where a decision did
so later, the edits up to the last one that it found go together or not at all. (That a pending edit was accepted
changes no text, whenever that was.)

What is ripe is ripe *since* a moment: that of the newest edit, or the newest decision on one, among all that have to go
with it. So what may go by an age limit is what is ripe since a moment before it, and that is whole whatever the limit
is. And it was *made* by a moment: that of the newest edit alone. The oldest goes first by that, because one decision
may have been about a year's edits.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple, Self

__all__ = [
    "GONE",
    "NOT_ELIGIBLE",
    "AgedEdit",
    "DatedDecision",
    "ExpiryTimeTable",
    "ExpiryTimes",
    "between",
    "expiry_times",
]

NOT_ELIGIBLE: Final = -1
"""Stands for the moment of what may not expire, whatever its age."""

GONE: Final = 0
"""Stands for the moment of what has expired before."""


_FIRST: Final = 1
"""The earliest moment of anything that is ripe."""


class AgedEdit(NamedTuple):
    """An edit that has not expired, as far as its age counts."""

    seq: int
    document: int
    time: int  # microseconds since 1970-01-01 UTC
    place: int  # any number that ascends in the order of the journal
    is_free: bool  # it and its whole conversation are decided, and nothing pins it


class DatedDecision(NamedTuple):
    """A decision that has not expired, as far as its age counts."""

    number: int
    time: int  # microseconds since 1970-01-01 UTC
    place: int  # as an edit's
    edits: Sequence[int]  # that it said something of
    flipped: Sequence[int]  # those of which it took something out of the text or back into it


class ExpiryTimeTable(NamedTuple):
    """Moments in microseconds since 1970-01-01 UTC, by number; UNRIPE and GONE stand where there is none."""

    since: "array[int]"
    made: "array[int]"

    @classmethod
    def none(cls, newest: int) -> Self:
        """Return room for the numbers up to `newest`."""
        # Numbers in arrays: of a million edits nothing else fits in the memory that a store may take.
        return cls(array("q", [GONE]) * (newest + 1), array("q", [GONE]) * (newest + 1))

    def set(self, numbers: Iterable[int], since: int, made: int) -> None:
        """Set the moments of some numbers."""
        for number in numbers:
            self.since[number], self.made[number] = since, made


class ExpiryTimes(NamedTuple):
    """From which moment on each edit and each decision may expire, and by which it was made."""

    edits: ExpiryTimeTable
    decisions: ExpiryTimeTable


def expiry_times(
    edits: Iterable[AgedEdit], dated_decisions: Iterable[DatedDecision], newest_edit: int, newest_decision: int
) -> ExpiryTimes:
    """Return what is ripe since when. `edits`: by document, and there in the order of the journal.

    A decision is ripe when all edits are that it said something of; those not among `edits` have expired before.
    """
    ripe = ExpiryTimes(ExpiryTimeTable.none(newest_edit), ExpiryTimeTable.none(newest_decision))
    last = ExpiryTimeTable.none(
        newest_edit
    )  # the time of the last decision on each edit; the place of the last that flipped it
    kept: list[tuple[int, int, array[int]]] = []
    for touch in dated_decisions:
        kept.append((touch.number, touch.time, array("q", touch.edits)))
        for seq in touch.edits:
            last.since[seq] = max(last.since[seq], touch.time)
        for seq in touch.flipped:
            last.made[seq] = max(last.made[seq], touch.place)
    for _, document in groupby(edits, attrgetter("document")):
        _set_expiry_times(document, ripe.edits, last.since, last.made)
    for number, moment, named in kept:
        since = [ripe.edits.since[seq] for seq in named]
        if NOT_ELIGIBLE in since:
            ripe.decisions.set([number], NOT_ELIGIBLE, NOT_ELIGIBLE)
        else:
            made = [ripe.edits.made[seq] for seq in named]
            ripe.decisions.set([number], max(*since, moment, _FIRST), max(*made, _FIRST, _FIRST))
    return ripe


def _set_expiry_times(
    document: Iterable[AgedEdit], moments: ExpiryTimeTable, last_time: "array[int]", last_place: "array[int]"
) -> None:
    """Set the moments of one document's edits."""
    waiting: list[int] = []  # edits that go together with a later one, or not at all
    since, made, touched = _FIRST, _FIRST, 0
    is_free = True
    for edit in document:
        if waiting and is_free and touched < edit.place:
            # What is decided up to here was decided before this edit was made.
            moments.set(waiting, since, made)
            waiting.clear()
        is_free = is_free and edit.is_free
        waiting.append(edit.seq)
        made = max(made, edit.time)
        since = max(since, edit.time, last_time[edit.seq])
        touched = max(touched, last_place[edit.seq])
    moments.set(waiting, since if is_free else NOT_ELIGIBLE, made if is_free else NOT_ELIGIBLE)


def between(moments: "array[int]", after: int, until: int) -> list[int]:
    """Return the numbers whose moment is later than `after` and not later than `until`, ascending."""
    return [number for number, moment in enumerate(moments) if after < moment <= until]
