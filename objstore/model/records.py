"""Define the journal's records, one class per kind.

A record is immutable and contains the id of the record before it, so the journal is a hash chain. FORMAT.md lists every
field.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, assert_never

from objstore.model.basic_types import (
    Action,
    CommentState,
    DocumentId,
    FileState,
    Operation,
    Origin,
    Seq,
    Status,
    Unit,
)
from objstore.model.ids import BlobId
from objstore.model.ranges import Range
from objstore.text.forms import NO_FORMS, TextForm
from objstore.text.hunks import Hunk
from objstore.values.fastclass import NamedTuple, field, value

__all__ = [
    "CONVERTED_NOTE",
    "HEIR_NOTE",
    "LEFT_OUT_NOTE",
    "MADE_NOTE",
    "MCPDIFF_SOURCE",
    "PURGED",
    "RETURNED",
    "SHELL",
    "Anchor",
    "Comment",
    "Decision",
    "Edit",
    "Expiry",
    "Mark",
    "Marks",
    "Numbering",
    "Pin",
    "Record",
    "SettingChange",
    "Snapshot",
    "Turn",
    "Void",
    "VoidedRecords",
    "WrittenFile",
    "needs_caution",
]

LEFT_OUT_NOTE: Final = "left_out"
"""The note of a creation whose path the scan before left out: the file may be older than its edit."""

RETURNED: Final = "returned"
"""Reason of a decision by which files got lines back that belong to edits."""

MADE_NOTE: Final = "made"
"""The note of a creation that was found on disk: since when the file can exist (µs); empty: not known."""

HEIR_NOTE: Final = "may_hold"
"""The note of a creation with which paths went away that no scan had read: it may hold what they held."""

CONVERTED_NOTE: Final = "converted"
"""The note of an edit that a conversion recorded: the number of the decision that wrote its text."""

MCPDIFF_SOURCE: Final = "mcpdiff"
"""The note of an edit imported from mcpdiff, which holds its mcpdiff id; also the author of imported decisions."""


@value
class Marks:
    """The reason why an edit wrote conflict markers into its file: a decision and the units of both sides."""

    decision: int  # the decision that would otherwise have been refused
    against: tuple[Unit, ...]  # the decided units that conflict with the others; ascending
    aside: tuple[tuple[Unit, Status], ...]  # the others, rejected only for that, with their statuses before


DECISION_NOTE: Final = "decision"
"""The note of a person's edit that a decision recorded: the number of the decision."""


@value
class Edit:
    """One change to one file: all that is needed to replay or drop it."""

    seq: Seq
    document: DocumentId
    time: int  # microseconds since 1970-01-01 UTC
    conversation: str
    call: int  # position of the call in its conversation, from 0
    ordinal: int  # position of the edit in its call, from 0
    operation: Operation
    path: bytes  # relative to the workspace, components joined by "/"; of a move: the destination
    source: bytes | None = None  # None: not a move
    before: FileState | None  # None: the file did not exist
    after: FileState | None  # None: the edit deleted it
    hunks: tuple[Hunk, ...] = ()  # () if no line changed, and for create and delete, which concern the whole file
    folders: int = 0  # how many of the path's folders, from the innermost, the edit created
    newline: bool = False  # whether the last line, otherwise unchanged, lost or gained its newline
    forms: tuple[TextForm, TextForm] = NO_FORMS  # of the texts before and after, in whose lines the hunks count
    added: int = 0  # lines, for display
    removed: int = 0
    origin: Origin = Origin.AGENT
    status: Status = Status.PENDING  # the status it was recorded with; later decisions may change it
    amends: Seq | None = None  # the edit whose result a reviewer corrects by this one; None: it is not an amendment
    marks: Marks | None = None  # None: it wrote no conflict markers
    turn: int = 0  # number of the turn that it was made in; 0: none is known
    tool: str
    notes: Mapping[str, str] = field(default_factory=dict)  # agent, client, model, prompt, …, if known

    def is_made_by(self, decision: int) -> bool:
        """Return whether a decision recorded it: as a person's own change, with markers, or to keep lines of others."""
        return self.origin is Origin.PERSON and self.notes.get(DECISION_NOTE) == str(decision)

    @property
    def is_meant(self) -> bool:
        """Return whether a tool may have named the lines it changed; otherwise they were found by comparison."""
        return self.origin is Origin.AGENT and self.operation is not Operation.REPLACE

    @property
    def changes_whole(self) -> bool:
        """Return whether unit 0 changes anything: existence, path, mode, text form, or the final newline."""
        if self.before is None or self.after is None or self.source is not None:
            return True
        is_same = self.before.mode == self.after.mode and self.forms[0] is self.forms[1]
        return self.newline or not is_same or not self.hunks


@value
class WrittenFile:
    """The effect of a decision on one file, or the state that it left unchanged."""

    document: DocumentId
    path_before: bytes | None  # None: the file did not exist
    before: FileState | None
    path_after: bytes | None  # None: the decision removed the file
    after: FileState | None

    @property
    def path(self) -> bytes:
        """Return the path of the file since the decision, or before it if the decision removed the file."""
        return self.path_after or self.path_before or b""

    @property
    def is_changed(self) -> bool:
        """Return whether the decision changed the file's bytes, mode or path."""
        return self.before != self.after or self.path_before != self.path_after


@value
class Decision:
    """A reviewer's verdicts on some units, and what they did to the files."""

    number: int  # of the decision in its workspace, from 1
    time: int  # microseconds since 1970-01-01 UTC
    action: Action
    verdicts: tuple[tuple[Unit, Status], ...]  # the status that each unit has from now on
    written: tuple[WrittenFile, ...]  # of each document that it decided on and that has or had a file
    who: str
    reason: str = ""
    takes_back: int = 0  # number of the decision that an undo or redo reverses; 0: none
    commit: str = ""  # of a `git` decision: HEAD after it, in hex; of an accept: the commit that made it; "": none
    conversation: str = ""  # of a `git` decision: whose call ran git; of a `claim`: whose the edits are; "": a person's
    via: str = ""  # through what: a Surface; "": not known
    agent: str = ""  # the client inside whose shell it was made; "": none is known

    @property
    def changed_files(self) -> tuple[WrittenFile, ...]:
        """Return those of the files whose bytes, mode or path the decision changed."""
        return tuple(written for written in self.written if written.is_changed)


@value
class Void:
    """The last call or decision could not be applied and was rolled back completely: it counts as never made."""

    time: int  # microseconds since 1970-01-01 UTC
    edits: tuple[Seq, ...]
    decision: int  # 0: none
    reason: str


@value
class Snapshot:
    """The contents of a folder at one moment, as a tree of blobs."""

    number: int  # of the snapshot in its workspace, from 1
    time: int  # microseconds since 1970-01-01 UTC
    root: BlobId  # the tree of the folder
    path: bytes | None  # the folder, relative to the workspace; None: the whole workspace
    who: str
    title: str = ""


@value
class Pin:
    """A person's record that some edits, with the later states of their files, and some blobs must be kept."""

    number: int  # of the pin in its workspace, from 1
    time: int  # microseconds since 1970-01-01 UTC
    edits: tuple[Seq, ...]  # ascending
    blobs: tuple[BlobId, ...]  # ascending
    who: str
    title: str = ""


@value
class Expiry:
    """Edits, decisions, snapshots and pins that no longer hold their blobs. The records themselves stay."""

    time: int  # microseconds since 1970-01-01 UTC
    edits: tuple[Range, ...] = ()  # ascending, with a number between any two
    decisions: tuple[Range, ...] = ()
    snapshots: tuple[int, ...] = ()  # ascending
    pins: tuple[int, ...] = ()
    reason: str
    who: str
    via: str = ""  # through what: a Surface; "": not known
    agent: str = ""  # the client inside whose shell it was made; "": none is known


@value
class Turn:
    """What an agent did from one prompt to its stop; edits name it by number. A turn without edits leaves no record."""

    number: int  # of the turn in its workspace, from 1
    time: int  # when the prompt was given, in microseconds since 1970-01-01 UTC
    session: str  # name of the run of the agent program
    conversation: str  # of its edits; of a hooked client the same as the session
    client: str = ""  # texts may be empty: not known
    model: str = ""
    prompt: str = ""


class Anchor(NamedTuple):
    """A line that a comment is about: the `offset`-th line, from 0, that hunk `hunk` of edit `seq` inserted.

    `seq` 0: a line of the text before the first edit, whose number there is `offset`.
    """

    seq: int
    hunk: int
    offset: int


@value
class Comment:
    """What a person or an agent says about some lines of a file, or an answer to that."""

    number: int  # of the comment in its workspace, from 1
    time: int  # microseconds since 1970-01-01 UTC
    who: str
    document: DocumentId
    path: bytes  # of the file when the comment was made
    first: Anchor
    last: Anchor
    lines: tuple[int, int]  # numbers of the first and last line when it was made, from 1; (0, 0): the whole file
    units: tuple[Unit, ...] = ()  # what it is about, ascending
    text: str
    answers: int = 0  # number of the comment that it answers; 0: none
    conversation: str = ""  # of the agent that wrote it; "": a person wrote it


@value
class Mark:
    """A change of the state of some comments: they are sent to an agent, resolved, or open again."""

    time: int  # microseconds since 1970-01-01 UTC
    who: str
    comments: tuple[int, ...]  # ascending
    state: CommentState
    conversation: str = ""  # that they are sent to; "": none
    via: str = ""  # through what: a Surface; "": not known
    agent: str = ""  # the client inside whose shell it was made; "": none is known


@value
class SettingChange:
    """A change of a policy by a person."""

    time: int  # microseconds since 1970-01-01 UTC
    who: str
    name: str
    before: str = ""  # "": it was not set
    after: str = ""  # "": it is no longer set
    via: str = ""  # through what: a Surface; "": not known
    agent: str = ""  # the client inside whose shell it was made; "": none is known


Record: TypeAlias = Edit | Decision | Void | Snapshot | Pin | Expiry | Turn | Comment | Mark | SettingChange


PURGED: Final = "purged"
"""The reason of an expiry by a purge."""

SHELL: Final = "shell"
"""The note of a person's edit that was made inside an agent's shell: the agent's client."""


def needs_caution(record: Record) -> bool:
    """Return whether a person should hear of a record: it was made inside an agent's shell, or narrows the record."""
    match record:
        case Edit():
            return SHELL in record.notes
        case Expiry():
            return bool(record.agent) or record.reason == PURGED
        case Decision() | Mark():
            return bool(record.agent)
        case SettingChange():
            return True
        case _:
            return False


_NUMBERED: Final[tuple[type[Record], ...]] = (Edit, Decision, Snapshot, Pin, Turn, Comment)


class VoidedRecords:
    """The edits and decisions that the voids of a journal roll back: they count as never made."""

    def __init__(self, journal: Iterable[Record]) -> None:
        """Take the journal's records, or any part of them that contains all voids."""
        voids = [record for record in journal if isinstance(record, Void)]
        self.edits: Final = frozenset(seq for void in voids for seq in void.edits)
        self.decisions: Final = frozenset(void.decision for void in voids)

    def __contains__(self, record: Record) -> bool:
        """Return whether a void rolls the record back."""
        if isinstance(record, Edit):
            return record.seq in self.edits
        return isinstance(record, Decision) and record.number in self.decisions


class Numbering:
    """Check that each record has the next number of its kind and names no number that does not exist yet."""

    def __init__(
        self, edits: int = 0, decisions: int = 0, snapshots: int = 0, pins: int = 0, turns: int = 0, comments: int = 0
    ) -> None:
        """Continue after the newest number of each kind (0: there is none)."""
        newest = edits, decisions, snapshots, pins, turns, comments
        self._newest: dict[type[Record], int] = dict(zip(_NUMBERED, newest, strict=True))

    def newest(self) -> tuple[int, int, int, int, int, int]:
        """Return the newest numbers of edits, decisions, snapshots, pins, turns and comments."""
        edits, decisions, snapshots, pins, turns, comments = map(self._newest.__getitem__, _NUMBERED)
        return edits, decisions, snapshots, pins, turns, comments

    def take(self, record: Record) -> str:
        """Advance by one record if its numbers are right; return what is wrong with them ("": nothing)."""
        match record:
            case Edit():
                given = int(record.seq)
                if record.turn > self._newest[Turn]:
                    return f"the record names turn {record.turn}, which does not exist"
            case Decision() | Snapshot() | Pin() | Turn() | Comment():
                given = record.number
            case Expiry():
                return self._beyond(record)
            case Mark():
                newest = max(record.comments, default=0)
                is_known = newest <= self._newest[Comment]
                return "" if is_known else f"the record names comment {newest}, which does not exist"
            case Void() | SettingChange():
                return ""  # the ingest looks up what a void names, so there is no range to check
            case _:
                assert_never(record)
        if given != self._newest[type(record)] + 1:
            return f"the record has the number {given}, which is not the next one of its kind"
        self._newest[type(record)] = given
        return ""

    def _beyond(self, expiry: Expiry) -> str:
        named = (
            (max((each.last for each in expiry.edits), default=0), self._newest[Edit]),
            (max((each.last for each in expiry.decisions), default=0), self._newest[Decision]),
            (max(expiry.snapshots, default=0), self._newest[Snapshot]),
            (max(expiry.pins, default=0), self._newest[Pin]),
        )
        beyond = [number for number, newest in named if number > newest]
        return f"the record makes number {beyond[0]} expire, which does not exist" if beyond else ""
