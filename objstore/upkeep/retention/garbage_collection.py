"""Plan and run garbage collection: expire history over the limits, then compact the log.

Expiring history (`expiry`) is recorded in the journal. Compaction (`compaction`) then rewrites segments without the
blobs that nothing holds any more; no query gives another answer after it.
"""

from typing import Final

from objstore.disk.config.setting_sources import RetentionLimits
from objstore.model.basic_types import Progress
from objstore.storage.transaction.index_repair import retry_with_rebuilt_index
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.space_reserve import reserve_space, with_compaction_space
from objstore.upkeep.retention.compaction import CompactionResult, compact, plan_compaction
from objstore.upkeep.retention.expiry import ExpiryPlan, expire, plan_expiry
from objstore.values.fastclass import value

__all__ = ["GcPlan", "GcResult", "collect", "plan_gc"]

_TRIES: Final = 5
"""How often a plan is made again because another process decided or pinned something meanwhile."""


@value
class GcPlan:
    """The plan of a garbage collection."""

    limits: RetentionLimits
    expiry: ExpiryPlan
    store_bytes: int  # of all segments, now
    free_blobs: int  # that nothing will hold then
    free_bytes: int  # of their frames


@value
class GcResult:
    """The result of a garbage collection."""

    edits: int  # that expired
    bytes_before: int  # of all segments
    bytes_after: int
    missing: int  # bytes over the size limit that expiring all eligible history could not free
    is_done: bool  # False: other processes decided or pinned something during every attempt
    index_damage: str  # what was wrong with the index, which was rebuilt from the log; "": nothing


def plan_gc(journal: Journal, limits: RetentionLimits) -> GcPlan:
    """Return what `collect` would do now, and change nothing. Raises StoreDamaged."""
    expiry = plan_expiry(journal, limits)
    store = journal.store
    blobs, free_bytes = store.index.blobs.unheld()
    return GcPlan(
        limits=limits,
        expiry=expiry,
        store_bytes=store.log.files.total_bytes(),
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
    planned: GcPlan | None = None,
) -> GcResult:
    """Expire the history that is over the limits, and remove the blobs that nothing holds.

    `thorough`: remove every such blob; otherwise rewrite a segment only if enough of it is unused. On a full disk, the
    store first releases its space reserve and caches. `planned`: what `plan_gc` returned for these limits a moment ago
    (None: it is planned now). Raises StoreLocked (also while another process compacts),
    StoreDamaged, BlobDamaged, CompactionSpaceNeeded, DiskFailed, PermissionRefused.
    """
    before = _store_bytes(journal)
    edits = missing = 0
    is_done, damage = False, ""

    given = [] if planned is None else [planned.expiry]

    def expire_once() -> tuple[int, ExpiryPlan]:
        begun = edits

        def report(what: str, gone: int, total: int) -> None:
            nonlocal edits
            edits = begun + gone
            if progress is not None:
                progress(what, gone, total)

        with journal.reading():
            plan = given.pop() if given else plan_expiry(journal, limits)
        return expire(journal, plan, who=who, progress=report), plan

    def compact_once() -> CompactionResult:
        # Over the size limit every unused byte is removed, but a short last segment is left until it has grown.
        is_over = limits.max_size is not None and _store_bytes(journal) > limits.max_size
        return compact(
            journal,
            plan_compaction(journal, all_segments=thorough or is_over, skips_unprofitable=not thorough),
            progress,
        )

    for _ in range(_TRIES):
        gone, plan = with_compaction_space(journal, expire_once)
        is_done, missing = gone == plan.edit_count, plan.missing
        if is_done:
            break
    for _ in range(_TRIES):
        outcome, found = with_compaction_space(journal, lambda: retry_with_rebuilt_index(journal, compact_once))
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
        return store.log.files.total_bytes()
