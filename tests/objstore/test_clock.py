"""Test that edits are recorded and kept while the machine's clock is set before 1970."""

import time
from pathlib import Path

import pytest

from objstore import Action, AgentCall, CallInfo, Seq, Unit, Workspace, check_store
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import UnsyncedDisk


def test_a_clock_before_1970_loses_no_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No system lets a test set its clock to that.
    monkeypatch.setattr(time, "time_ns", lambda: -86_400_000_000_000)
    Workspace.init(tmp_path, UnsyncedDisk()).close()
    with Workspace.open(tmp_path, UnsyncedDisk()) as workspace:
        write(workspace, "a.txt", b"one\n")
        (tmp_path / "a.txt").write_bytes(b"two\n")
        workspace.record_changes(CallInfo(tool="test"))
        workspace.hooks.begin(AgentCall(conversation="c", id="1", tool="t", paths=None))
        workspace.decide(Action.REJECT, [Unit(Seq(2), 0), Unit(Seq(2), 1)], who="person")
        workspace.snapshots.take(who="person")
        workspace.retention.collect(workspace.retention.limits())
    assert (tmp_path / "a.txt").read_bytes() == b"one\n"
    with Workspace.open(tmp_path, UnsyncedDisk()) as workspace:
        assert {view.edit.time for view in workspace.history.edits()} == {0}
    assert check_store(str(tmp_path)).faults == ()
