"""The commands `cas init`, `mcp`, `completion` and `demo`: start a workspace, the server, or the demonstration."""

import os
import sys
from contextlib import suppress

import click

from cli.app.invocation import Invocation, absolute, command
from cli.screen.terminal import shown_name, write
from cli.search.candidates import folders

__all__ = ["completion", "demo", "init", "mcp"]


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


@command("mcp")
@click.argument("arguments", metavar="[DIR]...", nargs=-1, type=click.UNPROCESSED, shell_complete=folders)
def mcp(arguments: tuple[str, ...]) -> None:
    """Start the MCP server for DIR... on stdin and stdout. Its own options follow `--`."""
    # -P: Python must not import from the folder that the server starts in, where the agent writes.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "editledger", *arguments])  # noqa: S606 -- no shell


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes bash, zsh or fish complete commands, options, edits, conversations and files.

    In the shell's own start file: source <(cas completion bash), the same for zsh, or cas completion fish | source.
    """
    from cli.app.completion import script

    write([script(click.get_current_context().find_root().command, shell).encode()])


@command("demo")
@click.option("--web", is_flag=True, help="Review in the browser while the agent works, until you press Ctrl-C.")
def demo(*, web: bool) -> None:
    """Watch an agent edit a copy of real source files, and a person review the edits."""
    if web:
        from cli.commands.setting_up.demo_web import run_web

        click.get_current_context().exit(run_web())
    from cli.commands.setting_up.demo import run

    click.get_current_context().exit(run())
