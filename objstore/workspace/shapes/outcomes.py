"""JSON shapes of the outcomes of decisions and restores. docs/json.md describes them.

Line numbers are zero-based; hashes are hex; paths are absolute.
"""

from typing import TYPE_CHECKING, Final, assert_never

from objstore.model.results import Conflicted, Decided, ExternalChanges, NothingToDo
from objstore.text.forms import is_either_binary
from objstore.workspace.shapes.edits import edit_shape
from objstore.workspace.shapes.status import external_shape
from objstore.workspace.shapes.values import Json, beginning, hex_shape, path_shape, text_shape, time_shape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.model.basic_types import Action, Unit
    from objstore.model.results import CallOutcome, Conflict, DecisionOutcome, FileEffect, Notice
    from objstore.model.views import Act
    from objstore.workspace.handle import Workspace

__all__ = ["conflict_shape", "effect_shape", "empty_outcome", "outcome_name", "outcome_shape", "restored_shape"]

BYTES_QUOTED: Final = 65_536
"""Number of bytes quoted of the lines that a conflicting hunk removed, and of those that it inserted."""


def _pairs(workspace: "Workspace", outcome: Decided, pairs: "Iterable[tuple[Unit, Unit]]") -> Json:
    """Return units that a decision left as they were, each with the edit because of which it did."""
    named = [pair for pair in pairs if pair[0].hunk or _has_whole(workspace, pair[0].seq, outcome)]
    return [{"name": str(unit), "edit": other.seq} for unit, other in named]


def outcome_shape(
    workspace: "Workspace", action: "Action", outcome: "DecisionOutcome", *, dry_run: bool
) -> dict[str, Json]:
    """Return what a decision did, would do, or why it was refused: `outcome` says which.

    Every field is always present.
    """
    shape = {**empty_outcome(action.value, dry_run=dry_run), "outcome": outcome_name(outcome)}
    match outcome:
        case Decided():
            shape |= {
                "decision": outcome.number or None,
                "act": None if outcome.act is None else _act_shape(workspace, outcome.act),
                "edits": len({unit.seq for unit in outcome.decided}),
                "accepted_edits": len({unit.seq for unit in outcome.taken_back}),
                "taken_back": list(map(str, outcome.taken_back)),
                "changed": [
                    {"name": str(unit), "status": status.value, "cascaded": unit in outcome.cascaded}
                    for unit, status in outcome.verdicts
                    # The whole-file unit of an edit without one can't be named.
                    if unit.hunk or _has_whole(workspace, unit.seq, outcome)
                ],
                "files": [effect_shape(workspace.root, effect) for effect in outcome.files],
                "recorded": [view.seq for view in outcome.external],
                "notices": [_notice_shape(workspace, notice) for notice in outcome.notices],
                "markers": [
                    {
                        "edit": markers.edit or None,
                        "file_path": path_shape(workspace.root, markers.path),
                        "regions": markers.regions,
                        "aside": [str(unit) for unit in markers.aside],
                    }
                    for markers in outcome.markers
                ],
                "unmarked": list(outcome.unmarked),
                "repeated": _pairs(workspace, outcome, outcome.repeated),
                "taken_out": _pairs(workspace, outcome, outcome.taken_out),
                "kept": [
                    {
                        "edit": kept.edit or None,
                        "file_path": path_shape(workspace.root, kept.path),
                        "lines": kept.lines,
                        "units": [str(unit) for unit in kept.units],
                    }
                    for kept in outcome.kept
                ],
                "older": list(outcome.older),
                "broken": [
                    {
                        "file_path": path_shape(workspace.root, broken.path),
                        "line": max(0, broken.line - 1),
                        "words": text_shape(broken.words),
                        "user": None if broken.user is None else str(broken.user),
                    }
                    for broken in outcome.broken
                ],
                "absent": list(outcome.absent),
                "given_to": list(outcome.given_to),
            }
        case Conflicted():
            shape |= {
                "conflicts": [conflict_shape(workspace.root, conflict) for conflict in outcome.conflicts],
                "accept_first": [str(unit) for unit in outcome.accept_first],
                "reject_first": [str(unit) for unit in outcome.reject_first],
                "can_keep_lines": outcome.can_keep_lines,
            }
        case ExternalChanges():
            shape["external_changes"] = [external_shape(workspace.root, change) for change in outcome.changes]
        case NothingToDo():
            pass
        case _:
            assert_never(outcome)
    return shape


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


def empty_outcome(action: str, *, dry_run: bool = False) -> dict[str, Json]:
    """Return an outcome with every field, and nothing in any of them."""
    return {
        "outcome": "",
        "action": action,
        "dry_run": dry_run,
        "decision": None,
        "act": None,
        "changed": [],
        "edits": 0,
        "accepted_edits": 0,
        "taken_back": [],
        "files": [],
        "recorded": [],
        "notices": [],
        "markers": [],
        "unmarked": [],
        "repeated": [],
        "taken_out": [],
        "kept": [],
        "older": [],
        "broken": [],
        "absent": [],
        "given_to": [],
        "conflicts": [],
        "accept_first": [],
        "reject_first": [],
        "can_keep_lines": False,
        "external_changes": [],
    }


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


def _act_shape(workspace: "Workspace", act: "Act") -> dict[str, Json]:
    """Return what an undo took back, or a redo made again."""
    return {
        "decision": act.number,
        "kind": act.tool or act.action.value,
        "words": text_shape(act.words(str)),
        "file_paths": [path_shape(workspace.root, path) for path in act.paths],
        "commit": act.commit or None,
        "timestamp": time_shape(act.time),
    }


def _has_whole(workspace: "Workspace", seq: int, outcome: Decided) -> bool:
    """Return whether an edit has a whole-file unit; a dry run may name an edit that it would only record."""
    for edit in outcome.unrecorded:
        if edit.seq == seq:
            return edit.changes_whole
    return workspace.history.edit(seq).whole


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


def _notice_shape(workspace: "Workspace", notice: "Notice") -> dict[str, Json]:
    return {
        "unit": str(notice.unit),
        "status": notice.status.value,
        "beside": [str(unit) for unit in notice.adjacent],
        "file_path": path_shape(workspace.root, notice.path),
        "line": notice.line,
        "message": text_shape(str(notice)),
    }
