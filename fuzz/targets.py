"""The targets: each takes any bytes at all, and raises only when the store would do something wrong with them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final, TypeAlias

from objstore.codec import decode_blob, parse_blob_header
from objstore.errors import BlobDamaged, FormatTooNew, RecordInvalid, StoreDamaged
from objstore.frames import (
    SEGMENT_HEADER_SIZE,
    Frame,
    FrameKey,
    FrameKind,
    Gap,
    SegmentHeader,
    StoreId,
    committed,
    encode_frame,
    frame_key,
    scan,
)
from objstore.ids import BlobId, blob_id
from objstore.recordcodec import decode_record, encode_record

__all__ = ["TARGETS", "record", "segment_scan"]

Target: TypeAlias = Callable[[bytes], None]

_STORE: Final = StoreId(bytes(16))
"""Whose frames are looked for in bytes that do not begin as a segment does."""


def record(data: bytes) -> None:
    """Hold that bytes are no record, or the one spelling of what is read from them."""
    try:
        read, previous = decode_record(data)
    except RecordInvalid:
        return
    assert encode_record(read, previous) == data


def segment_scan(data: bytes) -> None:
    """Hold that a scan covers everything once, and yields no frame, group or blob that was not written so."""
    key, start = _opened(data)
    found = list(scan(data, key, start))
    _assert_covered(found, start, len(data))
    for frame in (item for item in found if isinstance(item, Frame)):
        spelt = encode_frame(key, frame.kind, bytes(frame.payload), begins=frame.begins, commits=frame.commits)
        assert spelt == data[frame.offset : frame.end]
    groups = list(committed(iter(found)))
    flat: list[Frame | Gap] = []
    for item in groups:
        flat += [item] if isinstance(item, Gap) else item
    _assert_covered(flat, start, len(data))
    for group in (item for item in groups if not isinstance(item, Gap)):
        assert [frame.begins for frame in group] == [True] + [False] * (len(group) - 1)
        assert [frame.commits for frame in group] == [False] * (len(group) - 1) + [True]
    blobs: dict[BlobId, bytes] = {}
    for frame in (item for item in found if isinstance(item, Frame) and item.kind is FrameKind.BLOB):
        _take_blob(bytes(frame.payload), blobs)
    # No change to a frame gets past its checksum, so what is behind it is tried on the bytes themselves too.
    _take_blob(data, blobs)


TARGETS: Final[Mapping[str, Target]] = MappingProxyType({"record": record, "segment": segment_scan})
"""Each target by the name of its corpus."""


def _opened(data: bytes) -> tuple[FrameKey, int]:
    """Return the key and the place of the first frame, as the header says if there is one."""
    try:
        header = SegmentHeader.decode(data[:SEGMENT_HEADER_SIZE], segment=1)
    except (StoreDamaged, FormatTooNew):
        return frame_key(_STORE), 0
    return frame_key(header.store), SEGMENT_HEADER_SIZE


def _assert_covered(found: Sequence[Frame | Gap], start: int, end: int) -> None:
    ends = [start, *(item.end for item in found)]
    assert [item.offset for item in found] == ends[:-1]
    assert ends[-1] == max(start, end)
    assert all(earlier < later for earlier, later in pairwise(ends))


def _take_blob(payload: bytes, blobs: dict[BlobId, bytes]) -> None:
    try:
        header = parse_blob_header(payload)
        base = None if header.base is None else blobs.get(header.base, b"")
        content = decode_blob(header, payload, base)
    except BlobDamaged:
        return
    assert len(content) == header.size
    assert blob_id(content) == header.id
    blobs[header.id] = content
