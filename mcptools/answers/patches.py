"""Define the answers of the patch tools: structured content with the field names of their document.

Paths are reported as they were given. A field without a value is null.
"""

from dataclasses import dataclass

__all__ = [
    "AffectedLineRange",
    "BackupRestored",
    "FileBackedUp",
    "FileInfo",
    "GeneratedChanges",
    "PatchApplied",
    "PatchBackedUp",
    "PatchChanges",
    "PatchGenerated",
    "PatchInspected",
    "PatchPreview",
    "PatchReverted",
    "PatchStepped",
    "PatchSummary",
    "PatchValidated",
    "PatchesApplied",
    "PatchesBatched",
    "PatchesTried",
    "RevertedChanges",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchChanges:
    """Counts of the changes that a patch made."""

    lines_added: int
    lines_removed: int
    hunks_applied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertedChanges:
    """Counts of the changes that reverting a patch made: the opposite of applying it."""

    lines_added: int
    lines_removed: int
    hunks_reverted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedChanges:
    """Counts of the changes in a generated patch."""

    lines_added: int
    lines_removed: int
    hunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchApplied:
    """A patch that was applied, or that a dry run found to fit."""

    success: bool = True
    file_path: str
    applied: bool = True  # also for a dry run that would apply
    changes: PatchChanges
    message: str
    hunk_offsets: list[int]  # for each hunk, how many lines below the stated line it fits
    edit: int  # number of the recorded edit, for the reviewer; 0: a dry run, or nothing changed
    changed_since_read: bool  # by another writer, elsewhere in the file
    mcp_conversation_id: str  # "" for a dry run that was given none


@dataclass(frozen=True, slots=True, kw_only=True)
class AffectedLineRange:
    """The lines of the file from the first line of the first hunk to the last line of the last; from 1, inclusive."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPreview:
    """A preview of the changes that a patch would make."""

    lines_to_add: int
    lines_to_remove: int
    hunks: int
    affected_line_range: AffectedLineRange | None  # None: the patch has no hunks


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchValidated:
    """A patch that can be applied."""

    success: bool = True
    file_path: str
    valid: bool = True
    can_apply: bool = True
    preview: PatchPreview
    message: str = "Patch is valid and can be applied cleanly"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchReverted:
    """A reverted patch."""

    success: bool = True
    file_path: str
    reverted: bool = True
    changes: RevertedChanges
    message: str
    hunk_offsets: list[int]  # for each hunk, how many lines below the stated line it was found
    edit: int  # number of the recorded edit, for the reviewer; 0: nothing changed
    changed_since_read: bool  # by another writer, elsewhere in the file
    mcp_conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchGenerated:
    """The patch that turns one file into another."""

    success: bool = True
    original_file: str
    modified_file: str
    patch: str  # "" for identical files
    changes: GeneratedChanges
    message: str = "Generated patch from file comparison"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """The changes of a patch in one file."""

    source: str  # as its header names it, without git's `a/`; /dev/null: the patch creates the file
    target: str  # without git's `b/`; /dev/null: the patch deletes the file
    hunks: int
    lines_added: int
    lines_removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSummary:
    """The totals of a patch over all its files."""

    total_files: int
    total_hunks: int
    total_lines_added: int
    total_lines_removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchInspected:
    """The files and totals of a patch."""

    success: bool = True
    valid: bool = True
    files: list[FileInfo]
    summary: PatchSummary
    message: str = "Patch analysis complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBackedUp:
    """A backup of a file, next to it."""

    success: bool = True
    original_file: str
    backup_file: str
    backup_size: int  # bytes
    message: str = "Backup created successfully"
    edit: int  # number of the recorded edit that created the backup
    mcp_conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRestored:
    """A file restored from its backup."""

    success: bool = True
    backup_file: str
    restored_to: str
    restored_size: int  # bytes
    message: str = "Successfully restored from backup"
    edit: int  # number of the recorded edit, for the reviewer; 0: the file already had these bytes
    mcp_conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchesApplied:
    """Patches applied together; the strategies add fields of their own."""

    success: bool = True
    edits: list[int]  # numbers of the recorded edits, for the reviewer
    mcp_conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchesTried(PatchesApplied):
    """Patches of one file applied one after the other."""

    patches_applied: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchBackedUp(PatchesApplied):
    """A patch applied after a backup of its file."""

    backup_file: str | None  # None: the client did not ask to keep it
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchesBatched(PatchesApplied):
    """Patches of several files applied at once."""

    applied: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchStepped(PatchesApplied):
    """A patch applied step by step."""

    steps: dict[str, object]  # for each step, whether it passed, and its details
    backup_file: str
    changes: PatchChanges
