"""After a turn, the store is pushed in the background, and a status says how far the copy is behind."""

import json
import time
from pathlib import Path

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
