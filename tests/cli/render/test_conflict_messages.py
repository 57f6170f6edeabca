"""A refused decision changes nothing; its message names the edits, the lines and commands that resolve the conflict."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from objstore import Call, Operation, Status
from tests.cli.commands.reviewing.test_accept_reject_undo import file_snapshots
from tests.support.command_runner import CommandRunner, cas

PENDING, ACCEPTED, REJECTED = Status.PENDING, Status.ACCEPTED, Status.REJECTED


def two_edits_of_one_line(runner: CommandRunner) -> None:
    """Edit 3 changes the line that edit 2 wrote."""
    runner.write("a", b"one\ntwo\nthree\n")
    runner.edit("a", b"two", b"2")
    runner.edit("a", b"2", b"II")


def edit_of_a_line_with_a_rejected_edit(runner: CommandRunner) -> None:
    """Edit 3 changes the line that edit 2 changed before it was rejected."""
    runner.write("a", b"one\ntwo\nthree\n")
    runner.edit("a", b"two", b"2")
    runner.done("reject", "2")
    runner.edit("a", b"two", b"II")


def test_a_conflict_names_the_edits_the_lines_and_the_resolving_commands(runner: CommandRunner) -> None:
    two_edits_of_one_line(runner)
    before = file_snapshots(runner.folder)
    ran = runner.cas("reject", "2")
    assert (ran.status, ran.out) == (1, b"")
    assert ran.said == (
        "cas: refused, nothing was changed: 1 conflict.\n"
        "  edit 3 hunk 1 needs edit 2 (a:2)\n"
        "    - 2\n"
        "    + II\n"
        "To reject what depends on it too:  cas reject --cascade 2\n"
        "Or name them together:  cas reject 2 3\n"
    )
    assert file_snapshots(runner.folder) == before
    assert set(runner.statuses().values()) == {PENDING}


def test_a_refusal_names_ten_dependents_and_counts_the_rest(runner: CommandRunner) -> None:
    runner.write("a", b"one\n0\nthree\n")
    for number in range(30):
        runner.edit("a", b"%d" % number, b"%d" % (number + 1))
    ran = runner.cas("reject", "2")
    assert (ran.status, ran.out) == (1, b"")
    assert ran.said == (
        "cas: refused, nothing was changed: 1 conflict.\n"
        "  edit 3 hunk 1 needs edit 2 (a:2)\n"
        "    - 1\n"
        "    + 2\n"
        "Would have to be rejected too: 3 4 5 6 7 8 9 10 11 12 and 19 more (--json lists all).\n"
        "To reject what depends on it too:  cas reject --cascade 2\n"
    )
    assert json.loads(runner.cas("reject", "2", "--json").out)["reject_first"] == [f"{n}:1" for n in range(3, 32)]
    runner.done("reject", "--cascade", "2")
    assert runner.folder.joinpath("a").read_bytes() == b"one\n0\nthree\n"


@pytest.mark.parametrize("line", [-2, -1], ids=["cascade", "together"])
@pytest.mark.parametrize("before", [True, False], ids=["cas -C", "reject -C"])
def test_a_resolving_command_names_the_workspace_given_by_option(
    runner: CommandRunner, tmp_path: Path, line: int, *, before: bool
) -> None:
    (tmp_path / "another one").mkdir()
    other = CommandRunner(tmp_path / "another one")
    two_edits_of_one_line(runner)
    two_edits_of_one_line(other)
    workspace_option = ["-C", os.path.relpath(other.folder, runner.folder)]
    ran = runner.cas(*workspace_option, "reject", "2") if before else runner.cas("reject", *workspace_option, "2")
    program, *words = shlex.split(ran.said.splitlines()[line].partition(":  ")[2])
    assert program == "cas"
    runner.done(*words)
    assert set(runner.statuses().values()) == {PENDING}
    assert other.statuses() == {"1:0": PENDING, "2:1": REJECTED, "3:1": REJECTED}


def test_commands_in_other_messages_name_the_workspace_given_by_option(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("sub/a", b"one\n")
    runner.write("sub/a", b"two\n")
    workspace_option = ["-C", str(runner.folder)]
    undo_command = f"cas -C {runner.folder}/sub undo"
    assert cas(*workspace_option, "restore", "a@1", "-C", "sub", folder=tmp_path).text == (
        f"Restored sub/a as edit 3; `{undo_command}` takes it back.\n"
    )
    assert cas(*workspace_option, "undo", "-C", "sub", folder=tmp_path).text.startswith("Undid the restore of sub/a (")
    assert runner.done("snapshot").status == 0
    runner.write("sub/a", b"three\n")
    message = cas(*workspace_option, "snapshot", "restore", "1", folder=tmp_path).text
    assert f"`cas -C {runner.folder} undo` takes it back." in message
    message = cas(*workspace_option, "show", "sub/a", folder=tmp_path).said
    assert message.endswith(f"It is a file: `cas -C {runner.folder} log sub/a` lists its edits.\n")


def test_commands_without_an_edit_number_name_the_workspace_given_by_option(
    runner: CommandRunner, tmp_path: Path
) -> None:
    runner.write("a", b"one\n", conversation="conv_of_another")
    runner.write("b", b"one\n", conversation="conv_mine")
    runner.write("c@1", b"one\n")
    runner.delete("c@1")
    program = f"cas -C {runner.folder}"

    def output_of(*words: str) -> str:
        ran = cas("-C", str(runner.folder), *words, folder=tmp_path)
        return ran.text + ran.said

    assert f"`{program} log --file a` lists who did." in output_of(
        "reject", "--conversation", "conv_mine", "--file", "a"
    )
    assert f"There are no pins. `{program} pin add EDIT` makes one." in output_of("pin")
    assert f"There are no snapshots. `{program} snapshot` takes one." in output_of("snapshot", "list")
    assert f"`{program} log PATH` lists them." in output_of("blame", "a@2h")
    assert f"`{program} purge` removes that too." in output_of("purge", "a", "--past")
    assert f"(`{program} log c@1` lists its edits)." in output_of("purge", "c@1")
    runner.done("reject", "3")
    said = output_of("reject", "3", "-m", "why")
    assert f"The reason was not recorded. To record it, `{program} reopen` them" in said
    (runner.folder / "b").write_bytes(b"mine\n")
    assert f"See `{program} diff --unrecorded`." in output_of("reject", "2")
    segment = runner.folder / ".cas" / "segments" / "00000001.seg"
    segment.write_bytes(segment.read_bytes().replace(b"one", b"two"))
    assert f"`{program} fsck` to see what is damaged" in output_of("cat", "a@1")


@pytest.mark.parametrize("words", [["reject", "--cascade", "2"], ["reject", "2", "3"]])
def test_each_resolving_command_of_a_reject_works(runner: CommandRunner, words: list[str]) -> None:
    two_edits_of_one_line(runner)
    runner.done(*words)
    assert runner.bytes("a") == b"one\ntwo\nthree\n"
    assert runner.statuses() == {"1:0": PENDING, "2:1": REJECTED, "3:1": REJECTED}


def test_the_resolving_commands_of_reject_all_and_reopen_all_work(runner: CommandRunner) -> None:
    runner.write("a", b"one\ntwo\n")
    (runner.folder / "a").write_bytes(b"one\nmine\n")
    runner.done("record")
    ran = runner.cas("reject", "--all")
    assert (ran.status, ran.said.splitlines()[-2:]) == (
        1,
        [
            "To reject what depends on it too:  cas reject --cascade --all",
            "Or name them together:  cas reject 1..2 2",
        ],
    )
    runner.edit("a", b"mine", b"theirs")
    runner.done("accept", "1")
    runner.done("reject", "2", "--cascade")
    ran = runner.cas("reopen", "--all")
    assert (ran.status, ran.said.splitlines()[-1]) == (1, "To reopen them together:  cas reopen 1..3 2")
    runner.done("reopen", "1..3", "2")
    assert runner.bytes("a") == b"one\ntheirs\n"
    runner.done("reject", "1..3", "2")
    assert not (runner.folder / "a").exists()


def test_lines_of_a_hunk_in_two_conflicts_are_shown_once(runner: CommandRunner) -> None:
    runner.write("a", b"1\n2\n3\n4\n")
    runner.edit("a", b"2\n", b"two\n")
    runner.edit("a", b"3\n", b"three\n")
    runner.edit("a", b"two\nthree\n", b"X\n")
    assert runner.cas("reject", "2", "3").said.startswith(
        "cas: refused, nothing was changed: 2 conflicts.\n"
        "  edit 4 hunk 1 needs edit 2, 3 (a:2)\n"
        "    - two\n"
        "    - three\n"
        "    + X\n"
        "  edit 4 hunk 1 was made without text that edit 3 changes (a:2)\n"
        "To reject what depends on it too:"
    )


def test_a_cascade_names_the_dependents_that_it_rejected(runner: CommandRunner) -> None:
    two_edits_of_one_line(runner)
    dry = runner.done("reject", "--cascade", "2", "--dry-run").text
    assert "Would reject edit 2.\nWould also reject edit 3, which depends on it.\n" in dry
    assert runner.done("reject", "--cascade", "2", "--json").json()["changed"] == [
        {"name": "2:1", "status": "rejected", "cascaded": False},
        {"name": "3:1", "status": "rejected", "cascaded": True},
    ]


def test_accepting_an_edit_that_needs_a_rejected_one_names_it(runner: CommandRunner) -> None:
    two_edits_of_one_line(runner)
    runner.done("reject", "2", "3")
    ran = runner.cas("accept", "3")
    assert ran.status == 1
    assert "edit 3 hunk 1 needs edit 2" in ran.said
    assert ran.said.endswith("To accept them together:  cas accept 3 2\n")
    runner.done("accept", "3", "2")
    assert runner.bytes("a") == b"one\nII\nthree\n"


def chain_of_changes(runner: CommandRunner) -> None:
    """Each of the edits 2, 3 and 4 changes the line that the one before it wrote."""
    two_edits_of_one_line(runner)
    runner.edit("a", b"II", b"deux")


def test_a_refused_reject_names_every_edit_of_a_chain(runner: CommandRunner) -> None:
    chain_of_changes(runner)
    ran = runner.cas("reject", "2")
    assert "Or name them together:  cas reject 2 3 4\n" in ran.said
    assert runner.cas("reject", "2", "--json").json()["reject_first"] == ["3:1", "4:1"]
    runner.done("reject", "2", "3", "4")
    assert runner.bytes("a") == b"one\ntwo\nthree\n"


def test_a_refused_accept_names_every_edit_of_a_chain(runner: CommandRunner) -> None:
    chain_of_changes(runner)
    runner.done("reject", "2", "3", "4")
    ran = runner.cas("accept", "4")
    assert ran.status == 1
    assert "edit 4 hunk 1 needs edit 3 (a:2)" in ran.said
    assert ran.said.endswith("To accept them together:  cas accept 4 2 3\n")
    document = runner.cas("accept", "4", "--json").json()
    assert (document["accept_first"], document["reject_first"]) == (["2:1", "3:1"], [])
    runner.done("accept", "4", "2", "3")
    assert runner.bytes("a") == b"one\ndeux\nthree\n"


def test_accepting_an_edit_of_a_line_changed_since_names_the_edit_to_reject_first(runner: CommandRunner) -> None:
    edit_of_a_line_with_a_rejected_edit(runner)
    ran = runner.cas("accept", "2")
    assert ran.status == 1
    assert "both change the same lines (a:2)" in ran.said
    assert ran.said.endswith("To make room first:  cas reject 3\n")
    runner.done("reject", "3")
    runner.done("accept", "2")
    assert runner.bytes("a") == b"one\n2\nthree\n"


def test_edits_to_reject_are_named_before_edits_to_accept(runner: CommandRunner) -> None:
    two_edits_of_one_line(runner)
    runner.done("reject", "2", "3")
    runner.edit("a", b"two", b"zwei")
    ran = runner.cas("accept", "3")
    assert ran.said.endswith("To make room first:  cas reject 4\nTo accept them together:  cas accept 3 2\n")
    runner.done("reject", "4")
    runner.done("accept", "3", "2")
    assert runner.bytes("a") == b"one\nII\nthree\n"


def test_the_edits_to_reject_first_can_be_rejected_alone(runner: CommandRunner) -> None:
    """Edit 3 sets the mode and could stay accepted in the end, but not while there is no file."""
    runner.write("a", b"1\n")
    runner.done("reject", "1")
    runner.write("a", b"2\n")
    runner.write("a", b"3\n", mode=0o755)
    ran = runner.cas("accept", "1")
    assert ran.said.endswith("To make room first:  cas reject 2 3\n")
    runner.done("reject", "2", "3")
    runner.done("accept", "1")
    assert runner.bytes("a") == b"1\n"


@pytest.mark.parametrize("is_left_out", [False, True])
def test_a_move_back_to_a_path_taken_by_a_file_that_is_not_recorded_names_the_edit_and_the_way_on(
    runner: CommandRunner, *, is_left_out: bool
) -> None:
    runner.write("a", b"old\n")
    runner.move("a", "b")
    if is_left_out:
        (runner.folder / ".casignore").write_text("a\n")
    (runner.folder / "a").write_bytes(b"a person's\n")
    before = file_snapshots(runner.folder)
    for words in (["reject", "2"], ["reject", "2", "--my-changes", "keep"], ["reject", "2", "--dry-run"]):
        ran = runner.cas(*words)
        assert (ran.status, ran.out) == (1, b"")
        assert ran.said == (
            "cas: a is taken by a file that no edit put there. Without edit 2 its file is there again. "
            "Move the file at a away and try again, or leave out edit 2.\n"
        )
        assert file_snapshots(runner.folder) == before
    (runner.folder / "a").rename(runner.folder / "mine")
    runner.done("reject", "2")
    assert (runner.bytes("a"), runner.bytes("mine")) == (b"old\n", b"a person's\n")


def test_a_move_to_a_path_taken_by_a_file_that_is_not_recorded_names_the_edit_and_the_way_on(
    runner: CommandRunner,
) -> None:
    runner.write("a", b"old\n")
    runner.move("a", "b")
    runner.done("reject", "2")
    (runner.folder / "b").write_bytes(b"a person's\n")
    assert runner.cas("accept", "2").said == (
        "cas: b is taken by a file that no edit put there. Edit 2 puts its file there. "
        "Move the file at b away and try again, or leave out edit 2.\n"
    )
    (runner.folder / "b").rename(runner.folder / "mine")
    runner.done("accept", "2")
    assert (runner.bytes("b"), runner.bytes("mine")) == (b"old\n", b"a person's\n")


def test_a_taken_path_is_resolved_by_names_and_not_by_cascade(runner: CommandRunner) -> None:
    runner.write("a", b"old\n")
    runner.move("a", "b")
    runner.write("a", b"new\n")
    runner.edit("a", b"new", b"newer")
    for words in (["reject", "2"], ["reject", "--cascade", "2"]):
        ran = runner.cas(*words)
        assert ran.status == 1
        assert "edit 1 puts a file where edit 3 has put another (a)" in ran.said
        assert ran.said.endswith("(a)\nTo reject them together:  cas reject 2 3 4\n")
    runner.done("reject", "2", "3", "4")
    assert runner.bytes("a") == b"old\n"


def test_two_edits_of_one_line_cannot_be_accepted_together(runner: CommandRunner) -> None:
    edit_of_a_line_with_a_rejected_edit(runner)
    for words in (["accept", "2", "3"], ["accept", "2", "3", "--markers"]):
        ran = runner.cas(*words)
        assert ran.status == 1
        assert "both change the same lines (a:2)" in ran.said
        assert "make room" not in ran.said
    assert runner.bytes("a") == b"one\nII\nthree\n"


def test_no_resolving_command_is_named_where_one_file_has_none(runner: CommandRunner) -> None:
    edit_of_a_line_with_a_rejected_edit(runner)
    runner.write("b", b"p\n")
    runner.edit("b", b"p", b"q")
    runner.done("reject", "4", "5")
    assert "To accept them together:  cas accept 5 4\n" in runner.cas("accept", "5").said
    document = runner.cas("accept", "2", "3", "5", "--json").json()
    assert {conflict["file_path"] for conflict in document["conflicts"]} == {str(runner.folder / name) for name in "ab"}
    assert (document["accept_first"], document["reject_first"]) == ([], [])


def test_a_refused_undo_is_a_conflict(runner: CommandRunner) -> None:
    edit_of_a_line_with_a_rejected_edit(runner)
    ran = runner.cas("undo")
    assert ran.status == 1
    assert "both change the same lines (a:2)" in ran.said
    assert ran.said.endswith("To undo it all the same:  cas reject 3 && cas undo --decision 1\n")
    runner.done("reject", "3")
    runner.done("undo", "--decision", "1")
    assert runner.bytes("a") == b"one\n2\nthree\n"


def test_a_refused_undo_names_an_earlier_decision_that_can_be_undone(runner: CommandRunner) -> None:
    runner.write("b", b"p\n")
    runner.done("reject", "1")
    runner.write("a", b"one\ntwo\n")
    runner.edit("a", b"two", b"2")
    runner.done("reject", "3")
    runner.edit("a", b"two", b"II")
    assert runner.cas("undo").said.endswith("To undo the decision on edit 1 instead:  cas undo --decision 1\n")
    assert runner.done("undo", "--decision", "1").text == "Undid the rejection of edit 1.\nRestored b\n"
    assert "instead" not in runner.cas("undo").said


def test_a_decision_that_cannot_be_undone_by_number_says_why(runner: CommandRunner) -> None:
    runner.write("a", b"one\n")
    runner.done("reject", "1")
    runner.done("accept", "1")
    assert runner.cas("undo", "--decision", "1").said == (
        "cas: Decision 1 can't be undone before decision 2, which is about edit 1 too. "
        "Run `cas undo --decision 2` first.\n"
    )
    assert "There is no decision 3 to undo" in runner.cas("undo", "--decision", "3").said


def test_an_undo_says_which_edits_were_made_again(runner: CommandRunner) -> None:
    edit_of_a_line_with_a_rejected_edit(runner)
    runner.done("reject", "3")
    runner.edit("a", b"two", b"II")
    ran = runner.done("undo")
    assert ran.text == (
        "Undid the rejection of edit 3.\nEdit 3 stays rejected: edit 4 makes the same change.\nNo file changed.\n"
    )
    assert runner.bytes("a") == b"one\nII\nthree\n"


def test_a_dry_run_reports_the_same_conflict(runner: CommandRunner) -> None:
    two_edits_of_one_line(runner)
    assert runner.cas("reject", "2", "--dry-run") == runner.cas("reject", "2")


def test_json_of_a_conflict(runner: CommandRunner) -> None:
    two_edits_of_one_line(runner)
    ran = runner.cas("reject", "2", "--json")
    assert ran.status == 1
    document = ran.json()
    (conflict,) = document.pop("conflicts")
    assert document == {
        "outcome": "conflict",
        "action": "reject",
        "dry_run": False,
        "decision": None,
        "act": None,
        "edits": 0,
        "accepted_edits": 0,
        "taken_back": [],
        "changed": [],
        "files": [],
        "recorded": [],
        "notices": [],
        "markers": [],
        "unmarked": [],
        "repeated": [],
        "taken_out": [],
        "accept_first": [],
        "reject_first": ["3:1"],
        "external_changes": [],
        "can_keep_lines": False,
        "kept": [],
        "given_to": [],
        "older": [],
        "broken": [],
        "absent": [],
    }
    assert conflict == {
        "kind": "missing-target",
        "unit": "3:1",
        "needs": ["2:1"],
        "file_path": str(runner.folder / "a"),
        "line": 2,
        "removed": "2\n",
        "inserted": "II\n",
        "removed_bytes": 2,
        "inserted_bytes": 3,
        "outside": [],
        "message": "edit 3 hunk 1 needs edit 2 (a:2)",
    }


def insertion_inside_a_rejected_block(runner: CommandRunner) -> list[str]:
    for words in ("p q", "p a b q", "p a N b q"):
        runner.write("a", words.replace(" ", "\n").encode() + b"\n")
    return ["reject", "2"]


def insertion_where_text_was_deleted(runner: CommandRunner) -> list[str]:
    for words in ("p X q", "p q", "p N q"):
        runner.write("a", words.replace(" ", "\n").encode() + b"\n")
    return ["reject", "2"]


def edit_of_a_changed_line(runner: CommandRunner) -> list[str]:
    edit_of_a_line_with_a_rejected_edit(runner)
    return ["accept", "2"]


def move_of_a_deleted_file(runner: CommandRunner) -> list[str]:
    runner.write("a", b"p\n")
    runner.move("a", "b")
    runner.done("reject", "2")
    runner.delete("a")
    return ["accept", "2"]


def rejected_move_to_a_taken_name(runner: CommandRunner) -> list[str]:
    (runner.folder / "a").write_bytes(b"one\ntwo\n")
    runner.done("reject", str(runner.edit("a", b"two", b"2")))
    runner.move("a", "b")
    runner.write("a", b"another\n")
    return ["reject", "2"]


def rejected_deletion_at_a_taken_path(runner: CommandRunner) -> list[str]:
    (runner.folder / "a").write_bytes(b"one\ntwo\n")
    runner.edit("a", b"two", b"2")
    runner.delete("a")
    runner.write("b", b"another\n")
    runner.move("b", "a")
    return ["reject", "2"]


def rejected_move_onto_a_taken_name(runner: CommandRunner) -> list[str]:
    runner.write("a", b"x\n")
    runner.move("a", "b")
    runner.write("a", b"y\n")
    return ["reject", "2"]


@pytest.mark.parametrize(
    ("prepare", "message", "kind", "unit", "needs", "line", "lines"),
    [
        (
            insertion_inside_a_rejected_block,
            "edit 3 hunk 1 is inside lines that edit 2 changes (a:3)\n    + N\n",
            *("surroundings-gone", "3:1", ["2:1"], 3, ("", "N\n")),
        ),
        (
            insertion_where_text_was_deleted,
            "edit 3 hunk 1 was made without text that edit 2 changes (a:2)\n    + N\n",
            *("text-returned-inside", "3:1", ["2:1"], 2, ("", "N\n")),
        ),
        (
            edit_of_a_changed_line,
            "edit 2 hunk 1 and edit 3 both change the same lines (a:2)\n    - two\n    + 2\n",
            *("both-changed", "2:1", ["3:1"], 2, ("two\n", "2\n")),
        ),
        (
            move_of_a_deleted_file,
            "edit 2 and edit 3 both change the file as a whole (b)\n",
            *("both-changed", "2:0", ["3:0"], None, ("", "")),
        ),
        (
            rejected_move_onto_a_taken_name,
            "edit 1 puts a file where edit 3 has put another (a)\n",
            *("path-taken", "1:0", ["3:0"], None, ("", "")),
        ),
        (
            rejected_move_to_a_taken_name,
            "without edit 2 the file is at a again, where edit 3 has put another\n",
            *("path-taken", "2:0", ["3:0"], None, ("", "")),
        ),
        (
            rejected_deletion_at_a_taken_path,
            "without edit 2 the file is at a again, where edit 4 has put another\n",
            *("path-taken", "2:0", ["4:0"], None, ("", "")),
        ),
    ],
)
def test_each_kind_of_conflict_has_a_message_and_json(
    runner: CommandRunner,
    prepare: Callable[[CommandRunner], list[str]],
    message: str,
    kind: str,
    unit: str,
    needs: list[str],
    line: int | None,
    lines: tuple[str, str],
) -> None:
    words = prepare(runner)
    assert f"  {message}" in runner.cas(*words).said
    found = runner.cas(*words, "--json").json()["conflicts"][0]
    assert [found[name] for name in ("kind", "unit", "needs", "line")] == [kind, unit, needs, line]
    assert (found["removed"], found["inserted"]) == lines
    assert f"  {message}".startswith(f"  {found['message']}\n")


def test_long_hunks_of_a_conflict_are_truncated_and_escaped(runner: CommandRunner) -> None:
    runner.write("a", b"one\n")
    runner.write("a", b"".join(b"\x1b[31mline %d\n" % number for number in range(20)))
    runner.write("a", b"all new\n")
    message = runner.cas("reject", "2").said
    assert "    - \\x1b[31mline 7\n      and 12 more lines\n    + all new\n" in message
    assert "\x1b" not in message


def test_a_conflict_truncates_a_line_of_megabytes_and_gives_its_size(runner: CommandRunner) -> None:
    # The one-byte "x" shifts every two-byte "ä", so that each limit falls inside a character.
    runner.write("a", b"one\n")
    runner.write("a", b"x" + "ä".encode() * 600_000 + b"\nshort\n")
    runner.write("a", b"all new\n")
    ran = runner.cas("reject", "2")
    assert "\n    - x" + "ä" * 249 + "\n      and 1199502 more bytes\n    - short\n    + all new\n" in ran.said
    (conflict,) = runner.cas("reject", "2", "--json").json()["conflicts"]
    assert conflict["removed"] == "x" + "ä" * 32_767
    assert (conflict["removed_bytes"], conflict["inserted"]) == (1_200_008, "all new\n")


@pytest.mark.parametrize("content", [b"\x89PNG\0\xfe\n", b"some text\n"])
def test_a_conflict_of_binary_content_shows_no_lines(runner: CommandRunner, content: bytes) -> None:
    runner.write("a", b"\0one\n")
    runner.write("a", b"\x89PNG\0\xff\n")
    runner.write("a", content)
    ran = runner.cas("reject", "2")
    assert "  edit 3 hunk 1 needs edit 2 (a:1)\n    Binary files differ\nTo reject" in ran.said
    (conflict,) = runner.cas("reject", "2", "--json").json()["conflicts"]
    assert (conflict["removed"], conflict["inserted"]) == (None, None)
    assert (conflict["removed_bytes"], conflict["inserted_bytes"]) == (7, len(content))


def test_many_conflicts_and_hunks_are_truncated_with_their_count(runner: CommandRunner) -> None:
    lines = [b"line %d\n" % number for number in range(120)]
    runner.write("a", b"".join(lines))

    def every_second(call: Call) -> None:
        content = b"".join(b"2" + line if number % 2 else line for number, line in enumerate(lines))
        call.write("a", content, operation=Operation.EDIT)

    runner.call(every_second)
    refused = runner.cas("reject", "1")
    lines_of_message = refused.said.splitlines()
    assert lines_of_message[0] == "cas: refused, nothing was changed: 60 conflicts."
    assert sum(line.startswith("  edit 2 hunk ") for line in lines_of_message) == 50
    assert lines_of_message[-3:] == [
        "  and 10 more (--json has them all)",
        "To reject what depends on it too:  cas reject --cascade 1",
        "Or name them together:  cas reject 1 2",
    ]
    assert len(runner.cas("reject", "1", "--json").json()["conflicts"]) == 60
    hunks = [f"2:{number}" for number in range(1, 60)]
    first, last = " ".join(hunks[:12]), f"{' '.join(hunks[:10])} ... 2:59 (59 hunks)"
    assert runner.done("reject", *hunks[:12]).text.splitlines()[0] == f"Rejected hunks {first}."
    assert runner.done("accept", *hunks).text.splitlines()[0] == f"Accepted hunks {last}."


def test_the_file_that_occupies_a_path_is_named_in_the_refusal(runner: CommandRunner) -> None:
    (runner.folder / "a").write_bytes(b"1\n2\n3\n")
    (runner.folder / "b").write_bytes(b"x\ny\n")
    runner.done("record")
    names = [f"{runner.delete('b')}"]
    moved = runner.move("a", "b")
    names += [f"{runner.write('b', bytes((0,)))}", f"{runner.delete('b')}"]
    ran = runner.cas("reject", *names)
    assert f"without edit {names[0]} the file is at b again, where edit {moved} has put another\n" in ran.said
    assert ran.said.endswith(f"To reject them together:  cas reject {' '.join(names)} {moved}\n")
    runner.done("reject", *names, str(moved))
    assert runner.bytes("b") == b"x\ny\n"


@pytest.mark.parametrize("names", [["2", "4"], ["4", "2"]])
def test_a_conflict_about_a_path_taken_by_a_file_does_not_depend_on_the_order_of_names(
    runner: CommandRunner, names: list[str]
) -> None:
    (runner.folder / "a").write_bytes(b"1\n2\n3\n")
    runner.edit("a", b"2", b"two")
    runner.move("a", "b")
    runner.write("a", b"new\n")
    runner.edit("a", b"new", b"newer")
    assert runner.cas("reject", *names).said == (
        "cas: refused, nothing was changed: 1 conflict.\n"
        "  without edit 2 the file is at a again, where edit 3 has put another\n"
        f"To reject them together:  cas reject {' '.join(names)} 3\n"
    )
    runner.done("reject", *names, "3")
    assert runner.bytes("a") == b"1\ntwo\n3\n"


@pytest.mark.parametrize("names", [["1", "3"], ["3", "1"]])
def test_a_conflict_about_a_path_taken_by_a_folder_does_not_depend_on_the_order_of_names(
    runner: CommandRunner, names: list[str]
) -> None:
    (runner.folder / "a").write_bytes(b"1\n2\n3\n")
    runner.move("a", "b")
    runner.write("a/x", b"new\n")
    runner.edit("a/x", b"new", b"newer")
    assert runner.cas("reject", *names).said == (
        "cas: refused, nothing was changed: 1 conflict.\n"
        "  without edit 1 the file is at a again, where edit 2 has put another\n"
        f"To reject them together:  cas reject {' '.join(names)} 2\n"
    )
