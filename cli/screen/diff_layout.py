"""The options for the layout of changes: a diff, two columns, or a table of how much changed."""

from collections.abc import Callable
from functools import wraps
from typing import Final, TypeVar, cast

import click

from cli.screen.terminal import Screen, is_delta_pager, width_of_terminal

__all__ = ["columns_option", "for_pager", "in_columns", "takes_layout"]

Function = TypeVar("Function", bound=Callable[..., object])

_WIDE: Final = 160
"""Columns of a terminal from which on both sides of a change are shown next to each other, if no option says else."""

columns_option: Final = click.option(
    "-y",
    "--side-by-side/--no-side-by-side",
    "columns",
    default=None,
    help=f"Show both sides of a change in columns; the default at a terminal of {_WIDE} columns or more.",
)


def takes_layout(function: Function) -> Function:
    """Give a command the options --stat and --side-by-side, as arguments `stat` and `columns` (None: not given)."""

    @click.option("--stat", is_flag=True, help="Show the number of changed lines in each file instead.")
    @columns_option
    @wraps(function)
    def with_layout(*, stat: bool, columns: bool | None, **others: object) -> object:
        if stat and columns:
            raise click.UsageError("--stat and --side-by-side exclude each other.")
        if (stat or columns) and others.get("as_json"):
            raise click.UsageError(f"--json and {'--stat' if stat else '-y'} exclude each other.")
        return function(stat=stat, columns=columns, **others)

    return cast("Function", with_layout)


def in_columns(screen: Screen, columns: bool | None) -> Screen:  # noqa: FBT001 -- the option's value, handed on
    """Return the screen, set to two columns of the terminal's width if they were asked for, or if it is wide."""
    if columns is False or (columns is None and width_of_terminal() < _WIDE):
        return screen
    from dataclasses import replace
    from shutil import get_terminal_size

    return replace(screen, columns=get_terminal_size().columns)


def for_pager(screen: Screen, columns: bool | None) -> Screen:  # noqa: FBT001 -- as above
    """Return the screen as `in_columns`; or, for a pager that lays out and colours diffs itself, without either."""
    if columns is None and width_of_terminal() and is_delta_pager():
        from dataclasses import replace

        return replace(screen, color=False)
    return in_columns(screen, columns)
