"""Show what awaits review as net changes: how each file's accepted text differs from its current text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from objstore.fastclass import replace
from objstore.history.document_loader import load_document
from objstore.model.basic_types import Operation
from objstore.model.large_file_placeholder import blob_of_placeholder, is_placeholder
from objstore.model.net_file import ChangeKind, NetChange, NetFile
from objstore.review.status import external_changes
from objstore.weave.accepted_text import net_document

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from objstore.model.basic_types import DocumentId, Unit
    from objstore.store.object_store import Store
    from objstore.transaction.journal import Journal
    from objstore.weave.accepted_text import DocumentChange

__all__ = ["net_files"]

_OPERATIONS = {
    ChangeKind.CREATE: Operation.CREATE,
    ChangeKind.DELETE: Operation.DELETE,
    ChangeKind.MOVE: Operation.MOVE,
}


def net_files(journal: Journal, paths: Collection[str] = (), units: Collection[Unit] | None = None) -> list[NetFile]:
    """Return the files with pending units, by path, each with its net changes.

    `paths`: only files at or below these, now or in their accepted state; (): all. `units`: only changes that have any
    of these, and those that are decided with them; None: all. Raises HistoryBroken and what Store.text raises.
    """
    unrecorded = {change.document for change in external_changes(journal)}
    with journal.reading() as store:
        documents = store.index.edits.pending_documents()
        if units is not None:
            wanted = {store.index.edits.document_of(seq) for seq in {unit.seq for unit in units}}
            documents = [document for document in documents if document in wanted]
        if paths:
            held = _documents_at(store, paths)
            documents = [document for document in documents if document in held]
        found = [_net_file(journal, document, is_unrecorded=document in unrecorded) for document in documents]
    if paths:
        found = [file for file in found if _is_covered(paths, file.path) or _is_covered(paths, file.path_before)]
    if units is not None:
        found = [file for each in found if (file := _with_units(each, frozenset(units))) is not None]
    return sorted(found, key=lambda file: (file.path, file.document))


def _documents_at(store: Store, paths: Collection[str]) -> set[DocumentId]:
    """Return the documents that were ever at one of the paths, or below it."""
    found: set[DocumentId] = set()
    for path in paths:
        name = b"" if path == "." else os.fsencode(path)
        below = store.index.documents.paths_below(name)
        found.update(
            document for each in ([name] if name else []) + below for document in store.index.documents.at(each)
        )
    return found


def _is_covered(paths: Collection[str], path: str) -> bool:
    return any(wanted in {".", path} or path.startswith(f"{wanted}/") for wanted in paths)


def _net_file(journal: Journal, document: DocumentId, *, is_unrecorded: bool) -> NetFile:
    net = net_document(load_document(journal, document))
    before, after = net.accepted, net.current
    path = os.fsdecode(after.path)
    kinds = [change.kind for change in net.changes]
    return NetFile(
        path=path,
        path_before=os.fsdecode(before.path),
        document=document,
        operation=next((_OPERATIONS[kind] for kind in kinds if kind in _OPERATIONS), Operation.EDIT),
        mode_before=0 if before.content is None else before.mode,
        mode=0 if after.content is None else after.mode,
        before=before.content,
        after=after.content,
        changes=_related([_net_change(change, path, document) for change in net.changes]),
        cancelled=net.cancelled,
        kept_on=net.kept_on,
        is_binary=net.is_binary,
        size_before=_size(journal, before.content),
        size=_size(journal, after.content),
        is_unrecorded=is_unrecorded,
    )


def _net_change(change: DocumentChange, path: str, document: DocumentId) -> NetChange:
    return NetChange(
        path=path,
        document=document,
        kind=change.kind,
        line_before=0 if change.hunk is None else change.hunk.old_start + 1,
        line_after=0 if change.hunk is None else change.hunk.new_start + 1,
        removed=change.removed,
        inserted=change.inserted,
        units=tuple(sorted(change.units)),
    )


def _related(changes: Sequence[NetChange]) -> tuple[NetChange, ...]:
    """Return the changes, each with the positions of those that are decided with it."""
    groups: list[tuple[set[Unit], list[int]]] = []
    for at, change in enumerate(changes):
        units, places = set(change.units), [at]
        for group in [group for group in groups if not group[0].isdisjoint(units)]:
            groups.remove(group)
            units, places = units | group[0], group[1] + places
        groups.append((units, places))
    shared = {at: tuple(sorted(places)) for _, places in groups for at in places}
    return tuple(
        replace(change, shares_with=tuple(other for other in shared[at] if other != at))
        for at, change in enumerate(changes)
    )


def _with_units(file: NetFile, units: frozenset[Unit]) -> NetFile | None:
    """Return the file with only the changes that any of these units is part of; None: there are none."""
    touched = {at for at, change in enumerate(file.changes) if not units.isdisjoint(change.units)}
    touched.update(other for at in list(touched) for other in file.changes[at].shares_with)
    cancelled = tuple(unit for unit in file.cancelled if unit in units)
    kept_on = tuple(unit for unit in file.kept_on if unit in units)
    if not touched and not cancelled and not kept_on:
        return None
    changes = _related([file.changes[at] for at in sorted(touched)])
    return replace(file, changes=changes, cancelled=cancelled, kept_on=kept_on)


def _size(journal: Journal, text: bytes | None) -> int:
    if text is None:
        return 0
    return journal.store.size(blob_of_placeholder(text)) if is_placeholder(text) else len(text)
