"""`cas import mcpdiff`: import another tool's history, as far as its hashes confirm it."""

import os
import time
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from objstore import EditView, Operation, Status, Workspace, blob_id, check_store
from objstore.upkeep.transfer.mcpdiff_format import (
    BadLine,
    DiffChains,
    McpdiffEntry,
    candidate_origins,
    candidate_results,
    entries,
)
from objstore.values.dates import date_of
from tests.support.client_process import ClientProcess
from tests.support.command_runner import CommandRunner, cas, with_progress
from tests.support.mcpdiff_history import McpDiff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@pytest.fixture
def mcpdiff(tmp_path: Path) -> McpDiff:
    """Return mcpdiff in a folder with two files and an empty history."""
    root = tmp_path / "ws"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "old.txt").write_text("old\n")
    return McpDiff(root)


def imported(mcpdiff: McpDiff, *words: str) -> dict[str, Any]:
    """Import the history into the workspace, and return the command's JSON."""
    CommandRunner(mcpdiff.root)
    files = files_of(mcpdiff.root)
    ran = cas("import", "mcpdiff", str(mcpdiff.history), "--json", *words, folder=mcpdiff.root)
    assert ran.err == b""
    assert files_of(mcpdiff.root) == files
    found: dict[str, Any] = ran.json()
    assert ran.status == (1 if found["problems"] else 0)
    checked = check_store(str(mcpdiff.root))
    assert checked.faults == ()
    return found


def files_of(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return content and modification time of each file of a workspace."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in root.rglob("*")
        if path.is_file() and not {".cas", ".mcp"} & set(path.relative_to(root).parts)
    }


def recorded_edits(root: Path) -> list[EditView]:
    """Return every edit."""
    with Workspace.open(root) as workspace:
        return workspace.history.edits()


def edit_summaries(root: Path) -> list[tuple[str, str, str, str]]:
    """Return each edit's conversation, operation, path and status."""
    return [
        (view.edit.conversation, str(view.edit.operation), os.fsdecode(view.edit.path), str(view.status))
        for view in recorded_edits(root)
    ]


# ---- imported edits


def test_every_kind_of_edit_is_imported_with_its_status(mcpdiff: McpDiff) -> None:
    created = mcpdiff.write("conv_1", "new.txt", "new\n")
    mcpdiff.write("conv_1", "a.txt", "one\n2\nthree\n")
    mcpdiff.move("conv_1", "a.txt", "sub/b.txt")
    mcpdiff.write("conv_2", "sub/b.txt", "one\n2\nthree\nfour\n")
    deleted = mcpdiff.delete("conv_2", "old.txt")
    mcpdiff.write("conv_2", "old.txt", "again\n")
    mcpdiff.set_status(created, "accepted")
    mcpdiff.set_status(deleted, "accepted")
    found = imported(mcpdiff)
    assert found == {
        "recorded": True,
        "edits": 6,
        "accepted": 2,
        "rejected": 0,
        "external": 0,
        "already": 0,
        "unchanged": 0,
        "problems": [],
    }
    assert edit_summaries(mcpdiff.root) == [
        ("conv_1", "create", "new.txt", "accepted"),
        ("conv_1", "replace", "a.txt", "pending"),
        ("conv_1", "move", "sub/b.txt", "pending"),
        ("conv_2", "replace", "sub/b.txt", "pending"),
        ("conv_2", "delete", "old.txt", "accepted"),
        ("conv_2", "create", "old.txt", "pending"),
    ]
    assert [view.edit.call for view in recorded_edits(mcpdiff.root)] == [0, 1, 2, 0, 1, 2]
    assert [view.edit.time % 60_000_000 for view in recorded_edits(mcpdiff.root)] == [
        n * 1_000_000 for n in range(1, 7)
    ]
    # Each imported edit can be decided on, in any order.
    assert cas("reject", "2", folder=mcpdiff.root).status == 0
    assert (mcpdiff.root / "sub" / "b.txt").read_text() == "one\ntwo\nthree\nfour\n"
    assert cas("reject", "3", folder=mcpdiff.root).status == 0
    assert (mcpdiff.root / "a.txt").read_text() == "one\ntwo\nthree\nfour\n"


def test_a_rejected_edit_is_imported_as_rejected_and_can_be_accepted(mcpdiff: McpDiff) -> None:
    first = mcpdiff.write("c", "a.txt", "ONE\ntwo\nthree\n")
    mcpdiff.write("c", "a.txt", "ONE\ntwo\nTHREE\n")
    mcpdiff.set_status(first, "rejected")
    (mcpdiff.root / "a.txt").write_text("one\ntwo\nTHREE\n")  # as mcpdiff leaves it
    found = imported(mcpdiff)
    assert (found["edits"], found["rejected"], found["external"]) == (2, 1, 0)
    assert [view.status for view in recorded_edits(mcpdiff.root)] == [Status.REJECTED, Status.PENDING]
    assert cas("accept", "1", folder=mcpdiff.root).status == 0
    assert (mcpdiff.root / "a.txt").read_text() == "ONE\ntwo\nTHREE\n"


@pytest.mark.parametrize("operation", ["create", "delete", "move"])
def test_a_rejected_file_operation_is_imported_as_rejected(mcpdiff: McpDiff, operation: str) -> None:
    operations: dict[str, Callable[[], str]] = {
        "create": lambda: mcpdiff.write("c", "new.txt", "new\n"),
        "delete": lambda: mcpdiff.delete("c", "a.txt"),
        "move": lambda: mcpdiff.move("c", "a.txt", "b.txt"),
    }
    before = files_of(mcpdiff.root).keys()
    edit = operations[operation]()
    after = {path: content for path, (content, _) in files_of(mcpdiff.root).items()}
    mcpdiff.set_status(edit, "rejected")
    (mcpdiff.root / "new.txt").unlink(missing_ok=True)
    (mcpdiff.root / "b.txt").unlink(missing_ok=True)
    (mcpdiff.root / "a.txt").write_text("one\ntwo\nthree\n")
    assert files_of(mcpdiff.root).keys() == before
    found = imported(mcpdiff)
    assert (found["edits"], found["rejected"], found["external"]) == (1, 1, 0)
    assert cas("accept", "1", folder=mcpdiff.root).status == 0
    assert {path: content for path, (content, _) in files_of(mcpdiff.root).items()} == after


def test_differences_on_disk_are_imported_as_external_edits(mcpdiff: McpDiff) -> None:
    mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    with (mcpdiff.root / "a.txt").open("a") as file:
        file.write("mine\n")
    mcpdiff.write("d", "a.txt", "one\n2\n3\nmine\n")
    with (mcpdiff.root / "a.txt").open("a") as file:
        file.write("mine too\n")
    assert imported(mcpdiff)["external"] == 2
    assert cas("reject", "--all", folder=mcpdiff.root).status == 0
    assert (mcpdiff.root / "a.txt").read_text() == "one\ntwo\nthree\nmine\nmine too\n"


def test_differences_on_disk_await_review_while_an_agents_tool_runs(mcpdiff: McpDiff) -> None:
    mcpdiff.write("conv_1", "a.txt", "one\n2\nthree\n")
    CommandRunner(mcpdiff.root).done("record")
    with ClientProcess(mcpdiff.root) as client:
        client.begin()
        (mcpdiff.root / "a.txt").write_text("one\n2\nthree\nfour\n")
        assert imported(mcpdiff)["external"] == 1
        assert {view.status for view in recorded_edits(mcpdiff.root)} == {Status.PENDING}
        client.end()
    assert {view.status for view in recorded_edits(mcpdiff.root)} == {Status.PENDING}


def test_a_change_by_hand_between_two_calls_of_one_turn_is_external(
    mcpdiff: McpDiff,
) -> None:
    mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    (mcpdiff.root / "a.txt").write_text("one\n2\nthree\nmine\n")
    mcpdiff.write("c", "a.txt", "one\n2\n3\nmine\n")
    assert imported(mcpdiff)["problems"] == []
    assert edit_summaries(mcpdiff.root) == [
        ("c", "replace", "a.txt", "pending"),
        ("external", "edit", "a.txt", "accepted"),
        ("c", "replace", "a.txt", "pending"),
    ]
    assert cas("reject", "--all", folder=mcpdiff.root).status == 0
    assert (mcpdiff.root / "a.txt").read_text() == "one\ntwo\nthree\nmine\n"


def test_a_change_by_hand_is_found_before_several_later_edits(mcpdiff: McpDiff) -> None:
    mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    (mcpdiff.root / "a.txt").write_text("one\n2\nthree\nmine")
    mcpdiff.write("c", "a.txt", "one\n2\n3\nmine")
    mcpdiff.write("c", "a.txt", "one\n2\n3\nmine and its")
    mcpdiff.move("c", "a.txt", "b.txt")
    mcpdiff.write("c", "b.txt", "1\n2\n3\nmine and its\n")
    found = imported(mcpdiff)
    assert (found["edits"], found["external"], found["problems"]) == (5, 1, [])
    (external,) = (view for view in recorded_edits(mcpdiff.root) if view.edit.conversation == "external")
    assert cas("cat", f"a.txt@{external.seq}", folder=mcpdiff.root).out == b"one\n2\nthree\nmine"


def test_a_change_by_hand_is_found_before_a_turn_with_a_checkpoint(mcpdiff: McpDiff) -> None:
    mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    (mcpdiff.root / "a.txt").write_text("one\n2\nthree\nmine\n")
    mcpdiff.write("c", "a.txt", "one\n2\n3\nmine\n")
    mcpdiff.write("d", "a.txt", "one\n2\n3\nits\n")  # from a checkpoint
    (mcpdiff.root / "a.txt").write_text("all else\n")
    found = imported(mcpdiff)
    assert (found["edits"], found["external"], found["problems"]) == (3, 2, [])


def test_a_diff_that_does_not_match_the_hashes_is_reported(mcpdiff: McpDiff) -> None:
    mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    (mcpdiff.root / "a.txt").write_text("one\n2\nthree\nmine\n")
    later = mcpdiff.write("c", "a.txt", "one\n2\n3\nmine\n")
    diff = mcpdiff.history / "diffs" / "c" / f"{later}.diff"
    diff.write_text(diff.read_text().replace("-three", "-forged"))
    assert [one["place"] for one in imported(mcpdiff)["problems"]] == [f"edit {later}"]
    diff.unlink()
    assert [one["place"] for one in imported(mcpdiff)["problems"]] == [f"edit {later}"]


@pytest.mark.parametrize(
    "forged",
    ["@@ -1,1 +1,1 @@\n-forged\n+its\n", "@@ -1,1 +1,2 @@\n-forged\n+mine\n+its\n"],
    ids=["does not apply", "wrong result"],
)
def test_a_state_is_reconstructed_from_another_file_when_its_own_diff_is_forged(mcpdiff: McpDiff, forged: str) -> None:
    mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    (mcpdiff.root / "a.txt").write_text("mine\n")
    lost = mcpdiff.write("c", "a.txt", "mine\nits\n")
    mcpdiff.write("d", "other.txt", "1\n")
    (mcpdiff.root / "b.txt").write_text("mine\n")
    mcpdiff.write("e", "b.txt", "mine\nand more\n")
    (mcpdiff.history / "checkpoints" / "e" / "b.txt.chkpt").unlink()
    (mcpdiff.history / "diffs" / "c" / f"{lost}.diff").write_text(forged)
    found = imported(mcpdiff)
    assert (found["edits"], found["external"], found["problems"]) == (4, 1, [])


@pytest.mark.parametrize(
    "texts", ["abcdefghij", "abababab", "abcbcbcd"], ids=["no repeats", "two alternating states", "repeated cycles"]
)
@pytest.mark.parametrize("order", [list, reversed], ids=["first to last", "last to first"])
def test_each_unknown_state_of_a_chain_of_diffs_is_looked_up_once(
    mcpdiff: McpDiff, texts: str, order: "Callable[[list[McpdiffEntry]], Iterable[McpdiffEntry]]"
) -> None:
    for text in texts:
        mcpdiff.write("c", "a.txt", f"{text}\n")
    found = [
        item for item in entries((mcpdiff.history / "logs" / "c.log").read_bytes()) if not isinstance(item, BadLine)
    ]
    requested: list[str | None] = []

    def find_nothing(digest: str | None) -> None:
        assert digest not in requested
        requested.append(digest)

    traces = DiffChains(found, find_nothing, lambda _: None)
    assert [traces.content(entry.before or "") for entry in order(found)] == [None] * len(texts)
    assert set(requested) == {entry.before for entry in found} | {found[-1].after}


def test_a_rejected_deletion_whose_path_was_reused_matches_the_disk(
    mcpdiff: McpDiff,
) -> None:
    deleted = mcpdiff.delete("c1", "a.txt")
    mcpdiff.move("c1", "old.txt", "a.txt")
    mcpdiff.delete("c1", "a.txt")
    mcpdiff.set_status(deleted, "rejected")
    assert imported(mcpdiff)["external"] == 1
    with Workspace.open(mcpdiff.root) as workspace:
        assert workspace.review.external_changes() == ()
        assert workspace.history.edits()[-1].edit.operation is Operation.DELETE
    assert list(files_of(mcpdiff.root)) == []


def test_a_rejected_move_whose_target_still_exists_matches_the_disk(mcpdiff: McpDiff) -> None:
    mcpdiff.delete("c1", "a.txt")
    mcpdiff.set_status(mcpdiff.move("c1", "old.txt", "a.txt"), "rejected")
    assert imported(mcpdiff)["external"] == 2
    with Workspace.open(mcpdiff.root) as workspace:
        assert workspace.review.external_changes() == ()
        assert [view.edit.operation for view in workspace.history.edits()[-2:]] == [Operation.CREATE, Operation.DELETE]
    assert list(files_of(mcpdiff.root)) == ["a.txt"]


def test_a_rejection_that_a_live_edit_depends_on_is_reported_and_left_pending(mcpdiff: McpDiff) -> None:
    first = mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    mcpdiff.write("c", "a.txt", "one\n2 and more\nthree\n")
    mcpdiff.set_status(first, "rejected")
    found = imported(mcpdiff)
    assert [one["place"] for one in found["problems"]] == [f"edit {first}"]
    assert (found["recorded"], recorded_edits(mcpdiff.root)) == (False, [])
    found = imported(mcpdiff, "--partly")
    assert (found["edits"], found["rejected"], found["external"]) == (2, 0, 0)
    assert [view.status for view in recorded_edits(mcpdiff.root)] == [Status.PENDING] * 2


# ---- repeated imports


def test_a_repeated_import_adds_only_new_edits(mcpdiff: McpDiff) -> None:
    rejected = mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    mcpdiff.set_status(rejected, "rejected")
    (mcpdiff.root / "a.txt").write_text("one\ntwo\nthree\n")
    imported(mcpdiff)
    known = edit_summaries(mcpdiff.root)
    again = imported(mcpdiff)
    assert (again["edits"], again["already"], again["external"]) == (0, 1, 0)
    assert edit_summaries(mcpdiff.root) == known
    mcpdiff.write("c", "a.txt", "one\ntwo\n3\n")
    found = imported(mcpdiff)
    assert (found["edits"], found["already"], found["external"]) == (1, 1, 0)
    assert cas("reject", "2", folder=mcpdiff.root).status == 0
    assert (mcpdiff.root / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_dry_run_records_nothing(mcpdiff: McpDiff) -> None:
    mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    found = imported(mcpdiff, "--dry-run")
    assert (found["edits"], found["recorded"], recorded_edits(mcpdiff.root)) == (1, False, [])
    output = cas("import", "mcpdiff", str(mcpdiff.root), "--dry-run", folder=mcpdiff.root)
    assert output.text == "Would import 1 edits: 0 accepted, 0 rejected, 1 to be reviewed.\n"


def test_a_file_with_a_history_of_its_own_is_not_imported(mcpdiff: McpDiff) -> None:
    edit = mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    runner = CommandRunner(mcpdiff.root)
    runner.write("a.txt", b"ours\n")
    found = imported(mcpdiff)
    assert [one["place"] for one in found["problems"]] == [f"edit {edit}"]
    assert "has a history here already" in found["problems"][0]["reason"]


def test_the_history_of_a_moved_workspace_is_imported_with_its_old_root(mcpdiff: McpDiff, tmp_path: Path) -> None:
    mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    moved = McpDiff(mcpdiff.root.rename(tmp_path / "moved"))
    assert len(imported(moved)["problems"]) == 1
    assert imported(moved, "--root", str(mcpdiff.root))["edits"] == 1


@pytest.mark.parametrize("words", [[], ["--partly"], ["--dry-run"]])
def test_entries_with_another_root_are_refused_with_advice_to_pass_it(
    mcpdiff: McpDiff, tmp_path: Path, words: list[str]
) -> None:
    link = tmp_path / "link"
    link.symlink_to(mcpdiff.root)
    edit = mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    mcpdiff.change_entry(edit, {"file_path": str(link / "a.txt")})
    CommandRunner(mcpdiff.root)
    refused = cas("import", "mcpdiff", ".", *words, folder=mcpdiff.root)
    assert refused.status == 1
    assert "If its folder has moved since, pass the old one: --root DIR." in refused.text.splitlines()[-1]
    assert cas("import", "mcpdiff", ".", "--root", str(link), folder=mcpdiff.root).status == 0


def test_imported_edits_keep_their_times_for_states_by_time(mcpdiff: McpDiff) -> None:
    for text in ("1\n", "2\n"):
        mcpdiff.write("c", "a.txt", text)
    runner = CommandRunner(mcpdiff.root)
    runner.write("mine", b"1\n")
    (mcpdiff.root / "a.txt").write_text("3\n")
    runner.done("snapshot")
    between = recorded_edits(mcpdiff.root)[0].edit.time
    time.sleep(0.01)
    runner.write("mine", b"2\n")
    assert (found := imported(mcpdiff))["edits"] == 2
    assert found["external"] == 1
    first, second = (view.edit.time for view in recorded_edits(mcpdiff.root)[2:4])
    moments = (first - 1, first, second, between)
    with Workspace.open(mcpdiff.root) as workspace:
        for moment, expected in zip(moments, (b"one\ntwo\nthree\n", b"1\n", b"2\n", b"2\n"), strict=True):
            state = workspace.history.find_state(f"a.txt@{date_of(moment).isoformat()}")
            assert workspace.history.blob(state.blob or blob_id(b"")) == expected
            assert workspace.history.files_at_moment(moment)["a.txt"].blob == state.blob
        assert workspace.history.files_at_moment(between)["mine"].blob == blob_id(b"1\n")
        assert "mine" not in workspace.history.files_at_moment(second)
        snapshot = workspace.snapshots.all()[-1].time
        assert workspace.history.files_at_moment(snapshot)["a.txt"].blob == blob_id(b"3\n")
    current = [cas("cat", f"{name}@0s", folder=mcpdiff.root).out for name in ("a.txt", "mine")]
    assert current == [b"3\n", b"2\n"]


def test_the_last_imported_state_is_the_current_state(mcpdiff: McpDiff) -> None:
    mcpdiff.write("c", "a.txt", "1\n")
    runner = CommandRunner(mcpdiff.root)
    (mcpdiff.root / "a.txt").write_text("meanwhile\n")
    runner.done("snapshot")
    (mcpdiff.root / "a.txt").write_text("1\n")
    assert imported(mcpdiff)["external"] == 0
    assert runner.done("cat", "a.txt@0s").out == b"1\n"
    assert runner.done("restore", "a.txt@0s", "--dry-run", "--json").json()["edits"] == []


def test_a_wrong_hash_is_refused_without_advice_about_the_root(mcpdiff: McpDiff) -> None:
    edit = mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    mcpdiff.change_entry(edit, {"hash_before": "0" * 64})
    CommandRunner(mcpdiff.root)
    refused = cas("import", "mcpdiff", ".", folder=mcpdiff.root)
    assert (refused.status, "--root" in refused.text) == (1, False)


def test_rolling_forward_an_import_writes_no_file(mcpdiff: McpDiff) -> None:
    first = mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    mcpdiff.move("c", "old.txt", "new.txt")
    mcpdiff.write("c", "gone.txt", "gone\n")
    mcpdiff.set_status(first, "rejected")
    (mcpdiff.root / "gone.txt").unlink()
    (mcpdiff.root / "a.txt").write_text("one\n2\nthree\n")  # the rejection was not applied to the file
    applied_marker = mcpdiff.root / ".cas" / "applied"
    CommandRunner(mcpdiff.root)
    cas("record", folder=mcpdiff.root)
    before = applied_marker.read_bytes()
    assert imported(mcpdiff)["external"] == 2
    files = files_of(mcpdiff.root)
    for written in (before, b""):
        applied_marker.write_bytes(written)
        assert cas("record", folder=mcpdiff.root).status == 0
        assert files_of(mcpdiff.root) == files


# ---- invalid entries

INVALID_FIELDS: dict[str, dict[str, Any]] = {
    "a path outside": {"file_path": "/etc/passwd"},
    "a path with parent folders": {"file_path": "ROOT/../../etc/passwd"},
    "a path into the store": {"file_path": "ROOT/.cas/config.toml"},
    "a path into version control": {"file_path": "ROOT/.git/hooks/post-commit"},
    "a relative path": {"file_path": "a.txt"},
    "a NUL": {"file_path": "ROOT/a\0b"},
    "a wrong hash before": {"hash_before": "0" * 64},
    "a wrong hash after": {"hash_after": "0" * 64},
    "no hash": {"hash_after": "short"},
    "a hash where no file is": {"hash_before": None},
    "a missing diff": {"diff_file": "diffs/none.diff", "hash_after": "1" * 64},
    "a diff from outside": {"diff_file": "../../../../../../etc/passwd", "hash_after": "1" * 64},
    "an unknown operation": {"operation": "explode"},
    "an unknown status": {"status": "maybe"},
    "a list for a path": {"file_path": ["a.txt"]},
    "a boolean for a number": {"tool_call_index": True},
    "a negative number": {"tool_call_index": -1},
    "an invalid time": {"timestamp": "yesterday"},
    "a time before the epoch": {"timestamp": "1900-01-01T00:00:00+00:00"},
    "the reserved conversation name": {"conversation_id": "external"},
    "a conversation that can't be printed": {"conversation_id": "a\x1b[2J"},
    "a lone surrogate": {"tool_name": "\ud800"},
}


@pytest.mark.parametrize("case", INVALID_FIELDS)
def test_an_invalid_entry_is_reported_and_nothing_is_recorded(mcpdiff: McpDiff, case: str) -> None:
    mcpdiff.write("c", "other.txt", "fine\n")
    edit = mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    fields = {
        name: value.replace("ROOT", str(mcpdiff.root)) if isinstance(value, str) else value
        for name, value in INVALID_FIELDS[case].items()
    }
    mcpdiff.change_entry(edit, fields)
    found = imported(mcpdiff)
    assert len(found["problems"]) == 1, found
    assert recorded_edits(mcpdiff.root) == []
    found = imported(mcpdiff, "--partly")
    assert [(operation, path) for _, operation, path, _ in edit_summaries(mcpdiff.root)][:1] == [
        ("create", "other.txt")
    ]
    assert found["edits"] == 1


def test_a_missing_or_forged_checkpoint_is_not_needed_where_the_diff_suffices(mcpdiff: McpDiff) -> None:
    mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    checkpoint = mcpdiff.history / "checkpoints" / "c" / "a.txt.chkpt"
    checkpoint.write_text("forged\n")
    assert imported(mcpdiff, "--dry-run")["problems"] == []
    checkpoint.unlink()
    assert imported(mcpdiff)["external"] == 0
    assert cas("cat", "a.txt@1^", folder=mcpdiff.root).out == b"one\ntwo\nthree\n"


def test_a_missing_or_forged_checkpoint_is_reported_where_it_is_needed(mcpdiff: McpDiff) -> None:
    edit = mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    (mcpdiff.root / "a.txt").write_text("unrelated to the diff\n")
    checkpoint = mcpdiff.history / "checkpoints" / "c" / "a.txt.chkpt"
    checkpoint.write_text("forged\n")
    assert [one["place"] for one in imported(mcpdiff)["problems"]] == [f"edit {edit}"]
    checkpoint.unlink()
    assert [one["place"] for one in imported(mcpdiff)["problems"]] == [f"edit {edit}"]
    checkpoint.symlink_to("/etc/hostname")
    assert [one["place"] for one in imported(mcpdiff)["problems"]] == [f"edit {edit}"]


def test_a_truncated_log_is_reported_and_partly_imports_the_rest(mcpdiff: McpDiff) -> None:
    mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    mcpdiff.write("c", "a.txt", "one\n2\n3\n")
    log = mcpdiff.history / "logs" / "c.log"
    log.write_bytes(log.read_bytes()[:-40])
    found = imported(mcpdiff)
    assert [one["place"] for one in found["problems"]] == ["c.log, line 2"]
    found = imported(mcpdiff, "--partly")
    assert (found["edits"], found["external"]) == (1, 1)


def test_a_duplicate_entry_counts_once(mcpdiff: McpDiff) -> None:
    mcpdiff.write("c", "a.txt", "one\n2\nthree\n")
    log = mcpdiff.history / "logs" / "c.log"
    log.write_bytes(log.read_bytes() * 2)
    assert len(imported(mcpdiff)["problems"]) == 1


def test_a_folder_without_a_history_is_refused(mcpdiff: McpDiff) -> None:
    CommandRunner(mcpdiff.root)
    ran = cas("import", "mcpdiff", str(mcpdiff.root), folder=mcpdiff.root)
    assert ran.status == 2
    assert b"No mcpdiff history found" in ran.err


# ---- texts with unusual line ends

LINES = st.lists(
    st.sampled_from(
        ["a", "b", "c", "", "--- a", "+++ b", "@@ -1 +1 @@", "\\ no", "a\fb", "\v", "\x1c+c", "c\r-d", "\u2028\x85"]
    ),
    max_size=8,
)
"""Lines, some of which Python's `splitlines`, which mcpdiff uses to number lines, splits into several."""


@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.sampled_from([(1, 1), (1, 0), (0, 1), (0, 0)]))
def test_a_diff_leads_from_each_text_to_the_other(
    old: list[str], new: list[str], ending: str, closed: tuple[int, int]
) -> None:
    before, after = (
        "".join(line + ending for line in lines)[: None if is_closed else -len(ending)]
        for lines, is_closed in zip((old, new), closed, strict=True)
    )
    diff_lines = unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), "a", "b")
    diff = "".join(diff_lines).encode()
    assert after.encode() in {*candidate_results(before.encode(), diff)} or before == after
    assert before.encode() in {*candidate_origins(after.encode(), diff)} or before == after


@pytest.mark.parametrize("end", ["\f", "\v", "\r", "\x1c", "\x1d", "\x1e"])
def test_a_line_that_mcpdiff_counts_as_two_is_imported(mcpdiff: McpDiff, end: str) -> None:
    text = f"1\n{end}def f\n3\n"
    (mcpdiff.root / "a.txt").write_text(text, newline="")
    mcpdiff.write("c", "a.txt", f"{text}x\n")
    mcpdiff.write("c", "a.txt", f"{text}x\ny{end}z\n")
    (mcpdiff.history / "checkpoints/c/a.txt.chkpt").unlink()
    assert imported(mcpdiff)["edits"] == 2


def test_binary_content_is_imported_unchanged(mcpdiff: McpDiff) -> None:
    mcpdiff.write("c", "blob", b"\x00\xff\r\xfe")
    mcpdiff.write("c", "blob", b"\x00\xff\r\xfe\r\x85\x00")
    assert imported(mcpdiff)["edits"] == 2


@given(st.binary(max_size=200))
def test_random_bytes_in_a_log_raise_nothing(log: bytes) -> None:
    assert all(isinstance(item, BadLine) for item in entries(log))


@given(st.binary(max_size=60), st.binary(max_size=120))
def test_random_bytes_in_a_diff_raise_nothing(before: bytes, diff: bytes) -> None:
    assert len(list(candidate_results(before, b"@@ -1,2 +1,3 @@\n" + diff))) <= 8
    assert len(list(candidate_origins(before, b"@@ -1,3 +1,2 @@\n" + diff))) <= 16


def test_an_entry_without_a_change_is_not_imported(mcpdiff: McpDiff) -> None:
    mcpdiff.write("c", "a.txt", "one\ntwo\nthree\n")
    found = imported(mcpdiff)
    assert (found["edits"], found["unchanged"]) == (0, 1)
    assert Operation.EDIT not in {view.edit.operation for view in recorded_edits(mcpdiff.root)}


def test_an_import_shows_progress(mcpdiff: McpDiff) -> None:
    mcpdiff.write("c", "a.txt", "1\n")
    mcpdiff.write("c", "a.txt", "2\n")
    CommandRunner(mcpdiff.root)
    _, shown = with_progress("import", "mcpdiff", str(mcpdiff.history), folder=mcpdiff.root, patience=0)
    assert b"working out states [############............] 1 of 2 entries" in shown
