"""Describe the outcomes of decisions for the page: a message for each, and the answers that are possible."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from cli.app.error_hints import message_with_advice, permission_advice
from cli.render.external_prompt import external_sides
from cli.render.outcomes import effect_line, is_of_binary
from cli.screen.terminal import shown_name, visible
from cli.web.diff_rows.net_rows import line_row, shown_line
from cli.web.server_state import ServerState, Ticket
from cli.web.shapes import Edits, named, unit_names
from objstore import (
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
    diff_lines,
    distinct_conflicts,
    is_either_binary,
    outcome_words,
    refusal,
    replace,
    shown_lines,
    split_lines,
)

if TYPE_CHECKING:
    from objstore import Conflict, ExternalChange, Workspace

__all__ = ["Preview", "WayOut", "failure_shape", "outcome_shape", "overtaken"]

Shape = dict[str, Any]


class WayOut(Enum):
    """A way out of a conflict that the page offers."""

    CASCADE = auto()
    KEEP_LINES = auto()
    MARKERS = auto()


Preview = Callable[[Conflicted, WayOut], "DecisionOutcome"]
"""Computes what a refused decision would do by a way out; changes nothing."""

_CONFLICTS: Final = 50
_EDITS: Final = 20
"""Edits of one conflict that are summarized; its units are all named."""

_QUOTED_LINES: Final = 8
_EXTERNAL_FILES: Final = 20
_EXTERNAL_ROWS: Final = 400


def overtaken(message: str) -> Shape:
    """Return the outcome of a decision about changes that are no longer as they were shown."""
    return {"outcome": "overtaken", "message": visible(message)}


def outcome_shape(
    server: ServerState,
    workspace: "Workspace",
    outcome: DecisionOutcome,
    *,
    answered: Ticket,
    preview: Preview | None = None,
) -> Shape:
    """Return an outcome with its message. `answered`: what the reviewer was shown before; its answers still apply.

    `preview`: computes the ways out of a conflict (None: there are none).
    """
    match outcome:
        case Decided():
            return _decided(server, workspace, outcome)
        case NothingToDo():
            words = outcome_words(outcome, workspace.history.edit, shown_name)
            return {"outcome": "nothing", "message": words.done}
        case Conflicted():
            return _conflicted(server, workspace, outcome, answered, preview)
        case ExternalChanges():
            return _external(server, workspace, outcome, answered)


def failure_shape(server: ServerState, error: CasError | OSError) -> Shape:
    """Return the outcome of a decision that failed with an error: nothing was decided."""
    words = visible(message_with_advice(error))
    match error:
        case DecidedMeanwhile() | EditAway() | EditExpired() | FileChanged():
            return overtaken(words)
        case CheckFailed():
            return {"outcome": "unchecked", "message": words, "output": [*map(visible, error.lines)]}
        case StoreLocked():
            return {"outcome": "failed", "message": f"{words} Nothing was decided."}
        case PermissionRefused():
            with suppress(OSError):
                words = f"{words}. {permission_advice(error, server.root)}".strip()
    if server.read_only():
        return {"outcome": "read_only", "message": server.read_only()}
    return {"outcome": "failed", "message": words}


# ---- inside


def _decided(server: ServerState, workspace: "Workspace", outcome: Decided) -> Shape:
    words = outcome_words(outcome, workspace.history.edit, shown_name)
    return {
        "outcome": "decided",
        "number": outcome.number,
        "action": outcome.action.value,
        "units": unit_names(unit for unit, _ in outcome.verdicts),
        "cascaded": unit_names(outcome.cascaded),
        "files": _effects(outcome, dry_run=False),
        "notes": [visible(note) for note in (*words.along, *words.notes)],
        "message": visible(words.done),
        "version": server.version(),
    }


def _effects(outcome: Decided, *, dry_run: bool) -> list[Shape]:
    return [
        {
            "name": named(effect.path_after or effect.path_before or "")["name"],
            "words": visible(effect_line(effect, dry_run=dry_run)),
        }
        for effect in outcome.files
    ]


def _conflicted(
    server: ServerState, workspace: "Workspace", outcome: Conflicted, answered: Ticket, preview: Preview | None
) -> Shape:
    cascade, marked = (_tried(preview, outcome, way) for way in (WayOut.CASCADE, WayOut.MARKERS))
    kept = _tried(preview, outcome, WayOut.KEEP_LINES) if outcome.can_keep_lines else None
    edits = Edits(workspace)
    return {
        "outcome": "conflicted",
        "message": refusal(outcome, shown_name),
        "conflicts": [_conflict(edits, conflict) for conflict in distinct_conflicts(outcome)[:_CONFLICTS]],
        "accept_first": unit_names(outcome.accept_first),
        "reject_first": unit_names(unit for unit in outcome.reject_first if unit.seq not in outcome.outside),
        "can_cascade": cascade is not None,
        "can_mark": marked is not None,
        "can_keep_lines": kept is not None,
        "cascade": [] if cascade is None else _effects(cascade, dry_run=True),
        "keep_lines": [] if kept is None else _effects(kept, dry_run=True),
        "ticket": server.ticket(replace(answered, refused=outcome)),
    }


def _tried(preview: Preview | None, outcome: Conflicted, way: WayOut) -> Decided | None:
    """Return what a way out of a conflict would decide (None: it would be refused too)."""
    if preview is None:
        return None
    with suppress(CasError):
        found = preview(outcome, way)
        return found if isinstance(found, Decided) else None
    return None


def _conflict(edits: Edits, conflict: "Conflict") -> Shape:
    is_binary = is_of_binary(conflict)
    seqs = dict.fromkeys([conflict.unit.seq, *(unit.seq for unit in conflict.needs)])
    return {
        "unit": str(conflict.unit),
        "needs": unit_names(conflict.needs),
        **named(conflict.path),
        "line": conflict.line,
        "words": visible(str(conflict)),
        "removed": [] if is_binary else _quoted(conflict.removed),
        "inserted": [] if is_binary else _quoted(conflict.inserted),
        "edits": edits.of([seq for seq in seqs if seq not in conflict.outside][:_EDITS]),
    }


def _quoted(text: bytes) -> list[str]:
    lines = split_lines(text)
    more = len(lines) - _QUOTED_LINES
    quoted = [shown_line(line)[0] for line in lines[:_QUOTED_LINES]]
    return [*quoted, f"and {more} more lines"] if more > 0 else quoted


def _external(server: ServerState, workspace: "Workspace", outcome: ExternalChanges, answered: Ticket) -> Shape:
    return {
        "outcome": "external",
        "message": refusal(outcome, shown_name),
        "changes": [
            {
                **named(change.path),
                "what": "new" if change.recorded is None else "gone" if change.found is None else "changed",
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
    if is_either_binary(before, after):
        return
    old, new = split_lines(before), split_lines(after)
    made = 0
    for hunk in diff_lines(before, after):
        if made:
            yield {"k": "~", "t": "", "hidden": 0}
        for at in range(hunk.old_start, hunk.old_end):
            yield line_row("-", old[at], old=at)
        for at in range(hunk.new_start, hunk.new_end):
            yield line_row("+", new[at], new=at)
        made += hunk.old_count + hunk.new_count
        if made > _EXTERNAL_ROWS:
            return
