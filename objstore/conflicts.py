"""Conflicts: why a live unit can't stand together with what else is live.

A conflict is a value, not an exception. Each names the unit that fails and the units it needs: a dead one
it needs live, a live one it needs dead. These are the only rules:

missing target
    The unit took out lines that a dead unit put in. A pure deletion has nothing left to do and is excused,
    unless the dead unit's own replacement shows its old lines again where the deletion was, or the same
    edit put the deleted text back elsewhere, which would keep text that should be gone.
both changed
    The unit replaced a line that another live unit, which didn't know this one, takes out too.
surroundings gone
    The unit only inserts, and both its neighbours are gone for a reason that it didn't know.
text returned inside
    Text shows inside the unit's region that was not shown when the unit was recorded, or that was put
    there by a unit which didn't know this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from objstore.runs import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from objstore.runorder import RunOrder
    from objstore.runs import Run, Unit, UnitIndex

__all__ = ["ConflictKind", "Finding", "WeaveConflict", "described", "findings"]


class ConflictKind(StrEnum):
    """Which rule a unit breaks."""

    MISSING_TARGET = "missing-target"
    BOTH_CHANGED = "both-changed"
    SURROUNDINGS_GONE = "surroundings-gone"
    TEXT_RETURNED = "text-returned-inside"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeaveConflict:
    """One rule that one live unit breaks."""

    kind: ConflictKind
    unit: UnitIndex
    needs: tuple[UnitIndex, ...]  # ascending; a dead unit is needed live, a live one dead
    line: int  # of the current text, from 1: where the unit stands or would stand
    removed: bytes  # the lines that the unit took out, each ended
    inserted: bytes  # the lines that the unit put in, each ended


Finding = tuple[ConflictKind, frozenset["Unit"]]
"""A broken rule and the units it names."""


def findings(unit: Unit, order: RunOrder) -> list[Finding]:
    """Return the rules that `unit` breaks in the present state; none when it is dead or hidden."""
    if not unit.live or unit.hidden:
        return []
    found = [
        (ConflictKind.MISSING_TARGET, _missing_targets(unit)),
        (ConflictKind.BOTH_CHANGED, _rivals(unit)),
        (ConflictKind.SURROUNDINGS_GONE, _lost_surroundings(unit)),
        (ConflictKind.TEXT_RETURNED, _returned(unit, order)),
    ]
    return [(kind, frozenset(needs)) for kind, needs in found if needs]


def described(unit: Unit, finding: Finding, order: RunOrder) -> WeaveConflict:
    """Return `finding` of `unit` as a value that can leave the weave."""
    kind, needs = finding
    place = (unit.inserted or unit.deleted)[0]
    return WeaveConflict(
        kind=kind,
        unit=unit.index,
        needs=tuple(sorted(needed.index for needed in needs)),
        line=order.lines_above(place) + 1,
        removed=text_of(run for run in unit.deleted if unit.saw(run)),
        inserted=text_of(unit.inserted),
    )


def _missing_targets(unit: Unit) -> set[Unit]:
    needs: set[Unit] = set()
    for run in unit.deleted:
        author = run.inserter
        if not author.live:
            moved = any(target.live for target in unit.moved.get(author, ()))
            if unit.inserted or moved or any(old.shown for old in author.deleted):
                needs.add(author)
        elif author.undoes is not None and author.hidden:
            origin = author.undoes
            if unit.inserted or any(old.shown for old in origin.deleted):
                needs.add(origin)
    return needs


def _rivals(unit: Unit) -> set[Unit]:
    if not unit.inserted:
        return set()
    return {
        other
        for run in unit.deleted
        if len(run.deleters) > 1
        for other in run.deleters
        if other.live and not other.knew(unit)
    }


def _lost_surroundings(unit: Unit) -> set[Unit]:
    if unit.above is None or unit.below is None:
        return set()
    above, below = set(_reasons_gone(unit, unit.above)), set(_reasons_gone(unit, unit.below))
    return above | below if above and below else set()


def _reasons_gone(unit: Unit, neighbour: Run) -> Iterator[Unit]:
    """Yield the units to blame when `neighbour` is gone for a reason that `unit` didn't know."""
    author = neighbour.inserter
    if not author.live:
        yield author
    elif author.undoes is not None and author.hidden:
        yield author.undoes
    else:
        for other in neighbour.deleters:
            if other.live and not other.knew(unit) and other.saw(neighbour):
                yield other


def _returned(unit: Unit, order: RunOrder) -> set[Unit]:
    if not unit.watches:
        return set()
    needs: set[Unit] = set()
    for run in order.shown(*unit.region):
        author = run.inserter
        if author is unit or author.knew(unit):
            continue
        hid = {other for other in run.deleters if not other.live and other.since < unit.since and unit.knew(other)}
        needs |= hid or {author}
    return needs
