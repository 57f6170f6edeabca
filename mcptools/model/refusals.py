"""Word the failures of edits that do not apply to a file, so that a model can correct its call."""

import re
from collections.abc import Collection
from typing import Final, assert_never

from mcptools.edit.anchored import (
    EMPTY_TEXT,
    AnchorAmbiguous,
    AnchorMissing,
    EndBeforeStart,
    OperationsOverlap,
    TaggedContent,
)
from mcptools.edit.display import decoded, shown
from mcptools.edit.exact import AmbiguousString, EditsOverlap, MissingString
from mcptools.edit.file_text import why_not_utf16
from mcptools.edit.hashline import hashlines_around
from mcptools.edit.nearest_text import Nearest, nearest
from mcptools.edit.patch_parser import InvalidPatch
from mcptools.edit.unified_diff import AmbiguousContext, ContextMismatch, HunksOverlap
from mcptools.model.cancellation import checkpoint
from mcptools.model.failures import Failure, FailureKind, LazyFailure
from objstore import RebaseConflict, split_lines

__all__ = [
    "ambiguous_context",
    "ambiguous_string",
    "anchor_ambiguous",
    "anchor_missing",
    "base_version_lost",
    "cannot_revert",
    "context_mismatch",
    "edits_overlap",
    "end_before_start",
    "invalid_patch",
    "missing_string",
    "not_utf8",
    "nothing_to_undo",
    "operations_overlap",
    "rebase_conflict",
    "stale",
    "stale_anchors",
    "tagged_content",
    "unread",
]

_HASH: Final = re.compile("[0-9a-fA-F]{64}")

_TOO_LARGE: Final = "It is too large to be read here"

_MAX_SHOWN: Final = 50
"""Lines that a refusal shows of those that a change conflicts with."""

_LONGEST_SHOWN: Final = 500
"""Characters of each of these lines: the length of a refusal is limited, and one line must not use it all."""

_ESCAPED_BYTE: Final = (
    r"In what you were shown, \xNN is a byte that is not UTF-8, and no string can contain it: leave it out of "
    "old_string."
)

_NOT_UTF16: Final = "It begins with the byte-order mark of UTF-16, but is no text in it: "

_EMPTY: Final = "The file is empty: use write_file."

_NO_SESSION: Final = (
    "This client has no session, because nothing distinguishes it from other clients of its program. Ask the person to "
    "give it an address of its own: the server's address with a name at its end that no other client uses, /mcp/NAME."
)

_NO_LINE: Final = f"The file is empty: only {EMPTY_TEXT} can be named, to insert or to replace."


def binary_file(message: str, path: str, content: bytes) -> Failure:
    """Return the failure of a tool that needs text."""
    why = why_not_utf16(content)
    hint = "" if why is None else f"{_NOT_UTF16}{why}."
    return Failure(FailureKind.BINARY_FILE, f"{message}: {shown(path)}", hint=hint, path=path)


def missing_string(refusal: MissingString, old_string: str) -> LazyFailure:
    """Return the failure of an exact edit whose string does not occur."""
    message = f"Edit {refusal.index}: String not found: {shown(old_string)}"

    def explain() -> Failure:
        hints = []
        facts: dict[str, object] = {}
        if refusal.index == 0 and not refusal.staged:
            hints.append(_EMPTY)
        if refusal.was_there:
            hints.append("It was there before this call; an earlier edit of the call changed it.")
        if r"\x" in old_string and old_string in decoded(refusal.staged)[0]:
            hints.append(_ESCAPED_BYTE)
        near = refusal.nearest(between=checkpoint)
        if near is not None:
            hints.append(str(near))
            facts["nearest"] = _facts(near)
        hint = shown(" ".join(hints))
        return Failure(FailureKind.STRING_NOT_FOUND, message, hint=hint, edit_index=refusal.index, **facts)

    return LazyFailure(FailureKind.STRING_NOT_FOUND, message, explain)


def ambiguous_string(refusal: AmbiguousString, old_string: str) -> Failure:
    """Return the failure of an exact edit whose string occurs more than once."""
    what = "Give more of the lines around the one that is meant."
    if refusal.overlaps:
        what = "There, its occurrences overlap: give all that they cover as one old_string."
    return Failure(
        FailureKind.STRING_AMBIGUOUS,
        f"Edit {refusal.index}: String appears {refusal.count} times: {shown(old_string)}",
        hint=f"It begins at {_lines(dict.fromkeys(refusal.lines))}. {what}",
        edit_index=refusal.index,
        count=refusal.count,
        lines=list(refusal.lines),
    )


def edits_overlap(refusal: EditsOverlap) -> Failure:
    """Return the failure of an exact edit whose old string includes only a part of what an earlier edit wrote."""
    return Failure(
        FailureKind.EDITS_CONFLICT,
        f"Edit {refusal.index} conflicts with edit {refusal.prior}",
        hint="Its old_string contains part of what that edit wrote, and more. Make one edit of the two.",
        edit_index=refusal.index,
        prior_index=refusal.prior,
    )


def invalid_patch(refusal: InvalidPatch) -> Failure:
    """Return the failure of a text that is not a valid unified diff."""
    return Failure(FailureKind.INVALID_PATCH, shown(str(refusal)), hint=refusal.hint, patch_line=refusal.line)


def context_mismatch(refusal: ContextMismatch) -> Failure:
    """Return the failure of a diff with a line that the file does not have."""
    expected = _quotable(refusal.expected)
    found = None if refusal.found is None else _quotable(refusal.found)
    seen = "the end of the file" if found is None else f"'{found}'"
    wanted = f"'{expected}'" if refusal.expected else "the end of the file"
    message = f"Context mismatch at line {refusal.line}: expected {wanted} but found {seen}"
    return Failure(
        FailureKind.CONTEXT_MISMATCH,
        message,
        hint=_mismatch_hint(refusal),
        line=refusal.line,
        hunk=refusal.hunk,
        patch_line=refusal.patch_line,
        expected=expected,
        found=found,
    )


def not_utf8(refusal: ContextMismatch) -> Failure | None:
    """Return the failure of a hunk at a line that is not UTF-8, which no diff can contain; None: the line is UTF-8."""
    found = refusal.found or b""
    if decoded(found)[1]:
        return None
    return Failure(
        FailureKind.ENCODING,
        f"File is not UTF-8 at line {refusal.line}, which the patch is about",
        hint=f"It is shown as '{_quotable(found)}', and no diff can contain it. Leave that line out of the patch.",
        line=refusal.line,
        hunk=refusal.hunk,
        patch_line=refusal.patch_line,
    )


def cannot_revert(refusal: ContextMismatch | AmbiguousContext | HunksOverlap) -> Failure:
    """Return the failure of a patch that can't be reverted."""
    failure = unplaced(refusal)
    message = "Cannot revert: file has been modified since patch was applied"
    if isinstance(refusal, ContextMismatch) and refusal.expected:
        found = "the end of the file" if refusal.found is None else f"'{_quotable(refusal.found)}'"
        expected = _quotable(refusal.expected)
        message = f"Cannot revert: context at line {refusal.line} has changed. Expected '{expected}' but found {found}"
    hint = failure.hint
    if isinstance(refusal, AmbiguousContext) and refusal.places:
        hint = f"What hunk {refusal.hunk} made is at {_lines(refusal.places)}. Edit the file where it was meant."
    return Failure(failure.kind, message, hint=hint, **failure.facts)


def unplaced(refusal: ContextMismatch | AmbiguousContext | HunksOverlap) -> Failure:
    """Return the failure of a diff with a hunk that has not one place in the file."""
    match refusal:
        case ContextMismatch():
            return not_utf8(refusal) or context_mismatch(refusal)
        case AmbiguousContext():
            return ambiguous_context(refusal)
        case HunksOverlap():
            return hunks_overlap(refusal)
        case other:
            assert_never(other)


def hunks_overlap(refusal: HunksOverlap) -> Failure:
    """Return the failure of a diff with two hunks that need the same line of the file."""
    return Failure(
        FailureKind.CONTEXT_MISMATCH,
        f"Hunks {refusal.prior} and {refusal.hunk} both fit at line {refusal.line}, which only one of them can have",
        hint="Join them into one hunk, or leave the shared lines out of one of them.",
        hunk=refusal.hunk,
        lines=[refusal.line],
    )


def ambiguous_context(refusal: AmbiguousContext) -> Failure:
    """Return the failure of a diff with a hunk that fits in several places."""
    if refusal.places:
        message = f"Context of hunk {refusal.hunk} matches more than once, and not at the stated line"
        hint = f"It matches at {_lines(refusal.places)}. Correct the line number, or give more context."
    else:
        message = f"Hunk {refusal.hunk} has no line that can be checked against the file"
        hint = "Give the lines around what it inserts as context."
    return Failure(FailureKind.CONTEXT_MISMATCH, message, hint=hint, hunk=refusal.hunk, lines=list(refusal.places))


def stale(path: str, file_hash: str, *, is_readable: bool = True) -> Failure:
    """Return the failure of a change that would overwrite changes that the model has not seen.

    `is_readable`: the file is small enough to be read with the tools.
    """
    return Failure(
        FailureKind.STALE_FILE,
        f"File has changed since it was last read or written here: {shown(path)}",
        hint="Read all of it again, so that no other change is lost, then decide."
        if is_readable
        else f"{_TOO_LARGE}, so other changes in it can't be seen. move_file keeps it under another name.",
        path=path,
        file_hash=file_hash,
    )


def nothing_to_undo(*, is_kept: bool) -> Failure:
    """Return the failure of an undo without a change. `is_kept`: the client has a session."""
    hint = "" if is_kept else _NO_SESSION
    message = "No edits have been applied to any file with this session."  # as its document words it
    return Failure(FailureKind.NOTHING_TO_UNDO, message, hint=hint)


def unread(
    path: str, file_hash: str, *, is_kept: bool = True, partly: bool = False, is_readable: bool = True
) -> Failure:
    """Return the failure of a change to a file that must be read first. `partly`: some of its lines were read.

    `is_kept`: the client has a session, without which nothing counts as read; `is_readable`: as for `stale`.
    """
    hint = "You have not read its current version."
    if not is_kept:
        hint = f"Nothing that you read counts as read. {_NO_SESSION}"
    elif not is_readable:
        hint = f"{_TOO_LARGE}: leave it to the person."
    elif partly:
        hint = "You have read a part of it: read all lines, or change the part."
    return Failure(
        FailureKind.STALE_FILE,
        f"File must be read before it is changed: {shown(path)}",
        hint=hint,
        path=path,
        file_hash=file_hash,
    )


def rebase_conflict(refusal: RebaseConflict, path: str, file_hash: str, now: bytes) -> Failure:
    """Return the failure of a change that can't be carried over to the current content, `now`."""
    last = refusal.start + refusal.count - 1
    there = f"lines {refusal.start}-{last}" if refusal.count > 1 else f"line {refusal.start}"
    was = f"{there} now" if refusal.count else f"they were deleted above line {refusal.start}"
    read = "where it inserts" if not refusal.read_count else f"line {refusal.read_start} as you read it"
    if refusal.read_count > 1:
        read = f"lines {refusal.read_start}-{refusal.read_start + refusal.read_count - 1} as you read it"
    shown_lines = [*range(refusal.start, last + 1)][:_MAX_SHOWN] or [refusal.start]
    fresh = hashlines_around(split_lines(now), shown_lines, longest=_LONGEST_SHOWN)
    return Failure(
        FailureKind.REBASE_CONFLICT,
        f"Part {refusal.hunk} of the change conflicts with what was done since you read {shown(path)}: {read} ({was})",
        hint=f"Nothing was changed. The file reads, around it:\n{fresh}" if fresh else "The file is empty now.",
        path=path,
        hunk=refusal.hunk,
        line=refusal.start,
        lines=refusal.count,
        file_hash=file_hash,
        content=fresh,
    )


def base_version_lost(path: str, file_hash: str) -> Failure:
    """Return the failure of a change that can't be carried over because the version it was made to is not kept."""
    return Failure(
        FailureKind.STALE_FILE,
        f"File has changed since it was last read or written here: {path}",
        hint="The version that you read is no longer kept. Read the file again, and make the change again.",
        path=path,
        file_hash=file_hash,
    )


def stale_anchors(path: str, file_hash: str, fresh: str, *, given: str, was_read: bool) -> Failure:
    """Return the failure of an edit by anchors in a file whose hash is not the `given` one.

    `was_read`: the session has read a version with that hash.
    """
    reads = f"It reads, around your anchors:\n{fresh}" if fresh else f"It is empty: its anchor is {EMPTY_TEXT}."
    message, hint = f"File has changed since you read it: {shown(path)}", ""
    if not was_read:
        message = f"file_hash is not that of the file, nor of a version that you have read: {shown(path)}"
        hint = "" if _HASH.fullmatch(given) else "A file_hash is 64 hex digits and nothing else. "
    return Failure(
        FailureKind.STALE_FILE,
        message,
        hint=f"{hint}Its file_hash is now {file_hash}. {reads}",
        path=path,
        file_hash=file_hash,
        content=fresh,
    )


def anchor_missing(refusal: AnchorMissing, fresh: str) -> Failure:
    """Return the failure of an operation whose anchor matches no line."""
    return Failure(
        FailureKind.ANCHOR_NOT_FOUND,
        f"Operation {refusal.index}: Anchor not found: {refusal.anchor}",
        hint=f"No line has this tag. The file reads, around it:\n{fresh}" if fresh else _NO_LINE,
        operation_index=refusal.index,
        anchor=str(refusal.anchor),
        content=fresh,
    )


def anchor_ambiguous(refusal: AnchorAmbiguous, fresh: str) -> Failure:
    """Return the failure of an operation whose anchor matches several lines."""
    lines = list(refusal.lines)
    where = f"Line {refusal.anchor.line} has another tag, and {_lines(lines)} have this one."
    return Failure(
        FailureKind.ANCHOR_AMBIGUOUS,
        f"Operation {refusal.index}: Anchor is ambiguous: {refusal.anchor}",
        hint=f"{where} The file reads, around it:\n{fresh}",
        operation_index=refusal.index,
        anchor=str(refusal.anchor),
        lines=lines,
        content=fresh,
    )


def end_before_start(refusal: EndBeforeStart) -> Failure:
    """Return the failure of an operation on a range that runs backwards."""
    return Failure(
        FailureKind.INVALID_REQUEST,
        f"Operation {refusal.index}: end_anchor is line {refusal.end}, above anchor, which is line {refusal.start}",
        operation_index=refusal.index,
    )


def operations_overlap(refusal: OperationsOverlap) -> Failure:
    """Return the failure of an operation on lines that an earlier operation of the call changes."""
    return Failure(
        FailureKind.EDITS_CONFLICT,
        f"Operation {refusal.index} conflicts with operation {refusal.prior}",
        hint="Both are about the same lines. All anchors refer to the file as you read it; make one operation of them.",
        operation_index=refusal.index,
        prior_index=refusal.prior,
    )


def tagged_content(refusal: TaggedContent) -> Failure:
    """Return the failure of an operation whose new lines begin with line numbers and tags."""
    return Failure(
        FailureKind.INVALID_REQUEST,
        f"Operation {refusal.index}: content begins with the tag of a line: {refusal.anchor}|",
        hint="Give the new lines alone, without numbers and tags. To write such text into the file on purpose, use "
        "another tool.",
        operation_index=refusal.index,
        anchor=str(refusal.anchor),
    )


def _mismatch_hint(refusal: ContextMismatch) -> str:
    expected, found = refusal.expected, refusal.found
    if not expected and found is not None:
        return (
            "The hunk has no context below its last line, so it belongs at the end of the file, but the file goes on "
            "there. If it is meant there, add the file's next line to it as context."
        )
    if found is None:
        return "The file has fewer lines than the patch says."
    if expected == found + b"\n":
        return r"The file has no newline there: put '\ No newline at end of file' below that line of the patch."
    if found == expected + b"\n":
        return r"The file has a newline there: leave out '\ No newline at end of file'."
    near = nearest(found, expected)
    if near is None:
        return "Read the file again; the patch was made for another version."
    return shown(f"They differ from column {near.column} on: {near.difference}.")


def _facts(near: Nearest) -> dict[str, object]:
    return {"line": near.line, "column": near.column, "text": shown(near.text), "difference": near.difference}


def _lines(numbers: Collection[int]) -> str:
    return ("lines " if len(numbers) > 1 else "line ") + ", ".join(map(str, numbers))


def _quotable(line: bytes) -> str:
    return line.removesuffix(b"\n").decode("utf-8", "backslashreplace")
