"""Purge, and what a crash may leave of it: text that history has let go of stays in no derived file."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from zstandard import ZstdDecompressor

from objstore import Action, BlobMissing, PurgeUnfinished, Unit, Workspace, blob_id, check_store, purge
from objstore.remains import Remains
from tests.store.countdown import CountdownDisk, PowerCut
from tests.store.scenes import write

SECRET: Final = b"the secret\n"
HEADER: Final = 8 + 32
"""Bytes before the packed part of a kept weave."""


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """Return a workspace whose only file once held the secret, with its weave kept."""
    root = tmp_path / "start"
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"one\n")
        write(workspace, "a.txt", SECRET)
        for i in range(70):
            write(workspace, "a.txt", b"%d\n" % i)
        units = [Unit(view.seq, hunk) for view in workspace.edits() for hunk in range(len(view.units))]
        workspace.decide(Action.ACCEPT, units)
        workspace.keep_documents()
    assert holds_secret(root)
    return root


def holds_secret(root: Path) -> bool:
    kept = (root / ".cas" / "cache").glob("weave-*")
    return any(SECRET in ZstdDecompressor().decompress(path.read_bytes()[HEADER:]) for path in kept)


def test_a_purge_that_was_killed_leaves_no_text_behind(start: Path, tmp_path: Path) -> None:
    states = set()
    for step in range(8):
        root = tmp_path / str(step)
        shutil.copytree(start, root)
        disk = CountdownDisk(step)
        with Workspace.open(root, disk) as workspace, pytest.raises(PowerCut):
            workspace.purge([blob_id(SECRET)])
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            has_expired = workspace.edit(2).expired is not None
        assert not (has_expired and holds_secret(root)), f"after {disk.done}: {disk.failed}"
        states.add(has_expired)
    assert states == {False, True}


def test_a_purge_that_others_kept_from_its_end_says_so_and_is_done_when_it_is_asked_again(
    start: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.open(start) as workspace, Workspace.open(start) as other:
        assert other.blob(blob_id(SECRET)) == SECRET
        with monkeypatch.context() as patch:
            patch.setattr(purge, "_TRIES", 0)
            with pytest.raises(PurgeUnfinished, match="again"):
                workspace.purge([blob_id(SECRET)])
        assert workspace.blob(blob_id(SECRET)) == SECRET
        workspace.purge([blob_id(SECRET)])
        for asked in (workspace, other):  # neither has it at hand any more
            with pytest.raises(BlobMissing):
                asked.blob(blob_id(SECRET))


def test_what_a_purge_removed_stays_removed(start: Path) -> None:
    disk = CountdownDisk(None)
    with Workspace.open(start, disk) as workspace:
        workspace.purge([blob_id(SECRET)])
    removals = [at for at, operation in enumerate(disk.done) if operation == "remove_store_file"]
    assert removals
    assert "sync_directory" in disk.done[removals[-1] :]


def test_what_is_purged_goes_from_the_log_also_where_the_index_has_lost_sight_of_it(start: Path) -> None:
    with Workspace.open(start, CountdownDisk(None)) as workspace:
        with closing(sqlite3.connect(start / ".cas" / "index.sqlite")) as db, db:
            assert db.execute("DELETE FROM blobs WHERE id = ?", (blob_id(SECRET),)).rowcount == 1
        workspace.purge([blob_id(SECRET)])
    with Remains(str(start / ".cas" / "segments")) as remains:
        assert blob_id(SECRET) not in remains.blobs
    assert check_store(str(start)).faults == ()
