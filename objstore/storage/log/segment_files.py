"""Open the files of a log's segments, and select the newest generation of each.

Compaction may rewrite a full segment without the blobs that nothing holds; the new file is the segment's next
generation. The offsets of its frames are beyond those of the generation before, so that a place determines which of the
two files it is in. A file that was open when it was superseded remains readable until no one uses the store.
"""

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, pairwise
from typing import Final

from objstore.disk.fs.disk import Disk
from objstore.disk.fs.nofollow import open_store_file, open_store_folder
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE, FrameKey, SegmentHeader, StoreId, frame_key
from objstore.values.clock import now
from objstore.values.errors import CasError, NotAWorkspace, StoreDamaged, StoreLinked, StoreNotRegular, StoreReplaced
from objstore.values.fastclass import NamedTuple

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
"""Distance between the first offsets of two generations of a segment. No segment grows to a terabyte."""

_SUFFIX: Final = ".seg"
_NUMBER_DIGITS: Final = 8
_GENERATION_DIGITS: Final = 6
"""Most digits of a generation in a file name."""

_MANY_FILES: Final = 32
"""Open segments after which to raise the limit of open files: systems allow 256 or 1,024, and more on request."""

_LOGS_PER_PROCESS: Final = 4
"""How often a process may have the same log open: long operations open it for themselves."""

_PREPARED: Final = ".new"
_CREATION_DIGITS: Final = 16
"""Digits at the end of the name of a file that is being created."""

_HEXADECIMAL: Final = frozenset("0123456789abcdef")

_NEVER: Final = (0, 0)
"""In place of the folder's times: makes the next refresh list the folder."""

NO_FILE: Final = "it is not a regular file"
"""The reason for a file that has a segment's name and isn't a regular file."""


class Place(NamedTuple):
    """The address of a frame."""

    segment: int
    offset: int  # in the file, plus GENERATION times the file's generation

    @property
    def generation(self) -> int:
        """Return the generation of the segment that the frame is in."""
        return self.offset // GENERATION

    @property
    def position(self) -> int:
        """Return the offset in the file, in bytes."""
        return self.offset % GENERATION

    def damaged(self, reason: str) -> StoreDamaged:
        """Return the error for damage at this place, with the position in the file."""
        return StoreDamaged(self.segment, self.position, reason)


class SegmentFiles:
    """The files of one log's segments, open for reading; a process keeps the newest generation of each one open."""

    def __init__(self, folder: str, disk: Disk) -> None:
        """Open the segments in `folder`.

        Raises NotAWorkspace, StoreLinked, StoreDamaged, FormatTooNew or FormatTooOld.
        """
        self._folder: Final = folder
        self._disk: Final = disk
        self._generations: dict[int, int] = {}  # the newest of each segment, as of the last listing
        self._rewritten: dict[int, int] = {}  # those of them that are not 0
        self._listed_at = _NEVER  # the folder's times at that listing
        self._descriptors: dict[tuple[int, int], int] = {}  # by segment and generation
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
        return self.start(min(self._generations))

    @property
    def last(self) -> int:
        """Return the number of the last segment, as of the last listing of the folder."""
        return max(self._generations)

    def numbers(self) -> list[int]:
        """Return the numbers of the existing segments, ascending."""
        return sorted(self._list())

    def total_bytes(self) -> int:
        """Return the size of all segments in bytes."""
        return sum(self._bytes(*segment) for segment in self._list().items())

    def size(self, segment: int) -> int:
        """Return the size of the segment's newest generation in bytes."""
        return os.fstat(self.descriptor(segment, self.generation(segment))).st_size

    def exists(self, segment: int) -> bool:
        """Return whether a segment has this number."""
        if segment in self._generations or os.access(self.path(segment, 0), os.F_OK):
            return True
        self.refresh()
        return segment in self._generations

    def sync_names(self) -> None:
        """Make the folder's list of files durable, so that removed files stay removed. Raises DiskFull, DiskFailed."""
        self._disk.sync_directory(self._folder)

    def start(self, segment: int) -> Place:
        """Return the place of the segment's first frame, in a file that is open from now on.

        A reader that listed the folder before compactions would else find that the segment is missing.
        """
        if not self._can_open((segment, self.generation(segment))):
            self._list()
        return Place(segment, self.generation(segment) * GENERATION + SEGMENT_HEADER_SIZE)

    def path(self, segment: int, generation: int) -> str:
        """Return the path of a segment's file."""
        return f"{self._folder}/{segment_name(segment, generation)}"

    def descriptor(self, segment: int, generation: int) -> int:
        """Return a descriptor for reading a segment's file, open until a newer generation supersedes it.

        Raises StoreDamaged.
        """
        fd = self._descriptors.get((segment, generation))
        if fd is None:
            self._header(segment, generation)
            fd = self._descriptors[segment, generation]
        return fd

    @contextmanager
    def kept_open(self, segment: int, generation: int) -> Iterator[int]:
        """Yield a descriptor of the file that stays open until all of it is read, even if a newer one supersedes it."""
        fd = os.dup(self.descriptor(segment, generation))
        try:
            yield fd
        finally:
            os.close(fd)

    # ---- generations

    def generation(self, segment: int) -> int:
        """Return the segment's newest generation, as of the last listing of the folder."""
        return self._generations.get(segment, 0)

    def generations(self) -> dict[int, int]:
        """Return the generation of each rewritten segment, as of the last listing of the folder.

        The same dictionary is returned until a segment is rewritten.
        """
        return self._rewritten

    def refresh(self, *, force: bool = False) -> None:
        """List the folder again if it has changed.

        `force`: even if its times are the same, as within one tick of the clock.

        Superseded files remain readable until `close_superseded`. Raises StoreReplaced.
        """
        if force or self.require_in_place() != self._listed_at:
            self._list()

    def invalidate_listing(self) -> None:
        """Make the next `refresh` list the folder whatever its times: the known listing turned out to be wrong."""
        self._listed_at = _NEVER

    def require_in_place(self) -> tuple[int, int]:
        """Return the folder's modification and change times, in ns.

        Raises StoreReplaced if its path no longer leads to it.

        Two times, because restoring a backup restores the first one, and no one can set the second.
        """
        try:
            found = os.lstat(self._folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise StoreReplaced(self._folder) from error
        if not os.path.samestat(found, self._found):
            raise StoreReplaced(self._folder)
        return found.st_mtime_ns, found.st_ctime_ns

    def is_in(self, store: int) -> bool:
        """Return whether the folder of the segments is in this open folder of a store."""
        try:
            found = os.stat(os.path.basename(self._folder), dir_fd=store, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(found, self._found)

    def close_superseded(self) -> None:
        """Close superseded files, which frees their disk space. Call it when no one reads at a place in them.

        A file that is being read from one end to the other stays open until its end.
        """
        if self._rewritten:
            for one in [one for one in self._descriptors if one[1] < self.generation(one[0])]:
                os.close(self._descriptors.pop(one))

    def superseded(self) -> list[str]:
        """Return the paths of older generations and unfinished files in the folder."""
        found = []
        for name in os.listdir(self._folder):
            whole, suffix, rest = name.partition(_SUFFIX)
            named = _parsed_name(whole + suffix)
            if named is None:
                continue
            if _is_unfinished(rest) if rest else named[1] < self._generations.get(named[0], 0):
                found.append(os.path.join(self._folder, name))
        return found

    def current(self, place: Place) -> Place:
        """Return a group's end, or the start of its segment if that has been rewritten since.

        For a caller that needs all groups after the place, and may read some before it again.
        """
        return place if place.generation == self.generation(place.segment) else self.start(place.segment)

    def prepare(self, segment: int, pieces: Iterator[bytes]) -> str:
        """Write a segment's next generation from its frames, durably, under a temporary name; return its path.

        Raises DiskFull and DiskFailed, and then leaves no file behind.
        """
        path = self.path(segment, self._generations[segment] + 1) + _PREPARED
        header = SegmentHeader(store=self.store, number=segment, created=now())
        self._disk.create(path, chain([header.encode()], pieces))
        return path

    def adopt(self, prepared: str, segment: int) -> str:
        """Rename a prepared file to its final name; return the path of the generation that it supersedes."""
        old = self.path(segment, self._generations[segment])
        final = prepared.removesuffix(_PREPARED)
        with open_store_folder(self._folder) as folder:
            self._disk.replace(folder, os.path.basename(prepared), folder, os.path.basename(final))
        self._disk.sync_directory(self._folder)
        return old

    # ---- inside

    def _store(self) -> StoreId:
        """List the folder for the first time, and return the store's id from its first segment."""
        while True:
            numbers = sorted(self._list())
            if not numbers:
                raise StoreDamaged(1, 0, "there is no segment")
            for number, following in pairwise([0, *numbers]):
                if following != number + 1:
                    raise StoreDamaged(number + 1, 0, "the segment is missing")
            first = numbers[0], self._generations[numbers[0]]
            try:
                return self._header(*first).store
            except StoreDamaged:
                if os.path.lexists(self.path(*first)):
                    raise
                # The segment was rewritten since the folder was listed.

    def _list(self) -> dict[int, int]:
        """List the folder, open the newest generation of each segment, and return the generations.

        Raises StoreReplaced, and StoreDamaged for a file that is listed twice in a row and can't be found.
        """
        before: set[str] | None = None
        while True:
            # Read the times before the names, so that the next refresh sees whatever changes in between.
            listed_at = self.require_in_place()
            try:
                names = set(os.listdir(self._folder))
            except FileNotFoundError:
                continue
            found: dict[int, int] = {}
            for segment, generation in filter(None, map(_parsed_name, names)):
                found[segment] = max(generation, found.get(segment, 0))
            self._require_last_segment(found)
            # An open file remains readable even if it is superseded and removed.
            missing = [one for one in found.items() if not self._can_open(one)] if hasattr(self, "store") else []
            # A listing may show neither the old nor the new name of a segment that is rewritten meanwhile. If it is the
            # first listing, nothing says that the last segment is there.
            has_all_known = bool(self._generations) and found.keys() >= self._generations.keys()
            is_complete = has_all_known and len(found) == max(found)
            if not missing and (is_complete or names == before):
                self._listed_at, self._generations = listed_at, found
                rewritten = {segment: generation for segment, generation in found.items() if generation}
                if rewritten != self._rewritten:
                    self._rewritten = rewritten
                return found
            if names == before:
                raise StoreDamaged(missing[0][0], 0, "the segment is listed but can't be found")
            before = names

    def _require_last_segment(self, found: dict[int, int]) -> None:
        """Raise StoreReplaced if the last known segment is another file now, or is gone.

        Only the last one matters, because the log continues there: a full segment is as good as its copy.
        """
        last = max(self._generations, default=0)
        fd = self._descriptors.get((last, self._generations.get(last, 0)))
        if fd is None or found.get(last, -1) > self._generations[last]:
            return
        path = self.path(last, self._generations[last])
        # Since the names were read, a higher generation may have replaced this one.
        with suppress(FileNotFoundError):
            if last not in found or not os.path.samestat(os.stat(path), os.fstat(fd)):
                raise StoreReplaced(path)

    def _can_open(self, one: tuple[int, int]) -> bool:
        """Return whether the segment's generation could be opened (or is damaged, which reading it reports)."""
        try:
            self.descriptor(*one)
        except StoreDamaged:
            return os.path.exists(self.path(*one))
        return True

    def _bytes(self, segment: int, generation: int) -> int:
        # Prefer the open file to its name, which compaction removes as soon as a newer generation exists.
        try:
            return os.fstat(self.descriptor(segment, generation)).st_size
        except StoreDamaged as error:
            try:
                return os.stat(self.path(segment, generation)).st_size
            except FileNotFoundError:
                raise error from None

    def _header(self, segment: int, generation: int) -> SegmentHeader:
        try:
            fd = open_segment(self.path(segment, generation))
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
            _allow_files(_LOGS_PER_PROCESS * (len(self._descriptors) + _MANY_FILES))
        return header


def _allow_files(wanted: int) -> None:
    """Raise this process's limit of open files to `wanted`, or as far as it may."""
    import resource  # most stores have a few segments

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def pread(fd: int, size: int, position: int, segment: int) -> bytes:
    """Return up to `size` bytes of a segment's file. Raises StoreDamaged if the disk can't read them."""
    try:
        return os.pread(fd, size, position)
    except OSError as error:
        raise StoreDamaged(segment, position, error.strerror or str(error)) from error


def open_segment(path: str) -> int | None:
    """Return a descriptor for reading a segment's file (None: it is not a regular file).

    Raises StoreLinked, and FileNotFoundError and other OSErrors as os.open does.
    """
    try:
        return open_store_file(path, os.O_RDONLY)
    except StoreNotRegular:
        return None


def segment_name(segment: int, generation: int) -> str:
    """Return the name of a segment's file."""
    number = f"{segment:0{_NUMBER_DIGITS}d}"
    return f"{number}.{generation}.seg" if generation else f"{number}.seg"


def _parsed_name(name: str) -> tuple[int, int] | None:
    """Return the segment and the generation in a file's name (None: it is no segment's name)."""
    number, dot, generation = name.removesuffix(_SUFFIX).partition(".")
    if not _is_number(number) or (dot and not _is_number(generation)) or len(generation) > _GENERATION_DIGITS:
        return None
    named = int(number), int(generation or 0)
    # Accept only the name that segment_name makes: no reader would open any other.
    return named if segment_name(*named) == name else None


def is_segment(name: str) -> bool:
    """Return whether a file's name is a segment's: other files in the folder are ignored."""
    return _parsed_name(name) is not None


def is_conflict_copy(name: str) -> bool:
    """Return whether a file is named as programs that synchronize folders name a second version of a segment."""
    return name.endswith(_SUFFIX) and _is_number(name[:_NUMBER_DIGITS]) and not is_segment(name)


def generation_of(name: str) -> int:
    """Return the generation in a segment's file name (0 also for other names)."""
    named = _parsed_name(name)
    return 0 if named is None else named[1]


def _is_unfinished(rest: str) -> bool:
    """Return whether `rest`, which follows a segment's name, marks a file of an unfinished creation or rewrite."""
    made, _, digits = rest.rpartition(".")
    if made in {"", _PREPARED} and len(digits) == _CREATION_DIGITS and set(digits) <= _HEXADECIMAL:
        return True
    return rest == _PREPARED


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def newest_files(names: Collection[str]) -> list[str]:
    """Return the names of segment files that no newer generation supersedes, and all names of other files."""
    newest: dict[int, int] = {}
    numbered = {name: named for name in names if (named := _parsed_name(name)) is not None}
    for segment, generation in numbered.values():
        newest[segment] = max(generation, newest.get(segment, 0))
    return [name for name in names if name not in numbered or newest[numbered[name][0]] == numbered[name][1]]
