"""Compute the syntax marks of the rows that a page shows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from cli.screen.syntax import Mark
from cli.web.diff_rows.net_rows import DiffRows, shown_line, utf16
from cli.web.diff_rows.syntax_marks import SyntaxMarks

if TYPE_CHECKING:
    from objstore import NetFile

__all__ = ["rows_syntax"]

_WHOLE: Final = 100_000
"""Most bytes of a text that is highlighted as a whole, so that strings of several lines are recognized."""

_Marks = list[tuple[int, int, str]]


def rows_syntax(marks: SyntaxMarks, file: "NetFile", rows: DiffRows, first: int, count: int) -> list[list[object]]:
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


def _of_lines(marks: SyntaxMarks, path: str, lines: list[bytes], wanted: list[int]) -> dict[int, tuple[str, _Marks]]:
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


def _joined(marks: Sequence[Mark]) -> _Marks:
    """Return marks with adjacent ones of one kind joined: the lexer gives a string and its quotes as several."""
    found: _Marks = []
    for start, end, kind in marks:
        if found and found[-1][1:] == (start, kind):
            found[-1] = (found[-1][0], end, kind)
        else:
            found.append((start, end, kind))
    return found
