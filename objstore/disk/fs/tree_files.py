"""Read and list the files of one folder, and change their times, without a store and without recording anything."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from objstore.disk.fs.confined_path import MAX_FILE, ResolvedPath, Tree, look_at, missing_at, open_folder
from objstore.disk.fs.disk import Disk
from objstore.disk.fs.store_owner import may, owner_of_new, require
from objstore.model.ids import blob_id
from objstore.values.errors import DiskFailed, FileMissing, PermissionRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from objstore.model.views import Content, DirectoryEntry, PathInfo

__all__ = ["Files"]

_KINDS: Final = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}


class Files:
    """A folder and everything below it."""

    def __init__(self, root: str | os.PathLike[str], disk: Disk | None = None, *, is_real: bool = False) -> None:
        """Open the folder. `is_real` and errors as of Tree."""
        self.tree = Tree(root, is_real=is_real)
        self.root: Final = self.tree.root
        self._disk: Final = disk or Disk()

    def close(self) -> None:
        """Close the folder."""
        self.tree.close()

    @property
    def is_in_place(self) -> bool:
        """Return whether the folder's path still leads to it: the folder may be moved and another one take its path."""
        return self.tree.is_in_place

    def confined(self, parts: Iterable[str], denies: Callable[[str], bool] | None = None) -> Files:
        """Return the same folder restricted to these canonical paths below it; `denies` and closing as of the Tree."""
        from copy import copy

        confined = copy(self)
        confined.tree = self.tree.confined(parts, denies)
        return confined

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def relative(self, path: str, *, gone: bool = False) -> str:
        """Return the canonical path below the root; with `gone`, also of a file that was removed with its folders.

        Raises PathOutside, PathReserved, PathInvalid, FileMissing.
        """

        def is_gone(folder: bytes) -> bool:
            # By now, a file may have the name that a folder had. A link is followed.
            return gone and not os.path.islink(os.path.join(os.fsencode(self.tree.root), folder))

        with self.tree.locate(path, follow=True, gone=gone, will_be_vacated=is_gone) as resolved:
            return resolved.path

    def read(self, path: str, *, limit: int = MAX_FILE, follow: bool = True) -> Content:
        """Return the file as it is on disk; with `follow`, also through links that stay inside.

        Raises what Tree.read raises.
        """
        from objstore.model.views import Content

        name, found = self.tree.read(path, limit=limit, follow=follow)
        return Content(path=name, bytes=found.content, blob=blob_id(found.content), mode=found.mode)

    def facts(self, path: str) -> PathInfo:
        """Return the type, size, mode and times of a path, of a link itself. Raises FileMissing and as Tree.locate."""
        from objstore.model.views import PathInfo

        with self.tree.locate(path) as resolved:
            found = look_at(resolved)
            if found is None:
                raise FileMissing(path, missing_at(resolved).other)
            self.tree.require_users_file(found, resolved.path)
            kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
            mode = stat.S_IMODE(found.st_mode)
            # Root may write everything, so the bits count too: a file without write permission is meant to stay.
            writable = bool(mode & 0o222) and _may_write(resolved, kind)
            return PathInfo(
                path=resolved.path,
                kind=kind,
                size=found.st_size,
                mode=mode,
                writable=writable,
                modified=found.st_mtime_ns,
                accessed=found.st_atime_ns,
            )

    def free_space(self, path: str) -> int:
        """Return how many bytes may still be written to the file system of `path`. Raises what Tree.locate raises."""
        with self.tree.locate(path, changing=True) as resolved:
            with suppress(DiskFailed):
                return self._disk.free_bytes(resolved.folder, resolved.path)
            # Some systems refuse statvfs for an O_PATH descriptor. Open the folder itself only then, because that needs
            # the permission to list it.
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=resolved.folder)
            try:
                return self._disk.free_bytes(fd, resolved.path)
            finally:
                os.close(fd)

    def may_write(self, path: str) -> bool:
        """Return whether this process may change the content of the file at `path`. Raises what Tree.locate raises."""
        with self.tree.locate(path, changing=True) as resolved:
            return _may_write(resolved, "file")

    def set_times(self, path: str, *, accessed: int, modified: int) -> None:
        """Set a file's times, in nanoseconds since the epoch; never through a link. Raises what Tree.locate raises."""
        with self.tree.locate(path, changing=True) as resolved:
            if resolved.user is not None and not _may_write(resolved, "file"):
                raise PermissionRefused(resolved.path)
            self._disk.set_times(resolved.folder, resolved.name, accessed, modified)

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        """Return the entries of a folder by name, without the store. Raises what Tree.entries raises."""
        return self.tree.entries(path)

    def make_directory(self, path: str) -> bool:
        """Create a folder and the missing ones above it; return False if it existed.

        Raises FileExists if it is a file.
        """
        with self.tree.locate(path, changing=True) as resolved:
            return resolved.path != "." and self._make(resolved)

    def _make(self, resolved: ResolvedPath) -> bool:
        folder, opened = resolved.folder, list[int]()
        made = False
        try:
            for name in (*resolved.missing, resolved.name):
                try:
                    require(resolved.user, os.fstat(folder), os.W_OK | os.X_OK, resolved.path)
                    self._disk.make_directory(folder, name, owner_of_new(folder, resolved.user))
                    made = True
                except FileExistsError:
                    made = False
                folder = open_folder(folder, name, resolved.path)
                opened.append(folder)
        finally:
            for fd in opened:
                os.close(fd)
        return made


def _may_write(resolved: ResolvedPath, kind: str) -> bool:
    """Return whether this process may write the file at `resolved`. For a link: True, without a test."""
    if kind == "symlink":
        return True
    found = look_at(resolved)
    if found is None or not may(resolved.user, found, os.W_OK):
        return False
    if not os.access(resolved.name, os.W_OK, dir_fd=resolved.folder, effective_ids=True):
        return False
    if resolved.user is not None and not may(resolved.user, os.fstat(resolved.folder), os.W_OK | os.X_OK):
        return kind != "file"
    # A file is staged in its folder and then swapped into place, so the folder must be writable.
    return kind != "file" or os.access(".", os.W_OK | os.X_OK, dir_fd=resolved.folder, effective_ids=True)
