"""The log: numbered append-only segments of frames. A group of frames is appended in one write and synced once.

Readers take no lock: they read up to the last group that is whole. Only the holder of the writer lock appends, and
before it does, it cuts off what a crashed writer left unfinished at the end.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Final, NamedTuple

from objstore.disk import Disk
from objstore.errors import CasError, DiskFailed, NotAWorkspace, StoreDamaged, StoreRefuses, Unacknowledged
from objstore.frames import (
    FRAME_HEADER_SIZE,
    SEGMENT_HEADER_SIZE,
    Frame,
    FrameKey,
    FrameKind,
    Gap,
    SegmentHeader,
    StoreId,
    committed,
    encode_frame,
    frame_key,
    read_frame,
    scan_windows,
)

__all__ = ["Group", "Log", "Place", "create_log"]

ROTATE_AT: Final = 64 << 20
"""Bytes after which a segment is full and the next one begins."""

_SUFFIX: Final = ".seg"
_PIECE: Final = 1 << 20


class Place(NamedTuple):
    """Where a frame begins."""

    segment: int
    offset: int


class Group(NamedTuple):
    """The frames of one append, and the place just behind them."""

    segment: int
    frames: list[Frame]
    end: Place


class Log:
    """The segments of one store, open for reading and, under the writer lock, for appending."""

    def __init__(self, folder: str, disk: Disk) -> None:
        """Open the log in `folder`. Raises NotAWorkspace, StoreDamaged or FormatTooNew."""
        self._folder = folder
        self._disk = disk
        self._descriptors: dict[int, int] = {}
        self._appending: tuple[int, int] | None = None  # segment and descriptor
        self._begun: int | None = None  # a segment without a group, which a writer left that died
        self._broken: str | None = None  # why it takes no more writes
        numbers = self.numbers()
        if not numbers:
            raise NotAWorkspace(os.path.dirname(folder))
        for number, following in pairwise(numbers):
            if following != number + 1:
                raise StoreDamaged(number + 1, 0, "the segment is missing")
        self.store: Final[StoreId] = self._header(numbers[0]).store
        self.key: Final[FrameKey] = frame_key(self.store)
        self.first: Final = Place(numbers[0], SEGMENT_HEADER_SIZE)

    def close(self) -> None:
        """Close every segment."""
        for fd in self._descriptors.values():
            os.close(fd)
        self._descriptors.clear()
        if self._appending is not None:
            os.close(self._appending[1])
            self._appending = None

    def numbers(self) -> list[int]:
        """Return the numbers of the segments that there are, ascending."""
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        stems = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdigit())

    def total_bytes(self) -> int:
        """Return the size of all segments."""
        return sum(os.stat(self._path(number)).st_size for number in self.numbers())

    # ---- reading

    def size(self, segment: int) -> int:
        """Return the segment's size in bytes."""
        return os.fstat(self._fd(segment)).st_size

    def ends_at(self, place: Place) -> bool:
        """Return whether nothing follows `place`, not even something unfinished."""
        return self.size(place.segment) == place.offset and not self.exists(place.segment + 1)

    def exists(self, segment: int) -> bool:
        """Return whether there is a segment of this number."""
        return segment in self._descriptors or os.path.exists(self._path(segment))

    def read(self, place: Place) -> Frame:
        """Return the frame at `place`. Raises StoreDamaged."""
        fd = self._fd(place.segment)
        # One read gets most frames whole; the header's length says how much is left of the others.
        head = os.pread(fd, 4096, place.offset)
        found = read_frame(head, self.key, 0, base=place.offset)
        if isinstance(found, Gap) and len(head) >= FRAME_HEADER_SIZE:
            length = int.from_bytes(head[8:16], "little")
            size = self.size(place.segment) - place.offset
            if FRAME_HEADER_SIZE + length > len(head) and FRAME_HEADER_SIZE + length <= size:
                whole = head + _read(fd, FRAME_HEADER_SIZE + length - len(head), place.offset + len(head))
                found = read_frame(whole, self.key, 0, base=place.offset)
        if isinstance(found, Gap):
            raise StoreDamaged(place.segment, place.offset, found.reason)
        return found

    def groups(self, start: Place) -> Iterator[Group]:
        """Yield every whole group from `start` on, over all segments, and stop before an unfinished one at the end.

        Raises StoreDamaged where bytes are wrong and good groups follow: that is damage, not a crash.
        """
        segment, offset = start
        while True:
            for found in self._committed(segment, offset):
                if isinstance(found, Gap):
                    if self._is_tail(segment, found):
                        return
                    # A writer may have finished since. It works in order, so what is behind the gap vouches for it.
                    if isinstance(next(self._committed(segment, found.offset), found), Gap):
                        raise StoreDamaged(segment, found.offset, found.reason)
                    offset = found.offset
                    break
                yield Group(segment, found, Place(segment, found[-1].end))
            else:
                if not self.exists(segment + 1):
                    return
                segment, offset = segment + 1, SEGMENT_HEADER_SIZE

    def bytes_of(self, segment: int, size: int) -> Iterator[bytes]:
        """Yield the first `size` bytes of a segment, in pieces. Raises StoreDamaged where there are fewer."""
        fd, offset = self._fd(segment), 0
        while offset < size:
            piece = os.pread(fd, min(_PIECE, size - offset), offset)
            if not piece:
                raise StoreDamaged(segment, offset, "the segment became shorter")
            offset += len(piece)
            yield piece

    # ---- writing, only under the writer lock

    def repair_tail(self, end: Place) -> int:
        """Cut off what follows `end`, the end of the last whole group; return how many bytes went.

        What is cut was never acknowledged. Raises StoreRefuses after an earlier failure.
        """
        self._writable()
        cut = self._cut(end)
        if self.exists(end.segment + 1):
            # A writer died between beginning this segment and the end of its first group.
            self._begun = end.segment + 1
            cut += self._cut(Place(self._begun, SEGMENT_HEADER_SIZE))
        return cut

    def append(self, end: Place, payloads: Sequence[tuple[FrameKind, bytes]]) -> Group:
        """Append one group behind `end`, durably, and return its frames with their places.

        Nothing may follow `end`: where something did, `repair_tail` has cut it off.
        Raises StoreRefuses, and DiskFull or DiskFailed with nothing changed. After a failed sync what the disk holds is
        unknown: Unacknowledged says so, and the log takes no more until it is opened again.
        """
        self._writable()
        if end.offset >= ROTATE_AT or self._begun == end.segment + 1:
            end = self._rotate(end.segment)
        last = len(payloads) - 1
        encoded = [
            encode_frame(self.key, kind, payload, begins=i == 0, commits=i == last)
            for i, (kind, payload) in enumerate(payloads)
        ]
        fd = self._append_fd(end.segment)
        name = self._path(end.segment)
        with self._breaking():
            try:
                self._disk.append(fd, b"".join(encoded), name)
            except DiskFailed as error:
                self._disk.truncate(fd, end.offset, name)
                failure: DiskFailed | None = error
            else:
                failure = None
                self._sync(fd, name)
        if failure is not None:
            raise failure
        frames: list[Frame] = []
        offset = end.offset
        for (kind, payload), frame in zip(payloads, encoded, strict=True):
            position = len(frames)
            frames.append(
                Frame(offset=offset, kind=kind, begins=position == 0, commits=position == last, payload=payload)
            )
            offset += len(frame)
        return Group(end.segment, frames, Place(end.segment, offset))

    # ---- inside

    def _rotate(self, full: int) -> Place:
        header = SegmentHeader(store=self.store, number=full + 1, created=time.time_ns() // 1000)
        try:
            self._disk.create(self._path(full + 1), header.encode())
        except FileExistsError:
            # A writer that died here left it, and repair_tail has emptied it; but its name may not be durable.
            self._disk.sync_directory(self._folder)
        return Place(full + 1, SEGMENT_HEADER_SIZE)

    def _cut(self, end: Place) -> int:
        unfinished = self.size(end.segment) - end.offset
        if unfinished > 0:
            with self._breaking():
                self._disk.truncate(self._append_fd(end.segment), end.offset, self._path(end.segment))
        return max(0, unfinished)

    def _committed(self, segment: int, offset: int) -> Iterator[list[Frame] | Gap]:
        size = self.size(segment)
        if size <= offset:
            return
        # Read, not mapped: touching a map of bytes that a writer cuts off at that moment kills the process.
        fd = self._fd(segment)
        yield from committed(scan_windows(lambda at, wanted: _read(fd, wanted, at), self.key, offset, size))

    def _is_tail(self, segment: int, gap: Gap) -> bool:
        """Return whether nothing whole follows `gap`, so that it is what a crashed or a running writer leaves."""
        if self.exists(segment + 1):
            return False
        return not any(isinstance(found, list) for found in self._committed(segment, gap.end))

    def _path(self, segment: int) -> str:
        return os.path.join(self._folder, f"{segment:08d}{_SUFFIX}")

    def _fd(self, segment: int) -> int:
        fd = self._descriptors.get(segment)
        if fd is None:
            self._header(segment)
            fd = self._descriptors[segment]
        return fd

    def _header(self, segment: int) -> SegmentHeader:
        try:
            fd = os.open(self._path(segment), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise StoreDamaged(segment, 0, "the segment is missing") from error
        try:
            header = SegmentHeader.decode(os.pread(fd, SEGMENT_HEADER_SIZE, 0), segment=segment)
            if hasattr(self, "store") and header.store != self.store:
                raise StoreDamaged(segment, 0, "the segment belongs to another store")
        except CasError:
            os.close(fd)
            raise
        self._descriptors[segment] = fd
        return header

    def _append_fd(self, segment: int) -> int:
        if self._appending is None or self._appending[0] != segment:
            if self._appending is not None:
                os.close(self._appending[1])
            fd = os.open(self._path(segment), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            self._appending = (segment, fd)
        return self._appending[1]

    def _writable(self) -> None:
        if self._broken is not None:
            raise StoreRefuses(self._broken)

    def _sync(self, fd: int, name: str) -> None:
        try:
            self._disk.sync(fd, name)
        except DiskFailed as error:
            raise Unacknowledged(str(error)) from error

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._broken = str(error) or type(error).__name__
            raise


def _read(fd: int, size: int, offset: int) -> bytes:
    """Return `size` bytes from `offset`, or what there is; one read may stop short of 2 GiB."""
    content = os.pread(fd, size, offset)
    while len(content) < size:
        more = os.pread(fd, size - len(content), offset + len(content))
        if not more:
            break
        content += more
    return content


def create_log(folder: str, disk: Disk) -> None:
    """Make the first segment of a new store in the existing, empty `folder`."""
    header = SegmentHeader(store=StoreId(os.urandom(16)), number=1, created=time.time_ns() // 1000)
    with suppress(FileExistsError):
        disk.create(os.path.join(folder, f"{1:08d}{_SUFFIX}"), header.encode())
