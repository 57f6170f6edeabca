"""The baseline: no collection takes the snapshot that files without an edit are compared with."""

import pytest

from objstore import CallInfo, Origin, RetentionLimits, Workspace, blob_id, check_store
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
