"""Moments: how a person spells a point in time and which one is meant, and which date and time a recorded one is."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["MOMENT", "date_of", "moment_of"]

_UNITS: Final = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}

MOMENT: Final = r"[0-9]{1,9}(?:s|min|h|d|w)|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]{5,15}(?:Z|[+-][0-9:]{2,9})?)?"
"""What a spelling of a moment looks like, as a regular expression: `2h`, `2026-11-20`, `2026-11-20T09:30`."""

_MOMENT: Final = re.compile(MOMENT)
_AGO: Final = re.compile(r"(?P<number>[0-9]+)(?P<unit>[a-z]+)")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST: Final = (datetime(1, 1, 2, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST: Final = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // _MICROSECOND - 1
"""The first and the last moment, but for a day, that a calendar has: in no zone it is one that the calendar has not."""


def date_of(microseconds: int) -> datetime:
    """Return the date and time, in UTC, of a moment in microseconds since 1970-01-01 UTC.

    A record's time, and a file's, may be further away than any calendar goes: then it is the nearest that one has.
    """
    return _EPOCH + min(max(microseconds, _FIRST), _LAST) * _MICROSECOND


def moment_of(spelling: str, now: datetime) -> int | None:
    """Return the moment that is meant, in microseconds since 1970-01-01 UTC (None: the spelling is of none).

    `2h` is two hours before `now`. A date without a zone is in the machine's; one without a time is the beginning of
    that day.
    """
    if _MOMENT.fullmatch(spelling) is None:
        return None
    ago = _AGO.fullmatch(spelling)
    try:
        if ago is not None:
            when = now - timedelta(seconds=int(ago["number"]) * _UNITS[ago["unit"]])
        else:
            when = datetime.fromisoformat(spelling)
        return round(when.timestamp() * 1_000_000)
    except (ValueError, OverflowError):
        return None
