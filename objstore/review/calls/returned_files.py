"""Find the files that are back, and that an agent may have changed where no look could see them.

A folder is moved out of the workspace, agents work, and it is moved back: no report says who wrote into it meanwhile,
or before it left. What a look had read before is known, all else is not. Every way in which bytes get recorded asks
this one question: scans, a person's decisions that keep what they find, and the tools of our server.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Final

from objstore.disk.fs.birth_time import times_of
from objstore.disk.ignore_rules.rule_files import folder_at
from objstore.history.documents.earlier_states import DocumentHistory
from objstore.model.basic_types import MAX_INT, FileState
from objstore.storage.transaction.journal import Journal
from objstore.values.clock import FILE_TIME_LAG_NS
from objstore.values.fastclass import NamedTuple
from objstore.worktree.scan import WorktreeScan
from objstore.worktree.stat_cache import StatCache
from objstore.worktree.walk import time_error

__all__ = ["ReturnedFiles", "was_untouched_since"]


class ReturnedFiles:
    """The files that one look finds at paths where none was known."""

    def __init__(self, journal: Journal, last: Callable[[], StatCache] | None = None) -> None:
        """Take a journal; read nothing yet. `last`: what the last scan saw (None: as it is saved)."""
        self._journal: Final = journal
        self._last: Final = last or _saved(journal)
        self._folders: dict[bytes, _Folder] = {}

    def is_unseen(self, path: bytes, now: FileState) -> bool:
        """Return whether a file that appeared at a path may hold what no look has read.

        It may if it was somewhere else when its path was found empty, and is not as it was then. Only the very state
        counts that it had last, whose edits are as they were then, and only while none of these is rejected. Older text
        does not count, accepted or not, and neither does text of other files: a shell may have written any of it.
        The last state of an earlier stay counts if nothing has touched the file since that ended: its folder left, and
        another file came and went at the path meanwhile.

        Wrong if somebody copies the file back, so that the system calls it new, and a shell had written the original
        after its path was found empty: it is the person's then, as all that a person copies from elsewhere. Wrong, too,
        if a shell made a file elsewhere with the bytes of this one while this one was there, and its folder comes here:
        the text is the decided one all the same. Too careful if a person wrote the file while it was away, after the
        last look that read it, or, where another file came and went, within 20 ms before its folder left.
        """
        index = self._journal.store.index.documents
        histories = [DocumentHistory(self._journal, document) for document in index.at(path)]
        stays = [stay for history in histories for stay in history.stays_at(path)]
        last = max(stays, key=lambda each: each.until, default=None)
        folder = self._folder(path.rpartition(b"/")[0])
        gone = self._last().looked_at(path)
        if last is None:
            return folder.was_known and folder.made <= gone
        if min(folder.made, *self._times(path)) > max(gone, last.until - FILE_TIME_LAG_NS):
            return False
        return not any(
            stay.state.state == now
            and not stay.has_rejected
            and (stay is last or was_untouched_since(self._journal, path, stay.until))
            for stay in stays
        )

    # ---- inside

    def _folder(self, path: bytes) -> "_Folder":
        """Return what is known of a folder with those above it, as far as the last scan did not see them."""
        if path not in self._folders:
            found = _Folder(was_known=False, made=MAX_INT)
            if path and not self._last().has_seen(path):
                above = self._folder(path.rpartition(b"/")[0])
                was_known = above.was_known or bool(self._journal.store.index.documents.paths_below(path))
                found = _Folder(was_known=was_known, made=min(above.made, self._times(path)[0]))
            self._folders[path] = found
        return self._folders[path]

    def _times(self, path: bytes) -> tuple[int, int]:
        """Return when a file or folder was made, as far as the system tells that, and when it was last written (ns)."""
        above, _, name = path.rpartition(b"/")
        with suppress(OSError), folder_at(self._journal.tree, above) as fd:
            times = times_of(fd, name)
            return times.born or times.written, times.written
        return MAX_INT, MAX_INT  # it is gone meanwhile


def was_untouched_since(journal: Journal, path: bytes, moment: int) -> bool:
    """Return whether nothing has touched a file since a moment (ns), though a folder with it may have moved.

    No program can set the time that shows this, and a file that is written or moved by itself gets another. Wrong on a
    file system that keeps no such time, as FAT, and gives the time of the last write, which programs can set.
    """
    above, _, name = path.rpartition(b"/")
    with suppress(OSError), folder_at(journal.tree, above) as fd:
        seen = os.lstat(name, dir_fd=fd)
        error = time_error(seen.st_dev, os.fstat(journal.tree.fd).st_dev)
        return seen.st_ctime_ns + FILE_TIME_LAG_NS + error <= moment
    return False


def _saved(journal: Journal) -> Callable[[], StatCache]:
    """Return a function that reads once what the last scan saw."""

    @cache
    def saved() -> StatCache:
        return WorktreeScan(journal).stat_cache

    return saved


class _Folder(NamedTuple):
    """A folder that the last scan did not see."""

    was_known: bool  # whether files in it, or in a folder above it that the scan did not see, were ever recorded
    made: int  # when the oldest of these folders was made (ns; MAX_INT: the scan saw it)
