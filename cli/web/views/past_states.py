"""Compare a recorded state of a file with the current one, and restore it."""

import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cli.app.invocation import reviewer
from cli.screen.terminal import shown_name
from cli.web.decisions.outcomes import (
    done_shape,
    named_effects,
    nothing_to_do,
    outcome_of,
    overtaken,
    shown_outcome,
)
from cli.web.diff_rows.net_rows import compared_rows
from cli.web.request_fields import Answer, NotThere
from cli.web.server_state import ServerState
from cli.web.shapes import named
from objstore import (
    UNREADABLE,
    Action,
    ExternalChanges,
    NoSuchName,
    OnExternal,
    PathError,
    State,
    is_either_binary,
    is_placeholder,
    shown_lines,
)

if TYPE_CHECKING:
    from objstore import CallOutcome, ExternalChange, Workspace

__all__ = ["PastState", "restored", "state_named", "state_shape"]

Shape = dict[str, Any]

_MOST_COMPARED: Final = 4_000_000
"""Most bytes of both states together that are compared, in about a second."""


class PastState(NamedTuple):
    """The name of a recorded state of a file."""

    path: str  # of the file after the edit, or before it
    seq: int  # of the edit
    is_before: bool  # whether the state before the edit is meant


def state_named(workspace: "Workspace", named: PastState) -> State:
    """Return the state of a file. Raises NotThere if there is no such edit, or it did not change that file."""
    try:
        view = workspace.history.edit(named.seq)
    except NoSuchName as error:
        raise NotThere(str(error)) from None
    edit = view.edit
    if os.fsencode(named.path) not in {edit.path, edit.source}:
        raise NotThere(f"Edit {named.seq} did not change {shown_name(named.path)}.")
    state = edit.before if named.is_before else edit.after
    where = edit.source if named.is_before and edit.source is not None else edit.path
    return State(
        path=os.fsdecode(where),
        blob=None if state is None else state.blob,
        mode=0 if state is None else state.mode,
    )


def state_shape(workspace: "Workspace", state: State, *, first: int, count: int, context: int) -> Shape:
    """Return a state, and rows of the changes that a restore would make to the file last recorded at that path."""
    now = _last_state(workspace, state.path)
    then_text, now_text = _text(workspace, state), _text(workspace, now)
    shape: Shape = {
        **named(state.path),
        "exists": state.blob is not None,
        "kept": then_text is not None,
        "blob": "" if state.blob is None or then_text is None else state.blob.hex(),
        "size": 0 if state.blob is None or then_text is None else workspace.history.size(state.blob),
        "same": (state.blob, state.mode) == (now.blob, now.mode),
        "binary": False,
        "too_large": False,
        "rows": [],
        "first": first,
        "total": 0,
    }
    if then_text is None or now_text is None:
        return shape
    shape["binary"] = is_either_binary(now_text, then_text)
    shape["too_large"] = len(now_text) + len(then_text) > _MOST_COMPARED or any(
        map(is_placeholder, (now_text, then_text))
    )
    if not shape["binary"] and not shape["too_large"]:
        rows = compared_rows(now_text, then_text, context)
        shape["rows"], shape["total"] = rows.rows(first, count), rows.total
    return shape


def restored(server: ServerState, named: PastState, answer: Answer, *, dry_run: bool) -> Shape:
    """Restore a state as an edit by the user, or preview that, and return the outcome.

    If the file has a change that is not recorded yet, the outcome shows that change. A request with its ticket then
    records it and restores the state. Raises NotThere as `state_named`.
    """
    answered = server.shown(answer.ticket)
    if answered is None:
        return overtaken("The server no longer remembers what you were shown. Look at the file again, then restore it.")

    def restore(workspace: "Workspace") -> Shape:
        state = state_named(workspace, named)
        if state.blob is not None:
            workspace.history.edit(named.seq).refuse_if_expired()
        outside = _outside(workspace, state.path)
        is_answered = answer.on_external is not OnExternal.ABORT and answered.expected == outside
        if outside and not dry_run and not is_answered:
            refused = shown_outcome(server, workspace, Action.ACCEPT, ExternalChanges(changes=outside))
            return {**refused, "action": "restore"}
        outcome = workspace.review.restore(state, who=reviewer(), dry_run=dry_run)
        return _restored(server.root, state, outcome, dry_run=dry_run)

    return outcome_of(server, restore)


# ---- inside


def _restored(root: str, state: State, outcome: "CallOutcome", *, dry_run: bool) -> Shape:
    name = shown_name(state.path)
    if not outcome.edits:
        return nothing_to_do("restore", f"Nothing to restore: {name} is in this state already.")
    seqs = [view.seq for view in outcome.edits]
    if dry_run:
        message = f"{name} would be {'removed' if state.blob is None else 'restored'}."
    else:
        done = "Removed" if state.blob is None else "Restored"
        message = f"{done} {name} as edit {seqs[-1]}."
    recorded = "would be recorded first" if dry_run else f"is recorded as edit {', '.join(map(str, _seqs(outcome)))}"
    return done_shape(
        "restore",
        outcome.decision,
        message,
        dry_run=dry_run,
        files=named_effects(root, outcome.files, dry_run=dry_run),
        recorded=[] if dry_run else _seqs(outcome),
        notes=[f"The change from outside {recorded}."] if outcome.external else [],
    )


def _seqs(outcome: "CallOutcome") -> list[int]:
    return [view.seq for view in outcome.external]


def _outside(workspace: "Workspace", path: str) -> "tuple[ExternalChange, ...]":
    """Return the external change of a file, if there is one."""
    return tuple(change for change in workspace.review.external_changes([path]) if change.path == path)


def _last_state(workspace: "Workspace", path: str) -> State:
    """Return the last recorded state of the file at a path; without a blob if no file is there."""
    none = State(path=path, blob=None, mode=0)
    try:
        found = workspace.history.last_state(path)
    except (NoSuchName, PathError):
        return none
    return found if found.path == path else none


def _text(workspace: "Workspace", state: State) -> bytes | None:
    """Return the text of a state (b"": no file; None: its bytes are no longer kept)."""
    if state.blob is None:
        return b""
    try:
        return shown_lines(workspace.history.text(state.blob))
    except UNREADABLE:
        return None
