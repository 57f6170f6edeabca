"""The command `cas undo`."""

import click

from cli.app.invocation import Number, command
from cli.commands.decision_command import DecisionCommand, Undo, takes_decision_options
from cli.search.candidates import stores
from objstore import MAX_INT

__all__ = ["undo"]


@command("undo", cls=Undo)
@click.argument("store", metavar="[STORE/]", default="", shell_complete=stores)
@click.option(
    "--decision",
    "number",
    type=Number(1, MAX_INT),
    metavar="N",
    help="Undo decision N, and keep later ones.",
)
@takes_decision_options
def undo(*, decision_command: "DecisionCommand", store: str, number: int | None) -> None:
    """Undo the newest thing that you did: a decision, restore, rewind, claim or amendment.

    With STORE/, take back your newest decision on what another store has, or decision N of the bucket, before it is
    carried out there.
    """
    if store:
        decision_command.withdraw(store, number or 0)
    else:
        decision_command.undo(number or 0)
