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


def test_comment_waits_with_its_change_until_the_other_store_takes_it_over(
    server: ReviewServer, desk: Path, runner: CommandRunner
) -> None:
    first, second = server.keys("a.txt")
    made = server.post("/api/comment", keys=[first], text="Why?\u202e")
    assert made["message"] == "Comment 1 is for desk (team): its next `cas pull` takes it over."
    server.decide("reject", keys=[second])
    server.post("/api/comment", units=["1:2"], text="And here?")  # of a change that is decided
    shown = server.file("a.txt")["all"]
    assert [[(each["text"], each["state"]) for each in change["waiting"]] for change in shown] == [
        [("Why?\\u202e", "not taken over yet")],
        [("And here?", "not taken over yet")],
    ]
    CommandRunner(desk).done("pull")
    runner.done("pull")
    (change,) = server.file("a.txt")["all"]
    assert [each["text"] for each in change["comments"]] == ["Why?\\u202e"]
    assert change["waiting"] == []


@pytest.mark.parametrize(
    ("route", "body", "status", "said"),
    [
        ("comment", {"path": "612e747874", "lines": [1, 1], "text": "Why?"}, 400, "Comment on the change instead"),
        ("comment", {"answers": 1, "text": "Because."}, 400, "answered and resolved by desk (team)"),
        ("comment/resolve", {"number": 1, "resolved": True}, 400, "answered and resolved by desk (team)"),
        ("comment", {"units": ["1:9"], "text": "Why?"}, 404, "1:9"),
        ("comment", {"units": [], "text": "Why?"}, 400, "empty"),
    ],
)
def test_comment_that_is_on_no_change_of_another_store_is_refused(
    server: ReviewServer, route: str, body: dict[str, object], status: int, said: str
) -> None:
    answer = server.client.post(f"/api/{route}", json=body)
    assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.text
