"""List the blobs that decisions, pins, snapshots and large blobs refer to, read from the log.

Compaction compares them with the blobs that it would remove. What edits, document tips and snapshot records refer to is
in the index next to the reference counts, and is compared there; the rest is in the log alone. It shares nothing with
what compaction relies on: it is the second opinion.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from objstore.model.ids import BlobId
from objstore.model.record_codec import written_by
from objstore.model.records import Pin, Snapshot
from objstore.model.tree import names_of
from objstore.storage.index.refcounts import written_blobs
from objstore.storage.log.frames import FrameKind
from objstore.storage.log.segments import ReadAhead

if TYPE_CHECKING:
    from objstore.storage.store.object_store import Store

__all__ = ["blobs_referenced_outside_edits"]


def blobs_referenced_outside_edits(store: "Store") -> Iterator[BlobId]:
    """Yield each blob that unexpired decisions, pins, snapshots' trees and large blobs refer to.

    Some are yielded more than once. Raises BlobMissing, BlobDamaged, StoreDamaged and TreeInvalid.
    """
    index, ahead = store.index, ReadAhead(store.log)
    for _, place in index.decisions.unexpired_places():
        yield from written_blobs(written_by(ahead.payload(place, FrameKind.RECORD)))
    for row in index.holders.pins():
        record = store.record(row.place)[0]
        if not row.expired and isinstance(record, Pin):
            yield from record.blobs
    seen: set[BlobId] = set()
    for row in index.holders.snapshots():
        record = store.record(row.place)[0]
        if not row.expired and isinstance(record, Snapshot):
            yield record.root
            yield from _below(store, record.root, seen)
    for name in index.blobs.held_lists():
        yield from (chunk.id for chunk in store.chunks(name))


def _below(store: "Store", root: BlobId, seen: set[BlobId]) -> Iterator[BlobId]:
    """Yield what a tree and the trees below it refer to, except for trees that are in `seen`."""
    waiting = [root]
    while waiting:
        tree = waiting.pop()
        if tree in seen:
            continue
        seen.add(tree)
        for blob, is_tree in names_of(store.blob(tree)):
            yield blob
            if is_tree:
                waiting.append(blob)
