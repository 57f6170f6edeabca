"""Test that a benchmark fails where it misses a target, and says which."""

import pytest

from tests.bench.measure import Report, finish


def test_a_missed_target_fails_the_run_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    met, missed = Report("one"), Report("two")
    met.ratio("its time", 1.5, "<= 1.5")
    met.ratio("its rate", 1_001, "> 1 000")
    assert finish([met]) == 0
    assert capsys.readouterr().out.endswith("0 of 2 targets missed.\n")
    missed.ratio("its time", 1.6, "<= 1.5 where click takes 47")
    assert finish([met, missed]) == 1
    said = capsys.readouterr().out
    assert "MISSED two: its time is 1.600; the target is <= 1.5 where click takes 47\n" in said
    assert said.endswith("1 of 3 targets missed.\n")


@pytest.mark.parametrize("target", ["-", "", "flat", "5000"])
def test_a_figure_without_a_limit_can_not_miss(target: str) -> None:
    report = Report("one")
    report.ratio("its memory", 10**9, target)
    assert finish([report]) == 0
