"""Export recorded calls as Agent Client Protocol notifications, one a line.

The store records what a call did to files, not its arguments. Of `multi_edit_text_file` it records the places of the
strings, which are found again in the file's bytes before and after the call; of other tools the raw input has only the
paths. The result has the diff, the numbers of the edits and the reviewer's decisions. A call that changed nothing, such
as a failed one, is not recorded, and so not exported.
"""

import json
import os
from collections.abc import Iterator, Sequence
from itertools import groupby

from mcptools.catalog.acp import FileChange, Json, Shape, ToolCall, ToolResult, call_began, call_ended
from mcptools.edit.string_places import PLACES_NOTE, PlacedString, decode_places, given_strings
from mcptools.tools.context import absolute
from mcptools.tools.history import edit_diff
from objstore import (
    BlobId,
    BlobMissing,
    EditExpired,
    EditView,
    Operation,
    Origin,
    Workspace,
    is_binary,
    shown_lines,
)

__all__ = ["exported", "exported_lines", "file_changes"]


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


def file_changes(workspace: Workspace, edits: Sequence[EditView]) -> list[FileChange]:
    """Return the changes that edits made to text files; none if their bytes are no longer kept."""
    try:
        return [change for view in edits for change in _changes(workspace, view)]
    except (BlobMissing, EditExpired):
        return []


def _arguments(workspace: Workspace, edits: list[EditView]) -> dict[str, object]:
    """Return the arguments of a call as far as they are known, under the names that tools give them."""
    # A patch creates no file: a file that `apply_patches` created is a backup, which was not an argument.
    if edits[0].edit.tool == "apply_patches":
        edits = [view for view in edits if view.edit.operation is not Operation.CREATE] or edits
    places = [absolute(workspace, os.fsdecode(view.edit.path)) for view in edits]
    if len(edits) > 1:
        return {"patches": [{"file_path": place} for place in places]}
    source = edits[0].edit.source
    if source is None:
        given = _edits(workspace, edits[0])
        return {"path": places[0], **({"edits": given} if given else {})}
    return {"source": absolute(workspace, os.fsdecode(source)), "destination": places[0]}


def _edits(workspace: Workspace, view: EditView) -> list[dict[str, str]]:
    """Return the edits that a call was given, each without the strings that can't be found again; [] if none is known.

    No string is found after the bytes were deleted, or if the call was carried over to a newer version of the file.
    """
    places = _places(view)
    if not places:
        return []
    try:
        before, after = (
            b"" if state is None else shown_lines(workspace.history.text(state.blob))
            for state in (view.edit.before, view.edit.after)
        )
        strings = given_strings(before, after, places) or []
        named = [{"old_string": each.old, "new_string": each.new} for each in strings]
        found = [{name: text.decode() for name, text in each.items() if text is not None} for each in named]
    except (BlobMissing, UnicodeDecodeError):  # the client's strings were UTF-8: the places are not of these bytes
        found = []
    return found or [{} for _ in places]


def _places(view: EditView) -> list[PlacedString]:
    """Return where the edits of a call of `multi_edit_text_file` were made; [] for other tools and older records."""
    return decode_places(view.edit.notes.get(PLACES_NOTE, "")) or []


def _result(workspace: Workspace, edits: list[EditView]) -> ToolResult:
    try:
        diffs = [edit_diff(workspace, view, is_joined=True).decode("utf-8", "backslashreplace") for view in edits]
    except (BlobMissing, EditExpired):
        diffs = []  # the bytes are no longer kept
    places = _places(edits[0])
    counted: dict[str, object] = {
        "applied_count": len(places),
        "line_ranges": [
            {"edit_index": index, "start": place.lines.start, "end": place.lines.end}
            for index, place in enumerate(places)
        ],
    }
    structured: dict[str, object] = {
        "success": True,
        "diff": "".join(diffs),
        **(counted if places else {}),
        "edits": [view.seq for view in edits],
        "statuses": [view.status.value for view in edits],
    }
    texts = ["".join(diffs)] if diffs else []
    return ToolResult(failed=False, structured=structured, texts=texts, changes=file_changes(workspace, edits))


def _changes(workspace: Workspace, view: EditView) -> Iterator[FileChange]:
    """Yield the change that an edit made to its file, if the file is text."""

    def text(blob: BlobId) -> str | None:
        content = shown_lines(workspace.history.text(blob))
        return None if is_binary(content) else content.decode("utf-8", "backslashreplace")

    edit = view.edit
    old = None if edit.before is None else text(edit.before.blob)
    new = None if edit.after is None else text(edit.after.blob)
    if (old is None) is (edit.before is None) and (new is None) is (edit.after is None):
        yield FileChange(path=absolute(workspace, os.fsdecode(edit.path)), old=old, new=new)
