"""Find the units that a decision leaves as they are, although it names them.

An undo or redo leaves a unit rejected where a live one makes the same change: else its lines would be there twice. And
an accept leaves a unit pending that has no effect in the file any more, because accepted changes took it out: an
accept covers only what a person can see.
"""

import os
from collections.abc import Iterable, Mapping

from objstore.history.edit_queries import edit
from objstore.model.basic_types import Origin, Status, Unit
from objstore.model.records import Edit
from objstore.request_errors import EditTakenOut
from objstore.transaction.journal import Journal
from objstore.weave.document import Document

__all__ = ["refusal_of_taken_out", "without_left_units"]


def without_left_units(
    document: Document, verdicts: Mapping[Unit, Status], *, is_new: bool
) -> tuple[dict[Unit, Status], dict[Unit, Unit]]:
    """Return the verdicts to apply, and the units that are left, each with the unit because of which it is.

    An undo or redo (`is_new` is false) states all its verdicts, so it states that these stay rejected.
    """
    if is_new:
        accepted, rejected = (
            [unit for unit, given in verdicts.items() if given is status]
            for status in (Status.ACCEPTED, Status.REJECTED)
        )
        left = document.taken_out(accepted, rejected)
        return {unit: status for unit, status in verdicts.items() if unit not in left}, left
    left = document.repeated(verdicts)
    return {**verdicts, **dict.fromkeys(left, Status.REJECTED)}, left


def refusal_of_taken_out(
    journal: Journal, document: Document, left: Mapping[Unit, Unit], found: Iterable[Edit]
) -> EditTakenOut:
    """Return the error that nothing is left to accept. `found`: edits that are not recorded yet."""
    origins = {each.seq: each.origin for each in found}
    takers = {origins.get(unit.seq) or edit(journal, unit.seq).edit.origin for unit in left.values()}
    # The whole-file part of an edit is not named where its hunks are.
    named = [unit for unit in sorted(left) if unit.hunk or Unit(unit.seq, 1) not in left]
    path = os.fsdecode(document.version().path)
    return EditTakenOut(
        list(map(str, named)),
        path,
        by_person=takers <= {Origin.EXTERNAL, Origin.PERSON},
        is_recorded=not origins,
    )
