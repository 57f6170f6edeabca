"""`cas diff --stat` of many pending edits as a whole command, against `git diff --stat` of the same working tree."""

import os
import random
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from objstore import Hunk, diff_lines
from tests.bench.bulk import Bulk
from tests.bench.measure import Report, timed_in_turn
from tests.bench.status import ENTRY, HELLO

__all__ = ["bench_diff"]

FILES: Final = 200
EDITS: Final = 1_000
LINES: Final = 200
CALL_FILES: Final = 25
ROUNDS: Final = 25
FIRST_ROUNDS: Final = 5
REPEATED: Final = 100_000
CHANGED: Final = 300


def bench_diff(report: Report) -> None:
    """Time it on 1,000 pending edits in 200 files of 200 lines, and without what earlier runs have cached."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        root = Path(folder) / "work"
        hello = Path(folder) / "hello.py"
        hello.write_text(HELLO)
        git = ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "gc.auto=0", "-C", str(root)]
        _history(root, git)
        cas = [sys.executable, "-c", ENTRY, "-C", str(root), "diff", "--stat"]
        ours, theirs = (_output(command).splitlines()[-1] for command in (cas, [*git, "diff", "--stat"]))
        if ours != theirs:
            raise AssertionError(f"cas: {ours!r}, git: {theirs!r}")

        def first(_: int) -> None:
            (root / ".cas" / "cache" / "changes").unlink()
            _output(cas)

        times = timed_in_turn(
            {
                "cas": lambda _: _output(cas),
                "git": lambda _: _output([*git, "diff", "--stat"]),
                "click": lambda _: _output([sys.executable, str(hello)]),
                "python": lambda _: _output([sys.executable, "-c", "pass"]),
            },
            ROUNDS,
        )
        cold = timed_in_turn({"first": first, "all": lambda _: _output([*cas[:-1]])}, FIRST_ROUNDS)
    mine = report.times("cas diff --stat", times["cas"])
    other = report.times("git diff --stat", times["git"])
    report.times("a click command that says hello", times["click"])
    report.times("python -c pass", times["python"])
    report.times("cas diff --stat, nothing cached", cold["first"])
    report.times("cas diff, with all lines", cold["all"])
    report.ratio("cas diff --stat / git diff --stat", mine / other, "<= 3")
    _bench_repeated_lines(report)


def _bench_repeated_lines(report: Report) -> None:
    """Time the comparison of 100,000 lines of 50 kinds, of which few or all changed."""
    draw = random.Random(1)
    kinds = [b"line of kind %d\n" % kind for kind in range(50)]
    before = draw.choices(kinds, k=REPEATED)
    few = list(before)
    for at in draw.sample(range(REPEATED), CHANGED):
        few[at] = draw.choice(kinds)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for name, after in (("few", few), ("all", draw.choices(kinds, k=REPEATED))):
            paths = [Path(folder, side) for side in ("before", "after")]
            for path, lines in zip(paths, (before, after), strict=True):
                path.write_bytes(b"".join(lines))
            old, new = (path.read_bytes() for path in paths)
            times = timed_in_turn(
                {
                    "ours": partial(_compared, old, new),
                    "git": partial(_compared_by_git, paths[0], paths[1]),
                },
                FIRST_ROUNDS,
            )
            report.times(f"100,000 repeated lines, {name} changed", times["ours"])
            report.times(f"git diff of 100,000 repeated lines, {name} changed", times["git"])


def _compared(old: bytes, new: bytes, _: int) -> None:
    diff_lines(old, new)


def _compared_by_git(old: Path, new: Path, _: int) -> None:
    git = ["git", "diff", "--no-index", "--numstat", str(old), str(new)]
    subprocess.run(git, check=False, stdout=subprocess.DEVNULL)


def _history(root: Path, git: list[str]) -> None:
    """Commit the files, and record an agent's edits of single lines at random places."""
    draw = random.Random(1)
    texts = [
        [b"def function_%d_%d(argument):  # a line of code\n" % (i, j) for j in range(LINES)] for i in range(FILES)
    ]
    names = [f"d{i // 20}/file{i}.py" for i in range(FILES)]
    root.mkdir()
    history = Bulk(root)
    for name, text in zip(names, texts, strict=True):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(b"".join(text))
        history.begin(name, b"".join(text))
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "base"]):
        subprocess.run([*git, *words], check=True)
    for number in range(EDITS // FILES):
        for first in range(0, FILES, CALL_FILES):
            edits = []
            for file in range(first, first + CALL_FILES):
                at = draw.randrange(number * LINES // 5, (number + 1) * LINES // 5 - 1)
                texts[file][at] = b"    edited = %d  # line %d\n" % (number, at)
                edits.append((names[file], b"".join(texts[file]), Hunk(at, 1, at, 1)))
            history.call(f"c{number}", edits)
    history.close()
    past = (root / names[0]).stat().st_mtime - 60
    for name in names:
        os.utime(root / name, (past, past))


def _output(command: list[str]) -> bytes:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
