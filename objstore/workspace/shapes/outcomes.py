"""JSON shapes of the outcomes of decisions and restores. docs/json.md describes them.

Line numbers are zero-based; hashes are hex; paths are absolute.
"""

from typing import TYPE_CHECKING, Final

from objstore.model.basic_types import Action
from objstore.model.results import Conflicted, Decided, ExternalChanges, NothingToDo
from objstore.text.forms import is_either_binary
from objstore.values.request_errors import NoSuchName
from objstore.workspace.shapes.edits import edit_shape
from objstore.workspace.shapes.status import external_shape
from objstore.workspace.shapes.values import Json, beginning, hex_shape, path_shape, text_shape, time_shape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.model.basic_types import Unit
    from objstore.model.results import (
        CallOutcome,
        Conflict,
        DecisionOutcome,
        FileEffect,
        LinesKept,
        MarkersWritten,
        Notice,
    )
    from objstore.model.views import Act, EditView
    from objstore.workspace.handle import Workspace
    from objstore.workspace.shapes.words import Edit

__all__ = ["conflict_shape", "effect_shape", "empty_outcome", "outcome_name", "outcome_shape", "restored_shape"]

BYTES_QUOTED: Final = 65_536
"""Number of bytes quoted of the lines that a conflicting hunk removed, and of those that it inserted."""


_NOTHING: Final = Decided(action=Action.ACCEPT, number=0, verdicts=())
"""What is decided if nothing is."""


def outcome_shape(
    workspace: "Workspace", action: Action, outcome: "DecisionOutcome", *, dry_run: bool
) -> dict[str, Json]:
    """Return what a decision did, would do, or why it was refused: `outcome` says which.

    Every field is always present.
    """
    return _shape(workspace.root, workspace.history.edit, action.value, outcome, dry_run=dry_run)


def empty_outcome(action: str) -> dict[str, Json]:
    """Return the shape of an action that came to nothing."""
    return _shape("", _no_edit, action, NothingToDo(), dry_run=False)


def _shape(root: str, edit: "Edit", action: str, outcome: "DecisionOutcome", *, dry_run: bool) -> dict[str, Json]:
    done = outcome if isinstance(outcome, Decided) else _NOTHING
    refused = outcome if isinstance(outcome, Conflicted) else Conflicted(conflicts=())
    outside = outcome.changes if isinstance(outcome, ExternalChanges) else ()
    return {
        "outcome": outcome_name(outcome),
        "action": action,
        "dry_run": dry_run,
        "decision": done.number or None,
        "act": None if done.act is None else _act_shape(root, done.act),
        "changed": [
            {"name": str(unit), "status": status.value, "cascaded": unit in done.cascaded}
            for unit, status in done.verdicts
            # The whole-file unit of an edit without one can't be named.
            if unit.hunk or _has_whole(edit, unit.seq, done)
        ],
        "edits": len({unit.seq for unit in done.decided}),
        "accepted_edits": len({unit.seq for unit in done.taken_back}),
        "taken_back": list(map(str, done.taken_back)),
        "files": [effect_shape(root, effect) for effect in done.files],
        "recorded": [view.seq for view in done.external],
        "notices": [_notice_shape(root, notice) for notice in done.notices],
        "markers": [
            {**_file_made(root, each), "regions": each.regions, "aside": list(map(str, each.aside))}
            for each in done.markers
        ],
        "unmarked": list(done.unmarked),
        "repeated": _pairs(edit, done, done.repeated),
        "taken_out": _pairs(edit, done, done.taken_out),
        "kept": [
            {**_file_made(root, each), "lines": each.lines, "units": list(map(str, each.units))} for each in done.kept
        ],
        "older": list(done.older),
        "broken": [
            {
                "file_path": path_shape(root, broken.path),
                "line": max(0, broken.line - 1),
                "words": text_shape(broken.words),
                "user": None if broken.user is None else str(broken.user),
            }
            for broken in done.broken
        ],
        "absent": list(done.absent),
        "given_to": list(done.given_to),
        "conflicts": [conflict_shape(root, conflict) for conflict in refused.conflicts],
        "accept_first": list(map(str, refused.accept_first)),
        "reject_first": list(map(str, refused.reject_first)),
        "can_keep_lines": refused.can_keep_lines,
        "external_changes": [external_shape(root, change) for change in outside],
    }


def _file_made(root: str, made: "MarkersWritten | LinesKept") -> dict[str, Json]:
    """Return which file a decision wrote besides, and as which edit (None: a dry run)."""
    return {"edit": made.edit or None, "file_path": path_shape(root, made.path)}


def outcome_name(outcome: "DecisionOutcome") -> str:
    """Return the word for what a decision came to, the same on every surface."""
    match outcome:
        case Decided():
            return "decided"
        case Conflicted():
            return "conflict"
        case ExternalChanges():
            return "external-changes"
        case NothingToDo():
            return "nothing-to-do"


def _pairs(edit: "Edit", outcome: Decided, pairs: "Iterable[tuple[Unit, Unit]]") -> Json:
    """Return units that a decision left as they were, each with the edit because of which it did."""
    named = [pair for pair in pairs if pair[0].hunk or _has_whole(edit, pair[0].seq, outcome)]
    return [{"name": str(unit), "edit": other.seq} for unit, other in named]


def restored_shape(workspace: "Workspace", outcome: "CallOutcome", *, dry_run: bool) -> dict[str, Json]:
    """Return the result of a restore; a dry run has recorded nothing, and says what would change."""
    files: list[Json] = [effect_shape(workspace.root, effect) for effect in outcome.files]
    return {
        "dry_run": dry_run,
        "decision": outcome.decision or None,
        "edits": [] if dry_run else [edit_shape(workspace, view) for view in outcome.edits],
        "recorded": [] if dry_run else [edit_shape(workspace, view) for view in outcome.external],
        "files": files if dry_run else [],
        "given_to": list(outcome.given_to),
    }


def _act_shape(root: str, act: "Act") -> dict[str, Json]:
    """Return what an undo took back, or a redo made again."""
    return {
        "decision": act.number,
        "kind": act.tool or act.action.value,
        "words": text_shape(act.words(str)),
        "file_paths": [path_shape(root, path) for path in act.paths],
        "commit": act.commit or None,
        "timestamp": time_shape(act.time),
    }


def _no_edit(seq: int) -> "EditView":
    raise NoSuchName(str(seq), "edit")


def _has_whole(edit: "Edit", seq: int, outcome: Decided) -> bool:
    """Return whether an edit has a whole-file unit; a dry run may name an edit that it would only record."""
    for made in outcome.unrecorded:
        if made.seq == seq:
            return made.changes_whole
    return edit(seq).whole


def effect_shape(root: str, effect: "FileEffect") -> dict[str, Json]:
    """Return what happened to one file, or would."""
    return {
        "path_before": None if effect.path_before is None else path_shape(root, effect.path_before),
        "path_after": None if effect.path_after is None else path_shape(root, effect.path_after),
        "blob_before": hex_shape(effect.before),
        "blob_after": hex_shape(effect.after),
        "mode_before": None if effect.before is None else effect.mode_before,
        "mode_after": None if effect.after is None else effect.mode_after,
    }


def conflict_shape(root: str, conflict: "Conflict") -> dict[str, Json]:
    """Return why units can't be decided as asked: which unit needs which others, and its lines."""
    is_text = not is_either_binary(conflict.removed, conflict.inserted)
    return {
        "kind": conflict.kind.value,
        "unit": str(conflict.unit),
        "needs": [str(unit) for unit in conflict.needs],
        "file_path": path_shape(root, conflict.path),
        "line": conflict.line or None,
        "removed": _quoted(conflict.removed) if is_text else None,
        "inserted": _quoted(conflict.inserted) if is_text else None,
        "removed_bytes": len(conflict.removed),
        "inserted_bytes": len(conflict.inserted),
        "outside": [str(unit) for unit in (conflict.unit, *conflict.needs) if unit.seq in conflict.outside],
        "message": text_shape(str(conflict)),
    }


def _quoted(lines: bytes) -> str:
    return beginning(lines, BYTES_QUOTED).decode(errors="replace")


def _notice_shape(root: str, notice: "Notice") -> dict[str, Json]:
    return {
        "unit": str(notice.unit),
        "status": notice.status.value,
        "beside": [str(unit) for unit in notice.adjacent],
        "file_path": path_shape(root, notice.path),
        "line": notice.line,
        "message": text_shape(str(notice)),
    }
