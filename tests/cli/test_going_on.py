"""An agent goes on while the helper looks at what its tool did, and nothing comes in between."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.hooking import answer_to, event_of
from objstore import EditFilter, EditView, Workspace
from tests.cli.agents import ClaudeCode, Codex, shell
from tests.cli.desk import PATIENCE, PROGRAM, Desk, cas, environment

LOCKS = ("lock", "agents/lock")
"""Who begins or ends a call, looks or writes, waits for one of these files."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a workspace with a file and a baseline."""
    root = tmp_path / "ws"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    Desk(root)
    assert cas("record", folder=root).status == 0
    return root


def edits(folder: Path) -> list[EditView]:
    """Return what is recorded."""
    with Workspace.open(folder) as workspace:
        return workspace.edits(EditFilter())


def whose(folder: Path) -> list[tuple[str, str]]:
    """Return whose each recorded edit is, and of which file."""
    return [(view.edit.conversation, os.fsdecode(view.edit.path)) for view in edits(folder)]


def is_held(folder: Path, name: str) -> bool:
    """Return whether somebody holds a lock of the store."""
    with (folder / ".cas" / name).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def working(session: ClaudeCode, command: str) -> None:
    """Have a session begin a shell command and run it, and not yet tell that it is over."""
    session.calls += 1
    session.tell(session.shell_event(command, before=True))
    shell(command, folder=session.folder)


DYING = """
import os, signal, sys
from cli.hooking import answer_to, event_of
client = sys.argv[1:]
event = event_of(client, sys.stdin.buffer.read(), os.getcwd())
answer_to(client, event, lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""
"""Handles an event as the helper does, and is killed as soon as it has answered."""


def dies_at_its_answer(session: ClaudeCode) -> None:
    """Have a process handle the end of a session's shell command that is killed between its answer and its look."""
    given = json.dumps(session.shell_event("work", before=False)).encode()
    words = [sys.executable, "-P", "-c", DYING, session.client]
    ran = subprocess.run(words, cwd=session.folder, env=environment({}), input=given, check=False, timeout=PATIENCE)
    assert ran.returncode == -signal.SIGKILL


def told(session: ClaudeCode, say: Callable[[bytes], object]) -> None:
    """Handle the end of a session's shell command as the helper does."""
    given = json.dumps(session.shell_event("work", before=False)).encode()
    answer_to([session.client], event_of([session.client], given, str(session.folder)), say)


def begun(folder: Path, *words: str, given: bytes = b"") -> "subprocess.Popen[bytes]":
    """Start `cas` and return once it waits for a lock of the store, or might: it has opened the file."""
    process = subprocess.Popen(
        [*PROGRAM, *words], cwd=folder, env=environment({}), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(given)
    process.stdin.close()
    locks = {str(folder / ".cas" / name) for name in LOCKS}
    until = time.monotonic() + PATIENCE
    while not locks & {opened(link) for link in Path(f"/proc/{process.pid}/fd").iterdir()}:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.002)
    return process


def opened(link: Path) -> str:
    """Return what a descriptor of a process is open for ("": it is closed by now)."""
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


# ---- nothing comes in between


def test_an_agent_goes_on_before_the_look_with_others_kept_out_until_it_is_recorded(folder: Path) -> None:
    session = ClaudeCode(folder)
    working(session, "echo four >> a.txt; echo new > new.txt")
    said: list[tuple[bytes, list[bool], list[tuple[str, str]]]] = []
    told(session, lambda answer: said.append((answer, [is_held(folder, name) for name in LOCKS], whose(folder))))
    assert said == [(b"", [True, True], [])]
    assert whose(folder) == [("session-1", "a.txt"), ("session-1", "new.txt")]
    assert [is_held(folder, name) for name in LOCKS] == [False, False]
    assert not list((folder / ".cas" / "agents").glob("open-*"))


def test_what_comes_next_finds_recorded_what_the_tool_did(folder: Path) -> None:
    session, other = ClaudeCode(folder), Codex(folder, "other")
    Desk(folder).write("b.txt", b"b\n")
    working(session, "echo four >> a.txt; echo more >> b.txt")
    then: list[subprocess.Popen[bytes]] = []

    def go_on(_: bytes) -> None:
        beginning = json.dumps(other.shell_event("work", before=True)).encode()
        then.append(begun(folder, "hook", other.client, given=beginning))
        # It would be refused for a change that nobody recorded.
        then.append(begun(folder, "reject", "1", "--cascade"))
        then.append(begun(folder, "record"))
        then.append(begun(folder, "status"))

    told(session, go_on)
    printed = []
    for process in then:
        with process:
            assert process.stdout is not None
            printed.append(process.stdout.read())
        assert process.returncode == 0
    assert sorted(whose(folder))[-2:] == [("session-1", "a.txt"), ("session-1", "b.txt")]
    assert "external" not in dict(whose(folder))
    assert b"session-1" in printed[-1]
    assert b"changed outside" not in printed[-1]


def test_a_rejection_is_said_before_the_look_and_once(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("sed -i s/two/2/ a.txt")
    assert cas("reject", "1", "--reason", "two is a word", folder=folder).status == 0
    working(session, "echo four >> a.txt")
    said: list[bytes] = []
    told(session, said.append)
    ((answer),) = said
    assert b"two is a word" in answer
    assert session.ask("go on") == ""


# ---- who has gone on can't take that back


class Gone(Exception):
    """Nobody is there to be answered."""


def test_what_a_tool_did_is_recorded_even_if_nobody_is_there_to_be_answered(folder: Path) -> None:
    session = ClaudeCode(folder)
    working(session, "echo four >> a.txt")

    def say(_: bytes) -> None:
        raise Gone

    with pytest.raises(Gone):
        told(session, say)
    assert whose(folder) == [("session-1", "a.txt")]
    assert not list((folder / ".cas" / "agents").glob("open-*"))


@pytest.mark.parametrize("is_named", [False, True])
def test_a_helper_that_is_killed_between_its_answer_and_its_look_loses_nothing(folder: Path, *, is_named: bool) -> None:
    session, other = ClaudeCode(folder), Codex(folder, "other")
    working(session, "echo four >> a.txt")
    dies_at_its_answer(session)
    assert whose(folder) == []
    # The next event of anybody finds it, whatever that is about.
    other.tell(other.write_event("b.txt", "b\n", before=True) if is_named else other.shell_event("work", before=True))
    assert whose(folder) == [("session-1", "a.txt")]
    # And the call is over: what comes then is not its doing, nor anybody's whose tool is told to be over.
    other.tell(other.write_event("b.txt", "b\n", before=False) if is_named else other.shell_event("work", before=False))
    shell("echo five >> a.txt", folder=folder)
    session.stop()
    assert whose(folder) == [("session-1", "a.txt"), ("external", "a.txt")]


def test_a_command_that_begins_anew_after_such_a_death_is_open_until_it_ends(folder: Path) -> None:
    session = ClaudeCode(folder)
    working(session, "echo four >> a.txt")
    dies_at_its_answer(session)
    # By the same name, as where a client gives its calls none.
    session.tell(session.shell_event("echo five >> a.txt", before=True))
    assert whose(folder) == [("session-1", "a.txt")]
    shell("echo five >> a.txt", folder=folder)
    told(session, lambda _: None)
    assert whose(folder) == [("session-1", "a.txt")] * 2


# ---- what takes long is waited for


def test_nobody_is_kept_out_for_a_first_look_nor_while_somebody_writes(folder: Path) -> None:
    session = ClaudeCode(folder)
    working(session, "echo four >> a.txt")
    (folder / ".cas" / "cache" / "looks").unlink()
    said: list[list[tuple[str, str]]] = []
    told(session, lambda _: said.append(whose(folder)))
    assert said == [[("session-1", "a.txt")]]
