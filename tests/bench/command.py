"""`cas` in a large store: what a person waits for at the terminal, against git, a bare click program and Python."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from objstore import CallInfo, Hunk, Origin, Workspace
from tests.bench.bulk import Bulk
from tests.bench.measure import Report, timed_in_turn, wait_until_settled

__all__ = ["bench_command", "large_store"]

FILES: Final = 5_000
EDITS: Final = 100_000
PENDING: Final = 1_000
WATCHED: Final = 20_000
LINES: Final = 50
CALL_EDITS: Final = 250
ROUNDS: Final = 15
ENTRY: Final = "import sys; from editledger.cas import main; sys.exit(main())"
"""What the installed script does."""

HELLO: Final = "import click\n@click.command()\ndef hello():\n    click.echo('hello')\nhello()\n"
MEASURE_MEMORY: Final = (
    "import os, sys; null = os.open(os.devnull, os.O_WRONLY);"
    "child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)]);"
    "print(os.wait4(child, 0)[2].ru_maxrss)"
)
TARGETS: Final = {"status": 2.2, "log -n 20": 1.8, "show 1": 1.8, "reject 1": 2.5, "completion": 1.8}
"""The maximal time of each command, relative to a bare click program."""


def bench_command(report: Report) -> None:
    """Time status, log, show, reject and a completion with 100,000 edits, and a change found among 20,000 files."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        root = Path(folder) / "work"
        large_store(root)
        hello = Path(folder) / "hello.py"
        hello.write_text(HELLO)
        cas = [sys.executable, "-c", ENTRY, "-C", str(root)]
        asking = ["_CAS_COMPLETE=fish_complete", f"COMP_WORDS=cas -C {root} show 9", "COMP_CWORD=9"]
        completing = ["env", *asking, sys.executable, "-c", ENTRY]
        wait_until_settled()
        # Every workspace that a person uses was scanned, by a hook, `cas record` or `cas watch`.
        run_command(*cas, "record")
        run_command(*cas, "status")
        numbers = iter(range(1, EDITS))
        commands = {
            "status": [*cas, "status"],
            "log -n 20": [*cas, "log", "-n", "20"],
            "show 1": [*cas, "show", "1"],
            "completion": completing,
        }
        times = timed_in_turn(
            {
                **{name: partial(_again, words) for name, words in commands.items()},
                "reject 1": lambda _: run_command(*cas, "reject", str(next(numbers))),
                "click": lambda _: run_command(sys.executable, str(hello)),
                "python": lambda _: run_command(sys.executable, "-c", "pass"),
            },
            ROUNDS,
        )
        memory = {name: peak_memory(*words) for name, words in commands.items()}
        memory["reject 1"] = peak_memory(*cas, "reject", str(next(numbers)))
        bare = report.times("a click command that says hello", times["click"])
        report.times("python -c pass", times["python"])
        for name, target in TARGETS.items():
            taken = report.times(f"cas {name}, {EDITS} edits", times[name])
            report.ratio(f"cas {name} / click", taken / bare, f"<= {target}")
            report.ratio(f"cas {name}, memory, MB", memory[name], "< 60")
        _watched(report, Path(folder) / "watched")


def _again(words: list[str], _: int) -> None:
    run_command(*words)


def _watched(report: Report, root: Path) -> None:
    """Time how long a change in one of very many files takes to be found."""
    # Its housekeeping would go on in the background, on one of the processors, while the other is timed.
    quietly = ["-c", "gc.auto=0"]
    git = ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", *quietly, "-C", str(root)]
    names = [f"d{i // 200}/file{i}" for i in range(WATCHED)]
    with _made(root) as workspace:
        for at in range(0, WATCHED, 1_000):
            with workspace.call(CallInfo(tool="bench", conversation="c", origin=Origin.PERSON)) as call:
                for name in names[at : at + 1_000]:
                    call.write(name, b"of %b\n" % name.encode())
                call.commit()
    run_command(*git, "init", "-q")
    run_command(*git, "add", "-A")
    run_command(*git, "commit", "-q", "-m", "base")
    past = (root / names[0]).stat().st_mtime - 60
    for name in names:
        os.utime(root / name, (past, past))
    (root / names[WATCHED // 2]).write_bytes(b"changed\n")
    wait_until_settled()
    cas = [sys.executable, "-c", ENTRY, "-C", str(root), "status"]
    found = subprocess.run(cas, capture_output=True, check=True).stdout
    assert names[WATCHED // 2].encode() in found, found
    run_command(*git, "status")
    times = timed_in_turn(
        {
            "cas": lambda _: run_command(*cas),
            "git": lambda _: run_command(*git, "status"),
            "python": lambda _: run_command(sys.executable, "-c", "pass"),
        },
        2 * ROUNDS,
    )
    ours = report.times(f"cas status, one of {WATCHED} files changed", times["cas"])
    theirs = report.times(f"git status, one of {WATCHED} files changed", times["git"])
    start = report.times("python -c pass, in turn with these", times["python"])
    report.ratio("cas status / (1.5 git status + python)", ours / (1.5 * theirs + start), "<= 2")
    _bench_covered(report, root.with_name("covered"), names)


def _bench_covered(report: Report, root: Path, names: Sequence[str]) -> None:
    """Time a status that compares files without edits, after a scan that saw them unchanged."""
    with _made(root) as workspace:
        for name in names:
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(name)
            os.utime(root / name, (0, 0))
        wait_until_settled()
        for _ in range(2):
            workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    times = timed_in_turn(
        {
            "cas": lambda _: run_command(sys.executable, "-c", ENTRY, "-C", str(root), "status"),
            "click": lambda _: run_command(sys.executable, "-c", HELLO),
            "python": lambda _: run_command(sys.executable, "-c", "pass"),
        },
        2 * ROUNDS,
    )
    ours = report.times(f"cas status, {len(names)} files without edits", times["cas"])
    bare = report.times("a click command, in turn with that", times["click"])
    start = report.times("python -c pass, in turn with that", times["python"])
    report.ratio("cas status / (click + python)", ours / (bare + start), "<= 2.2")


def large_store(root: Path) -> None:
    """Create a workspace with EDITS edits in FILES files, of which the newest PENDING are undecided."""
    root.mkdir(parents=True, exist_ok=True)
    texts = [[b"value_%d = %d\n" % (j, j) for j in range(LINES)] for _ in range(FILES)]
    names = [f"d{i // 100}/f{i}.py" for i in range(FILES)]
    history = Bulk(root)
    for name, text in zip(names, texts, strict=True):
        history.begin(name, b"".join(text))
    for first in range(0, EDITS, CALL_EDITS):
        edits = []
        for number in range(first, first + CALL_EDITS):
            file, at = number % FILES, number // FILES * 2 % LINES
            texts[file][at] = b"value_%d = %d  # edited\n" % (at, number)
            edits.append((names[file], b"".join(texts[file]), Hunk(at, 1, at, 1)))
        origin = Origin.AGENT if first >= EDITS - PENDING else Origin.PERSON
        history.call(f"conv_{first // 500:04d}", edits, origin)
    history.close()
    past = (root / names[0]).stat().st_mtime - 60
    for name in names:
        os.utime(root / name, (past, past))


def _made(root: Path) -> Workspace:
    root.mkdir(parents=True, exist_ok=True)
    return Workspace.init(root)


def run_command(*command: str) -> None:
    """Run a command until it ends."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def peak_memory(*command: str) -> float:
    """Run a command; return its peak memory in MB."""
    # By way of a small process: a child counts as having held what its parent held when it was made.
    output = subprocess.run([sys.executable, "-c", MEASURE_MEMORY, *command], check=True, capture_output=True).stdout
    return int(output) / (1e6 if sys.platform == "darwin" else 1e3)
