"""The log: numbered append-only segments of frames. A group of frames is appended in one write and synced once.

Readers take no lock: they read up to the last group that is whole. Only the holder of the writer lock appends, and
before it does, it cuts off what a crashed writer left unfinished at the end.

A segment that is full may be written anew without what nothing holds: that is its next generation. Its frames lie at
offsets of their own, beyond those of the generation before, so that a place says which of the two files it is in.
"""

import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, pairwise
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
    RawFrame,
    SegmentHeader,
    StoreId,
    committed,
    encode_frame,
    frame_key,
    raw_frames,
    read_frame,
    scan_windows,
)
from objstore.moves import Moves

__all__ = ["GENERATION", "Group", "Log", "Place", "create_log", "newest_files", "segment_name"]

ROTATE_AT: Final = 64 << 20
"""Bytes after which a segment is full and the next one begins."""

GENERATION: Final = 1 << 40
"""How far apart the offsets of a segment's generations begin. A file of a terabyte would not be made."""

_NAME: Final = re.compile(r"([0-9]{8,})(?:\.([1-9][0-9]{0,5}))?\.seg")
_PREPARED: Final = ".new"
_MOVES: Final = ".moves"
_PIECE: Final = 1 << 20


class Place(NamedTuple):
    """Where a frame begins."""

    segment: int
    offset: int  # in the file, and GENERATION times the file's generation

    @property
    def generation(self) -> int:
        """Return the generation of the segment that the frame is in."""
        return self.offset // GENERATION

    @property
    def position(self) -> int:
        """Return the offset in the file, in bytes."""
        return self.offset % GENERATION


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
        self._generations: dict[int, int] = {}  # the newest of each segment, by the last look at the folder
        self._anew: dict[int, int] = {}  # those of them that are not 0
        self._looked = 0  # when the folder had last changed at that look, in ns
        self._descriptors: dict[tuple[int, int], int] = {}  # by segment and generation
        self._superseded: list[tuple[int, int]] = []  # of those, the ones that an earlier look found to be old
        self._moves: dict[int, tuple[int, Moves]] = {}  # of segments: to which generation, and what was read of it
        self._appending: tuple[int, int] | None = None  # segment and descriptor
        self._begun: int | None = None  # a segment without a group, which a writer left that died
        self._broken: str | None = None  # why it takes no more writes
        numbers = sorted(self._look())
        if not numbers:
            raise NotAWorkspace(os.path.dirname(folder))
        for number, following in pairwise(numbers):
            if following != number + 1:
                raise StoreDamaged(number + 1, 0, "the segment is missing")
        self.store: Final[StoreId] = self._header(numbers[0], self._generations[numbers[0]]).store
        self.key: Final[FrameKey] = frame_key(self.store)

    def close(self) -> None:
        """Close every segment."""
        for fd in self._descriptors.values():
            os.close(fd)
        self._descriptors.clear()
        if self._appending is not None:
            os.close(self._appending[1])
            self._appending = None

    @property
    def first(self) -> Place:
        """Return the place of the first frame."""
        return self._start(min(self._generations))

    def numbers(self) -> list[int]:
        """Return the numbers of the segments that there are, ascending."""
        return sorted(self._look())

    def total_bytes(self) -> int:
        """Return the size of all segments."""
        return sum(os.stat(self._path(*segment)).st_size for segment in self._look().items())

    # ---- generations

    def generations(self) -> dict[int, int]:
        """Return the generation of each segment that has been written anew, as of the last look at the folder.

        It is the same dictionary as long as nothing was.
        """
        return self._anew

    def refresh(self, *, anew: bool = False) -> None:
        """Look at the folder if it has changed. `anew`: even if it does not say so, as in the same tick of the clock.

        What a caller has got places of stays readable until two more segments' changes were seen.
        """
        if not anew and os.stat(self._folder).st_mtime_ns == self._looked:
            return
        known = self._anew
        self._look()
        if self._anew is not known:
            for old in self._superseded:
                os.close(self._descriptors.pop(old))
            self._superseded = [one for one in self._descriptors if one[1] < self._generations.get(one[0], 0)]

    def superseded(self) -> list[str]:
        """Return the paths of the files in the folder that are older generations, or that were never finished.

        Where frames went counts among them: to be asked when nobody needs that any more.
        """
        found = []
        for name in os.listdir(self._folder):
            matched = _NAME.match(name)
            if matched is not None:
                is_whole = matched.end() == len(name)
                if not is_whole or int(matched[2] or 0) < self._generations.get(int(matched[1]), 0):
                    found.append(os.path.join(self._folder, name))
        return found

    def newest(self, place: Place) -> Place | None:
        """Return where the frame lies that was at `place` (None: it is gone).

        It is `place` itself if the segment was not written anew since, or too long ago for anybody to know.
        """
        generation = self._generations.get(place.segment, 0)
        if place.offset >= generation * GENERATION:
            return place
        moves = self.moves(place.segment)
        if moves is None or place.generation != generation - 1:
            return place
        position = moves.get(place.position)
        return None if position is None else Place(place.segment, generation * GENERATION + position)

    def offsets_now(self, segments: Iterable[int]) -> Callable[[int, int], int | None]:
        """Return what says as `newest` does where frames of these segments lie, by segment and offset.

        It holds as long as no segment is written anew.
        """
        found = {}
        for segment in segments:
            moves = self.moves(segment)
            if moves is not None:
                found[segment] = self._generations[segment] * GENERATION, moves.get

        def offset_now(segment: int, offset: int) -> int | None:
            if segment not in found:
                return offset
            start, moved = found[segment]
            if not start - GENERATION <= offset < start:
                return offset
            position = moved(offset % GENERATION)
            return None if position is None else start + position

        return offset_now

    def moves(self, segment: int) -> Moves | None:
        """Return where frames went when the segment was last written anew (None: that is not kept, or damaged)."""
        generation = self._generations.get(segment, 0)
        kept = self._moves.get(segment)
        if kept is None or kept[0] != generation:
            try:
                with open(self._moves_path(segment, generation), "rb") as file:
                    moves = Moves.decode(file.read())
            except FileNotFoundError:
                return None
            if moves is None:
                return None
            kept = self._moves[segment] = generation, moves
        return kept[1]

    def keep_moves(self, segment: int, moves: Moves) -> None:
        """Keep, durably, where frames go when the prepared file of the segment takes its name."""
        self._disk.create(self._moves_path(segment, self._generations[segment] + 1), moves.encode())

    def forget_moves(self, segment: int) -> None:
        """Remove what `keep_moves` kept: nothing is where it was, or everybody knows where it is."""
        for generation in (self._generations[segment], self._generations[segment] + 1):
            with suppress(FileNotFoundError):
                self._disk.remove_store_file(self._moves_path(segment, generation))

    def prepare(self, segment: int, pieces: Iterator[bytes]) -> str:
        """Write a segment's next generation from its frames, durably, under a name that nobody reads; return its path.

        Raises DiskFull and DiskFailed with nothing left behind.
        """
        path = self._path(segment, self._generations[segment] + 1) + _PREPARED
        header = SegmentHeader(store=self.store, number=segment, created=time.time_ns() // 1000)
        self._disk.create(path, chain([header.encode()], pieces))
        return path

    def adopt(self, prepared: str, segment: int) -> str:
        """Let a prepared file take its name; return the path of the generation that it supersedes."""
        old = self._path(segment, self._generations[segment])
        final = prepared.removesuffix(_PREPARED)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._disk.replace(folder, os.path.basename(prepared), folder, os.path.basename(final))
        finally:
            os.close(folder)
        self._disk.sync_directory(self._folder)
        return old

    def seal(self, end: Place) -> Place:
        """Begin the next segment behind `end`, so that the one before may be written anew; return where it begins.

        Only under the writer lock. Raises StoreRefuses, DiskFull and DiskFailed.
        """
        self._writable()
        return self._rotate(end.segment)

    def sync_names(self) -> None:
        """Make durable which files there are, so that what was removed stays removed. Raises DiskFull, DiskFailed."""
        self._disk.sync_directory(self._folder)

    def _encoded(self, payloads: Sequence[tuple[FrameKind, bytes]]) -> list[bytes]:
        """Return the frames of one group."""
        last = len(payloads) - 1
        return [
            encode_frame(self.key, kind, payload, begins=i == 0, commits=i == last)
            for i, (kind, payload) in enumerate(payloads)
        ]

    def _look(self) -> dict[int, int]:
        """Look at the folder, open the newest generation of each segment, and return them."""
        while True:
            # Before the names are read: what comes after is looked at the next time.
            try:
                looked = os.stat(self._folder).st_mtime_ns
                names = set(os.listdir(self._folder))
            except FileNotFoundError:
                return self._generations
            found: dict[int, int] = {}
            for matched in filter(None, map(_NAME.fullmatch, names)):
                segment, generation = int(matched[1]), int(matched[2] or 0)
                found[segment] = max(generation, found.get(segment, 0))
            # Held open, what places name can be read, even if the file is superseded and removed.
            if not hasattr(self, "store") or all(map(self._is_open, found.items())):
                self._looked, self._generations = looked, found
                self._keep_up(names)
                anew = {segment: generation for segment, generation in found.items() if generation}
                self._anew = self._anew if anew == self._anew else anew
                return found

    def _keep_up(self, names: Collection[str]) -> None:
        """Read at once where frames went: a sweep removes that when all who come later can do without it."""
        for segment, generation in self._generations.items():
            if generation and os.path.basename(self._moves_path(segment, generation)) in names:
                self.moves(segment)

    def _is_open(self, one: tuple[int, int]) -> bool:
        """Return whether the generation of the segment could be opened (or is damaged, which shows when it is read)."""
        try:
            self._fd(*one)
        except StoreDamaged:
            return os.path.exists(self._path(*one))
        return True

    def _start(self, segment: int) -> Place:
        return Place(segment, self._generations.get(segment, 0) * GENERATION + SEGMENT_HEADER_SIZE)

    # ---- reading

    def size(self, segment: int) -> int:
        """Return the size of the segment's newest generation in bytes."""
        return os.fstat(self._fd(segment, self._generations.get(segment, 0))).st_size

    def reaches(self, place: Place) -> bool:
        """Return whether the log has as many bytes as lie before `place`."""
        return os.fstat(self._fd(place.segment, place.generation)).st_size >= place.position

    def ends_at(self, place: Place) -> bool:
        """Return whether nothing follows `place`, not even something unfinished."""
        size = os.fstat(self._fd(place.segment, place.generation)).st_size
        return size == place.position and not self.exists(place.segment + 1)

    def bytes_behind(self, place: Place) -> int:
        """Return how many bytes follow `place` in its segment. Raises StoreDamaged where that is not there any more."""
        return os.fstat(self._fd(place.segment, place.generation)).st_size - place.position

    def next_start(self, end: Place) -> Place | None:
        """Return where the log goes on behind a segment that ends at `end` (None: it has not begun the next one)."""
        size = os.fstat(self._fd(end.segment, end.generation)).st_size
        return self._start(end.segment + 1) if size == end.position and self.exists(end.segment + 1) else None

    def exists(self, segment: int) -> bool:
        """Return whether there is a segment of this number."""
        if segment in self._generations or os.access(self._path(segment, 0), os.F_OK):
            return True
        self.refresh()
        return segment in self._generations

    def read(self, place: Place) -> Frame:
        """Return the frame at `place`, or where that is now. Raises StoreDamaged."""
        place = self.newest(place) or place
        fd = self._fd(place.segment, place.generation)
        # One read gets most frames whole; the header's length says how much is left of the others.
        head = os.pread(fd, 4096, place.position)
        found = read_frame(head, self.key, 0, base=place.offset)
        if isinstance(found, Gap) and len(head) >= FRAME_HEADER_SIZE:
            length = int.from_bytes(head[8:16], "little")
            size = os.fstat(fd).st_size - place.position
            if FRAME_HEADER_SIZE + length > len(head) and FRAME_HEADER_SIZE + length <= size:
                whole = head + _read(fd, FRAME_HEADER_SIZE + length - len(head), place.position + len(head))
                found = read_frame(whole, self.key, 0, base=place.offset)
        if isinstance(found, Gap):
            raise StoreDamaged(place.segment, place.position, found.reason)
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
                        raise StoreDamaged(segment, Place(segment, found.offset).position, found.reason)
                    offset = found.offset
                    break
                yield Group(segment, found, Place(segment, found[-1].end))
            else:
                if not self.exists(segment + 1):
                    return
                segment, offset = self._start(segment + 1)

    def raw_frames(self, start: Place) -> Iterator[RawFrame]:
        """Yield the frames of a full segment, of the generation that `start` names. Raises StoreDamaged."""
        fd = self._fd(start.segment, start.generation)
        end = os.fstat(fd).st_size
        for found in raw_frames(lambda at, size: _read(fd, size, at), self.key, SEGMENT_HEADER_SIZE, end):
            if isinstance(found, Gap):
                raise StoreDamaged(start.segment, found.offset, found.reason)
            yield found

    def piece(self, place: Place, size: int) -> bytes:
        """Return `size` bytes from `place` on, or what there is. Raises StoreDamaged."""
        return os.pread(self._fd(place.segment, place.generation), size, place.position)

    def bytes_of(self, segment: int, size: int) -> Iterator[bytes]:
        """Yield the first `size` bytes of a segment, in pieces. Raises StoreDamaged where there are fewer."""
        fd, offset = self._fd(segment, self._generations.get(segment, 0)), 0
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

    @property
    def refuses(self) -> bool:
        """Return whether it takes no more writes until it is opened again."""
        return self._broken is not None

    def secure(self, start: Place | None) -> None:
        """Make durable what a writer left that died, or whose sync failed and who could not even cut the group off.

        `start`: behind what is known to be durable; None: the machine has started anew since, so that all that can be
        read has come from the disk. Raises StoreRefuses, DiskFull and DiskFailed.
        """
        self._writable()
        group = None if start is None else self._last_group(start)
        if group is not None and group.end.generation:
            group = None  # what was written anew was durable before it had its name
        segment = max(self._generations) if group is None else group.segment
        name = self._path(segment, 0)
        with self._breaking():
            fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC)
            try:
                if group is not None:
                    # Each writer makes sure of what was there, so only the last group can be in doubt. After a failed
                    # sync the system takes it for written; only bytes that are written again are sent to the disk.
                    offset, end = group.frames[0].offset, group.end.offset
                    while offset < end:
                        piece = _read(self._fd(segment, 0), min(_PIECE, end - offset), offset)
                        self._disk.overwrite(fd, piece, offset, name)
                        offset += len(piece)
                self._disk.sync(fd, name)
            finally:
                os.close(fd)

    def append(self, end: Place, payloads: Sequence[tuple[FrameKind, bytes]]) -> Group:
        """Append one group behind `end`, durably, and return its frames with their places.

        Nothing may follow `end`: where something did, `repair_tail` has cut it off.
        Raises StoreRefuses, and DiskFull or DiskFailed with nothing changed. After a failed sync the group is cut off,
        and the log takes no more until it is opened again; Unacknowledged says that not even that was possible.
        """
        self._writable()
        if end.offset >= ROTATE_AT or self._begun == end.segment + 1:
            end = self._rotate(end.segment)
        elif end.offset == SEGMENT_HEADER_SIZE and end != self.first:
            # Who began the segment may have died before its name was durable.
            self._disk.sync_directory(self._folder)
        last = len(payloads) - 1
        encoded = self._encoded(payloads)
        fd = self._append_fd(end.segment)
        name = self._path(end.segment, 0)
        with self._breaking():
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
            self._disk.create(self._path(full + 1, 0), header.encode())
        except FileExistsError:
            # A writer that died here left it, and repair_tail has emptied it; but its name may not be durable.
            self._disk.sync_directory(self._folder)
        return Place(full + 1, SEGMENT_HEADER_SIZE)

    def _last_group(self, start: Place) -> Group | None:
        """Return the last group behind `start` (None: there is none, or no group ends there)."""
        last = None
        with suppress(StoreDamaged):
            for group in self.groups(start):
                last = group
        return last

    def _cut(self, end: Place) -> int:
        # The last segment is never written anew: it is sealed before.
        unfinished = os.fstat(self._fd(end.segment, 0)).st_size - end.offset
        if unfinished > 0:
            with self._breaking():
                self._disk.truncate(self._append_fd(end.segment), end.offset, self._path(end.segment, 0))
        return max(0, unfinished)

    def _committed(self, segment: int, offset: int) -> Iterator[list[Frame] | Gap]:
        start = Place(segment, offset)
        if start.generation != self._generations.get(segment, 0):
            raise StoreDamaged(segment, start.position, "the segment has been written anew since")
        fd = self._fd(segment, start.generation)
        size = os.fstat(fd).st_size
        if size <= start.position:
            return
        base = start.generation * GENERATION
        # Read, not mapped: touching a map of bytes that a writer cuts off at that moment kills the process.
        yield from committed(
            scan_windows(lambda at, wanted: _read(fd, wanted, at - base), self.key, offset, base + size)
        )

    def _is_tail(self, segment: int, gap: Gap) -> bool:
        """Return whether nothing whole follows `gap`, so that it is what a crashed or a running writer leaves."""
        if self.exists(segment + 1):
            return False
        return not any(isinstance(found, list) for found in self._committed(segment, gap.end))

    def _path(self, segment: int, generation: int) -> str:
        return os.path.join(self._folder, segment_name(segment, generation))

    def _moves_path(self, segment: int, generation: int) -> str:
        return self._path(segment, generation) + _MOVES

    def _fd(self, segment: int, generation: int) -> int:
        fd = self._descriptors.get((segment, generation))
        if fd is None:
            self._header(segment, generation)
            fd = self._descriptors[segment, generation]
        return fd

    def _header(self, segment: int, generation: int) -> SegmentHeader:
        try:
            fd = os.open(self._path(segment, generation), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise StoreDamaged(segment, 0, "the segment is missing") from error
        try:
            header = SegmentHeader.decode(os.pread(fd, SEGMENT_HEADER_SIZE, 0), segment=segment)
            if hasattr(self, "store") and header.store != self.store:
                raise StoreDamaged(segment, 0, "the segment belongs to another store")
        except CasError:
            os.close(fd)
            raise
        self._descriptors[segment, generation] = fd
        return header

    def _append_fd(self, segment: int) -> int:
        if self._appending is None or self._appending[0] != segment:
            if self._appending is not None:
                os.close(self._appending[1])
            fd = os.open(self._path(segment, 0), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            self._appending = (segment, fd)
        return self._appending[1]

    def _writable(self) -> None:
        if self._broken is not None:
            raise StoreRefuses(self._broken)

    def _sync(self, fd: int, end: Place, name: str) -> None:
        """Make the group behind `end` durable, or take it back: in memory it is whole, for all processes to see."""
        try:
            self._disk.sync(fd, name)
        except DiskFailed as error:
            try:
                self._disk.truncate(fd, end.offset, name)
                self._disk.sync(fd, name)
            except DiskFailed as failure:
                raise Unacknowledged(str(error)) from failure
            raise

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


def segment_name(segment: int, generation: int) -> str:
    """Return the name of a segment's file."""
    return f"{segment:08d}.{generation}.seg" if generation else f"{segment:08d}.seg"


def newest_files(names: Collection[str]) -> list[str]:
    """Return those names of segment files that no newer generation supersedes, and what is named in no such way."""
    newest: dict[int, int] = {}
    numbered = {name: matched for name in names if (matched := _NAME.fullmatch(name)) is not None}
    for matched in numbered.values():
        newest[int(matched[1])] = max(int(matched[2] or 0), newest.get(int(matched[1]), 0))
    return [
        name for name in names if name not in numbered or newest[int(numbered[name][1])] == int(numbered[name][2] or 0)
    ]


def create_log(folder: str, disk: Disk) -> None:
    """Make the first segment of a new store in the existing, empty `folder`."""
    header = SegmentHeader(store=StoreId(os.urandom(16)), number=1, created=time.time_ns() // 1000)
    with suppress(FileExistsError):
        disk.create(os.path.join(folder, segment_name(1, 0)), header.encode())
