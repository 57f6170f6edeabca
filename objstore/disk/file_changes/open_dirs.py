"""Resolve the paths of one transition once each, and hold the last few of them open."""

import os
import stat
from collections import OrderedDict
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from objstore.disk.fs.confined_path import PathResolver, ResolvedPath, Tree
from objstore.disk.fs.reserved_names import folded_name
from objstore.model.relpath import folders_of
from objstore.values.errors import FileChanged

__all__ = ["ResolvedPaths", "first_symlink_on"]

_MAX_HELD: Final = 16
"""Resolved paths that are held open at once, each with every folder on the way."""


class ResolvedPaths:
    """The resolved paths of a transition.

    Only a few are open at once: it may have more files than a process may open.
    """

    def __init__(self, tree: Tree, vacated: Collection[bytes]) -> None:
        """Start with none. `vacated`: paths of files that are removed, so that folders may take their names."""
        self._tree: Final = tree
        self._vacated: Final = vacated
        is_folded = tree.is_case_insensitive
        self._folded: Final = {folded_name(os.fsdecode(path)) for path in vacated} if is_folded else set[str]()
        self._held: OrderedDict[bytes, tuple[ResolvedPath, PathResolver]] = OrderedDict()

    def at(self, path: bytes) -> ResolvedPath:
        """Return the location of a recorded path. Raises FileChanged if a folder on the way has become a link."""
        held = self._held.get(path)
        if held is not None:
            self._held.move_to_end(path)
            return held[0]
        name = os.fsdecode(path)
        resolver = self._tree.locate(name, changing=True, as_on_disk=False, will_be_vacated=self._is_vacated)
        resolved = resolver.arrive()
        self._held[path] = resolved, resolver
        if resolved.path != name:
            self.forget(path)
            raise FileChanged(name, first_symlink_on(self._tree, path))
        if len(self._held) > _MAX_HELD:
            self.forget(next(iter(self._held)))
        return resolved

    def _is_vacated(self, path: bytes) -> bool:
        return path in self._vacated or (bool(self._folded) and folded_name(os.fsdecode(path)) in self._folded)

    def forget(self, path: bytes) -> None:
        """Close a path, so that it is resolved again."""
        self._held.pop(path)[1].close()

    def forget_below(self, folder: bytes) -> None:
        """Close every path below a folder, so that it is resolved again."""
        for path in [path for path in self._held if path.startswith(folder + b"/")]:
            self.forget(path)

    def close(self) -> None:
        """Close every folder."""
        while self._held:
            self._held.popitem()[1][1].close()


def first_symlink_on(tree: Tree, path: bytes) -> str:
    """Return the first folder of a recorded path that is a link by now ("": none is)."""
    for folder in folders_of(path):
        with suppress(OSError):
            if stat.S_ISLNK(os.lstat(folder, dir_fd=tree.fd).st_mode):
                return os.fsdecode(folder)
    return ""
