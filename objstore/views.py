"""What surfaces are told: edits with their verdicts, plans, outcomes and reports, all as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from objstore.ids import BlobId, RecordId
from objstore.records import Action, Decision, DocumentId, Edit, Origin, Seq, Status, Unit

__all__ = [
    "CallInfo",
    "CallOutcome",
    "Conflict",
    "Conflicted",
    "Content",
    "Decided",
    "DecisionOutcome",
    "DecisionView",
    "EditFilter",
    "EditView",
    "ExternalChange",
    "ExternalChanges",
    "FileEffect",
    "NothingToDo",
    "OnExternal",
    "PendingGroup",
    "State",
    "StatusReport",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInfo:
    """Who asks for a change, and as part of what."""

    tool: str
    conversation: str = ""  # "": a new conversation
    origin: Origin = Origin.AGENT
    notes: Mapping[str, str] = field(default_factory=dict)  # agent, client, model, prompt, …


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A file as it stands on disk."""

    path: str  # relative to the workspace, after following links inside it
    bytes: bytes
    blob: BlobId
    mode: int  # permission bits


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A recorded state of one file."""

    path: str
    blob: BlobId | None  # None: the file does not exist in this state
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EditView:
    """A recorded edit and what has been said of it since."""

    id: RecordId
    edit: Edit
    status: Status  # rejected: every unit is; pending: any unit is; else accepted
    units: tuple[Status, ...]  # of units 0, 1, …: the whole-file part, then each hunk
    whole: bool  # whether unit 0 changes anything: existence, path, mode, final newline
    reason: str  # of the newest decision on it; "": none given

    @property
    def seq(self) -> Seq:
        """Return the edit's number in its workspace."""
        return self.edit.seq

    @property
    def partly(self) -> bool:
        """Return whether its units have different statuses."""
        first = 0 if self.whole or len(self.units) == 1 else 1
        return len(set(self.units[first:])) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFilter:
    """Which edits to list. Every given condition must hold."""

    conversation: str = ""
    path: str = ""  # now, before or after the edit
    status: Status | None = None
    newest_first: bool = False
    limit: int = 0  # 0: all


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """What a tracked call recorded and did."""

    conversation: str
    new_conversation: bool
    call: int  # position in the conversation
    edits: tuple[EditView, ...]  # the call's own; () when it changed nothing
    external: tuple[EditView, ...]  # changes nobody had recorded, found and recorded first


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEffect:
    """What a decision does, or would do, to one file on disk."""

    document: DocumentId
    path_before: str | None  # None: no file
    before: BlobId | None
    mode_before: int
    path_after: str | None
    after: BlobId | None
    mode_after: int


class OnExternal(StrEnum):
    """What to do about changes on disk that nobody recorded."""

    KEEP = "keep"  # record each as an edit, and carry it through
    DISCARD = "discard"  # record each, and go back to the last recorded state
    ABORT = "abort"  # change nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalChange:
    """A file that is not what the journal says."""

    document: DocumentId
    path: str
    recorded: BlobId | None  # None: the journal says that there is no file
    recorded_mode: int
    found: BlobId | None  # None: the file is gone
    found_mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Why a set of live edits has no text: one hunk, and what it needs."""

    kind: str  # missing-target, both-changed, surroundings-gone, text-returned-inside, path-taken
    unit: Unit
    needs: tuple[Unit, ...]
    path: str
    line: int  # 1-based, in the text as it stands; 0: the file as a whole
    removed: bytes  # the lines that the hunk took out
    inserted: bytes  # the lines that it put in

    def __str__(self) -> str:
        who = f"edit {self.unit.seq}" + (f" hunk {self.unit.hunk}" if self.unit.hunk else "")
        needs = ", ".join(str(seq) for seq in sorted({unit.seq for unit in self.needs}))
        where = f"{self.path}:{self.line}" if self.line else self.path
        match self.kind:
            case "both-changed":
                return f"{who} and edit {needs} both change the same lines ({where})"
            case "path-taken":
                return f"{who} puts a file where edit {needs} has put another ({where})"
            case "text-returned-inside":
                return f"{who} was made without text that edit {needs} decides on ({where})"
            case "surroundings-gone":
                return f"{who} stands between lines that edit {needs} decides on ({where})"
            case _:
                return f"{who} needs edit {needs} ({where})"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """A recorded decision."""

    id: RecordId
    decision: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The decision holds: on disk and in the journal (or would, if it was a dry run)."""

    action: Action
    number: int  # of the decision; 0: a dry run
    verdicts: tuple[tuple[Unit, Status], ...]  # units whose status changed
    cascaded: tuple[Unit, ...]  # those among them that were not named, but needed something that was
    files: tuple[FileEffect, ...]  # files whose bytes, mode or path change; () when only statuses do
    external: tuple[EditView, ...]  # changes nobody had recorded, recorded first


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflicted:
    """The decision was refused and nothing changed: these edits can't be live without those."""

    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalChanges:
    """Files have changed on disk since the last recorded state; nothing was done about the decision."""

    changes: tuple[ExternalChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToDo:
    """Every unit named has the wanted status already."""


DecisionOutcome: TypeAlias = Decided | Conflicted | ExternalChanges | NothingToDo


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingGroup:
    """Edits not yet decided, of one conversation in one file."""

    conversation: str
    path: str
    seqs: tuple[Seq, ...]
    added: int  # lines
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusReport:
    """A workspace at a glance."""

    root: str
    edits: int
    pending: int
    accepted: int
    rejected: int
    conversations: int
    groups: tuple[PendingGroup, ...]  # pending edits by conversation and file, in order of their first edit
    external: tuple[ExternalChange, ...]
    store_bytes: int  # of all segments
    blobs: int
