"""Rewrite the log's segments with blobs encoded in fewer bytes, verifying every blob by its hash.

Segments are rewritten from the first to the last, because a base comes before its deltas in the log. A new generation
is written next to the old file while readers and writers go on, and takes its place in one moment, as in compaction.
A blob's depth may grow only if no delta outside its segment has
it as its base, because such a delta states its own depth. If another process meanwhile writes a delta against a blob
whose depth grew, the attempt ends; the next one leaves the depth of all blobs that files have now.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.storage.index.moved_frames import MovedFrames
from objstore.storage.log.blob_codec import BlobHeader, Encoding, parse_blob_header, parse_chunks
from objstore.storage.log.frames import FRAME_HEADER_SIZE, SEGMENT_HEADER_SIZE, FrameKind, RawFrame, encode_frame
from objstore.storage.log.segment_files import GENERATION, Place
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.space_reserve import finish_compaction
from objstore.upkeep.packing.repack_plan import BlobReencoder
from objstore.upkeep.retention.compaction import adopt, discard, require_compaction_space
from objstore.upkeep.retention.log_position import LogPosition, log_position_of, log_still_holds
from objstore.upkeep.retention.segment_rewrite import require_readable_frame
from objstore.values.errors import IndexDamaged
from objstore.values.fastclass import value

if TYPE_CHECKING:
    from concurrent.futures import Future

    from objstore.model.ids import BlobId
    from objstore.storage.store.object_store import Store

__all__ = ["RepackPlan", "Repacked", "plan_repack", "repack"]

WORTHWHILE: Final = 0.01
"""Share of a segment's bytes that must be saved for the new generation to be used."""

_GROUPS: Final = 128
_WAITING: Final = 4 << 20
"""The number of groups, and their bytes, that wait for their blobs: a long one should not hold up those after it."""

_PIECE: Final = 1 << 18
"""Bytes per write."""

_ASKED_AT_ONCE: Final = 64
"""Groups whose blobs are looked up in one query."""

_BLOB: Final = int(FrameKind.BLOB)

Progress = Callable[[str, int, int], None]
"""Called with what is counted, how many are done, and how many there are."""

_Named: TypeAlias = "tuple[RawFrame, BlobHeader | None]"
"""A frame, and the header of its blob (None: it holds a record)."""

_Payload: TypeAlias = "bytes | Future[bytes] | bool"
"""The new payload of a frame (True: the old one; False: the frame is dropped, since another one of the blob counts)."""

_Due: TypeAlias = "tuple[RawFrame, _Payload]"


@value
class RepackPlan:
    """The sizes that a repack would achieve."""

    blobs: int  # that were encoded to measure them
    bytes_before: int  # of all segments
    bytes_after: int


@value
class Repacked:
    """The result of a repack."""

    segments: int  # rewritten
    blobs: int  # that were encoded
    bytes_before: int  # of all segments
    bytes_after: int
    is_done: bool  # False: a segment was skipped because of what other processes wrote meanwhile


def plan_repack(journal: Journal, progress: Progress | None = None) -> RepackPlan:
    """Return what `repack` would achieve now if no one else wrote. It takes as long as a repack, and changes nothing.

    Raises BlobDamaged, BlobMissing, StoreDamaged, IndexDamaged.
    """
    with journal.reading() as store, BlobReencoder() as reencoder:
        count = _Count(store, progress)
        before = after = store.log.files.total_bytes()
        for segment in store.log.files.numbers():
            reencoder.begin(store, segment, store.index.blobs.bases_used_elsewhere(segment))
            reencoded = _ReencodedSegment(store, segment, reencoder, count)
            for _ in reencoded.pieces():
                pass
            after -= reencoded.saved if reencoded.is_worthwhile else 0
        return RepackPlan(blobs=count.blobs, bytes_before=before, bytes_after=after)


def repack(journal: Journal, progress: Progress | None = None) -> Repacked:
    """Rewrite every segment that becomes smaller.

    Raises StoreLocked at once if a compaction or another repack is running, and CompactionSpaceNeeded, DiskFull,
    DiskFailed, BlobDamaged, BlobMissing, StoreDamaged, IndexDamaged; the segments that were not yet rewritten are then
    unchanged.
    """
    with journal.compacting():
        finish_compaction(journal)
        with journal.writing(may_use_reserve=True):
            if journal.store.end.position > SEGMENT_HEADER_SIZE:
                journal.seal()
        with journal.reading() as store:
            before, segments = store.log.files.total_bytes(), store.log.files.numbers()[:-1]
            count = _Count(store, progress)
        with BlobReencoder() as reencoder:
            repacking = _Repacking(journal, reencoder, count)
            written = [repacking.rewrite(segment) for segment in segments]
        with journal.reading() as store:
            return Repacked(
                segments=written.count(True),
                blobs=count.blobs,
                bytes_before=before,
                bytes_after=store.log.files.total_bytes(),
                is_done=None not in written,
            )


class _Count:
    """Progress, counted in blobs."""

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
    """One segment's next generation, with its blobs encoded again."""

    def __init__(self, store: "Store", segment: int, reencoder: BlobReencoder, count: _Count) -> None:
        self._store: Final = store
        self._segment: Final = segment
        self._reencoder: Final = reencoder
        self._count: Final = count
        generation = store.log.files.generation(segment)
        self._base: Final = generation * GENERATION
        self._position = SEGMENT_HEADER_SIZE
        self.moved: Final = MovedFrames(segment, generation)

    @property
    def saved(self) -> int:
        """Return by how many bytes the new file is smaller, after all pieces were yielded."""
        return self._store.log.files.size(self._segment) - self._position

    @property
    def is_worthwhile(self) -> bool:
        """Return whether enough is saved for the new file to be used."""
        return self.saved > WORTHWHILE * self._store.log.files.size(self._segment)

    def pieces(self) -> Iterator[bytes]:
        """Yield the frames, many at a time, after verifying every blob.

        Raises BlobDamaged, BlobMissing, StoreDamaged, and IndexDamaged where the index would drop a blob's only frame.
        """
        waiting: deque[tuple[int, list[_Due]]] = deque()
        piece: list[bytes] = []
        begun = self._position
        size = 0
        for groups in self._groups():
            places = self._store.index.blobs.places([header.id for group in groups for _, header in group if header])
            for group in groups:
                own = sum(len(frame.whole) for frame, _ in group)
                waiting.append((own, [(frame, self._payload(frame, header, places)) for frame, header in group]))
                size += own
                while len(waiting) > _GROUPS or size > _WAITING:
                    own, due = waiting.popleft()
                    size -= own
                    piece += self._encoded(due)
            if self._position - begun >= _PIECE:
                yield b"".join(piece)
                piece, begun = [], self._position
        for _, due in waiting:
            piece += self._encoded(due)
        yield b"".join(piece)

    def _groups(self) -> Iterator[list[list[_Named]]]:
        """Yield the segment's groups, some at a time, as frames with their blobs' headers."""
        log, end = self._store.log, self._store.end
        start = Place(self._segment, self._base)
        found: list[list[_Named]] = []
        group: list[_Named] = []
        size = 0
        # Other processes may append after the end.
        for frame in log.raw_frames(start, end.position if end.segment == self._segment else None):
            # Not copied: the payload of one frame may have 64 MiB.
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

    def _encoded(self, due: list[_Due]) -> list[bytes]:
        staying = [(frame, payload) for frame, payload in due if payload is not False]
        last = len(staying) - 1
        encoded = []
        for at, (frame, found) in enumerate(staying):
            content = frame.whole
            changed = _reencoded_payload(found, content)
            self.moved.keep(frame, self._position, changed)
            if changed is not None or bool(frame.begins) is not (at == 0) or bool(frame.commits) is not (at == last):
                payload = content[FRAME_HEADER_SIZE:] if changed is None else changed
                key = self._store.log.key
                content = encode_frame(key, FrameKind(frame.kind), payload, begins=at == 0, commits=at == last)
            self._position += len(content)
            encoded.append(content)
        return encoded

    def _payload(self, frame: RawFrame, header: BlobHeader | None, places: "dict[BlobId, Place]") -> _Payload:
        """Return the new payload of the frame of a blob with this header (None: the frame holds a record)."""
        if header is None:
            return True
        found = places.get(header.id)
        if found is None:
            raise IndexDamaged(f"blob {header.id.hex()} is in the log but not in the index")
        if found != (self._segment, self._base + frame.position):
            require_readable_frame(self._store, header.id, found)
            return False
        self._count.add()
        payload = frame.whole[FRAME_HEADER_SIZE:]
        if header.encoding is Encoding.CHUNKED:
            parse_chunks(header, payload)
            return True
        reencoded = self._reencoder.encode(header, payload)
        return True if reencoded is payload else reencoded


def _reencoded_payload(found: "bytes | Future[bytes] | bool", whole: bytes) -> bytes | None:
    """Return the payload that replaces the one in a whole frame (None: it is unchanged)."""
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
        """Rewrite a segment; return whether that saved enough (None: other writers prevented it)."""
        with require_compaction_space(self._journal, segment):
            done = self._attempt(segment, careful=False)
            return self._attempt(segment, careful=True) if done is None else done

    def _attempt(self, segment: int, *, careful: bool) -> bool | None:
        prepared = superseded = None
        try:
            with self._journal.second_store() as store:
                since = log_position_of(store)
                if segment >= since.end.segment:
                    return None  # a backup was put back, in which this segment is the last one or does not exist yet
                fixed = store.index.blobs.bases_used_elsewhere(segment)
                if careful:
                    fixed |= {tip.state.blob for tip in store.index.documents.tips() if tip.state is not None}
                self._reencoder.begin(store, segment, fixed)
                reencoded = _ReencodedSegment(store, segment, self._reencoder, self._count)
                prepared = store.log.files.prepare(segment, reencoded.pieces())
                is_worthwhile = reencoded.is_worthwhile
            if is_worthwhile:
                superseded = self._adopted(prepared, segment, reencoded.moved, since)
        finally:
            if prepared is not None and superseded is None:
                discard(self._journal, prepared)
        if superseded is None:
            return None if is_worthwhile else False
        self._journal.remove_superseded(superseded)
        return True

    def _adopted(self, prepared: str, segment: int, moved: MovedFrames, since: LogPosition) -> str | None:
        """Return the path of the superseded file (None: what other writers did since `since` prevents the change)."""
        # Most of what was written meanwhile is read before writers have to wait.
        with self._journal.reading() as store:
            if not log_still_holds(store, since):
                return None
            used, since = _bases_since(store, since.end), log_position_of(store)
        with self._journal.writing(may_use_reserve=True):
            store = self._journal.store
            if not log_still_holds(store, since):
                return None
            used |= _bases_since(store, since.end)
            return adopt(self._journal, prepared, segment, moved) if used.isdisjoint(self._reencoder.raised) else None


def _bases_since(store: "Store", place: Place) -> "set[BlobId]":
    """Return the bases of the deltas that were written after a place."""
    frames = (frame for group in store.log.groups(place) for frame in group.frames)
    bases = {parse_blob_header(frame.payload).base for frame in frames if frame.kind is FrameKind.BLOB}
    return {base for base in bases if base is not None}
