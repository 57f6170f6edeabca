"""Check that the log has not been rewritten since a plan was computed.

A plan is computed without the writer lock. Before it is carried out, a writer may have cut off a group that could not
be synced and written another in its place, or a person may have put a backup back: then edits have been renumbered, and
places belong to other records. Records form a hash chain, so the last one vouches for all before it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from objstore.model.ids import RecordId, record_id
from objstore.storage.log.segment_files import Place
from objstore.values.errors import StoreDamaged
from objstore.values.fastclass import NamedTuple

if TYPE_CHECKING:
    from objstore.storage.store.object_store import Store

__all__ = ["LogPosition", "log_position_of", "log_still_holds"]

_TAIL: Final = 4_096
"""How many bytes before the end are compared, as far as they are after the last record."""


class LogPosition(NamedTuple):
    """The state of a log up to a place."""

    end: Place
    tail: bytes  # the bytes before it, after the last record: blobs that no record refers to yet are in no chain
    last_record: RecordId | None  # None: the log has no record
    last_place: Place  # of the last record


def log_position_of(store: Store) -> LogPosition:
    """Return the present state of the log. Call it while the store is held still."""
    log, end = store.log, store.end
    place = store.index.last_place
    size = min(end.position, _TAIL)
    tail = b""
    with suppress(StoreDamaged):  # it was cut off since it was read, and `log_still_holds` will say so
        if place.segment == end.segment:
            size = min(end.offset - log.read(place).end, _TAIL)
        tail = log.piece(_before(end, size), size)
    return LogPosition(end, tail, store.last_record, place)


def log_still_holds(store: Store, log_position: LogPosition) -> bool:
    """Return whether the log still has everything that it had then.

    What was written since is certain only under the writer lock.
    """
    end, log = log_position.end, store.log
    try:
        if log.files.generations().get(end.segment, 0) != end.generation or not log.reaches(end):
            return False
        if log.piece(_before(end, len(log_position.tail)), len(log_position.tail)) != log_position.tail:
            return False
        if log_position.last_record is None:
            return True
        return record_id(bytes(log.read(log_position.last_place).payload)) == log_position.last_record
    except StoreDamaged:
        return False


def _before(end: Place, size: int) -> Place:
    return Place(end.segment, end.offset - size)
