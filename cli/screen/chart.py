"""Draw amounts over time as a row of columns that fits a line of a terminal."""

from collections.abc import Iterator, Mapping
from typing import Final

from cli.screen.terminal import Screen
from objstore import date_of

__all__ = ["chart"]

MAX_CHART_COLUMNS: Final = 60
MINUTES: Final = {"minute": 1, "10 minutes": 10, "hour": 60, "6 hours": 360, "day": 1_440, "week": 10_080}
"""Possible spans of a column in minutes; if none is large enough, a column is as many weeks as needed."""

HEIGHTS: Final = " ▁▂▃▄▅▆▇█"


def chart(amounts: Mapping[int, int], what: str, screen: Screen) -> Iterator[bytes]:
    """Yield a chart of amounts by minute (minutes since the epoch, in the person's time zone)."""
    first, last = min(amounts), max(amounts)
    unit, step = next(
        ((name, size) for name, size in MINUTES.items() if last // size - first // size < MAX_CHART_COLUMNS), ("", 0)
    )
    if not step:
        weeks = (last - first) // (MINUTES["week"] * MAX_CHART_COLUMNS) + 1
        unit, step = f"{weeks} weeks", MINUTES["week"] * weeks
    sums = [0] * (last // step - first // step + 1)
    for minute, amount in amounts.items():
        sums[minute // step - first // step] += amount
    most = max(*sums, 1)
    columns = "".join(HEIGHTS[-(-amount * (len(HEIGHTS) - 1) // most)] for amount in sums)
    yield screen.line(f"{f'{what} in time':14}{screen.paint(columns, 'cyan')}")
    yield screen.line(f"{'':14}{_shown(first)} to {_shown(last)}, a column a {unit}, {most} at most")


def _shown(minute: int) -> str:
    return date_of(minute * 60_000_000).astimezone().strftime("%Y-%m-%d %H:%M")
