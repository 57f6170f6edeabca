"""Check whether a snapshot's trees can be read, and find the snapshots that hold unreadable blobs."""

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from objstore.model.ids import BlobId
from objstore.model.records import Record, Snapshot
from objstore.model.tree import decode_tree, named_blobs, walk_trees
from objstore.storage.index.refcounts import unexpired
from objstore.values.errors import UNREADABLE, TreeInvalid
from objstore.values.request_errors import SnapshotUnreadable

if TYPE_CHECKING:
    from objstore.storage.store.object_store import Store

__all__ = ["UnreadablePart", "is_tree_readable", "naming_snapshot", "unreadable_parts"]

_UNREADABLE: Final = (*UNREADABLE, TreeInvalid)


class UnreadablePart(NamedTuple):
    """A blob that can't be read and that snapshots hold."""

    snapshots: tuple[int, ...]  # the snapshots that hold it, ascending
    is_tree: bool  # whether it is a folder, not a file or a link


def is_tree_readable(store: "Store", root: BlobId) -> bool:
    """Return whether a tree and all trees below it can be read."""
    try:
        for _ in walk_trees(root, store.blob, set()):
            pass
    except _UNREADABLE:
        return False
    return True


@contextmanager
def naming_snapshot(store: "Store", *snapshots: tuple[int, BlobId]) -> Iterator[None]:
    """Turn read errors inside the block into SnapshotUnreadable for the one of `snapshots` that can't be read.

    Each snapshot is given as its number and tree.
    """
    try:
        yield
    except _UNREADABLE as error:
        for number, root in snapshots:
            if not is_tree_readable(store, root):
                raise SnapshotUnreadable(number, str(error)) from error
        raise


def unreadable_parts(
    records: Iterable[Record], sound: Container[BlobId], read: Callable[[BlobId], bytes | None]
) -> dict[BlobId, UnreadablePart]:
    """Return the blobs that are not `sound` and that unexpired snapshots hold, as far as their trees can be read.

    `read`: returns a tree's bytes (None: they can't be read). Each tree is read once, however many snapshots hold it.
    """
    snapshots: dict[BlobId, set[int]] = {}  # by the blob that they name
    for record in unexpired(records):
        if isinstance(record, Snapshot):
            snapshots.setdefault(record.root, set()).add(record.number)
    above: dict[BlobId, set[BlobId]] = {}  # the trees that name a tree or an unreadable file
    trees: set[BlobId] = set()
    waiting = list(snapshots)
    while waiting:
        tree = waiting.pop()
        if tree in trees:
            continue
        trees.add(tree)
        content = read(tree)
        with suppress(TreeInvalid):
            for blob, is_tree in () if content is None else named_blobs(decode_tree(content)):
                if is_tree or blob not in sound:
                    above.setdefault(blob, set()).add(tree)
                if is_tree:
                    waiting.append(blob)
    lost = [name for name in {**snapshots, **above} if name not in sound]
    return {name: UnreadablePart(tuple(sorted(_holding(name, above, snapshots))), name in trees) for name in lost}


def _holding(name: BlobId, above: dict[BlobId, set[BlobId]], snapshots: dict[BlobId, set[int]]) -> set[int]:
    """Return the snapshots that name a blob, or a tree above it."""
    found: set[int] = set()
    seen = {name}
    waiting = [name]
    while waiting:
        here = waiting.pop()
        found |= snapshots.get(here, set())
        waiting += above.get(here, set()) - seen
        seen |= above.get(here, set())
    return found
