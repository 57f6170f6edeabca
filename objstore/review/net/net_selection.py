"""Select files and their net changes by path and by unit."""

from __future__ import annotations

import os
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

from objstore.model.net_file import FileSummary, NetFile
from objstore.values.fastclass import replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from objstore.model.basic_types import DocumentId, Unit
    from objstore.storage.index.rows import DocumentPosition
    from objstore.storage.store.object_store import Store

__all__ = ["pending_documents", "selected", "shared_units", "unseen", "with_units"]

FileView = TypeVar("FileView", NetFile, FileSummary)

_PLACE: Final = attrgetter("path", "document")


def pending_documents(store: Store, paths: Collection[str], units: Collection[Unit] | None) -> list[DocumentPosition]:
    """Return the documents with pending edits that may have what is asked for."""
    found = store.index.edits.pending_documents()
    if units is not None:
        wanted = {*store.index.edits.documents_of({unit.seq for unit in units}).values()}
        found = [position for position in found if position.document in wanted]
    if paths:
        held = _documents_at(store, paths)
        found = [position for position in found if position.document in held]
    return found


def selected(files: Sequence[FileView], paths: Collection[str], units: Collection[Unit] | None) -> list[FileView]:
    """Return the files at the paths, by path, each with the changes that have any of the units."""
    found = [
        file for file in files if not paths or _is_covered(paths, file.path) or _is_covered(paths, file.path_before)
    ]
    return sorted(found if units is None else with_units(found, units), key=_PLACE)


def unseen(files: Iterable[FileView], seen: Collection[bytes]) -> list[FileView]:
    """Return the files with changes whose key is not in `seen`, with only these and those decided with them."""
    files = list(files)
    return with_units(
        files, {unit for file in files for change in file.changes if change.key not in seen for unit in change.units}
    )


def with_units(files: Iterable[FileView], units: Collection[Unit]) -> list[FileView]:
    """Return the files that have any of the units, with only the changes that do, and those decided with them."""
    wanted = frozenset(units)
    return [found for file in files if (found := _with_units(file, wanted)) is not None]


def shared_units(units: Sequence[tuple[Unit, ...]]) -> list[tuple[int, ...]]:
    """Return for each of some changes, given by their units, the positions of those that are decided with it."""
    parents = list(range(len(units)))

    def root(at: int) -> int:
        while parents[at] != at:
            parents[at] = at = parents[parents[at]]
        return at

    owners: dict[Unit, int] = {}
    for at, own in enumerate(units):
        for unit in own:
            parents[root(at)] = root(owners.setdefault(unit, at))
    groups: dict[int, list[int]] = {}
    for at in range(len(units)):
        groups.setdefault(root(at), []).append(at)
    return [tuple([other for other in groups[root(at)] if other != at]) for at in range(len(units))]


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


def _with_units(file: FileView, units: frozenset[Unit]) -> FileView | None:
    """Return the file with only the changes that any of these units is part of; None: there are none."""
    touched = {at for at, change in enumerate(file.changes) if not units.isdisjoint(change.units)}
    touched.update(other for at in list(touched) for other in file.changes[at].shares_with)
    cancelled = tuple(unit for unit in file.cancelled if unit in units)
    kept_on = tuple(unit for unit in file.kept_on if unit in units)
    if not touched and not cancelled and not kept_on:
        return None
    shared = shared_units([file.changes[at].units for at in sorted(touched)])
    if isinstance(file, FileSummary):
        chosen = [file.changes[at] for at in sorted(touched)]
        changes = [change._replace(shares_with=with_) for change, with_ in zip(chosen, shared, strict=True)]
        return file._replace(changes=tuple(changes), cancelled=cancelled, kept_on=kept_on)
    shown = [file.changes[at] for at in sorted(touched)]
    return replace(
        file,
        changes=tuple(replace(change, shares_with=with_) for change, with_ in zip(shown, shared, strict=True)),
        cancelled=cancelled,
        taken_out=tuple(unit for unit in file.taken_out if unit in units),
        kept_on=kept_on,
        left_out=tuple(change for at, change in enumerate(file.changes) if at not in touched),
    )
