"""Premises: what a store's folder holds lies there itself; a link in it would lead to what is somebody else's.

A store may come out of an archive, and who made that may have put links in it. So whoever opens a store sees first that
no name in it is one, and what is opened in it later is opened without following any.
"""

import errno
import os
from collections.abc import Iterator

from objstore.annotations import Final
from objstore.disk import read_all
from objstore.errors import PermissionRefused, StoreLinked
from objstore.standard import contextmanager

__all__ = ["own_bytes", "own_file", "own_folder", "refuse_link", "refuse_links"]

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def refuse_links(store: str) -> None:
    """See that no name in a store's folder is a symbolic link. Raises StoreLinked, PermissionRefused."""
    # One listing says it of all names, at the price of looking at two or three of them.
    try:
        with os.scandir(store) as names:
            link = next((name.path for name in names if name.is_symlink()), None)
    except PermissionError as error:
        raise PermissionRefused(store) from error
    if link is not None:
        raise StoreLinked(link)


def refuse_link(path: str) -> None:
    """See that one name is no symbolic link; there may be nothing. Raises StoreLinked."""
    if os.path.islink(path):
        raise StoreLinked(path)


def own_file(path: str, flags: int) -> int:
    """Return a file of the store's, opened with these flags. Raises StoreLinked, and OSError as open does."""
    try:
        return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreLinked(path) from error
        raise


def own_bytes(path: str, most: int | None = None) -> bytes:
    """Return what a file of the store's holds, or its first `most` bytes.

    Raises StoreLinked, and OSError as open does.
    """
    fd = own_file(path, os.O_RDONLY)
    try:
        return read_all(fd, os.fstat(fd).st_size) if most is None else os.read(fd, most)
    finally:
        os.close(fd)


@contextmanager
def own_folder(path: str) -> Iterator[int]:
    """Hold a folder of the store's open, to be listed and changed. Raises StoreLinked, and OSError as open does."""
    try:
        fd = os.open(path, _FOLDER)
    except OSError:
        refuse_link(path)
        raise
    try:
        yield fd
    finally:
        os.close(fd)
