"""Expire history, pin it, and give back space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

# What only some methods need is imported in them: `cas status` must not wait for the review core to load.
if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.config.settings import RetentionLimits
    from objstore.model.basic_types import Progress, Seq
    from objstore.model.ids import BlobId
    from objstore.packing.repack import Repacked, RepackPlan
    from objstore.retention.garbage_collection import GcPlan, GcResult
    from objstore.retention.pins import PinView
    from objstore.retention.purge import PurgePlan
    from objstore.transaction.journal import Journal


__all__ = ["Retention"]


class Retention:
    """Expire history, pin it, and give back space."""

    def __init__(self, journal: Journal) -> None:
        """Wrap an open journal."""
        self._journal: Final = journal

    def pins(self) -> list[PinView]:
        """Return every pin that holds, oldest first."""
        from objstore.retention import pins

        with self._journal.reading():
            return pins.pins(self._journal)

    def pin(self, edits: Iterable[Seq], blobs: Iterable[BlobId] = (), *, title: str = "", who: str = "") -> PinView:
        """Keep edits, and with each what came after it in its file, and blobs, until the pin is taken out.

        Raises NoSuchName, EditExpired, BlobMissing, and what Call.commit raises.
        """
        from objstore.retention import pins
        from objstore.transaction import index_repair

        wanted = tuple(edits), tuple(blobs)
        return index_repair.rebuild_index_and_retry(
            self._journal, lambda: pins.pin(self._journal, *wanted, title=title, who=who)
        )

    def unpin(self, numbers: Iterable[int], *, who: str = "") -> list[PinView]:
        """Take pins out and return them. Raises NoSuchName, with none taken out, and what Call.commit raises."""
        from objstore.retention import pins
        from objstore.transaction import index_repair

        wanted = tuple(numbers)
        return index_repair.rebuild_index_and_retry(self._journal, lambda: pins.unpin(self._journal, wanted, who=who))

    def limits(self) -> RetentionLimits:
        """Return the limits that settings give this workspace. Raises what Configuration.all raises."""
        from objstore.config.config_files import limits_of

        return limits_of(self._journal.tree.root)

    def plan_gc(self, limits: RetentionLimits) -> GcPlan:
        """Return what `collect` would do now. Raises StoreDamaged."""
        from objstore.retention import garbage_collection

        with self._journal.reading():
            return garbage_collection.plan_gc(self._journal, limits)

    def collect(
        self, limits: RetentionLimits, *, who: str = "", thorough: bool = False, progress: Progress | None = None
    ) -> GcResult:
        """Let go what the limits let go, and take the bytes that nothing holds out of the store.

        `thorough`: all of them; else a segment is written anew only when enough of it is of no use. Readers and writers
        go on meanwhile. An index that is found to be wrong is made anew from the log before anything goes. Raises
        StoreLocked where another collection is going on, and what Call.commit raises.
        """
        from objstore.retention import garbage_collection

        with self._journal.translating_index_errors():
            return garbage_collection.collect(self._journal, limits, who=who, thorough=thorough, progress=progress)

    def plan_repack(self, progress: Progress | None = None) -> RepackPlan:
        """Return what `repack` would come to now; it takes as long. Raises StoreDamaged, BlobDamaged, BlobMissing."""
        from objstore.packing import repack

        with self._journal.translating_index_errors():
            return repack.plan_repack(self._journal, progress)

    def repack(self, progress: Progress | None = None) -> Repacked:
        """Write the store anew in fewer bytes, every blob checked by its hash. Readers and writers go on meanwhile.

        An index that is found to be wrong is made anew from the log first.
        Raises StoreLocked where a collection or another repack is going on, and StoreDamaged, BlobDamaged, BlobMissing,
        DiskFull, PermissionRefused: what was not yet written anew is then as it was.
        """
        from objstore.packing import repack
        from objstore.transaction import index_repair

        with self._journal.translating_index_errors():
            return index_repair.retry_with_rebuilt_index(self._journal, lambda: repack.repack(self._journal, progress))[
                0
            ]

    def expire(self, limits: RetentionLimits, *, who: str = "", moment: int | None = None) -> bool:
        """Let go what the limits let go, and leave the bytes where they are; return whether that was all.

        Where somebody decides or pins something meanwhile, the rest stays. `moment`: microseconds since 1970-01-01 UTC;
        None: now. Raises what Call.commit raises.
        """
        from objstore.retention import expiry

        with self._journal.reading():
            plan = expiry.plan_expiry(self._journal, limits, moment=moment)
        with self._journal.translating_index_errors():
            return expiry.expire(self._journal, plan, who=who) == plan.edit_count

    def plan_purge(self, *, blobs: Iterable[BlobId] = (), path: str = "") -> PurgePlan:
        """Return what would go with some blobs, or with every state of the file at `path` but what that holds now.

        Where a link leads elsewhere by now, those of what stood at the path as it is spelt are among them.
        Raises what paths raise, and StoreDamaged.
        """
        from objstore.history import revspec
        from objstore.retention import purge

        with self._journal.reading():
            wanted = list(blobs)
            if path:
                wanted += purge.blobs_of_paths(self._journal, revspec.paths_to_search(self._journal, path))
            return purge.plan_purge(self._journal, wanted)

    def purge(
        self, blobs: Iterable[BlobId], *, force: bool = False, who: str = "", progress: Progress | None = None
    ) -> PurgePlan:
        """Take blobs out of the store for good, with all that mentions them, and return what that was.

        Raises PurgeRefused, with nothing changed, while a file holds one of them, and unless `force` where something is
        pending, or a snapshot or a pin holds them; StoreLocked, with nothing changed, while a collection is going on;
        PurgeUnfinished where others kept it from its end, and it is to be asked again; and what Call.commit raises.
        """
        from objstore.retention import purge

        with self._journal.translating_index_errors():
            return purge.purge(self._journal, blobs, force=force, who=who, progress=progress)

    def stored_bytes(self) -> int:
        """Return how large the store is: the bytes of its segments."""
        with self._journal.mutex:
            return self._journal.store.log.total_bytes()

    def close_superseded_files(self) -> None:
        """See which of the store's files others have superseded: as long as one is open, its room is not free."""
        with self._journal.mutex:
            self._journal.store.log.refresh()
