"""A glance: which of many known folders are not as they were, by the times, sizes and modes of what is in them.

Nothing is read, and no object is kept for a file: of tens of thousands, this is what every look costs. The system's
part of that runs on two processors where there are two, as git's does.
"""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Final

from msgpack import packb, unpackb

from objstore.looks import FolderKey, Glimpse, pack_facts

__all__ = ["FACTS", "changed_by_one", "changed_by_two", "changed_folders", "key_of"]

FACTS: Final = attrgetter("st_ctime_ns", "st_mtime_ns", "st_size", "st_ino", "st_mode")
"""Takes the values of `looks.Facts`, in their order, from what the system says of a file."""

_FOLDER: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_WORTH_TWO: Final = 4_000
"""Files: for fewer, a second process costs more than it saves."""

_PIPE_PIECE: Final = 1 << 16


def changed_folders(root: int, known: Sequence[Glimpse]) -> list[bytes]:
    """Return those of the folders, below the open folder `root`, whose names or files are not as they were known."""
    if sum(len(glimpse.names) for glimpse in known) >= _WORTH_TWO and _may_fork():
        return changed_by_two(root, known)
    return changed_by_one(root, known)


def key_of(seen: os.stat_result) -> FolderKey:
    """Return what is asked of a folder."""
    return FolderKey(seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns)


def changed_by_one(root: int, known: Sequence[Glimpse]) -> list[bytes]:
    """Return what `changed_folders` returns, found by this process."""
    found = []
    for path, key, names, facts in known:
        try:
            fd = os.open(path or b".", _FOLDER, dir_fd=root)
        except OSError:
            found.append(path)  # gone, or no folder any more
            continue
        try:
            # A folder whose own times are the same holds the same names.
            is_same = key_of(os.fstat(fd)) == tuple(key)
            if not is_same or pack_facts(map(FACTS, map(partial(os.lstat, dir_fd=fd), names))) != facts:
                found.append(path)
        except OSError:
            found.append(path)
        finally:
            os.close(fd)
    return found


def _may_fork() -> bool:
    # A child of a process with threads may find a lock taken by one that it does not have.
    if threading.active_count() > 1 or not hasattr(os, "fork"):
        return False
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # On a busy machine the two only take turns, and the second one's memory is copied for nothing.
    return processors > 1 and os.getloadavg()[0] < processors


def changed_by_two(root: int, known: Sequence[Glimpse]) -> list[bytes]:
    """Return what `changed_folders` returns, half of it found by a child. This process must have no other thread."""
    half = len(known) // 2
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # Whatever happens here, nothing of the parent's may run a second time.
        with suppress(BaseException):
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(packb(changed_by_one(root, known[half:])))
        os._exit(0)
    os.close(writing)
    try:
        found = changed_by_one(root, known[:half])
        told = _read_to_end(reading)
    finally:
        os.close(reading)
        os.waitpid(child, 0)
    # A child that was killed has told nothing, or not all.
    try:
        theirs: list[bytes] = unpackb(told)
    except ValueError:
        theirs = changed_by_one(root, known[half:])
    return found + theirs


def _read_to_end(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, _PIPE_PIECE):
        parts.append(part)
    return b"".join(parts)
