"""One edit of ten thousand is switched off and on again, in process."""

import random
from typing import Final

from objstore.hunks import Hunk
from objstore.weave import UnitIndex, Weave
from tests.bench.measure import Report, timed

__all__ = ["bench_toggle"]

LINES: Final = 10_000
EDITS: Final = 10_000
ROUNDS: Final = 2_000


def bench_toggle(report: Report) -> None:
    """Toggle any of 10,000 one-line edits of a file of 10,000 lines, with all bytes and the conflict check."""
    random_line = random.Random(1)
    lines = [b"line %d of the file, with some text to it\n" % i for i in range(LINES)]
    weave = Weave(b"".join(lines))
    units: list[UnitIndex] = []

    def record(i: int) -> None:
        at = random_line.randrange(LINES)
        lines[at] = b"line %d as edit %d left it, with some text\n" % (at, i)
        units.append(weave.record(b"".join(lines), (Hunk(at, 1, at, 1),))[1])

    recording = timed(record, EDITS)
    flippable = [unit for unit in units if not weave.set_live({unit: False}) or weave.set_live({unit: True})]
    for unit in units:
        weave.set_live({unit: True})
    before = weave.text()

    def toggle(i: int) -> None:
        unit = flippable[i * 7919 % len(flippable)]
        weave.set_live({unit: not weave.is_live(unit)})
        weave.text()

    times = timed(lambda i: toggle(i // 2), ROUNDS)
    if weave.text() != before:
        raise AssertionError("toggling twice has changed the text")
    report.times("record one edit", recording)
    middle = report.times("toggle one edit, conflicts checked, all bytes", times)
    report.ratio("toggle p50, ms", middle, "<= 1")
