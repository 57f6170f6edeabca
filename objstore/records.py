"""The journal's records: what each kind says, and its one spelling in canonical msgpack.

A record is immutable and names the record before it, so the journal is a hash chain. FORMAT.md lists every field.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar, assert_never

from objstore.canonical import Value, encode, unpack
from objstore.errors import RecordInvalid
from objstore.hunks import Hunk
from objstore.ids import HASH_SIZE, BlobId, RecordId
from objstore.terms import Action, DocumentId, FileState, Operation, Origin, Seq, Status, Unit

__all__ = [
    "Decision",
    "Edit",
    "Record",
    "Void",
    "Written",
    "decode_record",
    "encode_record",
]

Choice = TypeVar("Choice", bound=StrEnum)

MAX_INT: Final = 2**63 - 1
MAX_MODE: Final = 0o7777
MAX_TEXT: Final = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change to one file: all that is needed to replay or drop it."""

    seq: Seq
    document: DocumentId
    time: int  # microseconds since 1970-01-01 UTC
    conversation: str
    call: int  # position of the call in its conversation, from 0
    ordinal: int  # position of the edit in its call, from 0
    operation: Operation
    path: bytes  # relative to the workspace, components joined by "/"; of a move: the destination
    source: bytes | None = None  # None: not a move
    before: FileState | None  # None: the file did not exist
    after: FileState | None  # None: the edit deleted it
    hunks: tuple[Hunk, ...] = ()  # () where no line changed, and for create and delete, which are all of the file
    folders: int = 0  # how many of the path's folders, from the innermost, the edit made
    newline: bool = False  # whether the last line, otherwise unchanged, lost or gained its newline
    added: int = 0  # lines, for display
    removed: int = 0
    origin: Origin = Origin.AGENT
    status: Status = Status.PENDING  # what it was recorded as; decisions come after
    amends: Seq | None = None  # the edit whose result a person bettered by this one; None: it amends none
    tool: str
    notes: Mapping[str, str] = field(default_factory=dict)  # agent, client, model, prompt, …: where known

    @property
    def changes_whole(self) -> bool:
        """Return whether unit 0 changes anything: existence, path, mode, or the final newline."""
        if self.before is None or self.after is None or self.source is not None:
            return True
        return self.newline or self.before.mode != self.after.mode or not self.hunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a decision made of one file."""

    document: DocumentId
    path_before: bytes | None  # None: the file did not exist
    before: FileState | None
    path_after: bytes | None  # None: the decision removed the file
    after: FileState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A reviewer's word on some units, and what it made of the files."""

    number: int  # of the decision in its workspace, from 1
    time: int  # microseconds since 1970-01-01 UTC
    action: Action
    verdicts: tuple[tuple[Unit, Status], ...]  # the status that each unit has from now on
    written: tuple[Written, ...]
    who: str
    reason: str = ""
    takes_back: int = 0  # number of the decision that an undo or redo takes back; 0: none


@dataclass(frozen=True, slots=True, kw_only=True)
class Void:
    """The last call or decision could not be carried out and was taken back whole: it counts as never made."""

    time: int  # microseconds since 1970-01-01 UTC
    edits: tuple[Seq, ...]
    decision: int  # 0: none
    reason: str


Record: TypeAlias = Edit | Decision | Void


def encode_record(record: Record, previous: RecordId | None) -> bytes:
    """Return the canonical bytes of `record` as the successor of `previous` (None: it is the first).

    Raises RecordInvalid for a record that `decode_record` would refuse, such as one with too long a text: once in the
    log, it would close the whole store.
    """
    fields = _spelt(record, previous)
    try:
        encoded = encode(fields)
    except (UnicodeEncodeError, OverflowError) as error:
        raise RecordInvalid(f"a value can't be spelt: {error}") from error
    _read(_Fields(fields))
    return encoded


def _spelt(record: Record, previous: RecordId | None) -> dict[str, Value]:
    fields: dict[str, Value]
    match record:
        case Edit():
            fields = _edit_fields(record)
        case Decision():
            fields = _decision_fields(record)
        case Void():
            fields = {
                "kind": "void",
                "time": record.time,
                "edits": [int(seq) for seq in record.edits],
                "decision": record.decision,
                "reason": record.reason,
            }
        case _:
            assert_never(record)
    if previous is not None:
        fields["previous"] = bytes(previous)
    return fields


def decode_record(encoded: bytes) -> tuple[Record, RecordId | None]:
    """Return the record that `encoded` spells and the id of the record before it (None: it is the first).

    Raises RecordInvalid for anything but the one spelling of a well-formed record: stored bytes are not trusted.
    """
    record, previous = _read(_Fields(unpack(encoded)))
    # This one comparison refuses every other spelling: longer integers, keys in disorder, defaults that are stated.
    if encode(_spelt(record, previous)) != encoded:
        raise RecordInvalid("not the canonical spelling")
    return record, previous


def _read(fields: "_Fields") -> tuple[Record, RecordId | None]:
    previous = fields.hash_or_none("previous")
    kind = fields.text("kind")
    record: Record
    match kind:
        case "edit":
            record = _edit(fields)
        case "decision":
            record = _decision(fields)
        case "void":
            record = Void(
                time=fields.number("time"),
                edits=tuple(Seq(n) for n in fields.numbers("edits")),
                decision=fields.number("decision"),
                reason=fields.text("reason"),
            )
        case _:
            raise RecordInvalid(f"unknown kind {kind!r}")
    fields.finish()
    return record, None if previous is None else RecordId(previous)


# ---- fields of each kind


def _edit_fields(edit: Edit) -> dict[str, Value]:
    fields: dict[str, Value] = {
        "kind": "edit",
        "seq": edit.seq,
        "document": edit.document,
        "time": edit.time,
        "conversation": edit.conversation,
        "call": edit.call,
        "ordinal": edit.ordinal,
        "operation": edit.operation.value,
        "path": edit.path,
        "tool": edit.tool,
    }
    if edit.source is not None:
        fields["source"] = edit.source
    if edit.before is not None:
        fields["before"] = _state_value(edit.before)
    if edit.after is not None:
        fields["after"] = _state_value(edit.after)
    if edit.hunks:
        fields["hunks"] = [n for hunk in edit.hunks for n in hunk]
    if edit.folders:
        fields["folders"] = edit.folders
    if edit.newline:
        fields["newline"] = True
    if edit.added or edit.removed:
        fields["lines"] = [edit.added, edit.removed]
    if edit.origin is not Origin.AGENT:
        fields["origin"] = edit.origin.value
    if edit.status is not Status.PENDING:
        fields["status"] = edit.status.value
    if edit.amends is not None:
        fields["amends"] = edit.amends
    if edit.notes:
        fields["notes"] = dict(edit.notes)
    return fields


def _edit(fields: "_Fields") -> Edit:
    lines = fields.numbers("lines") or (0, 0)
    flat = fields.numbers("hunks")
    if len(lines) != len(("added", "removed")) or len(flat) % len(Hunk._fields):
        raise RecordInvalid("a list of numbers has the wrong length")
    edit = Edit(
        seq=Seq(fields.number("seq", least=1)),
        document=DocumentId(fields.number("document", least=1)),
        time=fields.number("time"),
        conversation=fields.text("conversation"),
        call=fields.number("call"),
        ordinal=fields.number("ordinal"),
        operation=fields.choice("operation", Operation),
        path=fields.path("path"),
        source=fields.path("source") if fields.has("source") else None,
        before=fields.state("before"),
        after=fields.state("after"),
        hunks=tuple(Hunk(*flat[i : i + 4]) for i in range(0, len(flat), 4)),
        folders=fields.number("folders") if fields.has("folders") else 0,
        newline=fields.flag("newline"),
        added=lines[0],
        removed=lines[1],
        origin=fields.choice("origin", Origin, Origin.AGENT),
        status=fields.choice("status", Status, Status.PENDING),
        amends=Seq(fields.number("amends", least=1)) if fields.has("amends") else None,
        tool=fields.text("tool"),
        notes=fields.texts("notes"),
    )
    _check_shape(edit)
    return edit


def _check_shape(edit: Edit) -> None:
    exists = (edit.before is not None, edit.after is not None)
    wanted = {Operation.CREATE: (False, True), Operation.DELETE: (True, False)}.get(edit.operation, (True, True))
    if exists != wanted:
        raise RecordInvalid(f"a {edit.operation.value} with the wrong states")
    if (edit.operation is Operation.MOVE) is (edit.source is None):
        raise RecordInvalid("a source path belongs to a move, and to nothing else")
    if edit.hunks and not all(exists):
        raise RecordInvalid("a create or delete is one whole; it has no hunks")
    if edit.folders > edit.path.count(b"/"):
        raise RecordInvalid("an edit made more folders than its path has")
    if edit.document > edit.seq:
        raise RecordInvalid("a document is named by an edit that comes later")
    if edit.amends is not None and (edit.amends >= edit.seq or edit.origin is not Origin.PERSON):
        raise RecordInvalid("an amendment comes after what it amends, and a person makes it")
    end_old = end_new = 0
    for hunk in edit.hunks:
        if hunk.old_start < end_old or hunk.new_start < end_new or not (hunk.old_count or hunk.new_count):
            raise RecordInvalid("hunks are empty, or not in ascending order")
        end_old, end_new = hunk.old_start + hunk.old_count, hunk.new_start + hunk.new_count


def _decision_fields(decision: Decision) -> dict[str, Value]:
    fields: dict[str, Value] = {
        "kind": "decision",
        "number": decision.number,
        "time": decision.time,
        "action": decision.action.value,
        "verdicts": [[unit.seq, unit.hunk, status.value] for unit, status in decision.verdicts],
        "who": decision.who,
    }
    if decision.written:
        fields["written"] = [_written_value(written) for written in decision.written]
    if decision.reason:
        fields["reason"] = decision.reason
    if decision.takes_back:
        fields["takes_back"] = decision.takes_back
    return fields


def _decision(fields: "_Fields") -> Decision:
    verdicts = []
    for item in fields.items("verdicts"):
        match item:
            case [int(seq), int(hunk), str(status)] if _is_number(seq) and _is_number(hunk) and status in set(Status):
                verdicts.append((Unit(Seq(seq), hunk), Status(status)))
            case _:
                raise RecordInvalid("a verdict is not [edit, hunk, status]")
    return Decision(
        number=fields.number("number", least=1),
        time=fields.number("time"),
        action=fields.choice("action", Action),
        verdicts=tuple(verdicts),
        written=tuple(_written(item) for item in fields.items("written", optional=True)),
        who=fields.text("who"),
        reason=fields.text("reason", ""),
        takes_back=fields.number("takes_back") if fields.has("takes_back") else 0,
    )


def _written_value(written: Written) -> Value:
    value: dict[str, Value] = {"document": written.document}
    if written.path_before is not None:
        value["path_before"] = written.path_before
    if written.before is not None:
        value["before"] = _state_value(written.before)
    if written.path_after is not None:
        value["path_after"] = written.path_after
    if written.after is not None:
        value["after"] = _state_value(written.after)
    return value


def _written(value: Value) -> Written:
    if not isinstance(value, dict):
        raise RecordInvalid("what was written is not a map")
    fields = _Fields(value)
    written = Written(
        document=DocumentId(fields.number("document", least=1)),
        path_before=fields.path("path_before") if fields.has("path_before") else None,
        before=fields.state("before"),
        path_after=fields.path("path_after") if fields.has("path_after") else None,
        after=fields.state("after"),
    )
    fields.finish()
    if (written.path_before is None) is not (written.before is None):
        raise RecordInvalid("a state before without a path, or a path without a state")
    if (written.path_after is None) is not (written.after is None):
        raise RecordInvalid("a state after without a path, or a path without a state")
    return written


# ---- values


def _state_value(state: FileState) -> Value:
    return [bytes(state.blob), state.mode]


def _is_number(value: object) -> bool:
    # bool is a kind of int, and must not pass for one
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INT


def _checked_path(value: object) -> bytes:
    if not isinstance(value, bytes) or not value or len(value) > MAX_TEXT:
        raise RecordInvalid("a path is not a byte string of a sane length")
    if b"\0" in value or any(part in (b"", b".", b"..") for part in value.split(b"/")):
        raise RecordInvalid(f"a path leaves its workspace: {value!r}")
    return value


class _Fields:
    """A decoded map, taken apart field by field; what is left over at the end is an error."""

    __slots__ = ("_left",)

    def __init__(self, fields: Mapping[str, Value]) -> None:
        self._left = dict(fields)

    def finish(self) -> None:
        if self._left:
            raise RecordInvalid(f"unknown field {min(self._left)!r}")

    def has(self, name: str) -> bool:
        return name in self._left

    def _take(self, name: str) -> Value:
        try:
            return self._left.pop(name)
        except KeyError:
            raise RecordInvalid(f"no field {name!r}") from None

    def number(self, name: str, *, least: int = 0) -> int:
        value = self._take(name)
        if not isinstance(value, int) or not _is_number(value) or value < least:
            raise RecordInvalid(f"field {name!r} is not a number of at least {least}")
        return value

    def numbers(self, name: str) -> tuple[int, ...]:
        if not self.has(name):
            return ()
        value = self._take(name)
        if not isinstance(value, list) or not all(_is_number(item) for item in value):
            raise RecordInvalid(f"field {name!r} is not a list of numbers")
        return tuple(item for item in value if isinstance(item, int))

    def flag(self, name: str) -> bool:
        if not self.has(name):
            return False
        if self._take(name) is not True:
            raise RecordInvalid(f"field {name!r} is not true")
        return True

    def text(self, name: str, default: str | None = None) -> str:
        if default is not None and not self.has(name):
            return default
        value = self._take(name)
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            raise RecordInvalid(f"field {name!r} is not a string of a sane length")
        return value

    def texts(self, name: str) -> dict[str, str]:
        if not self.has(name):
            return {}
        value = self._take(name)
        if not isinstance(value, dict):
            raise RecordInvalid(f"field {name!r} is not a map")
        inner = _Fields(value)
        return {key: inner.text(key) for key in value}

    def items(self, name: str, *, optional: bool = False) -> list[Value]:
        if optional and not self.has(name):
            return []
        value = self._take(name)
        if not isinstance(value, list):
            raise RecordInvalid(f"field {name!r} is not a list")
        return value

    def choice(self, name: str, kind: type[Choice], default: Choice | None = None) -> Choice:
        if default is not None and not self.has(name):
            return default
        spelling = self.text(name)
        try:
            return kind(spelling)
        except ValueError:
            raise RecordInvalid(f"field {name!r} can't be {spelling!r}") from None

    def path(self, name: str) -> bytes:
        return _checked_path(self._take(name))

    def hash_or_none(self, name: str) -> bytes | None:
        if not self.has(name):
            return None
        value = self._take(name)
        if not isinstance(value, bytes) or len(value) != HASH_SIZE:
            raise RecordInvalid(f"field {name!r} is not a hash")
        return value

    def state(self, name: str) -> FileState | None:
        if not self.has(name):
            return None
        match self._take(name):
            case [bytes(blob), int(mode)] if len(blob) == HASH_SIZE and _is_number(mode) and mode <= MAX_MODE:
                return FileState(blob=BlobId(blob), mode=mode)
            case _:
                raise RecordInvalid(f"field {name!r} is not [blob, mode]")
