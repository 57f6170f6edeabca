"""`cas try` runs a command on a copy: what it prints and how it ends are its own, and the person's files stay."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import IO

import pytest

from tests.support.command_runner import PATIENCE, PROGRAM, Answer, CommandRunner, environment, on_terminal
from tests.support.git_repository import git
from tests.support.hooked_agents import ClaudeCode

ALL = b"1\ntwo\nthree\n4\n"
ODD = b"odd\n\xff name"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which copies are made, and let processes make theirs there."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def copies(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.glob("*/copy-*"))


def states(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return all that can be seen of each file below a folder, but not the time of its last read."""
    found: dict[str, tuple[object, ...]] = {}
    for at, names, files in os.walk(folder):
        if at == str(folder):
            names.remove(".cas")
        for name in [*names, *files]:
            path = str(Path(at) / name)
            seen = os.lstat(path)
            content = b"" if not stat.S_ISREG(seen.st_mode) else Path(path).read_bytes()
            found[path] = (seen.st_ino, seen.st_mode, seen.st_nlink, seen.st_mtime_ns, seen.st_ctime_ns, content)
    return found


def odd_files(runner: CommandRunner) -> None:
    runner.write("a", b"1\n2\n3\n")
    (runner.folder / "deep" / "er").mkdir(parents=True)
    (runner.folder / "deep" / "er" / "tool").write_text("#!/bin/sh\necho tool $1\n")
    (runner.folder / "deep" / "er" / "tool").chmod(0o755)
    (runner.folder / "link").symlink_to("a")
    (runner.folder / "dangling").symlink_to("/nowhere/at all")
    (runner.folder / os.fsdecode(ODD)).write_bytes(b"odd")


def test_person_s_files_keep_bytes_times_and_inodes_whatever_the_command_does(
    runner: CommandRunner, place: Path
) -> None:
    odd_files(runner)
    before = states(runner.folder)
    ran = runner.cas("try", "--", "sh", "-c", "echo x >> a; rm -r deep; chmod 777 link; mkdir new; echo y > new/f; ls")
    assert (ran.status, b"deep" in ran.out.split()) == (0, False)
    assert states(runner.folder) == before
    assert copies(place) == []


def test_copy_has_symlinks_odd_names_and_modes_as_they_are(runner: CommandRunner, place: Path) -> None:
    odd_files(runner)
    kept = place / "kept"
    runner.done("try", "--", "cp", "-a", ".", str(kept))
    assert (kept / "deep" / "er" / "tool").stat().st_mode & 0o777 == 0o755
    assert (str((kept / "link").readlink()), str((kept / "dangling").readlink())) == ("a", "/nowhere/at all")
    assert (kept / os.fsdecode(ODD)).read_bytes() == b"odd"
    assert not (kept / ".cas").exists()
    assert runner.done("try", "deep/er/tool", "--flag").text == "tool --flag\n"
    assert (kept / "a").stat().st_mtime_ns == (runner.folder / "a").stat().st_mtime_ns


def test_link_to_a_full_path_in_the_workspace_leads_into_the_copy(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"mine\n")
    (tmp_path / "outside").write_bytes(b"outside\n")
    (runner.folder / "whole").symlink_to(runner.folder / "a")
    (runner.folder / "out").symlink_to(tmp_path / "outside")
    assert runner.done("try", "--", "sh", "-c", "echo more >> whole; cat a out").text == "mine\nmore\noutside\n"
    assert runner.bytes("a") == b"mine\n"


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 7", 7), ("kill -9 $$", 137), ("exec nothing-of-this-name", 127), (":", 0)],
)
def test_exit_status_is_the_command_s(runner: CommandRunner, place: Path, command: str, status: int) -> None:
    assert runner.cas("try", "--", "sh", "-c", command).status == status
    assert copies(place) == []


def test_command_that_is_not_there_is_said_with_how_ignored_files_are_linked(
    runner: CommandRunner, place: Path
) -> None:
    git(runner.folder, "init", "-q")
    (runner.folder / ".gitignore").write_text("/.venv/\n")
    (runner.folder / ".venv" / "bin").mkdir(parents=True)
    (runner.folder / ".venv" / "bin" / "tool").write_text("#!/bin/sh\necho in the environment\n")
    (runner.folder / ".venv" / "bin" / "tool").chmod(0o755)
    ran = runner.cas("try", ".venv/bin/tool")
    assert (ran.status, ran.out) == (127, b"")
    assert "cas config set try.links '.venv'" in ran.said
    runner.done("config", "set", "try.links", ".venv .git .cas")
    assert runner.done("try", ".venv/bin/tool").text == "in the environment\n"
    assert runner.done("try", "ls", "-A").text == ".gitignore\n.venv\n"
    assert copies(place) == []


def test_input_and_both_outputs_are_the_command_s(runner: CommandRunner) -> None:
    program = [*PROGRAM, "try", "--", "sh", "-c", "cat; echo said >&2"]
    ran = subprocess.run(
        program, cwd=runner.folder, env=environment({}), input=b"in\0put", capture_output=True, check=True
    )
    assert (ran.stdout, ran.stderr) == (b"in\0put", b"said\n")


def test_command_sees_what_a_decision_would_leave(turns: CommandRunner, place: Path) -> None:
    assert turns.done("try", "cat", "a").out == ALL
    assert turns.done("try", "--reject", "2", "cat", "a").out == b"1\n2\nthree\n4\n"
    assert turns.done("try", "--turn", "2", "--", "sh", "-c", "cat a; ls").text == "1\n2\nthree\n4\na\n"
    assert turns.done("try", "--session", "two", "cat", "a").out == b"1\ntwo\nthree\n"
    turns.done("reject", "5")
    assert turns.done("try", "--accept", "5", "cat", "a").out == ALL
    turns.done("accept", "1", "2")
    assert turns.done("try", "--accepted", "--", "sh", "-c", "cat a; ls").text == "1\ntwo\n3\na\n"
    assert turns.bytes("a") == b"1\ntwo\n3\n4\n"
    assert len(turns.done("log", "--json").lines()) == 5
    assert copies(place) == []


KINDS = {
    "nothing": "rm -rf {0}",
    "file": "rm -rf {0}; printf target > {0}; chmod 644 {0}",
    "program": "rm -rf {0}; printf target > {0}; chmod 755 {0}",
    "link": "rm -rf {0}; ln -s target {0}",
    "folder": "rm -rf {0}; mkdir {0}; echo 1 > {0}/b; echo 2 > {0}/c",
}
"""How a path becomes something of each kind; file and link have the same bytes."""

LISTED = "find . -path ./.cas -prune -o ! -type d -printf '%P %y %m %l\\n' | sort; cat p-*/* p-* 2>/dev/null; true"


def test_copy_has_what_the_decision_leaves_of_a_path_that_became_something_else(runner: CommandRunner) -> None:
    names = {(before, after): f"p-{before}-{after}" for before, after in permutations(KINDS, 2)}
    made = "; ".join(KINDS[before].format(name) for (before, _), name in names.items())
    subprocess.run(["/bin/sh", "-c", f"printf x > target; {made}"], cwd=runner.folder, check=True)
    runner.done("record")
    session = ClaudeCode(runner.folder)
    session.ask("change all")
    session.run("; ".join(KINDS[after].format(name) for (_, after), name in names.items()))
    tried = runner.done("try", "--turn", "1", "/bin/sh", "-c", LISTED).text
    runner.done("reject", "--turn", "1", "--yes")
    left = subprocess.run(["/bin/sh", "-c", LISTED], cwd=runner.folder, capture_output=True, check=False)
    assert tried == left.stdout.decode()


def test_trial_that_conflicts_is_refused_with_the_way_out(turns: CommandRunner) -> None:
    refused = turns.cas("try", "--reject", "1", "ls")
    assert (refused.status, refused.out) == (1, b"")
    assert "--cascade" in refused.said
    assert turns.done("try", "--reject", "1", "--cascade", "ls").out == b"b\n"


def test_what_was_changed_outside_is_in_the_copy(turns: CommandRunner) -> None:
    (turns.folder / "a").write_bytes(b"0\n" + ALL)
    (turns.folder / "new").write_bytes(b"new\n")
    assert turns.done("try", "--reject", "2", "--", "sh", "-c", "cat a new").out == b"0\n1\n2\nthree\n4\nnew\n"
    assert turns.bytes("a") == b"0\n" + ALL


def test_command_starts_in_the_folder_where_the_person_is(runner: CommandRunner) -> None:
    odd_files(runner)
    assert runner.done("-C", "deep/er", "try", "./tool", "here").text == "tool here\n"
    assert runner.done("try", "--", "sh", "-c", "basename $PWD; echo $CAS_TRY_OF").text == f"ws\n{runner.folder}\n"


def test_trial_inside_a_trial_does_not_reach_the_workspace(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    words = [*PROGRAM, "status"]
    assert runner.cas("try", "--", *words, CAS_WORKSPACE=str(runner.folder)).status == 10


@contextmanager
def started(runner: CommandRunner, *words: str) -> Iterator[tuple["subprocess.Popen[bytes]", IO[bytes]]]:
    """Start a trial, and yield its process and what it prints."""
    program = [*PROGRAM, "try", "--", *words]
    with subprocess.Popen(program, cwd=runner.folder, env=environment({}), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process, process.stdout


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def noted_pid(note: Path) -> int:
    """Wait until a command has written its number into a file."""
    until = time.monotonic() + PATIENCE
    while not (note.exists() and note.read_text().endswith("\n")) and time.monotonic() < until:
        time.sleep(0.01)
    return int(note.read_text())


def wait_until_gone(pid: int) -> None:
    until = time.monotonic() + PATIENCE
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_alive(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_command_with_all_that_it_started(
    runner: CommandRunner, place: Path, number: signal.Signals
) -> None:
    with started(runner, "sh", "-c", "sleep 1000 & echo $!; wait") as (process, shown):
        child = int(shown.readline())
        process.send_signal(number)
        assert process.wait(PATIENCE) == 128 + number
    wait_until_gone(child)
    assert copies(place) == []


def test_what_the_command_leaves_behind_is_ended(runner: CommandRunner, place: Path) -> None:
    child = int(runner.done("try", "--", "sh", "-c", "sleep 1000 > /dev/null 2>&1 & echo $!").out)
    wait_until_gone(child)
    assert copies(place) == []


def test_next_trial_sweeps_what_a_killed_one_left_and_spares_a_living_one(runner: CommandRunner, place: Path) -> None:
    with started(runner, "sh", "-c", "echo; exec sleep 1000") as (living, printed):
        printed.readline()
        with started(runner, "sh", "-c", "chmod 0 .; echo $$; exec sleep 1000") as (killed, shown):
            command = int(shown.readline())
            killed.kill()
            os.kill(command, signal.SIGKILL)
        wait_until_gone(command)
        assert len(copies(place)) == 2
        runner.done("try", "true", TMPDIR=str(place))
        assert len(copies(place)) == 1
        living.terminate()
    assert copies(place) == []


def test_command_reads_the_terminal_and_ctrl_c_ends_it_alone(runner: CommandRunner, place: Path) -> None:
    # Python does not notice a signal that comes just before a sleep begins until that ends: sleep often.
    script = "import time; print('got', input('ask'), flush=True)\nwhile True: time.sleep(0.1)"
    status, shown = on_terminal(
        ["try", "--", sys.executable, "-c", script],
        Answer(after="ask", typed=lambda: "something\n"),
        Answer(after="got something", typed=lambda: "\x03"),
        folder=runner.folder,
    )
    assert "got something" in shown
    assert status == 130
    assert copies(place) == []


def test_copies_are_never_made_in_the_workspace(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    inside = runner.folder / "tmp"
    inside.mkdir()
    refused = runner.cas("try", "ls", TMPDIR=str(inside), XDG_CACHE_HOME=str(inside))
    assert refused.status == 1
    assert "Set TMPDIR to a folder elsewhere" in refused.said
    assert not any(inside.iterdir())


def test_two_ways_to_select_are_refused(runner: CommandRunner) -> None:
    assert runner.cas("try", "--reject", "1", "--accepted", "ls").status == 2
    assert runner.cas("try", "--accepted").status == 2


def test_reading_the_copy_s_large_and_binary_files_gives_the_same_bytes(runner: CommandRunner) -> None:
    (runner.folder / "large").write_bytes(os.urandom(3_000_000))
    (runner.folder / "empty").write_bytes(b"")
    (runner.folder / "nothing inside").mkdir()
    sums = ("sh", "-c", "cksum < large; cksum < empty; ls")
    shown = runner.done("try", "--", *sums)
    there = subprocess.run(sums, cwd=runner.folder, capture_output=True, check=True)
    assert shown.out == there.stdout
