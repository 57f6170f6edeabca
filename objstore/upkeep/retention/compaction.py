"""Rewrite segments without the blobs that nothing holds: plan first, then act.

One segment at a time: its next generation is written next to the old file while readers and writers go on. Then, under
the writer lock and in one transaction of the index, the rows of its frames are updated and the file gets its name, or
neither. Segments are rewritten from the last to the first: a delta's base is earlier in the log, so the delta is
encoded again before its base is removed. If another process starts to hold a blob that should go, the compaction ends,
and the next plan accounts for it. If the process dies between the rename and the end of the transaction, the index
finds a generation in the log that it doesn't know, and is rebuilt.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Final

from objstore.model.ids import BlobId
from objstore.storage.index.moved_frames import MovedFrames
from objstore.storage.log.blob_codec import Encoding, parse_blob_header, parse_chunks
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE, FrameKind
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.space_reserve import finish_compaction
from objstore.upkeep.retention.log_position import LogPosition, log_position_of, log_still_holds
from objstore.upkeep.retention.references import blobs_referenced_outside_edits
from objstore.upkeep.retention.segment_rewrite import SegmentRewrite
from objstore.values.errors import UNREADABLE, BlobDamaged, CompactionSpaceNeeded, DiskFull, IndexDamaged
from objstore.values.fastclass import value

if TYPE_CHECKING:
    from array import array

    from objstore.storage.index.log_index import Index
    from objstore.storage.store.object_store import Store

__all__ = [
    "CompactionPlan",
    "CompactionResult",
    "adopt",
    "compact",
    "discard",
    "plan_compaction",
    "require_compaction_space",
]

WORTHWHILE: Final = 0.2
"""Share of a segment's bytes that must be unused for it to be rewritten."""

_SHORT: Final = 1 / 16
"""Share of the log's bytes below which a last segment counts as short."""

_TRIES: Final = 10
"""How often what other writers wrote is read without the lock before it is read under it."""

_FEW_BYTES: Final = 1 << 15
"""Bytes of the log that may be read under the writer lock: a few milliseconds."""

Progress = Callable[[str, int, int], None]
"""Called with what is counted, how many are done, and how many there are."""


@value
class CompactionPlan:
    """The plan of a compaction."""

    segments: tuple[int, ...]  # to be rewritten, in this order
    dropped: frozenset[BlobId]  # the blobs to be removed
    freed: int  # bytes of their frames; a delta that loses its base needs some of them again
    log_position: LogPosition  # of the log for which this was planned
    generations: dict[int, int]  # of its segments that had been rewritten before


@value
class CompactionResult:
    """The result of a compaction."""

    segments: int  # rewritten
    freed: int  # bytes by which the log became smaller
    is_done: bool  # whether the whole plan was carried out: it still fitted the log, and no one needed what it drops


def plan_compaction(
    journal: Journal, *, all_segments: bool = False, skips_unprofitable: bool = False
) -> CompactionPlan:
    """Return what `compact` would do now: rewrite the segments of which enough is unused.

    `all_segments`: rewrite segments whatever they hold, so that no unused blob is left. `skips_unprofitable`: except
    those that would not become smaller, and a short last one. To rewrite that, a new segment would have to be begun;
    every process holds each segment's file open, and with limits that expire everything at once, each compaction would
    begin one.
    Raises BlobDamaged where a tree or chunk list can't be read, because then the held blobs are not known; IndexDamaged
    where a blob in use is not counted as held; StoreLocked at once while another compaction is running.
    """
    with journal.compacting(), journal.reading() as store, store.index.still():
        uncounted = store.index.blobs.uncounted()
        if uncounted is not None:
            raise BlobDamaged(uncounted, "what it refers to is not known, so nothing can be compacted")
        sizes = {segment: store.log.files.size(segment) for segment in store.log.files.numbers()}
        if store.end.position == SEGMENT_HEADER_SIZE:
            del sizes[store.end.segment]  # begun and empty: rewriting it would free nothing and begin another one
        dead = store.index.blobs.dead_bytes()
        bases, doubles = store.index.blobs.dead_bases(), store.index.blobs.dead_duplicates()
        chosen = set(sizes)
        if skips_unprofitable:
            chosen &= set(dead) | {other for *_, other in bases}
            if sizes.get(store.end.segment, 0) < _SHORT * sum(sizes.values()):
                chosen.discard(store.end.segment)

        def kept() -> dict[BlobId, tuple[int, int]]:
            # Where the second frame of a blob is, the index doesn't know; if it were left, it would count from then on.
            staying = {} if chosen >= sizes.keys() else doubles
            return _needed(bases, chosen) | {name: at for name, at in staying.items() if at[0] in chosen}

        needed = kept()
        while not all_segments:
            waste = Counter(dead)
            for segment, length in needed.values():
                waste[segment] -= length
            worthwhile = {segment for segment in chosen if waste[segment] > WORTHWHILE * sizes[segment]}
            if worthwhile == chosen:
                break
            # A segment that is not rewritten may need blobs that would have gone: compute again.
            chosen = worthwhile
            needed = kept()
        dropped = _dropped(store, chosen, needed)
        while incomplete := _segments_with_incomplete_lists(store, dropped) - chosen:
            chosen |= incomplete
            needed = kept()
            dropped = _dropped(store, chosen, needed)
        # Removal is final, so the reference counts are checked against the other tables of the index and against the
        # log.
        unheld = (
            store.index.blobs.uncounted_mention() or _first(dropped, blobs_referenced_outside_edits(store))
            if dropped
            else None
        )
        if unheld is not None:
            raise IndexDamaged(f"blob {unheld.hex()} is in use but not counted as held")
        return CompactionPlan(
            segments=tuple(sorted(chosen, reverse=True)) if dropped else (),
            dropped=dropped,
            freed=sum(dead.get(segment, 0) for segment in chosen) - sum(length for _, length in needed.values()),
            log_position=log_position_of(store),
            generations=dict(store.log.files.generations()),
        )


def compact(journal: Journal, plan: CompactionPlan, progress: Progress | None = None) -> CompactionResult:
    """Carry out a plan, and remove what an interrupted compaction left.

    Raises StoreLocked at once if another compaction is running, and CompactionSpaceNeeded, DiskFull, DiskFailed,
    BlobDamaged, StoreDamaged; the segments that were not yet rewritten are then unchanged.
    """
    with journal.compacting():
        compacting = _Compaction(journal, plan)
        if not compacting.begin():
            return CompactionResult(segments=0, freed=0, is_done=False)
        done = 0
        with journal.reading() as store:
            before = store.log.files.total_bytes()
        for segment in plan.segments:
            if progress is not None:
                progress("segments", done, len(plan.segments))
            with require_compaction_space(journal, segment, drops_unused=True):
                is_rewritten = compacting.rewrite(segment)
            if not is_rewritten:
                break
            done += 1
        with journal.reading() as store:
            return CompactionResult(
                segments=done,
                freed=max(0, before - store.log.files.total_bytes()),
                is_done=done == len(plan.segments),
            )


def adopt(journal: Journal, prepared: str, segment: int, moved: MovedFrames) -> str | None:
    """Make a prepared file the segment's next generation. Call it inside `journal.writing`.

    Return the path of the previous generation, to be removed when no one waits for that: the file may be large.
    None: the prepared file did not become the next generation, because another process is rebuilding the index.
    Raises IndexDamaged if the index has frames at other places than the log; then nothing is changed.
    """
    store = journal.store
    index, end = store.index, store.end
    with index.changing_much() as db:
        known = db.execute("SELECT segment, offset FROM position").fetchone()
        if tuple(known) != tuple(end):
            return None
        moved.apply(db)
        old = store.log.files.adopt(prepared, segment)
    store.catch_up()
    return old


def discard(journal: Journal, prepared: str) -> None:
    """Remove a prepared file that did not become the segment's next generation."""
    with suppress(FileNotFoundError):  # it was renamed, and the index is rebuilt if it doesn't know
        journal.disk.remove_store_file(prepared)


@contextmanager
def require_compaction_space(journal: Journal, segment: int, *, drops_unused: bool = False) -> Iterator[None]:
    """Turn DiskFull into CompactionSpaceNeeded, which says how much space rewriting the segment takes.

    `drops_unused`: the blobs that nothing holds are left out, and need no space.
    """
    try:
        yield
    except DiskFull as error:
        with journal.reading() as store:
            going = store.index.blobs.dead_bytes().get(segment, 0) if drops_unused else 0
            needed = store.log.files.size(segment) - going + store.index.file_bytes()
        raise CompactionSpaceNeeded(error.path, needed) from error


def _first(blobs: frozenset[BlobId], named: Iterable[BlobId]) -> BlobId | None:
    return next(filter(blobs.__contains__, named), None)


def _needed(bases: Iterable[tuple[BlobId, int, int, int]], chosen: set[int]) -> dict[BlobId, tuple[int, int]]:
    """Return the unheld blobs of chosen segments that unchanged deltas need, each with segment and bytes.

    Such deltas are in segments that are not chosen, or in one that is rewritten only after the base's own.
    """
    return {
        name: (own, length)
        for name, own, length, other in bases
        if own in chosen and (other not in chosen or other < own)
    }


def _dropped(store: "Store", chosen: set[int], needed: Iterable[BlobId]) -> frozenset[BlobId]:
    return frozenset(chain.from_iterable(map(store.index.blobs.dead_blobs, chosen))).difference(needed)


def _segments_with_incomplete_lists(store: "Store", dropped: frozenset[BlobId]) -> set[int]:
    """Return the segments of unheld chunk lists of which a chunk is dropped, or is gone already.

    A list that was left behind would look like damage.
    """
    found = set()
    for name in store.index.blobs.dead_lists():
        with suppress(*UNREADABLE):
            chunks = {chunk.id for chunk in store.chunks(name)}
            place = store.blob_place(name)
            is_whole = len(store.index.blobs.places(list(chunks))) == len(chunks) and dropped.isdisjoint(chunks)
            if place is not None and not is_whole:
                found.add(place.place.segment)
    return found


class _Compaction:
    """One compaction in progress."""

    def __init__(self, journal: Journal, plan: CompactionPlan) -> None:
        self._journal: Final = journal
        self._plan: Final = plan
        self._since = plan.log_position
        self._needed: set[BlobId] = set()  # dropped blobs that became a base or a chunk since the plan
        self._staying: dict[int, array[int]] = {}  # the offsets of kept blobs, by segment
        self._going: dict[int, int] = {}  # the number of dropped blobs, by segment

    def begin(self) -> bool:
        """Remove what interrupted compactions left, and end the last segment if it is to be rewritten.

        Return whether the plan still fits the log.
        """
        finish_compaction(self._journal)
        with self._journal.reading() as store:
            # Another compaction since then may have encoded deltas against other bases.
            if store.log.files.generations() != self._plan.generations or not self._follow():
                return False
        with self._journal.writing(may_use_reserve=True):
            if not self._follow():
                return False
            if self._journal.store.end.segment in self._plan.segments:
                self._journal.seal()
                self._since = log_position_of(self._journal.store)
        with self._journal.reading() as store, store.index.still():
            # In one state of the index: a blob that was in neither set would be lost.
            self._find_frames(store.index)
        return sum(self._going.values()) == len(self._plan.dropped)

    def _find_frames(self, index: "Index") -> None:
        """Look up the offsets of kept blobs, and how many of the dropped ones are still held by nothing."""
        self._staying = index.blobs.held_offsets(self._plan.segments)
        for segment, staying in self._staying.items():
            unheld = list(index.blobs.dead_blobs(segment))
            others = [name for name in unheld if name not in self._plan.dropped]
            staying.extend(place.offset for place in index.blobs.places(others).values())
            self._going[segment] = len(unheld) - len(others)

    def rewrite(self, segment: int) -> bool:
        """Rewrite a segment; return whether that was done, as in CompactionResult."""
        prepared = superseded = None
        try:
            with self._journal.second_store() as store:
                if not log_still_holds(store, self._since):
                    return False
                rewriting = SegmentRewrite(store, segment, frozenset(self._staying.pop(segment)), self._plan.dropped)
                prepared = store.log.files.prepare(segment, rewriting.pieces())
            for tried in range(_TRIES):
                # Most of what was written meanwhile is read before writers have to wait.
                with self._journal.reading():
                    if not self._follow():
                        break
                with self._journal.writing(may_use_reserve=True):
                    if self._is_far_behind and tried < _TRIES - 1:
                        continue
                    if self._follow() and not self._is_needed(segment, rewriting.moved.dropped):
                        superseded = adopt(self._journal, prepared, segment, rewriting.moved)
                        self._since = log_position_of(self._journal.store)  # the last record may have moved
                    break
        finally:
            if prepared is not None and superseded is None:
                discard(self._journal, prepared)
        if superseded is not None:
            self._journal.remove_superseded(superseded)
        return superseded is not None

    def _is_needed(self, segment: int, dropped: list[BlobId]) -> bool:
        """Return whether one of the dropped blobs of the segment is needed by now, or may be.

        The caller holds the writer lock, so the index counts every record.
        """
        blobs = self._journal.store.index.blobs
        is_same = len(dropped) == self._going[segment] and self._needed.isdisjoint(dropped)
        return not is_same or not set(dropped) <= set(blobs.dead_blobs(segment)) or blobs.uncounted() is not None

    @property
    def _is_far_behind(self) -> bool:
        end, since = self._journal.store.end, self._since.end
        return end.segment != since.segment or end.offset - since.offset > _FEW_BYTES

    def _follow(self) -> bool:
        """Note which dropped blobs are bases of what other writers wrote meanwhile, or chunks in their lists.

        Return whether the log still has everything that the plan is based on and that was seen since.
        """
        store = self._journal.store
        if not log_still_holds(store, self._since):
            return False
        for group in store.log.groups(self._since.end):
            for frame in group.frames:
                if frame.kind is FrameKind.BLOB:
                    header = parse_blob_header(frame.payload)
                    self._need(header.base)
                    if header.encoding is Encoding.CHUNKED:
                        for chunk in parse_chunks(header, frame.payload):
                            self._need(chunk.id)
        self._since = log_position_of(store)
        return True

    def _need(self, blob: BlobId | None) -> None:
        if blob in self._plan.dropped:
            self._needed.add(blob)
