"""Undo a session's last change, whichever tool made it, on all of its files or on none.

One entry is kept, in memory, and it holds no file's bytes: those before the change are in the store, as for any edit,
so an entry costs some hundred bytes however large the files are. Undoing is a decision like a reviewer's: the edits
become rejected, with a note, in the same order of writes. Either every file is as it was before the change, or none is
touched.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, assert_never

from mcptools.answers.edits import Answer, Undone
from mcptools.edit.display import cut, one_line, shown
from mcptools.files.workspaces import Directories, denied_in
from mcptools.model import refusals
from mcptools.model.cancellation import checkpoint, progress
from mcptools.model.failures import Failure, FailureKind, failure_of
from mcptools.model.session import LastChange
from mcptools.tools.calls.outer_workspaces import reported_around
from mcptools.tools.context import ToolContext, absolute, converting_errors
from objstore import (
    Action,
    CasError,
    Conflicted,
    Decided,
    DecidedMeanwhile,
    DecisionOutcome,
    DocumentId,
    Edit,
    EditView,
    ExternalChanges,
    FileExists,
    FileMissing,
    NamesShared,
    NoSuchName,
    NotAWorkspace,
    NothingToDo,
    PathError,
    Status,
    StoreReplaced,
    Unit,
    Workspace,
    shown_units,
)

__all__ = ["UndoTools", "accepted_of", "undo_question"]

_ANOTHER_CHANGE: Final = "The last change is no longer the one that the person was asked about; nothing was changed"
_ACCEPTED_SINCE: Final = "A reviewer has accepted more of it since the person was asked; nothing was changed"
_MOST_NAMED: Final = 10
"""Files that a question to a person names."""

_NOTE: Final = "Taken back by the agent with Undo"
_DENIED: Final = "The setting tools.denied keeps tools from changing it"
_DECIDED: Final = "earlier edits have been decided on since"
_ACCEPTED: Final = "a reviewer has accepted it"


class UndoTools:
    """The tool that undoes the last change."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def Undo(self) -> Answer[Undone]:  # noqa: N802 - the tool's name is set by its document
        """Take back your own last change, on all its files. Earlier changes and other people's are out of its reach.

        Refused if one of the files has changed since.
        """
        with self._context.session.undoing:
            change = self._context.session.last_change()
            if change is None:
                raise refusals.nothing_to_undo(is_kept=self._context.session.is_kept)
            if self._context.approval is not None and self._context.approval.change is not change:
                raise _not_as_asked(_ANOTHER_CHANGE)
            paths = tuple(_paths(change))
            progress(0, None, "Checking the files of the change")
            with converting_errors(*paths), _report_expired(paths[0]), _refusing(*paths):
                workspace = self._context.directories.home(change.root)
                targets = _targets(change)
                is_denied = denied_in(workspace.root)
                for path in paths:
                    if is_denied(path):
                        raise _refused(FailureKind.PERMISSION_DENIED, "permission denied", path, because=_DENIED)
                    if not self._context.directories.allows(
                        workspace, path
                    ):  # the client's roots may have narrowed since
                        raise _refused(FailureKind.PERMISSION_DENIED, "permission denied", path)
                views = _current_views(workspace, change)
                if all(view.status is Status.REJECTED for view in views):
                    raise _rejected_already()  # before the files are compared: they need not be as the change left them
                for target in targets.values():
                    self._refuse_if_changed_since(workspace, target)
                self._reject(workspace, views, targets)
            self._context.session.undid(change, ((workspace.root, path) for path in paths))
        names = [shown(target.path_before or target.path_after) for target in targets.values()]
        if len(self._context.directories.roots) > 1:
            names = [absolute(workspace, name) for name in names]
        count = f"{len(names)} file{'s' if len(names) > 1 else ''}"
        return Answer(
            content=Undone(files_reverted=len(names), paths=names),
            text=cut("\n".join([f"Reverted {count}:", *map(one_line, names)]), self._context.limits.max_answer),
            notes=("Read these files again before you change them.",),
        )

    def _refuse_if_changed_since(self, workspace: Workspace, target: "_Target") -> None:
        """Refuse a file that differs from what the change made of it. Raises Failure and PathError."""
        path = target.path_after
        try:
            found = workspace.read(path)
        except FileMissing:
            if target.last.after is None:
                return
            raise _refused(FailureKind.FILE_NOT_FOUND, "file missing", path) from None
        if target.last.after is None:
            raise _refused(FailureKind.FILE_EXISTS, "file exists", path)
        if found.path != path:
            raise _refused(FailureKind.SYMLINK, "symbolic link in its place", path)
        if found.blob != target.last.after.blob:
            raise _refused(FailureKind.STALE_FILE, "hash mismatch", path)

    def _refuse_accepted(self, view: EditView) -> None:
        """Refuse parts that a reviewer has accepted, unless the person was asked about them. Raises Failure.

        Parts that were accepted while the question waited for its answer were not part of the question.
        """
        accepted = _accepted(view)
        if accepted and self._context.approval is None:
            raise _refused(FailureKind.REVIEW_CONFLICT, _ACCEPTED, os.fsdecode(view.edit.path))
        if self._context.approval is not None and not accepted <= self._context.approval.accepted:
            raise _not_as_asked(_ACCEPTED_SINCE)

    def _reject(self, workspace: Workspace, views: Sequence[EditView], targets: Mapping[DocumentId, "_Target"]) -> None:
        shown: dict[Unit, Status] = {}
        for view in views:
            self._refuse_accepted(view)
            shown |= {Unit(view.seq, hunk): status for hunk, status in enumerate(view.units)}
        units = list(shown)
        who = self._context.session.client.get("client", "")
        # A decision on earlier edits in the meantime could give the files content that they never had.
        planned = _decided(workspace.review.decide(Action.REJECT, units, who=who, reason=_NOTE, dry_run=True))
        effects = {effect.document: effect for effect in planned.files}
        for document, target in targets.items():
            effect = effects.pop(document, None)
            if effect is None and target.is_unchanged:
                continue
            if effect is None or not target.is_before(
                effect.path_after, effect.after, effect.mode_after | effect.mode_lost
            ):
                raise _refused(FailureKind.REVIEW_CONFLICT, _DECIDED, target.path_after)
        for effect in effects.values():
            raise _refused(FailureKind.REVIEW_CONFLICT, _DECIDED, effect.path_before or effect.path_after or "")
        checkpoint()
        try:
            named = {path for target in targets.values() for path in (target.path_before, target.path_after) if path}
            with reported_around(workspace, self._context.session, "Undo", sorted(named)):
                _decided(workspace.review.decide(Action.REJECT, units, who=who, reason=_NOTE, shown=shown))
        except DecidedMeanwhile:
            path = os.fsdecode(views[0].edit.path)
            raise _refused(FailureKind.REVIEW_CONFLICT, "a reviewer decided on it at the same moment", path) from None


def accepted_of(directories: Directories, change: LastChange) -> frozenset[Unit]:
    """Return which parts of a change a reviewer has accepted; none if the history can't be read."""
    accepted: set[Unit] = set()
    try:
        workspace = directories.home(change.root)
        for view in change.edits:
            accepted |= _accepted(workspace.history.edit(view.seq))
    except (CasError, OSError):
        return frozenset()  # the change can't be undone either, and `Undo` reports why
    return frozenset(accepted)


def undo_question(change: LastChange, accepted: frozenset[Unit]) -> str:
    """Return what undoing a change would do, worded for the person who decides on it.

    `accepted`: which parts of the change a reviewer has accepted.
    """
    effects = [target.way_back for target in _targets(change).values() if not target.is_unchanged]
    if len(effects) > _MOST_NAMED:
        effects = [*effects[:_MOST_NAMED], f"and the same for {len(effects) - _MOST_NAMED} more files"]
    first, last = change.edits[0], change.edits[-1]
    which = f"edit {first.seq}" if first is last else f"edits {first.seq} to {last.seq}"
    where = one_line(shown(change.root))
    theirs = f". A reviewer has accepted {_accepted_names(change, accepted)}" if accepted else ""
    return f"undo its last change, {which} by {first.edit.tool} in {where}: {'; '.join(effects)}{theirs}"


def _accepted_names(change: LastChange, accepted: frozenset[Unit]) -> str:
    """Return the accepted parts of a change as a person names them."""
    views: dict[int, EditView] = {view.seq: view for view in change.edits}
    if accepted.issuperset(unit for view in change.edits for unit in view.telling_units):
        return "it"
    return f"{shown_units(accepted, views.__getitem__)} of it"


def _accepted(view: EditView) -> set[Unit]:
    return {unit for unit in view.telling_units if view.units[unit.hunk] is Status.ACCEPTED}


@dataclass(slots=True)
class _Target:
    """The first and the last edit of a change to one file."""

    first: Edit
    last: Edit

    @property
    def path_before(self) -> str:
        """Return the path before the change; "" if there was no file."""
        return "" if self.first.before is None else os.fsdecode(self.first.source or self.first.path)

    @property
    def path_after(self) -> str:
        """Return the path after the change; for a deleted file, the path that it had."""
        return os.fsdecode(self.last.path)

    @property
    def way_back(self) -> str:
        """Return in words what undoing the change would do to the file."""
        before, after = one_line(shown(self.path_before)), one_line(shown(self.path_after))
        if self.first.before is None:
            return f"delete {after}, which it created"
        if self.last.after is None:
            return f"bring back {before}, which it deleted"
        moved = f", which it moved from {before}," if before != after else ""
        return f"make {after}{moved} what it was before"

    @property
    def is_unchanged(self) -> bool:
        """Return whether the file was the same before and after the change."""
        if self.first.before is None:
            return self.last.after is None
        return (self.path_before, self.first.before) == (self.path_after, self.last.after)

    def is_before(self, path: str | None, blob: bytes | None, mode: int) -> bool:
        """Return whether this is the file's state before the change (path None: no file)."""
        before = self.first.before
        if before is None:
            return path is None
        return (path, blob, mode) == (self.path_before, before.blob, before.mode)


def _targets(change: LastChange) -> dict[DocumentId, _Target]:
    targets: dict[DocumentId, _Target] = {}
    for view in change.edits:
        target = targets.setdefault(view.edit.document, _Target(view.edit, view.edit))
        target.last = view.edit
    return targets


def _paths(change: LastChange) -> Iterator[str]:
    for view in change.edits:
        yield os.fsdecode(view.edit.path)
        if view.edit.source is not None:
            yield os.fsdecode(view.edit.source)


def _decided(outcome: DecisionOutcome) -> Decided:
    """Return the decision if it was made. Raises Failure for any other outcome."""
    match outcome:
        case Decided():
            return outcome
        case ExternalChanges(changes=changes):
            raise _refused(FailureKind.STALE_FILE, "hash or permissions mismatch", changes[0].path)
        case Conflicted(conflicts=conflicts):
            raise _refused(FailureKind.REVIEW_CONFLICT, str(conflicts[0]), conflicts[0].path)
        case NothingToDo():
            raise _rejected_already()
        case _:
            assert_never(outcome)


@contextmanager
def _report_expired(path: str) -> Iterator[None]:
    """Convert the error of a change that is no longer in the history to a failure. `path`: one of its files."""
    try:
        yield
    except (NoSuchName, NotAWorkspace, StoreReplaced) as error:
        raise _refused(FailureKind.EXPIRED, "the history that recorded it is gone", path) from error


@contextmanager
def _refusing(*paths: str) -> Iterator[None]:
    """Convert the error of a path that can't be read or written to the refusal to undo a change of `paths`."""
    try:
        yield
    except PathError as error:
        # What a reviewer could do about a taken path is not what a model can do.
        failed = FileExists(error.path) if isinstance(error, FileExists) and not error.held else error
        failure = failure_of(failed, *paths)
        path = shown(str(failure.facts["path"]))
        what = str(failure).removesuffix(f": {path}").removesuffix(f": {path!r}")
        if isinstance(error, NamesShared):  # its message names both paths, and its hint says what to do
            raise Failure(failure.kind, f"Cannot undo: {what}", hint=failure.hint, **failure.facts) from error
        raise _refused(failure.kind, f"{what[:1].lower()}{what[1:]}", path, because=failure.hint) from error


def _current_views(workspace: Workspace, change: LastChange) -> Sequence[EditView]:
    """Return the edits of a change with their current status. Raises NoSuchName."""
    views = [workspace.history.edit(view.seq) for view in change.edits]
    for view, now in zip(change.edits, views, strict=True):
        # If an older store was restored, another edit may have the number.
        if now.id != view.id:
            raise NoSuchName(view.id.hex(), "edit")
    return views


def _rejected_already() -> Failure:
    return Failure(FailureKind.REVIEW_CONFLICT, "Cannot undo: a reviewer has rejected the change already")


def _not_as_asked(message: str) -> Failure:
    return Failure(FailureKind.NOT_APPROVED, message, hint="Call Undo again to undo it all the same.")


def _refused(kind: FailureKind, reason: str, path: str, *, because: str = "") -> Failure:
    """Return the refusal to undo a change because of one of its files. `because`: the cause, or ""."""
    more = f"{because}. " if because else ""
    return Failure(
        kind,
        f"Cannot undo: {shown(reason)}: {one_line(shown(path))}",
        hint=f"{more}Nothing was reverted. Read the file, and make the change that is needed instead.",
        path=shown(path),
        reason=shown(reason),
    )
