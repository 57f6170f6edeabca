"""Snapshots that hold unreadable blobs are found without reading anything twice."""

from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from objstore import Workspace
from objstore.disk.fs.disk import Disk
from objstore.history.snapshot_check import UnreadablePart, naming_snapshot, unreadable_parts
from objstore.model.ids import BlobId, blob_id
from objstore.model.records import Snapshot
from objstore.model.tree import FOLDER, TreeEntry, encode_tree
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import BlobMissing

DEPTH = 64
LOST = blob_id(b"lost")


def snapshot(number: int, root: BlobId) -> Snapshot:
    return Snapshot(number=number, time=number, root=root, path=None, who="me")


def folder(**named: BlobId) -> bytes:
    return encode_tree(TreeEntry(name.encode(), FOLDER, tree) for name, tree in named.items())


def test_each_folder_is_read_once_however_many_trees_name_a_lost_blob() -> None:
    # Two folders on each level, each of which holds both of the next: as many ways as 2 to the power of the depth.
    levels = [(folder(lost=LOST), folder(lost=LOST, other=LOST))]
    for _ in range(DEPTH):
        one, other = map(blob_id, levels[-1])
        levels.append((folder(a=one, b=other), folder(a=other, b=one, c=one)))
    trees = {blob_id(tree): tree for level in levels for tree in level}
    assert len(trees) == 2 * len(levels)
    read: list[BlobId] = []

    def reading(name: BlobId) -> bytes | None:
        assert name not in read
        read.append(name)
        return trees.get(name)

    records = [snapshot(1, blob_id(levels[-1][0])), snapshot(2, blob_id(levels[0][1])), snapshot(3, blob_id(b"none"))]
    parts = unreadable_parts(records, trees, reading)
    assert parts == {LOST: UnreadablePart((1, 2), is_tree=True), blob_id(b"none"): UnreadablePart((3,), is_tree=True)}


def test_the_snapshots_that_hold_a_lost_blob_are_in_ascending_order() -> None:
    numbers = [64, 1, 32, 2, 8, 16, 4]
    (part,) = unreadable_parts([snapshot(number, LOST) for number in numbers], (), lambda _: None).values()
    assert all(before < after for before, after in pairwise(part.snapshots))
    assert set(part.snapshots) == set(numbers)


def test_an_error_outside_the_snapshots_is_raised_unchanged(tmp_path: Path) -> None:
    with Workspace.init(tmp_path) as workspace:
        (tmp_path / "file").write_bytes(b"file\n")
        taken = workspace.snapshots.take(who="me").view
    with closing(Journal(str(tmp_path), Disk())) as journal, journal.reading() as store:
        with pytest.raises(BlobMissing) as caught, naming_snapshot(store, (taken.number, taken.root)):
            store.blob(LOST)
        assert caught.value.blob == LOST
