"""JSON shapes of files: differences between states, changes outside, conflict markers. docs/json.md describes them.

Line numbers are zero-based; hashes are hex; paths are absolute.
"""

from typing import TYPE_CHECKING

from cli.json_shapes.values import Json, hex_shape, path_shape, text_of
from cli.render.edits import states_diff
from cli.render.external_prompt import external_diff
from cli.render.status import shown_external
from cli.screen.terminal import EXACT

if TYPE_CHECKING:
    from objstore import ExternalChange, State, UnresolvedMarkers, Workspace

__all__ = ["diff_shape", "external_diff_shape", "external_shape", "markers_shape"]


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
        "change": shown_external(change),
        "blob_recorded": hex_shape(change.recorded),
        "blob_found": hex_shape(change.found),
        "mode_recorded": change.recorded_mode if change.recorded is not None else None,
        "mode_found": change.found_mode if change.found is not None else None,
    }


def external_diff_shape(workspace: "Workspace", change: "ExternalChange") -> dict[str, Json]:
    """Return one file that differs from the journal, with the difference."""
    shape = external_shape(workspace.root, change)
    shape["diff"] = text_of(external_diff(workspace, change, EXACT))
    return shape


def diff_shape(workspace: "Workspace", before: "State", after: "State") -> dict[str, Json]:
    """Return the difference between two states."""
    return {
        "path_before": path_shape(workspace.root, before.path) if before.path else None,
        "path_after": path_shape(workspace.root, after.path) if after.path else None,
        "blob_before": hex_shape(before.blob),
        "blob_after": hex_shape(after.blob),
        "mode_before": None if before.blob is None else before.mode,
        "mode_after": None if after.blob is None else after.mode,
        "diff": text_of(states_diff(workspace, before, after, EXACT)),
    }
