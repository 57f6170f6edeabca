"""The command `cas reopen`."""

import click

from cli.app.invocation import command
from cli.commands.decision_command import MARKERS_HELP, DecisionCommand, WayOut, takes_decision_options, takes_selection
from cli.selection.unit_selection import UnitSelection
from objstore import (
    Action,
)

__all__ = ["reopen"]


@command("reopen", takes_others=True)
@takes_selection
@click.option("--markers", is_flag=True, help=MARKERS_HELP)
@takes_decision_options
def reopen(*, decision_command: "DecisionCommand", selection: UnitSelection, markers: bool) -> None:
    """Take back what was decided on edits (12) or hunks (12:2), to decide again. Rejected ones come back."""
    decision_command.decide(Action.RESET, selection, WayOut(markers=markers))
