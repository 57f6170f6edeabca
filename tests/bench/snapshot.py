"""First and second snapshot of a tree of 20,000 files, and the scans around a shell command, against git."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from objstore import CallInfo, Origin, Workspace
from tests.bench.measure import Report, timed_in_turn

__all__ = ["bench_snapshot"]

FOLDERS: Final = 1_000
FILES: Final = 20
ROUNDS: Final = 15
BEFORE: Final = CallInfo(tool="", origin=Origin.EXTERNAL)
AFTER: Final = CallInfo(tool="Bash", conversation="bench")
SOURCE: Final = str(Path(__file__).parents[2])
ENTRY: Final = "import sys; from editledger.cas import main; sys.exit(main())"
"""What the installed script does."""


def bench_snapshot(report: Report) -> None:
    """Time both on 20,000 files in 1,000 folders; one file changes between the scans."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        root = Path(folder) / "work"
        for i in range(FOLDERS):
            inner = root / f"pkg{i % 20}" / f"mod{i}"
            inner.mkdir(parents=True)
            for j in range(FILES):
                lines = 20 + (i * FILES + j) * 37 % 120
                (inner / f"file{j}.py").write_text(f"# {i} {j}\n" + f"value = {i * j}\n" * lines)
        _first(report, root, Path(folder))
        with Workspace.open(root) as workspace:
            workspace.record_changes(BEFORE)
            _again(report, root, workspace)
            _looks(report, root, workspace)


def _first(report: Report, root: Path, folder: Path) -> None:
    # What the first of them reads is in memory for the second: each has a turn that doesn't count.
    git = ["git", "-C", str(root), "--git-dir", str(folder / "git"), "--work-tree", str(root)]
    times: dict[str, float] = {}
    for _ in range(2):
        for made in (folder / "git", root / ".cas"):
            shutil.rmtree(made, ignore_errors=True)
        with Workspace.init(root) as workspace:
            began = time.perf_counter()
            workspace.snapshots.take(who="bench")
            times["ours"] = (time.perf_counter() - began) * 1e3
        subprocess.run([*git, "init", "-q"], check=True)
        (folder / "git" / "info").mkdir(exist_ok=True)
        (folder / "git" / "info" / "exclude").write_text(".cas\n")
        began = time.perf_counter()
        _git_tree(git)
        times["git"] = (time.perf_counter() - began) * 1e3
    report.times("first snapshot", [times["ours"]])
    report.times("first git add -A && git write-tree", [times["git"]])
    report.ratio("first snapshot / git", times["ours"] / times["git"], "<= 1")


def _again(report: Report, root: Path, workspace: Workspace) -> None:
    git = _git(root)
    times = timed_in_turn(
        {
            "ours": lambda _: workspace.snapshots.take(who="bench"),
            "command": lambda _: _ran(sys.executable, "-c", ENTRY, "-C", str(root), "snapshot", "create"),
            "git": lambda _: _git_tree(git),
            "python": lambda _: _ran(sys.executable, "-c", "pass"),
        },
        ROUNDS,
    )
    ours = report.times("snapshot again, in process", times["ours"])
    report.times("cas snapshot again, whole command", times["command"])
    theirs = report.times("git add -A && git write-tree again", times["git"])
    report.times("python -c pass", times["python"])
    report.ratio("snapshot again / git", ours / theirs, "<= 1")


def _looks(report: Report, root: Path, workspace: Workspace) -> None:
    git = _git(root)
    # Its housekeeping would go on in the background, on one of the processors.
    author = ["-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "gc.auto=0"]
    _ran(*git, *author, "commit", "-q", "-m", "base")

    def looks(i: int) -> None:
        workspace.record_changes(BEFORE)
        (root / "pkg3" / "mod3" / "file3.py").write_text(f"changed {i}\n")
        assert len(workspace.record_changes(AFTER).edits) == 1

    times = timed_in_turn({"looks": looks, "git": lambda _: _ran(*git, "status")}, ROUNDS)
    ours = report.times("two looks, with the edit recorded", times["looks"])
    theirs = report.times("git status", times["git"])
    report.ratio("two looks / git status", ours / theirs, "<= 1.5")


def _git(root: Path) -> list[str]:
    return ["git", "-C", str(root), "--git-dir", str(root.parent / "git"), "--work-tree", str(root)]


def _git_tree(git: list[str]) -> None:
    _ran(*git, "add", "-A")
    _ran(*git, "write-tree")


def _ran(*command: str) -> None:
    # `-C` leads away from where the source is found, unless it is installed.
    settings = dict(os.environ) | {"PYTHONPATH": SOURCE}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=settings)
