"""Due: what a recovery is to do after another start of the machine, noted until all of it is done.

The first step that is carried out changes the times that show what a power cut has left. So whoever goes on where a
recovery was cut off could not tell the rest from what somebody else has done.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, TypeAlias

from objstore.errors import DiskFailed, PermissionRefused, RecordInvalid, StoreLinked, StoreNotRegular
from objstore.fs.disk import Disk
from objstore.fs.nofollow import open_store_folder, read_store_file
from objstore.model.basic_types import FileState
from objstore.model.canonical_msgpack import Fields, Value, encode, state_value, unpack
from objstore.model.ids import HASH_SIZE, blob_id

__all__ = [
    "RECOVERY_NOTE_NAME",
    "PendingSteps",
    "decoded",
    "encoded",
    "read_recovery_note",
    "remove_recovery_note",
    "write_recovery_note",
]

RECOVERY_NOTE_NAME: Final = "due"
_MAGIC: Final = b"casdue01"
_STATES: Final = ("before", "after")
_MOST: Final = 1 << 24
"""Bytes of a note, at the most."""

PendingSteps: TypeAlias = Mapping[bytes, tuple[FileState | None, FileState | None]]
"""By path: what stood there when that was looked at, and what shall (None: nothing)."""


def write_recovery_note(folder: str, mark: bytes, due: PendingSteps, disk: Disk) -> None:
    """Note in the store's `folder`, durably, what is due behind a mark, in place of what was noted before.

    Raises what own_folder and Disk raise.
    """
    content = encoded(mark, due)
    if len(content) > _MOST:
        return
    scratch = os.path.join(folder, "tmp")
    disk.create(os.path.join(scratch, RECOVERY_NOTE_NAME), content)
    with open_store_folder(scratch) as source, open_store_folder(folder) as shelf:
        disk.replace(source, RECOVERY_NOTE_NAME, shelf, RECOVERY_NOTE_NAME)
    disk.sync_directory(folder)


def read_recovery_note(folder: str, mark: bytes) -> PendingSteps:
    """Return what was noted as due behind this very mark; once it is another one, all of that has been done."""
    try:
        return decoded(read_store_file(os.path.join(folder, RECOVERY_NOTE_NAME), _MOST + 1), mark)
    except (OSError, StoreLinked, StoreNotRegular):
        return {}


def remove_recovery_note(folder: str, disk: Disk) -> None:
    """Remove the note, if there is one: the mark says by now that all of it was done."""
    path = os.path.join(folder, RECOVERY_NOTE_NAME)
    if os.path.lexists(path):
        with suppress(FileNotFoundError, DiskFailed, PermissionRefused):
            disk.remove_store_file(path)


def encoded(mark: bytes, due: PendingSteps) -> bytes:
    """Return how it is spelt; `mark`: its bytes, or b"" where there is none."""
    steps: list[Value] = []
    for path, states in sorted(due.items()):
        step: dict[str, Value] = {"path": path}
        step |= {name: state_value(state) for name, state in zip(_STATES, states, strict=True) if state is not None}
        steps.append(step)
    packed = encode({"mark": mark, "steps": steps})
    return _MAGIC + blob_id(packed) + packed


def decoded(stored: bytes, mark: bytes) -> PendingSteps:
    """Return what is due; nothing where that is damaged, or was noted behind another mark."""
    due: dict[bytes, tuple[FileState | None, FileState | None]] = {}
    if len(stored) <= _MOST:
        with suppress(RecordInvalid):
            fields = Fields(unpack(stored[len(_MAGIC) + HASH_SIZE :]))
            for item in fields.items("steps"):
                if not isinstance(item, dict):
                    return {}
                step = Fields(item)
                due[step.path("path")] = step.state("before"), step.state("after")
            # Damage, another mark, another order and what is left over show in the spelling, of which the hash is a
            # part. It has no key, so it tells damage, and not who wrote it.
            return due if encoded(mark, due) == stored else {}
    return {}
