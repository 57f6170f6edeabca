"""Put back: which units bring text back that others took out, and what that links them with.

An edit that restores exactly what another one removed stands back (is *hidden*) while that other is dead, as long as
the same text is there without it: those who had inserted it are live, or stand back themselves. Where one edit both
takes lines out and puts them in again elsewhere, that is a move.

What is put back is the *same line* in another form: a *copy*, run by run, of what had been taken out. Whoever sees the
one has the other in mind. So who takes a line out takes out its copies as well that are hidden at the time (*echoes*),
a final newline is said of all of them, and what is put beside one stands beside those too that are next to it.

And text *returns* in the place of a unit that is gone: what it had taken out is shown again, or, if that is of units
that are gone as well, what these had taken out, and so on down; or it undid a deletion that is gone too. A unit that
took out its text has then not what it was for.

All this is kept up from flip to flip, and looked at further up only where it changes: so in a line that was rewritten
ten thousand times a flip costs what it touches, not what stands on it. Where text returns is kept up of those alone of
whom somebody *asks*: who took out their text, or undid them. So what was tried and rejected there costs nothing either.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from objstore.weave.runs import BASE, MOST_HIDDEN, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from objstore.weave.run_list import RunList
    from objstore.weave.runs import Run, UnitIndex, WeaveUnit

__all__ = [
    "ask",
    "derive",
    "link_moves",
    "link_reinsertion",
    "other_forms",
    "recheck_copies",
    "recount_shown_text",
    "returned",
    "taken_out",
    "update_hidden_copies",
]


_INDEX: Final = attrgetter("index")


def link_reinsertion(unit: WeaveUnit, order: RunList) -> None:
    """Note whether `unit` puts back, byte for byte, what one live unit took out."""
    if not unit.inserted:
        return
    other: WeaveUnit | None = None
    if unit.deleted:
        author = unit.deleted[0].inserter
        other = author if author.inserted == unit.deleted else None
    elif unit.gap is not None:
        first, last = unit.gap
        deletions = (taker for taker in last.takers if not taker.inserted)
        other = next((d for d in deletions if order.distance(first, d.deleted[0]) >= 0), None)
    if other is None or not _undo(unit, other, order):
        _pair_with_earlier(unit, order)


def _undo(unit: WeaveUnit, other: WeaveUnit, order: RunList) -> bool:
    """Let `unit` undo `other` if it puts back, byte for byte, what that took out; return whether it does."""
    if any(restoring.live and restoring.undoes is other for restoring in other.shadowed):
        return False
    taken: Iterable[Run] = other.deleted
    if other.echoes and unit.gap is not None:
        taken = [run for run in order.runs(*unit.gap) if other in run.deleters]
    restored = [run for run in taken if run.is_hidden_only_by(other)]
    if not _same_lines(restored, unit.inserted) or any(len(run.copies) >= MOST_HIDDEN for run in restored):
        return False
    _copy(restored, unit, order)
    if not other.is_asked:
        ask(other)
    unit.undoes = other
    unit.restores = tuple(dict.fromkeys(run.inserter for run in restored))
    for decisive in (other, *unit.restores):
        if decisive.index != BASE:  # which is always live
            decisive.shadowed += (unit,)
    return True


def _pair_with_earlier(unit: WeaveUnit, order: RunList) -> None:
    """Pair what `unit` inserted with the newest earlier text of its place that has the same lines."""
    for earlier in _earlier_texts(unit, order):
        if _same_lines(earlier, unit.inserted) and all(len(run.copies) < MOST_HIDDEN for run in earlier):
            _copy(earlier, unit, order)
            return


def _earlier_texts(unit: WeaveUnit, order: RunList) -> Iterator[Sequence[Run]]:
    """Yield what was taken out, with all that replaced it, where `unit` put its text; the newest first."""
    replacing = unit
    for _ in range(MOST_HIDDEN):
        if not replacing.deleted:
            break
        author = replacing.deleted[0].inserter
        if author.inserted != replacing.deleted:
            return
        yield author.deleted
        replacing = author
    if replacing.deleted or replacing.gap is None:
        return
    hidden = dict.fromkeys(islice(order.runs(*replacing.gap), MOST_HIDDEN))
    takers = {taker for run in hidden for taker in run.deleters if taker.since < replacing.since}
    for taker in sorted(takers, key=_INDEX, reverse=True):
        if hidden.keys() >= {*taker.deleted, *taker.inserted}:
            yield taker.deleted


def _copy(restored: Sequence[Run], unit: WeaveUnit, order: RunList) -> None:
    """Pair what `unit` inserted, run by run, with the same lines that it put back."""
    bounds = [run for run in unit.inserted if not run.lines]
    lines = next((run for run in unit.inserted if run.lines), None)
    for run in restored:
        copy = lines
        if not run.lines:
            copy = bounds.pop(0)
        elif lines is not None and run.lines < lines.lines:
            lines = order.cut(lines, run.lines)
        if copy is not None:
            copy.original = run
            copy.lost = _takers(run)
            run.copies += (copy,)


def other_forms(run: Run, since: UnitIndex) -> list[Run]:
    """Return the runs of edits before `since` with the very lines of `run`: what it put back, and copies of that."""
    first = run
    for _ in range(MOST_HIDDEN):
        if first.original is None:
            break
        first = first.original
    forms = [first]
    for form in forms:
        forms += [copy for copy in form.copies if copy.inserter.since < since]
    return [form for form in forms if form is not run]


def link_moves(units: Sequence[WeaveUnit]) -> None:
    """Let each pure deletion among the hunks of one edit know which of the others put its text back."""
    deletions = [unit for unit in units if not unit.inserted]
    if not deletions or len(deletions) == len(units):
        return
    put_back: dict[bytes, set[WeaveUnit]] = {}
    for unit in units:
        for line in text_of(unit.inserted).split(b"\n"):
            put_back.setdefault(line.strip(), set()).add(unit)
    put_back.pop(b"", None)
    for unit in deletions:
        taken: dict[WeaveUnit, list[bytes]] = {}  # author -> the lines of its text that are not blank
        for run in unit.deleted:
            if run.inserter.index != BASE:
                stripped = map(bytes.strip, run.text.split(b"\n"))
                taken.setdefault(run.inserter, []).extend(filter(None, stripped))
        moved: dict[WeaveUnit, set[WeaveUnit]] = {}
        for author, lines in taken.items():
            back = [line for line in lines if line in put_back]
            if back and 2 * len(back) > len(lines):
                moved[author] = set().union(*(put_back[line] for line in back))
        unit.moved = moved
        for target in set().union(*moved.values()):
            target.readers += (unit,)


def update_hidden_copies(flipped: Iterable[WeaveUnit]) -> list[WeaveUnit]:
    """Have units stand back, or no longer, now that others were `flipped`, and return them, ascending."""
    changed: list[WeaveUnit] = []
    waiting = _Ascending(other for unit in flipped for other in unit.shadowed)
    for unit in waiting:
        hidden = _depth(unit)
        if unit.hidden != hidden:
            if not (unit.hidden and hidden):
                changed.append(unit)
            unit.hidden = hidden
            waiting.add(unit.shadowed)
    return changed


def recheck_copies(runs: Iterable[Run]) -> set[WeaveUnit]:
    """Find anew who takes out what copies of `runs` stand for; return the units that put in those of which it changed.

    `runs`: those that somebody takes out now, or no longer, and those of units that stand back now, or no longer.
    """
    changed: set[WeaveUnit] = set()
    waiting: list[tuple[UnitIndex, int, Run]] = []  # a heap: originals come before their copies
    pushed = 0
    starts: Iterable[Run] = runs
    while True:
        for run in starts:
            for copy in run.copies:
                heappush(waiting, (copy.inserter.index, pushed, copy))
                pushed += 1
        if not waiting:
            return changed
        copy, starts = heappop(waiting)[2], ()
        lost = () if copy.original is None else _takers(copy.original)
        if copy.lost != lost:
            copy.lost = lost
            changed.add(copy.inserter)
            starts = (copy,)


def _takers(run: Run) -> tuple[WeaveUnit, ...]:
    """Return the live units that take out `run`, or, where it stands back, what it stands for."""
    return run.lost if not run.takers and run.inserter.hidden else run.takers


def taken_out(unit: WeaveUnit) -> set[WeaveUnit]:
    """Return the live ones that take out what `unit` stands back for and are older, but were dead when it was recorded.

    Where somebody else takes it out as well, that is as it should be.
    """
    found: set[WeaveUnit] = set()
    for run in unit.inserted:
        if run.lost and all(_overrides(other, unit) for other in run.lost):
            found.update(run.lost)
    return found


def _overrides(other: WeaveUnit, unit: WeaveUnit) -> bool:
    """Return whether `other` is older than `unit`, which didn't know it."""
    return other.since < unit.since and not unit.knew(other)


def ask(unit: WeaveUnit) -> None:
    """Keep up from now on where text returns in the place of `unit`, which nobody needed to know up to now."""
    unit.is_asked = True
    for run in unit.taken:
        run.asked += (unit,)
    recount_shown_text(unit)
    returns = _in_place_of(unit)
    if returns is not None:
        unit.returns = returns


def recount_shown_text(unit: WeaveUnit) -> None:
    """Count anew in how many places text is shown that `unit`, which was flipped or is asked now, had taken out.

    A run that is shown now, in the place of whose author text returned up to now, counts twice until that is found.
    """
    is_needed = unit.is_asked and not unit.live
    bare = sum(run.shown + (run.inserter.returns is not None) for run in unit.taken) if is_needed else 0
    if unit.bare != bare:
        unit.bare = bare


def returned(suspects: Iterable[WeaveUnit]) -> list[WeaveUnit]:
    """Find where text returns now, or no longer, and return the units in whose place, ascending.

    `suspects`: those that were flipped, that stand back now or no longer, of which a run that they took out was shown
    or hidden, and whoever undoes one of these.
    """
    changed: list[WeaveUnit] = []
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
            above = [other for run in unit.inserted for other in run.asked if not other.live]
            for other in above:
                other.bare += step
            waiting.add(above)
    return changed


def derive(units: Iterable[WeaveUnit]) -> None:
    """Find who stands back and where text returns in a weave that was kept: of `units`, ascending, all others do not.

    These are the dead ones, and those that put text back.
    """
    for unit in units:
        hidden = _depth(unit)
        if hidden:
            unit.hidden = hidden
        for run in unit.inserted:
            if run.original is not None:
                run.lost = _takers(run.original)
        recount_shown_text(unit)
        returns = _in_place_of(unit)
        if returns is not None:
            unit.returns = returns


def _depth(unit: WeaveUnit) -> int:
    """Return how many units down the text is that `unit` stands back for; 0 where it does not."""
    if unit.undoes is None or unit.undoes.live:
        return 0
    below = [author.hidden for author in unit.restores if not author.live]
    deepest = max(below, default=0)
    return deepest + 1 if all(below) and deepest < MOST_HIDDEN else 0


def _in_place_of(unit: WeaveUnit) -> WeaveUnit | None:
    """Return whom it takes to have no older text in the place of `unit`.

    None: there is none, or `unit` stands, or it is not asked.
    """
    if not unit.is_asked or (unit.live and not unit.hidden):
        return None
    if unit.bare:
        return unit
    undone = unit.undoes
    return None if undone is None or undone.live or undone.returns is None else undone


class _Ascending:
    """Units to be looked at, each after all older ones, that others are added to meanwhile; these are newer."""

    def __init__(self, units: Iterable[WeaveUnit]) -> None:
        self._units = {unit.index: unit for unit in units}
        self._heap = list(self._units)
        heapify(self._heap)

    def add(self, units: Iterable[WeaveUnit]) -> None:
        for unit in units:
            if unit.index not in self._units:
                self._units[unit.index] = unit
                heappush(self._heap, unit.index)

    def __iter__(self) -> Iterator[WeaveUnit]:
        while self._heap:
            yield self._units.pop(heappop(self._heap))


def _same_lines(runs: Sequence[Run], others: Sequence[Run]) -> bool:
    if len(runs) == len(others) == 1:  # as of nearly all, of which there may be very many
        return runs[0].text == others[0].text
    bounds = sum(not run.lines for run in runs)
    return bounds == sum(not run.lines for run in others) and text_of(runs) == text_of(others)
