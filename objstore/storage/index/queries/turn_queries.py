"""Query the index for turns and sessions, comments, and changes of settings."""

from collections.abc import Iterable
from typing import Any, Final

from objstore.model.basic_types import GIT_CONVERSATION, MAX_INT, CommentState, DocumentId, Seq
from objstore.model.ids import RecordId
from objstore.storage.index.database import SUMS, unusable
from objstore.storage.index.rows import (
    CommentRow,
    LinesRow,
    SessionRow,
    SettingRow,
    TurnEdit,
    TurnRow,
    place_in_row,
    status_in_row,
)
from objstore.storage.index.shared_connection import (
    RecordNumbers,
    SharedConnection,
    is_utf8,
    numbered_row,
    numbered_rows,
)
from objstore.storage.log.segment_files import Place

__all__ = ["CommentQueries", "SessionQueries", "SettingQueries", "TurnQueries"]

_TURN: Final = "number, id, segment, offset, time, session, conversation, client, model, prompt"
_COMMENT: Final = "number, id, segment, offset, document, answers, conversation, state, sent"


class TurnQueries:
    """Look up turns."""

    def __init__(self, db: SharedConnection, numbers: RecordNumbers) -> None:
        """Query one index."""
        self._db: Final = db
        self._numbers: Final = numbers

    def turn(self, number: int) -> TurnRow | None:
        """Return the row of the turn (None: no turn has this number). Raises IndexUnusable."""
        row = numbered_row(self._db, self._numbers, "turns", _TURN, number)
        return None if row is None else _turn((*row, 1))

    def session_of(self, number: int) -> int:
        """Return the number of the turn's session (0: no turn has this number)."""
        return self._db.number("SELECT session FROM turns WHERE number = ?", number)

    def all(self) -> list[TurnRow]:
        """Return every turn, oldest first. Raises IndexUnusable."""
        return self._turns("ORDER BY number")

    def of_session(self, session: int) -> list[TurnRow]:
        """Return the turns of the session with this number, oldest first. Raises IndexUnusable."""
        return self._turns("WHERE session = ? ORDER BY number", session) if 0 < session <= MAX_INT else []

    def newest_of(self, session: str, conversation: str) -> TurnRow | None:
        """Return the newest turn with these names (None: there is none). Raises IndexUnusable."""
        # Two ways that share no page: one that misses it would have the turn recorded again.
        by_session = (
            "SELECT number FROM turns INDEXED BY turns_by_session WHERE conversation = ? "
            "AND session = (SELECT number FROM sessions WHERE name = ?) ORDER BY number DESC LIMIT 1"
        )
        by_conversation = (
            "SELECT turns.number FROM turns INDEXED BY turns_by_conversation CROSS JOIN sessions NOT INDEXED "
            "ON sessions.number = session WHERE conversation = ? AND name = ? ORDER BY turns.number DESC LIMIT 1"
        )
        with self._db.one_state():
            one, other = (self._db.number(query, conversation, session) for query in (by_session, by_conversation))
            if one != other:
                raise unusable(f"turn {one} is the newest of {conversation!r} in {session!r}, or {other} is")
            return self.turn(one)

    def edits(self, turns: Iterable[int]) -> list[TurnEdit]:
        """Return the edits of some turns that were neither voided nor claimed since, in order."""
        return [
            TurnEdit(row[0], Seq(row[1]), row[2], status_in_row(row[3]), row[4], row[5])
            for turn in turns
            for row in self._db.execute(
                "SELECT turn, seq, path, status, added, removed FROM edits JOIN documents ON documents.id = document "
                "WHERE turn = ? AND turn > 0 AND owner = conversation AND NOT void ORDER BY seq",
                (turn,),
            )
        ]

    def lines(self) -> list[LinesRow]:
        """Return the lines of all edits but git's by turn, session and status, in the order of the first edits.

        An edit that was claimed since has no turn, only the session that it was claimed for.
        """
        rows = self._db.execute(
            "SELECT iif(owner = conversation, turn, 0) AS made_in, session, status, "
            "count(*), sum(added), sum(removed), min(seq), min(time) FROM edits WHERE conversation != ? AND NOT void "
            "GROUP BY made_in, session, status ORDER BY min(seq)",
            (GIT_CONVERSATION,),
        )
        return [
            LinesRow(row[0], row[1], status_in_row(row[2]), row[3], row[4], row[5], Seq(row[6]), row[7]) for row in rows
        ]

    def of_document(self, document: DocumentId) -> dict[Seq, int]:
        """Return the turn of each edit of a document that has one and was not claimed later."""
        rows = self._db.execute(
            "SELECT seq, turn FROM edits WHERE document = ? AND turn > 0 AND owner = conversation AND NOT void",
            (document,),
        )
        return {Seq(seq): turn for seq, turn in rows}

    def _turns(self, which: str, *values: int | str) -> list[TurnRow]:
        # Each condition is a text of this module, and every value is bound.
        query = f"SELECT {_TURN}, checksum IS {SUMS['turns']} FROM turns {which}"  # noqa: S608 - see above
        return [_turn(row) for row in self._db.execute(query, values)]


class SessionQueries:
    """Look up sessions, which are numbered in the order of their first records."""

    def __init__(self, db: SharedConnection) -> None:
        """Query one index."""
        self._db: Final = db

    def all(self) -> list[SessionRow]:
        """Return every session that has a turn or an edit, oldest first."""
        return self._sessions("", "")

    def count(self) -> int:
        """Return the number of sessions that have edits."""
        return self._db.number(
            "SELECT count(*) FROM sessions WHERE EXISTS "
            "(SELECT 1 FROM edits WHERE edits.session = number AND edits.session > 0 AND NOT void)"
        )

    def get(self, number: int) -> SessionRow | None:
        """Return the row of the session (None: no session has this number, or it has neither turns nor edits)."""
        if not 0 < number <= MAX_INT:
            return None
        found = self._sessions("WHERE number = ?", "AND session = ?", number)
        return found[0] if found else None

    def number(self, name: str) -> int:
        """Return the number of the session with this name (0: there is none)."""
        return self._db.number("SELECT number FROM sessions WHERE name = ?", name)

    def names(self, prefix: str, limit: int) -> list[tuple[int, str]]:
        """Return number and name of up to `limit` sessions whose names begin with `prefix`, oldest first."""
        if not is_utf8(prefix):
            return []
        return self._db.execute(
            "SELECT number, name FROM sessions WHERE substr(name, 1, ?) = ? ORDER BY number LIMIT ?",
            (len(prefix), prefix, limit),
        ).fetchall()

    def of_edits(self, seqs: Iterable[int]) -> dict[Seq, int]:
        """Return the number of each edit's session, after claims, without edits that belong to none."""
        found = {}
        for seq in seqs:
            session = self._db.number("SELECT session FROM edits WHERE seq = ? AND NOT void", seq)
            if session:
                found[Seq(seq)] = session
        return found

    def _sessions(self, which: str, edits_of: str, *numbers: int) -> list[SessionRow]:
        # Each condition is a text of this module, and every value is bound.
        rows = self._db.execute(
            "SELECT number, name, ifnull(given, 0), ifnull(made, 0), ifnull(first, 0), "  # noqa: S608 - see above
            "min(ifnull(began, first_time), ifnull(first_time, began)), "
            "max(ifnull(ended, last_time), ifnull(last_time, ended)) FROM sessions "
            "LEFT JOIN (SELECT session, count(*) AS given, min(time) AS began, max(time) AS ended FROM turns "
            "GROUP BY session) AS prompted ON prompted.session = number "
            "LEFT JOIN (SELECT session, count(*) AS made, min(seq) AS first, min(time) AS first_time, "
            f"max(time) AS last_time FROM edits WHERE session > 0 {edits_of} AND NOT void GROUP BY session) AS edited "
            f"ON edited.session = number {which} ORDER BY number",
            numbers * 2,
        )
        return [
            SessionRow(row[0], row[1], row[2], row[3], Seq(row[4]), row[5], row[6]) for row in rows if any(row[2:4])
        ]


class CommentQueries:
    """Look up comments and their states."""

    def __init__(self, db: SharedConnection, numbers: RecordNumbers) -> None:
        """Query one index."""
        self._db: Final = db
        self._numbers: Final = numbers

    def get(self, number: int) -> CommentRow | None:
        """Return the row of the comment (None: no comment has this number). Raises IndexUnusable."""
        row = numbered_row(self._db, self._numbers, "comments", _COMMENT, number)
        return None if row is None else _comment((*row, 1))

    def all(self) -> list[CommentRow]:
        """Return every comment and answer, oldest first. Raises IndexUnusable."""
        return [_comment((*row, 1)) for row in numbered_rows(self._db, self._numbers, "comments", _COMMENT)]

    def of_document(self, document: DocumentId) -> list[CommentRow]:
        """Return the comments and answers on a document, oldest first. Raises IndexUnusable."""
        return self._comments("WHERE document = ? ORDER BY number", document)

    def in_state(self, state: CommentState) -> list[CommentRow]:
        """Return the comments and answers in this state, oldest first. Raises IndexUnusable."""
        return self._comments("WHERE state = ? ORDER BY number", state.value)

    def answers_to(self, number: int) -> list[CommentRow]:
        """Return the answers to a comment, oldest first. Raises IndexUnusable."""
        return self._comments("WHERE answers > 0 AND answers = ? ORDER BY number", number)

    def _comments(self, which: str, *values: int | str) -> list[CommentRow]:
        # Each condition is a text of this module, and every value is bound.
        query = f"SELECT {_COMMENT}, checksum IS {SUMS['comments']} FROM comments {which}"  # noqa: S608 - see above
        return [_comment(row) for row in self._db.execute(query, values)]


class SettingQueries:
    """Look up changes of settings."""

    def __init__(self, db: SharedConnection) -> None:
        """Query one index."""
        self._db: Final = db

    def changes(self, name: str = "") -> list[SettingRow]:
        """Return the changes of a setting ("": of every one), oldest first."""
        rows = self._db.execute(
            "SELECT segment, offset, time, name FROM settings WHERE ? IN ('', name) ORDER BY number", (name,)
        )
        return [SettingRow(place_in_row(row[0], row[1]), row[2], row[3]) for row in rows]


class CautionQueries:
    """Look up the records of which a person should hear."""

    def __init__(self, db: SharedConnection) -> None:
        """Query one index."""
        self._db: Final = db

    def newest(self) -> int:
        """Return the number of the newest one (0: there is none)."""
        return self._db.number("SELECT ifnull(max(number), 0) FROM cautions")

    def id(self, number: int) -> RecordId | None:
        """Return the id of the record (None: there is none with this number)."""
        row = self._db.execute("SELECT id FROM cautions WHERE number = ?", (min(number, MAX_INT),)).fetchone()
        return None if row is None else RecordId(row[0])

    def after(self, number: int) -> list[Place]:
        """Return the places of those with higher numbers, oldest first."""
        query = "SELECT segment, offset FROM cautions WHERE number > ? ORDER BY number"
        return [place_in_row(*row) for row in self._db.execute(query, (min(number, MAX_INT),))]


def _turn(row: tuple[Any, ...]) -> TurnRow:
    match row:
        case int(number), bytes(name), segment, offset, int(time), int(session), *texts, 1:
            return TurnRow(number, RecordId(name), place_in_row(segment, offset), time, session, *texts)
        case _:
            raise unusable(f"a turn can't be {row!r}")


def _comment(row: tuple[Any, ...]) -> CommentRow:
    match row:
        case int(number), bytes(name), segment, offset, int(document), int(answers), conversation, state, sent, 1:
            place, of = place_in_row(segment, offset), DocumentId(document)
            return CommentRow(number, RecordId(name), place, of, answers, conversation, CommentState(state), sent)
        case _:
            raise unusable(f"a comment can't be {row!r}")
