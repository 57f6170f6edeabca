"""Two processes look through one list: the system's part of many small questions runs on two processors.

As git does it with threads; Python's own part of each question would make threads wait for one another.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence

from objstore.annotations import Final, TypeVar
from objstore.standard import suppress

__all__ = ["is_single", "may_fork", "paths_by_two"]

Item = TypeVar("Item")

_ROOT: Final = b"/"
_PIPE_PIECE: Final = 1 << 16
_PIECES: Final = 32
"""Into which a list is cut: the last one of them is all that one may have to wait for the other."""


def may_fork() -> bool:
    """Return whether a second process may be made, and would help."""
    # A child of a process with threads may find a lock taken by one that it does not have.
    if not is_single() or not hasattr(os, "fork"):
        return False
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processors > 1


def is_single() -> bool:
    """Return whether this process has no thread but this one."""
    threading = sys.modules.get("threading")  # who has not imported it has started none
    return threading is None or threading.active_count() == 1


def paths_by_two(find: Callable[[Sequence[Item]], list[bytes]], items: Sequence[Item]) -> list[bytes]:
    """Return the paths that `find` finds in `items`, in any order, some of them found by a child.

    This process has no other thread. Whoever has done a piece takes the next one, so a processor that is slow, or has
    others to serve, is given fewer. `find` asks the system, and changes nothing.
    """
    size = -(-len(items) // _PIECES) or 1
    pieces = [items[at : at + size] for at in range(0, len(items), size)]
    # A pipe gives each of its bytes to one of those who read it.
    numbers, giving = os.pipe()
    os.write(giving, bytes(range(len(pieces))))
    os.close(giving)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # Whatever happens here, nothing of the parent's may run a second time.
        with suppress(BaseException):
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                found = [path for piece in _taken(numbers, pieces) for path in find(piece)]
                # No path holds a NUL; an empty one, the root, is spelt in a way that none is. The last NUL says: all.
                pipe.write(b"".join([(path or _ROOT) + b"\0" for path in found]) + b"\0")
        os._exit(0)
    os.close(writing)
    try:
        own = [(piece, find(piece)) for piece in _taken(numbers, pieces)]
        told = _read_to_end(reading)
    finally:
        os.close(reading)
        os.close(numbers)
        os.waitpid(child, 0)
    found = [path for _, paths in own for path in paths]
    # A child that was killed has told nothing, or not all.
    if not told.endswith(b"\0") or (len(told) > 1 and not told.endswith(b"\0\0")):
        done = {id(piece) for piece, _ in own}
        return found + [path for piece in pieces if id(piece) not in done for path in find(piece)]
    return found + [b"" if path == _ROOT else path for path in told[:-1].split(b"\0")[:-1]]


def _taken(numbers: int, pieces: Sequence[Sequence[Item]]) -> Iterator[Sequence[Item]]:
    """Yield one piece after the other that nobody else has taken; `numbers`: a pipe with the number of each."""
    while number := os.read(numbers, 1):
        yield pieces[number[0]]


def _read_to_end(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, _PIPE_PIECE):
        parts.append(part)
    return b"".join(parts)
