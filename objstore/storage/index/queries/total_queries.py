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
    """The edits of one tool, or of the files that have one path now, without voided ones."""

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

    def tools(self) -> dict[str, EditTotal]:
        """Return the edits of each tool. Raises IndexUnusable."""
        rows = self._rows(
            (str, int, int, int),
            "SELECT tool, count(*), sum(added), sum(removed) FROM edits WHERE NOT void GROUP BY tool",
        )
        return {tool: EditTotal(*sums) for tool, *sums in rows}

    def files(self) -> dict[bytes, EditTotal]:
        """Return the edits of the files by the path that each has now. Raises IndexUnusable."""
        # "+": SQLite would look up each edit by its document's index, which takes twice as long as to sort them.
        rows = self._rows(
            (bytes, int, int, int),
            "SELECT path, sum(made), sum(plus), sum(minus) FROM ("
            "SELECT +document AS made_in, count(*) AS made, sum(added) AS plus, sum(removed) AS minus "
            "FROM edits WHERE NOT void GROUP BY made_in) JOIN documents ON documents.id = made_in GROUP BY path",
        )
        return {path: EditTotal(*sums) for path, *sums in rows}

    def minutes(self) -> dict[int, int]:
        """Return the number of edits in each minute, since 1970-01-01 UTC. Raises IndexUnusable."""
        rows = self._rows(
            (int, int), "SELECT time / ? AS minute, count(*) FROM edits WHERE NOT void GROUP BY minute", _MINUTE
        )
        return dict(rows)

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
