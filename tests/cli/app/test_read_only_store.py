"""Reading commands work on a read-only store and on a store without its files, and change nothing in it."""

import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from objstore import CallInfo, Workspace
from objstore.storage.index.database import PAGE
from tests.support.command_runner import CommandResult, CommandRunner, cas, cas_on_full_disk, cas_unprivileged

READING_COMMANDS: Final = (
    ("status", "--json"),
    ("log", "--json"),
    ("log", "-p"),
    ("show", "1"),
    ("diff",),
    ("diff", "a@1", "a@2"),
    ("cat", "a@1"),
    ("ls", "@2"),
    ("blame", "a"),
    ("records", "--json"),
    ("segments", "--json"),
    ("stats", "--json"),
    ("verify", "--all"),
    ("fsck",),
    ("salvage", ".", "--dry-run"),
    ("gc", "--repack", "--dry-run"),
)
"""Every command that only reads."""


FEW_READING_COMMANDS: Final = (("log", "--json"), ("blame", "a"), ("fsck",))

NEEDS_FILES: Final = {("status", "--json"), ("diff",), ("fsck",)}
"""Commands that compare the store with the files."""


@pytest.fixture
def runner_with_history(runner: CommandRunner) -> CommandRunner:
    """Return a workspace with some history."""
    runner.write("a", b"1\n")
    runner.write("a", b"1\n2\n")
    runner.write("dir/b", b"b\n")
    runner.done("reject", "3")
    runner.done("accept", "1")
    return runner


def comparable(ran: CommandResult) -> CommandResult:
    """Return a result without the size of the store's folder: the index has other files while a process writes it."""
    return replace(ran, out=re.sub(rb'"folder_bytes": [0-9]+', b"", ran.out))


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def read_only_runner(runner_with_history: CommandRunner) -> Iterator[CommandRunner]:
    """Return the workspace with a store in which no user may write."""
    paths = [runner_with_history.folder, *runner_with_history.folder.rglob("*")]
    inside = [path for path in paths if path == runner_with_history.folder or ".cas" in path.parts]
    for path in inside:
        path.chmod(path.stat().st_mode & ~0o222)
    yield runner_with_history
    for path in inside:
        if path.exists():
            path.chmod(path.stat().st_mode | 0o200)


def test_reading_commands_work_on_a_read_only_store(
    runner_with_history: CommandRunner, request: pytest.FixtureRequest
) -> None:
    results = {words: cas_unprivileged(*words, folder=runner_with_history.folder) for words in READING_COMMANDS}
    assert {ran.status for ran in results.values()} == {0}
    read_only_runner: CommandRunner = request.getfixturevalue("read_only_runner")
    before = bytes_of(read_only_runner.folder)
    for words, ran in results.items():
        assert comparable(cas_unprivileged(*words, folder=read_only_runner.folder)) == comparable(ran), words
    assert bytes_of(read_only_runner.folder) == before


def test_reading_commands_work_on_a_read_only_store_that_another_process_has_open(
    runner_with_history: CommandRunner, request: pytest.FixtureRequest
) -> None:
    with Workspace.open(runner_with_history.folder) as owner, owner.call(CallInfo(tool="t", conversation="c")) as call:
        call.write("late", b"late\n")
        call.commit()
        owner.history.edits()
        assert (runner_with_history.folder / ".cas" / "index.sqlite-wal").stat().st_size
        read_only_runner: CommandRunner = request.getfixturevalue("read_only_runner")
        for words in READING_COMMANDS:
            assert cas_unprivileged(*words, folder=read_only_runner.folder).status == 0, words


def test_on_a_full_disk_reading_commands_work_and_writing_commands_say_why_they_fail(
    runner_with_history: CommandRunner,
) -> None:
    results = {words: cas(*words, folder=runner_with_history.folder) for words in READING_COMMANDS}
    assert {ran.status for ran in results.values()} == {0}
    before = bytes_of(runner_with_history.folder / ".cas" / "segments")
    for words, ran in results.items():
        assert comparable(cas_on_full_disk(*words, folder=runner_with_history.folder)) == comparable(ran), words
    refused = cas_on_full_disk("reject", "2", folder=runner_with_history.folder)
    assert refused.status == 1
    assert refused.said == "cas: No space left on the disk: a\n"
    assert bytes_of(runner_with_history.folder / ".cas" / "segments") == before
    assert (runner_with_history.folder / "a").read_bytes() == b"1\n2\n"
    runner_with_history.done("reject", "2")
    assert (runner_with_history.folder / "a").read_bytes() == b"1\n"


def test_an_unreadable_store_is_not_reported_as_missing(runner_with_history: CommandRunner) -> None:
    store = runner_with_history.folder / ".cas"
    store.chmod(0)
    for words in (("status",), ("log",), ("init",)):
        refused = cas_unprivileged(*words, folder=runner_with_history.folder)
        assert refused.status == 1, words
        assert "ermission" in refused.said, words
        assert str(store) in refused.said
    store.chmod(0o700)


def test_a_missing_index_is_built_in_memory(runner_with_history: CommandRunner, request: pytest.FixtureRequest) -> None:
    results = {words: cas_unprivileged(*words, folder=runner_with_history.folder) for words in FEW_READING_COMMANDS}
    for path in (runner_with_history.folder / ".cas").glob("index.sqlite*"):
        path.unlink()
    read_only_runner: CommandRunner = request.getfixturevalue("read_only_runner")
    for words, ran in results.items():
        assert comparable(cas_unprivileged(*words, folder=read_only_runner.folder)) == comparable(ran), words
    assert not list((read_only_runner.folder / ".cas").glob("index.sqlite*"))


@pytest.mark.parametrize("table", ["", "edits", "documents", "blobs"])
def test_a_damaged_read_only_index_is_rebuilt_in_memory(
    runner_with_history: CommandRunner, request: pytest.FixtureRequest, table: str
) -> None:
    results = {
        words: cas_unprivileged(*words, folder=runner_with_history.folder)
        for words in READING_COMMANDS
        if words[0] != "fsck"
    }
    index = runner_with_history.folder / ".cas" / "index.sqlite"
    with closing(sqlite3.connect(index)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        page = db.execute(query, (table,)).fetchone()[0] if table else 1
    with index.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xa5" * PAGE)
    read_only_runner: CommandRunner = request.getfixturevalue("read_only_runner")
    damaged = index.read_bytes()
    for words, ran in results.items():
        assert comparable(cas_unprivileged(*words, folder=read_only_runner.folder)) == comparable(ran), words
    assert index.read_bytes() == damaged


def test_an_outdated_read_only_index_is_updated_in_memory(
    runner_with_history: CommandRunner, request: pytest.FixtureRequest
) -> None:
    index = runner_with_history.folder / ".cas" / "index.sqlite"
    old = index.read_bytes()
    runner_with_history.write("late", b"late\n")
    for path in index.parent.glob("index.sqlite*"):
        path.unlink()
    index.write_bytes(old)
    read_only_runner: CommandRunner = request.getfixturevalue("read_only_runner")
    assert b"late" in cas_unprivileged("log", folder=read_only_runner.folder).out
    assert index.read_bytes() == old


def test_writing_commands_are_refused(read_only_runner: CommandRunner) -> None:
    for words in (["reject", "1"], ["restore", "a@1"], ["undo"], ["gc", "--repack"]):
        ran = cas_unprivileged(*words, folder=read_only_runner.folder)
        assert (ran.status, ran.out) == (1, b""), words
        assert "Permission denied" in ran.said


def test_an_unwritable_folder_is_named_with_the_command_that_changes_its_mode(runner: CommandRunner) -> None:
    runner.write("sub/a", b"1\n")
    runner.write("sub/a", b"2\n")
    folder = runner.folder / "sub"
    folder.chmod(0o555)
    results = cas_unprivileged("reject", "2", folder=runner.folder).said
    folder.chmod(0o755)
    assert results == f"cas: Permission denied: sub/a\n{folder} has the mode 0555. To use it: chmod u+rwx {folder}\n"
    lock = runner.folder / ".cas" / "lock"
    lock.chmod(0o444)
    results = cas_unprivileged("reject", "2", folder=runner.folder).said
    lock.chmod(0o644)
    assert results == f"cas: Permission denied: {lock}\n{lock} has the mode 0444. To use it: chmod u+rw {lock}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a file away")
def test_a_store_of_another_user_is_refused_with_the_owners_id(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    store = runner.folder / ".cas"
    for path in (store, *store.rglob("*")):
        os.chown(path, 1, 1)
    for words in (["status"], ["log"], ["reject", "1"]):
        assert cas_unprivileged(*words, folder=runner.folder).said.startswith(
            f"cas: The store in {runner.folder} belongs to another user (uid 1), so it is not opened"
        )


def test_reading_commands_work_on_a_store_without_its_files(runner_with_history: CommandRunner, tmp_path: Path) -> None:
    results = {words: cas_unprivileged(*words, folder=runner_with_history.folder) for words in READING_COMMANDS}
    alone = tmp_path / "alone"
    shutil.copytree(runner_with_history.folder / ".cas", alone / ".cas")
    for words, ran in results.items():
        if words not in NEEDS_FILES:
            expected = ran.out.replace(os.fsencode(runner_with_history.folder), os.fsencode(alone))
            assert cas_unprivileged(*words, folder=alone).out == expected, words
    assert cas_unprivileged("fsck", folder=alone).status == 0
    assert [path.name for path in alone.iterdir()] == [".cas"]
