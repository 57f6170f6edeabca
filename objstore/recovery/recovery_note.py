"""Record which steps a recovery has to apply after a reboot, until all of them are applied.

The first applied step changes the file times that show what a power cut has left. So without this note, a process that
continues an interrupted recovery could not distinguish the remaining steps from someone else's changes.
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
_MAX_BYTES: Final = 1 << 24
"""Longest note, in bytes."""

PendingSteps: TypeAlias = Mapping[bytes, tuple[FileState | None, FileState | None]]
"""By path: the state when the file was inspected, and the state after the step (None: no file)."""


def write_recovery_note(folder: str, mark: bytes, due: PendingSteps, disk: Disk) -> None:
    """Write a note to the store's `folder`, durably, of the steps pending after a marker, replacing an earlier note.

    Raises what open_store_folder and Disk raise.
    """
    content = encoded(mark, due)
    if len(content) > _MAX_BYTES:
        return
    scratch = os.path.join(folder, "tmp")
    disk.create(os.path.join(scratch, RECOVERY_NOTE_NAME), content)
    with open_store_folder(scratch) as source, open_store_folder(folder) as target:
        disk.replace(source, RECOVERY_NOTE_NAME, target, RECOVERY_NOTE_NAME)
    disk.sync_directory(folder)


def read_recovery_note(folder: str, mark: bytes) -> PendingSteps:
    """Return the steps that were noted as pending after this very marker; after another one, all have been applied."""
    try:
        return decoded(read_store_file(os.path.join(folder, RECOVERY_NOTE_NAME), _MAX_BYTES + 1), mark)
    except (OSError, StoreLinked, StoreNotRegular):
        return {}


def remove_recovery_note(folder: str, disk: Disk) -> None:
    """Remove the note, if there is one: according to the marker, all its steps were applied."""
    path = os.path.join(folder, RECOVERY_NOTE_NAME)
    if os.path.lexists(path):
        with suppress(FileNotFoundError, DiskFailed, PermissionRefused):
            disk.remove_store_file(path)


def encoded(mark: bytes, due: PendingSteps) -> bytes:
    """Return the encoded note; `mark`: the marker's bytes, or b"" if there is none."""
    steps: list[Value] = []
    for path, states in sorted(due.items()):
        step: dict[str, Value] = {"path": path}
        step |= {name: state_value(state) for name, state in zip(_STATES, states, strict=True) if state is not None}
        steps.append(step)
    packed = encode({"mark": mark, "steps": steps})
    return _MAGIC + blob_id(packed) + packed


def decoded(stored: bytes, mark: bytes) -> PendingSteps:
    """Return the pending steps; none if the note is damaged, or is about another marker."""
    due: dict[bytes, tuple[FileState | None, FileState | None]] = {}
    if len(stored) <= _MAX_BYTES:
        with suppress(RecordInvalid):
            fields = Fields(unpack(stored[len(_MAGIC) + HASH_SIZE :]))
            for item in fields.items("steps"):
                if not isinstance(item, dict):
                    return {}
                step = Fields(item)
                due[step.path("path")] = step.state("before"), step.state("after")
            # Encoding the steps again reveals damage, another marker, another order and extra bytes. The hash has no
            # key, so it detects damage, but does not authenticate the writer.
            return due if encoded(mark, due) == stored else {}
    return {}
