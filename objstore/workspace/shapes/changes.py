"""JSON shapes of net changes. docs/json.md describes them.

Line numbers are zero-based; paths are absolute.
"""

from typing import TYPE_CHECKING

from objstore.workspace.shapes.edits import comment_shape
from objstore.workspace.shapes.values import Json, path_shape

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from objstore.model.net_file import NetChange, NetFile
    from objstore.model.views import CommentView

__all__ = ["change_shape", "net_file_facts", "net_file_shape"]


def net_file_shape(
    root: str, file: "NetFile", seen: "Collection[bytes]", comments: "Mapping[int, Sequence[CommentView]]"
) -> dict[str, Json]:
    """Return what pending edits change in one file, all together.

    `seen`: keys of changes that were seen. `comments`: those on each change, by its position.
    """
    return {
        "file_path": path_shape(root, file.path),
        "path_before": None if file.before is None else path_shape(root, file.path_before),
        "operation": file.operation.value,
        **net_file_facts(file),
        "binary": file.is_binary,
        "lines_added": file.added,
        "lines_removed": file.removed,
        "unrecorded": file.is_unrecorded,
        "changes": [
            {
                **change_shape(root, change, seen, comments.get(at, ())),
                "removed": change.removed.decode(errors="replace"),
                "inserted": change.inserted.decode(errors="replace"),
            }
            for at, change in enumerate(file.changes)
        ],
    }


def net_file_facts(file: "NetFile") -> dict[str, Json]:
    """Return the modes and sizes of a file in its accepted state and now, and the hunks that are in no change."""
    return {
        "mode_before": None if file.before is None else file.mode_before,
        "mode_after": None if file.after is None else file.mode,
        "size_before": None if file.before is None else file.size_before,
        "size_after": None if file.after is None else file.size,
        "cancelled": list(map(str, file.cancelled)),
        "taken_out": list(map(str, file.taken_out)),
        "kept_on": list(map(str, file.kept_on)),
    }


def change_shape(
    root: str, change: "NetChange", seen: "Collection[bytes]", comments: "Sequence[CommentView]"
) -> dict[str, Json]:
    """Return one change without its lines. `comments`: those on it."""
    return {
        "kind": change.kind.value,
        "old_start": max(0, change.line_before - 1),
        "old_count": change.removed_lines,
        "new_start": max(0, change.line_after - 1),
        "new_count": change.inserted_lines,
        "hunks": list(map(str, change.units)),
        "turns": list(change.turns),
        "shares_with": list(change.shares_with),
        "seen": change.key in seen,
        "comments": [comment_shape(root, view) for view in comments],
    }
