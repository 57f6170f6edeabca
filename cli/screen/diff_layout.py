"""The options for the layout of changes: a diff, two columns, or a table of how much changed."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

import click

from cli.screen.terminal import Screen

__all__ = ["in_columns", "takes_layout"]

Function = TypeVar("Function", bound=Callable[..., object])


def takes_layout(function: Function) -> Function:
    """Give a command the options --stat and --side-by-side, as arguments `stat` and `columns`."""

    @click.option("--stat", is_flag=True, help="Show the number of changed lines in each file instead.")
    @click.option("-y", "--side-by-side", "columns", is_flag=True, help="Show both sides of a change in columns.")
    @wraps(function)
    def with_layout(*, stat: bool, columns: bool, **others: object) -> object:
        if stat and columns:
            raise click.UsageError("--stat and --side-by-side exclude each other.")
        if (stat or columns) and others.get("as_json"):
            raise click.UsageError(f"--json and {'--stat' if stat else '-y'} exclude each other.")
        return function(stat=stat, columns=columns, **others)

    return cast("Function", with_layout)


def in_columns(screen: Screen, columns: bool) -> Screen:  # noqa: FBT001 -- the option's value, handed on
    """Return the screen, set to two columns of the terminal's width if they were asked for."""
    if not columns:
        return screen
    from dataclasses import replace
    from shutil import get_terminal_size

    return replace(screen, columns=get_terminal_size().columns)
