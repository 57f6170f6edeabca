"""Read the stat signatures of many files through ctypes, without a Python object for each file.

`os.lstat` makes some twenty numbers for one file, and takes longer for them than the system call itself. Here the
system writes one `struct stat` after the other into a table, and whole columns of the table are copied. Where ctypes or
the C library can't do this, callers use `os.lstat`. docs/decisions/0023-lstats.md has the figures.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import repeat
from typing import Any, Final

from objstore.disk.fs.stat_signature import pack_signatures, read_signature_fields

__all__ = ["StatTable", "is_single", "open_stat_table"]

_ROWS: Final = 256
"""Files that are read before their columns are copied: a table of this size stays in the processor's nearer caches."""

_ROW: Final = 160
_STRUCT: Final = 8
"""Bytes of a row, and the offset of `struct stat` in it, chosen so that both times are one aligned item of 32 bytes."""

_TIMES: Final = 88
"""Offset of both times in a `struct stat`, st_mtim then st_ctim: 8 bytes each for seconds and for nanoseconds."""

_SIZE: Final = 48
_INODE: Final = 8
_MODE: Final = {"x86_64": 24, "aarch64": 16, "riscv64": 16}
"""Offset of st_mode, by machine; the other fields have the same offsets on all of these."""

_NO_FOLLOW: Final = 0x0100
"""AT_SYMLINK_NOFOLLOW."""


class StatTable:
    """A table of `struct stat` that the system fills. One thread may use it."""

    def __init__(
        self,
        lstat: Callable[..., int],
        fstatat: Callable[..., int],
        table: bytearray,
        rows: Sequence[object],
        mode: int,
    ) -> None:
        """Take the C functions, the table, a pointer to each `struct stat` in it, and the offset of st_mode."""
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
        self._parts: Final[dict[int, list[tuple[Any, slice]]]] = {}  # column slices, by the number of files

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Change into each folder in this block if no other thread runs: lstat is then faster than fstatat."""
        if not is_single():
            yield  # all threads share the current folder
            return
        try:
            here = os.open(os.curdir, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            yield
            return
        try:
            with suppress(OSError):
                os.fchdir(here)  # without a way back, the current folder is not left
                self._is_inside = True
            yield
        finally:
            if self._is_inside:
                self._is_inside = False
                os.fchdir(here)
            os.close(here)

    def signatures(self, folder: int, names: Sequence[bytes]) -> bytes:
        """Return the stat signatures of the files with these names in an open folder, as `pack_signatures` packs them.

        Raises OSError if lstat fails for one of them.
        """
        if self._is_inside:
            os.fchdir(folder)
        if len(names) <= _ROWS:
            return b"".join(self._columns_of(folder, names))
        pieces = [self._columns_of(folder, names[at : at + _ROWS]) for at in range(0, len(names), _ROWS)]
        return b"".join([piece for column in zip(*pieces, strict=True) for piece in column])

    def _columns_of(self, folder: int, names: Sequence[bytes]) -> list[bytes]:
        if self._is_inside:
            results = map(self._lstat, names, self._rows)
        else:
            results = map(self._fstatat, repeat(folder), names, self._rows, repeat(_NO_FOLLOW))
        if any(results):
            raise OSError("lstat failed for a file")
        count = len(names)
        parts = self._parts.get(count)
        if parts is None:
            parts = [(column, slice(first, first + step * count, step)) for column, first, step in self._columns]
            self._parts[count] = parts
        return [column[part].tobytes() for column, part in parts]


def open_stat_table(folder: int) -> StatTable | None:
    """Return a table, if its answer for an open folder equals that of `os.lstat`; else None."""
    mode = _MODE.get(os.uname().machine)
    if sys.platform != "linux" or sys.byteorder != "little" or sys.maxsize < 1 << 32 or mode is None:
        return None
    try:
        lstat, fstatat, table_kind, address_in = _native(keeps_lock=is_single())
    except (ImportError, OSError, AttributeError):
        return None  # a Python without ctypes, a C library without these functions
    table = bytearray(_ROW * _ROWS)
    array = table_kind.from_buffer(table)
    # No argument types are declared: the arguments are right, and ctypes would take as long to check as the call takes.
    rows = [address_in(array, _ROW * row + _STRUCT) for row in range(_ROWS)]
    stat_table = StatTable(lstat, fstatat, table, rows, mode)
    try:
        known = pack_signatures([read_signature_fields(os.lstat(b".", dir_fd=folder))])
        return stat_table if stat_table.signatures(folder, [b"."]) == known else None
    except OSError:
        return None


def is_single() -> bool:
    """Return whether this process has no other thread."""
    threading = sys.modules.get("threading")  # a process that has not imported it has started no thread
    return threading is None or threading.active_count() == 1


@cache
def _native(*, keeps_lock: bool) -> tuple[Callable[..., int], Callable[..., int], Any, Callable[..., object]]:
    """Return the C library's lstat and fstatat, the type of the table, and the function that gives an address in it.

    `keeps_lock`: keep the interpreter lock during the calls; releasing it takes a twentieth of the whole time. Raises
    ImportError, OSError, AttributeError.
    """
    import ctypes  # slow to import, and needed only for a table

    library: Any = (ctypes.PyDLL if keeps_lock else ctypes.CDLL)(None)
    return library.lstat, library.fstatat, ctypes.c_char * (_ROW * _ROWS), ctypes.byref
