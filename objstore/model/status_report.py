"""Define the status of a workspace as plain values: what awaits review, and what needs attention."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from objstore.values.fastclass import NamedTuple, value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from objstore.model.basic_types import Seq, Unit
    from objstore.model.records import Record
    from objstore.model.results import ExternalChange

__all__ = [
    "Caution",
    "Cautions",
    "Collision",
    "CommitAcceptance",
    "PendingGroup",
    "PendingTurn",
    "Reclaimable",
    "RunningCall",
    "SecretFiles",
    "Silence",
    "StatusReport",
    "UnresolvedMarkers",
    "UnreviewedCommit",
]


class PendingGroup(NamedTuple):
    """The pending edits of one turn in one file, or of one conversation if its turns are not known."""

    conversation: str
    owner: str  # as that of an EditView; UNKNOWN_AGENT: they are unattributed
    turn: int  # number of the turn; 0: none is known, or they were claimed for somebody else since
    path: str  # current path of the file
    seqs: tuple[Seq, ...]  # ascending
    added: int  # lines
    removed: int
    session: int  # number of the session, if no turn is known; 0: nor is a session


@value
class PendingTurn:
    """A turn that has pending edits."""

    number: int
    session: int  # number of its session
    client: str  # texts may be empty: not known
    prompt: str


@value
class UnresolvedMarkers:
    """Conflict markers that a decision wrote into a file and that are still in it."""

    edit: Seq  # the edit that wrote them
    decision: int  # the decision that it belongs to
    path: str
    lines: tuple[int, ...]  # where the marked places begin, from 1, in the present file
    decided: tuple[Unit, ...]  # the units that the decision named
    aside: tuple[Unit, ...]  # the units that conflict with it


@value
class Reclaimable:
    """An estimate of what a garbage collection could free, computed without planning one."""

    free_blobs: int  # blobs that nothing holds
    free_bytes: int  # approximate size of their frames
    older_than: int | None  # seconds, the age limit in force; None: there is none
    old_edits: int  # decided edits older than that: most of them may expire
    max_size: int | None  # bytes, the size limit in force; None: there is none
    unreadable: str  # why the limits could not be read; "": they could


@value
class Collision:
    """A file in which several sessions have pending edits."""

    path: str
    edits: Mapping[int, tuple[Seq, ...]]  # by the number of the session, ascending


@value
class RunningCall:
    """A call of an agent's own program whose end was not reported."""

    session: int  # its number; 0: the session has no turn or edit yet
    conversation: str
    client: str  # "": not known
    tool: str
    paths: tuple[str, ...] | None  # files that it may change; None: any
    began: int  # microseconds since 1970-01-01 UTC
    is_asked: bool  # whether a person was asked if it may run
    is_behind: bool  # whether it runs on after its answer
    is_abandoned: bool  # whether its client's process has ended; the next scan ends the call

    @property
    def state(self) -> str:
        """Return in words what is known of it."""
        if self.is_abandoned:
            return "its program has ended"
        return "waits for a person" if self.is_asked else "in the background" if self.is_behind else "running"


@value
class UnreviewedCommit:
    """A git commit that an agent made, with edits that no one has reviewed."""

    commit: str  # hexadecimal
    conversation: str
    edits: tuple[Seq, ...]  # pending edits that it contains, ascending


@value
class CommitAcceptance:
    """The newest decision, if a person's git commit made it."""

    commit: str  # hexadecimal
    edits: tuple[Seq, ...]  # edits that it accepted, ascending


class Silence(NamedTuple):
    """What does not arrive of the tools of a session."""

    lacks: str  # no-events, no-beginnings or no-ends; or lost-reports: of any session
    client: str  # "": not known
    conversation: str

    def __str__(self) -> str:
        """Say what does not arrive."""
        if self.lacks == "lost-reports":
            return "part of what hooks reported was lost; what no tool reports is unattributed for a day"
        client = self.client or "an agent"
        if self.lacks == "no-events":
            return f"files changed in a turn of {client}, but no event of its tools has arrived"
        what = "beginnings" if self.lacks == "no-beginnings" else "ends"
        return f"the {what} of the tools of {client} don't arrive, so that what they change is unattributed"


@value
class Caution:
    """Something that a person should hear of: what narrows the record, or was decided inside an agent's shell."""

    time: int  # microseconds since 1970-01-01 UTC
    record: Record | None = None
    path: str = ""  # that a rule leaves out now
    silence: Silence | None = None
    by_agent: bool = False  # whether it was made inside an agent's shell


@value
class Cautions:
    """What a person has not acknowledged yet, or was not shown yet in a client."""

    items: tuple[Caution, ...] = ()  # oldest first
    number: int = 0  # of the newest record among them, by which they are noted
    name: str = ""  # that record's id, hexadecimal
    remarks: int = 0  # how many remarks there were until now


@value
class SecretFiles:
    """Files whose names look like secrets."""

    left_out: tuple[str, ...]  # that the last scan left out, and of which nothing is stored
    stored: tuple[str, ...]  # whose bytes are stored: a tool named them, or they were recorded before


@value
class StatusReport:
    """An overview of a workspace."""

    root: str
    edits: int
    pending: int
    accepted: int
    rejected: int
    away: int  # their effect is not in the files now, because other text is there
    conversations: int
    sessions: int  # with edits: those of people belong to none
    groups: tuple[PendingGroup, ...]  # pending edits by turn and file, in order of their first edit
    turns: tuple[PendingTurn, ...]  # the turns of these groups, ascending
    external: tuple[ExternalChange, ...]  # files with edits first
    markers: tuple[UnresolvedMarkers, ...]  # by edit
    unreadable: tuple[str, ...]  # files and folders that can't be read, each with the reason
    store_bytes: int  # of all segments
    blobs: int
    reclaimable: Reclaimable
    secrets: SecretFiles
    collisions: tuple[Collision, ...] = ()  # by path
    comments: Mapping[str, int] = MappingProxyType({})  # how many are open, sent and answered
    policies: tuple[str, ...] = ()  # settings about reviews that were changed, but not by `cas config`
    running: tuple[RunningCall, ...] = ()  # calls of agents' own programs that have not ended, oldest first
    commits: tuple[UnreviewedCommit, ...] = ()  # newest first
    committed: CommitAcceptance | None = None  # None: the newest decision is no commit's
    cautions: tuple[Caution, ...] = ()  # that no person has acknowledged yet, oldest first
    compared: int | None = None  # how many files without edits were compared, if not all; None: all
