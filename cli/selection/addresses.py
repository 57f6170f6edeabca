"""Names of the form PATH:LINE and PATH:A-B: the changes at lines of a file as it is now."""

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from cli.screen.terminal import shown_name

if TYPE_CHECKING:
    from objstore import ChangesAtLine, Workspace

__all__ = ["LineAddress", "changes_at", "line_address"]

LINES: Final = r"(.+):([0-9]{1,9})(?:-([0-9]{1,9}))?"
HUNK: Final = r"[0-9]+:[0-9]+"


class LineAddress(NamedTuple):
    """Lines of a file, as typed."""

    path: str
    first: int  # from 1
    last: int


def line_address(spelling: str) -> LineAddress | None:
    """Return the lines that `spelling` may name; None if it has another form.

    `12:2` is a hunk even if there is a file named 12; `./12:2` is a line of it.
    """
    found = re.fullmatch(LINES, spelling, re.DOTALL)
    if found is None or re.fullmatch(HUNK, spelling):
        return None
    return LineAddress(found[1], int(found[2]), int(found[3] or found[2]))


def changes_at(workspace: "Workspace", path: str, lines: LineAddress) -> "ChangesAtLine":
    """Return the changes at lines of the file at a path of the workspace, and say what else is decided with them.

    Raises NoChangeAtLine, and click.UsageError if the last line is above the first.
    """
    if lines.last < lines.first:
        raise click.UsageError(f"Name the upper line first, as in {lines.path}:{lines.last}-{lines.first}.")
    found = workspace.review.change_at(path, lines.first, lines.last)
    numbers = [str(change.line_after) for change in found.together if change.line_after]
    if numbers:
        which = f"line {numbers[0]}" if len(numbers) == 1 else f"lines {', '.join(numbers)}"
        click.echo(
            f"The change at {which} of {shown_name(path)} shares hunks with this one and goes with it.", err=True
        )
    return found
