"""Moments: how a person spells a point in time and which one is meant, and which date and time a recorded one is."""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

__all__ = ["date_of", "is_moment", "moment_of"]

_PART: Final = re.compile(
    r"(?P<number>[0-9]{1,9}) ?(?P<unit>seconds?|minutes?|min|hours?|days?|weeks?|years?|[smhdwy])(?![a-z])"
)
_AGO: Final = re.compile(f"{_PART.pattern}(?: ?{re.sub('[?]P<[a-z]+>', '?:', _PART.pattern)})*(?: ago)?")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_557_600}
_DAYS: Final = {"today": 0, "yesterday": 1}
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH: Final = re.compile("([0-9]{4})-([0-9]{2})")
_CLOCK: Final = re.compile("[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?")
_WEEK: Final = re.compile("[0-9]{4}-?W[0-9]{2}")
_DATE: Final = re.compile(
    r"[0-9]{4}-?(?:[0-9]{2}-?[0-9]{2}|W[0-9]{2}(?:-?[0-9])?)(?:[T ][0-9:.,]{2,15}(?:Z|[+-][0-9:]{2,9})?)?"
)
_END_OF_DAY: Final = time.max.replace(fold=1)
"""The last moment of a day: where the clock comes to it twice, the second time."""

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


def is_moment(spelling: str) -> bool:
    """Return whether a moment is spelt like that; there may be none such, as on 2026-02-30."""
    spelt = spelling.strip()
    is_named = spelt.lower() in _DAYS or spelt.lower() in _WEEKDAYS
    return is_named or any(form.fullmatch(spelt) for form in (_DATE, _MONTH, _CLOCK, _AGO))


def moment_of(spelling: str, now: datetime, *, end: bool = False) -> int | None:
    """Return the moment that is meant, in microseconds since 1970-01-01 UTC (None: the spelling is of none).

    `2h`, `1h30m` and `2 hours ago` are before `now`; `yesterday`, `monday` (the newest that has begun), `14:30` (of
    today), `2026-11-20`, `2026-11-20 14:30`, `2026-W47` and `2026-11` are in the machine's time zone, unless they name
    another. A day, a week or a month is its first moment; with `end`, its last.
    """
    spelt = spelling.strip()
    ago = _AGO.fullmatch(spelt.lower())
    try:
        if ago is not None:
            parts = _PART.finditer(spelt.lower())
            passed = sum(int(part["number"]) * _SECONDS[part["unit"][0]] for part in parts)
            return _microseconds(now - timedelta(seconds=passed))
        days = _days(spelt, now.date())
        if days is not None:
            named = datetime.combine(days[1], _END_OF_DAY) if end else datetime.combine(days[0], time.min)
        elif _CLOCK.fullmatch(spelt):
            named = datetime.combine(now.date(), time.fromisoformat(spelt if spelt[2] == ":" else f"0{spelt}"))
        else:
            named = datetime.fromisoformat(spelt)
        return _microseconds(named if named.tzinfo is not None else named.astimezone())
    except (ValueError, OverflowError):
        return None


def _days(spelt: str, today: date) -> tuple[date, date] | None:
    """Return the first and the last day of what is spelt without a time of day (None: it has one)."""
    if spelt.lower() in _DAYS:
        day = today - timedelta(days=_DAYS[spelt.lower()])
        return day, day
    if spelt.lower() in _WEEKDAYS:
        day = today - timedelta(days=(today.weekday() - _WEEKDAYS.index(spelt.lower())) % 7)
        return day, day
    month = _MONTH.fullmatch(spelt)
    if month is not None:
        first = date(int(month[1]), int(month[2]), 1)
        return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    try:
        day = date.fromisoformat(spelt)
    except ValueError:
        return None
    return day, day + timedelta(days=6 if _WEEK.fullmatch(spelt) else 0)


def _microseconds(named: datetime) -> int:
    # Not by way of a float: one has too few digits for microseconds.
    return (named - _EPOCH) // _MICROSECOND
