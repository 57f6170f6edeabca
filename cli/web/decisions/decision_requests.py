"""Make the decisions that the page requests: check that the changes are still as shown, then call the core."""

import os
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cli.app.invocation import reviewer
from cli.render.outcomes import shown_units
from cli.screen.terminal import shown_name, visible
from cli.web.decisions.outcomes import done_shape, outcome_of, overtaken, shown_outcome
from cli.web.on_screen import UnshownChange, row_count, unshown_changes, unshown_shape
from cli.web.request_fields import Answer
from cli.web.server_state import DecisionRequest, ServerState, Ticket, WayOut
from objstore import (
    BECOMES,
    Action,
    AmbiguousName,
    CasError,
    ChangesGone,
    Conflicted,
    Decided,
    DecisionOutcome,
    ExternalChanges,
    NoSuchName,
    NothingSelected,
    Status,
    Unit,
    broken_words,
    changes_counted,
    decided_words,
    few,
    question_words,
    replace,
    step_question,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from cli.selection.elsewhere import Elsewhere
    from objstore import ChangeSummary, FileSummary, Selected, Workspace

__all__ = ["Hold", "Step", "decided", "resolved", "stepped"]

Shape = dict[str, Any]

Step: TypeAlias = "Callable[[Workspace], Callable[..., DecisionOutcome]]"
"""Returns what undoes or redoes."""

_FEW_PATHS: Final = 50
_FEW_NAMED: Final = 5
_MORE: Final = "More goes along"
_TOO_OLD: Final = "The server no longer remembers what you were shown. Look at the changes again, then decide."


Hold: TypeAlias = "Callable[[Selected], Shape | None]"
"""Returns an outcome in place of a decision that covers this (None: it is made)."""


def resolved(server: ServerState, workspace: "Workspace", request: DecisionRequest) -> "Selected | str":
    """Return what a request's decision covers, or a sentence that says why the changes are no longer as shown.

    Its units have the statuses that were shown, and its files have their accepted names, too.
    """
    known = [change for key in request.selection.keys if (change := server.changes.get(key)) is not None]
    near = {path for change in known for path in change.paths}
    if len(near) > _FEW_PATHS or len(known) < len(request.selection.keys):
        near = set()  # to read all files is faster than to look up that many by name
    selection = replace(request.selection, near=tuple(sorted(near)))
    try:
        found = workspace.review.select(request.action, selection)
    except ChangesGone as error:
        return _what_happened(server, workspace, error)
    except (NoSuchName, NothingSelected, AmbiguousName) as error:
        return str(error)
    if found.changes - {*selection.keys, *(key for change in known for key in change.together)}:
        return f"A change that is decided with this one, in {shown_name(found.files[0])}, is not as it was shown."
    units = {**found.units, **dict(request.statuses)}
    return replace(found, units=units, files=tuple(sorted({*found.files, *near})))


def decided(
    server: ServerState,
    workspace: "Workspace",
    request: DecisionRequest,
    hold: "Hold | None" = None,
    *,
    can_ask: bool = True,
) -> Shape:
    """Make a decision and return its outcome. A refusal by the core is an outcome, too.

    `hold`: may return an outcome in place of the decision, given what it covers (None: it is made). `can_ask`: whether
    someone answers if more goes along than was shown; if not, nothing is decided then, and it may break names. Raises
    CasError and OSError.
    """
    answered = server.shown(request.ticket)
    if answered is None:
        return overtaken(_TOO_OLD)
    found = resolved(server, workspace, request)
    if isinstance(found, str):
        return overtaken(found)
    return _Decision(server, workspace, request, answered, found, can_ask=can_ask).made(hold)


def stepped(server: ServerState, action: Action, answer: Answer, step: Step) -> Shape:
    """Undo or redo a decision and return the outcome."""
    if server.elsewhere is not None:
        return overtaken(f"{server.elsewhere.no_undo} After a `cas pull` that shows it as decided, reopen the change.")
    answered = server.shown(answer.ticket)
    if answered is None:
        return overtaken(_TOO_OLD)

    def decide(workspace: "Workspace") -> Shape:
        now = replace(answered, end=answered.end or workspace.history.end())
        made, listed = step(workspace), dict(now.listed)
        outcome = made(
            who=reviewer(),
            on_external=answer.on_external,
            expected=now.expected,
            end=now.end,
            shown=listed,
            stops_at_unshown=True,
        )
        if isinstance(outcome, Decided) and outcome.unshown:
            listed |= dict(outcome.unshown)
            message = step_question(outcome, workspace.history.edit, shown_name)
            again = replace(now, listed=tuple(listed.items()))
            return _confirm(server, action, _MORE, message, again, dict(outcome.verdicts), dict(outcome.unshown))
        return shown_outcome(server, workspace, action, outcome, answered=now)

    return outcome_of(server, decide)


# ---- inside


class _Decision:
    """A decision that the page requests, while it is made."""

    def __init__(
        self,
        server: ServerState,
        workspace: "Workspace",
        request: DecisionRequest,
        answered: Ticket,
        found: "Selected",
        *,
        can_ask: bool,
    ) -> None:
        """Find the changes that it is on. `answered`: what was shown in its place before; `found`: what it covers."""
        self._can_ask: Final = can_ask
        self._server: Final = server
        self._workspace: Final = workspace
        self._request: Final = request
        self._answered: Final = answered
        self._found: Final = found
        self._listed: Final = dict(answered.listed)
        self._pending: Final = frozenset(unit for unit in found.named if found.units[unit] is Status.PENDING)
        self._touched: Final = list(self._changes())
        self._subject: Final = self._counted(self._pending)

    def made(self, hold: "Hold | None") -> Shape:
        """Make it and return its outcome; the rest is as of `decided`."""
        elsewhere, is_rejection = self._server.elsewhere, self._request.action is Action.REJECT
        is_put_off = hold is not None or (elsewhere is not None and is_rejection)
        instead = self._unshown() or self._question(looks_along=is_put_off)
        if instead is None and elsewhere is not None:
            return self._made_elsewhere(elsewhere)
        if instead is None and hold is not None:
            instead = hold(self._found)
        if instead is not None:
            return instead
        outcome = self._checked(stops_at_broken=self._can_ask and not self._answered.knows_broken)
        if isinstance(outcome, Decided) and not outcome.number:
            return self._asked({}, dict(outcome.unshown)) if outcome.unshown else self._asked_about_names(outcome)
        ways_out = self._ways_out(outcome) if isinstance(outcome, Conflicted) else {}
        shape = self._outcome_shape(outcome, ways_out)
        if not self._found.unreviewed:
            return shape
        named = few(self._found.unreviewed, _FEW_NAMED, ", ", shown_name)
        said = f"Not accepted, because review.always asks for a look: {named}. Accept them one by one."
        return {**shape, "message": f"{shape['message']} {said}"}

    def _outcome_shape(
        self, outcome: DecisionOutcome, ways_out: "Mapping[WayOut, Decided]" = MappingProxyType({})
    ) -> Shape:
        # What later changes took out of the file is not decided.
        done = {unit for unit, _ in outcome.verdicts} if isinstance(outcome, Decided) else None
        return shown_outcome(
            self._server,
            self._workspace,
            self._request.action,
            outcome,
            answered=self._answered,
            ways_out=ways_out,
            subject=self._subject if done is None else self._counted(done),
        )

    # ---- what it is on

    def _changes(self) -> "Iterator[tuple[FileSummary, list[ChangeSummary]]]":
        """Yield the files with the pending changes that it is on; none if it names single hunks."""
        if not self._request.selection.units:
            for file in self._workspace.review.change_summaries(units=self._pending, unreadable=lambda _: None):
                yield file, [each for each in file.changes if not self._pending.isdisjoint(each.units)]

    def _counted(self, units: "Collection[Unit]") -> str:
        """Return what it is on if that is these units, as a person counts: changes; "" if it names single hunks."""
        on = [file.path for file, changes in self._touched for each in changes if not set(each.units).isdisjoint(units)]
        names = [shown_name(os.path.basename(path)) for path in dict.fromkeys(on)]  # noqa: PTH119 -- as everywhere for names on disk
        return changes_counted(len(on), names, turn=next(iter(self._request.selection.turns), 0))

    # ---- what is answered in its place

    def _unshown(self) -> Shape | None:
        """Return the outcome of a decision that covers what was not on the screen (None: it does not)."""
        request, shown, units = self._request, self._found.units, self._found.named
        changes: list[UnshownChange] = []
        if request.action is Action.RESET:  # it makes a decided change again what the page shows it as
            known = ((key, self._server.changes.get(key)) for key in request.screen.changes)
            whole = (each for key, each in known if each and request.screen.missing(key, each.rows) is None)
            units = tuple(sorted({*units}.difference(*(each.units for each in whole))))
        if not request.selection.units:
            changes, units = unshown_changes(request.screen, self._touched, self._pending)
        # What was decided in this moment is refused as such.
        same = [unit for unit, status in self._workspace.history.statuses(units).items() if status is shown[unit]]
        counts = {unit: row_count(self._workspace, unit) for unit in same}
        missing = {
            unit: rows
            for unit, count in counts.items()
            if count is not None and (rows := request.screen.missing(unit, count)) is not None
        }
        return unshown_shape(changes, missing) if changes or missing else None

    def _question(self, *, looks_along: bool) -> Shape | None:
        """Return the question that must be answered before; None: there is none, or it was answered.

        What was decided before, such as accepted edits that a rejection takes back, is listed first, and with it what
        goes along. `looks_along`: plan the decision also to find what goes along alone, because it may be made later.
        """
        found, request = self._found, self._request
        # Who names single hunks sees their statuses; that a rejection takes accepted ones out of the file is asked too.
        statuses = {Status.ACCEPTED} if request.action is Action.REJECT else set()
        if not request.selection.units:
            statuses = set(Status) - {Status.PENDING, BECOMES[request.action]}
        named = {unit: found.units[unit] for unit in found.named if found.units[unit] in statuses}
        more = {unit: status for unit, status in named.items() if unit not in self._listed}
        along: dict[Unit, Status] = {}
        if looks_along or (more and self._server.elsewhere is None):
            planned = self._outcome(request, with_names=False, dry_run=True)
            if isinstance(planned, ExternalChanges) and not looks_along:
                # That is asked about first, because it may change what goes along.
                return self._outcome_shape(planned)
            along = dict(planned.unshown) if isinstance(planned, Decided) else along
        return self._asked(more, along) if more or along else None

    def _asked(self, more: "Mapping[Unit, Status]", along: "Mapping[Unit, Status]") -> Shape:
        """Return the question before a decision on more than was shown: of what it names, and of what goes along."""
        units = {**self._listed, **self._found.units}
        message = question_words(self._request.action, units, along, self._workspace.history.edit)
        listed = tuple({**units, **along}.items())
        return self._confirm(_MORE, message, replace(self._answered, listed=listed), {**more, **along})

    def _asked_about_names(self, outcome: Decided) -> Shape:
        """Return the question before a decision that breaks names."""
        edit = self._workspace.history.edit
        message = " ".join(said.removeprefix("Note: ") for said in broken_words(outcome, edit, self._subject))
        return self._confirm("This breaks names", message, replace(self._answered, knows_broken=True), {})

    def _confirm(self, title: str, message: str, answered: Ticket, listed: "Mapping[Unit, Status]") -> Shape:
        """Return a question. `answered`: what is answered by going ahead; `listed`: what is asked about, by status."""
        if not self._can_ask:
            return overtaken(f"{message} Look at the changes, then decide again.")
        named = {unit: self._found.units[unit] for unit in self._found.named}
        return _confirm(self._server, self._request.action, title, message, answered, named, listed)

    # ---- making it

    def _made_elsewhere(self, elsewhere: "Elsewhere") -> Shape:
        """Decide on what another store has, by the log of the bucket, and return the outcome; no file changes here."""
        action = self._request.action
        units, words = elsewhere.decide(action, self._found.units, self._request.reason)
        self._server.touch()
        changed = [{"name": str(unit), "status": BECOMES[action].value, "cascaded": False} for unit in units]
        done = f"{decided_words(action, self._subject or shown_units(units, self._workspace.history.edit))}."
        return done_shape(action.value, 0, done, changed=changed, notes=[visible(words)])

    def _checked(self, *, stops_at_broken: bool) -> DecisionOutcome:
        """Make it, after the check of the settings if there is one. Raises CheckFailed and CheckedElse."""
        request = self._request
        decide = partial(self._outcome, request, reason=request.reason, stops_at_broken=stops_at_broken)
        is_unchecked = request.way_out is WayOut.MARKERS or request.action is Action.RESET
        check = None if is_unchecked else self._workspace.trials.check()
        if check is None:
            return decide()
        with self._server.checking(check.command) as running:
            return decide(check=check, stopped=running.stopped.is_set)

    def _ways_out(self, refused: Conflicted) -> dict[WayOut, Decided]:
        """Return what each way out of a conflict would do, as far as it is one; nothing is changed."""
        request = self._request
        found: dict[WayOut, Decided] = {}
        if request.way_out is not None:
            return found
        ways = [WayOut.MARKERS]
        if request.action is Action.REJECT:
            ways += [WayOut.CASCADE, *([WayOut.KEEP_LINES] if refused.can_keep_lines else [])]
        for way in ways:
            with suppress(CasError):
                outcome = self._outcome(replace(request, way_out=way), refused=refused, dry_run=True)
                if isinstance(outcome, Decided):
                    found[way] = outcome
        return found

    def _outcome(
        self,
        request: DecisionRequest,
        *,
        refused: Conflicted | None = None,
        **options: Any,  # noqa: ANN401 - `Workspace.decide` names and checks them
    ) -> DecisionOutcome:
        """Decide as a request says. `refused`: the conflict that it solves (None: that which it answers, if any)."""
        shown = {**self._found.units, **self._listed}
        way = request.way_out
        goes_further = way in {WayOut.CASCADE, WayOut.KEEP_LINES}
        refused = refused or (self._answered.refused if goes_further else None)
        if refused is not None and goes_further:
            shown = {**self._workspace.history.statuses(refused.recorded_to_reject), **shown}
        return self._workspace.decide(
            request.action,
            [*self._found.units],
            who=reviewer(),
            cascade=way is WayOut.CASCADE,
            markers=way is WayOut.MARKERS,
            keeps_lines=way is WayOut.KEEP_LINES,
            on_external=request.on_external,
            expected=self._answered.expected,
            shown=shown,
            refused=refused if goes_further else None,
            stops_at_unshown=True,
            **options,
        )


def _confirm(
    server: ServerState,
    action: Action,
    title: str,
    message: str,
    answered: Ticket,
    named: "Mapping[Unit, Status]",
    listed: "Mapping[Unit, Status]",
) -> Shape:
    """Return a question. `answered`: what is answered by going ahead; `listed`: what is asked about, by status."""
    units = {**named, **listed}
    takes = action is Action.REJECT
    return {
        "outcome": "confirm",
        "title": title,
        "message": visible(message),
        "hunks": list(map(str, units)),
        "accepted": [str(unit) for unit, status in units.items() if takes and status is Status.ACCEPTED],
        "action": action.value,
        "listed": [{"name": str(unit), "status": status.value} for unit, status in sorted(listed.items())],
        "ticket": server.ticket(answered),
    }


def _what_happened(server: ServerState, workspace: "Workspace", error: ChangesGone) -> str:
    """Return a sentence that says what happened to changes that are gone."""
    known = (server.changes.get(key) for key in error.keys)
    statuses = workspace.history.statuses(unit for change in known if change for unit in change.units)
    decided = {status.value for status in statuses.values()} - {Status.PENDING.value}
    if decided:
        they = "it is" if len(error.keys) == 1 else "they are"
        return f"Decided elsewhere meanwhile: {they} {' and '.join(sorted(decided))} now."
    return str(error)
