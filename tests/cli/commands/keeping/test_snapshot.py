"""`cas snapshot` and `cas record` as a person runs them."""

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


def put(runner: CommandRunner, path: str, content: bytes = b"x\n") -> Path:
    """Write a file as an editor would."""
    file = runner.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


@pytest.fixture
def full(runner: CommandRunner) -> CommandRunner:
    """Return a desk with some files, of which a tool has recorded one."""
    runner.write("recorded", b"1\n")
    put(runner, "a", b"a\n")
    put(runner, "src/b", b"b\n")
    return runner


# ---- how far it is


def test_a_first_look_counts_what_it_covers(full: CommandRunner) -> None:
    """What is ignored would only make the bar end early."""
    (full.folder / ".casignore").write_text("*.log\n")
    for number in range(40):
        (full.folder / f"{number}.log").write_text("")
    _, shown = with_progress("record", folder=full.folder, patience=0)
    assert b" of 4 files" in shown


def test_what_tells_nothing_for_a_while_says_for_how_long(full: CommandRunner) -> None:
    put(full, "large", os.urandom(60 << 20))  # no processor is so quick that nobody would wait
    _, shown = with_progress("record", folder=full.folder, patience=0)
    assert re.search(rb" \d+ s so far", shown)
    assert shown.endswith(b"\r\x1b[K")


THREADS: Final = """
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
        workspace.record_changes(CallInfo(tool="record"))  # nothing has changed: there is nothing to say
        counts.append(threading.active_count())
    with showing_progress(workspace, DECIDING):
        counts.append(threading.active_count())
    counts.append(threading.active_count())
print(*counts)
"""
"""A look that finds something, one that finds nothing, and a decision, each with how many threads the process has."""


def test_a_look_has_no_other_thread_before_it_has_a_word_to_say(full: CommandRunner) -> None:
    """A process with threads can't share its look with a child; that of the tests may have some of its own."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", THREADS, str(full.folder)],
        env=environment({}),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, b"", b"1 2 1 2 1\n")


def test_a_restored_snapshot_tells_how_far_it_is(full: CommandRunner) -> None:
    full.done("snapshot", "create")
    for file in ("a", "src/b"):
        put(full, file, b"otherwise\n")
    _, shown = with_progress("snapshot", "restore", "1", folder=full.folder, patience=0)
    assert b"recording [" in shown
    assert b"writing [########################] 2 of 2 paths" in shown


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["text", "json"])
def test_what_neither_stands_there_nor_ever_did_has_not_just_not_changed(full: CommandRunner, words: list[str]) -> None:
    full.done("record")
    put(full, "src/new")
    ran = full.cas("record", "src/new", "src/nwe", *words)
    assert (ran.status, ran.said) == (
        1,
        "cas: No recorded file is named 'src/nwe' here.\nDid you mean src/new?\n",
    )
    assert b"src/new" in ran.out
    assert full.cas("record", "*ew").status == 1
    (full.folder / "src/new").unlink()
    assert "src/new" in full.done("record", "src/new").text
    assert full.done("record", "src/new").text == "Nothing changed.\n"


# ---- snapshots


@pytest.mark.parametrize(
    "words", [["record"], ["snapshot", "create"], ["snapshot", "diff", "1"], ["setup", "cursor"]], ids=" ".join
)
def test_a_look_that_takes_its_time_says_how_far_it_is(full: CommandRunner, words: list[str]) -> None:
    full.done("snapshot", "create")
    put(full, "src/c")
    _, shown = with_progress(*words, folder=full.folder, patience=0)
    assert b"\r\x1b[Klooking [" in shown
    assert re.search(rb"\[#{24}\] (\d+) of \1 files", shown)
    assert shown.endswith(b"\r\x1b[K")  # the line is gone at the end
    assert with_progress(*words, folder=full.folder, patience=3600)[1] == b""


def test_without_a_word_a_snapshot_is_taken(full: CommandRunner) -> None:
    assert full.done("snapshot").text == "Snapshot 1 of the workspace: 3 files.\n"
    assert full.done("snapshot", "--json").json() | {"id": "", "timestamp": "", "root": "", "who": ""} == {
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


def test_a_folder_is_named_from_where_the_person_stands(full: CommandRunner) -> None:
    ran = cas("snapshot", "create", ".", "-m", "here", "--json", folder=full.folder / "src")
    assert (ran.status, ran.json()["path"], ran.json()["title"]) == (0, "src", "here")
    ran = cas("snapshot", "create", "..", "--json", folder=full.folder / "src")
    assert (ran.status, ran.json()["path"]) == (0, None)
    assert full.cas("snapshot", "create", "nothing").said == "cas: File not found: nothing\n"
    assert full.cas("snapshot", "create", "/").status == 1


def test_a_snapshot_of_what_stands_there_and_is_no_folder_is_refused_as_that(full: CommandRunner) -> None:
    ran = full.cas("snapshot", "create", "src/b")
    assert (ran.status, ran.out) == (1, b"")
    assert ran.said == "cas: Not a usable path (not a directory; a snapshot is of a folder): 'src/b'\n"


def test_what_is_in_a_snapshot_is_shown(full: CommandRunner) -> None:
    (full.folder / "link").symlink_to("a")
    put(full, "node_modules/x")
    full.done("snapshot")
    shown = full.done("snapshot", "show", "1", "--json").json()
    assert [(entry["path"], entry["kind"], entry["mode"]) for entry in shown["entries"]] == [
        ("a", "file", 0o644),
        ("link", "symlink", None),
        ("node_modules", "left-out", None),
        ("recorded", "file", 0o644),
        ("src/b", "file", 0o644),
    ]
    blob = next(entry["blob"] for entry in shown["entries"] if entry["path"] == "src/b")
    assert full.done("cat", blob).out == b"b\n"


def test_changes_are_told_in_letters_in_json_and_as_patches(full: CommandRunner) -> None:
    full.done("snapshot")
    put(full, "a", b"a\nmore\n")
    put(full, "new")
    (full.folder / "src/b").unlink()
    (full.folder / "src/b").symlink_to("a")
    (full.folder / "recorded").unlink()
    assert full.done("snapshot", "diff", "1").text == "M  a\nA  new\nD  recorded\nT  src/b\n"
    changes = full.done("snapshot", "diff", "1", "--json").json()["changes"]
    assert [change["path"] for change in changes] == ["a", "new", "recorded", "src/b"]
    assert changes[3]["after"]["kind"] == "symlink"
    patch = full.done("snapshot", "diff", "1", "-p").text
    assert "+more\n" in patch
    assert "new file mode 100644" in patch
    assert "deleted file mode 100644" in patch
    full.done("snapshot")
    assert full.done("snapshot", "diff", "1", "2").text == "M  a\nA  new\nD  recorded\nT  src/b\n"


def test_snapshots_of_folders_that_lie_apart_are_not_compared(full: CommandRunner) -> None:
    put(full, "we ird/b")
    full.done("snapshot", "create", "src")
    full.done("snapshot", "create", "we ird")
    for words in ([], ["src"], ["-p"], ["--json"]):
        ran = full.cas("snapshot", "diff", "1", "2", *words)
        assert (ran.status, ran.out) == (1, b"")
        assert ran.said == "cas: Snapshots 1 and 2 cover nothing in common: one covers src, the other we ird.\n"


def a_loss(runner: CommandRunner) -> str:
    """Take a snapshot and another, of which the first loses a file's bytes, and return what is said of that."""
    lost = b"what is lost, and resembles nothing else"
    put(runner, "a", lost)
    runner.done("snapshot")
    put(runner, "a", b"a\n")
    put(runner, "src/b", b"b\nmore\n")
    runner.done("snapshot")
    lose(runner.folder, blob_id(lost))
    return f"No blob {blob_id(lost).hex()} in this store."


@pytest.mark.parametrize("until", [[], ["2"]], ids=["now", "another"])
def test_the_bytes_that_a_snapshot_has_lost_are_not_made_up_from_what_stands_there(
    full: CommandRunner, until: list[str]
) -> None:
    told = a_loss(full)
    put(full, "a", b"what stands there now\n")
    ran = full.cas("snapshot", "diff", "1", *until, "-p")
    assert ran.status == 1
    assert ran.text.splitlines()[0] == f"No diff of a: {told}"
    assert ran.text.endswith("\n b\n+more\n")
    assert "what stands there now" not in ran.text
    assert ran.said.splitlines()[0] == f"cas: {told}"


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["text", "json"])
def test_a_file_of_which_a_snapshot_has_lost_the_bytes_is_left_and_the_others_come_back(
    full: CommandRunner, words: list[str]
) -> None:
    told = a_loss(full)
    for options in (["--dry-run"], []):
        ran = full.cas("snapshot", "restore", "1", *options, *words)
        assert (ran.status, ran.said.splitlines()[0]) == (1, f"cas: {told}")
        if words:
            found = ran.json()
            assert [[change["path"] for change in found[key]] for key in ("changes", "left")] == [["src/b"], ["a"]]
        else:
            assert ran.text.splitlines()[:2] == [
                "Would write src/b" if options else "Wrote src/b",
                "Left alone a: the store no longer has its content",
            ]
    assert (full.bytes("src/b"), full.bytes("a")) == (b"b\n", b"a\n")
    assert full.cas("snapshot", "restore", "1", "src").status == 0


def test_what_was_put_into_a_file_since_it_was_looked_at_is_not_told_as_what_was_found(full: CommandRunner) -> None:
    full.done("snapshot")
    put(full, "a", b"more\n" * (1 << 20))
    put(full, "src/b", b"found\n")
    reader = subprocess.Popen(
        [*PROGRAM, "snapshot", "diff", "1", "-p"], cwd=full.folder, env=environment({}), stdout=subprocess.PIPE
    )
    with reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"diff --git a/a b/a\n"  # it waits until the rest of this can be written
        put(full, "src/b", b"changed since\n")
        *_, last = reader.stdout
    assert last == b"No diff of src/b: File changed on disk since it was read; read it again: src/b\n"


def test_changes_are_told_of_paths_alone(full: CommandRunner) -> None:
    put(full, "src/2", b"b\n")
    full.done("snapshot")
    full.done("snapshot", "create", "src")
    put(full, "a", b"a\nmore\n")
    put(full, "src/b", b"more\n")
    (full.folder / "src/2").unlink()
    full.done("snapshot")
    here = full.folder / "src"
    for until in ([], ["3"]):
        assert full.done("snapshot", "diff", "1", *until, "a").text == "M  a\n"
        assert full.done("snapshot", "diff", "1", *until, "src").text == "D  src/2\nM  src/b\n"
        assert full.done("snapshot", "diff", "1", *until, "recorded").text == ""
        assert cas("snapshot", "diff", "1", *until, "./2", "b", folder=here).text == "D  src/2\nM  src/b\n"
        assert cas("snapshot", "diff", "2", *until, ".", folder=here).text == "D  src/2\nM  src/b\n"
        ran = cas("snapshot", "diff", "1", *until, "bb", folder=here)
        assert (ran.status, ran.out) == (1, b"")
        assert ran.said == "cas: No file or folder of snapshot 1 is named 'bb' here.\nDid you mean b or 2?\n"
    assert full.cas("snapshot", "diff", "2", "a").status == 1  # it covers no more than the folder


def test_a_restored_snapshot_is_taken_back_by_its_conversation(full: CommandRunner) -> None:
    full.done("snapshot")
    put(full, "a", b"other\n")
    put(full, "new", b"new\n")
    done = full.done("snapshot", "restore", "1", "--json").json()
    assert [edit["operation"] for edit in done["edits"]] == ["replace", "delete"]
    assert (full.bytes("a"), (full.folder / "new").exists()) == (b"a\n", False)
    full.done("reject", "--conversation", done["conversation_id"])
    assert (full.bytes("a"), full.bytes("new")) == (b"other\n", b"new\n")


def test_a_restore_that_changes_nothing_says_so(full: CommandRunner) -> None:
    full.done("snapshot")
    assert full.done("snapshot", "restore", "1").text == "No file differs.\n"
    assert full.done("snapshot", "restore", "1", "--json").json()["conversation_id"] is None


def test_a_path_that_is_gone_can_be_brought_back(full: CommandRunner) -> None:
    full.done("snapshot")
    (full.folder / "src/b").unlink()
    (full.folder / "src").rmdir()
    (full.folder / "a").unlink()
    full.done("snapshot", "restore", "1", "src/b")
    assert (full.bytes("src/b"), (full.folder / "a").exists()) == (b"b\n", False)


def test_a_path_that_no_snapshot_holds_and_nothing_stands_at_is_refused(full: CommandRunner) -> None:
    full.done("snapshot")
    full.done("snapshot", "create", "src")
    put(full, "new")
    mistyped = (("1", "src/bb", "src/b"), ("1", "scr", "src"), ("2", "./b", "src/b"), ("2", "a", ""))
    for number, path, near in mistyped:
        ran = full.cas("snapshot", "restore", number, path)
        meant = f"Did you mean {near}?\n" if near else ""
        assert (ran.status, ran.out, ran.said) == (
            1,
            b"",
            f"cas: No file or folder of snapshot {number} is named {path!r} here.\n{meant}",
        )
    ran = cas("snapshot", "restore", "1", "bb", folder=full.folder / "src")
    assert (ran.status, ran.said.splitlines()[1:]) == (1, ["Did you mean b?"])
    # Before anything is done for the others.
    assert full.cas("snapshot", "restore", "1", "new", "nwe").status == 1
    assert (full.folder / "new").exists()
    assert full.done("snapshot", "restore", "2", ".").text == "No file differs.\n"
    assert full.done("snapshot", "restore", "1", "src", "a").text == "No file differs.\n"


def test_what_is_left_alone_for_its_folder_is_told_with_the_folders_reason(full: CommandRunner) -> None:
    put(full, "away/z")
    put(full, "taken/z")
    put(full, "linked/z")
    full.done("snapshot")
    put(full, ".casignore", b"away\n")
    shutil.rmtree(full.folder / "taken")
    shutil.rmtree(full.folder / "linked")
    put(full, "taken")
    (full.folder / "linked").symlink_to("src")
    reasons = {
        "away": "the snapshot does not hold it, or it is ignored",
        "linked": "links are never created or changed",
        "taken": "a folder and a file have the same name",
    }
    said = full.done("snapshot", "restore", "1", "--dry-run").text.splitlines()
    assert sorted(line for line in said if line.startswith("Left alone")) == sorted(
        f"Left alone {path}: {why}" for folder, why in reasons.items() for path in (folder, f"{folder}/z")
    )


def test_what_is_left_alone_is_told_with_the_reason_also_where_only_it_was_asked_for(full: CommandRunner) -> None:
    put(full, "src/sub/z")
    full.done("snapshot")
    full.done("snapshot", "create", "src/sub")
    (full.folder / "src").rename(full.folder / "old")
    put(full, "src", b"text\n")
    for words in (("1", "src/sub/z"), ("2",), ("2", "--dry-run"), ("2", "src/sub")):
        ran = full.done("snapshot", "restore", *words)
        assert ran.text == "Left alone src/sub/z: a folder and a file have the same name\n", words
    (full.folder / "src").unlink()
    (full.folder / "src").symlink_to("old")
    for words in (("1", "src/sub/z"), ("2",), ("2", "--dry-run"), ("2", "src/sub")):
        ran = full.done("snapshot", "restore", *words)
        assert ran.text == "Left alone src/sub/z: links are never created or changed\n", words


@pytest.mark.parametrize("target", ["lib", "nowhere", "..", ".git"])
def test_a_path_whose_folder_is_a_link_by_now_is_what_the_snapshot_has_there(full: CommandRunner, target: str) -> None:
    put(full, "lib/own")
    full.done("snapshot")
    full.done("snapshot", "create", "src")
    (full.folder / "src").rename(full.folder / "old")
    put(full, "lib/own", b"more\n")
    put(full, "lib/new")
    put(full, "lib/b")
    (full.folder / "src").symlink_to(target)
    full.done("snapshot", "-m", "the third")
    here = full.folder / "lib"
    for until in ([], ["3"]):
        assert full.done("snapshot", "diff", "1", *until, "src").text == "A  src\nD  src/b\n"
        assert full.done("snapshot", "diff", "1", *until, "src/b").text == "D  src/b\n"
        assert full.done("snapshot", "diff", "1", *until, str(full.folder / "src/b")).text == "D  src/b\n"
        assert cas("snapshot", "diff", "1", *until, "../src/b", folder=here).text == "D  src/b\n"
    assert full.done("snapshot", "diff", "2", "src").text == "D  src/b\n"
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    left = "Left alone src/b: links are never created or changed\n"
    assert full.done("snapshot", "restore", "1", "src/b").text == left
    assert full.done("snapshot", "restore", "1", "src").text == f"Left alone src: {left.partition(': ')[2]}{left}"
    assert full.done("snapshot", "restore", "2", "src/b").text == left
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def test_a_path_through_a_link_that_the_snapshot_has_as_one_is_where_it_leads(full: CommandRunner) -> None:
    (full.folder / "now").symlink_to("src")
    put(full, "src/deep/c")
    (full.folder / "far").symlink_to("src/deep")
    full.done("snapshot")
    put(full, "src/b", b"other\n")
    assert full.done("snapshot", "diff", "1", "now/b").text == "M  src/b\n"
    assert full.done("snapshot", "diff", "1", "now").text == "M  src/b\n"
    (full.folder / "lib").symlink_to("src")  # that came since
    assert full.done("snapshot", "diff", "1", "lib/b").text == "M  src/b\n"
    put(full, "b")
    assert full.done("snapshot", "diff", "1", "far/../b").text == "M  src/b\n"  # as the system goes there
    assert full.done("snapshot", "restore", "1", "now/b").text.startswith("Wrote src/b\n")


def test_what_is_left_out_is_not_said_to_be_as_it_was(full: CommandRunner) -> None:
    put(full, "node_modules/x")
    full.done("snapshot")
    put(full, "node_modules/x", b"otherwise\n")
    told = "the snapshot does not hold it, or it is ignored\n"
    for path in ("node_modules", "node_modules/x"):
        assert full.done("snapshot", "restore", "1", path).text == f"Left alone {path}: {told}"


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
def test_what_there_is_not_is_refused(full: CommandRunner, words: list[str], status: int) -> None:
    ran = full.cas("snapshot", *words)
    assert (ran.status, ran.out) == (status, b"")
    assert ran.said


def test_a_list_shows_what_was_not_deleted(full: CommandRunner) -> None:
    for title in ("one", "two", "three"):
        full.done("snapshot", "-m", title)
    assert full.done("snapshot", "delete", "1", "3").text == "Deleted snapshot 1.\nDeleted snapshot 3.\n"
    assert [view["title"] for view in full.done("snapshot", "list", "--json").lines()] == ["two"]


def test_names_can_not_forge_lines(full: CommandRunner) -> None:
    full.done("snapshot", "-m", "a\nb\x1b[2J")
    put(full, "new\nD  a")
    assert full.done("snapshot", "diff", "1").text == 'A  "new\\nD  a"\n'
    assert "\x1b" not in full.done("snapshot", "list").text
    assert len(full.done("snapshot", "list").text.splitlines()) == 1


def test_what_could_not_be_covered_is_said_each_time(full: CommandRunner) -> None:
    os.mkfifo(full.folder / "pipe")
    for _ in range(2):
        ran = full.cas("snapshot")
        assert (ran.status, ran.said) == (0, "cas: not included: pipe: no file, link or folder\n")


def test_a_setting_leaves_out_what_git_ignores(full: CommandRunner) -> None:
    put(full, ".gitignore", b"a\n")
    full.done("snapshot")
    full.done("config", "set", "snapshot.gitignored", "off")
    full.done("snapshot")
    held = [full.done("snapshot", "show", n, "--json").json()["entries"] for n in ("1", "2")]
    assert [[e["kind"] for e in entries if e["path"] == "a"] for entries in held] == [["file"], ["left-out"]]


# ---- what nobody recorded


def test_what_changed_is_recorded_as_the_persons_own(full: CommandRunner) -> None:
    first = full.done("record", "--json").json()
    assert (first["first_look"], first["edits"], first["files"]) == (True, [], 3)
    put(full, "a", b"mine\n")
    (edit,) = full.done("record", "--note", "tidied", "--json").json()["edits"]
    assert (edit["origin"], edit["status"], edit["operation"], edit["notes"]["note"]) == (
        "person",
        "accepted",
        "edit",
        "tidied",
    )
    assert full.done("record").text == "Nothing changed.\n"


def test_what_an_agent_changed_is_to_be_reviewed(full: CommandRunner) -> None:
    full.done("record")
    put(full, "a", b"theirs\n")
    found = full.done("record", "--agent", "tester", "--conversation", "conv_shell", "--json").json()
    (edit,) = found["edits"]
    assert (edit["origin"], edit["status"], edit["notes"]) == ("agent", "pending", {"agent": "tester"})
    assert found["conversation_id"] == edit["conversation_id"] == "conv_shell"
    full.done("reject", "--conversation", "conv_shell")
    assert full.bytes("a") == b"a\n"


def test_only_the_paths_that_are_named_are_recorded(full: CommandRunner) -> None:
    full.done("record")
    put(full, "a", b"x\n")
    put(full, "src/b", b"x\n")
    ran = cas("record", "b", "--json", folder=full.folder / "src")
    assert [Path(edit["file_path"]).name for edit in ran.json()["edits"]] == ["b"]
    assert full.cas("record", "/etc").status == 1


@pytest.mark.parametrize("words", [(), ("--agent", "a")])
def test_record_takes_in_all_that_status_says_is_changed_outside(full: CommandRunner, words: tuple[str, ...]) -> None:
    full.done("record")
    full.write("a", b"recorded\n")
    put(full, ".casignore", b"a\n")
    full.done("record")
    put(full, "a", b"mine\n")
    assert "changed outside" in full.done("status").text
    assert "edit         +1 -1  a" in full.done("record", *words).text
    assert "changed outside" not in full.done("status").text


def test_the_conversation_of_what_nobody_recorded_is_refused(full: CommandRunner) -> None:
    ran = full.cas("record", "--conversation", "external")
    assert (ran.status, ran.out) == (1, b"")


def test_several_processes_at_once_record_each_change_once(full: CommandRunner) -> None:
    full.done("record")
    for number in range(30):
        put(full, f"many/{number}", b"%d\n" % number)
    words = [sys.executable, "-P", "-m", "cli", "record", "--json"]
    started = [
        subprocess.Popen(words, cwd=full.folder, env=environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    ended = [process.communicate(timeout=PATIENCE) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], ended
    recorded = [edit["file_path"] for out, _ in ended for edit in json.loads(out)["edits"]]
    assert len(recorded) == len(set(recorded)) == 30
    assert full.done("record").text == "Nothing changed.\n"


def test_what_can_not_be_looked_at_is_not_deleted(full: CommandRunner) -> None:
    full.done("record")
    (full.folder / "src").chmod(0)
    put(full, "a", b"x\n")
    ran = cas_unprivileged("record", "--json", folder=full.folder)
    snapshot = cas_unprivileged("snapshot", "--json", folder=full.folder)
    (full.folder / "src").chmod(0o755)
    assert [Path(edit["file_path"]).name for edit in ran.json()["edits"]] == ["a"]
    assert [place["path"] for place in ran.json()["not_covered"]] == ["src"]
    assert [place["path"] for place in snapshot.json()["not_covered"]] == ["src"]
    # What the snapshot could not see is not deleted when it comes back.
    number = str(snapshot.json()["number"])
    assert full.done("snapshot", "restore", number, "--json").json()["changes"] == []
    assert full.bytes("src/b") == b"b\n"


# ---- states by time


def test_a_state_is_named_by_a_moment(full: CommandRunner) -> None:
    full.write("recorded", b"2\n")
    assert full.done("cat", "recorded@0s").out == b"2\n"
    assert full.done("diff", "recorded@1", "recorded@0s", "--json").json()["diff"].endswith("-1\n+2\n")
    assert full.cas("cat", "recorded@2h").status == 1
    full.done("restore", "recorded@1")
    assert full.bytes("recorded") == b"1\n"
    assert full.cas("cat", "nothing@2h").status == 1


def test_who_deletes_the_snapshot_of_the_first_look_is_told_that_there_is_another(runner: CommandRunner) -> None:
    (runner.folder / "file").write_bytes(b"one\n")
    runner.done("record")
    (runner.folder / "file").write_bytes(b"two\n")
    said = runner.done("snapshot", "delete", "1").text.splitlines()
    assert said == [
        "Deleted snapshot 1.",
        "Recorded what had changed since it was taken first, as 1 edit.",
        "Took a new baseline snapshot: files without an edit are now compared with that one.",
    ]
    runner.done("snapshot", "create")
    assert runner.done("snapshot", "delete", "3").text == "Deleted snapshot 3.\n"
