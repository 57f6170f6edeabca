"""Pack and compare stat signatures, which show whether a file may have changed.

Signatures of many files are packed by columns, so that they can be read from the stat cache's tables without an object
for each file.
"""

import stat
import struct
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Final

from objstore.values.fastclass import NamedTuple

__all__ = [
    "COLUMNS",
    "SIGNATURE_SIZE",
    "FolderKey",
    "FolderSignature",
    "StatSignature",
    "changed_since",
    "inodes_of",
    "pack_signatures",
    "put_signature",
    "read_signature_fields",
    "signature_at",
    "tree_modes",
    "unpack_signatures",
]

read_signature_fields: Final = attrgetter("st_ctime_ns", "st_mtime_ns", "st_size", "st_ino", "st_mode")
"""Return the values of a StatSignature, in its order, from an os.stat_result."""

_SECOND: Final = 1_000_000_000
_LINK: Final = 0o120000
_BLOCK: Final = 256
"""Signatures that are compared at once."""


def _struct_format(count: int) -> str:
    """Return the struct format for `count` signatures: all times, then all sizes, all inodes, all modes."""
    return f"<{4 * count}q{count}Q{count}Q{count}I"


SIGNATURE_SIZE: Final = struct.calcsize(_struct_format(1))
"""Bytes that one packed signature takes."""


COLUMNS: Final = (32, 8, 8, 4)
"""Bytes that one file takes in each column of packed signatures: both times, size, inode, mode."""


class StatSignature(NamedTuple):
    """The parts of a file's status that show whether it may have changed; times in nanoseconds."""

    ctime: int
    mtime: int
    size: int
    inode: int
    mode: int  # kind and permission bits

    @property
    def tree_mode(self) -> int:
        """Return the mode as trees record it."""
        return _LINK if stat.S_ISLNK(self.mode) else self.mode


class FolderKey(NamedTuple):
    """The parts of a folder's status that show whether names were added or removed; times in nanoseconds."""

    device: int
    inode: int
    mtime: int
    ctime: int


class FolderSignature(NamedTuple):
    """The values that show whether anything in a folder changed."""

    path: bytes  # relative to the workspace
    key: FolderKey | None  # of the folder itself; None: only its known files are compared
    names: bytes  # of its files and links, separated by NUL
    facts: bytes  # their packed signatures, or a digest of these


def pack_signatures(facts: Sequence[tuple[int, ...]]) -> bytes:
    """Return the signatures of several files as bytes, which are equal if and only if the signatures are."""
    # In blocks: the numbers of a hundred thousand files would take 30 MB at once.
    blocks = [facts[at : at + _BLOCK] for at in range(0, len(facts), _BLOCK)]
    columns = [[*map(_packed_times, blocks)]]
    for at, letter in ((2, "Q"), (3, "Q"), (4, "I")):
        columns.append([struct.pack(f"<{len(block)}{letter}", *[fact[at] for fact in block]) for block in blocks])
    return b"".join(chain.from_iterable(columns))


def _packed_times(facts: Sequence[tuple[int, ...]]) -> bytes:
    times = [part for ctime, mtime, *_ in facts for time in (mtime, ctime) for part in divmod(time, _SECOND)]
    return struct.pack(f"<{len(times)}q", *times)


def inodes_of(packed: bytes) -> tuple[int, ...]:
    """Return the inodes in the packed signatures."""
    count = len(packed) // SIGNATURE_SIZE
    return struct.unpack_from(f"<{count}Q", packed, struct.calcsize(f"<{4 * count}q{count}Q"))


def tree_modes(packed: bytes) -> list[int]:
    """Return the modes in the packed signatures as trees record them."""
    count = len(packed) // SIGNATURE_SIZE
    modes = struct.unpack_from(f"<{count}I", packed, struct.calcsize(f"<{4 * count}q{2 * count}Q"))
    return [_LINK if stat.S_ISLNK(mode) else mode for mode in modes]


def changed_since(packed: bytes | bytearray, clock: int) -> list[int]:
    """Return the positions of the packed signatures whose ctime is `clock` (ns) or later."""
    count, second = len(packed) // SIGNATURE_SIZE, clock // _SECOND
    times = memoryview(packed)[: 32 * count].cast("q")
    seconds = times[2::4]
    # Nearly all are older. The greatest of a block takes half as long as a list of its numbers.
    blocks = [at for at in range(0, count, _BLOCK) if max(seconds[at : at + _BLOCK]) >= second]
    near = [at for start in blocks for at in range(start, min(start + _BLOCK, count)) if seconds[at] >= second]
    return [at for at in near if times[4 * at + 2] * _SECOND + times[4 * at + 3] >= clock]


def put_signature(packed: bytearray, at: int, signature: StatSignature) -> None:
    """Put another signature at a position among packed ones."""
    count, alone = len(packed) // SIGNATURE_SIZE, pack_signatures([signature])
    start = own = 0
    for width in COLUMNS:
        packed[start + at * width : start + (at + 1) * width] = alone[own : own + width]
        start += count * width
        own += width


def signature_at(packed: bytes | bytearray, at: int) -> StatSignature:
    """Return one of the packed signatures."""
    count = len(packed) // SIGNATURE_SIZE
    mtime, mtime_ns, ctime, ctime_ns = struct.unpack_from("<4q", packed, struct.calcsize(f"<{4 * at}q"))
    (size,) = struct.unpack_from("<Q", packed, struct.calcsize(f"<{4 * count}q{at}Q"))
    (inode,) = struct.unpack_from("<Q", packed, struct.calcsize(f"<{4 * count}q{count + at}Q"))
    (mode,) = struct.unpack_from("<I", packed, struct.calcsize(f"<{4 * count}q{2 * count}Q{at}I"))
    return StatSignature(ctime * _SECOND + ctime_ns, mtime * _SECOND + mtime_ns, size, inode, mode)


def unpack_signatures(packed: bytes) -> Iterator[StatSignature]:
    """Yield the packed signatures."""
    count = len(packed) // SIGNATURE_SIZE
    numbers = struct.unpack(_struct_format(count), packed)
    times = [numbers[at : 4 * count : 4] for at in range(4)]
    others = [numbers[at * count : (at + 1) * count] for at in (4, 5, 6)]
    for mtime, mtime_ns, ctime, ctime_ns, size, inode, mode in zip(*times, *others, strict=True):
        yield StatSignature(ctime * _SECOND + ctime_ns, mtime * _SECOND + mtime_ns, size, inode, mode)
