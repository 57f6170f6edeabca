"""Looking: a survey of a workspace that knows its last look."""

import os
import time
from contextlib import suppress
from typing import Final

from objstore.configuration import Configuration
from objstore.errors import CasError, DiskFailed, PermissionRefused, StoreLinked, StoreNotRegular
from objstore.ids import BlobId
from objstore.journal import Journal
from objstore.looks import UNKNOWN, Looks
from objstore.names import LOOKS_NAME, STORE_NAME
from objstore.premises import own_bytes, own_folder, put_derived
from objstore.recordedpaths import folders_above, joined
from objstore.statlookups import Moment
from objstore.survey import Keep, Limits, ReadFile, Survey
from objstore.trees import LeftOut, TreeEntry, entry_at

__all__ = ["Looking", "nothing_kept"]


def nothing_kept(_: ReadFile) -> None:
    """Keep nothing of what a survey reads."""


class Looking:
    """One look at a workspace, from what the last one left to what the next one will find."""

    def __init__(self, journal: Journal) -> None:
        """Take up the last look. What the survey will find is compared with the baseline that there is now."""
        self._journal: Final = journal
        self._folder: Final = os.path.join(journal.tree.root, STORE_NAME)
        with journal.reading() as store:
            self.baseline = store.index.baseline()
        self.looks: Final = self._loaded()
        self.follow()

    def survey(self, keep: Keep, limits: Limits | None = None) -> Survey:
        """Return a survey that is still to be run; what it reads is given to `keep`."""
        gitignored = Configuration(self._journal.tree.root).get("snapshot.gitignored").value
        return Survey(
            self._journal.tree,
            self.looks,
            clock=self._clock(),
            keep=keep,
            progress=self._journal.progress,
            gitignored=gitignored is not False,
            limits=limits,
            is_covered=self._was_covered,
            ahead=self._journal.ahead,
        )

    def follow(self) -> None:
        """Have those files compared again of which something was recorded since their folders were settled.

        A tool may have written a file, and somebody put back what stood there before: to a look nothing changed.
        """
        with self._journal.reading() as store:
            index = store.index
            now, until = index.moment(), Moment._make(self.looks.until)
            # Numbers are given again where a group was cut off because it could not be synced.
            if now.taken_back != until.taken_back or index.recorded_at(until) != self.looks.newest:
                self.looks.settle(is_settled=False)
            elif now != until:
                for path in index.paths_told_of_since(until):
                    self.looks.unsettle(path)
            self.looks.until, self.looks.newest = now, index.recorded_at(now)

    def mark(self) -> None:
        """Have what is settled be so with all that is recorded now. The caller holds the writer lock."""
        index = self._journal.store.index
        self.looks.until = moment = index.moment()
        self.looks.newest = index.recorded_at(moment)

    def distrust(self, blobs: set[BlobId]) -> None:
        """Have files read again that were these blobs: the store has them no longer."""
        for row in self.looks:
            found = [row.blob(at) for at in range(len(row.names))]
            if blobs.isdisjoint(found):
                continue
            row.blobs = b"".join(UNKNOWN if blob in blobs else blob for blob in found)
            row.is_unsure = True
            for path in (row.path, *folders_above(row.path)):
                holder = self.looks.get(path)
                if holder is not None:
                    holder.tree = b""

    def save(self) -> None:
        """Keep what is known now for the next look. Whatever goes wrong costs that one time, and nothing else."""
        encoded = self.looks.encoded(self._journal.store.log.store, self._number)
        with suppress(CasError, OSError):
            put_derived(self._journal.disk, self._folder, *os.path.split(LOOKS_NAME), encoded)

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
                return not isinstance(entry_at(found.blob, tag, store.blob), LeftOut)
            except CasError:
                return True  # rather too much is looked at than too little

    @property
    def _scratch(self) -> str:
        return os.path.join(self._folder, "tmp")

    @property
    def _number(self) -> int:
        return 0 if self.baseline is None else self.baseline.number

    def _loaded(self) -> Looks:
        try:
            stored = own_bytes(os.path.join(self._folder, LOOKS_NAME))
        except (OSError, StoreLinked, StoreNotRegular):
            return Looks()
        return Looks.decoded(stored, self._journal.store.log.store, self._number)

    def _clock(self) -> int:
        try:
            with own_folder(self._scratch) as scratch:
                return self._journal.disk.clock(scratch, self._scratch)
        except (OSError, PermissionRefused, DiskFailed):
            # The machine's own clock may be ahead of the file system's, and is finer.
            return time.time_ns() - 2_000_000_000
