"""Cut a large blob into chunks so that its next version shares most of them.

Chunks have a fixed size, unless an earlier version is known: then the cuts follow that version's. While each of its
chunks comes at its turn, that takes one hash for each chunk, which is needed anyway. If one doesn't, the chunker
searches the next bytes for the beginnings of some later chunks, until it finds one that is followed by its whole chunk.
So bytes that were inserted or removed cost the chunk that they are in, and no byte is ever inspected in Python. The
idea of synchronizing with a known older version is rsync's; as for deltas, the base is known from the edit.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from objstore.model.ids import BlobId, blob_id

__all__ = ["CHUNK", "MAX_CHUNK", "Chunk", "NewChunk", "cut"]

CHUNK: Final = 1 << 20
"""Bytes in a chunk if no earlier version determines the cuts."""

MAX_CHUNK: Final = 2 * CHUNK
"""Longest chunk, in bytes."""

_SEARCH_WINDOW: Final = 4 * CHUNK
"""Bytes that are searched for the beginnings of known chunks at once."""

_ANCHOR_SIZE: Final = 64
"""Bytes of a chunk's beginning that are searched for."""

_MIN_DISTINCT_BYTES: Final = 8
"""Different bytes that a beginning must hold, because a uniform one would be found everywhere."""


class Chunk(NamedTuple):
    """One piece of a large blob, stored as a blob of its own."""

    id: BlobId
    size: int  # bytes


class NewChunk(NamedTuple):
    """A chunk that was just cut."""

    id: BlobId
    content: bytes
    like: Chunk | None  # the chunk of the earlier version that it may resemble; None: unknown


def cut(pieces: Iterable[bytes], known: Sequence[Chunk], head: Callable[[Chunk], bytes]) -> Iterator[NewChunk]:
    """Yield the content in `pieces`, cut into chunks of 1 to MAX_CHUNK bytes.

    `known`: the chunks of an earlier version (may be empty). `head` returns the content of such a chunk, or at least
    its beginning.
    """
    return _Chunker(iter(pieces), known, head).run()


class _Chunker:
    """The chunking of one content."""

    def __init__(self, pieces: Iterator[bytes], known: Sequence[Chunk], head: Callable[[Chunk], bytes]) -> None:
        self._pieces = pieces
        self._known = known
        self._head = head
        self._buffer = bytearray()
        self._expected = 0  # index of the known chunk that is expected next

    def run(self) -> Iterator[NewChunk]:
        anchors: list[tuple[int, bytes]] | None = None  # None: the known chunks follow in order
        like: Chunk | None = None
        while self._fill(_SEARCH_WINDOW if anchors else MAX_CHUNK):
            if anchors is None:
                match = self._expected_chunk()
                if match is not None:
                    del self._buffer[: len(match.content)]
                    yield match
                    self._expected += 1
                    continue
                like = self._known[self._expected] if self._expected < len(self._known) else None
                anchors = self._anchors()
                if anchors:
                    continue
            found = self._find_anchor(anchors)
            size = CHUNK if found is None else found[1]
            for taken in self._take(size):
                yield taken._replace(like=like)
                like = None
            if found is not None:
                self._expected, anchors = found[0], None

    def _fill(self, wanted: int) -> bool:
        """Buffer so many bytes, or all that are remaining; return False at the end."""
        while len(self._buffer) < wanted:
            piece = next(self._pieces, b"")
            if not piece:
                break
            self._buffer += piece
        return bool(self._buffer)

    def _expected_chunk(self) -> NewChunk | None:
        """Return the expected known chunk if it comes next."""
        if self._expected >= len(self._known):
            return None
        chunk = self._known[self._expected]
        if chunk.size < CHUNK and self._expected == len(self._known) - 1 and len(self._buffer) > chunk.size:
            return None  # bytes were appended to a short last chunk: make one chunk of them instead of two
        return self._chunk_at(chunk, 0)

    def _chunk_at(self, chunk: Chunk, offset: int) -> NewChunk | None:
        content = self._copied(offset, chunk.size)
        return NewChunk(chunk.id, content, None) if blob_id(content) == chunk.id else None

    def _anchors(self) -> list[tuple[int, bytes]]:
        """Return some of the next known chunks, at growing distances, each with its beginning, to search for."""
        found = []
        step = 1
        while self._expected + step < len(self._known):
            beginning = bytes(self._head(self._known[self._expected + step])[:_ANCHOR_SIZE])
            if len(set(beginning)) >= _MIN_DISTINCT_BYTES:
                found.append((self._expected + step, beginning))
            step *= 2
        return found

    def _find_anchor(self, anchors: list[tuple[int, bytes]]) -> tuple[int, int] | None:
        """Return the index of the first anchor whose whole chunk is buffered, and its position (None: not found)."""
        for index, beginning in anchors:
            at = self._buffer.find(beginning)
            if at >= 0 and self._chunk_at(self._known[index], at) is not None:
                return index, at
        return None

    def _take(self, size: int) -> Iterator[NewChunk]:
        """Cut `size` bytes, or all that are buffered, from the buffer."""
        remaining = min(size, len(self._buffer))
        while remaining:
            step = remaining if remaining <= MAX_CHUNK else CHUNK
            content = self._copied(0, step)
            del self._buffer[:step]
            remaining -= step
            yield NewChunk(blob_id(content), content, None)

    def _copied(self, offset: int, size: int) -> bytes:
        with memoryview(self._buffer) as buffer:
            return bytes(buffer[offset : offset + size])
