"""Facts: what the system says of a file, to see whether it changed; and how such facts about many files are kept.

Packed by columns, not file by file, because so they come out of the system's own tables without an object for each.
"""

import stat
import struct
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter

from objstore.annotations import Final
from objstore.values import NamedTuple

__all__ = ["COLUMNS", "FACTS", "FACTS_SIZE", "Facts", "FolderKey", "Glimpse", "pack_facts", "unpack_facts"]

FACTS: Final = attrgetter("st_ctime_ns", "st_mtime_ns", "st_size", "st_ino", "st_mode")
"""Takes the values of `Facts`, in their order, from what the system says of a file."""

COLUMNS: Final = "qIqIQQH"
"""Seconds and nanoseconds of both times, size, inode, mode: as struct spells them."""

FACTS_SIZE: Final = struct.calcsize("<" + COLUMNS)
"""Bytes that are kept for each file."""

_SECOND: Final = 1_000_000_000
_LINK: Final = 0o120000


class Facts(NamedTuple):
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


class Glimpse(NamedTuple):
    """What is compared to see whether anything in a folder changed."""

    path: bytes  # relative to the workspace
    key: FolderKey | None  # what is asked of the folder itself; None: nothing, its known files alone count
    names: bytes  # of its files and links, with a NUL between two
    facts: bytes  # of each of them, packed


def pack_facts(facts: Sequence[tuple[int, ...]]) -> bytes:
    """Return facts about several files as bytes that are equal if and only if the facts are."""
    if not facts:
        return b""
    ctimes, mtimes, *others = zip(*facts, strict=True)
    times = [part for column in (ctimes, mtimes) for part in zip(*map(_parts, column), strict=True)]
    return struct.pack(_form(len(facts)), *chain.from_iterable([*times, *others]))


def unpack_facts(packed: bytes) -> Iterator[Facts]:
    """Yield the facts that `pack_facts` packed."""
    count = len(packed) // FACTS_SIZE
    numbers = struct.unpack(_form(count), packed)
    columns = [numbers[at : at + count] for at in range(0, len(numbers), count)] if count else []
    for ctime, ctime_ns, mtime, mtime_ns, size, inode, mode in zip(*columns, strict=True):
        yield Facts(ctime * _SECOND + ctime_ns, mtime * _SECOND + mtime_ns, size, inode, mode)


def _parts(time: int) -> tuple[int, int]:
    return divmod(time, _SECOND)


def _form(count: int) -> str:
    return "<" + "".join(f"{count}{column}" for column in COLUMNS)
