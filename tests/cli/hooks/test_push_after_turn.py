"""After a turn, the store is pushed in the background, and a status says how far the copy is behind."""

import json
import shutil
import time
from pathlib import Path

from objstore import Workspace, blob_id
from objstore.disk.fs.disk import Disk
from objstore.upkeep.remote.remotes import Remotes
from tests.support.command_runner import PATIENCE, cas
from tests.support.hooked_agents import ClaudeCode, recorded_project


def _once_pushed(folder: Path) -> dict[str, object]:
    """Return what a status says of the remote when it has everything, or at last."""
    ends = time.monotonic() + PATIENCE
    while True:
        (remote,) = json.loads(cas("status", "--json", folder=folder).out)["remotes"]
        if not remote["is_behind"] or time.monotonic() > ends:
            return dict(remote)
        time.sleep(0.05)


def test_turn_that_ends_is_pushed_and_the_copy_survives_the_store(tmp_path: Path) -> None:
    folder = recorded_project(tmp_path / "project", "a.txt")
    url = f"file://{tmp_path}/bucket"
    assert cas("remote", "add", "backup", url, "--push", "stop", folder=folder).status == 0
    agent = ClaudeCode(folder)
    agent.start()
    agent.ask("Write it.")
    agent.write("a.txt", "written\n")
    agent.stop()
    assert _once_pushed(folder) == {"name": "backup", "is_behind": False, "edits_behind": 0, "failure": None}
    assert b"backup: all pushed" in cas("status", folder=folder).out
    cloned = cas("clone", url, str(tmp_path / "again"), folder=tmp_path)
    assert cloned.status == 0, cloned.text
    assert (tmp_path / "again" / "a.txt").read_text() == "written\n"


def test_push_that_fails_is_in_the_status_and_no_agent_hears_of_it(tmp_path: Path) -> None:
    folder = recorded_project(tmp_path / "project", "a.txt")
    bucket = tmp_path / "bucket"
    assert cas("remote", "add", "backup", f"file://{bucket}", "--push", "stop", folder=folder).status == 0
    for each in bucket.iterdir():
        each.rmdir()
    bucket.rmdir()
    bucket.write_text("no folder\n")
    agent = ClaudeCode(folder)
    agent.start()
    agent.ask("Write it.")
    agent.write("a.txt", "written\n")
    assert "push" not in agent.stop()
    ends = time.monotonic() + PATIENCE
    while b"the last push failed" not in (said := cas("status", folder=folder).out) and time.monotonic() < ends:
        time.sleep(0.05)
    assert b"the last push failed" in said


def test_turn_ends_while_a_push_can_not_go_on_and_is_pushed_later(tmp_path: Path) -> None:
    folder = recorded_project(tmp_path / "project", "a.txt")
    url = f"file://{tmp_path}/bucket"
    assert cas("remote", "add", "backup", url, "--push", "stop", folder=folder).status == 0
    agent = ClaudeCode(folder)
    agent.start()
    agent.ask("Write it.")
    agent.write("a.txt", "written\n")
    with Remotes(str(folder), Disk()).held("backup"):  # as a push over a slow line does
        agent.stop()
        assert b"backup: nothing pushed yet" in cas("status", folder=folder).out
    assert not _once_pushed(folder)["is_behind"]


def test_workspace_comes_back_from_its_copy_with_every_state(tmp_path: Path) -> None:
    folder = recorded_project(tmp_path / "project", "a.txt", "b.txt")
    url = f"file://{tmp_path}/bucket"
    assert cas("remote", "add", "backup", url, "--push", "stop", folder=folder).status == 0
    agent = ClaudeCode(folder)
    agent.start()
    for number in range(3):
        agent.ask("Write it.")
        agent.write("a.txt", f"written {number}\n")
        agent.stop()
    assert not _once_pushed(folder)["is_behind"]
    before = _states(folder)
    assert len(before) == 6
    shutil.rmtree(folder / ".cas")
    cloned = cas("clone", url, str(tmp_path / "again"), folder=tmp_path)
    assert cloned.status == 0, cloned.text
    assert cas("fsck", folder=tmp_path / "again").status == 0
    assert _states(tmp_path / "again") == before
    for name in ("a.txt", "b.txt"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def _states(folder: Path) -> dict[str, str]:
    """Return the hash of the content of each state that the history names, made again from its bytes."""
    found: dict[str, str] = {}
    with Workspace.open(folder) as workspace:
        for view in workspace.history.edits():
            for when, state in (("before", view.edit.before), ("after", view.edit.after)):
                if state is not None:
                    found[f"{view.seq} {when}"] = blob_id(workspace.history.blob(state.blob)).hex()
                    assert found[f"{view.seq} {when}"] == state.blob.hex()
    return found
