"""Plan the changes to an agent program's settings that make it call our hooks and, if wanted, start our server.

Hooks are called for prompts, stops, sessions, and tools that can change files: each call costs a process, so where a
client's matchers allow it, tools that only read are left out. A tool that this version doesn't know is not left out.

Facts about each program's files come from its own documentation; if a program reads a file of the project and one of
the user, both have the same shape.
"""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cli.hooks.clients import claude_code, cursor, gemini, opencode
from cli.hooks.clients.described import described
from cli.hooks.clients.event import EventKind
from cli.setup.hook_lists import hook_command, is_ours, with_hook, without_hooks
from cli.setup.jsonc_edit import Key, loaded, with_member, with_members, without_member
from cli.setup.opencode_plugin import FIRST_WORDS, plugin
from cli.setup.server_entry import NAME, TOKEN, ServerEntry
from objstore import toml_value, with_toml, without_toml

__all__ = ["HOMES", "LOCAL_SETTINGS", "NAME", "WIRED", "Programs", "Scope", "SetupStep", "plan"]

_HOOKS: Final = "hooks at prompts, stops, sessions, and tools that can change files"
_SERVER: Final = "the MCP server"

_SECONDS: Final = 30
"""Seconds that a client waits for a hook; the first scan of a large tree may take some."""

_SECONDS_AT_ITS_END: Final = 3
"""The most that Codex waits when it ends or is interrupted; it warns at each start about hooks that want more."""

HOMES: Final[Mapping[str, tuple[str, str]]] = {
    "claude-code": ("CLAUDE_CONFIG_DIR", ""),
    "codex": ("CODEX_HOME", ""),
    "gemini": ("GEMINI_CLI_HOME", ".gemini"),
}
"""Variable with which a user moves a client's settings, and the client's folder inside the named one."""

LOCAL_SETTINGS: Final[Mapping[str, tuple[str, str]]] = {
    "claude-code": (".claude/settings.json", ".claude/settings.local.json"),
}
"""Settings files in a project, shared and of one user alone, of clients that read both."""

_FOLDERS: Final = {"claude-code": ".claude", "codex": ".codex", "gemini": ".gemini"}
"""A client's folder, in a project or in the home."""

Edit = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The commands that the clients' settings name."""

    cas: str
    server: str
    address: str = ""  # of a server over HTTP, which the client calls; "": it starts one
    name: str = ""  # that a client gets in this address


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """For whom a client is set up: one project, or all projects of a user."""

    project: Path | None  # None: the user
    home: Path
    is_local: bool = False  # whether the project's settings are this user's alone: git must not share them
    platform: str = sys.platform

    @property
    def base(self) -> Path:
        """Return the folder that contains the client's own folder."""
        return self.home if self.project is None else self.project

    def folder(self, client: str) -> Path:
        """Return the folder of a client of HOMES."""
        return self.folder_from_variable(client) or self.base / _FOLDERS[client]

    def folder_from_variable(self, client: str) -> Path | None:
        """Return the client's folder if a variable names it (None: none does; a relative path does not count)."""
        variable, below = HOMES.get(client, ("", ""))
        named = Path(os.environ.get(variable, ""))
        return named / below if self.project is None and named.is_absolute() else None

    def staying(self, client: str) -> Path:
        """Return the folder that is kept, with all above it, even if it becomes empty."""
        return self.folder_from_variable(client) or self.base

    @property
    def served(self) -> list[str]:
        """Return the arguments of the server: a project's own folder, or the client's answer when it asks for roots."""
        return [] if self.project is None else ["."]

    @property
    def configurations(self) -> Path:
        """Return the folder of the user's settings by the XDG base directory specification."""
        named = os.environ.get("XDG_CONFIG_HOME", "")
        # A relative path does not count, by that specification.
        return Path(named) if Path(named).is_absolute() else self.home / ".config"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStep:
    """The change to one settings file. Both directions are functions of its text; an empty text means no file."""

    path: Path
    apply: Edit
    undo: Edit
    what: str = ""  # what it puts into the file, for a person
    is_program: bool = False  # whether the file is run, and not read
    is_certain: bool = False  # whether what `undo` removes is certainly ours: a user's entry may have our name
    is_foreign_entry: Callable[[str], bool] = lambda _: (
        False
    )  # whether a text has such an entry, which runs something else
    has_extra_settings: Callable[[str], bool] = lambda _: (
        False
    )  # whether `undo` removes something from a text that `apply` doesn't write
    remark: Edit = lambda _: ""  # what the user should know about what stays in a text ("": nothing)
    hooks_alone: "SetupStep | None" = None  # of hooks and server in one file: the step of a setup without the server
    is_partial: Callable[[str], bool] = lambda _: False  # whether a text has hooks of ours, but not complete


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSteps:
    """The steps for one client: its hooks, and the entry of our server."""

    hooks: Sequence[SetupStep]
    server: SetupStep | None  # None: where the client lists its servers is not known


def plan(client: str, scope: Scope, programs: Programs, *, server: bool = False) -> tuple[SetupStep, ...]:
    """Return the steps for a client of WIRED or a described one: its hooks, and with `server` our server before them.

    Applying them twice is the same as once. Raises ValueError for a file that describes no client.
    """
    steps = WIRED[client](scope, programs) if client in WIRED else _described(client, scope, programs)
    if not server or steps.server is None:
        return tuple(steps.hooks)
    shared = [step for step in steps.hooks if step.path == steps.server.path]
    first = _both(shared[0], steps.server) if shared else steps.server
    return (first, *(step for step in steps.hooks if step not in shared))


# ---- the clients


def _claude_code(scope: Scope, programs: Programs) -> ClientSteps:
    own = (Scope(project=None, home=scope.home).folder_from_variable("claude-code") or scope.home) / ".claude.json"
    servers, keys = own, ["mcpServers", NAME]
    if scope.project is not None and scope.is_local:
        keys = ["projects", str(scope.project), *keys]
    elif scope.project is not None:
        servers = scope.project / ".mcp.json"
    called = {"type": "http", **_bearer(f"${{{TOKEN}:-}}")}
    server = _entry(programs, scope.served, started={"type": "stdio"}, called=called)
    hook = _hook(hook_command(programs.cas, "claude-code", blocks=True))
    entries = _grouped(
        tools=("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied"),
        others=(
            "UserPromptSubmit",
            "SessionStart",
            "SessionEnd",
            "Stop",
            "StopFailure",
            "SubagentStart",
            "SubagentStop",
        ),
        hook=hook,
        reads=claude_code.READS - claude_code.ENDS,
    )
    entries["Notification"] = {"matcher": "idle_prompt", "hooks": [hook]}
    settings = scope.folder("claude-code") / ("settings.local.json" if scope.is_local else "settings.json")
    return ClientSteps(
        hooks=[_entries(settings, "claude-code", programs, entries)], server=_member(servers, keys, server)
    )


def _codex(scope: Scope, programs: Programs) -> ClientSteps:
    folder = scope.folder("codex")
    command = hook_command(programs.cas, "codex")
    # Its reading tools run no hooks, and its matchers can't name what they leave out.
    during = _grouped(
        tools=("PreToolUse", "PostToolUse", "PermissionRequest"),
        others=("UserPromptSubmit", "SessionStart", "Stop", "SubagentStart", "SubagentStop"),
        hook=_hook(command),
    )
    at_its_end = _grouped(
        tools=(), others=("SessionEnd", "Interrupt"), hook=_hook(command, seconds=_SECONDS_AT_ITS_END)
    )
    server = _entry(programs, scope.served, called={"bearer_token_env_var": TOKEN})
    return ClientSteps(
        hooks=[_entries(folder / "hooks.json", "codex", programs, during | at_its_end)],
        server=_table(folder / "config.toml", ["mcp_servers", NAME], server),
    )


def _gemini(scope: Scope, programs: Programs) -> ClientSteps:
    settings = scope.folder("gemini") / "settings.json"
    entries = _grouped(
        tools=("BeforeTool", "AfterTool"),
        others=("BeforeAgent", "AfterAgent", "SessionStart", "SessionEnd"),
        # This client counts in milliseconds.
        hook={
            "name": NAME,
            "type": "command",
            "command": hook_command(programs.cas, "gemini"),
            "timeout": _SECONDS * 1000,
        },
        reads=gemini.READS,
    )
    called = _bearer(f"${{{TOKEN}}}")
    server = _entry(programs, scope.served, called=called, key_of_address="httpUrl")
    return ClientSteps(
        hooks=[_entries(settings, "gemini", programs, entries)],
        server=_member(settings, ["mcpServers", NAME], server),
    )


def _cursor(scope: Scope, programs: Programs) -> ClientSteps:
    folder = scope.base / ".cursor"
    entry = {"command": hook_command(programs.cas, "cursor")}
    of_tools = {**entry, "matcher": _all_but(cursor.READS)}
    entries = dict.fromkeys(("preToolUse", "postToolUse", "postToolUseFailure"), of_tools) | dict.fromkeys(
        ("afterFileEdit", "beforeSubmitPrompt", "sessionStart", "sessionEnd", "stop"), entry
    )
    server = _entry(programs, scope.served, called=_bearer(f"${{env:{TOKEN}}}"))
    return ClientSteps(
        hooks=[_versioned(_entries(folder / "hooks.json", "cursor", programs, entries))],
        server=_member(folder / "mcp.json", ["mcpServers", NAME], server),
    )


def _vscode(scope: Scope, programs: Programs) -> ClientSteps:
    if scope.project is not None:
        folder = scope.project / ".vscode"
    elif scope.platform == "darwin":
        folder = scope.home / "Library" / "Application Support" / "Code" / "User"
    else:
        folder = scope.configurations / "Code" / "User"
    called = {"type": "http", **_bearer(f"${{env:{TOKEN}}}")}
    server = _entry(programs, ["${workspaceFolder}"], started={"type": "stdio"}, called=called)
    hooks = scope.home / ".copilot" / "hooks" if scope.project is None else scope.project / ".github" / "hooks"
    hook = _hook(hook_command(programs.cas, "vscode", blocks=True))
    # The editor has no matchers, and no PostToolUseFailure and SessionEnd, which Copilot's own program has.
    tools = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
    events = (*tools, "UserPromptSubmit", "SessionStart", "SessionEnd", "Stop", "SubagentStart", "SubagentStop")
    return ClientSteps(
        hooks=[_versioned(_entries(hooks / f"{NAME}.json", "vscode", programs, dict.fromkeys(events, hook)))],
        server=_member(folder / "mcp.json", ["servers", NAME], server),
    )


def _opencode(scope: Scope, programs: Programs) -> ClientSteps:
    if scope.project is None:
        folder = scope.configurations / "opencode"
        settings = folder / "opencode.json"
    else:
        folder, settings = scope.project / ".opencode", scope.project / "opencode.json"
    started = {"type": "local", "enabled": True}
    called = {"type": "remote", "enabled": True, **_bearer(f"{{env:{TOKEN}}}")}
    server = _entry(programs, scope.served, started=started, called=called, is_one_list=True)
    return ClientSteps(
        # Both versions read the folder `plugins`, version 1 also `plugin`, where earlier versions of ours wrote.
        hooks=[
            _whole(folder / "plugins" / f"{NAME}.js", plugin(programs.cas, opencode.READS), FIRST_WORDS),
            _without(folder / "plugin" / f"{NAME}.js", FIRST_WORDS),
        ],
        server=_member(settings, ["mcp", NAME], server),
    )


WIRED: Final[Mapping[str, Callable[[Scope, Programs], ClientSteps]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini": _gemini,
    "cursor": _cursor,
    "vscode": _vscode,
    "opencode": _opencode,
}
"""The steps for each client."""


def _described(client: str, scope: Scope, programs: Programs) -> ClientSteps:
    description = described(client)
    file, base = description.settings, scope.base
    name = file.project if scope.project is not None else file.user
    if not name:
        raise ValueError(f"{description.title} has no settings for all projects: leave --user out")
    if scope.project is None and name.startswith(".config/"):
        base, name = scope.configurations, name.removeprefix(".config/")
    command = hook_command(programs.cas, client)
    companions = [_whole(base / path, content, content) for path, content in file.also.items()]
    if file.shape == "programs":
        first = f"#!/bin/sh\n# Written by `cas setup` for {description.title}.\n"
        return ClientSteps(
            hooks=[
                replace(_whole(base / name / event, f"{first}{command}\n", first), is_program=True)
                for event in description.events
            ],
            server=None,
        )
    hook: dict[str, object] = {"type": "command"} if file.shape == "groups" else {}
    hook |= {"command": command} | ({"timeout": file.timeout} if file.timeout else {})
    tools = {event for event, moment in description.events.items() if moment in {EventKind.BEFORE, EventKind.AFTER}}
    matcher = {"matcher": file.matcher} if file.matcher else {}
    entries: dict[str, Mapping[str, object]] = {}
    for event in description.events:
        entry = {"hooks": [hook]} if file.shape == "groups" else hook
        entries[event] = {**(matcher if event in tools else {}), **entry}
    return ClientSteps(hooks=[*companions, _entries(base / name, client, programs, entries)], server=None)


# ---- kinds of steps


def _entry(
    programs: Programs,
    arguments: Sequence[str],
    *,
    called: Mapping[str, object],
    started: Mapping[str, object] | None = None,
    key_of_address: str = "url",
    is_one_list: bool = False,
) -> ServerEntry:
    """Return the entry of our server: started by the client with these arguments, or called at its address."""
    return ServerEntry(
        command=programs.server,
        arguments=arguments,
        started=started or {},
        is_one_list=is_one_list,
        address=programs.address,
        name=programs.name,
        called=called,
        key_of_address=key_of_address,
    )


def _bearer(variable: str) -> dict[str, object]:
    """Return the member that sends our token; `variable`: how the client names the value of an environment variable."""
    return {"headers": {"Authorization": f"Bearer {variable}"}}


def _member(path: Path, keys: Sequence[Key], server: ServerEntry) -> SetupStep:
    """Return the step that puts our server's entry into a JSON file; what a user adds to the entry stays."""

    def existing(text: str) -> object:
        held = loaded(text)
        for key in keys:
            held = held.get(key) if isinstance(held, dict) else None
        return held

    def apply(text: str) -> str:
        if server.is_of_other_kind(existing(text)):
            text = without_member(text, keys)
        return with_members(text, keys, server.members(existing(text)))

    return SetupStep(
        path=path,
        what=_SERVER,
        apply=apply,
        undo=lambda text: text if server.is_foreign_entry(existing(text)) else without_member(text, keys),
        is_foreign_entry=lambda text: server.is_foreign_entry(existing(text)),
        has_extra_settings=lambda text: server.has_extra_settings(existing(text)),
        remark=lambda text: server.remark(existing(text)),
    )


def _table(path: Path, names: Sequence[str], server: ServerEntry) -> SetupStep:
    """Return the step that puts it into a TOML file."""

    def apply(text: str) -> str:
        if server.is_of_other_kind(toml_value(text, names)):
            text = without_toml(text, names)
        return with_toml(text, names, server.members(toml_value(text, names)))

    return SetupStep(
        path=path,
        what=_SERVER,
        apply=apply,
        undo=lambda text: text if server.is_foreign_entry(toml_value(text, names)) else without_toml(text, names),
        is_foreign_entry=lambda text: server.is_foreign_entry(toml_value(text, names)),
        has_extra_settings=lambda text: server.has_extra_settings(toml_value(text, names)),
        remark=lambda text: server.remark(toml_value(text, names)),
    )


def _whole(path: Path, content: str, first_words: str) -> SetupStep:
    """Return the step for a file that is entirely ours, which its first words show."""

    def apply(text: str) -> str:
        if text.strip() and not text.startswith(first_words):
            raise ValueError(
                f"`cas setup` did not write this file and needs its name: its own begins with {first_words!r}"
            )
        return content

    return SetupStep(
        path=path,
        what=_HOOKS,
        apply=apply,
        undo=lambda text: "" if text.startswith(first_words) else text,
        is_certain=True,
        is_partial=lambda text: text.startswith(first_words) and text != content,
    )


def _without(path: Path, first_words: str) -> SetupStep:
    """Return the step that removes a file of an earlier version of ours, which its first words show."""

    def undo(text: str) -> str:
        return "" if text.startswith(first_words) else text

    return SetupStep(path=path, apply=undo, undo=undo, is_certain=True)


def _hook(command: str, *, seconds: int = _SECONDS) -> dict[str, object]:
    return {"type": "command", "command": command, "timeout": seconds}


def _versioned(hooks: SetupStep) -> SetupStep:
    """Return the step for a file that must name the version of its format."""

    def apply(text: str) -> str:
        said = loaded(text)
        has_version = isinstance(said, dict) and "version" in said
        return hooks.apply(text if has_version else with_member(text, ["version"], 1))

    def undo(text: str) -> str:
        left = hooks.undo(text)
        # A version alone is what is left of a file that was ours.
        return without_member(left, ["version"]) if left != text and loaded(left) == {"version": 1} else left

    return replace(hooks, apply=apply, undo=undo)


def _all_but(names: Collection[str]) -> str:
    """Return the matcher of all tools but those named, as a regular expression of JavaScript."""
    return f"^(?!(?:{'|'.join(map(re.escape, sorted(names)))})$)"


def _grouped(
    *, tools: Iterable[str], others: Iterable[str], hook: Mapping[str, object], reads: Collection[str] = ()
) -> dict[str, Mapping[str, object]]:
    """Return the entries of many events, each a group of one hook: those of tools have a matcher.

    `reads`: tools that are left out.
    """
    matcher = _all_but(reads) if reads else "*"
    entries: dict[str, Mapping[str, object]] = {event: {"matcher": matcher, "hooks": [dict(hook)]} for event in tools}
    return entries | {event: {"hooks": [dict(hook)]} for event in others}


def _entries(path: Path, client: str, programs: Programs, entries: Mapping[str, Mapping[str, object]]) -> SetupStep:
    """Return the step that puts an entry of ours into the lists of events."""
    ours = is_ours(client, programs.cas)

    def apply(text: str) -> str:
        for event, entry in entries.items():
            text = with_hook(text, event, entry, ours)
        return text

    return SetupStep(
        path=path,
        what=_HOOKS,
        apply=apply,
        undo=lambda text: without_hooks(text, ours),
        is_certain=True,
        is_partial=lambda text: without_hooks(text, ours) != text and apply(text) != text,
    )


def _both(hooks: SetupStep, server: SetupStep) -> SetupStep:
    """Return the step that puts hooks and our server into one file."""
    return SetupStep(
        path=hooks.path,
        what=f"{hooks.what}, and {server.what}",
        apply=lambda text: server.apply(hooks.apply(text)),
        undo=lambda text: hooks.undo(server.undo(text)),
        is_foreign_entry=lambda text: server.is_foreign_entry(text) and hooks.undo(text) == text,
        has_extra_settings=server.has_extra_settings,
        remark=server.remark,
        is_partial=hooks.is_partial,
        hooks_alone=hooks,
    )
