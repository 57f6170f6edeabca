"""Update the places in the index after a compaction, some rows at a time, while readers and writers continue.

From the moment when a segment's new file counts, the index's rows for that segment are out of date but still usable:
the segment's frame moves (`frame_moves`) translate places, and a blob that has no move is gone. This module updates the
rows: first those of deltas that were encoded again, because the old encoding names a base that is gone; then, in one
pass over all segments in the order of each table, those of the other blobs and of records. Each statement checks what
the row was before: another process may have stored the blob again meanwhile.
"""

import re
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.storage.index.database import SUMS
from objstore.storage.log.blob_codec import parse_blob_header
from objstore.storage.log.frames import FrameKind
from objstore.storage.log.segment_files import GENERATION, Place
from objstore.storage.log.segments import ReadAhead

if TYPE_CHECKING:
    from objstore.storage.index.log_index import Index
    from objstore.storage.log.segments import Log

__all__ = ["Changes", "relocate", "relocation_batches"]

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
"""Tables whose rows have the place of a record, and the column that numbers the rows."""

Changes: TypeAlias = list[tuple[str, list[tuple[int | bytes | None, ...]]]]
"""Statements, each with the values of each execution."""

_FEWEST: Final = 256
_MOST: Final = 4_096
"""Fewest and most rows that are changed in one transaction."""

_CHECKPOINT_ROWS: Final = 8_192
"""Changed rows after which a checkpoint runs: many fewer pages than SQLite's own limit."""

_SECONDS: Final = 0.008
"""How long one transaction should take: a writer that adds to the index waits for it."""

_PAUSE: Final = 0.0007
"""Seconds between transactions in which the index is free: a waiting process polls within that time."""


def _sum_of(table: str, **now: str) -> str:
    """Return the new checksum of a row in which columns change; a wrong checksum stays wrong."""
    changed = re.sub(r"\w+", lambda name: now.get(name[0], name[0]), SUMS[table])
    return f"checksum = iif(checksum IS {SUMS[table]}, {changed}, checksum)"


_LAST_MOVED: Final = "UPDATE position SET last_offset = ? WHERE last_segment = ? AND last_offset = ?"
_REENCODED: Final = (
    "UPDATE blobs SET offset = ?, length = ?, depth = ?, base = ?, "  # noqa: S608 - this module's own text
    f"{_sum_of('blobs', offset='?', depth='?')} WHERE id = ? AND segment = ? AND offset < ?"
)

# These change a range of rows; `moved` is the SQL function that Index.relocating defines.
_SOME: Final = "id > ? AND id <= ? AND segment IN (SELECT segment FROM moving)"
_GONE: Final = f"DELETE FROM blobs WHERE refs = 0 AND moved(segment, offset) IS NULL AND {_SOME}"  # noqa: S608 - this module's own text
_COUNTED: Final = "UPDATE totals SET blobs = blobs - changes()"  # by the rows that _GONE has just deleted
_MOVED: Final = (
    "UPDATE blobs SET offset = moved(segment, offset), "  # noqa: S608 - as above
    f"{_sum_of('blobs', offset='moved(segment, offset)')} WHERE {_SOME}"
)
_MISSED: Final = (
    "UPDATE blobs SET segment = NULL, length = NULL, size = NULL, depth = NULL, base = NULL, checksum = NULL "  # noqa: S608 - as above
    f"WHERE offset IS NULL AND {_SOME}"
)
_NOW: Final = "ifnull(moved(segment, offset), offset)"
_SINGLE: Final = "DELETE FROM duplicates WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.id = duplicates.id)"


def relocate(index: "Index", log: "Log") -> None:
    """Make the index follow what compaction moved. Only one process may do so at a time. Raises StoreDamaged."""
    size = _Size()
    changed = 0
    with index.relocating():
        for changes in relocation_batches(index, log, size.rows_at_once):
            began = time.monotonic()
            with index.changing() as db:
                for statement, rows in changes:
                    changed += db.executemany(statement, rows).rowcount
            taken = time.monotonic() - began
            size.adjust(taken)
            if changed >= _CHECKPOINT_ROWS:
                # Otherwise SQLite would do it in the next commit that is too large, which may be a writer's.
                index.request_checkpoint()
                changed = 0
            # Waiting processes get the index now.
            time.sleep(_PAUSE)


class _Size:
    """The number of rows to change in one transaction."""

    def __init__(self) -> None:
        self._rows = _FEWEST

    def rows_at_once(self) -> int:
        """Return the number of rows."""
        return self._rows

    def adjust(self, taken: float) -> None:
        """Choose more or fewer rows, after a transaction that took this many seconds."""
        self._rows = max(_FEWEST, self._rows * 3 // 4) if taken > _SECONDS else min(_MOST, self._rows * 5 // 4)


def relocation_batches(index: "Index", log: "Log", size: Callable[[], int]) -> Iterator[Changes]:
    """Yield the changes to make in the index while `relocating`, each to be made before the next is requested.

    `size`: returns about how many rows to change in one batch. Raises StoreDamaged.
    """
    segments = index.places.moving()
    for segment in segments:
        yield from _reencoded(log, segment, size)
    yield from _blobs(index, size)
    yield [(_SINGLE, [()])]
    for table in _RECORD_TABLES:
        yield from _records(index, table, size)
    last = index.last_place
    moved = log.files.newest(last)
    if moved is not None and moved != last:
        yield [(_LAST_MOVED, [(moved.offset, *last)])]


def _reencoded(log: "Log", segment: int, size: Callable[[], int]) -> Iterator[Changes]:
    moves = log.files.moves(segment)
    rows: list[tuple[int | bytes | None, ...]] = []
    start = log.files.generations().get(segment, 0) * GENERATION
    ahead = ReadAhead(log)
    for position in () if moves is None else moves.reencoded:
        payload = ahead.payload(Place(segment, start + position), FrameKind.BLOB)
        header = parse_blob_header(payload)
        now = start + position, header.depth
        rows.append((now[0], len(payload), now[1], header.base, *now, header.id, segment, start))
        if len(rows) >= size():
            yield [(_REENCODED, rows)]
            rows = []
    if rows:
        yield [(_REENCODED, rows)]


def _blobs(index: "Index", size: Callable[[], int]) -> Iterator[Changes]:
    last: bytes | None = b""
    while last is not None:
        some = last, index.blobs.id_after(last, size())
        if some[1] is not None:
            yield [(_GONE, [some]), (_COUNTED, [()]), (_MOVED, [some]), (_MISSED, [some])]
        last = some[1]


def _records(index: "Index", table: str, size: Callable[[], int]) -> Iterator[Changes]:
    number = _RECORD_TABLES[table]
    summed = "" if table not in SUMS else f", {_sum_of(table, offset=_NOW)}"
    statement = (
        f"UPDATE {table} SET offset = {_NOW}{summed} "  # noqa: S608 - this module's own names
        f"WHERE {number} > ? AND {number} <= ? AND segment IN (SELECT segment FROM moving)"
    )
    last: int | None = 0
    while last is not None:
        some = last, index.places.record_after(table, number, last, size())
        if some[1] is not None:
            yield [(statement, [some])]
        last = some[1]
