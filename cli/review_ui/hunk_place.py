"""Find the place of a hunk in the current file, so that a part of it can be taken out."""

from typing import TYPE_CHECKING

from cli.app.invocation import reviewer
from cli.review_ui.split_hunk import Split, located
from objstore import (
    Action,
    Conflicted,
    ConflictKind,
    Decided,
    OnExternal,
    Unit,
    form_of,
    is_either_binary,
    lines_of,
    replace,
    shown_edits,
    shown_lines,
    split_lines,
)

if TYPE_CHECKING:
    from objstore import Workspace

__all__ = ["located_hunk"]


def located_hunk(workspace: "Workspace", unit: Unit) -> Split | str:
    """Return where the hunk is in the current file, or why that can't be determined, as part of a sentence."""
    edit = workspace.history.edit(unit.seq).edit
    old, new = workspace.history.sides(edit)
    if not unit.hunk or old is None or new is None:
        return "it is not a change of lines"
    if is_either_binary(old, new):
        return "its file is not text"
    # Changes from outside stay; an amendment records them first.
    planned = workspace.review.decide(Action.REJECT, [unit], who=reviewer(), on_external=OnExternal.KEEP, dry_run=True)
    if isinstance(planned, Conflicted):
        return _built_upon(unit, planned)
    if not isinstance(planned, Decided) or len(planned.files) != 1:
        return "rejecting it changes no file"
    text, without = workspace.review.preview(planned.files[0])
    if text is None or without is None:
        return "its file does not exist now"
    hunk = edit.hunks[unit.hunk - 1]
    form = form_of(text)
    lines = lines_of(text, form)
    found = located(
        split_lines(old)[hunk.old_start : hunk.old_end],
        split_lines(new)[hunk.new_start : hunk.new_end],
        shown_lines(without),
        lines,
        _first_line(workspace, unit, planned.files[0].path_before or "", lines),
    )
    found = None if found is None else replace(found, form=form)
    return "its lines read like other lines around them, so their place is not certain" if found is None else found


def _first_line(workspace: "Workspace", unit: Unit, path: str, text: bytes) -> int | None:
    """Return the line of a text at which the lines begin that the hunk inserted (None: none, or unknown)."""
    recorded, blamed = workspace.history.blame(path)
    return next((part.start for part in blamed if part.unit == unit), None) if recorded == text else None


def _built_upon(unit: Unit, refused: Conflicted) -> str:
    """Return why a hunk on which others depend can't be split, as part of a sentence."""
    later = sorted({other.seq for other in refused.reject_first if other.seq != unit.seq})
    if not later:
        return "other hunks of its edit depend on it"
    changed = f"edit{'s' * (len(later) > 1)} {shown_edits(later)}"
    if any(conflict.kind is ConflictKind.PATH_TAKEN for conflict in refused.conflicts):
        return f"{changed} took its file's path"
    return f"{changed} changed these lines later"
