"""The commands `cas diff` and `cas cat`: the content of files, now and at any recorded moment."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option
from cli.render.edits import states_diff
from cli.render.external_prompt import external_diff, external_sides
from cli.screen.diff_layout import in_columns, takes_layout
from cli.screen.terminal import Screen, guarded, shown_name, write
from cli.search.candidates import names
from cli.selection.selectors import covers, looks_like_state, path_named, state_named, state_parts
from objstore import EditFilter, NameKind, NoSuchName

if TYPE_CHECKING:
    from objstore import ExternalChange, Workspace

__all__ = ["cat", "diff"]


@command("diff")
@click.argument("names", metavar="[PATH...] | A B", nargs=-1, shell_complete=names("path"))
@takes_layout
@json_option
def diff(*, names: tuple[str, ...], stat: bool, columns: bool, as_json: bool) -> None:
    """Show what changed outside: the last recorded state of each PATH (or of all files) against the disk.

    With two names of which at least one is a state (PATH@12 after edit 12, PATH@12^ before it, a blob's hash), show the
    difference between the two; a path alone is then its last recorded state.
    """
    invocation = Invocation.current()
    screen = in_columns(invocation.screen(), columns)
    with invocation.reviewed_workspace() as workspace:
        if any(looks_like_state(workspace, name) for name in names):
            if len(names) != 2:  # noqa: PLR2004 -- from and to
                raise click.UsageError(f"`cas diff` compares two states, as in `cas diff {_two_states(names)}`.")
            before, after = (state_named(workspace, name) for name in names)
            if as_json:
                from cli.render.json_edits import diff_shape, json_line

                write([json_line(diff_shape(workspace, before, after))])
            elif stat:
                from cli.render.diffstat import diffstat, file_change

                old, new = (
                    None if state.blob is None else workspace.history.text(state.blob) for state in (before, after)
                )
                name = after.path or before.path or names[1]
                write(diffstat([file_change(name, old, new)] if old != new else [], screen), paged=True)
            else:
                write(states_diff(workspace, before, after, screen), paged=True)
            return
        changes = _changes(workspace, names)
        if as_json:
            from cli.render.json_edits import external_diff_shape, json_line

            write(json_line(external_diff_shape(workspace, change)) for change in changes)
        elif stat:
            from cli.render.diffstat import diffstat, file_change

            sides = ((change.path, *external_sides(workspace, change)) for change in changes)
            write(diffstat((file_change(*sides) for sides in sides), screen), paged=True)
        else:
            write(_external_text(workspace, changes, screen), paged=True)


@command("cat")
@click.argument("name", metavar="STATE", shell_complete=names("path"))
def cat(*, name: str) -> None:
    """Write the exact bytes of a state; on a terminal, control characters are escaped.

    Name it by PATH@12, PATH@12^, PATH@2h (two hours ago), PATH@2026-11-20, PATH (as last recorded) or its hash.
    """
    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        state = state_named(workspace, name)
        if state.blob is None:
            from cli.search.did_you_mean import last_held

            held = last_held(workspace, state.path) if state_parts(name) is None else ""
            instead = f" `{invocation.program} cat {held}` prints its last content." if held else ""
            raise click.ClickException(f"There is no file {shown_name(state.path)} in this state.{instead}")
        write(guarded(workspace.history.pieces(state.blob)))


def _changes(workspace: "Workspace", names: tuple[str, ...]) -> list["ExternalChange"]:
    from pathlib import Path

    wanted = {path_named(workspace, name): name for name in names}
    found = [
        change
        for change in workspace.review.external_changes()
        if not wanted or any(covers(path, change.path) for path in wanted)
    ]
    for path, name in wanted.items():
        # A path that was never recorded and doesn't exist has not changed; don't report it like an unchanged file.
        if path != "." and not os.path.lexists(Path(workspace.root, path)) and not _is_recorded(workspace, path):
            raise NoSuchName(name, "file")
    return found


def _two_states(names: tuple[str, ...]) -> str:
    """Return the names of a comparison; for a single state, the comparison with the last recorded state."""
    from cli.screen.quoting import typed

    parts = state_parts(names[0])
    return "A B" if len(names) != 1 or parts is None else f"{typed(names[0])} {typed(parts[0])}"


def _is_recorded(workspace: "Workspace", path: str) -> bool:
    """Return whether a file has ever been recorded at the path, or is recorded now below it."""
    return bool(
        workspace.history.edits(EditFilter(path=path, limit=1))
        or workspace.history.names_with_prefix(NameKind.PATH, f"{path}/", 1)
    )


def _external_text(workspace: "Workspace", changes: list["ExternalChange"], screen: Screen) -> Iterator[bytes]:
    for change in changes:
        yield from external_diff(workspace, change, screen)
