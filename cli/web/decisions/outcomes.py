"""Describe the outcomes of decisions for the page: a message for each, and the answers that are possible."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from cli.app.error_hints import message_with_advice, permission_advice
from cli.render.external_prompt import external_sides
from cli.render.outcomes import effect_line, is_of_binary
from cli.screen.terminal import shown_name, visible
from cli.web.diff_rows.net_rows import compared_rows, shown_line
from cli.web.server_state import NO_TICKET, ServerState, Ticket, WayOut
from cli.web.shapes import Edits, at_path, shown
from objstore import (
    Action,
    CasError,
    CheckFailed,
    Conflicted,
    Decided,
    DecidedMeanwhile,
    DecisionOutcome,
    EditAway,
    EditExpired,
    ExternalChanges,
    FileChanged,
    NothingToDo,
    PathError,
    PermissionRefused,
    StoreLocked,
    conflict_shape,
    distinct_conflicts,
    effect_shape,
    empty_outcome,
    external_shape,
    is_either_binary,
    outcome_shape,
    outcome_words,
    replace,
    shown_lines,
    split_lines,
)

if TYPE_CHECKING:
    from objstore import Conflict, ExternalChange, FileEffect, Workspace

__all__ = [
    "done_shape",
    "failure_shape",
    "named_effects",
    "nothing_to_do",
    "outcome_of",
    "overtaken",
    "shown_outcome",
]

Shape = dict[str, Any]


_CONFLICTS: Final = 50
_EDITS: Final = 20
"""Edits of one conflict that are summarized; its units are all named."""

_QUOTED_LINES: Final = 8
_EXTERNAL_FILES: Final = 20
_EXTERNAL_ROWS: Final = 400


def outcome_of(
    server: ServerState, decide: "Callable[[Workspace], Shape]", workspace: "Workspace | None" = None
) -> Shape:
    """Return the outcome of what a function does in the workspace; an error is an outcome, too.

    `workspace`: None opens it, after what git did is recorded.
    """
    try:
        with server.workspace(notes_git=True) if workspace is None else nullcontext(workspace) as opened:
            return decide(opened)
    except (CasError, OSError) as error:
        return failure_shape(server, error)


def overtaken(message: str) -> Shape:
    """Return the outcome of a decision about changes that are no longer as they were shown."""
    return {"outcome": "overtaken", "message": visible(message)}


def shown_outcome(
    server: ServerState,
    workspace: "Workspace",
    action: Action,
    outcome: DecisionOutcome,
    *,
    answered: Ticket = NO_TICKET,
    ways_out: Mapping[WayOut, Decided] = MappingProxyType({}),
    subject: str = "",
) -> Shape:
    """Return an outcome, as `--json` prints it, with its message and what the page needs for an answer.

    `answered`: what the reviewer was shown before; its answers still apply. `ways_out`: what each would do about
    a conflict. `subject`: what it is on, in place of the names of edits and hunks ("": these).
    """
    if isinstance(outcome, Decided):
        if outcome.act is None:
            server.subjects.put(outcome.number, subject)
        else:
            subject = server.subjects.get(outcome.act.number) or ""
    words = outcome_words(outcome, workspace.history.edit, shown_name, subject=subject)
    shape: Shape = {
        **shown(outcome_shape(workspace, action, outcome, dry_run=False)),
        **_said(words.done, subject),
    }
    match outcome:
        case Decided():
            names = outcome_words(outcome, workspace.history.edit, shown_name).done
            notes = [visible(note) for note in (*words.along, *words.notes)]
            return {
                **shape,
                "files": named_effects(workspace.root, outcome.files),
                "notes": notes,
                "detail": visible(names),
                "document": next(
                    (workspace.history.edit(unit.seq).edit.document for unit, _ in outcome.verdicts), None
                ),
            }
        case Conflicted():
            return {**shape, **_conflicted(server, workspace, outcome, answered, ways_out)}
        case ExternalChanges():
            return {**shape, **_external(server, workspace, outcome, answered)}
        case NothingToDo():
            return shape


def done_shape(action: str, decision: int, message: str, **fields: object) -> Shape:
    """Return the outcome of what a person did that is no decision on hunks by itself, such as a restore.

    `decision`: the number by which an undo takes it back. `fields`: what else is not empty.
    """
    shape: Shape = {**empty_outcome(action), "outcome": "decided", "decision": decision or None}
    return {**shape, **_said(message), **fields}


def nothing_to_do(action: str, message: str) -> Shape:
    """Return the outcome of a request that changes nothing."""
    return {**empty_outcome(action), "outcome": "nothing-to-do", **_said(message)}


def named_effects(root: str, effects: "Iterable[FileEffect]", *, dry_run: bool = False) -> list[Shape]:
    """Return what happened to files, or would, with their names and in words."""
    return [
        {
            **shown(effect_shape(root, effect)),
            "name": shown_name(effect.path_after or effect.path_before or ""),
            "words": visible(effect_line(effect, dry_run=dry_run)),
        }
        for effect in effects
    ]


def failure_shape(server: ServerState, error: CasError | OSError) -> Shape:
    """Return the outcome of a decision that failed with an error: nothing was decided."""
    words = visible(message_with_advice(error))
    match error:
        case DecidedMeanwhile() | EditAway() | EditExpired() | FileChanged():
            return overtaken(words)
        case CheckFailed():
            title = "The check was stopped" if error.was_stopped else "The check failed"
            return {"outcome": "unchecked", "title": title, "message": words, "output": [*map(visible, error.lines)]}
        case StoreLocked():
            return {"outcome": "failed", "message": f"{words} Nothing was decided."}
        case PermissionRefused():
            with suppress(OSError):
                words = f"{words}. {permission_advice(error, server.root)}".strip()
    if server.read_only():
        return {"outcome": "read_only", "message": server.read_only()}
    return {"outcome": "failed", "message": words}


# ---- inside


def _said(message: str, subject: str = "") -> Shape:
    """Return the fields for what is said of an outcome. `detail`: the message with the names of edits and hunks."""
    return {"message": visible(message), "notes": [], "detail": "", "subject": subject, "document": None}


def _conflicted(
    server: ServerState,
    workspace: "Workspace",
    outcome: Conflicted,
    answered: Ticket,
    ways_out: Mapping[WayOut, Decided],
) -> Shape:
    effects = {way: named_effects(workspace.root, done.files, dry_run=True) for way, done in ways_out.items()}
    edits = Edits(workspace)
    cascade = ways_out.get(WayOut.CASCADE)
    along = () if cascade is None else outcome_words(cascade, workspace.history.edit, shown_name, dry_run=True).along
    return {
        "conflicts": [
            _conflict(workspace.root, edits, conflict) for conflict in distinct_conflicts(outcome)[:_CONFLICTS]
        ],
        "reject_first": list(map(str, outcome.recorded_to_reject)),
        "can_cascade": cascade is not None,
        "can_mark": WayOut.MARKERS in ways_out,
        "can_keep_lines": WayOut.KEEP_LINES in ways_out,
        "cascade": effects.get(WayOut.CASCADE, []),
        "along": visible(" ".join(along)),
        "keep_lines": effects.get(WayOut.KEEP_LINES, []),
        "ticket": server.ticket(replace(answered, refused=outcome)),
    }


def _conflict(root: str, edits: Edits, conflict: "Conflict") -> Shape:
    is_binary = is_of_binary(conflict)
    seqs = dict.fromkeys([conflict.unit.seq, *(unit.seq for unit in conflict.needs)])
    return {
        **at_path(conflict_shape(root, conflict), conflict.path),
        "rows": [] if is_binary else [*_quoted("-", conflict.removed), *_quoted("+", conflict.inserted)],
        "edits": edits.of([seq for seq in seqs if seq not in conflict.outside][:_EDITS]),
    }


def _quoted(sign: str, text: bytes) -> Iterator[Shape]:
    lines = split_lines(text)
    yield from ({"k": sign, "t": shown_line(line)[0]} for line in lines[:_QUOTED_LINES])
    if len(lines) > _QUOTED_LINES:
        yield {"k": sign, "t": f"and {len(lines) - _QUOTED_LINES} more lines"}


def _external(server: ServerState, workspace: "Workspace", outcome: ExternalChanges, answered: Ticket) -> Shape:
    return {
        "external_changes": [
            {
                **at_path(external_shape(workspace.root, change), change.path),
                "rows": list(_external_rows(workspace, change)) if at < _EXTERNAL_FILES else [],
            }
            for at, change in enumerate(outcome.changes)
        ],
        "ticket": server.ticket(replace(answered, expected=outcome.changes)),
    }


def _external_rows(workspace: "Workspace", change: "ExternalChange") -> Iterator[Shape]:
    """Yield the first rows of the diff between the recorded state of a file and the file on disk."""
    try:
        recorded, found = external_sides(workspace, change)
    except PathError:
        return
    before, after = map(shown_lines, (recorded or b"", found or b""))
    if not is_either_binary(before, after):
        yield from (row for row in compared_rows(before, after, 0).rows(0, _EXTERNAL_ROWS) if row["k"] != "~")
