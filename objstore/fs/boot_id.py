"""Read the boot id, which identifies one boot of the machine and so shows whether the page cache was lost since.

Linux has it in a file, macOS returns it from sysctlbyname(3). Both give a UUID that is new at each boot.
"""

from contextlib import suppress
from typing import Final

__all__ = ["BOOT_ID_SIZE", "UNKNOWN_BOOT", "boot_id", "parse_boot_id"]

BOOT_ID_SIZE: Final = 16
UNKNOWN_BOOT: Final = bytes(BOOT_ID_SIZE)
"""The boot id where the system doesn't report one: it may be any boot of the machine."""

_LINUX_FILE: Final = "/proc/sys/kernel/random/boot_id"
_SYSCTL_NAME: Final = b"kern.bootsessionuuid"
_BUFFER_SIZE: Final = 64
"""Size of the answer buffer: more than a UUID's text needs. A longer answer is an error, and is not written."""


def boot_id() -> bytes:
    """Return the 16 bytes of the machine's boot id; UNKNOWN_BOOT where the system doesn't report one."""
    # Read bytes: a text file would import its encoding first, which takes longer than the rest of opening a store.
    with suppress(OSError), open(_LINUX_FILE, "rb") as file:
        return parse_boot_id(file.read())
    return parse_boot_id(_sysctl_boot_uuid())


def parse_boot_id(text: bytes) -> bytes:
    """Return the bytes of a UUID given as text; UNKNOWN_BOOT if the text is no UUID."""
    with suppress(ValueError):
        found = bytes.fromhex(text.decode("ascii").strip().replace("-", ""))
        if len(found) == BOOT_ID_SIZE:
            return found
    return UNKNOWN_BOOT


def _sysctl_boot_uuid() -> bytes:
    """Return the text of the boot session's UUID; empty where the system has no such function or no such name."""
    import ctypes

    try:
        function = ctypes.CDLL(None).sysctlbyname
    except (OSError, AttributeError):
        return b""
    function.restype = ctypes.c_int
    function.argtypes = (
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.c_void_p,
        ctypes.c_size_t,
    )
    answer = ctypes.create_string_buffer(_BUFFER_SIZE)
    size = ctypes.c_size_t(_BUFFER_SIZE - 1)  # the last byte stays zero, whatever is written
    is_known = function(_SYSCTL_NAME, answer, ctypes.byref(size), None, 0) == 0
    return answer.value if is_known else b""
