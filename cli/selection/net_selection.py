"""Select net changes by what is named on the command line: paths, lines, edits and hunks."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from objstore import value

if TYPE_CHECKING:
    from objstore import FileSummary, NetFile, StoreError, Unit, Workspace

__all__ = ["NetSelection", "net_selection", "require_recorded"]

FileView = TypeVar("FileView", "NetFile", "FileSummary")


@value
class NetSelection:
    """What is to be shown. Nothing selected: all that is pending."""

    paths: dict[str, str]  # relative to the workspace, each with what was typed
    units: "frozenset[Unit]"

    def files(
        self,
        workspace: "Workspace",
        at: Collection[str] = (),
        among: "frozenset[Unit] | None" = None,
        *,
        unreadable: "Callable[[StoreError], object] | None" = None,
    ) -> "list[NetFile]":
        """Return the files with selected changes, by path.

        `at`: only files that are, or were in their accepted state, at or below these paths; (): all. `among`: only
        changes that have any of these units; None: all. `unreadable`: called with why a file is left out.
        """
        if not at and among is None and unreadable is not None:
            return self._found(workspace.review.changes, unreadable)
        found: list[NetFile] = []
        if self.paths or not self.units:
            found = workspace.review.changes(at or self.paths, among)
        if at and self.paths:
            found = [file for file in found if any(_is_at(path, file) for path in self.paths)]
        if self.units:
            whole = {file.document for file in found}
            units = self.units if among is None else self.units & among
            found += [file for file in workspace.review.changes(at, units) if file.document not in whole]
        return sorted(found, key=lambda file: (file.path, file.document))

    def summaries(self, workspace: "Workspace", unreadable: "Callable[[StoreError], object]") -> "list[FileSummary]":
        """Return the same without texts."""
        return self._found(workspace.review.change_summaries, unreadable)

    def _found(
        self, changes: "Callable[..., list[FileView]]", unreadable: "Callable[[StoreError], object]"
    ) -> "list[FileView]":
        if not self.units:
            return changes(self.paths, unreadable=unreadable)
        found = changes(self.paths, unreadable=unreadable) if self.paths else []
        whole = {file.document for file in found}
        found += [file for file in changes(units=self.units, unreadable=unreadable) if file.document not in whole]
        return sorted(found, key=lambda file: file.path)

    def paths_without(self, files: "Sequence[FileView]") -> dict[str, str]:
        """Return the selected paths at which none of the files is, or was in its accepted state."""
        return {path: typed for path, typed in self.paths.items() if not any(_is_at(path, file) for file in files)}


def net_selection(workspace: "Workspace", names: tuple[str, ...]) -> NetSelection:
    """Return what the names select. A path on disk, or one that was recorded, takes precedence over an edit.

    Raises NoSuchName, AmbiguousName, NoChangeAtLine and PathError.
    """
    if not names:
        return NetSelection(paths={}, units=frozenset())
    from cli.selection.selectors import edits_named, path_named
    from objstore import NoSuchName

    paths: dict[str, str] = {}
    units: set[Unit] = set()
    for name in names:
        if not _is_path(workspace, name):
            try:
                units.update(unit for _, found in edits_named(workspace, name) for unit in found)
                continue
            except NoSuchName:
                pass  # refused as a path, if it is none
        paths[path_named(workspace, name)] = name
    return NetSelection(paths=paths, units=frozenset(units))


def require_recorded(workspace: "Workspace", paths: Mapping[str, str]) -> None:
    """Raise NoSuchName if one of the paths neither exists nor was ever recorded; the values are what was typed."""
    from objstore import NoSuchName

    for path, typed in paths.items():
        on_disk = os.path.join(workspace.root, path)  # noqa: PTH118 -- no link is followed
        if path != "." and not os.path.lexists(on_disk) and not _is_recorded(workspace, path):
            raise NoSuchName(typed, "file")


def _is_at(path: str, file: "NetFile | FileSummary") -> bool:
    from cli.selection.selectors import covers

    return covers(path, file.path) or covers(path, file.path_before)


def _is_path(workspace: "Workspace", name: str) -> bool:
    from cli.selection.selectors import is_on_disk, path_named
    from objstore import PathError

    try:
        return is_on_disk(workspace, name) or _is_recorded(workspace, path_named(workspace, name))
    except PathError:
        return False


def _is_recorded(workspace: "Workspace", path: str) -> bool:
    """Return whether a file has ever been recorded at the path, or is recorded now below it."""
    from objstore import EditFilter, NameKind

    return bool(
        workspace.history.edits(EditFilter(path=path, limit=1))
        or workspace.history.names_with_prefix(NameKind.PATH, f"{path}/", 1)
    )
