"""Generations: the files of a log's segments, which of them count, and where frames went from one to the next.

A segment that is full may be written anew without what nothing holds: that is its next generation. Its frames lie at
offsets of their own, beyond those of the generation before, so that a place says which of the two files it is in.
"""

import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

from objstore.clock import now
from objstore.errors import CasError, NotAWorkspace, StoreDamaged, StoreLinked, StoreNotRegular, StoreReplaced
from objstore.fastclass import NamedTuple
from objstore.fs.disk import Disk
from objstore.fs.nofollow import open_store_file, open_store_folder, read_store_file
from objstore.log.frames import SEGMENT_HEADER_SIZE, FrameKey, SegmentHeader, StoreId, frame_key

if TYPE_CHECKING:
    from objstore.log.frame_moves import FrameMoves

__all__ = [
    "GENERATION",
    "NO_FILE",
    "Place",
    "SegmentFiles",
    "generation_of",
    "is_segment",
    "newest_files",
    "open_segment",
    "pread",
    "segment_name",
]

GENERATION: Final = 1 << 40
"""How far apart the offsets of a segment's generations begin. A file of a terabyte would not be made."""

_SUFFIX: Final = ".seg"
_GENERATION_DIGITS: Final = 6
"""Digits of a generation in such a name, at most."""

_HELD_SECONDS: Final = 60.0
"""How long an older generation is held open at most, once it was seen that there is a newer one: as long, its room on
the disk is not free, though its name has gone."""

_MANY_FILES: Final = 32
"""Segments after which it is seen to that more files can be opened: systems let a process have 256 or 1,024, and more
if it asks."""

_LOGS: Final = 4
"""How often a process may have the same log open: what takes long opens it for itself."""

_PREPARED: Final = ".new"
_MOVES: Final = ".moves"
_MAKING_DIGITS: Final = 16
"""Digits behind the name of a file that is being made."""

_HEXADECIMAL: Final = frozenset("0123456789abcdef")

_NEVER: Final = (0, 0)
"""In place of when a folder had changed: whatever it says, it is looked at."""

NO_FILE: Final = "it is not a regular file"
"""What is wrong with something else that has a segment's name."""


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

    def damaged(self, reason: str) -> StoreDamaged:
        """Return the error that something is wrong there, with the position that a person finds in the file."""
        return StoreDamaged(self.segment, self.position, reason)


class SegmentFiles:
    """The files of one log's segments, open for reading. A process holds the newest generation of each open."""

    def __init__(self, folder: str, disk: Disk) -> None:
        """Open those in `folder`. Raises NotAWorkspace, StoreLinked, StoreDamaged or FormatTooNew."""
        self._folder: Final = folder
        self._disk: Final = disk
        self._generations: dict[int, int] = {}  # the newest of each segment, by the last look at the folder
        self._anew: dict[int, int] = {}  # those of them that are not 0
        self._looked = _NEVER  # when the folder had last changed at that look
        self._descriptors: dict[tuple[int, int], int] = {}  # by segment and generation
        self._superseded: list[tuple[int, int]] = []  # of those, the ones that an earlier look found to be old
        self._superseded_at = 0.0  # when it did, by the monotonic clock
        self._moves: dict[int, tuple[int, FrameMoves]] = {}  # of segments: to which generation, and what was read of it
        try:
            self._found: Final = os.lstat(folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotAWorkspace(os.path.dirname(os.path.dirname(folder))) from error
        if stat.S_ISLNK(self._found.st_mode):
            raise StoreLinked(folder)
        self.store: Final[StoreId] = self._store()
        self.key: Final[FrameKey] = frame_key(self.store)

    def close(self) -> None:
        """Close every file."""
        for fd in self._descriptors.values():
            os.close(fd)
        self._descriptors.clear()

    @property
    def first(self) -> Place:
        """Return the place of the first frame."""
        return self._start(min(self._generations))

    def numbers(self) -> list[int]:
        """Return the numbers of the segments that there are, ascending."""
        return sorted(self._look())

    def total_bytes(self) -> int:
        """Return the size of all segments."""
        return sum(self._bytes(*segment) for segment in self._look().items())

    def size(self, segment: int) -> int:
        """Return the size of the segment's newest generation in bytes."""
        return os.fstat(self._fd(segment, self._generations.get(segment, 0))).st_size

    def exists(self, segment: int) -> bool:
        """Return whether there is a segment of this number."""
        if segment in self._generations or os.access(self._path(segment, 0), os.F_OK):
            return True
        self.refresh()
        return segment in self._generations

    def sync_names(self) -> None:
        """Make durable which files there are, so that what was removed stays removed. Raises DiskFull, DiskFailed."""
        self._disk.sync_directory(self._folder)

    # ---- generations

    def generations(self) -> dict[int, int]:
        """Return the generation of each segment that has been written anew, as of the last look at the folder.

        It is the same dictionary as long as nothing was.
        """
        return self._anew

    def refresh(self, *, anew: bool = False) -> None:
        """Look at the folder if it has changed. `anew`: even if it does not say so, as in the same tick of the clock.

        What a caller has got places of stays readable until two more segments' changes were seen, or for a minute; a
        file that is being read from one end to the other, until its end. Raises StoreReplaced.
        """
        if self.require_in_place() == self._looked and not anew:
            if self._superseded and time.monotonic() - self._superseded_at > _HELD_SECONDS:
                self._close_superseded()
            return
        self._look()

    def invalidate_listing(self) -> None:
        """Have the next `refresh` look at the folder, whatever that says: what it is known to hold is not there."""
        self._looked = _NEVER

    def require_in_place(self) -> tuple[int, int]:
        """Return when the folder last changed, in ns. Raises StoreReplaced where its name leads to it no more.

        By two times: who puts a backup back gives the folder the first one again, and nobody can set the second.
        """
        try:
            found = os.lstat(self._folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise StoreReplaced(self._folder) from error
        if not os.path.samestat(found, self._found):
            raise StoreReplaced(self._folder)
        return found.st_mtime_ns, found.st_ctime_ns

    def _close_superseded(self) -> None:
        """Close the files that an earlier look found to be old.

        Not on this thread: who closes a removed file last gives its room back, which takes 100 ms for 64 MiB of ext4,
        and this one may hold the writer lock.
        """
        closing = self._outdated()
        if closing:
            from threading import Thread

            Thread(target=_close, args=(closing,), name="closing").start()

    def release_superseded(self) -> None:
        """Close them at once, for who holds no lock and waits for their room."""
        _close(self._outdated())

    def _outdated(self) -> list[int]:
        outdated = [self._descriptors.pop(old) for old in self._superseded]
        self._superseded = []
        return outdated

    def superseded(self) -> list[str]:
        """Return the paths of the files in the folder that are older generations, or that were never finished.

        Where frames went counts among them: to be asked when nobody needs that any more.
        """
        found = []
        for name in os.listdir(self._folder):
            whole, suffix, rest = name.partition(_SUFFIX)
            named = _named(whole + suffix)
            if named is None:
                continue
            if _is_unfinished(rest) if rest else named[1] < self._generations.get(named[0], 0):
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

    def start_after_rewrite(self, start: Place) -> Place:
        """Return where the groups begin now that began at `start` or behind it, in its segment.

        It is `start` itself where `newest` would say so.
        """
        generation = self._generations.get(start.segment, 0)
        moves = self.moves(start.segment) if start.generation == generation - 1 else None
        if moves is None:
            return start
        position = moves.at_or_behind(start.position)
        return Place(
            start.segment,
            generation * GENERATION + (self.size(start.segment) if position is None else position),
        )

    def offsets_now(self, segments: Iterable[int]) -> Callable[[int, int], int | None]:
        """Return what says as `newest` does where frames of these segments lie, by segment and offset.

        It holds as long as no segment is written anew.
        """
        found = {}
        for segment in segments:
            moves = self.moves(segment)
            if moves is not None:
                start = self._generations[segment] * GENERATION
                found[segment] = start - GENERATION, start, moves.quick()
        of_segment = found.get

        # Asked for each row of the index: what it says is said in as few steps as there are.
        def offset_now(segment: int, offset: int) -> int | None:
            known = of_segment(segment)
            if known is None:
                return offset
            before, start, moved = known
            if not before <= offset < start:
                return offset
            position = moved(offset - before)
            return None if position is None else start + position

        return offset_now

    def moves(self, segment: int) -> "FrameMoves | None":
        """Return where frames went when the segment was last written anew (None: that is not kept, or damaged)."""
        generation = self._generations.get(segment, 0)
        kept = self._moves.get(segment)
        if kept is None or kept[0] != generation:
            try:
                read = read_store_file(self._moves_path(segment, generation))
            except (FileNotFoundError, StoreNotRegular):
                return None
            from objstore.log.frame_moves import FrameMoves

            moves = FrameMoves.decode(read)
            if moves is None:
                return None
            kept = self._moves[segment] = generation, moves
        return kept[1]

    def write_frame_moves(self, segment: int, moves: "FrameMoves") -> None:
        """Keep, durably, where frames go when the prepared file of the segment takes its name."""
        self._disk.create(self._moves_path(segment, self._generations[segment] + 1), moves.encode())

    def delete_frame_moves(self, segment: int) -> None:
        """Remove what `keep_moves` kept: nothing is where it was, or everybody knows where it is."""
        for generation in (self._generations[segment], self._generations[segment] + 1):
            with suppress(FileNotFoundError):
                self._disk.remove_store_file(self._moves_path(segment, generation))

    def prepare(self, segment: int, pieces: Iterator[bytes]) -> str:
        """Write a segment's next generation from its frames, durably, under a name that nobody reads; return its path.

        Raises DiskFull and DiskFailed with nothing left behind.
        """
        path = self._path(segment, self._generations[segment] + 1) + _PREPARED
        header = SegmentHeader(store=self.store, number=segment, created=now())
        self._disk.create(path, chain([header.encode()], pieces))
        return path

    def adopt(self, prepared: str, segment: int) -> str:
        """Let a prepared file take its name; return the path of the generation that it supersedes."""
        old = self._path(segment, self._generations[segment])
        final = prepared.removesuffix(_PREPARED)
        with open_store_folder(self._folder) as folder:
            self._disk.replace(folder, os.path.basename(prepared), folder, os.path.basename(final))
        self._disk.sync_directory(self._folder)
        return old

    # ---- inside

    def _store(self) -> StoreId:
        """Look at the folder for the first time, and return what its first segment tells."""
        while True:
            numbers = sorted(self._look())
            if not numbers:
                raise StoreDamaged(1, 0, "there is no segment")
            for number, following in pairwise([0, *numbers]):
                if following != number + 1:
                    raise StoreDamaged(number + 1, 0, "the segment is missing")
            first = numbers[0], self._generations[numbers[0]]
            try:
                return self._header(*first).store
            except StoreDamaged:
                if os.path.lexists(self._path(*first)):
                    raise
                # It has been written anew since the folder was looked at.

    def _look(self) -> dict[int, int]:
        """Look at the folder, open the newest generation of each segment, and return them.

        Raises StoreReplaced, and StoreDamaged where a file is listed again that is not to be found.
        """
        before: set[str] | None = None
        while True:
            # Before the names are read: what comes after is looked at the next time.
            looked = self.require_in_place()
            try:
                names = set(os.listdir(self._folder))
            except FileNotFoundError:
                continue
            found: dict[int, int] = {}
            for segment, generation in filter(None, map(_named, names)):
                found[segment] = max(generation, found.get(segment, 0))
            self._see_last(found)
            # Held open, what places name can be read, even if the file is superseded and removed.
            missing = [one for one in found.items() if not self._is_open(one)] if hasattr(self, "store") else []
            if not missing:
                self._looked, self._generations = looked, found
                self._keep_up(names)
                anew = {segment: generation for segment, generation in found.items() if generation}
                if anew != self._anew:
                    self._anew = anew
                    self._close_superseded()
                    self._superseded = [one for one in self._descriptors if one[1] < found.get(one[0], 0)]
                    self._superseded_at = time.monotonic()
                return found
            if names == before:
                raise StoreDamaged(missing[0][0], 0, "the segment is in the folder, but is not found")
            before = names

    def _see_last(self, found: dict[int, int]) -> None:
        """Raise StoreReplaced where the last segment that was known is another file now, or is gone.

        Only there, for there the log goes on: a full segment is as good as a copy of it.
        """
        last = max(self._generations, default=0)
        fd = self._descriptors.get((last, self._generations.get(last, 0)))
        if fd is None or found.get(last, -1) > self._generations[last]:
            return
        path = self._path(last, self._generations[last])
        # One of a higher generation may have come, and this one gone, since the names were read.
        with suppress(FileNotFoundError):
            if last not in found or not os.path.samestat(os.stat(path), os.fstat(fd)):
                raise StoreReplaced(path)

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

    def _path(self, segment: int, generation: int) -> str:
        return f"{self._folder}/{segment_name(segment, generation)}"

    def _moves_path(self, segment: int, generation: int) -> str:
        return self._path(segment, generation) + _MOVES

    def _bytes(self, segment: int, generation: int) -> int:
        # Not by its name, where that can be: a collection removes it as soon as there is a newer generation.
        try:
            return os.fstat(self._fd(segment, generation)).st_size
        except StoreDamaged as error:
            try:
                return os.stat(self._path(segment, generation)).st_size
            except FileNotFoundError:
                raise error from None

    def _fd(self, segment: int, generation: int) -> int:
        fd = self._descriptors.get((segment, generation))
        if fd is None:
            self._header(segment, generation)
            fd = self._descriptors[segment, generation]
        return fd

    @contextmanager
    def _kept_open(self, segment: int, generation: int) -> Iterator[int]:
        """Give a descriptor of the file that stays open until all of it is read, though a newer one comes meanwhile."""
        fd = os.dup(self._fd(segment, generation))
        try:
            yield fd
        finally:
            os.close(fd)

    def _header(self, segment: int, generation: int) -> SegmentHeader:
        try:
            fd = open_segment(self._path(segment, generation))
        except FileNotFoundError as error:
            raise StoreDamaged(segment, 0, "the segment is missing") from error
        if fd is None:
            raise StoreDamaged(segment, 0, NO_FILE)
        try:
            header = SegmentHeader.decode(pread(fd, SEGMENT_HEADER_SIZE, 0, segment), segment=segment)
            if hasattr(self, "store") and header.store != self.store:
                raise StoreDamaged(segment, 0, "the segment belongs to another store")
        except CasError:
            os.close(fd)
            raise
        self._descriptors[segment, generation] = fd
        if len(self._descriptors) % _MANY_FILES == 0:
            _allow_files(_LOGS * (len(self._descriptors) + _MANY_FILES))
        return header


def _allow_files(wanted: int) -> None:
    """Let this process have so many files open, or as many as it may let itself."""
    import resource  # most stores have a few segments

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _close(descriptors: Iterable[int]) -> None:
    for fd in descriptors:
        os.close(fd)


def pread(fd: int, size: int, position: int, segment: int) -> bytes:
    """Return up to `size` bytes of a segment's file. Raises StoreDamaged where the disk can't read them."""
    try:
        return os.pread(fd, size, position)
    except OSError as error:
        raise StoreDamaged(segment, position, error.strerror or str(error)) from error


def open_segment(path: str) -> int | None:
    """Return a descriptor of a segment's file, to be read (None: what stands there is no regular file).

    Raises StoreLinked, FileNotFoundError and what else the system says.
    """
    try:
        return open_store_file(path, os.O_RDONLY)
    except StoreNotRegular:
        return None


def segment_name(segment: int, generation: int) -> str:
    """Return the name of a segment's file."""
    return f"{segment:08d}.{generation}.seg" if generation else f"{segment:08d}.seg"


def _named(name: str) -> tuple[int, int] | None:
    """Return the segment and the generation that a file's name says (None: it is no segment's)."""
    number, dot, generation = name.removesuffix(_SUFFIX).partition(".")
    if not _is_number(number) or (dot and not _is_number(generation)) or len(generation) > _GENERATION_DIGITS:
        return None
    named = int(number), int(generation or 0)
    # Only as we spell it: a file of any other name is one that nothing would find.
    return named if segment_name(*named) == name else None


def is_segment(name: str) -> bool:
    """Return whether a file's name is a segment's: others in the folder are ignored."""
    return _named(name) is not None


def generation_of(name: str) -> int:
    """Return which generation of its segment a file's name says it is (0: also of what is no segment's)."""
    named = _named(name)
    return 0 if named is None else named[1]


def _is_unfinished(rest: str) -> bool:
    """Return whether what follows a segment's name is what making it, or writing it anew, puts there."""
    made, _, digits = rest.rpartition(".")
    if made in {"", _PREPARED, _MOVES} and len(digits) == _MAKING_DIGITS and set(digits) <= _HEXADECIMAL:
        return True
    return rest in {_PREPARED, _MOVES}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def newest_files(names: Collection[str]) -> list[str]:
    """Return those names of segment files that no newer generation supersedes, and what is named in no such way."""
    newest: dict[int, int] = {}
    numbered = {name: named for name in names if (named := _named(name)) is not None}
    for segment, generation in numbered.values():
        newest[segment] = max(generation, newest.get(segment, 0))
    return [name for name in names if name not in numbered or newest[numbered[name][0]] == numbered[name][1]]
