"""Parse the points in time that people type, and convert recorded times to dates."""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

__all__ = ["date_of", "is_moment", "moment_of"]

# Patterns are compiled where they are used: whatever shows an edit loads this module, and needs none of them.
_PART: Final = r"([0-9]{1,9}) ?(seconds?|minutes?|min|hours?|days?|weeks?|years?|[smhdwy])(?![a-z])"
_AGO: Final = f"{_PART}(?: ?{_PART})*(?: ago)?"
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_557_600}
_DAYS: Final = {"today": 0, "yesterday": 1}
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH: Final = "([0-9]{4})-([0-9]{2})"
_CLOCK: Final = "[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?"
_WEEK: Final = "[0-9]{4}-?W[0-9]{2}"
_DATE: Final = r"[0-9]{4}-?(?:[0-9]{2}-?[0-9]{2}|W[0-9]{2}(?:-?[0-9])?)(?:[T ][0-9:.,]{2,15}(?:Z|[+-][0-9:]{2,9})?)?"
_END_OF_DAY: Final = time.max.replace(fold=1)
"""The last moment of a day; where a clock change makes it occur twice, the second time."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST: Final = (datetime(1, 1, 2, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST: Final = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // _MICROSECOND - 1
"""The first and the last moment of the calendar, a day inside its ends, so that they exist in every time zone."""


def date_of(microseconds: int) -> datetime:
    """Return the date and time, in UTC, of a moment in microseconds since 1970-01-01 UTC.

    The time of a record or a file may be outside the calendar; then the nearest date in it is returned.
    """
    return _EPOCH + min(max(microseconds, _FIRST), _LAST) * _MICROSECOND


def is_moment(text: str) -> bool:
    """Return whether a text has the form of a moment. It need not exist, as with 2026-02-30."""
    stripped = text.strip()
    is_named = stripped.lower() in _DAYS or stripped.lower() in _WEEKDAYS
    return is_named or any(re.fullmatch(form, stripped) for form in (_DATE, _MONTH, _CLOCK, _AGO))


def moment_of(text: str, now: datetime, *, end: bool = False) -> int | None:
    """Return the moment that a text means, in microseconds since 1970-01-01 UTC (None: it is not a moment).

    `2h`, `1h30m` and `2 hours ago` count back from `now`. `yesterday`, `monday` (the latest one, today included),
    `14:30` (today), `2026-11-20`, `2026-11-20 14:30`, `2026-W47` and `2026-11` are in the machine's time zone, unless
    they give another one. A day, a week or a month means its first moment; with `end`, its last.
    """
    stripped = text.strip()
    ago = re.fullmatch(_AGO, stripped.lower())
    try:
        if ago is not None:
            parts = re.finditer(_PART, stripped.lower())
            passed = sum(int(part[1]) * _SECONDS[part[2][0]] for part in parts)
            return _microseconds(now - timedelta(seconds=passed))
        days = _days(stripped, now.date())
        if days is not None:
            named = datetime.combine(days[1], _END_OF_DAY) if end else datetime.combine(days[0], time.min)
        elif re.fullmatch(_CLOCK, stripped):
            named = datetime.combine(now.date(), time.fromisoformat(stripped if stripped[2] == ":" else f"0{stripped}"))
        else:
            named = datetime.fromisoformat(stripped)
        return _microseconds(named if named.tzinfo is not None else named.astimezone())
    except (ValueError, OverflowError):
        return None


def _days(text: str, today: date) -> tuple[date, date] | None:
    """Return the first and the last day that a text without a time of day means (None: it has a time)."""
    if text.lower() in _DAYS:
        day = today - timedelta(days=_DAYS[text.lower()])
        return day, day
    if text.lower() in _WEEKDAYS:
        day = today - timedelta(days=(today.weekday() - _WEEKDAYS.index(text.lower())) % 7)
        return day, day
    month = re.fullmatch(_MONTH, text)
    if month is not None:
        first = date(int(month[1]), int(month[2]), 1)
        return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day, day + timedelta(days=6 if re.fullmatch(_WEEK, text) else 0)


def _microseconds(named: datetime) -> int:
    # Without a float, which has too few digits for microseconds.
    return (named - _EPOCH) // _MICROSECOND
