"""Routes for the review: the queue, a file's changes and rows, single edits, splitting, and marks of what was seen."""

from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from cli.web.asked import Asked, BadRequest, NotThere
from cli.web.desk import Desk
from cli.web.endpoints import Json, get, post
from cli.web.file_view import ShownFile, file_view, shown_file
from cli.web.net_rows import CONTEXT, shown_line
from cli.web.outcomes import failure_shape
from cli.web.review_queue import queue_shape
from cli.web.row_syntax import rows_syntax
from cli.web.single_edits import edits_shape, part_taken_out
from objstore import CasError, Status

if TYPE_CHECKING:
    from objstore import Workspace

__all__ = ["ROUTES"]

_MOST_ROWS: Final = 5_000
_MOST_CONTEXT: Final = 1_000
_PAGE: Final = 2_000
_CHARACTERS: Final = 100_000
_MOST_UNITS: Final = 500


def queue(desk: Desk, _: Asked) -> Json:
    """Answer with the queue."""
    version = desk.version()
    with desk.workspace(notes_git=True) as workspace:
        return queue_shape(desk, workspace, version)


def file(desk: Desk, asked: Asked) -> Json:
    """Answer with the changes of a file and rows of its diff."""
    first, count = _page(asked)
    version = desk.version()
    with desk.workspace() as workspace:
        return {"version": version, **file_view(desk, workspace, _shown(desk, workspace, asked), first, count)}


def lines(desk: Desk, asked: Asked) -> Json:
    """Answer with lines of a file's current text, to fill an opened gap."""
    first, count = asked.number("first", 1, least=1), asked.number("count", 100, most=_MOST_ROWS)
    with desk.workspace() as workspace:
        return {"rows": _shown(desk, workspace, asked).rows.context_rows(first, count)}


def line(desk: Desk, asked: Asked) -> Json:
    """Answer with further characters of a row whose line was cut."""
    first, count = asked.number("first", 0), asked.number("count", _CHARACTERS, most=_CHARACTERS)
    number = asked.number("row")
    with desk.workspace() as workspace:
        row = _shown(desk, workspace, asked).rows.line(number)
    if row is None:
        raise NotThere("The diff has no such row any more.")
    text, cut = shown_line(row, first, count)
    return {"t": text, "cut": cut}


def syntax(desk: Desk, asked: Asked) -> Json:
    """Answer with the syntax marks of rows of a diff."""
    first, count = _page(asked)
    with desk.workspace() as workspace:
        shown = _shown(desk, workspace, asked)
    return {"first": first, "rows": rows_syntax(desk.syntax, shown.file, shown.rows, first, count)}


def edits(desk: Desk, asked: Asked) -> Json:
    """Answer with the single edits of some hunks."""
    units = asked.units("units")
    if not 0 < len(units) <= _MOST_UNITS:
        raise BadRequest(f"units has to name 1 to {_MOST_UNITS} hunks.")
    with desk.workspace() as workspace:
        return {"edits": edits_shape(workspace, units)}


def split(desk: Desk, asked: Asked) -> Json:
    """Take a part of a hunk out of its file."""
    units = asked.units("unit")
    if len(units) != 1:
        raise BadRequest("unit has to name one hunk.")
    part, status = asked.number("part"), Status(asked.choice("status", [each.value for each in Status]))
    try:
        with desk.workspace(notes_git=True) as workspace:
            return part_taken_out(desk, workspace, units[0], part, status)
    except (CasError, OSError) as error:
        return failure_shape(desk, error)


def seen(desk: Desk, asked: Asked) -> Json:
    """Mark changes as seen."""
    keys = asked.keys("keys")
    with desk.workspace() as workspace:
        workspace.review.mark_seen(keys)
    return {}


# ---- inside


def _page(asked: Asked) -> tuple[int, int]:
    return asked.number("first", 0), asked.number("count", _PAGE, most=_MOST_ROWS)


def _shown(desk: Desk, workspace: "Workspace", asked: Asked) -> ShownFile:
    """Return the requested file as it is shown."""
    context = asked.number("context", CONTEXT, most=_MOST_CONTEXT)
    return shown_file(desk, workspace, asked.number("document"), asked.number("turn", 0), context)


ROUTES: Final[list[Route]] = [
    get("/api/queue", queue),
    get("/api/file", file, "document", "turn", "first", "count", "context"),
    get("/api/lines", lines, "document", "turn", "context", "first", "count"),
    get("/api/line", line, "document", "turn", "context", "row", "first", "count"),
    get("/api/syntax", syntax, "document", "turn", "context", "first", "count"),
    get("/api/edits", edits, "units"),
    post("/api/split", split, "unit", "part", "status"),
    post("/api/seen", seen, "keys"),
]
