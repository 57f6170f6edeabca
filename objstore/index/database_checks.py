"""Check an index's database, and list its rows for comparison with an index rebuilt from the same log."""

from collections.abc import Generator
from typing import Final

from objstore.index.database import COMPARED, SUMS
from objstore.index.rows import Row
from objstore.index.shared_connection import SharedConnection
from objstore.index.stat_queries import StatQueries

__all__ = ["DatabaseChecks"]


class DatabaseChecks:
    """What fsck asks of one index."""

    def __init__(self, db: SharedConnection, stats: StatQueries) -> None:
        """Answer for one index."""
        self._db: Final = db
        self._stats: Final = stats

    def rows(self, table: str) -> Generator[Row, None, None]:
        """Yield what a table of COMPARED holds, in order, to be compared with another index of the same log.

        Whoever does not read to the end closes it before the index.
        """
        yield from self._db.execute(COMPARED[table])

    def schema(self) -> list[Row]:
        """Return what SQLite has for the definitions of all tables, indexes and triggers."""
        return self._db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()

    def duplicated_blobs(self) -> set[bytes]:
        """Return the blobs of which a second frame was noted."""
        return {row[0] for row in self._db.execute("SELECT id FROM doubled")}

    def sqlite_integrity_error(self) -> str:
        """Return the first thing that SQLite finds wrong with the file ("": nothing): of its pages, or of an index.

        It holds every index against its table, both ways.
        """
        said: str = self._db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        return "" if said == "ok" else said

    def strays(self) -> bool:
        """Return whether a second frame is noted of a blob that is not stored."""
        query = "SELECT 1 FROM doubled WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.id = doubled.id) LIMIT 1"
        return self._db.execute(query).fetchone() is not None

    def damaged_tables(self) -> list[str]:
        """Return the tables of what is known of files on disk that hold a row that was not put in so."""
        return [
            table
            for table in ("seen", "stood", "stood_until")
            if self._db.execute(f"SELECT 1 FROM {table} WHERE checksum IS NOT {SUMS[table]} LIMIT 1").fetchone()  # noqa: S608 - names of the schema
        ] or ([] if self._stats.are_clean_folders_intact() else ["stood"])
