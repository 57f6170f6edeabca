r"""Anchored edits: operations on lines that are named by number and tag; all apply to the text as read, or none.

An anchor is a line number and the tag of that line (see `hashline`). It means the line of that number if its tag is
right, else the only line that has the tag. Where two lines or none have it, nothing is guessed. Source: the Hashfile
design, and its anchor resolution.

New lines take the endings of the lines whose place they take, or beside which they stand. Whether the text ends in a
newline stays as it is, and a byte-order mark stays at the start: both belong to the file, not to a line. Only where the
last line left would be an empty one does a text gain its newline, for an empty line without one is no line.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from mcptools.exact import Span
from mcptools.hashline import line_tag

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
    "splits_lines",
]

_ANCHOR: Final = re.compile(r"([1-9][0-9]{0,8}):([0-9a-fA-F]{2})")
_TAGGED: Final = re.compile(rb"([1-9][0-9]{0,8}):([0-9a-f]{2})\|")
_BOM: Final = b"\xef\xbb\xbf"
_MAX_LINES: Final = 20
"""Line numbers that are given of the lines that share a tag."""


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


def splits_lines(content: bytes) -> tuple[bytes, ...]:
    r"""Return the lines that an operation's content spells, without endings; a newline at its end adds none."""
    lines = content.replace(b"\r\n", b"\n").split(b"\n")
    return tuple(lines if lines[-1] else lines[:-1])


def apply_operations(content: bytes, operations: Sequence[AnchoredEdit]) -> AnchoredOutcome:
    """Return what `operations` make of `content`, or why the first that can't apply can't."""
    text = _Text(content)
    places: list[_Place] = []
    moved: list[tuple[int, Anchor, int]] = []
    for index, operation in enumerate(operations):
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
        prior = min((other.index for other in places if place.overlaps(other)), default=None)
        if prior is not None:
            return OperationsOverlap(index=index, prior=prior)
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

    def overlaps(self, other: "_Place") -> bool:
        """Return whether both want the same lines. A gap is wanted only by a range on both sides of it."""
        if self.start == self.end:
            return other.start < self.start < other.end
        if other.start == other.end:
            return self.start < other.start < self.end
        return max(self.start, other.start) < min(self.end, other.end)

    @property
    def order(self) -> tuple[int, bool, bool, int]:
        """Return what places are sorted by: of those at one gap, what follows the line above comes first."""
        return self.start, self.start != self.end, not self.behind, self.index


def _place(index: int, operation: AnchoredEdit, start: int, end: int) -> _Place:
    behind = operation.op is Op.INSERT_AFTER
    beside = start
    if operation.op.inserts:
        start = end = end if behind else start
    return _Place(index=index, start=start, end=end, beside=beside, behind=behind, lines=operation.lines)


class _Text:
    """A text as lines, closed: the last one has an ending, whether the file has it or not."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._bom = _BOM if content.startswith(_BOM) else b""
        parts = content[len(self._bom) :].split(b"\n")
        rest = parts.pop()
        self._lines = [part + b"\n" for part in parts]
        self._missing = b""  # the ending that the last line would have; b"": it has one
        if rest or (self._bom and not parts):
            self._missing = _ending(self._lines[-1]) if self._lines else b"\n"
            self._lines.append(rest + self._missing)

    def find(self, anchor: Anchor) -> list[int]:
        """Return the lines, from 1, that the anchor can mean; one line: that is it."""
        if self._stands(anchor):
            return [anchor.line]
        return [index + 1 for index in range(len(self._lines)) if self._tag(index) == anchor.tag]

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
        ending = b""  # of the line that the last place put in; b"": it put in none
        at = old_at = new_at = 0
        for place in sorted(places, key=lambda place: place.order):
            kept = sum(map(len, self._lines[at : place.start]))
            gone = sum(map(len, self._lines[place.start : place.end]))
            put = self._ended(place)
            new += [*self._lines[at : place.start], *put]
            old_at, new_at = old_at + kept, new_at + kept
            old_end, new_end = old_at + gone, new_at + sum(map(len, put))
            if spans and spans[-1][1] == old_at:
                spans[-1] = (spans[-1][0], old_end, spans[-1][2], new_end)
            else:
                spans.append((old_at, old_end, new_at, new_end))
            at, old_at, new_at = place.end, old_end, new_end
            ending = self._endings(place)[-1] if put else b""
        new += self._lines[at:]
        if self._missing and new:
            # Not what the last line seems to end with: of one that ends with CR and no more, that stays.
            ending = self._missing if at < len(self._lines) else ending or _ending(new[-1])
            if at < len(self._lines) or new[-1] != ending:
                new[-1] = new[-1].removesuffix(ending)
        return self._as_file(b"".join(new), spans)

    def _stands(self, anchor: Anchor) -> bool:
        return anchor.line <= len(self._lines) and self._tag(anchor.line - 1) == anchor.tag

    def _tag(self, index: int) -> str:
        # What a reader was shown of the first line begins with the mark.
        return line_tag((self._bom if index == 0 else b"") + self._lines[index])

    def _ended(self, place: _Place) -> list[bytes]:
        lines = list(place.lines)
        if self._bom and place.start == 0 and lines and lines[0].startswith(_BOM):
            lines[0] = lines[0].removeprefix(_BOM)
        return [line + ending for line, ending in zip(lines, self._endings(place), strict=True)]

    def _endings(self, place: _Place) -> list[bytes]:
        """Return the ending of each line that is put in: that of the line whose place it takes, or beside it."""
        gone = range(place.start, place.end) or [place.beside]
        taken = [gone[min(index, len(gone) - 1)] for index in range(len(place.lines))]
        is_closed = not self._missing
        return [_ending(self._lines[at]) if is_closed or at < len(self._lines) - 1 else self._missing for at in taken]

    def _as_file(self, new: bytes, spans: list[Span]) -> tuple[bytes, tuple[Span, ...]]:
        """Return a text and spans between closed ones as the file has them: behind its mark, and within its end."""
        mark, size = len(self._bom), len(self._content) - len(self._bom)
        if spans:
            old_start, old_end, new_start, new_end = spans[-1]
            # An ending that only one of the texts has belongs to what changed.
            back = max(old_start - size, new_start - len(new), 0)
            if old_end > size or new_end > len(new):
                old_end, new_end = size, len(new)
            spans[-1] = (old_start - back, old_end, new_start - back, new_end)
        return self._bom + new, tuple((a + mark, b + mark, c + mark, d + mark) for a, b, c, d in spans)


def _ending(line: bytes) -> bytes:
    return b"\r\n" if line.endswith(b"\r\n") else b"\n"
