"""Query the index for blobs: where they are stored, what holds them, and which of them nothing holds."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

from objstore.model.ids import HASH_SIZE, BlobId
from objstore.model.large_file_placeholder import MAX_BLOB
from objstore.storage.index.database import KNOWN_BY, checksum, unusable
from objstore.storage.index.rows import BlobPlace, StateOrigin
from objstore.storage.log.frames import FRAME_HEADER_SIZE
from objstore.storage.log.segment_files import Place

if TYPE_CHECKING:
    from array import array
    from collections.abc import Generator, Iterator, Sequence

    from objstore.storage.index.shared_connection import SharedConnection

__all__ = ["BlobQueries"]

_VALUES_AT_ONCE: Final = 500
"""Number of values in one query."""


class BlobQueries:
    """Look up blobs."""

    def __init__(self, db: SharedConnection) -> None:
        """Query one index."""
        self._db: Final = db

    def place(self, blob: BlobId) -> BlobPlace | None:
        """Return where the blob is stored (None: not in this store). Raises IndexUnusable."""
        row = self._db.execute(
            "SELECT segment, offset, size, depth, checksum FROM blobs WHERE id = ?", (blob,)
        ).fetchone()
        if row is None:
            self._require_unknown(blob)
            return None
        segment, offset, size, depth, found = row
        if segment is found is None:
            return None
        if found != checksum("blobs", blob, segment, offset, size, depth):
            raise unusable(f"no blob is at {row[:4]!r}")
        return BlobPlace(Place(segment, offset), size, depth)

    def places(self, blobs: Sequence[BlobId]) -> dict[BlobId, Place]:
        """Return the place of each of the blobs that is in this store."""
        found: dict[BlobId, Place] = {}
        for at in range(0, len(blobs), _VALUES_AT_ONCE):
            asked = blobs[at : at + _VALUES_AT_ONCE]
            marks = ",".join("?" * len(asked))
            rows = self._db.execute(
                f"SELECT id, segment, offset FROM blobs WHERE id IN ({marks}) AND segment",  # noqa: S608 - nothing but question marks is put in
                asked,
            )
            found |= {BlobId(row[0]): Place(row[1], row[2]) for row in rows}
        return found

    def sizes(self, blobs: Sequence[BlobId]) -> dict[BlobId, int]:
        """Return the size of each of the blobs that is in this store, as certainly as `place`. Raises IndexUnusable."""
        found: dict[BlobId, int] = {}
        for at in range(0, len(blobs), _VALUES_AT_ONCE):
            asked = blobs[at : at + _VALUES_AT_ONCE]
            marks = ",".join("?" * len(asked))
            query = (
                "SELECT id, segment, offset, size, depth, checksum "  # noqa: S608 - nothing but question marks is put in
                f"FROM blobs WHERE id IN ({marks})"
            )
            unknown = dict.fromkeys(asked)
            for blob, segment, offset, size, depth, kept in self._db.execute(query, asked):
                del unknown[blob]
                if segment is kept is None:
                    continue
                if kept != checksum("blobs", blob, segment, offset, size, depth):
                    raise unusable(f"no blob is at {(segment, offset, size, depth)!r}")
                found[blob] = size
            starts = {blob[:KNOWN_BY]: blob for blob in unknown}
            query = f"SELECT start FROM blob_starts WHERE start IN ({','.join('?' * len(starts))})"  # noqa: S608 - as above
            for (start,) in self._db.execute(query, [*starts]).fetchall():
                self._require_unknown(starts[start])
        return found

    def has_row(self, blob: BlobId) -> bool:
        """Return whether the blob is stored or mentioned by a record, tree or chunk list. Raises IndexUnusable."""
        if self._db.execute("SELECT 1 FROM blobs WHERE id = ?", (blob,)).fetchone() is not None:
            return True
        self._require_unknown(blob)
        return False

    def is_depth_consistent(self, blob: BlobId) -> bool:
        """Return whether a blob is deeper than its base, or is a keyframe, according to its row and that of the base.

        A new delta against this blob gets its depth from it; if that is too low, salvage rejects the delta.
        """
        query = (
            "SELECT iif(z.base IS NULL, z.depth = 0, z.depth > b.depth) "
            "FROM blobs z LEFT JOIN blobs b ON b.id = z.base WHERE z.id = ?"
        )
        return bool(self._db.number(query, blob))

    def held_offsets(self, segments: Sequence[int]) -> dict[int, array[int]]:
        """Return the offsets of the held blobs in each of the segments."""
        from array import array

        found = {segment: array("Q") for segment in segments}
        which = ",".join(map(str, segments))
        rows = self._db.execute(f"SELECT segment, offset FROM blobs WHERE refs != 0 AND segment IN ({which})")  # noqa: S608 - nothing but numbers is put in
        for segment, offset in rows:
            found[segment].append(offset)
        return found

    def between(self, low: bytes, high: bytes, limit: int) -> list[BlobId]:
        """Return up to `limit` blob ids in the closed interval (`limit` below 0: all)."""
        rows = self._db.execute("SELECT id FROM blobs WHERE id BETWEEN ? AND ? AND segment LIMIT ?", (low, high, limit))
        return [BlobId(row[0]) for row in rows]

    def count(self) -> int:
        """Return the number of blobs."""
        return self._db.number("SELECT blobs FROM totals")

    def refs(self, blob: BlobId) -> int:
        """Return how often the blob is held: by records, tips and trees."""
        return self._db.number("SELECT refs FROM blobs WHERE id = ?", blob)

    def all_refs(self) -> Generator[tuple[BlobId, int], None, None]:
        """Yield every blob that is stored or held, with its refcount."""
        yield from self._db.execute("SELECT id, refs FROM blobs")

    def unheld(self) -> tuple[int, int]:
        """Return the number of stored blobs that nothing holds, and the bytes of their frames."""
        row = self._db.execute(
            "SELECT count(*), ifnull(sum(length), 0) FROM blobs INDEXED BY unheld WHERE refs = 0 AND segment"
        ).fetchone()
        return row[0], row[1] + row[0] * FRAME_HEADER_SIZE

    def frame_bytes(self, blob: BlobId) -> int:
        """Return the size of the blob's frame in bytes; 0 if it is not stored."""
        length = self._db.number("SELECT length FROM blobs WHERE id = ? AND segment", blob)
        return length + FRAME_HEADER_SIZE if length else 0

    def sha256(self, blob: BlobId) -> bytes | None:
        """Return the blob's SHA-256 (32 bytes) if it was computed before."""
        row = self._db.execute("SELECT sha256 FROM blobs WHERE id = ?", (blob,)).fetchone()
        if row is None or not isinstance(row[0], bytes):
            return None
        # It has a checksum of its own: no other row confirms it.
        digest, found = row[0][:HASH_SIZE], row[0][HASH_SIZE:]
        return digest if found == checksum("sha256", blob, digest) else None

    def state_origins(self, segment: int) -> dict[BlobId, StateOrigin]:
        """Return the origins of the states that edits in the segment led to; of several edits, the first counts."""
        rows = self._db.execute(
            "SELECT after, path, document, before FROM edits JOIN documents ON documents.id = document "
            "WHERE segment = ? AND after IS NOT NULL ORDER BY seq DESC",
            (segment,),
        )
        return {BlobId(row[0]): StateOrigin(*row[1:]) for row in rows}

    def bases_used_elsewhere(self, segment: int) -> set[BlobId]:
        """Return the blobs of the segment that are the base of a delta in another segment."""
        rows = self._db.execute(
            "SELECT DISTINCT x.id FROM blobs z JOIN blobs x ON x.id = z.base WHERE x.segment = ? AND z.segment != ?",
            (segment, segment),
        )
        return {BlobId(row[0]) for row in rows}

    def dead_bytes(self) -> dict[int, int]:
        """Return for each segment how many bytes the frames of blobs have that nothing holds."""
        rows = self._db.execute(
            "SELECT segment, sum(length) + count(*) * ? FROM blobs INDEXED BY unheld WHERE refs = 0 AND segment "
            "GROUP BY segment",
            (FRAME_HEADER_SIZE,),
        )
        return {row[0]: row[1] for row in rows}

    def dead_blobs(self, segment: int) -> Iterator[BlobId]:
        """Yield the blobs of a segment that nothing holds."""
        rows = self._db.execute("SELECT id FROM blobs INDEXED BY unheld WHERE refs = 0 AND segment = ?", (segment,))
        return map(itemgetter(0), rows)

    def dead_frames(self, segment: int) -> Iterator[tuple[BlobId, int, int]]:
        """Yield the blobs of a segment that nothing holds: id, offset and size of the frame in bytes."""
        return self._db.execute(
            "SELECT id, offset, length + ? FROM blobs INDEXED BY unheld WHERE refs = 0 AND segment = ?",
            (FRAME_HEADER_SIZE, segment),
        )

    def dead_duplicates(self) -> dict[BlobId, tuple[int, int]]:
        """Return the blobs that nothing holds and that were stored twice: segment and bytes of the first frame."""
        rows = self._db.execute(
            "SELECT id, segment, length FROM duplicates JOIN blobs USING (id) WHERE refs = 0 AND segment"
        )
        return {BlobId(name): (segment, length + FRAME_HEADER_SIZE) for name, segment, length in rows}

    def dead_bases(self) -> list[tuple[BlobId, int, int, int]]:
        """Return the blobs that nothing holds and that are the base of a delta in another segment.

        Each comes with its segment, the size of its frame in bytes, and the segment of the delta.
        """
        rows = self._db.execute(
            "SELECT x.id, x.segment, x.length, z.segment FROM blobs z CROSS JOIN blobs x ON x.id = z.base "
            "WHERE z.base IS NOT NULL AND z.segment AND x.refs = 0 AND x.segment != z.segment"
        )
        return [(BlobId(row[0]), row[1], row[2] + FRAME_HEADER_SIZE, row[3]) for row in rows]

    def uncounted(self) -> BlobId | None:
        """Return a held tree or chunk list that could not be read, so that the blobs in it don't count as held."""
        row = self._db.execute(
            "SELECT id FROM trees WHERE read = 0 UNION ALL SELECT id FROM blobs INDEXED BY large "  # noqa: S608 - a number of our own
            f"WHERE size > {MAX_BLOB} AND refs > 0 AND id NOT IN (SELECT id FROM chunk_lists) LIMIT 1"
        ).fetchone()
        return None if row is None else BlobId(row[0])

    def uncounted_mention(self) -> BlobId | None:
        """Return a blob that is mentioned but has no refcount (None: there is none, as it should be)."""
        row = self._db.execute(
            "SELECT mention FROM (SELECT before AS mention FROM edits WHERE NOT void AND NOT expired "
            "UNION ALL SELECT after FROM edits WHERE NOT void AND NOT expired "
            "UNION ALL SELECT blob FROM documents "
            "UNION ALL SELECT root FROM snapshots WHERE NOT expired "
            "UNION ALL SELECT id FROM trees WHERE refs > 0) "
            "WHERE mention IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blobs WHERE id = mention AND refs > 0) LIMIT 1"
        ).fetchone()
        return None if row is None else BlobId(row[0])

    def lost(self) -> list[BlobId]:
        """Return the blobs that are held but not in this store, ascending."""
        query = "SELECT id FROM blobs INDEXED BY not_stored WHERE refs > 0 AND segment IS NULL ORDER BY id"
        rows = self._db.execute(query)
        return [BlobId(row[0]) for row in rows]

    def dead_lists(self) -> list[BlobId]:
        """Return the large blobs that nothing holds."""
        rows = self._db.execute(f"SELECT id FROM blobs INDEXED BY large WHERE size > {MAX_BLOB} AND refs = 0")  # noqa: S608 - a number of our own
        return [BlobId(row[0]) for row in rows]

    def held_lists(self) -> list[BlobId]:
        """Return the large blobs whose chunks count as held."""
        return [BlobId(row[0]) for row in self._db.execute("SELECT id FROM chunk_lists")]

    def _require_unknown(self, blob: BlobId) -> None:
        """Check that the index really doesn't know a blob without a row: no first bytes in `blob_starts` are its.

        A blob that is stored a second time would get a depth that its first frame does not have. Raises IndexUnusable.
        """
        start = blob[:KNOWN_BY]
        if self._db.execute("SELECT 1 FROM blob_starts WHERE start = ?", (start,)).fetchone() is None:
            return
        # Two ids that begin with the same bytes can be made on purpose.
        others = self._db.execute(
            "SELECT id, segment, offset, size, depth, checksum FROM blobs WHERE id BETWEEN ? AND ?",
            (start, start + b"\xff" * (HASH_SIZE - KNOWN_BY)),
        ).fetchall()
        if not others or any(row[-1] != checksum("blobs", *row[:-1]) for row in others if row[-1] is not row[1]):
            raise unusable(f"it has no row of blob {blob.hex()}")
