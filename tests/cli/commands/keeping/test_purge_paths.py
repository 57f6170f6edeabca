"""`cas purge PATH`: all that is stored of a file or folder goes, with what is there now, and no scan takes it again."""

import sqlite3
from contextlib import closing, suppress
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from zstandard import ZstdDecompressor, ZstdError

from objstore import Workspace
from objstore.upkeep.integrity.segment_scan import SegmentScan
from tests.cli.commands.keeping.test_ignored_files import git, put, recorded
from tests.support.command_runner import Answer, CommandRunner, on_terminal
from tests.support.hooked_agents import ClaudeCode
from tests.support.sampling import sampled_product

WORD: Final = b"hunter2"
LINES: Final = "".join(f"line {number}\n" for number in range(300))


def every_byte(runner: CommandRunner) -> bytes:
    """Return all that the store's folder has: its files as they are, what is compressed in them, and every blob."""
    store = runner.folder / ".cas"
    found = [path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()]
    for content in list(found):
        # Every zstandard frame, wherever one begins: in segments, caches, or in what is left in a page of the index.
        at = content.find(b"\x28\xb5\x2f\xfd")
        while at >= 0:
            with suppress(ZstdError):
                found.append(ZstdDecompressor().decompressobj().decompress(content[at:]))
            at = content.find(b"\x28\xb5\x2f\xfd", at + 1)
    with SegmentScan(str(store / "segments")) as scan:
        found += [scan.blob(name) for name in scan.blobs]
    with closing(sqlite3.connect(store / "index.sqlite")) as index:
        found += [line.encode("utf-8", "surrogateescape") for line in index.iterdump()]
    return b"\n".join(found)


def check_gone(runner: CommandRunner) -> None:
    """See that the secret is nowhere in the store, and that the store is sound."""
    assert WORD not in every_byte(runner)
    assert runner.done("fsck", "--json").json()["sound"]


def prepare_leaky(runner: CommandRunner) -> None:
    git(runner.folder, "init", "-q")
    put(runner.folder, {"conf/app": f"token = {WORD.decode()}\n{LINES}", "main.c": "int main;\n", "conf/other": "o\n"})
    runner.done("record")
    runner.done("snapshot", "-m", "with the secret")
    agent = ClaudeCode(runner.folder)
    agent.ask("go")
    agent.run("sed -i 's/line 7$/line seven/' conf/app")
    agent.write("conf/app", f"token = {WORD.decode()}\n{LINES}more\n")
    runner.write("conf/app", f"token = 'new {WORD.decode()}'\n{LINES}more\n".encode())
    runner.write("main.c", b"int main();\n")
    runner.done("accept", "2")
    runner.done("reject", "1")
    runner.done("undo")
    with Workspace.open(runner.folder) as workspace:
        workspace.history.cache_documents()
    assert WORD in every_byte(runner)


@pytest.fixture
def leaky(runner: CommandRunner) -> CommandRunner:
    """Return a project with a secret in the baseline, in edits of several kinds, in a snapshot, and in the file now."""
    return runner.prepared(prepare_leaky)


@pytest.mark.parametrize(("repack", "folder"), sampled_product([False, True], [False, True]))
def test_nothing_of_a_path_stays_in_the_store(leaky: CommandRunner, *, folder: bool, repack: bool) -> None:
    if repack:
        leaky.done("gc", "--repack")
    before = leaky.bytes("conf/app")
    ran = leaky.done("purge", "conf" if folder else "conf/app", "--yes")
    assert leaky.bytes("conf/app") == before
    check_gone(leaky)
    lines = ran.text.splitlines()
    assert "Snapshot 1 is the baseline; the rest of what it holds is kept in a new one." in lines
    assert "Snapshot 2 is kept without these bytes, as snapshot 4." in lines
    pattern = "/conf/" if folder else "/conf/app"
    assert f"{pattern} is left out of scans from now on (`cas config get record.exclude`)." in lines
    assert leaky.done("config", "get", "record.exclude").text == f"{pattern}\n"
    entries = {each["path"]: each["kind"] for each in leaky.done("snapshot", "show", "4", "--json").json()["entries"]}
    assert entries["conf/app"] == "left-out"
    assert entries["main.c"] == "file"
    assert entries["conf/other"] == ("left-out" if folder else "file")
    assert leaky.done("status", "--json").json()["external_changes"] == []


def test_no_scan_takes_the_bytes_again(leaky: CommandRunner) -> None:
    leaky.done("purge", "conf/app", "--yes")
    agent = ClaudeCode(leaky.folder)
    agent.ask("go on")
    agent.run("sed -i 's/line 9$/line nine/' conf/app; echo 1 >> conf/other")
    assert recorded(leaky) == []
    leaky.done("snapshot")
    leaky.done("record", "conf")
    leaky.done("gc")
    edits = leaky.done("log", "--json", "-n", "1").lines()
    assert Path(edits[0]["file_path"]).name == "other"
    check_gone(leaky)


def test_a_tool_that_names_the_file_afterwards_is_recorded_and_can_be_undone(leaky: CommandRunner) -> None:
    leaky.done("purge", "conf/app", "--yes")
    before = leaky.bytes("conf/app")
    leaky.write("conf/app", b"by a tool\n")
    newest = leaky.done("log", "--json", "-n", "1").lines()[0]
    assert (newest["operation"], newest["status"]) == ("replace", "pending")
    leaky.done("reject", str(newest["seq"]))
    assert leaky.bytes("conf/app") == before
    assert WORD in every_byte(leaky)  # it was needed for that
    leaky.done("purge", "conf/app", "--yes")
    check_gone(leaky)
    assert leaky.done("config", "get", "record.exclude").text == "/conf/app\n"


def test_what_was_purged_can_no_longer_be_shown_or_decided(leaky: CommandRunner) -> None:
    leaky.done("purge", "conf/app", "--yes")
    for words in (["cat", "conf/app"], ["reject", "2"], ["cat", "conf/app@2"], ["show", "1"]):
        assert leaky.cas(*words).status == 1, words
    assert [(line["seq"], bool(line["expired"])) for line in leaky.done("log", "--json").lines()] == [
        (5, True),
        (4, False),
        (3, True),
        (2, True),
        (1, True),
    ]
    assert leaky.done("diff", "--unrecorded").text == ""
    leaky.done("reject", "4")
    assert leaky.bytes("main.c") == b"int main;\n"


def test_a_snapshot_that_took_the_place_of_another_counts_from_its_time(leaky: CommandRunner) -> None:
    put(leaky.folder, {"main.c": "int later;\n"})
    leaky.done("record")
    with Workspace.open(leaky.folder) as workspace:
        moments = [view.time for view in workspace.snapshots.all()] + [
            view.edit.time for view in workspace.history.edits()
        ]
        before = {moment: workspace.history.files_at_moment(moment) for moment in moments}
    leaky.done("purge", "conf/app", "--yes")
    with Workspace.open(leaky.folder) as workspace:
        after = {moment: workspace.history.files_at_moment(moment) for moment in moments}
    for files in (*before.values(), *after.values()):
        files.pop("conf/app", None)
    assert after == before


def test_a_secret_by_name_needs_no_other_exclusion(runner: CommandRunner) -> None:
    put(runner.folder, {".env": "hunter2\n", "a": "a\n"})
    runner.done("config", "set", "record.secrets", "none")
    runner.done("record")
    runner.done("config", "unset", "record.secrets")
    put(runner.folder, {"a": "b\n"})
    runner.done("record")
    assert runner.done("status", "--json").json()["secrets"] == {"not_recorded": [], "stored": [".env"]}
    runner.done("purge", ".env")
    check_gone(runner)
    assert runner.done("config", "get", "record.exclude").text == "none\n"
    assert runner.done("status", "--json").json()["secrets"] == {"not_recorded": [".env"], "stored": []}
    put(runner.folder, {"a": "c\n"})
    assert recorded(runner) == ["edit a"]
    check_gone(runner)


def test_a_file_that_is_gone_is_purged_and_not_excluded(leaky: CommandRunner) -> None:
    (leaky.folder / "conf/app").unlink()
    leaky.done("purge", "conf/app", "--yes")
    check_gone(leaky)
    assert leaky.done("config", "get", "record.exclude").text == "none\n"
    put(leaky.folder, {"conf/app": "another file\n"})
    assert recorded(leaky) == ["create conf/app"]


def test_other_files_with_the_same_bytes_are_named_and_prevent_it(leaky: CommandRunner) -> None:
    secret = leaky.bytes("conf/app").decode()
    put(leaky.folder, {"copy": secret, "past": secret})
    leaky.done("record")
    put(leaky.folder, {"past": "clean\n"})
    leaky.done("record")
    planned = leaky.done("purge", "conf/app", "-n")
    assert "because they had the same bytes, or the same decision rewrote them: past." in planned.text
    assert "Other files contain the bytes now, so nothing can be purged: copy." in planned.text
    ran = leaky.cas("purge", "conf/app", "--yes")
    assert (ran.status, "copy still contains these bytes" in ran.said) == (1, True)
    assert leaky.done("config", "get", "record.exclude").text == "none\n"
    kept = leaky.done("purge", "conf/app", "--yes", "--keep-shared")
    assert "Other files have some of the bytes, which stay in the store: copy." in kept.text
    assert leaky.done("cat", "copy").out == secret.encode()
    leaky.done("purge", "conf/app", "copy", "--yes")
    check_gone(leaky)
    assert leaky.done("config", "get", "record.exclude").text == "/conf/app /copy\n"


def test_other_files_that_the_same_decision_rewrote_are_named_with_the_reason(runner: CommandRunner) -> None:
    put(runner.folder, {"a": "1\n", "b": "4\n"})
    runner.done("record")
    put(runner.folder, {"a": "2\n", "b": "3\n"})
    runner.done("record", "--agent", "joe")
    runner.done("reject", "1", "2")
    rows = runner.done("purge", "a", "-n").text.splitlines()
    assert "Edits 1-2 can be neither shown nor decided." in rows
    (row,) = [row for row in rows if row.startswith("Other files")]
    assert row.endswith("or the same decision rewrote them: b.")


def test_a_file_that_left_the_folder_keeps_its_history(runner: CommandRunner) -> None:
    runner.write("old/a", b"one hunter2\n")
    runner.write("old/b", b"b hunter2\n")
    runner.move("old/a", "new")
    runner.write("new", b"two\n")
    runner.write("new", b"three\n")
    runner.done("accept", "--all")
    runner.done("purge", "old", "--yes")
    check_gone(runner)
    assert runner.done("cat", "new").out == b"three\n"
    runner.done("reject", "5")
    assert runner.bytes("new") == b"two\n"


def test_a_folder_that_was_never_recorded_in_edits_is_purged_from_snapshots(runner: CommandRunner) -> None:
    put(runner.folder, {"data/deep/a": "hunter2\n", "data/b": "b hunter2\n", "keep": "k\n"})
    runner.done("snapshot", "create", "data")
    runner.done("snapshot", "create", "data/deep")
    runner.done("snapshot")
    runner.done("purge", "data")
    check_gone(runner)
    held = [runner.done("snapshot", "show", number, "--json").json()["entries"] for number in ("4", "5", "6")]
    assert [{each["path"]: each["kind"] for each in entries} for entries in held] == [
        {"data/b": "left-out", "data/deep/a": "left-out"},
        {"data/deep/a": "left-out"},
        {"data/b": "left-out", "data/deep/a": "left-out", "keep": "file"},
    ]


def test_names_that_have_wildcards_are_excluded_as_they_are(runner: CommandRunner) -> None:
    for name in ("a[1]*", "My File?"):
        runner.write(name, b"hunter2\n")
        runner.done("purge", name, "--yes")
    put(runner.folder, {"a[1]*": "1\n", "My File?": "1\n", "a1x": "1\n", "a[1]x": "1\n", "sub/My File?": "1\n"})
    runner.done("record")
    put(runner.folder, {"a[1]*": "2\n", "My File?": "2\n", "a1x": "2\n", "a[1]x": "2\n", "sub/My File?": "2\n"})
    assert recorded(runner) == ["edit a1x", "edit a[1]x", "edit sub/My File?"]


def test_without_a_terminal_pending_edits_need_a_yes(runner: CommandRunner) -> None:
    runner.write("a", b"hunter2\n")
    ran = runner.cas("purge", "a")
    assert (ran.status, "this would be removed too: pending edit 1. Use --yes" in ran.said) == (1, True)
    assert WORD in every_byte(runner)
    runner.done("accept", "1")
    runner.done("purge", "a")
    check_gone(runner)


@pytest.mark.parametrize(("typed", "status"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_at_a_terminal_the_plan_is_shown_and_a_person_asked(runner: CommandRunner, typed: str, status: int) -> None:
    runner.write("a", b"hunter2\n")
    answer = Answer(after="Purge it? [y/N]", typed=lambda: typed)
    ended, shown = on_terminal(["purge", "a"], answer, folder=runner.folder)
    assert ended == status
    assert "Would purge 1 blob, with what a contains now." in shown
    assert "Pending edit 1 would be purged too." in shown
    assert (WORD in every_byte(runner)) is (status != 0)
    ended, shown = on_terminal(["purge", "a", "--yes"], folder=runner.folder) if status else (0, "")
    assert ended == 0
    check_gone(runner)


def test_a_dry_run_changes_nothing(leaky: CommandRunner) -> None:
    before = {path: path.read_bytes() for path in (leaky.folder / ".cas/segments").iterdir()}
    shape = leaky.done("purge", "conf", "--dry-run", "--json").json()
    assert (shape["paths"], shape["excluded"]) == (["conf/app"], ["/conf/"])
    assert (shape["snapshots"], shape["renewed"], shape["baseline"]) == ([1, 2], [3, 4], 1)
    assert {path: path.read_bytes() for path in (leaky.folder / ".cas/segments").iterdir()} == before
    assert not (leaky.folder / ".cas" / "config.toml").exists()


def test_a_restore_leaves_what_was_purged_from_the_snapshot(leaky: CommandRunner) -> None:
    leaky.done("purge", "conf/app", "--yes")
    put(leaky.folder, {"conf/app": "now\n", "main.c": "now\n"})
    leaky.done("snapshot", "restore", "4")
    assert (leaky.bytes("conf/app"), leaky.bytes("main.c")) == (b"now\n", b"int main;\n")


@pytest.mark.parametrize(("large", "past"), [*product([False, True], [False, True])][:3])
def test_a_large_or_empty_file_is_purged_too(runner: CommandRunner, *, large: bool, past: bool) -> None:
    size = (1 << 26) + 4096 if large else 100
    text = b"hunter2\n" * (size // 8)
    (runner.folder / "big").write_bytes(b"" if past else text)
    runner.done("record")
    (runner.folder / "big").write_bytes(text[::-1] if not past else text)
    runner.done("record")
    runner.done("purge", "big", "--yes")
    with Workspace.open(runner.folder) as workspace:
        assert workspace.history.edits() is not None
    assert WORD not in b"".join(path.read_bytes() for path in (runner.folder / ".cas").rglob("*") if path.is_file())
    assert runner.done("fsck", "--json").json()["sound"]
