"""Test that purged and expired text is in no derived file, even after a crash."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from zstandard import ZstdDecompressor

from objstore import (
    Action,
    BlobMissing,
    CallAborted,
    CallInfo,
    DiskFailed,
    PurgePlan,
    PurgeUnfinished,
    RetentionLimits,
    StoreLocked,
    Unit,
    Workspace,
    blob_id,
    check_store,
)
from objstore.disk.fs.disk import Disk
from objstore.disk.fs.writer_lock import WriterLock
from objstore.history.documents import loader
from objstore.model.ids import BlobId
from objstore.model.tree import names_of
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.integrity.segment_scan import SegmentScan
from objstore.upkeep.retention import purge
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import CountdownDisk, PowerCut, broken_disk

SECRET: Final = b"the secret\n"
OTHER: Final = b"no secret\n"
HEADER: Final = 8 + 32
"""Bytes before the packed part of a kept weave."""


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """Return a workspace whose only file once contained the secret, with its weave cached."""
    root = tmp_path / "start"
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"one\n")
        write(workspace, "a.txt", SECRET)
        for i in range(70):
            write(workspace, "a.txt", b"%d\n" % i)
        units = [Unit(view.seq, hunk) for view in workspace.history.edits() for hunk in range(len(view.units))]
        workspace.decide(Action.ACCEPT, units)
        workspace.history.cache_documents()
    assert holds_secret(root)
    return root


def holds_secret(root: Path) -> bool:
    kept = (root / ".cas" / "cache").glob("weave-*")
    return any(SECRET in ZstdDecompressor().decompress(path.read_bytes()[HEADER:]) for path in kept)


def test_a_purge_that_was_killed_leaves_no_text_behind(start: Path, tmp_path: Path) -> None:
    states = set()
    for step in range(8):
        root = tmp_path / str(step)
        shutil.copytree(start, root)
        disk = CountdownDisk(step)
        with Workspace.open(root, disk) as workspace, pytest.raises(PowerCut):
            workspace.retention.purge([blob_id(SECRET)])
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            has_expired = workspace.history.edit(2).expired is not None
        assert not (has_expired and holds_secret(root)), f"after {disk.done}: {disk.failed}"
        states.add(has_expired)
    assert states == {False, True}


def weave(root: Path) -> Path:
    return root / ".cas" / "cache" / "weave-1"


def test_expired_text_is_in_no_cached_weave(start: Path) -> None:
    with Workspace.open(start, CountdownDisk(None)) as workspace:
        workspace.retention.collect(RetentionLimits(older_than=0, max_size=None), thorough=True)
        assert workspace.history.edit(2).expired is not None
    assert not weave(start).exists()


def test_a_purge_deletes_cached_weaves_without_edits(start: Path) -> None:
    kept = weave(start).read_bytes()
    with Workspace.open(start, CountdownDisk(None)) as workspace:
        workspace.retention.collect(RetentionLimits(older_than=0, max_size=None), thorough=True)
        weave(start).write_bytes(kept)  # as of a version that let history go and left it there
        assert holds_secret(start)
        workspace.retention.purge([blob_id(SECRET)])
    assert not holds_secret(start)


@pytest.mark.parametrize("last", [2, 72], ids=["in part", "whole"])
def test_a_process_that_has_replayed_a_file_caches_no_purged_text(
    start: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    weave(start).unlink()
    with Workspace.open(start) as workspace, Workspace.open(start) as other, monkeypatch.context() as patch:

        def purge_in_another_process(*replayed: Any) -> None:  # noqa: ANN401 - what is called in its place says it
            checked(*replayed)
            patch.undo()
            other.retention.purge(secrets)

        secrets = [blob_id(SECRET), blob_id(b"%d\n" % (last - 4))]
        checked = loader._check  # noqa: SLF001 - between the replay and what is kept of it
        patch.setattr(loader, "_check", purge_in_another_process)
        workspace.history.blame("a.txt")
        assert workspace.history.edit(2).expired is not None
        assert not holds_secret(start)


def test_a_weave_is_cached_once_no_other_process_writes(start: Path) -> None:
    weave(start).unlink()
    with Workspace.open(start) as workspace:
        with closing(WriterLock(str(start / ".cas" / "lock"))) as lock, lock.held():
            workspace.history.blame("a.txt")
            assert not weave(start).exists()
        workspace.history.blame("a.txt")
        assert weave(start).exists()


def test_unfinished_purge_is_reported_and_can_be_finished_later(start: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Workspace.open(start) as workspace, Workspace.open(start) as other:
        assert other.history.blob(blob_id(SECRET)) == SECRET
        with monkeypatch.context() as patch:
            patch.setattr(purge, "_TRIES", 0)
            with pytest.raises(PurgeUnfinished, match="again"):
                workspace.retention.purge([blob_id(SECRET)])
        assert workspace.history.blob(blob_id(SECRET)) == SECRET
        workspace.retention.purge([blob_id(SECRET)])
        for asked in (workspace, other):  # neither has it at hand any more
            with pytest.raises(BlobMissing):
                asked.history.blob(blob_id(SECRET))


def test_purged_blobs_stay_removed(start: Path) -> None:
    disk = CountdownDisk(None)
    with Workspace.open(start, disk) as workspace:
        workspace.retention.purge([blob_id(SECRET)])
    removals = [at for at, operation in enumerate(disk.done) if operation == "remove_store_file"]
    assert removals
    assert "sync_directory" in disk.done[removals[-1] :]


def test_a_purge_removes_a_blob_that_is_missing_from_the_index(start: Path) -> None:
    with Workspace.open(start, CountdownDisk(None)) as workspace:
        with closing(sqlite3.connect(start / ".cas" / "index.sqlite")) as db, db:
            assert db.execute("DELETE FROM blobs WHERE id = ?", (blob_id(SECRET),)).rowcount == 1
        workspace.retention.purge([blob_id(SECRET)])
    with SegmentScan(str(start / ".cas" / "segments")) as remains:
        assert blob_id(SECRET) not in remains.blobs
    assert check_store(str(start)).faults == ()


def is_stored(root: Path, content: bytes) -> bool:
    """Return whether the log has a blob of these bytes."""
    with SegmentScan(str(root / ".cas" / "segments")) as remains:
        return blob_id(content) in remains.blobs


def purged(root: Path, path: str) -> PurgePlan:
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        return workspace.retention.purge(workspace.retention.plan_purge(path=path).blobs, force=True)


def void_call(root: Path, path: str, content: bytes) -> None:
    """Make a call that is voided, because a file of it can't be changed."""
    for step in count():
        with Workspace.open(root, CountdownDisk(step, broken_disk, lasting=False)) as workspace:
            try:
                write(workspace, path, content)
            except CallAborted:
                return
            except DiskFailed:
                continue  # before anything was recorded


@pytest.mark.parametrize("path", ["a.txt", "new.txt"])
def test_a_purge_of_a_path_removes_blobs_of_a_voided_call(root: Path, path: str) -> None:
    void_call(root, path, SECRET)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        assert [view.seq for view in workspace.history.edits()] == [1]
    assert is_stored(root, SECRET)
    assert purged(root, path).blobs == (blob_id(SECRET),)
    assert not is_stored(root, SECRET)
    assert check_store(str(root)).faults == ()


def test_a_purge_of_a_path_removes_states_that_only_snapshots_hold(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        (root / "a.txt").write_bytes(SECRET)
        (root / "folder").mkdir()
        (root / "folder" / "b.txt").write_bytes(OTHER)
        workspace.snapshots.take(who="x")
        workspace.snapshots.take("folder", who="x")
        (root / "a.txt").write_bytes(b"one\n")
        (root / "folder" / "b.txt").unlink()
    assert purged(root, "a.txt").snapshots == (1,)
    assert not is_stored(root, SECRET)
    assert is_stored(root, OTHER)
    plan = purged(root, "folder/b.txt")
    assert (plan.snapshots, plan.renewed) == ((2, 3), (4, 5))  # snapshot 3 took the place of the first
    assert not is_stored(root, OTHER)
    assert check_store(str(root)).faults == ()


def test_a_purge_of_a_path_finds_the_files_earlier_paths_in_snapshots(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        (root / "a.txt").write_bytes(SECRET)
        workspace.snapshots.take(who="x")
        (root / "a.txt").write_bytes(b"one\n")
        with workspace.call(CallInfo(tool="t")) as call:
            call.move("a.txt", "b.txt")
            call.commit()
        (root / "a.txt").write_bytes(OTHER)  # another file
        workspace.snapshots.take(who="x")
        (root / "a.txt").unlink()
    assert set(purged(root, "b.txt").blobs) == {blob_id(SECRET)}
    assert (is_stored(root, SECRET), is_stored(root, OTHER)) == (False, True)


def test_the_unrecorded_present_state_of_a_file_is_no_past_state(root: Path) -> None:
    (root / "b.txt").write_bytes(OTHER)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        workspace.snapshots.take(who="x")
        assert workspace.retention.plan_purge(path="b.txt").blobs == ()
        (root / "b.txt").write_bytes(b"changed\n")
        assert workspace.retention.plan_purge(path="b.txt").blobs == (blob_id(OTHER),)


def test_a_purge_of_a_path_removes_expired_states_that_are_not_compacted_yet(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        (root / "a.txt").write_bytes(SECRET)
        workspace.snapshots.delete([workspace.snapshots.take(who="x").view.number], who="x")
        (root / "a.txt").write_bytes(b"one\n")
    assert purged(root, "a.txt").blobs == (blob_id(SECRET),)
    assert not is_stored(root, SECRET)


# ---- while other processes write


class HeldUp(CountdownDisk):
    """A disk on which another process begins a compaction after this process recorded an expiry."""

    def __init__(self, compacting: ExitStack, other: Journal) -> None:
        super().__init__(None)
        self._compacting = compacting
        self._other = other

    def append(self, fd: int, content: bytes, name: str) -> None:
        super().append(fd, content, name)
        self._compacting.enter_context(self._other.compacting())


def test_nothing_is_purged_while_a_compaction_is_running(start: Path) -> None:
    with Workspace.open(start) as workspace, closing(Journal(str(start), Disk())) as other:
        with other.compacting(), pytest.raises(StoreLocked, match="compacting"):
            workspace.retention.purge([blob_id(SECRET)])
        assert workspace.history.edit(2).expired is None
        workspace.retention.purge([blob_id(SECRET)])
        assert workspace.history.edit(2).expired is not None


def test_a_purge_during_which_a_compaction_begins_says_what_is_left_to_do(start: Path) -> None:
    with ExitStack() as compacting, closing(Journal(str(start), Disk())) as other:
        with Workspace.open(start, HeldUp(compacting, other)) as workspace, pytest.raises(PurgeUnfinished):
            workspace.retention.purge([blob_id(SECRET)])
        compacting.close()
        with Workspace.open(start) as workspace:
            assert workspace.history.edit(2).expired is not None
            workspace.retention.purge([blob_id(SECRET)])
            with pytest.raises(BlobMissing):
                workspace.history.blob(blob_id(SECRET))


def trees_read(root: Path, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return of each tree that is read in what `act` does whether the writer lock was held then."""
    found: list[bool] = []

    def names(encoded: bytes) -> list[tuple[BlobId, bool]]:
        with closing(WriterLock(str(root / ".cas" / "lock"))) as lock:
            found.append(not lock.acquire_now())
        return names_of(encoded)

    with monkeypatch.context() as patch:
        patch.setattr(purge, "names_of", names)
        act()
    return found


def test_a_purge_reads_each_tree_once_and_none_under_the_lock(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in "abc":
        (root / folder).mkdir()
        (root / folder / "file").write_bytes(folder.encode())
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        write(workspace, "secret", SECRET)
        for i in range(10):
            (root / "a" / "file").write_bytes(b"%d" % i)
            workspace.snapshots.take(who="me")
        write(workspace, "secret", OTHER)
        read = trees_read(root, lambda: workspace.retention.purge([blob_id(SECRET)], force=True), monkeypatch)
        assert len(read) == 2 * 10 + len("bc")
        assert not any(read)
        assert [view.number for view in workspace.snapshots.all()] == [*range(11, 21)]
        for view in workspace.snapshots.all():
            held = dict(workspace.snapshots.files(view.number))
            assert (held.pop("secret").kind, {state.kind for state in held.values()}) == ("left-out", {"file"})


def test_several_paths_are_looked_up_at_once_as_each_alone(root: Path) -> None:
    void_call(root, "new.txt", SECRET)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", OTHER)
        write(workspace, "folder/b.txt", b"first\n")
        (root / "c.txt").write_bytes(b"kept\n")
        workspace.snapshots.take(who="x")
        retention = workspace.retention
        paths = ["a.txt", "new.txt", "folder", "c.txt", "never.txt"]
        alone = [set(retention.plan_purge(paths=[path]).blobs) for path in paths]
        assert [*map(set, retention.stored_blobs(paths))] == alone
        assert [bool(found) for found in alone] == [True, True, True, True, False]
        past = [set(retention.plan_purge(path=path).blobs) for path in paths]
        assert [*map(set, retention.stored_blobs(paths, past=True))] == past
        assert past[:2] == [{blob_id(b"one\n")}, {blob_id(SECRET)}]
