"""Inspect the store: hash, verify, records, segments, stats, ls, blame and restore."""

from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import get_args

import pytest
from blake3 import blake3

from fuzz.seeds import RARE_RECORDS
from objstore import Comment, Edit, Mark, Record, SettingChange, Turn, record_shape
from objstore.storage.transaction.journal import Journal
from tests.cli.commands.reviewing.test_accept_reject_undo import file_snapshots
from tests.support.command_runner import CommandRunner, cas
from tests.support.faulty_disk import UnsyncedDisk

BINARY_CONTENT = b"CR\rCRLF\r\nNUL\0\xff\xfe last without newline"
BLOB_OF_TWO = blake3(b"2\n").hexdigest()
EMPTY_BLOB = blake3(b"").hexdigest()


def flip_bit(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


# ---- hash, verify


def test_hash_prints_the_blob_id_of_each_file(runner: CommandRunner, tmp_path: Path) -> None:
    (tmp_path / "wild").write_bytes(BINARY_CONTENT)
    (tmp_path / "empty").touch()
    printed = cas("hash", "wild", "empty", folder=tmp_path).text
    assert printed == f"{blake3(BINARY_CONTENT).hexdigest()}  wild\n{EMPTY_BLOB}  empty\n"
    (runner.folder / "a").write_bytes(BINARY_CONTENT)
    runner.write("a", b"x\n")
    assert runner.done("cat", cas("hash", "wild", "--json", folder=tmp_path).lines()[0]["blob"]).out == BINARY_CONTENT
    assert cas("hash", "nowhere", folder=tmp_path).status == 2


def test_verify_reports_a_damaged_blob(runner: CommandRunner) -> None:
    runner.write("a", BINARY_CONTENT)
    runner.write("b", b"whole\n")
    assert runner.done("verify", "--all").text == "2 of 2 blobs match their hash.\n"
    assert runner.done("verify", "a@1", blake3(BINARY_CONTENT).hexdigest()[:8], "--json").json() == {
        "verified": 2,
        "damaged": [],
    }
    (segment,) = (runner.folder / ".cas" / "segments").iterdir()
    flip_bit(segment, segment.read_bytes().index(b"NUL"))
    ran = runner.cas("verify", "--all", "--json")
    assert (ran.status, ran.json()["verified"]) == (1, 1)
    assert runner.cas("verify", "--all").text.endswith("\n1 of 2 blobs match their hash.\n")
    assert [damaged["blob"] for damaged in ran.json()["damaged"]] == [blake3(BINARY_CONTENT).hexdigest()]
    assert runner.cas("verify", "a").status == 1
    assert runner.done("verify", "b").status == 0


@pytest.mark.parametrize("words", [["verify"], ["verify", "--all", "a"]])
def test_verify_requires_names_or_all_and_not_both(runner: CommandRunner, words: list[str]) -> None:
    assert runner.cas(*words).status == 2


# ---- records, segments, stats


def test_records_are_listed_as_a_chain(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    runner.write("a", b"1\n2\n")
    runner.done("reject", "2", "--reason", "no")
    listed = runner.done("records", "--json").lines()
    assert [(record["kind"], record.get("seq", record.get("number"))) for record in listed] == [
        ("edit", 1),
        ("edit", 2),
        ("decision", 1),
    ]
    assert [record["previous"] for record in listed] == [None, listed[0]["id"], listed[1]["id"]]
    assert listed[1]["hunks"] == [[1, 0, 1, 1]]
    assert (listed[2]["reason"], listed[2]["verdicts"]) == ("no", [[2, 0, "rejected"], [2, 1, "rejected"]])
    assert [line.split(maxsplit=2)[-1] for line in runner.done("records").text.splitlines()][-1].endswith("edits 2")


@pytest.mark.parametrize("kind", get_args(Record))
def test_records_show_every_field(runner: CommandRunner, kind: type[Record]) -> None:
    runner.write("a", b"1\n")
    runner.done("reject", "1")
    expected = {field.name for field in fields(kind)} - {"added", "removed"}
    with runner.workspace() as workspace:
        said = [record_shape(view.record) for view in workspace.history.records()]
    said += map(record_shape, RARE_RECORDS)
    shape = next(shape for shape in said if shape["kind"] == kind.__name__.lower().removesuffix("change"))
    assert set(shape) - {"kind"} == expected | ({"lines"} if kind in {Edit, Comment} else set())


def test_records_of_every_kind_have_a_line(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    (turn,), (comment,), (mark,), (setting,) = (
        [record for record in RARE_RECORDS if isinstance(record, kind)] for kind in (Turn, Comment, Mark, SettingChange)
    )
    assert isinstance(comment, Comment)
    assert isinstance(mark, Mark)
    with closing(Journal(str(runner.folder), UnsyncedDisk())) as journal, journal.writing() as batch:
        for record in (turn, replace(comment, number=1, answers=0), replace(mark, comments=(1,)), setting):
            batch.record(record)
        journal.commit(batch, ())
    descriptions = [line.split(maxsplit=2)[-1] for line in runner.done("records").text.splitlines()]
    assert descriptions[1:] == [
        "turn 1  Write it",
        "comment 1  a.txt:4-5",
        "comments 1  sent",
        "setting review.external  pending",
    ]
    listed = runner.done("records", "--json").lines()
    assert [record["kind"] for record in listed] == ["edit", "turn", "comment", "mark", "setting"]
    assert (listed[2]["first"], listed[2]["units"]) == ([1, 0, 3], [[1, 0], [2, 1]])
    assert runner.done("fsck").text


def test_segments_list_sizes_and_counts(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    runner.write("a", b"1\n2\n")
    (only,) = runner.done("segments", "--json").lines()
    size = (runner.folder / ".cas" / "segments" / "00000001.seg").stat().st_size
    assert only == {"segment": 1, "bytes": size, "groups": 2, "blobs": 2, "records": 2}
    assert f"{size} bytes" in runner.done("segments").text


def test_stats_count_edits_decisions_blobs_and_tools(runner: CommandRunner) -> None:
    text = b"".join(b"line %d\n" % i for i in range(100))
    runner.write("a", text)
    runner.edit("a", b"line 7\n", b"line seven\n")
    runner.write("b", b"1\n")
    runner.move("b", "c")
    runner.done("reject", "2")
    found = runner.done("stats", "--json").json()
    assert found["edits"] == {"pending": 3, "accepted": 0, "rejected": 1, "away": 0}
    assert (found["decisions"], found["voids"], found["conversations"]) == (1, 0, 1)
    assert (found["blobs"]["count"], found["blobs"]["bytes"]) == (3, 2 * len(text) + 4 + 2)
    assert found["blobs"]["depths"] == {"0": 2, "1": 1}
    assert found["blobs"]["stored_bytes"] + found["record_bytes"] + 64 == found["segments"]["bytes"]
    assert found["tools"]["edit_file_diff"] == {"edits": 1, "lines_added": 1, "lines_removed": 1}
    assert found["files"]["c"]["edits"] == 2
    assert "by file:" in runner.done("stats").text
    (runner.folder / "a").write_bytes(b"mine\n")
    runner.done("restore", "a@1")  # records the change from outside first
    assert runner.done("stats").text.count("(no tool: changes from outside)") == 1


def test_stats_are_those_of_the_log(runner: CommandRunner) -> None:
    text = b"".join(b"line %d\n" % i for i in range(100))
    runner.write("a", text)
    runner.edit("a", b"line 7\n", b"line seven\n")
    (runner.folder / "b").write_bytes(b"from outside\n")
    runner.done("record")
    runner.done("snapshot", "create")
    runner.done("pin", "add", "1")
    runner.done("accept", "2")
    runner.done("undo")
    found = runner.done("stats", "--json").json()
    records, (segment,) = runner.done("records", "--json").lines(), runner.done("segments", "--json").lines()
    made = [record for record in records if record["kind"] == "edit"]
    by_tool: dict[str, int] = {}
    for record in made:
        by_tool[record["tool"]] = by_tool.get(record["tool"], 0) + 1
    assert {tool: count["edits"] for tool, count in found["tools"].items()} == by_tool
    assert found["decisions"] == sum(record["kind"] == "decision" for record in records) == 2
    assert found["blobs"]["count"] == sum(found["blobs"]["depths"].values()) == segment["blobs"]
    assert found["blobs"]["stored_bytes"] + found["record_bytes"] + 64 == segment["bytes"]
    minutes = {minute["time"]: minute for minute in found["minutes"]}
    assert minutes.keys() == {record["time"] // 60_000_000 * 60_000_000 for record in records}
    assert sum(minute["bytes"] for minute in minutes.values()) + 64 == segment["bytes"]
    assert sum(minute["edits"] for minute in minutes.values()) == len(made)
    flip_bit(runner.folder / ".cas/segments/00000001.seg", 100)
    assert runner.done("stats", "--json").json() == found  # it is fsck that looks for damage


# ---- ls


def test_ls_lists_the_recorded_files_at_any_edit(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    runner.write("dir/b", b"2\n", mode=0o755)
    runner.move("a", "dir/a")
    runner.delete("dir/b")
    runner.done("reject", "4")

    def listed(*words: str) -> list[str]:
        return [file["path"] for file in runner.done("ls", *words, "--json").lines()]

    assert listed() == ["dir/a", "dir/b"]
    assert listed("@1") == ["a"]
    assert listed("@2") == ["a", "dir/b"]
    assert listed("@3^") == ["a", "dir/b"]
    assert listed("@3") == ["dir/a", "dir/b"]
    assert listed("@4") == ["dir/a"]
    assert listed("dir@2") == ["dir/b"]
    assert listed("dir/b") == ["dir/b"]
    assert runner.done("ls", "dir/b").text == f"0755  {BLOB_OF_TWO}  dir/b\n"
    assert runner.cas("ls", "nowhere").status == 1
    assert runner.cas("ls", "@99").status == 1


# ---- blame


def test_blame_names_the_hunk_of_each_line(runner: CommandRunner) -> None:
    (runner.folder / "a").write_bytes(b"old 1\nold 2\n")
    runner.edit("a", b"old 2\n", b"old 2\nnew\n", conversation="conv_two")
    runner.write("b", b"b\n")
    parts = runner.done("blame", "a", "--json").lines()
    assert [(part["start"], part["count"], part["hunk"], part["conversation_id"]) for part in parts] == [
        (0, 2, None, None),
        (2, 1, "1:1", "conv_two"),
    ]
    assert parts[1]["tool_name"] == "edit_file_diff"
    shown = runner.done("blame", "a").text.splitlines()
    assert [line.rsplit(maxsplit=1)[-1] for line in shown] == ["1", "2", "new"]
    assert "conv_two" in shown[2]


def test_blame_follows_decisions_and_moves(runner: CommandRunner) -> None:
    runner.write("a", b"1\n2\n")
    runner.edit("a", b"2\n", b"two\n")
    runner.move("a", "b")
    assert [part["hunk"] for part in runner.done("blame", "b", "--json").lines()] == ["1:0", "2:1"]
    runner.done("reject", "2")
    assert [part["hunk"] for part in runner.done("blame", "b", "--json").lines()] == ["1:0"]
    assert runner.cas("blame", "a").status == 1


def test_blame_of_a_past_state_names_the_hunks_at_that_time(runner: CommandRunner) -> None:
    (runner.folder / "a").write_bytes(b"old\n")
    runner.edit("a", b"old\n", b"old\n1\n2\n")
    runner.edit("a", b"2\n", b"two\n")
    runner.done("reject", "2")
    runner.edit("a", b"1\n", b"one\n")
    runner.move("a", "b")
    runner.delete("b")

    def hunks(name: str) -> list[tuple[int, str | None]]:
        return [(part["count"], part["hunk"]) for part in runner.done("blame", name, "--json").lines()]

    assert hunks("a@1^") == [(1, None)]
    assert hunks("a@1") == hunks("a@2^") == [(1, None), (2, "1:1")]
    assert hunks("a@2") == [(1, None), (1, "1:1"), (1, "2:1")]
    assert hunks("a@3^") == [(1, None), (2, "1:1")]
    assert hunks("a@3") == hunks("b@4") == hunks("b@5^") == [(1, None), (1, "3:1"), (1, "1:1")]
    for name in ("a@3", "a@2", "a@1^"):
        lines = [line.split()[-1] for line in runner.done("blame", name).text.splitlines()]
        assert "".join(f"{line}\n" for line in lines).encode() == runner.done("cat", name).out
    for name in ("b@5", "b@3", "a@9", "c@1"):
        ran = runner.cas("blame", name)
        assert (ran.status, ran.out) == (1, b"")
        assert ran.said.startswith(f"cas: No state is named '{name}' here.\n")
    assert runner.cas("blame", "a@1h").status == 2
    runner.write("a@1", b"a file\n")
    assert hunks("a@1") == [(1, "6:0")]


def test_blame_shows_a_last_line_without_newline(runner: CommandRunner) -> None:
    runner.write("a", b"1\n2")
    assert runner.done("blame", "a").text.count("\n") == 2
    runner.write("empty", b"")
    assert runner.done("blame", "empty").out == b""


# ---- restore


def test_restore_records_an_edit_that_can_be_rejected(runner: CommandRunner) -> None:
    runner.write("a", BINARY_CONTENT, mode=0o755)
    runner.write("a", b"second\n", mode=0o644)
    assert runner.done("restore", "a@1").text == "Restored a as edit 3; `cas undo` takes it back.\n"
    assert runner.bytes("a") == BINARY_CONTENT
    assert (runner.folder / "a").stat().st_mode & 0o777 == 0o755
    (restored,) = runner.done("log", "-n", "1", "--json").lines()
    assert (restored["origin"], restored["status"], restored["tool_name"]) == ("person", "accepted", "restore")
    runner.done("reject", "3")
    assert runner.bytes("a") == b"second\n"


def test_restore_deletes_and_creates_files(runner: CommandRunner) -> None:
    runner.write("dir/a", b"1\n")
    assert runner.done("restore", "dir/a@1^").text == "Removed dir/a as edit 2; `cas undo` takes it back.\n"
    assert not (runner.folder / "dir" / "a").exists()
    runner.done("restore", "dir/a@1")
    assert runner.bytes("dir/a") == b"1\n"
    assert runner.done("restore", "dir/a@1").text == "No file changed: dir/a already is in this state.\n"


def test_restore_records_a_change_from_outside_first(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    (runner.folder / "a").write_bytes(b"typed\n")
    shape = runner.done("restore", "a@1", "--json").json()
    assert [edit["seq"] for edit in shape["recorded"]] == [2]
    assert [edit["seq"] for edit in shape["edits"]] == [3]
    assert runner.done("cat", "a@2").out == b"typed\n"


def test_a_dry_run_of_restore_shows_what_would_change_and_changes_nothing(runner: CommandRunner) -> None:
    runner.write("dir/a", b"1\n")
    runner.write("dir/a", b"2\n", mode=0o755)
    (runner.folder / "dir" / "a").write_bytes(b"typed\n")
    before = file_snapshots(runner.folder)
    assert runner.done("restore", "dir/a@1", "-n").text == (
        "Dry run: nothing was changed.\n"
        "Would record the change from outside to dir/a.\n"
        "Would rewrite dir/a (mode 0755 -> 0644)\n"
        "diff --git a/dir/a b/dir/a\nold mode 100755\nnew mode 100644\n"
        "--- a/dir/a\n+++ b/dir/a\n@@ -1 +1 @@\n-typed\n+1\n"
    )
    shape = runner.done("restore", "dir/a@1^", "--dry-run", "--json").json()
    (file,) = shape["files"]
    assert (shape["dry_run"], shape["edits"], shape["recorded"]) == (True, [], [])
    assert (file["path_before"], file["path_after"]) == (str(runner.folder / "dir" / "a"), None)
    assert file["diff"].endswith("-typed\n")
    assert file_snapshots(runner.folder) == before
    assert [*runner.statuses()] == ["1:0", "2:0", "2:1"]
    runner.done("restore", "dir/a@1")
    assert runner.done("restore", "dir/a@1", "-n").text == (
        "Dry run: nothing was changed.\nNo file changes: dir/a already is in this state.\n"
    )


def test_a_dry_run_of_restore_is_refused_as_the_restore_is(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    (runner.folder / "a").unlink()
    (runner.folder / "a" / "mine").mkdir(parents=True)
    ran = runner.cas("restore", "a@1")
    assert ran.status == 1
    assert runner.cas("restore", "a@1", "--dry-run") == ran


def test_restore_requires_a_path(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    assert runner.cas("restore", blake3(b"1\n").hexdigest()).status == 2
    assert runner.cas("restore", "a@9").status == 1


# ---- names with control characters


def test_control_characters_in_a_name_are_escaped(runner: CommandRunner) -> None:
    name = "evil\n\x1b[31mname"
    runner.write(name, b"x\n")
    for words in (["ls"], ["records"], ["stats"]):
        assert rb"evil\n\x1b[31mname" in runner.done(*words).out
    (runner.folder / name).unlink()
    assert "evil" in runner.done("restore", f"{name}@1").text
