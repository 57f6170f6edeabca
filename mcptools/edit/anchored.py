r"""Apply operations on lines that are named by number and tag; all apply to the text as it was read, or none does.

An anchor is a line number and the tag of that line (see `hashline`). It refers to the line with that number if that
line has the tag, otherwise to the only line that has the tag. If no line or several lines have it, the operation is
refused. Source: the Hashfile design, and its anchor resolution.

An empty text has no line, but one anchor, `1:c5` (the tag of an empty line), at which lines can be inserted.

New lines get the endings of the lines that they replace or are inserted next to. A missing newline at the end of the
text stays missing, and a byte-order mark stays at the start: both belong to the file, not to a line. Only if the last
remaining line would be empty does the text gain a final newline, because an empty line without one does not exist.
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
    "EMPTY_TEXT",
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
    "parse_range",
    "split_content_lines",
]

_ANCHOR: Final = re.compile(r"([1-9][0-9]{0,8}):([0-9a-fA-F]{2})(?:\|.*\n?)?")
_RANGE: Final = re.compile(r"\.\.(?=[1-9][0-9]{0,8}:[0-9a-fA-F]{2}(?:\||$))")
"""What separates the anchors of a range."""
_TAGGED: Final = re.compile(rb"([1-9][0-9]{0,8}):([0-9a-f]{2})\|")
_BOM: Final = b"\xef\xbb\xbf"
_MAX_LINES: Final = 20
"""Line numbers that are reported of lines that share a tag."""

_MANY: Final = 1000
"""Lines whose tags are computed in a few milliseconds."""


class Op(StrEnum):
    """The kinds of operations."""

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
        """Return whether the operation only inserts, and keeps the line that its anchor names."""
        return self in {Op.INSERT_AFTER, Op.INSERT_BEFORE}


@dataclass(frozen=True, slots=True)
class Anchor:
    """A line, named by its number (from 1) and its tag."""

    line: int
    tag: str

    def __str__(self) -> str:
        return f"{self.line}:{self.tag}"


EMPTY_TEXT: Final = Anchor(1, line_tag(b""))
"""The anchor of an empty text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchoredEdit:
    """One operation."""

    op: Op
    anchor: Anchor
    end: Anchor | None = None  # None: the operation is on one line
    lines: tuple[bytes, ...] = ()  # without endings; () for a deletion


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Every operation applied."""

    content: bytes
    spans: tuple[Span, ...]  # ascending and disjoint; () if nothing was replaced
    moved: tuple[tuple[int, Anchor, int], ...]  # an operation's index, its anchor, and the line where it was found


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
    """The range's last line is above its first."""

    index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationsOverlap:
    """Two operations change the same lines."""

    index: int
    prior: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedContent:
    """A new line begins with the number and tag of a line of the text, which the model was shown but no file has."""

    index: int  # of the operation
    anchor: Anchor


AnchoredOutcome: TypeAlias = (
    Placed | AnchorMissing | AnchorAmbiguous | EndBeforeStart | OperationsOverlap | TaggedContent
)


def parse_anchor(text: str) -> Anchor | None:
    """Return the anchor in `text`, which has the form `{line}:{tag}`, or None for any other text.

    The line may follow as a reader is shown it, `{line}:{tag}|{content}`; its content is not compared.
    """
    found = _ANCHOR.fullmatch(text)
    return None if found is None else Anchor(int(found[1]), found[2].lower())


def parse_range(text: str) -> tuple[Anchor, Anchor] | None:
    """Return the first and the last anchor of `text`, which has the form `{anchor}..{anchor}`, or None.

    None also where the content of a line has that form too, so that it is not certain which lines are meant.
    """
    parts = _RANGE.split(text)
    anchors = [anchor for anchor in map(parse_anchor, parts) if anchor is not None]
    return (anchors[0], anchors[1]) if len(anchors) == len(parts) == 2 else None  # noqa: PLR2004 - two ends


def split_content_lines(content: bytes) -> tuple[bytes, ...]:
    r"""Return the lines of an operation's content, without endings; a newline at its end adds no line."""
    lines = content.replace(b"\r\n", b"\n").split(b"\n")
    return tuple(lines if lines[-1] else lines[:-1])


def apply_operations(
    content: bytes, operations: Sequence[AnchoredEdit], *, between: Callable[[], object] = lambda: None
) -> AnchoredOutcome:
    """Return the result of `operations` on `content`, or why the first one that does not apply can't be applied.

    `between`: called before each operation, and repeatedly while the whole text is searched. Raises what it raises.
    """
    text = _Text(content, between)
    places: list[_Place] = []
    taken = _Taken()
    moved: list[tuple[int, Anchor, int]] = []
    for index, operation in enumerate(operations):
        between()
        found: list[int] = []
        for anchor in (operation.anchor, operation.end or operation.anchor):
            lines = text.find(anchor, is_deletion=not operation.op.has_content)
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
        if text.is_empty:
            place = _Place(index=index, start=0, end=0, model=0, after=False, lines=operation.lines)
        prior = taken.prior(place)
        if prior is not None:
            return OperationsOverlap(index=index, prior=prior)
        taken.add(place)
        places.append(place)
    new, spans = text.with_lines_at(places)
    return Placed(content=new, spans=spans, moved=tuple(moved))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The lines from `start` (from 0) up to `end` that an operation replaces; a gap between lines if both are equal."""

    index: int  # of the operation
    start: int
    end: int
    model: int  # the line whose ending new lines get if they replace none
    after: bool  # for a gap: it belongs to the line above it
    lines: tuple[bytes, ...]

    @property
    def order(self) -> tuple[int, bool, bool, int]:
        """Return the sort key: at one gap, insertions after the line above come first."""
        return self.start, self.start != self.end, not self.after, self.index


class _Taken:
    """Disjoint places, in order. A range contains a gap only if it has lines on both sides of it."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, int]] = []  # start, end, index of the operation
        self._gaps: list[tuple[int, int]] = []  # where, index of the operation

    def prior(self, place: _Place) -> int | None:
        """Return the index of the first operation that overlaps `place`, or None."""
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
        """Add a place that overlaps no other."""
        if place.start == place.end:
            insort(self._gaps, (place.start, place.index))
        else:
            insort(self._ranges, (place.start, place.end, place.index))


def _place(index: int, operation: AnchoredEdit, start: int, end: int) -> _Place:
    after = operation.op is Op.INSERT_AFTER
    model = start
    if operation.op.inserts:
        start = end = end if after else start
    return _Place(index=index, start=start, end=end, model=model, after=after, lines=operation.lines)


class _Text:
    """A text as lines that all have an ending: the last one gets one if the file lacks it."""

    def __init__(self, content: bytes, between: Callable[[], object]) -> None:
        self._content = content
        self._between = between
        self._bom = _BOM if content.startswith(_BOM) else b""
        parts = content[len(self._bom) :].split(b"\n")
        rest = parts.pop()
        self._lines = [part + b"\n" for part in parts]
        self._missing = b""  # the ending that was added to the last line; b"": it had one
        self._tags: dict[int, str] = {}  # computed when needed
        if rest or (self._bom and not parts):
            self._missing = self._ending(len(parts) - 1) if parts else b"\n"
            self._lines.append(rest + self._missing)

    @property
    def is_empty(self) -> bool:
        """Return whether the text has no line."""
        return not self._lines

    def find(self, anchor: Anchor, *, is_deletion: bool = False) -> list[int]:
        """Return the lines, from 1, that the anchor can refer to; exactly one: it refers to that line.

        `is_deletion`: the line has to exist; otherwise EMPTY_TEXT refers to where the first line of an empty text goes.
        """
        if self._matches(anchor) or (self.is_empty and anchor == EMPTY_TEXT and not is_deletion):
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
        """Return the first anchor of this text with which one of `lines` begins, in the form that a reader is shown."""
        for found in filter(None, map(_TAGGED.match, lines)):
            anchor = Anchor(int(found[1]), found[2].decode())
            if self._matches(anchor):
                return anchor
        return None

    def with_lines_at(self, places: Sequence[_Place]) -> tuple[bytes, tuple[Span, ...]]:
        """Return the text with each place replaced by its new lines, and the spans of replaced bytes."""
        new: list[bytes] = []
        spans: list[Span] = []
        ending = b""  # of the last line in `new`
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

    def _matches(self, anchor: Anchor) -> bool:
        return anchor.line <= len(self._lines) and self._tag(anchor.line - 1) == anchor.tag

    def _tag(self, index: int) -> str:
        tag = self._tags.get(index)
        if tag is None:
            # A reader was shown the first line with the byte-order mark.
            tag = self._tags[index] = line_tag((self._bom if index == 0 else b"") + self._lines[index])
        return tag

    def _ending(self, index: int) -> bytes:
        """Return the ending of a line, or the one that was added to the last line."""
        if self._missing and index == len(self._lines) - 1:
            return self._missing
        if self.is_empty:
            return b"\n"
        return b"\r\n" if self._lines[index].endswith(b"\r\n") else b"\n"

    def _ended(self, place: _Place) -> list[tuple[bytes, bytes]]:
        """Return the new lines of a place, each with its ending."""
        gone = range(place.start, place.end) or range(place.model, place.model + 1)
        lines = list(place.lines)
        if self._bom and place.start == 0 and lines and lines[0].startswith(_BOM):
            lines[0] = lines[0].removeprefix(_BOM)
        return [(line, self._ending(gone[min(index, len(gone) - 1)])) for index, line in enumerate(lines)]

    def _as_file(self, new: bytes, spans: list[Span]) -> tuple[bytes, tuple[Span, ...]]:
        """Return a text and its spans as they are in the file: after its byte-order mark, without added endings."""
        mark, size = len(self._bom), len(self._content) - len(self._bom)
        if spans:
            old_start, old_end, new_start, new_end = spans[-1]
            # An ending that only one of the two texts has is part of the change.
            back = max(old_start - size, new_start - len(new), 0)
            if old_end > size:
                old_end, new_end = size, len(new)
            spans[-1] = (old_start - back, old_end, new_start - back, new_end)
        return self._bom + new, tuple((a + mark, b + mark, c + mark, d + mark) for a, b, c, d in spans)
