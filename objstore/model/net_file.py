"""Define the net changes of a file as plain values: what review shows, and which units a decision on it concerns."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from objstore.model.ids import blob_id
from objstore.text.forms import NO_FORMS, TextForm
from objstore.text.hunks import Hunk
from objstore.values.fastclass import NamedTuple, value

if TYPE_CHECKING:
    from objstore.model.basic_types import DocumentId, Operation, Seq, Unit

__all__ = [
    "KEY_SIZE",
    "ChangeKind",
    "ChangeSummary",
    "ChangesAtLine",
    "FileSummary",
    "LineWriters",
    "NetChange",
    "NetFile",
]

KEY_SIZE: Final = 16
"""Bytes of the key of a change."""


class ChangeKind(StrEnum):
    """The subject of a change: lines of the file, or the file as a whole."""

    LINES = "lines"
    NEWLINE = "newline"  # the last line, otherwise unchanged, lost or gained its newline
    CREATE = "create"
    DELETE = "delete"
    MOVE = "move"
    MODE = "mode"
    CONTENT = "content"  # of a binary or large file
    ENCODING = "encoding"  # UTF-16 or not, lines that end in CR alone or not


class LineWriters(NamedTuple):
    """The units that took out, or put in, some consecutive lines of a change."""

    lines: int
    units: tuple[Unit, ...]  # ascending; (): the lines are in both texts


@value
class NetChange:
    """One contiguous difference between a file's accepted text and its current text, or one fact about the file."""

    path: str  # the file's current path, or its last one
    document: DocumentId
    kind: ChangeKind
    line_before: int  # from 1, in the accepted text: the first removed line, or the one that the change precedes
    line_after: int  # the same in the current text; both are 0 for a move, a mode and content
    removed: bytes  # exact lines of the accepted text; b"" for a move, a mode and content
    inserted: bytes  # exact lines of the current text
    units: tuple[Unit, ...]  # ascending: a decision on the change is a decision on these
    shares_with: tuple[int, ...] = ()  # positions of the file's other changes that are decided with this one
    turns: tuple[int, ...] = ()  # numbers of its edits' turns, ascending, as far as they have one
    writers: tuple[LineWriters, ...] = ()  # of its removed lines, then of its inserted ones
    earlier: tuple[Unit, ...] = ()  # units that had inserted its removed lines, ascending

    @property
    def removed_lines(self) -> int:
        """Return the number of removed lines."""
        return _line_count(self.removed)

    @property
    def inserted_lines(self) -> int:
        """Return the number of inserted lines."""
        return _line_count(self.inserted)

    @property
    def has_lines(self) -> bool:
        """Return whether it removes or inserts lines."""
        return bool(self.removed or self.inserted)

    @property
    def hunk(self) -> Hunk:
        """Return the replacement of lines that it is."""
        return Hunk(self.line_before - 1, self.removed_lines, self.line_after - 1, self.inserted_lines)

    @property
    def key(self) -> bytes:
        """Return what identifies the change: its file, its units and its text, wherever in the file it is."""
        units = " ".join(map(str, self.units))
        facts = f"{self.document} {self.kind} {len(self.removed)} {units}\n".encode()
        return blob_id(facts + self.removed + self.inserted)[:KEY_SIZE]

    @property
    def edits(self) -> tuple[Seq, ...]:
        """Return the edits that the units belong to, ascending."""
        return tuple(dict.fromkeys(unit.seq for unit in self.units))


@value
class NetFile:
    """The net changes of all pending units in one file."""

    path: str  # current path, or the last one
    path_before: str  # accepted path
    document: DocumentId
    operation: Operation  # create, delete, move, or edit
    mode_before: int  # permission bits; 0: no file
    mode: int
    before: bytes | None  # accepted text, or the placeholder of a large state; None: no file
    after: bytes | None  # current text; of UTF-16 and of lines that end in CR, both have UTF-8 and LF
    changes: tuple[NetChange, ...]  # facts about the file first, then lines in their order
    cancelled: tuple[Unit, ...]  # pending units without a net effect, ascending
    kept_on: tuple[Unit, ...]  # pending units that are part of the accepted text, because accepted ones need them
    is_binary: bool  # whether either text is binary or large, and so has no changes of lines
    size_before: int  # bytes; 0: no file
    size: int
    is_unrecorded: bool  # whether the file on disk is not in its recorded state, which is the current text here
    left_out: tuple[NetChange, ...] = ()  # changes that were not asked for
    forms: tuple[TextForm, TextForm] = NO_FORMS  # of the accepted text and the current one
    taken_out: tuple[Unit, ...] = ()  # cancelled units that can't be accepted: accepted edits took their change out

    @property
    def added(self) -> int:
        """Return the number of lines in the current text that are not in the accepted text."""
        return sum(change.inserted_lines for change in self.changes)

    @property
    def removed(self) -> int:
        """Return the number of lines in the accepted text that are not in the current text."""
        return sum(change.removed_lines for change in self.changes)

    @property
    def units(self) -> tuple[Unit, ...]:
        """Return the units that a decision on the whole file concerns: those of its changes, and the cancelled ones."""
        changed = {unit for change in self.changes for unit in change.units}
        return tuple(sorted(changed.union(self.cancelled)))


class ChangeSummary(NamedTuple):
    """A net change without its text. The fields are those of `NetChange`."""

    kind: ChangeKind
    line_before: int
    line_after: int
    removed_lines: int
    inserted_lines: int
    units: tuple[Unit, ...]
    shares_with: tuple[int, ...]
    key: bytes


class FileSummary(NamedTuple):
    """The net changes of a file without its text. The fields are those of `NetFile`."""

    path: str
    path_before: str
    document: DocumentId
    operation: Operation
    mode_before: int
    mode: int
    changes: tuple[ChangeSummary, ...]
    cancelled: tuple[Unit, ...]
    kept_on: tuple[Unit, ...]
    is_binary: bool
    size_before: int
    size: int
    is_unrecorded: bool

    @property
    def added(self) -> int:
        """Return the number of lines in the current text that are not in the accepted text."""
        return sum([change[4] for change in self.changes])

    @property
    def removed(self) -> int:
        """Return the number of lines in the accepted text that are not in the current text."""
        return sum([change[3] for change in self.changes])

    @property
    def units(self) -> tuple[Unit, ...]:
        """Return the units that a decision on the whole file concerns: those of its changes, and the cancelled ones."""
        changed = {unit for change in self.changes for unit in change.units}
        return tuple(sorted(changed.union(self.cancelled)))


@value
class ChangesAtLine:
    """The changes at a line of a file, or at several."""

    file: NetFile
    changes: tuple[NetChange, ...]  # at least one
    together: tuple[NetChange, ...]  # other changes of the file that are decided with these

    @property
    def units(self) -> tuple[Unit, ...]:
        """Return the units that a decision on the changes concerns, ascending.

        If these are all its changes, its units without a net effect are decided, too: nothing else is left of the file.
        """
        changes = (*self.changes, *self.together)
        rest = self.file.cancelled if len(changes) == len(self.file.changes) else ()
        return tuple(sorted({*rest, *(unit for change in changes for unit in change.units)}))


def _line_count(text: bytes) -> int:
    return text.count(b"\n") + (bool(text) and not text.endswith(b"\n"))
