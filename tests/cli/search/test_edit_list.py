"""Filters of `cas log`, marked words within lines, side-by-side diffs, `--stat` tables and charts."""

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from cli.commands.log import moment_named
from cli.screen.terminal import shown_width
from cli.screen.word_diff import emphasis, paired_lines
from objstore import MAX_BLOB, Call, blob_id
from tests.support.command_runner import CommandRunner
from tests.support.hooked_agents import ClaudeCode

SGR = re.compile(r"\x1b\[[0-9;]*m")


def numbers(runner: CommandRunner, *words: str) -> list[int]:
    return [edit["seq"] for edit in runner.done("log", "--json", *words).lines()]


# ---- filters


def test_log_by_tool_and_time(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    runner.edit("a", b"1", b"2")
    assert numbers(runner, "--tool", "edit_file_diff") == [2]
    assert numbers(runner, "--since", "1h") == [2, 1]
    assert numbers(runner, "--since", "2999-01-01") == []
    assert numbers(runner, "--until", "yesterday") == []
    assert numbers(runner, "--since", "today", "--tool", "write_file", "-n", "1") == [1]


def test_follow_lists_the_current_document_under_all_its_names(runner: CommandRunner) -> None:
    runner.write("old", b"1\n")
    runner.move("old", "a")
    runner.delete("a")
    runner.write("b", b"2\n")
    runner.move("b", "a")
    assert numbers(runner, "--file", "a") == [5, 4, 3, 2, 1]
    assert numbers(runner, "--file", "a", "--follow") == [5, 4]
    assert numbers(runner, "--file", "old", "--follow") == [3, 2, 1]
    assert runner.cas("log", "--follow").status == 2


def test_a_log_longer_than_one_batch_is_complete(runner: CommandRunner) -> None:
    def many(call: Call) -> None:
        for number in range(90):
            call.write(f"f{number}", b"x\n")

    runner.call(many, tool="t")
    assert numbers(runner) == list(range(90, 0, -1))
    assert numbers(runner, "-n", "70") == list(range(90, 20, -1))
    assert numbers(runner, "-n", "70", "--tool", "t", "--reverse") == list(range(21, 91))


@pytest.mark.parametrize(
    ("spelling", "before"),
    [
        ("2h", timedelta(hours=2)),
        ("3 days ago", timedelta(days=3)),
        ("1w", timedelta(weeks=1)),
        ("90s", timedelta(seconds=90)),
    ],
)
def test_a_relative_time_is_before_now(spelling: str, before: timedelta) -> None:
    expected = datetime.now(UTC) - before
    assert abs(moment_named(spelling) - expected.timestamp() * 1e6) < 60e6


def test_a_day_is_its_first_moment_or_as_an_end_its_last() -> None:
    day = 86_400 * 1_000_000
    assert moment_named("2026-11-20", end=True) - moment_named("2026-11-20") == day - 1
    assert moment_named("2026-11-20T14:30+00:00") == 1_795_185_000 * 1_000_000
    assert moment_named("9999-12-31T00:00+00:00") == 253_402_214_400 * 1_000_000
    assert moment_named("9999-12-30", end=True) - moment_named("9999-12-30") == day - 1
    for nonsense in ("", "soon", "2026-13-01", "h", "-1h", "9" * 30 + "h", "999999y"):
        with pytest.raises(click.BadParameter):
            moment_named(nonsense)


# ---- words


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the time zone to Berlin's."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("spelling", "first", "last"),
    [
        ("2026-11-22", "2026-11-22T00:00+01:00", "2026-11-22T23:59:59.999999+01:00"),
        ("20261122", "2026-11-22T00:00+01:00", "2026-11-22T23:59:59.999999+01:00"),
        ("2026-W47-7", "2026-11-22T00:00+01:00", "2026-11-22T23:59:59.999999+01:00"),
        ("2026-W47", "2026-11-16T00:00+01:00", "2026-11-22T23:59:59.999999+01:00"),
        ("2026W47", "2026-11-16T00:00+01:00", "2026-11-22T23:59:59.999999+01:00"),
        ("2026-03-29", "2026-03-29T00:00+01:00", "2026-03-29T23:59:59.999999+02:00"),
        ("2026-10-25", "2026-10-25T00:00+02:00", "2026-10-25T23:59:59.999999+01:00"),
        ("20261122T14", "2026-11-22T14:00+01:00", "2026-11-22T14:00+01:00"),
    ],
)
def test_days_and_weeks_cover_their_whole_length_in_every_format(spelling: str, first: str, last: str) -> None:
    for at, end in ((first, False), (last, True)):
        named = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=moment_named(spelling, end=end))
        assert named == datetime.fromisoformat(at), named


def test_changed_words_within_a_line_are_marked() -> None:
    found = emphasis("def greet(name):", "def greet(name='w'):")
    assert found is not None
    assert found.old == ()
    assert ["def greet(name='w'):"[start:end] for start, end in found.new] == ["='w'"]


def test_lines_with_little_in_common_are_not_marked() -> None:
    assert emphasis("import os", "x = [1, 2, 3]") is None
    assert emphasis("a" * 3_000, "a" * 3_001) is None


def test_similar_lines_are_paired_in_order() -> None:
    old = [b"alpha = 1\n", b"beta = 2\n"]
    new = [b"# new\n", b"alpha = 10\n", b"beta = 20\n"]
    assert paired_lines(old, new) == [(0, 1), (1, 2)]
    assert paired_lines(old * 40, new * 40) == []


def test_colour_marks_words_and_changes_no_text(runner: CommandRunner) -> None:
    runner.write("a", b"red = 1\nend\n")
    runner.write("a", b"red = 22\nend")
    for words in (["show", "2"], ["diff", "a@1", "a@2"], ["log", "-p"]):
        colored = runner.done(*words, "--color", "always").text
        assert SGR.sub("", colored) == runner.done(*words).text
        assert "\x1b[31m-red = \x1b[7m1\x1b[27m\x1b[0m\n" in colored
        assert "\x1b[32m+red = \x1b[7m22\x1b[27m\x1b[0m\n" in colored


def test_a_narrow_terminal_shows_prefixes_of_hashes_that_can_be_used_as_names(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    runner.edit("a", b"1", b"2")
    full = runner.done("show", "2").text
    at_width = {
        columns: runner.typed("show", "2", PAGER="cat", NO_COLOR="1", COLUMNS=str(columns))[1]
        for columns in (89, 80, 60)
    }
    assert at_width[89] == full
    assert all(len(row) <= columns for columns, shown in at_width.items() for row in shown.splitlines())
    hashes = dict(re.findall("(?m)^(id|before|after) +([0-9a-f]+)", at_width[60]))
    assert {len(digits) for digits in hashes.values()} == {16}
    assert runner.done("cat", hashes["before"]).out == b"1\n"
    assert runner.done("cat", hashes["after"]).out == b"2\n"
    assert runner.done("show", hashes["id"]).text == full


# ---- columns and tables


def test_side_by_side_shows_both_versions(runner: CommandRunner) -> None:
    runner.write("a", b"top\nred = 1\nend\n")
    runner.write("a", b"top\nred = 2\nnew\nend\n")
    for words in (["show", "2"], ["diff", "a@1", "a@2"]):
        shown = runner.done(*words, "--side-by-side", COLUMNS="60").text
        rows = [
            "    1 top                          1 top",
            "    2 red = 1                |     2 red = 2",
            "                             >     3 new",
            "    3 end                          4 end",
        ]
        assert "\n".join(rows) in shown


def test_side_by_side_describes_changes_without_lines(runner: CommandRunner) -> None:
    runner.write("empty", b"")
    runner.write("run", b"echo\n")
    runner.call(lambda call: call.write("run", b"echo\n", mode=0o755))
    runner.call(lambda call: call.move("run", "go"))
    runner.delete("empty")
    shown = runner.done("log", "-p", "--side-by-side").text
    for description in ("new file mode 100644", "mode 0644 -> 0755", "move run -> go", "deleted file mode 100644"):
        assert f"{description}\n" in shown
    for number in ("1", "3", "4", "5", "conv_one"):
        assert runner.done("show", number, "--side-by-side").text
    (runner.folder / "go").chmod(0o600)
    assert runner.done("diff", "--unrecorded", "--side-by-side").text.endswith("old mode 100755\nnew mode 100600\n")
    assert runner.done("diff", "empty@1^", "empty@1", "--side-by-side").text.endswith("new file mode 100644\n")


def test_side_by_side_wraps_long_lines_completely(runner: CommandRunner) -> None:
    line = "".join(chr(ord("a") + i % 26) for i in range(90))
    runner.write("a", b"x\n")
    runner.write("a", (line + "\n日本語日本語日本語日本語日本語\n").encode())
    shown = runner.done("show", "2", "-y", COLUMNS="60").text
    right = "".join(row[31:].strip().removeprefix("1 ") for row in shown.splitlines() if row[29:30] in {">", "|"})
    assert right.startswith(line)
    assert all(shown_width(row) <= 60 for row in shown.splitlines() if row[29:30] in {">", "|"})


def side_by_side_row(left: str, mark: str = " ", right: str = "") -> str:
    return f"{left:38} {mark} {right}".rstrip()


@pytest.mark.parametrize(
    ("before", "after", "row"),
    [
        (
            b"if x:\n\treturn\n",
            b"if x:\n        return\n",
            side_by_side_row(r"    2 \treturn", "|", "    2         return"),
        ),
        (b"a\n\xff\n", b"a\n\xfe\n", side_by_side_row(r"    2 \xff", "|", r"    2 \xfe")),
    ],
)
def test_invisible_differences_are_escaped_side_by_side(
    runner: CommandRunner, before: bytes, after: bytes, row: str
) -> None:
    runner.write("f", before)
    runner.write("f", after)
    for words in (["show", "2"], ["diff", "f@1", "f@2"]):
        assert row in runner.done(*words, "-y", COLUMNS="80").text.splitlines()


NO_NEWLINE = r"      \ No newline at end of file"


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        (
            b"1\n2",
            b"1\n2\n",
            [
                side_by_side_row("    1 1", " ", "    1 1"),
                side_by_side_row("    2 2", "|", "    2 2"),
                side_by_side_row(NO_NEWLINE),
            ],
        ),
        (b"1\n2\n", b"1\n2", [side_by_side_row("    2 2", "|", "    2 2"), side_by_side_row("", " ", NO_NEWLINE)]),
        (
            b"1\n2",
            b"one\n2",
            [side_by_side_row("    2 2", " ", "    2 2"), side_by_side_row(NO_NEWLINE, " ", NO_NEWLINE)],
        ),
        (
            b"1",
            b"1\n2",
            [
                side_by_side_row("    1 1", "|", "    1 1"),
                side_by_side_row(NO_NEWLINE),
                side_by_side_row("", ">", "    2 2"),
            ],
        ),
        (b"1\n2\n", b"1", [side_by_side_row("    1 1", "|", "    1 1"), side_by_side_row("", " ", NO_NEWLINE)]),
        (b"1\n2\n", b"one\n2", [side_by_side_row("    2 2", "|", "    2 2"), side_by_side_row("", " ", NO_NEWLINE)]),
        (
            b"x\n" * 9 + b"2\n",
            b"y\n" + b"x\n" * 8 + b"2",
            [side_by_side_row("   10 2", "|", "   10 2"), side_by_side_row("", " ", NO_NEWLINE)],
        ),
        (b"", b"1", [side_by_side_row("", ">", "    1 1"), side_by_side_row("", " ", NO_NEWLINE)]),
    ],
)
def test_an_added_or_removed_final_newline_is_shown_side_by_side(
    runner: CommandRunner, before: bytes, after: bytes, rows: list[str]
) -> None:
    runner.write("f", before)
    runner.write("f", after)
    for words in (["show", "2"], ["diff", "f@1", "f@2"]):
        assert "\n".join(rows) in runner.done(*words, "-y", COLUMNS="80").text
    (runner.folder / "f").write_bytes(before)
    assert runner.done("diff", "--unrecorded", "-y").text.count("@@") >= 2


def test_stat_sums_by_file(runner: CommandRunner) -> None:
    runner.write("a", b"1\n2\n3\n")
    runner.edit("a", b"2", b"two")
    runner.write("bin", bytes(range(256)))
    assert runner.done("log", "--stat").text == (
        " bin | Bin 0 -> 256 bytes\n a   | 5 ++++-\n 2 files changed, 4 insertions(+), 1 deletion(-)\n"
    )
    assert runner.done("show", "2", "--stat").text == " a | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n"
    assert runner.done("diff", "a@1", "a@2", "--stat").text == runner.done("show", "2", "--stat").text
    (runner.folder / "a").write_bytes(b"1\n")
    assert (
        runner.done("diff", "--unrecorded", "--stat").text
        == " a | 2 --\n 1 file changed, 0 insertions(+), 2 deletions(-)\n"
    )
    assert runner.cas("show", "2", "--stat", "-y").status == 2


def test_stat_and_patch_are_both_shown_and_refused_with_json(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    runner.edit("a", b"1", b"2")
    for words in (["--stat", "-p"], ["-p", "--stat", "--reverse"]):
        table = runner.done("log", *(word for word in words if word != "-p")).text
        listed = runner.done("log", *(word for word in words if word != "--stat")).text
        assert runner.done("log", *words).text == f"{table}\n{listed}"
    for words in (
        ["log", "-p"],
        ["log", "--stat"],
        ["log", "-y"],
        ["show", "--stat"],
        ["show", "-y"],
        ["diff", "--stat"],
    ):
        ran = runner.cas(*words, "--json")
        assert (ran.status, ran.out, "--json" in ran.said) == (2, b"", True), ran


def test_stat_gives_no_size_of_a_large_file_placeholder(runner: CommandRunner) -> None:
    runner.write("big", bytes(MAX_BLOB + 1))
    runner.delete("big")
    table = " big | Bin\n 1 file changed, 0 insertions(+), 0 deletions(-)\n"
    for words in (["show", "1"], ["show", "2"], ["log", "-n", "1"], ["diff", "big@1^", "big@1"]):
        assert runner.done(*words, "--stat").text == table
    runner.write("big", b"\0")
    (runner.folder / "big").write_bytes(bytes(MAX_BLOB + 2))
    assert runner.done("diff", "--unrecorded", "--stat").text == table


def test_stat_of_a_binary_file_is_the_same_in_every_command(runner: CommandRunner) -> None:
    runner.write("bin", b"\0\1\n" * 10)
    runner.write("bin", b"\0\2\n" * 10)
    runner.write("bin", b"\0\3\n" * 20)
    runner.write("text", b"1\n")
    runner.write("text", b"2\n")
    table = " bin | Bin 30 -> {} bytes\n 1 file changed, 0 insertions(+), 0 deletions(-)\n"
    assert runner.done("diff", "bin@1", "bin@2", "--stat").text == table.format(30)
    assert runner.done("show", "2", "--stat").text == table.format(30)
    for words in (["log", "bin", "-n", "2"], ["log", "bin", "-n", "2", "--reverse"], ["show", "2..3"]):
        assert runner.done(*words, "--stat").text == table.format(60)
    assert runner.done("show", "5", "--stat").text == " text | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n"


def test_a_stat_table_is_aligned_and_fits_80_columns_for_any_names(runner: CommandRunner) -> None:
    for name, lines in {"日本" * 30: 400, "plain": 1, "e\u0301te\u0301": 60, "d/" * 50 + "end": 3}.items():
        runner.write(name, b"x\n" * lines)
    table = runner.done("log", "--stat").text.splitlines()[:-1]
    assert {shown_width(line.partition("|")[0]) for line in table} == {62}
    assert max(map(shown_width, table)) == 80
    assert table[0].startswith(" …d/")
    assert "/end " in table[0]


def test_names_in_a_stat_table_are_escaped(runner: CommandRunner) -> None:
    runner.write("a\n b | 9 +++\x1b[31m", b"1\n")
    assert runner.done("log", "--stat").out.count(b"\n") == 2
    assert b"\x1b" not in runner.done("log", "--stat").out


@pytest.mark.parametrize("target", ["other", "nowhere", "..", "/", ".git", "a"])
def test_a_file_whose_folder_became_a_symlink_keeps_its_name(runner: CommandRunner, target: str) -> None:
    runner.write("a/z", b"x\n")
    (runner.folder / "a").rename(runner.folder / "other")
    (runner.folder / "other" / "z").unlink()
    (runner.folder / "a").symlink_to(target)
    assert runner.done("cat", "a/z@1").out == b"x\n"
    assert runner.done("blame", "a/z@1").out
    assert b"x" in runner.done("diff", "a/z@1^", "a/z@1").out
    assert b"a/z" in runner.done("log", "a/z").out
    refused = runner.cas("restore", "a/z@1")
    assert (refused.status, refused.out) == (1, b"")
    assert "The folder a is now a symlink, and symlinks are not followed: a/z" in refused.said
    assert not (runner.folder / target / "z").exists()
    seq = runner.write("other/z", b"y\n")
    if target == "other":
        assert runner.done("cat", f"a/z@{seq}").out == b"y\n"  # the target of the link, if it is recorded


@pytest.fixture
def runner_with_link(runner: CommandRunner) -> CommandRunner:
    """Return a workspace where a folder was moved and replaced by a symlink to it, and a scan has recorded the move."""
    runner.write("src/f", b"one\n")  # 1
    runner.write("src/f", b"two\n")  # 2
    runner.done("record")
    (runner.folder / "src").rename(runner.folder / "real")
    (runner.folder / "src").symlink_to("real")
    (runner.folder / "real/f").write_bytes(b"two\nthree\n")
    runner.done("record")
    assert runner.done("cat", "real/f@5").out == b"two\nthree\n"  # 3 recorded the deletion of src/f, 4 the link
    return runner


def test_a_state_from_before_a_folder_became_a_symlink_is_found_by_its_name(runner_with_link: CommandRunner) -> None:
    for name in ("src/f@1", "./src/f@1", str(runner_with_link.folder / "src/f@1"), "src/f@2^"):
        assert runner_with_link.done("cat", name).out == b"one\n"
    assert runner_with_link.done("cat", "src/f@2").out == runner_with_link.done("cat", "src/f@3^").out == b"two\n"
    assert runner_with_link.done("cat", "src/f@5").out == runner_with_link.done("cat", "src/f").out == b"two\nthree\n"
    moments = [edit["timestamp"] for edit in runner_with_link.done("log", "--reverse", "--json").lines()]
    assert runner_with_link.done("cat", f"src/f@{moments[1]}").out == b"two\n"
    assert runner_with_link.done("cat", f"src/f@{moments[4]}").out == b"two\nthree\n"
    assert runner_with_link.done("blame", "src/f@1").text.endswith("one\n")
    assert runner_with_link.done("blame", "src/f").text.endswith("three\n")
    assert "-one\n+two\n" in runner_with_link.done("diff", "src/f@1", "src/f@2").text
    assert [file["path"] for file in runner_with_link.done("ls", "src@1", "--json").lines()] == ["src/f"]
    assert [file["path"] for file in runner_with_link.done("ls", "src", "--json").lines()] == ["real/f", "src"]
    refused = runner_with_link.cas("restore", "src/f@1")
    assert refused.said == "cas: The folder src is now a symlink, and symlinks are not followed: src/f\n"
    refused = runner_with_link.cas("cat", "real/f@1")
    assert refused.said.splitlines()[1] == "Edit 1 changed src/f: did you mean src/f@1?"


@pytest.mark.parametrize("target", ["moved", "../moved"])
def test_a_snapshots_file_from_before_a_folder_became_a_symlink_is_found_by_time(
    runner: CommandRunner, target: str
) -> None:
    (runner.folder / "src").mkdir()
    (runner.folder / "src/f").write_bytes(b"one\n")
    runner.done("snapshot")
    moment = runner.done("snapshot", "list", "--json").lines()[-1]["timestamp"]
    moved = runner.folder / target
    (runner.folder / "src").rename(moved)
    (runner.folder / "src").symlink_to(target)
    (moved / "f").write_bytes(b"two\n")
    for name in ("src/f", str(runner.folder / "src/f")):
        assert runner.done("cat", f"{name}@{moment}").out == b"one\n"
        for words in ([], ["--dry-run"]):
            refused = runner.cas("restore", f"{name}@{moment}", *words)
            assert refused.said == "cas: The folder src is now a symlink, and symlinks are not followed: src/f\n"
    assert (moved / "f").read_bytes() == b"two\n"
    for name in ("src", "src/f"):
        assert [file["path"] for file in runner.done("ls", f"{name}@{moment}", "--json").lines()] == ["src/f"]
    assert runner.done("purge", "src/f", "--dry-run", "--json").json()["blobs"] == [blob_id(b"one\n").hex()]


def test_a_path_through_a_symlink_at_a_time_names_the_links_target(runner: CommandRunner) -> None:
    (runner.folder / "real").mkdir()
    (runner.folder / "real/f").write_bytes(b"one\n")
    (runner.folder / "src").symlink_to("real")
    runner.done("snapshot")
    moment = runner.done("snapshot", "list", "--json").lines()[-1]["timestamp"]
    (runner.folder / "real/f").write_bytes(b"two\n")
    assert runner.done("cat", f"src/f@{moment}").out == b"one\n"
    assert runner.done("restore", f"src/f@{moment}").text.startswith("Restored real/f as edit 1;")
    assert runner.bytes("real/f") == b"one\n"


def test_a_path_through_a_symlink_out_of_the_workspace_is_refused(runner: CommandRunner) -> None:
    (runner.folder / "out").symlink_to("..")
    runner.done("snapshot")
    refused = runner.cas("cat", "out/f@0s")
    assert refused.said.startswith("cas: Path is outside the workspace: out/f\nout is a link that leads outside.")


@pytest.mark.parametrize(
    ("name", "seqs", "of_target"), [("src/f", [5, 3, 2, 1], [5, 3, 2, 1]), ("src", [5, 4, 3, 2, 1], [5, 3])]
)
def test_a_log_includes_the_files_that_a_symlink_replaced(
    runner_with_link: CommandRunner, name: str, seqs: list[int], of_target: list[int]
) -> None:
    """The new file holds a line under review of the old one, so its edits are those of the old one."""
    assert [edit["seq"] for edit in runner_with_link.done("log", name, "--json").lines()] == seqs
    real = name.replace("src", "real")
    assert [edit["seq"] for edit in runner_with_link.done("log", real, "--json").lines()] == of_target


@pytest.mark.parametrize("target", ["f", "folder", "nowhere", "..", "/", ".git"])
def test_the_path_of_a_recorded_link_names_the_link_and_not_its_target(runner: CommandRunner, target: str) -> None:
    (runner.folder / "folder").mkdir()
    for name in ("f", "folder/f"):
        runner.write(name, b"one\n")
    runner.done("accept", "--all")
    (runner.folder / "link").symlink_to("elsewhere")
    runner.done("record")
    for name in ("f", "folder/f"):
        runner.write(name, b"two\n")  # 3 and 4: pending
    agent = ClaudeCode(runner.folder)
    agent.start()
    agent.ask("Where to?")
    agent.run(f"ln -sfn {target} link")
    agent.stop()
    (edit,) = runner.done("log", "-n", "1", "--json").lines()
    assert (edit["seq"], edit["file_path"]) == (5, str(runner.folder / "link"))
    for name in ("link", "./link", "folder/../link", str(runner.folder / "link")):
        assert [file["file_path"] for file in runner.done("diff", name, "--json").lines()] == [edit["file_path"]]
        assert runner.done("accept", name, "--dry-run").text.splitlines()[1] == "Would accept edit 5."
    assert runner.done("comment", "link", "-m", "Why?").text.split()[3] == "link"
    assert runner.done("reject", "link").text == "Rejected edit 5.\nRewrote the link link\n"
    assert (runner.folder / "link").readlink() == Path("elsewhere")
    (runner.folder / "unrecorded").symlink_to("f")  # nothing but its target can be meant
    assert runner.done("reject", "unrecorded").text.startswith("Rejected edit 3.\n")


def test_a_decision_on_a_path_through_a_symlink_is_about_the_target(runner_with_link: CommandRunner) -> None:
    assert [edit["seq"] for edit in runner_with_link.done("log", "--follow", "src/f", "--json").lines()] == [5, 3, 2, 1]
    runner_with_link.done("accept", "1", "2")
    runner_with_link.write("real/f", b"four\n")  # 6
    assert runner_with_link.done("reject", "src/f").text.startswith("Rejected edit 6.\n")
