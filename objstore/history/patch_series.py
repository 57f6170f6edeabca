"""Compute chosen edits as a series of patches on top of all other live edits.

The text of a file is a function of its live edits, so the chosen ones are first rejected and then restored one by one,
in order. What each adds is a patch; all patches together lead to the present text. Files don't depend on each other, so
each is done before the next one is loaded.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from objstore.history.documents.loader import load_document
from objstore.history.edit_queries import edit, edits_numbered
from objstore.model.basic_types import DocumentId, Seq, Status, Unit
from objstore.model.large_file_placeholder import MAX_BLOB, blob_of_text, is_placeholder
from objstore.model.relpath import folders_of
from objstore.model.views import EditView
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import FileTooLarge
from objstore.values.fastclass import value
from objstore.values.request_errors import NoSuchName, SeriesBroken
from objstore.weave.document import Document, DocumentVersion

__all__ = ["SeriesStep", "StepState", "by_edit", "series"]

_EDITS_AT_ONCE: Final = 1_000
"""Edits of which the documents are asked for at once."""


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
    """Yield a step for each of the edits that is live: file by file, so that one file at a time is in memory.

    The steps of one file are in order, and `by_edit` is the order of all of them. Raises NoSuchName, EditExpired,
    FileTooLarge and HistoryBroken, and SeriesBroken if other edits need chosen ones: at the latest after the last step.
    """
    by_document = _by_document(journal, sorted(set(seqs)))
    left: dict[DocumentId, _Left] = {}
    done = 0
    for number, chosen in by_document.items():
        document = load_document(journal, number)
        views = edits_numbered(journal, chosen)
        live = [_live(view) for view in views]
        document.set_statuses({unit: Status.REJECTED for units in live for unit in units})
        for conflict in document.conflicts():
            raise SeriesBroken(conflict.unit.seq, tuple(sorted({unit.seq for unit in conflict.needs})))
        left[number] = _left(document)
        waiting: list[EditView] = []
        before = _state(journal, document.version())
        for view, units in zip(views, live, strict=True):
            journal.progress("edits", done, len(seqs))
            done += 1
            if not any(unit.hunk or view.whole for unit in units):
                continue
            document.set_statuses(units)
            waiting.append(view)
            if document.conflicts():
                continue
            after = _state(journal, document.version())
            yield SeriesStep(views=tuple(waiting), before=before, after=after)
            waiting, before = [], after
        journal.store.forget()  # no other file needs these texts
    _refuse_taken(journal, left, by_document)


def by_edit(step: SeriesStep) -> Seq:
    """Return what a step is sorted by in its series: its first edit."""
    return step.views[0].seq


def _by_document(journal: Journal, seqs: Sequence[Seq]) -> dict[DocumentId, list[Seq]]:
    """Return the edits of each document. Raises NoSuchName and EditExpired."""
    found: dict[DocumentId, list[Seq]] = {}
    for at in range(0, len(seqs), _EDITS_AT_ONCE):
        some = seqs[at : at + _EDITS_AT_ONCE]
        documents = journal.store.index.edits.documents_of(some)
        for seq in some:
            if seq not in documents:
                edit(journal, seq).refuse_if_expired()
                raise NoSuchName(str(seq), "edit")
            found.setdefault(documents[seq], []).append(seq)
    return found


@value
class _Left:
    """What is left of a file without the chosen edits."""

    path: bytes | None  # None: no file
    writer: Seq | None  # the edit that gave it its path; None: it had it before its first one


def _live(view: EditView) -> dict[Unit, Status]:
    view.refuse_if_expired()
    return {Unit(view.seq, hunk): status for hunk, status in enumerate(view.units) if status.is_live}


def _left(document: Document) -> _Left:
    version, writer = document.version(), document.path_writer()
    return _Left(path=None if version.content is None else version.path, writer=None if writer is None else writer.seq)


def _refuse_taken(
    journal: Journal, left: Mapping[DocumentId, _Left], chosen: Mapping[DocumentId, Sequence[Seq]]
) -> None:
    """Raise SeriesBroken if a file without the chosen edits has the path of another, or a folder in place of one."""
    holders: dict[bytes, list[DocumentId]] = {}
    for number, file in left.items():
        if file.path is not None:
            holders.setdefault(file.path, []).append(number)
    for number, file in left.items():
        if file.path is None:
            continue
        folders = folders_of(file.path)
        tips = journal.store.index.documents.tips_in_the_way(file.path, folders)
        others = {tip.document: _left(load_document(journal, tip.document)) for tip in tips if tip.document not in left}
        for path in (*folders, file.path):
            others |= {holder: left[holder] for holder in holders.get(path, ()) if holder != number}
        for other, taken in others.items():
            needs = sorted([*chosen[number], *chosen.get(other, ())])
            raise SeriesBroken(int(other) if taken.writer is None else taken.writer, tuple(needs))


def _state(journal: Journal, version: DocumentVersion) -> StepState | None:
    if version.content is None:
        return None
    if is_placeholder(version.content):
        blob = blob_of_text(version.content)
        raise FileTooLarge(os.fsdecode(version.path), journal.store.size(blob), MAX_BLOB)
    return StepState(path=os.fsdecode(version.path), mode=version.mode, bytes=version.content)
