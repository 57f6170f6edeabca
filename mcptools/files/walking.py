"""Walk the names below a directory, in a fixed order, within the limits.

Links are named but not followed. The store is never shown, and version control folders are named but not entered.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mcptools.edit.display import shown
from mcptools.model.cancellation import progress
from objstore import CasError, Files

__all__ = ["VERSION_CONTROL", "Walk", "WalkedEntry"]

VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn", ".jj"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedEntry:
    """One name found by a walk."""

    path: str  # canonical, relative to the allowed directory
    below: str  # relative to the start of the walk
    kind: str  # file, directory, symlink, other


@dataclass(slots=True, kw_only=True)
class Walk:
    """A walk below one directory, and what kept it from being complete."""

    files: Files
    start: str  # canonical
    max_walked: int  # names
    max_seconds: float
    walked: int = 0
    unreadable: int = 0  # folders that could not be read
    cut: str = ""  # why the walk ended early; "": it did not
    unnameable: list[WalkedEntry] = field(default_factory=list)  # names that are not UTF-8
    _deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.max_seconds

    def names(self, enters: Callable[[WalkedEntry], bool] = lambda _: True) -> Iterator[WalkedEntry]:
        """Yield every name, each folder before its contents. Raises PathError for the first folder.

        `enters`: whether to enter a folder; names that are skipped this way do not count towards the limits.
        """
        prefix = "" if self.start == "." else f"{self.start}/"
        left = [self._names_in(self.start, prefix, "")]
        while left:
            found = next(left[-1], None)
            if found is None:
                left.pop()
                continue
            if self.walked >= self.max_walked:
                self.cut = f"{self.max_walked} names were visited"
                return
            if self.out_of_time():
                return
            self.walked += 1
            progress(self.walked, None, f"{self.walked} names visited")
            if not found.path.isascii() and shown(found.path) != found.path:
                self.unnameable.append(found)
            yield found
            if found.kind == "directory" and found.below.rpartition("/")[2] not in VERSION_CONTROL and enters(found):
                try:
                    left.append(self._names_in(found.path, f"{found.path}/", f"{found.below}/"))
                except (CasError, OSError):
                    self.unreadable += 1

    def out_of_time(self) -> bool:
        """Return whether the walk's time is over."""
        if time.monotonic() < self._deadline:
            return False
        self.cut = f"{self.max_seconds:g} s have passed"
        return True

    def notes(self) -> tuple[str, ...]:
        """Return the notes for an answer of a walk that was not complete."""
        cut = (f"The search is incomplete: {self.cut}. Start in a subdirectory.",) if self.cut else ()
        return (*cut, *((f"{self.unreadable} folders could not be read.",) if self.unreadable else ()))

    def _names_in(self, path: str, prefix: str, below: str) -> Iterator[WalkedEntry]:
        entries = self.files.list_directory(path)
        return (WalkedEntry(path=prefix + entry.name, below=below + entry.name, kind=entry.kind) for entry in entries)
