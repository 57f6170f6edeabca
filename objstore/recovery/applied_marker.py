"""Record up to which place of the log the user's files match it, and in which boot of the machine.

The marker is written without a sync: after a mere crash of the process it is complete; after a power cut it may be old,
and then the newest groups are checked again, which costs a read and does no harm.
"""

from __future__ import annotations

import os
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Final

from objstore.clock import now
from objstore.errors import DiskFailed, PermissionRefused, StoreLinked, StoreNotRegular
from objstore.fs.boot_id import UNKNOWN_BOOT
from objstore.fs.disk import failure
from objstore.fs.nofollow import open_store_file, read_store_file
from objstore.fs.reserved_names import APPLIED_MARKER_NAME
from objstore.log.segment_files import Place

if TYPE_CHECKING:
    from objstore.fs.disk import Disk

__all__ = [
    "APPLIED_MARKER_SIZE",
    "AppliedMarker",
    "decode_applied_marker",
    "encode_applied_marker",
    "read_applied_marker",
    "reset_applied_marker",
]

_MARKER: Final = Struct("<QQ16s")
APPLIED_MARKER_SIZE: Final = _MARKER.size


def encode_applied_marker(place: Place, boot: bytes) -> bytes:
    """Return the bytes of a marker for a place and a boot id."""
    return _MARKER.pack(place.segment, place.offset, boot)


def decode_applied_marker(stored: bytes) -> Place | None:
    """Return the place in a marker (None: the bytes are no marker)."""
    return Place(*_MARKER.unpack(stored)[:2]) if len(stored) == _MARKER.size else None


class AppliedMarker:
    """The applied marker of the store in `folder`, for one process."""

    def __init__(self, folder: str, disk: Disk) -> None:
        """Set the path; no file is opened yet."""
        self._path: Final = os.path.join(folder, APPLIED_MARKER_NAME)
        self._disk: Final = disk
        self._fd: int | None = None
        self._is_longer = False  # whether the file is longer than a marker
        self._boot: Final = disk.boot_id()
        # Without a known boot id, no marker counts as of this boot until this process has inspected the files.
        self._knows_boot = self._boot != UNKNOWN_BOOT

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None

    def read(self) -> tuple[Place | None, bytes]:
        """Return the place up to which files match the log (None: unknown), and the boot id in the marker."""
        try:
            stored = os.pread(self._open_marker(), _MARKER.size + 1, 0)
        except (OSError, DiskFailed, PermissionRefused):
            return None, b""
        self._is_longer = len(stored) > _MARKER.size
        if len(stored) != _MARKER.size:
            return None, b""
        segment, offset, boot = _MARKER.unpack(stored)
        return Place(segment, offset), boot

    def write(self, end: Place) -> None:
        """Record that files match the log up to `end`."""
        # A marker that can't be written remains an old one: then the newest files are checked once more.
        with suppress(DiskFailed, PermissionRefused):
            self._disk.overwrite(self._open_marker(), encode_applied_marker(end, self._boot), 0, APPLIED_MARKER_NAME)
            if self._is_longer:
                self._disk.truncate(self._open_marker(), _MARKER.size, APPLIED_MARKER_NAME)
                self._is_longer = False
            # Use the clock of records: file times are too coarse to order this write and a call just after it.
            self._disk.set_time(self._open_marker(), now() * 1000, APPLIED_MARKER_NAME)

    def written_at(self) -> int:
        """Return when the marker was last written, in microseconds since 1970-01-01 UTC; 0 if there is none."""
        try:
            return os.lstat(self._path).st_mtime_ns // 1000
        except OSError:
            return 0

    def is_of_this_boot(self, boot: bytes) -> bool:
        """Return whether a marker with that boot id is certain to be of this boot of the machine."""
        return self._knows_boot and boot == self._boot

    def is_of_earlier_boot(self, boot: bytes) -> bool:
        """Return whether a marker with that boot id is certain to be of an earlier boot of the machine."""
        return UNKNOWN_BOOT not in (boot, self._boot) and self._boot != boot != b""

    def note_inspected(self) -> None:
        """Note that this process has inspected the files itself, so that its markers from now on are of this boot."""
        self._knows_boot = True

    def _open_marker(self) -> int:
        if self._fd is None:
            try:
                self._fd = open_store_file(self._path, os.O_RDWR | os.O_CREAT)
            except OSError as error:
                raise failure(error, APPLIED_MARKER_NAME) from error
        return self._fd


def read_applied_marker(folder: str) -> Place | None:
    """Return the place up to which files match the log of the store in `folder` (None: unknown)."""
    try:
        stored = read_store_file(os.path.join(folder, APPLIED_MARKER_NAME), _MARKER.size + 1)
    except (OSError, StoreLinked, StoreNotRegular):
        return None
    return decode_applied_marker(stored)


def reset_applied_marker(folder: str, end: Place, disk: Disk) -> None:
    """Set the marker of the store in `folder` to `end`: no file needs to be changed for what its log holds so far."""
    path = os.path.join(folder, APPLIED_MARKER_NAME)
    with suppress(FileNotFoundError):
        disk.remove_store_file(path)
    disk.create(path, encode_applied_marker(end, disk.boot_id()))
