"""Reading: the filters of `cas log`, words marked within lines, columns, tables of how much changed, and charts."""

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import click
import pytest

from cli.screen.chart import chart
from cli.screen.terminal import EXACT, shown_width
from cli.screen.word_diff import emphasis, paired_lines
from cli.selection.dates import moment_named
from objstore import MAX_BLOB, Call, blob_id
from tests.support.command_runner import CommandRunner

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


def test_follow_is_the_file_that_stands_there_under_all_its_names(runner: CommandRunner) -> None:
    runner.write("old", b"1\n")
    runner.move("old", "a")
    runner.delete("a")
    runner.write("b", b"2\n")
    runner.move("b", "a")
    assert numbers(runner, "--file", "a") == [5, 4, 3, 2, 1]
    assert numbers(runner, "--file", "a", "--follow") == [5, 4]
    assert numbers(runner, "--file", "old", "--follow") == [3, 2, 1]
    assert runner.cas("log", "--follow").status == 2


def test_a_log_longer_than_what_is_read_at_once_is_whole(runner: CommandRunner) -> None:
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
def test_a_time_ago(spelling: str, before: timedelta) -> None:
    wanted = datetime.now(UTC) - before
    assert abs(moment_named(spelling) - wanted.timestamp() * 1e6) < 60e6


def test_a_day_stands_for_its_first_moment_and_at_an_end_for_its_last() -> None:
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
    """Have the clocks of Berlin."""
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
def test_a_day_or_a_week_is_whole_however_it_is_spelt_and_long(spelling: str, first: str, last: str) -> None:
    for at, end in ((first, False), (last, True)):
        named = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=moment_named(spelling, end=end))
        assert named == datetime.fromisoformat(at), named


def test_what_differs_within_a_line_is_marked() -> None:
    found = emphasis("def greet(name):", "def greet(name='w'):")
    assert found is not None
    assert found.old == ()
    assert ["def greet(name='w'):"[start:end] for start, end in found.new] == ["='w'"]


def test_lines_with_little_in_common_are_not_marked() -> None:
    assert emphasis("import os", "x = [1, 2, 3]") is None
    assert emphasis("a" * 3_000, "a" * 3_001) is None


def test_lines_are_paired_in_order_by_what_they_have_in_common() -> None:
    old = [b"alpha = 1\n", b"beta = 2\n"]
    new = [b"# new\n", b"alpha = 10\n", b"beta = 20\n"]
    assert paired_lines(old, new) == [(0, 1), (1, 2)]
    assert paired_lines(old * 40, new * 40) == []


def test_colour_marks_words_and_says_the_same(runner: CommandRunner) -> None:
    runner.write("a", b"red = 1\nend\n")
    runner.write("a", b"red = 22\nend")
    for words in (["show", "2"], ["diff", "a@1", "a@2"], ["log", "-p"]):
        colored = runner.done(*words, "--color", "always").text
        assert SGR.sub("", colored) == runner.done(*words).text
        assert "\x1b[31m-red = \x1b[7m1\x1b[27m\x1b[0m\n" in colored
        assert "\x1b[32m+red = \x1b[7m22\x1b[27m\x1b[0m\n" in colored


def test_where_a_terminal_has_no_room_for_a_hash_its_beginning_is_shown_which_names_it(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    runner.edit("a", b"1", b"2")
    whole = runner.done("show", "2").text
    at = {
        columns: runner.typed("show", "2", PAGER="cat", NO_COLOR="1", COLUMNS=str(columns))[1]
        for columns in (89, 80, 60)
    }
    assert at[89] == whole
    assert all(len(row) <= columns for columns, shown in at.items() for row in shown.splitlines())
    facts = dict(re.findall("(?m)^(id|before|after) +([0-9a-f]+)", at[60]))
    assert {len(fact) for fact in facts.values()} == {16}
    assert runner.done("cat", facts["before"]).out == b"1\n"
    assert runner.done("cat", facts["after"]).out == b"2\n"
    assert runner.done("show", facts["id"]).text == whole


# ---- columns and tables


def test_both_sides_stand_next_to_each_other(runner: CommandRunner) -> None:
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


def test_a_change_of_no_line_has_no_rows_in_columns(runner: CommandRunner) -> None:
    runner.write("empty", b"")
    runner.write("run", b"echo\n")
    runner.call(lambda call: call.write("run", b"echo\n", mode=0o755))
    runner.call(lambda call: call.move("run", "go"))
    runner.delete("empty")
    shown = runner.done("log", "-p", "--side-by-side").text
    for said in ("new file mode 100644", "mode 0644 -> 0755", "move run -> go", "deleted file mode 100644"):
        assert f"{said}\n" in shown
    for number in ("1", "3", "4", "5", "conv_one"):
        assert runner.done("show", number, "--side-by-side").text
    (runner.folder / "go").chmod(0o600)
    assert runner.done("diff", "--unrecorded", "--side-by-side").text.endswith("old mode 100755\nnew mode 100600\n")
    assert runner.done("diff", "empty@1^", "empty@1", "--side-by-side").text.endswith("new file mode 100644\n")


def test_a_long_line_is_folded_and_nothing_of_it_is_lost(runner: CommandRunner) -> None:
    line = "".join(chr(ord("a") + i % 26) for i in range(90))
    runner.write("a", b"x\n")
    runner.write("a", (line + "\n日本語日本語日本語日本語日本語\n").encode())
    shown = runner.done("show", "2", "-y", COLUMNS="60").text
    right = "".join(row[31:].strip().removeprefix("1 ") for row in shown.splitlines() if row[29:30] in {">", "|"})
    assert right.startswith(line)
    assert all(shown_width(row) <= 60 for row in shown.splitlines() if row[29:30] in {">", "|"})


def beside(left: str, mark: str = " ", right: str = "") -> str:
    return f"{left:38} {mark} {right}".rstrip()


@pytest.mark.parametrize(
    ("before", "after", "row"),
    [
        (b"if x:\n\treturn\n", b"if x:\n        return\n", beside(r"    2 \treturn", "|", "    2         return")),
        (b"a\n\xff\n", b"a\n\xfe\n", beside(r"    2 \xff", "|", r"    2 \xfe")),
    ],
)
def test_lines_that_only_look_alike_are_told_apart(
    runner: CommandRunner, before: bytes, after: bytes, row: str
) -> None:
    runner.write("f", before)
    runner.write("f", after)
    for words in (["show", "2"], ["diff", "f@1", "f@2"]):
        assert row in runner.done(*words, "-y", COLUMNS="80").text.splitlines()


LACKS = r"      \ No newline at end of file"


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        (b"1\n2", b"1\n2\n", [beside("    1 1", " ", "    1 1"), beside("    2 2", "|", "    2 2"), beside(LACKS)]),
        (b"1\n2\n", b"1\n2", [beside("    2 2", "|", "    2 2"), beside("", " ", LACKS)]),
        (b"1\n2", b"one\n2", [beside("    2 2", " ", "    2 2"), beside(LACKS, " ", LACKS)]),
        (b"1", b"1\n2", [beside("    1 1", "|", "    1 1"), beside(LACKS), beside("", ">", "    2 2")]),
        (b"1\n2\n", b"1", [beside("    1 1", "|", "    1 1"), beside("", " ", LACKS)]),
        (b"1\n2\n", b"one\n2", [beside("    2 2", "|", "    2 2"), beside("", " ", LACKS)]),
        (b"x\n" * 9 + b"2\n", b"y\n" + b"x\n" * 8 + b"2", [beside("   10 2", "|", "   10 2"), beside("", " ", LACKS)]),
        (b"", b"1", [beside("", ">", "    1 1"), beside("", " ", LACKS)]),
    ],
)
def test_a_final_newline_that_came_or_went_shows(
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


def test_stat_and_the_diffs_are_shown_both_and_neither_is_dropped_for_json(runner: CommandRunner) -> None:
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


def test_stat_gives_no_size_of_a_large_file_rather_than_that_of_what_stands_for_it(runner: CommandRunner) -> None:
    runner.write("big", bytes(MAX_BLOB + 1))
    runner.delete("big")
    table = " big | Bin\n 1 file changed, 0 insertions(+), 0 deletions(-)\n"
    for words in (["show", "1"], ["show", "2"], ["log", "-n", "1"], ["diff", "big@1^", "big@1"]):
        assert runner.done(*words, "--stat").text == table
    runner.write("big", b"\0")
    (runner.folder / "big").write_bytes(bytes(MAX_BLOB + 2))
    assert runner.done("diff", "--unrecorded", "--stat").text == table


def test_stat_says_the_same_of_what_is_no_text_wherever_it_is_asked(runner: CommandRunner) -> None:
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


def test_a_table_stands_straight_and_fits_80_columns_whatever_the_names(runner: CommandRunner) -> None:
    for name, lines in {"日本" * 30: 400, "plain": 1, "e\u0301te\u0301": 60, "d/" * 50 + "end": 3}.items():
        runner.write(name, b"x\n" * lines)
    table = runner.done("log", "--stat").text.splitlines()[:-1]
    assert {shown_width(line.partition("|")[0]) for line in table} == {62}
    assert max(map(shown_width, table)) == 80
    assert table[0].startswith(" ...d/")
    assert "/end " in table[0]


def test_names_in_a_table_cannot_forge_it(runner: CommandRunner) -> None:
    runner.write("a\n b | 9 +++\x1b[31m", b"1\n")
    assert runner.done("log", "--stat").out.count(b"\n") == 2
    assert b"\x1b" not in runner.done("log", "--stat").out


# ---- charts


def shown_chart(amounts: dict[int, int]) -> list[str]:
    return [line.decode().rstrip("\n") for line in chart(amounts, "edits", EXACT)]


def test_a_chart_is_as_high_as_what_it_shows_and_fits_a_line() -> None:
    assert shown_chart({0: 8, 1: 4, 3: 1})[0] == "edits in time █▄ ▁"
    for span in (10, 1_000, 100_000, 10_000_000):
        columns = shown_chart({0: 1, span: 1})[0].removeprefix("edits in time ")
        assert 1 < len(columns) <= 60
        assert columns[0] == columns[-1] == "█"


def test_stats_show_a_chart(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    shown = runner.done("stats").text
    assert "      1 edit  " in shown
    assert "edits in time █\n" in shown
    assert "bytes in time █\n" in shown
    (minute,) = runner.done("stats", "--json").json()["minutes"]
    assert minute["edits"] == 1


@pytest.mark.parametrize("target", ["other", "nowhere", "..", "/", ".git", "a"])
def test_a_file_whose_folder_is_a_link_by_now_is_named_as_ever(runner: CommandRunner, target: str) -> None:
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
        assert runner.done("cat", f"a/z@{seq}").out == b"y\n"  # what it leads to, where that is recorded


@pytest.fixture
def linked(runner: CommandRunner) -> CommandRunner:
    """Return a desk where a folder was moved away, with a link in its place, and a look has recorded both."""
    runner.write("src/f", b"one\n")  # 1
    runner.write("src/f", b"two\n")  # 2
    runner.done("record")
    (runner.folder / "src").rename(runner.folder / "real")
    (runner.folder / "src").symlink_to("real")
    (runner.folder / "real/f").write_bytes(b"two\nthree\n")
    runner.done("record")
    assert runner.done("cat", "real/f@4").out == b"two\nthree\n"  # src/f went with 3
    return runner


def test_a_state_before_a_folder_became_a_link_has_its_name_also_where_both_are_recorded(linked: CommandRunner) -> None:
    for name in ("src/f@1", "./src/f@1", str(linked.folder / "src/f@1"), "src/f@2^"):
        assert linked.done("cat", name).out == b"one\n"
    assert linked.done("cat", "src/f@2").out == linked.done("cat", "src/f@3^").out == b"two\n"
    assert linked.done("cat", "src/f@4").out == linked.done("cat", "src/f").out == b"two\nthree\n"
    moments = [edit["timestamp"] for edit in linked.done("log", "--reverse", "--json").lines()]
    assert linked.done("cat", f"src/f@{moments[1]}").out == b"two\n"
    assert linked.done("cat", f"src/f@{moments[3]}").out == b"two\nthree\n"
    assert linked.done("blame", "src/f@1").text.endswith("one\n")
    assert linked.done("blame", "src/f").text.endswith("three\n")
    assert "-one\n+two\n" in linked.done("diff", "src/f@1", "src/f@2").text
    assert [file["path"] for file in linked.done("ls", "src@1", "--json").lines()] == ["src/f"]
    assert [file["path"] for file in linked.done("ls", "src", "--json").lines()] == ["real/f"]
    refused = linked.cas("restore", "src/f@1")
    assert refused.said == "cas: The folder src is now a symlink, and symlinks are not followed: src/f\n"
    refused = linked.cas("cat", "real/f@1")
    assert refused.said.splitlines()[1] == "Edit 1 changed src/f: did you mean src/f@1?"


@pytest.mark.parametrize("target", ["there", "../there"])
def test_a_moment_before_a_folder_became_a_link_is_told_also_where_only_a_snapshot_tells(
    runner: CommandRunner, target: str
) -> None:
    (runner.folder / "src").mkdir()
    (runner.folder / "src/f").write_bytes(b"one\n")
    runner.done("snapshot")
    moment = runner.done("snapshot", "list", "--json").lines()[-1]["timestamp"]
    there = runner.folder / target
    (runner.folder / "src").rename(there)
    (runner.folder / "src").symlink_to(target)
    (there / "f").write_bytes(b"two\n")
    for name in ("src/f", str(runner.folder / "src/f")):
        assert runner.done("cat", f"{name}@{moment}").out == b"one\n"
        for words in ([], ["--dry-run"]):
            refused = runner.cas("restore", f"{name}@{moment}", *words)
            assert refused.said == "cas: The folder src is now a symlink, and symlinks are not followed: src/f\n"
    assert (there / "f").read_bytes() == b"two\n"
    for name in ("src", "src/f"):
        assert [file["path"] for file in runner.done("ls", f"{name}@{moment}", "--json").lines()] == ["src/f"]
    assert runner.done("purge", "src/f", "--dry-run", "--json").json()["blobs"] == [blob_id(b"one\n").hex()]


def test_a_moment_at_which_a_link_stood_is_that_of_what_it_leads_to(runner: CommandRunner) -> None:
    (runner.folder / "real").mkdir()
    (runner.folder / "real/f").write_bytes(b"one\n")
    (runner.folder / "src").symlink_to("real")
    runner.done("snapshot")
    moment = runner.done("snapshot", "list", "--json").lines()[-1]["timestamp"]
    (runner.folder / "real/f").write_bytes(b"two\n")
    assert runner.done("cat", f"src/f@{moment}").out == b"one\n"
    assert runner.done("restore", f"src/f@{moment}").text.startswith("Restored real/f as edit 1;")
    assert runner.bytes("real/f") == b"one\n"


def test_a_moment_at_which_a_link_led_out_of_the_workspace_tells_of_no_file_below_it(runner: CommandRunner) -> None:
    (runner.folder / "out").symlink_to("..")
    runner.done("snapshot")
    assert runner.cas("cat", "out/f@0s").said == "cas: Path is outside the workspace: out/f\n"


@pytest.mark.parametrize("name", ["src/f", "src"])
def test_a_log_is_also_of_what_a_link_has_taken_the_place_of(linked: CommandRunner, name: str) -> None:
    assert [edit["seq"] for edit in linked.done("log", name, "--json").lines()] == [4, 3, 2, 1]
    assert [edit["seq"] for edit in linked.done("log", name.replace("src", "real"), "--json").lines()] == [4]


def test_a_decision_on_a_name_is_of_what_it_leads_to(linked: CommandRunner) -> None:
    assert [edit["seq"] for edit in linked.done("log", "--follow", "src/f", "--json").lines()] == [4]
    linked.write("real/f", b"four\n")  # 5
    assert linked.done("reject", "--file", "src/f").text.startswith("Rejected edit 5.\n")
