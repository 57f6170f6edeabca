"""An agent's shell neither decides on what another store has, nor carries out what others decided."""

import sys
from pathlib import Path

import pytest

from tests.support.client_process import ClientProcess
from tests.support.command_runner import CommandRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes can be named on Linux alone")


def _made(tmp_path: Path, name: str) -> CommandRunner:
    folder = tmp_path / name
    folder.mkdir()
    runner = CommandRunner(folder)
    (folder / "a.txt").write_text("one\ntwo\n")
    runner.done("record")
    runner.done("remote", "add", "team", f"file://{tmp_path}/bucket")
    return runner


def test_agent_neither_decides_elsewhere_nor_carries_out(tmp_path: Path) -> None:
    desk, lap = _made(tmp_path, "desk"), _made(tmp_path, "lap")
    changed = desk.folder / "a.txt"
    with ClientProcess(desk.folder) as client:
        client.begin()
        changed.write_text("one\nAGENT\n")
        client.end()
    for runner in (desk, lap):
        runner.done("push")
    lap.done("pull")
    with ClientProcess(lap.folder) as client:
        client.begin("cas")
        refused = client.cas("reject", "desk/1")
        assert refused.status == 1
        assert "a person decides" in refused.said
        other = f"file://{tmp_path}/other"
        for words in (
            "remote add other",
            "remote set team --push stop",
            "remote remove team",
            "remote gc",
            "push --again",
        ):
            refused = client.cas(*words.split(), *([other] if "add" in words else []))
            assert (refused.status, "a person decides" in refused.said) == (1, True), words
        client.end("cas")
    assert not (tmp_path / "other").exists()
    lap.done("reject", "desk/1", "-m", "not so")
    with ClientProcess(desk.folder) as client:
        client.begin("cas")
        pulled = client.cas("pull")
        assert "was not carried out" in pulled.said
        assert changed.read_text() == "one\nAGENT\n"
        client.end("cas")
    assert "Carried out" in desk.done("pull").text
    assert changed.read_text() == "one\ntwo\n"
