"""Parts of several answers: shapes as the page shows them, paths, edits. `static/types.d.ts` describes them."""

import os
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_from_bytes

from cli.render.authors import Authors
from cli.render.turns import session_name
from cli.screen.terminal import shown_name, visible
from objstore import UNKNOWN_AGENT, EditAway, NoSuchName, Origin, edit_summary, running_shape

if TYPE_CHECKING:
    from objstore import (
        ChangeSummary,
        EditView,
        FileSummary,
        NetChange,
        NetFile,
        RunningCall,
        Workspace,
    )

__all__ = [
    "Edits",
    "at_path",
    "changes_counted",
    "file_shape",
    "kind_of",
    "named",
    "origin_of",
    "path_key",
    "running_call",
    "shown",
]

Shape = dict[str, Any]

_IMAGES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_MARKDOWN: Final = (".md", ".markdown")
_NOTEBOOK: Final = ".ipynb"


def path_key(path: str) -> str:
    """Return a path percent-encoded byte by byte, as pages name it."""
    return quote_from_bytes(os.fsencode(path), safe="/")


def named(path: str) -> Shape:
    """Return the fields for a path: its key and its text as shown."""
    return {"path": path_key(path), "name": shown_name(path)}


def shown(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    """Return a JSON value with the control and direction characters of all its texts escaped."""
    match value:
        case str():
            return visible(value, keep="\t\n")
        case dict():
            return {name: shown(each) for name, each in value.items()}
        case list():
            return [shown(each) for each in value]
        case _:
            return value


def at_path(shape: Shape, path: str) -> Shape:
    """Return a shape of what is at a path as the page gets it: escaped, with the path's key and name."""
    return {**shown(shape), **named(path)}


def kind_of(path: str, *, is_binary: bool) -> str:
    """Return how a file can be shown: as text, binary, image, markdown or notebook."""
    lower = path.lower()
    if is_binary:
        return "image" if lower.endswith(_IMAGES) else "binary"
    if lower.endswith(_MARKDOWN):
        return "markdown"
    return "notebook" if lower.endswith(_NOTEBOOK) else "text"


def file_shape(
    file: "FileSummary | NetFile", seen: Collection[bytes], turns: Iterable[int], *, is_unrecorded: bool
) -> Shape:
    """Return the summary of a file with pending changes, which are part of `turns`."""
    return {
        "document": file.document,
        **named(file.path),
        "name_before": shown_name(file.path_before) if file.path_before != file.path else "",
        "operation": file.operation.value,
        **changes_counted(file.changes, seen),
        "turns": sorted({*turns} - {0}),
        "kind": kind_of(file.path, is_binary=file.is_binary),
        "unrecorded": is_unrecorded,
    }


def changes_counted(changes: "Collection[ChangeSummary | NetChange]", seen: Collection[bytes]) -> Shape:
    """Return how many lines some changes add and remove, and how many of these changes are not seen."""
    return {
        "lines_added": sum(change.inserted_lines for change in changes),
        "lines_removed": sum(change.removed_lines for change in changes),
        "changes": len(changes),
        "unseen": sum(change.key not in seen for change in changes),
    }


def running_call(root: str, call: "RunningCall") -> Shape:
    """Return a running call, with the names of its files."""
    return {**shown(running_shape(root, call)), "names": [shown_name(path) for path in call.paths or ()]}


def origin_of(view: "EditView") -> str:
    """Return the origin of an edit, as it is now known: it may have been claimed, or left open whose it is, since."""
    if view.is_unattributed:
        return Origin.UNATTRIBUTED.value
    if view.edit.origin is Origin.UNATTRIBUTED:
        return (Origin.AGENT if view.owner else Origin.PERSON).value
    return view.edit.origin.value


class Edits:
    """Summaries of edits with their turns and sessions, each of which is looked up once."""

    def __init__(self, workspace: "Workspace") -> None:
        """Summarize edits of `workspace`, which must stay open."""
        self._workspace: Final = workspace
        self.authors: Final = Authors(workspace)

    def of(self, seqs: Iterable[int]) -> list[Shape]:
        """Return the summaries of edits, ascending; numbers without an edit are left out."""
        found = []
        for seq in sorted(set(seqs)):
            try:
                found.append(self.summary(self._workspace.history.edit(seq)))
            except (NoSuchName, EditAway):
                continue
        return found

    def summary(self, view: "EditView") -> Shape:
        """Return an edit with its author and prompt."""
        return {
            **at_path(edit_summary(view), os.fsdecode(view.edit.path)),
            "who": visible(self.author(view)),
            "prompt": shown(self.prompt(view)),
        }

    def prompt(self, view: "EditView") -> str:
        """Return the prompt that an edit was made for; "": none is known."""
        turn = self.authors.turn(view.edit.turn if view.is_of_turn(view.edit.turn) else 0)
        return view.edit.notes.get("prompt", "") if turn is None else turn.prompt

    def author(self, view: "EditView") -> str:
        """Return who made an edit: a session, a person, or a word such as `unattributed`."""
        if not view.owner:
            return view.edit.notes.get("who", "") or "you"
        if view.is_unattributed:
            return UNKNOWN_AGENT
        session = self.authors.session(self.authors.session_of(view))
        return view.owner if session is None else session_name(session)
