"""Find the hunks between two texts by patience diff.

Lines that occur once in both texts anchor the comparison (Bram Cohen's patience diff), gap by gap. Where such lines
cross, those that are unique in the whole texts take precedence, because a function's name is a better anchor than its
`return`. A gap without unique lines is matched by its longest common subsequence (Hunt and Szymanski) while that is
cheap.

Anchors read well, but may be wrong, and lines that repeat have none. So wherever more than four times as many lines are
left over as must have changed, a shortest path near the diagonal is looked for (`objstore/text/band.py`) and taken if
it leaves at most a quarter of them over. In a large gap it is not looked for if the new text has hardly any short
stretch of lines of the old one: so much has changed that no path is much shorter. Hunks that nothing but a bracket
parts are joined.

Pure insertions and deletions are then moved to a position that depends only on the two texts, not on how they were
matched. Time is O(n log n) for every input: the number of rounds, of candidate pairs and of bits in bands are limited.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from math import ceil, log
from typing import Final, NamedTuple, TypeAlias

from objstore.text.hunks import Hunk, Span, hunks_fit, hunks_from_spans
from objstore.text.lines import Affixes, closed, common_affixes, shared_ends, split_lines

__all__ = ["Hunk", "Span", "diff_lines", "hunks_fit", "hunks_from_spans", "joined", "split_lines"]

_ROUNDS: Final = 24
"""How often a gap may be divided again at its unique lines; real texts need fewer than six."""

_PAIRS: Final = 100_000
"""Budget of candidate pairs of equal lines for all gaps without unique lines together; two more are added per line."""

_WASTE: Final = 4
"""How many times as many lines as must change may be shown as changed, for anchors that read better."""

_SLACK: Final = 32
"""Diagonals on each side of the narrowest band."""

_WIDER: Final = 16
"""How many times as wide each further band is: up to some hundred diagonals, a row takes as long as a narrow one."""

_BITS: Final = 500_000_000
"""Budget of bits for all bands together."""

_MANY: Final = 40_000
"""From how many lines on, of both texts, it is estimated first whether a band can help."""

_SAMPLES: Final = 64
"""Stretches of lines that are looked up in the other text for the estimate."""

_GONE: Final = 0.9
"""The share of these that the other text lacks if no band can help."""

_LONGEST: Final = 13
"""The most lines of a stretch: one changed line is missing from so many of them."""

_SPREAD: Final = 0.6180339887498949
"""The golden ratio: its multiples, without their whole parts, are spread evenly and never in step with a text."""

_SLIDE: Final = 64
"""How many lines an insertion or deletion may be moved up to a boundary that reads better."""

_LARGE: Final = 4
"""From how many lines on, removed and added, a replacement may be joined with its neighbour."""

_MARKS: Final = bytes(byte for byte in range(128) if byte != ord("_") and not chr(byte).isalnum())
"""ASCII punctuation, white space and control characters: bytes that make no word."""


def diff_lines(before: bytes, after: bytes, affixes: Affixes | None = None) -> tuple[Hunk, ...]:
    """Return the hunks that lead from the lines of `before` to the lines of `after`.

    `affixes`: what the two texts share at their ends, if the caller has computed it.
    """
    old, new = closed(before), closed(after)
    if old == new:
        return ()
    if affixes is None or old is not before or new is not after:
        affixes = common_affixes(old, new)
    head, tail = shared_ends(old, new, affixes)
    replaced = old[head : len(old) - tail].split(b"\n")[:-1]
    replacing = new[head : len(new) - tail].split(b"\n")[:-1]
    line = old.count(b"\n", 0, head)
    shared = partial(_shared_lines, old, head, tail)
    hunks = joined(_between(_matches(replaced, replacing, shared), len(replaced), len(replacing), line), replaced, line)
    if any(map(_is_pure, hunks)):
        room = old[_back(old, head, _SLIDE) : head].split(b"\n")[:-1]
        above = line - len(room)
        # A single pure hunk is already at its lowest position, because the shared start is as long as possible.
        below = old[len(old) - tail :].split(b"\n")[:-1] if len(hunks) > 1 and _is_pure(hunks[-1]) else []
        moved = [Hunk(h.old_start - above, h.old_count, h.new_start - above, h.new_count) for h in hunks]
        slid = _slid(room + replaced + below, room + replacing + below, moved)
        hunks = [Hunk(h.old_start + above, h.old_count, h.new_start + above, h.new_count) for h in slid]
    return tuple(hunks)


def _shared_lines(text: bytes, head: int, tail: int) -> set[bytes]:
    """Return the lines above and below the part in which two texts differ."""
    return {*text[:head].split(b"\n"), *text[len(text) - tail :].split(b"\n")}


def _back(text: bytes, offset: int, lines: int) -> int:
    for _ in range(lines):
        if not offset:
            break
        offset = text.rfind(b"\n", 0, offset - 1) + 1
    return offset


_Counts: TypeAlias = tuple[Counter[int], Counter[int]]
"""How often each line occurs in the old and the new lines of a gap."""


class _Gap(NamedTuple):
    """Stretches of lines still to be compared: old[a:b] with new[c:d]."""

    a: int
    b: int
    c: int
    d: int
    rounds: int


class _Block(NamedTuple):
    """A match of `size` equal lines: old[a:] and new[c:]."""

    a: int
    c: int
    size: int


def _matches(old_lines: Sequence[bytes], new_lines: Sequence[bytes], shared: Callable[[], set[bytes]]) -> list[_Block]:
    """Return the blocks of unchanged lines, ascending. `shared` returns the lines above and below the given ones."""
    length = len(old_lines)
    if length == len(new_lines) > 0 and old_lines[1:-1] == new_lines[1:-1]:
        # The most common case: one or two lines changed. A line that is not in the other text can't be matched.
        first, last = old_lines[0], old_lines[-1]
        if first not in new_lines and last not in new_lines:
            return [_Block(1, 1, length - 2)] if length > len((first, last)) else []
    # Not `numbers.__len__`: the dict would refer to itself and hold all lines until the garbage collector runs.
    numbers: defaultdict[bytes, int] = defaultdict(count().__next__)
    old = [numbers[line] for line in old_lines]
    new = [numbers[line] for line in new_lines]

    def around() -> set[int]:
        return {numbers[line] for line in shared() if line in numbers}

    matching = _Matching(old, new, around)
    matching.match(_Gap(0, len(old), 0, len(new), _ROUNDS))
    return sorted(matching.blocks)


class _Matching:
    """The blocks matched so far, and what is left of the budgets."""

    def __init__(self, old: list[int], new: list[int], around: Callable[[], set[int]]) -> None:
        """Start with nothing matched. `around` returns the lines above and below the given ones."""
        self._old, self._new, self._around = old, new, around
        lines = len(old) + len(new)
        self._pairs = _PAIRS + 2 * lines
        self._bits = _BITS
        self._unique: set[int] | None = None  # lines that occur once in each whole text; None: not computed yet
        self.blocks: list[_Block] = []

    def match(self, gap: _Gap) -> int:
        """Match the lines of a gap, and return how many of the old ones are matched."""
        old, new = self._old, self._new
        inner = _trim(old, new, gap, self.blocks)
        trimmed = gap.b - gap.a - (inner.b - inner.a)
        counts = Counter(old[inner.a : inner.b]), Counter(new[inner.c : inner.d])
        if counts[0].keys().isdisjoint(counts[1]):
            return trimmed
        place, matched = len(self.blocks), 0
        chain = self._anchors(inner, counts) if inner.rounds else []
        if chain:
            matched = sum(map(self.match, _cut(inner, chain)))
        else:
            cost = _pair_count(counts)
            if cost <= self._pairs:
                self._pairs -= cost
                chain = _longest_chain(_all_pairs(old, new, inner))
        left = inner.b - inner.a + inner.d - inner.c - 2 * (len(chain) + matched)
        shorter = self._shorter(inner, left, counts)
        if shorter:
            del self.blocks[place:]
            chain, matched = shorter, 0
        self.blocks.extend(_Block(a, c, 1) for a, c in chain)
        return trimmed + len(chain) + matched

    def _anchors(self, gap: _Gap, counts: _Counts) -> list[tuple[int, int]]:
        """Return the longest chain of unique lines; where some cross, of those that are unique in the whole texts."""
        pairs = _unique_pairs(self._old, self._new, gap, counts)
        chain = _longest_chain(pairs)
        if len(chain) < len(pairs):
            if self._unique is None:
                everything = _Gap(0, len(self._old), 0, len(self._new), 0)
                whole = _unique_pairs(self._old, self._new, everything, (Counter(self._old), Counter(self._new)))
                around = self._around() if whole else ()
                self._unique = {self._old[place] for place, _ in whole if self._old[place] not in around}
            kept = [pair for pair in pairs if self._old[pair[0]] in self._unique]
            if 0 < len(kept) < len(pairs):
                chain = _longest_chain(kept)
        return chain

    def _shorter(self, gap: _Gap, left: int, counts: _Counts) -> list[tuple[int, int]]:
        """Return pairs of equal lines that leave at most a quarter of `left` lines over, or nothing."""
        old, new = self._old[gap.a : gap.b], self._new[gap.c : gap.d]
        if left <= _WASTE * abs(len(old) - len(new)):
            return []
        in_old, in_new = counts
        if left <= _WASTE * (len(old) + len(new) - 2 * (in_old & in_new).total()):
            return []
        if len(old) + len(new) >= _MANY and _has_changed_throughout(old, new, in_old):
            return []
        # Without the lines that only one side has, the shortest path is nearer to the diagonal.
        old_places = [place for place, line in enumerate(old, gap.a) if line in in_new]
        new_places = [place for place, line in enumerate(new, gap.c) if line in in_old]
        most = left // _WASTE - (len(old) - len(old_places) + len(new) - len(new_places))
        pairs = self._banded(
            [self._old[place] for place in old_places], [self._new[place] for place in new_places], most
        )
        return [(old_places[a], new_places[c]) for a, c in pairs]

    def _banded(self, old: list[int], new: list[int], most: int) -> list[tuple[int, int]]:
        """Return the matched lines of an alignment that leaves at most `most` lines over, or nothing."""
        from objstore.text.band import Band  # mostly the anchors leave few lines over

        slack, found = 0, None
        while (wider := min(max(_SLACK, _WIDER * slack), Band.widest(len(old), len(new), self._bits))) > slack:
            slack = wider
            found = Band(old, new, slack)
            self._bits -= found.size
            if min(len(old) + len(new) - 2 * found.length, most) <= found.proven:
                break
        return found.pairs() if found and len(old) + len(new) - 2 * found.length <= most else []


def _trim(old: list[int], new: list[int], gap: _Gap, blocks: list[_Block]) -> _Gap:
    """Move equal lines at both ends of `gap` into `blocks`; return the rest of the gap."""
    a, b, c, d, rounds = gap
    while a < b and c < d and old[a] == new[c]:
        a += 1
        c += 1
    while a < b and c < d and old[b - 1] == new[d - 1]:
        b -= 1
        d -= 1
    if a > gap.a:
        blocks.append(_Block(gap.a, gap.c, a - gap.a))
    if b < gap.b:
        blocks.append(_Block(b, d, gap.b - b))
    return _Gap(a, b, c, d, rounds)


def _cut(gap: _Gap, chain: Iterable[tuple[int, int]]) -> Iterable[_Gap]:
    a, c = gap.a, gap.c
    for old_at, new_at in chain:
        if a < old_at and c < new_at:
            yield _Gap(a, old_at, c, new_at, gap.rounds - 1)
        a, c = old_at + 1, new_at + 1
    yield _Gap(a, gap.b, c, gap.d, gap.rounds - 1)


def _unique_pairs(old: list[int], new: list[int], gap: _Gap, counts: _Counts) -> list[tuple[int, int]]:
    """Return the (old, new) positions of the lines that occur once on each side, by old position."""
    in_old, in_new = counts
    unique = {line for line, count in in_old.items() if count == in_new.get(line) == 1}
    if not unique:
        return []
    places = {line: place for place, line in enumerate(new[gap.c : gap.d], gap.c) if line in unique}
    return [(place, places[line]) for place, line in enumerate(old[gap.a : gap.b], gap.a) if line in unique]


def _pair_count(counts: _Counts) -> int:
    in_old, in_new = counts
    return sum(count * in_new.get(line, 0) for line, count in in_old.items())


def _has_changed_throughout(old: list[int], new: list[int], in_old: Counter[int]) -> bool:
    """Return whether nearly no short stretch of old lines is among the new ones, by a sample of them.

    The stretches are as long as it takes for few of them to occur by chance.
    """
    kinds = len(old) ** 2 / sum(count * count for count in in_old.values())  # if all were equally frequent
    size = ceil(log(12 * len(new)) / log(kinds)) if kinds > 1 else _LONGEST + 1
    if size > min(_LONGEST, len(old)):
        return False
    from array import array  # most texts are shorter

    width = "B" if max(*old, *new) < 1 << 8 else "I"  # few bytes are searched faster
    text = array(width, new).tobytes()
    starts = (int(number * _SPREAD % 1 * (len(old) - size)) for number in range(1, _SAMPLES + 1))
    # Bytes that fit by chance between two lines only make the sample look less changed.
    return sum(array(width, old[start : start + size]).tobytes() not in text for start in starts) >= _GONE * _SAMPLES


def _all_pairs(old: list[int], new: list[int], gap: _Gap) -> Iterable[tuple[int, int]]:
    """Return the (old, new) positions of equal lines by old position; those of one old position descend."""
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place in reversed(range(gap.c, gap.d)):
        places[new[place]].append(place)
    return ((place, other) for place in range(gap.a, gap.b) for other in places.get(old[place], ()))


def _longest_chain(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest sequence of pairs that ascends strictly on both sides."""
    ends: list[int] = []  # ends[k]: the smallest new position that a chain of k + 1 pairs can end in
    links: list[_Link] = []
    for old_at, new_at in pairs:
        length = bisect_left(ends, new_at)
        if length < len(ends) and ends[length] == new_at:
            continue  # of equal old lines the first is kept, so the deleted ones are contiguous below it
        link = _Link(old_at, new_at, links[length - 1] if length else None)
        if length == len(ends):
            ends.append(new_at)
            links.append(link)
        else:
            ends[length] = new_at
            links[length] = link
    chain: list[tuple[int, int]] = []
    last = links[-1] if links else None
    while last is not None:
        chain.append((last.old_at, last.new_at))
        last = last.before
    chain.reverse()
    return chain


class _Link(NamedTuple):
    """The last pair of a chain, and the chain before it."""

    old_at: int
    new_at: int
    before: "_Link | None"


def _between(blocks: Iterable[_Block], old_count: int, new_count: int, line: int) -> list[Hunk]:
    """Return the hunks between consecutive `blocks`, in texts that have `line` more lines above."""
    hunks: list[Hunk] = []
    a = c = 0
    for old_at, new_at, size in (*blocks, (old_count, new_count, 0)):
        if old_at > a or new_at > c:
            hunks.append(Hunk(a + line, old_at - a, c + line, new_at - c))
        a, c = old_at + size, new_at + size
    return hunks


def joined(hunks: Iterable[Hunk], old: Sequence[bytes], line: int = 0) -> list[Hunk]:
    """Join replacements of several lines that a single line of punctuation parts. `old` begins at line number `line`.

    Such a line, a bracket mostly, is equal by chance as often as by meaning. To read it twice, as removed and as added,
    is no more than to read it once and the header of another hunk.
    """
    joined: list[Hunk] = []
    above: Hunk | None = None
    for hunk in hunks:
        if (
            above
            and _is_large(above)
            and _is_large(hunk)
            and _is_bracket(old[above.old_end - line : hunk.old_start - line])
        ):
            first = joined[-1]
            joined[-1] = Hunk(
                first.old_start, hunk.old_end - first.old_start, first.new_start, hunk.new_end - first.new_start
            )
        else:
            joined.append(hunk)
        above = hunk
    return joined


def _is_large(hunk: Hunk) -> bool:
    return not _is_pure(hunk) and hunk.old_count + hunk.new_count >= _LARGE


def _is_bracket(lines: Sequence[bytes]) -> bool:
    """Return whether this is a single line that has punctuation and no word."""
    return len(lines) == 1 and bool(lines[0].strip()) and not lines[0].translate(None, _MARKS)


def _slid(old: Sequence[bytes], new: Sequence[bytes], hunks: Sequence[Hunk]) -> list[Hunk]:
    """Move pure insertions and deletions to the position that a person would have chosen.

    A hunk of whole lines can often be at several positions with the same effect (`}` lines, comment openers). The best
    one follows a blank line or the start of the text; then the one whose first line is indented least; then one below a
    line that is indented less; then the lowest. The search begins at the lowest position, wherever matching put the
    hunk, so an insertion and its removal name the same lines.
    """
    slid: list[Hunk] = []
    for hunk in _sunk(old, new, hunks):
        up = 0
        if _is_pure(hunk):
            room = hunk.old_start - slid[-1].old_end - 1 if slid else hunk.old_start
            up = _best_slide(*_side(hunk, old, new), min(room, _SLIDE))
        slid.append(_moved(hunk, -up))
    return slid


def _sunk(old: Sequence[bytes], new: Sequence[bytes], hunks: Sequence[Hunk]) -> Iterator[Hunk]:
    """Move each pure hunk down as far as possible, and join it with the next pure one if it gets there."""
    sunk: list[Hunk] = []  # from the last to the first
    for hunk in reversed(hunks):
        place = hunk
        while _is_pure(place):
            lines, start, count = _side(place, old, new)
            room = (sunk[-1].old_start if sunk else len(old)) - place.old_end
            down = 0
            while down < room and lines[start + down] == lines[start + count + down]:
                down += 1
            place = _moved(place, down)
            if down < room or not sunk:
                break
            if not _is_pure(sunk[-1]):
                place = _moved(place, -1)  # two hunks must not touch
                break
            below = sunk.pop()
            place = place._replace(
                old_count=place.old_count + below.old_count, new_count=place.new_count + below.new_count
            )
        sunk.append(place)
    return reversed(sunk)


def _is_pure(hunk: Hunk) -> bool:
    """Return whether the hunk only inserts or only deletes."""
    return not (hunk.old_count and hunk.new_count)


def _side(hunk: Hunk, old: Sequence[bytes], new: Sequence[bytes]) -> tuple[Sequence[bytes], int, int]:
    """Return the text that holds the lines of a pure hunk, with their start and count."""
    return (new, *hunk[2:]) if hunk.new_count else (old, *hunk[:2])


def _moved(hunk: Hunk, lines: int) -> Hunk:
    return Hunk(hunk.old_start + lines, hunk.old_count, hunk.new_start + lines, hunk.new_count)


def _best_slide(lines: Sequence[bytes], start: int, count: int, room: int) -> int:
    """Return by how many lines to move lines[start:start + count] up, at most `room`."""
    best, best_cost = 0, (*_cost_of_cut(lines, start), not _opens(lines, start))
    up = 0
    while up < room and lines[start - up - 1] == lines[start + count - up - 1]:
        up += 1
        # Beyond its own length a hunk only trades places with equal lines, so their indentation carries no information.
        cost = (*_cost_of_cut(lines, start - up), up >= count or not _opens(lines, start - up))
        if cost < best_cost:
            best, best_cost = up, cost
    return best


def _cost_of_cut(lines: Sequence[bytes], start: int) -> tuple[bool, int]:
    follows_text = start > 0 and bool(lines[start - 1].strip())
    return follows_text, _indent(lines[start])


def _opens(lines: Sequence[bytes], start: int) -> bool:
    """Return whether a line is indented more than the one above it."""
    return start > 0 and _indent(lines[start - 1]) < _indent(lines[start])


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip())
