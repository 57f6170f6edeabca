"""What the commands that decide share: their options, and how they report what they did."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial, wraps
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar, assert_never, cast

import click

from cli.app.invocation import Command, Invocation, json_option, recorded_text, reviewer
from cli.app.member_names import store_named
from cli.commands.check import check_of, checking, say_that_it_runs
from cli.render.external_prompt import refuse, settled_in_dialogue
from cli.render.outcomes import (
    MY_CHANGES,
    conflict_text,
    decided_text,
    effect_text,
    resolution_commands,
    shown_units,
    undo_commands,
)
from cli.screen.progress import DECIDING, showing_progress
from cli.screen.terminal import FOR_STDERR, can_ask, shown_name, write, write_json
from cli.search.candidates import conversation_option, file_option, named, takes_turns
from cli.selection.turn_selection import TurnSelection
from cli.selection.unit_selection import UnitSelection, selected, way_back
from objstore import (
    BECOMES,
    Action,
    CasError,
    Conflicted,
    Decided,
    EditAway,
    EditExpired,
    EditFilter,
    ExternalChanges,
    NothingToDo,
    OnExternal,
    Origin,
    Status,
    counted,
    counted_edits,
    question_words,
    replace,
    value,
)

if TYPE_CHECKING:
    from objstore import (
        Check,
        DecisionInForce,
        DecisionOutcome,
        Json,
        Member,
        Remote,
        Selected,
        Unit,
        Workspace,
    )


__all__ = [
    "MARKERS_HELP",
    "DecisionCommand",
    "Undo",
    "WayOut",
    "takes_decision_options",
    "takes_reason",
    "takes_selection",
]

_NO_MARKERS: Final = "Conflict markers can't show this: they only work between live lines of a text file."

_NO_LINES_KEPT: Final = (
    "--keep-lines doesn't solve this: it keeps accepted lines in a text file of which the creation is rejected."
)

_NOTHING_LEFT: Final = {
    Action.ACCEPT: "nothing here waits to be accepted",
    Action.REJECT: "nothing here is left to reject",
    Action.RESET: "nothing here is left to reopen",
}
"""What is said where a name selects no unit that the decision could be about: of a group, it takes only such units."""

Function = TypeVar("Function", bound=Callable[..., object])


def takes_selection(function: Function) -> Function:
    """Give a command the parameters that name edits, combined into one argument `selection`."""

    @click.argument("names", metavar="[PATH|EDIT|HUNK|PATH:LINE]...", nargs=-1, type=named("edit", "path"))
    @takes_turns("The edits")
    @conversation_option("The edits of this conversation.")
    @file_option("The edits of this file, in a folder, or of a pattern.")
    @click.option("--all", "everything", is_flag=True, help="The edits of all agents.")
    @wraps(function)
    def with_selection(
        *, names: tuple[str, ...], by: TurnSelection, conversation: str, file: str, everything: bool, **others: object
    ) -> object:
        selection = UnitSelection(names=names, conversation=conversation, file=file, everything=everything, by=by)
        return function(selection=selection, **others)

    return cast("Function", with_selection)


takes_reason: Final = click.option(
    "-m",
    "--reason",
    callback=recorded_text,
    metavar="TEXT",
    default="",
    help="Reason to record and to report to the agent.",
)

_MY_CHANGES: Final = {"keep": OnExternal.KEEP, "drop": OnExternal.DISCARD}
"""What to do about changes that were not recorded."""

_EARLIER: Final = 10
"""How many earlier decisions are tried when an undo is refused, to name one that can be undone."""

MARKERS_HELP: Final = "On a conflict, write both versions into the file, between conflict markers."


def takes_decision_options(function: Function) -> Function:
    """Give a command the options that say how to decide, combined into one argument `decision_command`."""

    @click.option("-n", "--dry-run", is_flag=True, help="Show exactly what would change on disk; change nothing.")
    @click.option(
        "--my-changes",
        type=click.Choice(list(_MY_CHANGES)),
        help="Keep or drop changes to these files that were not recorded. Default: ask, or stop without a terminal.",
    )
    @click.option(
        "-y",
        "--yes",
        "is_sure",
        is_flag=True,
        help="Don't ask before it decides more than you named or a screenful, or breaks names.",
    )
    @click.option("--on-external", type=click.Choice([choice.value for choice in OnExternal]), hidden=True)
    @json_option
    @wraps(function)
    def with_options(
        *,
        dry_run: bool,
        my_changes: str | None,
        is_sure: bool,
        on_external: str | None,
        as_json: bool,
        check: str = "",
        **others: object,
    ) -> object:
        if my_changes is not None and on_external is not None:
            raise click.UsageError("--my-changes and --on-external are the same option: pass one of them.")
        answer = None if on_external is None else OnExternal(on_external)
        decision_command = DecisionCommand(
            invocation=Invocation.current(),
            dry_run=dry_run,
            asks=not (is_sure or dry_run) and can_ask(),
            on_external=answer if my_changes is None else _MY_CHANGES[my_changes],
            as_json=as_json,
            check=check,
        )
        return function(decision_command=decision_command, **others)

    return cast("Function", with_options)


_NO_NAME_TO_UNDO: Final = (
    "`cas undo` undoes the newest decision, whatever it was about, and `cas undo --decision N` that one. "
    "To take an edit out, run `cas reject EDIT`."
)


class Undo(Command):
    """A command that takes no name, though users may expect that it does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; if there is a name, say which command takes one."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if "unexpected extra argument" not in error.format_message():
                raise
            raise click.UsageError(_NO_NAME_TO_UNDO, ctx) from error


@value
class WayOut:
    """What a decision does about a conflict; at most one of the first three is true. None is: it is refused."""

    cascade: bool = False
    keeps_lines: bool = False
    markers: bool = False
    takes_users: bool = False  # whether it also rejects what uses names that it takes out; no answer to a conflict

    def __bool__(self) -> bool:
        """Return whether there is one."""
        return self.cascade or self.keeps_lines or self.markers


@value
class DecisionCommand:
    """Take a decision as the options say, and report the outcome."""

    invocation: Invocation
    dry_run: bool
    asks: bool  # before more is decided than was named, or than a screenful
    on_external: OnExternal | None  # None: ask
    as_json: bool
    check: str = ""  # a command that must succeed on what it would leave; "": that of the settings, if any

    def decide(
        self,
        action: Action,
        selection: UnitSelection,
        way_out: WayOut,
        *,
        reason: str = "",
    ) -> None:
        """Take a decision and report it; exits 1 when it is refused."""
        if self.invocation.other is not None:
            self._decide_elsewhere(action, selection, self.invocation.other, way_out, reason=reason)
            return
        selection.check()
        with self.invocation.reviewed_workspace() as workspace:
            # Before the decision: the current folder may become empty by it and be removed.
            found = selected(workspace, action, selection)
            # Who types the number of an edit or hunk means it, accepted or not.
            meant = found.units if selection.has_numbers_alone else {}
            if way_out.takes_users:
                found = _with_users(workspace, found, cascade=way_out.cascade)
            shown = found.units
            if self.asks and action is Action.REJECT and not _confirmed(found):
                shown = {
                    each: status for each, status in shown.items() if each in meant or status is not Status.ACCEPTED
                }
            self.decide_units(workspace, action, selection, found, way_out, reason=reason, shown=shown)

    def _decide_elsewhere(
        self,
        action: Action,
        selection: UnitSelection,
        other: "tuple[Remote, Member]",
        way_out: WayOut,
        *,
        reason: str,
    ) -> None:
        """Decide on what another store has, by the log of the bucket: the store with the files carries it out."""
        from cli.render.net_diff import MOST_UNITS
        from cli.selection.elsewhere import goes_along

        remote, member = other
        if way_out or way_out.takes_users or self.check or self.on_external is not None:
            raise click.UsageError(f"How a conflict is solved is decided where the files are: by {member.name}.")
        if not selection.names and not selection.is_group:
            raise click.UsageError(f"Name edits or hunks of {member.name}, such as {member.name}/12:2.")
        with self.invocation.workspace() as mirror:
            found = selected(mirror, action, selection)
            units = {unit: status for unit, status in found.units.items() if status is not BECOMES[action]}
            if units and self.asks:
                is_listed = (action is Action.REJECT and _confirmed(found)) or selection.has_numbers_alone
                along = goes_along(mirror, action, units, is_listed=is_listed)
                if along:
                    click.echo(question_words(action, units, along, mirror.history.edit), err=True)
                    click.confirm("Go ahead?", abort=True, err=True)
        named = [unit for unit in found.named if unit in units] or sorted(units)
        more = len(named) - MOST_UNITS
        rest = f" and {counted(more, 'more hunk')}" if more > 0 else ""
        shown = ", ".join(f"{member.name}/{unit}" for unit in named[:MOST_UNITS]) + rest
        number = 0
        if units and not self.dry_run:
            with self.invocation.own_workspace() as workspace:
                decide = workspace.remote_decisions.decide
                number = decide(remote, member, action, units, who=reviewer(), reason=reason)
        if self.as_json:
            names_of = [str(unit) for unit in sorted(units)]
            shape: dict[str, Json] = {"store": member.name, "action": action.value, "units": [*names_of]}
            write_json([{**shape, "entry": number or None, "dry_run": self.dry_run}])
            return
        if not units:
            self._say_nothing_to_do(f"Nothing to do: already {BECOMES[action].value}.", reason)
            return
        said = f"Would ask {member.name} to" if self.dry_run else f"Decision {number} asks {member.name} to"
        then = "" if self.dry_run else " It is carried out there by the next `cas pull`."
        verb = "reopen" if action is Action.RESET else action.value
        write([self.invocation.screen().line(f"{said} {verb} {shown}.{then}")])

    def decide_units(
        self,
        workspace: "Workspace",
        action: Action,
        selection: UnitSelection,
        found: "Selected",
        way_out: WayOut,
        *,
        reason: str = "",
        shown: "Mapping[Unit, Status] | None" = None,
    ) -> None:
        """Take a decision on what `selection` selects, and report it, as `decide`.

        `shown`: what of that the person knows to be decided (None: all).
        """
        units = found.units
        decision = partial(workspace.decide, action, [*units], reason=reason, who=reviewer())
        check = self._check(workspace, action, way_out)

        def decide(**answers: Any) -> "DecisionOutcome":  # noqa: ANN401 - as of `Decide`
            chosen = partial(
                decision,
                cascade=way_out.cascade,
                keeps_lines=way_out.keeps_lines,
                markers=way_out.markers,
                **answers,
            )
            if check is not None:
                with checking(workspace):
                    return chosen(check=check, copied=partial(say_that_it_runs, check))
            with showing_progress(workspace, DECIDING):
                return chosen(dry_run=self.dry_run)

        outcome: DecisionOutcome = NothingToDo()
        if units:
            known = units if shown is None else shown
            outcome = settled_in_dialogue(workspace, decide, self.on_external, asks=self.asks, shown=known, named=units)
        can_mark = False
        if isinstance(outcome, Conflicted) and outcome.outside and not (way_out or selection.command):
            with suppress(CasError), showing_progress(workspace, DECIDING):
                kept = decision(shown=units, markers=True, on_external=OnExternal.KEEP, dry_run=True)
                can_mark = isinstance(kept, Decided)

        def advice(refused: Conflicted) -> list[str]:
            said = resolution_commands(
                action,
                selection,
                refused,
                workspace.history.edit,
                newest=workspace.history.edits(EditFilter(newest_first=True, limit=1))[0].seq,
                on_external=self.on_external,
                can_mark=can_mark,
                program=self.invocation.program,
            )
            impossible = [_NO_MARKERS] if way_out.markers else [_NO_LINES_KEPT] if way_out.keeps_lines else []
            return impossible + said

        self._report(workspace, action, outcome, advice, found.paths)
        if isinstance(outcome, NothingToDo) and not self.as_json:
            rejected = way_back(workspace, selection) if action is Action.ACCEPT and not units else ""
            why = f"already {BECOMES[action].value}" if units else _NOTHING_LEFT[action]
            done = f"Nothing here waits to be accepted. {rejected}" if rejected else f"Nothing to do: {why}."
            self._say_nothing_to_do(done, reason)

    def _say_nothing_to_do(self, said: str, reason: str) -> None:
        """Say that nothing was decided, and with it that a reason was not recorded: no agent will ever read it."""
        resets = f"`{self.invocation.program} reopen` them first, then reject them with the reason"
        lost = [f"The reason was not recorded. To record it, {resets}."] if reason else []
        write(map(self.invocation.screen().line, [said, *lost]))

    def _check(self, workspace: "Workspace", action: Action, way_out: WayOut) -> "Check | None":
        """Return the check of a decision; None: it has none."""
        if self.check and self.dry_run:
            raise click.UsageError("`cas try` runs a command without deciding: pass --check or --dry-run, not both.")
        if self.check and way_out.markers:
            raise click.UsageError("Conflict markers are for you to resolve: pass --check or --markers, not both.")
        if self.dry_run or way_out.markers or action not in {Action.ACCEPT, Action.REJECT}:
            return None
        return check_of(workspace, self.check)

    def undo(self, number: int) -> None:
        """Undo a decision and report it; exits 1 when there is none, or it is refused.

        `number`: the decision, whatever was decided later about other edits (0: the newest one).
        """
        with self.invocation.reviewed_workspace() as workspace:
            end = workspace.history.end()
            made = workspace.review.in_force()
            past = _later_decisions(workspace, made, number, self.invocation.program) if number else []
            undo = partial(workspace.review.undo, number, past=past, end=end)
            refused = number or next((decision.number for decision in made), 0)

            def advice(outcome: Conflicted) -> list[str]:
                said = undo_commands(
                    outcome,
                    workspace.history.edit,
                    number=refused,
                    on_external=self.on_external,
                    program=self.invocation.program,
                )
                return said + self._earlier_undo(workspace, made, refused)

            try:
                outcome = self._stepped(workspace, undo)
            except (EditAway, EditExpired) as error:
                further = self._earlier_undo(workspace, made, refused)
                raise click.ClickException("\n".join([str(error), *further])) from error
            self._report(workspace, Action.UNDO, outcome, advice)
            if isinstance(outcome, NothingToDo):
                raise click.ClickException(f"No decision to undo.{self._own_edit(workspace)}")

    def withdraw(self, store: str, number: int) -> None:
        """Take back a decision on what another store has, and report it; exits 1 if none waits to be carried out.

        `number`: in the log of the bucket (0: the newest one of the user).
        """
        from objstore import NoSuchName

        with self.invocation.own_workspace() as workspace:
            try:
                remote, member = store_named(workspace, store)
            except NoSuchName as error:
                raise click.UsageError(_NO_NAME_TO_UNDO, click.get_current_context()) from error
            if not store.endswith("/"):  # it may be meant for a file or folder
                way = f"`cas undo {shown_name(store)}/`, with a slash, takes back your decision on what that store has."
                raise click.UsageError(f"{_NO_NAME_TO_UNDO} {way}")
            try:
                found = workspace.remote_decisions.withdraw(
                    remote, member, number, who=reviewer(), dry_run=self.dry_run
                )
            except NoSuchName as error:
                reopens = f"`{self.invocation.program} reopen {member.name}/EDIT` asks {member.name} to take it back"
                which = f"Decision {number} does not wait" if number else "No decision of yours waits"
                raise click.ClickException(
                    f"{which} to be carried out by {member.name}. After a pull that shows one, {reopens}."
                ) from error
        if self.as_json:
            write_json([{"store": member.name, "withdrawn": found, "dry_run": self.dry_run}])
            return
        said = f"Would take back decision {found}." if self.dry_run else f"Took back decision {found}."
        then = f" The next `cas pull` of {member.name} answers, and says if it was carried out before."
        write([self.invocation.screen().line(said + ("" if self.dry_run else then))])

    def redo(self) -> None:
        """Redo one decision and report it; exits 1 when there is none, or it is refused."""
        with self.invocation.reviewed_workspace() as workspace:
            outcome = self._stepped(workspace, partial(workspace.review.redo, end=workspace.history.end()))
            by_name = f"`{self.invocation.program} accept` or `{self.invocation.program} reject`"
            self._report(
                workspace, Action.REDO, outcome, lambda _: [f"Decide on the edits by name instead: {by_name}."]
            )
            if isinstance(outcome, NothingToDo):
                raise click.ClickException("No decision to redo.")

    def _stepped(self, workspace: "Workspace", step: Callable[..., "DecisionOutcome"]) -> "DecisionOutcome":
        def decide(**answers: Any) -> "DecisionOutcome":  # noqa: ANN401 - as of `Decide`
            with showing_progress(workspace, DECIDING):
                return step(who=reviewer(), dry_run=self.dry_run, **answers)

        return settled_in_dialogue(workspace, decide, self.on_external, asks=self.asks, shown={})

    def _earlier_undo(self, workspace: "Workspace", made: "Sequence[DecisionInForce]", refused: int) -> list[str]:
        """Return the command that undoes the newest decision before a refused one, if any of the last few can be."""
        past = {decision.number for decision in made if decision.number >= refused}
        for decision in [decision for decision in made if decision.number < refused][:_EARLIER]:
            on_external = self.on_external or OnExternal.KEEP
            outcome: DecisionOutcome = NothingToDo()
            with suppress(CasError):
                outcome = workspace.review.undo(decision.number, past=past, on_external=on_external, dry_run=True)
            if isinstance(outcome, Decided):
                about = shown_units(decision.units, workspace.history.edit)
                answer = "" if self.on_external is None else f" {MY_CHANGES[self.on_external]}"
                run = f"{self.invocation.program} undo --decision {decision.number}{answer}"
                return [f"To undo the decision on {about} instead:  {run}"]
            past.add(decision.number)
        return []

    def _report(
        self,
        workspace: "Workspace",
        action: Action,
        outcome: "DecisionOutcome",
        advice: Callable[[Conflicted], Sequence[str]],
        paths: Mapping[int, str] | None = None,
    ) -> None:
        """Report an outcome; the caller says in words that there was nothing to do. `advice`: commands to type."""
        if self.as_json:
            from objstore import outcome_shape

            shape = outcome_shape(workspace, action, outcome, dry_run=self.dry_run)
            if self.dry_run and isinstance(outcome, Decided):
                from cli.json_shapes.diffs import with_diffs

                shape = with_diffs(workspace, outcome.files, shape)
            write_json([shape])
        match outcome:
            case Decided():
                if not self.as_json:
                    self._say(workspace, outcome, paths or {})
            case Conflicted():
                for line in conflict_text(outcome, advice(outcome), FOR_STDERR):
                    click.echo(line, err=True, nl=False)
                click.get_current_context().exit(1)
            case ExternalChanges():
                refuse(workspace, outcome.changes, self.on_external, self.invocation.program)
            case NothingToDo():
                pass
            case _:
                assert_never(outcome)

    def _say(self, workspace: "Workspace", outcome: Decided, paths: Mapping[int, str]) -> None:
        screen = self.invocation.screen()
        decided = {unit.seq for unit, _ in outcome.verdicts}
        files = list(dict.fromkeys(path for seq, path in paths.items() if seq in decided))
        text = decided_text(
            outcome, workspace.history.edit, screen, dry_run=self.dry_run, files=files if len(files) > 1 else ()
        )
        if self.dry_run:
            if outcome.action is Action.REJECT and any(each.user is not None for each in outcome.broken):
                text = chain(text, [screen.line("To reject what uses it too, add --with-users.")])
            text = chain(text, effect_text(outcome.files, workspace.review.preview, screen))
        write(text, paged=self.dry_run)

    def _own_edit(self, workspace: "Workspace") -> str:
        """Return how to undo the newest edit if the user made it, as by `cas restore`: no decision made it."""
        for view in workspace.history.edits(EditFilter(newest_first=True, limit=1)):
            if view.edit.origin is Origin.PERSON and view.status.is_live and view.expired is None:
                return f"\nThe newest edit is your own. To undo it, run `{self.invocation.program} reject {view.seq}`."
        return ""


def _later_decisions(workspace: "Workspace", made: "Sequence[DecisionInForce]", number: int, program: str) -> list[int]:
    """Return the decisions after decision `number`. Raises ClickException if it can't be undone before one of them."""
    later: list[int] = []
    wanted = next((decision for decision in made if decision.number == number), None)
    if wanted is None:
        raise click.ClickException(f"There is no decision {number} to undo: it was not made, or it was undone.")
    for decision in made[: made.index(wanted)]:
        if not wanted.units.isdisjoint(decision.units):
            both = shown_units(wanted.units & decision.units, workspace.history.edit)
            raise click.ClickException(
                f"Decision {number} can't be undone before decision {decision.number}, which is about {both} too. "
                f"Run `{program} undo --decision {decision.number}` first."
            )
        later.append(decision.number)
    return later


def _with_users(workspace: "Workspace", found: "Selected", *, cascade: bool) -> "Selected":
    """Return what is selected, and the hunks whose lines use names that rejecting it would take out of sources."""
    units = dict(found.units)
    while units:
        tried = workspace.decide(Action.REJECT, [*units], cascade=cascade, on_external=OnExternal.KEEP, dry_run=True)
        broken = tried.broken if isinstance(tried, Decided) else ()
        users = {each.user for each in broken if each.user is not None} - units.keys()
        if not users:
            break
        units |= workspace.history.statuses(users)
    return replace(found, units=units, named=tuple(sorted({*found.named, *(units.keys() - found.units.keys())})))


def _confirmed(found: "Selected") -> bool:
    """Ask before a rejection of more changes than a screen has rows; return whether that was asked.

    Raises Abort if the answer is no.
    """
    changes = sum(found.units[unit] is not Status.REJECTED for unit in found.named)
    if changes <= 1:
        return False
    from shutil import get_terminal_size  # it loads what unpacks archives

    if changes <= get_terminal_size().lines:
        return False
    edits = f": {counted_edits(found.units, found.accepted)}" if found.accepted else ""
    return click.confirm(
        f"Reject {counted(changes, 'change')} in {counted(len(found.files), 'file')}{edits}?", abort=True, err=True
    )
