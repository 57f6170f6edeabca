"""List a store's records and segments, and compute its statistics."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from sys import intern
from typing import Any, Final, NamedTuple

from objstore.model.basic_types import DocumentId, Status
from objstore.model.canonical_msgpack import unpack
from objstore.model.ids import RecordId, record_id
from objstore.model.records import Record
from objstore.storage.index.ingest import decoded
from objstore.storage.log.blob_codec import Encoding, parse_blob_header
from objstore.storage.log.frames import FRAME_HEADER_SIZE, FrameKind, RawFrame
from objstore.storage.log.segment_files import GENERATION
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import RecordInvalid, StoreDamaged
from objstore.values.fastclass import field, value, variable

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

_MINUTE: Final = 60_000_000
"""Microseconds."""


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
    record_bytes: int  # of the records' frames
    segments: int
    segment_bytes: int
    depths: Mapping[int, int]  # number of blobs by depth; 0: keyframes
    tools: Mapping[str, ChangeCount]
    files: Mapping[str, ChangeCount]  # by the path that each has now
    minutes: Mapping[int, Activity]  # by minutes since 1970-01-01 UTC, ascending, without empty ones
    damage: StoreDamaged | None  # why not all blobs and bytes are counted; None: they are


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


class _EditLines(NamedTuple):
    """What the statistics say of one edit."""

    tool: str
    document: DocumentId
    time: int
    added: int
    removed: int


@variable
class _Tally:
    """The counts of one pass through the log."""

    blobs: int = 0
    blob_bytes: int = 0
    stored: Counter[int] = field(default_factory=Counter)  # bytes by FrameKind
    depths: Counter[int] = field(default_factory=Counter)
    edits: dict[int, _EditLines] = field(default_factory=dict)
    decisions: int = 0
    voids: int = 0
    minute_edits: Counter[int] = field(default_factory=Counter)
    minute_bytes: Counter[int] = field(default_factory=Counter)

    group_bytes: int = 0  # of the frames of the present group so far
    group_time: int = 0  # of the last record of the present group; 0: it has none so far
    last: bytes | None = None  # the id of the last record
    damage: StoreDamaged | None = None  # the first one found

    def take_frame(self, frame: RawFrame, segment: int) -> None:
        """Count a frame, in the order of the log. Raises StoreDamaged."""
        size = len(frame.whole)
        self.stored[frame.kind] += size
        self.group_bytes += size
        payload = frame.whole[FRAME_HEADER_SIZE:]
        if frame.kind == FrameKind.BLOB:
            header = parse_blob_header(payload)
            self.blobs += 1
            # A large blob's bytes are in its chunks, which are counted as blobs of their own.
            self.blob_bytes += 0 if header.encoding is Encoding.CHUNKED else header.size
            self.depths[header.depth] += 1
        else:
            try:
                self.take(unpack(payload))
            except (RecordInvalid, LookupError, TypeError, ValueError) as error:
                raise StoreDamaged(segment, frame.position, f"not a record: {error}") from error
            self.last = record_id(payload)
        if frame.commits:
            self.minute_bytes[self.group_time // _MINUTE] += self.group_bytes
            self.group_bytes = self.group_time = 0

    def take(self, fields: Mapping[str, Any]) -> None:
        """Count a record, of which only the counted fields are decoded: that it is well-formed was checked at ingest.

        Raises ValueError if the record does not follow the one before it.
        """
        if fields.get("previous") != self.last:
            raise self.damage or ValueError("it does not follow the one before it")
        self.group_time = fields["time"]
        match fields["kind"]:
            case "edit":
                added, removed = fields.get("lines", (0, 0))
                edit = _EditLines(intern(fields["tool"]), fields["document"], fields["time"], added, removed)
                self.edits[fields["seq"]] = edit
            case "decision":
                self.decisions += 1
            case "void":
                self.voids += 1
                self.decisions -= bool(fields["decision"])
                for seq in fields["edits"]:
                    self.edits.pop(seq, None)


def stats(journal: Journal) -> StoreStats:
    """Return the statistics of the store. Voided records count as never made, except for their bytes.

    Raises StoreDamaged if a record can't be read; if only blobs can't be read, the rest is counted.
    """
    # In one state of the index: what other processes record meanwhile is in the log before it is in the index.
    with journal.store.index.still():
        return _stats(journal)


def _stats(journal: Journal) -> StoreStats:
    log, index = journal.store.log, journal.store.index
    tally, size = _Tally(), log.files.total_bytes()
    for segment, found in log.frames_before(journal.store.end):
        if isinstance(found, RawFrame):
            tally.take_frame(found, segment)
            if found.commits:
                journal.progress("bytes", sum(tally.stored.values()), size)
        elif tally.damage is None:
            tally.damage = StoreDamaged(segment, found.offset, found.reason)
    if tally.last != journal.store.last_record:
        raise tally.damage or journal.store.end.damaged("the last record is missing")
    tally.minute_edits.update(edit.time // _MINUTE for edit in tally.edits.values())
    minutes = sorted((set(tally.minute_edits) | set(tally.minute_bytes)) - {0})
    tools: dict[str, list[_EditLines]] = {}
    files: dict[DocumentId, list[_EditLines]] = {}
    for edit in tally.edits.values():
        tools.setdefault(edit.tool, []).append(edit)
        files.setdefault(edit.document, []).append(edit)
    return StoreStats(
        edits=index.edits.counts(),
        edit_count=index.edits.count(),
        decisions=tally.decisions,
        voids=tally.voids,
        conversations=index.edits.conversation_count(),
        blobs=tally.blobs,
        blob_bytes=tally.blob_bytes,
        stored_blob_bytes=tally.stored[FrameKind.BLOB],
        record_bytes=tally.stored[FrameKind.RECORD],
        segments=len(log.files.numbers()),
        segment_bytes=log.files.total_bytes(),
        depths=dict(sorted(tally.depths.items())),
        tools={tool: _count(made) for tool, made in sorted(tools.items())},
        files=_file_counts(journal, files),
        minutes={at: Activity(tally.minute_edits[at], tally.minute_bytes[at]) for at in minutes},
        damage=tally.damage,
    )


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


def _file_counts(journal: Journal, files: Mapping[DocumentId, list[_EditLines]]) -> dict[str, ChangeCount]:
    # Two documents may have had the same path at different times.
    by_path: dict[str, list[_EditLines]] = {}
    for document, made in files.items():
        by_path.setdefault(os.fsdecode(journal.store.index.documents.tip(document).path), []).extend(made)
    return {path: _count(made) for path, made in sorted(by_path.items())}


def _count(made: list[_EditLines]) -> ChangeCount:
    return ChangeCount(
        edits=len(made), added=sum(edit.added for edit in made), removed=sum(edit.removed for edit in made)
    )
