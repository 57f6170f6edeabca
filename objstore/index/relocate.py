"""Relocation: the index follows what a sweep moved, some rows at a time, while everybody goes on.

From the moment in which a segment's new file counts, what the index holds of the segment is out of date, and right all
the same: places are told on by the segment's moves (`moves`), and a blob that is not among them is not there. Here the
rows catch up: first those of deltas that are spelt anew, because their old spelling names what goes; then, in one pass
over all segments in the order of the table, those of the other blobs and of records. What changes a row says what the
row has to be: somebody may have stored the blob anew meanwhile.
"""

import re
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.index.database import SUMS
from objstore.log.blob_codec import parse_blob_header
from objstore.log.frames import FrameKind
from objstore.log.segment_files import GENERATION, Place
from objstore.log.segments import ReadAhead

if TYPE_CHECKING:
    from objstore.index.log_index import Index
    from objstore.log.segments import Log

__all__ = ["Changes", "relocate", "relocation_batches"]

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

_FEWEST: Final = 256
_MOST: Final = 4_096
"""Rows that are changed at once."""

_PUT_BY: Final = 8_192
"""Changed rows after which the database brings them to their place: far fewer pages than it does so by itself."""

_SECONDS: Final = 0.008
"""How long one change is to take: whoever puts something into the index waits for it."""

_PAUSE: Final = 0.0007
"""How long nobody changes the index then: who waits for it looks in that time."""


def _sum_of(table: str, **now: str) -> str:
    """Return what the checksum of a row becomes where columns change; one that is wrong stays so."""
    changed = re.sub(r"\w+", lambda name: now.get(name[0], name[0]), SUMS[table])
    return f"checksum = iif(checksum IS {SUMS[table]}, {changed}, checksum)"


_LAST_MOVED: Final = "UPDATE position SET last_offset = ? WHERE last_segment = ? AND last_offset = ?"
_RESPELT: Final = (
    "UPDATE blobs SET offset = ?, length = ?, depth = ?, base = ?, "  # noqa: S608 - this module's own text
    f"{_sum_of('blobs', offset='?', depth='?')} WHERE id = ? AND segment = ? AND offset < ?"
)

# Of some rows in their order; `moved` is what Index.relocating lets the database ask for each of them.
_SOME: Final = "id > ? AND id <= ? AND segment IN (SELECT segment FROM moving)"
_GONE: Final = f"DELETE FROM blobs WHERE refs = 0 AND moved(segment, offset) IS NULL AND {_SOME}"  # noqa: S608 - this module's own text
_COUNTED: Final = "UPDATE totals SET blobs = blobs - changes()"  # by those that are gone, behind _GONE
_MOVED: Final = (
    "UPDATE blobs SET offset = moved(segment, offset), "  # noqa: S608 - as above
    f"{_sum_of('blobs', offset='moved(segment, offset)')} WHERE {_SOME}"
)
_MISSED: Final = (
    "UPDATE blobs SET segment = NULL, length = NULL, size = NULL, depth = NULL, base = NULL, checksum = NULL "  # noqa: S608 - as above
    f"WHERE offset IS NULL AND {_SOME}"
)
_NOW: Final = "ifnull(moved(segment, offset), offset)"
_SINGLE: Final = "DELETE FROM doubled WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.id = doubled.id)"


def relocate(index: "Index", log: "Log") -> None:
    """Have the index follow what was moved. Only one process may do so at a time. Raises StoreDamaged."""
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
            if changed >= _PUT_BY:
                # By whoever's change is one too many, if not here: a writer may be that.
                index.request_checkpoint()
                changed = 0
            # Whoever waits for the index comes to it now.
            time.sleep(_PAUSE)


class _Size:
    """How many rows are to be changed at once."""

    def __init__(self) -> None:
        self._rows = _FEWEST

    def rows_at_once(self) -> int:
        """Return the number."""
        return self._rows

    def adjust(self, taken: float) -> None:
        """Take more rows, or fewer, after some have taken so many seconds."""
        self._rows = max(_FEWEST, self._rows * 3 // 4) if taken > _SECONDS else min(_MOST, self._rows * 5 // 4)


def relocation_batches(index: "Index", log: "Log", size: Callable[[], int]) -> Iterator[Changes]:
    """Yield what is to be changed in the index while `relocating`, each part before the next is asked for.

    `size`: how many rows that is to be about. Raises StoreDamaged.
    """
    segments = index.places.moving()
    for segment in segments:
        yield from _respelt(log, segment, size)
    yield from _blobs(index, size)
    yield [(_SINGLE, [()])]
    for table in _RECORD_TABLES:
        yield from _records(index, table, size)
    last = index.last_place
    moved = log.newest(last)
    if moved is not None and moved != last:
        yield [(_LAST_MOVED, [(moved.offset, *last)])]


def _respelt(log: "Log", segment: int, size: Callable[[], int]) -> Iterator[Changes]:
    moves = log.moves(segment)
    rows: list[tuple[int | bytes | None, ...]] = []
    start = log.generations().get(segment, 0) * GENERATION
    ahead = ReadAhead(log)
    for position in () if moves is None else moves.respelt:
        payload = ahead.payload(Place(segment, start + position), FrameKind.BLOB)
        header = parse_blob_header(payload)
        now = start + position, header.depth
        rows.append((now[0], len(payload), now[1], header.base, *now, header.id, segment, start))
        if len(rows) >= size():
            yield [(_RESPELT, rows)]
            rows = []
    if rows:
        yield [(_RESPELT, rows)]


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
