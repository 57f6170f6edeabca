"""Relocation: the index follows what a sweep moved, some rows at a time, while everybody goes on.

From the moment in which a segment's new file counts, what the index holds of the segment is out of date, and right all
the same: places are told on by the segment's moves (`moves`), and a blob that is not among them is not there. Here the
rows catch up: first those of deltas that are spelt anew, because their old spelling names what goes; then, in one pass
over all segments in the order of the table, those of the other blobs and of records. What changes a row says what the
row has to be: somebody may have stored the blob anew meanwhile.
"""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.codec import parse_blob_header
from objstore.segments import GENERATION, Place

if TYPE_CHECKING:
    from objstore.index import Index
    from objstore.segments import Log

__all__ = ["Changes", "relocate", "relocations"]

_RECORD_TABLES: Final = {
    "edits": "seq",
    "decisions": "number",
    "snapshots": "number",
    "pins": "number",
    "expiries": "number",
}
"""Tables whose rows have the place of a record, and what numbers them."""

Changes: TypeAlias = list[tuple[str, list[tuple[int | bytes | None, ...]]]]
"""Statements with the values for each time that they are to be executed."""

_FEWEST: Final = 64
_MOST: Final = 4_096
"""Rows that are changed at once."""

_PUT_BY: Final = 8_192
"""Changed rows after which the database brings them to their place: far fewer pages than it does so by itself."""

_SECONDS: Final = 0.004
"""How long one change is to take: whoever puts something into the index waits for it."""

_LAST_MOVED: Final = "UPDATE position SET last_offset = ? WHERE last_segment = ? AND last_offset = ?"
_MOVED: Final = "UPDATE blobs SET offset = ? WHERE id = ? AND segment = ? AND offset = ?"
_RESPELT: Final = (
    "UPDATE blobs SET offset = ?, length = ?, depth = ?, base = ? WHERE id = ? AND segment = ? AND offset < ?"
)
_GONE: Final = "DELETE FROM blobs WHERE id = ? AND segment = ? AND offset = ? AND refs = 0"
_MISSED: Final = (
    "UPDATE blobs SET segment = NULL, offset = NULL, length = NULL, size = NULL, depth = NULL, base = NULL "
    "WHERE id = ? AND segment = ? AND offset = ?"
)


def relocate(index: "Index", log: "Log") -> None:
    """Have the index follow what was moved. Only one process may do so at a time. Raises StoreDamaged."""
    size = _Size()
    changed = 0
    with index.relocating():
        for changes in relocations(index, log, size.rows_at_once):
            began = time.monotonic()
            with index.changing() as db:
                for statement, rows in changes:
                    db.executemany(statement, rows)
            taken = time.monotonic() - began
            size.heed(taken)
            changed += sum(len(rows) for _, rows in changes)
            if changed >= _PUT_BY:
                # By whoever's change is one too many, if not here: a writer may be that.
                index.put_by()
                changed = 0
            # Whoever waits for the index comes to it now.
            time.sleep(taken)


class _Size:
    """How many rows are to be changed at once."""

    def __init__(self) -> None:
        self._rows = _FEWEST

    def rows_at_once(self) -> int:
        """Return the number."""
        return self._rows

    def heed(self, taken: float) -> None:
        """Take more rows, or fewer, after some have taken so many seconds."""
        self._rows = max(_FEWEST, self._rows // 2) if taken > _SECONDS else min(_MOST, self._rows * 5 // 4)


def relocations(index: "Index", log: "Log", size: Callable[[], int]) -> Iterator[Changes]:
    """Yield what is to be changed in the index, each part by itself and before the next is asked for.

    `size`: how many rows that is to be about. Raises StoreDamaged.
    """
    segments = index.moving()
    for segment in segments:
        yield from _respelt(log, segment, size)
    yield from _blobs(index, log, set(segments), size)
    for table in _RECORD_TABLES:
        yield from _records(index, log, set(segments), table, size)
    last = index.last_place
    moved = log.newest(last)
    if moved is not None and moved != last:
        yield [(_LAST_MOVED, [(moved.offset, *last)])]


def _respelt(log: "Log", segment: int, size: Callable[[], int]) -> Iterator[Changes]:
    moves = log.moves(segment)
    rows: list[tuple[int | bytes | None, ...]] = []
    start = log.generations().get(segment, 0) * GENERATION
    for position in () if moves is None else moves.respelt:
        payload = log.read(Place(segment, start + position)).payload
        header = parse_blob_header(payload)
        rows.append((start + position, len(payload), header.depth, header.base, header.id, segment, start))
        if len(rows) >= size():
            yield [(_RESPELT, rows)]
            rows = []
    if rows:
        yield [(_RESPELT, rows)]


def _blobs(index: "Index", log: "Log", segments: set[int], size: Callable[[], int]) -> Iterator[Changes]:
    last = b""
    while rows := index.blobs_after(last, size()):
        last = rows[-1][0]
        moved: list[tuple[int | bytes | None, ...]] = []
        gone: list[tuple[int | bytes | None, ...]] = []
        missed: list[tuple[int | bytes | None, ...]] = []
        for name, segment, offset, refs in rows:
            if segment in segments:
                place = log.newest(Place(segment, offset))
                if place is None:
                    (missed if refs else gone).append((name, segment, offset))
                elif place.offset != offset:
                    moved.append((place.offset, name, segment, offset))
        if moved or gone or missed:
            yield [(_MOVED, moved), (_GONE, gone), (_MISSED, missed)]


def _records(index: "Index", log: "Log", segments: set[int], table: str, size: Callable[[], int]) -> Iterator[Changes]:
    number = _RECORD_TABLES[table]
    statement = f"UPDATE {table} SET offset = ? WHERE {number} = ? AND segment = ? AND offset = ?"  # noqa: S608 - this module's own names
    last = 0
    while rows := index.records_after(table, number, last, size()):
        last = rows[-1][0]
        moved: list[tuple[int | bytes | None, ...]] = []
        for key, segment, offset in rows:
            place = log.newest(Place(segment, offset)) if segment in segments else None
            if place is not None and place.offset != offset:
                moved.append((place.offset, key, segment, offset))
        if moved:
            yield [(statement, moved)]
