"""Remember which folders are other file systems, and find those that are not mounted now.

The files of a disk that is taken out, or of a share that is not connected, are not deleted: they are not there now. So
a folder that was a mount point at some scan, and is empty and none now, is neither compared nor recorded until it is
one again. If it is removed, its files are gone. The list is a derived file: if it is lost, a mount point counts as a
folder like any other.
"""

import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from objstore.disk.fs.nofollow import read_store_file, write_derived_file
from objstore.disk.fs.reserved_names import MOUNTS_NAME, STORE_NAME
from objstore.model.relpath import is_within
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import CasError, NotMounted, StoreLinked, StoreNotRegular

__all__ = ["absent_folders", "is_absent", "note_mounts", "require_mounted", "unseen_folders"]

_LONGEST_FILE: Final = 1 << 20
_ABSENT: Final = b"/"
"""What follows the path of a mount point in the list that was not mounted at the last scan."""

_POINT: Final = 4
"""The field of a line of mountinfo with the mount point, in which some characters are escaped. Source: proc(5)."""
_ESCAPED: Final = rb"\\([0-7]{3})"


def absent_folders(journal: Journal) -> list[bytes]:
    """Return the folders whose file systems are not mounted now, ascending. Mostly this finds that there is no list."""
    root = journal.tree.root
    return [path for path in _mount_points(root) if _is_bare(root, path)]


def unseen_folders(journal: Journal) -> list[bytes]:
    """Return the folders whose file systems were not mounted at the last scan."""
    return [path.removesuffix(_ABSENT) for path in _listed(journal.tree.root) if path.endswith(_ABSENT)]


def is_absent(path: bytes, absent: Iterable[bytes]) -> bool:
    """Return whether a path is in one of these folders."""
    return any(is_within(path, folder) for folder in absent)


def require_mounted(journal: Journal, paths: Iterable[bytes]) -> None:
    """Raise NotMounted if a path is on a file system that is not mounted now."""
    absent = absent_folders(journal)
    for path in paths if absent else ():
        for folder in absent:
            if is_within(path, folder):
                raise NotMounted(os.fsdecode(path), os.fsdecode(folder))


def note_mounts(journal: Journal, folders: Iterable[tuple[bytes, int]]) -> None:
    """Remember which of the scanned folders are mount points, and which are not mounted now. Never raises.

    `folders`: each with the number of its device.
    """
    root = journal.tree.root
    devices = dict(folders)
    found = {
        path for path, device in devices.items() if path and devices.get(path.rpartition(b"/")[0], device) != device
    }
    found |= _bound(root)
    found |= {path + _ABSENT for path in _mount_points(root) if path not in found and _is_unmounted(root, path)}
    if found != set(_listed(root)):
        content = b"".join(path + b"\0" for path in sorted(found))
        with suppress(OSError, CasError):
            write_derived_file(journal.disk, os.path.join(root, STORE_NAME), *os.path.split(MOUNTS_NAME), content)


def _bound(root: str) -> set[bytes]:
    """Return the mount points in the workspace that Linux lists: a bound folder may be on the same device."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            fields = [line.split(b" ") for line in file]
    except OSError:
        return set()
    above = os.fsencode(os.path.realpath(root)) + b"/"
    points = [_unescaped(each[_POINT]) for each in fields if len(each) > _POINT]
    return {point.removeprefix(above) for point in points if point.startswith(above)}


def _unescaped(point: bytes) -> bytes:
    return re.sub(_ESCAPED, lambda found: bytes([int(found[1], 8)]), point) if b"\\" in point else point


def _mount_points(root: str) -> list[bytes]:
    return [path.removesuffix(_ABSENT) for path in _listed(root)]


def _listed(root: str) -> Collection[bytes]:
    try:
        held = read_store_file(os.path.join(root, STORE_NAME, MOUNTS_NAME), _LONGEST_FILE)
    except (OSError, StoreLinked, StoreNotRegular, ValueError):
        return ()
    return sorted(path for path in held.split(b"\0") if path)


def _is_bare(root: str, path: bytes) -> bool:
    """Return whether a path is an empty folder, and no mount point."""
    try:
        is_empty = not os.listdir(os.path.join(os.fsencode(root), path))
    except OSError:
        return False
    return is_empty and _is_unmounted(root, path) and path not in _bound(root)


def _is_unmounted(root: str, path: bytes) -> bool:
    """Return whether a path is a folder on the same device as the one above it."""
    full = os.path.join(os.fsencode(root), path)
    try:
        return os.path.isdir(full) and os.lstat(full).st_dev == os.lstat(os.path.dirname(full)).st_dev
    except OSError:
        return False
