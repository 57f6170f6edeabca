"""VS Code: agent hooks in .github/hooks, shaped like those of Claude Code, with tools and fields of its own.

Which program runs them depends on who does a session's work. The editor itself: its page on agent hooks (a preview),
which writes common fields in camel case and says that all are in snake case, so both count. Copilot's own program, in
the editor or in a terminal: its hooks reference. That one names tools as Claude Code does, at least before they run,
and gives their calls no ids. Both also run the hooks of Claude Code's settings, and report the same to them in the same
form.
"""

from collections.abc import Iterator
from typing import Final

from cli.hooks.clients.event import (
    ANYWHERE,
    COMMON,
    Event,
    EventKind,
    Payload,
    TouchedPaths,
    canonical_tool_name,
    context_in_copilot,
    joined_by,
    map_of,
    moment_ignoring_compaction,
    notes_of,
    patched,
    paths_touched_by,
    text,
)

__all__ = ["notice", "read", "reply"]

_MOMENTS: Final = {**COMMON, "PostToolUseFailure": EventKind.AFTER, "SessionEnd": EventKind.ALL_IDLE}
_WRITES: Final = frozenset(
    {"create_file", "replace_string_in_file", "multi_replace_string_in_file", "insert_edit_into_file"}
    | {"edit_notebook_file", "createFile", "editFiles", "deleteFile", "Write", "Edit"}
)
_READS: Final = frozenset(
    {"read_file", "list_dir", "file_search", "grep_search", "semantic_search", "get_errors", "fetch_webpage"}
    | {"list_code_usages", "get_changed_files", "test_search", "get_terminal_output", "terminal_last_command"}
    | {"manage_todo_list", "get_vscode_api", "github_repo", "view_image", "read_project_structure", "tool_search"}
    | {"search_workspace_symbols", "copilot_getNotebookSummary", "read_notebook_cell_output", "test_failure"}
    | {"get_project_setup_info", "get_search_view_results", "terminal_selection", "get_task_output"}
    | {"resolve_memory_file_uri", "vscode_askQuestions", "switch_agent", "runSubagent", "search_subagent"}
    | {"Read", "Glob", "Grep", "WebFetch", "WebSearch", "AskUserQuestion", "TodoWrite", "Agent", "Task"}
)
"""Tools that change no file themselves: a subagent's tools have events of their own."""

_PATCH: Final = "apply_patch"
_PATHS: Final = ("filePath", "file_path", "path")


def read(payload: Payload) -> Event:
    """Return the event that a hook's payload describes."""
    name = text(payload, "hook_event_name", "hookEventName")
    call = text(payload, "tool_use_id", "toolUseId")
    tool = canonical_tool_name(text(payload, "tool_name", "toolName"), call)
    given = map_of(payload, "tool_input") or map_of(payload, "toolInput")
    return Event(
        moment=moment_ignoring_compaction(payload, _MOMENTS.get(name, EventKind.OTHER)),
        conversation=text(payload, "session_id", "sessionId"),
        place=text(payload, "cwd"),
        name=name,
        tool=tool,
        call=call,
        given=given or payload.get("tool_input"),
        touched=_touched(tool, given, text(payload, "tool_input")),
        joins=joined_by(tool, given, payload),
        prompt=text(payload, "prompt"),
        notes=notes_of("vscode", model=text(payload, "model"), command=text(given, "command")),
    )


def reply(event: Event, message: str) -> Payload | None:
    """Return what to print so that the agent reads `message`."""
    return context_in_copilot(event, message)


def notice(event: Event, message: str) -> None:
    """Return None: Copilot's own program documents no such field."""


def _touched(tool: str, given: Payload, bare: str) -> TouchedPaths:
    """Return the files that a tool may change. `bare`: its input if that is a text and no map."""
    if tool == _PATCH or tool in _WRITES:
        files = patched(bare or text(given, "input", "patch"))
        if files or tool == _PATCH:
            return files or ANYWHERE
    return paths_touched_by(tool, list(dict.fromkeys(_named(given))), reads=_READS, writes=_WRITES)


def _named(given: Payload) -> Iterator[str]:
    yield from filter(None, [text(given, *_PATHS)])
    for name in ("files", "replacements"):
        inner = given.get(name)
        for each in inner if isinstance(inner, list) else ():
            if isinstance(each, str) and each:
                yield each
            elif isinstance(each, dict):
                yield from filter(None, [text(each, *_PATHS)])
