"""Match paths with patterns as in a `.gitignore` file, for settings that name files.

`*.md` matches names anywhere, `docs/` everything below folders of that name, and a pattern with a slash in front or
inside begins at the workspace's root (`src/*.py`, `.github/**`). `*`, `?` and sets match within one name, `**` any
number of folders. The last pattern that matches decides; one with `!` in front is an exception.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from objstore.fastclass import NamedTuple

__all__ = ["PathPatterns"]

_ANY: Final = "**"
_MOST_ANY: Final = 4
"""How often `**` may be in a pattern: each tries every number of folders."""


class _Pattern(NamedTuple):
    parts: tuple[str, ...]
    is_folder: bool  # it matches only what is below a folder
    is_exception: bool


class PathPatterns:
    """A list of patterns, ready to match."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        """Take the patterns. Raises ValueError for one that can't match any path."""
        self.patterns: Final = tuple(patterns)
        self._parsed: Final = [_parsed(pattern) for pattern in self.patterns]

    def __bool__(self) -> bool:
        """Return whether there is any pattern."""
        return bool(self.patterns)

    def match(self, path: str) -> bool:
        """Return whether the patterns match the file at a path relative to the root, or a folder above it."""
        names = path.split("/")
        fitting = (not each.is_exception for each in reversed(self._parsed) if _fits(each.parts, names, each))
        return next(fitting, False)


def _parsed(pattern: str) -> _Pattern:
    bare = pattern.removeprefix("!")
    path = bare.removeprefix("/").removesuffix("/")
    parts = path.split("/")
    if not all(parts) or {".", ".."} & set(parts) or parts.count(_ANY) > _MOST_ANY:
        raise ValueError(f"{pattern!r} matches no path")
    if "/" not in bare.removesuffix("/"):
        parts = [_ANY, *parts]  # a name anywhere
    return _Pattern(tuple(parts), is_folder=bare.endswith("/"), is_exception=bare != pattern)


def _fits(parts: Sequence[str], names: Sequence[str], pattern: _Pattern) -> bool:
    """Return whether parts of a pattern match names of a path from its beginning: a file, or a folder above it."""
    if not parts:
        return bool(names) or not pattern.is_folder
    if parts[0] == _ANY:
        if len(parts) == 1:
            return bool(names)
        return any(_fits(parts[1:], names[at:], pattern) for at in range(len(names)))
    if not names:
        return False
    from fnmatch import fnmatchcase

    return fnmatchcase(names[0], parts[0]) and _fits(parts[1:], names[1:], pattern)
