"""Observe which files any process opens, by the kernel's own notifications (inotify, on Linux)."""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["OpenedFiles", "opened_files"]

_IN_OPEN: Final = 0x20
_EVENT: Final = struct.Struct("iIII")


class OpenedFiles:
    """The watched files that were opened so far."""

    def __init__(self, queue: int, names: dict[int, Path]) -> None:
        self._queue = queue
        self._names = names

    def take(self) -> set[Path]:
        """Return the files that were opened since this was last called."""
        found: set[Path] = set()
        while True:
            try:
                events = os.read(self._queue, 1 << 16)
            except BlockingIOError:
                return found
            at = 0
            while at < len(events):
                watch, _, _, size = _EVENT.unpack_from(events, at)
                found.add(self._names[watch])
                at += _EVENT.size + size


@contextmanager
def opened_files(*files: Path) -> Iterator[OpenedFiles]:
    """Watch files that exist. Raises OSError where the system can't."""
    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if queue < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    try:
        watches = {libc.inotify_add_watch(queue, os.fsencode(file), _IN_OPEN): file for file in files}
        if min(watches) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
        yield OpenedFiles(queue, watches)
    finally:
        os.close(queue)
