"""The common form of the hook events of all clients."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

__all__ = [
    "ANYWHERE",
    "COMMON",
    "CONTEXT_EVENTS",
    "NOWHERE",
    "WITH_SUBAGENTS",
    "Client",
    "Event",
    "EventKind",
    "Payload",
    "TouchedPaths",
    "additional_context",
    "canonical_tool_name",
    "context_in_copilot",
    "joined_by",
    "map_of",
    "may_be_server_tool",
    "message_to_person",
    "moment_ignoring_compaction",
    "notes_of",
    "patched",
    "paths_touched_by",
    "subagent",
    "text",
    "within",
]

Payload: TypeAlias = Mapping[str, Any]
"""A decoded hook event, of any shape: nothing in it is trusted."""

TouchedPaths: TypeAlias = tuple[str, ...] | None
"""The files that a tool may change, as it names them. None: any file."""

ANYWHERE: Final[TouchedPaths] = None
NOWHERE: Final[TouchedPaths] = ()

# Patterns are compiled where they are used, which is in few events.
_FILE: Final = r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$"
_COPILOT_HEARS: Final = frozenset({"SessionStart", "PostToolUse"})
_COPILOTS: Final = {
    "bash": "Bash",
    "powershell": "Bash",
    "view": "Read",
    "create": "Write",
    "edit": "Edit",
    "str_replace_editor": "Edit",
    "apply_patch": "Edit",
    "grep": "Grep",
    "rg": "Grep",
    "glob": "Glob",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
    "ask_user": "AskUserQuestion",
    "update_todo": "TodoWrite",
    "task": "Agent",
}
"""The tools of Copilot's own program, and Claude Code's names for them, which it reports."""

_JOINED: Final = "mcp_conversation_id"
_JOINS: Final = r"New conversation\. Pass mcp_conversation_id=(\S+) with your further changes\."
"""Last line of our server's answer to a call that began a conversation, for clients that show only the text."""

_CONVERSATION: Final = r"[A-Za-z0-9_.:-]{1,128}"
_ANSWERS: Final = ("tool_response", "toolResponse", "tool_output", "tool_result", "result")
_INSIDE: Final = ("structuredContent", "structured_content", "content", "llmContent", "returnDisplay", "text")
"""Keys under which clients put a tool's answer. Gemini CLI wraps its text for the model, and displays it as it is."""

_ALL_PARTS: Final = "text_result_for_llm"
"""Where Copilot's program puts the texts of an answer, one after the other, and its structured content after them."""

_DEEPEST: Final = 4

_LONGEST: Final = 2000
"""Characters of a prompt or a command that are kept with an edit."""


class EventKind(Enum):
    """What an event of a client says."""

    BEFORE = "before a tool runs"
    AFTER = "after a tool ran"
    FAILED = "a tool failed: it ran, or a person did not let it"
    IN_BACKGROUND = "a tool has answered, and runs on"
    DENIED = "a tool that was to run was not let"
    PROMPT = "a person said something"
    RESUMED = "the agent goes on with its turn, though no person said anything"
    ASKED = "a person is asked whether a tool may run"
    ALLOWED = "a person has let a tool run"
    IDLE = "no tool of the conversation's own is running"
    ALL_IDLE = "no tool of the conversation or of its subagents is running"
    START = "as `ALL_IDLE`, and a call that was put off may begin again"
    SUBAGENT_BEGINS = "a subagent begins"
    SUBAGENT_ENDS = "a subagent is done"
    OTHER = "nothing that matters here"


COMMON: Final[Mapping[str, EventKind]] = MappingProxyType(
    {
        "PreToolUse": EventKind.BEFORE,
        "PostToolUse": EventKind.AFTER,
        "UserPromptSubmit": EventKind.PROMPT,
        "SessionStart": EventKind.START,
        "Stop": EventKind.IDLE,
    }
)
"""The events of Claude Code that other clients have adopted, with their names."""

WITH_SUBAGENTS: Final[Mapping[str, EventKind]] = MappingProxyType(
    {
        **COMMON,
        "PermissionRequest": EventKind.ASKED,
        "SubagentStart": EventKind.SUBAGENT_BEGINS,
        "SubagentStop": EventKind.SUBAGENT_ENDS,
        "SessionEnd": EventKind.ALL_IDLE,
    }
)
"""The same, for clients that also report subagents and what they ask a person."""

CONTEXT_EVENTS: Final = frozenset({"UserPromptSubmit", "SessionStart", "PostToolUse"})
"""The events of these clients that take context for the agent."""


class Event(NamedTuple):
    """One hook event. A named tuple, because an agent waits: `dataclasses` alone takes 10 ms to import."""

    moment: EventKind
    conversation: str  # "": the client gives none
    place: str  # folder in which the agent works; "": unknown
    name: str = ""  # of the event, as the client writes it
    tool: str = ""
    call: str = ""  # id of the tool call; "": the client gives none
    touched: TouchedPaths = NOWHERE
    given: object = None  # the tool's input as reported: it distinguishes calls without ids
    prompt: str = ""
    prompt_id: str = ""  # client's id of the prompt that the event is about; "": not reported
    notes: Mapping[str, str] = MappingProxyType({})
    agent: str = ""  # id of the subagent that acts, begins or ends; "": the session itself
    reports_subagents: bool = False  # whether the client reports when a subagent begins
    others: tuple[str, ...] = ()  # further folders that an event without files concerns: all those open in the client
    of_copilot: bool = False  # whether VS Code or another program of Copilot's sent it, whose own hooks may also run
    home: str = ""  # folder in which the session began; "": unknown
    task: str = ""  # client's id of what this tool leaves running in the background; "": nothing, or not reported
    ended_task: str = ""  # client's id of what ran in the background and this tool has ended; "": nothing
    running: tuple[str, ...] | None = None  # client's ids of what runs in the background; None: not reported
    takes_context: bool = False  # whether the event itself says that its answer may have a text for the agent
    joins: str = ""  # conversation that a tool of our server reported working in; "": none


class Client(Protocol):
    """The interface of each client's module."""

    def read(self, payload: Payload) -> Event:
        """Return the event that a payload describes. Fields that are missing or of another type count as empty."""
        ...

    def reply(self, event: Event, message: str) -> Payload | None:
        """Return what to print so that the agent reads `message` (None: this event has no way to the agent)."""
        ...

    def notice(self, event: Event, message: str) -> Payload | None:
        """Return what to print so that the person reads `message` (None: this event has no way to the person)."""
        ...


def additional_context(event: Event, message: str, names: Collection[str]) -> Payload | None:
    """Return what to print for events of these names, which take context for the agent as Claude Code's do."""
    if event.name not in names:
        return None
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": message}}


def message_to_person(event: Event, message: str, names: Collection[str]) -> Payload | None:
    """Return what to print for events of these names, at which a client shows its user what the agent doesn't read.

    It is the only field: nothing that makes the agent go on, or keeps it from stopping.
    """
    return {"systemMessage": message} if event.name in names else None


def context_in_copilot(event: Event, message: str) -> Payload | None:
    """Return what to print for VS Code or another program of Copilot's: each reads another field."""
    found = additional_context(event, message, _COPILOT_HEARS)
    return None if found is None else {"additionalContext": message, **found}


def canonical_tool_name(tool: str, call: str) -> str:
    """Return a tool's name that is the same before and after it runs, to match calls without an id ("")."""
    return tool if call else _COPILOTS.get(tool, tool)


def text(payload: Payload, *names: str) -> str:
    """Return the first of the named fields that is a non-empty string, or ""."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def moment_ignoring_compaction(payload: Payload, moment: EventKind) -> EventKind:
    """Return the moment of an event of Claude Code's shape; the compaction of a session is none.

    The session continues, perhaps in the middle of a turn, and so do its subagents.
    """
    return EventKind.OTHER if moment is EventKind.START and text(payload, "source") == "compact" else moment


def within(payload: Payload, moment: EventKind) -> EventKind:
    """Return the moment from the whole session's view, as `moment_ignoring_compaction`; a subagent's turn is none."""
    is_turn = moment in {EventKind.PROMPT, EventKind.IDLE, EventKind.ALL_IDLE, EventKind.START}
    return EventKind.OTHER if is_turn and subagent(payload) else moment_ignoring_compaction(payload, moment)


def subagent(payload: Payload) -> str:
    """Return the id of the subagent that an event of Claude Code's shape is about ("": the session itself)."""
    return text(payload, "agent_id")


def map_of(payload: Payload, name: str) -> Payload:
    """Return the field if it is a map, else an empty one."""
    value = payload.get(name)
    return value if isinstance(value, Mapping) else {}


def paths_touched_by(tool: str, named: Sequence[str], *, reads: frozenset[str], writes: frozenset[str]) -> TouchedPaths:
    """Return the files that a tool may change, given the files `named` in its input.

    `reads`: tools that change nothing; `writes`: tools that change only the files they name. Any other tool may change
    any file.
    """
    if tool in reads or "editledger" in tool:
        return NOWHERE  # our own server records what it does
    return tuple(named) if tool in writes and named else ANYWHERE


def may_be_server_tool(tool: str) -> bool:
    """Return whether a tool may be one of our server's, by its name."""
    return "editledger" in tool or tool.startswith("MCP:")


def joined_by(tool: str, given: object, payload: Payload) -> str:
    """Return the conversation in which a tool of our server works, from its input or its answer ("": none is named).

    Only the answer itself counts: a text inside it may quote anything, and so may deeper fields.
    """
    if not may_be_server_tool(tool):
        return ""
    named = text(given, _JOINED) if isinstance(given, Mapping) else ""
    for name in _ANSWERS:
        named = named or _named_in(payload.get(name), _DEEPEST)
    return named if re.fullmatch(_CONVERSATION, named) else ""


def _named_in(answer: object, depth: int) -> str:
    if isinstance(answer, str):
        if answer.startswith("{") and _JOINED in answer and depth:
            with suppress(ValueError, RecursionError):
                return _named_in(json.loads(answer), depth - 1)
        found = re.fullmatch(_JOINS, answer.rstrip().rpartition("\n")[2])
        return found[1] if found else ""
    if isinstance(answer, list):
        return _named_in(answer[-1], depth - 1) if answer and depth else ""
    if not isinstance(answer, Mapping) or not depth:
        return ""
    inner = [answer.get(name) for name in _INSIDE] + [text(answer, _ALL_PARTS).rstrip().rpartition("\n")[2]]
    return text(answer, _JOINED) or next(filter(None, (_named_in(each, depth - 1) for each in inner)), "")


def patched(patch: str) -> tuple[str, ...]:
    """Return the files that a patch in the form "*** Begin Patch" names."""
    return tuple(dict.fromkeys(re.findall(_FILE, patch, re.MULTILINE)))


def notes_of(client: str, **said: str) -> dict[str, str]:
    """Return the notes to keep about who made an edit and why, with long texts cut."""
    return {"client": client} | {name: value[:_LONGEST] for name, value in said.items() if value}
