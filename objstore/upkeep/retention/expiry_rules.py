"""Compute when each edit becomes eligible for expiry, from the journal's order alone.

An edit is *eligible* when it and its whole conversation are decided, nothing pins it, all earlier edits of its document
are eligible, and no decision changed the text of any of these after the document's next edit was recorded. Then the
next edit starts from exactly what they left, and replay can begin with it. Where a decision changed their text later,
the edits up to the last one that existed then expire together or not at all. (Accepting a pending edit changes no text,
whenever it happens.)

An edit is eligible *since* a moment: the time of the newest edit, or newest decision on one, among all that have to
expire with it. So the edits eligible since before an age limit are always a complete set, whatever the limit is. And it
was *made* by a moment: the time of the newest of these edits alone. To free space, the oldest expire first by that
time, because one decision may cover a year's edits.
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
"""The value for edits and decisions that may not expire, whatever their age."""

GONE: Final = 0
"""The value for edits and decisions that have already expired."""


_FIRST: Final = 1
"""The earliest moment of anything that is eligible."""


class AgedEdit(NamedTuple):
    """An edit that has not expired, with what decides when it may."""

    seq: int
    document: int
    time: int  # microseconds since 1970-01-01 UTC
    place: int  # any number that ascends in the order of the journal
    is_free: bool  # it and its whole conversation are decided, and nothing pins it


class DatedDecision(NamedTuple):
    """A decision that has not expired, with what decides when it may."""

    number: int
    time: int  # microseconds since 1970-01-01 UTC
    place: int  # as of an edit
    edits: Sequence[int]  # that it decided
    flipped: Sequence[int]  # those whose text it removed or brought back


class ExpiryTimeTable(NamedTuple):
    """Moments in microseconds since 1970-01-01 UTC, by number; NOT_ELIGIBLE or GONE where there is none."""

    since: "array[int]"
    made: "array[int]"

    @classmethod
    def none(cls, newest: int) -> Self:
        """Return a table for the numbers up to `newest`, all GONE."""
        # Arrays of numbers: for a million edits, nothing else fits in the memory that a store may use.
        return cls(array("q", [GONE]) * (newest + 1), array("q", [GONE]) * (newest + 1))

    def set(self, numbers: Iterable[int], since: int, made: int) -> None:
        """Set the moments of some numbers."""
        for number in numbers:
            self.since[number], self.made[number] = since, made


class ExpiryTimes(NamedTuple):
    """For each edit and decision, since when it is eligible for expiry, and the latest time at which it was made."""

    edits: ExpiryTimeTable
    decisions: ExpiryTimeTable


def expiry_times(
    edits: Iterable[AgedEdit], dated_decisions: Iterable[DatedDecision], newest_edit: int, newest_decision: int
) -> ExpiryTimes:
    """Return since when each edit and decision is eligible. `edits`: grouped by document, each group in journal order.

    A decision is eligible when all edits that it decided are; those that are not among `edits` have already expired.
    """
    times = ExpiryTimes(ExpiryTimeTable.none(newest_edit), ExpiryTimeTable.none(newest_decision))
    # `since`: the time of the last decision on each edit; `made`: the place of the last one that changed its text.
    last = ExpiryTimeTable.none(newest_edit)
    kept: list[tuple[int, int, array[int]]] = []
    for decision in dated_decisions:
        kept.append((decision.number, decision.time, array("q", decision.edits)))
        for seq in decision.edits:
            last.since[seq] = max(last.since[seq], decision.time)
        for seq in decision.flipped:
            last.made[seq] = max(last.made[seq], decision.place)
    for _, document in groupby(edits, attrgetter("document")):
        _set_expiry_times(document, times.edits, last.since, last.made)
    for number, moment, named in kept:
        since = [times.edits.since[seq] for seq in named]
        if NOT_ELIGIBLE in since:
            times.decisions.set([number], NOT_ELIGIBLE, NOT_ELIGIBLE)
        else:
            made = [times.edits.made[seq] for seq in named]
            times.decisions.set([number], max(*since, moment, _FIRST), max(*made, _FIRST, _FIRST))
    return times


def _set_expiry_times(
    document: Iterable[AgedEdit], moments: ExpiryTimeTable, last_time: "array[int]", last_place: "array[int]"
) -> None:
    """Set the times of one document's edits."""
    waiting: list[int] = []  # edits that expire together with a later one, or not at all
    since, made, touched = _FIRST, _FIRST, 0
    is_free = True
    for edit in document:
        if waiting and is_free and touched < edit.place:
            # No decision has changed the text of the edits up to here since this edit was recorded.
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
