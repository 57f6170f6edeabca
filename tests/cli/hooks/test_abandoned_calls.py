"""A call ends with its client's process: what a person does next is not the dead agent's."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from objstore import EditFilter, Origin, Workspace
from tests.support.command_runner import PATIENCE, PROGRAM, CommandRunner, cas, environment
from tests.support.hooked_agents import ClaudeCode, Codex, OpenCode, Session, evidence, put_evidence, shell
from tests.support.sampling import sampled_product

CLIENT: Final = """
import subprocess, sys
for line in sys.stdin:
    subprocess.run(sys.argv[1:], input=line.encode(), stdout=subprocess.DEVNULL, check=True)
    print("reported", flush=True)
"""
"""A client's program: it runs its hook for each event that it is given, and can be killed."""

DIRECTLY = "{cas}"
THROUGH_A_SHELL = "/bin/sh -c {quoted}"
EACH_WAY = pytest.mark.parametrize("way", [DIRECTLY, THROUGH_A_SHELL], ids=["directly", "through a shell"])


class RunningClient:
    """A client's process, and the session that it is in."""

    def __init__(self, process: "subprocess.Popen[str]", session: Session) -> None:
        self.process = process
        self.session = session

    def tell(self, event: dict[str, Any]) -> None:
        """Run the hook for an event."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(event) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "reported\n"

    def begin(self, command: str = "make") -> dict[str, Any]:
        """Report a prompt, and the beginning of a shell; return the event of its end."""
        self.tell(self.session.prompted("go"))
        before, after = self.session.another_call(is_shell=True, command=command)
        self.tell(before)
        return after

    def die(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End without a word, as at a closed terminal."""
        self.process.send_signal(number)
        self.process.wait(PATIENCE)


@contextmanager
def client(session: Session, way: str = DIRECTLY) -> Iterator[RunningClient]:
    """Run a client's program."""
    hook = shlex.join([*PROGRAM, "hook", session.client])
    words = shlex.split(way.format(cas=hook, quoted=shlex.quote(f"{hook} || exit 0")))
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, *words],
        cwd=session.folder,
        env=environment({}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield RunningClient(process, session)
        finally:
            process.kill()


def record_file(runner: CommandRunner) -> None:
    (runner.folder / "a.txt").write_text("one\ntwo\nthree\n")
    runner.done("record")


@pytest.fixture
def folder(runner: CommandRunner) -> Path:
    """Return a workspace with a file, of which a baseline has been taken."""
    return runner.prepared(record_file).folder


def authors(folder: Path) -> list[str]:
    """Return whose each recorded edit is: the session, "a person" or "unattributed"."""
    with Workspace.open(folder) as workspace:
        edits = [view.edit for view in workspace.history.edits(EditFilter())]
    persons = {Origin.EXTERNAL, Origin.PERSON}
    return [
        edit.conversation if edit.origin is Origin.AGENT else "a person" if edit.origin in persons else edit.origin
        for edit in edits
    ]


def running(folder: Path) -> list[tuple[str, str]]:
    """Return client and state of the calls that a status names."""
    return [(call["client"], call["state"]) for call in cas("status", "--json", folder=folder).json()["running_calls"]]


@pytest.mark.parametrize(("agent", "way"), sampled_product([ClaudeCode, Codex, OpenCode], [DIRECTLY, THROUGH_A_SHELL]))
def test_a_persons_lines_after_a_client_was_killed_are_not_the_agents(
    agent: type[Session], way: str, folder: Path
) -> None:
    with client(agent(folder), way) as program:
        program.begin()
        shell("echo 1 >> a.txt", folder=folder)
        assert cas("record", folder=folder).status == 0  # while it runs
        program.die()
    assert running(folder) == [(agent.client, "its program has ended")]
    assert "its program has ended" in cas("status", folder=folder).text
    assert cas("record", folder=folder).status == 0
    assert running(folder) == []
    shell("echo mine >> a.txt", folder=folder)
    assert cas("record", folder=folder).status == 0
    assert authors(folder) == ["session-1", "a person"]


def test_what_changed_before_anyone_noticed_the_death_may_be_either_s(folder: Path) -> None:
    with client(ClaudeCode(folder)) as program:
        program.begin()
        program.die(signal.SIGHUP)
    shell("echo mine, or not >> a.txt", folder=folder)
    assert cas("record", folder=folder).status == 0
    shell("echo mine >> a.txt", folder=folder)
    assert cas("record", folder=folder).status == 0
    assert authors(folder) == ["unattributed", "a person"]
    with Workspace.open(folder) as workspace:
        first = workspace.history.edits(EditFilter())[0]
    assert first.edit.notes["candidates"] == "session-1"


def test_what_the_shell_of_a_killed_client_left_behind_writes_is_not_the_persons(folder: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with client(ClaudeCode(folder)) as program:
        program.begin()
        shell(f"(read go < {gate}; echo 1 >> a.txt) > /dev/null 2>&1 &", folder=folder)
        program.die()
    assert cas("record", folder=folder).status == 0
    gate.write_text("go\n")
    until = time.monotonic() + PATIENCE
    while not (folder / "a.txt").read_text().endswith("1\n"):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert cas("record", folder=folder).status == 0
    assert authors(folder) == ["unattributed"]


def test_the_next_session_s_shells_are_its_own_after_a_client_was_killed(folder: Path) -> None:
    with client(OpenCode(folder, "dead")) as program:
        program.begin()
        program.die()
    session = ClaudeCode(folder, "next")
    session.start()
    session.ask("go")
    session.run("echo 1 >> a.txt")
    assert authors(folder) == ["next"]


@EACH_WAY
def test_a_call_goes_on_while_its_client_lives(way: str, folder: Path) -> None:
    with client(Codex(folder), way) as program:
        ended = program.begin()
        assert running(folder) == [("codex", "running")]
        assert "codex  Bash  since" in cas("status", folder=folder).text
        assert "ok   running tools of agents: Bash of codex: running" in cas("doctor", folder=folder).text
        shell("echo 1 >> a.txt", folder=folder)
        assert cas("record", folder=folder).status == 0
        program.tell(ended)
        assert running(folder) == []
    assert authors(folder) == ["session-1"]


def test_a_killed_background_command_of_a_dead_client_ends(folder: Path) -> None:
    session = ClaudeCode(folder)
    with client(session) as program:
        ended = program.begin()
        program.tell(ended | {"tool_response": {"backgroundTaskId": "b1"}})
        program.tell(session.stopped())
        assert running(folder) == [("claude-code", "in the background")]
        program.die()
    assert cas("record", folder=folder).status == 0
    assert running(folder) == []
    shell("echo mine >> a.txt", folder=folder)
    assert cas("record", folder=folder).status == 0
    assert authors(folder) == ["a person"]


def test_a_resumed_session_s_calls_end_with_its_new_process(folder: Path) -> None:
    for _ in range(2):
        with client(ClaudeCode(folder)) as program:
            program.begin()
            assert running(folder) == [("claude-code", "running")]
            program.die()
        assert running(folder) == [("claude-code", "its program has ended")]


def test_an_end_that_is_reported_after_the_client_s_death_still_counts(folder: Path) -> None:
    session = ClaudeCode(folder)
    with client(session) as program:
        ended = program.begin()
        program.die()
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(ended)  # its hook ran on
    assert authors(folder) == ["session-1"]


def test_a_file_with_a_damaged_process_name_keeps_its_call(folder: Path) -> None:
    with client(ClaudeCode(folder)) as program:
        program.begin()
        ((call, held),) = evidence(folder, "open-").items()
        assert held["process"].startswith(f"{program.process.pid}:")
        put_evidence(folder, call, held | {"process": f"{os.getpid()}"})
        program.die()
    assert running(folder) == [("claude-code", "running")]
