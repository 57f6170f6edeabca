"""Cascade: what else has to go so that a decision stands without conflict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from objstore.weave import BASE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from objstore.weave import UnitIndex, Weave, WeaveConflict

__all__ = ["Cascade", "cascade"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """What a decision led to. Either it was taken, or `blocked` says why it can't be."""

    rejected: tuple[UnitIndex, ...]  # units that had to go besides, in the order in which they went
    accept_first: tuple[UnitIndex, ...]  # dead units that must be accepted before, ascending
    blocked: tuple[WeaveConflict, ...]  # conflicts that rejecting others doesn't solve; () when taken


def cascade(weave: Weave, changes: Mapping[UnitIndex, bool]) -> Cascade:
    """Make `changes`, then reject the latest unit in conflict until there is none.

    Units that `changes` accepts are not rejected again: live units that they exclude go instead. When they
    need units that are dead, or exclude each other or the base, nothing is changed.
    """
    wanted = {unit for unit, live in changes.items() if live}
    undo = {unit: weave.is_live(unit) for unit in changes}
    rejected: list[UnitIndex] = []
    conflicts = weave.set_live(changes)
    while conflicts:
        failing = {conflict.unit for conflict in conflicts} - wanted
        needed = {unit for conflict in conflicts for unit in conflict.needs}
        dead = {unit for unit in needed if not weave.is_live(unit)}
        going = failing or (set() if dead else needed - wanted - {BASE})
        if not going:
            weave.set_live(undo | dict.fromkeys(rejected, True))
            first = tuple(sorted(dead - wanted - set(rejected)))
            return Cascade(rejected=(), accept_first=first, blocked=conflicts)
        latest = max(going)
        rejected.append(latest)
        conflicts = weave.set_live({latest: False})
    return Cascade(rejected=tuple(rejected), accept_first=(), blocked=())
