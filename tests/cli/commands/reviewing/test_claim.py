"""`cas claim` says whose a change is that was found on disk while an agent worked."""

from contextlib import closing
from pathlib import Path

import pytest

from objstore import CallInfo, Origin, Status
from objstore.disk.fs.file_state import file_at
from objstore.review.calls.edit_recorder import Recorder, external_change, version_of
from objstore.storage.transaction.journal import Journal
from tests.support.command_runner import CommandRunner
from tests.support.faulty_disk import UnsyncedDisk


@pytest.fixture
def found(turns: CommandRunner) -> CommandRunner:
    """Return a workspace with an unattributed edit 6, which two sessions may have made, and the person's edit 7."""
    (turns.folder / "a").write_bytes(b"1\ntwo\nthree\n4\n5\n")
    notes = {"candidates": "one\ntwo\nunknown"}
    record_found(turns.folder, "a", CallInfo(tool="", origin=Origin.UNATTRIBUTED, notes=notes))
    (turns.folder / "b").write_bytes(b"b\nmine\n")
    record_found(turns.folder, "b", CallInfo(tool="", origin=Origin.EXTERNAL))
    return turns


def record_found(root: Path, path: str, info: CallInfo) -> None:
    """Record what a file holds now, as hooks do for changes that no tool call explains."""
    with closing(Journal(str(root), UnsyncedDisk())) as journal, journal.writing() as batch:
        tip = journal.store.tip_at(path.encode())
        assert tip is not None
        found = version_of(file_at(journal.tree, path.encode()), journal.tree, path.encode())
        change = external_change(path.encode(), tip.document, tip.state, found, journal.store.text)
        assert change is not None
        Recorder(journal, batch).record_found([(change, info)])
        journal.commit(batch, ())


def facts(runner: CommandRunner, seq: int) -> tuple[str, str | None]:
    """Return the status and the owner of an edit."""
    (edit,) = runner.done("show", f"{seq}", "--json").json()["edits"]
    return edit["status"], edit["owner"]


def row(runner: CommandRunner, seq: int) -> str:
    return next(row for row in runner.done("log").text.splitlines() if row.split()[0] == str(seq))


def test_log_names_the_sessions_that_may_have_made_an_unattributed_edit(found: CommandRunner) -> None:
    assert row(found, 6).endswith("a  unattributed  (session 1 or 2?)")
    assert facts(found, 6) == ("pending", "unattributed")


def test_a_claimed_edit_is_of_a_session_and_of_no_turn(found: CommandRunner) -> None:
    found.done("accept", "1..5")
    found.done("claim", "6", "--session", "2")
    assert "[6:1]\n" in found.done("diff", "--session", "2").text
    assert found.cas("diff", "--turn", "3").text == ""
    assert [change["turns"] for file in found.done("diff", "--json").lines() for change in file["changes"]] == [[]]


def test_claimed_as_mine_is_accepted_and_no_agents(found: CommandRunner) -> None:
    assert found.done("claim", "6", "--mine").text == "Claimed edit 6 as yours, and accepted.\n"
    assert facts(found, 6) == ("accepted", None)
    assert row(found, 6).endswith("a  claimed by you  (unattributed)")
    found.done("undo")
    assert facts(found, 6) == ("pending", "unattributed")
    found.done("redo")
    assert facts(found, 6) == ("accepted", None)


def test_claimed_for_a_session_is_pending_and_decided_with_it(found: CommandRunner) -> None:
    assert found.done("claim", "6", "--session", "2").text == "Claimed edit 6 for codex 2.\n"
    assert facts(found, 6) == ("pending", "chat")
    assert row(found, 6).endswith("a  session 2  (unattributed)")
    assert [edit["seq"] for edit in found.done("log", "--session", "2", "--json").lines()] == [6, 4]
    found.done("reject", "--session", "2")
    assert found.bytes("a") == b"1\ntwo\nthree\n"


def test_undo_and_redo_of_a_claim_that_changed_no_status(found: CommandRunner) -> None:
    assert found.done("status", "--short").text.endswith(", 1 unattributed\n")
    found.done("claim", "6", "--session", "1")
    assert "unattributed" not in found.done("status", "--short").text
    assert found.done("undo").text.splitlines()[0] == "Undid the claim of edit 6."
    assert found.done("status", "--short").text.endswith(", 1 unattributed\n")
    assert facts(found, 6) == ("pending", "unattributed")
    found.done("redo")
    assert facts(found, 6) == ("pending", "one")
    found.done("undo")
    assert facts(found, 6) == ("pending", "unattributed")
    assert found.cas("undo").status == 1


def test_rewind_takes_out_what_was_claimed_for_the_session(found: CommandRunner) -> None:
    found.done("claim", "6", "--session", "1")
    found.done("rewind", "4")
    assert found.bytes("a") == b"1\ntwo\n3\n4\n"
    assert facts(found, 6)[0] == "rejected"


def test_person_s_own_change_that_is_claimed_for_a_session_awaits_review(found: CommandRunner) -> None:
    assert facts(found, 7)[0] == "accepted"
    found.done("claim", "7", "--session", "1")
    assert facts(found, 7) == ("pending", "one")
    found.done("claim", "7", "--mine")
    assert facts(found, 7) == ("accepted", None)


def test_rejected_edit_stays_rejected_when_it_is_claimed(found: CommandRunner) -> None:
    found.done("reject", "6")
    found.done("claim", "6", "--mine")
    assert facts(found, 6) == ("rejected", None)
    assert found.bytes("a") == b"1\ntwo\nthree\n4\n"


def test_all_unattributed_edits_are_claimed_at_once(found: CommandRunner) -> None:
    assert found.done("claim", "--all", "--mine", "--dry-run").text.startswith("Would claim edit 6")
    assert facts(found, 6)[0] == "pending"
    found.done("claim", "1..7", "--mine")
    assert facts(found, 6)[0] == "accepted"
    assert found.done("claim", "--all", "--mine").text == "Nothing to do: no change is unattributed.\n"
    assert found.done("claim", "6", "--mine").text == "Nothing to do: claimed like that already.\n"
    assert {status for name, status in found.statuses().items() if name.startswith("5")} == {Status.PENDING}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["5", "--mine"], 1, "It is recorded who made edit 5 (origin agent)"),
        (["6"], 2, "Pass --mine, or --session N"),
        (["6", "--mine", "--session", "1"], 2, "Pass --mine, or --session N"),
        (["--mine"], 2, "Name edits"),
        (["6", "--session", "9"], 1, "No session is named '9' here"),
        (["99", "--mine"], 1, "'99'"),
    ],
)
def test_claim_refuses_what_it_can_t_mean(found: CommandRunner, words: list[str], status: int, said: str) -> None:
    refused = found.cas("claim", *words)
    assert refused.status == status
    assert said in refused.said
    assert facts(found, 6) == ("pending", "unattributed")


def test_claim_in_json_names_what_changed(found: CommandRunner) -> None:
    shape = found.done("claim", "6", "--mine", "--json").json()
    assert (shape["outcome"], shape["action"]) == ("decided", "claim")
    assert shape["changed"] == [{"name": "6:1", "status": "accepted", "cascaded": False}]


def test_store_with_claims_is_consistent(found: CommandRunner) -> None:
    found.done("claim", "6", "--session", "2")
    found.done("undo")
    found.done("claim", "6", "--mine")
    assert found.done("fsck").status == 0
