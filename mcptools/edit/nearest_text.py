"""Find the place in a file that is most similar to a text that the file does not contain.

A model that only learns "not found" tries again blindly; one that learns "line 12 has a no-break space there" corrects
its call. The result is only used in hints; it never decides whether an edit applies.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

__all__ = ["Nearest", "character", "nearest"]

_SIMILAR: Final = 0.6
"""The similarity, from 0 to 1, below which a line is no help."""

_MAX_COMPARED: Final = 2000
"""Lines of the largest file that is searched for similar lines: ruling one line out takes some ten microseconds."""

_MAX_MATCHED: Final = 20_000
"""Characters in all lines that are compared in detail, which takes up to ten microseconds for each character."""

_MAX_SHOWN: Final = 200
"""Characters of a line that are quoted."""

_BLANKS: Final = re.compile(r"[^\S\n]+")
_NAMES: Final = {"\t": "TAB", "\r": "CARRIAGE RETURN", "\n": "LINE FEED", "\0": "NULL", "\x0c": "FORM FEED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The place in a file that is most similar to a text."""

    line: int  # from 1
    column: int  # of the first character that differs, from 1
    text: str  # the line, cut to a quotable length
    found: str | None  # the character in the file; None: the file ends
    wanted: str | None  # the character in the text; None: the text ends

    @property
    def difference(self) -> str:
        """Return in words which character the file has, and which the text has."""
        return f"the file has {character(self.found)} where the given text has {character(self.wanted)}"

    def __str__(self) -> str:
        return f"Nearest is line {self.line}: {self.text!r}. At column {self.column} {self.difference}."


def character(char: str | None) -> str:
    """Return the code point and name of `char`, or "nothing more" for None."""
    if char is None:
        return "nothing more"
    if "\udc80" <= char <= "\udcff":  # surrogateescape decodes a byte that is not UTF-8 to this
        return f"the byte 0x{ord(char) - 0xDC00:02x}, which is not UTF-8"
    name = _NAMES.get(char) or unicodedata.name(char, "unnamed")
    return f"U+{ord(char):04X} {name}"


def nearest(content: bytes, wanted: bytes, *, between: Callable[[], object] = lambda: None) -> Nearest | None:
    """Return the place in `content` that is most similar to `wanted`, or None if nothing is similar enough.

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
    """Return the start of the first line that contains `line` if every run of blanks counts as one space, or None."""
    wanted = _BLANKS.sub(" ", line).strip()
    word = max(wanted.split(" "), key=len)  # only lines with this word can match
    at = text.find(word)
    while at >= 0:
        between()
        start, end = text.rfind("\n", 0, at) + 1, _line_end(text, at)
        if wanted in _BLANKS.sub(" ", text[start:end]):
            return start
        at = text.find(word, end)
    return None


def _similar(text: str, line: str, between: Callable[[], object]) -> int | None:
    """Return the start of the line that is most similar to `line`, or None if none is similar enough."""
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
    """Return the first difference between `sought` and the text at `start`."""
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
