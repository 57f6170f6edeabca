"""Mending: who has to rely on the index, and finds it wrong, has it made anew from the log and begins again.

What goes from the store goes by what the index counts, so it is held against the log before anything does. The log is
the only truth, and making the index anew takes nothing from it: a person need not be asked.
"""

from collections.abc import Callable
from typing import TypeVar

from objstore.errors import BlobMissing, IndexDamaged, IndexUnusable
from objstore.transaction.journal import Journal

__all__ = ["rebuild_index_and_retry", "retry_with_rebuilt_index"]

T = TypeVar("T")


def retry_with_rebuilt_index(journal: Journal, act: Callable[[], T]) -> tuple[T, str]:
    """Return what `act` gives, and what was wrong with the index before it did; "": nothing.

    A blob that is needed and missing is in the log, too, unless that is damaged itself. Raises IndexDamaged and
    BlobMissing where the index is no better when made anew, and what else `act` and Journal.make_anew raise.
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
    """Return what `act` gives; where that finds the index damaged, act again, with one that is rebuilt from the log.

    Only where nothing was recorded meanwhile: what is in the log is done. Raises what `act` raises.
    """
    end = journal.store.end
    try:
        return act()
    except IndexUnusable:
        with journal.reading() as store:
            if store.end != end:
                raise
    return act()
