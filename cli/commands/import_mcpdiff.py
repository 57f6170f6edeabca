"""`cas import mcpdiff`: import another tool's history into this workspace."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Invocation
from cli.screen.progress import showing_progress
from cli.screen.terminal import Screen, shown_name, write, write_json

if TYPE_CHECKING:
    from objstore import McpdiffImport

__all__ = ["import_mcpdiff_history"]

_HISTORY: Final = Path(".mcp") / "edit_history"


def import_mcpdiff_history(path: str, *, root: str | None, partly: bool, dry_run: bool, as_json: bool) -> None:
    """Import mcpdiff's history at `path` and report the result; exit with 1 if not everything was imported."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace, showing_progress(workspace, {"entries": "working out states"}):
        found = workspace.transfer.import_mcpdiff_history(
            str(_history(path)), origin=root, partly=partly, dry_run=dry_run
        )
    if as_json:
        from objstore import fields_shape, text_shape

        shape = fields_shape(found)
        shape["recorded"] = shape.pop("is_recorded")
        shape["problems"] = [
            {"place": text_shape(one.place), "reason": text_shape(one.reason)} for one in found.problems
        ]
        write_json([shape])
    else:
        write(_import_text(found, invocation.screen(), dry_run=dry_run))
    if found.problems:
        click.get_current_context().exit(1)


def _history(path: str) -> Path:
    """Return the folder of the history that `path` names. Raises UsageError."""
    given = Path(path)
    for place in (given, given / _HISTORY, given / "edit_history"):
        if (place / "logs").is_dir():
            return place
    raise click.UsageError(f"No mcpdiff history found: {shown_name(os.fspath(given / _HISTORY))} has no folder `logs`.")


def _import_text(found: "McpdiffImport", screen: Screen, *, dry_run: bool) -> Iterator[bytes]:
    for one in found.problems:
        yield screen.line(f"Not imported: {shown_name(one.place)}: {shown_name(one.reason)}")
    verb = "Imported" if found.is_recorded else "Would import" if dry_run else "Could import"
    pending = found.edits - found.accepted - found.rejected
    yield screen.line(
        f"{verb} {found.edits} edits: {found.accepted} accepted, {found.rejected} rejected, {pending} to be reviewed."
    )
    if found.external:
        yield screen.line(f"Changes that mcpdiff had not recorded: {found.external}.")
    if found.already:
        yield screen.line(f"Already imported: {found.already}.")
    if found.unchanged:
        yield screen.line(f"Entries that changed nothing: {found.unchanged}.")
    if found.problems and not found.is_recorded and not dry_run:
        yield screen.line("Nothing was recorded. To import what can be imported, pass --partly.")
    if any(one.is_elsewhere for one in found.problems):
        yield screen.line(
            "Some entries name files outside the workspace. "
            "If its folder has moved since, pass the old one: --root DIR."
        )
