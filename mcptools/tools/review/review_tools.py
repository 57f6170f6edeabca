"""Show the changes that await a person's review, and make the decisions that the person takes in a client's window.

An agent must never accept its own edits, so `review_edits` only shows them. The other tools are for the window. Each
call of these needs the ticket that only the window gets, and a decision also needs a setting that a person turns on.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeAlias

from mcptools.answers.edits import Answer
from mcptools.answers.review import DecisionTaken, ReviewShown, WindowShown
from mcptools.edit.display import cut, one_line, shown
from mcptools.model.cancellation import progress
from mcptools.model.failures import Failure, FailureKind, failure_of
from mcptools.model.tickets import Shown
from mcptools.tools.context import ToolContext, converting_errors
from mcptools.tools.history import DirectoryArgument
from mcptools.tools.reading import OffsetArgument
from mcptools.tools.review.pending_changes import newest_turn, refusal_to_decide, review_of
from mcptools.tools.review.review_words import (
    counted,
    question,
    review_notes,
    review_text,
    sentence,
    taken,
    undo_question,
)
from objstore import (
    MAX_INT,
    MAX_TEXT,
    Action,
    CasError,
    ChangesGone,
    CheckFailed,
    Decided,
    DecidedMeanwhile,
    DecisionOutcome,
    NoSuchName,
    Selection,
    Status,
    Surface,
    Unit,
    Workspace,
    user_name,
)

__all__ = ["ReviewTools"]

TicketArgument: TypeAlias = Annotated[str, "The ticket that the window was given last"]

_MOST_DECISIONS: Final = 500
"""Decisions that a window can take back."""

_LONGEST_CLIENT: Final = 60
_LONGEST_OUTPUT: Final = 2_000

_NOTHING: Final = DecisionTaken(outcome="", message="", decision=0)
_NOT_SHOWN: Final = "Only what this review shows whole can be decided here. Nothing was decided."
_OVERTAKEN: Final = "The change is no longer as it was shown. Nothing was decided; this is how it is now."


_Act: TypeAlias = Callable[[Workspace, Shown], DecisionTaken]
"""Performs what the person chose, given the workspace and what the window showed. It may raise CasError, OSError."""


class ReviewTools:
    """The tool that shows what awaits review, and the tools of the window that a client draws for it."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def review_edits(
        self,
        path: Annotated[str, "Only changes of this file, or below this folder, of any turn"] = "",
        turn: Annotated[int, "Number of a turn; 0: the newest that has pending changes"] = 0,
        directory: DirectoryArgument = "",
        offset: OffsetArgument = 0,
    ) -> Answer[ReviewShown]:
        """Show the person the changes that await their review. It decides nothing: only the person does."""
        _check_number("turn", turn)
        _check_number("offset", offset)
        roots = self._context.directories.roots
        if not path and not directory and len(roots) > 1:
            hint = self._context.directories.listed()
            raise Failure(FailureKind.INVALID_REQUEST, "Give directory: several directories are served", hint=hint)
        place = path or directory or next(iter(roots), ".")
        with converting_errors(place):
            workspace = self._context.directories.recorded_of(place)
            if workspace is None:
                return Answer(content=_empty("Nothing is recorded here yet"), text="Nothing awaits review.")
            if turn:
                _refuse_unknown_turn(workspace, turn)
            selection = Shown(
                root=self._context.directories.root_of(place),
                path=workspace.relative(path) if path else "",
                turn=turn or (0 if path else newest_turn(self._context, workspace)),
            )
            review = review_of(self._context, workspace, selection, offset)
        return Answer(
            content=review,
            text=review_text(review),
            notes=review_notes(review),
            ticket=self._next_ticket(selection, review) if self._can_have_ticket else "",
        )

    def review_page(self, ticket: TicketArgument, offset: OffsetArgument = 0) -> Answer[WindowShown]:
        """Show a page of a review as it is now. Only for the review's window, which has the ticket."""
        _check_number("offset", offset)
        return self._window(self._redeemed(ticket), offset, None)

    def review_decide(
        self,
        ticket: TicketArgument,
        action: Annotated[Literal["accept", "reject", "comment"], "What the person does"],
        keys: Annotated[list[str], "The keys of changes that the window shows"],
        text: Annotated[str, "The reason of a rejection, or the comment"] = "",
        offset: OffsetArgument = 0,
    ) -> Answer[WindowShown]:
        """Record a person's decision or comment. Only for the review's window, which has the ticket."""
        _check_number("offset", offset)
        if len(text) > MAX_TEXT or (action == "comment" and not text.strip()):
            wrong = f"is longer than {MAX_TEXT} characters" if text.strip() else "is empty"
            raise Failure(FailureKind.INVALID_REQUEST, f"text {wrong}")

        def decide(workspace: Workspace, selection: Shown) -> DecisionTaken:
            wanted = frozenset(keys)
            if not wanted or not selection.keys >= wanted:
                return _refused(_NOT_SHOWN)
            doing = Action.REJECT if action == "reject" else Action.ACCEPT
            names = Selection(keys=tuple(bytes.fromhex(key) for key in dict.fromkeys(keys)))
            try:
                found = workspace.review.select(doing, names)
            except ChangesGone:
                return DecisionTaken(outcome="overtaken", message=_OVERTAKEN, decision=0)
            if not selection.keys >= {key.hex() for key in found.changes}:
                return _refused(f"It is decided together with changes that are not shown. {_NOT_SHOWN}")
            if action == "comment":
                view = workspace.comments.add_to_units(found.named, text, who=self._who())
                return DecisionTaken(
                    outcome="commented", message=f"Comment {view.number} waits for the agent.", decision=0
                )
            asks = {Status.ACCEPTED} if doing is Action.REJECT else set()
            known = {unit: status for unit, status in found.units.items() if status not in asks}
            decide = partial(
                workspace.decide,
                doing,
                [*found.units],
                who=self._who(),
                reason=text if action == "reject" else "",
                **_checked_by_settings(workspace),
            )

            def asked_about(_: Decided, known: Mapping[Unit, Status]) -> str:
                return question(doing, found, known, workspace.history.edit)

            outcome = _unless_asked(decide, known, selection.asked, asked_about)
            return (
                outcome if isinstance(outcome, DecisionTaken) else taken(outcome, workspace.history.edit, found.files)
            )

        return self._window(self._redeemed(ticket), offset, decide)

    def review_undo(
        self,
        ticket: TicketArgument,
        number: Annotated[int, "The number of a decision that the window made"],
        offset: OffsetArgument = 0,
    ) -> Answer[WindowShown]:
        """Take back a person's decision. Only for the review's window, which has the ticket."""
        _check_number("offset", offset)

        def undo(workspace: Workspace, selection: Shown) -> DecisionTaken:
            if number not in selection.decisions:
                return _refused("Only a decision that was made here can be taken back here. Nothing was changed.")
            made = workspace.review.in_force()
            wanted = next((decision for decision in made if decision.number == number), None)
            later = [decision for decision in made if decision.number > number]
            if wanted is None:
                return DecisionTaken(
                    outcome="nothing-to-do", message="The decision was already taken back.", decision=0
                )
            if any(not wanted.units.isdisjoint(decision.units) for decision in later):
                return _refused("A later decision is about the same hunks: take that back first. Nothing was changed.")
            past = [decision.number for decision in later]
            step = partial(workspace.review.undo, number, past=past, who=self._who())

            def asked_about(planned: Decided, _: Mapping[Unit, Status]) -> str:
                return undo_question(planned, workspace.history.edit)

            outcome = _unless_asked(step, {}, selection.asked, asked_about)
            return outcome if isinstance(outcome, DecisionTaken) else taken(outcome, workspace.history.edit)

        return self._window(self._redeemed(ticket), offset, undo)

    # ---- inside

    def _redeemed(self, ticket: str) -> Shown:
        """Use up the window's ticket and return what it showed. Raises Failure if the ticket is not valid."""
        return self._context.session.tickets.redeem(ticket if self._context.has_window else "")

    @property
    def _can_have_ticket(self) -> bool:
        return self._context.has_window and self._context.session.is_kept

    def _next_ticket(self, selection: Shown, review: ReviewShown) -> str:
        keys = frozenset(change.key for change in review.changes if not change.cut)
        return self._context.session.tickets.issue(replace(selection, keys=keys))

    def _window(self, selection: Shown, offset: int, act: _Act | None) -> Answer[WindowShown]:
        """Perform an action of the person, and return its outcome, the review after it, and the next ticket.

        `act`: None if the person only looks.
        """
        done, review, decisions = _NOTHING, _empty(""), selection.decisions
        try:
            with converting_errors(selection.root):
                workspace = self._workspace(selection)
                if act is not None:
                    done = self._acted(workspace, selection, act)
                decisions = _in_force(workspace, (*decisions, done.decision))
                review = review_of(self._context, workspace, selection, offset)
        except Failure as failure:  # a decision that was made stays: the window has to get it
            if not done.outcome:
                done = DecisionTaken(outcome="failed", message=sentence(str(failure)), decision=0)
            review = _empty(str(failure))
        asked = done.message if done.outcome == "confirm" else ""
        ticket = self._next_ticket(replace(selection, decisions=decisions, asked=asked), review)
        content = WindowShown(taken=done, review=review, decisions=list(decisions))
        return Answer(content=content, text=done.message or counted(review), ticket=ticket)

    def _workspace(self, selection: Shown) -> Workspace:
        workspace = self._context.directories.recorded_of(selection.root)
        if workspace is None:
            raise Failure(FailureKind.FILE_NOT_FOUND, "The history of this review is gone")
        return workspace

    def _acted(self, workspace: Workspace, selection: Shown, act: _Act) -> DecisionTaken:
        """Perform an action if decisions are allowed here; an error becomes an outcome."""
        reason = refusal_to_decide(self._context, workspace)
        if reason:
            return _refused(f"{reason}. Nothing was decided.")
        with suppress(CasError, OSError):  # a file that git changed then counts as changed on disk
            workspace.note_git()
        workspace.decide_through(Surface.CHAT)
        try:
            return act(workspace, selection)
        except DecidedMeanwhile:
            return DecisionTaken(outcome="overtaken", message=_OVERTAKEN, decision=0)
        except CheckFailed as error:
            said = "\n".join([str(error), *error.lines])
            return DecisionTaken(outcome="failed", message=cut(shown(said), _LONGEST_OUTPUT), decision=0)
        except (CasError, OSError) as error:
            return DecisionTaken(outcome="failed", message=sentence(str(failure_of(error, selection.root))), decision=0)
        finally:
            workspace.decide_through(None)

    def _who(self) -> str:
        """Return the author for records: the user, with "in the chat of" this client."""
        client = one_line(cut(self._context.session.client.get("client", ""), _LONGEST_CLIENT))
        return f"{user_name()} (in the chat{f' of {client}' if client else ''})"


def _check_number(name: str, given: int) -> None:
    if not 0 <= given <= MAX_INT:
        wrong = "negative" if given < 0 else f"over {MAX_INT}"
        raise Failure(FailureKind.INVALID_REQUEST, f"{name} cannot be {wrong}")


def _refuse_unknown_turn(workspace: Workspace, turn: int) -> None:
    try:
        workspace.sessions.turn(turn)
    except NoSuchName:
        message = f"No turn has the number {turn} here"
        raise Failure(FailureKind.INVALID_REQUEST, message, turn=turn) from None


def _in_force(workspace: Workspace, decisions: Sequence[int]) -> tuple[int, ...]:
    """Return the decisions that were not taken back, at most as many as a window remembers."""
    made = {decision.number for decision in workspace.review.in_force()}
    return tuple(number for number in dict.fromkeys(decisions) if number in made)[-_MOST_DECISIONS:]


def _checked_by_settings(workspace: Workspace) -> dict[str, Any]:
    """Return what has a decision checked as the settings say: meanwhile, the client is sent the progress."""
    check, began = workspace.trials.check(), time.monotonic()

    def reported() -> bool:
        if check is not None:
            progress(time.monotonic() - began, check.limit, f"Checking with `{one_line(check.command)}`")
        return False

    return {"check": check, "stopped": reported}


def _unless_asked(
    decide: Callable[..., DecisionOutcome],
    shown: Mapping[Unit, Status],
    asked: str,
    asked_about: Callable[[Decided, Mapping[Unit, Status]], str],
) -> DecisionOutcome | DecisionTaken:
    """Decide; or return the question about what goes along and was not `shown`, if the window did not ask that last.

    `asked`: what the window asked last; `asked_about`: returns the question, given what would be done and all that it
    is about.
    """
    known = dict(shown)
    while isinstance(outcome := decide(shown=known, stops_at_unshown=True), Decided) and outcome.unshown:
        known |= dict(outcome.unshown)
        message = asked_about(outcome, known)
        if message != asked:
            return DecisionTaken(outcome="confirm", message=message, decision=0)
    return outcome


def _refused(message: str) -> DecisionTaken:
    return DecisionTaken(outcome="refused", message=message, decision=0)


def _empty(reason: str) -> ReviewShown:
    """Return a review without changes. `reason`: why nothing can be decided."""
    return ReviewShown(
        turn=0,
        client="",
        prompt="",
        changes=[],
        total=0,
        offset=0,
        next_offset=0,
        remarks=[],
        decides=False,
        reason=reason,
    )
