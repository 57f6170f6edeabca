"""Sources: where the bytes of a large state can be read, piece by piece, before the store has them."""

import os
import stat
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from objstore.errors import FileChanged, FileMissing, FileTooLarge, PathNotRegular
from objstore.fs.confined_path import ResolvedPath, Tree, open_file
from objstore.fs.disk import failure, is_same_file
from objstore.model.ids import BlobHasher, BlobId

__all__ = ["PIECE", "FileSource", "MemorySource", "Source", "hashed_at"]

PIECE: Final = 1 << 20
"""Bytes of a large file that are read at once."""

_TRIES: Final = 5


class Source(Protocol):
    """Bytes that can be read from their beginning as often as is needed."""

    @property
    def name(self) -> str:
        """Return the path of the file that has them, or shall have them."""
        ...

    @property
    def size(self) -> int:
        """Return how many bytes there are."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """Yield them. Raises FileChanged, at the end at the latest, if they are not what they were."""
        ...


class MemorySource(NamedTuple):
    """Bytes that somebody has in memory."""

    path: bytes
    content: bytes

    @property
    def name(self) -> str:
        """Return the path of the file that shall have them."""
        return os.fsdecode(self.path)

    @property
    def size(self) -> int:
        """Return how many bytes there are."""
        return len(self.content)

    def pieces(self) -> Iterator[bytes]:
        """Yield them."""
        view = memoryview(self.content)
        for start in range(0, len(view), PIECE):
            yield bytes(view[start : start + PIECE])


class FileSource(NamedTuple):
    """A regular file that was looked at."""

    tree: Tree
    path: bytes
    looked: os.stat_result

    @property
    def name(self) -> str:
        """Return its path."""
        return os.fsdecode(self.path)

    @property
    def size(self) -> int:
        """Return how many bytes it had then."""
        return self.looked.st_size

    def pieces(self) -> Iterator[bytes]:
        """Yield its bytes. Raises FileChanged if it is not as it was then, and what Tree.locate raises."""
        with self.tree.locate(self.name, as_spelt=False) as resolved:
            fd = open_file(resolved)
            try:
                yield from _pieces(fd, resolved.path, self.looked)
            finally:
                os.close(fd)


def hashed_at(resolved: ResolvedPath, *, limit: int) -> tuple[BlobId, os.stat_result]:
    """Return the blob id of the regular file at `spot`, read piece by piece while nobody wrote to it, and its facts.

    Raises as paths.read_at does; FileTooLarge over `limit`.
    """
    if resolved.missing:
        raise FileMissing(resolved.path)
    for _ in range(_TRIES):
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


def _pieces(fd: int, path: str, looked: os.stat_result) -> Iterator[bytes]:
    try:
        if not is_same_file(looked, os.fstat(fd)):
            raise FileChanged(path)
        left = looked.st_size
        while left > 0:
            piece = os.read(fd, min(PIECE, left))
            if not piece:
                raise FileChanged(path)
            left -= len(piece)
            yield piece
        if not is_same_file(looked, os.fstat(fd)):
            raise FileChanged(path)
    except OSError as error:
        raise failure(error, path) from error
