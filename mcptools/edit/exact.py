"""Exact-string edits: each replaces the one occurrence of a string in a staged copy; all apply, or none.

Edits apply one after another, so an edit may change what an earlier one of the same call wrote, but only if
its old string lies wholly inside that text: one that takes in part of it and part of what was there before
would undo by halves what the earlier edit was for. Source: the contract of `multi_edit_text_file`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from mcptools.edit.nearest_text import Nearest, nearest

__all__ = [
    "AmbiguousString",
    "Edited",
    "EditsOverlap",
    "ExactOutcome",
    "LineRange",
    "MissingString",
    "Replacement",
    "Span",
    "apply_edits",
]

Span: TypeAlias = tuple[int, int, int, int]
"""old_start, old_end, new_start, new_end: bytes of the old text, and what they became in the new one."""

_MAX_LINES: Final = 20
"""Line numbers that are given of a string's occurrences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """One edit: the string to find, which must not be empty, and the string to put there."""

    old: bytes
    new: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRange:
    """The lines that an edit's old string touched in the staged copy just before it, from 1, inclusive."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """Every edit applied."""

    content: bytes
    line_ranges: tuple[LineRange, ...]  # one for each edit
    spans: tuple[Span, ...]  # ascending, apart from each other; () when nothing was replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingString:
    """The old string of edit `index` does not occur."""

    index: int
    old: bytes = field(repr=False)
    staged: bytes = field(repr=False)  # the copy in which it was looked for
    was_there: bool  # before the call: an earlier edit of the same call changed it

    def nearest(self, *, between: Callable[[], object] = lambda: None) -> Nearest | None:
        """Return where the copy comes nearest to holding it, if anything there is like it; that takes its time.

        `between`: called again and again meanwhile. Raises what it raises.
        """
        return nearest(self.staged, self.old, between=between)


@dataclass(frozen=True, slots=True, kw_only=True)
class AmbiguousString:
    """The old string of edit `index` occurs more than once."""

    index: int
    count: int
    lines: tuple[int, ...]  # where the first of them begin, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EditsOverlap:
    """The old string of edit `index` takes in part of what edit `prior` wrote, and more."""

    index: int
    prior: int


ExactOutcome: TypeAlias = Edited | MissingString | AmbiguousString | EditsOverlap


def apply_edits(
    content: bytes, edits: Sequence[Replacement], *, between: Callable[[], object] = lambda: None
) -> ExactOutcome:
    """Return what `edits` make of `content`, or why the first that can't apply can't.

    `between`: called before each edit, which goes through the whole text. Raises what it raises.
    """
    staged = _Staged(content)
    ranges: list[LineRange] = []
    for index, edit in enumerate(edits):
        between()
        places = _places(staged.text, edit.old)
        if not places:
            return MissingString(index=index, old=edit.old, staged=bytes(staged.text), was_there=edit.old in content)
        if len(places) > 1:
            # What is counted is what a person would: "aa" is once or twice in "aaa", never certain.
            count = max(staged.text.count(edit.old), 2)
            lines = tuple(_line(staged.text, at) for at in places)
            return AmbiguousString(index=index, count=count, lines=lines)
        start, end = places[0], places[0] + len(edit.old)
        prior = staged.overlapping_edit(start, end)
        if prior is not None:
            return EditsOverlap(index=index, prior=prior)
        first = _line(staged.text, start)
        ranges.append(LineRange(start=first, end=first + staged.text.count(b"\n", start, end - 1)))
        staged.replace(start, end, edit.new, index)
    return Edited(content=bytes(staged.text), line_ranges=tuple(ranges), spans=tuple(staged.spans))


@dataclass(frozen=True, slots=True)
class _Written:
    """A stretch of the staged copy that an edit wrote."""

    start: int
    end: int
    index: int  # of the edit


class _Staged:
    """A copy of a file under edit: its text, which stretches which edits wrote, and what they replaced."""

    def __init__(self, content: bytes) -> None:
        self.text = bytearray(content)  # what many edits change is not copied for each
        self.spans: list[Span] = []
        self._written: list[_Written] = []

    def overlapping_edit(self, start: int, end: int) -> int | None:
        """Return the first edit whose text lies partly inside this stretch, without holding all of it."""
        for written in self._written:
            apart = written.end <= start or end <= written.start
            inside = written.start <= start and end <= written.end
            if not apart and not inside:
                return written.index
        return None

    def replace(self, start: int, end: int, new: bytes, index: int) -> None:
        """Put `new` in place of a stretch that `torn_by` finds nothing against."""
        delta = len(new) - (end - start)
        kept: list[_Written] = []
        for written in self._written:
            if written.end <= start:
                kept.append(written)
            elif end <= written.start:
                kept.append(_Written(written.start + delta, written.end + delta, written.index))
            else:  # it is inside
                kept.append(_Written(written.start, written.end + delta, written.index))
        kept.append(_Written(start, start + len(new), index))
        self._written = [written for written in kept if written.start < written.end]
        self._widen_spans(start, end, delta)
        self.text[start:end] = new

    def _widen_spans(self, start: int, end: int, delta: int) -> None:
        """Note that a stretch grew by `delta` bytes; spans that meet it become one with it."""
        before = [span for span in self.spans if span[3] < start]
        after = [span for span in self.spans if span[2] > end]
        met = self.spans[len(before) : len(self.spans) - len(after)]
        shift = before[-1][3] - before[-1][1] if before else 0
        new_start = min(start, met[0][2]) if met else start
        new_end = max(end, met[-1][3]) if met else end
        shift_after = met[-1][3] - met[-1][1] if met else shift
        span = (new_start - shift, new_end - shift_after, new_start, new_end + delta)
        self.spans = [*before, span, *((a, b, c + delta, d + delta) for a, b, c, d in after)]


def _places(text: bytearray, old: bytes) -> list[int]:
    """Return where `old` occurs, occurrences that overlap included, up to as many as are told."""
    places: list[int] = []
    at = text.find(old)
    while at >= 0 and len(places) < _MAX_LINES:
        places.append(at)
        at = text.find(old, at + 1)
    return places


def _line(text: bytearray, at: int) -> int:
    return text.count(b"\n", 0, at) + 1
