"""Remember which covered files and folders a rule began to leave out, so that a person hears of it.

A scan that finds such a name notes it here before it saves its stat cache, because the next scan no longer sees the
change. Nothing is removed, so that how many entries a person has seen says which are new.
"""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from objstore.errors import CasError
from objstore.fs.nofollow import open_store_file, read_store_file
from objstore.fs.reserved_names import AGENTS_NAME, STORE_NAME

__all__ = ["has_newly_left_out", "newly_left_out", "note_newly_left_out"]

_NAME: Final = "left-out"
_MOST_BYTES: Final = 1 << 20


def note_newly_left_out(root: str, paths: Iterable[bytes]) -> None:
    """Add paths, each behind its time. If that can't be written, nothing else is lost."""
    entries = b"".join(b"%d %s\0" % (time.time_ns() // 1000, path) for path in paths)
    if not entries:
        return
    with suppress(OSError, CasError):
        os.makedirs(os.path.join(root, STORE_NAME, AGENTS_NAME), exist_ok=True)
        fd = open_store_file(_path(root), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            if os.fstat(fd).st_size < _MOST_BYTES:
                os.write(fd, entries)
        finally:
            os.close(fd)


def newly_left_out(root: str) -> list[tuple[int, bytes]]:
    """Return the noted paths, oldest first, each with its time in microseconds since 1970-01-01 UTC."""
    try:
        entries = read_store_file(_path(root), 2 * _MOST_BYTES).split(b"\0")[:-1]
    except (OSError, CasError):
        return []
    parted = [entry.partition(b" ") for entry in entries]
    return [(int(moment) if moment.isdigit() else 0, path) for moment, _, path in parted]


def has_newly_left_out(root: str) -> bool:
    """Return whether any path was ever noted."""
    return os.path.lexists(_path(root))


def _path(root: str) -> str:
    return os.path.join(root, STORE_NAME, AGENTS_NAME, _NAME)
