"""Sweep: segments written anew without the blobs that nothing holds. Plan first, then act.

A segment's next generation is written beside it while readers and writers go on; then, in one moment under the writer
lock, it takes its name and the index is told, or neither. From the last segment to the first: a delta's base lies
before it, so a delta is spelt anew before its base goes. A blob that came to be held meanwhile ends the sweep, and
the next one sees it. If the process dies between the name and the index, the index finds that the log has other
generations than it knows, and is made anew.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from objstore.codec import Base, Encoding, encode_blob, parse_blob_header, parse_chunks
from objstore.errors import BlobDamaged, BlobMissing
from objstore.frames import FRAME_HEADER_SIZE, SEGMENT_HEADER_SIZE, Frame, FrameKind
from objstore.ids import BlobId
from objstore.journal import Journal
from objstore.segments import GENERATION, Group, Log, Place

if TYPE_CHECKING:
    from objstore.store import Store

__all__ = ["SweepOutcome", "SweepPlan", "plan_sweep", "sweep"]

WORTHWHILE: Final = 0.2
"""Share of a segment's bytes that must go for it to be written anew."""

_RECORD_TABLES: Final = ("edits", "decisions", "snapshots", "pins", "expiries")

Progress = Callable[[str, int, int], None]
"""Is told what is done, how many of it are, and how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """What a sweep would do."""

    segments: tuple[int, ...]  # to be written anew, in that order
    dropped: frozenset[BlobId]  # that go
    freed: int  # bytes of their frames; a delta that loses its base takes some of them again
    end: Place  # of the log, when this was planned


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOutcome:
    """What a sweep did."""

    segments: int  # written anew
    freed: int  # bytes by which the log became smaller
    is_done: bool  # whether all of the plan was done: nothing that it drops came to be needed meanwhile


def plan_sweep(journal: Journal, *, all_segments: bool = False) -> SweepPlan:
    """Return what `sweep` would do now: write anew the segments of which enough would go.

    `all_segments`: whatever they hold, so that no blob is left that nothing holds. Nothing is changed.
    Raises BlobDamaged where a tree or a list of chunks can't be read, because then nobody knows what is held.
    """
    with journal.reading() as store:
        uncounted = store.index.uncounted()
        if uncounted is not None:
            raise BlobDamaged(uncounted, "what it names is not known, so nothing can be swept out; see `cas fsck`")
        dead = {name: (place, _length(store.log, place)) for name, place in store.index.dead_blobs()}
        sizes = {segment: store.log.size(segment) for segment in store.log.numbers()}
        chosen = set(sizes)
        dropped = _droppable(store, dead, chosen)
        while not all_segments:
            waste = dict.fromkeys(sizes, 0)
            for name in dropped:
                place, length = dead[name]
                waste[place.segment] += length
            worthwhile = {segment for segment in chosen if waste[segment] > WORTHWHILE * sizes[segment]}
            if worthwhile == chosen:
                break
            # What is not written anew may need what would have gone: look again.
            chosen = worthwhile
            dropped = _droppable(store, dead, chosen)
        return SweepPlan(
            segments=tuple(sorted(chosen, reverse=True)) if dropped else (),
            dropped=frozenset(dropped),
            freed=sum(dead[name][1] for name in dropped),
            end=store.end,
        )


def sweep(journal: Journal, plan: SweepPlan, progress: Progress | None = None) -> SweepOutcome:
    """Carry out a plan, and remove what a sweep left that was cut off.

    Raises StoreLocked at once if another sweep is going on, and DiskFull, DiskFailed, BlobDamaged, StoreDamaged: the
    segments that were not yet done are then as they were.
    """
    with journal.sweeping():
        sweeping = _Sweeping(journal, plan)
        sweeping.begin()
        done = 0
        before = journal.store.log.total_bytes()
        for segment in plan.segments:
            if progress is not None:
                progress("segments", done, len(plan.segments))
            if not sweeping.rewrite(segment):
                break
            done += 1
        return SweepOutcome(
            segments=done,
            freed=max(0, before - journal.store.log.total_bytes()),
            is_done=done == len(plan.segments),
        )


def _droppable(store: "Store", dead: dict[BlobId, tuple[Place, int]], chosen: set[int]) -> set[BlobId]:
    needed = store.index.dead_bases(chosen)
    return {name for name, (place, _) in dead.items() if place.segment in chosen and name not in needed}


def _length(log: Log, place: Place) -> int:
    return FRAME_HEADER_SIZE + len(log.read(place).payload)


class _Rewriting:
    """One segment's next generation in the making."""

    def __init__(self, store: "Store", segment: int, dropped: frozenset[BlobId]) -> None:
        self._store: Final = store
        self._segment: Final = segment
        self._dropped: Final = dropped
        self._counting: Final = store.index.blobs_in(segment)
        self.generation: Final = store.log.generations().get(segment, 0) + 1
        self.moved: list[tuple[int, int]] = []  # old and new offset of each frame that stays
        self.respelt: list[tuple[int, BlobId | None, BlobId]] = []  # depth, base, blob
        self.gone: set[BlobId] = set()

    def groups(self) -> Iterator[list[tuple[FrameKind, bytes]]]:
        """Yield what stays, group by group; every blob is verified on the way."""
        start = Place(self._segment, (self.generation - 1) * GENERATION + SEGMENT_HEADER_SIZE)
        offset = self.generation * GENERATION + SEGMENT_HEADER_SIZE
        for group in self._store.log.groups(start):
            if group.segment != self._segment:
                break
            payloads = []
            for frame in group.frames:
                payload = bytes(frame.payload) if frame.kind is FrameKind.RECORD else self._blob(frame)
                if payload is not None:
                    payloads.append((frame.kind, payload))
                    self.moved.append((frame.offset, offset))
                    offset += FRAME_HEADER_SIZE + len(payload)
            if payloads:
                yield payloads

    def _blob(self, frame: Frame) -> bytes | None:
        """Return a blob's payload as it is to stand in the new file (None: it goes)."""
        name = self._counting.get(frame.offset)
        if name is None:
            return None  # another frame of the same blob counts
        if name in self._dropped:
            self.gone.add(name)
            return None
        payload = bytes(frame.payload)
        header = parse_blob_header(payload)
        if header.encoding is Encoding.CHUNKED:
            parse_chunks(header, payload)
            return payload
        content = self._store.read_once(name)
        self._store.remember(name, content)
        if header.base not in self._dropped:
            return payload
        base = self._live_base(header.base)
        respelt, payload = encode_blob(content, base, name=name)
        self.respelt.append((respelt.depth, respelt.base, name))
        return payload

    def _live_base(self, name: BlobId | None) -> Base | None:
        """Return the nearest blob of a chain that stays (None: none does)."""
        while name is not None:
            found = self._store.blob_place(name)
            if found is None:
                raise BlobMissing(name)
            if name not in self._dropped:
                return Base(id=name, content=self._store.read_once(name), depth=found.depth)
            name = parse_blob_header(self._store.log.read(found.place).payload).base
        return None


class _Sweeping:
    """One sweep in progress."""

    def __init__(self, journal: Journal, plan: SweepPlan) -> None:
        self._journal: Final = journal
        self._plan: Final = plan
        self._since = plan.end
        self._used: set[BlobId] = set()  # bases of the deltas that were written since the plan

    def begin(self) -> None:
        """Clear away what others left, and end the last segment if it is to be written anew."""
        with self._journal.writing():
            log = self._journal.store.log
            for path in log.superseded():
                self._journal.disk.remove_store_file(path)
            self._follow()
            if self._journal.store.end.segment in self._plan.segments:
                self._journal.seal()
                self._since = self._journal.store.end

    def rewrite(self, segment: int) -> bool:
        """Write a segment anew; return whether that was done, and nothing that goes came to be needed meanwhile."""
        log = self._journal.store.log
        with self._journal.reading() as store:
            rewriting = _Rewriting(store, segment, self._plan.dropped)
        prepared = log.prepare(segment, rewriting.groups())
        is_done = False
        try:
            with self._journal.writing():
                self._follow()
                if not rewriting.gone & self._used:
                    is_done = self._adopt(prepared, segment, rewriting)
        finally:
            if not is_done:
                with suppress(FileNotFoundError):  # it has its name already, and the index will be made anew
                    self._journal.disk.remove_store_file(prepared)
        return is_done

    def _adopt(self, prepared: str, segment: int, rewriting: _Rewriting) -> bool:
        store = self._journal.store
        index, end = store.index, store.end
        with index.changing() as db:
            known = db.execute("SELECT segment, offset FROM position").fetchone()
            if tuple(known) != tuple(end):
                return False  # somebody is making the index anew at this moment
            db.execute("CREATE TEMP TABLE IF NOT EXISTS moved (old INTEGER PRIMARY KEY, new INTEGER)")
            db.execute("DELETE FROM temp.moved")
            db.executemany("INSERT INTO temp.moved VALUES (?, ?)", rewriting.moved)
            stays = "SELECT 1 FROM temp.moved WHERE old = offset"
            held = f"SELECT 1 FROM blobs WHERE segment = ? AND refs > 0 AND NOT EXISTS ({stays}) LIMIT 1"  # noqa: S608 - this module's own text
            if db.execute(held, (segment,)).fetchone() is not None:
                return False
            db.execute(f"DELETE FROM blobs WHERE segment = ? AND NOT EXISTS ({stays})", (segment,))  # noqa: S608 - as above
            db.executemany("UPDATE blobs SET depth = ?, base = ? WHERE id = ?", rewriting.respelt)
            for table in ("blobs", *_RECORD_TABLES):
                db.execute(
                    f"UPDATE {table} SET offset = (SELECT new FROM temp.moved WHERE old = offset) WHERE segment = ?",  # noqa: S608 - as above
                    (segment,),
                )
            db.execute(
                "UPDATE position SET last_offset = (SELECT new FROM temp.moved WHERE old = last_offset) "
                "WHERE last_segment = ?",
                (segment,),
            )
            db.execute("INSERT OR REPLACE INTO generations VALUES (?, ?)", (segment, rewriting.generation))
            old = store.log.adopt(prepared, segment)
        store.catch_up()
        self._journal.disk.remove_store_file(old)
        return True

    def _follow(self) -> None:
        """Note which blobs deltas were told against that others have written meanwhile."""
        store = self._journal.store
        for group in store.log.groups(self._since):
            self._used.update(_bases(group))
        self._since = store.end


def _bases(group: Group) -> Iterator[BlobId]:
    headers = [parse_blob_header(frame.payload) for frame in group.frames if frame.kind is FrameKind.BLOB]
    for header in headers:
        if header.base is not None:
            yield header.base
