"""Record up to which place of the log the user's files match it.

The files are durable before the marker moves, and it moves without a sync: after a kill it is exact, and after a power
cut it may be some seconds old. Then the last call is looked at once more.
"""

from __future__ import annotations

import os
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.disk import failure
from objstore.disk.fs.nofollow import open_store_file, read_store_file
from objstore.disk.fs.reserved_names import APPLIED_MARKER_NAME
from objstore.storage.log.segment_files import Place
from objstore.values.errors import DiskFailed, PermissionRefused, StoreLinked, StoreNotRegular

if TYPE_CHECKING:
    from objstore.disk.fs.disk import Disk

__all__ = [
    "APPLIED_MARKER_SIZE",
    "AppliedMarker",
    "decode_applied_marker",
    "read_applied_marker",
    "reset_applied_marker",
]

_MARKER: Final = Struct("<QQ")
APPLIED_MARKER_SIZE: Final = _MARKER.size


def decode_applied_marker(stored: bytes) -> Place | None:
    """Return the place in a marker (None: the bytes are no marker)."""
    return Place(*_MARKER.unpack(stored)) if len(stored) == _MARKER.size else None


class AppliedMarker:
    """The applied marker of the store in `folder`, for one process."""

    def __init__(self, folder: str, disk: Disk) -> None:
        """Set the path; no file is opened yet."""
        self._folder: Final = folder
        self._path: Final = os.path.join(folder, APPLIED_MARKER_NAME)
        self._disk: Final = disk
        self._fd: int | None = None

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None

    def read(self) -> Place | None:
        """Return the place up to which files match the log (None: not known)."""
        try:
            return decode_applied_marker(os.pread(self._open_marker(), _MARKER.size + 1, 0))
        except (OSError, DiskFailed, PermissionRefused):
            return None

    def write(self, end: Place) -> None:
        """Record that files match the log up to `end`."""
        # A marker that can't be written remains an old one: then the last call is looked at once more.
        with suppress(DiskFailed, PermissionRefused):
            self._disk.overwrite(self._open_marker(), _MARKER.pack(*end), 0, APPLIED_MARKER_NAME)

    def renew(self, end: Place) -> None:
        """Make a marker that records `end`, durably, in place of one that is missing or damaged: nothing is pending."""
        with suppress(DiskFailed, PermissionRefused):
            self._disk.truncate(self._open_marker(), 0, APPLIED_MARKER_NAME)
            self.write(end)
            self._disk.sync(self._open_marker(), self._path)
            self._disk.sync_directory(self._folder)

    def _open_marker(self) -> int:
        if self._fd is None:
            try:
                self._fd = open_store_file(self._path, os.O_RDWR | os.O_CREAT)
            except OSError as error:
                raise failure(error, APPLIED_MARKER_NAME) from error
        return self._fd


def read_applied_marker(folder: str) -> Place | None:
    """Return the place up to which files match the log of the store in `folder` (None: not known)."""
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
    disk.create(path, _MARKER.pack(*end))
