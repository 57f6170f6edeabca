"""Track what one transition does to files with several names, to distinguish its own changes from others'.

A change through one name shows in the file's other names, in bytes, mode and times.
"""

import os
import stat
from collections import Counter
from typing import TypeAlias

from objstore.disk.fs.confined_path import ResolvedPath, look_at
from objstore.disk.fs.disk import is_same_file

__all__ = ["FileId", "HardLinks", "file_id"]

FileId: TypeAlias = tuple[int, int]
"""Device and inode, which all names of one file share."""


def file_id(seen: os.stat_result) -> FileId:
    """Return the identity of a file, whatever its names."""
    return seen.st_dev, seen.st_ino


class HardLinks:
    """The files with several names that one transition has changed."""

    def __init__(self) -> None:
        """Start with no file."""
        self._changed: dict[FileId, os.stat_result] = {}  # their status after the change
        self._written: set[FileId] = set()  # those whose bytes were changed
        self._backups: Counter[FileId] = Counter()

    def note_written(self, resolved: ResolvedPath) -> None:
        """Note the status of a file that was just written to, if it has other names."""
        found = look_at(resolved)
        if found is not None and found.st_nlink > 1:
            self._changed[file_id(found)] = found
            self._written.add(file_id(found))

    def note_metadata_change(self, before: os.stat_result, found: os.stat_result | None) -> bool:
        """Note the status of a file that got a new name or mode; return whether no one wrote to it since `before`.

        A file that someone else has written to is never noted, because it would count as ours.
        """
        if found is None or (found.st_size, found.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            return False
        if found.st_nlink > 1:
            self._changed[file_id(found)] = found
        return True

    def note_backup_name(self, found: os.stat_result) -> None:
        """Note that a file has a backup name, which only the transition uses."""
        self._backups[file_id(found)] += 1

    def expected(self, seen: os.stat_result) -> os.stat_result:
        """Return the status that a file must have that had `seen` before the transition, if no one else wrote to it."""
        return self._changed.get(file_id(seen), seen)

    def is_ours(self, found: os.stat_result) -> bool:
        """Return whether the transition wrote the file's bytes, and no one has written to it since."""
        changed = self._changed.get(file_id(found))
        return changed is not None and file_id(found) in self._written and is_same_file(changed, found)

    def has_other_links(self, found: os.stat_result) -> bool:
        """Return whether a file has more than one name, not counting backup names. A link's text is never written."""
        return stat.S_ISREG(found.st_mode) and found.st_nlink - self._backups[file_id(found)] > 1
