"""Test failed syncs: no one relies on bytes that may not be durable, and all can continue once the disk works."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from objstore import (
    Action,
    CallInfo,
    DiskFailed,
    RetentionLimits,
    Status,
    StoreRefuses,
    Unacknowledged,
    Unit,
    Workspace,
    blob_id,
    check_store,
)
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.retention.compaction import CompactionPlan, compact, plan_compaction
from objstore.upkeep.retention.expiry import ExpiryPlan, expire, plan_expiry
from tests.support.crash_scenarios import change, files, rejected, write
from tests.support.faulty_disk import CountdownDisk, PowerCut, broken_disk
from tests.support.index_tables import rebuilt_tables, tables

BEFORE: Final = {"a.txt": (b"one\n", 0o644)}
AFTER: Final = {"a.txt": (b"two\n", 0o644)}


class DiskReadBeforeSync(CountdownDisk):
    """Fails at one sync, after another process has read what was to be synced."""

    def __init__(self, look: Callable[[], object]) -> None:
        super().__init__(None)
        self._look = look
        self.has_conflict = False

    def sync(self, fd: int, name: str) -> None:
        if self.has_conflict:
            self.has_conflict = False
            self._look()
            raise DiskFailed(name, "Input/output error")
        super().sync(fd, name)


def blobs(workspace: Workspace) -> list[bytes]:
    return [
        workspace.history.blob(view.edit.after.blob)
        for view in workspace.history.edits()
        if view.edit.after is not None
    ]


def assert_sound(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        assert workspace.review.status().external == ()
    assert check_store(str(root)).faults == ()
    assert tables(root / ".cas" / "index.sqlite") == rebuilt_tables(root / ".cas")


def test_call_with_a_failed_sync_is_not_recorded(root: Path) -> None:
    synced = CountdownDisk(None)
    with Workspace.open(root, synced) as workspace:
        write(workspace, "b.txt", b"b\n")
    disk = CountdownDisk(synced.done.index("sync"), broken_disk, lasting=False)
    with Workspace.open(root, disk) as workspace:
        with pytest.raises(DiskFailed):
            write(workspace, "a.txt", b"two\n")
        assert len(workspace.history.edits()) == 2
        assert files(root)["a.txt"] == BEFORE["a.txt"]
        with pytest.raises(StoreRefuses):
            write(workspace, "a.txt", b"two\n")
        workspace.reopen()
        write(workspace, "a.txt", b"two\n")
        assert files(root)["a.txt"] == AFTER["a.txt"]
    assert_sound(root)


class OperationRecorder(CountdownDisk):
    """Reports its operations, and fails at one sync."""

    def __init__(self) -> None:
        super().__init__(None)
        self.asked: list[str] = []
        self.has_conflict = False

    def truncate(self, fd: int, size: int, name: str) -> None:
        self.asked.append(f"truncate to {size}")
        super().truncate(fd, size, name)

    def sync(self, fd: int, name: str) -> None:
        self.asked.append("sync")
        if self.has_conflict:
            self.has_conflict = False
            raise DiskFailed(name, "Input/output error")
        super().sync(fd, name)


def test_truncation_of_an_unsynced_group_is_synced(root: Path) -> None:
    size = (root / ".cas" / "segments" / "00000001.seg").stat().st_size
    disk = OperationRecorder()
    with Workspace.open(root, disk) as workspace:
        disk.has_conflict = True
        with pytest.raises(DiskFailed):
            write(workspace, "a.txt", b"two\n")
    assert disk.asked == ["sync", f"truncate to {size}", "sync"]


def test_name_of_a_segment_created_by_a_dead_writer_is_synced_before_a_group(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        journal.seal()
    disk = CountdownDisk(None)
    with Workspace.open(root, disk) as workspace:
        write(workspace, "a.txt", b"two\n")
        write(workspace, "a.txt", b"three\n")
    log = [operation for operation in disk.done if operation in {"sync_directory", "append", "sync"}]
    assert log == ["sync_directory", "append", "sync", "append", "sync"]


class DiskBrokenFromOperation(CountdownDisk):
    """A disk on which, from one operation on, some operations fail until it is repaired."""

    def __init__(self, first: str, *others: str) -> None:
        super().__init__(None)
        self._first = first
        self._others = others
        self.is_mended = False
        self.is_broken = False

    def _step(self, operation: str, name: str, tear: Callable[[float], None] | None = None) -> None:
        self.is_broken |= operation == self._first
        if self.is_broken and not self.is_mended and operation in (self._first, *self._others):
            raise DiskFailed(name, "Input/output error")
        super()._step(operation, name, tear)


def test_a_call_that_can_be_neither_applied_nor_rolled_back_is_reported_as_recorded_and_is_applied_later(
    root: Path,
) -> None:
    disk = DiskBrokenFromOperation("exchange", "append")
    with Workspace.open(root, disk) as workspace, pytest.raises(Unacknowledged) as raised:
        write(workspace, "a.txt", b"two\n")
    said = str(raised.value)
    assert said.startswith("The change is recorded, and will be made when the store is opened again: ")
    assert "a.txt could not be replaced" in said
    assert "the rollback could not be recorded" in said
    assert "as it was before" not in said
    assert files(root)["a.txt"] == BEFORE["a.txt"]
    Workspace.open(root, CountdownDisk(None)).close()
    assert files(root)["a.txt"] == AFTER["a.txt"]
    assert_sound(root)


def test_the_next_process_to_open_the_store_completes_an_open_call(root: Path) -> None:
    disk, counts = DiskBrokenFromOperation("sync", "truncate"), []
    with Workspace.open(root, disk) as workspace:
        for content in (b"2\n", b"3\n", b"two\n"):
            disk.is_broken = disk.is_mended = False
            with pytest.raises(Unacknowledged, match="may or may not be saved"):
                write(workspace, "a.txt", content)
            disk.is_mended = True
            workspace.reopen()
            assert files(root)["a.txt"][0] == content
            counts.append(len(list(Path("/dev/fd").iterdir())))
    assert counts[1] == counts[2]  # what refused to write was closed
    assert_sound(root)


def test_the_applied_marker_is_never_set_to_a_group_that_may_not_be_durable(root: Path) -> None:
    disk = CountdownDisk(None)
    with closing(Journal(str(root), disk)) as journal:
        journal.recreate(index=False, mark=True)
    assert disk.done[-3:] == ["overwrite", "sync", "overwrite"]  # the last group once more, and only then the mark


def unsynced(root: Path) -> None:
    """Leave a whole group that was neither synced nor cut off, by a process that then ended."""
    probe = CountdownDisk(None)
    with Workspace.open(root, probe) as workspace:
        write(workspace, "other.txt", b"other\n")
    with Workspace.open(root, CountdownDisk(probe.done.index("sync"), broken_disk)) as workspace:
        with pytest.raises(Unacknowledged):
            write(workspace, "a.txt", b"two\n")
        assert files(root)["a.txt"] == BEFORE["a.txt"]


def test_a_group_neither_synced_nor_cut_off_is_written_again_before_a_file_changes(root: Path) -> None:
    unsynced(root)
    segment = (root / ".cas" / "segments" / "00000001.seg").read_bytes()
    disk = CountdownDisk(None)
    with Workspace.open(root, disk) as workspace:
        assert files(root)["a.txt"] == AFTER["a.txt"]
        assert disk.done[:5] == ["unlink", "overwrite", "sync", "stage", "sync_staged"]
        assert blobs(workspace)[-1] == b"two\n"
    assert (root / ".cas" / "segments" / "00000001.seg").read_bytes() == segment
    assert_sound(root)


def test_a_group_that_can_not_be_made_durable_changes_no_file(root: Path) -> None:
    unsynced(root)
    for failing in ("overwrite", "sync"):
        disk = CountdownDisk(1, broken_disk)
        with Workspace.open(root, disk) as workspace:
            assert disk.failed == failing
            assert len(workspace.history.edits()) == 3
            with pytest.raises(StoreRefuses):
                write(workspace, "a.txt", b"three\n")
        assert files(root)["a.txt"] == BEFORE["a.txt"]
    Workspace.open(root, CountdownDisk(None)).close()
    assert files(root)["a.txt"] == AFTER["a.txt"]
    assert_sound(root)


def test_the_group_of_a_process_killed_before_its_sync_is_synced_before_a_file_changes(root: Path) -> None:
    probe = CountdownDisk(None)
    with Workspace.open(root, probe) as workspace:
        write(workspace, "other.txt", b"other\n")
    with Workspace.open(root, CountdownDisk(probe.done.index("sync"))) as workspace, pytest.raises(PowerCut):
        write(workspace, "a.txt", b"two\n")
    disk = CountdownDisk(None)
    Workspace.open(root, disk).close()
    assert disk.done.index("sync") < disk.done.index("exchange")
    assert files(root)["a.txt"] == AFTER["a.txt"]


@pytest.mark.parametrize("longer", [b"", b"and more\n"], ids=["of the same length", "longer"])
def test_a_reader_forgets_a_group_that_was_cut_off(root: Path, longer: bytes) -> None:
    with Workspace.open(root, CountdownDisk(None)) as reader:
        disk = DiskReadBeforeSync(lambda: seen.extend(blobs(reader)))
        seen: list[bytes] = []
        with Workspace.open(root, disk) as writer:
            disk.has_conflict = True
            with pytest.raises(DiskFailed):
                write(writer, "a.txt", b"two\n")
            assert seen[-1] == b"two\n"
            writer.reopen()
            write(writer, "a.txt", b"TWO\n" + longer)
        write(reader, "b.txt", b"b\n")
        assert blobs(reader) == [b"one\n", b"TWO\n" + longer, b"b\n"]
    assert_sound(root)


def test_third_process_ignores_index_entries_of_a_truncated_group(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as third, Workspace.open(root, CountdownDisk(None)) as reader:
        disk = DiskReadBeforeSync(reader.history.edits)
        with Workspace.open(root, disk) as writer:
            disk.has_conflict = True
            with pytest.raises(DiskFailed):
                write(writer, "a.txt", b"two\n")
        write(third, "a.txt", b"TWO\n")
        assert [view.edit.seq for view in reader.history.edits()] == [1, 2]
        rejected(reader, 2)
        change(third, ("a.txt", b"three\n"), ("c.txt", b"c\n"))
    assert files(root)["a.txt"] == (b"three\n", 0o644)
    assert_sound(root)


@pytest.mark.parametrize("meanwhile", [(), ("b.txt",), ("b.txt", "c.txt", "d.txt")], ids=len)
def test_compaction_keeps_what_only_a_truncated_record_released(root: Path, meanwhile: tuple[str, ...]) -> None:
    only = b"the only copy\n"
    (root / "seen").write_bytes(only)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        number = workspace.snapshots.take(who="somebody").view.number
    (root / "seen").unlink()
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plans: list[CompactionPlan] = []
        disk = DiskReadBeforeSync(lambda: plans.append(plan_compaction(journal, all_segments=True)))
        with Workspace.open(root, disk) as workspace:
            disk.has_conflict = True
            with pytest.raises(DiskFailed):
                workspace.snapshots.delete([number], who="somebody")
        assert blob_id(only) in plans[0].dropped
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            for name in meanwhile:
                write(workspace, name, b"written in its place\n" * 30)
        assert not compact(journal, plans[0]).is_done
        assert compact(journal, plan_compaction(journal, all_segments=True)).is_done
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        assert workspace.history.blob(blob_id(only)) == only
    assert_sound(root)


def decide(workspace: Workspace, *seqs: int) -> None:
    workspace.decide(
        Action.ACCEPT,
        [Unit(view.seq, hunk) for view in map(workspace.history.edit, seqs) for hunk in range(len(view.units))],
    )


def test_truncated_decision_expires_nothing_even_if_its_number_is_reused(root: Path) -> None:
    info = CallInfo(tool="test", conversation="other")
    with Workspace.open(root, CountdownDisk(None)) as workspace, workspace.call(info) as call:
        call.write("b.txt", b"b\n")
        call.commit()
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plans: list[ExpiryPlan] = []

        def plan() -> None:
            with journal.reading():
                plans.append(plan_expiry(journal, RetentionLimits(older_than=0, max_size=None)))

        disk = DiskReadBeforeSync(plan)
        with Workspace.open(root, disk) as workspace:
            disk.has_conflict = True
            with pytest.raises(DiskFailed):
                decide(workspace, 1)
        assert plans[0].edit_count == 1
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            decide(workspace, 2)
        assert expire(journal, plans[0], who="") == 0
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        assert [(view.status, view.expired) for view in workspace.history.edits()] == [
            (Status.PENDING, None),
            (Status.ACCEPTED, None),
        ]
    assert_sound(root)


def test_full_index_loses_nothing_durable(root: Path) -> None:
    contents = [b"%d\n" % i * 100 for i in range(80)]  # more than are put into the index at a time
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        db = full_index(workspace)
        for content in contents:
            write(workspace, "a.txt", content)
            assert files(root)["a.txt"][0] == content
        assert blobs(workspace)[1:] == contents
        assert workspace._journal.store.index._db.connection is not db  # noqa: SLF001 - that one took nothing in
    assert_sound(root)


def test_a_full_index_refuses_no_call(root: Path) -> None:
    names = [f"{number} {'x' * 100}" for number in range(40)]  # enough for more pages than there are
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        db = full_index(workspace)
        for before, after in pairwise(["a.txt", *names]):
            with workspace.call(CallInfo(tool="test")) as call:
                call.move(before, after)  # of what is no plain edit, the index has to know before the next call
                call.commit()
        assert [view.edit.path for view in workspace.history.edits()][1:] == [name.encode() for name in names]
        assert workspace._journal.store.index._db.connection is not db  # noqa: SLF001 - that one took nothing in
    assert_sound(root)


def full_index(workspace: Workspace) -> sqlite3.Connection:
    """Prevent the index from ingesting more, and return its database."""
    db = workspace._journal.store.index._db.connection  # noqa: SLF001 - the limit has the effect of a full disk on SQLite
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
    return db
