"""Apply exact-string edits: each replaces the only occurrence of a string in a staged copy; all apply, or none does.

Edits apply one after another, so an edit may change what an earlier one of the same call wrote, but only if its old
string is completely inside that text: an old string that includes a part of it and some text around it would undo half
of the earlier edit. Source: the contract of `multi_edit_text_file`.

Models send LF whatever they read. If asked to bridge, strings without CR match lines that end in CRLF as well, and each
new line gets the ending of the line that it replaces, else of the one above it, else of the line that it is written
into. Where such a string also occurs byte for byte, once, that place is meant.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
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
"""old_start, old_end, new_start, new_end: a range of bytes in the old text, and the one that replaced it in the new."""

_MAX_LINES: Final = 20
"""Line numbers that are reported of a string's occurrences."""


_EITHER_END: Final = rb"(?:\r\n|(?<!\r)\n)"
"""A pattern for the end of a line, none that is a part of another."""

_LONE_LF: Final = re.compile(rb"(?<!\r)\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """One edit: the string to find, which must not be empty, and its replacement."""

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
    starts: tuple[int, ...]  # for each edit, where its old string began in the staged copy just before it, in bytes
    spans: tuple[Span, ...]  # ascending and disjoint; () if nothing was replaced
    made: tuple[Replacement, ...] = ()  # the edits with the line endings of the file


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingString:
    """The old string of edit `index` does not occur."""

    index: int
    old: bytes = field(repr=False)
    staged: bytes = field(repr=False)  # the copy that was searched
    was_there: bool  # it occurred before the call, and an earlier edit of the call changed it

    def nearest(self, *, between: Callable[[], object] = lambda: None) -> Nearest | None:
        """Return the most similar place in the copy, or None if nothing is similar. This may take long.

        `between`: called repeatedly during the search. Raises what it raises.
        """
        return nearest(self.staged, self.old, between=between)


@dataclass(frozen=True, slots=True, kw_only=True)
class AmbiguousString:
    """The old string of edit `index` occurs more than once."""

    index: int
    count: int
    lines: tuple[int, ...]  # where the first of them begin, from 1
    overlaps: bool = False  # some of these include a part of each other, as "aa" in "aaa"


@dataclass(frozen=True, slots=True, kw_only=True)
class EditsOverlap:
    """The old string of edit `index` includes a part of what edit `prior` wrote, and text around it."""

    index: int
    prior: int


ExactOutcome: TypeAlias = Edited | MissingString | AmbiguousString | EditsOverlap


def apply_edits(
    content: bytes,
    edits: Sequence[Replacement],
    *,
    bridges: bool = False,
    between: Callable[[], object] = lambda: None,
) -> ExactOutcome:
    """Return the result of `edits` on `content`, or why the first one that does not apply can't be applied.

    `bridges`: LF in the strings of an edit without CR also means the file's CRLF. `between`: called before each edit,
    which searches the whole text. Raises what it raises.
    """
    staged = _Staged(content)
    ranges: list[LineRange] = []
    starts: list[int] = []
    made: list[Replacement] = []
    for index, given in enumerate(edits):
        between()
        edit, places = _bridged(staged.text, given) if bridges else (given, _places(staged.text, given.old))
        if not places:
            return MissingString(index=index, old=edit.old, staged=bytes(staged.text), was_there=edit.old in content)
        if len(places) > 1:
            # Occurrences may overlap ("aa" in "aaa"), which `count` counts as one; it is ambiguous all the same.
            count = max(staged.text.count(edit.old), 2)
            lines = tuple(_line(staged.text, at) for at in places)
            overlaps = any(after < at + len(edit.old) for at, after in pairwise(places))
            return AmbiguousString(index=index, count=count, lines=lines, overlaps=overlaps)
        start, end = places[0], places[0] + len(edit.old)
        prior = staged.overlapping_edit(start, end)
        if prior is not None:
            return EditsOverlap(index=index, prior=prior)
        first = _line(staged.text, start)
        ranges.append(LineRange(start=first, end=first + staged.text.count(b"\n", start, end - 1)))
        starts.append(start)
        made.append(edit)
        staged.replace(start, end, edit.new, index)
    return Edited(
        content=bytes(staged.text),
        line_ranges=tuple(ranges),
        starts=tuple(starts),
        spans=tuple(staged.spans),
        made=tuple(made),
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """A range of the staged copy that an edit wrote."""

    start: int
    end: int
    index: int  # of the edit


class _Staged:
    """A copy of a file during a call: its text, the ranges that each edit wrote, and the spans they replaced."""

    def __init__(self, content: bytes) -> None:
        self.text = bytearray(content)  # changed in place, so that not every edit copies it
        self.spans: list[Span] = []
        self._written: list[_Written] = []

    def overlapping_edit(self, start: int, end: int) -> int | None:
        """Return the first edit whose text overlaps this range without containing all of it, or None."""
        for written in self._written:
            apart = written.end <= start or end <= written.start
            inside = written.start <= start and end <= written.end
            if not apart and not inside:
                return written.index
        return None

    def replace(self, start: int, end: int, new: bytes, index: int) -> None:
        """Replace a range, for which `overlapping_edit` is None, by `new`."""
        delta = len(new) - (end - start)
        kept: list[_Written] = []
        for written in self._written:
            if written.end <= start:
                kept.append(written)
            elif end <= written.start:
                kept.append(_Written(written.start + delta, written.end + delta, written.index))
            else:  # the range is inside it
                kept.append(_Written(written.start, written.end + delta, written.index))
        kept.append(_Written(start, start + len(new), index))
        self._written = [written for written in kept if written.start < written.end]
        self._widen_spans(start, end, delta)
        self.text[start:end] = new

    def _widen_spans(self, start: int, end: int, delta: int) -> None:
        """Note that a range grew by `delta` bytes; spans that touch it are merged with it."""
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
    """Return where `old` occurs, including overlapping occurrences, up to the number that is reported."""
    places: list[int] = []
    at = text.find(old)
    while at >= 0 and len(places) < _MAX_LINES:
        places.append(at)
        at = text.find(old, at + 1)
    return places


def _bridged(text: bytearray, edit: Replacement) -> tuple[Replacement, list[int]]:
    """Return an edit with the line endings that it finds in the file, and where its old string occurs."""
    if b"\r" in edit.old + edit.new or b"\n" not in edit.old + edit.new or b"\r\n" not in text:
        return edit, _places(text, edit.old)
    lines = re.compile(_EITHER_END.join(map(re.escape, edit.old.split(b"\n"))))
    found: list[tuple[int, bytes]] = []
    match = lines.search(text)
    while match is not None and len(found) < _MAX_LINES:
        found.append((match.start(), bytes(match[0])))
        match = lines.search(text, match.start() + 1)
    exact = [place for place in found if place[1] == edit.old]
    if len(exact) == 1:
        found = exact
    if len(found) != 1:
        # No line of a file with CRLF throughout differs from the string because of its ending.
        old = edit.old if _LONE_LF.search(text) else edit.old.replace(b"\n", b"\r\n")
        return Replacement(old=old, new=edit.new), [at for at, _ in found]
    at, old = found[0]
    endings = [bytes(end) for end in re.findall(b"\r?\n", old)] or [_ending(text, at)]
    first, *rest = edit.new.split(b"\n")
    ends = (endings[min(index, len(endings) - 1)] for index in range(len(rest)))
    return Replacement(old=old, new=first + b"".join(end + line for end, line in zip(ends, rest, strict=True))), [at]


def _ending(text: bytearray, at: int) -> bytes:
    """Return the ending of the line at byte `at`, or that of the line above if it is the last line and has none."""
    end = text.find(b"\n", at)
    if end < 0:
        end = text.rfind(b"\n", 0, at)
    return b"\r\n" if text[max(end - 1, 0) : end] == b"\r" else b"\n"


def _line(text: bytearray, at: int) -> int:
    return text.count(b"\n", 0, at) + 1
