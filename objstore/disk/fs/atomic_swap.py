"""Swap two file names atomically with renameat2(2) on Linux or renameatx_np(2) on macOS.

Python offers neither function. Only a swap needs ctypes, which is slow to load.
"""

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Final

__all__ = ["rename_exchange"]

_LINUX_EXCHANGE: Final = 1 << 1
_MACOS_SWAP: Final = 1 << 1
_UNSUPPORTED: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM})


def rename_exchange(source_directory: int, source: str, directory: int, name: str) -> bool:
    """Swap the names of two existing files; return False where the system or the file system doesn't support it.

    Raises OSError for every other failure.
    """
    function = _function()
    if function is None or function(source_directory, os.fsencode(source), directory, os.fsencode(name)) == 0:
        return function is not None
    error = ctypes.get_errno()
    if error in _UNSUPPORTED:
        return False
    raise OSError(error, os.strerror(error), name)


@cache
def _function() -> Callable[[int, bytes, int, bytes], int] | None:
    flag, symbol = (_MACOS_SWAP, "renameatx_np") if sys.platform == "darwin" else (_LINUX_EXCHANGE, "renameat2")
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), symbol)
    except (AttributeError, OSError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    function.restype = ctypes.c_int
    return lambda old_folder, old, new_folder, new: int(function(old_folder, old, new_folder, new, flag))
