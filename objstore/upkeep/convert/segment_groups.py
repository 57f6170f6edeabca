"""Read the groups of a log that a version before format 1 wrote, or of one in format 1.

Their segments differ in the first bytes of the header and in its version, 1 or 2; frames and groups are the same.
"""

import os
from collections.abc import Iterator
from typing import Final

from objstore.storage.log.frames import (
    SEGMENT_HEADER_SIZE,
    STORE_ID,
    Frame,
    Gap,
    SegmentHeader,
    StoreId,
    committed,
    frame_key,
    scan_windows,
)
from objstore.storage.log.segment_files import (
    GENERATION,
    Place,
    generation_of,
    is_segment,
    newest_files,
    open_segment,
    pread,
)
from objstore.values.errors import FormatTooOld, StoreDamaged
from objstore.values.fastclass import value

__all__ = ["Segment", "is_earlier", "segments"]

_VERSION: Final = slice(8, 10)
_EARLIER_VERSIONS: Final = (1, 2)


@value
class Segment:
    """One segment of a log, with its groups."""

    header: SegmentHeader  # as format 1 has it
    earlier: int  # the version of the segment's format if that is before format 1, or else 0
    start: Place
    size: int
    is_last: bool
    path: str

    def groups(self) -> Iterator[tuple[list[Frame], Place]]:
        """Yield the frames of each group, and where it ends; after the last one may be an unfinished one.

        Raises StoreDamaged.
        """
        fd = _opened(self.path, self.header.number)
        try:
            gap: Gap | None = None
            key = frame_key(self.header.store)

            def read(offset: int, size: int) -> bytes:
                return pread(fd, size, offset, self.header.number)

            for group in committed(scan_windows(read, key, SEGMENT_HEADER_SIZE, self.size)):
                if gap is not None:
                    break
                if isinstance(group, Gap):
                    gap = group
                else:
                    yield group, Place(self.header.number, self.start.generation * GENERATION + group[-1].end)
            else:
                if gap is None or self.is_last:
                    return
            raise StoreDamaged(self.header.number, gap.offset, gap.reason)
        finally:
            os.close(fd)


def segments(folder: str) -> list[Segment]:
    """Return the segments in a folder, ascending. Raises StoreDamaged, StoreLinked and FormatTooNew."""
    names = sorted(newest_files([name for name in os.listdir(folder) if is_segment(name)]), key=_number)
    found: list[Segment] = []
    for expected, name in enumerate(names, 1):
        if _number(name) != expected:
            raise StoreDamaged(expected, 0, "the segment is missing")
        path = os.path.join(folder, name)
        fd = _opened(path, expected)
        try:
            header, earlier = _header(pread(fd, SEGMENT_HEADER_SIZE, 0, expected), expected)
            size = os.fstat(fd).st_size
        finally:
            os.close(fd)
        if found and header.store != found[0].header.store:
            raise StoreDamaged(expected, 0, "the segment belongs to another store")
        start = Place(expected, generation_of(name) * GENERATION + SEGMENT_HEADER_SIZE)
        is_last = expected == len(names)
        found.append(Segment(header=header, earlier=earlier, start=start, size=size, is_last=is_last, path=path))
    if not found:
        raise StoreDamaged(1, 0, "there is no segment")
    return found


def is_earlier(folder: str) -> bool:
    """Return whether a version before format 1 wrote the log in a folder. Raises as `segments`."""
    return any(segment.earlier for segment in segments(folder))


def _number(name: str) -> int:
    return int(name.partition(".")[0])


def _opened(path: str, number: int) -> int:
    fd = open_segment(path)
    if fd is None:
        raise StoreDamaged(number, 0, "it is not a regular file")
    return fd


def _header(content: bytes, number: int) -> tuple[SegmentHeader, int]:
    """Return a segment's header, and the version of its format if that is before format 1 (0: it is not)."""
    try:
        return SegmentHeader.decode(content, segment=number), 0
    except FormatTooOld:
        version = int.from_bytes(content[_VERSION], "little")
    if version not in _EARLIER_VERSIONS:
        raise StoreDamaged(number, 0, f"no version of editledger wrote version {version} of this format")
    # Its checksum was right, and these fields are where format 1 has them.
    store, found, created = content[STORE_ID], content[32:40], content[40:48]
    if int.from_bytes(found, "little") != number:
        raise StoreDamaged(number, 0, "the segment's header has another number")
    return SegmentHeader(store=StoreId(store), number=number, created=int.from_bytes(created, "little")), version
