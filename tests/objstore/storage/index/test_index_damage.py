"""Damage pages of the index: commands report it and what to do, and none fails with SQLite's own error."""

import hashlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from objstore import (
    Action,
    CallInfo,
    Decided,
    DiskFailed,
    DiskFull,
    Status,
    StoreLocked,
    Unit,
    Workspace,
    blob_id,
    check_store,
    repair_store,
)
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.model.basic_types import Operation, Seq
from objstore.storage.index.database import COMPARED, LATER_INDEXES, SCHEMA, IndexErrors
from objstore.upkeep.integrity.fsck import StorePart
from objstore.values.errors import IndexUnusable
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import WHOLE, CountdownDisk
from tests.support.sampling import sampled_product

READING_ACTS: Final[dict[str, tuple[str, Callable[[Workspace], object]]]] = {
    "repack": ("blobs", lambda workspace: workspace.retention.repack()),
    "plan a repack": ("blobs", lambda workspace: workspace.retention.plan_repack()),
    "status": ("edits", lambda workspace: workspace.review.status()),
}

RECORDING_ACTS: Final[dict[str, tuple[str, Callable[[Workspace], object]]]] = {
    "write": ("edits", lambda workspace: write(workspace, "a.txt", b"third\n")),
    "look": ("decisions", lambda workspace: workspace.record_changes(CallInfo(tool="t", conversation="c"))),
    "decide": ("edits", lambda workspace: workspace.decide(Action.REJECT, [Unit(Seq(2), 1)])),
    "snapshot": ("snapshots", lambda workspace: workspace.snapshots.take(who="somebody")),
    "pin": ("edits", lambda workspace: workspace.retention.pin([Seq(1)], who="somebody")),
    "collect": ("blobs", lambda workspace: workspace.retention.collect(RetentionLimits(older_than=0, max_size=None))),
    "expire": ("edits", lambda workspace: workspace.retention.expire(RetentionLimits(older_than=0, max_size=None))),
    "ask for a number": ("edits", lambda workspace: workspace.history.next_edit()),
}


READER: Final = "import sys; from objstore import Workspace; print(len(Workspace.open(sys.argv[1]).history.edits()))"


def damage(root: Path, table: str) -> None:
    """Overwrite the page that a table of the index begins with."""
    index = root / ".cas" / "index.sqlite"
    with closing(sqlite3.connect(index)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        size = db.execute("PRAGMA page_size").fetchone()[0]
        page = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    with index.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)


@pytest.mark.parametrize(("table", "act"), READING_ACTS.values(), ids=READING_ACTS)
def test_damaged_page_is_reported_in_one_sentence(
    tmp_path: Path, table: str, act: Callable[[Workspace], object]
) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
        workspace.record_changes(CallInfo(tool="t", conversation="c"))
        write(workspace, "a.txt", b"second\n")
    damage(tmp_path, table)
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace, pytest.raises(DiskFailed, match="may be deleted"):
        act(workspace)
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        act(workspace)
    assert check_store(str(tmp_path)).faults == ()


@pytest.mark.parametrize(("table", "act"), RECORDING_ACTS.values(), ids=RECORDING_ACTS)
def test_recording_rebuilds_an_index_with_a_damaged_page(
    tmp_path: Path, table: str, act: Callable[[Workspace], object]
) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
        workspace.record_changes(CallInfo(tool="t", conversation="c"))
        write(workspace, "a.txt", b"second\n")
    damage(tmp_path, table)
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        act(workspace)
    assert check_store(str(tmp_path)).faults == ()


def test_rebuild_after_a_damaged_page_does_not_block_other_writers(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace, Workspace.open(tmp_path) as other:
        damage(tmp_path, "edits")
        write(workspace, "a.txt", b"taken\n")
        write(other, "a.txt", b"taken too\n")
        assert [edit.seq for edit in workspace.history.edits()] == [1, 2, 3]
    assert check_store(str(tmp_path)).faults == ()


def test_purge_rebuilds_an_index_with_a_damaged_page(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
        write(workspace, "a.txt", b"second\n")
    damage(tmp_path, "edits")
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        assert workspace.retention.purge([blob_id(b"first\n")], force=True).edits
    assert check_store(str(tmp_path)).faults == ()


RECORDS: Final[dict[str, tuple[str, Callable[[Workspace], object]]]] = {
    "edits": ("seq", lambda workspace: write(workspace, "a.txt", b"third\n")),
    "decisions": ("number", lambda workspace: workspace.decide(Action.ACCEPT, [Unit(Seq(1), 0)])),
    "snapshots": ("number", lambda workspace: workspace.snapshots.take(who="somebody")),
    "pins": ("number", lambda workspace: workspace.retention.pin([Seq(2)], who="somebody")),
}


WHERE: Final = ("row", "position")
NUMBERS: Final = [
    (table, where, change) for (table, where), change in sampled_product(list(product(RECORDS, WHERE)), [1, -1, 64])
]


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with two records of each kind at least."""
    root = tmp_path_factory.mktemp("numbered")
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
        write(workspace, "a.txt", b"second\n")
        for _ in range(2):
            workspace.decide(Action.REJECT, [Unit(Seq(2), 1)])
            workspace.decide(Action.ACCEPT, [Unit(Seq(2), 1)])
            workspace.snapshots.take(who="somebody")
            workspace.retention.pin([Seq(1)], who="somebody")
    return root


@pytest.mark.parametrize(("table", "where", "change"), NUMBERS)
def test_wrong_number_in_the_index_enters_no_record(
    numbered: Path, tmp_path: Path, table: str, change: int, where: str
) -> None:
    """SQLite's pages have no checksums, so a flipped bit may change the number of a row unnoticed."""
    shutil.copytree(numbered, tmp_path, dirs_exist_ok=True)
    number, act = RECORDS[table]
    with closing(sqlite3.connect(tmp_path / ".cas" / "index.sqlite")) as db:
        if where == "position":
            db.execute(f"UPDATE position SET {table} = {table} + {change}")  # noqa: S608 - names of the schema
        else:
            newest = f"(SELECT max({number}) FROM {table})"  # noqa: S608 - as above
            if change < 0:
                db.execute(f"DELETE FROM {table} WHERE {number} = {newest} - 1")  # noqa: S608 - as above
            db.execute(f"UPDATE {table} SET {number} = {number} + {change} WHERE {number} = {newest}")  # noqa: S608 - as above
        db.commit()
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        act(workspace)
    (tmp_path / ".cas" / "index.sqlite").unlink()
    assert check_store(str(tmp_path)).faults == ()


def test_index_without_its_position_is_rebuilt(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
        workspace.history.edits()
        with closing(sqlite3.connect(tmp_path / ".cas" / "index.sqlite")) as db:
            db.execute("DELETE FROM position")
            db.commit()
        write(workspace, "a.txt", b"second\n")
        assert [edit.seq for edit in workspace.history.edits()] == [1, 2]
    assert check_store(str(tmp_path)).faults == ()


def test_index_overwritten_while_open_is_rebuilt(tmp_path: Path) -> None:
    Workspace.init(tmp_path, CountdownDisk(None)).close()
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        for version in range(3):
            write(workspace, "a.txt", b"%d\n" % version)
        with Workspace.open(tmp_path):  # an open connection keeps SQLite from checkpointing the file
            with (tmp_path / ".cas" / "index.sqlite").open("r+b") as file:
                file.write(bytes(4096))
            for suffix in ("-wal", "-shm"):
                (tmp_path / ".cas" / f"index.sqlite{suffix}").unlink()
            write(workspace, "a.txt", b"taken\n")
        assert (tmp_path / "a.txt").read_bytes() == b"taken\n"
        assert len(workspace.history.edits()) == 4
    assert check_store(str(tmp_path)).faults == ()


def test_index_locked_by_another_process_is_waited_for_and_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("database", "index_file"):
        monkeypatch.setattr(f"objstore.storage.index.{module}.BUSY_SECONDS", 0.1)
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
    index = tmp_path / ".cas" / "index.sqlite"
    before = index.stat().st_ino
    with closing(sqlite3.connect(index, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreLocked):
            Workspace.open(tmp_path).close()
    assert index.stat().st_ino == before
    with Workspace.open(tmp_path) as workspace:
        assert [edit.seq for edit in workspace.history.edits()] == [1]


def test_no_process_waits_for_an_index_that_was_emptied_while_open(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
        workspace.history.edits()
        with (tmp_path / ".cas" / "index.sqlite").open("r+b") as file:
            file.truncate()
        with Workspace.open(tmp_path) as other:
            write(other, "a.txt", b"second\n")
        write(workspace, "a.txt", b"third\n")
        assert [edit.seq for edit in workspace.history.edits()] == [1, 2, 3]
    assert check_store(str(tmp_path)).faults == ()


def test_an_index_is_rebuilt_if_only_its_main_file_was_removed_while_open(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace, Workspace.open(tmp_path) as other:
        for version in range(3):
            write(workspace, "a.txt", b"%d\n" % version)
            write(other, "b.txt", b"%d\n" % version)
        workspace.history.edits()
        (tmp_path / ".cas" / "index.sqlite").unlink()
        assert (tmp_path / ".cas" / "index.sqlite-shm").exists()
        output = subprocess.run(
            [sys.executable, "-c", READER, str(tmp_path)], capture_output=True, text=True, check=True
        ).stdout
        assert output == "6\n"
        write(workspace, "a.txt", b"on\n")
        write(other, "b.txt", b"on\n")
        assert len(other.history.edits()) == 8
    assert check_store(str(tmp_path)).faults == ()


def test_no_delta_is_encoded_against_a_state_with_a_wrong_depth_in_the_index(tmp_path: Path) -> None:
    """A delta is deeper than its base, as every reader of the log demands."""
    lines = [b"%d and some words\n" % number for number in range(500)]
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        for version in range(5):
            lines[version * 7] = b"version %d\n" % version
            write(workspace, "a.txt", b"".join(lines))
    assert rewrite(tmp_path, "blobs", "depth", "0")
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        lines[50] = b"and on\n"
        write(workspace, "a.txt", b"".join(lines))
    (tmp_path / ".cas" / "index.sqlite").unlink()
    assert check_store(str(tmp_path)).faults == ()


def test_wrong_state_in_the_index_enters_no_record(tmp_path: Path) -> None:
    """A flipped bit in a file's last state in the index looks like an external change."""
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
    never = bytes([blob_id(b"first\n")[0] ^ 1]) + blob_id(b"first\n")[1:]
    with closing(sqlite3.connect(tmp_path / ".cas" / "index.sqlite")) as db:
        db.execute("UPDATE documents SET blob = ?", (never,))
        db.commit()
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"second\n")
        assert len(workspace.history.edits()) == 2
    assert check_store(str(tmp_path)).faults == ()


def test_state_too_long_for_the_cache_is_known_to_the_next_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("objstore.storage.store.object_store._CACHE_BYTES", 4 * len(b"0\n") - 1)
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        for version in range(3):
            write(workspace, "a.txt", b"%d\n" % version)
        assert [edit.seq for edit in workspace.history.edits()] == [1, 2, 3]
    assert check_store(str(tmp_path)).faults == ()


SQLITE_ERRORS: Final = [
    ("CREATE TABLE more AS SELECT zeroblob(100000)", DiskFull),
    ("INSERT INTO readonly.some VALUES (1)", DiskFailed),
    ("SELECT * FROM nothing", IndexUnusable),
]


@pytest.mark.parametrize(("query", "raised"), SQLITE_ERRORS)
def test_sqlite_errors_are_raised_as_errors_of_the_store(tmp_path: Path, query: str, raised: type[DiskFailed]) -> None:
    path = tmp_path / "index.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("CREATE TABLE some (a)")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA max_page_count = 2")
        db.execute("ATTACH ? AS readonly", (f"file:{path}?mode=ro",))
        with pytest.raises(raised) as caught, IndexErrors(str(path)):
            db.execute(query)
    assert type(caught.value) is raised


IMPOSSIBLE_FORMER_STATES: Final = [
    "'text'",
    "x'c1'",
    "x'9195'",
    "x'91940102'",
    "x'9194a1000102a100'",
    "x'919401920005a170c400'",
    "x'91940192a13000a170c400'",  # [[1, ["0", 0], "p", b""]]: a range begins with no number
    "x'9194019100a170c400'",  # [[1, [0], "p", b""]]: a range without its end
    "x'91940190a0c400'",  # [[1, [], "", b""]]: no hunk at all
    "x'919401920505a170c400'",  # [[1, [5, 5], "p", b""]]: the edit has no such hunk
    "x'919407920000a170c400'",  # [[7, [0, 0], "p", b""]]: there is no such edit
    "x'9194cfffffffffffffffff920000a170c400'",  # nor one of a number that SQLite could look for
]


@pytest.fixture
def decided(tmp_path: Path) -> Path:
    """Return a workspace with one edit that was rejected."""
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
        workspace.decide(Action.REJECT, [Unit(Seq(1), 0)], reason="not wanted")
    return tmp_path


@pytest.mark.parametrize("encoded", IMPOSSIBLE_FORMER_STATES[:: 1 if WHOLE else 2])
def test_an_undo_succeeds_though_the_index_has_an_impossible_former_state(decided: Path, encoded: str) -> None:
    """The undo is durable before it reads the former state from the index."""
    assert rewrite(decided, "former_statuses", "statuses", encoded)
    with Workspace.open(decided, CountdownDisk(None)) as workspace:
        assert isinstance(workspace.review.undo(), Decided)
        assert (decided / "a.txt").read_bytes() == b"first\n"
        assert [(edit.status, edit.reason) for edit in workspace.history.edits()] == [(Status.PENDING, "")]
        assert [view.decision.action for view in workspace.history.decisions()] == [Action.REJECT, Action.UNDO]
    assert check_store(str(decided)).faults == ()


def test_an_undo_succeeds_though_the_index_lacks_the_former_state(decided: Path) -> None:
    with closing(sqlite3.connect(decided / ".cas" / "index.sqlite")) as db:
        assert db.execute("DELETE FROM former_statuses").rowcount == 1
        db.commit()
    with Workspace.open(decided, CountdownDisk(None)) as workspace:
        assert isinstance(workspace.review.undo(), Decided)
        assert [(edit.status, edit.reason) for edit in workspace.history.edits()] == [(Status.PENDING, "")]
    assert check_store(str(decided)).faults == ()


@pytest.mark.parametrize("encoded", IMPOSSIBLE_FORMER_STATES[0 if WHOLE else 1 :: 1 if WHOLE else 2])
def test_an_index_with_an_impossible_former_state_is_rebuilt_when_opened(decided: Path, encoded: str) -> None:
    index = decided / ".cas" / "index.sqlite"
    older = index.read_bytes()
    with Workspace.open(decided, CountdownDisk(None)) as workspace:
        workspace.review.undo()
        edits = workspace.history.edits()
    index.write_bytes(older)  # the restored index doesn't contain the undo yet
    assert rewrite(decided, "former_statuses", "statuses", encoded)
    with Workspace.open(decided, CountdownDisk(None)) as workspace:
        assert workspace.history.edits() == edits
    assert check_store(str(decided)).faults == ()


@pytest.mark.parametrize(
    ("table", "column", "act"),
    [
        ("former_statuses", "statuses", lambda workspace: workspace.review.undo()),
        ("edits", "reasons", lambda workspace: workspace.decide(Action.ACCEPT, [Unit(Seq(2), 1)], reason="after all")),
    ],
)
def test_durable_decision_is_applied_although_the_index_can_not_ingest_it(
    tmp_path: Path, table: str, column: str, act: Callable[[Workspace], object]
) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
        write(workspace, "a.txt", b"second\n")
        workspace.decide(Action.REJECT, [Unit(Seq(2), 1)], reason="why")
    assert (tmp_path / "a.txt").read_bytes() == b"first\n"
    assert rewrite(tmp_path, table, column, "x'c1c1'")
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        assert isinstance(act(workspace), Decided)
        assert (tmp_path / "a.txt").read_bytes() == b"second\n"
        write(workspace, "b.txt", b"and on\n")
        assert len(workspace.history.decisions()) == 2
    assert check_store(str(tmp_path)).faults == ()


@pytest.mark.parametrize(
    "act",
    [
        lambda workspace: workspace.history.edits(),
        lambda workspace: workspace.review.status(),
        lambda workspace: workspace.retention.repack(),
    ],
    ids=["edits", "status", "repack"],
)
def test_index_with_an_undecodable_schema_is_reported_as_damaged(
    tmp_path: Path, act: Callable[[Workspace], object]
) -> None:
    """SQLite's own message contains the damaged bytes, which Python can't decode."""
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
        edits = workspace.history.edits()
    index = tmp_path / ".cas" / "index.sqlite"
    with closing(sqlite3.connect(index)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    content = bytearray(index.read_bytes())
    content[content.index(b"CREATE TABLE") + len(b"CREATE TA")] ^= 0x80
    index.write_bytes(content)
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        act(workspace)
        assert workspace.history.edits() == edits
    assert check_store(str(tmp_path)).faults == ()


# ---- values of a type that the column never has


def rewrite(root: Path, table: str, column: str, value: str) -> bool:
    """Set a column of the index to one value in every row; return whether that changed any."""
    with closing(sqlite3.connect(root / ".cas" / "index.sqlite")) as db:
        try:
            return db.execute(f"UPDATE {table} SET {column} = {value} WHERE {column} IS NOT {value}").rowcount > 0  # noqa: S608 - names of the schema
        except sqlite3.IntegrityError:
            return False
        finally:
            db.commit()


def columns() -> list[tuple[str, str]]:
    """Return the columns of every table that fsck compares with the log."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        rows = [(table, row[1]) for table in COMPARED for row in db.execute(f"PRAGMA table_info({table})")]
    return [found for found in rows if found != ("blobs", "sha256")]  # computed on request, not derived from the log


@pytest.fixture(scope="module")
def once_reviewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with edits, decisions, a snapshot, pins and an expiry."""
    root = tmp_path_factory.mktemp("reviewed")
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        write(workspace, "d/a.txt", b"first\n")
        write(workspace, "d/a.txt", b"second\n")
        workspace.record_changes(CallInfo(tool="t", conversation="c"))
        workspace.decide(Action.REJECT, [Unit(workspace.history.edits()[-1].seq, 0)])
        workspace.retention.pin([Seq(1)], who="somebody")
        workspace.retention.unpin([workspace.retention.pin([Seq(1)], who="somebody").pin.number], who="somebody")
    return root


@pytest.fixture
def reviewed(once_reviewed: Path, tmp_path: Path) -> Path:
    """Return a copy of that workspace."""
    return shutil.copytree(once_reviewed, tmp_path / "reviewed", symlinks=True)


@pytest.mark.parametrize(("table", "column"), columns()[:: 1 if WHOLE else 4])
def test_impossible_value_in_the_index_is_a_fault_and_repaired(reviewed: Path, table: str, column: str) -> None:
    values = ("'text'", "NULL", "-1")
    for value in values if WHOLE else values[columns().index((table, column)) % 3 :][:1]:
        is_changed = rewrite(reviewed, table, column, value)
        report = check_store(str(reviewed))
        assert {fault.part for fault in report.faults} <= {StorePart.INDEX, StorePart.REFCOUNTS}
        # The position in the log is checked by whoever opens the index, who may rebuild it.
        assert table in {"position", "generations"} or bool(report.faults) is is_changed, value
        assert repair_store(report).faults == ()


@pytest.fixture
def after_status(reviewed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return that workspace after a status, which has stored what it saw of the files."""
    monkeypatch.setattr("objstore.worktree.dirty_files._GRACE_NS", 0)
    with Workspace.open(reviewed) as workspace:
        workspace.review.status()
    return reviewed


COLUMNS_ABOUT_FILES: Final = [
    ("file_stats", "blob"),
    ("file_stats", "mtime"),
    ("clean_folders", "names"),
    ("clean_folders", "folder"),
    ("clean_until", "edit"),
]


@pytest.mark.parametrize(("place", "value"), sampled_product(COLUMNS_ABOUT_FILES, ["'text'", "7"]))
def test_fsck_checks_the_stored_signatures_of_files(after_status: Path, place: tuple[str, str], value: str) -> None:
    assert rewrite(after_status, *place, value)
    assert check_store(str(after_status)).faults
    assert repair_store(check_store(str(after_status))).faults == ()


def test_status_scans_a_folder_whose_stored_signature_is_lost(after_status: Path) -> None:
    with closing(sqlite3.connect(after_status / ".cas" / "index.sqlite")) as db:
        assert db.execute("DELETE FROM clean_folders WHERE folder = x'64'").rowcount == 1
        db.commit()
    (after_status / "d" / "a.txt").write_bytes(b"by somebody\n")
    with Workspace.open(after_status) as workspace:
        assert [change.path for change in workspace.review.external_changes()] == ["d/a.txt"]


def test_duplicate_entry_for_a_blob_that_is_not_stored_is_a_fault(reviewed: Path) -> None:
    with closing(sqlite3.connect(reviewed / ".cas" / "index.sqlite")) as db:
        db.execute("INSERT INTO duplicates VALUES (zeroblob(32))")
        db.commit()
    report = check_store(str(reviewed))
    assert [fault.part for fault in report.faults] == [StorePart.INDEX]
    assert repair_store(report).faults == ()


@pytest.mark.parametrize("kept", ["zeroblob(40)", "zeroblob(32)", "'text'", "7"])
def test_invalid_stored_sha256_is_computed_again(reviewed: Path, kept: str) -> None:
    state = blob_id(b"first\n")
    with Workspace.open(reviewed, CountdownDisk(None)) as workspace:
        sha256_before = workspace.history.sha256(state)
    assert sha256_before == hashlib.sha256(b"first\n").hexdigest()
    assert rewrite(reviewed, "blobs", "sha256", kept)
    with Workspace.open(reviewed, CountdownDisk(None)) as workspace:
        assert workspace.history.sha256(state) == sha256_before


def indexes() -> list[str]:
    """Return the secondary indexes."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA + ";" + LATER_INDEXES)
        return [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql NOT NULL")]


@pytest.mark.parametrize("index", indexes())
def test_fsck_compares_every_secondary_index_with_its_table(reviewed: Path, index: str) -> None:
    with closing(sqlite3.connect(reviewed / ".cas" / "index.sqlite")) as db:
        definition = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (index,)).fetchone()[0]
    whole, _, condition = definition.partition(" WHERE ")
    table = whole.partition(" ON ")[2].partition(" ")[0]
    rows = 0
    for sql in (f"{whole} WHERE 0", definition):
        with closing(sqlite3.connect(reviewed / ".cas" / "index.sqlite")) as db:
            db.execute("PRAGMA writable_schema = ON")
            db.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, index))
            db.commit()
        with closing(sqlite3.connect(reviewed / ".cas" / "index.sqlite")) as db:
            if sql != definition:
                db.execute(f"REINDEX {index}")  # it loses every row
                db.commit()
            rows = db.execute(f"SELECT count(*) FROM {table} NOT INDEXED WHERE {condition or 1}").fetchone()[0]  # noqa: S608 - of the schema
    report = check_store(str(reviewed))
    assert [fault.part for fault in report.faults] == [StorePart.INDEX] * bool(rows)
    assert repair_store(report).faults == ()


IMPOSSIBLE_VALUES: Final = [
    ("documents", "path", "'d/a.txt'"),
    ("documents", "mode", "NULL"),
    ("documents", "blob", "'text'"),
    ("edits", "units", "NULL"),
    ("edits", "status", "x'70'"),
    ("edits", "offset", "'text'"),
    ("edits", "expired", "7"),
    ("edits", "reasons", "'text'"),
    ("edits", "reasons", "x'c1'"),
    ("edits", "reasons", "x'81a16192032a'"),  # {"a": [3, 42]}: there are fewer units
    ("edits", "reasons", "x'81a1619100'"),  # {"a": [0]}: a range without its end
]


@pytest.mark.parametrize(("table", "column", "value"), IMPOSSIBLE_VALUES)
def test_impossible_value_is_reported_when_it_is_read(reviewed: Path, table: str, column: str, value: str) -> None:
    assert rewrite(reviewed, table, column, value)
    expected_message = rf"may be deleted: {reviewed}/\.cas/index\.sqlite$"
    with Workspace.open(reviewed, CountdownDisk(None)) as workspace, pytest.raises(DiskFailed, match=expected_message):
        (workspace.history.edits if table == "edits" else workspace.history.files_at)()


@pytest.mark.parametrize("column", ["offset", "size", "depth"])
def test_index_without_the_place_of_a_state_is_rebuilt_by_a_writer(tmp_path: Path, column: str) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
    assert rewrite(tmp_path, "blobs", column, "NULL")
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"second\n")
        assert [view.edit.operation for view in workspace.history.edits()] == [Operation.CREATE, Operation.REPLACE]
    assert check_store(str(tmp_path)).faults == ()


def test_total_that_is_no_number_is_reported(reviewed: Path) -> None:
    assert rewrite(reviewed, "totals", "blobs", "'many'")
    with Workspace.open(reviewed, CountdownDisk(None)) as workspace, pytest.raises(DiskFailed, match="is no number"):
        workspace.review.status()
