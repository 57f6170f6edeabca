"""Room: what a store can do without for a while, given back where the disk is full and a collection needs some.

To let history go takes a record, and to write a segment anew takes room for what stays of it. So a store keeps a file
with nothing in it while there is plenty, and gives that up when it is needed, with what else is derived and can be made
again.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from objstore.errors import DiskFailed, DiskFull, PermissionRefused, RoomNeeded, StoreLocked
from objstore.names import STORE_NAME
from objstore.premises import own_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from objstore.disk import Disk
    from objstore.journal import Journal

__all__ = ["KEPT_BYTES", "ROOM", "give_back", "keep_room", "with_room"]

ROOM: Final = "room"
"""The file that keeps room; FORMAT.md has it in its list."""

KEPT_BYTES: Final = 1 << 20
_PLENTY: Final = 64 << 20
"""Bytes that have to be free for some to be kept: who has made room is to have it."""

_CACHE: Final = "cache"

Result = TypeVar("Result")


def keep_room(root: str, disk: "Disk") -> None:
    """Keep room in the store of `root` for a collection on a full disk, if there is plenty now."""
    path = os.path.join(root, STORE_NAME, ROOM)
    with suppress(FileExistsError, FileNotFoundError, DiskFailed, PermissionRefused):
        if not os.path.lexists(path) and disk.free_bytes(os.path.dirname(path), path) > _PLENTY:
            disk.reserve(path, KEPT_BYTES)


def give_back(journal: "Journal") -> None:
    """Remove what the store can do without: the room that it keeps, what is derived, and what a sweep left."""
    store = os.path.join(journal.tree.root, STORE_NAME)
    with suppress(FileNotFoundError, PermissionRefused, DiskFailed):
        journal.disk.remove_store_file(os.path.join(store, ROOM))
    with suppress(FileNotFoundError), own_folder(os.path.join(store, _CACHE)) as cache:
        for name in os.listdir(cache):
            with suppress(FileNotFoundError, PermissionRefused, DiskFailed):
                journal.disk.unlink(cache, name)
    from objstore.sweep import clear_away

    # Whoever is sweeping at this moment needs what there is.
    with suppress(StoreLocked, DiskFull), journal.sweeping():
        clear_away(journal)


def with_room(journal: "Journal", act: "Callable[[], Result]") -> Result:
    """Return what `act` returns; where there is no room for it, give back what there is, and let it try once more.

    Raises RoomNeeded where that was not enough.
    """
    try:
        return act()
    except DiskFull:
        give_back(journal)
    try:
        return act()
    except RoomNeeded:
        raise
    except DiskFull as error:
        raise RoomNeeded(error.path, 0) from error
