"""`cas status`: the workspace on one screen, and as one JSON document."""

import os
import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from cli.render.status import size_text
from tests.support.command_runner import (
    PROGRAM,
    CommandRunner,
    cas_unprivileged,
    environment,
    modules_loaded,
    unforked_cas,
)
from tests.support.git_repository import new_repository


def test_an_empty_workspace_has_nothing_pending(runner: CommandRunner) -> None:
    ran = runner.cas("status")
    assert (ran.status, ran.said) == (0, "")
    assert f"{runner.folder}: 0 edits, 0 pending, 0 accepted, 0 rejected" in ran.text


def test_pending_edits_are_grouped_by_conversation_and_file(runner: CommandRunner) -> None:
    runner.write("a.txt", b"1\n")
    runner.write("b.txt", b"1\n2\n", conversation="conv_two")
    runner.write("a.txt", b"one\n")
    lines = runner.cas("status").text.splitlines()
    assert lines[:7] == [
        f"{runner.folder}: 3 edits in 2 sessions, 3 pending, 0 accepted, 0 rejected",
        "",
        "pending (`cas review` goes through it):",
        "  conv_one",
        "    a.txt      +2 -1  1 3",
        "  conv_two",
        "    b.txt      +2 -0  2",
    ]


def test_names_of_any_width_are_aligned(runner: CommandRunner) -> None:
    for name in ("plain.txt", "日本語.txt", "e\u0301te\u0301.txt", "a\u200bb"):
        runner.write(name, b"1\n")
    assert runner.done("status").text.splitlines()[4:8] == [
        "    plain.txt       +1 -0  1",
        "    日本語.txt      +1 -0  2",
        "    e\u0301te\u0301.txt         +1 -0  3",
        '    "a\\u200bb"      +1 -0  4',
    ]


def test_a_name_in_the_other_unicode_form_of_another_is_said(runner: CommandRunner) -> None:
    said = "names that differ from another's only in Unicode form"
    for form in ("\xe9t\xe9.txt", "e\u0301te\u0301.txt"):
        runner.write(f"sub/{form}", b"1\n")
        assert (said in runner.done("status").text) is (len(form) > len("\xe9t\xe9.txt"))
    if sum(1 for _ in (runner.folder / "sub").iterdir()) == 1:
        pytest.skip("the file system keeps one of the two")
    (line,) = [line for line in runner.done("status").text.splitlines() if said in line]
    assert "2 more" not in line
    assert line.count("sub/") == 2
    runner.done("accept", "--all")
    assert said not in runner.done("status").text


def test_decided_edits_are_counted_and_no_longer_listed(runner: CommandRunner) -> None:
    for number in range(3):
        runner.write(f"{number}.txt", b"x\n")
    runner.done("accept", "1")
    runner.done("reject", "2")
    text = runner.cas("status").text
    assert "3 edits in 1 session, 1 pending, 1 accepted, 1 rejected" in text
    assert "    2.txt      +1 -0  3\n" in text
    assert "0.txt" not in text


def test_files_without_edits_are_compared_with_the_baseline(runner: CommandRunner) -> None:
    for name in ("changed", "gone", "same"):
        (runner.folder / name).write_bytes(b"x\n")
    (runner.folder / ".casignore").write_bytes(b"ignored\n")
    runner.done("record")
    clean = runner.done("status").text
    assert "No edit is recorded yet." in clean
    assert "changed outside" not in clean
    (runner.folder / "changed").write_bytes(b"y\n")
    (runner.folder / "gone").unlink()
    (runner.folder / "folder").mkdir()
    for name in ("new", "folder/new\nname", "ignored"):
        (runner.folder / name).write_text(f"{name}\n")
    for _ in range(2):  # a status records nothing, and says the same again
        lines = runner.done("status").text.splitlines()
        at = lines.index("changed outside (see `cas diff --unrecorded`):")
        assert lines[at + 1 : at + 5] == [
            "  modified      changed",
            '  created       "folder/new\\nname"',
            "  deleted       gone",
            "  created       new",
        ]
    assert "+y" in runner.done("diff", "--unrecorded").text
    assert "-x" in runner.done("diff", "--unrecorded", "changed").text
    runner.done("record")
    assert len(runner.done("log", "--json").lines()) == 4
    assert "changed outside" not in runner.done("status").text


def test_a_status_loads_nothing_that_describes_what_it_does_not_find(runner: CommandRunner) -> None:
    new_repository(runner.folder)
    runner.write("a.txt", b"1\n")
    runner.done("record")
    loaded = modules_loaded("status", folder=runner.folder)
    assert "objstore.history.unfollowed_repositories" in loaded
    rare = {"agents.differences", "disk.git.command", "disk.ignore_rules.gitignore", "history.git_events"}
    rare |= {"model.records", "model.results", "worktree.scan"}
    assert loaded.isdisjoint({f"objstore.{name}" for name in rare})


def test_a_status_after_a_rejection_loads_nothing_that_records(runner: CommandRunner) -> None:
    runner.write("a.txt", b"1\n")
    runner.write("a.txt", b"one\n")
    runner.done("record")
    runner.done("reject", "2")
    loaded = modules_loaded("status", folder=runner.folder)
    assert "objstore.agents.differences" in loaded
    rare = {"agents.detect", "model.records", "model.results", "storage.store.write_batch", "text.diff"}
    assert loaded.isdisjoint({f"objstore.{name}" for name in rare})


def test_changes_from_outside_are_listed_by_kind(runner: CommandRunner) -> None:
    for name in ("changed", "gone", "mode", "same"):
        runner.write(name, b"x\n")
    (runner.folder / "changed").write_bytes(b"y\n")
    (runner.folder / "gone").unlink()
    (runner.folder / "mode").chmod(0o755)
    ran = runner.cas("status")
    assert ran.status == 0
    shown = ran.text.partition("changed outside (see `cas diff --unrecorded`):\n")[2].splitlines()[:4]
    assert shown == ["  modified      changed", "  deleted       gone", "  mode changed  mode", ""]


def test_the_status_of_a_large_workspace_fits_one_screen(runner: CommandRunner) -> None:
    for number in range(20):
        runner.write(f"{number}.txt", b"x\n", conversation=f"conv_{number}")
    for number in range(20):
        (runner.folder / f"{number}.txt").write_bytes(b"y\n")
    text = runner.cas("status").text
    assert len(text.splitlines()) <= 24
    assert "and 16 turns more" in text
    assert "  and 16 more" in text
    assert len(runner.cas("status", "--json").json()["pending_groups"]) == 20


def test_json_is_one_document_with_fixed_fields(runner: CommandRunner) -> None:
    runner.write("a.txt", b"1\n")
    runner.write("b.txt", b"1\n")
    runner.done("accept", "2")
    (runner.folder / "b.txt").write_bytes(b"2\n")
    document = runner.cas("status", "--json").json()
    (change,) = document.pop("external_changes")
    store = document.pop("store")
    assert document.pop("unreadable") == []
    assert document.pop("markers") == []
    assert (document.pop("lost_histories"), document.pop("hook_failures")) == ([], 0)
    assert document.pop("secrets") == {"not_recorded": [], "stored": []}
    assert document == {
        "workspace": str(runner.folder),
        "edits": 2,
        "pending": 1,
        "accepted": 1,
        "rejected": 0,
        "away": 0,
        "comments": {"open": 0, "sent": 0, "answered": 0},
        "collisions": [],
        "running_calls": [],
        "commits": [],
        "committed": None,
        "compared_files": None,
        "policies": [],
        "cautions": [],
        "remotes": [],
        "conversations": 1,
        "sessions": 1,
        "changes": None,
        "unseen": None,
        "pending_groups": [
            {
                "conversation_id": "conv_one",
                "is_unattributed": False,
                "turn": None,
                "file_path": str(runner.folder / "a.txt"),
                "edits": [1],
                "lines_added": 1,
                "lines_removed": 0,
            }
        ],
    }
    sizes = {"bytes", "folder_bytes", "blobs", "max_size", "older_than", "free_blobs", "free_bytes", "old_edits"}
    assert set(store) == sizes
    assert store["folder_bytes"] > store["bytes"] > 0
    assert store["blobs"] == 1
    blobs = change.pop("blob_recorded"), change.pop("blob_found")
    assert change == {
        "file_path": str(runner.folder / "b.txt"),
        "change": "modified",
        "taken_by": None,
        "mode_recorded": 0o644,
        "mode_found": 0o644,
    }
    assert all(len(blob) == 64 for blob in blobs)
    assert blobs[0] != blobs[1]


def test_the_size_of_the_folder_is_said_beside_that_of_the_store(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    found = re.search(
        r"^store: (\S+ \S+) in 1 blob, the folder .cas (\S+ \S+)$", runner.done("status").text, re.MULTILINE
    )
    assert found is not None
    store = runner.done("status", "--json").json()["store"]
    files = [path for path in (runner.folder / ".cas").rglob("*") if path.is_file()]
    # While a process reads the index, SQLite keeps a few more files next to it.
    assert 0 <= store["folder_bytes"] - sum(path.stat().st_size for path in files) < 100_000
    assert store["bytes"] == sum(path.stat().st_size for path in files if path.parent.name == "segments")
    assert found.groups() == (size_text(store["bytes"]), size_text(store["folder_bytes"]))


def test_the_workspace_of_a_status_is_given_by_folder_option_or_variable(runner: CommandRunner) -> None:
    runner.write("a.txt", b"1\n")
    (runner.folder / ".cas" / "hook.log").write_bytes(b"a fault\n")
    here = runner.cas("status")
    assert (here.status, here.said, here.text.splitlines()[-1][:15]) == (0, "", "hooks: 1 error,")
    assert here == unforked_cas("-C", str(runner.folder), "status", folder=Path("/"))
    assert here == unforked_cas("status", folder=Path("/"), settings={"CAS_WORKSPACE": str(runner.folder)})
    for words, status in ((["status"], 10), (["-C", "/nowhere", "status"], 2), (["status", "more"], 2)):
        ended = unforked_cas(*words, folder=Path("/"))
        assert (ended.status, ended.text) == (status, "")
        assert ended.said.startswith("cas: ")


def test_a_status_onto_a_full_disk_exits_with_1(runner: CommandRunner) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [*PROGRAM, "status"],
            cwd=runner.folder,
            env=environment({}),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (ran.returncode, ran.stderr.decode()) == (
        1,
        "cas: The output could not be written: No space left on device\n",
    )


def test_an_unreadable_file_is_reported_in_json_as_valid_unicode(runner: CommandRunner) -> None:
    name = "bad\udcff"
    runner.write(name, b"1\n")
    os.truncate(runner.folder / name, (256 << 30) + 1)
    (sentence,) = runner.done("status", "--json").json()["unreadable"]
    assert sentence.startswith("bad\ufffd: ")
    assert "\ncan't be read:\n  \"bad\\xff: " in runner.done("status").text


def test_each_file_that_cannot_be_read_is_named_once_whatever_its_name(runner: CommandRunner) -> None:
    runner.write("a: b", b"1\n")
    (runner.folder / "a").write_bytes(b"1\n")
    runner.done("record")
    for name in ("a", "a: b"):
        (runner.folder / name).chmod(0)
    unreadable = cas_unprivileged("status", "--json", folder=runner.folder).json()["unreadable"]
    assert [each.partition(": Permission")[0] for each in unreadable] == ["a: b", "a"]


def test_counts_of_any_length_are_aligned(runner: CommandRunner) -> None:
    runner.write("a", b"x\n" * 30_000)
    runner.write("a", b"y\n" * 20_000)
    runner.write("b", b"x\n")
    rows = [line for line in runner.done("status").text.splitlines() if line.startswith("    ")]
    assert rows == ["    a  +50000 -30000  1 2", "    b          +1 -0  3"]


# ---- with a filter: a list of edits


def several(runner: CommandRunner) -> None:
    """Record six edits of three files in two conversations, and decide on three."""
    runner.write("src/a.py", b"1\n2\n", conversation="conv_one")
    runner.write("b.txt", b"1\n", conversation="conv_two")
    runner.edit("src/a.py", b"2\n", b"two\n", conversation="conv_two")
    runner.move("src/a.py", "c.py")
    runner.write("b.txt", b"2\n", conversation="conv_two")
    runner.delete("b.txt")
    runner.done("accept", "1")
    runner.done("reject", "3", "--reason", "words")
    runner.done("reject", "6")


FILTERS = [
    ("--conv conv_two", "5 3 2"),
    ("--conversation conv_t", "5 3 2"),
    ("--file b.txt", "6 5 2"),
    ("--file src/a.py", "4 3 1"),
    ("--file c.py", "4 3 1"),
    ("--file src", "4 3 1"),
    ("--file *.txt", "6 5 2"),
    ("--status pending", "5 4 2"),
    ("--status accepted", "1"),
    ("--status rejected", "6 3"),
    ("--conv conv_two --file b.txt", "5 2"),
    ("--conv conv_two --status rejected", "3"),
    ("--conv conv_two --file b.txt --status pending", "5 2"),
    ("--conv conv_one --file b.txt --status accepted", ""),
]


@pytest.mark.parametrize(("words", "edits"), FILTERS)
def test_a_filtered_status_lists_the_matching_edits_newest_first(runner: CommandRunner, words: str, edits: str) -> None:
    runner.prepared(several)
    ran = runner.cas("status", *words.split())
    assert (ran.status, ran.said) == (0, "" if edits else "No edit matches.\n")
    rows = [line for line in ran.text.splitlines() if not line.startswith("       reason: ")]
    assert [row.split()[0] for row in rows] == edits.split()
    found = runner.done("status", *words.split(), "--json").lines()
    assert [str(edit["seq"]) for edit in found] == edits.split()


def test_a_row_of_a_filtered_status_has_number_id_time_status_operation_file_and_conversation(
    runner: CommandRunner,
) -> None:
    runner.prepared(several)
    logged = {edit["seq"]: edit for edit in runner.done("log", "--json").lines()}
    rows = runner.done("status", "--file", "src/a.py").text.splitlines()
    names = ["src/a.py -> c.py  conv_one", "src/a.py  conv_two", "src/a.py  conv_one"]
    assert rows.pop(2) == "       reason: words"
    for row, seq, name in zip(rows, (4, 3, 1), names, strict=True):
        edit = logged[seq]
        time = edit["timestamp"][:19].replace("T", " ")
        expected = f"{seq:5}  {edit['edit_id'][:16]}  {time}  {edit['status']:9}  {edit['operation']:7}  {name}"
        decided = r"  by .+ \(script\)" if edit["decided"] else ""
        assert re.fullmatch(re.escape(expected) + decided, row)
        assert runner.done("show", edit["edit_id"][:16]).text.startswith(f"edit {seq}  ")


def test_a_filtered_status_is_printed_as_the_log_is_in_json(runner: CommandRunner) -> None:
    runner.prepared(several)
    found = runner.done("status", "--status", "rejected", "--json")
    assert found.out == runner.done("log", "--status", "rejected", "--json").out
    assert found.lines()[0].keys() >= {"edit_id", "timestamp", "status", "operation", "conversation_id", "file_path"}
    assert runner.done("status", "--status", "accepted", "--conv", "conv_two", "--json").out == b""


@pytest.mark.parametrize("width", [45, 60, 80, 100, 200])
def test_a_row_of_a_filtered_status_fits_the_terminal_and_keeps_id_and_operation(
    runner: CommandRunner, width: int
) -> None:
    runner.write(f"a{'/folder' * 12}/name.txt", b"1\n", conversation="conv_one_with_a_long_name" * 3)
    edit = runner.done("log", "--json").json()
    status, shown = runner.typed("status", "--status", "pending", COLUMNS=str(width))
    (row,) = shown.splitlines()
    row = re.sub(r"\x1b\[[0-9;]*m", "", row)
    assert (status, len(row) <= width) == (0, True)
    assert row.split()[1] == edit["edit_id"][: 8 if width < 100 else 16]
    assert "  create   " in row
    assert ".txt" in row


def test_names_in_a_filtered_status_are_escaped(runner: CommandRunner) -> None:
    runner.write("a\x1b[2J\n", b"1\n", conversation="conv\x1b[2J")
    (row,) = runner.done("status", "--status", "pending").text.splitlines()
    assert row.endswith('"a\\x1b[2J\\n"  "conv\\x1b[2J"')


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--conv", "none"], 1, "cas: No conversation is named 'none' here.\n"),
        (["--file", "none"], 1, "cas: No recorded file is named 'none' here.\n"),
        (["--status", "maybe"], 2, "cas: Invalid value for '--status': 'maybe' is not one of "),
        (["--file", "a", "--file", "b"], 2, "cas: '--file' takes one value, not 2.\n"),
    ],
)
def test_a_filter_that_names_nothing_is_refused(
    runner: CommandRunner, words: list[str], status: int, said: str
) -> None:
    runner.prepared(several)
    ran = runner.cas("status", *words)
    assert (ran.status, ran.text) == (status, "")
    assert ran.said.startswith(said)


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


IN_ITS_PLACE: Final[dict[str, Callable[[Path], object]]] = {
    "folder": Path.mkdir,
    "link": lambda path: path.symlink_to("x"),
    "named pipe": os.mkfifo,
    "socket": bind,
    "": Path.exists,
}


@pytest.mark.parametrize("has_edits", [False, True])
@pytest.mark.parametrize("kind", IN_ITS_PLACE)
def test_status_says_what_is_in_the_place_of_a_file(runner: CommandRunner, kind: str, *, has_edits: bool) -> None:
    if has_edits:
        runner.write("a", b"a\n")
    else:
        (runner.folder / "a").write_bytes(b"a\n")
    runner.done("record")
    (runner.folder / "a").unlink()
    IN_ITS_PLACE[kind](runner.folder / "a")
    found = runner.done("status", "--json").json()["external_changes"]
    assert [each["taken_by"] for each in found] == [kind or None]
    there = f"  (a {kind} is there)" if kind else ""
    assert re.search(f"(deleted |modified) +a{re.escape(there)}\n", runner.done("status").text)
