"""Parts of several answers: paths, times, comments, running calls, edits. `static/types.d.ts` describes them."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_from_bytes

from cli.render.turns import session_name
from cli.screen.terminal import shown_name, visible
from objstore import LINK_MODE, EditAway, NoSuchName, Unit

if TYPE_CHECKING:
    from objstore import CommentView, EditView, NetChange, NetFile, RunningCall, SessionView, TurnView, Workspace

__all__ = [
    "Edits",
    "change_words",
    "comment_shape",
    "kind_of",
    "named",
    "path_key",
    "prose",
    "running_shape",
    "time_shape",
    "unit_names",
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


def prose(text: str) -> str:
    """Return a text of several lines as shown, with control characters escaped."""
    return visible(text, keep="\t\n")


def time_shape(microseconds: int) -> float:
    """Return a time in seconds since 1970, given in microseconds."""
    return microseconds / 1_000_000


def unit_names(units: Iterable[Unit]) -> list[str]:
    """Return the names of hunks."""
    return [str(unit) for unit in units]


def kind_of(path: str, *, is_binary: bool) -> str:
    """Return how a file can be shown: as text, binary, image, markdown or notebook."""
    lower = path.lower()
    if is_binary:
        return "image" if lower.endswith(_IMAGES) else "binary"
    if lower.endswith(_MARKDOWN):
        return "markdown"
    return "notebook" if lower.endswith(_NOTEBOOK) else "text"


def change_words(file: "NetFile", change: "NetChange") -> str:
    """Return words for what a change does to the file as a whole; "" for a change of lines."""
    match change.kind.value:
        case "move":
            return f"moved from {shown_name(file.path_before)}"
        case "mode":
            return f"mode {file.mode_before:04o} -> {file.mode:04o}"
        case "encoding":
            return f"encoding {file.forms[0].words} -> {file.forms[1].words}"
        case "create":
            return "new link" if file.mode == LINK_MODE else f"new file of {_bytes(file.size)}"
        case "delete":
            return "link deleted" if file.mode_before == LINK_MODE else f"file of {_bytes(file.size_before)} deleted"
        case "content":
            return f"{_bytes(file.size_before)} -> {_bytes(file.size)}"
        case "newline":
            is_lost = change.removed.endswith(b"\n")
            return f"the last line has {'lost' if is_lost else 'gained'} its newline"
    return ""


def comment_shape(view: "CommentView") -> Shape:
    """Return a comment with its answers."""
    made = view.comment
    units = {*made.units, *(Unit(anchor.seq, anchor.hunk) for anchor in (made.first, made.last) if anchor.seq)}  # type: ignore[arg-type]  # an anchor's number is that of an edit
    return {
        "number": view.number,
        "text": prose(made.text),
        "who": visible(made.who),
        "by_agent": view.is_by_agent,
        "time": time_shape(made.time),
        "state": view.word,
        **named(view.path),
        "lines": list(view.lines),
        "units": unit_names(sorted(units)),
        "answers": [comment_shape(answer) for answer in view.answers],
    }


def running_shape(call: "RunningCall") -> Shape:
    """Return a running call."""
    return {
        "session": call.session,
        "client": visible(call.client or "agent"),
        "tool": visible(call.tool),
        "state": call.state,
        "began": time_shape(call.began),
        "names": [shown_name(path) for path in call.paths or ()],
    }


class Edits:
    """Summaries of edits with their turns and sessions, each of which is looked up once."""

    def __init__(self, workspace: "Workspace") -> None:
        """Summarize edits of `workspace`, which must stay open."""
        self._workspace: Final = workspace
        self._turns: dict[int, TurnView | None] = {}
        self._sessions: dict[int, SessionView | None] = {}

    def turn(self, number: int) -> "TurnView | None":
        """Return a turn (None: it is not known)."""
        if number not in self._turns:
            try:
                self._turns[number] = self._workspace.sessions.turn(number) if number else None
            except NoSuchName:
                self._turns[number] = None
        return self._turns[number]

    def session(self, number: int) -> "SessionView | None":
        """Return a session (None: it is not known)."""
        if number not in self._sessions:
            try:
                self._sessions[number] = self._workspace.sessions.session(number) if number else None
            except NoSuchName:
                self._sessions[number] = None
        return self._sessions[number]

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
        """Return the summary of an edit."""
        edit = view.edit
        turn = self.turn(edit.turn)
        prompt = edit.notes.get("prompt", "") if turn is None else turn.prompt
        return {
            "seq": view.seq,
            "time": time_shape(edit.time),
            "who": visible(self.author(view)),
            "tool": visible(edit.tool or edit.origin.value),
            "turn": edit.turn,
            "prompt": prose(prompt),
            "status": view.status.value,
            **named(os.fsdecode(edit.path)),
            "operation": edit.operation.value,
            "added": edit.added,
            "removed": edit.removed,
            "reason": prose(view.reason),
            "check": prose(view.check),
        }

    def author(self, view: "EditView") -> str:
        """Return who made an edit: a session, a person, or a word such as `unattributed`."""
        if not view.owner:
            return view.edit.notes.get("who", "") or "you"
        numbers = self._workspace.sessions.of_edits([view.seq])
        session = self.session(numbers.get(view.seq, 0))
        return view.owner if session is None else session_name(session)


def _bytes(size: int) -> str:
    return f"{size:,} byte{'' if size == 1 else 's'}"
