"""Hooks that fail leave a mark, with Python or without it; what changed meanwhile is nobody's for certain."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from fcntl import LOCK_EX, flock
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import objstore
from cli.hooks.handler import log_fault
from objstore import (
    FAILED,
    CallInfo,
    Origin,
    Status,
    TurnInfo,
    Workspace,
    forget_hook_failures,
    hook_failures,
    note_hook_failure,
    note_noticed,
    unnoticed_failures,
)
from tests.support.command_runner import CommandRunner, cas, environment
from tests.support.hooked_agents import ClaudeCode, recorded_project
from tests.support.mounts import can_mount, read_only, small_disk


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return tmp_path / "state"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return recorded_project(tmp_path / "ws", "a.txt")


def statuses(folder: Path) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "cli", "log", "--json"],
        cwd=folder, env=environment({}), capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    return [f"{edit['origin']} {edit['status']}" for edit in map(json.loads, ran.stdout.splitlines())]


def fail(folder: Path, client: str = "claude-code") -> None:
    """Do what the shell of a client does if `cas` can't start."""
    command = FAILED.replace("CLIENT", client)
    subprocess.run(["sh", "-c", command], cwd=folder, env=environment({}), check=True)


def test_change_in_a_call_of_which_neither_hook_could_run_is_not_accepted(folder: Path) -> None:
    agent = ClaudeCode(folder)
    agent.ask("go on")
    fail(folder)
    (folder / "a.txt").write_text("1\nAGENT\n3\n")
    fail(folder)
    assert "hooks failed 2 times" in agent.stop()
    assert statuses(folder) == ["unattributed pending"]


def test_person_who_records_after_failed_hooks_gets_an_unattributed_edit(folder: Path) -> None:
    fail(folder)
    (folder / "a.txt").write_text("1\nAGENT\n3\n")
    environ = environment({})
    subprocess.run([sys.executable, "-P", "-m", "cli", "record"], cwd=folder, env=environ, check=True, timeout=60)
    assert statuses(folder) == ["unattributed pending"]


@pytest.mark.parametrize("how", ["in the log", "outside the store"])
def test_what_was_recorded_before_a_hook_failed_in_the_same_second_stays_accepted(folder: Path, how: str) -> None:
    with Workspace.open(folder) as workspace:
        workspace.hooks.note_turn(TurnInfo(session="s", began=0, prompt="go"), has_begun=True)
        workspace.hooks.pause("s")
        while time.time() % 1 > 0.5:
            time.sleep(0.01)
        (folder / "a.txt").write_text("1\nmine\n3\n")
        workspace.record_changes(CallInfo(tool="record", origin=Origin.PERSON))
        if how == "in the log":
            assert log_fault(str(folder), ["claude-code"], ValueError("something"))
        else:
            assert note_hook_failure(str(folder), "claude-code", "DiskFull")
        (failure,) = hook_failures(str(folder))
        (folder / "a.txt").write_text("1\nAGENT\n3\n")
        workspace.hooks.pause("s")
        edits = workspace.history.edits()
        assert [view.status for view in edits] == [Status.ACCEPTED, Status.PENDING]
        assert edits[0].edit.time < failure.time < edits[1].edit.time


@pytest.mark.parametrize("finds", ["a tool of the server", "a restore", "a look by another program"])
def test_whatever_finds_what_changed_while_a_hook_failed_does_not_accept_it(folder: Path, finds: str) -> None:
    with Workspace.open(folder) as workspace:
        number = workspace.snapshots.take(who="me").view.number
    fail(folder)
    (folder / "a.txt").write_text("1\nAGENT\n3\n")
    with Workspace.open(folder) as workspace:
        if finds == "a tool of the server":
            with workspace.call(CallInfo(tool="write", conversation="ours")) as call:
                call.write("a.txt", b"1\nAGENT\n3\nmore\n")
                call.commit()
        elif finds == "a restore":
            workspace.snapshots.restore(number)
        else:
            workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    assert statuses(folder)[-1] == "unattributed pending"


def test_what_was_taken_for_a_persons_after_a_failed_beginning_awaits_review_once_the_end_fails(folder: Path) -> None:
    agent = ClaudeCode(folder)
    agent.ask("go on")
    agent.run("true")
    fail(folder)  # the beginning of a shell
    assert cas("record", folder=folder).status == 0
    (folder / "a.txt").write_text("1\nAGENT\n3\n")
    assert cas("record", folder=folder).status == 0
    assert statuses(folder) == ["person accepted"]
    fail(folder)  # its end
    agent.stop()
    assert statuses(folder) == ["person pending"]


def test_next_stop_says_failures_once_and_status_until_they_are_forgotten(folder: Path) -> None:
    agent = ClaudeCode(folder)
    agent.ask("go on")
    fail(folder)
    assert "hooks failed 1 time (cas doctor)" in agent.stop()
    assert agent.stop() == ""
    fail(folder)  # perhaps in the same second
    assert "hooks failed 1 time (cas doctor)" in agent.stop()
    runner = CommandRunner.__new__(CommandRunner)
    runner.folder = folder
    for _ in range(2):
        assert "hooks: 2 errors" in runner.done("status").text
        assert "`cas` did not start" in runner.cas("doctor").text
    runner.cas("doctor", "--forget")
    assert "hooks:" not in runner.done("status").text


def killed(folder: Path, state: Path, event: dict[str, Any], how: signal.Signals) -> None:
    """Run a hook that waits for another one, and kill it as a client does that has waited for too long."""
    before = len(hook_failures(str(folder)))
    with (folder / ".cas" / "agents" / "lock").open("wb") as lock:
        flock(lock, LOCK_EX)
        hook = subprocess.Popen(
            [sys.executable, "-P", "-m", "cli", "hook", "claude-code"],
            cwd=folder, env=environment({}), stdin=subprocess.PIPE,
        )  # fmt: skip
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(event).encode())
        hook.stdin.close()
        running = state / "editledger" / "hooks"
        while not (running.is_dir() and any(path.stat().st_size for path in running.iterdir())):
            time.sleep(0.01)
        assert len(hook_failures(str(folder))) == before  # it runs
        hook.send_signal(how)
        hook.wait()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("lost", ["beginning", "both"])
def test_hook_that_its_client_kills_leaves_a_mark(folder: Path, state: Path, lost: str, how: signal.Signals) -> None:
    agent = ClaudeCode(folder)
    agent.ask("go on")
    agent.run("true")
    killed(folder, state, agent.shell_event("work", before=True), how)
    (folder / "a.txt").write_text("1\nAGENT\n3\n")
    if lost == "both":
        killed(folder, state, agent.shell_event("work", before=False), how)
    else:
        agent.tell(agent.shell_event("work", before=False))
    count = 2 if lost == "both" else 1
    assert f"hooks failed {count} time" in agent.stop()
    assert statuses(folder) == ["unattributed pending"]
    assert [failure.said for failure in hook_failures(str(folder))] == ["killed before it was done"] * count
    assert list((state / "editledger" / "hooks").iterdir()) == []
    assert agent.stop() == ""


def test_an_interrupt_ends_a_hook_wherever_it_arrives() -> None:
    """Python drops a KeyboardInterrupt that is raised in the callback of a weak reference, and each import has one."""
    program = """
import os, signal, sys, weakref
from cli.hooks import handler
from cli.shell.entry import main

def handled(arguments, given):
    things = {handled_too()}
    ended = weakref.ref(next(iter(things)), lambda _: os.kill(os.getpid(), signal.SIGINT))
    things.clear()
    print("it goes on", ended(), flush=True)
    return 0

class handled_too:
    pass

handler.main = handled
sys.argv = ["cas", "hook", "claude-code"]
main()
"""
    ran = subprocess.run([sys.executable, "-c", program], input=b"{}", capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_hook_that_is_not_killed_leaves_nothing_behind(folder: Path, state: Path) -> None:
    agent = ClaudeCode(folder)
    agent.ask("go on")
    agent.run("echo 2 >> a.txt")
    agent.stop()
    assert list((state / "editledger" / "hooks").iterdir()) == []
    assert hook_failures(str(folder)) == []


@pytest.mark.parametrize("left", [b"", b"\0", b"claude-code\0relative", b"\xff\0\xfe", b"x" * 5000, b"a b\0/\0/\0/"])
def test_damaged_files_of_running_hooks_are_no_crash(folder: Path, state: Path, left: bytes) -> None:
    (state / "editledger" / "hooks").mkdir(parents=True)
    (state / "editledger" / "hooks" / "1-1").write_bytes(left)
    (state / "editledger" / "hooks" / "folder").mkdir()
    os.mkfifo(state / "editledger" / "hooks" / "pipe")
    (state / "editledger" / "hooks" / "link").symlink_to(folder / "a.txt")
    hook_failures(str(folder))
    assert (folder / "a.txt").read_text() == "1\n2\n3\n"


def test_hook_of_a_broken_installation_leaves_a_mark(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    for name in ("cli", "objstore", "mcptools"):
        shutil.copytree(Path(objstore.__file__).parent.parent / name, broken / name)
    (broken / "objstore" / "__init__.py").write_text("syntax error\n")
    program = tmp_path / "bin" / "cas"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable} -P\nimport sys\nsys.path.insert(0, {str(broken)!r})\n"
        "from cli.shell.entry import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    event = json.dumps(ClaudeCode(folder).shell_event("work", before=True))
    for run in (f"{program}", str(tmp_path / "missing"), f"{sys.executable} -c 'import nothing_of_that_name'"):
        forget_hook_failures(str(folder))
        line = f"{run} hook claude-code 2>/dev/null || {FAILED.replace('CLIENT', 'claude-code')}"
        subprocess.run(["sh", "-c", line], cwd=folder, env=environment({}), check=True, input=event.encode())
        assert [failure.client for failure in hook_failures(str(folder))] == ["claude-code"], run


def fill(folder: Path) -> None:
    """Leave no space on the file system of a folder."""
    with suppress(OSError), (folder / "filling").open("ab", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))


def overwrite(path: Path, content: bytes) -> None:
    """Change a file without more space."""
    with path.open("r+b") as file:
        file.write(content)


def said_once(folder: Path, agent: ClaudeCode) -> None:
    """Check that status and doctor say that hooks failed, and the next stop no more."""
    ran = partial(cas, folder=folder)
    assert "hooks failed" not in agent.stop()
    for _ in range(2):
        assert "hooks: " in ran("status").text
        assert "BAD  errors of hooks: " in ran("doctor").text
    ran("doctor", "--forget")
    assert "hooks: " not in ran("status").text


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Return a workspace on a disk of 4 MiB, with a small and a large recorded file."""
    place = tmp_path / "disk"
    place.mkdir()
    if not can_mount(place):
        pytest.skip("no file system can be mounted here")
    with small_disk(place, 4):
        (place / "ws").mkdir()
        folder = recorded_project(place / "ws" / "project", "a.txt", "mine.txt")
        (folder / "large").write_bytes(os.urandom(500_000))
        assert cas("record", folder=folder).status == 0
        yield folder


def test_beginning_on_a_full_disk_uses_the_reserve_so_that_the_call_is_recorded(small: Path) -> None:
    agent = ClaudeCode(small)
    agent.ask("p" * 2000)
    fill(small.parent)
    agent.calls += 1
    agent.tell(agent.shell_event("c" * 2000, before=True))  # more than a page of the log
    assert not (small / ".cas" / "room").exists()
    overwrite(small / "a.txt", b"1\nA\n3\n")
    agent.tell(agent.shell_event("c" * 2000, before=False))
    assert hook_failures(str(small)) == []
    assert statuses(small)[0] == "agent pending"
    (small.parent / "filling").unlink()
    agent.stop()
    assert (small / ".cas" / "room").exists()  # for the next time


@pytest.mark.parametrize("full_before", ["the beginning", "the end"])
def test_nothing_of_an_agent_on_a_full_disk_is_accepted(small: Path, full_before: str) -> None:
    agent = ClaudeCode(small)
    agent.ask("go on")
    if full_before == "the beginning":
        fill(small.parent)
    agent.calls += 1
    agent.tell(agent.shell_event("work", before=True))
    fill(small.parent)
    overwrite(small / "large", os.urandom(500_000))
    agent.tell(agent.shell_event("work", before=False))
    assert "hooks failed 2 times" in agent.stop()
    assert statuses(small) == ["person accepted"]  # of the large file, before
    (small.parent / "filling").unlink()
    assert "unattributed" in agent.stop()
    assert statuses(small)[0] == "unattributed pending"
    said_once(small, agent)
    overwrite(small / "mine.txt", b"1\nM\n3\n")
    agent.ask("again")
    assert statuses(small)[0] == "external accepted"


def test_nothing_of_an_agent_in_a_read_only_store_is_accepted(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    if not can_mount(tmp_path / "place"):
        pytest.skip("no file system can be mounted here")
    agent = ClaudeCode(folder)
    agent.ask("go on")
    agent.run("true")
    with read_only(folder / ".cas"):
        agent.calls += 1
        agent.tell(agent.shell_event("work", before=True))
        overwrite(folder / "a.txt", b"1\nA\n3\n")
        agent.tell(agent.shell_event("work", before=False))
        assert "hooks failed 3 times (cas doctor)" in agent.stop()
    assert cas("record", folder=folder).status == 0
    assert statuses(folder) == ["unattributed pending"]
    said_once(folder, agent)


def test_change_after_failures_were_taken_into_account_is_the_persons(folder: Path) -> None:
    agent = ClaudeCode(folder)
    fail(folder)
    agent.ask("go on")
    agent.stop()
    (folder / "a.txt").write_text("1\nMINE\n3\n")
    agent.ask("again")
    assert statuses(folder) == ["external accepted"]


def test_marks_of_other_workspaces_don_t_concern_this_one(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    fail(tmp_path / "other")
    assert hook_failures(str(folder)) == []
    fail(folder)
    fail(tmp_path)  # above both
    assert len(hook_failures(str(folder))) == 2
    forget_hook_failures(str(folder))
    assert hook_failures(str(folder)) == []
    assert len(hook_failures(str(tmp_path / "other"))) == 1


@pytest.mark.parametrize("name", ["with space", "with\nnewline", "übung", "-dash", "tab\there"])
def test_folders_of_any_name_have_marks(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    place.mkdir()
    fail(place)
    note_hook_failure(str(place), "codex", "PermissionRefused: no")
    assert [(failure.client, failure.said) for failure in hook_failures(str(place))] == [
        ("claude-code", ""),
        ("codex", "PermissionRefused"),
    ]


def test_mark_goes_to_the_temporary_folder_where_the_state_folder_can_t_be_made(state: Path, folder: Path) -> None:
    shutil.rmtree(state, ignore_errors=True)
    state.write_text("a file")
    note_hook_failure(str(folder), "codex", "DiskFull: no space")
    assert [failure.said for failure in hook_failures(str(folder))] == ["DiskFull"]


def test_damaged_marks_are_no_crash_and_no_failure(state: Path, folder: Path) -> None:
    (state / "editledger").mkdir(parents=True, exist_ok=True)
    (state / "editledger" / "hook-failures").write_bytes(
        b"\0\0x y z /w\0" + b"9" * 40 + b" c - /\0\xff\xfe\0" + b"12 c - relative\0" + b"12 c\0" + os.urandom(99)
    )
    (folder / ".cas" / "agents").mkdir(exist_ok=True)
    (folder / ".cas" / "agents" / "failures").write_text('{"said": [1], "heeded": "x"}')
    assert hook_failures(str(folder)) == []
    assert unnoticed_failures(str(folder), "said") == []


def test_link_in_place_of_the_marks_is_not_followed(state: Path, folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (state / "editledger").mkdir(parents=True, exist_ok=True)
    (state / "editledger" / "hook-failures").symlink_to(victim)
    note_hook_failure(str(folder), "codex", "DiskFull: no space")
    assert victim.read_text() == "untouched"
    assert len(hook_failures(str(folder))) == 1  # in the temporary folder


def test_failures_of_one_second_are_each_noticed(folder: Path) -> None:
    for count in range(1, 4):
        note_hook_failure(str(folder), "codex", "DiskFull: no space")
        unnoticed = unnoticed_failures(str(folder), "said")
        assert len(unnoticed) == 1, count
        note_noticed(str(folder), "said", unnoticed)


@pytest.mark.parametrize(
    "client", ["claude-code", "codex", "gemini", "cursor", "vscode", "cline", "crush", "goose", "qwen-code"]
)
def test_every_command_line_of_setup_leaves_a_mark_if_cas_is_missing(client: str, folder: Path, tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-P", "-m", "cli", "setup", client, "--show"],
        cwd=folder, env=environment({"HOME": str(tmp_path)}), capture_output=True, check=True, text=True, timeout=60,
    ).stdout  # fmt: skip
    command = commands_in(shown)[0]
    program = shutil.which("sh")
    assert program is not None
    missing = tmp_path / "bin"
    missing.mkdir()
    for name in ("sh", "mkdir", "date"):
        found = shutil.which(name)
        assert found is not None
        (missing / name).symlink_to(found)
    command = command.replace(command.split(" hook ")[0], "cas", 1)
    ran = subprocess.run([program, "-c", command], cwd=folder, env=environment({"PATH": str(missing)}), check=False)
    assert [failure.client for failure in hook_failures(str(folder))] == [client]
    assert ran.returncode == (0 if client in {"claude-code", "vscode"} else 1)  # 2 would block a tool


def commands_in(shown: str) -> list[str]:
    """Return the command lines in what `cas setup --show` prints."""
    lines = [line.strip().rstrip(",") for line in shown.splitlines() if " hook " in line]
    return [json.loads("{" + line + "}")["command"] if line.startswith('"') else line for line in lines]
