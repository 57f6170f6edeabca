"""Clients that a TOML file describes: their settings, their events, and what their tools do.

`cli/hooks/descriptions/` has the files of some clients, and `docs/agents.md` says what each entry means. A description
is data alone: nothing in it is run.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from cli.hooks.clients.event import (
    Event,
    EventKind,
    Payload,
    additional_context,
    joined_by,
    message_to_person,
    notes_of,
    patched,
    paths_touched_by,
)

__all__ = ["DESCRIBED", "Described", "SettingsFile", "described", "is_description"]

_FOLDER: Final = Path(__file__).parents[1] / "descriptions"

DESCRIBED: Final[Mapping[str, Path]] = MappingProxyType(
    {path.stem: path for path in sorted(_FOLDER.glob("*.toml"))} if _FOLDER.is_dir() else {}
)
"""The files of the clients that are described here, by name."""

_LONGEST: Final = 1 << 16
"""Bytes of a description that are read; a client's takes some thousand."""

_MOMENTS: Final = {
    "before": EventKind.BEFORE,
    "after": EventKind.AFTER,
    "denied": EventKind.DENIED,
    "prompt": EventKind.PROMPT,
    "stop": EventKind.IDLE,
    "start": EventKind.START,
    "end": EventKind.ALL_IDLE,
}
"""What an event may mean."""

_FIELDS: Final = {
    "event": ("hook_event_name",),
    "session": ("session_id",),
    "folder": ("cwd",),
    "tool": ("tool_name",),
    "call": ("tool_use_id",),
    "input": ("tool_input",),
    "prompt": ("prompt",),
    "model": ("model",),
    "paths": ("file_path", "path"),
    "command": ("command",),
}
"""Where an event has what, unless its description says otherwise: names in Claude Code's hooks."""

_SHAPES: Final = ("groups", "list", "programs")


class SettingsFile(NamedTuple):
    """The file in which a client keeps its hooks, and its format."""

    project: str  # relative to the project; of shape "programs": a folder
    user: str  # relative to the home; "": the client has none
    shape: str  # "groups": groups of hooks with a matcher; "list": hooks; "programs": one program for each event
    timeout: int  # in the client's own unit; 0: none is set
    matcher: str  # of events about tools, in the client's own syntax; "": every tool
    also: Mapping[str, str]  # further files that the client needs, relative to the project or home, with their content


class Described(NamedTuple):
    """A client as its file describes it."""

    name: str  # of the client, in notes and commands
    title: str  # what the client calls itself
    commands: Sequence[str]  # its programs, by which it is found
    settings: SettingsFile
    events: Mapping[str, EventKind]
    fields: Mapping[str, Sequence[str]]
    reads: frozenset[str]
    writes: frozenset[str]
    context_events: frozenset[str]
    notice_event: str  # at whose hook the client shows its user a `systemMessage`; "": at none
    answer: str  # the field in which the client takes context for its agent; "": that of Claude Code

    def read(self, payload: Payload) -> Event:
        """Return the event that a hook's payload describes."""
        name, tool = self._text(payload, "event"), self._text(payload, "tool")
        given = self._found(payload, "input")
        inputs = given if isinstance(given, Mapping) else {}
        path, command = self._text(inputs, "paths"), self._text(inputs, "command")
        named = [path] if path else list(patched(given if isinstance(given, str) else command))
        return Event(
            moment=self.events.get(name, EventKind.OTHER),
            conversation=self._text(payload, "session"),
            place=self._text(payload, "folder"),
            name=name,
            tool=tool,
            call=self._text(payload, "call"),
            given=given,
            touched=paths_touched_by(tool, named, reads=self.reads, writes=self.writes),
            joins=joined_by(tool, given, payload),
            prompt=self._text(payload, "prompt"),
            notes=notes_of(self.name, model=self._text(payload, "model"), command=command),
        )

    def reply(self, event: Event, message: str) -> Payload | None:
        """Return what to print so that the agent reads `message`."""
        if self.answer and event.name in self.context_events:
            return {self.answer: message}
        return None if self.answer else additional_context(event, message, self.context_events)

    def notice(self, event: Event, message: str) -> Payload | None:
        """Return what to print so that the person reads `message` when the turn ends."""
        return message_to_person(event, message, (self.notice_event,))

    def _text(self, payload: Payload, field: str) -> str:
        found = self._found(payload, field)
        if isinstance(found, list) and found:  # such as the folders that are open, of which the first counts
            found = found[0]
        return found if isinstance(found, str) else ""

    def _found(self, payload: Payload, field: str) -> Any:  # noqa: ANN401 - whatever a client sends
        """Return the first of a field's places that holds something; a dot leads into a map."""
        for place in self.fields[field]:
            found: Any = payload
            for name in place.split("."):
                found = found.get(name) if isinstance(found, Mapping) else None
            if found:
                return found
        return None


def is_description(client: str) -> bool:
    """Return whether the name of a client is the path of a description."""
    return client.endswith(".toml")


def described(client: str) -> Described:
    """Return the client that is described under a name of DESCRIBED, or in the file at a path. Raises ValueError."""
    path = Path(client) if is_description(client) else DESCRIBED.get(client)
    if path is None:
        raise ValueError(f"no client {client!r} is described")
    try:
        return _parsed(tomllib.loads(_content(path)), path.stem)
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path} describes no client: {error}") from error


def _content(path: Path) -> str:
    """Return the text of a description. Raises OSError, and ValueError if it is too long, or no text."""
    with path.open("rb") as file:
        content = file.read(_LONGEST + 1)
    if len(content) > _LONGEST:
        raise ValueError(f"it has more than {_LONGEST} bytes")
    return content.decode()


def _parsed(table: Mapping[str, Any], name: str) -> Described:
    """Return the client of a description. Raises ValueError that names the entry."""
    settings = _table(table, "settings")
    shape = _string(settings, "shape", "groups")
    if shape not in _SHAPES:
        raise ValueError(f"settings.shape is {shape!r}, and not one of {', '.join(_SHAPES)}")
    project, user = _relative(settings, "project"), _relative(settings, "user")
    if not project:
        raise ValueError("settings.project is missing")
    timeout = settings.get("timeout", 0)
    if not isinstance(timeout, int) or timeout < 0:
        raise ValueError("settings.timeout is not a number")
    also = _table(settings, "also")
    for companion in also:
        _relative({companion: companion}, companion)
    events = {event: _MOMENTS.get(str(meaning)) for event, meaning in _table(table, "events").items()}
    unknown = [event for event, moment in events.items() if moment is None]
    if unknown or not events:
        raise ValueError(f"events.{unknown[0] if unknown else '*'} is not one of {', '.join(_MOMENTS)}")
    fields = _table(table, "fields")
    if fields.keys() - _FIELDS.keys():
        raise ValueError(f"fields.{min(fields.keys() - _FIELDS.keys())} is unknown; known are {', '.join(_FIELDS)}")
    tools, reply = _table(table, "tools"), _table(table, "reply")
    return Described(
        name=name,
        title=_string(table, "title", name),
        commands=_strings(table, "commands"),
        settings=SettingsFile(
            project=project,
            user=user,
            shape=shape,
            timeout=timeout,
            matcher=_string(settings, "matcher", ""),
            also={companion: _string(also, companion, "") for companion in also},
        ),
        events={event: moment for event, moment in events.items() if moment is not None},
        fields={field: _strings(fields, field) or places for field, places in _FIELDS.items()},
        reads=frozenset(_strings(tools, "reads")),
        writes=frozenset(_strings(tools, "writes")),
        context_events=frozenset(_strings(reply, "events")),
        notice_event=_string(reply, "notice", ""),
        answer=_string(reply, "field", ""),
    )


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name, {})
    if not isinstance(found, Mapping):
        raise ValueError(f"{name} is not a table")  # noqa: TRY004 - as below
    return found


def _string(table: Mapping[str, Any], name: str, default: str) -> str:
    found = table.get(name, default)
    if not isinstance(found, str):
        raise ValueError(f"{name} is not a text")  # noqa: TRY004 - a description is wrong, and no argument
    return found


def _strings(table: Mapping[str, Any], name: str) -> list[str]:
    found = table.get(name, [])
    if isinstance(found, str):
        return [found]
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise ValueError(f"{name} is not a text or a list of texts")
    return found


def _relative(table: Mapping[str, Any], name: str) -> str:
    """Return a path that stays below its folder. Raises ValueError."""
    found = _string(table, name, "")
    if found.startswith("/") or ".." in found.split("/") or "\0" in found:
        raise ValueError(f"{name} is {found!r}, which is not a path below the project or the home")
    return found
