"""Respelling: how each blob of the log may be told in fewer bytes, chosen in the order of the log.

A state is told against the one before it, as its writer did, or where that is at the end of its chain, against the
state with which the chain began; a new file against one that it resembles. Of several bases a quick spelling decides,
the final one takes its time. docs/decisions/0021-repack.md has the figures. What comes out is never longer than what
was there, and never told against a blob that lies behind it.
"""

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from objstore.errors import StoreDamaged
from objstore.log.blob_codec import MAX_DEPTH, Base, BlobHeader, Encoding, at_depth, decode_blob, encode_blob
from objstore.model.ids import BlobId
from objstore.packing.compression_trials import CompressionTrials
from objstore.packing.delta_candidates import DeltaCandidates

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.index.rows import StateOrigin
    from objstore.model.basic_types import DocumentId
    from objstore.store.object_store import Store

__all__ = ["BlobReencoder"]

_SHORT: Final = 10
"""zstd's level where little is left to tell: of a state that is told against the one before it, and of short files."""

_LONG: Final = 16
"""zstd's level for a long new file, told alone or against one that it resembles."""

_LONG_FROM: Final = 16 << 10
"""Bytes from which a new file is long: below, the higher level takes six times as long for three hundredths."""

_MUCH: Final = 1 / 6
"""What a quick spelling leaves to tell of a long file, as a share of what is searched, the base with it, from which the
higher level is worth its time: the time goes by what is searched, what it saves by what is left to tell."""

_LITTLE: Final = 64
"""Bytes of data that a delta may keep as they are: with more effort they would be two fewer."""

_BULKY: Final = 512 << 10
"""Bytes from which a blob is told at the lower level, chunks of large ones with it: the higher takes a second a MiB."""

_DEEPER: Final = 0.015
_DEEPER_LONG: Final = 0.14
"""By what share a spelling has to be shorter for each step that it lies deeper: each has to be read. More for a long
file: its chain then comes to its end sooner, and to begin the next part costs some kB."""

_THREADS: Final = 4
"""At most so many at once: each takes memory of its own."""

_AHEAD_BYTES: Final = 16 << 20
"""Bytes of blobs, and of what they are told against, that wait to be spelt."""

_LARGE: Final = 8 << 20
"""Bytes from which a blob stays as it is: so much more would lie in memory, several times over."""

_LIKE_DEPTH: Final = 8
"""How deep a new file's base may lie: all states of the file stand on it."""

_RUN_DEPTH: Final = MAX_DEPTH // 2
"""How deep the beginning of a chain's next part may lie, so that the part is worth it."""

_DOCUMENTS: Final = 65_536
"""Documents of which the beginning of the chain is remembered."""


class _Known(NamedTuple):
    """What may be told against."""

    depth: int  # at most
    size: int  # bytes


class _Choice(NamedTuple):
    """How a blob is to be told."""

    base: Base | None  # None: alone
    level: int  # of zstd
    is_tried: bool  # whether telling it alone was found to be no shorter, or is what is chosen


class BlobReencoder:
    """Spells the blobs of a log, segment by segment and in their order."""

    _store: "Store"  # that holds the segment which was begun

    def __init__(self) -> None:
        # zstd works without Python's lock, and takes most of the time.
        self._pool: Final = ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, _THREADS))
        self._pending: Final[deque[tuple[Future[bytes], int]]] = deque()  # each with the bytes that wait with it
        self._waiting = 0  # bytes of all of these
        self._delta_candidates: Final = DeltaCandidates()
        self._trials: Final = CompressionTrials()
        self._begun: Final[dict[DocumentId, BlobId]] = {}  # the blob with which the document's chain began, or went on
        self._segment = 0
        self._fixed: frozenset[BlobId] = frozenset()
        self._known: dict[BlobId, _Known] = {}  # of this segment
        self._told: dict[BlobId, StateOrigin] = {}
        self.raised: dict[BlobId, int] = {}  # blobs of this segment that lie deeper than before, each with its depth

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop what is still being spelt."""
        self._pool.shutdown(cancel_futures=True)

    def begin(self, store: "Store", segment: int, fixed: "Iterable[BlobId]") -> None:
        """Go on with a segment, after all before it. `fixed`: the blobs that must not lie deeper than they do.

        Those are what deltas outside the segment are told against, which know how deep they lie themselves.
        """
        self._store, self._segment = store, segment
        self._fixed = frozenset(fixed)
        self._known, self.raised = {}, {}
        self._told = self._store.index.blobs.state_origins(segment)

    def spell(self, header: BlobHeader, payload: bytes) -> bytes | Future[bytes]:
        """Return the shorter payload of a blob, as it is or spelt anew, once the blob is what its name says.

        How deep it then lies at most is known at once, so the next one need not wait. Raises BlobDamaged, and what
        Store.blob raises of a base.
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
        """Return the payload as it is, with its depth (None: its base has come to lie too deep for it)."""
        if header.base is None:
            return 0, payload
        base = self._before(header.base)
        if base is None:
            raise StoreDamaged(self._segment, 0, f"the base of blob {header.id.hex()} lies behind it")
        depth = base.depth + 1
        return (depth, at_depth(header, payload, depth)) if depth <= limit else None

    def _chosen(self, header: BlobHeader, content: bytes, limit: int) -> _Choice:
        """Return what a blob is to be told against, and how hard it is to be compressed."""
        told = self._told.get(header.id)
        earlier = [header.base, None if told is None else told.before]
        bases = self._bases(earlier, limit)
        is_next = bool(bases)
        path = b"" if told is None else told.path
        if not bases and told is not None:
            bases = self._bases([self._begun.get(told.document)], min(limit, _RUN_DEPTH))
        if not bases and earlier == [None, None]:
            like = self._delta_candidates.match_and_add(header.id, path, content)
            bases = self._bases(like, min(limit, _LIKE_DEPTH))
        if told is not None and not is_next:
            self._begun[told.document] = header.id
            if len(self._begun) > _DOCUMENTS:
                del self._begun[next(iter(self._begun))]
        base, left = (bases[0] if bases else None), len(content)
        if len(bases) > 1:
            base, left = self._best(content, bases)
        is_long = not is_next and _LONG_FROM <= len(content) <= _BULKY
        is_much = left >= _MUCH * (len(content) + (0 if base is None else len(base.content)))
        return _Choice(base, _LONG if is_long and is_much else _SHORT, is_tried=len(bases) > 1)

    def _bases(self, names: "Iterable[BlobId | None]", limit: int) -> list[Base]:
        """Return those blobs that lie before this one, and less deep than `limit`."""
        found = []
        for name in dict.fromkeys(names):
            known = None if name is None else self._before(name)
            if name is not None and known is not None and known.depth < limit and known.size <= _LARGE:
                found.append(Base(id=name, content=self._store.blob(name), depth=known.depth))
        return found

    def _best(self, content: bytes, bases: list[Base]) -> tuple[Base | None, int]:
        """Return the base against which the blob is likely to be the shortest (None: it is so alone).

        And how many bytes a quick spelling of it then takes.
        """
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
        """Return what is known of a blob (None: it does not lie before the one that is spelt)."""
        known = self._known.get(name)
        if known is None:
            found = self._store.blob_place(name)
            if found is not None and found.place.segment < self._segment:
                return _Known(found.depth, found.size)
        return known


def _shortest(name: BlobId, content: bytes, choice: _Choice, kept: bytes | None) -> bytes:
    _, anew = encode_blob(content, choice.base, name=name, level=choice.level, is_like=choice.is_tried)
    return anew if kept is None or len(anew) < len(kept) else kept
