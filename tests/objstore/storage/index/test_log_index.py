"""Check that the index always equals one rebuilt from the log, whatever happens to it or to the log."""

import gc
import itertools
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import example, given, strategies as st

from objstore import (
    Action,
    BlobId,
    CallAborted,
    CallInfo,
    Decided,
    EditTakenOut,
    OnExternal,
    Status,
    StoreError,
    Unit,
    Workspace,
    blob_id,
    check_store,
)
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.disk.fs.disk import Disk
from objstore.model.basic_types import DocumentId, FileState, Operation, Origin, Seq
from objstore.model.ids import HASH_SIZE, RecordId, record_id
from objstore.model.ranges import ranges_of
from objstore.model.record_codec import encode_record
from objstore.model.records import Decision, Edit, Expiry, Record, Snapshot, Void
from objstore.model.tree import FOLDER, TreeEntry, encode_tree
from objstore.storage.index.ingest import LogIngest
from objstore.storage.index.log_index import Index
from objstore.storage.index.refcounts import RefCounts, recount
from objstore.storage.index.rows import decode_reasons
from objstore.storage.log.blob_codec import Base, encode_blob
from objstore.storage.log.frames import FrameKind
from objstore.storage.log.segments import Group, Log, create_log
from objstore.storage.transaction.journal import Journal
from objstore.text.hunks import Hunk
from objstore.values.errors import StoreDamaged, StoreLocked
from objstore.values.fastclass import replace
from tests.support.crash_scenarios import rejected, write
from tests.support.faulty_disk import WHOLE, CountdownDisk, broken_disk
from tests.support.index_tables import Tables, counted_refs, index_at, rebuilt_tables, records_of, tables
from tests.support.interruption import interrupted_at, interruption_points

if TYPE_CHECKING:
    from objstore.storage.log.segment_files import Place

NAMES: Final = ("a.txt", "b.txt", "folder/c.txt")


def play(root: Path, seed: int, length: int) -> None:
    """Run random operations in a workspace: writes, moves, deletions, decisions, external changes, failed calls."""
    chance = random.Random(seed)
    for _ in range(length):
        # A disk that fails in the middle of every tenth call leaves voids in the log.
        failing = chance.random() < 0.1
        disk = CountdownDisk(chance.randrange(3, 6) if failing else None, broken_disk, lasting=False)
        with Workspace.open(root, disk) as workspace:
            _play_one(workspace, chance)


def _play_one(workspace: Workspace, chance: random.Random) -> None:
    try:
        match chance.choice(("write", "write", "write", "several", "move", "delete", "decide", "undo", "outside")):
            case "write":
                write(workspace, chance.choice(NAMES), _text(chance))
            case "several":
                with workspace.call(CallInfo(tool="t", conversation=f"c{chance.randrange(3)}")) as call:
                    for name in NAMES:
                        call.write(name, _text(chance))
                    call.commit()
            case "move" | "delete" as operation:
                with workspace.call(CallInfo(tool="t")) as call:
                    existing = [name for name in NAMES if call.exists(name)]
                    free = [name for name in NAMES if name not in existing]
                    if existing and operation == "delete":
                        call.delete(chance.choice(existing))
                    elif existing and free:
                        call.move(chance.choice(existing), chance.choice(free))
                    call.commit()
            case "decide":
                edits = workspace.history.edits()
                if edits:
                    edit = chance.choice(edits)
                    units = [Unit(edit.seq, hunk) for hunk in range(len(edit.units)) if chance.random() < 0.7]
                    action = chance.choice((Action.ACCEPT, Action.REJECT, Action.RESET))
                    with suppress(EditTakenOut):
                        workspace.decide(action, units, reason=_text(chance).decode(), on_external=OnExternal.KEEP)
            case "undo":
                workspace.review.undo(on_external=OnExternal.KEEP)
            case _:
                path = Path(workspace.root) / chance.choice(NAMES)
                if path.exists():
                    path.write_bytes(_text(chance))
    except (CallAborted, StoreError):
        pass


def _text(chance: random.Random) -> bytes:
    return b"".join(b"%d\n" % chance.randrange(4) for _ in range(chance.randrange(1, 12)))


@pytest.fixture(scope="module")
def played_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("workspace")
    Workspace.init(root).close()
    play(root, seed=4, length=60)
    return root


@pytest.fixture
def root(played_root: Path, tmp_path: Path) -> Path:
    """Return a copy of a workspace with some history."""
    shutil.copytree(played_root, tmp_path / "workspace")
    return tmp_path / "workspace"


def index_path(root: Path) -> Path:
    return root / ".cas" / "index.sqlite"


def open_and_read_tables(root: Path) -> Tables:
    """Open and close the workspace; return the tables of its index."""
    Workspace.open(root, CountdownDisk(None)).close()
    return tables(index_path(root))


# ---- equal to a rebuilt one


@pytest.mark.parametrize("seed", range(4 if WHOLE else 2))
def test_index_equals_a_rebuilt_one_after_any_history(tmp_path: Path, seed: int) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    Workspace.init(root, CountdownDisk(None)).close()
    for part in range(3):
        play(root, seed=seed * 10 + part, length=12)
        # A call that could not be rolled back is in the log, and its process has not read it again.
        assert open_and_read_tables(root) == rebuilt_tables(root / ".cas")


@pytest.mark.parametrize("is_writing", [False, True], ids=["reading", "writing"])
def test_ctrl_c_in_the_middle_of_a_statement_interrupts_and_leaves_the_index(root: Path, *, is_writing: bool) -> None:
    """SQLite keeps what is raised while it computes a checksum, and reports another error."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(row_checksum(i)) FROM n"

    def wait(journal: Journal) -> None:
        with journal.reading() as store, store.index.changing() if is_writing else nullcontext():
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            store.index._db.connection.execute(endless).fetchone()  # noqa: SLF001 - a statement that takes long

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with closing(Journal(str(root), Disk())) as journal:
            inode = (root / ".cas/index.sqlite").stat().st_ino
            with pytest.raises(KeyboardInterrupt):
                wait(journal)
            with journal.reading() as store:
                assert store.index.edits.count()
        assert (root / ".cas/index.sqlite").stat().st_ino == inode
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_closed_index_is_freed_without_the_garbage_collector(root: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        with Workspace.open(root) as workspace:
            write(workspace, "a.txt", b"again\n")
        del workspace
        assert not [held for held in gc.get_objects() if isinstance(held, (Index, LogIngest, RefCounts))]
    finally:
        gc.enable()


def test_what_is_left_in_the_middle_may_end_after_its_workspace(root: Path) -> None:
    with Workspace.open(root) as workspace:
        steps = workspace.history.series(workspace.history.unexpired())
        next(steps)
    del steps  # as after Ctrl-C: an error of it would be printed, and fails this test


def test_random_history_contains_every_kind_of_record(played_root: Path) -> None:
    kinds = {type(record).__name__ for record in records_of(played_root / ".cas")}
    assert kinds == {"Edit", "Decision", "Void"}
    operations = {record.operation for record in records_of(played_root / ".cas") if isinstance(record, Edit)}
    assert operations == {Operation.CREATE, Operation.REPLACE, Operation.EDIT, Operation.MOVE, Operation.DELETE}


def test_refcounts_match_the_records(played_root: Path) -> None:
    counted = recount(records_of(played_root / ".cas"), lambda _: None, lambda _: ())
    with closing(sqlite3.connect(index_path(played_root))) as db:
        refs = dict(db.execute("SELECT id, refs FROM blobs"))
    assert refs == {blob: counted.get(blob, 0) for blob in refs}
    assert set(counted) <= set(refs)


def test_every_blob_that_a_record_names_can_be_read(played_root: Path) -> None:
    with Workspace.open(played_root) as workspace:
        for name in counted_refs(records_of(played_root / ".cas")):
            assert blob_id(workspace.history.blob(BlobId(name))) == name


# ---- what may happen to it


def delete(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(path: Path) -> None:
    path.write_bytes(random.Random(7).randbytes(20_000))


def damage_inside(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = random.Random(7).randbytes(len(content) - 4096)
    path.write_bytes(content)


def set_other_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def replace_by_another(path: Path) -> None:
    other = path.parent.parent.parent / "other"
    other.mkdir()
    with Workspace.init(other, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"of the other store\n")
    shutil.copy(index_path(other), path)


def drop_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE position")


def replace_by_older(path: Path) -> None:
    root = path.parent.parent
    kept = path.read_bytes()
    play(root, seed=5, length=5)
    path.write_bytes(kept)


@pytest.mark.parametrize(
    "damage",
    [
        delete,
        truncate,
        empty,
        overwrite,
        damage_inside,
        set_other_version,
        replace_by_another,
        drop_table,
        replace_by_older,
    ],
    ids=lambda damage: damage.__name__,
)
def test_a_missing_or_damaged_index_is_rebuilt(root: Path, damage: Callable[[Path], None]) -> None:
    damage(index_path(root))
    assert open_and_read_tables(root) == rebuilt_tables(root / ".cas")


def test_index_is_complete_after_a_rebuild_interrupted_at_any_step(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "objstore.storage.index.log_index._LARGE_CACHE_KIB", 20
    )  # so that much of it is written before it is done
    cuts: list[Path] = []
    statements = itertools.count()

    def cut(_: str) -> None:
        # What a process leaves that is killed here: all that it has written, in the order in which it has.
        if next(statements) % 40 == 0:
            cuts.append(shutil.copytree(root / ".cas", tmp_path / f"cut{len(cuts)}" / ".cas"))

    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        with journal.store.index.changing() as db:
            db.set_trace_callback(cut)
        journal.store.index.recreate()
        db.set_trace_callback(None)
    expected = rebuilt_tables(root / ".cas")
    assert len(cuts) > 5
    assert len({(made / "index.sqlite-wal").read_bytes() for made in cuts}) > 5
    for made in cuts:
        assert open_and_read_tables(made.parent) == expected


REBUILDER: Final = """
import sys
from objstore.storage.log.blob_codec import encode_blob
from objstore.disk.fs.disk import Disk
from objstore.storage.transaction.journal import Journal
journal = Journal(sys.argv[1], Disk())
print("begun", flush=True)
while True:
    journal.recreate(index=True, mark=False)
"""


def test_index_is_complete_after_a_killed_rebuild(root: Path) -> None:
    expected = rebuilt_tables(root / ".cas")
    chance = random.Random(11)
    for _ in range(6 if WHOLE else 2):
        words = [sys.executable, "-c", REBUILDER, str(root)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=Path(__file__).parents[4]) as maker:
            assert maker.stdout is not None
            assert maker.stdout.readline() == b"begun\n"
            time.sleep(chance.uniform(0, 0.1))
            maker.kill()
        assert open_and_read_tables(root) == expected
        assert not [path.name for path in (root / ".cas").iterdir() if path.name.startswith("index.sqlite.")]


def test_the_index_is_rebuilt_while_others_write(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        with (
            closing(Journal(str(root), CountdownDisk(None))) as other,
            other.writing(),  # reading does not ask for the lock
            journal.store.second_index() as second,
        ):
            assert second is not None
            assert second.end == journal.store.end
        with journal.store.second_index() as second:
            play(root, seed=9, length=6)
            with Workspace.open(root, CountdownDisk(None)) as reader, journal.writing():
                asked, end = reader.history.edits(), journal.store.end
                assert second is not None
                assert second.end < end
                journal.store.index.recreate(second)
                assert journal.store.end == end  # no reader sees an older index
                assert reader.history.edits() == asked
        assert tables(index_path(root)) == rebuilt_tables(root / ".cas")
        write_more(journal, root)
    assert open_and_read_tables(root) == rebuilt_tables(root / ".cas")


def write_more(journal: Journal, root: Path) -> None:
    """Write in another workspace object, and check that this journal's index ingests it."""
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "more.txt", b"more\n")
        seq = workspace.history.edits()[-1].seq
    with journal.reading() as store:
        assert store.index.numbers.next_seq() == seq + 1


def test_segments_that_were_rewritten_during_a_rebuild_are_read_again(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.store.second_index() as second:
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            units = [Unit(view.seq, n) for view in workspace.history.edits() for n in range(len(view.units))]
            workspace.decide(Action.ACCEPT, units)
            workspace.retention.collect(RetentionLimits(older_than=0, max_size=None), thorough=True)
        assert (root / ".cas" / "segments" / "00000001.1.seg").exists()
        assert second is not None
        with journal.writing():
            journal.store.index.recreate(second)
        assert tables(index_path(root)) == rebuilt_tables(root / ".cas")


@pytest.mark.parametrize("is_damaged", [False, True])
def test_rebuild_restores_the_cache_size(root: Path, *, is_damaged: bool) -> None:
    def memory() -> object:
        with journal.store.index.changing() as db:
            return db.execute("PRAGMA cache_size").fetchone()

    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        usual = memory()
        if is_damaged:
            segment = root / ".cas" / "segments" / "00000001.seg"
            content = segment.read_bytes()
            segment.write_bytes(content[:100] + b"?" + content[101:])
        with pytest.raises(StoreDamaged) if is_damaged else nullcontext():
            journal.store.index.rebuild()
        assert memory() == usual


def test_an_unfinished_query_does_not_block_a_rebuild(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        with closing(Journal(str(root), CountdownDisk(None))) as other:
            asking = other.store.index.checks.rows("blobs")
            first = next(asking)
            journal.recreate(index=True, mark=False)
            assert first not in list(asking)
        assert tables(index_path(root)) == rebuilt_tables(root / ".cas")


def test_stale_write_ahead_log_is_not_applied_to_the_index(root: Path) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{index_path(root)}{suffix}").write_bytes(random.Random(7).randbytes(40_000))
    assert open_and_read_tables(root) == rebuilt_tables(root / ".cas")


def test_an_index_that_is_ahead_of_the_log_is_rebuilt(root: Path) -> None:
    segment = root / ".cas" / "segments" / "00000001.seg"
    kept, applied = segment.read_bytes(), (root / ".cas" / "applied").read_bytes()
    play(root, seed=6, length=8)
    assert segment.stat().st_size > len(kept)
    segment.write_bytes(kept)
    (root / ".cas" / "applied").write_bytes(applied)
    assert open_and_read_tables(root) == rebuilt_tables(root / ".cas")


def test_an_index_of_a_diverged_log_is_rebuilt(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(root, other)
    for place, content in ((root, b"one way\n"), (other, b"the other\n")):
        with Workspace.open(place, CountdownDisk(None)) as workspace:
            for i in range(4):
                write(workspace, "way.txt", content * (i + 1))
    shutil.copy(index_path(other), index_path(root))
    assert open_and_read_tables(root) == rebuilt_tables(root / ".cas")


def test_the_index_may_be_deleted_under_a_process_that_uses_it(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as first:
        write(first, "first.txt", b"1\n")
        for suffix in ("", "-wal", "-shm"):
            Path(f"{index_path(root)}{suffix}").unlink(missing_ok=True)
        write(first, "first.txt", b"2\n")
        with Workspace.open(root, CountdownDisk(None)) as second:
            write(second, "second.txt", b"1\n")
            write(first, "first.txt", b"3\n")
            assert [edit.seq for edit in first.history.edits()] == [edit.seq for edit in second.history.edits()]
    assert open_and_read_tables(root) == rebuilt_tables(root / ".cas")


# ---- together with other processes


def test_group_ingested_by_a_reader_is_ingested_once(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as writer, Workspace.open(root, CountdownDisk(None)) as reader:
        for i in range(5):
            write(writer, "a.txt", b"%d of the writer\n" % i)
            reader.history.edits()
            rejected(writer, writer.history.edits()[-1].seq)
            reader.review.status()
        assert writer.history.edits() == reader.history.edits()
    assert tables(index_path(root)) == rebuilt_tables(root / ".cas")


# ---- logs that no writer writes


class Forger:
    """Appends forged records to the log of a new store."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / ".cas"
        (self.store / "segments").mkdir(parents=True)
        create_log(str(self.store / "segments"), CountdownDisk(None))
        self._log = Log(str(self.store / "segments"), CountdownDisk(None))
        self._end: Place = self._log.first
        self.last: RecordId | None = None

    def append(self, *encoded: bytes) -> Group:
        group = self._log.append(self._end, [(FrameKind.RECORD, record) for record in encoded])
        self._end, self.last = group.end, record_id(encoded[-1])
        return group

    def append_blob(self, content: bytes, base: Base | None = None) -> None:
        _, payload = encode_blob(content, base)
        self._end = self._log.append(self._end, [(FrameKind.BLOB, payload)]).end

    @property
    def end(self) -> "Place":
        return self._end

    def close(self) -> None:
        self._log.close()

    def index(self, scratch: Path) -> None:
        log = Log(str(self.store / "segments"), Disk())
        with closing(log), index_at(scratch / "index", log):
            pass


@pytest.fixture
def forger(tmp_path: Path) -> Iterator[Forger]:
    (tmp_path / "forged").mkdir()
    with closing(Forger(tmp_path / "forged")) as forger:
        yield forger


def create(seq: int) -> Edit:
    return Edit(
        seq=Seq(seq),
        document=DocumentId(seq),
        time=1,
        conversation="c",
        call=0,
        ordinal=0,
        operation=Operation.CREATE,
        path=b"a%d" % seq,
        before=None,
        after=FileState(blob=blob_id(b""), mode=0o644),
        tool="t",
    )


def test_consecutive_records_are_ingested(forger: Forger, tmp_path: Path) -> None:
    forger.append(encode_record(create(1), None))
    forger.append(encode_record(create(2), forger.last))
    forger.index(tmp_path)


@pytest.mark.parametrize("begins", ["record", "blob"])
def test_records_appended_before_the_next_segment_are_ingested(
    tmp_path: Path, begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever a writer overtakes who reads the log on, and whatever the next segment begins with."""

    def go_on(forger: Forger) -> None:
        forger.append(encode_record(create(3), forger.last))
        with monkeypatch.context() as patched:
            patched.setattr("objstore.storage.log.segments.ROTATE_AT", 100)
            if begins == "blob":
                forger.append_blob(b"a chunk of a large file")
            else:
                forger.append(encode_record(create(4), forger.last))

    for moment in interruption_points():
        folder = tmp_path / str(moment.step)
        folder.mkdir()
        with closing(Forger(folder)) as forger, closing(Log(str(forger.store / "segments"), Disk())) as log:
            forger.append(encode_record(create(1), None))
            with index_at(folder / "index", log) as index:
                forger.append(encode_record(create(2), forger.last))
                with interrupted_at(moment, partial(go_on, forger)):
                    index.catch_up()
                if not moment.came:
                    go_on(forger)
                index.catch_up()
                assert (index.end, index.last_record) == (forger.end, forger.last)


def test_a_record_that_does_not_follow_the_one_before_it_is_damage(forger: Forger, tmp_path: Path) -> None:
    forger.append(encode_record(create(1), None))
    group = forger.append(encode_record(create(2), None))
    with pytest.raises(StoreDamaged, match="does not follow") as caught:
        forger.index(tmp_path)
    assert caught.value.offset == group.frames[0].offset


def test_reused_number_is_damage(forger: Forger, tmp_path: Path) -> None:
    forger.append(encode_record(create(1), None))
    forger.append(encode_record(create(1), forger.last))
    with pytest.raises(StoreDamaged):
        forger.index(tmp_path)


@pytest.mark.parametrize(
    "void", [Void(time=1, edits=(Seq(9),), decision=0, reason=""), Void(time=1, edits=(), decision=9, reason="")]
)
def test_void_of_unknown_records_is_damage(forger: Forger, tmp_path: Path, void: Void) -> None:
    forger.append(encode_record(void, None))
    with pytest.raises(StoreDamaged):
        forger.index(tmp_path)


@pytest.mark.parametrize("units", [[Unit(Seq(9), 0)], [Unit(Seq(1), 0), Unit(Seq(1), 1)]])
def test_decision_on_an_unknown_unit_is_damage(forger: Forger, tmp_path: Path, units: list[Unit]) -> None:
    forger.append(encode_record(create(1), None))
    decision = _decision(1, Action.REJECT, dict.fromkeys(units, Status.REJECTED))
    forger.append(encode_record(decision, forger.last))
    with pytest.raises(StoreDamaged, match=f"edit {units[0].seq}, which has no such hunk"):
        forger.index(tmp_path)


def test_void_of_a_created_and_moved_file_leaves_no_document(forger: Forger, tmp_path: Path) -> None:
    created = create(1)
    moved = replace(
        created, seq=Seq(2), operation=Operation.MOVE, source=created.path, path=b"b.txt", before=created.after
    )
    first = encode_record(created, None)
    forger.append(first, encode_record(moved, record_id(first)))
    forger.append(encode_record(Void(time=1, edits=(Seq(1), Seq(2)), decision=0, reason=""), forger.last))
    forger.index(tmp_path)
    with closing(sqlite3.connect(tmp_path / "index")) as db:
        assert db.execute("SELECT * FROM documents").fetchall() == []
        assert db.execute("SELECT * FROM paths").fetchall() == []
        assert dict(db.execute("SELECT id, refs FROM blobs")) == {}


def test_voided_edits_and_their_conversations_are_not_counted(forger: Forger, tmp_path: Path) -> None:
    last = None
    for seq, conversation in enumerate(["both", "both", "void only", "(git)"], start=1):
        origin = Origin.GIT if conversation == "(git)" else Origin.AGENT
        record = encode_record(replace(create(seq), conversation=conversation, origin=origin), last)
        forger.append(record)
        last = record_id(record)
    forger.append(encode_record(Void(time=1, edits=(Seq(2), Seq(3)), decision=0, reason=""), last))
    log = Log(str(forger.store / "segments"), Disk())
    with closing(log), index_at(tmp_path / "index", log) as index:
        assert (index.edits.count(), index.edits.conversation_count(), index.sessions.count()) == (1, 1, 1)


def test_void_of_the_first_edit_of_an_existing_file_leaves_no_document(forger: Forger, tmp_path: Path) -> None:
    former_state = FileState(blob=blob_id(b"stood there"), mode=0o644)
    forger.append(encode_record(replace(create(1), operation=Operation.REPLACE, before=former_state), None))
    forger.append(encode_record(Void(time=1, edits=(Seq(1),), decision=0, reason=""), forger.last))
    forger.index(tmp_path)
    with closing(sqlite3.connect(tmp_path / "index")) as db:
        assert db.execute("SELECT * FROM documents").fetchall() == []
        assert db.execute("SELECT * FROM paths").fetchall() == []
        assert dict(db.execute("SELECT id, refs FROM blobs")) == {}


@pytest.mark.parametrize("comes", ["before", "after"])
def test_voided_and_expired_edit_is_released_once(forger: Forger, tmp_path: Path, comes: str) -> None:
    kept, other = create(1), create(2)
    void = Void(time=1, edits=(Seq(2),), decision=0, reason="")
    expiry = Expiry(time=1, edits=ranges_of([2]), reason="", who="")
    records: list[Record] = [kept, other, *((expiry, void) if comes == "before" else (void, expiry))]
    last = None
    for record in records:
        encoded = encode_record(record, last)
        forger.append(encoded)
        last = record_id(encoded)
    forger.index(tmp_path)
    counted = recount(records, lambda _: None, lambda _: ())
    with closing(sqlite3.connect(tmp_path / "index")) as db:
        assert dict(db.execute("SELECT id, refs FROM blobs")) == counted


def test_index_has_the_units_of_each_decision_on_single_hunks(tmp_path: Path) -> None:
    reasons = [f"{hunk}: " + "x" * 1000 for hunk in range(1, 41)]
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"".join(b"%d\n" % line for line in range(80)))
        write(workspace, "a.txt", b"".join(b"%d%s\n" % (line, b"x" * (line % 2)) for line in range(80)))
        for hunk, reason in enumerate(reasons, 1):
            workspace.decide(Action.REJECT, [Unit(Seq(2), hunk)], reason=reason)
        workspace.decide(Action.ACCEPT, [Unit(Seq(2), hunk) for hunk in range(1, 41)])
        assert isinstance(workspace.review.undo(), Decided)
        assert workspace.history.edit(2).reasons == ("", *reasons)
    rows = tables(tmp_path / ".cas" / "index.sqlite")
    decided = [column for row in rows["former_statuses"] for column in row if isinstance(column, bytes)]
    # What was so before they were accepted together, and not before each decision on one of them.
    assert [sum(reason.encode() in column for column in decided) for reason in reasons] == [1] * 40
    # The replay of each of a decision's files reads its row, so that doesn't grow with what was decided.
    assert max(len(column) for row in rows["decisions"] for column in row if isinstance(column, bytes)) == HASH_SIZE


def test_undo_and_redo_restore_every_reason_whether_they_name_the_unit_or_not(forger: Forger, tmp_path: Path) -> None:
    one, two = (Unit(Seq(seq), 0) for seq in (1, 2))
    first = _decision(1, Action.REJECT, {one: Status.REJECTED}, reason="first")
    second = _decision(2, Action.REJECT, {one: Status.REJECTED, two: Status.REJECTED}, reason="second")
    undo = _decision(3, Action.UNDO, {two: Status.PENDING}, takes_back=2)
    redo = _decision(4, Action.REDO, {two: Status.REJECTED}, reason="second", takes_back=3)
    void = Void(time=1, edits=(), decision=4, reason="")
    records: list[Record] = [create(1), create(2), first, second, undo, redo, void]
    found = []
    for record in records:
        forger.append(encode_record(record, forger.last))
        forger.index(tmp_path)
        with closing(sqlite3.connect(tmp_path / "index")) as db:
            rows = db.execute("SELECT units, reasons FROM edits ORDER BY seq").fetchall()
        found.append([decode_reasons(reasons, len(units))[0] for units, reasons in rows])
    back, again = ["first", ""], ["second", "second"]
    assert found == [[""], ["", ""], back, again, back, again, back]


def test_undo_of_an_unknown_decision_sets_the_statuses_that_it_names(forger: Forger, tmp_path: Path) -> None:
    undo = _decision(1, Action.UNDO, {Unit(Seq(1), 0): Status.ACCEPTED}, reason="after all", takes_back=9)
    forger.append(encode_record(create(1), None))
    forger.append(encode_record(undo, forger.last))
    forger.index(tmp_path)
    with closing(sqlite3.connect(tmp_path / "index")) as db:
        ((units, reasons),) = db.execute("SELECT units, reasons FROM edits").fetchall()
    assert (units, decode_reasons(reasons, 1)) == ("a", ("after all",))


def test_void_of_an_undo_restores_the_status_of_each_hunk(forger: Forger, tmp_path: Path) -> None:
    before = create(1)
    change = replace(before, seq=Seq(2), operation=Operation.EDIT, before=before.after, hunks=(Hunk(0, 0, 0, 1),))
    whole, hunk = (Unit(Seq(2), number) for number in (0, 1))
    accepted = _decision(1, Action.ACCEPT, {whole: Status.ACCEPTED})
    aside = _decision(2, Action.ACCEPT, {whole: Status.ACCEPTED, hunk: Status.REJECTED}, reason="second")
    undo = _decision(3, Action.UNDO, {hunk: Status.PENDING}, takes_back=2)  # it need not name more
    void = Void(time=1, edits=(), decision=3, reason="")
    records: list[Record] = [before, change, accepted, aside, undo, void]
    found = []
    for record in records:
        forger.append(encode_record(record, forger.last))
        forger.index(tmp_path)
        with closing(sqlite3.connect(tmp_path / "index")) as db:
            found += db.execute("SELECT units FROM edits WHERE seq = 2").fetchall()
    assert found == [("pp",), ("ap",), ("ar",), ("ap",), ("ar",)]


def _decision(
    number: int, action: Action, verdicts: dict[Unit, Status], *, reason: str = "", takes_back: int = 0
) -> Decision:
    return Decision(
        number=number,
        time=1,
        action=action,
        verdicts=tuple(verdicts.items()),
        written=(),
        who="",
        reason=reason,
        takes_back=takes_back,
    )


# Folders in folders, of which some are in several, and files of which one is in all.
_FILES: Final = [TreeEntry(name, 0o100644, blob_id(name)) for name in (b"a", b"b", b"c")]
_INNER: Final = encode_tree(_FILES[:2])
_MIDDLE: Final = encode_tree([_FILES[0], TreeEntry(b"d", FOLDER, blob_id(_INNER))])
_OUTER: Final = encode_tree(
    [*_FILES, TreeEntry(b"d", FOLDER, blob_id(_INNER)), *(TreeEntry(m, FOLDER, blob_id(_MIDDLE)) for m in (b"e", b"f"))]
)
_TREES: Final = (_INNER, _MIDDLE, _OUTER)

_STEPS: Final = st.one_of(
    st.tuples(st.just("store"), st.integers(0, 2)),
    st.tuples(st.just("hold"), st.integers(0, 2)),
    st.tuples(st.just("expire"), st.integers(0, 5)),
    st.tuples(st.just("look"), st.just(0)),
)


@given(steps=st.lists(_STEPS, max_size=12))
@example([("hold", 2), ("look", 0), ("store", 2), ("look", 0), ("store", 1), ("store", 0), ("look", 0), ("expire", 0)])
@example([("store", 2), ("store", 1), ("store", 0), ("hold", 2), ("hold", 1), ("look", 0), ("expire", 0), ("look", 0)])
@example([("store", 0), ("hold", 0), ("look", 0), ("expire", 0), ("look", 0), ("hold", 0), ("look", 0)])
@example([("store", 0), ("hold", 0), ("expire", 0), ("look", 0)])
@example([("hold", 0), ("look", 0), ("store", 0), ("expire", 0), ("look", 0)])
def test_refcounts_of_trees_do_not_depend_on_the_order_of_records(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("forged")
    records: list[Record] = []
    stored: dict[BlobId, bytes] = {}
    existing: list[int] = []
    with (
        closing(Forger(folder)) as forger,
        closing(Log(str(forger.store / "segments"), Disk())) as log,
        closing(Index(None, log)) as index,
    ):
        for step, which in [*steps, ("look", 0)]:
            match step:
                case "store":
                    forger.append_blob(_TREES[which])
                    stored[blob_id(_TREES[which])] = _TREES[which]
                case "hold":
                    number = sum(isinstance(record, Snapshot) for record in records) + 1
                    root = blob_id(_TREES[which])
                    records.append(Snapshot(number=number, time=1, root=root, path=None, who=""))
                    existing.append(number)
                    forger.append(encode_record(records[-1], forger.last))
                case "expire" if which < len(existing):
                    records.append(Expiry(time=1, snapshots=(existing.pop(which),), reason="", who=""))
                    forger.append(encode_record(records[-1], forger.last))
                case "look":
                    log.files.refresh(force=True)
                    index.catch_up()
                    counted = recount(records, stored.get, lambda _: ())
                    # What is neither held nor stored has no row.
                    assert dict(index.blobs.all_refs()) == {name: counted[name] for name in {*counted, *stored}}
                case _:
                    pass


def test_unreadable_held_tree_counts_only_itself(forger: Forger, tmp_path: Path) -> None:
    forger.append_blob(b"no tree")
    root = blob_id(b"no tree")
    forger.append(encode_record(Snapshot(number=1, time=1, root=root, path=None, who=""), None))
    forger.index(tmp_path)
    with closing(sqlite3.connect(tmp_path / "index")) as db:
        assert db.execute("SELECT id, refs FROM blobs").fetchall() == [(root, 1)]
        assert db.execute("SELECT read FROM trees").fetchall() == [(0,)]  # so that it is read if it is stored again


def test_blob_stored_after_it_was_held_has_the_row_of_a_rebuilt_index(
    forger: Forger, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = os.urandom(1000)
    content = base + b"more"
    with closing(Log(str(forger.store / "segments"), Disk())) as log, closing(Index(None, log)) as index:
        created = replace(create(1), after=FileState(blob=blob_id(content), mode=0o644))
        forger.append(encode_record(created, None))
        index.catch_up()
        forger.append_blob(base)
        forger.append_blob(content, Base(id=blob_id(base), content=base, depth=0))
        index.catch_up()
        monkeypatch.setattr("objstore.storage.log.segments.ROTATE_AT", 100)
        forger.append_blob(content)
        log.files.refresh(force=True)
        index.catch_up()
        assert log.files.numbers() == [1, 2]
        with closing(Index(None, log)) as rebuilt, index.changing() as db, rebuilt.changing() as other:
            rows, expected = (each.execute("SELECT * FROM blobs ORDER BY id").fetchall() for each in (db, other))
            bases = db.execute("SELECT base FROM blobs WHERE base NOT NULL").fetchall()
    assert rows == expected
    assert bases == [(blob_id(base),)]


def test_bytes_that_are_no_record_are_damage(forger: Forger, tmp_path: Path) -> None:
    forger.append(b"\x80")
    with pytest.raises(StoreDamaged):
        forger.index(tmp_path)


@pytest.mark.parametrize("change", ["move", "reject", "accept", "delete"])
def test_no_number_is_reused_while_the_index_can_not_be_changed(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process keeps it for longer than anybody waits; a full disk does the same."""
    monkeypatch.setattr("objstore.storage.index.database.BUSY_SECONDS", 0.1)
    with Workspace.init(tmp_path) as workspace, closing(sqlite3.connect(index_path(tmp_path))) as other:
        for name in ("a", "b", "c"):
            write(workspace, name, b"one\n")
        write(workspace, "b", b"two\n")
        workspace.review.status()  # so that all of it is in
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        match change:
            case "move":
                with workspace.call(CallInfo(tool="test")) as call:
                    call.move("a", "moved")
                    call.commit()
            case "delete":
                with workspace.call(CallInfo(tool="test")) as call:
                    call.delete("a")
                    call.commit()
            case _:
                decide = Action.REJECT if change == "reject" else Action.ACCEPT
                workspace.decide(decide, [Unit(Seq(4), 1)], who="test")
        held = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        for _ in range(2):
            with pytest.raises(StoreLocked):
                write(workspace, "b", b"three\n")
            assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == held
        other.execute("ROLLBACK")
        write(workspace, "b", b"three\n")
        write(workspace, "c", b"three\n")
    with Workspace.open(tmp_path) as workspace:
        views = workspace.history.edits()
        assert [view.seq for view in views] == list(range(1, len(views) + 1))
        assert [view.edit.path for view in views[-2:]] == [b"b", b"c"]
        assert workspace.review.status().external == ()
    assert check_store(str(tmp_path)).faults == ()


def test_the_position_is_unchanged_after_a_failed_commit(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        index, log = journal.store.index, journal.store.log
        before, end = index.end, journal.store.end
        void = encode_record(Void(time=1, edits=(), decision=0, reason="nothing"), journal.store.last_record)
        with journal.writing():
            log.append(end, [(FrameKind.BLOB, encode_blob(b"a blob\n")[1]), (FrameKind.RECORD, void)])
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((root / ".cas" / "index.sqlite-wal").stat().st_size, hard))
        try:
            with pytest.raises(sqlite3.OperationalError):
                index.catch_up()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert index.end == before
        index.catch_up()
        assert index.end > before


def test_only_the_owner_may_read_the_files_of_a_store(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with Workspace.init(tmp_path) as workspace:
            write(workspace, "a.txt", b"one\n")
            workspace.record_changes(CallInfo(tool="look"))
            files = {path: path.stat().st_mode for path in (tmp_path / ".cas").rglob("*") if path.is_file()}
    finally:
        os.umask(before)
    assert index_path(tmp_path).is_file()
    assert {str(path): oct(mode & 0o777) for path, mode in files.items() if mode & 0o077} == {}
