"""Find what else must be rejected, or accepted, so that a decision leaves no conflict."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from objstore.values.fastclass import value
from objstore.weave.runs import BASE, UnitIndex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from objstore.weave.line_weave import Weave, WeaveConflict

__all__ = ["Cascade", "cascade"]


@value
class Cascade:
    """The result of a cascade. Either it was applied, or `blocked` says why it can't be."""

    rejected: tuple[UnitIndex, ...]  # units rejected in addition (or that would be), in the order of rejection
    accept_first: tuple[UnitIndex, ...]  # dead units that would have to be accepted too, ascending
    blocked: tuple[WeaveConflict, ...]  # conflicts that rejecting others doesn't solve; () if applied


def cascade(weave: Weave, changes: Mapping[UnitIndex, bool]) -> Cascade:
    """Make `changes`, then reject the latest unit in conflict until there is none.

    Units that `changes` makes live are never rejected: the units that they exclude are rejected instead. If they need
    dead units, nothing is changed, and the result names these, what these need in turn, and what would then have to be
    rejected. If they exclude each other or the base, or need what `changes` rejects, it names none.
    """
    kept = {unit for unit, live in changes.items() if live}
    changed = {unit: weave.is_live(unit) for unit in changes}
    rejected: list[UnitIndex] = []
    missing: set[UnitIndex] = set()
    blocked: tuple[WeaveConflict, ...] = ()
    weave.flip(changes)
    suspects = [-unit for unit in weave.conflicting_units()]  # a heap; it may hold units that no longer fail
    heapify(suspects)
    while True:
        latest = _latest_failing(weave, suspects, kept)
        if latest is None and (conflicting_units := weave.conflicting_units()):
            needed = {unit for needs in conflicting_units.values() for unit in needs} - changed.keys() - kept
            needed = {unit for unit in needed if unit != BASE}
            dead = {unit for unit in needed if not weave.is_live(unit)}
            if dead or not needed:
                blocked = blocked or weave.conflicts()
            if not needed:
                missing.clear()
                rejected.clear()
                break
            if dead:
                changed |= dict.fromkeys(dead, False)
                missing |= dead
                kept |= dead
                _flip(weave, dict.fromkeys(dead, True), suspects)
                continue
            latest = max(needed)
        if latest is None:
            break
        changed.setdefault(latest, True)
        rejected.append(latest)
        _flip(weave, {latest: False}, suspects)
    if blocked:
        weave.flip(changed)
        return Cascade(rejected=tuple(rejected), accept_first=tuple(sorted(missing)), blocked=blocked)
    return Cascade(rejected=tuple(rejected), accept_first=(), blocked=())


def _flip(weave: Weave, changes: Mapping[UnitIndex, bool], suspects: list[int]) -> None:
    for unit in weave.flip(changes):
        heappush(suspects, -unit)


def _latest_failing(weave: Weave, suspects: list[int], kept: set[UnitIndex]) -> UnitIndex | None:
    while suspects:
        unit = UnitIndex(-heappop(suspects))
        if unit not in kept and weave.has_conflict(unit) and unit != BASE:
            return unit
    return None
