"""`cas log` lists edits, and `cas show` shows each."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import given, strategies as st

from cli.search.pickaxe import count_text
from objstore import blob_id
from tests.support.command_runner import CommandResult, CommandRunner, cas, with_progress
from tests.support.damaged_stores import damage, lose
from tests.support.sampling import sampled_product

POEM = b"".join(b"line %d\n" % number for number in range(1, 31))


def poem_with_two_hunks(runner: CommandRunner) -> None:
    runner.write("poem", POEM)
    runner.write("poem", POEM.replace(b"line 3\n", b"LINE 3\n").replace(b"line 20\n", b"LINE 20\nmore\n"))


def numbers(runner: CommandRunner, *words: str) -> list[int]:
    return [edit["seq"] for edit in runner.cas("log", "--json", *words).lines()]


# ---- log


def test_log_is_newest_first_and_reverse_is_oldest_first(runner: CommandRunner) -> None:
    for name in ("a", "b", "c"):
        runner.write(name, b"x\n")
    assert numbers(runner) == [3, 2, 1]
    assert numbers(runner, "--reverse") == [1, 2, 3]
    assert numbers(runner, "-n", "2") == [3, 2]
    assert numbers(runner, "-n", "2", "--reverse") == [2, 3]
    assert [int(line.split()[0]) for line in runner.cas("log").text.splitlines()] == [3, 2, 1]


def test_a_record_with_a_time_beyond_the_calendar_is_shown(
    runner: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("objstore.review.calls.edit_recorder.now", lambda: 2**63 - 1)
    runner.write("a", b"x\n")
    for words in (
        ["log"],
        ["log", "-p"],
        ["show", "1"],
        ["status"],
        ["stats"],
        ["blame", "a"],
        ["diff", "a@1^", "a@1"],
    ):
        assert runner.done(*words).text
    assert runner.done("log", "--json").lines()[0]["timestamp"].startswith("9999-12-30T")
    assert b"Date: Thu, 30 Dec 9999" in runner.done("export", "--patch").out


def test_log_filters_are_combined(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.write("a", b"y\n", conversation="conv_two")
    runner.write("b", b"x\n", conversation="conv_two")
    runner.done("accept", "2")
    assert numbers(runner, "--conversation", "conv_two") == [3, 2]
    assert numbers(runner, "--conversation", "conv_t") == [3, 2]
    assert numbers(runner, "--file", "a") == [2, 1]
    assert numbers(runner, "--status", "accepted") == [2]
    assert numbers(runner, "--file", "a", "--status", "pending") == [1]
    assert numbers(runner, "--file", "a", "--conversation", "conv_two", "--status", "accepted") == [2]


def test_log_paths_are_relative_to_the_current_folder(runner: CommandRunner) -> None:
    runner.write("sub/a", b"x\n")
    runner.write("a", b"x\n")
    assert numbers(runner, "-C", str(runner.folder / "sub"), "--file", "../a") == [2]
    assert numbers(runner, "-C", str(runner.folder / "sub"), "--file", str(runner.folder / "sub" / "a")) == [1]


def test_a_path_may_leave_the_workspace_and_come_back(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("sub/a", b"x\n")
    runner.write("a", b"y\n")
    runner.write("sub/gone/b", b"z\n")
    runner.delete("sub/gone/b")
    sub, other = runner.folder / "sub", tmp_path / "other"
    (other / "deep").mkdir(parents=True)
    (runner.folder / "out").symlink_to(other / "deep")
    (tmp_path / "again").symlink_to(runner.folder)
    inside = {
        "../../ws/sub/a": "sub/a",
        "../../ws/a": "a",
        "../../ws/../ws/sub/gone/b": "sub/gone/b",
        "../../again/sub/a": "sub/a",
        f"{other}/../ws/a": "a",
        "../out/../../ws/a": "a",  # resolved as the system resolves it
    }
    for spelling, path in inside.items():
        for words in (["log", "--json"], ["log", "--json", "--file"]):
            ran = cas(*words, spelling, folder=sub)
            assert (ran.said, {edit["file_path"] for edit in ran.lines()}) == ("", {str(runner.folder / path)}), (
                spelling
            )
        assert cas("reset", "--file", spelling, folder=sub).status == 0, spelling
    assert cas("cat", "../../ws/a", folder=sub).out == b"y\n"
    assert cas("cat", "../../ws@1", folder=sub).status == 1
    assert numbers(runner, "-C", "sub", "../../ws") == [4, 3, 2, 1]
    assert numbers(runner, "-C", "sub", "../..//ws/sub/..") == [4, 3, 2, 1]
    assert numbers(runner, "-C", "sub", "../../ws/*a") == [2, 1]
    settings = {"CAS_WORKSPACE": str(runner.folder)}
    for spelling in ("../ws/sub/a", "sub/a", str(sub / "a")):
        assert cas("cat", spelling, folder=other, settings=settings).out == b"x\n", spelling
    for spelling in ("../../ws-evil/a", "../../other/a", "../out/../a", "../out/x", "../../wss"):
        ran = cas("log", spelling, folder=sub)
        assert ran.said == f"cas: Path is outside the workspace: {spelling}\n", ran


def test_log_finds_edits_that_added_or_removed_a_text(runner: CommandRunner) -> None:
    runner.write("a", b"one\n")
    runner.write("a", b"one\nneedle\n")
    runner.write("a", b"needle\none\n")
    runner.write("b", b"needle needle\n")
    runner.write("a", b"one\n")
    assert numbers(runner, "-S", "needle") == [5, 4, 2]
    assert numbers(runner, "-S", "needle", "--file", "a", "-n", "1") == [5]
    assert numbers(runner, "-S", "needle", "--reverse") == [2, 4, 5]
    assert numbers(runner, "-S", "one\nneedle") == [3, 2]
    assert numbers(runner, "-S", "nowhere") == []
    assert runner.cas("log", "-S", "").status == 2


def test_log_names_edits_that_it_could_not_search(runner: CommandRunner) -> None:
    runner.write("a", b"needle\n")
    runner.write("a", b"other\n")
    runner.write("a", b"more\n")
    runner.done("accept", "--all")
    runner.done("gc", "--older-than", "0s")
    ran = runner.cas("log", "-S", "needle", "--json")
    assert b"Not searched: " in ran.err


@pytest.mark.parametrize("salvaged", [False, True])
def test_a_search_continues_past_lost_blobs_and_says_so(runner: CommandRunner, *, salvaged: bool) -> None:
    message = three_edits_with_a_lost_blob(runner, salvaged=salvaged)
    assert numbers(runner, "-S", "a") == [1]
    for words in (["--json"], []):
        ran = runner.cas("log", "-S", "a", *words)
        assert (ran.status, len(ran.text.splitlines())) == (1, 1)
        assert ran.said.startswith(f"Not searched: 1 edit, whose content is lost.\n{message}")


@given(pieces=st.lists(st.text("ab", max_size=5).map(str.encode)), text=st.text("ab", min_size=1, max_size=4))
def test_a_text_is_counted_across_pieces(pieces: list[bytes], text: str) -> None:
    assert count_text(pieces, text.encode()) == b"".join(pieces).count(text.encode())


def test_log_of_an_empty_history_says_so_on_stderr(runner: CommandRunner) -> None:
    assert runner.cas("log", "--json") == CommandResult(status=0, out=b"", err=b"")
    assert runner.cas("log") == CommandResult(status=0, out=b"", err=b"Nothing is recorded yet.\n")


def test_log_json_has_the_fields_of_the_edit_log(runner: CommandRunner) -> None:
    runner.write("a", b"one\ntwo\n")
    runner.edit("a", b"two", b"2\n3")
    runner.done("reject", "2", "--reason", "no digits")
    second, first = runner.cas("log", "--json").lines()
    assert list(first) == list(second)
    assert (first["hash_before"], first["blob_before"], first["mode_before"]) == (None, None, None)
    assert len(second.pop("edit_id")) == 64
    assert second.pop("timestamp").endswith("Z")
    (decided,) = second.pop("decided")
    assert decided.pop("timestamp").endswith("Z")
    assert decided.pop("who")
    assert decided == {
        "hunks": ["2:1"], "decision": 1, "action": "reject", "via": "script", "agent": None, "commit": None
    }  # fmt: skip
    assert second.pop("awaited") == []
    assert second == {
        "conversation_id": "conv_one",
        "tool_call_index": 1,
        "operation": "edit",
        "file_path": str(runner.folder / "a"),
        "source_path": None,
        "tool_name": "edit_file_diff",
        "status": "rejected",
        "diff_file": None,
        "checkpoint_file": None,
        "hash_before": hashlib.sha256(b"one\ntwo\n").hexdigest(),
        "hash_after": hashlib.sha256(b"one\n2\n3\n").hexdigest(),
        "seq": 2,
        "blob_before": blake3(b"one\ntwo\n").hexdigest(),
        "blob_after": blake3(b"one\n2\n3\n").hexdigest(),
        "mode_before": 0o644,
        "mode_after": 0o644,
        "origin": "agent",
        "turn": None,
        "owner": "conv_one",
        "amends": None,
        "marks": None,
        "whole_file": None,
        "hunks": [
            {
                "name": "2:1",
                "status": "rejected",
                "old_start": 1,
                "old_count": 1,
                "new_start": 1,
                "new_count": 2,
            }
        ],
        "lines_added": 2,
        "lines_removed": 1,
        "reason": "no digits",
        "check": "",
        "reasons": [{"hunks": ["2:1"], "reason": "no digits"}],
        "expired": None,
        "lost": None,
        "notes": {},
    }


def test_log_json_of_moves_and_deletes(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.move("a", "b")
    runner.delete("b")
    delete, move, _ = runner.cas("log", "--json").lines()
    assert (move["operation"], move["source_path"], move["file_path"], move["whole_file"]) == (
        "move",
        str(runner.folder / "a"),
        str(runner.folder / "b"),
        "pending",
    )
    assert (delete["operation"], delete["hash_after"], delete["blob_after"]) == ("delete", None, None)


def three_edits_with_a_lost_blob(runner: CommandRunner, *, salvaged: bool) -> str:
    """Record three edits, lose the result of the second, and return how the error message begins."""
    for name in ("a", "b", "c"):
        runner.write(name, name.encode() * 100 + b"\n")
    lost = blob_id(b"b" * 100 + b"\n")
    if salvaged:
        lose(runner.folder, lost)
        return f"cas: No blob {lost.hex()} in this store.\n"
    damage(runner.folder, lost)
    return "cas: Store damaged in segment 1 at byte "


@pytest.mark.parametrize(
    ("salvaged", "words"),
    sampled_product([False, True], [["log"], ["log", "--reverse"], ["show", "conv_one"], ["show", "3", "2", "1"]]),
)
def test_a_lost_blob_leaves_other_edits_in_json(runner: CommandRunner, words: list[str], *, salvaged: bool) -> None:
    message = three_edits_with_a_lost_blob(runner, salvaged=salvaged)
    ran = runner.cas(*words, "--json")
    assert ran.status == 1
    assert ran.said.startswith(message)
    assert ran.said.endswith("\nRun `cas fsck` to see what is damaged and which files that affects.\n")
    first, second, third = sorted(
        ran.lines() if words[0] == "log" else ran.json()["edits"], key=lambda edit: int(edit["seq"])
    )
    assert (first["lost"], third["lost"]) == (None, None)
    assert third["hash_after"] == hashlib.sha256(b"c" * 100 + b"\n").hexdigest()
    assert (second["hash_after"], second["blob_after"]) == (None, blob_id(b"b" * 100 + b"\n").hex())
    assert f"cas: {second['lost']}\n" == ran.said.splitlines(keepends=True)[0]
    if words[0] == "show":
        assert [edit["diff"] is None for edit in (first, second, third)] == [False, True, False]


def test_an_edit_with_one_lost_state_shows_the_other_hash(runner: CommandRunner) -> None:
    runner.write("a", b"one\n")
    runner.write("a", b"two\n")
    lost = blob_id(b"one\n")
    lose(runner.folder, lost)
    second, first = runner.cas("log", "--json").lines()
    assert (second["hash_before"], second["hash_after"]) == (None, hashlib.sha256(b"two\n").hexdigest())
    assert second["lost"] == first["lost"] == f"No blob {lost.hex()} in this store."


@pytest.mark.parametrize(
    ("salvaged", "words"),
    sampled_product([False, True], [["log", "-p"], ["log", "-p", "--reverse"], ["show", "conv_one"]]),
)
def test_a_lost_blob_leaves_other_diffs(runner: CommandRunner, words: list[str], *, salvaged: bool) -> None:
    message = three_edits_with_a_lost_blob(runner, salvaged=salvaged)
    ran = runner.cas(*words)
    assert ran.status == 1
    assert ran.said.startswith(message)
    assert ran.text.count("\n@@ ") == 2
    (no_diff,) = [line for line in ran.text.splitlines() if line.startswith("No diff of edit 2: ")]
    assert ran.said.splitlines()[0] == no_diff.replace("No diff of edit 2", "cas")


@pytest.mark.parametrize(("words", "first"), [(["log", "-p"], b"b\n"), (["log", "-p", "--reverse"], b"a\n")])
def test_of_several_lost_blobs_the_first_is_named_in_the_error(
    runner: CommandRunner, words: list[str], first: bytes
) -> None:
    for name in ("a", "b"):
        runner.write(name, name.encode() + b"\n")
    lose(runner.folder, blob_id(b"a\n"), blob_id(b"b\n"))
    ran = runner.cas(*words)
    assert (ran.status, ran.text.count("\nNo diff of edit ")) == (1, 2)
    assert ran.said.startswith(f"cas: No blob {blob_id(first).hex()} in this store.\n")
    assert ran.said.count("No blob ") == 1


@pytest.mark.parametrize("words", [["log"], ["show", "conv_one"]])
def test_a_lost_blob_leaves_the_recorded_line_counts(runner: CommandRunner, words: list[str]) -> None:
    message = three_edits_with_a_lost_blob(runner, salvaged=True)
    ran = runner.cas(*words, "--stat")
    assert (ran.status, ran.said.startswith(message)) == (1, True)
    assert ran.text.endswith("3 files changed, 3 insertions(+), 0 deletions(-)\n")


def test_log_json_has_the_status_of_each_edit(runner: CommandRunner) -> None:
    for name in ("a", "b", "c"):
        runner.write(name, b"x\n")
    runner.done("accept", "1")
    runner.done("reject", "2")
    statuses = {edit["seq"]: edit["status"] for edit in runner.done("log", "--json").lines()}
    assert statuses == {1: "accepted", 2: "rejected", 3: "pending"}


def test_log_with_patch_shows_each_diff(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.edit("a", b"x", b"y")
    text = runner.cas("log", "-p").text
    assert "@@ -1,1 +1,1 @@ 2:1 pending\n-x\n+y\n" in text
    assert text.index("+y") < text.index("+x")


def test_a_reason_is_shown_below_its_edit(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.done("reject", "1", "--reason", "not wanted")
    assert "\n       reason: not wanted\n" in runner.cas("log").text


def test_several_reasons_are_shown_with_their_hunks(runner: CommandRunner) -> None:
    runner.write("a", b"1\n2\n3\n4\n5\n")
    runner.write("a", b"one\n2\nthree\n4\nfive\n")
    runner.done("reject", "2:3", "--reason", "keep 5")
    runner.done("accept", "2:2")
    assert "\n       reason: keep 5\n" in runner.cas("log").text
    runner.done("reject", "2:1", "--reason", "1 is a name")
    reasons = "2:1: 1 is a name; 2:3: keep 5"
    assert f"\n       reason: {reasons}\n" in runner.cas("log").text
    assert f"reason        {reasons}\n" in runner.cas("show", "2").text
    (shown,) = runner.cas("show", "2:3", "--json").json()["edits"]
    assert (shown["reason"], shown["reasons"]) == (
        reasons,
        [{"hunks": ["2:1"], "reason": "1 is a name"}, {"hunks": ["2:3"], "reason": "keep 5"}],
    )


# ---- show


def test_show_numbers_the_hunks_and_gives_the_status_of_each(runner: CommandRunner) -> None:
    poem_with_two_hunks(runner)
    runner.done("reject", "2:2")
    text = runner.cas("show", "2").text
    assert text.startswith("edit 2  replace  poem  +3 -2  partly\nid            ")
    assert text.endswith(
        "\n--- a/poem\n+++ b/poem\n"
        "@@ -1,6 +1,6 @@ 2:1 pending\n line 1\n line 2\n-line 3\n+LINE 3\n line 4\n line 5\n line 6\n"
        "@@ -17,7 +17,8 @@ 2:2 rejected\n line 17\n line 18\n line 19\n-line 20\n+LINE 20\n+more\n"
        " line 21\n line 22\n line 23\n"
    )


def test_show_of_a_hunk_shows_only_that_hunk(runner: CommandRunner) -> None:
    poem_with_two_hunks(runner)
    ran = runner.cas("show", "2:2")
    assert ran.text.count("@@ 2:") == 1
    assert "2:2 pending" in ran.text
    assert "LINE 3" not in ran.text
    (edit,) = runner.cas("show", "2:2", "--json").json()["edits"]
    assert [hunk["name"] for hunk in edit["hunks"]] == ["2:2"]
    assert "LINE 20" in edit["diff"]
    assert "LINE 3" not in edit["diff"]


def test_show_of_a_conversation_shows_its_edits_in_order(runner: CommandRunner) -> None:
    runner.write("a", b"x\n", conversation="conv_two")
    runner.write("b", b"y\n")
    runner.write("c", b"z\n", conversation="conv_two")
    document = runner.cas("show", "conv_tw", "--json").json()
    assert list(document) == ["edits"]
    assert [edit["seq"] for edit in document["edits"]] == [1, 3]
    text = runner.cas("show", "conv_two").text
    assert text.index("edit 1  create") < text.index("edit 3  create")
    assert "edit 2" not in text


def test_show_takes_the_prefix_of_an_id(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    name = runner.cas("log", "--json").lines()[0]["edit_id"]
    assert runner.cas("show", name[:12]).text == runner.cas("show", "1").text


def test_adjacent_hunks_divide_their_context(runner: CommandRunner) -> None:
    runner.write("a", b"1\n2\n3\n4\n5\n")
    runner.write("a", b"one\n2\nthree\n4\n5\n")
    assert runner.cas("show", "2").text.endswith(
        "@@ -1,2 +1,2 @@ 2:1 pending\n-1\n+one\n 2\n@@ -3,3 +3,3 @@ 2:2 pending\n-3\n+three\n 4\n 5\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            b"1\n2\r\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\nlast",
            b"0\n1\n2\r\n3\n4\nfive\n6\n8\n9\n10\n11\n12\nlast\n",
        ),
        (b"1\n2", b"1"),
        (b"1", b"1\n2"),
        (b"1\n2\n3\n", b"1\n2\n3"),
        (b"1\nlast", b"one\nlast\n"),
        (b"last", b"first\nlast\n"),
        (b"only\n", b"above\nonly\nbelow\n"),
        (b"only", b"above\nonly\nbelow"),
        (b"1\nlast\n", b"last"),
        (b"1\n2\n", b"1"),
        (b"1\n2", b"1\n"),
        (b"1\n2", b"one\n2\n3"),
        (b"1\n2\n3\n4\n5\nlast\n", b"1\n2\n3\n4\nfive\nlast"),
        (b"1\n2\n3\n4\n5\nlast", b"one\n2\n3\n4\n5\nmore\nlast\n"),
        (b"1\n2\n3\n4\n5\nlast\n", b"1\n2\n3\nfour\n5\nlast"),
    ],
)
def test_the_output_of_show_is_a_valid_patch(
    runner: CommandRunner, tmp_path: Path, before: bytes, after: bytes
) -> None:
    runner.write("a", before)
    runner.write("a", after)
    patch = runner.cas("show", "2").out
    for command in (["patch", "--binary", "-p1"], ["git", "apply"]):
        (tmp_path / "a").write_bytes(before)
        subprocess.run(command, cwd=tmp_path, input=patch, check=True, capture_output=True)
        assert (tmp_path / "a").read_bytes() == after


def test_a_hunk_next_to_a_changed_final_newline_is_a_valid_patch(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"1\n2\nlast")
    runner.write("a", b"1\ntwo\nlast\n")
    for unit, result in (("2:1", b"1\ntwo\nlast"), ("2:0", b"1\n2\nlast\n")):
        (tmp_path / "a").write_bytes(b"1\n2\nlast")
        patch = runner.cas("show", unit).out
        subprocess.run(["git", "apply"], cwd=tmp_path, input=patch, check=True, capture_output=True)
        assert (tmp_path / "a").read_bytes() == result


def test_show_describes_whole_file_changes(runner: CommandRunner) -> None:
    runner.write("a", b"x")
    runner.write("a", b"x\n")
    runner.write("a", b"x\n", mode=0o755)
    runner.move("a", "b")
    runner.delete("b")
    assert "1:0 pending  new file, mode 0644\n" in runner.cas("show", "1").text
    assert "2:0 pending  final newline added or removed\n" in runner.cas("show", "2").text
    assert "@@ -1,1 +1,1 @@ 2:0 pending\n-x\n\\ No newline at end of file\n+x\n" in runner.cas("show", "2").text
    assert "3:0 pending  mode 0644 -> 0755\n" in runner.cas("show", "3").text
    assert "4:0 pending  move a -> b\n" in runner.cas("show", "4").text
    assert "5:0 pending  file deleted\n" in runner.cas("show", "5").text


def test_binary_files_are_not_shown_line_by_line(runner: CommandRunner) -> None:
    runner.write("a", b"\0\1\n")
    runner.write("a", b"\0\2\n")
    assert "Binary files a/a and b/a differ\n" in runner.cas("show", "2").text


def test_show_gives_the_sizes_of_binary_and_large_files(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"\0\1\n")
    runner.write("a", b"\0\2\3\n", mode=0o755)
    runner.delete("a")
    differ = "diff --git a/a b/a\nBinary files a/a and b/a differ\n"
    assert (
        "1:0 pending  new file, mode 0644\n1:0 pending  3 bytes\ndiff --git a/a b/a\n" in runner.done("show", "1").text
    )
    assert runner.done("show", "2:1").text.endswith("\n\n2:1 pending  3 bytes -> 4 bytes\n" + differ)
    assert runner.done("show", "2:0").text.endswith("\n\n2:0 pending  mode 0644 -> 0755\n")
    assert runner.done("show", "2").text.endswith(
        "\n\n2:0 pending  mode 0644 -> 0755\n2:1 pending  3 bytes -> 4 bytes\n" + differ
    )
    assert "3:0 pending  file deleted\n3:0 pending  4 bytes\n" in runner.done("show", "3").text
    large = tmp_path / "large"
    large.write_bytes(bytes((1 << 26) + 1))
    runner.write("large", b"small\n")
    shutil.copy(large, runner.folder / "large")
    runner.done("record", "--agent", "x")
    assert f"\n5:1 pending  6 bytes -> {(1 << 26) + 1} bytes\n" in runner.done("show", "5:1").text


# ---- progress


def test_a_search_shows_progress(runner: CommandRunner) -> None:
    for number in range(1, 6):
        runner.write("a", b"%d\n" % number)
    out, shown = with_progress("log", "-S", "1", folder=runner.folder, patience=0)
    assert out.count(b"\n") == 2
    assert b"searching [####....................] 1 of 5 edits" in shown
    assert shown.endswith(b"\r\x1b[K")
    assert with_progress("log", "-S", "1", folder=runner.folder, patience=3600)[1] == b""


def test_a_search_on_a_terminal_leaves_no_progress_bar_in_the_list(runner: CommandRunner) -> None:
    for number in range(1, 4):
        runner.write("a", b"%d\n" % number)
    status, shown = runner.typed("log", "-S", "1")
    assert (status, shown.count("\n")) == (0, 2)


def test_show_of_a_removed_last_line_and_newline_shows_each_line_once(runner: CommandRunner) -> None:
    runner.write("f", b"a\nb\nc\n")
    runner.write("f", b"a\nb")
    text = runner.cas("show", "2").text
    assert text.endswith("@@ -1,3 +1,2 @@ 2:0 pending, 2:1 pending\n a\n-b\n+b\n\\ No newline at end of file\n-c\n")
    rows = runner.cas("show", "2", "--side-by-side").text.split("2:1 pending\n")[1].splitlines()
    assert [row.split() for row in rows] == [
        ["1", "a", "1", "a"],
        ["2", "b", "|", "2", "b"],
        ["\\", "No", "newline", "at", "end", "of", "file"],
        ["3", "c", "<"],
    ]
    runner.write("f", b"")
    assert runner.cas("show", "3").text.endswith(
        "\n\n3:0 pending  final newline added or removed\n--- a/f\n+++ b/f\n"
        "@@ -1,2 +0,0 @@ 3:1 pending\n-a\n-b\n\\ No newline at end of file\n"
    )
