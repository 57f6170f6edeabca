"""Find the files, folders and patterns that paths name, in the whole history."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from objstore.history.edit_queries import edits
from objstore.model.views import EditFilter
from objstore.values.fastclass import replace, value
from objstore.values.request_errors import NoSuchName

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from objstore.model.records import Edit
    from objstore.model.views import EditView
    from objstore.storage.transaction.journal import Journal

__all__ = ["NamedPlace", "PathSelection", "places"]

_MOST_READ: Final = 4_096
"""Edits that are read at once."""


@value
class NamedPlace:
    """A path as a person names it."""

    path: str  # relative to the workspace; ".": all of it
    spelling: str  # as it was typed, for messages
    pattern: str = ""  # as shells write it, if the path may be one; "": it is none


@value
class PathSelection:
    """Files and folders whose edits are selected."""

    file: str = ""  # the only place, if it is a file: the store can look it up
    documents: frozenset[int] = frozenset()  # the lineages of files
    folders: tuple[bytes, ...] = ()  # each with a slash at its end; b"": the workspace
    patterns: tuple[str, ...] = ()  # of paths, as shells write them

    @property
    def is_filter(self) -> bool:
        """Return whether the store can look up the whole selection."""
        return not self.documents and not self.folders and not self.patterns

    def hold(self, edit: Edit) -> bool:
        """Return whether the edit happened at one of these places."""
        if self.is_filter or edit.document in self.documents:
            return True
        paths = (edit.path,) if edit.source is None else (edit.path, edit.source)
        return any(path.startswith(folder) for path in paths for folder in self.folders) or any(map(self._fits, paths))

    def _fits(self, path: bytes) -> bool:
        if not self.patterns:
            return False
        from fnmatch import fnmatchcase

        return any(fnmatchcase(os.fsdecode(path), pattern) for pattern in self.patterns)


def places(journal: Journal, named: Sequence[NamedPlace]) -> PathSelection:
    """Return the places that paths name: all files that were ever there, and folders.

    A path that was never a file's may be a pattern, in which a star also matches slashes. Raises NoSuchName, PathError.
    """
    files: list[str] = []
    folders: list[bytes] = []
    patterns: list[str] = []
    for place in named:
        below = "" if place.path == "." else f"{place.path}/"
        is_file = bool(below) and bool(edits(journal, EditFilter(path=place.path, limit=1)))
        if is_file:
            files.append(place.path)
        folder = os.fsencode(below)
        if not below or journal.store.index.documents.paths(folder, 1):
            folders.append(folder)
        elif not is_file or os.path.islink(os.path.join(journal.tree.root, place.path)):
            # A folder may be empty now, or a link may have taken its place.
            own = () if is_file or not place.pattern else (place.pattern,)
            held = PathSelection(folders=(folder,), patterns=own)
            if not any(held.hold(view.edit) for view in _newest_first(journal)):
                if is_file:
                    continue
                raise NoSuchName(place.spelling, "recorded file")
            folders += held.folders
            patterns += held.patterns
    if len(files) == 1 and not folders:
        return PathSelection(file=files[0])
    views = (view for path in files for view in edits(journal, EditFilter(path=path)))
    documents = frozenset(view.edit.document for view in views)
    return PathSelection(documents=documents, folders=tuple(folders), patterns=tuple(patterns))


def _newest_first(journal: Journal) -> Iterator[EditView]:
    wanted = EditFilter(newest_first=True, limit=_MOST_READ)
    while found := edits(journal, wanted):
        yield from found
        wanted = replace(wanted, before=found[-1].seq)
