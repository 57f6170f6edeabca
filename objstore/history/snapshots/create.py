"""Take a snapshot of a folder.

Folders that have not changed since the last scan keep their trees, so the next snapshot costs one lstat for each file.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from objstore.disk.fs.confined_path import look_at
from objstore.disk.fs.file_state import linked
from objstore.disk.fs.writer_lock import GAP_SECONDS
from objstore.history.snapshots.catalog import SnapshotView, newest, view_of
from objstore.model.ids import BlobId
from objstore.model.records import Decision, Edit, Snapshot
from objstore.storage.index.rows import Baseline
from objstore.storage.store.write_batch import Batch, now
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import PathInvalid
from objstore.values.fastclass import value
from objstore.values.request_errors import SnapshotIncomplete
from objstore.worktree.scan import WorktreeScan
from objstore.worktree.stat_cache import StatCache
from objstore.worktree.tree_writer import ContentWriter, TreeBuilder
from objstore.worktree.walk import ScanLimits, SkippedPath, TreeWalk

__all__ = ["ConcurrentWrites", "SnapshotResult", "are_held", "create", "refuse_part"]

_TRIES: Final = 3
"""Rescans without the lock before one with it; and attempts, if garbage collection removes blobs meanwhile."""

_CHECKS: Final = 50
"""Checks for unfinished writes before the lock is taken: a writer that never pauses seldom leaves none."""


@value
class SnapshotResult:
    """A snapshot that was just taken."""

    view: SnapshotView
    files: int  # files and symlinks in it
    skipped: tuple[SkippedPath, ...]  # what is not in it because it could not be scanned
    is_same: bool  # whether the previous snapshot of the same folder has the same tree


def create(
    journal: Journal, scope: str, *, title: str, who: str, limits: ScanLimits | None = None
) -> tuple[SnapshotResult, WorktreeScan]:
    """Take a snapshot of the folder `scope` ("": the workspace); return it, and the scan that it took.

    Raises what paths raise, SnapshotIncomplete if a limit was reached, and what Journal.commit raises.
    """
    with journal.tree.locate(scope or os.curdir) as resolved:
        scope = "" if resolved.path == os.curdir else resolved.path
        found = look_at(resolved)
        if found is not None and not stat.S_ISDIR(found.st_mode):
            raise PathInvalid(scope, "not a directory; a snapshot is of a folder")
    path = os.fsencode(scope)
    concurrent = ConcurrentWrites(journal)
    scan = WorktreeScan(journal)
    for _ in range(_TRIES):
        pieces = ContentWriter(journal)
        walk = scan.walk(pieces.keep, limits)
        walk.run(path)
        with _with_whole_calls(journal, walk, pieces, concurrent, path) as (batch, trees_now):
            if scan.is_outdated():
                continue  # a purge may just have removed what this walk has read
            trees = trees_now
            lost = _lost(journal, trees)
            if lost is None:
                scan.stat_cache.forget_trees()
                trees = TreeBuilder(walk, path)
                lost = _lost(journal, trees)
            if lost:
                # Garbage collection has removed them since the last scan.
                scan.forget_blobs(lost)
                continue
            for encoded in trees.new.values():
                batch.blob(encoded)
            snapshot = Snapshot(
                number=journal.store.index.numbers.next_snapshot(),
                time=now(),
                root=trees.root,
                path=path or None,
                who=who,
                title=title,
            )
            before = newest(journal, scope)
            name = batch.record(snapshot)
            journal.commit(batch, ())
        if not who:
            scan.baseline = Baseline(snapshot.number, snapshot.root)
        if walk.has_changes or trees.new or not who:
            scan.save()
        taken = SnapshotResult(
            view=view_of(snapshot, name),
            files=walk.files,
            skipped=tuple(dict.fromkeys(walk.skipped)),
            is_same=before is not None and before.root == snapshot.root,
        )
        return taken, scan
    raise SnapshotIncomplete("garbage collection removed some of its content in the meantime; try again")


def refuse_part(walk: TreeWalk) -> None:
    """Raise SnapshotIncomplete if a walk has reached a limit."""
    if not walk.is_whole:
        raise SnapshotIncomplete(walk.skipped[-1].reason)


def are_held(journal: Journal, trees: Iterable[BlobId]) -> bool:
    """Return whether something holds each of the trees, and so everything in them.

    Otherwise their last snapshot was deleted, and garbage collection may have removed parts of them.
    """
    return all(journal.store.index.blobs.refs(tree) for tree in trees)


@contextmanager
def _with_whole_calls(
    journal: Journal, walk: TreeWalk, pieces: ContentWriter, concurrent: "ConcurrentWrites", scope: bytes
) -> Iterator[tuple[Batch, TreeBuilder]]:
    """Hold the writer lock when the walk contains each call whole or not at all; yield a batch and the walk's trees.

    Files that records name which were written since the walk began are scanned again. If that may take long, it happens
    without the lock, so that no writer waits; if new records appear each time, the last round holds the lock. Raises
    SnapshotIncomplete, and what TreeWalk.run, ContentWriter and Journal.writing raise.
    """
    trees: TreeBuilder | None = None
    for left in reversed(range(_TRIES)):
        refuse_part(walk)
        pieces.flush()
        trees = TreeBuilder(walk, scope, trees)
        with journal.writing() as batch:
            paths = concurrent.paths(walk.stat_cache)
            may_hold = not left or walk.is_quick_rescan(paths)
            if paths and may_hold:
                pieces.use_callers_lock()
                walk.rescan(paths)
                refuse_part(walk)
                pieces.flush()
                trees = TreeBuilder(walk, scope, trees)
            if may_hold:
                yield batch, trees
                return
        walk.rescan(paths)


def _lost(journal: Journal, trees: TreeBuilder) -> set[BlobId] | None:
    """Return the file blobs in new trees that the store lacks; None: a reused tree may be lost."""
    if not are_held(journal, trees.kept):
        return None
    return journal.store.lacking(trees.files)


class ConcurrentWrites:
    """The records that are written from now on, at a moment when the files match all records before.

    A call is durable in the log before the first of its files changes, and the applied marker says when the last one
    has changed. So a scan without the writer lock that begins when every file matches the log sees each call whole or
    not at all, except for the calls that are recorded after that moment.
    """

    def __init__(self, journal: Journal) -> None:
        """Wait until every running writer has finished; roll forward what a crashed writer left.

        Raises what Journal.writing raises.
        """
        self._journal: Final = journal
        for _ in range(_CHECKS):
            with journal.reading() as store:
                if not journal.unfinished():
                    self._until = store.index.file_stats.position()
                    return
            time.sleep(GAP_SECONDS)
        with journal.writing():
            self._until = journal.store.index.file_stats.position()

    def paths(self, stat_cache: StatCache) -> set[bytes]:
        """Return the old and new paths of all files that records since the last call of this method name.

        The first call counts from the beginning. A file with several hard links changes under each of its names, so
        the names that `stat_cache` has for it are included. The caller holds the writer lock.
        """
        store = self._journal.store
        since, self._until = self._until, store.index.file_stats.position()
        paths: set[bytes | None] = set()
        for place in [] if since == self._until else store.index.file_stats.recorded_since(since):
            record, _ = store.record(place)
            if isinstance(record, Edit):
                paths |= {record.path, record.source}
            elif isinstance(record, Decision):
                paths.update(path for file in record.changed_files for path in (file.path_before, file.path_after))
        found = {path for path in paths if path is not None}
        inodes = linked(self._journal.tree, found)
        return found.union(stat_cache.names_of(inodes)) if inodes else found
