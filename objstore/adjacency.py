"""Adjacency: which hunks stand directly beside one another.

Two hunks adjoin when no shown line stands between what they put in or took out, except lines of their own. Hunks of
which one is built on the other are no neighbours but layers, and an edit's whole-file part stands beside nothing.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from objstore.runorder import RunOrder
    from objstore.runs import Run, Unit

__all__ = ["adjoining"]

_LAYERS: Final = 64
"""Hidden runs looked at on either side. What lies deeper was rewritten many times since, and is nobody's neighbour."""


def adjoining(unit: Unit, order: RunOrder) -> set[Unit]:
    """Return the hunks beside `unit`."""
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


def _is_whole(unit: Unit) -> bool:
    return unit.index == unit.since


def _builds_on(upper: Unit, lower: Unit) -> bool:
    """Return whether `upper` changed text of `lower`, or stands inside it, directly or through others."""
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
