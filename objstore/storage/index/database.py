"""Define the index's tables, prepare a connection, and map SQLite's errors to errors of the store.

`index_file` opens the file and `log_index` follows the log; they and the queries use what is here.
"""

from __future__ import annotations

import marshal
import sqlite3
import time
from typing import TYPE_CHECKING, Final, TypeAlias

from blake3 import blake3

from objstore.model.large_file_placeholder import MAX_BLOB
from objstore.values.errors import DiskFailed, DiskFull, IndexUnusable, StoreLocked

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BASELINE_NOTED",
    "BUSY_SECONDS",
    "CHECKPOINT_PAGES",
    "COMPARED",
    "EDIT_COLUMNS",
    "INTACT",
    "KNOWN_BY",
    "LATER_INDEXES",
    "LATER_TRIGGERS",
    "LISTED",
    "PAGE",
    "SCHEMA",
    "SCHEMA_VERSION",
    "SQLITE_ERRORS",
    "SUMS",
    "TRIGGERS",
    "IndexErrors",
    "begin_writing",
    "checksum",
    "checksum_of",
    "is_blocked_by_another",
    "is_broken",
    "is_unwritable",
    "malformed",
    "prepare",
    "raise_interruption",
    "unusable",
]

CHECKPOINT_PAGES: Final = 16_000
"""Pages in SQLite's log from which on SQLite runs the checkpoint inside a commit after all."""

PAGE: Final = 1024
"""Bytes of a page of a new database. It has some fifty tables and indexes, so most pages of a small one hold little."""

SqliteError: TypeAlias = sqlite3.DatabaseError | UnicodeDecodeError
SQLITE_ERRORS: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What a database that can't be opened raises: SQLite's description of a damaged schema may not be UTF-8."""

SCHEMA_VERSION: Final = 38
BUSY_SECONDS: Final = 10
_POLL_SECONDS: Final = 0.0005
_PRIMARY: Final = 0xFF
"""Mask of an SQLite error's primary code."""

_BROKEN: Final = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
)
"""Error codes that mean that the file is not a usable index: it is then rebuilt."""

_UNWRITABLE: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL})
"""Error codes for a file or folder that is read-only or has no room: the index is then kept in memory."""

_NO_SHARED_MEMORY: Final = frozenset(
    {sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP}
)
"""The same for the file that all connections share: on a full disk this is the first one without room."""

_INTERRUPTED: Final = "user-defined function raised exception"
"""What SQLite says where a checksum raised an exception, which only a signal makes it do."""

SCHEMA: Final = f"""
CREATE TABLE position (
    store BLOB, segment INTEGER, offset INTEGER, last_record BLOB, last_segment INTEGER, last_offset INTEGER,
    edits INTEGER, decisions INTEGER, snapshots INTEGER, pins INTEGER, turns INTEGER, comments INTEGER,
    baseline INTEGER, definitions BLOB
);
CREATE TABLE generations (segment INTEGER PRIMARY KEY, generation INTEGER);
CREATE TABLE blobs (
    id BLOB PRIMARY KEY, segment INTEGER, offset INTEGER, length INTEGER, size INTEGER, depth INTEGER, base BLOB,
    refs INTEGER, sha256 BLOB, checksum BLOB
) WITHOUT ROWID;
CREATE TABLE blob_starts (start BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE INDEX large ON blobs (size) WHERE size > {MAX_BLOB};
CREATE TABLE duplicates (id BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE trees (id BLOB PRIMARY KEY, refs INTEGER, read INTEGER) WITHOUT ROWID;
CREATE INDEX unread ON trees (id) WHERE read = 0;
CREATE TABLE chunk_lists (id BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE edits (
    seq INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, document INTEGER, conversation TEXT,
    call INTEGER, status TEXT, units TEXT, whole INTEGER, reasons BLOB,
    added INTEGER, removed INTEGER, void INTEGER, marks INTEGER,
    time INTEGER, before BLOB, after BLOB, expired INTEGER, turn INTEGER, owner TEXT, session INTEGER, tool TEXT,
    unattributed INTEGER, changes INTEGER, checksum BLOB
);
CREATE INDEX edits_by_document ON edits (document, seq);
CREATE INDEX edits_by_status ON edits (status, seq, void, expired, changes);
CREATE TABLE paths (path BLOB, document INTEGER, PRIMARY KEY (path, document)) WITHOUT ROWID;
CREATE TABLE paths_copy (path BLOB, document INTEGER, PRIMARY KEY (path, document)) WITHOUT ROWID;
CREATE TABLE calls (conversation TEXT PRIMARY KEY, newest INTEGER) WITHOUT ROWID;
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, path BLOB, blob BLOB, mode INTEGER, edits INTEGER, decisions INTEGER, last_edit INTEGER,
    last_decision INTEGER, marked INTEGER, pending INTEGER, accepted INTEGER, rejected INTEGER, away INTEGER,
    checksum BLOB
);
CREATE INDEX documents_by_path ON documents (path);
CREATE INDEX documents_gone ON documents (path) WHERE blob IS NULL;
CREATE TABLE folders (
    number INTEGER PRIMARY KEY, path BLOB, fate TEXT, edit INTEGER, decision INTEGER, document INTEGER
);
CREATE INDEX folders_by_path ON folders (path, number);
CREATE INDEX folders_by_record ON folders (edit, decision);
CREATE INDEX folders_by_document ON folders (document) WHERE document > 0;
CREATE INDEX folders_emptied ON folders (path) WHERE fate = 'e';
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, takes_back INTEGER, void INTEGER,
    time INTEGER, expired INTEGER, git INTEGER, checksum BLOB
);
CREATE TABLE former_statuses (number INTEGER PRIMARY KEY, statuses BLOB, checksum BLOB);
CREATE INDEX decisions_of_git ON decisions (number) WHERE git;
CREATE TABLE snapshots (
    number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, root BLOB, baseline INTEGER, expired INTEGER,
    time INTEGER, checksum BLOB
);
CREATE TABLE pins (
    number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, expired INTEGER, time INTEGER, checksum BLOB
);
CREATE TABLE turns (
    number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, time INTEGER, session INTEGER,
    conversation TEXT, client TEXT, model TEXT, prompt TEXT, checksum BLOB
);
CREATE INDEX turns_by_session ON turns (session, number);
CREATE INDEX turns_by_conversation ON turns (conversation, number);
CREATE TABLE sessions (number INTEGER PRIMARY KEY, name TEXT UNIQUE, checksum BLOB);
CREATE TABLE comments (
    number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, time INTEGER, document INTEGER,
    answers INTEGER, conversation TEXT, state TEXT, sent TEXT, checksum BLOB
);
CREATE INDEX comments_by_document ON comments (document, number);
CREATE INDEX comments_by_state ON comments (state, number);
CREATE INDEX answers ON comments (answers, number) WHERE answers > 0;
CREATE TABLE marks (number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, time INTEGER);
CREATE TABLE settings (
    number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, time INTEGER, name TEXT
);
CREATE INDEX settings_by_name ON settings (name, number);
CREATE TABLE cautions (number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER);
CREATE TABLE expiries (number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, time INTEGER, reason TEXT);
CREATE TABLE decided (document INTEGER, number INTEGER, PRIMARY KEY (document, number)) WITHOUT ROWID;
CREATE TABLE totals (blobs INTEGER, voids INTEGER);
CREATE TABLE file_stats (
    path BLOB PRIMARY KEY, inode INTEGER, size INTEGER, mtime INTEGER, ctime INTEGER, blob BLOB, checksum BLOB
) WITHOUT ROWID;
CREATE TABLE clean_folders (folder BLOB PRIMARY KEY, names BLOB, digest BLOB, others BLOB, checksum BLOB) WITHOUT ROWID;
CREATE TABLE clean_until (edit INTEGER, decision INTEGER, voided INTEGER, folders INTEGER, checksum BLOB)
"""

EDIT_COLUMNS: Final = (
    *("seq", "id", "segment", "offset", "document", "conversation", "call", "status", "units", "whole", "reasons"),
    *("added", "removed", "void", "marks", "time", "before", "after", "expired", "turn", "owner", "session", "tool"),
    *("unattributed", "changes"),
)
"""The columns of an edit's row, in order, without its checksum."""

_SUMMED: Final = {
    "blobs": "id segment offset size depth",
    "edits": " ".join(EDIT_COLUMNS),
    "documents": "id path blob mode edits decisions last_edit last_decision marked pending accepted rejected away",
    "decisions": "number id segment offset takes_back void time expired git",
    "former_statuses": "number statuses",
    "pins": "number id segment offset expired time",
    "snapshots": "number id segment offset root baseline expired time",
    "turns": "number id segment offset time session conversation client model prompt",
    "sessions": "number name",
    "comments": "number id segment offset time document answers conversation state sent",
    "file_stats": "path inode size mtime ctime blob",
    "clean_folders": "folder names digest others",
    "clean_until": "edit decision voided folders",
}
"""The columns that a row's checksum covers, in this order, in each table whose rows have one."""


def checksum_of(table: str, **instead: str) -> str:
    """Return SQL for the checksum of a row. `instead`: expressions for the values that columns are getting.

    Each value is passed as bytes. SQLite would pass text as Python's, and can't if a damaged row has other bytes there.
    """
    values = ", ".join(f"CAST({instead.get(name, name)} AS BLOB)" for name in _SUMMED[table].split())
    return f"row_checksum('{table}', {values})"


SUMS: Final = {table: checksum_of(table) for table in _SUMMED}
"""The value of column `checksum` in each table. It is NULL for a blob that is not stored."""

LISTED: Final = (
    "EXISTS (SELECT 1 FROM edits AS other INDEXED BY edits_by_status WHERE other.status = edits.status "
    "AND other.seq = edits.seq AND other.void = edits.void AND other.expired = edits.expired "
    "AND other.changes = edits.changes)"
)
"""The condition that the row of an edit is as `edits_by_status` has it."""

INTACT: Final = {table: f"checksum IS {expected}" for table, expected in SUMS.items()} | {
    "edits": f"checksum IS {SUMS['edits']} AND {LISTED}"
}
"""The condition that a row is as it was written last.

A checksum doesn't show that a page is an older copy of itself. The row of an edit is changed by decisions, so an index
has the number of these changes too.
"""

BASELINE_NOTED: Final = (
    "UPDATE position SET baseline = ifnull("
    "(SELECT number FROM snapshots WHERE baseline AND NOT expired ORDER BY number LIMIT 1), 0)"
)
"""Executed whenever the baseline may have changed: `position` repeats its number, as it does the newest numbers."""

KNOWN_BY: Final = 8
"""Number of bytes of a blob's id in table `blob_starts`."""

LATER_INDEXES: Final = """
CREATE INDEX unheld ON blobs (segment, id, offset, length, refs) WHERE refs = 0;
CREATE INDEX not_stored ON blobs (id, refs) WHERE segment IS NULL;
CREATE INDEX edits_by_conversation ON edits (conversation, call);
CREATE INDEX edits_rejected ON edits (conversation) WHERE instr(units, 'r');
CREATE INDEX edits_by_age ON edits (time) WHERE NOT void AND NOT expired AND status NOT IN ('p', 'w');
CREATE INDEX edits_by_turn ON edits (turn) WHERE turn > 0;
CREATE INDEX edits_by_session ON edits (session) WHERE session > 0;
CREATE INDEX edits_pending_in_sessions ON edits (session, document)
    WHERE session > 0 AND status = 'p' AND NOT void AND NOT expired;
CREATE INDEX edits_voided ON edits (seq) WHERE void;
CREATE INDEX edits_with_markers ON edits (document) WHERE marks > 0"""
"""Indexes that only queries use: created after a log has been read, because each record would change most of them.

`unheld` has every column that queries of it need, so that they don't read the table.
"""

TRIGGERS: Final = (
    """
    CREATE TRIGGER blob_duplicated AFTER UPDATE OF segment ON blobs
    WHEN old.segment IS NOT NULL AND new.segment IS NOT NULL
    BEGIN INSERT INTO duplicates SELECT new.id WHERE NOT EXISTS (SELECT 1 FROM duplicates WHERE id = new.id); END
    """,
    """
    CREATE TRIGGER path_added AFTER INSERT ON paths
    BEGIN INSERT OR IGNORE INTO paths_copy VALUES (new.path, new.document); END
    """,
    """
    CREATE TRIGGER path_removed AFTER DELETE ON paths
    BEGIN DELETE FROM paths_copy WHERE path = old.path AND document = old.document; END
    """,
)
"""Note a second frame of a blob, and keep a second table of which documents were at a path.

A record may depend on the absence of a row, as it may on that of a blob (see `LATER_TRIGGERS`). If a blob is noted as
duplicated, its second frame may have been removed since.
"""

LATER_TRIGGERS: Final = (
    "UPDATE totals SET blobs = (SELECT count(*) FROM blobs WHERE segment IS NOT NULL)",
    "INSERT INTO blob_starts SELECT DISTINCT substr(id, 1, 8) FROM blobs",
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
    CREATE TRIGGER blob_added AFTER INSERT ON blobs
    BEGIN INSERT OR IGNORE INTO blob_starts VALUES (substr(new.id, 1, 8)); END
    """,
    """
    CREATE TRIGGER blob_removed AFTER DELETE ON blobs
    BEGIN DELETE FROM blob_starts WHERE start = substr(old.id, 1, 8)
        AND NOT EXISTS (SELECT 1 FROM blobs
            WHERE id BETWEEN start AND CAST(start || x'ffffffffffffffffffffffffffffffffffffffffffffffff' AS BLOB)); END
    """,
)
"""Keep the number of stored blobs, which would otherwise be counted row by row, and a second table of which exist.

That has the first bytes of their ids: a record may depend on the absence of a blob's row. Both are filled and the
triggers created after a log has been read, because each of its blobs would run two of them.

The number is not reduced by a trigger when stored blobs are deleted: only `moved_frames` does that, and subtracts
them together.
"""

COMPARED: Final = {
    "position": "SELECT * FROM position",
    "generations": "SELECT * FROM generations ORDER BY segment",
    "blobs": "SELECT id, segment, offset, length, size, depth, base, refs, checksum FROM blobs ORDER BY id",
    "blob_starts": "SELECT * FROM blob_starts ORDER BY start",
    "edits": "SELECT * FROM edits ORDER BY seq",
    "paths": "SELECT * FROM paths ORDER BY path, document",
    "paths_copy": "SELECT * FROM paths_copy ORDER BY path, document",
    "calls": "SELECT * FROM calls ORDER BY conversation",
    "documents": "SELECT * FROM documents ORDER BY id",
    "folders": "SELECT * FROM folders ORDER BY number",
    "decisions": "SELECT * FROM decisions ORDER BY number",
    "former_statuses": "SELECT * FROM former_statuses ORDER BY number",
    "trees": "SELECT * FROM trees ORDER BY id",
    "chunk_lists": "SELECT * FROM chunk_lists ORDER BY id",
    "snapshots": "SELECT * FROM snapshots ORDER BY number",
    "pins": "SELECT * FROM pins ORDER BY number",
    "expiries": "SELECT * FROM expiries ORDER BY number",
    "turns": "SELECT * FROM turns ORDER BY number",
    "sessions": "SELECT * FROM sessions ORDER BY number",
    "comments": "SELECT * FROM comments ORDER BY number",
    "marks": "SELECT * FROM marks ORDER BY number",
    "settings": "SELECT * FROM settings ORDER BY number",
    "cautions": "SELECT * FROM cautions ORDER BY number",
    "totals": "SELECT * FROM totals",
    "decided": "SELECT * FROM decided ORDER BY document, number",
}
"""What the log determines of each table: equal in any two indexes of one log."""


def checksum(table: str, *values: str | bytes | int | None) -> bytes:
    """Return the checksum of a row of a table with these values, in the order in which SQL passes them."""
    # As SQLite casts a value to BLOB.
    return _row_checksum(
        table, *[value if value is None or type(value) is bytes else str(value).encode() for value in values]
    )


def _row_checksum(*values: str | bytes | None) -> bytes:
    """Return 8 bytes of BLAKE3 over the name of a table and the values of a row."""
    # Version 0 is that of the first Python 3. If a later one encoded it differently, the index would be rebuilt once.
    return blake3(marshal.dumps(values, 0)).digest(8)


def prepare(db: sqlite3.Connection) -> None:
    """Let readers and one writer work at the same time, and let statements compute a row's checksum."""
    db.create_function("row_checksum", -1, _row_checksum, deterministic=True)
    if db.execute("PRAGMA journal_mode").fetchone() == ("delete",):
        # A new database: SQLite would create a journal by its path, which may lead elsewhere by now (see `index_file`).
        db.execute("PRAGMA journal_mode = MEMORY")
        db.execute(f"PRAGMA page_size = {PAGE}")
    db.execute("PRAGMA journal_mode = WAL")
    # A power cut may then lose the newest rows, but never corrupt them; they are read from the log again.
    db.execute("PRAGMA synchronous = NORMAL")
    # The same on macOS, where fsync(2) alone doesn't reach the drive; elsewhere this has no effect.
    db.execute("PRAGMA checkpoint_fullfsync = ON")
    # SQLite truncates its log when it starts it again, so that the log's size says how much awaits a checkpoint.
    db.execute("PRAGMA journal_size_limit = 0")
    db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    db.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")


def begin_writing(db: sqlite3.Connection) -> None:
    """Begin a transaction that writes, as soon as no other one is open. Raises SQLite's error after 10 s."""
    # SQLite itself polls after 1, 2, 5, 10, 15, 20, 25 ms and more: too rarely if each writer takes a few.
    until = time.monotonic() + BUSY_SECONDS
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
        db.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")


def is_unwritable(error: SqliteError) -> bool:
    """Return whether the error means that the file or its folder is read-only or has no room."""
    return _code(error) in _UNWRITABLE or getattr(error, "sqlite_errorcode", None) in _NO_SHARED_MEMORY


def is_broken(error: SqliteError) -> bool:
    """Return whether the error means that the file is not a usable index."""
    return _code(error) in _BROKEN


def malformed(why: str) -> sqlite3.DatabaseError:
    """Return the error that SQLite raises for a damaged file, for damage that SQLite can't see.

    Its pages have no checksums.
    """
    error = sqlite3.DatabaseError(why)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def is_blocked_by_another(error: SqliteError, size: int) -> bool:
    """Return whether SQLite can't prepare a new database because other processes still have a former one open.

    The former one was emptied, or its file was removed without the files next to it. A process that has it open uses
    these until they are removed as well.
    """
    if _code(error) == sqlite3.SQLITE_BUSY:
        return size == 0
    # It may have its first page by now. A sound one may have no more either, while the others are in SQLite's log.
    return _code(error) == sqlite3.SQLITE_IOERR and size <= PAGE


def raise_interruption(error: BaseException | None) -> None:
    """Raise KeyboardInterrupt if that is why a statement failed: SQLite keeps what a signal raises in a checksum."""
    if isinstance(error, sqlite3.OperationalError) and str(error) == _INTERRUPTED:
        raise KeyboardInterrupt from error


def _code(error: SqliteError) -> int:
    # Python finds text that is not UTF-8, in a row or in SQLite's message about a schema, and gives no code.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & _PRIMARY


def unusable(why: object, path: str = "index.sqlite") -> IndexUnusable:
    """Return the error for an index with impossible contents."""
    return IndexUnusable(path, _refusal(why))


def _refusal(why: object) -> str:
    return f"The index can't be used ({why}); it may be deleted"


class IndexErrors:
    """Translate SQLite's errors to errors of the store. A class instead of a generator, for speed as in `disk`."""

    __slots__ = ("_doubt", "_path")

    def __init__(self, path: str, doubt: Callable[[], object] | None = None) -> None:
        """Name the index. `doubt`: called if it is damaged (None: nothing is called)."""
        self._path = path
        self._doubt = doubt

    def __enter__(self) -> None:
        """Do nothing: only the exit matters."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Raise StoreLocked, DiskFull, IndexUnusable or DiskFailed in place of an error of SQLite's.

        And KeyboardInterrupt, after Ctrl-C in the middle of a statement.
        """
        raise_interruption(error)
        is_damaged = isinstance(error, IndexUnusable) or (isinstance(error, SQLITE_ERRORS) and is_broken(error))
        if is_damaged and self._doubt is not None:
            self._doubt()
        if isinstance(error, IndexUnusable) and error.path != self._path:
            raise IndexUnusable(self._path, error.reason) from error  # the raiser doesn't know the path
        if not isinstance(error, SQLITE_ERRORS):
            return
        match _code(error):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise StoreLocked(self._path, BUSY_SECONDS) from error
            case sqlite3.SQLITE_FULL:
                raise DiskFull(self._path) from error
            case _ if is_broken(error):
                raise unusable(error, self._path) from error
            case _:
                raise DiskFailed(self._path, _refusal(error)) from error
