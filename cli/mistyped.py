"""Mistyped names: what a name that nothing has may have been meant for, or where the names that there are stand."""

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cli.naming import is_on_disk, looks_like_state, path_named, recorded_named, state_named, state_parts
from cli.quoting import numbered, typed

if TYPE_CHECKING:
    from objstore import FileMissing, NoSuchName, Workspace

__all__ = ["last_held", "meant", "other_form"]

MOST: Final = 2

LOOKED_AT: Final = 20
"""Newest edits of a file among which one left it with bytes, or none is told."""

NEWEST: Final = frozenset({"head", "last", "latest", "newest", "tip"})
"""What other tools call the newest of all."""

NUMBERED: Final = re.compile(r"[0-9]+(:.*|\.\.[0-9]+)?")
"""Spellings of edits, hunks and ranges that begin with a number."""

LISTED: Final = {"snapshot": "snapshot list", "pin": "pin"}
"""The command that lists the names of a kind that has its own numbers."""


def meant(error: "NoSuchName", start: str, program: str = "cas") -> str:
    """Return a sentence on what the name may have been meant for; "" where there is nothing to say.

    `start`: at or above which folder the workspace is; `program`: how a command begins that is about it.
    """
    from objstore import CasError, FileMissing, NotInSnapshot, Workspace

    if error.kind in LISTED:
        return f"`{program} {LISTED[error.kind]}` lists them."
    try:
        with Workspace.find(start) as workspace:
            if isinstance(error, NotInSnapshot):
                return _either([_from_here(workspace, path) for path in error.near], error.spelling)
            return (
                _of_tools(workspace, error)
                or _of_several(error, program)
                or _of_gone(workspace, error, program)
                or _of_unrecorded_time(workspace, error)
                or _of_another_kind(workspace, error, program)
                or _of_edit(workspace, error)
                or _of_unrecorded(workspace, error)
                or _near(workspace, error, program)
                or _newest(workspace, error)
                or _on_disk(workspace, error)
            )
    except FileMissing as missing:
        return other_form(missing)
    except CasError:
        return ""  # what is wrong was said already; this would only have helped


def last_held(workspace: "Workspace", path: str) -> str:
    """Return how the newest state with bytes of what stood at `path` has to be typed; "" where there is none."""
    from objstore import EditFilter

    for view in workspace.edits(EditFilter(path=path, newest_first=True, limit=LOOKED_AT)):
        edit, there = view.edit, _from_here(workspace, path)
        if view.expired is None and edit.after is not None and os.fsdecode(edit.path) == path:
            return _typed(f"{there}@{view.seq}")
        if view.expired is None and edit.before is not None and os.fsdecode(edit.source or edit.path) == path:
            return _typed(f"{there}@{view.seq}^")
    return ""


def other_form(error: "FileMissing") -> str:
    """Return a sentence on what stands there by a name that looks the same; "" where nothing does."""
    return _same(error.other) if error.other else ""


def _same(name: str) -> str:
    return f"The same name in another Unicode form is there: in a shell, {numbered(name)} is it."


def _of_tools(workspace: "Workspace", error: "NoSuchName") -> str:
    """Return which tools there are with a name that is near to one that is none."""
    if error.kind != "tool":
        return ""
    from difflib import get_close_matches

    return _either(get_close_matches(error.spelling, filter(None, workspace.stats().tools), MOST), error.spelling)


def _of_several(error: "NoSuchName", program: str) -> str:
    """Return what is to be said of a name that looks like those of several edits."""
    name = error.spelling
    bounds = re.fullmatch(r"([0-9]{1,18})\.\.([0-9]{1,18})", name)
    if bounds is not None and int(bounds[1]) > int(bounds[2]):
        return f"A range begins with its lower number: {bounds[2]}..{bounds[1]}."
    if bounds is not None and error.kind == "recorded file":
        return f"`{program} show {name}` shows these edits."
    if "edit" in error.kind and re.fullmatch(r"[0-9]+(-[0-9]+|(,[0-9]+)+)", name):
        said = name.replace("-", "..") if "-" in name else name.replace(",", " ")
        return f"Several edits are named one by one, or as a range: {said}."
    return ""


def _of_another_kind(workspace: "Workspace", error: "NoSuchName", program: str) -> str:
    """Return what is to be said of a name that is right for something else."""
    from objstore import AmbiguousName, NoSuchName

    name, kind = error.spelling, error.kind
    takes_edits = "edit" in kind
    spelt = _state_meant(workspace, name)
    if spelt is not None and (takes_edits or kind == "recorded file"):
        try:
            state_named(workspace, name)
        except (NoSuchName, AmbiguousName):
            return ""
        if kind == "recorded file":
            return f"That is a state: its file is {_typed(spelt[0])}."
        number = spelt[1].removesuffix("^")
        shows = f"; `{program} show {number}` shows the edit" if number.isdigit() else ""
        return f"That is a state: `{program} cat {_typed(name)}` prints it{shows}."
    if kind == "edit" or kind.endswith("file"):
        with suppress(NoSuchName, AmbiguousName):
            conversation = workspace.find_conversation(name)
            verb = "names" if kind == "edit" else "lists"
            given = "--conversation" if kind == "edit" else f"{program} log --conversation"
            return f"It is a conversation: `{given} {typed(conversation)}` {verb} its edits."
    if kind in {"file", "recorded file", "state"} and "@" not in name:
        with suppress(NoSuchName, AmbiguousName):
            view, _ = workspace.find_units(name)
            path = _typed(_from_here(workspace, os.fsdecode(view.edit.path)))
            shows = f"`{program} show {view.seq}` shows what it changed"
            return f"It is an edit: {shows}, and {path}@{view.seq} is its result."
    return ""


def _of_gone(workspace: "Workspace", error: "NoSuchName", program: str) -> str:
    """Return what is to be said of a path where a file stood once, or where a folder is."""
    from objstore import NameKind

    name, kind = error.spelling, error.kind
    if kind not in {"recorded file", "state"} or _state_meant(workspace, name) is not None:
        return ""
    path = recorded_named(workspace, name)
    if held := last_held(workspace, path):
        return f"It is there no more: `{program} cat {held}` prints what it held."
    if workspace.names_like(NameKind.PATH, "" if path == "." else f"{path}/", 1):
        return f"It is a folder: `{program} ls {_typed(name)}` lists the files in it."
    return ""


def _of_unrecorded_time(workspace: "Workspace", error: "NoSuchName") -> str:
    """Return what is to be said of a state at a moment before which nothing was recorded at its path."""
    from datetime import datetime

    from objstore import EditFilter, moment_of

    spelt = _state_meant(workspace, error.spelling)
    moment = None if spelt is None else moment_of(spelt[1], datetime.now().astimezone())
    if spelt is None or moment is None:
        return ""
    path = recorded_named(workspace, spelt[0])
    edits = (view.edit for view in workspace.edits(EditFilter(path=path)))
    first = next((edit for edit in edits if os.fsencode(path) in {edit.path, edit.source}), None)
    if first is None or first.time <= moment:
        return ""
    from cli.rendering import moment as shown_moment

    since = f"its first record is edit {first.seq}, of {shown_moment(first.time)}"
    return f"Nothing tells what stood at {_typed(spelt[0])} then: {since}."


def _of_edit(workspace: "Workspace", error: "NoSuchName") -> str:
    """Return what is to be said of an edit that is there: that it is another file's, or which hunks it has."""
    from objstore import NameKind, NoSuchName

    spelt = _state_meant(workspace, error.spelling)
    name, _, hunk = error.spelling.partition(":")
    number = spelt[1] if spelt is not None else name
    try:
        view, _ = workspace.find_units(number.removesuffix("^"))
    except NoSuchName:
        return ""
    if spelt is not None:
        own = os.fsdecode(view.edit.path)
        path = _from_here(workspace, own)
        if view.edit.after is None and not number.endswith("^"):
            return f"Edit {view.seq} deleted {_typed(path)}: did you mean {_typed(path)}@{number}^?"
        if own == path_named(workspace, spelt[0]):
            return ""  # it is right, and there are no bytes
        path = numbered(path) if _looks_like(path, spelt[0]) else _typed(path)
        return f"Edit {view.seq} is of {path}: did you mean {path}@{number}?"
    found = workspace.names_like(NameKind.EDIT, f"{view.seq}:", 1 + len(view.units))
    if not hunk or not found:
        return ""
    return f"Edit {view.seq} has {found[0].name}" + (f" to {found[-1].name}." if len(found) > 1 else ".")


def _of_unrecorded(workspace: "Workspace", error: "NoSuchName") -> str:
    """Return what is to be said of a file on disk that no edit tells of, and whose name is spelt like a state."""
    from objstore import EditFilter

    name = error.spelling
    if state_parts(name) is None or not is_on_disk(workspace, name):
        return ""
    is_recorded = workspace.edits(EditFilter(path=recorded_named(workspace, name), limit=1))
    return "" if is_recorded else "That is a file on disk, of which no edit is recorded."


def _state_meant(workspace: "Workspace", name: str) -> tuple[str, str] | None:
    """Return path and version of a name that is spelt as a state, unless a file on disk has it."""
    return state_parts(name) if looks_like_state(workspace, name) else None


def _near(workspace: "Workspace", error: "NoSuchName", program: str) -> str:
    """Return which names are near to it."""
    from objstore import NameKind

    spelling = error.spelling if is_on_disk(workspace, error.spelling) else error.spelling.partition("@")[0]
    path = path_named(workspace, spelling)
    if "edit" in error.kind and any(found.name == path for found in workspace.names_like(NameKind.PATH, path, 1)):
        lists = f"`{program} log {_typed(spelling)}` lists its edits"
        names = f", and `--file {_typed(spelling)}` names them" if error.kind == "edit" else ""
        return f"It is a file: {lists}{names}."
    found: list[str] = []
    if "conversation" in error.kind:
        found += workspace.names_near(NameKind.CONVERSATION, spelling, MOST)
    if "file" in error.kind or "state" in error.kind:
        paths = workspace.names_near(NameKind.PATH, path, MOST)
        found += [_from_here(workspace, near) for near in paths]
    return "" if spelling in found else _either(found[:MOST], spelling)


def _looks_like(name: str, other: str) -> bool:
    """Return whether two names differ, and in nothing but their Unicode form."""
    if name == other or name.isascii() or other.isascii():
        return False
    from unicodedata import normalize

    return normalize("NFC", name) == normalize("NFC", other)


def _either(found: list[str], spelling: str) -> str:
    if same := [name for name in found if _looks_like(name, spelling)]:
        return _same(same[0])
    return f"Did you mean {' or '.join(map(_typed, found))}?" if found else ""


def _on_disk(workspace: "Workspace", error: "NoSuchName") -> str:
    """Return what stands on disk by a name that looks the same, though nothing recorded it; "" where nothing does."""
    if "file" in error.kind and not error.spelling.isascii():
        workspace.files.facts(path_named(workspace, error.spelling))  # it tells of it where it fails
    return ""


def _newest(workspace: "Workspace", error: "NoSuchName") -> str:
    """Return how far the numbers go, of a name that has one."""
    from objstore import NameKind

    if error.kind in {"conversation", "tool"}:
        return ""
    newest = workspace.names_like(NameKind.EDIT, "", 1)
    spelt = error.spelling
    path, _, version = spelt.rpartition("@")
    named = version.removesuffix("^").lower() if path else spelt.lower()
    if newest and (NUMBERED.fullmatch(named) or named in NEWEST):
        return f"The newest edit is {newest[0].name}."
    if path and error.kind == "state":
        return "Behind @ stands an edit (12, or 12^ for before it) or a time (2h, yesterday, 2026-11-20)."
    return ""


def _typed(path: str) -> str:
    """Return a path as it has to be typed in a shell: it may begin as an option does."""
    return typed(f"./{path}" if path.startswith("-") else path)


def _from_here(workspace: "Workspace", path: str) -> str:
    """Return the path as it is to be typed where the person stands, the other way round of `path_named`."""
    from pathlib import Path

    here = Path.cwd()
    return os.path.relpath(Path(workspace.root, path), here) if here.is_relative_to(workspace.root) else path
