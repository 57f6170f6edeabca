"""Collection: a store brought within its limits, from the plan that a person can read to the bytes that are free.

Two things happen, one after the other. History is let go (`retention`), which is recorded; then the blobs that nothing
holds any more are swept out of the segments, which changes nothing that can be asked.
"""

from typing import Final

from objstore.config.settings import RetentionLimits
from objstore.fastclass import value
from objstore.model.basic_types import Progress
from objstore.retention.compaction import CompactionResult, plan_compaction, sweep
from objstore.retention.expiry import ExpiryPlan, expire, plan_expiry
from objstore.transaction.index_repair import retry_with_rebuilt_index
from objstore.transaction.journal import Journal
from objstore.transaction.space_reserve import reserve_space, with_compaction_space

__all__ = ["GcPlan", "GcResult", "collect", "plan_gc"]

_TRIES: Final = 5
"""Times that a plan is made anew because somebody decided or pinned something meanwhile."""


@value
class GcPlan:
    """What a collection would do."""

    limits: RetentionLimits
    expiry: ExpiryPlan
    store_bytes: int  # of all segments, now
    free_blobs: int  # that nothing will hold
    free_bytes: int  # of their frames


@value
class GcResult:
    """What a collection did."""

    edits: int  # that were let go
    bytes_before: int  # of all segments
    bytes_after: int
    missing: int  # bytes over the size limit that nothing ripe could free
    is_done: bool  # whether nobody decided or pinned anything again and again meanwhile
    index_damage: str  # what was wrong with the index, which was made anew from the log; "": nothing was found


def plan_gc(journal: Journal, limits: RetentionLimits) -> GcPlan:
    """Return what `collect` would do now. Nothing is changed. Raises StoreDamaged."""
    expiry = plan_expiry(journal, limits)
    store = journal.store
    blobs, free_bytes = store.index.blobs.unheld()
    return GcPlan(
        limits=limits,
        expiry=expiry,
        store_bytes=store.log.total_bytes(),
        free_blobs=blobs + expiry.blobs,
        free_bytes=free_bytes + expiry.blob_bytes,
    )


def collect(
    journal: Journal,
    limits: RetentionLimits,
    *,
    who: str,
    thorough: bool = False,
    progress: Progress | None = None,
) -> GcResult:
    """Let go what the limits let go, and sweep out what nothing holds.

    `thorough`: all of it; else a segment is written anew only when enough of it is of no use. On a full disk the store
    gives back first what it can do without. Raises StoreLocked, also where another collection is going on,
    StoreDamaged, BlobDamaged, RoomNeeded, DiskFailed, PermissionRefused.
    """
    before = _store_bytes(journal)
    edits = missing = 0
    is_done, damage = False, ""

    def let_go() -> tuple[int, ExpiryPlan]:
        begun = edits

        def noted(what: str, gone: int, total: int) -> None:
            nonlocal edits
            edits = begun + gone
            if progress is not None:
                progress(what, gone, total)

        with journal.reading():
            plan = plan_expiry(journal, limits)
        return expire(journal, plan, who=who, progress=noted), plan

    def swept() -> CompactionResult:
        # Over the size limit, every byte counts, but a last segment of some is left until there are more.
        is_over = limits.max_size is not None and _store_bytes(journal) > limits.max_size
        return sweep(
            journal,
            plan_compaction(journal, all_segments=thorough or is_over, skips_unprofitable=not thorough),
            progress,
        )

    for _ in range(_TRIES):
        gone, plan = with_compaction_space(journal, let_go)
        is_done, missing = gone == plan.edit_count, plan.missing
        if is_done:
            break
    for _ in range(_TRIES):
        outcome, found = with_compaction_space(journal, lambda: retry_with_rebuilt_index(journal, swept))
        damage = damage or found
        if outcome.is_done:
            break
    reserve_space(journal.tree.root, journal.disk)
    with journal.reading() as store:
        store.restore_index()
    return GcResult(
        edits=edits,
        bytes_before=before,
        bytes_after=_store_bytes(journal),
        missing=missing,
        is_done=is_done,
        index_damage=damage,
    )


def _store_bytes(journal: Journal) -> int:
    with journal.reading() as store:
        return store.log.total_bytes()
