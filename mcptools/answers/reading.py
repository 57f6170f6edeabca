"""Define the answers of the tools that read several files, search, and list edits, as structured content.

In an answer that may be cut, `next_offset` is where the next page begins; 0 means that this is the end.
"""

from dataclasses import dataclass

__all__ = [
    "AllowedDirectories",
    "AnswerGiven",
    "CommentAnswered",
    "CommentListed",
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
    """One of several requested files."""

    path: str
    content: str  # "" for a binary file, and for one that could not be read
    binary: bool
    utf8: bool  # `content` is exact
    size: int  # bytes
    file_hash: str  # SHA-256 of the bytes, in hex; "": it could not be read
    next_offset: int  # the line (from 0) at which read_file can go on; 0: `content` is not cut
    error: str  # why it could not be read; "": it was read


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
    content: str  # "..." marks lines that were left out
    matches: list[int]  # numbers of the requested lines, from 1, without their context
    file_hash: str  # SHA-256 of the file's bytes, in hex
    lines: int  # of the file
    next_offset: int  # in requested lines


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """One name in a tree."""

    path: str  # relative to the directory where the tree begins
    type: str  # file, directory, symlink, other


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeListed:
    """The names below a directory."""

    success: bool = True
    path: str
    entries: list[TreeEntry]
    complete: bool  # no limit ended the walk, and every folder could be read
    next_offset: int  # in entries


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesFound:
    """Paths that match a pattern."""

    success: bool = True
    paths: list[str]
    complete: bool  # no limit ended the search, and every folder could be read
    next_offset: int  # in paths


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFound:
    """A line that matches a pattern."""

    path: str
    line: int  # from 1
    text: str  # the line, or the part of a long one around the match; "…" marks where it is cut


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesFound:
    """Lines of files that match a pattern."""

    success: bool = True
    matches: list[LineFound]
    files: int  # how many files were searched
    complete: bool  # no limit ended the search, and everything could be read
    next_offset: int  # in matches


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDescribed:
    """The type, size, permissions and times of a file or directory."""

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
    partly: bool  # its hunks have different statuses
    reason: str  # the reviewer's; several are listed, each after its hunks; "": none was given
    operation: str  # create, replace, edit, delete, move
    path: str
    source_path: str  # of a move; else ""
    tool: str  # "": an external edit, which no tool recorded
    mcp_conversation_id: str
    turn: int  # number of the turn that made it; 0: not known
    time: str  # UTC
    lines_added: int
    lines_removed: int
    expired: bool  # its bytes are no longer kept: it has no diff, and no reviewer can decide on it


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGiven:
    """An answer to a comment."""

    by: str  # agent, person
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentListed:
    """A reviewer's comment on some lines."""

    comment: int
    state: str  # open (not sent before), sent, answered, resolved
    path: str
    first_line: int  # from 1, as the file is now; 0: the file as a whole
    last_line: int
    gone: bool  # the file has these lines no more
    text: str
    answers: list[AnswerGiven]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentAnswered:
    """A comment with the answer that was recorded."""

    success: bool = True
    comment: int
    answer: int  # number of the answer
    path: str
    mcp_conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditsListed:
    """Recorded edits, the newest first, and the reviewers' comments that wait for an answer."""

    success: bool = True
    edits: list[EditListed]
    next_offset: int  # in edits
    comments: list[CommentListed]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonGiven:
    """A reviewer's reason, and the hunks it was given for."""

    hunks: list[str]  # as the diff names them; 0 is the edit's whole-file part
    more: int  # further hunks that it was given for, too many to name
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditShown:
    """A recorded edit with its diff."""

    success: bool = True
    edit: EditListed
    hunks: int
    hunk_statuses: list[str]  # of each hunk, from hunk 1; if there are too many, of the first ones
    reasons: list[ReasonGiven]  # each once
    diff: str
    next_offset: int  # in lines of the diff
