"""Texts that tests are fed with: at least a third of their lines are repeated, blank or alike, as in real source."""

from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from tests.support.similar_lines import LETTERS, functions, repeated, undone_next_to_another_change

SEEDS = range(60)


def states(made: Iterable[object]) -> list[bytes]:
    return [state for history in made if history is not None for state in history.states]  # type: ignore[attr-defined]  # a History


@pytest.mark.parametrize(
    "texts",
    [
        lambda: states(map(functions, SEEDS)),
        lambda: states(repeated(seed, alike=0.35) for seed in SEEDS),
        lambda: states(repeated(seed, alike=0.7) for seed in SEEDS),
        lambda: [state for seed in SEEDS for state in undone_next_to_another_change(seed)],
    ],
    ids=["functions", "few repeated", "many repeated", "undone"],
)
def test_a_third_of_generated_lines_are_repeated_blank_or_similar(
    texts: Callable[[], list[bytes]],
) -> None:
    alike = every = 0
    for text in texts():
        lines = text.decode().splitlines()
        counts = Counter(lines)
        every += len(lines)
        alike += sum(counts[line] > 1 or line in LETTERS for line in lines)
    assert 3 * alike >= every
