"""A toolset: what every family of tools stands on, looks at files and tracked calls.

Whatever a tool changes, it changes in a call held by `_changing` and ended by `_commit`, so that what a session may
take and what its last change was are decided in one place.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Final, Generic, Protocol, TypeAlias, TypeVar

from mcptools import refusals
from mcptools.directories import Directories
from mcptools.display import shown
from mcptools.exact import Span
from mcptools.failures import Failure, Kind, failure_of
from mcptools.session import Knowledge, Session
from objstore import (
    Call,
    CallInfo,
    CallOutcome,
    CasError,
    Content,
    Files,
    FileTooLarge,
    Hunk,
    Operation,
    Workspace,
    blob_id,
    hunks_from_spans,
    is_binary,
)

__all__ = [
    "ConversationArgument",
    "EditedFile",
    "Limits",
    "Made",
    "PathArgument",
    "Toolset",
    "absolute",
    "conversation_notes",
    "edit_number",
    "sha256",
    "telling",
]

_CONVERSATION: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_CHANGED: Final = "The file had changed since you last read or wrote it; the change was made in its present version."

PathArgument: TypeAlias = Annotated[str, "Absolute path, or relative to the only allowed directory"]
ConversationArgument: TypeAlias = Annotated[
    str, "The id that your first change of this turn returned; leave it out on that first change"
]


class Made(Protocol):
    """What an edit makes of a file's bytes."""

    @property
    def content(self) -> bytes:
        """Return the new bytes."""

    @property
    def spans(self) -> Sequence[Span]:
        """Return which ranges of bytes were replaced by which."""


MadeT = TypeVar("MadeT", bound=Made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What tools take, give and look at, at most."""

    max_file_bytes: int = 10 << 20  # of a file that is read or edited
    max_answer: int = 80_000  # characters of an answer: some 25,000 tokens, where clients begin to cut
    max_walked: int = 100_000  # names that a search or a tree looks at
    max_seconds: float = 10.0  # that a search goes on for
    min_free_space: int = 100 << 20  # bytes that have to be free where a patch or a backup is written
    binary_check_bytes: int = 8192  # of a file that are looked at to tell whether it is binary
    non_text_threshold: float = 0.3  # part of those bytes that may be no text in a text file


class Toolset:
    """What every family of tools stands on. Methods may run at once on several threads."""

    def __init__(self, directories: Directories, session: Session, limits: Limits) -> None:
        self._directories = directories
        self._session = session
        self._limits = limits

    def _read(self, path: str) -> tuple[Files, Content]:
        """Return a file as it stands, for the model to see."""
        files, found = self._look(path)
        self._session.saw((files.root, found.path), found.blob)
        return files, found

    def _look(self, path: str) -> tuple[Files, Content]:
        """Return a file as it stands; whether the model sees it is not yet said."""
        with telling(path):
            files = self._directories.files_of(path)
            return files, files.read(path, limit=self._limits.max_file_bytes)

    @contextmanager
    def _changing(self, tool: str, path: str, conversation: str, *more_paths: str) -> Iterator[tuple[Workspace, Call]]:
        """Hold a tracked call on the workspace of `path`; what goes wrong in it is told as a failure.

        What the session saw of the call is noted while it is held, so that parallel calls note it in their order.
        """
        if conversation and not _CONVERSATION.fullmatch(conversation):
            raise Failure(
                Kind.INVALID_REQUEST,
                f"Not a conversation id: {shown(conversation)!r}",
                hint="Leave it out to begin a conversation, then pass the id that is returned.",
            )
        info = CallInfo(tool=tool, conversation=conversation, notes=dict(self._session.client))
        with telling(path, *more_paths):
            workspace = self._directories.workspace_of(path)
            with workspace.call(info) as call:
                self._refuse_unread(workspace, call, path)
                yield workspace, call

    def _commit(self, workspace: Workspace, call: Call) -> CallOutcome:
        """Record the call and carry it out; it is what `Undo` takes back next. Raises what Call.commit raises."""
        outcome = call.commit()
        self._session.changed(workspace.root, outcome.edits)
        return outcome

    def _edited(
        self,
        tool: str,
        path: str,
        conversation: str,
        change: Callable[[bytes], MadeT],
        *,
        dry_run: bool = False,
        pinned: bool = False,
    ) -> "EditedFile[MadeT]":
        """Put a text file through `change`, which says what it makes of the bytes and where.

        `pinned`: `change` itself refuses bytes other than those that the model has seen.
        """
        outcome = None
        with self._changing(tool, path, conversation) as (workspace, call):
            before = call.read(path)
            if len(before.bytes) > self._limits.max_file_bytes:
                raise FileTooLarge(path, len(before.bytes), self._limits.max_file_bytes)
            limits = self._limits
            if is_binary(before.bytes, checked=limits.binary_check_bytes, share=limits.non_text_threshold):
                raise Failure(Kind.BINARY_FILE, f"Cannot edit binary file: {shown(path)}", path=path)
            key = (workspace.root, before.path)
            changed = not pinned and self._session.knows(key, before.blob) is Knowledge.STALE
            made = change(before.bytes)
            hunks = hunks_from_spans(before.bytes, made.content, made.spans)
            if not dry_run:
                call.write(path, made.content, hunks=hunks, operation=Operation.EDIT)
                outcome = self._commit(workspace, call)
                if not changed:
                    self._session.saw(key, blob_id(made.content))
        return EditedFile(
            place=absolute(workspace, before.path),
            before=before,
            made=made,
            hunks=hunks,
            outcome=outcome,
            changed_since_read=changed,
        )

    def _refuse_unread(self, workspace: Workspace, call: Call, path: str) -> None:
        """Refuse a file that the model has to read before it changes it."""
        if call.exists(path):
            found = call.read(path)
            if self._session.must_read((workspace.root, found.path), found.blob):
                raise refusals.unread(path, sha256(found.bytes))

    def _refuse_if_stale(self, workspace: Workspace, found: Content, path: str) -> None:
        if self._session.knows((workspace.root, found.path), found.blob) is Knowledge.STALE:
            raise refusals.stale(path, sha256(found.bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedFile(Generic[MadeT]):
    """What an edit of a text file came to."""

    place: str
    before: Content
    made: MadeT
    hunks: Sequence[Hunk]
    outcome: CallOutcome | None  # None: a dry run
    changed_since_read: bool

    @property
    def number(self) -> int:
        """Return the recorded edit's number, or 0."""
        return 0 if self.outcome is None else edit_number(self.outcome)

    @property
    def conversation(self) -> str:
        """Return the id of the edit's conversation, or "" of a dry run."""
        return "" if self.outcome is None else self.outcome.conversation

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what has to be said besides."""
        changed = (_CHANGED,) if self.changed_since_read else ()
        return (*changed, *(() if self.outcome is None else conversation_notes(self.outcome)))


@contextmanager
def telling(*paths: str) -> Iterator[None]:
    """Turn the store's and the system's errors into failures that speak of `paths` as the client spelt them."""
    try:
        yield
    except (CasError, OSError) as error:
        raise failure_of(error, *paths) from error


def absolute(workspace: Files | Workspace, name: str) -> str:
    """Return the absolute path of what has this canonical path in a directory."""
    return shown(str(PurePath(workspace.root, name)))


def sha256(content: bytes) -> str:
    """Return the SHA-256 of `content`, in hex."""
    return hashlib.sha256(content).hexdigest()


def edit_number(outcome: CallOutcome) -> int:
    """Return the number of a call's first edit, or 0 of a call that changed nothing."""
    return outcome.edits[0].seq if outcome.edits else 0


def conversation_notes(outcome: CallOutcome) -> tuple[str, ...]:
    """Return what tells a client of a conversation that its call began."""
    if not outcome.new_conversation:
        return ()
    return (f"New conversation. Pass mcp_conversation_id={outcome.conversation} with your further changes.",)
