"""Terms: the small values that records, index and surfaces share."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NewType, TypeAlias

from objstore.fastclass import NamedTuple, value
from objstore.model.ids import BlobId

__all__ = [
    "MAX_INT",
    "Action",
    "ConflictKind",
    "DocumentId",
    "FileState",
    "OnExternal",
    "Operation",
    "Origin",
    "Progress",
    "Seq",
    "Status",
    "Unit",
    "ignore_progress",
    "number_of",
]

MAX_INT: Final = 2**63 - 1
"""The largest number that a record holds, and SQLite: nothing here has a higher one."""

_MAX_DIGITS: Final = len(str(MAX_INT))


def number_of(digits: str) -> int | None:
    """Return the number that decimal digits spell (None: they are none, or nothing here has a number so high)."""
    significant = digits.lstrip("0")
    # Python itself takes no more than some thousand digits.
    if not (digits.isascii() and digits.isdigit()) or len(significant) > _MAX_DIGITS:
        return None
    number = int(significant or "0")
    return number if number <= MAX_INT else None


Seq = NewType("Seq", int)
"""Number of an edit in its workspace, from 1, never used twice."""

DocumentId = NewType("DocumentId", int)
"""Name of a file's lineage: the number of the edit that introduced it."""


Progress: TypeAlias = Callable[[str, int, int], None]
"""Is told what is worked on, how much of it is done, and how much there is."""


def ignore_progress(_what: str, _done: int, _total: int, /) -> None:
    """Take what is told to a Progress, where nobody listens."""


class Operation(StrEnum):
    """What an edit does to its file."""

    CREATE = "create"
    REPLACE = "replace"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"


class Origin(StrEnum):
    """Who made a change."""

    AGENT = "agent"  # a tool call
    EXTERNAL = "external"  # nobody recorded it: it was found on disk
    PERSON = "person"  # the `cas` command, on a person's word


class Status(StrEnum):
    """What a reviewer has said of an edit or a hunk. Pending and accepted ones are live."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


class Action(StrEnum):
    """What a reviewer did."""

    ACCEPT = "accept"
    REJECT = "reject"
    RESET = "reset"
    UNDO = "undo"
    REDO = "redo"


class ConflictKind(StrEnum):
    """Why live edits have no text together: which rule of the weave one of them breaks, or that a path has two files.

    `conflicts` says what the rules are.
    """

    MISSING_TARGET = "missing-target"
    BOTH_CHANGED = "both-changed"
    SURROUNDINGS_GONE = "surroundings-gone"
    TEXT_RETURNED = "text-returned-inside"
    IN_DOUBT = "in-doubt"  # of no weave: plain replay of the live edits gives other lines, cleanly
    PATH_TAKEN = "path-taken"  # of no weave: two files stand at one path


class OnExternal(StrEnum):
    """What to do about changes on disk that nobody recorded."""

    KEEP = "keep"  # record each as an edit, and carry it through
    DISCARD = "discard"  # record each, and go back to the last recorded state
    ABORT = "abort"  # change nothing


class Unit(NamedTuple):
    """The smallest thing that can be decided: hunk `hunk` of edit `seq`; hunk 0 is the edit's whole-file part."""

    seq: Seq
    hunk: int

    def __str__(self) -> str:
        return f"{self.seq}:{self.hunk}"


@value
class FileState:
    """What stands at a path: bytes by name, and permission bits."""

    blob: BlobId
    mode: int
