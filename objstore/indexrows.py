"""Rows: what the index knows of things, as plain values."""

from objstore.annotations import TYPE_CHECKING, Final, TypeAlias
from objstore.generations import Place
from objstore.ids import BlobId, RecordId
from objstore.terms import DocumentId, FileState, Seq, Status, Unit
from objstore.values import NamedTuple

if TYPE_CHECKING:
    from objstore.records import Record

__all__ = [
    "STATUS_LETTERS",
    "Baseline",
    "BlobPlace",
    "Chained",
    "EditRow",
    "ExpiryRow",
    "HoldRow",
    "Look",
    "Newest",
    "Row",
    "StateTold",
    "Tip",
]

STATUS_LETTERS: Final = {Status.PENDING: "p", Status.ACCEPTED: "a", Status.REJECTED: "r"}

Row: TypeAlias = tuple[int | str | bytes | None, ...]

Look: TypeAlias = tuple[int, bytes, bytes, int, int | None, int | None, int | None, int | None, bytes | None]
"""Document, path, blob and mode as recorded; inode, size, mtime, ctime (ns) and blob as last read, or None."""


class BlobPlace(NamedTuple):
    """Where a blob's frame lies, and what must be known before it is read."""

    place: Place
    size: int
    depth: int


class Tip(NamedTuple):
    """A document as the journal last says: where it stands and what it holds."""

    document: DocumentId
    path: bytes
    state: FileState | None  # None: it does not exist


class Chained(NamedTuple):
    """A record with its name and the name of the one before it."""

    record: "Record"
    id: RecordId
    previous: RecordId | None  # None: it is the first


class Newest(NamedTuple):
    """The newest number of each kind of record that has numbers; 0: there is none."""

    edits: int
    decisions: int
    snapshots: int
    pins: int


class EditRow(NamedTuple):
    """What the index knows of an edit."""

    seq: Seq
    id: RecordId
    place: Place
    status: Status
    units: tuple[Status, ...]
    whole: bool
    reasons: bytes  # as `reasons` spells them
    expired: int  # number of the expiry that took what it mentions; 0: none has

    @property
    def rejected(self) -> list[Unit]:
        """Return the units that are rejected, of those that change anything."""
        first = 0 if self.whole or len(self.units) == 1 else 1
        return [Unit(self.seq, i) for i in range(first, len(self.units)) if self.units[i] is Status.REJECTED]


class StateTold(NamedTuple):
    """What an edit says of the state that it led to."""

    path: bytes  # of the document as it is now
    document: DocumentId
    before: BlobId | None  # None: the edit introduced the file


class ExpiryRow(NamedTuple):
    """What the index knows of an expiry."""

    place: Place
    time: int  # microseconds since 1970-01-01 UTC
    reason: str


class Baseline(NamedTuple):
    """The snapshot that the first look took by itself, with which later ones compare."""

    number: int
    root: BlobId


class HoldRow(NamedTuple):
    """What the index knows of a snapshot or a pin."""

    number: int
    id: RecordId
    place: Place
    expired: int  # number of the expiry that took it; 0: none has
