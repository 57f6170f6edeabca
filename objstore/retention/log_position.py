"""Footing: what a plan stands on, a log up to a place, and whether the log at its path still has that.

A plan is read without the writer lock. By the time it is carried out, a group of what it was read from may have been
cut off because it could not be synced, with another in its place, or a backup may have been put back: numbers are then
given again, and places are other records'. Records are chained, so the last one vouches for all before it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from objstore.errors import StoreDamaged
from objstore.fastclass import NamedTuple
from objstore.log.segment_files import Place
from objstore.model.ids import RecordId, record_id

if TYPE_CHECKING:
    from objstore.store.object_store import Store

__all__ = ["LogPosition", "log_position_of", "log_still_holds"]

_TAIL: Final = 4_096
"""Bytes before the end that are held against each other, as far as they are behind the last record."""


class LogPosition(NamedTuple):
    """A log up to a place."""

    end: Place
    tail: bytes  # what lies before it, behind the last record: blobs that no record names yet are in no chain
    last_record: RecordId | None  # None: there is none
    last_place: Place  # where it lies


def log_position_of(store: Store) -> LogPosition:
    """Return what is known of the log now. Call it while holding the store still."""
    log, end = store.log, store.end
    place = store.index.last_place
    place = log.newest(place) or place
    size = min(end.position, _TAIL)
    tail = b""
    with suppress(StoreDamaged):  # cut off since it was read, or `bears` would not find it either
        if place.segment == end.segment:
            size = min(end.offset - log.read(place).end, _TAIL)
        tail = log.piece(_before(end, size), size)
    return LogPosition(end, tail, store.last_record, place)


def log_still_holds(store: Store, log_position: LogPosition) -> bool:
    """Return whether the log has all that it had then. What came since is only certain under the writer lock."""
    end, log = log_position.end, store.log
    try:
        if log.generations().get(end.segment, 0) != end.generation or not log.reaches(end):
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
