"""The order of runs: every run that ever was, from the top of the file to its end, in blocks.

A block remembers its shown text and how many lines that has, so that one change renders one block, and a
line is found by its number without a look at the runs of other blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from objstore.lines import lines_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from objstore.runs import Run, Unit

__all__ = ["Block", "RunOrder"]

_BLOCK_RUNS: Final = 64
"""Runs in a fresh block; one that doubles is divided."""


class Block:
    """Consecutive runs, with what is shown of them."""

    __slots__ = ("_rendered", "index", "lines", "runs", "shown", "size", "watchers")

    def __init__(self, index: int, runs: list[Run], watchers: Iterable[Unit] = ()) -> None:
        self.index = index
        self.runs = runs
        self.watchers: set[Unit] = set(watchers)  # units with a watched region in this block
        for run in runs:
            run.block = self
        shown = [run for run in runs if run.shown]
        self.lines = sum([run.lines for run in shown])  # of the shown runs
        self.size = sum([len(run.text) for run in shown])  # their bytes
        self.shown = len(shown)
        self._rendered: bytes | None = None

    def count(self, run: Run, sign: int) -> None:
        """Take account of a run that is shown from now on (`sign` 1) or no longer (-1)."""
        self.lines += sign * run.lines
        self.size += sign * len(run.text)
        self.shown += sign
        self._rendered = None

    def rendered(self) -> bytes:
        """Return the text of the shown runs."""
        if self._rendered is None:
            self._rendered = b"".join([run.text for run in self.runs if run.shown])
        return self._rendered


class _Near(NamedTuple):
    """A block, and how many lines and bytes are shown before it."""

    block: int
    line: int
    offset: int


class RunOrder:
    """All runs in text order."""

    def __init__(self, blocks: Iterable[tuple[list[Run], set[Unit]]] = ()) -> None:
        """Begin with these runs, divided into blocks, each with its watchers; see `divided`."""
        self._blocks = [Block(index, runs, watchers) for index, (runs, watchers) in enumerate(blocks)] or [Block(0, [])]
        self._near = _Near(0, 0, 0)  # the block in which a line was last looked for

    def divided(self) -> list[tuple[list[Run], set[Unit]]]:
        """Return the runs of each block, with its watchers."""
        return [(block.runs, block.watchers) for block in self._blocks]

    # -- putting runs in

    def append(self, run: Run) -> None:
        """Put `run` after all others."""
        block = self._blocks[-1]
        self._insert(run, block, len(block.runs))

    def insert_after(self, place: Run, run: Run) -> None:
        """Put `run` directly after `place`."""
        self._insert(run, place.block, place.block.runs.index(place) + 1)

    def insert_before(self, place: Run, run: Run) -> None:
        """Put `run` directly before `place`."""
        self._insert(run, place.block, place.block.runs.index(place))

    def cut(self, run: Run, lines: int) -> Run:
        """Cut `run` after its first `lines` lines; return the rest, which follows it."""
        if run.shown:
            self._count(run, -1)
        rest = run.cut(lines)
        if run.shown:
            self._count(run, 1)
        self.insert_after(run, rest)
        return rest

    def _insert(self, run: Run, block: Block, at: int) -> None:
        block.runs.insert(at, run)
        run.block = block
        if run.shown:
            self._count(run, 1)
        if len(block.runs) > 2 * _BLOCK_RUNS:
            self._divide(block)

    def _divide(self, block: Block) -> None:
        self._near = _Near(0, 0, 0)
        halves = [Block(block.index, block.runs[:_BLOCK_RUNS]), Block(0, block.runs[_BLOCK_RUNS:])]
        self._blocks[block.index : block.index + 1] = halves
        for index in range(block.index + 1, len(self._blocks)):
            self._blocks[index].index = index
        for unit in block.watchers:
            self.watch(unit)

    # -- showing and hiding

    def show(self, run: Run, *, shown: bool) -> None:
        """Show or hide `run`, which was hidden or shown."""
        run.shown = shown
        self._count(run, 1 if shown else -1)

    def _count(self, run: Run, sign: int) -> None:
        run.block.count(run, sign)
        if run.block.index < self._near.block:
            self._near = _Near(0, 0, 0)

    def watch(self, unit: Unit) -> None:
        """Let `unit` be a watcher of every block that its region touches."""
        unit.watches = True
        unit.checked = None
        first, last = unit.region
        for block in self._blocks[first.block.index : last.block.index + 1]:
            block.watchers.add(unit)

    # -- where runs stand

    def precedes(self, run: Run, other: Run) -> bool:
        """Return whether `run` stands before `other`."""
        if run.block is not other.block:
            return run.block.index < other.block.index
        for either in run.block.runs:
            if either is run:
                return run is not other
            if either is other:
                return False
        raise AssertionError("a run is not in its block")

    def is_within(self, run: Run, first: Run, last: Run) -> bool:
        """Return whether `run` stands between `first` and `last`, or is one of them."""
        return not self.precedes(run, first) and not self.precedes(last, run)

    def distance(self, run: Run, other: Run) -> int:
        """Return by how many places `other` stands after `run`; negative when before."""
        steps = other.block.runs.index(other) - run.block.runs.index(run)
        if run.block is other.block:
            return steps
        low, high = sorted((run.block.index, other.block.index))
        between = sum(len(block.runs) for block in self._blocks[low:high])
        return steps + (between if high == other.block.index else -between)

    def previous(self, run: Run) -> Run | None:
        """Return the run directly before `run`, shown or not."""
        return next(self.above(run), None)

    def next(self, run: Run) -> Run | None:
        """Return the run directly after `run`, shown or not."""
        return next(self.below(run), None)

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
        """Return the shown runs on either side of the start of line `line`, cutting a run in two if need be.

        None stands for the end of all shown runs. Raises ValueError when the text has fewer lines.
        """
        if not line:
            first = next(self.shown(), None)
            return (None, first) if first is None or first.lines else (first, self._shown_after(first))
        run, offset = self._find(line - 1)
        if offset + 1 < run.lines:
            return run, self.cut(run, offset + 1)
        return run, self._shown_after(run)

    def _find(self, line: int) -> tuple[Run, int]:
        """Return the run that shows line `line`, and which of the run's lines it is; all from zero."""
        block, line, _ = self._block_of(line)
        for run in block.runs:
            if run.shown:
                if line < run.lines:
                    return run, line
                line -= run.lines
        raise ValueError("the text has fewer lines")

    def offset(self, line: int) -> int:
        """Return at which byte of the shown text line `line` begins; the end for the line after the last.

        Raises ValueError for lines beyond that.
        """
        block, line, offset = self._block_of(line)
        for run in block.runs:
            if run.shown:
                if line < run.lines:
                    return offset + lines_end(run.text, 0, line)
                line -= run.lines
                offset += len(run.text)
        if line:
            raise ValueError("the text has fewer lines")
        return offset

    def _block_of(self, line: int) -> tuple[Block, int, int]:
        """Return the block that shows line `line`, which of its lines that is, and the bytes shown before the block.

        The last block, for lines beyond the end. Lines are looked for again and again at about the same place.
        """
        near = self._near if line >= self._near.line else _Near(0, 0, 0)
        index, line, offset = near.block, line - near.line, near.offset
        above = near.line
        block = self._blocks[index]
        while line >= block.lines and index + 1 < len(self._blocks):
            above += block.lines
            line -= block.lines
            offset += block.size
            index += 1
            block = self._blocks[index]
        self._near = _Near(index, above, offset)
        return block, line, offset

    def lines_above(self, run: Run) -> int:
        """Return how many lines are shown before `run`."""
        lines = sum(block.lines for block in self._blocks[: run.block.index])
        for other in run.block.runs:
            if other is run:
                break
            if other.shown:
                lines += other.lines
        return lines

    def line_count(self) -> int:
        """Return how many lines are shown."""
        return sum([block.lines for block in self._blocks])

    def has_file(self) -> bool:
        """Return whether anything is shown, be it only the bounds of an empty file."""
        return any(block.shown for block in self._blocks)

    def last_with_lines(self) -> Run | None:
        """Return the run that shows the last line, or None when no line is shown."""
        for block in reversed(self._blocks):
            if block.lines:
                return next(run for run in reversed(block.runs) if run.shown and run.lines)
        return None

    # -- text

    def rendered(self) -> list[bytes]:
        """Return the shown text of each block."""
        return [block.rendered() for block in self._blocks]
