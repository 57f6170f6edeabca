"""Open files inside `.cas` without following symlinks.

A store may come out of an archive whose author put links into it, or pipes, which block their reader for ever. So the
opener of a store first checks that no name in it is a link or a pipe, and every file in it is later opened without
following a link and without waiting.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from objstore.disk.fs.disk import Disk, open_or_create, read_all
from objstore.disk.fs.reserved_names import IGNORE_NAME
from objstore.values.errors import PermissionRefused, StoreHardLinked, StoreLinked, StoreNotRegular

__all__ = [
    "open_store_file",
    "open_store_folder",
    "read_store_file",
    "refuse_links",
    "require_no_symlink",
    "require_single_link",
    "write_derived_file",
]

_NOT_A_FILE: Final = frozenset({errno.ENXIO, errno.EISDIR, errno.ENODEV})
"""The errors of opening a socket, a pipe without a reader, a folder for writing, or a device."""

_ATTEMPTS: Final = 10
"""How often a file is written again after another process cleared it away: each process does so once."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def refuse_links(store: str) -> None:
    """Check that no name in a store's folder is a symbolic link, a hard link, a pipe, or a device.

    The store's `.gitignore` may have other names: nothing ever writes to it.

    Raises StoreLinked, StoreHardLinked, StoreNotRegular, PermissionRefused.
    """
    # One listing answers for all names, and costs as much as two or three calls of lstat.
    try:
        with os.scandir(store) as names:
            others = []
            for name in names:
                if not name.is_file(follow_symlinks=False):
                    others.append(name)
                elif name.name != IGNORE_NAME and _has_other_names(name):
                    require_single_link(name.path)
    except PermissionError as error:
        raise PermissionRefused(store) from error
    for name in others:
        if name.is_symlink():
            raise StoreLinked(name.path)
        if not name.is_dir(follow_symlinks=False) and os.path.lexists(name.path):
            raise StoreNotRegular(name.path)


def _has_other_names(name: os.DirEntry[str]) -> bool:
    try:
        return name.stat(follow_symlinks=False).st_nlink > 1
    except FileNotFoundError:
        return False


def require_single_link(path: str) -> None:
    """Check that a file has no name outside its folder, because a write to the file would change that one, too.

    In its folder, a file briefly has two names while it is created. Raises StoreHardLinked.
    """
    folder = os.path.dirname(path)
    for _ in range(_ATTEMPTS):
        try:
            found = os.lstat(path)
            with os.scandir(folder) as names:
                inodes = [name.inode() for name in names]
            if os.lstat(path).st_nlink <= inodes.count(found.st_ino):
                return
        except FileNotFoundError:
            continue  # a name was removed in between; read the folder again
    if os.path.lexists(path):
        raise StoreHardLinked(path)


def require_no_symlink(path: str) -> None:
    """Check that a name is no symbolic link; it may be missing. Raises StoreLinked."""
    if os.path.islink(path):
        raise StoreLinked(path)


def open_store_file(path: str, flags: int) -> int:
    """Return a descriptor of a store's file, opened with these flags, without waiting as opening a pipe would.

    Raises StoreLinked, StoreNotRegular, and OSError as os.open does; StoreHardLinked if it is opened for writing.
    """
    try:
        flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = open_or_create(path, flags & ~os.O_CREAT) if flags & os.O_CREAT else os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreLinked(path) from error
        if error.errno in _NOT_A_FILE:
            raise StoreNotRegular(path) from error
        raise
    found = os.fstat(fd)
    try:
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR):
            require_single_link(path)
    except BaseException:
        os.close(fd)
        raise
    if stat.S_ISREG(found.st_mode):
        return fd
    os.close(fd)
    raise StoreNotRegular(path)


def read_store_file(path: str, most: int | None = None) -> bytes:
    """Return the content of a store's file, or its first `most` bytes.

    Raises StoreLinked, StoreNotRegular, and OSError as os.open does.
    """
    fd = open_store_file(path, os.O_RDONLY)
    try:
        return read_all(fd, os.fstat(fd).st_size) if most is None else os.read(fd, most)
    finally:
        os.close(fd)


@contextmanager
def open_store_folder(path: str) -> Iterator[int]:
    """Hold a store's folder open, to list and change it. Raises StoreLinked, and OSError as os.open does."""
    try:
        fd = os.open(path, _FOLDER)
    except OSError:
        require_no_symlink(path)
        raise
    try:
        yield fd
    finally:
        os.close(fd)


def write_derived_file(disk: Disk, store: str, folder: str, name: str, content: bytes) -> None:
    """Write a file whole into one of the store's folders, and create the folder if it is missing.

    The file need not survive a power cut: its content can be derived again, or is of no use then. The caller needs no
    lock. Raises StoreLinked, FileNotFoundError if there is no store, and what Disk raises.
    """
    place = os.path.join(store, folder)
    with suppress(FileExistsError):
        disk.make_store_folder(place)
    with open_store_folder(os.path.join(store, "tmp")) as scratch, open_store_folder(place) as target:
        for attempts_left in reversed(range(_ATTEMPTS)):
            staged = disk.stage_derived(scratch, content, name)
            try:
                disk.replace_derived(scratch, staged, target, name)
            except FileNotFoundError:
                # Another process, before its first write, cleared the scratch folder and this file with it.
                if not attempts_left:
                    raise
            else:
                return
