"""Find the live unit that makes the same change as a dead one.

An agent may make an edit again that was rejected. If both were live, their lines would be in the text twice, or each
would replace the same line. So where an undo would make one live though the other is, it can stay dead: the text is the
same. Two changes are the same if they delete the same runs and insert equal lines in the same place, and the later one
was recorded while the earlier one was dead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from objstore.weave.runs import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.weave.runs import WeaveUnit

__all__ = ["with_same_change"]


def with_same_change(unit: WeaveUnit, creators: Iterable[WeaveUnit]) -> WeaveUnit | None:
    """Return the newest live and shown unit that makes the same change as dead `unit`; None if there is none.

    `creators`: the units that created the file, at any time. A whole-file part that changes no line has none.
    """
    return max(filter(lambda other: _is_same(other, unit), _candidates(unit, creators)), key=_index, default=None)


def _candidates(unit: WeaveUnit, creators: Iterable[WeaveUnit]) -> Iterable[WeaveUnit]:
    if unit.deleted:
        return unit.deleted[0].live_deleters
    neighbour = unit.above or unit.below
    if neighbour is not None:
        return neighbour.anchored
    return creators if unit.inserted else ()


def _is_same(other: WeaveUnit, unit: WeaveUnit) -> bool:
    earlier, later = sorted((unit, other), key=_index)
    return (
        other.live
        and not other.hidden
        and earlier.since != later.since
        and not later.knew(earlier)
        and other.deleted == unit.deleted
        and (other.above, other.below) == (unit.above, unit.below)
        and _bounds(other) == _bounds(unit)
        and text_of(other.inserted) == text_of(unit.inserted)
        and _ending(other) == _ending(unit)
    )


def _bounds(unit: WeaveUnit) -> int:
    return sum(not run.lines for run in unit.inserted)


def _ending(unit: WeaveUnit) -> bool | None:
    return unit.ending[1] if unit.sets_final_newline else None


def _index(unit: WeaveUnit) -> int:
    return unit.index
