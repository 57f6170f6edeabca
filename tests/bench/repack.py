"""Real edit histories, three packages through their releases: bytes and time of `cas gc --repack` and of git's best."""

import importlib.util
import os
import random
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from objstore import CallInfo, Workspace
from objstore.disk.fs.disk import Disk
from objstore.model.ids import BlobId
from objstore.storage.transaction.journal import Journal
from tests.bench.measure import Report, timed

__all__ = ["bench_repack"]

RICH: Final = {12: (2, 0, 1, 1, 5, 2, 1), 13: (2, 1, 1, 6, 3, 4, 1, 2, 2, 5)}
"""How many releases each minor version had."""

RELEASES: Final = {
    "sqlglot": [f"25.{minor}.0" for minor in range(34)],
    "rich": [
        f"{major}.{minor}.{patch}"
        for major, minors in RICH.items()
        for minor, patches in enumerate(minors)
        for patch in range(patches)
    ],
    "networkx": [
        *("2.4", "2.5", "2.5.1", "2.6.2", "2.6.3", "2.7.1", "2.8", "2.8.1", "2.8.3", "2.8.5", "2.8.7", "2.8.8"),
        *("3.0", "3.1", "3.2", "3.2.1", "3.3", "3.4", "3.4.1", "3.4.2"),
    ],
}
FEWEST: Final = 60
"""Minimal number of releases of all packages; with fewer, the figures would mean little."""

READS: Final = 3_000


MEASURE: Final = """
import resource, subprocess, sys, time
began = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
took = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.perf_counter() - began, took.ru_utime, took.ru_stime, took.ru_maxrss)
"""


class Change(NamedTuple):
    """The change of one file by a release."""

    release: str
    path: str
    content: bytes | None  # None: it is gone


class ProcessCost(NamedTuple):
    """The resources that a child process used."""

    wall: float  # seconds
    cpu: float  # seconds of user and system
    peak: float  # MB


def bench_repack(report: Report) -> None:
    """Record each file that a release changed as an edit, and repack; git packs the same states as hard as it can."""
    wheels = list(_wheels())
    if len(wheels) < FEWEST or shutil.which("git") is None:
        print("  left out: the package index can't be reached, or there is no pip, or no git")
        return
    # In this file's folder, not in /tmp: that may be a memory file system, where a sync costs nothing.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
        tracked, shadow = Path(folder) / "tracked", Path(folder) / "shadow"
        tracked.mkdir()
        shadow.mkdir()
        _record(report, tracked, wheels)
        _import(shadow, wheels)
        written = _blob_bytes(tracked)
        reads = _reads(report, "read a state, as written", tracked)
        repack = _run([sys.executable, "-m", "cli", "-C", str(tracked), "gc", "--repack"])
        again = _reads(report, "read a state, repacked", tracked)
        git = _run(["git", "-C", str(shadow), "gc", "--aggressive", "--prune=now", "--quiet"])
        _compare(report, tracked, shadow, written)
        report.ratio("read after / before, p50", again / reads, "-")
        for name, took in (("cas gc --repack", repack), ("git gc --aggressive", git)):
            print(f"  {name:<24} {took.wall:6.1f} s   CPU {took.cpu:6.1f} s   {took.peak:6.0f} MB")
            figures = {f"{name}, s": took.wall, f"{name}, CPU s": took.cpu, f"{name}, MB": took.peak}
            report.figures |= {what: round(value, 2) for what, value in figures.items()}
        report.ratio("time of the repack / git's", repack.wall / git.wall, "<= 0.33")
        report.ratio("CPU time of the repack / git's", repack.cpu / git.cpu, "-")
        report.ratio("peak memory of the repack, MB", repack.peak, "bounded")


def _compare(report: Report, tracked: Path, shadow: Path, written: int) -> None:
    git, repacked_bytes = _git_bytes(shadow), _blob_bytes(tracked)
    with Workspace.open(tracked) as workspace:
        whole, edits = workspace.retention.stored_bytes(), len(workspace.history.edits())
    pack = sum(path.stat().st_size for path in (shadow / ".git" / "objects" / "pack").iterdir())
    report.figures |= {
        "edits": edits,
        "blob bytes as written": written,
        "blob bytes repacked": repacked_bytes,
        "blob bytes of git": git,
        "bytes of the whole store, records and all": whole,
        "bytes of git's whole pack": pack,
    }
    print(f"  {edits:,} edits; blobs {written:,} bytes as written, {repacked_bytes:,} repacked, {git:,} in git's pack")
    print(
        f"  all in: the store {whole:,} bytes, with each edit's record; git's pack {pack:,}, with each release's trees"
    )
    report.ratio("blob bytes repacked / as written", repacked_bytes / written, "-")
    report.ratio("blob bytes repacked / git's", repacked_bytes / git, "< 1")
    report.ratio("whole store / git's blob bytes", whole / git, "< 1")


def _wheels() -> Iterator[Path]:
    """Yield the releases, oldest first; downloaded once, into the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "editledger-bench"
    cache.mkdir(parents=True, exist_ok=True)
    python = sys.executable if importlib.util.find_spec("pip") else shutil.which("python3")
    for package, versions in RELEASES.items():
        for version in versions:
            kept = cache / f"{package}-{version}-py3-none-any.whl"
            if not kept.exists() and python is not None:
                command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
                subprocess.run([*command, "--dest", cache, f"{package}=={version}"], check=False, capture_output=True)
            if kept.exists():
                yield kept
            elif version == versions[0]:
                return  # if the first can't be had, none can


def _changes(wheels: list[Path]) -> Iterator[Change]:
    """Yield the changes of each release, file by file."""
    tree: dict[str, bytes] = {}
    for path in wheels:
        package = path.name.split("-")[0] + "/"
        with zipfile.ZipFile(path) as wheel:
            names = [name for name in wheel.namelist() if name.startswith(package) and not name.endswith("/")]
            files = {name: wheel.read(name) for name in names}
        for name in sorted(name for name in tree if name.startswith(package) and name not in files):
            del tree[name]
            yield Change(path.stem, name, None)
        for name in sorted(files):
            if tree.get(name) != files[name]:
                tree[name] = files[name]
                yield Change(path.stem, name, files[name])


def _record(report: Report, root: Path, wheels: list[Path]) -> None:
    changes = list(_changes(wheels))
    with Workspace.init(root) as workspace:

        def record(i: int) -> None:
            with workspace.call(CallInfo(tool="bench", conversation=changes[i].release)) as call:
                content = changes[i].content
                if content is None:
                    call.delete(changes[i].path)
                else:
                    call.write(changes[i].path, content)
                call.commit()

        report.times("record one changed file, durably", timed(record, len(changes)))


def _import(root: Path, wheels: list[Path]) -> None:
    """Make a repository with a commit for each release, as a shadow repository would have it."""
    subprocess.run(["git", "-C", str(root), "init", "--quiet"], check=True)
    with subprocess.Popen(["git", "-C", str(root), "fast-import", "--quiet"], stdin=subprocess.PIPE) as importing:
        assert importing.stdin is not None
        write = importing.stdin.write
        last = ""
        for at, change in enumerate(_changes(wheels)):
            if change.release != last:
                last = change.release
                write(b"commit refs/heads/main\ncommitter bench <bench> %d +0000\ndata 0\n" % (1_700_000_000 + at))
            if change.content is None:
                write(b"D %s\n" % change.path.encode())
            else:
                write(b"M 100644 inline %s\ndata %d\n" % (change.path.encode(), len(change.content)))
                write(change.content + b"\n")
    if importing.returncode:
        raise AssertionError("git fast-import failed")


def _run(command: list[str]) -> ProcessCost:
    # By a small process in between: what a child took of memory begins with what its parent has.
    output = subprocess.run(
        [sys.executable, "-c", MEASURE, *command], check=True, capture_output=True, text=True
    ).stdout
    wall, user, system, peak = map(float, output.split())
    return ProcessCost(wall, user + system, peak / 1024)


def _git_bytes(root: Path) -> int:
    """Return the size of the blobs in git's pack, without their share of its index."""
    command = [
        "git",
        "-C",
        str(root),
        "cat-file",
        "--batch-all-objects",
        "--batch-check=%(objecttype) %(objectsize:disk)",
    ]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sum(int(line.split()[1]) for line in output.splitlines() if line.startswith("blob "))


def _blob_bytes(root: Path) -> int:
    """Return the size of the blobs in the store, including frames."""
    with closing(Journal(str(root), Disk())) as journal, journal.reading() as store:
        return sum(store.index.blobs.frame_bytes(BlobId(name)) for name, _ in store.index.blobs.all_refs())


def _reads(report: Report, what: str, root: Path) -> float:
    with closing(Journal(str(root), Disk())) as journal, journal.reading() as store:
        names = sorted(BlobId(name) for name, _ in store.index.blobs.all_refs())
        random.Random(1).shuffle(names)
        return report.times(what, timed(lambda i: store.read_once(names[i]), min(READS, len(names))))
