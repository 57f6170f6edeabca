"""The command `cas accept`."""

import click

from cli.app.invocation import command
from cli.commands.check import takes_check
from cli.commands.decision_command import MARKERS_HELP, DecisionCommand, WayOut, takes_decision_options, takes_selection
from cli.selection.unit_selection import UnitSelection
from objstore import (
    Action,
)

__all__ = ["accept"]


@command("accept", takes_others=True)
@takes_selection
@click.option("--markers", is_flag=True, help=MARKERS_HELP)
@takes_check
@takes_decision_options
def accept(*, decision_command: "DecisionCommand", selection: UnitSelection, markers: bool) -> None:
    """Accept changes: at a PATH or a line (PATH:7), of a turn or session, or by edits (12) and hunks (12:2).

    Edits and hunks that were rejected come back. With a PATH, --turn and --session accept only that part of it.
    --turn, --session, --conversation, --file and --all select pending edits: what was rejected stays rejected.
    """
    decision_command.decide(Action.ACCEPT, selection, WayOut(markers=markers))
