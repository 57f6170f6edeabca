"""The command `cas show`."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option
from cli.render.authors import Authors
from cli.render.edits import edit_diff, edit_header
from cli.render.unreadable import ReadErrors
from cli.screen.diff_layout import for_pager, takes_layout
from cli.screen.terminal import Screen, write, write_json
from cli.search.candidates import named, takes_turns
from cli.selection.selectors import edits_named
from cli.selection.turn_selection import TurnSelection
from objstore import UNREADABLE, EditFilter, EditView, Unit

if TYPE_CHECKING:
    from objstore import Workspace


__all__ = ["diff_text", "show", "stat_text"]


@command("show", takes_others=True)
@click.argument("names", metavar="[EDIT|HUNK|PATH:LINE|CONVERSATION]...", nargs=-1, type=named("edit", "conversation"))
@takes_turns("The edits")
@takes_layout
@json_option
def show(*, names: tuple[str, ...], by: TurnSelection, stat: bool, columns: bool | None, as_json: bool) -> None:
    """Show edits (12, or 3..7), hunks (12:2), changes at lines (PATH:7) or conversations, with the diff hunk by hunk.

    Without a name, --turn or --session, the newest edit.
    """
    invocation = Invocation.current()
    read_errors = ReadErrors()
    with invocation.reviewed_workspace() as workspace:
        chosen = names or (() if by.is_given else (_newest(workspace),))
        meant = [edit for name in chosen for edit in edits_named(workspace, name)]
        if by.is_given:
            views = workspace.review.edits(by.group)
            meant += [(view, view.all_units) for view in views]
            if not meant:
                raise click.ClickException(f"No edit is recorded of {' '.join(by.words)}.")
        screen = invocation.screen() if stat else for_pager(invocation.screen(), columns)
        if as_json:
            from cli.json_shapes.diffs import shown_edit_shape

            verdicts, awaited = workspace.history.verdicts(), workspace.awaited()
            edits = [shown_edit_shape(workspace, view, units, read_errors, verdicts, awaited) for view, units in meant]
            write_json([{"edits": edits}])
        elif stat:
            write(stat_text(workspace, (view for view, _ in meant), screen, read_errors), paged=True)
        else:
            write(_show_text(workspace, meant, screen, read_errors), paged=True)
    read_errors.raise_first()
    if all(view.expired is not None for view, _ in meant):
        # Its record was shown; a missing diff must not look like an edit that changed nothing.
        meant[0][0].refuse_if_expired()


def _newest(workspace: "Workspace") -> str:
    for view in workspace.history.edits(EditFilter(newest_first=True, limit=1)):
        return str(view.seq)
    raise click.ClickException("Nothing is recorded yet.")


def stat_text(
    workspace: "Workspace",
    views: Iterable[EditView],
    screen: Screen,
    read_errors: ReadErrors,
    *,
    newest_first: bool = False,
) -> Iterator[bytes]:
    """Yield how much the edits change in each file."""
    from cli.render.diffstat import FileChange, diffstat, edit_change

    def change(view: EditView) -> FileChange:
        try:
            return edit_change(view, workspace.history.text)
        except UNREADABLE as error:
            read_errors.note(error)
            edit = view.edit
            return FileChange(name=os.fsdecode(edit.path), added=edit.added, removed=edit.removed)

    return diffstat(map(change, views), screen, newest_first=newest_first)


def _show_text(
    workspace: "Workspace", meant: list[tuple[EditView, tuple[Unit, ...]]], screen: Screen, read_errors: ReadErrors
) -> Iterator[bytes]:
    from cli.render.comments import remarks_by_unit

    authors, unresolved, awaited = Authors(workspace), workspace.review.markers(), workspace.awaited()
    waiting = workspace.awaited_comments()
    for at, (view, units) in enumerate(meant):
        if at:
            yield screen.line()
        yield from edit_header(view, authors.fact(view), authors.verdicts(view), screen, unresolved, awaited)
        remarks = remarks_by_unit(workspace, units, screen, waiting)
        is_read = sys.stdout is not None and sys.stdout.isatty()
        if not is_read or view.expired is not None:
            # A program can take the diff only if nothing comes between its hunks.
            for unit in sorted(remarks):
                yield from remarks.pop(unit)
        if view.expired is None:
            yield screen.line()
            yield from diff_text(workspace, view, units, screen, read_errors, remarks)


def diff_text(
    workspace: "Workspace",
    view: EditView,
    units: tuple[Unit, ...] | None,
    screen: Screen,
    read_errors: ReadErrors,
    remarks: Mapping[Unit, Iterable[bytes]] | None = None,
) -> Iterator[bytes]:
    """Yield the diff of an edit, or a line saying that its content is lost: other edits may be readable."""
    try:
        yield from edit_diff(view, workspace, screen, units, remarks or {})
    except UNREADABLE as error:
        read_errors.note(error)
        yield screen.line(f"No diff of edit {view.seq}: {error}")
