"""Ask the file system when a file was made, which shows whether a new name is that of an older file.

Linux tells it by statx(2), which Python doesn't offer, and which ctypes, slow to load, can call.
"""

import os
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

__all__ = ["Times", "times_of"]

_NO_FOLLOW: Final = 0x0100
"""AT_SYMLINK_NOFOLLOW."""

_BIRTH: Final = 0x0800
"""STATX_BTIME: the bit by which the birth time is asked for, and by which the answer says that it has one."""

_STRUCT: Final = 256
"""Bytes of a `struct statx`. Its mask is first; the birth time is at _TIME: 8 bytes of seconds, 4 of nanoseconds."""

_TIME: Final = 80
_SECOND: Final = 1_000_000_000


class Times(NamedTuple):
    """When a file or symlink was made and last written (ns since 1970-01-01 UTC): a rename changes neither."""

    born: int  # 0: the system doesn't tell it
    written: int
    inode: int


def times_of(folder: int, name: bytes) -> Times:
    """Return the times of the file or symlink `name` in an open folder. Raises OSError."""
    seen = os.lstat(name, dir_fd=folder)
    if sys.platform == "darwin":
        return Times(int(seen.st_birthtime * _SECOND), seen.st_mtime_ns, seen.st_ino)
    ask = _statx()
    return Times(0 if ask is None else ask(folder, name), seen.st_mtime_ns, seen.st_ino)


@cache
def _statx() -> Callable[[int, bytes], int] | None:
    """Return a function that returns a file's birth time (0: not known); None: this system has none."""
    try:
        import ctypes

        function = ctypes.CDLL(None, use_errno=True).statx
    except (ImportError, AttributeError, OSError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)
    function.restype = ctypes.c_int
    found = ctypes.create_string_buffer(_STRUCT)

    def birth(folder: int, name: bytes) -> int:
        if function(folder, name, _NO_FOLLOW, _BIRTH, found):
            return 0
        mask: int = struct.unpack_from("=I", found)[0]
        seconds, nanoseconds = struct.unpack_from("=qI", found, _TIME)
        return int(seconds * _SECOND + nanoseconds) if mask & _BIRTH else 0

    return birth
