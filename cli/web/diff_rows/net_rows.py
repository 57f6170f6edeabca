"""Lay out the net changes of a file as the rows of its diff, and make the requested rows.

The layout of the whole diff is a list of runs of rows, so that the cost of a page depends on its own rows, even in a
diff of a million rows. Words are compared only for the requested rows, within a budget.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cli.screen.terminal import visible
from cli.screen.word_diff import Emphasis, Span, emphasis, paired_lines
from cli.web.kept import Kept
from objstore import ChangeKind, DocumentId, NetChange, diff_lines, split_lines, value

if TYPE_CHECKING:
    from cli.screen.syntax import Mark
    from cli.web.diff_rows.syntax_marks import SyntaxMarks
    from objstore import NetFile

__all__ = [
    "CONTEXT",
    "MOST_CHARACTERS",
    "DiffRows",
    "Row",
    "compared_rows",
    "is_whitespace_only",
    "line_row",
    "rows_syntax",
    "shown_line",
    "utf16",
]

Row = dict[str, Any]
"""A row as `static/types.d.ts` describes it."""

CONTEXT: Final = 3
"""Default number of context lines above and below a change."""

MOST_CHARACTERS: Final = 2_000
"""Most characters of a line that are sent."""

_WHOLE: Final = 100_000
"""Most bytes of a text that is highlighted as a whole, so that strings of several lines are recognized."""

_BUDGET: Final = 3_000_000
"""Most pairs of characters that are compared for one page of rows: some 0.4 s."""

_Marks: TypeAlias = list[tuple[int, int, str]]

Paired: TypeAlias = list[tuple[int, int, Emphasis]]
"""Pairs of lines, by their places in two texts, with the words in which they differ."""


def _held(sides: tuple[bytes, bytes], found: tuple[int, Paired]) -> int:
    return len(sides[0]) + len(sides[1]) + 600 * len(found[1])


_COMPARED: Final = Kept[tuple[bytes, bytes], tuple[int, Paired]](2_048, 2_000_000, _held)
"""The words of the changes that were shown last: a page asks for a file again after each event."""


@value
class _Run:
    """Consecutive rows of one kind."""

    sign: str  # as in Row
    count: int  # rows
    old: int = -1  # zero-based line of the accepted text of the first row; -1: the rows are not in it
    new: int = -1
    change: int = -1  # index of the change; -1: context, or a gap
    hidden: int = 0  # lines that a gap hides


@value
class Texts:
    """Two texts that are compared, and their changes: what rows need of a `NetFile`."""

    before: bytes | None
    after: bytes | None
    changes: Sequence[NetChange]
    left_out: Sequence[NetChange] = ()
    is_binary: bool = False


class DiffRows:
    """The diff of a file's pending changes, or of two texts, as rows."""

    def __init__(self, file: "NetFile | Texts", context: int = CONTEXT) -> None:
        """Lay out the diff. `context`: unchanged lines shown above and below each change."""
        self.old: Final = [] if file.is_binary else split_lines(file.before or b"")
        self.new: Final = [] if file.is_binary else split_lines(file.after or b"")
        self._file: Final = file
        self._runs: Final = [] if file.is_binary else list(self._laid_out(context))
        self._starts: Final = [0, *accumulate(run.count for run in self._runs)]
        self.total: Final = self._starts[-1]
        self.places: Final = self._places_of_changes()

    @property
    def longest(self) -> int:
        """Return the number of characters of the longest line in the rows, at most MOST_CHARACTERS."""
        sizes = (
            len(line.decode("utf-8", "surrogateescape").rstrip("\r\n"))
            for run in self._runs
            for line in self._lines(run)
        )
        return min(MOST_CHARACTERS, max(sizes, default=0))

    def rows(self, first: int, count: int) -> list[Row]:
        """Return up to `count` rows from row `first` on."""
        end = min(first + count, self.total)
        spans = self._word_spans(first, end)
        found: list[Row] = []
        at = max(0, bisect_right(self._starts, first) - 1)
        while first < end:
            run, start = self._runs[at], self._starts[at]
            stop = min(end, start + run.count)
            found += [self._row(run, place - start, spans) for place in range(first, stop)]
            first, at = stop, at + 1
        return found

    def context_rows(self, first: int, count: int) -> list[Row]:
        """Return lines of the current text as rows of context, from line `first`, counted from 1."""
        lines = range(max(0, first - 1), min(len(self.new), first - 1 + count))
        olds = self._old_lines()
        return [line_row(" ", self.new[at], old=olds.get(at, -1), new=at) for at in lines]

    def line(self, row: int) -> bytes | None:
        """Return the line of a row as it is in the file (None: there is no such row, or it is a gap)."""
        if not 0 <= row < self.total:
            return None
        at = bisect_right(self._starts, row) - 1
        lines = self._lines(self._runs[at])
        return lines[row - self._starts[at]] if lines else None

    def texts(self, first: int, count: int) -> list[tuple[bool, int]]:
        """Return for each row whether it is in the current text, and its zero-based line; -1 for a gap."""
        end = min(first + count, self.total)
        found: list[tuple[bool, int]] = []
        for run, start in zip(self._runs, self._starts, strict=False):
            for place in range(max(first, start), min(end, start + run.count)):
                is_new = run.new >= 0
                line = run.new if is_new else run.old
                found.append((is_new, -1 if line < 0 else line + place - start))
        return found

    # ---- inside

    def _laid_out(self, context: int) -> Iterator[_Run]:
        """Yield the runs: changes in their order, context around them, gaps between."""
        file = self._file
        left_out = sorted((change for change in file.left_out if change.has_lines), key=_place)
        old = new = below = 0
        for change, at in sorted(
            ((change, at) for at, change in enumerate(file.changes) if change.has_lines),
            key=lambda each: _place(each[0]),
        ):
            hunk = change.hunk
            yield from _between((old, new), (hunk.old_start, hunk.new_start), left_out, below, context)
            if change.removed:
                yield _Run(sign="-", count=hunk.old_count, old=hunk.old_start, change=at)
            if change.inserted:
                yield _Run(sign="+", count=hunk.new_count, new=hunk.new_start, change=at)
            old, new = hunk.old_end, hunk.new_end
            below = context
        if old or new:
            yield from _between((old, new), (len(self.old), len(self.new)), left_out, below, 0)

    def _places_of_changes(self) -> list[tuple[int, int]]:
        """Return for each change its first row and its number of rows."""
        found = [(0, 0)] * len(self._file.changes)
        for run, start in zip(self._runs, self._starts, strict=False):
            if run.change >= 0:
                first, count = found[run.change]
                found[run.change] = (first if count else start, count + run.count)
        return found

    def _lines(self, run: _Run) -> Sequence[bytes]:
        if run.sign == "~":
            return ()
        return self.new[run.new : run.new + run.count] if run.new >= 0 else self.old[run.old : run.old + run.count]

    def _row(self, run: _Run, at: int, spans: dict[tuple[str, int], tuple[Span, ...]]) -> Row:
        if run.sign == "~":
            return {"k": "~", "t": "", "hidden": run.hidden, "o": run.old + 1, "n": run.new + 1}
        old, new = run.old + at if run.old >= 0 else -1, run.new + at if run.new >= 0 else -1
        row = line_row(run.sign, self.new[new] if new >= 0 else self.old[old], old=old, new=new)
        words = spans.get((run.sign, old if run.sign == "-" else new), ())
        if words:
            row["w"] = utf16(row["t"], words)
        if run.change >= 0:
            row["c"] = run.change
        return row

    def _word_spans(self, first: int, end: int) -> dict[tuple[str, int], tuple[Span, ...]]:
        """Return the spans of words that differ, for changes with rows from `first` up to `end`."""
        found: dict[tuple[str, int], tuple[Span, ...]] = {}
        budget = _BUDGET
        for change, (start, count) in zip(self._file.changes, self.places, strict=True):
            if start >= end or start + count <= first or not change.removed or not change.inserted:
                continue
            cost, pairs = _word_pairs(change.removed, change.inserted, budget)
            budget -= cost
            for old, new, words in pairs:
                found["-", change.line_before - 1 + old] = words.old
                found["+", change.line_after - 1 + new] = words.new
        return found

    def _old_lines(self) -> dict[int, int]:
        """Return the line of the accepted text for each unchanged line of the current text."""
        found: dict[int, int] = {}
        old = new = 0
        every = (*self._file.changes, *self._file.left_out)
        for change in sorted((change for change in every if change.has_lines), key=_place):
            hunk = change.hunk
            found.update(zip(range(new, hunk.new_start), range(old, hunk.old_start), strict=False))
            old, new = hunk.old_end, hunk.new_end
        found.update(zip(range(new, len(self.new)), range(old, len(self.old)), strict=False))
        return found


def compared_rows(before: bytes, after: bytes, context: int = CONTEXT) -> DiffRows:
    """Return the rows of the difference between two texts."""
    old, new = split_lines(before), split_lines(after)
    changes = [
        NetChange(
            path="",
            document=DocumentId(0),
            kind=ChangeKind.LINES,
            line_before=hunk.old_start + 1,
            line_after=hunk.new_start + 1,
            removed=b"".join(old[hunk.old_start : hunk.old_end]),
            inserted=b"".join(new[hunk.new_start : hunk.new_end]),
            units=(),
        )
        for hunk in diff_lines(before, after)
    ]
    return DiffRows(Texts(before=before, after=after, changes=changes), context)


def rows_syntax(marks: "SyntaxMarks", file: "NetFile", rows: DiffRows, first: int, count: int) -> list[list[object]]:
    """Return for each row the marks of its line, in UTF-16 units; [] if no row has any."""
    places = rows.texts(first, count)
    sides = {}
    for is_new, path, lines in ((False, file.path_before, rows.old), (True, file.path, rows.new)):
        wanted = [line for side, line in places if side is is_new and line >= 0]
        sides[is_new] = _of_lines(marks, path, lines, wanted)
    found: list[list[object]] = []
    for is_new, line in places:
        own = sides[is_new].get(line, ("", []))
        spans = utf16(own[0], [(start, end) for start, end, _ in own[1]])
        found.append([[*span, kind] for span, (_, _, kind) in zip(spans, own[1], strict=True)])
    return found if any(found) else []


def line_row(sign: str, line: bytes, *, old: int = -1, new: int = -1, most: int = MOST_CHARACTERS) -> Row:
    """Return the row of a line. `old`, `new`: its zero-based numbers in both texts; -1: it is not in that text.

    `most`: characters after which it is cut.
    """
    text, cut = shown_line(line, count=most)
    row: Row = {"k": sign, "t": text}
    if old >= 0:
        row["o"] = old + 1
    if new >= 0:
        row["n"] = new + 1
    if cut:
        row["cut"] = cut
    if not line.endswith(b"\n"):
        row["end"] = "CR" if line.endswith(b"\r") else "no newline"
    elif line.endswith(b"\r\n"):
        row["end"] = "CRLF"
    return row


def shown_line(line: bytes, first: int = 0, count: int = MOST_CHARACTERS) -> tuple[str, int]:
    """Return `count` characters of a line from `first` on, escaped and without its end, and how many follow."""
    text = line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape")
    cut = max(0, len(text) - first - count)
    text = text[first : first + count]
    # Most lines need no escapes, and looking for escapes in each would take most of a page's time.
    is_plain = text.isascii() and text.replace("\t", "").isprintable()
    return text if is_plain else visible(text, keep="\t"), cut


def utf16(text: str, spans: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return spans of characters as spans of UTF-16 units, as a browser counts."""
    if text.isascii() or max(text) <= "\uffff":
        return [[start, end] for start, end in spans]
    units = [0, *accumulate(1 + (character > "\uffff") for character in text)]
    return [[units[start], units[end]] for start, end in spans]


def _of_lines(marks: "SyntaxMarks", path: str, lines: list[bytes], wanted: list[int]) -> dict[int, tuple[str, _Marks]]:
    """Return the text and the marks of the wanted lines of a text."""
    if not wanted:
        return {}
    # Of a long text only the shown lines are highlighted: marks may then be wrong where a string began above them.
    is_whole = sum(map(len, lines)) <= _WHOLE
    start = 0 if is_whole else min(wanted)
    end = len(lines) if is_whole else max(wanted) + 1
    shown = [shown_line(line)[0] for line in lines[start:end]]
    found = marks.of(path, shown)
    return {line: (shown[line - start], _joined(found[line - start])) for line in wanted if found}


def _joined(marks: "Sequence[Mark]") -> _Marks:
    """Return marks with adjacent ones of one kind joined: the lexer gives a string and its quotes as several."""
    found: _Marks = []
    for start, end, kind in marks:
        if found and found[-1][1:] == (start, kind):
            found[-1] = (found[-1][0], end, kind)
        else:
            found.append((start, end, kind))
    return found


def _place(change: NetChange) -> tuple[int, int]:
    return change.line_after, change.line_before


def _between(
    start: tuple[int, int], end: tuple[int, int], left_out: Sequence[NetChange], below: int, above: int
) -> Iterator[_Run]:
    """Yield the lines between two changes: `below` the first, `above` the second, and a gap.

    `start`, `end`: zero-based lines in both texts. `left_out`: changes that are not shown; a gap hides their lines too.
    """
    old, new = start
    first = bisect_left(left_out, new + 1, key=lambda change: change.line_after)
    last = bisect_left(left_out, end[1] + 2, key=lambda change: change.line_after)
    hidden = [change for change in left_out[first:last] if old < change.line_before <= end[0] + 1]
    if hidden:
        # Context ends where a change begins that is not shown.
        below = min(below, hidden[0].hunk.new_start - new)
        above = min(above, end[1] - hidden[-1].hunk.new_end)
    elif end[1] - new <= below + above + (1 if below + above else 0):
        # A gap takes a row, so a gap of one line would save none.
        below, above = end[1] - new, 0
    if below:
        yield _Run(sign=" ", count=below, old=old, new=new)
    gap = end[1] - new - below - above
    if gap:
        yield _Run(sign="~", count=1, old=old + below, new=new + below, hidden=gap)
    if above:
        yield _Run(sign=" ", count=above, old=end[0] - above, new=end[1] - above)


def _word_pairs(removed: bytes, inserted: bytes, budget: int) -> tuple[int, Paired]:
    """Return the cost, and the pairs of similar lines of a change with the words in which they differ.

    Cost and `budget` are counted in pairs of characters.
    """
    known = _COMPARED.get((removed, inserted))
    if known is not None and known[0] <= budget:
        return known
    old, new = split_lines(removed), split_lines(inserted)
    spent = 0
    if len(old) == len(new):
        # Mostly each line replaces the one at its place; comparing all with all would cost the square of that.
        spent = sum(len(one) * len(other) for one, other in zip(old, new, strict=True))
        if spent > budget:
            return 0, []
        found = _words(old, new, ((at, at) for at in range(len(old))))
        if len(found) == len(old):
            _COMPARED.put((removed, inserted), (spent, found))
            return spent, found
    spent += len(removed) * len(inserted)
    if spent > budget:
        return spent - len(removed) * len(inserted), []
    found = _words(old, new, paired_lines(old, new))
    _COMPARED.put((removed, inserted), (spent, found))
    return spent, found


def _words(old: Sequence[bytes], new: Sequence[bytes], pairs: Iterable[tuple[int, int]]) -> Paired:
    """Return the pairs of lines that have much in common, with the words in which they differ."""
    found = []
    for i, j in pairs:
        words = emphasis(shown_line(old[i])[0], shown_line(new[j])[0])
        if words is not None:
            found.append((i, j, words))
    return found


def is_whitespace_only(change: NetChange) -> bool:
    """Return whether both sides of a change are equal but for spaces, tabs and ends of lines."""
    if not change.removed or not change.inserted:
        return False
    return b"".join(change.removed.split()) == b"".join(change.inserted.split())
