"""Suggest names, commands and options near an unknown one, or give the range of valid names."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Final
from unicodedata import normalize

from cli.screen.quoting import numbered, typed
from cli.selection.selectors import is_on_disk, looks_like_state, path_named, recorded_named, state_named, state_parts
from objstore import AmbiguousName, CasError, EditFilter, FileMissing, NameKind, NoSuchName, NotInSnapshot, Workspace

__all__ = ["command_meant", "last_held", "name_meant", "option_meant"]

SYNONYMS: Final = {
    "abandon revert": "`cas reject EDIT` takes an edit out; `cas undo` undoes the newest decision",
    "add commit": "nothing needs to be added; `cas record` records what changed, now",
    "annotate": "`cas blame PATH` shows who wrote each line",
    "backup stash": "`cas snapshot` saves the current files, and `cas snapshot restore` brings them back",
    "check": "`cas fsck` checks the store",
    "checkout": "`cas restore PATH@EDIT` brings a state back",
    "clone": "`cas export --bundle FILE` and `cas import FILE DIR` take the history elsewhere",
    "dump": "`cas cat STATE` prints a state",
    "cleanup forget": "`cas gc` expires old history, `cas purge` removes some bytes for good",
    "grep": "`cas log -S TEXT` finds the edits that added or removed a text",
    "op reflog": "`cas records` lists edits and decisions; `cas undo` undoes the newest decision",
    "prune": "`cas gc` frees what nothing holds any more",
    "squash": "`cas amend EDIT` fixes an edit in your editor",
    "version": "`cas --version` prints it",
    "--after": "--since TIME",
    "--author": "--tool NAME",
    "--before": "--until TIME",
    "--format --porcelain": "--json",
    "--grep": "-S TEXT",
    "--keep-within": "--older-than AGE",
    "--limit --max-count": "-n NUMBER",
    "--message --reason -m": "Give a reason when you reject: cas reject --reason TEXT.",
    "--name-only --name-status": "--stat",
    "--no-pager": "Set CAS_PAGER=cat.",
    "--oneline --short": "Leave it out.",
    "--path": "--file PATH",
    "--session": "--conversation ID",
}
"""Commands and options of other tools, and what does the same here: an option counts if the command has it."""

MOST: Final = 2  # names in one suggestion
LOOKED_AT: Final = 20  # newest edits of a file that are searched for one that left it with content
NUMBERED: Final = r"([0-9]+(:.*|\.\.[0-9]+)?|head|last|latest|newest|tip)\^?"  # or another tool's name for the newest


def command_meant(name: str, commands: Iterable[str]) -> str:
    """Return a message about an unknown command with one that is known; "" if none is similar."""
    if meant := _synonym(name):
        return f"There is no `{name}`: {meant}."
    near = _either(_similar(name, list(commands)))
    return f"No such command {name!r}. {near}" if near else ""


def option_meant(named: str, options: Iterable[str]) -> str:
    """Return a sentence on which of a command's `options` an unknown one may have been meant for; "" if none is."""
    has = {name.lstrip("-"): name for name in options if name.startswith("-")}
    meant = _synonym(named)
    if meant.endswith(".") or meant.split(" ")[0].lstrip("-") in has:
        return meant if meant.endswith(".") else f"Here it is {meant}."
    return _either([has[near] for near in _similar(named.lstrip("-"), list(has), 0.75)])


LISTED_BY: Final = {
    "snapshot": "snapshot list",
    "pin": "pin list",
    "turn": "log --turns",
    "session": "log --sessions",
    "comment": "comment --all",
}
"""The command that lists things of a kind that have few names."""


def name_meant(error: NoSuchName | FileMissing, start: str, program: str = "cas") -> str:
    """Return a sentence on what a name may mean in the workspace of the folder `start`; "" if nothing is similar."""
    if isinstance(error, FileMissing):
        return _either([_typed(error.other, error.path)] if error.other else [])
    if error.kind in LISTED_BY:
        return f"`{program} {LISTED_BY[error.kind]}` lists them."
    try:
        with Workspace.find(start) as workspace:
            if isinstance(error, NotInSnapshot):
                return _either([_typed(_from_here(workspace, path), error.spelling) for path in error.near])
            if error.kind == "tool":
                return _either(_similar(error.spelling, list(filter(None, workspace.history.stats().tools))))
            rules = (_state, _other_kind, _near, _limits)
            return next(filter(None, (rule(workspace, error, program) for rule in rules)), "")
    except FileMissing as missing:
        return name_meant(missing, start)
    except CasError:
        return ""  # the error was already reported; this would only have helped


def last_held(workspace: Workspace, path: str) -> str:
    """Return how to type the newest state with content of the file at `path`; "" if there is none."""
    for view in workspace.history.edits(EditFilter(path=path, newest_first=True, limit=LOOKED_AT)):
        edit = view.edit
        for name, blob, suffix in ((edit.path, edit.after, ""), (edit.source or edit.path, edit.before, "^")):
            if view.expired is None and blob is not None and os.fsdecode(name) == path:
                return _typed(f"{_from_here(workspace, path)}@{view.seq}{suffix}")
    return ""


def _state(workspace: Workspace, error: NoSuchName, program: str) -> str:
    """Return what prints a state, or which file its edit changed."""
    if not looks_like_state(workspace, error.spelling) or (parts := state_parts(error.spelling)) is None:
        return ""
    with suppress(NoSuchName, AmbiguousName):
        if "state" not in error.kind:
            state_named(workspace, error.spelling)
            return f"That is a state: `{program} cat {_typed(error.spelling)}` prints it."
        view, _ = workspace.history.find_units(parts[1].removesuffix("^"))
        own, deleted = os.fsdecode(view.edit.path), view.edit.after is None and not parts[1].endswith("^")
        if deleted or own != path_named(workspace, parts[0]):
            path, did = _typed(_from_here(workspace, own), parts[0]), "deleted" if deleted else "changed"
            return f"Edit {view.seq} {did} {path}: did you mean {path}@{parts[1]}{'^' * deleted}?"
    return ""


def _other_kind(workspace: Workspace, error: NoSuchName, program: str) -> str:
    """Return which command takes this name, which is that of a file, a folder, a conversation or an edit."""
    kind, name, path = error.kind, _typed(error.spelling), recorded_named(workspace, error.spelling)
    known = workspace.history.names_with_prefix
    if "edit" in kind and any(found.name == path for found in known(NameKind.PATH, path, 1)):
        return f"It is a file: `{program} log {name}` lists its edits."
    if kind in {"recorded file", "state"} and (held := last_held(workspace, path)):
        return f"The file no longer exists: `{program} cat {held}` prints its last content."
    if known(NameKind.PATH, "" if path == "." else f"{path}/", 1):
        return f"It is a folder: `{program} ls {name}` lists the files in it."
    with suppress(NoSuchName, AmbiguousName):
        conversation = typed(workspace.history.find_conversation(error.spelling))
        lists, them = ("", "names") if kind in {"edit", "edit or file"} else (f"{program} log ", "lists")
        return f"It is a conversation: `{lists}--conversation {conversation}` {them} its edits."
    with suppress(NoSuchName, AmbiguousName):
        view, _ = workspace.history.find_units(error.spelling)
        state = f"{_typed(_from_here(workspace, os.fsdecode(view.edit.path)))}@{view.seq}"
        return f"It is an edit: `{program} show {view.seq}` shows what it changed, and {state} is its result."
    return ""


def _near(workspace: Workspace, error: NoSuchName, _: str) -> str:
    name = error.spelling if is_on_disk(workspace, error.spelling) else error.spelling.partition("@")[0]
    similar = workspace.history.names_similar_to
    found = similar(NameKind.CONVERSATION, name, MOST) if "conversation" in error.kind else []
    if "file" in error.kind or "state" in error.kind:
        found += [_from_here(workspace, near) for near in similar(NameKind.PATH, path_named(workspace, name), MOST)]
    return "" if name in found else _either([_typed(near, name) for near in found[:MOST]])


def _limits(workspace: Workspace, error: NoSuchName, program: str) -> str:
    """Return which edits there are, for a name that contains a number."""
    if re.fullmatch(r"[0-9]{1,18}(\.\.|-|(,[0-9]{1,18})*,)[0-9]{1,18}", error.spelling):
        numbers = sorted(re.findall("[0-9]+", error.spelling), key=int)
        named = " ".join(numbers) if "," in error.spelling else "..".join(numbers)
        if error.spelling != named or error.kind == "recorded file":
            return f"`{program} show {named}` shows these edits."
    if is_on_disk(workspace, error.spelling) and state_parts(error.spelling):
        return "That file is on disk, but no edit of it is recorded."
    path, _, version = error.spelling.rpartition("@")
    edit, _, hunk = version.partition(":")
    if hunk and workspace.history.names_with_prefix(NameKind.EDIT, f"{edit}:", 1):
        return f"`{program} show {edit}` shows its hunks."
    newest = workspace.history.names_with_prefix(NameKind.EDIT, "", 1)
    if error.kind != "conversation" and newest and re.fullmatch(NUMBERED, version, re.IGNORECASE):
        return f"The newest edit is {newest[0].name}."
    if path and error.kind == "state":
        return "After @ comes an edit (12, or 12^ for before it), or a time (2h, 2026-11-20) since its first record."
    return ""


def _synonym(word: str) -> str:
    return next((meant for words, meant in SYNONYMS.items() if word in words.split()), "")


def _similar(name: str, names: list[str], cutoff: float = 0.6) -> list[str]:
    return [whole for whole in names if whole.startswith(name)][:MOST] or get_close_matches(name, names, MOST, cutoff)


def _either(found: list[str]) -> str:
    return f"Did you mean {' or '.join(found)}?" if found else ""


def _typed(path: str, instead_of: str = "") -> str:
    """Return a path as it must be typed in a shell: it may begin like an option, or look like another name."""
    looks_alike = path != instead_of and normalize("NFC", path) == normalize("NFC", instead_of)
    return numbered(path) if looks_alike else typed(f"./{path}" if path.startswith("-") else path)


def _from_here(workspace: Workspace, path: str) -> str:
    """Return the path as typed from the current folder, the reverse of `path_named`."""
    here = Path.cwd()
    return os.path.relpath(Path(workspace.root, path), here) if here.is_relative_to(workspace.root) else path
