"""How long an edit waits while another process brings the store back within its limits.

The disk's own stalls are counted separately: a sync of an edit's few bytes waits for the work of all other processes on
that disk, of this machine or another, and no store can change that.
"""

import gc
import os
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Final

from objstore import Action, CallInfo, Configuration, Operation, Unit, Workspace
from objstore.disk.fs.disk import Disk
from tests.bench.measure import Milliseconds, Report
from tests.bench.peers import peers

__all__ = ["bench_upkeep"]

FILES: Final = 50
EDITS: Final = 2_000
QUIET_ROUNDS: Final = 1_000
MOST_ROUNDS: Final = 20_000
BLOBS: Final = 50_000
PAUSE_SECONDS: Final = 0.003
SOURCE: Final = str(Path(__file__).parents[2])
CHILD: Final = "import sys; from mcptools.server.background_gc import main; sys.exit(main())"


class _TimedDisk(Disk):
    """A disk that measures how long its syncs take."""

    def __init__(self) -> None:
        self.synced: Milliseconds = 0.0

    def sync(self, fd: int, name: str) -> None:
        began = time.perf_counter()
        super().sync(fd, name)
        self.synced += (time.perf_counter() - began) * 1e3


class _Waits:
    """The durations of edits of one file, with and without their syncs."""

    def __init__(self, root: Path) -> None:
        self._disk = _TimedDisk()
        self.workspace = Workspace.open(root, self._disk)
        self._numbers = count()
        self.whole: list[Milliseconds] = []
        self.apart: list[Milliseconds] = []

    def edit(self) -> None:
        """Make one edit."""
        began, synced = time.perf_counter(), self._disk.synced
        with self.workspace.call(CallInfo(tool="bench", conversation="busy")) as call:
            call.write("busy.py", b"value = %d\n" % next(self._numbers) * 400, operation=Operation.EDIT)
            call.commit()
        self.whole.append((time.perf_counter() - began) * 1e3)
        self.apart.append(self.whole[-1] - (self._disk.synced - synced))

    def taken(self) -> tuple[list[Milliseconds], list[Milliseconds]]:
        """Return both durations since the last call of this method."""
        taken, self.whole, self.apart = (self.whole, self.apart), [], []
        return taken


def bench_upkeep(report: Report) -> None:
    """Edit one file while a process expires 2,000 edits of 50 others, or removes half of 50,000 blobs."""
    # In this file's folder, not in /tmp: that may be a memory file system, where a sync costs nothing.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
        root = Path(folder)
        with Workspace.init(root) as workspace:
            _fill(workspace)
        Configuration(str(root)).set("retention.older_than", "0s")
        command = [sys.executable, "-c", CHILD, str(root), "limits"]
        workspace = _edit_during(report, f"{EDITS} edits are let go", root, command, 0.0)
        with workspace:
            gone = sum(view.expired is not None for view in workspace.history.edits())
            left = workspace.review.status().reclaimable.free_bytes
    report.ratio("edits let go meanwhile", gone, f"{EDITS}")
    report.ratio("bytes left that nothing holds", left, "little")
    ours = peers()[0]
    for pause, how in ((PAUSE_SECONDS, "every few ms"), (0.0, "without a pause")):
        with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
            root = Path(folder) / "store"
            ours.fill(root, BLOBS)
            what = f"half of {BLOBS} blobs go, {how}"
            _edit_during(report, what, root, ours.collect(root), pause).close()


def _edit_during(report: Report, what: str, root: Path, command: list[str], pause: float) -> Workspace:
    """Edit one file until a command has ended, and report how long that took; return the workspace."""
    waits = _Waits(root)
    gc.collect()  # what filling it has left is no part of an edit
    waits.edit()
    waits.taken()
    for _ in range(QUIET_ROUNDS):
        waits.edit()
        time.sleep(pause)
    quiet, quiet_apart = waits.taken()
    with subprocess.Popen(command, env=dict(os.environ) | {"PYTHONPATH": SOURCE}) as process:
        while process.poll() is None and len(waits.whole) < MOST_ROUNDS:
            waits.edit()
            time.sleep(pause)
    busy, busy_apart = waits.taken()
    for when, whole, apart, target in (("before", quiet, quiet_apart, "-"), ("while", busy, busy_apart, "<= 1000")):
        report.times(f"a write {when} {what}", whole)
        report.ratio(f"longest {when} {what}, ms", max(whole), "-")
        report.ratio(f"longest {when} {what}, its sync apart, ms", max(apart), target)
    return waits.workspace


def _fill(workspace: Workspace) -> None:
    for i in range(EDITS):
        with workspace.call(CallInfo(tool="bench", conversation=f"c{i // 100}")) as call:
            call.write(f"file{i % FILES}.py", b"".join(b"line %d of %d\n" % (n, i * n % 97) for n in range(200)))
            call.commit()
    units = [Unit(view.seq, hunk) for view in workspace.history.edits() for hunk in range(len(view.units))]
    workspace.decide(Action.ACCEPT, units)
