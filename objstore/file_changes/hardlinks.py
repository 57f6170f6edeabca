"""Hard links: what one transition does to files that have more than one name.

Whatever is done to one name shows in the others, in bytes, mode and times. So what the transition itself has changed is
told here from what somebody else has.
"""

import os
from collections import Counter
from typing import TypeAlias

from objstore.fs.confined_path import ResolvedPath, look_at
from objstore.fs.disk import is_same_file

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
        self._written: set[FileId] = set()  # those of which bytes were changed
        self._aside: Counter[FileId] = Counter()

    def note_written(self, resolved: ResolvedPath) -> None:
        """Note how the file looks that was just written to, if it has other names."""
        found = look_at(resolved)
        if found is not None and found.st_nlink > 1:
            self._changed[file_id(found)] = found
            self._written.add(file_id(found))

    def note_metadata_change(self, before: os.stat_result, found: os.stat_result | None) -> bool:
        """Note how a file looks that got another name or mode; return whether nobody has written to it since `before`.

        What somebody has written is never noted: it would count as ours.
        """
        if found is None or (found.st_size, found.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            return False
        if found.st_nlink > 1:
            self._changed[file_id(found)] = found
        return True

    def note_backup_name(self, found: os.stat_result) -> None:
        """Note that a name of a file was put aside, where nobody but the transition looks for it."""
        self._aside[file_id(found)] += 1

    def expected(self, looked: os.stat_result) -> os.stat_result:
        """Return how a file has to look that looked so before the transition, if nobody else has written to it."""
        return self._changed.get(file_id(looked), looked)

    def is_ours(self, found: os.stat_result) -> bool:
        """Return whether the transition has written what is in the file, and nobody has written to it since."""
        changed = self._changed.get(file_id(found))
        return changed is not None and file_id(found) in self._written and is_same_file(changed, found)

    def has_other_links(self, found: os.stat_result) -> bool:
        """Return whether the file that stands at a path has other names than that, apart from those that are aside."""
        return found.st_nlink - self._aside[file_id(found)] > 1
