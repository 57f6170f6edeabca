"""A durable tracked write, against git and against an untracked write."""

import os
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from objstore import CallInfo, Operation, Workspace
from tests.bench.measure import Report, timed, timed_in_turn

__all__ = ["bench_write"]

LINES: Final = 400
ROUNDS: Final = 600
RUN: Final = 100
GIT_RUN: Final = 10


def source(changed: int) -> bytes:
    """Return a source file of 400 lines, one of which depends on `changed`."""
    lines = [b"    value_%d = compute(%d, 'some text here')\n" % (i, i) for i in range(LINES)]
    lines[changed * 7 % LINES] = b"    changed_%d = compute(%d)\n" % (changed, changed)
    return b"".join(lines)


def bench_write(report: Report) -> None:
    """Change one line of a 400-line file: tracked, untracked (write, fsync, rename), git add and commit."""
    texts = [source(i + 1) for i in range(2 * ROUNDS)]
    # In this file's folder, not in /tmp: that may be a memory file system, where a sync costs nothing.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
        base = Path(folder)
        tracked, untracked, shadow = (base / name for name in ("tracked", "untracked", "shadow"))
        for where in (tracked, untracked, shadow):
            where.mkdir()
            (where / "a.py").write_bytes(source(0))

        with Workspace.init(tracked) as workspace:

            def write_tracked(i: int) -> None:
                with workspace.call(CallInfo(tool="bench", conversation="bench")) as call:
                    call.write("a.py", texts[i], operation=Operation.EDIT)
                    call.commit()

            def write_untracked(i: int) -> None:
                fd = os.open(untracked / "a.py.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
                os.write(fd, texts[i])
                os.fsync(fd)
                os.close(fd)
                (untracked / "a.py.new").rename(untracked / "a.py")

            def commit(i: int, settings: Sequence[str] = ()) -> None:
                git = ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", *settings, "-C", str(shadow)]
                (shadow / "a.py").write_bytes(texts[i])
                subprocess.run([*git, "add", "a.py"], check=True)
                subprocess.run([*git, "commit", "-q", "-m", "edit"], check=True)

            subprocess.run(["git", "-C", str(shadow), "init", "-q"], check=True)
            times = timed_in_turn({"tracked": write_tracked, "untracked": write_untracked}, ROUNDS)
            # One after another, not one by one: what a write leaves to the file system is waited for by the next.
            runs = defaultdict[str, list[float]](list)
            for start in range(ROUNDS, 2 * ROUNDS, RUN):
                acts: dict[str, Callable[[int], None]] = {
                    "tracked": write_tracked,
                    "git": commit,
                    "synced": partial(commit, settings=("-c", "core.fsync=all")),
                }
                for name, act in acts.items():
                    runs[name] += timed(act, RUN if act is write_tracked else GIT_RUN, start)

    ours = report.times("tracked write through objstore", runs["tracked"])
    in_turn = report.times("tracked write, in turn with untracked ones", times["tracked"])
    plain = report.times("untracked write + fsync + rename", times["untracked"])
    theirs = report.times("git add + commit in a shadow repository", runs["git"])
    synced = report.times("the same, durable: core.fsync=all", runs["synced"])
    report.ratio("tracked / untracked, in turn", in_turn / plain, "<= 1.5")
    report.ratio("git / tracked", theirs / ours, ">= 15")
    report.ratio("git, durable / tracked", synced / ours, "")
