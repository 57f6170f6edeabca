"""Moves: where the frames of a segment went when it was written anew, for whoever has noted where they were.

With them a segment's new file counts from one moment to the next, however many places the index holds: these follow
by and by. FORMAT.md describes the bytes. So do the translation layers of flash disks: who asks keeps an old address.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Final, Self

from blake3 import blake3

__all__ = ["FrameMoves"]

_MAGIC: Final = b"casmove1"
_HEAD: Final = Struct("<8s32sQQ")
"""Magic, BLAKE3 of what follows it, number of frames that stayed, number of those that are spelt anew."""

_NUMBER: Final = array("Q").itemsize

_STRETCH: Final = 13
"""Binary logarithm of so many bytes of a file that few frames begin in."""


class FrameMoves:
    """The frames that stayed: where they began in the older file, and where they begin in the newer one.

    Positions are offsets in the files, in bytes; in both files the frames have the same order.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._old = array("Q")  # ascending, and so is the next
        self._new = array("Q")
        self._respelt = array("Q")  # ascending: positions in the newer file of deltas that have got another base

    def add(self, old: int, new: int) -> None:
        """Note that the next frame went from `old` to `new`."""
        self._old.append(old)
        self._new.append(new)

    def extend(self, old: Iterable[int], new: Iterable[int]) -> None:
        """Note where the next frames went, as `add` does."""
        self._old.extend(old)
        self._new.extend(new)

    def mark_reencoded(self, new: int) -> None:
        """Note that the frame now at `new` is another spelling of its blob."""
        self._respelt.append(new)

    @property
    def respelt(self) -> Iterable[int]:
        """Return where the frames lie now that are spelt anew, ascending."""
        return self._respelt

    def get(self, old: int) -> int | None:
        """Return where the frame that was at `old` lies now (None: it is gone, or there was none)."""
        at = bisect_left(self._old, old)
        try:
            return self._new[at] if self._old[at] == old else None
        except IndexError:
            return None  # behind the last one

    def quick(self) -> Callable[[int], int | None]:
        """Return what says as `get` does, in half the time: for who asks of nearly every frame that is noted by now."""
        old, new = self._old, self._new
        first = array("Q", [0])  # which frame is the first that begins at each so many bytes, or behind them
        for at, begins in enumerate(old):
            first.extend([at] * ((begins >> _STRETCH) + 1 - len(first)))
        first.append(len(old))
        stretches = len(first) - 1

        def get(asked: int) -> int | None:
            stretch = asked >> _STRETCH
            if stretch >= stretches:
                return None
            behind = first[stretch + 1]
            at = bisect_left(old, asked, first[stretch], behind)
            return new[at] if at < behind and old[at] == asked else None

        return get

    def at_or_behind(self, old: int) -> int | None:
        """Return where the first frame lies now that was at `old` or behind it (None: none of them stayed)."""
        at = bisect_left(self._old, old)
        return self._new[at] if at < len(self._new) else None

    def encode(self) -> bytes:
        """Return the bytes that are kept."""
        body = b"".join(map(_packed, (self._old, self._new, self._respelt)))
        counts = _HEAD.pack(b"", b"", len(self._old), len(self._respelt))[-2 * _NUMBER :]
        return _MAGIC + blake3(counts + body).digest() + counts + body

    @classmethod
    def decode(cls, kept: bytes) -> Self | None:
        """Return what was kept (None: the bytes are damaged)."""
        if len(kept) < _HEAD.size:
            return None
        magic, checksum, stayed, respelt = _HEAD.unpack_from(kept)
        if magic != _MAGIC or blake3(memoryview(kept)[_HEAD.size - 2 * _NUMBER :]).digest() != checksum:
            return None
        if len(kept) != _HEAD.size + (2 * stayed + respelt) * _NUMBER:
            return None
        found = cls()
        at = _HEAD.size
        for numbers, count in ((found._old, stayed), (found._new, stayed), (found._respelt, respelt)):
            numbers.frombytes(kept[at : at + count * _NUMBER])
            if sys.byteorder == "big":
                numbers.byteswap()
            at += count * _NUMBER
        return found


def _packed(numbers: "array[int]") -> bytes:
    if sys.byteorder == "big":
        numbers = array("Q", numbers)
        numbers.byteswap()
    return numbers.tobytes()
