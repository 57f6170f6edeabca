"""A refused decision changes nothing and says which edit needs which, on which lines, and what can be done."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from objstore import Call, Operation, Status
from tests.cli.commands.reviewing.test_accept_reject_undo import looks
from tests.support.command_runner import CommandRunner, cas

PENDING, ACCEPTED, REJECTED = Status


def replaced_twice(runner: CommandRunner) -> None:
    """Edit 3 changes the line that edit 2 wrote."""
    runner.write("a", b"one\ntwo\nthree\n")
    runner.edit("a", b"two", b"2")
    runner.edit("a", b"2", b"II")


def both_change(runner: CommandRunner) -> None:
    """Edit 3 changed the line that edit 2 had changed, which was rejected by then."""
    runner.write("a", b"one\ntwo\nthree\n")
    runner.edit("a", b"two", b"2")
    runner.done("reject", "2")
    runner.edit("a", b"two", b"II")


def test_a_conflict_names_the_edits_the_lines_and_the_ways_out(runner: CommandRunner) -> None:
    replaced_twice(runner)
    before = looks(runner.folder)
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
    assert looks(runner.folder) == before
    assert set(runner.statuses().values()) == {PENDING}


def test_a_refusal_names_the_first_few_of_many_and_how_many_more_there_are(runner: CommandRunner) -> None:
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
def test_a_way_out_is_of_the_workspace_that_was_named_wherever_it_is_typed(
    runner: CommandRunner, tmp_path: Path, line: int, *, before: bool
) -> None:
    (tmp_path / "another one").mkdir()
    other = CommandRunner(tmp_path / "another one")
    replaced_twice(runner)
    replaced_twice(other)
    named = ["-C", os.path.relpath(other.folder, runner.folder)]
    ran = runner.cas(*named, "reject", "2") if before else runner.cas("reject", *named, "2")
    program, *words = shlex.split(ran.said.splitlines()[line].partition(":  ")[2])
    assert program == "cas"
    runner.done(*words)
    assert set(runner.statuses().values()) == {PENDING}
    assert other.statuses() == {"1:0": PENDING, "2:1": REJECTED, "3:1": REJECTED}


def test_what_else_a_person_is_told_to_type_is_of_the_workspace_that_was_named(
    runner: CommandRunner, tmp_path: Path
) -> None:
    runner.write("sub/a", b"one\n")
    runner.write("sub/a", b"two\n")
    named = ["-C", str(runner.folder)]
    takes_back = f"cas -C {runner.folder}/sub reject"
    assert cas(*named, "restore", "a@1", "-C", "sub", folder=tmp_path).text == (
        f"Restored sub/a as edit 3; `{takes_back} 3` takes it back.\n"
    )
    assert f"To undo it, run `{takes_back} 3`." in cas(*named, "undo", "-C", "sub", folder=tmp_path).said
    assert runner.done("snapshot").status == 0
    runner.write("sub/a", b"three\n")
    said = cas(*named, "snapshot", "restore", "1", folder=tmp_path).text
    assert f"`cas -C {runner.folder} reject --conversation " in said
    said = cas(*named, "reject", "sub/a", folder=tmp_path).said
    assert said.endswith(
        f"It is a file: `cas -C {runner.folder} log sub/a` lists its edits, and `--file sub/a` names them.\n"
    )


def test_what_a_person_is_told_to_type_without_a_number_is_of_the_workspace_that_was_named(
    runner: CommandRunner, tmp_path: Path
) -> None:
    runner.write("a", b"one\n", conversation="conv_of_another")
    runner.write("b", b"one\n", conversation="conv_mine")
    runner.write("c@1", b"one\n")
    runner.delete("c@1")
    program = f"cas -C {runner.folder}"

    def said(*words: str) -> str:
        ran = cas("-C", str(runner.folder), *words, folder=tmp_path)
        return ran.text + ran.said

    assert f"`{program} log --file a` lists who did." in said("reject", "--conversation", "conv_mine", "--file", "a")
    assert f"There are no pins. `{program} pin add EDIT` makes one." in said("pin")
    assert f"There are no snapshots. `{program} snapshot` takes one." in said("snapshot", "list")
    assert f"`{program} log PATH` lists them." in said("blame", "a@2h")
    assert f"and run `{program} record`;" in said("purge", "a")
    assert f"(`{program} log c@1` lists its edits)." in said("purge", "c@1")
    runner.done("reject", "3")
    assert f"The reason was not recorded. To record it, `{program} reset` them" in said("reject", "3", "-m", "why")
    (runner.folder / "b").write_bytes(b"mine\n")
    assert f"See `{program} diff --unrecorded`." in said("reject", "2")
    segment = runner.folder / ".cas" / "segments" / "00000001.seg"
    segment.write_bytes(segment.read_bytes().replace(b"one", b"two"))
    assert f"`{program} fsck` to see what is damaged" in said("cat", "a@1")


@pytest.mark.parametrize("words", [["reject", "--cascade", "2"], ["reject", "2", "3"]])
def test_each_way_out_of_a_reject_works(runner: CommandRunner, words: list[str]) -> None:
    replaced_twice(runner)
    runner.done(*words)
    assert runner.bytes("a") == b"one\ntwo\nthree\n"
    assert runner.statuses() == {"1:0": PENDING, "2:1": REJECTED, "3:1": REJECTED}


def test_the_ways_out_of_rejecting_or_accepting_all_work(runner: CommandRunner) -> None:
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
    ran = runner.cas("accept", "--all")
    assert (ran.status, ran.said.splitlines()[-1]) == (1, "To accept them together:  cas accept 1..3 2")
    runner.done("accept", "1..3", "2")
    assert runner.bytes("a") == b"one\ntheirs\n"
    runner.done("reject", "1..3", "2")
    assert not (runner.folder / "a").exists()


def test_lines_of_a_hunk_that_is_in_two_conflicts_are_said_once(runner: CommandRunner) -> None:
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
        "  edit 4 hunk 1 was made without text that edit 3 decides on (a:2)\n"
        "To reject what depends on it too:"
    )


def test_a_cascade_says_what_went_with_it(runner: CommandRunner) -> None:
    replaced_twice(runner)
    dry = runner.done("reject", "--cascade", "2", "--dry-run").text
    assert "Would reject edit 2.\nWould also reject 3:1, which depends on it.\n" in dry
    assert runner.done("reject", "--cascade", "2", "--json").json()["changed"] == [
        {"name": "2:1", "status": "rejected", "cascaded": False},
        {"name": "3:1", "status": "rejected", "cascaded": True},
    ]


def test_accepting_what_needs_a_rejected_edit_names_it(runner: CommandRunner) -> None:
    replaced_twice(runner)
    runner.done("reject", "2", "3")
    ran = runner.cas("accept", "3")
    assert ran.status == 1
    assert "edit 3 hunk 1 needs edit 2" in ran.said
    assert ran.said.endswith("To accept them together:  cas accept 3 2\n")
    runner.done("accept", "3", "2")
    assert runner.bytes("a") == b"one\nII\nthree\n"


def chain_of_changes(runner: CommandRunner) -> None:
    """Each of the edits 2, 3 and 4 changes the line that the one before it wrote."""
    replaced_twice(runner)
    runner.edit("a", b"II", b"deux")


def test_the_way_out_of_a_reject_is_named_to_the_last_edit(runner: CommandRunner) -> None:
    chain_of_changes(runner)
    ran = runner.cas("reject", "2")
    assert "Or name them together:  cas reject 2 3 4\n" in ran.said
    assert runner.cas("reject", "2", "--json").json()["reject_first"] == ["3:1", "4:1"]
    runner.done("reject", "2", "3", "4")
    assert runner.bytes("a") == b"one\ntwo\nthree\n"


def test_what_must_be_accepted_first_is_named_to_the_last_edit(runner: CommandRunner) -> None:
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


def test_accepting_into_a_changed_line_names_what_is_in_the_way(runner: CommandRunner) -> None:
    both_change(runner)
    ran = runner.cas("accept", "2")
    assert ran.status == 1
    assert "both change the same lines (a:2)" in ran.said
    assert ran.said.endswith("To make room first:  cas reject 3\n")
    runner.done("reject", "3")
    runner.done("accept", "2")
    assert runner.bytes("a") == b"one\n2\nthree\n"


def test_what_must_go_and_what_must_come_are_named_in_the_order_in_which_it_works(runner: CommandRunner) -> None:
    replaced_twice(runner)
    runner.done("reject", "2", "3")
    runner.edit("a", b"two", b"zwei")
    ran = runner.cas("accept", "3")
    assert ran.said.endswith("To make room first:  cas reject 4\nTo accept them together:  cas accept 3 2\n")
    runner.done("reject", "4")
    runner.done("accept", "3", "2")
    assert runner.bytes("a") == b"one\nII\nthree\n"


def test_what_must_go_first_can_go_alone(runner: CommandRunner) -> None:
    """The mode that edit 3 gives the file could stay in the end, but not while there is no file."""
    runner.write("a", b"1\n")
    runner.done("reject", "1")
    runner.write("a", b"2\n")
    runner.write("a", b"3\n", mode=0o755)
    ran = runner.cas("accept", "1")
    assert ran.said.endswith("To make room first:  cas reject 2 3\n")
    runner.done("reject", "2", "3")
    runner.done("accept", "1")
    assert runner.bytes("a") == b"1\n"


def test_where_a_path_is_taken_no_cascade_is_advised_and_what_is_named_is_carried_out(runner: CommandRunner) -> None:
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


def test_what_was_named_to_be_accepted_is_neither_in_the_way_nor_set_aside(runner: CommandRunner) -> None:
    both_change(runner)
    for words in (["accept", "2", "3"], ["accept", "2", "3", "--markers"]):
        ran = runner.cas(*words)
        assert ran.status == 1
        assert "both change the same lines (a:2)" in ran.said
        assert "make room" not in ran.said
    assert runner.bytes("a") == b"one\nII\nthree\n"


def test_no_way_out_is_named_where_nothing_helps_one_of_the_files(runner: CommandRunner) -> None:
    both_change(runner)
    runner.write("b", b"p\n")
    runner.edit("b", b"p", b"q")
    runner.done("reject", "4", "5")
    assert "To accept them together:  cas accept 5 4\n" in runner.cas("accept", "5").said
    document = runner.cas("accept", "2", "3", "5", "--json").json()
    assert {conflict["file_path"] for conflict in document["conflicts"]} == {str(runner.folder / name) for name in "ab"}
    assert (document["accept_first"], document["reject_first"]) == ([], [])


def test_a_refused_undo_is_a_conflict_too(runner: CommandRunner) -> None:
    both_change(runner)
    ran = runner.cas("undo")
    assert ran.status == 1
    assert "both change the same lines (a:2)" in ran.said
    assert ran.said.endswith("Decide on 3 first (`cas show EDIT`).\n")
    assert runner.bytes("a") == b"one\nII\nthree\n"


def test_a_dry_run_meets_the_same_conflict(runner: CommandRunner) -> None:
    replaced_twice(runner)
    assert runner.cas("reject", "2", "--dry-run") == runner.cas("reject", "2")


def test_json_of_a_conflict(runner: CommandRunner) -> None:
    replaced_twice(runner)
    ran = runner.cas("reject", "2", "--json")
    assert ran.status == 1
    document = ran.json()
    (conflict,) = document.pop("conflicts")
    assert document == {
        "outcome": "conflict",
        "action": "reject",
        "dry_run": False,
        "decision": None,
        "changed": [],
        "files": [],
        "recorded": [],
        "notices": [],
        "markers": [],
        "unmarked": [],
        "accept_first": [],
        "reject_first": ["3:1"],
        "external_changes": [],
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


def inside_a_block(runner: CommandRunner) -> list[str]:
    for words in ("p q", "p a b q", "p a N b q"):
        runner.write("a", words.replace(" ", "\n").encode() + b"\n")
    return ["reject", "2"]


def where_text_was_deleted(runner: CommandRunner) -> list[str]:
    for words in ("p X q", "p q", "p N q"):
        runner.write("a", words.replace(" ", "\n").encode() + b"\n")
    return ["reject", "2"]


def over_a_changed_line(runner: CommandRunner) -> list[str]:
    both_change(runner)
    return ["accept", "2"]


def moved_and_deleted(runner: CommandRunner) -> list[str]:
    runner.write("a", b"p\n")
    runner.move("a", "b")
    runner.done("reject", "2")
    runner.delete("a")
    return ["accept", "2"]


def back_to_a_taken_name(runner: CommandRunner) -> list[str]:
    (runner.folder / "a").write_bytes(b"one\ntwo\n")
    runner.done("reject", str(runner.edit("a", b"two", b"2")))
    runner.move("a", "b")
    runner.write("a", b"another\n")
    return ["reject", "2"]


def deleted_where_another_is(runner: CommandRunner) -> list[str]:
    (runner.folder / "a").write_bytes(b"one\ntwo\n")
    runner.edit("a", b"two", b"2")
    runner.delete("a")
    runner.write("b", b"another\n")
    runner.move("b", "a")
    return ["reject", "2"]


def onto_a_taken_name(runner: CommandRunner) -> list[str]:
    runner.write("a", b"x\n")
    runner.move("a", "b")
    runner.write("a", b"y\n")
    return ["reject", "2"]


@pytest.mark.parametrize(
    ("prepared", "said", "kind", "unit", "needs", "line", "lines"),
    [
        (
            inside_a_block,
            "edit 3 hunk 1 is between lines that edit 2 decides on (a:3)\n    + N\n",
            *("surroundings-gone", "3:1", ["2:1"], 3, ("", "N\n")),
        ),
        (
            where_text_was_deleted,
            "edit 3 hunk 1 was made without text that edit 2 decides on (a:2)\n    + N\n",
            *("text-returned-inside", "3:1", ["2:1"], 2, ("", "N\n")),
        ),
        (
            over_a_changed_line,
            "edit 2 hunk 1 and edit 3 both change the same lines (a:2)\n    - two\n    + 2\n",
            *("both-changed", "2:1", ["3:1"], 2, ("two\n", "2\n")),
        ),
        (
            moved_and_deleted,
            "edit 2 and edit 3 both decide on the file as a whole (b)\n",
            *("both-changed", "2:0", ["3:0"], None, ("", "")),
        ),
        (
            onto_a_taken_name,
            "edit 1 puts a file where edit 3 has put another (a)\n",
            *("path-taken", "1:0", ["3:0"], None, ("", "")),
        ),
        (
            back_to_a_taken_name,
            "without edit 2 the file is at a again, where edit 3 has put another\n",
            *("path-taken", "2:0", ["3:0"], None, ("", "")),
        ),
        (
            deleted_where_another_is,
            "without edit 2 the file is at a again, where edit 4 has put another\n",
            *("path-taken", "2:0", ["4:0"], None, ("", "")),
        ),
    ],
)
def test_each_kind_of_conflict_is_a_sentence_and_a_value(
    runner: CommandRunner,
    prepared: Callable[[CommandRunner], list[str]],
    said: str,
    kind: str,
    unit: str,
    needs: list[str],
    line: int | None,
    lines: tuple[str, str],
) -> None:
    words = prepared(runner)
    assert f"  {said}" in runner.cas(*words).said
    found = runner.cas(*words, "--json").json()["conflicts"][0]
    assert [found[name] for name in ("kind", "unit", "needs", "line")] == [kind, unit, needs, line]
    assert (found["removed"], found["inserted"]) == lines
    assert f"  {said}".startswith(f"  {found['message']}\n")


def test_long_lines_of_a_conflict_are_cut_short_and_harmless(runner: CommandRunner) -> None:
    runner.write("a", b"one\n")
    runner.write("a", b"".join(b"\x1b[31mline %d\n" % number for number in range(20)))
    runner.write("a", b"all new\n")
    said = runner.cas("reject", "2").said
    assert "    - \\x1b[31mline 7\n      and 12 more lines\n    + all new\n" in said
    assert "\x1b" not in said


def test_of_a_line_of_megabytes_a_conflict_tells_the_beginning_and_how_much_there_is(runner: CommandRunner) -> None:
    # In columns of odd numbers, so that no bound falls between two characters.
    runner.write("a", b"one\n")
    runner.write("a", b"x" + "ä".encode() * 600_000 + b"\nshort\n")
    runner.write("a", b"all new\n")
    ran = runner.cas("reject", "2")
    assert "\n    - x" + "ä" * 249 + "\n      and 1199502 more bytes\n    - short\n    + all new\n" in ran.said
    (conflict,) = runner.cas("reject", "2", "--json").json()["conflicts"]
    assert conflict["removed"] == "x" + "ä" * 32_767
    assert (conflict["removed_bytes"], conflict["inserted"]) == (1_200_008, "all new\n")


@pytest.mark.parametrize("others", [b"\x89PNG\0\xfe\n", b"some text\n"])
def test_of_bytes_that_are_no_text_a_conflict_tells_only_that(runner: CommandRunner, others: bytes) -> None:
    runner.write("a", b"\0one\n")
    runner.write("a", b"\x89PNG\0\xff\n")
    runner.write("a", others)
    ran = runner.cas("reject", "2")
    assert "  edit 3 hunk 1 needs edit 2 (a:1)\n    Binary files differ\nTo reject" in ran.said
    (conflict,) = runner.cas("reject", "2", "--json").json()["conflicts"]
    assert (conflict["removed"], conflict["inserted"]) == (None, None)
    assert (conflict["removed_bytes"], conflict["inserted_bytes"]) == (7, len(others))


def test_of_thousands_of_conflicts_or_hunks_the_first_are_told_and_how_many_there_are(runner: CommandRunner) -> None:
    lines = [b"line %d\n" % number for number in range(120)]
    runner.write("a", b"".join(lines))

    def every_second(call: Call) -> None:
        content = b"".join(b"2" + line if number % 2 else line for number, line in enumerate(lines))
        call.write("a", content, operation=Operation.EDIT)

    runner.call(every_second)
    refused = runner.cas("reject", "1")
    told = refused.said.splitlines()
    assert told[0] == "cas: refused, nothing was changed: 60 conflicts."
    assert sum(line.startswith("  edit 2 hunk ") for line in told) == 50
    assert told[-3:] == [
        "  and 10 more (--json has them all)",
        "To reject what depends on it too:  cas reject --cascade 1",
        "Or name them together:  cas reject 1 2",
    ]
    assert len(runner.cas("reject", "1", "--json").json()["conflicts"]) == 60
    hunks = [f"2:{number}" for number in range(1, 61)]
    first, last = " ".join(hunks[:12]), f"{' '.join(hunks[:10])} ... 2:60 (60 hunks)"
    assert runner.done("reject", *hunks[:12]).text.splitlines()[0] == f"Rejected hunks {first}."
    assert runner.done("accept", *hunks).text.splitlines()[0] == f"Accepted hunks {last}."


def test_of_two_files_for_one_path_the_one_that_is_not_decided_on_is_in_the_way(runner: CommandRunner) -> None:
    (runner.folder / "a").write_bytes(b"1\n2\n3\n")
    (runner.folder / "b").write_bytes(b"x\ny\n")
    runner.done("record")
    decided = [f"{runner.delete('b')}"]
    moved = runner.move("a", "b")
    decided += [f"{runner.write('b', bytes((0,)))}", f"{runner.delete('b')}"]
    ran = runner.cas("reject", *decided)
    assert f"without edit {decided[0]} the file is at b again, where edit {moved} has put another\n" in ran.said
    assert ran.said.endswith(f"To reject them together:  cas reject {' '.join(decided)} {moved}\n")
    runner.done("reject", *decided, str(moved))
    assert runner.bytes("b") == b"x\ny\n"


@pytest.mark.parametrize("names", [["2", "4"], ["4", "2"]])
def test_of_a_file_that_is_back_where_another_one_stands_the_same_is_said_in_any_order(
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
def test_of_a_file_that_is_back_where_a_folder_stands_the_same_is_said_in_any_order(
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
