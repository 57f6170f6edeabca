"""Compare a snapshot with a later one, or with the files on disk."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from objstore.history.completions import paths_near
from objstore.history.snapshot_check import naming_snapshot
from objstore.history.snapshots.catalog import PathState, SnapshotView, contains, find, prefix, state_of
from objstore.history.snapshots.create import are_held, refuse_part
from objstore.model.ids import BlobId
from objstore.model.tree import ExcludedEntry, TreeChange, TreeEntry, entry_at, tree_changes, tree_files
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import FileMissing
from objstore.values.fastclass import value
from objstore.values.request_errors import NotInSnapshot, SnapshotsNotComparable
from objstore.worktree.scan import WorktreeScan, discard_content
from objstore.worktree.stat_cache import StatCache
from objstore.worktree.tree_writer import TreeBuilder
from objstore.worktree.walk import ScanLimits, SkippedPath

__all__ = ["SnapshotChange", "change_of", "changes", "entries_at", "entry_in", "loader", "now_in"]

_MOST_NEAR: Final = 2
"""Similar paths that an error names for a mistyped one."""


@value
class SnapshotChange:
    """One path that differs between two snapshots, or between a snapshot and the disk."""

    path: str
    before: PathState | None  # None: nothing
    after: PathState | None


def changes(
    journal: Journal,
    number: int,
    other: int | None = None,
    *,
    paths: Sequence[str] = (),
    limits: ScanLimits | None = None,
) -> tuple[list[SnapshotChange], tuple[SkippedPath, ...]]:
    """Return the differences between a snapshot and a later one (None: the files on disk), and the skipped paths.

    The comparison covers everything that both cover, or what is at or below `paths`. Raises NoSuchName, FileMissing,
    SnapshotIncomplete, SnapshotUnreadable, SnapshotsNotComparable, and NotInSnapshot if one of `paths` is in neither.
    """

    def shown(found: Iterator[TreeChange], inner: SnapshotView, *roots: BlobId | None) -> list[SnapshotChange]:
        for path in paths:
            entries_at(inner, roots, load, path)
        return [
            change
            for change in map(change_of, found)
            if not paths or any(contains(path, change.path) for path in paths)
        ]

    view = find(journal, number)
    if other is not None:
        after = find(journal, other)
        inner = view if contains(after.path, view.path) else after  # the smaller of the two folders
        load: Callable[[BlobId], bytes] = journal.store.blob
        with naming_snapshot(journal.store, (number, view.root), (other, after.root)):
            roots = (_subtree(journal, view, after, inner.path), _subtree(journal, after, view, inner.path))
            return shown(tree_changes(*roots, load, prefix(inner.path)), inner, *roots), ()
    trees, skipped, _ = now_in(journal, view.path, limits)
    load = loader(journal, trees)
    root = None if trees is None else trees.root
    with naming_snapshot(journal.store, (number, view.root)):
        return shown(tree_changes(view.root, root, load, prefix(view.path)), view, view.root, root), skipped


def now_in(
    journal: Journal, scope: str, limits: ScanLimits | None
) -> tuple[TreeBuilder | None, tuple[SkippedPath, ...], StatCache]:
    """Scan a folder, without storing anything.

    Returns its trees (None: there is no such folder), the paths that were skipped, and the stat cache of the scan.
    """
    path = os.fsencode(scope)
    scan = WorktreeScan(journal)
    walk = scan.walk(discard_content, limits)
    try:
        walk.run(path)
    except FileMissing:
        return None, (), scan.stat_cache
    refuse_part(walk)
    trees = TreeBuilder(walk, path)
    if not are_held(journal, trees.kept):
        scan.stat_cache.forget_trees()
        trees = TreeBuilder(walk, path)
    return trees, tuple(walk.skipped), scan.stat_cache


def loader(journal: Journal, trees: TreeBuilder | None) -> Callable[[BlobId], bytes]:
    """Return a function that loads a tree, from `trees`, which are not stored, or from the store."""
    new = {} if trees is None else trees.new

    def load(name: BlobId) -> bytes:
        found = new.get(name)
        return journal.store.blob(name) if found is None else found

    return load


def change_of(change: TreeChange) -> SnapshotChange:
    """Return the view of a difference between trees."""
    return SnapshotChange(
        path=os.fsdecode(change.path),
        before=None if change.before is None else state_of(change.before),
        after=None if change.after is None else state_of(change.after),
    )


def entry_in(journal: Journal, view: SnapshotView, path: str) -> TreeEntry | None:
    """Return a snapshot's entry for a path in its folder (None: it holds nothing there)."""
    found = entry_at(view.root, os.fsencode(_inside(path, view.path)), journal.store.blob)
    return found if isinstance(found, TreeEntry) else None


def entries_at(
    view: SnapshotView, roots: Sequence[BlobId | None], load: Callable[[BlobId], bytes], path: str
) -> list[TreeEntry | ExcludedEntry | None]:
    """Return the entry at a path in each of the trees of a snapshot's folder (None for the folder itself and above it).

    Raises NotInSnapshot if the path is any other one and no tree has an entry for it.
    """
    inside = os.fsencode(_inside(path, view.path)) if contains(view.path, path) else b""
    found = [entry_at(root, inside, load) if inside else None for root in roots]
    if not contains(path, view.path) and all(entry is None for entry in found):
        files = [os.fsdecode(file) for file, _ in tree_files(view.root, load, prefix(view.path))]
        folders = dict.fromkeys(file.rpartition("/")[0] for file in files if "/" in file)
        near = paths_near(files, path, _MOST_NEAR) or paths_near(folders, path, _MOST_NEAR)
        raise NotInSnapshot(path, view.number, near)
    return found


def _subtree(journal: Journal, view: SnapshotView, other: SnapshotView, scope: str) -> BlobId | None:
    """Return the tree of the folder `scope` in the snapshot `view` (None: it has no such folder).

    `scope` is the folder of `view` or of `other`. Raises SnapshotsNotComparable if `view` does not cover it.
    """
    if scope == view.path:
        return view.root
    covers = contains(view.path, scope)
    found = entry_at(view.root, os.fsencode(_inside(scope, view.path)), journal.store.blob) if covers else None
    if not covers or isinstance(found, ExcludedEntry):
        raise SnapshotsNotComparable(view.number, view.path, other.number, other.path)
    return found.blob if isinstance(found, TreeEntry) and found.is_folder else None


def _inside(path: str, scope: str) -> str:
    return path[len(scope) :].strip("/")
