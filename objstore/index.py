"""The index: what the log says, in SQLite, to be asked quickly. Derived; it can be deleted at any moment.

It remembers how far it has read and the record it read last. When it is opened it reads on from there, and when what
it remembers is not what the log holds, it starts anew. Nothing here is ever the only copy of anything.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from objstore.errors import DiskFailed, DiskFull, StoreDamaged, StoreLocked
from objstore.frames import FrameKind
from objstore.ids import BlobId, RecordId, record_id
from objstore.segments import Group, Log, Place
from objstore.terms import DocumentId, FileState, Seq, Status

if TYPE_CHECKING:
    from objstore.records import Record

__all__ = ["COMPARED", "STATUS_LETTERS", "BlobPlace", "Chained", "EditRow", "Index", "Tip", "index_errors"]

_SCHEMA_VERSION: Final = 2
_BUSY_SECONDS: Final = 10
_PRIMARY: Final = 0xFF
"""Mask of an SQLite error's primary code."""

_BROKEN: Final = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
)
"""What SQLite says of a file that is no index of ours: it is made anew."""

_UNWRITABLE: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})
"""What SQLite says of a file or folder that it may not write: then the index is kept in memory."""

STATUS_LETTERS: Final = {Status.PENDING: "p", Status.ACCEPTED: "a", Status.REJECTED: "r"}
_STATUSES: Final = {letter: status for status, letter in STATUS_LETTERS.items()}

_SCHEMA: Final = """
CREATE TABLE position (
    store BLOB, segment INTEGER, offset INTEGER, last_record BLOB, last_segment INTEGER, last_offset INTEGER
);
CREATE TABLE blobs (
    id BLOB PRIMARY KEY, segment INTEGER, offset INTEGER, size INTEGER, depth INTEGER, refs INTEGER, sha256 BLOB
) WITHOUT ROWID;
CREATE TABLE edits (
    seq INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, document INTEGER, conversation TEXT,
    call INTEGER, status TEXT, units TEXT, whole INTEGER, reason TEXT,
    added INTEGER, removed INTEGER, void INTEGER
);
CREATE INDEX edits_by_document ON edits (document, seq);
CREATE INDEX edits_by_conversation ON edits (conversation, call);
CREATE INDEX edits_by_status ON edits (status, seq);
CREATE TABLE paths (path BLOB, document INTEGER, PRIMARY KEY (path, document)) WITHOUT ROWID;
CREATE TABLE documents (id INTEGER PRIMARY KEY, path BLOB, blob BLOB, mode INTEGER);
CREATE INDEX documents_by_path ON documents (path);
CREATE TABLE folders (path BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY, id BLOB, segment INTEGER, offset INTEGER, takes_back INTEGER, before BLOB, void INTEGER
);
CREATE TABLE decided (document INTEGER, number INTEGER, PRIMARY KEY (document, number)) WITHOUT ROWID;
CREATE TABLE seen (
    path BLOB PRIMARY KEY, inode INTEGER, size INTEGER, mtime INTEGER, ctime INTEGER, blob BLOB
) WITHOUT ROWID;
"""

COMPARED: Final = {
    "position": "SELECT * FROM position",
    "blobs": "SELECT id, segment, offset, size, depth, refs FROM blobs ORDER BY id",
    "edits": "SELECT * FROM edits ORDER BY seq",
    "paths": "SELECT * FROM paths ORDER BY path, document",
    "documents": "SELECT * FROM documents ORDER BY id",
    "folders": "SELECT * FROM folders ORDER BY path",
    "decisions": "SELECT * FROM decisions ORDER BY number",
    "decided": "SELECT * FROM decided ORDER BY document, number",
}
"""What the log determines of each table: to be equal in any two indexes of one log."""

Row: TypeAlias = tuple[int | str | bytes | None, ...]


class BlobPlace(NamedTuple):
    """Where a blob's frame lies, and what must be known before it is read."""

    place: Place
    size: int
    depth: int


class Tip(NamedTuple):
    """A document as the journal last says: where it stands and what it holds."""

    document: DocumentId
    path: bytes
    state: FileState | None  # None: it does not exist


class Chained(NamedTuple):
    """A record with its name and the name of the one before it."""

    record: "Record"
    id: RecordId
    previous: RecordId | None  # None: it is the first


class EditRow(NamedTuple):
    """What the index knows of an edit."""

    seq: Seq
    id: RecordId
    place: Place
    status: Status
    units: tuple[Status, ...]
    whole: bool
    reason: str


class Index:
    """The index of one log."""

    def __init__(self, path: str, log: Log) -> None:
        """Open the index, read on to the end of the log, or start anew where it doesn't fit the log."""
        self._path = path
        self._log = log
        self.end: Place = log.first
        self.last_record: RecordId | None = None
        self._last_place = Place(0, 0)
        self._db = self._opened()
        self._inode = self._inode_now()

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    # ---- following the log

    @property
    def is_there(self) -> bool:
        """Return whether the database is still the file of its name: it may be deleted at any moment."""
        return self._inode_now() == self._inode

    def _inode_now(self) -> int:
        try:
            return os.stat(self._path).st_ino
        except OSError:
            return 0  # a store that may only be read may have none

    def catch_up(self) -> None:
        """Read what has been appended to the log since. Raises StoreDamaged."""
        if self._log.ends_at(self.end):
            return
        self._load_position()
        news = self._log.groups(self.end)
        first = next(news, None)
        if first is None:
            return
        with self._transaction():
            # Another process may have read the same groups while this one waited for the database.
            before = self.end
            self._load_position()
            groups = self._log.groups(self.end) if self.end != before else chain([first], news)
            self._take((group, None) for group in groups)

    def take(self, groups: Iterable[tuple[Group, Iterable[Chained]]]) -> None:
        """Add groups that this process has appended, at the end of what is known, with their records."""
        with self._transaction():
            # In the log they were there for all to see, so another process may have put some here already.
            self._load_position()
            self._take(groups)

    def rebuild(self) -> None:
        """Forget everything and read the whole log. Raises StoreDamaged."""
        # In place: another process may have the same file open, and two files of one name would confuse SQLite.
        with self._transaction():
            tables = self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (name,) in tables:
                self._db.execute(f'DROP TABLE "{name}"')
            self._create()
        self._load_position()
        self.catch_up()

    def rows(self, table: str) -> Iterator[Row]:
        """Yield what a table of COMPARED holds, in order, to be compared with another index of the same log."""
        yield from self._db.execute(COMPARED[table])

    @contextmanager
    def still(self) -> Iterator[None]:
        """Hold all that is asked to one moment, whatever other processes put in meanwhile. Nothing may be put in."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("COMMIT")

    # ---- asking: blobs

    def blob_place(self, blob: BlobId) -> BlobPlace | None:
        """Return where the blob lies (None: not in this store)."""
        row = self._db.execute("SELECT segment, offset, size, depth FROM blobs WHERE id = ?", (blob,)).fetchone()
        return None if row is None else BlobPlace(Place(row[0], row[1]), row[2], row[3])

    def blobs_between(self, low: bytes, high: bytes, limit: int) -> list[BlobId]:
        """Return up to `limit` blob ids in the closed interval."""
        rows = self._db.execute("SELECT id FROM blobs WHERE id BETWEEN ? AND ? LIMIT ?", (low, high, limit))
        return [BlobId(row[0]) for row in rows]

    def blob_count(self) -> int:
        """Return the number of blobs."""
        return self._number("SELECT count(*) FROM blobs")

    def refs(self, blob: BlobId) -> int:
        """Return how often records name the blob."""
        return self._number("SELECT refs FROM blobs WHERE id = ?", blob)

    def all_refs(self) -> Iterator[tuple[bytes, int]]:
        """Yield every blob with how often records name it."""
        yield from self._db.execute("SELECT id, refs FROM blobs")

    def sha256(self, blob: BlobId) -> bytes | None:
        """Return the blob's SHA-256 if it was worked out before."""
        row = self._db.execute("SELECT sha256 FROM blobs WHERE id = ?", (blob,)).fetchone()
        return None if row is None else row[0]

    def remember_sha256(self, found: Iterable[tuple[BlobId, bytes]]) -> None:
        """Keep SHA-256 sums that were worked out."""
        with self._transaction():
            self._db.executemany("UPDATE blobs SET sha256 = ?2 WHERE id = ?1", found)

    # ---- asking: documents

    def tip_at(self, path: bytes) -> Tip | None:
        """Return the document that stands at `path`, or else the one that was last deleted there (None: neither)."""
        row = self._db.execute(
            "SELECT id, path, blob, mode FROM documents WHERE path = ? ORDER BY blob IS NULL, id DESC LIMIT 1",
            (path,),
        ).fetchone()
        return None if row is None else _tip(row)

    def tip(self, document: DocumentId) -> Tip:
        """Return the document's tip."""
        row = self._db.execute("SELECT id, path, blob, mode FROM documents WHERE id = ?", (document,)).fetchone()
        return _tip(row)

    def tips(self) -> list[Tip]:
        """Return every document's tip, by path."""
        return [_tip(row) for row in self._db.execute("SELECT id, path, blob, mode FROM documents ORDER BY path, id")]

    def tips_at(self, path: bytes) -> list[Tip]:
        """Return every existing document at `path` (more than one is a fault)."""
        rows = self._db.execute(
            "SELECT id, path, blob, mode FROM documents WHERE path = ? AND blob IS NOT NULL", (path,)
        )
        return [_tip(row) for row in rows]

    def made_folder(self, path: bytes) -> bool:
        """Return whether a recorded edit made the folder."""
        return bool(self._number("SELECT count(*) FROM folders WHERE path = ?", path))

    def newest_places(self, limit: int) -> list[Place]:
        """Return where the newest edits and decisions lie, the newest first."""
        rows = self._db.execute(
            "SELECT segment, offset FROM edits WHERE NOT void UNION ALL SELECT segment, offset FROM decisions "
            "WHERE NOT void ORDER BY segment DESC, offset DESC LIMIT ?",
            (limit,),
        )
        return [Place(*row) for row in rows]

    def history(self, document: DocumentId, *, after_edit: int = 0, after_decision: int = 0) -> list[Place]:
        """Return where the document's edits and the decisions on them lie, in order: those with higher numbers."""
        rows = self._db.execute(
            "SELECT segment, offset FROM edits WHERE document = ?1 AND seq > ?2 AND NOT void UNION "
            "SELECT segment, offset FROM decisions JOIN decided USING (number) "
            "WHERE document = ?1 AND number > ?3 AND NOT void ORDER BY segment, offset",
            (document, after_edit, after_decision),
        )
        return [Place(*row) for row in rows]

    def decision_id(self, number: int) -> RecordId | None:
        """Return the id of the decision (None: there is none of this number)."""
        row = self._db.execute("SELECT id FROM decisions WHERE number = ? AND NOT void", (number,)).fetchone()
        return None if row is None else RecordId(row[0])

    # ---- asking: edits and decisions

    def edit(self, seq: int) -> EditRow | None:
        """Return what is known of the edit (None: there is none of this number)."""
        rows = self._edits("seq = ? AND NOT void", (seq,), "")
        return rows[0] if rows else None

    def edits(
        self,
        *,
        conversation: str = "",
        path: bytes = b"",
        status: Status | None = None,
        newest_first: bool = False,
        limit: int = 0,
    ) -> list[EditRow]:
        """Return the edits that fit every given condition. `path`: of a file whose lineage ever stood there."""
        conditions, values = ["NOT void"], list[int | str | bytes]()
        if conversation:
            conditions.append("conversation = ?")
            values.append(conversation)
        if path:
            conditions.append("document IN (SELECT document FROM paths WHERE path = ?)")
            values.append(path)
        if status is not None:
            conditions.append("status = ?")
            values.append(STATUS_LETTERS[status])
        order = f"ORDER BY seq {'DESC' if newest_first else 'ASC'}" + (" LIMIT ?" if limit else "")
        return self._edits(" AND ".join(conditions), (*values, limit) if limit else tuple(values), order)

    def edits_between(self, low: bytes, high: bytes, limit: int) -> list[EditRow]:
        """Return up to `limit` edits whose ids are in the closed interval."""
        return self._edits("id BETWEEN ? AND ? AND NOT void", (low, high, limit), "LIMIT ?")

    def conversations(self, prefix: str, limit: int) -> list[str]:
        """Return up to `limit` conversations whose names begin with `prefix`."""
        rows = self._db.execute(
            "SELECT DISTINCT conversation FROM edits WHERE conversation >= ?1 AND substr(conversation, 1, ?2) = ?1 "
            "AND NOT void ORDER BY conversation LIMIT ?3",
            (prefix, len(prefix), limit),
        )
        return [row[0] for row in rows]

    def next_call(self, conversation: str) -> int:
        """Return the position that the conversation's next call has."""
        return self._number("SELECT ifnull(max(call) + 1, 0) FROM edits WHERE conversation = ?", conversation)

    def next_seq(self) -> Seq:
        """Return the number of the next edit."""
        return Seq(self._number("SELECT ifnull(max(seq), 0) + 1 FROM edits"))

    def next_decision(self) -> int:
        """Return the number of the next decision."""
        return self._number("SELECT ifnull(max(number), 0) + 1 FROM decisions")

    def decision_places(self) -> list[tuple[RecordId, Place]]:
        """Return every decision's id and place, oldest first."""
        rows = self._db.execute("SELECT id, segment, offset FROM decisions WHERE NOT void ORDER BY number")
        return [(RecordId(row[0]), Place(row[1], row[2])) for row in rows]

    def counts(self) -> dict[Status, int]:
        """Return the number of edits of each status."""
        rows = self._db.execute("SELECT status, count(*) FROM edits WHERE NOT void GROUP BY status")
        found = {_STATUSES[row[0]]: row[1] for row in rows}
        return {status: found.get(status, 0) for status in Status}

    def conversation_count(self) -> int:
        """Return the number of conversations."""
        return self._number("SELECT count(DISTINCT conversation) FROM edits WHERE NOT void")

    def pending_groups(self) -> list[tuple[str, bytes, list[Seq], int, int]]:
        """Return (conversation, path now, edits, lines added, lines removed) of what is pending."""
        rows = self._db.execute(
            "SELECT conversation, documents.path, group_concat(seq), sum(added), sum(removed) FROM edits "
            "JOIN documents ON documents.id = document WHERE status = 'p' AND NOT void "
            "GROUP BY conversation, document ORDER BY min(seq)"
        )
        return [(row[0], row[1], sorted(Seq(int(n)) for n in row[2].split(",")), row[3], row[4]) for row in rows]

    # ---- the stat cache: which bytes a file had when it last looked like this

    def seen(self) -> dict[bytes, tuple[int, int, int, int, BlobId]]:
        """Return inode, size, mtime, ctime (ns) and blob of each file that was read, by path."""
        rows = self._db.execute("SELECT path, inode, size, mtime, ctime, blob FROM seen")
        return {row[0]: (row[1], row[2], row[3], row[4], row[5]) for row in rows}

    def remember_seen(self, found: Iterable[tuple[bytes, int, int, int, int, BlobId]]) -> None:
        """Keep what was found of files that were read."""
        with self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?, ?)", found)

    # ---- inside: the database

    def _opened(self) -> sqlite3.Connection:
        try:
            return self._connect_and_follow()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & _PRIMARY in _UNWRITABLE:
                return self._followed(self._copy_in_memory())
            if error.sqlite_errorcode & _PRIMARY not in _BROKEN:
                raise
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(self._path + suffix)
        return self._connect_and_follow()

    def _connect_and_follow(self) -> sqlite3.Connection:
        return self._followed(
            sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        )

    def _copy_in_memory(self) -> sqlite3.Connection:
        """Return a copy of what the file holds, as far as it can be read, for a store that may only be read."""
        from urllib.parse import quote

        db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        # Nobody can write beside it either, so the file is taken as it stands; what is newer is in the log.
        address = f"file:{quote(self._path)}?mode=ro&immutable=1"
        with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(address, uri=True)) as kept:
            kept.backup(db)
            db.execute("SELECT count(*) FROM position").fetchone()
            return db
        db.close()
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    def _followed(self, db: sqlite3.Connection) -> sqlite3.Connection:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            # A power cut may then lose the newest rows, never mix them up; they are read from the log again.
            db.execute("PRAGMA synchronous = NORMAL")
            self._db = db
            if not self._fits():
                with self._transaction():
                    # Another process may have made it while this one waited.
                    is_made = self._fits()
                if not is_made:
                    self.rebuild()
            self._load_position()
            self.catch_up()
        except BaseException:
            db.close()
            raise
        return db

    def _fits(self) -> bool:
        """Return whether the database is of this version and store, and the log still holds the frame it read last."""
        if self._number("PRAGMA user_version") != _SCHEMA_VERSION:
            return False
        row = self._db.execute("SELECT * FROM position").fetchone()
        if row is None or row[0] != self._log.store:
            return False
        end, last, last_place = Place(row[1], row[2]), row[3], Place(row[4], row[5])
        if last is None:
            return True
        try:
            frame = self._log.read(last_place)
            inside = end.offset <= self._log.size(end.segment)
        except StoreDamaged:
            return False
        return inside and frame.kind is FrameKind.RECORD and record_id(bytes(frame.payload)) == last

    def _create(self) -> None:
        for statement in _SCHEMA.split(";"):
            self._db.execute(statement)
        self._db.execute("INSERT INTO position VALUES (?, ?, ?, NULL, 0, 0)", (self._log.store, *self._log.first))
        self._db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        known = self.end, self.last_record, self._last_place
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            self.end, self.last_record, self._last_place = known
            raise
        self._db.execute("COMMIT")

    def _number(self, query: str, *values: int | str | bytes) -> int:
        row = self._db.execute(query, values).fetchone()
        return int(row[0]) if row is not None and row[0] is not None else 0

    def _load_position(self) -> None:
        row = self._db.execute(
            "SELECT segment, offset, last_record, last_segment, last_offset FROM position"
        ).fetchone()
        self.end = Place(row[0], row[1])
        self.last_record = None if row[2] is None else RecordId(row[2])
        self._last_place = Place(row[3], row[4])

    def _save_position(self) -> None:
        self._db.execute(
            "UPDATE position SET segment = ?, offset = ?, last_record = ?, last_segment = ?, last_offset = ?",
            (*self.end, self.last_record, *self._last_place),
        )

    def _edits(self, condition: str, values: tuple[int | str | bytes, ...], order: str) -> list[EditRow]:
        # The condition and the order are this module's own text; every value is bound.
        rows = self._db.execute(
            f"SELECT seq, id, segment, offset, status, units, whole, reason FROM edits WHERE {condition} {order}",  # noqa: S608 - see above
            values,
        )
        return [
            EditRow(
                Seq(row[0]),
                RecordId(row[1]),
                Place(row[2], row[3]),
                _STATUSES[row[4]],
                tuple(_STATUSES[letter] for letter in row[5]),
                bool(row[6]),
                row[7],
            )
            for row in rows
        ]

    def _take(self, groups: Iterable[tuple[Group, Iterable[Chained] | None]]) -> None:
        """Take in groups with their records (None: to be decoded), and note how far that is."""
        from objstore.intake import Intake, decoded

        intake = Intake(self._db, self._log, self.last_record, self._last_place)
        for group, records in groups:
            if self.end < group.end:
                intake.take(group, decoded(group) if records is None else records)
                self.end = group.end
        self.last_record, self._last_place = intake.last_record, intake.last_place
        self._save_position()


@contextmanager
def index_errors(path: str) -> Iterator[None]:
    """Turn what SQLite raises into StoreLocked, DiskFull or DiskFailed."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        match error.sqlite_errorcode & _PRIMARY:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise StoreLocked(path, _BUSY_SECONDS) from error
            case sqlite3.SQLITE_FULL:
                raise DiskFull(path) from error
            case _:
                raise DiskFailed(path, f"The index can't be used ({error}); it may be deleted") from error


def _tip(row: Row) -> Tip:
    document, path, blob, mode = row
    assert isinstance(document, int)  # noqa: S101 - the schema's types, for the checker
    assert isinstance(path, bytes)  # noqa: S101 - as above
    assert isinstance(mode, int)  # noqa: S101 - as above
    state = FileState(blob=BlobId(blob), mode=mode) if isinstance(blob, bytes) else None
    return Tip(DocumentId(document), path, state)
