"""Facts: what the system says of a file, to see whether it changed; and how such facts about many files are kept.

Packed by columns, not file by file, because so they come out of the system's own tables without an object for each.
"""

import stat
import struct
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from objstore.fastclass import NamedTuple

__all__ = [
    "SIGNATURE_SIZE",
    "FolderKey",
    "FolderSignature",
    "StatSignature",
    "inodes_of",
    "pack_signatures",
    "read_signature_fields",
    "unpack_signatures",
]

read_signature_fields: Final = attrgetter("st_ctime_ns", "st_mtime_ns", "st_size", "st_ino", "st_mode")
"""Takes the values of `Facts`, in their order, from what the system says of a file."""

_SECOND: Final = 1_000_000_000
_LINK: Final = 0o120000


def _form(count: int) -> str:
    """Return how facts about so many files are packed: their times, then all sizes, all inodes, all modes."""
    return f"<{4 * count}q{count}Q{count}Q{count}I"


SIGNATURE_SIZE: Final = struct.calcsize(_form(1))
"""Bytes that are kept for each file."""


class StatSignature(NamedTuple):
    """What is asked of a file to see whether it changed; times in nanoseconds."""

    ctime: int
    mtime: int
    size: int
    inode: int
    mode: int  # kind and permission bits

    @property
    def tree_mode(self) -> int:
        """Return its mode as trees have it."""
        return _LINK if stat.S_ISLNK(self.mode) else self.mode


class FolderKey(NamedTuple):
    """What is asked of a folder to see whether names came or went; times in nanoseconds."""

    device: int
    inode: int
    mtime: int
    ctime: int


class FolderSignature(NamedTuple):
    """What is compared to see whether anything in a folder changed."""

    path: bytes  # relative to the workspace
    key: FolderKey | None  # what is asked of the folder itself; None: nothing, its known files alone count
    names: bytes  # of its files and links, with a NUL between two
    facts: bytes  # of each of them, packed; or what stands for that


def pack_signatures(facts: Sequence[tuple[int, ...]]) -> bytes:
    """Return facts about several files as bytes that are equal if and only if the facts are."""
    times = [part for ctime, mtime, *_ in facts for time in (mtime, ctime) for part in divmod(time, _SECOND)]
    return struct.pack(_form(len(facts)), *times, *[fact[at] for at in (2, 3, 4) for fact in facts])


def inodes_of(packed: bytes) -> tuple[int, ...]:
    """Return the inodes of the files whose facts `pack_facts` packed."""
    count = len(packed) // SIGNATURE_SIZE
    return struct.unpack_from(f"<{count}Q", packed, struct.calcsize(f"<{4 * count}q{count}Q"))


def unpack_signatures(packed: bytes) -> Iterator[StatSignature]:
    """Yield the facts that `pack_facts` packed."""
    count = len(packed) // SIGNATURE_SIZE
    numbers = struct.unpack(_form(count), packed)
    times = [numbers[at : 4 * count : 4] for at in range(4)]
    others = [numbers[at * count : (at + 1) * count] for at in (4, 5, 6)]
    for mtime, mtime_ns, ctime, ctime_ns, size, inode, mode in zip(*times, *others, strict=True):
        yield StatSignature(ctime * _SECOND + ctime_ns, mtime * _SECOND + mtime_ns, size, inode, mode)
