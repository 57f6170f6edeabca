"""Apply each frame of the log to the index.

Separate from the index itself, because most commands only query, and then neither records nor blobs need be decoded.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any, Final, assert_never

from msgpack import Packer, UnpackException, unpackb

from objstore.model.basic_types import (
    MAX_INT,
    UNKNOWN_AGENT,
    Action,
    CommentState,
    DocumentId,
    FileState,
    Origin,
    Seq,
    Status,
    Unit,
)
from objstore.model.ids import BlobId, RecordId, record_id
from objstore.model.ranges import ranges_of
from objstore.model.record_codec import decode_record, written_by
from objstore.model.records import (
    Comment,
    Decision,
    Edit,
    Expiry,
    Mark,
    Numbering,
    Pin,
    SettingChange,
    Snapshot,
    Turn,
    Void,
    needs_caution,
)
from objstore.storage.index.created_dirs import CreatedFolders
from objstore.storage.index.database import BASELINE_NOTED, EDIT_COLUMNS, INTACT, LISTED, SUMS, checksum, unusable
from objstore.storage.index.refcounts import RefCounts, written_blobs
from objstore.storage.index.rows import (
    NO_REASONS,
    STATUS_LETTERS,
    BlobPlace,
    ChainedRecord,
    DocumentRecords,
    NewestNumbers,
    decode_reasons,
    encode_reasons,
)
from objstore.storage.log.blob_codec import parse_blob_header
from objstore.storage.log.blob_reader import read_chain, read_chunks
from objstore.storage.log.frames import FrameKind
from objstore.storage.log.segment_files import Place
from objstore.storage.log.segments import Group, Log
from objstore.values.errors import RecordInvalid
from objstore.values.fastclass import NamedTuple

if TYPE_CHECKING:
    from objstore.storage.log.chunking import Chunk

__all__ = ["LogIngest", "decoded"]

_CALLED: Final = (
    "INSERT INTO calls VALUES (?, ?) ON CONFLICT (conversation) DO UPDATE SET newest = max(newest, excluded.newest)"
)

_DECIDED_EDITS: Final = f"SELECT {', '.join(EDIT_COLUMNS)}, checksum, {LISTED} FROM edits WHERE seq IN "  # noqa: S608 - this module's own names
_DECIDED: Final = ("units", "status", "reasons", "owner", "session", "changes")
"""The columns that a decision changes in the row of an edit."""

_SET_UNITS: Final = f"UPDATE edits SET {' = ?, '.join(_DECIDED)} = ?, checksum = ? WHERE seq = ?"  # noqa: S608 - as above
"""The checksum is a value, computed from the row that was read: SQL would hand every column to Python twice."""

_MANY_DOCUMENTS: Final = 8_192
"""Documents from which on what changed in them is written: more (some 7 MB) need not be held in memory."""

_EDITS_AT_ONCE: Final = 500
"""Number of edits whose rows are read by one query, and changed together."""

_UNDONE: Final = frozenset({Action.UNDO, Action.REDO})

_WITH_SESSION: Final = frozenset({Origin.AGENT, Origin.FORMATTER})
"""Origins of edits that belong to a session even if they name no turn."""


class _Owner(NamedTuple):
    """The owner of an edit: a conversation ("": the person), and the number of its session (0: none)."""

    conversation: str
    session: int


class _Verdict(NamedTuple):
    """What a decision makes of a unit."""

    letter: str | None  # None: the status stays
    reason: str | None  # None: the reason stays


_NO_VERDICT: Final = _Verdict(None, None)


class _Before(NamedTuple):
    """The statuses and reasons of some units of one edit before a decision."""

    letters: dict[int, str]
    reasons: dict[int, str]
    owner: _Owner | None  # None: the decision did not change it


class _Change(NamedTuple):
    """What a decision changes in the row of an edit."""

    seq: Seq
    verdicts: Mapping[int, _Verdict]  # of its units, by number
    owner: _Owner | None  # None: as before
    is_named: bool  # whether the decision names the edit, and not only the one that it takes back


class LogIngest:
    """Apply groups to one index's database, inside a transaction of the caller."""

    def __init__(
        self,
        db: sqlite3.Connection,
        log: Log,
        blob_place: Callable[[BlobId], BlobPlace | None],
        newest: NewestNumbers,
        last_record: RecordId | None,
        last_place: Place,
    ) -> None:
        """Continue after `last_record` (None: start), which is at `last_place`, and after the `newest` numbers."""

        def place_of(name: BlobId) -> Place | None:
            found = blob_place(name)
            return None if found is None else found.place

        def read(name: BlobId) -> bytes:
            return read_chain(name, log, place_of)

        def chunks(name: BlobId) -> tuple["Chunk", ...]:
            return read_chunks(name, log, place_of)

        self._db: Final = db
        self._log: Final = log
        # Bound methods of this object would make a reference cycle, which keeps the index open until it is collected.
        self._counts: Final = RefCounts(db, place_of, read, chunks)
        self._folders: Final = CreatedFolders(db)
        self._tips: dict[DocumentId, tuple[bytes | None, FileState | None]] = {}  # path and state, not written yet
        self._records: dict[DocumentId, DocumentRecords] = {}  # not written yet
        self._paths: set[tuple[bytes | None, DocumentId]] = set()  # not written yet
        self._calls: dict[str, int] = {}  # the newest of each conversation, not written yet
        self._sessions: dict[str, int] = {}  # number of each session, by its name, as far as known
        self._sessions_of: dict[str, int] = {}  # number of the session of each conversation, as far as known
        self._numbering: Final = Numbering(*newest)
        self.last_record = last_record
        self.last_place = last_place

    def take(self, group: Group, records: Iterable[ChainedRecord]) -> None:
        """Apply a group, whose records are already decoded; call `settle` after the last group. Raises StoreDamaged."""
        decoded = iter(records)
        for frame in group.frames:
            place = Place(group.segment, frame.offset)
            if frame.kind is FrameKind.BLOB:
                self._counts.store(parse_blob_header(frame.payload), place, len(frame.payload))
            else:
                try:
                    self._apply_record(next(decoded), place)
                except sqlite3.IntegrityError as error:
                    raise place.damaged("the record has a number that another one has too") from error
        if len(self._records) >= _MANY_DOCUMENTS:
            self._write_tips()
        if self._counts.are_many:
            self._counts.settle()

    @property
    def newest(self) -> NewestNumbers:
        """Return the newest number of each kind of record."""
        return NewestNumbers(*self._numbering.newest())

    def settle(self) -> None:
        """Write what the groups changed in tips and counts: collected, because the next edit replaces most of it."""
        self._write_tips()
        self._counts.settle()

    def _apply_record(self, chained: ChainedRecord, place: Place) -> None:
        if chained.previous != self.last_record:
            raise place.damaged("the record does not follow the one before it")
        wrong = self._numbering.take(chained.record)
        if wrong:
            raise place.damaged(wrong)
        match chained.record:
            case Edit():
                self._take_edit(chained.record, chained.id, place)
            case Decision():
                self._take_decision(chained.record, chained.id, place)
            case Void():
                self._take_void(chained.record)
            case Snapshot():
                self._take_snapshot(chained.record, chained.id, place)
            case Pin():
                self._take_pin(chained.record, chained.id, place)
            case Expiry():
                self._take_expiry(chained.record, chained.id, place)
            case Turn() | Comment() | Mark() | SettingChange():
                self._take_without_blobs(chained.record, chained.id, place)
            case _:
                assert_never(chained.record)
        if needs_caution(chained.record):
            row = (chained.id, *place)
            self._db.execute("INSERT INTO cautions (id, segment, offset) VALUES (?, ?, ?)", row)
        self._counts.hold_record(chained.record)
        self.last_record = chained.id
        self.last_place = place

    def _take_edit(self, edit: Edit, name: RecordId, place: Place) -> None:
        self._insert(
            "edits",
            edit.seq,
            name,
            place.segment,
            place.offset,
            edit.document,
            edit.conversation,
            edit.call,
            STATUS_LETTERS[edit.status],
            STATUS_LETTERS[edit.status] * (1 + len(edit.hunks)),
            int(edit.changes_whole),
            NO_REASONS,
            edit.added,
            edit.removed,
            0,
            0 if edit.marks is None else edit.marks.decision,
            edit.time,
            None if edit.before is None else edit.before.blob,
            None if edit.after is None else edit.after.blob,
            0,
            edit.turn,
            edit.conversation,
            self._session_of_edit(edit),
            edit.tool,
            int(edit.origin is Origin.UNATTRIBUTED),
            0,
        )
        records = DocumentRecords(edits=edit.seq, last_edit=2 * edit.seq, marked=0 if edit.marks is None else edit.seq)
        self._note(edit.document, records.with_units(edit.seq, STATUS_LETTERS[edit.status]))
        self._calls[edit.conversation] = max(edit.call, self._calls.get(edit.conversation, 0))
        self._folders.take_edit(edit)
        if edit.source is not None:
            self._db.execute("INSERT OR IGNORE INTO paths VALUES (?, ?)", (edit.source, edit.document))
        self._set_tip(edit.document, edit.path, edit.after)

    def _take_decision(self, decision: Decision, name: RecordId, place: Place) -> None:
        documents: set[DocumentId] = set()
        before = self._decide(self._changes_by(decision), documents)
        is_of_git = decision.action is Action.GIT or bool(decision.commit)
        self._insert(
            "decisions",
            decision.number,
            name,
            *place,
            decision.takes_back,
            0,
            decision.time,
            0,
            int(is_of_git),
        )
        # Megabytes after a decision on many edits. The replay of each of its files reads the decision's row.
        self._insert("former_statuses", decision.number, before)
        self._db.executemany(
            "INSERT INTO decided VALUES (?, ?)",
            [(document, decision.number) for document in sorted(documents)],
        )
        for document in documents:
            self._note(document, DocumentRecords(decisions=decision.number, last_decision=2 * decision.number))
        for written in decision.written:
            if written.path:  # otherwise there was no file before and after it
                self._set_tip(written.document, written.path, written.after)
        self._folders.note_recreated_folders(decision)
        left = self._folders.left(decision, sorted(documents))
        if left:
            self._write_tips()
            self._folders.empty(left, decision)

    def _changes_by(self, decision: Decision) -> Iterator[_Change]:
        """Yield what a decision changes in each edit: also the owner, if it is a claim, or takes one back."""
        # One verdict for all units that get a status: a decision may have a hundred thousand.
        by_status = {status: _Verdict(letter, _reason(decision, status)) for status, letter in STATUS_LETTERS.items()}
        owner = None
        if decision.action is Action.CLAIM:
            is_known = decision.conversation not in {"", UNKNOWN_AGENT}
            session = self._session_of_conversation(decision.conversation) if is_known else 0
            owner = _Owner(decision.conversation, session)
        # A unit gets back its former reason with its former status, whether the undo or redo names it or not.
        before = self._before(decision.takes_back) if decision.action in _UNDONE else {}
        for seq, own in groupby(sorted(decision.verdicts, key=_seq_of), _seq_of):
            verdicts = {unit.hunk: by_status[status] for unit, status in own}
            if seq in before:
                yield _reversed(seq, verdicts, before.pop(seq), is_named=True)
            else:
                yield _Change(seq, verdicts, owner, is_named=True)
        for seq, formerly in before.items():
            yield _reversed(seq, {}, formerly, is_named=False)

    def _decide(self, changes: Iterable[_Change], documents: set[DocumentId]) -> bytes:
        """Change the rows of edits; return what held before, for a void, an undo or a redo, as `_rows_before` reads it.

        `documents`: gets those of the edits that are named.
        """
        packer, count = Packer(autoreset=False), 0
        changes = iter(changes)
        while some := list(islice(changes, _EDITS_AT_ONCE)):
            rows: dict[Seq, dict[str, Any]] = {}
            query = f"{_DECIDED_EDITS} ({','.join('?' * len(some))})"
            for *values, stored, is_listed in self._db.execute(query, [change.seq for change in some]):
                if checksum("edits", *values) != stored or not is_listed:
                    raise unusable(f"row {values[0]} of edits differs from what was written")
                rows[values[0]] = dict(zip(EDIT_COLUMNS, values, strict=True))
            changed: list[tuple[object, ...]] = []
            for change in some:
                found = rows.get(change.seq)
                if found is None or max(change.verdicts) >= len(found["units"]):
                    raise self.last_place.damaged(f"a decision names edit {change.seq}, which has no such hunk")
                if change.is_named:
                    documents.add(found["document"])
                packer.pack(self._decide_edit(found, change))
                changed.append((*map(found.__getitem__, _DECIDED), checksum("edits", *found.values()), change.seq))
            self._db.executemany(_SET_UNITS, changed)
            count += len(some)
        header = Packer(autoreset=False)
        header.pack_array_header(count)
        return bytes(header.bytes()) + bytes(packer.bytes())

    def _decide_edit(self, found: dict[str, Any], change: _Change) -> tuple[object, ...]:
        """Set statuses and reasons in `found`, an edit's row; return the previous ones of the units that change."""
        seq, verdicts, owner, _ = change
        units = found["units"]
        reasons = decode_reasons(found["reasons"], len(units))
        of_units = [verdicts.get(unit, _NO_VERDICT) for unit in range(len(units))]
        now = "".join([verdict.letter or letter for verdict, letter in zip(of_units, units, strict=True)])
        if not found["void"]:
            self._note(found["document"], DocumentRecords().with_units(-seq, units).with_units(seq, now))
        counted = now if found["whole"] or len(now) == 1 else now[1:]
        found["units"], found["status"] = now, next(letter for letter in "parw" if letter in counted)
        found["reasons"] = encode_reasons(
            [
                reason if verdict.reason is None else verdict.reason
                for verdict, reason in zip(of_units, reasons, strict=True)
            ]
        )
        former = found["owner"], found["session"]
        if owner is not None:
            found["owner"], found["session"] = owner
        found["changes"] += 1
        # Only these units: an edit of a thousand hunks may be decided hunk by hunk, each for its own reason.
        own = sorted(verdicts)
        before = "".join([units[unit] for unit in own])
        own_reasons = encode_reasons([reasons[unit] for unit in own])
        return seq, [*chain(*ranges_of(own))], before, own_reasons, [] if owner is None else former

    def _before(self, number: int) -> dict[Seq, _Before]:
        """Return what held of units before a decision, by edit; empty if there is no such decision."""
        self._require_row_checksum("former_statuses", "number", number, number)
        row = self._db.execute("SELECT statuses FROM former_statuses WHERE number = ?", (number,)).fetchone()
        if row is None:
            if self._db.execute("SELECT 1 FROM decisions WHERE number = ?", (number,)).fetchone() is not None:
                raise unusable(f"the statuses before decision {number} are missing")
            return {}
        found: dict[Seq, _Before] = {}
        for seq, own, letters, encoded_reasons, owner in _rows_before(row[0]):
            if max(own) >= self._count_of_units(seq):
                raise unusable(f"edit {seq} had no hunk {max(own)} before a decision")
            reasons = decode_reasons(encoded_reasons, len(own))
            found[seq] = _Before(dict(zip(own, letters, strict=True)), dict(zip(own, reasons, strict=True)), owner)
        return found

    def _count_of_units(self, seq: Seq) -> int:
        """Return the number of units of an edit; 0 if there is no such edit."""
        query = "SELECT ifnull(length(units), 0) FROM edits WHERE seq = ?"
        row = self._db.execute(query, (min(seq, MAX_INT),)).fetchone()  # SQLite accepts no higher number
        return 0 if row is None else row[0]

    def _insert(self, table: str, *values: str | bytes | int | None) -> None:
        """Insert a row, with its checksum over all values."""
        marks = "?, " * len(values)
        self._db.execute(f"INSERT INTO {table} VALUES ({marks}?)", (*values, checksum(table, *values)))  # noqa: S608 - this module's own names

    def _require_row_checksum(self, table: str, number: str, first: int, last: int) -> None:
        """Check rows before they get another checksum. Raises IndexUnusable if one differs from what was written."""
        wrong = f"SELECT {number} FROM {table} WHERE {number} BETWEEN ? AND ? AND NOT ({INTACT[table]})"  # noqa: S608 - this module's own names
        row = self._db.execute(wrong, (first, last)).fetchone()
        if row is not None:
            raise unusable(f"row {row[0]} of {table} differs from what was written")

    def _update_checksums(self, table: str, number: str, first: int, last: int) -> None:
        """Update the checksums of changed rows."""
        statement = f"UPDATE {table} SET checksum = {SUMS[table]} WHERE {number} BETWEEN ? AND ?"  # noqa: S608 - as above
        self._db.execute(statement, (first, last))

    def _take_void(self, void: Void) -> None:
        # Backwards, as recorded: a decision follows the edits that it was made with, and precedes those of its markers.
        is_decision_last = bool(void.decision) and self._follows(void.decision, max(void.edits, default=Seq(0)))
        if is_decision_last:
            self._void_decision(void.decision)
        paths: set[bytes] = set()
        for seq in sorted(void.edits, reverse=True):
            query = "SELECT segment, offset, void OR expired, void, marks, units FROM edits WHERE seq = ?"
            row = self._db.execute(query, (seq,)).fetchone()
            if row is None:
                raise self.last_place.damaged(f"a void names edit {seq}, which does not exist")
            edit, _ = decode_record(bytes(self._log.read(Place(row[0], row[1])).payload))
            assert isinstance(edit, Edit)  # noqa: S101 - the row came from this very record
            self._require_row_checksum("edits", "seq", seq, seq)
            self._db.execute("UPDATE edits SET void = 1, changes = changes + 1 WHERE seq = ?", (seq,))
            self._update_checksums("edits", "seq", seq, seq)
            self._folders.forget(edit=seq)
            if not row[2]:
                self._counts.hold_record(edit, -1)
            records = DocumentRecords(last_edit=2 * seq + 1, marked=-seq if row[4] else 0).with_units(-seq, row[5])
            self._note(edit.document, DocumentRecords() if row[3] else records)
            paths.update(path for path in (edit.path, edit.source) if path is not None)
            if int(edit.document) == int(edit.seq):
                self._forget_document(edit.document, paths)
            else:
                self._set_tip(edit.document, edit.source or edit.path, edit.before)
        if void.decision and not is_decision_last:
            self._void_decision(void.decision)
        self._db.execute("UPDATE totals SET voids = voids + 1")

    def _follows(self, decision: int, seq: Seq) -> bool:
        """Return whether a decision was recorded after an edit; false if one of them does not exist."""
        query = (
            "SELECT (decisions.segment, decisions.offset) > (edits.segment, edits.offset) FROM decisions, edits "
            "WHERE number = ? AND seq = ?"
        )
        row = self._db.execute(query, (decision, seq)).fetchone()
        return row is not None and bool(row[0])

    def _forget_document(self, document: DocumentId, paths: Iterable[bytes]) -> None:
        """Delete a document that never existed, at all paths where it would have been."""
        self._write_tips()
        row = self._document(document)
        self._counts.hold([] if row is None or row[1] is None else [row[1]], -1)
        self._db.execute("DELETE FROM documents WHERE id = ?", (document,))
        self._db.executemany(
            "DELETE FROM paths WHERE path = ? AND document = ?", [(path, document) for path in sorted(paths)]
        )

    def _void_decision(self, number: int) -> None:
        query = "SELECT segment, offset, void OR expired FROM decisions WHERE number = ?"
        row = self._db.execute(query, (number,)).fetchone()
        if row is None:
            raise self.last_place.damaged(f"a void names decision {number}, which does not exist")
        decision, _ = decode_record(bytes(self._log.read(Place(row[0], row[1])).payload))
        assert isinstance(decision, Decision)  # noqa: S101 - the row came from this very record
        self._require_row_checksum("decisions", "number", number, number)
        self._db.execute("UPDATE decisions SET void = 1 WHERE number = ?", (number,))
        self._update_checksums("decisions", "number", number, number)
        self._folders.forget(decision=number)
        self._write_tips()
        query = "SELECT document FROM decided JOIN documents ON id = document WHERE number = ?"
        for (document,) in self._db.execute(query, (number,)).fetchall():
            self._note(document, DocumentRecords(last_decision=2 * number + 1))
        if not row[2]:
            self._counts.hold_record(decision, -1)
        changes = (
            _reversed(
                seq, {unit: _Verdict(letter, None) for unit, letter in before.letters.items()}, before, is_named=True
            )
            for seq, before in self._before(number).items()
        )
        self._decide(changes, set())
        for written in decision.written:
            path = written.path_before if written.path_before is not None else written.path_after
            if path is not None:
                self._set_tip(written.document, path, written.before)

    def _set_tip(self, document: DocumentId, path: bytes | None, state: FileState | None) -> None:
        self._tips[document] = path, state
        self._paths.add((path, document))

    def _write_tips(self) -> None:
        for document in {**self._tips, **self._records}:
            path, blob, mode, known = self._document(document) or (None, None, 0, DocumentRecords())
            if document in self._tips:
                self._counts.hold([] if blob is None else [blob], -1)
                path, state = self._tips[document]
                blob, mode = (None, 0) if state is None else (state.blob, state.mode)
                self._counts.hold([] if blob is None else [blob])
            records = known.with_more(self._records.get(document, DocumentRecords()))
            self._db.execute("DELETE FROM documents WHERE id = ?", (document,))
            self._insert("documents", document, path, blob, mode, *records)
        self._db.executemany("INSERT OR IGNORE INTO paths VALUES (?, ?)", self._paths)
        self._db.executemany(_CALLED, self._calls.items())
        self._tips.clear()
        self._records.clear()
        self._paths.clear()
        self._calls.clear()

    def _document(self, document: DocumentId) -> tuple[bytes | None, BlobId | None, int, DocumentRecords] | None:
        """Return path, blob, mode and records in a document's row (None: it has none yet)."""
        self._require_row_checksum("documents", "id", document, document)
        query = f"SELECT path, blob, mode, {', '.join(DocumentRecords._fields)} FROM documents WHERE id = ?"  # noqa: S608 - this program's own names
        row = self._db.execute(query, (document,)).fetchone()
        return None if row is None else (*row[:3], DocumentRecords(*row[3:]))

    def _note(self, document: DocumentId, more: DocumentRecords) -> None:
        """Note records about a document, for its row."""
        self._records[document] = self._records.get(document, DocumentRecords()).with_more(more)

    # ---- turns and sessions, comments and their marks, settings: they hold no blobs

    def _take_without_blobs(self, record: Turn | Comment | Mark | SettingChange, name: RecordId, place: Place) -> None:
        match record:
            case Turn():
                self._take_turn(record, name, place)
            case Comment():
                about = record.time, record.document, record.answers, record.conversation
                self._insert("comments", record.number, name, *place, *about, CommentState.OPEN.value, "")
            case Mark():
                self._take_mark(record, name, place)
            case SettingChange():
                row = (name, *place, record.time, record.name)
                self._db.execute("INSERT INTO settings (id, segment, offset, time, name) VALUES (?, ?, ?, ?, ?)", row)
            case _:
                assert_never(record)

    def _take_turn(self, turn: Turn, name: RecordId, place: Place) -> None:
        session = self._session(turn.session)
        self._sessions_of[turn.conversation] = session
        texts = turn.conversation, turn.client, turn.model, turn.prompt
        self._insert("turns", turn.number, name, *place, turn.time, session, *texts)

    def _session_of_edit(self, edit: Edit) -> int:
        """Return the number of the session that an edit belongs to (0: none)."""
        if not edit.turn:
            return self._session_of_conversation(edit.conversation) if edit.origin in _WITH_SESSION else 0
        row = self._db.execute("SELECT session FROM turns WHERE number = ?", (edit.turn,)).fetchone()
        if row is None:
            raise unusable(f"it has no turn {edit.turn}")
        session: int = row[0]
        return session

    def _session_of_conversation(self, conversation: str) -> int:
        """Return the number of the session of a conversation's newest turn, or of the session with its name."""
        known = self._sessions_of.get(conversation)
        if known is None:
            query = "SELECT session FROM turns WHERE conversation = ? ORDER BY number DESC LIMIT 1"
            row = self._db.execute(query, (conversation,)).fetchone()
            known = self._sessions_of[conversation] = self._session(conversation) if row is None else row[0]
        return known

    def _session(self, name: str) -> int:
        """Return the number of the session with this name; a new session gets the next number."""
        known = self._sessions.get(name)
        if known is None:
            row = self._db.execute("SELECT number FROM sessions WHERE name = ?", (name,)).fetchone()
            if row is None:
                row = self._db.execute("SELECT ifnull(max(number), 0) + 1 FROM sessions").fetchone()
                self._insert("sessions", row[0], name)
            known = self._sessions[name] = row[0]
        return known

    def _take_mark(self, mark: Mark, name: RecordId, place: Place) -> None:
        row = (name, *place, mark.time)
        self._db.execute("INSERT INTO marks (id, segment, offset, time) VALUES (?, ?, ?, ?)", row)
        for number in mark.comments:
            self._require_row_checksum("comments", "number", number, number)
            self._db.execute("UPDATE comments SET state = ? WHERE number = ?", (mark.state.value, number))
            if mark.state is not CommentState.RESOLVED:
                self._db.execute("UPDATE comments SET sent = ? WHERE number = ?", (mark.conversation, number))
            self._update_checksums("comments", "number", number, number)

    # ---- snapshots and pins, which hold blobs, and expiries, which let go of them

    def _take_snapshot(self, snapshot: Snapshot, name: RecordId, place: Place) -> None:
        is_baseline = not snapshot.who and snapshot.path is None
        self._insert("snapshots", snapshot.number, name, *place, snapshot.root, int(is_baseline), 0, snapshot.time)
        self._db.execute(BASELINE_NOTED)

    def _take_pin(self, pin: Pin, name: RecordId, place: Place) -> None:
        self._insert("pins", pin.number, name, *place, 0, pin.time)

    def _take_expiry(self, expiry: Expiry, name: RecordId, place: Place) -> None:
        row = (name, place.segment, place.offset, expiry.time, expiry.reason)
        number = self._db.execute(
            "INSERT INTO expiries (id, segment, offset, time, reason) VALUES (?, ?, ?, ?, ?)", row
        ).lastrowid
        # An edit's row has every blob that it mentions; there are few records of the other kinds, and they are read.
        for first, last in expiry.edits:
            rows = self._db.execute(
                "SELECT before, after FROM edits WHERE seq BETWEEN ? AND ? AND NOT void AND NOT expired", (first, last)
            )
            self._counts.hold((BlobId(blob) for states in rows for blob in states if blob is not None), -1)
            self._require_row_checksum("edits", "seq", first, last)
            self._db.execute(
                "UPDATE edits SET expired = ?, changes = changes + 1 WHERE seq BETWEEN ? AND ? AND NOT expired",
                (number, first, last),
            )
            self._update_checksums("edits", "seq", first, last)
        for first, last in expiry.decisions:
            self._expire("decisions", first, last, number)
        for one in expiry.snapshots:
            self._expire("snapshots", one, one, number)
        if expiry.snapshots:
            self._db.execute(BASELINE_NOTED)
        for one in expiry.pins:
            self._expire("pins", one, one, number)

    def _expire(self, table: str, first: int, last: int, number: int | None) -> None:
        self._require_row_checksum(table, "number", first, last)
        # The table is a name from this module.
        which = f"FROM {table} WHERE number BETWEEN ? AND ? AND NOT expired"
        if table == "decisions":
            which += " AND NOT void"
        for place in self._db.execute(f"SELECT segment, offset {which}", (first, last)).fetchall():
            encoded = bytes(self._log.read(Place(*place)).payload)
            if table == "decisions":
                self._counts.hold(written_blobs(written_by(encoded)), -1)
            else:
                self._counts.hold_record(decode_record(encoded)[0], -1)
        self._db.execute(
            f"UPDATE {table} SET expired = ? WHERE number BETWEEN ? AND ? AND NOT expired",  # noqa: S608 - as above
            (number, first, last),
        )
        self._update_checksums(table, "number", first, last)


def _seq_of(verdict: tuple[Unit, Status]) -> Seq:
    return verdict[0].seq


def _reversed(seq: Seq, verdicts: Mapping[int, _Verdict], before: _Before, *, is_named: bool) -> _Change:
    """Return the change of an edit by which its units get their reasons of before a decision back, and it its owner.

    `verdicts`: what its units become.
    """
    back = {unit: _Verdict(verdicts.get(unit, _NO_VERDICT).letter, reason) for unit, reason in before.reasons.items()}
    return _Change(seq, {**verdicts, **back}, before.owner, is_named)


def _reason(decision: Decision, status: Status) -> str | None:
    """Return the reason that units have after a decision gave them a status (None: the reason stays)."""
    # What git did to the file is no reason for a status: the unit keeps its own until it is back.
    if decision.action is Action.GIT:
        return None
    # If a rejection gives a unit another status, the unit had been set aside: the reason is not about it.
    comes_back = decision.action is Action.REJECT and status is not Status.REJECTED
    return "" if comes_back else decision.reason


def _rows_before(packed: bytes) -> Iterator[tuple[Seq, list[int], str, bytes, _Owner | None]]:
    """Yield, for each edit of a decision, the units that it decided, and their letters and reasons before it.

    The last value is whose the edit was (None: the decision did not change that).

    Raises IndexUnusable.
    """
    try:
        rows = [tuple(row) for row in unpackb(packed)]
    # The C decoder signals malformed input with several unrelated exception types, among them a bare ValueError.
    except (ValueError, TypeError, OverflowError, RecursionError, UnpackException) as error:
        raise unusable(repr(error)) from error
    for row in rows:
        if [*map(type, row)] != [int, list, str, bytes, list] or not {int}.issuperset(map(type, row[1])):
            raise unusable(f"no edit was {row!r} before a decision")
        seq, ends, letters, reasons, owner = row
        if len(ends) % 2 or [*map(type, owner)] not in ([], [str, int]):
            raise unusable(f"no edit was {row!r} before a decision")
        ranges = [(first, last) for first, last in zip(ends[::2], ends[1::2], strict=True) if 0 <= first <= last]
        if not ranges or sum(last + 1 - first for first, last in ranges) != len(letters):
            raise unusable(f"{letters!r} are not the statuses of {ends!r}")
        own = [unit for first, last in ranges for unit in range(first, last + 1)]
        yield Seq(seq), own, letters, reasons, _Owner(*owner) if owner else None


def decoded(group: Group) -> Iterator[ChainedRecord]:
    """Yield the records of a group. Raises StoreDamaged."""
    for frame in group.frames:
        if frame.kind is FrameKind.RECORD:
            encoded = bytes(frame.payload)
            try:
                record, previous = decode_record(encoded)
            except RecordInvalid as error:
                raise Place(group.segment, frame.offset).damaged(str(error)) from error
            yield ChainedRecord(record, record_id(encoded), previous)
