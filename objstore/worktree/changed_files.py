"""Find which files of a large folder must be looked at again, from packed stat signatures.

No object is made for a file that is as it was at the last scan: signatures and blobs are compared, cut and joined as
columns of bytes, in the order of the names.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Self

from objstore.disk.fs.stat_signature import COLUMNS, StatSignature, changed_since, put_signature, signature_at
from objstore.model.ids import HASH_SIZE, BlobId
from objstore.values.fastclass import variable
from objstore.worktree.stat_cache import UNKNOWN, CachedFolder

__all__ = ["FolderFiles", "positions_apart"]

_MOST_NAMES: Final = 1_000
"""Names that came or went: more are not worth moving columns for."""

_BLOCK: Final = 256
"""Files that are compared at once."""


@variable
class FolderFiles:
    """The files of one folder, as they were at the last scan where that is still so."""

    names: list[bytes]  # ascending
    facts: bytes | bytearray  # their packed stat signatures now
    blobs: bytearray  # their blobs, one after the other; UNKNOWN: not read
    before: bytes | bytearray  # the packed stat signatures of the last scan; zeros: there was no such file
    gone: frozenset[bytes]  # names of files that are no longer there

    @classmethod
    def compared(cls, old: CachedFolder, names: list[bytes], facts: bytes) -> Self | None:
        """Return the files with these names and stat signatures; None if too many names came or went."""
        if names == old.names:
            return cls(
                names=names,
                facts=facts,
                blobs=bytearray(old.blobs),
                before=old.facts,
                gone=frozenset(),
            )
        gone, new = positions_apart(old.names, names)
        if len(gone) + len(new) > _MOST_NAMES:
            return None
        return cls(
            names=names,
            facts=facts,
            blobs=_respliced(old.blobs, (HASH_SIZE,), gone, new),
            before=_respliced(old.facts, COLUMNS, gone, new),
            gone=frozenset(old.names[at] for at in gone),
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
        if signature != self.signature(at):  # it changed again: in most folders no file does, and no table is copied
            if not isinstance(self.facts, bytearray):
                self.facts = bytearray(self.facts)
            put_signature(self.facts, at, signature)
        self.blobs[at * HASH_SIZE : (at + 1) * HASH_SIZE] = blob


def positions_apart(before: Sequence[bytes], now: Sequence[bytes]) -> tuple[list[int], list[int]]:
    """Return the positions of the names that are only in the first, or only in the second, of two ascending lists.

    Blocks that are equal are compared as a whole: sets of all names would take as long as to list the folder. Where a
    list is in another order, more names count as being in it only; no name that is so is missed.
    """
    gone: list[int] = []
    new: list[int] = []
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
                gone.append(at)
                at += 1
            else:
                new.append(to)
                to += 1
    return [*gone, *range(at, len(before))], [*new, *range(to, len(now))]


def _respliced(packed: bytes, widths: Sequence[int], cut: Sequence[int], put: Sequence[int]) -> bytearray:
    """Return columns of items of these widths without the positions in `cut`, and then with zeros at those in `put`."""
    count, table = len(packed) // sum(widths), memoryview(packed)
    runs = _runs(count, cut, put)
    pieces: list[bytes | memoryview] = []
    column = 0
    for width in widths:
        pieces += [bytes(width) if end < 0 else table[column + at * width : column + end * width] for at, end in runs]
        column += count * width
    return bytearray().join(pieces)


def _runs(count: int, cut: Sequence[int], put: Sequence[int]) -> list[tuple[int, int]]:
    """Return which of `count` items stay, as ranges of positions, and (0, -1) for each new item.

    `cut`: positions of those that go; `put`: positions of the new ones, among the items that there are then.
    """
    runs: list[tuple[int, int]] = []
    at = length = 0
    cuts, puts = [*reversed(cut)], [*reversed(put)]
    while at < count or puts:
        if puts and puts[-1] == length:
            puts.pop()
            runs.append((0, -1))
            length += 1
        elif cuts and cuts[-1] == at:
            cuts.pop()
            at += 1
        else:
            stay = min(cuts[-1] if cuts else count, at + puts[-1] - length if puts else count) - at
            runs.append((at, at + stay))
            at, length = at + stay, length + stay
    return runs


def _differing(before: bytes | bytearray, now: bytes | bytearray) -> Iterator[int]:
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
