"""What stands on disk at a recorded path, as a state that can be compared with the journal's."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from objstore.disk import failure, is_absence
from objstore.errors import (
    CasError,
    FileMissing,
    FileTooLarge,
    PathInvalid,
    PathIsDirectory,
    PathIsSymlink,
    PathNotRegular,
    PathOutside,
)
from objstore.ids import BlobId, blob_id
from objstore.paths import Found, Spot, Tree, look_at, read_at
from objstore.standins import MAX_BLOB, MAX_CHUNKED, is_stand_in, stand_in, text_of_state
from objstore.terms import FileState
from objstore.values import replace

__all__ = ["disk_state", "file_at", "large_files", "linked", "stands_below", "state_at"]


def disk_state(tree: Tree, path: bytes) -> tuple[FileState, Found] | None:
    """Return the file that stands at a recorded path, or None where nothing does.

    Raises PathIsSymlink, PathIsDirectory and what else Tree.read raises, except FileMissing.
    """
    try:
        with tree.locate(os.fsdecode(path), as_spelt=False) as spot:
            return state_at(spot)
    except FileMissing:
        return None


def file_at(tree: Tree, path: bytes) -> tuple[FileState, Found] | None:
    """Return the file that stands at a recorded path, or None where nothing does, or something that is no file.

    A folder or a link in the file's place, or a file or a link in its folder's, means that the file is gone.
    Raises FileTooLarge, FileChanged, PermissionRefused, DiskFailed.
    """
    name = os.fsdecode(path)
    try:
        with tree.locate(name, as_spelt=False) as spot:
            return state_at(spot) if spot.path == name else None
    except (FileMissing, PathIsDirectory, PathIsSymlink, PathNotRegular, PathInvalid, PathOutside):
        return None


def stands_below(spot: Spot) -> tuple[list[bytes], list[bytes]]:
    """Return what stands in the folder at `spot` and below: paths of files and links, and of folders, inner ones first.

    The folder itself is the last. Raises FileMissing, PathNotRegular, PermissionRefused, DiskFailed.
    """
    files: list[bytes] = []
    folders: list[bytes] = []
    top = len(os.fsencode(spot.name))
    path = os.fsencode(spot.path)
    try:
        for folder, below, names, fd in os.fwalk(
            os.fsencode(spot.name), topdown=False, onerror=_raise, follow_symlinks=False, dir_fd=spot.folder
        ):
            # Links that lead to folders are told among these, and not walked into.
            links = [name for name in below if stat.S_ISLNK(os.lstat(name, dir_fd=fd).st_mode)]
            files += [path + folder[top:] + b"/" + name for name in [*names, *links]]
            folders.append(path + folder[top:])
    except FileNotFoundError as error:
        raise FileMissing(spot.path) from error
    except OSError as error:
        raise PathNotRegular(spot.path) if is_absence(error) else failure(error, spot.path) from error
    return files, folders


def _raise(error: OSError) -> None:
    raise error


def state_at(spot: Spot, likely: BlobId | None = None, content: bytes | None = None) -> tuple[FileState, Found] | None:
    """Return what stands at `spot` (None: nothing). Raises as disk_state.

    A large file is read piece by piece, and its stand-in is what is returned as its content.
    `likely`: a blob that it may well be, and `content`, where at hand, its bytes: what equals them need not be hashed.
    """
    try:
        found = read_at(spot, limit=MAX_BLOB)
    except FileMissing:
        return None
    except FileTooLarge:
        return _large_state_at(spot)
    blob = likely if likely is not None and found.content == content else blob_id(found.content)
    if is_stand_in(found.content):
        found = replace(found, content=text_of_state(found.content, blob))
    return FileState(blob=blob, mode=found.mode), found


def large_files(tree: Tree, paths: Iterable[str]) -> list[bytes]:
    """Return those of the paths at which a large file stands, as they are recorded. What can't be looked at is none."""
    found: list[bytes] = []
    for path in paths:
        try:
            # Wherever that leads: it is a first look, without all that it takes to stay in the tree.
            if os.stat(os.path.join(tree.root, path)).st_size <= MAX_BLOB:
                continue
        except (OSError, ValueError):
            continue
        with suppress(CasError), tree.locate(path) as spot:
            seen = look_at(spot)
            if seen is not None and seen.st_size > MAX_BLOB and stat.S_ISREG(seen.st_mode):
                found.append(os.fsencode(spot.path))
    return found


def linked(tree: Tree, paths: Iterable[bytes]) -> set[int]:
    """Return the inodes of those of the files at recorded paths that have other names besides."""
    inodes = set()
    for path in paths:
        with suppress(OSError):
            seen = os.lstat(path, dir_fd=tree.fd)
            if stat.S_ISREG(seen.st_mode) and seen.st_nlink > 1:
                inodes.add(seen.st_ino)
    return inodes


def _large_state_at(spot: Spot) -> tuple[FileState, Found] | None:
    from objstore.sources import hashed_at

    try:
        blob, looked = hashed_at(spot, limit=MAX_CHUNKED)
    except FileMissing:
        return None
    found = Found(content=stand_in(blob), stat=looked)
    return FileState(blob=blob, mode=found.mode), found
