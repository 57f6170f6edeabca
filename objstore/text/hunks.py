"""Hunks: which lines of a text were replaced by which lines of its successor.

Coordinates are zero-based lines of the closed texts (see `lines`): a missing final newline is not a
difference of lines. Hunks of one change ascend, change something, and never touch: at least one line
that both texts share stands between two of them.
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
    """`old_count` lines from `old_start` gave way to `new_count` lines from `new_start`."""

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
    """The hunks between two texts from which they were made, so that nobody need see whether they lead there.

    `shared`: how much the texts share at their ends, as far as it is known.
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
        """Return hunks that were made from these very texts; None: others, which may not lead from one to the other."""
        if isinstance(hunks, cls) and hunks.before is before and hunks.after is after:
            return hunks
        return None


class Span(NamedTuple):
    """Bytes `old_start` to `old_end` of one text gave way to bytes `new_start` to `new_end` of the next."""

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
    """Return the closed text that each hunk puts in.

    `line_offset`, where the caller has something quicker than counting, tells at which byte a line of
    closed `before` begins; it raises ValueError beyond the end. `shared`: how much the texts are known to share at
    their ends, and that need not be compared again.
    Raises ValueError unless the hunks ascend without touching, lie inside both texts, and turn the lines of
    `before` into the lines of `after`: stored hunks are believed only after this.
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

    So that whoever cuts a text at each of them copies it a logarithmic number of times.
    """
    lines = sorted({line for hunk in hunks for line in (hunk.old_start, hunk.old_end)})
    spans = [(0, len(lines))]
    for low, high in spans:
        if low < high:
            middle = (low + high) // 2
            yield lines[middle]
            spans += [(low, middle), (middle + 1, high)]


def _ascending_offsets(text: bytes) -> Callable[[int], int]:
    """Return a function from lines of `text`, asked for in ascending order, to their offsets."""
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

    Spans say which of several equal lines was meant, where a diff can only guess. They ascend without
    overlapping, and what stands between them is equal in both texts. Each is widened to whole lines, then
    freed of equal lines at its start and at its end; those that touch become one hunk.
    Raises ValueError when the spans do not lead from `before` to `after`.
    """
    named = [Span(*span) for span in spans]
    _check(before, after, named)
    old, new = closed(before), closed(after)
    hunks: list[Hunk] = []
    old_at = old_line = new_line = 0
    for span in _joined(_trimmed(old, new, _widened(old, new, named))):
        if old[span.old_start : span.old_end] == new[span.new_start : span.new_end]:
            continue  # two spans that together put back what was there
        kept = old.count(b"\n", old_at, span.old_start)
        old_count = old.count(b"\n", span.old_start, span.old_end)
        new_count = new.count(b"\n", span.new_start, span.new_end)
        hunk = Hunk(old_line + kept, old_count, new_line + kept, new_count)
        hunks.append(hunk)
        old_at, old_line, new_line = span.old_end, hunk.old_end, hunk.new_end
    return VerifiedHunks(hunks, before, after, _shared(before, after, named))


def hunks_through(before: bytes, after: bytes, first: Sequence[Hunk], second: Sequence[Hunk]) -> tuple[Hunk, ...]:
    """Return the hunks of two changes as those of one: `first` leads from `before` on, `second` from there to `after`.

    So the lines that each of them named are known still. What both are about, or what they did side by side, is one
    hunk, freed of equal lines at its start and at its end.
    """
    old, new = closed(before), closed(after)
    old_at, new_at = _ascending_offsets(old), _ascending_offsets(new)
    firsts, seconds = list(reversed(first)), list(reversed(second))
    old_shift = new_shift = 0  # from lines between the changes, where both have come to
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
    """Return what two texts share at their ends beyond the spans between them, and in those."""
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
    """Grow each span to the start and the end of its lines; spans that share a line become one."""
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
    """Drop equal lines at the ends of each span, and spans that hold nothing else."""
    for old_start, old_end, new_start, new_end in spans:
        removed, added = old[old_start:old_end], new[new_start:new_end]
        head, tail = shared_ends(removed, added, common_affixes(removed, added))
        span = Span(old_start + head, old_end - tail, new_start + head, new_end - tail)
        if span.old_start < span.old_end or span.new_start < span.new_end:
            yield span


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Make one of spans with nothing between them."""
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
