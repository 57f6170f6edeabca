"""Routes for the store as a whole: numbers, what `cas gc` would free, and plots."""

from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.routing import Route

from cli.plots.activity import activity_plot, draw_activity
from cli.plots.file_life import draw_file, file_plot
from cli.plots.store_size import draw_store, store_plot
from cli.render.status import size_text
from cli.screen.terminal import visible
from cli.web.endpoints import Json, get
from cli.web.request_fields import Fields, NotThere
from cli.web.server_state import ServerState
from objstore import NoSuchName, PathError, Status, counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.plots.plot import Plot
    from objstore import GcPlan, Workspace

__all__ = ["ROUTES"]

_DRAWING: Final = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
"""Content security policy of a drawing that is opened by itself: it may have its own styles, nothing else."""


def store(server: ServerState, _: Fields) -> Json:
    """Answer with counts and sizes of the store, and what `cas gc` would free."""
    with server.workspace() as workspace:
        plan = workspace.retention.plan_gc(workspace.retention.limits())
        lines = workspace.sessions.turn_lines()
        next_edit = workspace.history.end()
    counts = {status: sum(each.edits for each in lines if each.status is status) for status in Status}
    facts = {
        "edits": ", ".join(f"{number} {status.value}" for status, number in counts.items() if number) or "none",
        "lines": f"{sum(each.added for each in lines)} added, {sum(each.removed for each in lines)} removed",
        "turns": str(len({each.turn for each in lines} - {0})),
        "sessions": str(len({each.session for each in lines} - {0})),
        "decisions": str(next_edit.next_decision - 1),
        "store": size_text(plan.store_bytes),
    }
    return {
        "facts": [{"name": name, "value": value} for name, value in facts.items()],
        "free": {"blobs": plan.free_blobs, "bytes": plan.free_bytes},
        "total": plan.store_bytes,
        "gc": _gc_words(plan),
    }


def _gc_words(plan: "GcPlan") -> str:
    """Return sentences that say what `cas gc` would do now."""
    expiring = [
        f"It would expire {counted(batch.edit_count, 'edit')}: {visible(batch.reason)}."
        for batch in plan.expiry.batches
    ]
    if plan.free_bytes:
        frees = f"`cas gc` would free {size_text(plan.free_bytes)} in {counted(plan.free_blobs, 'blob')}."
    else:
        frees = "`cas gc` would free nothing now."
    missing = f"The store would stay {size_text(plan.expiry.missing)} over its limit." if plan.expiry.missing else ""
    return " ".join([frees, *expiring, *filter(None, [missing])])


def _file_plot(workspace: "Workspace", fields: Fields) -> "Plot":
    path = fields.path("path")
    try:
        return file_plot(workspace, path)
    except (NoSuchName, PathError) as error:
        raise NotThere(str(error)) from None


def _plotted(
    name: str, make: "Callable[[Workspace, Fields], Plot]", draw: "Callable[[Plot], bytes]", *known: str
) -> list[Route]:
    """Return the routes of a plot: as a drawing, and as a table. `known`: the allowed parameters."""

    def plot(server: ServerState, fields: Fields) -> "Plot":
        with server.workspace() as workspace:
            return make(workspace, fields)

    def drawing(server: ServerState, fields: Fields) -> Json:
        return Response(draw(plot(server, fields)), media_type="image/svg+xml", headers=_DRAWING)

    def table(server: ServerState, fields: Fields) -> Json:
        found = plot(server, fields)
        columns = list(found.columns)
        return {"title": found.title, "summary": found.summary, "columns": columns, "rows": found.cells()}

    return [get(f"/plots/{name}.svg", drawing, *known), get(f"/plots/{name}.json", table, *known)]


ROUTES: Final[list[Route]] = [
    get("/api/store", store),
    *_plotted("activity", lambda workspace, _: activity_plot(workspace), draw_activity),
    *_plotted("store", lambda workspace, _: store_plot(workspace), draw_store),
    *_plotted("file", _file_plot, draw_file, "path"),
]
