"""Delete snapshots, so that garbage collection may remove what only they hold."""

from collections.abc import Sequence

from objstore.model.records import Expiry
from objstore.store.write_batch import now
from objstore.tracking.record import renew_baseline
from objstore.tracking.snapshot_list import SnapshotView, find
from objstore.transaction.journal import Journal
from objstore.transaction.space_reserve import with_reserve

__all__ = ["delete"]


def delete(journal: Journal, numbers: Sequence[int], *, who: str) -> list[SnapshotView]:
    """Delete snapshots by number, and return them.

    Before the baseline is deleted, a new one is taken, and what changed against the old one is recorded as far as it
    can be read. Raises NoSuchName, and what `record_changes` raises.
    """
    with journal.reading() as store:
        baseline = store.index.holders.baseline()
        is_baseline_among = baseline is not None and baseline.number in {find(journal, n).number for n in numbers}
    if is_baseline_among:
        renew_baseline(journal)

    def expire() -> list[SnapshotView]:
        with journal.writing(may_use_reserve=True) as batch:
            gone = [find(journal, number) for number in sorted(set(numbers))]
            batch.record(
                Expiry(time=now(), snapshots=tuple(view.number for view in gone), reason="snapshot deleted", who=who)
            )
            journal.commit(batch, ())
        return gone

    return with_reserve(journal, expire)
