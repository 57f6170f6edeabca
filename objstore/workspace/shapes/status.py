"""JSON shapes of the status of a workspace and of its parts. docs/json.md describes them."""

from typing import TYPE_CHECKING

from objstore.disk.fs.store_version import store_folder_bytes
from objstore.disk.witnesses.failure_marks import hook_failures
from objstore.model.basic_types import UNKNOWN_AGENT
from objstore.workspace.shapes.values import Json, hex_shape, path_shape, text_shape, time_shape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.disk.witnesses.history_witness import LostHistory
    from objstore.model.results import ExternalChange
    from objstore.model.status_report import Caution, Collision, RunningCall, StatusReport, UnresolvedMarkers

__all__ = ["collision_shape", "external_shape", "markers_shape", "running_shape", "status_shape"]


def status_shape(
    report: "StatusReport",
    seen: tuple[int, int] | None,
    lost: "Iterable[LostHistory]" = (),
    remotes: "Iterable[tuple[str, str, int]]" = (),
) -> dict[str, Json]:
    """Return the status of the workspace. `seen`: how many changes are pending, and how many were not seen.

    `remotes`: of each its name, why its last push in the background failed (""), and how many edits it lacks; -1: only
    other records.
    """
    return {
        "workspace": text_shape(report.root),
        "edits": report.edits,
        "pending": report.pending,
        "accepted": report.accepted,
        "rejected": report.rejected,
        "away": report.away,
        "conversations": report.conversations,
        "sessions": report.sessions,
        "changes": None if seen is None else seen[0],
        "unseen": None if seen is None else seen[1],
        "pending_groups": [
            {
                "conversation_id": text_shape(group.conversation),
                "is_unattributed": group.owner == UNKNOWN_AGENT,
                "turn": group.turn or None,
                "file_path": path_shape(report.root, group.path),
                "edits": list(group.seqs),
                "lines_added": group.added,
                "lines_removed": group.removed,
            }
            for group in report.groups
        ],
        "external_changes": [external_shape(report.root, change) for change in report.external],
        "compared_files": report.compared,
        "markers": [markers_shape(report.root, markers) for markers in report.markers],
        "comments": {word: report.comments.get(word, 0) for word in ("open", "sent", "answered")},
        "collisions": [collision_shape(report.root, collision) for collision in report.collisions],
        "running_calls": [running_shape(report.root, call) for call in report.running],
        "commits": [
            {"commit": each.commit, "conversation_id": text_shape(each.conversation), "edits": list(each.edits)}
            for each in report.commits
        ],
        "committed": None
        if report.committed is None
        else {"commit": report.committed.commit, "edits": list(report.committed.edits)},
        "policies": [*report.policies],
        "cautions": [_caution(report.root, each) for each in report.cautions],
        "lost_histories": [
            {"edits": each.edits, "missing": each.missing, "until": time_shape(each.until)} for each in lost
        ],
        "remotes": [
            {"name": name, "is_behind": behind != 0, "edits_behind": max(behind, 0), "failure": failure or None}
            for name, failure, behind in remotes
        ],
        "hook_failures": len(hook_failures(report.root)),
        "unreadable": [text_shape(path) for path in report.unreadable],
        "secrets": {
            "not_recorded": [text_shape(path) for path in report.secrets.left_out],
            "stored": [text_shape(path) for path in report.secrets.stored],
        },
        "store": {
            "bytes": report.store_bytes,
            "folder_bytes": store_folder_bytes(report.root),
            "blobs": report.blobs,
            "max_size": report.reclaimable.max_size,
            "older_than": report.reclaimable.older_than,
            "free_blobs": report.reclaimable.free_blobs,
            "free_bytes": report.reclaimable.free_bytes,
            "old_edits": report.reclaimable.old_edits,
        },
    }


def running_shape(root: str, call: "RunningCall") -> dict[str, Json]:
    """Return a call of an agent's own program whose end was not reported."""
    return {
        "session": call.session or None,
        "conversation_id": text_shape(call.conversation),
        "client": text_shape(call.client),
        "tool": text_shape(call.tool),
        "file_paths": None if call.paths is None else [path_shape(root, path) for path in call.paths],
        "began": time_shape(call.began),
        "state": call.state,
    }


def collision_shape(root: str, collision: "Collision") -> dict[str, Json]:
    """Return a file in which several sessions have pending edits."""
    return {
        "file_path": path_shape(root, collision.path),
        "sessions": [{"session": number, "edits": list(seqs)} for number, seqs in collision.edits.items()],
    }


def markers_shape(root: str, markers: "UnresolvedMarkers") -> dict[str, Json]:
    """Return the conflict markers that one decision wrote into one file."""
    return {
        "file_path": path_shape(root, markers.path),
        "edit": markers.edit,
        "decision": markers.decision,
        "lines": [line - 1 for line in markers.lines],
        "decided": [str(unit) for unit in markers.decided],
        "aside": [str(unit) for unit in markers.aside],
    }


def external_shape(root: str, change: "ExternalChange") -> dict[str, Json]:
    """Return one file that differs from the journal."""
    return {
        "file_path": path_shape(root, change.path),
        "change": change.word,
        "taken_by": change.taken_by or None,
        "blob_recorded": hex_shape(change.recorded),
        "blob_found": hex_shape(change.found),
        "mode_recorded": change.recorded_mode if change.recorded is not None else None,
        "mode_found": change.found_mode if change.found is not None else None,
    }


def _caution(root: str, caution: "Caution") -> dict[str, Json]:
    """Return a decision inside an agent's shell, what narrows the record, or what doesn't arrive."""
    from objstore.workspace.shapes.records import record_shape  # only a status with cautions needs it

    record = None if caution.record is None else record_shape(caution.record)
    other = "left out" if caution.silence is None else "silence"
    return {
        "kind": other if record is None else record["kind"],
        "timestamp": time_shape(caution.time),
        "file_path": path_shape(root, caution.path) if caution.path else None,
        "silence": None if caution.silence is None else caution.silence._asdict(),
        "record": record,
    }
