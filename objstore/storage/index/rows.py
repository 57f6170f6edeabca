"""Represent rows of the index as plain values, and encode the reasons in one of their columns."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.model.basic_types import CommentState, DocumentId, FileState, Seq, Status, Unit
from objstore.model.ids import BlobId, RecordId
from objstore.storage.index.database import unusable
from objstore.storage.log.segment_files import Place
from objstore.values.errors import RecordInvalid
from objstore.values.fastclass import NamedTuple

if TYPE_CHECKING:
    from objstore.model.records import Record

__all__ = [
    "NO_REASONS",
    "STATUS_LETTERS",
    "Baseline",
    "BlobPlace",
    "ChainedRecord",
    "CommentRow",
    "DocumentPosition",
    "DocumentRecords",
    "EditConditions",
    "EditRow",
    "ExpiryRow",
    "HolderRow",
    "LinesRow",
    "NewestNumbers",
    "PendingEdit",
    "RecordedFileStat",
    "Row",
    "SessionRow",
    "SettingRow",
    "StateOrigin",
    "Tip",
    "TurnEdit",
    "TurnRow",
    "decode_reasons",
    "encode_reasons",
    "place_in_row",
    "status_in_row",
]

NO_REASONS: Final = b""
"""The encoding if no unit has a reason, as in most edits."""

STATUS_LETTERS: Final = {Status.PENDING: "p", Status.ACCEPTED: "a", Status.REJECTED: "r", Status.AWAY: "w"}

_STATUSES: Final = {letter: status for status, letter in STATUS_LETTERS.items()}

Row: TypeAlias = tuple[int | str | bytes | None, ...]

RecordedFileStat: TypeAlias = tuple[
    int, bytes, bytes, int, int | None, int | None, int | None, int | None, bytes | None
]
"""Document, path, blob and mode as recorded; inode, size, mtime, ctime (ns) and blob as last read, or None."""


class BlobPlace(NamedTuple):
    """The place of a blob's frame, and the facts that a reader needs before reading it."""

    place: Place
    size: int
    depth: int


class Tip(NamedTuple):
    """The current path and state of a document according to the journal."""

    document: DocumentId
    path: bytes
    state: FileState | None  # None: it does not exist


class DocumentRecords(NamedTuple):
    """What a document's row says of its edits and the decisions on it, which other tables list.

    But for `last_edit` and `last_decision`, the values are sums of numbers.
    """

    edits: int = 0  # of all edits, voided ones included
    decisions: int = 0  # of all decisions, voided ones included
    last_edit: int = 0  # twice the highest number, and one more if that edit is voided
    last_decision: int = 0  # the same
    marked: int = 0  # of the edits that wrote conflict markers, without voided ones
    pending: int = 0  # of the edits that have a unit of this status, without voided ones
    accepted: int = 0
    rejected: int = 0
    away: int = 0

    def with_more(self, more: "DocumentRecords") -> "DocumentRecords":
        """Return the sums with more records."""
        return DocumentRecords(
            self.edits + more.edits,
            self.decisions + more.decisions,
            max(self.last_edit, more.last_edit),
            max(self.last_decision, more.last_decision),
            self.marked + more.marked,
            self.pending + more.pending,
            self.accepted + more.accepted,
            self.rejected + more.rejected,
            self.away + more.away,
        )

    def with_units(self, number: int, letters: str) -> "DocumentRecords":
        """Return the sums with an edit whose units have these statuses (a negative number: without it)."""
        return DocumentRecords(
            *self[:5],
            self.pending + (number if "p" in letters else 0),
            self.accepted + (number if "a" in letters else 0),
            self.rejected + (number if "r" in letters else 0),
            self.away + (number if "w" in letters else 0),
        )


class ChainedRecord(NamedTuple):
    """A record with its id and the id of the record before it."""

    record: "Record"
    id: RecordId
    previous: RecordId | None  # None: it is the first


class NewestNumbers(NamedTuple):
    """The newest number of each kind of numbered record; 0: there is none."""

    edits: int
    decisions: int
    snapshots: int
    pins: int
    turns: int
    comments: int


class EditConditions(NamedTuple):
    """The conditions for listing edits; all that are given must hold."""

    conversation: str = ""
    paths: Sequence[bytes] = ()  # documents that were ever at one of these
    status: Status | None = None
    turn: int = 0  # edits of this turn that were not claimed since; 0: any
    session: int = 0  # edits of this session, after claims; 0: any
    before: int = 0  # edits with lower numbers; 0: any


class DocumentPosition(NamedTuple):
    """The newest records that a document includes: the same position of the same journal means the same document."""

    document: DocumentId
    oldest: Seq  # its first edit that has not expired
    edit: RecordId  # its newest edit
    decision: RecordId | None  # the newest decision on it; None: there is none


class EditRow(NamedTuple):
    """The index's row of an edit."""

    seq: Seq
    id: RecordId
    place: Place
    status: Status
    units: tuple[Status, ...]
    whole: bool
    reasons: bytes  # as `encode_reasons` returns them
    expired: int  # number of the expiry that released the blobs that it mentions; 0: not expired
    owner: str  # the conversation that it is attributed to, after claims; "": the person
    marks: int  # the decision whose conflict markers it wrote; 0: none

    @property
    def rejected(self) -> list[Unit]:
        """Return the units that are rejected, of those that change anything."""
        first = 0 if self.whole or len(self.units) == 1 else 1
        return [Unit(self.seq, i) for i in range(first, len(self.units)) if self.units[i] is Status.REJECTED]


class PendingEdit(NamedTuple):
    """An edit that awaits review, as far as an overview needs it."""

    seq: Seq
    document: DocumentId
    path: bytes  # current path of the document
    conversation: str
    owner: str  # as that of an EditRow; UNKNOWN_AGENT: it is not known whose it is
    turn: int  # 0: none is known
    session: int  # 0: none is known
    added: int  # lines
    removed: int


class StateOrigin(NamedTuple):
    """The edit that led to a state, as far as delta encoding needs it."""

    path: bytes  # current path of the document
    document: DocumentId
    before: BlobId | None  # None: the edit introduced the file


class TurnRow(NamedTuple):
    """The index's row of a turn."""

    number: int
    id: RecordId
    place: Place
    time: int  # microseconds since 1970-01-01 UTC
    session: int  # number of its session
    conversation: str
    client: str
    model: str
    prompt: str


class TurnEdit(NamedTuple):
    """An edit of a turn, as far as an overview needs it."""

    turn: int
    seq: Seq
    path: bytes  # current path of the file
    status: Status
    added: int  # lines
    removed: int


class LinesRow(NamedTuple):
    """Counts of the lines that the edits of one turn, session and status added and removed."""

    turn: int  # 0: none
    session: int  # 0: none
    status: Status
    edits: int
    added: int  # lines
    removed: int
    first: Seq  # of these edits
    began: int  # time of the earliest of them, in microseconds since 1970-01-01 UTC


class SessionRow(NamedTuple):
    """The index's row of a session, with what its turns and edits say."""

    number: int
    name: str
    turns: int  # number of its turns
    edits: int  # number of its edits
    first_edit: Seq  # 0: it has none
    began: int  # time of its first turn or edit, in microseconds since 1970-01-01 UTC; 0: it has none
    ended: int  # time of its last one


class CommentRow(NamedTuple):
    """The index's row of a comment."""

    number: int
    id: RecordId
    place: Place
    document: DocumentId
    answers: int  # number of the comment that it answers; 0: none
    conversation: str  # of the agent that wrote it; "": a person wrote it
    state: CommentState
    sent: str  # the conversation that it was last sent to; "": none


class SettingRow(NamedTuple):
    """The index's row of a change of a setting."""

    place: Place
    time: int  # microseconds since 1970-01-01 UTC
    name: str


class ExpiryRow(NamedTuple):
    """The index's row of an expiry."""

    place: Place
    time: int  # microseconds since 1970-01-01 UTC
    reason: str


class Baseline(NamedTuple):
    """The snapshot that the first scan took, with which later scans compare."""

    number: int
    root: BlobId


class HolderRow(NamedTuple):
    """The index's row of a snapshot or a pin."""

    number: int
    id: RecordId
    place: Place
    expired: int  # number of the expiry that released it; 0: not expired


def encode_reasons(reasons: Sequence[str]) -> bytes:
    """Return the encoding of the reasons of units 0, 1, … ("": no reason was given)."""
    units: dict[str, list[int]] = {}
    for unit, reason in enumerate(reasons):
        if reason:
            units.setdefault(reason, []).append(unit)
    if not units:
        return NO_REASONS
    # Imported here, as in `decode_reasons`: a status reads no reasons, and would wait 1 ms for these modules.
    from objstore.model import canonical_msgpack
    from objstore.model.ranges import ranges_of

    return canonical_msgpack.encode({reason: list(chain(*ranges_of(numbers))) for reason, numbers in units.items()})


def decode_reasons(encoded: bytes, count: int) -> tuple[str, ...]:
    """Return the reason of each of `count` units. Raises IndexUnusable if the bytes don't encode that."""
    reasons = [""] * count
    if encoded == NO_REASONS:
        return tuple(reasons)
    from objstore.model import canonical_msgpack

    try:
        found = canonical_msgpack.unpack(encoded)
    except RecordInvalid as error:
        raise unusable(error) from error
    for reason, bounds in found.items():
        ends = [end for end in bounds if isinstance(end, int)] if isinstance(bounds, list) else []
        firsts, lasts = ends[::2], ends[1::2]
        if ends != bounds or len(firsts) != len(lasts) or not all(0 <= end < count for end in ends):
            raise unusable(f"{bounds!r} are not some of {count} units")
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
        raise unusable(f"no status has the letter {letter!r}")
    return found
