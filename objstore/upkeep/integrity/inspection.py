"""List a store's records and segments, and compute its statistics."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from objstore.model.basic_types import Status
from objstore.model.ids import RecordId
from objstore.model.records import Record
from objstore.storage.index.ingest import decoded
from objstore.storage.index.queries.total_queries import EditTotal
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE, FrameKind
from objstore.storage.log.segment_files import GENERATION
from objstore.storage.transaction.journal import Journal
from objstore.values.fastclass import value

__all__ = [
    "Activity",
    "ChangeCount",
    "RecordView",
    "SegmentView",
    "StoreStats",
    "growth",
    "records",
    "segments",
    "stats",
]


@value
class RecordView:
    """A record and its place."""

    id: RecordId
    previous: RecordId | None  # None: it is the first
    segment: int
    offset: int  # of its frame, in the file
    record: Record


@value
class SegmentView:
    """A segment and the number of its contents."""

    number: int
    size: int  # bytes, of the file
    groups: int
    blobs: int
    records: int


@value
class ChangeCount:
    """Counts of the lines that some edits added and removed."""

    edits: int
    added: int  # lines
    removed: int


class Activity(NamedTuple):
    """The edits and bytes that were recorded in one minute."""

    edits: int
    stored_bytes: int  # of frames


@value
class StoreStats:
    """The statistics of a store."""

    edits: Mapping[Status, int]
    edit_count: int  # including those that expired while pending, which have none of these statuses
    decisions: int
    voids: int
    conversations: int
    blobs: int
    blob_bytes: int  # of all blobs when decoded
    stored_blob_bytes: int  # of their frames
    record_bytes: int  # of the records' frames, and of second frames of blobs
    segments: int
    segment_bytes: int
    depths: Mapping[int, int]  # number of blobs by depth; 0: keyframes
    tools: Mapping[str, ChangeCount]
    files: Mapping[str, ChangeCount]  # by the path that each has now
    minutes: Mapping[int, Activity]  # by minutes since 1970-01-01 UTC, ascending, without empty ones


def records(journal: Journal) -> Iterator[RecordView]:
    """Yield every record in the order of the journal, including voided ones."""
    log = journal.store.log
    for group in log.groups(log.first):
        offsets = (frame.offset % GENERATION for frame in group.frames if frame.kind is FrameKind.RECORD)
        for chained, offset in zip(decoded(group), offsets, strict=True):
            yield RecordView(
                id=chained.id,
                previous=chained.previous,
                segment=group.segment,
                offset=offset,
                record=chained.record,
            )


def segments(journal: Journal) -> list[SegmentView]:
    """Return every segment, in order."""
    log = journal.store.log
    groups: Counter[int] = Counter()
    kinds: Counter[tuple[int, FrameKind]] = Counter()
    for group in log.groups(log.first):
        groups[group.segment] += 1
        kinds.update((group.segment, frame.kind) for frame in group.frames)
    return [
        SegmentView(
            number=number,
            size=log.files.size(number),
            groups=groups[number],
            blobs=kinds[number, FrameKind.BLOB],
            records=kinds[number, FrameKind.RECORD],
        )
        for number in log.files.numbers()
    ]


def stats(journal: Journal) -> StoreStats:
    """Return the statistics of the store, as its index sums them up. Voided records count only with their bytes.

    Raises StoreDamaged if a record that ends a minute can't be read; only fsck looks for other damage.
    """
    # In one state of the index: what other processes record meanwhile is in the log before it is in the index.
    with journal.store.index.still():
        return _stats(journal)


def _stats(journal: Journal) -> StoreStats:
    log, index = journal.store.log, journal.store.index
    depths = index.totals.blobs()
    edits, stored_bytes = index.totals.minutes(), _bytes_by_minute(journal)
    stored = sum(each.stored for each in depths)
    recorded = sum(_end_in(journal, number) - SEGMENT_HEADER_SIZE for number in log.files.numbers())
    return StoreStats(
        edits=index.edits.counts(),
        edit_count=index.edits.count(),
        decisions=index.totals.decisions(),
        voids=index.totals.voids(),
        conversations=index.edits.conversation_count(),
        blobs=sum(each.blobs for each in depths),
        blob_bytes=sum(each.size for each in depths),
        stored_blob_bytes=stored,
        record_bytes=recorded - stored,
        segments=len(log.files.numbers()),
        segment_bytes=log.files.total_bytes(),
        depths={each.depth: each.blobs for each in depths},
        tools=_counts(index.totals.tools()),
        files=_counts({os.fsdecode(path): total for path, total in index.totals.files().items()}),
        minutes={at: Activity(edits.get(at, 0), stored_bytes[at]) for at in sorted({*edits, *stored_bytes})},
    )


def _bytes_by_minute(journal: Journal) -> Counter[int]:
    """Return how many of the log's bytes were recorded in each minute."""
    found: Counter[int] = Counter()
    segment, before = 0, 0
    for minute, place in journal.store.index.totals.last_of_each_minute():
        if place.segment != segment:
            segment, before = place.segment, SEGMENT_HEADER_SIZE
        end = journal.store.log.read(place).end % GENERATION
        found[minute] += end - before
        before = end
    return found


def _end_in(journal: Journal, segment: int) -> int:
    """Return where the known log ends in a segment."""
    end = journal.store.end
    return end.position if segment == end.segment else journal.store.log.files.size(segment)


def growth(journal: Journal, count: int) -> list[tuple[int, int]]:
    """Return how many of the log's present bytes were there after each of up to `count` edits, oldest first.

    Each pair is the time of the edit, in microseconds since 1970-01-01 UTC, and the bytes of the segments up to its
    record. What was compacted away since is not counted.
    """
    files = journal.store.log.files
    before, total = dict[int, int](), 0
    for segment in files.numbers():
        before[segment] = total
        total += files.size(segment)
    spread = journal.store.index.edits.spread(count)
    return [(time, before[place.segment] + place.position) for time, place in spread if place.segment in before]


def _counts(totals: Mapping[str, EditTotal]) -> dict[str, ChangeCount]:
    """Return the totals by name, in the order of the names."""
    return {
        name: ChangeCount(edits=total.edits, added=total.added, removed=total.removed)
        for name, total in sorted(totals.items())
    }
