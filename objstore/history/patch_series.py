"""The series: chosen edits one after another on top of everything else that is live, as a chain of file states.

The text of a file is a function of its live edits, so the chosen ones are first taken away, and then put back one by
one, in order. What each adds is a patch; all of them together lead to the text as it is.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

from objstore.errors import FileTooLarge, SeriesBroken
from objstore.fastclass import value
from objstore.history.document_loader import load_document
from objstore.history.edit_queries import edit
from objstore.model.basic_types import DocumentId, Seq, Status, Unit
from objstore.model.large_file_placeholder import MAX_BLOB, blob_of_text, is_placeholder
from objstore.model.relpath import folders_of
from objstore.model.views import EditView
from objstore.transaction.journal import Journal
from objstore.weave.document import Document, DocumentVersion

__all__ = ["SeriesStep", "StepState", "series"]


@value
class StepState:
    """A file between two steps of a series."""

    path: str
    mode: int  # permission bits
    bytes: bytes


@value
class SeriesStep:
    """What edits of one file do to it when they follow the steps before them."""

    views: tuple[EditView, ...]  # more than one where the first can't stand without the others
    before: StepState | None  # None: no file
    after: StepState | None  # as before where the edits change nothing, beside all else that is live


def series(journal: Journal, seqs: Sequence[Seq]) -> Iterator[SeriesStep]:
    """Yield a step for each of the edits that is live, in order.

    Raises NoSuchName, EditExpired, FileTooLarge, HistoryBroken, and SeriesBroken where edits that are not chosen need
    chosen ones.
    """
    views = [edit(journal, seq) for seq in sorted(set(seqs))]
    documents: dict[DocumentId, Document] = {}
    live: dict[Seq, dict[Unit, Status]] = {}
    for view in views:
        view.refuse_if_expired()
        if view.edit.document not in documents:
            documents[view.edit.document] = load_document(journal, view.edit.document)
        live[view.seq] = {
            Unit(view.seq, hunk): status for hunk, status in enumerate(view.units) if status is not Status.REJECTED
        }
    for number, document in documents.items():
        chosen = [unit for view in views if view.edit.document == number for unit in live[view.seq]]
        document.set_statuses(dict.fromkeys(chosen, Status.REJECTED))
        for conflict in document.conflicts():
            raise SeriesBroken(conflict.unit.seq, tuple(sorted({unit.seq for unit in conflict.needs})))
    _refuse_taken(journal, documents, views)
    waiting: dict[DocumentId, list[EditView]] = {number: [] for number in documents}
    stood = {number: _state(journal, document.standing()) for number, document in documents.items()}
    for done, view in enumerate(views):
        journal.progress("edits", done, len(views))
        if not any(unit.hunk or view.whole for unit in live[view.seq]):
            continue
        number = view.edit.document
        document = documents[number]
        document.set_statuses(live[view.seq])
        waiting[number].append(view)
        if document.conflicts():
            continue
        now = _state(journal, document.standing())
        yield SeriesStep(views=tuple(waiting[number]), before=stood[number], after=now)
        waiting[number], stood[number] = [], now


def _refuse_taken(journal: Journal, documents: Mapping[DocumentId, Document], views: Sequence[EditView]) -> None:
    """Raise SeriesBroken where a file without the chosen edits stands where another does, or a folder for one."""
    standing = {number: document.standing() for number, document in documents.items()}
    for number, stands in standing.items():
        if stands.content is None:
            continue
        folders = folders_of(stands.path)
        tips = journal.store.index.documents.tips_in_the_way(stands.path, folders)
        others = [load_document(journal, tip.document) for tip in tips if tip.document not in documents]
        others += [
            documents[other]
            for other, beside in standing.items()
            if other != number and beside.content is not None and beside.path in (*folders, stands.path)
        ]
        for other in others:
            writer = other.path_writer()
            needs = tuple(view.seq for view in views if view.edit.document in (number, other.id))
            raise SeriesBroken(int(other.id) if writer is None else writer.seq, needs)


def _state(journal: Journal, standing: DocumentVersion) -> StepState | None:
    if standing.content is None:
        return None
    if is_placeholder(standing.content):
        blob = blob_of_text(standing.content)
        raise FileTooLarge(os.fsdecode(standing.path), journal.store.size(blob), MAX_BLOB)
    return StepState(path=os.fsdecode(standing.path), mode=standing.mode, bytes=standing.content)
