"""Search for the changes that make a command fail, by asking whether it fails with some of them; nothing runs here.

By order, halving finds the first change with which it fails, as `git bisect` does. By set, it finds changes that fail
only together: the shortest beginning with which it fails ends with one of them, and the search goes on before that one
while it is kept. That is the search of Zeller and Hildebrandt's delta debugging for one minimal set, in about
`log2(n)` questions for each change in the set.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, TypeVar

__all__ = ["Ask", "NotFound", "first_failing", "smallest_failing"]

Item = TypeVar("Item")

Ask = Callable[[Sequence[Sequence[Item]]], Sequence[bool]]
"""Return for each of some sets of changes whether the command fails with these alone; they may be tried at once."""

_FAILS_BEFORE: Final = "it fails without any of these changes too"
_NEVER_FAILS: Final = "it doesn't fail with all of these changes"


class NotFound(Exception):
    """No change makes the command fail: it fails without them, or doesn't fail with all of them."""


def first_failing(items: Sequence[Item], ask: Ask[Item], kept: Sequence[Item] = (), *, at_once: int = 1) -> int:
    """Return the position of the first item with which the command fails, when it and all before it are there.

    `kept`: items that are there in any case; `at_once`: how many sets one question may have. The ends are asked only if
    the search ends there. Raises NotFound.
    """
    passes, fails = 0, len(items)  # numbers of items from the beginning; assumed for the ends until they are asked
    asked: set[int] = set()
    while fails - passes > 1:
        counts = _between(passes, fails, at_once, last=len(items))
        answers = ask([[*kept, *items[:count]] for count in counts])
        asked.update(counts)
        known = [(passes, False), *zip(counts, answers, strict=True), (fails, True)]
        passes, fails = next((a, b) for (a, _), (b, is_failing) in pairwise(known) if is_failing)
    if fails not in asked and not ask([[*kept, *items]])[0]:
        raise NotFound(_NEVER_FAILS)
    if passes not in asked and ask([list(kept)])[0]:
        raise NotFound(_FAILS_BEFORE)
    return fails - 1


def smallest_failing(items: Sequence[Item], ask: Ask[Item], *, at_once: int = 1) -> list[Item]:
    """Return items with which alone the command fails, and with no fewer of them, in their order. Raises NotFound."""
    found: list[Item] = []
    rest = list(items)
    while not found or not ask([found])[0]:
        if not rest:
            raise NotFound(_NEVER_FAILS)
        at = first_failing(rest, ask, found, at_once=at_once)
        found.insert(0, rest[at])
        rest = rest[:at]
    return found


def _between(passes: int, fails: int, at_once: int, last: int) -> list[int]:
    """Return the numbers of items to ask about, ascending.

    The part at an end that was not asked yet is the smaller one, because that end will be asked as well.
    """
    parts = min(at_once + 1, fails - passes)
    is_upper_smaller = fails == last
    size, more = divmod(fails - passes, parts)
    sizes = [size + (at < more if is_upper_smaller else at >= parts - more) for at in range(parts)]
    counts: list[int] = []
    count = passes
    for each in sizes[:-1]:
        count += each
        counts.append(count)
    return counts
