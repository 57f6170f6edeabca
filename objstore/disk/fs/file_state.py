"""Read the file at a recorded path as a state that can be compared with the journal's."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from objstore.disk.fs.confined_path import FileOnDisk, ResolvedPath, Tree, look_at, read_at, read_link_at
from objstore.disk.fs.disk import failure, is_absence
from objstore.model.basic_types import FileState
from objstore.model.ids import BlobId, blob_id
from objstore.model.large_file_placeholder import MAX_BLOB, MAX_CHUNKED, is_placeholder, placeholder, text_of_state
from objstore.values.errors import (
    CasError,
    FileChanged,
    FileMissing,
    FileTooLarge,
    PathError,
    PathInvalid,
    PathIsDirectory,
    PathIsSymlink,
    PathNotRegular,
    PathOutside,
)
from objstore.values.fastclass import replace

__all__ = ["contents_below", "disk_state", "file_at", "kind_noun", "large_files", "linked", "state_at", "taken_by"]

_NOUNS: Final = {
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def kind_noun(mode: int) -> str:
    """Return a noun for what has a mode: file, folder, link, named pipe, socket or device."""
    return _NOUNS.get(stat.S_IFMT(mode), "file")


def taken_by(tree: Tree, path: bytes) -> str:
    """Return a noun for what is at the recorded path of a file that is gone, as `kind_noun`; "": nothing is."""
    with suppress(OSError, PathError), tree.locate(os.fsdecode(path), as_on_disk=False) as resolved:
        if resolved.path == os.fsdecode(path):
            return kind_noun(os.lstat(resolved.name, dir_fd=resolved.folder).st_mode)
    return ""


def disk_state(tree: Tree, path: bytes) -> tuple[FileState, FileOnDisk] | None:
    """Return the file or link at a recorded path, or None if nothing has that name.

    Raises FileChanged if a folder on the way is a link, PathIsDirectory, and what else Tree.read raises, except
    FileMissing and PathIsSymlink.
    """
    name = os.fsdecode(path)
    try:
        with tree.locate(name, as_on_disk=False) as resolved:
            if resolved.path != name:
                raise FileChanged(name)
            return state_at(resolved)
    except FileMissing:
        return None


def file_at(tree: Tree, path: bytes) -> tuple[FileState, FileOnDisk] | None:
    """Return the file or link at a recorded path, or None if neither is there.

    A folder at the file's path, or a file or a link at its folder's, means that the file is gone. Raises
    FileTooLarge, FileChanged, PermissionRefused, DiskFailed.
    """
    name = os.fsdecode(path)
    try:
        with tree.locate(name, as_on_disk=False) as resolved:
            return state_at(resolved) if resolved.path == name else None
    except (FileMissing, PathIsDirectory, PathNotRegular, PathInvalid, PathOutside):
        return None


def contents_below(resolved: ResolvedPath) -> tuple[list[bytes], list[bytes]]:
    """Return the paths in the folder at `resolved`, recursively: first files and links, then folders, inner ones first.

    The last folder is the one at `resolved`. Raises FileMissing, PathNotRegular, PermissionRefused, DiskFailed.
    """
    files: list[bytes] = []
    folders: list[bytes] = []
    top = len(os.fsencode(resolved.name))
    path = os.fsencode(resolved.path)
    try:
        for folder, below, names, fd in os.fwalk(
            os.fsencode(resolved.name), topdown=False, onerror=_raise, follow_symlinks=False, dir_fd=resolved.folder
        ):
            # os.fwalk lists links to folders among the folders, and doesn't enter them.
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
    """Return the file or link at `resolved` (None: nothing has that name). Raises as disk_state.

    A large file is read piece by piece, and its placeholder is returned as its content. `likely` is the blob that the
    file probably has, and `content` that blob's bytes if the caller has them: content that equals them is not hashed
    again.
    """
    try:
        found = read_at(resolved, limit=MAX_BLOB)
    except FileMissing:
        return None
    except FileTooLarge:
        return _large_state_at(resolved)
    except PathIsSymlink:
        return _link_state_at(resolved)
    blob = likely if likely is not None and found.content == content else blob_id(found.content)
    if is_placeholder(found.content):
        found = replace(found, content=text_of_state(found.content, blob))
    return FileState(blob=blob, mode=found.mode), found


def large_files(tree: Tree, paths: Iterable[str]) -> list[bytes]:
    """Return the recorded paths of the large files among `paths`. A path that can't be inspected counts as none."""
    found: list[bytes] = []
    for path in paths:
        try:
            # A cheap first test that may follow links out of the tree; `locate` confirms the result within it.
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
    """Return the inodes of those files at recorded paths that have more than one name."""
    inodes = set()
    for path in paths:
        with suppress(OSError):
            seen = os.lstat(path, dir_fd=tree.fd)
            if stat.S_ISREG(seen.st_mode) and seen.st_nlink > 1:
                inodes.add(seen.st_ino)
    return inodes


def _link_state_at(resolved: ResolvedPath) -> tuple[FileState, FileOnDisk] | None:
    try:
        found = read_link_at(resolved)
    except FileMissing:
        return None
    return FileState(blob=blob_id(found.content), mode=found.mode), found


def _large_state_at(resolved: ResolvedPath) -> tuple[FileState, FileOnDisk] | None:
    from objstore.disk.fs.content_source import hashed_at

    try:
        blob, looked = hashed_at(resolved, limit=MAX_CHUNKED)
    except FileMissing:
        return None
    found = FileOnDisk(content=placeholder(blob), stat=looked)
    return FileState(blob=blob, mode=found.mode), found
