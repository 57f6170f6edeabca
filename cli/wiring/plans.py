"""Plans: which settings files of an agent's program get what, so that it starts our server and calls our hooks.

Facts about each program's files come from its own documentation; where a program reads a file of the project and one of
the user, both have the same shape.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Final

from cli.wiring.jsontext import appended, discarded, loaded, with_member, without_member
from cli.wiring.plugin import PLUGIN, PROGRAM

__all__ = ["WIRED", "Programs", "Scope", "Step", "plan"]

NAME: Final = "editledger"
"""Our name in other programs' settings."""

_SECONDS: Final = 30
"""How long a client waits for a hook before it goes on without; the first look at a large tree may take some."""

_SECONDS_AT_ITS_END: Final = 3
"""The most that Codex waits for where it ends or is interrupted; it warns at each start of hooks that want more."""

_IN_ANY_CASE: Final = " || exit 0"
"""Ends a command that Copilot's own program may run: it lets no tool run where the command fails or is missing."""

Edit = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The commands that clients are told to run."""

    cas: str
    server: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """For whom a client is set up: one project, or all that a user does."""

    project: Path | None  # None: the user
    home: Path

    @property
    def base(self) -> Path:
        """Return the folder that holds the client's own folder."""
        return self.home if self.project is None else self.project

    @property
    def served(self) -> list[str]:
        """Return the arguments of the server: a project's own folder, or what the client says when it asks."""
        return [] if self.project is None else ["."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What becomes of one settings file. Both are functions of its text; an empty text is no file."""

    path: Path
    apply: Edit
    undo: Edit


def plan(client: str, scope: Scope, programs: Programs) -> tuple[Step, ...]:
    """Return the steps for a client of WIRED. What they write twice is the same as what they write once."""
    return WIRED[client](scope, programs)


# ---- the clients


def _claude_code(scope: Scope, programs: Programs) -> tuple[Step, ...]:
    servers = scope.home / ".claude.json" if scope.project is None else scope.project / ".mcp.json"
    entry = {"type": "stdio", "command": programs.server, "args": scope.served}
    return (
        _member(servers, ["mcpServers", NAME], entry),
        _hooks(
            scope.base / ".claude" / "settings.json",
            client="claude-code",
            tools=("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied"),
            others=("UserPromptSubmit", "SessionStart", "SessionEnd", "Stop", "StopFailure"),
            hook=_hook(f"{quote(programs.cas)} hook claude-code{_IN_ANY_CASE}"),
            matcher="*",
        ),
    )


def _codex(scope: Scope, programs: Programs) -> tuple[Step, ...]:
    folder = scope.base / ".codex"
    command = f"{quote(programs.cas)} hook codex"
    table = f"[mcp_servers.{NAME}]"
    lines = [table, f"command = {json.dumps(programs.server)}", f"args = {json.dumps(scope.served)}"]
    return (
        Step(
            path=folder / "config.toml",
            apply=lambda text: _with_table(text, table, "\n".join(lines) + "\n"),
            undo=lambda text: _with_table(text, table, ""),
        ),
        _both(
            _hooks(
                folder / "hooks.json",
                client="codex",
                tools=("PreToolUse", "PostToolUse"),
                others=("UserPromptSubmit", "SessionStart", "Stop"),
                hook=_hook(command),
                matcher="*",
            ),
            _hooks(
                folder / "hooks.json",
                client="codex",
                tools=(),
                others=("SessionEnd", "Interrupt"),
                hook=_hook(command, seconds=_SECONDS_AT_ITS_END),
                matcher="",
            ),
        ),
    )


def _gemini(scope: Scope, programs: Programs) -> tuple[Step, ...]:
    settings = scope.base / ".gemini" / "settings.json"
    hooks = _hooks(
        settings,
        client="gemini",
        tools=("BeforeTool", "AfterTool"),
        others=("BeforeAgent", "AfterAgent", "SessionStart", "SessionEnd"),
        # This client counts in milliseconds.
        hook={
            "name": NAME,
            "type": "command",
            "command": f"{quote(programs.cas)} hook gemini",
            "timeout": _SECONDS * 1000,
        },
        matcher="*",
    )
    server = _member(settings, ["mcpServers", NAME], {"command": programs.server, "args": scope.served})
    return (_both(server, hooks),)


def _cursor(scope: Scope, programs: Programs) -> tuple[Step, ...]:
    folder = scope.base / ".cursor"
    entry = {"command": f"{quote(programs.cas)} hook cursor"}
    tools = ("preToolUse", "postToolUse", "postToolUseFailure", "afterFileEdit")
    events = (*tools, "beforeSubmitPrompt", "sessionStart", "sessionEnd", "stop")
    return (
        _member(folder / "mcp.json", ["mcpServers", NAME], {"command": programs.server, "args": scope.served}),
        _versioned(_entries(folder / "hooks.json", "cursor", dict.fromkeys(events, entry))),
    )


def _vscode(scope: Scope, programs: Programs) -> tuple[Step, ...]:
    folder = scope.home / ".config" / "Code" / "User" if scope.project is None else scope.project / ".vscode"
    served = ["${workspaceFolder}"]
    entry = {"type": "stdio", "command": programs.server, "args": served}
    hooks = scope.home / ".copilot" / "hooks" if scope.project is None else scope.project / ".github" / "hooks"
    hook = _hook(f"{quote(programs.cas)} hook vscode{_IN_ANY_CASE}")
    tools = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
    events = (*tools, "UserPromptSubmit", "SessionStart", "SessionEnd", "Stop")
    return (
        _member(folder / "mcp.json", ["servers", NAME], entry),
        _versioned(_entries(hooks / f"{NAME}.json", "vscode", dict.fromkeys(events, hook))),
    )


def _opencode(scope: Scope, programs: Programs) -> tuple[Step, ...]:
    if scope.project is None:
        folder = scope.home / ".config" / "opencode"
        settings, plugins = folder / "opencode.json", folder / "plugin"
    else:
        settings, plugins = scope.project / "opencode.json", scope.project / ".opencode" / "plugin"
    entry = {"type": "local", "command": [programs.server, *scope.served], "enabled": True}
    plugin = PLUGIN.replace(PROGRAM, json.dumps(programs.cas))
    return (
        _member(settings, ["mcp", NAME], entry),
        Step(path=plugins / f"{NAME}.js", apply=lambda _: plugin, undo=lambda _: ""),
    )


WIRED: Final[Mapping[str, Callable[[Scope, Programs], tuple[Step, ...]]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini": _gemini,
    "cursor": _cursor,
    "vscode": _vscode,
    "opencode": _opencode,
}
"""What is to be done for each client."""


# ---- kinds of steps


def _member(path: Path, keys: Sequence[str], value: object) -> Step:
    return Step(
        path=path,
        apply=lambda text: with_member(text, keys, value),
        undo=lambda text: without_member(text, keys),
    )


def _hook(command: str, *, seconds: int = _SECONDS) -> dict[str, object]:
    return {"type": "command", "command": command, "timeout": seconds}


def _versioned(hooks: Step) -> Step:
    """Return the step for a file that has to say which version of its format it is of."""

    def apply(text: str) -> str:
        return hooks.apply(text if "version" in loaded(text) else with_member(text, ["version"], 1))

    def undo(text: str) -> str:
        text = hooks.undo(text)
        # A version alone is what is left of a file that was ours.
        return without_member(text, ["version"]) if loaded(text) == {"version": 1} else text

    return Step(path=hooks.path, apply=apply, undo=undo)


def _hooks(
    path: Path, *, client: str, tools: Iterable[str], others: Iterable[str], hook: Mapping[str, object], matcher: str
) -> Step:
    """Return the step that puts a hook into the lists of many events: those of tools have a matcher."""
    entries = {event: {"matcher": matcher, "hooks": [dict(hook)]} for event in tools}
    return _entries(path, client, entries | {event: {"hooks": [dict(hook)]} for event in others})


def _entries(path: Path, client: str, entries: Mapping[str, object]) -> Step:
    """Return the step that puts an entry of ours into the lists of events."""
    ours = _is_ours(client)

    def apply(text: str) -> str:
        for event, entry in entries.items():
            text = _with_entry(text, ["hooks", event], entry, ours)
        return text

    def undo(text: str) -> str:
        for event in entries:
            text = discarded(text, ["hooks", event], ours)
        return text

    return Step(path=path, apply=apply, undo=undo)


def _both(first: Step, second: Step) -> Step:
    return Step(
        path=first.path,
        apply=lambda text: second.apply(first.apply(text)),
        undo=lambda text: first.undo(second.undo(text)),
    )


def _with_entry(text: str, path: Sequence[str], entry: object, is_ours: Callable[[Any], bool]) -> str:
    """Return the text with our entry in a list, in place of any that we put there before."""
    held = loaded(text)
    for key in path:
        held = held.get(key) if isinstance(held, dict) else None
    if isinstance(held, list) and [item for item in held if is_ours(item)] == [entry]:
        return text
    return appended(discarded(text, path, is_ours), path, entry)


def _is_ours(client: str) -> Callable[[Any], bool]:
    endings = (f" hook {client}", f" hook {client}{_IN_ANY_CASE}")

    def check(item: Any) -> bool:  # noqa: ANN401 - whatever a settings file holds
        if not isinstance(item, dict):
            return False
        inner = item.get("hooks")
        if isinstance(inner, list):
            return bool(inner) and all(check(hook) for hook in inner)
        command = item.get("command")
        return isinstance(command, str) and command.endswith(endings)

    return check


def _with_table(text: str, header: str, table: str) -> str:
    """Return a TOML text with our table in place of the one that has its header. Raises tomllib.TOMLDecodeError."""
    tomllib.loads(text)
    standing = re.compile(rf"^{re.escape(header)}[ \t]*\n(?:(?!\[).*\n?)*", re.MULTILINE)
    found = standing.search(text)
    if found is not None:
        kept = found.group()[len(found.group().rstrip()) :].removeprefix("\n")
        after = text[: found.start()] + (table + kept if table else "") + text[found.end() :]
    elif table:
        after = text + ("" if not text or text.endswith("\n") else "\n") + ("\n" if text else "") + table
    else:
        after = text
    tomllib.loads(after)
    return after if after.strip() else ""
