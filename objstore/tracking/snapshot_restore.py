"""Plan the restore of a snapshot, and carry it out in a tracked call."""

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress

from objstore.errors import (
    FileChanged,
    NamesShared,
    PathError,
)
from objstore.fastclass import value
from objstore.file_changes.hardlinks import FileId, file_id
from objstore.file_changes.open_dirs import first_symlink_on
from objstore.fs.confined_path import Tree
from objstore.fs.file_state import stands_below
from objstore.fs.reserved_names import is_reserved
from objstore.history.revspec import linked_spelling
from objstore.history.snapshot_check import naming
from objstore.model.basic_types import FileState, Progress, ignore_progress
from objstore.model.ids import BlobId
from objstore.model.relpath import folders_of
from objstore.model.results import CallOutcome
from objstore.model.tree import ExcludedEntry, TreeChange, TreeEntry, tree_changes
from objstore.review.tracked_call import Call
from objstore.tracking.snapshot_diff import SnapshotChange, change_of, entries_at, entry_in, loader, now_in
from objstore.tracking.snapshot_list import PathState, SnapshotView, contains, find, prefix, state_of
from objstore.transaction.journal import Journal
from objstore.worktree.stat_cache import StatCache
from objstore.worktree.walk import ScanLimits, SkippedPath

__all__ = ["RestoreResult", "as_spelt", "carry_out", "plan_restore"]


@value
class RestoreResult:
    """What a restore did, or would do."""

    changes: tuple[SnapshotChange, ...]  # carried out: from what stood there to what the snapshot holds
    left: tuple[SnapshotChange, ...]  # that differ, and are no business of a restore: links, and what is not held
    above: tuple[SnapshotChange, ...]  # that nobody asked for, and for which files below were left: a link, a file
    lost: frozenset[str]  # paths of what was left of which the store has lost the bytes that the snapshot held
    outcome: CallOutcome | None  # None: a dry run, or nothing differs
    passed: tuple[SkippedPath, ...]  # what could not be compared


def plan_restore(
    journal: Journal, number: int, paths: Sequence[str] = (), *, limits: ScanLimits | None = None
) -> RestoreResult:
    """Return what bringing a snapshot back would do, of all of it or of what lies at or below `paths`.

    A part is brought back as it would be with the whole: what stands above it by now counts, asked for or not. Nothing
    is changed. Raises what `changes` raises, NotInSnapshot where nothing was or is at one of `paths`, and NamesShared.
    """
    view = find(journal, number)
    trees, passed, stat_cache = now_in(journal, view.path, limits)
    now_root, load = None if trees is None else trees.root, loader(journal, trees)
    done: list[SnapshotChange] = []
    lost: list[SnapshotChange] = []
    differing: list[str] = []
    above = _in_the_place_of(journal, view.path)
    with naming(journal.store, (number, view.root)):
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
                done.append(shown)
        clashing = _file_folder_collisions([*done, *left, *lost, *above])
        wanted = [change for change in done if change.path not in clashing]
        _require_links_agree(journal, view, wanted, differing, stat_cache)
    left += lost
    return RestoreResult(
        changes=tuple(wanted),
        left=(*left, *(change for change in done if change.path in clashing)),
        above=tuple(change for change in above if change.path in clashing),
        lost=frozenset(change.path for change in lost),
        outcome=None,
        passed=passed,
    )


def carry_out(plan: RestoreResult, call: Call, tree: Tree, progress: Progress = ignore_progress) -> CallOutcome:
    """Carry out a plan within a tracked call. Raises FileChanged where a file is not as it was when it was planned.

    So it does where a folder of its path has become a link since.
    """
    for done, change in enumerate(plan.changes):
        progress("changes", done, len(plan.changes))
        _check_unchanged(change, call, tree)
        if change.after is None:
            call.delete(change.path)
        elif change.after.blob is not None:
            call.restore(change.path, FileState(blob=change.after.blob, mode=change.after.mode))
    return call.commit()


def as_spelt(journal: Journal, spelling: str, numbers: Sequence[int]) -> str | None:
    """Return the path as it is spelt, where a link by now leads elsewhere and one of the snapshots has it as it was.

    So a folder that has become a link hides nothing of what snapshots hold in it. None: the link is all that is meant.
    Raises NoSuchName, SnapshotUnreadable and what paths raise.
    """
    spelt = linked_spelling(journal, spelling)
    is_held = spelt is not None and any(_held(journal, find(journal, number), spelt) for number in numbers)
    return spelt if is_held else None


def _held(journal: Journal, view: SnapshotView, path: str) -> bool:
    """Return whether a snapshot has a file or a folder at the path, or is of a folder there or below it."""
    if contains(path, view.path):
        return True
    if not contains(view.path, path):
        return False
    with naming(journal.store, (view.number, view.root)):
        found = entry_in(journal, view, path)
    return found is not None and (found.is_folder or found.is_file)


def _not_held(
    view: SnapshotView, now_root: BlobId | None, load: Callable[[BlobId], bytes], paths: Sequence[str]
) -> list[SnapshotChange]:
    """Return those of `paths` that are left out then and now. Raises NotInSnapshot."""
    left: list[SnapshotChange] = []
    for path in paths:
        if contains(path, view.path):
            continue
        before, after = entries_at(view, (now_root, view.root), load, path)
        if isinstance(before, ExcludedEntry) and isinstance(after, ExcludedEntry):
            left.append(SnapshotChange(path=path, before=state_of(before), after=state_of(after)))
    return left


def _may_change(change: TreeChange) -> bool:
    """Return whether a restore may carry the change out: both sides are regular files of the user's, or nothing."""
    if any(map(is_reserved, os.fsdecode(change.path).split("/"))):
        return False
    return all(side is None or (isinstance(side, TreeEntry) and side.is_file) for side in (change.before, change.after))


def _is_blocked(journal: Journal, change: TreeChange) -> bool:
    """Return whether a file would have to come where somebody else's folders stand, with no file in them.

    Trees don't hold such folders.
    """
    if change.before is not None or change.after is None:
        return False
    with suppress(OSError, PathError):
        if stat.S_ISDIR(os.lstat(change.path, dir_fd=journal.tree.fd).st_mode):
            with journal.tree.locate(os.fsdecode(change.path), as_spelt=False) as resolved:
                return not all(map(journal.store.index.folders.was_created_by_edit, stands_below(resolved)[1]))
    return False


def _in_the_place_of(journal: Journal, scope: str) -> list[SnapshotChange]:
    """Return what stands where a snapshot's folder was, or one above it, and is no folder: one change, or none.

    A look into that folder finds nothing there, and the snapshot's tree tells of none of these.
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
    """See that a file with several names is to be what the snapshot holds at each of them. Raises NamesShared.

    It is written in place, and what one of them gets shows in all, also where nothing was to change. `differing`: where
    something else stands than the snapshot holds; the look may have left it out.
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
    """Return what the system says of what stands at a path, no link followed (None: nothing does)."""
    try:
        return os.lstat(path, dir_fd=tree.fd)
    except OSError:
        return None


def _file_folder_collisions(found: Sequence[SnapshotChange]) -> set[str]:
    """Return the paths that can't be written because a file would have to give way to a folder, or the reverse."""
    paths = {change.path for change in found}
    clashing = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above:
            if above in paths:
                clashing |= {path, above}
            above = above.rpartition("/")[0]
    return clashing


def _check_unchanged(change: SnapshotChange, call: Call, tree: Tree) -> None:
    found, was = call.state(change.path), change.before
    link = first_symlink_on(tree, os.fsencode(change.path))  # after the call has found its way, which it keeps to
    is_other = (None if found is None else (found.blob, found.mode)) != (None if was is None else (was.blob, was.mode))
    if link or is_other:
        raise FileChanged(change.path, link)
