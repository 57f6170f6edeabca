"""JSON shapes of snapshots and of what a scan records. docs/snapshots.md describes them.

Ids and hashes are hex; paths are relative to the workspace.
"""

from typing import TYPE_CHECKING

from objstore import Json, edit_shape, fields_shape, text_shape, time_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from objstore import (
        PathState,
        Recorded,
        RestoreResult,
        SkippedPath,
        SnapshotChange,
        SnapshotResult,
        SnapshotView,
        Workspace,
    )

__all__ = ["changes_shape", "recorded_shape", "restored_shape", "shown_shape", "taken_shape", "view_shape"]


def view_shape(view: "SnapshotView") -> dict[str, Json]:
    """Return one snapshot."""
    return {
        "number": view.number,
        "id": view.id.hex(),
        "timestamp": time_shape(view.time),
        "path": text_shape(view.path) or None,
        "root": view.root.hex(),
        "who": text_shape(view.who) or None,
        "title": text_shape(view.title),
    }


def taken_shape(taken: "SnapshotResult") -> dict[str, Json]:
    """Return a snapshot that was just created."""
    return view_shape(taken.view) | {
        "files": taken.files,
        "same_as_before": taken.is_same,
        "not_covered": list(map(fields_shape, taken.skipped)),
    }


def shown_shape(view: "SnapshotView", found: "Iterable[tuple[str, PathState]]") -> dict[str, Json]:
    """Return a snapshot with its whole content."""
    return view_shape(view) | {
        "entries": [{"path": text_shape(path), **_state(state)} for path, state in found],
    }


def changes_shape(found: "Iterable[SnapshotChange]", passed: "Sequence[SkippedPath]") -> dict[str, Json]:
    """Return the differences."""
    return {"changes": [_change(change) for change in found], "not_covered": list(map(fields_shape, passed))}


def restored_shape(workspace: "Workspace", done: "RestoreResult") -> dict[str, Json]:
    """Return what a restore did, or would do."""
    outcome = done.outcome
    return {
        "changes": [_change(change) for change in done.changes],
        "left": [_change(change) for change in done.left],
        "given_to": [] if done.outcome is None else list(done.outcome.given_to),
        "not_covered": list(map(fields_shape, done.skipped)),
        "conversation_id": None if outcome is None else outcome.conversation,
        "edits": [] if outcome is None else [edit_shape(workspace, view) for view in outcome.edits],
        "recorded": [] if outcome is None else [edit_shape(workspace, view) for view in outcome.external],
    }


def recorded_shape(workspace: "Workspace", found: "Recorded") -> dict[str, Json]:
    """Return what a scan found and recorded."""
    return {
        "conversation_id": found.conversation or None,
        "edits": [edit_shape(workspace, view) for view in found.edits],
        "first_look": found.baseline is not None,
        "files": found.files,
        "not_covered": list(map(fields_shape, found.skipped)),
    }


def _change(change: "SnapshotChange") -> dict[str, Json]:
    return {
        "path": text_shape(change.path),
        "before": None if change.before is None else _state(change.before),
        "after": None if change.after is None else _state(change.after),
    }


def _state(state: "PathState") -> dict[str, Json]:
    return {
        "kind": state.kind,
        "mode": state.mode if state.kind == "file" else None,
        "blob": None if state.blob is None else state.blob.hex(),
    }
