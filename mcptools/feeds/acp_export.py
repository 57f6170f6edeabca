"""Export recorded calls as Agent Client Protocol notifications, one a line.

The store records what a call did, not its arguments: so the raw input has only the paths, and the result has the diff,
the numbers of the edits and the reviewer's decisions.
"""

import json
import os
from collections.abc import Iterator
from itertools import groupby

from mcptools.catalog.acp import FileChange, Json, Shape, ToolCall, ToolResult, call_began, call_ended
from mcptools.tools.context import absolute
from mcptools.tools.history import edit_diff
from objstore import BlobId, BlobMissing, EditExpired, EditView, Operation, Origin, Workspace, is_binary

__all__ = ["exported", "exported_lines"]


def exported_lines(workspace: Workspace, shape: Shape) -> Iterator[str]:
    """Yield a workspace's calls as JSON, each notification on a line of its own."""
    for notification in exported(workspace, shape):
        yield json.dumps(notification)


def exported(workspace: Workspace, shape: Shape) -> Iterator[Json]:
    """Yield two notifications for every recorded call of an agent, oldest first: that it began, and how it ended."""
    recorded = [view for view in workspace.history.edits() if view.edit.origin is Origin.AGENT]
    for (conversation, number), views in groupby(recorded, key=lambda view: (view.edit.conversation, view.edit.call)):
        edits = list(views)
        call = ToolCall(
            session=conversation,
            id=f"{conversation}/{number}",
            tool=edits[0].edit.tool,
            arguments=_arguments(workspace, edits),
        )
        yield call_began(call, shape)
        yield call_ended(call, _result(workspace, edits), shape)


def _arguments(workspace: Workspace, edits: list[EditView]) -> dict[str, object]:
    """Return the paths of a call, under the argument names that tools give them."""
    # A patch creates no file: a file that `apply_patches` created is a backup, which was not an argument.
    if edits[0].edit.tool == "apply_patches":
        edits = [view for view in edits if view.edit.operation is not Operation.CREATE] or edits
    places = [absolute(workspace, os.fsdecode(view.edit.path)) for view in edits]
    if len(edits) > 1:
        return {"patches": [{"file_path": place} for place in places]}
    source = edits[0].edit.source
    if source is None:
        return {"path": places[0]}
    return {"source": absolute(workspace, os.fsdecode(source)), "destination": places[0]}


def _result(workspace: Workspace, edits: list[EditView]) -> ToolResult:
    try:
        diffs = [edit_diff(workspace, view, is_joined=True).decode("utf-8", "backslashreplace") for view in edits]
        changes = [change for view in edits for change in _changes(workspace, view)]
    except (BlobMissing, EditExpired):
        diffs, changes = [], []  # the bytes are no longer kept
    structured: dict[str, object] = {
        "success": True,
        "edits": [view.seq for view in edits],
        "statuses": [view.status.value for view in edits],
        "diff": "".join(diffs),
    }
    return ToolResult(failed=False, structured=structured, texts=["".join(diffs)] if diffs else [], changes=changes)


def _changes(workspace: Workspace, view: EditView) -> Iterator[FileChange]:
    """Yield the change that an edit made to its file, if the file is text."""

    def text(blob: BlobId) -> str | None:
        content = workspace.history.text(blob)
        return None if is_binary(content) else content.decode("utf-8", "backslashreplace")

    edit = view.edit
    old = None if edit.before is None else text(edit.before.blob)
    new = None if edit.after is None else text(edit.after.blob)
    if (old is None) is (edit.before is None) and (new is None) is (edit.after is None):
        yield FileChange(path=absolute(workspace, os.fsdecode(edit.path)), old=old, new=new)
