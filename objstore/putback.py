"""Put back: which units bring text back that others took out, and what that links them with.

An edit that restores exactly what another one removed stands back while that other is dead; and where one edit both
takes lines out and puts them in again elsewhere, that is a move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from objstore.runs import BASE, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from objstore.runorder import RunOrder
    from objstore.runs import Run, Unit

__all__ = ["link_undone", "note_moves"]


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
    if not unit.deleted:
        unit.restores = tuple(dict.fromkeys(run.inserter for run in restored))
    for decisive in (other, *unit.restores):
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


def _same_lines(runs: Sequence[Run], others: Sequence[Run]) -> bool:
    bounds = sum(not run.lines for run in runs)
    return bounds == sum(not run.lines for run in others) and text_of(runs) == text_of(others)
