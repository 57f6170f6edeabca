"""Encode each record in its one canonical form, and decode nothing else.

The encoding of a record contains the id of the record before it. FORMAT.md lists every field.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, assert_never

from objstore.model.basic_types import (
    MAX_INT,
    Action,
    CommentState,
    DocumentId,
    Operation,
    Origin,
    Seq,
    Status,
    Unit,
)
from objstore.model.canonical_msgpack import (
    MAX_TEXT,
    Fields,
    Value,
    checked_path,
    encode,
    is_number,
    is_recorded_mode,
    ordered,
    spell,
    state_value,
    unpack,
)
from objstore.model.ids import HASH_SIZE, BlobId, RecordId
from objstore.model.records import (
    Anchor,
    Comment,
    Decision,
    Edit,
    Expiry,
    Mark,
    Marks,
    Pin,
    Record,
    SettingChange,
    Snapshot,
    Turn,
    Void,
    WrittenFile,
)
from objstore.text.forms import NO_FORMS, TextForm
from objstore.text.hunks import Hunk
from objstore.values.errors import RecordInvalid

__all__ = ["decode_record", "encode_record", "written_by"]

_HEX: Final = frozenset("0123456789abcdef")
_MAX_COMMIT: Final = 64
"""Digits of the name of a git commit: 40 by SHA-1, 64 by SHA-256."""

_INT: Final = frozenset({int})
_STR: Final = frozenset({str})
_STATUSES: Final = {status.value: status for status in Status}
_SPELLINGS: Final = {status: status.value for status in Status}
_EXISTS: Final = {Operation.CREATE: (False, True), Operation.DELETE: (True, False)}
"""Whether the file exists before and after an operation; for all other operations it exists both times."""


def encode_record(record: Record, previous: RecordId | None) -> bytes:
    """Return the canonical bytes of `record` as the successor of `previous` (None: it is the first).

    Raises RecordInvalid for a record that `decode_record` would refuse, such as one with too long a text: once in the
    log, it would make the whole store unreadable.
    """
    fields = _fields_of(record, previous)
    is_plain = isinstance(record, Edit) and _is_plain(record)
    try:
        encoded = spell(fields) if is_plain else encode(fields)
    except (UnicodeEncodeError, OverflowError) as error:
        raise RecordInvalid(f"a value can't be encoded: {error}") from error
    if not is_plain:
        _read(Fields(fields))
    return encoded


def _fields_of(record: Record, previous: RecordId | None) -> dict[str, Value]:
    fields: dict[str, Value]
    match record:
        case Edit():
            return _edit_fields(record, previous)
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
        case Snapshot():
            fields = _snapshot_fields(record)
        case Pin():
            fields = _pin_fields(record)
        case Expiry():
            fields = _expiry_fields(record)
        case Turn():
            fields = _turn_fields(record)
        case Comment():
            fields = _comment_fields(record)
        case Mark():
            fields = _mark_fields(record)
        case SettingChange():
            fields = _setting_fields(record)
        case _:
            assert_never(record)
    if previous is not None:
        fields["previous"] = bytes(previous)
    return fields


def decode_record(encoded: bytes) -> tuple[Record, RecordId | None]:
    """Return the record in `encoded` and the id of the record before it (None: it is the first).

    Raises RecordInvalid for anything but the canonical encoding of a well-formed record: stored bytes are not trusted.
    """
    record, previous = _read(Fields(unpack(encoded)))
    # This comparison refuses every other encoding: longer integers, unordered keys, explicit default values.
    fields = _fields_of(record, previous)
    if (spell(fields) if isinstance(record, Edit) else encode(fields)) != encoded:
        raise RecordInvalid("not the canonical encoding")
    return record, previous


def written_by(encoded: bytes) -> tuple[WrittenFile, ...]:
    """Return what a decision did to files, from bytes that `decode_record` has accepted before.

    Its verdicts, of which there may be thousands, are skipped. Raises RecordInvalid.
    """
    fields = Fields(unpack(encoded))
    if fields.text("kind") != "decision":
        raise RecordInvalid("not a decision")
    return tuple(_written(item) for item in fields.items("written", optional=True))


def _read(fields: Fields) -> tuple[Record, RecordId | None]:
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
        case "snapshot":
            record = _snapshot(fields)
        case "pin":
            record = _pin(fields)
        case "expiry":
            record = _expiry(fields)
        case "turn":
            record = _turn(fields)
        case "comment":
            record = _comment(fields)
        case "mark":
            record = _mark(fields)
        case "setting":
            record = _setting(fields)
        case _:
            raise RecordInvalid(f"unknown kind {kind!r}")
    fields.finish()
    return record, None if previous is None else RecordId(previous)


# ---- fields of each kind


def _edit_fields(edit: Edit, previous: RecordId | None) -> dict[str, Value]:
    """Return an edit's fields in ascending order. Edits are the most common records, so this saves sorting them."""
    fields: dict[str, Value | None] = {
        "after": None if edit.after is None else state_value(edit.after),
        "amends": edit.amends,
        "before": None if edit.before is None else state_value(edit.before),
        "call": edit.call,
        "conversation": edit.conversation,
        "document": edit.document,
        "folders": edit.folders or None,
        "forms": None if edit.forms == NO_FORMS else [int(form) for form in edit.forms],
        "hunks": [n for hunk in edit.hunks for n in hunk] or None,
        "kind": "edit",
        "lines": [edit.added, edit.removed] if edit.added or edit.removed else None,
        "marks": None if edit.marks is None else _marks_value(edit.marks),
        "newline": True if edit.newline else None,
        "notes": ordered(dict(edit.notes)) if edit.notes else None,
        "operation": edit.operation.value,
        "ordinal": edit.ordinal,
        "origin": None if edit.origin is Origin.AGENT else edit.origin.value,
        "path": edit.path,
        "previous": previous,
        "seq": edit.seq,
        "source": edit.source,
        "status": None if edit.status is Status.PENDING else edit.status.value,
        "time": edit.time,
        "tool": edit.tool,
        "turn": edit.turn or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _marks_value(marks: Marks) -> Value:
    return [
        marks.decision,
        [[unit.seq, unit.hunk] for unit in marks.against],
        [[unit.seq, unit.hunk, status.value] for unit, status in marks.aside],
    ]


def _edit(fields: Fields) -> Edit:
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
        forms=_forms(fields.numbers("forms")),
        added=lines[0],
        removed=lines[1],
        origin=fields.choice("origin", Origin, Origin.AGENT),
        status=fields.choice("status", Status, Status.PENDING),
        amends=Seq(fields.number("amends", least=1)) if fields.has("amends") else None,
        marks=_marks(fields.items("marks")) if fields.has("marks") else None,
        turn=fields.number("turn", least=1) if fields.has("turn") else 0,
        tool=fields.text("tool"),
        notes=fields.texts("notes"),
    )
    _check_shape(edit)
    return edit


def _is_plain(edit: Edit) -> bool:
    """Return whether every value is certainly one that `_edit` accepts; if not, `_edit` must check the fields.

    True for nearly all edits. Raises RecordInvalid where `_edit` does.
    """
    if edit.source is not None or edit.amends is not None or edit.marks is not None or edit.forms != NO_FORMS:
        return False
    numbers = [edit.document, edit.seq, edit.time, edit.call, edit.ordinal, edit.folders, edit.added, edit.removed]
    numbers.append(edit.turn)
    for hunk in edit.hunks:
        numbers += hunk
    for state in (edit.before, edit.after):
        if state is not None:
            if len(state.blob) != HASH_SIZE or not is_recorded_mode(state.mode):
                return False
            numbers.append(state.mode)
    texts = [edit.conversation, edit.tool, *edit.notes.values()]
    if not (_INT.issuperset(map(type, numbers)) and _STR.issuperset(map(type, texts))):
        return False
    if min(numbers) < 0 or max(numbers) > MAX_INT or edit.document < 1 or max(map(len, texts)) > MAX_TEXT:
        return False
    checked_path(edit.path)
    _check_shape(edit)
    return True


def _forms(numbers: Sequence[int]) -> tuple[TextForm, TextForm]:
    if not numbers:
        return NO_FORMS
    try:
        before, after = map(TextForm, numbers)
    except ValueError:
        raise RecordInvalid("text forms are not two known ones") from None
    return before, after


def _marks(value: list[Value]) -> Marks:
    match value:
        case [int(decision), list(against), list(aside)] if is_number(decision) and decision:
            return Marks(decision=decision, against=tuple(map(_unit, against)), aside=tuple(map(_verdict, aside)))
        case _:
            raise RecordInvalid("markers are not a decision and lists of hunks")


def _unit(value: Value) -> Unit:
    match value:
        case [int(seq), int(hunk)] if is_number(seq) and is_number(hunk):
            return Unit(Seq(seq), hunk)
        case _:
            raise RecordInvalid("a hunk is not [edit, hunk]")


def _verdict(value: Value) -> tuple[Unit, Status]:
    # Not a match: patterns of classes take twice the time, and a decision may have a hundred thousand verdicts.
    if type(value) is list and len(value) == len(("seq", "hunk", "status")):
        seq, hunk, status = value
        if is_number(seq) and is_number(hunk) and type(status) is str and status in _STATUSES:
            return Unit(Seq(seq), hunk), _STATUSES[status]
    raise RecordInvalid("a verdict is not [edit, hunk, status]")


def _each_verdict(items: list[Value]) -> Iterator[tuple[Unit, Status]]:
    """Yield verdicts, and empty the list: a decision may have a hundred thousand, which are not kept twice."""
    items.reverse()
    while items:
        yield _verdict(items.pop())


def _check_shape(edit: Edit) -> None:
    states = edit.before, edit.after
    exists = (edit.before is not None, edit.after is not None)
    if exists != _EXISTS.get(edit.operation, (True, True)):
        raise RecordInvalid(f"a {edit.operation.value} with the wrong states")
    if (edit.operation is Operation.MOVE) is (edit.source is None):
        raise RecordInvalid("a source path belongs to a move, and to nothing else")
    if edit.hunks and not all(exists):
        raise RecordInvalid("a create or delete is one whole; it has no hunks")
    if any(form and (state is None or state.is_link) for form, state in zip(edit.forms, states, strict=True)):
        raise RecordInvalid("only a file has a text form")
    if edit.folders > edit.path.count(b"/"):
        raise RecordInvalid("an edit made more folders than its path has")
    if edit.document > edit.seq:
        raise RecordInvalid("a document is named by an edit that comes later")
    if edit.amends is not None and (edit.amends >= edit.seq or edit.origin is Origin.AGENT):
        raise RecordInvalid("an amendment comes after what it amends, and a person makes it")
    if edit.marks is not None and (edit.origin is not Origin.PERSON or edit.operation is not Operation.EDIT):
        raise RecordInvalid("markers are an edit, on a person's word")
    end_old = end_new = 0
    for old_start, old_count, new_start, new_count in edit.hunks:
        if old_start < end_old or new_start < end_new or not (old_count or new_count):
            raise RecordInvalid("hunks are empty, or not in ascending order")
        end_old, end_new = old_start + old_count, new_start + new_count


def _decision_fields(decision: Decision) -> dict[str, Value]:
    fields: dict[str, Value] = {
        "kind": "decision",
        "number": decision.number,
        "time": decision.time,
        "action": decision.action.value,
        "verdicts": [[unit.seq, unit.hunk, _SPELLINGS[status]] for unit, status in decision.verdicts],
        "who": decision.who,
    }
    if decision.written:
        fields["written"] = [_written_value(written) for written in decision.written]
    if decision.reason:
        fields["reason"] = decision.reason
    if decision.takes_back:
        fields["takes_back"] = decision.takes_back
    if decision.commit:
        fields["commit"] = decision.commit
    if decision.conversation:
        fields["conversation"] = decision.conversation
    return fields | _decider_fields(decision)


def _decider_fields(record: Decision | Expiry | Mark | SettingChange) -> dict[str, Value]:
    """Return through what a record was made and inside whose shell, as far as that is known."""
    return {name: text for name, text in (("via", record.via), ("agent", record.agent)) if text}


def _decision(fields: Fields) -> Decision:
    decision = Decision(
        number=fields.number("number", least=1),
        time=fields.number("time"),
        action=fields.choice("action", Action),
        verdicts=tuple(_each_verdict(fields.items("verdicts"))),
        written=tuple(_written(item) for item in fields.items("written", optional=True)),
        who=fields.text("who"),
        reason=fields.text("reason", ""),
        takes_back=fields.number("takes_back") if fields.has("takes_back") else 0,
        commit=fields.text("commit", ""),
        conversation=fields.text("conversation", ""),
        via=fields.text("via", ""),
        agent=fields.text("agent", ""),
    )
    if len(decision.commit) > _MAX_COMMIT or not _HEX.issuperset(decision.commit):
        raise RecordInvalid("the name of a commit is not hexadecimal")
    return decision


def _written_value(written: WrittenFile) -> Value:
    value: dict[str, Value] = {"document": written.document}
    if written.path_before is not None:
        value["path_before"] = written.path_before
    if written.before is not None:
        value["before"] = state_value(written.before)
    if written.path_after is not None:
        value["path_after"] = written.path_after
    if written.after is not None:
        value["after"] = state_value(written.after)
    return value


def _written(value: Value) -> WrittenFile:
    if not isinstance(value, dict):
        raise RecordInvalid("what was written is not a map")
    fields = Fields(value)
    written = WrittenFile(
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


def _snapshot_fields(snapshot: Snapshot) -> dict[str, Value]:
    fields: dict[str, Value] = {
        "kind": "snapshot",
        "number": snapshot.number,
        "time": snapshot.time,
        "root": bytes(snapshot.root),
        "who": snapshot.who,
    }
    if snapshot.path is not None:
        fields["path"] = snapshot.path
    if snapshot.title:
        fields["title"] = snapshot.title
    return fields


def _snapshot(fields: Fields) -> Snapshot:
    return Snapshot(
        number=fields.number("number", least=1),
        time=fields.number("time"),
        root=BlobId(fields.hash("root")),
        path=fields.path("path") if fields.has("path") else None,
        who=fields.text("who"),
        title=fields.text("title", ""),
    )


def _pin_fields(pin: Pin) -> dict[str, Value]:
    fields: dict[str, Value] = {"kind": "pin", "number": pin.number, "time": pin.time, "who": pin.who}
    if pin.edits:
        fields["edits"] = [int(seq) for seq in pin.edits]
    if pin.blobs:
        fields["blobs"] = [bytes(blob) for blob in pin.blobs]
    if pin.title:
        fields["title"] = pin.title
    return fields


def _pin(fields: Fields) -> Pin:
    pin = Pin(
        number=fields.number("number", least=1),
        time=fields.number("time"),
        edits=tuple(Seq(n) for n in fields.ascending("edits")),
        blobs=tuple(BlobId(name) for name in fields.hashes("blobs")),
        who=fields.text("who"),
        title=fields.text("title", ""),
    )
    if not (pin.edits or pin.blobs):
        raise RecordInvalid("a pin that holds nothing")
    return pin


def _expiry_fields(expiry: Expiry) -> dict[str, Value]:
    fields: dict[str, Value] = {
        "kind": "expiry",
        "time": expiry.time,
        "reason": expiry.reason,
        "who": expiry.who,
    }
    if expiry.edits:
        fields["edits"] = [n for numbers in expiry.edits for n in numbers]
    if expiry.decisions:
        fields["decisions"] = [n for numbers in expiry.decisions for n in numbers]
    if expiry.snapshots:
        fields["snapshots"] = list(expiry.snapshots)
    if expiry.pins:
        fields["pins"] = list(expiry.pins)
    return fields | _decider_fields(expiry)


def _expiry(fields: Fields) -> Expiry:
    expiry = Expiry(
        time=fields.number("time"),
        edits=fields.ranges("edits"),
        decisions=fields.ranges("decisions"),
        snapshots=fields.ascending("snapshots"),
        pins=fields.ascending("pins"),
        reason=fields.text("reason"),
        who=fields.text("who"),
        via=fields.text("via", ""),
        agent=fields.text("agent", ""),
    )
    if not (expiry.edits or expiry.decisions or expiry.snapshots or expiry.pins):
        raise RecordInvalid("an expiry of nothing")
    return expiry


def _turn_fields(turn: Turn) -> dict[str, Value]:
    fields: dict[str, Value] = {
        "kind": "turn",
        "number": turn.number,
        "time": turn.time,
        "session": turn.session,
        "conversation": turn.conversation,
    }
    texts = {"client": turn.client, "model": turn.model, "prompt": turn.prompt}
    return fields | {name: text for name, text in texts.items() if text}


def _turn(fields: Fields) -> Turn:
    return Turn(
        number=fields.number("number", least=1),
        time=fields.number("time"),
        session=fields.text("session"),
        conversation=fields.text("conversation"),
        client=fields.text("client", ""),
        model=fields.text("model", ""),
        prompt=fields.text("prompt", ""),
    )


def _comment_fields(comment: Comment) -> dict[str, Value]:
    fields: dict[str, Value] = {
        "kind": "comment",
        "number": comment.number,
        "time": comment.time,
        "who": comment.who,
        "document": comment.document,
        "path": comment.path,
        "first": list(comment.first),
        "last": list(comment.last),
        "lines": list(comment.lines),
        "text": comment.text,
    }
    if comment.units:
        fields["units"] = [[unit.seq, unit.hunk] for unit in comment.units]
    if comment.answers:
        fields["answers"] = comment.answers
    if comment.conversation:
        fields["conversation"] = comment.conversation
    return fields


def _comment(fields: Fields) -> Comment:
    lines = fields.numbers("lines")
    if len(lines) != len(("first", "last")) or lines[0] > lines[1]:
        raise RecordInvalid("lines are not a first and a last one")
    comment = Comment(
        number=fields.number("number", least=1),
        time=fields.number("time"),
        who=fields.text("who"),
        document=DocumentId(fields.number("document", least=1)),
        path=fields.path("path"),
        first=_anchor(fields.numbers("first")),
        last=_anchor(fields.numbers("last")),
        lines=(lines[0], lines[1]),
        units=tuple(map(_unit, fields.items("units", optional=True))),
        text=fields.text("text"),
        answers=fields.number("answers") if fields.has("answers") else 0,
        conversation=fields.text("conversation", ""),
    )
    if any(a >= b for a, b in pairwise(comment.units)):
        raise RecordInvalid("what a comment is about is not in ascending order")
    if comment.answers >= comment.number:
        raise RecordInvalid("an answer comes after the comment that it answers")
    return comment


def _anchor(numbers: tuple[int, ...]) -> Anchor:
    if len(numbers) != len(Anchor._fields):
        raise RecordInvalid("a line is not [edit, hunk, offset]")
    return Anchor(*numbers)


def _mark_fields(mark: Mark) -> dict[str, Value]:
    fields: dict[str, Value] = {
        "kind": "mark",
        "time": mark.time,
        "who": mark.who,
        "comments": list(mark.comments),
        "state": mark.state.value,
    }
    if mark.conversation:
        fields["conversation"] = mark.conversation
    return fields | _decider_fields(mark)


def _mark(fields: Fields) -> Mark:
    mark = Mark(
        time=fields.number("time"),
        who=fields.text("who"),
        comments=fields.ascending("comments"),
        state=fields.choice("state", CommentState),
        conversation=fields.text("conversation", ""),
        via=fields.text("via", ""),
        agent=fields.text("agent", ""),
    )
    if not mark.comments:
        raise RecordInvalid("a mark of no comment")
    return mark


def _setting_fields(change: SettingChange) -> dict[str, Value]:
    fields: dict[str, Value] = {"kind": "setting", "time": change.time, "who": change.who, "name": change.name}
    texts = {"before": change.before, "after": change.after}
    return fields | {name: text for name, text in texts.items() if text} | _decider_fields(change)


def _setting(fields: Fields) -> SettingChange:
    return SettingChange(
        time=fields.number("time"),
        who=fields.text("who"),
        name=fields.text("name"),
        before=fields.text("before", ""),
        after=fields.text("after", ""),
        via=fields.text("via", ""),
        agent=fields.text("agent", ""),
    )
