"""Declare the options that select edits by conversation and file, once for all commands that take them."""

from collections.abc import Callable
from typing import TypeVar

import click

from cli.app.invocation import recorded_text
from cli.search.candidates import names

__all__ = ["takes_conversation", "takes_file"]

Function = TypeVar("Function", bound=Callable[..., object])


def takes_conversation(meaning: str, *, is_recorded: bool = False) -> Callable[[Function], Function]:
    """Return a decorator that gives a command the option --conversation, which is also spelled --conv.

    `is_recorded`: the name becomes part of a record, so it may be a new one.
    """
    return click.option(
        "--conversation",
        "--conv",
        "conversation",
        callback=recorded_text if is_recorded else None,
        metavar="ID",
        shell_complete=names("conversation"),
        default="",
        help=meaning,
    )


def takes_file(meaning: str) -> Callable[[Function], Function]:
    """Return a decorator that gives a command the option --file."""
    return click.option("--file", metavar="PATH", shell_complete=names("path"), default="", help=meaning)
