"""Routes for the history: blame, timeline, past states, search, and the restore of a past state."""

from typing import TYPE_CHECKING, Any, Final

from starlette.routing import Route

from cli.screen.terminal import shown_name
from cli.web.diff_rows.net_rows import CONTEXT, shown_line
from cli.web.endpoints import Json, get, post
from cli.web.request_fields import BadRequest, Fields, NotThere
from cli.web.server_state import ServerState
from cli.web.shapes import Edits, named
from cli.web.views.past_states import PastState, restored, state_named, state_shape
from cli.web.views.search_hits import search_hits
from objstore import (
    EditExpired,
    EditFilter,
    FileTooLarge,
    HistoryBroken,
    NoSuchName,
    PathError,
    is_binary,
    split_lines,
    time_shape,
)

if TYPE_CHECKING:
    from objstore import FileEffect

__all__ = ["ROUTES"]

_PAGE: Final = 2_000
_MOST_ROWS: Final = 5_000
_MOST_POINTS: Final = 1_000
_MOST_CONTEXT: Final = 1_000_000
_MOST_FILES: Final = 1_000
_SHORTEST_TEXT: Final = 1


def blame(server: ServerState, fields: Fields) -> Json:
    """Answer with the lines of a file as last recorded, and the edit that wrote each."""
    path = fields.path("path")
    first, count = fields.number("first", 1, least=1), fields.number("count", _PAGE, least=1, most=_MOST_ROWS)
    with server.workspace(notes_git=True) as workspace:
        try:
            content, parts = workspace.history.blame(path)
        except (NoSuchName, PathError, FileTooLarge, EditExpired, HistoryBroken) as error:
            raise NotThere(str(error)) from None
        if is_binary(content):
            raise NotThere(f"{shown_name(path)} is binary: it has no lines.")
        lines = split_lines(content)
        wanted = range(first - 1, min(first - 1 + count, len(lines)))
        rows: list[dict[str, Any]] = []
        edits, shapes = {}, Edits(workspace)
        for part in parts:
            own = range(max(part.start, wanted.start), min(part.start + part.count, wanted.stop))
            if part.view is not None and own and str(part.view.seq) not in edits:
                edits[str(part.view.seq)] = shapes.summary(part.view)
            name = None if part.unit is None else str(part.unit)
            rows += ({"n": at + 1, "t": shown_line(lines[at])[0], "unit": name} for at in own)
    return {**named(path), "total": len(lines), "first": first, "lines": rows, "edits": edits}


def timeline(server: ServerState, fields: Fields) -> Json:
    """Answer with a page of the edits of a file, or of the workspace, the oldest first."""
    path = fields.path("path") if fields.has("path") else ""
    before, count = fields.number("before", 0), fields.number("count", 500, least=1, most=_MOST_POINTS)
    with server.workspace(notes_git=True) as workspace:
        wanted = EditFilter(path=path, before=before, newest_first=True, limit=count + 1)
        try:
            views = workspace.history.edits(wanted)
        except PathError as error:
            raise NotThere(str(error)) from None
        if path and not views and not before:
            raise NotThere(f"Nothing is recorded of {shown_name(path)}.")
        edits = Edits(workspace)
        points = [edits.summary(view) for view in reversed(views[:count])]
    return {**(named(path) if path else {"path": "", "name": ""}), "points": points, "more": len(views) > count}


def state(server: ServerState, fields: Fields) -> Json:
    """Answer with a file as it was after or before an edit, and what a restore would change."""
    path, seq, before = fields.path("path"), fields.number("seq", least=1), fields.number("before", 0, most=1)
    first, count = fields.number("first", 0), fields.number("count", _PAGE, most=_MOST_ROWS)
    context = fields.number("context", CONTEXT, most=_MOST_CONTEXT)
    with server.workspace() as workspace:
        found = state_named(workspace, PastState(path, seq, bool(before)))
        return state_shape(workspace, found, first=first, count=count, context=context)


def moment(server: ServerState, fields: Fields) -> Json:
    """Answer with the files that differ between the moment after an edit and now."""
    seq = fields.number("seq", least=1)
    with server.workspace(notes_git=True) as workspace:
        effects = workspace.history.files_changed_since(seq, _MOST_FILES + 1)
        time = workspace.history.edit(seq).edit.time
    files = sorted(map(_difference, effects[:_MOST_FILES]), key=lambda file: str(file["name"]))
    return {"timestamp": time_shape(time), "files": files, "more": len(effects) > _MOST_FILES}


def restore(server: ServerState, fields: Fields) -> Json:
    """Restore a file to its state after or before an edit, or preview that."""
    path, seq = fields.path("path"), fields.number("seq", least=1)
    before, dry_run = fields.flag("before"), fields.flag("dry_run")
    return restored(server, PastState(path, seq, before), fields.answer(), dry_run=dry_run)


def search(server: ServerState, fields: Fields) -> Json:
    """Answer with a page of the edits that inserted or removed a text, or whose path or prompt contains it."""
    text, kind = fields.text("q", most=1_000), fields.choice("in", ["text", "path", "prompt"], "text")
    before = fields.number("before", 0)
    if len(text) < _SHORTEST_TEXT:
        raise BadRequest("q has to be a text of at least one character.")
    with server.workspace() as workspace:
        return search_hits(workspace, text, kind, before)


# ---- inside


def _difference(effect: "FileEffect") -> dict[str, Any]:
    """Return how a file differs now from what it was."""
    if effect.path_before is None:
        return {**named(effect.path_after or ""), "what": "new"}
    if effect.path_after is None:
        return {**named(effect.path_before), "what": "gone"}
    if effect.path_before != effect.path_after:
        return {**named(effect.path_before), "what": f"moved to {shown_name(effect.path_after)}"}
    return {**named(effect.path_before), "what": "changed"}


ROUTES: Final[list[Route]] = [
    get("/api/blame", blame, "path", "first", "count"),
    get("/api/timeline", timeline, "path", "before", "count"),
    get("/api/state", state, "path", "seq", "before", "first", "count", "context"),
    get("/api/moment", moment, "seq"),
    get("/api/search", search, "q", "in", "before"),
    post("/api/restore", restore, "path", "seq", "before", "dry_run", "on_external", "ticket"),
]
