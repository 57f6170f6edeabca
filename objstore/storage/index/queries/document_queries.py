"""Query the index for documents, for the folders that edits created, and for the history of one document."""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import Any, Final

from objstore.model.basic_types import DocumentId, FileState, Seq, Status
from objstore.model.ids import BlobId, RecordId
from objstore.storage.index.database import SUMS, checksum, unusable
from objstore.storage.index.queries.record_queries import DecisionQueries
from objstore.storage.index.rows import Row, Tip, place_in_row, status_in_row
from objstore.storage.index.shared_connection import RecordNumbers, SharedConnection
from objstore.storage.log.segment_files import Place

__all__ = ["DocumentQueries", "FolderQueries", "HistoryQueries"]

_TIP: Final = "id, path, blob, mode, edits, decisions, checksum"


class DocumentQueries:
    """Look up documents by path or number."""

    def __init__(self, db: SharedConnection) -> None:
        """Query one index."""
        self._db: Final = db

    def tip_at(self, path: bytes) -> Tip | None:
        """Return the document that exists at `path`, or else the one that was last deleted there (None: neither)."""
        found = self._tips_at("path = ?", (path,), "")
        return min(found, key=lambda tip: (tip.state is None, -tip.document), default=None)

    def tip(self, document: DocumentId) -> Tip:
        """Return the tip of a document."""
        return _tip(self._db.execute(f"SELECT {_TIP} FROM documents WHERE id = ?", (document,)).fetchone())  # noqa: S608 - names of the schema

    def tips(self) -> list[Tip]:
        """Return the tip of every document, by path. Raises IndexUnusable."""
        query = f"SELECT {_TIP} FROM documents INDEXED BY documents_by_path ORDER BY path, id"  # noqa: S608 - names of the schema
        with self._db.one_state():
            tips = [_tip(row) for row in self._db.execute(query)]
            count = self._db.number("SELECT count(*) FROM documents NOT INDEXED")
        if len(tips) != count:
            raise unusable("it does not have each document by its path")
        return tips

    def tips_of(self, documents: Collection[DocumentId]) -> list[Tip]:
        """Return the tips of those of the documents that exist or did, by number."""
        query = f"SELECT {_TIP} FROM documents WHERE id = ?"  # noqa: S608 - names of the schema
        rows = (self._db.execute(query, (document,)).fetchone() for document in sorted(documents))
        return [_tip(row) for row in rows if row is not None]

    def edited_by(self, first: int, last: int) -> set[DocumentId]:
        """Return the documents of the edits with these numbers, including voided and expired ones."""
        rows = self._db.execute("SELECT DISTINCT document FROM edits WHERE seq BETWEEN ? AND ?", (first, last))
        return {DocumentId(row[0]) for row in rows}

    def decided_by(self, first: int, last: int) -> set[DocumentId]:
        """Return the documents on which the decisions with these numbers decided, including voided and expired ones."""
        rows = self._db.execute("SELECT DISTINCT document FROM decided WHERE number BETWEEN ? AND ?", (first, last))
        return {DocumentId(row[0]) for row in rows}

    def tips_in_the_way(self, path: bytes, folders: Sequence[bytes]) -> list[Tip]:
        """Return every existing document at `path`, at one of its folders, or below `path` as if it were a folder."""
        marks = ",".join("?" * (1 + len(folders)))
        # IN () must not be empty: SQLite would read every row.
        where = f"(path > ? AND path < ? OR path IN ({marks}))"
        return self._tips_at(where, (path + b"/", path + b"0", path, *folders), "AND blob IS NOT NULL")

    def at(self, path: bytes) -> list[DocumentId]:
        """Return every document that was ever at the path, ascending."""
        rows = self._twice("SELECT document FROM {} WHERE path = ? ORDER BY document", path)
        return [DocumentId(row[0]) for row in rows]

    def ever_at(self, path: bytes) -> bool:
        """Return whether a document was ever at the path."""
        return bool(self.at(path))

    def paths_below(self, folder: bytes) -> list[bytes]:
        """Return every path below a folder (b"": anywhere) where a document ever was, ascending."""
        if not folder:
            return [row[0] for row in self._twice("SELECT DISTINCT path FROM {} ORDER BY path")]
        query = "SELECT DISTINCT path FROM {} WHERE path > ? AND path < ? ORDER BY path"
        return [row[0] for row in self._twice(query, folder + b"/", folder + b"0")]

    def holds_states_of(self, path: bytes) -> bool:
        """Return whether edits that have not expired hold states of files that were ever at the path."""
        row = self._db.execute(
            "SELECT 1 FROM paths JOIN edits ON edits.document = paths.document WHERE path = ? AND NOT void "
            "AND NOT expired AND (before IS NOT NULL OR after IS NOT NULL) LIMIT 1",
            (path,),
        ).fetchone()
        return row is not None

    def paths_of_edits_since(self, seq: int) -> list[bytes]:
        """Return every path, current or former, of the files with edits after that number."""
        rows = self._db.execute(
            "SELECT DISTINCT path FROM paths WHERE document IN (SELECT document FROM edits WHERE seq > ?)", (seq,)
        )
        return [row[0] for row in rows]

    def changed_after(self, seq: int, decision: int) -> list[DocumentId]:
        """Return the documents of edits and decisions with higher numbers, ascending."""
        rows = self._db.execute(
            "SELECT document FROM edits WHERE seq > ? AND NOT void UNION "
            "SELECT document FROM decided WHERE number > ? ORDER BY document",
            (seq, decision),
        )
        return [DocumentId(row[0]) for row in rows]

    def paths(self, prefix: bytes, limit: int) -> list[bytes]:
        """Return up to `limit` paths of existing files that begin with `prefix`, ascending."""
        rows = self._db.execute(
            "SELECT DISTINCT path FROM documents WHERE path >= ? AND substr(path, 1, ?) = ? AND blob IS NOT NULL "
            "ORDER BY path LIMIT ?",
            (prefix, len(prefix), prefix, limit),
        )
        return [row[0] for row in rows]

    def deleted(self) -> list[Tip]:
        """Return the document that was deleted last at each path where none exists now, by path."""
        rows = self._db.execute(
            "SELECT max(id), path, blob, mode, edits, decisions, checksum "
            "FROM documents AS gone INDEXED BY documents_gone WHERE blob IS NULL "
            "AND NOT EXISTS (SELECT 1 FROM documents WHERE path = gone.path AND blob IS NOT NULL) "
            "GROUP BY path ORDER BY path"
        )
        return [_tip(row) for row in rows]

    def _tips_at(self, where: str, values: tuple[bytes, ...], which: str) -> list[Tip]:
        """Return every document at some paths, by number. Raises IndexUnusable.

        Reads the rows in two ways that share no page except those of the rows themselves, which have checksums: a row
        that one way misses is found by the other. `where`: which paths; `which`: which of the documents there.
        """
        # Each condition is a text of this module, and every value is bound.
        by_path = f"SELECT {_TIP} FROM documents INDEXED BY documents_by_path WHERE {where} {which} ORDER BY id"  # noqa: S608 - see above
        by_number = (
            "SELECT id FROM documents NOT INDEXED "  # noqa: S608 - see above
            f"WHERE id IN (SELECT document FROM paths WHERE {where}) AND {where} {which} ORDER BY id"
        )
        with self._db.one_state():
            rows = self._db.execute(by_path, values).fetchall()
            others = self._db.execute(by_number, values * 2).fetchall()
        if [row[:1] for row in rows] != others:
            raise unusable(
                f"it has documents {others!r} at {values!r}, and {[row[0] for row in rows]!r} by their paths"
            )
        return [_tip(row) for row in rows]

    def _twice(self, query: str, *values: bytes) -> list[tuple[Any, ...]]:
        """Return the rows that two tables hold of the same paths. Raises IndexUnusable if they differ."""
        with self._db.one_state():
            rows = self._db.execute(query.format("paths"), values).fetchall()
            again = self._db.execute(query.format("paths_copy"), values).fetchall()
        if rows != again:
            raise unusable(f"of {values!r} it says {rows!r}, and {again!r}")
        return rows


class FolderQueries:
    """Look up which folders recorded edits created."""

    def __init__(self, db: SharedConnection) -> None:
        """Query one index."""
        self._db: Final = db

    def was_created_by_edit(self, path: bytes) -> bool:
        """Return whether the folder now at the path, if there is one, was created by a recorded edit."""
        return self._fate(path) == "m"

    def was_emptied_by_decision(self, path: bytes) -> bool:
        """Return whether a decision left the folder empty: if it exists, it is newer or could not be removed."""
        return self._fate(path) == "e"

    def made_for(self, document: DocumentId) -> list[bytes]:
        """Return the folders that the document's edits created and that still count as created by edits, by path."""
        query = "SELECT DISTINCT path FROM edits JOIN folders ON folders.edit = seq WHERE document = ? ORDER BY path"
        return [row[0] for row in self._db.execute(query, (document,)).fetchall() if self.was_created_by_edit(row[0])]

    def _fate(self, folder: bytes) -> str | None:
        query = "SELECT fate FROM folders WHERE path = ? ORDER BY number DESC LIMIT 1"
        row = self._db.execute(query, (folder,)).fetchone()
        return None if row is None else row[0]


class HistoryQueries:
    """Look up the edits and decisions of one document, in the order of the journal."""

    def __init__(self, db: SharedConnection, numbers: RecordNumbers, decisions: DecisionQueries) -> None:
        """Query one index."""
        self._db: Final = db
        self._numbers: Final = numbers
        self._decisions: Final = decisions

    def newest(self, limit: int) -> list[Place]:
        """Return the places of the newest edits and decisions, newest first, including expired ones."""
        edits = "SELECT segment, offset FROM edits WHERE NOT void ORDER BY seq DESC LIMIT ?"
        decisions = "SELECT segment, offset FROM decisions WHERE NOT void ORDER BY number DESC LIMIT ?"
        with self._db.one_state():
            rows = [row for query in (edits, decisions) for row in self._db.execute(query, (limit,))]
        return sorted((place_in_row(*row) for row in rows), reverse=True)[:limit]

    def of(self, document: DocumentId) -> list[Place]:
        """Return the places of the document's unexpired edits and decisions, in the order of the journal."""
        rows = self._db.execute(
            "SELECT segment, offset FROM edits WHERE document = ? AND NOT void AND NOT expired UNION "
            "SELECT segment, offset FROM decisions JOIN decided USING (number) "
            "WHERE document = ? AND NOT void AND NOT expired",
            (document, document),
        )
        return sorted(place_in_row(*row) for row in rows)

    def dated(self, document: DocumentId) -> list[tuple[Place, int]]:
        """Return the places as `of` does, including expired records, each with its time (µs since 1970-01-01 UTC)."""
        rows = self._db.execute(
            "SELECT segment, offset, time FROM edits WHERE document = ? AND NOT void UNION "
            "SELECT segment, offset, time FROM decisions JOIN decided USING (number) WHERE document = ? AND NOT void",
            (document, document),
        )
        return sorted((place_in_row(row[0], row[1]), row[2]) for row in rows)

    def recorded(
        self, document: DocumentId, *, after_edit: int = 0, after_decision: int = 0
    ) -> list[tuple[Place, RecordId, Place | None]]:
        """Return place and id of the document's edits and decisions with numbers above the given ones, as `of` does.

        The third value is the place of the blob that an edit led to (None: a decision, a deletion, or a blob that is
        not stored). Raises IndexUnusable.
        """
        edits = (
            "SELECT e.segment, e.offset, e.id, b.segment, b.offset, void OR expired, is_sound FROM "  # noqa: S608 - as SUMS has it
            f"(SELECT *, checksum IS {SUMS['edits']} AS is_sound FROM edits WHERE document = ? AND seq > ?) e "
            "LEFT JOIN blobs b ON b.id = e.after ORDER BY seq"
        )
        decisions = (
            f"SELECT segment, offset, id, NULL, NULL, void OR expired, checksum IS {SUMS['decisions']} "  # noqa: S608 - the same
            "FROM decided JOIN decisions USING (number) WHERE document = ? AND number > ? ORDER BY number"
        )
        with self._db.one_state():
            found = [
                *self._db.execute(edits, (document, after_edit)),
                *self._db.execute(decisions, (document, after_decision)),
            ]
            is_whole = self._has_all_of(document)
        if not is_whole or not all(row[-1] for row in found):
            raise unusable(f"the edits of document {document}, or the decisions on it, are not those that were put in")
        return sorted(
            (place_in_row(*row[:2]), RecordId(row[2]), place_in_row(*row[3:5]) if row[3] else None)
            for row in found
            if not row[5]
        )

    def lineage(self, document: DocumentId) -> list[tuple[Seq, Place, Status]]:
        """Return number, place and status of the document's unexpired edits, in order."""
        rows = self._db.execute(
            "SELECT seq, segment, offset, status FROM edits WHERE document = ? AND NOT void AND NOT expired "
            "ORDER BY seq",
            (document,),
        )
        return [(Seq(row[0]), place_in_row(row[1], row[2]), status_in_row(row[3])) for row in rows]

    def oldest_edit(self, document: DocumentId) -> Seq | None:
        """Return the document's first edit that has not expired (None: none is left)."""
        query = "SELECT min(seq) FROM edits WHERE document = ? AND NOT void AND NOT expired"
        seq = self._db.number(query, document)
        return Seq(seq) if seq else None

    def newest_edit_before(self, number: int) -> Seq:
        """Return the newest edit that was recorded before the decision (0: there is none)."""

        def place(seq: int) -> Place:
            query = "SELECT segment, offset FROM edits WHERE seq <= ? AND NOT void ORDER BY seq DESC LIMIT 1"
            row = self._db.execute(query, (seq,)).fetchone()
            return Place(0, 0) if row is None else place_in_row(*row)

        with self._db.one_state():
            decided = self._decisions.place(number) or Place(0, 0)
            return Seq(bisect_left(range(1, self._numbers.next_seq()), decided, key=place))

    def newest_decision_before(self, seq: int) -> int:
        """Return the number of the newest decision that was recorded before the edit (0: there is none)."""

        def place(number: int) -> Place:
            query = "SELECT segment, offset FROM decisions WHERE number <= ? AND NOT void ORDER BY number DESC LIMIT 1"
            row = self._db.execute(query, (number,)).fetchone()
            return Place(0, 0) if row is None else place_in_row(*row)

        with self._db.one_state():
            row = self._db.execute("SELECT segment, offset FROM edits WHERE seq = ? AND NOT void", (seq,)).fetchone()
            made = Place(0, 0) if row is None else place_in_row(*row)
            return bisect_left(range(1, self._numbers.next_decision()), made, key=place)

    def last_records(self, document: DocumentId, seq: int, decision: int) -> list[Place]:
        """Return where the document's last edit and the last decision on it are, latest first, expired ones included.

        `seq`, `decision`: neither has a higher number than these.
        """
        edits = (
            "SELECT segment, offset FROM edits WHERE document = ? AND seq <= ? AND NOT void ORDER BY seq DESC LIMIT 1"
        )
        decisions = (
            "SELECT segment, offset FROM decided JOIN decisions USING (number) "
            "WHERE document = ? AND number <= ? AND NOT void ORDER BY number DESC LIMIT 1"
        )
        with self._db.one_state():
            rows = [*self._db.execute(edits, (document, seq)), *self._db.execute(decisions, (document, decision))]
        return sorted((place_in_row(*row) for row in rows), reverse=True)

    def _has_all_of(self, document: DocumentId) -> bool:
        """Return whether a document's edits and decisions are complete: their numbers must add up to its sums."""
        row = self._db.execute("SELECT edits, decisions FROM documents WHERE id = ?", (document,)).fetchone()
        sums = self._db.execute(
            "SELECT (SELECT ifnull(sum(seq), 0) FROM edits WHERE document = ?), "
            "(SELECT ifnull(sum(number), 0) FROM decided WHERE document = ?)",
            (document, document),
        ).fetchone()
        return row is None or bool(row == sums)


def _tip(row: Row | None) -> Tip:
    match row:
        case (int(document), bytes(path), bytes() | None as blob, int(mode), edits, decisions, bytes(found)) if (
            found == checksum("documents", document, path, blob, mode, edits, decisions)
        ):
            state = None if blob is None else FileState(blob=BlobId(blob), mode=mode)
            return Tip(DocumentId(document), path, state)
        case _:
            raise unusable(f"a document can't be {row!r}")
