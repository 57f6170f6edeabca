"""Query the index for documents, for the folders that edits created, and for the history of one document."""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import Any, Final

from objstore.model.basic_types import DocumentId, FileState, Seq, Status
from objstore.model.ids import BlobId, RecordId
from objstore.storage.index.database import INTACT, checksum, unusable
from objstore.storage.index.queries.record_queries import EDIT_COLUMNS, DecisionQueries, edit_row
from objstore.storage.index.rows import STATUS_LETTERS, DocumentRecords, EditRow, Tip, place_in_row
from objstore.storage.index.shared_connection import RecordNumbers, SharedConnection, numbered_row, rows_by_number
from objstore.storage.log.segment_files import Place

__all__ = ["DocumentQueries", "FolderQueries", "HistoryQueries"]

_ROWS_AT_ONCE: Final = 500
"""Number of rows that are read at once while one is looked for."""

_TIP: Final = (
    f"documents.id, path, blob, mode, {', '.join(DocumentRecords._fields)}, documents.checksum, "  # noqa: S608 - names of the schema
    "(SELECT 2 * seq + void FROM edits WHERE document = documents.id ORDER BY seq DESC LIMIT 1), "
    "ifnull((SELECT 2 * number + void FROM decided JOIN decisions USING (number) "
    "WHERE document = documents.id ORDER BY number DESC LIMIT 1), 0)"
)
"""The columns of a tip: the row, and the last edit and decision according to other tables.

A checksum doesn't show that a page is an older copy of itself, but then others have newer records.
"""


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
        """Return the tips of documents, by number, without those that were voided with their first edit.

        Raises IndexUnusable.
        """
        asked, found = sorted(documents), list[Tip]()
        with self._db.one_state():
            for at in range(0, len(asked), _ROWS_AT_ONCE):
                some = asked[at : at + _ROWS_AT_ONCE]
                query = f"SELECT {_TIP} FROM documents WHERE id IN ({','.join('?' * len(some))}) ORDER BY id"  # noqa: S608 - names of the schema
                found += map(_tip, self._db.execute(query, some))
            missing = {*asked} - {tip.document for tip in found}
            for document in missing:
                if self._db.number("SELECT count(*) FROM edits WHERE seq = ? AND NOT void", document):
                    raise unusable(f"it doesn't have document {document}")
        return found

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
            "SELECT max(id) FROM documents AS gone INDEXED BY documents_gone WHERE blob IS NULL "
            "AND NOT EXISTS (SELECT 1 FROM documents WHERE path = gone.path AND blob IS NOT NULL) "
            "GROUP BY path ORDER BY path"
        ).fetchall()
        return [self.tip(DocumentId(row[0])) for row in rows]

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
        query = "SELECT DISTINCT path FROM folders WHERE document = ? AND document > 0 ORDER BY path"
        return [row[0] for row in self._db.execute(query, (document,)).fetchall() if self.was_created_by_edit(row[0])]

    def _fate(self, folder: bytes) -> str | None:
        query = "SELECT fate FROM folders WHERE path = ? ORDER BY number DESC LIMIT 1"
        row = self._db.execute(query, (folder,)).fetchone()
        return None if row is None else row[0]


class HistoryQueries:
    """Look up the edits and decisions of one document, in the order of the journal.

    Every answer begins with the complete list of their numbers, which is compared with the document's row. The rows are
    then read by these numbers and compared with their checksums: a list that was compared and read again by another
    query could differ in between, because one wrong bit can hide a row from one query and not from another.
    """

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

    def marked(self, document: DocumentId) -> list[EditRow]:
        """Return the document's unexpired edits that wrote conflict markers, in order. Raises IndexUnusable."""
        with self._db.one_state():
            seqs = self._edits_with(document, "marked", "marks > 0")
            rows = self._rows("edits", EDIT_COLUMNS, sorted(seq for seq, _ in seqs))
        return [row for row in map(edit_row, rows) if not row.expired]

    def edits_with(self, document: DocumentId, statuses: Sequence[Status]) -> list[tuple[Seq, bool]]:
        """Return the document's edits that have a unit of one of the statuses, and whether each has expired.

        Reads no edit if there is none. Raises IndexUnusable.
        """
        with self._db.one_state():
            found = {
                each
                for status in statuses
                for each in self._edits_with(document, status.value, f"instr(units, '{STATUS_LETTERS[status]}')")
            }
        return sorted(found)

    def _edits_with(self, document: DocumentId, of: str, condition: str) -> list[tuple[Seq, bool]]:
        """Return the edits that one of the sums in the document's row is about. Call it inside `one_state`."""
        query = f"SELECT {_TIP}, {of} FROM documents WHERE id = ?"  # noqa: S608 - names of the schema
        row = self._db.execute(query, (document,)).fetchone()
        left = 0
        if row is not None:
            _tip(row[:-1])
            left = row[-1]
        found: list[tuple[Seq, bool]] = []
        if left:
            query = f"SELECT seq, expired FROM edits WHERE document = ? AND {condition} AND NOT void"  # noqa: S608 - texts of this module
            found = [(Seq(seq), bool(expired)) for seq, expired in self._db.execute(query, (document,))]
        if sum(seq for seq, _ in found) != left:
            raise unusable(f"document {document} has other edits than its row says")
        return found

    def edits(self, document: DocumentId) -> list[EditRow]:
        """Return the document's edits, including expired ones, in order. Raises IndexUnusable."""
        with self._db.one_state():
            rows = self._rows("edits", f"void, {EDIT_COLUMNS}", self._numbers_of(document)[0])
        return [edit_row(row[1:]) for row in rows if not row[0]]

    def of(self, document: DocumentId) -> list[Place]:
        """Return the places of the document's unexpired edits and decisions, in the order of the journal.

        Raises IndexUnusable.
        """
        return sorted(place_in_row(*row[1:]) for row in self._all(document, "void OR expired, segment, offset"))

    def dated(self, document: DocumentId) -> list[tuple[Place, int]]:
        """Return the places as `of` does, including expired records, each with its time (µs since 1970-01-01 UTC)."""
        rows = self._all(document, "void, segment, offset, time")
        return sorted((place_in_row(row[1], row[2]), row[3]) for row in rows)

    def recorded(
        self, document: DocumentId, *, after_edit: int = 0, after_decision: int = 0
    ) -> list[tuple[Place, RecordId, Place | None]]:
        """Return place and id of the document's edits and decisions with numbers above the given ones, as `of` does.

        The third value is the place of the blob that an edit led to (None: a decision, a deletion, or a blob that is
        not stored). Raises IndexUnusable.
        """
        after = "(SELECT segment FROM blobs WHERE id = after), (SELECT offset FROM blobs WHERE id = after)"
        with self._db.one_state():
            edits, decisions = self._numbers_of(document)
            edits = [seq for seq in edits if seq > after_edit]
            decisions = [number for number in decisions if number > after_decision]
            found = [
                *self._rows("edits", f"void OR expired, segment, offset, id, {after}", edits),
                *self._rows("decisions", "void OR expired, segment, offset, id, NULL, NULL", decisions),
            ]
        return sorted(
            (place_in_row(*row[1:3]), RecordId(row[3]), place_in_row(*row[4:6]) if row[4] else None)
            for row in found
            if not row[0]
        )

    def lineage(self, document: DocumentId) -> list[tuple[Seq, Place, Status]]:
        """Return number, place and status of the document's unexpired edits, in order. Raises IndexUnusable."""
        return [(row.seq, row.place, row.status) for row in self.edits(document) if not row.expired]

    def oldest_edit(self, document: DocumentId) -> Seq | None:
        """Return the document's first edit that has not expired (None: none is left). Raises IndexUnusable."""
        with self._db.one_state():
            return self._first(self._numbers_of(document)[0], "void OR expired")

    def newest_edit(self, document: DocumentId) -> Seq | None:
        """Return the newest edit of a document (None: it has none). Raises IndexUnusable."""
        with self._db.one_state():
            return self._first(self._numbers_of(document)[0][::-1], "void")

    def newest_edit_before(self, number: int) -> Seq:
        """Return the newest edit that was recorded before the decision (0: there is none). Raises IndexUnusable."""
        with self._db.one_state():
            decided = self._decisions.place(number) or Place(0, 0)
            return Seq(self._count_before("edits", self._numbers.newest().edits, decided))

    def newest_decision_before(self, seq: int) -> int:
        """Return the number of the newest decision that was recorded before the edit (0: there is none).

        Raises IndexUnusable.
        """
        with self._db.one_state():
            row = numbered_row(self._db, self._numbers, "edits", "void, segment, offset", seq)
            made = Place(0, 0) if row is None or row[0] else place_in_row(row[1], row[2])
            return self._count_before("decisions", self._numbers.newest().decisions, made)

    def last_records(self, document: DocumentId, seq: int, decision: int) -> list[Place]:
        """Return where the document's last edit and the last decision on it are, latest first, expired ones included.

        `seq`, `decision`: neither has a higher number than these. Raises IndexUnusable.
        """
        with self._db.one_state():
            edits, decisions = self._numbers_of(document)
            edit = self._first([each for each in reversed(edits) if each <= seq], "void")
            decided = self._first([each for each in reversed(decisions) if each <= decision], "void", "decisions")
            rows = self._rows("edits", "segment, offset", [edit] if edit else [])
            rows += self._rows("decisions", "segment, offset", [decided] if decided else [])
        return sorted((place_in_row(*row) for row in rows), reverse=True)

    def _numbers_of(self, document: DocumentId) -> tuple[list[int], list[int]]:
        """Return the numbers of a document's edits and of the decisions on it, ascending, voided ones included.

        Raises IndexUnusable if the sums in the document's row are not theirs. Call it inside `one_state`.
        """
        edits = [row[0] for row in self._db.execute("SELECT seq FROM edits WHERE document = ?", (document,))]
        decisions = [row[0] for row in self._db.execute("SELECT number FROM decided WHERE document = ?", (document,))]
        query = f"SELECT edits, decisions, {INTACT['documents']} FROM documents WHERE id = ?"  # noqa: S608 - as INTACT has it
        row = self._db.execute(query, (document,)).fetchone()
        # A document that was voided with its first edit has no row.
        is_gone = row is None and self._is_void(document) and all(row[0] for row in self._rows("edits", "void", edits))
        if not is_gone and row != (sum(edits), sum(decisions), 1):
            raise unusable(f"the edits of document {document}, or the decisions on it, are not those that were put in")
        return sorted(edits), sorted(decisions)

    def _is_void(self, seq: int) -> bool:
        """Return whether no edit has this number, or a voided one."""
        row = numbered_row(self._db, self._numbers, "edits", "void", seq)
        return row is None or bool(row[0])

    def _rows(self, table: str, columns: str, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
        return rows_by_number(self._db, table, columns, numbers)

    def _all(self, document: DocumentId, columns: str) -> list[tuple[Any, ...]]:
        """Return columns of the document's edits and decisions of which the first column is 0."""
        with self._db.one_state():
            edits, decisions = self._numbers_of(document)
            rows = [*self._rows("edits", columns, edits), *self._rows("decisions", columns, decisions)]
        return [row for row in rows if not row[0]]

    def _first(self, numbers: Sequence[int], unless: str, table: str = "edits") -> Seq | None:
        """Return the first of the numbers whose row doesn't fulfil a condition (None: there is none)."""
        at, step = 0, 1  # the first one usually is it
        while at < len(numbers):
            asked = numbers[at : at + step]
            for number, row in zip(asked, self._rows(table, unless, asked), strict=True):
                if not row[0]:
                    return Seq(number)
            at, step = at + step, _ROWS_AT_ONCE
        return None

    def _count_before(self, table: str, newest: int, place: Place) -> int:
        """Return how many records of a table are before a place in the log: their numbers have no gap."""

        def place_of(number: int) -> Place:
            return place_in_row(*self._rows(table, "segment, offset", [number])[0])

        return bisect_left(range(1, newest + 1), place, key=place_of)


def _tip(row: tuple[Any, ...] | None) -> Tip:
    match row:
        case (int(document), bytes(path), bytes() | None as blob, int(mode), *records, bytes(found), edit, decided) if (
            found == checksum("documents", document, path, blob, mode, *records)
        ):
            known = DocumentRecords(*records)
            if (known.last_edit, known.last_decision) != (edit, decided):
                raise unusable(f"document {document} has other edits or decisions than its row says")
            state = None if blob is None else FileState(blob=BlobId(blob), mode=mode)
            return Tip(DocumentId(document), path, state)
        case _:
            raise unusable(f"a document can't be {row!r}")
