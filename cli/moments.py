"""Moments: how a person names a time on the command line."""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

import click

__all__ = ["moment_named"]

AGO: Final = re.compile(
    r"(?P<number>[0-9]{1,6}) ?(?P<unit>s|m|min|h|d|w|y|seconds?|minutes?|hours?|days?|weeks?|years?)( ago)?"
)
SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_557_600}
DAYS: Final = {"today": 0, "yesterday": 1}
WEEK: Final = re.compile("[0-9]{4}-?W[0-9]{2}")
LAST: Final = time.max.replace(fold=1)
"""The last moment of a day: where the clock comes to it twice, the second time."""


def moment_named(spelling: str, *, end: bool = False) -> int:
    """Return the time that `2h`, `3 days ago`, `yesterday`, `2026-11-20` or `2026-11-20 14:30` names.

    In microseconds since the epoch. A date and a time are in the person's time zone, unless they name another. A day,
    or a week (2026-W47), stands for its first moment; with `end`, for its last. Raises click.BadParameter.
    """
    spelt = spelling.strip().lower()
    now = datetime.now(UTC).astimezone()
    try:
        ago = AGO.fullmatch(spelt)
        if ago is not None:
            return _microseconds(now - timedelta(seconds=int(ago["number"]) * SECONDS[ago["unit"][0]]))
        days = _days(spelling.strip(), now.date())
        if days is not None:
            named = datetime.combine(days[1], LAST) if end else datetime.combine(days[0], time.min)
        else:
            named = datetime.fromisoformat(spelling.strip())
        return _microseconds(named if named.tzinfo is not None else named.astimezone())
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{spelling!r} is no time: say 2h, 3d, yesterday, 2026-11-20 or '2026-11-20 14:30'."
        ) from None


def _days(spelt: str, today: date) -> tuple[date, date] | None:
    """Return the first and the last day of what is spelt without a time of day (None: it has one)."""
    if spelt.lower() in DAYS:
        day = today - timedelta(days=DAYS[spelt.lower()])
        return day, day
    try:
        day = date.fromisoformat(spelt)
    except ValueError:
        return None
    return day, day + timedelta(days=6 if WEEK.fullmatch(spelt) else 0)


def _microseconds(named: datetime) -> int:
    # Not by way of a float: one has too few digits for microseconds.
    return (named - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
