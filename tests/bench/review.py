"""Review of a file of 10,000 lines with 10,000 edits: opened, decided, recorded on, and as a whole command."""

import random
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import rmtree
from typing import Final

from objstore import Action, CallInfo, Decided, Hunk, Operation, Seq, Unit, Workspace
from objstore.disk.fs.disk import Disk
from objstore.history.documents.loader import load_document
from objstore.model.basic_types import DocumentId, Status
from objstore.storage.transaction.journal import Journal
from objstore.weave.document import Document
from tests.bench.bulk import Bulk
from tests.bench.measure import Report, timed, timed_in_turn
from tests.bench.status import ENTRY, HELLO

__all__ = ["bench_review"]

LINES: Final = 10_000
EDITS: Final = 10_000
REPLAYS: Final = 4
OPENINGS: Final = 20
TOGGLES: Final = 2_000
COMMANDS: Final = 20
MERGES: Final = 40
NAME: Final = "file.txt"
CLICK: Final = "a click command that says hello"


def bench_review(report: Report) -> None:
    """Open it with and without a kept weave, decide, record, run `cas reject`; compare with git merge-file."""
    # In this file's folder, not in /tmp: that may be a memory file system.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
        root = Path(folder)
        states = _history(root)
        journal = Journal(str(root), Disk())
        with journal.reading():
            _open_and_toggle(report, journal, root / ".cas" / "cache")
        journal.close()
        _decide(report, root)
        merge = _merge_replay(report, root, states)
    figures = report.figures
    report.ratio("open with a kept weave, p50 ms", figures["open with a kept weave p50 ms"], "<= 50")
    report.ratio("open without a kept weave, ms", figures["open without a kept weave, and keep it p50 ms"], "<= 250")
    report.ratio("toggle, p50 ms", figures["toggle one edit, with all bytes p50 ms"], "<= 0.15")
    report.ratio("toggle, p99 ms", figures["toggle one edit, with all bytes p99 ms"], "<= 0.5")
    report.ratio("reject a random half, ms", figures["reject a random half p50 ms"], "<= 150")
    report.ratio("cas reject, p50 ms", figures["cas reject p50 ms"], "<= 150 where click takes 47")
    report.ratio("cas reject / click", figures["cas reject p50 ms"] / figures[f"{CLICK} p50 ms"], "<= 3.2")
    report.ratio(
        "replay by merge of all later edits / cas reject", merge * EDITS / figures["cas reject p50 ms"], "> 1 000"
    )


def _history(root: Path) -> list[bytes]:
    """Record one-line edits at random places; return the first states."""
    random_line = random.Random(1)
    lines = [b"line %d of the file, with some text to it\n" % i for i in range(LINES)]
    states = []
    history = Bulk(root)
    history.begin(NAME, b"".join(lines))
    for i in range(EDITS):
        at = random_line.randrange(LINES)
        lines[at] = b"line %d as edit %d left it, with some text\n" % (at, i)
        content = b"".join(lines)
        history.call(f"c{i // 100}", [(NAME, content, Hunk(at, 1, at, 1))])
        if i <= MERGES:
            states.append(content)
    history.close()
    return states


def _open_and_toggle(report: Report, journal: Journal, cache: Path) -> None:
    document = DocumentId(1)

    def opened() -> Document:
        return load_document(journal, document)

    def replayed(_: int) -> None:
        rmtree(cache, ignore_errors=True)
        opened()

    report.times("open without a kept weave, and keep it", timed(replayed, REPLAYS))
    if not cache.is_dir():
        raise AssertionError("nothing was kept")
    held: list[Document] = []
    turns = timed_in_turn({"open": lambda _: held.append(opened()), "close": lambda _: held.clear()}, OPENINGS)
    report.times("open with a kept weave", turns["open"])
    report.times("let it go again", turns["close"])
    loaded = opened()
    whole = loaded.version()
    free = [seq for seq in range(1, EDITS + 1) if not _conflicting(loaded, seq)]
    flips = {Status.REJECTED: Status.PENDING, Status.PENDING: Status.REJECTED}
    current_statuses = dict.fromkeys(free, Status.PENDING)

    def toggle(i: int) -> None:
        seq = free[i // 2 * 7919 % len(free)]
        current_statuses[seq] = flips[current_statuses[seq]]
        loaded.set_statuses({Unit(Seq(seq), 1): current_statuses[seq]})
        if loaded.conflicts() or loaded.version().content is None:
            raise AssertionError("a free edit is in conflict")

    report.times("toggle one edit, with all bytes", timed(toggle, TOGGLES))
    if loaded.version() != whole:
        raise AssertionError("toggling twice has changed the text")
    half = {Unit(Seq(seq), 1): Status.REJECTED for seq in random.Random(2).sample(range(1, EDITS + 1), EDITS // 2)}

    def reject_half(_: int) -> None:
        loaded.set_with_dependents(half)
        if loaded.version() == whole:
            raise AssertionError("nothing was rejected")

    before = loaded.statuses()
    times = []
    for _ in range(5):
        times += timed(reject_half, 1)
        loaded.restore_statuses(before)
    report.times("reject a random half", times)


def _conflicting(loaded: Document, seq: int) -> bool:
    unit = Unit(Seq(seq), 1)
    loaded.set_statuses({unit: Status.REJECTED})
    found = bool(loaded.conflicts())
    loaded.set_statuses({unit: Status.PENDING})
    return found


def _decide(report: Report, root: Path) -> None:
    with Workspace.open(root) as workspace:
        free = [
            seq
            for seq in range(1, EDITS + 1, EDITS // (COMMANDS * 4))
            if isinstance(workspace.decide(Action.REJECT, [Unit(Seq(seq), 1)], dry_run=True), Decided)
        ][:COMMANDS]
        lines = (root / NAME).read_bytes().splitlines(keepends=True)

        def record(i: int) -> None:
            at = 7919 * i % LINES
            lines[at] = b"one more edit, number %d\n" % i
            with workspace.call(CallInfo(tool="bench", conversation="more")) as call:
                call.write(NAME, b"".join(lines), hunks=[Hunk(at, 1, at, 1)], operation=Operation.EDIT)
                call.commit()

        report.times("record one more edit, durably", timed(record, 40))

    def ran(*words: str) -> None:
        subprocess.run([sys.executable, "-c", *words], check=True, stdout=subprocess.DEVNULL)

    times = timed_in_turn(
        {"cas reject": lambda i: ran(ENTRY, "-C", str(root), "reject", str(free[i])), CLICK: lambda _: ran(HELLO)},
        len(free),
    )
    for name, taken in times.items():
        report.times(name, taken)


def _merge_replay(report: Report, root: Path, states: list[bytes]) -> float:
    """Time the replay of edits by three-way merge, as one who drops the first of them would; return ms for an edit."""
    ours = root / "ours"
    ours.write_bytes(states[0])

    def merge(i: int) -> None:
        (root / "ancestor").write_bytes(states[i])
        (root / "theirs").write_bytes(states[i + 1])
        subprocess.run(["git", "merge-file", "-q", "ours", "ancestor", "theirs"], cwd=root, check=False)

    return report.times("replay one edit by git merge-file", timed(merge, MERGES))
