"""`cas undo` takes back the newest thing that a person did, whatever it was, and says what it was."""

import time
from pathlib import Path

import pytest

from objstore import Status, TurnInfo
from tests.support.command_runner import CommandRunner

TEXT = b"one\ntwo\nthree\n"


@pytest.fixture
def edited(runner: CommandRunner) -> CommandRunner:
    """Return a workspace with a file by edit 1 and a change of it by edit 2, both pending."""
    runner.write("f", TEXT)
    runner.edit("f", b"two\n", b"2\n")
    return runner


def test_undo_takes_back_a_restore_before_the_acceptance_that_was_earlier(edited: CommandRunner) -> None:
    edited.done("accept", "2")
    edited.done("restore", "f@1")
    assert edited.bytes("f") == TEXT
    assert edited.done("undo").text == "Undid the restore of f (edit 3).\nRewrote f\n"
    assert edited.bytes("f") == TEXT.replace(b"two", b"2")
    assert edited.statuses() == {"1:0": Status.PENDING, "2:1": Status.ACCEPTED, "3:1": Status.REJECTED}
    assert edited.done("redo").text == "Redid the restore of f (edit 3).\nRewrote f\n"
    assert edited.bytes("f") == TEXT
    edited.done("undo")
    assert edited.done("undo").text == "Undid the acceptance of edit 2.\nNo file changed.\n"


def test_an_amendment_a_snapshot_and_a_rewind_are_taken_back_in_their_order(
    edited: CommandRunner, tmp_path: Path
) -> None:
    edited.done("snapshot")
    new = tmp_path / "new"
    new.write_bytes(TEXT.replace(b"two", b"zwei"))
    edited.done("amend", "2", "--from", str(new))
    turn = TurnInfo(session="s", began=time.time_ns() // 1000, prompt="again")
    edited.call(lambda call: call.write("g", b"new\n"), conversation="conv_two", turn=turn)
    edited.done("rewind", "1", "--exact")
    edited.done("snapshot", "restore", "1")
    assert edited.bytes("f") == TEXT.replace(b"two", b"2")
    assert edited.done("undo").text.startswith("Undid the restore of snapshot 1 (")
    assert edited.bytes("f") == TEXT.replace(b"two", b"zwei")
    assert not (edited.folder / "g").exists()
    assert edited.done("undo").text.startswith("Undid the rewind to before turn 1 (")
    assert (edited.folder / "g").read_bytes() == b"new\n"
    assert edited.done("undo").text.startswith("Undid the amendment of edit 2 (edit 3).")
    assert edited.bytes("f") == TEXT.replace(b"two", b"2")


def test_the_undo_of_a_restore_is_refused_where_the_file_changed_meanwhile(edited: CommandRunner) -> None:
    edited.done("restore", "f@1")
    (edited.folder / "f").write_bytes(b"mine\n")
    refused = edited.cas("undo")
    assert refused.status == 1
    assert "changed outside" in refused.said
    assert edited.bytes("f") == b"mine\n"


def test_json_says_what_an_undo_took_back(edited: CommandRunner) -> None:
    decision = edited.done("restore", "f@1", "--json").json()["decision"]
    act = edited.done("undo", "--json").json()["act"]
    assert (act["decision"], act["kind"], act["words"]) == (decision, "restore", "restore of f")
    assert act["file_paths"] == [str(edited.folder / "f")]


def test_a_rejection_counts_the_accepted_edits_before_and_after(edited: CommandRunner) -> None:
    edited.done("accept", "1")
    counted = "2 edits, 1 of them accepted: edit 1."
    planned = edited.done("reject", "--all", "--dry-run")
    assert counted in planned.text
    shape = edited.done("reject", "--all", "--dry-run", "--json").json()
    assert (shape["edits"], shape["accepted_edits"], shape["taken_back"]) == (2, 1, ["1:0"])
    assert edited.done("reject", "--all").text.startswith(f"Rejected edits 1 2.\n{counted}\n")
