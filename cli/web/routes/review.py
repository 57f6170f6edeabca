"""Routes for the review: the queue, a file's changes and rows, single edits, splitting, and marks of what was seen."""

from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from cli.web.decisions.outcomes import outcome_of
from cli.web.diff_rows.net_rows import CONTEXT, rows_syntax, shown_line
from cli.web.endpoints import Json, get, post
from cli.web.request_fields import BadRequest, Fields, NotThere
from cli.web.server_state import ServerState
from cli.web.views.file_view import ShownFile, blobs_of, file_view, rejected_change, shown_file
from cli.web.views.review_queue import queue_shape
from cli.web.views.single_edits import edits_shape, lines_taken_out
from objstore import Status

if TYPE_CHECKING:
    from objstore import Workspace

__all__ = ["ROUTES"]

_MOST_ROWS: Final = 5_000
_MOST_CONTEXT: Final = 1_000
_PAGE: Final = 2_000
_CHARACTERS: Final = 100_000
_MOST_UNITS: Final = 500


def queue(server: ServerState, _: Fields) -> Json:
    """Answer with the queue."""
    version = server.version()
    with server.workspace(notes_git=True) as workspace:
        return queue_shape(server, workspace, version)


def file(server: ServerState, fields: Fields) -> Json:
    """Answer with the changes of a file and rows of its diff."""
    first, count = _page(fields)
    version = server.version()
    with server.reading() as workspace:
        return {"version": version, **file_view(server, workspace, _shown(server, workspace, fields), first, count)}


def lines(server: ServerState, fields: Fields) -> Json:
    """Answer with lines of a file's current text, to fill an opened gap."""
    first, count = fields.number("first", 1, least=1), fields.number("count", 100, most=_MOST_ROWS)
    with server.reading() as workspace:
        return {"rows": _shown(server, workspace, fields).rows.context_rows(first, count)}


def line(server: ServerState, fields: Fields) -> Json:
    """Answer with further characters of a row whose line was cut."""
    first, count = fields.number("first", 0), fields.number("count", _CHARACTERS, most=_CHARACTERS)
    number, key = fields.number("row"), fields.key("key")
    with server.reading() as workspace:
        row = _shown(server, workspace, fields).line(number, key)
    if row is None:
        raise NotThere("The diff has no such row any more.")
    text, cut = shown_line(row, first, count)
    return {"t": text, "cut": cut}


def syntax(server: ServerState, fields: Fields) -> Json:
    """Answer with the syntax marks of rows of a diff."""
    first, count = _page(fields)
    with server.reading() as workspace:
        shown = _shown(server, workspace, fields)
    rows = rows_syntax(server.syntax, shown.file, shown.rows, first, count)
    return {"first": first, **blobs_of(shown.file), "rows": rows}


def rejection(server: ServerState, fields: Fields) -> Json:
    """Answer with what a rejection of a change would do."""
    key = fields.key("key")
    with server.workspace() as workspace:
        return rejected_change(server, workspace, _shown(server, workspace, fields), key)


def edits(server: ServerState, fields: Fields) -> Json:
    """Answer with the single edits of some hunks."""
    units = fields.units("units")
    if not 0 < len(units) <= _MOST_UNITS:
        raise BadRequest(f"units has to name 1 to {_MOST_UNITS} hunks.")
    with server.reading() as workspace:
        return {"edits": edits_shape(workspace, units)}


def split(server: ServerState, fields: Fields) -> Json:
    """Take lines of a hunk out of its file."""
    units = fields.units("unit")
    if len(units) != 1:
        raise BadRequest("unit has to name one hunk.")
    rows, status = fields.positions("rows"), Status(fields.choice("status", [each.value for each in Status]))
    return outcome_of(server, lambda workspace: lines_taken_out(workspace, units[0], rows, status))


def seen(server: ServerState, fields: Fields) -> Json:
    """Mark the changes as seen that were wholly on the screen, and answer with the keys of the others."""
    keys, screen = fields.keys("keys"), fields.on_screen("on_screen")
    known = {key: server.changes.get(key) for key in keys}
    seen = [key for key, change in known.items() if change and screen.missing(key, change.rows) is None]
    with server.workspace() as workspace:
        workspace.review.mark_seen(seen)
    return {"unshown": [key.hex() for key in keys if key not in seen]}


# ---- inside


def _page(fields: Fields) -> tuple[int, int]:
    return fields.number("first", 0), fields.number("count", _PAGE, most=_MOST_ROWS)


def _shown(server: ServerState, workspace: "Workspace", fields: Fields) -> ShownFile:
    """Return the requested file as it is shown."""
    context = fields.number("context", CONTEXT, most=_MOST_CONTEXT)
    return shown_file(server, workspace, fields.number("document"), fields.number("turn", 0), context)


ROUTES: Final[list[Route]] = [
    get("/api/queue", queue, is_shared=True),
    get("/api/file", file, "document", "turn", "first", "count", "context", is_shared=True),
    get("/api/lines", lines, "document", "turn", "context", "first", "count"),
    get("/api/line", line, "document", "turn", "context", "row", "key", "first", "count"),
    get("/api/syntax", syntax, "document", "turn", "context", "first", "count"),
    get("/api/rejection", rejection, "document", "turn", "key"),
    get("/api/edits", edits, "units"),
    post("/api/split", split, "unit", "rows", "status"),
    post("/api/seen", seen, "keys", "on_screen"),
]
