"""What stands on disk at a recorded path, as a state that can be compared with the journal's."""

import os

from objstore.errors import (
    FileMissing,
    PathInvalid,
    PathIsDirectory,
    PathIsSymlink,
    PathNotRegular,
    PathOutside,
)
from objstore.ids import blob_id
from objstore.paths import Found, Spot, Tree, read_at
from objstore.terms import FileState

__all__ = ["disk_state", "file_at", "state_at"]


def disk_state(tree: Tree, path: bytes) -> tuple[FileState, Found] | None:
    """Return the file that stands at a recorded path, or None where nothing does.

    Raises PathIsSymlink, PathIsDirectory and what else Tree.read raises, except FileMissing.
    """
    try:
        with tree.locate(os.fsdecode(path)) as spot:
            return state_at(spot)
    except FileMissing:
        return None


def file_at(tree: Tree, path: bytes) -> tuple[FileState, Found] | None:
    """Return the file that stands at a recorded path, or None where nothing does, or something that is no file.

    A folder or a link in the file's place, or a file in its folder's, means that the file is gone.
    Raises FileTooLarge, FileChanged, PermissionRefused, DiskFailed.
    """
    try:
        return disk_state(tree, path)
    except (PathIsDirectory, PathIsSymlink, PathNotRegular, PathInvalid, PathOutside):
        return None


def state_at(spot: Spot) -> tuple[FileState, Found] | None:
    """Return what stands at `spot` (None: nothing). Raises as disk_state."""
    try:
        found = read_at(spot)
    except FileMissing:
        return None
    return FileState(blob=blob_id(found.content), mode=found.mode), found
