"""Find out when and why an edit's content expired, and refuse requests that need it."""

from objstore.model.views import Expiration
from objstore.storage.index.database import unusable
from objstore.storage.index.rows import EditRow
from objstore.storage.transaction.journal import Journal
from objstore.values.request_errors import EditExpired

__all__ = ["expiration", "expiration_by", "refuse_expired"]


def expiration(journal: Journal, row: EditRow) -> Expiration | None:
    """Return when and why the edit's content expired (None: it is kept)."""
    return expiration_by(journal, row.expired) if row.expired else None


def expiration_by(journal: Journal, number: int) -> Expiration:
    """Return when and why the expiry with this number expired what it names."""
    expiry = journal.store.index.holders.expiry(number)
    if expiry is None:
        raise unusable(f"there is no expiry {number!r}")
    return Expiration(time=expiry.time, reason=expiry.reason)


def refuse_expired(journal: Journal, row: EditRow) -> None:
    """Raise EditExpired if the edit's content is no longer kept."""
    found = expiration(journal, row)
    if found is not None:
        raise EditExpired(row.seq, found.time, found.reason)
