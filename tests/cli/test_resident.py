"""The helper that stays: does what hooks do, and nothing depends on it."""

import fcntl
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cli.errand import GREETING, SOCKET, TAKEN, asked, identity, packed
from cli.hooking import answer_to, event_of
from cli.wiring import probe
from cli.wiring.doctor import of_helper
from objstore import EditFilter, Operation, Workspace
from tests.cli.agents import ClaudeCode, hook, shell
from tests.cli.desk import NOWHERE, PATIENCE, PROGRAM, SOURCE, Desk, cas, environment

NOTHING = json.dumps({"session_id": "s", "hook_event_name": "Doctor"}).encode()
"""An event with which there is nothing to do."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a workspace with a file and a baseline, as the current folder of this process."""
    root = tmp_path / "ws"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    Desk(root)
    assert cas("record", folder=root).status == 0
    monkeypatch.chdir(root)
    monkeypatch.setenv("XDG_CONFIG_HOME", NOWHERE)
    return root


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@contextmanager
def helper(folder: Path, *, idle: float = PATIENCE) -> Iterator["subprocess.Popen[bytes]"]:
    """Have a helper stay in the workspace."""
    words = [*PROGRAM, "hook", "--resident", "--idle", str(idle)]
    with subprocess.Popen(words, cwd=folder, env=environment({}), stderr=subprocess.PIPE) as process:
        try:
            until(lambda: process.poll() is not None or asked("claude-code", NOTHING) is not None)
            yield process
        finally:
            process.kill()


def conversations(folder: Path) -> list[str]:
    """Return whose each recorded edit is."""
    with Workspace.open(folder) as workspace:
        return [view.edit.conversation for view in workspace.edits()]


def owner(folder: Path) -> int:
    """Return the process that listens."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(folder / ".cas" / SOCKET))
        return int.from_bytes(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], "little")


# ---- it does what a hook does


def test_a_session_that_a_helper_answers_is_recorded_and_answered_as_without_one(folder: Path) -> None:
    with helper(folder) as process:
        session = ClaudeCode(folder)
        session.start()
        session.ask("do it")
        session.write("new.txt", "hello\n")
        session.run("sed -i s/two/2/ a.txt")
        assert cas("reject", "2", "--reason", "two is a word", folder=folder).status == 0
        assert "two is a word" in session.ask("go on")
        assert process.poll() is None
        assert asked("claude-code", NOTHING) == b""
    with Workspace.open(folder) as workspace:
        views = workspace.edits(EditFilter(conversation="session-1"))
    assert [view.edit.operation for view in views] == [Operation.CREATE, Operation.EDIT]
    assert {view.edit.notes["prompt"] for view in views} == {"do it"}
    assert not (folder / ".cas" / "hook.log").exists()


def test_two_hooks_at_once_are_both_answered(folder: Path) -> None:
    sessions = [ClaudeCode(folder, f"session-{number}") for number in range(4)]
    with helper(folder):
        words = [*PROGRAM, "hook", "claude-code"]
        running = []
        for session in sessions:
            (folder / f"{session.name}.txt").write_text(session.name)
            event = json.dumps(session.write_event(f"{session.name}.txt", session.name, before=False)).encode()
            process = subprocess.Popen(words, cwd=folder, env=environment({}), stdin=subprocess.PIPE)
            assert process.stdin is not None
            process.stdin.write(event)
            process.stdin.close()
            running.append(process)
        assert [process.wait(PATIENCE) for process in running] == [0] * len(sessions)
        assert asked("claude-code", NOTHING) == b""  # it is answered when all that came before is recorded
    assert sorted(conversations(folder)) == [session.name for session in sessions]


def test_a_hook_starts_the_helper_where_that_is_set_and_setup_sets_it(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.start()
    assert not (folder / ".cas" / SOCKET).exists()
    assert b"hook.resident" in cas("setup", "claude-code", "--resident", folder=folder).out
    session.ask("do it")
    until(lambda: asked("claude-code", NOTHING) == b"")
    os.kill(owner(folder), signal.SIGKILL)
    assert cas("setup", "claude-code", "--resident", "--remove", folder=folder).status == 0
    assert cas("config", "get", "hook.resident", folder=folder).out == b"off\n"


def held(folder: Path) -> list[str]:
    """Return the files of the store that this process has open."""
    links = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sorted(link for link in links if link.startswith(f"{folder}/.cas/"))


def test_the_answer_is_given_before_anything_is_closed_for_nobody_waits_for_that(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("sed -i s/two/2/ a.txt")
    assert cas("reject", "1", "--reason", "two is a word", folder=folder).status == 0
    event = event_of(["claude-code"], json.dumps(session.prompted("go on")).encode(), str(folder))
    said: list[tuple[bytes, list[str]]] = []
    answer_to(["claude-code"], event, lambda answer: said.append((answer, held(folder))))
    ((answer, then),) = said
    assert b"two is a word" in answer
    assert any("index" in name for name in then)
    assert held(folder) == []


def test_what_a_caller_that_is_gone_should_have_heard_is_said_to_the_next(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("sed -i s/two/2/ a.txt")
    assert cas("reject", "1", "--reason", "two is a word", folder=folder).status == 0
    event = json.dumps(session.prompted("go on")).encode()
    with helper(folder):
        with (folder / ".cas" / "agents" / "lock").open("rb") as lock, socket.socket(socket.AF_UNIX) as line:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the helper waits for it
            line.connect(str(folder / ".cas" / SOCKET))
            line.sendall(packed(GREETING, identity(), b"claude-code", os.fsencode(folder), b"", event))
            assert line.recv(1) == TAKEN
        assert "two is a word" in session.ask("go on")
        assert session.ask("and on") == ""
    assert not (folder / ".cas" / "hook.log").exists()


# ---- nothing depends on it


def test_a_helper_that_is_killed_in_the_middle_of_an_event_loses_nothing(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.calls = 1
    session.tell(session.shell_event("echo four >> a.txt", before=True))
    shell("echo four >> a.txt", folder=folder)
    event = json.dumps(session.shell_event("echo four >> a.txt", before=False)).encode()
    with helper(folder) as process, (folder / ".cas" / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = [*PROGRAM, "hook", "claude-code"]
        with subprocess.Popen(words, cwd=folder, env=environment({}), stdin=subprocess.PIPE) as asking:
            assert asking.stdin is not None
            asking.stdin.write(event)
            asking.stdin.close()
            time.sleep(0.3)  # long enough that the helper has mostly taken it; either way all of it has to hold
            process.kill()
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert asking.wait(PATIENCE) == 0
    assert conversations(folder) == ["session-1"]
    # What it left doesn't hinder hooks, nor the next helper.
    assert (folder / ".cas" / SOCKET).exists()
    session.stop()
    with helper(folder) as process:
        assert process.poll() is None
        assert cas("hook", "--resident", folder=folder).status == 1  # one is enough


def test_a_helper_that_nobody_needs_ends_and_one_whose_workspace_is_gone_too(folder: Path) -> None:
    with helper(folder, idle=0.2) as process:
        assert process.wait(PATIENCE) == 0
    assert not (folder / ".cas" / SOCKET).exists()
    with helper(folder, idle=1) as process:
        shutil.rmtree(folder / ".cas")
        assert process.wait(PATIENCE) == 0
    assert not (folder / ".cas").exists()


@pytest.mark.parametrize("words", ["setup codex --remove --resident", "config set hook.resident off"])
def test_a_helper_ends_where_the_setting_that_started_it_is_taken_back(folder: Path, words: str) -> None:
    assert cas("config", "set", "hook.resident", "on", folder=folder).status == 0
    with helper(folder, idle=2 * PATIENCE) as process:
        assert cas(*words.split(), folder=folder).status == 0
        if "config" in words:
            assert asked("claude-code", NOTHING) == b""  # else it takes ten seconds
        assert process.wait(PATIENCE) == 0
    assert not (folder / ".cas" / SOCKET).exists()


def test_a_helper_that_a_person_started_stays_where_setup_is_taken_back(folder: Path) -> None:
    with helper(folder) as process:
        assert cas("setup", "codex", "--remove", "--resident", folder=folder).status == 0
        assert asked("claude-code", NOTHING) == b""
        assert process.poll() is None


def test_a_helper_whose_program_is_gone_ends_when_it_is_asked(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    for part in ("cli", "objstore"):
        shutil.copytree(Path(SOURCE) / part, program / part)
    words = [*PROGRAM, "hook", "--resident", "--idle", str(10 * PATIENCE)]
    with subprocess.Popen(words, cwd=folder, env=environment({"PYTHONPATH": str(program)})) as process:
        try:
            until((folder / ".cas" / SOCKET).exists)
            shutil.rmtree(program)
            assert asked("claude-code", NOTHING) is None
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def test_what_makes_no_sense_on_the_socket_harms_nothing(folder: Path) -> None:
    sent = [
        b"",
        b"GET / HTTP/1.0\r\n\r\n",
        b"\xff" * 64,
        packed(GREETING, identity(), b"claude-code", os.fsencode(folder), b"", b"no JSON"),
        packed(GREETING, identity(), b"no client", os.fsencode(folder), b"", NOTHING),
        packed(GREETING, identity(), b"claude-code", b"/nonexistent", b"", NOTHING),
    ]
    with helper(folder) as process:
        for each in sent:
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(str(folder / ".cas" / SOCKET))
                line.sendall(each)
                line.shutdown(socket.SHUT_WR)
                with suppress(ConnectionResetError):  # it hung up before it had read all
                    assert line.recv(1) == b""
        assert asked("claude-code", NOTHING) == b""
        # Another version of the program: it goes, for the next hook to start its own.
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(folder / ".cas" / SOCKET))
            line.sendall(packed(GREETING, b"another", b"claude-code", os.fsencode(folder), b"", NOTHING))
            assert line.recv(1) == b""
        assert process.wait(PATIENCE) == 0


def test_an_agent_that_closed_its_pipes_is_not_told_of_it(folder: Path) -> None:
    hooked = f"{shlex.join(PROGRAM)} hook claude-code"
    event = json.dumps(ClaudeCode(folder).prompted("do it"))

    def ends_well() -> bool:
        ways = [f"{hooked} <&-", f"{hooked} >&-", f"{hooked} >/dev/full", f"{hooked} <&- >&- 2>&-"]
        desk = environment({})
        ran = [
            subprocess.run(["sh", "-c", way], input=event.encode(), check=False, cwd=folder, env=desk) for way in ways
        ]
        return [each.returncode for each in ran] == [0] * len(ways)

    assert ends_well()
    with helper(folder):
        assert ends_well()


# ---- who is asked


@contextmanager
def listener(place: Path, *, mode: int = 0o600) -> Iterator[socket.socket]:
    """Listen on a socket, as anybody may, and say nothing."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(place))
        place.chmod(mode)
        door.listen()
        door.settimeout(0.05)
        yield door


def is_called(door: socket.socket) -> bool:
    """Return whether anybody has called."""
    try:
        door.accept()[0].close()
    except TimeoutError:
        return False
    return True


def test_a_socket_that_others_may_have_made_is_not_asked(folder: Path, tmp_path: Path) -> None:
    place = folder / ".cas" / SOCKET
    with listener(place, mode=0o666) as door:
        assert asked("claude-code", NOTHING) is None
        assert not is_called(door)
    place.unlink()
    with listener(tmp_path / "elsewhere") as door:
        place.symlink_to(tmp_path / "elsewhere")
        assert asked("claude-code", NOTHING) is None
        assert not is_called(door)
    place.unlink()
    with listener(place) as door:
        (folder / ".cas").chmod(0o770)
        assert asked("claude-code", NOTHING) is None
        assert not is_called(door)
        (folder / ".cas").chmod(0o700)


def test_a_helper_that_says_nothing_is_not_waited_for(folder: Path) -> None:
    (folder / "new.txt").write_text("new\n")
    session = ClaudeCode(folder)
    with listener(folder / ".cas" / SOCKET) as door:
        ran = hook("claude-code", session.write_event("new.txt", "new\n", before=False), folder=folder)
        assert (ran.status, ran.out, ran.err) == (0, b"", b"")
        assert is_called(door)
    assert conversations(folder) == ["session-1"]


# ---- other users

ANOTHER = 65534 if os.geteuid() == 0 else os.geteuid()
"""Who is not this user. Only root can be somebody else: for others the same holds the other way round."""

IS_ANOTHER = os.geteuid() != ANOTHER

STRANGER = """
import os, socket, sys
way, user = sys.argv[1], int(sys.argv[2])
line = socket.socket(socket.AF_UNIX)
if user != os.geteuid():
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
if way == "call":
    try:
        line.connect("hook.sock")
        line.sendall(sys.stdin.buffer.read())
        print(line.recv(1) or "hung up")
    except OSError as error:
        print(type(error).__name__)
else:
    os.umask(0o177)
    line.bind("hook.sock")
    line.listen()
    print("listening", flush=True)
    while True:
        with line.accept()[0] as called:
            print("asked" if called.recv(1) else "called", flush=True)
"""
"""A process in the store's folder: begun as this user, so that permissions let it in there, and then the other."""


def calling(folder: Path) -> str:
    """Return what becomes of the other user's errand."""
    words = [sys.executable, "-P", "-c", STRANGER, "call", str(ANOTHER)]
    errand = packed(GREETING, identity(), b"claude-code", os.fsencode(folder), b"", NOTHING)
    ran = subprocess.run(
        words, cwd=folder / ".cas", env=environment({}), input=errand, capture_output=True, timeout=PATIENCE, check=True
    )
    return ran.stdout.decode().strip()


@contextmanager
def stranger(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Have a process of the other user listen in the store's folder, as if it had been open for a moment."""
    store = folder / ".cas"
    store.chmod(0o777)
    words = [sys.executable, "-P", "-c", STRANGER, "listen", str(ANOTHER)]
    with subprocess.Popen(words, cwd=store, env=environment({}), stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"listening\n"
            store.chmod(0o700)
            yield process
        finally:
            process.kill()


def test_another_user_gets_nothing_from_the_helper_even_where_every_door_is_open(folder: Path) -> None:
    store = folder / ".cas"
    with helper(folder) as process:
        assert calling(folder) == ("PermissionError" if IS_ANOTHER else "b'+'")
        store.chmod(0o777)
        assert calling(folder) == ("PermissionError" if IS_ANOTHER else "b'+'")
        (store / SOCKET).chmod(0o777)
        assert calling(folder) in ({"hung up", "ConnectionResetError", "BrokenPipeError"} if IS_ANOTHER else {"b'+'"})
        assert process.poll() is None
        # And what a stranger could have put in its place meanwhile, nobody asks.
        assert asked("claude-code", NOTHING) is None
        assert not next(of_helper(folder)).ok
        store.chmod(0o700)
        (store / SOCKET).chmod(0o600)
        assert asked("claude-code", NOTHING) == b""


def test_another_users_process_is_told_nothing_even_where_the_socket_has_become_ours(folder: Path) -> None:
    place = folder / ".cas" / SOCKET
    with stranger(folder) as process:
        assert process.stdout is not None
        if IS_ANOTHER:
            assert asked("claude-code", NOTHING) is None
            (found,) = of_helper(folder)
            assert not found.ok
            assert f".cas/hook.sock is of user {ANOTHER} with mode 0600, not yours alone" in found.said
            os.chown(place, os.geteuid(), os.getegid())
        assert asked("claude-code", NOTHING) is None
        (found,) = of_helper(folder)
        assert not found.ok
        if IS_ANOTHER:
            assert found.said.startswith(
                f"process {process.pid}, which listens at .cas/hook.sock, is of user {ANOTHER}"
            )
        heard = [process.stdout.readline() for _ in range(2)]
        assert heard == [b"called\n" if IS_ANOTHER else b"asked\n"] * 2


# ---- what the doctor finds


def found_of(folder: Path) -> tuple[bool, str]:
    """Return whether all is well with the helper, and what is said of it ("": nothing)."""
    for finding in of_helper(folder):
        return finding.ok, finding.said
    return True, ""


def test_the_doctor_tells_whether_a_helper_is_there_and_answers(folder: Path) -> None:
    assert found_of(folder) == (True, "")
    with helper(folder) as process:
        said = f"process {process.pid} answers, and is of this version"
        assert found_of(folder) == (True, said)
        shown = cas("doctor", "--json", folder=folder).lines()
        assert {"check": "the helper that stays", "ok": True, "said": said} in shown
        process.kill()
        process.wait()
        left = "none is running, and one that was killed has left .cas/hook.sock; "
        assert found_of(folder) == (True, f"{left}hooks do the work")
        assert cas("config", "set", "hook.resident", "on", folder=folder).status == 0
        assert found_of(folder) == (True, f"{left}the next hook starts one")
    (folder / ".cas" / SOCKET).unlink()
    assert found_of(folder) == (True, "none is running; the next hook starts one")


def test_the_doctor_tells_of_a_helper_that_is_another_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with helper(folder) as process:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "another"))
        ended = f"process {process.pid} was of another version, or of another home, and has ended; hooks do the work"
        assert found_of(folder) == (True, ended)
        assert process.wait(PATIENCE) == 0


def test_the_doctor_tells_of_what_is_no_socket_of_ours(folder: Path, tmp_path: Path) -> None:
    place = folder / ".cas" / SOCKET
    with listener(place, mode=0o666) as door:
        ok, said = found_of(folder)
        assert not ok
        assert said.startswith(f".cas/hook.sock is of user {os.geteuid()} with mode 0666, not yours alone")
        place.chmod(0o600)
        (folder / ".cas").chmod(0o750)
        assert cas("config", "set", "hook.resident", "on", folder=folder).status == 0
        ok, said = found_of(folder)
        assert not ok
        assert said.startswith(f".cas is of user {os.geteuid()} with mode 0750, not yours alone")
        (folder / ".cas").chmod(0o700)
        assert not is_called(door)
    place.unlink()
    with listener(tmp_path / "elsewhere") as door:
        place.symlink_to(tmp_path / "elsewhere")
        ok, said = found_of(folder)
        assert not ok
        assert said.startswith(".cas/hook.sock is no socket")
        assert not is_called(door)


def test_the_doctor_tells_of_a_helper_that_says_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_PATIENCE", 0.2)  # as long as any other, and quicker
    with listener(folder / ".cas" / SOCKET) as door:
        ok, said = found_of(folder)
        assert not ok
        assert said.startswith(f"process {os.getpid()} doesn't answer")
        assert is_called(door)


def test_settings_of_one_process_are_not_given_to_another(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with helper(folder):
        monkeypatch.setenv("CAS_SNAPSHOT_GITIGNORED", "off")
        assert asked("claude-code", NOTHING) is None


@pytest.mark.parametrize("name", ["CAS_SNAPSHOT_GITIGNORED", "CAS_HOOK_RESIDENT"])
def test_a_process_with_settings_of_its_own_starts_no_helper_for_others(folder: Path, name: str) -> None:
    assert cas("config", "set", "hook.resident", "on", folder=folder).status == 0
    event = json.dumps({"session_id": "s0", "hook_event_name": "SessionStart"}).encode()
    assert cas("hook", "claude-code", folder=folder, settings={name: "on"}, stdin=event).status == 0
    ran = cas("hook", "--resident", "--idle", "0.1", folder=folder, settings={name: "on"})
    assert (ran.status, ran.said) == (
        1,
        f"cas: {name} is set for this process alone, and a helper answers all others: unset first\n",
    )
    assert not (folder / ".cas" / "hook.lock").exists()  # the first thing that a helper makes
