"""`cas gc`: what goes is shown before it goes, and told of for ever after."""

import hashlib
import json
import re
import sqlite3
from contextlib import closing

import pytest

from tests.support.command_runner import CommandRunner, with_progress


def decided(runner: CommandRunner) -> None:
    """Record eight edits of two conversations, and accept those of the first."""
    for number in range(6):
        runner.write("f", b"%d\n" % number * 200)
    for number in range(2):
        runner.write("g", b"g %d\n" % number * 200, conversation="conv_two")
    runner.done("accept", "--conversation", "conv_one")


def test_a_dry_run_shows_what_would_go_and_changes_nothing(runner: CommandRunner) -> None:
    decided(runner)
    segment = runner.folder / ".cas" / "segments" / "00000001.seg"
    before = segment.read_bytes()
    text = runner.done("gc", "--older-than", "0s", "--dry-run").text
    assert "Dry run: nothing was changed.\nWould expire 6 edits, the newest of " in text
    assert ": older than 0 seconds.\nWould free " in text
    told = runner.done("gc", "--older-than", "0s", "--dry-run", "--json").json()
    assert told["expired"][0]["edit_ranges"] == [[1, 6]]
    assert (told["frees"]["blobs"], told["done"], told["store"]["bytes_after"]) == (5, False, None)
    assert segment.read_bytes() == before


def test_what_went_is_marked_and_refused_with_the_reason(runner: CommandRunner) -> None:
    decided(runner)
    told = runner.done("gc", "--older-than", "0s", "--json").json()
    assert (told["done"], told["expired"][0]["edits"]) == (True, 6)
    log = runner.done("log").text.splitlines()
    assert [line.endswith("(expired)") for line in log] == [False] * 2 + [True] * 6
    shown = runner.cas("show", "2")
    assert shown.status == 1
    assert "older than 0 seconds: its content is no longer kept" in shown.text
    assert "cas: Edit 2 expired on " in shown.said
    for command in ("accept", "reject", "reset"):
        refused = runner.cas(command, "2")
        assert (refused.status, "Edit 2 expired on " in refused.said) == (1, True)
    assert runner.cas("undo").status == 1
    assert runner.cas("amend", "2").status == 1
    assert runner.cas("reject", "--conversation", "conv_one").status == 1
    assert "expired" in runner.cas("log", "-p").text
    shapes = {line["seq"]: line for line in runner.done("log", "--json").lines()}
    assert shapes[6]["expired"]["reason"] == "older than 0 seconds"
    assert (shapes[5]["hash_after"], shapes[8]["expired"]) == (None, None)
    assert runner.cas("show", "2", "--json").json()["edits"][0]["diff"] is None
    assert runner.done("fsck", "--json").json()["sound"]
    assert runner.done("blame", "f").text.count("(before the first edit that is kept)") == 200


def test_of_lines_from_before_the_first_edit_blame_says_whether_others_have_expired(runner: CommandRunner) -> None:
    (runner.folder / "mine").write_bytes(b"1\n")
    runner.write("mine", b"1\ntwo\n")
    runner.write("f", b"1\n", conversation="conv_two")
    runner.write("f", b"1\ntwo\n")
    runner.done("accept", "2")
    runner.done("gc", "--older-than", "0s")
    for name, said in (("mine@1", "recorded edit"), ("f@3", "edit that is kept")):
        first, second = runner.done("blame", name).text.splitlines()
        assert first.split("  ")[0] == f"(before the first {said})"
        assert second.split()[0] == f"{name[-1]}:1"
        assert runner.done("blame", name[:-2]).text.splitlines() == [first, second]


def test_of_what_went_the_hash_is_told_where_the_bytes_are_kept_for_something_else(runner: CommandRunner) -> None:
    runner.write("f", b"1\n")
    runner.write("f", b"2\n")
    runner.done("accept", "--all")
    assert all(edit["hash_after"] for edit in runner.done("log", "--json").lines())  # each is worked out once, and kept
    runner.done("gc", "--older-than", "0s")
    second, first = runner.done("log", "--json").lines()
    assert (first["expired"], second["expired"]) != (None, None)
    assert runner.done("cat", second["blob_after"]).out == b"2\n"
    assert (first["hash_before"], first["hash_after"]) == (None, None)
    assert (second["hash_before"], second["hash_after"]) == (None, hashlib.sha256(b"2\n").hexdigest())
    assert (first["lost"], second["lost"]) == (None, None)  # let go, which is no loss


def test_what_was_freed_is_said_and_no_more(runner: CommandRunner) -> None:
    decided(runner)
    before = runner.done("status", "--json").json()["store"]["bytes"]
    said = re.fullmatch(
        r"Expired 6 edits, the newest of .*\nFreed ([0-9.]+) (kB|bytes); the store now takes ([0-9.]+) kB\.\n",
        runner.done("gc", "--older-than", "0s").text,
    )
    assert said is not None
    freed, after = float(said[1]) * (1000 if said[2] == "kB" else 1), float(said[3]) * 1000
    assert abs(after - runner.done("status", "--json").json()["store"]["bytes"]) <= 100
    assert 0 <= freed < before
    repacked = runner.done("gc", "--repack").text.splitlines()
    assert [line.split(" ", 1)[0] for line in repacked] == ["No", "Freed", "Compressed"]


def test_groups_are_what_can_still_be_decided(runner: CommandRunner) -> None:
    decided(runner)
    runner.done("gc", "--older-than", "0s")
    runner.done("reject", "--all")
    assert not (runner.folder / "g").exists()
    assert runner.bytes("f") == b"5\n" * 200


def test_settings_say_what_goes_where_no_option_does(runner: CommandRunner) -> None:
    decided(runner)
    assert json.loads(runner.done("gc", "--dry-run", "--json").text)["expired"] == []
    runner.done("config", "set", "retention.older_than", "0s")
    assert "`cas gc` may expire 6 old edits" in runner.done("status").text
    assert runner.done("gc", "--dry-run", "--json").json()["expired"][0]["edits"] == 6
    assert runner.done("gc", "--older-than", "never", "--json").json()["expired"] == []
    runner.done("gc")
    assert "old edits" not in runner.done("status").text


def test_what_cannot_be_kept_to_is_said(runner: CommandRunner) -> None:
    runner.write("f", b"pending\n" * 500)
    text = runner.done("gc", "--max-size", "100B").text
    assert "No history expires." in text
    assert " over the limit: everything that is left is pending, pinned or needed." in text
    assert "over the limit" not in runner.done("status").text
    runner.done("config", "set", "retention.max_size", "100B")
    assert "over the limit" in runner.done("status").text


def test_a_repack_says_what_it_came_to_and_its_dry_run_what_it_would(runner: CommandRunner) -> None:
    for number in range(40):
        runner.write("f", b"".join(b"line %d of the file\n" % (line * 7919 % 1000) for line in range(60 + number)))
    for number in range(3):
        runner.write(f"g{number}", runner.bytes("f") + b"%d\n" % number)
    before = runner.done("gc", "--json").json()
    assert before["repack"] is None
    planned = runner.done("gc", "--repack", "--dry-run", "--json").json()["repack"]
    assert (planned["blobs"], planned["segments"], planned["done"]) == (43, None, False)
    assert planned["bytes_after"] < planned["bytes_before"] == before["store"]["bytes_after"]
    assert "Would compress 43 blobs: the store, as it is now, from " in runner.done("gc", "--repack", "--dry-run").text
    told = runner.done("gc", "--repack", "--json").json()["repack"]
    assert (told["blobs"], told["segments"], told["done"]) == (43, 1, True)
    assert told["bytes_after"] <= planned["bytes_after"] + 200
    assert "Compressed 43 blobs: the store from " in runner.done("gc", "--repack").text
    assert runner.done("fsck", "--json").json()["sound"]


def test_what_makes_no_sense_is_refused(runner: CommandRunner) -> None:
    ran = runner.cas("gc", "--older-than", "soon")
    assert (ran.status, "as in 30d, or never" in ran.said) == (2, True)
    ran = runner.cas("gc", "--max-size", "much")
    assert (ran.status, "as in 2GB, or unlimited" in ran.said) == (2, True)


@pytest.mark.parametrize(("patience", "told"), [(0, True), (3600, False)])
def test_only_what_takes_its_time_tells_how_far_it_is(runner: CommandRunner, patience: int, told: bool) -> None:  # noqa: FBT001 -- pytest passes by name
    decided(runner)
    _, shown = with_progress("gc", "--older-than", "0s", folder=runner.folder, patience=patience)
    assert (b"expiring [########################] 6 of 6 edits" in shown) is told
    assert (b"compacting [........................] 0 of 1 segments" in shown) is told
    if told:
        assert shown.endswith(b"\r\x1b[K")


@pytest.mark.parametrize("as_json", [False, True])
def test_an_index_that_is_wrong_is_made_anew_and_told_of(runner: CommandRunner, *, as_json: bool) -> None:
    decided(runner)
    with closing(sqlite3.connect(runner.folder / ".cas" / "index.sqlite")) as db, db:
        tip = db.execute("SELECT hex(blob) FROM documents WHERE path = ?", (b"g",)).fetchone()[0].lower()
        assert db.execute("UPDATE blobs SET refs = 0 WHERE id = ?", (bytes.fromhex(tip),)).rowcount == 1
    damage = f"blob {tip} is in use but not counted as held"
    ran = runner.done("gc", "--older-than", "0s", *(["--json"] if as_json else []))
    if as_json:
        assert ran.json()["index_damage"] == damage
        assert runner.done("gc", "--json").json()["index_damage"] is None
    else:
        assert f"Note: the index was wrong and was rebuilt from the log: {damage}.\n" in ran.text
        assert "index" not in runner.done("gc").text
    assert runner.done("fsck", "--json").json()["sound"]


def test_a_limit_of_one_byte_is_not_said_as_several_are(runner: CommandRunner) -> None:
    runner.write("f", b"1\n")
    runner.done("accept", "1")
    for limit, said in (("1B", "1 byte"), ("2B", "2 bytes")):
        assert f"the store was over {said}.\n" in runner.done("gc", "--max-size", limit, "-n").text
