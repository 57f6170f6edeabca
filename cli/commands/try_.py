"""The command `cas try`: run a command on what the workspace is, or would be after a decision, in a scratch copy."""

import os
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from cli.app.invocation import Command, Invocation, command, reviewer
from cli.app.member_names import store_named
from cli.commands.check import MOST_MISSING, say_what_is_missing, start_folder
from cli.render.outcomes import conflict_text
from cli.screen.progress import CHECKING, DECIDING, Progress, showing_progress
from cli.screen.terminal import FOR_STDERR, shown_name
from cli.search.candidates import named, stores, takes_turns
from cli.selection.turn_selection import TurnSelection
from cli.selection.unit_selection import UnitSelection, selected
from objstore import (
    Action,
    Conflicted,
    Decided,
    NothingToDo,
    OnExternal,
    Selection,
    Status,
    ending_on_signals,
    replace,
    value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from objstore import CoveredTree, DecisionOutcome, FileResult, Unit, Workspace

__all__ = [
    "RunningCommand",
    "Trial",
    "invocation_in",
    "store_option",
    "tried_workspace",
    "try_",
]

Function = TypeVar("Function", bound=Callable[..., object])

_NOT_RUN: Final = frozenset({126, 127})
"""Statuses that say that a command could not be started."""


class RunningCommand(Command):
    """A command of which the last argument is another command, with options of its own."""

    allow_interspersed_args = False


def store_option(function: Function) -> Function:
    """Give a command the option --store."""
    return click.option(
        "--store",
        metavar="STORE/",
        default="",
        shell_complete=stores,
        help="In a copy of what another store has, as the newest `cas pull` fetched it.",
    )(function)


def invocation_in(store: str) -> Invocation:
    """Return the invocation of the command that runs, in the store of the option --store ("": not given).

    Raises NoSuchName, and click.UsageError if other names are in yet another store.
    """
    invocation = Invocation.current()
    if not store:
        return invocation
    with invocation.own_workspace() as own:
        other = store_named(own, store)
    if invocation.other is not None and invocation.other[1].lane != other[1].lane:
        raise click.UsageError("Name what is in one store, not in several at once.")
    return replace(invocation, other=other)


@contextmanager
def tried_workspace(invocation: Invocation) -> "Iterator[Workspace]":
    """Open the workspace, or a temporary one with the history and the files of the store that names are of."""
    if invocation.other is None:
        with invocation.reviewed_workspace() as workspace:
            yield workspace
        return
    from tempfile import TemporaryDirectory

    from objstore import Workspace, import_bundle

    with ending_on_signals(), TemporaryDirectory(prefix="cas-") as folder:
        bundle, root = Path(folder, "bundle"), str(Path(folder, invocation.other[1].name))
        with invocation.workspace() as mirror, Progress({**CHECKING, "bytes": "copying"}) as progress:
            mirror.transfer.export_bundle(str(bundle), progress.report)
            import_bundle(str(bundle), root, progress=progress.report)
        bundle.unlink()
        with Workspace.open(root) as workspace:
            yield workspace


@command("try", cls=RunningCommand, takes_others=True)
@click.option(
    "--reject", "rejected", metavar="NAME", multiple=True, type=named("edit", "path"),
    help="As if you rejected this: a PATH, an edit (12), a hunk (12:2) or a line (PATH:7); may be repeated.",
)  # fmt: skip
@click.option(
    "--accept", "accepted", metavar="NAME", multiple=True, type=named("edit", "path"),
    help="As if you accepted this, so that a rejected edit is there again; may be repeated.",
)  # fmt: skip
@click.option("--accepted", "without_pending", is_flag=True, help="As if you rejected all that is pending.")
@click.option("--cascade", is_flag=True, help="Also without what depends on what is rejected.")
@takes_turns("Without the edits")
@store_option
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def try_(
    *,
    rejected: tuple[str, ...],
    accepted: tuple[str, ...],
    without_pending: bool,
    cascade: bool,
    by: TurnSelection,
    store: str,
    words: tuple[str, ...],
) -> None:
    """Run a command in a copy of the workspace, as it is or as a decision would leave it.

    With names of another store (desk/12), or --store, it is a copy of what that store has.

    Your files stay as they are, and nothing is decided. The copy has what `cas record` covers; ignored files, such as
    an environment, are links to yours if the setting `try.links` names them. Output and exit status are the command's.
    """
    if bool(rejected or by.is_given) + bool(accepted) + without_pending > 1:
        raise click.UsageError("Pass one of: --reject (with --turn, --session, --agent), --accept, --accepted.")
    with tried_workspace(invocation_in(store)) as workspace:
        trial = Trial(workspace=workspace, cascade=cascade)
        if without_pending:
            pending = workspace.review.select(Action.REJECT, Selection(everything=True, status=Status.PENDING))
            results = trial.results(Action.REJECT, [*pending.units])
        elif accepted:
            results = trial.results_of(Action.ACCEPT, UnitSelection(names=accepted))
        elif rejected or by.is_given:
            results = trial.results_of(Action.REJECT, UnitSelection(names=rejected, by=by))
        else:
            results = {}
        covered = workspace.trials.covered()
        with workspace.trials.copy(covered, results) as copy:
            say_what_is_missing(copy.skipped)
            ran = copy.run(words, start_folder(workspace))
        if ran.tail:
            click.echo(ran.tail, err=True, nl=False)
        if ran.status in _NOT_RUN:
            _say_what_links_are_for(covered)
    click.get_current_context().exit(ran.status)


@value
class Trial:
    """What decisions would make of the files, for copies that have that."""

    workspace: "Workspace"
    cascade: bool = False

    def results_of(self, action: Action, selection: UnitSelection) -> "dict[bytes, FileResult | None]":
        """Return what deciding on a selection would leave in files. Exits with 1 if that is refused."""
        return self.results(action, [*selected(self.workspace, action, selection).units])

    def results(self, action: Action, units: "Sequence[Unit]") -> "dict[bytes, FileResult | None]":
        """Return what deciding on units would leave in files. Exits with 1 if that is refused."""
        outcome = self.outcome(action, units)
        if isinstance(outcome, Conflicted):
            for line in conflict_text(outcome, ["To try it without what depends on it, add --cascade."], FOR_STDERR):
                click.echo(line, err=True, nl=False)
            click.get_current_context().exit(1)
        return self.results_in(outcome)

    def results_in(self, outcome: "DecisionOutcome") -> "dict[bytes, FileResult | None]":
        """Return what the newest dry run would leave in files."""
        if not isinstance(outcome, Decided):
            return {}
        return self.workspace.trials.results(outcome.files, self.workspace.review.preview)

    def outcome(self, action: Action, units: "Sequence[Unit]") -> "DecisionOutcome":
        """Return what deciding on units would do; what was changed outside stays."""
        if not units:
            return NothingToDo()
        decide = partial(
            self.workspace.decide, action, units, who=reviewer(), cascade=self.cascade, with_names=False, dry_run=True
        )
        with showing_progress(self.workspace, DECIDING):
            return decide(on_external=OnExternal.KEEP)


def _say_what_links_are_for(covered: "CoveredTree") -> None:
    """After a command that could not be started, say that ignored folders are missing in the copy, if any is."""
    here = [os.fsdecode(path) for path in covered.ignored if b"/" not in path and path not in {b".git", b".cas"}]
    if here:
        shown = shown_name(" ".join(here[:MOST_MISSING]))
        click.echo(
            f"cas: the copy has no ignored files. To link some, name them: cas config set try.links '{shown}'", err=True
        )
