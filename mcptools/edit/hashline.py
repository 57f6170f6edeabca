"""Show lines of a file as hashlines, each with its number and a two-digit tag of its content.

The tag is the lowest byte of the 32-bit FNV-1a hash of the line without its trailing white space. It detects cheaply,
but not with certainty, that a line has changed since the model read it: one line in 256 has the same tag as another by
chance, so a tag is always used with its line number. Source: the Hashfile design; Fowler, Noll and Vo's FNV-1a. The
tags printed in that design are illustrations and not such hashes: its three lines have the tags f3, 18 and a8.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Final

from mcptools.edit.display import cut

__all__ = ["hashline", "hashlines", "hashlines_around", "line_tag"]

_OFFSET_BASIS: Final = 0x811C9DC5
_PRIME: Final = 0x01000193
_MASK: Final = 0xFFFFFFFF


def line_tag(line: bytes) -> str:
    """Return the tag of `line` (two lower-case hexadecimal digits), with or without its line ending.

    Trailing white space is the ASCII kind, so that a tag does not depend on the file's encoding.
    """
    value = _OFFSET_BASIS
    for byte in line.rstrip():
        value = ((value ^ byte) * _PRIME) & _MASK
    return f"{value & 0xFF:02x}"


def hashline(number: int, line: bytes, shown: str) -> str:
    """Return line `number` (from 1), of which `shown` is the text, with its number and its tag before it."""
    return f"{number}:{line_tag(line)}|{shown}"


def hashlines(lines: Iterable[bytes], first: int = 1, *, longest: int = sys.maxsize) -> str:
    r"""Return lines, numbered from `first`, as hashlines, each ended by LF; bytes that are not UTF-8 as \xNN.

    A line of more than `longest` characters is cut, and its full length is added.
    """
    return "".join(hashline(number, line, cut(_text(line), longest)) + "\n" for number, line in enumerate(lines, first))


def _text(line: bytes) -> str:
    text = line[:-1].removesuffix(b"\r") if line.endswith(b"\n") else line  # a CR alone ends no line
    return text.decode("utf-8", "backslashreplace")


def hashlines_around(
    lines: Sequence[bytes], wanted: Iterable[int], *, before: int = 2, after: int = 2, longest: int = sys.maxsize
) -> str:
    """Return the lines with these numbers as hashlines, with so many lines `before` and `after` each.

    For a number beyond the end, the last lines are returned. "..." marks lines that were left out. `longest`: as for
    `hashlines`.
    """
    near = set[int]()
    for number in wanted:
        middle = min(number, len(lines))
        near.update(range(max(1, middle - before), min(len(lines), middle + after) + 1))
    parts: list[str] = []
    last = 0
    for number in sorted(near):
        if parts and number != last + 1:
            parts.append("...\n")
        parts.append(hashlines([lines[number - 1]], number, longest=longest))
        last = number
    return "".join(parts)
