"""VS Code: agent hooks in .github/hooks, shaped like those of Claude Code, with tools and fields of its own.

Source: the editor's page on agent hooks (a preview), which also says that it runs hooks of Claude Code's settings, and
that it hears no matchers. The page spells common fields in camel case and says that all are in snake case: both count.
"""

from collections.abc import Iterator
from typing import Final

from cli.clients.event import (
    ANYWHERE,
    COMMON,
    Event,
    Moment,
    Payload,
    Touched,
    additional_context,
    map_of,
    notes_of,
    patched,
    text,
    touched_by,
)

__all__ = ["read", "reply"]

_WRITES: Final = frozenset(
    {"create_file", "replace_string_in_file", "multi_replace_string_in_file", "insert_edit_into_file"}
    | {"edit_notebook_file", "createFile", "editFiles", "deleteFile"}
)
_READS: Final = frozenset(
    {"read_file", "list_dir", "file_search", "grep_search", "semantic_search", "get_errors", "fetch_webpage"}
    | {"list_code_usages", "get_changed_files", "test_search", "get_terminal_output", "terminal_last_command"}
    | {"manage_todo_list", "get_vscode_api", "github_repo", "view_image"}
)
_PATCH: Final = "apply_patch"
_PATHS: Final = ("filePath", "file_path", "path")
_CAN_TELL: Final = frozenset({"SessionStart", "PostToolUse"})


def read(payload: Payload) -> Event:
    """Return what a hook event says."""
    name = text(payload, "hook_event_name", "hookEventName")
    tool = text(payload, "tool_name", "toolName")
    given = map_of(payload, "tool_input") or map_of(payload, "toolInput")
    return Event(
        moment=COMMON.get(name, Moment.OTHER),
        conversation=text(payload, "session_id", "sessionId"),
        place=text(payload, "cwd"),
        name=name,
        tool=tool,
        call=text(payload, "tool_use_id", "toolUseId"),
        touched=_touched(tool, given),
        prompt=text(payload, "prompt"),
        notes=notes_of("vscode", model=text(payload, "model"), command=text(given, "command")),
    )


def reply(event: Event, told: str) -> Payload | None:
    """Return what to print so that the agent gets to read `told`."""
    return additional_context(event, told, _CAN_TELL)


def _touched(tool: str, given: Payload) -> Touched:
    if tool == _PATCH:
        return patched(text(given, "input", "patch")) or ANYWHERE
    return touched_by(tool, list(dict.fromkeys(_named(given))), reads=_READS, writes=_WRITES)


def _named(given: Payload) -> Iterator[str]:
    yield from filter(None, [text(given, *_PATHS)])
    for name in ("files", "replacements"):
        inner = given.get(name)
        for each in inner if isinstance(inner, list) else ():
            if isinstance(each, str) and each:
                yield each
            elif isinstance(each, dict):
                yield from filter(None, [text(each, *_PATHS)])
