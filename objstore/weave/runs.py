"""Units, runs and blocks: who wrote a text, and the stretches of lines that they wrote.

A *unit* is the smallest thing that can be decided: one hunk of an edit, or the edit's whole-file part.
A *run* is a stretch of lines that one unit inserted together and that the same units delete. A run is cut
in two when a later hunk lands inside it; runs are never moved, joined or forgotten. A *block* is some runs in a row.
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
"""Units that stand back one for the other, or that put back one text. Beyond that none does.

So a flip concerns no more than so many.
"""

_START: Final = attrgetter("start")
_INDEX: Final = attrgetter("index")
_NOTHING: Final[Mapping[WeaveUnit, set[WeaveUnit]]] = MappingProxyType({})


class WeaveUnit:
    """What one unit put in and took out, where it stood, and when it was live."""

    # Most of ten thousand units never have more than these: the rest takes memory and time only where it is set.
    __slots__ = ("__dict__", "deleted", "index", "inserted", "is_asked", "live", "since")

    flips: tuple[int, ...] = ()  # how many units there were each time `live` changed
    above: Run | None = None  # for a pure insertion: the run whose last line stood above it, and
    below: Run | None = None  # the run whose first line stood below it; None: the end of all text
    ending: tuple[Run, bool]  # of those that said whether the last line lacks its newline: the last run, what they said
    gap: tuple[Run, Run] | None = None  # first and last of the hidden runs among which it inserted, or took out a file
    checked: Needs | None = None  # what was found of a live unit with many lines; None: look again
    hides_behind: Run | None = None  # first bound of the file that this one moves, or gives a mode
    watches = False  # whether any text could show in `region` that this unit never saw
    undoes: WeaveUnit | None = None  # the unit whose deleted text this one puts back, byte for byte
    restores: tuple[WeaveUnit, ...] = ()  # who had inserted that text
    shadowed: tuple[WeaveUnit, ...] = ()  # units that are hidden or not with the liveness of this one
    hidden = 0  # how many units down the text is that this one stands back for (see `putback`); 0: it doesn't
    bare = 0  # while dead, and asked: the runs it took out in whose place text is shown
    returns: WeaveUnit | None = (
        None  # whom it takes, now that this one is gone, to have no older text there; where asked
    )
    moved: Mapping[WeaveUnit, set[WeaveUnit]] = _NOTHING  # author of deleted text -> units that put it back
    readers: tuple[WeaveUnit, ...] = ()  # units that took out text of which this one put some back elsewhere
    echoes: tuple[Run, ...] = ()  # copies of what it took out, hidden at the time: it takes these out as well

    def __init__(self, index: UnitIndex, since: UnitIndex) -> None:
        self.index = index
        self.since = since  # the first unit of the same edit: the moment of recording
        self.live = True
        self.is_asked = False  # whether anybody needs to know where text returns: who took its text out, or undid it
        self.inserted: list[Run] = []  # in text order, as is `deleted`
        self.deleted: list[Run] = []

    @property
    def taken(self) -> Iterable[Run]:
        """All runs that the unit takes out: those that it saw, or a file's, and copies of them."""
        return (*self.deleted, *self.echoes) if self.echoes else self.deleted

    @property
    def region(self) -> tuple[Run, Run]:
        """First and last run of the stretch in which no text may show that the unit never saw.

        Raises ValueError when the unit has no region: it touched no line, or only inserted where nothing
        was hidden.
        """
        if self.gap is not None:
            return self.gap
        if not self.deleted:
            raise ValueError("the unit has no region")
        return self.deleted[0], self.deleted[-1]

    @property
    def sets_final_newline(self) -> bool:
        """Whether the unit has an `ending`."""
        return "ending" in self.__dict__

    def flip(self, units: int) -> None:
        """Turn live into dead or dead into live, at the moment when there are so many `units`."""
        self.live = not self.live
        for run in self.taken:
            others = [unit for unit in run.takers if unit is not self]
            if self.live:
                insort(others, self, key=_INDEX)
            run.takers = tuple(others)
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
        """Return whether the text of `author` stood back when this unit was recorded."""
        layer = {author}
        for _ in range(MOST_HIDDEN):
            if not layer:
                return True
            if any(unit.undoes is None or self.knew(unit.undoes) for unit in layer):
                return False
            layer = {other for unit in layer for other in unit.restores if not self.knew(other)}
        return not layer

    def new_run(self, content: bytes) -> Run:
        """Add closed text to the end of what the unit inserts and return its run, not yet in order.

        Empty content makes a *bound*: a run of no lines that stands for the start or the end of a file.
        """
        last = self.inserted[-1] if self.inserted else None
        run = Run(self, last.end if last else 0, content, content.count(b"\n"))
        self.inserted.append(run)
        return run


class Run:
    """Consecutive lines that one unit inserted, all of them deleted by the same units."""

    __slots__ = (
        "anchored",
        "asked",
        "block",
        "copies",
        "deleters",
        "enders",
        "inserter",
        "lines",
        "lost",
        "original",
        "shown",
        "start",
        "takers",
        "text",
    )

    block: Block  # set when the run is put in order

    def __init__(self, inserter: WeaveUnit, start: int, text: bytes, lines: int) -> None:
        self.inserter = inserter
        self.start = start  # lines that the inserter put in before this run
        self.text = text
        self.lines = lines  # 0: a bound of the file
        self.deleters: tuple[WeaveUnit, ...] = ()  # in the order of recording, and of these
        self.takers: tuple[WeaveUnit, ...] = ()  # the live ones, and
        self.asked: tuple[WeaveUnit, ...] = ()  # those that are asked, in any order
        self.shown = True
        self.anchored: tuple[WeaveUnit, ...] = ()  # pure insertions made directly above or below
        self.enders: tuple[WeaveUnit, ...] = ()  # units whose `ending` is about this run
        self.original: Run | None = None  # the same lines, which this run put back
        self.copies: tuple[Run, ...] = ()  # runs that put these lines back, in the order of recording
        self.lost: tuple[
            WeaveUnit, ...
        ] = ()  # of a copy: the live units that take out what it stands for (see `putback`)

    @property
    def end(self) -> int:
        """Lines that the inserter put in up to the end of this run."""
        return self.start + self.lines

    @property
    def wanted(self) -> bool:
        """Whether the live units show this run: its inserter is live, and none of its deleters."""
        author = self.inserter
        return author.live and not author.hidden and not self.takers

    def descendants(self) -> Iterator[Run]:
        """Yield the copies of this run, and theirs: each is newer than the one that it copies."""
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
        return all(other is unit for other in self.takers)

    def cut(self, lines: int, at: int) -> Run:
        """Keep the first `lines` lines, of `at` bytes; return the rest as a run of its own, not yet in order."""
        rest = Run(self.inserter, self.start + lines, self.text[at:], self.lines - lines)
        self.text, self.lines = self.text[:at], lines
        rest.deleters, rest.takers, rest.asked = self.deleters, self.takers, self.asked
        rest.lost, rest.shown = self.lost, self.shown
        rest.enders, self.enders = self.enders, ()
        for unit in rest.enders:
            unit.ending = rest, unit.ending[1]
        pieces = self.inserter.inserted
        pieces.insert(bisect_left(pieces, rest.start, key=_START), rest)
        for unit in self.deleters:
            if self in unit.echoes:
                unit.echoes += (rest,)
            else:
                unit.deleted.insert(unit.deleted.index(self) + 1, rest)
        for unit in self.asked:
            if not unit.live and (self.shown or self.inserter.returns is not None):
                unit.bare += 1
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
    """What a live unit with many lines needs of others, part by part, as `conflicts` found it last.

    It is kept so that one change among those lines costs one look.
    """

    __slots__ = ("missing", "returned", "rivals")

    def __init__(
        self, missing: dict[WeaveUnit, WeaveUnit], rivals: set[WeaveUnit], returned: dict[Run, set[WeaveUnit]]
    ) -> None:
        self.missing = missing  # by author of text that the unit took out: whom that makes it need live
        self.rivals = rivals  # who take out, too, what it replaced, and did not know it
        self.returned = returned  # by run that is shown in the unit's region: whom that makes it need


class Block:
    """Consecutive runs, with what is shown of them."""

    __slots__ = ("index", "lines", "runs", "shown", "size", "watchers")

    def __init__(self, index: int, runs: list[Run], watchers: Iterable[WeaveUnit] = ()) -> None:
        self.index = index
        self.runs = runs
        self.watchers: set[WeaveUnit] = set(watchers)  # units with a watched region in this block
        for run in runs:
            run.block = self
        shown = [run for run in runs if run.shown]
        self.lines = sum([run.lines for run in shown])  # of the shown runs
        self.size = sum([len(run.text) for run in shown])  # their bytes
        self.shown = len(shown)

    def text(self) -> bytes:
        """Return the text of the shown runs."""
        return b"".join([run.text for run in self.runs if run.shown])


def text_of(runs: Iterable[Run]) -> bytes:
    """Return the text of `runs`, shown or not."""
    return b"".join([run.text for run in runs])
