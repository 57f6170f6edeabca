"""Flip one bit of the index: `cas fsck` reports it or no answer changes, and no record is wrong.

`make test` takes a sample, `CAS_CRASH_STEPS=1` (`make crash`) 1,330 bits, and `CAS_INDEX_FLIPS=all` every bit that
SQLite uses.
"""

import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from objstore import Action, CallInfo, CasError, EditFilter, Status, Unit, Workspace, check_store
from objstore.model.basic_types import Seq
from objstore.storage.index import database
from objstore.worktree import dirty_files
from tests.golden.make_stores import stored_contents
from tests.support.crash_scenarios import Files, change, files, rejected, write
from tests.support.faulty_disk import WHOLE, UnsyncedDisk

SAMPLE: Final = 1_330 if WHOLE else 8
FLIPS: Final = os.environ.get("CAS_INDEX_FLIPS", "")
"""How many bits are flipped, if not the SAMPLE: a number, or `all`."""

SHARES: Final = 16 if WHOLE else 2
"""Tests that the bits are shared out to, so that they can run side by side."""

PAGE: Final = database.PAGE
HEADER: Final = 100
"""Bytes with which the file begins, before its first page."""

INDEX: Final = Path(".cas", "index.sqlite")
AGENT: Final = CallInfo(tool="t", conversation="other")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with edits of every status, and files that were moved, deleted, or never edited."""
    root = tmp_path_factory.mktemp("whole")
    (root / "d").mkdir()
    for name in ("kept.txt", "d/kept.txt", "goes.txt"):
        (root / name).write_bytes(name.encode() + b"\n")
    patch = pytest.MonkeyPatch()
    patch.setattr(dirty_files, "_GRACE_NS", 0)  # so that what a status has seen is kept
    with Workspace.init(root, UnsyncedDisk()) as workspace:
        workspace.record_changes(AGENT)  # the first look
        for at in range(3):
            write(workspace, "a.txt", b"line %d\nx\n" % at)
            write(workspace, "d/e/b.txt", b"b %d\n" % at)
        change(workspace, ("old.txt", b"moved\n"), ("gone.txt", b"gone\n"), ("d/c.txt", b"c\n"))
        with workspace.call(AGENT) as call:
            call.move("old.txt", "new/moved.txt")
            call.delete("gone.txt")
            call.move("goes.txt", "went.txt")
            call.commit()
        (root / "kept.txt").write_bytes(b"changed\n")
        workspace.record_changes(AGENT)
        workspace.decide(Action.ACCEPT, [Unit(Seq(1), 0)])
        rejected(workspace, 6)
        workspace.retention.pin([Seq(2)], who="somebody")
        workspace.snapshots.take(who="somebody")
        workspace.review.status()
    patch.undo()
    with closing(sqlite3.connect(root / INDEX)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return root


def flips(index: bytes) -> list[tuple[int, int]]:
    """Return the bits to flip, as byte and bit: of every page, and mostly of what SQLite uses of it."""
    used: list[int] = []
    free: list[int] = []
    for start in range(0, len(index), PAGE):
        head = start + (HEADER if start == 0 else 0)
        kind, cells, content = index[head], *(int.from_bytes(index[head + i : head + i + 2], "big") for i in (3, 5))
        pointers = head + (12 if kind in {2, 5} else 8) + 2 * cells
        used += [*range(start, pointers), *range(start + content, start + PAGE)]
        free += range(pointers, start + content)
    chance = random.Random("flips")
    if FLIPS == "all":
        chosen = [(at, bit) for at in used for bit in range(8)] + [(at, chance.randrange(8)) for at in free[::64]]
    else:
        count = int(FLIPS or SAMPLE)
        places = chance.choices(used, k=count - count // 16) + chance.choices(free, k=count // 16)
        chosen = [(at, chance.randrange(8)) for at in places]
    chance.shuffle(chosen)
    return chosen


def put(root: Path, index: bytes | None) -> None:
    """Give a workspace these bytes for an index (None: have it rebuilt), without SQLite's other files."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{root / INDEX}{suffix}").unlink(missing_ok=True)
    if index is not None:
        (root / INDEX).write_bytes(index)


def flipped(index: bytes, at: int, bit: int) -> bytes:
    """Return the index with one bit flipped."""
    return index[:at] + bytes([index[at] ^ 1 << bit]) + index[at + 1 :]


def answers(root: Path) -> dict[str, Any] | None:
    """Return what commands say of a workspace (None: that the index is damaged)."""
    try:
        with Workspace.open(root, UnsyncedDisk()) as workspace:
            found = stored_contents(workspace)
            found["lists"] = [
                [view.edit.seq for view in workspace.history.edits(wanted)]
                for wanted in (
                    EditFilter(status=Status.PENDING),
                    EditFilter(status=Status.REJECTED),
                    EditFilter(conversation="scene"),
                    EditFilter(conversation="other"),
                    EditFilter(path="a.txt"),
                    EditFilter(path="old.txt"),
                )
            ]
            found["status"] = workspace.review.status()
            found["changes"] = workspace.review.external_changes()
            found["blame"] = workspace.history.blame("a.txt")
            found["at"] = workspace.history.files_at(5)
            return found
    except CasError:
        return None


def delete(workspace: Workspace, path: str) -> None:
    with workspace.call(AGENT) as call:
        call.delete(path)
        call.commit()


def record_all(workspace: Workspace) -> None:
    """Change files behind the store's back, and have that recorded."""
    root = Path(workspace.files.tree.root)
    for name in ("d/kept.txt", "went.txt"):
        (root / name).unlink(missing_ok=True)
    (root / "d" / "c.txt").write_bytes(b"otherwise\n")
    (root / "d" / "new.txt").write_bytes(b"new\n")
    (root / "gone.txt").write_bytes(b"back again\n")
    workspace.record_changes(AGENT)


CALLS: Final = (
    lambda workspace: write(workspace, "a.txt", b"line 0\nx\n"),
    lambda workspace: write(workspace, "d/e/b.txt", b"b 7\n"),
    lambda workspace: write(workspace, "old.txt", b"moved\n"),
    lambda workspace: delete(workspace, "kept.txt"),
    lambda workspace: write(workspace, "new/moved.txt", b"moved on\n"),
    record_all,
    lambda workspace: write(workspace, "kept.txt", b"kept.txt\n"),
    lambda workspace: write(workspace, "a.txt", b"line 0\nx\nand on\n"),
    lambda workspace: workspace.decide(Action.REJECT, [Unit(Seq(3), 1)], cascade=True),
    lambda workspace: workspace.decide(Action.ACCEPT, [Unit(Seq(4), 1)]),
    lambda workspace: workspace.review.undo(),
    lambda workspace: workspace.retention.pin([Seq(7)], who="somebody"),
    lambda workspace: workspace.snapshots.take(who="somebody"),
)
"""What each workspace is asked to record."""


def recorded(root: Path, again: Path) -> tuple[list[Any], Files, list[str]]:
    """Return what the CALLS record in a copy of a workspace, what its files are then, and what fsck says of the log."""
    shutil.copytree(root, again, symlinks=True)
    refusals = 0
    for act in CALLS:
        while True:
            try:
                with Workspace.open(again, UnsyncedDisk()) as workspace:
                    act(workspace)
            except CasError:
                refusals += 1
                assert refusals < len(CALLS)
            else:
                break
    put(again, None)
    faults = [fault.what for fault in check_store(str(again)).faults]
    with Workspace.open(again, UnsyncedDisk()) as workspace:
        records = [_timeless(view.record) for view in workspace.history.records()]
    found = records, files(again), faults
    shutil.rmtree(again)
    return found


def _timeless(record: object) -> object:
    return {name: getattr(record, name) for name in record.__slots__ if name != "time"}  # type: ignore[attr-defined]  # records have slots


@pytest.mark.parametrize("share", range(SHARES))
def test_a_flipped_bit_of_the_index_is_reported_or_harmless_and_enters_no_record(
    whole: Path, share: int, tmp_path: Path
) -> None:
    index = (whole / INDEX).read_bytes()
    expected, expected_log = answers(whole), recorded(whole, tmp_path / "copy")
    assert expected is not None
    assert expected_log[2] == []
    for at, bit in flips(index)[share::SHARES]:
        where = f"byte {at % PAGE} of page {at // PAGE + 1}, bit {bit}"
        spoilt = flipped(index, at, bit)
        put(whole, spoilt)
        assert recorded(whole, tmp_path / "copy") == expected_log, where
        found = answers(whole)
        put(whole, spoilt)
        if found != expected:
            assert check_store(str(whole)).faults, where
        put(whole, index)
