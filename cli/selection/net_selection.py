"""Select net changes by what is named on the command line: paths, lines, edits and hunks."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from objstore import value

if TYPE_CHECKING:
    from objstore import FileSummary, NetFile, Selection, StoreError, Unit, Workspace

__all__ = ["NetSelection", "net_selection", "require_recorded"]

FileView = TypeVar("FileView", "NetFile", "FileSummary")


@value
class NetSelection:
    """The changes to show. Nothing selected: all that are pending."""

    paths: dict[str, str]  # relative to the workspace, each with what was typed
    units: "frozenset[Unit]"
    group: "Selection"  # only changes by edits of this group; an empty one: any

    def files(
        self,
        workspace: "Workspace",
        at: Collection[str] = (),
        *,
        unreadable: "Callable[[StoreError], object] | None" = None,
    ) -> "list[NetFile]":
        """Return the files with selected changes, by path.

        `at`: only files that are, or were in their accepted state, at or below these paths; (): all. `unreadable`:
        called with why a file is left out. Raises NoSuchName, AmbiguousName and PathError.
        """
        return self._found(workspace, workspace.review.changes, at, unreadable)

    def summaries(self, workspace: "Workspace", unreadable: "Callable[[StoreError], object]") -> "list[FileSummary]":
        """Return the same without texts."""
        return self._found(workspace, workspace.review.change_summaries, (), unreadable)

    def _found(
        self,
        workspace: "Workspace",
        changes: "Callable[..., list[FileView]]",
        at: Collection[str],
        unreadable: "Callable[[StoreError], object] | None",
    ) -> "list[FileView]":
        among = workspace.review.pending_units(self.group) if self.group.is_group else None
        found: list[FileView] = []
        if self.paths or not self.units:
            found = changes(at or self.paths, among, unreadable)
        if at and self.paths:
            found = [file for file in found if any(_is_at(path, file) for path in self.paths)]
        if self.units:
            units = self.units if among is None else self.units & among
            whole = {file.document for file in found}
            found += [file for file in changes(at, units, unreadable) if file.document not in whole]
        return sorted(found, key=lambda file: (file.path, file.document))

    def paths_without(self, files: "Sequence[NetFile] | Sequence[FileSummary]") -> dict[str, str]:
        """Return the selected paths at which none of the files is, or was in its accepted state.

        None, if only changes of some turns or a session are selected: of other paths nothing is asked.
        """
        if self.group.is_group:
            return {}
        return {path: typed for path, typed in self.paths.items() if not any(_is_at(path, file) for file in files)}


def net_selection(workspace: "Workspace", names: tuple[str, ...], group: "Selection | None" = None) -> NetSelection:
    """Return what the names select, as far as it is of a group (None: of any).

    A path on disk, or one that was recorded, takes precedence over an edit. Raises NoSuchName, AmbiguousName,
    NoChangeAtLine and PathError.
    """
    from objstore import Selection

    group = group or Selection()
    if not names:
        return NetSelection(paths={}, units=frozenset(), group=group)
    from cli.selection.selectors import edits_named, is_place, path_named
    from objstore import NoSuchName

    paths: dict[str, str] = {}
    units: set[Unit] = set()
    for name in names:
        if not is_place(workspace, name):
            try:
                units.update(unit for _, found in edits_named(workspace, name) for unit in found)
                continue
            except NoSuchName:
                pass  # refused as a path, if it is none
        paths[path_named(workspace, name)] = name
    if group.is_group:
        require_recorded(workspace, paths)
    return NetSelection(paths=paths, units=frozenset(units), group=group)


def require_recorded(workspace: "Workspace", paths: Mapping[str, str]) -> None:
    """Raise NoSuchName if one of the paths neither exists nor was ever recorded; the values are what was typed."""
    from cli.selection.selectors import is_recorded
    from objstore import NoSuchName

    for path, typed in paths.items():
        on_disk = os.path.join(workspace.root, path)  # noqa: PTH118 -- no link is followed
        if path != "." and not os.path.lexists(on_disk) and not is_recorded(workspace, path):
            raise NoSuchName(typed, "file")


def _is_at(path: str, file: "NetFile | FileSummary") -> bool:
    from cli.selection.selectors import covers

    return covers(path, file.path) or covers(path, file.path_before)
