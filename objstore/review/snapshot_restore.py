"""Plan the restore of a snapshot, and carry it out in a tracked call."""

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress

from objstore.disk.file_changes.hardlinks import FileId, file_id
from objstore.disk.file_changes.open_dirs import first_symlink_on
from objstore.disk.fs.confined_path import Tree
from objstore.disk.fs.file_state import contents_below
from objstore.disk.fs.reserved_names import is_reserved
from objstore.history.revspec import literal_path_if_symlink
from objstore.history.snapshot_check import naming_snapshot
from objstore.history.snapshots.catalog import PathState, SnapshotView, contains, find, prefix, state_of
from objstore.history.snapshots.diff import SnapshotChange, change_of, entries_at, entry_in, loader, now_in
from objstore.model.basic_types import LINK_MODE, FileState, Progress, ignore_progress, settable_mode
from objstore.model.ids import BlobId
from objstore.model.relpath import folders_of
from objstore.model.results import CallOutcome
from objstore.model.tree import ExcludedEntry, TreeChange, TreeEntry, tree_changes
from objstore.review.calls.tracked_call import Call
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import (
    FileChanged,
    NamesShared,
    PathError,
)
from objstore.values.fastclass import replace, value
from objstore.worktree.stat_cache import StatCache
from objstore.worktree.walk import ScanLimits, SkippedPath

__all__ = ["RestoreResult", "carry_out", "held_literal_path", "plan_restore"]


@value
class RestoreResult:
    """The result of a restore, made or previewed."""

    changes: tuple[SnapshotChange, ...]  # restored paths: from the state on disk to the snapshot's
    left: tuple[SnapshotChange, ...]  # differences that a restore leaves: what the snapshot doesn't hold
    above: tuple[
        SnapshotChange, ...
    ]  # files or symlinks in the place of folders, outside `paths`, that block a restore
    lost: frozenset[str]  # those paths in `left` whose bytes the store has lost
    modes_lost: frozenset[str]  # files that don't get setuid or setgid back; in `left` if nothing else differs
    outcome: CallOutcome | None  # None: a dry run, or nothing differs
    skipped: tuple[SkippedPath, ...]  # what could not be compared


def plan_restore(
    journal: Journal, number: int, paths: Sequence[str] = (), *, limits: ScanLimits | None = None
) -> RestoreResult:
    """Return what restoring a snapshot would do, as a whole or only at or below `paths`; change nothing.

    A part is restored as it would be with the whole: a file that now blocks a folder above it counts too. Raises what
    `changes` raises, NotInSnapshot if one of `paths` is neither in the snapshot nor on disk, and NamesShared.
    """
    view = find(journal, number)
    trees, skipped, stat_cache = now_in(journal, view.path, limits)
    now_root, load = None if trees is None else trees.root, loader(journal, trees)
    restorable: list[SnapshotChange] = []
    lost: list[SnapshotChange] = []
    modes_lost: set[str] = set()
    differing: list[str] = []
    above = _blocking_file(journal, view.path)
    with naming_snapshot(journal.store, (number, view.root)):
        left = _not_held(view, now_root, load, paths)
        for change in tree_changes(now_root, view.root, load, prefix(view.path)):
            shown = change_of(change)
            differing += [] if change.after is None else [shown.path]
            if paths and not any(contains(path, shown.path) for path in paths):
                above += [shown] if any(contains(shown.path, path) for path in paths) else []
            elif not _may_change(change) or _is_blocked(journal, change):
                left.append(shown)
            elif isinstance(change.after, TreeEntry) and not journal.store.has(change.after.blob):
                lost.append(shown)
            else:
                got = _settable(shown)
                modes_lost |= {shown.path} if got != shown else set()
                (left if got.before == got.after else restorable).append(got)
        colliding = _file_folder_collisions([*restorable, *left, *lost, *above])
        wanted = [change for change in restorable if change.path not in colliding]
        _require_links_agree(journal, view, wanted, differing, stat_cache)
    left += lost
    return RestoreResult(
        changes=tuple(wanted),
        left=(*left, *(change for change in restorable if change.path in colliding)),
        above=tuple(change for change in above if change.path in colliding),
        lost=frozenset(change.path for change in lost),
        modes_lost=frozenset(modes_lost),
        outcome=None,
        skipped=skipped,
    )


def carry_out(
    plan: RestoreResult,
    call: Call,
    tree: Tree,
    progress: Progress = ignore_progress,
    commit: Callable[[Call], CallOutcome] = Call.commit,
) -> CallOutcome:
    """Carry out a plan within a tracked call, and commit the call with `commit`.

    Raises FileChanged if a file, or a folder of its path that has become a symlink, has changed since it was planned.
    """
    # A file that is to get another spelling of its name leaves the name first.
    changes = sorted(plan.changes, key=lambda change: change.after is not None)
    with call.looking_up():
        for done, change in enumerate(changes):
            progress("changes", done, len(changes))
            _check_unchanged(change, call, tree)
            if change.after is None:
                call.delete(change.path)
            elif change.after.blob is not None:
                call.restore(change.path, FileState(blob=change.after.blob, mode=_mode(change.after)))
    return commit(call)


def held_literal_path(journal: Journal, spelling: str, numbers: Sequence[int]) -> str | None:
    """Return a path without following symlinks, if it contains one and one of the snapshots holds the path itself.

    So a folder that has become a symlink hides nothing that snapshots hold in it. None: follow the symlink.
    Raises NoSuchName, SnapshotUnreadable and what paths raise.
    """
    literal = literal_path_if_symlink(journal, spelling)
    is_held = literal is not None and any(_held(journal, find(journal, number), literal) for number in numbers)
    return literal if is_held else None


def _held(journal: Journal, view: SnapshotView, path: str) -> bool:
    """Return whether a snapshot has a file or a folder at the path, or is a snapshot of it or of a folder below it."""
    if contains(path, view.path):
        return True
    if not contains(view.path, path):
        return False
    with naming_snapshot(journal.store, (view.number, view.root)):
        found = entry_in(journal, view, path)
    return found is not None and (found.is_folder or found.is_file)


def _not_held(
    view: SnapshotView, now_root: BlobId | None, load: Callable[[BlobId], bytes], paths: Sequence[str]
) -> list[SnapshotChange]:
    """Return those of `paths` that are left out both in the snapshot and on disk. Raises NotInSnapshot."""
    left: list[SnapshotChange] = []
    for path in paths:
        if contains(path, view.path):
            continue
        before, after = entries_at(view, (now_root, view.root), load, path)
        if isinstance(before, ExcludedEntry) and isinstance(after, ExcludedEntry):
            left.append(SnapshotChange(path=path, before=state_of(before), after=state_of(after)))
    return left


def _may_change(change: TreeChange) -> bool:
    """Return whether a restore may make the change: both sides are the user's files or links, or nothing."""
    if any(map(is_reserved, os.fsdecode(change.path).split("/"))):
        return False
    return all(side is None or isinstance(side, TreeEntry) for side in (change.before, change.after))


def _is_blocked(journal: Journal, change: TreeChange) -> bool:
    """Return whether empty folders that the store did not create are in the place of a file to restore.

    Trees don't hold empty folders.
    """
    if change.before is not None or change.after is None:
        return False
    with suppress(OSError, PathError):
        if stat.S_ISDIR(os.lstat(change.path, dir_fd=journal.tree.fd).st_mode):
            with journal.tree.locate(os.fsdecode(change.path), as_on_disk=False) as resolved:
                return not all(map(journal.store.index.folders.was_created_by_edit, contents_below(resolved)[1]))
    return False


def _blocking_file(journal: Journal, scope: str) -> list[SnapshotChange]:
    """Return the file or symlink that is now in the place of a snapshot's folder, or of one above it, if any.

    Neither a scan of that folder nor the snapshot's tree shows it.
    """
    for path in folders_of(prefix(scope)):
        with suppress(OSError):
            mode = os.lstat(path, dir_fd=journal.tree.fd).st_mode
            if not stat.S_ISDIR(mode):
                kind = "symlink" if stat.S_ISLNK(mode) else "file" if stat.S_ISREG(mode) else "left-out"
                found = PathState(kind=kind, mode=stat.S_IMODE(mode) if kind == "file" else 0, blob=None)
                return [SnapshotChange(path=os.fsdecode(path), before=found, after=None)]
    return []


def _require_links_agree(
    journal: Journal,
    view: SnapshotView,
    wanted: Sequence[SnapshotChange],
    differing: Sequence[str],
    stat_cache: StatCache,
) -> None:
    """Check that the snapshot has the same state for all hard links of each restored file. Raises NamesShared.

    Such a file is written in place, so all its names change, even those that the restore leaves. `differing`: the paths
    whose state on disk differs from the snapshot; the scan may have left them out.
    """
    shared: dict[FileId, SnapshotChange] = {}
    for change in wanted:
        found = None if change.before is None or change.after is None else _seen(journal.tree, change.path)
        if found is not None and found.st_nlink > 1:
            shared.setdefault(file_id(found), change)
    if not shared:
        return
    names = map(os.fsdecode, stat_cache.names_of({inode for _, inode in shared}))
    for path in dict.fromkeys([*names, *differing]):
        found = _seen(journal.tree, path)
        one = None if found is None else shared.get(file_id(found))
        held = None if one is None or not contains(view.path, path) else entry_in(journal, view, path)
        if one is not None and held is not None and held.is_file and state_of(held) != one.after:
            raise NamesShared(one.path, path)


def _seen(tree: Tree, path: str) -> os.stat_result | None:
    """Return the lstat result for a path (None: lstat fails)."""
    try:
        return os.lstat(path, dir_fd=tree.fd)
    except OSError:
        return None


def _file_folder_collisions(found: Sequence[SnapshotChange]) -> set[str]:
    """Return the paths that can't be restored because one is a file and another needs a folder of that name."""
    paths = {change.path for change in found}
    colliding = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above:
            if above in paths:
                colliding |= {path, above}
            above = above.rpartition("/")[0]
    return colliding


def _settable(change: SnapshotChange) -> SnapshotChange:
    """Return the change with a mode that its file can get."""
    before, after = change.before, change.after
    if after is None or after.kind != "file":
        return change
    is_same = before is not None and (before.kind, before.blob) == ("file", after.blob)  # other bytes are a new file
    mode = settable_mode(after.mode, before.mode if before is not None and is_same else 0)
    return change if mode == after.mode else replace(change, after=replace(after, mode=mode))


def _mode(state: PathState) -> int:
    return LINK_MODE if state.kind == "symlink" else state.mode


def _check_unchanged(change: SnapshotChange, call: Call, tree: Tree) -> None:
    found, was = call.state(change.path), change.before
    link = first_symlink_on(tree, os.fsencode(change.path))  # after `call.state` has resolved the path, which it keeps
    is_other = (None if found is None else (found.blob, found.mode)) != (
        None if was is None else (was.blob, _mode(was))
    )
    if link or is_other:
        raise FileChanged(change.path, link)
