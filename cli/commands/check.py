"""Let a command decide whether a decision is made: it runs on a copy of what the decision would leave."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import click

from cli.screen.terminal import can_ask, shown_name, visible
from objstore import CheckFailed

if TYPE_CHECKING:
    from objstore import Check, Copy, SkippedPath, Workspace

__all__ = [
    "MOST_MISSING",
    "check_of",
    "checking",
    "say_that_it_runs",
    "say_what_is_missing",
    "start_folder",
    "takes_check",
]

MOST_MISSING: Final = 5
"""Paths that are named as missing in a copy."""

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
    from objstore import ending_on_signals  # it loads what runs programs, and most decisions have no check

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


def say_what_is_missing(skipped: "Sequence[SkippedPath]") -> None:
    """Say on stderr what a copy lacks."""
    for path in skipped[:MOST_MISSING]:
        click.echo(f"cas: not in the copy: {shown_name(path.path)} ({shown_name(path.reason)})", err=True)
    if len(skipped) > MOST_MISSING:
        click.echo(f"cas: and {len(skipped) - MOST_MISSING} more are not in the copy.", err=True)


def start_folder(workspace: "Workspace") -> str:
    """Return the folder, relative to the workspace, in which the user is ("": its root)."""
    root, here = os.path.realpath(workspace.root), os.path.realpath(os.curdir)
    below = os.path.relpath(here, root)
    return "" if below == os.curdir or below.startswith(os.pardir) else below
