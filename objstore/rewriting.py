"""Rewriting: one segment's next generation in the making, from what the index holds of the segment.

What stays is copied frame by frame as it lies there, once its checksum was found right. Only two kinds of frames are
made anew: the first and the last of a group that has lost some, and a delta whose base goes.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.codec import Base, BlobHeader, Encoding, encode_blob, parse_blob_header
from objstore.errors import BlobMissing
from objstore.frames import FRAME_HEADER_SIZE, SEGMENT_HEADER_SIZE, FrameKind, RawFrame, encode_frame
from objstore.ids import HASH_SIZE, BlobId
from objstore.moves import Moves
from objstore.segments import GENERATION, Place

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from objstore.store import Store

__all__ = ["Rewriting"]

_FRAMES: Final = 1_000
"""Frames that are looked up, and written, together."""

# Where in a blob's frame, with its header, it says so; FORMAT.md has the offsets in the payload.
_ID: Final = slice(FRAME_HEADER_SIZE, FRAME_HEADER_SIZE + HASH_SIZE)
_ENCODING: Final = FRAME_HEADER_SIZE + 40
_BASE: Final = slice(FRAME_HEADER_SIZE + 48, FRAME_HEADER_SIZE + 48 + HASH_SIZE)
_DELTAS: Final = frozenset({Encoding.DELTA_RAW, Encoding.DELTA_ZSTD})

_Kept: TypeAlias = tuple[RawFrame, BlobId | None]
"""A frame that may stay, and its blob (None: a record)."""


class Rewriting:
    """What stays of one segment, and where it goes."""

    def __init__(self, store: "Store", segment: int, dropped: "AbstractSet[BlobId]") -> None:
        """Name the segment, and the blobs of it that are to go."""
        self._store: Final = store
        self._segment: Final = segment
        self._dropped: Final = dropped
        self._generation: Final = store.log.generations().get(segment, 0)
        self._position = SEGMENT_HEADER_SIZE  # where the next frame begins that stays
        self.moves: Final = Moves()
        self.gone: Final = bytearray()  # the ids of the blobs that go, one behind the other

    def pieces(self) -> Iterator[bytes]:
        """Yield the frames that stay, some groups at a time.

        Raises StoreDamaged where a frame's checksum or a blob that is spelt anew is wrong.
        """
        kept: list[_Kept] = []
        asked: list[BlobId] = []
        dropped = self._dropped
        for frame in self._store.log.raw_frames(Place(self._segment, self._generation * GENERATION)):
            blob = None
            if frame.kind == FrameKind.BLOB:
                blob = BlobId(bytes(frame.whole[_ID]))
                if blob in dropped:
                    self.gone.extend(blob)
                else:
                    asked.append(blob)
            if frame.commits or blob not in dropped:
                kept.append((frame, blob))
            if frame.commits and len(kept) >= _FRAMES:
                yield self._spelt(kept, asked)
                kept, asked = [], []
        yield self._spelt(kept, asked)

    def _spelt(self, frames: list[_Kept], asked: list[BlobId]) -> bytes:
        """Return the bytes of what stays of some groups, and note where it goes. `frames`: with the last of each."""
        offsets = self._store.index.offsets(self._segment, asked)
        base = self._generation * GENERATION
        spelt: list[bytes | memoryview] = []
        group: list[_Kept] = []
        for frame, blob in frames:
            # Of several frames of a blob, one counts; of one that goes, none.
            if blob is None or offsets.get(blob) == base + frame.position:
                group.append((frame, blob))
            if frame.commits:
                last = len(group) - 1
                for at, (stays, name) in enumerate(group):
                    content = self._frame(stays, name, begins=at == 0, commits=at == last)
                    self.moves.add(stays.position, self._position)
                    self._position += len(content)
                    spelt.append(content)
                group = []
        return b"".join(spelt)

    def _frame(self, frame: RawFrame, name: BlobId | None, *, begins: bool, commits: bool) -> bytes | memoryview:
        whole = frame.whole
        is_delta = name is not None and whole[_ENCODING] in _DELTAS
        is_respelt = is_delta and bytes(whole[_BASE]) in self._dropped
        if not is_respelt and bool(frame.begins) is begins and bool(frame.commits) is commits:
            return whole
        payload = bytes(whole[FRAME_HEADER_SIZE:])
        if is_respelt:
            self.moves.respell(self._position)
            payload = self._respelt(parse_blob_header(payload))
        return encode_frame(self._store.log.key, FrameKind(frame.kind), payload, begins=begins, commits=commits)

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
