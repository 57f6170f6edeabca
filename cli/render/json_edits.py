"""JSON shapes of edits (with the fields of the edit log), decisions and the workspace.

docs/json.md describes them. Line numbers are zero-based; ids and hashes are hex; paths are absolute. In text that is
not UTF-8, U+FFFD replaces the invalid bytes: `cas cat` prints exact bytes.
"""

import json
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from cli.render.comments import comments_by_unit
from cli.render.edits import concerns, edit_diff, states_diff
from cli.render.external_prompt import external_diff
from cli.render.outcomes import Preview, beginning, effect_text, is_of_binary
from cli.render.status import shown_external
from cli.render.unreadable import ReadErrors
from cli.screen.terminal import EXACT
from objstore import (
    UNREADABLE,
    Action,
    BlobMissing,
    Conflicted,
    Decided,
    ExternalChanges,
    NothingToDo,
    Status,
    Unit,
    date_of,
)

if TYPE_CHECKING:
    from objstore import (
        BlobId,
        CallOutcome,
        CommentView,
        Conflict,
        DecisionOutcome,
        EditView,
        ExternalChange,
        FileEffect,
        FileState,
        Notice,
        SessionView,
        State,
        StatusReport,
        TurnView,
        UnresolvedMarkers,
        Workspace,
    )

__all__ = [
    "Json",
    "comment_shape",
    "diff_shape",
    "edit_shape",
    "external_diff_shape",
    "external_shape",
    "json_line",
    "outcome_shape",
    "restored_shape",
    "session_shape",
    "shown_edit_shape",
    "status_shape",
    "turn_shape",
]

BYTES_QUOTED: Final = 65_536
"""Number of bytes quoted of the lines that a conflicting hunk removed, and of those that it inserted."""

Json: TypeAlias = "bool | int | str | Sequence[Json] | dict[str, Json] | None"


def json_line(shape: dict[str, Json]) -> bytes:
    """Return one JSON object as a line of ASCII."""
    return json.dumps(shape).encode() + b"\n"


# ---- edits


def edit_shape(workspace: "Workspace", view: "EditView", read_errors: ReadErrors | None = None) -> dict[str, Json]:
    """Return one edit: the fields of the edit log, and then the store's own.

    If some bytes are lost, the rest is returned all the same; `read_errors` collects the loss.
    """
    edit = view.edit
    before, after = edit.before, edit.after
    own = ReadErrors()
    hash_before, hash_after = (_sha256(workspace, view, state, own) for state in (before, after))
    if read_errors is not None and own.first is not None:
        read_errors.note(own.first)
    return {
        "edit_id": view.id.hex(),
        "conversation_id": _text(edit.conversation),
        "tool_call_index": edit.call,
        "timestamp": _timestamp(edit.time),
        "operation": edit.operation.value,
        "file_path": _path(workspace, os.fsdecode(edit.path)),
        "source_path": None if edit.source is None else _path(workspace, os.fsdecode(edit.source)),
        "tool_name": _text(edit.tool),
        "status": view.status.value,
        # The store keeps states, not files of diffs: `cas show` and `cas cat` compute both.
        "diff_file": None,
        "checkpoint_file": None,
        "hash_before": hash_before,
        "hash_after": hash_after,
        "seq": view.seq,
        "blob_before": None if before is None else before.blob.hex(),
        "blob_after": None if after is None else after.blob.hex(),
        "mode_before": None if before is None else before.mode,
        "mode_after": None if after is None else after.mode,
        "origin": edit.origin.value,
        "turn": edit.turn or None,
        "owner": _text(view.owner) if view.owner else None,
        "amends": edit.amends,
        "marks": None
        if edit.marks is None
        else {
            "decision": edit.marks.decision,
            "against": [str(unit) for unit in edit.marks.against],
            "aside": [str(unit) for unit, _ in edit.marks.aside],
        },
        "whole_file": view.units[0].value if view.whole else None,
        "hunks": [
            {
                "name": f"{view.seq}:{number}",
                "status": view.units[number].value,
                "old_start": hunk.old_start,
                "old_count": hunk.old_count,
                "new_start": hunk.new_start,
                "new_count": hunk.new_count,
            }
            for number, hunk in enumerate(edit.hunks, 1)
        ],
        "lines_added": edit.added,
        "lines_removed": edit.removed,
        "reason": _text(view.reason),
        "reasons": [
            {"hunks": [str(unit) for unit in given.units], "reason": _text(given.text)} for given in view.given
        ],
        "expired": None
        if view.expired is None
        else {"timestamp": _timestamp(view.expired.time), "reason": _text(view.expired.reason)},
        "lost": None if own.first is None else str(own.first),
        "notes": {_text(key): _text(note) for key, note in edit.notes.items()},
    }


def turn_shape(turn: "TurnView") -> dict[str, Json]:
    """Return a turn as JSON."""
    return {
        "turn": turn.number,
        "session": turn.session,
        "conversation_id": _text(turn.conversation),
        "timestamp": _timestamp(turn.time),
        "client": _text(turn.client),
        "model": _text(turn.model),
        "prompt": _text(turn.prompt),
        "seqs": list(turn.seqs),
        "paths": [_text(path) for path in turn.paths],
        "lines_added": turn.added,
        "lines_removed": turn.removed,
        "statuses": {status.value: turn.counts.get(status, 0) for status in Status},
    }


def session_shape(session: "SessionView") -> dict[str, Json]:
    """Return a session as JSON."""
    return {
        "session": session.number,
        "name": _text(session.name),
        "client": _text(session.client),
        "prompt": _text(session.prompt),
        "began": _timestamp(session.began),
        "ended": _timestamp(session.ended),
        "turns": session.turns,
        "edits": session.edits,
    }


def shown_edit_shape(
    workspace: "Workspace", view: "EditView", units: Iterable[Unit], read_errors: ReadErrors
) -> dict[str, Json]:
    """Return one edit with its diff, limited to the selected hunks. `read_errors` collects lost bytes."""
    units = tuple(units)
    shape = edit_shape(workspace, view, read_errors)
    meant = {unit.hunk for unit in units}
    hunks = shape["hunks"]
    if isinstance(hunks, list):
        shape["hunks"] = [hunk for number, hunk in enumerate(hunks, 1) if number in meant]
    shape["markers"] = [
        markers_shape(workspace.root, markers) for markers in workspace.review.markers() if concerns(markers, view.edit)
    ]
    by_unit = comments_by_unit(workspace, units)
    shape["comments"] = [comment_shape(workspace, comment) for unit in sorted(by_unit) for comment in by_unit[unit]]
    try:
        shape["diff"] = None if view.expired else _joined(edit_diff(view, workspace, EXACT, units))
    except UNREADABLE as error:  # the hashes may be known even if the bytes are lost
        shape |= {"diff": None, "lost": shape["lost"] or str(error)}
        read_errors.note(error)
    return shape


def comment_shape(workspace: "Workspace", view: "CommentView") -> dict[str, Json]:
    """Return a comment with its answers."""
    made = view.comment
    first, last = view.lines
    return {
        "comment": view.number,
        "id": view.id.hex(),
        "timestamp": _timestamp(made.time),
        "who": _text(made.who),
        "conversation_id": _text(made.conversation) or None,
        "text": _text(made.text),
        "state": view.word,
        "sent_to": _text(view.sent_to) or None,
        "file_path": _path(workspace, view.path),
        "line": first - 1 if first else None,
        "line_count": last - first + 1 if first else None,
        "is_there": view.is_there,
        "hunks": [str(unit) for unit in made.units],
        "answers": [
            {
                "comment": answer.number,
                "timestamp": _timestamp(answer.comment.time),
                "who": _text(answer.comment.who),
                "conversation_id": _text(answer.comment.conversation) or None,
                "text": _text(answer.comment.text),
            }
            for answer in view.answers
        ],
    }


def _sha256(workspace: "Workspace", view: "EditView", state: "FileState | None", read_errors: ReadErrors) -> str | None:
    """Return the hash of a state's bytes; None if there is no file, or its bytes have expired or are lost."""
    try:
        return None if state is None else workspace.history.sha256(state.blob)
    except UNREADABLE as error:
        # The bytes of an expired edit exist only if something else holds them, such as the current file.
        if view.expired is None or not isinstance(error, BlobMissing):
            read_errors.note(error)
        return None


# ---- the workspace


def status_shape(report: "StatusReport", seen: tuple[int, int] | None) -> dict[str, Json]:
    """Return the status of the workspace. `seen`: how many changes are pending, and how many were not seen."""
    return {
        "workspace": _text(report.root),
        "edits": report.edits,
        "pending": report.pending,
        "accepted": report.accepted,
        "rejected": report.rejected,
        "away": report.away,
        "conversations": report.conversations,
        "changes": None if seen is None else seen[0],
        "unseen": None if seen is None else seen[1],
        "pending_groups": [
            {
                "conversation_id": _text(group.conversation),
                "turn": group.turn or None,
                "file_path": _text(os.path.join(report.root, group.path)),  # noqa: PTH118 -- a name, not a place
                "edits": list(group.seqs),
                "lines_added": group.added,
                "lines_removed": group.removed,
            }
            for group in report.groups
        ],
        "external_changes": [external_shape(report.root, change) for change in report.external],
        "markers": [markers_shape(report.root, markers) for markers in report.markers],
        "comments": {word: report.comments.get(word, 0) for word in ("open", "sent", "answered")},
        "collisions": [
            {
                "file_path": _text(os.path.join(report.root, collision.path)),  # noqa: PTH118 -- a name, not a place
                "sessions": [{"session": number, "edits": list(seqs)} for number, seqs in collision.edits.items()],
            }
            for collision in report.collisions
        ],
        "running_calls": [
            {
                "session": call.session or None,
                "conversation_id": _text(call.conversation),
                "client": _text(call.client),
                "tool": _text(call.tool),
                "file_paths": None
                if call.paths is None
                else [_text(os.path.join(report.root, path)) for path in call.paths],  # noqa: PTH118 -- as above
                "began": _timestamp(call.began),
                "state": call.state,
            }
            for call in report.running
        ],
        "commits": [
            {"commit": each.commit, "conversation_id": _text(each.conversation), "edits": list(each.edits)}
            for each in report.commits
        ],
        "policies": [*report.policies],
        "unreadable": [_text(path) for path in report.unreadable],
        "secrets": {
            "not_recorded": [_text(path) for path in report.secrets.left_out],
            "stored": [_text(path) for path in report.secrets.stored],
        },
        "store": {
            "bytes": report.store_bytes,
            "blobs": report.blobs,
            "max_size": report.reclaimable.max_size,
            "older_than": report.reclaimable.older_than,
            "free_blobs": report.reclaimable.free_blobs,
            "free_bytes": report.reclaimable.free_bytes,
            "old_edits": report.reclaimable.old_edits,
        },
    }


def markers_shape(root: str, markers: "UnresolvedMarkers") -> dict[str, Json]:
    """Return the conflict markers that one decision wrote into one file."""
    return {
        "file_path": _text(os.path.join(root, markers.path)),  # noqa: PTH118 -- a name, not a place
        "edit": markers.edit,
        "decision": markers.decision,
        "lines": [line - 1 for line in markers.lines],
        "decided": [str(unit) for unit in markers.decided],
        "aside": [str(unit) for unit in markers.aside],
    }


def external_shape(root: str, change: "ExternalChange") -> dict[str, Json]:
    """Return one file that differs from the journal."""
    return {
        "file_path": _text(os.path.join(root, change.path)),  # noqa: PTH118 -- a name, not a place
        "change": shown_external(change),
        "blob_recorded": _hex(change.recorded),
        "blob_found": _hex(change.found),
        "mode_recorded": change.recorded_mode if change.recorded is not None else None,
        "mode_found": change.found_mode if change.found is not None else None,
    }


# ---- decisions


def _pairs(workspace: "Workspace", outcome: Decided, pairs: "Iterable[tuple[Unit, Unit]]") -> Json:
    """Return units that a decision left as they were, each with the edit because of which it did."""
    named = [pair for pair in pairs if pair[0].hunk or _has_whole(workspace, pair[0].seq, outcome)]
    return [{"name": str(unit), "edit": other.seq} for unit, other in named]


def outcome_shape(
    workspace: "Workspace", action: Action, outcome: "DecisionOutcome", *, dry_run: bool
) -> dict[str, Json]:
    """Return what a decision did, would do, or why it was refused: `outcome` says which.

    Every field is always present.
    """
    shape: dict[str, Json] = {
        "outcome": "",
        "action": action.value,
        "dry_run": dry_run,
        "decision": None,
        "changed": [],
        "files": [],
        "recorded": [],
        "notices": [],
        "markers": [],
        "unmarked": [],
        "repeated": [],
        "taken_out": [],
        "conflicts": [],
        "accept_first": [],
        "reject_first": [],
        "external_changes": [],
    }
    match outcome:
        case Decided():
            shape |= {
                "outcome": "decided",
                "decision": outcome.number or None,
                "changed": [
                    {"name": str(unit), "status": status.value, "cascaded": unit in outcome.cascaded}
                    for unit, status in outcome.verdicts
                    # The whole-file unit of an edit without one can't be named.
                    if unit.hunk or _has_whole(workspace, unit.seq, outcome)
                ],
                "files": [
                    _effect_shape(workspace, effect, workspace.review.preview if dry_run else None)
                    for effect in outcome.files
                ],
                "recorded": [view.seq for view in outcome.external],
                "notices": [_notice_shape(workspace, notice) for notice in outcome.notices],
                "markers": [
                    {
                        "edit": markers.edit or None,
                        "file_path": _path(workspace, markers.path),
                        "regions": markers.regions,
                        "aside": [str(unit) for unit in markers.aside],
                    }
                    for markers in outcome.markers
                ],
                "unmarked": list(outcome.unmarked),
                "repeated": _pairs(workspace, outcome, outcome.repeated),
                "taken_out": _pairs(workspace, outcome, outcome.taken_out),
            }
        case Conflicted():
            shape |= {
                "outcome": "conflict",
                "conflicts": [_conflict_shape(workspace, conflict) for conflict in outcome.conflicts],
                "accept_first": [str(unit) for unit in outcome.accept_first],
                "reject_first": [str(unit) for unit in outcome.reject_first],
            }
        case ExternalChanges():
            shape |= {
                "outcome": "external-changes",
                "external_changes": [external_shape(workspace.root, change) for change in outcome.changes],
            }
        case NothingToDo():
            shape |= {"outcome": "nothing-to-do"}
        case _:
            assert_never(outcome)
    return shape


def restored_shape(workspace: "Workspace", outcome: "CallOutcome", *, dry_run: bool) -> dict[str, Json]:
    """Return the result of a restore; a dry run has recorded nothing, and says what would change."""
    files = [_effect_shape(workspace, effect, workspace.review.preview) for effect in outcome.files]
    return {
        "dry_run": dry_run,
        "edits": [] if dry_run else [edit_shape(workspace, view) for view in outcome.edits],
        "recorded": [] if dry_run else [edit_shape(workspace, view) for view in outcome.external],
        "files": files if dry_run else [],
    }


def _has_whole(workspace: "Workspace", seq: int, outcome: Decided) -> bool:
    """Return whether an edit has a whole-file unit; a dry run may name an edit that it would only record."""
    for edit in outcome.unrecorded:
        if edit.seq == seq:
            return edit.changes_whole
    return workspace.history.edit(seq).whole


def _effect_shape(workspace: "Workspace", effect: "FileEffect", preview: Preview | None) -> dict[str, Json]:
    """Return the effect on one file; with `preview` (a dry run) also its diff."""
    shape: dict[str, Json] = {
        "path_before": None if effect.path_before is None else _path(workspace, effect.path_before),
        "path_after": None if effect.path_after is None else _path(workspace, effect.path_after),
        "blob_before": _hex(effect.before),
        "blob_after": _hex(effect.after),
        "mode_before": None if effect.before is None else effect.mode_before,
        "mode_after": None if effect.after is None else effect.mode_after,
    }
    if preview is not None:
        shape["diff"] = _joined(effect_text([effect], preview, EXACT))
    return shape


def _conflict_shape(workspace: "Workspace", conflict: "Conflict") -> dict[str, Json]:
    is_text = not is_of_binary(conflict)
    return {
        "kind": conflict.kind.value,
        "unit": str(conflict.unit),
        "needs": [str(unit) for unit in conflict.needs],
        "file_path": _path(workspace, conflict.path),
        "line": conflict.line or None,
        "removed": _quoted(conflict.removed) if is_text else None,
        "inserted": _quoted(conflict.inserted) if is_text else None,
        "removed_bytes": len(conflict.removed),
        "inserted_bytes": len(conflict.inserted),
        "outside": [str(unit) for unit in (conflict.unit, *conflict.needs) if unit.seq in conflict.outside],
        "message": _text(str(conflict)),
    }


def _quoted(lines: bytes) -> str:
    return beginning(lines, BYTES_QUOTED).decode(errors="replace")


def _notice_shape(workspace: "Workspace", notice: "Notice") -> dict[str, Json]:
    return {
        "unit": str(notice.unit),
        "status": notice.status.value,
        "beside": [str(unit) for unit in notice.adjacent],
        "file_path": _path(workspace, notice.path),
        "line": notice.line,
        "message": _text(str(notice)),
    }


# ---- states


def external_diff_shape(workspace: "Workspace", change: "ExternalChange") -> dict[str, Json]:
    """Return one file that differs from the journal, with the difference."""
    shape = external_shape(workspace.root, change)
    shape["diff"] = _joined(external_diff(workspace, change, EXACT))
    return shape


def diff_shape(workspace: "Workspace", before: "State", after: "State") -> dict[str, Json]:
    """Return the difference between two states."""
    return {
        "path_before": _path(workspace, before.path) if before.path else None,
        "path_after": _path(workspace, after.path) if after.path else None,
        "blob_before": _hex(before.blob),
        "blob_after": _hex(after.blob),
        "mode_before": None if before.blob is None else before.mode,
        "mode_after": None if after.blob is None else after.mode,
        "diff": _joined(states_diff(workspace, before, after, EXACT)),
    }


# ---- values


def _timestamp(microseconds: int) -> str:
    return date_of(microseconds).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _path(workspace: "Workspace", path: str) -> str:
    return _text(os.path.join(workspace.root, path))  # noqa: PTH118 -- a name, not a place


def _text(text: str) -> str:
    # Python holds a byte that is not UTF-8 as a lone surrogate; many JSON readers refuse a document with one.
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _hex(blob: "BlobId | None") -> str | None:
    return None if blob is None else blob.hex()


def _joined(lines: Iterable[bytes]) -> str:
    return b"".join(lines).decode(errors="replace")
