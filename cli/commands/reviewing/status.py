"""The command `cas status`: the workspace at a glance."""

from cli.app.invocation import Invocation, command, json_option
from cli.render.status import status_text
from cli.screen.terminal import write

__all__ = ["status"]


@command("status")
@json_option
def status(*, as_json: bool) -> None:
    """Show what is pending, what changed outside, and how much is stored."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        report = workspace.review.status()
    if as_json:
        from cli.render.json_edits import json_line, status_shape

        write([json_line(status_shape(report))])
    else:
        write(status_text(report, invocation.screen()))
