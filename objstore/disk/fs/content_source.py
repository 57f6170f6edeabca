"""Read the bytes of a large file state piece by piece, from memory or from a file, before it is stored."""

import os
import stat
from collections.abc import Iterator
from typing import Final, Protocol

from objstore.disk.fs.confined_path import ResolvedPath, Tree, open_file
from objstore.disk.fs.disk import failure, is_same_file
from objstore.model.ids import BlobHasher, BlobId
from objstore.values.errors import FileChanged, FileMissing, FileTooLarge, PathNotRegular
from objstore.values.fastclass import NamedTuple

__all__ = ["PIECE", "FileSource", "MemorySource", "Source", "hashed_at"]

PIECE: Final = 1 << 20
"""Bytes of a large file that are read at once."""

_ATTEMPTS: Final = 5


class Source(Protocol):
    """Bytes that can be read from their beginning as often as needed."""

    @property
    def name(self) -> str:
        """Return the path of the file that has the bytes, or will have them."""
        ...

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes in pieces. Raises FileChanged, at the end at the latest, if they have changed."""
        ...


class MemorySource(NamedTuple):
    """Bytes in memory."""

    path: bytes
    content: bytes

    @property
    def name(self) -> str:
        """Return the path of the file that will have the bytes."""
        return os.fsdecode(self.path)

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return len(self.content)

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes in pieces."""
        view = memoryview(self.content)
        for start in range(0, len(view), PIECE):
            yield bytes(view[start : start + PIECE])


class FileSource(NamedTuple):
    """A regular file, expected to be unchanged since its status was read."""

    tree: Tree
    path: bytes
    seen_stat: os.stat_result

    @property
    def name(self) -> str:
        """Return the file's path."""
        return os.fsdecode(self.path)

    @property
    def size(self) -> int:
        """Return the number of bytes that the file had when its status was read."""
        return self.seen_stat.st_size

    def pieces(self) -> Iterator[bytes]:
        """Yield the file's bytes.

        Raises what Tree.locate raises, and FileChanged if the status is no longer `seen_stat`.
        """
        with self.tree.locate(self.name, as_on_disk=False) as resolved:
            fd = open_file(resolved)
            try:
                yield from _pieces(fd, resolved.path, self.seen_stat)
            finally:
                os.close(fd)


def hashed_at(resolved: ResolvedPath, *, limit: int) -> tuple[BlobId, os.stat_result]:
    """Return the blob id and the status of the regular file at `resolved`.

    The file is read piece by piece, during a time without writes to it. Raises as confined_path.read_at; FileTooLarge
    over `limit` bytes.
    """
    if resolved.missing:
        raise FileMissing(resolved.path)
    for _ in range(_ATTEMPTS):
        fd = open_file(resolved)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise PathNotRegular(resolved.path)
            if found.st_size > limit:
                raise FileTooLarge(resolved.path, found.st_size, limit)
            hasher = BlobHasher()
            for piece in _pieces(fd, resolved.path, found):
                hasher.update(piece)
            return hasher.blob_id(), found
        except FileChanged:
            continue
        finally:
            os.close(fd)
    raise FileChanged(resolved.path)


def _pieces(fd: int, path: str, seen_stat: os.stat_result) -> Iterator[bytes]:
    try:
        if not is_same_file(seen_stat, os.fstat(fd)):
            raise FileChanged(path)
        remaining = seen_stat.st_size
        while remaining > 0:
            piece = os.read(fd, min(PIECE, remaining))
            if not piece:
                raise FileChanged(path)
            remaining -= len(piece)
            yield piece
        if not is_same_file(seen_stat, os.fstat(fd)):
            raise FileChanged(path)
    except OSError as error:
        raise failure(error, path) from error
