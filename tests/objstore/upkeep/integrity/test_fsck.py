"""Test that fsck finds and names damage, rebuilds what is derived, and finds no fault in a sound store."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Event
from typing import Final

import pytest

from cli.app.error_hints import fault_meaning
from objstore import (
    BlobId,
    CallInfo,
    FileState,
    Operation,
    Origin,
    Seq,
    Status,
    Unit,
    Workspace,
    blob_id,
    check_store,
    repair_store,
)
from objstore.disk.fs.disk import Disk
from objstore.history.documents import loader
from objstore.model.basic_types import DocumentId
from objstore.model.ids import record_id
from objstore.model.record_codec import decode_record
from objstore.model.tree import TreeEntry, entry_at
from objstore.storage.index.rows import EditConditions
from objstore.storage.log.applied_marker import APPLIED_MARKER_SIZE
from objstore.storage.log.blob_codec import decode_blob, encode_blob
from objstore.storage.log.frames import FRAME_HEADER_SIZE, FrameKind
from objstore.storage.log.segments import Log
from objstore.storage.store.write_batch import Batch
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.integrity.fsck import Advice, StorePart
from objstore.upkeep.integrity.segment_scan import SegmentScan
from tests.support.call_counts import count_calls
from tests.support.crash_scenarios import TEXT, change, history, rejected, write
from tests.support.damaged_stores import damage, lose

SAMPLES: Final = 60


@pytest.fixture(scope="module")
def sound_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a sound workspace; tests may only copy it."""
    root = tmp_path_factory.mktemp("sound") / "ws"
    root.mkdir()
    with pytest.MonkeyPatch.context() as patch, Workspace.init(root) as workspace:
        patch.setattr("objstore.storage.log.segments.ROTATE_AT", 2000)
        for i in range(8):
            write(workspace, "a.txt", TEXT.replace(b"line 7\n", b"line 7 is now %d\n" % i))
        change(workspace, ("b.txt", b"b\n"), ("dir/c", b"c\n"))
        rejected(workspace, 8)
    return root


@pytest.fixture
def root(sound_workspace: Path, tmp_path: Path) -> Path:
    """Return a copy of the sound workspace, to be damaged."""
    return Path(shutil.copytree(sound_workspace, tmp_path / "ws"))


def parts(root: Path, *, quick: bool = False) -> set[StorePart]:
    return {fault.part for fault in check_store(str(root), quick=quick).faults}


def segments(root: Path) -> list[Path]:
    return sorted((root / ".cas" / "segments").iterdir())


def change_index(root: Path, statement: str) -> None:
    """Change the index directly with SQL."""
    with sqlite3.connect(root / ".cas" / "index.sqlite") as db:
        assert db.execute(statement).rowcount != 0
    db.close()


@pytest.mark.parametrize("quick", [False, True])
def test_a_sound_store_has_no_fault(root: Path, quick: bool) -> None:  # noqa: FBT001 -- pytest passes by name
    report = check_store(str(root), quick=quick)
    assert (report.faults, report.notes) == ((), ())
    assert (report.blobs, report.records, report.segments) == (10, 11, len(segments(root)))
    assert report.documents == (0 if quick else 3)


def test_a_check_decodes_each_record_once(tmp_path: Path) -> None:
    with Workspace.init(tmp_path) as workspace:
        for text in (b"one\n", b"two\n", b"three\n"):
            write(workspace, "a.txt", text)
        rejected(workspace, 2, 3)
    assert count_calls(lambda: check_store(str(tmp_path)), decode_record.__code__) == 4


def test_a_check_decodes_each_blob_once_whatever_the_cache_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.init(tmp_path) as workspace:
        for i in range(140):
            write(workspace, f"{i % 2}.txt", TEXT.replace(b"line 7\n", b"line 7 is now %d\n" % i))
    monkeypatch.setattr("objstore.upkeep.integrity.segment_scan._CACHE_BYTES", 0)
    assert count_calls(lambda: check_store(str(tmp_path)), decode_blob.__code__) == 140
    assert not (tmp_path / ".cas/cache").exists()  # a check writes nothing


def test_any_flipped_byte_is_found(root: Path) -> None:
    chance = random.Random(5)
    sizes = [(path, offset) for path in segments(root) for offset in range(path.stat().st_size)]
    for path, offset in chance.sample(sizes, SAMPLES):
        before = path.read_bytes()
        damaged = bytearray(before)
        damaged[offset] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        assert StorePart.SEGMENTS in parts(root, quick=True), (path.name, offset)
        path.write_bytes(before)
    assert parts(root) == set()


def test_log_truncated_anywhere_is_found_even_between_two_groups(root: Path) -> None:
    last = segments(root)[-1]
    content = last.read_bytes()
    for size in range(64, len(content), 7):
        last.write_bytes(content[:size])
        assert StorePart.MARK in parts(root, quick=True), size
    last.unlink()
    assert StorePart.MARK in parts(root, quick=True)


def test_missing_segment_is_named_with_the_lost_edits(root: Path) -> None:
    segments(root)[1].unlink()
    faults = check_store(str(root)).faults
    assert "segment 2 is missing" in [fault.what for fault in faults]
    chain = next(fault for fault in faults if fault.part is StorePart.RECORDS)
    assert chain.edits
    assert chain.advice is Advice.SALVAGE


def record_snapshots(root: Path) -> dict[str, BlobId]:
    """Record a baseline with a folder and a file, and then a snapshot with another file; return what each refers to."""
    (root / "never").mkdir()
    (root / "never/one").write_bytes(b"never recorded\n")
    with Workspace.open(root) as workspace:
        workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
        (root / "kept").write_bytes(b"kept\n")
        later = workspace.snapshots.take(who="me").view.root
        shared = entry_at(later, b"never", workspace.history.blob)
        assert isinstance(shared, TreeEntry)
        write(workspace, "b.txt", b"b again\n")
        return {"tree of both": shared.blob, "tree of 2": later, "file of 2": blob_id(b"kept\n")}


@pytest.mark.parametrize(
    ("what", "meaning", "way"),
    [
        (
            "tree of both",
            "Snapshots 1 2 can't be compared or restored, and garbage collection deletes nothing.",
            "`cas snapshot delete 2` deletes it; snapshot 1 is the baseline, which the next `cas record` replaces.",
        ),
        (
            "tree of 2",
            "Snapshot 2 can't be compared or restored, and garbage collection deletes nothing.",
            "`cas snapshot delete 2` deletes it.",
        ),
        ("file of 2", "A file of snapshot 2 can't be shown or restored.", "`cas snapshot delete 2` deletes it."),
    ],
)
def test_lost_parts_of_snapshots_are_reported_with_working_advice(
    root: Path, what: str, meaning: str, way: str
) -> None:
    lost = record_snapshots(root)[what]
    damage(root, lost)
    meanings = [fault_meaning(fault) for fault in check_store(str(root)).faults if lost.hex() in fault.what]
    assert meanings == [f"{meaning} Once `cas salvage` has made a new store from the rest, {way}"]
    lose(root)
    (fault,) = check_store(str(root)).faults
    assert (fault.part, fault.what) == (StorePart.BLOBS, f"blob {lost.hex()}: no frame of it can be read")
    assert fault_meaning(fault) == f"{meaning} {way[0].upper()}{way[1:]}"
    with Workspace.open(root) as workspace:
        workspace.snapshots.delete([2], who="me")
        (root / "never/two").write_bytes(b"two\n")
        workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    assert check_store(str(root)).faults == ()


@pytest.mark.parametrize("size", [0, APPLIED_MARKER_SIZE - 1, APPLIED_MARKER_SIZE + 1, 4096])
def test_applied_marker_of_a_wrong_size_is_ignored_and_written_again(root: Path, size: int) -> None:
    mark = root / ".cas" / "applied"
    mark.write_bytes(b"\xff" * size)
    assert parts(root) == set()
    with Workspace.open(root) as workspace:
        write(workspace, "b.txt", b"b again\n")
    assert mark.stat().st_size == APPLIED_MARKER_SIZE
    assert parts(root) == set()


def test_an_unfinished_write_is_no_fault(root: Path) -> None:
    with segments(root)[-1].open("ab") as file:
        file.write(b"\xf5\xca\x5e\xfa half a frame")
    report = check_store(str(root))
    assert report.faults == ()
    assert "unfinished write" in report.notes[0].what


@pytest.mark.parametrize("left", [0, 30, 64])
def test_a_last_segment_whose_header_is_cut_off_is_damage_of_the_log(root: Path, left: int) -> None:
    """No write leaves such a header, but a copy to a full disk does."""
    last = segments(root)[-1]
    behind = last.with_name(f"{int(last.stem) + 1:08d}.seg")
    behind.write_bytes(bytes(left))
    index = (root / ".cas" / "index.sqlite").stat()
    report = check_store(str(root))
    assert [(fault.part, fault.repairable) for fault in report.faults] == [(StorePart.SEGMENTS, False)]
    assert behind.name in report.faults[0].what
    assert report.faults[0].advice is Advice.SALVAGE
    repair_store(report)
    left_alone = (root / ".cas" / "index.sqlite").stat()
    assert (left_alone.st_ino, left_alone.st_ctime_ns) == (index.st_ino, index.st_ctime_ns)


def test_a_file_changed_outside_is_no_fault(root: Path) -> None:
    (root / "b.txt").write_bytes(b"typed\n")
    report = check_store(str(root))
    assert report.faults == ()
    assert "b.txt" in report.notes[0].what


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE edits SET status = 'a' WHERE seq = 2",
        "UPDATE documents SET mode = 0 WHERE id = 1",
        "DELETE FROM blobs WHERE depth > 1",
        "DELETE FROM decided",
        "INSERT INTO folders VALUES (99, x'61', 'm', 1, 0, 1)",
        "DELETE FROM paths WHERE document = 1",
    ],
)
def test_an_index_that_differs_from_the_log_is_found_and_rebuilt(root: Path, statement: str) -> None:
    with Workspace.open(root) as workspace:
        before = history(workspace)
    change_index(root, statement)
    report = check_store(str(root))
    assert StorePart.INDEX in {fault.part for fault in report.faults}
    assert repair_store(report).faults == ()
    with Workspace.open(root) as workspace:
        assert history(workspace) == before


def test_an_index_that_can_not_be_read_to_its_end_is_found(root: Path) -> None:
    path = root / ".cas" / "index.sqlite"
    with Workspace.open(root) as workspace:
        for i in range(100):
            write(workspace, "many.txt", b"%d\n" % i)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = db.execute("PRAGMA page_size").fetchone()[0]
        top = (db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'blobs'").fetchone()[0] - 1) * size
    content = bytearray(path.read_bytes())
    # Of a table that takes several pages, the first one can be read, and the last one can't.
    last = (int.from_bytes(content[top + 8 : top + 12], "big") - 1) * size
    assert (content[top], content[last]) == (2, 10)
    content[last] = 0xFF
    path.write_bytes(content)
    report = check_store(str(root))
    assert StorePart.INDEX in {fault.part for fault in report.faults}
    assert repair_store(report).faults == ()


def test_a_wrong_reference_count_is_found_and_repaired(root: Path) -> None:
    change_index(root, "UPDATE blobs SET refs = refs + 1 WHERE depth = 0")
    report = check_store(str(root))
    assert StorePart.REFCOUNTS in {fault.part for fault in report.faults}
    assert repair_store(report).faults == ()


def set_position_after_a_record(root: Path) -> None:
    """Set the position of the index after a record that it has not ingested, as a race of earlier versions could."""
    with closing(Log(str(root / ".cas" / "segments"), Disk())) as log:
        groups = list(log.groups(log.first))
    ends = [(group.end.segment, group.end.offset) for group in groups]
    before, end = groups[-3], ends[-2]
    record = next(frame for frame in reversed(before.frames) if frame.kind is FrameKind.RECORD)
    last = record_id(bytes(record.payload)).hex()
    known = f"last_record = x'{last}', last_segment = {before.segment}, last_offset = {record.offset}"
    change_index(root, f"UPDATE position SET segment = {end[0]}, offset = {end[1]}, {known}")  # noqa: S608 - its own names


def test_an_index_that_can_not_be_opened_is_rebuilt(root: Path) -> None:
    with Workspace.open(root) as workspace:
        before = history(workspace)
    set_position_after_a_record(root)
    report = check_store(str(root))
    assert [(fault.part, fault.repairable) for fault in report.faults] == [(StorePart.INDEX, True)]
    assert repair_store(report).faults == ()
    with Workspace.open(root) as workspace:
        assert history(workspace) == before


def test_an_applied_marker_beyond_the_log_stops_writes_until_it_is_repaired(root: Path) -> None:
    last = segments(root)[-1]
    # Truncate the log exactly between its last two groups.
    with Workspace.open(root) as workspace:
        size = last.stat().st_size
        write(workspace, "b.txt", b"b again\n")
    os.truncate(segments(root)[-1], size if segments(root)[-1] == last else 64)
    report = check_store(str(root))
    assert [fault.part for fault in report.faults] == [StorePart.MARK]
    assert repair_store(report).faults == ()
    with Workspace.open(root) as workspace:
        write(workspace, "other", b"goes on\n")


def test_damage_in_the_newest_group_is_not_reported_as_blocking_writes(root: Path) -> None:
    with Workspace.open(root) as workspace:
        write(workspace, "d.txt", b"newest\n")
    with SegmentScan(str(root / ".cas" / "segments")) as remains:
        spots = [remains.span(name) for name in remains.blobs]
        span = max(span for span in spots if span.file == len(remains.segments) - 1)
        path = Path(remains.segments[span.file].path)
    content = bytearray(path.read_bytes())
    content[span.offset + FRAME_HEADER_SIZE + span.size - 1] ^= 1
    path.write_bytes(content)
    (mark,) = [fault for fault in check_store(str(root)).faults if fault.part is StorePart.MARK]
    assert "no write" not in mark.meaning
    assert mark.advice is Advice.SALVAGE
    assert not mark.repairable
    with Workspace.open(root) as workspace:
        write(workspace, "e.txt", b"behind it\n")
    assert StorePart.SEGMENTS in parts(root)


def test_fsck_changes_neither_log_nor_applied_marker_nor_files(root: Path) -> None:
    def look() -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file() and not path.name.startswith("index")
        }

    (root / ".cas" / "applied").write_bytes(b"nonsense")
    before = look()
    check_store(str(root))
    assert look() == before


def test_repair_changes_only_derived_data(root: Path) -> None:
    path = segments(root)[0]
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    report = check_store(str(root))
    assert repair_store(report).faults == report.faults
    assert path.read_bytes() == content


def append_record(root: Path, fill: Callable[[Batch], None]) -> None:
    """Append a record that no writer would append."""
    with closing(Journal(str(root), Disk())) as journal, journal.writing() as batch:
        fill(batch)
        journal.commit(batch, [])


def test_an_inconsistent_history_is_found(root: Path) -> None:
    with Workspace.open(root) as workspace:
        last = workspace.history.edits()[-1].edit

    def append_inconsistent_edit(batch: Batch) -> None:
        state = FileState(blob=batch.blob(b"from nowhere\n"), mode=0o644)
        batch.record(replace(last, seq=Seq(last.seq + 1), operation=Operation.EDIT, before=state, after=state))

    append_record(root, append_inconsistent_edit)
    (fault,) = check_store(str(root)).faults
    assert (fault.part, fault.paths) == (StorePart.DOCUMENTS, ("dir/c",))
    assert "can be decided on" in fault.meaning


def test_blob_with_a_wrong_id_is_found_with_the_edits_that_name_it(root: Path) -> None:
    with Workspace.open(root) as workspace:
        last = workspace.history.edits()[-1].edit
    false = blob_id(b"true")
    with closing(Journal(str(root), Disk())) as journal, journal.writing():
        _, payload = encode_blob(b"false", name=false)
        journal.store.append([(FrameKind.BLOB, payload)])
    state = FileState(blob=false, mode=0o644)

    def named(batch: Batch) -> None:
        batch.record(replace(last, seq=Seq(last.seq + 1), after=state))

    append_record(root, named)
    faults = check_store(str(root)).faults
    blob = next(fault for fault in faults if fault.part is StorePart.BLOBS)
    assert (blob.edits, blob.paths) == ((last.seq + 1,), ("dir/c",))
    assert "do not hash to its name" in blob.what


def test_leftovers_of_interrupted_writes_are_reported_and_removed(root: Path) -> None:
    (root / ".cas" / "tmp" / ".cas-left").write_bytes(b"half")
    report = check_store(str(root))
    assert (report.leftovers, report.faults) == (1, ())
    assert repair_store(report).leftovers == 0


def test_a_store_without_any_segment_is_damaged(root: Path) -> None:
    for path in segments(root):
        path.unlink()
    assert parts(root) == {StorePart.SEGMENTS}


def test_each_missing_segment_is_found(root: Path, tmp_path: Path) -> None:
    for path in segments(root):
        path.rename(tmp_path / path.name)
        assert {StorePart.SEGMENTS, StorePart.RECORDS, StorePart.MARK} & parts(root), path.name
        (tmp_path / path.name).rename(path)


def test_fsck_finds_no_fault_during_concurrent_writes(root: Path) -> None:
    enough = Event()

    def write_on(name: str) -> None:
        with Workspace.open(root) as workspace:
            for i in count():
                write(workspace, f"{name}{i % 7}", b"%d\n" % i * 50)
                if enough.is_set():
                    return

    with ThreadPoolExecutor(2) as writers:
        writing = [writers.submit(write_on, name) for name in "xy"]
        try:
            for is_quick in (True, True, False):
                assert check_store(str(root), quick=is_quick).faults == ()
        finally:
            enough.set()
        for written in writing:
            written.result()
    assert check_store(str(root)).notes == ()


def test_progress_counts_what_is_checked(root: Path) -> None:
    reported: list[tuple[str, int, int]] = []
    check_store(str(root), progress=lambda what, done, total: reported.append((what, done, total)))
    assert [step for step in reported if step[0] == "blobs"] == [("blobs", i, 10) for i in range(10)]
    kinds = {"bytes of segments", "bytes of the log", "blobs", "documents"}
    assert {what for what, _, _ in reported} == kinds
    for kind in kinds:
        counted = [done for what, done, total in reported if what == kind and done <= total]
        assert counted == sorted(counted)
        assert len(counted) == sum(what == kind for what, _, _ in reported)


def test_statuses_are_unchanged_by_a_repair(root: Path) -> None:
    change_index(root, "UPDATE edits SET status = 'p', units = 'pp' WHERE seq = 8")
    repair_store(check_store(str(root)))
    with Workspace.open(root) as workspace:
        assert workspace.history.edit(8).status is Status.REJECTED


def test_a_cached_weave_that_differs_from_the_journal_is_found_and_rebuilt(root: Path) -> None:
    with closing(Journal(str(root), Disk())) as journal, journal.reading():
        loaded = loader.load_document(journal, DocumentId(1))
        edits = journal.store.index.edits.matching(EditConditions(paths=[b"a.txt"]))
        last = journal.store.index.decisions.id(1)
        loaded.set_statuses({Unit(Seq(2), 1): Status.ACCEPTED})
        position = loader._Position(edits[-1].seq, edits[-1].id, 1, last)  # noqa: SLF001 - a wrong one has to be forged
        loader._cache(journal, loaded, position)  # noqa: SLF001 - as above
    assert parts(root, quick=True) == set()
    report = check_store(str(root))
    assert {fault.part for fault in report.faults} == {StorePart.WEAVES}
    assert repair_store(report).faults == ()
    assert not list((root / ".cas" / "cache").glob("weave-*"))


@pytest.mark.parametrize(
    "name",
    [
        "00000001 (alice's conflicted copy 2026-11-28).seg",
        "00000001.sync-conflict-20261128-101112-ABCDEFG.seg",
        "00000001 (1).seg",
        "00000001-LAPTOP.seg",
        "00000001 2.seg",
        "00000001.3 (conflicted copy 2026-11-28 101112).seg",
    ],
)
def test_conflict_copy_of_a_segment_is_named_and_is_no_fault(root: Path, name: str) -> None:
    (first, *_) = segments(root)
    (first.parent / name).write_bytes(first.read_bytes())
    report = check_store(str(root))
    assert report.faults == ()
    assert [name in note.what for note in report.notes] == [True]
    assert (first.parent / name).exists()
