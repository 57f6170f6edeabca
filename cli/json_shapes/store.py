"""JSON shapes of what is in the store and what is damaged. docs/json.md describes them.

Ids and hashes are hex; paths are relative to the workspace, because a store may exist without one.
"""

from typing import TYPE_CHECKING

from cli.app.error_hints import fault_meaning, note_text
from objstore import Json, fields_shape, record_shape, replace, text_shape, verdict_shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from objstore import (
        BlamedLines,
        CheckReport,
        FileState,
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
        "damage": list(map(fields_shape, found.damage)),
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
        "breaks": list(map(fields_shape, found.breaks)),
        "recovered": [_recovered_shape(*file) for file in found.recovered],
        "unwritten": [_recovered_shape(*file) for file in found.unwritten],
        "given_to": [] if found.owner is None else [found.owner],
    }


def _recovered_shape(name: str, state: "FileState") -> dict[str, Json]:
    return {"file": text_shape(name), "blob": state.blob.hex(), "mode": state.mode}


def _found_shape(found: "ScannedRecord") -> dict[str, Json]:
    return {
        "id": found.id.hex(),
        "previous": None if found.previous is None else found.previous.hex(),
        **record_shape(found.record),
    }


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
    """Return the store in numbers."""
    return {
        "edits": {status.value: number for status, number in found.edits.items()},
        "conversations": found.conversations,
        "decisions": found.decisions,
        "voids": found.voids,
        "blobs": {
            "count": found.blobs,
            "bytes": found.blob_bytes,
            "stored_bytes": found.stored_blob_bytes,
            "depths": {str(depth): number for depth, number in found.depths.items()},
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
                "bytes": activity.stored_bytes,
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
