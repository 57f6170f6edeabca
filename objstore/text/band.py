"""Match equal lines of two texts near the diagonal of their table, with one bit for each pair of lines.

A path of few insertions and deletions through the table stays near its diagonal, so only a band of it is computed
(Ukkonen 1985). Within a row, the length of the longest common subsequence grows by one or not at all from one column to
the next, and four operations on integers lead from one row to the next (Crochemore et al. 2001, Hyyrö 2004), however
many lines are equal. The time is the number of rows times the width of the band, divided by the bits of a machine word.

The rows are computed in steps that share their columns. One row is kept for each step, and the rows of a step are
computed again while the path is traced back through it: memory is bounded by the width of the band, not by the table.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

__all__ = ["Band"]

_ROWS: Final = 64
"""The least number of rows in a step."""

_STEP: Final = 1 << 28
"""The most bits in a step of more rows."""


class _Step(NamedTuple):
    """Rows first to last of the table, columns base to top, and the row above them."""

    first: int
    last: int
    base: int
    top: int
    above: int


class Band:
    """An alignment of two texts within a band: a longest one if it needs at most `proven` insertions and deletions."""

    def __init__(self, old: Sequence[int], new: Sequence[int], slack: int) -> None:
        """Align lines, given as numbers that are equal where the lines are, `slack` diagonals around the shortest path.

        A bit of a row is 0 where the length grows at its column.
        """
        self._old, self._new = old, new
        surplus = len(new) - len(old)
        self.proven = abs(surplus) + 2 * slack + 1
        low, high = min(0, surplus) - slack, max(0, surplus) + slack
        self._steps: list[_Step] = []
        rows = max(_ROWS, min(slack, _STEP // (high - low + 1)))
        self.size = 0
        length = base = top = row = 0  # `length`: of the subsequence at column `base`
        for first in range(0, len(old), rows):
            last = min(first + rows, len(old))
            left, right = max(0, first + low), min(len(new), last + high)
            dropped = left - base
            length += dropped - (row & _ones(dropped)).bit_count()
            row = row >> dropped | _ones(right - top) << (top - left)
            base, top = left, right
            step = _Step(first, last, base, top, row)
            self._steps.append(step)
            self.size += (last - first) * (right - left)
            row = deque(self._rows(step), maxlen=1).pop()
        self.length = length + top - base - row.bit_count()
        """How many lines the alignment matches."""

    @staticmethod
    def widest(old_count: int, new_count: int, size: int) -> int:
        """Return the slack of the widest band of at most `size` bits, 0 if there is none."""
        if old_count * new_count <= size:
            return max(old_count, new_count)
        return max(0, size // max(1, old_count) - abs(new_count - old_count) - _ROWS) // 3

    def pairs(self) -> list[tuple[int, int]]:
        """Return the positions of the matched lines in the old and the new text, ascending."""
        old, new = self._old, self._new
        found: list[tuple[int, int]] = []
        column = len(new)
        for step in reversed(self._steps):
            first, at, base = step.first, step.last, step.base
            column = min(column, step.top)
            rows = list(self._rows(step))
            while at > first and column > base:
                if old[at - 1] == new[column - 1]:
                    at -= 1
                    column -= 1
                    found.append((at, column))
                elif rows[at - 1 - first] >> (column - 1 - base) & 1:
                    column -= 1
                else:
                    at -= 1
        found.reverse()
        return found

    def _rows(self, step: _Step) -> Iterator[int]:
        """Yield the rows of a step."""
        wanted = set(self._old[step.first : step.last])
        columns: defaultdict[int, int] = defaultdict(int)
        for place, line in enumerate(self._new[step.base : step.top]):
            if line in wanted:
                columns[line] |= 1 << place
        ones = _ones(step.top - step.base)
        row = step.above
        for line in self._old[step.first : step.last]:
            equal = columns.get(line)
            if equal is not None:
                grown = row & equal
                row = (row + grown | row - grown) & ones
            yield row


def _ones(count: int) -> int:
    return (1 << count) - 1
