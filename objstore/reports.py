"""Reports: a workspace at a glance, as plain values. Apart from the other views, because a status needs no more."""

from __future__ import annotations

from objstore.annotations import TYPE_CHECKING

if TYPE_CHECKING:
    from objstore.ids import BlobId
    from objstore.terms import DocumentId, Seq, Unit

from objstore.values import value

__all__ = ["ExternalChange", "PendingGroup", "Reclaimable", "StandingMarkers", "StatusReport"]


@value
class ExternalChange:
    """A file that is not what the journal says."""

    document: DocumentId
    path: str
    recorded: BlobId | None  # None: the journal says that there is no file
    recorded_mode: int
    found: BlobId | None  # None: the file is gone
    found_mode: int


@value
class PendingGroup:
    """Edits not yet decided, of one conversation in one file."""

    conversation: str
    path: str
    seqs: tuple[Seq, ...]
    added: int  # lines
    removed: int


@value
class StandingMarkers:
    """Conflict markers that a decision wrote into a file and that are still there."""

    edit: Seq  # the edit that wrote them
    decision: int  # the decision that it belongs to
    path: str
    lines: tuple[int, ...]  # where the places begin, from 1, in the file as it stands
    decided: tuple[Unit, ...]  # what the decision named
    aside: tuple[Unit, ...]  # what could not stand with it


@value
class Reclaimable:
    """What a collection could free, told without planning one."""

    free_blobs: int  # that nothing holds
    free_bytes: int  # of their frames, about
    older_than: int | None  # seconds, the age limit in force; None: there is none
    old_edits: int  # that are decided and older: most of them may be let go
    max_size: int | None  # bytes, the size limit in force; None: there is none
    unreadable: str  # why the limits could not be told; "": they could


@value
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
    markers: tuple[StandingMarkers, ...]  # by edit
    unreadable: tuple[str, ...]  # recorded files that can't be looked at, each with the reason
    store_bytes: int  # of all segments
    blobs: int
    reclaimable: Reclaimable
