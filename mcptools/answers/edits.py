"""Define the answers of the tools that read and change files: structured content, and a text that says the same.

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
    """A success: the structured content, a text that says the same, and additional notes, one a line."""

    content: Structured
    text: str | None  # None: the structured content as JSON, with the notes in it
    notes: Sequence[str] = ()
    ticket: str = ""  # for the client's window alone, so it is in none of the others; "": there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """A file's content, or the type, size and hash of a binary file."""

    success: bool = True
    path: str
    content: str  # "" for a binary file; bytes that are not UTF-8 are shown as \xNN
    binary: bool
    utf8: bool  # `content` is exact
    type: str  # media type, guessed from the name
    size: int  # bytes
    file_hash: str  # SHA-256 of the bytes, in hex
    next_offset: int  # the line (from 0) at which to go on reading; 0: this is the end


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRead:
    """A text file as hashlines."""

    success: bool = True
    path: str
    content: str  # lines `{number}:{tag}|{content}`, without their endings, each ended by LF
    file_hash: str  # SHA-256 of the bytes, in hex
    lines: int
    line_endings: str  # lf, crlf, mixed, cr if it has CR alone, or none if it has neither
    encoding: str  # utf-8, utf-8-bom, utf-16-le or utf-16-be, all but utf-8 with a byte-order mark; or unknown
    final_newline: bool
    utf8: bool  # the lines' contents are exact
    next_offset: int  # the line (from 0) at which to go on reading; 0: this is the end


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEntry:
    """One name in a directory."""

    name: str
    type: str  # file, directory, symlink, other
    size: int  # bytes, of a file


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryListed:
    """The names in a directory."""

    success: bool = True
    path: str
    entries: list[ListedEntry]
    next_offset: int  # the entry (from 0) at which to go on; 0: this is the end


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryMade:
    """A directory that exists now."""

    success: bool = True
    path: str
    created: bool  # it did not exist before


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWritten:
    """A file created, or its whole content replaced."""

    success: bool = True
    path: str
    operation: str  # create, replace, or none if the file already had these bytes
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
    applied: bool  # also true for a dry run that would apply
    dry_run: bool
    edit: int  # number of the recorded edit, for the reviewer; 0: a dry run, or nothing changed
    hunks_applied: int
    hunk_offsets: list[int]  # for each hunk, how many lines below the stated line it fits
    lines_added: int
    lines_removed: int
    changed_since_read: bool  # by another writer, elsewhere in the file
    rebased: bool  # the change was carried over from the version that the model had read
    file_hash: str  # SHA-256 of the bytes now (after a dry run: as they would be), in hex
    mcp_conversation_id: str  # "" for a dry run that was given none


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRangeOfEdit:
    """The lines that an edit's old string touched, in the staged copy just before the edit; from 1, inclusive."""

    edit_index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiEdited:
    """A file changed by exact strings, in the shape that the contract of `multi_edit_text_file` sets."""

    success: bool = True
    diff: str
    applied_count: int
    line_ranges: list[LineRangeOfEdit]
    edit: int  # number of the recorded edit, for the reviewer; 0: nothing changed
    changed_since_read: bool  # by another writer, elsewhere in the file
    rebased: bool  # the change was carried over from the version that the model had read
    mcp_conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedAnchor:
    """An anchor found on a line other than the one it names."""

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
    content: str  # hashlines around the changes, as the file is now
    rebased: bool  # the change was carried over from the version that the model had read
    file_hash: str  # SHA-256 of the bytes now, in hex
    mcp_conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The session's last change, taken back."""

    success: bool = True
    files_reverted: int
    paths: list[str]  # current paths, or the last ones of files that are gone; relative if one directory is served


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
    """A deleted file; its bytes stay retrievable."""

    success: bool = True
    path: str
    edit: int  # number of the recorded edit, for the reviewer
    mcp_conversation_id: str


def structured(content: object) -> Any:  # noqa: ANN401 - what JSON can say
    """Return `content` with each dataclass in it converted to a dict, and each tuple to a list.

    `dataclasses.asdict` does the same, but also copies each string and number, which takes three times as long.
    Raises TypeError for a value that no answer may hold.
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
