"""Compute chosen edits as a series of patches on top of all other live edits.

The text of a file is a function of its live edits, so the chosen ones are first rejected and then restored one by one,
in order. What each adds is a patch; all patches together lead to the present text.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

from objstore.documents.loader import load_document
from objstore.errors import FileTooLarge
from objstore.fastclass import value
from objstore.history.edit_queries import edit
from objstore.model.basic_types import DocumentId, Seq, Status, Unit
from objstore.model.large_file_placeholder import MAX_BLOB, blob_of_text, is_placeholder
from objstore.model.relpath import folders_of
from objstore.model.views import EditView
from objstore.request_errors import SeriesBroken
from objstore.transaction.journal import Journal
from objstore.weave.document import Document, DocumentVersion

__all__ = ["SeriesStep", "StepState", "series"]


@value
class StepState:
    """The state of a file between two steps of a series."""

    path: str
    mode: int  # permission bits
    bytes: bytes


@value
class SeriesStep:
    """The change that edits of one file make when they follow the steps before them."""

    views: tuple[EditView, ...]  # more than one if the first can't be live without the others
    before: StepState | None  # None: no file
    after: StepState | None  # equal to `before` if the other live edits make the same change


def series(journal: Journal, seqs: Sequence[Seq]) -> Iterator[SeriesStep]:
    """Yield a step for each of the edits that is live, in order.

    Raises NoSuchName, EditExpired, FileTooLarge and HistoryBroken, and SeriesBroken if other edits need chosen ones.
    """
    views = [edit(journal, seq) for seq in sorted(set(seqs))]
    documents: dict[DocumentId, Document] = {}
    live: dict[Seq, dict[Unit, Status]] = {}
    for view in views:
        view.refuse_if_expired()
        if view.edit.document not in documents:
            documents[view.edit.document] = load_document(journal, view.edit.document)
        live[view.seq] = {Unit(view.seq, hunk): status for hunk, status in enumerate(view.units) if status.is_live}
    for number, document in documents.items():
        chosen = [unit for view in views if view.edit.document == number for unit in live[view.seq]]
        document.set_statuses(dict.fromkeys(chosen, Status.REJECTED))
        for conflict in document.conflicts():
            raise SeriesBroken(conflict.unit.seq, tuple(sorted({unit.seq for unit in conflict.needs})))
    _refuse_taken(journal, documents, views)
    waiting: dict[DocumentId, list[EditView]] = {number: [] for number in documents}
    previous = {number: _state(journal, document.version()) for number, document in documents.items()}
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
        now = _state(journal, document.version())
        yield SeriesStep(views=tuple(waiting[number]), before=previous[number], after=now)
        waiting[number], previous[number] = [], now


def _refuse_taken(journal: Journal, documents: Mapping[DocumentId, Document], views: Sequence[EditView]) -> None:
    """Raise SeriesBroken if a file without the chosen edits has the path of another, or a folder in place of one."""
    versions = {number: document.version() for number, document in documents.items()}
    for number, version in versions.items():
        if version.content is None:
            continue
        folders = folders_of(version.path)
        tips = journal.store.index.documents.tips_in_the_way(version.path, folders)
        others = [load_document(journal, tip.document) for tip in tips if tip.document not in documents]
        others += [
            documents[other]
            for other, other_version in versions.items()
            if other != number and other_version.content is not None and other_version.path in (*folders, version.path)
        ]
        for other in others:
            writer = other.path_writer()
            needs = tuple(view.seq for view in views if view.edit.document in (number, other.id))
            raise SeriesBroken(int(other.id) if writer is None else writer.seq, needs)


def _state(journal: Journal, version: DocumentVersion) -> StepState | None:
    if version.content is None:
        return None
    if is_placeholder(version.content):
        blob = blob_of_text(version.content)
        raise FileTooLarge(os.fsdecode(version.path), journal.store.size(blob), MAX_BLOB)
    return StepState(path=os.fsdecode(version.path), mode=version.mode, bytes=version.content)
