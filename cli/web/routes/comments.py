"""Routes that comment on changes and lines, answer and resolve comments, and claim edits."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.routing import Route

from cli.app.invocation import reviewer
from cli.web.decisions.decision_requests import resolved
from cli.web.decisions.outcomes import outcome_of, shown_outcome
from cli.web.endpoints import Json, post
from cli.web.request_fields import BadRequest, Fields, NotThere
from cli.web.server_state import DecisionRequest, ServerState
from cli.web.shapes import at_path
from objstore import (
    Action,
    BlobId,
    CallInfo,
    CasError,
    FileChanged,
    Origin,
    Selection,
    comment_shape,
    diff_lines,
    shown_lines,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.selection.elsewhere import Elsewhere
    from objstore import CommentView, Unit, Workspace

__all__ = ["ROUTES"]


def comment(server: ServerState, fields: Fields) -> Json:
    """Record a comment on changes, hunks or lines, or an answer to one."""
    text, who = fields.text("text").strip(), reviewer()
    if not text:
        raise BadRequest("text must not be empty.")
    targets = [name for name in ("keys", "units", "path", "answers") if fields.has(name)]
    if len(targets) != 1:
        raise BadRequest("Give one of keys, units, path and answers.")
    if (targets == ["keys"] and not fields.keys("keys")) or (targets == ["units"] and not fields.units("units")):
        raise BadRequest(f"{targets[0]} must not be empty.")
    with server.workspace(notes_git=True) as workspace:
        if server.elsewhere is not None:
            units = _units_elsewhere(server, server.elsewhere, workspace, fields)
            return {"message": server.elsewhere.comment(units, text)}
        comments = workspace.comments
        match targets[0]:
            case "keys":
                view = comments.add_to_units(_units_of(server, workspace, fields), text, who=who)
            case "units":
                view = comments.add_to_units(fields.units("units"), text, who=who)
            case "path":
                view = _on_lines(server, workspace, fields, text)
            case _:
                number = fields.number("answers", least=1)
                comments.get(number)
                view = comments.answer(number, text, who=who)
        return at_path(comment_shape(server.root, view), view.path)


def resolve(server: ServerState, fields: Fields) -> Json:
    """Resolve a comment, or open it again."""
    number, is_resolved = fields.number("number", least=1), fields.flag("resolved")
    if server.elsewhere is not None:
        raise BadRequest(server.elsewhere.no_answer)
    with server.workspace(notes_git=True) as workspace:
        comments = workspace.comments
        comments.get(number)
        (view,) = (comments.resolve if is_resolved else comments.reopen)([number], who=reviewer())
        return at_path(comment_shape(server.root, view), view.path)


def claim(server: ServerState, fields: Fields) -> Json:
    """Claim edits that were found on disk, for a session or (null) for the user."""
    seqs = fields.seqs("edits")
    session = None if fields.is_null("session") else fields.number("session", least=1)

    def claimed(workspace: "Workspace") -> dict[str, Any]:
        outcome = workspace.review.claim(seqs, session=session, who=reviewer())
        return shown_outcome(server, workspace, Action.CLAIM, outcome)

    return outcome_of(server, claimed)


# ---- inside


def _units_of(server: ServerState, workspace: "Workspace", fields: Fields) -> "tuple[Unit, ...]":
    """Return the hunks of changes that were shown. Raises NotThere if they are no longer so."""
    selection = Selection(keys=tuple(fields.keys("keys")))
    found = resolved(server, workspace, DecisionRequest(action=Action.ACCEPT, selection=selection))
    if isinstance(found, str):
        raise NotThere(found)
    return found.named


def _units_elsewhere(
    server: ServerState, elsewhere: "Elsewhere", workspace: "Workspace", fields: Fields
) -> "Sequence[Unit]":
    """Return the hunks of another store to comment on.

    Raises BadRequest if the comment is about anything else, NotThere and NoSuchName.
    """
    if fields.has("answers"):
        raise BadRequest(elsewhere.no_answer)
    if fields.has("path"):
        raise BadRequest("The lines are in the files of another store. Comment on the change instead.")
    if fields.has("keys"):
        return _units_of(server, workspace, fields)
    units = fields.units("units")
    for unit in units:
        workspace.history.find_units(str(unit))  # raises if there is none
    return units


def _on_lines(server: ServerState, workspace: "Workspace", fields: Fields, text: str) -> "CommentView":
    path = fields.path("path")
    lines = fields.lines("lines")
    if any(lines) and fields.has("seen"):
        lines = _where_now(workspace, Path(server.root) / path, lines, fields.text("seen"))
    add = partial(workspace.comments.add_to_lines, path, lines, text=text, who=reviewer())
    try:
        return add()
    except FileChanged:
        # The user means the lines on disk, so these are recorded first.
        info = CallInfo(tool="comment", origin=Origin.PERSON, notes={"who": reviewer()})
        workspace.hooks.notice(info, [path])
        return add()


def _where_now(workspace: "Workspace", path: Path, lines: tuple[int, int], seen: str) -> tuple[int, int]:
    """Return where lines of the state that was shown are now. `seen`: its blob.

    Raises NotThere if one of them has changed.
    """
    try:
        hunks = diff_lines(
            shown_lines(workspace.history.text(BlobId(bytes.fromhex(seen)))), shown_lines(path.read_bytes())
        )
    except (ValueError, CasError, OSError):
        return lines  # whatever is wrong with the file, the comment itself finds
    if any(hunk.old_start < line <= hunk.old_start + hunk.old_count for hunk in hunks for line in lines):
        raise NotThere("These lines have changed since you chose them. Choose them again; your text is kept.")
    first, last = (
        line + sum(hunk.new_count - hunk.old_count for hunk in hunks if hunk.old_start < line) for line in lines
    )
    return first, last


ROUTES: Final[list[Route]] = [
    post("/api/comment", comment, "keys", "units", "path", "lines", "seen", "answers", "text"),
    post("/api/comment/resolve", resolve, "number", "resolved"),
    post("/api/claim", claim, "edits", "session"),
]
