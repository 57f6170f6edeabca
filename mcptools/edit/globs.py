"""Globs: patterns of paths, as shells and ignore files have them, for tools that search.

`*`, `?` and `[…]` mean what they mean in a shell and never take in a slash; `**` stands for any number of folders, and
`{a,b}` for `a` and for `b`, with whatever stands around it. A pattern without a slash is about names, at any depth; one
with a slash about paths from where the search begins, to which `./` may lead, or the whole path to there.
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
"""What braces are made of; in a set such as `[{]` they mean nothing."""

_MOST: Final = 1000
"""Patterns that one with braces may stand for."""


class TooManyAlternatives(Exception):
    """A pattern stands for more others than are tried."""

    def __init__(self) -> None:
        super().__init__(f"The glob stands for more than {_MOST} others")


def from_start(pattern: str, start: str) -> str:
    """Return a pattern with `./` in place of the absolute path where the search begins, if it begins with that."""
    above = f"{start.rstrip('/')}/"
    return f"./{pattern.removeprefix(above)}" if pattern.startswith(above) else pattern


def matches(path: str, pattern: str) -> bool:
    """Return whether a path, its components joined by "/", fits; a pattern with no special character is part of a name.

    Such a part may be in capitals or not. Where braces give a choice, that is special too: `{build,dist}` are names.
    Raises TooMany.
    """
    meant = _meant(pattern)
    if len(meant) == 1 and meant[0] == pattern and not _SPECIAL & set(pattern) and "/" not in pattern:
        return pattern.casefold() in path.rpartition("/")[2].casefold()
    return any(_matches(path, each) for each in meant)


def leads_into(folder: str, pattern: str) -> bool:
    """Return whether anything below a folder, its components joined by "/", could fit. Raises as `matches`."""
    return any(_leads_into(folder, each) for each in _meant(pattern))


@lru_cache(maxsize=32)
def _meant(pattern: str) -> Sequence[str]:
    """Return the patterns without braces that a pattern stands for: itself, if it has none. Raises TooMany."""
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
    """Return where braces with a choice that are in no other such open, have commas, and close; (): nowhere.

    Braces without a comma mean themselves, as do those without another.
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
                    found = (*cuts, mark.start())  # those around it close later
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
    # The folder has to fit a beginning of the pattern that leaves something for what is below; `**` always does.
    ends = range(1, len(wanted) + (wanted[-1] == "**"))
    return any(_fits(parts, wanted[:end]) for end in ends)


def _wanted(pattern: str) -> tuple[Sequence[str], bool]:
    """Return the components of a pattern without braces, and whether it is one of names, at any depth."""
    wanted = [name for name in pattern.split("/") if name not in {"", "."}] or [""]
    return wanted, len(wanted) == 1 and not pattern.startswith("./")


def _fits(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    # reached: how many of the parts the pattern so far can have taken
    reached = {0}
    for name in wanted:
        if name == "**":
            reached = set(range(min(reached, default=len(parts) + 1), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], name)}
    return len(parts) in reached
