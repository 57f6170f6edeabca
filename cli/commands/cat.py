"""The command `cas cat`."""

import click

from cli.app.invocation import Invocation, command
from cli.screen.terminal import guarded, shown_name, write
from cli.search.candidates import named

__all__ = ["cat"]


@command("cat", takes_others=True)
@click.argument("name", metavar="STATE", type=named("path"))
def cat(*, name: str) -> None:
    """Write the exact bytes of a state; on a terminal, control characters are escaped.

    Name it by PATH@12, PATH@12^, PATH@2h (two hours ago), PATH@2026-11-20, PATH (as last recorded) or its hash.
    """
    from cli.selection.selectors import state_named, state_parts

    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        state = state_named(workspace, name)
        if state.blob is None:
            from cli.search.did_you_mean import last_held

            held = last_held(workspace, state.path) if state_parts(name) is None else ""
            instead = (
                f" `{invocation.program} cat {invocation.of_other(held)}` prints its last content." if held else ""
            )
            raise click.ClickException(f"There is no file {shown_name(state.path)} in this state.{instead}")
        write(guarded(workspace.history.pieces(state.blob)))
