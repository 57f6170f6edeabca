"""Spots: where the paths of one transition lead, each found once and held open while it is in use."""

import os
import stat
from collections import OrderedDict
from collections.abc import Container
from contextlib import suppress
from typing import Final

from objstore.errors import FileChanged
from objstore.fs.confined_path import PathResolver, ResolvedPath, Tree
from objstore.model.relpath import folders_of

__all__ = ["ResolvedPaths", "first_symlink_on"]

_MOST_HELD: Final = 16
"""Places that are held open at once, each with every folder on the way."""


class ResolvedPaths:
    """Where paths lead. Only the last few are held open: a transition may have more files than a process may open."""

    def __init__(self, tree: Tree, vacated: Container[bytes]) -> None:
        """Begin with none. `vacated`: paths of files that go, so that folders may take their names."""
        self._tree: Final = tree
        self._vacated: Final = vacated
        self._held: OrderedDict[bytes, tuple[ResolvedPath, PathResolver]] = OrderedDict()

    def at(self, path: bytes) -> ResolvedPath:
        """Return the spot of a recorded path. Raises FileChanged if a folder on the way has become a link."""
        held = self._held.get(path)
        if held is not None:
            self._held.move_to_end(path)
            return held[0]
        name = os.fsdecode(path)
        walk = self._tree.locate(name, changing=True, as_spelt=False, will_be_vacated=self._vacated.__contains__)
        resolved = walk.arrive()
        self._held[path] = resolved, walk
        if resolved.path != name:
            self.forget(path)
            raise FileChanged(name, first_symlink_on(self._tree, path))
        if len(self._held) > _MOST_HELD:
            self.forget(next(iter(self._held)))
        return resolved

    def forget(self, path: bytes) -> None:
        """Have a path found anew."""
        self._held.pop(path)[1].close()

    def forget_below(self, folder: bytes) -> None:
        """Have every path below a folder found anew."""
        for path in [path for path in self._held if path.startswith(folder + b"/")]:
            self.forget(path)

    def close(self) -> None:
        """Close every folder."""
        while self._held:
            self._held.popitem()[1][1].close()


def first_symlink_on(tree: Tree, path: bytes) -> str:
    """Return the first folder of a recorded path that is a link by now ("": none is, any more)."""
    for folder in folders_of(path):
        with suppress(OSError):
            if stat.S_ISLNK(os.lstat(folder, dir_fd=tree.fd).st_mode):
                return os.fsdecode(folder)
    return ""
