"""JSON shapes of what is in the store and what is damaged. docs/json.md describes them.

Ids and hashes are hex; paths are relative to the workspace, because a store may exist without one.
"""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, assert_never

from cli.app.error_hints import fault_meaning, note_text
from cli.json_shapes.edits import verdict_shape
from cli.json_shapes.values import Json, text_shape
from objstore import (
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
    replace,
)

if TYPE_CHECKING:
    from objstore import (
        BlamedLines,
        CheckReport,
        FileState,
        Record,
        RecordView,
        Salvage,
        ScannedRecord,
        SegmentView,
        Seq,
        StoreStats,
        Verdicts,
    )

__all__ = [
    "blame_shape",
    "check_shape",
    "record_shape",
    "record_view_shape",
    "salvage_shape",
    "segment_shape",
    "stats_shape",
]


def check_shape(report: "CheckReport", *, repaired: bool) -> dict[str, Json]:
    """Return the result of a check."""
    return {
        "workspace": text_shape(report.root),
        "sound": not report.faults,
        "repaired": repaired,
        "segments": report.segments,
        "blobs": report.blobs,
        "records": report.records,
        "documents": report.documents,
        "faults": [
            {
                "part": fault.part.value,
                "what": text_shape(fault.what),
                "meaning": text_shape(fault_meaning(fault)),
                "paths": [text_shape(path) for path in fault.paths],
                "edits": list(fault.edits),
                "repairable": fault.repairable,
            }
            for fault in report.faults
        ],
        "leftovers": report.leftovers,
        "notes": [text_shape(note_text(note)) for note in report.notes],
    }


def salvage_shape(found: "Salvage") -> dict[str, Json]:
    """Return what was saved of a store and what is lost; records after the break with all their fields."""
    return {
        "store": found.store.hex(),
        "whole": found.is_whole,
        "segments": [text_shape(name) for name in found.segments],
        "missing_segments": list(found.missing_segments),
        "cut_off": found.is_cut_off,
        "damage": [
            {"segment": text_shape(damage.segment), "offset": damage.offset, "end": damage.end, "reason": damage.reason}
            for damage in found.damage
        ],
        "blobs": [name.hex() for name in found.blobs],
        "lost_blobs": [
            {
                "blob": blob.id.hex(),
                "reason": blob.reason,
                "edits": list(blob.edits),
                "decisions": list(blob.decisions),
                "snapshots": list(blob.snapshots),
            }
            for blob in found.lost_blobs
        ],
        "journal": len(found.journal),
        "beyond": [_found_shape(record) for record in found.unchained],
        "lost_edits": list(found.lost_edits),
        "lost_decisions": list(found.lost_decisions),
        "breaks": [
            {
                "path": _bytes(broken.path),
                "document": broken.document,
                "after": broken.after,
                "before": broken.before,
            }
            for broken in found.breaks
        ],
        "recovered": [_recovered_shape(*file) for file in found.recovered],
        "unwritten": [_recovered_shape(*file) for file in found.unwritten],
    }


def _recovered_shape(name: str, state: "FileState") -> dict[str, Json]:
    return {"file": text_shape(name), "blob": state.blob.hex(), "mode": state.mode}


def _found_shape(found: "ScannedRecord") -> dict[str, Json]:
    return {
        "id": found.id.hex(),
        "previous": None if found.previous is None else found.previous.hex(),
        **record_shape(found.record),
    }


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


def record_view_shape(view: "RecordView") -> dict[str, Json]:
    """Return a record, its names, and its place in the log."""
    return {
        "id": view.id.hex(),
        "previous": None if view.previous is None else view.previous.hex(),
        "segment": view.segment,
        "offset": view.offset,
        **record_shape(view.record),
    }


def segment_shape(view: "SegmentView") -> dict[str, Json]:
    """Return a segment and what it contains."""
    return {
        "segment": view.number,
        "bytes": view.size,
        "groups": view.groups,
        "blobs": view.blobs,
        "records": view.records,
    }


def stats_shape(found: "StoreStats") -> dict[str, Json]:
    """Return the store in numbers; null for what is unknown because of damage."""
    is_whole = found.damage is None
    return {
        "edits": {status.value: number for status, number in found.edits.items()},
        "conversations": found.conversations,
        "decisions": found.decisions,
        "voids": found.voids,
        "blobs": {
            "count": found.blobs if is_whole else None,
            "bytes": found.blob_bytes if is_whole else None,
            "stored_bytes": found.stored_blob_bytes if is_whole else None,
            "depths": {str(depth): number for depth, number in found.depths.items()} if is_whole else None,
        },
        "record_bytes": found.record_bytes,
        "segments": {"count": found.segments, "bytes": found.segment_bytes},
        "tools": {
            text_shape(tool): {"edits": count.edits, "lines_added": count.added, "lines_removed": count.removed}
            for tool, count in found.tools.items()
        },
        "files": {
            text_shape(path): {"edits": count.edits, "lines_added": count.added, "lines_removed": count.removed}
            for path, count in found.files.items()
        },
        "minutes": [
            {
                "time": minute * 60_000_000,
                "edits": activity.edits,
                "bytes": activity.stored_bytes if is_whole else None,
            }
            for minute, activity in found.minutes.items()
        ],
    }


def blame_shape(part: "BlamedLines", commits: "Mapping[Seq, str]", verdicts: "Verdicts") -> dict[str, Json]:
    """Return lines that the same hunk inserted into a file. `commits`: which git commits accepted edits."""
    edit = None if part.view is None else part.view.edit
    made = () if part.view is None else verdicts.of(part.view)
    decided = next((verdict for verdict in made if part.unit in verdict.units), None)
    return {
        "start": part.start,
        "count": part.count,
        "hunk": None if part.unit is None else str(part.unit),
        "edit_id": None if part.view is None else part.view.id.hex(),
        "conversation_id": None if edit is None else text_shape(edit.conversation),
        "turn": None if edit is None else edit.turn or None,
        "tool_name": None if edit is None else text_shape(edit.tool),
        "origin": None if edit is None else edit.origin.value,
        "time": None if edit is None else edit.time,
        "commit": None if edit is None else commits.get(edit.seq),
        "status": None if part.view is None or part.unit is None else part.view.units[part.unit.hunk].value,
        "decided": None
        if decided is None
        else verdict_shape(replace(decided, units=() if part.unit is None else (part.unit,))),
    }


def _numbers(numbers: Iterable[int]) -> list[int]:
    return [int(number) for number in numbers]


def _state(state: "FileState | None") -> Json:
    return None if state is None else {"blob": state.blob.hex(), "mode": state.mode}


def _bytes(path: bytes) -> str:
    return text_shape(os.fsdecode(path))
