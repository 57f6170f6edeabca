"""`cas fsck` reports damage and its consequences; `cas salvage` makes a working store of what is left."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cli.screen.progress import progress_line
from objstore import BlobId, blob_id
from objstore.storage.index.database import checksum, prepare
from tests.support.command_runner import CommandRunner, cas, with_progress
from tests.support.damaged_stores import damage, lose


def segment(runner: CommandRunner) -> Path:
    (only,) = (runner.folder / ".cas" / "segments").iterdir()
    return only


def break_record(runner: CommandRunner, seq: int) -> None:
    """Flip one bit in the record of an edit."""
    name = b"\xa3seq" + bytes([seq])
    (path,) = [path for path in (runner.folder / ".cas" / "segments").iterdir() if name in path.read_bytes()]
    content = bytearray(path.read_bytes())
    content[content.index(name)] ^= 1
    path.write_bytes(content)


def four_edits(runner: CommandRunner) -> None:
    runner.write("a", b"one\n")
    runner.write("b", b"b\n")
    runner.write("a", b"one\ntwo\n")
    runner.write("a", b"one\ntwo\nthree\n")


def test_fsck_of_an_undamaged_store_finds_nothing(runner: CommandRunner) -> None:
    four_edits(runner)
    assert runner.done("fsck").text == "1 segment, 4 blobs, 4 records, 2 files replayed: nothing is wrong.\n"
    report = runner.done("fsck", "--quick", "--json").json()
    assert (report["sound"], report["faults"], report["notes"], report["documents"]) == (True, [], [], 0)


def test_fsck_reports_damage_with_the_affected_edits(runner: CommandRunner) -> None:
    four_edits(runner)
    break_record(runner, 2)
    ran = runner.cas("fsck")
    assert ran.status == 1
    assert "a frame's checksum does not match" in ran.text
    assert "including edit 2" in ran.text
    report = runner.cas("fsck", "--json")
    assert report.status == 1
    assert {fault["part"] for fault in report.json()["faults"]} == {"segments", "records"}


def test_commands_that_read_damage_name_fsck(runner: CommandRunner) -> None:
    four_edits(runner)
    break_record(runner, 2)
    ran = runner.cas("log")
    assert ran.status == 1
    assert ran.said.startswith("cas: Store damaged in segment 1 at byte ")
    assert ran.said.endswith("\nRun `cas fsck` to see what is damaged and which files that affects.\n")


def test_commands_that_need_a_lost_blob_name_fsck(runner: CommandRunner) -> None:
    four_edits(runner)
    lost = blob_id(b"one\ntwo\n")
    lose(runner.folder, lost)
    for words in (["reject", "1"], ["show", "3"]):
        ran = runner.cas(*words)
        assert ran.status == 1
        assert ran.said == (
            f"cas: No blob {lost.hex()} in this store.\n"
            "Run `cas fsck` to see what is damaged and which files that affects.\n"
        )


def test_repair_rebuilds_an_invalid_index(runner: CommandRunner) -> None:
    four_edits(runner)
    runner.done("reject", "2")
    (runner.folder / ".cas" / "index.sqlite").write_bytes(b"no index at all")
    report = runner.cas("fsck", "--repair", "--json")
    assert (report.status, report.json()["sound"]) == (0, True)
    assert runner.done("log", "--status", "rejected", "--json").lines()[0]["seq"] == 2


def test_repair_always_rebuilds_the_index_and_says_so(runner: CommandRunner) -> None:
    four_edits(runner)
    with closing(sqlite3.connect(runner.folder / ".cas" / "index.sqlite")) as db:
        prepare(db)
        values = b"gone.txt", 1, 2, 3, 4, b"\0" * 32
        db.execute("INSERT INTO file_stats VALUES (?, ?, ?, ?, ?, ?, ?)", (*values, checksum("file_stats", *values)))
        db.commit()  # a wrong row that no check can find
        ran = runner.done("fsck", "--repair")
        assert ran.text == (
            "Rebuilt the index from the log, repaired the other derived data, and cleared .cas/tmp.\n"
            "1 segment, 4 blobs, 4 records, 2 files replayed: nothing is wrong.\n"
        )
        assert db.execute("SELECT * FROM file_stats WHERE path = ?", values[:1]).fetchall() == []
    assert runner.done("fsck", "--repair", "--json").json()["repaired"]


def test_repair_of_a_damaged_log_does_not_say_that_it_rebuilt_the_index(runner: CommandRunner) -> None:
    four_edits(runner)
    break_record(runner, 2)
    ran = runner.cas("fsck", "--repair")
    assert ran.status == 1
    assert "Rebuilt" not in ran.text


def test_fsck_outside_a_workspace_says_so(tmp_path: Path) -> None:
    assert cas("fsck", folder=tmp_path).status == 10


def test_salvage_makes_a_store_of_the_readable_records(runner: CommandRunner, tmp_path: Path) -> None:
    four_edits(runner)
    break_record(runner, 3)
    damaged = shutil.move(runner.folder / ".cas", tmp_path / "damaged")
    ran = runner.cas("salvage", str(damaged), "--to", ".")
    assert ran.status == 1
    assert "Lost edits: 3." in ran.text
    assert "a: changes between edit 1 and edit 4 are lost." in ran.text
    assert "Saved: 4 blobs, and 2 records in one unbroken journal." in ran.text
    report = json.loads((runner.folder / "salvage.json").read_bytes())
    assert [record["seq"] for record in report["beyond"]] == [4]
    assert runner.bytes("recovered/edit-4/a") == b"one\ntwo\nthree\n"
    assert [edit["seq"] for edit in runner.done("log", "--json").lines()] == [2, 1]
    assert runner.done("fsck", "--json").json()["sound"]
    runner.done("reject", "2")


def test_salvage_names_a_baseline_with_a_lost_tree_and_the_next_scan_takes_a_new_one(
    runner: CommandRunner, tmp_path: Path
) -> None:
    (runner.folder / "a").write_bytes(b"never recorded\n")
    runner.done("record")
    lost = runner.done("snapshot", "list", "--json").lines()[0]["root"]
    runner.write("b", b"b\n")
    damage(runner.folder, BlobId(bytes.fromhex(lost)))
    damaged = shutil.move(runner.folder / ".cas", tmp_path / "damaged")
    ran = runner.cas("salvage", str(damaged), "--to", ".")
    assert ran.status == 1
    assert f"Lost blob {lost}: no frame of it can be read (snapshots 1).\n" in ran.text
    (blob,) = json.loads((runner.folder / "salvage.json").read_bytes())["lost_blobs"]
    assert (blob["blob"], blob["snapshots"]) == (lost, [1])
    assert runner.done("record", "--json").json()["first_look"]
    (runner.folder / "a").write_bytes(b"changed\n")
    assert [Path(edit["file_path"]).name for edit in runner.done("record", "--json").json()["edits"]] == ["a"]
    runner.done("fsck")


def test_a_store_without_segments_is_reported_as_damaged(
    runner: CommandRunner,
) -> None:
    four_edits(runner)
    for segment in (runner.folder / ".cas/segments").iterdir():
        segment.unlink()
    for words in (["status"], ["log"], ["record"], ["cat", "a"]):
        ran = runner.cas(*words)
        message, hint = ran.said.splitlines()
        assert (ran.status, message) == (1, "cas: Store damaged in segment 1 at byte 0: there is no segment")
        assert hint.startswith("Run `cas fsck` to see what is damaged")
    assert "unless the segments were moved away" in runner.cas("fsck").text


def test_salvage_of_a_folder_without_segments_is_refused(runner: CommandRunner) -> None:
    (runner.folder / "empty").mkdir()
    ran = runner.cas("salvage", "empty", "--to", "new")
    assert (ran.status, ran.said) == (
        1,
        "cas: No segment file (.seg) is in empty. Name a .cas folder, a copy of one, or a folder of segment files.\n",
    )
    assert not (runner.folder / "new").exists()


def test_a_dry_run_of_salvage_writes_nothing(runner: CommandRunner) -> None:
    four_edits(runner)
    before = sorted(runner.folder.rglob("*"))
    assert runner.done("salvage", ".", "--dry-run").text.endswith("Nothing is lost.\n")
    assert runner.done("salvage", ".cas", "--dry-run", "--json").json()["whole"]
    assert runner.done("salvage", ".", "--to", "new", "-n").text == runner.done("salvage", ".", "-n").text
    assert sorted(runner.folder.rglob("*")) == before


def test_salvage_refuses_an_existing_store_and_wrong_options(runner: CommandRunner, tmp_path: Path) -> None:
    four_edits(runner)
    ran = runner.cas("salvage", ".", "--to", ".")
    assert (ran.status, ran.said) == (1, "cas: ./.cas already exists. Move it away, or name another DIR.\n")
    assert runner.cas("salvage", ".").status == 2
    assert runner.cas("salvage", ".", "--to", str(tmp_path / "new"), "--store-id", "xyz").status == 2


@pytest.mark.parametrize(
    ("words", "progress"),
    [
        (["fsck"], b"checking [........................] 0 of 4 blobs"),
        (["verify", "--all"], b"checking [........................] 0 of 4 blobs"),
        (["salvage", ".", "--dry-run"], b"checking [........................] 0 of 4 blobs"),
        (["export", "--bundle", "all.bundle"], b"writing [########################] "),
    ],
)
def test_only_slow_commands_show_progress(runner: CommandRunner, words: list[str], progress: bytes) -> None:
    four_edits(runner)
    _, shown = with_progress(*words, folder=runner.folder, patience=0)
    assert progress in shown
    assert shown.endswith(b"\r\x1b[K")  # the progress line is erased at the end
    (runner.folder / "all.bundle").unlink(missing_ok=True)
    _, shown = with_progress(*words, folder=runner.folder, patience=3600)
    assert shown == b""


def test_a_progress_line_shows_the_count_and_the_remaining_time() -> None:
    bar = ("........................", "######..................", "########################")
    assert progress_line("checking", "blobs", 0, 40, 0.0) == f"checking [{bar[0]}] 0 of 40 blobs"
    assert progress_line("checking", "blobs", 10, 40, 30.0) == f"checking [{bar[1]}] 10 of 40 blobs, 1 min 31 s left"
    assert progress_line("checking", "blobs", 40, 40, 9.0) == f"checking [{bar[2]}] 40 of 40 blobs, 1 s left"
