"""JSON shapes of the records of the journal, with the fields that `FORMAT.md` gives to each kind."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, assert_never

from objstore.model.records import (
    Comment,
    Decision,
    Edit,
    Expiry,
    Mark,
    Pin,
    SettingChange,
    Snapshot,
    Turn,
    Void,
)
from objstore.workspace.shapes.values import Json, text_shape

if TYPE_CHECKING:
    from objstore.model.basic_types import FileState
    from objstore.model.records import Record

__all__ = ["record_shape"]


def record_shape(record: "Record") -> dict[str, Json]:
    """Return all fields of a record, with their names in the format."""
    shape: dict[str, Json]
    match record:
        case Edit():
            shape = {
                "kind": "edit",
                "seq": record.seq,
                "document": record.document,
                "time": record.time,
                "conversation": text_shape(record.conversation),
                "call": record.call,
                "ordinal": record.ordinal,
                "operation": record.operation.value,
                "path": _bytes(record.path),
                "source": None if record.source is None else _bytes(record.source),
                "before": _state(record.before),
                "after": _state(record.after),
                "hunks": [list(hunk) for hunk in record.hunks],
                "folders": record.folders,
                "newline": record.newline,
                "forms": [int(form) for form in record.forms],
                "lines": [record.added, record.removed],
                "origin": record.origin.value,
                "status": record.status.value,
                "amends": record.amends,
                "marks": None
                if record.marks is None
                else [
                    record.marks.decision,
                    [str(unit) for unit in record.marks.against],
                    {str(unit): status.value for unit, status in record.marks.aside},
                ],
                "turn": record.turn,
                "tool": text_shape(record.tool),
                "notes": {text_shape(key): text_shape(note) for key, note in record.notes.items()},
            }
        case Decision():
            shape = {
                "kind": "decision",
                "number": record.number,
                "time": record.time,
                "action": record.action.value,
                "verdicts": [[unit.seq, unit.hunk, status.value] for unit, status in record.verdicts],
                "written": [
                    {
                        "document": written.document,
                        "path_before": None if written.path_before is None else _bytes(written.path_before),
                        "before": _state(written.before),
                        "path_after": None if written.path_after is None else _bytes(written.path_after),
                        "after": _state(written.after),
                    }
                    for written in record.written
                ],
                "who": text_shape(record.who),
                "reason": text_shape(record.reason),
                "takes_back": record.takes_back,
                "commit": record.commit,
                "conversation": text_shape(record.conversation),
                "via": text_shape(record.via),
                "agent": text_shape(record.agent),
            }
        case Snapshot():
            shape = {
                "kind": "snapshot",
                "number": record.number,
                "time": record.time,
                "root": record.root.hex(),
                "path": None if record.path is None else _bytes(record.path),
                "who": text_shape(record.who),
                "title": text_shape(record.title),
            }
        case Pin():
            shape = {
                "kind": "pin",
                "number": record.number,
                "time": record.time,
                "edits": list(_numbers(record.edits)),
                "blobs": [blob.hex() for blob in record.blobs],
                "who": text_shape(record.who),
                "title": text_shape(record.title),
            }
        case Expiry():
            shape = {
                "kind": "expiry",
                "time": record.time,
                "edits": [list(_numbers(span)) for span in record.edits],
                "decisions": [list(_numbers(span)) for span in record.decisions],
                "snapshots": list(_numbers(record.snapshots)),
                "pins": list(_numbers(record.pins)),
                "reason": text_shape(record.reason),
                "who": text_shape(record.who),
                "via": text_shape(record.via),
                "agent": text_shape(record.agent),
            }
        case Turn():
            shape = {
                "kind": "turn",
                "number": record.number,
                "time": record.time,
                "session": text_shape(record.session),
                "conversation": text_shape(record.conversation),
                "client": text_shape(record.client),
                "model": text_shape(record.model),
                "prompt": text_shape(record.prompt),
            }
        case Comment():
            shape = {
                "kind": "comment",
                "number": record.number,
                "time": record.time,
                "who": text_shape(record.who),
                "document": record.document,
                "path": _bytes(record.path),
                "first": list(_numbers(record.first)),
                "last": list(_numbers(record.last)),
                "lines": list(_numbers(record.lines)),
                "units": [list(_numbers(unit)) for unit in record.units],
                "text": text_shape(record.text),
                "answers": record.answers,
                "conversation": text_shape(record.conversation),
            }
        case Mark():
            shape = {
                "kind": "mark",
                "time": record.time,
                "who": text_shape(record.who),
                "comments": list(_numbers(record.comments)),
                "state": record.state.value,
                "conversation": text_shape(record.conversation),
                "via": text_shape(record.via),
                "agent": text_shape(record.agent),
            }
        case SettingChange():
            shape = {
                "kind": "setting",
                "time": record.time,
                "who": text_shape(record.who),
                "name": text_shape(record.name),
                "before": text_shape(record.before),
                "after": text_shape(record.after),
                "via": text_shape(record.via),
                "agent": text_shape(record.agent),
            }
        case Void():
            shape = {
                "kind": "void",
                "time": record.time,
                "edits": list(_numbers(record.edits)),
                "decision": record.decision,
                "reason": text_shape(record.reason),
            }
        case _:
            assert_never(record)
    return shape


def _numbers(numbers: Iterable[int]) -> list[int]:
    return [int(number) for number in numbers]


def _state(state: "FileState | None") -> Json:
    return None if state is None else {"blob": state.blob.hex(), "mode": state.mode}


def _bytes(path: bytes) -> str:
    return text_shape(os.fsdecode(path))
