"""Routes that decide, undo and redo."""

from functools import partial
from typing import Final

from starlette.routing import Route

from cli.screen.terminal import shown_name
from cli.web.decisions.decision_requests import stepped
from cli.web.decisions.outcomes import overtaken
from cli.web.decisions.waiting_rejections import decided_or_asked, settled
from cli.web.endpoints import Json, post
from cli.web.request_fields import BadRequest, Fields
from cli.web.server_state import DecisionRequest, ServerState, WayOut
from objstore import Action, NamedPlace, Selection, Status, Unit

__all__ = ["ROUTES"]


def decide(server: ServerState, fields: Fields) -> Json:
    """Accept, reject or reset net changes or hunks."""
    action = Action(fields.choice("action", ["accept", "reject", "reset"]))
    answer = fields.answer()
    ways = [way for way in WayOut if fields.flag(way.value)]
    if len(ways) > 1:
        raise BadRequest("cascade, keep_lines and markers exclude each other.")
    way_out = ways[0] if ways else None
    if way_out in {WayOut.CASCADE, WayOut.KEEP_LINES}:
        if action is not Action.REJECT:
            raise BadRequest("Only a rejection can cascade or keep lines.")
        if not answer.ticket:
            raise BadRequest("cascade and keep_lines answer what was shown: give its ticket.")
    selection, statuses = _selected(fields)
    request = DecisionRequest(
        action=action,
        selection=selection,
        statuses=statuses,
        screen=fields.on_screen("on_screen"),
        reason=fields.text("reason", ""),
        way_out=way_out,
        on_external=answer.on_external,
        ticket=answer.ticket,
    )
    running = fields.choice("running", ["now", "wait"], "")
    return decided_or_asked(server, request, running)


def _selected(fields: Fields) -> tuple[Selection, tuple[tuple[Unit, Status], ...]]:
    """Return what a request names, and the statuses of single hunks as they were shown."""
    statuses = fields.shown_units("units")
    turn, session = fields.number("turn", 0), fields.number("session", 0)
    path = fields.path("path") if fields.has("path") else ""
    selection = Selection(
        keys=tuple(fields.keys("keys")),
        units=tuple(statuses),
        paths=(NamedPlace(path=path, spelling=shown_name(path)),) if path else (),
        turns=(turn,) if turn else (),
        session=str(session) if session else "",
        everything=fields.flag("all"),
    )
    names = (selection.keys, selection.units, path, selection.turns, selection.session, selection.everything)
    if sum(map(bool, names)) != 1:
        raise BadRequest("Give one of keys, units, path, turn, session and all.")
    return selection, tuple(statuses.items())


def undo(server: ServerState, fields: Fields) -> Json:
    """Undo the decision that was shown as the newest."""
    number = fields.number("number", least=1)
    shape = stepped(server, Action.UNDO, fields.answer(), lambda workspace: partial(workspace.review.undo, number))
    return (
        overtaken("Something else was decided or undone since. Look at the changes, then undo again.")
        if shape["outcome"] == "nothing-to-do"
        else shape
    )


def redo(server: ServerState, fields: Fields) -> Json:
    """Redo the decision that was last undone."""
    shape = stepped(server, Action.REDO, fields.answer(), lambda workspace: workspace.review.redo)
    return {**shape, "message": "There is no decision to redo."} if shape["outcome"] == "nothing-to-do" else shape


def waiting(server: ServerState, fields: Fields) -> Json:
    """Make a waiting rejection now, or cancel it."""
    return settled(server, fields.number("id", least=1), is_made=fields.choice("do", ["now", "cancel"]) == "now")


def stop_checks(server: ServerState, _: Fields) -> Json:
    """End the checks that run; what waits for them is not decided."""
    for check in server.checks():
        check.stopped.set()
    return {}


ROUTES: Final[list[Route]] = [
    post(
        "/api/decide",
        decide,
        *(
            "action",
            "keys",
            "units",
            "path",
            "turn",
            "session",
            "all",
            "on_screen",
            "reason",
            "cascade",
            "keep_lines",
            "markers",
            "on_external",
            "ticket",
            "running",
        ),
    ),
    post("/api/undo", undo, "number", "on_external", "ticket"),
    post("/api/redo", redo, "on_external", "ticket"),
    post("/api/waiting", waiting, "id", "do"),
    post("/api/stop_checks", stop_checks),
]
