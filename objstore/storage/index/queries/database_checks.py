"""Check an index's database, and list its rows for comparison with an index rebuilt from the same log."""

from collections.abc import Generator
from typing import Final

from objstore.storage.index.database import COMPARED, SUMS
from objstore.storage.index.rows import Row
from objstore.storage.index.shared_connection import SharedConnection

__all__ = ["DatabaseChecks"]


class DatabaseChecks:
    """Check the rows of one index, for fsck."""

    def __init__(self, db: SharedConnection) -> None:
        """Query one index."""
        self._db: Final = db

    def rows(self, table: str) -> Generator[Row, None, None]:
        """Yield the rows of a table of COMPARED, in order, to compare them with another index of the same log.

        A caller that doesn't read to the end closes the generator before the index.
        """
        yield from self._db.execute(COMPARED[table])

    def schema(self) -> list[Row]:
        """Return SQLite's definitions of all tables, indexes and triggers."""
        return self._db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()

    def duplicated_blobs(self) -> set[bytes]:
        """Return the blobs of which a second frame was noted."""
        return {row[0] for row in self._db.execute("SELECT id FROM duplicates")}

    def sqlite_integrity_error(self) -> str:
        """Return the first error that SQLite finds in the pages or indexes of the file ("": none).

        SQLite compares every index with its table in both directions.
        """
        said: str = self._db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        return "" if said == "ok" else said

    def has_stray_duplicates(self) -> bool:
        """Return whether a second frame is noted of a blob that is not stored."""
        query = "SELECT 1 FROM duplicates WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.id = duplicates.id) LIMIT 1"
        return self._db.execute(query).fetchone() is not None

    def damaged_tables(self) -> list[str]:
        """Return the tables about files on disk in which a row differs from what was stored."""
        from objstore.storage.index.queries.file_stat_queries import FileStatQueries  # only fsck asks

        return [
            table
            for table in ("file_stats", "clean_folders", "clean_until")
            if self._db.execute(f"SELECT 1 FROM {table} WHERE checksum IS NOT {SUMS[table]} LIMIT 1").fetchone()  # noqa: S608 - names of the schema
        ] or ([] if FileStatQueries(self._db).are_clean_folders_intact() else ["clean_folders"])
