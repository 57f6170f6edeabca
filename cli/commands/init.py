"""The command `cas init`."""

import os
from contextlib import suppress

import click

from cli.app.invocation import Invocation, absolute, command
from cli.screen.terminal import shown_name, write

__all__ = ["init"]


@command("init")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(exists=True, file_okay=False))
def init(directory: str | None) -> None:
    """Make DIR (or the current folder) a workspace: a folder whose edits are recorded, in its .cas/."""
    from objstore import EditFilter, Workspace

    screen = Invocation.current().screen()
    with Workspace.init(absolute(directory or os.curdir)) as workspace:
        write([screen.line(f"{shown_name(workspace.root)} is a workspace; edits in it can be recorded.")])
        if not workspace.history.edits(EditFilter(limit=1)):
            write(
                [
                    screen.line(
                        "To record an agent's edits, run `cas setup CLIENT`; for yours, `cas watch` or `cas record`."
                    )
                ]
            )
        outer = _around(workspace.root)
        if outer is not None:
            write(
                [
                    screen.line(
                        f"It is inside another workspace, {shown_name(outer)}; commands run here use the inner one."
                    )
                ]
            )


def _around(root: str) -> str | None:
    """Return the workspace that contains a folder (None: no workspace does)."""
    from objstore import NotAWorkspace, find_root

    above = os.path.dirname(root)  # noqa: PTH120 -- pathlib costs 4 ms of start-up
    with suppress(NotAWorkspace):
        return find_root(above) if above != root else None
    return None
