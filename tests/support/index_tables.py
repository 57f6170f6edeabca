"""Read an index's tables, to compare them with those of an index rebuilt from the log."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.disk.fs.disk import Disk
from objstore.model.record_codec import decode_record
from objstore.model.records import Decision, Edit, Record, Void
from objstore.storage.index.index_file import IndexFile
from objstore.storage.index.log_index import Index
from objstore.storage.log.frames import FrameKind
from objstore.storage.log.segments import Log

if TYPE_CHECKING:
    from objstore.model.basic_types import FileState

__all__ = ["Tables", "counted_refs", "index_at", "rebuilt_tables", "records_of", "tables"]

Tables: TypeAlias = dict[str, list[tuple[object, ...]]]

# What is worked out when it is asked for, and so may be there or not; and blobs whose second frame may have gone since.
_CACHE_TABLES: Final = {"file_stats", "clean_folders", "clean_until", "duplicates"}
_CACHE_COLUMNS: Final = {"sha256"}


@contextmanager
def index_at(path: Path, log: Log) -> Iterator[Index]:
    """Open the index of a log in the file at `path`, and close it."""
    with closing(IndexFile(str(path))) as file, closing(Index(file, log)) as index:
        yield index


def tables(path: Path) -> Tables:
    """Return every row of every table of an index, except cached values that are not derived from the log."""
    with closing(sqlite3.connect(path)) as db:
        return _rows(db)


def rebuilt_tables(store: Path) -> Tables:
    """Return the tables of a new index, made from the log of the store in the folder `store`."""
    # Without a name, so that nothing of it is waited for until the disk has it.
    with closing(Log(str(store / "segments"), Disk())) as log, closing(Index(None, log)) as index:
        return _rows(index._db.connection)  # noqa: SLF001 - a file without a name can't be opened again


def _rows(db: sqlite3.Connection) -> Tables:
    names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    found: Tables = {}
    for name in names:
        if name in _CACHE_TABLES:
            continue
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
        kept = ", ".join(column for column in columns if column not in _CACHE_COLUMNS)
        found[name] = sorted(db.execute(f"SELECT {kept} FROM {name}"), key=repr)  # noqa: S608 - its own names
    return found


def records_of(store: Path) -> list[Record]:
    """Return every record of the store, oldest first."""
    log = Log(str(store / "segments"), Disk())
    try:
        return [
            decode_record(bytes(frame.payload))[0]
            for group in log.groups(log.first)
            for frame in group.frames
            if frame.kind is FrameKind.RECORD
        ]
    finally:
        log.close()


def counted_refs(records: Iterable[Record]) -> dict[bytes, int]:
    """Return how often records name each blob."""
    refs: dict[bytes, int] = {}
    for record in records:
        states: list[FileState | None] = []
        match record:
            case Edit():
                states = [record.before, record.after]
            case Decision():
                states = [state for written in record.written for state in (written.before, written.after)]
            case Void():
                pass
        for state in states:
            if state is not None:
                refs[state.blob] = refs.get(state.blob, 0) + 1
    return refs
