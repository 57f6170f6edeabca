"""Moments: how a person names a time on the command line."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import click

__all__ = ["moment_named"]

AGO: Final = re.compile(
    r"(?P<number>[0-9]{1,6}) ?(?P<unit>s|m|min|h|d|w|y|seconds?|minutes?|hours?|days?|weeks?|years?)( ago)?"
)
SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_557_600}
DAYS: Final = {"today": 0, "yesterday": 1}
DAY: Final = 86_400 * 1_000_000


def moment_named(spelling: str, *, end: bool = False) -> int:
    """Return the time that `2h`, `3 days ago`, `yesterday`, `2026-11-20` or `2026-11-20 14:30` names.

    In microseconds since the epoch. A date and a time are in the person's time zone, unless they name another. A day
    stands for its first moment; with `end`, for its last. Raises click.BadParameter.
    """
    spelt = spelling.strip().lower()
    now = datetime.now(UTC).astimezone()
    try:
        ago = AGO.fullmatch(spelt)
        if ago is not None:
            return _microseconds(now - timedelta(seconds=int(ago["number"]) * SECONDS[ago["unit"][0]]))
        if spelt in DAYS:
            day = now.date() - timedelta(days=DAYS[spelt])
            named = datetime(day.year, day.month, day.day).astimezone()
        else:
            named = datetime.fromisoformat(spelling.strip())
            named = named if named.tzinfo is not None else named.astimezone()
        is_day = spelt in DAYS or len(spelt) == len("2026-11-20")
        return _microseconds(named) + (DAY - 1 if is_day and end else 0)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{spelling!r} is no time: say 2h, 3d, yesterday, 2026-11-20 or '2026-11-20 14:30'."
        ) from None


def _microseconds(named: datetime) -> int:
    # Not by way of a float: one has too few digits for microseconds.
    return (named - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
