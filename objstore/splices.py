"""Splices: a change of a text told in bytes, as a delta tells it, and what its hunks put in.

Whoever replays a history learns each state as a delta against the one before. To have the hunks' lines of that, only
the bytes around them are needed, and no state as a whole.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from objstore.hunks import Hunk, inserted_texts
from objstore.lines import Affixes, is_closed

__all__ = ["Splice", "Spliced", "inserted_by"]


class Splice(NamedTuple):
    """Bytes `start` to `end` of a text gave way to `middle`."""

    start: int
    end: int
    middle: bytes

    def over(self, text: bytes) -> bytes:
        """Return what becomes of `text`."""
        return b"".join((text[: self.start], self.middle, text[self.end :]))

    def shared(self, size: int) -> Affixes:
        """Return what a text of so many bytes and the one after it are known to share at their ends."""
        return Affixes(self.start, size - self.end)


class Spliced(Protocol):
    """A closed text of which any part can be had."""

    def byte_count(self) -> int:
        """Return how many bytes it has."""

    def passage(self, line: int, count: int) -> tuple[int, bytes]:
        """Return where line `line` begins, and the text of `count` lines from there on. Raises ValueError."""

    def between(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`."""


def inserted_by(splice: Splice, hunks: Sequence[Hunk], text: Spliced) -> list[bytes] | None:
    """Return the closed text that each of the hunks, of which there is at least one, puts in where `splice` is made.

    None where only the whole texts tell: the splice begins before the hunks, or the last line may lose its newline.
    Raises ValueError, as `inserted_texts` does, unless the hunks say the same as the splice.
    """
    first, last = hunks[0], hunks[-1]
    low, old = text.passage(first.old_start, last.old_end - first.old_start)
    high, size = low + len(old), text.byte_count()
    reach = max(high, splice.end)
    if splice.start < low or (reach >= size and not splice.middle.endswith(b"\n")):
        return None
    if not splice.start <= splice.end <= size:
        raise ValueError(f"{splice.start} to {splice.end} is no part of {size} bytes")
    # A delta that takes in as much as it can may tell equal bytes as those behind the hunks.
    behind = text.between(high, reach) if reach > high else b""
    around = old + behind if behind else old
    new = b"".join((around[: splice.start - low], splice.middle, around[splice.end - low :]))
    if behind:
        if not new.endswith(behind):
            raise ValueError("the texts differ after the last hunk")
        new = new[: -len(behind)]
    if (
        len(hunks) > 1
        or not (first.old_count or first.new_count)
        or first.new_start != first.old_start
        or not is_closed(new)
        or new.count(b"\n") != first.new_count
    ):
        at = first.old_start
        return inserted_texts(
            old, new, [Hunk(h.old_start - at, h.old_count, h.new_start - at, h.new_count) for h in hunks]
        )
    return [new]
