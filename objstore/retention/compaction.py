"""Sweep: segments written anew without the blobs that nothing holds. Plan first, then act.

A segment's next generation is written beside it while readers and writers go on, and so is a list of where each frame
goes. Then, in one short moment under the writer lock, the file takes its name and the index is told, or neither; the
rows of the index follow a few at a time. From the last segment to the first: a delta's base lies before it, so a delta
is spelt anew before its base goes. A blob that came to be held meanwhile ends the sweep, and the next one sees it. If
the process dies between the name and the index, the index finds that the log has other generations than it knows, and
is made anew; if it dies after that, the next one has the rows follow.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Final

from objstore.errors import UNREADABLE, BlobDamaged, CompactionSpaceNeeded, DiskFull, IndexDamaged
from objstore.fastclass import value
from objstore.index.refcounts import held_blobs
from objstore.log.blob_codec import Encoding, parse_blob_header, parse_chunks
from objstore.log.frames import SEGMENT_HEADER_SIZE, FrameKind
from objstore.model.ids import BlobId
from objstore.model.large_file_placeholder import MAX_BLOB
from objstore.model.record_codec import decode_record
from objstore.model.records import Snapshot
from objstore.retention.log_position import LogPosition, log_position_of, log_still_holds
from objstore.retention.references import blobs_referenced_outside_edits
from objstore.retention.segment_rewrite import SegmentRewrite
from objstore.transaction.journal import Journal
from objstore.transaction.space_reserve import finish_compaction

if TYPE_CHECKING:
    from array import array

    from objstore.index.log_index import Index
    from objstore.store.object_store import Store

__all__ = [
    "CompactionPlan",
    "CompactionResult",
    "adopt",
    "discard",
    "plan_compaction",
    "require_compaction_space",
    "sweep",
]

WORTHWHILE: Final = 0.2
"""Share of a segment's bytes that must go for it to be written anew."""

_SHORT: Final = 1 / 16
"""Share of the log's bytes below which a last segment counts as short."""

_TRIES: Final = 10
"""Times that what others have written meanwhile is looked through, because there is more or a snapshot among it."""

_FEW_BYTES: Final = 1 << 15
"""Bytes of the log that may be looked through under the writer lock: a few milliseconds."""

Progress = Callable[[str, int, int], None]
"""Is told what is done, how many of it are, and how many there are."""


@value
class CompactionPlan:
    """What a sweep would do."""

    segments: tuple[int, ...]  # to be written anew, in that order
    dropped: frozenset[BlobId]  # that go
    freed: int  # bytes of their frames; a delta that loses its base takes some of them again
    log_position: LogPosition  # the log that this was planned for
    generations: dict[int, int]  # and its segments' that had been written anew


@value
class CompactionResult:
    """What a sweep did."""

    segments: int  # written anew
    freed: int  # bytes by which the log became smaller
    is_done: bool  # whether all of the plan was done: it was still the log's, and nothing that it drops is needed


def plan_compaction(
    journal: Journal, *, all_segments: bool = False, skips_unprofitable: bool = False
) -> CompactionPlan:
    """Return what `sweep` would do now: write anew the segments of which enough would go.

    Nothing is changed, but that the index follows what a sweep has moved that was cut off.

    `all_segments`: whatever they hold, so that no blob is left that nothing holds. `is_sparing`: but for those that
    would not become smaller, and for a short last one. That would have to be ended; each segment is a file that every
    process holds open, and where all that is decided goes at once, every sweep would end one.
    Raises BlobDamaged where a tree or a list of chunks can't be read, because then nobody knows what is held, and
    IndexDamaged where what is in use does not count as held; StoreLocked at once while another sweep is going on.
    """
    with _all_followed(journal), journal.reading() as store, store.index.still():
        uncounted = store.index.blobs.uncounted()
        if uncounted is not None:
            raise BlobDamaged(uncounted, "what it names is not known, so nothing can be swept out; see `cas fsck`")
        sizes = {segment: store.log.size(segment) for segment in store.log.numbers()}
        if store.end.position == SEGMENT_HEADER_SIZE:
            del sizes[store.end.segment]  # begun and empty: nothing in it could go, and another one would be begun
        dead = store.index.blobs.dead_bytes()
        bases, doubles = store.index.blobs.dead_bases(), store.index.blobs.dead_duplicates()
        chosen = set(sizes)
        if skips_unprofitable:
            chosen &= set(dead) | {other for *_, other in bases}
            if sizes.get(store.end.segment, 0) < _SHORT * sum(sizes.values()):
                chosen.discard(store.end.segment)

        def kept() -> dict[BlobId, tuple[int, int]]:
            # Where a blob's second frame lies, nobody knows: left behind, it would be the one that counts from then on.
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
            # What is not written anew may need what would have gone: look again.
            chosen = worthwhile
            needed = kept()
        dropped = _dropped(store, chosen, needed)
        while bereft := _bereft(store, dropped) - chosen:
            chosen |= bereft
            needed = kept()
            dropped = _dropped(store, chosen, needed)
        # What goes is gone: so the counts are held against what they count, as other parts of the database say it, and
        # the log.
        unheld = (
            store.index.blobs.uncounted_mention() or _first(dropped, blobs_referenced_outside_edits(store))
            if dropped
            else None
        )
        if unheld is not None:
            raise IndexDamaged(f"blob {unheld.hex()} is in use and does not count as held")
        return CompactionPlan(
            segments=tuple(sorted(chosen, reverse=True)) if dropped else (),
            dropped=dropped,
            freed=sum(dead.get(segment, 0) for segment in chosen) - sum(length for _, length in needed.values()),
            log_position=log_position_of(store),
            generations=dict(store.log.generations()),
        )


def sweep(journal: Journal, plan: CompactionPlan, progress: Progress | None = None) -> CompactionResult:
    """Carry out a plan, and remove what a sweep left that was cut off.

    Raises StoreLocked at once if another sweep is going on, and RoomNeeded, DiskFull, DiskFailed, BlobDamaged,
    StoreDamaged: the segments that were not yet done are then as they were.
    """
    with journal.compacting():
        compacting = _Compaction(journal, plan)
        if not compacting.begin():
            return CompactionResult(segments=0, freed=0, is_done=False)
        done = 0
        with journal.reading() as store:
            before = store.log.total_bytes()
        for segment in plan.segments:
            if progress is not None:
                progress("segments", done, len(plan.segments))
            with require_compaction_space(journal, segment, is_swept=True):
                is_rewritten = compacting.rewrite(segment)
            if not is_rewritten:
                break
            done += 1
        compacting.end()
        with journal.reading() as store:
            return CompactionResult(
                segments=done,
                freed=max(0, before - store.log.total_bytes()),
                is_done=done == len(plan.segments),
            )


def adopt(journal: Journal, prepared: str, segment: int) -> str | None:
    """Let a prepared file be the segment's next generation. Call it while `writing`.

    Return the path of the generation before, which is to be removed when nobody waits for that: the file may be big.
    None: the prepared file is not the next generation, because somebody is making the index anew at this moment.
    """
    store = journal.store
    index, end = store.index, store.end
    with index.changing() as db:
        known = db.execute("SELECT segment, offset FROM position").fetchone()
        if tuple(known) != tuple(end):
            return None
        row = (segment, store.log.generations().get(segment, 0) + 1)
        db.execute("INSERT OR REPLACE INTO generations VALUES (?, ?)", row)
        db.execute("INSERT OR REPLACE INTO moving VALUES (?, ?)", row)
        old = store.log.adopt(prepared, segment)
    store.catch_up()
    journal.relocate_applied_marker(segment)
    return old


def discard(journal: Journal, prepared: str, segment: int) -> None:
    """Remove a prepared file that is not to be the segment's next generation."""
    try:
        journal.disk.remove_store_file(prepared)
    except FileNotFoundError:
        return  # it has its name already: who was told so needs the moves, and where nobody was the index is made anew
    journal.store.log.delete_frame_moves(segment)


@contextmanager
def require_compaction_space(journal: Journal, segment: int, *, is_swept: bool = False) -> Iterator[None]:
    """Say how much room it takes to write a segment anew, where there is not enough.

    `is_swept`: what nothing holds of it goes, and takes none.
    """
    try:
        yield
    except DiskFull as error:
        with journal.reading() as store:
            going = store.index.blobs.dead_bytes().get(segment, 0) if is_swept else 0
            needed = store.log.size(segment) - going + store.index.file_bytes()
        raise CompactionSpaceNeeded(error.path, needed) from error


@contextmanager
def _all_followed(journal: Journal) -> Iterator[None]:
    """Keep other sweeps out, with an index that has followed all of them.

    The rows of a delta that was spelt anew name its old base until then: what it needs now would be planned to go.
    """
    with journal.compacting():
        journal.finish_moves()
        yield


def _first(blobs: frozenset[BlobId], named: Iterable[BlobId]) -> BlobId | None:
    return next(filter(blobs.__contains__, named), None)


def _needed(bases: Iterable[tuple[BlobId, int, int, int]], chosen: set[int]) -> dict[BlobId, tuple[int, int]]:
    """Return the dead blobs of chosen segments that deltas need which stay as they are, each with segment and bytes.

    Those lie in segments that are not chosen, or in one that is written anew only after the base's own.
    """
    return {
        name: (own, length)
        for name, own, length, other in bases
        if own in chosen and (other not in chosen or other < own)
    }


def _dropped(store: "Store", chosen: set[int], needed: Iterable[BlobId]) -> frozenset[BlobId]:
    return frozenset(chain.from_iterable(map(store.index.blobs.dead_blobs, chosen))).difference(needed)


def _bereft(store: "Store", dropped: frozenset[BlobId]) -> set[int]:
    """Return where lists of chunks lie that nothing holds and of which a chunk goes, or has gone.

    A list that stayed behind would look like damage.
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
    """One sweep in progress."""

    def __init__(self, journal: Journal, plan: CompactionPlan) -> None:
        self._journal: Final = journal
        self._plan: Final = plan
        self._since = plan.log_position
        self._needed: set[BlobId] = set()  # of what goes: held, a base or a chunk since the plan
        self._staying: dict[int, array[int]] = {}  # where the blobs lie that stay, by segment
        self._going: dict[int, int] = {}  # how many go, by segment
        self._unsure = 0  # times since the plan that more may have come to be held than the records say by themselves

    def begin(self) -> bool:
        """Clear away what others left, and end the last segment if it is to be written anew.

        Return whether the plan is of the log that there is.
        """
        finish_compaction(self._journal)
        with self._journal.reading() as store:
            # Where another sweep was at it since, deltas may be told against other bases.
            if store.log.generations() != self._plan.generations or not self._follow():
                return False
        with self._journal.writing(may_use_reserve=True):
            if not self._follow():
                return False
            if self._journal.store.end.segment in self._plan.segments:
                self._journal.seal()
                self._since = log_position_of(self._journal.store)
        with self._journal.reading() as store, store.index.still():
            # At one moment: what then were neither among what stays nor among what goes would be lost.
            self._look(store.index)
        return sum(self._going.values()) == len(self._plan.dropped)

    def _look(self, index: "Index") -> None:
        """Look up where what stays lies, and how much of what is to go is still held by nothing."""
        self._staying = index.blobs.held_offsets(self._plan.segments)
        for segment, staying in self._staying.items():
            unheld = list(index.blobs.dead_blobs(segment))
            others = [name for name in unheld if name not in self._plan.dropped]
            staying.extend(place.offset for place in index.blobs.places(others).values())
            self._going[segment] = len(unheld) - len(others)

    def end(self) -> None:
        """Have the index follow what was moved."""
        self._journal.finish_moves()

    def rewrite(self, segment: int) -> bool:
        """Write a segment anew; return whether that was done, as in SweepOutcome."""
        prepared = superseded = None
        try:
            with self._journal.beside() as store:
                if not log_still_holds(store, self._since):
                    return False
                rewriting = SegmentRewrite(store, segment, frozenset(self._staying.pop(segment)), self._plan.dropped)
                prepared = store.log.prepare(segment, rewriting.pieces())
                store.log.write_frame_moves(segment, rewriting.moves)
            asked = -1
            for tried in range(_TRIES):
                # What was written meanwhile is looked through before anybody has to wait.
                with self._journal.reading():
                    if not self._follow() or (asked != self._unsure and self._is_held(segment)):
                        break
                    asked = self._unsure
                with self._journal.writing(may_use_reserve=True):
                    if self._is_far_behind and tried < _TRIES - 1:
                        continue
                    if not self._follow():
                        break
                    if asked == self._unsure:
                        superseded = None if self._is_needed(segment) else adopt(self._journal, prepared, segment)
                        break
        finally:
            if prepared is not None and superseded is None:
                discard(self._journal, prepared, segment)
        if superseded is not None:
            self._journal.remove_superseded(superseded)
        return superseded is not None

    def _is_held(self, segment: int) -> bool:
        """Return whether something of the segment that goes has come to be held, or may have."""
        index = self._journal.store.index
        going = sum(map(self._plan.dropped.__contains__, index.blobs.dead_blobs(segment)))
        return going != self._going[segment] or index.blobs.uncounted() is not None

    def _is_needed(self, segment: int) -> bool:
        """Return whether what others have written needs something of the segment that goes."""
        # Mostly there is nothing to ask.
        places = self._journal.store.index.blobs.places(list(self._needed))
        return any(place.segment == segment for place in places.values())

    @property
    def _is_far_behind(self) -> bool:
        end, since = self._journal.store.end, self._since.end
        return end.segment != since.segment or end.offset - since.offset > _FEW_BYTES

    def _follow(self) -> bool:
        """Note which of the blobs that go are needed by what others have written meanwhile.

        Return whether the log has all that the plan is of and that was seen since.
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
                else:
                    record, _ = decode_record(bytes(frame.payload))
                    # A snapshot holds what its trees name, and a large blob its chunks.
                    self._unsure += isinstance(record, Snapshot)
                    for blob in held_blobs(record):
                        self._need(blob)
                        self._unsure += store.has(blob) and store.size(blob) > MAX_BLOB
        self._since = log_position_of(store)
        return True

    def _need(self, blob: BlobId | None) -> None:
        if blob in self._plan.dropped:
            self._needed.add(blob)
