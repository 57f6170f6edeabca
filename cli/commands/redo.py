"""The command `cas redo`."""

from cli.app.invocation import command
from cli.commands.decision_command import DecisionCommand, takes_decision_options

__all__ = ["redo"]


@command("redo")
@takes_decision_options
def redo(*, decision_command: "DecisionCommand") -> None:
    """Redo what was last undone, unless another decision was made since."""
    decision_command.redo()
