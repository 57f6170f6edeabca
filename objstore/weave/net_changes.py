"""Find the net changes between two texts of one weave: what it shows without some units, and what it shows with them.

Every line of a weave names the unit that inserted it and those that delete it, so a change names its units without a
comparison of texts. A *stretch* is a maximal sequence of runs of which none is shown in both texts. Text that was
deleted and reinserted is known as such (see `reinsertion`): it is no difference. Only where several edits rewrote the
same stretch are its two sides compared with each other, so that lines which returned there are not shown as changed.

Units that affect the same line belong together: a change has all units that belong to those that it shows. So to reject
the units of a change, and of those that share a unit with it, removes exactly these changes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from objstore.text.diff import diff_lines
from objstore.text.hunks import Hunk
from objstore.text.lines import common_affixes, shared_ends
from objstore.values.fastclass import value
from objstore.weave.runs import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Set as AbstractSet

    from objstore.weave.runs import Run, UnitIndex, WeaveUnit

__all__ = ["NetRuns", "Piece", "net_pieces"]

_WORD: Final = re.compile(rb"[\w\x80-\xff]")


@value
class Piece:
    """One contiguous difference, in lines of the closed texts, from 0."""

    hunk: Hunk
    units: frozenset[UnitIndex]


class NetRuns(NamedTuple):
    """A weave's runs in text order, whether each is shown in the first text and in the second, and the units between.

    The units are live in the second text and dead in the first; no others differ.
    """

    runs: Sequence[Run]
    before: bytes
    after: bytes
    units: AbstractSet[WeaveUnit]


class UnitGroups:
    """The units between two texts, grouped by what they affect together."""

    def __init__(self, units: AbstractSet[WeaveUnit]) -> None:
        """Group the units that affect the same run, or forms of the same lines."""
        self._units = units
        self._parents: dict[WeaveUnit, WeaveUnit] = {}
        self._members: dict[WeaveUnit, list[UnitIndex]] = {}  # by the root of each group, once that was asked for
        for unit in units:
            for run in (*unit.inserted, *unit.all_deleted):
                self.link(self.of_run(run))

    def link(self, units: Iterable[WeaveUnit]) -> None:
        """Put units into one group."""
        first: WeaveUnit | None = None
        for unit in units:
            root = self._root(unit)
            if first is None:
                first = root
            elif root is not first:
                self._parents[root] = first
                self._members.clear()

    def whole(self, units: Iterable[WeaveUnit]) -> frozenset[UnitIndex]:
        """Return all units of the groups that `units` belong to; call it when everything is linked."""
        if not self._members:
            for unit in self._units:
                self._members.setdefault(self._root(unit), []).append(unit.index)
        roots = {self._root(unit) for unit in units}
        return frozenset([index for root in roots for index in self._members[root]])

    def of_run(self, run: Run) -> set[WeaveUnit]:
        """Return the units that insert or delete a run, or the lines that it reinserted."""
        form: Run | None = run
        found: set[WeaveUnit] = set()
        while form is not None:
            found.update((form.inserter, *form.live_deleters))
            form = form.original
        return found & self._units

    def _root(self, unit: WeaveUnit) -> WeaveUnit:
        root = unit
        while root in self._parents:
            root = self._parents[root]
        while unit is not root:
            self._parents[unit], unit = root, self._parents[unit]
        return root


def net_pieces(net: NetRuns) -> tuple[list[Piece], UnitGroups]:
    """Return the differences between the two texts, in order, and how their units belong together.

    Must be called while the units between the texts are live.
    """
    groups = UnitGroups(net.units)
    shown = zip(net.runs, net.before, net.after, strict=True)
    bounds = (run for run, is_old, is_new in shown if not run.lines and is_old is not is_new)
    groups.link(unit for run in bounds for unit in groups.of_run(run))  # a file in place of another
    found: list[tuple[Hunk, set[WeaveUnit]]] = []
    line_before = line_after = 0
    for same, old, new in _sections(net):
        line_before, line_after = line_before + same, line_after + same
        for hunk, units in _differences(old, new, groups):
            place = Hunk(line_before + hunk.old_start, hunk.old_count, line_after + hunk.new_start, hunk.new_count)
            found.append((place, units or set(net.units)))
        line_before += _line_count(old)
        line_after += _line_count(new)
    return [Piece(hunk=hunk, units=groups.whole(units)) for hunk, units in found], groups


def _sections(net: NetRuns) -> Iterator[tuple[int, list[Run], list[Run]]]:
    """Yield each place where the texts differ: the number of equal lines above it, and the runs of either text there.

    Forms of the same lines, of which one is in either text, count as equal lines.
    """
    same = 0
    old: list[Run] = []
    new: list[Run] = []
    for run, is_old, is_new in zip(net.runs, net.before, net.after, strict=True):
        if not run.lines:
            continue  # a bound of the file
        if is_old and is_new:
            if old or new:
                for shared, removed, inserted in _between_copies(old, new):
                    yield same + shared, removed, inserted
                    same = 0
                old, new = [], []
            same += run.lines
        elif is_old:
            old.append(run)
        elif is_new:
            new.append(run)
    for shared, removed, inserted in _between_copies(old, new):
        yield same + shared, removed, inserted
        same = 0


def _between_copies(old: list[Run], new: list[Run]) -> Iterator[tuple[int, list[Run], list[Run]]]:
    """Yield the parts of a stretch between forms of the same lines, each with the number of these lines above it."""
    places: dict[Run, int] = {}
    for at, run in enumerate(new):
        places.setdefault(_first_form(run), at)
    same = old_at = new_at = 0
    for at, run in enumerate(old if places else ()):
        place = places.get(_first_form(run), -1)
        if place < new_at or new[place].lines != run.lines:
            continue
        yield same, old[old_at:at], new[new_at:place]
        same, old_at, new_at = run.lines, at + 1, place + 1
    yield same, old[old_at:], new[new_at:]


def _first_form(run: Run) -> Run:
    while run.original is not None:
        run = run.original
    return run


def _differences(old: Sequence[Run], new: Sequence[Run], groups: UnitGroups) -> Iterator[tuple[Hunk, set[WeaveUnit]]]:
    """Yield the differences between the runs of the two texts in one place, in its lines, with their units."""
    if not old and not new:
        return
    if not old or not new:
        hunks: Sequence[Hunk] = (Hunk(0, _line_count(old), 0, _line_count(new)),)
    else:
        hunks = _narrowed(old, new)
        if hunks[:1] != (Hunk(0, _line_count(old), 0, _line_count(new)),):
            # Which of several equal lines is the one that returned can't be known, so these units belong together.
            groups.link(unit for run in (*old, *new) for unit in groups.of_run(run))
    for hunk in hunks:
        units: set[WeaveUnit] = set()
        for runs, start, end in ((old, hunk.old_start, hunk.old_end), (new, hunk.new_start, hunk.new_end)):
            at = 0
            for run in runs:
                if at < end and at + run.lines > start:
                    units |= groups.of_run(run)
                at += run.lines
        yield hunk, units


def _narrowed(old: Sequence[Run], new: Sequence[Run]) -> Sequence[Hunk]:
    """Return what differs between two sequences of runs, without the lines at both ends that are equal.

    If several edits made the difference, equal lines in between are left out too, unless all of them are blank or
    punctuation, which reads alike everywhere.
    """
    before, after = text_of(old), text_of(new)
    edits = {unit.since for run in old for unit in run.live_deleters} | {run.inserter.since for run in new}
    if len(edits) == 1:
        head, tail = shared_ends(before, after, common_affixes(before, after))
        start, end = before.count(b"\n", 0, head), before.count(b"\n", len(before) - tail)
        hunk = Hunk(start, _line_count(old) - start - end, start, _line_count(new) - start - end)
        return (hunk,) if hunk.old_count or hunk.new_count else ()
    hunks = diff_lines(before, after)
    if len(hunks) < 2:  # noqa: PLR2004 - there are no equal lines in between
        return hunks
    joined = [hunks[0]]
    lines = before.split(b"\n")
    for hunk in hunks[1:]:
        last = joined[-1]
        if any(map(_WORD.search, lines[last.old_end : hunk.old_start])):
            joined.append(hunk)
        else:
            start, new_start = last.old_start, last.new_start
            joined[-1] = Hunk(start, hunk.old_end - start, new_start, hunk.new_end - new_start)
    return joined


def _line_count(runs: Iterable[Run]) -> int:
    return sum([run.lines for run in runs])
