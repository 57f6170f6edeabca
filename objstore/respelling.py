"""Respelling: how each blob of the log may be told in fewer bytes, chosen in the order of the log.

A state is told against the one before it, as its writer did, or where that is at the end of its chain, against the
state with which the chain began; a new file against one that it resembles. Of several bases a quick spelling decides,
the final one takes its time. docs/decisions/0021-repack.md has the figures. What comes out is never longer than what
was there, and never told against a blob that lies behind it.
"""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias

from objstore.codec import MAX_DEPTH, Base, BlobHeader, Encoding, at_depth, decode_blob, encode_blob
from objstore.errors import StoreDamaged
from objstore.ids import BlobId
from objstore.likeness import Likeness

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.indexrows import StateTold
    from objstore.store import Store
    from objstore.terms import DocumentId

__all__ = ["Respelling", "Spelt"]

_NEXT: Final = 9
"""zstd's level for a state that is told against the one before it: what is left of it is short."""

_NEW: Final = 19
"""zstd's level for a file that is told alone, or against one that it resembles."""

_BULKY: Final = 512 << 10
"""Bytes from which a blob is told at the lower level, chunks of large ones with it: the higher takes a second a MiB."""

_QUICK: Final = -1
"""zstd's level for choosing among bases."""

_DEEPER: Final = 0.03
"""By what share a spelling has to be shorter for each step that it lies deeper: each has to be read."""

_THREADS: Final = 4
"""At most so many at once: each takes memory of its own."""

_AHEAD: Final = 1
"""Blobs still being spelt when the next one is begun: with more of them, new files lose those that came just before."""

_AHEAD_BYTES: Final = 16 << 20
_LARGE: Final = 8 << 20
"""Bytes from which a blob stays as it is: so much more would lie in memory, several times over."""

_LIKE_DEPTH: Final = 8
"""How deep a new file's base may lie: all states of the file stand on it."""

_RUN_DEPTH: Final = MAX_DEPTH // 2
"""How deep the beginning of a chain's next part may lie, so that the part is worth it."""

_DOCUMENTS: Final = 65_536
"""Documents of which the beginning of the chain is remembered."""


Spelt: TypeAlias = tuple[BlobHeader, bytes]
"""What a blob's frame is to hold: its payload, and the header of that."""


class _Pending(NamedTuple):
    """A blob that is being spelt."""

    found: Future[Spelt]
    depth: int  # that it had
    size: int  # bytes in memory for it


class Respelling:
    """Spells the blobs of a log, segment by segment and in their order."""

    def __init__(self, store: "Store") -> None:
        self._store: Final = store
        # zstd works without Python's lock, and takes most of the time.
        self._pool: Final = ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, _THREADS))
        self._pending: Final[dict[BlobId, _Pending]] = {}  # in the order of the log
        self._likeness: Final = Likeness()
        self._begun: Final[dict[DocumentId, BlobId]] = {}  # the blob with which the document's chain began, or went on
        self._segment = 0
        self._fixed: frozenset[BlobId] = frozenset()
        self._depths: dict[BlobId, int] = {}
        self._told: dict[BlobId, StateTold] = {}
        self.raised: dict[BlobId, int] = {}  # blobs of this segment that lie deeper than before, each with its depth

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop what is still being spelt."""
        self._pool.shutdown(cancel_futures=True)

    def begin(self, segment: int, fixed: "Iterable[BlobId]") -> None:
        """Go on with a segment, after all before it. `fixed`: the blobs that must not lie deeper than they do.

        Those are what deltas outside the segment are told against, which know how deep they lie themselves.
        """
        self._segment = segment
        self._fixed = frozenset(fixed)
        self._depths, self.raised = {}, {}
        self._pending.clear()
        self._told = self._store.index.states_told(segment)

    def end(self) -> None:
        """Wait for what is being spelt: then `raised` is whole."""
        for name in list(self._pending):
            self._settle(name)

    def spell(self, header: BlobHeader, payload: bytes) -> Future[Spelt]:
        """Return the shorter of a blob's spelling as it is and a new one, once the blob is what its name says.

        Raises BlobDamaged, and what Store.blob raises of a base.
        """
        content = decode_blob(header, payload, None if header.base is None else self._store.blob(header.base))
        self._store.remember(header.id, content)
        limit = header.depth if header.id in self._fixed else MAX_DEPTH
        kept = self._kept(header, payload, limit)
        is_noise = header.encoding is Encoding.RAW and len(content) > _BULKY
        if kept is not None and (len(content) > _LARGE or is_noise):
            found: Future[Spelt] = Future()
            found.set_result(kept)
            size = 0
        else:
            bases, level = self._told_against(header, content, limit)
            found = self._pool.submit(_shortest, header.id, content, bases, level, kept)
            size = len(content) + sum(len(base.content) for base in bases)
        self._pending[header.id] = _Pending(found, header.depth, size)
        while len(self._pending) > _AHEAD or sum(pending.size for pending in self._pending.values()) > _AHEAD_BYTES:
            self._settle(next(iter(self._pending)))
        return found

    # ---- inside

    def _settle(self, name: BlobId) -> None:
        pending = self._pending.pop(name)
        depth = pending.found.result()[0].depth
        self._depths[name] = depth
        if depth > pending.depth:
            self.raised[name] = depth

    def _kept(self, header: BlobHeader, payload: bytes, limit: int) -> Spelt | None:
        """Return the spelling as it is (None: its base has come to lie too deep for it)."""
        if header.base is None:
            return header, payload
        depth = self._depth(header.base)
        if depth is None:
            raise StoreDamaged(self._segment, 0, f"the base of blob {header.id.hex()} lies behind it")
        return at_depth(header, payload, depth + 1) if depth < limit else None

    def _told_against(self, header: BlobHeader, content: bytes, limit: int) -> tuple[list[Base], int]:
        """Return what a blob may be told against, and how hard it is to be compressed."""
        told = self._told.get(header.id)
        earlier = [header.base, None if told is None else told.before]
        bases = self._bases(earlier, limit)
        is_next = bool(bases)
        path = b"" if told is None else told.path
        if not bases and told is not None:
            bases = self._bases([self._begun.get(told.document)], min(limit, _RUN_DEPTH))
        if not bases and earlier == [None, None]:
            like = self._likeness.meet(header.id, path, content)
            bases = self._bases((name for name in like if name not in self._pending), min(limit, _LIKE_DEPTH))
        if told is not None and not is_next:
            self._begun[told.document] = header.id
            if len(self._begun) > _DOCUMENTS:
                del self._begun[next(iter(self._begun))]
        return bases, _NEXT if is_next or len(content) > _BULKY else _NEW

    def _bases(self, names: "Iterable[BlobId | None]", limit: int) -> list[Base]:
        """Return those blobs that lie before this one, and less deep than `limit`."""
        found = []
        for name in dict.fromkeys(names):
            depth = None if name is None else self._depth(name)
            if name is not None and depth is not None and depth < limit and self._store.size(name) <= _LARGE:
                found.append(Base(id=name, content=self._store.blob(name), depth=depth))
        return found

    def _depth(self, name: BlobId) -> int | None:
        """Return how deep a blob lies at most (None: it does not lie before the one that is spelt)."""
        if name in self._pending:
            self._settle(name)
        depth = self._depths.get(name)
        if depth is None:
            found = self._store.blob_place(name)
            if found is not None and found.place.segment < self._segment:
                return found.depth
        return depth


def _shortest(name: BlobId, content: bytes, bases: list[Base], level: int, kept: Spelt | None) -> Spelt:
    anew = encode_blob(content, _best(name, content, bases), name=name, level=level)
    return anew if kept is None or len(anew[1]) < len(kept[1]) else kept


def _best(name: BlobId, content: bytes, bases: list[Base]) -> Base | None:
    if len(bases) < 2:  # noqa: PLR2004 - there is nothing to choose
        return bases[0] if bases else None
    best, least = None, float(len(encode_blob(content, name=name, level=_QUICK)[1]))
    for base in bases:
        size = len(encode_blob(content, base, name=name, level=_QUICK)[1]) * (1 + base.depth * _DEEPER)
        if size < least:
            best, least = base, size
    return best
