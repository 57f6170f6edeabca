"""A store that may only be read, and a store without its files, answer as ever; nothing in them changes."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from objstore import CallInfo, Workspace
from tests.support.command_runner import CommandRunner, cas, cas_on_full_disk, cas_unprivileged

READING: Final = (
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

PAGE: Final = 4096

FEW: Final = (("log", "--json"), ("blame", "a"), ("fsck",))

NEEDS_FILES: Final = {("status", "--json"), ("diff",), ("fsck",)}
"""Those that compare the store with the files."""


@pytest.fixture
def written(runner: CommandRunner) -> CommandRunner:
    """Return a desk with some history."""
    runner.write("a", b"1\n")
    runner.write("a", b"1\n2\n")
    runner.write("dir/b", b"b\n")
    runner.done("reject", "3")
    runner.done("accept", "1")
    return runner


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def sealed(written: CommandRunner) -> Iterator[CommandRunner]:
    """Return the desk with a store in which nobody may write."""
    paths = [written.folder, *written.folder.rglob("*")]
    inside = [path for path in paths if path == written.folder or ".cas" in path.parts]
    for path in inside:
        path.chmod(path.stat().st_mode & ~0o222)
    yield written
    for path in inside:
        if path.exists():
            path.chmod(path.stat().st_mode | 0o200)


def test_a_store_that_may_only_be_read_answers_as_ever(written: CommandRunner, request: pytest.FixtureRequest) -> None:
    said = {words: cas_unprivileged(*words, folder=written.folder) for words in READING}
    assert {ran.status for ran in said.values()} == {0}
    sealed: CommandRunner = request.getfixturevalue("sealed")
    before = bytes_of(sealed.folder)
    for words, ran in said.items():
        assert cas_unprivileged(*words, folder=sealed.folder) == ran, words
    assert bytes_of(sealed.folder) == before


def test_a_store_that_another_has_open_answers_who_may_only_read_it(
    written: CommandRunner, request: pytest.FixtureRequest
) -> None:
    with Workspace.open(written.folder) as owner, owner.call(CallInfo(tool="t", conversation="c")) as call:
        call.write("late", b"late\n")
        call.commit()
        owner.history.edits()
        assert (written.folder / ".cas" / "index.sqlite-wal").stat().st_size
        sealed: CommandRunner = request.getfixturevalue("sealed")
        for words in READING:
            assert cas_unprivileged(*words, folder=sealed.folder).status == 0, words


def test_on_a_full_disk_what_only_reads_answers_as_ever_and_what_writes_says_why_it_can_not(
    written: CommandRunner,
) -> None:
    said = {words: cas(*words, folder=written.folder) for words in READING}
    assert {ran.status for ran in said.values()} == {0}
    before = bytes_of(written.folder / ".cas" / "segments")
    for words, ran in said.items():
        assert cas_on_full_disk(*words, folder=written.folder) == ran, words
    refused = cas_on_full_disk("reject", "2", folder=written.folder)
    assert refused.status == 1
    assert refused.said == "cas: No space left on the disk: a\n"
    assert bytes_of(written.folder / ".cas" / "segments") == before
    assert (written.folder / "a").read_bytes() == b"1\n2\n"
    written.done("reject", "2")
    assert (written.folder / "a").read_bytes() == b"1\n"


def test_a_store_that_may_not_be_looked_into_is_told_from_none(written: CommandRunner) -> None:
    store = written.folder / ".cas"
    store.chmod(0)
    for words in (("status",), ("log",), ("init",)):
        refused = cas_unprivileged(*words, folder=written.folder)
        assert refused.status == 1, words
        assert "ermission" in refused.said, words
        assert str(store) in refused.said
    store.chmod(0o700)


def test_without_an_index_it_is_made_in_memory(written: CommandRunner, request: pytest.FixtureRequest) -> None:
    said = {words: cas_unprivileged(*words, folder=written.folder) for words in FEW}
    for path in (written.folder / ".cas").glob("index.sqlite*"):
        path.unlink()
    sealed: CommandRunner = request.getfixturevalue("sealed")
    for words, ran in said.items():
        assert cas_unprivileged(*words, folder=sealed.folder) == ran, words
    assert not list((sealed.folder / ".cas").glob("index.sqlite*"))


@pytest.mark.parametrize("table", ["", "edits", "documents", "blobs"])
def test_where_an_index_is_damaged_that_may_not_be_removed_another_is_made_in_memory(
    written: CommandRunner, request: pytest.FixtureRequest, table: str
) -> None:
    said = {words: cas_unprivileged(*words, folder=written.folder) for words in READING if words[0] != "fsck"}
    index = written.folder / ".cas" / "index.sqlite"
    with closing(sqlite3.connect(index)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        page = db.execute(query, (table,)).fetchone()[0] if table else 1
    with index.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xa5" * PAGE)
    sealed: CommandRunner = request.getfixturevalue("sealed")
    damaged = index.read_bytes()
    for words, ran in said.items():
        assert cas_unprivileged(*words, folder=sealed.folder) == ran, words
    assert index.read_bytes() == damaged


def test_an_old_index_is_followed_in_memory(written: CommandRunner, request: pytest.FixtureRequest) -> None:
    index = written.folder / ".cas" / "index.sqlite"
    old = index.read_bytes()
    written.write("late", b"late\n")
    for path in index.parent.glob("index.sqlite*"):
        path.unlink()
    index.write_bytes(old)
    sealed: CommandRunner = request.getfixturevalue("sealed")
    assert b"late" in cas_unprivileged("log", folder=sealed.folder).out
    assert index.read_bytes() == old


def test_what_writes_is_refused(sealed: CommandRunner) -> None:
    for words in (["reject", "1"], ["restore", "a@1"], ["undo"], ["gc", "--repack"]):
        ran = cas_unprivileged(*words, folder=sealed.folder)
        assert (ran.status, ran.out) == (1, b""), words
        assert "Permission denied" in ran.said


def test_where_a_folder_may_not_be_written_that_is_said_and_how_it_may_be(runner: CommandRunner) -> None:
    runner.write("sub/a", b"1\n")
    runner.write("sub/a", b"2\n")
    folder = runner.folder / "sub"
    folder.chmod(0o555)
    said = cas_unprivileged("reject", "2", folder=runner.folder).said
    folder.chmod(0o755)
    assert said == f"cas: Permission denied: sub/a\n{folder} has the mode 0555. To use it: chmod u+rwx {folder}\n"
    lock = runner.folder / ".cas" / "lock"
    lock.chmod(0o444)
    said = cas_unprivileged("reject", "2", folder=runner.folder).said
    lock.chmod(0o644)
    assert said == f"cas: Permission denied: {lock}\n{lock} has the mode 0444. To use it: chmod u+rw {lock}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a file away")
def test_of_a_store_of_somebody_else_it_is_said_whose_it_is(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    store = runner.folder / ".cas"
    for path in (store, *store.rglob("*")):
        os.chown(path, 1, 1)
    for words in (["status"], ["log"], ["reject", "1"]):
        assert cas_unprivileged(*words, folder=runner.folder).said.startswith(
            f"cas: The store in {runner.folder} belongs to another user (uid 1), so it is not opened"
        )


def test_a_store_alone_answers_as_ever(written: CommandRunner, tmp_path: Path) -> None:
    said = {words: cas_unprivileged(*words, folder=written.folder) for words in READING}
    alone = tmp_path / "alone"
    shutil.copytree(written.folder / ".cas", alone / ".cas")
    for words, ran in said.items():
        if words not in NEEDS_FILES:
            expected = ran.out.replace(os.fsencode(written.folder), os.fsencode(alone))
            assert cas_unprivileged(*words, folder=alone).out == expected, words
    assert cas_unprivileged("fsck", folder=alone).status == 0
    assert [path.name for path in alone.iterdir()] == [".cas"]
