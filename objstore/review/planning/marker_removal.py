"""Remove the conflict markers that a decision is about from a document, before the decision is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from objstore.history.documents.marked_text import markers_removed_by, markers_removed_by_step_back
from objstore.model.basic_types import Status
from objstore.values.fastclass import value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from objstore.model.basic_types import Seq, Unit
    from objstore.storage.transaction.journal import Journal
    from objstore.weave.document import Document

__all__ = ["WithoutMarkers", "without_markers"]


@value
class WithoutMarkers:
    """The rest of a decision on one document, after the markers that it is about are removed."""

    verdicts: Mapping[Unit, Status]  # those that were named, and those of the amendments that go with them
    unmarked: Sequence[Seq]  # edits whose markers are removed
    returned: Sequence[Unit]  # their units, and those that were set aside and have their old status again
    amendments: Sequence[Unit]  # units rejected together with the markers, or with the named ones


def without_markers(
    journal: Journal, loaded: Document, named: Mapping[Unit, Status], *, before: Seq, is_new: bool
) -> WithoutMarkers:
    """Remove the markers that the verdicts are about from a document, and return the rest of the decision.

    This comes first, so that the decision is computed for the text without markers. `before`: for an undo or redo, the
    newest edit before the decision that it takes back; 0: none. `is_new`: the decision is no undo or redo.
    """
    find_markers = markers_removed_by if is_new else markers_removed_by_step_back
    gone, back = find_markers(journal, loaded.id, named)
    wrote = [unit for seq in gone for unit in loaded.units(seq)]
    rejected = dict.fromkeys((unit for unit in wrote if unit not in named), Status.REJECTED)
    resolved = loaded.amendments(rejected)
    back = {unit: status for unit, status in back.items() if loaded.knows(unit)}
    loaded.set_statuses(back | rejected | dict.fromkeys(resolved, Status.REJECTED))
    # Amendments from before the decision that is taken back keep their status, whatever happens to their edit.
    amendments = loaded.amendments(named, before)
    return WithoutMarkers(
        verdicts={**named, **dict.fromkeys(amendments, Status.REJECTED)},
        unmarked=gone,
        returned=[*wrote, *back],
        amendments=[*resolved, *amendments],
    )
