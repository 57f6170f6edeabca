"""`cas watch` records what happens as it happens: bursts as calls, an agent's where a hook tells, else a person's."""

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

from cli.commands.setting_up.watch_batches import change_batches
from objstore import EditView, Operation, Origin, Status, Workspace
from tests.support.command_runner import ANYBODY, PATIENCE, PROGRAM, CommandRunner, cas, environment
from tests.support.hooked_agents import ClaudeCode


@contextmanager
def started(
    folder: Path, *words: str, quiet: int = 100, begun_by: Sequence[str] = ()
) -> Iterator["subprocess.Popen[bytes]"]:
    """Have the workspace watched, from the moment on at which the watcher says so. `begun_by`: what starts it."""
    command = [*begun_by, *PROGRAM, "watch", "--quiet-for", str(quiet), *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=environment({}), stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            assert b"Watching" in said, process.communicate(timeout=PATIENCE)  # what it says instead
            yield process
        finally:
            process.kill()


@contextmanager
def watching(
    folder: Path,
    *words: str,
    quiet: int = 100,
    end: signal.Signals = signal.SIGINT,
    begun_by: Sequence[str] = (),
) -> Iterator["subprocess.Popen[bytes]"]:
    """Watch the workspace, and then end that."""
    with started(folder, *words, quiet=quiet, begun_by=begun_by) as process:
        yield process
        process.send_signal(end)
        assert process.wait(PATIENCE) == 128 + end


def recorded(folder: Path, count: int) -> list[EditView]:
    """Return the edits once there are so many."""
    until = time.monotonic() + PATIENCE
    found: list[EditView] = []
    while len(found) < count:
        assert time.monotonic() < until, found
        time.sleep(0.05)
        with Workspace.open(folder) as workspace:
            found = workspace.history.edits()
    return found


def test_a_burst_is_one_call_and_a_persons_edits_are_theirs(runner: CommandRunner) -> None:
    (runner.folder / "a.txt").write_text("one\n")
    cas("record", folder=runner.folder)
    with watching(runner.folder):
        # One rename: what the watcher sees of it is there at once.
        (runner.folder / "a.txt").rename(runner.folder / "b.txt")
        (first,) = recorded(runner.folder, 1)
        (runner.folder / "c.txt").write_text("new\n")
        second = recorded(runner.folder, 2)[1]
    assert (first.edit.operation, first.edit.path, first.edit.source) == (Operation.MOVE, b"b.txt", b"a.txt")
    assert (second.edit.operation, second.edit.path) == (Operation.CREATE, b"c.txt")
    assert {first.edit.origin, second.edit.origin} == {Origin.PERSON}
    assert {first.status, second.status} == {Status.ACCEPTED}


def test_what_a_hooked_agent_does_while_we_watch_is_the_agents(runner: CommandRunner) -> None:
    cas("record", folder=runner.folder)
    session = ClaudeCode(runner.folder)
    with watching(runner.folder):
        session.tell(session.shell_event("work", before=True))
        (runner.folder / "c.txt").write_text("new\n")
        (found,) = recorded(runner.folder, 1)
        session.tell(session.shell_event("work", before=False))
    assert (found.edit.conversation, found.edit.origin) == ("session-1", Origin.AGENT)


def test_what_an_agent_is_said_to_do_is_pending(runner: CommandRunner) -> None:
    cas("record", folder=runner.folder)
    with watching(runner.folder, "--agent", "some-agent", "--conversation", "c1"):
        (runner.folder / "c.txt").write_text("new\n")
        (found,) = recorded(runner.folder, 1)
    assert (found.edit.conversation, found.status) == ("c1", Status.PENDING)
    assert found.edit.notes["agent"] == "some-agent"


def test_only_the_stores_own_folder_is_not_watched(runner: CommandRunner) -> None:
    """Not each that has a name like it."""
    (runner.folder / ".cassettes").mkdir()
    cas("record", folder=runner.folder)
    with watching(runner.folder):
        (runner.folder / ".cassettes" / "one.yml").write_text("new\n")
        (first,) = recorded(runner.folder, 1)
        (runner.folder / ".casignore").write_text("*.o\n")
        second = recorded(runner.folder, 2)[1]
    assert [first.edit.path, second.edit.path] == [b".cassettes/one.yml", b".casignore"]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_happens_last_is_recorded_before_the_watcher_goes(runner: CommandRunner, end: signal.Signals) -> None:
    cas("record", folder=runner.folder)
    with watching(runner.folder, "--agent", "some-agent", quiet=60_000, end=end):
        (runner.folder / "c.txt").write_text("new\n")
    (found,) = recorded(runner.folder, 1)
    assert (found.edit.path, found.edit.notes["agent"], found.status) == (b"c.txt", "some-agent", Status.PENDING)


def test_who_interrupts_twice_waits_for_nobody(runner: CommandRunner) -> None:
    cas("record", folder=runner.folder)
    with started(runner.folder) as process, (runner.folder / ".cas" / "agents" / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as somebody does who looks, and whom the watcher would wait for
        (runner.folder / "c.txt").write_text("new\n")
        until = time.monotonic() + PATIENCE
        while process.poll() is None:  # two that come at once are one
            assert time.monotonic() < until
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        assert process.returncode == -signal.SIGINT


def test_a_store_that_takes_nothing_for_a_while_ends_no_watching(runner: CommandRunner) -> None:
    cas("record", folder=runner.folder)
    with watching(runner.folder) as process:
        whole = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, whole[1]))  # as on a full disk
        (runner.folder / "c.txt").write_text("new\n")
        assert process.stderr is not None
        assert process.stderr.readline().startswith(b"cas: ")
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, whole)
        (found,) = recorded(runner.folder, 1)
    assert found.edit.path == b"c.txt"


def test_a_folder_that_may_not_be_read_is_named_and_the_rest_is_watched(runner: CommandRunner) -> None:
    for name in ("a", "database", "z"):
        (runner.folder / name).mkdir()
    cas("record", folder=runner.folder)
    (runner.folder / "database").chmod(0)
    with watching(runner.folder, begun_by=(sys.executable, "-c", ANYBODY)) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"cas: skipped: database: may not be read\n"
        (runner.folder / "a" / "f").write_text("1\n")
        (first,) = recorded(runner.folder, 1)
        (runner.folder / "z" / "f").write_text("2\n")
        second = recorded(runner.folder, 2)[1]
        # Once it may be read it is no other than they are.
        (runner.folder / "database").chmod(0o755)
        (runner.folder / "database" / "f").write_text("3\n")
        third = recorded(runner.folder, 3)[2]
        (runner.folder / "database" / "f").write_text("4\n")
        fourth = recorded(runner.folder, 4)[3]
    assert [view.edit.path for view in (first, second)] == [b"a/f", b"z/f"]
    assert {view.edit.path for view in (third, fourth)} == {b"database/f"}


@pytest.mark.skipif(sys.platform != "linux", reason="what a process watches is in /proc")
def test_no_link_is_followed_where_it_leads(runner: CommandRunner, tmp_path: Path) -> None:
    (tmp_path / "outside" / "inner").mkdir(parents=True)
    (runner.folder / "sub").mkdir()
    (runner.folder / "sub" / "out").symlink_to(tmp_path / "outside")
    (runner.folder / "processes").symlink_to("/proc")  # with folders that nobody may read
    cas("record", folder=runner.folder)
    with watching(runner.folder) as process:
        (runner.folder / "late").symlink_to(tmp_path / "outside")
        (runner.folder / "sub" / "f").write_text("new\n")
        recorded(runner.folder, 1)
        watched = []
        for open_file in Path(f"/proc/{process.pid}/fdinfo").iterdir():
            with suppress(OSError):  # it has been closed
                lines = open_file.read_text().splitlines()
                watched += [int(line.split()[2][4:], 16) for line in lines if line.startswith("inotify ")]
    assert sorted(watched) == sorted(folder.stat().st_ino for folder in (runner.folder, runner.folder / "sub"))


def test_folders_that_come_are_watched_whichever_way_they_came(runner: CommandRunner, tmp_path: Path) -> None:
    (runner.folder / "old" / "deep").mkdir(parents=True)
    (runner.folder / "old" / "deep" / "f").write_text("1\n")
    (tmp_path / "else" / "deep").mkdir(parents=True)
    cas("record", folder=runner.folder)
    with watching(runner.folder):
        (runner.folder / "old").rename(runner.folder / "new")
        recorded(runner.folder, 1)
        (runner.folder / "new" / "deep" / "f").write_text("2\n")
        recorded(runner.folder, 2)
        (tmp_path / "else").rename(runner.folder / "else")
        (runner.folder / "else" / "deep" / "g").write_text("1\n")
        recorded(runner.folder, 3)
        (runner.folder / "else" / "deep" / "g").write_text("2\n")
        recorded(runner.folder, 4)
        shutil.rmtree(runner.folder / "new")
        (runner.folder / "new" / "deep").mkdir(parents=True)
        (runner.folder / "new" / "deep" / "f").write_text("3\n")
        recorded(runner.folder, 5)
        (runner.folder / "new" / "deep" / "f").write_text("4\n")
        paths = [view.edit.path for view in recorded(runner.folder, 6)]
    assert paths == [b"new/deep/f"] * 2 + [b"else/deep/g"] * 2 + [b"new/deep/f"] * 2


ODD = os.fsdecode(b"\xe9t\xe9")
"""A name that is no UTF-8."""


def test_names_that_are_not_utf_8_are_watched_like_any_others(runner: CommandRunner) -> None:
    cas("record", folder=runner.folder)
    with watching(runner.folder):
        (runner.folder / ODD).write_text("1\n")
        recorded(runner.folder, 1)
        (runner.folder / ODD).unlink()
        recorded(runner.folder, 2)
        (runner.folder / f"in {ODD}" / "deep").mkdir(parents=True)
        (runner.folder / f"in {ODD}" / "deep" / "f").write_text("1\n")
        recorded(runner.folder, 3)
        (runner.folder / f"in {ODD}" / "deep" / "f").write_text("2\n")
        recorded(runner.folder, 4)
        (runner.folder / "f").write_text("1\n")
        names = [os.fsdecode(view.edit.path) for view in recorded(runner.folder, 5)]
    assert names == [ODD, ODD, f"in {ODD}/deep/f", f"in {ODD}/deep/f", "f"]


class Never:
    """An ending that doesn't come."""

    def is_set(self) -> bool:
        return False


def test_who_only_reads_names_that_are_not_utf_8_is_not_heard(tmp_path: Path) -> None:
    """A look reads them too, and would follow upon itself."""
    (tmp_path / "inner" / ODD).mkdir(parents=True)
    (tmp_path / ODD).write_text("1\n")
    rounds = change_batches(str(tmp_path), ".cas", quiet=50, ending=Never(), left_out=lambda _: None)
    assert next(rounds)
    for _ in range(5):
        (tmp_path / ODD).read_text()
        list((tmp_path / "inner" / ODD).iterdir())
        assert not next(rounds)
    (tmp_path / ODD).write_text("2\n")
    assert next(rounds)
    (tmp_path / "inner" / ODD / "f").write_text("1\n")
    assert any(islice(rounds, 100))


def test_what_happens_all_the_time_to_a_name_that_is_not_utf_8_keeps_nothing_else_from_being_recorded(
    runner: CommandRunner,
) -> None:
    cas("record", folder=runner.folder)
    over = threading.Event()

    def write() -> None:
        with (runner.folder / ODD).open("a") as log:
            while not over.wait(0.01):
                log.write("more\n")
                log.flush()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with watching(runner.folder):
            recorded(runner.folder, 2)
    finally:
        over.set()
        writer.join()


def test_a_workspace_whose_own_name_is_not_utf_8_is_watched(tmp_path: Path) -> None:
    (tmp_path / ODD / "inner").mkdir(parents=True)
    runner = CommandRunner(tmp_path / ODD)
    cas("record", folder=runner.folder)
    with watching(runner.folder):
        (runner.folder / "inner" / "f").write_text("1\n")
        recorded(runner.folder, 1)
        (runner.folder / "inner" / "new").mkdir()
        (runner.folder / "inner" / "new" / "g").write_text("1\n")
        recorded(runner.folder, 2)
        (runner.folder / "inner" / "new" / "g").write_text("2\n")
        paths = [view.edit.path for view in recorded(runner.folder, 3)]
    assert paths == [b"inner/f", b"inner/new/g", b"inner/new/g"]


LIMITED = ["unshare", "-Ur", "sh", "-c", 'echo 10 > /proc/sys/user/max_inotify_watches && exec "$@"', "sh"]
"""Starts what may watch ten folders."""


def can_be_limited() -> bool:
    with suppress(OSError):
        return subprocess.run([*LIMITED, "true"], capture_output=True, check=False).returncode == 0
    return False


@pytest.mark.skipif(not can_be_limited(), reason="the system has no user namespaces, or not for us")
@pytest.mark.parametrize("count", [20, 4])
def test_folders_that_the_system_lets_nobody_watch_are_said_and_the_rest_is_watched(
    runner: CommandRunner, count: int
) -> None:
    for number in range(count):
        (runner.folder / f"d{number}").mkdir()
    (runner.folder / "f").write_text("1\n")
    cas("record", folder=runner.folder)
    with watching(runner.folder, begun_by=LIMITED) as process:
        for number in range(20 - count):
            (runner.folder / f"n{number}").mkdir()
        assert process.stderr is not None
        said = process.stderr.readline()
        assert b"folders can't be watched: the system limit is reached" in said
        if count == 20:  # else not all of them have come when it is said
            assert int(said.split()[1]) in range(21 - 10, 21)
        (runner.folder / "f").write_text("2\n")
        (found,) = recorded(runner.folder, 1)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read().count(b"can't be watched") == 0
    assert found.edit.path == b"f"


@pytest.mark.skipif(not can_be_limited(), reason="the system has no user namespaces, or not for us")
def test_where_not_even_the_workspace_s_own_folder_may_be_watched_that_is_said(runner: CommandRunner) -> None:
    command = [word.replace("echo 10", "echo 0") for word in LIMITED] + [*PROGRAM, "watch"]
    ran = subprocess.run(
        command, cwd=runner.folder, env=environment({}), capture_output=True, timeout=PATIENCE, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr.count(b"\n")) == (1, b"", 1)
    assert b"limit reached" in ran.stderr


@pytest.mark.skipif(not can_be_limited(), reason="the system has no user namespaces, or not for us")
def test_where_nothing_more_may_be_watched_the_limit_is_named(runner: CommandRunner) -> None:
    limited = [
        word.replace("10 > /proc/sys/user/max_inotify_watches", "0 > /proc/sys/user/max_inotify_instances")
        for word in LIMITED
    ]
    command = [*limited, *PROGRAM, "watch"]
    ran = subprocess.run(
        command, cwd=runner.folder, env=environment({}), capture_output=True, timeout=PATIENCE, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert (
        ran.stderr == b"cas: nothing more can be watched: the system limit is reached (fs.inotify.max_user_instances)\n"
    )
