"""Two processes look through one list: the system's part of many small questions runs on two processors.

As git does it with threads; Python's own part of each question would make threads wait for one another.
"""

from __future__ import annotations

import os
import sys
from itertools import chain

from objstore.annotations import TYPE_CHECKING, Final, Self, TypeVar
from objstore.standard import suppress
from objstore.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    Making = Callable[[], AbstractContextManager["Search"]]

__all__ = ["Search", "Shared", "is_single", "may_fork", "search_of"]

Item = TypeVar("Item")

_ROOT: Final = b"/"
_PIPE_PIECE: Final = 1 << 16
_LENGTH: Final = 8
_SIGKILL: Final = 9
"""As every POSIX system numbers it; `signal` would bring `enum`."""

_PIECES: Final = 32
"""Into which a list is cut: the last one of them is all that one may have to wait for the other."""


class Search(NamedTuple):
    """A list in pieces, to be looked through in any order. Looking asks the system, and changes nothing."""

    mark: bytes  # which list it is, where two processes make their own
    find: Callable[[int], list[bytes]]  # returns the paths that are found in the piece of that number


def search_of(mark: bytes, items: Sequence[Item], find: Callable[[Sequence[Item]], list[bytes]]) -> Search:
    """Return the search for the paths that `find` finds in some of the items."""
    size = -(-len(items) // _PIECES) or 1
    return Search(mark, lambda number: find(items[number * size : (number + 1) * size]))


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


class Shared:
    """A search that a child has begun, and that this process takes part in when it comes to it.

    Whoever has done a piece takes the next one, so a processor that is slow, or has others to serve, is given fewer.
    """

    def __init__(self, search: Making) -> None:
        """Have a child make the search and begin with it. This process has no other thread. Raises OSError."""
        fds: list[int] = []
        try:
            # A pipe gives each of its bytes to one of those who read it.
            fds += os.pipe()
            fds += os.pipe()
            os.write(fds[1], bytes(range(_PIECES)))
            self._child = os.fork()
        except OSError:
            for fd in fds:
                os.close(fd)
            raise
        self._numbers, giving, self._told, telling = fds
        os.close(giving)
        if self._child == 0:
            # Whatever happens here, nothing of the parent's may run a second time.
            with suppress(BaseException):
                os.close(self._told)
                with os.fdopen(telling, "wb") as pipe, search() as (mark, find):
                    pipe.write(mark + _packed([path for number in self._taken() for path in find(number)]))
            os._exit(0)
        os.close(telling)

    def finish(self, search: Making, mark: bytes) -> list[bytes]:
        """Return the paths that are found, in any order, once. `search` is made only if something is left to be done.

        `mark`: of that search; if the child's turns out to be another, this process does all by itself.
        """
        own = dict(self._found(search, self._taken()))
        told = _read_to_end(self._told)
        others = _unpacked(told.removeprefix(mark)) if told.startswith(mark) else None
        if others is None:
            others = []
            own |= self._found(search, (number for number in range(_PIECES) if number not in own))
        return others + [path for paths in own.values() for path in paths]

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child, whether or not what it does was needed."""
        os.close(self._numbers)
        os.close(self._told)
        with suppress(ProcessLookupError):
            os.kill(self._child, _SIGKILL)
        os.waitpid(self._child, 0)

    @staticmethod
    def _found(search: Making, numbers: Iterator[int]) -> Iterator[tuple[int, list[bytes]]]:
        """Yield what is found in the pieces of these numbers."""
        first = next(numbers, None)
        if first is not None:
            with search() as (_, find):
                for number in chain([first], numbers):
                    yield number, find(number)

    def _taken(self) -> Iterator[int]:
        """Yield the number of one piece after the other that nobody else has taken."""
        while number := os.read(self._numbers, 1):
            yield number[0]


def _packed(paths: Sequence[bytes]) -> bytes:
    """Return paths as bytes that tell where they end."""
    # No path holds a NUL; an empty one, the root, is spelt in a way that none is.
    joined = b"".join([(path or _ROOT) + b"\0" for path in paths])
    return len(joined).to_bytes(_LENGTH, "little") + joined


def _unpacked(told: bytes) -> list[bytes] | None:
    """Return the paths that were packed (None: who was to tell them was killed, and has told nothing, or not all)."""
    joined = told[_LENGTH:]
    if len(told) < _LENGTH or len(joined) != int.from_bytes(told[:_LENGTH], "little"):
        return None
    return [b"" if path == _ROOT else path for path in joined.split(b"\0")[:-1]]


def _read_to_end(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, _PIPE_PIECE):
        parts.append(part)
    return b"".join(parts)
