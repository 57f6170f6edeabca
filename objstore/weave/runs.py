"""Define units, runs and blocks: who wrote a text, and the stretches of lines that they wrote.

A *unit* is the smallest thing that can be decided: one hunk of an edit, or the edit's whole-file part. A *run* is a
stretch of lines that one unit inserted together and that the same units delete. A run is cut in two when a later hunk
falls inside it; runs are never moved, joined or removed. A *block* is a number of consecutive runs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NewType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


__all__ = ["BASE", "MOST_HIDDEN", "Block", "Needs", "Run", "UnitIndex", "WeaveUnit", "text_of"]

UnitIndex = NewType("UnitIndex", int)
"""A unit's position in the order of recording."""

BASE: Final = UnitIndex(0)
"""The unit that holds the text before the first edit. It is always live."""

MOST_HIDDEN: Final = 16
"""Limit on the length of a chain of hidden units, and on the copies of one run; beyond it, text is not linked.

It bounds the number of units that one flip can affect.
"""

_START: Final = attrgetter("start")
_INDEX: Final = attrgetter("index")
_NOTHING: Final[Mapping[WeaveUnit, set[WeaveUnit]]] = MappingProxyType({})


class WeaveUnit:
    """The insertions and deletions of one unit, and when it was live."""

    # Most of ten thousand units never need more than these slots; the other attributes take memory only where set.
    __slots__ = ("__dict__", "deleted", "index", "inserted", "live", "since", "tracks_returns")

    flips: tuple[int, ...] = ()  # the number of units each time `live` changed
    above: Run | None = None  # of a pure insertion: the run whose last line was above it, and
    below: Run | None = None  # the run whose first line was below it; None: the end of the text
    ending: tuple[Run, bool]  # of a unit that set the final newline: the last run, and whether its newline is missing
    gap: tuple[Run, Run] | None = None  # first and last of the hidden runs among which it inserted, or deleted a file
    checked: Needs | None = (
        None  # cached result of the conflict check, for a live unit with many lines; None: check again
    )
    file_bound: Run | None = None  # first bound of the file that this whole-file part moves or gives a mode
    watches = False  # whether text that this unit never saw could be shown in `region`
    undoes: WeaveUnit | None = None  # the unit whose deleted text this one reinserts, byte for byte
    restores: tuple[WeaveUnit, ...] = ()  # the units that had inserted that text
    shadowed: tuple[WeaveUnit, ...] = ()  # units that may become hidden or shown when this one is flipped
    hidden = 0  # depth of the chain of units that this one is hidden for (see `reinsertion`); 0: not hidden
    exposed = 0  # while dead and tracked: how many of its deleted runs have text shown in their place
    # The unit that must be live so that no older text shows in place of this one; None: none, or not tracked.
    return_blocker: WeaveUnit | None = None
    moved: Mapping[WeaveUnit, set[WeaveUnit]] = _NOTHING  # author of deleted text -> units that reinserted it
    is_excused: bool = False  # from the rules, because what it inserted is taken out; as last checked
    readers: tuple[WeaveUnit, ...] = ()  # units that deleted text of which this one reinserted some elsewhere
    deleted_copies: tuple[Run, ...] = ()  # copies of `deleted` that were hidden at the time: deleted as well

    def __init__(self, index: UnitIndex, since: UnitIndex) -> None:
        self.index = index
        self.since = since  # the first unit of the same edit: the moment of recording
        self.live = True
        self.tracks_returns = False  # whether `return_blocker` is maintained: a unit deleted its text or undid it
        self.inserted: list[Run] = []  # in text order, as is `deleted`
        self.deleted: list[Run] = []

    @property
    def all_deleted(self) -> Iterable[Run]:
        """All runs that the unit deletes: those that it saw, or those of a file, and hidden copies of them."""
        return (*self.deleted, *self.deleted_copies) if self.deleted_copies else self.deleted

    @property
    def region(self) -> tuple[Run, Run]:
        """First and last run of the stretch in which no text may show that the unit never saw.

        Raises ValueError if the unit has no region: it concerned no line, or only inserted where nothing was hidden.
        """
        if self.gap is not None:
            return self.gap
        if not self.deleted:
            raise ValueError("the unit has no region")
        return self.deleted[0], self.deleted[-1]

    @property
    def is_between(self) -> bool:
        """Whether the unit is a pure insertion between two lines or bounds."""
        return self.above is not None and self.below is not None

    @property
    def sets_final_newline(self) -> bool:
        """Whether the unit has an `ending`."""
        return "ending" in self.__dict__

    def flip(self, units: int) -> None:
        """Toggle between live and dead, at the moment when there are `units` units in the weave."""
        self.live = not self.live
        for run in self.all_deleted:
            others = [unit for unit in run.live_deleters if unit is not self]
            if self.live:
                insort(others, self, key=_INDEX)
            run.live_deleters = tuple(others)
        if self.flips and self.flips[-1] == units:
            self.flips = self.flips[:-1]
        else:
            self.flips += (units,)

    def knew(self, other: WeaveUnit) -> bool:
        """Return whether `other` was live when this unit was recorded; units of one edit know each other."""
        return other.since <= self.since and bisect_right(other.flips, self.since) % 2 == 0

    def saw(self, run: Run) -> bool:
        """Return whether `run`, which is older, was shown when this unit was recorded."""
        author = run.inserter
        if not self.knew(author) or self._knew_hidden(author):
            return False
        return not any(other.since < self.since and self.knew(other) for other in run.deleters)

    def _knew_hidden(self, author: WeaveUnit) -> bool:
        """Return whether the text of `author` was hidden when this unit was recorded."""
        layer = {author}
        for _ in range(MOST_HIDDEN):
            if not layer:
                return True
            if any(unit.undoes is None or self.knew(unit.undoes) for unit in layer):
                return False
            layer = {other for unit in layer for other in unit.restores if not self.knew(other)}
        return not layer

    def new_run(self, content: bytes) -> Run:
        """Append closed text to what the unit inserts and return its run, not yet in order.

        Empty content makes a *bound*: a run of no lines that represents the start or the end of a file.
        """
        last = self.inserted[-1] if self.inserted else None
        run = Run(self, last.end if last else 0, content, content.count(b"\n"))
        self.inserted.append(run)
        return run


class Run:
    """Consecutive lines that one unit inserted, all deleted by the same units."""

    __slots__ = (
        "anchored",
        "block",
        "copies",
        "deleters",
        "enders",
        "inserter",
        "lines",
        "live_deleters",
        "original",
        "original_deleters",
        "return_trackers",
        "shown",
        "start",
        "text",
    )

    block: Block  # set when the run is inserted into a `RunList`

    def __init__(self, inserter: WeaveUnit, start: int, text: bytes, lines: int) -> None:
        self.inserter = inserter
        self.start = start  # lines that the inserter inserted before this run
        self.text = text
        self.lines = lines  # 0: a bound of the file
        self.deleters: tuple[WeaveUnit, ...] = ()  # in the order of recording
        self.live_deleters: tuple[WeaveUnit, ...] = ()  # those of them that are live
        self.return_trackers: tuple[WeaveUnit, ...] = ()  # those of them with `tracks_returns`, in any order
        self.shown = True
        self.anchored: tuple[WeaveUnit, ...] = ()  # pure insertions directly above or below
        self.enders: tuple[WeaveUnit, ...] = ()  # units whose `ending` names this run
        self.original: Run | None = None  # the run with the same lines that this run reinserted
        self.copies: tuple[Run, ...] = ()  # runs that reinserted these lines, in the order of recording
        self.original_deleters: tuple[WeaveUnit, ...] = ()  # of a copy: the live units that delete its original

    @property
    def end(self) -> int:
        """Lines that the inserter inserted up to the end of this run."""
        return self.start + self.lines

    @property
    def wanted(self) -> bool:
        """Whether this run should be shown: its inserter is live and not hidden, and none of its deleters is live."""
        author = self.inserter
        return author.live and not author.hidden and not self.live_deleters

    def descendants(self) -> Iterator[Run]:
        """Yield the copies of this run, and copies of these: each is newer than the one that it copies."""
        pending = list(self.copies)
        while pending:
            run = pending.pop()
            yield run
            pending += run.copies

    def is_hidden_only_by(self, unit: WeaveUnit) -> bool:
        """Return whether the run would be shown if `unit` were dead."""
        author = self.inserter
        if not author.live or author.hidden:
            return False
        return all(other is unit for other in self.live_deleters)

    def cut(self, lines: int, at: int) -> Run:
        """Keep the first `lines` lines, of `at` bytes; return the rest as a new run, not yet in order."""
        rest = Run(self.inserter, self.start + lines, self.text[at:], self.lines - lines)
        self.text, self.lines = self.text[:at], lines
        rest.deleters, rest.live_deleters, rest.return_trackers = (
            self.deleters,
            self.live_deleters,
            self.return_trackers,
        )
        rest.original_deleters, rest.shown = self.original_deleters, self.shown
        rest.enders, self.enders = self.enders, ()
        for unit in rest.enders:
            unit.ending = rest, unit.ending[1]
        pieces = self.inserter.inserted
        pieces.insert(bisect_left(pieces, rest.start, key=_START), rest)
        for unit in self.deleters:
            if self in unit.deleted_copies:
                unit.deleted_copies += (rest,)
            else:
                unit.deleted.insert(unit.deleted.index(self) + 1, rest)
        for unit in self.return_trackers:
            if not unit.live and (self.shown or self.inserter.return_blocker is not None):
                unit.exposed += 1
        if self.anchored:
            rest.anchored = tuple(unit for unit in self.anchored if unit.above is self)
            self.anchored = tuple(unit for unit in self.anchored if unit.above is not self)
            for unit in rest.anchored:
                unit.above = rest
        for unit in self.block.watchers:
            unit.checked = None
            if unit.gap is not None and unit.gap[1] is self:
                unit.gap = unit.gap[0], rest
        return rest


class Needs:
    """The units that a live unit with many lines needs, part by part, as `conflicts` last computed them.

    They are cached so that a change among those lines costs only its own check.
    """

    __slots__ = ("missing", "returned", "rivals")

    def __init__(
        self, missing: dict[WeaveUnit, WeaveUnit], rivals: set[WeaveUnit], returned: dict[Run, set[WeaveUnit]]
    ) -> None:
        self.missing = missing  # by author of text that the unit deleted: the unit needed live because of it
        self.rivals = rivals  # units that also delete what it replaced and did not know it
        self.returned = returned  # by run shown in the unit's region: the units needed because of it


class Block:
    """Consecutive runs, with counts of what they show."""

    __slots__ = ("index", "lines", "runs", "shown", "size", "watchers")

    def __init__(self, index: int, runs: list[Run], watchers: Iterable[WeaveUnit] = ()) -> None:
        self.index = index
        self.runs = runs
        self.watchers: set[WeaveUnit] = set(watchers)  # units with a watched region in this block
        for run in runs:
            run.block = self
        shown = [run for run in runs if run.shown]
        self.lines = sum([run.lines for run in shown])  # of the shown runs
        self.size = sum([len(run.text) for run in shown])  # bytes of the shown runs
        self.shown = len(shown)

    def text(self) -> bytes:
        """Return the text of the shown runs."""
        return b"".join([run.text for run in self.runs if run.shown])


def text_of(runs: Iterable[Run]) -> bytes:
    """Return the text of `runs`, shown or not."""
    return b"".join([run.text for run in runs])
