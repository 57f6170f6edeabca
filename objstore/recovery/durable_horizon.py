"""Record up to which edit and decision no file of this workspace can be lost any more when the machine stops.

Their files were found applied after a reboot, so they are on the disk; or the files were never here, because only the
store was copied. Either way, a file that differs was changed by someone else.
"""

import os
from struct import Struct
from typing import Final

from objstore.errors import StoreLinked, StoreNotRegular
from objstore.fs.disk import Disk
from objstore.fs.nofollow import open_store_file, read_store_file
from objstore.index.queries.stat_queries import JournalPosition
from objstore.store.object_store import Store

__all__ = ["DURABLE_HORIZON_NAME", "read_durable_horizon", "write_durable_horizon"]

DURABLE_HORIZON_NAME: Final = "settled"
_ID_SIZE: Final = 32
_HORIZON: Final = Struct(f"<QQ{_ID_SIZE}s{_ID_SIZE}s")


def write_durable_horizon(folder: str, store: Store, disk: Disk) -> None:
    """Record in the store's `folder`, durably, that the files of the whole journal are durable.

    Raises what open_store_file and Disk raise.
    """
    fd = open_store_file(os.path.join(folder, DURABLE_HORIZON_NAME), os.O_RDWR | os.O_CREAT)
    try:
        disk.overwrite(fd, _encoded(store, store.index.stats.position()), 0, DURABLE_HORIZON_NAME)
        disk.sync(fd, DURABLE_HORIZON_NAME)
    finally:
        os.close(fd)


def read_durable_horizon(folder: str, store: Store) -> tuple[int, int]:
    """Return the numbers of the last edit and decision within the horizon (0: none, or unknown)."""
    try:
        stored = read_store_file(os.path.join(folder, DURABLE_HORIZON_NAME), _HORIZON.size + 1)
    except (OSError, StoreLinked, StoreNotRegular):
        return 0, 0
    if len(stored) != _HORIZON.size:
        return 0, 0
    edit, decision = _HORIZON.unpack(stored)[:2]
    # The ids differ if the numbers are of another journal, or were damaged.
    known = max(edit, decision) < 1 << 63 and stored == _encoded(store, JournalPosition(edit, decision, 0))
    return (edit, decision) if known else (0, 0)


def _encoded(store: Store, moment: JournalPosition) -> bytes:
    """Return the horizon's bytes: the two numbers and the ids of their records."""
    return _HORIZON.pack(moment.edit, moment.decision, *store.index.stats.recorded_at(moment))
