"""Toggle one edit of ten thousand, in this process."""

import random
from typing import Final

from objstore.text.hunks import Hunk
from objstore.weave.line_weave import UnitIndex, Weave
from tests.bench.measure import Report, timed
from tests.support.weave_statuses import set_live

__all__ = ["bench_toggle"]

LINES: Final = 10_000
EDITS: Final = 10_000
ROUNDS: Final = 2_000


def bench_toggle(report: Report) -> None:
    """Toggle each of 10,000 one-line edits of a file of 10,000 lines, including its bytes and the conflict check."""
    random_line = random.Random(1)
    lines = [b"line %d of the file, with some text to it\n" % i for i in range(LINES)]
    weave = Weave(b"".join(lines))
    units: list[UnitIndex] = []

    recording: list[float] = []
    for i in range(EDITS):
        at = random_line.randrange(LINES)
        lines[at] = b"line %d as edit %d left it, with some text\n" % (at, i)
        content, hunks = b"".join(lines), (Hunk(at, 1, at, 1),)

        def record(_: int, content: bytes = content, hunks: tuple[Hunk, ...] = hunks) -> None:
            units.append(weave.record(content, hunks)[1])

        recording += timed(record, 1)
    flippable = [unit for unit in units if not set_live(weave, {unit: False}) or set_live(weave, {unit: True})]
    for unit in units:
        set_live(weave, {unit: True})
    before = weave.text()

    def toggle(i: int) -> None:
        unit = flippable[i * 7919 % len(flippable)]
        set_live(weave, {unit: not weave.is_live(unit)})
        weave.text()

    times = timed(lambda i: toggle(i // 2), ROUNDS)
    if weave.text() != before:
        raise AssertionError("toggling twice has changed the text")
    recorded = report.times("record one edit", recording)
    middle = report.times("toggle one edit, conflicts checked, all bytes", times)
    report.ratio("record one edit, p50 ms", recorded, "<= 0.5")
    report.ratio("toggle p50, ms", middle, "<= 0.15")
    report.ratio("toggle p99, ms", report.figures["toggle one edit, conflicts checked, all bytes p99 ms"], "<= 0.5")
