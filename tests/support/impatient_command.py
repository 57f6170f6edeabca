"""Run `cas` so that it reports its progress early: the first word is the patience in seconds."""

import sys

import cli.screen.progress
from cli.shell import entry

__all__ = ["main"]


def main() -> int | None:
    """Run the command that the other words give."""
    patience = sys.argv.pop(1)
    vars(cli.screen.progress)["PATIENCE"] = float(patience)
    return entry.main()
