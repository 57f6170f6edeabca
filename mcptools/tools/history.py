"""List and show recorded edits, with their status and the reviewer's reason."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from mcptools.answers.edits import Answer
from mcptools.answers.paging import Page, fitted, page_of
from mcptools.answers.reading import CommentListed, EditListed, EditShown, EditsListed, ReasonGiven
from mcptools.edit.display import LONGEST_WORDS, cut, one_line, shown
from mcptools.model.failures import Failure, FailureKind
from mcptools.tools.comments import comment_line, comment_listed, list_comments, mark_listed
from mcptools.tools.context import ToolContext, absolute, converting_errors
from mcptools.tools.reading import OffsetArgument
from objstore import (
    MAX_INT,
    AmbiguousName,
    CasError,
    EditFilter,
    EditView,
    NoSuchName,
    Status,
    Workspace,
    date_of,
    is_either_binary,
    numbered_diff,
    unified_diff,
)

__all__ = ["HistoryTools", "edit_diff", "edit_listed", "reasons_given"]

DirectoryArgument: TypeAlias = Annotated[str, "Which allowed directory, if there are several"]

_MAX_LISTED: Final = 5000
"""Edits that are searched if only a part of the workspace is allowed."""

_LISTED_SIZE: Final = 400
"""Characters of one edit in an answer, without its paths, its reason and other names."""

_LEAST_DIFF: Final = 8
"""An edit's diff gets at least one part in so many of an answer, however long the reason is."""

_LONGEST_REASON: Final = 500
"""Characters of a reason in the text of a list."""

_MOST_HUNKS: Final = 1000
"""Hunks of an edit that an answer names one by one. An edit may have many thousands."""

_REASON_SIZE: Final = 40
"""Characters of a reason in an answer, without its text and the names of its hunks."""


class HistoryTools:
    """The tools that list and show edits as a reviewer sees them."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def list_edits(
        self,
        path: Annotated[str, "Only edits of this file"] = "",
        mcp_conversation_id: Annotated[str, "Only edits of this conversation"] = "",
        status: Annotated[Literal["", "pending", "accepted", "rejected"], "Only edits of this status"] = "",
        directory: DirectoryArgument = "",
        offset: OffsetArgument = 0,
    ) -> Answer[EditsListed]:
        """List recorded edits, newest first, each with the reviewer's verdict and reason, and comments to answer.

        The way to learn what was rejected and why.
        """
        _check_offset(offset)
        wanted = EditFilter(
            path=path, conversation=mcp_conversation_id, status=Status(status) if status else None, newest_first=True
        )
        with converting_errors(path or directory or "."):
            workspace = self._recorded(directory or path)
            comments = [] if workspace is None or offset else self._comments(workspace, path, mcp_conversation_id)
            taken = sum(map(len, map(comment_line, comments)))
            page = self._listing([], offset) if workspace is None else self._newest(workspace, wanted, offset, taken)
        more = (f"Only the newest {_MAX_LISTED} edits were searched.",) if page.total == _MAX_LISTED else ()
        return Answer(
            content=EditsListed(edits=list(page.items), next_offset=page.next_offset, comments=comments),
            text="\n".join([*map(_line, page.items), *map(comment_line, comments)])
            or page.nothing("No recorded edits match."),
            notes=(
                *page.note("edits"),
                *more,
                *self._of_another(path, directory),
                *(() if page.items else self._of_directory(path)),
            ),
        )

    def show_edit(
        self,
        edit: Annotated[int, "The edit's number"],
        directory: DirectoryArgument = "",
        offset: OffsetArgument = 0,
    ) -> Answer[EditShown]:
        """Show one recorded edit by its number: its diff, and the reviewer's verdict and reason for each hunk."""
        _check_offset(offset)
        missing = Failure(FailureKind.INVALID_REQUEST, f"No edit has the number {edit} here", edit=edit)
        with converting_errors(directory or "."):
            workspace = self._recorded(directory)
            if workspace is None:
                raise missing
            try:
                view = workspace.history.edit(edit)
            except (NoSuchName, AmbiguousName):
                raise missing from None
            if not self._context.directories.shows(workspace, view):
                raise missing
            lines = edit_diff(workspace, view).decode("utf-8", "backslashreplace").splitlines(keepends=True)
        most = self._context.limits.max_answer
        (listed,) = self._listed(workspace, [view])
        statuses = [status.value for status in view.units[1:]]
        given = page_of(reasons_given(view, _MOST_HUNKS), _reason_size, offset=0, limit=0, budget=most // 4)
        reasons_size = len(listed.reason) + sum(map(_reason_size, given.items))
        budget = max(most - reasons_size, most // _LEAST_DIFF)
        page = page_of(lines, len, offset=offset, limit=0, budget=budget)
        diff, shortened = fitted("".join(page.items), budget)
        return Answer(
            content=EditShown(
                edit=listed,
                hunks=len(statuses),
                hunk_statuses=statuses[:_MOST_HUNKS],
                reasons=list(given.items),
                diff=diff,
                next_offset=page.next_offset,
            ),
            text=f"{_line(listed, LONGEST_WORDS)}\n{diff}",
            notes=(*_hunks_note(len(statuses)), *_reasons_note(given), *shortened, *page.note("lines")),
        )

    # ---- inside

    def _of_directory(self, path: str) -> tuple[str, ...]:
        """Return a note if `path`, for which no edits were found, is a directory's."""
        with suppress(Failure), converting_errors(path):
            if path and self._context.directories.files_of(path).facts(path).kind == "directory":
                return (f"{shown(path)} is a directory, but path has to name a file: leave it out to list all edits.",)
        return ()

    def _of_another(self, path: str, directory: str) -> tuple[str, ...]:
        """Return a note if `path` belongs to another allowed directory than `directory`."""
        if not path or not directory:
            return ()
        with suppress(Failure), converting_errors(path):
            homes = self._context.directories.homes
            home = homes[self._context.directories.root_of(directory)]
            own = self._context.directories.root_of(str(Path(home, path)))
            if homes[own] != home:
                return (f"{shown(path)} belongs to {shown(own)}: give that as directory, or leave directory out.",)
        return ()

    def _comments(self, workspace: Workspace, path: str, conversation: str) -> list[CommentListed]:
        """Return the comments that wait for an answer, and record that they were sent."""
        if path:
            try:
                path = workspace.relative(path)
            except CasError:
                return []
        views = list_comments(self._context.directories, workspace, path)
        session = self._context.session
        if self._context.may_write and (conversation or session.is_kept):  # otherwise it can't be known who got them
            mark_listed(workspace, views, conversation or session.last_conversation())
        return [comment_listed(workspace, view) for view in views]

    def _newest(self, workspace: Workspace, wanted: EditFilter, offset: int, taken: int) -> Page[EditListed]:
        """Return a page of the newest edits that match and are in the allowed directories, after the first `offset`.

        `taken`: characters of the answer that something else takes.
        """
        if self._context.directories.covers(workspace):
            # As many as fit in an answer, and one more, which shows that there are more.
            most = self._context.limits.max_answer // _LISTED_SIZE + 2
            views = workspace.history.edits(replace(wanted, skip=offset, limit=most))
            if views or not offset:
                return self._listing(self._listed(workspace, views), 0, taken).of_many(offset)
        views = workspace.history.edits(replace(wanted, limit=_MAX_LISTED))
        seen = [view for view in views if self._context.directories.shows(workspace, view)]
        return self._listing(self._listed(workspace, seen), offset, taken)

    def _listed(self, workspace: Workspace, views: Sequence[EditView]) -> list[EditListed]:
        """Return edits as they are listed, each with at most half an answer of its reason."""
        return [edit_listed(workspace, view, self._context.limits.max_answer // 2) for view in views]

    def _listing(self, edits: Sequence[EditListed], offset: int, taken: int = 0) -> Page[EditListed]:
        most = self._context.limits.max_answer
        return page_of(edits, _size, offset=offset, limit=0, budget=max(most - taken, most // 2))

    def _recorded(self, path: str) -> Workspace | None:
        """Return the workspace that a path belongs to, or None if nothing is recorded there. Raises Failure."""
        if not path and len(self._context.directories.roots) > 1:
            raise Failure(
                FailureKind.INVALID_REQUEST,
                "Give directory: several directories are served",
                hint=self._context.directories.listed(),
            )
        return self._context.directories.recorded_of(path or next(iter(self._context.directories.roots), "."))


def _check_offset(offset: int) -> None:
    if not 0 <= offset <= MAX_INT:
        raise Failure(
            FailureKind.INVALID_REQUEST, f"offset cannot be {'negative' if offset < 0 else f'over {MAX_INT}'}"
        )


def edit_diff(workspace: Workspace, view: EditView, *, is_joined: bool = False) -> bytes:
    """Return an edit's change as a unified diff, with the number and status of each hunk after its header.

    `is_joined`: without numbers and statuses, and with nearby hunks under one header, as usual in diffs.
    Raises EditExpired, BlobDamaged.
    """
    view.refuse_if_expired()
    edit = view.edit
    before, after = workspace.history.sides(edit)
    path_before, path_after = os.fsdecode(edit.source or edit.path), os.fsdecode(edit.path)
    has_parts = edit.hunks or edit.newline
    if is_joined or not has_parts or before is None or after is None or is_either_binary(before, after):
        hunks = edit.hunks or None
        return unified_diff(before, after, path_before=path_before, path_after=path_after, hunks=hunks)
    return numbered_diff(
        before,
        after,
        path_before=path_before,
        path_after=path_after,
        hunks=edit.hunks,
        newline=edit.newline,
        label=lambda hunk: f"{view.seq}:{hunk} {view.units[hunk].value}",
    )


def edit_listed(workspace: Workspace, view: EditView, longest: int = 0) -> EditListed:
    """Return an edit as it is listed. `longest`: characters of the reason that are included (0: all)."""
    edit = view.edit
    return EditListed(
        edit=view.seq,
        status=view.status.value,
        partly=view.partly,
        reason=cut(view.reason_told, longest) if longest else view.reason_told,
        operation=edit.operation.value,
        path=absolute(workspace, os.fsdecode(edit.path)),
        source_path="" if edit.source is None else absolute(workspace, os.fsdecode(edit.source)),
        tool=edit.tool,
        mcp_conversation_id=edit.conversation,
        turn=edit.turn,
        time=date_of(edit.time).isoformat(),
        lines_added=edit.added,
        lines_removed=edit.removed,
        expired=view.expired is not None,
    )


def reasons_given(view: EditView, most: int = 0) -> list[ReasonGiven]:
    """Return the reviewers' reasons for the current decisions on an edit's hunks.

    `most`: how many hunks are named in total (0: any number), shared equally among the reasons, at least one each.
    """
    each = max(1, most // max(1, len(view.given))) if most else len(view.units)
    return [
        ReasonGiven(hunks=list(map(str, given.units[:each])), more=max(0, len(given.units) - each), reason=given.told)
        for given in view.given
        if given.told
    ]


def _hunks_note(hunks: int) -> tuple[str, ...]:
    """Return a note if an edit has more hunks than are named one by one."""
    if hunks <= _MOST_HUNKS:
        return ()
    named = f"Of {hunks} hunks, hunk_statuses and reasons name {_MOST_HUNKS} each"
    return (f"{named}; the diff shows the status of each after its header.",)


def _reasons_note(given: Page[ReasonGiven]) -> tuple[str, ...]:
    """Return a note if not all reasons fit in the answer."""
    if not given.next_offset:
        return ()
    return (f"Of {given.total} reasons, the first {given.next_offset} are here; cas://edit/{{id}} has all.",)


def _reason_size(given: ReasonGiven) -> int:
    """Return the size of a reason in an answer, in characters."""
    return len(given.reason) + sum(map(len, given.hunks)) + _REASON_SIZE


def _size(edit: EditListed) -> int:
    """Return the size of an edit in an answer, in characters; its line in the text may be the longer form."""
    texts = (edit.path, edit.source_path, edit.reason, edit.tool, edit.mcp_conversation_id)
    return max(_LISTED_SIZE + sum(map(len, texts)), len(_line(edit)))


def _line(edit: EditListed, longest: int = _LONGEST_REASON) -> str:
    """Return an edit as one line of text, with at most `longest` characters of its reason."""
    partly = " (partly)" if edit.partly else ""
    source = f"{one_line(edit.source_path)} -> " if edit.source_path else ""
    reason = f": {cut(one_line(edit.reason), longest)}" if edit.reason else ""
    counts = f"+{edit.lines_added} -{edit.lines_removed}"
    expired = " (expired)" if edit.expired else ""
    return f"{edit.edit} {edit.status}{partly}{expired} {edit.operation} {source}{one_line(edit.path)} {counts}{reason}"
