"""Hold the tracked calls in which tools change files, and refuse files that the session has not read.

Every change that a tool makes is made in a call that `TrackedCalls.hold` opens and `TrackedCalls.commit` ends, so the
rules for unread and stale files, and the record of the session's last change, are in one place.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from mcptools.edit.display import shown
from mcptools.files.workspaces import denied_in, of_directory
from mcptools.model import refusals
from mcptools.model.cancellation import checkpoint, progress
from mcptools.model.failures import Failure, FailureKind, failure_of, resolving_lazy_failures
from mcptools.model.session import FileKey, Knowledge
from mcptools.tools.calls.outer_workspaces import reported_around
from mcptools.tools.context import ToolContext, converting_errors, sha256
from objstore import (
    AGENT_NOTES,
    MAX_BLOB,
    BlobId,
    Call,
    CallInfo,
    CallOutcome,
    Content,
    ConversationReserved,
    FileTooLarge,
    TurnInfo,
    Workspace,
)

__all__ = ["ExistingFile", "TrackedCalls", "existing_file", "refuse_reserved"]

_CONVERSATION: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")

_EXTERNAL: Final = "external"
"""The conversation of edits that no tool recorded. The store reserves it, so no client may choose it."""

_UNREADABLE: Final = BlobId(b"")
"""The blob of a file that is too large for a session to read or write: it equals no version that a session knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingFile:
    """A file that a call replaces, moves or deletes as a whole, of any size. Only a refusal reads its bytes."""

    key: FileKey
    blob: BlobId
    path: str  # as the client wrote it
    read: Callable[[], Content]

    def content(self) -> bytes:
        """Return the file's bytes. Raises FileTooLarge if the model can't read the file first either."""
        return self.read().bytes


def existing_file(workspace: Workspace, call: Call, path: str) -> ExistingFile | None:
    """Return the file at a path as the call has changed it so far, or None if there is none. Raises PathError."""
    state = call.state(path)
    if state is None:
        return None
    return ExistingFile(
        key=(workspace.root, call.place(path)), blob=state.blob, path=path, read=partial(call.read, path)
    )


class TrackedCalls:
    """The tracked calls of one session. Its methods may run on several threads at once."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    @contextmanager
    def hold(
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
        """Hold a tracked call on the workspace of `path`, and convert errors in it to failures.

        The tool reports to the session what it saw while it holds the call, so that parallel calls report in their
        order. Explanations that take time are computed after the call is released.

        `precheck`: raises what the call is going to raise. It runs where there is no store yet, or before a large file
        is stored, because a refusal should do neither. `allows_unread`: don't refuse unread files; for a tool that
        refuses them together with its other refusals, or that changes no existing file. `waiting`: the steps done and
        the total to report while the call waits for its turn, for a tool that has reported some steps already.
        `dry_run`: the tool commits nothing, so a read-only store is enough.
        """
        context = self._context
        refuse_reserved(conversation)
        with resolving_lazy_failures(), converting_errors(path, *more_paths):
            workspace, within = context.directories.changing(path, precheck)
            for named in (path, *more_paths):
                if (refusal := of_directory(named)) is not None:
                    raise refusal
                context.directories.refuse_shown(named)
            notes = dict(context.session.client)
            announced = None if dry_run or context.given is None else context.given.announced_in(workspace)
            turn = self._own_turn(conversation) if announced is None else announced.turn
            if announced is not None:
                notes |= {name: note for name, note in announced.notes.items() if name in AGENT_NOTES}
            info = CallInfo(
                tool=tool,
                conversation=conversation,
                notes=notes,
                within=within,
                denies=denied_in(workspace.root),
                turn=turn,
            )
            progress(*waiting, "Waiting for its turn to write")
            paths = (path, *more_paths)
            with workspace.call(info, paths, precheck, waiting=checkpoint, dry_run=dry_run) as call:
                if not allows_unread:
                    self.refuse_unread(workspace, call, path)
                yield workspace, call

    def commit(
        self, workspace: Workspace, call: Call, notes: Mapping[str, str] = MappingProxyType({}), *, backup: str = ""
    ) -> CallOutcome:
        """Record the call and apply it; the next `Undo` takes it back. Raises what Call.commit raises.

        `notes`: what became known during the call, to be recorded with it. `backup`: the path of a backup that the call
        makes, which `Undo` leaves alone; "": none.
        """
        checkpoint()
        kept = call.place(backup) if backup else ""
        session = self._context.session
        if call.turn is not None and call.turn.session == session.name:
            with reported_around(workspace, session, call.tool, call.changed_paths):
                outcome = call.commit(notes=notes)
        else:
            outcome = call.commit(notes=notes)  # hooks have announced it, and report to the workspaces around as well
        self._context.recorded.extend((workspace, view) for view in outcome.edits)
        if call.turn is not None and call.turn.session == session.name:
            session.turn_began(outcome.conversation, call.turn.began)
        session.changed(workspace.root, outcome.edits, backup=kept)
        return outcome

    def _own_turn(self, conversation: str) -> TurnInfo:
        """Return the turn of a conversation in the session of this connection, for a client without hooks."""
        session = self._context.session
        began = session.turn_began(conversation, max(0, time.time_ns() // 1_000))
        return TurnInfo(session=session.name, began=began, client=session.client.get("client", ""))

    def precheck(self, path: str, *, stale: bool = True, replaces: bool = False) -> None:
        """Refuse a file that a call would replace, move or delete as a whole, without creating a store.

        `stale`: also refuse a file that has changed since the session saw it. `replaces`: the call writes other text
        in place of the file's. Raises Failure, and what Files.read raises.
        """
        files = self._context.directories.files_of(path)
        files.free_space(path)  # raises where nothing may be written
        read = partial(files.read, path, limit=max(self._context.limits.max_file_bytes, MAX_BLOB), follow=False)
        try:
            found = read()
            name, blob = found.path, found.blob
        except FileTooLarge:
            name, blob = files.facts(path).path, _UNREADABLE
        existing = ExistingFile(key=(files.root, name), blob=blob, path=path, read=read)
        self._refuse_if_unread(existing)
        if stale:
            self.refuse_if_stale(existing)
        if replaces:
            self.refuse_if_partly_seen(existing)

    def refuse_unread(self, workspace: Workspace, call: Call, path: str) -> None:
        """Refuse a file that the model has to read before it changes it. Raises Failure."""
        existing = existing_file(workspace, call, path)
        if existing is not None:
            self._refuse_if_unread(existing)

    def _refuse_if_unread(self, existing: ExistingFile) -> None:
        if self._context.session.must_read(existing.key, existing.blob):
            raise self._unread(existing)

    def _unread(self, existing: ExistingFile) -> Failure:
        """Return the refusal of a file that the model has not read in this session."""
        content, is_kept = existing.content(), self._context.session.is_kept
        is_readable = self._is_readable(content)
        return refusals.unread(existing.path, sha256(content), is_kept=is_kept, is_readable=is_readable)

    def refuse_if_partly_seen(self, existing: ExistingFile) -> None:
        """Refuse to replace a file of which the model has seen only a part, if it must read files first.

        Raises Failure.
        """
        if self._context.session.has_read_only_part(existing.key):
            raise refusals.unread(existing.path, sha256(existing.content()), partly=True)

    def refuse_if_stale(self, existing: ExistingFile) -> None:
        """Refuse a file that has, or may have, changed since the model last read or wrote it. Raises Failure."""
        match self._context.session.knows(existing.key, existing.blob):
            case Knowledge.UNKNOWN:
                raise self._unread(existing)
            case Knowledge.STALE:
                content = existing.content()
                raise refusals.stale(existing.path, sha256(content), is_readable=self._is_readable(content))

    def _is_readable(self, content: bytes) -> bool:
        """Return whether a file with these bytes is small enough for the tools to read."""
        return len(content) <= self._context.limits.max_file_bytes


def refuse_reserved(conversation: str) -> None:
    """Refuse an id that no conversation of a client can have. Raises Failure."""
    if conversation and not _CONVERSATION.fullmatch(conversation):
        raise Failure(
            FailureKind.INVALID_REQUEST,
            f"Not a conversation id: {shown(conversation)!r}",
            hint="Leave it out to begin a conversation, then pass the id that is returned.",
        )
    if conversation == _EXTERNAL:
        raise failure_of(ConversationReserved(conversation))
