"""Query the recorded edits that wrote conflict markers: which are still in a file, and what they set aside.

`marker_files` writes them. A later decision on any unit of the decision that wrote markers removes the markers again,
and restores the statuses of the units that were set aside for them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from objstore.disk.fs.file_state import file_at
from objstore.model.basic_types import DocumentId, FileState, Seq, Status, Unit
from objstore.model.records import Edit
from objstore.text.forms import lines_of, shown_lines
from objstore.values.errors import BlobDamaged, BlobMissing, PathError
from objstore.values.request_errors import NoSuchName
from objstore.weave.conflict_markers import labels_in, regions_in

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from objstore.model.status_report import UnresolvedMarkers
    from objstore.storage.index.rows import EditRow
    from objstore.storage.store.object_store import Store
    from objstore.storage.transaction.journal import Journal
    from objstore.text.hunks import Hunk

__all__ = [
    "marker_edit_around",
    "markers_removed_by",
    "markers_removed_by_step_back",
    "markers_still_in_file",
    "recorded_edit",
    "units_set_aside",
    "written_by",
]


def markers_removed_by(
    journal: Journal, document: DocumentId, verdicts: Collection[Unit]
) -> tuple[list[Seq], dict[Unit, Status]]:
    """Return the marker edits in the document that a decision on `verdicts` removes, and the statuses it restores.

    Units named in `verdicts` are not restored.
    """
    gone: list[Seq] = []
    back: dict[Unit, Status] = {}
    for row in journal.store.index.history.marked(document):
        marks = recorded_edit(journal, row.seq).marks
        if not row.status.is_live or marks is None:
            continue
        between = {*marks.against, *(unit for unit, _ in marks.aside)}
        if not between.isdisjoint(verdicts):
            gone.append(row.seq)
            back |= {unit: status for unit, status in marks.aside if unit not in verdicts}
    return gone, back


def units_set_aside(journal: Journal) -> set[Unit]:
    """Return the units set aside for markers that are still in a file: they are rejected, but not yet decided on."""
    found: set[Unit] = set()
    for row in journal.store.index.edits.with_markers():
        marks = recorded_edit(journal, row.seq).marks
        if row.status.is_live and marks is not None:
            found.update(unit for unit, _ in marks.aside)
    return found


def markers_removed_by_step_back(
    journal: Journal, document: DocumentId, verdicts: Mapping[Unit, Status]
) -> tuple[list[Seq], dict[Unit, Status]]:
    """Return the same for an undo or redo: the markers that `verdicts` itself rejects; no status is restored."""
    gone: list[Seq] = []
    for row in journal.store.index.history.marked(document):
        left = [verdicts.get(Unit(row.seq, hunk), status) for hunk, status in enumerate(row.units)]
        if any(status.is_live for status in row.units) and not any(status.is_live for status in left):
            gone.append(row.seq)
    return gone, {}


def markers_still_in_file(journal: Journal, row: EditRow) -> UnresolvedMarkers | None:
    """Return the markers that an edit wrote, as far as they are still in its file (None: none are)."""
    edit = recorded_edit(journal, row.seq)
    tip = journal.store.index.documents.tip(edit.document)
    if edit.marks is None or edit.after is None or tip.state is None:
        return None
    try:
        found = file_at(journal.tree, tip.path)
        openings, closings = _labels(journal.store, edit, edit.after)
    except (PathError, BlobMissing, BlobDamaged):
        return None  # `status` reports unreadable files, and `fsck` what the store has lost
    places = [] if found is None else regions_in(shown_lines(found[1].content), openings, closings)
    if not places:
        return None
    from objstore.model.status_report import UnresolvedMarkers  # few files have any, and each decision loads this

    return UnresolvedMarkers(
        edit=edit.seq,
        decision=edit.marks.decision,
        path=os.fsdecode(tip.path),
        lines=tuple(place.start + 1 for place in places),
        decided=edit.marks.against,
        aside=tuple(unit for unit, _ in edit.marks.aside),
    )


def marker_edit_around(store: Store, document: DocumentId, before: bytes, hunks: Collection[Hunk]) -> Seq | None:
    """Return the edit between whose markers all of a change is (None: it changes other lines too, or no markers).

    `before` is the text in whose lines `hunks` count.
    """
    for row in store.index.history.marked(document):
        edit, _ = store.record(row.place)
        if not row.status.is_live or not isinstance(edit, Edit) or edit.after is None:
            continue
        places = regions_in(before, *_labels(store, edit, edit.after))
        if hunks and all(any(_is_inside(hunk, place) for place in places) for hunk in hunks):
            return edit.seq
    return None


def _labels(store: Store, edit: Edit, after: FileState) -> tuple[list[bytes], list[bytes]]:
    return labels_in(lines_of(store.blob(after.blob), edit.forms[1]), edit.hunks)


def _is_inside(hunk: Hunk, place: range) -> bool:
    first = hunk.old_start if hunk.old_count else hunk.old_start - 1  # an insertion directly above is not inside
    return place.start <= first and hunk.old_end <= place.stop and hunk.old_start < place.stop


def written_by(journal: Journal, decision: int) -> list[Unit]:
    """Return the live units of the edits that wrote the markers of a decision."""
    found = []
    for row in journal.store.index.edits.with_markers():
        marks = recorded_edit(journal, row.seq).marks
        if marks is not None and marks.decision == decision:
            found += [Unit(row.seq, hunk) for hunk, is_now in enumerate(row.units) if is_now.is_live]
    return found


def recorded_edit(journal: Journal, seq: int) -> Edit:
    """Return the edit with that number. Raises NoSuchName."""
    row = journal.store.index.edits.get(seq)
    if row is None:
        raise NoSuchName(str(seq), "edit")
    record, _ = journal.store.record(row.place)
    if not isinstance(record, Edit):
        raise NoSuchName(str(seq), "edit")
    return record
