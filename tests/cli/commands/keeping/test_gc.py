"""`cas gc`: a dry run shows what would expire, and expired edits say so afterwards."""

import hashlib
import json
import re
import sqlite3
from contextlib import closing

import pytest

from tests.support.command_runner import CommandRunner, with_progress


def six_accepted_and_two_pending_edits(runner: CommandRunner) -> None:
    """Record eight edits of two conversations, and accept those of the first."""
    for number in range(6):
        runner.write("f", b"%d\n" % number * 200)
    for number in range(2):
        runner.write("g", b"g %d\n" % number * 200, conversation="conv_two")
    runner.done("accept", "--conversation", "conv_one")


def test_a_dry_run_shows_what_would_expire_and_changes_nothing(runner: CommandRunner) -> None:
    six_accepted_and_two_pending_edits(runner)
    segment = runner.folder / ".cas" / "segments" / "00000001.seg"
    before = segment.read_bytes()
    text = runner.done("gc", "--older-than", "0s", "--dry-run").text
    assert "Dry run: nothing was changed.\nWould expire 6 edits, the newest of " in text
    assert ": older than 0 seconds.\nWould free " in text
    report = runner.done("gc", "--older-than", "0s", "--dry-run", "--json").json()
    assert report["expired"][0]["edit_ranges"] == [[1, 6]]
    assert (report["frees"]["blobs"], report["done"], report["store"]["bytes_after"]) == (5, False, None)
    assert segment.read_bytes() == before


def test_expired_edits_are_marked_and_refused_with_the_reason(runner: CommandRunner) -> None:
    six_accepted_and_two_pending_edits(runner)
    report = runner.done("gc", "--older-than", "0s", "--json").json()
    assert (report["done"], report["expired"][0]["edits"]) == (True, 6)
    log = runner.done("log").text.splitlines()
    assert ["(expired)" in line for line in log] == [False] * 2 + [True] * 6
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


def test_blame_says_whether_lines_precede_the_first_edit_or_the_first_kept_edit(runner: CommandRunner) -> None:
    (runner.folder / "mine").write_bytes(b"1\n")
    runner.write("mine", b"1\ntwo\n")
    runner.write("f", b"1\n", conversation="conv_two")
    runner.write("f", b"1\ntwo\n")
    runner.done("accept", "2")
    runner.done("gc", "--older-than", "0s")
    for name, edit in (("mine@1", "recorded edit"), ("f@3", "edit that is kept")):
        first, second = runner.done("blame", name).text.splitlines()
        assert first.split("  ")[0] == f"(before the first {edit})"
        assert second.split()[0] == f"{name[-1]}:1"
        assert runner.done("blame", name[:-2]).text.splitlines() == [first, second]


def test_expired_edits_keep_the_hash_of_content_that_is_held_otherwise(runner: CommandRunner) -> None:
    runner.write("f", b"1\n")
    runner.write("f", b"2\n")
    runner.done("accept", "--all")
    assert all(
        edit["hash_after"] for edit in runner.done("log", "--json").lines()
    )  # each hash is computed once and cached
    runner.done("gc", "--older-than", "0s")
    second, first = runner.done("log", "--json").lines()
    assert (first["expired"], second["expired"]) != (None, None)
    assert runner.done("cat", second["blob_after"]).out == b"2\n"
    assert (first["hash_before"], first["hash_after"]) == (None, None)
    assert (second["hash_before"], second["hash_after"]) == (None, hashlib.sha256(b"2\n").hexdigest())
    assert (first["lost"], second["lost"]) == (None, None)  # expired, not lost


def test_the_freed_bytes_are_reported_correctly(runner: CommandRunner) -> None:
    six_accepted_and_two_pending_edits(runner)
    before = runner.done("status", "--json").json()["store"]["bytes"]
    report = re.fullmatch(
        r"Expired 6 edits, the newest of .*\nFreed ([0-9.]+) (kB|bytes); the store now takes ([0-9.]+) kB\.\n",
        runner.done("gc", "--older-than", "0s").text,
    )
    assert report is not None
    freed, after = float(report[1]) * (1000 if report[2] == "kB" else 1), float(report[3]) * 1000
    assert abs(after - runner.done("status", "--json").json()["store"]["bytes"]) <= 100
    assert 0 <= freed < before
    repacked = runner.done("gc", "--repack").text.splitlines()
    assert [line.split(" ", 1)[0] for line in repacked] == ["No", "Freed", "Compressed"]


def test_decisions_on_all_skip_expired_edits(runner: CommandRunner) -> None:
    six_accepted_and_two_pending_edits(runner)
    runner.done("gc", "--older-than", "0s")
    runner.done("reject", "--all")
    assert not (runner.folder / "g").exists()
    assert runner.bytes("f") == b"5\n" * 200


def test_settings_apply_where_no_option_is_passed(runner: CommandRunner) -> None:
    six_accepted_and_two_pending_edits(runner)
    assert json.loads(runner.done("gc", "--dry-run", "--json").text)["expired"] == []
    runner.done("config", "set", "retention.older_than", "0s")
    assert "`cas gc` may expire 6 old edits" in runner.done("status").text
    assert runner.done("gc", "--dry-run", "--json").json()["expired"][0]["edits"] == 6
    assert runner.done("gc", "--older-than", "never", "--json").json()["expired"] == []
    runner.done("gc")
    assert "old edits" not in runner.done("status").text


def test_a_limit_that_cannot_be_met_is_reported(runner: CommandRunner) -> None:
    runner.write("f", b"pending\n" * 500)
    text = runner.done("gc", "--max-size", "100B").text
    assert "No history expires." in text
    assert " over the limit: everything that is left is pending, pinned or needed." in text
    assert "over the limit" not in runner.done("status").text
    runner.done("config", "set", "retention.max_size", "100B")
    assert "over the limit" in runner.done("status").text


def test_a_repack_and_its_dry_run_report_the_sizes(runner: CommandRunner) -> None:
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
    report = runner.done("gc", "--repack", "--json").json()["repack"]
    assert (report["blobs"], report["segments"], report["done"]) == (43, 1, True)
    assert report["bytes_after"] <= planned["bytes_after"] + 200
    assert "Compressed 43 blobs: the store from " in runner.done("gc", "--repack").text
    assert runner.done("fsck", "--json").json()["sound"]


def test_invalid_limits_are_refused(runner: CommandRunner) -> None:
    ran = runner.cas("gc", "--older-than", "soon")
    assert (ran.status, "as in 30d, or never" in ran.said) == (2, True)
    ran = runner.cas("gc", "--max-size", "much")
    assert (ran.status, "as in 2GB, or unlimited" in ran.said) == (2, True)


@pytest.mark.parametrize(("patience", "report"), [(0, True), (3600, False)])
def test_only_a_slow_gc_shows_progress(runner: CommandRunner, patience: int, report: bool) -> None:  # noqa: FBT001 -- pytest passes by name
    six_accepted_and_two_pending_edits(runner)
    _, shown = with_progress("gc", "--older-than", "0s", folder=runner.folder, patience=patience)
    assert (b"expiring [########################] 6 of 6 edits" in shown) is report
    assert (b"compacting [........................] 0 of 1 segments" in shown) is report
    if report:
        assert shown.endswith(b"\r\x1b[K")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_wrong_index_is_rebuilt_and_reported(runner: CommandRunner, *, as_json: bool) -> None:
    six_accepted_and_two_pending_edits(runner)
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


def test_a_limit_of_one_byte_is_singular(runner: CommandRunner) -> None:
    runner.write("f", b"1\n")
    runner.done("accept", "1")
    for limit, size in (("1B", "1 byte"), ("2B", "2 bytes")):
        assert f"the store was over {size}.\n" in runner.done("gc", "--max-size", limit, "-n").text
