"""Repack: the log written anew in fewer bytes. What it says stays as it is, and is checked by its hash on the way.

From the first segment to the last, because a base lies before what is told against it: a segment is spelt anew beside
the old one while readers and writers go on, takes its name in one short moment, as in a sweep, and the index follows
before the next segment begins. A blob may come to lie deeper only if no delta outside its segment is told against it,
for that says how deep it lies itself. What was written against such a blob meanwhile ends the attempt; the next one
leaves all blobs as deep as they are that files hold now.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.errors import IndexDamaged
from objstore.fastclass import value
from objstore.log.blob_codec import BlobHeader, Encoding, parse_blob_header, parse_chunks
from objstore.log.frame_moves import FrameMoves
from objstore.log.frames import FRAME_HEADER_SIZE, SEGMENT_HEADER_SIZE, FrameKind, RawFrame, encode_frame
from objstore.log.segment_files import GENERATION, Place
from objstore.packing.repack_plan import BlobReencoder
from objstore.retention.compaction import adopt, discard, require_compaction_space
from objstore.retention.log_position import LogPosition, log_position_of, log_still_holds
from objstore.retention.segment_rewrite import require_readable_frame
from objstore.transaction.journal import Journal
from objstore.transaction.space_reserve import finish_compaction

if TYPE_CHECKING:
    from concurrent.futures import Future

    from objstore.model.ids import BlobId
    from objstore.store.object_store import Store

__all__ = ["RepackPlan", "Repacked", "plan_repack", "repack"]

WORTHWHILE: Final = 0.01
"""Share of a segment's bytes that must be saved for the new one to count."""

_GROUPS: Final = 128
_WAITING: Final = 4 << 20
"""Groups, and bytes of them, that wait for their blobs to be spelt: a long one is not to hold up those behind it."""

_PIECE: Final = 1 << 18
"""Bytes that are written at once."""

_ASKED_AT_ONCE: Final = 64
"""Groups whose blobs are looked up together."""

_BLOB: Final = int(FrameKind.BLOB)

Progress = Callable[[str, int, int], None]
"""Is told what is done, how many of it are, and how many there are."""

_Named: TypeAlias = "tuple[RawFrame, BlobHeader | None]"
"""A frame, and the header of the blob in it (None: it holds a record)."""

_Payload: TypeAlias = "bytes | Future[bytes] | bool"
"""What is to stand in a frame (True: what does; False: nothing, another frame of the blob counts)."""

_Due: TypeAlias = "tuple[RawFrame, _Payload]"


@value
class RepackPlan:
    """What a repack would come to."""

    blobs: int  # that were spelt, to see how short they become
    bytes_before: int  # of all segments
    bytes_after: int


@value
class Repacked:
    """What a repack did."""

    segments: int  # written anew
    blobs: int  # that were spelt
    bytes_before: int  # of all segments
    bytes_after: int
    is_done: bool  # whether no segment was left because of what was written meanwhile


def plan_repack(journal: Journal, progress: Progress | None = None) -> RepackPlan:
    """Return what `repack` would come to now, if nobody else wrote. Nothing is changed; it takes as long.

    Raises BlobDamaged, BlobMissing, StoreDamaged, IndexDamaged.
    """
    with journal.reading() as store, BlobReencoder() as reencoder:
        count = _Count(store, progress)
        before = after = store.log.total_bytes()
        for segment in store.log.numbers():
            reencoder.begin(store, segment, store.index.blobs.bases_used_elsewhere(segment))
            respelt = _ReencodedSegment(store, segment, reencoder, count)
            for _ in respelt.pieces():
                pass
            after -= respelt.saved if respelt.is_worthwhile else 0
        return RepackPlan(blobs=count.blobs, bytes_before=before, bytes_after=after)


def repack(journal: Journal, progress: Progress | None = None) -> Repacked:
    """Write every segment anew that becomes smaller by it.

    Raises StoreLocked at once if a sweep or another repack is going on, and RoomNeeded, DiskFull, DiskFailed,
    BlobDamaged, BlobMissing, StoreDamaged, IndexDamaged: the segments that were not yet done are then as they were.
    """
    with journal.compacting():
        finish_compaction(journal)
        with journal.writing(may_use_reserve=True):
            if journal.store.end.position > SEGMENT_HEADER_SIZE:
                journal.seal()
        with journal.reading() as store:
            before, segments = store.log.total_bytes(), store.log.numbers()[:-1]
            count = _Count(store, progress)
        with BlobReencoder() as reencoder:
            repacking = _Repacking(journal, reencoder, count)
            written = [repacking.rewrite(segment) for segment in segments]
        with journal.reading() as store:
            return Repacked(
                segments=written.count(True),
                blobs=count.blobs,
                bytes_before=before,
                bytes_after=store.log.total_bytes(),
                is_done=None not in written,
            )


class _Count:
    """How far it is."""

    def __init__(self, store: "Store", progress: Progress | None) -> None:
        self.blobs = 0
        self._total: Final = store.index.blobs.count()
        self._progress: Final = progress

    def add(self) -> None:
        """Count a blob."""
        self.blobs += 1
        if self._progress is not None:
            self._progress("blobs", self.blobs, self._total)


class _ReencodedSegment:
    """One segment's next generation, with its blobs spelt anew."""

    def __init__(self, store: "Store", segment: int, reencoder: BlobReencoder, count: _Count) -> None:
        self._store: Final = store
        self._segment: Final = segment
        self._reencoder: Final = reencoder
        self._count: Final = count
        self._base: Final = store.log.generations().get(segment, 0) * GENERATION
        self._position = SEGMENT_HEADER_SIZE
        self.moves: Final = FrameMoves()

    @property
    def saved(self) -> int:
        """Return by how many bytes the new file is smaller, once all pieces are there."""
        return self._store.log.size(self._segment) - self._position

    @property
    def is_worthwhile(self) -> bool:
        """Return whether so much is saved that the new file is to count."""
        return self.saved > WORTHWHILE * self._store.log.size(self._segment)

    def pieces(self) -> Iterator[bytes]:
        """Yield the frames, many at a time; every blob is verified.

        Raises BlobDamaged, BlobMissing, StoreDamaged, and IndexDamaged where a blob's frame would go by the index, and
        there is no other.
        """
        waiting: deque[tuple[int, list[_Due]]] = deque()
        piece: list[bytes] = []
        begun = self._position
        size = 0
        for groups in self._groups():
            places = self._store.index.blobs.places([told.id for group in groups for _, told in group if told])
            for group in groups:
                own = sum(len(frame.whole) for frame, _ in group)
                waiting.append((own, [(frame, self._payload(frame, told, places)) for frame, told in group]))
                size += own
                while len(waiting) > _GROUPS or size > _WAITING:
                    own, due = waiting.popleft()
                    size -= own
                    piece += self._spelt(due)
            if self._position - begun >= _PIECE:
                yield b"".join(piece)
                piece, begun = [], self._position
        for _, due in waiting:
            piece += self._spelt(due)
        yield b"".join(piece)

    def _groups(self) -> Iterator[list[list[_Named]]]:
        """Yield the segment's groups, some at a time: each frame with its blob's header."""
        log, end = self._store.log, self._store.end
        start = Place(self._segment, self._base)
        found: list[list[_Named]] = []
        group: list[_Named] = []
        size = 0
        # Others write behind the end.
        for frame in log.raw_frames(start, end.position if end.segment == self._segment else None):
            # Nothing is copied yet: the payload of one frame may be 64 MiB.
            payload = memoryview(frame.whole)[FRAME_HEADER_SIZE:]
            group.append((frame, parse_blob_header(payload) if frame.kind == _BLOB else None))
            size += len(payload)
            if frame.commits:
                found.append(group)
                group = []
                if len(found) == _ASKED_AT_ONCE or size > _PIECE:
                    yield found
                    found, size = [], 0
        yield found

    def _spelt(self, due: list[_Due]) -> list[bytes]:
        staying = [(frame, payload) for frame, payload in due if payload is not False]
        last = len(staying) - 1
        spelt = []
        for at, (frame, found) in enumerate(staying):
            self.moves.add(frame.position, self._position)
            content = frame.whole
            anew = _reencoded_payload(found, content)
            if anew is not None:
                self.moves.mark_reencoded(self._position)
            if anew is not None or bool(frame.begins) is not (at == 0) or bool(frame.commits) is not (at == last):
                payload = content[FRAME_HEADER_SIZE:] if anew is None else anew
                key = self._store.log.key
                content = encode_frame(key, FrameKind(frame.kind), payload, begins=at == 0, commits=at == last)
            self._position += len(content)
            spelt.append(content)
        return spelt

    def _payload(self, frame: RawFrame, header: BlobHeader | None, places: "dict[BlobId, Place]") -> _Payload:
        """Return what is to stand in the frame of a blob with that header (None: the frame holds a record)."""
        if header is None:
            return True
        found = places.get(header.id)
        if found is None:
            raise IndexDamaged(f"blob {header.id.hex()} is in the log and not in it")
        if found != (self._segment, self._base + frame.position):
            require_readable_frame(self._store, header.id, found)
            return False
        self._count.add()
        payload = frame.whole[FRAME_HEADER_SIZE:]
        if header.encoding is Encoding.CHUNKED:
            parse_chunks(header, payload)
            return True
        spelt = self._reencoder.spell(header, payload)
        return True if spelt is payload else spelt


def _reencoded_payload(found: "bytes | Future[bytes] | bool", whole: bytes) -> bytes | None:
    """Return the payload that takes the place of the one in a whole frame (None: that stays)."""
    if isinstance(found, bool):
        return None
    payload = found if isinstance(found, bytes) else found.result()
    is_same = len(payload) + FRAME_HEADER_SIZE == len(whole) and whole.endswith(payload)
    return None if is_same else payload


class _Repacking:
    """One repack in progress."""

    def __init__(self, journal: Journal, reencoder: BlobReencoder, count: _Count) -> None:
        self._journal: Final = journal
        self._reencoder: Final = reencoder
        self._count: Final = count

    def rewrite(self, segment: int) -> bool | None:
        """Write a segment anew; return whether that was worth it (None: what others did meanwhile forbids it)."""
        with require_compaction_space(self._journal, segment):
            done = self._attempt(segment, careful=False)
            return self._attempt(segment, careful=True) if done is None else done

    def _attempt(self, segment: int, *, careful: bool) -> bool | None:
        prepared = superseded = None
        try:
            with self._journal.beside() as store:
                since = log_position_of(store)
                if segment >= since.end.segment:
                    return None  # a backup was put back, in which this is the last one, or to come
                fixed = store.index.blobs.bases_used_elsewhere(segment)
                if careful:
                    fixed |= {tip.state.blob for tip in store.index.documents.tips() if tip.state is not None}
                self._reencoder.begin(store, segment, fixed)
                respelt = _ReencodedSegment(store, segment, self._reencoder, self._count)
                prepared = store.log.prepare(segment, respelt.pieces())
                is_worthwhile = respelt.is_worthwhile
                if is_worthwhile:
                    store.log.write_frame_moves(segment, respelt.moves)
            if is_worthwhile:
                superseded = self._adopted(prepared, segment, since)
        finally:
            if prepared is not None and superseded is None:
                discard(self._journal, prepared, segment)
        if superseded is None:
            return None if is_worthwhile else False
        self._journal.remove_superseded(superseded)
        self._journal.finish_moves()
        return True

    def _adopted(self, prepared: str, segment: int, since: LogPosition) -> str | None:
        """Return the path of what is superseded (None: what others did since a log was this forbids it)."""
        # Most of what was written meanwhile is looked through before anybody has to wait.
        with self._journal.reading() as store:
            if not log_still_holds(store, since):
                return None
            used, since = _bases_since(store, since.end), log_position_of(store)
        with self._journal.writing(may_use_reserve=True):
            store = self._journal.store
            if not log_still_holds(store, since):
                return None
            used |= _bases_since(store, since.end)
            return adopt(self._journal, prepared, segment) if used.isdisjoint(self._reencoder.raised) else None


def _bases_since(store: "Store", place: Place) -> "set[BlobId]":
    """Return the bases of what was written behind a place."""
    frames = (frame for group in store.log.groups(place) for frame in group.frames)
    bases = {parse_blob_header(frame.payload).base for frame in frames if frame.kind is FrameKind.BLOB}
    return {base for base in bases if base is not None}
