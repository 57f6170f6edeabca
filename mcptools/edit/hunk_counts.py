"""Correct the counts in the hunk headers of a patch, as far as its lines leave no doubt where each hunk ends.

A hunk with fewer lines than its header counts may have been cut short: that is certain not to be so only where another
header follows. A hunk is taken to go on as long as its lines have marks; where one of them could also begin the next
file, or be an empty line between two hunks, nothing is corrected.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from mcptools.edit.patch_headers import ends_patch

__all__ = [
    "BETWEEN_FILES",
    "HUNK_HEADER",
    "NO_NEWLINE",
    "OF_OTHER_FILES",
    "Corrected",
    "corrected",
    "with_english_marks",
]

HUNK_HEADER: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*", re.DOTALL)
NO_NEWLINE: Final = "\\ No newline at end of file"

_FEWEST: Final = 12
"""Bytes of the shortest mark for a missing newline, which programs write in the user's language.

Source: git's apply.c.
"""

BETWEEN_FILES: Final = ("--- ", "diff ", "index ", "Index: ", "=====")
"""Beginnings of lines that may come between the last hunk of one file and the first of the next."""

OF_OTHER_FILES: Final = ("diff -", "Index: ", "=== ", "Only in ", "Binary file ", "Binary files ")
"""Beginnings of lines below a hunk that are about a file for which no hunk may follow."""

_OLD, _NEW = frozenset(" -"), frozenset(" +")


class Corrected(NamedTuple):
    """A patch with right counts."""

    lines: Sequence[str]
    counted: dict[int, tuple[int, int]]  # by the number of a corrected header's line, from 1: its old and new count


def corrected(lines: Sequence[str], between: Callable[[], object], *, likely: bool = False) -> Corrected | None:
    """Return a patch with right counts, or None if they are right, or if it is not certain what they should be.

    `lines`: without their newlines; the last one is empty, after the last newline. `between`: called at each header.
    `likely`: what they should be need not be certain.
    """
    made, counted = list(lines), dict[int, tuple[int, int]]()
    at = 0
    while at < len(lines):
        found = HUNK_HEADER.fullmatch(lines[at].rstrip("\r"))
        at += 1
        if found is None:
            continue
        between()
        start, old, new_start, new = found.groups("1")
        said = int(old), int(new)
        end = _end_by_counts(lines, at, *said)
        if end is None:
            end = _likely_end(lines, at, *said) if likely else _end_by_marks(lines, at)
            if end is None:
                return None
            marks = [line[:1] if line.rstrip("\r") else " " for line in lines[at:end]]
            has = sum(mark in _OLD for mark in marks), sum(mark in _NEW for mark in marks)
            is_cut = end == len(lines) - 1 and (has[0] < said[0] or has[1] < said[1])
            if not likely and (is_cut or not has[0]):
                return None
            rest = lines[at - 1].split("@@", 2)[2]
            made[at - 1] = f"@@ -{start},{has[0]} +{new_start},{has[1]} @@{rest}"
            counted[at] = said
        at = end
    return Corrected(made, counted) if counted else None


def with_english_marks(lines: list[str]) -> list[str]:
    """Return the lines of a patch with the marks for missing newlines in English. Arguments as of `corrected`."""
    if not any(line.startswith("\\ ") and not line.startswith(NO_NEWLINE) for line in lines):
        return lines
    made: list[str] = []
    old = new = 0  # lines that the current hunk still needs
    is_below = False  # whether the line above is one of a hunk
    for raw in lines:
        line = raw.removesuffix("\r")
        if is_below and line.startswith("\\ ") and len(line.encode()) >= _FEWEST:
            made.append(NO_NEWLINE + raw[len(line) :])
            continue
        made.append(raw)
        is_below = old > 0 or new > 0
        if is_below:
            mark = line[:1] or " "
            old -= mark in _OLD
            new -= mark in _NEW
        elif (found := HUNK_HEADER.fullmatch(line)) is not None:
            _, said_old, _, said_new = found.groups("1")
            old, new = int(said_old), int(said_new)
    return made


def _end_by_counts(lines: Sequence[str], at: int, old: int, new: int) -> int | None:
    """Return where a hunk with so many lines ends, whose lines begin at `at`; None: it can't end there."""
    while old > 0 or new > 0:
        line = lines[at] if at < len(lines) - 1 else "@"
        mark = line[:1] if line.rstrip("\r") else " "
        if mark not in " -+\\":
            return None
        old -= mark in _OLD
        new -= mark in _NEW
        at += 1
    while lines[at].startswith("\\"):
        at += 1
    following = at
    while following < len(lines) - 1 and not lines[following].rstrip("\r"):
        following += 1
    is_end = following == len(lines) - 1 or _is_after_a_hunk(lines[following]) or ends_patch(lines, following)
    return at if is_end and old == new == 0 else None


def _end_by_marks(lines: Sequence[str], at: int) -> int | None:
    """Return where the marked lines from `at` on end; None: they may be more than the lines of one hunk."""
    blank = False
    while at < len(lines) - 1:
        line = lines[at]
        if line.startswith("--- ") and lines[at + 1].startswith("+++ "):
            return None  # a removed and an added line, or the headers of the next file
        if line.rstrip("\r") and line[0] not in " -+\\":
            break
        blank = not line.rstrip("\r")
        at += 1
    is_end = at == len(lines) - 1 or _is_after_a_hunk(lines[at])
    return at if is_end and not blank else None


def _likely_end(lines: Sequence[str], at: int, old: int, new: int) -> int | None:
    """Return where a hunk probably ends whose header counts so many lines, and whose lines begin at `at`.

    None: what follows its marked lines can't follow a hunk.
    """
    begin = at
    while at < len(lines) - 1 and (not lines[at].rstrip("\r") or lines[at][0] in " -+\\"):
        line = lines[at]
        if line.startswith("--- ") and HUNK_HEADER.fullmatch("".join(lines[at + 2 : at + 3]).rstrip("\r")):
            break
        if old == new == 0 and line.startswith(("--- ", "-- ")):
            return None  # a header without the other one, or the signature of a mail
        mark = line[:1] if line.rstrip("\r") else " "
        old -= mark in _OLD
        new -= mark in _NEW
        at += 1
    is_end = at == len(lines) - 1 or _is_after_a_hunk(lines[at]) or lines[at].startswith("--- ")
    while at > begin and not lines[at - 1].rstrip("\r"):
        at -= 1
    return at if is_end else None


def _is_after_a_hunk(line: str) -> bool:
    """Return whether a line ends the hunk above it: another header, or what programs write between files."""
    if line.startswith("--- "):
        return False  # it could be a removed line
    is_between = line.startswith((*BETWEEN_FILES, *OF_OTHER_FILES))
    return is_between or HUNK_HEADER.fullmatch(line.rstrip("\r")) is not None
