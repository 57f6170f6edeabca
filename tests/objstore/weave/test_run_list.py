"""The run list answers as a plain list of the same runs would, however its blocks are divided."""

from __future__ import annotations

from itertools import accumulate, pairwise
from random import Random

import pytest

from objstore.weave.run_list import RunList
from objstore.weave.runs import Run, UnitIndex, WeaveUnit

STEPS = 150


class Listed:
    """A run list next to a plain list of the same runs, and questions that both answer."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.order = RunList()
        self.runs: list[Run] = []
        self.watchers: list[WeaveUnit] = []
        self.count = 0
        self.line = 0

    # -- changes

    def fresh(self) -> Run:
        """Return a run of some lines that differ from all others, or of none."""
        lines = self.random.choice([0, 1, 1, 2, 5])
        self.count += 1
        text = b"".join(b"%d.%d\n" % (self.count, line) for line in range(lines))
        run = WeaveUnit(UnitIndex(self.count), UnitIndex(self.count)).new_run(text)
        run.shown = self.random.random() < 0.7
        return run

    def any(self) -> Run:
        return self.random.choice(self.runs)

    def stretch_of_two(self) -> tuple[Run, Run]:
        first, last = sorted(self.random.choices(range(len(self.runs)), k=2))
        return self.runs[first], self.runs[last]

    def put(self) -> None:
        run = self.fresh()
        if not self.runs or self.random.random() < 0.1:
            self.order.append(run)
            self.runs.append(run)
            return
        place = self.any()
        at = self.runs.index(place)
        if self.random.random() < 0.5:
            self.order.insert_after(place, run)
            self.runs.insert(at + 1, run)
        else:
            self.order.insert_before(place, run)
            self.runs.insert(at, run)

    def cut(self) -> None:
        run = self.any()
        if run.lines > 1:
            lines = self.random.randrange(1, run.lines)
            size = sum(map(len, run.text.splitlines(keepends=True)[:lines]))
            rest = self.order.cut(run, lines, self.random.choice([None, size]))
            self.runs.insert(self.runs.index(run) + 1, rest)

    def flip(self) -> None:
        run = self.any()
        self.order.show(run, shown=not run.shown)

    def watch(self) -> None:
        unit = WeaveUnit(UnitIndex(0), UnitIndex(0))
        unit.gap = self.stretch_of_two()
        self.order.watch(unit)
        assert unit.watches
        self.watchers.append(unit)

    def step(self) -> None:
        change = self.random.choice([self.put, self.put, self.put, self.cut, self.flip, self.flip, self.watch])
        if not self.runs:
            change = self.put
        change()

    # -- what is so

    @property
    def shown(self) -> list[Run]:
        return [run for run in self.runs if run.shown]

    @property
    def text(self) -> bytes:
        return b"".join(run.text for run in self.shown)

    def starts(self) -> list[int]:
        """Return where each line of the text begins, and the end of the last."""
        return [0, *accumulate(map(len, self.text.splitlines(keepends=True)))]

    def agree(self) -> None:
        order, runs, text = self.order, self.runs, self.text
        starts = self.starts()
        assert [run for block, _ in order.divided() for run in block] == runs
        assert b"".join(order.texts()) == text
        assert (order.line_count(), order.byte_count()) == (len(starts) - 1, len(text))
        assert (order.first(), order.last()) == (runs[0], runs[-1])
        assert order.has_file() == bool(self.shown)
        assert order.last_with_lines() == next((run for run in reversed(self.shown) if run.lines), None)
        self.agree_on_lines(text, starts)
        self.agree_on_places()
        for unit in self.watchers:
            first, last = unit.region
            blocks = [run.block for run in runs[runs.index(first) : runs.index(last) + 1]]
            assert all(unit in block.watchers for block in blocks)

    def agree_on_lines(self, text: bytes, starts: list[int]) -> None:
        self.agree_on_the_last_line_asked_for()  # it is remembered, and something has changed
        line = self.line = self.random.randrange(len(starts))
        count = self.random.randrange(len(starts) - line)
        assert self.order.offset(line) == starts[line]
        assert self.order.passage(line, count) == (starts[line], text[starts[line] : starts[line + count]])
        for beyond in ((line, len(starts) - line), (len(starts), 0)):
            with pytest.raises(ValueError, match="fewer lines"):
                self.order.passage(*beyond)
        start = self.random.randrange(len(text) + 1)
        end = self.random.randrange(start, len(text) + 5)
        assert self.order.between(start, end) == text[start:end]
        if self.random.random() < 0.5:
            self.flip()  # so that some of what was rendered is no longer so
            assert self.order.between(0, len(self.text)) == self.text
        self.agree_on_the_last_line_asked_for()

    def agree_on_the_last_line_asked_for(self) -> None:
        text, starts = self.text, self.starts()
        self.line = min(self.line, len(starts) - 1)
        rest = text[starts[self.line] :]
        assert self.order.passage(self.line, len(starts) - 1 - self.line) == (starts[self.line], rest)

    def agree_on_places(self) -> None:
        order, runs = self.order, self.runs
        run, other = self.any(), self.any()
        at, other_at = runs.index(run), runs.index(other)
        assert order.lines_above(run) == sum(above.lines for above in runs[:at] if above.shown)
        assert order.precedes(run, other) == (at < other_at)
        assert order.distance(run, other) == other_at - at
        assert order.previous(run) == (runs[at - 1] if at else None)
        assert order.next(run) == (runs[at + 1] if at + 1 < len(runs) else None)
        assert list(order.above(run)) == runs[:at][::-1]
        assert list(order.below(run)) == runs[at + 1 :]
        first, last = self.stretch_of_two()
        low, high = runs.index(first), runs.index(last) + 1
        assert order.is_within(run, first, last) == (low <= at < high)
        assert list(order.runs(first, last)) == runs[low:high]
        assert list(order.shown(first, last)) == [run for run in runs[low:high] if run.shown]
        assert list(order.shown()) == self.shown
        assert list(order.shown(first)) == [run for run in runs[low:] if run.shown]
        assert list(order.shown(None, last)) == [run for run in runs[:high] if run.shown]

    def resync(self) -> None:
        """Add runs that a query cut off to the plain list; none of them is empty."""
        bounds = [run for run in self.runs if not run.lines]
        self.runs = [run for block, _ in self.order.divided() for run in block]
        assert [run for run in self.runs if not run.lines] == bounds

    def ask_for_lines(self) -> None:
        """Query a gap and a stretch, which cut runs in two at their ends."""
        text, starts = self.text, self.starts()
        line = self.random.choice([0, self.random.randrange(len(starts))])
        above, below = self.order.gap_at(line)
        self.resync()
        assert self.text == text
        shown = [None, *self.shown, None]
        if (above, below) != (None, None):
            assert (above, below) in pairwise(shown)
        assert (
            b"".join(run.text for run in self.shown[: self.shown.index(above) + 1 if above else 0])
            == (text[: starts[line]])
        )
        # A bound at the beginning of the text is above the gap, any other below it.
        assert line or above == next((run for run in self.shown[:1] if not run.lines), None)
        assert not line or (above is not None and above.lines)
        if line + 1 < len(starts):
            count = self.random.randrange(1, len(starts) - line)
            found = self.order.runs_at(line, count)
            self.resync()
            assert self.text == text
            assert b"".join(run.text for run in found) == text[starts[line] : starts[line + count]]
            first = self.shown.index(found[0])
            assert found == self.shown[first : first + len(found)]
            assert found[0].lines > 0
            assert found[-1].lines > 0


@pytest.mark.parametrize(("runs", "blocks"), [(1, 1), (2, 2), (3, 32), (32, 32)])
@pytest.mark.parametrize("seed", range(4))
def test_a_run_list_answers_as_a_plain_list_would(
    monkeypatch: pytest.MonkeyPatch, runs: int, blocks: int, seed: int
) -> None:
    monkeypatch.setattr("objstore.weave.run_list._BLOCK_RUNS", runs)
    monkeypatch.setattr("objstore.weave.run_list._STRIDE_BLOCKS", blocks)
    listed = Listed(seed)
    for _ in range(STEPS):
        listed.step()
        listed.agree()
    listed.ask_for_lines()
    listed.agree()


@pytest.mark.parametrize("seed", range(4))
def test_a_run_list_loaded_from_its_blocks_equals_the_original(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("objstore.weave.run_list._BLOCK_RUNS", 2)
    monkeypatch.setattr("objstore.weave.run_list._STRIDE_BLOCKS", 2)
    listed = Listed(seed)
    for _ in range(STEPS // 2):
        listed.step()
    listed.order = RunList(listed.order.divided())
    listed.agree()
    for _ in range(STEPS // 2):
        listed.step()
        listed.ask_for_lines()
        listed.agree()
