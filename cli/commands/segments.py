"""The command `cas segments`."""

from cli.app.invocation import Invocation, command, json_option
from cli.screen.terminal import write, write_json

__all__ = ["segments"]


@command("segments")
@json_option
def segments(*, as_json: bool) -> None:
    """List the segments of the log. With --json, one object a line."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        views = workspace.history.segments()
    if as_json:
        from cli.json_shapes.store import segment_shape

        write_json(segment_shape(view) for view in views)
    else:
        screen = invocation.screen()
        write(
            screen.line(
                f"{view.number:8}  {view.size:12} bytes  {view.groups:8} groups  {view.blobs:8} blobs  "
                f"{view.records:8} records"
            )
            for view in views
        )
