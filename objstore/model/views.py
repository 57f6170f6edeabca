"""Views: what surfaces are shown of a workspace as it is, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from objstore.errors import EditExpired
from objstore.fastclass import value
from objstore.model.basic_types import Unit

if TYPE_CHECKING:
    from objstore.model.basic_types import DocumentId, Seq, Status
    from objstore.model.ids import BlobId, RecordId
    from objstore.model.records import Decision, Edit

__all__ = [
    "Content",
    "DecisionView",
    "DirectoryEntry",
    "EditFilter",
    "EditView",
    "Expiration",
    "ExternalChange",
    "PathInfo",
    "PendingGroup",
    "Reason",
    "Reclaimable",
    "Rejection",
    "State",
    "StatusReport",
    "UnresolvedMarkers",
]

_NAMED: Final = 10
"""Units that are named in a sentence with what was said of them: an edit may have thousands."""


@value
class Content:
    """A file as it stands on disk."""

    path: str  # relative to the workspace, after following links inside it
    bytes: bytes
    blob: BlobId
    mode: int  # permission bits


@value
class State:
    """A recorded state of one file."""

    path: str
    blob: BlobId | None  # None: the file does not exist in this state
    mode: int


@value
class Expiration:
    """When and why an edit's content was let go."""

    time: int  # microseconds since 1970-01-01 UTC
    reason: str


@value
class Reason:
    """Why units of one edit are decided as they are."""

    units: tuple[Unit, ...]
    text: str  # never ""

    def __str__(self) -> str:
        more = len(self.units) - _NAMED
        return f"{', '.join(map(str, self.units[:_NAMED]))}{f' and {more} more' if more > 0 else ''}: {self.text}"


@value
class EditView:
    """A recorded edit and what has been said of it since."""

    id: RecordId
    edit: Edit
    status: Status  # rejected: every unit is; pending: any unit is; else accepted
    units: tuple[Status, ...]  # of units 0, 1, …: the whole-file part, then each hunk
    whole: bool  # whether unit 0 changes anything: existence, path, mode, final newline
    reasons: tuple[str, ...]  # of the newest decision on each of these; "": it gave none
    expired: Expiration | None = None  # None: it can be shown and decided

    @property
    def seq(self) -> Seq:
        """Return the edit's number in its workspace."""
        return self.edit.seq

    @property
    def given(self) -> tuple[Reason, ...]:
        """Return the reasons that were given, each with the units that it is of, in the order of these."""
        units: dict[str, list[Unit]] = {}
        for hunk in self.telling:
            if self.reasons[hunk]:
                units.setdefault(self.reasons[hunk], []).append(Unit(self.seq, hunk))
        return tuple(Reason(units=tuple(of), text=text) for text, of in units.items())

    @property
    def reason(self) -> str:
        """Return the reason that was given of it, or of a part ("": none); of several, each behind its units."""
        given = self.given
        return given[0].text if len(given) == 1 else "; ".join(map(str, given))

    def refuse_if_expired(self) -> None:
        """Raise EditExpired where what the edit changed is kept no more."""
        if self.expired is not None:
            raise EditExpired(self.edit.seq, self.expired.time, self.expired.reason)

    @property
    def partly(self) -> bool:
        """Return whether its units have different statuses."""
        return len(set(self.units[self.telling.start :])) > 1

    @property
    def telling(self) -> range:
        """Return the numbers of its units, without a whole-file part from which nothing follows."""
        return range(0 if self.whole or len(self.units) == 1 else 1, len(self.units))


@value
class Rejection:
    """Units of one edit that were rejected for one reason."""

    edit: EditView
    units: tuple[Unit, ...]
    is_whole: bool  # whether these are all of the edit
    reason: str  # "": none given


@value
class UnreportedRejections:
    """What is rejected of a conversation's edits, and it was not told of."""

    rejections: tuple[Rejection, ...]  # the first of them, by edit
    more: int  # how many further edits are rejected, or a part of them
    units: frozenset[str]  # all that is rejected, as units are spelt


@value
class EditFilter:
    """Which edits to list. Every given condition must hold."""

    conversation: str = ""
    path: str = ""  # now, before or after the edit
    status: Status | None = None
    before: int = 0  # only edits with a lower number; 0: all
    newest_first: bool = False
    limit: int = 0  # 0: all
    skip: int = 0  # of those that fit, how many come before the first


@value
class Seen:
    """How far somebody has looked at a history."""

    next_edit: int = 1  # the number that the next edit got
    next_decision: int = 1


@value
class DecisionView:
    """A recorded decision."""

    id: RecordId
    decision: Decision


@value
class DirectoryEntry:
    """One name in a folder."""

    name: str
    kind: str  # file, directory, symlink, other
    size: int  # bytes, of a file


@value
class PathInfo:
    """What is known of a name without reading what it holds."""

    path: str  # canonical, relative to the root
    kind: str  # file, directory, symlink, other
    size: int  # bytes
    mode: int  # permission bits
    writable: bool  # whether somebody may write it, and this process may: a file, and the folder that it is in
    modified: int  # nanoseconds since the epoch
    accessed: int  # nanoseconds since the epoch


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
class UnresolvedMarkers:
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
    markers: tuple[UnresolvedMarkers, ...]  # by edit
    unreadable: tuple[str, ...]  # recorded files that can't be looked at, each with the reason
    store_bytes: int  # of all segments
    blobs: int
    reclaimable: Reclaimable
