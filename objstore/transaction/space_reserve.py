"""Space reserve: room that a store gives back when the disk is full.

Deciding on edits and expiring history takes a record, and rewriting a segment takes room for what remains of it. So a
store keeps an empty file of up to 1 MiB, and gives it up when it is needed, together with the caches, which can be made
again.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from objstore.errors import CompactionSpaceNeeded, DiskFailed, DiskFull, PermissionRefused, StoreLocked
from objstore.fs.nofollow import open_store_folder
from objstore.fs.reserved_names import STORE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from objstore.fs.disk import Disk
    from objstore.transaction.journal import Journal

__all__ = [
    "MAX_RESERVE_BYTES",
    "RESERVE_NAME",
    "finish_compaction",
    "release_reserve",
    "reserve_space",
    "with_compaction_space",
    "with_reserve",
]

RESERVE_NAME: Final = "room"
"""The file that keeps room; FORMAT.md has it in its list."""

MAX_RESERVE_BYTES: Final = 1 << 20
"""The reserve on a disk with plenty of room."""

_SHARE: Final = 16
"""The reserve takes at most this part of what is free: whoever has made room shall have it."""

_LEAST: Final = 64 << 10
"""A smaller reserve is of no use."""

_CACHE: Final = "cache"

Result = TypeVar("Result")


def reserve_space(root: str, disk: "Disk") -> None:
    """Reserve room in the store of `root` for work on a full disk, in proportion to what is free."""
    path = os.path.join(root, STORE_NAME, RESERVE_NAME)
    with suppress(FileExistsError, FileNotFoundError, DiskFailed, PermissionRefused):
        if os.path.lexists(path):
            return
        size = min(MAX_RESERVE_BYTES, disk.free_bytes(os.path.dirname(path), path) // _SHARE)
        if size >= _LEAST:
            disk.reserve(path, size)


def finish_compaction(journal: "Journal") -> None:
    """Have the index follow what was moved, and remove what was left of segments that were being written anew."""
    journal.finish_moves()
    with journal.writing(may_use_reserve=True):
        # Under the lock nobody else makes a segment, so what looks like one that was never finished will never be.
        left = journal.store.log.superseded()
    for path in left:
        journal.disk.remove_store_file(path)


def release_reserve(journal: "Journal") -> None:
    """Remove what the store can do without: the room that it keeps, what is derived, and what a sweep left.

    The index is kept in memory from then on: in its file each change takes room, and it is made from the log again.
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
    # Whoever is sweeping at this moment needs what there is.
    with suppress(StoreLocked, DiskFull), journal.compacting():
        finish_compaction(journal)


def with_reserve(journal: "Journal", act: "Callable[[], Result]") -> Result:
    """Return what `act` returns; if the disk is full, give back the reserve and try once more. Raises DiskFull."""
    try:
        return act()
    except DiskFull:
        release_reserve(journal)
    return act()


def with_compaction_space(journal: "Journal", act: "Callable[[], Result]") -> Result:
    """Do as `with_reserve`, for a step of a collection. Raises RoomNeeded where the reserve was not enough."""
    try:
        return with_reserve(journal, act)
    except CompactionSpaceNeeded:
        raise
    except DiskFull as error:
        raise CompactionSpaceNeeded(error.path, 0) from error
