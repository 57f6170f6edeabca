"""The index's file: its tables, how it is opened, and what SQLite's errors mean.

Apart from the index itself, which asks and follows the log.
"""

from __future__ import annotations

import marshal
import os
import sqlite3
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from blake3 import blake3

from objstore.errors import DiskFailed, DiskFull, IndexUnusable, StoreLocked
from objstore.fs.nofollow import open_store_file, require_no_symlink
from objstore.model.large_file_placeholder import MAX_BLOB

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread

__all__ = [
    "BASELINE_NOTED",
    "CHECKPOINT_PAGES",
    "COMPARED",
    "KNOWN_BY",
    "SCHEMA",
    "SCHEMA_VERSION",
    "SQLITE_ERRORS",
    "SUMS",
    "TRIGGERS",
    "UNHELD",
    "Checkpoints",
    "IndexErrors",
    "address_of",
    "begin_writing",
    "checkpoint",
    "checksum",
    "connect",
    "copy_in_memory",
    "empty_in_memory",
    "is_beside_another",
    "is_broken",
    "is_unwritable",
    "malformed",
    "prepare",
    "remove_index",
    "unusable",
]

CHECKPOINT_PAGES: Final = 16_000
"""Pages in SQLite's log from which on SQLite checkpoints inside a commit after all."""

_PAGE: Final = 4096
_DUE_BYTES: Final = 1000 * _PAGE
"""Bytes by which SQLite's log may grow before a checkpoint is due: SQLite's own default."""

SqliteError: TypeAlias = sqlite3.DatabaseError | UnicodeDecodeError
SQLITE_ERRORS: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What comes of a database that can't be opened: what SQLite says of a damaged schema may be no text."""

SCHEMA_VERSION: Final = 26
_BUSY_SECONDS: Final = 10
_EMPTY_SECONDS: Final = 1
"""How long to wait for a file without a byte: who makes one needs some milliseconds."""

_POLL_SECONDS: Final = 0.0005
_PRIMARY: Final = 0xFF
"""Mask of an SQLite error's primary code."""

_BROKEN: Final = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
)
"""What SQLite says of a file that is no index of ours: it is made anew."""

_UNWRITABLE: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL})
"""What SQLite says of a file or folder that it may not write, or has no room in: then the index is kept in memory."""

_NO_SHARED_MEMORY: Final = frozenset(
    {sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP}
)
"""The same, of the file that all who have it open share: on a full disk there is no room for that one first."""

SCHEMA: Final = f"""
CREATE TABLE position (
    store BLOB, segment INTEGER, offset INTEGER, last_record BLOB, last_segment INTEGER, last_offset INTEGER,
    edits INTEGER, decisions INTEGER, snapshots INTEGER, pins INTEGER, baseline INTEGER, definitions BLOB
);
CREATE TABLE generations (segment INTEGER PRIMARY KEY, generation INTEGER);
CREATE TABLE moving (segment INTEGER PRIMARY KEY, generation INTEGER);
CREATE TABLE blobs (
    id BLOB PRIMARY KEY, segment INTEGER, offset INTEGER, length INTEGER, size INTEGER, depth INTEGER, base BLOB,
    refs INTEGER, sha256 BLOB, checksum BLOB
) WITHOUT ROWID;
CREATE TABLE known (start BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE INDEX large ON blobs (size) WHERE size > {MAX_BLOB};
CREATE TABLE doubled (id BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE trees (id BLOB PRIMARY KEY, refs INTEGER, read INTEGER) WITHOUT ROWID;
CREATE INDEX unread ON trees (id) WHERE read = 0;
CREATE TABLE lists (id BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE edits (
    seq INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, document INTEGER, conversation TEXT,
    call INTEGER, status TEXT, units TEXT, whole INTEGER, reasons BLOB,
    added INTEGER, removed INTEGER, void INTEGER, marks INTEGER,
    time INTEGER, before BLOB, after BLOB, expired INTEGER, checksum BLOB
);
CREATE INDEX edits_by_document ON edits (document, seq);
CREATE INDEX edits_by_conversation ON edits (conversation, call);
CREATE INDEX edits_rejected ON edits (conversation) WHERE instr(units, 'r');
CREATE INDEX edits_by_status ON edits (status, seq, void, expired);
CREATE INDEX edits_by_age ON edits (time) WHERE NOT void AND NOT expired AND status != 'p';
CREATE INDEX edits_taken_back ON edits (seq) WHERE void;
CREATE INDEX edits_with_markers ON edits (document) WHERE marks > 0;
CREATE TABLE paths (path BLOB, document INTEGER, PRIMARY KEY (path, document)) WITHOUT ROWID;
CREATE TABLE paths_again (path BLOB, document INTEGER, PRIMARY KEY (path, document)) WITHOUT ROWID;
CREATE TABLE calls (conversation TEXT PRIMARY KEY, newest INTEGER) WITHOUT ROWID;
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, path BLOB, blob BLOB, mode INTEGER, edits INTEGER, decisions INTEGER, checksum BLOB
);
CREATE INDEX documents_by_path ON documents (path);
CREATE INDEX documents_gone ON documents (path) WHERE blob IS NULL;
CREATE TABLE folders (number INTEGER PRIMARY KEY, path BLOB, fate TEXT, edit INTEGER, decision INTEGER);
CREATE INDEX folders_by_path ON folders (path, number);
CREATE INDEX folders_by_record ON folders (edit, decision);
CREATE INDEX folders_emptied ON folders (path) WHERE fate = 'e';
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, takes_back INTEGER, before BLOB, void INTEGER,
    time INTEGER, expired INTEGER, checksum BLOB
);
CREATE TABLE snapshots (
    number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, root BLOB, baseline INTEGER, expired INTEGER,
    checksum BLOB
);
CREATE TABLE pins (
    number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, expired INTEGER, checksum BLOB
);
CREATE TABLE expiries (number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, time INTEGER, reason TEXT);
CREATE TABLE decided (document INTEGER, number INTEGER, PRIMARY KEY (document, number)) WITHOUT ROWID;
CREATE TABLE totals (blobs INTEGER);
CREATE TABLE seen (
    path BLOB PRIMARY KEY, inode INTEGER, size INTEGER, mtime INTEGER, ctime INTEGER, blob BLOB, checksum BLOB
) WITHOUT ROWID;
CREATE TABLE stood (folder BLOB PRIMARY KEY, names BLOB, digest BLOB, others BLOB, checksum BLOB) WITHOUT ROWID;
CREATE TABLE stood_until (edit INTEGER, decision INTEGER, taken_back INTEGER, folders INTEGER, checksum BLOB)
"""

SUMS: Final = {
    "blobs": "row_checksum('blobs', id, segment, offset, size, depth)",
    "edits": "row_checksum('edits', seq, id, segment, offset, document, conversation, call, status, units, whole, "
    "reasons, added, removed, void, marks, time, before, after, expired)",
    "documents": "row_checksum('documents', id, path, blob, mode, edits, decisions)",
    "decisions": "row_checksum('decisions', number, id, segment, offset, takes_back, before, void, time, expired)",
    "pins": "row_checksum('pins', number, id, segment, offset, expired)",
    "snapshots": "row_checksum('snapshots', number, id, segment, offset, root, baseline, expired)",
    "seen": "row_checksum('seen', path, inode, size, mtime, ctime, blob)",
    "stood": "row_checksum('stood', folder, names, digest, others)",
    "stood_until": "row_checksum('stood_until', edit, decision, taken_back, folders)",
}
"""What the column `checksum` of a table holds. Of a blob that is not stored it is NULL."""

BASELINE_NOTED: Final = (
    "UPDATE position SET baseline = ifnull("
    "(SELECT number FROM snapshots WHERE baseline AND NOT expired ORDER BY number LIMIT 1), 0)"
)
"""What is executed whenever the baseline may have become another: `position` says it besides, as the newest numbers."""

KNOWN_BY: Final = 8
"""Bytes of a blob's id that the table `known` has."""

UNHELD: Final = "CREATE INDEX unheld ON blobs (segment, id, offset, length, refs) WHERE refs = 0"
"""Which blobs nothing holds. All that is asked of it is in it: else SQLite would look at each row of the table besides.

Not among the SCHEMA, because it is made when a log has been read: until then nearly every blob comes into it and goes.
"""

TRIGGERS: Final = (
    """
    CREATE TRIGGER blob_stored AFTER INSERT ON blobs WHEN new.segment IS NOT NULL
    BEGIN UPDATE totals SET blobs = blobs + 1; END
    """,
    """
    CREATE TRIGGER blob_changed AFTER UPDATE OF segment ON blobs
    WHEN (new.segment IS NULL) IS NOT (old.segment IS NULL)
    BEGIN UPDATE totals SET blobs = blobs + iif(new.segment IS NULL, -1, 1); END
    """,
    """
    CREATE TRIGGER blob_doubled AFTER UPDATE OF segment ON blobs
    WHEN old.segment IS NOT NULL AND new.segment IS NOT NULL
    BEGIN INSERT INTO doubled SELECT new.id WHERE NOT EXISTS (SELECT 1 FROM doubled WHERE id = new.id); END
    """,
    """
    CREATE TRIGGER blob_known AFTER INSERT ON blobs
    BEGIN INSERT OR IGNORE INTO known VALUES (substr(new.id, 1, 8)); END
    """,
    """
    CREATE TRIGGER blob_forgotten AFTER DELETE ON blobs
    BEGIN DELETE FROM known WHERE start = substr(old.id, 1, 8)
        AND NOT EXISTS (SELECT 1 FROM blobs
            WHERE id BETWEEN start AND CAST(start || x'ffffffffffffffffffffffffffffffffffffffffffffffff' AS BLOB)); END
    """,
    """
    CREATE TRIGGER path_put_in AFTER INSERT ON paths
    BEGIN INSERT OR IGNORE INTO paths_again VALUES (new.path, new.document); END
    """,
    """
    CREATE TRIGGER path_forgotten AFTER DELETE ON paths
    BEGIN DELETE FROM paths_again WHERE path = old.path AND document = old.document; END
    """,
)
"""What keeps the number of stored blobs, which else would have to be counted one by one, and notes a second frame.

And what keeps in a second table which blobs there are, by the first bytes of their ids, and which documents stood at
a path: a record may depend on it that there is none.

The number not where the rows of stored blobs go: that is in one place (`relocation`), which takes them off together. Of
a blob that is noted as doubled, the other frame may have gone since.
"""

COMPARED: Final = {
    "position": "SELECT * FROM position",
    "generations": "SELECT * FROM generations ORDER BY segment",
    "blobs": "SELECT id, segment, offset, length, size, depth, base, refs, checksum FROM blobs ORDER BY id",
    "known": "SELECT * FROM known ORDER BY start",
    "edits": "SELECT * FROM edits ORDER BY seq",
    "paths": "SELECT * FROM paths ORDER BY path, document",
    "paths_again": "SELECT * FROM paths_again ORDER BY path, document",
    "calls": "SELECT * FROM calls ORDER BY conversation",
    "documents": "SELECT * FROM documents ORDER BY id",
    "folders": "SELECT * FROM folders ORDER BY number",
    "decisions": "SELECT * FROM decisions ORDER BY number",
    "trees": "SELECT * FROM trees ORDER BY id",
    "lists": "SELECT * FROM lists ORDER BY id",
    "snapshots": "SELECT * FROM snapshots ORDER BY number",
    "pins": "SELECT * FROM pins ORDER BY number",
    "expiries": "SELECT * FROM expiries ORDER BY number",
    "totals": "SELECT * FROM totals",
    "decided": "SELECT * FROM decided ORDER BY document, number",
}
"""What the log determines of each table: to be equal in any two indexes of one log."""


def connect(path: str) -> sqlite3.Connection:
    """Return a connection to the database at `path`, which is made where there is none. Raises StoreLinked."""
    # SQLite goes where a link leads, and would find there a database that is none of ours, and make it one.
    require_no_symlink(path)
    if os.sep in path and not os.path.exists(path):
        # SQLite gives a new one the mode that new files have, and what it keeps beside it the mode of that.
        with suppress(OSError):
            os.close(open_store_file(path, os.O_RDWR | os.O_CREAT))
    seconds = _BUSY_SECONDS if _size(path) else _EMPTY_SECONDS
    return sqlite3.connect(path, timeout=seconds, isolation_level=None, check_same_thread=False)


def _size(path: str) -> int:
    """Return how many bytes the file has; more than any that is empty where it can't be told, or has no name."""
    try:
        return os.stat(path).st_size
    except OSError:
        return _PAGE + 1


def checksum(*values: str | bytes | float | None) -> bytes:
    """Return 8 bytes of BLAKE3 over the name of a table and the values of a row, as SUMS names them."""
    # Version 0 is that of the first Python 3. If a later one wrote it otherwise, the index would be made anew once.
    return blake3(marshal.dumps(values, 0)).digest(8)


def prepare(db: sqlite3.Connection) -> None:
    """Let readers and one writer work side by side, and let statements ask for a row's checksum."""
    db.create_function("row_checksum", -1, checksum, deterministic=True)
    db.execute("PRAGMA journal_mode = WAL")
    # A power cut may then lose the newest rows, never mix them up; they are read from the log again.
    db.execute("PRAGMA synchronous = NORMAL")
    # Nor where fsync(2) alone doesn't reach the drive (macOS); elsewhere this has no meaning.
    db.execute("PRAGMA checkpoint_fullfsync = ON")
    # Its log is cut off when it is begun anew, so that its size says how much has not come to its place yet.
    db.execute("PRAGMA journal_size_limit = 0")
    db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    db.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000}")


def begin_writing(db: sqlite3.Connection, within: float | None = None) -> None:
    """Begin a transaction that writes, as soon as nobody else's is open.

    `within`: how many seconds to wait for that (None: 10). Raises what SQLite says of an index that is busy.
    """
    # SQLite itself looks again after 1, 2, 5, 10, 15, 20, 25 ms and more: too seldom where each holds it for a few.
    until = time.monotonic() + (_BUSY_SECONDS if within is None else within)
    db.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(_POLL_SECONDS)
            else:
                return
    finally:
        db.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000}")


def remove_index(path: str) -> None:
    """Remove the database and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)


def copy_in_memory(path: str) -> sqlite3.Connection:
    """Return a copy of what the file holds, for a store that may only be read, or that has no room; empty if in doubt.

    What is newer, or is not in it, is in the log. A damaged page is looked for: nobody could remove the file, and who
    met it in each query would be refused for ever.
    """
    # As SQLite reads it, with what has not come to its place. Where it can't, for want of the file that it shares with
    # others, the file alone: if all of it is in its place, and stays so meanwhile.
    for query, is_alone in (("mode=ro", False), ("mode=ro&immutable=1", True)):
        db = empty_in_memory()
        with suppress(*SQLITE_ERRORS), closing(sqlite3.connect(address_of(path, query), uri=True)) as kept:
            before = _at_rest(path)
            kept.backup(db)
            db.execute("SELECT count(*) FROM position").fetchone()
            if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                db.close()
                break
            if not is_alone or (before is not None and _at_rest(path) == before):
                return db
        db.close()
    return empty_in_memory()


def empty_in_memory() -> sqlite3.Connection:
    """Return a new database in memory."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _at_rest(path: str) -> tuple[int, int, int] | None:
    """Return what tells the file from what it becomes; None: some of what it says lies in SQLite's log, or it is gone.

    From there changes are brought to their place page by page, which may be cut off, or pass over some.
    """
    try:
        if os.path.exists(path + "-wal") and os.stat(path + "-wal").st_size:
            return None
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def is_unwritable(error: SqliteError) -> bool:
    """Return whether SQLite says that the file or its folder may not be written, or that there is no room to."""
    return _code(error) in _UNWRITABLE or getattr(error, "sqlite_errorcode", None) in _NO_SHARED_MEMORY


def is_broken(error: SqliteError) -> bool:
    """Return whether SQLite says that the file is no index of ours."""
    return _code(error) in _BROKEN


def malformed(why: str) -> sqlite3.DatabaseError:
    """Return what SQLite raises of a damaged file, for damage that it can't see: its pages have no checksums."""
    error = sqlite3.DatabaseError(why)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def is_beside_another(error: SqliteError, path: str) -> bool:
    """Return whether SQLite can't put a new database in order because of one that was there, and that others have open.

    It was emptied in its place, or only the file of that name was removed, and not what lies beside it. Whoever has it
    open uses that to the end, unless its name goes.
    """
    if _code(error) == sqlite3.SQLITE_BUSY:
        return _size(path) == 0
    # It may have got its first page by then. One that is sound may have no more either, the others being in its log.
    return _code(error) == sqlite3.SQLITE_IOERR and _size(path) <= _PAGE


def _code(error: SqliteError) -> int:
    # Text that is no UTF-8 is found by Python, which gives no code: in a row, or in what SQLite says of a schema.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & _PRIMARY


def unusable(why: object, path: str = "index.sqlite") -> IndexUnusable:
    """Return the refusal of an index that holds what it can't hold."""
    return IndexUnusable(path, _refusal(why))


def _refusal(why: object) -> str:
    return f"The index can't be used ({why}); it may be deleted"


class IndexErrors:
    """Turns what SQLite raises into an error of ours; a class for the reason that `disk` has."""

    __slots__ = ("_doubt", "_path")

    def __init__(self, path: str, doubt: Callable[[], object] | None = None) -> None:
        """Name the index. `doubt`: is called where it is damaged (None: nothing is)."""
        self._path = path
        self._doubt = doubt

    def __enter__(self) -> None:
        """Do nothing: what is asked inside may raise."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Turn the error, if it is one of SQLite's: into StoreLocked, DiskFull, IndexUnusable or DiskFailed."""
        is_damaged = isinstance(error, IndexUnusable) or (isinstance(error, SQLITE_ERRORS) and is_broken(error))
        if is_damaged and self._doubt is not None:
            self._doubt()
        if isinstance(error, IndexUnusable) and error.path != self._path:
            raise IndexUnusable(self._path, error.reason) from error  # who found it did not know which one it is
        if not isinstance(error, SQLITE_ERRORS):
            return
        match _code(error):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise StoreLocked(self._path, _BUSY_SECONDS) from error
            case sqlite3.SQLITE_FULL:
                raise DiskFull(self._path) from error
            case _ if is_broken(error):
                raise unusable(error, self._path) from error
            case _:
                raise DiskFailed(self._path, _refusal(error)) from error


def address_of(path: str, query: str) -> str:
    """Return the URI of the database at `path`, to be opened as `query` says, such as `mode=ro`.

    Only what would end the path is escaped: `urllib` can't spell a path that is not UTF-8, and takes longer to import.
    """
    return f"file:{path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?{query}"


class Checkpoints:
    """Run the checkpoints of one index on a thread of this process, while no commit waits for them.

    SQLite by itself runs one inside the commit of whoever's change is one too many, with two syncs, and a third one in
    the next commit, which begins its log anew: 2 ms as a rule, and 200 where the disk is busy, as it is while a sweep
    rewrites segments. That may be an edit. SQLite still does so where the thread can't keep up.
    """

    def __init__(self, path: str) -> None:
        """Name the database, which need not be there yet."""
        self._path: Final = path
        self._begun_at = 0  # bytes of SQLite's log when a checkpoint was last begun
        self._thread: Thread | None = None  # that is at it, or has been

    def after_change(self) -> None:
        """Have the changes brought to their place if there are many. Call it after each commit; it waits for nothing.

        It has to be seen to that SQLite's log becomes short again when it is begun anew (`prepare`).
        """
        try:
            size = os.stat(self._path + "-wal").st_size
        except OSError:
            return  # an index in memory, or one that somebody has removed
        self._begun_at = min(self._begun_at, size)
        is_busy = self._thread is not None and self._thread.is_alive()
        if size - self._begun_at >= _DUE_BYTES and not is_busy:
            from threading import Thread  # a status changes little and starts none

            self._begun_at = size
            self._thread = Thread(target=checkpoint, args=(self._path,), name="checkpoint")
            self._thread.start()

    def finish(self) -> None:
        """Wait until none is going on."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def checkpoint(path: str) -> None:
    """Bring the changes of the index at `path` to their place, as far as can be, and have SQLite's log begun anew."""
    # Nothing is lost where it can't be done: the changes stay in SQLite's log, and the next one who looks does it.
    # By a connection of its own, which makes no file where there is none: somebody may have removed the index.
    with (
        suppress(sqlite3.DatabaseError, UnicodeDecodeError),
        closing(sqlite3.connect(address_of(path, "mode=rw"), uri=True, isolation_level=None)) as db,
    ):
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA journal_size_limit = 0")
        _, waiting, done = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if waiting == done:
            # Any change that is none: it is the first in the log that it begins.
            db.execute("UPDATE position SET segment = segment")
