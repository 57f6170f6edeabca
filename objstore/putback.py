"""Put back: which units bring text back that others took out, and what that links them with.

An edit that restores exactly what another one removed stands back (is *hidden*) while that other is dead, as long as
the same text is there without it: those who had inserted it are live, or stand back themselves. Where one edit both
takes lines out and puts them in again elsewhere, that is a move.

And text *returns* in the place of a unit that is gone: what it had taken out is shown again, or, if that is of units
that are gone as well, what these had taken out, and so on down; or it undid a deletion that is gone too. A unit that
took out its text has then not what it was for.

Both are kept up from flip to flip, and looked at further up only where they change: so in a line that was rewritten ten
thousand times a flip costs what it touches, not what stands on it.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from objstore.runs import BASE, MOST_HIDDEN, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from objstore.runorder import RunOrder
    from objstore.runs import Run, Unit

__all__ = [
    "count_bare",
    "derive",
    "doubtful",
    "link_undone",
    "note_moves",
    "returned",
    "stand_back",
    "taken_out",
]


def link_undone(unit: Unit, order: RunOrder) -> None:
    """Note whether `unit` puts back, byte for byte, what one live unit took out."""
    if not unit.inserted:
        return
    other: Unit | None = None
    if unit.deleted:
        author = unit.deleted[0].inserter
        other = author if author.inserted == unit.deleted else None
    elif unit.gap is not None:
        first, last = unit.gap
        deletions = (deleter for deleter in last.deleters if deleter.live and not deleter.inserted)
        other = next((d for d in deletions if order.distance(first, d.deleted[0]) >= 0), None)
    if other is None:
        return
    restored = [run for run in other.deleted if run.hidden_only_by(other)]
    if not _same_lines(restored, unit.inserted):
        return
    unit.undoes = other
    unit.restores = tuple(dict.fromkeys(run.inserter for run in restored))
    for decisive in (other, *unit.restores):
        if decisive.index != BASE:  # which is always live
            decisive.shadowed += (unit,)


def note_moves(units: Sequence[Unit]) -> None:
    """Let each pure deletion among the hunks of one edit know which of the others put its text back."""
    deletions = [unit for unit in units if not unit.inserted]
    if not deletions or len(deletions) == len(units):
        return
    put_back: dict[bytes, set[Unit]] = {}
    for unit in units:
        for line in text_of(unit.inserted).split(b"\n"):
            put_back.setdefault(line.strip(), set()).add(unit)
    put_back.pop(b"", None)
    for unit in deletions:
        moved: dict[Unit, set[Unit]] = {}
        for run in unit.deleted:
            if run.inserter.index != BASE:
                for line in run.text.split(b"\n"):
                    moved.setdefault(run.inserter, set()).update(put_back.get(line.strip(), ()))
        unit.moved = moved
        for target in set().union(*moved.values()):
            target.readers += (unit,)


def stand_back(flipped: Iterable[Unit]) -> list[Unit]:
    """Have units stand back, or no longer, now that others were `flipped`, and return them, ascending."""
    changed: list[Unit] = []
    waiting = _Ascending(other for unit in flipped for other in unit.shadowed)
    for unit in waiting:
        hidden = _depth(unit)
        if unit.hidden != hidden:
            if not (unit.hidden and hidden):
                changed.append(unit)
            unit.hidden = hidden
            waiting.add(unit.shadowed)
    return changed


def doubtful(flipped: Iterable[Unit], standing_back: Iterable[Unit]) -> Iterator[Unit]:
    """Yield who stands back for text that somebody takes out now, or no longer; see `taken_out`.

    That is where one of `flipped` takes it out, beside one who would be to blame; or where it is text of one of
    `standing_back`, who do so now, or no longer.
    """
    for unit in flipped:
        for run in unit.deleted:
            if len(run.deleters) > 1:
                for other in _standing_for(run, unit):
                    if any(_spites(deleter, other) for deleter in run.deleters):
                        yield other
    for unit in standing_back:
        for run in unit.inserted:
            yield from _standing_for(run, unit)


def _standing_for(run: Run, apart: Unit) -> Iterator[Unit]:
    """Yield who stands back for `run`, or for one who does, except for what `apart` took out."""
    pending, seen = [run], {apart}
    while pending:
        undone = {unit for unit in pending.pop().deleters if unit is not apart}
        for unit in {restoring for other in undone for restoring in other.shadowed if restoring.undoes is other} - seen:
            if unit.hidden:
                seen.add(unit)
                pending += unit.inserted
                yield unit


def taken_out(unit: Unit) -> set[Unit]:
    """Return the live ones that take out what `unit` stands back for and are older, but were dead when it was recorded.

    Where somebody else takes it out as well, that is as it should be.
    """
    found: set[Unit] = set()
    pending, seen = [unit], {unit}
    while pending:
        undone = pending.pop().undoes
        for run in undone.deleted if undone is not None else ():
            takers = [other for other in run.deleters if other.live]
            if takers and all(_spites(other, unit) for other in takers):
                found.update(takers)
            elif run.inserter.hidden and run.inserter not in seen:
                seen.add(run.inserter)
                pending.append(run.inserter)
    return found


def _spites(other: Unit, unit: Unit) -> bool:
    """Return whether `other` is older than `unit`, which didn't know it."""
    return other.since < unit.since and not unit.knew(other)


def count_bare(unit: Unit) -> None:
    """Count anew in how many places text is shown that `unit`, which was flipped, had taken out.

    A run that is shown now, in the place of whose author text returned up to now, counts twice until that is found.
    """
    bare = 0 if unit.live else sum(run.shown + (run.inserter.returns is not None) for run in unit.deleted)
    if unit.bare != bare:
        unit.bare = bare


def returned(suspects: Iterable[Unit]) -> list[Unit]:
    """Find where text returns now, or no longer, and return the units in whose place, ascending.

    `suspects`: those that were flipped, that stand back now or no longer, of which a run that they took out was shown
    or hidden, and whoever undoes one of these.
    """
    changed: list[Unit] = []
    waiting = _Ascending(suspects)
    for unit in waiting:
        returns = _in_place_of(unit)
        if unit.returns is returns:
            continue
        step = (returns is not None) - (unit.returns is not None)
        unit.returns = returns
        changed.append(unit)
        waiting.add(other for other in unit.shadowed if other.undoes is unit)
        if step:
            above = [other for run in unit.inserted for other in run.deleters if not other.live]
            for other in above:
                other.bare += step
            waiting.add(above)
    return changed


def derive(units: Iterable[Unit]) -> None:
    """Find who stands back and where text returns in a weave that was kept: of `units`, ascending, all others do not.

    These are the dead ones, and those that put text back.
    """
    for unit in units:
        hidden = _depth(unit)
        if hidden:
            unit.hidden = hidden
        count_bare(unit)
        returns = _in_place_of(unit)
        if returns is not None:
            unit.returns = returns


def _depth(unit: Unit) -> int:
    """Return how many units down the text is that `unit` stands back for; 0 where it does not."""
    if unit.undoes is None or unit.undoes.live:
        return 0
    below = [author.hidden for author in unit.restores if not author.live]
    deepest = max(below, default=0)
    return deepest + 1 if all(below) and deepest < MOST_HIDDEN else 0


def _in_place_of(unit: Unit) -> Unit | None:
    """Return whom it takes to have no older text in the place of `unit` (None: there is none, or `unit` stands)."""
    if unit.live and not unit.hidden:
        return None
    if unit.bare:
        return unit
    undone = unit.undoes
    return None if undone is None or undone.live or undone.returns is None else undone


class _Ascending:
    """Units to be looked at, each after all older ones, that others are added to meanwhile; these are newer."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._units = {unit.index: unit for unit in units}
        self._heap = list(self._units)
        heapify(self._heap)

    def add(self, units: Iterable[Unit]) -> None:
        for unit in units:
            if unit.index not in self._units:
                self._units[unit.index] = unit
                heappush(self._heap, unit.index)

    def __iter__(self) -> Iterator[Unit]:
        while self._heap:
            yield self._units.pop(heappop(self._heap))


def _same_lines(runs: Sequence[Run], others: Sequence[Run]) -> bool:
    bounds = sum(not run.lines for run in runs)
    return bounds == sum(not run.lines for run in others) and text_of(runs) == text_of(others)
