"""Respelling: how each blob of the log may be told in fewer bytes, chosen in the order of the log.

A state is told against the one before it, as its writer did, or where that is at the end of its chain, against the
state with which the chain began; a new file against one that it resembles. Of several bases a quick spelling decides,
the final one takes its time. docs/decisions/0018-repack.md has the figures. What comes out is never longer than what
was there, and never told against a blob that lies behind it.
"""

from typing import TYPE_CHECKING, Final

from objstore.codec import MAX_DEPTH, Base, BlobHeader, Encoding, at_depth, encode_blob
from objstore.errors import StoreDamaged
from objstore.frames import FrameKind
from objstore.ids import BlobId
from objstore.likeness import Likeness
from objstore.records import Edit, decode_record
from objstore.terms import DocumentId
from objstore.values import value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.segments import Group
    from objstore.store import Store

__all__ = ["Respelling"]

_NEXT: Final = 9
"""zstd's level for a state that is told against the one before it: what is left of it is short."""

_NEW: Final = 16
"""zstd's level for a file that is told alone, or against one that it resembles."""

_BULKY: Final = 1 << 20
"""Bytes from which a blob is told at the lower level: the higher one takes a second for each MiB."""

_QUICK: Final = 1
_LARGE: Final = 8 << 20
"""Bytes from which a blob stays as it is: so much more would lie in memory, several times over."""

_LIKE_DEPTH: Final = 8
"""How deep a new file's base may lie: all states of the file stand on it."""

_RUN_DEPTH: Final = MAX_DEPTH // 2
"""How deep the beginning of a chain's next part may lie, so that the part is worth it."""

_DOCUMENTS: Final = 65_536
"""Documents of which the beginning of the chain is remembered."""


@value
class _Told:
    """What a record says of a blob."""

    path: bytes
    document: DocumentId
    before: BlobId | None  # None: the file is new


class Respelling:
    """Spells the blobs of a log, segment by segment and in their order."""

    def __init__(self, store: "Store") -> None:
        self._store: Final = store
        self._likeness: Final = Likeness()
        self._begun: Final[dict[DocumentId, BlobId]] = {}  # the blob with which the document's chain began, or went on
        self._segment = 0
        self._fixed: frozenset[BlobId] = frozenset()
        self._depths: dict[BlobId, int] = {}
        self._told: dict[BlobId, _Told] = {}
        self.raised: dict[BlobId, int] = {}  # blobs of this segment that lie deeper than before, each with its depth

    def begin(self, segment: int, fixed: "Iterable[BlobId]") -> None:
        """Go on with a segment, after all before it. `fixed`: the blobs that must not lie deeper than they do.

        Those are what deltas outside the segment are told against, which know how deep they lie themselves.
        """
        self._segment = segment
        self._fixed = frozenset(fixed)
        self._depths, self.raised = {}, {}

    def hear(self, group: "Group") -> None:
        """Note what the records of a group say of its blobs. Raises RecordInvalid."""
        self._told = {}
        for frame in group.frames:
            if frame.kind is FrameKind.RECORD:
                record, _ = decode_record(bytes(frame.payload))
                if isinstance(record, Edit) and record.after is not None:
                    before = None if record.before is None else record.before.blob
                    self._told[record.after.blob] = _Told(path=record.path, document=record.document, before=before)

    def spell(self, header: BlobHeader, payload: bytes, content: bytes) -> tuple[BlobHeader, bytes]:
        """Return the shorter of a blob's spelling as it is and a new one. `content`: its bytes, verified.

        Raises what Store.blob raises of a base.
        """
        limit = header.depth if header.id in self._fixed else MAX_DEPTH
        spelt = self._kept(header, payload, limit)
        is_noise = header.encoding is Encoding.RAW and len(content) > _BULKY
        if spelt is None or not (len(content) > _LARGE or is_noise):
            anew = self._anew(header, content, limit)
            if spelt is None or len(anew[1]) < len(spelt[1]):
                spelt = anew
        depth = spelt[0].depth
        self._depths[header.id] = depth
        if depth > header.depth:
            self.raised[header.id] = depth
        return spelt

    # ---- inside

    def _kept(self, header: BlobHeader, payload: bytes, limit: int) -> tuple[BlobHeader, bytes] | None:
        """Return the spelling as it is (None: its base has come to lie too deep for it)."""
        if header.base is None:
            return header, payload
        depth = self._depth(header.base)
        if depth is None:
            raise StoreDamaged(self._segment, 0, f"the base of blob {header.id.hex()} lies behind it")
        return at_depth(header, payload, depth + 1) if depth < limit else None

    def _anew(self, header: BlobHeader, content: bytes, limit: int) -> tuple[BlobHeader, bytes]:
        told = self._told.get(header.id)
        earlier = [header.base, None if told is None else told.before]
        bases = self._bases(earlier, limit)
        is_next = bool(bases)
        path = b"" if told is None else told.path
        if not bases and told is not None:
            bases = self._bases([self._begun.get(told.document)], min(limit, _RUN_DEPTH))
        if not bases and earlier == [None, None]:
            bases = self._bases(self._likeness.meet(header.id, path, content), min(limit, _LIKE_DEPTH))
        level = _NEXT if is_next or len(content) > _BULKY else _NEW
        spelt = encode_blob(content, self._best(header.id, content, bases), name=header.id, level=level)
        if told is not None and not is_next:
            self._begun[told.document] = header.id
            if len(self._begun) > _DOCUMENTS:
                del self._begun[next(iter(self._begun))]
        return spelt

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
        depth = self._depths.get(name)
        if depth is None:
            found = self._store.blob_place(name)
            if found is not None and found.place.segment < self._segment:
                return found.depth
        return depth

    @staticmethod
    def _best(name: BlobId, content: bytes, bases: list[Base]) -> Base | None:
        if len(bases) < 2:  # noqa: PLR2004 - there is nothing to choose
            return bases[0] if bases else None
        best, least = None, len(encode_blob(content, name=name, level=_QUICK)[1])
        for base in bases:
            size = len(encode_blob(content, base, name=name, level=_QUICK)[1])
            if size < least:
                best, least = base, size
        return best
