"""Find the one edit of forty that breaks a command: `cas bisect`, `git bisect run` and jj on the same history."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from objstore import CallInfo, Workspace
from tests.bench.measure import Report

__all__ = ["bench_bisect"]

EDITS: Final = 40
CULPRITS: Final = (3, 17, 38)
JJ: Final = shutil.which("jj")
_GIT: Final = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.org")


def bench_bisect(report: Report) -> None:
    """Count the runs of the command until the culprit is known, and what `cas` needs for each."""
    for culprit in CULPRITS:
        with TemporaryDirectory(prefix="bench-bisect-") as folder:
            root, counted = Path(folder, "project"), Path(folder, "runs")
            record(root)
            check = ["sh", "-c", f"echo run >> {counted}; ! grep -qx 'edited {culprit}' f"]
            began = perf_counter()
            said = run([sys.executable, "-m", "cli", "bisect", "--good", "1", "--", *check], root)
            spent = perf_counter() - began
            if f"fails with edit {culprit + 2} " not in said:
                raise AssertionError(said)
            ours = runs(counted)
            run([*_GIT, "bisect", "start", "HEAD", f"HEAD~{EDITS}"], root)
            said = run([*_GIT, "bisect", "run", *check], root)
            if f"edit {culprit}\n" not in said:
                raise AssertionError(said)
            report.ratio(f"runs until edit {culprit} of {EDITS} is named", ours, "<= 6")
            report.figures[f"runs of git bisect, edit {culprit}"] = runs(counted)
            report.figures[f"ms for each run, edit {culprit}"] = round(1000 * spent / ours, 1)
            print(f"  git bisect run: {report.figures[f'runs of git bisect, edit {culprit}']:.0f} runs")
            run([*_GIT, "bisect", "reset"], root)
            if JJ is None:
                print("  jj is not on PATH, and left out")
                continue
            run([JJ, "git", "init", "--colocate"], root)
            good, bad = run(["git", "rev-parse", f"HEAD~{EDITS}", "HEAD"], root).split()
            said = run([JJ, "bisect", "run", "--range", f"{good}..{bad}", "--", *check], root)
            if f"edit {culprit}\n" not in said:
                raise AssertionError(said)
            report.figures[f"runs of jj bisect, edit {culprit}"] = runs(counted)
            print(f"  jj bisect run: {report.figures[f'runs of jj bisect, edit {culprit}']:.0f} runs")


def record(root: Path) -> None:
    """Record a file and forty edits of it, each also as a commit."""
    lines = [f"line {number}" for number in range(EDITS)]
    root.mkdir()
    run(["git", "init", "-q"], root)
    with Workspace.init(root) as workspace:
        for number in range(-1, EDITS):
            if number >= 0:
                lines[number] = f"edited {number}"
            content = "".join(f"{line}\n" for line in lines).encode()
            with workspace.call(CallInfo(tool="edit", conversation="bench")) as call:
                call.write("f", content)
                call.commit()
            run(["git", "add", "f"], root)
            run([*_GIT, "commit", "-q", "-m", f"edit {number}"], root)


def runs(counted: Path) -> int:
    """Return how often the command has run since the last time."""
    number = counted.read_text().count("run")
    counted.write_text("")
    return number


def run(words: list[str], root: Path) -> str:
    """Run a program and return what it printed."""
    environment = os.environ | {"JJ_CONFIG": os.devnull, "JJ_USER": "bench", "JJ_EMAIL": "bench@example.org"}
    ran = subprocess.run(words, cwd=root, check=True, capture_output=True, text=True, env=environment)
    return ran.stdout + ran.stderr
