"""Show one hunk in a review, with its edit, on no more than a screen."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cli.render.edits import edit_diff, moment, shown_move
from cli.render.outcomes import shown_units
from cli.screen.screenful import height, screenful
from cli.screen.terminal import Screen, shown_name, visible
from objstore import CasError, Status, Unit

if TYPE_CHECKING:
    from objstore import EditView, Workspace

__all__ = ["zoom"]

MIN_ROWS: Final = 8
"""Least number of rows of a hunk, however small the terminal is."""

RESERVED_ROWS: Final = 6
"""Rows of the screen that a hunk leaves free."""


def zoom(view: "EditView", unit: Unit, place: str, workspace: "Workspace", screen: Screen) -> Iterator[bytes]:
    """Yield one hunk of an edit, as much as fits. `place`: its position in the review."""
    edit, reason = view.edit, view.reasons[unit.hunk]
    title = f"edit {view.seq}  {edit.operation.value}  {shown_move(edit.source, edit.path)}"
    head = [
        f"{screen.paint(title, bold=True)}  {place}",
        "  ".join([moment(edit.time), shown_name(edit.conversation), shown_name(edit.tool)]),
        *([f"reason: {shown_name(reason)}"] if reason else []),
    ]
    yield screen.line()
    yield from map(screen.line, head)
    columns, rows = shutil.get_terminal_size()
    room = max(MIN_ROWS, rows - RESERVED_ROWS - sum(height(line, columns) - 1 for line in head))
    try:
        shown = screenful(edit_diff(view, workspace, screen, [unit]), room, columns)
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
