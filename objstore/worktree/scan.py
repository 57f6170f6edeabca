"""Scan a workspace: walk it with the stat cache that the last scan saved, and save that for the next one."""

import os
import time
from contextlib import suppress
from typing import Final

from objstore.disk.fs.nofollow import open_store_folder, write_derived_file
from objstore.disk.fs.reserved_names import STAT_CACHE_NAME, STORE_NAME
from objstore.disk.ignore_rules.rule_files import IgnoreReader, RepositoryIndex
from objstore.disk.ignore_rules.scan_rules import ScanRules, rules_of_workspace
from objstore.model.ids import BlobId
from objstore.model.relpath import folders_above, joined
from objstore.model.tree import ExcludedEntry, TreeEntry, entry_at
from objstore.storage.index.queries.file_stat_queries import JournalPosition
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import CasError, DiskFailed, PermissionRefused
from objstore.worktree.mounts import note_mounts
from objstore.worktree.secret_files import note_left_out
from objstore.worktree.stat_cache import UNKNOWN, StatCache
from objstore.worktree.walk import Keep, ReadFile, ScanLimits, TreeWalk

__all__ = ["WorktreeScan", "discard_content"]


def discard_content(_: ReadFile) -> None:
    """Keep nothing of what a walk reads."""


class WorktreeScan:
    """One scan of a workspace, and the stat cache that it continues."""

    def __init__(self, journal: Journal, stat_cache: StatCache | None = None) -> None:
        """Load the stat cache, if none is given. What a walk finds is compared with the baseline that exists now."""
        self._journal: Final = journal
        self._folder: Final = os.path.join(journal.tree.root, STORE_NAME)
        with journal.reading() as store:
            self.baseline = store.index.holders.baseline()
        self.stat_cache: Final = self._loaded() if stat_cache is None else stat_cache
        self._rules: ScanRules | None = None  # None: nothing has been walked yet
        self._repositories: dict[bytes, RepositoryIndex | None] = {}
        self.apply_new_records()

    def walk(self, keep: Keep, limits: ScanLimits | None = None) -> TreeWalk:
        """Return a walk for the caller to run; it gives what it reads to `keep`.

        Raises SettingInvalid, SettingsUnreadable.
        """
        self._rules = self._rules_now()
        return TreeWalk(
            self._journal.tree,
            self.stat_cache,
            clock=self._clock(),
            keep=keep,
            progress=self._journal.progress,
            reader=IgnoreReader(self._journal.tree, self._rules, self._repositories),
            limits=limits,
            is_covered=self._was_covered,
        )

    def is_outdated(self) -> bool:
        """Return whether the settings leave out other names than when the last walk was made."""
        return self._rules is not None and self._rules.fingerprint != self._rules_now().fingerprint

    def apply_new_records(self) -> None:
        """Mark the files as unrecorded that records name which were written since their folders were fully recorded.

        A tool may have written a file, and then a person may have restored it: its stat signature can be unchanged.
        """
        with self._journal.reading() as store:
            index = store.index
            now, until = index.file_stats.position(), JournalPosition._make(self.stat_cache.until)
            # Record numbers are reused if a group was cut off because it could not be synced.
            if now.voided != until.voided or index.file_stats.recorded_at(until) != self.stat_cache.newest:
                self.stat_cache.mark_recorded(is_fully_recorded=False)
            elif now != until:
                for path in index.file_stats.paths_changed_since(until):
                    self.stat_cache.mark_unrecorded(path)
            self.stat_cache.until, self.stat_cache.newest = now, index.file_stats.recorded_at(now)

    def note_position(self) -> None:
        """Note that fully recorded folders are so up to the newest record. The caller holds the writer lock."""
        index = self._journal.store.index
        self.stat_cache.until = moment = index.file_stats.position()
        self.stat_cache.newest = index.file_stats.recorded_at(moment)

    def forget_blobs(self, blobs: set[BlobId]) -> None:
        """Make the next walk read the files with these blobs again: the store no longer has them."""
        for cached in self.stat_cache:
            found = [cached.blob(at) for at in range(len(cached.names))]
            if blobs.isdisjoint(found):
                continue
            cached.blobs = b"".join(UNKNOWN if blob in blobs else blob for blob in found)
            cached.needs_rescan = True
            for path in (cached.path, *folders_above(cached.path)):
                holder = self.stat_cache.get(path)
                if holder is not None:
                    holder.tree = b""

    def save(self) -> None:
        """Save the stat cache for the next scan. If that fails, the next scan reads more, and nothing else is lost."""
        # First, because the next scan compares with the cache that is saved here.
        if self.stat_cache.newly_left_out:
            from objstore.disk.witnesses.remarks import LEFT_OUT, add_remarks  # rules seldom change

            add_remarks(self._journal.tree.root, LEFT_OUT, self.stat_cache.newly_left_out)
            self.stat_cache.newly_left_out.clear()
        encoded = self.stat_cache.encoded(self._journal.store.log.store, self._number)
        with suppress(CasError, OSError):
            write_derived_file(self._journal.disk, self._folder, *os.path.split(STAT_CACHE_NAME), encoded)
            note_mounts(self._journal, self.stat_cache.devices())
            note_left_out(self._journal, self._rules or self._rules_now(), self.stat_cache.secrets())

    # ---- inside

    def _was_covered(self, folder: bytes, tag: bytes) -> bool:
        """Return whether a folder was scanned before a tag file appeared in it, by the journal and the baseline.

        The stat cache can be lost, so it does not decide this alone.
        """
        if self.baseline is None:
            return False
        with self._journal.reading() as store:
            if store.ever_at(joined(folder, tag)):
                return True  # an earlier scan recorded the tag file
            try:
                found = entry_at(self.baseline.root, folder, store.blob)
                if not isinstance(found, TreeEntry) or not found.is_folder:
                    return False
                # A tool may have named a file in a folder that is not scanned; the baseline then leaves out the rest.
                return not isinstance(entry_at(found.blob, tag, store.blob), ExcludedEntry)
            except CasError:
                return True  # scanning too much is safer than too little

    def _rules_now(self) -> ScanRules:
        return rules_of_workspace(self._journal.tree.root)

    @property
    def _scratch(self) -> str:
        return os.path.join(self._folder, "tmp")

    @property
    def _number(self) -> int:
        return 0 if self.baseline is None else self.baseline.number

    def _loaded(self) -> StatCache:
        return StatCache.loaded(self._folder, self._journal.store.log.store, self._number)

    def _clock(self) -> int:
        try:
            with open_store_folder(self._scratch) as scratch:
                return self._journal.disk.clock(scratch, self._scratch)
        except (OSError, PermissionRefused, DiskFailed):
            # The machine's own clock may be ahead of the file system's, and is finer.
            return time.time_ns() - 2_000_000_000
