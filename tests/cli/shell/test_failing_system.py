"""Every command of `cas` on a disk that fails: it says no false word of what was changed, and shows no traceback.

Writes and reads fail one after the other: a sample in `make test`, all of them with CAS_CRASH_STEPS=1 (`make crash`).
"""

import random
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from objstore import Workspace
from tests.support.command_runner import CommandRunner, cas, environment
from tests.support.failing_command import Failed, FailingCas, Run
from tests.support.faulty_disk import WHOLE, UnsyncedDisk
from tests.support.mcpdiff_history import McpDiff

CLAIMS: Final = re.compile(
    r"nothing (was|is) (changed|recorded|written|imported|purged|done)|no (snapshot was taken|bundle is written)"
    r"|no store can be made",
    re.IGNORECASE,
)
"""What a command says where it claims to have changed nothing."""

TAKEN_BACK: Final = "every file of the call is as it was before"
"""What it says of a call that it recorded, and recorded as taken back."""

FEW: Final = 1
"""Calls that fail of each command and in each way, if not all do."""

WRITING: Final[dict[str, str]] = {
    "accept": "accept 2",
    "reject": "reject 3",
    "reject with markers": "reject 2 --markers",
    "reset": "reset 1",
    "undo": "undo",
    "redo": "-C ../undone redo",
    "amend": "amend 3 --from ../new",
    "restore": "restore a@1",
    "snapshot": "snapshot create",
    "snapshot restore": "snapshot restore 1",
    "snapshot delete": "snapshot delete 1",
    "record": "record",
    "gc": "gc --older-than 0s",
    "gc of much": "gc --older-than 0s --repack",
    "purge": "purge gone@5 --force",
    "pin": "pin add 1",
    "pin remove": "pin remove 1",
    "init": "init ../plain",
    "import": "import ../bundle ../other",
    "import mcpdiff": "import mcpdiff . --root {ground}/ws",
    "export": "export --bundle ../exported",
    "export of patches": "export --patch -o ../exported",
    "salvage": "salvage . --to ../other",
    "fsck": "fsck --repair",
    "config": "config set retention.max_size 1GB",
    "config unset": "config unset retention.older_than",
    "setup": "setup claude-code --project",
}
"""What each command is asked for, in the folder of the workspace."""

READING: Final[dict[str, str]] = {
    "status": "status",
    "log": "log -p",
    "show": "show 2",
    "diff": "diff",
    "cat": "cat a@1",
    "ls": "ls @2",
    "blame": "blame a",
    "records": "records",
    "segments": "segments",
    "stats": "stats",
    "verify": "verify --all",
    "check": "fsck",
    "hash": "hash a",
    "snapshots": "snapshot list",
    "compared snapshot": "snapshot diff 1",
    "settings": "config list",
    "reject on trial": "reject 3 --dry-run",
    "gc on trial": "gc --older-than 0s --dry-run",
}


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingCas]:
    home = tmp_path_factory.mktemp("home")
    running = FailingCas(environment({"HOME": str(home)}))
    yield running
    running.close()


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a workspace in which every command has something to do, and what some of them take."""
    ground = tmp_path_factory.mktemp("ground")
    folder = ground / "ws"
    folder.mkdir()
    runner = CommandRunner(folder)
    (folder / "seen").write_bytes(b"before\n")
    runner.done("record")
    runner.write("a", b"one\ntwo\nthree\n", conversation="conv_old")
    runner.write("a", b"one\n2\nthree\n")
    runner.write("a", b"one\n2\nthree\nfour\n")
    runner.write("b", b"bee\n")
    runner.write("gone", b"a secret\n", conversation="conv_gone")
    runner.delete("gone")
    runner.done("accept", "1")
    runner.done("snapshot", "create")
    runner.done("pin", "add", "2")
    runner.done("config", "set", "retention.older_than", "30d")
    runner.done("export", "--bundle", "../bundle")
    runner.done("reject", "4")
    old = McpDiff(folder)
    old.write("conv_mcpdiff", "f", "one\n")
    old.write("conv_mcpdiff", "f", "two\n")
    (folder / "seen").write_bytes(b"after\n")
    (ground / "plain").mkdir()
    (ground / "new").write_bytes(b"one\n2\nthree\nfive\n")
    shutil.copytree(folder, ground / "undone")
    assert cas("undo", folder=ground / "undone").status == 0
    return ground


def copied(ground: Path, copy: Path, words: Sequence[str] = ()) -> Path:
    """Copy what a command takes, in place of an earlier copy; most of it are two stores, and few need the second."""
    shutil.rmtree(copy, ignore_errors=True)
    unused = () if "../undone" in words else ("undone",)
    return shutil.copytree(ground, copy, symlinks=True, ignore=shutil.ignore_patterns(*unused))


def changed(ground: Path) -> tuple[dict[str, bytes], dict[str, list[bytes]]]:
    """Return what a person would call changed: the files outside stores, and the records of each store's log."""
    files = {
        str(path.relative_to(ground)): path.read_bytes()
        for path in ground.rglob("*")
        if path.is_file() and (".cas" not in path.parts or path.name == "config.toml")
    }
    records: dict[str, list[bytes]] = {}
    for log in ground.glob("*/.cas/segments/*.seg"):
        root = log.parents[2]
        if root.name not in records:
            with Workspace.open(root, UnsyncedDisk()) as workspace:
                records[root.name] = [view.id for view in workspace.history.records()]
    return files, records


def steps(calls: int, *drawn_by: str) -> list[int]:
    """Return which of so many calls fail."""
    every = range(calls)
    return list(every) if WHOLE else random.Random(" ".join(drawn_by)).sample(every, min(FEW, calls))


def way(failure: str) -> tuple[str, bool]:
    """Return how a call fails, and whether the following ones go well."""
    return failure.removesuffix(" once"), failure.endswith(" once")


@pytest.mark.parametrize("command", WRITING)
def test_what_fails_to_write_never_says_that_nothing_was_changed_after_something_was(
    failing: FailingCas, ground: Path, tmp_path: Path, command: str
) -> None:
    words = [word.format(ground=ground) for word in WRITING[command].split()]
    work = tmp_path / "ground"

    def run(failure: str, step: int | None) -> Run:
        copied(ground, work, words)
        code, is_once = way(failure)
        return Run(words=words, folder=str(work / "ws"), failure=code, step=step, is_once=is_once)

    before = changed(copied(ground, tmp_path / "before", words))
    calls: dict[str, int] = {}
    for failure in ("full", "broken"):
        whole = failing.run(run(failure, None))
        assert (whole.status, whole.said) == (0, ""), whole
        calls[failure] = whole.calls
    calls |= dict.fromkeys(("broken once", "read-only"), calls["broken"])  # these fail the same calls
    done_files, done_records = changed(work)
    for failure, count in calls.items():
        for step in steps(count, command, failure):
            ended = failing.run(run(failure, step))
            where = (failure, step, ended)
            assert_plain(ended, where)
            files, records = changed(work)
            if ended.status == 0:  # only what is derived could not be written
                assert (files, sizes(records)) == (done_files, sizes(done_records)), where
                continue
            assert ended.said.startswith("cas: "), where
            if CLAIMS.search(ended.said + ended.out):
                assert (files, records) == before, where
            if TAKEN_BACK in ended.said:
                assert files == before[0], where


@pytest.mark.parametrize("command", READING | WRITING)
def test_what_fails_to_read_says_so_in_plain_words_or_answers_as_ever(
    failing: FailingCas, ground: Path, tmp_path: Path, command: str
) -> None:
    words = [word.format(ground=ground) for word in (READING | WRITING)[command].split()]
    work = tmp_path / "ground"

    def run(failure: str, step: int | None) -> Run:
        if command in WRITING or not work.exists():
            copied(ground, work, words)
        code, is_once = way(failure)
        return Run(words=words, folder=str(work / "ws"), failure=code, step=step, is_once=is_once, is_reading=True)

    whole = failing.run(run("broken", None))
    assert whole.status == 0, whole
    for failure in ("broken", "broken once", "too many"):
        for step in steps(whole.calls, command, failure):
            ended = failing.run(run(failure, step))
            where = (failure, step, ended)
            assert_plain(ended, where)
            assert "No workspace" not in ended.said, where
            if ended.status:
                assert ended.said.startswith("cas: ") or ended.out, where
            elif command in READING:
                assert ended.out == whole.out or ended.said, where


def assert_plain(ended: Failed, where: object) -> None:
    """Hold that a command ended as one does that was refused, or well."""
    assert "Traceback" not in ended.said, where
    assert "internal error" not in ended.said, where
    assert ended.status in {0, 1}, where


def sizes(records: dict[str, list[bytes]]) -> dict[str, int]:
    """Return how many records each log has: their ids differ with the time."""
    return {root: len(ids) for root, ids in records.items()}
