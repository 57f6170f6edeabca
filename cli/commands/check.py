"""Let a command decide whether a decision is made: it runs on a copy of what the decision would leave."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from cli.commands.try_ import say_what_is_missing, start_folder
from cli.screen.terminal import can_ask, visible
from objstore import CheckFailed, ending_on_signals

if TYPE_CHECKING:
    from objstore import Check, Copy, Workspace

__all__ = ["check_of", "checking", "say_that_it_runs", "takes_check"]

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


def check_of(workspace: "Workspace", typed: str) -> "Check | None":
    """Return the check that was typed, or else the one of the settings (None: there is none).

    A command that was typed starts where the person is, and one of the settings in the workspace's root.
    """
    return workspace.trials.check(typed, start_folder(workspace))


@contextmanager
def checking(workspace: "Workspace") -> Iterator[None]:
    """Clean up after a check if a signal ends it. Raises AgentDecides, and ClickException if the check fails."""
    workspace.review.require_person()
    try:
        with ending_on_signals():
            yield
    except CheckFailed as error:
        raise click.ClickException("\n".join(map(visible, [str(error), *error.lines]))) from None


def say_that_it_runs(check: "Check", copy: "Copy") -> None:
    """Say on a terminal that a check runs, and what its copy of the workspace lacks."""
    say_what_is_missing(copy.skipped)
    if can_ask():
        click.echo(f"Checking with `{visible(check.command)}` ...", err=True)
