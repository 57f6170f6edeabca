"""Find documents that a decision would put at the path of another file, or of a folder of one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from objstore.model.basic_types import ConflictKind, DocumentId, Seq, Unit
from objstore.model.relpath import folders_of
from objstore.model.results import Conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from objstore.storage.index.log_index import Index
    from objstore.weave.document import Document

__all__ = ["find_path_conflicts", "path_of"]


def path_of(loaded: Document) -> bytes | None:
    """Return the path of a document under its present statuses; None: it has no file."""
    version = loaded.version()
    return None if version.content is None else version.path


def find_path_conflicts(
    index: Index,
    load: Callable[[DocumentId], Document],
    paths: Mapping[DocumentId, bytes | None],
    decided: Collection[Unit],
) -> list[Conflict]:
    """Return a conflict for each document whose path is that of another file, or of a folder of one.

    `load`: returns a document with the statuses after the decision. `paths`: their paths then. `decided`: the units of
    the decision. Of the two documents, the one without such units is in the way.
    """
    at_path: dict[bytes, DocumentId] = {}
    inside: dict[bytes, list[DocumentId]] = {}  # by folder
    found = []
    for document, path in paths.items():
        if path is None:
            continue
        folders = folders_of(path)
        in_the_way = index.documents.tips_in_the_way(path, folders)
        others = [tip.document for tip in in_the_way if tip.document not in paths]
        others += [at_path[each] for each in (*folders, path) if each in at_path]
        others += inside.get(path, [])
        at_path[path] = document
        for folder in folders:
            inside.setdefault(folder, []).append(document)
        found += [_path_conflict(load, document, other, decided) for other in others]
    return found


def _path_conflict(
    load: Callable[[DocumentId], Document], document: DocumentId, other: DocumentId, decided: Collection[Unit]
) -> Conflict:
    gone = _rejected_unit_restoring_path(load(document), decided)
    if gone is None:
        gone = _rejected_unit_restoring_path(load(other), decided)
        # Report the document that is restored; the one at its path is in the way, whichever was named first.
        document, other = (document, other) if gone is None else (other, document)
    loaded = load(document)
    unit = loaded.path_writer() or gone or Unit(Seq(document), 0)
    needs = load(other).path_writer() or Unit(Seq(other), 0)
    if needs in decided and unit not in decided:
        unit, needs = needs, unit
    return Conflict(
        kind=ConflictKind.PATH_TAKEN,
        unit=unit,
        needs=(needs,),
        path=os.fsdecode(loaded.version().path),
        line=0,
        removed=b"",
        inserted=b"",
        is_without=unit == gone,
    )


def _rejected_unit_restoring_path(loaded: Document, decided: Collection[Unit]) -> Unit | None:
    """Return the rejected unit of a document whose rejection restores the path that it began with.

    None: a live edit gave it its path, or the decision rejects no such unit of it.
    """
    if loaded.path_writer() is not None:
        return None
    return min((unit for unit in decided if not unit.hunk and loaded.is_rejected(unit)), default=None)
