"""The command `cas completion`."""

import click

from cli.app.invocation import command
from cli.screen.terminal import write

__all__ = ["completion"]


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes bash, zsh or fish complete commands, options, edits, conversations and files.

    In the shell's own start file: source <(cas completion bash), the same for zsh, or cas completion fish | source.
    """
    from cli.app.completion import script

    write([script(click.get_current_context().find_root().command, shell).encode()])
