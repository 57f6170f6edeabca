"""Find which lines of a change belong together, and which words in them differ."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

__all__ = ["Emphasis", "Span", "emphasis", "paired_lines"]

TOKEN: Final = re.compile(r"\w+|\s+|.", re.DOTALL)

ALIKE: Final = 0.5
"""Share of equal characters from which two lines count as one line that was changed."""

MOST_COMPARED: Final = 2_500
"""Number of pairs of lines that are compared at most; above it, nothing is paired."""

MOST_CHARACTERS: Final = 2_000
"""Characters of a line above which its words are not compared."""


class Span(NamedTuple):
    """Characters of a line, from `start` up to `end`."""

    start: int
    end: int


class Emphasis(NamedTuple):
    """The words that differ between two similar lines."""

    old: tuple[Span, ...]
    new: tuple[Span, ...]


def emphasis(old: str, new: str) -> Emphasis | None:
    """Return the words in which two lines differ, or None if they have little in common."""
    if max(len(old), len(new)) > MOST_CHARACTERS:
        return None
    old_words, new_words = TOKEN.findall(old), TOKEN.findall(new)
    matcher = SequenceMatcher(None, old_words, new_words, autojunk=False)
    kept = sum(
        len(word) for block in matcher.get_matching_blocks() for word in old_words[block.a : block.a + block.size]
    )
    if 2 * kept < ALIKE * (len(old) + len(new)):
        return None
    found: Emphasis = Emphasis((), ())
    old_ends, new_ends = _ends(old_words), _ends(new_words)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag != "equal":
            found = Emphasis(
                (*found.old, *_span(old_ends, a, a_end)),
                (*found.new, *_span(new_ends, b, b_end)),
            )
    return found


def paired_lines(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the pairs of lines that belong together (index in `old`, index in `new`), both ascending.

    Lines belong together if they are alike. Of the ways to pair them in order, this is one with the most in common.
    """
    if len(old) * len(new) > MOST_COMPARED:
        return []
    alike = [[_alike(one, other) for other in new] for one in old]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            both = alike[i][j] + best[i + 1][j + 1] if alike[i][j] >= ALIKE else 0.0
            best[i][j] = max(both, best[i + 1][j], best[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(old) and j < len(new):
        if alike[i][j] >= ALIKE and best[i][j] == alike[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


# ---- inside


def _alike(old: bytes, new: bytes) -> float:
    old, new = old.strip()[:MOST_CHARACTERS], new.strip()[:MOST_CHARACTERS]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    # The cheap bounds first: most pairs have little in common.
    if matcher.real_quick_ratio() < ALIKE or matcher.quick_ratio() < ALIKE:
        return 0.0
    return matcher.ratio()


def _ends(words: Sequence[str]) -> list[int]:
    ends = [0]
    for word in words:
        ends.append(ends[-1] + len(word))
    return ends


def _span(ends: Sequence[int], first: int, last: int) -> tuple[Span, ...]:
    return (Span(ends[first], ends[last]),) if last > first else ()
