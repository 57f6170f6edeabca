"""A file of 500 MB stored, read back, changed and restored, against a plain copy with fsync and `git add`."""

import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from objstore import CallInfo, FileState, Workspace
from tests.bench.measure import Report

__all__ = ["bench_large"]

MEGABYTES: Final = int(os.environ.get("CAS_BENCH_LARGE_MB", "500"))
PIECE: Final = 1 << 20


def bench_large(report: Report) -> None:
    """Half of the file is noise and half is text; the change inserts a line in the middle."""
    # In this file's folder, not in /tmp: that may be a memory file system, where a sync costs nothing.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
        base = Path(folder)
        tracked, shadow = base / "tracked", base / "shadow"
        for where in (tracked, shadow):
            where.mkdir()
        _make(tracked / "big")
        shutil.copyfile(tracked / "big", shadow / "big")
        git = ["git", "-C", str(shadow)]
        subprocess.run([*git, "init", "-q"], check=True)

        def plain_copy() -> None:
            with (shadow / "big").open("rb") as source, (base / "copy").open("wb") as copy:
                shutil.copyfileobj(source, copy, PIECE)
                copy.flush()
                os.fsync(copy.fileno())
            (base / "copy").unlink()

        def git_add() -> None:
            subprocess.run([*git, "-c", "core.fsync=all", "add", "big"], check=True)

        def store_file() -> None:
            # The move itself is a rename: what takes time is that the file was never recorded.
            with workspace.call(CallInfo(tool="bench", conversation="bench")) as call:
                call.move("big", "moved")
                call.commit()

        def changed() -> None:
            with workspace.call(CallInfo(tool="bench", conversation="bench")) as call:
                call.delete("moved")
                call.commit()

        with Workspace.init(tracked) as workspace:
            copied = _timed(report, "plain copy with fsync", plain_copy)
            first = _timed(report, "take in and move", store_file)
            added = _timed(report, "git add", git_add)
            report.ratio("take in / plain copy", first / copied, "-")
            report.ratio("take in / git add", first / added, "<= 1")
            state = workspace.history.edits()[0].edit.after
            assert state is not None
            blob = state.blob
            read = _timed(report, "read and verify", lambda: [None for _ in workspace.history.pieces(blob)])
            shown = _timed(report, "git cat-file", lambda: _discarded([*git, "cat-file", "blob", ":big"]))
            report.ratio("read / git cat-file", read / shown, "<= 1")
            before = _stored(workspace)
            for name in (tracked / "moved", shadow / "big"):
                _insert(name)
            again = _timed(report, "take in a line put into its middle, and delete", changed)
            report.figures["bytes of the second version"] = _stored(workspace) - before
            print(f"  bytes of the second version: {_stored(workspace) - before}")
            report.ratio("second version / git add", again / _timed(report, "git add again", git_add), "<= 1")
            _timed(report, "restore", lambda: _restored(workspace, state))


def _restored(workspace: Workspace, state: FileState) -> None:
    with workspace.call(CallInfo(tool="bench", conversation="bench")) as call:
        call.restore("restored", state)
        call.commit()


def _timed(report: Report, what: str, act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    took = (time.perf_counter() - began) * 1e3
    report.times(what, [took])
    return took


def _stored(workspace: Workspace) -> int:
    return sum(segment.size for segment in workspace.history.segments())


def _discarded(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _make(path: Path) -> None:
    noise = random.Random(1)
    line = b"%d: a line of text that compresses as text does, %d\n"
    with path.open("wb") as file:
        for number in range(MEGABYTES):
            if number % 2:
                file.write(noise.randbytes(PIECE))
            else:
                lines = b"".join(line % (i, noise.getrandbits(30)) for i in range(PIECE // 60))
                file.write(lines[:PIECE].ljust(PIECE, b"\n"))


def _insert(path: Path) -> None:
    middle = MEGABYTES * PIECE // 2
    with path.open("r+b") as file:
        file.seek(middle)
        rest = file.read()
        file.seek(middle)
        file.write(b"one more line\n" + rest)
