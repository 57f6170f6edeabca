"""JSON shapes of edits (with the fields of the edit log), turns, sessions and comments. docs/json.md describes them.

Line numbers are zero-based; ids and hashes are hex; paths are absolute.
"""

import os
from typing import TYPE_CHECKING

from objstore.model.basic_types import UNKNOWN_AGENT, Status, Unit
from objstore.values.errors import UNREADABLE, BlobMissing
from objstore.workspace.shapes.values import Json, fields_shape, path_shape, text_shape, time_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from objstore.history.verdicts import Verdicts
    from objstore.model.basic_types import FileState
    from objstore.model.views import CommentView, EditView, SessionView, TurnPrompt, TurnView, Verdict
    from objstore.values.errors import StoreError
    from objstore.workspace.handle import Workspace
    from objstore.workspace.remote_decisions import RemoteVerdict, WaitingComment

__all__ = [
    "awaited_shape",
    "comment_shape",
    "edit_shape",
    "edit_summary",
    "session_shape",
    "turn_shape",
    "turn_summary",
    "verdict_shape",
    "waiting_comment_shape",
]


def edit_summary(view: "EditView") -> dict[str, Json]:
    """Return those fields of one edit that need no look into the store."""
    edit = view.edit
    return {
        "seq": view.seq,
        "timestamp": time_shape(edit.time),
        "operation": edit.operation.value,
        "tool_name": text_shape(edit.tool),
        "status": view.status.value,
        "origin": edit.origin.value,
        "owner": UNKNOWN_AGENT if view.is_unattributed else text_shape(view.owner) or None,
        "turn": edit.turn or None,
        "lines_added": edit.added,
        "lines_removed": edit.removed,
        "reason": text_shape(view.reason),
        "check": text_shape(view.check),
    }


def edit_shape(
    workspace: "Workspace",
    view: "EditView",
    note: "Callable[[StoreError], None] | None" = None,
    verdicts: "Verdicts | None" = None,
    awaited: "Mapping[Unit, RemoteVerdict] | None" = None,
) -> dict[str, Json]:
    """Return one edit: the fields of the edit log, and then the store's own.

    If some bytes are lost, the rest is returned all the same; `note` is called with the loss. `verdicts`: what looks up
    decisions, for several edits (None: this one's alone). `awaited`: as of Workspace (None: it is looked up).
    """
    awaited = workspace.awaited() if awaited is None else awaited
    edit = view.edit
    before, after = edit.before, edit.after
    lost: list[StoreError] = []
    hash_before, hash_after = (_sha256(workspace, view, state, lost.append) for state in (before, after))
    if note is not None and lost:
        note(lost[0])
    return {
        "edit_id": view.id.hex(),
        "conversation_id": text_shape(edit.conversation),
        "tool_call_index": edit.call,
        **edit_summary(view),
        "file_path": path_shape(workspace.root, os.fsdecode(edit.path)),
        "source_path": None if edit.source is None else path_shape(workspace.root, os.fsdecode(edit.source)),
        # The store keeps states, not files of diffs: `cas show` and `cas cat` compute both.
        "diff_file": None,
        "checkpoint_file": None,
        "hash_before": hash_before,
        "hash_after": hash_after,
        "blob_before": None if before is None else before.blob.hex(),
        "blob_after": None if after is None else after.blob.hex(),
        "mode_before": None if before is None else before.mode,
        "mode_after": None if after is None else after.mode,
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
                **fields_shape(hunk),
            }
            for number, hunk in enumerate(edit.hunks, 1)
        ],
        "decided": [
            verdict_shape(verdict)
            for verdict in (workspace.history.verdicts() if verdicts is None else verdicts).of(view)
        ],
        "awaited": awaited_shape(awaited, view.telling_units),
        "reasons": [
            {"hunks": [str(unit) for unit in given.units], "reason": text_shape(given.text)}
            for given in view.given
            if given.text
        ],
        "expired": None
        if view.expired is None
        else {"timestamp": time_shape(view.expired.time), "reason": text_shape(view.expired.reason)},
        "lost": str(lost[0]) if lost else None,
        "notes": {text_shape(key): text_shape(note) for key, note in edit.notes.items()},
    }


def awaited_shape(awaited: "Mapping[Unit, RemoteVerdict]", units: "Iterable[Unit]") -> list[Json]:
    """Return the decisions on units of another store that its mirror doesn't show yet. `awaited`: as of Workspace."""
    found: dict[int, list[Unit]] = {}
    for unit in units:
        if unit in awaited:
            found.setdefault(awaited[unit].number, []).append(unit)
    return [
        {
            "hunks": list(map(str, decided)),
            "decision": number,
            "action": awaited[decided[0]].action.value,
            "who": text_shape(awaited[decided[0]].who),
            "reason": text_shape(awaited[decided[0]].reason),
            "result": awaited[decided[0]].result,
            "withdrawn_by": text_shape(awaited[decided[0]].withdrawn_by) or None,
        }
        for number, decided in found.items()
    ]


def waiting_comment_shape(waiting: "WaitingComment") -> dict[str, Json]:
    """Return a comment on another store that its mirror doesn't show yet."""
    return {
        "entry": waiting.number,
        "who": text_shape(waiting.who),
        "units": list(map(str, waiting.units)),
        "text": text_shape(waiting.text),
        "result": waiting.result,
        "refused": text_shape(waiting.why) or None,
    }


def verdict_shape(verdict: "Verdict") -> dict[str, Json]:
    """Return the decision by which units of an edit have their statuses."""
    return {
        "hunks": [str(unit) for unit in verdict.units],
        "decision": verdict.decision,
        "action": verdict.action.value,
        "timestamp": time_shape(verdict.time),
        "who": text_shape(verdict.who),
        "via": text_shape(verdict.via) or None,
        "agent": text_shape(verdict.agent) or None,
        "commit": verdict.commit or None,
    }


def turn_summary(turn: "TurnView | TurnPrompt") -> dict[str, Json]:
    """Return a turn without what its edits did."""
    return {
        "turn": turn.number,
        "session": turn.session,
        "conversation_id": text_shape(turn.conversation),
        "timestamp": time_shape(turn.time),
        "client": text_shape(turn.client),
        "model": text_shape(turn.model),
        "prompt": text_shape(turn.prompt),
    }


def turn_shape(turn: "TurnView") -> dict[str, Json]:
    """Return a turn with what its edits did."""
    return {
        **turn_summary(turn),
        "seqs": list(turn.seqs),
        "paths": [text_shape(path) for path in turn.paths],
        "lines_added": turn.added,
        "lines_removed": turn.removed,
        "statuses": {status.value: turn.counts.get(status, 0) for status in Status},
    }


def session_shape(session: "SessionView") -> dict[str, Json]:
    """Return a session as JSON."""
    return {
        "session": session.number,
        "name": text_shape(session.name),
        "client": text_shape(session.client),
        "prompt": text_shape(session.prompt),
        "began": time_shape(session.began),
        "ended": time_shape(session.ended),
        "turns": session.turns,
        "edits": session.edits,
    }


def comment_shape(root: str, view: "CommentView") -> dict[str, Json]:
    """Return a comment with its answers."""
    made = view.comment
    first, last = view.lines
    return {
        "comment": view.number,
        "id": view.id.hex(),
        "timestamp": time_shape(made.time),
        "who": text_shape(made.who),
        "conversation_id": text_shape(made.conversation) or None,
        "text": text_shape(made.text),
        "state": view.word,
        "sent_to": text_shape(view.sent_to) or None,
        "file_path": path_shape(root, view.path),
        "line": first - 1 if first else None,
        "line_count": last - first + 1 if first else None,
        "is_there": view.is_there,
        "hunks": [str(unit) for unit in made.units],
        "answers": [
            {
                "comment": answer.number,
                "timestamp": time_shape(answer.comment.time),
                "who": text_shape(answer.comment.who),
                "conversation_id": text_shape(answer.comment.conversation) or None,
                "text": text_shape(answer.comment.text),
            }
            for answer in view.answers
        ],
    }


def _sha256(
    workspace: "Workspace", view: "EditView", state: "FileState | None", note: "Callable[[StoreError], None]"
) -> str | None:
    """Return the hash of a state's bytes; None if there is no file, or its bytes have expired or are lost."""
    try:
        return None if state is None else workspace.history.sha256(state.blob)
    except UNREADABLE as error:
        # The bytes of an expired edit exist only if something else holds them, such as the current file.
        if view.expired is None or not isinstance(error, BlobMissing):
            note(error)
        return None
