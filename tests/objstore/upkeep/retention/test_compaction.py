"""Test that compaction removes unheld blobs and nothing else, wherever the process or machine stops."""

import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from objstore import (
    Action,
    BlobDamaged,
    BlobId,
    BlobMissing,
    CallInfo,
    CompactionSpaceNeeded,
    DiskFull,
    EditExpired,
    EditFilter,
    EditTakenOut,
    IndexDamaged,
    Seq,
    Status,
    StoreDamaged,
    StoreLocked,
    Unit,
    Workspace,
    blob_id,
    check_store,
    repair_store,
    salvage_store,
)
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.disk.fs.disk import Disk
from objstore.disk.fs.writer_lock import WriterLock
from objstore.model.basic_types import Progress
from objstore.model.ranges import ranges_of
from objstore.model.records import Edit, Expiry, Record, Snapshot
from objstore.storage.index.database import SUMS, prepare
from objstore.storage.index.index_file import IndexFile
from objstore.storage.index.log_index import Index
from objstore.storage.index.refcounts import recount
from objstore.storage.log.blob_codec import ID_AT, encode_blob, parse_blob_header
from objstore.storage.log.frames import FRAME_HEADER_SIZE, MARKER, SEGMENT_HEADER_SIZE, FrameKind
from objstore.storage.log.segment_files import GENERATION, Place
from objstore.storage.log.segments import Log
from objstore.storage.store.write_batch import Batch, now
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.integrity.fsck import StorePart
from objstore.upkeep.integrity.segment_scan import SegmentScan
from objstore.upkeep.retention.compaction import (
    CompactionPlan,
    CompactionResult,
    compact,
    plan_compaction,
    require_compaction_space,
)
from objstore.upkeep.retention.segment_rewrite import SegmentRewrite
from objstore.upkeep.transfer.import_export import import_bundle
from objstore.values.errors import CasError
from objstore.workspace.role import Role, reads, writes
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import (
    WHOLE,
    CountdownDisk,
    PowerCut,
    TooFullDisk,
    broken_disk,
    full_disk,
    power_cut,
    sampled_steps,
)
from tests.support.index_tables import rebuilt_tables, records_of, tables
from tests.support.interruption import interrupted_at, interruption_points

EDITS: Final = 30
DECIDING: Final = (Action.ACCEPT, Action.ACCEPT, Action.REJECT)
MANY: Final = 2000 if WHOLE else 120
"""Operations one after another: thousands in `make crash`."""
OFTEN: Final = (60, 25, 4, 3, 3, 3, 2)
"""How often each thing is done, in a hundred."""


def text(version: int) -> bytes:
    chance = random.Random(version // 10)
    lines = [b"line %d of %d\n" % (i, chance.randrange(1 << 40)) for i in range(60)]
    lines[version % 10] = b"version %d\n" % version
    return b"".join(lines)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what each test gets a copy of: edits of one file, all but the last few of which have expired."""
    root = tmp_path_factory.mktemp("start")
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        for version in range(EDITS):
            write(workspace, "a.txt", text(version))
        write(workspace, "b.txt", b"held\n")
        edits = workspace.history.edits()
        workspace.decide(
            Action.ACCEPT, [Unit(edit.seq, hunk) for edit in edits[:20] for hunk in range(len(edit.units))]
        )
    expire(root, *range(1, 21), decision=1)
    return root


@pytest.fixture
def root(start: Path, tmp_path: Path) -> Path:
    """Return a workspace with edits of one file, all but the last few of which have expired."""
    return copied(start, tmp_path / "workspace")


def expire(root: Path, *edits: int, decision: int = 0) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing() as batch:
        decisions = ranges_of([decision] if decision else [])
        batch.record(Expiry(time=now(), edits=ranges_of(edits), decisions=decisions, reason="old", who="somebody"))
        journal.commit(batch, ())


def run_compaction(root: Path, disk: Disk | None = None, *, all_segments: bool = False) -> CompactionResult:
    with closing(Journal(str(root), disk or CountdownDisk(None))) as journal:
        return compact(journal, plan_compaction(journal, all_segments=all_segments))


def test_damage_in_a_rewritten_segment_is_reported_with_its_offset_in_the_file(root: Path) -> None:
    run_compaction(root)
    with closing(sqlite3.connect(root / ".cas" / "index.sqlite")) as db:
        prepare(db)
        db.execute("UPDATE edits SET offset = (SELECT offset FROM edits WHERE seq = 22) WHERE seq = 21")
        db.execute(f"UPDATE edits SET checksum = {SUMS['edits']} WHERE seq = 21")  # noqa: S608 - names of the schema
        db.commit()
    size = max(path.stat().st_size for path in (root / ".cas" / "segments").iterdir())
    with Workspace.open(root, CountdownDisk(None)) as workspace, pytest.raises(StoreDamaged) as damage:
        workspace.history.edit(Seq(21))
    assert 0 < damage.value.offset < size


def seal(root: Path) -> None:
    """Continue the log in another segment."""
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        journal.seal()


def planned(root: Path) -> CompactionPlan:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        return plan_compaction(journal)


def held(root: Path) -> set[BlobId]:
    """Return the blobs that must be readable according to the records."""
    return set(recount(records_of(root / ".cas"), lambda _: None, lambda _: ()))


def assert_sound(root: Path) -> None:
    """Assert that all held blobs can be read, that the index is right, and that new edits work."""
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        for name in held(root):
            assert blob_id(workspace.history.blob(name)) == name
        write(workspace, "c.txt", b"%d\n" % len(workspace.history.edits()))
        edit = workspace.history.edit(EDITS)
        action = Action.ACCEPT if edit.status is Status.REJECTED else Action.REJECT
        workspace.decide(action, [Unit(edit.seq, hunk) for hunk in range(len(edit.units))])
    assert tables(root / ".cas" / "index.sqlite") == rebuilt_tables(root / ".cas")
    assert check_store(str(root)).faults == ()


def files_of(root: Path) -> list[str]:
    return sorted(path.name for path in (root / ".cas" / "segments").iterdir())


class _LockedOrNot(CountdownDisk):
    """A disk that notes, whenever a segment's file is removed, whether a process holds the writer lock."""

    def __init__(self, root: Path) -> None:
        super().__init__(None)
        self._lock = WriterLock(str(root / ".cas" / "lock"))
        self.was_free: list[bool] = []

    def remove_store_file(self, path: str) -> None:
        if path.endswith(".seg"):
            self.was_free.append(self._lock.acquire_now())
            self._lock.release()
            self._lock.close()
        super().remove_store_file(path)


def held_open(root: Path) -> list[str]:
    """Return the removed files below `root` that this process still has open."""
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(str(descriptor.readlink()))
    return [link for link in links if link.startswith(str(root)) and link.endswith(".seg (deleted)")]


# ---- what goes, and what stays


def test_the_writer_lock_is_free_while_an_old_file_is_removed(root: Path) -> None:
    disk = _LockedOrNot(root)
    assert run_compaction(root, disk).is_done
    assert disk.was_free == [True]


def test_compaction_keeps_no_removed_file_open(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        assert compact(journal, plan_compaction(journal)).is_done
        assert held_open(root) == []
        assert journal.store.blob(blob_id(text(EDITS - 1))) == text(EDITS - 1)


def test_leftovers_of_an_earlier_compaction_are_removed_without_the_lock_too(root: Path) -> None:
    shutil.copy(root / ".cas" / "segments" / "00000001.seg", root.parent / "old.seg")
    run_compaction(root)
    shutil.copy(root.parent / "old.seg", root / ".cas" / "segments" / "00000001.seg")
    disk = _LockedOrNot(root)
    run_compaction(root, disk)
    assert disk.was_free == [True]
    assert files_of(root) == ["00000001.1.seg", "00000002.seg"]


def test_a_long_running_process_closes_superseded_files(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as idle:
        run_compaction(root)
        assert len(held_open(root)) == 1
        idle.retention.close_superseded_files()
        assert held_open(root) == []
        assert idle.history.blob(blob_id(text(EDITS - 1))) == text(EDITS - 1)


def test_superseded_files_stay_open_while_the_store_is_used(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.reading() as store:
        before = {place: store.log.read(place).payload for place in places_of(store.log)}
        run_compaction(root)
        with journal.reading():
            assert store.blob(blob_id(text(EDITS - 1))) == text(EDITS - 1)  # at its new place
        journal.close_superseded()
        assert {place: store.log.read(place).payload for place in before} == before
    assert held_open(root) == []


def groups_of(log: Log) -> Iterator[int]:
    return (len(group.frames) for group in log.groups(log.first) if group.segment == 1)


def frames_of(log: Log) -> Iterator[int]:
    return (frame.position for frame in log.raw_frames(log.first))


@pytest.mark.parametrize("read", [groups_of, frames_of])
def test_a_reader_reads_a_superseded_file_to_its_end(root: Path, read: Callable[[Log], Iterator[int]]) -> None:
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        for seed in (1, 2):  # more than is read at once
            write(workspace, "large", random.Random(seed).randbytes(1_500_000))
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        log = journal.store.log
        whole = list(read(log))
        reading = read(log)
        begun = next(reading)
        run_compaction(root, all_segments=True)
        log.files.refresh()
        log.files.close_superseded()
        assert [begun, *reading] == whole
    assert held_open(root) == []


def test_unheld_blobs_are_removed_and_the_rest_can_be_read(root: Path) -> None:
    plan = planned(root)
    kept = held(root)
    before = (root / ".cas" / "segments" / "00000001.seg").stat().st_size
    assert blob_id(text(3)) in plan.dropped
    assert not plan.dropped & kept
    outcome = run_compaction(root)
    assert outcome.is_done
    gone = before - (root / ".cas" / "segments" / "00000001.1.seg").stat().st_size
    assert gone >= plan.freed * 0.7
    assert outcome.freed == gone
    assert files_of(root) == ["00000001.1.seg", "00000002.seg"]
    with Workspace.open(root) as workspace, pytest.raises(BlobMissing):
        workspace.history.blob(blob_id(text(3)))
    assert_sound(root)


def test_one_frame_of_a_blob_that_was_stored_twice_is_kept(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        _, payload = encode_blob(b"held\n")
        journal.store.append([(FrameKind.BLOB, payload)])
    assert blobs_in_log(root).count(blob_id(b"held\n")) == 2
    assert run_compaction(root, all_segments=True).is_done
    found = blobs_in_log(root)
    assert found.count(blob_id(b"held\n")) == 1
    assert set(found) == held(root)
    assert_sound(root)


@pytest.mark.parametrize("is_late", [True, False])
def test_all_frames_of_an_unheld_blob_are_removed_or_none(root: Path, *, is_late: bool) -> None:
    seal(root)
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        _, payload = encode_blob(text(3))
        for _ in range(2):
            with journal.writing():
                journal.store.append([(FrameKind.BLOB, payload)])
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "c.txt", random.Random(1).randbytes(10_000))  # so that little of the segment would go
    if is_late:
        # An index that ingests both frames at once notes the second one too.
        with closing(IndexFile(str(root / ".cas" / "index.sqlite"))) as file:
            file.remove()
    outcome = run_compaction(root)
    assert (outcome.segments, outcome.is_done) == (1, True)
    assert blobs_in_log(root).count(blob_id(text(3))) == 3
    assert check_store(str(root)).faults == ()
    assert_sound(root)
    assert run_compaction(root, all_segments=True).is_done
    assert set(blobs_in_log(root)) == held(root)
    assert_sound(root)


@pytest.mark.parametrize("kept", ["010", "101", "110"])
def test_the_kept_frames_of_a_group_are_a_group(root: Path, kept: str) -> None:
    contents = [b"part %d of a group\n" % number for number in range(3)]
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        _, payloads = zip(*map(encode_blob, contents), strict=True)
        journal.store.append([(FrameKind.BLOB, payload) for payload in payloads])
    staying = [content for content, is_kept in zip(contents, kept, strict=True) if int(is_kept)]
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        workspace.retention.pin([], list(map(blob_id, staying)), who="somebody")
    assert run_compaction(root, all_segments=True).is_done
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        groups = [
            [parse_blob_header(frame.payload).id for frame in group.frames if frame.kind is FrameKind.BLOB]
            for group in journal.store.log.groups(journal.store.log.first)
        ]
    assert list(map(blob_id, staying)) in groups
    assert_sound(root)


def blobs_in_log(root: Path) -> list[BlobId]:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        log = journal.store.log
        frames = [frame for group in log.groups(log.first) for frame in group.frames]
        return [parse_blob_header(frame.payload).id for frame in frames if frame.kind is FrameKind.BLOB]


def frames_size(root: Path, names: Iterable[BlobId]) -> int:
    """Return the total size of the blobs' frames, in bytes."""
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        places = journal.store.index.blobs.places(list(names)).values()
        return sum(FRAME_HEADER_SIZE + len(journal.store.log.read(place).payload) for place in places)


def test_plan_reports_the_bytes_that_are_freed(root: Path) -> None:
    seal(root)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "c.txt", b"held, and all of a segment\n")
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plan = plan_compaction(journal, all_segments=True)
    assert plan.segments == (2, 1)
    assert plan.freed == frames_size(root, plan.dropped)


def test_compaction_does_not_change_records(root: Path) -> None:
    before = records_of(root / ".cas")
    run_compaction(root)
    assert records_of(root / ".cas") == before


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE blobs SET refs = 0 WHERE id = (SELECT blob FROM documents WHERE blob NOT NULL LIMIT 1)",
        "UPDATE blobs SET refs = 0 WHERE id = (SELECT before FROM edits WHERE NOT expired AND before NOT NULL LIMIT 1)",
        "UPDATE blobs SET id = zeroblob(32) WHERE id = (SELECT after FROM edits WHERE NOT expired LIMIT 1)",
        "DELETE FROM blobs WHERE id = (SELECT after FROM edits WHERE seq = 25)",
    ],
)
def test_wrong_reference_counts_stop_a_compaction_before_it_begins(root: Path, damage: str) -> None:
    with Workspace.open(root, CountdownDisk(None)):
        pass  # all that is in the log is in the index
    with closing(sqlite3.connect(root / ".cas" / "index.sqlite")) as db, db:
        assert db.execute(damage).rowcount == 1
    files = files_of(root)
    with pytest.raises(IndexDamaged, match="The index is damaged"):
        run_compaction(root)
    assert files_of(root) == files
    assert repair_store(check_store(str(root))).faults == ()
    assert run_compaction(root).is_done
    assert_sound(root)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE blobs SET refs = 0 WHERE id = (SELECT blob FROM documents WHERE blob NOT NULL LIMIT 1)",
        "DELETE FROM blobs WHERE refs = 0 AND id IN (SELECT after FROM edits WHERE seq = 4)",
        "UPDATE blobs SET offset = offset + 1 WHERE id = (SELECT after FROM edits WHERE seq = 25)",
    ],
)
def test_gc_rebuilds_an_index_with_wrong_reference_counts(root: Path, damage: str) -> None:
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        with closing(sqlite3.connect(root / ".cas" / "index.sqlite")) as db, db:
            assert db.execute(damage).rowcount == 1
        done = workspace.retention.collect(RetentionLimits(older_than=None, max_size=None), thorough=True)
        assert done.is_done
        assert done.index_damage.split()[0] in {"blob", "it"}
        assert not workspace.retention.collect(
            RetentionLimits(older_than=None, max_size=None), thorough=True
        ).index_damage
    assert set(blobs_in_log(root)) == held(root)
    assert_sound(root)


def decided(root: Path) -> BlobId:
    """Return a state that only a decision holds."""
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        for content in (b"one\nof\nthree\n", b"ONE\nof\nthree\n", b"ONE\nof\nTHREE\n"):
            write(workspace, "d.txt", content)
        first = workspace.history.edits()[-2].seq
        workspace.decide(Action.REJECT, [Unit(first, 1)])
        assert (root / "d.txt").read_bytes() == b"one\nof\nTHREE\n"
        write(workspace, "d.txt", b"other\n")
    expire(root, *range(first - 1, first + 3))
    return blob_id(b"one\nof\nTHREE\n")


def pinned(root: Path) -> BlobId:
    """Return a state that only a pin holds."""
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        workspace.retention.pin([], [blob_id(text(3))], who="somebody")
    return blob_id(text(3))


def in_a_snapshot(root: Path) -> BlobId:
    """Return a state that only a tree below another one holds."""
    (root / "folder" / "inner").mkdir(parents=True)
    (root / "folder" / "inner" / "seen").write_bytes(b"seen once\n")
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        workspace.snapshots.take(who="somebody")
    return blob_id(b"seen once\n")


@pytest.mark.parametrize("kept", [decided, pinned, in_a_snapshot])
def test_references_outside_edits_are_read_from_the_log_before_compaction(
    root: Path, kept: Callable[[Path], BlobId]
) -> None:
    name = kept(root)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        content = workspace.history.blob(name)
    with closing(sqlite3.connect(root / ".cas" / "index.sqlite")) as db, db:
        assert db.execute("UPDATE blobs SET refs = 0 WHERE id = ? AND refs = 1", (name,)).rowcount == 1
    files = files_of(root)
    with pytest.raises(IndexDamaged, match="The index is damaged"):
        run_compaction(root, all_segments=True)
    assert files_of(root) == files
    assert repair_store(check_store(str(root))).faults == ()
    assert run_compaction(root, all_segments=True).is_done
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        assert workspace.history.blob(name) == content
    assert_sound(root)


def place_of(root: Path, name: BlobId) -> Place:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        found = journal.store.blob_place(name)
        assert found is not None
        return found.place


def flip_in_frame(root: Path, name: BlobId, at: int | None = None) -> None:
    """Change a bit of the frame that the blob is stored in, in the file of its segment.

    `at`: in which byte of its payload (None: in the last one).
    """
    place = place_of(root, name)
    path = root / ".cas" / "segments" / "00000001.seg"
    content = bytearray(path.read_bytes())
    behind = content.find(MARKER, place.position + 1)
    # Of the last frame, the last byte is that of the file.
    content[behind - 1 if at is None else place.position + FRAME_HEADER_SIZE + at] ^= 1
    path.write_bytes(content)


ALONE: Final = b"the base of no delta\n"


def left_alone(root: Path) -> BlobId:
    """Return a blob that nothing holds and that is no delta's base."""
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing() as batch:
        batch.blob(ALONE)
        journal.commit(batch, ())
    return blob_id(ALONE)


@pytest.mark.parametrize("at", [None, ID_AT.start], ids=["content", "name"])
def test_a_damaged_unheld_blob_is_removed(root: Path, at: int | None) -> None:
    flip_in_frame(root, left_alone(root), at)
    assert StorePart.SEGMENTS in {fault.part for fault in check_store(str(root)).faults}
    assert run_compaction(root).is_done
    assert_sound(root)


def test_a_damaged_kept_blob_stops_a_compaction(root: Path) -> None:
    flip_in_frame(root, blob_id(text(25)))
    content = (root / ".cas" / "segments" / "00000001.seg").read_bytes()
    with pytest.raises(StoreDamaged, match="checksum does not match"):
        run_compaction(root)
    assert (root / ".cas" / "segments" / "00000001.seg").read_bytes() == content


@pytest.fixture
def together(tmp_path: Path) -> Path:
    """Return a workspace in which one call recorded two files in one group of frames, with states that expire."""
    root = tmp_path / "together"
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        for version in range(2):
            with workspace.call(CallInfo(tool="test", conversation="one")) as call:
                for path in ("a", "b"):
                    call.write(path, random.Random(f"{path}{version}").randbytes(300))
                call.commit()
    expire(root, 1, 2, 3, 4)
    return root


def damaged_lengths(root: Path) -> Iterator[bytes]:
    """Yield the segment with the length of a removed frame changed so that it ends where another frame ends."""
    path = root / ".cas" / "segments" / "00000001.seg"
    content = path.read_bytes()
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        frames = list(journal.store.log.raw_frames(journal.store.log.first))
        going = {blob_id(random.Random(f"{name}0").randbytes(300)) for name in "ab"}
    for at, frame in enumerate(frames):
        if frame.kind == FrameKind.BLOB and parse_blob_header(frame.whole[FRAME_HEADER_SIZE:]).id in going:
            for end in frames[at + 1 :]:
                reaching = end.position + len(end.whole) - frame.position - FRAME_HEADER_SIZE
                length = frame.position + 8
                yield content[:length] + reaching.to_bytes(8, "little") + content[length + 8 :]


def test_a_removed_frame_with_a_damaged_length_removes_nothing_else(together: Path) -> None:
    path = together / ".cas" / "segments" / "00000001.seg"
    refused = 0
    for damaged in list(damaged_lengths(together)):
        path.write_bytes(damaged)
        with pytest.raises(StoreDamaged):
            run_compaction(together, all_segments=True)
        newest = max(path.parent.glob("00000001*.seg"), key=lambda found: found.stat().st_mtime_ns)
        assert newest.read_bytes() == damaged
        refused += 1
    assert refused > 10


def test_an_intact_frame_is_kept_if_the_frame_that_counts_is_damaged(root: Path) -> None:
    name = blob_id(text(25))
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        journal.seal()
        _, payload = encode_blob(text(25), None, name=name)
        journal.store.append([(FrameKind.BLOB, payload)])
        journal.seal()
    flip_in_frame(root, name)
    with pytest.raises(IndexDamaged):
        run_compaction(root, all_segments=True)
    salvage_store(str(root / ".cas"), str(root.parent / "saved"))
    with Workspace.open(root.parent / "saved") as saved:
        assert saved.history.blob(name) == text(25)


def test_a_compaction_stops_at_damage_even_if_no_kept_frame_follows(root: Path) -> None:
    flip_in_frame(root, left_alone(root), -FRAME_HEADER_SIZE)
    with pytest.raises(StoreDamaged, match="out of place"):
        run_compaction(root)


def test_a_frame_that_is_neither_kept_nor_removed_stops_the_rewrite(root: Path) -> None:
    seal(root)
    plan, left_out = planned(root), place_of(root, blob_id(text(25)))
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.reading() as store:
        staying = set(store.index.blobs.held_offsets([1])[1])
        assert b"".join(SegmentRewrite(store, 1, frozenset(staying), plan.dropped).pieces())
        with pytest.raises(IndexDamaged):
            list(SegmentRewrite(store, 1, staying - {left_out.offset}, plan.dropped).pieces())


@pytest.mark.parametrize("damage", ["UPDATE blobs SET offset = offset + 1", "DELETE FROM blobs"])
def test_a_blob_that_is_missing_from_the_index_stops_a_compaction(root: Path, damage: str) -> None:
    files = files_of(root)
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plan = plan_compaction(journal)
        with closing(sqlite3.connect(root / ".cas" / "index.sqlite")) as db, db:
            assert db.execute(f"{damage} WHERE id = ?", (blob_id(text(25)),)).rowcount == 1
        with pytest.raises(IndexDamaged):
            compact(journal, plan)
    assert set(files) <= set(files_of(root))
    assert repair_store(check_store(str(root))).faults == ()
    assert run_compaction(root).is_done
    assert_sound(root)


def test_a_second_compaction_finds_nothing_to_remove(root: Path) -> None:
    run_compaction(root)
    assert planned(root).segments == ()
    assert not run_compaction(root).freed
    run_compaction(root, all_segments=True)
    assert run_compaction(root, all_segments=True) == CompactionResult(segments=0, freed=0, is_done=True)


def test_segments_can_be_rewritten_repeatedly(root: Path) -> None:
    run_compaction(root)
    expire(root, *range(21, 26))
    run_compaction(root, all_segments=True)
    assert files_of(root) == ["00000001.2.seg", "00000002.1.seg", "00000003.seg"]
    assert_sound(root)


class _Slow(Role):
    """A task so slow at its first try that a segment is rewritten before and after it asks the index."""

    tries = 0

    @reads
    def read(self, root: Path) -> Record:
        """Return the record of the last edit."""
        return self._last_edit(root)

    @writes
    def write(self, root: Path) -> Record:
        """Return the record of the last edit, as a method that may record something."""
        with self._journal.reading():
            return self._last_edit(root)

    def _last_edit(self, root: Path) -> Record:
        self.tries += 1
        if self.tries == 1:
            run_compaction(root)
        row = self._store.index.edits.get(EDITS)
        assert row is not None
        if self.tries == 1:
            expire(root, 21)
            run_compaction(root, all_segments=True)
        return self._store.record(row.place)[0]


@pytest.mark.parametrize("act", [_Slow.read, _Slow.write])
def test_a_task_begins_again_if_a_segment_was_rewritten_twice_meanwhile(
    root: Path, act: Callable[[_Slow, Path], Record]
) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        task = _Slow(journal)
        record = act(task, root)
        assert isinstance(record, Edit)
        assert record.seq == EDITS
    assert task.tries == 2
    assert files_of(root)[0] == "00000001.2.seg"


def test_a_removed_blob_can_be_stored_again(root: Path) -> None:
    run_compaction(root)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "d.txt", text(3))
        assert workspace.history.blob(blob_id(text(3))) == text(3)
    assert_sound(root)


def test_a_blob_that_becomes_held_after_the_plan_is_kept(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plan = plan_compaction(journal)
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            write(workspace, "d.txt", text(3))
        assert not compact(journal, plan).is_done
    assert_sound(root)
    assert run_compaction(root).is_done
    assert_sound(root)


def test_a_blob_that_a_snapshot_holds_after_the_plan_is_kept(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plan = plan_compaction(journal)
        (root / "folder").mkdir()
        (root / "folder" / "as-once").write_bytes(text(3))
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            workspace.snapshots.take(who="somebody")  # the record names a tree, which names another, which names it
        assert not compact(journal, plan).is_done
        assert journal.store.blob(blob_id(text(3))) == text(3)
    assert_sound(root)
    assert run_compaction(root).is_done
    assert_sound(root)


def in_an_edit(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "d.txt", text(3))


def below_a_snapshot(root: Path) -> None:
    (root / "folder").mkdir()
    (root / "folder" / "as-once").write_bytes(text(3))
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        workspace.snapshots.take(who="somebody")


def as_a_base(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing() as batch:
        batch.blob(text(3) + b"and more\n", blob_id(text(3)))
        batch.commit()


@pytest.mark.parametrize("hold", [in_an_edit, below_a_snapshot, as_a_base])
def test_a_blob_that_becomes_held_just_before_its_segment_is_rewritten_is_kept(
    root: Path, hold: Callable[[Path], None]
) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        outcome = compact(journal, plan_compaction(journal), lambda *_: hold(root))
        assert outcome == CompactionResult(segments=0, freed=0, is_done=False)
        assert files_of(root) == ["00000001.seg", "00000002.seg"]  # what was made of it in vain has gone
        assert journal.store.blob(blob_id(text(3))) == text(3)
    assert_sound(root)
    assert run_compaction(root).is_done
    assert_sound(root)


def test_a_snapshot_that_needs_no_removed_blob_does_not_stop_a_compaction(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plan = plan_compaction(journal)
        (root / "other").write_bytes(b"nothing of what goes\n")
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            workspace.snapshots.take(who="somebody")
        assert compact(journal, plan).is_done
    assert_sound(root)


def hold_what_is_lost(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing() as batch:
        batch.record(Snapshot(time=now(), number=1, root=blob_id(b"lost"), path=None, who="somebody"))
        journal.commit(batch, ())


def test_an_unreadable_tree_stops_a_compaction_before_it_begins(root: Path) -> None:
    hold_what_is_lost(root)
    with (
        closing(Journal(str(root), CountdownDisk(None))) as journal,
        pytest.raises(BlobDamaged, match="nothing can be compacted"),
    ):
        plan_compaction(journal, all_segments=True)


def test_an_unreadable_tree_stops_a_compaction_that_has_begun(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plan = plan_compaction(journal)
        assert not compact(journal, plan, lambda *_: hold_what_is_lost(root)).is_done
    assert files_of(root) == ["00000001.seg", "00000002.seg"]


def test_a_base_that_is_used_after_the_plan_is_kept(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plan = plan_compaction(journal)
        with closing(Journal(str(root), CountdownDisk(None))) as other, other.writing() as batch:
            content = text(3) + b"and more\n"
            batch.blob(content, blob_id(text(3)))
            seq = other.store.next_seq()
            assert seq == EDITS + 2
            batch.commit()
        assert not compact(journal, plan).is_done
        assert journal.store.blob(blob_id(content)) == content
    assert_sound(root)


def test_plan_for_a_log_that_another_compaction_rewrote_is_not_executed(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plan = plan_compaction(journal)
        assert run_compaction(root).is_done
        assert compact(journal, plan) == CompactionResult(segments=0, freed=0, is_done=False)
    assert_sound(root)


def test_only_one_compaction_runs_at_a_time(root: Path) -> None:
    with (
        closing(Journal(str(root), CountdownDisk(None))) as journal,
        journal.compacting(),
        pytest.raises(StoreLocked),
    ):
        run_compaction(root)


def test_a_process_that_was_running_before_keeps_reading(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as workspace, Workspace.open(root, CountdownDisk(None)) as idle:
        write(workspace, "e.txt", b"not yet in the index\n")
        run_compaction(root)
        run_compaction(root, all_segments=True)
        write(workspace, "e.txt", b"and on\n")
        for name in held(root):
            assert blob_id(workspace.history.blob(name)) == name
            assert blob_id(idle.history.blob(name)) == name
        assert [edit.seq for edit in idle.history.edits()] == [edit.seq for edit in workspace.history.edits()]
    assert_sound(root)


def test_a_flipped_bit_stops_a_compaction_and_keeps_the_damaged_file_for_salvage(root: Path) -> None:
    path = root / ".cas" / "segments" / "00000001.seg"
    content = path.read_bytes()
    chance = random.Random(5)
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plan = plan_compaction(journal)
    for at in chance.sample(range(SEGMENT_HEADER_SIZE, len(content)), 12):
        flipped = content[:at] + bytes([content[at] ^ (1 << chance.randrange(8))]) + content[at + 1 :]
        path.write_bytes(flipped)
        with closing(Journal(str(root), CountdownDisk(None))) as journal, pytest.raises((StoreDamaged, BlobDamaged)):
            compact(journal, plan)
        assert path.read_bytes() == flipped, at
        assert not list(path.parent.glob("*.1.*")), at


def test_places_in_the_index_are_those_of_the_present_generation(root: Path) -> None:
    run_compaction(root)
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        log = journal.store.log
        found = places_of(log)
        assert {place.generation for place in found if place.segment == 1} == {1}
        for name in held(root):
            place = journal.store.blob_place(name)
            assert place is not None
            assert place.place in found
            assert parse_blob_header(log.read(place.place).payload).id == name


def test_groups_are_read_only_from_a_place_of_the_current_generation(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as before:
        old = before.store.log.first
    run_compaction(root)
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        log = journal.store.log
        assert (old.generation, log.first.generation) == (0, 1)
        assert next(log.groups(log.first)).segment == log.first.segment
        newer = log.first._replace(offset=log.first.offset + GENERATION)
        for place in (old, newer):
            with pytest.raises(StoreDamaged, match="the segment has been rewritten since"):
                next(log.groups(place))


def places_of(log: Log) -> list[Place]:
    return [Place(group.segment, frame.offset) for group in log.groups(log.first) for frame in group.frames]


# ---- wherever it stops


@pytest.fixture
def steps(root: Path, tmp_path: Path) -> int:
    """Return the number of disk operations of a compaction that finds the leftovers of another one."""
    copy = copied(root, tmp_path / "counted")
    disk = CountdownDisk(None)
    run_compaction(copy, disk)
    assert {"create", "replace", "sync_directory", "remove_store_file"} <= set(disk.done)
    return len(disk.done)


def copied(root: Path, to: Path) -> Path:
    shutil.copytree(root, to)
    return to


@pytest.mark.parametrize("torn", [None, 0.5])
def test_a_compaction_killed_at_any_step_loses_no_held_blob(
    root: Path, tmp_path: Path, steps: int, torn: float | None
) -> None:
    for step in sampled_steps(steps, 0 if torn is None else 1):
        copy = copied(root, tmp_path / f"killed-{step}")
        disk = CountdownDisk(step, power_cut, torn=torn)
        with pytest.raises(PowerCut):
            run_compaction(copy, disk)
        assert_sound(copy)
        assert run_compaction(copy).is_done
        assert all(not name.endswith(".new") for name in files_of(copy))
        assert len(files_of(copy)) == len({name[:8] for name in files_of(copy)})
        assert_sound(copy)


def test_a_power_cut_at_any_step_loses_no_held_blob(root: Path, tmp_path: Path, steps: int) -> None:
    for step in sampled_steps(steps, 2):
        copy = copied(root, tmp_path / f"dark-{step}")
        disk = CountdownDisk(step, power_cut)
        index = (copy / ".cas" / "index.sqlite").read_bytes()
        with pytest.raises(PowerCut):
            run_compaction(copy, disk)
        disk.lose_unsynced()
        # Of the index, a power cut may take whatever was put in lately.
        for name in ("index.sqlite-wal", "index.sqlite-shm"):
            (copy / ".cas" / name).unlink(missing_ok=True)
        (copy / ".cas" / "index.sqlite").write_bytes(index)
        assert_sound(copy)
        assert run_compaction(copy).is_done
        assert_sound(copy)


@pytest.mark.parametrize(("failure", "lasting"), [(full_disk, True), (broken_disk, False)])
def test_a_disk_failure_at_any_step_is_raised_and_leaves_a_sound_store(
    root: Path, tmp_path: Path, steps: int, failure: Callable[[str], BaseException], *, lasting: bool
) -> None:
    for step in sampled_steps(steps, int(lasting)):
        copy = copied(root, tmp_path / f"failed-{step}")
        disk = CountdownDisk(step, failure, lasting=lasting)
        done: list[str] = []
        with suppress(CasError):
            # What fails at last may be the mark, which is only written again.
            done.append(str(run_compaction(copy, disk).is_done))
        assert done in ([], ["True"])
        assert_sound(copy)
        assert run_compaction(copy).is_done
        assert_sound(copy)


def test_repeatedly_failing_compactions_begin_at_most_one_segment(root: Path) -> None:
    for _ in range(3):
        with pytest.raises(DiskFull):
            run_compaction(root, TooFullDisk(), all_segments=True)
    assert run_compaction(root, all_segments=True).is_done
    assert files_of(root) == ["00000001.1.seg", "00000002.seg"]
    assert_sound(root)


def test_empty_segments_are_skipped(root: Path, tmp_path: Path) -> None:
    """Compactions that are killed one after the other, with no write in between, leave such segments."""
    for _ in range(12):
        seal(root)
    assert check_store(str(root)).faults == ()
    (root / ".cas" / "index.sqlite").unlink()
    whole = CountdownDisk(None)
    with Workspace.open(copied(root, tmp_path / "counted"), whole) as workspace:
        write(workspace, "c.txt", text(50))
    dying = CountdownDisk(whole.done.index("append"), torn=0.5)
    with Workspace.open(root, dying) as workspace, pytest.raises(PowerCut):
        write(workspace, "c.txt", text(50))
    # What a writer has left in the last one that died is no damage there.
    assert (root / ".cas" / "segments" / "00000013.seg").stat().st_size > SEGMENT_HEADER_SIZE
    assert_sound(root)


def test_the_space_needed_leaves_out_unheld_blobs_only_if_they_are_dropped(root: Path) -> None:
    needed = []
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        for drops_unused in (True, False):
            with (
                pytest.raises(CompactionSpaceNeeded) as refused,
                require_compaction_space(journal, 1, drops_unused=drops_unused),
            ):
                raise full_disk("a segment")
            needed.append(refused.value.needed)
        size = journal.store.log.files.size(1) + journal.store.index.file_bytes()
        assert needed == [size - plan_compaction(journal).freed, size]


class InterruptedJournal(Journal):
    """A journal that gets Ctrl-C just after a segment's next generation has taken its place."""

    def remove_superseded(self, path: str) -> None:
        raise KeyboardInterrupt(path)


def test_an_interrupt_after_a_segment_was_rewritten_leaves_only_the_old_file(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as idle:
        with closing(InterruptedJournal(str(root), CountdownDisk(None))) as journal, pytest.raises(KeyboardInterrupt):
            compact(journal, plan_compaction(journal))
        assert files_of(root) == ["00000001.1.seg", "00000001.seg", "00000002.seg"]
        for name in held(root):
            assert blob_id(idle.history.blob(name)) == name
    assert_sound(root)
    run_compaction(root)
    assert files_of(root) == ["00000001.1.seg", "00000002.seg"]


# ---- while others are at it


WRITER: Final = """
import sys
from objstore import CallInfo, EditFilter, Workspace
with Workspace.open(sys.argv[1]) as workspace:
    for number in range(60):
        with workspace.call(CallInfo(tool="t", conversation=sys.argv[2])) as call:
            call.write(f"{sys.argv[2]}.txt", (f"{number}\\n" + "line\\n" * (number % 7)).encode())
            call.commit()
        for edit in workspace.history.edits(EditFilter(conversation=sys.argv[2]))[-3:]:
            assert edit.edit.after is not None
            workspace.history.blob(edit.edit.after.blob)
"""


def test_writers_and_readers_continue_while_segments_are_rewritten(root: Path) -> None:
    words = [sys.executable, "-c", WRITER, str(root)]
    writers = [subprocess.Popen([*words, name], cwd=Path(__file__).parents[4]) for name in ("x", "y")]
    compactions = 0
    while any(writer.poll() is None for writer in writers):
        run_compaction(root, Disk(), all_segments=True)
        compactions += 1
    assert [writer.wait() for writer in writers] == [0, 0]
    assert compactions
    assert_sound(root)
    with Workspace.open(root) as workspace:
        assert [len(workspace.history.edits(EditFilter(conversation=name))) for name in ("x", "y")] == [60, 60]


class OvertakenJournal(Journal):
    """A journal that calls a function, which writes much, the first few times before it takes the lock."""

    overtakes = 3

    def overtake(self) -> None:
        with Workspace.open(self.tree.root, CountdownDisk(None)) as other:
            write(other, "large", random.Random(self.overtakes).randbytes(50_000))

    @contextmanager
    def writing(
        self, *, within: float | None = None, may_use_reserve: bool = False, waiting: Callable[[], object] | None = None
    ) -> Iterator[Batch]:
        if self.overtakes:
            self.overtakes -= 1
            self.overtake()
        with super().writing(within=within, may_use_reserve=may_use_reserve, waiting=waiting) as batch:
            yield batch


def test_compaction_reads_most_new_records_before_it_takes_the_lock_again(root: Path) -> None:
    locks: list[int] = []
    with closing(OvertakenJournal(str(root), CountdownDisk(None))) as journal:
        plan = plan_compaction(journal)
        journal.overtakes = 0

        def arm(what: str, done: int, _: int) -> None:
            locks.append(done)
            assert what == "segments"
            journal.overtakes = 3

        assert compact(journal, plan, arm).is_done
        assert journal.overtakes == 0
    assert locks == [0]
    assert_sound(root)


class SnapshotJournal(OvertakenJournal):
    """As above, but a snapshot begins to hold the blob, which nothing else holds."""

    overtakes = 0

    def overtake(self) -> None:
        below_a_snapshot(Path(self.tree.root))


def test_a_blob_that_a_snapshot_holds_just_before_the_rename_is_kept(root: Path) -> None:
    with closing(SnapshotJournal(str(root), CountdownDisk(None))) as journal:

        def arm(*_: object) -> None:
            journal.overtakes = 1

        assert not compact(journal, plan_compaction(journal), arm).is_done
        assert journal.overtakes == 0
        assert journal.store.blob(blob_id(text(3))) == text(3)
    assert_sound(root)


class DamagingJournal(OvertakenJournal):
    """As above, but the row of a blob that stays gets another place."""

    overtakes = 0

    def overtake(self) -> None:
        with closing(sqlite3.connect(Path(self.tree.root) / ".cas" / "index.sqlite")) as db:
            db.execute("UPDATE blobs SET offset = offset + 1 WHERE id = ?", (blob_id(text(EDITS - 1)),))
            db.commit()


def test_an_index_with_a_frame_elsewhere_stops_a_rewrite(root: Path) -> None:
    with closing(DamagingJournal(str(root), CountdownDisk(None))) as journal:

        def arm(*_: object) -> None:
            journal.overtakes = 1

        with pytest.raises(IndexDamaged, match="elsewhere"):
            compact(journal, plan_compaction(journal), arm)
    assert files_of(root) == ["00000001.seg", "00000002.seg"]
    assert_sound(root)


class CutOffJournal(OvertakenJournal):
    """As above, but the newest group is cut off, as after a failed sync, and an edit in its place holds the blob."""

    overtakes = 0
    size = 0  # where the last segment is cut off

    def overtake(self) -> None:
        root = Path(self.tree.root)
        os.truncate(last_segment(root), self.size)
        in_an_edit(root)


def last_segment(root: Path) -> Path:
    return max((root / ".cas" / "segments").glob("*.seg"))


def test_a_compaction_stops_if_the_end_of_the_log_is_replaced_before_the_rename(root: Path) -> None:
    with closing(CutOffJournal(str(root), CountdownDisk(None))) as journal:

        def arm(*_: object) -> None:
            journal.size = last_segment(root).stat().st_size
            with closing(Journal(str(root), CountdownDisk(None))) as other, other.writing() as batch:
                batch.blob(random.Random(27).randbytes(20_000))
                batch.commit()
            journal.overtakes = 1

        assert not compact(journal, plan_compaction(journal), arm).is_done
        assert journal.overtakes == 0
        assert journal.store.blob(blob_id(text(3))) == text(3)


def test_fsck_finds_no_fault_if_a_compaction_runs_meanwhile(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compactions: list[bool] = []

    class Overtaken(Index):
        """An index for comparison, whose log is rewritten as soon as it has been read."""

        def __init__(self, file: IndexFile | None, log: Log, progress: Progress) -> None:
            super().__init__(file, log, progress)
            compactions.append(run_compaction(root, all_segments=True).is_done)

    monkeypatch.setattr("objstore.upkeep.integrity.fsck.Index", Overtaken)
    report = check_store(str(root))
    assert (report.faults, report.notes) == ((), ())
    assert compactions == [True]


# ---- after anything


def test_after_many_operations_the_counts_match_the_journal(tmp_path: Path) -> None:
    chance = random.Random(7)
    root = tmp_path / "workspace"
    root.mkdir()
    shrunk = 0
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        for _ in range(MANY):
            match chance.choices(("write", "decide", "snapshot", "forget", "pin", "unpin", "collect"), OFTEN)[0]:
                case "write":
                    write(workspace, f"{chance.randrange(4)}/{chance.randrange(3)}.txt", text(chance.randrange(40)))
                case "decide" if edits := workspace.history.edits(EditFilter(limit=6, newest_first=True)):
                    with suppress(EditExpired, EditTakenOut):
                        edit = chance.choice(edits)
                        workspace.decide(chance.choice(DECIDING), [Unit(edit.seq, n) for n in range(len(edit.units))])
                case "snapshot":
                    workspace.snapshots.take(who="somebody")
                case "forget" if taken := workspace.snapshots.all():
                    workspace.snapshots.delete([chance.choice(taken).number], who="somebody")
                case "pin" if edits := workspace.history.edits(EditFilter(limit=6, newest_first=True)):
                    with suppress(EditExpired):
                        workspace.retention.pin([chance.choice(edits).seq], who="somebody")
                case "unpin" if pins := workspace.retention.pins():
                    workspace.retention.unpin([chance.choice(pins).pin.number], who="somebody")
                case "collect":
                    done = workspace.retention.collect(
                        RetentionLimits(older_than=0, max_size=None), thorough=chance.random() < 0.5
                    )
                    shrunk += done.bytes_after < done.bytes_before
                case _:
                    pass
    assert shrunk
    assert check_store(str(root)).faults == ()
    assert tables(root / ".cas" / "index.sqlite") == rebuilt_tables(root / ".cas")


def test_a_compacted_store_can_be_salvaged_completely(root: Path, tmp_path: Path) -> None:
    run_compaction(root)
    salvage = salvage_store(str(root), str(tmp_path / "new"))
    assert salvage.is_whole
    assert records_of(tmp_path / "new" / ".cas") == records_of(root / ".cas")
    with Workspace.open(tmp_path / "new") as workspace:
        for name in held(root):
            assert blob_id(workspace.history.blob(name)) == name


def test_the_base_of_a_delta_is_kept_if_the_deltas_segment_is_not_rewritten(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        for version in range(5):
            write(workspace, "a.txt", text(version))
    seal(root)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        for version in range(5, EDITS):
            write(workspace, "a.txt", text(version))
    expire(root, *range(1, 8))
    plan = planned(root)
    assert plan.segments == (1,)
    assert blob_id(text(4)) not in plan.dropped  # it is the base of the next segment's first delta
    assert blob_id(text(2)) in plan.dropped
    assert plan.freed == frames_size(root, plan.dropped)
    assert run_compaction(root).is_done
    assert_sound(root)


def test_a_segment_is_not_rewritten_if_deltas_need_most_of_it(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    junk = random.Random(1).randbytes(20_000)
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        write(workspace, "a", junk)
    needless = left_alone(root)
    seal(root)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "a", junk + b"1")
        write(workspace, "a", junk + b"2")
        write(workspace, "b", random.Random(2).randbytes(5_000))
    expire(root, 1, 2)
    plan = planned(root)
    assert (plan.segments, plan.freed) == ((), 0)
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        # If the deltas are encoded again, it can be removed, although nothing else of their segment is.
        assert plan_compaction(journal, all_segments=True, skips_unprofitable=True).dropped == {blob_id(junk), needless}


def test_unprofitable_segments_and_a_short_last_one_can_be_skipped(root: Path) -> None:
    def spared() -> tuple[int, ...]:
        with closing(Journal(str(root), CountdownDisk(None))) as journal:
            return plan_compaction(journal, all_segments=True, skips_unprofitable=True).segments

    assert spared() == (1,)  # the last one, and all of the log
    seal(root)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "large", random.Random(1).randbytes(50_000))
    seal(root)
    left_alone(root)
    assert spared() == (1,)


def test_a_delta_whose_base_is_removed_gets_the_next_kept_base(root: Path) -> None:
    first, between, last = (text(EDITS + version) for version in range(3))
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing() as batch:
        batch.blob(first)
        batch.blob(between, blob_id(first))
        batch.blob(last, blob_id(between))
        journal.commit(batch, ())
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        workspace.retention.pin([], [blob_id(first), blob_id(last)], who="somebody")
    assert run_compaction(root, all_segments=True).is_done
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        assert not journal.store.has(blob_id(between))
        found = journal.store.blob_place(blob_id(last))
        assert found is not None
        assert parse_blob_header(journal.store.log.read(found.place).payload).base == blob_id(first)
    assert_sound(root)


def test_the_index_is_updated_and_not_rebuilt(root: Path) -> None:
    name = blob_id(text(EDITS - 1))
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        journal.store.sha256(name)
    run_compaction(root)
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        assert journal.store.index.blobs.sha256(name) == hashlib.sha256(text(EDITS - 1)).digest()


def test_an_index_is_rebuilt_from_the_present_log(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        run_compaction(root)
        journal.store.index.rebuild()
    assert tables(root / ".cas" / "index.sqlite") == rebuilt_tables(root / ".cas")


# ---- who looks on


def compact_twice(root: Path) -> None:
    """Rewrite all segments twice."""
    run_compaction(root, all_segments=True)
    expire(root, 21)
    run_compaction(root, all_segments=True)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace as `start`, in several segments."""
    root = tmp_path_factory.mktemp("several")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("objstore.storage.log.segments.ROTATE_AT", 4000)
        with Workspace.init(root, CountdownDisk(None)) as workspace:
            for version in range(EDITS):
                write(workspace, "a.txt", text(version))
    expire(root, *range(1, 21))
    assert len(list((root / ".cas" / "segments").glob("*.seg"))) > 2
    return root


def read_remains(root: Path) -> None:
    with SegmentScan(str(root / ".cas" / "segments")) as remains:
        assert remains.damage == []
        assert remains.missing_segments() == []
        for name in remains.blobs:
            remains.verify(name)


def checked(root: Path) -> None:
    assert check_store(str(root), quick=True).faults == ()


def read_history(root: Path) -> None:
    kept = held(root) - {blob_id(text(19)), blob_id(text(20))}  # edit 21 expires meanwhile
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        assert len(workspace.history.edits()) == EDITS
        for name in kept:
            assert blob_id(workspace.history.blob(name)) == name


@pytest.mark.parametrize(
    ("look", "stride"), [(read_remains, 31), (checked, 83), (read_history, 83)], ids=["remains", "check", "history"]
)
def test_readers_find_no_fault_while_segments_are_rewritten(
    several: Path, tmp_path: Path, look: Callable[[Path], None], stride: int
) -> None:
    for moment in interruption_points(stride):
        root = tmp_path / str(moment.step)
        shutil.copytree(several, root)
        with interrupted_at(moment, partial(compact_twice, root)):
            look(root)
        shutil.rmtree(root)


def test_a_bundle_that_is_exported_during_a_rewrite_is_complete(several: Path, tmp_path: Path) -> None:
    for moment in interruption_points(71):
        root, bundle, made = (tmp_path / f"{moment.step}{what}" for what in ("", ".bundle", "-made"))
        shutil.copytree(several, root)
        opened = Workspace.open(root, CountdownDisk(None))
        with opened as workspace, interrupted_at(moment, partial(compact_twice, root)):
            workspace.transfer.export_bundle(str(bundle))
        import_bundle(str(bundle), str(made), disk=CountdownDisk(None))
        assert check_store(str(made), quick=True).faults == ()
        for path in (root, made):
            shutil.rmtree(path)


@pytest.mark.parametrize(
    ("is_marked", "behind"),
    [(True, b""), (False, b""), (False, b"x"), (False, bytes(100))],
    ids=["marked", "unmarked", "a byte behind", "zeros behind"],
)
def test_a_log_that_ends_in_a_rewritten_segment_continues_after_it(
    root: Path, behind: bytes, *, is_marked: bool
) -> None:
    run_compaction(root, all_segments=True)
    store = root / ".cas"
    begun = store / "segments" / "00000002.seg"
    assert begun.stat().st_size == SEGMENT_HEADER_SIZE
    begun.unlink()  # as of a copy that stopped
    with (store / "segments" / "00000001.1.seg").open("ab") as last:
        last.write(behind)
    report = check_store(str(root))
    if is_marked:
        assert [fault.part for fault in report.faults] == [StorePart.MARK]
        report = repair_store(report)
    else:
        (store / "applied").unlink()
        report = check_store(str(root))
    assert report.faults == ()
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "c.txt", b"behind it\n")
    assert begun.stat().st_size > SEGMENT_HEADER_SIZE
    assert check_store(str(root)).faults == ()
    assert_sound(root)
