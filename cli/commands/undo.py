"""The command `cas undo`."""

import click

from cli.app.invocation import command
from cli.commands.decision_command import DecisionCommand, Undo, takes_decision_options
from objstore import (
    MAX_INT,
)

__all__ = ["undo"]


@command("undo", cls=Undo)
@click.option(
    "--decision",
    "number",
    type=click.IntRange(1, MAX_INT),
    metavar="N",
    help="Undo decision N, and keep later ones.",
)
@takes_decision_options
def undo(*, decision_command: "DecisionCommand", number: int | None) -> None:
    """Undo the newest thing that you did: a decision, restore, rewind, claim or amendment."""
    decision_command.undo(number or 0)
