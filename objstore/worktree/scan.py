"""Looking: a survey of a workspace that knows its last look."""

import os
import time
from contextlib import suppress
from typing import Final

from objstore.config.config_files import Configuration
from objstore.errors import CasError, DiskFailed, PermissionRefused, StoreLinked, StoreNotRegular
from objstore.fs.nofollow import open_store_folder, read_store_file, write_derived_file
from objstore.fs.reserved_names import STAT_CACHE_NAME, STORE_NAME
from objstore.index.stat_queries import JournalPosition
from objstore.model.ids import BlobId
from objstore.model.relpath import folders_above, joined
from objstore.model.tree import ExcludedEntry, TreeEntry, entry_at
from objstore.transaction.journal import Journal
from objstore.worktree.stat_cache import UNKNOWN, StatCache
from objstore.worktree.walk import Keep, ReadFile, ScanLimits, TreeWalk

__all__ = ["WorktreeScan", "discard_content"]


def discard_content(_: ReadFile) -> None:
    """Keep nothing of what a survey reads."""


class WorktreeScan:
    """One look at a workspace, from what the last one left to what the next one will find."""

    def __init__(self, journal: Journal) -> None:
        """Take up the last look. What the survey will find is compared with the baseline that there is now."""
        self._journal: Final = journal
        self._folder: Final = os.path.join(journal.tree.root, STORE_NAME)
        with journal.reading() as store:
            self.baseline = store.index.holders.baseline()
        self.stat_cache: Final = self._loaded()
        self.follow()

    def survey(self, keep: Keep, limits: ScanLimits | None = None) -> TreeWalk:
        """Return a survey that is still to be run; what it reads is given to `keep`."""
        gitignored = Configuration(self._journal.tree.root).get("snapshot.gitignored").value
        return TreeWalk(
            self._journal.tree,
            self.stat_cache,
            clock=self._clock(),
            keep=keep,
            progress=self._journal.progress,
            gitignored=gitignored is not False,
            limits=limits,
            is_covered=self._was_covered,
        )

    def follow(self) -> None:
        """Have those files compared again of which something was recorded since their folders were settled.

        A tool may have written a file, and somebody put back what stood there before: to a look nothing changed.
        """
        with self._journal.reading() as store:
            index = store.index
            now, until = index.stats.position(), JournalPosition._make(self.stat_cache.until)
            # Numbers are given again where a group was cut off because it could not be synced.
            if now.taken_back != until.taken_back or index.stats.recorded_at(until) != self.stat_cache.newest:
                self.stat_cache.mark_recorded(is_fully_recorded=False)
            elif now != until:
                for path in index.stats.paths_changed_since(until):
                    self.stat_cache.mark_unrecorded(path)
            self.stat_cache.until, self.stat_cache.newest = now, index.stats.recorded_at(now)

    def mark(self) -> None:
        """Have what is settled be so with all that is recorded now. The caller holds the writer lock."""
        index = self._journal.store.index
        self.stat_cache.until = moment = index.stats.position()
        self.stat_cache.newest = index.stats.recorded_at(moment)

    def distrust(self, blobs: set[BlobId]) -> None:
        """Have files read again that were these blobs: the store has them no longer."""
        for row in self.stat_cache:
            found = [row.blob(at) for at in range(len(row.names))]
            if blobs.isdisjoint(found):
                continue
            row.blobs = b"".join(UNKNOWN if blob in blobs else blob for blob in found)
            row.needs_rescan = True
            for path in (row.path, *folders_above(row.path)):
                holder = self.stat_cache.get(path)
                if holder is not None:
                    holder.tree = b""

    def save(self) -> None:
        """Keep what is known now for the next look. Whatever goes wrong costs that one time, and nothing else."""
        encoded = self.stat_cache.encoded(self._journal.store.log.store, self._number)
        with suppress(CasError, OSError):
            write_derived_file(self._journal.disk, self._folder, *os.path.split(STAT_CACHE_NAME), encoded)

    # ---- inside

    def _was_covered(self, folder: bytes, tag: bytes) -> bool:
        """Return whether a folder was covered before a tag came into it: looks may be lost, and don't decide alone."""
        if self.baseline is None:
            return False
        with self._journal.reading() as store:
            if store.ever_at(joined(folder, tag)):
                return True  # a look told of the tag
            try:
                found = entry_at(self.baseline.root, folder, store.blob)
                if not isinstance(found, TreeEntry) or not found.is_folder:
                    return False
                # A tool may have named a file in a folder that is not covered; then the rest of it is left out.
                return not isinstance(entry_at(found.blob, tag, store.blob), ExcludedEntry)
            except CasError:
                return True  # rather too much is looked at than too little

    @property
    def _scratch(self) -> str:
        return os.path.join(self._folder, "tmp")

    @property
    def _number(self) -> int:
        return 0 if self.baseline is None else self.baseline.number

    def _loaded(self) -> StatCache:
        try:
            stored = read_store_file(os.path.join(self._folder, STAT_CACHE_NAME))
        except (OSError, StoreLinked, StoreNotRegular):
            return StatCache()
        return StatCache.decoded(stored, self._journal.store.log.store, self._number)

    def _clock(self) -> int:
        try:
            with open_store_folder(self._scratch) as scratch:
                return self._journal.disk.clock(scratch, self._scratch)
        except (OSError, PermissionRefused, DiskFailed):
            # The machine's own clock may be ahead of the file system's, and is finer.
            return time.time_ns() - 2_000_000_000
