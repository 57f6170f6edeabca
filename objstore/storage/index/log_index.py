"""Keep a SQLite index of the log up to date, and hand out what can be looked up in it.

The index is derived from the log and is never the only copy of anything: it can be deleted at any moment. It stores how
far it has read and which record it read last. When it is opened, it reads on from there; if the log no longer has that
record, the index is rebuilt.
"""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Final

from objstore.model.basic_types import Progress, ignore_progress
from objstore.model.ids import BlobId, RecordId, record_id
from objstore.storage.index.database import (
    CHECKPOINT_PAGES,
    LATER_INDEXES,
    LATER_TRIGGERS,
    SCHEMA,
    SCHEMA_VERSION,
    SQLITE_ERRORS,
    TRIGGERS,
    IndexErrors,
    begin_writing,
    checksum,
    is_blocked_by_another,
    is_broken,
    is_unwritable,
    prepare,
    raise_interruption,
)
from objstore.storage.index.index_file import Checkpoints, IndexFile, empty_in_memory, nameless
from objstore.storage.index.queries.blob_queries import BlobQueries
from objstore.storage.index.queries.database_checks import DatabaseChecks
from objstore.storage.index.queries.document_queries import DocumentQueries, FolderQueries, HistoryQueries
from objstore.storage.index.queries.holder_queries import HolderQueries
from objstore.storage.index.queries.record_queries import DecisionQueries, EditQueries
from objstore.storage.index.queries.turn_queries import (
    CautionQueries,
    CommentQueries,
    SessionQueries,
    SettingQueries,
    TurnQueries,
)
from objstore.storage.index.rows import ChainedRecord, NewestNumbers
from objstore.storage.index.shared_connection import RecordNumbers, SharedConnection
from objstore.storage.log.frames import FrameKind
from objstore.storage.log.segment_files import Place
from objstore.storage.log.segments import Group, Log
from objstore.values.errors import IndexUnusable, StoreDamaged

if TYPE_CHECKING:
    from objstore.storage.index.queries.file_stat_queries import CleanFolder, FileStatQueries, JournalPosition
    from objstore.storage.index.queries.total_queries import TotalQueries

__all__ = ["Index"]

_MOMENT_SECONDS: Final = 0.01
"""How long one transaction of `catch_up` lasts, and so how long a writer may have to wait to index its own edits."""

_LARGE_CACHE_KIB: Final = 16 << 10
"""SQLite's page cache while the whole log is read, in KiB: four times as much takes no less time at 100,000 edits."""

_REMOVALS: Final = 3
"""How often the file may be removed while it is opened: other processes may be creating one at the same moment."""

_CLOSED: Final = -1
"""Used in place of an inode number: a closed index is never the file at its path, even if no other could be opened."""


class Index:
    """The index of one log: follows the log, and hands out one object per subject that can be looked up.

    The objects stay valid when the index is opened again in another file: they share its connection.
    """

    def __init__(self, file: IndexFile | None, log: Log, progress: Progress = ignore_progress) -> None:
        """Open the index and read on to the end of the log, or rebuild the index if it doesn't fit the log.

        `file`: to be closed after the index (None: a temporary file without a name). `progress`: of a rebuild.

        Raises StoreDamaged, StoreLocked, DiskFull, DiskFailed.
        """
        self._file = file
        self._log = log
        self._progress = progress
        self.end: Place = log.first
        self.last_record: RecordId | None = None
        self._last_place = Place(0, 0)
        self._newest = NewestNumbers(0, 0, 0, 0, 0, 0)
        self._known_generations = log.files.generations()
        self._checkpoints = None if file is None else Checkpoints(file, log.store)
        # Every object refers to the connection and to the log, none of them to the index: a reference cycle would keep
        # the files of an index open until the garbage collector runs.
        self._db: Final = SharedConnection()
        self.numbers: Final = RecordNumbers(self._db)
        self.blobs: Final = BlobQueries(self._db)
        self.edits: Final = EditQueries(self._db, self.numbers)
        self.decisions: Final = DecisionQueries(self._db, self.numbers)
        self.holders: Final = HolderQueries(self._db, self.numbers)
        self.turns: Final = TurnQueries(self._db, self.numbers)
        self.sessions: Final = SessionQueries(self._db)
        self.comments: Final = CommentQueries(self._db, self.numbers)
        self.settings: Final = SettingQueries(self._db)
        self.cautions: Final = CautionQueries(self._db)
        self.documents: Final = DocumentQueries(self._db)
        self.folders: Final = FolderQueries(self._db)
        self.history: Final = HistoryQueries(self._db, self.numbers, self.decisions)
        self.checks: Final = DatabaseChecks(self._db)
        with IndexErrors("" if file is None else file.path):
            self._open()
        self._inode = self._inode_now()

    @cached_property
    def file_stats(self) -> "FileStatQueries":
        """Look up what is remembered of files on disk."""
        # Agents wait for what each hook imports.
        from objstore.storage.index.queries.file_stat_queries import FileStatQueries

        return FileStatQueries(self._db)

    @property
    def totals(self) -> "TotalQueries":
        """Look up sums over everything that is recorded."""
        from objstore.storage.index.queries.total_queries import TotalQueries  # as above

        return TotalQueries(self._db)

    def close(self) -> None:
        """Wait for checkpoints and close the database."""
        self.finish_checkpoints()
        self._inode = _CLOSED
        self._db.connection.close()

    def finish_checkpoints(self) -> None:
        """Wait until the checkpoint that this process is running, if any, has finished."""
        if self._checkpoints is not None:
            self._checkpoints.finish()

    # ---- following the log

    @property
    def is_there(self) -> bool:
        """Return whether the open database is still the file at its path: anyone may delete it at any moment."""
        return self._inode_now() == self._inode

    def _inode_now(self) -> int:
        return 0 if self._file is None else self._file.inode

    def holds(self) -> bool:
        """Return whether the log still has the record that was read last.

        A group whose sync failed may have been read before its writer cut it off, and another may have been written
        there.
        """
        if not self._log.reaches(self.end):
            return False
        if self.last_record is None:
            return True
        try:
            frame = self._log.read(self._last_place)
        except StoreDamaged:
            return False
        return frame.kind is FrameKind.RECORD and record_id(bytes(frame.payload)) == self.last_record

    def look(self) -> None:
        """Load the position from the database: other processes may have added rows or rebuilt the index."""
        self._load_position()

    def verify_position(self) -> None:
        """Rebuild the index if the log no longer has the record that any process indexed last. Raises StoreDamaged."""
        self.look()
        if self.holds():
            return
        with self._transaction():
            # Another process may have rebuilt the index while this one waited for the database.
            self._log.files.refresh(force=True)
            self._load_position()
            is_held = self.holds()
        if not is_held:
            self.rebuild()

    def catch_up(self, until: Place | None = None) -> None:
        """Index what has been appended to the log since, up to `until` (None: all of it). Raises StoreDamaged."""
        if self._log.ends_at(self.end) or self.end == until:
            return
        self.verify_position()
        while self._ingest_batch(until):
            pass

    def _ingest_batch(self, until: Place | None) -> bool:
        """Read on for a moment, in which no other process can write to the index; return whether there may be more."""
        news = self._appended(until)
        first = next(news, None)
        if first is None:
            start = self._next_start(until)
            if start is not None:
                self.begin_segment(start)
            return start is not None  # the next segment may be empty as well
        with self._transaction():
            # Another process may have read the same groups while this one waited for the database.
            before = self.end
            self._load_position()
            groups = self._appended(until) if self.end != before else chain([first], news)
            self._take((group, None) for group in _bounded_batch(groups))
            self.end = self._next_start(until) or self.end
            self._save_position()
        return True

    def _appended(self, until: Place | None) -> Iterator[Group]:
        groups = self._log.groups(self.end)
        return groups if until is None else takewhile(lambda group: group.end <= until, groups)

    def _next_start(self, until: Place | None) -> Place | None:
        start = self._log.next_start(self.end)
        return start if until is None or start is None or start <= until else None

    @property
    def knows_generations(self) -> bool:
        """Return whether no segment has been rewritten since the index was last compared with the log."""
        return self._known_generations is self._log.files.generations()

    def follow_generations(self) -> None:
        """Rebuild the index if a segment was rewritten by a process that died before it changed the index."""
        if not self._has_generations():
            with self._transaction():
                # A process that is compacting now changes the index in one transaction with its own change.
                self._log.files.refresh(force=True)
                is_known = self._has_generations()
            if not is_known:
                self.rebuild()
        self._load_position()
        self._known_generations = self._log.files.generations()

    @property
    def last_place(self) -> Place:
        """Return the place of the last known record."""
        return self._last_place

    def file_bytes(self) -> int:
        """Return the size of the database in bytes: its changes may need as much room again next to it."""
        return self._db.number("PRAGMA page_count") * self._db.number("PRAGMA page_size")

    def begin_segment(self, start: Place) -> None:
        """Note that the log continues at `start`, where nothing has been written yet."""
        with self._transaction():
            self._load_position()
            self.end = max(start, self.end)
            self._save_position()

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Yield the database for changes in one transaction; afterwards this process loads the position again."""
        with self._transaction():
            yield self._db.connection
        self._load_position()

    @contextmanager
    def changing_much(self) -> Iterator[sqlite3.Connection]:
        """Do as `changing`, with a checkpoint only on the thread, however much is changed."""
        self._db.execute("PRAGMA wal_autocheckpoint = 0")
        try:
            with self.changing() as db:
                yield db
        finally:
            self._db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")

    def take(self, group: Group, records: Iterable[ChainedRecord], after: Place) -> None:
        """Index a group that this process has appended at `after`, the end of what was known, with its records."""
        with self._transaction():
            # Every process can read the group in the log, so another one may have indexed it already.
            self._load_position()
            follows = self.end == after
            self._take([(group, records)] if follows else ((each, None) for each in self._log.groups(self.end)))

    def rebuild(self) -> None:
        """Delete every row and index the whole log. Raises StoreDamaged."""
        # In the same file: another process may have it open, and two files of one name would confuse SQLite.
        # And in one transaction: in between, another process would add its own groups to an index without the others.
        with self._with_larger_cache(), self._transaction():
            self._log.files.refresh(force=True)
            tables = self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (name,) in tables:
                self._db.execute(f'DROP TABLE "{name}"')
            self._create()
            self._load_position()
            self._take((group, None) for group in self._counted(self._log.groups(self.end)))
            while (start := self._log.next_start(self.end)) is not None:
                self.end = start
            for statement in (*LATER_INDEXES.split(";"), *LATER_TRIGGERS):
                self._db.execute(statement)
            self._db.execute("UPDATE position SET definitions = ?", (self._definitions(),))
            self._save_position()
        self._known_generations = self._log.files.generations()

    def _counted(self, groups: Iterable[Group]) -> Iterator[Group]:
        """Yield the groups, and report how many bytes of the log they are."""
        files, segment, before, size = self._log.files, 0, 0, self._log.files.total_bytes()
        for group in groups:
            if group.segment != segment:
                before = sum(files.size(number) for number in files.numbers() if number < group.segment)
                segment = group.segment
            self._progress("bytes of the log", before + group.end.position, size)
            yield group

    def recreate(self, second: "Index | None" = None) -> None:
        """Rebuild the index; in a new file if SQLite can't even empty the current one. Raises StoreDamaged.

        `second`: a second index of the same log, which was read while no one had to wait for it (None: there is none).
        Its contents are copied if possible.
        """
        try:
            if second is not None and second.copy_to(self._db.connection):
                self._log.files.refresh(force=True)
                self._load_position()
                self._known_generations = self._log.files.generations()
            else:
                self.rebuild()
        except SQLITE_ERRORS as error:
            if self._file is None or not is_broken(error):
                raise
            # Other processes notice that their file is no longer at its path, and open the new one.
            self.close()
            self._file.remove()
            self._open()
            self._inode = self._inode_now()

    def copy_to(self, db: sqlite3.Connection) -> bool:
        """Replace the contents of `db` with those of this index, including what was appended since it was read.

        Other processes see either the old or the new contents. Call it while no writer appends. Returns whether it was
        done: not if a segment was rewritten meanwhile, or if another connection is reading `db`. Raises StoreDamaged.
        """
        self._log.files.refresh(force=True)
        if not self._has_generations():
            return False
        self.catch_up()
        with suppress(sqlite3.OperationalError):
            self._db.connection.backup(db)
            return True
        return False

    @contextmanager
    def still(self) -> Iterator[None]:
        """Read everything inside from one state of the database, whatever others write meanwhile. Don't write."""
        if self._db.connection.in_transaction:
            yield
            return
        with self._db.one_state():
            self._load_position()
            yield

    # ---- derived values that are computed again if they can't be stored

    def remember_sha256(self, found: Iterable[tuple[BlobId, bytes]]) -> None:
        """Store SHA-256 hashes of blobs that were computed, unless the index can't be written."""
        found_sums = [(digest + checksum("sha256", blob, digest), blob) for blob, digest in found]
        with self._remembering():
            self._db.executemany("UPDATE blobs SET sha256 = ? WHERE id = ?", found_sums)

    def store_seen_signatures(self, found: Iterable[tuple[bytes, int, int, int, int, BlobId]]) -> None:
        """Store stat signature and blob of files that were read, unless the index can't be written."""
        with self._remembering():
            self._db.executemany(
                "INSERT OR REPLACE INTO file_stats VALUES (?, ?, ?, ?, ?, ?, ?)",
                ((*row, checksum("file_stats", *row)) for row in found),
            )

    def store_clean_folders(
        self, until: "JournalPosition", found: "Iterable[CleanFolder]", gone: Iterable[bytes] | None
    ) -> None:
        """Store the signatures of files in scanned folders, and forget folders that have no recorded files left.

        In the other folders that are stored, nothing was recorded between the time they were stored and `until`.
        `gone`: the folders to forget (None: every folder that is not in `found`).
        """
        with self._remembering():
            if gone is None:
                self._db.execute("DELETE FROM clean_folders")
            self._db.executemany(
                "INSERT OR REPLACE INTO clean_folders VALUES (?, ?, ?, ?, ?)",
                ((*each, checksum("clean_folders", *each)) for each in found),
            )
            self._db.executemany("DELETE FROM clean_folders WHERE folder = ?", [(folder,) for folder in gone or ()])
            self._db.execute("DELETE FROM clean_until")
            row = (*until, self._db.number("SELECT count(*) FROM clean_folders"))
            self._db.execute("INSERT INTO clean_until VALUES (?, ?, ?, ?, ?)", (*row, checksum("clean_until", *row)))

    # ---- inside: the database

    def _open(self) -> None:
        if self._file is None:
            self._follow(nameless())
            return
        for _ in range(_REMOVALS):
            try:
                self._follow(self._file.connect(self._log.store))
            except IndexUnusable:
                pass  # it is another store's, or its rows are impossible, as they may be after damage to SQLite's pages
            except SQLITE_ERRORS as error:
                if is_unwritable(error):
                    self._follow(self._file.copy_in_memory())
                    return
                if not is_broken(error) and not is_blocked_by_another(error, self._file.size):
                    raise
            else:
                return
            try:
                self._file.remove()
            except OSError:
                self._follow(empty_in_memory())  # a read-only store
                return
        self._follow(self._file.connect(self._log.store))

    def _follow(self, db: sqlite3.Connection) -> None:
        """Send all queries to this database, and read on to the end of the log. Closes it if that fails."""
        try:
            prepare(db)
            self._db.use(db)
            if not self._fits():
                with self._transaction():
                    # Another process may have created the tables while this one waited.
                    is_made = self._fits()
                if not is_made:
                    self.rebuild()
            self._load_position()
            self._known_generations = self._log.files.generations()
            self.catch_up()
        except BaseException:
            db.close()
            raise

    def _fits(self) -> bool:
        """Return whether the database has this version and store, and the log still has the record read last."""
        self._log.files.refresh(force=True)
        if self._db.number("PRAGMA user_version") != SCHEMA_VERSION:
            return False
        row = self._db.execute("SELECT * FROM position").fetchone()
        if row is None or row[0] != self._log.store or not _is_position(*row[1:-1]):
            return False
        if row[-1] != self._definitions():
            return False  # with one wrong letter, a query finds no rows or wrong ones
        if not self._has_generations():
            return False
        self._load_position()
        try:
            return self.holds()
        except StoreDamaged:
            return False

    def _definitions(self) -> bytes:
        """Return a checksum over the definitions of all tables, indexes and triggers."""
        return checksum("schema", *chain.from_iterable(self.checks.schema()))

    def _has_generations(self) -> bool:
        return dict(self._db.execute("SELECT segment, generation FROM generations")) == self._log.files.generations()

    def _create(self) -> None:
        for statement in (*SCHEMA.split(";"), *TRIGGERS):
            self._db.execute(statement)
        begin = self._log.store, *self._log.first
        self._db.execute("INSERT INTO position VALUES (?, ?, ?, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL)", begin)
        self._db.executemany("INSERT INTO generations VALUES (?, ?)", self._log.files.generations().items())
        self._db.execute("INSERT INTO totals VALUES (0, 0)")
        self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def _with_larger_cache(self) -> Iterator[None]:
        """Let SQLite cache more pages: blobs arrive in the log's order, and their rows are in that of their ids."""
        usual = self._db.number("PRAGMA cache_size")
        self._db.execute(f"PRAGMA cache_size = {-_LARGE_CACHE_KIB}")
        try:
            yield
        finally:
            self._db.execute(f"PRAGMA cache_size = {usual}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        known = self.end, self.last_record, self._last_place, self._newest
        try:
            begin_writing(self._db.connection)
            yield
            self._db.execute("COMMIT")
        except BaseException as error:
            if self._db.connection.in_transaction:  # SQLite rolls some back itself, for example on a full disk
                self._db.execute("ROLLBACK")
            self.end, self.last_record, self._last_place, self._newest = known
            raise_interruption(error)
            raise
        if self._checkpoints is not None:
            self._checkpoints.after_change()

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        try:
            with self._transaction():
                yield
        except SQLITE_ERRORS as error:
            if not is_unwritable(error):
                raise

    def _load_position(self) -> None:
        row = self._db.execute(
            "SELECT segment, offset, last_record, last_segment, last_offset, edits, decisions, snapshots, pins, turns, "
            "comments FROM position"
        ).fetchone()
        self.end = Place(row[0], row[1])
        self.last_record = None if row[2] is None else RecordId(row[2])
        self._last_place = Place(row[3], row[4])
        self._newest = NewestNumbers(*row[5:])

    def _save_position(self) -> None:
        self._db.execute(
            "UPDATE position SET segment = ?, offset = ?, last_record = ?, last_segment = ?, last_offset = ?, "
            "edits = ?, decisions = ?, snapshots = ?, pins = ?, turns = ?, comments = ?",
            (*self.end, self.last_record, *self._last_place, *self._newest),
        )

    def _take(self, groups: Iterable[tuple[Group, Iterable[ChainedRecord] | None]]) -> None:
        """Index groups with their records (None: decode them here), and save how far the index has read."""
        from objstore.storage.index.ingest import LogIngest, decoded

        ingest = LogIngest(
            self._db.connection,
            self._log,
            self.blobs.place,
            self.numbers.newest(),
            self.last_record,
            self._last_place,
        )
        for group, records in groups:
            if self.end < group.end:
                ingest.take(group, decoded(group) if records is None else records)
                self.end = group.end
        ingest.settle()
        self.last_record, self._last_place, self._newest = ingest.last_record, ingest.last_place, ingest.newest
        self._save_position()


def _is_position(segment: object, offset: object, last_record: object, *others: object) -> bool:
    """Return whether the values of the row in `position` have the schema's types: SQLite accepts any type."""
    numbers = (segment, offset, *others)
    return all(isinstance(number, int) for number in numbers) and isinstance(last_record, bytes | None)


def _bounded_batch(groups: Iterable[Group]) -> Iterator[Group]:
    """Yield as many of the groups as can be indexed in a moment, and at least one."""
    began = time.monotonic()
    for group in groups:
        yield group
        if time.monotonic() - began > _MOMENT_SECONDS:
            return
