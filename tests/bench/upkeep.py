"""How long an edit waits while another process brings the store back within its limits."""

import os
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Final

from objstore import Action, CallInfo, Configuration, Operation, Unit, Workspace
from tests.bench.measure import Milliseconds, Report, timed
from tests.bench.peers import peers

__all__ = ["bench_upkeep"]

FILES: Final = 50
EDITS: Final = 2_000
QUIET_ROUNDS: Final = 300
MOST_ROUNDS: Final = 20_000
BLOBS: Final = 50_000
PAUSE_SECONDS: Final = 0.003
SOURCE: Final = str(Path(__file__).parents[2])
CHILD: Final = "import sys; from mcptools.upkeep import main; sys.exit(main())"


def bench_upkeep(report: Report) -> None:
    """Edit one file while a process lets go of 2,000 edits in 50 others and takes their bytes out of the store."""
    # Beside this file, not in /tmp: that may be a memory file system, where a sync costs nothing.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
        root = Path(folder)
        with Workspace.init(root) as workspace:
            _fill(workspace)

            numbers = count()

            def edit(_: int) -> None:
                with workspace.call(CallInfo(tool="bench", conversation="busy")) as call:
                    call.write("busy.py", b"value = %d\n" % next(numbers) * 400, operation=Operation.EDIT)
                    call.commit()

            quiet = timed(edit, QUIET_ROUNDS)
            Configuration(str(root)).set("retention.older_than", "0s")
            busy: list[Milliseconds] = []
            with subprocess.Popen([sys.executable, "-c", CHILD, str(root), "limits"]) as process:
                while process.poll() is None and len(busy) < MOST_ROUNDS:
                    busy += timed(edit, 1)
                process.wait()
            gone = sum(view.expired is not None for view in workspace.edits())
            left = workspace.status().reclaimable.free_bytes
    report.times("a tracked write, nobody else at work", quiet)
    report.times("the same while the store is brought back", busy)
    report.ratio("longest wait, ms", max(busy), "<= 50")
    report.ratio("edits let go meanwhile", gone, f"{EDITS}")
    report.ratio("bytes left that nothing holds", left, "little")
    _beside_a_sweep(report)


def _beside_a_sweep(report: Report) -> None:
    """Edit every few milliseconds, as a busy agent does, while every second of many blobs goes."""
    ours = peers()[0]
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
        root = Path(folder) / "store"
        ours.fill(root, BLOBS)
        with Workspace.open(root) as workspace:
            numbers = count()

            def edit(_: int) -> None:
                with workspace.call(CallInfo(tool="bench", conversation="busy")) as call:
                    call.write("busy.py", b"value = %d\n" % next(numbers) * 400, operation=Operation.EDIT)
                    call.commit()

            edit(0)
            quiet: list[Milliseconds] = []
            for _ in range(QUIET_ROUNDS):
                quiet += timed(edit, 1)
                time.sleep(PAUSE_SECONDS)
            busy: list[Milliseconds] = []
            with subprocess.Popen(ours.collect(root), env=dict(os.environ) | {"PYTHONPATH": SOURCE}) as process:
                while process.poll() is None and len(busy) < MOST_ROUNDS:
                    busy += timed(edit, 1)
                    time.sleep(PAUSE_SECONDS)
    report.times("a tracked write now and then, nobody else at work", quiet)
    report.times(f"the same while half of {BLOBS} blobs go", busy)
    report.ratio("longest wait, nobody else at work, ms", max(quiet), "-")
    report.ratio(f"longest wait while half of {BLOBS} blobs go, ms", max(busy), "<= 50")


def _fill(workspace: Workspace) -> None:
    for i in range(EDITS):
        with workspace.call(CallInfo(tool="bench", conversation=f"c{i // 100}")) as call:
            call.write(f"file{i % FILES}.py", b"".join(b"line %d of %d\n" % (n, i * n % 97) for n in range(200)))
            call.commit()
    units = [Unit(view.seq, hunk) for view in workspace.edits() for hunk in range(len(view.units))]
    workspace.decide(Action.ACCEPT, units)
