"""Place new text among runs of which many are hidden, and find the hunks next to a hunk.

Two hunks adjoin if no shown line is between what they inserted or deleted, except lines of their own. Hunks of which
one is built on the other are layers, not neighbours, and an edit's whole-file part adjoins nothing.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from objstore.weave.reinsertion import link_reinsertion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from objstore.weave.run_list import RunList
    from objstore.weave.runs import Run, WeaveUnit

__all__ = ["adjoining", "insert", "slot", "watch_enclosing_regions"]

_LAYERS: Final = 64
"""Hidden runs examined on each side; deeper ones were rewritten many times since and count as no one's neighbours."""


def insert(order: RunList, unit: WeaveUnit, line: int, text: bytes) -> None:
    """Insert `text` between two shown lines: after what replaced the upper one, before the slot of the lower one."""
    above, below = order.gap_at(line)
    left, right = _beyond(order, above, below), slot(order, below, above)
    first = order.first() if left is None else order.next(left)
    last = order.last() if right is None else order.previous(right)
    if first is not None and last is not None and order.distance(first, last) >= 0:
        unit.gap = first, last
        order.watch(unit)
    run = unit.new_run(text)
    if right is None:
        order.append(run)
    else:
        order.insert_before(right, run)
    unit.above, unit.below = above, below
    for neighbour in (above, below):
        if neighbour is not None:
            neighbour.anchored += (unit,)
    link_reinsertion(unit, order)
    watch_enclosing_regions(order, unit)


def watch_enclosing_regions(order: RunList, unit: WeaveUnit) -> None:
    """Make units watch their regions from now on if `unit` inserted text between lines that they delete."""
    if not unit.inserted:
        return
    above = unit.deleted[-1] if unit.deleted else order.previous(unit.inserted[0])
    below = order.next(unit.inserted[-1])
    if above is not None and below is not None and above.deleters and below.deleters:
        for other in set(above.deleters) & set(below.deleters):
            if not other.watches:
                order.watch(other)
    if unit.deleted:
        removed = unit.deleted[-1]
        for other in removed.block.watchers:
            if other.gap is not None and other.gap[1] is removed:
                other.gap = other.gap[0], unit.inserted[-1]
                order.watch(other)


def slot(order: RunList, below: Run | None, above: Run | None) -> Run | None:
    """Return the first of the runs that `below` replaced or reinserted, and so on down, but none from `above` up."""
    run = below
    while run is not None:
        author, first = run.inserter, run.original
        if author.deleted and author.inserted[0] is run:
            first = author.deleted[0]
        if first is None or (above is not None and not order.precedes(above, first)):
            break
        run = first
    return run


def adjoining(unit: WeaveUnit, order: RunList) -> set[WeaveUnit]:
    """Return the hunks that adjoin `unit`."""
    if _is_whole(unit) or not (unit.deleted or unit.inserted):
        return set()
    first = (unit.deleted or unit.inserted)[0]
    last = (unit.inserted or unit.deleted)[-1]
    runs = [*_up_to_a_shown_one(order.above(first)), *_up_to_a_shown_one(order.below(last))]
    others = {other for run in runs for other in (run.inserter, *run.deleters)} - {unit}
    return {other for other in others if not (_is_whole(other) or _builds_on(unit, other) or _builds_on(other, unit))}


def _up_to_a_shown_one(runs: Iterable[Run]) -> Iterator[Run]:
    for run in islice(runs, _LAYERS):
        yield run
        if run.shown and run.lines:
            return


def _is_whole(unit: WeaveUnit) -> bool:
    return unit.index == unit.since


def _builds_on(upper: WeaveUnit, lower: WeaveUnit) -> bool:
    """Return whether `upper` changed text of `lower` or is inside it, directly or through others."""
    if upper.since <= lower.since:
        return False
    pending, seen = [upper], {upper}
    while pending:
        unit = pending.pop()
        authors = {run.inserter for run in unit.deleted}
        if unit.above is not None and unit.below is not None and unit.above.inserter is unit.below.inserter:
            authors.add(unit.above.inserter)
        if lower in authors:
            return True
        older = [author for author in authors if author.since > lower.since and author not in seen]
        seen.update(older)
        pending += older
    return False


# ---- inside


def _beyond(order: RunList, above: Run | None, below: Run | None) -> Run | None:
    """Return the last of the runs that replaced `above`, each the one before: copies, or text of dead units."""
    run = above
    while run is not None:
        replacements = [
            unit.inserted[-1] for unit in run.deleters if unit.inserted and not unit.live and unit.deleted[-1] is run
        ]
        further = run
        for other in (*replacements, *run.copies):
            if (below is None or order.precedes(other, below)) and order.precedes(further, other):
                further = other
        if further is run:
            break
        run = further
    return run
