"""A damaged page of the index: whoever meets it says so, and what to do; nobody ends with SQLite's own error."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from objstore import CallInfo, DiskFailed, Workspace, blob_id, check_store, repair_store
from objstore.limits import RetentionLimits
from tests.store.countdown import CountdownDisk
from tests.store.scenes import write

ACTS: Final[dict[str, tuple[str, Callable[[Workspace], object]]]] = {
    "look": ("decisions", lambda workspace: workspace.record_changes(CallInfo(tool="t", conversation="c"))),
    "snapshot": ("snapshots", lambda workspace: workspace.take_snapshot(who="somebody")),
    "collect": ("blobs", lambda workspace: workspace.collect(RetentionLimits(older_than=0, max_size=None))),
    "expire": ("edits", lambda workspace: workspace.expire(RetentionLimits(older_than=0, max_size=None))),
    "repack": ("blobs", lambda workspace: workspace.repack()),
    "plan a repack": ("blobs", lambda workspace: workspace.plan_repack()),
    "purge": ("edits", lambda workspace: workspace.purge([blob_id(b"first\n")], force=True)),
    "ask for a number": ("edits", lambda workspace: workspace.next_edit()),
    "status": ("edits", lambda workspace: workspace.status()),
}


def damage(root: Path, table: str) -> None:
    """Overwrite the page that a table of the index begins with."""
    index = root / ".cas" / "index.sqlite"
    with closing(sqlite3.connect(index)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        size = db.execute("PRAGMA page_size").fetchone()[0]
        page = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    with index.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)


@pytest.mark.parametrize(("table", "act"), ACTS.values(), ids=ACTS)
def test_a_damaged_page_is_said_in_a_sentence_wherever_it_is_met(
    tmp_path: Path, table: str, act: Callable[[Workspace], object]
) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
        workspace.record_changes(CallInfo(tool="t", conversation="c"))
        write(workspace, "a.txt", b"second\n")
    damage(tmp_path, table)
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace, pytest.raises(DiskFailed, match="may be deleted"):
        act(workspace)
    assert repair_store(check_store(str(tmp_path))).faults == ()
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        act(workspace)
