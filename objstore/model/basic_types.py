"""Define the small values that records, index and surfaces share."""

import stat
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, NewType, TypeAlias, TypeVar

from objstore.model.ids import BlobId
from objstore.values.fastclass import NamedTuple, value

__all__ = [
    "BECOMES",
    "EXTERNAL_CONVERSATION",
    "GIT_CONVERSATION",
    "LINK_MODE",
    "MAX_INT",
    "RESERVED_CONVERSATIONS",
    "UNKNOWN_AGENT",
    "Action",
    "CommentState",
    "ConflictKind",
    "Decider",
    "DocumentId",
    "FileState",
    "OnExternal",
    "Operation",
    "Origin",
    "Progress",
    "Seq",
    "Status",
    "Surface",
    "Unit",
    "few",
    "git_mode",
    "have_same_bytes",
    "ignore_progress",
    "is_other_kind",
    "number_of",
    "recorded_mode",
    "settable_mode",
    "settable_state",
    "shown_edits",
]

MAX_INT: Final = 2**63 - 1
"""The largest integer that a record or SQLite can hold; every number in the store is at most this."""

_MAX_DIGITS: Final = len(str(MAX_INT))


def number_of(digits: str) -> int | None:
    """Return the number that a string of decimal digits means; None if it has other characters or exceeds `MAX_INT`."""
    significant = digits.lstrip("0")
    # Python refuses to convert more than some thousand digits.
    if not (digits.isascii() and digits.isdigit()) or len(significant) > _MAX_DIGITS:
        return None
    number = int(significant or "0")
    return number if number <= MAX_INT else None


Seq = NewType("Seq", int)
"""Number of an edit in its workspace, from 1, never used twice."""

DocumentId = NewType("DocumentId", int)
"""Name of a file's lineage: the number of the edit that introduced the file."""


EXTERNAL_CONVERSATION: Final = "external"
"""The conversation of external edits: no tool recorded them when they were made."""

GIT_CONVERSATION: Final = "(git)"
"""The conversation of git's edits. They are part of what git did at once, and are not counted as edits."""

UNKNOWN_AGENT: Final = "unattributed"
"""The conversation, in a claim or in what git did, of an agent that may have worked without a known call."""

RESERVED_CONVERSATIONS: Final = frozenset({EXTERNAL_CONVERSATION, GIT_CONVERSATION})
"""Names that no call may use for its conversation."""


Progress: TypeAlias = Callable[[str, int, int], None]
"""Receives what is being processed, how many units of it are done, and how many there are."""


def ignore_progress(_what: str, _done: int, _total: int, /) -> None:
    """Serve as a `Progress` where no one shows it."""


class Operation(StrEnum):
    """The kind of change that an edit makes to its file."""

    CREATE = "create"
    REPLACE = "replace"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"


class Origin(StrEnum):
    """The kind of author of a change."""

    AGENT = "agent"  # a tool call
    EXTERNAL = "external"  # found on disk while no agent worked, recorded by no tool: the person's
    PERSON = "person"  # a person, through the `cas` command
    UNATTRIBUTED = "unattributed"  # found on disk while an agent worked, and made by no known call
    FORMATTER = "formatter"  # found on disk right after an agent's edit, made by a formatter or a hook
    GIT = "git"  # found on disk after git changed the worktree

    @property
    def is_found(self) -> bool:
        """Return whether the edit records what was found on disk; of an agent's edits some were found as well."""
        return self not in {Origin.AGENT, Origin.PERSON}

    @property
    def needs_review(self) -> bool:
        """Return whether edits of this origin are recorded as pending: an agent may have made them."""
        return self in {Origin.AGENT, Origin.UNATTRIBUTED, Origin.FORMATTER}


class Status(StrEnum):
    """The status of an edit or a hunk: pending, accepted, rejected or away. See `is_live`."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    AWAY = "away"  # other text is in its place; it gets its earlier status back with its text

    @property
    def is_live(self) -> bool:
        """Return whether a unit with this status has its effect on the text: pending and accepted ones have."""
        return self is Status.PENDING or self is Status.ACCEPTED


class Action(StrEnum):
    """The kind of a decision."""

    ACCEPT = "accept"
    REJECT = "reject"
    RESET = "reset"
    UNDO = "undo"
    REDO = "redo"
    GIT = "git"  # git changed the files; neither undone nor redone
    CLAIM = "claim"  # says whose some edits are


BECOMES: Final = {Action.ACCEPT: Status.ACCEPTED, Action.REJECT: Status.REJECTED, Action.RESET: Status.PENDING}
"""The status that a decision gives."""


class Surface(StrEnum):
    """Through what a person decides."""

    TERMINAL = "terminal"  # the command `cas`, typed at a terminal
    SCRIPT = "script"  # the command `cas`, without one
    EDITOR = "editor"  # the command `cas`, run by an editor that says so
    PAGE = "page"  # `cas web`
    CHAT = "chat"  # the review that a chat program shows
    REMOTE = "remote"  # another store of a bucket; this one carried it out


@value
class Decider:
    """Through what a decision is made, and inside whose shell. `who` in a record is the person's name."""

    via: str = ""  # a Surface; "": not known, or no person
    agent: str = ""  # the client in whose running call it is made; "": none is known


class CommentState(StrEnum):
    """The state of a comment."""

    OPEN = "open"
    SENT = "sent"
    RESOLVED = "resolved"


class ConflictKind(StrEnum):
    """The kind of a conflict: the rule of the weave that a live edit breaks, or two files at one path.

    `weave.conflicts` defines the rules.
    """

    MISSING_TARGET = "missing-target"
    BOTH_CHANGED = "both-changed"
    SURROUNDINGS_GONE = "surroundings-gone"
    TEXT_RETURNED = "text-returned-inside"
    IN_DOUBT = "in-doubt"  # not a weave rule: a clean plain replay of the live edits gives other lines
    PATH_TAKEN = "path-taken"  # not a weave rule: two files are at one path


class OnExternal(StrEnum):
    """The choice of what to do about external edits before a decision."""

    KEEP = "keep"  # record each as an edit and keep it in the result
    DISCARD = "discard"  # record each, then restore the last recorded state
    ABORT = "abort"  # change nothing


class Unit(NamedTuple):
    """The smallest thing that can be decided: hunk `hunk` of edit `seq`; hunk 0 is the edit's whole-file part."""

    seq: Seq
    hunk: int

    def __str__(self) -> str:
        return f"{self.seq}:{self.hunk}"


LINK_MODE: Final = 0o120000
"""The mode of a symbolic link, as git records it: a link has no permission bits."""


@value
class FileState:
    """The state of a file or symbolic link at a path: the name of its bytes, and its mode.

    The bytes of a link are its text, which names its target. Nothing that reads or restores a state follows it.
    """

    blob: BlobId
    mode: int  # permission bits; LINK_MODE: it is a link

    @property
    def is_link(self) -> bool:
        """Return whether it is a symbolic link."""
        return self.mode == LINK_MODE


def recorded_mode(st_mode: int) -> int:
    """Return the mode that records have for a file or link, from its st_mode."""
    return LINK_MODE if stat.S_ISLNK(st_mode) else stat.S_IMODE(st_mode)


def git_mode(mode: int) -> str:
    """Return a recorded mode as git writes it: kind and permission bits, as in 100644."""
    return f"{mode if mode == LINK_MODE else stat.S_IFREG | mode:06o}"


def have_same_bytes(one: FileState | None, other: FileState | None) -> bool:
    """Return whether both are links, or both files, with the same bytes: at most their permission bits differ."""
    return one is not None and other is not None and one.blob == other.blob and one.is_link is other.is_link


def is_other_kind(one: FileState | None, other: FileState | None) -> bool:
    """Return whether one state is a link and the other one a file: then they are not versions of one document."""
    return one is not None and other is not None and one.is_link is not other.is_link


_SET_ID: Final = 0o6000
"""Setuid and setgid: the permission bits that make a program run with the rights of its file's owner or group."""


def settable_mode(mode: int, present: int = 0) -> int:
    """Return the permission bits that a file gets for a recorded mode. `present`: its bits now; 0: it is new.

    Setuid and setgid may stay, and are never set: no record says whose the file was, and the recorded bytes would run
    with the rights of whoever owns it now.
    """
    return mode & ~(_SET_ID & ~present)


def settable_state(state: FileState, now: FileState | None) -> FileState:
    """Return the state that a file gets for a recorded one. `now`: its state before; None: there is no file."""
    present = now.mode if now is not None and have_same_bytes(now, state) else 0  # other bytes are a new file
    mode = settable_mode(state.mode, present)
    return state if mode == state.mode else FileState(blob=state.blob, mode=mode)


_NUMBERS: Final = 12
"""Numbers of edits that are all shown; of more, the first and the last."""


def shown_edits(seqs: Sequence[int]) -> str:
    """Return the numbers of some edits for a person, shortened if there are many."""
    if len(seqs) <= _NUMBERS:
        return " ".join(map(str, seqs))
    return f"{' '.join(map(str, seqs[: _NUMBERS - 2]))} ... {seqs[-1]} ({len(seqs)} edits)"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


Named = TypeVar("Named")


def few(names: Sequence[Named], most: int, by: str = " ", show: Callable[[Named], str] = str) -> str:
    """Return the first of some names for a person, and how many more there are. `show`: how each is shown."""
    more = len(names) - most
    return by.join(map(show, names[:most])) + (f" and {more} more" if more > 0 else "")
