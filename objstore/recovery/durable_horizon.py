"""Settled: up to which records no file of this place can be lost any more when the machine stops.

They were found carried out after another start of the machine, so they are on the disk; or their files were never here,
because the store alone came from elsewhere. Either way what stands otherwise is somebody's.
"""

import os
from struct import Struct
from typing import Final

from objstore.errors import StoreLinked, StoreNotRegular
from objstore.fs.disk import Disk
from objstore.fs.nofollow import open_store_file, read_store_file
from objstore.index.stat_queries import JournalPosition
from objstore.store.object_store import Store

__all__ = ["DURABLE_HORIZON_NAME", "read_durable_horizon", "write_durable_horizon"]

DURABLE_HORIZON_NAME: Final = "settled"
_ID_SIZE: Final = 32
_SETTLED: Final = Struct(f"<QQ{_ID_SIZE}s{_ID_SIZE}s")


def write_durable_horizon(folder: str, store: Store, disk: Disk) -> None:
    """Note in the store's `folder`, durably, that everything in the journal is settled.

    Raises what own_file and Disk raise.
    """
    fd = open_store_file(os.path.join(folder, DURABLE_HORIZON_NAME), os.O_RDWR | os.O_CREAT)
    try:
        disk.overwrite(fd, _spelt(store, store.index.stats.position()), 0, DURABLE_HORIZON_NAME)
        disk.sync(fd, DURABLE_HORIZON_NAME)
    finally:
        os.close(fd)


def read_durable_horizon(folder: str, store: Store) -> tuple[int, int]:
    """Return the numbers of the last edit and decision that are settled (0: none is, or nothing is known)."""
    try:
        stored = read_store_file(os.path.join(folder, DURABLE_HORIZON_NAME), _SETTLED.size + 1)
    except (OSError, StoreLinked, StoreNotRegular):
        return 0, 0
    if len(stored) != _SETTLED.size:
        return 0, 0
    edit, decision = _SETTLED.unpack(stored)[:2]
    # Numbers of another journal, or that a fault has changed, have other ids.
    known = max(edit, decision) < 1 << 63 and stored == _spelt(store, JournalPosition(edit, decision, 0))
    return (edit, decision) if known else (0, 0)


def _spelt(store: Store, moment: JournalPosition) -> bytes:
    return _SETTLED.pack(moment.edit, moment.decision, *store.index.stats.recorded_at(moment))
