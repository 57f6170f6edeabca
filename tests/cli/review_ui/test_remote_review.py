"""`cas review NAME/` in a real terminal: what another store has is decided once, and carried out there."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from cli.review_ui.remote_review import NEED_FILES, UNDO
from objstore import Workspace
from tests.cli.review_ui.test_review import GROUP, press
from tests.support.command_runner import CommandRunner
from tests.support.crash_scenarios import files, write
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.review_server import review_server
from tests.support.shared_stores import AFTER, carried, pull, pushed_desk
from tests.support.terminal_driver import TerminalDriver, run_in_terminal


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """Return the workspace of somebody else, which has pushed two changes of one file, and a new one."""
    return pushed_desk(tmp_path, {"b.txt": b"new\n"})


@pytest.fixture
def lap(desk: Path, runner: CommandRunner) -> CommandRunner:
    """Return a workspace of ours that has pulled it."""
    pull(runner.folder, desk)
    return runner


def review(lap: CommandRunner, tmp_path: Path, *words: str) -> AbstractContextManager[TerminalDriver]:
    settings = {"XDG_STATE_HOME": str(tmp_path / "state")}
    return run_in_terminal("plain", "review", *words, folder=lap.folder, scratch=tmp_path / "stage", **settings)


def test_changes_of_another_store_are_decided_one_by_one(lap: CommandRunner, desk: Path, tmp_path: Path) -> None:
    own = files(lap.folder)
    with review(lap, tmp_path, "desk/") as terminal:
        terminal.wait_for(r"Decide on .*1:1.*\] $")
        press(terminal, "X", r"Reason: $")
        said = press(terminal, "Not in capitals.\r", r"2 of 3.*\] $")
        assert "Decision 1 asks desk (team)" in said
        for key in NEED_FILES:
            said = press(terminal, key, r"2 of 3.*\] $")
            other = "`cas reopen desk/1:1` asks desk for that" if key in UNDO else "Only desk (team) can do that"
            assert other in said
        press(terminal, "c", r"Comment: $")
        said = press(terminal, "And here?\r", r"2 of 3.*\] $")
        assert "Comment 2 is for desk (team)" in said
        assert "comment not taken over yet  1:2" in said
        press(terminal, "a", r"3 of 3.*\] $")
        terminal.type("q")
        assert "1 change accepted, 1 change rejected, 1 change left pending in 1 file." in terminal.wait_for(
            r"pending in 1 file\."
        )
    assert (desk / "a.txt").read_bytes() == AFTER
    assert files(lap.folder) == own
    assert carried(desk) == [("carried", "Not in capitals."), ("carried", "And here?"), ("carried", "")]
    assert (desk / "a.txt").read_bytes() == AFTER.replace(b"LINE 3\n", b"line 3\n")


def test_text_that_could_not_be_sent_is_offered_again(lap: CommandRunner, desk: Path, tmp_path: Path) -> None:
    bucket, away = desk.with_name("bucket"), desk.with_name("away")
    with review(lap, tmp_path, "desk/") as terminal:
        terminal.wait_for(r"1 of 3.*\] $")
        press(terminal, "c", r"Comment: $")
        bucket.rename(away)
        bucket.write_bytes(b"")
        assert "cas: " in press(terminal, "Why?\r", r"1 of 3.*\] $")
        press(terminal, "c", r"Comment \(Enter alone: Why\?; Ctrl-D: none\): $")
        press(terminal, "\r", r"1 of 3.*\] $")
        press(terminal, "X", r"Reason: $")
        press(terminal, "Not so.\r", r"1 of 3.*\] $")
        bucket.unlink()
        away.rename(bucket)
        press(terminal, "c", r"Enter alone: Why\?; Ctrl-D: none\): $")
        assert "Comment 1 is for desk" in press(terminal, "\r", r"1 of 3.*\] $")
        press(terminal, "c", r"Comment: $")
        press(terminal, "\r", r"1 of 3.*\] $")
        press(terminal, "X", r"Reason \(Enter alone: Not so\.; Ctrl-D: none\): $")
        press(terminal, "No.\r", r"2 of 3.*\] $")
        press(terminal, "q", r"left pending")
    assert carried(desk) == [("carried", "Why?"), ("carried", "No.")]


def test_review_that_is_left_goes_on_with_what_is_undecided(lap: CommandRunner, desk: Path, tmp_path: Path) -> None:
    lap.done("accept", "desk/1")
    with review(lap, tmp_path, "desk/") as terminal:
        terminal.wait_for(r"1 of 1.*Decide on \[2:.*\] $")
        terminal.type("a")
        assert "nothing is left pending" in terminal.wait_for(r"left pending\.")
    lap.done("pull")
    with review(lap, tmp_path, "desk/") as terminal:
        terminal.wait_for(r"Nothing is pending\.")
    assert [result for result, _ in carried(desk)] == ["carried", "carried"]


def test_review_of_one_edit_and_of_a_file_of_another_store(lap: CommandRunner, tmp_path: Path) -> None:
    with review(lap, tmp_path, "desk/2") as terminal:
        terminal.wait_for(r"1 of 1.*Decide on \[2:.*\] $")
        terminal.type("q")
        terminal.wait_for(r"left pending in 1 file\.")
    with review(lap, tmp_path, "desk/a.txt") as terminal:
        terminal.wait_for(r"1 of 2.*Decide on .*\] $")
        press(terminal, "f", GROUP)
        terminal.type("a")
        said = terminal.wait_for(r"go on with them \[j\], or end.*\] $")
        assert "Accepted 2 changes in a.txt." in said
        assert "undo" not in said.rpartition("Nothing of these")[2]
        terminal.type("q")
        terminal.wait_for(r"2 changes accepted.*1 other change is\.")


def test_what_somebody_else_decided_meanwhile_is_said(lap: CommandRunner, desk: Path, tmp_path: Path) -> None:
    with review(lap, tmp_path, "desk/a.txt") as terminal:
        terminal.wait_for(r"1 of 2.*\] $")
        third = desk.with_name("third")
        third.mkdir()
        with Workspace.init(third, UnsyncedDisk()) as workspace:
            workspace.remotes.add("team", desk.with_name("bucket").as_uri())
        other = CommandRunner(third)
        other.done("pull")
        other.done("reject", "desk/1")
        assert "is decided: reject by" in press(terminal, "a", r"\] $")
        terminal.type("q")
        terminal.wait_for(r"0 changes accepted, 0 changes rejected")


def test_refused_decision_is_said_first_and_can_be_made_again(lap: CommandRunner, desk: Path, tmp_path: Path) -> None:
    lap.done("reject", "desk/1:1")
    with Workspace.open(desk, UnsyncedDisk()) as workspace:
        write(workspace, "a.txt", AFTER.replace(b"LINE 3\n", b"LINE three\n"))
        (refused,) = workspace.remote_decisions.carry("team")
        assert refused.result == "refused"
    lap.done("pull")
    with review(lap, tmp_path, "desk/a.txt") as terminal:
        said = terminal.wait_for(r"Decide on .*\] $")
        assert "desk refused to reject 1:1, as " in said
        assert "Decision 3 asks" in press(terminal, "x", r"2 of 2.*\] $")
        terminal.type("q")
        terminal.wait_for(r"left pending")


def test_decision_is_taken_back_by_the_command_that_undo_names(lap: CommandRunner, desk: Path) -> None:
    lap.done("reject", "desk/1:1")
    assert carried(desk) == [("carried", "")]
    lap.done("pull")
    lap.done("reopen", "desk/1:1")
    assert carried(desk) == [("carried", "")]
    assert (desk / "a.txt").read_bytes() == AFTER


def test_accepted_hunk_of_a_change_of_another_store_is_rejected_after_a_question(
    desk: Path, runner: CommandRunner, tmp_path: Path
) -> None:
    amended = AFTER.replace(b"LINE 3\n", b"Line 3\n")
    desk.joinpath("amended").write_bytes(amended)
    CommandRunner(desk).done("amend", "1", "--from", str(desk / "amended"))
    with Workspace.open(desk, UnsyncedDisk()) as workspace:
        workspace.remotes.push("team")
    pull(runner.folder, desk)
    with review(runner, tmp_path, "desk/a.txt") as terminal:
        terminal.wait_for(r"1 of 2.*Decide on \[1:1 3:1\].*\] $")
        said = press(terminal, "x", r"Reject all of it \[y\].*\] $")
        assert "This rejects 2 edits, 1 of them accepted: edit 3." in said
        press(terminal, "n", r"1 of 2.*\] $")
        press(terminal, "x", r"Reject all of it \[y\].*\] $")
        assert "Decision 1 asks desk (team)" in press(terminal, "y", r"2 of 2.*\] $")
        terminal.type("q")
        terminal.wait_for(r"left pending")
    assert carried(desk) == [("carried", "")]
    assert (desk / "a.txt").read_bytes() == AFTER.replace(b"LINE 3\n", b"line 3\n")


def test_what_goes_along_in_another_store_is_listed_before(desk: Path, runner: CommandRunner, tmp_path: Path) -> None:
    desk.joinpath("amended").write_bytes(AFTER.replace(b"LINE 3\n", b"Line 3\n"))
    there = CommandRunner(desk)
    there.done("reject", "1:2")
    desk.joinpath("amended").write_bytes(desk.joinpath("a.txt").read_bytes().replace(b"line 28\n", b"Line 28\n"))
    there.done("amend", "1", "--from", str(desk / "amended"))
    with Workspace.open(desk, UnsyncedDisk()) as workspace:
        workspace.remotes.push("team")
    pull(runner.folder, desk)
    along = "This rejects 2 edits, 1 of them accepted: edit 3. Would also reject edit 3, which depends on it."
    status, said = runner.typed_at("[y/N]", lambda: "n\n", "reject", "desk/1:1")
    assert (status, along in said) == (130, True), said
    with review(runner, tmp_path, "desk/a.txt") as terminal:
        terminal.wait_for(r"Decide on \[1:1\].*\] $")
        assert along in press(terminal, "x", r"Reject all of it \[y\].*\] $")
        press(terminal, "n", r"Decide on .*\] $")
        terminal.type("q")
        terminal.wait_for(r"left pending")
    with review_server(runner.folder, "desk/") as server:
        file = server.get("/api/file", document=server.queue()["files"][0]["document"])
        change = next(change for change in file["all"] if change["hunks"] == ["1:1"])
        screen = {change["key"]: [[0, 100]]}
        asked = server.decide("reject", keys=[change["key"]], on_screen=screen)
        assert (asked["outcome"], asked["message"]) == ("confirm", along)
        assert asked["listed"] == [{"name": "3:1", "status": "accepted"}]
        done = server.decide("reject", keys=[change["key"]], on_screen=screen, ticket=asked["ticket"])
        assert done["outcome"] == "decided"
    assert carried(desk) == [("carried", "")]
    assert b"Line 28" not in (desk / "a.txt").read_bytes()
