"""Lstats: the facts about many files out of the system's own table, without an object for each.

`os.lstat` makes some twenty numbers of what the system says of one file, and takes longer for them than the system for
its part. Here the system writes file after file into one table, and whole columns of that are taken. Where it can't be
called in this way, `os.lstat` serves. docs/decisions/0023-lstats.md has the figures.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import repeat
from typing import Any, Final

from objstore.fs.stat_signature import pack_signatures, read_signature_fields

__all__ = ["Lstats", "is_single", "lstats_from"]

_ROWS: Final = 256
"""Files that are asked for before what was found is taken: the table stays in a processor's nearer caches."""

_ROW: Final = 160
_STRUCT: Final = 8
"""Bytes of a row, and where in it the system's `struct stat` begins: so that both times are one item of 32 bytes."""

_TIMES: Final = 88
"""Where in a `struct stat` both times are, that of the content first: 8 bytes each for seconds and for nanoseconds."""

_SIZE: Final = 48
_INODE: Final = 8
_MODE: Final = {"x86_64": 24, "aarch64": 16, "riscv64": 16}
"""Where it has the mode, by machine; the rest these have in the same places."""

_NO_FOLLOW: Final = 0x0100
"""AT_SYMLINK_NOFOLLOW."""


class Lstats:
    """A table that the system fills. It serves one thread."""

    def __init__(
        self,
        lstat: Callable[..., int],
        fstatat: Callable[..., int],
        table: bytearray,
        rows: Sequence[object],
        mode: int,
    ) -> None:
        """Take the system's functions, a table, where each `struct stat` in it is, and where that has the mode."""
        self._lstat: Final = lstat
        self._fstatat: Final = fstatat
        self._rows: Final = rows
        self._is_inside = False
        flat = memoryview(table)
        self._columns: Final[list[tuple[Any, int, int]]] = [
            (flat.cast("B", shape=[_ROWS * _ROW // 32, 32]), (_STRUCT + _TIMES) // 32, _ROW // 32),
            (flat.cast("Q"), (_STRUCT + _SIZE) // 8, _ROW // 8),
            (flat.cast("Q"), (_STRUCT + _INODE) // 8, _ROW // 8),
            (flat.cast("I"), (_STRUCT + mode) // 4, _ROW // 4),
        ]
        self._parts: Final[dict[int, list[tuple[Any, slice]]]] = {}  # of the columns, by the number of files

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Ask from inside each folder in this block, if that disturbs nobody: to the system that is a shorter way."""
        if not is_single():
            yield  # the current folder is that of all threads
            return
        try:
            here = os.open(os.curdir, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            yield
            return
        try:
            with suppress(OSError):
                os.fchdir(here)  # where there is no way back, nobody goes
                self._is_inside = True
            yield
        finally:
            if self._is_inside:
                self._is_inside = False
                os.fchdir(here)
            os.close(here)

    def facts(self, folder: int, names: Sequence[bytes]) -> bytes:
        """Return the facts about the files of that name in an open folder, as `pack_facts` packs them.

        Raises OSError where one of them can't be asked for.
        """
        if self._is_inside:
            os.fchdir(folder)
        if len(names) <= _ROWS:
            return b"".join(self._taken(folder, names))
        pieces = [self._taken(folder, names[at : at + _ROWS]) for at in range(0, len(names), _ROWS)]
        return b"".join([piece for column in zip(*pieces, strict=True) for piece in column])

    def _taken(self, folder: int, names: Sequence[bytes]) -> list[bytes]:
        if self._is_inside:
            asked = map(self._lstat, names, self._rows)
        else:
            asked = map(self._fstatat, repeat(folder), names, self._rows, repeat(_NO_FOLLOW))
        if any(asked):
            raise OSError("a file can't be asked for")
        count = len(names)
        parts = self._parts.get(count)
        if parts is None:
            parts = [(column, slice(first, first + step * count, step)) for column, first, step in self._columns]
            self._parts[count] = parts
        return [column[part].tobytes() for column, part in parts]


def lstats_from(folder: int) -> Lstats | None:
    """Return a table, if the system says in it of an open folder what `os.lstat` says; else None."""
    mode = _MODE.get(os.uname().machine)
    if sys.platform != "linux" or sys.byteorder != "little" or sys.maxsize < 1 << 32 or mode is None:
        return None
    try:
        lstat, fstatat, table_kind, address_in = _native(keeps_lock=is_single())
    except (ImportError, OSError, AttributeError):
        return None  # a Python without ctypes, a C library without these functions
    table = bytearray(_ROW * _ROWS)
    array = table_kind.from_buffer(table)
    # No types are declared: what is given is of the right ones, and seeing to that would take as long as the call.
    rows = [address_in(array, _ROW * row + _STRUCT) for row in range(_ROWS)]
    lstats = Lstats(lstat, fstatat, table, rows, mode)
    try:
        known = pack_signatures([read_signature_fields(os.lstat(b".", dir_fd=folder))])
        return lstats if lstats.facts(folder, [b"."]) == known else None
    except OSError:
        return None


def is_single() -> bool:
    """Return whether this process has no thread but this one."""
    threading = sys.modules.get("threading")  # a process that has not imported it has started no thread
    return threading is None or threading.active_count() == 1


@cache
def _native(*, keeps_lock: bool) -> tuple[Callable[..., int], Callable[..., int], Any, Callable[..., object]]:
    """Return the system's lstat and fstatat, the type of the table, and what gives an address in one.

    `keeps_lock`: whether no other thread may run meanwhile; to let one is a twentieth of it all. Raises ImportError,
    OSError, AttributeError.
    """
    import ctypes  # only where a table is filled

    library: Any = (ctypes.PyDLL if keeps_lock else ctypes.CDLL)(None)
    return library.lstat, library.fstatat, ctypes.c_char * (_ROW * _ROWS), ctypes.byref
