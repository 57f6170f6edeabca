"""Choose a shorter encoding for each blob of the log, in the order of the log.

A file state is encoded as a delta against the state before it, as its writer did; if that is at the maximal depth,
against the state with which the chain began; a new file against one that it resembles. A quick trial chooses between
several bases, and the final encoding takes its time. docs/decisions/0021-repack.md has the figures. The result is never
longer than the old encoding, and its base is never later in the log.
"""

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from objstore.model.ids import BlobId
from objstore.storage.log.blob_codec import MAX_DEPTH, Base, BlobHeader, Encoding, at_depth, decode_blob, encode_blob
from objstore.upkeep.packing.compression_trials import CompressionTrials
from objstore.upkeep.packing.delta_candidates import DeltaCandidates
from objstore.values.errors import StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.model.basic_types import DocumentId
    from objstore.storage.index.rows import StateOrigin
    from objstore.storage.store.object_store import Store

__all__ = ["BlobReencoder"]

_SHORT: Final = 10
"""zstd's level where little data is left: a state encoded against the one before it, or a short file."""

_LONG: Final = 16
"""zstd's level for a long new file, encoded alone or against one that it resembles."""

_LONG_FROM: Final = 16 << 10
"""Bytes from which a new file is long: below, the higher level takes six times as long to save 3 %."""

_MUCH: Final = 1 / 6
"""The size after a quick trial, as a share of the bytes that are searched (those of the base included), from which the
higher level is worth its time: its time depends on the bytes searched, and its savings on the size that is left."""

_LITTLE: Final = 64
"""Bytes of data up to which a delta is kept unchanged: more effort would save about two of them."""

_BULKY: Final = 512 << 10
"""Bytes from which a blob, such as a chunk of a large one, gets the lower level: the higher takes a second per MiB."""

_DEEPER: Final = 0.015
_DEEPER_LONG: Final = 0.14
"""By what share an encoding must be shorter for each level of depth, since each base has to be read. The share is
larger for a long file: its chain then reaches the maximal depth sooner, and beginning the next part costs some kB."""

_THREADS: Final = 4
"""The most threads that encode at once: each needs memory of its own."""

_AHEAD_BYTES: Final = 16 << 20
"""Bytes of blobs and their bases that may wait for encoding."""

_LARGE: Final = 8 << 20
"""Bytes from which a blob is kept unchanged: encoding it would need several times as much memory."""

_LIKE_DEPTH: Final = 8
"""The largest depth of a new file's base: all later states of the file build on it."""

_RUN_DEPTH: Final = MAX_DEPTH // 2
"""The largest depth at which the next part of a chain may begin, so that the part is long enough."""

_DOCUMENTS: Final = 65_536
"""Number of documents for which the beginning of the chain is remembered."""


class _Known(NamedTuple):
    """A blob that may serve as a base."""

    depth: int  # at most
    size: int  # bytes


class _Choice(NamedTuple):
    """The chosen encoding of a blob."""

    base: Base | None  # None: as a keyframe
    level: int  # of zstd
    is_tried: bool  # whether a trial compared it with a keyframe


class BlobReencoder:
    """Encode the blobs of a log again, segment by segment and in order."""

    _store: "Store"  # of the present segment

    def __init__(self) -> None:
        # zstd takes most of the time, and releases Python's global lock.
        self._pool: Final = ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, _THREADS))
        self._pending: Final[deque[tuple[Future[bytes], int]]] = deque()  # each with the bytes that it keeps in memory
        self._waiting = 0  # bytes of all pending ones
        self._delta_candidates: Final = DeltaCandidates()
        self._trials: Final = CompressionTrials()
        self._begun: Final[dict[DocumentId, BlobId]] = {}  # the blob with which the present part of each chain began
        self._segment = 0
        self._fixed: frozenset[BlobId] = frozenset()
        self._known: dict[BlobId, _Known] = {}  # of this segment
        self._origins: dict[BlobId, StateOrigin] = {}
        self.raised: dict[BlobId, int] = {}  # blobs of this segment whose depth grew, each with its new depth

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the encodings that have not begun."""
        self._pool.shutdown(cancel_futures=True)

    def begin(self, store: "Store", segment: int, fixed: "Iterable[BlobId]") -> None:
        """Begin a segment, after all segments before it. `fixed`: the blobs whose depth must not grow.

        These are the bases of deltas outside the segment, because such a delta states its own depth.
        """
        self._store, self._segment = store, segment
        self._fixed = frozenset(fixed)
        self._known, self.raised = {}, {}
        self._origins = self._store.index.blobs.state_origins(segment)

    def encode(self, header: BlobHeader, payload: bytes) -> bytes | Future[bytes]:
        """Return the shorter payload of a verified blob, unchanged or encoded again.

        An upper bound of its depth is known at once, so the next blob need not wait. Raises BlobDamaged, and what
        Store.blob raises for a base.
        """
        content = decode_blob(header, payload, None if header.base is None else self._store.blob(header.base))
        self._store.remember(header.id, content)
        limit = header.depth if header.id in self._fixed else MAX_DEPTH
        kept = self._kept(header, payload, limit)
        is_noise = header.encoding is Encoding.RAW and len(content) > _BULKY
        is_little = header.base is not None and len(payload) - header.data <= _LITTLE
        found: bytes | Future[bytes]
        if kept is not None and (is_little or is_noise or len(content) > _LARGE):
            depth, found = kept
        else:
            choice = self._chosen(header, content, limit)
            depth = 0 if choice.base is None else choice.base.depth + 1
            depth = depth if kept is None else max(depth, kept[0])
            found = self._pool.submit(_shortest, header.id, content, choice, None if kept is None else kept[1])
            self._wait_for_room(found, len(content) + (0 if choice.base is None else len(choice.base.content)))
        self._known[header.id] = _Known(depth, header.size)
        if depth > header.depth:
            self.raised[header.id] = depth
        return found

    # ---- inside

    def _wait_for_room(self, found: Future[bytes], size: int) -> None:
        self._pending.append((found, size))
        self._waiting += size
        while self._pending and (self._waiting > _AHEAD_BYTES or self._pending[0][0].done()):
            first, size = self._pending.popleft()
            self._waiting -= size
            first.result()

    def _kept(self, header: BlobHeader, payload: bytes, limit: int) -> tuple[int, bytes] | None:
        """Return the unchanged payload with its depth (None: its base is too deep by now)."""
        if header.base is None:
            return 0, payload
        base = self._before(header.base)
        if base is None:
            raise StoreDamaged(self._segment, 0, f"the base of blob {header.id.hex()} is after it in the log")
        depth = base.depth + 1
        return (depth, at_depth(header, payload, depth)) if depth <= limit else None

    def _chosen(self, header: BlobHeader, content: bytes, limit: int) -> _Choice:
        """Return the base and the compression level for a blob."""
        origin = self._origins.get(header.id)
        earlier = [header.base, None if origin is None else origin.before]
        bases = self._bases(earlier, limit)
        is_next = bool(bases)
        path = b"" if origin is None else origin.path
        if not bases and origin is not None:
            bases = self._bases([self._begun.get(origin.document)], min(limit, _RUN_DEPTH))
        if not bases and earlier == [None, None]:
            similar = self._delta_candidates.match_and_add(header.id, path, content)
            bases = self._bases(similar, min(limit, _LIKE_DEPTH))
        if origin is not None and not is_next:
            self._begun[origin.document] = header.id
            if len(self._begun) > _DOCUMENTS:
                del self._begun[next(iter(self._begun))]
        base, left = (bases[0] if bases else None), len(content)
        if len(bases) > 1:
            base, left = self._best(content, bases)
        is_long = not is_next and _LONG_FROM <= len(content) <= _BULKY
        is_much = left >= _MUCH * (len(content) + (0 if base is None else len(base.content)))
        return _Choice(base, _LONG if is_long and is_much else _SHORT, is_tried=len(bases) > 1)

    def _bases(self, names: "Iterable[BlobId | None]", limit: int) -> list[Base]:
        """Return those of the blobs that are earlier in the log than this one and have a depth below `limit`."""
        found = []
        for name in dict.fromkeys(names):
            known = None if name is None else self._before(name)
            if name is not None and known is not None and known.depth < limit and known.size <= _LARGE:
                found.append(Base(id=name, content=self._store.blob(name), depth=known.depth))
        return found

    def _best(self, content: bytes, bases: list[Base]) -> tuple[Base | None, int]:
        """Return the base that probably gives the shortest encoding (None: a keyframe), and the size in a trial."""
        left = self._trials.alone(content)
        best, least = None, float(left)
        deeper = _DEEPER if len(content) < _LONG_FROM else _DEEPER_LONG
        for base in bases:
            size = self._trials.against(content, base)
            weighed = size * (1 + base.depth * deeper)
            if weighed < least:
                best, least, left = base, weighed, size
        return best, left

    def _before(self, name: BlobId) -> _Known | None:
        """Return the depth and size of a blob (None: it is not earlier in the log than the one being encoded)."""
        known = self._known.get(name)
        if known is None:
            found = self._store.blob_place(name)
            if found is not None and found.place.segment < self._segment:
                return _Known(found.depth, found.size)
        return known


def _shortest(name: BlobId, content: bytes, choice: _Choice, kept: bytes | None) -> bytes:
    _, payload = encode_blob(content, choice.base, name=name, level=choice.level, is_like=choice.is_tried)
    return payload if kept is None or len(payload) < len(kept) else kept
