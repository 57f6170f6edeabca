"""JSON shapes of net changes. docs/json.md describes them.

Line numbers are zero-based; paths are absolute.
"""

from typing import TYPE_CHECKING

from cli.app.invocation import Invocation
from cli.json_shapes.edits import comment_shape
from cli.json_shapes.values import Json, path_shape, text_of
from cli.render.comments import comments_by_change
from cli.render.net_diff import net_diff
from cli.screen.terminal import EXACT

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from objstore import NetChange, NetFile, Workspace

__all__ = ["net_file_shape"]


def net_file_shape(workspace: "Workspace", file: "NetFile", seen: "Collection[bytes]") -> dict[str, Json]:
    """Return what pending edits change in one file, all together. `seen`: keys of changes that were seen."""
    comments = {
        at: [comment_shape(workspace, view) for view in views]
        for at, views in comments_by_change(workspace, file).items()
    }
    return {
        "file_path": path_shape(workspace.root, file.path),
        "path_before": None if file.before is None else path_shape(workspace.root, file.path_before),
        "operation": file.operation.value,
        "mode_before": None if file.before is None else file.mode_before,
        "mode_after": None if file.after is None else file.mode,
        "binary": file.is_binary,
        "size_before": None if file.before is None else file.size_before,
        "size_after": None if file.after is None else file.size,
        "lines_added": file.added,
        "lines_removed": file.removed,
        "unrecorded": file.is_unrecorded,
        "changes": [_change_shape(change, comments.get(at, []), seen) for at, change in enumerate(file.changes)],
        "cancelled": list(map(str, file.cancelled)),
        "taken_out": list(map(str, file.taken_out)),
        "kept_on": list(map(str, file.kept_on)),
        "diff": text_of(net_diff([file], EXACT, Invocation.current().program, seen=seen)),
    }


def _change_shape(change: "NetChange", comments: "Sequence[Json]", seen: "Collection[bytes]") -> dict[str, Json]:
    return {
        "kind": change.kind.value,
        "old_start": max(0, change.line_before - 1),
        "old_count": change.removed_lines,
        "new_start": max(0, change.line_after - 1),
        "new_count": change.inserted_lines,
        "removed": change.removed.decode(errors="replace"),
        "inserted": change.inserted.decode(errors="replace"),
        "hunks": list(map(str, change.units)),
        "turns": list(change.turns),
        "shares_with": list(change.shares_with),
        "seen": change.key in seen,
        "comments": comments,
    }
