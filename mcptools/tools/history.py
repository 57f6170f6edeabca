"""The tools that tell of recorded edits, as plain methods: what became of them, and what a reviewer said."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from mcptools.answers.edits import Answer
from mcptools.answers.paging import Page, fitted, page_of
from mcptools.answers.reading import EditListed, EditShown, EditsListed, ReasonGiven
from mcptools.edit.display import LONGEST_WORDS, cut, one_line, shown
from mcptools.model.failures import Failure, FailureKind
from mcptools.tools.context import ToolContext, absolute, converting_errors
from mcptools.tools.reading import OffsetArgument
from objstore import (
    MAX_INT,
    AmbiguousName,
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
"""Edits that are looked through where only some of a workspace's may be seen."""

_LISTED_SIZE: Final = 400
"""Characters of one in an answer, but for names and the reason."""

_LEAST_DIFF: Final = 8
"""What part of an answer an edit's diff has at least, however long the reason is."""

_LONGEST_REASON: Final = 500
"""Characters of a reason in the text of a list."""

_MOST_HUNKS: Final = 1000
"""Hunks of an edit that an answer names one by one: an edit may have many thousands."""

_REASON_SIZE: Final = 40
"""Characters that a reason takes in an answer besides itself and the names of its hunks."""


class HistoryTools:
    """Edits as the person who reviews them sees them."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def list_edits(
        self,
        path: Annotated[str, "Only edits of this file"] = "",
        conversation: Annotated[str, "Only edits of this mcp_conversation_id"] = "",
        status: Annotated[Literal["", "pending", "accepted", "rejected"], "Only edits of this status"] = "",
        directory: DirectoryArgument = "",
        offset: OffsetArgument = 0,
    ) -> Answer[EditsListed]:
        """List recorded edits, the newest first, with their status and the reviewer's reason."""
        _check_offset(offset)
        wanted = EditFilter(
            path=path, conversation=conversation, status=Status(status) if status else None, newest_first=True
        )
        with converting_errors(path or directory or "."):
            workspace = self._recorded(directory or path)
            page = self._listing([], offset) if workspace is None else self._newest(workspace, wanted, offset)
        more = (f"Only the newest {_MAX_LISTED} edits were looked at.",) if page.total == _MAX_LISTED else ()
        return Answer(
            content=EditsListed(edits=list(page.items), next_offset=page.next_offset),
            text="\n".join(map(_line, page.items)) or page.nothing("No edits are recorded that fit."),
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
        """Show a recorded edit as a diff, with its status and the reviewer's reason."""
        _check_offset(offset)
        missing = Failure(FailureKind.INVALID_REQUEST, f"No edit has the number {edit} here", edit=edit)
        with converting_errors(directory or "."):
            workspace = self._recorded(directory)
            if workspace is None:
                raise missing
            try:
                view = workspace.edit(edit)
            except (NoSuchName, AmbiguousName):
                raise missing from None
            if not self._context.directories.shows(workspace, view):
                raise missing
            lines = edit_diff(workspace, view).decode("utf-8", "backslashreplace").splitlines(keepends=True)
        most = self._context.limits.max_answer
        (listed,) = self._listed(workspace, [view])
        statuses = [status.value for status in view.units[1:]]
        given = page_of(reasons_given(view, _MOST_HUNKS), _said, offset=0, limit=0, budget=most // 4)
        said = len(listed.reason) + sum(map(_said, given.items))
        budget = max(most - said, most // _LEAST_DIFF)
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
            notes=(*_unnamed(len(statuses)), *_unsaid(given), *shortened, *page.note("lines")),
        )

    # ---- inside

    def _of_directory(self, path: str) -> tuple[str, ...]:
        """Return what has to be said of a path where no file's edits are found, if it is that of a directory."""
        with suppress(Failure), converting_errors(path):
            if path and self._context.directories.files_of(path).facts(path).kind == "directory":
                return (f"{shown(path)} is a directory, and path is that of a file: without it all edits are listed.",)
        return ()

    def _of_another(self, path: str, directory: str) -> tuple[str, ...]:
        """Return what has to be said of a path that belongs to another directory than the one that is named."""
        if not path or not directory:
            return ()
        with suppress(Failure), converting_errors(path):
            homes = self._context.directories.homes
            home = homes[self._context.directories.root_of(directory)]
            own = self._context.directories.root_of(str(Path(home, path)))
            if homes[own] != home:
                where = f"{shown(own)}, where its edits are listed"
                return (f"{shown(path)} is of {where}: give that as directory, or none.",)
        return ()

    def _newest(self, workspace: Workspace, wanted: EditFilter, offset: int) -> Page[EditListed]:
        """Return the newest edits that are wanted and may be seen, behind the first `offset` of them."""
        if self._context.directories.covers(workspace):
            # More don't fit, but for one by which it is known that there are more.
            most = self._context.limits.max_answer // _LISTED_SIZE + 2
            views = workspace.edits(replace(wanted, skip=offset, limit=most))
            if views or not offset:
                return self._listing(self._listed(workspace, views), 0).of_many(offset)
        views = workspace.edits(replace(wanted, limit=_MAX_LISTED))
        seen = [view for view in views if self._context.directories.shows(workspace, view)]
        return self._listing(self._listed(workspace, seen), offset)

    def _listed(self, workspace: Workspace, views: Sequence[EditView]) -> list[EditListed]:
        """Return edits as they are listed, each with no longer a reason than leaves room in an answer."""
        return [edit_listed(workspace, view, self._context.limits.max_answer // 2) for view in views]

    def _listing(self, edits: Sequence[EditListed], offset: int) -> Page[EditListed]:
        return page_of(edits, _size, offset=offset, limit=0, budget=self._context.limits.max_answer)

    def _recorded(self, path: str) -> Workspace | None:
        """Return the workspace that a path belongs to, or None where nothing is recorded. Raises as `recorded_of`."""
        if not path and len(self._context.directories.roots) > 1:
            raise Failure(
                FailureKind.INVALID_REQUEST,
                "Say in which directory: several are served",
                hint=self._context.directories.listed(),
            )
        return self._context.directories.recorded_of(path or next(iter(self._context.directories.roots), "."))


def _check_offset(offset: int) -> None:
    if not 0 <= offset <= MAX_INT:
        raise Failure(
            FailureKind.INVALID_REQUEST, f"offset cannot be {'negative' if offset < 0 else f'over {MAX_INT}'}"
        )


def edit_diff(workspace: Workspace, view: EditView, *, is_joined: bool = False) -> bytes:
    """Return what an edit changed as a unified diff: behind the header of each hunk, its number and its status.

    `is_joined`: without these, and with hunks that stand near each other under one header.
    Raises EditExpired, BlobDamaged.
    """
    view.refuse_if_expired()
    edit = view.edit
    before = None if edit.before is None else workspace.text(edit.before.blob)
    after = None if edit.after is None else workspace.text(edit.after.blob)
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
    """Return an edit as it is listed. `longest`: characters of the reason that are told (0: all)."""
    edit = view.edit
    return EditListed(
        edit=view.seq,
        status=view.status.value,
        partly=view.partly,
        reason=cut(view.reason, longest) if longest else view.reason,
        operation=edit.operation.value,
        path=absolute(workspace, os.fsdecode(edit.path)),
        source_path="" if edit.source is None else absolute(workspace, os.fsdecode(edit.source)),
        tool=edit.tool,
        mcp_conversation_id=edit.conversation,
        time=date_of(edit.time).isoformat(),
        lines_added=edit.added,
        lines_removed=edit.removed,
        expired=view.expired is not None,
    )


def reasons_given(view: EditView, most: int = 0) -> list[ReasonGiven]:
    """Return what reviewers said of an edit's hunks as they are decided now.

    `most`: hunks that are named in all (0: any number), each reason with as many as any other, and one at least.
    """
    each = max(1, most // max(1, len(view.given))) if most else len(view.units)
    return [
        ReasonGiven(hunks=list(map(str, given.units[:each])), more=max(0, len(given.units) - each), reason=given.text)
        for given in view.given
    ]


def _unnamed(hunks: int) -> tuple[str, ...]:
    """Return what has to be said of an edit with more hunks than are named one by one."""
    if hunks <= _MOST_HUNKS:
        return ()
    named = f"Of {hunks} hunks, hunk_statuses and reasons name {_MOST_HUNKS} each"
    return (f"{named}; behind the header of each in the diff stands its status.",)


def _unsaid(given: Page[ReasonGiven]) -> tuple[str, ...]:
    """Return what has to be said where not all reasons have room."""
    if not given.next_offset:
        return ()
    return (f"Of {given.total} reasons, the first {given.next_offset} are here; cas://edit/{{id}} has all.",)


def _said(given: ReasonGiven) -> int:
    """Return how many characters a reason takes in an answer."""
    return len(given.reason) + sum(map(len, given.hunks)) + _REASON_SIZE


def _size(edit: EditListed) -> int:
    """Return how many characters an edit takes in an answer: what is quoted in the text may be longer there."""
    said = (edit.path, edit.source_path, edit.reason, edit.tool, edit.mcp_conversation_id)
    return max(_LISTED_SIZE + sum(map(len, said)), len(_line(edit)))


def _line(edit: EditListed, longest: int = _LONGEST_REASON) -> str:
    """Return an edit in a line, with so many characters of its reason at most."""
    partly = " (partly)" if edit.partly else ""
    source = f"{one_line(edit.source_path)} -> " if edit.source_path else ""
    reason = f": {cut(one_line(edit.reason), longest)}" if edit.reason else ""
    counts = f"+{edit.lines_added} -{edit.lines_removed}"
    expired = " (expired)" if edit.expired else ""
    return f"{edit.edit} {edit.status}{partly}{expired} {edit.operation} {source}{one_line(edit.path)} {counts}{reason}"
