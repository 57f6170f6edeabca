"""Take a snapshot of a folder.

Folders that have not changed since the last look are the trees that they were, so taking the next snapshot costs one
look at the times of files.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from objstore.errors import (
    PathInvalid,
    SnapshotIncomplete,
)
from objstore.fastclass import value
from objstore.fs.confined_path import look_at
from objstore.index.rows import Baseline
from objstore.model.ids import BlobId
from objstore.model.records import Snapshot
from objstore.store.write_batch import Batch, now
from objstore.tracking.snapshot_list import SnapshotView, newest, view_of
from objstore.transaction.journal import Journal
from objstore.worktree.concurrent_writes import Meanwhile
from objstore.worktree.scan import WorktreeScan
from objstore.worktree.tree_writer import ContentWriter, TreeBuilder
from objstore.worktree.walk import ScanLimits, SkippedPath, TreeWalk

__all__ = ["SnapshotResult", "are_held", "create", "refuse_part"]

_TRIES: Final = 3
"""Looks beside others, before what came meanwhile is looked at with the lock, or what is cleaned away is given up."""


@value
class SnapshotResult:
    """A snapshot that was just taken."""

    view: SnapshotView
    files: int  # files and links in it
    passed: tuple[SkippedPath, ...]  # what could not be taken in
    is_same: bool  # whether the snapshot before it of the same folder holds the very same


def create(
    journal: Journal, scope: str, *, title: str, who: str, limits: ScanLimits | None = None
) -> tuple[SnapshotResult, WorktreeScan]:
    """Record what stands in the folder `scope` ("": the workspace), and return also the look that it took.

    Raises what paths raise, SnapshotIncomplete where a limit was reached, and what Journal.commit raises.
    """
    with journal.tree.locate(scope or os.curdir) as resolved:
        scope = "" if resolved.path == os.curdir else resolved.path
        found = look_at(resolved)
        if found is not None and not stat.S_ISDIR(found.st_mode):
            raise PathInvalid(scope, "not a directory; a snapshot is of a folder")
    path = os.fsencode(scope)
    meanwhile = Meanwhile(journal)
    look = WorktreeScan(journal)
    for _ in range(_TRIES):
        pieces = ContentWriter(journal)
        survey = look.survey(pieces.keep, limits)
        survey.run(path)
        with _followed(journal, survey, pieces, meanwhile, path) as (batch, followed):
            trees = followed
            lost = _lost(journal, trees)
            if lost is None:
                look.stat_cache.forget_trees()
                trees = TreeBuilder(survey, path)
                lost = _lost(journal, trees)
            if lost:
                # A cleaning has taken them since they were last looked at.
                look.distrust(lost)
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
            look.baseline = Baseline(snapshot.number, snapshot.root)
        if survey.is_news or trees.new or not who:
            look.save()
        taken = SnapshotResult(
            view=view_of(snapshot, name),
            files=survey.files,
            passed=tuple(dict.fromkeys(survey.passed)),
            is_same=before is not None and before.root == snapshot.root,
        )
        return taken, look
    raise SnapshotIncomplete("what was stored of it was cleaned away in the meantime; try again")


def refuse_part(survey: TreeWalk) -> None:
    """Raise SnapshotIncomplete where a survey has reached a limit."""
    if not survey.is_whole:
        raise SnapshotIncomplete(survey.passed[-1].reason)


def are_held(journal: Journal, trees: Iterable[BlobId]) -> bool:
    """Return whether something holds each of the trees, and so all below them.

    A snapshot that was given up may have been the last that did; then a cleaning may have taken some of it.
    """
    return all(journal.store.index.blobs.refs(tree) for tree in trees)


@contextmanager
def _followed(
    journal: Journal, survey: TreeWalk, pieces: ContentWriter, meanwhile: Meanwhile, scope: bytes
) -> Iterator[tuple[Batch, TreeBuilder]]:
    """Hold the writer lock, with a survey that holds all of each call; give a batch to fill, and the survey's trees.

    Where something was recorded since it began, it looks there again. If that takes long, it does so beside others, so
    that nobody waits; at last with the lock all the same, if something more came each time. Raises SnapshotIncomplete,
    and what surveys, Pieces and Journal.writing raise.
    """
    trees: TreeBuilder | None = None
    for left in reversed(range(_TRIES)):
        refuse_part(survey)
        pieces.flush()
        trees = TreeBuilder(survey, scope, trees)
        with journal.writing() as batch:
            paths = meanwhile.paths(survey.stat_cache)
            may_hold = not left or survey.is_quick_rescan(paths)
            if paths and may_hold:
                pieces.use_callers_lock()
                survey.again(paths)
                refuse_part(survey)
                pieces.flush()
                trees = TreeBuilder(survey, scope, trees)
            if may_hold:
                yield batch, trees
                return
        survey.again(paths)


def _lost(journal: Journal, trees: TreeBuilder) -> set[BlobId] | None:
    """Return the blobs of files that new trees name and the store has not; None: a tree that is to be kept is gone."""
    if not are_held(journal, trees.kept):
        return None
    return {blob for blob in trees.files if not journal.store.has(blob)}
