"""Keep a rejection waiting while an agent may change its files, and make it when the agent's turn has ended.

Waiting rejections are in the server's memory only. When one is made, it is checked as any other decision: if the
changes are not as they were shown, nothing is decided, and the queue says so.
"""

import os
import threading
import time
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from cli.screen.terminal import shown_name
from cli.web.decisions.decision_requests import decided
from cli.web.decisions.outcomes import nothing_to_do, outcome_of, overtaken
from cli.web.server_state import DecisionRequest, ServerState, WaitingRejection
from cli.web.shapes import running_call
from objstore import Action, CasError, Configuration

if TYPE_CHECKING:
    from objstore import RunningCall, Selected, Workspace

__all__ = ["decided_or_asked", "make_due", "settled", "waiting_shapes", "waiting_words"]

Shape = dict[str, Any]

_QUIET: Final = 60.0
"""Seconds without an open call after which a turn counts as ended: some programs don't report its end."""

_TRIES: Final = 5
_CHOICES: Final = frozenset({"ask", "now", "wait"})


def decided_or_asked(server: ServerState, request: DecisionRequest, running: str) -> Shape:
    """Make a decision; if it rejects and an agent may be changing its files, ask, or let it wait.

    `running`: what to do in that case: "now", "wait", or "" to follow the setting `review.running`.
    """

    def decide(workspace: "Workspace") -> Shape:
        calls = _at_work(workspace) if request.action is Action.REJECT and running != "now" else []
        hold = partial(_held, server, request, calls, running) if calls else None
        return decided(server, workspace, request, hold)

    return outcome_of(server, decide)


def settled(server: ServerState, number: int, *, is_made: bool) -> Shape:
    """Make a waiting rejection now, or cancel it."""
    waiting = server.take(number)
    if waiting is None:
        return overtaken("This rejection is no longer waiting: it was made or cancelled.")
    try:
        if not is_made:
            return nothing_to_do("reject", "Cancelled: nothing was rejected.")
        return outcome_of(server, lambda workspace: decided(server, workspace, waiting.request, can_ask=False))
    finally:
        server.settle(number)


def make_due(server: ServerState) -> None:
    """Make the rejections whose agents have ended their turns. The queue reports those that can't be made."""
    if not server.all_waiting():
        return
    with click.Context(server.context.command, parent=server.context):
        try:
            with server.workspace(notes_git=True) as workspace:
                at_work = {call.conversation for call in _at_work(workspace)}
                has_check = workspace.trials.check() is not None
                for number, waiting in server.all_waiting().items():
                    if _is_due(workspace, waiting, at_work):
                        if has_check:  # it may run for long, and pages get their events from this thread
                            threading.Thread(target=_make_alone, args=(server, number)).start()
                        else:
                            _make(server, workspace, number)
                    elif not at_work.isdisjoint(waiting.conversations):
                        waiting.quiet_since = 0.0
                    else:
                        waiting.quiet_since = waiting.quiet_since or time.monotonic()
        except (CasError, OSError):
            return  # the store can't be read now; the rejections go on waiting, and the page reports the error


def waiting_shapes(server: ServerState) -> list[Shape]:
    """Return the waiting rejections."""
    return [
        {
            "id": number,
            "action": "reject",
            "hunks": list(map(str, waiting.units)),
            "names": list(waiting.names),
            "session": waiting.session,
        }
        for number, waiting in server.all_waiting().items()
    ]


def waiting_words(server: ServerState) -> list[str]:
    """Return a sentence for each waiting rejection, all of which are lost when the server ends."""
    return [f"The rejection in {waiting.words} was not made." for waiting in server.all_waiting().values()]


# ---- inside


def _at_work(workspace: "Workspace") -> "list[RunningCall]":
    """Return the running calls of agents, without background calls, which may run for days."""
    return [call for call in workspace.sessions.running_calls() if not (call.is_abandoned or call.is_behind)]


def _may_change(root: str, call: "RunningCall", paths: Collection[str]) -> bool:
    if call.paths is None:
        return True
    own = {os.path.realpath(os.path.join(root, path)) for path in call.paths}  # noqa: PTH118 -- as everywhere for names on disk
    return not own.isdisjoint(os.path.realpath(os.path.join(root, path)) for path in paths)  # noqa: PTH118 -- as above


def _setting(root: str) -> str:
    try:
        found = str(Configuration(root).get("review.running").value)
    except CasError:
        return "ask"
    return found if found in _CHOICES else "ask"


def _held(
    server: ServerState, request: DecisionRequest, calls: "list[RunningCall]", running: str, found: "Selected"
) -> Shape | None:
    """Ask, or keep a rejection waiting, if one of the calls may be changing its files; None: it can be made now."""
    calls = [call for call in calls if _may_change(server.root, call, found.files)]
    wanted = running or (_setting(server.root) if calls else "")
    if calls and wanted == "ask":
        return {
            "outcome": "running",
            "message": "It may change what you reject.",
            "calls": [running_call(server.root, call) for call in calls],
        }
    if not calls or wanted != "wait":
        return None
    waiting = WaitingRejection(
        request=request,
        units=found.named,
        names=tuple(dict.fromkeys(map(shown_name, found.files))),
        session=calls[0].session,
        conversations=tuple(dict.fromkeys(call.conversation for call in calls)),
        quiet_since=0.0,
    )
    number = server.keep(waiting)
    words = f"The rejection in {waiting.words} waits for the end of the agent's turn."
    return {"outcome": "waiting", "id": number, "message": words}


def _is_due(workspace: "Workspace", waiting: WaitingRejection, at_work: Collection[str]) -> bool:
    if not set(at_work).isdisjoint(waiting.conversations):
        return False
    if all(workspace.hooks.awaits_prompt(conversation) for conversation in waiting.conversations):
        return True
    return bool(waiting.quiet_since) and time.monotonic() - waiting.quiet_since > _QUIET


def _make_alone(server: ServerState, number: int) -> None:
    """Make a waiting rejection on a thread of its own."""
    with click.Context(server.context.command, parent=server.context), server.workspace() as workspace:
        _make(server, workspace, number)


def _make(server: ServerState, workspace: "Workspace", number: int) -> None:
    waiting = server.take(number)
    if waiting is None:
        return  # the user makes or cancels it at this moment
    goes_on = False
    try:
        request = waiting.request
        shape = outcome_of(server, lambda opened: decided(server, opened, request, can_ask=False), workspace)
        if shape["outcome"] == "failed" and waiting.tries < _TRIES:
            waiting.tries += 1
            goes_on = True
        elif shape["outcome"] not in {"decided", "nothing-to-do"}:
            server.note(f"The rejection in {waiting.words}, which waited, was not made: {shape['message']}")
    finally:
        server.settle(number, goes_on=goes_on)
