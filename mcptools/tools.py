"""The tools, as plain methods: each turns its arguments into one tracked call, or into one look at a file.

A method's signature is its tool's input, its docstring is what a model reads of it, and what it returns holds the
structured content and the text of a success. Failures are raised. Nothing here knows the protocol.
"""

import hashlib
import mimetypes
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Annotated, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar, assert_never

from mcptools import refusals
from mcptools.answers import (
    Answer,
    DiffEdited,
    DirectoryListed,
    DirectoryMade,
    FileDeleted,
    FileMoved,
    FileRead,
    FileWritten,
    LineRangeOfEdit,
    ListedEntry,
    MultiEdited,
    TextRead,
)
from mcptools.directories import Directories, not_absolute
from mcptools.display import decoded, line_endings, one_line, shown
from mcptools.exact import AmbiguousString, Edited, EditsOverlap, MissingString, Replacement, Span, apply_edits
from mcptools.failures import Failure, Kind, failure_of
from mcptools.hashline import hashline
from mcptools.session import Knowledge, Session
from mcptools.unifieddiff import (
    AmbiguousContext,
    Applied,
    ContextMismatch,
    FilePatch,
    InvalidPatch,
    apply_patch,
    parse_patch,
)
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
    split_lines,
    unified_diff,
)

__all__ = ["EditOp", "Limits", "Tools"]

_CONVERSATION: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")

_NOT_UTF8: Final = (
    r"Not UTF-8 throughout: other bytes are shown as \xNN and can't be spelt in an edit; edit around them."
)
_CHANGED: Final = "The file had changed since you last read or wrote it; the change was made in its present version."


class Made(Protocol):
    """What an edit makes of a file's bytes."""

    @property
    def content(self) -> bytes:
        """Return the new bytes."""

    @property
    def spans(self) -> Sequence[Span]:
        """Return which ranges of bytes were replaced by which."""


MadeT = TypeVar("MadeT", bound=Made)


PathArgument: TypeAlias = Annotated[str, "Absolute path, or relative to the only allowed directory"]
ConversationArgument: TypeAlias = Annotated[
    str, "The id that your first change of this turn returned; leave it out on that first change"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What tools take at most."""

    max_file_bytes: int = 10 << 20  # of a file that is read or edited


@dataclass(frozen=True, slots=True, kw_only=True)
class EditOp:
    """One exact-string edit, as a client sends it."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # read by whoever checks arguments: no field is ignored

    old_string: str = field(metadata={"description": "Exact string to find and replace; it must occur once"})
    new_string: str = field(metadata={"description": "Replacement string"})


class Tools:
    """The tools of one session over some directories. Its methods may run at once on several threads."""

    def __init__(self, directories: Directories, session: Session, limits: Limits) -> None:
        self._directories = directories
        self._session = session
        self._limits = limits

    # ---- looking

    def read_file(self, path: PathArgument) -> Answer[FileRead]:
        """Read a whole file. Of a binary file: its type, size and hash."""
        files, found = self._read(path)
        content = found.bytes
        binary = is_binary(content)
        kind = mimetypes.guess_type(found.path)[0] or ("application/octet-stream" if binary else "text/plain")
        file_hash = _sha256(content)
        if binary:
            text, utf8 = "", False
            said = f"Binary file: {kind}, {len(content)} bytes, SHA-256 {file_hash}"
        else:
            text, utf8 = decoded(content)
            said = text
        return Answer(
            content=FileRead(
                path=_absolute(files, found.path),
                content=text,
                binary=binary,
                utf8=utf8,
                type=kind,
                size=len(content),
                file_hash=file_hash,
            ),
            text=said,
            notes=() if utf8 or binary else (_NOT_UTF8,),
        )

    def read_text_file(self, path: PathArgument) -> Answer[TextRead]:
        """Read a text file with a tag on each line: `{line}:{tag}|{content}`."""
        files, found = self._read(path)
        content = found.bytes
        if is_binary(content):
            raise Failure(Kind.BINARY_FILE, f"Cannot read binary file as text: {shown(path)}", path=path)
        lines = split_lines(content)
        tagged = []
        for number, line in enumerate(lines, 1):
            bare = line.removesuffix(b"\n").removesuffix(b"\r")
            tagged.append(hashline(number, line, bare.decode("utf-8", "backslashreplace")) + "\n")
        utf8 = decoded(content)[1]
        text = "".join(tagged)
        return Answer(
            content=TextRead(
                path=_absolute(files, found.path),
                content=text,
                file_hash=_sha256(content),
                lines=len(lines),
                line_endings=line_endings(content),
                final_newline=content.endswith(b"\n"),
                utf8=utf8,
            ),
            text=text,
            notes=(f"file_hash: {_sha256(content)}", *(() if utf8 else (_NOT_UTF8,))),
        )

    def list_directory(self, path: PathArgument) -> Answer[DirectoryListed]:
        """List the names in a directory, with their types and sizes."""
        with _telling(path):
            files = self._directories.files_of(path)
            entries = [
                ListedEntry(name=shown(entry.name), type=entry.kind, size=entry.size)
                for entry in files.list_directory(path)
            ]
            place = _absolute(files, files.relative(path))
        marks = {"file": "[FILE]", "directory": "[DIR]", "symlink": "[LINK]"}
        return Answer(
            content=DirectoryListed(path=place, entries=entries),
            text="\n".join(f"{marks.get(entry.type, '[OTHER]')} {one_line(entry.name)}" for entry in entries)
            or "The directory is empty.",
        )

    # ---- changing

    def create_directory(self, path: PathArgument) -> Answer[DirectoryMade]:
        """Create a directory and the ones above it. One that exists already is a success."""
        with _telling(path):
            files = self._directories.files_of(path)
            created = files.make_directory(path)
            place = _absolute(files, files.relative(path))
        said = "Created directory" if created else "Directory exists already"
        return Answer(content=DirectoryMade(path=place, created=created), text=f"{said}: {place}")

    def write_file(
        self,
        path: PathArgument,
        content: Annotated[str, "The whole new content, written as UTF-8"],
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[FileWritten]:
        """Create a file, with the directories above it, or replace its whole content.

        Refused if the file has changed since you last read or wrote it.
        """
        try:
            after = content.encode()
        except UnicodeEncodeError as error:
            message = f"Content holds half a character at position {error.start}, which UTF-8 can't encode"
            raise Failure(Kind.ENCODING, message, path=path, position=error.start) from error
        with self._changing("write_file", path, mcp_conversation_id) as (workspace, call):
            before = call.read(path) if call.exists(path) else None
            if before is not None:
                self._refuse_if_stale(workspace, before, path)
            call.write(path, after)
            name = call.read(path).path
            outcome = call.commit()
            self._session.saw((workspace.root, name), blob_id(after))
        operation = outcome.edits[0].edit.operation.value if outcome.edits else "none"
        place = _absolute(workspace, name)
        added, removed = _line_counts(outcome)
        verb = {"create": "Created", "none": "Nothing to change in"}.get(operation, "Replaced")
        return Answer(
            content=FileWritten(
                path=place,
                operation=operation,
                edit=_number(outcome),
                lines_added=added,
                lines_removed=removed,
                file_hash=_sha256(after),
                mcp_conversation_id=outcome.conversation,
            ),
            text=f"{verb} {place} (+{added} -{removed} lines)",
            notes=_conversation_notes(outcome),
        )

    def edit_file_diff(
        self,
        path: PathArgument,
        diff: Annotated[str, "Unified diff of this one file, with context lines and exact counts"],
        *,
        dry_run: Annotated[bool, "Only say whether it would apply"] = False,
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[DiffEdited]:
        """Apply a unified diff to a file: every context and removed line must be in it exactly, or nothing changes."""
        patch = _patch(diff)

        def change(before: bytes) -> Applied:
            match apply_patch(before, patch):
                case Applied() as applied:
                    return applied
                case ContextMismatch() as refusal:
                    raise refusals.context_mismatch(refusal)
                case AmbiguousContext() as refusal:
                    raise refusals.ambiguous_context(refusal)
                case outcome:
                    assert_never(outcome)

        edited = self._edited("edit_file_diff", path, mcp_conversation_id, change, dry_run=dry_run)
        offsets = list(edited.made.moved)
        hunks = len(patch.hunks)
        said = f"{'Would apply' if dry_run else 'Applied'} {hunks} hunk{'s' if hunks > 1 else ''} to {edited.place}"
        moved = [f"Hunk {n} fits {offset:+d} lines away." for n, offset in enumerate(offsets, 1) if offset]
        return Answer(
            content=DiffEdited(
                path=edited.place,
                applied=True,
                dry_run=dry_run,
                edit=edited.number,
                hunks_applied=hunks,
                hunk_offsets=offsets,
                lines_added=patch.added,
                lines_removed=patch.removed,
                changed_since_read=edited.changed_since_read,
                file_hash=_sha256(edited.made.content),
                mcp_conversation_id=edited.conversation or mcp_conversation_id,
            ),
            text=f"{said} (+{patch.added} -{patch.removed} lines)",
            notes=(*moved, *edited.notes),
        )

    def multi_edit_text_file(
        self,
        path: Annotated[str, "Absolute path to the file"],
        edits: Annotated[list[EditOp], "Array of edit operations to apply sequentially"],
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[MultiEdited]:
        """Apply multiple string replacement edits to a file with cumulative diff.

        Each old_string must occur exactly once when its turn comes; all edits apply, or none does.
        """
        if not PurePath(path).is_absolute():
            raise not_absolute(path)
        if not edits:
            raise Failure(Kind.INVALID_REQUEST, "Edits array cannot be empty")
        replacements = [_replacement(index, edit) for index, edit in enumerate(edits)]

        def change(before: bytes) -> Edited:
            match apply_edits(before, replacements):
                case Edited() as edited:
                    return edited
                case MissingString() as refusal:
                    raise refusals.missing_string(refusal, edits[refusal.index].old_string)
                case AmbiguousString() as refusal:
                    raise refusals.ambiguous_string(refusal, edits[refusal.index].old_string)
                case EditsOverlap() as refusal:
                    raise refusals.edits_overlap(refusal)
                case outcome:
                    assert_never(outcome)

        edited = self._edited("multi_edit_text_file", path, mcp_conversation_id, change)
        diff = unified_diff(
            edited.before.bytes,
            edited.made.content,
            path_before=edited.before.path,
            path_after=edited.before.path,
            hunks=edited.hunks,
        ).decode("utf-8", "backslashreplace")
        ranges = enumerate(edited.made.line_ranges)
        return Answer(
            content=MultiEdited(
                diff=diff,
                applied_count=len(edits),
                line_ranges=[LineRangeOfEdit(edit_index=i, start=r.start, end=r.end) for i, r in ranges],
                edit=edited.number,
                changed_since_read=edited.changed_since_read,
                mcp_conversation_id=edited.conversation,
            ),
            text=diff or f"Nothing to change in {edited.place}",
            notes=edited.notes,
        )

    def move_file(
        self,
        source: PathArgument,
        destination: Annotated[str, "Where to; nothing may be there yet"],
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[FileMoved]:
        """Move or rename a file within its allowed directory. Never overwrites."""
        with _telling(destination):
            target = self._directories.workspace_of(destination)
        with self._changing("move_file", source, mcp_conversation_id, destination) as (workspace, call):
            if target is not workspace:
                raise Failure(
                    Kind.INVALID_REQUEST,
                    f"Cannot move from one allowed directory to another: {shown(source)} to {shown(destination)}",
                    hint="Write the file there and delete it here.",
                )
            before = call.read(source).path
            call.move(source, destination)
            after = call.read(destination).path
            outcome = call.commit()
            self._session.moved((workspace.root, before), (workspace.root, after))
        moved = FileMoved(
            source=_absolute(workspace, before),
            destination=_absolute(workspace, after),
            edit=_number(outcome),
            mcp_conversation_id=outcome.conversation,
        )
        return Answer(
            content=moved, text=f"Moved {moved.source} to {moved.destination}", notes=_conversation_notes(outcome)
        )

    def delete_file(self, path: PathArgument, mcp_conversation_id: ConversationArgument = "") -> Answer[FileDeleted]:
        """Delete a file. Refused if the file has changed since you last read or wrote it."""
        with self._changing("delete_file", path, mcp_conversation_id) as (workspace, call):
            before = call.read(path)
            self._refuse_if_stale(workspace, before, path)
            call.delete(path)
            outcome = call.commit()
            self._session.saw((workspace.root, before.path), None)
        place = _absolute(workspace, before.path)
        deleted = FileDeleted(path=place, edit=_number(outcome), mcp_conversation_id=outcome.conversation)
        return Answer(content=deleted, text=f"Deleted {place}", notes=_conversation_notes(outcome))

    # ---- inside

    def _read(self, path: str) -> tuple[Files, Content]:
        with _telling(path):
            files = self._directories.files_of(path)
            found = files.read(path, limit=self._limits.max_file_bytes)
        self._session.saw((files.root, found.path), found.blob)
        return files, found

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
        with _telling(path, *more_paths):
            workspace = self._directories.workspace_of(path)
            with workspace.call(info) as call:
                yield workspace, call

    def _edited(
        self, tool: str, path: str, conversation: str, change: Callable[[bytes], MadeT], *, dry_run: bool = False
    ) -> "_EditedFile[MadeT]":
        """Put a text file through `change`, which says what it makes of the bytes and where."""
        outcome = None
        with self._changing(tool, path, conversation) as (workspace, call):
            before = call.read(path)
            if len(before.bytes) > self._limits.max_file_bytes:
                raise FileTooLarge(path, len(before.bytes), self._limits.max_file_bytes)
            if is_binary(before.bytes):
                raise Failure(Kind.BINARY_FILE, f"Cannot edit binary file: {shown(path)}", path=path)
            key = (workspace.root, before.path)
            changed = self._session.knows(key, before.blob) is Knowledge.STALE
            made = change(before.bytes)
            hunks = hunks_from_spans(before.bytes, made.content, made.spans)
            if not dry_run:
                call.write(path, made.content, hunks=hunks, operation=Operation.EDIT)
                outcome = call.commit()
                if not changed:
                    self._session.saw(key, blob_id(made.content))
        return _EditedFile(
            place=_absolute(workspace, before.path),
            before=before,
            made=made,
            hunks=hunks,
            outcome=outcome,
            changed_since_read=changed,
        )

    def _refuse_if_stale(self, workspace: Workspace, found: Content, path: str) -> None:
        if self._session.knows((workspace.root, found.path), found.blob) is Knowledge.STALE:
            raise refusals.stale(path, _sha256(found.bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class _EditedFile(Generic[MadeT]):
    """What an edit of a text file came to."""

    place: str
    before: Content
    made: MadeT
    hunks: Sequence[Hunk]
    outcome: CallOutcome | None  # None: a dry run
    changed_since_read: bool

    @property
    def number(self) -> int:
        return 0 if self.outcome is None else _number(self.outcome)

    @property
    def conversation(self) -> str:
        return "" if self.outcome is None else self.outcome.conversation

    @property
    def notes(self) -> tuple[str, ...]:
        changed = (_CHANGED,) if self.changed_since_read else ()
        return (*changed, *(() if self.outcome is None else _conversation_notes(self.outcome)))


@contextmanager
def _telling(*paths: str) -> Iterator[None]:
    """Turn the store's and the system's errors into failures that speak of `paths` as the client spelt them."""
    try:
        yield
    except (CasError, OSError) as error:
        raise failure_of(error, *paths) from error


def _patch(diff: str) -> FilePatch:
    """Return the patch of an existing file that `diff` spells. Raises Failure."""
    try:
        patch = parse_patch(diff)
    except InvalidPatch as refusal:
        raise refusals.invalid_patch(refusal) from refusal
    if patch.source is None:
        raise refusals.invalid_patch(InvalidPatch("it creates a file; use write_file"))
    if patch.target is None:
        raise refusals.invalid_patch(InvalidPatch("it deletes the file; use delete_file"))
    return patch


def _replacement(index: int, edit: EditOp) -> Replacement:
    """Return an edit in bytes. Raises Failure."""
    if not edit.old_string:
        raise Failure(Kind.INVALID_REQUEST, f"Edit {index}: old_string cannot be empty", edit_index=index)
    try:
        return Replacement(old=edit.old_string.encode(), new=edit.new_string.encode())
    except UnicodeEncodeError as error:
        message = f"Edit {index} holds half a character, which UTF-8 can't encode"
        raise Failure(Kind.ENCODING, message, edit_index=index) from error


def _absolute(workspace: Files | Workspace, name: str) -> str:
    return shown(str(PurePath(workspace.root, name)))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _number(outcome: CallOutcome) -> int:
    return outcome.edits[0].seq if outcome.edits else 0


def _line_counts(outcome: CallOutcome) -> tuple[int, int]:
    return sum(view.edit.added for view in outcome.edits), sum(view.edit.removed for view in outcome.edits)


def _conversation_notes(outcome: CallOutcome) -> tuple[str, ...]:
    if not outcome.new_conversation:
        return ()
    return (f"New conversation. Pass mcp_conversation_id={outcome.conversation} with your further changes.",)
