"""Read every frame of segment files that can still be read, whatever has happened to the files.

Nothing but the files is needed: no index, no lock, no complete sequence. Keyed checksums verify frames, hashes verify
blobs, and the canonical encoding verifies records, so everything that is found is what was written.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, islice, pairwise
from operator import itemgetter
from typing import Final, NamedTuple, Self

from objstore.model.basic_types import Progress, ignore_progress
from objstore.model.ids import BlobId, RecordId, record_id
from objstore.model.record_codec import decode_record
from objstore.model.records import Record
from objstore.storage.log.blob_codec import BlobHeader, Encoding, decode_blob, parse_blob_header, parse_chunks
from objstore.storage.log.blob_reader import joined_chunks
from objstore.storage.log.chunking import Chunk
from objstore.storage.log.frames import (
    FRAME_HEADER_SIZE,
    MARKER,
    SEGMENT_HEADER_SIZE,
    STORE_ID,
    Frame,
    FrameKind,
    Gap,
    SegmentHeader,
    StoreId,
    declared_size,
    frame_key,
    read_frame,
    scan_windows,
)
from objstore.storage.log.segment_files import (
    GENERATION,
    NO_FILE,
    Place,
    generation_of,
    is_segment,
    newest_files,
    open_segment,
    pread,
)
from objstore.values.errors import (
    BlobDamaged,
    BlobMissing,
    FileMissing,
    RecordInvalid,
    StoreDamaged,
    StoreLinked,
    StoreUnknown,
)

__all__ = [
    "MAX_LISTED_LOSSES",
    "Damage",
    "FrameSpan",
    "ScannedRecord",
    "Segment",
    "SegmentEnd",
    "SegmentScan",
    "segment_folder",
]

_SUFFIX: Final = ".seg"
_CACHE_BYTES: Final = 16 << 20
MAX_LISTED_LOSSES: Final = 1 << 20
"""The most lost edits, and the most lost decisions, that are listed: a forged number could mean too many."""

_MOST_MISSING: Final = 1000
"""The most missing segments that are listed: a forged number could mean too many."""

_SECTOR: Final = 4096
"""Bytes that are read on their own after a larger read failed: as many as a disk loses together."""

_PROBES: Final = 4
"""The number of frames with which a guessed store id is tried."""


class FrameSpan(NamedTuple):
    """The place of a valid frame."""

    file: int  # index of its segment in `SegmentScan.segments`
    offset: int
    size: int  # bytes of its payload


class Damage(NamedTuple):
    """Bytes of a segment file in which nothing could be read."""

    segment: str  # name of the file
    offset: int
    end: int
    reason: str


class ScannedRecord(NamedTuple):
    """A record that still decodes."""

    record: Record
    id: RecordId
    previous: RecordId | None  # None: it is the first of its journal
    span: FrameSpan
    group: int  # records of one append have the same number


class Segment(NamedTuple):
    """One segment file."""

    path: str
    number: int | None  # None: neither its name nor its header gives it


class SegmentEnd(NamedTuple):
    """The ends of a segment when it was read."""

    whole: int  # after its last complete group
    last: int  # after its last readable frame
    size: int


class SegmentScan:
    """The readable frames of some segment files."""

    def __init__(
        self,
        folder: str,
        store: StoreId | None = None,
        *,
        any_names: bool = False,
        decodes_records: bool = True,
        since: Place | None = None,
        progress: Progress = ignore_progress,
    ) -> None:
        """Read every segment in `folder`. `store`: the store's id, if no header gives it.

        `any_names`: read every file that ends in `.seg`, even those that a store ignores. `decodes_records`: if false,
        records are only counted, whether they decode or not. `since`: where a group ends, up to which nothing is read
        (None: everything is).
        Raises FileMissing if there are no segments, and StoreUnknown if the store's id can't be found out.
        """
        self._fds: list[int] = []
        self._unreadable: dict[tuple[int, int], str] = {}  # by file and sector: why it can't be read
        self._progress: Final = progress
        self.damage: Final[list[Damage]] = []
        self.blobs: Final[dict[BlobId, list[FrameSpan]]] = {}
        self.large: Final[set[BlobId]] = set()  # those of them that are read from chunks
        self.records: Final[list[ScannedRecord]] = []
        self.record_count = 0  # of those in complete groups, whether they decode or not
        self._decodes_records: Final = decodes_records
        self._since: Final = since or Place(0, 0)
        self.earlier: Callable[[BlobId], Place | None] = _nowhere  # finds the blobs in what was not read
        self.ends: Final[list[SegmentEnd]] = []
        self._chosen: dict[BlobId, FrameSpan] = {}
        # The blob at fault for each blob that can't be read, and why (None: it is missing).
        self._failed: dict[BlobId, tuple[BlobId, str | None]] = {}
        self._verified: set[BlobId] = set()  # blobs that were read, for themselves or as a base
        self._cache: OrderedDict[BlobId, tuple[BlobHeader, bytes]] = OrderedDict()
        self._cached = 0
        self._newest: tuple[BlobHeader, bytes] | None = None  # the last one that was too large for the cache
        try:
            self.segments: Final = self._opened(folder, any_names=any_names)
            self.store: Final = self._store() if store is None else store
            self.key: Final = frame_key(self.store)
            for file, segment in enumerate(self.segments):
                if segment.number is None or segment.number >= self._since.segment:
                    self._read(file)
                else:
                    size = os.fstat(self._fds[file]).st_size
                    self.ends.append(SegmentEnd(size, size, size))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every file."""
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close every file."""
        self.close()

    def missing_segments(self) -> list[int]:
        """Return the missing numbers below that of the last segment, ascending; at most the first thousand."""
        numbers = sorted({segment.number for segment in self.segments if segment.number is not None})
        gaps = (range(before + 1, number) for before, number in pairwise([0, *numbers]))
        return list(islice(chain.from_iterable(gaps), _MOST_MISSING))

    def end(self, file: int) -> Place:
        """Return where the last complete group of a segment ends."""
        return self._place(file, self.ends[file].whole)

    def reach(self, file: int) -> Place:
        """Return where the last readable frame of a segment ends, whether or not its group is complete."""
        return self._place(file, self.ends[file].last)

    def payload(self, span: FrameSpan) -> bytes:
        """Return the payload of a frame that was found. Raises StoreDamaged if the file has changed since."""
        content = self._bytes(span.file, span.offset, FRAME_HEADER_SIZE + span.size)
        found = read_frame(content, self.key, 0, base=span.offset)
        if isinstance(found, Gap):
            raise StoreDamaged(self.segments[span.file].number or 0, span.offset, found.reason)
        return bytes(found.payload)

    def span(self, name: BlobId) -> FrameSpan:
        """Return the place of the frame that a blob is read from: its first, or the one chosen with `use_frame`.

        Raises BlobMissing.
        """
        if name in self._chosen:
            return self._chosen[name]
        if name in self.blobs:
            return self.blobs[name][0]
        place = self.earlier(name)
        if place is None:
            raise BlobMissing(name)
        file = next(file for file, segment in enumerate(self.segments) if segment.number == place.segment)
        size = declared_size(self._bytes(file, place.position, FRAME_HEADER_SIZE))
        return FrameSpan(file, place.position, (size or FRAME_HEADER_SIZE) - FRAME_HEADER_SIZE)

    def has(self, name: BlobId) -> bool:
        """Return whether there is a frame of a blob."""
        return name in self.blobs or self.earlier(name) is not None

    def use_frame(self, name: BlobId, span: FrameSpan | None) -> None:
        """Read a blob from another one of its frames, whatever depth that states (None: from the first again)."""
        self._failed.pop(name, None)
        self._verified.discard(name)
        if span is None:
            del self._chosen[name]
        else:
            self._chosen[name] = span
        if self.header(name).encoding is Encoding.CHUNKED:
            self.large.add(name)
        else:
            self.large.discard(name)

    def header(self, name: BlobId) -> BlobHeader:
        """Return the header of the frame that a blob is read from. Raises BlobMissing."""
        return parse_blob_header(self.payload(self.span(name)))

    def blob(self, name: BlobId) -> bytes:
        """Return a blob's bytes, verified, through its chain of bases.

        Raises BlobMissing, with the missing blob or base, or BlobDamaged.
        """
        chain: list[tuple[BlobHeader, bytes]] = []  # from the blob down, the frames still to be decoded
        try:
            content = self._collect_chain(name, chain)
            while chain:
                header, payload = chain[-1]
                content = decode_blob(header, payload, content)
                self._remember(header, content)
                self._verified.add(header.id)
                chain.pop()
        except (BlobMissing, BlobDamaged) as error:
            # The blobs in the chain can't be read either; they are not tried again for each blob that needs them.
            reason = error.reason if isinstance(error, BlobDamaged) else None
            self._failed |= {header.id: (BlobId(error.blob), reason) for header, _ in chain}
            raise
        assert content is not None  # noqa: S101 - a chain ends with a keyframe, or with cached bytes
        return content

    def chunks(self, name: BlobId) -> tuple[Chunk, ...]:
        """Return the chunks of a large blob; none if it is not large, or if its list can't be read."""
        if name not in self.large:
            return ()
        payload = self.payload(self.span(name))
        try:
            return parse_chunks(parse_blob_header(payload), payload)
        except BlobDamaged:
            return ()

    def pieces(self, name: BlobId) -> Iterator[bytes]:
        """Yield the bytes of a blob of any size, each piece verified.

        Raises BlobMissing, with the missing blob, base or chunk, and BlobDamaged; the latter after the last piece, if
        the pieces together are not the blob.
        """
        if name not in self.large:
            yield self.blob(name)
            return
        yield from joined_chunks(name, self.chunks(name), self.blob)

    def verify(self, name: BlobId) -> None:
        """Read a blob. Raises BlobDamaged, also if a base or a chunk of it is missing."""
        try:
            for _ in self.pieces(name):
                pass
        except BlobMissing as error:
            raise self._part_lost(name, error.blob) from error

    def unreadable(self, progress: Progress, *, quick: bool = False) -> Iterator[tuple[BlobId, str]]:
        """Yield each blob that can't be read, newest first, and why. `quick`: as `verify_needs` says.

        A base precedes its deltas: from the newest blob on, each chain is decoded once, whatever the cache holds.
        """
        for done, name in enumerate(reversed(self.blobs)):
            progress("blobs", done, len(self.blobs))
            try:
                if quick:
                    self.verify_needs(name)
                elif name not in self._verified:
                    self.verify(name)
            except BlobDamaged as error:
                yield name, error.reason

    def verify_needs(self, name: BlobId) -> None:
        """Raise BlobDamaged if a base or chunk of a blob is missing, or its base does not fit; don't read the blob."""
        if name in self.large:
            for chunk in self.chunks(name):
                if not self.has(chunk.id):
                    raise self._part_lost(name, chunk.id)
            return
        header = self.header(name)
        if header.base is not None:
            if not self.has(header.base):
                raise self._part_lost(name, header.base)
            self._require_depth_of_base(header, self.header(header.base))

    def _part_lost(self, name: BlobId, part: bytes) -> BlobDamaged:
        return BlobDamaged(name, f"its {'chunk' if name in self.large else 'base'} {part.hex()} is lost")

    # ---- inside

    def _place(self, file: int, position: int) -> Place:
        segment = self.segments[file]
        generation = generation_of(os.path.basename(segment.path))
        return Place(segment.number or 0, generation * GENERATION + position)

    def _collect_chain(self, name: BlobId, chain: list[tuple[BlobHeader, bytes]]) -> bytes | None:
        """Add the blob and its bases to `chain`, down to the first cached one; return its bytes (None: none is cached).

        Raises BlobMissing and BlobDamaged.
        """
        wanted: BlobId | None = name
        while wanted is not None:
            if wanted in self._failed:
                blob, reason = self._failed[wanted]
                raise BlobMissing(blob) if reason is None else BlobDamaged(blob, reason)
            known = self._newest if self._newest and self._newest[0].id == wanted else self._cache.get(wanted)
            payload = b"" if known is not None else self.payload(self.span(wanted))
            header = parse_blob_header(payload) if known is None else known[0]
            if header.id != wanted:
                raise BlobDamaged(wanted, "another blob is where the index says")
            if chain:
                self._require_depth_of_base(chain[-1][0], header)
            if known is not None:
                return known[1]
            chain.append((header, payload))
            wanted = header.base
        return None

    def _require_depth_of_base(self, header: BlobHeader, base: BlobHeader) -> None:
        """Raise BlobDamaged if a frame states a smaller depth than its base requires.

        So no chain is longer than the largest depth, and none is a cycle. A caller of `use_frame` ensures that itself.
        """
        if header.id not in self._chosen and header.depth <= base.depth:
            raise BlobDamaged(header.id, f"its depth is {header.depth}, but its base has depth {base.depth}")

    def _opened(self, folder: str, *, any_names: bool) -> list[Segment]:
        fds: dict[str, int] | None = None
        names: list[str] = []
        while fds is None:
            before, names = names, _listed(folder, any_names=any_names)
            if names != before:
                continue  # compaction may be running: the list has to be of one moment
            fds = self._all_opened(folder, names)
        if not fds:
            raise FileMissing(os.path.join(folder, f"*{_SUFFIX}"))
        # Of a segment's generations the newest counts: it was complete before it was given its name.
        newest = newest_files(fds)
        opened = [(fds[name], Segment(os.path.join(folder, name), _number(name, fds[name]))) for name in newest]
        # A file without a known number comes last: the chain of records gives the order.
        opened.sort(key=lambda item: (item[1].number is None, item[1].number or 0, item[1].path))
        for fd in set(self._fds) - {fd for fd, _ in opened}:
            os.close(fd)
        self._fds = [fd for fd, _ in opened]
        return [segment for _, segment in opened]

    def _all_opened(self, folder: str, names: list[str]) -> dict[str, int] | None:
        """Open the regular files (None: one has gone, as when compaction rewrote it)."""
        fds: dict[str, int] = {}
        damage = []
        for name in names:
            fd: int | None = None
            try:
                with suppress(StoreLinked):  # a link is not followed
                    fd = open_segment(os.path.join(folder, name))
            except FileNotFoundError:
                self.close()
                return None
            if fd is not None:
                fds[name] = fd
                self._fds.append(fd)
            elif is_segment(name):
                damage.append(Damage(name, 0, 0, NO_FILE))
        self.damage.extend(damage)
        return fds

    def _store(self) -> StoreId:
        """Return the id in a header, or one that differs from a damaged header's in one byte and fits a frame."""
        heads = [self._bytes(file, 0, SEGMENT_HEADER_SIZE) for file in range(len(self._fds))]
        is_stray = [not is_segment(os.path.basename(segment.path)) for segment in self.segments]
        for _, head in sorted(zip(is_stray, heads, strict=True), key=itemgetter(0)):
            try:
                return SegmentHeader.decode(head, segment=None).store
            except StoreDamaged:
                continue
        for file, head in enumerate(heads):
            probes = self._probes(file)
            for candidate in _similar_ids(head[STORE_ID]) if probes else ():
                key = frame_key(candidate)
                if any(isinstance(read_frame(probe, key, 0), Frame) for probe in probes):
                    return candidate
        raise StoreUnknown([segment.path for segment in self.segments])

    def _probes(self, file: int) -> list[bytes]:
        """Return the smallest of what may be frames at the beginning of a segment."""
        content = self._bytes(file, 0, 1 << 20)
        found: list[bytes] = []
        at = content.find(MARKER)
        while at >= 0 and len(found) < _PROBES * _PROBES:
            size = declared_size(content, at)
            if size is not None and at + size <= len(content):
                found.append(content[at : at + size])
            at = content.find(MARKER, at + 1)
        return sorted(found, key=len)[:_PROBES]

    def _read(self, file: int) -> None:
        segment = self.segments[file]
        size = os.fstat(self._fds[file]).st_size
        name = os.path.basename(segment.path)
        group = self.records[-1].group + 1 if self.records else 0
        begins = self._begin(segment)
        sizes = [os.fstat(fd).st_size for fd in self._fds]
        before, total = sum(sizes[:file]), sum(sizes)
        whole, last, following, in_group = begins, begins, -1, 0
        for found in self._frames(file, size, name):
            group += found.begins
            if found.begins or found.offset == following:
                in_group = (
                    found.kind is FrameKind.RECORD if found.begins else in_group + (found.kind is FrameKind.RECORD)
                )
                following = -1 if found.commits else found.end
                whole = found.end if found.commits else whole
                self._progress("bytes of segments", before + found.end, total)
                self.record_count += in_group if found.commits else 0
            last = found.end
            span = FrameSpan(file, found.offset, len(found.payload))
            try:
                if found.kind is FrameKind.BLOB:
                    header = parse_blob_header(found.payload)
                    if header.encoding is Encoding.CHUNKED and header.id not in self.blobs:
                        self.large.add(header.id)
                    if header.id in self.blobs:
                        self.blobs[header.id].append(span)
                    else:
                        self.blobs[header.id] = [span]  # an empty list that grows would keep room for four
                    continue
                if self._decodes_records:
                    encoded = bytes(found.payload)
                    record, previous = decode_record(encoded)
                    self.records.append(ScannedRecord(record, record_id(encoded), previous, span, group))
            except (BlobDamaged, RecordInvalid) as error:
                self.damage.append(Damage(name, found.offset, found.end, str(error)))
        self.ends.append(SegmentEnd(min(whole, size), min(last, size), size))

    def _frames(self, file: int, size: int, name: str) -> Iterator[Frame]:
        segment = self.segments[file]
        start, fault = self._begin(segment), ""
        try:
            header = SegmentHeader.decode(self._bytes(file, 0, SEGMENT_HEADER_SIZE), segment=segment.number)
        except StoreDamaged as error:
            # The beginning of the file may have been cut off, with or without the first frame.
            start, fault = 0, self._reason(file, 0, SEGMENT_HEADER_SIZE, error.reason)
        else:
            if header.store != self.store:
                self.damage.append(Damage(name, 0, size, "the segment belongs to another store"))
                return
        for found in scan_windows(lambda offset, wanted: self._bytes(file, offset, wanted), self.key, start, size):
            if fault:
                end = found.end if isinstance(found, Gap) else 0
                self.damage.append(Damage(name, 0, end, fault))
                fault = ""
            elif isinstance(found, Gap):
                reason = self._reason(file, found.offset, found.end, found.reason)
                self.damage.append(Damage(name, found.offset, found.end, reason))
            if isinstance(found, Frame):
                yield found
        if fault:
            self.damage.append(Damage(name, 0, 0, fault))

    def _begin(self, segment: Segment) -> int:
        """Return the position in a segment's file from which on it is read."""
        return self._since.position if segment.number == self._since.segment else SEGMENT_HEADER_SIZE

    def _bytes(self, file: int, offset: int, size: int) -> bytes:
        """Return up to `size` bytes of a segment, with zeros in place of bytes that the disk can't read.

        A frame with such bytes then fails its checksum.
        """
        fd = self._fds[file]
        try:
            return os.pread(fd, size, offset)
        except OSError:
            end = min(offset + size, os.fstat(fd).st_size)
        pieces = []
        while offset < end:
            sector, into = divmod(offset, _SECTOR)
            wanted = min(_SECTOR - into, end - offset)
            try:
                piece = os.pread(fd, wanted, offset)
            except OSError as error:
                self._unreadable[file, sector] = error.strerror or str(error)
                piece = bytes(wanted)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
        return b"".join(pieces)

    def _reason(self, file: int, offset: int, end: int, otherwise: str) -> str:
        """Return why no frame is in these bytes: the disk's error if some can't be read, or else `otherwise`."""
        if not self._unreadable:
            return otherwise
        sectors = range(offset // _SECTOR, (end - 1) // _SECTOR + 1)
        return next((why for at in sectors if (why := self._unreadable.get((file, at)))), otherwise)

    def _remember(self, header: BlobHeader, content: bytes) -> None:
        if header.id in self._cache:
            return
        if len(content) > _CACHE_BYTES // 4:
            # The next blob in the log is probably a delta against it, and would otherwise be decoded from its keyframe
            # on.
            self._newest = header, content
            return
        self._cache[header.id] = header, content
        self._cached += len(content)
        while self._cached > _CACHE_BYTES:
            _, (_, dropped) = self._cache.popitem(last=False)
            self._cached -= len(dropped)


def _nowhere(_: BlobId) -> Place | None:
    return None


def _listed(folder: str, *, any_names: bool) -> list[str]:
    """Return the names of the segment files in a folder, ascending. `any_names`: of all files that end in `.seg`."""
    return sorted(name for name in os.listdir(folder) if is_segment(name) or (any_names and name.endswith(_SUFFIX)))


def segment_folder(place: str) -> str:
    """Return the folder of segment files: `place` itself, or the one inside it if it is a `.cas/` or a workspace."""
    for inside in ("segments", os.path.join(".cas", "segments")):
        folder = os.path.join(place, inside)
        if os.path.isdir(folder):
            return folder
    return place


def _number(name: str, fd: int) -> int | None:
    """Return the number of a segment: from its name or, if that is not a segment's name, its header (None: neither)."""
    stem = name.removesuffix(_SUFFIX).partition(".")[0]
    if not is_segment(name):
        try:
            return SegmentHeader.decode(pread(fd, SEGMENT_HEADER_SIZE, 0, 0), segment=None).number
        except StoreDamaged:
            pass
    return int(stem) if stem.isascii() and stem.isdigit() else None


def _similar_ids(found: bytes) -> Iterator[StoreId]:
    """Yield the id that was found, and every one that differs from it in one byte."""
    yield StoreId(found)
    for at in range(len(found)):
        for byte in range(256):
            yield StoreId(found[:at] + bytes([byte]) + found[at + 1 :])
