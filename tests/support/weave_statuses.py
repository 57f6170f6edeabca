"""Verdicts: units of a weave made live or dead, with all that is wrong then."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from objstore.weave.line_weave import UnitIndex, Weave, WeaveConflict
    from objstore.weave.runs import WeaveUnit

__all__ = ["set_live", "units_of"]


def set_live(weave: Weave, changes: Mapping[UnitIndex, bool]) -> tuple[WeaveConflict, ...]:
    """Make units live or dead, and return every conflict of the new state; none when it is clean."""
    weave.flip(changes)
    return weave.conflicts()


def units_of(weave: Weave) -> list[WeaveUnit]:
    """Return the units of which anything is known."""
    return [unit for unit in weave._units if unit is not None]  # noqa: SLF001 - not shown otherwise
