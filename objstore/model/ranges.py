"""Store sets of integers as ranges, so that thousands of consecutive numbers take two."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from objstore.values.fastclass import NamedTuple

__all__ = ["Range", "Ranges", "ranges_of"]


class Range(NamedTuple):
    """The integers from `first` to `last`, both included."""

    first: int
    last: int


class Ranges:
    """A set of integers given as ranges; its memory depends on the number of ranges, not of integers."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self._firsts: Final[list[int]] = []
        self._lasts: Final[list[int]] = []
        for first, last in sorted(ranges):
            if self._lasts and first <= self._lasts[-1]:
                self._lasts[-1] = max(last, self._lasts[-1])
            else:
                self._firsts.append(first)
                self._lasts.append(last)

    def __contains__(self, number: int) -> bool:
        """Return whether any range contains `number`."""
        at = bisect_right(self._firsts, number)
        return at > 0 and number <= self._lasts[at - 1]


def ranges_of(numbers: Iterable[int]) -> tuple[Range, ...]:
    """Return the fewest ranges that contain exactly `numbers`, ascending."""
    found: list[Range] = []
    for number in sorted(set(numbers)):
        if found and found[-1].last + 1 == number:
            found[-1] = Range(found[-1].first, number)
        else:
            found.append(Range(number, number))
    return tuple(found)
