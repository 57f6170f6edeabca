"""Test that cuts lose nothing, and that unchanged parts of a known version are cut as before."""

import random
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import given, settings, strategies as st

from objstore.model.ids import BlobId, blob_id
from objstore.storage.log.chunking import CHUNK, MAX_CHUNK, Chunk, NewChunk, cut

NOISE: Final = random.Random(7).randbytes(12 * CHUNK + 12_345)


def pieces(content: bytes, size: int = 300_000) -> Iterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


class Version:
    """One content and its chunks."""

    def __init__(self, content: bytes, earlier: "Version | None" = None) -> None:
        self.content = content
        self.read: list[BlobId] = []  # chunks of the earlier version that were read
        self.chunks: tuple[Chunk, ...] = ()
        self.held: dict[BlobId, bytes] = {}
        known = () if earlier is None else earlier.chunks
        held = {} if earlier is None else earlier.held

        def head(chunk: Chunk) -> bytes:
            self.read.append(chunk.id)
            return held[chunk.id]

        self.cuts: list[NewChunk] = list(cut(pieces(content), known, head))
        self.chunks = tuple(Chunk(piece.id, len(piece.content)) for piece in self.cuts)
        self.held = {piece.id: piece.content for piece in self.cuts}
        self.new = [piece for piece in self.cuts if piece.id not in held]
        assert b"".join(piece.content for piece in self.cuts) == content
        assert all(0 < chunk.size <= MAX_CHUNK for chunk in self.chunks)
        assert all(blob_id(piece.content) == piece.id for piece in self.cuts)


FIRST: Final = Version(NOISE)


def test_a_first_version_is_cut_into_equal_chunks() -> None:
    assert [chunk.size for chunk in FIRST.chunks] == [CHUNK] * 12 + [12_345]
    assert not FIRST.read


def test_no_content_has_no_chunks() -> None:
    assert Version(b"").chunks == ()


def test_the_same_content_again_is_the_same_chunks_and_reads_none_of_them() -> None:
    again = Version(NOISE, FIRST)
    assert again.chunks == FIRST.chunks
    assert not again.read


@pytest.mark.parametrize("at", [0, 5, CHUNK - 1, CHUNK, 3 * CHUNK + 77, 11 * CHUNK + 9, 12 * CHUNK + 3])
@pytest.mark.parametrize("length", [0, 1, 500_000])
def test_inserted_or_overwritten_bytes_change_only_their_chunk(at: int, length: int) -> None:
    made = Version(NOISE[:at] + b"new bytes" + NOISE[at + length :], FIRST)
    assert sum(len(piece.content) for piece in made.new) <= 2 * MAX_CHUNK
    assert made.new[0].like in FIRST.chunks


def test_appended_bytes_change_only_the_last_chunk() -> None:
    made = Version(NOISE + b"a line\n", FIRST)
    assert made.chunks[:-1] == FIRST.chunks[:-1]
    assert made.new[0].like == FIRST.chunks[-1]
    assert made.chunks[-1].size == 12_345 + 7


@pytest.mark.parametrize("gone", [1, 2, 3, 5])
def test_remaining_chunks_are_found_after_a_removal(gone: int) -> None:
    made = Version(NOISE[: 2 * CHUNK + 10] + NOISE[(2 + gone) * CHUNK + 500 :], FIRST)
    kept = 13 - 1 - gone
    # The distance between anchors grows, so it may take up to as much again as is gone.
    assert len(set(made.chunks) & set(FIRST.chunks)) >= kept - gone - 1


def test_remaining_chunks_are_found_after_a_large_insertion() -> None:
    put_in = random.Random(8).randbytes(7 * CHUNK)
    made = Version(NOISE[:CHUNK] + put_in + NOISE[CHUNK:], FIRST)
    assert len(set(made.chunks) & set(FIRST.chunks)) >= 12


def test_repetitive_content_is_cut_and_the_search_ends() -> None:
    zeros = Version(bytes(20 * CHUNK + 5))
    assert len(set(zeros.chunks)) == 2
    Version(bytes(7 * CHUNK) + b"x" + bytes(13 * CHUNK), zeros)


def test_unreadable_former_version_is_ignored() -> None:
    content = b"x" + NOISE
    cuts = list(cut(pieces(content), FIRST.chunks, lambda _: b""))
    assert b"".join(piece.content for piece in cuts) == content


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, len(NOISE)), st.integers(0, 3 * CHUNK), st.integers(0, 2 * CHUNK)),
        min_size=1,
        max_size=3,
    ),
    st.integers(0, 2**32),
)
def test_chunks_reproduce_any_changed_content(changes: list[tuple[int, int, int]], seed: int) -> None:
    noise = random.Random(seed)
    version = FIRST
    for at, taken_out, put_in in changes:
        content = version.content[:at] + noise.randbytes(put_in) + version.content[at + taken_out :]
        version = Version(content, version)
