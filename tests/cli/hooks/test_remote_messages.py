"""What others say about a store's edits by the log of a bucket reaches its agents once the person was shown it."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from objstore import Workspace
from tests.support.command_runner import PROGRAM, CommandRunner, environment
from tests.support.hooked_agents import ClaudeCode, recorded_project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the size of a pipe can be set on Linux alone")

PAGE = 4096


def test_what_others_say_reaches_an_agent_once_a_pull_has_shown_it(tmp_path: Path) -> None:
    desk, lap = (CommandRunner(recorded_project(tmp_path / name, "a.txt")) for name in ("desk", "lap"))
    session = ClaudeCode(desk.folder)
    session.run("echo 4 >> a.txt; echo x > b.txt")
    for runner in (desk, lap):
        runner.done("remote", "add", "team", (tmp_path / "bucket").as_uri())
    desk.done("push")
    lap.done("pull")
    lap.done("comment", "desk/a.txt:4", "-m", "Three is enough.")
    lap.done("reject", "--file", "desk/b.txt", "-m", "No x.")

    shown, full = os.pipe()
    fcntl.fcntl(full, fcntl.F_SETPIPE_SZ, PAGE)
    os.write(full, bytes(PAGE))  # what the pull writes waits until somebody reads
    with (
        subprocess.Popen([*PROGRAM, "pull"], cwd=desk.folder, env=environment({}), stdout=full) as pull,
        os.fdopen(shown, "rb") as reading,
    ):
        os.close(full)
        with Workspace.open(desk.folder) as workspace:
            while not (workspace.comments.all() and workspace.review.in_force()):
                assert pull.poll() is None
                time.sleep(0.02)
        assert session.ask("go on") == ""
        said = reading.read()
    assert pull.returncode == 0
    assert b"Three is enough." in said
    assert b"No x." in said
    message = session.ask("and now?")
    assert "Three is enough." in message
    assert "No x." in message
