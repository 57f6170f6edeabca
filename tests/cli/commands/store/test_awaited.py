"""What was decided on another store is said wherever its changes are shown, until it is carried out and pulled."""

from pathlib import Path

import pytest

from cli.app.invocation import reviewer
from objstore import Workspace
from tests.support.command_runner import CommandRunner
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.shared_stores import carried, pull, pushed_desk


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    return pushed_desk(tmp_path, {"b.txt": b"new\n"})


@pytest.fixture
def lap(desk: Path, runner: CommandRunner) -> CommandRunner:
    """Return a workspace of ours that has pulled desk's changes, and asks for the rejection of one."""
    pull(runner.folder, desk)
    runner.done("reject", "desk/1:1", "-m", "Not in capitals.")
    return runner


AWAITED = "not carried out yet: Not in capitals."


@pytest.mark.parametrize(
    "words",
    [
        ("log", "desk/"),
        ("log", "desk/a.txt"),
        ("log", "-p", "desk/"),
        ("show", "desk/1"),
        ("show", "desk/1:1"),
        ("diff", "desk/"),
    ],
)
def test_decision_that_is_not_carried_out_is_said_with_the_change(lap: CommandRunner, words: tuple[str, ...]) -> None:
    said = lap.done(*words).text
    assert said.count(f"rejected by {reviewer()}, {AWAITED}") == 1
    assert "1:1" in said


def test_edit_that_is_decided_whole_is_said_to_be_without_names(lap: CommandRunner) -> None:
    lap.done("accept", "desk/2")
    (line,) = [line for line in lap.done("log", "desk/").text.splitlines() if "accepted by" in line]
    assert line.strip() == f"accepted by {reviewer()}, not carried out yet"


def test_answer_names_few_hunks_and_only_those_that_change_anything(desk: Path, runner: CommandRunner) -> None:
    with Workspace.open(desk, UnsyncedDisk()) as workspace:
        write(workspace, "c.txt", b"".join(b"%d\n\n\n\n\n" % number for number in range(20)))
        write(workspace, "c.txt", b"".join(b"%d.\n\n\n\n\n" % number for number in range(20)))
        workspace.remotes.push("team")
    pull(runner.folder, desk)
    said = runner.done("reject", "desk/4").text
    assert f"reject {', '.join(f'desk/4:{hunk}' for hunk in range(1, 9))} and 12 more hunks." in said
    again = runner.cas("accept", "desk/4")
    assert (again.status, "desk/4:1 is decided" in again.said) == (1, True)


def test_sizes_say_how_many_changes_are_decided(lap: CommandRunner) -> None:
    assert "1 change decided, not carried out yet" in lap.done("diff", "--stat", "desk/").text


def test_json_has_the_decision(lap: CommandRunner) -> None:
    first, second = lap.done("log", "--json", "--reverse", "desk/").lines()
    (awaited,) = first["awaited"]
    assert (awaited["hunks"], awaited["action"], awaited["reason"]) == (["1:1"], "reject", "Not in capitals.")
    assert (awaited["result"], second["awaited"]) == ("open", [])
    (shown,) = lap.done("show", "--json", "desk/1").lines()
    assert shown["edits"][0]["awaited"] == [awaited]
    net = {each["file_path"].rpartition("/")[2]: each for each in lap.done("diff", "--json", "desk/").lines()}
    assert [change["awaited"] for change in net["a.txt"]["changes"]] == [[awaited], []]
    assert [change["awaited"] for change in net["b.txt"]["changes"]] == [[]]


def test_list_of_remotes_does_not_count_what_is_decided(lap: CommandRunner) -> None:
    assert "2 edits, 2 undecided" in lap.done("remote").text  # one hunk of the first is left
    lap.done("accept", "desk/1:2")
    assert "2 edits, 1 undecided" in lap.done("remote").text


def test_what_was_carried_out_is_said_until_it_is_pulled(lap: CommandRunner, desk: Path) -> None:
    assert carried(desk) == [("carried", "Not in capitals.")]
    lap.done("reject", "desk/2")  # reads the log, and fetches nothing
    assert "carried out since the last pull: Not in capitals." in lap.done("log", "desk/").text
    lap.done("pull")
    said = lap.done("log", "desk/").text
    assert "since the last pull" not in said
    assert "reason: Not in capitals." in said


def test_own_edits_have_none(lap: CommandRunner) -> None:
    lap.write("own.txt", b"own\n")
    (edit,) = lap.done("log", "--json").lines()
    assert edit["awaited"] == []
