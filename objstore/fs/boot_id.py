"""The boot id: what tells one start of the machine from another, and so whether the page cache outlived it.

Linux has it in a file, macOS behind sysctlbyname(3); both spell a UUID that is made anew at each start.
"""

from contextlib import suppress
from typing import Final

__all__ = ["BOOT_ID_SIZE", "UNKNOWN_BOOT", "boot_id", "parse_boot_id"]

BOOT_ID_SIZE: Final = 16
UNKNOWN_BOOT: Final = bytes(BOOT_ID_SIZE)
"""What stands for the boot id where the system doesn't tell it: it may be any start of the machine."""

_FILE: Final = "/proc/sys/kernel/random/boot_id"
_NAME: Final = b"kern.bootsessionuuid"
_ROOM: Final = 64
"""Bytes for a UUID's text, with room to spare: a longer answer is an error, and is not written."""


def boot_id() -> bytes:
    """Return the 16 bytes of the machine's boot id; UNKNOWN_BOOT where the system doesn't tell."""
    # As bytes: a text file would import its encoding first, which takes longer than all else that opens a store.
    with suppress(OSError), open(_FILE, "rb") as file:
        return parse_boot_id(file.read())
    return parse_boot_id(_answer_of_sysctl())


def parse_boot_id(text: bytes) -> bytes:
    """Return the bytes that a UUID's text spells; UNKNOWN_BOOT where it is none."""
    with suppress(ValueError):
        found = bytes.fromhex(text.decode("ascii").strip().replace("-", ""))
        if len(found) == BOOT_ID_SIZE:
            return found
    return UNKNOWN_BOOT


def _answer_of_sysctl() -> bytes:
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
    answer = ctypes.create_string_buffer(_ROOM)
    size = ctypes.c_size_t(_ROOM - 1)  # the last byte stays zero, whatever is written
    is_told = function(_NAME, answer, ctypes.byref(size), None, 0) == 0
    return answer.value if is_told else b""
