"""Apply a change given as one byte range, as a delta gives it, and check the hunks against it.

A reader that replays a history learns each state as a delta against the one before. To get the lines that the hunks
insert, it needs only the bytes around the hunks, never a whole state.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from objstore.text.hunks import Hunk, inserted_texts
from objstore.text.lines import Affixes, is_closed

__all__ = ["Splice", "Spliced", "inserted_by"]


class Splice(NamedTuple):
    """One replacement: bytes `start` to `end` of a text gave way to `middle`."""

    start: int
    end: int
    middle: bytes

    def over(self, text: bytes) -> bytes:
        """Return `text` with the replacement made."""
        return b"".join((text[: self.start], self.middle, text[self.end :]))

    def shared(self, size: int) -> Affixes:
        """Return how many bytes a text of `size` bytes and its successor are known to share at their ends."""
        return Affixes(self.start, size - self.end)


class Spliced(Protocol):
    """A closed text that can be read in parts."""

    def byte_count(self) -> int:
        """Return the length in bytes."""

    def passage(self, line: int, count: int) -> tuple[int, bytes]:
        """Return the byte offset of line `line`, and the text of `count` lines from it. Raises ValueError."""

    def between(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`."""


def inserted_by(splice: Splice, hunks: Sequence[Hunk], text: Spliced) -> list[bytes] | None:
    """Return the closed text that each hunk (at least one) inserts, where `splice` made the change to `text`.

    None if only the whole texts can answer: the splice begins before the hunks, or the last line may lose its newline.
    Raises ValueError, as `inserted_texts` does, unless the hunks agree with the splice.
    """
    first, last = hunks[0], hunks[-1]
    low, old = text.passage(first.old_start, last.old_start + last.old_count - first.old_start)
    start, end, middle = splice
    high, size = low + len(old), text.byte_count()
    if start < low or ((end >= size or high >= size) and not middle.endswith(b"\n")):
        return None
    if not start <= end <= size:
        raise ValueError(f"{start} to {end} is no part of {size} bytes")
    if end > high:
        # A delta may include bytes after the hunks that are equal in both texts.
        behind = text.between(high, end)
        new = b"".join(((old + behind)[: start - low], middle))
        if not new.endswith(behind):
            raise ValueError("the texts differ after the last hunk")
        new = new[: -len(behind)]
    else:
        new = b"".join((old[: start - low], middle, old[end - low :]))
    if high < size and not is_closed(new):
        raise ValueError("the last hunk ends inside a line")
    at, lines = first.old_start, first.new_count
    is_sound = first.new_start == at and bool(lines or first.old_count)
    if len(hunks) == 1 and is_sound and is_closed(new) and new.count(b"\n") == lines:
        return [new]
    return inserted_texts(old, new, [Hunk(h.old_start - at, h.old_count, h.new_start - at, h.new_count) for h in hunks])
