"""Gemini CLI: hooks in settings.json; they must print JSON and nothing else.

Source: the client's hooks reference. It gives tool calls no ids.
"""

from typing import Final

from cli.hooks.clients.event import (
    Event,
    EventKind,
    Payload,
    additional_context,
    joined_by,
    map_of,
    message_to_person,
    notes_of,
    paths_touched_by,
    text,
)

__all__ = ["READS", "notice", "read", "reply"]

_NOTICES: Final = ("SessionStart", "BeforeAgent", "AfterAgent")
_MOMENTS: Final = {
    "BeforeTool": EventKind.BEFORE,
    "AfterTool": EventKind.AFTER,
    "BeforeAgent": EventKind.PROMPT,
    "AfterAgent": EventKind.IDLE,
    "SessionStart": EventKind.START,
    "SessionEnd": EventKind.ALL_IDLE,
}
_WRITES: Final = frozenset({"write_file", "replace"})
READS: Final = frozenset(
    {"read_file", "read_many_files", "list_directory", "glob", "search_file_content", "grep_search", "ask_user"}
    | {"google_web_search", "web_fetch", "save_memory", "write_todos", "activate_skill", "get_internal_docs"}
    | {"invoke_agent", "enter_plan_mode", "exit_plan_mode", "update_topic", "complete_task"}
    | {"read_mcp_resource", "list_mcp_resources"}
)
"""Tools that change no file themselves: a subagent reports its own tools."""

_CONTEXT_EVENTS: Final = frozenset({"BeforeAgent", "AfterTool", "SessionStart"})


def read(payload: Payload) -> Event:
    """Return the event that a hook's payload describes."""
    name = text(payload, "hook_event_name")
    tool = text(payload, "tool_name")
    given = map_of(payload, "tool_input")
    path = text(given, "file_path", "absolute_path", "path")
    return Event(
        moment=_MOMENTS.get(name, EventKind.OTHER),
        conversation=text(payload, "session_id"),
        place=text(payload, "cwd"),
        name=name,
        tool=tool,
        call=text(payload, "tool_use_id", "call_id"),
        given=payload.get("tool_input"),
        touched=paths_touched_by(tool, [path] if path else [], reads=READS, writes=_WRITES),
        joins=joined_by(tool, given, payload),
        prompt=text(payload, "prompt"),
        notes=notes_of("gemini", model=text(payload, "model"), command=text(given, "command")),
    )


def reply(event: Event, message: str) -> Payload | None:
    """Return what to print so that the agent reads `message`."""
    return additional_context(event, message, _CONTEXT_EVENTS)


def notice(event: Event, message: str) -> Payload | None:
    """Return what to print so that the person reads `message`, as a session or a turn begins or a turn ends."""
    return message_to_person(event, message, _NOTICES)
