"""Find what a decision takes along: accepted units that a rejection takes back, and what the reviewer was not shown."""

from collections.abc import Mapping

from objstore.model.basic_types import Status, Unit
from objstore.model.results import Decided
from objstore.review.planning.plan import Plan
from objstore.storage.index.rows import EditRow
from objstore.storage.transaction.journal import Journal

__all__ = ["has_visible_effect", "taken_back", "unshown"]


def has_visible_effect(row: EditRow, unit: Unit) -> bool:
    """Return whether a unit has an effect: a whole-file part without one is not shown next to its edit's hunks."""
    return bool(unit.hunk) or row.whole or len(row.units) == 1


def taken_back(journal: Journal, plan: Plan) -> tuple[Unit, ...]:
    """Return the units that are accepted until a rejection, or an undo or redo, rejects them.

    Without what it finds on disk, conflict markers that it removes, what it sets aside between such, and lines that it
    keeps.
    """
    stays = {unit for file in plan.kept.files for unit in file.units}
    stays.update(unit for file in plan.marked.files for unit in file.aside)
    rejected = [
        unit
        for unit, status in plan.verdicts.items()
        if status is Status.REJECTED and unit.seq not in plan.unmarked and unit not in stays
    ]
    rows = journal.store.index.edits.rows({unit.seq for unit in rejected})
    return tuple(
        unit
        for unit in sorted(rejected)
        if (row := rows.get(unit.seq)) is not None
        and row.units[unit.hunk] is Status.ACCEPTED
        and has_visible_effect(row, unit)
    )


def unshown(journal: Journal, shown: Mapping[Unit, Status], planned: Decided) -> tuple[tuple[Unit, Status], ...]:
    """Return what goes along with a planned decision and was not shown, each unit with its status now.

    Without what is set aside between conflict markers and the lines that are kept: these answer a refusal that named
    them. What the decision itself finds on disk is pending.
    """
    stays = {unit for markers in planned.markers for unit in markers.aside}
    stays.update(unit for kept in planned.kept for unit in kept.units)
    taken = planned.taken_back if planned.act is None else ()  # what an undo or redo is about is known
    along = sorted({*planned.cascaded, *taken}.difference(shown, stays))
    rows = journal.store.index.edits.rows({unit.seq for unit in along})
    return tuple(
        (unit, Status.PENDING if (row := rows.get(unit.seq)) is None else row.units[unit.hunk])
        for unit in along
        if unit.seq not in rows or has_visible_effect(rows[unit.seq], unit)
    )
