"""`cas watch` records what happens as it happens: bursts as calls, an agent's where a hook tells, else a person's."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from objstore import EditView, Operation, Origin, Status, Workspace
from tests.cli.agents import ClaudeCode
from tests.cli.desk import PATIENCE, PROGRAM, Desk, cas, environment


@contextmanager
def watching(folder: Path, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Watch the workspace, from the moment on at which it says so."""
    command = [*PROGRAM, "watch", "--quiet-for", "100", *words]
    with subprocess.Popen(command, cwd=folder, env=environment({}), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"Watching" in process.stdout.readline()
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130


def recorded(folder: Path, count: int) -> list[EditView]:
    """Return the edits once there are so many."""
    until = time.monotonic() + PATIENCE
    found: list[EditView] = []
    while len(found) < count:
        assert time.monotonic() < until, found
        time.sleep(0.05)
        with Workspace.open(folder) as workspace:
            found = workspace.edits()
    return found


def test_a_burst_is_one_call_and_a_persons_edits_are_theirs(desk: Desk) -> None:
    (desk.folder / "a.txt").write_text("one\n")
    cas("record", folder=desk.folder)
    with watching(desk.folder):
        # One rename: what the watcher sees of it is there at once.
        (desk.folder / "a.txt").rename(desk.folder / "b.txt")
        (first,) = recorded(desk.folder, 1)
        (desk.folder / "c.txt").write_text("new\n")
        second = recorded(desk.folder, 2)[1]
    assert (first.edit.operation, first.edit.path, first.edit.source) == (Operation.MOVE, b"b.txt", b"a.txt")
    assert (second.edit.operation, second.edit.path) == (Operation.CREATE, b"c.txt")
    assert {first.edit.origin, second.edit.origin} == {Origin.PERSON}
    assert {first.status, second.status} == {Status.ACCEPTED}


def test_what_a_hooked_agent_does_while_we_watch_is_the_agents(desk: Desk) -> None:
    cas("record", folder=desk.folder)
    session = ClaudeCode(desk.folder)
    with watching(desk.folder):
        session.tell(session.shell_event("work", before=True))
        (desk.folder / "c.txt").write_text("new\n")
        (found,) = recorded(desk.folder, 1)
        session.tell(session.shell_event("work", before=False))
    assert (found.edit.conversation, found.edit.origin) == ("session-1", Origin.AGENT)


def test_what_an_agent_is_said_to_do_is_pending(desk: Desk) -> None:
    cas("record", folder=desk.folder)
    with watching(desk.folder, "--agent", "some-agent", "--conversation", "c1"):
        (desk.folder / "c.txt").write_text("new\n")
        (found,) = recorded(desk.folder, 1)
    assert (found.edit.conversation, found.status) == ("c1", Status.PENDING)
    assert found.edit.notes["agent"] == "some-agent"
