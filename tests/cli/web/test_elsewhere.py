"""The page reviews what another store has: the same changes, and decisions that are carried out where the files are."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore import Workspace
from tests.support.command_runner import CommandRunner
from tests.support.crash_scenarios import files, write
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.review_server import WHOLE, ReviewServer, review_server
from tests.support.shared_stores import AFTER, carried, pull, pushed_desk


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """Return the workspace of somebody else, which has pushed two changes of one file."""
    return pushed_desk(tmp_path)


@pytest.fixture
def server(desk: Path, runner: CommandRunner) -> Iterator[ReviewServer]:
    """Return a server of ours that shows what the other store has."""
    pull(runner.folder, desk)
    with review_server(runner.folder, "desk/") as server:
        yield server


def test_what_another_store_has_is_shown_and_decided_once_where_the_files_are(
    server: ReviewServer, desk: Path, runner: CommandRunner
) -> None:
    queue = server.queue()
    assert (queue["root"], queue["changes"], queue["external_changes"]) == ("desk (team)", 2, [])
    assert queue["elsewhere"] == "desk (team)"
    first, second = server.keys("a.txt")
    document = queue["files"][0]["document"]
    assert server.get("/api/rejection", document=document, key=first)["words"].startswith("desk (team) carries it out")
    own = files(runner.folder)

    rejected = server.decide("reject", keys=[first], reason="Not in capitals.")
    assert (rejected["outcome"], rejected["changed"][0]["status"]) == ("decided", "rejected")
    assert (rejected["message"], rejected["decision"]) == ("Rejected 1 change in a.txt.", None)  # None: no undo here
    assert "Decision 1 asks desk (team)" in rejected["notes"][0]
    queue = server.queue()
    assert (queue["changes"], queue["decided"]) == (1, 1)
    shown = server.file("a.txt")["all"]
    assert [change.get("verdict") for change in shown] == ["rejected", None]
    assert shown[0]["awaited"].endswith(", not carried out yet: Not in capitals.")

    again = server.decide("accept", keys=[first])
    assert "desk/1:1 is decided: reject" in again["message"]
    assert "`cas undo desk/` takes back your newest decision" in server.post("/api/undo", number=1)["message"]
    refused = server.client.post("/api/comment", json={"units": ["1:1"], "text": "Why?"})
    assert (refused.status_code, "`cas comment desk/1:1 -m TEXT`" in refused.text) == (400, True)
    accepted = server.decide("accept", path="a.txt", on_screen={second: WHOLE, first: WHOLE})
    assert [change["name"] for change in accepted["changed"]] == ["1:0", "1:2"]
    assert server.queue()["files"] == []
    assert (desk / "a.txt").read_bytes() == AFTER
    assert files(runner.folder) == own

    assert carried(desk) == [("carried", "Not in capitals."), ("carried", "")]
    assert (desk / "a.txt").read_bytes() == AFTER.replace(b"LINE 3\n", b"line 3\n")
    runner.done("pull", "team")
    queue = server.queue()
    assert (queue["files"], queue["undo"]) == ([], 0)  # what is carried out can't be taken back here
    (edit,) = runner.done("log", "--json", "desk/").lines()
    assert [hunk["status"] for hunk in edit["hunks"]] == ["rejected", "accepted"]
    assert edit["reason"]


def test_a_refused_decision_is_said_and_can_be_made_again(
    server: ReviewServer, desk: Path, runner: CommandRunner
) -> None:
    first, _ = server.keys("a.txt")
    server.decide("reject", keys=[first])
    with Workspace.open(desk, UnsyncedDisk()) as workspace:
        write(workspace, "a.txt", AFTER.replace(b"LINE 3\n", b"LINE three\n"))
        (carried,) = workspace.remote_decisions.carry("team")
        assert carried.result == "refused"
    runner.done("pull", "team")
    queue = server.queue()
    assert (queue["changes"], queue["decided"]) == (2, 0)
    (said,) = queue["unreadable"]
    assert said.startswith("desk refused to reject 1:1, as ")
    assert server.decide("reject", keys=[server.keys("a.txt")[0]])["outcome"] == "decided"
    assert server.queue()["unreadable"] == []


def test_what_needs_the_files_is_refused_in_another_store(server: ReviewServer) -> None:
    key, _ = server.keys("a.txt")
    answer = server.client.post("/api/comment", json={"keys": [key], "text": "Why?"})
    assert (answer.status_code, "`cas comment desk/EDIT:HUNK" in answer.json()["error"]) == (400, True)
