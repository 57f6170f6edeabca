"""Findings: what the tools that read, search and tell of edits answer, as structured content.

Wherever an answer may be cut, `next_offset` says where the rest begins; 0 says that this is the end.
"""

from dataclasses import dataclass

__all__ = [
    "AllowedDirectories",
    "EditListed",
    "EditShown",
    "EditsListed",
    "FileDescribed",
    "FileOfMany",
    "FilesFound",
    "FilesRead",
    "LineFound",
    "LinesFound",
    "LinesRead",
    "ReasonGiven",
    "TreeEntry",
    "TreeListed",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOfMany:
    """One of several files that were asked for."""

    path: str
    content: str  # "" of a binary file, and of one that could not be read
    binary: bool
    utf8: bool  # whether `content` is exact
    size: int  # bytes
    file_hash: str  # SHA-256 of the bytes, in hex; "": it could not be read
    next_offset: int  # lines that `content` holds, where it is cut; read_file goes on there
    error: str  # why it could not be read; "": it was


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesRead:
    """Several files."""

    success: bool = True
    files: list[FileOfMany]
    failed: int  # how many of them could not be read
    next_offset: int  # files


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesRead:
    """Some lines of a text file, as hashlines."""

    success: bool = True
    path: str
    content: str  # "..." stands where lines were left out
    matches: list[int]  # numbers of the lines that were asked for, from 1, without those around them
    file_hash: str  # SHA-256 of the file's bytes, in hex
    lines: int  # of the file
    next_offset: int  # lines that were asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """One name in a tree."""

    path: str  # below where the tree begins
    type: str  # file, directory, symlink, other


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeListed:
    """What is below a directory."""

    success: bool = True
    path: str
    entries: list[TreeEntry]
    complete: bool  # whether everything was looked at
    next_offset: int  # entries


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesFound:
    """Paths that fit a pattern."""

    success: bool = True
    paths: list[str]
    complete: bool  # whether everything was looked at
    next_offset: int  # paths


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFound:
    """A line that fits a pattern."""

    path: str
    line: int  # from 1
    text: str  # of a long line a part with what was found; "…" stands where it is cut


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesFound:
    """Lines of files that fit a pattern."""

    success: bool = True
    matches: list[LineFound]
    files: int  # how many files were looked into
    complete: bool  # whether everything was looked at
    next_offset: int  # matches


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDescribed:
    """What is known of a name."""

    success: bool = True
    path: str
    type: str  # file, directory, symlink, other
    size: int  # bytes
    permissions: str  # octal
    writable: bool
    modified: str  # UTC
    accessed: str  # UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedDirectories:
    """The directories that tools may work in."""

    success: bool = True
    directories: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditListed:
    """A recorded edit, as a reviewer sees it."""

    edit: int
    status: str  # pending, accepted, rejected
    partly: bool  # whether its hunks have different statuses
    reason: str  # the reviewer's; of several, each behind its hunks; "": none was given
    operation: str  # create, replace, edit, delete, move
    path: str
    source_path: str  # of a move; else ""
    tool: str  # "": nobody recorded the change when it was made
    mcp_conversation_id: str
    time: str  # UTC
    lines_added: int
    lines_removed: int
    expired: bool  # whether what it changed is kept no more: then it has no diff, and no reviewer can decide on it


@dataclass(frozen=True, slots=True, kw_only=True)
class EditsListed:
    """Recorded edits, the newest first."""

    success: bool = True
    edits: list[EditListed]
    next_offset: int  # edits


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonGiven:
    """What a reviewer said, and of what."""

    hunks: list[str]  # as the diff names them; 0 is the change of the file as a whole
    more: int  # hunks of which it was said, too, and that are too many to be named
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditShown:
    """A recorded edit with its diff."""

    success: bool = True
    edit: EditListed
    hunks: int
    hunk_statuses: list[str]  # of each hunk, from hunk 1, or of the first ones of too many
    reasons: list[ReasonGiven]  # each once
    diff: str
    next_offset: int  # lines of the diff
