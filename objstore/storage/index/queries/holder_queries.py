"""Query the index for snapshots and pins, which hold blobs as edits and decisions do, and for expiries."""

from typing import Final

from objstore.model.ids import BlobId, RecordId
from objstore.storage.index.database import SUMS, unusable
from objstore.storage.index.rows import Baseline, ExpiryRow, HolderRow, place_in_row
from objstore.storage.index.shared_connection import RecordNumbers, SharedConnection, numbered_rows
from objstore.storage.log.segment_files import Place

__all__ = ["HolderQueries"]


class HolderQueries:
    """Look up snapshots and pins, which hold blobs next to edits and decisions, and expiries, which let go of them."""

    def __init__(self, db: SharedConnection, numbers: RecordNumbers) -> None:
        """Query one index."""
        self._db: Final = db
        self._numbers: Final = numbers

    def snapshots(self) -> list[HolderRow]:
        """Return every snapshot, including expired ones, oldest first. Raises IndexUnusable."""
        return self._holds("snapshots")

    def baseline(self, *, newest: bool = False) -> Baseline | None:
        """Return the snapshot that the first scan took as the baseline (None: there is none). Raises IndexUnusable.

        `newest`: if there are two, because one is about to replace the other, return the newer one.
        """
        query = (
            f"SELECT number, root, checksum IS {SUMS['snapshots']} FROM snapshots "  # noqa: S608 - as SUMS has it
            "WHERE baseline AND NOT expired ORDER BY number"
        )
        with self._db.one_state():
            rows = self._db.execute(query).fetchall()
            noted = self._db.number("SELECT baseline FROM position")
        if noted != (rows[0][0] if rows else 0) or not all(row[2] for row in rows):
            raise unusable(f"snapshot {noted} is the baseline, or one of {[row[0] for row in rows]!r}")
        row = rows[-1 if newest else 0] if rows else None
        return None if row is None else Baseline(row[0], BlobId(row[1]))

    def snapshot_places(self) -> list[tuple[Place, bool, bool]]:
        """Return each snapshot's place, whether it is a baseline, and whether it has expired, oldest first."""
        rows = self._db.execute("SELECT segment, offset, baseline, expired FROM snapshots ORDER BY number").fetchall()
        return [(place_in_row(row[0], row[1]), bool(row[2]), bool(row[3])) for row in rows]

    def pins(self) -> list[HolderRow]:
        """Return every pin, including expired ones, oldest first. Raises IndexUnusable."""
        return self._holds("pins")

    def expiry(self, number: int) -> ExpiryRow | None:
        """Return the row of an expiry, by its position among the journal's expiries (None: there is none)."""
        query = "SELECT segment, offset, time, reason FROM expiries WHERE number = ?"
        row = self._db.execute(query, (number,)).fetchone()
        return None if row is None else ExpiryRow(place_in_row(row[0], row[1]), row[2], row[3])

    def _holds(self, table: str) -> list[HolderRow]:
        rows = numbered_rows(self._db, self._numbers, table, "number, id, segment, offset, expired")
        return [HolderRow(row[0], RecordId(row[1]), place_in_row(row[2], row[3]), row[4]) for row in rows]
