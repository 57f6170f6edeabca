"""JSON shapes with the text of a diff, as commands print them. docs/json.md describes them."""

from typing import TYPE_CHECKING

from cli.app.invocation import Invocation
from cli.render.comments import comments_by_change, comments_by_unit, waiting_by_change, waiting_on
from cli.render.edits import concerns, edit_diff, states_diff
from cli.render.external_prompt import external_diff
from cli.render.net_diff import net_diff
from cli.render.outcomes import effect_text
from cli.screen.terminal import EXACT
from objstore import (
    UNREADABLE,
    Json,
    awaited_shape,
    comment_shape,
    edit_shape,
    effect_shape,
    external_shape,
    hex_shape,
    markers_shape,
    net_file_shape,
    path_shape,
    text_of,
    waiting_comment_shape,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from cli.render.unreadable import ReadErrors
    from objstore import EditView, ExternalChange, FileEffect, NetFile, RemoteVerdict, State, Unit, Verdicts, Workspace

__all__ = ["diff_shape", "external_diff_shape", "net_diff_shape", "shown_edit_shape", "with_diffs"]


def shown_edit_shape(
    workspace: "Workspace",
    view: "EditView",
    units: "Iterable[Unit]",
    read_errors: "ReadErrors",
    verdicts: "Verdicts",
    awaited: "Mapping[Unit, RemoteVerdict]",
) -> dict[str, Json]:
    """Return one edit with its diff, limited to the selected hunks. `read_errors` collects lost bytes."""
    units = tuple(units)
    shape = edit_shape(workspace, view, read_errors.note, verdicts, awaited)
    meant = {unit.hunk for unit in units}
    hunks = shape["hunks"]
    if isinstance(hunks, list):
        shape["hunks"] = [hunk for number, hunk in enumerate(hunks, 1) if number in meant]
    shape["markers"] = [
        markers_shape(workspace.root, markers) for markers in workspace.review.markers() if concerns(markers, view.edit)
    ]
    by_unit = comments_by_unit(workspace, units)
    shape["comments"] = [
        comment_shape(workspace.root, comment) for unit in sorted(by_unit) for comment in by_unit[unit]
    ]
    waiting = {each.number: each for each in waiting_on(units, workspace.awaited_comments())}
    shape["awaited_comments"] = [waiting_comment_shape(each) for each in waiting.values()]
    try:
        shape["diff"] = None if view.expired else text_of(edit_diff(view, workspace, EXACT, units))
    except UNREADABLE as error:  # the hashes may be known even if the bytes are lost
        shape |= {"diff": None, "lost": shape["lost"] or str(error)}
        read_errors.note(error)
    return shape


def net_diff_shape(
    workspace: "Workspace", file: "NetFile", seen: "Collection[bytes]", awaited: "Mapping[Unit, RemoteVerdict]"
) -> dict[str, Json]:
    """Return what pending edits change in one file, with the diff.

    `seen`: keys of changes that were seen. `awaited`: as of Workspace.
    """
    shape = net_file_shape(workspace.root, file, seen, comments_by_change(workspace, file))
    changes, waiting = shape["changes"], waiting_by_change(file, workspace.awaited_comments())
    for at, (made, change) in enumerate(zip(changes if isinstance(changes, list) else (), file.changes, strict=True)):
        if isinstance(made, dict):
            made["awaited"] = awaited_shape(awaited, change.units)
            made["awaited_comments"] = [waiting_comment_shape(each) for each in waiting.get(at, ())]
    diff = net_diff([file], EXACT, Invocation.current().program, seen=seen, awaited=awaited)
    return {**shape, "diff": text_of(diff)}


def with_diffs(workspace: "Workspace", effects: "Sequence[FileEffect]", shape: dict[str, Json]) -> dict[str, Json]:
    """Return the shape of a dry run, with what would change in each file."""
    diffs = [text_of(effect_text([effect], workspace.review.preview, EXACT)) for effect in effects]
    files = [effect_shape(workspace.root, effect) for effect in effects]
    return {**shape, "files": [{**file, "diff": diff} for file, diff in zip(files, diffs, strict=True)]}


def external_diff_shape(workspace: "Workspace", change: "ExternalChange") -> dict[str, Json]:
    """Return one file that differs from the journal, with the difference."""
    shape = external_shape(workspace.root, change)
    shape["diff"] = text_of(external_diff(workspace, change, EXACT))
    return shape


def diff_shape(workspace: "Workspace", before: "State", after: "State") -> dict[str, Json]:
    """Return the difference between two states."""
    return {
        "path_before": path_shape(workspace.root, before.path) if before.path else None,
        "path_after": path_shape(workspace.root, after.path) if after.path else None,
        "blob_before": hex_shape(before.blob),
        "blob_after": hex_shape(after.blob),
        "mode_before": None if before.blob is None else before.mode,
        "mode_after": None if after.blob is None else after.mode,
        "diff": text_of(states_diff(workspace, before, after, EXACT)),
    }
