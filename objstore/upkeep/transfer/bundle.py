"""Write and unpack a bundle: a whole log in one file, to be taken to another machine. FORMAT.md gives the offsets.

A bundle has a table of the segments' sizes, then the segments byte for byte up to the end of the last complete group,
then a BLAKE3 hash of everything. So the imported journal is the exported one, with the same ids in the same chain.
Frames are verified by checksum and chain on export, because the store may be gone when the damage is found. On import
nothing in a bundle is trusted all the same: sizes are compared with the file before anything is read, and the segments
are checked like those of any store.
"""

import os
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from blake3 import blake3

from objstore.disk.fs.disk import Disk
from objstore.model.basic_types import Progress
from objstore.model.canonical_msgpack import unpack
from objstore.model.ids import HASH_SIZE, RecordId, record_id
from objstore.storage.log.frames import FRAME_HEADER_SIZE, SEGMENT_HEADER_SIZE, FrameKind, RawFrame, SegmentHeader
from objstore.storage.log.segment_files import GENERATION, Place, segment_name
from objstore.storage.log.segments import Log
from objstore.values.errors import FormatTooNew, FormatTooOld, RecordInvalid, StoreDamaged
from objstore.values.fastclass import value
from objstore.values.request_errors import BundleRefused

__all__ = ["BUNDLE_VERSION", "Bundle", "bundle_pieces", "unpack_bundle"]

BUNDLE_VERSION: Final = 1

_MAGIC: Final = b"\x89CASBUN\n"
_HEADER: Final = Struct("<8sH6xQ")
_SIZE: Final = Struct("<Q")
_PIECE: Final = 1 << 20
_RECORD: Final = int(FrameKind.RECORD)  # a plain number, as in a raw frame


@value
class Bundle:
    """The table at the beginning of a bundle."""

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

    `progress` is called with the bytes yielded so far.
    Raises StoreDamaged where bytes are wrong: possibly after some pieces, but always before the last one.
    """
    # The folder is not listed again: `end`, the sizes and the bytes have to be of the same generations.
    numbers = range(log.first.segment, end.segment + 1)
    sizes = tuple(end.position if number == end.segment else log.files.size(number) for number in numbers)
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
    """Write the segments of the bundle at `path` into the empty `folder`, with the names that a log uses.

    Raises BundleRefused, FormatTooNew, FormatTooOld, and what the disk raises.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        bundle = _opened(fd)
        hasher = blake3(bundle.encode())
        offset = bundle.begins
        for number, size in enumerate(bundle.sizes, 1):
            _require_number(os.pread(fd, SEGMENT_HEADER_SIZE, offset), number)
            disk.create(os.path.join(folder, segment_name(number, 0)), _hashed(fd, offset, size, hasher))
            offset += size
        if os.pread(fd, HASH_SIZE, offset) != hasher.digest(HASH_SIZE):
            raise BundleRefused("its hash does not match its contents")
    finally:
        os.close(fd)


# ---- inside


def _contents(log: Log, numbers: Iterable[int], bundle: Bundle) -> Iterator[bytes]:
    yield bundle.encode()
    last: RecordId | None = None
    generations = log.files.generations()
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
    """Return the id of a record that must follow the one with the id `last` (None: no record). Raises StoreDamaged."""
    encoded = frame.whole[FRAME_HEADER_SIZE:]
    try:
        previous = unpack(encoded).get("previous")
    except RecordInvalid as error:
        raise StoreDamaged(segment, frame.position, str(error)) from error
    if previous != last:
        raise StoreDamaged(segment, frame.position, "the record does not follow the one before it")
    return record_id(encoded)


def _opened(fd: int) -> Bundle:
    """Return the table of a bundle whose file has exactly the size that it implies.

    Raises BundleRefused and FormatTooNew.
    """
    whole = os.fstat(fd).st_size
    first = os.pread(fd, _HEADER.size, 0)
    if len(first) < _HEADER.size or not first.startswith(_MAGIC):
        raise BundleRefused("it is not a bundle")
    _, version, count = _HEADER.unpack(first)
    if version > BUNDLE_VERSION:
        raise FormatTooNew(version, BUNDLE_VERSION)
    if not 0 < count <= whole // (SEGMENT_HEADER_SIZE + _SIZE.size):
        raise BundleRefused("it is cut short, or lists segments that it does not contain")
    table = os.pread(fd, _SIZE.size * count, _HEADER.size)
    bundle = Bundle(sizes=tuple(size for (size,) in _SIZE.iter_unpack(table)))
    if bundle.begins + sum(bundle.sizes) + HASH_SIZE != whole:
        raise BundleRefused("it is cut short, or more bytes follow it")
    if first + table != bundle.encode() or min(bundle.sizes) < SEGMENT_HEADER_SIZE:
        raise BundleRefused("its table of segment sizes is malformed")
    return bundle


def _require_number(header: bytes, expected: int) -> None:
    """Raise BundleRefused unless a segment begins with a header that has this number; FormatTooOld as that says."""
    try:
        number = SegmentHeader.decode(header, segment=None).number
    except FormatTooOld:
        raise FormatTooOld(is_bundle=True) from None
    except StoreDamaged as error:
        raise BundleRefused(error.reason) from error
    if number != expected:
        raise BundleRefused(f"it has segment {number} where segment {expected} should be")


def _hashed(fd: int, offset: int, size: int, hasher: blake3) -> Iterator[bytes]:
    end = offset + size
    while offset < end:
        piece = os.pread(fd, min(_PIECE, end - offset), offset)
        if not piece:
            raise BundleRefused("it became shorter while it was read")
        hasher.update(piece)
        offset += len(piece)
        yield piece
