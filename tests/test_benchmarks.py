"""Test that a benchmark fails where it misses a target, and says which."""

from collections.abc import Callable

import pytest

from tests.bench.curves import report_growth
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


SIZES = (1_000, 10_000, 100_000)
START = 0.2


@pytest.mark.parametrize(
    ("cost", "missed"),
    [
        (lambda n: 1e-4 * n, []),
        (lambda n: 1e-7 * n, []),  # less than the start of the command, at every size
        (lambda n: 3 + 1e-5 * n, []),
        (lambda n: 1e-7 * n * n, [10_000, 100_000]),
        (lambda n: 1e-9 * n * n, [100_000]),  # a hundredth of the start at first
        (lambda n: 1e-4 * n + 1e-9 * n * n, [100_000]),  # half of it in proportion
    ],
)
def test_growth_beyond_linear_is_a_miss(cost: Callable[[int], float], missed: list[int]) -> None:
    report = Report("curves")
    report_growth(report, "fsck", {size: START + cost(size) for size in SIZES}, START)
    found = [target.what.split()[5] for target in report.targets if not target.is_met]
    assert found == [f"{size:,}" for size in missed]
    assert finish([report]) == bool(missed)


def test_growth_of_gc_counts_once_edits_expire() -> None:
    report = Report("curves")
    report_growth(report, "gc", {1_000: START, 10_000: START + 4, 100_000: START + 400}, START)
    assert [target.what.split()[5] for target in report.targets if not target.is_met] == ["100,000"]
