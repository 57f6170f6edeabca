"""Answers: what each tool says of a success, as structured content and as text.

Field names are those of the documents that describe the tools; all paths are absolute.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Generic, TypeVar

__all__ = [
    "AnchorEdited",
    "Answer",
    "DiffEdited",
    "DirectoryListed",
    "DirectoryMade",
    "FileDeleted",
    "FileMoved",
    "FileRead",
    "FileWritten",
    "LineRangeOfEdit",
    "ListedEntry",
    "MovedAnchor",
    "MultiEdited",
    "TextRead",
    "Undone",
    "structured",
]

Structured = TypeVar("Structured")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[Structured]):
    """A success: the structured content, a text that says the same, and lines that are said besides."""

    content: Structured
    text: str
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """A file's content, or what is known of a file that is no text."""

    success: bool = True
    path: str
    content: str  # "" of a binary file; bytes that are not UTF-8 are spelt \xNN
    binary: bool
    utf8: bool  # whether `content` is exact
    type: str  # media type, guessed from the name
    size: int  # bytes
    file_hash: str  # SHA-256 of the bytes, in hex
    next_offset: int  # lines up to the end of `content`, where it is cut; 0: it is not


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRead:
    """A text file as hashlines."""

    success: bool = True
    path: str
    content: str  # lines `{number}:{tag}|{content}`, without their endings, each ended by LF
    file_hash: str  # SHA-256 of the bytes, in hex
    lines: int
    line_endings: str  # lf, crlf, mixed, or none where no line ends
    final_newline: bool
    utf8: bool  # whether the lines' contents are exact
    next_offset: int  # lines up to the end of `content`, where it is cut; 0: it is not


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEntry:
    """One name in a directory."""

    name: str
    type: str  # file, directory, symlink, other
    size: int  # bytes, of a file


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryListed:
    """What is in a directory."""

    success: bool = True
    path: str
    entries: list[ListedEntry]
    next_offset: int  # entries up to the end of these, where they are cut; 0: they are not


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryMade:
    """A directory that exists now."""

    success: bool = True
    path: str
    created: bool  # whether it did not exist before


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWritten:
    """A file written whole."""

    success: bool = True
    path: str
    operation: str  # create, replace, or none where the file held these bytes already
    edit: int  # number of the recorded edit, for the reviewer; 0: nothing changed
    lines_added: int
    lines_removed: int
    file_hash: str  # SHA-256 of the bytes now, in hex
    mcp_conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffEdited:
    """A file changed by a unified diff."""

    success: bool = True
    path: str
    applied: bool  # true also of a dry run that would apply
    dry_run: bool
    edit: int  # number of the recorded edit, for the reviewer; 0: a dry run, or nothing changed
    hunks_applied: int
    hunk_offsets: list[int]  # of each hunk: how many lines below the stated place it fits
    lines_added: int
    lines_removed: int
    changed_since_read: bool  # by somebody else, elsewhere in the file
    rebased: bool  # whether the change was carried over from the version that was read
    file_hash: str  # SHA-256 of the bytes now (of a dry run: as they would be), in hex
    mcp_conversation_id: str  # "" of a dry run that was given none


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRangeOfEdit:
    """The lines that an edit's old string touched, in the staged copy just before the edit; from 1, inclusive."""

    edit_index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiEdited:
    """A file changed by exact strings, in the shape that `multi_edit_text_file` has."""

    success: bool = True
    diff: str
    applied_count: int
    line_ranges: list[LineRangeOfEdit]
    edit: int  # number of the recorded edit, for the reviewer; 0: nothing changed
    changed_since_read: bool  # by somebody else, elsewhere in the file
    rebased: bool  # whether the change was carried over from the version that was read
    mcp_conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedAnchor:
    """An anchor that was found on another line than it said."""

    operation_index: int
    anchor: str
    line: int  # from 1, in the file before the edit


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorEdited:
    """A file changed by operations on tagged lines."""

    success: bool = True
    path: str
    edit: int  # number of the recorded edit, for the reviewer; 0: nothing changed
    applied_count: int
    moved_anchors: list[MovedAnchor]
    lines_added: int
    lines_removed: int
    content: str  # hashlines around what changed, as the file is now
    rebased: bool  # whether the change was carried over from the version that was read
    file_hash: str  # SHA-256 of the bytes now, in hex
    mcp_conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The session's last change, taken back."""

    success: bool = True
    files_reverted: int
    paths: list[str]  # where the files are now, or were if they are gone; relative if one directory is served


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMoved:
    """A file at another path."""

    success: bool = True
    source: str
    destination: str
    edit: int  # number of the recorded edit, for the reviewer
    mcp_conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDeleted:
    """A file that is gone; its bytes stay retrievable."""

    success: bool = True
    path: str
    edit: int  # number of the recorded edit, for the reviewer
    mcp_conversation_id: str


def structured(content: object) -> Any:  # noqa: ANN401 - what JSON can say
    """Return `content` with a dict in place of each dataclass in it, and a list in place of each list or tuple.

    As `dataclasses.asdict`, which copies each string and number besides: that takes three times as long.
    Raises TypeError for what no answer may hold.
    """
    if isinstance(content, str | int | float) or content is None:
        return content
    if isinstance(content, list | tuple):
        return [structured(item) for item in content]
    if isinstance(content, dict):
        return {key: structured(item) for key, item in content.items()}
    if is_dataclass(content):
        return {field.name: structured(getattr(content, field.name)) for field in fields(content)}
    raise TypeError(f"an answer holds a {type(content).__name__}")
