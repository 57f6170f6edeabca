"""The plot of a file's life: its size after each edit, moves and other events, and the decisions on its edits."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cli.plots.plot import STATUSES, Plot, binned, day_and_minute
from cli.plots.svg import LEFT, RIGHT, TOP, drawing, level_lines, path, text, ticks, x_labels
from cli.render.status import size_text
from cli.screen.terminal import end_of, shown_name
from objstore import UNREADABLE, EditFilter, NoSuchName, Operation, counted, value

if TYPE_CHECKING:
    from objstore import EditView, FileState, Workspace

__all__ = ["NEWEST", "Step", "draw_file", "file_plot", "plot_of_steps"]

NEWEST: Final = 2_000
"""Edits of a file that a plot reads at most, so that it takes no more than a second or two."""

_EVENTS: Final = ("created", "moved", "deleted", "restored")
_FLOOR: Final = 150
"""Vertical position of size zero."""

_LANE: Final = 14
_NAME_COLUMNS: Final = 36


@value
class Step:
    """The values that are drawn for one edit of the file."""

    seq: int
    time: int  # microseconds since 1970-01-01 UTC
    before: int  # bytes; 0 as well if there was no file
    after: int
    event: str  # one of _EVENTS; "": none
    status: str


def file_plot(workspace: "Workspace", name: str) -> Plot:
    """Return the plot of the file that is at a path, or was there last, through its renames.

    It covers the newest 2,000 edits. Raises NoSuchName, and what path lookups raise.
    """
    views = workspace.history.edits(EditFilter(path=name, newest_first=True, limit=NEWEST + 1))
    own = [view for view in views if view.edit.document == views[0].edit.document]
    if not own:
        raise NoSuchName(name, "recorded file")
    steps = [
        Step(
            seq=view.seq,
            time=view.edit.time,
            before=_size(workspace, view.edit.before),
            after=_size(workspace, view.edit.after),
            event=_event(view),
            status=view.status.value,
        )
        for view in reversed(own[:NEWEST])
    ]
    return plot_of_steps(name, steps, is_cut=len(views) > NEWEST)


def plot_of_steps(name: str, steps: Sequence[Step], *, is_cut: bool = False) -> Plot:
    """Return the plot of a file's edits, at least one. `is_cut`: the file has earlier ones that are left out."""
    counts = Counter(step.status for step in steps)
    decided = ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])
    edits = f"the newest {counted(len(steps), 'edit')}" if is_cut else counted(len(steps), "edit")
    return Plot(
        title=f"The life of {end_of(shown_name(name), _NAME_COLUMNS)}",
        summary=f"{shown_name(name)}, {edits}: {decided}. The last one left {size_text(steps[-1].after)}.",
        columns=("edits", "until", "bytes before", "fewest bytes", "most bytes", "bytes", *_EVENTS, *STATUSES),
        rows=tuple(map(_row, binned(steps))),
    )


def draw_file(plot: Plot) -> bytes:
    """Return the plot as SVG: the size as a curve, below it a lane for each kind of event and each status."""
    lanes = [name for name in (*_EVENTS, *STATUSES) if any(plot.column(name))]
    wide = (RIGHT - LEFT) / max(len(plot.rows), 1)
    levels = ticks(max((*plot.column("most bytes"), 1)))
    unit = (_FLOOR - TOP + 14) / levels[-1]
    bottom = _FLOOR + 10 + len(lanes) * _LANE

    def body() -> Iterator[str]:
        yield from level_lines(levels, lambda level: _FLOOR - level * unit, size_text)
        yield path("curve", _curve(plot, wide, unit))
        for at, lane in enumerate(lanes):
            y = _FLOOR + 10 + at * _LANE
            yield text(LEFT - 6, y + 9, lane, "end")
            places = [LEFT + (column + 0.5) * wide for column, number in enumerate(plot.column(lane)) if number]
            kind = "mark" if lane in _EVENTS else lane
            half = min(max(wide / 2 - 0.5, 1.5), 8)
            yield path(kind, (f"M{x - half:.1f} {y}h{2 * half:.1f}v9h{-2 * half:.1f}z" for x in places))
        yield from x_labels([f"edit {row[0]}" for row in plot.rows], [str(row[1]) for row in plot.rows], bottom)

    return drawing(plot.title, plot.summary, body(), bottom + 42)


def _row(steps: Sequence[Step]) -> tuple[str | int, ...]:
    first, last = steps[0], steps[-1]
    edits = f"{first.seq}" if first is last else f"{first.seq} to {last.seq}"
    sizes = [size for step in steps for size in (step.before, step.after)]
    events, statuses = Counter(step.event for step in steps), Counter(step.status for step in steps)
    counts = [*(events[event] for event in _EVENTS), *(statuses[status] for status in STATUSES)]
    return (edits, day_and_minute(last.time), first.before, min(sizes), max(sizes), last.after, *counts)


def _curve(plot: Plot, wide: float, unit: float) -> Iterator[str]:
    columns = zip(*(plot.column(name) for name in plot.columns[2:6]), strict=True)
    for at, amounts in enumerate(columns):
        before, fewest, most, after = (f"{_FLOOR - amount * unit:.1f}" for amount in amounts)
        # Up to the middle of the column with the size before, then over the extremes to the size after.
        start = f"M{LEFT} {before}" if not at else f"V{before}"
        yield f"{start}H{LEFT + (at + 0.5) * wide:.1f}V{fewest}V{most}V{after}H{LEFT + (at + 1) * wide:.1f}"


def _event(view: "EditView") -> str:
    edit = view.edit
    if edit.tool == "restore" and edit.after is not None:
        return "restored"
    if edit.operation is Operation.MOVE or edit.source is not None:
        return "moved"
    return "deleted" if edit.after is None else "created" if edit.before is None else ""


def _size(workspace: "Workspace", state: "FileState | None") -> int:
    """Return the bytes of a state; 0 as well if there is no file, or its bytes are no longer kept."""
    try:
        return 0 if state is None else workspace.history.size(state.blob)
    except UNREADABLE:
        return 0
