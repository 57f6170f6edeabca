"""Apply a change to a text file in a tracked call: at once, as a dry run, or carried over to a newer version.

The editing and patch tools say what they make of a file's text; this module reads, checks, writes and records.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from mcptools.edit.display import shown
from mcptools.edit.exact import Span
from mcptools.edit.file_text import FileText, file_text
from mcptools.files.workspaces import of_directory
from mcptools.model import refusals
from mcptools.model.failures import Failure, FailureKind, failure_of, resolving_lazy_failures
from mcptools.model.session import FileKey, Knowledge
from mcptools.tools.calls.notes import UNCHANGED, edit_number, not_applied, outcome_notes
from mcptools.tools.calls.tracked_calls import TrackedCalls, refuse_reserved
from mcptools.tools.context import ToolContext, absolute, converting_errors, sha256
from objstore import (
    MAX_BLOB,
    BlobId,
    BlobMissing,
    CallOutcome,
    Content,
    Files,
    FileTooLarge,
    Hunk,
    Operation,
    PermissionRefused,
    RebaseConflict,
    Rebased,
    Workspace,
    blob_id,
    compared,
    hunks_from_spans,
    rebased,
)

__all__ = ["EditResult", "EditedFile", "MemoizedChange", "TextEdits", "is_expensive"]

_EXPENSIVE_SEARCHES: Final = 20
"""Searches through a file of the largest size that together take more than a tenth of a second."""

_CHANGED: Final = (
    "The file had changed since you last read all of it or wrote it; the change was made in its current version."
)
_STALE: Final = "The file has changed since you last read all of it or wrote it."
_REBASED: Final = (
    "The file had changed since you read it; your change was carried over to its current version. Read it again to see "
    "what else is new."
)


class EditResult(Protocol):
    """What an edit makes of a file's lines, as FileText shows them."""

    @property
    def content(self) -> bytes:
        """Return the new lines."""

    @property
    def spans(self) -> Sequence[Span]:
        """Return which ranges of bytes were replaced by which."""


EditResultT = TypeVar("EditResultT", bound=EditResult)


class MemoizedChange(Generic[EditResultT]):
    """A change that remembers what it made of the last text, or why it refused it."""

    def __init__(self, change: Callable[[FileText], EditResultT]) -> None:
        self._change = change
        self._last: tuple[bytes, EditResultT | Failure] | None = None

    def __call__(self, text: FileText) -> EditResultT:
        """Return what the change makes of a text. Raises Failure."""
        if self._last is None or self._last[0] != text.content:
            self._last = text.content, self._outcome(text)
        made = self._last[1]
        if isinstance(made, Failure):
            raise made
        return made

    def _outcome(self, text: FileText) -> EditResultT | Failure:
        try:
            return self._change(text)
        except Failure as failure:
            return failure


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedFile(Generic[EditResultT]):
    """The result of an edit of a text file."""

    place: str  # absolute path, as shown
    base: Content  # the version that the change was made to: after a rebase, the one that the model has seen
    before: Content
    made: EditResultT  # of `base`
    lines_before: bytes
    lines: bytes  # of the file now (after a dry run: as they would be)
    content: bytes  # the bytes that it has for them
    hunks: Sequence[Hunk]  # from `lines_before` to `lines`
    outcome: CallOutcome | None  # None: a dry run
    changed_since_read: bool

    @property
    def rebased(self) -> bool:
        """Return whether the change was carried over to a newer version."""
        return self.base is not self.before

    @property
    def number(self) -> int:
        """Return the recorded edit's number, or 0."""
        return 0 if self.outcome is None else edit_number(self.outcome)

    @property
    def is_unchanged(self) -> bool:
        """Return whether the file already had the wanted content, so that nothing was recorded; False for a dry run."""
        return self.outcome is not None and not self.outcome.edits

    @property
    def conversation(self) -> str:
        """Return the id of the edit's conversation, or "" for a dry run."""
        return "" if self.outcome is None else self.outcome.conversation

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the notes for the answer: nothing changed, the file had changed, a new conversation."""
        unchanged = (UNCHANGED,) if self.is_unchanged else ()
        stale = _REBASED if self.rebased else _STALE if unchanged else _CHANGED
        changed = (stale,) if self.changed_since_read else ()
        return (*unchanged, *changed, *(() if self.outcome is None else outcome_notes(self.outcome)))


class TextEdits:
    """Edits of text files in tracked calls. Its methods may run on several threads at once."""

    def __init__(self, context: ToolContext, calls: TrackedCalls) -> None:
        self._context = context
        self._calls = calls

    def apply(  # noqa: PLR0913 - each is one thing that a tool may say about its edit
        self,
        tool: str,
        path: str,
        conversation: str,
        change: Callable[[FileText], EditResultT],
        *,
        searches: int = 0,
        dry_run: bool = False,
        file_hash: str | None = None,
        rebase: bool = False,
        notes: Callable[[EditedFile[EditResultT]], Mapping[str, str]] = lambda _: {},
    ) -> EditedFile[EditResultT]:
        """Apply `change`, which maps a file's text to an EditResult, to a text file. Raises Failure.

        `file_hash`: names the version that the model has seen; `change` itself refuses any other. `rebase`: if the
        file has changed since, `change` gets the version that the model has seen, and its result is carried over to
        the current file. `dry_run`: write nothing, and refuse what would be refused otherwise. `searches`: how often
        `change` searches the file; if that takes long, it is done before the call takes the writers' lock. `notes`:
        returns what to record with the edit.
        """
        if is_expensive(searches):
            change = MemoizedChange(change)

        def tried() -> EditedFile[EditResultT]:
            return self._tried(path, change, file_hash=file_hash, rebase=rebase)

        if dry_run:
            refuse_reserved(conversation)
            with resolving_lazy_failures(), converting_errors(path):
                if self._context.directories.recorded_of(path) is None:
                    return tried()
        if is_expensive(searches):
            with suppress(Failure), converting_errors(path):  # under the lock it is tried, and refused, again
                tried()
        outcome = None
        session = self._context.session
        holding = self._calls.hold(tool, path, conversation, precheck=tried, dry_run=dry_run)
        with holding as (workspace, call):
            before = call.read(path)
            if len(before.bytes) > self._context.limits.max_file_bytes:
                raise FileTooLarge(path, len(before.bytes), self._context.limits.max_file_bytes)
            self._refuse_if_binary(before, path)
            carry = partial(call.rebased, path)
            edited = self._apply_change(workspace, path, before, change, carry, file_hash=file_hash, rebase=rebase)
            if not dry_run:
                call.write(path, edited.content, hunks=edited.hunks, operation=Operation.EDIT)
                outcome = self._calls.commit(workspace, call, notes(edited))
                key, written = (workspace.root, before.path), call.state(path)
                if written is not None and not edited.changed_since_read:
                    session.saw(key, written.blob)
                if edited.rebased:
                    made = _content(file_text(edited.base.bytes), edited.made.content, path)
                    session.carried(key, edited.base.blob, blob_id(made), made)
                if written is not None and outcome.edits:
                    session.made(key, before.blob, written.blob)
        return replace(edited, outcome=outcome)

    def changeable(self, path: str) -> tuple[Files, Content]:
        """Return a text file's current content if the session may change it, without creating a store.

        Raises Failure.
        """
        context = self._context
        with converting_errors(path):
            files = context.directories.files_of(path)
            if (refusal := of_directory(path)) is not None:
                raise refusal
            files.free_space(path)  # raises where nothing may be written
            found = files.read(path, limit=min(context.limits.max_file_bytes, MAX_BLOB), follow=False)
            self._refuse_if_binary(found, path)
            if context.session.must_read((files.root, found.path), found.blob):
                raise refusals.unread(path, sha256(found.bytes), is_kept=context.session.is_kept)
            return files, found

    def unwritable_notes(self, path: str) -> tuple[str, ...]:
        """Return the note for a dry run on a file that the call could not write, or ()."""
        with converting_errors(path):
            if self._context.directories.files_of(path).may_write(path):
                return ()
        return not_applied(str(failure_of(PermissionRefused(path), path)))

    def has_seen(self, path: str, file_hash: str) -> bool:
        """Return whether the session has seen a version of the file that has this SHA-256."""
        files = self._context.directories.files_of(path)
        workspace = self._context.directories.recorded_of(path) or files
        return self._seen_version(workspace, (files.root, files.relative(path)), file_hash) is not None

    def _tried(
        self, path: str, change: Callable[[FileText], EditResultT], *, file_hash: str | None, rebase: bool
    ) -> EditedFile[EditResultT]:
        """Return the result that `apply` would have, computed without a store. Raises Failure."""
        files, before = self.changeable(path)

        def carry(base: bytes, made: bytes, hunks: Sequence[Hunk]) -> Rebased | RebaseConflict:
            # No edits are recorded between the two versions, so only a comparison can tell what changed.
            old = file_text(base).lines
            return rebased(old, made, hunks, compared(old, file_text(before.bytes).lines))

        return self._apply_change(files, path, before, change, carry, file_hash=file_hash, rebase=rebase)

    def _apply_change(
        self,
        place: Files | Workspace,
        path: str,
        before: Content,
        change: Callable[[FileText], EditResultT],
        carry: Callable[[bytes, bytes, Sequence[Hunk]], Rebased | RebaseConflict],
        *,
        file_hash: str | None,
        rebase: bool,
    ) -> EditedFile[EditResultT]:
        """Return what a change makes of a file whose current content is `before`; write nothing. Raises Failure.

        `carry`: maps a change from the bytes of a version to other lines, with its hunks, to the same change of the
        current file's lines.
        """
        key = (place.root, before.path)
        base = self._base(place, key, before, file_hash) if rebase else before
        text = file_text(base.bytes)
        made = change(text)
        hunks: Sequence[Hunk] = hunks_from_spans(text.lines, made.content, made.spans)
        stale = self._context.session.knows(key, before.blob) is Knowledge.STALE
        lines = made.content
        if base is not before:
            lines, hunks = _carried(carry(base.bytes, made.content, hunks), path, before)
            text = file_text(before.bytes)
        return EditedFile(
            place=absolute(place, before.path),
            base=base,
            before=before,
            made=made,
            lines_before=text.lines,
            lines=lines,
            content=_content(text, lines, path),
            hunks=hunks,
            outcome=None,
            # A right `file_hash` does not prove that the model read the file: a refusal reports it with a few lines.
            changed_since_read=base is not before or stale,
        )

    def _refuse_if_binary(self, found: Content, path: str) -> None:
        if self._context.is_binary(found.bytes):
            raise refusals.binary_file("Cannot edit binary file", path, found.bytes)

    def _base(self, workspace: Files | Workspace, key: FileKey, now: Content, file_hash: str | None) -> Content:
        """Return the version of a file that the model made its change to, or `now` if it knows no other.

        Raises Failure if the bytes of that version are kept nowhere.
        """
        if file_hash is None:
            known = self._context.session.known(key)
            if known is None or known == now.blob:
                return now
            found = self._bytes_of(workspace, key, known)
            if found is None:
                raise refusals.base_version_lost(absolute(workspace, now.path), sha256(now.bytes))
            return replace(now, bytes=found, blob=known)
        if sha256(now.bytes) == file_hash.lower():
            return now
        seen = self._seen_version(workspace, key, file_hash)
        return now if seen is None else replace(now, bytes=seen[1], blob=seen[0])

    def _seen_version(self, workspace: Files | Workspace, key: FileKey, file_hash: str) -> tuple[BlobId, bytes] | None:
        """Return the version with this SHA-256 among those that the session has seen and whose bytes are kept."""
        for version in self._context.session.versions(key):
            found = self._bytes_of(workspace, key, version)
            if found is not None and sha256(found) == file_hash.lower():
                return version, found
        return None

    def _bytes_of(self, workspace: Files | Workspace, key: FileKey, version: BlobId) -> bytes | None:
        kept = self._context.session.content(key, version)
        if kept is not None or isinstance(workspace, Files):
            return kept
        try:
            return workspace.history.blob(version)
        except BlobMissing:
            return None


def is_expensive(searches: int) -> bool:
    """Return whether so many searches through a file should be made before the call waits for its turn to write."""
    return searches > _EXPENSIVE_SEARCHES


def _carried(outcome: Rebased | RebaseConflict, path: str, now: Content) -> tuple[bytes, Sequence[Hunk]]:
    """Return the lines and hunks of a change that was carried over to the current file. Raises Failure."""
    if isinstance(outcome, RebaseConflict):
        raise refusals.rebase_conflict(outcome, path, sha256(now.bytes), file_text(now.bytes).lines)
    return outcome.content, outcome.hunks


def _content(text: FileText, lines: bytes, path: str) -> bytes:
    """Return the bytes of a file for the lines that an edit made of its text. Raises Failure."""
    try:
        return text.with_lines(lines)
    except ValueError as error:
        raise Failure(
            FailureKind.ENCODING,
            f"The lines of the file end in CR alone, and the edit has {error}: {shown(path)}",
            hint="Read the file again.",
            path=path,
        ) from error
