"""The search for the changes that make a command fail."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, strategies as st

from objstore.review.trial.bisection import NotFound, first_failing, smallest_failing


class Counted:
    """Answers by a rule, and counts what it is asked."""

    def __init__(self, fails: Callable[[set[int]], bool]) -> None:
        self.fails = fails
        self.runs = 0
        self.rounds = 0

    def __call__(self, sets: Sequence[Sequence[int]]) -> list[bool]:
        self.rounds += 1
        self.runs += len(sets)
        return [self.fails(set(each)) for each in sets]


@pytest.mark.parametrize("culprit", range(40))
def test_one_culprit_of_forty_needs_at_most_six_runs(culprit: int) -> None:
    ask = Counted(lambda live: culprit in live)
    assert first_failing(range(40), ask) == culprit
    assert ask.runs <= 6


@given(st.integers(1, 200), st.data(), st.integers(1, 5))
def test_first_failing_is_found_however_many_run_at_once(number: int, data: st.DataObject, at_once: int) -> None:
    culprit = data.draw(st.integers(0, number - 1))
    assert first_failing(range(number), Counted(lambda live: culprit in live), at_once=at_once) == culprit


@given(st.integers(1, 60), st.data())
def test_smallest_failing_set_fails_and_each_part_of_it_is_needed(number: int, data: st.DataObject) -> None:
    culprits = data.draw(st.sets(st.integers(0, number - 1), min_size=1, max_size=4))
    ask = Counted(lambda live: culprits <= live)
    assert smallest_failing(range(number), ask) == sorted(culprits)


def test_pair_that_fails_only_together_is_found_in_few_runs() -> None:
    ask = Counted(lambda live: {7, 31} <= live)
    assert smallest_failing(range(40), ask) == [7, 31]
    assert ask.runs <= 2 * 7 + 2


def test_several_at_once_need_fewer_rounds() -> None:
    ask = Counted(lambda live: 11 in live)
    first_failing(range(40), ask, at_once=3)
    assert ask.rounds <= 4


@pytest.mark.parametrize("is_failing", [True, False])
def test_command_that_always_or_never_fails_is_said(is_failing: bool) -> None:  # noqa: FBT001 - a parameter
    with pytest.raises(NotFound):
        first_failing(range(9), Counted(lambda _: is_failing))
    if not is_failing:
        with pytest.raises(NotFound):
            smallest_failing(range(9), Counted(lambda _: is_failing))
