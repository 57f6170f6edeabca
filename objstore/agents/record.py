"""Record what happened to files without a tool's report: each file that is not in its known state becomes an edit.

A file's known state is the tip of its document, or its entry in the baseline if it has no document. The first scan
takes the baseline and records no edits for files that have no document; every later scan misses nothing. A scan before
a command and one after it show what the command did.

If a tree of the baseline is lost, as may happen in a salvage, the scan that finds this takes a new baseline: otherwise
nothing could be recorded any more.

Most scans find nothing. They take no lock, and import what recording needs only if there is something to record.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.confined_path import look_at
from objstore.disk.fs.disk import reaching
from objstore.disk.fs.file_state import file_at
from objstore.model.relpath import folders_above, is_within
from objstore.values.errors import BlobMissing, PathError, TreeInvalid
from objstore.values.fastclass import replace, value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from objstore.agents.detect import ExplainsChanges
    from objstore.history.snapshots.catalog import SnapshotView
    from objstore.history.snapshots.create import SnapshotResult
    from objstore.model.basic_types import DocumentId
    from objstore.model.ids import BlobId
    from objstore.model.results import Attributor, CallInfo
    from objstore.model.views import EditView
    from objstore.storage.transaction.journal import Journal
    from objstore.worktree.git_positions import Movement
    from objstore.worktree.scan import WorktreeScan
    from objstore.worktree.walk import ScanLimits, SkippedPath

__all__ = ["Recorded", "record_changes", "recording_git", "renew_baseline", "returned_files"]

_TRIES: Final = 3
"""Rounds of storing large files and then scanning again: they may change in the meantime."""


@value
class Recorded:
    """The result of a scan: what it found and recorded."""

    conversation: str  # "": nothing was recorded
    edits: tuple[EditView, ...]
    baseline: SnapshotView | None  # the baseline that this scan took; None: there was a readable one
    files: int  # files and symlinks that were scanned
    skipped: tuple[SkippedPath, ...]  # what could not be scanned


def record_changes(
    journal: Journal,
    info: CallInfo | Attributor,
    paths: Sequence[str] | None = None,
    *,
    are_canonical: bool = False,
    excluding: Collection[str] = (),
    limits: ScanLimits | None = None,
) -> Recorded:
    """Record every file that is not in its known state as an edit of one call, and return what was found.

    `info` attributes the changes: to an agent's or a person's call, or (origin external) to no one, as before a
    command; a function attributes each change separately. `paths`: only these files, and the files below these
    folders; for a file, the tree is not walked. `are_canonical`: `paths` are recorded paths of files, and symlinks on
    the way are not followed. `excluding`: files, relative to the workspace, that another scan will record. Raises
    SnapshotIncomplete (at the first scan), what Journal.commit raises, and what paths raise.
    """

    def found() -> Recorded:
        return _recorded(journal, info, paths, are_canonical=are_canonical, excluding=excluding, limits=limits)

    try:
        return found()
    except (BlobMissing, TreeInvalid):
        with journal.reading() as store:
            lost = store.baseline()
        kept = None if lost is None else _readable_baseline(journal, lost.root, limits)
        if lost is None or kept is None:
            raise
    return found() if kept.number == lost.number else replace(found(), baseline=kept)


def _recorded(
    journal: Journal,
    info: CallInfo | Attributor,
    paths: Sequence[str] | None,
    *,
    are_canonical: bool,
    excluding: Collection[str],
    limits: ScanLimits | None,
) -> Recorded:
    """Do what `record_changes` does, if the baseline is readable or missing. Raises BlobMissing, TreeInvalid."""
    scopes, files = ([], list(map(os.fsencode, paths or ()))) if are_canonical else _scopes_and_files(journal, paths)
    named = len(files)
    with journal.reading() as store:
        is_first = store.baseline() is None
        changed = [path for path in files if is_first or not _is_as_recorded(journal, path)]
        changed += [scope for scope in scopes if scope and _is_known(journal, scope)]  # the folder was a file
    taken = None
    if is_first:
        taken = _take_baseline(journal, limits)
    scan, found = _scanned(journal, info, scopes, changed, limits, excluding={os.fsencode(path) for path in excluding})
    conversation, edits, skipped = found
    scanned = 0 if scan is None else sum(scan.stat_cache.files(scope) for scope in scopes)
    return Recorded(
        conversation=conversation,
        edits=tuple(edits),
        baseline=None if taken is None else taken.view,
        files=scanned + named,
        skipped=tuple(skipped),
    )


def _scanned(
    journal: Journal,
    info: CallInfo | Attributor | ExplainsChanges,
    scopes: Sequence[bytes],
    changed: Sequence[bytes],
    limits: ScanLimits | None,
    *,
    excluding: Collection[bytes] = (),
) -> tuple[WorktreeScan | None, tuple[str, list[EditView], list[SkippedPath]]]:
    """Scan the scopes, and record the files there and in `changed` that differ; return the scan and what was recorded.

    `info`: as for `record_differences`. Large files are stored before the lock is taken, a few times; then under it.
    """
    scan, suspects = _find_suspects(journal, scopes, limits)
    tries = _TRIES
    while changed or suspects:
        from objstore.agents.detect import NewRepositories, UnstoredLargeFiles, record_differences

        found = record_differences(
            journal,
            info,
            scan,
            suspects,
            changed,
            limits,
            excluding=excluding,
            store_large=tries <= 1,
        )
        if isinstance(found, NewRepositories):
            _record_repositories(journal, found.found, info, limits)
        elif isinstance(found, UnstoredLargeFiles):
            from objstore.storage.transaction.prestore import prestore_large_files

            tries -= 1
            prestore_large_files(journal, found.paths)
        else:
            return scan, found
        scan, suspects = _find_suspects(journal, scopes, limits)
    return scan, ("", [], [])


def _record_repositories(
    journal: Journal,
    found: Sequence[tuple[bytes, Movement]],
    whose: CallInfo | Attributor | ExplainsChanges,
    limits: ScanLimits | None,
) -> None:
    """Record the files that git put into repositories which were not there before: one event for each."""
    from objstore.agents.git_changes import GitChanges
    from objstore.model.results import CallInfo

    if isinstance(whose, CallInfo) or callable(whose):
        for folder, movement in found:
            _scanned(journal, GitChanges(journal, movement, whose), [folder], [], limits)


@contextmanager
def recording_git(journal: Journal, whose: CallInfo | Attributor, limits: ScanLimits | None = None) -> Iterator[None]:
    """Record what git did since the last look: changes of files before the block, and what its commits decide after.

    `whose`: says whose call ran git. In the block, all other changes are recorded. Where no repository moved, this
    reads a few small files. Raises what `record_changes` raises.
    """
    from objstore.worktree.git_positions import GitPositions

    positions = GitPositions(journal)
    movements = positions.movements()
    with journal.reading() as store:
        is_first = store.baseline() is None
    if movements and not is_first:
        from objstore.agents.git_changes import GitChanges, record_dropped_stash
        from objstore.disk.git.repository import is_sparse

        for movement in movements:
            if movement.is_of_other_refs:
                continue
            # Whatever only wrote the index can at most have put files back, so no walk of the tree is needed.
            is_small = (
                movement.is_of_index and not movement.old.is_staged_by_agent and not is_sparse(movement.repository)
            )
            changed = _changed_files(journal) if is_small else []
            scopes = [] if is_small else [b""]
            _scanned(journal, GitChanges(journal, movement, whose), scopes, changed, limits)
            record_dropped_stash(journal, movement, whose)
    for folder, movement in () if is_first else positions.removed():
        from objstore.agents.git_changes import RemovedWorktree

        # The innermost folder that is left finds the files that went with it.
        scope = next(above for above in folders_above(folder) if _is_folder(journal, above))
        _scanned(journal, RemovedWorktree(journal, folder, movement, whose), [scope], [], limits)
    _record_returned(journal, whose, limits)
    yield
    if movements and not is_first:
        from objstore.agents.git_commits import is_staged_by_agent, record_commits

        for movement in movements:
            record_commits(journal, movement, whose)
            if is_staged_by_agent(movement, whose):
                positions.note_staged(movement)
    positions.save()


def _is_folder(journal: Journal, path: bytes) -> bool:
    return os.path.isdir(os.path.join(os.fsencode(journal.tree.root), path))


def _record_returned(journal: Journal, whose: CallInfo | Attributor, limits: ScanLimits | None) -> None:
    """Record which files were given bytes back that git had taken away, in whatever way: their edits are back too."""
    changed = returned_files(journal)
    if changed:
        from objstore.agents.returned_lines import ReturnedLines

        _scanned(journal, ReturnedLines(journal, whose), [], changed, limits)


def returned_files(journal: Journal) -> list[bytes]:
    """Return the paths of the files with edits that are away, if they differ, or may differ, from their records."""
    with journal.reading() as store:
        documents = store.index.edits.documents_away()
    return _changed_files(journal, documents) if documents else []


def _changed_files(journal: Journal, documents: Collection[DocumentId] | None = None) -> list[bytes]:
    """Return the paths of the files with edits that differ, or may differ, from their records.

    `documents`: only of these (None: of all).
    """
    from objstore.worktree.dirty_files import changed_tips

    with journal.reading():
        tips = changed_tips(journal)
        return [tip.path for tip in tips if documents is None or tip.document in documents]


def renew_baseline(journal: Journal) -> None:
    """Take a new baseline, then record what changed against the old one, which can then be deleted.

    The order matters: a change in between is in the new baseline, or is recorded. If the old baseline can't be read,
    nothing can be compared with it. Raises what `record_changes` raises.
    """
    from objstore.history.snapshot_check import is_tree_readable

    _take_baseline(journal, None)
    with journal.reading() as store:
        old = store.baseline()
        is_known = old is not None and is_tree_readable(store, old.root)
    if is_known:
        record_changes(journal, journal.evidence.attributor())


def _readable_baseline(journal: Journal, lost: BlobId, limits: ScanLimits | None) -> SnapshotView | None:
    """Take a new baseline if the old one can't be read; return the one that stays (None: the old one is readable).

    An unchanged folder has the same tree as before. Taking the new baseline may therefore have stored the lost tree
    again; then the old baseline stays and the new one expires, else the reverse. Raises what the first scan raises.
    """
    from objstore.history.snapshot_check import is_tree_readable
    from objstore.history.snapshots.catalog import listed
    from objstore.model.records import Expiry
    from objstore.storage.store.write_batch import now

    with journal.reading() as store:
        if is_tree_readable(store, lost):
            return None
    _take_baseline(journal, limits)
    with journal.writing() as batch:
        baselines = [view for view in listed(journal) if not view.who and not view.path]
        kept = next((view for view in baselines if is_tree_readable(journal.store, view.root)), None)
        gone = tuple(view.number for view in baselines if view != (kept or baselines[0]))
        if gone:
            reason = "baseline lost" if kept is not None and gone[0] < kept.number else "baseline not needed"
            batch.record(Expiry(time=now(), snapshots=gone, reason=reason, who=""))
            journal.commit(batch, ())
    return kept


def _is_as_recorded(journal: Journal, path: bytes) -> bool:
    """Return whether the file at a path is in the last recorded state of its document."""
    tip = journal.store.tip_at(path)
    try:
        with reaching(os.fsdecode(path)):
            found = file_at(journal.tree, path)
    except PathError:
        return False  # it is changing at this moment, or may not be read
    return tip is not None and tip.state == (None if found is None else found[0])


def _is_known(journal: Journal, path: bytes) -> bool:
    """Return whether the known state of a path is a file."""
    tip = journal.store.tip_at(path)
    if tip is not None:
        return tip.state is not None
    from objstore.model.basic_types import FileState
    from objstore.worktree.baseline import known_state_of

    return isinstance(known_state_of(journal, path), FileState)


def _find_suspects(
    journal: Journal, scopes: Sequence[bytes], limits: ScanLimits | None
) -> tuple[WorktreeScan | None, dict[bytes, list[bytes]]]:
    """Return a scan, and for each scope the folders that must be listed (empty: nothing has changed).

    This takes most of the time, and needs no lock: the next scan finds what changes after it.
    """
    if not scopes:
        return None, {}
    from objstore.worktree.scan import WorktreeScan, discard_content

    scan = WorktreeScan(journal)
    walk = scan.walk(discard_content, limits)
    suspects = {scope: walk.suspects(scope) for scope in scopes}
    if all(walk.is_unchanged(scope, suspects[scope]) for scope in scopes):
        return scan, {}
    return scan, suspects


def _take_baseline(journal: Journal, limits: ScanLimits | None) -> SnapshotResult:
    """Take the baseline: from now on, the current state of every file is its known state."""
    from objstore.history.snapshots.create import create

    taken, scan = create(journal, "", title="baseline", who="", limits=limits)
    # Files with documents are still compared with the journal.
    with journal.reading() as store:
        recorded = {path.rpartition(b"/")[0] for path in store.paths_below(b"")}
    scan.stat_cache.mark_recorded(is_fully_recorded=True)
    for folder in recorded:
        # If a folder is gone, the innermost existing folder above it finds the files that went with it.
        around = map(scan.stat_cache.get, (folder, *folders_above(folder)))
        known = next((row for row in around if row is not None), None)
        if known is not None:
            known.is_fully_recorded = False
    scan.save()
    from objstore.worktree.git_positions import watch_repositories

    watch_repositories(journal, [row.path for row in scan.stat_cache])
    return taken


def _scopes_and_files(journal: Journal, paths: Sequence[str] | None) -> tuple[list[bytes], list[bytes]]:
    """Return the folders and the files that `paths` name (None: the whole workspace), relative to the workspace."""
    if paths is None:
        return [b""], []
    scopes: set[bytes] = set()
    files: set[bytes] = set()
    for path in paths:
        name, is_folder = _place(journal, path)
        (scopes if is_folder else files).add(name)
    outer = [scope for scope in scopes if not any(_is_inside(scope, other) for other in scopes)]
    return sorted(outer), sorted(path for path in files if not any(_is_inside(path, scope) for scope in outer))


def _place(journal: Journal, path: str) -> tuple[bytes, bool]:
    """Return a path relative to the workspace, after symlinks, and whether it is a folder."""
    # A path below a file is allowed: that file may have replaced a folder.
    with journal.tree.locate(path, changing=True, will_be_vacated=lambda _: True) as resolved:
        found = look_at(resolved)
        is_folder = found is not None and stat.S_ISDIR(found.st_mode)
        return b"" if resolved.path == "." else os.fsencode(resolved.path), is_folder


def _is_inside(path: bytes, folder: bytes) -> bool:
    return path != folder and is_within(path, folder)
