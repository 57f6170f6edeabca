"""Find the files that other writers may have changed while a scan ran without the writer lock.

A call is durable in the log before the first of its files changes, and the applied marker says when the last one has
changed. So a scan that begins when every file matches the log sees each call whole or not at all, except for the calls
that are recorded after that moment.
"""

import time
from typing import Final

from objstore.fs.file_state import linked
from objstore.fs.writer_lock import GAP_SECONDS
from objstore.model.records import Decision, Edit
from objstore.transaction.journal import Journal
from objstore.worktree.stat_cache import StatCache

__all__ = ["ConcurrentWrites"]

_TRIES: Final = 50
"""Checks for unfinished writes before the lock is taken: a writer that never pauses seldom leaves none."""


class ConcurrentWrites:
    """The records that are written from now on, at a moment when the files match all records before."""

    def __init__(self, journal: Journal) -> None:
        """Wait until every running writer has finished; roll forward what a crashed writer left.

        Raises what Journal.writing raises.
        """
        self._journal: Final = journal
        for _ in range(_TRIES):
            with journal.reading() as store:
                if not journal.unfinished():
                    self._until = store.index.stats.position()
                    return
            time.sleep(GAP_SECONDS)
        with journal.writing():
            self._until = journal.store.index.stats.position()

    def paths(self, stat_cache: StatCache) -> set[bytes]:
        """Return the old and new paths of all files that records since the last call of this method name.

        The first call counts from the beginning. A file with several hard links changes under each of its names, so
        the names that `stat_cache` has for it are included. The caller holds the writer lock.
        """
        store = self._journal.store
        since, self._until = self._until, store.index.stats.position()
        paths: set[bytes | None] = set()
        for place in [] if since == self._until else store.index.stats.recorded_since(since):
            record, _ = store.record(place)
            if isinstance(record, Edit):
                paths |= {record.path, record.source}
            elif isinstance(record, Decision):
                paths.update(path for file in record.changed_files for path in (file.path_before, file.path_after))
        found = {path for path in paths if path is not None}
        inodes = linked(self._journal.tree, found)
        return found.union(stat_cache.names_of(inodes)) if inodes else found
