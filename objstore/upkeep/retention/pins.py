"""Pin edits and blobs so that they are kept whatever their age and however full the store is."""

from collections.abc import Iterable

from objstore.history.expired import refuse_expired
from objstore.model.basic_types import Seq
from objstore.model.ids import BlobId, RecordId
from objstore.model.records import Expiry, Pin
from objstore.storage.index.rows import HolderRow
from objstore.storage.store.write_batch import now
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.space_reserve import with_reserve
from objstore.values.errors import BlobMissing
from objstore.values.fastclass import value
from objstore.values.request_errors import NoSuchName

__all__ = ["PinView", "pin", "pins", "unpin"]


@value
class PinView:
    """A pin that has not been removed."""

    id: RecordId
    pin: Pin


def pins(journal: Journal) -> list[PinView]:
    """Return every pin that has not been removed, oldest first."""
    return [_view(journal, row) for row in journal.store.index.holders.pins() if not row.expired]


def pin(journal: Journal, edits: Iterable[Seq], blobs: Iterable[BlobId], *, title: str, who: str) -> PinView:
    """Keep blobs, and edits with all later edits of their files, until the pin is removed.

    Raises NoSuchName, EditExpired, BlobMissing, and what Journal.commit raises.
    """
    with journal.writing() as batch:
        index = journal.store.index
        kept = Pin(
            number=index.numbers.next_pin(),
            time=now(),
            edits=tuple(sorted(set(edits))),
            blobs=tuple(sorted(set(blobs))),
            who=who,
            title=title,
        )
        for seq in kept.edits:
            row = index.edits.get(seq)
            if row is None:
                raise NoSuchName(str(seq), "edit")
            refuse_expired(journal, row)
        for blob in kept.blobs:
            if not journal.store.has(blob):
                raise BlobMissing(blob)
        name = batch.record(kept)
        journal.commit(batch, ())
        return PinView(id=name, pin=kept)


def unpin(journal: Journal, numbers: Iterable[int], *, who: str) -> list[PinView]:
    """Remove pins and return them. Raises NoSuchName, with no pin removed, and what Journal.commit raises."""
    return with_reserve(journal, lambda: _unpinned(journal, numbers, who=who))


def _unpinned(journal: Journal, numbers: Iterable[int], *, who: str) -> list[PinView]:
    with journal.writing(may_use_reserve=True) as batch:
        wanted = sorted(set(numbers))
        holding = {view.pin.number: view for view in pins(journal)}
        for number in wanted:
            if number not in holding:
                raise NoSuchName(str(number), "pin")
        if wanted:
            batch.record(
                Expiry(
                    time=now(),
                    pins=tuple(wanted),
                    reason="unpinned",
                    who=who,
                    via=journal.decider.via,
                    agent=journal.decider.agent,
                )
            )
            journal.commit(batch, ())
        return [holding[number] for number in wanted]


def _view(journal: Journal, row: HolderRow) -> PinView:
    record, name = journal.store.record(row.place)
    if not isinstance(record, Pin) or record.number != row.number:
        raise row.place.damaged(f"pin {row.number} is not where the index says")
    return PinView(id=name, pin=record)
