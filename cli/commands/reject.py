"""The command `cas reject`."""

from typing import Final

import click

from cli.app.invocation import command
from cli.commands.check import takes_check
from cli.commands.decision_command import (
    MARKERS_HELP,
    DecisionCommand,
    WayOut,
    takes_decision_options,
    takes_reason,
    takes_selection,
)
from cli.selection.unit_selection import UnitSelection
from objstore import (
    Action,
)

__all__ = ["KEEP_LINES_HELP", "reject"]

KEEP_LINES_HELP: Final = "Keep a file that they created if others added lines to it, with these lines alone."


@command("reject", takes_others=True)
@takes_selection
@takes_reason
@click.option("--cascade", is_flag=True, help="Also reject what depends on them.")
@click.option("--keep-lines", is_flag=True, help=KEEP_LINES_HELP)
@click.option("--with-users", is_flag=True, help="Also reject the lines that use names which this takes out.")
@click.option("--markers", is_flag=True, help=MARKERS_HELP)
@takes_check
@takes_decision_options
def reject(
    *,
    decision_command: "DecisionCommand",
    selection: UnitSelection,
    reason: str,
    cascade: bool,
    keep_lines: bool,
    with_users: bool,
    markers: bool,
) -> None:
    """Reject changes: at a PATH or a line (PATH:7), of a turn or session, or by edits (12) and hunks (12:2).

    Their changes are taken out, every other edit stays. With a PATH, --turn and --session reject only that part of it.
    --turn, --session, --conversation, --file and --all select pending and accepted edits.
    """
    if cascade + markers + keep_lines > 1:
        raise click.UsageError("--cascade, --keep-lines and --markers exclude each other: pass one of them.")
    way_out = WayOut(cascade=cascade, keeps_lines=keep_lines, markers=markers, takes_users=with_users)
    decision_command.decide(Action.REJECT, selection, way_out, reason=reason)
