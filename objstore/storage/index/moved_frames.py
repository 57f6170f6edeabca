"""Update the index in the transaction in which a rewritten segment takes the place of the old one.

The rewrite notes here where each frame goes. Each change of a blob's row checks where the row had the blob before: if
one differs, the index is damaged, and nothing is changed.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from objstore.storage.index.database import SUMS, checksum_of
from objstore.storage.log.blob_codec import ID_AT, parse_blob_header
from objstore.storage.log.frames import FRAME_HEADER_SIZE, FrameKind
from objstore.storage.log.segment_files import GENERATION
from objstore.values.errors import IndexDamaged

if TYPE_CHECKING:
    import sqlite3

    from objstore.model.ids import BlobId
    from objstore.storage.log.frames import RawFrame

__all__ = ["MovedFrames"]

_RECORD_TABLES: Final = {
    "edits": "seq",
    "decisions": "number",
    "snapshots": "number",
    "pins": "number",
    "expiries": "number",
    "turns": "number",
    "comments": "number",
    "marks": "number",
    "settings": "number",
    "cautions": "number",
}
"""Tables whose rows have the place of a record, and the column that numbers the rows in the order of the log."""

_BLOB: Final = int(FrameKind.BLOB)
_ID: Final = slice(FRAME_HEADER_SIZE + ID_AT.start, FRAME_HEADER_SIZE + ID_AT.stop)


def _sum_of(table: str, **now: str) -> str:
    """Return the new checksum of a row in which columns change; a wrong checksum stays wrong."""
    return f"checksum = iif(checksum IS {SUMS[table]}, {checksum_of(table, **now)}, checksum)"


_MOVED: Final = (
    f"UPDATE blobs SET offset = ?, {_sum_of('blobs', offset='?')} "  # noqa: S608 - this module's own text
    "WHERE id = ? AND segment = ? AND offset = ?"
)
_REENCODED: Final = (
    "UPDATE blobs SET offset = ?, length = ?, depth = ?, base = ?, "  # noqa: S608 - this module's own text
    f"{_sum_of('blobs', offset='?', depth='?')} WHERE id = ? AND segment = ? AND offset = ?"
)
_DROPPED: Final = "DELETE FROM blobs WHERE id = ? AND refs = 0 AND segment = ?"
_SINGLE: Final = "DELETE FROM duplicates WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.id = duplicates.id)"
_NOW: Final = "ifnull(moved(CAST(offset AS INTEGER)), offset)"
_LAST: Final = (
    "UPDATE position SET last_offset = ifnull(moved(CAST(last_offset AS INTEGER)), last_offset) WHERE last_segment = ?"
)


class MovedFrames:
    """The frames of one segment in its next generation, for the index."""

    def __init__(self, segment: int, generation: int) -> None:
        """Begin without a frame; `generation`: the one that is superseded."""
        self._segment: Final = segment
        self._generation: Final = generation
        self._before: Final = generation * GENERATION
        self._now: Final = (generation + 1) * GENERATION
        self._records: Final[dict[int, int]] = {}  # offset now by offset before, both in the index's counting
        self._blobs: Final[list[bytes]] = []
        self._offsets: Final = array("Q")  # now and before, of each of the blobs
        self._reencoded: Final[list[tuple[int, int, int, bytes | None, int, int, BlobId, int, int]]] = []
        self.dropped: Final[list[BlobId]] = []  # blobs of which no frame is left

    def keep(self, frame: RawFrame, position: int, payload: bytes | None = None) -> None:
        """Note that a frame goes to `position`. `payload`: what replaces its own (None: it stays as it is)."""
        before, now = self._before + frame.position, self._now + position
        if frame.kind != _BLOB:
            self._records[before] = now
        elif payload is None:
            self._blobs.append(frame.whole[_ID])
            self._offsets.extend((now, before))
        else:
            header = parse_blob_header(payload)
            changed = (now, len(payload), header.depth, header.base, now, header.depth)
            self._reencoded.append((*changed, header.id, self._segment, before))

    def apply(self, db: sqlite3.Connection) -> None:
        """Change the rows of these frames, inside a transaction of the caller. Raises IndexDamaged."""
        segment, offsets = self._segment, self._offsets
        # In the order of the table, so that each of its pages is changed once.
        order = sorted(range(len(self._blobs)), key=self._blobs.__getitem__)
        rows = ((*2 * (offsets[2 * at],), self._blobs[at], segment, offsets[2 * at + 1]) for at in order)
        changed = db.executemany(_MOVED, rows).rowcount if order else 0
        self._reencoded.sort(key=lambda row: row[6])
        changed += db.executemany(_REENCODED, self._reencoded).rowcount if self._reencoded else 0
        if changed != len(order) + len(self._reencoded):
            raise IndexDamaged(f"it has some of the blobs in segment {segment} elsewhere")
        gone = db.executemany(_DROPPED, [(name, segment) for name in sorted(self.dropped)]).rowcount
        if gone != len(self.dropped):
            raise IndexDamaged(f"it holds some of the blobs that go from segment {segment}")
        db.execute("UPDATE totals SET blobs = blobs - ?", (gone,))
        db.execute(_SINGLE)
        db.create_function("moved", 1, self._records.get, deterministic=True)
        for table, number in _RECORD_TABLES.items():
            first = self._first_in(db, table, number, segment)
            last = self._first_in(db, table, number, segment + 1) - 1
            summed = "" if table not in SUMS else f", {_sum_of(table, offset=_NOW)}"
            db.execute(
                f"UPDATE {table} SET offset = {_NOW}{summed} WHERE {number} BETWEEN ? AND ? AND segment = ?",  # noqa: S608 - this module's own names
                (first, last, segment),
            )
        db.execute(_LAST, (segment,))
        db.execute("INSERT OR REPLACE INTO generations VALUES (?, ?)", (segment, self._generation + 1))

    def _first_in(self, db: sqlite3.Connection, table: str, number: str, segment: int) -> int:
        """Return the number of the first row whose record is in a segment or after it; one more than the last's."""
        low, high = 1, 1 + db.execute(f"SELECT ifnull(max({number}), 0) FROM {table}").fetchone()[0]  # noqa: S608 - as above
        while low < high:
            middle = (low + high) // 2
            row = db.execute(f"SELECT segment FROM {table} WHERE {number} = ?", (middle,)).fetchone()  # noqa: S608 - as above
            if row is None:
                raise IndexDamaged(f"it has no row {middle} in {table}")
            low, high = (low, middle) if row[0] >= segment else (middle + 1, high)
        return low
