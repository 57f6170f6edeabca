"""Find which files of a large folder must be looked at again, from packed stat signatures.

No object is made for a file that is as it was at the last scan: signatures and blobs are compared, cut and joined as
columns of bytes, in the order of the names. A scan of a small folder needs no ctypes, which this loads.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, Self

from objstore.disk.fs.stat_signature import COLUMNS, StatSignature, changed_since, put_signature, signature_at
from objstore.model.ids import HASH_SIZE, BlobId
from objstore.values.fastclass import variable
from objstore.worktree.stat_cache import UNKNOWN, CachedFolder

__all__ = ["FolderFiles"]

_MOST_NAMES: Final = 1_000
"""Names that came or went: more are not worth moving columns for."""

_BLOCK: Final = 256
"""Files that are compared at once."""


@variable
class FolderFiles:
    """The files of one folder, as they were at the last scan where that is still so."""

    names: list[bytes]  # ascending
    facts: bytearray  # their packed stat signatures now
    blobs: bytearray  # their blobs, one after the other; UNKNOWN: not read
    before: bytes  # the packed stat signatures of the last scan; zeros: there was no such file
    gone: frozenset[bytes]  # names of files that are no longer there

    @classmethod
    def compared(cls, old: CachedFolder, names: list[bytes], facts: bytes) -> Self | None:
        """Return the files with these names and stat signatures; None if too many names came or went."""
        if names == old.names:
            return cls(
                names=names,
                facts=bytearray(facts),
                blobs=bytearray(old.blobs),
                before=old.facts,
                gone=frozenset(),
            )
        gone, new = _apart(old.names, names)
        if len(gone) + len(new) > _MOST_NAMES:
            return None
        cut, put = ([bisect_left(known, name) for name in some] for known, some in ((old.names, gone), (names, new)))
        return cls(
            names=names,
            facts=bytearray(facts),
            blobs=_respliced(old.blobs, (HASH_SIZE,), cut, put),
            before=bytes(_respliced(old.facts, COLUMNS, cut, put)),
            gone=frozenset(gone),
        )

    def due(self, clock: int) -> list[int]:
        """Return the positions of the files to look at: new, changed, not read, or changed at `clock` (ns) or later."""
        found = set(_differing(self.before, self.facts))
        at = self.blobs.find(UNKNOWN)
        while at >= 0:
            if not at % HASH_SIZE:
                found.add(at // HASH_SIZE)
            at = self.blobs.find(UNKNOWN, (at // HASH_SIZE + 1) * HASH_SIZE)
        return sorted(found.union(changed_since(self.facts, clock)))

    def signature(self, at: int) -> StatSignature:
        """Return the stat signature of the file at a position."""
        return signature_at(self.facts, at)

    def known(self, at: int) -> tuple[StatSignature, BlobId | None]:
        """Return what the last scan saw of the file at a position (zeros and None: there was none)."""
        was = signature_at(self.before, at)
        blob = BlobId(bytes(self.blobs[at * HASH_SIZE : (at + 1) * HASH_SIZE]))
        return was, blob if any(was) else None

    def put(self, at: int, signature: StatSignature, blob: BlobId) -> None:
        """Set what is known of the file at a position."""
        put_signature(self.facts, at, signature)
        self.blobs[at * HASH_SIZE : (at + 1) * HASH_SIZE] = blob


def _apart(before: list[bytes], now: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return the names that are only in the first, and those only in the second, of two lists in ascending order.

    Blocks that are equal are compared as a whole: sets of all names would take as long as to list the folder.
    """
    gone: list[bytes] = []
    new: list[bytes] = []
    at = to = 0
    while at < len(before) and to < len(now):
        if before[at : at + _BLOCK] == now[to : to + _BLOCK]:
            at, to = at + _BLOCK, to + _BLOCK
            continue
        for _ in range(_BLOCK):
            if at == len(before) or to == len(now):
                break
            if before[at] == now[to]:
                at, to = at + 1, to + 1
            elif before[at] < now[to]:
                gone.append(before[at])
                at += 1
            else:
                new.append(now[to])
                to += 1
    return gone + before[at:], new + now[to:]


def _respliced(packed: bytes, widths: Sequence[int], cut: Sequence[int], put: Sequence[int]) -> bytearray:
    """Return columns of items of these widths without the positions in `cut`, and then with zeros at those in `put`."""
    count = len(packed) // sum(widths)
    columns, start = [], 0
    for width in widths:
        column = bytearray(packed[start : start + count * width])
        start += count * width
        for at in reversed(cut):
            del column[at * width : (at + 1) * width]
        for at in put:
            column[at * width : at * width] = bytes(width)
        columns.append(column)
    return bytearray(b"").join(columns)


def _differing(before: bytes, now: bytes | bytearray) -> Iterator[int]:
    """Yield the positions at which packed stat signatures differ."""
    count = len(now) // sum(COLUMNS)
    start = 0
    for width in COLUMNS:
        end = start + count * width
        for block in range(start, end, _BLOCK * width):
            stop = min(block + _BLOCK * width, end)
            if before[block:stop] != now[block:stop]:
                for at in range(block, stop, width):
                    if before[at : at + width] != now[at : at + width]:
                        yield (at - start) // width
        start = end
