"""Say which rows a page has shown, and which rows of a decision it has not.

A page sends with every decision what was on its screen: for each net change, by its key, and for each single hunk, by
its name, the ranges of its rows that were in the document, unfolded and not cut. A key covers the text of its change,
so it identifies the rows together with their numbers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cli.screen.terminal import visible
from cli.web.shapes import named
from objstore import CasError, Unit, counted, is_either_binary, split_lines, value

if TYPE_CHECKING:
    from objstore import ChangeSummary, Edit, EditView, FileSummary, Workspace

__all__ = [
    "NOTHING",
    "OnScreen",
    "Rows",
    "UnshownChange",
    "edit_sides",
    "is_told_by_lines",
    "row_count",
    "unshown_changes",
    "unshown_shape",
]

Shape = dict[str, Any]

Rows = tuple[tuple[int, int], ...]
"""Ranges of rows of a change or hunk, from 0, without their ends."""

_MOST_PLACES: Final = 5_000
"""Most changes and hunks that are named to the page; they are all counted."""


@value
class OnScreen:
    """The rows that were on the screen; for a change or hunk without rows, the words that stand for it."""

    changes: Mapping[bytes, Rows]  # by key
    units: Mapping[Unit, Rows]

    def missing(self, name: bytes | Unit, count: int) -> Rows | None:
        """Return which of the `count` rows of a change or hunk were not on the screen (None: all of it was)."""
        shown = self.changes.get(name) if isinstance(name, bytes) else self.units.get(name)
        if shown is None:
            return ((0, count),)
        return tuple(_gaps(shown, count)) or None


NOTHING: Final = OnScreen(changes={}, units={})


@value
class UnshownChange:
    """A change that a decision covers, and its rows that were not on the screen."""

    file: "FileSummary"
    key: bytes
    rows: Rows


def unshown_changes(
    screen: OnScreen, touched: "Iterable[tuple[FileSummary, Sequence[ChangeSummary]]]", units: Iterable[Unit]
) -> tuple[list[UnshownChange], tuple[Unit, ...]]:
    """Return the changes with any of the units that were not wholly on the screen, and the hunks that no change shows.

    Hunks that cancel out have no rows: a page says how many they are.
    """
    wanted = set(units)
    changes: list[UnshownChange] = []
    for file, own in touched:
        wanted.difference_update(file.cancelled)
        for change in own:
            wanted.difference_update(change.units)
            rows = screen.missing(change.key, 0 if file.is_binary else change.removed_lines + change.inserted_lines)
            changes += [UnshownChange(file=file, key=change.key, rows=rows)] if rows is not None else []
    return changes, tuple(sorted(wanted))


def unshown_shape(changes: Sequence[UnshownChange], units: Mapping[Unit, Rows]) -> Shape:
    """Return the outcome of a decision that covers rows which were not on the screen. `units`: single hunks."""
    counts = [sum(end - start for start, end in rows) for rows in (*(each.rows for each in changes), *units.values())]
    lines, without_lines = sum(counts), counts.count(0)
    said = [counted(lines, "line")] if lines else []
    said += [counted(without_lines, "change") + (" without lines" if lines else "")] if without_lines else []
    what = " and ".join(said)
    verb = "was" if lines + without_lines == 1 else "were"
    return {
        "outcome": "unshown",
        "message": f"{what} {verb} not on the screen, so nothing was decided.",
        "lines": lines,
        "changes": [
            {"document": each.file.document, **named(each.file.path), "key": each.key.hex(), "rows": list(each.rows)}
            for each in changes[:_MOST_PLACES]
        ],
        "hunks": [str(unit) for unit in list(units)[:_MOST_PLACES]],
    }


def edit_sides(workspace: "Workspace", view: "EditView") -> tuple[list[bytes], list[bytes]] | str:
    """Return the lines before and after an edit, or why they can't be shown."""
    if view.expired is not None:
        return "its content is no longer kept"
    try:
        before, after = (text or b"" for text in workspace.history.sides(view.edit))
    except CasError as error:
        return visible(str(error))
    if is_either_binary(before, after):
        return "binary"
    return split_lines(before), split_lines(after)


def is_told_by_lines(edit: "Edit") -> bool:
    """Return whether the lines of a file that an edit created or deleted are those of its first hunk."""
    return not edit.hunks and (edit.before is None or edit.after is None)


def row_count(workspace: "Workspace", unit: Unit) -> int | None:
    """Return how many rows a hunk has when its edit is shown whole; 0: words show it; None: it changes nothing.

    Raises NoSuchName.
    """
    view = workspace.history.edit(unit.seq)
    if unit.hunk not in view.telling:
        return None
    sides = edit_sides(workspace, view)
    if isinstance(sides, str):
        return 0
    if unit.hunk:
        place = view.edit.hunks[unit.hunk - 1]
        return place.old_count + place.new_count
    return sum(map(len, sides)) if is_told_by_lines(view.edit) else 0


def _gaps(shown: Rows, count: int) -> Iterator[tuple[int, int]]:
    at = 0
    for start, end in sorted(shown):
        if at < min(start, count):
            yield at, min(start, count)
        at = max(at, end)
    if at < count:
        yield at, count
