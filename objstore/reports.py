"""Reports: a workspace at a glance, as plain values. Apart from the other views, because a status needs no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from objstore.ids import BlobId
    from objstore.terms import DocumentId, Seq

__all__ = ["ExternalChange", "PendingGroup", "StatusReport"]


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
    unreadable: tuple[str, ...]  # recorded files that can't be looked at, each with the reason
    store_bytes: int  # of all segments
    blobs: int
