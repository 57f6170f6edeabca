"""Rewriting: one segment's next generation in the making, from what the index holds of the segment.

What stays is copied frame by frame as it lies there, once its checksum was found right. Only two kinds of frames are
made anew: the first and the last of a group that has lost some, and a delta whose base goes.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from objstore.errors import BlobMissing, IndexDamaged, StoreDamaged
from objstore.log.blob_codec import (
    BASE_AT,
    ENCODING_AT,
    ID_AT,
    Base,
    BlobHeader,
    Encoding,
    encode_blob,
    parse_blob_header,
)
from objstore.log.frame_moves import FrameMoves
from objstore.log.frames import FRAME_HEADER_SIZE, SEGMENT_HEADER_SIZE, FrameKind, RawFrame, encode_frame
from objstore.log.segment_files import GENERATION, Place
from objstore.model.ids import BlobId

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from objstore.store.object_store import Store

__all__ = ["SegmentRewrite", "require_readable_frame"]

_PIECE: Final = 1 << 20
"""Bytes that are written together."""

# Where they stand in a blob's frame, with its header.
_ID: Final = slice(FRAME_HEADER_SIZE + ID_AT.start, FRAME_HEADER_SIZE + ID_AT.stop)
_ENCODING: Final = FRAME_HEADER_SIZE + ENCODING_AT
_BASE: Final = slice(FRAME_HEADER_SIZE + BASE_AT.start, FRAME_HEADER_SIZE + BASE_AT.stop)
# Plain numbers: members of an enum cost more to look up than all else that most frames need.
_DELTAS: Final = frozenset({int(Encoding.DELTA_RAW), int(Encoding.DELTA_ZSTD)})
_BLOB: Final = int(FrameKind.BLOB)


class SegmentRewrite:
    """What stays of one segment, and where it goes."""

    def __init__(
        self, store: "Store", segment: int, staying: "AbstractSet[int]", dropped: "AbstractSet[BlobId]"
    ) -> None:
        """Name the segment, the offsets of the blobs in it that stay, and all blobs that go."""
        self._store: Final = store
        self._segment: Final = segment
        self._staying: Final = staying
        going = store.index.blobs.dead_frames(segment)
        self._going: Final = {offset: size for name, offset, size in going if name in dropped}
        self._dropped: Final = dropped
        self._generation: Final = store.log.generations().get(segment, 0)
        self._position = SEGMENT_HEADER_SIZE  # where the next frame begins that stays
        self.moves: Final = FrameMoves()

    def pieces(self) -> Iterator[bytes]:
        """Yield the frames that stay, some groups at a time.

        What goes has to lie where the index says, with as many bytes, or it might take along what lies behind it; then
        nothing else of it need be right. Raises StoreDamaged where a checksum of what stays or a blob that is spelt
        anew is wrong, and IndexDamaged where what stays by the index is not what stands in the log: what neither stays
        nor goes would be lost.
        """
        staying, going, dropped = self._staying, self._going, self._dropped
        require_intact = self._store.log.require_intact
        segment, base = self._segment, self._generation * GENERATION
        piece: list[bytes] = []
        begun = self._position
        group: list[RawFrame] = []
        bereft: list[int] = []  # which of the group are deltas whose base goes
        found = 0
        others: list[tuple[BlobId, int]] = []
        for frames in self._store.log.unverified_frames(Place(segment, base)):
            for frame in frames:
                position, kind, _, commits, whole = frame
                # Of several frames of a blob, one counts; of one that goes, none.
                if kind != _BLOB:
                    require_intact(segment, frame)
                    group.append(frame)
                elif base + position in staying:
                    require_intact(segment, frame)
                    if whole[_ENCODING] in _DELTAS and whole[_BASE] in dropped:
                        bereft.append(len(group))
                    group.append(frame)
                    found += 1
                elif going.get(base + position) != len(whole):
                    require_intact(segment, frame)
                    if whole[_ID] not in dropped:
                        others.append((BlobId(whole[_ID]), base + position))
                if commits:
                    piece += self._group(group, bereft)
                    group, bereft = [], []
                    if self._position - begun >= _PIECE:
                        yield b"".join(piece)
                        piece, begun = [], self._position
        self._check(found, others)
        yield b"".join(piece)

    def _check(self, found: int, others: list[tuple[BlobId, int]]) -> None:
        """See that all that stays was found, and that of what was found besides there is another frame that counts."""
        if found != len(self._staying):
            raise IndexDamaged(
                f"it has {len(self._staying) - found} blobs in segment {self._segment} that are not there"
            )
        known = self._store.index.blobs.places([blob for blob, _ in others])
        for blob, offset in others:
            place = known.get(blob)
            if place is None or place == (self._segment, offset):
                raise IndexDamaged(f"blob {blob.hex()} is in the log and not in it")
            require_readable_frame(self._store, blob, place)

    def _group(self, group: list[RawFrame], bereft: list[int]) -> list[bytes]:
        """Return what stays of a group as it is to be, and note where it goes.

        `bereft`: which of the frames are deltas whose base goes, ascending.
        """
        if not group:
            return []
        spelt = [frame.whole for frame in group]
        last = len(group) - 1
        anew = {at: self._respelt(parse_blob_header(_payload(group[at]))) for at in bereft}
        if not group[0].begins:
            anew.setdefault(0, _payload(group[0]))
        if not group[last].commits:
            anew.setdefault(last, _payload(group[last]))
        for at, payload in anew.items():
            kind = FrameKind(group[at].kind)
            spelt[at] = encode_frame(self._store.log.key, kind, payload, begins=at == 0, commits=at == last)
        *positions, self._position = accumulate(map(len, spelt), initial=self._position)
        self.moves.extend([frame.position for frame in group], positions)
        for at in bereft:
            self.moves.mark_reencoded(positions[at])
        return spelt

    def _respelt(self, header: BlobHeader) -> bytes:
        content = self._store.read_once(header.id)
        self._store.remember(header.id, content)
        return encode_blob(content, self._live_base(header.base), name=header.id)[1]

    def _live_base(self, name: BlobId | None) -> Base | None:
        """Return the nearest blob of a chain that stays (None: none does)."""
        while name is not None:
            found = self._store.blob_place(name)
            if found is None:
                raise BlobMissing(name)
            if name not in self._dropped:
                return Base(id=name, content=self._store.read_once(name), depth=found.depth)
            name = parse_blob_header(self._store.log.read(found.place).payload).base
        return None


def _payload(frame: RawFrame) -> bytes:
    return frame.whole[FRAME_HEADER_SIZE:]


def require_readable_frame(store: "Store", name: BlobId, place: Place) -> None:
    """See that the frame that counts of a blob is where the index says, and sound, before another one goes.

    Raises IndexDamaged.
    """
    header = None
    with suppress(StoreDamaged):
        frame = store.log.read(place)
        header = parse_blob_header(frame.payload) if frame.kind is FrameKind.BLOB else None
    if header is None or header.id != name:
        raise IndexDamaged(f"blob {name.hex()} is not where it says")
