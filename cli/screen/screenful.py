"""Cut text to the number of lines that fits into so many rows of a terminal."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from cli.screen.terminal import shown_width

__all__ = ["Screenful", "height", "screenful"]

TOKEN: Final = re.compile(r"\x1b\[[0-9;]*m|.", re.DOTALL)
TAB: Final = 8
PLAIN: Final = "\x1b[0m"


class Screenful(NamedTuple):
    """What fits, and how much does not."""

    lines: list[bytes]
    is_cut: bool  # whether only the beginning of the last line fits
    more: int  # number of lines that don't fit at all


def screenful(lines: Iterable[bytes], rows: int, columns: int) -> Screenful:
    """Return what fits into `rows` of a terminal of that width. A line that is too long for one row takes several."""
    shown: list[bytes] = []
    is_cut, more = False, 0
    for line in lines:
        if rows <= 0:
            more += 1
            continue
        text = line.decode("utf-8", "replace").removesuffix("\n")
        end, taken = _fitting(text, rows, columns)
        is_cut = end < len(text)
        shown.append(f"{text[:end]}{PLAIN if PLAIN in text else ''}\n".encode() if is_cut else line)
        rows -= taken
    return Screenful(shown, is_cut, more)


def height(text: str, columns: int) -> int:
    """Return the number of rows that a line takes."""
    return _fitting(text, len(text) + 1, columns)[1]


# ---- inside


def _fitting(text: str, rows: int, columns: int) -> tuple[int, int]:
    """Return how many characters of a line fit into so many rows, and how many rows these take."""
    row, at = 1, 0
    for found in TOKEN.finditer(text):
        mark = found[0]
        if mark == "\t":
            # A tab goes no further than the end of its row.
            at = min(columns, (at // TAB + 1) * TAB)
            continue
        width = shown_width(mark) if len(mark) == 1 else 0
        if at + width > columns:
            if row == rows:
                return found.start(), row
            row, at = row + 1, 0
        at += width
    return len(text), row
