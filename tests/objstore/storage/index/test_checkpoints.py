"""Check that checkpoints move changes into the index's file and that no edit waits for them."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from objstore import Workspace
from objstore.disk.fs.disk import Disk
from objstore.model.ids import blob_id
from objstore.storage.index.database import prepare
from objstore.storage.index.index_file import Checkpoints, IndexFile, checkpoint
from objstore.storage.log.frames import StoreId
from objstore.storage.transaction.journal import Journal
from tests.support.crash_scenarios import write

MANY = 60_000  # rows of some 100 bytes: over a thousand pages
FEW_BYTES = 1 << 20
BLOB = blob_id(b"")
STORE = StoreId(b"s" * 16)


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def assign_to_store(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE position (store BLOB, segment)")
    db.execute("INSERT INTO position VALUES (?, 1)", (STORE,))


def store_signatures(journal: Journal, count: int) -> None:
    journal.store.index.store_seen_signatures((b"%08d" % i * 10, 0, 0, 0, 0, BLOB) for i in range(count))


def test_commit_leaves_the_checkpoint_to_a_later_step(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with closing(IndexFile(str(path))) as file, closing(file.connect(STORE)) as db:
        prepare(db)
        assign_to_store(db)
        db.execute("CREATE TABLE a (b BLOB)")
        db.execute("INSERT INTO a VALUES (zeroblob(?))", (8 * FEW_BYTES,))
        assert path.stat().st_size < FEW_BYTES
        checkpoints = Checkpoints(file, STORE)
        checkpoints.after_change()
        checkpoints.finish()
        assert path.stat().st_size > 8 * FEW_BYTES


@pytest.mark.parametrize("name", [b"\xff", b"50%3f?mode=memory#", b"a b"])
def test_an_index_is_found_in_a_folder_of_any_name(tmp_path: Path, name: bytes) -> None:
    root = tmp_path / os.fsdecode(name)
    root.mkdir()
    with Workspace.init(root) as workspace:
        write(workspace, "a.txt", b"0\n")
    index = root / ".cas" / "index.sqlite"
    with closing(connect(index)) as db, closing(IndexFile(str(index))) as file:
        store = StoreId(db.execute("SELECT store FROM position").fetchone()[0])
        db.execute("CREATE TABLE many (b BLOB)")
        db.execute("INSERT INTO many VALUES (zeroblob(?))", (FEW_BYTES,))
        checkpoint(str(index), store)
        assert index.stat().st_size > FEW_BYTES
        with closing(file.copy_in_memory()) as copy:
            assert copy.execute("SELECT count(*) FROM edits").fetchone() == (1,)
    assert not any(path.name.endswith(".sqlite") for path in tmp_path.iterdir())


def test_edits_are_in_the_index_as_soon_as_they_are_recorded(tmp_path: Path) -> None:
    with Workspace.init(tmp_path) as workspace, closing(connect(tmp_path / ".cas" / "index.sqlite")) as other:
        for i in range(3):
            write(workspace, "a.txt", b"%d\n" % i)
            assert other.execute("SELECT count(*) FROM edits").fetchone()[0] == i + 1


def test_write_ahead_log_of_sqlite_is_truncated_after_many_changes(tmp_path: Path) -> None:
    Workspace.init(tmp_path).close()
    index = tmp_path / ".cas" / "index.sqlite"
    waiting = Path(f"{index}-wal")
    with closing(Journal(str(tmp_path), Disk())) as journal:
        before = index.stat().st_size
        store_signatures(journal, MANY)
        assert waiting.stat().st_size > 4 * FEW_BYTES
        journal.store.index.finish_checkpoints()
        assert index.stat().st_size > before + 4 * FEW_BYTES
        store_signatures(journal, 1)
        assert waiting.stat().st_size < FEW_BYTES
        with closing(sqlite3.connect(index)) as other:
            assert other.execute("SELECT count(*) FROM file_stats").fetchone() == (MANY,)


def test_checkpoint_does_not_recreate_a_removed_index(tmp_path: Path) -> None:
    Workspace.init(tmp_path).close()
    index = tmp_path / ".cas" / "index.sqlite"
    with closing(Journal(str(tmp_path), Disk())) as journal:
        with journal.store.index.changing() as db:
            db.execute("INSERT INTO file_stats VALUES (zeroblob(?), 0, 0, 0, 0, ?, NULL)", (8 * FEW_BYTES, BLOB))
            index.unlink()
        journal.store.index.finish_checkpoints()
        assert not index.exists()


@pytest.mark.parametrize("is_shared", [True, False], ids=["with shared memory", "without shared memory"])
def test_copy_of_the_index_is_consistent_during_a_checkpoint(tmp_path: Path, *, is_shared: bool) -> None:
    path = tmp_path / "a.sqlite"
    with closing(connect(path)) as db, closing(connect(path)) as reader:
        prepare(db)
        assign_to_store(db)
        db.execute("CREATE TABLE other (n, b)")
        db.executemany("INSERT INTO other VALUES (0, zeroblob(?))", [(3000,)] * 100)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM position").fetchall()
        db.execute("UPDATE other SET n = 1 WHERE rowid > 50")
        db.execute("UPDATE position SET segment = 1")
        reader.execute("COMMIT")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM position").fetchall()
        db.execute("UPDATE other SET n = 1")
        checkpoint(str(path), STORE)  # as far as the reader's moment: no page that has become otherwise since
        found = path
        if not is_shared:
            found = tmp_path / "copy" / "a.sqlite"
            found.parent.mkdir()
            for name in ("a.sqlite", "a.sqlite-wal"):
                (found.parent / name).write_bytes((tmp_path / name).read_bytes())
            (found.parent / "a.sqlite-shm").mkdir()  # so that it can't be created
        with closing(IndexFile(str(found))) as file, closing(file.copy_in_memory()) as copy:
            if is_shared or copy.execute("SELECT * FROM sqlite_master").fetchall():
                assert copy.execute("SELECT min(n) FROM other").fetchone() == (1,)
