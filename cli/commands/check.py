"""Let a command decide whether a decision is made: it runs on a copy of what the decision would leave."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from cli.commands.try_ import say_what_is_missing, start_folder
from cli.screen.terminal import can_ask, visible
from objstore import CheckedElse, Configuration, Decided, ending_on_signals, reason_with_check, value

if TYPE_CHECKING:
    from objstore import DecisionOutcome, Ran, Workspace

__all__ = ["Check", "takes_check"]

Function = TypeVar("Function", bound=Callable[..., object])


def takes_check(function: Function) -> Function:
    """Give a command the option --check."""
    return click.option(
        "--check",
        "check",
        metavar="COMMAND",
        default="",
        help="Decide only if this shell command succeeds on a copy of the result. Default: the setting review.check.",
    )(function)


@value
class Check:
    """A command that must succeed on what a decision would leave."""

    command: str  # for /bin/sh
    limit: float | None  # seconds; None: no limit
    below: str  # the folder in which it starts, relative to the workspace

    @classmethod
    def of(cls, workspace: "Workspace", typed: str) -> "Check | None":
        """Return the check that was typed, or else the one of the settings (None: there is none).

        A command that was typed starts where the person is, and one of the settings in the workspace's root.
        """
        configured, limit = Configuration(workspace.root).several("review.check", "review.check_limit")
        command = typed or configured.value
        if not isinstance(command, str):
            return None
        seconds = limit.value if isinstance(limit.value, int) else None
        return cls(command=command, limit=seconds, below=start_folder(workspace) if typed else "")

    def decide(
        self,
        workspace: "Workspace",
        reason: str,
        decision: Callable[..., "DecisionOutcome"],
        *,
        stops_at_broken: bool,
    ) -> "DecisionOutcome":
        """Make a decision if the command succeeds on what it would leave; the end of the output becomes its reason's.

        The store is not locked meanwhile. If files change, nothing is decided. Raises click.ClickException if the
        command fails, and CheckedElse. `stops_at_broken`: run nothing if it breaks names, as `Review.decide`.
        """
        workspace.review.require_person()
        planned = decision(reason=reason, dry_run=True)
        if not isinstance(planned, Decided) or (stops_at_broken and planned.broken):
            return planned
        results = workspace.trials.results(planned.files, workspace.review.preview)
        covered = workspace.trials.covered()
        with workspace.trials.copy(covered, results) as copy:
            say_what_is_missing(copy.skipped)
            if can_ask():
                click.echo(f"Checking with `{visible(self.command)}` ...", err=True)
            with ending_on_signals():
                ran = copy.run_kept(["/bin/sh", "-c", self.command], self.below, limit=self.limit)
        if ran.status or ran.is_over_limit:
            raise click.ClickException(self._failure(ran))
        changed = workspace.trials.covered().changed_since(covered)
        if changed:
            raise CheckedElse(list(map(os.fsdecode, changed)))
        said = ran.tail.decode("utf-8", "replace")
        return decision(reason=reason_with_check(reason, self.command, said), checked=planned.files, dry_run=False)

    def _failure(self, ran: "Ran") -> str:
        how = f"took longer than {self.limit:g} s" if ran.is_over_limit else f"failed with status {ran.status}"
        said = [visible(line) for line in ran.tail.decode("utf-8", "replace").splitlines()]
        cut = [f"... (the last {len(said)} lines)"] if ran.is_cut else []
        return "\n".join(
            [f"Nothing was decided: `{visible(self.command)}` {how} on a copy of what this would leave.", *cut, *said]
        )
