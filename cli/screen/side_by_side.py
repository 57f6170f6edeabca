"""Show the two sides of a change next to each other, for a person at a wide terminal."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from cli.screen.syntax import PLAIN_SYNTAX, Mark, Syntax
from cli.screen.terminal import Screen, listed, shown_width, visible
from cli.screen.word_diff import Span, emphasis, paired_lines
from objstore import Hunk

__all__ = ["hunk_rows"]

NUMBER: Final = 5
"""Characters for the number of a line."""

MIN_SIDE_COLUMNS: Final = 10
"""Least number of characters for the text of a line, however narrow the terminal is."""

TAB: Final = 8

NO_NEWLINE: Final = r"\ No newline at end of file"


class Cell(NamedTuple):
    """One line on one side."""

    number: str  # from 1; "": a remark on the line above
    line: bytes  # as in the file
    text: str  # as shown
    spans: tuple[Span, ...]  # differences from the line on the other side
    marks: Sequence[Mark] = ()


def hunk_rows(
    old: Sequence[bytes],
    new: Sequence[bytes],
    hunk: Hunk,
    lead: int,
    trail: int,
    screen: Screen,
    syntax: Syntax = PLAIN_SYNTAX,
) -> Iterator[bytes]:
    """Yield a hunk in two columns, with `lead` unchanged lines above it and `trail` below it.

    `old` and `new` are the lines of both texts; `screen.columns` is the width of both columns together.
    """
    width = max(MIN_SIDE_COLUMNS, (screen.columns - 3) // 2 - NUMBER - 1)
    for i in range(lead, 0, -1):
        yield from _row(*_same(old, new, hunk.old_start - i, hunk.new_start - i, syntax), width, screen)
    gone, come = old[hunk.old_start : hunk.old_end], new[hunk.new_start : hunk.new_end]
    at_old = at_new = 0
    for i, j in [*paired_lines(gone, come), (len(gone), len(come))]:
        lefts = (_cell(old, hunk.old_start + k, syntax.old) for k in range(at_old, i))
        rights = (_cell(new, hunk.new_start + k, syntax.new) for k in range(at_new, j))
        for left, right in zip_longest(lefts, rights):
            yield from _row(left, right, width, screen)
        if i < len(gone):
            yield from _row(
                *_differing(_cell(old, hunk.old_start + i, syntax.old), _cell(new, hunk.new_start + j, syntax.new)),
                width,
                screen,
            )
        at_old, at_new = i + 1, j + 1
    for i in range(trail):
        yield from _row(*_same(old, new, hunk.old_end + i, hunk.new_end + i, syntax), width, screen)


# ---- inside


def _cell(lines: Sequence[bytes], at: int, marks: Sequence[Sequence[Mark]]) -> Cell:
    text = listed(lines[at].removesuffix(b"\n")).decode().expandtabs(TAB)
    return Cell(str(at + 1), lines[at], text, (), marks[at] if marks else ())


def _remark(cell: Cell | None) -> Cell | None:
    is_needed = cell is not None and not cell.line.endswith(b"\n")
    return Cell("", b"", NO_NEWLINE, ()) if is_needed else None


def _escaped(cell: Cell) -> Cell:
    return cell._replace(text=visible(cell.line.removesuffix(b"\n").decode("utf-8", "surrogateescape")), marks=())


def _same(old: Sequence[bytes], new: Sequence[bytes], i: int, j: int, syntax: Syntax) -> tuple[Cell, Cell]:
    return _cell(old, i, syntax.old), _cell(new, j, syntax.new)


def _differing(left: Cell, right: Cell) -> tuple[Cell, Cell]:
    found = emphasis(left.text, right.text)
    return (left, right) if found is None else (left._replace(spans=found.old), right._replace(spans=found.new))


def _row(left: Cell | None, right: Cell | None, width: int, screen: Screen) -> Iterator[bytes]:
    """Yield one line of each side, either of which may be missing, folded if it is too long."""
    if left is not None and right is not None:
        mark = " " if left.line == right.line else "|"
        if left.text == right.text and left.line.removesuffix(b"\n") != right.line.removesuffix(b"\n"):
            # A tab can look like spaces, and one undecodable byte like another.
            left, right = _escaped(left), _escaped(right)
    else:
        mark = "<" if right is None else ">"
    colors = {" ": ("", ""), "|": ("red", "green"), "<": ("red", ""), ">": ("", "green")}[mark]
    blank = " " * (NUMBER + 1 + width)
    for one, other, sign in ((left, right, mark), (_remark(left), _remark(right), " ")):
        folded = zip_longest(_folded(one, width, colors[0], screen), _folded(other, width, colors[1], screen))
        for old, new in folded:
            yield screen.line(f"{old or blank} {sign} {new or ''}".rstrip())


def _folded(cell: Cell | None, width: int, color: str, screen: Screen) -> Iterator[str]:
    if cell is None:
        return
    at, number = 0, cell.number
    while True:
        end, used = at, 0
        while end < len(cell.text) and used + shown_width(cell.text[end]) <= width:
            used += shown_width(cell.text[end])
            end += 1
        spans = [(max(start, at) - at, min(stop, end) - at) for start, stop in cell.spans if start < end and stop > at]
        marks = [
            (max(m.start, at) - at, min(m.end, end) - at, m.kind) for m in cell.marks if m.start < end and m.end > at
        ]
        piece = cell.text[at:end]
        text = screen.emphasize(piece, spans, marks) if color else screen.highlight(piece, marks)
        yield f"{number:>{NUMBER}} {screen.paint(text, color) if color else text}{' ' * (width - used)}"
        at, number = end, ""
        if at >= len(cell.text):
            return
