"""The directories that a server may work in: which of them a path belongs to, and the workspace there."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePath
from threading import Lock
from typing import Final

from mcptools.display import shown
from mcptools.failures import Failure, Kind
from objstore import Files, NotAWorkspace, Workspace

__all__ = ["Directories", "not_absolute"]


class Directories:
    """The allowed directories. Each becomes a workspace when a file in it is first changed.

    Which directory a path belongs to is decided here, by where its parent really is; whether it may be reached
    there is decided by the workspace, which follows each path itself and trusts nothing that was said before.
    """

    def __init__(self, roots: Sequence[str], opening: Callable[[str], Workspace] = Workspace.init) -> None:
        """Take the directories, and how a workspace is opened. Raises NotADirectoryError for one that is none."""
        for root in roots:
            if not Path(root).is_dir():
                raise NotADirectoryError(root)
        # The innermost first, so that a directory inside another is a workspace of its own.
        real = {os.path.realpath(root) for root in roots}
        self.roots: Final = tuple(sorted(real, key=lambda root: (-len(root), root)))
        self._opening = opening
        self._open: dict[str, Workspace] = {}
        self._looked_at: dict[str, Files] = {}
        self._lock = Lock()
        self._closing = ExitStack()

    def close(self) -> None:
        """Close every workspace."""
        self._closing.close()

    def files_of(self, path: str) -> Files:
        """Return the directory that `path` belongs to, to look at; that makes no store. Raises as workspace_of."""
        root = self._root_of(path)
        with self._lock:
            files = self._looked_at.get(root)
            if files is None:
                files = self._looked_at[root] = self._closing.enter_context(Files(root))
            return files

    def workspace_of(self, path: str) -> Workspace:
        """Return the workspace that `path` belongs to; a relative one belongs to the only workspace.

        Its store is made if there is none. Raises Failure, and what Workspace.init raises.
        """
        root = self._root_of(path)
        with self._lock:
            workspace = self._open.get(root)
            if workspace is None:
                workspace = self._open[root] = self._closing.enter_context(self._opening(root))
            return workspace

    def recorded_of(self, path: str) -> Workspace | None:
        """Return the workspace that `path` belongs to, or None where no store is. Raises as workspace_of."""
        root = self._root_of(path)
        with self._lock:
            workspace = self._open.get(root)
            if workspace is None:
                try:
                    workspace = self._open[root] = self._closing.enter_context(Workspace.open(root))
                except NotAWorkspace:
                    return None
            return workspace

    def recorded(self) -> list[Workspace]:
        """Return every workspace that has a store."""
        return [workspace for root in self.roots if (workspace := self.recorded_of(root)) is not None]

    def _root_of(self, path: str) -> str:
        if not PurePath(path).is_absolute():
            if len(self.roots) > 1:
                raise not_absolute(path)
            return self.roots[0]
        try:
            place = _place(path)
        except ValueError as error:  # a NUL, or half a character
            raise Failure(Kind.INVALID_REQUEST, f"Not a usable path: {shown(path)!r}", path=path) from error
        for root in self.roots:
            if place.is_relative_to(root):
                return root
        raise Failure(
            Kind.PERMISSION_DENIED,
            f"Permission denied: {shown(path)}",
            hint=f"It is outside the allowed directories: {', '.join(map(shown, self.roots))}",
            path=path,
        )


def not_absolute(path: str) -> Failure:
    """Return the refusal of a path that does not say which directory it is in."""
    return Failure(Kind.INVALID_REQUEST, f"Path must be absolute: {shown(path)}", path=path)


def _place(path: str) -> Path:
    """Return where `path` really is, its last name not followed: a link in a directory is that directory's own."""
    given = Path(path)
    if given.name in {"", ".."}:
        return Path(os.path.realpath(given))
    return Path(os.path.realpath(given.parent)) / given.name
