"""Build the manual pages of `cas` from its help, with click-man: `python -m tests.support.man_pages DIR`."""

import sys
from importlib.metadata import version
from pathlib import Path

import click
from click_man.core import write_man_pages

from cli.shell.main import COMMANDS, cas

__all__ = ["write_pages"]


def write_pages(folder: Path) -> None:
    """Write every page into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    context = click.Context(cas, info_name="cas")
    loaded = {name: cas.get_command(context, name) for name in COMMANDS}
    group = click.Group("cas", {name: found for name, found in loaded.items() if found}, help=cas.help)
    group.params = cas.params
    _keep_short_help_whole(group)
    write_man_pages("cas", group, version=version("editledger"), target_dir=str(folder))


def _keep_short_help_whole(command: click.Command) -> None:
    """Give each command its first sentence as short help, of which click-man would show 45 characters."""
    command.short_help = command.get_short_help_str(200).removesuffix(".")
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _keep_short_help_whole(inner)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
