"""Every command of `cas` on a failing disk: it reports correctly whether anything changed, and shows no traceback.

Writes and reads fail one after the other: a sample in `make test`, all of them with CAS_CRASH_STEPS=1 (`make crash`).
"""

import random
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from objstore import Workspace
from tests.support.command_runner import CommandRunner, cas, environment
from tests.support.failing_command import Failed, FailingCas, Run
from tests.support.faulty_disk import WHOLE, UnsyncedDisk
from tests.support.mcpdiff_history import McpDiff
from tests.support.sampling import sampled_product

CLAIMS_NO_CHANGE: Final = re.compile(
    r"nothing (was|is) (changed|recorded|written|imported|purged|done)|no (snapshot was taken|bundle is written)"
    r"|no store can be made",
    re.IGNORECASE,
)
"""Messages that claim that nothing was changed."""

CALL_ROLLED_BACK: Final = "every file of the call is as it was before"
"""The message about a call that was recorded and then voided."""

UNREADABLE: Final = "can't be read"
"""What the output itself says of something that it leaves out."""

SAMPLED_CALLS: Final = 1
"""The number of calls that fail for each command, if not all do."""

WRITING_COMMANDS: Final[dict[str, str]] = {
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
    "import mcpdiff": "import mcpdiff . --root {template}/ws",
    "export": "export --bundle ../exported",
    "export of patches": "export --patch -o ../exported",
    "salvage": "salvage . --to ../other",
    "fsck": "fsck --repair",
    "config": "config set retention.max_size 1GB",
    "config unset": "config unset retention.older_than",
    "setup": "setup claude-code --project",
}
"""A command line for each command, run in the folder of the workspace."""

READING_COMMANDS: Final[dict[str, str]] = {
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
def failing_cas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingCas]:
    home = tmp_path_factory.mktemp("home")
    running = FailingCas(environment({"HOME": str(home)}))
    yield running
    running.close()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a workspace in which every command has an effect, and the files that some commands take."""
    template = tmp_path_factory.mktemp("template")
    folder = template / "ws"
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
    (template / "plain").mkdir()
    (template / "new").write_bytes(b"one\n2\nthree\nfive\n")
    shutil.copytree(folder, template / "undone")
    assert cas("undo", folder=template / "undone").status == 0
    return template


def copied(template: Path, copy: Path, words: Sequence[str] = ()) -> Path:
    """Copy what a command takes, in place of an earlier copy; most of it are two stores, and few need the second."""
    shutil.rmtree(copy, ignore_errors=True)
    unused = () if "../undone" in words else ("undone",)
    return shutil.copytree(template, copy, symlinks=True, ignore=shutil.ignore_patterns(*unused))


def files_and_records(template: Path) -> tuple[dict[str, bytes], dict[str, list[bytes]]]:
    """Return the files outside stores, and the records of each store's log: a user would notice changes of these."""
    files = {
        str(path.relative_to(template)): path.read_bytes()
        for path in template.rglob("*")
        if path.is_file() and (".cas" not in path.parts or path.name == "config.toml")
    }
    records: dict[str, list[bytes]] = {}
    for log in template.glob("*/.cas/segments/*.seg"):
        root = log.parents[2]
        if root.name not in records:
            with Workspace.open(root, UnsyncedDisk()) as workspace:
                records[root.name] = [view.id for view in workspace.history.records()]
    return files, records


def failing_steps(calls: int, *drawn_by: str) -> list[int]:
    """Return the numbers of the calls that fail, one run each."""
    every = range(calls)
    return list(every) if WHOLE else random.Random(" ".join(drawn_by)).sample(every, min(SAMPLED_CALLS, calls))


def failure_mode(failure: str) -> tuple[str, bool]:
    """Return the kind of failure, and whether only one call fails."""
    return failure.removesuffix(" once"), failure.endswith(" once")


@pytest.mark.parametrize(
    ("command", "failure"),
    sampled_product(list(WRITING_COMMANDS), ["full", "broken", "broken once", "read-only"]),
)
def test_a_failed_write_never_claims_that_nothing_changed_after_a_change(
    failing_cas: FailingCas, template: Path, tmp_path: Path, command: str, failure: str
) -> None:
    words = [word.format(template=template) for word in WRITING_COMMANDS[command].split()]
    work = tmp_path / "work"

    def run(step: int | None) -> Run:
        copied(template, work, words)
        code, is_once = failure_mode(failure)
        return Run(words=words, folder=str(work / "ws"), failure=code, step=step, is_once=is_once)

    before = files_and_records(copied(template, tmp_path / "before", words))
    complete_run = failing_cas.run(run(None))
    assert (complete_run.status, complete_run.said) == (0, ""), complete_run
    done_files, done_records = files_and_records(work)
    for step in failing_steps(complete_run.calls, command, failure):
        ended = failing_cas.run(run(step))
        where = (step, ended)
        assert_plain_exit(ended, where)
        files, records = files_and_records(work)
        if ended.status == 0:  # only derived data could not be written
            assert (files, sizes(records)) == (done_files, sizes(done_records)), where
            continue
        assert ended.said.startswith("cas: "), where
        if CLAIMS_NO_CHANGE.search(ended.said + ended.out):
            assert (files, records) == before, where
        if CALL_ROLLED_BACK in ended.said:
            assert files == before[0], where


@pytest.mark.parametrize(
    ("command", "failure"),
    sampled_product(list(READING_COMMANDS | WRITING_COMMANDS), ["broken", "broken once", "too many"]),
)
def test_a_failed_read_is_reported_plainly_or_does_not_affect_the_output(
    failing_cas: FailingCas, template: Path, tmp_path: Path, command: str, failure: str
) -> None:
    words = [word.format(template=template) for word in (READING_COMMANDS | WRITING_COMMANDS)[command].split()]
    work = tmp_path / "work"

    def run(step: int | None) -> Run:
        if command in WRITING_COMMANDS or not work.exists():
            copied(template, work, words)
        code, is_once = failure_mode(failure)
        return Run(words=words, folder=str(work / "ws"), failure=code, step=step, is_once=is_once, is_reading=True)

    complete_run = failing_cas.run(run(None))
    assert complete_run.status == 0, complete_run
    for step in failing_steps(complete_run.calls, command, failure):
        ended = failing_cas.run(run(step))
        where = (step, ended)
        assert_plain_exit(ended, where)
        assert "No workspace" not in ended.said, where
        if ended.status:
            assert ended.said.startswith("cas: ") or ended.out, where
        elif command in READING_COMMANDS:
            assert ended.out == complete_run.out or ended.said or UNREADABLE in ended.out, where


@pytest.mark.parametrize("name", ["00000001.seg", "looks", "index.sqlite", "seen", ".mcp"])
def test_a_status_with_one_failed_read_says_so_or_is_complete(
    failing_cas: FailingCas, template: Path, tmp_path: Path, name: str
) -> None:
    work = copied(template, tmp_path / "work")
    run = Run(words=["status"], folder=str(work / "ws"), failure="broken", step=None, is_once=True, is_reading=True)
    complete_run = failing_cas.run(replace(run, name=name))
    assert (complete_run.status, complete_run.said) == (0, "")
    assert complete_run.calls
    for step in range(complete_run.calls):
        ended = failing_cas.run(replace(run, name=name, step=step))
        assert_plain_exit(ended, (step, ended))
        assert ended.out == complete_run.out or ended.status or UNREADABLE in ended.out, (step, ended)


def test_a_store_that_cannot_be_read_now_is_not_gone(failing_cas: FailingCas, tmp_path: Path) -> None:
    CommandRunner(tmp_path).write("a", b"one\n")
    run = Run(words=["status"], folder=str(tmp_path), failure="broken", step=None, is_once=True, is_reading=True)
    calls = failing_cas.run(replace(run, name="segments")).calls
    assert calls
    for step in range(calls):
        assert "is gone" not in failing_cas.run(replace(run, name="segments", step=step)).out


def test_a_salvage_is_refused_where_not_even_the_root_of_the_system_can_be_looked_at(
    failing_cas: FailingCas, template: Path, tmp_path: Path
) -> None:
    words = WRITING_COMMANDS["salvage"].split()
    work = tmp_path / "work"
    run = Run(words=words, folder=str(work / "ws"), failure="broken", step=None, is_reading=True)
    copied(template, work, words)
    calls = failing_cas.run(run).calls
    for step in range(0, calls, 4):  # the folders for its result are looked for in five calls, and then made
        copied(template, work, words)
        ended = failing_cas.run(replace(run, step=step))
        assert_plain_exit(ended, (step, ended))


def assert_plain_exit(ended: Failed, where: object) -> None:
    """Check that a command succeeded or was refused, without a traceback."""
    assert "Traceback" not in ended.said, where
    assert "internal error" not in ended.said, where
    assert ended.status in {0, 1}, where


def sizes(records: dict[str, list[bytes]]) -> dict[str, int]:
    """Return the number of records of each log; the ids of records depend on the time."""
    return {root: len(ids) for root, ids in records.items()}
