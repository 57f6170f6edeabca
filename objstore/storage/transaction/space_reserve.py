"""Keep disk space in reserve that a store releases when the disk is full.

Deciding on edits and expiring history needs a record, and rewriting a segment needs space for what remains of it. So a
store keeps an empty file of up to 1 MiB, in proportion to its history, and removes it when space is needed, together
with the index and the caches, which can be rebuilt.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from objstore.disk.fs.nofollow import open_store_folder
from objstore.disk.fs.reserved_names import LOG_NAME, STORE_NAME
from objstore.values.errors import CompactionSpaceNeeded, DiskFailed, DiskFull, PermissionRefused, StoreLocked

if TYPE_CHECKING:
    from collections.abc import Callable

    from objstore.disk.fs.disk import Disk
    from objstore.storage.transaction.journal import Journal

__all__ = [
    "MAX_RESERVE_BYTES",
    "MIN_RESERVE_BYTES",
    "RESERVE_NAME",
    "finish_compaction",
    "release_reserve",
    "reserve_space",
    "with_compaction_space",
    "with_reserve",
]

RESERVE_NAME: Final = "room"
"""The file that takes up the reserved space; FORMAT.md lists it."""

MAX_RESERVE_BYTES: Final = 1 << 20
"""Size of the reserve of a long history, on a disk with plenty of free space."""

_OF_HISTORY: Final = 8
"""The reserve takes this fraction of the segments' size: what remains of one is written before it is removed."""

_MAX_SHARE: Final = 16
"""The reserve takes at most this fraction of the free space, because a person who frees space needs it."""

MIN_RESERVE_BYTES: Final = 64 << 10
"""Size of the reserve of a short history; a smaller one is of no use."""

_CACHE: Final = "cache"

Result = TypeVar("Result")


def reserve_space(root: str, disk: "Disk") -> None:
    """Reserve space in the store of `root` for work on a full disk, in proportion to its history and to what is free.

    A reserve of about the right size stays.
    """
    store = os.path.join(root, STORE_NAME)
    path = os.path.join(store, RESERVE_NAME)
    with suppress(FileExistsError, FileNotFoundError, DiskFailed, PermissionRefused):
        kept = os.lstat(path).st_size if os.path.lexists(path) else 0
        wanted = min(MAX_RESERVE_BYTES, max(MIN_RESERVE_BYTES, _history_bytes(store) // _OF_HISTORY))
        if kept > 2 * wanted:
            disk.remove_store_file(path)
            kept = 0
        size = min(wanted, (disk.free_bytes(store, path) + kept) // _MAX_SHARE)
        if size < MIN_RESERVE_BYTES or size < 2 * kept:
            return
        if kept:
            disk.remove_store_file(path)
        disk.reserve(path, size)


def finish_compaction(journal: "Journal") -> None:
    """Remove what an interrupted compaction left. The caller is `compacting`."""
    with journal.writing(may_use_reserve=True):
        # Under the lock no one else creates a segment, so an unfinished one will never be completed.
        left = journal.store.log.files.superseded()
    for path in left:
        journal.disk.remove_store_file(path)


def release_reserve(journal: "Journal") -> None:
    """Remove what the store can do without: the reserve, derived files, and leftovers of compaction.

    From then on the index is kept in memory, because each change to its file takes space; the log can rebuild the file.
    """
    store = os.path.join(journal.tree.root, STORE_NAME)
    with suppress(FileNotFoundError, PermissionRefused, DiskFailed):
        journal.disk.remove_store_file(os.path.join(store, RESERVE_NAME))
    with journal.reading() as opened:
        opened.release_index()
    with suppress(FileNotFoundError), open_store_folder(os.path.join(store, _CACHE)) as cache:
        for name in os.listdir(cache):
            with suppress(FileNotFoundError, PermissionRefused, DiskFailed):
                journal.disk.unlink(cache, name)
    # A running compaction needs its files.
    with suppress(StoreLocked, DiskFull), journal.compacting():
        finish_compaction(journal)


def with_reserve(journal: "Journal", act: "Callable[[], Result]") -> Result:
    """Return the result of `act`; if the disk is full, release the reserve and try once more. Raises DiskFull."""
    try:
        return act()
    except DiskFull:
        release_reserve(journal)
    return act()


def with_compaction_space(journal: "Journal", act: "Callable[[], Result]") -> Result:
    """Do as `with_reserve`, for a step of compaction. Raises CompactionSpaceNeeded if the reserve was not enough."""
    try:
        return with_reserve(journal, act)
    except CompactionSpaceNeeded:
        raise
    except DiskFull as error:
        raise CompactionSpaceNeeded(error.path, 0) from error


# ---- inside


def _history_bytes(store: str) -> int:
    with suppress(FileNotFoundError), os.scandir(os.path.join(store, LOG_NAME)) as segments:
        return sum(entry.stat(follow_symlinks=False).st_size for entry in segments)
    return 0
