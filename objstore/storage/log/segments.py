"""Append groups of frames to numbered segments, and read them.

A writer appends a group in one write and syncs it once. Readers take no lock: they read up to the last whole group.
Only the holder of the writer lock appends, and before that it cuts off what a crashed writer left unfinished at the
end. `ReadAhead` serves callers that read much of the log.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from typing import Final

from objstore.disk.fs.disk import Disk
from objstore.disk.fs.nofollow import open_store_file
from objstore.storage.log.frames import (
    SEGMENT_HEADER_SIZE,
    WRONG_CHECKSUM,
    Frame,
    FrameKind,
    Gap,
    RawFrame,
    SegmentHeader,
    StoreId,
    committed,
    declared_size,
    encode_frame,
    first_damage,
    is_intact,
    payload_at,
    raw_frames,
    read_frame,
    scan_windows,
    unverified_frames,
)
from objstore.storage.log.segment_files import GENERATION, Place, SegmentFiles, pread, segment_name
from objstore.values.clock import now
from objstore.values.errors import DiskFailed, StoreDamaged, StoreRefuses, StoreReplaced, Unacknowledged
from objstore.values.fastclass import NamedTuple

__all__ = ["Group", "Log", "ReadAhead", "create_log"]

ROTATE_AT: Final = 16 << 20
"""Bytes after which a segment is full and the next one begins."""

_PIECE: Final = 1 << 20

_MIN_PIECE: Final = 1 << 12
_MAX_PIECE: Final = 1 << 20


class Group(NamedTuple):
    """The frames of one append, and the place just after them."""

    segment: int
    frames: list[Frame]
    end: Place


class Log:
    """The segments of one store, open for reading and, under the writer lock, for appending.

    `files` opens, lists and rewrites the files themselves.
    """

    def __init__(self, folder: str, disk: Disk) -> None:
        """Open the log in `folder`. Raises NotAWorkspace, StoreDamaged, FormatTooNew or FormatTooOld."""
        self.files: Final = SegmentFiles(folder, disk)
        self.store: Final = self.files.store
        self.key: Final = self.files.key
        self._disk: Final = disk
        self._appending: tuple[tuple[int, int], int] | None = None  # segment and generation, and the descriptor
        self._empty_segment: int | None = None  # a segment without a group, left by a writer that died
        self._appended_at = 0  # the file's change time after the last append, in ns
        self._write_guard: Final = _WriteGuard()

    def close(self) -> None:
        """Close every segment."""
        self.files.close()
        if self._appending is not None:
            os.close(self._appending[1])
            self._appending = None

    # ---- reading

    @property
    def first(self) -> Place:
        """Return the place of the first frame."""
        return self.files.first

    def reaches(self, place: Place) -> bool:
        """Return whether the log has all the bytes before `place`."""
        return os.fstat(self.files.descriptor(place.segment, place.generation)).st_size >= place.position

    def ends_at(self, place: Place) -> bool:
        """Return whether nothing follows `place`, not even something unfinished."""
        size = os.fstat(self.files.descriptor(place.segment, place.generation)).st_size
        return size == place.position and not self.files.exists(place.segment + 1)

    def is_as_appended(self, end: Place) -> bool:
        """Return whether the log ends at `end`, and no one wrote to it since this process appended up to there.

        Its length alone doesn't show that: someone may have restored a backup into the same file, and others appended
        to it.
        """
        found = os.fstat(self.files.descriptor(end.segment, end.generation))
        is_as_appended = (found.st_size, found.st_ctime_ns) == (end.position, self._appended_at)
        return is_as_appended and not self.files.exists(end.segment + 1)

    def bytes_behind(self, place: Place) -> int:
        """Return how many bytes follow `place` in its segment. Raises StoreDamaged if the segment no longer exists."""
        return os.fstat(self.files.descriptor(place.segment, place.generation)).st_size - place.position

    def has(self, group: Group) -> bool:
        """Return whether the log still has a group that this process has appended."""
        last = group.frames[-1]
        try:
            return self.read(Place(group.segment, last.offset)).payload == last.payload
        except StoreDamaged:
            return False

    def next_start(self, end: Place) -> Place | None:
        """Return the start of the next segment after one that ends at `end` (None: that has not begun)."""
        with self.files.kept_open(end.segment, end.generation) as fd:
            # In this order, because a writer completes a segment before it begins the next one.
            goes_on = self.files.exists(end.segment + 1) and os.fstat(fd).st_size == end.position
        return self.files.start(end.segment + 1) if goes_on else None

    def read(self, place: Place) -> Frame:
        """Return the frame at `place`. Raises StoreDamaged."""
        fd = self.files.descriptor(place.segment, place.generation)
        # One read gets most frames whole; the header has the size of the others.
        head = pread(fd, 4096, place.position, place.segment)
        found = read_frame(head, self.key, 0, base=place.offset)
        size = declared_size(head) if isinstance(found, Gap) else None
        if size is not None and len(head) < size <= os.fstat(fd).st_size - place.position:
            whole = head + _read(fd, size - len(head), place.position + len(head), place.segment)
            found = read_frame(whole, self.key, 0, base=place.offset)
        if isinstance(found, Gap):
            raise StoreDamaged(place.segment, place.position, found.reason)
        return found

    def groups(self, start: Place) -> Iterator[Group]:
        """Yield every whole group from `start` on, over all segments, and stop before an unfinished one at the end.

        Raises StoreDamaged if whole groups follow invalid bytes: that is damage, not a crash.
        """
        place: Place | None = start
        while place is not None:
            if place.generation != self.files.generation(place.segment):
                raise StoreDamaged(place.segment, place.position, "the segment has been rewritten since")
            with self.files.kept_open(place.segment, place.generation) as fd:
                place = yield from self._groups_in(fd, place)

    def raw_frames(self, start: Place, end: int | None = None) -> Iterator[RawFrame]:
        """Yield the frames of a segment from `start` on, of the generation that it is in.

        `start`: where a group begins, or before the first one. `end`: the position after its last whole group (None:
        the segment is full, and that is the end of the file). Raises StoreDamaged.
        """
        with self.files.kept_open(start.segment, start.generation) as fd:
            end = os.fstat(fd).st_size if end is None else end
            begins = max(start.position, SEGMENT_HEADER_SIZE)
            for found in raw_frames(_reader(fd, start.segment), self.key, begins, end):
                if isinstance(found, Gap):
                    raise StoreDamaged(start.segment, found.offset, found.reason)
                yield found

    def unverified_frames(self, start: Place) -> Iterator[list[RawFrame]]:
        """Yield the frames of a full segment as `raw_frames` does, many at a time, without verifying checksums.

        Verify those that are needed with `require_intact`. Raises StoreDamaged.
        """
        with self.files.kept_open(start.segment, start.generation) as fd:
            end = os.fstat(fd).st_size
            for frames, gap in unverified_frames(_reader(fd, start.segment), SEGMENT_HEADER_SIZE, end):
                yield frames
                if gap is not None:
                    raise StoreDamaged(start.segment, gap.offset, gap.reason)

    def require_intact(self, segment: int, frame: RawFrame) -> None:
        """Raise StoreDamaged if the checksum of a frame of the segment is wrong."""
        if not is_intact(self.key, frame.whole):
            raise StoreDamaged(segment, frame.position, WRONG_CHECKSUM)

    def verify(self, start: Place, end: int) -> None:
        """Verify the checksum of each frame of a segment from `start`, where a frame begins, to the position `end`.

        Raises StoreDamaged.
        """
        with self.files.kept_open(start.segment, start.generation) as fd:
            begins = max(start.position, SEGMENT_HEADER_SIZE)
            gap = first_damage(_reader(fd, start.segment), self.key, begins, end)
        if gap is not None:
            raise StoreDamaged(start.segment, gap.offset, gap.reason)

    def piece(self, place: Place, size: int) -> bytes:
        """Return `size` bytes from `place` on, or as many as there are. Raises StoreDamaged."""
        return pread(self.files.descriptor(place.segment, place.generation), size, place.position, place.segment)

    # ---- writing, only under the writer lock

    def repair_tail(self, end: Place) -> int:
        """Cut off what follows `end`, the end of the last whole group; return the number of bytes removed.

        None of those bytes was ever acknowledged. Raises StoreRefuses after an earlier failure.
        """
        self._require_writable()
        cut = self._cut(end)
        if self.files.exists(end.segment + 1):
            # A writer died after creating this segment and before completing its first group.
            self._empty_segment = end.segment + 1
            cut += self._cut(Place(self._empty_segment, SEGMENT_HEADER_SIZE))
        return cut

    @property
    def refuses(self) -> bool:
        """Return whether the log accepts no more writes until it is opened again."""
        return self._write_guard.reason is not None

    def secure(self, start: Place | None) -> None:
        """Make durable what was left by a writer that died, or whose sync failed and who could not cut the group off.

        `start`: the end of the part known to be durable; None: at least the segments before the last one are. Raises
        StoreRefuses, DiskFull and DiskFailed.
        """
        self._require_writable()
        group = self._last_group(self.files.start(self.files.last) if start is None else start)
        if group is not None and group.end.generation:
            group = None  # a rewritten segment was durable before it got its name
        segment = self.files.last if group is None else group.segment
        if self.files.generation(segment):
            return
        name = self.files.path(segment, 0)
        with self._write_guard:
            fd = open_store_file(name, os.O_WRONLY)
            try:
                if group is not None:
                    # Each writer secures what it finds, so only the last group can be in doubt. After a failed sync
                    # the system considers its bytes written; only bytes that are written again are sent to the disk.
                    offset, end = group.frames[0].offset, group.end.offset
                    while offset < end:
                        piece = _read(self.files.descriptor(segment, 0), min(_PIECE, end - offset), offset, segment)
                        self._disk.overwrite(fd, piece, offset, name)
                        offset += len(piece)
                self._disk.sync(fd, name)
            finally:
                os.close(fd)

    def append(self, end: Place, payloads: Sequence[tuple[FrameKind, bytes]]) -> Group:
        """Append one group after `end`, durably, and return its frames with their places.

        Nothing may follow `end`: `repair_tail` cuts off whatever did. Raises StoreRefuses, and DiskFull or DiskFailed
        with nothing changed. After a failed sync the group is cut off, and the log accepts no more writes until it is
        opened again; Unacknowledged means that not even the cut was possible. Raises StoreReplaced if the log's path
        leads elsewhere, where no reader would find the group.
        """
        self._require_writable()
        self.files.require_in_place()
        if end.offset >= ROTATE_AT or self._empty_segment == end.segment + 1:
            end = self._rotate(end.segment)
        elif end.offset == SEGMENT_HEADER_SIZE and end != self.first:
            # The writer that created the segment may have died before its name was durable.
            self.files.sync_names()
        last = len(payloads) - 1
        encoded = self._encoded_frames(payloads)
        fd = self._append_fd(end.segment)
        name = self.files.path(end.segment, 0)
        with self._write_guard:
            try:
                self._disk.append(fd, b"".join(encoded), name)
            except DiskFailed as error:
                self._disk.truncate(fd, end.offset, name)
                failure: DiskFailed | None = error
            else:
                failure = None
                self._sync(fd, end, name)
        if failure is not None:
            raise failure
        self._appended_at = os.fstat(fd).st_ctime_ns
        frames: list[Frame] = []
        offset = end.offset
        for (kind, payload), frame in zip(payloads, encoded, strict=True):
            position = len(frames)
            frames.append(
                Frame(offset=offset, kind=kind, begins=position == 0, commits=position == last, payload=payload)
            )
            offset += len(frame)
        return Group(end.segment, frames, Place(end.segment, offset))

    def seal(self, end: Place) -> Place:
        """Begin the next segment after `end`, so that the one before may be rewritten; return where it begins.

        Only under the writer lock. Raises StoreRefuses, DiskFull and DiskFailed.
        """
        self._require_writable()
        return self._rotate(end.segment)

    # ---- inside

    def _encoded_frames(self, payloads: Sequence[tuple[FrameKind, bytes]]) -> list[bytes]:
        """Return the encoded frames of one group."""
        last = len(payloads) - 1
        return [
            encode_frame(self.key, kind, payload, begins=i == 0, commits=i == last)
            for i, (kind, payload) in enumerate(payloads)
        ]

    def _rotate(self, full: int) -> Place:
        header = SegmentHeader(store=self.store, number=full + 1, created=now())
        try:
            self._disk.create(self.files.path(full + 1, 0), header.encode())
        except FileExistsError:
            # A writer that died here left the file, and repair_tail emptied it; but its name may not be durable.
            self.files.sync_names()
        return Place(full + 1, SEGMENT_HEADER_SIZE)

    def _last_group(self, start: Place) -> Group | None:
        """Return the last group after `start` (None: there is none, or the bytes there don't end with a group)."""
        last = None
        try:
            for group in self.groups(start):
                last = group
        except StoreDamaged as error:
            if isinstance(error.__cause__, OSError):
                raise  # the group may exist and be unreadable
        return last

    def _cut(self, end: Place) -> int:
        # The last segment is a rewritten one only if the segment that followed it has been lost.
        unfinished = os.fstat(self.files.descriptor(end.segment, end.generation)).st_size - end.position
        if unfinished > 0:
            path = self.files.path(end.segment, end.generation)
            with self._write_guard:
                fd = self._append_fd(end.segment, end.generation)
                self._disk.truncate(fd, end.position, path)
                if end.generation:
                    self._disk.sync(fd, path)  # the next append goes to another segment, and won't sync this one
        return max(0, unfinished)

    def _groups_in(self, fd: int, start: Place) -> Generator[Group, None, Place | None]:
        """Yield the whole groups of an open segment from `start` on; return where the log continues (None: it ends)."""
        segment, offset = start
        while True:
            # Check before reading the segment: a writer appends its last group before it begins the next one.
            is_full = self.files.exists(segment + 1)
            gap = None
            for found in self._committed(fd, Place(segment, offset)):
                if isinstance(found, Gap):
                    gap = found
                    break
                yield Group(segment, found, Place(segment, found[-1].end))
                offset = found[-1].end
            if gap is not None:
                if self._is_tail(fd, segment, gap):
                    return None
                # A writer may have completed or cut off the group since. It writes in order, so a whole group after the
                # gap proves that the gap's bytes are final: read them again.
                offset = gap.offset
                if isinstance(next(self._committed(fd, Place(segment, offset)), None), Gap):
                    raise StoreDamaged(segment, Place(segment, offset).position, gap.reason)
            elif is_full:
                return self.files.start(segment + 1)
            elif not self.files.exists(segment + 1):
                return None

    def _committed(self, fd: int, start: Place) -> Iterator[list[Frame] | Gap]:
        base = start.generation * GENERATION
        size = os.fstat(fd).st_size
        if size > start.position:
            # Read the file instead of mapping it: access to mapped bytes that a writer truncates kills the process.
            read = _reader(fd, start.segment, base)
            yield from committed(scan_windows(read, self.key, start.offset, base + size))

    def _is_tail(self, fd: int, segment: int, gap: Gap) -> bool:
        """Return whether nothing whole follows `gap`, so that a crashed or a running writer left it."""
        if self.files.exists(segment + 1):
            return False
        return not any(isinstance(found, list) for found in self._committed(fd, Place(segment, gap.end)))

    def _append_fd(self, segment: int, generation: int = 0) -> int:
        if self._appending is None or self._appending[0] != (segment, generation):
            if self._appending is not None:
                os.close(self._appending[1])
                self._appending = None
            path = self.files.path(segment, generation)
            fd = open_store_file(path, os.O_WRONLY | os.O_APPEND)
            if not os.path.samestat(os.fstat(fd), os.fstat(self.files.descriptor(segment, generation))):
                os.close(fd)
                self.files.invalidate_listing()
                raise StoreReplaced(path)
            self._appending = (segment, generation), fd
        return self._appending[1]

    def _require_writable(self) -> None:
        if self._write_guard.reason is not None:
            raise StoreRefuses(self._write_guard.reason)

    def _sync(self, fd: int, end: Place, name: str) -> None:
        """Make the group after `end` durable, or remove it: every process can already read it from the page cache."""
        try:
            self._disk.sync(fd, name)
        except DiskFailed as error:
            try:
                self._disk.truncate(fd, end.offset, name)
                self._disk.sync(fd, name)
            except DiskFailed as failure:
                raise Unacknowledged(str(error)) from failure
            raise


class _WriteGuard:
    """Guard each write to a log: after a failed write, the log accepts no more."""

    __slots__ = ("reason",)

    def __init__(self) -> None:
        self.reason: str | None = None  # why the log accepts no more writes; None: it accepts them

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is not None:
            self.reason = str(error) or type(error).__name__


def _reader(fd: int, segment: int, base: int = 0) -> Callable[[int, int], bytes]:
    """Return a function that reads `size` bytes at an offset counted from `base`."""
    return lambda offset, size: _read(fd, size, offset - base, segment)


def _read(fd: int, size: int, offset: int, segment: int) -> bytes:
    """Return `size` bytes from `offset`, or as many as there are; one read may stop short of 2 GiB.

    Raises StoreDamaged.
    """
    content = pread(fd, size, offset, segment)
    while len(content) < size:
        more = pread(fd, size - len(content), offset + len(content), segment)
        if not more:
            break
        content += more
    return content


def create_log(folder: str, disk: Disk) -> None:
    """Create the first segment of a new store in the existing, empty `folder`."""
    header = SegmentHeader(store=StoreId(os.urandom(16)), number=1, created=now())
    with suppress(FileExistsError):
        disk.create(os.path.join(folder, segment_name(1, 0)), header.encode())


class ReadAhead:
    """Read frames in the order of the log, from pieces that double in size while the reads are in order."""

    def __init__(self, log: Log) -> None:
        """Start without a piece; the first read may be anywhere."""
        self._log = log
        self._segment = self._offset = 0  # the start of the piece
        self._piece = b""

    def payload(self, place: Place, kind: FrameKind) -> bytes:
        """Return the payload of the frame at `place`. Raises StoreDamaged."""
        log = self._log
        segment, offset = place
        at = offset - self._offset
        is_near = segment == self._segment and 0 <= at < len(self._piece)
        found = payload_at(self._piece, log.key, at, kind) if is_near else None
        if found is None:
            self._move_to(place)
            found = payload_at(self._piece, log.key, 0, kind)
        if found is None:
            # The frame is longer than the piece, or damaged, which this read reports.
            frame = log.read(place)
            if frame.kind is not kind:
                raise place.damaged(f"a {frame.kind.name.lower()} is at a place where the index has another kind")
            found = bytes(frame.payload)
        return found

    def _move_to(self, place: Place) -> None:
        """Read a piece at `place`: twice as long as the last one if it follows that within one length."""
        behind = place.offset - self._offset - len(self._piece)
        goes_on = place.segment == self._segment and -len(self._piece) < behind <= len(self._piece)
        size = min(2 * max(_MIN_PIECE, len(self._piece)), _MAX_PIECE) if goes_on else _MIN_PIECE
        self._segment, self._offset = place
        self._piece = self._log.piece(place, size)
