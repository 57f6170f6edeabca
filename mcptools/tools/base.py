"""A toolset: what every family of tools stands on, looks at files and tracked calls.

Whatever a tool changes, it changes in a call held by `_changing` and ended by `_commit`, so that what a session may
take and what its last change was are decided in one place.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Final, Generic, Protocol, TypeAlias, TypeVar

from mcptools.edit.display import shown
from mcptools.edit.exact import Span
from mcptools.files.workspaces import Directories, of_directory
from mcptools.model import refusals
from mcptools.model.cancellation import checkpoint, progress
from mcptools.model.failures import Failure, FailureKind, failure_of, resolving_lazy_failures
from mcptools.model.limits import ServerLimits
from mcptools.model.session import FileKey, Knowledge, LastChange, Session
from objstore import (
    MAX_BLOB,
    BlobId,
    BlobMissing,
    Call,
    CallInfo,
    CallOutcome,
    CasError,
    Content,
    ConversationReserved,
    Files,
    FileTooLarge,
    Hunk,
    Operation,
    PermissionRefused,
    RebaseConflict,
    Rebased,
    Unit,
    Workspace,
    blob_id,
    compared,
    hunks_from_spans,
    is_binary,
    rebased,
)

__all__ = [
    "UNCHANGED",
    "ApprovalContext",
    "ConversationArgument",
    "EditResult",
    "EditedFile",
    "ExistingFile",
    "MemoizedChange",
    "PathArgument",
    "RebaseArgument",
    "ServerLimits",
    "Toolset",
    "absolute",
    "conversation_notes",
    "edit_number",
    "is_expensive",
    "not_applied",
    "nothing_to_change",
    "sha256",
    "standing_at",
    "telling",
]

_CONVERSATION: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_NOBODYS: Final = "external"
"""The conversation of what nobody recorded, which the store lets nobody choose."""

_LONG: Final = 20
"""Searches through a file, of the largest size, that take more than a tenth of a second."""

_UNREADABLE: Final = BlobId(b"")
"""Of a file that is larger than what a session reads or writes, and so of no version that it knows."""

UNCHANGED: Final = "The file reads so already: no change of it was recorded, and there is none to undo."
"""What is said of a file that a call left as it was."""

_CHANGED: Final = (
    "The file had changed since you last read all of it or wrote it; the change was made in its present version."
)
_STALE: Final = "The file has changed since you last read all of it or wrote it."
_REBASED: Final = (
    "The file had changed since you read it; your change was carried over to its present version. Read it again to see "
    "what else is new."
)

PathArgument: TypeAlias = Annotated[str, "Absolute, or below the only allowed directory"]
RebaseArgument: TypeAlias = Annotated[bool, "Carry the change over if the file has changed since you read it"]
ConversationArgument: TypeAlias = Annotated[str, "The id that this turn's first change returned"]


class EditResult(Protocol):
    """What an edit makes of a file's bytes."""

    @property
    def content(self) -> bytes:
        """Return the new bytes."""

    @property
    def spans(self) -> Sequence[Span]:
        """Return which ranges of bytes were replaced by which."""


EditResultT = TypeVar("EditResultT", bound=EditResult)


@dataclass(frozen=True, slots=True)
class ApprovalContext:
    """What a person was asked about before the session's last change is undone."""

    change: LastChange | None  # None: there was nothing to undo, and so nothing to ask
    accepted: frozenset[Unit] = frozenset()  # parts of the change that a reviewer had accepted by then


class MemoizedChange(Generic[EditResultT]):
    """A change that remembers what it made of the last text, or why it refused it."""

    def __init__(self, change: Callable[[bytes], EditResultT]) -> None:
        self._change = change
        self._last: tuple[bytes, EditResultT | Failure] | None = None

    def __call__(self, content: bytes) -> EditResultT:
        """Return what the change makes of a text. Raises Failure."""
        if self._last is None or self._last[0] != content:
            self._last = content, self._outcome(content)
        made = self._last[1]
        if isinstance(made, Failure):
            raise made
        return made

    def _outcome(self, content: bytes) -> EditResultT | Failure:
        try:
            return self._change(content)
        except Failure as failure:
            return failure


class Toolset:
    """What every family of tools stands on. Methods may run at once on several threads."""

    def __init__(
        self,
        directories: Directories,
        session: Session,
        limits: ServerLimits,
        *,
        asked: "ApprovalContext | None" = None,
    ) -> None:
        """`asked`: what the person was asked about before the call; None: nothing that depends on what was done."""
        self._directories = directories
        self._asked = asked
        self._session = session
        self._limits = limits

    def _look(self, path: str) -> tuple[Files, Content]:
        """Return a file as it stands; whether the model sees it is not yet said."""
        with telling(path):
            files = self._directories.files_of(path)
            return files, files.read(path, limit=self._limits.max_file_bytes)

    @contextmanager
    def _changing(
        self,
        tool: str,
        path: str,
        conversation: str,
        *more_paths: str,
        precheck: Callable[[], object] = lambda: None,
        allows_unread: bool = False,
        waiting: tuple[int, int | None] = (0, None),
        dry_run: bool = False,
    ) -> Iterator[tuple[Workspace, Call]]:
        """Hold a tracked call on the workspace of `path`; what goes wrong in it is told as a failure.

        What the session saw of the call is noted while it is held, so that parallel calls note it in their order. What
        takes time to explain is explained behind it.
        `foresee`: raises what the call is going to, called where there is no store, or a large file is to be stored
        first: neither is done for a refusal.
        `takes_unread`: for who refuses files that have to be read first together with whatever else does not fit, or
        changes none that is there.
        `waiting`: how much of how much is done by when it waits for its turn, for who has told of some already.
        `dry_run`: for who commits nothing; a store that may only be read will do.
        """
        _refuse_reserved(conversation)
        with resolving_lazy_failures(), telling(path, *more_paths):
            workspace, within = self._directories.changing(path, precheck)
            for named in (path, *more_paths):
                if (refusal := of_directory(named)) is not None:
                    raise refusal
                self._directories.refuse_shown(named)
            notes = dict(self._session.client)
            info = CallInfo(tool=tool, conversation=conversation, notes=notes, within=within)
            progress(*waiting, "Waiting for its turn to write")
            paths = (path, *more_paths)
            with workspace.call(info, paths, precheck, waiting=checkpoint, dry_run=dry_run) as call:
                if not allows_unread:
                    self._refuse_unread(workspace, call, path)
                yield workspace, call

    def _commit(self, workspace: Workspace, call: Call) -> CallOutcome:
        """Record the call and carry it out; it is what `Undo` takes back next. Raises what Call.commit raises."""
        checkpoint()
        outcome = call.commit()
        self._session.changed(workspace.root, outcome.edits)
        return outcome

    def _edited(
        self,
        tool: str,
        path: str,
        conversation: str,
        change: Callable[[bytes], EditResultT],
        *,
        searches: int = 0,
        dry_run: bool = False,
        file_hash: str | None = None,
        rebase: bool = False,
    ) -> "EditedFile[EditResultT]":
        """Put a text file through `change`, which says what it makes of the bytes and where.

        `file_hash`: names the version that the model has seen, and `change` itself refuses any other. `rebase`: where
        the file has changed since, `change` gets the version that the model has seen, and what it makes of it is
        carried over to the file as it is. `dry_run`: nothing is written, and refused is what would be otherwise.
        `searches`: how often `change` goes through the file; where that takes long, nobody has to wait for it.
        """
        if is_expensive(searches):
            change = MemoizedChange(change)

        def tried() -> EditedFile[EditResultT]:
            return self._tried(path, change, file_hash=file_hash, rebase=rebase)

        if dry_run:
            _refuse_reserved(conversation)
            with resolving_lazy_failures(), telling(path):
                if self._directories.recorded_of(path) is None:
                    return tried()
        if is_expensive(searches):
            with suppress(Failure), telling(path):  # what goes wrong is told of the file as it is under the lock
                tried()
        outcome = None
        changing = self._changing(tool, path, conversation, precheck=tried, dry_run=dry_run)
        with changing as (workspace, call):
            before = call.read(path)
            if len(before.bytes) > self._limits.max_file_bytes:
                raise FileTooLarge(path, len(before.bytes), self._limits.max_file_bytes)
            self._refuse_if_binary(before, path)
            carry = partial(call.rebased, path)
            edited = self._apply_change(workspace, path, before, change, carry, file_hash=file_hash, rebase=rebase)
            if not dry_run:
                call.write(path, edited.content, hunks=edited.hunks, operation=Operation.EDIT)
                outcome = self._commit(workspace, call)
                key, written = (workspace.root, before.path), call.state(path)
                if written is not None and not edited.changed_since_read:
                    self._session.saw(key, written.blob)
                if edited.rebased:
                    made = edited.made.content
                    self._session.carried(key, edited.base.blob, blob_id(made), made)
                if written is not None and outcome.edits:
                    self._session.made(key, before.blob, written.blob)
        return replace(edited, outcome=outcome)

    def _tried(
        self, path: str, change: Callable[[bytes], EditResultT], *, file_hash: str | None, rebase: bool
    ) -> "EditedFile[EditResultT]":
        """Return what `_edited` comes to, found without a store."""
        files, before = self._changeable(path)

        def carry(base: bytes, made: bytes, hunks: Sequence[Hunk]) -> Rebased | RebaseConflict:
            # Nothing is recorded, so the way from the one version to the other is found by comparison alone.
            return rebased(base, made, hunks, compared(base, before.bytes))

        return self._apply_change(files, path, before, change, carry, file_hash=file_hash, rebase=rebase)

    def _apply_change(
        self,
        place: Files | Workspace,
        path: str,
        before: Content,
        change: Callable[[bytes], EditResultT],
        carry: Callable[[bytes, bytes, Sequence[Hunk]], Rebased | RebaseConflict],
        *,
        file_hash: str | None,
        rebase: bool,
    ) -> "EditedFile[EditResultT]":
        """Return what a change makes of a file that is `before` now; nothing is written. Raises Failure.

        `carry`: what a change, with its hunks, from one version to another makes of the file as it is now.
        """
        key = (place.root, before.path)
        base = self._base(place, key, before, file_hash) if rebase else before
        made = change(base.bytes)
        hunks: Sequence[Hunk] = hunks_from_spans(base.bytes, made.content, made.spans)
        stale = self._session.knows(key, before.blob) is Knowledge.STALE
        content = made.content
        if base is not before:
            content, hunks = _carried(carry(base.bytes, made.content, hunks), path, before)
        return EditedFile(
            place=absolute(place, before.path),
            base=base,
            before=before,
            made=made,
            content=content,
            hunks=hunks,
            outcome=None,
            # A `file_hash` that is right proves no reading: a refusal tells it, with a few lines of the file.
            changed_since_read=base is not before or stale,
        )

    def _changeable(self, path: str) -> tuple[Files, Content]:
        """Return a text file as it stands, if anything may be changed in it; that makes no store. Raises Failure."""
        with telling(path):
            files = self._directories.files_of(path)
            if (refusal := of_directory(path)) is not None:
                raise refusal
            files.free_space(path)  # of no place where nothing may be written
            found = files.read(path, limit=min(self._limits.max_file_bytes, MAX_BLOB), follow=False)
            self._refuse_if_binary(found, path)
            if self._session.must_read((files.root, found.path), found.blob):
                raise refusals.unread(path, sha256(found.bytes))
            return files, found

    def _unwritable(self, path: str) -> tuple[str, ...]:
        """Return what has to be said of a file that only a dry run is of, where the call could not write it."""
        with telling(path):
            if self._directories.files_of(path).may_write(path):
                return ()
        return not_applied(str(failure_of(PermissionRefused(path), path)))

    def _precheck(self, path: str, *, stale: bool = True, replaces: bool = False) -> None:
        """Refuse what a call that takes a whole file will; that makes no store. Raises Failure, and as Files.read.

        `replaces`: it puts other text in the file's place.
        """
        files = self._directories.files_of(path)
        files.free_space(path)  # as above
        read = partial(files.read, path, limit=max(self._limits.max_file_bytes, MAX_BLOB), follow=False)
        try:
            found = read()
            name, blob = found.path, found.blob
        except FileTooLarge:
            name, blob = files.facts(path).path, _UNREADABLE
        standing = ExistingFile(key=(files.root, name), blob=blob, path=path, read=read)
        self._refuse_if_unread(standing)
        if stale:
            self._refuse_if_stale(standing)
        if replaces:
            self._refuse_if_partly_seen(standing)

    def _is_binary(self, content: bytes) -> bool:
        """Return whether a file's bytes are no text, by the limits."""
        limits = self._limits
        return is_binary(content, checked=limits.binary_check_bytes, share=limits.non_text_threshold)

    def _refuse_if_binary(self, found: Content, path: str) -> None:
        if self._is_binary(found.bytes):
            raise Failure(FailureKind.BINARY_FILE, f"Cannot edit binary file: {shown(path)}", path=path)

    def _base(self, workspace: Files | Workspace, key: FileKey, now: Content, file_hash: str | None) -> Content:
        """Return the version of a file that the model made its change to; `now` where it knows no other.

        Raises Failure where its bytes are nowhere any more.
        """
        if file_hash is None:
            known = self._session.known(key)
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

    def _has_seen(self, path: str, file_hash: str) -> bool:
        """Return whether the model is known to have seen a version of the file that has this hash."""
        files = self._directories.files_of(path)
        workspace = self._directories.recorded_of(path) or files
        return self._seen_version(workspace, (files.root, files.relative(path)), file_hash) is not None

    def _seen_version(self, workspace: Files | Workspace, key: FileKey, file_hash: str) -> tuple[BlobId, bytes] | None:
        """Return the version with this hash among those that the model has seen, as far as their bytes are kept."""
        for version in self._session.versions(key):
            found = self._bytes_of(workspace, key, version)
            if found is not None and sha256(found) == file_hash.lower():
                return version, found
        return None

    def _bytes_of(self, workspace: Files | Workspace, key: FileKey, version: BlobId) -> bytes | None:
        kept = self._session.content(key, version)
        if kept is not None or isinstance(workspace, Files):
            return kept
        try:
            return workspace.history.blob(version)
        except BlobMissing:
            return None

    def _refuse_unread(self, workspace: Workspace, call: Call, path: str) -> None:
        """Refuse a file that the model has to read before it changes it."""
        standing = standing_at(workspace, call, path)
        if standing is not None:
            self._refuse_if_unread(standing)

    def _refuse_if_unread(self, standing: "ExistingFile") -> None:
        if self._session.must_read(standing.key, standing.blob):
            content = standing.content()
            raise refusals.unread(standing.path, sha256(content), is_readable=self._is_readable(content))

    def _refuse_if_partly_seen(self, standing: "ExistingFile") -> None:
        """Refuse to replace what the model was shown in part only, if it has to read files before it changes them."""
        if self._session.has_seen_only_part(standing.key):
            raise refusals.unread(standing.path, sha256(standing.content()), partly=True)

    def _refuse_if_stale(self, standing: "ExistingFile") -> None:
        if self._session.knows(standing.key, standing.blob) is Knowledge.STALE:
            content = standing.content()
            raise refusals.stale(standing.path, sha256(content), is_readable=self._is_readable(content))

    def _is_readable(self, content: bytes) -> bool:
        """Return whether a file with these bytes is no larger than what tools read."""
        return len(content) <= self._limits.max_file_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingFile:
    """A file that a call takes as a whole, of whatever size: its bytes are read where a refusal is about them."""

    key: FileKey
    blob: BlobId
    path: str  # as the client spelt it
    read: Callable[[], Content]

    def content(self) -> bytes:
        """Return its bytes. Raises FileTooLarge: the model can't read it first either."""
        return self.read().bytes


def standing_at(workspace: Workspace, call: Call, path: str) -> ExistingFile | None:
    """Return the file at a path as the call has made it so far; None: there is none. Raises what paths raise."""
    state = call.state(path)
    if state is None:
        return None
    return ExistingFile(
        key=(workspace.root, call.place(path)), blob=state.blob, path=path, read=partial(call.read, path)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedFile(Generic[EditResultT]):
    """What an edit of a text file came to."""

    place: str
    base: Content  # the version that the change was made to: where it was carried over, the one that the model has seen
    before: Content
    made: EditResultT  # of `base`
    content: bytes  # of the file now (of a dry run: as it would be)
    hunks: Sequence[Hunk]  # from `before` to `content`
    outcome: CallOutcome | None  # None: a dry run
    changed_since_read: bool

    @property
    def rebased(self) -> bool:
        """Return whether the change was carried over."""
        return self.base is not self.before

    @property
    def number(self) -> int:
        """Return the recorded edit's number, or 0."""
        return 0 if self.outcome is None else edit_number(self.outcome)

    @property
    def is_unchanged(self) -> bool:
        """Return whether the file was as the edit would have it, so that nothing was recorded; False of a dry run."""
        return self.outcome is not None and not self.outcome.edits

    @property
    def conversation(self) -> str:
        """Return the id of the edit's conversation, or "" of a dry run."""
        return "" if self.outcome is None else self.outcome.conversation

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what has to be said besides."""
        unchanged = (UNCHANGED,) if self.is_unchanged else ()
        stale = _REBASED if self.rebased else _STALE if unchanged else _CHANGED
        changed = (stale,) if self.changed_since_read else ()
        return (*unchanged, *changed, *(() if self.outcome is None else conversation_notes(self.outcome)))


def is_expensive(searches: int) -> bool:
    """Return whether so many searches through a file are to be made before the call waits for its turn to write."""
    return searches > _LONG


def _refuse_reserved(conversation: str) -> None:
    """Refuse what can't be the id of a conversation. Raises Failure."""
    if conversation and not _CONVERSATION.fullmatch(conversation):
        raise Failure(
            FailureKind.INVALID_REQUEST,
            f"Not a conversation id: {shown(conversation)!r}",
            hint="Leave it out to begin a conversation, then pass the id that is returned.",
        )
    if conversation == _NOBODYS:
        raise failure_of(ConversationReserved(conversation))


def _carried(outcome: Rebased | RebaseConflict, path: str, now: Content) -> tuple[bytes, Sequence[Hunk]]:
    """Return what a change that was carried over makes of a file as it is now. Raises Failure."""
    if isinstance(outcome, RebaseConflict):
        raise refusals.rebase_conflict(outcome, path, sha256(now.bytes), now.bytes)
    return outcome.content, outcome.hunks


@contextmanager
def telling(*paths: str) -> Iterator[None]:
    """Turn the store's and the system's errors into failures that speak of `paths` as the client spelt them."""
    try:
        yield
    except (CasError, OSError) as error:
        raise failure_of(error, *paths) from error


def absolute(workspace: Files | Workspace, name: str) -> str:
    """Return the absolute path of what has this canonical path in a directory."""
    return shown(workspace.root if name == "." else f"{workspace.root.rstrip('/')}/{name}")


def sha256(content: bytes) -> str:
    """Return the SHA-256 of `content`, in hex."""
    return hashlib.sha256(content).hexdigest()


def edit_number(outcome: CallOutcome) -> int:
    """Return the number of a call's first edit, or 0 of a call that changed nothing."""
    return outcome.edits[0].seq if outcome.edits else 0


def nothing_to_change(*places: str) -> str:
    """Return what is said in place of a success where files were as a call would have them."""
    return f"Nothing to change in {', '.join(places)}"


def not_applied(why: str) -> tuple[str, ...]:
    """Return what has to be said of a patch that was only tried, and would be refused."""
    return (f"As things stand the patch would not be applied all the same: {why}",)


def conversation_notes(outcome: CallOutcome) -> tuple[str, ...]:
    """Return what tells a client of a conversation that its call began."""
    if not outcome.new_conversation:
        return ()
    return (f"New conversation. Pass mcp_conversation_id={outcome.conversation} with your further changes.",)
