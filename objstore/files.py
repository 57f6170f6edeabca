"""The files of one folder as they stand: looking at them needs no store, and records nothing."""

import os
from typing import Final, Self

from objstore.disk import Disk
from objstore.ids import blob_id
from objstore.paths import MAX_FILE, DirectoryEntry, Spot, Tree, open_folder
from objstore.views import Content

__all__ = ["Files"]


class Files:
    """One folder and everything below it."""

    def __init__(self, root: str | os.PathLike[str], disk: Disk | None = None) -> None:
        """Open the folder. Raises FileMissing or PermissionRefused."""
        self.tree: Final = Tree(root)
        self.root: Final = self.tree.root
        self._disk: Final = disk or Disk()

    def close(self) -> None:
        """Close the folder."""
        self.tree.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def relative(self, path: str) -> str:
        """Return the canonical path below the root. Raises PathOutside, PathReserved, PathInvalid, FileMissing."""
        with self.tree.locate(path, follow=True) as spot:
            return spot.path

    def read(self, path: str, *, limit: int = MAX_FILE) -> Content:
        """Return the file as it stands on disk; links that stay inside are followed. Raises what paths raise."""
        name, found = self.tree.read(path, limit=limit)
        return Content(path=name, bytes=found.content, blob=blob_id(found.content), mode=found.mode)

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        """Return what is in a folder, by name; the store is not shown. Raises what paths raise."""
        return self.tree.entries(path)

    def make_directory(self, path: str) -> bool:
        """Make a folder and those above it; return False if it was there. Raises FileExists for a file in its place."""
        with self.tree.locate(path, changing=True) as spot:
            return spot.path != "." and self._make(spot)

    def _make(self, spot: Spot) -> bool:
        folder, opened = spot.folder, list[int]()
        made = False
        try:
            for name in (*spot.missing, spot.name):
                try:
                    self._disk.make_directory(folder, name)
                    made = True
                except FileExistsError:
                    made = False
                folder = open_folder(folder, name, spot.path)
                opened.append(folder)
        finally:
            for fd in opened:
                os.close(fd)
        return made
