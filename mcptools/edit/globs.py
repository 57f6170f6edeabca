"""Match paths against globs, with the syntax of shells and ignore files.

`*`, `?` and `[…]` mean what they mean in a shell and never match a slash; `**` matches any number of folders, and
`{a,b}` matches `a` or `b`, with the rest of the pattern around it. A pattern without a slash matches names at any
depth; one with a slash matches paths relative to the start of the search, with or without a leading `./`, or with the
absolute path of the start before them.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise
from typing import Final

__all__ = ["TooManyAlternatives", "from_start", "leads_into", "matches"]

_SPECIAL: Final = frozenset("*?[")

_MARK: Final = re.compile(r"\[!?\]?[^\]]*\]|[{},]")
"""A brace or comma, or a set such as `[{]`, in which braces and commas have no special meaning."""

_MOST: Final = 1000
"""Patterns that one with braces may expand to."""


class TooManyAlternatives(Exception):
    """A pattern with braces expands to too many patterns."""

    def __init__(self) -> None:
        super().__init__(f"The glob expands to more than {_MOST} patterns")


def from_start(pattern: str, start: str) -> str:
    """Return a pattern with the absolute path of the start of the search, if it begins with it, replaced by `./`."""
    above = f"{start.rstrip('/')}/"
    return f"./{pattern.removeprefix(above)}" if pattern.startswith(above) else pattern


def matches(path: str, pattern: str) -> bool:
    """Return whether a path, with its components joined by "/", matches a pattern.

    A pattern without special characters and slashes matches a part of a name, ignoring case. Braces with a choice are
    special: `{build,dist}` matches whole names. Raises TooManyAlternatives.
    """
    meant = _meant(pattern)
    if len(meant) == 1 and meant[0] == pattern and not _SPECIAL & set(pattern) and "/" not in pattern:
        return pattern.casefold() in path.rpartition("/")[2].casefold()
    return any(_matches(path, each) for each in meant)


def leads_into(folder: str, pattern: str) -> bool:
    """Return whether anything below a folder, with its components joined by "/", could match. Raises as `matches`."""
    return any(_leads_into(folder, each) for each in _meant(pattern))


@lru_cache(maxsize=32)
def _meant(pattern: str) -> Sequence[str]:
    """Return the patterns without braces that a pattern expands to: itself, if it has none.

    Raises TooManyAlternatives.
    """
    left, found = [pattern], dict[str, None]()
    while left:
        one = left.pop()
        cuts = _outermost(one)
        if cuts:
            before, behind = one[: cuts[0]], one[cuts[-1] + 1 :]
            left += dict.fromkeys(f"{before}{one[start + 1 : end]}{behind}" for start, end in pairwise(cuts))
        else:
            found[one] = None
        if len(left) + len(found) > _MOST:
            raise TooManyAlternatives
    return tuple(found)


def _outermost(pattern: str) -> Sequence[int]:
    """Return the positions of the opening brace, the commas and the closing brace of the first outermost choice.

    (): there is none. Braces without a comma, and unpaired ones, are ordinary characters.
    """
    found: Sequence[int] = ()
    open_at: list[list[int]] = []
    for mark in _MARK.finditer(pattern):
        match mark[0]:
            case "{":
                open_at.append([mark.start()])
            case "," if open_at:
                open_at[-1].append(mark.start())
            case "}" if open_at:
                cuts = open_at.pop()
                if len(cuts) > 1:
                    found = (*cuts, mark.start())  # braces around it close later and replace it
        if found and not open_at:
            break
    return found


def _matches(path: str, pattern: str) -> bool:
    parts = path.split("/")
    wanted, is_name = _wanted(pattern)
    if is_name:
        return fnmatchcase(parts[-1], wanted[0])
    return _fits(parts, wanted)


def _leads_into(folder: str, pattern: str) -> bool:
    parts = folder.split("/")
    wanted, is_name = _wanted(pattern)
    if is_name:
        return True
    # The folder must match a beginning of the pattern that leaves a rest for names below it; `**` always does.
    ends = range(1, len(wanted) + (wanted[-1] == "**"))
    return any(_fits(parts, wanted[:end]) for end in ends)


def _wanted(pattern: str) -> tuple[Sequence[str], bool]:
    """Return the components of a pattern without braces, and whether it matches names at any depth."""
    wanted = [name for name in pattern.split("/") if name not in {"", "."}] or [""]
    return wanted, len(wanted) == 1 and not pattern.startswith("./")


def _fits(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    # reached: how many of the parts the components so far can match
    reached = {0}
    for name in wanted:
        if name == "**":
            reached = set(range(min(reached, default=len(parts) + 1), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], name)}
    return len(parts) in reached
