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
    accept_first: tuple[UnitIndex, ...]  # dead units that would have to be accepted with it, ascending
    blocked: tuple[WeaveConflict, ...]  # conflicts that rejecting others doesn't solve; () when taken


def cascade(weave: Weave, changes: Mapping[UnitIndex, bool]) -> Cascade:
    """Make `changes`, then reject the latest unit in conflict until there is none.

    Units that `changes` accepts are not rejected again: live units that they exclude go instead. When they
    need units that are dead, nothing is changed, and the result names these and what they need in turn.
    When they exclude each other, or the base, or need what `changes` rejects, it names none.
    """
    kept = {unit for unit, live in changes.items() if live}
    changed = {unit: weave.is_live(unit) for unit in changes}
    rejected: list[UnitIndex] = []
    missing: set[UnitIndex] = set()
    blocked: tuple[WeaveConflict, ...] = ()
    weave.flip(changes)
    while failing := weave.failing():
        going = failing.keys() - kept
        if not going:
            needed = {unit for needs in failing.values() for unit in needs} - changed.keys() - kept - {BASE}
            dead = {unit for unit in needed if not weave.is_live(unit)}
            if dead or not needed:
                blocked = blocked or weave.conflicts()
            if not needed:
                missing.clear()
                break
            if dead:
                changed |= dict.fromkeys(dead, False)
                missing |= dead
                kept |= dead
                weave.flip(dict.fromkeys(dead, True))
                continue
            going = needed
        latest = max(going)
        changed.setdefault(latest, True)
        rejected.append(latest)
        weave.flip({latest: False})
    if blocked:
        weave.flip(changed)
        return Cascade(rejected=(), accept_first=tuple(sorted(missing)), blocked=blocked)
    return Cascade(rejected=tuple(rejected), accept_first=(), blocked=())
