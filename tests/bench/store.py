"""The store alone and compared with its peers, as it grows: bytes, opening, reading, writing, collecting.

Half of the blobs are let go of: first a hundred thousand at most, so that a run takes minutes. With CAS_BENCH_BLOBS a
run goes up to as many as that says (1000000 takes two hours, of which git works the most at its loose objects).
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench.measure import Report, percentile, timed
from tests.bench.peers import Peer, content, is_kept, keys_of, peers

__all__ = ["bench_store"]

SIZES: Final = (10_000, 100_000, 1_000_000)
MOST: Final = int(os.environ.get("CAS_BENCH_BLOBS", "100000"))
READS: Final = 2_000
COLD_READS: Final = 200
PUTS: Final = 100
OPENINGS: Final = 9
WAITING: Final = """
import os, sys, time
began = time.perf_counter()
_, status, usage = os.wait4(os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ), 0)
print(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A program that runs a command and prints the resources it used."""

SOURCE: Final = str(Path(__file__).parents[2])


def bench_store(report: Report) -> None:
    """Fill each store with texts of 2 kB, half of which are removed; git, dulwich, disk-objectstore and files too."""
    for size in (size for size in SIZES if size <= MOST):
        print(f"  --- {size} blobs")
        ours: dict[str, float] = {}
        for peer in peers():
            if size <= peer.most:
                # In this file's folder, not in /tmp: that may be a memory file system.
                with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
                    found = _measured(report, peer, Path(folder) / "store", size)
                ours = ours or found
                if found is not ours:
                    _compared(report, f"{size} {peer.name}", ours, found)
        report.ratio(f"{size}: open to the first blob, ms", ours["open"], "<= 2")
        report.ratio(f"{size}: most memory while taking away, MB", ours["memory"], "< 300")


def _compared(report: Report, what: str, ours: dict[str, float], theirs: dict[str, float]) -> None:
    report.ratio(f"{what}: its bytes / ours", theirs["bytes"] / ours["bytes"], "> 1")
    report.ratio(f"{what}: take away, ours / its", ours["away"] / theirs["away"], "<= 0.33")
    report.ratio(f"{what}: take away, processor time, ours / its", ours["away cpu"] / theirs["away cpu"], "-")


def _measured(report: Report, peer: Peer, root: Path, size: int) -> dict[str, float]:
    what = f"{size} {peer.name}"
    found: dict[str, float] = {}
    began = time.perf_counter()
    peer.fill(root, size)
    found["fill"] = (time.perf_counter() - began) / size * 1e6
    found["bytes"] = _bytes_in(root) / size
    chance = random.Random(size)
    kept = [number for number in chance.choices(range(size), k=2 * READS) if is_kept(number)][:READS]
    keys = keys_of(peer, kept)
    found["open"] = min(_opened(peer, root, key) for key in keys[:OPENINGS])
    store = peer.open(root)
    try:
        for key, number in zip(keys[:20], kept, strict=False):
            assert store.get(key) == content(number)
        warm = timed(lambda i: store.get(keys[i]), len(keys))
        _forget_pages(root)
        cold = timed(lambda i: store.get(keys[i]), COLD_READS)
        puts = timed(lambda i: store.put(b"new %d\n" % i + content(size + i)), PUTS)
    finally:
        store.close()
    report.times(f"{what}: read", warm)
    report.times(f"{what}: read, pages not in memory", cold)
    report.times(f"{what}: put one", puts)
    command = peer.collect(root)
    found |= _taken_away(command)
    found["bytes left"] = _bytes_in(root) / size
    for name in ("fill", "bytes", "open", "away", "away cpu", "memory", "bytes left"):
        report.figures[f"{what}: {name}"] = round(found[name], 3)
    print(
        f"  {what}: fill {found['fill']:.0f} µs, {found['bytes']:.0f} bytes a blob; open {found['open']:.2f} ms; "
        f"read {median(warm) * 1e3:.0f} µs, p99 {percentile(warm, 0.99) * 1e3:.0f} µs; take half away "
        f"{found['away']:.2f} s ({found['away cpu']:.2f} s of processor time, {found['memory']:.0f} MB), "
        f"{found['bytes left']:.0f} bytes a blob left"
    )
    return found


def _opened(peer: Peer, root: Path, key: str) -> float:
    """Return the time (ms) in which a new process opens the store and reads its first blob, after all imports."""
    imports, opening = peer.opening.split("# open\n")
    code = (
        f"import time\nROOT, KEY = {str(root)!r}, {key!r}\n{imports}\nbegan = time.perf_counter()\n{opening}\n"
        "print((time.perf_counter() - began) * 1e3)\nassert found"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=_environment())
    return float(done.stdout)


def _taken_away(command: list[str]) -> dict[str, float]:
    """Run a command; return its seconds, processor seconds and peak memory in MB."""
    # By a process of its own, because the memory of who starts a command counts as the command's.
    done = subprocess.run(
        [sys.executable, "-c", WAITING, *command], check=True, env=_environment(), stdout=subprocess.PIPE
    )
    seconds, processor, kilobytes = map(float, done.stdout.split()[-3:])
    return {"away": seconds, "away cpu": processor, "memory": kilobytes / 1024}


def _forget_pages(root: Path) -> None:
    """Drop the files from the system's cache."""
    os.sync()
    for path in root.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)


def _bytes_in(root: Path) -> int:
    """Return the size of the files on disk."""
    return sum(path.lstat().st_blocks * 512 for path in root.rglob("*"))


def _environment() -> dict[str, str]:
    # The source is found there, unless it is installed.
    return dict(os.environ) | {"PYTHONPATH": SOURCE}
