"""What stands on disk at a recorded path, as a state that can be compared with the journal's."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

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
from objstore.fastclass import replace
from objstore.fs.confined_path import FileOnDisk, ResolvedPath, Tree, look_at, read_at
from objstore.fs.disk import failure, is_absence
from objstore.model.basic_types import FileState
from objstore.model.ids import BlobId, blob_id
from objstore.model.large_file_placeholder import MAX_BLOB, MAX_CHUNKED, is_placeholder, placeholder, text_of_state

__all__ = ["disk_state", "file_at", "large_files", "linked", "stands_below", "state_at"]


def disk_state(tree: Tree, path: bytes) -> tuple[FileState, FileOnDisk] | None:
    """Return the file that stands at a recorded path, or None where nothing does.

    Raises PathIsSymlink, PathIsDirectory and what else Tree.read raises, except FileMissing.
    """
    try:
        with tree.locate(os.fsdecode(path), as_spelt=False) as resolved:
            return state_at(resolved)
    except FileMissing:
        return None


def file_at(tree: Tree, path: bytes) -> tuple[FileState, FileOnDisk] | None:
    """Return the file that stands at a recorded path, or None where nothing does, or something that is no file.

    A folder or a link in the file's place, or a file or a link in its folder's, means that the file is gone.
    Raises FileTooLarge, FileChanged, PermissionRefused, DiskFailed.
    """
    name = os.fsdecode(path)
    try:
        with tree.locate(name, as_spelt=False) as resolved:
            return state_at(resolved) if resolved.path == name else None
    except (FileMissing, PathIsDirectory, PathIsSymlink, PathNotRegular, PathInvalid, PathOutside):
        return None


def stands_below(resolved: ResolvedPath) -> tuple[list[bytes], list[bytes]]:
    """Return what stands in the folder at `spot` and below: paths of files and links, and of folders, inner ones first.

    The folder itself is the last. Raises FileMissing, PathNotRegular, PermissionRefused, DiskFailed.
    """
    files: list[bytes] = []
    folders: list[bytes] = []
    top = len(os.fsencode(resolved.name))
    path = os.fsencode(resolved.path)
    try:
        for folder, below, names, fd in os.fwalk(
            os.fsencode(resolved.name), topdown=False, onerror=_raise, follow_symlinks=False, dir_fd=resolved.folder
        ):
            # Links that lead to folders are told among these, and not walked into.
            links = [name for name in below if stat.S_ISLNK(os.lstat(name, dir_fd=fd).st_mode)]
            files += [path + folder[top:] + b"/" + name for name in [*names, *links]]
            folders.append(path + folder[top:])
    except FileNotFoundError as error:
        raise FileMissing(resolved.path) from error
    except OSError as error:
        raise PathNotRegular(resolved.path) if is_absence(error) else failure(error, resolved.path) from error
    return files, folders


def _raise(error: OSError) -> None:
    raise error


def state_at(
    resolved: ResolvedPath, likely: BlobId | None = None, content: bytes | None = None
) -> tuple[FileState, FileOnDisk] | None:
    """Return what stands at `spot` (None: nothing). Raises as disk_state.

    A large file is read piece by piece, and its stand-in is what is returned as its content.
    `likely`: a blob that it may well be, and `content`, where at hand, its bytes: what equals them need not be hashed.
    """
    try:
        found = read_at(resolved, limit=MAX_BLOB)
    except FileMissing:
        return None
    except FileTooLarge:
        return _large_state_at(resolved)
    blob = likely if likely is not None and found.content == content else blob_id(found.content)
    if is_placeholder(found.content):
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
        with suppress(CasError), tree.locate(path) as resolved:
            seen = look_at(resolved)
            if seen is not None and seen.st_size > MAX_BLOB and stat.S_ISREG(seen.st_mode):
                found.append(os.fsencode(resolved.path))
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


def _large_state_at(resolved: ResolvedPath) -> tuple[FileState, FileOnDisk] | None:
    from objstore.fs.content_source import hashed_at

    try:
        blob, looked = hashed_at(resolved, limit=MAX_CHUNKED)
    except FileMissing:
        return None
    found = FileOnDisk(content=placeholder(blob), stat=looked)
    return FileState(blob=blob, mode=found.mode), found
