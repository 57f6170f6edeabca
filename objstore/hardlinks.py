"""Hard links: what one transition does to files that have more than one name.

Whatever is done to one name shows in the others, in bytes, mode and times. So what the transition itself has changed is
told here from what somebody else has.
"""

import os
from collections import Counter
from typing import TypeAlias

from objstore.disk import is_same_file
from objstore.paths import Spot, look_at

__all__ = ["FileId", "HardLinks", "file_id"]

FileId: TypeAlias = tuple[int, int]
"""Device and inode: what the names of one file have in common."""


def file_id(looked: os.stat_result) -> FileId:
    """Return what tells a file from others, whatever its names are."""
    return looked.st_dev, looked.st_ino


class HardLinks:
    """The files with several names that one transition has changed."""

    def __init__(self) -> None:
        """Begin with none."""
        self._changed: dict[FileId, os.stat_result] = {}  # as they were then
        self._aside: Counter[FileId] = Counter()

    def note(self, spot: Spot) -> None:
        """Note how the file looks that was just changed, if it has other names."""
        found = look_at(spot)
        if found is not None and found.st_nlink > 1:
            self._changed[file_id(found)] = found

    def note_aside(self, folder: int, name: str) -> None:
        """Note that a name of a file was put aside, where nobody but the transition looks for it."""
        found = os.lstat(name, dir_fd=folder)
        self._aside[file_id(found)] += 1
        self._changed[file_id(found)] = found

    def expected(self, looked: os.stat_result) -> os.stat_result:
        """Return how a file has to look that looked so before the transition, if nobody else has written to it."""
        return self._changed.get(file_id(looked), looked)

    def is_ours(self, found: os.stat_result) -> bool:
        """Return whether the transition has changed the file, and nobody has written to it since."""
        changed = self._changed.get(file_id(found))
        return changed is not None and is_same_file(changed, found)

    def has_others(self, found: os.stat_result) -> bool:
        """Return whether the file that stands at a path has other names than that, apart from those that are aside."""
        return found.st_nlink - self._aside[file_id(found)] > 1
