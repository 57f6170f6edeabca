"""Power cuts: a real ext4 or btrfs under load loses its power at random moments and is mounted again.

Run as root on Linux: `python -m tests.powercut [--cuts N] [--seed N] [--on FILESYSTEM] [--unsynced] [--keep DIR]`, or
`make powercut`. A writer edits, decides, takes snapshots, lets history go, sweeps and purges, on a file system whose
disk remembers all that it is sent (`block_recorder.py`). A cut leaves what was flushed and any part of the rest: each
later write whole, torn or not at all. The image is mounted, the file system recovers what it can, and the workspace is
opened. Then the journal and the files must be exactly as after one of the writer's calls, none earlier than the last
that was acknowledged before the cut, and fsck must find nothing.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, Any, Final

from objstore import Workspace, check_store
from tests.support.block_recorder import BlockRecorder, mounted_recorder
from tests.support.kill_target import sums

__all__ = ["main"]

HOUSE: Final = Path(__file__).resolve().parents[1]
IMAGE_BYTES: Final = {"ext4": 96 << 20, "btrfs": 128 << 20}
SECTORS: Final = {"ext4": 512, "btrfs": 4096}
"""Bytes that a disk must write completely or not at all: btrfs can't be mounted with a torn superblock."""

CUTS_IN_ONE: Final = 10
"""Power cuts in one run of the writer."""

LOAD_SECONDS: Final = (2.0, 7.0)
"""How long a run lasts; ext4 commits its journal every 5 seconds or, as some are mounted here, every second."""

MEMORY: Final = "/dev/shm"  # noqa: S108 - a folder of a random name is made in it
"""The folder of the images: each is copied for every power cut."""

ROTATIONS: Final = (16 << 20, 50_000)
"""Sizes of full segments: the default, and one that is full after some calls."""

MOUNTS: Final = {"ext4": ("defaults", "commit=1", "data=writeback,commit=1"), "btrfs": ("defaults", "commit=1")}
"""How each file system is mounted under load."""


def main(words: list[str]) -> int:
    """Make a number of power cuts; print the results, and return 1 if anything was lost."""
    parser = argparse.ArgumentParser(description="Cut the power of a file system under load, and look at what is left.")
    parser.add_argument("--cuts", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--on", choices=sorted(MOUNTS), help="a file system (default: each in turn)")
    parser.add_argument("--unsynced", action="store_true", help="leave out the syncs: the losses must show")
    parser.add_argument("--keep", type=Path, help="a folder for the image of each cut after which something was wrong")
    parser.add_argument("--look", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    if asked.look:
        print(json.dumps(_look(asked.look)))
        return 0
    kinds = [kind for kind in sorted(MOUNTS) if asked.on in (kind, None) and shutil.which(f"mkfs.{kind}")]
    for kind in sorted(MOUNTS.keys() - kinds) if asked.on is None else ():
        print(f"mkfs.{kind} is not installed: no power is cut on {kind}", file=sys.stderr)
    if os.geteuid() != 0 or not Path("/dev/fuse").exists() or not kinds:
        print("Power cuts need Linux, root and /dev/fuse: file systems are mounted.", file=sys.stderr)
        return 2
    tally = _Tally()
    began = time.monotonic()
    for session in range((asked.cuts + CUTS_IN_ONE - 1) // CUTS_IN_ONE):
        chance = random.Random(asked.seed * 1000 + session)
        cuts = min(CUTS_IN_ONE, asked.cuts - session * CUTS_IN_ONE)
        kind = kinds[session % len(kinds)]
        with tempfile.TemporaryDirectory(prefix="powercut-", dir=MEMORY) as folder:
            _Session(Path(folder), kind, chance, tally, asked).run(cuts)
        print(f"{tally.line()}, {time.monotonic() - began:.0f} s", flush=True)
    print("POWERCUT " + json.dumps(tally.figures(), sort_keys=True))
    return 1 if tally.faults else 0


class _Tally:
    """The results of all power cuts."""

    def __init__(self) -> None:
        self.cuts = self.acknowledged = self.rolled_forward = self.lost_writes = 0
        self.faults: list[str] = []

    def line(self) -> str:
        """Return the state in words."""
        return (
            f"{self.cuts} cuts, {self.acknowledged} acknowledged calls looked for, "
            f"{self.lost_writes} disk writes lost or torn, {len(self.faults)} faults"
        )

    def figures(self) -> dict[str, int]:
        """Return the counts by name."""
        return {
            "cuts": self.cuts,
            "acknowledged calls": self.acknowledged,
            "calls beyond the acknowledged that were whole": self.rolled_forward,
            "disk writes lost or torn": self.lost_writes,
            "faults": len(self.faults),
        }


class _Session:
    """One run of the writer on a new file system, and the power cuts made in it."""

    def __init__(
        self, folder: Path, kind: str, chance: random.Random, tally: _Tally, asked: argparse.Namespace
    ) -> None:
        self._folder = folder
        self._kind = kind
        self._chance = chance
        self._tally = tally
        self._options = chance.choice(MOUNTS[kind])
        # Freeing space writes and syncs whole new files, which an unsynced run must not do.
        self._words = ["--rotate", str(chance.choice(ROTATIONS))]
        self._words += ["--unsynced"] if asked.unsynced else ["--keeps", "--lets-go"]
        self._keep: Path | None = asked.keep  # None: images are not kept
        self._acknowledged_calls: list[dict[str, Any]] = []
        self._requests_at_call: list[int] = []  # how many requests the disk had got when each call was acknowledged
        self._base = folder / "base.img"
        self._mountpoint = folder / "mounted"
        self._mountpoint.mkdir()

    def run(self, cuts: int) -> None:
        """Run the writer, cut the power a number of times, and check what each cut left."""
        with self._base.open("wb") as empty:
            empty.truncate(IMAGE_BYTES[self._kind])
        force = {"ext4": "-F", "btrfs": "-f"}[self._kind]
        subprocess.run([f"mkfs.{self._kind}", "-q", force, self._base], check=True, stderr=subprocess.DEVNULL)
        with _mounted_image(self._base, self._mountpoint, "defaults"):
            (self._mountpoint / "work").mkdir()
            Workspace.init(self._mountpoint / "work").close()
        disk = self._folder / "disk"
        disk.touch()
        with mounted_recorder(self._base, disk) as recorder:
            base = bytearray(recorder.content)
            with _mounted_image(disk, self._mountpoint, self._options):
                begun, ended = self._loaded(recorder)
            # Every place between two writes of the disk is a moment at which the power may have failed.
            certain = 0
            for cut in sorted(self._chance.randrange(begun, ended) for _ in range(cuts)):
                image, certain, lost = recorder.left_by(base, certain, cut, self._chance, SECTORS[self._kind])
                self._tally.lost_writes += lost
                self._check(image, sum(requests <= cut for requests in self._requests_at_call))

    def _loaded(self, recorder: BlockRecorder) -> tuple[int, int]:
        """Let the writer work; return how much the disk was sent before it and, some calls before its end, with it."""
        seed = self._chance.randrange(10**6)
        command = [
            sys.executable,
            "-m",
            "tests.support.kill_target",
            str(self._mountpoint / "work"),
            str(seed),
            *self._words,
        ]
        begun = recorder.cut()
        with subprocess.Popen(command, cwd=HOUSE, stdout=subprocess.PIPE) as writer:
            if writer.stdout is None:
                raise AssertionError("no pipe")
            reader = Thread(target=self._listen, args=(writer.stdout, recorder))
            reader.start()
            time.sleep(self._chance.uniform(*LOAD_SECONDS))
            # Without syncs, the system may keep all of it to itself for longer.
            while recorder.cut() == begun and writer.poll() is None:
                time.sleep(0.01)
            ended = recorder.cut()
            # The call at the last cut has to be acknowledged too.
            acknowledged_count = len(self._acknowledged_calls)
            while len(self._acknowledged_calls) < acknowledged_count + 50 and writer.poll() is None:
                time.sleep(0.01)
            writer.send_signal(signal.SIGKILL)
            reader.join()
        if writer.returncode != -signal.SIGKILL:
            raise AssertionError("the writer has ended by itself")
        return begun, ended

    def _listen(self, output: IO[bytes], recorder: BlockRecorder) -> None:
        for line in output:
            if line.endswith(b"\n"):
                # Everything read so far was acknowledged before this number of requests.
                self._requests_at_call.append(recorder.cut())
                self._acknowledged_calls.append(json.loads(line))

    def _check(self, image: bytearray, acknowledged: int) -> None:
        left = self._folder / "left.img"
        left.write_bytes(image)
        with _mounted_image(left, self._mountpoint, "defaults"):
            found = _looked_at(self._mountpoint / "work")
        self._tally.cuts += 1
        self._tally.acknowledged += acknowledged
        fault, beyond = self._judged(found, acknowledged)
        self._tally.rolled_forward += beyond
        if fault:
            self._tally.faults.append(fault)
            if self._keep is not None:
                (self._keep / f"cut-{self._tally.cuts}.img").write_bytes(image)
            how = f"{self._kind}, {self._options}; {' '.join(self._words)}"
            print(f"  cut {self._tally.cuts} ({how}): {fault}", flush=True)

    def _judged(self, found: dict[str, Any], acknowledged: int) -> tuple[str, int]:
        """Return the fault ("": none), and how many calls beyond the acknowledged ones are recorded."""
        if "error" in found:
            return f"the store does not open: {found['error']}", 0
        edits: set[int] = set()
        decisions = 0
        calls = [{"edits": [], "decision": 0, "snapshots": [], "files": {}}, *self._acknowledged_calls]
        fitting = None
        for at, call in enumerate(calls):
            edits.update(call["edits"])
            decisions += bool(call["decision"])
            recorded = len(edits), decisions, call["snapshots"]
            if recorded == (len(found["edits"]), found["decisions"], found["snapshots"]) and edits == set(
                found["edits"]
            ):
                fitting = at
        if fitting is None:
            counts = f"{len(found['edits'])} edits, {found['decisions']} decisions, snapshots {found['snapshots']}"
            return f"{counts}: no call had left that", 0
        if fitting < acknowledged:
            return f"{acknowledged} calls were acknowledged, and {fitting} are there", 0
        if found["files"] != calls[fitting]["files"]:
            differing = _difference(found["files"], calls[fitting]["files"])
            return f"the files are not those of call {fitting}: {differing}", 0
        if found["external"] or found["faults"]:
            return f"status: {found['external']}; fsck: {found['faults']}", 0
        return "", fitting - acknowledged


def _difference(found: dict[str, str], expected: dict[str, str]) -> str:
    return str({name: (found.get(name), expected.get(name)) for name, _ in found.items() ^ expected.items()})


@contextmanager
def _mounted_image(image: Path, mountpoint: Path, options: str) -> Iterator[None]:
    """Mount an image through a loop device."""
    command = ["losetup", "--find", "--show", str(image)]
    device = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    try:
        subprocess.run(["mount", "-o", options, device, mountpoint], check=True)
        try:
            yield
        finally:
            subprocess.run(["umount", mountpoint], check=True)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def _looked_at(root: Path) -> dict[str, Any]:
    """Return what a new process finds."""
    command = [sys.executable, "-m", "tests.powercut", "--look", str(root)]
    done = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().rpartition("\n")[2]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _look(root: Path) -> dict[str, Any]:
    """Open the workspace and return what is there; every state is read and verified."""
    with closing(Workspace.open(root)) as workspace:
        edits = workspace.history.edits()
        for view in edits:
            for state in (view.edit.before, view.edit.after):
                if state is not None and view.expired is None:
                    workspace.history.blob(state.blob)
        found = {
            "edits": [view.seq for view in edits],
            "decisions": len(workspace.history.decisions()),
            "snapshots": [view.number for view in workspace.snapshots.all()],
            "files": sums(root),
            "external": [change.path for change in workspace.review.status().external],
        }
    return found | {"faults": [fault.what for fault in check_store(str(root)).faults]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
