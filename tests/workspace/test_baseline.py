"""The baseline: no collection takes the snapshot that files without an edit are compared with."""

import pytest

from objstore import (
    BlobMissing,
    CallInfo,
    NoSuchName,
    Origin,
    RetentionLimits,
    Workspace,
    blob_id,
    check_store,
)
from tests.workspace.scene import Scene

NOBODY = CallInfo(tool="", origin=Origin.EXTERNAL)
SHELL = CallInfo(tool="Bash", conversation="c")


@pytest.mark.parametrize(
    "limits",
    [RetentionLimits(older_than=0, max_size=None), RetentionLimits(older_than=None, max_size=1)],
    ids=["by age", "by size"],
)
def test_no_collection_takes_the_baseline_that_live_files_need(scene: Scene, limits: RetentionLimits) -> None:
    untouched = {f"folder/{number}": b"never recorded %d\n" % number * 50 for number in range(20)}
    (scene.root / "folder").mkdir()
    for path, content in untouched.items():
        (scene.root / path).write_bytes(content)
    scene.workspace.record_changes(NOBODY)
    (baseline,) = scene.workspace.snapshots()
    assert baseline.who == ""
    for number in range(30):
        scene.write("file", b"state %d\n" % number * 100)
    scene.accept(*range(1, 31))
    for thorough in (False, True):
        assert scene.workspace.collect(limits, who="test", thorough=thorough).is_done
    assert scene.workspace.snapshots() == [baseline]
    assert all(scene.workspace.blob(blob_id(content)) == content for content in untouched.values())
    assert check_store(str(scene.root)).faults == ()
    # What a command then deletes can still be told and brought back.
    for path in untouched:
        (scene.root / path).unlink()
    gone = {edit.edit.path.decode(): edit.edit.before for edit in scene.workspace.record_changes(SHELL).edits}
    assert gone.keys() == untouched.keys()
    with Workspace.open(scene.root) as again:
        for path, state in gone.items():
            assert state is not None
            assert again.blob(state.blob) == untouched[path]


@pytest.fixture
def looked(scene: Scene) -> Scene:
    """Return a workspace whose first look found a secret, which was recorded to be gone, and files never recorded."""
    (scene.root / "folder/deep").mkdir(parents=True)
    (scene.root / "folder/secret").write_bytes(b"the secret\n")
    (scene.root / "folder/file").write_bytes(b"work\n")
    (scene.root / "folder/deep/file").write_bytes(b"deep\n")
    scene.workspace.record_changes(NOBODY)
    (scene.root / "folder/secret").write_bytes(b"clean\n")
    scene.workspace.record_changes(NOBODY)
    return scene


def change_what_was_never_recorded(scene: Scene) -> None:
    (scene.root / "folder/file").write_bytes(b"work\nmore\n")
    (scene.root / "folder/deep/file").unlink()
    (scene.root / "new").write_bytes(b"new\n")


def told(scene: Scene, since: int) -> dict[str, bytes | None]:
    """Return the files of which edits tell from one number on, with what each held before, as the store has it."""
    found: dict[str, bytes | None] = {}
    for view in scene.workspace.edits():
        if view.seq >= since:
            before = view.edit.before
            found[view.edit.path.decode()] = None if before is None else scene.workspace.blob(before.blob)
    return found


CHANGED = {"folder/file": b"work\n", "folder/deep/file": b"deep\n", "new": None}


@pytest.mark.parametrize("changed", ["after", "before"])
def test_a_purge_of_what_the_baseline_holds_leaves_the_rest_of_it_known(looked: Scene, changed: str) -> None:
    (old,) = looked.workspace.snapshots()
    since = looked.workspace.next_edit()
    if changed == "before":
        change_what_was_never_recorded(looked)
    plan = looked.workspace.plan_purge(path="folder/secret")
    assert (plan.snapshots, plan.baseline) == ((old.number,), old.number)
    looked.workspace.purge(plan.blobs, force=True)
    (baseline,) = looked.workspace.snapshots()
    held = {path: state.kind for path, state in looked.workspace.snapshot_files(baseline.number)}
    assert held == {"folder/deep/file": "file", "folder/file": "file", "folder/secret": "left-out"}
    if changed == "after":
        change_what_was_never_recorded(looked)
    looked.workspace.collect(RetentionLimits(older_than=None, max_size=None), who="test", thorough=True)
    looked.reopen()
    assert looked.workspace.record_changes(SHELL).baseline is None
    assert told(looked, since) == CHANGED
    assert not looked.workspace.record_changes(SHELL).edits
    assert check_store(str(looked.root)).faults == ()


@pytest.mark.parametrize("changed", ["after", "before"])
def test_giving_the_baseline_up_leaves_nothing_untold(looked: Scene, changed: str) -> None:
    (old,) = looked.workspace.snapshots()
    since = looked.workspace.next_edit()
    if changed == "before":
        change_what_was_never_recorded(looked)
    assert looked.workspace.delete_snapshots([old.number], who="me") == [old]
    (baseline,) = looked.workspace.snapshots()
    assert baseline.who == ""
    if changed == "after":
        change_what_was_never_recorded(looked)
    looked.workspace.collect(RetentionLimits(older_than=None, max_size=None), who="test", thorough=True)
    looked.reopen()
    assert looked.workspace.record_changes(SHELL).baseline is None
    assert told(looked, since) == CHANGED
    assert not looked.workspace.record_changes(SHELL).edits
    assert check_store(str(looked.root)).faults == ()


def test_what_is_ignored_by_now_goes_with_the_baseline_that_held_it(looked: Scene) -> None:
    (old,) = looked.workspace.snapshots()
    (looked.root / ".casignore").write_bytes(b"deep/\n")
    looked.workspace.delete_snapshots([old.number], who="me")
    looked.workspace.collect(RetentionLimits(older_than=None, max_size=None), who="test", thorough=True)
    with pytest.raises(BlobMissing):
        looked.workspace.blob(blob_id(b"deep\n"))


def test_no_snapshot_is_deleted_where_one_of_them_is_not_there(looked: Scene) -> None:
    before = looked.workspace.snapshots()
    with pytest.raises(NoSuchName):
        looked.workspace.delete_snapshots([before[0].number, 99], who="me")
    assert looked.workspace.snapshots() == before
