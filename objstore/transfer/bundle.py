"""The bundle: a whole log in one file, to be carried to another machine. FORMAT.md gives the offsets.

A bundle is the segments as they lie in the store, up to the end of the last whole group, with a table of their sizes
before them and a BLAKE3 of everything behind them. So the journal that comes out of it is the one that went in, with
the same ids in the same chain. What goes in is held against its checksums and its chain on the way: the store may be
gone when somebody finds that it was damaged. Nothing in a bundle is believed all the same: sizes are held against the
file before anything is read, and what the segments say is checked by whoever imports it as any store is checked.
"""

import os
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from blake3 import blake3

from objstore.errors import BundleRefused, FormatTooNew, RecordInvalid, StoreDamaged
from objstore.fastclass import value
from objstore.fs.disk import Disk
from objstore.log.frames import FRAME_HEADER_SIZE, SEGMENT_HEADER_SIZE, FrameKind, RawFrame, SegmentHeader
from objstore.log.segment_files import GENERATION, Place, segment_name
from objstore.log.segments import Log
from objstore.model.basic_types import Progress
from objstore.model.canonical_msgpack import unpack
from objstore.model.ids import HASH_SIZE, RecordId, record_id

__all__ = ["BUNDLE_VERSION", "Bundle", "bundle_pieces", "unpack_bundle"]

BUNDLE_VERSION: Final = 1

_MAGIC: Final = b"\x89CASBUN\n"
_HEADER: Final = Struct("<8sH6xQ")
_SIZE: Final = Struct("<Q")
_PIECE: Final = 1 << 20
_RECORD: Final = int(FrameKind.RECORD)  # a plain number, as a raw frame has it


@value
class Bundle:
    """What the first bytes of a bundle say, held against the size of the file."""

    sizes: tuple[int, ...]  # of the segments, in bytes, in the order of their numbers

    @property
    def begins(self) -> int:
        """Return where the first segment begins."""
        return _HEADER.size + _SIZE.size * len(self.sizes)

    def encode(self) -> bytes:
        """Return the bytes before the segments."""
        return _HEADER.pack(_MAGIC, BUNDLE_VERSION, len(self.sizes)) + b"".join(map(_SIZE.pack, self.sizes))


def bundle_pieces(log: Log, end: Place, progress: Progress | None = None) -> Iterator[bytes]:
    """Yield a bundle of the log up to `end`, the end of a group.

    `progress` is told of the bytes that were asked for.
    Raises StoreDamaged where bytes are wrong, which may be after some pieces, and before the last in any case.
    """
    # Without another look at the folder: `end`, the sizes and the bytes have to be of the same generations.
    numbers = range(log.first.segment, end.segment + 1)
    sizes = tuple(end.position if number == end.segment else log.size(number) for number in numbers)
    bundle, done = Bundle(sizes=sizes), 0
    hasher = blake3()
    for piece in _contents(log, numbers, bundle):
        hasher.update(piece)
        yield piece
        done += len(piece)
        if progress is not None:
            progress("bytes", done, bundle.begins + sum(sizes))
    yield hasher.digest(HASH_SIZE)


def unpack_bundle(path: str, folder: str, disk: Disk) -> None:
    """Write the segments of the bundle at `path` into the empty `folder`, under the names that a log gives them.

    Raises BundleRefused, FormatTooNew, and what the disk raises.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        bundle = _opened(fd)
        hasher = blake3(bundle.encode())
        offset = bundle.begins
        for number, size in enumerate(bundle.sizes, 1):
            _see_number(os.pread(fd, SEGMENT_HEADER_SIZE, offset), number)
            disk.create(os.path.join(folder, segment_name(number, 0)), _hashed(fd, offset, size, hasher))
            offset += size
        if os.pread(fd, HASH_SIZE, offset) != hasher.digest(HASH_SIZE):
            raise BundleRefused("its bytes are not those that were written, as its hash says")
    finally:
        os.close(fd)


# ---- inside


def _contents(log: Log, numbers: Iterable[int], bundle: Bundle) -> Iterator[bytes]:
    yield bundle.encode()
    last: RecordId | None = None
    generations = log.generations()
    for number, size in zip(numbers, bundle.sizes, strict=True):
        begins = Place(number, generations.get(number, 0) * GENERATION)
        waiting = [log.piece(begins, SEGMENT_HEADER_SIZE)]
        SegmentHeader.decode(waiting[0], segment=number)
        sent, read = 0, SEGMENT_HEADER_SIZE
        for frame in log.raw_frames(begins, size):
            if frame.kind == _RECORD:
                last = _following(last, frame, number)
            waiting.append(frame.whole)
            read += len(frame.whole)
            if read - sent >= _PIECE:
                yield b"".join(waiting)
                waiting, sent = [], read
        if read != size:
            raise StoreDamaged(number, read, "the segment became shorter")
        yield b"".join(waiting)


def _following(last: RecordId | None, frame: RawFrame, segment: int) -> RecordId:
    """Return the id of a record that follows the one of the id `last` (None: it is the first). Raises StoreDamaged."""
    encoded = frame.whole[FRAME_HEADER_SIZE:]
    try:
        previous = unpack(encoded).get("previous")
    except RecordInvalid as error:
        raise StoreDamaged(segment, frame.position, str(error)) from error
    if previous != last:
        raise StoreDamaged(segment, frame.position, "the record does not follow the one before it")
    return record_id(encoded)


def _opened(fd: int) -> Bundle:
    """Return what the first bytes say, if the file has the very size that they imply."""
    whole = os.fstat(fd).st_size
    first = os.pread(fd, _HEADER.size, 0)
    if len(first) < _HEADER.size or not first.startswith(_MAGIC):
        raise BundleRefused("it is no bundle")
    _, version, count = _HEADER.unpack(first)
    if version > BUNDLE_VERSION:
        raise FormatTooNew(version, BUNDLE_VERSION)
    if not 0 < count <= whole // (SEGMENT_HEADER_SIZE + _SIZE.size):
        raise BundleRefused("it is cut short, or names segments that it has not")
    table = os.pread(fd, _SIZE.size * count, _HEADER.size)
    bundle = Bundle(sizes=tuple(size for (size,) in _SIZE.iter_unpack(table)))
    if bundle.begins + sum(bundle.sizes) + HASH_SIZE != whole:
        raise BundleRefused("it is cut short, or something follows it")
    if first + table != bundle.encode() or min(bundle.sizes) < SEGMENT_HEADER_SIZE:
        raise BundleRefused("its table is not as one is written")
    return bundle


def _see_number(header: bytes, expected: int) -> None:
    """Raise BundleRefused unless a segment begins with a header that tells this number."""
    try:
        number = SegmentHeader.decode(header, segment=None).number
    except StoreDamaged as error:
        raise BundleRefused(error.reason) from error
    if number != expected:
        raise BundleRefused(f"segment {number} stands where segment {expected} should")


def _hashed(fd: int, offset: int, size: int, hasher: blake3) -> Iterator[bytes]:
    end = offset + size
    while offset < end:
        piece = os.pread(fd, min(_PIECE, end - offset), offset)
        if not piece:
            raise BundleRefused("it became shorter while it was read")
        hasher.update(piece)
        offset += len(piece)
        yield piece
