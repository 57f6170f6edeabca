"""Codex: hooks in hooks.json, events shaped like those of Claude Code, edits as patches in its own format.

Source: the client's hooks page and its generated schemas, which allow no further output fields. A subagent's events
carry its session's id; it begins once, and reports back at the end of each of its turns. A tool that a person does not
let run has no end event, as in Claude Code; but the same question is asked when a running command wants the network.
"""

from collections.abc import Iterator
from typing import Final

from cli.hooks.clients.event import (
    ANYWHERE,
    CONTEXT_EVENTS,
    WITH_SUBAGENTS,
    Event,
    EventKind,
    Payload,
    TouchedPaths,
    additional_context,
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

__all__ = ["notice", "read", "reply"]

_READS: Final = frozenset({"update_plan", "view_image", "web_search", "read_file", "list_dir", "grep_files"})
_PATCH: Final = "apply_patch"
_NOTICES: Final = ("SessionStart", "UserPromptSubmit", "Stop")
_MOMENTS: Final = {**WITH_SUBAGENTS, "Interrupt": EventKind.IDLE}
_OF_NETWORK: Final = "network-access "
"""Beginning of the description when a person is asked whether a running command may use the network."""


def read(payload: Payload) -> Event:
    """Return the event that a hook's payload describes."""
    name = text(payload, "hook_event_name")
    tool = text(payload, "tool_name")
    given = map_of(payload, "tool_input")
    moment = _MOMENTS.get(name, EventKind.OTHER)
    if moment is EventKind.ASKED and text(given, "description").startswith(_OF_NETWORK):
        moment = EventKind.OTHER
    return Event(
        moment=within(payload, moment),
        conversation=text(payload, "session_id"),
        place=text(payload, "cwd"),
        name=name,
        tool=tool,
        call=text(payload, "tool_use_id"),
        given=payload.get("tool_input"),
        touched=_touched(tool, given),
        joins=joined_by(tool, given, payload),
        prompt=text(payload, "prompt"),
        prompt_id=text(payload, "turn_id"),
        notes=notes_of(
            "codex",
            agent=text(payload, "agent_type"),
            model=text(payload, "model"),
            turn=text(payload, "turn_id"),
            command="" if tool == _PATCH else " ".join(_words(given)),
        ),
        agent=subagent(payload),
    )


def reply(event: Event, message: str) -> Payload | None:
    """Return what to print so that the agent reads `message`."""
    return additional_context(event, message, CONTEXT_EVENTS)


def notice(event: Event, message: str) -> Payload | None:
    """Return what to print so that the person reads `message`, as a session or a turn begins or a turn ends."""
    return message_to_person(event, message, _NOTICES)


def _touched(tool: str, given: Payload) -> TouchedPaths:
    if tool != _PATCH:
        return paths_touched_by(tool, [], reads=_READS, writes=frozenset())
    # The patch is a string, or the last word of a command line.
    return patched("\n".join(_words(given))) or ANYWHERE


def _words(given: Payload) -> Iterator[str]:
    for name in ("command", "input", "patch", "cmd"):
        value = given.get(name)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (word for word in value if isinstance(word, str))
