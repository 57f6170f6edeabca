"""Build Agent Client Protocol notifications: what an agent reports to its client of a tool call and its result.

There are two shapes of the same notification. `CONTRACT` is the one in the contract of `multi_edit_text_file`, with
`type: toolCall` and the fields of an update in `fields`. `PROTOCOL` is the protocol's own, version 1, with
`sessionUpdate: tool_call` and a diff as old and new text. Sources: that contract, "ACP Event Mapping"; the Agent
Client Protocol's pages on tool calls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

__all__ = ["PATHS", "FileChange", "Json", "Shape", "ToolCall", "ToolResult", "call_began", "call_ended"]

Json: TypeAlias = dict[str, object]

_METHOD: Final = "session/update"
_KINDS: Final[Mapping[str, str]] = {
    "read_file": "read",
    "read_multiple_files": "read",
    "read_file_by_line": "read",
    "read_text_file": "read",
    "get_file_info": "read",
    "list_directory": "read",
    "directory_tree": "read",
    "list_allowed_directories": "read",
    "list_edits": "read",
    "show_edit": "read",
    "read_file_by_keyword": "search",
    "search_files": "search",
    "grep_files": "search",
    "validate_patch": "read",
    "inspect_patch": "read",
    "generate_patch": "read",
    "move_file": "move",
    "delete_file": "delete",
    "answer_comment": "other",
}
"""The kinds of the tools whose kind is not `edit`."""

PATHS: Final = (
    "path",
    "file_path",
    "source",
    "destination",
    "original_file",
    "modified_file",
    "backup_file",
    "target_file",
)
"""Arguments that name files, in the order in which a notification lists their locations."""

_COUNTED: Final[Mapping[str, tuple[str, str]]] = {
    "edits": ("edit", "edits"),
    "operations": ("operation", "operations"),
    "patches": ("patch", "patches"),
}


class Shape(Enum):
    """The two shapes of a notification."""

    CONTRACT = auto()
    PROTOCOL = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool, as its client made it."""

    session: str
    id: str
    tool: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The change that a call made to one file."""

    path: str  # absolute
    old: str | None  # None: there was no file
    new: str | None  # None: there is no file any more


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a call."""

    failed: bool
    structured: Mapping[str, object]
    texts: Sequence[str]
    changes: Sequence[FileChange] = ()  # only those of text files


def call_began(call: ToolCall, shape: Shape) -> Json:
    """Return the notification that a call has begun."""
    locations = [{"path": path} for path in _paths(call.arguments)]
    reported: Json = {
        "kind": _KINDS.get(call.tool, "edit"),
        "status": "pending",
        "title": _title(call),
        "locations": locations,
        "rawInput": dict(call.arguments),
    }
    if shape is Shape.CONTRACT:
        return _notification(call, {"type": "toolCall", "id": call.id, **reported})
    return _notification(call, {"sessionUpdate": "tool_call", "toolCallId": call.id, **reported})


def call_ended(call: ToolCall, result: ToolResult, shape: Shape) -> Json:
    """Return the notification that a call has ended, with its result."""
    status = "failed" if result.failed else "completed"
    output = dict(result.structured)
    if shape is Shape.CONTRACT:
        content: list[Json] = [{"type": "text", "text": text} for text in result.texts]
        fields: Json = {"status": status, "rawOutput": output, "content": content}
        return _notification(call, {"type": "toolCallUpdate", "id": call.id, "fields": fields})
    reported: list[Json] = [_diff(change) for change in result.changes]
    if not reported:
        reported = [{"type": "content", "content": {"type": "text", "text": text}} for text in result.texts]
    update: Json = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call.id,
        "status": status,
        "content": reported,
        "rawOutput": output,
    }
    places = _places(call, result)
    return _notification(call, {**update, "locations": places} if places else update)


def _notification(call: ToolCall, update: Json) -> Json:
    return {"method": _METHOD, "params": {"sessionId": call.session, "update": update}}


def _title(call: ToolCall) -> str:
    """Return the tool's name, and the number of edits, operations or patches if it takes a list of them."""
    for name, (one, many) in _COUNTED.items():
        asked = call.arguments.get(name)
        if isinstance(asked, Sequence) and not isinstance(asked, str):
            return f"{call.tool} ({len(asked)} {one if len(asked) == 1 else many})"
    return call.tool


def _paths(arguments: Mapping[str, object]) -> list[str]:
    """Return the files that a call names, each once."""
    named = [arguments.get(name) for name in PATHS]
    patches = arguments.get("patches")
    if isinstance(patches, Sequence) and not isinstance(patches, str):
        named += [patch.get("file_path") for patch in patches if isinstance(patch, Mapping)]
    return list(dict.fromkeys(path for path in named if isinstance(path, str) and path))


def _diff(change: FileChange) -> Json:
    # The protocol's new text is never null: a deleted file is shown with an empty one.
    return {"type": "diff", "path": change.path, "oldText": change.old, "newText": change.new or ""}


def _places(call: ToolCall, result: ToolResult) -> list[Json]:
    """Return the paths of the changed files, each with the first line that differs (from 1), if there is one."""
    if not result.changes:
        return []
    ranges = result.structured.get("line_ranges")
    if len(result.changes) == 1 and isinstance(ranges, Sequence) and call.tool == "multi_edit_text_file":
        starts = [part["start"] for part in ranges if isinstance(part, Mapping)]
        return [{"path": result.changes[0].path, "line": line} for line in starts]
    return [_place(change) for change in result.changes]


def _place(change: FileChange) -> Json:
    place: Json = {"path": change.path}
    # A file that was only moved, or given another mode, has no changed line.
    return place if change.old == change.new else {**place, "line": _first_difference(change)}


def _first_difference(change: FileChange) -> int:
    old, new = (change.old or "").split("\n"), (change.new or "").split("\n")
    same = 0
    for before, after in zip(old, new, strict=False):
        if before != after:
            break
        same += 1
    return min(same, len(new) - 1) + 1
