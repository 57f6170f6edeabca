"""The weave's costs: memory follows runs, not lines, and a change costs what it touches."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from objstore.text.diff import Hunk, diff_lines
from objstore.weave.dependents import cascade
from objstore.weave.line_weave import UnitIndex, Weave
from tests.support.call_counts import count_calls
from tests.support.faulty_disk import WHOLE
from tests.support.weave_statuses import set_live

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT: Final = Path(__file__).parents[3]

REWRITES: Final = """
import resource
from objstore.text.hunks import Hunk
from objstore.weave.line_weave import Weave

def rewritten(number):
    return b"".join(b"line %d as rewrite %d has it\\n" % (line, number) for line in range(1000))

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

weave = Weave(rewritten(0))
whole = [Hunk(0, 1000, 0, 1000)]
weave.record(rewritten(1), whole)
before = peak()
for number in range(2, 1001):
    weave.record(rewritten(number), whole)
for unit in range(2, 2001, 40):
    weave.flip({unit: False})
    weave.flip({unit: True})
assert weave.text() == rewritten(1000)
print(peak() - before)
"""


def test_a_thousand_whole_rewrites_of_a_thousand_lines_take_less_than_60_mb() -> None:
    """The texts alone are 31 MB: the cost of a run shows here, and a cost per line would show even more."""
    ran = subprocess.run([sys.executable, "-c", REWRITES], cwd=ROOT, capture_output=True, check=True)
    assert int(ran.stdout) < 60_000  # kilobytes


LINES: Final = 3_000


class Region:
    """A deletion of 3,000 lines, and insertions between them."""

    def __init__(self, insertions: int, *, deletion_first: bool) -> None:
        lines = [b"p\n", *(b"%d\n" % number for number in range(LINES)), b"q\n"]
        self.weave = Weave(b"".join(lines))
        if deletion_first:
            self.deletion = self.weave.record(b"p\nq\n", [Hunk(1, LINES, 1, 0)])[1]
            set_live(self.weave, {self.deletion: False})
        self.insertions: list[UnitIndex] = []
        for number in range(insertions):
            at = (2 * number + 1) * LINES // (2 * insertions) + 1 + number
            lines.insert(at, b"new %d\n" % number)
            self.insertions.append(self.weave.record(b"".join(lines), [Hunk(at, 0, at, 1)])[1])
        if not deletion_first:
            self.deletion = self.weave.record(b"p\nq\n", [Hunk(1, len(lines) - 2, 1, 0)])[1]

    def toggle_each(self) -> None:
        for live in (False, True):
            for unit in self.insertions:
                set_live(self.weave, {unit: live})

    def cascade(self) -> None:
        """Bring the deletion back, which every insertion excludes."""
        assert len(cascade(self.weave, {self.deletion: True}).rejected) == len(self.insertions)


@pytest.mark.parametrize(
    ("deletion_first", "act"),
    [(False, Region.toggle_each), (True, Region.toggle_each), (True, Region.cascade)],
    ids=["toggled below a live deletion", "toggled below a rejected deletion", "rejected as the deletion returns"],
)
def test_insertions_under_a_deletion_cost_by_their_number(
    act: Callable[[Region], None],
    deletion_first: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    costs = []
    for insertions in (60, 120):
        region = Region(insertions, deletion_first=deletion_first)
        costs.append(count_calls(lambda: act(region)))  # noqa: B023 - called at once
    assert costs[1] < 2.5 * costs[0], costs


SOME: Final = 5
"""Every fifth rewrite is toggled: what one costs is what is compared."""


class Line:
    """A line that was rewritten many times, and deleted in the end."""

    def __init__(self, rewrites: int, *, texts: int) -> None:
        """Write `texts` different texts in turn; 0: a new one each time."""
        self.weave = Weave(b"p\n0\nq\n")
        lines = [b"%d\n" % (number % texts if texts else number) for number in range(1, rewrites + 1)]
        made = [self.weave.record(b"p\n" + line + b"q\n", [Hunk(1, 1, 1, 1)])[1] for line in lines]
        self.rewrites, self.deletion = made, self.weave.record(b"p\nq\n", [Hunk(1, 1, 1, 0)])[1]

    def toggle_some(self) -> None:
        for live in (False, True):
            for unit in self.rewrites[::SOME]:
                self.weave.flip({unit: live})

    def toggle_some_while_the_others_are_rejected(self) -> None:
        self.weave.flip(dict.fromkeys(self.rewrites, False))
        for unit in self.rewrites[::SOME]:
            self.weave.flip({unit: True})
            self.weave.flip({unit: False})

    def cascade(self) -> None:
        """Reject the first edit, and with it all that depend on it."""
        assert len(cascade(self.weave, {self.rewrites[0]: False}).rejected) >= len(self.rewrites) - 1


@pytest.mark.parametrize(
    ("texts", "act"),
    [
        (0, Line.toggle_some),
        (0, Line.toggle_some_while_the_others_are_rejected),
        (0, Line.cascade),
        (2, Line.toggle_some),
        (2, Line.toggle_some_while_the_others_are_rejected),
        (3, Line.toggle_some),
        (3, Line.cascade),
    ],
)
def test_deciding_on_a_line_rewritten_many_times_costs_what_is_decided(act: Callable[[Line], None], texts: int) -> None:
    costs = []
    # Each decision looks at a bounded number of other rewrites; with fewer rewrites than that, costs still grow.
    for rewrites in (125, 250):
        line = Line(rewrites, texts=texts)
        costs.append(count_calls(lambda: act(line)))  # noqa: B023 - called at once
    assert costs[1] < 2.5 * costs[0], costs


def test_rejecting_every_second_edit_of_a_line_costs_what_is_decided() -> None:
    costs = []
    for rewrites in (60, 120):
        line = Line(rewrites, texts=2)
        line.weave.flip({line.deletion: False})

        def act(line: Line = line) -> None:
            for live in (False, True):
                for first in (0, 1):
                    line.weave.flip(dict.fromkeys(line.rewrites[first::2], live))

        costs.append(count_calls(act))
    assert costs[1] < 2.5 * costs[0], costs


class Returning:
    """A line that was deleted and reinserted many times, with both rejected before the next deletion."""

    def __init__(self, times: int) -> None:
        self.weave = Weave(b"p\nX\nq\n")
        self.deletions: list[UnitIndex] = []
        for _ in range(times):
            self.deletions.append(self.weave.record(b"p\nq\n", [Hunk(1, 1, 1, 0)])[1])
            back = self.weave.record(b"p\nX\nq\n", [Hunk(1, 0, 1, 1)])[1]
            self.weave.flip({self.deletions[-1]: False, back: False})

    def toggle_once(self) -> None:
        for live in (True, False):
            self.weave.flip({self.deletions[-1]: live})

    def toggle_all(self) -> None:
        for live in (True, False):
            self.weave.flip(dict.fromkeys(self.deletions, live))


@pytest.mark.parametrize(("act", "times"), [(Returning.toggle_once, 2), (Returning.toggle_all, 4)])
def test_a_line_deleted_and_reinserted_many_times_costs_linearly(act: Callable[[Returning], None], times: int) -> None:
    """Each unit that deletes a line is checked again when another deleter is decided on."""
    costs = []
    for number in (50, 100):
        line = Returning(number)
        costs.append(count_calls(lambda: act(line)))  # noqa: B023 - called at once
        assert line.weave.text() == b"p\nX\nq\n"
        assert line.weave.conflicts() == ()
    assert costs[1] < 1.25 * times * costs[0], costs


class Tried:
    """A line that was changed or deleted many times, or the file, where each attempt was rejected."""

    def __init__(self, after: Callable[[int], bytes | None], hunks: Sequence[Hunk]) -> None:
        self.weave = Weave(b"p\n0\nq\n")
        self.after, self.hunks = after, hunks
        self.made: list[UnitIndex] = []

    def try_again(self, times: int) -> None:
        for number in range(times):
            unit = self.weave.record(self.after(number), self.hunks)[-1]
            self.weave.flip({unit: False})
            self.made.append(unit)

    def toggle_some(self) -> None:
        for unit in self.made[:10]:
            for live in (True, False):
                assert set_live(self.weave, {unit: live}) == ()


@pytest.mark.parametrize(
    ("after", "hunks"),
    [
        (lambda number: b"p\nnew %d\nq\n" % number, (Hunk(1, 1, 1, 1),)),
        (lambda _: b"p\nq\n", (Hunk(1, 1, 1, 0),)),
        (lambda number: b"new %d\n" % number, (Hunk(0, 3, 0, 1),)),
        (lambda _: None, ()),
    ],
    ids=["changed", "deleted", "rewritten as a whole", "the file deleted"],
)
def test_rejected_attempts_do_not_add_to_the_cost_of_the_next(
    after: Callable[[int], bytes | None], hunks: Sequence[Hunk]
) -> None:
    """Rejected units that deleted the same lines are not checked again."""
    tried = Tried(after, hunks)
    tried.try_again(50)
    costs = []
    for _ in range(2):
        costs.append((count_calls(lambda: tried.try_again(10)), count_calls(tried.toggle_some)))
        tried.try_again(200)
    assert costs[0] == pytest.approx(costs[1], rel=0.1), costs
    assert tried.weave.text() == b"p\n0\nq\n"


class Recorded:
    """A random history in which edits are recorded while others are rejected, so that not all units knew each other."""

    def __init__(self, draw: random.Random) -> None:
        self.base = b"".join(b"%d\n" % number for number in range(40))
        self.entries: list[tuple[bytes, tuple[Hunk, ...]] | dict[UnitIndex, bool]] = []
        weave = Weave(self.base)
        for number in range(30):
            before = weave.text() or b""
            lines = before.splitlines(keepends=True)
            at, most = draw.randrange(len(lines) + 1), draw.choice((1, 1, 1, 30))
            new = [b"edit %d, %d\n" % (number, i) for i in range(draw.choice((0, 1, 3)))]
            lines[at : at + draw.randint(0, most)] = new
            after = b"".join(lines)
            hunks = diff_lines(before, after)
            weave.record(after, hunks)
            self.entries.append((after, hunks))
            change = {UnitIndex(draw.randrange(1, len(weave.state().since) // 4)): draw.random() < 0.5}
            undo = {unit: weave.is_live(unit) for unit in change}
            if set_live(weave, change):
                set_live(weave, undo)
            else:
                self.entries.append(change)
        self.units = [UnitIndex(unit) for unit in range(1, len(weave.state().since) // 4)]

    def weave(self) -> Weave:
        weave = Weave(self.base)
        for entry in self.entries:
            if isinstance(entry, dict):
                set_live(weave, entry)
            else:
                weave.record(*entry)
        return weave


@pytest.mark.parametrize("seed", range(12 if WHOLE else 4))
def test_conflicts_found_incrementally_are_those_found_at_once(seed: int) -> None:
    """One edit has many lines, so that its findings are cached from one decision to the next."""
    draw = random.Random(seed)
    recorded = Recorded(draw)
    weave = recorded.weave()
    live = {unit: weave.is_live(unit) for unit in recorded.units}
    for _ in range(60):
        unit = draw.choice(recorded.units)
        live[unit] = not live[unit]
        assert set_live(weave, {unit: live[unit]}) == set_live(recorded.weave(), live)


TEN_LINES: Final = b"p\n" + b"".join(b"x%d\n" % number for number in range(10)) + b"q\n"


def cut_in_ten(weave: Weave) -> list[UnitIndex]:
    """Insert a line behind each of the ten but the last, each by an edit of its own; return these."""
    made = []
    lines = TEN_LINES.splitlines(keepends=True)
    for number in range(9):
        at = 2 + 2 * number
        lines.insert(at, b"n%d\n" % number)
        made.append(weave.record(b"".join(lines), [Hunk(at, 0, at, 1)])[1])
    return made


def test_cached_findings_of_a_move_are_updated_when_its_other_half_is_rejected() -> None:
    """A deletion of inserted lines needs them as long as the same edit shows them elsewhere."""
    weave = Weave(TEN_LINES)
    first = cut_in_ten(weave)[0]
    block = (weave.text() or b"").removeprefix(b"p\n").removesuffix(b"q\n")
    _, here, there = weave.record(b"p\nq\n" + block, [Hunk(1, 19, 1, 0), Hunk(21, 0, 2, 19)])
    assert [(c.unit, c.needs) for c in set_live(weave, {first: False})] == [(here, (first,))]
    assert set_live(weave, {there: False}) == ()
    assert [(c.unit, c.needs) for c in set_live(weave, {there: True})] == [(here, (first,))]


def test_cached_findings_of_returning_text_are_updated_when_it_is_hidden() -> None:
    """A deletion of new lines needs the unit that had replaced old ones by them, while those show."""
    weave = Weave(TEN_LINES.replace(b"x", b"old"))
    _, out = weave.record(TEN_LINES, [Hunk(1, 10, 1, 10)])
    inserted = cut_in_ten(weave)
    _, gone = weave.record(b"p\nq\n", [Hunk(1, 19, 1, 0)])
    assert set_live(weave, dict.fromkeys([gone, *inserted, out], False)) == ()
    _, again = weave.record(b"p\nq\n", [Hunk(1, 10, 1, 0)])
    assert set_live(weave, {gone: True}) == ()
    assert [(c.unit, c.needs) for c in set_live(weave, {again: False})] == [(gone, (out,))]
    assert set_live(weave, {again: True}) == ()
