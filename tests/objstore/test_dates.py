"""Test that every time in a record or file system has a date, in every time zone."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given, strategies as st

from objstore import date_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = st.integers(-23, 23).map(lambda hours: timezone(timedelta(hours=hours)))


@given(st.integers(-(2**63), 2**63), ZONES)
def test_every_time_has_a_date_in_every_zone(microseconds: int, zone: timezone) -> None:
    found = date_of(microseconds)
    assert datetime.fromisoformat(found.isoformat()) == found
    assert found.astimezone(zone) == found
    assert found.strftime("%Y-%m-%d")


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)))  # noqa: DTZ001 - the zone is put to it below
def test_time_within_the_calendar_is_converted_exactly(when: datetime) -> None:
    when = when.replace(tzinfo=UTC)
    assert date_of((when - EPOCH) // timedelta(microseconds=1)) == when


@given(st.integers(), st.integers())
def test_dates_are_ordered_like_their_times(one: int, other: int) -> None:
    assert date_of(min(one, other)) <= date_of(max(one, other))
