"""Say in one object what a store is after a push: its segments in pieces, where it ends, and the head before.

The highest number counts. A head is created if absent, so of two that push at once one has to look again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from blake3 import blake3

from objstore.model.canonical_msgpack import Fields, Value, decode, encode
from objstore.model.ids import HASH_SIZE, RecordId
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE
from objstore.storage.log.segment_files import GENERATION, Place
from objstore.upkeep.remote.keys import MAX_NUMBER, Lane, head_folder, number_in, numbered
from objstore.values.errors import RecordInvalid
from objstore.values.fastclass import value
from objstore.values.request_errors import RemoteRefused, RemoteRolledBack

if TYPE_CHECKING:
    from objstore.upkeep.remote.bucket import Bucket

__all__ = ["MAX_HEAD", "MAX_LABEL", "PIECE", "Head", "Piece", "Seen", "SegmentPieces", "name_of", "newest_head"]

PIECE: Final = 8 << 20
"""The most bytes of a piece."""

MAX_HEAD: Final = 16 << 20
"""The most bytes of a head: enough for 300,000 pieces, 2 TB."""

_VERSION: Final = 1
_MOST_HEADS: Final = 1_000_000
MAX_LABEL: Final = 64
_MAX_GENERATION: Final = 1 << 22


@value
class Piece:
    """Consecutive bytes of a segment's file, as an object."""

    name: bytes  # the BLAKE3 of the bytes
    size: int  # 1 to PIECE


@value
class SegmentPieces:
    """A segment's file, as far as it was pushed."""

    number: int
    generation: int
    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        """Return how many bytes of the file the pieces have."""
        return sum(piece.size for piece in self.pieces)


@value
class Head:
    """What a store was after a push."""

    lane: Lane
    number: int  # from 1
    previous: bytes | None  # the hash of the head before; None: it is the first of its lane
    label: str  # the name that the store's owner gave it; anyone may claim any
    segments: tuple[SegmentPieces, ...]  # all, ascending from the first
    last: RecordId | None  # the last record; None: there is none
    edits: int  # how many edits there are, for display

    @property
    def end(self) -> Place:
        """Return where the log ends, after a whole group."""
        last = self.segments[-1]
        return Place(last.number, last.generation * GENERATION + last.size)

    @property
    def size(self) -> int:
        """Return how many bytes the log has."""
        return sum(segment.size for segment in self.segments)

    def pieces(self) -> dict[bytes, int]:
        """Return the size of each piece by its name."""
        return {piece.name: piece.size for segment in self.segments for piece in segment.pieces}

    def encode(self) -> bytes:
        """Return the bytes of the object."""
        segments: list[Value] = [
            [each.number, each.generation, [part for piece in each.pieces for part in (piece.name, piece.size)]]
            for each in self.segments
        ]
        fields: dict[str, Value] = {
            "kind": "head",
            "version": _VERSION,
            "lane": self.lane,
            "number": self.number,
            "label": self.label,
            "segments": segments,
            "edits": self.edits,
        }
        if self.previous is not None:
            fields["previous"] = self.previous
        if self.last is not None:
            fields["last"] = self.last
        return encode(fields)

    @classmethod
    def decode(cls, encoded: bytes, lane: Lane, number: int) -> Head:
        """Return the head in an object of a lane. Raises RecordInvalid."""
        fields = Fields(decode(encoded))
        if fields.text("kind") != "head" or fields.number("version") != _VERSION:
            raise RecordInvalid("it is of another kind or version")
        if fields.text("lane") != lane or fields.number("number") != number:
            raise RecordInvalid("it is of another lane, or another number")
        last = fields.hash_or_none("last")
        head = cls(
            lane=lane,
            number=number,
            previous=fields.hash_or_none("previous"),
            label=fields.text("label"),
            segments=tuple(map(_segment, fields.items("segments"))),
            last=None if last is None else RecordId(last),
            edits=fields.number("edits"),
        )
        fields.finish()
        first = head.segments[0].number if head.segments else 0
        if first != 1 or [each.number for each in head.segments] != list(range(first, first + len(head.segments))):
            raise RecordInvalid("its segments are not numbered from 1")
        if head.segments[-1].generation:
            raise RecordInvalid("its last segment was rewritten, and may not have been")
        if len(head.label) > MAX_LABEL:
            raise RecordInvalid("its label is too long")
        return head


@value
class Seen:
    """The newest head of a lane that this store has seen."""

    number: int
    name: bytes  # its hash
    body: bytes = b""  # its bytes, which then need not be fetched (b"": they were not kept)


def name_of(encoded: bytes) -> bytes:
    """Return the hash of a head's bytes, by which the next one names it."""
    return blake3(encoded).digest(HASH_SIZE)


def newest_head(bucket: Bucket, lane: Lane, seen: Seen | None) -> tuple[Head, bytes] | None:
    """Return the newest head of a lane and its hash (None: there is none).

    Raises RemoteRolledBack if it is older than the one seen, RemoteRefused if it is no head of this lane, or another
    one than that seen, and RemoteFailed.
    """
    folder = head_folder(lane)
    # From the one before, so that the one seen is listed too.
    after = numbered(folder, seen.number - 1) if seen is not None and seen.number > 1 else ""
    newest = 0
    for count, each in enumerate(bucket.listed(folder, after)):
        if count > _MOST_HEADS:
            raise RemoteRefused(bucket.url, f"{folder} has no end")
        newest = max(newest, number_in(folder, each.key) or 0)
    if seen is not None and newest < seen.number:
        raise RemoteRolledBack(bucket.url, folder, seen.number, newest)
    if not newest:
        return None
    if seen is not None and newest == seen.number and name_of(seen.body) == seen.name:
        encoded = seen.body
    else:
        encoded = bucket.get(numbered(folder, newest), MAX_HEAD)
    if seen is not None and newest == seen.number and name_of(encoded) != seen.name:
        raise RemoteRefused(bucket.url, f"head {newest} of {folder} is not the one that was seen: it was replaced")
    try:
        return Head.decode(encoded, lane, newest), name_of(encoded)
    except RecordInvalid as error:
        raise RemoteRefused(bucket.url, f"head {newest} of {folder} is invalid: {error}") from error


def _segment(value: Value) -> SegmentPieces:
    """Return a decoded segment. Raises RecordInvalid."""
    match value:
        case [int(number), int(generation), list(flat)] if type(number) is type(generation) is int:
            pieces = tuple(_piece(*pair) for pair in zip(flat[::2], flat[1::2], strict=False))
        case _:
            raise RecordInvalid("a segment of it is malformed")
    if not 1 <= number <= MAX_NUMBER or not 0 <= generation < _MAX_GENERATION or len(flat) % 2:
        raise RecordInvalid("a segment of it is malformed")
    found = SegmentPieces(number=number, generation=generation, pieces=pieces)
    if found.size < SEGMENT_HEADER_SIZE:
        raise RecordInvalid("a segment of it is shorter than its header")
    return found


def _piece(name: Value, size: Value) -> Piece:
    if not isinstance(name, bytes) or len(name) != HASH_SIZE or type(size) is not int or not 1 <= size <= PIECE:
        raise RecordInvalid("a piece of it is malformed")
    return Piece(name=name, size=size)
