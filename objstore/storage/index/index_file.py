"""Open, create, copy and remove the file of an index, and run its checkpoints.

SQLite opens a file only by its path. While a server runs, another program may put a link in the place of a folder on
that path, so that SQLite would open the index of a store elsewhere. So the file is found, created and removed in its
folder, which is held open, SQLite never creates it, and what it opens is used only if it belongs to this store.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.disk import give_to_owner_of
from objstore.storage.index.database import BUSY_SECONDS, PAGE, SQLITE_ERRORS, unusable
from objstore.values.errors import StoreLinked, StoreReplaced

if TYPE_CHECKING:
    from threading import Thread

    from objstore.storage.log.frames import StoreId

__all__ = ["Checkpoints", "IndexFile", "checkpoint", "empty_in_memory", "nameless"]

_DUE_BYTES: Final = 1000 * 4096
"""Bytes by which SQLite's log may grow before a checkpoint is due: SQLite's own default."""

_EMPTY_SECONDS: Final = 1
"""How long to wait for an empty file: the process that is creating it needs some milliseconds."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE: Final = 1 << 20
_CREATED: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class IndexFile:
    """The file of one index, and the two that SQLite keeps next to it, in a folder that is held open."""

    def __init__(self, path: str) -> None:
        """Hold the folder of `path` open, in which the file need not exist. Raises OSError as os.open does."""
        self.path: Final = path
        folder, self._name = os.path.split(path)
        self.folder: Final = os.open(folder, _FOLDER)

    def close(self) -> None:
        """Close the folder."""
        os.close(self.folder)

    def stat(self, suffix: str = "") -> os.stat_result:
        """Return the facts of the file, or of the one next to it whose name ends so. Raises OSError as os.stat does."""
        return os.stat(self._name + suffix, dir_fd=self.folder, follow_symlinks=False)

    @property
    def inode(self) -> int:
        """Return the file's inode number; 0 if there is none, as in a read-only store."""
        try:
            return self.stat().st_ino
        except OSError:
            return 0

    @property
    def size(self) -> int:
        """Return the file's size in bytes; more than that of an empty database if it is unknown."""
        try:
            return self.stat().st_size
        except OSError:
            return PAGE + 1

    def connect(self, store: StoreId) -> sqlite3.Connection:
        """Return a connection to the index of a store, or to an empty database, which is created if there is none.

        Raises StoreLinked, IndexUnusable for another store's index, and SQLite's errors.
        """
        try:
            if stat.S_ISLNK(self.stat().st_mode):
                raise StoreLinked(self.path)  # SQLite would turn a foreign database at its target into an index
        except FileNotFoundError:
            # SQLite would create it with the default mode, and the files next to it with the mode of the first.
            with suppress(OSError):
                fd = os.open(self._name, _CREATED, 0o600, dir_fd=self.folder)
                try:
                    give_to_owner_of(fd, self.folder)  # SQLite does the same for the files next to it
                finally:
                    os.close(fd)
        except OSError:
            pass  # SQLite fails as well, and says why
        seconds = BUSY_SECONDS if self.size else _EMPTY_SECONDS
        address = _address(self.path, "mode=rw")
        db = sqlite3.connect(address, uri=True, timeout=seconds, isolation_level=None, check_same_thread=False)
        try:
            is_usable = _belongs_to(db, store)
        except BaseException:
            db.close()
            raise
        if not is_usable:
            db.close()
            raise unusable("it belongs to another store", self.path)
        return db

    def remove(self) -> None:
        """Remove the database and the files that SQLite keeps next to it.

        Raises StoreReplaced if the path leads to another folder now, because then it was not this database that SQLite
        found to be unusable, and OSError as os.unlink does.
        """
        folder = os.path.dirname(self.path)
        here, there = os.fstat(self.folder), os.stat(folder)
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            raise StoreReplaced(folder)
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(self._name + suffix, dir_fd=self.folder)

    def copy_in_memory(self) -> sqlite3.Connection:
        """Return a copy in memory, for a store that is read-only or has no room; an empty one in doubt.

        The log has what is newer or missing. The copy is checked for damaged pages: the file can't be removed here, so
        every query that read a damaged page would fail for ever.
        """
        # First as SQLite reads it, including its log. If it can't, because the shared-memory file is missing, the
        # database file alone, provided that no change awaits a checkpoint before or after the copy.
        for query, is_alone in (("mode=ro", False), ("mode=ro&immutable=1", True)):
            db = empty_in_memory()
            with suppress(*SQLITE_ERRORS), closing(sqlite3.connect(_address(self.path, query), uri=True)) as kept:
                before = self._at_rest()
                kept.backup(db)
                db.execute("SELECT count(*) FROM position").fetchone()
                if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                    db.close()
                    break
                if not is_alone or (before is not None and self._at_rest() == before):
                    return db
            db.close()
        return empty_in_memory()

    def copy_to(self, path: str) -> bool:
        """Write a copy to a new file at `path`, for a copy of the log; return whether it could be read.

        What is wrong with it is found when it is opened there: it is built again if it doesn't fit that log. Raises
        OSError.
        """
        before = self._at_rest()
        with open(os.open(path, _CREATED, 0o600), "wb") as copy:
            if before is not None:  # a tenth of the time that SQLite takes, page by page
                with open(os.open(self._name, _READ, dir_fd=self.folder), "rb") as content:
                    while piece := content.read(_PIECE):
                        copy.write(piece)
                    copy.flush()
                    os.fsync(copy.fileno())
                if self._at_rest() == before:
                    return True
                copy.truncate(0)
        with (
            suppress(*SQLITE_ERRORS),
            closing(sqlite3.connect(_address(self.path, "mode=ro"), uri=True)) as kept,
            closing(sqlite3.connect(_address(path, "mode=rw"), uri=True)) as made,
        ):
            kept.backup(made)
            return True
        return False

    def _at_rest(self) -> tuple[int, int, int] | None:
        """Return values that change with the file; None if some changes are still in SQLite's log, or the file is gone.

        A checkpoint copies changes from there page by page and may be interrupted, or skip some.
        """
        try:
            with suppress(FileNotFoundError):
                if self.stat("-wal").st_size:
                    return None
            found = self.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns


def nameless() -> sqlite3.Connection:
    """Return a new database in a temporary file without a name, which SQLite deletes when it is closed."""
    return sqlite3.connect("", isolation_level=None, check_same_thread=False)


def empty_in_memory() -> sqlite3.Connection:
    """Return a new database in memory."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _belongs_to(db: sqlite3.Connection, store: StoreId) -> bool:
    """Return whether a database is the index of this store, or not yet of any. Raises SQLite's errors."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'position'").fetchone() is None:
        return db.execute("SELECT 1 FROM sqlite_master").fetchone() is None
    return bool(db.execute("SELECT store FROM position").fetchone() == (store,))


def _address(path: str, query: str) -> str:
    """Return the URI of the database at `path`, with a query such as `mode=ro`.

    Only characters that would end the path are escaped: `urllib` can't encode a path that is not UTF-8, and takes
    longer to import.
    """
    return f"file:{path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?{query}"


class Checkpoints:
    """Run the checkpoints of one index on a thread of this process, so that no commit waits for them.

    SQLite by itself runs a checkpoint inside the commit that makes its log too long, with two syncs, and a third sync
    in the next commit, which starts its log again: usually 2 ms, but 200 ms while the disk is busy, for example while a
    compaction rewrites segments. That commit may be an edit. SQLite still does this if the thread can't keep up.
    """

    def __init__(self, file: IndexFile, store: StoreId) -> None:
        """Name the index, whose file need not exist yet, and its store."""
        self._file: Final = file
        self._store: Final = store
        self._begun_at = 0  # bytes of SQLite's log when a checkpoint last started
        self._thread: Thread | None = None  # that runs the checkpoint, or ran the last one

    def after_change(self) -> None:
        """Start a checkpoint if many changes are waiting. Call it after each commit; it doesn't wait.

        It relies on SQLite's log becoming short when SQLite starts it again (see `prepare`).
        """
        try:
            size = self._file.stat("-wal").st_size
        except OSError:
            return  # an index in memory, or one that was removed
        self._begun_at = min(self._begun_at, size)
        is_busy = self._thread is not None and self._thread.is_alive()
        if size - self._begun_at >= _DUE_BYTES and not is_busy:
            from threading import Thread  # a status changes little and starts no thread

            self._begun_at = size
            self._thread = Thread(target=checkpoint, args=(self._file.path, self._store), name="checkpoint")
            self._thread.start()

    def finish(self) -> None:
        """Wait until no checkpoint is running."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def checkpoint(path: str, store: StoreId) -> None:
    """Move the changes of a store's index into its file as far as possible, and have SQLite's log started again.

    `path`: of the index; nothing happens if another store's is there.
    """
    # Nothing is lost if it fails: the changes stay in SQLite's log for the next checkpoint.
    # A connection of its own, which doesn't create a missing file: someone may have removed the index.
    with (
        suppress(sqlite3.DatabaseError, UnicodeDecodeError),
        closing(sqlite3.connect(_address(path, "mode=rw"), uri=True, isolation_level=None)) as db,
    ):
        if not _belongs_to(db, store):
            return
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA journal_size_limit = 0")
        _, waiting, done = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if waiting == done:
            # Any change without effect: it makes SQLite start its log again.
            db.execute("UPDATE position SET segment = segment")
