"""The command `cas diff`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option
from cli.screen.diff_layout import for_pager, takes_layout
from cli.screen.progress import REPLAYING, showing_progress
from cli.screen.terminal import Screen, write, write_json
from cli.search.candidates import named, takes_turns, takes_unseen
from cli.selection.turn_selection import TurnSelection
from objstore import counted

if TYPE_CHECKING:
    from cli.render.diffstat import FileChange
    from objstore import ExternalChange, FileSummary, NetFile, Workspace


__all__ = ["diff"]


class Layout(Enum):
    """In which form differences are written."""

    DIFF = auto()
    STAT = auto()
    JSON = auto()


@command("diff", takes_others=True)
@click.argument("names", metavar="[PATH|EDIT|HUNK]... | A B", nargs=-1, type=named("path"))
@takes_turns("Only changes")
@click.option("--unrecorded", is_flag=True, help="Show what changed outside and is not recorded yet.")
@takes_unseen
@takes_layout
@json_option
def diff(
    *,
    names: tuple[str, ...],
    by: TurnSelection,
    unrecorded: bool,
    unseen: bool,
    stat: bool,
    columns: bool | None,
    as_json: bool,
) -> None:
    """Show the changes to review, all together: the accepted text of each file against its current text.

    Name paths, lines of a file (PATH:LINE), edits (12) or hunks (12:2) to see only the changes that they are part of;
    with --turn or --session, only changes that have a hunk of these. Each change names all turns that it is made of.
    With two names of which at least one is a state (PATH@12 after edit 12, PATH@12^ before it, a blob's hash), show the
    difference between the two; a path alone is then its last recorded state.
    """
    invocation = Invocation.current()
    screen = invocation.screen() if stat else for_pager(invocation.screen(), columns)
    if unseen and unrecorded:
        raise click.UsageError("--unseen and --unrecorded exclude each other.")
    layout = Layout.JSON if as_json else Layout.STAT if stat else Layout.DIFF
    with invocation.reviewed_workspace() as workspace:
        if by.is_given and (unrecorded or _names_states(workspace, names)):
            raise click.UsageError(
                "--turn and --session select what is pending: no other state, and nothing unrecorded."
            )
        if not unrecorded and _names_states(workspace, names):
            if len(names) != 2:  # noqa: PLR2004 -- from and to
                raise click.UsageError(f"`cas diff` compares two states, as in `cas diff {_two_states(names)}`.")
            if unseen:
                raise click.UsageError("--unseen is about what is pending, and not about two states.")
            _write_states(workspace, names, layout, screen)
        elif unrecorded:
            _write_unrecorded(workspace, names, layout, screen)
        else:
            _write_net(workspace, names, by, layout, screen, only_unseen=unseen)


def _names_states(workspace: "Workspace", names: tuple[str, ...]) -> bool:
    if not names:
        return False
    from cli.selection.selectors import looks_like_state

    return any(looks_like_state(workspace, name) for name in names)


def _write_net(
    workspace: "Workspace",
    names: tuple[str, ...],
    by: TurnSelection,
    layout: Layout,
    screen: Screen,
    *,
    only_unseen: bool,
) -> None:
    """Write the net changes of the named places and edits, or (no names) of all that is pending.

    `by`: only changes of these turns or this session; nothing given: also what changed outside at paths without pending
    edits. A file that can't be read hides no other one.
    """
    from cli.render.unreadable import ReadErrors
    from cli.selection.net_selection import net_selection

    selection, read_errors = net_selection(workspace, names, by.group), ReadErrors()
    files: Sequence[NetFile] | Sequence[FileSummary]
    if layout is Layout.STAT:
        from cli.render.diffstat import diffstat, net_change, net_remarks

        with showing_progress(workspace, REPLAYING):
            summaries = selection.summaries(workspace, read_errors.note)
        outside = [] if only_unseen else _outside(workspace, selection.paths_without(summaries))
        files = summaries = workspace.review.unseen(summaries) if only_unseen else summaries
        table = diffstat(chain(map(net_change, summaries), _sizes(workspace, outside)), screen)
        # In one piece: unbuffered, as some environments run Python, each line would wake whoever reads the pipe.
        remarks = net_remarks(summaries, screen, Invocation.current().program, workspace.awaited())
        write([b"".join((*table, *remarks))], paged=True)
    else:
        with showing_progress(workspace, REPLAYING):
            found = selection.files(workspace, unreadable=read_errors.note)
        outside = [] if only_unseen else _outside(workspace, selection.paths_without(found))
        seen, awaited = workspace.review.seen_changes(), workspace.awaited()
        files = found = workspace.review.unseen(found, seen) if only_unseen else found
        if layout is Layout.JSON:
            from cli.json_shapes.diffs import external_diff_shape, net_diff_shape

            pending = (net_diff_shape(workspace, file, seen, awaited) for file in found)
            write_json(chain(pending, (external_diff_shape(workspace, change) for change in outside)))
        else:
            from cli.render.comments import remarks_by_change
            from cli.render.net_diff import net_diff

            comments = partial(remarks_by_change, workspace, screen, workspace.awaited_comments())
            diffs = net_diff(found, screen, Invocation.current().program, comments, seen, awaited)
            write(chain(diffs, _external_text(workspace, outside, screen)), paged=True)
    read_errors.raise_first()
    if only_unseen and not files:
        click.echo("No such change is pending: every one was seen in a review.", err=True)
    elif layout is not Layout.JSON:
        _say_what_else(workspace, outside, (*names, *by.words), is_pending=bool(files))


def _outside(workspace: "Workspace", paths: Mapping[str, str]) -> "list[ExternalChange]":
    """Return what changed outside at paths without pending edits; nothing if there are no such paths."""
    return _unrecorded(workspace, paths) if paths else []


def _say_what_else(
    workspace: "Workspace", outside: list["ExternalChange"], names: tuple[str, ...], *, is_pending: bool
) -> None:
    """Say on standard error that what was shown is not pending, or where else there is something to see."""
    program = Invocation.current().program
    if outside:
        click.echo("Nothing is pending there: this changed outside and is not recorded yet.", err=True)
    elif not is_pending and names:
        click.echo(f"Nothing of that is pending; `{program} show` shows edits that are decided.", err=True)
    elif not is_pending:
        count = len(workspace.review.external_changes())
        more = f" `{program} diff --unrecorded` shows {counted(count, 'change')} from outside." if count else ""
        click.echo(f"Nothing is pending.{more}", err=True)


def _write_unrecorded(workspace: "Workspace", names: tuple[str, ...], layout: Layout, screen: Screen) -> None:
    from cli.selection.selectors import path_named

    changes = _unrecorded(workspace, {path_named(workspace, name): name for name in names})
    if layout is Layout.JSON:
        from cli.json_shapes.diffs import external_diff_shape

        write_json(external_diff_shape(workspace, change) for change in changes)
    elif layout is Layout.STAT:
        from cli.render.diffstat import diffstat

        write(diffstat(_sizes(workspace, changes), screen), paged=True)
    else:
        write(_external_text(workspace, changes, screen), paged=True)


def _write_states(workspace: "Workspace", names: tuple[str, ...], layout: Layout, screen: Screen) -> None:
    from cli.selection.selectors import state_named

    before, after = (state_named(workspace, name) for name in names)
    if layout is Layout.JSON:
        from cli.json_shapes.diffs import diff_shape

        write_json([diff_shape(workspace, before, after)])
    elif layout is Layout.STAT:
        from cli.render.diffstat import diffstat, file_change

        old, new = (None if state.blob is None else workspace.history.text(state.blob) for state in (before, after))
        name = after.path or before.path or names[1]
        write(diffstat([file_change(name, old, new)] if old != new else [], screen), paged=True)
    else:
        from cli.render.edits import states_diff

        write(states_diff(workspace, before, after, screen), paged=True)


def _unrecorded(workspace: "Workspace", paths: Mapping[str, str]) -> list["ExternalChange"]:
    """Return what changed outside at the paths or below them (none: anywhere); the values are what was typed."""
    from cli.selection.net_selection import require_recorded
    from cli.selection.selectors import covers

    require_recorded(workspace, paths)
    return [
        change
        for change in workspace.review.external_changes(paths.keys())
        if not paths or any(covers(path, change.path) for path in paths)
    ]


def _sizes(workspace: "Workspace", changes: Iterable["ExternalChange"]) -> "Iterator[FileChange]":
    for change in changes:
        from cli.render.diffstat import file_change
        from cli.render.external_prompt import external_sides

        yield file_change(change.path, *external_sides(workspace, change))


def _external_text(workspace: "Workspace", changes: Iterable["ExternalChange"], screen: Screen) -> Iterator[bytes]:
    from cli.render.external_prompt import external_diff

    for change in changes:
        yield from external_diff(workspace, change, screen)


def _two_states(names: tuple[str, ...]) -> str:
    """Return the names of a comparison; for a single state, the comparison with the last recorded state."""
    from cli.screen.quoting import typed
    from cli.selection.selectors import state_parts

    parts = state_parts(names[0])
    return "A B" if len(names) != 1 or parts is None else f"{typed(names[0])} {typed(parts[0])}"
