"""Exit statuses of `cas`: each with one or two lines on stderr, and no traceback without `--debug`."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from cli.shell.main import COMMANDS, SECTIONS, main
from objstore import MAX_TEXT, CallInfo, Status
from tests.support.command_runner import PATIENCE, PROGRAM, CommandResult, CommandRunner, cas, environment
from tests.support.sampling import sampled_product

# ---- 2: usage


@pytest.mark.parametrize(
    "words",
    [
        ["unknown"],
        ["status", "extra"],
        ["status", "--unknown"],
        ["--color", "sometimes", "status"],
        ["-C", "no such folder", "status"],
        ["accept"],
        ["reject", "--all", "1"],
        ["reject", "--all", "--file", "a"],
        ["reject", "--all", "--conversation", "conv_one"],
        ["reject", "1", "--on-external", "guess"],
        ["accept", "1", "--cascade"],
        ["blame"],
        ["log", "-n", "0"],
        ["log", "-n", "99999999999999999999"],
        ["log", "-99999999999999999999"],
        ["log", "--status", "unknown"],
        ["cat"],
        ["accept", "--file", "a", "--file", "b"],
        ["reject", "--file=a", "--conversation", "c", "--file", "a"],
        ["reset", "--conversation", "a", "--conversation", "b"],
        ["reject", "1", "-m", "first", "--reason", "second"],
        ["log", "--status", "pending", "--status", "accepted"],
        ["log", "-n", "1", "-3"],
        ["review", "--file", "a", "--file", "b"],
        ["export", "--patch", "--conversation", "a", "--conversation", "b"],
    ],
)
def test_a_wrong_command_line_is_status_2(runner: CommandRunner, words: list[str]) -> None:
    ran = runner.cas(*words)
    assert (ran.status, ran.out) == (2, b"")
    first, *rest = ran.said.splitlines()
    assert first.startswith("cas: ")
    assert len(rest) <= 1


@pytest.mark.parametrize(
    "words", ["pin remove x", "snapshot show x", "snapshot diff x", "log -n x", "watch --quiet-for x"]
)
def test_an_invalid_number_is_named(runner: CommandRunner, words: str) -> None:
    assert runner.cas(*words.split()).said.splitlines()[0].endswith(": 'x' is not a valid number.")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("log -n 0", "0 is too small: the least is 1."),
        ("undo --decision 0", "0 is too small: the least is 1."),
        (f"log --turn {2**63}", f"{2**63} is too large: the most is {2**63 - 1}."),
        ("web --port 65536", "65536 is too large: the most is 65535."),
    ],
)
def test_a_number_out_of_bounds_is_refused_with_the_bound(runner: CommandRunner, words: str, reason: str) -> None:
    assert runner.cas(*words.split()).said.splitlines()[0].endswith(f": {reason}")


def test_help_shows_no_bounds_that_only_the_format_sets(runner: CommandRunner) -> None:
    assert str(2**63 - 1) not in "".join(runner.done("help", name).text for name in ("log", "undo", "comment"))
    assert "[1 to 65535]" in " ".join(runner.done("help", "web").text.split())


@pytest.mark.parametrize(
    ("name", "otherwise"),
    [("snapshot", "create"), ("remote", "list"), ("config", "list"), ("pin", "list")],
)
def test_help_of_a_command_with_subcommands_names_the_default(runner: CommandRunner, name: str, otherwise: str) -> None:
    said = " ".join(runner.done("help", name).text.split())
    assert f"`cas {name}` alone, or with options only, is `cas {name} {otherwise}`." in said


def test_a_second_value_of_an_option_is_refused(runner: CommandRunner) -> None:
    runner.write("a", b"x\n", conversation="c1")
    runner.write("b", b"x\n", conversation="c2")
    message = "cas: '--file' takes one value, not 2.\nTry `cas reject --help`.\n"
    assert runner.cas("reject", "--file", "a", "--file", "b").said == message
    message = "cas: '-m' / '--reason' takes one value, not 3.\nTry `cas reject --help`.\n"
    assert runner.cas("reject", "1", "-m", "x", "--reason=y", "-mz").said == message
    assert set(runner.statuses().values()) == {Status.PENDING}
    # Options of display may be repeated, as they are after an alias.
    assert (
        runner.done("--color", "always", "log", "--color", "never", "--color", "never").text == runner.done("log").text
    )
    assert runner.cas("reject", "--file", "a", "--file", "b", "--help").status == 0


def test_a_second_folder_is_refused_before_and_after_the_command(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"x\n")
    (runner.folder / "sub").mkdir()
    two_folders = ["-C", str(tmp_path), f"-C{runner.folder}"]
    for words, command in (
        ([*two_folders, "reject", "1"], ""),
        (["reject", "1", *two_folders], " reject"),
        (["pin", *two_folders, "add", "1"], " pin"),
    ):
        message = f"cas: '-C' takes one value, not 2.\nTry `cas{command} --help`.\n"
        assert cas(*words, folder=tmp_path) == CommandResult(status=2, out=b"", err=message.encode())
    assert runner.statuses() == {"1:0": Status.PENDING}
    # A folder after the command is relative to the one before it, as it is after an alias.
    assert cas("-C", str(runner.folder), "cat", "-C", "sub", "../a", folder=tmp_path).out == b"x\n"


def test_without_a_command_the_status_is_shown_or_outside_a_workspace_the_help(
    runner: CommandRunner, tmp_path: Path
) -> None:
    assert runner.done().text == runner.done("status").text
    outside = cas(folder=tmp_path)
    assert (outside.status, outside.said) == (0, "")
    assert outside.text == runner.done("--help").text


def test_mcpdiff_names_cas_and_goes_on(runner: CommandRunner) -> None:
    runner.write("a", b"one\n", conversation="conv_1")
    runner.edit("a", b"one", b"two")
    with runner.workspace() as workspace:
        edit_id = workspace.history.edit(2).id.hex()
    for words in (
        ["status"],
        ["status", "--conv", "conv_1", "--file", "a", "--status", "pending"],
        ["show", edit_id],
        ["show", "conv_1"],
        ["accept", edit_id],
        ["accept", "--conv", "conv_1"],
        ["reject", edit_id],
        ["reject", "--conv", "conv_1"],
    ):
        ran = runner.cas("mcpdiff", *words)
        assert (ran.status, ran.said) == (0, f"mcpdiff is `cas` here: cas {' '.join(words)}\n")
        assert words[0] in {"accept", "reject"} or ran.out == runner.done(*words).out
    assert not (runner.folder / "a").exists()
    assert runner.cas("mcpdiff").out == runner.done("status").out
    assert runner.cas("mcpdiff", "--help").out == runner.done("help", "mcpdiff").out == runner.done("--help").out
    refused = runner.cas("mcpdiff", "cleanup")
    assert (refused.status, refused.said.splitlines()[0]) == (2, "mcpdiff is `cas` here: cas cleanup")
    assert "`cas gc` expires old history" in refused.said
    assert "\x1b" not in runner.cas("mcpdiff", "show", "\x1b[31m").said


def test_help_is_a_command(runner: CommandRunner) -> None:
    assert runner.done("help").text == runner.done("--help").text
    assert runner.done("help", "log").text == runner.done("log", "--help").text


def test_help_never_truncates_the_sentence_of_a_command(runner: CommandRunner) -> None:
    assert "...\n" not in runner.done("--help").text.partition("[ARGS]...\n")[2]


def test_choices_are_listed_on_one_line(runner: CommandRunner) -> None:
    assert "Choose from: bash, zsh, fish" in runner.cas("completion").said


def test_show_without_a_name_shows_the_newest_edit(runner: CommandRunner) -> None:
    assert runner.cas("show").said == "cas: Nothing is recorded yet.\n"
    runner.write("a", b"1\n")
    runner.write("a", b"2\n")
    assert runner.done("show").out == runner.done("show", "2").out


def test_help_lists_the_commands_of_its_sections(runner: CommandRunner, capsys: pytest.CaptureFixture[str]) -> None:
    text = runner.done("--help").text
    listed = {name for names in SECTIONS.values() for name in names}
    for name in COMMANDS:
        assert (f"\n  {name} " in text) is (name in listed)
        assert main([name, "--help"]) == 0
        assert f"Usage: cas {name}" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--since", "--until"])
def test_an_invalid_time_is_refused_with_its_option(runner: CommandRunner, option: str) -> None:
    ran = runner.cas("log", option, "garbage")
    assert ran.status == 2
    assert ran.said.startswith(f"cas: Invalid value for '{option}': 'garbage' is not a time: use 2h, ")
    assert ran.said.endswith("\nTry `cas log --help`.\n")


# ---- 1: refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "99"], "No edit, hunk or conversation is named '99' here."),
        (["show", "1:9"], "No edit, hunk or conversation is named '1:9' here."),
        (["accept", "1:7"], "No hunk is named '1:7' here."),
        (["reject", "99"], "No edit is named '99' here."),
        (["reject", "--conversation", "unknown"], "No conversation is named 'unknown' here."),
        (["reject", "--file", "unknown"], "No file that an agent edited is named 'unknown' here."),
        (["log", "--conversation", "unknown"], "No conversation is named 'unknown' here."),
        (["cat", "a@99"], "No state is named 'a@99' here."),
        (["cat", "../outside"], "Path is outside the workspace: "),
        (["cat", ".cas/index"], "Path is reserved for "),
    ],
)
def test_an_unknown_name_is_status_1(runner: CommandRunner, words: list[str], message: str) -> None:
    runner.write("a", b"x\n")
    ran = runner.cas(*words)
    assert (ran.status, ran.out) == (1, b"")
    assert ran.said.startswith(f"cas: {message}")
    assert ran.said.count("\n") <= 2


def test_a_decision_about_a_file_replaced_by_a_symlink_is_refused_with_advice(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    runner.write("k", b"k\n")
    runner.delete("a")
    (runner.folder / "a").symlink_to("k")
    for words in (["reject", "3"], ["reject", "3", "--on-external", "discard"], ["reject", "3", "--dry-run"]):
        ran = runner.cas(*words)
        assert (ran.status, ran.out) == (1, b"")
        assert ran.said == (
            "cas: a is now a symbolic link that no edit recorded; links are not followed.\n"
            "`cas record` records the link, or remove it, and run the command again; or leave out a.\n"
        )
    assert (runner.folder / "a").is_symlink()
    (runner.folder / "a").unlink()
    runner.done("reject", "3")
    assert (runner.folder / "a").read_bytes() == b"x\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stauts"], "cas: No such command 'stauts'. Did you mean stats or status?\nTry `cas --help`.\n"),
        (["show", "cnv_one"], "Did you mean conv_one?\n"),
        (["log", "--conversation", "con_one"], "Did you mean conv_one?\n"),
        (["show", "99"], "The newest edit is 1.\n"),
        (["cat", "src/greet.py@99"], "The newest edit is 1.\n"),
        (["cat", "gret.py@1"], "Edit 1 changed src/greet.py: did you mean src/greet.py@1?\n"),
        (["cat", "gret.py@2h"], "Did you mean src/greet.py?\n"),
        (["cat", "src/greet.py@99^"], "The newest edit is 1.\n"),
        (["accept", "1:9"], "`cas show 1` shows its hunks.\n"),
        (["accept", "9:1"], "The newest edit is 1.\n"),
        (["show", "50..60"], "The newest edit is 1.\n"),
        (["cat", "src/greet.py@latest"], "The newest edit is 1.\n"),
        (
            ["cat", "src/greet.py@x"],
            "After @ comes an edit (12, or 12^ for before it), or a time (2h, 2026-11-20) since its first record.\n",
        ),
        (["show", "src/greet.py"], "It is a file: `cas log src/greet.py` lists its edits.\n"),
        (["snapshot", "show", "9"], "`cas snapshot list` lists them.\n"),
        (["pin", "remove", "9"], "`cas pin list` lists them.\n"),
        (["diff", "src/gret.py"], "Did you mean src/greet.py?\n"),
        (["blame", "src/grete.py"], "Did you mean src/greet.py?\n"),
        (["log", "--file", "greet.py"], "Did you mean src/greet.py?\n"),
    ],
)
def test_a_mistyped_name_is_answered_with_similar_names(runner: CommandRunner, words: list[str], message: str) -> None:
    runner.write("src/greet.py", b"x\n")
    ran = runner.cas(*words)
    assert ran.said.endswith(message)
    assert ran.said.count("\n") == 2


@pytest.mark.parametrize("when", ["1h", "yesterday", "2020-11-20"])
def test_a_time_before_the_first_record_of_a_path_is_refused_with_the_syntax(runner: CommandRunner, when: str) -> None:
    runner.write("a", b"x\n")
    runner.move("a", "b")
    runner.edit("b", b"x", b"y")
    for command in ("cat", "restore"):
        lines = runner.cas(command, f"b@{when}").said.splitlines()
        assert lines[0] == f"cas: No state is named 'b@{when}' here."
        assert lines[1].endswith("or a time (2h, 2026-11-20) since its first record.")


def test_suggested_paths_are_relative_to_the_current_folder(runner: CommandRunner) -> None:
    runner.write("src/greet.py", b"x\n")
    runner.write("README", b"x\n")
    below = runner.folder / "src"
    assert cas("cat", "grete.py", folder=below).said.endswith("Did you mean greet.py?\n")
    message = cas("cat", "greet.py@2", folder=below).said
    assert message.endswith("Edit 2 changed ../README: did you mean ../README@2?\n")
    assert cas("cat", "../README@2", folder=below).out == b"x\n"


UNDECODED = "a\udcffb"
"""An argument that is not UTF-8, as Python decodes it."""


@pytest.mark.parametrize(
    "words",
    [
        *("blame", "log", "log --follow", "log --file", "diff", "reject", "accept", "reset", "amend", "record", "show"),
        *("pin add", "log --conversation", "accept --conversation", "reject --file", "export --patch"),
        *("export --patch --file", "export --patch --conversation", "cat", "restore", "verify", "ls", "purge"),
        *("snapshot create", "snapshot restore 1"),
    ],
)
def test_a_name_that_is_not_utf_8_is_refused_as_unknown(runner: CommandRunner, words: str) -> None:
    runner.write("src/greet.py", b"x\n")
    runner.done("snapshot")
    ran = runner.cas(*words.split(), UNDECODED)
    assert ran.status == 1
    assert ran.said.startswith("cas: ")
    assert r"a\xffb" in ran.said.splitlines()[0]
    assert "internal error" not in ran.said
    assert ran.said.count("\n") <= 2


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (UNDECODED, r"'a\xffb' is not UTF-8."),
        ("x" * (MAX_TEXT + 1), f"It has {MAX_TEXT + 1} characters; a record holds at most {MAX_TEXT}."),
    ],
    ids=["not UTF-8", "too long"],
)
def test_a_text_that_a_record_cannot_hold_is_refused(runner: CommandRunner, text: str, refusal: str) -> None:
    runner.write("a", b"x\n")
    (runner.folder / "a").write_bytes(b"y\n")
    for words in (
        *(["record", "--agent"], ["record", "--note"], ["record", "--conversation"], ["watch", "--agent"]),
        *(["snapshot", "-m"], ["pin", "add", "1", "--title"], ["reject", "1", "--reason"]),
    ):
        ran = runner.cas(*words, text)
        assert (ran.status, ran.out) == (2, b"")
        assert words[-1] in ran.said
        assert refusal in " ".join(ran.said.split())
    (runner.folder / "a").write_bytes(b"x\n")
    runner.done("reject", "1", "--reason", "r" * MAX_TEXT)


def test_a_failing_suggestion_does_not_hide_the_error(runner: CommandRunner) -> None:
    broken = (
        "import sys, cli.search.did_you_mean as it; it.name_meant = None; "
        "from cli.shell.main import main; sys.exit(main())"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", broken, "show", "nothing"],
        cwd=runner.folder,
        env=environment({}),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (1, b"cas: No edit, hunk or conversation is named 'nothing' here.\n")


def test_an_ambiguous_name_is_status_1_and_lists_the_matches(runner: CommandRunner) -> None:
    runner.write("a", b"x\n", conversation="conv_one")
    runner.write("a", b"y\n", conversation="conv_other")
    ran = runner.cas("show", "conv_o")
    assert (ran.status, ran.out) == (1, b"")
    assert "conv_one" in ran.said
    assert "conv_other" in ran.said


# ---- 10: no workspace


def test_no_workspace_is_status_10(tmp_path: Path) -> None:
    for words in (["status"], ["log"], ["reject", "1"], ["undo"], ["cat", "a"], ["diff"]):
        ran = cas(*words, folder=tmp_path)
        assert (ran.status, ran.out) == (10, b"")
        message = f"cas: No workspace at {tmp_path} or above it. Run `cas init` in the folder that you want recorded.\n"
        assert ran.said == message


def test_the_workspace_is_found_upward(runner: CommandRunner) -> None:
    below = runner.folder / "sub" / "sub"
    below.mkdir(parents=True)
    assert cas("status", folder=below).text == runner.cas("status").text


def test_the_workspace_can_be_given_by_option_or_variable(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("sub/a", b"x\n")
    expected = runner.cas("status").text
    root = str(runner.folder)
    assert cas("-C", root, "status", folder=tmp_path).text == expected
    assert cas("status", "-C", root, folder=tmp_path).text == expected
    assert cas("-C", str(runner.folder / "sub"), "cat", "a", folder=tmp_path).out == b"x\n"
    assert cas("status", folder=tmp_path, settings={"CAS_WORKSPACE": root}).text == expected
    assert cas("cat", "sub/a", folder=tmp_path, settings={"CAS_WORKSPACE": root}).out == b"x\n"
    elsewhere = {"CAS_WORKSPACE": str(tmp_path / "nowhere")}
    assert cas("-C", root, "status", folder=tmp_path, settings=elsewhere).text == expected
    not_found = cas("log", folder=tmp_path, settings=elsewhere)
    assert (not_found.status, not_found.said.splitlines()[1]) == (10, "CAS_WORKSPACE names that folder.")
    assert "CAS_WORKSPACE" not in cas("-C", str(tmp_path), "log", folder=tmp_path, settings=elsewhere).said


@pytest.mark.parametrize(
    ("words", "named"),
    sampled_product(
        [["status"], ["log"], ["reject", "1"], ["record"], ["fsck"], ["config", "unset", "gc.background"]],
        ["mistyped/sub", "a"],
    ),
)
def test_no_workspace_is_searched_above_a_missing_folder_that_the_variable_names(
    runner: CommandRunner, words: list[str], named: str
) -> None:
    runner.write("a", b"x\n")
    (runner.folder / "a").write_bytes(b"y\n")
    missing = runner.folder / named
    message = f"cas: No workspace at {missing}: this folder does not exist.\nCAS_WORKSPACE names that folder.\n"
    for folder in (runner.folder, runner.folder.parent):
        ran = cas(*words, folder=folder, settings={"CAS_WORKSPACE": str(missing)})
        assert ran == CommandResult(status=10, out=b"", err=message.encode())
    assert runner.statuses() == {"1:0": Status.PENDING}
    completion = {"_CAS_COMPLETE": "bash_complete", "COMP_WORDS": "cas show "}
    listed = cas(folder=runner.folder.parent, settings=completion | {"CAS_WORKSPACE": str(missing)})
    assert (listed.status, listed.out) == (0, b"\n")


RECORDING_HINT = "To record an agent's edits, run `cas setup CLIENT`; for yours, `cas watch` or `cas record`.\n"


def test_init_creates_a_workspace_once(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    message = f"{folder} is a workspace; edits in it can be recorded.\n"
    done = CommandResult(status=0, out=f"{message}{RECORDING_HINT}".encode(), err=b"")
    assert cas("init", folder=folder) == done
    assert cas("init", str(folder), folder=tmp_path) == done
    assert cas("-C", str(folder), "init", folder=tmp_path) == done
    CommandRunner(folder).write("a", b"x\n")
    assert cas("init", folder=folder).text == message
    (folder / "a").unlink()
    assert [path.name for path in folder.iterdir()] == [".cas"]
    assert cas("init", "missing", folder=tmp_path).status == 2


def test_init_completes_an_empty_store_or_says_what_is_in_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    runner = CommandRunner(folder)
    runner.write("a", b"x\n")
    (folder / ".cas" / "segments").rename(tmp_path / "segments")
    ran = cas("init", folder=folder)
    refusal = f"cas: No store was created: {folder}/.cas exists and"
    message = (
        f"{refusal} holds no store. Put its segments back if they were moved away, or move {folder}/.cas away (mv).\n"
    )
    assert (ran.status, ran.said) == (1, message)
    (folder / ".cas").rename(tmp_path / "aside")
    (folder / ".cas").write_bytes(b"mine\n")
    ran = cas("init", folder=folder)
    assert (ran.status, ran.said) == (1, f"{refusal} is not a folder. Move it away (mv).\n")
    (folder / ".cas").unlink()
    (folder / ".cas").mkdir()
    assert cas("status", folder=folder).status == 10
    assert cas("init", folder=folder).status == 0
    assert cas("status", folder=folder).status == 0


def test_init_inside_a_workspace_names_the_outer_one(tmp_path: Path) -> None:
    inner = tmp_path / "inner" / "most"
    inner.mkdir(parents=True)
    assert cas("init", folder=tmp_path).status == 0
    assert cas("init", folder=inner).text == (
        f"{inner} is a workspace; edits in it can be recorded.\n{RECORDING_HINT}"
        f"It is inside another workspace, {tmp_path}; commands run here use the inner one.\n"
    )


# ---- 11: locked


def test_a_store_that_stays_locked_is_status_11(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    # `cas` waits half a minute for the lock; this shortens it.
    with_short_wait = (
        "import sys, objstore.storage.transaction.journal as journal\n"
        "assert journal.WAIT_SECONDS; journal.WAIT_SECONDS = 0.2; "
        "from cli.shell.main import main; sys.exit(main())"
    )
    with runner.workspace() as workspace, workspace.call(CallInfo(tool="slow")):
        ran = subprocess.run(
            [sys.executable, "-P", "-c", with_short_wait, "reject", "1"],
            cwd=runner.folder,
            env=environment({}),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert runner.cas("status").status == 0
    assert (ran.returncode, ran.stdout) == (11, b"")
    assert ran.stderr.startswith(b"cas: Another process has been writing for ")


def test_reading_commands_do_not_wait_for_a_writer(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    with runner.workspace() as workspace, workspace.call(CallInfo(tool="slow")):
        (runner.folder / ".cas" / "applied").unlink()  # as if the writer was in the middle of its files
        for words in (("status",), ("log",), ("cat", "a@1")):
            assert runner.cas(*words).status == 0, words
        assert runner.cas(_CAS_COMPLETE="bash_complete", COMP_WORDS="cas show ").text.startswith("plain,1\n")


# ---- 130: interrupted


def test_an_interrupt_is_status_130_and_prints_nothing(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    with (
        runner.workspace() as workspace,
        workspace.call(CallInfo(tool="slow")),
        subprocess.Popen(
            [*PROGRAM, "reject", "1"],
            cwd=runner.folder,
            env=environment({}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        lock = os.fspath(runner.folder / ".cas")
        while not any(lock in target for target in open_files(process.pid)):
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    # Python ends by the signal itself if it was executing source text, as it does for each dataclass.
    # A shell reports both as 130.
    assert process.returncode in {130, -signal.SIGINT}
    assert (out, err) == (b"", b"")


def open_files(pid: int) -> list[str]:
    """Return the paths of the files that a process has open."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except FileNotFoundError:  # closed meanwhile
            continue
    return found


# ---- internal errors and damage


def test_an_internal_error_is_one_line_and_debug_shows_the_traceback(runner: CommandRunner) -> None:
    broken = (
        "import sys, objstore.review.status as status; status.report = None; "
        "from cli.shell.main import main; sys.exit(main())"
    )

    def run(*words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-P", "-c", broken, *words],
            cwd=runner.folder,
            env=environment({}),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )

    plain = run("status")
    assert (plain.returncode, plain.stdout) == (1, b"")
    assert plain.stderr.startswith(b"cas: internal error: TypeError: ")
    assert plain.stderr.count(b"\n") == 1
    for words in (("status", "--debug"), ("--debug", "status")):
        assert run(*words).stderr.startswith(b"Traceback")


def test_damage_is_status_1(runner: CommandRunner) -> None:
    runner.write("a", b"a line of some length\n" * 20)
    for segment in (runner.folder / ".cas").rglob("*"):
        if segment.is_file() and segment.stat().st_size > 100 and segment.suffix not in {".db", ".sqlite"}:
            content = bytearray(segment.read_bytes())
            content[len(content) // 2] ^= 1
            segment.write_bytes(content)
    ran = runner.cas("cat", "a@1")
    assert ran.status == 1
    assert ran.out == b""
    assert ran.said.startswith("cas: ")
    assert "internal error" not in ran.said


# ---- the server


def test_mcp_replaces_the_process_with_the_server(runner: CommandRunner) -> None:
    (runner.folder / "mcptools").mkdir()
    (runner.folder / "mcptools" / "__main__.py").write_text("raise SystemExit('the agent wrote this')")
    (runner.folder / "json.py").write_text("raise SystemExit('the agent wrote this')")
    ran = runner.cas("mcp", "--", "--help")
    assert ran.status == 0
    assert b"the agent wrote this" not in ran.out + ran.err
    assert b"usage" in ran.out.lower()


# ---- a deleted current folder, and interrupts during the start


RUN_IN_DELETED_FOLDER: Final = """
import os, sys
os.rmdir(os.getcwd())
sys.argv[0] = "cas"
sys.path.insert(0, os.environ["PYTHONPATH"])
from cli.shell.entry import main
sys.exit(main())
"""


def run_in_deleted_folder(runner: CommandRunner, *words: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    folder = runner.folder / "gone"
    folder.mkdir()
    ran = subprocess.run(
        [sys.executable, "-P", "-c", RUN_IN_DELETED_FOLDER, *words],
        cwd=folder,
        env=environment({}),
        input=stdin,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize("words", ["status", "log", "doctor", "record", "init"])
def test_a_deleted_current_folder_is_named_as_the_cause(runner: CommandRunner, words: str) -> None:
    message = b"cas: The current folder no longer exists. Change to another one, or pass -C DIR.\n"
    assert run_in_deleted_folder(runner, *words.split()) == (1, b"", message)


def test_hooks_record_edits_from_a_deleted_current_folder(runner: CommandRunner) -> None:
    runner.done("record")
    event = {"session_id": "s1", "tool_name": "Bash", "tool_use_id": "t1", "cwd": str(runner.folder)}
    before = json.dumps(event | {"hook_event_name": "PreToolUse"}).encode()
    assert run_in_deleted_folder(runner, "hook", "claude-code", stdin=before) == (0, b"", b"")
    (runner.folder / "new").write_text("1\n")
    after = json.dumps(event | {"hook_event_name": "PostToolUse"}).encode()
    assert run_in_deleted_folder(runner, "hook", "claude-code", stdin=after) == (0, b"", b"")
    assert [edit["conversation_id"] for edit in runner.done("log", "--json").lines()] == ["s1"]


@pytest.mark.parametrize("words", ["log", "status", "reject 1"])
def test_an_interrupt_during_the_start_prints_no_traceback(runner: CommandRunner, words: str) -> None:
    """Ctrl-C may come while modules are being imported, before the command has begun."""
    program = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupting:
    def find_spec(self, name, *_):
        if name == "objstore":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["cas", *{words.split()!r}]
from cli.shell.entry import main
sys.exit(main())
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=runner.folder, env=environment({}), capture_output=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (130, b"")


@pytest.mark.parametrize("words", [["mcp", "nosuch"], ["mcp", "."], ["mcp", "--", "--nosuch"]])
def test_a_server_that_cannot_start_says_why_in_two_lines(tmp_path: Path, words: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    ran = subprocess.run(
        ["sh", "-c", 'rmdir "$0" && exec "$@"', str(gone), *PROGRAM, *words],
        cwd=gone,
        env=environment({}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("editledger: error: ")
    assert len(ran.stderr.splitlines()) == 2
