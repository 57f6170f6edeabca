"""Claude Code: hooks in settings.json, events as JSON on standard input.

Source: the client's hooks reference (events, fields, additionalContext). Context that a hook returns before a tool runs
reaches the agent next to the tool's result, as context returned after it does, but not for every decision on the call:
so it is returned after. A tool that a person does not let run has no end event; only the question is reported. A turn
that a person interrupts has none either; a minute later an event says that Claude waits for them. For its hook, a
command in the background ends as soon as it runs; its real end is only reported by a later Stop that no longer names
it. A call may be deferred without an end (`defer`): it begins again, with its id, once its session continues.
"""

import re
from collections.abc import Mapping
from typing import Final

from cli.hooks.clients.event import (
    CONTEXT_EVENTS,
    WITH_SUBAGENTS,
    Event,
    EventKind,
    Payload,
    additional_context,
    canonical_tool_name,
    context_in_copilot,
    joined_by,
    map_of,
    message_to_person,
    notes_of,
    patched,
    paths_touched_by,
    subagent,
    text,
    within,
)

__all__ = ["ENDS", "READS", "notice", "read", "reply"]

_NOTICES: Final = ("SessionStart", "UserPromptSubmit", "Stop")
_MOMENTS: Final = {
    **WITH_SUBAGENTS,
    "PostToolUseFailure": EventKind.AFTER,
    "PermissionDenied": EventKind.DENIED,
    "StopFailure": EventKind.IDLE,
}
_WAITS: Final = "idle_prompt"
"""The notification that no turn is running: the client waits for the next prompt."""

_NOTICE: Final = r"(?s)<task-notification>.*?<task-id>([^<]+)</task-id>(?:.*?<status>(\w+)</status>)?"
"""A prompt that the client writes itself: something in the background has ended, or has something to say."""

_RUNNING: Final = "running"

_WRITES: Final = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
READS: Final = frozenset(
    {"Read", "Glob", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch", "TodoWrite", "TodoRead", "AskUserQuestion"}
    | {"Task", "Agent", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "Skill", "ToolSearch", "BashOutput"}
    | {"TaskOutput", "TaskStop", "KillShell", "SendMessage", "LSP"}
    | {"EnterPlanMode", "ExitPlanMode", "ListMcpResourcesTool", "ReadMcpResourceTool"}
)
"""Tools that change no file themselves: a subagent's tools have events of their own."""

ENDS: Final = frozenset({"KillShell", "TaskStop"})
"""Tools that end what runs in the background."""

_CONTEXT_EVENTS: Final = CONTEXT_EVENTS | {"PostToolUseFailure"}


def read(payload: Payload) -> Event:
    """Return the event that a hook's payload describes."""
    return _of_copilot(payload) if "timestamp" in payload else _own(payload)


def reply(event: Event, message: str) -> Payload | None:
    """Return what to print so that the agent reads `message`."""
    if event.of_copilot:
        return context_in_copilot(event, message)
    return additional_context(event, message, _CONTEXT_EVENTS)


def notice(event: Event, message: str) -> Payload | None:
    """Return what to print so that the person reads `message`, as a session or a turn begins or a turn ends."""
    return None if event.of_copilot else message_to_person(event, message, _NOTICES)


def _of_copilot(payload: Payload) -> Event:
    """Return an event of VS Code or Copilot's own program: tools and fields are those of their own hooks."""
    from cli.hooks.clients import vscode

    event = vscode.read(payload)
    return event._replace(moment=_moment(event.name, payload), agent=subagent(payload), of_copilot=True)


def _own(payload: Payload) -> Event:
    name = text(payload, "hook_event_name", "hookEventName")
    call = text(payload, "tool_use_id")
    tool = canonical_tool_name(text(payload, "tool_name"), call)
    given = map_of(payload, "tool_input")
    path = text(given, "file_path", "notebook_path", "path")
    named = [path] if path else patched(text(payload, "tool_input"))
    prompt = text(payload, "prompt")
    moment = _moment(name, payload)
    notice = re.match(_NOTICE, prompt) if moment is EventKind.PROMPT else None
    ended = text(given, "shell_id", "task_id") if tool in ENDS and name == "PostToolUse" else ""
    if notice is not None:
        moment, prompt = EventKind.RESUMED, ""
        ended = notice[1] if notice[2] and notice[2] != _RUNNING else ""
    return Event(
        moment=moment,
        conversation=text(payload, "session_id", "conversation_id"),  # Cursor runs these hooks too
        place=text(payload, "cwd"),
        name=name,
        tool=tool,
        call=call,
        given=payload.get("tool_input"),
        touched=paths_touched_by(tool, named, reads=READS, writes=_WRITES),
        task=text(map_of(payload, "tool_response"), "backgroundTaskId"),
        ended_task=ended,
        running=_running(payload.get("background_tasks")),
        joins=joined_by(tool, given, payload),
        prompt=prompt,
        prompt_id=text(payload, "prompt_id"),
        notes=notes_of(
            "claude-code",
            agent=text(payload, "agent_type"),
            model=text(payload, "model"),
            command=text(given, "command"),
        ),
        agent=subagent(payload),
        reports_subagents=True,
    )


def _running(tasks: object) -> tuple[str, ...] | None:
    """Return the ids of the background tasks that an event lists (None: it lists none, or not in a known form)."""
    if not isinstance(tasks, list):
        return None
    ids = [text(task, "id") if isinstance(task, Mapping) else "" for task in tasks]
    return tuple(ids) if all(ids) else None


def _moment(name: str, payload: Payload) -> EventKind:
    moment = _MOMENTS.get(name, EventKind.OTHER)
    if moment is EventKind.AFTER and text(map_of(payload, "tool_response"), "backgroundTaskId"):
        moment = EventKind.IN_BACKGROUND
    if name == "Notification" and text(payload, "notification_type") == _WAITS:
        moment = EventKind.IDLE
    return within(payload, moment)
