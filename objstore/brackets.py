"""Bracket expressions of an ignore file's lines, read as git reads them, and spelt as regular expressions.

Source: `dowild` in git's wildmatch.c. A set is one of bytes; classes know ASCII alone; a range the wrong way round has
nothing in it; no set has the slash. The letters of a text stand for one byte each here: those beyond ASCII are spelt as
`surrogateescape` does.
"""

import re
from collections.abc import Iterator
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, hexdigits, punctuation
from typing import Final

__all__ = ["BracketInvalid", "Brackets"]

_CONTROL: Final = "".join(map(chr, (*range(1, 32), 127)))
_CLASSES: Final = {
    "alnum": ascii_letters + digits,
    "alpha": ascii_letters,
    "blank": " \t",
    "cntrl": _CONTROL,
    "digit": digits,
    "graph": ascii_letters + digits + punctuation,
    "lower": ascii_lowercase,
    "print": ascii_letters + digits + punctuation + " ",
    "punct": punctuation,
    "space": " \t\n\r",
    "upper": ascii_uppercase,
    "xdigit": hexdigits,
}
"""What git puts into each class; to it, vertical tab and form feed are no space."""

_STANDS_FOR: Final = 0xF0000
"""The first of the code points that stand for expressions: none that a byte is spelt with."""


class BracketInvalid(ValueError):
    """An expression has no end, or a class that there is not; git then has the whole line fit nothing."""


class Brackets:
    """The bracket expressions of one line, taken out so that what knows no such expression can read the rest.

    White space that the line ends in is taken out as one that holds it alone: what reads the rest would drop it.
    """

    def __init__(self, line: str) -> None:
        """Take them out of a line. Raises BracketInvalid."""
        self._spelt: list[str] = []
        self.has_slash = False  # whether a slash stands in any: the line is then one of paths, as with any slash
        self.rest: Final = "".join(self._taken_out(line))  # the line, with a letter in the place of each

    def put_back(self, regex: str) -> str:
        """Return a regular expression that was made of the rest, with each expression in its place."""
        for at, spelt in enumerate(self._spelt):
            regex = regex.replace(chr(_STANDS_FOR + at), spelt)
        return regex

    def _taken_out(self, line: str) -> Iterator[str]:
        at = 0
        while at < len(line):
            if line[at] == "[":
                yield chr(_STANDS_FOR + len(self._spelt))
                at = self._take(line, at)
            else:
                letter = line[at : at + 2] if line[at] == "\\" else line[at]
                at += len(letter)
                if at == len(line) and letter[-1].isspace():
                    yield chr(_STANDS_FOR + len(self._spelt))
                    self._spelt.append(re.escape(letter[-1]))
                else:
                    yield letter

    def _take(self, line: str, start: int) -> int:
        """Take out the expression that begins at `start`, and return where the line goes on."""
        at = start + 1
        is_negated = line[at : at + 1] in {"!", "^"}
        at += is_negated
        ranges: list[tuple[str, str]] = []
        before = ""  # the letter that a range may begin with; "": none
        while True:  # a bracket that closes is a letter where it is the first
            letter = _at(line, at)
            if letter == "-" and before and _at(line, at + 1) != "]":
                last, at = _letter(line, at + 1)
                ranges.append((before, last))
                before = ""
            elif (name := _class_at(line, at)) is not None:
                if name not in _CLASSES:
                    raise BracketInvalid
                ranges += [(member, member) for member in _CLASSES[name]]
                at += len(f"[:{name}:]")
                before = ""
            else:
                before, at = _letter(line, at)
                ranges.append((before, before))
            if _at(line, at) == "]":
                break
        self.has_slash = self.has_slash or "/" in line[start:at]
        self._spelt.append(_spelt(ranges, is_negated=is_negated))
        return at + 1


def _at(line: str, at: int) -> str:
    if at >= len(line):
        raise BracketInvalid
    return line[at]


def _letter(line: str, at: int) -> tuple[str, int]:
    """Return the letter at a place, which a backslash may stand before, and the place behind it."""
    if _at(line, at) == "\\":
        at += 1
    return _at(line, at), at + 1


def _class_at(line: str, at: int) -> str | None:
    """Return the name of the class at a place (None: what stands there is none)."""
    if not line.startswith("[:", at):
        return None
    end = line.find("]", at + 2)
    if end < 0:
        raise BracketInvalid
    return line[at + 2 : end - 1] if end > at + 2 and line[end - 1] == ":" else None


def _spelt(ranges: list[tuple[str, str]], *, is_negated: bool) -> str:
    members = "".join(f"{re.escape(first)}-{re.escape(last)}" for first, last in ranges if first <= last)
    if not members:
        return "[^/]" if is_negated else "(?!)"
    return f"(?!/)[{'^' if is_negated else ''}{members}]"
