"""The listing: the recorded edits that fit what a person asks for, read as they are shown."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from cli.naming import edit_filter, path_named, paths_named
from objstore import EditFilter, NameKind, NoSuchName, value

if TYPE_CHECKING:
    from cli.pickaxe import Pickaxe
    from objstore import Edit, EditView, Workspace

__all__ = [
    "Places",
    "Terms",
    "edits_meant",
    "followed",
    "happened_at",
    "matching",
    "places_named",
    "tool_named",
]

FIRST_READ: Final = 64
MOST_READ: Final = 4_096
"""Edits that are read at once: few for who leaves the pager early, many for who wants them all."""


@value
class Places:
    """Files and folders whose edits are asked for."""

    file: str = ""  # the only place, where it is a file: the store can look it up
    documents: frozenset[int] = frozenset()  # the lineages of files
    folders: tuple[bytes, ...] = ()  # each with a slash behind it; b"": the workspace
    patterns: tuple[str, ...] = ()  # of paths, as shells write them

    @property
    def is_filter(self) -> bool:
        """Return whether the store looks up all that is asked for."""
        return not self.documents and not self.folders and not self.patterns

    def hold(self, edit: "Edit") -> bool:
        """Return whether the edit happened there."""
        if self.is_filter or edit.document in self.documents:
            return True
        paths = (edit.path,) if edit.source is None else (edit.path, edit.source)
        return any(path.startswith(folder) for path in paths for folder in self.folders) or any(map(self._fits, paths))

    def _fits(self, path: bytes) -> bool:
        if not self.patterns:
            return False
        from fnmatch import fnmatchcase

        return any(fnmatchcase(os.fsdecode(path), pattern) for pattern in self.patterns)


def places_named(
    workspace: "Workspace", spellings: Sequence[str], *, exactly: bool = False, hidden: bool = False
) -> Places:
    """Return the places that paths name: all files that ever stood there, and folders. Raises NoSuchName, PathError.

    With `hidden` also those in whose place a link leads elsewhere by now. That is for looking: a decision on a file is
    not to fail for what nothing can be written to.

    Unless `exactly`, a path that was never a file's, with `*`, `?` or `[`, is a pattern, of which a star stands for
    slashes, too.
    """
    files: list[str] = []
    folders: list[bytes] = []
    patterns: list[str] = []
    named = [
        (spelling, path)
        for spelling in spellings
        for path in (paths_named(workspace, spelling) if hidden else [path_named(workspace, spelling)])
    ]
    for spelling, path in named:
        below = "" if path == "." else f"{path}/"
        is_file = bool(below) and bool(workspace.edits(EditFilter(path=path, limit=1)))
        if is_file:
            files.append(path)
        folder = os.fsencode(below)
        if not below or workspace.names_like(NameKind.PATH, below, 1):
            folders.append(folder)
        elif not is_file:
            # All that was ever in a folder may have gone from it.
            held = Places(folders=(folder,), patterns=() if exactly else _pattern(workspace, spelling, path))
            if not any(held.hold(view.edit) for view in _newest_first(workspace, EditFilter(), None)):
                raise NoSuchName(spelling, "recorded file")
            folders += held.folders
            patterns += held.patterns
    if len(files) == 1 and not folders:
        return Places(file=files[0])
    views = (view for path in files for view in workspace.edits(EditFilter(path=path)))
    documents = frozenset(view.edit.document for view in views)
    return Places(documents=documents, folders=tuple(folders), patterns=tuple(patterns))


def edits_meant(workspace: "Workspace", *, conversation: str, file: str) -> list["EditView"]:
    """Return the edits of a conversation, of a place, or of a conversation at a place ("": any), oldest first.

    Raises NoSuchName, AmbiguousName, PathError.
    """
    places = places_named(workspace, [file] if file else [])
    wanted = edit_filter(workspace, conversation=conversation, status=None)
    return [view for view in workspace.edits(replace(wanted, path=places.file)) if places.hold(view.edit)]


def happened_at(workspace: "Workspace", file: str) -> Callable[["Edit"], bool]:
    """Return what tells of an edit, also of one that is recorded later, whether it happened at a place ("": any).

    Raises NoSuchName, PathError.
    """
    places = places_named(workspace, [file] if file else [])
    if not places.file:
        return places.hold
    documents = {view.edit.document for view in workspace.edits(EditFilter(path=places.file))}
    path = os.fsencode(places.file)
    return lambda edit: edit.document in documents or path in {edit.path, edit.source}


def _pattern(workspace: "Workspace", spelling: str, path: str) -> tuple[str, ...]:
    """Return the pattern that a path is, spelt from where the person stands; nothing, if it is none."""
    from glob import escape, has_magic

    if not has_magic(spelling):
        return ()
    # The folder that the person stands in is not meant as one, whatever its name.
    here = path_named(workspace, ".")
    inside = path.startswith(f"{here}/")
    return (escape(here) + path[len(here) :] if inside else path,)


@value
class Terms:
    """What has to hold of an edit beyond what the store can look up."""

    tool: str = ""  # "": any
    since: int | None = None  # microseconds since the epoch; None: from the beginning
    until: int | None = None
    document: int | None = None  # the file's lineage; None: any
    places: "Places | None" = None  # where it happened; None: anywhere
    pickaxe: "Pickaxe | None" = None  # finds what added or removed a text; None: any

    @property
    def are_met_by_all(self) -> bool:
        """Return whether nothing is asked for."""
        return replace(self, places=None) == Terms() and (self.places is None or self.places.is_filter)

    def met_by(self, view: "EditView") -> bool:
        """Return whether the edit is asked for."""
        edit = view.edit
        return (
            self.tool in {"", edit.tool}
            and (self.since is None or edit.time >= self.since)
            and (self.until is None or edit.time <= self.until)
            and self.document in {None, edit.document}
            and (self.places is None or self.places.hold(edit))
            and (self.pickaxe is None or self.pickaxe.strikes(view))
        )


def matching(workspace: "Workspace", wanted: EditFilter, terms: Terms, number: int | None) -> Iterator["EditView"]:
    """Yield the edits that fit, newest first, at most `number` (None: all)."""
    views = _newest_first(workspace, wanted, number if terms.are_met_by_all else None)
    return islice(filter(terms.met_by, views), number)


def followed(workspace: "Workspace", path: str) -> int:
    """Return the lineage of the file that stands at `path`, or stood there last. Raises NoSuchName."""
    for view in _newest_first(workspace, EditFilter(path=path), None):
        if view.edit.path == os.fsencode(path):
            return view.edit.document
    raise NoSuchName(path, "recorded file")


def tool_named(workspace: "Workspace", spelling: str) -> str:
    """Return the name of a tool that has made an edit. Raises NoSuchName."""
    if all(view.edit.tool != spelling for view in _newest_first(workspace, EditFilter(), None)):
        raise NoSuchName(spelling, "tool")
    return spelling


def _newest_first(workspace: "Workspace", wanted: EditFilter, number: int | None) -> Iterator["EditView"]:
    before, size = 0, number or FIRST_READ
    while True:
        size = min(size, MOST_READ)
        views = workspace.edits(replace(wanted, before=before, newest_first=True, limit=size))
        yield from views
        if len(views) < size:
            return
        before, size = views[-1].seq, size * 4
