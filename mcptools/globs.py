"""Globs: patterns of paths, as shells and ignore files have them, for tools that search.

`*`, `?` and `[…]` mean what they mean in a shell and never take in a slash; `**` stands for any number of folders. A
pattern without a slash is about names, at any depth; one with a slash about paths from where the search begins.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

__all__ = ["leads_into", "matches"]

_SPECIAL: Final = frozenset("*?[")


def matches(path: str, pattern: str) -> bool:
    """Return whether a path, its components joined by "/", fits; a pattern with no special character is part of a name.

    Such a part may be in capitals or not.
    """
    if not _SPECIAL & set(pattern) and "/" not in pattern:
        return pattern.casefold() in path.rpartition("/")[2].casefold()
    parts = path.split("/")
    wanted = pattern.strip("/").split("/")
    if len(wanted) == 1 and wanted[0] != "**":
        return fnmatchcase(parts[-1], wanted[0])
    return _fits(parts, wanted)


def leads_into(folder: str, pattern: str) -> bool:
    """Return whether anything below a folder, its components joined by "/", could fit."""
    parts = folder.split("/")
    wanted = pattern.strip("/").split("/")
    if len(wanted) == 1:
        return True
    # The folder has to fit a beginning of the pattern that leaves something for what is below; `**` always does.
    ends = range(1, len(wanted) + (wanted[-1] == "**"))
    return any(_fits(parts, wanted[:end]) for end in ends)


def _fits(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    # reached: how many of the parts the pattern so far can have taken
    reached = {0}
    for name in wanted:
        if name == "**":
            reached = set(range(min(reached, default=len(parts) + 1), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], name)}
    return len(parts) in reached
