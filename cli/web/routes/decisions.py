"""Routes that decide, undo and redo."""

from typing import TYPE_CHECKING, Any, Final

from starlette.routing import Route

from cli.app.invocation import reviewer
from cli.web.asked import Asked, BadRequest
from cli.web.deciding import Step, stepped
from cli.web.desk import Desk, Request
from cli.web.endpoints import Json, post
from cli.web.outcomes import overtaken
from cli.web.waiting import decided_or_asked, settled
from objstore import Action, OnExternal

if TYPE_CHECKING:
    from objstore import DecisionOutcome, ExternalChange, Workspace

__all__ = ["ROUTES"]

_ANSWERS: Final = [choice.value for choice in OnExternal]


def decide(desk: Desk, asked: Asked) -> Json:
    """Accept, reject or reset net changes or hunks."""
    action = Action(asked.choice("action", ["accept", "reject", "reset"]))
    keys, units = tuple(asked.keys("keys")), tuple(asked.shown_units("units").items())
    turn, shown = asked.number("turn", 0), asked.text("shown", "", most=100)
    if sum(map(bool, (keys, units, turn))) != 1 or bool(turn) != bool(shown):
        raise BadRequest("Give one of keys, units, and turn with shown.")
    request = Request(
        action=action,
        keys=keys,
        units=units,
        turn=turn,
        shown=shown,
        reason=asked.text("reason", ""),
        cascade=asked.flag("cascade"),
        markers=asked.flag("markers"),
        on_external=OnExternal(asked.choice("on_external", _ANSWERS, "abort")),
        ticket=asked.text("ticket", "", most=100),
    )
    if request.cascade and request.markers:
        raise BadRequest("cascade and markers exclude each other.")
    if request.cascade and action is not Action.REJECT:
        raise BadRequest("Only a rejection can cascade.")
    if (request.cascade or request.on_external is not OnExternal.ABORT) and not request.ticket:
        raise BadRequest("cascade and on_external answer what was shown: give its ticket.")
    running = asked.choice("running", ["now", "wait"], "")
    return decided_or_asked(desk, request, running)


def undo(desk: Desk, asked: Asked) -> Json:
    """Undo the decision that was shown as the newest."""
    number = asked.number("number", least=1)

    def undone(
        workspace: "Workspace", on_external: OnExternal, expected: "tuple[ExternalChange, ...]"
    ) -> "DecisionOutcome":
        return workspace.review.undo(number, who=reviewer(), on_external=on_external, expected=expected)

    shape = _stepped(desk, asked, undone)
    return (
        overtaken("Something else was decided or undone since. Look at the changes, then undo again.")
        if shape["outcome"] == "nothing"
        else shape
    )


def redo(desk: Desk, asked: Asked) -> Json:
    """Redo the decision that was last undone."""

    def redone(
        workspace: "Workspace", on_external: OnExternal, expected: "tuple[ExternalChange, ...]"
    ) -> "DecisionOutcome":
        return workspace.review.redo(who=reviewer(), on_external=on_external, expected=expected)

    shape = _stepped(desk, asked, redone)
    return {**shape, "message": "There is no decision to redo."} if shape["outcome"] == "nothing" else shape


def waiting(desk: Desk, asked: Asked) -> Json:
    """Make a waiting rejection now, or cancel it."""
    return settled(desk, asked.number("id", least=1), is_made=asked.choice("do", ["now", "cancel"]) == "now")


# ---- inside


def _stepped(desk: Desk, asked: Asked, step: Step) -> dict[str, Any]:
    on_external = OnExternal(asked.choice("on_external", _ANSWERS, "abort"))
    ticket = asked.text("ticket", "", most=100)
    if on_external is not OnExternal.ABORT and not ticket:
        raise BadRequest("on_external answers what was shown: give its ticket.")
    return stepped(desk, on_external, ticket, step)


ROUTES: Final[list[Route]] = [
    post(
        "/api/decide",
        decide,
        *(
            "action",
            "keys",
            "units",
            "turn",
            "shown",
            "reason",
            "cascade",
            "markers",
            "on_external",
            "ticket",
            "running",
        ),
    ),
    post("/api/undo", undo, "number", "on_external", "ticket"),
    post("/api/redo", redo, "on_external", "ticket"),
    post("/api/waiting", waiting, "id", "do"),
]
