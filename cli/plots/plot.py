"""The value from which a plot is drawn, and from which its table is made."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeVar

from objstore import Status, date_of, value

__all__ = ["MAX_COLUMNS", "STATUSES", "Plot", "binned", "day_and_minute"]

Item = TypeVar("Item")

MAX_COLUMNS: Final = 60
"""Columns that a plot has at most, so that its table can be read and the drawing stays small."""

STATUSES: Final = tuple(each.value for each in (Status.ACCEPTED, Status.PENDING, Status.REJECTED, Status.AWAY))
"""The statuses of edits, in the order in which plots stack them."""


@value
class Plot:
    """A plot as a value. It has at most some 60 rows, however long the history is."""

    title: str
    summary: str  # one or two sentences that describe the plot
    columns: tuple[str, ...]  # their headings
    rows: tuple[tuple[str | int, ...], ...]  # a cell for each column: texts, and numbers that are drawn

    def column(self, heading: str) -> list[int]:
        """Return the numbers of a column. Raises ValueError if there is no such column, or it has no numbers."""
        at = self.columns.index(heading)
        return [int(row[at]) for row in self.rows]

    def cells(self) -> list[list[str]]:
        """Return the rows for a table that people read."""
        return [[str(cell) for cell in row] for row in self.rows]


def binned(items: Sequence[Item], count: int = MAX_COLUMNS) -> list[Sequence[Item]]:
    """Return the items in at most `count` bins of neighbours, of about equal size; no bin is empty."""
    bins = min(count, len(items))
    edges = [len(items) * at // bins for at in range(bins + 1)] if bins else []
    return [items[start:end] for start, end in pairwise(edges)]


def day_and_minute(microseconds: int) -> str:
    """Return a time in the user's time zone, such as 2026-11-20 14:30."""
    return date_of(microseconds).astimezone().strftime("%Y-%m-%d %H:%M")
