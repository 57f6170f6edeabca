"""Hashlines: lines of a file, each with its number and a two-digit tag of what it says.

The tag is the lowest byte of the 32-bit FNV-1a hash of the line without its trailing white space. It tells a
model's reading from a changed file cheaply, not surely: two lines in 256 share a tag, so a tag never stands
without its line number. Source: the Hashfile design; Fowler, Noll and Vo's FNV-1a. The tags printed in that
design are illustrations and not such hashes: its three lines have the tags f3, 18 and a8.
"""

from typing import Final

__all__ = ["hashline", "line_tag"]

_OFFSET_BASIS: Final = 0x811C9DC5
_PRIME: Final = 0x01000193
_MASK: Final = 0xFFFFFFFF


def line_tag(line: bytes) -> str:
    """Return the tag of `line` (two lower-case hexadecimal digits), whether or not its ending is still on.

    Trailing white space is the ASCII kind, so that a tag does not depend on the file's encoding.
    """
    value = _OFFSET_BASIS
    for byte in line.rstrip():
        value = ((value ^ byte) * _PRIME) & _MASK
    return f"{value & 0xFF:02x}"


def hashline(number: int, line: bytes, shown: str) -> str:
    """Return `shown`, the text of line `number` (from 1), behind its number and the tag of its bytes."""
    return f"{number}:{line_tag(line)}|{shown}"
