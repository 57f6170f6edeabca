"""Fetch the store that a head names, piece by piece, and check it as an import does before anything counts.

A mirror is a store of its own in this store's folder, without files: no decision is made in it, and nothing of it is
written to a file of the workspace. The index is built here; nothing derived travels.

Nothing is added to a mirror. The next one is made next to it, and takes its place when it is checked; it shares the
segments that stay, by links, and begins with a copy of the index. The applied marker of a mirror says up to where its
log was checked. A head whose log begins with that very log, byte for byte, is checked from there on; else, as after a
compaction, the check begins with the first frame. So damage of a mirror is mended by the next pull, which compares its
bytes with the hashes in the head even if nothing is new.
"""

from __future__ import annotations

import os
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from objstore.disk.fs.nofollow import open_store_file, open_store_folder
from objstore.disk.fs.reserved_names import INDEX_NAME, LOG_NAME, STORE_NAME
from objstore.model.ids import HASH_SIZE
from objstore.storage.index.database import SQLITE_ERRORS
from objstore.storage.index.index_file import IndexFile
from objstore.storage.log.applied_marker import read_applied_marker
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE, SegmentHeader
from objstore.storage.log.segment_files import segment_name
from objstore.storage.store.create import (
    creation_folder_name,
    discard_creation_folder,
    finish_creation,
    give_to_owner_above,
    is_creation_folder,
)
from objstore.upkeep.remote.heads import PIECE
from objstore.upkeep.remote.keys import object_key, store_of
from objstore.upkeep.remote.waiting import in_parallel
from objstore.upkeep.transfer.import_export import checked_store, import_store, new_folder
from objstore.values.errors import CasError, DiskFull, FormatTooOld, StoreDamaged
from objstore.values.fastclass import value
from objstore.values.request_errors import BundleRefused, RemoteRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from objstore.disk.fs.disk import Disk
    from objstore.model.basic_types import Progress
    from objstore.storage.log.segment_files import Place
    from objstore.upkeep.remote.bucket import Bucket
    from objstore.upkeep.remote.heads import Head
    from objstore.upkeep.transfer.import_export import Imported

__all__ = ["Fetch", "clone", "fetch", "is_whole", "mirror", "missing"]

_SPARE: Final = 64 << 20
"""Bytes that stay free on the disk when a store is fetched: its index has to be built too."""


@value
class _Wanted:
    """A piece, and where it goes."""

    segment: int
    offset: int
    size: int
    name: bytes


@value
class Fetch:
    """What fetching a store takes."""

    missing: tuple[_Wanted, ...]
    kept: frozenset[int] = frozenset()  # the segments that the folder `having` has whole, which are not written

    @property
    def size(self) -> int:
        """Return how many bytes are fetched."""
        return sum(each.size for each in self.missing)


def mirror(bucket: Bucket, head: Head, place: str, incoming: str, disk: Disk, progress: Progress | None = None) -> int:
    """Make the folder `place` hold the store that a head names, checked, or leave it as it is; return bytes fetched.

    `incoming`: a folder in which what was fetched stays if the fetching or the check breaks off. Raises RemoteRefused
    if anything is wrong, RemoteFailed, DiskFull.
    """
    above, store = os.path.dirname(place), os.path.join(place, STORE_NAME)
    for name in filter(is_creation_folder, os.listdir(above)):
        discard_creation_folder(os.path.join(above, name), disk)  # of a pull that was killed: all here is ours
    fetched = fetch(bucket, head, incoming, disk, progress, having=os.path.join(store, LOG_NAME))
    with _refusing(bucket, head, incoming, disk):
        making = _checked(head, fetched, incoming, store, above, disk, progress)
    try:
        _discard(incoming, disk)
        give_to_owner_above(making, disk)
        _adopt(making, place, disk)
        finish_creation(place, disk)
    finally:
        discard_creation_folder(making, disk)
    return fetched.size


def clone(
    bucket: Bucket, head: Head, directory: str, incoming: str, disk: Disk, progress: Progress | None = None
) -> Imported:
    """Make a workspace from the store that a head names, as an import of a bundle does. `incoming`: as of `mirror`.

    Raises FileExists, PathReserved, RemoteRefused, RemoteFailed, and what the disk raises.
    """

    def fill(folder: str, disk: Disk) -> None:
        _put_in(head, fetched, incoming, "", folder, disk)

    with new_folder(directory, disk):
        fetched = fetch(bucket, head, incoming, disk, progress)
        with _refusing(bucket, head, incoming, disk):
            return import_store(fill, directory, checked=lambda: _discard(incoming, disk), progress=progress, disk=disk)


def is_whole(head: Head, place: str) -> bool:
    """Return whether the mirror in the folder `place` has the very bytes that a head names."""
    having = os.path.join(place, STORE_NAME, LOG_NAME)
    sizes = all(_size(_path(head, segment.number, having)) == segment.size for segment in head.segments)
    return sizes and not missing(head, having)


def missing(head: Head, folder: str) -> int:
    """Return how many bytes of the segments that a head names are not in a folder; nothing is asked of the bucket."""
    return sum(each.size for each in _wanted(head) if not _is_at(each, _path(head, each.segment, folder)))


def fetch(
    bucket: Bucket,
    head: Head,
    incoming: str,
    disk: Disk,
    progress: Progress | None = None,
    *,
    having: str = "",
    dry_run: bool = False,
) -> Fetch:
    """Write the segments that a head names into `incoming`, and return what was fetched for that.

    Pieces that are there, or at the same place in the segments of the folder `having`, are not fetched again; each is
    verified by its hash. What `having` has whole is not written. A dry run only says what would be fetched. Raises
    RemoteFailed, RemoteRefused, DiskFull.
    """
    _require_space(bucket, head, incoming, disk)  # before anything that takes longer the more is claimed
    wanted = list(_wanted(head))
    had = {each for each in wanted if having and _is_at(each, _path(head, each.segment, having))}
    lacking = {each.segment for each in wanted if each not in had}
    kept = frozenset(
        segment.number
        for segment in head.segments
        if segment.number not in lacking and _size(_path(head, segment.number, having)) == segment.size
    )
    left = [each for each in wanted if each.segment not in kept]
    left = [each for each in left if not _is_at(each, _path(head, each.segment, incoming))]
    fetched = Fetch(missing=tuple(each for each in left if each not in had), kept=kept)
    if dry_run:
        return fetched
    with suppress(FileExistsError):
        disk.make_store_folder(incoming)
    for each in left:
        if each in had:
            _write(head, each, _read(each, _path(head, each.segment, having)), incoming, disk)

    def bring(wanted: _Wanted) -> int:
        key = object_key(head.lane, wanted.name)
        content = bucket.get(key, wanted.size)
        if len(content) != wanted.size or _hash(content) != wanted.name:
            raise RemoteRefused(bucket.url, f"the object {key} has other bytes than its name says")
        _write(head, wanted, content, incoming, disk, is_synced=True)  # while others arrive
        return wanted.size

    in_parallel(bring, fetched.missing, progress, fetched.size)
    for segment in head.segments:
        if segment.number in kept:
            continue
        path = _path(head, segment.number, incoming)
        fd = open_store_file(path, os.O_RDWR)
        try:
            disk.truncate(fd, segment.size, path)
            disk.sync(fd, path)
        finally:
            os.close(fd)
    return fetched


# ---- inside


def _wanted(head: Head) -> Iterator[_Wanted]:
    for segment in head.segments:
        offset = 0
        for piece in segment.pieces:
            yield _Wanted(segment=segment.number, offset=offset, size=piece.size, name=piece.name)
            offset += piece.size


def _path(head: Head, segment: int, folder: str) -> str:
    return os.path.join(folder, segment_name(segment, head.segments[segment - 1].generation))


def _read(wanted: _Wanted, path: str) -> bytes:
    """Return the bytes at a piece's place in a segment's file; b"" if there is no such file."""
    try:
        fd = open_store_file(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(fd, wanted.size, wanted.offset)
    finally:
        os.close(fd)


def _is_at(wanted: _Wanted, path: str) -> bool:
    return _hash(_read(wanted, path)) == wanted.name


def _size(path: str) -> int:
    """Return the size of a file; -1: there is none."""
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return -1


def _write(head: Head, wanted: _Wanted, content: bytes, folder: str, disk: Disk, *, is_synced: bool = False) -> None:
    path = _path(head, wanted.segment, folder)
    fd = open_store_file(path, os.O_WRONLY | os.O_CREAT)
    try:
        disk.overwrite(fd, content, wanted.offset, path)
        if is_synced:
            disk.sync(fd, path)
    finally:
        os.close(fd)


def _require_space(bucket: Bucket, head: Head, incoming: str, disk: Disk) -> None:
    """Raise DiskFull if a store is larger than the disk has room for: its size is only claimed until it is fetched."""
    above = os.path.dirname(incoming)
    free = disk.free_bytes(above, above)
    if head.size + _SPARE > free:
        raise DiskFull(above, f"the store in {bucket.url} has {head.size} bytes, and only {free} are free here")


def _put_in(head: Head, fetched: Fetch, incoming: str, store: str, folder: str, disk: Disk) -> None:
    """Put all segments of a head into the folder of a new store: those that were fetched, and those kept in `store`.

    They keep their former names, too, where the file system can do that. Raises BundleRefused if they are another
    store's.
    """
    for segment in head.segments:
        having = os.path.join(store, LOG_NAME)
        path = _path(head, segment.number, having if segment.number in fetched.kept else incoming)
        fd = open_store_file(path, os.O_RDONLY)
        try:
            first = os.pread(fd, SEGMENT_HEADER_SIZE, 0)
            if SegmentHeader.decode(first, segment=segment.number).store != store_of(head.lane):
                raise BundleRefused("its segments are another store's")
            name = os.path.basename(path)
            with open_store_folder(os.path.dirname(path)) as source, open_store_folder(folder) as target:
                if not disk.link_new(source, name, target, name):
                    disk.create(os.path.join(folder, name), _pieces_of(fd))
        finally:
            os.close(fd)
    disk.sync_directory(folder)


def _pieces_of(fd: int) -> Iterator[bytes]:
    at = 0
    while content := os.pread(fd, PIECE, at):
        yield content
        at += len(content)


def _checked(
    head: Head, fetched: Fetch, incoming: str, store: str, above: str, disk: Disk, progress: Progress | None
) -> str:
    """Make a store of what a head names in a creation folder in `above`, checked, and return that folder.

    If anything is wrong with one that goes on with the mirror `store`, that mirror may be to blame: then all is
    checked, and nothing of it used but the bytes that have the right hashes. Raises as `checked_store` does.
    """
    goes_on = True

    def fill(folder: str, disk: Disk) -> Place | None:
        nonlocal goes_on
        _put_in(head, fetched, incoming, store, folder, disk)
        since = _checked_before(head, fetched, store, folder) if goes_on else None
        goes_on = since is not None
        if goes_on:
            _copy_index(store, os.path.dirname(folder))
        return since

    while True:
        making = os.path.join(above, creation_folder_name())
        disk.make_creation_folder(making)
        try:
            checked_store(fill, making, disk, files=False, progress=progress)
        except BaseException as error:
            discard_creation_folder(making, disk)
            if not goes_on or isinstance(error, DiskFull) or not isinstance(error, (CasError, *SQLITE_ERRORS)):
                raise
            goes_on = False
        else:
            return making


def _checked_before(head: Head, fetched: Fetch, store: str, folder: str) -> Place | None:
    """Return the end of the log in the mirror `store` if that is how the log in `folder` begins, byte for byte.

    None: it does not, or there is no mirror, or more is in it than was checked.
    """
    end = read_applied_marker(store)
    if end is None or not set(range(1, end.segment)) <= fetched.kept or end.segment > len(head.segments):
        return None
    segment = head.segments[end.segment - 1]
    if segment.generation != end.generation or segment.size < end.position:
        return None
    had = _path(head, end.segment, os.path.join(store, LOG_NAME))
    following = os.path.join(store, LOG_NAME, segment_name(end.segment + 1, 0))
    if _size(had) != end.position or os.path.lexists(following):
        return None
    log = _Wanted(segment=end.segment, offset=0, size=end.position, name=b"")
    is_same = end.segment in fetched.kept or _read(log, had) == _read(log, _path(head, end.segment, folder))
    return end if is_same else None


def _copy_index(store: str, made: str) -> None:
    """Copy the index of a mirror into the folder of the next one; it is built there if that can't be done."""
    with suppress(OSError, CasError), closing(IndexFile(os.path.join(store, INDEX_NAME))) as kept:
        copy = os.path.join(made, INDEX_NAME)
        if not kept.copy_to(copy):
            os.unlink(copy)


@contextmanager
def _refusing(bucket: Bucket, head: Head, incoming: str, disk: Disk) -> Iterator[None]:
    """Translate the refusal of an import; what was fetched is removed, so that the next try begins again."""
    try:
        yield
    except FormatTooOld as error:
        _discard(incoming, disk)
        why = "was pushed by an early version of editledger, before format 1: it has to be converted, and pushed again"
        raise RemoteRefused(bucket.url, f"the store {head.lane} {why}") from error
    except (BundleRefused, StoreDamaged) as error:
        _discard(incoming, disk)
        why = "is damaged"
        if isinstance(error, BundleRefused) and error.concerns_files:
            why = "has files that can't be written here"
        raise RemoteRefused(bucket.url, f"the store {head.lane} {why}: {error.reason}") from error


def _adopt(making: str, place: str, disk: Disk) -> None:
    """Give a checked store its place; the one that had it is then in `making`."""
    with open_store_folder(os.path.dirname(place)) as above:
        if not os.path.lexists(place):
            disk.move_store_folder(making, place)
        elif not disk.exchange(above, os.path.basename(making), above, os.path.basename(place)):
            old = os.path.join(os.path.dirname(place), creation_folder_name())
            disk.move_store_folder(place, old)
            disk.move_store_folder(making, place)
            disk.move_store_folder(old, making)
    disk.sync_directory(os.path.dirname(place))


def _discard(folder: str, disk: Disk) -> None:
    """Remove a folder of fetched segments."""
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):
            disk.remove_store_file(os.path.join(folder, name))
        disk.remove_store_folder(folder)


def _hash(content: bytes) -> bytes:
    return blake3(content).digest(HASH_SIZE)
