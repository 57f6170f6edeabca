"""`cas watch` records changes as they happen: one call for each burst, attributed to hooked agents or to the user."""

import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import pytest

from cli.commands.watch_batches import change_batches
from objstore import EditView, Operation, Origin, Status, Workspace
from tests.support.command_runner import ANYBODY, PATIENCE, PROGRAM, CommandRunner, cas, environment
from tests.support.hooked_agents import ClaudeCode


@contextmanager
def started_watcher(
    folder: Path, *words: str, quiet: int = 100, launcher: Sequence[str] = ()
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a watcher; yield it once it says that it watches. `launcher` is the command in front of `cas`."""
    command = [*launcher, *PROGRAM, "watch", "--quiet-for", str(quiet), *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=environment({}), stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert b"Watching" in line, process.communicate(timeout=PATIENCE)  # the other output
            yield process
        finally:
            process.kill()


@contextmanager
def watching(
    folder: Path,
    *words: str,
    quiet: int = 100,
    end: signal.Signals = signal.SIGINT,
    launcher: Sequence[str] = (),
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a watcher, and end it by a signal afterwards."""
    with started_watcher(folder, *words, quiet=quiet, launcher=launcher) as process:
        yield process
        process.send_signal(end)
        assert process.wait(PATIENCE) == 128 + end


def wait_for_edits(folder: Path, count: int) -> list[EditView]:
    """Wait until there are `count` edits, and return them."""
    until = time.monotonic() + PATIENCE
    found: list[EditView] = []
    while len(found) < count:
        assert time.monotonic() < until, found
        time.sleep(0.05)
        with Workspace.open(folder) as workspace:
            found = workspace.history.edits()
    return found


def test_a_burst_is_recorded_as_one_call_of_a_person(runner: CommandRunner) -> None:
    (runner.folder / "a.txt").write_text("one\n")
    cas("record", folder=runner.folder)
    with watching(runner.folder):
        # One rename, whose events arrive together.
        (runner.folder / "a.txt").rename(runner.folder / "b.txt")
        (first,) = wait_for_edits(runner.folder, 1)
        (runner.folder / "c.txt").write_text("new\n")
        second = wait_for_edits(runner.folder, 2)[1]
    assert (first.edit.operation, first.edit.path, first.edit.source) == (Operation.MOVE, b"b.txt", b"a.txt")
    assert (second.edit.operation, second.edit.path) == (Operation.CREATE, b"c.txt")
    assert {first.edit.origin, second.edit.origin} == {Origin.PERSON}
    assert {first.status, second.status} == {Status.ACCEPTED}


def test_changes_of_a_hooked_agent_are_attributed_to_it(runner: CommandRunner) -> None:
    cas("record", folder=runner.folder)
    session = ClaudeCode(runner.folder)
    with watching(runner.folder):
        session.tell(session.shell_event("work", before=True))
        (runner.folder / "c.txt").write_text("new\n")
        (found,) = wait_for_edits(runner.folder, 1)
        session.tell(session.shell_event("work", before=False))
    assert (found.edit.conversation, found.edit.origin) == ("session-1", Origin.AGENT)


def test_changes_watched_with_agent_are_pending(runner: CommandRunner) -> None:
    cas("record", folder=runner.folder)
    with watching(runner.folder, "--agent", "some-agent", "--conversation", "c1"):
        (runner.folder / "c.txt").write_text("new\n")
        (found,) = wait_for_edits(runner.folder, 1)
    assert (found.edit.conversation, found.status) == ("c1", Status.PENDING)
    assert found.edit.notes["agent"] == "some-agent"


def test_only_the_store_folder_is_not_watched(runner: CommandRunner) -> None:
    """Other names that begin with `.cas` are watched."""
    (runner.folder / ".cassettes").mkdir()
    cas("record", folder=runner.folder)
    with watching(runner.folder):
        (runner.folder / ".cassettes" / "one.yml").write_text("new\n")
        (first,) = wait_for_edits(runner.folder, 1)
        (runner.folder / ".casignore").write_text("*.o\n")
        second = wait_for_edits(runner.folder, 2)[1]
    assert [first.edit.path, second.edit.path] == [b".cassettes/one.yml", b".casignore"]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_last_changes_are_recorded_before_the_watcher_exits(runner: CommandRunner, end: signal.Signals) -> None:
    cas("record", folder=runner.folder)
    with watching(runner.folder, "--agent", "some-agent", quiet=60_000, end=end):
        (runner.folder / "c.txt").write_text("new\n")
    (found,) = wait_for_edits(runner.folder, 1)
    assert (found.edit.path, found.edit.notes["agent"], found.status) == (b"c.txt", "some-agent", Status.PENDING)


def test_a_second_interrupt_ends_the_watcher_at_once(runner: CommandRunner) -> None:
    cas("record", folder=runner.folder)
    with started_watcher(runner.folder) as process, (runner.folder / ".cas" / "agents" / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a scanning process does, for which the watcher waits
        (runner.folder / "c.txt").write_text("new\n")
        until = time.monotonic() + PATIENCE
        while process.poll() is None:  # two signals at the same moment count as one
            assert time.monotonic() < until
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        assert process.returncode == -signal.SIGINT


def test_a_temporarily_full_disk_does_not_end_the_watcher(runner: CommandRunner) -> None:
    cas("record", folder=runner.folder)
    with watching(runner.folder) as process:
        limits = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, limits[1]))  # as on a full disk
        (runner.folder / "c.txt").write_text("new\n")
        assert process.stderr is not None
        assert process.stderr.readline().startswith(b"cas: ")
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
        (found,) = wait_for_edits(runner.folder, 1)
    assert found.edit.path == b"c.txt"


def test_an_unreadable_folder_is_named_and_the_others_are_watched(runner: CommandRunner) -> None:
    for name in ("a", "database", "z"):
        (runner.folder / name).mkdir()
    cas("record", folder=runner.folder)
    (runner.folder / "database").chmod(0)
    with watching(runner.folder, launcher=(sys.executable, "-c", ANYBODY)) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"cas: skipped: database: may not be read\n"
        (runner.folder / "a" / "f").write_text("1\n")
        (first,) = wait_for_edits(runner.folder, 1)
        (runner.folder / "z" / "f").write_text("2\n")
        second = wait_for_edits(runner.folder, 2)[1]
        # Once it is readable, it is watched like the others.
        (runner.folder / "database").chmod(0o755)
        (runner.folder / "database" / "f").write_text("3\n")
        third = wait_for_edits(runner.folder, 3)[2]
        (runner.folder / "database" / "f").write_text("4\n")
        fourth = wait_for_edits(runner.folder, 4)[3]
    assert [view.edit.path for view in (first, second)] == [b"a/f", b"z/f"]
    assert {view.edit.path for view in (third, fourth)} == {b"database/f"}


@pytest.mark.skipif(sys.platform != "linux", reason="what a process watches is in /proc")
def test_symlinks_are_not_followed(runner: CommandRunner, tmp_path: Path) -> None:
    (tmp_path / "outside" / "inner").mkdir(parents=True)
    (runner.folder / "sub").mkdir()
    (runner.folder / "sub" / "out").symlink_to(tmp_path / "outside")
    (runner.folder / "processes").symlink_to("/proc")  # which has unreadable folders
    cas("record", folder=runner.folder)
    with watching(runner.folder) as process:
        (runner.folder / "late").symlink_to(tmp_path / "outside")
        (runner.folder / "sub" / "f").write_text("new\n")
        wait_for_edits(runner.folder, 1)
        watched = []
        for open_file in Path(f"/proc/{process.pid}/fdinfo").iterdir():
            with suppress(OSError):  # it has been closed
                lines = open_file.read_text().splitlines()
                watched += [int(line.split()[2][4:], 16) for line in lines if line.startswith("inotify ")]
    assert sorted(watched) == sorted(folder.stat().st_ino for folder in (runner.folder, runner.folder / "sub"))


def test_new_moved_and_recreated_folders_are_watched(runner: CommandRunner, tmp_path: Path) -> None:
    (runner.folder / "old" / "deep").mkdir(parents=True)
    (runner.folder / "old" / "deep" / "f").write_text("1\n")
    (tmp_path / "else" / "deep").mkdir(parents=True)
    cas("record", folder=runner.folder)
    with watching(runner.folder):
        (runner.folder / "old").rename(runner.folder / "new")
        wait_for_edits(runner.folder, 1)
        (runner.folder / "new" / "deep" / "f").write_text("2\n")
        wait_for_edits(runner.folder, 2)
        (tmp_path / "else").rename(runner.folder / "else")
        (runner.folder / "else" / "deep" / "g").write_text("1\n")
        wait_for_edits(runner.folder, 3)
        (runner.folder / "else" / "deep" / "g").write_text("2\n")
        wait_for_edits(runner.folder, 4)
        shutil.rmtree(runner.folder / "new")
        (runner.folder / "new" / "deep").mkdir(parents=True)
        (runner.folder / "new" / "deep" / "f").write_text("3\n")
        wait_for_edits(runner.folder, 5)
        (runner.folder / "new" / "deep" / "f").write_text("4\n")
        paths = [view.edit.path for view in wait_for_edits(runner.folder, 6)]
    assert paths == [b"new/deep/f"] * 2 + [b"else/deep/g"] * 2 + [b"new/deep/f"] * 2


NOT_UTF_8 = os.fsdecode(b"\xe9t\xe9")
"""A file name that is not UTF-8."""


def test_names_that_are_not_utf_8_are_watched(runner: CommandRunner) -> None:
    cas("record", folder=runner.folder)
    with watching(runner.folder):
        (runner.folder / NOT_UTF_8).write_text("1\n")
        wait_for_edits(runner.folder, 1)
        (runner.folder / NOT_UTF_8).unlink()
        wait_for_edits(runner.folder, 2)
        (runner.folder / f"in {NOT_UTF_8}" / "deep").mkdir(parents=True)
        (runner.folder / f"in {NOT_UTF_8}" / "deep" / "f").write_text("1\n")
        wait_for_edits(runner.folder, 3)
        (runner.folder / f"in {NOT_UTF_8}" / "deep" / "f").write_text("2\n")
        wait_for_edits(runner.folder, 4)
        (runner.folder / "f").write_text("1\n")
        names = [os.fsdecode(view.edit.path) for view in wait_for_edits(runner.folder, 5)]
    assert names == [NOT_UTF_8, NOT_UTF_8, f"in {NOT_UTF_8}/deep/f", f"in {NOT_UTF_8}/deep/f", "f"]


class NeverEnding:
    """An event that is never set."""

    def is_set(self) -> bool:
        return False


def test_reading_files_with_names_that_are_not_utf_8_is_no_change(tmp_path: Path) -> None:
    """A scan reads these files too, and would otherwise cause the next scan."""
    (tmp_path / "inner" / NOT_UTF_8).mkdir(parents=True)
    (tmp_path / NOT_UTF_8).write_text("1\n")
    rounds = change_batches(str(tmp_path), ".cas", quiet=50, ending=NeverEnding(), left_out=lambda _: None)
    assert next(rounds)
    for _ in range(5):
        (tmp_path / NOT_UTF_8).read_text()
        list((tmp_path / "inner" / NOT_UTF_8).iterdir())
        assert not next(rounds)
    (tmp_path / NOT_UTF_8).write_text("2\n")
    assert next(rounds)
    (tmp_path / "inner" / NOT_UTF_8 / "f").write_text("1\n")
    assert any(islice(rounds, 100))


def test_constant_changes_to_a_name_that_is_not_utf_8_do_not_delay_recording(
    runner: CommandRunner,
) -> None:
    cas("record", folder=runner.folder)
    over = threading.Event()

    def write() -> None:
        with (runner.folder / NOT_UTF_8).open("a") as log:
            while not over.wait(0.01):
                log.write("more\n")
                log.flush()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with watching(runner.folder):
            wait_for_edits(runner.folder, 2)
    finally:
        over.set()
        writer.join()


def test_a_workspace_whose_own_name_is_not_utf_8_is_watched(tmp_path: Path) -> None:
    (tmp_path / NOT_UTF_8 / "inner").mkdir(parents=True)
    runner = CommandRunner(tmp_path / NOT_UTF_8)
    cas("record", folder=runner.folder)
    with watching(runner.folder):
        (runner.folder / "inner" / "f").write_text("1\n")
        wait_for_edits(runner.folder, 1)
        (runner.folder / "inner" / "new").mkdir()
        (runner.folder / "inner" / "new" / "g").write_text("1\n")
        wait_for_edits(runner.folder, 2)
        (runner.folder / "inner" / "new" / "g").write_text("2\n")
        paths = [view.edit.path for view in wait_for_edits(runner.folder, 3)]
    assert paths == [b"inner/f", b"inner/new/g", b"inner/new/g"]


WITH_TEN_WATCHES = ["unshare", "-Ur", "sh", "-c", 'echo 10 > /proc/sys/user/max_inotify_watches && exec "$@"', "sh"]
"""A command prefix that limits a program to watching ten folders."""


def can_limit_watches() -> bool:
    with suppress(OSError):
        return subprocess.run([*WITH_TEN_WATCHES, "true"], capture_output=True, check=False).returncode == 0
    return False


@pytest.mark.skipif(not can_limit_watches(), reason="user namespaces are not available")
@pytest.mark.parametrize("count", [20, 4])
def test_folders_beyond_the_systems_limit_are_counted_and_the_others_watched(runner: CommandRunner, count: int) -> None:
    for number in range(count):
        (runner.folder / f"d{number}").mkdir()
    (runner.folder / "f").write_text("1\n")
    cas("record", folder=runner.folder)
    with watching(runner.folder, launcher=WITH_TEN_WATCHES) as process:
        for number in range(20 - count):
            (runner.folder / f"n{number}").mkdir()
        assert process.stderr is not None
        warning = process.stderr.readline()
        assert b"folders can't be watched: the system limit is reached" in warning
        if count == 20:  # with fewer, some folders are created after the warning
            assert int(warning.split()[1]) in range(21 - 10, 21)
        (runner.folder / "f").write_text("2\n")
        (found,) = wait_for_edits(runner.folder, 1)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read().count(b"can't be watched") == 0
    assert found.edit.path == b"f"


@pytest.mark.skipif(not can_limit_watches(), reason="user namespaces are not available")
def test_a_watcher_that_cannot_watch_the_workspace_folder_exits_with_1(runner: CommandRunner) -> None:
    command = [word.replace("echo 10", "echo 0") for word in WITH_TEN_WATCHES] + [*PROGRAM, "watch"]
    ran = subprocess.run(
        command, cwd=runner.folder, env=environment({}), capture_output=True, timeout=PATIENCE, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr.count(b"\n")) == (1, b"", 1)
    assert b"limit reached" in ran.stderr


@pytest.mark.skipif(not can_limit_watches(), reason="user namespaces are not available")
def test_a_watcher_without_inotify_instances_names_the_limit(runner: CommandRunner) -> None:
    limited = [
        word.replace("10 > /proc/sys/user/max_inotify_watches", "0 > /proc/sys/user/max_inotify_instances")
        for word in WITH_TEN_WATCHES
    ]
    command = [*limited, *PROGRAM, "watch"]
    ran = subprocess.run(
        command, cwd=runner.folder, env=environment({}), capture_output=True, timeout=PATIENCE, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert (
        ran.stderr == b"cas: nothing more can be watched: the system limit is reached (fs.inotify.max_user_instances)\n"
    )
