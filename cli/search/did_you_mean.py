"""Suggest what an unknown name may have been meant for, or say how far the names go."""

import os
import re
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from cli.screen.quoting import numbered, typed
from cli.selection.selectors import is_on_disk, looks_like_state, path_named, recorded_named, state_named, state_parts

if TYPE_CHECKING:
    from objstore import FileMissing, NoSuchName, Workspace

__all__ = ["last_held", "meant", "other_form"]

MOST: Final = 2
LOOKED_AT: Final = 20  # newest edits of a file that are searched for one that left it with content

NEWEST: Final = r"([0-9]+(:.*|\.\.[0-9]+)?|head|last|latest|newest|tip)\^?"
"""Pattern of what begins with a number, and of other tools' names for the newest."""

LISTED: Final = {"snapshot": "snapshot list", "pin": "pin"}
"""The command that lists the names of a kind with its own numbers."""


def meant(error: "NoSuchName", start: str, program: str = "cas") -> str:
    """Return a sentence on what the name may have been meant for; "" if there is no suggestion.

    `start`: the folder at or above which the workspace is; `program`: how a command about it begins.
    """
    from objstore import CasError, FileMissing, NotInSnapshot, Workspace

    if error.kind in LISTED:
        return f"`{program} {LISTED[error.kind]}` lists them."
    try:
        with Workspace.find(start) as workspace:
            if isinstance(error, NotInSnapshot):
                return _either([_from_here(workspace, path) for path in error.near], error.spelling)
            if error.kind == "tool":
                tools = [tool for tool in workspace.history.stats().tools if tool]
                return _either(get_close_matches(error.spelling, tools, MOST), error.spelling)
            return (
                _several(error, program)
                or _other_kind(workspace, error, program)
                or _near(workspace, error, program)
                or _newest(workspace, error, program)
            )
    except FileMissing as missing:
        return other_form(missing)
    except CasError:
        return ""  # the error was already reported; this would only have helped


def last_held(workspace: "Workspace", path: str) -> str:
    """Return how to type the newest state with content of the file at `path`; "" if there is none."""
    from objstore import EditFilter

    for view in workspace.history.edits(EditFilter(path=path, newest_first=True, limit=LOOKED_AT)):
        edit, there = view.edit, _from_here(workspace, path)
        if view.expired is None and edit.after is not None and os.fsdecode(edit.path) == path:
            return _typed(f"{there}@{view.seq}")
        if view.expired is None and edit.before is not None and os.fsdecode(edit.source or edit.path) == path:
            return _typed(f"{there}@{view.seq}^")
    return ""


def other_form(error: "FileMissing") -> str:
    """Return a sentence about an existing file whose name looks the same; "" if there is none."""
    return _same(error.other) if error.other else ""


def _same(name: str) -> str:
    return f"There is a file with the same name in another Unicode form: type it as {numbered(name)}."


def _several(error: "NoSuchName", program: str) -> str:
    """Return how to name several edits, for a name that looks like several."""
    name = error.spelling
    bounds = re.fullmatch(r"([0-9]{1,18})\.\.([0-9]{1,18})", name)
    if bounds is not None and int(bounds[1]) > int(bounds[2]):
        return f"A range begins with its lower number: {bounds[2]}..{bounds[1]}."
    if bounds is not None and error.kind == "recorded file":
        return f"`{program} show {name}` shows these edits."
    if "edit" in error.kind and re.fullmatch(r"[0-9]+(-[0-9]+|(,[0-9]+)+)", name):
        return f"Name several edits one by one, or as a range: {name.replace('-', '..').replace(',', ' ')}."
    return ""


def _other_kind(workspace: "Workspace", error: "NoSuchName", program: str) -> str:
    """Return what has this name among other kinds of names."""
    from objstore import AmbiguousName, NameKind, NoSuchName

    name, kind = error.spelling, error.kind
    state = state_parts(name) if looks_like_state(workspace, name) else None
    with suppress(NoSuchName, AmbiguousName):
        if state is not None and "state" in kind:
            return _other_file(workspace, *state)
        if state is not None and ("edit" in kind or kind == "recorded file"):
            state_named(workspace, name)
            return f"That is a state: `{program} cat {_typed(name)}` prints it."
    if kind in {"recorded file", "state"} and state is None:
        path = recorded_named(workspace, name)
        if held := last_held(workspace, path):
            return f"The file no longer exists: `{program} cat {held}` prints its last content."
        if workspace.history.names_with_prefix(NameKind.PATH, "" if path == "." else f"{path}/", 1):
            return f"It is a folder: `{program} ls {_typed(name)}` lists the files in it."
    with suppress(NoSuchName, AmbiguousName):
        if kind == "edit" or kind.endswith("file"):
            conversation = typed(workspace.history.find_conversation(name))
            given = "--conversation" if kind == "edit" else f"{program} log --conversation"
            return f"It is a conversation: `{given} {conversation}` {'names' if kind == 'edit' else 'lists'} its edits."
    with suppress(NoSuchName, AmbiguousName):
        if kind in {"file", "recorded file", "state"} and "@" not in name:
            view, _ = workspace.history.find_units(name)
            path = _typed(_from_here(workspace, os.fsdecode(view.edit.path)))
            shows = f"`{program} show {view.seq}` shows what it changed"
            return f"It is an edit: {shows}, and {path}@{view.seq} is its result."
    return ""


def _other_file(workspace: "Workspace", named: str, version: str) -> str:
    """Return the state of the edit if the edit changed a different file than the named one, or deleted it."""
    view, _ = workspace.history.find_units(version.removesuffix("^"))
    own = os.fsdecode(view.edit.path)
    path = _from_here(workspace, own)
    path = numbered(path) if _looks_like(path, named) else _typed(path)
    if view.edit.after is None and not version.endswith("^"):
        return f"Edit {view.seq} deleted {path}: did you mean {path}@{view.seq}^?"
    if own == path_named(workspace, named):
        return ""  # the name is right, and there is no content
    return f"Edit {view.seq} changed {path}: did you mean {path}@{version}?"


def _near(workspace: "Workspace", error: "NoSuchName", program: str) -> str:
    """Return similar names."""
    from objstore import NameKind

    spelling = error.spelling if is_on_disk(workspace, error.spelling) else error.spelling.partition("@")[0]
    path = path_named(workspace, spelling)
    if "edit" in error.kind and any(
        found.name == path for found in workspace.history.names_with_prefix(NameKind.PATH, path, 1)
    ):
        names = f", and `--file {_typed(spelling)}` names them" if error.kind == "edit" else ""
        return f"It is a file: `{program} log {_typed(spelling)}` lists its edits{names}."
    found: list[str] = []
    if "conversation" in error.kind:
        found += workspace.history.names_similar_to(NameKind.CONVERSATION, spelling, MOST)
    if "file" in error.kind or "state" in error.kind:
        found += [_from_here(workspace, near) for near in workspace.history.names_similar_to(NameKind.PATH, path, MOST)]
    return "" if spelling in found else _either(found[:MOST], spelling)


def _newest(workspace: "Workspace", error: "NoSuchName", program: str) -> str:
    """Return how far the numbers go, for a name that contains one."""
    from objstore import NameKind

    if is_on_disk(workspace, error.spelling) and state_parts(error.spelling):
        return "That file is on disk, but no edit of it is recorded."
    path, _, version = error.spelling.rpartition("@")
    edit, _, hunk = version.partition(":")
    if hunk and workspace.history.names_with_prefix(NameKind.EDIT, f"{edit}:", 1):
        return f"`{program} show {edit}` shows its hunks."
    newest = workspace.history.names_with_prefix(NameKind.EDIT, "", 1)
    if error.kind != "conversation" and newest and re.fullmatch(NEWEST, version, re.IGNORECASE):
        return f"The newest edit is {newest[0].name}."
    if path and error.kind == "state":
        return "After @ comes an edit (12, or 12^ for before it), or a time (2h, 2026-11-20) since its first record."
    return ""


def _looks_like(name: str, other: str) -> bool:
    """Return whether two names differ only in their Unicode form."""
    if name == other or name.isascii() or other.isascii():
        return False
    from unicodedata import normalize

    return normalize("NFC", name) == normalize("NFC", other)


def _either(found: list[str], spelling: str) -> str:
    if same := [name for name in found if _looks_like(name, spelling)]:
        return _same(same[0])
    return f"Did you mean {' or '.join(map(_typed, found))}?" if found else ""


def _typed(path: str) -> str:
    """Return a path as it must be typed in a shell: it may begin like an option."""
    return typed(f"./{path}" if path.startswith("-") else path)


def _from_here(workspace: "Workspace", path: str) -> str:
    """Return the path as typed from the current folder, the reverse of `path_named`."""
    from pathlib import Path

    here = Path.cwd()
    return os.path.relpath(Path(workspace.root, path), here) if here.is_relative_to(workspace.root) else path
