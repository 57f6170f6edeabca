"""Lookups: what is asked of the index, each question one query. Nothing here follows the log or puts anything in."""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from objstore.errors import DiskFailed
from objstore.ids import BlobId, RecordId
from objstore.indexrows import STATUS_LETTERS, BlobPlace, EditRow, ExpiryRow, HoldRow, Look, Row, Tip
from objstore.segments import Place
from objstore.standins import MAX_BLOB
from objstore.terms import DocumentId, FileState, Seq, Status

__all__ = ["Lookups"]

_STATUSES: Final = {letter: status for status, letter in STATUS_LETTERS.items()}

_ASKED_AT_ONCE: Final = 500
"""Values in one question to the database."""


class Lookups:
    """The questions that one index answers."""

    _db: sqlite3.Connection

    # ---- blobs

    def blob_place(self, blob: BlobId) -> BlobPlace | None:
        """Return where the blob lies (None: not in this store)."""
        row = self._db.execute(
            "SELECT segment, offset, size, depth FROM blobs WHERE id = ? AND segment", (blob,)
        ).fetchone()
        return None if row is None else BlobPlace(Place(row[0], row[1]), row[2], row[3])

    def blob_places(self, blobs: Sequence[BlobId]) -> dict[BlobId, BlobPlace]:
        """Return where each of the blobs lies, as far as they are in this store."""
        found: dict[BlobId, BlobPlace] = {}
        for at in range(0, len(blobs), _ASKED_AT_ONCE):
            asked = blobs[at : at + _ASKED_AT_ONCE]
            marks = ",".join("?" * len(asked))
            rows = self._db.execute(
                f"SELECT id, segment, offset, size, depth FROM blobs WHERE id IN ({marks}) AND segment",  # noqa: S608 - nothing but question marks is put in
                asked,
            )
            found |= {BlobId(row[0]): BlobPlace(Place(row[1], row[2]), row[3], row[4]) for row in rows}
        return found

    def blobs_between(self, low: bytes, high: bytes, limit: int) -> list[BlobId]:
        """Return up to `limit` blob ids in the closed interval."""
        rows = self._db.execute("SELECT id FROM blobs WHERE id BETWEEN ? AND ? AND segment LIMIT ?", (low, high, limit))
        return [BlobId(row[0]) for row in rows]

    def blob_count(self) -> int:
        """Return the number of blobs."""
        return self._number("SELECT count(*) FROM blobs WHERE segment")

    def refs(self, blob: BlobId) -> int:
        """Return how often the blob is held: by records, tips and trees."""
        return self._number("SELECT refs FROM blobs WHERE id = ?", blob)

    def all_refs(self) -> Iterator[tuple[bytes, int]]:
        """Yield every blob that is stored or held, with how often it is held."""
        yield from self._db.execute("SELECT id, refs FROM blobs")

    def unheld(self) -> tuple[int, int]:
        """Return the number of stored blobs that nothing holds, and how many bytes they have as they are read."""
        row = self._db.execute("SELECT count(*), ifnull(sum(size), 0) FROM blobs WHERE refs = 0").fetchone()
        return row[0], row[1]

    def sha256(self, blob: BlobId) -> bytes | None:
        """Return the blob's SHA-256 if it was worked out before."""
        row = self._db.execute("SELECT sha256 FROM blobs WHERE id = ?", (blob,)).fetchone()
        return None if row is None else row[0]

    def dead_blobs(self) -> list[tuple[BlobId, Place]]:
        """Return the stored blobs that nothing holds, and where they lie."""
        rows = self._db.execute("SELECT id, segment, offset FROM blobs WHERE refs = 0 AND segment")
        return [(BlobId(row[0]), Place(row[1], row[2])) for row in rows]

    def dead_bases(self, rewritten: Collection[int]) -> set[BlobId]:
        """Return the blobs that nothing holds and that deltas need which stay as they are.

        Those lie in segments that are not `rewritten`, or in one that is rewritten only after the base's own.
        """
        rows = self._db.execute(
            "SELECT x.id, x.segment, z.segment FROM blobs z JOIN blobs x ON x.id = z.base "
            "WHERE x.refs = 0 AND z.segment"
        )
        return {BlobId(name) for name, own, other in rows if other not in rewritten or other < own}

    def blobs_in(self, segment: int) -> dict[int, BlobId]:
        """Return the blobs whose frames in the segment are the ones that count, by offset."""
        rows = self._db.execute("SELECT offset, id FROM blobs WHERE segment = ?", (segment,))
        return {row[0]: BlobId(row[1]) for row in rows}

    def uncounted(self) -> BlobId | None:
        """Return a held tree or list of chunks that could not be read, so that what it names counts as not held."""
        row = self._db.execute(
            "SELECT id FROM trees WHERE read = 0 UNION ALL SELECT id FROM blobs "
            "WHERE refs > 0 AND size > ? AND id NOT IN (SELECT id FROM lists) LIMIT 1",
            (MAX_BLOB,),
        ).fetchone()
        return None if row is None else BlobId(row[0])

    # ---- documents

    def tip_at(self, path: bytes) -> Tip | None:
        """Return the document that stands at `path`, or else the one that was last deleted there (None: neither)."""
        row = self._db.execute(
            "SELECT id, path, blob, mode FROM documents WHERE path = ? ORDER BY blob IS NULL, id DESC LIMIT 1",
            (path,),
        ).fetchone()
        return None if row is None else _tip(row)

    def tip(self, document: DocumentId) -> Tip:
        """Return the document's tip."""
        row = self._db.execute("SELECT id, path, blob, mode FROM documents WHERE id = ?", (document,)).fetchone()
        return _tip(row)

    def tips(self) -> list[Tip]:
        """Return every document's tip, by path."""
        return [_tip(row) for row in self._db.execute("SELECT id, path, blob, mode FROM documents ORDER BY path, id")]

    def tips_at(self, path: bytes) -> list[Tip]:
        """Return every existing document at `path` (more than one is a fault)."""
        rows = self._db.execute(
            "SELECT id, path, blob, mode FROM documents WHERE path = ? AND blob IS NOT NULL", (path,)
        )
        return [_tip(row) for row in rows]

    def documents_at(self, path: bytes) -> list[DocumentId]:
        """Return every document that ever stood at the path, ascending."""
        rows = self._db.execute("SELECT document FROM paths WHERE path = ? ORDER BY document", (path,))
        return [DocumentId(row[0]) for row in rows]

    def ever_at(self, path: bytes) -> bool:
        """Return whether a document ever stood at the path."""
        return bool(self._number("SELECT count(*) FROM paths WHERE path = ?", path))

    def paths_below(self, folder: bytes) -> list[bytes]:
        """Return every path below a folder (b"": anywhere) where a document ever stood, ascending."""
        if not folder:
            return [row[0] for row in self._db.execute("SELECT DISTINCT path FROM paths ORDER BY path")]
        query = "SELECT DISTINCT path FROM paths WHERE path > ? AND path < ? ORDER BY path"
        return [row[0] for row in self._db.execute(query, (folder + b"/", folder + b"0"))]

    def made_folder(self, path: bytes) -> bool:
        """Return whether a recorded edit made the folder."""
        return bool(self._number("SELECT count(*) FROM folders WHERE path = ?", path))

    def newest_places(self, limit: int) -> list[Place]:
        """Return where the newest edits and decisions lie that have not expired, the newest first."""
        rows = self._db.execute(
            "SELECT segment, offset FROM edits WHERE NOT void AND NOT expired UNION ALL "
            "SELECT segment, offset FROM decisions WHERE NOT void AND NOT expired "
            "ORDER BY segment DESC, offset DESC LIMIT ?",
            (limit,),
        )
        return [Place(*row) for row in rows]

    def history(self, document: DocumentId, *, after_edit: int = 0, after_decision: int = 0) -> list[Place]:
        """Return where the document's edits and the decisions on them lie, in order: those with higher numbers.

        What has expired is left out.
        """
        rows = self._db.execute(
            "SELECT segment, offset FROM edits WHERE document = ?1 AND seq > ?2 AND NOT void AND NOT expired UNION "
            "SELECT segment, offset FROM decisions JOIN decided USING (number) "
            "WHERE document = ?1 AND number > ?3 AND NOT void AND NOT expired ORDER BY segment, offset",
            (document, after_edit, after_decision),
        )
        return [Place(*row) for row in rows]

    def long_documents(self, least: int) -> list[DocumentId]:
        """Return the documents with at least so many edits."""
        rows = self._db.execute(
            "SELECT document FROM edits WHERE NOT void AND NOT expired GROUP BY document HAVING count(*) >= ?", (least,)
        )
        return [DocumentId(row[0]) for row in rows]

    def recorded(
        self, document: DocumentId, *, after_edit: int = 0, after_decision: int = 0
    ) -> list[tuple[Place, RecordId]]:
        """Return what `history` returns, each with the id of the record."""
        rows = self._db.execute(
            "SELECT segment, offset, id FROM edits WHERE document = ?1 AND seq > ?2 AND NOT void AND NOT expired UNION "
            "SELECT segment, offset, id FROM decisions JOIN decided USING (number) "
            "WHERE document = ?1 AND number > ?3 AND NOT void AND NOT expired ORDER BY segment, offset",
            (document, after_edit, after_decision),
        )
        return [(Place(row[0], row[1]), RecordId(row[2])) for row in rows]

    def unheld_blobs(self) -> Iterator[BlobId]:
        """Yield the stored blobs that nothing holds."""
        for (blob,) in self._db.execute("SELECT id FROM blobs WHERE refs = 0 AND segment"):
            yield BlobId(blob)

    def oldest_edit(self, document: DocumentId) -> Seq | None:
        """Return the document's first edit that has not expired (None: none is left)."""
        query = "SELECT min(seq) FROM edits WHERE document = ? AND NOT void AND NOT expired"
        seq = self._number(query, document)
        return Seq(seq) if seq else None

    def decision_place(self, number: int) -> Place | None:
        """Return where the decision lies (None: there is none of this number)."""
        query = "SELECT segment, offset FROM decisions WHERE number = ? AND NOT void"
        row = self._db.execute(query, (number,)).fetchone()
        return None if row is None else Place(row[0], row[1])

    def decision_id(self, number: int) -> RecordId | None:
        """Return the id of the decision (None: there is none of this number)."""
        row = self._db.execute("SELECT id FROM decisions WHERE number = ? AND NOT void", (number,)).fetchone()
        return None if row is None else RecordId(row[0])

    # ---- edits and decisions

    def edit(self, seq: int) -> EditRow | None:
        """Return what is known of the edit (None: there is none of this number)."""
        rows = self._edits("seq = ? AND NOT void", (seq,), "")
        return rows[0] if rows else None

    def edits(
        self,
        *,
        conversation: str = "",
        path: bytes = b"",
        status: Status | None = None,
        before: int = 0,
        newest_first: bool = False,
        limit: int = 0,
    ) -> list[EditRow]:
        """Return the edits that fit every given condition. `path`: of a file whose lineage ever stood there."""
        conditions, values = ["NOT void"], list[int | str | bytes]()
        if conversation:
            conditions.append("conversation = ?")
            values.append(conversation)
        if path:
            conditions.append("document IN (SELECT document FROM paths WHERE path = ?)")
            values.append(path)
        if status is not None:
            conditions.append("status = ?")
            values.append(STATUS_LETTERS[status])
        if before:
            conditions.append("seq < ?")
            values.append(before)
        order = f"ORDER BY seq {'DESC' if newest_first else 'ASC'}" + (" LIMIT ?" if limit else "")
        return self._edits(" AND ".join(conditions), (*values, limit) if limit else tuple(values), order)

    def markers(self, document: DocumentId | None = None) -> list[EditRow]:
        """Return the edits that wrote conflict markers and have not expired, of one document or (None) of all."""
        if document is None:
            # The plus keeps SQLite from reading all edits in their order, where it can read the few with markers.
            return self._edits("marks > 0 AND NOT void AND NOT expired", (), "ORDER BY +seq")
        return self._edits("marks > 0 AND document = ? AND NOT void AND NOT expired", (document,), "ORDER BY seq")

    def edits_between(self, low: bytes, high: bytes, limit: int) -> list[EditRow]:
        """Return up to `limit` edits whose ids are in the closed interval."""
        return self._edits("id BETWEEN ? AND ? AND NOT void", (low, high, limit), "LIMIT ?")

    def conversations(self, prefix: str, limit: int) -> list[str]:
        """Return up to `limit` conversations whose names begin with `prefix`."""
        rows = self._db.execute(
            "SELECT DISTINCT conversation FROM edits WHERE conversation >= ?1 AND substr(conversation, 1, ?2) = ?1 "
            "AND NOT void ORDER BY conversation LIMIT ?3",
            (prefix, len(prefix), limit),
        )
        return [row[0] for row in rows]

    def newest_edits(self, digits: str, limit: int) -> list[tuple[Seq, bytes, Status]]:
        """Return up to `limit` edits whose number begins with `digits` (number, path of the file now, status).

        The newest come first.
        """
        rows = self._db.execute(
            "SELECT seq, path, status FROM edits JOIN documents ON documents.id = document "
            "WHERE substr(seq, 1, ?1) = ?2 AND NOT void ORDER BY seq DESC LIMIT ?3",
            (len(digits), digits, limit),
        )
        return [(Seq(row[0]), row[1], _STATUSES[row[2]]) for row in rows]

    def newest_conversations(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Return up to `limit` conversations whose names begin with `prefix`, each with its number of edits.

        The one with the newest edit comes first.
        """
        rows = self._db.execute(
            "SELECT conversation, count(*) FROM edits WHERE conversation >= ?1 AND substr(conversation, 1, ?2) = ?1 "
            "AND NOT void GROUP BY conversation ORDER BY max(seq) DESC LIMIT ?3",
            (prefix, len(prefix), limit),
        )
        return [(row[0], row[1]) for row in rows]

    def paths(self, prefix: bytes, limit: int) -> list[bytes]:
        """Return up to `limit` paths of existing files that begin with `prefix`, ascending."""
        rows = self._db.execute(
            "SELECT DISTINCT path FROM documents WHERE path >= ?1 AND substr(path, 1, ?2) = ?1 AND blob IS NOT NULL "
            "ORDER BY path LIMIT ?3",
            (prefix, len(prefix), limit),
        )
        return [row[0] for row in rows]

    def next_call(self, conversation: str) -> int:
        """Return the position that the conversation's next call has."""
        return self._number("SELECT ifnull(max(call) + 1, 0) FROM edits WHERE conversation = ?", conversation)

    def next_seq(self) -> Seq:
        """Return the number of the next edit."""
        return Seq(self._number("SELECT ifnull(max(seq), 0) + 1 FROM edits"))

    def next_decision(self) -> int:
        """Return the number of the next decision."""
        return self._number("SELECT ifnull(max(number), 0) + 1 FROM decisions")

    def decision_places(self) -> list[tuple[RecordId, Place]]:
        """Return every decision's id and place, oldest first."""
        rows = self._db.execute("SELECT id, segment, offset FROM decisions WHERE NOT void ORDER BY number")
        return [(RecordId(row[0]), Place(row[1], row[2])) for row in rows]

    def counts(self) -> dict[Status, int]:
        """Return the number of edits of each status."""
        by_status = "SELECT count(*) FROM edits WHERE status = ? AND NOT void"
        # What was purged before anybody decided it waits for nobody any more.
        pending = self._number(f"{by_status} AND NOT expired", STATUS_LETTERS[Status.PENDING])
        undecided = self._number(by_status, STATUS_LETTERS[Status.PENDING])
        rejected = self._number(by_status, STATUS_LETTERS[Status.REJECTED])
        # Most edits are accepted: they are what is left, so that they need not be counted one by one.
        taken_back = self._number("SELECT count(*) FROM edits INDEXED BY edits_taken_back WHERE void")
        standing = self._number("SELECT count(*) FROM edits") - taken_back
        return {
            Status.PENDING: pending,
            Status.ACCEPTED: standing - undecided - rejected,
            Status.REJECTED: rejected,
        }

    def conversation_count(self) -> int:
        """Return the number of conversations."""
        # From each name to the next one that is higher: there are far fewer of them than edits.
        return self._number(
            "WITH RECURSIVE named(name) AS (SELECT min(conversation) FROM edits UNION ALL "
            "SELECT (SELECT min(conversation) FROM edits WHERE conversation > name) FROM named WHERE name IS NOT NULL) "
            "SELECT count(*) FROM named WHERE EXISTS (SELECT 1 FROM edits WHERE conversation = name AND NOT void)"
        )

    def pending_groups(self) -> list[tuple[str, bytes, list[Seq], int, int]]:
        """Return (conversation, path now, edits, lines added, lines removed) of what is pending."""
        rows = self._db.execute(
            "SELECT conversation, documents.path, group_concat(seq), sum(added), sum(removed) FROM edits "
            "JOIN documents ON documents.id = document WHERE status = 'p' AND NOT void AND NOT expired "
            "GROUP BY conversation, document ORDER BY min(seq)"
        )
        return [(row[0], row[1], sorted(Seq(int(n)) for n in row[2].split(",")), row[3], row[4]) for row in rows]

    # ---- what may expire

    def aged_edits(self) -> Iterator[tuple[int, int, int, int, int, bool]]:
        """Yield edit, document, time (µs), segment, offset, and whether it is free to go, of what has not expired.

        By document, and there in the order of the journal. An edit is not free where anything of its conversation is
        pending, or where conflict markers stand in its file.
        """
        for seq, document, moment, segment, offset, is_free in self._db.execute(
            "SELECT seq, document, time, segment, offset, status != 'p' AND conversation NOT IN "
            "(SELECT conversation FROM edits WHERE status = 'p' AND NOT void AND NOT expired) AND document NOT IN "
            "(SELECT document FROM edits WHERE marks > 0 AND status != 'r' AND NOT void AND NOT expired) "
            "FROM edits WHERE NOT void AND NOT expired ORDER BY document, seq"
        ):
            yield seq, document, moment, segment, offset, bool(is_free)

    def decided_before(self, moment: int) -> int:
        """Return how many edits are decided, older than the moment (µs since 1970-01-01 UTC), and have not expired."""
        return self._number(
            "SELECT count(*) FROM edits WHERE time < ? AND NOT void AND NOT expired AND status != 'p'", moment
        )

    def unheld_places(self, limit: int) -> list[Place]:
        """Return where up to `limit` of the stored blobs lie that nothing holds."""
        rows = self._db.execute("SELECT segment, offset FROM blobs WHERE refs = 0 AND segment LIMIT ?", (limit,))
        return [Place(row[0], row[1]) for row in rows]

    def mentioning_edits(self, blob: BlobId) -> list[Seq]:
        """Return the edits that mention the blob and have not expired, those taken back included."""
        rows = self._db.execute("SELECT seq FROM edits WHERE (before = ?1 OR after = ?1) AND NOT expired", (blob,))
        return [Seq(row[0]) for row in rows]

    def lineage(self, document: DocumentId) -> list[tuple[Seq, Place, Status]]:
        """Return number, place and status of a document's edits that have not expired, in order."""
        rows = self._db.execute(
            "SELECT seq, segment, offset, status FROM edits WHERE document = ? AND NOT void AND NOT expired "
            "ORDER BY seq",
            (document,),
        )
        return [(Seq(row[0]), Place(row[1], row[2]), _STATUSES[row[3]]) for row in rows]

    def document_of(self, seq: int) -> DocumentId | None:
        """Return the document of an edit that has not expired and was not taken back (None: there is none such)."""
        query = "SELECT document FROM edits WHERE seq = ? AND NOT void AND NOT expired"
        row = self._db.execute(query, (seq,)).fetchone()
        return None if row is None else DocumentId(row[0])

    def documents_of_path(self, path: bytes) -> list[DocumentId]:
        """Return every document that ever stood at the path."""
        return [DocumentId(row[0]) for row in self._db.execute("SELECT document FROM paths WHERE path = ?", (path,))]

    def all_decision_places(self) -> list[tuple[int, Place]]:
        """Return number and place of every decision that has not expired, those taken back included."""
        rows = self._db.execute("SELECT number, segment, offset FROM decisions WHERE NOT expired ORDER BY number")
        return [(row[0], Place(row[1], row[2])) for row in rows]

    def aged_decisions(self) -> list[tuple[int, int, Place]]:
        """Return number, time (µs) and place of every decision that has not expired, oldest first."""
        rows = self._db.execute(
            "SELECT number, time, segment, offset FROM decisions WHERE NOT void AND NOT expired ORDER BY number"
        )
        return [(row[0], row[1], Place(row[2], row[3])) for row in rows]

    def mentions(self, first: int, last: int) -> list[BlobId]:
        """Return the blobs that the edits from `first` to `last` mention, once for each mention."""
        rows = self._db.execute("SELECT before, after FROM edits WHERE seq BETWEEN ? AND ?", (first, last))
        return [BlobId(blob) for states in rows for blob in states if blob is not None]

    def shares_conversation(self, first: int, last: int, since: int) -> bool:
        """Return whether an edit from `first` to `last` is of a conversation to which edits from `since` on belong."""
        return bool(
            self._db.execute(
                "SELECT count(*) FROM edits WHERE seq BETWEEN ?1 AND ?2 AND conversation IN "
                "(SELECT conversation FROM edits WHERE seq >= ?3 AND NOT void)",
                (first, last, since),
            ).fetchone()[0]
        )

    # ---- snapshots, pins, expiries

    def snapshots(self) -> list[HoldRow]:
        """Return every snapshot, those that have expired included, oldest first."""
        return self._holds("SELECT number, id, segment, offset, expired FROM snapshots ORDER BY number")

    def next_snapshot(self) -> int:
        """Return the number of the next snapshot."""
        return self._number("SELECT ifnull(max(number), 0) + 1 FROM snapshots")

    def pins(self) -> list[HoldRow]:
        """Return every pin, those that have expired included, oldest first."""
        return self._holds("SELECT number, id, segment, offset, expired FROM pins ORDER BY number")

    def next_pin(self) -> int:
        """Return the number of the next pin."""
        return self._number("SELECT ifnull(max(number), 0) + 1 FROM pins")

    def expiry(self, number: int) -> ExpiryRow | None:
        """Return what is known of the expiry, by its number in the order of the journal (None: there is none)."""
        query = "SELECT segment, offset, time, reason FROM expiries WHERE number = ?"
        row = self._db.execute(query, (number,)).fetchone()
        return None if row is None else ExpiryRow(Place(row[0], row[1]), row[2], row[3])

    def _holds(self, query: str) -> list[HoldRow]:
        return [HoldRow(row[0], RecordId(row[1]), Place(row[2], row[3]), row[4]) for row in self._db.execute(query)]

    # ---- the stat cache: which bytes a file had when it last looked like this

    def looks(self) -> Iterator[Look]:
        """Yield every file that exists, by path: what the journal says of it, and how it looked when last read."""
        # As it comes out of the database: of tens of thousands of files, an object each would take most of the time.
        yield from self._db.execute(
            "SELECT id, path, documents.blob, mode, inode, size, mtime, ctime, seen.blob "
            "FROM documents LEFT JOIN seen USING (path) WHERE documents.blob IS NOT NULL ORDER BY path, id"
        )

    def gone(self) -> list[Tip]:
        """Return the document that was deleted last at each path where none stands now, by path."""
        rows = self._db.execute(
            "SELECT max(id), path, blob, mode FROM documents WHERE blob IS NULL "
            "AND path NOT IN (SELECT path FROM documents WHERE blob IS NOT NULL) GROUP BY path ORDER BY path"
        )
        return [_tip(row) for row in rows]

    # ---- inside

    def _number(self, query: str, *values: int | str | bytes) -> int:
        row = self._db.execute(query, values).fetchone()
        return int(row[0]) if row is not None and row[0] is not None else 0

    def _edits(self, condition: str, values: tuple[int | str | bytes, ...], order: str) -> list[EditRow]:
        # The condition and the order are this module's own text; every value is bound.
        rows = self._db.execute(
            "SELECT seq, id, segment, offset, status, units, whole, reason, expired FROM edits "  # noqa: S608 - see above
            f"WHERE {condition} {order}",
            values,
        )
        return [
            EditRow(
                Seq(row[0]),
                RecordId(row[1]),
                Place(row[2], row[3]),
                _status(row[4]),
                tuple(map(_status, row[5])),
                bool(row[6]),
                row[7],
                row[8],
            )
            for row in rows
        ]


def _status(letter: str) -> Status:
    found = _STATUSES.get(letter)
    if found is None:
        raise DiskFailed("index.sqlite", f"The index can't be used (no status is spelt {letter!r}); it may be deleted")
    return found


def _tip(row: Row) -> Tip:
    document, path, blob, mode = row
    assert isinstance(document, int)  # noqa: S101 - the schema's types, for the checker
    assert isinstance(path, bytes)  # noqa: S101 - as above
    assert isinstance(mode, int)  # noqa: S101 - as above
    state = FileState(blob=BlobId(blob), mode=mode) if isinstance(blob, bytes) else None
    return Tip(DocumentId(document), path, state)
