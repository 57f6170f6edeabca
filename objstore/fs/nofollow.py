"""Premises: what a store's folder holds lies there itself; a link in it would lead to what is somebody else's.

A store may come out of an archive, and who made that may have put links in it, or pipes, from which whoever reads one
waits for ever. So whoever opens a store sees first that no name in it is one, and what is opened in it later is opened
without following any link, and without waiting.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from objstore.errors import PermissionRefused, StoreHardLinked, StoreLinked, StoreNotRegular
from objstore.fs.disk import Disk, read_all
from objstore.fs.reserved_names import IGNORE_NAME

__all__ = [
    "open_store_file",
    "open_store_folder",
    "read_store_file",
    "refuse_links",
    "require_no_symlink",
    "require_single_link",
    "write_derived_file",
]

_NO_FILE: Final = frozenset({errno.ENXIO, errno.EISDIR, errno.ENODEV})
"""How a socket, a pipe that nobody reads, a folder that is to be written to, or a device refuses to be opened."""

_TRIES: Final = 10
"""How often a file is written anew because somebody has cleared it away: each process does so once."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def refuse_links(store: str) -> None:
    """See that no name in a store's folder is a link, symbolic or hard, nor what nobody can read to its end.

    The file that makes git ignore the store may have other names: it is never written to.

    Raises StoreLinked, StoreHardLinked, StoreNotRegular, PermissionRefused.
    """
    # One listing says it of all names, at the price of looking at two or three of them.
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
        if not name.is_dir(follow_symlinks=False) and _is_pipe_or_device(name):
            raise StoreNotRegular(name.path)


def _has_other_names(name: os.DirEntry[str]) -> bool:
    try:
        return name.stat(follow_symlinks=False).st_nlink > 1
    except FileNotFoundError:
        return False


def require_single_link(path: str) -> None:
    """See that a file has no name outside its folder: who writes to it would write to that, too.

    In the folder itself it may have two for a moment, as it is made. Raises StoreHardLinked.
    """
    folder = os.path.dirname(path)
    for _ in range(_TRIES):
        try:
            found = os.lstat(path)
            with os.scandir(folder) as names:
                inodes = [name.inode() for name in names]
            if os.lstat(path).st_nlink <= inodes.count(found.st_ino):
                return
        except FileNotFoundError:
            continue  # names come and go; the next look has it right
    if os.path.lexists(path):
        raise StoreHardLinked(path)


def _is_pipe_or_device(name: os.DirEntry[str]) -> bool:
    """Return whether what is no file, link or folder is a pipe or a device.

    A socket is let be: hooks of an earlier version may have left `hook.sock`.
    """
    try:
        return not stat.S_ISSOCK(name.stat(follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def require_no_symlink(path: str) -> None:
    """See that one name is no symbolic link; there may be nothing. Raises StoreLinked."""
    if os.path.islink(path):
        raise StoreLinked(path)


def open_store_file(path: str, flags: int) -> int:
    """Return a file of the store's, opened with these flags. It never waits, as opening a pipe does.

    Raises StoreLinked, StoreNotRegular, and OSError as open does; StoreHardLinked if it is to be written to.
    """
    try:
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreLinked(path) from error
        if error.errno in _NO_FILE:
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
    """Return what a file of the store's holds, or its first `most` bytes.

    Raises StoreLinked, StoreNotRegular, and OSError as open does.
    """
    fd = open_store_file(path, os.O_RDONLY)
    try:
        return read_all(fd, os.fstat(fd).st_size) if most is None else os.read(fd, most)
    finally:
        os.close(fd)


@contextmanager
def open_store_folder(path: str) -> Iterator[int]:
    """Hold a folder of the store's open, to be listed and changed. Raises StoreLinked, and OSError as open does."""
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
    """Put a file in its place, whole, in one of the store's folders, which is made if it is missing.

    It need not outlive a power cut: what it says can be found out again, or is of no use then. Who does so needs no
    lock. Raises StoreLinked, FileNotFoundError where there is no store, and what Disk raises.
    """
    place = os.path.join(store, folder)
    with suppress(FileExistsError):
        disk.make_store_folder(place)
    with open_store_folder(os.path.join(store, "tmp")) as scratch, open_store_folder(place) as shelf:
        for left in reversed(range(_TRIES)):
            staged = disk.stage(scratch, content, None, 0o600, name)
            try:
                disk.replace_derived(scratch, staged, shelf, name)
            except FileNotFoundError:
                # A process that has not written before clears away what it finds there, this among it.
                if not left:
                    raise
            else:
                return
