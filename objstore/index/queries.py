"""Lookups: what is asked of the index, each question one query. Nothing here follows the log or puts anything in.

While a sweep goes on, a place may still be of a segment's generation before. The log reads it all the same; where the
order of places matters, it is asked where they are now.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from objstore.index.blob_queries import BlobQueries
from objstore.index.database import SUMS, checksum, malformed, unusable
from objstore.index.rows import STATUS_LETTERS, Baseline, EditRow, ExpiryRow, HolderRow, NewestNumbers, Row, Tip
from objstore.index.stat_queries import StatQueries
from objstore.log.segment_files import GENERATION, Place
from objstore.model.basic_types import MAX_INT, DocumentId, FileState, Seq, Status
from objstore.model.ids import BlobId, RecordId

__all__ = ["IndexQueries"]

_STATUSES: Final = {letter: status for status, letter in STATUS_LETTERS.items()}

_NEWEST: Final = """
SELECT edits, decisions, snapshots, pins,
    (SELECT ifnull(max(seq), 0) FROM edits), (SELECT ifnull(max(number), 0) FROM decisions),
    (SELECT ifnull(max(number), 0) FROM snapshots), (SELECT ifnull(max(number), 0) FROM pins)
FROM position
"""


_TIP: Final = "id, path, blob, mode, edits, decisions, checksum"


class IndexQueries(BlobQueries, StatQueries):
    """The questions that one index answers."""

    # ---- documents

    def tip_at(self, path: bytes) -> Tip | None:
        """Return the document that stands at `path`, or else the one that was last deleted there (None: neither)."""
        found = self._tips_at("path = ?", (path,), "")
        return min(found, key=lambda tip: (tip.state is None, -tip.document), default=None)

    def tip(self, document: DocumentId) -> Tip:
        """Return the document's tip."""
        return _tip(self._db.execute(f"SELECT {_TIP} FROM documents WHERE id = ?", (document,)).fetchone())  # noqa: S608 - names of the schema

    def tips(self) -> list[Tip]:
        """Return every document's tip, by path."""
        rows = self._db.execute(f"SELECT {_TIP} FROM documents INDEXED BY documents_by_path ORDER BY path, id")  # noqa: S608 - names of the schema
        tips = [_tip(row) for row in rows]
        if len(tips) != self._number("SELECT count(*) FROM documents NOT INDEXED"):
            raise unusable("it does not have each document by its path")
        return tips

    def tips_in_the_way(self, path: bytes, folders: Sequence[bytes]) -> list[Tip]:
        """Return every existing document at `path`, at one of its folders, or below it as if it were a folder."""
        marks = ",".join("?" * (1 + len(folders)))
        # Never IN (): SQLite would look at every row.
        where = f"(path > ? AND path < ? OR path IN ({marks}))"
        return self._tips_at(where, (path + b"/", path + b"0", path, *folders), "AND blob IS NOT NULL")

    def _tips_at(self, where: str, values: tuple[bytes, ...], which: str) -> list[Tip]:
        """Return every document at some paths, by number. Raises IndexUnusable.

        By two ways that have no page in common but those of the rows, which have checksums: what one of them does not
        lead to any more, the other does. `where`: which paths, `which`: which of the documents there.
        """
        # Each text is this module's own, and every value is bound.
        rows = self._db.execute(
            f"SELECT {_TIP} FROM documents INDEXED BY documents_by_path WHERE {where} {which} ORDER BY id",  # noqa: S608 - see above
            values,
        ).fetchall()
        others = self._db.execute(
            "SELECT id FROM documents NOT INDEXED "  # noqa: S608 - see above
            f"WHERE id IN (SELECT document FROM paths WHERE {where}) AND {where} {which} ORDER BY id",
            values * 2,
        ).fetchall()
        if [row[:1] for row in rows] != others:
            raise unusable(
                f"it has documents {others!r} at {values!r}, and {[row[0] for row in rows]!r} by their paths"
            )
        return [_tip(row) for row in rows]

    def documents_at(self, path: bytes) -> list[DocumentId]:
        """Return every document that ever stood at the path, ascending."""
        rows = self._twice("SELECT document FROM {} WHERE path = ? ORDER BY document", path)
        return [DocumentId(row[0]) for row in rows]

    def _twice(self, query: str, *values: bytes) -> list[tuple[Any, ...]]:
        """Return what two tables both say of paths. Raises IndexUnusable where they differ."""
        rows, again = (self._db.execute(query.format(table), values).fetchall() for table in ("paths", "paths_again"))
        if rows != again:
            raise unusable(f"of {values!r} it says {rows!r}, and {again!r}")
        return rows

    def ever_at(self, path: bytes) -> bool:
        """Return whether a document ever stood at the path."""
        return bool(self.documents_at(path))

    def paths_below(self, folder: bytes) -> list[bytes]:
        """Return every path below a folder (b"": anywhere) where a document ever stood, ascending."""
        if not folder:
            return [row[0] for row in self._twice("SELECT DISTINCT path FROM {} ORDER BY path")]
        query = "SELECT DISTINCT path FROM {} WHERE path > ? AND path < ? ORDER BY path"
        return [row[0] for row in self._twice(query, folder + b"/", folder + b"0")]

    def was_created_by_edit(self, path: bytes) -> bool:
        """Return whether a recorded edit made the folder that stands there, if one does."""
        return self._fate(path) == "m"

    def was_emptied_by_decision(self, path: bytes) -> bool:
        """Return whether a decision has left the folder empty: one that stands there came since, or could not go."""
        return self._fate(path) == "e"

    def folders_made_for(self, document: DocumentId) -> list[bytes]:
        """Return the folders that the document's edits made, as far as they count as made, by path."""
        query = "SELECT DISTINCT path FROM edits JOIN folders ON folders.edit = seq WHERE document = ? ORDER BY path"
        return [row[0] for row in self._db.execute(query, (document,)).fetchall() if self.was_created_by_edit(row[0])]

    def _fate(self, folder: bytes) -> str | None:
        query = "SELECT fate FROM folders WHERE path = ? ORDER BY number DESC LIMIT 1"
        row = self._db.execute(query, (folder,)).fetchone()
        return None if row is None else row[0]

    def newest_places(self, limit: int) -> list[Place]:
        """Return where the newest edits and decisions lie, the newest first, those that have expired included."""
        rows = [
            *self._db.execute("SELECT segment, offset FROM edits WHERE NOT void ORDER BY seq DESC LIMIT ?", (limit,)),
            *self._db.execute(
                "SELECT segment, offset FROM decisions WHERE NOT void ORDER BY number DESC LIMIT ?", (limit,)
            ),
        ]
        return sorted(self._now(_place(*row) for row in rows), reverse=True)[:limit]

    def _now(self, places: Iterable[Place]) -> list[Place]:
        """Return where records are now, so that they can be put into the order of the journal."""
        found = list(places)
        known = self._log.generations()
        if not known and all(place.offset < GENERATION for place in found):
            return found
        if any(place.generation > known.get(place.segment, 0) for place in found if place.offset >= GENERATION):
            self._log.refresh(force=True)
        return [self._log.newest(place) or place for place in found]

    def history(self, document: DocumentId) -> list[Place]:
        """Return where the document's edits and the decisions on them lie, in order, but for what has expired."""
        rows = self._db.execute(
            "SELECT segment, offset FROM edits WHERE document = ? AND NOT void AND NOT expired UNION "
            "SELECT segment, offset FROM decisions JOIN decided USING (number) "
            "WHERE document = ? AND NOT void AND NOT expired",
            (document, document),
        )
        return sorted(self._now(_place(*row) for row in rows))

    def dated_history(self, document: DocumentId) -> list[tuple[Place, int]]:
        """Return what `history` returns, with what has expired, and when each was made (µs since 1970-01-01 UTC)."""
        rows = self._db.execute(
            "SELECT segment, offset, time FROM edits WHERE document = ? AND NOT void UNION "
            "SELECT segment, offset, time FROM decisions JOIN decided USING (number) WHERE document = ? AND NOT void",
            (document, document),
        ).fetchall()
        places = self._now(_place(row[0], row[1]) for row in rows)
        return sorted((place, row[2]) for place, row in zip(places, rows, strict=True))

    def edits_until(self, moment: int) -> Iterator[Place]:
        """Yield where the edits lie now that are not later than a moment (µs since 1970-01-01 UTC), newest first."""
        query = "SELECT segment, offset FROM edits WHERE time <= ? AND NOT void ORDER BY seq DESC"
        for row in self._db.execute(query, (moment,)):
            yield self._now([_place(*row)])[0]

    def decisions_until(self, moment: int) -> Iterator[Place]:
        """Yield the same of decisions."""
        query = "SELECT segment, offset FROM decisions WHERE time <= ? AND NOT void ORDER BY number DESC"
        for row in self._db.execute(query, (moment,)):
            yield self._now([_place(*row)])[0]

    def long_documents(self, least: int) -> list[DocumentId]:
        """Return the documents with at least so many edits."""
        rows = self._db.execute(
            "SELECT document FROM edits WHERE NOT void AND NOT expired GROUP BY document HAVING count(*) >= ?", (least,)
        )
        return [DocumentId(row[0]) for row in rows]

    def recorded(
        self, document: DocumentId, *, after_edit: int = 0, after_decision: int = 0
    ) -> list[tuple[Place, RecordId, Place | None]]:
        """Return what `history` returns, of edits and decisions with higher numbers, each with the id of the record.

        And, of an edit, where the blob lies that it led to (None: it led to none, or that is not stored).
        """
        found = [
            *self._db.execute(
                "SELECT e.segment, e.offset, e.id, b.segment, b.offset, void OR expired, is_sound FROM "  # noqa: S608 - as SUMS has it
                f"(SELECT *, checksum IS {SUMS['edits']} AS is_sound FROM edits WHERE document = ? AND seq > ?) e "
                "LEFT JOIN blobs b ON b.id = e.after ORDER BY seq",
                (document, after_edit),
            ),
            *self._db.execute(
                f"SELECT segment, offset, id, NULL, NULL, void OR expired, checksum IS {SUMS['decisions']} "  # noqa: S608 - the same
                "FROM decided JOIN decisions USING (number) WHERE document = ? AND number > ? ORDER BY number",
                (document, after_decision),
            ),
        ]
        if not all(row[-1] for row in found) or not self._has_all_of(document):
            raise unusable(f"the edits of document {document}, or the decisions on it, differ from what was written")
        rows = [row[:5] for row in found if not row[5]]
        places = self._now(_place(row[0], row[1]) for row in rows)
        return sorted(
            (place, RecordId(name), _place(segment, offset) if segment else None)
            for place, (_, _, name, segment, offset) in zip(places, rows, strict=True)
        )

    def _has_all_of(self, document: DocumentId) -> bool:
        """Return whether there are as many edits of a document, and decisions on it, as its row says: by their sums."""
        row = self._db.execute("SELECT edits, decisions FROM documents WHERE id = ?", (document,)).fetchone()
        sums = self._db.execute(
            "SELECT (SELECT ifnull(sum(seq), 0) FROM edits WHERE document = ?), "
            "(SELECT ifnull(sum(number), 0) FROM decided WHERE document = ?)",
            (document, document),
        ).fetchone()
        return row is None or bool(row == sums)

    def oldest_edit(self, document: DocumentId) -> Seq | None:
        """Return the document's first edit that has not expired (None: none is left)."""
        query = "SELECT min(seq) FROM edits WHERE document = ? AND NOT void AND NOT expired"
        seq = self._number(query, document)
        return Seq(seq) if seq else None

    def decision_place(self, number: int) -> Place | None:
        """Return where the decision lies (None: there is none of this number)."""
        query = "SELECT segment, offset FROM decisions WHERE number = ? AND NOT void"
        row = self._db.execute(query, (number,)).fetchone()
        return None if row is None else _place(row[0], row[1])

    def decision_id(self, number: int) -> RecordId | None:
        """Return the id of the decision (None: there is none of this number)."""
        row = self._db.execute("SELECT id FROM decisions WHERE number = ? AND NOT void", (number,)).fetchone()
        return None if row is None else RecordId(row[0])

    def newest_edit_before(self, number: int) -> Seq:
        """Return the newest edit that was recorded before the decision (0: there is none)."""

        def place(seq: int) -> Place:
            query = "SELECT segment, offset FROM edits WHERE seq <= ? AND NOT void ORDER BY seq DESC LIMIT 1"
            row = self._db.execute(query, (seq,)).fetchone()
            return Place(0, 0) if row is None else self._now([_place(*row)])[0]

        decided = self._now([self.decision_place(number) or Place(0, 0)])[0]
        return Seq(bisect_left(range(1, self.next_seq()), decided, key=place))

    # ---- edits and decisions

    def edit(self, seq: int) -> EditRow | None:
        """Return what is known of the edit (None: there is none of this number)."""
        # A caller may ask for any number, and SQLite takes none that is higher.
        rows = self._edits("seq = ? AND NOT void", (seq,), "") if 0 < seq <= MAX_INT else []
        if not rows:
            self._see_none(seq)
        return rows[0] if rows else None

    def _see_none(self, seq: int) -> None:
        """See that there is no edit of a number, or that its row says that it was taken back. Raises IndexUnusable."""
        query = f"SELECT checksum IS {SUMS['edits']} FROM edits WHERE seq = ?"  # noqa: S608 - as SUMS has it
        if 0 < seq <= self.newest().edits and self._db.execute(query, (seq,)).fetchone() != (1,):
            raise unusable(f"edit {seq} differs from what was written")

    def edits(
        self,
        *,
        conversation: str = "",
        paths: Sequence[bytes] = (),
        status: Status | None = None,
        before: int = 0,
        newest_first: bool = False,
        limit: int = 0,
        skip: int = 0,
    ) -> list[EditRow]:
        """Return the edits that fit every given condition, but for the first `skip` of them.

        `paths`: of files whose lineages ever stood at one of these.
        """
        if not _can_be_asked(conversation):
            return []
        conditions, values = ["NOT void"], list[int | str | bytes]()
        if conversation:
            conditions.append("conversation = ?")
            values.append(conversation)
        if paths:
            marks = ",".join("?" * len(paths))
            conditions.append(f"document IN (SELECT document FROM paths WHERE path IN ({marks}))")  # noqa: S608 - nothing but question marks is put in
            values += paths
        if status is not None:
            conditions.append("status = ?")
            values.append(STATUS_LETTERS[status])
        if before:
            conditions.append("seq < ?")
            values.append(_asked(before))
        order = f"ORDER BY seq {'DESC' if newest_first else 'ASC'}"
        if limit or skip:
            order += " LIMIT ? OFFSET ?"
            values += (_asked(limit) or -1, _asked(skip))
        return self._edits(" AND ".join(conditions), tuple(values), order)

    def rejected_edits(self, conversations: Sequence[str]) -> list[EditRow]:
        """Return the edits of conversations of which a part at least is rejected."""
        asked = tuple(filter(_can_be_asked, conversations))
        condition = f"conversation IN ({', '.join('?' * len(asked))}) AND instr(units, 'r') AND NOT void"
        return self._edits(condition, asked, "ORDER BY +seq")

    def has_rejected(self, document: DocumentId) -> bool:
        """Return whether a part of any edit of the document is rejected."""
        query = "SELECT 1 FROM edits WHERE document = ? AND instr(units, 'r') AND NOT void LIMIT 1"
        return self._db.execute(query, (document,)).fetchone() is not None

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
        if not _can_be_asked(prefix):
            return []
        rows = self._db.execute(
            "SELECT DISTINCT conversation FROM edits WHERE conversation >= ? AND substr(conversation, 1, ?) = ? "
            "AND NOT void ORDER BY conversation LIMIT ?",
            (prefix, len(prefix), prefix, limit),
        )
        return [row[0] for row in rows]

    def newest_edits(self, digits: str, limit: int) -> list[tuple[Seq, bytes, Status]]:
        """Return up to `limit` edits whose number begins with `digits` (number, path of the file now, status).

        The newest come first.
        """
        if not _can_be_asked(digits):
            return []
        rows = self._db.execute(
            "SELECT seq, path, status FROM edits JOIN documents ON documents.id = document "
            "WHERE substr(seq, 1, ?) = ? AND NOT void ORDER BY seq DESC LIMIT ?",
            (len(digits), digits, limit),
        )
        return [(Seq(row[0]), row[1], _status(row[2])) for row in rows]

    def newest_conversations(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Return up to `limit` conversations whose names begin with `prefix`, each with its number of edits.

        The one with the newest edit comes first.
        """
        if not _can_be_asked(prefix):
            return []
        rows = self._db.execute(
            "SELECT conversation, count(*) FROM edits WHERE conversation >= ? AND substr(conversation, 1, ?) = ? "
            "AND NOT void GROUP BY conversation ORDER BY max(seq) DESC LIMIT ?",
            (prefix, len(prefix), prefix, limit),
        )
        return [(row[0], row[1]) for row in rows]

    def paths(self, prefix: bytes, limit: int) -> list[bytes]:
        """Return up to `limit` paths of existing files that begin with `prefix`, ascending."""
        rows = self._db.execute(
            "SELECT DISTINCT path FROM documents WHERE path >= ? AND substr(path, 1, ?) = ? AND blob IS NOT NULL "
            "ORDER BY path LIMIT ?",
            (prefix, len(prefix), prefix, limit),
        )
        return [row[0] for row in rows]

    def next_call(self, conversation: str) -> int:
        """Return the position that the conversation's next call has."""
        newest, again = self._db.execute(
            "SELECT (SELECT max(call) FROM edits WHERE conversation = ?), "
            "(SELECT newest FROM calls WHERE conversation = ?)",
            (conversation, conversation),
        ).fetchone()
        if newest != again:
            raise unusable(f"call {newest!r} is the newest of {conversation!r}, or {again!r} is")
        return 0 if newest is None else newest + 1

    def next_seq(self) -> Seq:
        """Return the number of the next edit."""
        return Seq(self.newest().edits + 1)

    def next_decision(self) -> int:
        """Return the number of the next decision."""
        return self.newest().decisions + 1

    def newest(self) -> NewestNumbers:
        """Return the newest number of each kind of record.

        Whoever records goes by it, and a number that is given twice, or passed over, makes the log unreadable for good.
        So two pages of the database have to say the same. Raises what SQLite raises of a damaged file.
        """
        row = self._db.execute(_NEWEST).fetchone()
        if row is None or row[:4] != row[4:]:
            raise malformed("what it has for the newest numbers are not those of its rows")
        return NewestNumbers(*row[:4])

    def decision_places(self) -> list[tuple[RecordId, Place]]:
        """Return every decision's id and place, oldest first."""
        rows = self._all("decisions", "void, id, segment, offset", self.newest().decisions)
        return [(RecordId(row[1]), _place(row[2], row[3])) for row in rows if not row[0]]

    def counts(self) -> dict[Status, int]:
        """Return the number of edits of each status."""
        by_status = "SELECT count(*) FROM edits WHERE status = ? AND NOT void"
        # What was purged before anybody decided it waits for nobody any more.
        pending = self._number(f"{by_status} AND NOT expired", STATUS_LETTERS[Status.PENDING])
        undecided = self._number(by_status, STATUS_LETTERS[Status.PENDING])
        rejected = self._number(by_status, STATUS_LETTERS[Status.REJECTED])
        # Most edits are accepted: they are what is left, so that they need not be counted one by one.
        return {
            Status.PENDING: pending,
            Status.ACCEPTED: self.edit_count() - undecided - rejected,
            Status.REJECTED: rejected,
        }

    def edit_count(self) -> int:
        """Return the number of edits, those included that expired before anybody decided them."""
        taken_back = self._number("SELECT count(*) FROM edits INDEXED BY edits_taken_back WHERE void")
        return self._number("SELECT count(*) FROM edits") - taken_back

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

    def aged_edits(self) -> Iterator[tuple[int, int, int, Place, bool]]:
        """Yield edit, document, time (µs), place now, and whether it is free to go, of what has not expired.

        By document, and there in the order of the journal. An edit is not free where anything of its conversation is
        pending, or where conflict markers stand in its file.
        """
        is_moving = bool(self.moving())
        for seq, document, moment, segment, offset, is_free in self._db.execute(
            "SELECT seq, document, time, segment, offset, status != 'p' AND conversation NOT IN "
            "(SELECT conversation FROM edits WHERE status = 'p' AND NOT void AND NOT expired) AND document NOT IN "
            "(SELECT document FROM edits WHERE marks > 0 AND status != 'r' AND NOT void AND NOT expired) "
            "FROM edits WHERE NOT void AND NOT expired ORDER BY document, seq"
        ):
            place = _place(segment, offset)
            yield seq, document, moment, self._now([place])[0] if is_moving else place, bool(is_free)

    def decided_before(self, moment: int) -> int:
        """Return how many edits are decided, older than the moment (µs since 1970-01-01 UTC), and have not expired."""
        return self._number(
            "SELECT count(*) FROM edits WHERE time < ? AND NOT void AND NOT expired AND status != 'p'", moment
        )

    def mentioning_edits(self, blob: BlobId) -> list[Seq]:
        """Return the edits that mention the blob, and were neither taken back nor have expired."""
        rows = self._db.execute(
            "SELECT seq FROM edits WHERE ? IN (before, after) AND NOT void AND NOT expired", (blob,)
        )
        return [Seq(row[0]) for row in rows]

    def lineage(self, document: DocumentId) -> list[tuple[Seq, Place, Status]]:
        """Return number, place now, and status of a document's edits that have not expired, in order."""
        rows = self._db.execute(
            "SELECT seq, segment, offset, status FROM edits WHERE document = ? AND NOT void AND NOT expired "
            "ORDER BY seq",
            (document,),
        ).fetchall()
        places = self._now(_place(row[1], row[2]) for row in rows)
        return [(Seq(row[0]), place, _status(row[3])) for row, place in zip(rows, places, strict=True)]

    def document_of(self, seq: int) -> DocumentId | None:
        """Return the document of an edit that has not expired and was not taken back (None: there is none such)."""
        query = "SELECT document FROM edits WHERE seq = ? AND NOT void AND NOT expired"
        row = self._db.execute(query, (seq,)).fetchone() if 0 < seq <= MAX_INT else None
        if row is None:
            self._see_none(seq)
        return None if row is None else DocumentId(row[0])

    def documents_of_path(self, path: bytes) -> list[DocumentId]:
        """Return every document that ever stood at the path."""
        return self.documents_at(path)

    def all_decision_places(self) -> list[tuple[int, Place]]:
        """Return number and place of every decision that was neither taken back nor has expired."""
        rows = self._db.execute(
            "SELECT number, segment, offset FROM decisions WHERE NOT void AND NOT expired ORDER BY number"
        )
        return [(row[0], _place(row[1], row[2])) for row in rows]

    def aged_decisions(self) -> list[tuple[int, int, Place]]:
        """Return number, time (µs) and place of every decision that has not expired, oldest first."""
        rows = self._db.execute(
            "SELECT number, time, segment, offset FROM decisions WHERE NOT void AND NOT expired ORDER BY number"
        ).fetchall()
        places = self._now(_place(row[2], row[3]) for row in rows)
        return [(row[0], row[1], place) for row, place in zip(rows, places, strict=True)]

    def mentions(self, first: int, last: int) -> list[BlobId]:
        """Return the blobs that the edits from `first` to `last` mention, once for each mention."""
        rows = self._db.execute("SELECT before, after FROM edits WHERE seq BETWEEN ? AND ?", (first, last))
        return [BlobId(blob) for states in rows for blob in states if blob is not None]

    def uncounted_mention(self) -> BlobId | None:
        """Return a blob that is mentioned and yet does not count as held (None: there is none, as it should be)."""
        row = self._db.execute(
            "SELECT mention FROM (SELECT before AS mention FROM edits WHERE NOT void AND NOT expired "
            "UNION ALL SELECT after FROM edits WHERE NOT void AND NOT expired "
            "UNION ALL SELECT blob FROM documents "
            "UNION ALL SELECT root FROM snapshots WHERE NOT expired "
            "UNION ALL SELECT id FROM trees WHERE refs > 0) "
            "WHERE mention IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blobs WHERE id = mention AND refs > 0) LIMIT 1"
        ).fetchone()
        return None if row is None else BlobId(row[0])

    def conversations_between(self, first: int, last: int) -> set[str]:
        """Return the conversations of the edits from `first` to `last` that were not taken back."""
        rows = self._db.execute(
            "SELECT DISTINCT conversation FROM edits WHERE seq BETWEEN ? AND ? AND NOT void", (first, last)
        )
        return {row[0] for row in rows}

    # ---- snapshots, pins, expiries

    def snapshots(self) -> list[HolderRow]:
        """Return every snapshot, those that have expired included, oldest first."""
        return self._holds("snapshots", self.newest().snapshots)

    def baseline(self, *, newest: bool = False) -> Baseline | None:
        """Return the snapshot that the first look took by itself (None: there is none, or none any more).

        `newest`: where there are two, because one is to take the other's place, that one.
        """
        rows = self._db.execute(
            f"SELECT number, root, checksum IS {SUMS['snapshots']} FROM snapshots "  # noqa: S608 - as SUMS has it
            "WHERE baseline AND NOT expired ORDER BY number"
        ).fetchall()
        noted = self._number("SELECT baseline FROM position")
        if noted != (rows[0][0] if rows else 0) or not all(row[2] for row in rows):
            raise unusable(f"snapshot {noted} is the baseline, or one of {[row[0] for row in rows]!r}")
        row = rows[-1 if newest else 0] if rows else None
        return None if row is None else Baseline(row[0], BlobId(row[1]))

    def snapshot_places(self) -> list[tuple[Place, bool, bool]]:
        """Return where each snapshot lies now, whether it is a baseline, and whether it has expired, oldest first."""
        rows = self._db.execute("SELECT segment, offset, baseline, expired FROM snapshots ORDER BY number").fetchall()
        places = self._now(_place(row[0], row[1]) for row in rows)
        return [(place, bool(row[2]), bool(row[3])) for place, row in zip(places, rows, strict=True)]

    def next_snapshot(self) -> int:
        """Return the number of the next snapshot."""
        return self.newest().snapshots + 1

    def pins(self) -> list[HolderRow]:
        """Return every pin, those that have expired included, oldest first."""
        return self._holds("pins", self.newest().pins)

    def next_pin(self) -> int:
        """Return the number of the next pin."""
        return self.newest().pins + 1

    def expiry(self, number: int) -> ExpiryRow | None:
        """Return what is known of the expiry, by its number in the order of the journal (None: there is none)."""
        query = "SELECT segment, offset, time, reason FROM expiries WHERE number = ?"
        row = self._db.execute(query, (number,)).fetchone()
        return None if row is None else ExpiryRow(_place(row[0], row[1]), row[2], row[3])

    def _holds(self, table: str, newest: int) -> list[HolderRow]:
        rows = self._all(table, "number, id, segment, offset, expired", newest)
        return [HolderRow(row[0], RecordId(row[1]), _place(row[2], row[3]), row[4]) for row in rows]

    def _all(self, table: str, columns: str, newest: int) -> list[tuple[Any, ...]]:
        """Return some columns of every row, by number. `newest`: the last one's. Raises IndexUnusable.

        The numbers have no gap, so their count says whether one is missing.
        """
        query = f"SELECT {columns}, checksum IS {SUMS[table]} FROM {table} ORDER BY number"  # noqa: S608 - names of the schema
        rows = self._db.execute(query).fetchall()
        if len(rows) != newest or not all(row[-1] for row in rows):
            raise unusable(f"not all {newest} rows of {table} are as they were written")
        return [row[:-1] for row in rows]

    # ---- what was deleted

    def gone(self) -> list[Tip]:
        """Return the document that was deleted last at each path where none stands now, by path."""
        rows = self._db.execute(
            "SELECT max(id), path, blob, mode, edits, decisions, checksum "
            "FROM documents AS gone INDEXED BY documents_gone WHERE blob IS NULL "
            "AND NOT EXISTS (SELECT 1 FROM documents WHERE path = gone.path AND blob IS NOT NULL) "
            "GROUP BY path ORDER BY path"
        )
        return [_tip(row) for row in rows]

    # ---- inside

    def _edits(self, condition: str, values: tuple[int | str | bytes, ...], order: str) -> list[EditRow]:
        # The condition and the order are this module's own text; every value is bound.
        rows = self._db.execute(
            "SELECT seq, id, segment, offset, status, units, whole, reasons, expired, "  # noqa: S608 - see above
            f"checksum IS {SUMS['edits']} FROM edits WHERE {condition} {order}",
            values,
        )
        return [_edit_row(row) for row in rows]


def _asked(number: int) -> int:
    """Return the number as SQLite takes it: one beyond all that there are means as much as the last of those."""
    return min(max(number, 0), MAX_INT)


def _can_be_asked(text: str) -> bool:
    """Return whether SQLite takes a text: none with bytes that are not UTF-8, and nothing recorded has such."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _status(letter: object) -> Status:
    found = _STATUSES.get(letter) if isinstance(letter, str) else None
    if found is None:
        raise unusable(f"no status is spelt {letter!r}")
    return found


# SQLite lets a column hold any type, and a damaged page may: what is not of the schema's is not taken for it.


def _place(segment: object, offset: object) -> Place:
    if not isinstance(segment, int) or not isinstance(offset, int):
        raise unusable(f"nothing is at {segment!r}, {offset!r}")
    return Place(segment, offset)


def _tip(row: Row | None) -> Tip:
    match row:
        case (int(document), bytes(path), bytes() | None as blob, int(mode), edits, decisions, bytes(found)) if (
            found == checksum("documents", document, path, blob, mode, edits, decisions)
        ):
            state = None if blob is None else FileState(blob=BlobId(blob), mode=mode)
            return Tip(DocumentId(document), path, state)
        case _:
            raise unusable(f"a document can't be {row!r}")


def _edit_row(row: Row) -> EditRow:
    match row:
        case int(seq), bytes(name), int(segment), int(offset), status, str(units), whole, bytes(reasons), int(
            expired
        ), 1:
            place = _place(segment, offset)
            statuses = tuple(map(_status, units))
            return EditRow(Seq(seq), RecordId(name), place, _status(status), statuses, bool(whole), reasons, expired)
        case _:
            raise unusable(f"an edit can't be {row!r}")
