r"""Anchored edits: operations on lines that are named by number and tag; all apply to the text as read, or none.

An anchor is a line number and the tag of that line (see `hashline`). It means the line of that number if its tag is
right, else the only line that has the tag. Where two lines or none have it, nothing is guessed. Source: the Hashfile
design, and its anchor resolution.

New lines take the endings of the lines whose place they take, or beside which they stand. Whether the text ends in a
newline stays as it is, and a byte-order mark stays at the start: both belong to the file, not to a line. Only where the
last line left would be an empty one does a text gain its newline, for an empty line without one is no line.
"""

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, TypeAlias

from mcptools.edit.exact import Span
from mcptools.edit.hashline import line_tag

__all__ = [
    "Anchor",
    "AnchorAmbiguous",
    "AnchorMissing",
    "AnchoredEdit",
    "AnchoredOutcome",
    "EndBeforeStart",
    "Op",
    "OperationsOverlap",
    "Placed",
    "TaggedContent",
    "apply_operations",
    "parse_anchor",
    "split_content_lines",
]

_ANCHOR: Final = re.compile(r"([1-9][0-9]{0,8}):([0-9a-fA-F]{2})")
_TAGGED: Final = re.compile(rb"([1-9][0-9]{0,8}):([0-9a-f]{2})\|")
_BOM: Final = b"\xef\xbb\xbf"
_MAX_LINES: Final = 20
"""Line numbers that are given of the lines that share a tag."""

_MANY: Final = 1000
"""Lines whose tags take some milliseconds."""


class Op(StrEnum):
    """What an operation does."""

    REPLACE = "replace"
    REPLACE_RANGE = "replace_range"
    INSERT_AFTER = "insert_after"
    INSERT_BEFORE = "insert_before"
    DELETE = "delete"
    DELETE_RANGE = "delete_range"

    @property
    def has_end(self) -> bool:
        """Return whether the operation takes a second anchor."""
        return self in {Op.REPLACE_RANGE, Op.DELETE_RANGE}

    @property
    def has_content(self) -> bool:
        """Return whether the operation takes lines."""
        return self not in {Op.DELETE, Op.DELETE_RANGE}

    @property
    def inserts(self) -> bool:
        """Return whether the operation leaves the lines that its anchors name as they are."""
        return self in {Op.INSERT_AFTER, Op.INSERT_BEFORE}


@dataclass(frozen=True, slots=True)
class Anchor:
    """A line, named by its number (from 1) and its tag."""

    line: int
    tag: str

    def __str__(self) -> str:
        return f"{self.line}:{self.tag}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchoredEdit:
    """One operation."""

    op: Op
    anchor: Anchor
    end: Anchor | None = None  # None: the operation is on one line
    lines: tuple[bytes, ...] = ()  # without endings; () of a deletion


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Every operation applied."""

    content: bytes
    spans: tuple[Span, ...]  # ascending, apart from each other; () when nothing was replaced
    moved: tuple[tuple[int, Anchor, int], ...]  # index of an operation, its anchor, and the line where that was found


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorMissing:
    """No line has the anchor's tag."""

    index: int  # of the operation
    anchor: Anchor


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorAmbiguous:
    """The anchor's line has another tag, and more than one line has its tag."""

    index: int
    anchor: Anchor
    lines: tuple[int, ...]  # the first of them, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EndBeforeStart:
    """The range's last line stands before its first."""

    index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationsOverlap:
    """Two operations are about the same lines."""

    index: int
    prior: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedContent:
    """A new line begins as a line of the text was shown: with its number and its tag, which belong to no file."""

    index: int  # of the operation
    anchor: Anchor


AnchoredOutcome: TypeAlias = (
    Placed | AnchorMissing | AnchorAmbiguous | EndBeforeStart | OperationsOverlap | TaggedContent
)


def parse_anchor(spelling: str) -> Anchor | None:
    """Return the anchor that `{line}:{tag}` spells, or None for anything else."""
    found = _ANCHOR.fullmatch(spelling)
    return None if found is None else Anchor(int(found[1]), found[2].lower())


def split_content_lines(content: bytes) -> tuple[bytes, ...]:
    r"""Return the lines that an operation's content spells, without endings; a newline at its end adds none."""
    lines = content.replace(b"\r\n", b"\n").split(b"\n")
    return tuple(lines if lines[-1] else lines[:-1])


def apply_operations(
    content: bytes, operations: Sequence[AnchoredEdit], *, between: Callable[[], object] = lambda: None
) -> AnchoredOutcome:
    """Return what `operations` make of `content`, or why the first that can't apply can't.

    `between`: called before each operation, and while one is looked for in the whole text. Raises what it raises.
    """
    text = _Text(content, between)
    places: list[_Place] = []
    taken = _Taken()
    moved: list[tuple[int, Anchor, int]] = []
    for index, operation in enumerate(operations):
        between()
        found: list[int] = []
        for anchor in (operation.anchor, operation.end or operation.anchor):
            lines = text.find(anchor)
            if not lines:
                return AnchorMissing(index=index, anchor=anchor)
            if len(lines) > 1:
                return AnchorAmbiguous(index=index, anchor=anchor, lines=tuple(lines[:_MAX_LINES]))
            found.append(lines[0])
        if found[1] < found[0]:
            return EndBeforeStart(index=index, start=found[0], end=found[1])
        tagged = text.shown_in(operation.lines)
        if tagged is not None:
            return TaggedContent(index=index, anchor=tagged)
        moved += [
            (index, anchor, line)
            for anchor, line in zip((operation.anchor, operation.end), found, strict=True)
            if anchor is not None and anchor.line != line
        ]
        place = _place(index, operation, found[0] - 1, found[1])
        prior = taken.prior(place)
        if prior is not None:
            return OperationsOverlap(index=index, prior=prior)
        taken.add(place)
        places.append(place)
    new, spans = text.with_lines_at(places)
    return Placed(content=new, spans=spans, moved=tuple(moved))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Lines from `start` (from 0) up to `end` that give way to others; a gap between two lines where both are one."""

    index: int  # of the operation
    start: int
    end: int
    beside: int  # the line whose ending new lines take where there is none to take the place of
    behind: bool  # of a gap: whether it belongs to the line above it
    lines: tuple[bytes, ...]

    @property
    def order(self) -> tuple[int, bool, bool, int]:
        """Return what places are sorted by: of those at one gap, what follows the line above comes first."""
        return self.start, self.start != self.end, not self.behind, self.index


class _Taken:
    """Places of which no two want the same lines, in order. A gap is wanted only by a range on both sides of it."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, int]] = []  # start, end, index of the operation
        self._gaps: list[tuple[int, int]] = []  # where, index of the operation

    def prior(self, place: _Place) -> int | None:
        """Return the first operation that wants lines of `place`; None: there is none."""
        start, end = place.start, place.end
        first = bisect_left(self._ranges, (start,))
        if first and self._ranges[first - 1][1] > start:
            first -= 1
        last = bisect_left(self._ranges, (end,))
        wanted = [index for _, _, index in self._ranges[first:last]]
        if start < end:
            inside = slice(bisect_left(self._gaps, (start + 1,)), bisect_left(self._gaps, (end,)))
            wanted += [index for _, index in self._gaps[inside]]
        return min(wanted, default=None)

    def add(self, place: _Place) -> None:
        """Take a place for which there is no prior one."""
        if place.start == place.end:
            insort(self._gaps, (place.start, place.index))
        else:
            insort(self._ranges, (place.start, place.end, place.index))


def _place(index: int, operation: AnchoredEdit, start: int, end: int) -> _Place:
    behind = operation.op is Op.INSERT_AFTER
    beside = start
    if operation.op.inserts:
        start = end = end if behind else start
    return _Place(index=index, start=start, end=end, beside=beside, behind=behind, lines=operation.lines)


class _Text:
    """A text as lines, closed: the last one has an ending, whether the file has it or not."""

    def __init__(self, content: bytes, between: Callable[[], object]) -> None:
        self._content = content
        self._between = between
        self._bom = _BOM if content.startswith(_BOM) else b""
        parts = content[len(self._bom) :].split(b"\n")
        rest = parts.pop()
        self._lines = [part + b"\n" for part in parts]
        self._missing = b""  # the ending that the last line would have; b"": it has one
        self._tags: dict[int, str] = {}  # of the lines that were asked for
        if rest or (self._bom and not parts):
            self._missing = self._ending(len(parts) - 1) if parts else b"\n"
            self._lines.append(rest + self._missing)

    def find(self, anchor: Anchor) -> list[int]:
        """Return the lines, from 1, that the anchor can mean; one line: that is it."""
        if self._stands(anchor):
            return [anchor.line]
        return self._lines_by_tag.get(anchor.tag, [])

    @cached_property
    def _lines_by_tag(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index in range(len(self._lines)):
            if not index % _MANY:
                self._between()
            found.setdefault(self._tag(index), []).append(index + 1)
        return found

    def shown_in(self, lines: Sequence[bytes]) -> Anchor | None:
        """Return the first anchor of this text with which one of `lines` begins, as a reader is shown lines."""
        for found in filter(None, map(_TAGGED.match, lines)):
            anchor = Anchor(int(found[1]), found[2].decode())
            if self._stands(anchor):
                return anchor
        return None

    def with_lines_at(self, places: Sequence[_Place]) -> tuple[bytes, tuple[Span, ...]]:
        """Return the text with each place filled, and which bytes gave way to which."""
        new: list[bytes] = []
        spans: list[Span] = []
        ending = b""  # of the last of them
        at = old_at = new_at = 0
        for place in sorted(places, key=lambda place: place.order):
            kept = sum(map(len, self._lines[at : place.start]))
            gone = sum(map(len, self._lines[place.start : place.end]))
            ended = self._ended(place)
            put = [line + its_own for line, its_own in ended]
            new += [*self._lines[at : place.start], *put]
            if ended:
                ending = ended[-1][1]
            elif at < place.start:
                ending = self._ending(place.start - 1)
            old_at, new_at = old_at + kept, new_at + kept
            old_end, new_end = old_at + gone, new_at + sum(map(len, put))
            if spans and spans[-1][1] == old_at:
                spans[-1] = (spans[-1][0], old_end, spans[-1][2], new_end)
            else:
                spans.append((old_at, old_end, new_at, new_end))
            at, old_at, new_at = place.end, old_end, new_end
        new += self._lines[at:]
        if self._missing and at < len(self._lines):
            new[-1] = new[-1].removesuffix(self._missing)
        elif self._missing and new and new[-1] != ending:
            new[-1] = new[-1].removesuffix(ending)
        return self._as_file(b"".join(new), spans)

    def _stands(self, anchor: Anchor) -> bool:
        return anchor.line <= len(self._lines) and self._tag(anchor.line - 1) == anchor.tag

    def _tag(self, index: int) -> str:
        tag = self._tags.get(index)
        if tag is None:
            # What a reader was shown of the first line begins with the mark.
            tag = self._tags[index] = line_tag((self._bom if index == 0 else b"") + self._lines[index])
        return tag

    def _ending(self, index: int) -> bytes:
        """Return the ending of a line; a CR at the end of the file is no part of that which the last line lacks."""
        if self._missing and index == len(self._lines) - 1:
            return self._missing
        return b"\r\n" if self._lines[index].endswith(b"\r\n") else b"\n"

    def _ended(self, place: _Place) -> list[tuple[bytes, bytes]]:
        """Return the new lines of a place, each with the ending that it gets."""
        gone = range(place.start, place.end) or range(place.beside, place.beside + 1)
        lines = list(place.lines)
        if self._bom and place.start == 0 and lines and lines[0].startswith(_BOM):
            lines[0] = lines[0].removeprefix(_BOM)
        return [(line, self._ending(gone[min(index, len(gone) - 1)])) for index, line in enumerate(lines)]

    def _as_file(self, new: bytes, spans: list[Span]) -> tuple[bytes, tuple[Span, ...]]:
        """Return a text and spans between closed ones as the file has them: behind its mark, and within its end."""
        mark, size = len(self._bom), len(self._content) - len(self._bom)
        if spans:
            old_start, old_end, new_start, new_end = spans[-1]
            # An ending that only one of the texts has belongs to what changed.
            back = max(old_start - size, new_start - len(new), 0)
            if old_end > size:
                old_end, new_end = size, len(new)
            spans[-1] = (old_start - back, old_end, new_start - back, new_end)
        return self._bom + new, tuple((a + mark, b + mark, c + mark, d + mark) for a, b, c, d in spans)
