"""Numbers told as ranges: of thousands of neighbours, only the ends."""

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Range", "ranges_of"]


class Range(NamedTuple):
    """Numbers from `first` to `last`, both included."""

    first: int
    last: int


def ranges_of(numbers: Iterable[int]) -> tuple[Range, ...]:
    """Return the fewest ranges that hold the numbers and no others, ascending."""
    found: list[Range] = []
    for number in sorted(set(numbers)):
        if found and found[-1].last + 1 == number:
            found[-1] = Range(found[-1].first, number)
        else:
            found.append(Range(number, number))
    return tuple(found)
