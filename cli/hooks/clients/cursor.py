"""Cursor: hooks in hooks.json. Several events report one edit; each records what the previous one left.

Source: the client's hooks page. What a hook prints for an event without a way to the agent is ignored. A tool of any
server is reported as `MCP:` and its name, without its server: rules for our tools here apply to all tools of that name.
"""

from typing import Final

from cli.hooks.clients.event import Event, EventKind, Payload, joined_by, map_of, notes_of, paths_touched_by, text

__all__ = ["READS", "notice", "read", "reply"]

_MOMENTS: Final = {
    "preToolUse": EventKind.BEFORE,
    "beforeShellExecution": EventKind.BEFORE,
    "postToolUse": EventKind.AFTER,
    "postToolUseFailure": EventKind.AFTER,
    "afterShellExecution": EventKind.AFTER,
    "afterFileEdit": EventKind.AFTER,
    "beforeSubmitPrompt": EventKind.PROMPT,
    "sessionStart": EventKind.START,
    "sessionEnd": EventKind.ALL_IDLE,
    "stop": EventKind.IDLE,
}
_TOOLS: Final = {"beforeShellExecution": "Shell", "afterShellExecution": "Shell", "afterFileEdit": "Write"}
"""The tool that an event without a tool's name is about."""

_NOT_LET: Final = "permission_denied"
"""The reason in `postToolUseFailure` for a tool that never ran."""

_WRITES: Final = frozenset(
    {"Write", "Edit", "StrReplace", "MultiEdit", "Delete", "EditNotebook", "TabWrite"}
    | {"MCP:write_file", "MCP:edit_file_diff", "MCP:multi_edit_text_file", "MCP:edit_text_file", "MCP:delete_file"}
    | {"MCP:create_directory"}
)
READS: Final = frozenset(
    {"Read", "Grep", "Glob", "LS", "SemanticSearch", "WebSearch", "WebFetch", "ReadLints", "TodoWrite", "Task"}
    | {"AskQuestion", "SwitchMode"}
    | {"MCP:read_file", "MCP:read_text_file", "MCP:read_multiple_files", "MCP:read_file_by_line"}
    | {"MCP:read_file_by_keyword", "MCP:list_directory", "MCP:directory_tree", "MCP:search_files", "MCP:grep_files"}
    | {"MCP:get_file_info", "MCP:list_allowed_directories", "MCP:list_edits", "MCP:show_edit"}
    | {"MCP:validate_patch", "MCP:generate_patch", "MCP:inspect_patch"}
)
"""Tools that change no file themselves: a subagent is a conversation of its own."""

_CONTEXT_EVENTS: Final = frozenset({"postToolUse", "sessionStart"})


def read(payload: Payload) -> Event:
    """Return the event that a hook's payload describes."""
    name = text(payload, "hook_event_name")
    moment = _MOMENTS.get(name, EventKind.OTHER)
    given = map_of(payload, "tool_input")
    tool = text(payload, "tool_name") or _TOOLS.get(name, "")
    path = text(given, "file_path", "path", "target_file", "target_notebook") or text(payload, "file_path")
    place = text(payload, "cwd")
    folders = [place] if place else _roots(payload)
    return Event(
        moment=EventKind.DENIED if text(payload, "failure_type") == _NOT_LET else moment,
        conversation=text(payload, "conversation_id", "session_id"),
        place=folders[0] if folders else "",
        name=name,
        tool=tool,
        call=text(payload, "tool_use_id"),
        given=payload.get("tool_input"),
        touched=paths_touched_by(tool, [path] if path else [], reads=READS, writes=_WRITES),
        joins=joined_by(tool, given, payload),
        prompt=text(payload, "prompt"),
        prompt_id=text(payload, "generation_id"),
        notes=notes_of(
            "cursor",
            model=text(payload, "model"),
            turn=text(payload, "generation_id"),
            command=text(given, "command") or text(payload, "command"),
        ),
        # A turn spans all open folders. A tool begins in one: if it is not named, the tool is not taken for all.
        others=() if moment is EventKind.BEFORE else tuple(folders[1:]),
    )


def reply(event: Event, message: str) -> Payload | None:
    """Return what to print so that the agent reads `message`."""
    return {"additional_context": message} if event.name in _CONTEXT_EVENTS else None


def notice(event: Event, message: str) -> None:
    """Return None: a hook of its `stop` can only send the agent another prompt."""


def _roots(payload: Payload) -> list[str]:
    """Return the folders that are open in the client."""
    roots = payload.get("workspace_roots")
    return [root for root in roots if isinstance(root, str) and root] if isinstance(roots, list) else []
