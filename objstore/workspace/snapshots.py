"""Create, list, compare, restore and delete snapshots."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from objstore.model.basic_types import Origin
from objstore.review.calls.tracked_call import open_call
from objstore.values.fastclass import replace
from objstore.workspace.role import Role, decides, reads, writes

# What only some methods need is imported in them: `cas status` must not wait for the review core to load.
if TYPE_CHECKING:
    from collections.abc import Sequence

    from objstore.history.snapshots.catalog import PathState, SnapshotView
    from objstore.history.snapshots.create import SnapshotResult
    from objstore.history.snapshots.diff import SnapshotChange
    from objstore.review.snapshot_restore import RestoreResult
    from objstore.worktree.walk import ScanLimits, SkippedPath


__all__ = ["Snapshots"]


class Snapshots(Role):
    """Create, list, compare, restore and delete snapshots."""

    @writes
    def take(self, path: str = "", *, who: str, title: str = "", limits: ScanLimits | None = None) -> SnapshotResult:
        """Record everything in a folder ("": the workspace). `who`: the person or agent who asked for it; not empty.

        Raises SnapshotIncomplete, FileMissing, and what paths and Call.commit raise.
        """
        from objstore.history.snapshots import create

        return create.create(self._journal, path, title=title, who=who, limits=limits)[0]

    @reads
    def all(self) -> list[SnapshotView]:
        """Return every snapshot that has not been deleted, oldest first."""
        from objstore.history.snapshots import catalog

        return catalog.listed(self._journal)

    @reads
    def get(self, number: int) -> SnapshotView:
        """Return one snapshot. Raises NoSuchName."""
        from objstore.history.snapshots import catalog

        return catalog.find(self._journal, number)

    @reads
    def files(self, number: int) -> list[tuple[str, PathState]]:
        """Return every path in a snapshot except folders, with its state. Raises NoSuchName."""
        from objstore.history.snapshots import catalog

        return list(catalog.listing(self._journal, number))

    @reads
    def file_count(self, number: int) -> int:
        """Return how many files and symlinks a snapshot has. Raises NoSuchName."""
        from objstore.history.snapshots import catalog

        return catalog.file_count(self._journal, number)

    @reads
    def changes(
        self, number: int, other: int | None = None, *, paths: Sequence[str] = (), limits: ScanLimits | None = None
    ) -> tuple[list[SnapshotChange], tuple[SkippedPath, ...]]:
        """Return the differences between a snapshot and another (None: the current files), and skipped paths.

        With `paths`, only at and below these. Raises NoSuchName, NotInSnapshot, SnapshotsNotComparable,
        SnapshotIncomplete.
        """
        from objstore.history.snapshots import diff

        return diff.changes(self._journal, number, other, paths=paths, limits=limits)

    def restore(
        self,
        number: int,
        paths: Sequence[str] = (),
        *,
        who: str = "",
        dry_run: bool = False,
        limits: ScanLimits | None = None,
    ) -> RestoreResult:
        """Restore the files in a snapshot, or those at and below `paths`, as one call of a person, which `undo` undoes.

        Only files that differ are written; files that were created since are deleted, and files that the snapshot does
        not cover are left alone. Raises NoSuchName, SnapshotIncomplete, FileChanged, and what Call.commit raises.
        """
        from objstore.model.results import CallInfo
        from objstore.review import snapshot_restore as restore
        from objstore.review.acts import commit_act
        from objstore.review.calls.deciders import marks

        with self._journal.reading():
            plan = restore.plan_restore(self._journal, number, paths, limits=limits)
        if dry_run or not plan.changes:
            return plan
        self.require_person()
        info = CallInfo(
            tool="snapshot restore", origin=Origin.PERSON, notes={"snapshot": str(number)} | marks(self._journal)
        )
        with open_call(self._journal, info) as call:
            commit = partial(commit_act, self._journal, who=who)
            done = restore.carry_out(plan, call, self._journal.tree, self._journal.progress, commit)
            return replace(plan, outcome=done)

    @decides
    def delete(self, numbers: Sequence[int], *, who: str) -> list[SnapshotView]:
        """Delete snapshots and return them; gc may then remove what only they held.

        If one is the baseline, changes against it are first recorded as external edits, and a new baseline is taken.
        Raises NoSuchName, and then what `record_changes` raises.
        """
        from objstore.agents.record import renew_baseline
        from objstore.history.snapshots import catalog

        return catalog.delete(self._journal, numbers, who=who, renew_baseline=renew_baseline)
