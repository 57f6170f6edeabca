"""Store a large blob chunk by chunk, in memory that does not depend on its size."""

from collections.abc import Callable
from functools import partial
from typing import Final

from objstore.disk.fs.content_source import Source
from objstore.model.ids import BlobHasher, BlobId
from objstore.model.large_file_placeholder import MAX_BLOB
from objstore.storage.log.blob_codec import MAX_DEPTH, Base, BlobHeader, encode_blob, encode_chunks
from objstore.storage.log.chunking import Chunk, NewChunk, cut
from objstore.storage.log.frames import FrameKind
from objstore.storage.store.object_store import Store
from objstore.values.errors import UNREADABLE, FileChanged

__all__ = ["Put", "append_chunks", "store_large_blob"]

_GROUP_BYTES: Final = 4 << 20
"""Bytes of chunks that are appended together."""

_GROUP_CHUNKS: Final = 16
"""Most chunks that are appended together, however short: their contents are in memory until then."""


Put = Callable[[list[BlobHeader], list[bytes]], bool]
"""Appends chunks, durably; returns False, and appends nothing, if a base is gone or a repack made it deeper."""


def store_large_blob(
    store: Store, name: BlobId, source: Source, base: BlobId | None, put: Put | None = None
) -> tuple[list[BlobHeader], list[bytes]]:
    """Append a large blob's chunks, and return the headers and payloads of the frames that are still to be appended.

    The last of these is the blob's own. `base`: a blob that it may resemble. `put` appends chunks (None: the store
    does, while the caller holds the writer lock). Raises FileChanged if the content of `source` is not the blob `name`,
    and what Log.append raises; nothing names the chunks appended by then.
    """
    if source.size <= MAX_BLOB:
        content = b"".join(source.pieces())
        header, payload = encode_blob(content)
        if header.id != name:
            raise FileChanged(source.name)
        return [header], [payload]
    return _LargeBlobWriter(store, name, base, put or partial(append_chunks, store)).run(source)


def append_chunks(store: Store, headers: list[BlobHeader], payloads: list[bytes]) -> bool:
    """Append chunks as a `Put`. The caller holds the writer lock."""
    own = {header.id for header in headers}
    for header in headers:
        if header.base is not None and header.base not in own:
            base = store.blob_place(header.base)
            if base is None or base.depth >= header.depth:
                return False
    store.append([(FrameKind.BLOB, payload) for payload in payloads])
    return True


class _LargeBlobWriter:
    """The writing of one large blob."""

    def __init__(self, store: Store, name: BlobId, base: BlobId | None, put: Put) -> None:
        self._store = store
        self._name = name
        self._base = base
        self._put = put
        self._headers: list[BlobHeader] = []
        self._payloads: list[bytes] = []
        self._waiting: dict[BlobId, bytes] = {}  # the contents of those chunks
        self._size = 0  # bytes of the payloads

    def run(self, source: Source) -> tuple[list[BlobHeader], list[bytes]]:
        hasher = BlobHasher()
        chunks: list[Chunk] = []
        for piece in cut(source.pieces(), self._known_chunks(), self._content):
            hasher.update(piece.content)
            chunks.append(Chunk(piece.id, len(piece.content)))
            self._add(piece)
        if hasher.blob_id() != self._name:
            raise FileChanged(source.name)
        header, payload = encode_chunks(self._name, chunks)
        return [*self._headers, header], [*self._payloads, payload]

    def _known_chunks(self) -> tuple[Chunk, ...]:
        """Return the chunks of the earlier version; none if that is no large blob, or can't be read.

        If the store has a chunk list of the blob itself, return its chunks: readers use the first of a blob's frames.
        """
        base = self._base if self._store.blob_place(self._name) is None else self._name
        try:
            if base is None or self._store.size(base) <= MAX_BLOB:
                return ()
            return self._store.chunks(base)
        except UNREADABLE:
            return ()

    def _add(self, piece: NewChunk) -> None:
        if piece.id in self._waiting or self._store.has(piece.id):
            return
        header, payload = encode_blob(piece.content, self._base_of(piece), name=piece.id)
        self._headers.append(header)
        self._payloads.append(payload)
        self._waiting[piece.id] = piece.content
        self._size += len(payload)
        if self._size >= _GROUP_BYTES or len(self._waiting) >= _GROUP_CHUNKS:
            if not self._put(self._headers, self._payloads):
                alone = [encode_blob(content, name=name) for name, content in self._waiting.items()]
                self._put([header for header, _ in alone], [payload for _, payload in alone])
            self._headers, self._payloads, self._size = [], [], 0
            self._waiting.clear()

    def _base_of(self, piece: NewChunk) -> Base | None:
        if piece.like is None:
            return None
        found = self._store.blob_place(piece.like.id)
        if found is None or found.depth >= MAX_DEPTH or not self._store.is_depth_consistent(piece.like.id):
            return None
        content = self._content(piece.like)
        return Base(id=piece.like.id, content=content, depth=found.depth) if content else None

    def _content(self, chunk: Chunk) -> bytes:
        """Return the bytes of a chunk of the earlier version; none if it can't be read, so that it is not a base."""
        try:
            return self._store.read_once(chunk.id)
        except UNREADABLE:
            return b""
