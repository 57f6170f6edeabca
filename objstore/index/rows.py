"""Rows of the index as plain values, and the encoding of the reasons in one of their columns."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.errors import RecordInvalid
from objstore.fastclass import NamedTuple
from objstore.index.database import unusable
from objstore.log.segment_files import Place
from objstore.model import canonical_msgpack
from objstore.model.basic_types import DocumentId, FileState, Seq, Status, Unit
from objstore.model.ids import BlobId, RecordId
from objstore.model.ranges import ranges_of

if TYPE_CHECKING:
    from objstore.model.records import Record

__all__ = [
    "NO_REASONS",
    "STATUS_LETTERS",
    "Baseline",
    "BlobPlace",
    "ChainedRecord",
    "EditRow",
    "ExpiryRow",
    "HolderRow",
    "NewestNumbers",
    "RecordedFileStat",
    "Row",
    "StateOrigin",
    "Tip",
    "decode_reasons",
    "encode_reasons",
    "place_in_row",
    "status_in_row",
]

NO_REASONS: Final = b""
"""How it is spelt that no unit has one, as of most edits."""

STATUS_LETTERS: Final = {Status.PENDING: "p", Status.ACCEPTED: "a", Status.REJECTED: "r"}

_STATUSES: Final = {letter: status for status, letter in STATUS_LETTERS.items()}

Row: TypeAlias = tuple[int | str | bytes | None, ...]

RecordedFileStat: TypeAlias = tuple[
    int, bytes, bytes, int, int | None, int | None, int | None, int | None, bytes | None
]
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


class ChainedRecord(NamedTuple):
    """A record with its name and the name of the one before it."""

    record: "Record"
    id: RecordId
    previous: RecordId | None  # None: it is the first


class NewestNumbers(NamedTuple):
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
    reasons: bytes  # as `spelt_reasons` returns them
    expired: int  # number of the expiry that took what it mentions; 0: none has

    @property
    def rejected(self) -> list[Unit]:
        """Return the units that are rejected, of those that change anything."""
        first = 0 if self.whole or len(self.units) == 1 else 1
        return [Unit(self.seq, i) for i in range(first, len(self.units)) if self.units[i] is Status.REJECTED]


class StateOrigin(NamedTuple):
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


class HolderRow(NamedTuple):
    """What the index knows of a snapshot or a pin."""

    number: int
    id: RecordId
    place: Place
    expired: int  # number of the expiry that took it; 0: none has


def encode_reasons(reasons: Sequence[str]) -> bytes:
    """Return the spelling of the reasons of units 0, 1, … ("": none was given)."""
    units: dict[str, list[int]] = {}
    for unit, reason in enumerate(reasons):
        if reason:
            units.setdefault(reason, []).append(unit)
    if not units:
        return NO_REASONS
    return canonical_msgpack.encode({reason: list(chain(*ranges_of(numbers))) for reason, numbers in units.items()})


def decode_reasons(spelt: bytes, count: int) -> tuple[str, ...]:
    """Return the reason of each of `count` units. Raises DiskFailed where it is none of them that is spelt."""
    reasons = [""] * count
    if spelt == NO_REASONS:
        return tuple(reasons)
    try:
        found = canonical_msgpack.unpack(spelt)
    except RecordInvalid as error:
        raise unusable(error) from error
    for reason, told in found.items():
        ends = [end for end in told if isinstance(end, int)] if isinstance(told, list) else []
        firsts, lasts = ends[::2], ends[1::2]
        if ends != told or len(firsts) != len(lasts) or not all(0 <= end < count for end in ends):
            raise unusable(f"{told!r} are not some of {count} units")
        for first, last in zip(firsts, lasts, strict=True):
            reasons[first : last + 1] = [reason] * (last + 1 - first)
    return tuple(reasons)


# SQLite lets a column hold any type, and a damaged page may: a value of another type than the schema's is refused.


def place_in_row(segment: object, offset: object) -> Place:
    """Return the place that two columns of a row hold. Raises IndexUnusable if they hold something else."""
    if not isinstance(segment, int) or not isinstance(offset, int):
        raise unusable(f"nothing is at {segment!r}, {offset!r}")
    return Place(segment, offset)


def status_in_row(letter: object) -> Status:
    """Return the status that a column of a row holds. Raises IndexUnusable if it holds something else."""
    found = _STATUSES.get(letter) if isinstance(letter, str) else None
    if found is None:
        raise unusable(f"no status is spelt {letter!r}")
    return found
