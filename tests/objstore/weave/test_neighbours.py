"""Which hunks are directly next to each other, as pictures."""

from __future__ import annotations

import pytest

from tests.support.history_diagrams import History, history


def next_to(h: History, edit: int, *rejected: int) -> list[int]:
    """Return the edits with a hunk next to the last one of `edit` while others are rejected."""
    if rejected:
        assert not h.reject(*rejected).startswith("C:")
    found = {h.name(unit) for unit in h.weave.neighbours(h.edits[edit][-1])}
    if rejected:
        h.accept(*rejected)
    return sorted(found)


@pytest.mark.parametrize(
    ("h", "neighbours"),
    [
        (history("a b c d", "a B c d", "a B C d"), [2]),  # the line below was changed
        (history("a b c d", "a b C d", "a B C d"), [2]),  # the line above was changed
        (history("a b c d", "a B c d", "a B c D"), []),  # an untouched line is between
        (history("a b c d", "a b N c d", "a b N c D"), []),
        (history("a b c", "a b N c", "a b N M c"), [2]),  # one insertion below the other
        (history("a b c", "a b N c", "a b M N c"), [2]),
        (history("a b c", "a c", "a C"), [2]),  # a deletion, and a change of what it uncovered
        (history("a b c d", "a b d", "a d"), [2]),  # two deletions side by side
        (history("a b", "a b N", "a b N M"), [2]),  # at the end
        (history("a b", "N a b", "M N a b"), [2]),  # at the start
        (history("-", "a b", "A b"), []),  # the creation of the file is next_to nothing
    ],
)
def test_hunks_with_no_foreign_line_between_them_are_neighbours(h: History, neighbours: list[int]) -> None:
    assert next_to(h, 1) == neighbours


def test_neighbours_are_mutual_and_unchanged_by_rejecting_either() -> None:
    h = history("a b c d", "a B c d", "a B C d")
    assert next_to(h, 2) == [1]
    for rejected in ((1,), (2,), (1, 2)):
        assert (next_to(h, 1, *rejected), next_to(h, 2, *rejected)) == ([2], [1])


def test_replacements_of_a_line_are_not_neighbours() -> None:
    rewritten = history("p a q", "p b q", "p c q", "p d q")
    assert [next_to(rewritten, edit) for edit in (1, 2, 3)] == [[], [], []]
    inside = history("p q", "p a b q", "p a N b q")
    assert [next_to(inside, edit) for edit in (1, 2)] == [[], []]
    # At the edge of a block, text belongs to its writer alone.
    assert next_to(history("p q", "p a b q", "p a b N q"), 2) == [1]


def test_hunks_on_both_sides_of_a_shown_line_are_not_neighbours() -> None:
    h = history("a b c d", "a B c d", "a X c d", "a X C d")
    assert next_to(h, 3) == [2]
    assert next_to(h, 3, 2) == [1, 2]


def test_the_search_for_neighbours_is_limited_to_few_layers() -> None:
    h = history("a b c d", *(f"a {word} c d" for word in map(str, range(200))), "a 199 C d")
    assert next_to(h, 201) == [200]
    assert next_to(h, 201, *range(100, 201)) == list(range(137, 201))
