"""Show one hunk in a review, with its edit; cut long texts into screenfuls."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from cli.render.authors import Authors
from cli.render.comments import remarks_by_unit
from cli.render.edits import edit_diff, moment, shown_move
from cli.screen.terminal import Screen, shown_name, shown_width, visible
from objstore import CasError, Unit, parted_reason

if TYPE_CHECKING:
    from objstore import EditView, Workspace

__all__ = ["Screenful", "height", "screenful", "zoom"]

TOKEN: Final = re.compile(r"\x1b\[[0-9;]*m|.", re.DOTALL)
TAB: Final = 8
PLAIN: Final = "\x1b[0m"


def zoom(view: "EditView", unit: Unit, place: str, workspace: "Workspace", screen: Screen) -> Iterator[bytes]:
    """Yield one hunk of an edit, all of it. `place`: its position in the review."""
    edit = view.edit
    reason, check = parted_reason(view.reasons[unit.hunk])
    title = f"edit {view.seq}  {edit.operation.value}  {shown_move(edit.source, edit.path)}"
    yield screen.line(f"{screen.paint(title, bold=True)}  {place}")
    made = [moment(edit.time), shown_name(Authors(workspace).with_session(view)), shown_name(edit.tool)]
    yield screen.line("  ".join(made))
    if reason:
        yield screen.line(f"reason: {shown_name(reason)}")
    yield from (screen.line(visible(line)) for line in check.splitlines())
    try:
        remarks = remarks_by_unit(workspace, [unit], screen, workspace.awaited_comments())
        yield from edit_diff(view, workspace, screen, [unit], remarks)
    except CasError as error:
        # Damage to one edit must not keep the others from being reviewed.
        yield screen.line(f"cas: {visible(str(error))}")


class Screenful(NamedTuple):
    """The lines that fit on the screen, and the rest."""

    lines: list[bytes]
    rest: list[bytes]  # it begins with the end of the last line, if only the line's beginning fits


def screenful(lines: Iterable[bytes], rows: int, columns: int) -> Screenful:
    """Return what fits into `rows` of a terminal of that width. A line that is too long for one row takes several."""
    shown: list[bytes] = []
    rest: list[bytes] = []
    for line in lines:
        if rows <= 0:
            rest.append(line)
            continue
        text = line.decode("utf-8", "replace").removesuffix("\n")
        end, taken = _fitting(text, rows, columns)
        is_cut = end < len(text)
        shown.append(f"{text[:end]}{PLAIN if PLAIN in text else ''}\n".encode() if is_cut else line)
        if is_cut:
            rest.append(f"{text[end:]}\n".encode())
        rows -= taken
    return Screenful(shown, rest)


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
