"""Test what file times show about files that a power cut may have left, by the clock of files."""

from typing import Final

import pytest

from objstore.file_changes.apply import FileStep
from objstore.model.basic_types import FileState
from objstore.model.ids import blob_id
from objstore.recovery.power_loss import StepTiming, step_timings

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
TICK: Final = 20_000
"""Microseconds by which the times of files are coarse, at the most."""

TIME: Final = 1_800_000_000 * SECOND
LATER: Final = TIME + HOUR

any_clock = pytest.mark.parametrize("ahead", [-2 * HOUR, 0, 2 * HOUR])
"""By how much the clock of files is ahead of that of records."""


@any_clock
def test_a_file_changed_before_the_record_was_so_when_it_was_made(ahead: int) -> None:
    since = StepTiming(TIME, (TIME, TIME - HOUR), ahead, 0)
    assert since.predates_record(TIME + ahead)
    assert not since.predates_record(TIME + ahead + 1)


@any_clock
def test_after_the_clock_was_set_back_a_change_near_an_earlier_record_counts_as_before(ahead: int) -> None:
    since = StepTiming(TIME, (LATER, TIME - HOUR), ahead, 0)
    for apart in (-MINUTE, 0, MINUTE):
        assert since.predates_record(LATER + ahead + apart)
        assert since.may_be_written_by_step(LATER + ahead + apart)
    for apart in (-MINUTE - 1, MINUTE + 1):
        assert not since.predates_record(LATER + ahead + apart)
        assert not since.may_be_written_by_step(LATER + ahead + apart)


@any_clock
@pytest.mark.parametrize(
    ("followed", "until"),
    [
        (TIME - 1, TIME + MINUTE),
        (TIME, TIME + TICK),
        (TIME + 5 * SECOND, TIME + 5 * SECOND + TICK),
        (LATER, TIME + MINUTE),
    ],
    ids=["not known", "at once", "soon", "later"],
)
def test_a_step_was_carried_out_within_a_minute_and_before_files_were_known_to_have_followed(
    ahead: int, followed: int, until: int
) -> None:
    since = StepTiming(TIME, (), ahead, followed)
    assert since.until == until + ahead
    assert since.may_be_written_by_step(until + ahead)
    assert not since.may_be_written_by_step(until + ahead + 1)
    at_once = min(until, TIME + SECOND)
    assert since.is_soon_after_record(at_once + ahead)
    assert not since.is_soon_after_record(at_once + ahead + 1)


def test_only_groups_with_steps_have_timings_and_earlier_ones_reveal_a_clock_set_back() -> None:
    step = FileStep(path=b"f", before=None, after=FileState(blob=blob_id(b"f\n"), mode=0o644))
    found = step_timings([([], LATER), ([step], TIME), ([], TIME + 1), ([step], LATER + HOUR)], 0, 0)
    assert found.keys() == {TIME, LATER + HOUR}
    assert found[TIME].predates_record(LATER)
    assert not found[LATER + HOUR].predates_record(LATER + HOUR + 1)
