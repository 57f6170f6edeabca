"""Chunking: where a large blob is cut, so that the next version of it shares most of its pieces.

Pieces have a fixed size, except where an earlier version is known: then the cuts follow those of that version. While
each of its chunks stands where it is due, that is one hash a chunk, which is needed anyway. Where one doesn't, the
beginnings of some later chunks are looked for in what comes next, until one is found with its whole chunk behind it.
So bytes that were put in or taken out cost the chunk they lie in, and no byte is ever looked at in Python.
The idea of synchronising with a known older version is rsync's; that the base is known from the edit is the codec's.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from objstore.model.ids import BlobId, blob_id

__all__ = ["CHUNK", "MAX_CHUNK", "Chunk", "NewChunk", "cut"]

CHUNK: Final = 1 << 20
"""Bytes in a chunk where no earlier version says where to cut."""

MAX_CHUNK: Final = 2 * CHUNK
"""Longest chunk, in bytes."""

_AHEAD: Final = 4 * CHUNK
"""Bytes in which the beginnings of known chunks are looked for at once."""

_HEAD: Final = 64
"""Bytes of a chunk's beginning that are looked for."""

_TELLING: Final = 8
"""Different bytes that a beginning must hold, or it would be found everywhere."""


class Chunk(NamedTuple):
    """One piece of a large blob: a blob of its own."""

    id: BlobId
    size: int  # bytes


class NewChunk(NamedTuple):
    """A piece as it was cut."""

    id: BlobId
    content: bytes
    like: Chunk | None  # a chunk of the earlier version that it may resemble; None: none is known


def cut(pieces: Iterable[bytes], known: Sequence[Chunk], head: Callable[[Chunk], bytes]) -> Iterator[NewChunk]:
    """Yield the content that `pieces` make up, cut into chunks of 1 to MAX_CHUNK bytes.

    `known`: the chunks of an earlier version (may be none). `head`: returns the content of one of them, or at least
    its beginning.
    """
    return _Chunker(iter(pieces), known, head).run()


class _Chunker:
    """One content on its way through."""

    def __init__(self, pieces: Iterator[bytes], known: Sequence[Chunk], head: Callable[[Chunk], bytes]) -> None:
        self._pieces = pieces
        self._known = known
        self._head = head
        self._ahead = bytearray()
        self._due = 0  # the known chunk that should come next

    def run(self) -> Iterator[NewChunk]:
        anchors: list[tuple[int, bytes]] | None = None  # None: nothing is out of place
        like: Chunk | None = None
        while self._fill(_AHEAD if anchors else MAX_CHUNK):
            if anchors is None:
                match = self._expected_chunk()
                if match is not None:
                    del self._ahead[: len(match.content)]
                    yield match
                    self._due += 1
                    continue
                like = self._known[self._due] if self._due < len(self._known) else None
                anchors = self._anchors()
                if anchors:
                    continue
            found = self._found(anchors)
            size = CHUNK if found is None else found[1]
            for taken in self._taken(size):
                yield taken._replace(like=like)
                like = None
            if found is not None:
                self._due, anchors = found[0], None

    def _fill(self, wanted: int) -> bool:
        """Have so many bytes ahead, or what is left; return False at the end."""
        while len(self._ahead) < wanted:
            piece = next(self._pieces, b"")
            if not piece:
                break
            self._ahead += piece
        return bool(self._ahead)

    def _expected_chunk(self) -> NewChunk | None:
        """Return the known chunk that is due, if it is what comes next."""
        if self._due >= len(self._known):
            return None
        chunk = self._known[self._due]
        if chunk.size < CHUNK and self._due == len(self._known) - 1 and len(self._ahead) > chunk.size:
            return None  # the last one, and something was appended: better one chunk than two
        return self._chunk_at(chunk, 0)

    def _chunk_at(self, chunk: Chunk, offset: int) -> NewChunk | None:
        content = self._copied(offset, chunk.size)
        return NewChunk(chunk.id, content, None) if blob_id(content) == chunk.id else None

    def _anchors(self) -> list[tuple[int, bytes]]:
        """Return the next known chunks to look for, ever farther apart, each with its beginning."""
        found = []
        step = 1
        while self._due + step < len(self._known):
            beginning = bytes(self._head(self._known[self._due + step])[:_HEAD])
            if len(set(beginning)) >= _TELLING:
                found.append((self._due + step, beginning))
            step *= 2
        return found

    def _found(self, anchors: list[tuple[int, bytes]]) -> tuple[int, int] | None:
        """Return the first of the anchors' chunks that stands whole in what is ahead, and where."""
        for index, beginning in anchors:
            at = self._ahead.find(beginning)
            if at >= 0 and self._chunk_at(self._known[index], at) is not None:
                return index, at
        return None

    def _taken(self, size: int) -> Iterator[NewChunk]:
        """Take `size` bytes, or what there is, from what is ahead."""
        left = min(size, len(self._ahead))
        while left:
            step = left if left <= MAX_CHUNK else CHUNK
            content = self._copied(0, step)
            del self._ahead[:step]
            left -= step
            yield NewChunk(blob_id(content), content, None)

    def _copied(self, offset: int, size: int) -> bytes:
        with memoryview(self._ahead) as ahead:
            return bytes(ahead[offset : offset + size])
