"""Expire history, pin it, and free space."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from objstore.workspace.role import Role, decides, reads, uses_index, writes

# What only some methods need is imported in them: `cas status` must not wait for the review core to load.
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from objstore.disk.config.setting_sources import RetentionLimits
    from objstore.model.basic_types import Progress, Seq
    from objstore.model.ids import BlobId
    from objstore.upkeep.packing.repack import Repacked, RepackPlan
    from objstore.upkeep.retention.garbage_collection import GcPlan, GcResult
    from objstore.upkeep.retention.pins import PinView
    from objstore.upkeep.retention.purge import PurgePlan, PurgeTarget


__all__ = ["Retention"]


class Retention(Role):
    """Expire history, pin it, and free space."""

    @reads
    def pins(self) -> list[PinView]:
        """Return every pin that is in force, oldest first."""
        from objstore.upkeep.retention import pins

        return pins.pins(self._journal)

    @writes
    def pin(self, edits: Collection[Seq], blobs: Collection[BlobId] = (), *, title: str = "", who: str = "") -> PinView:
        """Keep blobs, and edits together with all later edits of their files, until the pin is removed.

        Raises NoSuchName, EditExpired, BlobMissing, and what Call.commit raises.
        """
        from objstore.upkeep.retention import pins

        return pins.pin(self._journal, edits, blobs, title=title, who=who)

    @decides
    def unpin(self, numbers: Collection[int], *, who: str = "") -> list[PinView]:
        """Remove pins and return them. Raises NoSuchName, with none removed, and what Call.commit raises."""
        from objstore.upkeep.retention import pins

        return pins.unpin(self._journal, numbers, who=who)

    def limits(self) -> RetentionLimits:
        """Return the retention limits in this workspace's settings. Raises what Configuration.all raises."""
        from objstore.disk.config.config_files import limits_of

        return limits_of(self._journal.tree.root)

    @reads
    def plan_gc(self, limits: RetentionLimits) -> GcPlan:
        """Return what `collect` would do now. Raises StoreDamaged."""
        from objstore.upkeep.retention import garbage_collection

        return garbage_collection.plan_gc(self._journal, limits)

    @decides
    def collect(
        self,
        limits: RetentionLimits,
        *,
        who: str = "",
        thorough: bool = False,
        progress: Progress | None = None,
        planned: GcPlan | None = None,
    ) -> GcResult:
        """Expire what the limits allow, and remove the bytes that nothing holds from the store.

        `thorough`: remove all of them; else a segment is rewritten only when enough of it is unused. Readers and
        writers continue meanwhile. A damaged index is rebuilt from the log before anything is removed. `planned`: what
        `plan_gc` returned for these limits a moment ago (None: it is planned now). Raises StoreLocked if another
        garbage collection is running, and what Call.commit raises.
        """
        from objstore.upkeep.retention import garbage_collection

        return garbage_collection.collect(
            self._journal, limits, who=who, thorough=thorough, progress=progress, planned=planned
        )

    @uses_index
    def plan_repack(self, progress: Progress | None = None) -> RepackPlan:
        """Return the result that `repack` would have now; it takes as long.

        Raises StoreDamaged, BlobDamaged, BlobMissing.
        """
        from objstore.upkeep.packing import repack

        return repack.plan_repack(self._journal, progress)

    @uses_index
    def repack(self, progress: Progress | None = None) -> Repacked:
        """Encode the store again in fewer bytes, with every blob checked by its hash.

        Readers and writers continue meanwhile. A damaged index is first rebuilt from the log. Raises StoreLocked if a
        garbage collection or another repack is running, and StoreDamaged, BlobDamaged, BlobMissing, DiskFull,
        PermissionRefused: segments not yet rewritten are then unchanged.
        """
        from objstore.storage.transaction import index_repair
        from objstore.upkeep.packing import repack

        return index_repair.retry_with_rebuilt_index(self._journal, lambda: repack.repack(self._journal, progress))[0]

    @writes
    def expire(self, limits: RetentionLimits, *, who: str = "", moment: int | None = None) -> bool:
        """Expire what the limits allow, and leave the bytes in place; return whether everything planned has expired.

        If someone decides on or pins something meanwhile, the rest stays. `moment`: microseconds since 1970-01-01 UTC
        (None: now). Raises what Call.commit raises.
        """
        from objstore.upkeep.retention import expiry

        with self._journal.reading():
            plan = expiry.plan_expiry(self._journal, limits, moment=moment)
        return expiry.expire(self._journal, plan, who=who) == plan.edit_count

    @reads
    def plan_purge(
        self, *, blobs: Iterable[BlobId] = (), path: str = "", paths: Sequence[str] = (), keep_shared: bool = False
    ) -> PurgePlan:
        """Return what a purge would remove: of some blobs, and of all that is stored of what is or was at `paths`.

        `path`: all states of a file except its current one. `keep_shared`: without the bytes that other files contain
        now. If a path now leads through a symlink, what was recorded at the path as written is included. Raises what
        paths raise, and StoreDamaged.
        """
        from objstore.history import revspec
        from objstore.upkeep.retention import purge

        wanted = list(blobs)
        if path:
            wanted += purge.past_blobs(self._journal, [revspec.paths_to_search(self._journal, path)])[0]
        return purge.plan_purge(self._journal, self._purge_target(wanted, paths, keep_shared=keep_shared))

    @reads
    def searched_paths(self, path: str) -> list[str]:
        """Return the paths, relative to the workspace, at which a purge looks for what was recorded of `path`.

        Raises what paths raise.
        """
        from objstore.history import revspec

        return [os.fsdecode(each) for each in revspec.paths_to_search(self._journal, path)]

    @reads
    def stored_blobs(self, paths: Sequence[str], *, past: bool = False) -> list[list[BlobId]]:
        """Return, for each of the paths, the blobs that a purge of what is or was there removes.

        `past`: all states of a file except its current one. The history is read once for all of them. Raises as
        `plan_purge`.
        """
        from objstore.history import revspec
        from objstore.upkeep.retention import purge

        searched = [revspec.paths_to_search(self._journal, path) for path in paths]
        return (purge.past_blobs if past else purge.stored_blobs)(self._journal, searched)

    @decides
    def purge(
        self,
        blobs: Collection[BlobId] = (),
        *,
        paths: Sequence[str] = (),
        keep_shared: bool = False,
        force: bool = False,
        who: str = "",
        progress: Progress | None = None,
    ) -> PurgePlan:
        """Remove what `plan_purge` returns for this from the store for good; return what was removed.

        No file is changed. From then on, scans leave out those of `paths` that exist. Raises PurgeRefused, with nothing
        changed, while another file holds one of the blobs, and, unless `force`, if an edit that mentions them is
        pending or pinned; StoreLocked, with nothing changed, while a garbage collection is running; PurgeUnfinished if
        other processes kept it from finishing, and it has to be repeated; and what Call.commit and Configuration.set
        raise.
        """
        from objstore.upkeep.retention import purge

        with self._journal.reading():
            target = self._purge_target(blobs, paths, keep_shared=keep_shared)
        return purge.purge(self._journal, target, force=force, who=who, progress=progress)

    def _purge_target(self, blobs: Iterable[BlobId], paths: Sequence[str], *, keep_shared: bool) -> PurgeTarget:
        from objstore.history import revspec
        from objstore.upkeep.retention import purge

        found = dict.fromkeys(each for path in paths for each in revspec.paths_to_search(self._journal, path))
        return purge.PurgeTarget(blobs=frozenset(blobs), paths=tuple(found), keeps_shared=keep_shared)

    def stored_bytes(self) -> int:
        """Return the size of the store: the bytes of its segments."""
        with self._journal.mutex:
            return self._journal.store.log.files.total_bytes()

    def close_superseded_files(self) -> None:
        """Close segment files that others have replaced: an open file keeps its disk space. Raises StoreReplaced."""
        self._journal.close_superseded()
