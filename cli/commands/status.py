"""The command `cas status`: the workspace at a glance."""

import os
from collections.abc import Iterator

from cli.invocation import Invocation, command, json_option
from cli.terminal import shown_name, write

__all__ = ["status"]


@command("status")
@json_option
def status(*, as_json: bool) -> None:
    """Show what is pending, what changed outside, and how much is stored."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        report = workspace.status()
    if as_json:
        from cli.jsonshapes import json_line, status_shape

        write([json_line(status_shape(report))])
    else:
        from cli.overview import status_text

        write(status_text(report, invocation.screen()))
        write(_faults(report.root))


def _faults(root: str) -> Iterator[bytes]:
    """Yield what is to be said of faults that hooks had, of which nobody was told when they happened."""
    try:
        with open(os.path.join(root, ".cas", "hook.log"), "rb") as log:  # noqa: PTH118, PTH123 - pathlib costs start-up
            lines = log.read().splitlines()
    except FileNotFoundError:
        return
    if lines:
        last = shown_name(lines[-1].decode("utf-8", "replace"))
        yield f"hooks: {len(lines)} faults, the last: {last} (see `cas doctor`)\n".encode()
