"""Note which folders on other file systems have staged files, so that a later process can remove leftovers.

A rename can't cross mounts, not even of one file system. So the new bytes of a file on another mount are staged in the
file's own folder instead of `.cas/tmp`, which each process clears before its first write. A note in `.cas/tmp` names
that folder, from before the first file is staged there until the last is gone. So a process that removes the note also
removes what a killed process left in that folder.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from objstore.disk.fs.confined_path import MAX_PATH, Tree
from objstore.disk.fs.disk import Disk, mount_of
from objstore.disk.fs.reserved_names import STAGING_NOTE_PREFIX, STORE_NAME
from objstore.values.errors import CasError, DiskFailed, FileMissing, PathInvalid, PathOutside

__all__ = ["clear_staging_folder", "leftover_staging_paths", "note_staging_folder"]

_STAGED: Final = re.compile(r"\.cas-[0-9a-f]{16}", re.ASCII)
"""The names that Disk.stage gives."""


def note_staging_folder(disk: Disk, scratch: int, folder: str) -> str:
    """Write a note to the open `scratch` that files are staged in a folder of the workspace; return the note's name.

    Raises what the disk raises.
    """
    staged = disk.stage(scratch, os.fsencode(folder) or b".", None, 0o600, folder)
    name = f"{STAGING_NOTE_PREFIX}{os.urandom(8).hex()}"
    disk.rename_new(scratch, staged, scratch, name)
    return name


def clear_staging_folder(tree: Tree, disk: Disk, scratch: int, note: str) -> bool:
    """Remove the staged files in the folder of a note, under the writer lock; return whether the note may be removed.

    It may not while the folder's file system is not mounted, or while a leftover can't be removed.
    """
    try:
        with _opened(tree, scratch, note) as folder:
            if folder is not None:
                for name in _staged_in(folder):
                    with suppress(FileNotFoundError):
                        disk.unlink(folder, name)
    except (PathInvalid, PathOutside, FileMissing):
        return True  # the folder no longer exists
    except (CasError, OSError):
        return False
    return True


def leftover_staging_paths(root: str) -> list[str]:
    """Return the paths of staged files, in use or left over, in the folders that the notes of a workspace name."""
    scratch = os.path.join(root, STORE_NAME, "tmp")
    found: list[str] = []
    with suppress(OSError, CasError):
        tree = Tree(root)
        try:
            fd = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                for note in sorted(name for name in os.listdir(fd) if name.startswith(STAGING_NOTE_PREFIX)):
                    with suppress(OSError, CasError), _opened(tree, fd, note) as folder:
                        names = [] if folder is None else _staged_in(folder)
                        found += [os.path.normpath(os.path.join(_folder_of(fd, note), name)) for name in names]
            finally:
                os.close(fd)
        finally:
            tree.close()
    return found


# ---- inside


def _folder_of(scratch: int, note: str) -> str:
    """Return the folder that a note names. Raises OSError, and PathInvalid for a note that a power cut left empty."""
    fd = os.open(note, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=scratch)
    try:
        folder = os.fsdecode(os.read(fd, MAX_PATH))
    finally:
        os.close(fd)
    if not folder:
        raise PathInvalid(folder, "empty")
    return folder


@contextmanager
def _opened(tree: Tree, scratch: int, note: str) -> Iterator[int | None]:
    """Open the folder of a note (None: it is gone). Raises OSError, and CasError as Tree.locate.

    Raises DiskFailed if the folder is now on the store's own file system: then another one is to be mounted there.
    """
    within = os.path.normpath(os.path.join(_folder_of(scratch, note), ".cas-"))
    with tree.locate(within, changing=True, as_on_disk=False) as resolved:
        if mount_of(resolved.folder) == mount_of(scratch):
            raise DiskFailed(resolved.path, "The disk is not mounted")
        if resolved.missing or resolved.path != within:
            yield None
            return
        # The descriptor may be an O_PATH one, which can't be listed.
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=resolved.folder)
        try:
            yield fd
        finally:
            os.close(fd)


def _staged_in(folder: int) -> list[str]:
    found = []
    for name in filter(_STAGED.fullmatch, os.listdir(folder)):
        with suppress(FileNotFoundError):
            if stat.S_IFMT(os.lstat(name, dir_fd=folder).st_mode) in {stat.S_IFREG, stat.S_IFLNK}:
                found.append(name)
    return sorted(found)
