"""Find the files without an edit that differ from the baseline, and record nothing: for a status.

A status compares every file that has edits with its last record. This compares the others, with the stat cache of the
last scan, as a scan would, but takes no lock and saves nothing: a scan that records needs to see what is new since the
last one that did.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.reserved_names import STORE_NAME
from objstore.values.fastclass import value
from objstore.worktree.changed_dirs import changed_folders

# Most statuses find no difference, and don't wait for these to load.
if TYPE_CHECKING:
    from collections.abc import Iterator

    from objstore.model.results import ExternalChange
    from objstore.storage.transaction.journal import Journal
    from objstore.worktree.changed_dirs import SharedLooks
    from objstore.worktree.scan import WorktreeScan
    from objstore.worktree.stat_cache import StatCache
    from objstore.worktree.walk import ScanLimits, SkippedPath

__all__ = ["UnrecordedFiles", "unrecorded_files"]

_BYTES: Final = 1 << 28
_SECONDS: Final = 2
"""What a status may read: a person waits for it. A scan that records has wider limits."""


@value
class UnrecordedFiles:
    """What differs from the baseline without being recorded, and whether all files were compared."""

    changes: tuple[ExternalChange, ...] = ()  # by path
    newly_left_out: tuple[str, ...] = ()  # paths that the last scan covered, and a rule leaves out now
    skipped: tuple[SkippedPath, ...] = ()  # what could not be read
    compared: int | None = None  # how many files were compared, if a limit was reached; None: all of them


def unrecorded_files(
    journal: Journal, limits: ScanLimits | None = None, shared: SharedLooks | None = None
) -> UnrecordedFiles:
    """Return the files that differ from the baseline and have no edit; none if there is no baseline.

    `shared`: what a comparison of the files with edits saw just before.
    Raises what the baseline's trees and the settings raise.
    """
    with journal.reading() as store:
        baseline = store.baseline()
        if baseline is None:
            return UnrecordedFiles()
        from objstore.worktree.stat_cache import StatCache

        folder = os.path.join(journal.tree.root, STORE_NAME)
        stat_cache = StatCache.loaded(folder, journal.store.log.store, baseline.number)
        suspects = _suspects(journal, stat_cache, shared)
        if suspects is None:
            return UnrecordedFiles()
        from objstore.worktree.scan import WorktreeScan, discard_content
        from objstore.worktree.walk import OTHER_KIND, ScanLimits

        scan = WorktreeScan(journal, stat_cache)
        walk = scan.walk(discard_content, limits or ScanLimits(bytes=_BYTES, seconds=_SECONDS))
        walk.run(suspects=suspects)
        changes = tuple(sorted(_changes(journal, scan), key=lambda change: change.path))
        left_out = tuple(map(os.fsdecode, scan.stat_cache.newly_left_out))
        compared = None if walk.is_whole else walk.files
        # A pipe or a socket has nothing to read; reaching a limit is what `compared` says.
        skipped = tuple(dict.fromkeys(each for each in walk.skipped if each.path and each.reason != OTHER_KIND))
        return UnrecordedFiles(changes=changes, newly_left_out=left_out, skipped=skipped, compared=compared)


def _suspects(journal: Journal, stat_cache: StatCache, shared: SharedLooks | None) -> list[bytes] | None:
    """Return the folders to list. None: the last scan recorded everything, and no folder or file has changed since."""
    signatures, to_list = stat_cache.folder_signatures(b"")
    due = to_list + changed_folders(journal.tree.fd, signatures, shared=shared)
    due += [row.path for row in stat_cache.not_fully_recorded(b"")]
    return due if due or not signatures else None


def _changes(journal: Journal, scan: WorktreeScan) -> Iterator[ExternalChange]:
    """Yield the differences in the folders that are not fully recorded. Files with edits are compared elsewhere."""
    from objstore.agents.differences import folder_differences
    from objstore.disk.fs.file_state import taken_by
    from objstore.model.basic_types import is_other_kind
    from objstore.worktree.baseline import KnownStates
    from objstore.worktree.mounts import absent_folders, is_absent

    known = KnownStates(journal)
    absent = absent_folders(journal)
    for row in scan.stat_cache.not_fully_recorded(b""):
        for found in folder_differences(journal, scan, row, known):
            if found.document is None and not found.is_unseen and not is_absent(found.path, absent):
                from objstore.model.results import ExternalChange

                is_gone = found.now is None or is_other_kind(found.known, found.now)
                yield ExternalChange(
                    document=None,
                    path=os.fsdecode(found.path),
                    recorded=None if found.known is None else found.known.blob,
                    recorded_mode=0 if found.known is None else found.known.mode,
                    found=None if found.now is None else found.now.blob,
                    found_mode=0 if found.now is None else found.now.mode,
                    taken_by=taken_by(journal.tree, found.path) if is_gone else "",
                )
