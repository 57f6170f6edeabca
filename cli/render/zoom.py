"""Show one hunk in a review, with its edit, on no more than a screen."""

import re
import shutil
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from cli.render.authors import Authors
from cli.render.comments import comments_by_unit, comments_text
from cli.render.edits import edit_diff, moment, shown_move
from cli.render.outcomes import shown_units
from cli.screen.terminal import Screen, shown_name, shown_width, visible
from objstore import CasError, Status, Unit

if TYPE_CHECKING:
    from objstore import EditView, Workspace

__all__ = ["Screenful", "height", "screenful", "zoom"]

MIN_ROWS: Final = 8
"""Least number of rows of a hunk, however small the terminal is."""

RESERVED_ROWS: Final = 6
"""Rows of the screen that a hunk leaves free."""

TOKEN: Final = re.compile(r"\x1b\[[0-9;]*m|.", re.DOTALL)
TAB: Final = 8
PLAIN: Final = "\x1b[0m"


def zoom(view: "EditView", unit: Unit, place: str, workspace: "Workspace", screen: Screen) -> Iterator[bytes]:
    """Yield one hunk of an edit, as much as fits. `place`: its position in the review."""
    edit, reason = view.edit, view.reasons[unit.hunk]
    title = f"edit {view.seq}  {edit.operation.value}  {shown_move(edit.source, edit.path)}"
    head = [
        f"{screen.paint(title, bold=True)}  {place}",
        "  ".join([moment(edit.time), shown_name(Authors(workspace).with_session(view)), shown_name(edit.tool)]),
        *([f"reason: {shown_name(reason)}"] if reason else []),
    ]
    yield screen.line()
    yield from map(screen.line, head)
    columns, rows = shutil.get_terminal_size()
    room = max(MIN_ROWS, rows - RESERVED_ROWS - sum(height(line, columns) - 1 for line in head))
    try:
        comments = comments_by_unit(workspace, [unit])
        remarks = {unit: comments_text(views, screen) for unit, views in comments.items()}
        shown = screenful(edit_diff(view, workspace, screen, [unit], remarks), room, columns)
    except CasError as error:
        # Damage to one edit must not keep the others from being reviewed.
        yield screen.line(f"cas: {visible(str(error))}")
    else:
        yield from shown.lines
        rest = ["the rest of this line"] if shown.is_cut else []
        rest += [f"{shown.more} more line{'s' * (shown.more > 1)}"] if shown.more else []
        if rest:
            yield screen.line(f"... and {', and '.join(rest)}: v shows all.")
    if view.units[unit.hunk] is not Status.PENDING:
        yield screen.line(f"{shown_units([unit]).capitalize()} is {view.units[unit.hunk].value} already.")


class Screenful(NamedTuple):
    """The lines that fit on the screen, and the number of those that don't."""

    lines: list[bytes]
    is_cut: bool  # whether only the beginning of the last line fits
    more: int  # number of lines that don't fit at all


def screenful(lines: Iterable[bytes], rows: int, columns: int) -> Screenful:
    """Return what fits into `rows` of a terminal of that width. A line that is too long for one row takes several."""
    shown: list[bytes] = []
    is_cut, more = False, 0
    for line in lines:
        if rows <= 0:
            more += 1
            continue
        text = line.decode("utf-8", "replace").removesuffix("\n")
        end, taken = _fitting(text, rows, columns)
        is_cut = end < len(text)
        shown.append(f"{text[:end]}{PLAIN if PLAIN in text else ''}\n".encode() if is_cut else line)
        rows -= taken
    return Screenful(shown, is_cut, more)


def height(text: str, columns: int) -> int:
    """Return the number of rows that a line takes."""
    return _fitting(text, len(text) + 1, columns)[1]


def _fitting(text: str, rows: int, columns: int) -> tuple[int, int]:
    """Return how many characters of a line fit into so many rows, and how many rows these take."""
    row, at = 1, 0
    for found in TOKEN.finditer(text):
        mark = found[0]
        if mark == "\t":
            # A tab goes no further than the end of its row.
            at = min(columns, (at // TAB + 1) * TAB)
            continue
        width = shown_width(mark) if len(mark) == 1 else 0
        if at + width > columns:
            if row == rows:
                return found.start(), row
            row, at = row + 1, 0
        at += width
    return len(text), row
