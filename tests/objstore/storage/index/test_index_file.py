"""Check that SQLite never changes the index of another store to which the path of ours leads for a moment."""

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from objstore import Workspace, check_store
from objstore.storage.index.database import prepare
from objstore.storage.index.index_file import IndexFile, checkpoint
from objstore.storage.log.frames import StoreId
from objstore.values.errors import IndexUnusable, StoreReplaced
from tests.support.crash_scenarios import write


def made(root: Path, name: str, *contents: bytes) -> Path:
    """Make a workspace in which a file was written with each of these contents."""
    root.mkdir()
    with Workspace.init(root) as workspace:
        for content in contents:
            write(workspace, name, content)
    return root


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    return made(tmp_path / "ours", "a.txt", b"first\n")


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    return made(tmp_path / "theirs", "secret.txt", b"first\n", b"second\n")


def test_the_index_of_a_new_store_is_small(ours: Path) -> None:
    with closing(sqlite3.connect(ours / ".cas/index.sqlite")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert (ours / ".cas/index.sqlite").stat().st_size < 100_000  # with fifty tables and indexes of a page each


def test_other_definitions_have_another_version(ours: Path) -> None:
    """A check compares definitions letter by letter: it would find a fault in each index of the same version."""
    with closing(sqlite3.connect(ours / ".cas/index.sqlite")) as db:
        definitions = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        version = db.execute("PRAGMA user_version").fetchone()[0]
    digest = hashlib.sha256(repr(definitions).encode()).hexdigest()
    assert (version, digest[:16]) == (38, "dfa5a6b9d3df5b59")


def content_of(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


class Swapper:
    """Puts a link to another workspace in the place of ours while SQLite opens an index, and ours back afterwards."""

    def __init__(
        self, ours: Path, theirs: Path, times: int, connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    ) -> None:
        self._ours, self._theirs, self._left, self._connect = ours, theirs, times, connect

    def connect(self, *arguments: object, **named: object) -> sqlite3.Connection:
        if not self._left:
            return self._connect(*arguments, **named)
        self._left -= 1
        aside = self._ours.with_name("aside")
        self._ours.rename(aside)
        self._ours.symlink_to(self._theirs)
        try:
            return self._connect(*arguments, **named)
        finally:
            self._ours.unlink()
            aside.rename(self._ours)


@pytest.mark.parametrize("is_removed", [False, True])
@pytest.mark.parametrize("state", ["whole", "of an earlier version", "missing"])
def test_index_of_another_store_is_not_changed(
    ours: Path, theirs: Path, state: str, monkeypatch: pytest.MonkeyPatch, *, is_removed: bool
) -> None:
    index = theirs / ".cas" / "index.sqlite"
    if state == "missing":
        index.unlink()
    elif state == "of an earlier version":
        with closing(sqlite3.connect(index)) as db:
            db.execute("PRAGMA user_version = 1")
    if is_removed:
        (ours / ".cas" / "index.sqlite").unlink()
    before = content_of(theirs)
    monkeypatch.setattr(sqlite3, "connect", Swapper(ours, theirs, times=1).connect)
    with Workspace.open(ours) as workspace:
        assert [view.edit.path for view in workspace.history.edits()] == [b"a.txt"]
        write(workspace, "a.txt", b"second\n")
    assert content_of(theirs) == before
    with Workspace.open(ours) as workspace:
        assert len(workspace.history.edits()) == 2
    assert check_store(str(ours)).faults == ()


def test_new_index_is_prepared_without_a_journal_at_its_path(tmp_path: Path) -> None:
    file = IndexFile(str(tmp_path / "index.sqlite"))
    with closing(file), closing(file.connect(StoreId(b"s" * 16))) as db:
        (tmp_path / "index.sqlite-journal").mkdir()  # so that none can be created
        prepare(db)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_path_that_keeps_leading_to_another_store_is_refused(
    ours: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content_of(theirs)
    monkeypatch.setattr(sqlite3, "connect", Swapper(ours, theirs, times=99).connect)
    with pytest.raises(IndexUnusable, match="belongs to another store"):
        Workspace.open(ours)
    assert content_of(theirs) == before


def test_checkpoint_leaves_the_index_of_another_store_alone(theirs: Path) -> None:
    index = theirs / ".cas" / "index.sqlite"
    with closing(sqlite3.connect(index, isolation_level=None)) as db:
        db.execute("CREATE TABLE waits_for_a_checkpoint (b BLOB)")
        before = index.read_bytes()
        checkpoint(str(index), StoreId(b"s" * 16))
        assert index.read_bytes() == before
        checkpoint(str(index), StoreId(db.execute("SELECT store FROM position").fetchone()[0]))
        assert index.read_bytes() != before


def test_database_that_is_no_index_is_not_filled(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE a_persons_own (b BLOB)")
    before = path.read_bytes()
    with closing(IndexFile(str(path))) as file, pytest.raises(IndexUnusable):
        file.connect(StoreId(b"s" * 16))
    assert path.read_bytes() == before


def test_index_that_was_copied_from_another_store_is_replaced(ours: Path, theirs: Path) -> None:
    (ours / ".cas" / "index.sqlite").write_bytes((theirs / ".cas" / "index.sqlite").read_bytes())
    with Workspace.open(ours) as workspace:
        assert [view.edit.path for view in workspace.history.edits()] == [b"a.txt"]
    assert check_store(str(ours)).faults == ()


def test_index_without_a_position_is_replaced(ours: Path) -> None:
    with closing(sqlite3.connect(ours / ".cas" / "index.sqlite", isolation_level=None)) as db:
        db.execute("DELETE FROM position")
    with Workspace.open(ours) as workspace:
        assert [view.edit.path for view in workspace.history.edits()] == [b"a.txt"]
    assert check_store(str(ours)).faults == ()


def test_index_is_not_removed_from_a_folder_that_its_path_no_longer_leads_to(tmp_path: Path) -> None:
    """The folder was opened through a link that leads elsewhere by now: what SQLite opened is another file."""
    for name in ("mine", "others"):
        (tmp_path / name / ".cas").mkdir(parents=True)
        (tmp_path / name / ".cas/index.sqlite").write_bytes(b"index")
    (tmp_path / "served").symlink_to("others")
    with closing(IndexFile(str(tmp_path / "served/.cas/index.sqlite"))) as file:
        (tmp_path / "served").unlink()
        (tmp_path / "served").symlink_to("mine")
        with pytest.raises(StoreReplaced):
            file.remove()
    assert all((tmp_path / name / ".cas/index.sqlite").exists() for name in ("mine", "others"))
