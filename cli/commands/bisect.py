"""The command `cas bisect`: find the edit, hunk or turn that makes a command fail, on copies of the workspace."""

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from threading import Event
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Invocation, Number, command
from cli.commands.check import start_folder
from cli.commands.try_ import RunningCommand, Trial, invocation_in, store_option, tried_workspace
from cli.render.authors import Authors
from cli.render.edits import edit_diff, edit_header
from cli.render.prompts import first_line
from cli.screen.quoting import typed
from cli.screen.terminal import write
from cli.search.candidates import named
from objstore import (
    Action,
    CasError,
    Conflicted,
    EditFilter,
    EditView,
    ExternalChanges,
    NoSuchName,
    NotFound,
    Status,
    Unit,
    ending_on_signals,
    first_failing,
    moment_of,
    replace,
    smallest_failing,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from objstore import CoveredTree, FileResult, KnownRuns, Workspace

__all__ = ["bisect"]

_NOT_RUN: Final = frozenset({126, 127})
_MOST_JOBS: Final = 64

_SHELLS: Final = {("sh", "-c"), ("/bin/sh", "-c")}

Item = tuple[Unit, ...]
"""What is taken out or left as a whole: the units of a hunk, of an edit or of a turn."""


@command("bisect", cls=RunningCommand, takes_others=True)
@click.option(
    "--good",
    metavar="STATE",
    default="",
    type=named("edit"),
    help="It succeeded then: after edit 12 (12^: before it), turn:3 or session:2, in snapshot:4, or at a time.",
)
@click.option("--by", type=click.Choice(["edit", "hunk", "turn"]), default="edit", help="What to name. Default: edit.")
@click.option("--set", "by_set", is_flag=True, help="Find all that is needed for the failure, such as two edits.")
@click.option("--repeat", type=Number(1, 1000), default=1, metavar="N", help="Run N times: it fails if one run does.")
@click.option("-j", "--jobs", type=Number(1, _MOST_JOBS), default=1, metavar="N", help="Run N at once.")
@store_option
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def bisect(*, good: str, by: str, by_set: bool, repeat: int, jobs: int, store: str, words: tuple[str, ...]) -> None:
    """Find which edit, hunk or turn makes a command fail, by trying it on copies with some of them taken out.

    All edits that are live are searched, in their order, whoever made them. Nothing is decided, your files stay as they
    are, and a search that was broken off goes on where it was. The command fails by any exit status but 0.

    With --store, or --good desk/12, the history of another store is searched, in a temporary copy of it.
    """
    invocation = invocation_in(store)
    with tried_workspace(invocation) as workspace, ending_on_signals():
        after = _last_edit(workspace, good) if good else 0
        items = _items(workspace, by, after)
        if not items:
            raise click.ClickException("No edit is live" + (f" after edit {after}." if after else "."))
        search = _Search(workspace, items, words, repeat=repeat, jobs=jobs)
        positions = list(range(len(items)))
        try:
            found = (
                smallest_failing(positions, search.fails, at_once=jobs)
                if by_set
                else [first_failing(positions, search.fails, at_once=jobs)]
            )
        except NotFound as error:
            raise click.ClickException(f"`{_shown(words)}`: {error}.") from None
        culprits = [items[at] for at in found]
        write(_report(workspace, culprits, by, search, words, invocation))


def _last_edit(workspace: "Workspace", state: str) -> int:
    """Return the newest edit of a state: an edit's, a turn's, a session's, a snapshot's, or that of a moment; 0: none.

    Raises NoSuchName, AmbiguousName, and ClickException if it names nothing.
    """
    kind, _, name = state.partition(":")
    if kind in {"turn", "session"} and name:
        wanted = EditFilter(newest_first=True, limit=1)
        if kind == "turn":
            wanted = replace(wanted, turn=workspace.sessions.turn(_number(name) if name.isdecimal() else 0).number)
        else:
            wanted = replace(wanted, session=name)
        return next((view.seq for view in workspace.history.edits(wanted)), 0)
    if kind == "snapshot" and name.isdecimal():
        return _last_edit_until(workspace, workspace.snapshots.get(_number(name)).time)
    try:
        seq = workspace.history.find_units(state.removesuffix("^"))[0].seq
    except NoSuchName:
        moment = moment_of(state, datetime.now().astimezone())
        if moment is None:
            raise
        return _last_edit_until(workspace, moment)
    return seq - 1 if state.endswith("^") else seq


def _number(digits: str) -> int:
    """Return a number of a turn or snapshot. Raises click.BadParameter for more digits than any number has."""
    number: int = Number(min=0)(digits, None, click.get_current_context())
    return number


def _last_edit_until(workspace: "Workspace", moment: int) -> int:
    views = workspace.history.edits(EditFilter(newest_first=True))
    return next((view.seq for view in views if view.edit.time <= moment), 0)


class _Search:
    """One search: which sets of items were tried, and how they ended."""

    def __init__(
        self, workspace: "Workspace", items: Sequence[Item], words: Sequence[str], *, repeat: int, jobs: int
    ) -> None:
        self.workspace: Final = workspace
        self.items: Final = items
        self.words: Final = words
        self.repeat: Final = repeat
        self.jobs: Final = jobs
        self.below: Final = start_folder(workspace)
        self.covered: Final[CoveredTree] = workspace.trials.covered()
        self.known: Final[KnownRuns] = workspace.trials.known_runs(repr((tuple(words), repeat, self.below)))
        self.runs = 0  # sets on which the command ran in this search
        self.recalled = 0  # sets of which an earlier run was known

    def fails(self, sets: Sequence[Sequence[int]]) -> list[bool]:
        """Return for each set of items whether the command fails if only these are live. Several run at once."""
        results = [self._results(live) for live in sets]
        keys = [self.workspace.trials.key(self.covered, each) for each in results]
        todo = {key: each for key, each in zip(keys, results, strict=True) if self.known.status(key) is None}
        self.recalled += len(set(keys)) - len(todo)
        stopped = Event()
        with ExitStack() as stack:
            copies = {
                key: stack.enter_context(self.workspace.trials.copy(self.covered, each)) for key, each in todo.items()
            }

            def status(key: str) -> int:
                for _ in range(self.repeat):
                    ran = copies[key].run_kept(self.words, self.below, limit=None, stopped=stopped.is_set)
                    if ran.status:
                        return ran.status
                return 0

            with ThreadPoolExecutor(self.jobs) as pool:
                try:
                    statuses = dict(zip(copies, pool.map(status, copies), strict=True))
                except BaseException:
                    stopped.set()
                    raise
        for key, ended in statuses.items():
            if ended in _NOT_RUN:
                raise click.ClickException(f"`{_shown(self.words)}` could not be started in the copy (status {ended}).")
            self.runs += 1
            self.known.note(key, ended)
            if sys.stderr.isatty():
                click.echo(f"run {self.runs}: {'fails' if ended else 'succeeds'}", err=True)
        return [bool(self.known.status(key)) for key in keys]

    def _results(self, live: Sequence[int]) -> "dict[bytes, FileResult | None]":
        """Return what is in files if only these items are live; what depends on others goes with them."""
        kept = {unit for at in live for unit in self.items[at]}
        gone = [unit for item in self.items for unit in item if unit not in kept]
        trial = Trial(workspace=self.workspace, cascade=True)
        outcome = trial.outcome(Action.REJECT, gone)
        if isinstance(outcome, Conflicted | ExternalChanges):
            raise click.ClickException("A state between can't be made: edits conflict. Search with --good STATE.")
        found = trial.results_in(outcome)
        # The texts of a dry run are gone with the next one.
        return {path: each if each is None else _in_memory(each) for path, each in found.items()}


def _in_memory(result: "FileResult") -> "FileResult":
    """Return a result whose bytes are in memory."""
    return result._replace(pieces=tuple(result.pieces))


def _items(workspace: "Workspace", by: str, after: int) -> list[Item]:
    """Return what is live after an edit, by hunk, edit or turn, oldest first."""
    turns: dict[int, list[Unit]] = {}
    items: list[Item] = []
    live = {Status.PENDING, Status.ACCEPTED}
    for view in workspace.history.edits():
        if view.seq <= after or view.expired is not None:
            continue
        units = [
            unit
            for hunk, unit in enumerate(Unit(view.seq, at) for at in range(len(view.units)))
            if view.units[hunk] in live
        ]
        if not units:
            continue
        match by:
            case "turn" if view.edit.turn:
                if view.edit.turn not in turns:
                    turns[view.edit.turn] = []
                turns[view.edit.turn] += units
            case "hunk":
                items += [(unit,) for unit in units if unit.hunk or view.whole]
            case _:
                items.append(tuple(units))
    items += map(tuple, turns.values())
    return sorted(items, key=min)


def _report(
    workspace: "Workspace",
    culprits: Sequence[Item],
    by: str,
    search: _Search,
    words: Sequence[str],
    invocation: Invocation,
) -> "Iterator[bytes]":
    """Yield the culprits with their diffs and prompts, and the command that rejects them."""
    screen = invocation.screen()
    counted = f"{search.runs} run{'' if search.runs == 1 else 's'}"
    more = f", and {search.recalled} known from before" if search.recalled else ""
    authors = Authors(workspace)
    named: list[str] = []
    views: list[EditView] = []
    for item in culprits:
        seqs = sorted({unit.seq for unit in item})
        named += [f"{unit}" for unit in item] if by == "hunk" else map(str, seqs)
        views += [workspace.history.edit(seq) for seq in seqs]
    what = " and ".join(f"edit {view.seq}" for view in views) if by != "hunk" else f"hunk {' and '.join(named)}"
    together = " together" if len(culprits) > 1 else ""
    yield screen.line(f"`{_shown(words)}` fails with {what}{together} ({counted}{more}).")
    for view in views:
        yield screen.line()
        yield from edit_header(view, authors.fact(view), authors.verdicts(view), screen)
        prompt = workspace.sessions.turn(view.edit.turn).prompt if view.edit.turn else ""
        if prompt and "prompt" not in view.edit.notes:
            yield screen.line(f"prompt          {first_line(prompt)}")
        yield screen.line()
        try:
            yield from edit_diff(view, workspace, screen)
        except CasError as error:
            yield screen.line(str(error))
    yield screen.line()
    target = (
        f"--turn {invocation.of_other(str(views[0].edit.turn))}"
        if by == "turn" and views[0].edit.turn
        else " ".join(map(invocation.of_other, named[:1] if len(culprits) > 1 else named))
    )
    reason = typed(f"{_shown(words)} fails with it")
    check = "" if invocation.other is not None else f" --check {typed(_shown(words))}"  # made where the files are
    yield screen.line(f"To take it out:  {invocation.program} reject {target} -m {reason}{check}")


def _shown(words: Sequence[str]) -> str:
    """Return a command as a line for a shell."""
    return words[-1] if tuple(words[:-1]) in _SHELLS else " ".join(map(typed, words))
