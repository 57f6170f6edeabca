"""The mark: how far files are known to have followed the log, and in which start of the machine.

It is written without a sync: after a mere crash of the process it is there; after a power cut it may be old, and then
the newest groups are looked at again, which costs a read and harms nothing.
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
    "MARK_SIZE",
    "AppliedMarker",
    "decode_applied_marker",
    "encode_applied_marker",
    "read_applied_marker",
    "reset_applied_marker",
]

_MARK: Final = Struct("<QQ16s")
MARK_SIZE: Final = _MARK.size


def encode_applied_marker(place: Place, boot: bytes) -> bytes:
    """Return the mark that names a place, in the start of the machine that `boot` names."""
    return _MARK.pack(place.segment, place.offset, boot)


def decode_applied_marker(stored: bytes) -> Place | None:
    """Return the place that a mark names (None: these bytes are none)."""
    return Place(*_MARK.unpack(stored)[:2]) if len(stored) == _MARK.size else None


class AppliedMarker:
    """The mark of the store in `folder`, for one process."""

    def __init__(self, folder: str, disk: Disk) -> None:
        """Open nothing yet."""
        self._path: Final = os.path.join(folder, APPLIED_MARKER_NAME)
        self._disk: Final = disk
        self._fd: int | None = None
        self._is_longer = False  # whether the file was found to hold more than a mark
        self._boot: Final = disk.boot_id()
        # Where the system doesn't tell, no mark is known to be of this start of the machine until files were looked at.
        self._knows_boot = self._boot != UNKNOWN_BOOT

    def close(self) -> None:
        """Close its file; it may be used on."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None

    def read(self) -> tuple[Place | None, bytes]:
        """Return how far files have followed (None: nothing is known), and the boot id it says."""
        try:
            stored = os.pread(self._opened(), _MARK.size + 1, 0)
        except (OSError, DiskFailed, PermissionRefused):
            return None, b""
        self._is_longer = len(stored) > _MARK.size
        if len(stored) != _MARK.size:
            return None, b""
        segment, offset, boot = _MARK.unpack(stored)
        return Place(segment, offset), boot

    def write(self, end: Place) -> None:
        """Note that files have followed the log to `end`."""
        # A mark that can't be written is an old mark: then the newest files are looked at once more.
        with suppress(DiskFailed, PermissionRefused):
            self._disk.overwrite(self._opened(), encode_applied_marker(end, self._boot), 0, APPLIED_MARKER_NAME)
            if self._is_longer:
                self._disk.truncate(self._opened(), _MARK.size, APPLIED_MARKER_NAME)
                self._is_longer = False
            # By the clock that records have: that of files is too coarse to tell this from a call that comes at once.
            self._disk.set_time(self._opened(), now() * 1000, APPLIED_MARKER_NAME)

    def moment(self) -> int:
        """Return when it was last written, in microseconds since 1970-01-01 UTC; 0 where there is none."""
        try:
            return os.lstat(self._path).st_mtime_ns // 1000
        except OSError:
            return 0

    def is_of_this_boot(self, boot: bytes) -> bool:
        """Return whether a mark with that boot id is certain to be of this start of the machine."""
        return self._knows_boot and boot == self._boot

    def is_of_earlier_boot(self, boot: bytes) -> bool:
        """Return whether a mark with that boot id is certain to be of an earlier start of the machine."""
        return UNKNOWN_BOOT not in (boot, self._boot) and self._boot != boot != b""

    def note_inspected(self) -> None:
        """Note that this process has looked at the files itself: what it writes from now on is of this start."""
        self._knows_boot = True

    def _opened(self) -> int:
        if self._fd is None:
            try:
                self._fd = open_store_file(self._path, os.O_RDWR | os.O_CREAT)
            except OSError as error:
                raise failure(error, APPLIED_MARKER_NAME) from error
        return self._fd


def read_applied_marker(folder: str) -> Place | None:
    """Return how far files are known to have followed the log of the store in `folder` (None: nothing is known)."""
    try:
        stored = read_store_file(os.path.join(folder, APPLIED_MARKER_NAME), _MARK.size + 1)
    except (OSError, StoreLinked, StoreNotRegular):
        return None
    return decode_applied_marker(stored)


def reset_applied_marker(folder: str, end: Place, disk: Disk) -> None:
    """Set the mark of the store in `folder` to `end`: no file has to follow what its log holds so far."""
    path = os.path.join(folder, APPLIED_MARKER_NAME)
    with suppress(FileNotFoundError):
        disk.remove_store_file(path)
    disk.create(path, encode_applied_marker(end, disk.boot_id()))
