"""Where a text that a file does not hold most nearly stands in it, and the first character that differs.

A model that is told "not found" tries again blindly; one that is told "line 12 has a no-break space there"
mends its call. Nothing here decides anything: what it finds is only ever said.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

__all__ = ["Nearest", "character", "nearest"]

_SIMILAR: Final = 0.6
"""Likeness, from 0 to 1, below which a line is no help."""

_MAX_COMPARED: Final = 2000
"""Lines up to which a file is searched for similar ones: to see whether one can be takes some ten microseconds."""

_MAX_MATCHED: Final = 20_000
"""Characters of lines that are compared piece by piece, which takes up to ten microseconds for each."""

_MAX_SHOWN: Final = 200
"""Characters of a line that are quoted."""

_BLANKS: Final = re.compile(r"[^\S\n]+")
_NAMES: Final = {"\t": "TAB", "\r": "CARRIAGE RETURN", "\n": "LINE FEED", "\0": "NULL", "\x0c": "FORM FEED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The place in a file that a text most nearly matches."""

    line: int  # from 1
    column: int  # of the first character that differs, from 1
    text: str  # of that line, cut to a quotable length
    found: str | None  # the character there; None: the file ends
    wanted: str | None  # the character that was looked for there; None: the text ends

    @property
    def difference(self) -> str:
        """Return which character stands there, and which was looked for."""
        return f"the file has {character(self.found)} where the given text has {character(self.wanted)}"

    def __str__(self) -> str:
        return f"Nearest is line {self.line}: {self.text!r}. At column {self.column} {self.difference}."


def character(char: str | None) -> str:
    """Return what `char` is called: its code point and name, or "nothing more" for None."""
    if char is None:
        return "nothing more"
    if "\udc80" <= char <= "\udcff":  # how surrogateescape spells a byte that is not UTF-8
        return f"the byte 0x{ord(char) - 0xDC00:02x}, which is not UTF-8"
    name = _NAMES.get(char) or unicodedata.name(char, "unnamed")
    return f"U+{ord(char):04X} {name}"


def nearest(content: bytes, wanted: bytes, *, between: Callable[[], object] = lambda: None) -> Nearest | None:
    """Return where `content` comes nearest to holding `wanted`, or None where nothing is near.

    `between`: called before each search through the text, and for each line that is compared. Raises what it raises.
    """
    text = content.decode("utf-8", "surrogateescape")
    sought = wanted.decode("utf-8", "surrogateescape")
    lines = [line for line in sought.split("\n") if line.strip()]
    if not lines:
        return None
    length = _prefix_length(text, sought, between)
    if 2 * len(sought[:length].strip()) >= max(4, len(lines[0].strip())):
        at = text.index(sought[:length])
        return _difference(text, at, sought)
    start = _like_but_for_blanks(text, lines[0], between)
    if start is None:
        start = _similar(text, lines[0], between)
    if start is None:
        return None
    given = sought[sought.index(lines[0]) :]
    if not given[0].isspace():  # the text may begin inside the line, so its indentation is no difference
        line = text[start : _line_end(text, start)]
        start += len(line) - len(line.lstrip())
    return _difference(text, start, given)


def _prefix_length(text: str, sought: str, between: Callable[[], object]) -> int:
    """Return the length of the longest beginning of `sought` that occurs in `text`."""
    low, high = 0, len(sought)
    while low < high:
        between()
        middle = (low + high + 1) // 2
        if sought[:middle] in text:
            low = middle
        else:
            high = middle - 1
    return low


def _like_but_for_blanks(text: str, line: str, between: Callable[[], object]) -> int | None:
    """Return where the first line starts that equals `line` once every run of blanks counts as one space."""
    wanted = _BLANKS.sub(" ", line).strip()
    word = max(wanted.split(" "), key=len)  # only lines that hold it can be that
    at = text.find(word)
    while at >= 0:
        between()
        start, end = text.rfind("\n", 0, at) + 1, _line_end(text, at)
        if wanted in _BLANKS.sub(" ", text[start:end]):
            return start
        at = text.find(word, end)
    return None


def _similar(text: str, line: str, between: Callable[[], object]) -> int | None:
    """Return where the line starts that looks most like `line`, of those that can look most like it."""
    lines = text.split("\n")
    if len(lines) > _MAX_COMPARED or len(line) > _MAX_SHOWN:
        return None
    matcher = SequenceMatcher(b=line.strip())
    bounds: list[tuple[float, int]] = []
    for index, found in enumerate(lines):
        between()
        matcher.set_seq1(found.strip())
        if matcher.real_quick_ratio() >= _SIMILAR and (bound := matcher.quick_ratio()) >= _SIMILAR:
            bounds.append((-bound, index))
    best: tuple[float, int] | None = None
    left = _MAX_MATCHED
    for bound, index in sorted(bounds):
        found = lines[index].strip()
        left -= len(found)
        if left < 0 or (best is not None and best[0] <= bound):
            break
        between()
        matcher.set_seq1(found)
        likeness = matcher.ratio()
        if likeness >= _SIMILAR and (best is None or -likeness < best[0]):
            best = -likeness, index
    return None if best is None else sum(len(found) + 1 for found in lines[: best[1]])


def _difference(text: str, start: int, sought: str) -> Nearest:
    """Return the first difference between `sought` and what stands at `start`."""
    low, high = 0, len(sought)
    while low < high:
        middle = (low + high + 1) // 2
        if text.startswith(sought[low:middle], start + low):
            low = middle
        else:
            high = middle - 1
    at = start + low
    line_start = text.rfind("\n", 0, at) + 1
    return Nearest(
        line=text.count("\n", 0, at) + 1,
        column=at - line_start + 1,
        text=text[line_start : _line_end(text, at)][:_MAX_SHOWN],
        found=text[at] if at < len(text) else None,
        wanted=sought[low] if low < len(sought) else None,
    )


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
