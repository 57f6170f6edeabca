"""Meanwhile: what was recorded while a look went on beside others, and which files that may have changed.

A call is durable in the log before the first of its files changes, and the mark says so when the last one has. So what
was looked at since such a moment holds each call whole or not at all, but for those that were recorded after it.
"""

import time
from typing import Final

from objstore.fs.file_state import linked
from objstore.fs.writer_lock import GAP_SECONDS
from objstore.model.records import Decision, Edit
from objstore.transaction.journal import Journal
from objstore.worktree.stat_cache import StatCache

__all__ = ["Meanwhile"]

_LOOKS: Final = 50
"""Times that it is seen whether files have followed, before the lock is taken: of who never pauses it comes seldom."""


class Meanwhile:
    """What is recorded from now on, when files have followed all that was recorded before."""

    def __init__(self, journal: Journal) -> None:
        """Begin. Whoever is writing comes to the end before, and what a crashed writer left is finished.

        Raises what Journal.writing raises.
        """
        self._journal: Final = journal
        for _ in range(_LOOKS):
            with journal.reading() as store:
                if not journal.unfinished():
                    self._until = store.index.stats.position()
                    return
            time.sleep(GAP_SECONDS)
        with journal.writing():
            self._until = journal.store.index.stats.position()

    def paths(self, stat_cache: StatCache) -> set[bytes]:
        """Return where files stood or stand of which something was recorded since the last time, or the beginning.

        One with several names changed under each of them, so those that it has in `looks` are among these. The caller
        holds the writer lock.
        """
        store = self._journal.store
        since, self._until = self._until, store.index.stats.position()
        paths: set[bytes | None] = set()
        for place in [] if since == self._until else store.index.stats.recorded_since(since):
            record, _ = store.record(place)
            if isinstance(record, Edit):
                paths |= {record.path, record.source}
            elif isinstance(record, Decision):
                paths.update(path for file in record.written for path in (file.path_before, file.path_after))
        found = {path for path in paths if path is not None}
        inodes = linked(self._journal.tree, found)
        return found.union(stat_cache.names_of(inodes)) if inodes else found
