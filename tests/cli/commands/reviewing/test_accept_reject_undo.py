"""`cas accept`, `reject`, `reset`, `undo`: a decision changes only what it names, and can be undone."""

import os
import re
import sys
from pathlib import Path

import pytest

from objstore import Action, Status, blob_id
from tests.support.command_runner import CommandRunner, with_progress

POEM = b"".join(b"line %d\n" % number for number in range(1, 31))
POEM_WITH_TWO_HUNKS = POEM.replace(b"line 3\n", b"LINE 3\n").replace(b"line 20\n", b"LINE 20\nmore\n")
PENDING, ACCEPTED, REJECTED = Status.PENDING, Status.ACCEPTED, Status.REJECTED


def two_hunks(runner: CommandRunner) -> None:
    runner.write("poem", POEM)
    runner.write("poem", POEM_WITH_TWO_HUNKS)


def file_snapshots(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Return inode, modification time, mode and content of every file outside the store."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and ".cas" not in path.parts:
            stat = path.stat()
            found[str(path.relative_to(folder))] = (stat.st_ino, stat.st_mtime_ns, stat.st_mode, path.read_bytes())
    return found


# ---- one edit, one hunk


def test_rejecting_then_accepting_is_identity(runner: CommandRunner) -> None:
    two_hunks(runner)
    runner.edit("poem", b"line 10\n", b"line X\n")
    after = runner.bytes("poem")
    runner.done("reject", "2")
    assert runner.bytes("poem") == POEM.replace(b"line 10\n", b"line X\n")
    runner.done("accept", "2")
    assert runner.bytes("poem") == after
    runner.done("reject", "2")
    assert runner.bytes("poem") == POEM.replace(b"line 10\n", b"line X\n")


def test_a_hunk_is_decided_alone(runner: CommandRunner) -> None:
    two_hunks(runner)
    ran = runner.done("reject", "2:2")
    assert ran.text == "Rejected hunk 2:2.\nRewrote poem\n"
    assert runner.bytes("poem") == POEM.replace(b"line 3\n", b"LINE 3\n")
    assert runner.statuses() == {"1:0": PENDING, "2:1": PENDING, "2:2": REJECTED}
    runner.done("accept", "2")
    assert runner.bytes("poem") == POEM_WITH_TWO_HUNKS
    assert runner.statuses() == {"1:0": PENDING, "2:1": ACCEPTED, "2:2": ACCEPTED}


def test_accepting_changes_no_file(runner: CommandRunner) -> None:
    two_hunks(runner)
    before = file_snapshots(runner.folder)
    assert runner.done("accept", "1", "2:1").text == "Accepted edit 1 and hunk 2:1.\nNo file changed.\n"
    assert file_snapshots(runner.folder) == before
    assert runner.statuses() == {"1:0": ACCEPTED, "2:1": ACCEPTED, "2:2": PENDING}


def test_a_rejected_edit_leaves_other_files_alone(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.write("b", b"x\n", mode=0o600)
    runner.write("a", b"y\n")
    (runner.folder / "never recorded").write_bytes(b"mine")
    before = file_snapshots(runner.folder)
    runner.done("reject", "3")
    after = file_snapshots(runner.folder)
    assert after.pop("a")[3] == b"x\n"
    del before["a"]
    assert after == before


def test_reset_makes_an_edit_pending_and_restores_its_change(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.write("a", b"y\n")
    runner.done("reject", "2")
    assert runner.done("reset", "2").text == "Made pending again: edit 2.\nRewrote a\n"
    assert runner.bytes("a") == b"y\n"
    assert runner.statuses()["2:1"] is PENDING


def test_a_move_with_a_rewrite_is_reported_before_and_after_the_decision(runner: CommandRunner) -> None:
    runner.write("a", b"one\n")
    runner.write("a", b"two\n")
    runner.move("a", "b")
    assert "\nWould move b -> a and rewrite it\n" in runner.done("reject", "2", "3", "--dry-run").text
    assert "\nMoved b -> a and rewrote it\n" in runner.done("reject", "2", "3").text


def test_moves_creations_and_deletions_are_rejected_and_accepted_again(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.move("a", "b")
    runner.delete("b")
    assert runner.done("reject", "3").text == "Rejected edit 3.\nRestored b\n"
    assert runner.bytes("b") == b"x\n"
    assert runner.done("reject", "2").text == "Rejected edit 2.\nMoved b -> a\n"
    assert runner.bytes("a") == b"x\n"
    assert not (runner.folder / "b").exists()
    assert runner.done("reject", "1").text == "Rejected edit 1.\nRemoved a\n"
    assert file_snapshots(runner.folder) == {}
    runner.done("accept", "1", "2")
    assert runner.bytes("b") == b"x\n"


def test_a_mode_change_is_rejected(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.write("a", b"x\n", mode=0o755)
    assert runner.done("reject", "2").text == "Rejected edit 2.\nChanged the mode of a (mode 0755 -> 0644)\n"
    assert (runner.folder / "a").stat().st_mode & 0o7777 == 0o644


def test_the_reason_and_the_reviewer_are_recorded(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.done("reject", "1", "--reason", "not like this", LOGNAME="reviewer")
    with runner.workspace() as workspace:
        (view,) = workspace.history.decisions()
    assert (view.decision.reason, view.decision.who, view.decision.action) == (
        "not like this",
        "reviewer",
        Action.REJECT,
    )


def test_repeating_a_decision_does_nothing(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.done("accept", "1")
    assert runner.done("accept", "1").text == "Nothing to do: already accepted.\n"
    assert runner.done("accept", "1", "--json").json()["outcome"] == "nothing-to-do"
    with runner.workspace() as workspace:
        assert len(workspace.history.decisions()) == 1


def test_a_reason_for_an_edit_already_rejected_is_not_recorded_and_says_so(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.done("reject", "1")
    output = runner.done("reject", "1", "--reason", "too long").text
    assert output.startswith("Nothing to do: already rejected.\nThe reason was not recorded. To record it, ")
    runner.done("reset", "1")
    runner.done("reject", "1", "--reason", "too long")
    assert [line["reason"] for line in runner.done("log", "--json").lines()] == ["too long"]


def test_a_decision_records_the_final_hash_of_each_file_that_it_changed(runner: CommandRunner) -> None:
    runner.write("poem", POEM)
    runner.edit("poem", b"line 3\n", b"LINE 3\n")
    runner.edit("poem", b"line 20\n", b"")
    runner.write("other", b"1\n")
    for words in (["reject", "2", "4"], ["accept", "2"], ["undo"], ["reject", "1", "--cascade"], ["reset", "--all"]):
        runner.done(*words)
        decision = runner.done("records", "--json").lines()[-1]
        assert (decision["kind"], decision["action"]) == ("decision", words[0])
        for file in decision["written"]:
            place = runner.folder / (file["path_after"] or file["path_before"])
            on_disk = blob_id(place.read_bytes()).hex() if place.exists() else None
            assert (file["after"] and file["after"]["blob"]) == on_disk
        assert "poem" in {file["path_after"] or file["path_before"] for file in decision["written"]}


# ---- groups


def three_conversations(runner: CommandRunner) -> None:
    runner.write("a", b"1\n", conversation="conv_one")
    runner.write("b", b"1\n", conversation="conv_one")
    runner.write("a", b"1\n2\n", conversation="conv_two")


def test_a_conversation_is_decided_as_one(runner: CommandRunner) -> None:
    three_conversations(runner)
    assert runner.done("accept", "--conversation", "conv_o").text.startswith("Accepted edits 1 2.\n")
    runner.done("reject", "--conversation", "conv_two")
    assert runner.statuses() == {"1:0": ACCEPTED, "2:0": ACCEPTED, "3:1": REJECTED}
    assert runner.bytes("a") == b"1\n"


def test_conv_accepts_rejects_and_resets_all_edits_of_a_conversation(runner: CommandRunner) -> None:
    three_conversations(runner)
    assert runner.done("accept", "--conv", "conv_one").text == "Accepted edits 1 2.\nNo file changed.\n"
    assert runner.done("reject", "--conv", "conv_two", "-m", "too many").text.startswith("Rejected edit 3.\n")
    assert runner.bytes("a") == b"1\n"
    assert runner.done("log", "-n", "1", "--json").json()["reason"] == "too many"
    assert runner.done("reset", "--conv=conv_two").text.startswith("Made pending again: edit 3.\n")
    assert runner.bytes("a") == b"1\n2\n"


@pytest.mark.parametrize("command", ["accept", "reject", "reset"])
def test_conv_answers_as_conversation_does(runner: CommandRunner, command: str) -> None:
    three_conversations(runner)
    for words in (["--dry-run"], ["--json", "-n"], ["--file", "a", "-n"], ["--file", "b"], ["--file", "none"]):
        long, short = (runner.cas(command, name, "conv_two", *words) for name in ("--conversation", "--conv"))
        assert long == short


def test_conv_takes_files_dry_runs_and_json(runner: CommandRunner) -> None:
    three_conversations(runner)
    before = file_snapshots(runner.folder)
    rehearsed = runner.done("reject", "--conv", "conv_one", "--file", "b", "--dry-run", "--json").json()
    assert (rehearsed["outcome"], rehearsed["dry_run"]) == ("decided", True)
    assert [unit["name"] for unit in rehearsed["changed"]] == ["2:0"]
    assert file_snapshots(runner.folder) == before
    assert runner.done("reject", "--conv", "conv_one", "--file", "b").text == "Rejected edit 2.\nRemoved b\n"
    assert runner.statuses() == {"1:0": PENDING, "2:0": REJECTED, "3:1": PENDING}


def test_a_conversation_is_named_once(runner: CommandRunner) -> None:
    three_conversations(runner)
    twice = runner.cas("accept", "--conv", "conv_one", "--conversation", "conv_two")
    assert (twice.status, twice.said.splitlines()[0]) == (2, "cas: '--conversation' / '--conv' takes one value, not 2.")
    assert runner.cas("accept", "--conv", "").said.startswith("cas: Invalid value for '--conversation' / '--conv': ")
    assert set(runner.statuses().values()) == {PENDING}


def test_a_changed_file_stops_the_decision_on_its_conversation(runner: CommandRunner) -> None:
    three_conversations(runner)
    (runner.folder / "a").write_bytes(b"mine\n")
    refused = runner.cas("reject", "--conv", "conv_two")
    assert (refused.status, "a changed outside" in refused.said) == (1, True)
    assert runner.done("reject", "--conv", "conv_two", "--on-external", "discard").text.startswith("Rejected edit 3.\n")
    assert runner.bytes("a") == b"1\n"


def test_a_file_is_decided_as_one(runner: CommandRunner) -> None:
    three_conversations(runner)
    runner.done("reject", "--file", "a")
    assert runner.statuses() == {"1:0": REJECTED, "2:0": PENDING, "3:1": REJECTED}
    assert not (runner.folder / "a").exists()


def four_files_in_folders(runner: CommandRunner) -> None:
    runner.write("src/a.py", b"1\n", conversation="conv_one")
    runner.write("src/deep/b.py", b"1\n", conversation="conv_two")
    runner.write("src/c.txt", b"1\n", conversation="conv_one")
    runner.write("a.py", b"1\n", conversation="conv_one")


@pytest.mark.parametrize(
    ("file", "folder", "expected"),
    [
        ("src", ".", [1, 2, 3]),
        ("src/", ".", [1, 2, 3]),
        (".", "src", [1, 2, 3]),
        (".", ".", [1, 2, 3, 4]),
        ("*.py", ".", [1, 2, 4]),
        ("*.py", "src", [1, 2]),
        ("src/*.txt", ".", [3]),
        ("../a.py", "src", [4]),
    ],
)
def test_folders_and_patterns_select_the_same_edits_as_in_the_log(
    runner: CommandRunner, file: str, folder: str, expected: list[int]
) -> None:
    four_files_in_folders(runner)
    folder_option = ["-C", folder] if folder != "." else []
    (runner.folder / "src" / "kept").write_bytes(b"")  # so that the folder stays when its other files are removed
    logged = runner.done(*folder_option, "log", "--file", file, "--json", "--reverse").lines()
    assert [edit["seq"] for edit in logged] == expected
    patches = runner.done(*folder_option, "export", "--patch", "--file", file, "--json").lines()
    assert len(patches) == len(expected)
    for action, status in (("accept", ACCEPTED), ("reject", REJECTED), ("reset", PENDING)):
        output = runner.done(*folder_option, action, "--file", file).text
        found = {int(name.partition(":")[0]) for name, current in runner.statuses().items() if current is status}
        assert found == (set(expected) if status is not PENDING else {1, 2, 3, 4}), output


def test_a_decision_on_a_folder_lists_its_files(runner: CommandRunner) -> None:
    four_files_in_folders(runner)
    edits = "edits 1 2 3, of 3 files: src/a.py, src/deep/b.py, src/c.txt.\n"
    assert f"Would reject {edits}" in runner.done("reject", "--file", "src", "-n").text
    assert runner.done("accept", "--file", "src").text.startswith(f"Accepted {edits}")
    assert runner.done("reset", "--file", "*.txt").text.startswith("Made pending again: edit 3.\n")
    one = runner.done("reject", "--conversation", "conv_one", "--file", "src").text
    assert one.startswith("Rejected edits 1 3, of 2 files: src/a.py, src/c.txt.\n")
    for number in range(9):
        runner.write(f"many/{number}", b"1\n")
    many = runner.done("accept", "--file", "many").text
    assert "of 9 files: many/0, many/1, many/2, many/3, many/4 and 4 more.\n" in many


def test_the_current_folder_can_be_rejected_as_a_whole(runner: CommandRunner) -> None:
    four_files_in_folders(runner)
    output = runner.done("-C", "src", "reject", "--file", ".").text
    assert output.startswith("Rejected edits 1 2 3, of 3 files: src/a.py, src/deep/b.py, src/c.txt.\n")
    assert not (runner.folder / "src").exists()


def test_a_decision_on_a_folder_leaves_edits_by_hand(runner: CommandRunner) -> None:
    four_files_in_folders(runner)
    (runner.folder / "src" / "a.py").write_bytes(b"1\nmine\n")
    runner.done("record")
    runner.done("accept", "--file", "src")
    runner.done("reset", "--file", "src")
    assert runner.statuses()["5:1"] is ACCEPTED
    (runner.folder / "mine").mkdir()
    (runner.folder / "mine" / "x").write_bytes(b"x\n")
    runner.done("record", "mine/x")
    ran = runner.cas("accept", "--file", "mine")
    assert (ran.status, "No file that an agent edited is named 'mine' here." in ran.said) == (1, True), ran
    for words in (["accept"], ["reject"], ["reset"]):
        ran = runner.cas(*words, "--file", "nosuch*")
        assert (ran.status, "No file that an agent edited" in ran.said) == (1, True), ran


def test_a_conversation_in_one_file(runner: CommandRunner) -> None:
    three_conversations(runner)
    runner.done("accept", "--conversation", "conv_one", "--file", "a")
    assert runner.statuses() == {"1:0": ACCEPTED, "2:0": PENDING, "3:1": PENDING}


def test_edits_named_with_a_conversation_are_added_to_it(runner: CommandRunner) -> None:
    three_conversations(runner)
    runner.done("accept", "--conversation", "conv_two", "2")
    assert runner.statuses() == {"1:0": PENDING, "2:0": ACCEPTED, "3:1": ACCEPTED}


def test_accepting_all_leaves_rejected_hunks_rejected(runner: CommandRunner) -> None:
    two_hunks(runner)
    runner.write("other", b"x\n")
    runner.done("reject", "2:1", "3")
    runner.done("accept", "--all")
    assert runner.statuses() == {"1:0": ACCEPTED, "2:1": REJECTED, "2:2": ACCEPTED, "3:0": REJECTED}


def test_rejecting_all_then_reopening_all_is_identity(runner: CommandRunner) -> None:
    three_conversations(runner)
    runner.done("accept", "1")
    before = {name: snapshot[3] for name, snapshot in file_snapshots(runner.folder).items()}
    runner.done("reject", "--all")
    assert file_snapshots(runner.folder) == {}
    runner.done("reopen", "--all")
    assert {name: snapshot[3] for name, snapshot in file_snapshots(runner.folder).items()} == before


@pytest.mark.parametrize(
    "words",
    [["--all"], ["--file", "a"], ["--file", "*"], ["--conversation", "conv_one"], ["1..3"]],
    ids=" ".join,
)
@pytest.mark.parametrize("rejected", [["1", "2", "3"], ["3"], ["2", "3"]], ids=" ".join)
def test_a_group_that_is_accepted_brings_back_nothing_rejected(
    runner: CommandRunner, words: list[str], rejected: list[str]
) -> None:
    three_conversations(runner)
    runner.done("reject", *rejected)
    before = file_snapshots(runner.folder)
    runner.done("accept", *words)
    runner.done("accept", *words)
    assert {name for name, status in runner.statuses().items() if status is REJECTED} == {
        f"{name}:{int(name == '3')}" for name in rejected
    }
    assert file_snapshots(runner.folder) == before


def test_an_accepted_group_says_what_stays_rejected_and_how_to_bring_it_back(runner: CommandRunner) -> None:
    two_hunks(runner)
    runner.write("other", b"x\n")
    runner.done("reject", "2:1", "3")
    runner.done("accept", "--all")
    before = file_snapshots(runner.folder)
    said = runner.done("accept", "--all").text
    assert said == (
        "Nothing here waits to be accepted. Still rejected: 2:1, 3. To bring one back, name it: `cas accept 2:1`.\n"
    )
    refused = runner.cas("accept", "other")
    assert (refused.status, refused.said) == (
        1,
        "cas: Nothing is pending at other. Still rejected: 3. To bring it back, name it: `cas accept 3`.\n",
    )
    assert runner.cas("accept", ".").status == 1
    assert file_snapshots(runner.folder) == before
    runner.done("accept", "2:1")
    assert runner.done("reopen", "other").text.startswith("Made pending again: edit 3.\n")
    assert runner.statuses() == {"1:0": ACCEPTED, "2:1": ACCEPTED, "2:2": ACCEPTED, "3:0": PENDING}


def test_resetting_all_makes_everything_pending(runner: CommandRunner) -> None:
    three_conversations(runner)
    runner.done("reject", "3")
    runner.done("accept", "1")
    runner.done("reset", "--all")
    assert set(runner.statuses().values()) == {PENDING}


def test_all_of_nothing_is_nothing_to_do(runner: CommandRunner) -> None:
    for action in ("accept", "reject", "reset"):
        assert runner.done(action, "--all").text.startswith("Nothing to do")


def test_a_group_without_anything_to_reject_is_not_called_rejected(runner: CommandRunner) -> None:
    for text in ("1\n", "mine\n"):
        (runner.folder / "a").write_text(text)
        runner.done("record")
    assert runner.done("reject", "--all").text == "Nothing to do: nothing here is left to reject.\n"


def test_a_decision_on_a_file_leaves_edits_by_hand(runner: CommandRunner) -> None:
    runner.write("a", b"1\n2\n3\n")
    (runner.folder / "a").write_bytes(b"1\n2\n3\nmine\n")
    runner.edit("a", b"1", b"one")
    runner.edit("a", b"2", b"two")
    assert [edit["origin"] for edit in runner.done("log", "--json", "--reverse").lines()] == [
        "agent",
        "external",
        "agent",
        "agent",
    ]
    ran = runner.cas("reject", "--file", "a")
    assert ran.status == 1
    assert "edit 2 hunk 1" in ran.said
    runner.done("accept", "1")
    runner.done("reset", "--all")
    assert runner.statuses()["2:1"] is ACCEPTED


# ---- undo


def test_undo_reverts_decisions_from_newest_to_oldest(runner: CommandRunner) -> None:
    two_hunks(runner)
    runner.done("accept", "1")
    runner.done("reject", "2:1")
    runner.done("reject", "2:2")
    assert runner.bytes("poem") == POEM
    assert runner.done("undo").text == "Undid the rejection of hunk 2:2.\nRewrote poem\n"
    assert runner.bytes("poem") == POEM.replace(b"line 20\n", b"LINE 20\nmore\n")
    runner.done("undo")
    assert runner.bytes("poem") == POEM_WITH_TWO_HUNKS
    assert runner.done("undo", "--json").json()["changed"] == [{"name": "1:0", "status": "pending", "cascaded": False}]
    assert set(runner.statuses().values()) == {PENDING}
    ran = runner.cas("undo")
    assert (ran.status, ran.out, ran.said) == (1, b"", "cas: No decision to undo.\n")


def test_redo_repeats_the_undone_decisions(runner: CommandRunner) -> None:
    two_hunks(runner)
    runner.done("reject", "2:1")
    runner.done("reject", "2:2", "--reason", "too much")
    runner.done("undo")
    runner.done("undo")
    assert runner.bytes("poem") == POEM_WITH_TWO_HUNKS
    runner.done("redo")
    assert runner.done("redo").text == "Redid the rejection of hunk 2:2.\nRewrote poem\n"
    assert runner.bytes("poem") == POEM
    assert runner.done("log", "--json", "-n", "1").json()["reason"] == "too much"
    ran = runner.cas("redo")
    assert (ran.status, ran.out, ran.said) == (1, b"", "cas: No decision to redo.\n")


def test_a_new_decision_leaves_nothing_to_redo(runner: CommandRunner) -> None:
    two_hunks(runner)
    runner.done("reject", "2:1")
    runner.done("undo")
    runner.done("accept", "2:2")
    assert runner.cas("redo").said == "cas: No decision to redo.\n"


# ---- notices


def test_an_adjacent_hunk_with_the_opposite_decision_is_named(runner: CommandRunner) -> None:
    runner.write("a", b"one\ntwo\nthree\nfour\n")
    runner.edit("a", b"two", b"2")
    runner.edit("a", b"three", b"3")
    runner.edit("a", b"one", b"1")
    assert "Note" not in runner.done("accept", "2").text
    note = "hunk 3:1, rejected, is directly next to 2:1, which is accepted (a:3)"
    assert runner.done("reject", "3").text == f"Rejected edit 3.\nRewrote a\nNote: {note}.\n"
    assert "Note" not in runner.done("accept", "4").text
    assert runner.bytes("a") == b"1\n2\nthree\nfour\n"
    assert runner.done("accept", "1", "3", "--dry-run", "--json").json()["notices"] == []
    assert runner.done("reject", "2", "4", "--json").json()["notices"] == []


# ---- dry run


def test_a_dry_run_shows_the_diff_and_changes_nothing(runner: CommandRunner) -> None:
    two_hunks(runner)
    before, journal = file_snapshots(runner.folder), file_snapshots(runner.folder / ".cas")
    ran = runner.done("reject", "2:2", "--dry-run")
    assert ran.text == (
        "Dry run: nothing was changed.\n"
        "Would reject hunk 2:2.\n"
        "Would rewrite poem\n"
        "diff --git a/poem b/poem\n--- a/poem\n+++ b/poem\n"
        "@@ -17,8 +17,7 @@\n line 17\n line 18\n line 19\n-LINE 20\n-more\n+line 20\n line 21\n line 22\n line 23\n"
    )
    assert file_snapshots(runner.folder) == before
    assert file_snapshots(runner.folder / ".cas") == journal
    assert set(runner.statuses().values()) == {PENDING}


def test_a_dry_run_shows_moves_modes_and_deletions(runner: CommandRunner) -> None:
    runner.write("a", b"x\n", mode=0o644)
    runner.write("a", b"x\n", mode=0o755)
    assert "old mode 100755\nnew mode 100644\n" in runner.done("reject", "2", "--dry-run").text
    runner.move("a", "b")
    move = runner.done("reject", "3", "--dry-run").text
    assert "Would move b -> a\ndiff --git a/b b/a\nrename from b\nrename to a\n" in move
    assert "deleted file mode 100755\n--- a/b\n+++ /dev/null\n" in runner.done("reject", "--all", "--dry-run").text
    runner.delete("b")
    assert "new file mode 100755\n--- /dev/null\n+++ b/b\n" in runner.done("reject", "4", "--dry-run").text


@pytest.mark.parametrize("words", [["reject", "2"], ["reject", "--all"], ["undo"], ["accept", "1"]])
def test_a_dry_run_as_json_equals_the_decision(runner: CommandRunner, words: list[str]) -> None:
    two_hunks(runner)
    runner.done("reject", "2:1")
    dry = runner.done(*words, "--dry-run", "--json").json()
    real = runner.done(*words, "--json").json()
    assert dry.pop("dry_run") is True
    assert real.pop("dry_run") is False
    assert dry.pop("decision") is None
    assert isinstance(real.pop("decision"), int)
    for effect in dry["files"]:
        assert isinstance(effect.pop("diff"), str)
    assert dry == real


@pytest.mark.parametrize("words", [["reject", "--all"], ["undo"]], ids=" ".join)
def test_a_slow_decision_shows_the_progress_of_each_step(runner: CommandRunner, words: list[str]) -> None:
    for name in ("a", "b", "c"):
        runner.write(name, b"1\n")
    runner.done("reject", "2")
    _, shown = with_progress(*words, folder=runner.folder, patience=0)
    for work in (rb"comparing \[[#.]{24}\] 0 of (\d) files", rb"replaying \[[#.]{24}\] 0 of (\d) documents"):
        found = re.search(rb"\r\x1b\[K" + work, shown)
        assert found is not None, shown
        assert found[1] == (b"1" if words == ["undo"] else b"2")
    assert shown.endswith(b"\r\x1b[K")


def test_json_of_a_notice_about_an_adjacent_hunk(runner: CommandRunner) -> None:
    runner.write("a", b"one\ntwo\nthree\nfour\n")
    runner.edit("a", b"two", b"2")
    runner.edit("a", b"three", b"3")
    runner.done("accept", "2")
    assert runner.done("reject", "3", "--json").json()["notices"] == [
        {
            "unit": "3:1",
            "status": "rejected",
            "beside": ["2:1"],
            "file_path": os.fspath(runner.folder / "a"),
            "line": 3,
            "message": "hunk 3:1, rejected, is directly next to 2:1, which is accepted (a:3)",
        }
    ]


def test_json_of_a_decision(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.write("a", b"y\n")
    document = runner.done("reject", "2", "--json").json()
    (effect,) = document.pop("files")
    assert document == {
        "outcome": "decided",
        "action": "reject",
        "dry_run": False,
        "decision": 1,
        "act": None,
        "edits": 1,
        "accepted_edits": 0,
        "taken_back": [],
        "older": [],
        "broken": [],
        "absent": [],
        "given_to": [],
        "changed": [{"name": "2:1", "status": "rejected", "cascaded": False}],
        "recorded": [],
        "notices": [],
        "markers": [],
        "unmarked": [],
        "repeated": [],
        "taken_out": [],
        "kept": [],
        "conflicts": [],
        "accept_first": [],
        "reject_first": [],
        "can_keep_lines": False,
        "external_changes": [],
    }
    assert list(effect) == ["path_before", "path_after", "blob_before", "blob_after", "mode_before", "mode_after"]
    assert effect["path_before"] == effect["path_after"] == os.fspath(runner.folder / "a")


def test_a_changed_final_newline_is_decided_as_a_hunk_of_its_own(runner: CommandRunner) -> None:
    runner.write("f", b"a\nb\n")
    runner.write("f", b"a")
    assert runner.done("reject", "2:0").text.startswith("Rejected hunk 2:0.\n")
    assert runner.done("reject", "2:1").text.startswith("Rejected hunk 2:1.\n")
    assert runner.done("accept", "2:0", "--dry-run").text.splitlines()[1] == "Would accept hunk 2:0."
    assert runner.done("accept", "2").text.startswith("Accepted edit 2.\n")
    assert runner.done("reject", "1", "2").text.startswith("Rejected edits 1 2.\n")


# ---- what is not in the file any more


def test_an_edit_that_a_person_took_out_is_not_accepted_and_can_be_rejected(runner: CommandRunner) -> None:
    two_hunks(runner)
    runner.done("accept", "1")
    runner.write("other", b"text\n")
    (runner.folder / "poem").write_bytes(POEM)
    runner.done("record")
    assert "# poem: 1 edit was taken out by later accepted changes [2:1 2:2]" in runner.done("diff").text
    assert runner.cas("accept", "2").said == (
        "cas: 2:1, 2:2 can't be accepted: their changes are not in poem any more, because you took them out. "
        "To reject them, run `cas reject 2:1 2:2`.\n"
    )
    assert runner.done("accept", "--all").text == (
        "Accepted edit 3.\n"
        "Edit 2 stays pending: its change is not in the file any more, because you took it out.\n"
        "To reject it:  cas reject 2\n"
        "No file changed.\n"
    )
    assert runner.done("reject", "2").text == "Rejected edit 2.\nNo file changed.\n"


@pytest.mark.parametrize("command", [("reject", "2"), ("undo",)])
def test_a_named_pipe_in_a_file_s_way_is_named_and_nothing_is_discarded(
    runner: CommandRunner, command: tuple[str, ...]
) -> None:
    runner.write("a", b"1\n")
    runner.edit("a", b"1\n", b"2\n")
    if command == ("undo",):
        runner.done("reject", "2")
    (runner.folder / "a").unlink()
    os.mkfifo(runner.folder / "a")
    before = runner.done("log").text
    refused = runner.cas(*command, "--my-changes", "drop")
    assert refused.status == 1
    assert "a is taken by a named pipe that no edit put there." in refused.said
    assert "Move the named pipe at a away and try again" in refused.said
    assert runner.done("log").text == before
    assert (runner.folder / "a").is_fifo()


def test_a_named_pipe_in_the_place_of_a_file_is_named_at_once(runner: CommandRunner) -> None:
    seq = runner.write("f", b"a\n")
    (runner.folder / "f").unlink()
    os.mkfifo(runner.folder / "f")
    ran = runner.cas("reject", str(seq))
    assert ran.status == 1
    assert ran.said.splitlines() == [
        "cas: refused, nothing was changed: a named pipe is in the place of f.",
        "Move it away and run the command again.",
    ]
    (runner.folder / "f").unlink()
    assert runner.cas("reject", str(seq), "--my-changes", "drop").status == 0


@pytest.mark.skipif(sys.platform != "linux", reason="file systems elsewhere may keep no holes")
def test_a_sparse_file_stays_sparse(runner: CommandRunner) -> None:
    path, size = runner.folder / "image", 8 << 20
    with path.open("wb") as file:
        file.truncate(size)
    runner.done("record")
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"x")
    runner.done("record", "--agent", "x")
    for words in (["reject", "1"], ["undo"], ["redo"]):
        runner.done(*words)
        found = path.stat()
        assert found.st_size == size
        assert found.st_blocks * 512 < size // 8
