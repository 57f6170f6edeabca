"""The commands `cas log` and `cas show`: the edits, as a list and one by one."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from cli.invocation import Invocation, command, json_option
from cli.naming import edit_filter, edits_named
from cli.rendering import edit_diff, edit_header, edit_row
from cli.terminal import Screen, write
from objstore import Status

if TYPE_CHECKING:
    from objstore import EditView, Unit, Workspace

__all__ = ["log", "show"]


@command("log")
@click.option("--conversation", metavar="ID", default="", help="Only edits of this conversation.")
@click.option("--file", metavar="PATH", default="", help="Only edits of this file.")
@click.option("--status", type=click.Choice([status.value for status in Status]), help="Only edits of this status.")
@click.option("-n", "--number", type=click.IntRange(min=1), help="Only the newest NUMBER edits.")
@click.option("-p", "--patch", is_flag=True, help="Show the diff of each edit.")
@click.option("--reverse", is_flag=True, help="Oldest first.")
@json_option
def log(
    *,
    conversation: str,
    file: str,
    status: str | None,
    number: int | None,
    patch: bool,
    reverse: bool,
    as_json: bool,
) -> None:
    """List the recorded edits, newest first. With --json, one object a line."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        wanted = edit_filter(
            workspace, conversation=conversation, file=file, status=None if status is None else Status(status)
        )
        views = workspace.edits(replace(wanted, newest_first=True, limit=number or 0))
        if reverse:
            views.reverse()
        if as_json:
            from cli.jsonshapes import edit_shape, json_line

            write(json_line(edit_shape(workspace, view)) for view in views)
        else:
            write(_log_text(workspace, views, invocation.screen(), patch=patch), paged=True)


@command("show")
@click.argument("name", metavar="EDIT|HUNK|CONVERSATION")
@json_option
def show(*, name: str, as_json: bool) -> None:
    """Show an edit (12), a hunk (12:2) or a conversation, with its diff hunk by hunk."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        meant = edits_named(workspace, name)
        if as_json:
            from cli.jsonshapes import json_line, shown_edit_shape

            edits = [shown_edit_shape(workspace, view, units) for view, units in meant]
            write([json_line({"edits": edits})])
        else:
            write(_show_text(workspace, meant, invocation.screen()), paged=True)


def _log_text(workspace: "Workspace", views: list["EditView"], screen: Screen, *, patch: bool) -> Iterator[bytes]:
    for view in views:
        yield from edit_row(view, screen)
        if patch:
            yield from edit_diff(view, workspace.blob, screen)
            yield screen.line()


def _show_text(
    workspace: "Workspace", meant: list[tuple["EditView", tuple["Unit", ...]]], screen: Screen
) -> Iterator[bytes]:
    for at, (view, units) in enumerate(meant):
        if at:
            yield screen.line()
        yield from edit_header(view, screen)
        yield screen.line()
        yield from edit_diff(view, workspace.blob, screen, units)
