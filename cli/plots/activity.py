"""The plot of activity: lines added and removed turn by turn, and what was decided about them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cli.plots.plot import STATUSES, Plot, binned, day_and_minute
from cli.plots.svg import BOTTOM, LEFT, RIGHT, TOP, bars, drawing, legend, level_lines, path, ticks, x_labels
from objstore import counted

if TYPE_CHECKING:
    from objstore import TurnLines, Workspace

__all__ = ["activity_plot", "draw_activity", "plot_of_lines"]

_HEIGHT: Final = BOTTOM + 42
_WIDEST: Final = 40
"""Greatest width of a column, used if there are few."""


def activity_plot(workspace: "Workspace") -> Plot:
    """Return the plot of all activity in a workspace."""
    return plot_of_lines(workspace.sessions.turn_lines())


def plot_of_lines(found: "Sequence[TurnLines]") -> Plot:
    """Return the plot of line counts by turn and status; if there are many turns, several share a row."""
    turns: dict[tuple[int, int], list[TurnLines]] = {}
    for each in found:
        turns.setdefault((each.turn, each.session), []).append(each)
    return Plot(
        title="Lines added and removed, by turn",
        summary=_summary(found),
        columns=("made in", "from", "edits", *_headings("added"), *_headings("removed")),
        rows=tuple(map(_row, binned(list(turns.values())))),
    )


def draw_activity(plot: Plot) -> bytes:
    """Return the plot as SVG: a column for each row, with added lines above zero and removed lines below."""
    added, removed = ([plot.column(heading) for heading in _headings(what)] for what in ("added", "removed"))
    up, down = (max(map(sum, zip(*sides, strict=True)), default=0) for sides in (added, removed))
    step = ticks(max(up, down, 1))[1]
    above, below = -(-up // step) or 1, -(-down // step)
    unit = (BOTTOM - TOP) / ((above + below) * step)
    zero = TOP + above * step * unit

    def body() -> Iterator[str]:
        present = [status for status, *sides in zip(STATUSES, added, removed, strict=True) if any(map(any, sides))]
        yield from legend((status, status) for status in present)
        levels = range(-below * step, above * step + 1, step)
        yield from level_lines(levels, lambda level: zero - level * unit, _signed)
        for sides, is_up in ((added, True), (removed, False)):
            for status, boxes in zip(STATUSES, _stacked(sides, unit, zero, is_up=is_up), strict=True):
                yield path(status, bars(boxes))
        yield from x_labels([str(row[0]) for row in plot.rows], [str(row[1]) for row in plot.rows], BOTTOM)

    return drawing(plot.title, plot.summary, body(), _HEIGHT)


def _headings(what: str) -> list[str]:
    return [f"{status} lines {what}" for status in STATUSES]


def _row(turns: "Sequence[Sequence[TurnLines]]") -> tuple[str | int, ...]:
    lines = [each for turn in turns for each in turn]
    added = [sum(each.added for each in lines if each.status.value == status) for status in STATUSES]
    removed = [sum(each.removed for each in lines if each.status.value == status) for status in STATUSES]
    began = day_and_minute(min(each.began for each in lines))
    return (_named(turns), began, sum(each.edits for each in lines), *added, *removed)


def _named(turns: "Sequence[Sequence[TurnLines]]") -> str:
    """Return the label of a row: its turns, such as `turns 3 to 9`, or the session of edits without a turn."""
    first = turns[0][0]
    if len(turns) == 1 and not first.turn:
        return f"session {first.session}" if first.session else "no session"
    numbers = [turn[0].turn for turn in turns if turn[0].turn]
    if not numbers:
        return "without turns"
    return f"turn {numbers[0]}" if len(numbers) == 1 else f"turns {min(numbers)} to {max(numbers)}"


def _summary(found: "Sequence[TurnLines]") -> str:
    if not found:
        return "Nothing is recorded yet."
    edits, added, removed = map(sum, zip(*((each.edits, each.added, each.removed) for each in found), strict=True))
    counts = {status: sum(each.edits for each in found if each.status.value == status) for status in STATUSES}
    turns = len({each.turn for each in found if each.turn})
    return (
        f"{counted(edits, 'edit')} in {counted(turns, 'turn')} added {counted(added, 'line')} and removed {removed}: "
        f"{', '.join(f'{number} {status}' for status, number in counts.items() if number)}. "
        "An edit that is pending in part counts as pending."
    )


def _signed(lines: int) -> str:
    return f"{lines:+}".replace("-", "\N{MINUS SIGN}") if lines else "0"


def _stacked(
    amounts: Sequence[Sequence[int]], unit: float, zero: float, *, is_up: bool
) -> Iterator[list[tuple[float, float, float, float]]]:
    """Yield the boxes of each status, stacked on those of the statuses before it."""
    heights = [0.0] * max(map(len, amounts))
    wide = (RIGHT - LEFT) / max(len(heights), 1)
    broad = min(wide - min(wide * 0.2, 4), _WIDEST)
    for amount in amounts:
        boxes = []
        for at, lines in enumerate(amount):
            high = max(lines * unit, 1.0) if lines else 0.0
            y = zero - heights[at] - high if is_up else zero + heights[at]
            boxes.append((LEFT + (at + 0.5) * wide - broad / 2, y, broad, high))
            heights[at] += high
        yield boxes
