"""The command `cas ls`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Invocation, command, json_option
from cli.screen.terminal import Screen, shown_name, shown_width, width_of_terminal, write, write_json
from cli.search.candidates import named
from cli.selection.selectors import covers, looks_like_state, paths_named, state_parts

if TYPE_CHECKING:
    from objstore import FileState, Workspace

__all__ = ["listing"]

LONGEST_NUMBER: Final = 18
"""Digits of an edit's number: more than any store has."""


@command("ls", takes_others=True)
@click.argument("name", metavar="[PATH][@EDIT|@TIME]", type=named("path"), default="")
@json_option
def listing(*, name: str, as_json: bool) -> None:
    """List the recorded files, or those at or below PATH.

    Current files, or those after an edit (PATH@12, or @12 for all files), before it (PATH@12^), or at a time (PATH@2h).
    """
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        files = _files(workspace, name)
        if name and not files:
            raise click.ClickException(f"No recorded file is at or below {shown_name(name)}.")
    if as_json:
        from objstore import text_shape

        write_json(
            {"path": text_shape(path), "blob": state.blob.hex(), "mode": state.mode} for path, state in files.items()
        )
    else:
        write(_ls_text(files, invocation.screen()))


def _ls_text(files: "dict[str, FileState]", screen: Screen) -> Iterator[bytes]:
    """Yield a row for each file; on a narrow terminal with shortened hashes."""
    from cli.render.edits import SHORT_HASH

    rows = [(f"{state.mode:04o}", state.blob.hex(), shown_name(path)) for path, state in files.items()]
    is_cut = 0 < width_of_terminal() < max((shown_width("  ".join(row)) for row in rows), default=0)
    for mode, digits, name in rows:
        yield screen.line(f"{mode}  {digits[:SHORT_HASH] if is_cut else digits}  {name}")


def _files(workspace: "Workspace", name: str) -> "dict[str, FileState]":
    if not name or (name.startswith("@") and state_parts(f".{name}") is not None):
        paths, version = ["."], name[1:]  # all files, whatever the current folder
    else:
        named, version = (looks_like_state(workspace, name) and state_parts(name)) or (name, "")
        paths = paths_named(workspace, named, unrecorded=True)
    found = _files_at(workspace, version)
    return {at: state for at, state in found.items() if any(covers(path, at) for path in paths)}


def _files_at(workspace: "Workspace", version: str) -> "dict[str, FileState]":
    """Return all files at a version in the form of `state_parts` ("": the current one). Raises NoSuchName."""
    from datetime import datetime

    from objstore import NoSuchName, moment_of

    edit = version.removesuffix("^")
    if len(edit) > LONGEST_NUMBER and edit.isdigit():
        raise NoSuchName(edit, "edit")
    if not edit or edit.isdigit():
        return workspace.history.files_at(int(edit) if edit else None, before=version.endswith("^"))
    moment = moment_of(version, datetime.now().astimezone())
    if moment is None:
        raise NoSuchName(version, "time")
    return workspace.history.files_at_moment(moment)
