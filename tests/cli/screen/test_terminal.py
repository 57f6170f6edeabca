"""Output: colour, the pager, full disks and closed pipes, and hostile names and content."""

import json
import os
import re
import signal
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.render.edits import short_moment
from cli.screen.terminal import beginning_of, end_of, shown_name, shown_width, visible
from tests.support.command_runner import PATIENCE, PROGRAM, Answer, CommandRunner, environment, on_terminal
from tests.support.raw_client import NEWER_VERSION_META, tool_call

ESCAPE = "\x1b["
COLORED = re.compile(r"\x1b\[[0-9;]*m")
READING_COMMANDS = [["status"], ["log", "--json"], ["show", "1"], ["cat", "a@1"], ["--help"]]


def two_edits_and_an_external_change(runner: CommandRunner) -> None:
    runner.write("a", b"1\n2\n3\n")
    runner.edit("a", b"2", b"two")
    (runner.folder / "a").write_bytes(b"1\ntwo\nthree\n")


# ---- colour


@pytest.mark.parametrize(
    "words", [["status"], ["log"], ["show", "2", "--no-side-by-side"], ["diff", "--no-side-by-side"]]
)
def test_colour_is_used_only_on_a_terminal(runner: CommandRunner, words: list[str]) -> None:
    two_edits_and_an_external_change(runner)
    plain = runner.done(*words).text
    assert ESCAPE not in plain
    colored = runner.typed(*words, COLUMNS="1000")[1]
    assert ESCAPE in colored
    assert COLORED.sub("", colored) == plain


def test_colour_follows_the_option_and_the_environment(runner: CommandRunner) -> None:
    two_edits_and_an_external_change(runner)
    assert ESCAPE in runner.done("--color", "always", "diff").text
    assert ESCAPE in runner.done("diff", "--color=always", NO_COLOR="1").text
    assert ESCAPE not in runner.typed("diff", NO_COLOR="1")[1]
    assert ESCAPE in runner.typed("diff", NO_COLOR="")[1]
    assert ESCAPE not in runner.typed("diff", TERM="dumb")[1]
    assert ESCAPE not in runner.typed("diff", TERM="")[1]
    assert ESCAPE not in runner.typed("diff", "--color", "never")[1]


# ---- the pager


@pytest.mark.parametrize("words", [["log"], ["show", "2"], ["diff"], ["diff", "a@1", "a@2"]])
def test_long_output_goes_through_the_pager_on_a_terminal(
    runner: CommandRunner, tmp_path: Path, words: list[str]
) -> None:
    two_edits_and_an_external_change(runner)
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED $LESS\ncat\n")
    pager.chmod(0o755)
    status, shown = runner.typed(*words, PAGER=str(pager))
    assert status == 0
    assert shown.startswith("PAGED FRX\n")
    assert runner.done(*words, PAGER=str(pager)).text == COLORED.sub("", shown.removeprefix("PAGED FRX\n"))


def test_quitting_the_pager_early_exits_with_zero(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"x\n" * 200_000)
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\nread line\necho "$line"\n')
    pager.chmod(0o755)
    status, shown = runner.typed("show", "1", CAS_PAGER=str(pager), PAGER="/nonexistent")
    assert status == 0
    assert COLORED.sub("", shown).startswith("edit 1  create  a")
    assert "cas:" not in shown


def test_less_is_the_default_pager(runner: CommandRunner) -> None:
    two_edits_and_an_external_change(runner)
    status, shown = runner.typed("show", "2", PAGER="less -FRX")
    assert status == 0
    assert "+two" in shown


def test_without_a_working_pager_output_goes_to_the_terminal(runner: CommandRunner) -> None:
    two_edits_and_an_external_change(runner)
    for missing in ("no-such-pager", "", "less '"):
        status, shown = runner.typed("log", PAGER=missing)
        assert status == 0
        assert COLORED.sub("", shown) == runner.done("log").text


def test_the_pager_may_be_a_shell_command(runner: CommandRunner) -> None:
    two_edits_and_an_external_change(runner)
    status, shown = runner.typed("log", CAS_PAGER="sed 's/^/> /' | cat")
    assert status == 0
    assert COLORED.sub("", shown) == "".join(f"> {line}\n" for line in runner.done("log").text.splitlines())


CHOSEN = "3f2b8c1e-9d04-4a7e-8f11"
"""A name of a conversation that is short enough to be shown."""

UUIDS = ("3f2b8c1e-9d04-4a7e-8f11-0c5d2e6b7a90", "3f2b8c1e-97aa-4a7e-8f11-0c5d2e6b7a91", "b70c5f52-0d3e-4d0f-9c61-1")


def rows_of_log(runner: CommandRunner, columns: int) -> list[str]:
    return COLORED.sub("", runner.typed("log", PAGER="cat", COLUMNS=str(columns))[1]).splitlines()


def test_rows_of_the_log_fit_the_width_of_the_terminal(runner: CommandRunner) -> None:
    paths = ("a.py", "src/long/way/to/a/file.py", "kurz-\u77ed\u77ed\u77ed.txt")
    for conversation, path in zip(UUIDS, paths, strict=True):
        runner.write(path, b"x\n", conversation=conversation)
    runner.write("b", b"x\n", conversation="conv_one")
    rows = rows_of_log(runner, 80)
    assert all(shown_width(row) <= 80 for row in rows), rows
    assert [row[51:] for row in rows] == [
        "b  conv_one",
        "kurz-\u77ed\u77ed\u77ed.txt  session 3",
        "…/way/to/a/file.py  session 2",
        "a.py  session 1",
    ]
    for row in rows[1:]:
        assert runner.done("log", "--session", row.split()[-1], "--json").lines()[0]["seq"] == int(row.split()[0])


def test_lines_of_status_and_ls_fit_the_width_of_the_terminal(runner: CommandRunner) -> None:
    runner.write("a/file.py", b"x\n")
    runner.write("b", b"y\n")
    long = runner.folder / ("deep" * 10)
    runner.folder.rename(long.parent.parent / long.name)
    runner.folder = long.parent.parent / long.name
    for command in ("status", "ls"):
        rows = COLORED.sub("", runner.typed(command, PAGER="cat", COLUMNS="80")[1]).splitlines()
        assert all(shown_width(row) <= 80 for row in rows), rows
        full = runner.done(command).text.splitlines()
        assert COLORED.sub("", runner.typed(command, PAGER="cat", COLUMNS="240")[1]).splitlines() == full
    head = COLORED.sub("", runner.typed("status", PAGER="cat", COLUMNS="80")[1]).splitlines()[0]
    assert head == "…epdeepdeepdeepdeepdeep: 2 edits in 1 session, 2 pending, 0 accepted, 0 rejected"
    digits = COLORED.sub("", runner.typed("ls", PAGER="cat", COLUMNS="80")[1]).split()[1]
    assert runner.done("cat", digits).out == b"x\n"


def test_a_cut_text_has_as_many_columns_as_there_are() -> None:
    assert beginning_of("four", 4) == "four"
    assert beginning_of("a long text", 7) == "a long…"
    assert beginning_of("a long text", 8) == "a long…"  # no space before the ellipsis
    assert beginning_of("\u77ed\u77ed\u77ed", 5) == "\u77ed\u77ed…"
    assert end_of("\u77ed\u77ed\u77ed", 4) == "…\u77ed"


def test_names_are_complete_in_pipes_and_on_wide_terminals(runner: CommandRunner) -> None:
    runner.write("src/long/way/to/a/file.py", b"x\n", conversation=CHOSEN)
    full = runner.done("log").text.splitlines()
    assert full[0].endswith(f"  src/long/way/to/a/file.py  {CHOSEN}")
    assert rows_of_log(runner, len(full[0])) == full
    assert rows_of_log(runner, len(full[0]) - 1) == [full[0].replace(CHOSEN, CHOSEN[:8])]
    (narrow,) = rows_of_log(runner, 70)
    assert re.fullmatch(r" +1  \d\d-\d\d \d\d:\d\d  pending    create       \+1 -0  …/file\.py  3f2b8c1e", narrow)
    runner.write("b", b"x\n", conversation=UUIDS[1])
    assert runner.done("log", "-1").text.endswith("  b  session 2\n")


@pytest.mark.parametrize("columns", [79, 69, 68, 60, 59, 50, 45, 40, 37])
def test_rows_of_the_log_stay_one_line_on_any_narrow_terminal(runner: CommandRunner, columns: int) -> None:
    runner.write("src/long/way/to/a/file-of-a-name-that-is-" + "very-" * 30 + "long.py", b"x\n", conversation=UUIDS[0])
    runner.write("f.txt", b"x\n", conversation=UUIDS[1])
    runner.call(lambda call: call.move("f.txt", "moved/f.txt"), conversation=UUIDS[2])
    (runner.folder / "moved" / "f.txt").write_bytes(b"mine\n")
    runner.done("record")
    (runner.folder / "long").mkdir()
    runner.done("reject", "2", "--cascade", "--on-external", "keep")
    rows = [row for row in rows_of_log(runner, columns) if "reason:" not in row]
    assert all(shown_width(row) <= columns for row in rows), rows
    assert [int(row.split()[0]) for row in rows] == list(range(len(rows), 0, -1))
    assert "long.py" in rows[-1] or "ng.py" in rows[-1]
    assert "…" in rows[-1]


def test_a_narrow_row_shows_the_year_of_old_edits() -> None:
    now = time.time()
    for ago, date_format in ((60, "%m-%d %H:%M"), (300 * 86_400, "%Y-%m-%d "), (-86_400, "%Y-%m-%d ")):
        when = datetime.fromtimestamp(now - ago, UTC)
        assert short_moment(int(when.timestamp() * 1e6)) == when.astimezone().strftime(date_format)


# ---- full disk, closed pipe


@pytest.mark.parametrize("words", READING_COMMANDS)
def test_a_full_disk_is_one_line_and_status_1(runner: CommandRunner, words: list[str]) -> None:
    two_edits_and_an_external_change(runner)
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [*PROGRAM, *words],
            cwd=runner.folder,
            env=environment({}),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    assert ran.returncode == 1
    assert ran.stderr.count(b"\n") == 1
    assert ran.stderr.startswith(b"cas: ")
    assert b"No space left on device" in ran.stderr


@pytest.mark.parametrize("words", READING_COMMANDS)
def test_a_closed_pipe_exits_with_141_and_prints_nothing(runner: CommandRunner, words: list[str]) -> None:
    two_edits_and_an_external_change(runner)
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [*PROGRAM, *words], cwd=runner.folder, env=environment({}), stdout=writer, stderr=subprocess.PIPE
    ) as process:
        os.close(writer)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (141, b"")


def test_closed_stdout_and_stderr_exit_with_1(runner: CommandRunner) -> None:
    two_edits_and_an_external_change(runner)
    shell = f"{' '.join(PROGRAM)} log >&- 2>&-"
    ran = subprocess.run(["sh", "-c", shell], cwd=runner.folder, env=environment({}), timeout=PATIENCE, check=False)
    assert ran.returncode == 1


def test_a_decision_is_kept_when_its_output_cannot_be_written(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [*PROGRAM, "reject", "1"],
            cwd=runner.folder,
            env=environment({}),
            stdout=full,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )
    assert ran.returncode == 1
    assert not (runner.folder / "a").exists()


# ---- names

HOSTILE_NAMES = [
    "new\nline",
    "cr\rover",
    "esc\x1b[2J\x1b[31m",
    "tab\tbed",
    'quote"d',
    "back\\slash",
    " spaces ",
    "rtl\u202egnp.exe",
    "\udcff not utf-8",
    "-dash",
    "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@",
]


def hostile_history(runner: CommandRunner) -> list[str]:
    """Record and change a file under every hostile name; return the names."""
    names = [name.replace("/", "_") for name in HOSTILE_NAMES]
    for name in names:
        runner.write(name, b"x\n", conversation="conv_\x1b[31m\nred")
        (runner.folder / name).write_bytes(b"z\n")
    return names


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        (
            "status",
            r"\S+: 11 edits in .*|pending .*:|  \S.*|    .* \+1 -0  \d+|    and \d .*|changed outside.*|store: .*|",
        ),
        ("log", r" +\d+  2\d\d\d-.*  pending .*  \"conv_\\x1b\[31m\\nred\""),
        ("diff", r'# .*|diff --git .*|new file .*|--- /dev/null|\+\+\+ "?b/.*|@@ -0,0 \+1,1 @@ \[\d+:0\]|\+x'),
        ("diff --unrecorded", r'diff --git .*|--- "?a/.*|\+\+\+ "?b/.*|@@ -1 \+1 @@|-x|\+z'),
    ],
)
def test_a_name_cannot_forge_output(runner: CommandRunner, command: str, pattern: str) -> None:
    hostile_history(runner)
    out = runner.done(*command.split()).out
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", out)
    assert "\u202e" not in out.decode()
    for line in out.decode().splitlines():
        assert re.fullmatch(pattern, line), line


def test_hostile_names_are_complete_in_json(runner: CommandRunner) -> None:
    names = hostile_history(runner)
    ran = runner.done("log", "--json", "--reverse")
    assert ran.out.isascii()
    assert [edit["file_path"].rpartition("/")[2] for edit in ran.lines()] == [
        name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name in names
    ]


def test_a_hostile_name_in_an_error_is_one_line(runner: CommandRunner) -> None:
    ran = runner.cas("cat", "../new\nline\x1b[31m")
    assert ran.status == 1
    assert ran.said.count("\n") == 1
    assert "\x1b" not in ran.said


def test_escaped_names_are_unambiguous() -> None:
    plain = ["a", "a b", "é", "日本", "a/b.txt", "a'b"]
    assert [shown_name(name) for name in plain] == plain
    odd = [
        "",
        "a\nb",
        "a\\nb",
        'a"b',
        "a\tb",
        " a",
        "\x1b",
        "\udcff",
        "\u202e",
        "\\xff",
        "a\u200bb",
        "a\xa0b",
        "\U000e0041",
    ]
    shown = [shown_name(name) for name in odd]
    assert len(set(shown)) == len(odd)
    assert all(escaped.startswith('"') and escaped.isprintable() for escaped in shown)


# ---- the content of files


def test_on_a_terminal_control_characters_of_files_are_escaped(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.write("a", b"\x1b[2Jwipe\rcr\ttab\n\xff\xc2\x9b31m\n\xe2\x80\xae turned\n" + b"text " * 20 + b"\n")
    shown = COLORED.sub("", runner.typed("show", "2")[1])
    assert "+\\x1b[2Jwipe\\rcr\ttab\n+\\xff\\x9b31m\n+\\u202e turned\n+text " in shown
    assert b"+\x1b[2Jwipe\rcr\ttab\n" in runner.done("show", "2").out
    assert "\\x1b[2J" in runner.done("show", "2", "--color", "always").text


HIDDEN = [0xAD, 0x34F, 0x115F, 0x180E, *range(0x200B, 0x200E), 0x2060, 0x2064, 0x206A, 0x3164, 0xFE0F, 0xFEFF, 0xFFF9]
HIDDEN += [0xE0041, 0xE0100]


@pytest.mark.parametrize("code", HIDDEN, ids=hex)
def test_invisible_characters_are_escaped(code: int) -> None:
    hidden = chr(code)
    escaped = f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    assert visible(f"ad{hidden}min") == f"ad{escaped}min"
    assert visible(hidden) == escaped
    assert visible(f"\u00e9{hidden * 3}").endswith(escaped)  # a character takes at most one of a kind


@pytest.mark.parametrize(
    "text",
    [
        "\u2764\ufe0f",
        "\u2764\ufe0f\u200d\U0001f525",
        "\U0001f469\u200d\U0001f4bb",
        "\u0645\u06cc\u200c\u062e",
        "1 \u00e9 \u65e5",
    ],
    ids=ascii,
)
def test_joiners_of_emoji_and_scripts_are_not_escaped(text: str) -> None:
    assert visible(text) == text


def test_raw_content_is_escaped_on_a_terminal_and_exact_in_a_pipe(runner: CommandRunner) -> None:
    hostile = b"\x1b]0;title\x07 \xc2\x9b2J \xe2\x80\xae\n"
    runner.write("a", hostile)
    assert runner.done("cat", "a").out == hostile
    assert hostile in runner.done("export", "--patch").out
    for words in (["cat", "a"], ["export", "--patch"]):
        status, shown = runner.typed(*words)
        assert status == 0
        assert r"\x1b]0;title\a \x9b2J \u202e" in shown
        assert not set(shown) & set("\x1b\x07\x9b\u202e")


def test_a_removed_line_that_resembles_a_header_is_coloured_as_removed(runner: CommandRunner) -> None:
    runner.write("a", b"-- a/other\n++ b/other\n")
    runner.write("a", b"x\n")
    shown = runner.done("diff", "a@1", "a@2", "--color", "always").text
    assert "\x1b[31m--- a/other\x1b[0m\n\x1b[31m-++ b/other\x1b[0m\n" in shown


# ---- commands for programs, started by a person


def test_a_hook_without_a_client_exits_on_a_terminal(runner: CommandRunner) -> None:
    status, shown = runner.typed("hook")
    assert status == 2
    assert "Missing argument 'CLIENT'" in shown


def test_the_server_on_a_terminal_names_the_setup_command(runner: CommandRunner) -> None:
    status, shown = runner.typed_at("Press Ctrl-C to stop.", lambda: "\x03", "mcp", ".")
    # Shells report 130 for both. Python ends by the signal itself if it came while a library ran `exec` of a text.
    assert status in {130, -signal.SIGINT}
    assert "Run `cas setup` to connect one" in shown
    assert "Traceback" not in shown


def test_ctrl_c_ends_a_server_that_waits_for_input(runner: CommandRunner) -> None:
    call = tool_call(1, "write_file", path="a", content="one\n")
    call["params"]["_meta"] = NEWER_VERSION_META
    status, shown = on_terminal(
        ["mcp", "."],
        Answer(after="Press Ctrl-C to stop.", typed=lambda: f"{json.dumps(call)}\n"),
        Answer(after='"result":', typed=lambda: "\x03"),
        folder=runner.folder,
    )
    assert status == 130
    assert "Traceback" not in shown
    assert runner.bytes("a") == b"one\n"
    assert not [*runner.folder.glob(".cas/**/*-wal")]  # a closed index leaves no WAL file


def test_views_for_people_escape_control_characters_in_a_pipe(runner: CommandRunner) -> None:
    runner.write("a", b"one\n\x1b[2Jwipe\n\xe2\x80\xae turned\n")
    runner.write("a", b"one\n\x1b[2Jwiped\n\xe2\x80\xae turned\n")
    for words in (("blame", "a"), ("show", "-y", "2"), ("diff", "-y", "a@1", "a@2"), ("log", "-p", "-y")):
        ran = runner.cas(*words)
        assert ran.status == 0, ran
        assert b"\x1b" not in ran.out, words
        assert "\u202e" not in ran.out.decode(), words
    # Output for programs stays exact.
    assert b"\x1b[2Jwiped" in runner.cas("show", "2").out
    assert runner.cas("cat", "a").out == (runner.folder / "a").read_bytes()
