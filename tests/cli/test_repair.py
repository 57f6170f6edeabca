"""`cas fsck` and `cas salvage`: damage is told, with what it means, and what is left becomes a working store."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cli.progress import progress_line
from objstore import BlobId, blob_id
from objstore.indexfile import checksum, prepare
from tests.cli.desk import Desk, cas, with_progress
from tests.store.losses import damage, lose


def segment(desk: Desk) -> Path:
    (only,) = (desk.folder / ".cas" / "segments").iterdir()
    return only


def break_record(desk: Desk, seq: int) -> None:
    """Flip one bit in the record of an edit."""
    name = b"\xa3seq" + bytes([seq])
    (path,) = [path for path in (desk.folder / ".cas" / "segments").iterdir() if name in path.read_bytes()]
    content = bytearray(path.read_bytes())
    content[content.index(name)] ^= 1
    path.write_bytes(content)


def four_edits(desk: Desk) -> None:
    desk.write("a", b"one\n")
    desk.write("b", b"b\n")
    desk.write("a", b"one\ntwo\n")
    desk.write("a", b"one\ntwo\nthree\n")


def test_a_sound_store_is_said_to_be_sound(desk: Desk) -> None:
    four_edits(desk)
    assert desk.done("fsck").text == "1 segment, 4 blobs, 4 records, 2 files replayed: nothing is wrong.\n"
    report = desk.done("fsck", "--quick", "--json").json()
    assert (report["sound"], report["faults"], report["notes"], report["documents"]) == (True, [], [], 0)


def test_damage_is_told_with_what_it_means(desk: Desk) -> None:
    four_edits(desk)
    break_record(desk, 2)
    ran = desk.cas("fsck")
    assert ran.status == 1
    assert "a frame's checksum does not match" in ran.text
    assert "edit 2 among them" in ran.text
    report = desk.cas("fsck", "--json")
    assert report.status == 1
    assert {fault["part"] for fault in report.json()["faults"]} == {"segments", "records"}


def test_whoever_meets_damage_is_told_where_to_look(desk: Desk) -> None:
    four_edits(desk)
    break_record(desk, 2)
    ran = desk.cas("log")
    assert ran.status == 1
    assert ran.said.startswith("cas: Store damaged in segment 1 at byte ")
    assert ran.said.endswith("\n`cas fsck` tells what is damaged, and what that means for which files.\n")


def test_whoever_meets_what_is_lost_is_told_where_to_look(desk: Desk) -> None:
    four_edits(desk)
    lost = blob_id(b"one\ntwo\n")
    lose(desk.folder, lost)
    for words in (["reject", "1"], ["show", "3"]):
        ran = desk.cas(*words)
        assert ran.status == 1
        assert ran.said == (
            f"cas: No blob {lost.hex()} in this store.\n"
            "`cas fsck` tells what is damaged, and what that means for which files.\n"
        )


def test_repair_makes_the_index_anew(desk: Desk) -> None:
    four_edits(desk)
    desk.done("reject", "2")
    (desk.folder / ".cas" / "index.sqlite").write_bytes(b"no index at all")
    report = desk.cas("fsck", "--repair", "--json")
    assert (report.status, report.json()["sound"]) == (0, True)
    assert desk.done("log", "--status", "rejected", "--json").lines()[0]["seq"] == 2


def test_repair_always_rebuilds_the_index_and_says_so(desk: Desk) -> None:
    four_edits(desk)
    with closing(sqlite3.connect(desk.folder / ".cas" / "index.sqlite")) as db:
        prepare(db)
        values = b"gone.txt", 1, 2, 3, 4, b"\0" * 32
        db.execute("INSERT INTO seen VALUES (?, ?, ?, ?, ?, ?, ?)", (*values, checksum("seen", *values)))
        db.commit()  # what no check can know to be wrong
        ran = desk.done("fsck", "--repair")
        assert ran.text == (
            "Rebuilt the index from the log, repaired what else is derived and was wrong, and cleared .cas/tmp.\n"
            "1 segment, 4 blobs, 4 records, 2 files replayed: nothing is wrong.\n"
        )
        assert db.execute("SELECT * FROM seen WHERE path = ?", values[:1]).fetchall() == []
    assert desk.done("fsck", "--repair", "--json").json()["repaired"]


def test_repair_of_a_damaged_log_does_not_say_that_it_rebuilt_the_index(desk: Desk) -> None:
    four_edits(desk)
    break_record(desk, 2)
    ran = desk.cas("fsck", "--repair")
    assert ran.status == 1
    assert "Rebuilt" not in ran.text


def test_fsck_outside_a_workspace_says_so(tmp_path: Path) -> None:
    assert cas("fsck", folder=tmp_path).status == 10


def test_salvage_makes_a_store_of_what_is_left(desk: Desk, tmp_path: Path) -> None:
    four_edits(desk)
    break_record(desk, 3)
    damaged = shutil.move(desk.folder / ".cas", tmp_path / "damaged")
    ran = desk.cas("salvage", str(damaged), "--to", ".")
    assert ran.status == 1
    assert "Lost edits: 3." in ran.text
    assert "a: changes between edit 1 and edit 4 are lost." in ran.text
    assert "Saved: 4 blobs, and 2 records in one unbroken journal." in ran.text
    report = json.loads((desk.folder / "salvage.json").read_bytes())
    assert [record["seq"] for record in report["beyond"]] == [4]
    assert desk.bytes("recovered/edit-4/a") == b"one\ntwo\nthree\n"
    assert [edit["seq"] for edit in desk.done("log", "--json").lines()] == [2, 1]
    assert desk.done("fsck", "--json").json()["sound"]
    desk.done("reject", "2")


def test_salvage_names_the_snapshot_of_which_a_folder_is_lost_and_the_next_look_goes_on_without(
    desk: Desk, tmp_path: Path
) -> None:
    (desk.folder / "a").write_bytes(b"never recorded\n")
    desk.done("record")
    lost = desk.done("snapshot", "list", "--json").lines()[0]["root"]
    desk.write("b", b"b\n")
    damage(desk.folder, BlobId(bytes.fromhex(lost)))
    damaged = shutil.move(desk.folder / ".cas", tmp_path / "damaged")
    ran = desk.cas("salvage", str(damaged), "--to", ".")
    assert ran.status == 1
    assert f"Lost blob {lost}: no frame of it can be read (snapshots 1).\n" in ran.text
    (blob,) = json.loads((desk.folder / "salvage.json").read_bytes())["lost_blobs"]
    assert (blob["blob"], blob["snapshots"]) == (lost, [1])
    assert desk.done("record", "--json").json()["first_look"]
    (desk.folder / "a").write_bytes(b"changed\n")
    assert [Path(edit["file_path"]).name for edit in desk.done("record", "--json").json()["edits"]] == ["a"]
    desk.done("fsck")


def test_of_a_store_without_segments_it_is_said_that_they_are_gone_and_not_that_there_is_none(desk: Desk) -> None:
    four_edits(desk)
    for segment in (desk.folder / ".cas/segments").iterdir():
        segment.unlink()
    for words in (["status"], ["log"], ["record"], ["cat", "a"]):
        ran = desk.cas(*words)
        said, hint = ran.said.splitlines()
        assert (ran.status, said) == (1, "cas: Store damaged in segment 1 at byte 0: there is no segment")
        assert hint.startswith("`cas fsck` tells what is damaged")
    assert "unless the segments were moved away" in desk.cas("fsck").text


def test_what_holds_no_segments_cannot_be_salvaged_and_what_to_name_is_said(desk: Desk) -> None:
    (desk.folder / "empty").mkdir()
    ran = desk.cas("salvage", "empty", "--to", "new")
    assert (ran.status, ran.said) == (
        1,
        "cas: No segment file (.seg) is in empty. Name a .cas folder, a copy of one, or a folder of segment files.\n",
    )
    assert not (desk.folder / "new").exists()


def test_a_dry_run_of_salvage_writes_nothing(desk: Desk) -> None:
    four_edits(desk)
    before = sorted(desk.folder.rglob("*"))
    assert desk.done("salvage", ".", "--dry-run").text.endswith("Nothing is lost.\n")
    assert desk.done("salvage", ".cas", "--dry-run", "--json").json()["whole"]
    assert desk.done("salvage", ".", "--to", "new", "-n").text == desk.done("salvage", ".", "-n").text
    assert sorted(desk.folder.rglob("*")) == before


def test_salvage_refuses_where_a_store_is_and_what_makes_no_sense(desk: Desk, tmp_path: Path) -> None:
    four_edits(desk)
    ran = desk.cas("salvage", ".", "--to", ".")
    assert (ran.status, ran.said) == (1, "cas: ./.cas is there already. Put it aside (mv), or say another DIR.\n")
    assert desk.cas("salvage", ".").status == 2
    assert desk.cas("salvage", ".", "--to", str(tmp_path / "new"), "--store-id", "xyz").status == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fsck"], b"checking [........................] 0 of 4 blobs"),
        (["verify", "--all"], b"checking [........................] 0 of 4 blobs"),
        (["salvage", ".", "--dry-run"], b"checking [........................] 0 of 4 blobs"),
        (["export", "--bundle", "all.bundle"], b"writing [########################] "),
    ],
)
def test_only_what_takes_its_time_tells_how_far_it_is(desk: Desk, words: list[str], told: bytes) -> None:
    four_edits(desk)
    _, shown = with_progress(*words, folder=desk.folder, patience=0)
    assert told in shown
    assert shown.endswith(b"\r\x1b[K")  # the line is gone at the end
    (desk.folder / "all.bundle").unlink(missing_ok=True)
    _, shown = with_progress(*words, folder=desk.folder, patience=3600)
    assert shown == b""


def test_a_check_tells_how_far_it_is_and_how_long_it_takes() -> None:
    bar = ("........................", "######..................", "########################")
    assert progress_line("checking", "blobs", 0, 40, 0.0) == f"checking [{bar[0]}] 0 of 40 blobs"
    assert progress_line("checking", "blobs", 10, 40, 30.0) == f"checking [{bar[1]}] 10 of 40 blobs, 1 min 31 s left"
    assert progress_line("checking", "blobs", 40, 40, 9.0) == f"checking [{bar[2]}] 40 of 40 blobs, 1 s left"
