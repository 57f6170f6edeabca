"""`cas status`: the workspace on one screen, and as one JSON document."""

import os
import subprocess
from pathlib import Path

from tests.support.command_runner import PROGRAM, CommandRunner, environment, unforked_cas


def test_an_empty_workspace_has_nothing_pending(runner: CommandRunner) -> None:
    ran = runner.cas("status")
    assert (ran.status, ran.said) == (0, "")
    assert f"{runner.folder}: 0 edits in 0 conversations, 0 pending, 0 accepted, 0 rejected" in ran.text


def test_pending_edits_stand_under_their_conversation_and_file(runner: CommandRunner) -> None:
    runner.write("a.txt", b"1\n")
    runner.write("b.txt", b"1\n2\n", conversation="conv_two")
    runner.write("a.txt", b"one\n")
    lines = runner.cas("status").text.splitlines()
    assert lines[:7] == [
        f"{runner.folder}: 3 edits in 2 conversations, 3 pending, 0 accepted, 0 rejected",
        "",
        "pending (`cas review` goes through it):",
        "  conv_one",
        "    a.txt      +2 -1  1 3",
        "  conv_two",
        "    b.txt      +2 -0  2",
    ]


def test_names_of_any_width_stand_in_one_column(runner: CommandRunner) -> None:
    for name in ("plain.txt", "日本語.txt", "e\u0301te\u0301.txt", "a\u200bb"):
        runner.write(name, b"1\n")
    assert runner.done("status").text.splitlines()[4:8] == [
        "    plain.txt       +1 -0  1",
        "    日本語.txt      +1 -0  2",
        "    e\u0301te\u0301.txt         +1 -0  3",
        '    "a\\u200bb"      +1 -0  4',
    ]


def test_what_is_decided_is_counted_and_no_longer_pending(runner: CommandRunner) -> None:
    for number in range(3):
        runner.write(f"{number}.txt", b"x\n")
    runner.done("accept", "1")
    runner.done("reject", "2")
    text = runner.cas("status").text
    assert "3 edits in 1 conversation, 1 pending, 1 accepted, 1 rejected" in text
    assert "    2.txt      +1 -0  3\n" in text
    assert "0.txt" not in text


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


def test_a_crowded_workspace_still_fits_one_screen(runner: CommandRunner) -> None:
    for number in range(20):
        runner.write(f"{number}.txt", b"x\n", conversation=f"conv_{number}")
    for number in range(20):
        (runner.folder / f"{number}.txt").write_bytes(b"y\n")
    text = runner.cas("status").text
    assert len(text.splitlines()) <= 24
    assert "and 15 files more" in text
    assert "  and 16 more" in text
    assert len(runner.cas("status", "--json").json()["pending_groups"]) == 20


def test_json_is_one_document_of_a_fixed_shape(runner: CommandRunner) -> None:
    runner.write("a.txt", b"1\n")
    runner.write("b.txt", b"1\n")
    runner.done("accept", "2")
    (runner.folder / "b.txt").write_bytes(b"2\n")
    document = runner.cas("status", "--json").json()
    (change,) = document.pop("external_changes")
    store = document.pop("store")
    assert document.pop("unreadable") == []
    assert document.pop("markers") == []
    assert document == {
        "workspace": str(runner.folder),
        "edits": 2,
        "pending": 1,
        "accepted": 1,
        "rejected": 0,
        "conversations": 1,
        "pending_groups": [
            {
                "conversation_id": "conv_one",
                "file_path": str(runner.folder / "a.txt"),
                "edits": [1],
                "lines_added": 1,
                "lines_removed": 0,
            }
        ],
    }
    assert set(store) == {"bytes", "blobs", "max_size", "older_than", "free_blobs", "free_bytes", "old_edits"}
    assert store["bytes"] > 0
    assert store["blobs"] == 1
    blobs = change.pop("blob_recorded"), change.pop("blob_found")
    assert change == {
        "file_path": str(runner.folder / "b.txt"),
        "change": "modified",
        "mode_recorded": 0o644,
        "mode_found": 0o644,
    }
    assert all(len(blob) == 64 for blob in blobs)
    assert blobs[0] != blobs[1]


def test_a_status_is_of_the_workspace_that_is_asked_for(runner: CommandRunner) -> None:
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


def test_a_status_onto_a_full_disk_ends_as_any_command(runner: CommandRunner) -> None:
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


def test_a_file_that_cannot_be_looked_at_is_told_in_text_that_every_reader_of_json_takes(runner: CommandRunner) -> None:
    name = "bad\udcff"
    runner.write(name, b"1\n")
    os.truncate(runner.folder / name, (256 << 30) + 1)
    (sentence,) = runner.done("status", "--json").json()["unreadable"]
    assert sentence.startswith("bad\ufffd: ")
    assert "\ncan't be read:\n  \"bad\\xff: " in runner.done("status").text


def test_counts_stand_below_each_other_however_long_they_are(runner: CommandRunner) -> None:
    runner.write("a", b"x\n" * 30_000)
    runner.write("a", b"y\n" * 20_000)
    runner.write("b", b"x\n")
    rows = [line for line in runner.done("status").text.splitlines() if line.startswith("    ")]
    assert rows == ["    a  +50000 -30000  1 2", "    b          +1 -0  3"]
