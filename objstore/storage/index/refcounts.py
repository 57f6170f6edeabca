"""Count what holds each blob, in step with the journal, and recount from the journal alone for comparison.

A blob is held by each mention in a record that is neither expired nor voided, by each document whose tip it is, and by
each held tree that names it, once for each entry. A tree is held by snapshots and by other trees; however often, it
holds what it names once. A held large blob holds each of its chunks once, however often it is held and names them.
Being the base of a delta does not count: compaction takes care of bases.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, assert_never

from objstore.model.basic_types import DocumentId
from objstore.model.ids import BlobId
from objstore.model.large_file_placeholder import MAX_BLOB
from objstore.model.ranges import Ranges
from objstore.model.records import (
    Comment,
    Decision,
    Edit,
    Expiry,
    Mark,
    Pin,
    Record,
    SettingChange,
    Snapshot,
    Turn,
    Void,
    VoidedRecords,
    WrittenFile,
)
from objstore.model.tree import decode_tree, named_blobs
from objstore.storage.index.database import checksum
from objstore.storage.log.blob_codec import BlobHeader
from objstore.storage.log.segment_files import Place
from objstore.values.errors import UNREADABLE, TreeInvalid

if TYPE_CHECKING:
    from objstore.storage.log.chunking import Chunk

__all__ = ["RefCounts", "held_blobs", "recount", "unexpired", "written_blobs"]

_STORED: Final = """
INSERT INTO blobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?) ON CONFLICT (id) DO UPDATE SET
    refs = refs + excluded.refs,
    segment = iif(segment IS NULL, excluded.segment, segment),
    offset = iif(segment IS NULL, excluded.offset, offset),
    length = iif(segment IS NULL, excluded.length, length),
    size = iif(segment IS NULL, excluded.size, size),
    depth = iif(segment IS NULL, excluded.depth, depth),
    base = iif(segment IS NULL, excluded.base, base),
    checksum = iif(segment IS NULL, excluded.checksum, checksum)
"""
_DUPLICATED: Final = "INSERT OR IGNORE INTO duplicates VALUES (?)"
_HELD: Final = "INSERT INTO blobs (id, refs) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET refs = refs + excluded.refs"
_ANY_LARGE: Final = f"SELECT 1 FROM blobs WHERE size > {MAX_BLOB} LIMIT 1"  # noqa: S608 - a number of our own
_FORGOTTEN: Final = "DELETE FROM blobs WHERE id = ? AND refs = 0 AND segment IS NULL"


_MANY: Final = 256
"""Number of blobs from which on changes are written: more need not be held in memory."""

_MOST: Final = 16_384
"""Number of changes that are collected while trees are read: each of their blobs is on another page."""


class RefCounts:
    """Changes to the counts of one index, collected over some groups and then written.

    A blob that is not stored may have a count: its row has no place. So counts depend neither on which frames still
    exist nor on the order in which they were written.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        place_of: Callable[[BlobId], Place | None],
        read: Callable[[BlobId], bytes],
        chunks: Callable[[BlobId], Iterable["Chunk"]],
    ) -> None:
        """Begin with no changes.

        `place_of` returns the place of a blob (None: it is not stored), `read` the bytes of a stored blob, `chunks` the
        chunks of a large one.
        """
        self._db: Final = db
        self._place_of: Final = place_of
        self._read: Final = read
        self._chunks: Final = chunks
        self._touched: set[BlobId] = set()  # blobs that may have become held or unheld
        self._stored: dict[BlobId, tuple[BlobHeader, Place, int]] = {}
        self._changes: Counter[BlobId] = Counter()
        self._trees: Counter[BlobId] = Counter()

    def store(self, header: BlobHeader, place: Place, length: int) -> None:
        """Note that a blob's frame is at `place`, with a payload of `length` bytes; the first frame counts."""
        if header.id in self._stored:
            self._db.execute(_DUPLICATED, (header.id,))
            return
        self._stored[header.id] = header, place, length

    def hold(self, blobs: Iterable[BlobId], by: int = 1) -> None:
        """Add `by` to the count of each of the blobs."""
        for blob in blobs:
            self._changes[blob] += by

    def hold_record(self, record: Record, by: int = 1) -> None:
        """Add `by` to the count of everything that a record mentions."""
        if isinstance(record, Snapshot):
            self._trees[record.root] += by
        else:
            self.hold(held_blobs(record), by)

    @property
    def are_many(self) -> bool:
        """Return whether enough changes are collected that they should be written."""
        return len(self._stored) + len(self._changes) + len(self._trees) >= _MANY

    def settle(self) -> None:
        """Write the changes to the index. If a held tree can't be read, the blobs that it names are not counted."""
        self._db.executemany(
            _STORED,
            [
                (
                    name,
                    *place,
                    length,
                    header.size,
                    header.depth,
                    header.base,
                    self._changes.pop(name, 0),
                    checksum("blobs", name, *place, header.size, header.depth),
                )
                for name, (header, place, length) in sorted(self._stored.items())
            ],
        )
        if self._stored:
            for (name,) in self._db.execute("SELECT id FROM trees WHERE read = 0").fetchall():
                if name in self._stored:
                    self._trees[name] += 0
        self._touched.update(self._stored)
        self._stored.clear()
        while self._trees:
            name, by = self._trees.popitem()
            self._changes[name] += by
            self._hold_tree(name, by)
            if len(self._changes) >= _MOST:
                self._write_changes()
        self._write_changes()
        # Most stores have no large blob: one query then saves a query for each touched blob.
        if self._db.execute(_ANY_LARGE).fetchone() is not None:
            for name in self._touched:
                self._hold_chunks(name)
            self._write_changes()
        self._touched.clear()

    def _write_changes(self) -> None:
        # In the order of the rows: blobs of one page are then changed while SQLite has it in memory.
        changes = sorted((name, by) for name, by in self._changes.items() if by)
        self._touched.update(name for name, _ in changes)
        self._db.executemany(_HELD, changes)
        self._db.executemany(_FORGOTTEN, [(name,) for name, by in changes if by < 0])
        self._changes.clear()

    def _hold_tree(self, name: BlobId, by: int) -> None:
        row = self._db.execute("SELECT refs, read FROM trees WHERE id = ?", (name,)).fetchone()
        refs, was_read = (by, False) if row is None else (row[0] + by, bool(row[1]))
        is_read = was_read
        if refs > 0 and not was_read and self._is_stored(name):
            is_read = self._hold_entries(name, 1)
        elif refs <= 0 and was_read:
            self._hold_entries(name, -1)
        if refs > 0:
            self._db.execute("INSERT OR REPLACE INTO trees VALUES (?, ?, ?)", (name, refs, is_read))
        else:
            self._db.execute("DELETE FROM trees WHERE id = ?", (name,))

    def _hold_chunks(self, name: BlobId) -> None:
        """Count the chunks of a large blob that is now held, and uncount those of one that no longer is."""
        row = self._db.execute("SELECT refs FROM blobs WHERE id = ? AND size > ?", (name, MAX_BLOB)).fetchone()
        if row is None:
            return
        is_held = self._db.execute("SELECT 1 FROM chunk_lists WHERE id = ?", (name,)).fetchone() is not None
        if (row[0] > 0) is is_held:
            return
        try:
            chunks = {chunk.id for chunk in self._chunks(name)}
        except UNREADABLE:
            return  # as in _hold_entries
        self.hold(chunks, -1 if is_held else 1)
        self._db.execute(
            "DELETE FROM chunk_lists WHERE id = ?" if is_held else "INSERT INTO chunk_lists VALUES (?)", (name,)
        )

    def _is_stored(self, name: BlobId) -> bool:
        return self._place_of(name) is not None

    def _hold_entries(self, name: BlobId, by: int) -> bool:
        try:
            named = list(named_blobs(decode_tree(self._read(name))))
        except (*UNREADABLE, TreeInvalid):
            return False  # fsck reports it, and gc removes nothing meanwhile
        for blob, is_tree in named:
            held = self._trees if is_tree else self._changes
            held[blob] += by
        return True


def held_blobs(record: Record) -> list[BlobId]:
    """Return the blobs that a record mentions, once for each mention."""
    match record:
        case Edit():
            states = [record.before, record.after]
        case Decision():
            return written_blobs(record.written)
        case Snapshot():
            return [record.root]
        case Pin():
            return list(record.blobs)
        case Void() | Expiry() | Turn() | Comment() | Mark() | SettingChange():
            return []
        case _:
            assert_never(record)
    return [state.blob for state in states if state is not None]


def written_blobs(written: Iterable[WrittenFile]) -> list[BlobId]:
    """Return the blobs that a decision holds: those of the files that it changed, once for each mention.

    The states of other files are noted in its record, but only their edits hold them.
    """
    states = [state for one in written if one.is_changed for state in (one.before, one.after)]
    return [state.blob for state in states if state is not None]


def recount(
    records: Iterable[Record],
    read: Callable[[BlobId], bytes | None],
    chunks: Callable[[BlobId], Iterable["Chunk"]],
) -> Counter[BlobId]:
    """Return the count of every held blob, computed from the journal's records alone.

    `read`: returns a tree's bytes (None: they can't be read). `chunks`: returns the chunks of a large blob (none: it is
    not large, or can't be read). Used for comparison: it works on the whole journal at once and shares no code with the
    counts in the index.
    """
    journal = list(records)
    counted: Counter[BlobId] = Counter()
    trees: list[BlobId] = []
    for record in unexpired(journal):
        counted.update(held_blobs(record))
        if isinstance(record, Snapshot):
            trees.append(record.root)
    counted.update(_tips(journal).values())
    seen: set[BlobId] = set()
    while trees:
        name = trees.pop()
        content = None if name in seen else read(name)
        seen.add(name)
        with suppress(TreeInvalid):
            for blob, is_tree in () if content is None else named_blobs(decode_tree(content)):
                counted[blob] += 1
                if is_tree:
                    trees.append(blob)
    for name in list(counted):
        counted.update({chunk.id for chunk in chunks(name)})
    return counted


def unexpired(journal: Iterable[Record]) -> list[Record]:
    """Return the records that still hold what they mention, in order: neither expired nor voided."""
    journal = list(journal)
    expiries = [record for record in journal if isinstance(record, Expiry)]
    edits = Ranges(each for expiry in expiries for each in expiry.edits)
    decisions = Ranges(each for expiry in expiries for each in expiry.decisions)
    voided = VoidedRecords(journal)
    snapshots = {number for expiry in expiries for number in expiry.snapshots}
    pins = {number for expiry in expiries for number in expiry.pins}
    held: list[Record] = []
    for record in journal:
        match record:
            case Edit():
                is_gone = record.seq in edits
            case Decision():
                is_gone = record.number in decisions
            case Snapshot():
                is_gone = record.number in snapshots
            case Pin():
                is_gone = record.number in pins
            case Void() | Expiry() | Turn() | Comment() | Mark() | SettingChange():
                is_gone = False
            case _:
                assert_never(record)
        if not is_gone and record not in voided:
            held.append(record)
    return held


def _tips(journal: Iterable[Record]) -> dict[DocumentId, BlobId]:
    """Return the blob of each document that exists."""
    journal = list(journal)
    voided = VoidedRecords(journal)
    tips: dict[DocumentId, BlobId | None] = {}
    for record in journal:
        if record in voided:
            continue
        if isinstance(record, Edit):
            tips[record.document] = None if record.after is None else record.after.blob
        elif isinstance(record, Decision):
            tips |= {w.document: None if w.after is None else w.after.blob for w in record.written}
    return {document: blob for document, blob in tips.items() if blob is not None}
