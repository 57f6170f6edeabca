"""Keep every run that ever was in text order, and find lines by number.

Runs are grouped in blocks. A block caches how many lines and bytes it shows, and its shown text, so that one change
renders one block; a stride sums that up for a number of consecutive blocks. So finding a line by its number does not
look at the runs of other blocks.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from objstore.text.lines import lines_end
from objstore.weave.runs import Block

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from objstore.weave.runs import Run, WeaveUnit

__all__ = ["RunList"]

_BLOCK_RUNS: Final = 32
"""Runs in a new block; a block that exceeds twice that is divided."""

_STRIDE_BLOCKS: Final = 32
"""Blocks in a stride."""


class _Stride:
    """Counts of what consecutive blocks show together."""

    __slots__ = ("lines", "size")

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.lines = self.size = 0
        for block in blocks:
            self.lines += block.lines
            self.size += block.size


class _Found(NamedTuple):
    """A line of the shown text and its position."""

    line: int  # its number, from 0
    run: Run  # the run that shows it
    above: int  # lines above it in the run
    start: int  # bytes above it in the run
    offset: int  # bytes of the shown text before the run


class RunList:
    """All runs in text order."""

    def __init__(self, blocks: Iterable[tuple[list[Run], set[WeaveUnit]]] = ()) -> None:
        """Start with these runs, divided into blocks, each with its watchers; see `divided`."""
        self._blocks = [Block(index, runs, watchers) for index, (runs, watchers) in enumerate(blocks)] or [Block(0, [])]
        self._texts = [b""] * len(self._blocks)  # what each block shows, except
        self._stale = set(self._blocks)  # those that are still to be rendered
        self._strides = self._summed(0)
        self._lines = sum([block.lines for block in self._blocks])
        self._size = sum([block.size for block in self._blocks])
        self._found: _Found | None = None  # the last line looked up; None: it is no longer valid

    def _summed(self, first: int) -> list[_Stride]:
        """Recompute the strides from number `first` on."""
        starts = range(first * _STRIDE_BLOCKS, len(self._blocks), _STRIDE_BLOCKS)
        return [_Stride(self._blocks[at : at + _STRIDE_BLOCKS]) for at in starts]

    def divided(self) -> list[tuple[list[Run], set[WeaveUnit]]]:
        """Return the runs of each block, with its watchers."""
        return [(block.runs, block.watchers) for block in self._blocks]

    # -- inserting and cutting

    def append(self, run: Run) -> None:
        """Insert `run` after all others."""
        block = self._blocks[-1]
        self._insert(run, block, len(block.runs))

    def insert_after(self, place: Run, run: Run) -> None:
        """Insert `run` directly after `place`."""
        self._insert(run, place.block, place.block.runs.index(place) + 1)

    def insert_before(self, place: Run, run: Run) -> None:
        """Insert `run` directly before `place`."""
        self._insert(run, place.block, place.block.runs.index(place))

    def cut(self, run: Run, lines: int, size: int | None = None) -> Run:
        """Cut `run` after its first `lines` lines, which have `size` bytes; return the rest, which follows it.

        All copies of the run, and what it is a copy of, are cut in the same place.
        """
        if size is None:
            size = lines_end(run.text, 0, lines)
        if run.original is None and not run.copies:
            return self._cut(run, lines, size)
        first = run
        while first.original is not None:
            first = first.original
        rests = {each: self._cut(each, lines, size) for each in [first, *first.descendants()]}
        for each, rest in rests.items():
            rest.original = None if each.original is None else rests[each.original]
            rest.copies = tuple([rests[copy] for copy in each.copies])
        return rests[run]

    def _cut(self, run: Run, lines: int, size: int) -> Run:
        rest = run.cut(lines, size)
        block = rest.block = run.block
        block.runs.insert(block.runs.index(run) + 1, rest)
        block.shown += rest.shown
        self._found = None
        if len(block.runs) > 2 * _BLOCK_RUNS:
            self._divide(block)
        return rest

    def _insert(self, run: Run, block: Block, at: int) -> None:
        block.runs.insert(at, run)
        run.block = block
        if run.shown:
            self._count(run, 1)
        if len(block.runs) > 2 * _BLOCK_RUNS:
            self._divide(block)

    def _divide(self, block: Block) -> None:
        at = block.index
        halves = [Block(at, block.runs[:_BLOCK_RUNS]), Block(0, block.runs[_BLOCK_RUNS:])]
        self._blocks[at : at + 1] = halves
        self._texts[at : at + 1] = [b"", b""]
        self._stale.discard(block)
        self._stale.update(halves)
        for index in range(at + 1, len(self._blocks)):
            self._blocks[index].index = index
        first = at // _STRIDE_BLOCKS
        self._strides[first:] = self._summed(first)
        for unit in block.watchers:
            self.watch(unit)

    # -- showing and hiding

    def show(self, run: Run, *, shown: bool) -> None:
        """Show or hide `run`, which was hidden or shown."""
        run.shown = shown
        self._count(run, 1 if shown else -1)

    def _count(self, run: Run, sign: int) -> None:
        """Update the counts for a run that is shown from now on (`sign` 1) or no longer (-1)."""
        block, lines, size = run.block, sign * run.lines, sign * len(run.text)
        block.lines += lines
        block.size += size
        block.shown += sign
        stride = self._strides[block.index // _STRIDE_BLOCKS]
        stride.lines += lines
        stride.size += size
        self._stale.add(block)
        self._lines += lines
        self._size += size
        self._found = None

    def watch(self, unit: WeaveUnit) -> None:
        """Make `unit` a watcher of every block that its region touches."""
        unit.watches = True
        unit.checked = None
        first, last = unit.region
        for block in self._blocks[first.block.index : last.block.index + 1]:
            block.watchers.add(unit)

    # -- positions of runs

    def precedes(self, run: Run, other: Run) -> bool:
        """Return whether `run` is before `other`."""
        if run.block is not other.block:
            return run.block.index < other.block.index
        for either in run.block.runs:
            if either is run:
                return run is not other
            if either is other:
                return False
        raise AssertionError("a run is not in its block")

    def is_within(self, run: Run, first: Run, last: Run) -> bool:
        """Return whether `run` is between `first` and `last`, both included."""
        return not self.precedes(run, first) and not self.precedes(last, run)

    def distance(self, run: Run, other: Run) -> int:
        """Return by how many places `other` is after `run`; negative if it is before."""
        if run is other:
            return 0
        steps = other.block.runs.index(other) - run.block.runs.index(run)
        if run.block is other.block:
            return steps
        low, high = sorted((run.block.index, other.block.index))
        between = sum(len(block.runs) for block in self._blocks[low:high])
        return steps + (between if high == other.block.index else -between)

    def previous(self, run: Run) -> Run | None:
        """Return the run directly before `run`, shown or not."""
        at = run.block.runs.index(run)
        return run.block.runs[at - 1] if at else next(self.above(run), None)

    def next(self, run: Run) -> Run | None:
        """Return the run directly after `run`, shown or not."""
        at = run.block.runs.index(run) + 1
        return run.block.runs[at] if at < len(run.block.runs) else next(self.below(run), None)

    def above(self, run: Run) -> Iterator[Run]:
        """Yield the runs before `run`, shown or not, the nearest first."""
        at = run.block.runs.index(run)
        yield from reversed(run.block.runs[:at])
        for index in range(run.block.index - 1, -1, -1):
            yield from reversed(self._blocks[index].runs)

    def below(self, run: Run) -> Iterator[Run]:
        """Yield the runs after `run`, shown or not, the nearest first."""
        at = run.block.runs.index(run)
        yield from run.block.runs[at + 1 :]
        for index in range(run.block.index + 1, len(self._blocks)):
            yield from self._blocks[index].runs

    def first(self) -> Run | None:
        """Return the first run of all, shown or not."""
        return next((block.runs[0] for block in self._blocks if block.runs), None)

    def last(self) -> Run | None:
        """Return the last run of all, shown or not."""
        return next((block.runs[-1] for block in reversed(self._blocks) if block.runs), None)

    def runs(self, first: Run, last: Run) -> Iterator[Run]:
        """Yield all runs from `first` to `last`, shown or not, both included."""
        yield first
        if first is not last:
            for run in self.below(first):
                yield run
                if run is last:
                    break

    def shown(self, first: Run | None = None, last: Run | None = None) -> Iterator[Run]:
        """Yield the shown runs from `first` to `last`, both included; None: from the top, to the end."""
        low = first.block.index if first else 0
        high = last.block.index if last else len(self._blocks) - 1
        for index in range(low, high + 1):
            block = self._blocks[index]
            if not block.shown:
                continue
            runs: Sequence[Run] = block.runs
            start = runs.index(first) if first and index == low else 0
            end = runs.index(last) + 1 if last and index == high else len(runs)
            for run in runs[start:end]:
                if run.shown:
                    yield run

    def _shown_after(self, run: Run) -> Run | None:
        following = self.shown(run)
        next(following)
        return next(following, None)

    # -- lines by number

    def gap_at(self, line: int) -> tuple[Run | None, Run | None]:
        """Return the shown runs on both sides of the start of line `line`, cutting a run in two if necessary.

        None represents the end of all shown runs. Raises ValueError if the text has fewer lines.
        """
        if not line:
            first = next(self.shown(), None)
            return (None, first) if first is None or first.lines else (first, self._shown_after(first))
        _, run, above, _, _ = self._find(line - 1)
        if above + 1 < run.lines:
            return run, self.cut(run, above + 1)
        return run, self._shown_after(run)

    def runs_at(self, line: int, count: int) -> list[Run]:
        """Return the shown runs that hold `count` lines from line `line` on, cutting runs at both ends if necessary.

        `count` is at least 1. Raises ValueError if the text has fewer lines.
        """
        _, run, above, start, _ = self._find(line)
        if above:
            run = self.cut(run, above, start)
        if run.lines > count:
            self.cut(run, count)
        if run.lines == count:
            return [run]
        found = [run]
        count -= run.lines
        for run in islice(self.shown(found[0]), 1, None):
            found.append(run)
            count -= run.lines
            if count <= 0:
                break
        else:
            raise ValueError("the text has fewer lines")
        if count:
            self.cut(found[-1], found[-1].lines + count)
        return found

    def _find(self, line: int) -> _Found:
        """Return the run that shows line `line`. Raises ValueError if the text has fewer lines."""
        found = self._found
        if found is not None and found.line == line:
            return found
        block, left, offset = self._block_of(line)
        for run in block.runs:
            if run.shown:
                lines = run.lines
                if left < lines:
                    start = lines_end(run.text, 0, left) if left else 0
                    found = self._found = _Found(line, run, left, start, offset)
                    return found
                left -= lines
                offset += len(run.text)
        raise ValueError("the text has fewer lines")

    def run_at(self, line: int) -> tuple[Run, int]:
        """Return the run that shows line `line`, from 0, and the number of its lines above that one.

        Raises ValueError if the text has fewer lines.
        """
        found = self._find(line)
        return found.run, found.above

    def offset(self, line: int) -> int:
        """Return the byte of the shown text at which line `line` begins; the end for the line after the last.

        Raises ValueError for lines beyond that.
        """
        return self.passage(line, 0)[0]

    def passage(self, line: int, count: int) -> tuple[int, bytes]:
        """Return the byte of the shown text at which line `line` begins, and the text of `count` lines from there on.

        `line` may be the one after the last. Raises ValueError if the text has fewer lines.
        """
        if line == self._lines and not count:
            return self._size, b""
        _, run, above, start, offset = self._find(line)
        end = lines_end(run.text, start, min(count, run.lines - above)) if above + count < run.lines else len(run.text)
        text, left = run.text[start:end], count - (run.lines - above)
        if left > 0:
            pieces = [text]
            for other in islice(self.shown(run), 1, None):
                pieces.append(other.text if other.lines <= left else other.text[: lines_end(other.text, 0, left)])
                left -= other.lines
                if left <= 0:
                    break
            else:
                raise ValueError("the text has fewer lines")
            text = b"".join(pieces)
        return offset + start, text

    def _block_of(self, line: int) -> tuple[Block, int, int]:
        """Return the block that shows line `line`, the line's number in it, and the bytes shown before the block.

        Returns the last block for lines beyond the end.
        """
        at = offset = 0
        for stride in self._strides:
            lines = stride.lines
            if line < lines:
                break
            line -= lines
            offset += stride.size
            at += _STRIDE_BLOCKS
        else:
            line += stride.lines
            offset -= stride.size
            at -= _STRIDE_BLOCKS
        for block in self._blocks[at : at + _STRIDE_BLOCKS]:
            lines = block.lines
            if line < lines:
                return block, line, offset
            line -= lines
            offset += block.size
        return block, line + block.lines, offset - block.size

    def lines_above(self, run: Run) -> int:
        """Return how many lines are shown before `run`."""
        stride = run.block.index // _STRIDE_BLOCKS
        lines = sum([stride.lines for stride in self._strides[:stride]])
        lines += sum([block.lines for block in self._blocks[stride * _STRIDE_BLOCKS : run.block.index]])
        for other in run.block.runs:
            if other is run:
                break
            if other.shown:
                lines += other.lines
        return lines

    def line_count(self) -> int:
        """Return how many lines are shown."""
        return self._lines

    def byte_count(self) -> int:
        """Return how many bytes are shown."""
        return self._size

    def has_file(self) -> bool:
        """Return whether anything is shown, even if only the bounds of an empty file."""
        # The first block nearly always shows something, and a replay calls this for each edit.
        return self._blocks[0].shown > 0 or any(block.shown for block in self._blocks)

    def last_with_lines(self) -> Run | None:
        """Return the run that shows the last line, or None when no line is shown."""
        for block in reversed(self._blocks):
            if block.lines:
                return next(run for run in reversed(block.runs) if run.shown and run.lines)
        return None

    # -- text

    def between(self, start: int, end: int) -> bytes:
        """Return the bytes of the shown text from `start` to `end`; fewer if the text ends earlier."""
        at = offset = 0
        for stride in self._strides:
            if start < offset + stride.size:
                break
            offset += stride.size
            at += _STRIDE_BLOCKS
        pieces = list[bytes]()
        for index in range(at, len(self._blocks)):
            if offset >= end:
                break
            block_end = offset + self._blocks[index].size
            if start < block_end:
                pieces.append(self._text(self._blocks[index])[max(0, start - offset) : end - offset])
            offset = block_end
        return b"".join(pieces)

    def texts(self) -> list[bytes]:
        """Return the shown text of each block."""
        for block in self._stale:
            self._texts[block.index] = block.text()
        self._stale.clear()
        return self._texts.copy()

    def _text(self, block: Block) -> bytes:
        if block in self._stale:
            self._texts[block.index] = block.text()
            self._stale.discard(block)
        return self._texts[block.index]
