"""Detect edits that reinsert text deleted by an earlier edit.

An edit that restores exactly what another one deleted is *hidden* while that other one is dead, as long as the same
text shows without it: the units that had inserted the text are live, or hidden in the same way. If one edit deletes
lines and inserts them again elsewhere, that is a move.

Reinserted text is the *same lines* in another form: run by run, a *copy* of what was deleted. A reader of one form
means the other too. So a unit that deletes a run also deletes its copies that are hidden at the time
(`deleted_copies`), a final newline applies to all of them, and text inserted next to one form is also next to those
adjacent to it.

Text *returns* in the place of a dead unit when what it had deleted shows again; or, if that is text of dead units, what
these had deleted, and so on down; or when the unit undid a deletion that is dead too. A unit that deletes the dead
unit's text then has lost its purpose.

All this is maintained from flip to flip, and propagated upward only where it changes: in a line that was rewritten ten
thousand times, a flip costs what it touches, not what was built on it. Where text returns is tracked only for units of
which it matters (`tracks_returns`): those whose text was deleted, or that were undone. So attempts that were rejected
and abandoned cost nothing.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from objstore.weave.runs import BASE, MOST_HIDDEN, UnitIndex, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from objstore.weave.run_list import RunList
    from objstore.weave.runs import Run, WeaveUnit

__all__ = [
    "link_moves",
    "link_reinsertion",
    "other_forms",
    "overruled_deleters",
    "recheck_copies",
    "recount_exposed",
    "restore_derived",
    "track_returns",
    "update_hidden_copies",
    "update_returns",
]


_INDEX: Final = attrgetter("index")


def link_reinsertion(unit: WeaveUnit, order: RunList) -> None:
    """Link `unit` to the live unit whose deleted text it reinserts byte for byte, if there is one."""
    if not unit.inserted:
        return
    other: WeaveUnit | None = None
    if unit.deleted:
        author = unit.deleted[0].inserter
        other = author if author.inserted == unit.deleted else None
    elif unit.gap is not None:
        first, last = unit.gap
        deletions = (taker for taker in last.live_deleters if not taker.inserted)
        other = next((d for d in deletions if order.distance(first, d.deleted[0]) >= 0), None)
    if other is None or not _undo(unit, other, order):
        _pair_with_earlier(unit, order)


def _undo(unit: WeaveUnit, other: WeaveUnit, order: RunList) -> bool:
    """Make `unit` undo `other` if it reinserts, byte for byte, what that deleted; return whether it does."""
    if any(restoring.live and restoring.undoes is other for restoring in other.shadowed):
        return False
    taken: Iterable[Run] = other.deleted
    if other.deleted_copies and unit.gap is not None:
        taken = [run for run in order.runs(*unit.gap) if other in run.deleters]
    restored = [run for run in taken if run.is_hidden_only_by(other)]
    if not _same_lines(restored, unit.inserted) or any(len(run.copies) >= MOST_HIDDEN for run in restored):
        return False
    _copy(restored, unit, order)
    if not other.tracks_returns:
        track_returns(other)
    unit.undoes = other
    unit.restores = tuple(dict.fromkeys(run.inserter for run in restored))
    for decisive in (other, *unit.restores):
        if decisive.index != BASE:  # the base is always live
            decisive.shadowed += (unit,)
    return True


def _pair_with_earlier(unit: WeaveUnit, order: RunList) -> None:
    """Pair what `unit` inserted with the newest earlier text of its place that has the same lines."""
    for earlier in _earlier_texts(unit, order):
        if not _same_lines(earlier, unit.inserted) or any(len(run.copies) >= MOST_HIDDEN for run in earlier):
            continue
        if not _has_other_forms(earlier, unit):
            _copy(earlier, unit, order)
            return


def _has_other_forms(earlier: Sequence[Run], unit: WeaveUnit) -> bool:
    """Return whether pairing `earlier` with what `unit` inserted would show a line twice.

    That is so if another form of a line is shown already, or is among `earlier`, because one edit deleted both.
    """
    runs = set(earlier)
    return any(form.shown or form in runs for run in earlier for form in other_forms(run, UnitIndex(unit.since + 1)))


def _earlier_texts(unit: WeaveUnit, order: RunList) -> Iterator[Sequence[Run]]:
    """Yield what was deleted, with everything that replaced it, where `unit` inserted its text; the newest first."""
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
    deleters = {taker for run in hidden for taker in run.deleters if taker.since < replacing.since}
    for taker in sorted(deleters, key=_INDEX, reverse=True):
        if hidden.keys() >= {*taker.deleted, *taker.inserted}:
            yield taker.deleted


def _copy(restored: Sequence[Run], unit: WeaveUnit, order: RunList) -> None:
    """Pair what `unit` inserted, run by run, with the same lines that it restored."""
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
            copy.original_deleters = _effective_deleters(run)
            run.copies += (copy,)


def other_forms(run: Run, since: UnitIndex) -> list[Run]:
    """Return the runs of edits before `since` with the same lines as `run`: its original, and copies of that."""
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
    """Record, for each pure deletion among the hunks of one edit, which other hunks reinsert its text."""
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
    """Hide or show copies after units were `flipped`; return the units for which that changed, ascending."""
    changed: list[WeaveUnit] = []
    waiting = _Ascending(other for unit in flipped for other in unit.shadowed)
    for unit in waiting:
        hidden = _hidden_depth(unit)
        if unit.hidden != hidden:
            if not (unit.hidden and hidden):
                changed.append(unit)
            unit.hidden = hidden
            waiting.add(unit.shadowed)
    return changed


def recheck_copies(runs: Iterable[Run]) -> set[WeaveUnit]:
    """Recompute the deleters of the originals of copies of `runs`; return the units that inserted the changed copies.

    `runs`: those whose live deleters changed, and those of units that became hidden or shown.
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
        deleters = () if copy.original is None else _effective_deleters(copy.original)
        if copy.original_deleters != deleters:
            copy.original_deleters = deleters
            changed.add(copy.inserter)
            starts = (copy,)


def _effective_deleters(run: Run) -> tuple[WeaveUnit, ...]:
    """Return the live units that delete `run` or, if it is a hidden copy, its original."""
    return run.original_deleters if not run.live_deleters and run.inserter.hidden else run.live_deleters


def overruled_deleters(unit: WeaveUnit) -> set[WeaveUnit]:
    """Return the older live units that delete the original of hidden `unit`, and were dead when it was recorded.

    Empty if a newer unit, or one that `unit` knew, deletes it as well: then the deletion is as it should be.
    """
    found: set[WeaveUnit] = set()
    for run in unit.inserted:
        if run.original_deleters and all(_overrides(other, unit) for other in run.original_deleters):
            found.update(run.original_deleters)
    return found


def _overrides(other: WeaveUnit, unit: WeaveUnit) -> bool:
    """Return whether `other` is older than `unit`, which didn't know it."""
    return other.since < unit.since and not unit.knew(other)


def track_returns(unit: WeaveUnit) -> None:
    """Maintain from now on where text returns in the place of `unit`, which no unit depended on before."""
    unit.tracks_returns = True
    for run in unit.all_deleted:
        run.return_trackers += (unit,)
    recount_exposed(unit)
    blocker = _return_blocker(unit)
    if blocker is not None:
        unit.return_blocker = blocker


def recount_exposed(unit: WeaveUnit) -> None:
    """Recount the deleted runs of `unit` in whose place text shows, after it was flipped or became tracked.

    A run that shows now, and in the place of whose author text returned until now, counts twice until `update_returns`
    corrects it.
    """
    is_needed = unit.tracks_returns and not unit.live
    exposed = sum(run.shown + (run.inserter.return_blocker is not None) for run in unit.all_deleted) if is_needed else 0
    if unit.exposed != exposed:
        unit.exposed = exposed


def update_returns(suspects: Iterable[WeaveUnit]) -> list[WeaveUnit]:
    """Recompute in the place of which units text returns; return the units for which that changed, ascending.

    `suspects`: the units that were flipped, those that became hidden or shown, those with a deleted run that was shown
    or hidden, and those that undo one of these.
    """
    changed: list[WeaveUnit] = []
    waiting = _Ascending(suspects)
    for unit in waiting:
        blocker = _return_blocker(unit)
        if unit.return_blocker is blocker:
            continue
        step = (blocker is not None) - (unit.return_blocker is not None)
        unit.return_blocker = blocker
        changed.append(unit)
        waiting.add(other for other in unit.shadowed if other.undoes is unit)
        if step:
            above = [other for run in unit.inserted for other in run.return_trackers if not other.live]
            for other in above:
                other.exposed += step
            waiting.add(above)
    return changed


def restore_derived(units: Iterable[WeaveUnit]) -> None:
    """Recompute hidden units and returning text in a weave that was loaded: of `units`, ascending.

    `units`: the dead ones and those that reinsert text; all others are neither hidden nor returned to.
    """
    for unit in units:
        hidden = _hidden_depth(unit)
        if hidden:
            unit.hidden = hidden
        for run in unit.inserted:
            if run.original is not None:
                run.original_deleters = _effective_deleters(run.original)
        recount_exposed(unit)
        blocker = _return_blocker(unit)
        if blocker is not None:
            unit.return_blocker = blocker


def _hidden_depth(unit: WeaveUnit) -> int:
    """Return the depth of the chain of units that `unit` is hidden for; 0 if it is shown."""
    if unit.undoes is None or unit.undoes.live:
        return 0
    below = [author.hidden for author in unit.restores if not author.live]
    deepest = max(below, default=0)
    return deepest + 1 if all(below) and deepest < MOST_HIDDEN else 0


def _return_blocker(unit: WeaveUnit) -> WeaveUnit | None:
    """Return the unit that must be live so that no older text shows in the place of `unit`.

    None if no older text shows, or `unit` is live and shown, or it is not tracked.
    """
    if not unit.tracks_returns or (unit.live and not unit.hidden):
        return None
    if unit.exposed:
        return unit
    undone = unit.undoes
    return None if undone is None or undone.live or undone.return_blocker is None else undone


class _Ascending:
    """A queue of units to process from old to new; only newer units are added meanwhile."""

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
    if len(runs) == len(others) == 1:  # the case of nearly all units, so it is worth a shortcut
        return runs[0].text == others[0].text
    bounds = sum(not run.lines for run in runs)
    return bounds == sum(not run.lines for run in others) and text_of(runs) == text_of(others)
