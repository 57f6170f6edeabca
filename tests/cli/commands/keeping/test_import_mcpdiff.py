"""`cas import mcpdiff`: a history that another tool wrote becomes ours, as far as its hashes prove it."""

import os
import time
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from objstore import EditView, Operation, Status, Workspace, blob_id, check_store
from objstore.dates import date_of
from objstore.transfer.mcpdiff_format import (
    BadLine,
    DiffChains,
    McpdiffEntry,
    candidate_origins,
    candidate_results,
    entries,
)
from tests.support.command_runner import CommandRunner, cas, with_progress
from tests.support.mcpdiff_history import McpDiff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@pytest.fixture
def past(tmp_path: Path) -> McpDiff:
    """Return a folder with two files, and nothing recorded of them."""
    root = tmp_path / "ws"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "old.txt").write_text("old\n")
    return McpDiff(root)


def taken_over(past: McpDiff, *words: str) -> dict[str, Any]:
    """Import the history into the workspace, and return what is said of it."""
    CommandRunner(past.root)
    files = files_of(past.root)
    ran = cas("import", "mcpdiff", str(past.history), "--json", *words, folder=past.root)
    assert ran.err == b""
    assert files_of(past.root) == files
    found: dict[str, Any] = ran.json()
    assert ran.status == (1 if found["problems"] else 0)
    checked = check_store(str(past.root))
    assert checked.faults == ()
    return found


def files_of(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return what stands in a workspace, with the times of its files."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in root.rglob("*")
        if path.is_file() and not {".cas", ".mcp"} & set(path.relative_to(root).parts)
    }


def recorded(root: Path) -> list[EditView]:
    """Return every edit."""
    with Workspace.open(root) as workspace:
        return workspace.history.edits()


def shape(root: Path) -> list[tuple[str, str, str, str]]:
    """Return each edit's conversation, operation, path and status."""
    return [
        (view.edit.conversation, str(view.edit.operation), os.fsdecode(view.edit.path), str(view.status))
        for view in recorded(root)
    ]


# ---- what was recorded


def test_every_kind_of_edit_with_every_status_becomes_ours(past: McpDiff) -> None:
    created = past.write("conv_1", "new.txt", "new\n")
    past.write("conv_1", "a.txt", "one\n2\nthree\n")
    past.move("conv_1", "a.txt", "sub/b.txt")
    past.write("conv_2", "sub/b.txt", "one\n2\nthree\nfour\n")
    deleted = past.delete("conv_2", "old.txt")
    past.write("conv_2", "old.txt", "again\n")
    past.give(created, "accepted")
    past.give(deleted, "accepted")
    found = taken_over(past)
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
    assert shape(past.root) == [
        ("conv_1", "create", "new.txt", "accepted"),
        ("conv_1", "replace", "a.txt", "pending"),
        ("conv_1", "move", "sub/b.txt", "pending"),
        ("conv_2", "replace", "sub/b.txt", "pending"),
        ("conv_2", "delete", "old.txt", "accepted"),
        ("conv_2", "create", "old.txt", "pending"),
    ]
    assert [view.edit.call for view in recorded(past.root)] == [0, 1, 2, 0, 1, 2]
    assert [view.edit.time % 60_000_000 for view in recorded(past.root)] == [n * 1_000_000 for n in range(1, 7)]
    # And all of it can be reviewed: any one, in any order.
    assert cas("reject", "2", folder=past.root).status == 0
    assert (past.root / "sub" / "b.txt").read_text() == "one\ntwo\nthree\nfour\n"
    assert cas("reject", "3", folder=past.root).status == 0
    assert (past.root / "a.txt").read_text() == "one\ntwo\nthree\nfour\n"


def test_what_was_rejected_is_rejected_here_and_may_be_accepted_after_all(past: McpDiff) -> None:
    first = past.write("c", "a.txt", "ONE\ntwo\nthree\n")
    past.write("c", "a.txt", "ONE\ntwo\nTHREE\n")
    past.give(first, "rejected")
    (past.root / "a.txt").write_text("one\ntwo\nTHREE\n")  # as the tool leaves it
    found = taken_over(past)
    assert (found["edits"], found["rejected"], found["external"]) == (2, 1, 0)
    assert [view.status for view in recorded(past.root)] == [Status.REJECTED, Status.PENDING]
    assert cas("accept", "1", folder=past.root).status == 0
    assert (past.root / "a.txt").read_text() == "ONE\ntwo\nTHREE\n"


@pytest.mark.parametrize("operation", ["create", "delete", "move"])
def test_a_rejected_file_operation_is_undone_here_too(past: McpDiff, operation: str) -> None:
    acts: dict[str, Callable[[], str]] = {
        "create": lambda: past.write("c", "new.txt", "new\n"),
        "delete": lambda: past.delete("c", "a.txt"),
        "move": lambda: past.move("c", "a.txt", "b.txt"),
    }
    before = files_of(past.root).keys()
    edit = acts[operation]()
    after = {path: held for path, (held, _) in files_of(past.root).items()}
    past.give(edit, "rejected")
    (past.root / "new.txt").unlink(missing_ok=True)
    (past.root / "b.txt").unlink(missing_ok=True)
    (past.root / "a.txt").write_text("one\ntwo\nthree\n")
    assert files_of(past.root).keys() == before
    found = taken_over(past)
    assert (found["edits"], found["rejected"], found["external"]) == (1, 1, 0)
    assert cas("accept", "1", folder=past.root).status == 0
    assert {path: held for path, (held, _) in files_of(past.root).items()} == after


def test_what_is_otherwise_on_disk_is_a_change_from_outside(past: McpDiff) -> None:
    past.write("c", "a.txt", "one\n2\nthree\n")
    with (past.root / "a.txt").open("a") as file:
        file.write("mine\n")
    past.write("d", "a.txt", "one\n2\n3\nmine\n")
    with (past.root / "a.txt").open("a") as file:
        file.write("mine too\n")
    assert taken_over(past)["external"] == 2
    assert cas("reject", "--all", folder=past.root).status == 0
    assert (past.root / "a.txt").read_text() == "one\ntwo\nthree\nmine\nmine too\n"


def test_a_change_by_hand_between_two_calls_of_one_turn_is_from_outside_and_the_calls_are_the_agents(
    past: McpDiff,
) -> None:
    past.write("c", "a.txt", "one\n2\nthree\n")
    (past.root / "a.txt").write_text("one\n2\nthree\nmine\n")
    past.write("c", "a.txt", "one\n2\n3\nmine\n")
    assert taken_over(past)["problems"] == []
    assert shape(past.root) == [
        ("c", "replace", "a.txt", "pending"),
        ("external", "edit", "a.txt", "accepted"),
        ("c", "replace", "a.txt", "pending"),
    ]
    assert cas("reject", "--all", folder=past.root).status == 0
    assert (past.root / "a.txt").read_text() == "one\ntwo\nthree\nmine\n"


def test_what_a_hand_did_is_found_through_all_that_came_after_it(past: McpDiff) -> None:
    past.write("c", "a.txt", "one\n2\nthree\n")
    (past.root / "a.txt").write_text("one\n2\nthree\nmine")
    past.write("c", "a.txt", "one\n2\n3\nmine")
    past.write("c", "a.txt", "one\n2\n3\nmine and its")
    past.move("c", "a.txt", "b.txt")
    past.write("c", "b.txt", "1\n2\n3\nmine and its\n")
    found = taken_over(past)
    assert (found["edits"], found["external"], found["problems"]) == (5, 1, [])
    (outside,) = (view for view in recorded(past.root) if view.edit.conversation == "external")
    assert cas("cat", f"a.txt@{outside.seq}", folder=past.root).out == b"one\n2\nthree\nmine"


def test_what_a_hand_did_is_found_before_the_next_turn_as_well(past: McpDiff) -> None:
    past.write("c", "a.txt", "one\n2\nthree\n")
    (past.root / "a.txt").write_text("one\n2\nthree\nmine\n")
    past.write("c", "a.txt", "one\n2\n3\nmine\n")
    past.write("d", "a.txt", "one\n2\n3\nits\n")  # from a checkpoint
    (past.root / "a.txt").write_text("all else\n")
    found = taken_over(past)
    assert (found["edits"], found["external"], found["problems"]) == (3, 2, [])


def test_a_diff_that_does_not_lead_back_is_not_believed(past: McpDiff) -> None:
    past.write("c", "a.txt", "one\n2\nthree\n")
    (past.root / "a.txt").write_text("one\n2\nthree\nmine\n")
    later = past.write("c", "a.txt", "one\n2\n3\nmine\n")
    diff = past.history / "diffs" / "c" / f"{later}.diff"
    diff.write_text(diff.read_text().replace("-three", "-forged"))
    assert [one["place"] for one in taken_over(past)["problems"]] == [f"edit {later}"]
    diff.unlink()
    assert [one["place"] for one in taken_over(past)["problems"]] == [f"edit {later}"]


@pytest.mark.parametrize(
    "forged", ["@@ -1,1 +1,1 @@\n-forged\n+its\n", "@@ -1,1 +1,2 @@\n-forged\n+mine\n+its\n"], ids=["unfit", "false"]
)
def test_where_one_way_back_is_lost_another_is_taken(past: McpDiff, forged: str) -> None:
    past.write("c", "a.txt", "one\n2\nthree\n")
    (past.root / "a.txt").write_text("mine\n")
    lost = past.write("c", "a.txt", "mine\nits\n")
    past.write("d", "other.txt", "1\n")
    (past.root / "b.txt").write_text("mine\n")
    past.write("e", "b.txt", "mine\nand more\n")
    (past.history / "checkpoints" / "e" / "b.txt.chkpt").unlink()
    (past.history / "diffs" / "c" / f"{lost}.diff").write_text(forged)
    found = taken_over(past)
    assert (found["edits"], found["external"], found["problems"]) == (4, 1, [])


@pytest.mark.parametrize(
    "texts", ["abcdefghij", "abababab", "abcbcbcd"], ids=["straight on", "to and fro", "in circles"]
)
@pytest.mark.parametrize("asking", [list, reversed], ids=["from the first", "from the last"])
def test_that_nothing_leads_back_is_found_out_once_for_all_that_follow(
    past: McpDiff, texts: str, asking: "Callable[[list[McpdiffEntry]], Iterable[McpdiffEntry]]"
) -> None:
    for text in texts:
        past.write("c", "a.txt", f"{text}\n")
    found = [item for item in entries((past.history / "logs" / "c.log").read_bytes()) if not isinstance(item, BadLine)]
    asked: list[str | None] = []

    def none_held(digest: str | None) -> None:
        assert digest not in asked
        asked.append(digest)

    traces = DiffChains(found, none_held, lambda _: None)
    assert [traces.content(entry.before or "") for entry in asking(found)] == [None] * len(texts)
    assert set(asked) == {entry.before for entry in found} | {found[-1].after}


def test_a_file_that_a_rejection_brings_back_where_another_one_went_since_is_held_against_the_disk(
    past: McpDiff,
) -> None:
    deleted = past.delete("c1", "a.txt")
    past.move("c1", "old.txt", "a.txt")
    past.delete("c1", "a.txt")
    past.give(deleted, "rejected")
    assert taken_over(past)["external"] == 1
    with Workspace.open(past.root) as workspace:
        assert workspace.review.external_changes() == ()
        assert workspace.history.edits()[-1].edit.operation is Operation.DELETE
    assert list(files_of(past.root)) == []


def test_a_path_that_a_rejection_clears_is_held_against_the_disk(past: McpDiff) -> None:
    past.delete("c1", "a.txt")
    past.give(past.move("c1", "old.txt", "a.txt"), "rejected")
    assert taken_over(past)["external"] == 2
    with Workspace.open(past.root) as workspace:
        assert workspace.review.external_changes() == ()
        assert [view.edit.operation for view in workspace.history.edits()[-2:]] == [Operation.CREATE, Operation.DELETE]
    assert list(files_of(past.root)) == ["a.txt"]


def test_a_rejection_that_something_live_needs_is_told_and_waits(past: McpDiff) -> None:
    first = past.write("c", "a.txt", "one\n2\nthree\n")
    past.write("c", "a.txt", "one\n2 and more\nthree\n")
    past.give(first, "rejected")
    found = taken_over(past)
    assert [one["place"] for one in found["problems"]] == [f"edit {first}"]
    assert (found["recorded"], recorded(past.root)) == (False, [])
    found = taken_over(past, "--partly")
    assert (found["edits"], found["rejected"], found["external"]) == (2, 0, 0)
    assert [view.status for view in recorded(past.root)] == [Status.PENDING] * 2


# ---- twice, and on and on


def test_twice_is_the_same_as_once_and_what_came_since_is_added(past: McpDiff) -> None:
    rejected = past.write("c", "a.txt", "one\n2\nthree\n")
    past.give(rejected, "rejected")
    (past.root / "a.txt").write_text("one\ntwo\nthree\n")
    taken_over(past)
    known = shape(past.root)
    again = taken_over(past)
    assert (again["edits"], again["already"], again["external"]) == (0, 1, 0)
    assert shape(past.root) == known
    past.write("c", "a.txt", "one\ntwo\n3\n")
    found = taken_over(past)
    assert (found["edits"], found["already"], found["external"]) == (1, 1, 0)
    assert cas("reject", "2", folder=past.root).status == 0
    assert (past.root / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_dry_run_records_nothing(past: McpDiff) -> None:
    past.write("c", "a.txt", "one\n2\nthree\n")
    found = taken_over(past, "--dry-run")
    assert (found["edits"], found["recorded"], recorded(past.root)) == (1, False, [])
    said = cas("import", "mcpdiff", str(past.root), "--dry-run", folder=past.root)
    assert said.text == "Would import 1 edits: 0 accepted, 0 rejected, 1 to be reviewed.\n"


def test_a_file_with_another_history_here_is_left_alone(past: McpDiff) -> None:
    edit = past.write("c", "a.txt", "one\n2\nthree\n")
    runner = CommandRunner(past.root)
    runner.write("a.txt", b"ours\n")
    found = taken_over(past)
    assert [one["place"] for one in found["problems"]] == [f"edit {edit}"]
    assert "has a history here already" in found["problems"][0]["reason"]


def test_a_workspace_that_was_moved_is_found_by_where_it_was(past: McpDiff, tmp_path: Path) -> None:
    past.write("c", "a.txt", "one\n2\nthree\n")
    moved = McpDiff(past.root.rename(tmp_path / "moved"))
    assert len(taken_over(moved)["problems"]) == 1
    assert taken_over(moved, "--root", str(past.root))["edits"] == 1


@pytest.mark.parametrize("words", [[], ["--partly"], ["--dry-run"]])
def test_where_entries_name_the_workspace_otherwise_the_way_to_say_so_is_told(
    past: McpDiff, tmp_path: Path, words: list[str]
) -> None:
    link = tmp_path / "link"
    link.symlink_to(past.root)
    edit = past.write("c", "a.txt", "one\n2\nthree\n")
    past.change(edit, {"file_path": str(link / "a.txt")})
    CommandRunner(past.root)
    refused = cas("import", "mcpdiff", ".", *words, folder=past.root)
    assert refused.status == 1
    assert "If its folder has moved since, pass the old one: --root DIR." in refused.text.splitlines()[-1]
    assert cas("import", "mcpdiff", ".", "--root", str(link), folder=past.root).status == 0


def test_what_was_taken_over_is_told_at_the_times_that_it_had_and_nothing_else_is(past: McpDiff) -> None:
    for text in ("1\n", "2\n"):
        past.write("c", "a.txt", text)
    runner = CommandRunner(past.root)
    runner.write("mine", b"1\n")
    (past.root / "a.txt").write_text("3\n")
    runner.done("snapshot")
    between = recorded(past.root)[0].edit.time
    time.sleep(0.01)
    runner.write("mine", b"2\n")
    assert (found := taken_over(past))["edits"] == 2
    assert found["external"] == 1
    first, second = (view.edit.time for view in recorded(past.root)[2:4])
    moments = (first - 1, first, second, between)
    with Workspace.open(past.root) as workspace:
        for moment, held in zip(moments, (b"one\ntwo\nthree\n", b"1\n", b"2\n", b"2\n"), strict=True):
            state = workspace.history.find_state(f"a.txt@{date_of(moment).isoformat()}")
            assert workspace.history.blob(state.blob or blob_id(b"")) == held
            assert workspace.history.files_at_moment(moment)["a.txt"].blob == state.blob
        assert workspace.history.files_at_moment(between)["mine"].blob == blob_id(b"1\n")
        assert "mine" not in workspace.history.files_at_moment(second)
        snapshot = workspace.snapshots.all()[-1].time
        assert workspace.history.files_at_moment(snapshot)["a.txt"].blob == blob_id(b"3\n")
    said = [cas("cat", f"{name}@0s", folder=past.root).out for name in ("a.txt", "mine")]
    assert said == [b"3\n", b"2\n"]


def test_what_was_taken_over_last_is_what_stands_now(past: McpDiff) -> None:
    past.write("c", "a.txt", "1\n")
    runner = CommandRunner(past.root)
    (past.root / "a.txt").write_text("meanwhile\n")
    runner.done("snapshot")
    (past.root / "a.txt").write_text("1\n")
    assert taken_over(past)["external"] == 0
    assert runner.done("cat", "a.txt@0s").out == b"1\n"
    assert runner.done("restore", "a.txt@0s", "--dry-run", "--json").json()["edits"] == []


def test_where_another_thing_is_wrong_no_other_root_is_advised(past: McpDiff) -> None:
    edit = past.write("c", "a.txt", "one\n2\nthree\n")
    past.change(edit, {"hash_before": "0" * 64})
    CommandRunner(past.root)
    refused = cas("import", "mcpdiff", ".", folder=past.root)
    assert (refused.status, "--root" in refused.text) == (1, False)


def test_whoever_finishes_what_a_crash_left_writes_no_file(past: McpDiff) -> None:
    first = past.write("c", "a.txt", "one\n2\nthree\n")
    past.move("c", "old.txt", "new.txt")
    past.write("c", "gone.txt", "gone\n")
    past.give(first, "rejected")
    (past.root / "gone.txt").unlink()
    (past.root / "a.txt").write_text("one\n2\nthree\n")  # nobody took it back
    mark = past.root / ".cas" / "applied"
    CommandRunner(past.root)
    cas("record", folder=past.root)
    before = mark.read_bytes()
    assert taken_over(past)["external"] == 2
    files = files_of(past.root)
    for written in (before, b""):
        mark.write_bytes(written)
        assert cas("record", folder=past.root).status == 0
        assert files_of(past.root) == files


# ---- nothing is believed

LIES: dict[str, dict[str, Any]] = {
    "a path outside": {"file_path": "/etc/passwd"},
    "a path that climbs": {"file_path": "ROOT/../../etc/passwd"},
    "a path into the store": {"file_path": "ROOT/.cas/config.toml"},
    "a path into version control": {"file_path": "ROOT/.git/hooks/post-commit"},
    "a relative path": {"file_path": "a.txt"},
    "a NUL": {"file_path": "ROOT/a\0b"},
    "a wrong hash before": {"hash_before": "0" * 64},
    "a wrong hash after": {"hash_after": "0" * 64},
    "no hash": {"hash_after": "short"},
    "a hash where no file is": {"hash_before": None},
    "a diff that is nowhere": {"diff_file": "diffs/none.diff", "hash_after": "1" * 64},
    "a diff from outside": {"diff_file": "../../../../../../etc/passwd", "hash_after": "1" * 64},
    "no operation": {"operation": "explode"},
    "no status": {"status": "maybe"},
    "a list for a path": {"file_path": ["a.txt"]},
    "a number that is none": {"tool_call_index": True},
    "a negative number": {"tool_call_index": -1},
    "no time": {"timestamp": "yesterday"},
    "a time before all times": {"timestamp": "1900-01-01T00:00:00+00:00"},
    "the conversation of nobody": {"conversation_id": "external"},
    "a conversation that can't be printed": {"conversation_id": "a\x1b[2J"},
    "half a character": {"tool_name": "\ud800"},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_told_and_nothing_is_recorded(past: McpDiff, lie: str) -> None:
    past.write("c", "other.txt", "fine\n")
    edit = past.write("c", "a.txt", "one\n2\nthree\n")
    fields = {
        name: value.replace("ROOT", str(past.root)) if isinstance(value, str) else value
        for name, value in LIES[lie].items()
    }
    past.change(edit, fields)
    found = taken_over(past)
    assert len(found["problems"]) == 1, found
    assert recorded(past.root) == []
    found = taken_over(past, "--partly")
    assert [(operation, path) for _, operation, path, _ in shape(past.root)][:1] == [("create", "other.txt")]
    assert found["edits"] == 1


def test_a_checkpoint_that_is_missing_or_forged_is_not_needed_where_the_diff_leads_back(past: McpDiff) -> None:
    past.write("c", "a.txt", "one\n2\nthree\n")
    checkpoint = past.history / "checkpoints" / "c" / "a.txt.chkpt"
    checkpoint.write_text("forged\n")
    assert taken_over(past, "--dry-run")["problems"] == []
    checkpoint.unlink()
    assert taken_over(past)["external"] == 0
    assert cas("cat", "a.txt@1^", folder=past.root).out == b"one\ntwo\nthree\n"


def test_a_checkpoint_that_is_missing_or_forged_is_not_believed(past: McpDiff) -> None:
    edit = past.write("c", "a.txt", "one\n2\nthree\n")
    (past.root / "a.txt").write_text("what leads back to nothing\n")
    checkpoint = past.history / "checkpoints" / "c" / "a.txt.chkpt"
    checkpoint.write_text("forged\n")
    assert [one["place"] for one in taken_over(past)["problems"]] == [f"edit {edit}"]
    checkpoint.unlink()
    assert [one["place"] for one in taken_over(past)["problems"]] == [f"edit {edit}"]
    checkpoint.symlink_to("/etc/hostname")
    assert [one["place"] for one in taken_over(past)["problems"]] == [f"edit {edit}"]


def test_a_log_that_was_cut_off_is_told_and_the_rest_can_be_had(past: McpDiff) -> None:
    past.write("c", "a.txt", "one\n2\nthree\n")
    past.write("c", "a.txt", "one\n2\n3\n")
    log = past.history / "logs" / "c.log"
    log.write_bytes(log.read_bytes()[:-40])
    found = taken_over(past)
    assert [one["place"] for one in found["problems"]] == ["c.log, line 2"]
    found = taken_over(past, "--partly")
    assert (found["edits"], found["external"]) == (1, 1)


def test_an_entry_that_is_there_twice_counts_once(past: McpDiff) -> None:
    past.write("c", "a.txt", "one\n2\nthree\n")
    log = past.history / "logs" / "c.log"
    log.write_bytes(log.read_bytes() * 2)
    assert len(taken_over(past)["problems"]) == 1


def test_where_there_is_no_history_that_is_said(past: McpDiff) -> None:
    CommandRunner(past.root)
    ran = cas("import", "mcpdiff", str(past.root), folder=past.root)
    assert ran.status == 2
    assert b"No mcpdiff history found" in ran.err


# ---- texts that its diffs tell badly

TEXT = st.lists(
    st.sampled_from(
        ["a", "b", "c", "", "--- a", "+++ b", "@@ -1 +1 @@", "\\ no", "a\fb", "\v", "\x1c+c", "c\r-d", "\u2028\x85"]
    ),
    max_size=8,
)
"""Lines, some of which are several to Python's `splitlines`, by which the tool numbers them."""


@given(TEXT, TEXT, st.sampled_from(["\n", "\r\n"]), st.sampled_from([(1, 1), (1, 0), (0, 1), (0, 0)]))
def test_a_diff_leads_to_what_it_was_made_of(
    old: list[str], new: list[str], ending: str, closed: tuple[int, int]
) -> None:
    before, after = (
        "".join(line + ending for line in lines)[: None if is_closed else -len(ending)]
        for lines, is_closed in zip((old, new), closed, strict=True)
    )
    told = unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), "a", "b")
    diff = "".join(told).encode()
    assert after.encode() in {*candidate_results(before.encode(), diff)} or before == after
    assert before.encode() in {*candidate_origins(after.encode(), diff)} or before == after


@pytest.mark.parametrize("end", ["\f", "\v", "\r", "\x1c", "\x1d", "\x1e"])
def test_a_line_that_is_two_to_the_tool_is_one_here(past: McpDiff, end: str) -> None:
    text = f"1\n{end}def f\n3\n"
    (past.root / "a.txt").write_text(text, newline="")
    past.write("c", "a.txt", f"{text}x\n")
    past.write("c", "a.txt", f"{text}x\ny{end}z\n")
    (past.history / "checkpoints/c/a.txt.chkpt").unlink()
    assert taken_over(past)["edits"] == 2


def test_bytes_that_are_no_text_are_taken_as_they_are(past: McpDiff) -> None:
    past.write("c", "blob", b"\x00\xff\r\xfe")
    past.write("c", "blob", b"\x00\xff\r\xfe\r\x85\x00")
    assert taken_over(past)["edits"] == 2


@given(st.binary(max_size=200))
def test_no_log_stops_the_reader(log: bytes) -> None:
    assert all(isinstance(item, BadLine) for item in entries(log))


@given(st.binary(max_size=60), st.binary(max_size=120))
def test_no_diff_stops_the_reader(before: bytes, diff: bytes) -> None:
    assert len(list(candidate_results(before, b"@@ -1,2 +1,3 @@\n" + diff))) <= 8
    assert len(list(candidate_origins(before, b"@@ -1,3 +1,2 @@\n" + diff))) <= 16


def test_an_entry_that_changed_nothing_is_no_edit(past: McpDiff) -> None:
    past.write("c", "a.txt", "one\ntwo\nthree\n")
    found = taken_over(past)
    assert (found["edits"], found["unchanged"]) == (0, 1)
    assert Operation.EDIT not in {view.edit.operation for view in recorded(past.root)}


def test_what_is_taken_over_is_counted(past: McpDiff) -> None:
    past.write("c", "a.txt", "1\n")
    past.write("c", "a.txt", "2\n")
    CommandRunner(past.root)
    _, shown = with_progress("import", "mcpdiff", str(past.history), folder=past.root, patience=0)
    assert b"working out states [############............] 1 of 2 entries" in shown
