"""`NAME/` before an edit, a hunk or nothing means another store, and a file of that name is still a file."""

from pathlib import Path

import pytest

from objstore import TurnInfo
from tests.support.command_runner import CommandRunner


@pytest.fixture
def lap(tmp_path: Path) -> CommandRunner:
    """Return a store that has pulled the store `desk`, with one edit of a turn."""
    runners = []
    for name in ("desk", "lap"):
        (tmp_path / name).mkdir()
        runners.append(CommandRunner(tmp_path / name))
    desk, lap = runners
    turn = TurnInfo(session="run", began=1, prompt="Write a")
    desk.call(lambda call: call.write("a.txt", b"one\ntwo\n"), turn=turn)
    for runner in runners:
        runner.done("remote", "add", "team", f"file://{tmp_path}/bucket")
        runner.done("push")
    lap.done("pull")
    return lap


def test_names_of_another_store_are_looked_up_there(lap: CommandRunner) -> None:
    assert "a.txt" in lap.done("log", "desk/").text
    assert "a.txt" in lap.done("log", "desk/a.txt").text
    assert "+one" in lap.done("show", "desk/1").text
    assert "+two" in lap.done("show", "team/desk/1:0").text
    assert "+one" in lap.done("diff", "desk/").text
    assert "Write a" in lap.done("log", "--turns", "desk/").text
    assert "run" in lap.done("log", "--sessions", "--json", "desk/").text
    assert lap.cas("log").out == b""


def test_names_of_two_stores_are_refused(lap: CommandRunner) -> None:
    lap.write("b.txt", b"b\n")
    assert lap.cas("show", "desk/1", "1").status == 2
    assert lap.cas("reject", "desk/1", "1").status == 2


def test_file_in_a_folder_of_that_name_is_a_file(lap: CommandRunner) -> None:
    lap.write("desk/a.txt", b"mine\n")
    assert "+mine" in lap.done("diff", "desk/a.txt").text
    assert "+one" in lap.done("show", "desk/1").text


def test_unknown_store_is_a_path_that_does_not_exist(lap: CommandRunner) -> None:
    assert lap.cas("show", "nobody/1").status == 1
    assert lap.cas("log", "--turns", "nobody/").status == 1


def test_remote_and_pull_say_what_is_undecided_there(lap: CommandRunner) -> None:
    assert "desk  1 edit, 1 undecided" in lap.done("remote").text
    lap.done("reject", "desk/1")
    assert "undecided" not in lap.done("remote").text
    (remote,) = lap.done("remote", "--json").lines()
    assert [(store["edits"], store["undecided"]) for store in remote["stores"]] == [(1, 0)]
    desk = CommandRunner(lap.folder.with_name("desk"))
    desk.write("b.txt", b"new\n")
    desk.done("push")
    assert "2 edits; 1 undecided (`cas review desk/`)." in lap.done("pull").text
