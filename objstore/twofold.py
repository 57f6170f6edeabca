"""Two processes look through one list: the system's part of many small questions runs on two processors.

As git does it with threads; Python's own part of each question would make threads wait for one another.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

__all__ = ["may_fork", "paths_by_two"]

Item = TypeVar("Item")

_ROOT: Final = b"/"
_PIPE_PIECE: Final = 1 << 16


def may_fork() -> bool:
    """Return whether a second process may be made, and would help."""
    # A child of a process with threads may find a lock taken by one that it does not have.
    if threading.active_count() > 1 or not hasattr(os, "fork"):
        return False
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # On a busy machine the two only take turns, and the second one's memory is copied for nothing.
    return processors > 1 and _running() < processors


def _running() -> float:
    """Return how many processes run or could run at this moment, this one among them; or did on average lately."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].split(b"/")[0])
    except (OSError, ValueError, IndexError):
        # No Linux. The average tells of the last minute, so it is late to fall.
        return os.getloadavg()[0]


def paths_by_two(find: Callable[[Sequence[Item]], list[bytes]], items: Sequence[Item]) -> list[bytes]:
    """Return the paths that `find` finds in `items`, half of them found by a child. This process has no other thread.

    `find` asks the system, and changes nothing.
    """
    half = len(items) // 2
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # Whatever happens here, nothing of the parent's may run a second time.
        with suppress(BaseException):
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                # No path holds a NUL; an empty one, the root, is spelt in a way that none is. The last NUL says: all.
                pipe.write(b"".join([(path or _ROOT) + b"\0" for path in find(items[half:])]) + b"\0")
        os._exit(0)
    os.close(writing)
    try:
        found = find(items[:half])
        told = _read_to_end(reading)
    finally:
        os.close(reading)
        os.waitpid(child, 0)
    # A child that was killed has told nothing, or not all.
    if not told.endswith(b"\0") or (len(told) > 1 and not told.endswith(b"\0\0")):
        return found + find(items[half:])
    return found + [b"" if path == _ROOT else path for path in told[:-1].split(b"\0")[:-1]]


def _read_to_end(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, _PIPE_PIECE):
        parts.append(part)
    return b"".join(parts)
