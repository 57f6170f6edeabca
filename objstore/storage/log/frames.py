"""Encode and read frames, which hold the blobs and records of a segment, and detect damage.

FORMAT.md gives the offsets. A frame carries its length and a keyed BLAKE3 checksum over everything else in it. The key
comes from the store's id, so a copy of a segment inside a user's file can't be mistaken for frames of the store. Ogg
and zstd's skippable frames have the idea of a marker to find frames again after damage; SQLite's WAL commits a group by
its last frame in the same way. The first frame is marked too, because after a power cut the end of a group may be on
disk without its beginning, and must not be read as a group.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Final, NewType, TypeAlias

from blake3 import blake3

from objstore.values.errors import FormatTooNew, FormatTooOld, StoreDamaged
from objstore.values.fastclass import NamedTuple, replace, value

__all__ = [
    "FORMAT_VERSION",
    "FRAME_HEADER_SIZE",
    "MARKER",
    "MAX_PAYLOAD",
    "SEGMENT_HEADER_SIZE",
    "STORE_ID",
    "WRONG_CHECKSUM",
    "Frame",
    "FrameKey",
    "FrameKind",
    "Gap",
    "RawFrame",
    "SegmentHeader",
    "StoreId",
    "committed",
    "declared_size",
    "encode_frame",
    "first_damage",
    "frame_key",
    "is_intact",
    "payload_at",
    "raw_frames",
    "read_frame",
    "scan_windows",
    "unverified_frames",
]

FORMAT_VERSION: Final = 1
"""Version of the segments that this program reads and writes."""

MARKER: Final = b"\xf5\xca\x5e\xfa"
"""The first bytes of every frame. 0xf5 and 0xfa occur in no UTF-8 text."""

MAX_PAYLOAD: Final = 1 << 32
"""Longest payload; a longer one is damage, and is rejected before memory is allocated."""

_MAGIC: Final = b"\x89EDLOG\r\n"
_EARLIER_MAGIC: Final = b"\x89CASLOG\n"
"""The first bytes of a segment that a version before format 1 wrote. The rest of its header is as today."""

_SEGMENT_HEADER: Final = Struct("<8sH6x16sQQ")
_FRAME_HEADER: Final = Struct("<4sBBHQ")
_CHECKSUM_SIZE: Final = 16

SEGMENT_HEADER_SIZE: Final = _SEGMENT_HEADER.size + _CHECKSUM_SIZE
STORE_ID: Final = slice(16, 32)
"""Position of the store's id in a segment's header."""

_FIELDS_SIZE: Final = _FRAME_HEADER.size
FRAME_HEADER_SIZE: Final = _FIELDS_SIZE + _CHECKSUM_SIZE

StoreId = NewType("StoreId", bytes)
"""16 random bytes, chosen when a store is created and repeated in each of its segments."""

FrameKey = NewType("FrameKey", bytes)
"""The checksum key of one store's frames."""

Buffer: TypeAlias = bytes | memoryview


class FrameKind(IntEnum):
    """The kind of a frame's payload."""

    BLOB = 1
    RECORD = 2


_KINDS: Final = {int(kind): kind for kind in FrameKind}
_WINDOW: Final = 1 << 20
"""Bytes of a segment that a scan holds in memory, unless a frame is longer."""

WRONG_CHECKSUM: Final = "a frame's checksum does not match"
"""The reason for a frame whose header or payload is not what was written."""

_NO_HEADER: Final = (b"", 0, 0, 0, 0)
_LENGTH_AND_CHECKSUM: Final = Struct("<8xQ16s")
_COMMITS: Final = 1
_BEGINS: Final = 2
_FLAGS: Final = _BEGINS | _COMMITS


@value
class SegmentHeader:
    """The header of a segment."""

    store: StoreId
    number: int
    created: int  # microseconds since 1970-01-01 UTC
    version: int = FORMAT_VERSION

    def encode(self) -> bytes:
        """Return the 64 bytes at the start of the segment."""
        fields = _SEGMENT_HEADER.pack(_MAGIC, self.version, self.store, self.number, self.created)
        return fields + blake3(fields).digest(_CHECKSUM_SIZE)

    @classmethod
    def decode(cls, content: Buffer, *, segment: int | None) -> "SegmentHeader":
        """Return the header at the start of `content`.

        `segment` is the number in the file's name; None: the number is unknown, so any is right. Raises StoreDamaged,
        FormatTooNew or FormatTooOld.
        """
        fields = bytes(content[: _SEGMENT_HEADER.size])
        checksum = bytes(content[_SEGMENT_HEADER.size : SEGMENT_HEADER_SIZE])
        if len(checksum) != _CHECKSUM_SIZE or blake3(fields).digest(_CHECKSUM_SIZE) != checksum:
            raise StoreDamaged(segment or 0, 0, "the segment's header is damaged")
        magic, version, store, number, created = _SEGMENT_HEADER.unpack(fields)
        if magic == _EARLIER_MAGIC:
            raise FormatTooOld
        if magic != _MAGIC:
            raise StoreDamaged(segment or 0, 0, "the file is not a segment")
        if version > FORMAT_VERSION:
            raise FormatTooNew(version, FORMAT_VERSION)
        if segment is not None and number != segment:
            raise StoreDamaged(segment, 0, f"the segment's header has the number {number}")
        return cls(store=StoreId(store), number=number, created=created, version=version)


@value
class Frame:
    """One valid frame and its position."""

    offset: int  # of the frame's first byte in its segment
    kind: FrameKind
    begins: bool  # the first of its group
    commits: bool  # the last of its group
    payload: Buffer

    @property
    def end(self) -> int:
        """Return the offset just after the frame."""
        return self.offset + FRAME_HEADER_SIZE + len(self.payload)


@value
class Gap:
    """Bytes of a segment in which no valid frame begins."""

    offset: int
    end: int
    reason: str


class RawFrame(NamedTuple):
    """One valid frame with its encoded bytes."""

    position: int  # of its first byte in the file
    kind: int  # a FrameKind
    begins: int  # not 0: the first of its group
    commits: int  # not 0: the last of its group
    whole: bytes  # header and payload


def frame_key(store: StoreId) -> FrameKey:
    """Return the checksum key of the store's frames (32 bytes)."""
    return FrameKey(blake3(store, derive_key_context="editledger 2026-11 segment frame checksum").digest())


def encode_frame(key: FrameKey, kind: FrameKind, payload: bytes, *, begins: bool, commits: bool) -> bytes:
    """Return the frame's bytes. Raises ValueError if the payload is over the limit."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"payload of {len(payload)} bytes is over {MAX_PAYLOAD}")
    flags = begins * _BEGINS | commits * _COMMITS
    fields = _FRAME_HEADER.pack(MARKER, kind, flags, 0, len(payload))
    return b"".join((fields, _checksum(key, fields, payload), payload))


def read_frame(content: Buffer, key: FrameKey, offset: int, *, base: int = 0) -> Frame | Gap:
    """Return the frame at `offset` of `content`, or a Gap with the reason why there is none.

    `base` is the position of `content` in the segment; offsets in the result count from the segment's start.
    """
    at = base + offset
    start = offset + FRAME_HEADER_SIZE
    if start > len(content):
        return Gap(offset=at, end=base + len(content), reason="cut off in a frame's header")
    fields = bytes(content[offset : offset + _FRAME_HEADER.size])
    marker, kind, flags, reserved, length = _FRAME_HEADER.unpack(fields)
    if marker != MARKER:
        return Gap(offset=at, end=at + 1, reason="no frame begins here")
    if _is_damaged(kind, flags, reserved, length):
        return Gap(offset=at, end=at + 1, reason="a frame's header is damaged")
    if start + length > len(content):
        return Gap(offset=at, end=base + len(content), reason="cut off in a frame")
    payload = content[start : start + length]
    if _checksum(key, fields, payload) != content[start - _CHECKSUM_SIZE : start]:
        return Gap(offset=at, end=at + 1, reason=WRONG_CHECKSUM)
    return Frame(
        offset=at,
        kind=_KINDS[kind],
        begins=bool(flags & _BEGINS),
        commits=bool(flags & _COMMITS),
        payload=payload,
    )


def declared_size(content: Buffer, offset: int = 0) -> int | None:
    """Return the size of the frame at `offset` that its header declares, unverified; None: the header is cut off."""
    if offset + FRAME_HEADER_SIZE > len(content):
        return None
    *_, length = _FRAME_HEADER.unpack_from(content, offset)
    return FRAME_HEADER_SIZE + int(length)


def _is_damaged(kind: int, flags: int, reserved: int, length: int) -> bool:
    """Return whether no valid frame has these header fields."""
    return kind not in _KINDS or flags > _FLAGS or reserved != 0 or length > MAX_PAYLOAD


def payload_at(content: bytes, key: FrameKey, offset: int, kind: FrameKind) -> bytes | None:
    """Return the payload of the valid frame of this kind at `offset` of `content`; None if there is none.

    It takes a fraction of the time of `read_frame`, which reports the reason for an invalid frame.
    """
    start = offset + FRAME_HEADER_SIZE
    if start > len(content):
        return None
    marker, found, flags, reserved, length = _FRAME_HEADER.unpack_from(content, offset)
    if marker != MARKER or found != kind or flags > _FLAGS or reserved or length > MAX_PAYLOAD:
        return None
    payload, checked = content[start : start + length], offset + _FIELDS_SIZE
    if len(payload) != length:
        return None
    checksum = blake3(content[offset:checked] + payload, key=key).digest(_CHECKSUM_SIZE)
    return payload if checksum == content[checked:start] else None


def raw_frames(read: Callable[[int, int], bytes], key: FrameKey, start: int, end: int) -> Iterator[RawFrame | Gap]:
    """Yield the frames of a segment that should hold only whole groups; stop after a Gap if it doesn't.

    It takes a fraction of the time of `scan_windows`, for callers that read all of an undamaged segment. `read(offset,
    size)` is as there.
    """
    for frames, gap in unverified_frames(read, start, end):
        for frame in frames:
            if not is_intact(key, frame.whole):
                yield Gap(offset=frame.position, end=frame.position + 1, reason=WRONG_CHECKSUM)
                return
            yield frame
        if gap is not None:
            yield gap


def is_intact(key: FrameKey, whole: bytes) -> bool:
    """Return whether the checksum in a frame matches its header and payload."""
    fields = whole[:_FIELDS_SIZE] + whole[FRAME_HEADER_SIZE:]
    return bool(blake3(fields, key=key).digest(_CHECKSUM_SIZE) == whole[_FIELDS_SIZE:FRAME_HEADER_SIZE])


def first_damage(read: Callable[[int, int], bytes], key: FrameKey, start: int, end: int) -> Gap | None:
    """Return the first bytes of a segment from `start` on that are no frame with a right checksum (None: all are).

    It makes nothing of the frames, and so takes a third of the time of `raw_frames`. `read(offset, size)` is as there.
    """
    hasher = blake3(key=key)
    base, at, piece = start, 0, b""
    while base + at < end:
        body = at + FRAME_HEADER_SIZE
        length, checksum = _LENGTH_AND_CHECKSUM.unpack_from(piece, at) if body <= len(piece) else (0, b"")
        behind = body + length
        if not checksum or behind > len(piece):
            if base + at + max(behind - at, FRAME_HEADER_SIZE) > end or length > MAX_PAYLOAD:
                return Gap(offset=base + at, end=end, reason="cut off in a frame")
            base, at, asked = base + at, 0, min(max(_WINDOW, behind - at), end - base - at)
            piece = read(base, asked)
            if len(piece) < asked:
                return Gap(offset=base + len(piece), end=end, reason="the segment became shorter")
            continue
        # A hasher that is used again takes half the time of a new one.
        hasher.reset()
        hasher.update(piece[at : at + _FIELDS_SIZE] + piece[body:behind])
        if hasher.digest(_CHECKSUM_SIZE) != checksum:
            return Gap(offset=base + at, end=base + behind, reason=WRONG_CHECKSUM)
        at = behind
    return None


def unverified_frames(
    read: Callable[[int, int], bytes], start: int, end: int
) -> Iterator[tuple[list[RawFrame], Gap | None]]:
    """Yield the same as `raw_frames`, many frames at a time, without verifying checksums.

    It is for callers that need only some of the frames and verify those with `is_intact`: verifying takes most of the
    time of reading a segment. That each frame follows the one before is still checked.
    """
    piece = b""
    base = start  # where `piece` begins
    at = 0  # in `piece`
    is_inside = False
    found: list[RawFrame] = []
    gap = None
    made = tuple.__new__  # faster than a named tuple's own constructor
    while base + at < end:
        payload = at + FRAME_HEADER_SIZE
        is_read = payload <= len(piece)
        marker, kind, flags, reserved, length = _FRAME_HEADER.unpack_from(piece, at) if is_read else _NO_HEADER
        behind = payload + length
        if behind > len(piece):
            if at == 0 and len(piece) >= min(max(_WINDOW, behind), end - base):
                gap = Gap(offset=base, end=end, reason="cut off in a frame")
                break
            yield found, None
            found = []
            base, at, asked = base + at, 0, min(max(_WINDOW, behind - at), end - base - at)
            piece = read(base, asked)
            if len(piece) < asked:
                end = base + len(piece)  # another process truncated the file
            continue
        begins, commits = flags & _BEGINS, flags & _COMMITS
        # The same test as `_is_damaged`, because the call would double the time of this loop.
        is_header = marker == MARKER and kind in _KINDS and flags <= _FLAGS and not reserved and length <= MAX_PAYLOAD
        if not is_header or bool(begins) is is_inside:
            gap = Gap(offset=base + at, end=base + behind, reason="the frame is out of place")
            break
        is_inside = not commits
        found.append(made(RawFrame, (base + at, kind, begins, commits, piece[at:behind])))
        at = behind
    else:
        if is_inside:
            gap = Gap(offset=base + at, end=end, reason="a group without its last frame")
    yield found, gap


def scan_windows(
    read: Callable[[int, int], Buffer], key: FrameKey, start: int, end: int, *, window: int = _WINDOW
) -> Iterator[Frame | Gap]:
    """Yield every valid frame of a segment from `start` on, and the gaps between them, in order and without overlap.

    After damage the scan continues at the next marker that begins a valid frame, so one bad byte costs one frame. Only
    a window of the segment is in memory at any moment: `read(offset, size)` returns `size` bytes of it, or as many as
    there are. A frame longer than `window` is read whole only after its checksum has been verified, so that a damaged
    length allocates no memory.
    """
    seen = _Window(read, key, end, window)
    offset = start
    while offset < seen.end:
        found = seen.frame_at(offset)
        if isinstance(found, Gap):
            resumed = seen.marker_after(offset)
            while resumed < seen.end and isinstance(seen.frame_at(resumed), Gap):
                resumed = seen.marker_after(resumed)
            yield Gap(offset=offset, end=resumed, reason=found.reason)
            offset = resumed
        else:
            yield found
            offset = found.end


class _Window:
    """The part of a segment that is in memory."""

    def __init__(self, read: Callable[[int, int], Buffer], key: FrameKey, end: int, size: int) -> None:
        self.end = end  # of the segment
        self._read = read
        self._key = key
        self._size = max(size, FRAME_HEADER_SIZE)
        self._base = 0
        self._content: Buffer = memoryview(b"")
        self._searched: bytes | None = None  # the content as bytes; None: not needed so far

    def frame_at(self, offset: int) -> Frame | Gap:
        self._load(offset, FRAME_HEADER_SIZE)
        at = offset - self._base
        found = read_frame(self._content, self._key, at, base=self._base)
        if isinstance(found, Frame):
            return found  # as nearly all are: what follows is for one that is damaged, or not wholly in memory
        if offset + FRAME_HEADER_SIZE <= self.end and self._content[at : at + len(MARKER)] == MARKER:
            _, kind, flags, reserved, length = _FRAME_HEADER.unpack(self._content[at : at + _FRAME_HEADER.size])
            if _is_damaged(kind, flags, reserved, length):
                return Gap(offset=offset, end=offset + 1, reason="a frame's header is damaged")
            size = FRAME_HEADER_SIZE + length
            if offset + size > self.end:
                return Gap(offset=offset, end=self.end, reason="cut off in a frame")
            if size > self._size and at + size > len(self._content) and not self._is_checksum_right(offset, size):
                return Gap(offset=offset, end=offset + 1, reason=WRONG_CHECKSUM)
            self._load(offset, size)
        return read_frame(self._content, self._key, offset - self._base, base=self._base)

    def marker_after(self, offset: int) -> int:
        """Return the position of the next marker after `offset`; the end of the segment if there is none."""
        offset += 1
        while offset < self.end:
            self._load(offset, len(MARKER))
            # Searching needs a bytes object, which is made only after damage was found.
            if self._searched is None:
                self._searched = bytes(self._content)
            found = self._searched.find(MARKER, offset - self._base)
            if found >= 0:
                return self._base + found
            offset = max(offset + 1, self._base + len(self._content) - len(MARKER) + 1)
        return self.end

    def _load(self, offset: int, size: int) -> None:
        """Load `size` bytes from `offset` on into memory, or as many as there are."""
        wanted = min(size, self.end - offset)
        if self._base <= offset and offset + wanted <= self._base + len(self._content):
            return
        asked = min(max(self._size, size), self.end - offset)
        self._base, self._content = offset, memoryview(self._read(offset, asked))
        self._searched = None
        if len(self._content) < asked:
            self.end = offset + len(self._content)  # another process truncated the file

    def _is_checksum_right(self, offset: int, size: int) -> bool:
        """Return whether the frame's checksum is right, without loading the whole frame."""
        head = bytes(self._content[offset - self._base : offset - self._base + FRAME_HEADER_SIZE])
        hasher = blake3(head[: _FRAME_HEADER.size], key=self._key)
        done = FRAME_HEADER_SIZE
        while done < size:
            piece = self._read(offset + done, min(self._size, size - done))
            if not piece:
                return False
            hasher.update(piece)
            done += len(piece)
        return hasher.digest(_CHECKSUM_SIZE) == head[_FRAME_HEADER.size :]


def committed(found: Iterator[Frame | Gap]) -> Iterator[list[Frame] | Gap]:
    """Group the frames of a scan: yield each whole group, and a Gap for anything else.

    A group counts only if it is whole: frames of a group that has lost one of them are part of a gap.
    """
    group: list[Frame] = []
    gap: Gap | None = None
    for item in found:
        broken = isinstance(item, Gap) or item.begins is bool(group)
        if broken and group:
            gap = Gap(offset=group[0].offset, end=group[-1].end, reason="a group without its last frame")
            group = []
        if isinstance(item, Gap):
            gap = item if gap is None else replace(gap, end=item.end)
        elif not item.begins and not group:
            lost = Gap(offset=item.offset, end=item.end, reason="a group without its first frame")
            gap = lost if gap is None else replace(gap, end=item.end)
        else:
            if gap is not None:
                yield gap
                gap = None
            group.append(item)
            if item.commits:
                yield group
                group = []
    if group:
        gap = Gap(offset=group[0].offset, end=group[-1].end, reason="a group without its last frame")
    if gap is not None:
        yield gap


def _checksum(key: FrameKey, fields: Buffer, payload: Buffer) -> bytes:
    hasher = blake3(fields, key=key)
    hasher.update(payload)
    return hasher.digest(_CHECKSUM_SIZE)
