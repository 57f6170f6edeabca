"""Find the net changes that await a person's review, and describe them for the model and for a client's window."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from mcptools.answers.paging import page_of
from mcptools.answers.review import ChangeNamed, ChangeShown, ReviewShown, change_size
from mcptools.edit.display import cut, cut_within, decoded, one_line, shown
from mcptools.model.tickets import Shown
from mcptools.tools.context import ToolContext, absolute
from objstore import (
    ChangeKind,
    EditFilter,
    Json,
    NetChange,
    NetFile,
    Selection,
    Status,
    StoreError,
    Unit,
    Workspace,
    change_words,
    comment_shape,
    few,
    file_remarks,
    split_lines,
)

__all__ = ["newest_turn", "pending_files", "refusal_to_decide", "review_of"]

_CONTEXT: Final = 3
"""Number of unchanged lines that are shown above and below a change."""

_MOST_SEARCHED: Final = 200
"""Number of newest pending edits in which the newest turn is searched."""

_HEAD_SIZE: Final = 4000
"""Characters of an answer that are reserved for its other fields."""

_LONGEST_PROMPT: Final = 300
_LONGEST_COMMENT: Final = 1000
_MOST_COMMENTS: Final = 10
_MOST_REMARKS: Final = 20
_MOST_NAMED: Final = 8
_MOST_HUNKS: Final = 20


def newest_turn(context: ToolContext, workspace: Workspace) -> int:
    """Return the number of the newest turn with pending edits that the client may see; 0: none is known."""
    wanted = EditFilter(status=Status.PENDING, newest_first=True, limit=_MOST_SEARCHED)
    turns = (view.edit.turn for view in workspace.history.edits(wanted) if context.directories.shows(workspace, view))
    return next(filter(None, turns), 0)


def pending_files(context: ToolContext, workspace: Workspace, selection: Shown) -> tuple[list[NetFile], list[str]]:
    """Return the files with pending changes of a selection, and why others can't be read.

    Files outside the allowed directories are left out. Raises CasError, OSError.
    """
    units = None
    if selection.turn:
        units = workspace.review.pending_units(Selection(turns=(selection.turn,)))
    unreadable: list[StoreError] = []
    files = workspace.review.changes([selection.path] if selection.path else (), units, unreadable.append)
    allowed = [
        file
        for file in files
        if all(context.directories.allows(workspace, path) for path in (file.path, file.path_before))
    ]
    return allowed, [shown(f"{error}.") for error in unreadable]


def refusal_to_decide(context: ToolContext, workspace: Workspace) -> str:
    """Return why nothing can be decided in a client's window; "" if a person can decide there."""
    if not context.may_write:
        return "This server is read-only: decide with `cas review` in a terminal"
    if context.is_open_to_all:
        return "This server answers every program of this machine: decide with `cas review` in a terminal"
    if not context.has_window:
        return "This client shows no windows: decide with `cas review` in a terminal"
    if not context.session.is_kept:
        return "This client has no address of its own (/mcp/NAME): decide with `cas review` in a terminal"
    if not workspace.review.policies().in_chat:
        return "Deciding here is off. To allow it, run `cas config set review.in_chat on` in a terminal"
    return ""


def review_of(context: ToolContext, workspace: Workspace, selection: Shown, offset: int) -> ReviewShown:
    """Return a page of the changes of a selection; beyond the last one, the first page. Raises CasError, OSError."""
    files, remarks = pending_files(context, workspace, selection)
    budget = context.limits.max_answer - _HEAD_SIZE
    comments = _comments(workspace, files)
    lines = {file.document: split_lines(file.after or b"") for file in files}

    @cache  # of many thousands of changes, only those of the page are described
    def described(at: int) -> ChangeShown:
        file, change = changes[at]
        return _shown(workspace, file, change, lines[file.document], comments, budget // 2)

    changes = [(file, change) for file in files for change in file.changes]
    start = offset if offset < len(changes) else 0
    places = range(len(changes))
    page = page_of(places, lambda at: change_size(described(at)), offset=start, limit=0, budget=budget)
    remarks += [f"{one_line(absolute(workspace, file.path))}: {words}" for file in files for words in _remarks(file)]
    turn = workspace.sessions.turn(selection.turn) if selection.turn else None
    reason = refusal_to_decide(context, workspace)
    return ReviewShown(
        turn=selection.turn,
        client="" if turn is None else shown(turn.client),
        prompt="" if turn is None else shown(cut(turn.prompt, _LONGEST_PROMPT)),
        changes=list(map(described, page.items)),
        total=len(changes),
        offset=page.offset,
        next_offset=page.next_offset,
        remarks=[*remarks[:_MOST_REMARKS], *_more(len(remarks) - _MOST_REMARKS)],
        decides=not reason,
        reason=reason,
    )


# ---- inside


def _more(number: int) -> list[str]:
    return [f"And {number} more such remarks; `cas diff` has them all."] if number > 0 else []


def _shown(
    workspace: Workspace,
    file: NetFile,
    change: NetChange,
    lines: Sequence[bytes],
    comments: Mapping[Unit, Mapping[int, dict[str, Json]]],
    longest: int,
) -> ChangeShown:
    """Return a change as it is shown, with at most `longest` characters of its lines. `lines`: of the current text."""
    before, after = _around(change, lines) if change.kind is ChangeKind.LINES else ("", "")
    removed, inserted = decoded(change.removed)[0], decoded(change.inserted)[0]
    is_cut = len(removed) + len(inserted) > longest
    if is_cut:
        removed, inserted = removed[: longest // 2], inserted[: longest // 2]
    said = {number: comment for unit in change.units for number, comment in comments.get(unit, {}).items()}
    return ChangeShown(
        key=change.key.hex(),
        file_path=absolute(workspace, file.path),
        kind=change.kind.value,
        old_start=max(0, change.line_before - 1),
        old_count=change.removed_lines,
        new_start=max(0, change.line_after - 1),
        new_count=change.inserted_lines,
        words=change_words(file, change, lambda path: one_line(shown(path))),
        hunks=list(map(str, change.units[:_MOST_HUNKS])),
        more_hunks=max(0, len(change.units) - _MOST_HUNKS),
        shares_with=[
            ChangeNamed(key=other.key.hex(), new_start=max(0, other.line_after - 1))
            for other in (file.changes[at] for at in change.shares_with[:_MOST_HUNKS])
        ],
        before=before,
        removed=removed,
        inserted=inserted,
        after=after,
        cut=is_cut,
        comments=[said[number] for number in sorted(said)[:_MOST_COMMENTS]],
    )


def _around(change: NetChange, lines: Sequence[bytes]) -> tuple[str, str]:
    """Return those of the lines that are right above and below a change."""
    first = change.line_after - 1
    last = first + change.inserted_lines
    above, below = lines[max(0, first - _CONTEXT) : first], lines[last : last + _CONTEXT]
    return decoded(b"".join(above))[0], decoded(b"".join(below))[0]


def _remarks(file: NetFile) -> Iterator[str]:
    """Yield what no change shows."""
    yield from (f"{words} [{few(sorted(units), _MOST_NAMED)}]." for words, units in file_remarks(file))
    if file.is_unrecorded:
        yield "the file on disk has changes that are not recorded; `cas diff --unrecorded` shows them."


def _comments(workspace: Workspace, files: Sequence[NetFile]) -> Mapping[Unit, Mapping[int, dict[str, Json]]]:
    """Return the comments on pending units that are not resolved, by unit and number."""
    seqs = {seq for file in files for change in file.changes for seq in change.edits}
    found: dict[Unit, dict[int, dict[str, Json]]] = {}
    for view in (view for views in workspace.comments.of_edits(seqs).values() for view in views):
        for unit in () if view.is_resolved else view.comment.units:
            found.setdefault(unit, {})[view.number] = cut_within(comment_shape(workspace.root, view), _LONGEST_COMMENT)
    return found
