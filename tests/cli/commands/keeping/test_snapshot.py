"""`cas snapshot` and `cas record`, run as a user runs them."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from objstore import blob_id
from tests.support.command_runner import (
    PATIENCE,
    PROGRAM,
    CommandRunner,
    cas,
    cas_unprivileged,
    environment,
    with_progress,
)
from tests.support.damaged_stores import lose


def write_file(runner: CommandRunner, path: str, content: bytes = b"x\n") -> Path:
    """Write a file as an editor would."""
    file = runner.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def record_one_of_three_files(runner: CommandRunner) -> None:
    runner.write("recorded", b"1\n")
    write_file(runner, "a", b"a\n")
    write_file(runner, "src/b", b"b\n")


@pytest.fixture
def runner_with_files(runner: CommandRunner) -> CommandRunner:
    """Return a workspace with three files, one of them recorded by a tool."""
    return runner.prepared(record_one_of_three_files)


# ---- progress


def test_progress_of_the_first_scan_counts_only_files_that_it_covers(runner_with_files: CommandRunner) -> None:
    """If ignored files counted, the bar would stop before its end."""
    (runner_with_files.folder / ".casignore").write_text("*.log\n")
    for number in range(40):
        (runner_with_files.folder / f"{number}.log").write_text("")
    _, shown = with_progress("record", folder=runner_with_files.folder, patience=0)
    assert b" of 4 files" in shown


def test_a_step_without_a_count_shows_the_elapsed_seconds(runner_with_files: CommandRunner) -> None:
    write_file(runner_with_files, "large", os.urandom(60 << 20))  # large enough to take long on any processor
    _, shown = with_progress("record", folder=runner_with_files.folder, patience=0)
    assert re.search(rb" \d+ s so far", shown)
    assert shown.endswith(b"\r\x1b[K")


THREAD_COUNTS: Final = """
import os, pty, sys, threading
from contextlib import redirect_stderr
from cli.screen.progress import DECIDING, LOOKING, showing_progress
from objstore import CallInfo, Workspace

counts = []
_, terminal = pty.openpty()
with os.fdopen(terminal, "w") as screen, redirect_stderr(screen), Workspace.open(sys.argv[1]) as workspace:
    with showing_progress(workspace, LOOKING):
        counts.append(threading.active_count())
        workspace.record_changes(CallInfo(tool="record"))
        counts.append(threading.active_count())
    with showing_progress(workspace, LOOKING):
        workspace.record_changes(CallInfo(tool="record"))  # nothing has changed: no progress is shown
        counts.append(threading.active_count())
    with showing_progress(workspace, DECIDING):
        counts.append(threading.active_count())
    counts.append(threading.active_count())
print(*counts)
"""
"""A program that prints its thread count before and after a scan with changes, after one without, and in a decision."""


def test_a_scan_starts_no_progress_thread_before_it_shows_progress(runner_with_files: CommandRunner) -> None:
    """A process with threads can't share its scan with a child. The test process itself may have threads."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", THREAD_COUNTS, str(runner_with_files.folder)],
        env=environment({}),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, b"", b"1 2 1 2 1\n")


def test_restoring_a_snapshot_shows_progress(runner_with_files: CommandRunner) -> None:
    runner_with_files.done("snapshot", "create")
    for file in ("a", "src/b"):
        write_file(runner_with_files, file, b"otherwise\n")
    _, shown = with_progress("snapshot", "restore", "1", folder=runner_with_files.folder, patience=0)
    assert b"recording [" in shown
    assert b"writing [########################] 2 of 2 paths" in shown


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["text", "json"])
def test_record_of_an_unknown_path_is_an_error(runner_with_files: CommandRunner, words: list[str]) -> None:
    runner_with_files.done("record")
    write_file(runner_with_files, "src/new")
    ran = runner_with_files.cas("record", "src/new", "src/nwe", *words)
    assert (ran.status, ran.said) == (
        1,
        "cas: No recorded file is named 'src/nwe' here.\nDid you mean src/new?\n",
    )
    assert b"src/new" in ran.out
    assert runner_with_files.cas("record", "*ew").status == 1
    (runner_with_files.folder / "src/new").unlink()
    assert "src/new" in runner_with_files.done("record", "src/new").text
    assert runner_with_files.done("record", "src/new").text == "Nothing changed.\n"


# ---- snapshots


@pytest.mark.parametrize(
    "words", [["record"], ["snapshot", "create"], ["snapshot", "diff", "1"], ["setup", "cursor"]], ids=" ".join
)
def test_a_slow_scan_shows_progress(runner_with_files: CommandRunner, words: list[str]) -> None:
    runner_with_files.done("snapshot", "create")
    write_file(runner_with_files, "src/c")
    _, shown = with_progress(*words, folder=runner_with_files.folder, patience=0)
    assert b"\r\x1b[Klooking [" in shown
    assert re.search(rb"\[#{24}\] (\d+) of \1 files", shown)
    assert shown.endswith(b"\r\x1b[K")  # the progress line is erased at the end
    assert with_progress(*words, folder=runner_with_files.folder, patience=3600)[1] == b""


def test_snapshot_without_a_subcommand_creates_one(runner_with_files: CommandRunner) -> None:
    assert runner_with_files.done("snapshot").text == "Snapshot 1 of the workspace: 3 files.\n"
    assert runner_with_files.done("snapshot", "--json").json() | {"id": "", "timestamp": "", "root": "", "who": ""} == {
        "number": 2,
        "id": "",
        "timestamp": "",
        "path": None,
        "root": "",
        "who": "",
        "title": "",
        "files": 3,
        "same_as_before": True,
        "not_covered": [],
    }


def test_a_folder_is_named_relative_to_the_current_folder(runner_with_files: CommandRunner) -> None:
    ran = cas("snapshot", "create", ".", "-m", "here", "--json", folder=runner_with_files.folder / "src")
    assert (ran.status, ran.json()["path"], ran.json()["title"]) == (0, "src", "here")
    ran = cas("snapshot", "create", "..", "--json", folder=runner_with_files.folder / "src")
    assert (ran.status, ran.json()["path"]) == (0, None)
    assert runner_with_files.cas("snapshot", "create", "nothing").said == "cas: File not found: nothing\n"
    assert runner_with_files.cas("snapshot", "create", "/").status == 1


def test_a_snapshot_of_a_file_is_refused(runner_with_files: CommandRunner) -> None:
    ran = runner_with_files.cas("snapshot", "create", "src/b")
    assert (ran.status, ran.out) == (1, b"")
    assert ran.said == "cas: Not a usable path (not a directory; a snapshot is of a folder): 'src/b'\n"


def test_show_lists_the_entries_of_a_snapshot(runner_with_files: CommandRunner) -> None:
    (runner_with_files.folder / "link").symlink_to("a")
    write_file(runner_with_files, "node_modules/x")
    runner_with_files.done("snapshot")
    shown = runner_with_files.done("snapshot", "show", "1", "--json").json()
    assert [(entry["path"], entry["kind"], entry["mode"]) for entry in shown["entries"]] == [
        ("a", "file", 0o644),
        ("link", "symlink", None),
        ("node_modules", "left-out", None),
        ("recorded", "file", 0o644),
        ("src/b", "file", 0o644),
    ]
    blob = next(entry["blob"] for entry in shown["entries"] if entry["path"] == "src/b")
    assert runner_with_files.done("cat", blob).out == b"b\n"


def test_diff_shows_changes_as_letters_json_and_patches(runner_with_files: CommandRunner) -> None:
    runner_with_files.done("snapshot")
    write_file(runner_with_files, "a", b"a\nmore\n")
    write_file(runner_with_files, "new")
    (runner_with_files.folder / "src/b").unlink()
    (runner_with_files.folder / "src/b").symlink_to("a")
    (runner_with_files.folder / "recorded").unlink()
    assert runner_with_files.done("snapshot", "diff", "1").text == "M  a\nA  new\nD  recorded\nT  src/b\n"
    changes = runner_with_files.done("snapshot", "diff", "1", "--json").json()["changes"]
    assert [change["path"] for change in changes] == ["a", "new", "recorded", "src/b"]
    assert changes[3]["after"]["kind"] == "symlink"
    patch = runner_with_files.done("snapshot", "diff", "1", "-p").text
    assert "+more\n" in patch
    assert "new file mode 100644" in patch
    assert "deleted file mode 100644" in patch
    runner_with_files.done("snapshot")
    assert runner_with_files.done("snapshot", "diff", "1", "2").text == "M  a\nA  new\nD  recorded\nT  src/b\n"


def test_patches_show_what_links_say_and_that_they_are_links(runner_with_files: CommandRunner) -> None:
    folder = runner_with_files.folder
    (folder / "link").symlink_to("a")
    (folder / "gone").symlink_to("nothing")
    runner_with_files.done("snapshot")
    (folder / "link").unlink()
    (folder / "link").symlink_to("src")
    (folder / "gone").unlink()
    (folder / "src/b").unlink()
    (folder / "src/b").symlink_to("../a")
    for until in ([], ["2"]):
        patch = runner_with_files.done("snapshot", "diff", "1", *until, "-p").text
        files = {part.partition("\n")[0]: part for part in patch.split("diff --git ")[1:]}
        assert "\n-a\n" in files["a/link b/link"]
        assert "\n+src\n" in files["a/link b/link"]
        assert "\ndeleted file mode 120000\n" in files["a/gone b/gone"]
        assert "\n-nothing\n" in files["a/gone b/gone"]
        assert "\ndeleted file mode 100644\n" in patch
        assert "\nnew file mode 120000\n" in files["a/src/b b/src/b"]
        assert "\n+../a\n" in files["a/src/b b/src/b"]
        runner_with_files.done("snapshot")


def test_snapshots_of_separate_folders_are_not_compared(runner_with_files: CommandRunner) -> None:
    write_file(runner_with_files, "we ird/b")
    runner_with_files.done("snapshot", "create", "src")
    runner_with_files.done("snapshot", "create", "we ird")
    for words in ([], ["src"], ["-p"], ["--json"]):
        ran = runner_with_files.cas("snapshot", "diff", "1", "2", *words)
        assert (ran.status, ran.out) == (1, b"")
        assert ran.said == "cas: Snapshots 1 and 2 cover nothing in common: one covers src, the other we ird.\n"


@pytest.mark.parametrize("other", ["0", "9" * 30, "9" * 5000])
def test_a_number_that_no_snapshot_can_have_is_refused(runner_with_files: CommandRunner, other: str) -> None:
    runner_with_files.done("snapshot")
    ran = runner_with_files.cas("snapshot", "diff", "1", other)
    assert ran.status in {1, 2}
    assert other in ran.said.replace("\n", "")
    assert "internal error" not in ran.said


def lose_a_snapshotted_file(runner: CommandRunner) -> str:
    """Take two snapshots, lose the blob of a file of the first, and return the error message."""
    lost = b"lost content that resembles nothing else"
    write_file(runner, "a", lost)
    runner.done("snapshot")
    write_file(runner, "a", b"a\n")
    write_file(runner, "src/b", b"b\nmore\n")
    runner.done("snapshot")
    lose(runner.folder, blob_id(lost))
    return f"No blob {blob_id(lost).hex()} in this store."


@pytest.mark.parametrize("until", [[], ["2"]], ids=["now", "another"])
def test_a_lost_blob_of_a_snapshot_is_not_replaced_by_the_current_file(
    runner_with_files: CommandRunner, until: list[str]
) -> None:
    message = lose_a_snapshotted_file(runner_with_files)
    write_file(runner_with_files, "a", b"current content\n")
    ran = runner_with_files.cas("snapshot", "diff", "1", *until, "-p")
    assert ran.status == 1
    assert ran.text.splitlines()[0] == f"No diff of a: {message}"
    assert ran.text.endswith("\n b\n+more\n")
    assert "current content" not in ran.text
    assert ran.said.splitlines()[0] == f"cas: {message}"


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["text", "json"])
def test_restore_leaves_a_file_with_a_lost_blob_and_restores_the_others(
    runner_with_files: CommandRunner, words: list[str]
) -> None:
    message = lose_a_snapshotted_file(runner_with_files)
    for options in (["--dry-run"], []):
        ran = runner_with_files.cas("snapshot", "restore", "1", *options, *words)
        assert (ran.status, ran.said.splitlines()[0]) == (1, f"cas: {message}")
        if words:
            found = ran.json()
            assert [[change["path"] for change in found[key]] for key in ("changes", "left")] == [
                ["src/b"],
                ["a"],
            ]
        else:
            assert ran.text.splitlines()[:2] == [
                "Would write src/b" if options else "Wrote src/b",
                "Left alone a: the store no longer has its content",
            ]
    assert (runner_with_files.bytes("src/b"), runner_with_files.bytes("a")) == (b"b\n", b"a\n")
    assert runner_with_files.cas("snapshot", "restore", "1", "src").status == 0


def test_a_file_that_changes_during_a_diff_is_not_shown_with_mixed_content(runner_with_files: CommandRunner) -> None:
    runner_with_files.done("snapshot")
    write_file(runner_with_files, "a", b"more\n" * (1 << 17))
    write_file(runner_with_files, "src/b", b"found\n")
    reader = subprocess.Popen(
        [*PROGRAM, "snapshot", "diff", "1", "-p"],
        cwd=runner_with_files.folder,
        env=environment({}),
        stdout=subprocess.PIPE,
    )
    with reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"diff --git a/a b/a\n"  # the process now waits until its output is read
        write_file(runner_with_files, "src/b", b"changed since\n")
        *_, last = reader.stdout
    assert last == b"No diff of src/b: File changed on disk since it was read; read it again: src/b\n"


def test_diff_of_paths_shows_only_their_changes(runner_with_files: CommandRunner) -> None:
    write_file(runner_with_files, "src/2", b"b\n")
    runner_with_files.done("snapshot")
    runner_with_files.done("snapshot", "create", "src")
    write_file(runner_with_files, "a", b"a\nmore\n")
    write_file(runner_with_files, "src/b", b"more\n")
    (runner_with_files.folder / "src/2").unlink()
    runner_with_files.done("snapshot")
    here = runner_with_files.folder / "src"
    for until in ([], ["3"]):
        assert runner_with_files.done("snapshot", "diff", "1", *until, "a").text == "M  a\n"
        assert runner_with_files.done("snapshot", "diff", "1", *until, "src").text == "D  src/2\nM  src/b\n"
        assert runner_with_files.done("snapshot", "diff", "1", *until, "recorded").text == ""
        assert cas("snapshot", "diff", "1", *until, "./2", "b", folder=here).text == "D  src/2\nM  src/b\n"
        assert cas("snapshot", "diff", "2", *until, ".", folder=here).text == "D  src/2\nM  src/b\n"
        ran = cas("snapshot", "diff", "1", *until, "bb", folder=here)
        assert (ran.status, ran.out) == (1, b"")
        assert ran.said == "cas: No file or folder of snapshot 1 is named 'bb' here.\nDid you mean b or 2?\n"
    assert runner_with_files.cas("snapshot", "diff", "2", "a").status == 1  # the snapshot covers only its folder


def test_a_restore_is_reverted_by_rejecting_its_conversation(runner_with_files: CommandRunner) -> None:
    runner_with_files.done("snapshot")
    write_file(runner_with_files, "a", b"other\n")
    write_file(runner_with_files, "new", b"new\n")
    done = runner_with_files.done("snapshot", "restore", "1", "--json").json()
    assert sorted(edit["operation"] for edit in done["edits"]) == ["delete", "replace"]
    assert (runner_with_files.bytes("a"), (runner_with_files.folder / "new").exists()) == (b"a\n", False)
    runner_with_files.done("reject", "--conversation", done["conversation_id"])
    assert (runner_with_files.bytes("a"), runner_with_files.bytes("new")) == (b"other\n", b"new\n")


def test_a_restore_that_changes_nothing_says_so(runner_with_files: CommandRunner) -> None:
    runner_with_files.done("snapshot")
    assert runner_with_files.done("snapshot", "restore", "1").text == "No file differs.\n"
    assert runner_with_files.done("snapshot", "restore", "1", "--json").json()["conversation_id"] is None


def test_a_deleted_path_can_be_restored(runner_with_files: CommandRunner) -> None:
    runner_with_files.done("snapshot")
    (runner_with_files.folder / "src/b").unlink()
    (runner_with_files.folder / "src").rmdir()
    (runner_with_files.folder / "a").unlink()
    runner_with_files.done("snapshot", "restore", "1", "src/b")
    assert (runner_with_files.bytes("src/b"), (runner_with_files.folder / "a").exists()) == (b"b\n", False)


def test_a_path_in_neither_the_snapshot_nor_the_worktree_is_refused(runner_with_files: CommandRunner) -> None:
    runner_with_files.done("snapshot")
    runner_with_files.done("snapshot", "create", "src")
    write_file(runner_with_files, "new")
    mistyped = (("1", "src/bb", "src/b"), ("1", "scr", "src"), ("2", "./b", "src/b"), ("2", "a", ""))
    for number, path, similar in mistyped:
        ran = runner_with_files.cas("snapshot", "restore", number, path)
        suggestion = f"Did you mean {similar}?\n" if similar else ""
        assert (ran.status, ran.out, ran.said) == (
            1,
            b"",
            f"cas: No file or folder of snapshot {number} is named {path!r} here.\n{suggestion}",
        )
    ran = cas("snapshot", "restore", "1", "bb", folder=runner_with_files.folder / "src")
    assert (ran.status, ran.said.splitlines()[1:]) == (1, ["Did you mean b?"])
    # It is refused before the other paths are restored.
    assert runner_with_files.cas("snapshot", "restore", "1", "new", "nwe").status == 1
    assert (runner_with_files.folder / "new").exists()
    assert runner_with_files.done("snapshot", "restore", "2", ".").text == "No file differs.\n"
    assert runner_with_files.done("snapshot", "restore", "1", "src", "a").text == "No file differs.\n"


def test_files_left_alone_are_listed_with_the_reason_of_their_folder(runner_with_files: CommandRunner) -> None:
    write_file(runner_with_files, "away/z")
    write_file(runner_with_files, "taken/z")
    write_file(runner_with_files, "linked/z")
    runner_with_files.done("snapshot")
    write_file(runner_with_files, ".casignore", b"away\n")
    shutil.rmtree(runner_with_files.folder / "taken")
    shutil.rmtree(runner_with_files.folder / "linked")
    write_file(runner_with_files, "taken")
    (runner_with_files.folder / "linked").symlink_to("src")
    reasons = {
        "away": "the snapshot does not hold it, or it is ignored",
        "linked": "a folder and a link have the same name",
        "taken": "a folder and a file have the same name",
    }
    output = runner_with_files.done("snapshot", "restore", "1", "--dry-run").text.splitlines()
    assert sorted(line for line in output if line.startswith("Left alone")) == sorted(
        f"Left alone {path}: {reason}" for folder, reason in reasons.items() for path in (folder, f"{folder}/z")
    )


def test_a_requested_path_that_is_left_alone_is_listed_with_its_reason(runner_with_files: CommandRunner) -> None:
    write_file(runner_with_files, "src/sub/z")
    runner_with_files.done("snapshot")
    runner_with_files.done("snapshot", "create", "src/sub")
    (runner_with_files.folder / "src").rename(runner_with_files.folder / "old")
    write_file(runner_with_files, "src", b"text\n")
    for words in (("1", "src/sub/z"), ("2",), ("2", "--dry-run"), ("2", "src/sub")):
        ran = runner_with_files.done("snapshot", "restore", *words)
        assert ran.text == "Left alone src/sub/z: a folder and a file have the same name\n", words
    (runner_with_files.folder / "src").unlink()
    (runner_with_files.folder / "src").symlink_to("old")
    for words in (("1", "src/sub/z"), ("2",), ("2", "--dry-run"), ("2", "src/sub")):
        ran = runner_with_files.done("snapshot", "restore", *words)
        assert ran.text == "Left alone src/sub/z: a folder and a link have the same name\n", words


@pytest.mark.parametrize("target", ["lib", "nowhere", "..", ".git"])
def test_a_path_whose_folder_became_a_symlink_names_the_snapshots_entry(
    runner_with_files: CommandRunner, target: str
) -> None:
    write_file(runner_with_files, "lib/own")
    runner_with_files.done("snapshot")
    runner_with_files.done("snapshot", "create", "src")
    (runner_with_files.folder / "src").rename(runner_with_files.folder / "old")
    write_file(runner_with_files, "lib/own", b"more\n")
    write_file(runner_with_files, "lib/new")
    write_file(runner_with_files, "lib/b")
    (runner_with_files.folder / "src").symlink_to(target)
    runner_with_files.done("snapshot", "-m", "the third")
    here = runner_with_files.folder / "lib"
    for until in ([], ["3"]):
        assert runner_with_files.done("snapshot", "diff", "1", *until, "src").text == "A  src\nD  src/b\n"
        assert runner_with_files.done("snapshot", "diff", "1", *until, "src/b").text == "D  src/b\n"
        assert (
            runner_with_files.done("snapshot", "diff", "1", *until, str(runner_with_files.folder / "src/b")).text
            == "D  src/b\n"
        )
        assert cas("snapshot", "diff", "1", *until, "../src/b", folder=here).text == "D  src/b\n"
    assert runner_with_files.done("snapshot", "diff", "2", "src").text == "D  src/b\n"
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    left = "Left alone src/b: a folder and a link have the same name\n"
    assert runner_with_files.done("snapshot", "restore", "1", "src/b").text == left
    assert (
        runner_with_files.done("snapshot", "restore", "1", "src").text
        == f"Left alone src: {left.partition(': ')[2]}{left}"
    )
    assert runner_with_files.done("snapshot", "restore", "2", "src/b").text == left
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def test_a_path_through_a_symlink_of_the_snapshot_names_the_links_target(runner_with_files: CommandRunner) -> None:
    (runner_with_files.folder / "now").symlink_to("src")
    write_file(runner_with_files, "src/deep/c")
    (runner_with_files.folder / "far").symlink_to("src/deep")
    runner_with_files.done("snapshot")
    write_file(runner_with_files, "src/b", b"other\n")
    assert runner_with_files.done("snapshot", "diff", "1", "now/b").text == "M  src/b\n"
    assert runner_with_files.done("snapshot", "diff", "1", "now").text == "M  src/b\n"
    (runner_with_files.folder / "lib").symlink_to("src")  # a link newer than the snapshot
    assert runner_with_files.done("snapshot", "diff", "1", "lib/b").text == "M  src/b\n"
    write_file(runner_with_files, "b")
    assert (
        runner_with_files.done("snapshot", "diff", "1", "far/../b").text == "M  src/b\n"
    )  # resolved as the system resolves it
    assert runner_with_files.done("snapshot", "restore", "1", "now/b").text.startswith("Wrote src/b\n")


def test_restore_of_an_ignored_path_says_that_the_snapshot_does_not_hold_it(runner_with_files: CommandRunner) -> None:
    write_file(runner_with_files, "node_modules/x")
    runner_with_files.done("snapshot")
    write_file(runner_with_files, "node_modules/x", b"otherwise\n")
    reason = "the snapshot does not hold it, or it is ignored\n"
    for path in ("node_modules", "node_modules/x"):
        assert runner_with_files.done("snapshot", "restore", "1", path).text == f"Left alone {path}: {reason}"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["show", "9"], 1),
        (["diff", "9"], 1),
        (["restore", "9"], 1),
        (["delete", "9"], 1),
        (["delete"], 2),
        (["show", "x"], 2),
        (["show", "0"], 2),
        (["nothing"], 2),
    ],
)
def test_an_unknown_snapshot_or_subcommand_is_refused(
    runner_with_files: CommandRunner, words: list[str], status: int
) -> None:
    ran = runner_with_files.cas("snapshot", *words)
    assert (ran.status, ran.out) == (status, b"")
    assert ran.said


def test_list_omits_deleted_snapshots(runner_with_files: CommandRunner) -> None:
    for title in ("one", "two", "three"):
        runner_with_files.done("snapshot", "-m", title)
    assert runner_with_files.done("snapshot", "delete", "1", "3").text == "Deleted snapshot 1.\nDeleted snapshot 3.\n"
    assert [view["title"] for view in runner_with_files.done("snapshot", "list", "--json").lines()] == ["two"]


def test_control_characters_in_titles_and_paths_are_escaped(runner_with_files: CommandRunner) -> None:
    runner_with_files.done("snapshot", "-m", "a\nb\x1b[2J")
    write_file(runner_with_files, "new\nD  a")
    assert runner_with_files.done("snapshot", "diff", "1").text == 'A  "new\\nD  a"\n'
    assert "\x1b" not in runner_with_files.done("snapshot", "list").text
    assert len(runner_with_files.done("snapshot", "list").text.splitlines()) == 1


def test_files_that_a_snapshot_cannot_hold_are_named_each_time(runner_with_files: CommandRunner) -> None:
    os.mkfifo(runner_with_files.folder / "pipe")
    for _ in range(2):
        ran = runner_with_files.cas("snapshot")
        assert (ran.status, ran.said) == (0, "cas: not included: pipe: no file, link or folder\n")


def test_a_setting_excludes_files_that_git_ignores(runner_with_files: CommandRunner) -> None:
    write_file(runner_with_files, ".gitignore", b"a\n")
    runner_with_files.done("config", "set", "record.ignored", "on")
    runner_with_files.done("snapshot")
    runner_with_files.done("config", "set", "record.ignored", "off")
    runner_with_files.done("snapshot")
    listings = [runner_with_files.done("snapshot", "show", n, "--json").json()["entries"] for n in ("1", "2")]
    assert [[e["kind"] for e in entries if e["path"] == "a"] for entries in listings] == [["file"], ["left-out"]]


# ---- cas record


def test_record_attributes_changes_to_the_user(runner_with_files: CommandRunner) -> None:
    first = runner_with_files.done("record", "--json").json()
    assert (first["first_look"], first["edits"], first["files"]) == (True, [], 3)
    write_file(runner_with_files, "a", b"mine\n")
    (edit,) = runner_with_files.done("record", "--note", "tidied", "--json").json()["edits"]
    assert (edit["origin"], edit["status"], edit["operation"], edit["notes"]["note"]) == (
        "person",
        "accepted",
        "edit",
        "tidied",
    )
    assert runner_with_files.done("record").text == "Nothing changed.\n"


def test_record_with_agent_leaves_changes_pending(runner_with_files: CommandRunner) -> None:
    runner_with_files.done("record")
    write_file(runner_with_files, "a", b"theirs\n")
    found = runner_with_files.done("record", "--agent", "tester", "--conversation", "conv_shell", "--json").json()
    (edit,) = found["edits"]
    assert (edit["origin"], edit["status"], edit["notes"]) == ("agent", "pending", {"agent": "tester"})
    assert found["conversation_id"] == edit["conversation_id"] == "conv_shell"
    runner_with_files.done("reject", "--conversation", "conv_shell")
    assert runner_with_files.bytes("a") == b"a\n"


def test_record_of_paths_records_only_these(runner_with_files: CommandRunner) -> None:
    runner_with_files.done("record")
    write_file(runner_with_files, "a", b"x\n")
    write_file(runner_with_files, "src/b", b"x\n")
    ran = cas("record", "b", "--json", folder=runner_with_files.folder / "src")
    assert [Path(edit["file_path"]).name for edit in ran.json()["edits"]] == ["b"]
    assert runner_with_files.cas("record", "/etc").status == 1


@pytest.mark.parametrize("words", [(), ("--agent", "a")])
def test_status_and_record_leave_out_the_same_files_unless_they_are_named(
    runner_with_files: CommandRunner, words: tuple[str, ...]
) -> None:
    runner_with_files.done("record")
    runner_with_files.write("a", b"recorded\n")
    write_file(runner_with_files, ".casignore", b"a\n")
    runner_with_files.done("record")
    write_file(runner_with_files, "a", b"mine\n")
    assert "changed outside" not in runner_with_files.done("status").text
    assert runner_with_files.done("diff", "--unrecorded").text == ""
    assert "+mine" in runner_with_files.done("diff", "--unrecorded", "a").text
    assert runner_with_files.done("record", *words).text == "Nothing changed.\n"
    assert "edit         +1 -1  a" in runner_with_files.done("record", *words, "a").text
    assert runner_with_files.done("diff", "--unrecorded", "a").text == ""


def test_record_refuses_the_conversation_name_external(runner_with_files: CommandRunner) -> None:
    ran = runner_with_files.cas("record", "--conversation", "external")
    assert (ran.status, ran.out) == (1, b"")


def test_concurrent_record_processes_record_each_change_once(runner_with_files: CommandRunner) -> None:
    runner_with_files.done("record")
    for number in range(30):
        write_file(runner_with_files, f"many/{number}", b"%d\n" % number)
    words = [sys.executable, "-P", "-m", "cli", "record", "--json"]
    started = [
        subprocess.Popen(
            words, cwd=runner_with_files.folder, env=environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    ended = [process.communicate(timeout=PATIENCE) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], ended
    recorded = [edit["file_path"] for out, _ in ended for edit in json.loads(out)["edits"]]
    assert len(recorded) == len(set(recorded)) == 30
    assert runner_with_files.done("record").text == "Nothing changed.\n"


def test_unreadable_files_are_not_recorded_as_deleted(runner_with_files: CommandRunner) -> None:
    runner_with_files.done("record")
    (runner_with_files.folder / "src").chmod(0)
    write_file(runner_with_files, "a", b"x\n")
    ran = cas_unprivileged("record", "--json", folder=runner_with_files.folder)
    snapshot = cas_unprivileged("snapshot", "--json", folder=runner_with_files.folder)
    (runner_with_files.folder / "src").chmod(0o755)
    assert [Path(edit["file_path"]).name for edit in ran.json()["edits"]] == ["a"]
    assert [place["path"] for place in ran.json()["not_covered"]] == ["src"]
    assert [place["path"] for place in snapshot.json()["not_covered"]] == ["src"]
    # A restore does not delete files that were unreadable for the snapshot.
    number = str(snapshot.json()["number"])
    assert runner_with_files.done("snapshot", "restore", number, "--json").json()["changes"] == []
    assert runner_with_files.bytes("src/b") == b"b\n"


# ---- states by time


def test_a_state_is_named_by_a_time(runner_with_files: CommandRunner) -> None:
    runner_with_files.write("recorded", b"2\n")
    assert runner_with_files.done("cat", "recorded@0s").out == b"2\n"
    assert runner_with_files.done("diff", "recorded@1", "recorded@0s", "--json").json()["diff"].endswith("-1\n+2\n")
    assert runner_with_files.cas("cat", "recorded@2h").status == 1
    runner_with_files.done("restore", "recorded@1")
    assert runner_with_files.bytes("recorded") == b"1\n"
    assert runner_with_files.cas("cat", "nothing@2h").status == 1


def test_deleting_the_baseline_snapshot_takes_a_new_one_and_says_so(runner: CommandRunner) -> None:
    (runner.folder / "file").write_bytes(b"one\n")
    runner.done("record")
    (runner.folder / "file").write_bytes(b"two\n")
    output = runner.done("snapshot", "delete", "1").text.splitlines()
    assert output == [
        "Deleted snapshot 1.",
        "Recorded what had changed since it was taken first, as 1 edit.",
        "Took a new baseline snapshot: files without an edit are now compared with that one.",
    ]
    runner.done("snapshot", "create")
    assert runner.done("snapshot", "delete", "3").text == "Deleted snapshot 3.\n"
