"""Write a segment's next generation without the blobs that nothing holds.

Kept frames are copied byte for byte after their checksum was verified. Only two kinds of frames are encoded again: the
first and last of a group that has lost frames, and a delta whose base is removed.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from objstore.model.ids import BlobId
from objstore.storage.index.moved_frames import MovedFrames
from objstore.storage.log.blob_codec import (
    BASE_AT,
    ENCODING_AT,
    ID_AT,
    Base,
    BlobHeader,
    Encoding,
    encode_blob,
    parse_blob_header,
)
from objstore.storage.log.frames import FRAME_HEADER_SIZE, SEGMENT_HEADER_SIZE, FrameKind, RawFrame, encode_frame
from objstore.storage.log.segment_files import GENERATION, Place
from objstore.values.errors import BlobMissing, IndexDamaged, StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from objstore.storage.store.object_store import Store

__all__ = ["SegmentRewrite", "require_readable_frame"]

_PIECE: Final = 1 << 20
"""Bytes per write."""

# Offsets in a blob's frame, counted from the start of the frame header.
_ID: Final = slice(FRAME_HEADER_SIZE + ID_AT.start, FRAME_HEADER_SIZE + ID_AT.stop)
_ENCODING: Final = FRAME_HEADER_SIZE + ENCODING_AT
_BASE: Final = slice(FRAME_HEADER_SIZE + BASE_AT.start, FRAME_HEADER_SIZE + BASE_AT.stop)
# Plain numbers: looking up an enum member costs more than everything else that most frames need.
_DELTAS: Final = frozenset({int(Encoding.DELTA_RAW), int(Encoding.DELTA_ZSTD)})
_BLOB: Final = int(FrameKind.BLOB)


class SegmentRewrite:
    """The kept frames of one segment; `moved` has their new places."""

    def __init__(
        self, store: "Store", segment: int, staying: "AbstractSet[int]", dropped: "AbstractSet[BlobId]"
    ) -> None:
        """Take the segment's number, the offsets of its kept blobs, and all blobs that are removed from the log."""
        self._store: Final = store
        self._segment: Final = segment
        self._staying: Final = staying
        going = [frame for frame in store.index.blobs.dead_frames(segment) if frame[0] in dropped]
        self._going: Final = {offset: size for _, offset, size in going}
        self._dropped: Final = dropped
        self._generation: Final = store.log.files.generation(segment)
        self._position = SEGMENT_HEADER_SIZE  # where the next kept frame will begin
        self.moved: Final = MovedFrames(segment, self._generation)
        self.moved.dropped.extend(name for name, *_ in going)

    def pieces(self) -> Iterator[bytes]:
        """Yield the kept frames, some groups at a time.

        A removed frame must have the offset and length that the index gives, or it could take the frames after it
        along; nothing else of it is checked. Raises StoreDamaged where the checksum of a kept frame, or a blob that is
        encoded again, is wrong. Raises IndexDamaged where the index and the log disagree on which frames exist: a frame
        that is neither kept nor removed would be lost.
        """
        staying, going, dropped = self._staying, self._going, self._dropped
        require_intact = self._store.log.require_intact
        segment, base = self._segment, self._generation * GENERATION
        piece: list[bytes] = []
        begun = self._position
        group: list[RawFrame] = []
        orphaned: list[int] = []  # positions in the group of deltas whose base is removed
        found = 0
        others: list[tuple[BlobId, int]] = []
        for frames in self._store.log.unverified_frames(Place(segment, base)):
            for frame in frames:
                position, kind, _, commits, whole = frame
                # Of several frames of a kept blob, one counts; of a removed blob, none.
                if kind != _BLOB:
                    require_intact(segment, frame)
                    group.append(frame)
                elif base + position in staying:
                    require_intact(segment, frame)
                    if whole[_ENCODING] in _DELTAS and whole[_BASE] in dropped:
                        orphaned.append(len(group))
                    group.append(frame)
                    found += 1
                elif going.get(base + position) != len(whole):
                    require_intact(segment, frame)
                    if whole[_ID] not in dropped:
                        others.append((BlobId(whole[_ID]), base + position))
                if commits:
                    piece += self._group(group, orphaned)
                    group, orphaned = [], []
                    if self._position - begun >= _PIECE:
                        yield b"".join(piece)
                        piece, begun = [], self._position
        self._check(found, others)
        yield b"".join(piece)

    def _check(self, found: int, others: list[tuple[BlobId, int]]) -> None:
        """Raise IndexDamaged unless every kept blob was found, and each other one has another frame that counts."""
        if found != len(self._staying):
            raise IndexDamaged(
                f"it lists {len(self._staying) - found} blobs in segment {self._segment} that are not there"
            )
        known = self._store.index.blobs.places([blob for blob, _ in others])
        for blob, offset in others:
            place = known.get(blob)
            if place is None or place == (self._segment, offset):
                raise IndexDamaged(f"blob {blob.hex()} is in the log but not in the index")
            require_readable_frame(self._store, blob, place)

    def _group(self, group: list[RawFrame], orphaned: list[int]) -> list[bytes]:
        """Return the kept frames of a group as they will be written, and note their new places.

        `orphaned`: the positions of the deltas whose base is removed, ascending.
        """
        if not group:
            return []
        encoded = [frame.whole for frame in group]
        last = len(group) - 1
        changed = {at: self._reencode(parse_blob_header(_payload(group[at]))) for at in orphaned}
        if not group[0].begins:
            changed.setdefault(0, _payload(group[0]))
        if not group[last].commits:
            changed.setdefault(last, _payload(group[last]))
        for at, payload in changed.items():
            kind = FrameKind(group[at].kind)
            encoded[at] = encode_frame(self._store.log.key, kind, payload, begins=at == 0, commits=at == last)
        reencoded = {at: changed[at] for at in orphaned}
        for at, frame in enumerate(group):
            self.moved.keep(frame, self._position, reencoded.get(at))
            self._position += len(encoded[at])
        return encoded

    def _reencode(self, header: BlobHeader) -> bytes:
        content = self._store.read_once(header.id)
        self._store.remember(header.id, content)
        return encode_blob(content, self._live_base(header.base), name=header.id)[1]

    def _live_base(self, name: BlobId | None) -> Base | None:
        """Return the nearest blob of a delta chain that is kept (None: none is)."""
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
    """Raise IndexDamaged unless the frame that counts for a blob is intact and where the index says.

    Call it before another frame of the blob is removed.
    """
    header = None
    with suppress(StoreDamaged):
        frame = store.log.read(place)
        header = parse_blob_header(frame.payload) if frame.kind is FrameKind.BLOB else None
    if header is None or header.id != name:
        raise IndexDamaged(f"blob {name.hex()} is not where the index says")
