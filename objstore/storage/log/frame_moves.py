"""Map the offsets of frames in a segment to those in its next generation, for readers that recorded the old ones.

With this map, a segment's new file is valid at once, however many places the index holds: the index is updated in small
steps later. FORMAT.md describes the bytes. Flash disks do the same in their translation layers: the reader keeps an old
address.
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
"""Magic, BLAKE3 of what follows it, number of frames kept, number of those encoded again."""

_NUMBER: Final = array("Q").itemsize

_STRETCH: Final = 13
"""Binary logarithm of a file stretch's bytes, in which few frames begin."""


class FrameMoves:
    """The kept frames: their offsets in the older file and in the newer one.

    Offsets are in bytes; in both files the frames have the same order.
    """

    def __init__(self) -> None:
        """Start with no frame."""
        self._old = array("Q")  # ascending, as is _new
        self._new = array("Q")
        self._reencoded = array("Q")  # ascending: offsets in the newer file of deltas that have a new base

    def add(self, old: int, new: int) -> None:
        """Add the next frame, which moved from `old` to `new`."""
        self._old.append(old)
        self._new.append(new)

    def extend(self, old: Iterable[int], new: Iterable[int]) -> None:
        """Add the next frames, as `add` does."""
        self._old.extend(old)
        self._new.extend(new)

    def mark_reencoded(self, new: int) -> None:
        """Note that the frame at `new` is another encoding of its blob."""
        self._reencoded.append(new)

    @property
    def reencoded(self) -> Iterable[int]:
        """Return the new offsets of the frames that were encoded again, ascending."""
        return self._reencoded

    def get(self, old: int) -> int | None:
        """Return the new offset of the frame that was at `old` (None: it was dropped, or no frame was there)."""
        at = bisect_left(self._old, old)
        try:
            return self._new[at] if self._old[at] == old else None
        except IndexError:
            return None  # after the last frame

    def quick(self) -> Callable[[int], int | None]:
        """Return a function like `get` that takes half the time, for callers that ask about nearly every frame."""
        old, new = self._old, self._new
        first = array("Q", [0])  # for each stretch: index of the first frame that begins in it or after it
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
        """Return the new offset of the first kept frame that was at `old` or after it (None: no such frame)."""
        at = bisect_left(self._old, old)
        return self._new[at] if at < len(self._new) else None

    def encode(self) -> bytes:
        """Return the bytes to store."""
        body = b"".join(map(_packed, (self._old, self._new, self._reencoded)))
        counts = _HEAD.pack(b"", b"", len(self._old), len(self._reencoded))[-2 * _NUMBER :]
        return _MAGIC + blake3(counts + body).digest() + counts + body

    @classmethod
    def decode(cls, kept: bytes) -> Self | None:
        """Return the map from its stored bytes (None: they are damaged)."""
        if len(kept) < _HEAD.size:
            return None
        magic, checksum, stayed, reencoded = _HEAD.unpack_from(kept)
        if magic != _MAGIC or blake3(memoryview(kept)[_HEAD.size - 2 * _NUMBER :]).digest() != checksum:
            return None
        if len(kept) != _HEAD.size + (2 * stayed + reencoded) * _NUMBER:
            return None
        found = cls()
        at = _HEAD.size
        for numbers, count in ((found._old, stayed), (found._new, stayed), (found._reencoded, reencoded)):
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
