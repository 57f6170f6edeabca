"""Statx: the facts about many files out of the system's own table, without an object for each.

`os.lstat` makes some twenty numbers of what the system says of one file, and takes longer for them than the system for
its part. Here the system writes file after file into one table, and whole columns of that are taken. The layout of
statx(2) is the same on every processor; where it can't be called in this way, `os.lstat` serves.
"""

import sys
from collections.abc import Callable, Sequence
from functools import cache
from itertools import repeat

from objstore.annotations import Any, Final, cast
from objstore.facts import COLUMNS
from objstore.twofold import is_single

__all__ = ["Statx", "statx_from"]

_ROW: Final = 256
"""Bytes of a `struct statx`."""

_ROWS: Final = 256
"""Files that are asked for before what was found is taken: the table stays in a processor's nearest caches."""

_OFFSETS: Final = (96, 104, 112, 120, 40, 32, 28)
"""Of what is kept of each file, in the order of `facts.COLUMNS`."""

_FLAGS: Final = 0x0100 | 0x0800
"""AT_SYMLINK_NOFOLLOW, AT_NO_AUTOMOUNT: what lstat asks for."""

_WANTED: Final = 0x0001 | 0x0002 | 0x0040 | 0x0080 | 0x0100 | 0x0200
"""STATX_TYPE, STATX_MODE, STATX_MTIME, STATX_CTIME, STATX_INO, STATX_SIZE."""


class Statx:
    """A table that the system fills. It serves one thread."""

    def __init__(self, call: Callable[..., int], table: bytearray, rows: Sequence[object]) -> None:
        """Take the system's function, the table, and the address of each row in it."""
        self._call: Final = call
        self._rows: Final = rows
        self._columns: Final[list[tuple[Any, int, int]]] = []
        for kind, offset in zip(COLUMNS, _OFFSETS, strict=True):
            column = memoryview(table).cast(cast("Any", kind))  # a literal, to the type checker
            self._columns.append((column, offset // column.itemsize, _ROW // column.itemsize))
        self._parts: Final[dict[int, list[tuple[Any, slice]]]] = {}  # of the columns, by the number of files

    def facts(self, folder: int, names: Sequence[bytes]) -> bytes:
        """Return the facts about the files of that name in an open folder, as `pack_facts` packs them.

        Raises OSError where one of them can't be asked for.
        """
        if len(names) <= _ROWS:
            return b"".join(self._taken(folder, names))
        pieces = [self._taken(folder, names[at : at + _ROWS]) for at in range(0, len(names), _ROWS)]
        return b"".join([piece for column in zip(*pieces, strict=True) for piece in column])

    def _taken(self, folder: int, names: Sequence[bytes]) -> list[bytes]:
        if any(map(self._call, repeat(folder), names, repeat(_FLAGS), repeat(_WANTED), self._rows)):
            raise OSError("a file can't be asked for")
        count = len(names)
        parts = self._parts.get(count)
        if parts is None:
            parts = [(column, slice(first, first + step * count, step)) for column, first, step in self._columns]
            self._parts[count] = parts
        return [column[part].tobytes() for column, part in parts]


def statx_from(folder: int) -> Statx | None:
    """Return a table, if the system fills one when it is asked for an open folder itself; else None."""
    if sys.platform != "linux" or sys.byteorder != "little":
        return None
    try:
        call, table_kind, address_in = _native(keeps_lock=is_single())
    except (ImportError, OSError, AttributeError):
        return None  # a Python without ctypes, a C library without the function
    table = bytearray(_ROW * _ROWS)
    array = table_kind.from_buffer(table)
    # No types are declared: what is given is of the right ones, and seeing to that would take as long as the call.
    statx = Statx(call, table, [address_in(array, _ROW * row) for row in range(_ROWS)])
    try:
        statx.facts(folder, [b"."])
    except OSError:
        return None
    return statx


@cache
def _native(*, keeps_lock: bool) -> tuple[Callable[..., int], Any, Callable[..., object]]:
    """Return the system's function, the type of the table, and what gives an address in one.

    `keeps_lock`: whether no other thread may run meanwhile; to let one is a twentieth of it all. Raises ImportError,
    OSError, AttributeError.
    """
    # `ctypes` itself takes 3 ms to import, for types that are not needed here.
    import _ctypes

    native: Any = _ctypes
    simple = native._SimpleCData  # noqa: SLF001 - in public it has only the names that `ctypes` gives its kinds
    number, letter = (type(kind, (simple,), {"_type_": kind}) for kind in ("i", "c"))
    flags = native.FUNCFLAG_CDECL | (native.FUNCFLAG_PYTHONAPI if keeps_lock else 0)
    function: Any = type("Function", (native.CFuncPtr,), {"_flags_": flags, "_restype_": number})
    table = type("Table", (native.Array,), {"_type_": letter, "_length_": _ROW * _ROWS})
    return function(native.dlsym(native.dlopen(None, 0), "statx")), table, native.byref
