"""Ask the file system when a file was made, which shows whether a new name is that of an older file.

Linux tells it by statx(2), which Python doesn't offer, and which ctypes, slow to load, can call.
"""

import os
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import Final

__all__ = ["born_at"]

_NO_FOLLOW: Final = 0x0100
"""AT_SYMLINK_NOFOLLOW."""

_BIRTH: Final = 0x0800
"""STATX_BTIME: the bit by which the birth time is asked for, and by which the answer says that it has one."""

_STRUCT: Final = 256
"""Bytes of a `struct statx`. Its mask is first; the birth time is at _TIME: 8 bytes of seconds, 4 of nanoseconds."""

_TIME: Final = 80
_SECOND: Final = 1_000_000_000


def born_at(folder: int, name: bytes) -> tuple[int, int]:
    """Return when the file or symlink `name` in an open folder was made (ns since 1970-01-01 UTC), and its inode.

    A rename, a link or a change leaves both as they are. Where the system doesn't tell that time, the time at which the
    bytes last changed is returned: the file is at least as old. Raises OSError.
    """
    seen = os.lstat(name, dir_fd=folder)
    if sys.platform == "darwin":
        return int(seen.st_birthtime * _SECOND), seen.st_ino
    ask = _statx()
    born = 0 if ask is None else ask(folder, name)
    return born or seen.st_mtime_ns, seen.st_ino


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
