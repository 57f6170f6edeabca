"""Apply, validate, revert, generate and inspect unified diffs.

A patch may be about several files; the tools that work on one file use the part of the patch that names it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from itertools import groupby, pairwise
from pathlib import PurePath
from typing import Annotated, Final

from mcptools.answers.edits import Answer
from mcptools.answers.patches import (
    AffectedLineRange,
    FileInfo,
    GeneratedChanges,
    PatchApplied,
    PatchChanges,
    PatchGenerated,
    PatchInspected,
    PatchPreview,
    PatchReverted,
    PatchSummary,
    PatchValidated,
    RevertedChanges,
)
from mcptools.edit.display import shown
from mcptools.edit.file_text import UTF8_MARK, FileText, file_text
from mcptools.edit.patch_parser import InvalidPatch, joined_parts, parse_patches
from mcptools.edit.unified_diff import Applied, ContextMismatch, DiffOutcome, FilePatch, apply_patch
from mcptools.model import refusals
from mcptools.model.cancellation import checkpoint
from mcptools.model.failures import Failure, FailureKind
from mcptools.tools.calls.notes import not_applied
from mcptools.tools.calls.safety import SafetyChecks, refusing
from mcptools.tools.calls.text_edits import TextEdits
from mcptools.tools.calls.tracked_calls import TrackedCalls
from mcptools.tools.context import ConversationArgument, ToolContext, absolute
from objstore import BlobMissing, Content, EditFilter, blob_id, is_binary, unified_diff

__all__ = [
    "PatchTools",
    "applied",
    "changes_of",
    "corrections_of",
    "part_among",
    "part_for",
    "part_of",
    "parts_of",
    "placement_notes",
    "preview_of",
]

_UNPLACED: Final = (
    "apply_patch will refuse this patch: without context nothing says where its new lines belong. Make it with "
    "context_lines of 1 or more."
)

_MOST_NOTES: Final = 10
"""Parts of a patch that ask for more than changed lines and that notes describe."""

_MOST_CORRECTIONS: Final = 10
"""Hunks of a patch with corrected headers that notes describe."""

_NOTHING: Final = FilePatch(source="", target="", hunks=(), bridges=True)
"""The patch without hunks, which changes nothing."""


class PatchTools:
    """The patch tools."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._edits = TextEdits(context, TrackedCalls(context))
        self._safety = SafetyChecks(context)

    def apply_patch(
        self,
        file_path: Annotated[str, "Path to the file to patch (absolute or relative)"],
        patch: Annotated[str, "Unified diff patch content"],
        *,
        dry_run: Annotated[bool, "If true, validate the patch can be applied but don't modify the file"] = False,
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[PatchApplied]:
        """Apply a unified diff patch to a file (supports dry_run).

        Every context and removed line must be in the file exactly, or nothing changes.
        """
        name = PurePath(file_path).name
        with refusing(file_path=shown(file_path), applied=False):
            with _hinting_at_creation(patch, file_path):
                found = self._safety.checked(file_path, write=not dry_run, space=not dry_run)
            part = part_of(patch, self._place(file_path, found), self._safety.has)
            edited = self._edits.apply(
                "apply_patch",
                file_path,
                mcp_conversation_id,
                lambda before: applied(before, part),
                searches=len(part.hunks),
                dry_run=dry_run,
            )
            made = edited.made
            summary = f"Successfully applied patch to {shown(name)}"
            message = f"Patch can be applied to {shown(name)} (dry run)" if dry_run else summary
        return Answer(
            content=PatchApplied(
                file_path=shown(file_path),
                changes=PatchChanges(lines_added=part.added, lines_removed=part.removed, hunks_applied=len(part.hunks)),
                message=message,
                hunk_offsets=list(made.moved),
                edit=edited.number,
                changed_since_read=edited.changed_since_read,
                mcp_conversation_id=edited.conversation or mcp_conversation_id,
            ),
            text=None,
            notes=(
                *placement_notes(part, made.moved),
                *edited.notes,
                *(self._hindrances(file_path) if dry_run else ()),
            ),
        )

    def _made(self, path: str, now: FileText, part: FilePatch) -> Applied | None:
        """Return how a part was applied, if that was the last change of the file.

        None: it was not, or that is unknown because the change is not recorded or the bytes before it have expired.
        """
        workspace = self._context.directories.recorded_of(path)
        if workspace is None:
            return None
        for view in workspace.history.edits(EditFilter(path=path, newest_first=True, limit=1)):
            before, after = view.edit.before, view.edit.after
            if before is None or after is None or after.blob != blob_id(now.content):
                continue
            with suppress(BlobMissing):
                then = file_text(workspace.history.blob(before.blob))
                outcome = _outcome(then.lines, _for_text(part, then))
                if isinstance(outcome, Applied) and outcome.content == now.lines:
                    return outcome
        return None

    def _place(self, path: str, found: Content | None) -> str:
        """Return the absolute path of a file, or the path as it was given if the file could not be read (None)."""
        return path if found is None else absolute(self._context.directories.files_of(path), found.path)

    def _hindrances(self, path: str) -> tuple[str, ...]:
        """Return the note for a dry run on a file that could not be written, or ()."""
        try:
            self._safety.checked(path, write=True, space=True)
        except Failure as failure:
            return not_applied(str(failure))
        return ()

    def validate_patch(
        self,
        file_path: Annotated[str, "Path to the file to validate against"],
        patch: Annotated[str, "Unified diff patch content to validate"],
    ) -> Answer[PatchValidated]:
        """Check if a patch can be applied (read-only)."""
        path = shown(file_path)
        found: Content | None = None
        unsafe: Failure | None = None
        try:
            with _hinting_at_creation(patch, file_path):
                found = self._safety.checked(file_path)
        except Failure as failure:
            unsafe = failure
        try:
            part, doubt = _likely_part(patch, self._place(file_path, found), self._safety.has)
        except Failure as failure:
            raise (unsafe or failure).with_facts(file_path=path, valid=False) from failure
        try:
            if found is None:
                raise unsafe or Failure(FailureKind.INTERNAL, "a file was neither found nor refused")
            made = applied(file_text(found.bytes), replace(part, doubt=None))
            self._edits.changeable(file_path)
        except Failure as failure:
            hint = " ".join(filter(None, (failure.hint, *_wanted_headers([part], doubt or part.doubt))))
            raise Failure(failure.kind, str(failure), hint=hint, **failure.facts).with_facts(
                file_path=path,
                valid=True,
                can_apply=False,
                preview=asdict(preview_of(part, ())),
                reason=str(failure),
                message="Patch is valid but cannot be applied to this file",
            ) from failure
        validated = PatchValidated(file_path=path, preview=preview_of(part, made.moved))
        placed = placement_notes(part, made.moved) if doubt is None else _moves(made.moved)
        notes = (*_wanted_headers([part], doubt), *placed, *self._hindrances(file_path))
        return Answer(content=validated, text=None, notes=notes)

    def revert_patch(
        self,
        file_path: Annotated[str, "Path to the file to revert"],
        patch: Annotated[str, "The same patch that was previously applied"],
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[PatchReverted]:
        """Reverse a previously applied patch.

        Refused if the file has changed where the patch did.
        """
        with refusing(file_path=shown(file_path), reverted=False):
            found = self._safety.checked(file_path, write=True, space=True)
            # As its document's example has it, whose header counts more lines than there are: each such hunk must
            # be in the file as it was applied, and only once.
            part, _ = _likely_part(patch, self._place(file_path, found), self._safety.has)

            def reverted(now: FileText) -> Applied:
                return _reverted(now, part, self._made(file_path, now, part))

            edited = self._edits.apply(
                "revert_patch", file_path, mcp_conversation_id, reverted, searches=len(part.hunks)
            )
        message = f"Successfully reverted patch from {shown(PurePath(file_path).name)}"
        return Answer(
            content=PatchReverted(
                file_path=shown(file_path),
                changes=RevertedChanges(
                    lines_added=part.removed, lines_removed=part.added, hunks_reverted=len(part.hunks)
                ),
                message=message,
                hunk_offsets=list(edited.made.moved),
                edit=edited.number,
                changed_since_read=edited.changed_since_read,
                mcp_conversation_id=edited.conversation,
            ),
            text=None,
            notes=(*placement_notes(part, edited.made.moved), *edited.notes),
        )

    def generate_patch(
        self,
        original_file: Annotated[str, "Path to the original/old version of the file"],
        modified_file: Annotated[str, "Path to the modified/new version of the file"],
        context_lines: Annotated[int, "Number of context lines (default: 3)"] = 3,
    ) -> Answer[PatchGenerated]:
        """Generate a patch from two files. Nothing is written."""
        if context_lines < 0:
            raise Failure(FailureKind.INVALID_REQUEST, f"context_lines must not be negative: {context_lines}")
        before = self._version(original_file, "Original")
        after = self._version(modified_file, "Modified")
        texts = file_text(before), file_text(after)
        if texts[0].form is texts[1].form:  # otherwise the ends of lines are what differs
            before, after = texts[0].lines, texts[1].lines
        patch = unified_diff(
            before,
            after,
            path_before=PurePath(original_file).name,
            path_after=PurePath(modified_file).name,
            context=context_lines,
        ).decode()
        (part,) = parse_patches(patch, between=checkpoint) or (_NOTHING,)
        generated = PatchGenerated(
            original_file=shown(original_file),
            modified_file=shown(modified_file),
            patch=patch,
            changes=GeneratedChanges(lines_added=part.added, lines_removed=part.removed, hunks=len(part.hunks)),
        )
        lost = not context_lines and bool(part.hunks) and not isinstance(apply_patch(before, part), Applied)
        return Answer(content=generated, text=None, notes=(_UNPLACED,) if lost else ())

    def inspect_patch(self, patch: Annotated[str, "Unified diff patch content to analyze"]) -> Answer[PatchInspected]:
        """Analyze patch content (supports multi-file patches). No file is needed."""
        try:
            parts = parse_patches(patch, likely=True, between=checkpoint)
        except InvalidPatch as refusal:
            failure = refusals.invalid_patch(refusal)
            raise failure.with_facts(valid=False, message="Patch is not valid") from refusal
        files = [_file_info(part) for part in parts]
        inspected = PatchInspected(
            files=files,
            summary=PatchSummary(
                total_files=len(files),
                total_hunks=sum(file.hunks for file in files),
                total_lines_added=sum(file.lines_added for file in files),
                total_lines_removed=sum(file.lines_removed for file in files),
            ),
        )
        doubt = next((part.doubt for part in parts if part.doubt), None)
        return Answer(content=inspected, text=None, notes=(*_wanted_headers(parts, doubt), *_unsupported(parts)))

    def _version(self, path: str, which: str) -> bytes:
        """Return the bytes of a file from which a patch can be generated. Raises Failure."""
        try:
            content = self._safety.checked(path).bytes
        except Failure as failure:
            if failure.kind is not FailureKind.FILE_NOT_FOUND:
                raise
            raise Failure(failure.kind, f"{which} file not found: {shown(path)}") from failure
        if is_binary(content):  # by the store's own rule, which decides what a diff can show
            raise Failure(FailureKind.BINARY_FILE, f"Binary files are not supported: {shown(path)}")
        try:
            content.decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            message = f"File is not UTF-8 at line {line}: {shown(path)}"
            raise Failure(FailureKind.ENCODING, message, line=line) from error
        return content


def part_of(patch: str, place: str, has: Callable[[str], bool]) -> FilePatch:
    """Return the part of a patch that is for the file at `place`. `has`: as in `part_for`. Raises Failure."""
    return part_among(parts_of(patch), place, has)


def parts_of(patch: str) -> tuple[FilePatch, ...] | InvalidPatch:
    """Return a patch's part for each file, or why the patch is invalid."""
    try:
        return parse_patches(patch, correct=True, between=checkpoint)
    except InvalidPatch as refusal:
        return refusal


def _likely_part(patch: str, place: str, has: Callable[[str], bool]) -> tuple[FilePatch, InvalidPatch | None]:
    """Return the part of a patch that is for the file at `place`, for a tool that changes none. Raises Failure.

    Where hunk headers count wrong, each hunk ends where it probably does. With the part: why apply_patch refuses the
    patch because of these headers; None: it does not.
    """
    parts = parts_of(patch)
    if not isinstance(parts, InvalidPatch):
        return part_among(parts, place, has), None
    with suppress(InvalidPatch):
        return part_among(parse_patches(patch, likely=True, between=checkpoint), place, has), parts
    raise refusals.invalid_patch(parts)


def _wanted_headers(parts: Sequence[FilePatch], doubt: InvalidPatch | None) -> tuple[str, ...]:
    """Return the note about hunk headers that count wrong, or (). `doubt`: what apply_patch says of them."""
    if doubt is None:
        return ()
    wrong = sum(hunk.counted is not None for part in parts for hunk in part.hunks)
    which = "header" if wrong == 1 else f"headers of {wrong} hunks"
    return (f"apply_patch will want the right {which}. {doubt.hint or doubt}",)


def part_among(parts: tuple[FilePatch, ...] | InvalidPatch, place: str, has: Callable[[str], bool]) -> FilePatch:
    """Return the part that is for the file at `place`. `has`: as in `part_for`. Raises Failure."""
    try:
        if isinstance(parts, InvalidPatch):
            raise parts
        return part_for(parts, place, has)
    except InvalidPatch as refusal:
        raise refusals.invalid_patch(refusal) from refusal


@contextmanager
def _hinting_at_creation(patch: str, path: str) -> Iterator[None]:
    """Add a hint to the failure of a missing file if the patch is one that creates it."""
    try:
        yield
    except Failure as failure:
        parts = parts_of(patch) if failure.kind is FailureKind.FILE_NOT_FOUND and not failure.hint else ()
        if isinstance(parts, InvalidPatch) or not any(
            part.source is None and part.more is None and (len(parts) == 1 or _matched(part.names[1], path))
            for part in parts
        ):
            raise
        hint = "The patch creates a file: use write_file."
        raise Failure(failure.kind, str(failure), hint=hint, **failure.facts) from failure


def part_for(parts: Sequence[FilePatch], place: str, has: Callable[[str], bool]) -> FilePatch:
    """Return the part that is for the file at `place`: the only one, or the one whose name matches it best.

    A blank patch has a part without hunks. Parts of one file that only change its lines are one. A part that renames
    another file to this one counts as renamed once there is no such other file (`has` says whether a file is there):
    what is left of it are its lines. Raises InvalidPatch if no part or several parts match, and for a part that does
    more than change the lines of its file.
    """
    if not parts:
        return _NOTHING
    parts = joined_parts(_renamed(parts, place, has))
    part = parts[0]
    if len(parts) > 1:
        matched = [max(_matched(name, place) for name in part.names[part.is_copy :]) for part in parts]
        named = [part for part, count in zip(parts, matched, strict=True) if count and count == max(matched)]
        if len(named) != 1:
            count = "no part" if not named else f"{len(named)} parts"
            raise InvalidPatch(f"more than one file, and {count} for {PurePath(place).name}")
        part = named[0]
    if part.more is not None:
        raise _hinting_at_rename(part)
    if part.source is None:
        raise InvalidPatch("it creates a file; use write_file")
    if part.target is None:
        raise InvalidPatch("it deletes the file; use delete_file")
    return part


def _renamed(parts: Sequence[FilePatch], place: str, has: Callable[[str], bool]) -> Sequence[FilePatch]:
    """Return the parts of a patch that are left once a file was renamed to the one at `place`.

    Its former file, too, was renamed then: a part that says so is none of this file's.
    """
    comes = {part.names[1] for part in parts if part.source != part.target}  # so that a file there says nothing
    came = [
        part
        for part in parts
        if part.is_rename and _came(part, place, has if part.names[0] not in comes else lambda _: False)
    ]
    if not came:
        return parts
    left = [part for part in parts if not part.is_rename or not _matched(part.names[0], place)]
    changed = [
        replace(part, source=part.names[1], target=part.names[1], more=None, is_rename=False) if part in came else part
        for part in left
        if part.hunks or part not in came
    ]
    return changed if any(_matched(part.names[1], place) for part in changed) else parts


def _came(part: FilePatch, place: str, has: Callable[[str], bool]) -> bool:
    """Return whether a part renames a file to the one at `place`, and that file is gone."""
    source, target = part.names
    if _matched(target, place) <= _matched(source, place) or ".." in PurePath(source).parts:
        return False
    return not has(str(PurePath(*PurePath(place).parts[: -len(PurePath(target).parts)], source)))


def _hinting_at_rename(part: FilePatch) -> InvalidPatch:
    """Return the refusal of a part that asks for more than changed lines, with what to do for a rename."""
    refusal = part.more or InvalidPatch("it asks for more than changed lines")
    if part.is_rename:
        then = ", then apply the patch to that file" if part.hunks else ""
        refusal.hint = f"Rename it to {shown(part.names[1])} with move_file{then}."
    return refusal


def applied(text: FileText, part: FilePatch) -> Applied:
    """Return the result of applying a part of a patch to the lines of a file. Raises Failure."""
    if not part.hunks:
        return Applied(content=text.lines, spans=(), moved=())
    match _outcome(text.lines, _for_text(part, text)):
        case Applied() as made:
            return made
        case _ if part.doubt is not None:
            raise refusals.invalid_patch(part.doubt)
        case refusal:
            raise refusals.unplaced(refusal)


def _outcome(lines: bytes, part: FilePatch, *, believed: bool = True) -> DiffOutcome:
    """Return the result of applying a part to lines; a byte-order mark at their beginning may be missing in the part.

    A model that reads a file doesn't see the mark, and what it changes in the first line leaves it there.
    """
    outcome = apply_patch(lines, part, believed=believed, between=checkpoint)
    if isinstance(outcome, Applied) or not lines.startswith(UTF8_MARK):
        return outcome
    unmarked = apply_patch(lines.removeprefix(UTF8_MARK), part, believed=believed, between=checkpoint)
    if not isinstance(unmarked, Applied):
        return outcome
    skipped = len(UTF8_MARK)
    spans = tuple((a + skipped, b + skipped, c + skipped, d + skipped) for a, b, c, d in unmarked.spans)
    return replace(unmarked, content=UTF8_MARK + unmarked.content, spans=spans)


def _for_text(part: FilePatch, text: FileText) -> FilePatch:
    """Return a part with the ends of lines that are meant in a text.

    A patch of which the header's lines end in CRLF, too, got that on its way: as GNU patch does, it is taken for one
    with LF where the file has no CRLF.
    """
    if text.ends_in_cr:
        return part.split_at_cr
    is_lf = b"\n" in text.lines and b"\r\n" not in text.lines
    return part.in_lf if part.is_crlf and is_lf else part


def _reverted(text: FileText, part: FilePatch, made: Applied | None) -> Applied:
    """Return the result of applying the reverse of a part to the lines of a file. Raises Failure.

    `made`: how the part was applied; None: unknown, so the stated lines are not trusted.
    """
    if not part.hunks:
        return Applied(content=text.lines, spans=(), moved=())
    part = _for_text(part, text)
    if made is not None:
        part = replace(part.at(made.moved), later=part.later if made.in_turn else ())
    back = part.reverse
    outcome = _outcome(text.lines, back, believed=made is not None)
    if isinstance(outcome, Applied):
        bounds = [*pairwise((0, *back.later, len(back.hunks)))]
        moved = [lines for start, end in reversed(bounds) for lines in outcome.moved[start:end]]
        return replace(outcome, moved=tuple(moved) if made is None else made.moved)
    if part.doubt is not None:
        raise refusals.invalid_patch(part.doubt)
    not_utf8 = refusals.not_utf8(outcome) if isinstance(outcome, ContextMismatch) else None
    raise not_utf8 or refusals.cannot_revert(outcome)


def _matched(name: str, place: str) -> int:
    """Return how many path components a name in a patch shares with `place`, or 0 if it can't be that file's."""
    parts = PurePath(name).parts
    fits = ".." not in parts and PurePath(place).parts[-len(parts) :] == parts
    return len(parts) if fits else 0


def preview_of(part: FilePatch, moved: Sequence[int]) -> PatchPreview:
    """Return what `part` would change. `moved`: where its hunks fit; (): at the lines that they state."""
    lines = None
    if part.hunks:
        placed = (part.at(moved) if moved else part).hunks
        start, end = min(hunk.start for hunk in placed), max(hunk.start + len(hunk.old) for hunk in placed)
        lines = AffectedLineRange(start=start + 1, end=max(end, start + 1))
    return PatchPreview(
        lines_to_add=part.added, lines_to_remove=part.removed, hunks=len(part.hunks), affected_line_range=lines
    )


def changes_of(part: FilePatch) -> PatchChanges:
    """Return the counts of what applying `part` changes."""
    return PatchChanges(lines_added=part.added, lines_removed=part.removed, hunks_applied=len(part.hunks))


def _moves(moved: Sequence[int]) -> tuple[str, ...]:
    """Return the notes about hunks that fit at other lines than they state. `moved`: by how many lines, for each."""
    summary: list[str] = []
    first = 1
    for offset, hunks in groupby(moved):
        last = first + sum(1 for _ in hunks) - 1
        which = f"Hunk {first} fits" if first == last else f"Hunks {first} to {last} fit"
        if offset:
            summary.append(f"{which} {offset:+d} lines away.")
        first = last + 1
    return tuple(summary)


def placement_notes(part: FilePatch, moved: Sequence[int]) -> tuple[str, ...]:
    """Return the notes about hunks whose headers were wrong, in their counts or in their lines. `moved`: as Applied."""
    return (*corrections_of(part), *_moves(moved))


def corrections_of(part: FilePatch) -> tuple[str, ...]:
    """Return the notes about hunks whose headers counted their lines wrong, of the first such hunks."""
    corrections = [
        f"Corrected the header of hunk {number}: it counts {hunk.counted[0]} old and {hunk.counted[1]} new lines, and "
        f"there are {len(hunk.old)} and {len(hunk.new)}."
        for number, hunk in enumerate(part.hunks, 1)
        if hunk.counted is not None
    ]
    more = len(corrections) - _MOST_CORRECTIONS
    return (*corrections[:_MOST_CORRECTIONS], *((f"And so in {more} more hunks.",) if more > 0 else ()))


def _unsupported(parts: Sequence[FilePatch]) -> tuple[str, ...]:
    """Return the notes about parts that ask for more than changed lines, of the first such parts."""
    notes = [_unsupported_note(part) for part in parts if part.more is not None]
    more = len(notes) - _MOST_NOTES
    return (*notes[:_MOST_NOTES], *((f"And so are {more} more parts.",) if more > 0 else ()))


def _unsupported_note(part: FilePatch) -> str:
    source, target = map(shown, part.names)
    if part.is_rename and part.hunks:
        return f"{target}: rename {source} to it with move_file; then apply_patch changes its lines."
    return f"{target if part.target is not None else source}: no patch tool applies this part; {_reason(part.more)}."


def _reason(refusal: InvalidPatch | None) -> str:
    return shown(str(refusal).removeprefix("Invalid patch format: "))


def _file_info(part: FilePatch) -> FileInfo:
    source, target = map(shown, part.names)
    return FileInfo(
        source=source, target=target, hunks=len(part.hunks), lines_added=part.added, lines_removed=part.removed
    )
