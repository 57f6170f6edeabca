"""Represent a change of a text as hunks: which lines were replaced by which.

Coordinates are zero-based lines of the closed texts (see `lines`), so a missing final newline is not a difference of
lines. The hunks of one change ascend, each changes something, and they never touch: at least one line that both texts
share is between two of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Self

from objstore.text.lines import (
    NOTHING_SHARED,
    Affixes,
    closed,
    common_affixes,
    lines_end,
    same_bytes,
    shared_ends,
    shared_head,
    shared_tail,
    starts_line,
)

__all__ = [
    "Hunk",
    "Span",
    "VerifiedHunks",
    "borders",
    "hunks_fit",
    "hunks_from_spans",
    "hunks_through",
    "inserted_texts",
]


class Hunk(NamedTuple):
    """One replacement: `old_count` lines from `old_start` gave way to `new_count` lines from `new_start`."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int

    @property
    def old_end(self) -> int:
        """The first old line after the hunk."""
        return self.old_start + self.old_count

    @property
    def new_end(self) -> int:
        """The first new line after the hunk."""
        return self.new_start + self.new_count


class VerifiedHunks(tuple[Hunk, ...]):  # noqa: SLOT001 - a tuple of its own can have no slots
    """Hunks together with the two texts that they were computed from, so that they need no check again.

    `shared`: how many bytes the texts share at their ends, as far as that is known.
    """

    before: bytes
    after: bytes
    shared: Affixes

    def __new__(cls, hunks: Iterable[Hunk], before: bytes, after: bytes, shared: Affixes) -> Self:
        """Hold hunks that lead from `before` to `after`."""
        made = super().__new__(cls, hunks)
        made.before, made.after, made.shared = before, after, shared
        return made

    @classmethod
    def known(cls, hunks: Sequence[Hunk] | None, before: bytes, after: bytes) -> Self | None:
        """Return `hunks` if they were computed from these very text objects; None if they have to be checked."""
        if isinstance(hunks, cls) and hunks.before is before and hunks.after is after:
            return hunks
        return None


class Span(NamedTuple):
    """A replacement in bytes: `old_start` to `old_end` of one text gave way to `new_start` to `new_end` of the next."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def inserted_texts(
    before: bytes,
    after: bytes,
    hunks: Sequence[Hunk],
    line_offset: Callable[[int], int] | None = None,
    shared: Affixes = NOTHING_SHARED,
) -> list[bytes]:
    """Return the closed text that each hunk inserts.

    `line_offset`: a function that returns the byte at which a line of closed `before` begins and raises ValueError
    beyond the end; give it if it is faster than counting lines. `shared`: how many bytes the texts are known to share
    at their ends; these are not compared again.

    Raises ValueError unless the hunks ascend without touching, are inside both texts, and turn the lines of `before`
    into the lines of `after`. Stored hunks are trusted only after this check.
    """
    old, new = closed(before), closed(after)
    line_offset = line_offset or _ascending_offsets(old)
    texts: list[bytes] = []
    old_line = new_line = old_at = new_at = 0
    for hunk in hunks:
        kept = hunk.old_start - old_line
        if min(hunk) < 0 or kept < (1 if texts else 0) or hunk.new_start - new_line != kept:
            raise ValueError(f"{hunk} does not follow the hunk before it")
        if not hunk.old_count and not hunk.new_count:
            raise ValueError(f"{hunk} changes nothing")
        old_from = line_offset(hunk.old_start)
        new_from = new_at + old_from - old_at
        known = not texts and old_from <= shared.prefix
        if not known and not same_bytes(old, old_at, new, new_at, old_from - old_at):
            raise ValueError(f"the texts differ before {hunk}")
        old_at = line_offset(hunk.old_end)
        new_at = lines_end(new, new_from, hunk.new_count)
        old_line, new_line = hunk.old_end, hunk.new_end
        texts.append(new[new_from:new_at])
    rest = len(old) - old_at
    known = rest <= shared.suffix and old is before and new is after
    if rest != len(new) - new_at or not (known or same_bytes(old, old_at, new, new_at, rest)):
        raise ValueError("the texts differ after the last hunk")
    return texts


def borders(hunks: Sequence[Hunk]) -> Iterator[int]:
    """Yield each old line at which a hunk begins or ends, the middle one first.

    A caller that cuts a text at these lines in this order copies each byte a logarithmic number of times.
    """
    lines = sorted({line for hunk in hunks for line in (hunk.old_start, hunk.old_end)})
    spans = [(0, len(lines))]
    for low, high in spans:
        if low < high:
            middle = (low + high) // 2
            yield lines[middle]
            spans += [(low, middle), (middle + 1, high)]


def _ascending_offsets(text: bytes) -> Callable[[int], int]:
    """Return a function from line numbers of `text` to byte offsets; the lines must be asked for in ascending order."""
    line = offset = 0

    def offset_of(wanted: int) -> int:
        nonlocal line, offset
        offset, line = lines_end(text, offset, wanted - line), wanted
        return offset

    return offset_of


def hunks_fit(before: bytes, after: bytes, hunks: Sequence[Hunk]) -> bool:
    """Return whether `hunks` are well formed and turn the lines of `before` into the lines of `after`."""
    try:
        inserted_texts(before, after, hunks)
    except ValueError:
        return False
    return True


def hunks_from_spans(before: bytes, after: bytes, spans: Iterable[tuple[int, int, int, int]]) -> VerifiedHunks:
    """Return the hunks of a change whose replaced bytes are known.

    Spans say which of several equal lines was meant, where a diff can only guess. They ascend without overlapping, and
    the bytes between them are equal in both texts. Each span is widened to whole lines, then trimmed of equal lines at
    both ends; spans that touch become one hunk.

    Raises ValueError if the spans do not lead from `before` to `after`.
    """
    named = [Span(*span) for span in spans]
    _check(before, after, named)
    old, new = closed(before), closed(after)
    hunks: list[Hunk] = []
    old_at = old_line = new_line = 0
    for span in _joined(_trimmed(old, new, _widened(old, new, named))):
        if old[span.old_start : span.old_end] == new[span.new_start : span.new_end]:
            continue  # two spans that together restore the old bytes
        kept = old.count(b"\n", old_at, span.old_start)
        old_count = old.count(b"\n", span.old_start, span.old_end)
        new_count = new.count(b"\n", span.new_start, span.new_end)
        hunk = Hunk(old_line + kept, old_count, new_line + kept, new_count)
        hunks.append(hunk)
        old_at, old_line, new_line = span.old_end, hunk.old_end, hunk.new_end
    return VerifiedHunks(hunks, before, after, _shared(before, after, named))


def hunks_through(before: bytes, after: bytes, first: Sequence[Hunk], second: Sequence[Hunk]) -> tuple[Hunk, ...]:
    """Combine the hunks of two consecutive changes; `first` starts at `before`, and `second` continues to `after`.

    This keeps the lines that each change named, where a diff could only guess. Where both changes overlap or touch, the
    result has one hunk, trimmed of equal lines at both ends.
    """
    old, new = closed(before), closed(after)
    old_at, new_at = _ascending_offsets(old), _ascending_offsets(new)
    firsts, seconds = list(reversed(first)), list(reversed(second))
    old_shift = new_shift = 0  # from lines of the middle text to lines of `before` and `after`, at the current position
    hunks: list[Hunk] = []
    while firsts or seconds:
        start = end = min([hunk.new_start for hunk in firsts[-1:]] + [hunk.old_start for hunk in seconds[-1:]])
        old_line, new_line, left = start + old_shift, start + new_shift, (len(firsts), len(seconds))
        while True:
            if firsts and firsts[-1].new_start <= end:
                hunk = firsts.pop()
                end, old_shift = max(end, hunk.new_end), hunk.old_end - hunk.new_end
            elif seconds and seconds[-1].old_start <= end:
                hunk = seconds.pop()
                end, new_shift = max(end, hunk.old_end), hunk.new_end - hunk.old_end
            else:
                break
        hunk = Hunk(old_line, end + old_shift - old_line, new_line, end + new_shift - new_line)
        if len(firsts) < left[0] and len(seconds) < left[1]:
            removed, added = old[old_at(old_line) : old_at(hunk.old_end)], new[new_at(new_line) : new_at(hunk.new_end)]
            head, tail = shared_ends(removed, added, common_affixes(removed, added))
            above, below = removed.count(b"\n", 0, head), removed.count(b"\n", len(removed) - tail)
            same = above + below
            hunk = Hunk(old_line + above, hunk.old_count - same, new_line + above, hunk.new_count - same)
        if hunk.old_count or hunk.new_count:
            hunks.append(hunk)
    return tuple(hunks)


def _shared(before: bytes, after: bytes, spans: Sequence[Span]) -> Affixes:
    """Return how many bytes two texts share at their ends, outside the spans and at the outer edges of the spans."""
    if not spans:
        return Affixes(len(before), 0)
    first, last = spans[0], spans[-1]
    if first is last:
        inside = common_affixes(before[first.old_start : first.old_end], after[first.new_start : first.new_end])
    else:
        head = shared_head(before[first.old_start : first.old_end], after[first.new_start : first.new_end])
        removed, added = before[last.old_start : last.old_end], after[last.new_start : last.new_end]
        inside = Affixes(head, shared_tail(removed, added, min(len(removed), len(added))))
    return Affixes(first.old_start + inside.prefix, len(before) - last.old_end + inside.suffix)


def _check(before: bytes, after: bytes, spans: Sequence[Span]) -> None:
    old_at = new_at = 0
    for span in (*spans, Span(len(before), len(before), len(after), len(after))):
        if not (old_at <= span.old_start <= span.old_end and new_at <= span.new_start <= span.new_end):
            raise ValueError(f"{span} is out of order or out of range")
        if before[old_at : span.old_start] != after[new_at : span.new_start]:
            raise ValueError(f"the texts differ before {span}")
        old_at, new_at = span.old_end, span.new_end


def _widened(old: bytes, new: bytes, spans: Sequence[Span]) -> Iterator[Span]:
    """Extend each span to whole lines; spans that share a line become one."""
    index = 0
    while index < len(spans):
        old_start, old_end, new_start, new_end = spans[index]
        old_from = old.rfind(b"\n", 0, old_start) + 1
        new_from = new_start - (old_start - old_from)
        index += 1
        while not (starts_line(old, old_end) and starts_line(new, new_end)):
            if index == len(spans):
                old_end, new_end = _line_end(old, old_end), _line_end(new, new_end)
                break
            line_end = old.find(b"\n", old_end, spans[index].old_start) + 1
            if line_end:
                new_end += line_end - old_end
                old_end = line_end
                break
            _, old_end, _, new_end = spans[index]
            index += 1
        yield Span(old_from, old_end, new_from, new_end)


def _line_end(text: bytes, at: int) -> int:
    return text.find(b"\n", at) + 1 or len(text)


def _trimmed(old: bytes, new: bytes, spans: Iterable[Span]) -> Iterator[Span]:
    """Remove equal lines at both ends of each span, and drop spans with nothing else."""
    for old_start, old_end, new_start, new_end in spans:
        removed, added = old[old_start:old_end], new[new_start:new_end]
        head, tail = shared_ends(removed, added, common_affixes(removed, added))
        span = Span(old_start + head, old_end - tail, new_start + head, new_end - tail)
        if span.old_start < span.old_end or span.new_start < span.new_end:
            yield span


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Join adjacent spans."""
    last: Span | None = None
    for span in spans:
        if last is not None and last.old_end == span.old_start:
            last = Span(last.old_start, span.old_end, last.new_start, span.new_end)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last
