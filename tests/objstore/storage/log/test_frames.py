"""Test that frames are read back, damage is a gap and never other data, and a group counts only if it is whole."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from objstore.storage.log.frames import (
    FORMAT_VERSION,
    FRAME_HEADER_SIZE,
    MARKER,
    MAX_PAYLOAD,
    SEGMENT_HEADER_SIZE,
    STORE_ID,
    Frame,
    FrameKey,
    FrameKind,
    Gap,
    RawFrame,
    SegmentHeader,
    StoreId,
    committed,
    declared_size,
    encode_frame,
    first_damage,
    frame_key,
    payload_at,
    raw_frames,
    read_frame,
    scan_windows,
    unverified_frames,
)
from objstore.values.errors import FormatTooNew, StoreDamaged
from tests.support import strategies as draw
from tests.support.segment_scans import scan

STORE = StoreId(b"sixteen bytes id")
KEY = frame_key(STORE)

Payload = tuple[FrameKind, bytes]


def framed(group: Sequence[Payload], key: FrameKey = KEY) -> bytes:
    last = len(group) - 1
    return b"".join(
        encode_frame(key, kind, payload, begins=i == 0, commits=i == last) for i, (kind, payload) in enumerate(group)
    )


def log_of(groups: Sequence[Sequence[Payload]]) -> bytes:
    return b"".join(framed(group) for group in groups)


def payloads(group: Sequence[Frame]) -> list[Payload]:
    return [(frame.kind, bytes(frame.payload)) for frame in group]


def whole(content: bytes, start: int = 0) -> list[list[Payload]]:
    return [payloads(found) for found in committed(scan(content, KEY, start)) if isinstance(found, list)]


def gaps(content: bytes) -> list[Gap]:
    return [found for found in committed(scan(content, KEY, 0)) if isinstance(found, Gap)]


# ---- whole


@given(draw.groups_of_payloads)
def test_written_frames_are_read_back(groups: list[list[Payload]]) -> None:
    content = log_of(groups)
    assert whole(content) == groups
    assert gaps(content) == []


@given(st.binary(max_size=40), st.binary(max_size=5), st.data())
def test_payload_is_returned_only_for_an_intact_frame_of_the_expected_kind(
    payload: bytes, before: bytes, data: st.DataObject
) -> None:
    content = before + encode_frame(KEY, FrameKind.BLOB, payload, begins=True, commits=True)
    assert payload_at(content, KEY, len(before), FrameKind.BLOB) == payload
    assert payload_at(content, KEY, len(before), FrameKind.RECORD) is None
    at, bit = data.draw(st.integers(len(before), len(content) - 1)), data.draw(st.integers(0, 7))
    for damaged in (content[:at], content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]):
        assert payload_at(damaged, KEY, len(before), FrameKind.BLOB) is None


@given(draw.groups_of_payloads, st.integers(0, 100))
def test_offsets_count_from_the_start_of_the_segment(groups: list[list[Payload]], base: int) -> None:
    content = log_of(groups)
    direct = list(scan(content, KEY, 0))
    moved = list(scan(memoryview(content), KEY, 0, base=base))
    assert [(frame.offset, frame.end if isinstance(frame, Frame) else 0) for frame in moved] == [
        (frame.offset + base, frame.end + base) for frame in direct
    ]


def test_payload_over_the_limit_raises_value_error() -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return MAX_PAYLOAD + 1

    with pytest.raises(ValueError, match="over"):
        encode_frame(KEY, FrameKind.BLOB, Huge(), begins=True, commits=True)


# ---- damage


def covered(found: Sequence[Frame | Gap], size: int) -> bool:
    """Return whether frames and gaps follow one another without overlap from the first byte to the last."""
    ends = [0, *(item.end for item in found)]
    return [item.offset for item in found] == ends[:-1] and ends[-1] == size


@given(draw.groups_of_payloads, st.data())
def test_flipped_byte_loses_only_its_frame(groups: list[list[Payload]], data: st.DataObject) -> None:
    content = bytearray(log_of(groups))
    frames = [item for item in scan(bytes(content), KEY, 0) if isinstance(item, Frame)]
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    found = list(scan(bytes(content), KEY, 0))
    hit = next(frame for frame in frames if frame.offset <= place < frame.end)
    assert [item for item in found if isinstance(item, Frame)] == [frame for frame in frames if frame != hit]
    assert [(item.offset, item.end) for item in found if isinstance(item, Gap)] == [(hit.offset, hit.end)]
    assert covered(found, len(content))


@given(draw.groups_of_payloads, st.data())
def test_flipped_byte_loses_only_its_group(groups: list[list[Payload]], data: st.DataObject) -> None:
    content = bytearray(log_of(groups))
    ends = [0]
    for group in groups:
        ends.append(ends[-1] + len(framed(group)))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    hit = next(i for i, (start, end) in enumerate(pairwise(ends)) if start <= place < end)
    assert whole(bytes(content)) == groups[:hit] + groups[hit + 1 :]
    assert [(gap.offset, gap.end) for gap in gaps(bytes(content))] == [(ends[hit], ends[hit + 1])]


def test_every_flipped_bit_of_a_frame_is_detected() -> None:
    encoded = encode_frame(KEY, FrameKind.RECORD, b"payload", begins=True, commits=True)
    for bit in range(len(encoded) * 8):
        flipped = bytearray(encoded)
        flipped[bit // 8] ^= 1 << bit % 8
        assert isinstance(read_frame(bytes(flipped), KEY, 0), Gap), f"bit {bit}"


@given(draw.groups_of_payloads, st.binary(max_size=200), st.data())
def test_garbage_loses_only_the_frames_that_it_overwrites(
    groups: list[list[Payload]], garbage: bytes, data: st.DataObject
) -> None:
    content = log_of(groups)
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, len(content)))
    damaged = content[:start] + garbage + content[end:]
    found = list(scan(damaged, KEY, 0))
    assert covered(found, len(damaged))
    shift = len(garbage) - (end - start)
    read = {(item.offset, bytes(item.payload)) for item in found if isinstance(item, Frame)}
    for frame in scan(content, KEY, 0):
        assert isinstance(frame, Frame)
        if frame.end <= start:
            assert (frame.offset, bytes(frame.payload)) in read
        elif frame.offset >= end:
            assert (frame.offset + shift, bytes(frame.payload)) in read


@given(st.binary(max_size=400))
def test_scan_covers_any_content_exactly_once(content: bytes) -> None:
    assert covered(list(scan(content, KEY, 0)), len(content))


def in_windows(content: bytes, size: int, shortened: int | None = None) -> tuple[list[Frame | Gap], int]:
    """Return the result of a scan in windows, and the largest read."""
    asked = [0]

    def read(offset: int, wanted: int) -> bytes:
        asked.append(wanted)
        return content[:shortened][offset : offset + wanted]

    return list(scan_windows(read, KEY, 0, len(content), window=size)), max(asked)


@given(draw.groups_of_payloads, st.data())
def test_the_size_of_the_window_changes_nothing(groups: list[list[Payload]], data: st.DataObject) -> None:
    content = bytearray(b"".join(framed(group) for group in groups))
    for _ in range(data.draw(st.integers(0, 3)) if content else 0):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    whole = list(scan(bytes(content), KEY, 0))
    assert in_windows(bytes(content), data.draw(st.integers(1, 300)))[0] == whole


def test_a_damaged_length_makes_no_window_large() -> None:
    frame = framed([(FrameKind.BLOB, b"x" * 100_000)])
    damaged = frame[:8] + (90_000).to_bytes(8, "little") + frame[16:]
    found, largest_read = in_windows(damaged + framed([(FrameKind.BLOB, b"kept")]), 1000)
    assert [type(item) for item in found] == [Gap, Frame]
    assert largest_read == 1000
    assert in_windows(frame, 1000)[1] == len(frame)


# ---- all of a segment that is sound


def raw(content: bytes, end: int | None = None) -> list[RawFrame | Gap]:
    return list(raw_frames(lambda at, size: content[at : at + size], KEY, 0, len(content) if end is None else end))


@given(draw.groups_of_payloads)
def test_raw_frames_are_those_of_a_scan(groups: list[list[Payload]]) -> None:
    content = log_of(groups)
    frames = [found for found in scan(content, KEY, 0) if isinstance(found, Frame)]
    found = [one for one in raw(content) if isinstance(one, RawFrame)]
    assert len(found) == len(raw(content))
    assert [(one.position, one.kind, bool(one.begins), bool(one.commits)) for one in found] == [
        (frame.offset, frame.kind, frame.begins, frame.commits) for frame in frames
    ]
    assert b"".join(one.whole for one in found) == content


@given(draw.groups_of_payloads.filter(bool), st.data())
def test_raw_frames_end_with_a_gap_where_a_byte_is_wrong_or_missing(
    groups: list[list[Payload]], data: st.DataObject
) -> None:
    content = log_of(groups)
    damaged = bytearray(content)
    damaged[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = raw(bytes(damaged))
    assert isinstance(found[-1], Gap)
    assert all(isinstance(one, RawFrame) and bytes(one.whole) in content for one in found[:-1])
    cut = raw(content[: data.draw(st.integers(1, len(content) - 1))], data.draw(st.sampled_from([None, len(content)])))
    whole_groups = {len(log_of(groups[:number])) for number in range(len(groups) + 1)}
    taken = sum(len(one.whole) for one in cut if isinstance(one, RawFrame))
    assert isinstance(cut[-1], Gap) or taken in whole_groups


@given(draw.groups_of_payloads.filter(bool), st.data())
def test_first_damage_is_the_frame_with_the_wrong_byte(groups: list[list[Payload]], data: st.DataObject) -> None:
    content = log_of(groups)

    def found(content: bytes) -> Gap | None:
        return first_damage(lambda at, size: content[at : at + size], KEY, 0, len(content))

    assert found(content) is None
    at = data.draw(st.integers(0, len(content) - 1))
    damaged = bytearray(content)
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    (frame,) = [
        each for each in raw(content) if isinstance(each, RawFrame) and 0 <= at - each.position < len(each.whole)
    ]
    gap = found(bytes(damaged))
    assert gap is not None
    assert gap.offset == frame.position
    cut = found(content[:at])
    begins = {each.position for each in raw(content) if isinstance(each, RawFrame)}
    assert (cut is None) is (at in begins)


@pytest.mark.parametrize("size", [5, 700_000, 3_000_000])
def test_damage_is_found_whatever_is_read_at_once(size: int) -> None:
    content = log_of([[(FrameKind.BLOB, bytes(size))]] * 3)
    assert first_damage(lambda at, size: content[at : at + size], KEY, 0, len(content)) is None
    gap = first_damage(lambda at, size: content[at : at + size], KEY, 0, len(content) + 1)
    assert gap is not None
    assert gap.offset == len(content)


@pytest.mark.parametrize("damage", [lambda good: good[:-1] + b"?", lambda good: good[:-1]], ids=["wrong", "cut off"])
def test_raw_frames_end_with_the_same_gap_as_reading_the_frame_alone(damage: Callable[[bytes], bytes]) -> None:
    content = damage(log_of([[(FrameKind.BLOB, b"sound")], [(FrameKind.BLOB, b"damaged")]]))
    first, gap = raw(content)
    assert isinstance(first, RawFrame)
    assert gap == read_frame(content, KEY, len(first.whole))


@pytest.mark.parametrize("size", [5, 700_000])  # of what is read at once, a part, and more than a half
def test_raw_frames_end_at_the_given_end_of_the_last_group(size: int) -> None:
    known = bytes(SEGMENT_HEADER_SIZE) + log_of([[(FrameKind.BLOB, bytes(size))]] * 2)
    content = known + log_of([[(FrameKind.BLOB, b"come since")]])
    found = raw_frames(lambda at, size: content[at : at + size], KEY, SEGMENT_HEADER_SIZE, len(known))
    assert b"".join(one.whole for one in found if isinstance(one, RawFrame)) == known[SEGMENT_HEADER_SIZE:]


@pytest.mark.parametrize(("at", "byte"), [(0, 0), (4, 3), (5, 7), (6, 1)], ids=["marker", "kind", "flags", "reserved"])
def test_an_invalid_header_is_a_gap_even_without_verifying_checksums(at: int, byte: int) -> None:
    content = bytearray(framed([(FrameKind.BLOB, b"alone")]))
    content[at] = byte
    found_frames = list(unverified_frames(lambda at, size: bytes(content[at : at + size]), 0, len(content)))
    assert [frame for frames, _ in found_frames for frame in frames] == []
    assert [gap.offset for _, gap in found_frames if gap is not None] == [0]


@pytest.mark.parametrize(
    ("spans", "sound", "reason"),
    [
        (["begins", "begins commits"], 1, "the frame is out of place"),
        (["commits"], 0, "the frame is out of place"),
        (["begins commits", "commits"], 1, "the frame is out of place"),
        (["begins", "goes on"], 2, "a group without its last frame"),
    ],
)
def test_raw_frames_end_where_they_form_no_group(spans: list[str], sound: int, reason: str) -> None:
    frames = [
        encode_frame(KEY, FrameKind.BLOB, b"a", begins="begins" in span, commits="commits" in span) for span in spans
    ]
    *found, gap = raw(b"".join(frames))
    assert len(found) == sound
    ends = [len(b"".join(frames[:number])) for number in (sound, sound + 1)]
    assert gap == Gap(offset=ends[0], end=ends[1], reason=reason)


def test_raw_frames_read_a_payload_that_is_longer_than_a_window() -> None:
    groups = [[(FrameKind.BLOB, b"a" * (3 << 20))], [(FrameKind.RECORD, b"b")]]
    assert b"".join(one.whole for one in raw(log_of(groups)) if isinstance(one, RawFrame)) == log_of(groups)


def test_truncation_during_a_scan_ends_the_scan() -> None:
    content = framed([(FrameKind.BLOB, b"a" * 500)]) + framed([(FrameKind.BLOB, b"b" * 5000)])
    found, _ = in_windows(content, 64, shortened=len(content) - 10)
    assert isinstance(found[0], Frame)
    assert isinstance(found[1], Gap)
    assert found[1].end == len(content) - 10


def test_a_frame_without_its_end_is_reported_as_cut_off() -> None:
    content = framed([(FrameKind.BLOB, b"a" * 500)])
    cut = len(content) - 1
    assert read_frame(content[:cut], KEY, 0) == Gap(offset=0, end=cut, reason="cut off in a frame")


@given(draw.groups_of_payloads, st.data())
def test_a_cut_off_frame_is_a_gap_at_the_end(groups: list[list[Payload]], data: st.DataObject) -> None:
    content = log_of(groups)
    size = data.draw(st.integers(0, len(content)))
    found = list(committed(scan(content[:size], KEY, 0)))
    kept = [item for item in found if isinstance(item, list)]
    assert [payloads(group) for group in kept] == groups[: len(kept)]
    end = kept[-1][-1].end if kept else 0
    assert [(gap.offset, gap.end) for gap in found[len(kept) :] if isinstance(gap, Gap)] == (
        [(end, size)] if end < size else []
    )


# ---- groups


@given(draw.groups_of_payloads, st.data())
def test_a_group_that_lost_a_frame_does_not_count(groups: list[list[Payload]], data: st.DataObject) -> None:
    frames = [
        encode_frame(KEY, kind, payload, begins=i == 0, commits=i == len(group) - 1)
        for group in groups
        for i, (kind, payload) in enumerate(group)
    ]
    lost = data.draw(st.integers(0, len(frames) - 1))
    # The scan does not see a frame that lies where none was, so a lost one leaves as many zeros.
    content = b"".join(b"\0" * len(frame) if i == lost else frame for i, frame in enumerate(frames))
    owner = [i for i, group in enumerate(groups) for _ in group][lost]
    assert whole(content) == groups[:owner] + groups[owner + 1 :]


def test_the_end_of_a_group_without_its_beginning_is_no_group() -> None:
    blob, record = (
        encode_frame(KEY, FrameKind.BLOB, b"blob", begins=True, commits=False),
        encode_frame(KEY, FrameKind.RECORD, b"record", begins=False, commits=True),
    )
    assert whole(blob + record) == [[(FrameKind.BLOB, b"blob"), (FrameKind.RECORD, b"record")]]
    assert whole(b"\0" * len(blob) + record) == []
    assert whole(record) == []
    assert whole(blob + blob + record) == [[(FrameKind.BLOB, b"blob"), (FrameKind.RECORD, b"record")]]


@given(st.binary(max_size=100))
def test_a_header_declares_the_frames_size_before_the_rest_is_read(payload: bytes) -> None:
    frame = framed([(FrameKind.BLOB, payload)])
    assert declared_size(frame) == declared_size(b"before" + frame[:FRAME_HEADER_SIZE], 6) == len(frame)
    assert declared_size(frame[: FRAME_HEADER_SIZE - 1]) is None


def test_the_stores_id_is_at_its_documented_offset_in_a_segments_header() -> None:
    assert SegmentHeader(store=STORE, number=1, created=0).encode()[STORE_ID] == STORE


# ---- frames that pretend


@pytest.mark.parametrize("length", [MAX_PAYLOAD + 1, 2**63, 2**64 - 1])
def test_a_length_over_the_limit_is_a_gap_of_one_byte(length: int) -> None:
    header = MARKER + bytes([1, 3, 0, 0]) + length.to_bytes(8, "little") + bytes(16)
    found = read_frame(header, KEY, 0)
    assert found == Gap(offset=0, end=1, reason="a frame's header is damaged")


def test_a_frame_of_another_store_is_no_frame_of_this_one() -> None:
    other = frame_key(StoreId(b"another store id"))
    content = framed([(FrameKind.RECORD, b"payload")], other)
    assert [type(item) for item in scan(content, KEY, 0)] == [Gap]


@given(draw.groups_of_payloads)
def test_frames_of_another_store_inside_a_damaged_blob_are_ignored(groups: list[list[Payload]]) -> None:
    other = frame_key(StoreId(b"another store id"))
    copied = b"".join(framed(group, other) for group in groups)
    damaged = bytearray(framed([(FrameKind.BLOB, copied)]))
    damaged[FRAME_HEADER_SIZE - 1] ^= 1
    assert whole(bytes(damaged)) == []


# ---- the header of a segment


@given(
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(1, FORMAT_VERSION),
)
def test_a_segment_header_reads_as_it_was_written(store: bytes, number: int, created: int, version: int) -> None:
    header = SegmentHeader(store=StoreId(store), number=number, created=created, version=version)
    assert len(header.encode()) == SEGMENT_HEADER_SIZE
    assert SegmentHeader.decode(header.encode(), segment=number) == header


def test_every_flipped_bit_of_a_segment_header_is_detected() -> None:
    encoded = SegmentHeader(store=STORE, number=1, created=5).encode()
    for bit in range(len(encoded) * 8):
        flipped = bytearray(encoded)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(StoreDamaged):
            SegmentHeader.decode(bytes(flipped), segment=1)


@given(st.binary(max_size=SEGMENT_HEADER_SIZE - 1))
def test_a_segment_header_that_is_cut_off_is_damaged(content: bytes) -> None:
    with pytest.raises(StoreDamaged):
        SegmentHeader.decode(content, segment=1)


def test_a_segment_under_another_number_is_damaged() -> None:
    with pytest.raises(StoreDamaged, match="has the number 1"):
        SegmentHeader.decode(SegmentHeader(store=STORE, number=1, created=5).encode(), segment=2)


def test_a_segment_of_a_newer_format_is_reported_as_such() -> None:
    newer = SegmentHeader(store=STORE, number=1, created=5, version=FORMAT_VERSION + 1).encode()
    with pytest.raises(FormatTooNew, match=f"Format version {FORMAT_VERSION + 1}"):
        SegmentHeader.decode(newer, segment=1)
