"""Test that every content is restored from every base, and that no payload, even a forged one, gives other bytes."""

import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from struct import Struct

import pytest
import zstandard
from hypothesis import given, strategies as st

from objstore.model.ids import blob_id
from objstore.model.large_file_placeholder import MAX_BLOB, MAX_CHUNKED
from objstore.storage.log.blob_codec import (
    MAX_DEPTH,
    Base,
    Encoding,
    decode_blob,
    encode_blob,
    encode_chunks,
    expand_part,
    parse_blob_header,
    parse_chunks,
)
from objstore.storage.log.chunking import CHUNK as CHUNK_SIZE, MAX_CHUNK, Chunk
from objstore.text.lines import common_affixes
from objstore.values.errors import BlobDamaged
from tests.support import strategies as draw

HEADER = Struct("<32sQBB6x")
DELTA = Struct("<32sQQ")
CHUNK = Struct("<32sQ")


def base_of(content: bytes, depth: int = 0) -> Base:
    return Base(id=blob_id(content), content=content, depth=depth)


def noise(size: int) -> bytes:
    """Return bytes that can't be compressed."""
    return b"".join(blob_id(i.to_bytes(4, "little")) for i in range(size // 32 + 1))[:size]


# ---- round trips


@given(st.lists(draw.contents, min_size=2, max_size=5))
def test_encoding_does_not_depend_on_what_the_thread_encoded_before(contents: list[bytes]) -> None:
    in_turn = [encode_blob(content) for content in contents]
    for content, encoded in zip(contents, in_turn, strict=True):
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(encode_blob, content).result() == encoded


@given(draw.contents)
def test_blob_without_a_base_is_decoded(content: bytes) -> None:
    header, payload = encode_blob(content)
    assert header == parse_blob_header(payload)
    assert (header.base, header.depth, header.size, header.id) == (None, 0, len(content), blob_id(content))
    assert decode_blob(header, payload, None) == content


@given(draw.contents, draw.contents, st.integers(0, MAX_DEPTH - 1), st.sampled_from([-1, 3, 10, 16]))
def test_a_base_that_is_known_to_help_is_used_without_a_trial(
    base: bytes, content: bytes, depth: int, level: int
) -> None:
    header, payload = encode_blob(content, base_of(base, depth), level=level, is_like=True)
    assert (header.base, header.depth) == (blob_id(base), depth + 1)
    assert decode_blob(header, payload, base) == content


@given(draw.related_contents(), st.integers(0, MAX_DEPTH))
def test_delta_on_a_similar_base_is_decoded(pair: tuple[bytes, bytes], depth: int) -> None:
    base, content = pair
    header, payload = encode_blob(content, base_of(base, depth))
    assert decode_blob(header, memoryview(payload), base if header.base else None) == content
    assert header.depth == (0 if header.base is None else depth + 1)


@given(draw.related_contents(), st.integers(0, 2_000))
def test_short_middle_of_a_delta_is_not_compressed(pair: tuple[bytes, bytes], worth: int) -> None:
    base, content = pair
    header, payload = encode_blob(content, base_of(base), worth=worth)
    if header.base is not None and len(content) - header.prefix - header.suffix < worth:
        assert header.encoding is Encoding.DELTA_RAW
        assert payload[header.data :] == content[header.prefix : len(content) - header.suffix]
    assert decode_blob(header, payload, base if header.base else None) == content


@given(st.lists(draw.contents, min_size=2, max_size=2 * MAX_DEPTH))
def test_chain_of_deltas_is_limited_by_keyframes_and_decoded(contents: list[bytes]) -> None:
    base: Base | None = None
    for content in contents:
        header, payload = encode_blob(content, base)
        assert header.depth <= MAX_DEPTH
        held = base.content if base is not None and header.base is not None else None
        assert decode_blob(header, payload, held) == content
        base = base_of(content, header.depth)


def test_base_at_the_maximal_depth_is_not_used() -> None:
    content = noise(5000)
    assert encode_blob(content + b"x", base_of(content, MAX_DEPTH - 1))[0].depth == MAX_DEPTH
    assert encode_blob(content + b"x", base_of(content, MAX_DEPTH))[0].base is None


@pytest.mark.parametrize("size", [0, 1, 47, 48, 2047, 2048, 2049, 100_000])
def test_changed_line_anywhere_is_stored_in_about_its_own_size(size: int) -> None:
    before, after = noise(size) + b"old line\n" + noise(size), noise(size) + b"new line\n" + noise(size)
    header, payload = encode_blob(after, base_of(before))
    assert decode_blob(header, payload, before if header.base else None) == after
    if size >= 2047:
        assert len(payload) - header.data < 64


@given(st.tuples(draw.contents, draw.contents) | draw.related_contents())
def test_shared_affixes_are_as_long_as_possible(pair: tuple[bytes, bytes]) -> None:
    a, b = pair
    prefix, suffix = common_affixes(a, b)
    assert a[:prefix] == b[:prefix]
    assert a[len(a) - suffix :] == b[len(b) - suffix :]
    assert prefix + suffix <= min(len(a), len(b))
    if prefix + suffix < min(len(a), len(b)):
        assert a[prefix] != b[prefix]
        assert a[len(a) - suffix - 1] != b[len(b) - suffix - 1]


@pytest.mark.parametrize("size", [64, 65, 8191, 8192, 8193, 20_000])
def test_single_differing_byte_is_found_anywhere(size: int) -> None:
    before = noise(size)
    for at in {*range(0, size, 61), *range(min(size, 66)), *range(max(0, size - 66), size)}:
        after = before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :]
        assert common_affixes(before, after) == (at, size - at - 1)


def test_blob_over_the_limit_raises_value_error() -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return MAX_BLOB + 1

    with pytest.raises(ValueError, match="over"):
        encode_blob(Huge())


# ---- damage and lies


def read(payload: bytes, base: bytes | None) -> bytes:
    return decode_blob(parse_blob_header(payload), payload, base)


@given(draw.related_contents(), st.data())
def test_a_payload_with_other_bytes_is_refused_or_gives_the_blob_it_names(
    pair: tuple[bytes, bytes], data: st.DataObject
) -> None:
    base, content = pair
    _, payload = encode_blob(content, base_of(base))
    spoilt = bytearray(payload)
    place = data.draw(st.integers(0, len(spoilt) - 1))
    spoilt[place] ^= data.draw(st.integers(1, 255))
    try:
        header = parse_blob_header(bytes(spoilt))
        found = decode_blob(header, bytes(spoilt), base)
    except BlobDamaged:
        return
    assert blob_id(found) == header.id


@given(st.binary(max_size=200), draw.contents)
def test_any_payload_is_refused_or_gives_the_blob_it_names(payload: bytes, base: bytes) -> None:
    try:
        header = parse_blob_header(payload)
        found = decode_blob(header, payload, base)
    except BlobDamaged:
        return
    assert blob_id(found) == header.id


@given(draw.contents, st.sampled_from(Encoding), st.integers(0, 255), st.integers(0, 2**64 - 1), st.binary(max_size=99))
def test_a_false_header_is_refused(content: bytes, encoding: Encoding, depth: int, size: int, data: bytes) -> None:
    payload = HEADER.pack(blob_id(content), size, encoding, depth) + data
    try:
        found = read(payload, content)
    except BlobDamaged:
        return
    assert found == content


CONTENT = noise(3000)
NAME = blob_id(CONTENT)

LIES = {
    "too short for a header": NAME,
    "a size over the limit": HEADER.pack(NAME, MAX_BLOB + 1, Encoding.RAW, 0) + CONTENT,
    "an unknown encoding": HEADER.pack(NAME, 3000, 5, 0) + CONTENT,
    "chunks of what is not large": HEADER.pack(NAME, 3000, Encoding.CHUNKED, 0) + CHUNK.pack(NAME, 3000),
    "chunks of what is larger than there can be": HEADER.pack(NAME, MAX_CHUNKED + 1, Encoding.CHUNKED, 0),
    "reserved bytes in use": HEADER.pack(NAME, 3000, Encoding.RAW, 0)[:-1] + b"\1" + CONTENT,
    "a keyframe with a depth": HEADER.pack(NAME, 3000, Encoding.RAW, 1) + CONTENT,
    "a delta without a depth": HEADER.pack(NAME, 3000, Encoding.DELTA_RAW, 0) + DELTA.pack(NAME, 3000, 0),
    "a delta beyond the deepest": HEADER.pack(NAME, 3000, Encoding.DELTA_RAW, 33) + DELTA.pack(NAME, 3000, 0),
    "a delta that is cut off": HEADER.pack(NAME, 3000, Encoding.DELTA_RAW, 1) + DELTA.pack(NAME, 3000, 0)[:-1],
    "more shared than there is": HEADER.pack(NAME, 3000, Encoding.DELTA_RAW, 1) + DELTA.pack(NAME, 3000, 1),
    "more shared than the base has": HEADER.pack(NAME, 4000, Encoding.DELTA_RAW, 1) + DELTA.pack(NAME, 3001, 0),
    "counts that would wrap around": HEADER.pack(NAME, 3000, Encoding.DELTA_RAW, 1) + DELTA.pack(NAME, 2**64 - 1, 3001),
    "a size that is too small": HEADER.pack(NAME, 2999, Encoding.RAW, 0) + CONTENT,
    "a size that is too large": HEADER.pack(NAME, 3001, Encoding.RAW, 0) + CONTENT,
    "data that are not compressed": HEADER.pack(NAME, 3000, Encoding.ZSTD, 0) + CONTENT,
    "no data": HEADER.pack(NAME, 3000, Encoding.ZSTD, 0),
    "bytes behind the compressed data": HEADER.pack(NAME, 3000, Encoding.ZSTD, 0)
    + zstandard.ZstdCompressor().compress(CONTENT)
    + b"\0",
    "compressed data of no declared size": HEADER.pack(NAME, 3000, Encoding.ZSTD, 0)
    + zstandard.ZstdCompressor(write_content_size=False).compress(CONTENT),
    "another content": HEADER.pack(NAME, 3, Encoding.RAW, 0) + b"abc",
}


@pytest.mark.parametrize("payload", LIES.values(), ids=LIES.keys())
def test_payload_that_decodes_to_other_bytes_is_refused(payload: bytes) -> None:
    with pytest.raises(BlobDamaged):
        read(payload, CONTENT)


def test_a_delta_without_its_base_is_refused() -> None:
    header, payload = encode_blob(CONTENT + b"x", base_of(CONTENT))
    assert header.base == NAME
    with pytest.raises(BlobDamaged, match="base"):
        decode_blob(header, payload, None)


def test_a_delta_on_the_wrong_base_is_refused() -> None:
    header, payload = encode_blob(CONTENT + b"x", base_of(CONTENT))
    for wrong in (noise(4000)[1000:], CONTENT[1:] + b"y", b""):
        with pytest.raises(BlobDamaged):
            decode_blob(header, payload, wrong)


# ---- memory


@contextmanager
def memory_under(limit: int) -> Iterator[None]:
    """Check that the block takes less than `limit` bytes from Python's allocator at any moment."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < limit


def bomb(size: int) -> bytes:
    """Return the compressed form of `size` zeros, some thousand times shorter."""
    return zstandard.ZstdCompressor(level=19).compress(bytes(size))


def test_compressed_data_that_hold_more_than_declared_take_no_memory() -> None:
    data = bomb(64 << 20)
    for declared in (0, 1000, (64 << 20) - 1):
        payload = HEADER.pack(NAME, declared, Encoding.ZSTD, 0) + data
        with memory_under(1 << 20), pytest.raises(BlobDamaged, match="two different sizes"):
            read(payload, None)


def test_a_delta_whose_middle_holds_more_than_declared_takes_no_memory() -> None:
    payload = HEADER.pack(NAME, 3100, Encoding.DELTA_ZSTD, 1) + DELTA.pack(NAME, 3000, 0) + bomb(64 << 20)
    with memory_under(1 << 20), pytest.raises(BlobDamaged, match="two different sizes"):
        read(payload, CONTENT)


def test_a_frame_of_compressed_data_behind_another_is_not_expanded() -> None:
    data = zstandard.ZstdCompressor().compress(CONTENT) + bomb(64 << 20)
    with memory_under(1 << 20), pytest.raises(BlobDamaged):
        read(HEADER.pack(NAME, 3000, Encoding.ZSTD, 0) + data, None)


def test_a_size_is_refused_before_memory_is_taken() -> None:
    payload = HEADER.pack(NAME, MAX_BLOB, Encoding.RAW, 0) + CONTENT
    with memory_under(1 << 20), pytest.raises(BlobDamaged):
        read(payload, None)


def test_header_that_does_not_match_its_payload_is_refused() -> None:
    header, payload = encode_blob(CONTENT)
    with pytest.raises(BlobDamaged):
        decode_blob(header._replace(size=header.size - 1), payload, None)


# ---- parts of a keyframe


@given(draw.contents, st.data())
def test_a_part_of_a_keyframe_is_that_part_of_its_blob(content: bytes, data: st.DataObject) -> None:
    header, payload = encode_blob(content)
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, len(content)))
    assert expand_part(header, payload, start, end) == content[start:end]


def test_a_part_is_refused_where_the_keyframe_is_shorter_or_damaged() -> None:
    content = b"a line of some text\n" * 500
    header, payload = encode_blob(content)
    assert header.encoding is Encoding.ZSTD
    refused = [
        (header, payload, len(content) - 1, len(content) + 1),
        (header._replace(size=len(content) + 1), payload, 0, 1),
        (header, payload[: header.data] + b"no frame", 0, 1),
        (header, payload[:-1], len(content) - 1, len(content)),
    ]
    for of, payload_given, start, end in refused:
        with pytest.raises(BlobDamaged):
            expand_part(of, payload_given, start, end)


# ---- lists of chunks

LARGE = [Chunk(blob_id(b"%d" % i), CHUNK_SIZE) for i in range(MAX_BLOB // CHUNK_SIZE)] + [Chunk(NAME, 1)]


def test_chunk_list_is_decoded() -> None:
    header, payload = encode_chunks(NAME, LARGE)
    assert header == parse_blob_header(payload)
    assert (header.id, header.size, header.depth, header.base) == (NAME, MAX_BLOB + 1, 0, None)
    assert parse_chunks(header, payload) == tuple(LARGE)


@pytest.mark.parametrize("chunks", [[], LARGE[:-1], [Chunk(NAME, MAX_CHUNKED), Chunk(NAME, 1)]])
def test_only_large_blobs_are_encoded_as_chunks(chunks: list[Chunk]) -> None:
    with pytest.raises(ValueError, match="not encoded as chunks"):
        encode_chunks(NAME, chunks)


@pytest.mark.parametrize(
    "data",
    [
        b"".join(CHUNK.pack(*chunk) for chunk in LARGE[:-1]),
        b"".join(CHUNK.pack(*chunk) for chunk in LARGE)[:-1],
        b"".join(CHUNK.pack(*chunk) for chunk in [*LARGE, Chunk(NAME, 0)]),
        b"".join(CHUNK.pack(*chunk) for chunk in [*LARGE[:-4], Chunk(NAME, 2 * MAX_CHUNK), Chunk(NAME, 1)]),
        b"",
    ],
    ids=["too few", "cut off", "an empty chunk", "a chunk that is too long", "none"],
)
def test_a_false_list_of_chunks_is_refused(data: bytes) -> None:
    payload = HEADER.pack(NAME, MAX_BLOB + 1, Encoding.CHUNKED, 0) + data
    with pytest.raises(BlobDamaged):
        parse_chunks(parse_blob_header(payload), payload)
