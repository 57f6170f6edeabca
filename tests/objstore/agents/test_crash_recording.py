"""Test crashes while no file of the user changes: during a snapshot, and during a scan that records."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from objstore import CasError, Operation, Workspace, check_store
from tests.support.crash_scenarios import LOOK, SNAPSHOT, CrashScenario, Files, files
from tests.support.faulty_disk import WHOLE, CountdownDisk, PowerCut, broken_disk, full_disk, power_cut

Failure = Callable[[str], BaseException]
WAYS = pytest.mark.parametrize(
    ("failure", "torn", "lasting"),
    [
        pytest.param(power_cut, None, True, id="killed"),
        pytest.param(power_cut, 0.5, True, id="killed in a write"),
        pytest.param(full_disk, 0.5, False, id="disk full"),
        pytest.param(broken_disk, None, True, id="disk broken"),
    ],
)


def prepared(scene: CrashScenario, folder: Path) -> Path:
    """Return a workspace in which the scene can be played."""
    start = folder / "start"
    start.mkdir()
    with Workspace.init(start, CountdownDisk(None)) as workspace:
        scene.prepare(workspace)
    return start


def cut_off(
    scene: CrashScenario, start: Path, folder: Path, failure: Failure, *, torn: float | None, lasting: bool
) -> Iterator[Path]:
    """Yield a copy of the workspace for each third step at which the scene failed, and for all with `make crash`.

    What was not synced is lost in half of them.
    """
    for step in count(step=1 if WHOLE else 6):
        for loses in (False, True):
            root = folder / f"{step}{loses}"
            shutil.copytree(start, root, symlinks=True)
            disk = CountdownDisk(step, failure, torn=torn, lasting=lasting)
            workspace = Workspace.open(root, disk)
            with suppress(PowerCut, CasError):
                scene.act(workspace)
            disk.disarmed = True
            workspace.close()
            if loses and failure is power_cut:
                disk.lose_unsynced()
            if disk.failed is None:
                return
            yield root
            shutil.rmtree(root)


def sound(root: Path, before: Files) -> Workspace:
    """Return the workspace, opened again; the user's files must be as they were, and the store without fault."""
    workspace = Workspace.open(root)
    assert files(root) == before
    assert check_store(str(root)).faults == ()
    return workspace


@WAYS
def test_interrupted_snapshot_is_whole_or_absent(tmp_path: Path, failure: Failure, torn: float, lasting: bool) -> None:  # noqa: FBT001 - pytest passes it by name
    start = prepared(SNAPSHOT, tmp_path)
    before = files(start)
    outcomes = set()
    for root in cut_off(SNAPSHOT, start, tmp_path, failure, torn=torn, lasting=lasting):
        with sound(root, before) as workspace:
            found = workspace.snapshots.all()
            outcomes.add(len(found))
            if not found:
                SNAPSHOT.act(workspace)
            number = workspace.snapshots.all()[-1].number
            held = dict(workspace.snapshots.files(number))
            assert {
                path: (workspace.history.blob(s.blob), s.mode) for path, s in held.items() if s.blob is not None
            } == before
            assert workspace.snapshots.changes(number) == ([], ())
    assert 0 in outcomes


@WAYS
def test_interrupted_scan_is_recorded_whole_or_by_the_next_scan(
    tmp_path: Path,
    failure: Failure,
    torn: float,
    lasting: bool,  # noqa: FBT001 - pytest passes it by name
) -> None:
    start = prepared(LOOK, tmp_path)
    before = files(start)
    outcomes = set()
    for root in cut_off(LOOK, start, tmp_path, failure, torn=torn, lasting=lasting):
        with sound(root, before) as workspace:
            outcomes.add(len(workspace.history.edits()))
            LOOK.act(workspace)
            recorded = {(view.edit.operation, view.edit.path) for view in workspace.history.edits()[1:]}
            assert recorded == {
                (Operation.EDIT, b"a.txt"),
                (Operation.MOVE, b"moved.txt"),
                (Operation.DELETE, b"src/deep/d.py"),
                (Operation.CREATE, b"new.txt"),
            }
            assert workspace.review.external_changes() == ()
            LOOK.act(workspace)
            assert len(workspace.history.edits()) == 5
    assert outcomes <= {1, 5}
    assert 1 in outcomes
