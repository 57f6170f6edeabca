"""Alignments within a band: properties over random lines, against the plain table."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from objstore.text.band import Band

SLACKS = st.sampled_from([1, 3, 20, 400])


@st.composite
def two_texts(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Draw the lines of a text, and of another one or of the same after some changes."""
    draws = draw(st.randoms(use_true_random=False))
    kinds = draw(st.sampled_from([1, 2, 3, 50]))
    old = [draws.randrange(kinds) for _ in range(draws.randrange(300))]
    if draw(st.booleans()):
        return old, [draws.randrange(kinds) for _ in range(draws.randrange(300))]
    new = list(old)
    for _ in range(draws.randrange(20)):
        start = draws.randrange(len(new) + 1)
        new[start : start + draws.randrange(4)] = [draws.randrange(kinds + 1) for _ in range(draws.randrange(4))]
    return old, new


def longest(old: list[int], new: list[int]) -> int:
    """Return the length of the longest common subsequence, by the plain table."""
    row = [0] * (len(new) + 1)
    for line in old:
        above = 0
        for column, other in enumerate(new, 1):
            above, row[column] = row[column], above + 1 if line == other else max(row[column], row[column - 1])
    return row[-1]


@given(two_texts(), SLACKS)
def test_a_band_pairs_equal_lines_in_order(texts: tuple[list[int], list[int]], slack: int) -> None:
    old, new = texts
    band = Band(old, new, slack)
    pairs = band.pairs()
    assert len(pairs) == band.length
    assert all(old[a] == new[c] for a, c in pairs)
    assert all(a < next_a and c < next_c for (a, c), (next_a, next_c) in pairwise(pairs))


@given(two_texts(), SLACKS)
def test_an_alignment_of_no_more_changes_than_proven_is_a_longest_one(
    texts: tuple[list[int], list[int]], slack: int
) -> None:
    old, new = texts
    band, length = Band(old, new, slack), longest(old, new)
    assert band.length <= length
    if len(old) + len(new) - 2 * length <= band.proven:
        assert band.length == length


@given(two_texts(), st.integers(0, 100_000))
def test_the_widest_band_is_no_larger_than_asked(texts: tuple[list[int], list[int]], size: int) -> None:
    old, new = texts
    slack = Band.widest(len(old), len(new), size)
    if slack:
        assert Band(old, new, slack).size <= size
