"""Rebuild a damaged index from the log and run the interrupted operation again.

What is removed from the store depends on what the index counts, so the index is compared with the log before that. The
log is the only truth, and rebuilding the index removes nothing from it, so no person needs to be asked.
"""

from collections.abc import Callable
from typing import TypeVar

from objstore.storage.transaction.journal import Journal
from objstore.values.errors import BlobMissing, IndexDamaged, IndexUnusable, StoreDamaged

__all__ = ["rebuild_index_and_retry", "retry_with_rebuilt_index"]

T = TypeVar("T")


def retry_with_rebuilt_index(journal: Journal, act: Callable[[], T]) -> tuple[T, str]:
    """Return the result of `act`, and what was wrong with the index before; "": nothing was.

    A blob that is needed and missing is in the log, too, unless the log itself is damaged. Raises IndexDamaged and
    BlobMissing if rebuilding the index didn't help, and what else `act` and Journal.recreate raise.
    """
    try:
        return act(), ""
    except IndexDamaged as error:
        damage = error.what
    except BlobMissing as error:
        damage = f"blob {error.blob.hex()} is not in it"
    journal.recreate(index=True, mark=False)
    return act(), damage


def rebuild_index_and_retry(journal: Journal, act: Callable[[], T]) -> T:
    """Return the result of `act`; if it finds the index damaged, rebuild the index from the log and run `act` again.

    It also runs again if it finds the log damaged and a segment was rewritten meanwhile: a place that the index gave is
    gone after the second time. But only if nothing was recorded, because what is in the log is done. Raises what `act`
    raises.
    """
    before, end = journal.store, journal.store.end
    appended, generations = before.appended, before.log.files.generations()
    try:
        return act()
    except IndexUnusable:
        with journal.reading() as store:
            if store.end != end:
                raise
    except StoreDamaged:
        with journal.reading() as store:
            if store is not before or store.appended != appended or not store.is_rewritten_since(generations):
                raise
    return act()
