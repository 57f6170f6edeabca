"""Remove what no head of this store's lane names, in two phases, so that whoever is pulling can finish.

A collection lists what the newest head does not need as an object of its own, and removes what an earlier list had,
once that list is a day old. Both times are the bucket's, so a wrong clock here does no harm. A purge does not wait.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from objstore.model.canonical_msgpack import Fields, Value, decode, encode
from objstore.upkeep.remote.bucket import claim
from objstore.upkeep.remote.heads import newest_head
from objstore.upkeep.remote.keys import (
    Lane,
    garbage_folder,
    head_folder,
    number_in,
    numbered,
    object_folder,
    object_key,
    piece_in,
)
from objstore.values.errors import RecordInvalid
from objstore.values.fastclass import value
from objstore.values.request_errors import RemoteFailed

if TYPE_CHECKING:
    from objstore.upkeep.remote.bucket import Bucket, Listed
    from objstore.upkeep.remote.heads import Head, Seen

__all__ = ["WAIT_HOURS", "Collected", "collect"]

WAIT_HOURS: Final = 24
"""How old a list of garbage has to be before what it names is removed."""

_MAX_LIST: Final = 64 << 20
_AT_ONCE: Final = 1_000


@value
class Collected:
    """What a collection did."""

    removed: int  # objects
    removed_bytes: int
    waiting: int  # objects that a later collection removes
    waiting_bytes: int


def collect(bucket: Bucket, lane: Lane, seen: Seen | None, *, purge: bool = False, dry_run: bool = False) -> Collected:
    """Remove from a lane what its newest head does not need. `purge`: at once.

    Raises RemoteRolledBack and RemoteFailed.
    """
    found = newest_head(bucket, lane, seen)
    if found is None:
        return Collected(removed=0, removed_bytes=0, waiting=0, waiting_bytes=0)
    head, _ = found
    garbage = _garbage(bucket, head)
    lists = _lists(bucket, lane)
    if purge or dry_run:
        due = set(garbage) if purge else set()
    else:
        due = _noted(bucket, lane, lists, garbage) & garbage.keys()
    waiting = {key: size for key, size in garbage.items() if key not in due}
    if not dry_run:
        _delete(bucket, sorted(due))
        if purge:
            _delete(bucket, [each.key for each in lists.values()])
    return Collected(
        removed=len(due),
        removed_bytes=sum(garbage[key] for key in due),
        waiting=len(waiting),
        waiting_bytes=sum(waiting.values()),
    )


# ---- inside


def _garbage(bucket: Bucket, head: Head) -> dict[str, int]:
    """Return the size of each object of a lane that its newest head does not need, by key."""
    needed = {object_key(head.lane, name) for name in head.pieces()}
    folder = head_folder(head.lane)
    found = {
        each.key: each.size
        for each in bucket.listed(object_folder(head.lane))
        if piece_in(head.lane, each.key) is not None and each.key not in needed
    }
    return found | {
        each.key: each.size for each in bucket.listed(folder) if 0 < (number_in(folder, each.key) or 0) < head.number
    }


def _lists(bucket: Bucket, lane: Lane) -> dict[int, Listed]:
    """Return the lists of garbage, by number, ascending."""
    folder = garbage_folder(lane)
    return {number: each for each in bucket.listed(folder) if (number := number_in(folder, each.key)) is not None}


def _noted(bucket: Bucket, lane: Lane, lists: dict[int, Listed], garbage: dict[str, int]) -> set[str]:
    """Add a list of the garbage that no earlier list has, and return the keys of lists that are old enough.

    Those lists are removed before what they name: what remains after a crash is listed again.
    """
    if not garbage and not lists:
        return set()
    listed = {number: _keys(bucket, each.key) for number, each in lists.items()}
    new = sorted(garbage.keys() - set().union(*listed.values()))
    number = max(lists, default=0) + 1
    keys: list[Value] = [*new]
    key = numbered(garbage_folder(lane), number)
    if not claim(bucket, key, encode({"kind": "garbage", "keys": keys})):
        raise RemoteFailed(bucket.url, "another collection is running there. Try again")
    now = _lists(bucket, lane)[number].changed
    old = {each for each, found in lists.items() if now - found.changed >= timedelta(hours=WAIT_HOURS)}
    _delete(bucket, [lists[each].key for each in sorted(old)] + ([] if new else [key]))
    return set().union(*(listed[each] for each in old))


def _keys(bucket: Bucket, key: str) -> set[str]:
    """Return the keys in a list of garbage; a list that is none has no keys."""
    try:
        return {each for each in Fields(decode(bucket.get(key, _MAX_LIST))).items("keys") if isinstance(each, str)}
    except RecordInvalid:
        return set()


def _delete(bucket: Bucket, keys: list[str]) -> None:
    for first in range(0, len(keys), _AT_ONCE):
        bucket.delete(keys[first : first + _AT_ONCE])
