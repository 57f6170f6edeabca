"""`cas diff` of what is pending, and changes named by lines of a file."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from objstore import Status, blob_id
from tests.support.command_runner import CommandRunner, cas
from tests.support.damaged_stores import lose
from tests.support.similar_lines import functions, repeated

TEN = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"


def accepted(runner: CommandRunner, path: str, content: bytes) -> None:
    runner.done("accept", str(runner.write(path, content)))


# ---- what is shown


def test_diff_shows_the_net_of_what_is_pending(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    runner.edit("a", b"two\n", b"TWO\n", conversation="conv_two")
    runner.edit("a", b"9\n", b"")
    assert runner.done("diff").text == (
        "diff --git a/a b/a\n--- a/a\n+++ b/a\n"
        "@@ -1,5 +1,5 @@ [2:1 3:1]\n 1\n-2\n+TWO\n 3\n 4\n 5\n"
        "@@ -6,5 +6,4 @@ [4:1]\n 6\n 7\n 8\n-9\n 10\n"
    )


def test_diff_says_what_lines_cannot_express(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.move("a", "b")
    runner.call(lambda call: call.write("b", TEN, mode=0o755))
    accepted(runner, "bin", b"\0one")
    runner.write("bin", b"\0three")
    runner.write("empty", b"")
    assert runner.done("diff").text == (
        "# b: moved from a [2:0]\n# b: mode 0644 -> 0755 [3:0]\n"
        "diff --git a/a b/b\nold mode 100644\nnew mode 100755\nrename from a\nrename to b\n"
        "# bin: 4 bytes -> 6 bytes [5:1]\n"
        "diff --git a/bin b/bin\nBinary files a/bin and b/bin differ\n"
        "# empty: new file, 0 bytes [6:0]\n"
        "diff --git a/empty b/empty\nnew file mode 100644\n"
    )


def test_edits_that_cancel_out_are_one_line(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    runner.edit("a", b"two\n", b"2\n")
    assert runner.done("diff").text == "# a: 2 edits cancel out [2:1 3:1]\n"
    assert runner.done("diff", "--stat").text == (
        " a | 0\n 1 file changed, 0 insertions(+), 0 deletions(-)\n 2 edits cancel out\n"
    )


def test_pending_hunks_that_accepted_ones_need_are_said(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    runner.done("accept", str(runner.edit("a", b"two\n", b"TWO\n")))
    assert runner.done("diff").text == "# a: accepted edits need pending hunks, which are not shown [2:1]\n"


def test_a_change_says_which_others_are_decided_with_it(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n3\n4\n", b"two\nthree\nfour\n")
    runner.edit("a", b"three\n", b"3\n")
    heads = [line for line in runner.done("diff").text.splitlines() if line.startswith("@@")]
    assert heads == ["@@ -1,3 +1,3 @@ [2:1 3:1] with line 4", "@@ -4,4 +4,4 @@ [2:1 3:1] with line 2"]


def test_a_file_that_changed_outside_is_shown_as_recorded_and_said(runner: CommandRunner) -> None:
    accepted(runner, "a", b"1\n")
    runner.write("a", b"2\n")
    (runner.folder / "a").write_bytes(b"mine\n")
    first, *rest = runner.done("diff").text.splitlines()
    assert first == "# a: changed since it was recorded; `cas diff --unrecorded a` shows how"
    assert rest[-2:] == ["-1", "+2"]
    remark = " 1 file changed again since recorded (see `cas diff --unrecorded`)"
    assert runner.done("diff", "--stat").text.splitlines()[-1] == remark


def test_stat_counts_the_net_lines_of_each_file(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.move("a", "b")
    runner.edit("b", b"2\n", b"two\nand\n")
    accepted(runner, "bin", b"\0one")
    runner.write("bin", b"\0three")
    assert runner.done("diff", "--stat").text == (
        " a -> b | 3 ++-\n bin    | Bin 4 -> 6 bytes\n 2 files changed, 2 insertions(+), 1 deletion(-)\n"
    )


def test_words_are_marked_and_sides_shown_as_in_other_diffs(runner: CommandRunner) -> None:
    accepted(runner, "a", b"one two three\n")
    runner.write("a", b"one 2 three\n")
    assert "\x1b[7mtwo\x1b[27m" in runner.done("--color", "always", "diff").text
    assert "    1 one two three" in runner.done("diff", "-y", COLUMNS="80").text
    assert "|     1 one 2 three" in runner.done("diff", "-y", COLUMNS="80").text


def test_a_wide_terminal_shows_both_sides_unless_an_option_says_no(runner: CommandRunner) -> None:
    accepted(runner, "a", b"one two three\n")
    runner.write("a", b"one 2 three\n")
    for words in (["diff"], ["show"], ["log", "-p", "-n", "1"]):
        plain = [*words, "--color", "never"]
        assert re.search(r"1 one two three +\|     1 one 2 three\n", runner.typed(*plain, COLUMNS="160")[1])
        for width, option in (("159", []), ("200", ["--no-side-by-side"])):
            assert "-one two three\n+one 2 three\n" in runner.typed(*plain, *option, COLUMNS=width)[1]
        assert "-one two three\n+one 2 three\n" in runner.done(*words, COLUMNS="200").text  # no terminal
    assert "-one two three" not in runner.typed("log", "--color", "never", COLUMNS="200")[1]


def test_delta_gets_the_diff_itself_and_nothing_that_could_control_a_terminal(
    runner: CommandRunner, tmp_path: Path
) -> None:
    accepted(runner, "a", b"one two three\n")
    runner.write("a", b"one \x1b[2J three\n")
    runner.done("comment", "a:1", "-m", "\x1b]0;title\x07")
    pager = tmp_path / "bin" / "delta"
    pager.parent.mkdir()
    pager.write_text(f'#!/bin/sh\ncat > "{tmp_path}/got"\n')
    pager.chmod(0o755)
    for setting in ("PAGER", "CAS_PAGER"):
        runner.typed("diff", COLUMNS="200", **{setting: f"{pager} --navigate"})
        got = (tmp_path / "got").read_text()
        assert "\x1b" not in got
        assert "@@ -1,1 +1,1 @@ [2:1]\n-one two three\n+one \\x1b[2J three\ncomment 1 open  a:1" in got
    runner.typed("diff", "-y", "--color", "never", COLUMNS="80", PAGER=str(pager))
    assert "|     1 one" in (tmp_path / "got").read_text()


def test_json_has_each_change_with_its_hunks(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n3\n4\n", b"two\nthree\nfour\n")
    runner.edit("a", b"three\n", b"3\n")
    [file] = runner.done("diff", "--json").lines()
    assert (file["file_path"], file["operation"]) == (str(runner.folder / "a"), "edit")
    assert (file["lines_added"], file["lines_removed"], file["unrecorded"]) == (2, 2, False)
    assert file["changes"][0] == {
        "kind": "lines",
        "old_start": 1,
        "old_count": 1,
        "new_start": 1,
        "new_count": 1,
        "removed": "2\n",
        "inserted": "two\n",
        "hunks": ["2:1", "3:1"],
        "turns": [],
        "shares_with": [1],
        "seen": False,
        "awaited": [],
        "awaited_comments": [],
        "comments": [],
    }
    assert file["diff"] == runner.done("diff").text


# ---- comments


def test_comments_are_below_their_change_at_a_terminal_with_their_answers(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    runner.edit("a", b"9\n", b"")
    runner.done("comment", "a:2", "-m", "why \x1b[31m?")
    runner.done("comment", "--reply", "1", "-m", "because")
    runner.done("comment", "3", "-m", "where did it go?")
    shown = runner.typed("diff", "--color", "never")[1]
    first, second = shown.index("+two"), shown.index("-9")
    assert first < shown.index("comment 1 open  a:2  ") < shown.index("    why \\x1b[31m?\n  answer 2  ") < second
    assert shown.index("    because\n") < second < shown.index("comment 3 open  a:9  ")
    assert [
        [(view["comment"], view["line"]) for view in change["comments"]]
        for change in runner.done("diff", "--json").lines()[0]["changes"]
    ] == [[(1, 1)], [(3, 8)]]


def test_a_comment_on_a_hunk_of_two_changes_is_at_its_lines(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n3\n4\n", b"two\nthree\nfour\n")
    runner.edit("a", b"three\n", b"3\n")
    runner.done("comment", "a:4", "-m", "the fourth")
    runner.done("comment", "a:2", "-m", "the second")
    changes = runner.done("diff", "--json").lines()[0]["changes"]
    assert [[view["text"] for view in change["comments"]] for change in changes] == [["the second"], ["the fourth"]]


def test_comments_leave_a_piped_diff_one_that_git_takes(runner: CommandRunner, tmp_path: Path) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    runner.edit("a", b"9\n", b"nine\n")
    runner.done("comment", "a:2", "-m", "-no\n@@ diff\n+yes")
    diff = runner.done("diff").out
    assert diff.startswith(b"# comment 1 open")
    (tmp_path / "a").write_bytes(runner.bytes("a"))
    subprocess.run(["git", "apply", "-R", "-"], input=diff, cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "a").read_bytes() == TEN


def test_a_comment_on_edits_that_cancel_out_is_shown(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    runner.done("comment", "a:2", "-m", "in words?")
    runner.edit("a", b"two\n", b"2\n")
    assert "# comment 1 open  a:2 (its lines are gone)" in runner.done("diff").text


# ---- what is selected


def test_diff_of_paths_edits_and_lines_shows_only_these(runner: CommandRunner) -> None:
    accepted(runner, "d/a", TEN)
    accepted(runner, "b", TEN)
    runner.edit("d/a", b"2\n", b"two\n")
    runner.edit("d/a", b"9\n", b"nine\n")
    runner.edit("b", b"5\n", b"five\n", conversation="conv_two")

    def units(*names: str) -> list[str]:
        heads = [line for line in runner.done("diff", *names).text.splitlines() if line.startswith("@@")]
        return [head.rpartition(" ")[2] for head in heads]

    assert units() == ["[5:1]", "[3:1]", "[4:1]"]
    assert units("d") == units("d/a") == ["[3:1]", "[4:1]"]
    assert units("4") == units("4:1") == units("d/a:9") == units("d/a:8-10") == ["[4:1]"]
    assert units("b", "3") == ["[5:1]", "[3:1]"]
    assert units("conv_two") == ["[5:1]"]
    assert cas("diff", "a:2", folder=runner.folder / "d").text.count("@@ [3:1]") == 1


def test_context_shows_no_line_that_another_change_removes(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"4\n", b"four\n")
    runner.edit("a", b"6\n", b"six\n")
    assert runner.done("diff", "3").text.endswith("@@ -5,5 +5,5 @@ [3:1]\n 5\n-6\n+six\n 7\n 8\n 9\n")


def test_diff_of_a_path_without_pending_edits_shows_what_changed_outside(runner: CommandRunner) -> None:
    accepted(runner, "a", b"1\n")
    (runner.folder / "a").write_bytes(b"2\n")
    ran = runner.cas("diff", "a")
    assert (ran.status, ran.text) == (0, "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n")
    assert ran.said == "Nothing is pending there: this changed outside and is not recorded yet.\n"
    assert runner.cas("diff", "a", "--stat").text.startswith(" a | 2 +-\n")
    assert runner.done("diff", "a", "--json").json()["change"] == "modified"


def test_diff_of_nothing_says_so_and_where_else_to_look(runner: CommandRunner) -> None:
    accepted(runner, "a", b"1\n")
    ran = runner.cas("diff")
    assert (ran.status, ran.text, ran.said) == (0, "", "Nothing is pending.\n")
    (runner.folder / "a").write_bytes(b"2\n")
    assert runner.cas("diff").said == ("Nothing is pending. `cas diff --unrecorded` shows 1 change from outside.\n")
    assert runner.done("diff", "--json").text == ""
    decided = "Nothing of that is pending; `cas show` shows edits that are decided.\n"
    assert runner.cas("diff", "1").said == decided
    runner.done("record")
    assert runner.cas("diff", "a").said == decided
    ran = runner.cas("diff", "nowhere")
    assert (ran.status, ran.said.splitlines()[0]) == (1, "cas: No file is named 'nowhere' here.")


def test_a_file_whose_history_is_lost_hides_no_other(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    accepted(runner, "b", b"b" * 100 + b"\n")
    runner.edit("a", b"2\n", b"two\n")
    runner.write("b", b"c" * 100 + b"\n")
    lose(runner.folder, blob_id(b"b" * 100 + b"\n"))
    for layout in ("--stat", "--json", "-y"):
        ran = runner.cas("diff", layout)
        assert (ran.status, "two" in ran.text or " a | 2 " in ran.text) == (1, True), ran
        assert ran.said.startswith("cas: No blob ")


# ---- other programs


@pytest.mark.parametrize("seed", range(12))
def test_git_takes_the_diff_back_to_the_accepted_text(runner: CommandRunner, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    history = functions(seed) or repeated(seed, alike=0.7)
    end = draw.choice((b"", b"\r"))
    states = [state.replace(b"\n", end + b"\n") for state in history.states]
    if draw.random() < 0.5:
        states = [state if draw.random() < 0.5 else state[: -len(end) - 1] for state in states]
    accepted(runner, "a", states[0])
    runner.move("a", "b")
    for state in states[1:]:
        runner.write("b", state)
    runner.write("new", b"1\n")
    accepted(runner, "gone", b"1\n2")
    runner.delete("gone")
    diff = runner.done("diff").out
    tree = tmp_path / "tree"
    shutil.copytree(runner.folder, tree, ignore=shutil.ignore_patterns(".cas"))
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    subprocess.run(["git", "-C", str(tree), "apply", "-R", "--whitespace=nowarn", "-"], input=diff, check=True)
    assert {path.name: path.read_bytes() for path in tree.iterdir() if path.is_file()} == {
        "a": states[0],
        "gone": b"1\n2",
    }


# ---- lines as names


def test_a_decision_takes_lines_of_a_file(runner: CommandRunner) -> None:
    accepted(runner, "src/a", TEN)
    runner.edit("src/a", b"2\n", b"two\n")
    runner.edit("src/a", b"two\n", b"TWO\nand\n")
    runner.edit("src/a", b"9\n", b"")
    assert runner.done("reject", "src/a:3").text == "Rejected edits 2 3.\nRewrote src/a\n"
    assert runner.bytes("src/a") == TEN.replace(b"9\n", b"")
    assert runner.done("accept", "src/a:8-9").text == "Accepted edit 4.\nNo file changed.\n"
    assert runner.statuses() == {
        "1:0": Status.ACCEPTED,
        "2:1": Status.REJECTED,
        "3:1": Status.REJECTED,
        "4:1": Status.ACCEPTED,
    }


def test_show_takes_lines_of_a_file(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    runner.edit("a", b"two\n", b"TWO\n")
    shown = runner.done("show", "a:2").text
    assert [line for line in shown.splitlines() if line.startswith("@@")] == [
        "@@ -1,5 +1,5 @@ 2:1 pending",
        "@@ -1,5 +1,5 @@ 3:1 pending",
    ]


def test_changes_that_go_together_are_said(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n3\n4\n", b"two\nthree\nfour\n")
    runner.edit("a", b"three\n", b"3\n")
    ran = runner.cas("reject", "a:2")
    assert (ran.status, ran.said) == (0, "The change at line 4 of a shares hunks with this one and goes with it.\n")
    assert runner.bytes("a") == TEN


def test_lines_without_a_change_are_refused(runner: CommandRunner) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    for command in ("accept", "reject", "reset", "show", "diff"):
        ran = runner.cas(command, "a:7")
        assert (ran.status, ran.said) == (1, "cas: a:7 is in no pending change. The nearest change is at a:2.\n")
    assert runner.cas("reject", "a:3-2").status == 2
    (runner.folder / "a").write_bytes(b"mine\n" + runner.bytes("a"))
    assert runner.cas("reject", "a:1").said == "cas: a:1 changed outside and is not recorded yet.\n"
    assert runner.cas("reject", "b:1").said.startswith("cas: No edit, hunk or conversation") is False


def test_hunks_are_named_as_ever_where_a_file_has_a_number_for_a_name(runner: CommandRunner) -> None:
    accepted(runner, "2", TEN)
    runner.write("2", TEN.replace(b"1\n", b"one\n", 1))
    runner.edit("2", b"5\n", b"five\n")
    assert runner.done("reject", "2:1").text == "Rejected edit 2.\nRewrote 2\n"
    assert runner.done("reject", "./2:5").text == "Rejected edit 3.\nRewrote 2\n"
