"""The plot of the store's size over time, and of the bytes that `cas gc` would free now."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cli.plots.plot import MAX_COLUMNS, Plot, day_and_minute
from cli.plots.svg import BOTTOM, LEFT, RIGHT, TOP, bars, drawing, legend, level_lines, path, text, ticks, x_labels
from cli.render.status import size_text

if TYPE_CHECKING:
    from objstore import Workspace

__all__ = ["draw_store", "plot_of_growth", "store_plot"]

_POINTS: Final = 600
"""Edits that are looked up: more of them than columns, because many may have the same time."""

_SECONDS: Final = "seconds after the first edit"
_FREED: Final = "bytes that gc would free"
_HEIGHT: Final = BOTTOM + 27
_MARGIN: Final = 26
"""Width at the right that is left for the column of the current size."""


def store_plot(workspace: "Workspace") -> Plot:
    """Return the plot of the store's size over time, with the bytes that gc would free. Raises StoreDamaged."""
    plan = workspace.retention.plan_gc(workspace.retention.limits())
    return plot_of_growth(workspace.history.growth(_POINTS), plan.store_bytes, plan.free_bytes)


def plot_of_growth(growth: Sequence[tuple[int, int]], size: int, freed: int) -> Plot:
    """Return the plot of a store. `growth`: times (µs since 1970-01-01 UTC) and bytes, as the store grew.

    `size` and `freed`: bytes of the store now, and those that gc would free.
    """
    grown = _by_time(growth)
    first, last = (grown[0][0], grown[-1][0]) if grown else (0, 0)
    rows = [(day_and_minute(time), (time - first) // 1_000_000, amount, 0) for time, amount in grown]
    rows.append(("now", (last - first) // 1_000_000, size, min(freed, size)))
    would = f"`cas gc` would free {size_text(freed)} of them." if freed else "`cas gc` would free nothing."
    return Plot(
        title="The store over time",
        summary=f"The store has {size_text(size)}. {would} The curve shows when these bytes were added.",
        columns=("until", _SECONDS, "bytes", _FREED),
        rows=tuple(rows),
    )


def draw_store(plot: Plot) -> bytes:
    """Return the plot as SVG: a rising curve, and at its end a column of bytes to keep and bytes to free."""
    times, sizes = plot.column(_SECONDS)[:-1], plot.column("bytes")
    size, freed = sizes.pop(), plot.column(_FREED)[-1]
    levels = ticks(max(size, *sizes, 1))
    unit = (BOTTOM - TOP) / levels[-1]
    end = RIGHT - _MARGIN
    span = (times[-1] - times[0]) if times else 0

    def x_of(time: int) -> float:
        return LEFT + (time - times[0]) * (end - LEFT) / span if span else LEFT

    def body() -> Iterator[str]:
        would = [("pending", f"cas gc would free {size_text(freed)}")] if freed else []
        yield from legend([("accepted", "stays"), *would])
        yield from level_lines(levels, lambda level: BOTTOM - level * unit, size_text)
        steps = [f"M{LEFT} {BOTTOM}"] if times else []
        steps += [f"H{x_of(time):.1f}V{BOTTOM - amount * unit:.1f}" for time, amount in zip(times, sizes, strict=True)]
        yield path("curve", [*steps, f"H{end}"] if steps else [])
        stays = (size - freed) * unit
        yield path("accepted", bars([(end + 4, BOTTOM - stays, _MARGIN - 8, stays)]))
        yield path("pending", bars([(end + 4, BOTTOM - size * unit, _MARGIN - 8, freed * unit)]))
        yield from x_labels([str(row[0]) for row in plot.rows[:-1]], [], BOTTOM, end - 6)
        yield text(RIGHT, BOTTOM + 16, "now", "end")

    return drawing(plot.title, plot.summary, body(), _HEIGHT)


def _by_time(growth: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return at most as many points as a plot has columns: the last one in each of that many equal spans of time."""
    if not growth:
        return []
    ordered = sorted(growth)
    first, span = ordered[0][0], ordered[-1][0] - ordered[0][0] + 1
    last_in = {(time - first) * MAX_COLUMNS // span: (time, amount) for time, amount in ordered}
    return [point for _, point in sorted(last_in.items())]
