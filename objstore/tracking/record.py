"""Recording what happened to files while nobody watched: each one that is not in its known state becomes an edit.

A file's known state is the tip of its document; of a file that has none, what the baseline holds of it, a snapshot that
the first look takes. So the first look tells nothing of files that were never recorded, and from then on nothing is
missed. A look before a command and one after it tell what the command did.

Where a tree of the baseline is lost, as a salvage may leave it, the look that meets this is a first look again: else
nothing could be told any more.

Most looks find nothing. They take no lock, and what only the others need is imported when there is something to tell.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from objstore.errors import BlobMissing, PathError, TreeInvalid
from objstore.fastclass import replace, value
from objstore.fs.confined_path import look_at
from objstore.fs.disk import reaching
from objstore.fs.file_state import file_at
from objstore.model.relpath import folders_above, is_within

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from objstore.model.ids import BlobId
    from objstore.model.results import CallInfo, Whose
    from objstore.model.views import EditView
    from objstore.tracking.snapshot_create import SnapshotResult
    from objstore.tracking.snapshot_list import SnapshotView
    from objstore.transaction.journal import Journal
    from objstore.worktree.scan import WorktreeScan
    from objstore.worktree.walk import ScanLimits, SkippedPath

__all__ = ["Recorded", "record_changes", "renew_baseline"]

_TRIES: Final = 3
"""Times that large files are first taken in, and then looked for again; they may change meanwhile."""


@value
class Recorded:
    """What a look found, and recorded."""

    conversation: str  # "": nothing was recorded
    edits: tuple[EditView, ...]
    baseline: SnapshotView | None  # the one that this look took, as a first; None: there was one that can be read
    files: int  # files and links that were looked at
    passed: tuple[SkippedPath, ...]  # what could not be looked at


def record_changes(
    journal: Journal,
    info: CallInfo | Whose,
    paths: Sequence[str] | None = None,
    *,
    are_canonical: bool = False,
    excluding: Collection[str] = (),
    ignored: bool = False,
    limits: ScanLimits | None = None,
) -> Recorded:
    """Record every file that is not in its known state as an edit of one call, and return what was found.

    `info` says whose call it was: an agent's, a person's, or (origin external) nobody's, as before a command; or it
    tells that of each change. `paths`: only these files and what lies below these folders; the tree is not walked for
    files. `are_canonical`: files alone are meant, spelt as they are recorded, and not what a link on the way leads to
    by now. `besides`: files that are left to another look, relative to the workspace. `ignored`: without `paths`, also
    those recorded files that ignore rules leave out by now; it takes a status besides.
    Raises SnapshotIncomplete (at a first look), what Journal.commit raises, and what paths raise.
    """

    def found() -> Recorded:
        return _recorded(
            journal, info, paths, are_canonical=are_canonical, excluding=excluding, ignored=ignored, limits=limits
        )

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
    info: CallInfo | Whose,
    paths: Sequence[str] | None,
    *,
    are_canonical: bool,
    excluding: Collection[str],
    ignored: bool,
    limits: ScanLimits | None,
) -> Recorded:
    """Do as `record_changes`, where the baseline can be read or there is none. Raises BlobMissing, TreeInvalid."""
    scopes, files = ([], list(map(os.fsencode, paths or ()))) if are_canonical else _sorted_out(journal, paths)
    named = len(files)
    if ignored and paths is None:
        from objstore.review.status import external_changes

        files = [os.fsencode(change.path) for change in external_changes(journal) if change.path not in excluding]
    with journal.reading() as store:
        is_first = store.baseline() is None
        strange = [path for path in files if is_first or not _is_as_recorded(journal, path)]
        strange += [scope for scope in scopes if scope and _is_known(journal, scope)]  # it was a file
    taken = None
    if is_first:
        taken = _first_look(journal, limits)
    conversation = ""
    edits: list[EditView] = []
    passed: list[SkippedPath] = []
    look, suspects = _glance(journal, scopes, limits)
    tries = _TRIES
    while tries and (strange or suspects):
        from objstore.tracking.detect import UnstoredLargeFiles, record_differences

        tries -= 1
        found = record_differences(
            journal,
            info,
            look,
            suspects,
            strange,
            limits,
            excluding={os.fsencode(path) for path in excluding},
            store_large=not tries,
        )
        if not isinstance(found, UnstoredLargeFiles):
            conversation, edits, passed = found
            break
        from objstore.transaction.prestore import prestore_large_files

        prestore_large_files(journal, found.paths)
        look, suspects = _glance(journal, scopes, limits)
    seen = 0 if look is None else sum(look.stat_cache.files(scope) for scope in scopes)
    return Recorded(
        conversation=conversation,
        edits=tuple(edits),
        baseline=None if taken is None else taken.view,
        files=seen + named,
        passed=tuple(passed),
    )


def renew_baseline(journal: Journal) -> None:
    """Take another baseline, and record what changed against the one there is, which can then be given up.

    In this order: what changes in between is known to the new one, or is recorded. With one that can't be read, nothing
    can be compared. Raises what `record_changes` raises.
    """
    from objstore.history.snapshot_check import is_tree_readable
    from objstore.model.basic_types import Origin
    from objstore.model.results import CallInfo

    _first_look(journal, None)
    with journal.reading() as store:
        old = store.baseline()
        is_known = old is not None and is_tree_readable(store, old.root)
    if is_known:
        record_changes(journal, CallInfo(tool="", origin=Origin.EXTERNAL))


def _readable_baseline(journal: Journal, lost: BlobId, limits: ScanLimits | None) -> SnapshotView | None:
    """Take another baseline if the one there is can't be read; return the one that stays (None: no other helps).

    A folder that is as it was has the tree that it had. With that, what was lost may have been stored again; then the
    old one stays, or else the new one, and is the only one. Raises what a first look raises.
    """
    from objstore.history.snapshot_check import is_tree_readable
    from objstore.model.records import Expiry
    from objstore.store.write_batch import now
    from objstore.tracking.snapshot_list import listed

    with journal.reading() as store:
        if is_tree_readable(store, lost):
            return None
    _first_look(journal, limits)
    with journal.writing() as batch:
        standing = [view for view in listed(journal) if not view.who and not view.path]
        kept = next((view for view in standing if is_tree_readable(journal.store, view.root)), None)
        gone = tuple(view.number for view in standing if view != (kept or standing[0]))
        if gone:
            reason = "baseline lost" if kept is not None and gone[0] < kept.number else "baseline not needed"
            batch.record(Expiry(time=now(), snapshots=gone, reason=reason, who=""))
            journal.commit(batch, ())
    return kept


def _is_as_recorded(journal: Journal, path: bytes) -> bool:
    """Return whether what stands at a path is the last state of the document there."""
    tip = journal.store.tip_at(path)
    try:
        with reaching(os.fsdecode(path)):
            found = file_at(journal.tree, path)
    except PathError:
        return False  # it changes at this moment, or may not be read
    return tip is not None and tip.state == (None if found is None else found[0])


def _is_known(journal: Journal, path: bytes) -> bool:
    """Return whether a file is known at a path."""
    tip = journal.store.tip_at(path)
    if tip is not None:
        return tip.state is not None
    from objstore.model.basic_types import FileState
    from objstore.worktree.baseline import known_state_of

    return isinstance(known_state_of(journal, path), FileState)


def _glance(
    journal: Journal, scopes: Sequence[bytes], limits: ScanLimits | None
) -> tuple[WorktreeScan | None, dict[bytes, list[bytes]]]:
    """Return the look at the folders, and those in each that have to be looked into (nothing: all is as it was).

    This takes most of the time, and needs no lock: what changes after it is the next look's.
    """
    if not scopes:
        return None, {}
    from objstore.worktree.scan import WorktreeScan, discard_content

    look = WorktreeScan(journal)
    survey = look.survey(discard_content, limits)
    suspects = {scope: survey.glance(scope) for scope in scopes}
    if all(survey.is_as_known(scope, suspects[scope]) for scope in scopes):
        return look, {}
    return look, suspects


def _first_look(journal: Journal, limits: ScanLimits | None) -> SnapshotResult:
    """Take the baseline: what stands anywhere now is known from here on."""
    from objstore.tracking.snapshot_create import create

    taken, look = create(journal, "", title="baseline", who="", limits=limits)
    # What was recorded before is compared with the journal all the same.
    with journal.reading() as store:
        recorded = {path.rpartition(b"/")[0] for path in store.paths_below(b"")}
    look.stat_cache.mark_recorded(is_fully_recorded=True)
    for folder in recorded:
        # Where a folder is gone, what went with it is told by the innermost above it that stands.
        around = map(look.stat_cache.get, (folder, *folders_above(folder)))
        known = next((row for row in around if row is not None), None)
        if known is not None:
            known.is_fully_recorded = False
    look.save()
    return taken


def _sorted_out(journal: Journal, paths: Sequence[str] | None) -> tuple[list[bytes], list[bytes]]:
    """Return the folders and the files that are meant, relative to the workspace."""
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
    """Return where a path leads, relative to the workspace, and whether a folder stands there."""
    # Below what is a file by now, nothing stands.
    with journal.tree.locate(path, changing=True, will_be_vacated=lambda _: True) as resolved:
        found = look_at(resolved)
        is_folder = found is not None and stat.S_ISDIR(found.st_mode)
        return b"" if resolved.path == "." else os.fsencode(resolved.path), is_folder


def _is_inside(path: bytes, folder: bytes) -> bool:
    return path != folder and is_within(path, folder)
