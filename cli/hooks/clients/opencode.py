"""opencode: a plugin that passes its hooks on, one JSON object an event; plugin and format are ours.

Source: the client's plugin interface, of version 1 and of version 2. Some of its versions never call
`tool.execute.after`, so the plugin also reports when a session becomes idle: a tool's changes are recorded then at the
latest. A subagent is a session that names its parent; the plugin reports the parent. A person is asked after a tool has
begun, and the report of that names only the call. In version 2 a tool that they refuse fails, and the failure may be
reported first. The plugin says with each event whether it has a place for a text to the agent.
"""

from typing import Final

from cli.hooks.clients.event import (
    ANYWHERE,
    NOWHERE,
    Event,
    EventKind,
    Payload,
    TouchedPaths,
    joined_by,
    map_of,
    notes_of,
    patched,
    paths_touched_by,
    subagent,
    text,
    within,
)

__all__ = ["READS", "notice", "read", "reply"]

_MOMENTS: Final = {
    "tool.execute.before": EventKind.BEFORE,
    "tool.execute.after": EventKind.AFTER,
    "tool.execute.failed": EventKind.FAILED,  # our name for an end without output to which our text could be added
    "chat.message": EventKind.PROMPT,
    "permission.asked": EventKind.ASKED,
    "permission.allowed": EventKind.ALLOWED,  # our names for the two answers
    "permission.rejected": EventKind.DENIED,
    "session.created": EventKind.START,
    "session.idle": EventKind.IDLE,
}
_OF_SUBAGENTS: Final = {"session.created": EventKind.SUBAGENT_BEGINS, "session.idle": EventKind.SUBAGENT_ENDS}
_WRITES: Final = frozenset({"write", "edit", "multiedit"})
READS: Final = frozenset(
    {"read", "glob", "grep", "list", "webfetch", "websearch", "todowrite", "todoread", "task", "subagent"}
    | {"question", "skill"}
)
_PATCHES: Final = frozenset({"patch", "apply_patch"})


def read(payload: Payload) -> Event:
    """Return the event that a hook's payload describes."""
    name = text(payload, "hook")
    tool = text(payload, "tool")
    given = map_of(payload, "args")
    agent = subagent(payload)
    moments = _MOMENTS | _OF_SUBAGENTS if agent else _MOMENTS
    return Event(
        moment=within(payload, moments.get(name, EventKind.OTHER)),
        conversation=text(payload, "sessionID"),
        place=text(payload, "directory"),
        name=name,
        tool=tool,
        call=text(payload, "callID"),
        given=payload.get("args"),
        touched=_touched(tool, given) if tool else NOWHERE,
        joins=joined_by(tool, given, payload),
        prompt=text(payload, "prompt"),
        notes=notes_of(
            "opencode",
            agent=text(payload, "agent"),
            model=text(payload, "model"),
            command=text(given, "command"),
        ),
        agent=agent,
        takes_context=payload.get("hears") is True,
    )


def reply(event: Event, message: str) -> Payload | None:
    """Return what to print: the plugin adds it to what the agent reads next, if it said that there is a place."""
    return {"context": message} if event.takes_context else None


def notice(event: Event, message: str) -> None:
    """Return None: what the plugin can add to is read by the agent."""


def _touched(tool: str, given: Payload) -> TouchedPaths:
    if tool in _PATCHES:
        return patched(text(given, "patchText", "patch")) or ANYWHERE
    path = text(given, "filePath", "file_path", "path")
    return paths_touched_by(tool, [path] if path else [], reads=READS, writes=_WRITES)
