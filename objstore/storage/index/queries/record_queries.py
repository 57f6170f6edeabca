"""Query the index for edits and decisions."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from objstore.model.basic_types import (
    GIT_CONVERSATION,
    MAX_INT,
    UNKNOWN_AGENT,
    DocumentId,
    Seq,
    Status,
)
from objstore.model.ids import BlobId, RecordId
from objstore.storage.index.database import INTACT, unusable
from objstore.storage.index.rows import (
    STATUS_LETTERS,
    DocumentPosition,
    EditConditions,
    EditRow,
    PendingEdit,
    Row,
    place_in_row,
    status_in_row,
)
from objstore.storage.index.shared_connection import (
    RecordNumbers,
    SharedConnection,
    is_utf8,
    numbered_row,
    numbered_rows,
    rows_by_number,
)
from objstore.storage.log.segment_files import Place

__all__ = ["EDIT_COLUMNS", "DecisionQueries", "EditQueries", "edit_row"]

EDIT_COLUMNS: Final = "seq, id, segment, offset, status, units, whole, reasons, expired, owner, marks"
"""The columns of an `EditRow`."""

_OWNER: Final = f"iif(unattributed AND owner = conversation, '{UNKNOWN_AGENT}', owner)"
"""Whose an edit is: what was found unattributed is so until somebody claims it."""

_PENDING: Final = (
    f"SELECT seq, document, path, conversation, {_OWNER}, turn, session, added, removed FROM edits "  # noqa: S608 - this module's own names
    "JOIN documents ON documents.id = document WHERE status = 'p' AND NOT void AND NOT expired"
)
"""The query for the columns of `PendingEdit`, to which conditions can be added."""

_PENDING_IN_SESSIONS: Final = "session > 0 AND status = 'p' AND NOT void AND NOT expired"
"""The condition of the index `edits_pending_in_sessions`, which SQLite uses where a query has the same words."""

_BEGINS: Final = "conversation >= ? AND conversation < CAST(? AS TEXT)"
"""Condition for conversations whose names begin with a prefix, with two values from `_prefix_bounds`."""


_NUMBERS_AT_ONCE: Final = 500
"""Numbers of edits in one query."""


class EditQueries:
    """Look up edits, and the conversations that they belong to."""

    def __init__(self, db: SharedConnection, numbers: RecordNumbers) -> None:
        """Query one index."""
        self._db: Final = db
        self._numbers: Final = numbers

    def get(self, seq: int) -> EditRow | None:
        """Return the row of the edit (None: no edit has this number). Raises IndexUnusable."""
        row = numbered_row(self._db, self._numbers, "edits", f"void, {EDIT_COLUMNS}", seq)
        return None if row is None or row[0] else edit_row(row[1:])

    def rows(self, seqs: Collection[int]) -> dict[int, EditRow]:
        """Return the row of each of the edits that exist, by number, as `get` does. Raises IndexUnusable."""
        found: dict[int, EditRow] = {}
        asked = sorted(seq for seq in seqs if 0 < seq <= MAX_INT)
        for at in range(0, len(asked), _NUMBERS_AT_ONCE):
            numbers = asked[at : at + _NUMBERS_AT_ONCE]
            marks = ",".join("?" * len(numbers))
            found |= {row.seq: row for row in self._edits(f"seq IN ({marks}) AND NOT void", (*numbers,), "")}
        for seq in asked:
            if seq not in found:
                self.get(seq)  # raises if its row is missing
        return found

    def unexpired(self) -> list[Seq]:
        """Return the numbers of all edits that have not expired, ascending."""
        query = "SELECT seq FROM edits WHERE NOT void AND NOT expired ORDER BY seq"
        return [Seq(seq) for (seq,) in self._db.execute(query)]

    def matching(
        self, wanted: EditConditions, *, newest_first: bool = False, limit: int = 0, skip: int = 0
    ) -> list[EditRow]:
        """Return the edits that fit every given condition, without the first `skip` of them.

        `limit`: at most this many (0: all).
        """
        if not is_utf8(wanted.conversation):
            return []
        conditions, values = ["NOT void"], list[int | str | bytes]()
        if wanted.conversation:
            conditions.append("conversation = ?")
            values.append(wanted.conversation)
        if wanted.paths:
            marks = ",".join("?" * len(wanted.paths))
            conditions.append(f"document IN (SELECT document FROM paths WHERE path IN ({marks}))")  # noqa: S608 - nothing but question marks is put in
            values += wanted.paths
        if wanted.status is not None:
            conditions.append("status = ?")
            values.append(STATUS_LETTERS[wanted.status])
        if wanted.turn:
            conditions.append("turn = ? AND turn > 0 AND owner = conversation")
            values.append(_limited(wanted.turn))
        if wanted.session:
            conditions.append("session = ? AND session > 0")
            values.append(_limited(wanted.session))
        if wanted.before:
            conditions.append("seq < ?")
            values.append(_limited(wanted.before))
        order = f"ORDER BY seq {'DESC' if newest_first else 'ASC'}"
        if limit or skip:
            order += " LIMIT ? OFFSET ?"
            values += (_limited(limit) or -1, _limited(skip))
        return self._edits(" AND ".join(conditions), tuple(values), order)

    def rejected(self, conversations: Sequence[str]) -> list[EditRow]:
        """Return the edits of some conversations of which at least one unit is rejected."""
        asked = tuple(filter(is_utf8, conversations))
        condition = f"conversation IN ({', '.join('?' * len(asked))}) AND instr(units, 'r') AND NOT void"
        return self._edits(condition, asked, "ORDER BY +seq")

    def documents_away(self) -> set[DocumentId]:
        """Return the documents of edits of which at least one unit is away and none is live."""
        query = (
            "SELECT DISTINCT document FROM edits WHERE status IN ('r', 'w') AND instr(units, 'w') "
            "AND NOT void AND NOT expired"
        )
        return {DocumentId(row[0]) for row in self._db.execute(query)}

    def documents_without_file(self) -> set[DocumentId]:
        """Return the documents with a pending edit whose file is gone."""
        query = (
            "SELECT DISTINCT document FROM edits JOIN documents ON documents.id = document "
            "WHERE status = 'p' AND NOT void AND NOT expired AND blob IS NULL"
        )
        return {DocumentId(row[0]) for row in self._db.execute(query)}

    def with_markers(self) -> list[EditRow]:
        """Return the unexpired edits that wrote conflict markers."""
        # The plus keeps SQLite from reading all edits in order instead of the few with markers.
        return self._edits("marks > 0 AND NOT void AND NOT expired", (), "ORDER BY +seq")

    def between(self, low: bytes, high: bytes, limit: int) -> list[EditRow]:
        """Return up to `limit` edits whose ids are in the closed interval."""
        return self._edits("id BETWEEN ? AND ? AND NOT void", (low, high, limit), "LIMIT ?")

    def until(self, moment: int) -> Iterator[Place]:
        """Yield the places of the edits up to a moment (µs since 1970-01-01 UTC), newest first."""
        query = "SELECT segment, offset FROM edits WHERE time <= ? AND NOT void ORDER BY seq DESC"
        for row in self._db.execute(query, (moment,)):
            yield place_in_row(*row)

    def spread(self, count: int) -> list[tuple[int, Place]]:
        """Return time and place of up to `count` edits, evenly spread over all, the newest always included."""
        newest = self._numbers.newest().edits
        wanted = sorted({newest - newest * step // count for step in range(count)})
        query = "SELECT time, segment, offset FROM edits WHERE seq = ? AND NOT void"
        rows = [row for seq in wanted for row in self._db.execute(query, (seq,))]
        return [(row[0], place_in_row(row[1], row[2])) for row in rows]

    def newest(self, digits: str, limit: int) -> list[tuple[Seq, bytes, Status]]:
        """Return up to `limit` edits whose number begins with `digits`: number, current path of the file, status.

        The newest come first.
        """
        if not is_utf8(digits):
            return []
        rows = self._db.execute(
            "SELECT seq, path, status FROM edits JOIN documents ON documents.id = document "
            "WHERE substr(seq, 1, ?) = ? AND NOT void ORDER BY seq DESC LIMIT ?",
            (len(digits), digits, limit),
        )
        return [(Seq(row[0]), row[1], status_in_row(row[2])) for row in rows]

    def counts(self) -> dict[Status, int]:
        """Return the number of edits of each status, without git's."""
        by_status = "SELECT count(*) FROM edits WHERE status = ? AND NOT void"
        # An edit that was purged before it was decided on needs no decision any more.
        with self._db.one_state():
            pending = self._db.number(f"{by_status} AND NOT expired", STATUS_LETTERS[Status.PENDING])
            undecided = self._db.number(by_status, STATUS_LETTERS[Status.PENDING])
            rejected = self._db.number(by_status, STATUS_LETTERS[Status.REJECTED])
            away = self._db.number(by_status, STATUS_LETTERS[Status.AWAY])
            of_git = "SELECT count(*) FROM edits WHERE conversation = ? AND status = ? AND NOT void"
            away_of_git = self._db.number(of_git, GIT_CONVERSATION, STATUS_LETTERS[Status.AWAY]) if away else 0
            count = self.count()
        # Most edits are accepted: they are the remainder, so that they need not be counted one by one.
        return {
            Status.PENDING: pending,
            Status.ACCEPTED: count - undecided - rejected - (away - away_of_git),
            Status.REJECTED: rejected,
            Status.AWAY: away - away_of_git,
        }

    def count(self) -> int:
        """Return the number of edits without git's, including those that expired before anyone decided on them."""
        of_git = "SELECT count(*) FROM edits WHERE conversation = ? AND NOT void"
        with self._db.one_state():
            voided = self._db.number("SELECT count(*) FROM edits INDEXED BY edits_voided WHERE void")
            # Numbers have no gap, so the newest one is also how many edits were ever recorded.
            return self._numbers.newest().edits - voided - self._db.number(of_git, GIT_CONVERSATION)

    def next_call(self, conversation: str) -> int:
        """Return the position that the conversation's next call gets. Raises IndexUnusable."""
        newest, again = self._db.execute(
            "SELECT (SELECT max(call) FROM edits WHERE conversation = ?), "
            "(SELECT newest FROM calls WHERE conversation = ?)",
            (conversation, conversation),
        ).fetchone()
        if newest != again:
            raise unusable(f"call {newest!r} is the newest of {conversation!r}, or {again!r} is")
        return 0 if newest is None else newest + 1

    def conversations(self, prefix: str, limit: int) -> list[str]:
        """Return up to `limit` conversations whose names begin with `prefix`."""
        if not is_utf8(prefix):
            return []
        rows = self._db.execute(
            f"SELECT DISTINCT conversation FROM edits WHERE {_BEGINS} AND NOT void ORDER BY conversation LIMIT ?",  # noqa: S608 - a condition from here
            (*_prefix_bounds(prefix), limit),
        )
        return [row[0] for row in rows]

    def newest_conversations(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Return up to `limit` conversations whose names begin with `prefix`, each with its number of edits.

        The conversation with the newest edit comes first.
        """
        if not is_utf8(prefix):
            return []
        rows = self._db.execute(
            f"SELECT conversation, count(*) FROM edits WHERE {_BEGINS} AND NOT void "  # noqa: S608 - a condition from here
            "GROUP BY conversation ORDER BY max(seq) DESC LIMIT ?",
            (*_prefix_bounds(prefix), limit),
        )
        return [(row[0], row[1]) for row in rows]

    def conversation_count(self) -> int:
        """Return the number of conversations, without that of git's edits."""
        # Only where an edit was voided, a conversation may have none that counts.
        return self._db.number(
            "SELECT count(*) FROM calls WHERE conversation != ? AND (conversation NOT IN "
            "(SELECT conversation FROM edits INDEXED BY edits_voided WHERE void) OR EXISTS "
            "(SELECT 1 FROM edits WHERE edits.conversation = calls.conversation AND NOT void))",
            GIT_CONVERSATION,
        )

    def conversations_between(self, first: int, last: int) -> set[str]:
        """Return the conversations of the edits from `first` to `last`, without voided edits."""
        rows = self._db.execute(
            "SELECT DISTINCT conversation FROM edits WHERE seq BETWEEN ? AND ? AND NOT void", (first, last)
        )
        return {row[0] for row in rows}

    def pending(self) -> list[PendingEdit]:
        """Return the pending edits, oldest first, without expired ones."""
        return list(map(PendingEdit._make, self._db.execute(f"{_PENDING} ORDER BY seq")))

    def pending_unattributed(self) -> int:
        """Return the number of pending edits of which it is not known whose they are."""
        where = f"status = 'p' AND {_OWNER} = ? AND NOT void AND NOT expired"
        query = f"SELECT count(*) FROM edits WHERE {where}"  # noqa: S608 - no value is in it
        return self._db.number(query, UNKNOWN_AGENT)

    def pending_documents(self, document: DocumentId | None = None) -> list[DocumentPosition]:
        """Return the documents that have a pending edit which has not expired, ascending, with their positions.

        `document`: only this one (None: all).
        """
        one, parameters = ("", ()) if document is None else ("AND document = ?", (document,))
        rows = self._db.execute(
            "WITH pending AS (SELECT DISTINCT document AS name FROM edits "  # noqa: S608 - `one` is a text of this method
            f"WHERE status = 'p' AND NOT void AND NOT expired {one}) "
            "SELECT name, (SELECT min(seq) FROM edits WHERE document = name AND NOT void AND NOT expired), "
            "(SELECT id FROM edits WHERE document = name AND NOT void ORDER BY seq DESC LIMIT 1), "
            "(SELECT id FROM decided JOIN decisions USING (number) WHERE document = name AND NOT void "
            "ORDER BY number DESC LIMIT 1) FROM pending ORDER BY name",
            parameters,
        )
        return [DocumentPosition._make(row) for row in rows]

    def colliding(self) -> list[PendingEdit]:
        """Return the pending edits of sessions in the files in which several have some, oldest first."""
        # The plus keeps SQLite from reading the edits of all sessions instead of the pending ones.
        rows = self._db.execute(
            f"{_PENDING} AND +session > 0 AND document IN (SELECT document FROM edits "  # noqa: S608 - the query from here
            f"WHERE {_PENDING_IN_SESSIONS} GROUP BY document HAVING count(DISTINCT session) > 1) ORDER BY seq"
        )
        return list(map(PendingEdit._make, rows))

    def others_are_pending(self, session: int) -> bool:
        """Return whether any session but the one with this number has a pending edit."""
        # In two ranges, so that the session's own edits are not read.
        query = f"SELECT 1 FROM edits WHERE {_PENDING_IN_SESSIONS} AND session"  # noqa: S608 - a text of this module
        return any(self._db.number(f"{query} {side} ? LIMIT 1", session) for side in "<>")

    def long_documents(self, least: int) -> list[DocumentId]:
        """Return the documents that have at least `least` unexpired edits."""
        rows = self._db.execute(
            "SELECT document FROM edits WHERE NOT void AND NOT expired GROUP BY document HAVING count(*) >= ?", (least,)
        )
        return [DocumentId(row[0]) for row in rows]

    def aged(self) -> Iterator[tuple[int, int, int, Place, bool]]:
        """Yield edit, document, time (µs), place, and whether it may expire, of each edit that has not expired.

        They are sorted by document, and then in the order of the journal. An edit may not expire while any edit of its
        conversation is pending, while a part of it is away, or while its file has conflict markers. Raises
        IndexUnusable at the end if these were not all edits.
        """
        with self._db.one_state():
            # Numbers have no gap, so their sum is known.
            newest = self._numbers.newest().edits
            left = newest * (newest + 1) // 2
            for seq, document, moment, segment, offset, is_free, is_gone, is_intact in self._db.execute(
                "SELECT seq, document, time, segment, offset, "  # noqa: S608 - as INTACT has it
                "status != 'p' AND NOT instr(units, 'w') AND conversation NOT IN "
                "(SELECT conversation FROM edits NOT INDEXED WHERE status = 'p' AND NOT void AND NOT expired) "
                "AND document NOT IN (SELECT document FROM edits NOT INDEXED "
                "WHERE marks > 0 AND status NOT IN ('r', 'w') AND NOT void AND NOT expired), void OR expired, "
                f"{INTACT['edits']} FROM edits ORDER BY document, seq"
            ):
                if not is_intact:
                    raise unusable(f"row {seq} of edits is not what was put in")
                left -= seq
                if not is_gone:
                    yield seq, document, moment, place_in_row(segment, offset), bool(is_free)
            if left:
                raise unusable("it doesn't have all edits by their documents")

    def decided_before(self, moment: int) -> int:
        """Return how many unexpired edits are decided and older than the moment (µs since 1970-01-01 UTC)."""
        return self._db.number(
            "SELECT count(*) FROM edits WHERE time < ? AND NOT void AND NOT expired AND status NOT IN ('p', 'w')",
            moment,
        )

    def mentioning(self, blob: BlobId) -> list[Seq]:
        """Return the edits that mention the blob and are neither voided nor expired."""
        rows = self._db.execute(
            "SELECT seq FROM edits WHERE ? IN (before, after) AND NOT void AND NOT expired", (blob,)
        )
        return [Seq(row[0]) for row in rows]

    def mentions(self, first: int, last: int) -> list[BlobId]:
        """Return the blobs that the edits from `first` to `last` mention, once for each mention."""
        rows = self._db.execute("SELECT before, after FROM edits WHERE seq BETWEEN ? AND ?", (first, last))
        return [BlobId(blob) for states in rows for blob in states if blob is not None]

    def edits_of_call(self, conversation: str, call: int) -> int:
        """Return the number of edits that a call has."""
        query = "SELECT count(*) FROM edits WHERE conversation = ? AND call = ?"
        found: int = self._db.execute(query, (conversation, call)).fetchone()[0]
        return found

    def document_of(self, seq: int) -> DocumentId | None:
        """Return the document of an edit (None: there is none, or it is voided or expired). Raises IndexUnusable."""
        row = numbered_row(self._db, self._numbers, "edits", "void OR expired, document", seq)
        return None if row is None or row[0] else DocumentId(row[1])

    def documents_of(self, seqs: Collection[int]) -> dict[int, DocumentId]:
        """Return the document of each of the edits that `document_of` knows one of, by number. Raises IndexUnusable."""
        with self._db.one_state():
            newest = self._numbers.newest().edits
            asked = sorted(seq for seq in seqs if 0 < seq <= newest)
            rows = rows_by_number(self._db, "edits", "void OR expired, document", asked)
        return {seq: DocumentId(row[1]) for seq, row in zip(asked, rows, strict=True) if not row[0]}

    def _edits(self, condition: str, values: tuple[int | str | bytes, ...], order: str) -> list[EditRow]:
        # Condition and order are texts of this module; every value is bound.
        query = f"SELECT {INTACT['edits']}, {EDIT_COLUMNS} FROM edits WHERE {condition} {order}"  # noqa: S608 - see above
        rows = self._db.execute(query, values).fetchall()
        if not all(row[0] for row in rows):
            raise unusable("some edits are not what was put in")
        return [edit_row(row[1:]) for row in rows]


class DecisionQueries:
    """Look up decisions."""

    def __init__(self, db: SharedConnection, numbers: RecordNumbers) -> None:
        """Query one index."""
        self._db: Final = db
        self._numbers: Final = numbers

    def place(self, number: int) -> Place | None:
        """Return the place of the decision (None: no decision has this number). Raises IndexUnusable."""
        row = numbered_row(self._db, self._numbers, "decisions", "void, segment, offset", number)
        return None if row is None or row[0] else place_in_row(row[1], row[2])

    def id(self, number: int) -> RecordId | None:
        """Return the id of the decision (None: no decision has this number). Raises IndexUnusable."""
        row = numbered_row(self._db, self._numbers, "decisions", "void, id", number)
        return None if row is None or row[0] else RecordId(row[1])

    def places(self) -> list[tuple[RecordId, Place]]:
        """Return every decision's id and place, oldest first. Raises IndexUnusable."""
        rows = numbered_rows(self._db, self._numbers, "decisions", "void, id, segment, offset")
        return [(RecordId(row[1]), place_in_row(row[2], row[3])) for row in rows if not row[0]]

    def of_git(self) -> list[Place]:
        """Return the places of the decisions that record what git did, or that a commit made, oldest first."""
        rows = self._db.execute("SELECT segment, offset FROM decisions WHERE git AND NOT void ORDER BY number")
        return [place_in_row(*row) for row in rows]

    def on(self, document: DocumentId) -> list[tuple[int, Place]]:
        """Return number and place of the decisions on a document, newest first, expired ones included."""
        query = (
            "SELECT number, segment, offset FROM decided JOIN decisions USING (number) "
            "WHERE document = ? AND NOT void ORDER BY number DESC"
        )
        return [(row[0], place_in_row(row[1], row[2])) for row in self._db.execute(query, (document,))]

    def until(self, moment: int) -> Iterator[Place]:
        """Yield the places of the decisions up to a moment (µs since 1970-01-01 UTC), newest first."""
        query = "SELECT segment, offset FROM decisions WHERE time <= ? AND NOT void ORDER BY number DESC"
        for row in self._db.execute(query, (moment,)):
            yield place_in_row(*row)

    def unexpired_places(self) -> list[tuple[int, Place]]:
        """Return number and place of every decision that is neither voided nor expired."""
        rows = self._db.execute(
            "SELECT number, segment, offset FROM decisions WHERE NOT void AND NOT expired ORDER BY number"
        )
        return [(row[0], place_in_row(row[1], row[2])) for row in rows]

    def aged(self) -> list[tuple[int, int, Place]]:
        """Return number, time (µs) and place of every unexpired decision, oldest first."""
        rows = self._db.execute(
            "SELECT number, time, segment, offset FROM decisions WHERE NOT void AND NOT expired ORDER BY number"
        )
        return [(row[0], row[1], place_in_row(row[2], row[3])) for row in rows]


def _limited(number: int) -> int:
    """Return the number limited to what SQLite accepts: a number above the highest has the same meaning as that one."""
    return min(max(number, 0), MAX_INT)


def _prefix_bounds(prefix: str) -> tuple[str, bytes]:
    """Return a prefix, and what follows every text that begins with it: no UTF-8 text has the byte 255."""
    return prefix, prefix.encode() + b"\xff"


def edit_row(row: Row) -> EditRow:
    """Return the row with the EDIT_COLUMNS. Raises IndexUnusable if their values are of other types."""
    match row:
        case int(seq), bytes(name), int(segment), int(offset), status, str(units), whole, bytes(reasons), int(
            expired
        ), str(owner), int(marks):
            return EditRow(
                seq=Seq(seq),
                id=RecordId(name),
                place=place_in_row(segment, offset),
                status=status_in_row(status),
                units=tuple(map(status_in_row, units)),
                whole=bool(whole),
                reasons=reasons,
                expired=expired,
                owner=owner,
                marks=marks,
            )
        case _:
            raise unusable(f"an edit can't be {row!r}")
