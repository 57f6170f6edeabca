"""Create, write, edit, move and delete files; each tool makes one tracked call.

A method's signature is its tool's input, its docstring is the description that a model reads, and the Answer that it
returns has the structured content and the text of a success. Failures are raised.
"""

import functools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Final, Literal, assert_never

from mcptools.answers.edits import (
    AnchorEdited,
    Answer,
    DiffEdited,
    DirectoryMade,
    FileDeleted,
    FileMoved,
    FileWritten,
    LineRangeOfEdit,
    MovedAnchor,
    MultiEdited,
)
from mcptools.answers.paging import page_of
from mcptools.edit.anchored import (
    Anchor,
    AnchorAmbiguous,
    AnchoredEdit,
    AnchorMissing,
    EndBeforeStart,
    Op,
    OperationsOverlap,
    Placed,
    TaggedContent,
    apply_operations,
    parse_anchor,
    parse_range,
    split_content_lines,
)
from mcptools.edit.display import cut, shown
from mcptools.edit.exact import AmbiguousString, Edited, EditsOverlap, MissingString, Replacement, apply_edits
from mcptools.edit.file_text import FileText, in_encoding_of
from mcptools.edit.hashline import hashlines_around
from mcptools.edit.patch_parser import InvalidPatch, parse_patch
from mcptools.edit.string_places import PLACES_NOTE, encode_places
from mcptools.edit.unified_diff import FilePatch
from mcptools.files.workspaces import not_absolute
from mcptools.model import refusals
from mcptools.model.cancellation import checkpoint
from mcptools.model.failures import Failure, FailureKind
from mcptools.tools.calls.notes import UNCHANGED, edit_number, nothing_to_change, outcome_notes, turned_round
from mcptools.tools.calls.text_edits import EditedFile, TextEdits
from mcptools.tools.calls.tracked_calls import TrackedCalls, existing_file
from mcptools.tools.context import (
    ConversationArgument,
    PathArgument,
    RebaseArgument,
    ToolContext,
    absolute,
    converting_errors,
    sha256,
)
from mcptools.tools.patching import applied, placement_notes
from objstore import CallOutcome, FileExists, FileMissing, FileTooLarge, split_lines, unified_diff

__all__ = ["AnchorOp", "EditOp", "EditingTools"]


_MAX_SHOWN: Final = 200
"""How many of the lines that an edit named or changed are shown, each with the lines around it."""

_LONGEST_SHOWN: Final = 2000
"""Characters of each of these lines. They are shown for their tags: the model has read or written them before."""

_NOT_ALL_SHOWN: Final = "Not all lines around the changes fit in an answer; read the file for the others."


@dataclass(frozen=True, slots=True, kw_only=True)
class EditOp:
    """One exact-string edit, as a client sends it."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # pydantic reads it: an unknown field is refused

    old_string: str = field(metadata={"description": "Exact string to find and replace"})
    new_string: str = field(metadata={"description": "Replacement string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorOp:
    """One operation on tagged lines, as a client sends it."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # as for EditOp

    op: Literal["replace", "replace_range", "insert_after", "insert_before", "delete", "delete_range"] = field(
        metadata={"description": "What to do"}
    )
    anchor: str = field(metadata={"description": "The line, or the first of a range, as `line:tag`, e.g. `2:f1`"})
    end_anchor: str = field(default="", metadata={"description": "The last line of a range"})
    content: str = field(default="", metadata={"description": "New lines, without tags"})


class EditingTools:
    """The tools that change files. Its methods may run on several threads at once."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._calls = TrackedCalls(context)
        self._edits = TextEdits(context, self._calls)

    def create_directory(self, path: PathArgument) -> Answer[DirectoryMade]:
        """Create an empty directory and the missing ones above it. New files don't need this."""
        with converting_errors(path):
            files = self._context.directories.files_of(path)
            created = files.make_directory(path)
            place = absolute(files, files.relative(path))
        summary = "Created directory" if created else "Directory exists already"
        return Answer(content=DirectoryMade(path=place, created=created), text=f"{summary}: {place}")

    def write_file(
        self,
        path: PathArgument,
        content: Annotated[str, "The whole new content, as UTF-8"],
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[FileWritten]:
        """Create a file, with the directories above it, or replace its whole content.

        For a change of a part, prefer an edit tool. Refused if it has changed since you last read or wrote it.
        """
        try:
            after = content.encode()
        except UnicodeEncodeError as error:
            message = f"Content contains half a surrogate pair at position {error.start}, which UTF-8 can't encode"
            raise Failure(FailureKind.ENCODING, message, path=path, position=error.start) from error

        def precheck() -> None:
            with suppress(FileMissing):
                self._calls.precheck(path, replaces=True)

        turned: tuple[str, ...] = ()
        with self._calls.hold("write_file", path, mcp_conversation_id, precheck=precheck) as (workspace, call):
            existing = existing_file(workspace, call, path)
            if existing is not None:
                self._calls.refuse_if_stale(existing)
                self._calls.refuse_if_partly_seen(existing)
                with suppress(FileTooLarge):
                    before = existing.content()
                    after = in_encoding_of(before, after)
                    turned = turned_round(before, after)
            call.write(path, after)
            written = call.read(path)
            outcome = self._calls.commit(workspace, call)
            self._context.session.saw((workspace.root, written.path), written.blob, whole=True)
        operation = outcome.edits[0].edit.operation.value if outcome.edits else "none"
        place = absolute(workspace, written.path)
        added, removed = _line_counts(outcome)
        done = f"{'Created' if operation == 'create' else 'Replaced'} {place}"
        return Answer(
            content=FileWritten(
                path=place,
                operation=operation,
                edit=edit_number(outcome),
                lines_added=added,
                lines_removed=removed,
                file_hash=sha256(after),
                mcp_conversation_id=outcome.conversation,
            ),
            text=f"{done if outcome.edits else nothing_to_change(place)} (+{added} -{removed} lines)",
            notes=(*turned, *(() if outcome.edits else (UNCHANGED,)), *outcome_notes(outcome)),
        )

    def edit_file_diff(
        self,
        path: PathArgument,
        diff: Annotated[str, "Unified diff of this one file, with context lines and exact counts"],
        *,
        dry_run: Annotated[bool, "Only report whether it would apply"] = False,
        rebase: RebaseArgument = False,
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[DiffEdited]:
        """Apply a unified diff to a file: every context and removed line must match exactly, or nothing changes."""
        patch = _patch(diff)
        hunks = len(patch.hunks)
        edited = self._edits.apply(
            "edit_file_diff",
            path,
            mcp_conversation_id,
            lambda before: applied(before, patch),
            searches=hunks,
            dry_run=dry_run,
            rebase=rebase,
        )
        offsets = list(edited.made.moved)
        summary = f"{'Would apply' if dry_run else 'Applied'} {hunks} hunk{'s' if hunks > 1 else ''} to {edited.place}"
        summary = f"{summary} (+{patch.added} -{patch.removed} lines)"
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
                rebased=edited.rebased,
                file_hash=sha256(edited.content),
                mcp_conversation_id=edited.conversation or mcp_conversation_id,
            ),
            text=nothing_to_change(edited.place) if edited.is_unchanged else summary,
            notes=(
                *placement_notes(patch, offsets),
                *edited.notes,
                *(self._edits.unwritable_notes(path) if dry_run else ()),
            ),
        )

    def multi_edit_text_file(
        self,
        path: Annotated[str, "Absolute path to the file"],
        edits: Annotated[list[EditOp], "Array of edit operations to apply sequentially"],
        *,
        rebase: RebaseArgument = False,
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[MultiEdited]:
        """Apply multiple string replacement edits to a file with cumulative diff.

        The way to change parts of an existing file, in one place or many. Each old_string must occur exactly once when
        its turn comes; all edits apply, or none does.
        """
        if not path.startswith("/"):
            raise not_absolute(path)
        if not edits:
            raise Failure(FailureKind.INVALID_REQUEST, "Edits array cannot be empty")
        replacements = [_replacement(index, edit) for index, edit in enumerate(edits)]

        def change(before: FileText) -> Edited:
            meant = [Replacement(old=before.as_meant(each.old), new=before.as_meant(each.new)) for each in replacements]
            match apply_edits(before.lines, meant, bridges=True, between=checkpoint):
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

        def places(edited: EditedFile[Edited]) -> dict[str, str]:
            written = encode_places(edited.made, edited.made.made, rebased=edited.rebased)
            return {PLACES_NOTE: written} if written else {}

        edited = self._edits.apply(
            "multi_edit_text_file",
            path,
            mcp_conversation_id,
            change,
            searches=len(edits),
            rebase=rebase,
            notes=places,
        )
        diff = unified_diff(
            edited.lines_before,
            edited.lines,
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
                rebased=edited.rebased,
                mcp_conversation_id=edited.conversation,
            ),
            text=cut(diff, self._context.limits.max_answer) or nothing_to_change(edited.place),
            notes=edited.notes,
        )

    def edit_text_file(
        self,
        path: PathArgument,
        file_hash: Annotated[str, "The file_hash that read_text_file returned"],
        operations: Annotated[list[AnchorOp], "All anchors refer to the file as you read it"],
        *,
        rebase: RebaseArgument = False,
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[AnchorEdited]:
        """Edit lines by the tags that read_text_file shows. All operations apply, or none.

        Refused, with fresh tags, if the file has changed since you read it, unless with rebase.
        """
        if not operations:
            raise Failure(FailureKind.INVALID_REQUEST, "Operations array cannot be empty")
        wanted = [_anchored_edit(index, operation) for index, operation in enumerate(operations)]
        anchors = [edit.anchor.line for edit in wanted] + [edit.end.line for edit in wanted if edit.end is not None]

        def change(before: FileText) -> Placed:
            if sha256(before.content) != file_hash.lower():
                fresh = _around(split_lines(before.lines), anchors[:_MAX_SHOWN])
                was_read = self._edits.has_seen(path, file_hash)
                raise refusals.stale_anchors(path, sha256(before.content), fresh, given=file_hash, was_read=was_read)
            return _placed(before, wanted)

        edited = self._edits.apply(
            "edit_text_file", path, mcp_conversation_id, change, file_hash=file_hash, rebase=rebase
        )
        file_hash = sha256(edited.content)
        changed = [line for hunk in edited.hunks for line in range(hunk.new_start, hunk.new_end + 2)]
        changed = changed or [*anchors, *(line for _, _, line in edited.made.moved)]
        around = _around(split_lines(edited.lines), changed[:_MAX_SHOWN], margin=1).split("\n")[:-1]
        page = page_of(around, lambda line: len(line) + 1, offset=0, limit=0, budget=self._context.limits.max_answer)
        fresh = "".join(f"{line}\n" for line in page.items)
        added = sum(hunk.new_count for hunk in edited.hunks)
        removed = sum(hunk.old_count for hunk in edited.hunks)
        moved = [MovedAnchor(operation_index=i, anchor=str(a), line=line) for i, a, line in edited.made.moved]
        summary = f"Edited {edited.place} (+{added} -{removed} lines)"
        return Answer(
            content=AnchorEdited(
                path=edited.place,
                edit=edited.number,
                applied_count=len(operations),
                moved_anchors=moved,
                lines_added=added,
                lines_removed=removed,
                content=fresh,
                rebased=edited.rebased,
                file_hash=file_hash,
                mcp_conversation_id=edited.conversation,
            ),
            text=f"{nothing_to_change(edited.place) if edited.is_unchanged else summary}. Now:\n{fresh}",
            notes=(
                f"file_hash: {file_hash}",
                *(f"Anchor {anchor.anchor} was found on line {anchor.line}." for anchor in moved),
                *((_NOT_ALL_SHOWN,) if page.next_offset else ()),
                *edited.notes,
            ),
        )

    def move_file(
        self,
        source: PathArgument,
        destination: Annotated[str, "The new path, which must not exist"],
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[FileMoved]:
        """Move or rename a file within its allowed directory. Never overwrites."""
        with converting_errors(destination):
            target = self._context.directories.files_of(destination).root

        def precheck() -> None:
            self._calls.precheck(source, stale=False)
            files = self._context.directories.files_of(destination)
            files.free_space(destination)  # raises where nothing may be written
            with suppress(FileMissing):
                files.facts(destination)
                raise FileExists(destination)

        with self._calls.hold("move_file", source, mcp_conversation_id, destination, precheck=precheck) as (
            workspace,
            call,
        ):
            if target != workspace.root:
                raise Failure(
                    FailureKind.INVALID_REQUEST,
                    f"Cannot move from one allowed directory to another: {shown(source)} to {shown(destination)}",
                    hint="Write the file there and delete it here.",
                )
            call.move(source, destination)
            before, after = call.place(source), call.place(destination)
            outcome = self._calls.commit(workspace, call)
            self._context.session.moved((workspace.root, before), (workspace.root, after))
        moved = FileMoved(
            source=absolute(workspace, before),
            destination=absolute(workspace, after),
            edit=edit_number(outcome),
            mcp_conversation_id=outcome.conversation,
        )
        return Answer(content=moved, text=f"Moved {moved.source} to {moved.destination}", notes=outcome_notes(outcome))

    def delete_file(self, path: PathArgument, mcp_conversation_id: ConversationArgument = "") -> Answer[FileDeleted]:
        """Delete a file. Refused if it has changed since you last read or wrote it."""
        precheck = functools.partial(self._calls.precheck, path)
        with self._calls.hold("delete_file", path, mcp_conversation_id, precheck=precheck) as (workspace, call):
            existing = existing_file(workspace, call, path)
            if existing is not None:
                self._calls.refuse_if_stale(existing)
            call.delete(path)
            outcome = self._calls.commit(workspace, call)
            name = call.place(path)
            self._context.session.saw((workspace.root, name), None)
        place = absolute(workspace, name)
        deleted = FileDeleted(path=place, edit=edit_number(outcome), mcp_conversation_id=outcome.conversation)
        return Answer(content=deleted, text=f"Deleted {place}", notes=outcome_notes(outcome))


def _patch(diff: str) -> FilePatch:
    """Return the patch in `diff`, which has to be of one existing file. Raises Failure."""
    try:
        patch = parse_patch(diff, correct=True, between=checkpoint)
    except InvalidPatch as refusal:
        raise refusals.invalid_patch(refusal) from refusal
    if patch.source is None:
        raise refusals.invalid_patch(InvalidPatch("it creates a file; use write_file"))
    if patch.target is None:
        raise refusals.invalid_patch(InvalidPatch("it deletes the file; use delete_file"))
    return patch


def _around(lines: Sequence[bytes], wanted: Sequence[int], *, margin: int = 2) -> str:
    """Return the lines with these numbers, and `margin` lines above and below each, as hashlines; long ones are cut."""
    return hashlines_around(lines, wanted, before=margin, after=margin, longest=_LONGEST_SHOWN)


def _placed(text: FileText, wanted: Sequence[AnchoredEdit]) -> Placed:
    """Return the result of anchored edits of a file's lines. Raises Failure."""
    before = text.lines
    wanted = [replace(edit, lines=text.lines_meant(edit.lines)) for edit in wanted]
    match apply_operations(before, wanted, between=checkpoint):
        case Placed() as placed:
            return placed
        case AnchorMissing() as refusal:
            raise refusals.anchor_missing(refusal, _around(split_lines(before), [refusal.anchor.line]))
        case AnchorAmbiguous() as refusal:
            near = _around(split_lines(before), [refusal.anchor.line, *refusal.lines], margin=1)
            raise refusals.anchor_ambiguous(refusal, near)
        case EndBeforeStart() as refusal:
            raise refusals.end_before_start(refusal)
        case OperationsOverlap() as refusal:
            raise refusals.operations_overlap(refusal)
        case TaggedContent() as refusal:
            raise refusals.tagged_content(refusal)
        case outcome:
            assert_never(outcome)


def _anchored_edit(index: int, operation: AnchorOp) -> AnchoredEdit:
    """Return an operation with its content as bytes. Raises Failure."""
    op = Op(operation.op)
    anchor, end = _anchors(index, op, operation)
    if bool(operation.content) is not op.has_content:
        summary = r"needs content (an empty line is \n)" if op.has_content else "takes no content"
        raise Failure(FailureKind.INVALID_REQUEST, f"Operation {index}: {op} {summary}", operation_index=index)
    try:
        lines = split_content_lines(operation.content.encode()) if op.has_content else ()
    except UnicodeEncodeError as error:
        message = f"Operation {index} contains half a surrogate pair, which UTF-8 can't encode"
        raise Failure(FailureKind.ENCODING, message, operation_index=index) from error
    return AnchoredEdit(op=op, anchor=anchor, end=end, lines=lines)


def _anchors(index: int, op: Op, operation: AnchorOp) -> tuple[Anchor, Anchor | None]:
    """Return the anchors of an operation; a range may be written into `anchor` alone. Raises Failure."""
    pair = parse_range(operation.anchor)
    if pair is not None and op.has_end and not operation.end_anchor:
        return pair
    if bool(operation.end_anchor) is not op.has_end:
        summary = "needs an end_anchor" if op.has_end else "takes no end_anchor"
        raise Failure(FailureKind.INVALID_REQUEST, f"Operation {index}: {op} {summary}", operation_index=index)
    if pair is not None and parse_anchor(operation.anchor) is None:
        summary = "takes a range as anchor, or an end_anchor, not both" if op.has_end else "takes one line, not a range"
        raise Failure(FailureKind.INVALID_REQUEST, f"Operation {index}: {op} {summary}", operation_index=index)
    return _anchor(index, operation.anchor), _anchor(index, operation.end_anchor) if op.has_end else None


def _anchor(index: int, spelling: str) -> Anchor:
    anchor = parse_anchor(spelling)
    if anchor is None:
        raise Failure(
            FailureKind.INVALID_REQUEST,
            f"Operation {index}: Not an anchor: {shown(spelling)!r}",
            hint="An anchor is a line's number and its tag, as read_text_file shows them: 2:f1",
            operation_index=index,
        )
    return anchor


def _replacement(index: int, edit: EditOp) -> Replacement:
    """Return an edit with its strings as bytes. Raises Failure."""
    if not edit.old_string:
        raise Failure(FailureKind.INVALID_REQUEST, f"Edit {index}: old_string cannot be empty", edit_index=index)
    try:
        return Replacement(old=edit.old_string.encode(), new=edit.new_string.encode())
    except UnicodeEncodeError as error:
        message = f"Edit {index} contains half a surrogate pair, which UTF-8 can't encode"
        raise Failure(FailureKind.ENCODING, message, edit_index=index) from error


def _line_counts(outcome: CallOutcome) -> tuple[int, int]:
    return sum(view.edit.added for view in outcome.edits), sum(view.edit.removed for view in outcome.edits)
