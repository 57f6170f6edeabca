"""Query the index for sums over everything that is recorded, so that no statistics need read the log."""

from typing import Any, Final

from objstore.model.large_file_placeholder import MAX_BLOB
from objstore.storage.index.database import unusable
from objstore.storage.index.shared_connection import SharedConnection
from objstore.storage.log.frames import FRAME_HEADER_SIZE
from objstore.storage.log.segment_files import Place
from objstore.values.fastclass import NamedTuple

__all__ = ["DepthTotal", "EditTotal", "TotalQueries"]

_MINUTE: Final = 60_000_000
"""Microseconds."""

_WITH_TIME: Final = ("edits", "decisions", "snapshots", "pins", "turns", "comments", "marks", "settings", "expiries")
"""The tables with a row for each record of a kind; a void has none."""


class EditTotal(NamedTuple):
    """The edits that one tool made in one file and one minute, without voided ones."""

    tool: str
    path: bytes  # current path of the file
    minute: int  # since 1970-01-01 UTC
    edits: int
    added: int  # lines
    removed: int


class DepthTotal(NamedTuple):
    """The stored blobs of one depth."""

    depth: int  # 0: keyframes
    blobs: int
    size: int  # bytes of all of them when decoded, without large ones: their chunks are blobs of their own
    stored: int  # bytes of their frames


class TotalQueries:
    """Sum up rows."""

    def __init__(self, db: SharedConnection) -> None:
        """Query one index."""
        self._db: Final = db

    def edits(self) -> list[EditTotal]:
        """Return the edits by tool, file and minute. Raises IndexUnusable."""
        rows = self._rows(
            (str, bytes, int, int, int, int),
            "SELECT tool, path, minute, made, added, removed FROM ("
            "SELECT tool, document, time / ? AS minute, count(*) AS made, sum(added) AS added, sum(removed) AS removed "
            "FROM edits WHERE NOT void GROUP BY tool, document, minute) JOIN documents ON documents.id = document",
            _MINUTE,
        )
        return [EditTotal(*row) for row in rows]

    def blobs(self) -> list[DepthTotal]:
        """Return the stored blobs by depth, ascending. Raises IndexUnusable."""
        rows = self._rows(
            (int, int, int, int),
            "SELECT depth, count(*), sum(iif(size > ?, 0, size)), sum(length) + count(*) * ? "
            "FROM blobs WHERE segment IS NOT NULL GROUP BY depth ORDER BY depth",
            MAX_BLOB,
            FRAME_HEADER_SIZE,
        )
        return [DepthTotal(*row) for row in rows]

    def last_of_each_minute(self) -> list[tuple[int, Place]]:
        """Return the last record that each segment has of each minute, in the order of the log. Raises IndexUnusable.

        Each pair is the minute, since 1970-01-01 UTC, and the place of the record.
        """
        # If a clock was set back, records of two minutes alternate: each minute counts up to its last one.
        every = " UNION ALL ".join(f"SELECT segment, offset, time FROM {table}" for table in _WITH_TIME)  # noqa: S608 - names of the schema
        rows = self._rows(
            (int, int, int),
            f"SELECT segment, max(offset) AS last, time / ? AS minute FROM ({every}) "  # noqa: S608 - as above
            "GROUP BY segment, minute ORDER BY segment, last",
            _MINUTE,
        )
        return [(minute, Place(segment, last)) for segment, last, minute in rows]

    def decisions(self) -> int:
        """Return the number of decisions, without voided ones."""
        return self._db.number("SELECT count(*) FROM decisions WHERE NOT void")

    def voids(self) -> int:
        """Return the number of voids."""
        return self._db.number("SELECT voids FROM totals")

    def _rows(self, kinds: tuple[type, ...], query: str, *values: int) -> list[tuple[Any, ...]]:
        rows = self._db.execute(query, values).fetchall()
        for row in rows:
            if tuple(map(type, row)) != kinds:
                raise unusable(f"{row!r} is no sum of rows")
        return rows
