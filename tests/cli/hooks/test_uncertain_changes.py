"""What is not certain is neither the agent's nor the person's: lost ends, late writes, silent turns, processes left."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore import EditFilter, EditView, Status, Workspace
from tests.support.command_runner import cas
from tests.support.git_repository import git
from tests.support.hooked_agents import ClaudeCode, VSCode, recorded_project, shell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a workspace with three recorded files."""
    return recorded_project(tmp_path / "project", "a.txt", "b.txt", "mine.txt")


def edits(folder: Path) -> list[EditView]:
    """Return the recorded edits."""
    with Workspace.open(folder) as workspace:
        return list(workspace.history.edits(EditFilter()))


def whose(folder: Path) -> list[tuple[str, str]]:
    """Return path and owner of each edit; what is accepted without a person's word is "accepted"."""
    return [
        (
            os.fsdecode(view.edit.path),
            "unattributed" if view.is_unattributed else view.owner if view.status is Status.PENDING else "accepted",
        )
        for view in edits(folder)
    ]


def type_in(folder: Path, path: str) -> None:
    """Let the person add a line to a file."""
    with (folder / path).open("a") as file:
        file.write("mine\n")


# ---- ends that are not reported


@pytest.mark.parametrize("between", ["", "record", "status", "another session"])
@pytest.mark.parametrize("end", ["prompt", "stop", "idle", "session's end", "killed"])
def test_what_was_typed_after_an_interruption_is_never_certainly_the_agents(
    folder: Path, end: str, between: str
) -> None:
    session = ClaudeCode(folder)
    session.ask("run the tests")
    session.tell(session.shell_event("pytest", before=True))
    type_in(folder, "mine.txt")  # after Esc, of which there is no event
    if between in {"record", "status"}:
        assert cas(between, folder=folder).status == 0
    elif between:
        ClaudeCode(folder, "other").ask("hello")
    type_in(folder, "b.txt")
    if end == "prompt":
        session.ask("go on")
    elif end == "stop":
        session.stop()
    elif end == "idle":
        session.tell(session.base("Notification") | {"notification_type": "idle_prompt"})
    elif end == "session's end":
        session.tell(session.base("SessionEnd"))
    else:
        session.start()
    assert dict(whose(folder)) == {"mine.txt": "unattributed", "b.txt": "unattributed"}
    text = (folder / "mine.txt").read_text()
    cas("reject", "--session", "1", "--yes", folder=folder)
    assert (folder / "mine.txt").read_text() == text
    assert cas("claim", "--all", "--mine", folder=folder).status == 0
    assert {of for _, of in whose(folder)} == {"accepted"}


@pytest.mark.parametrize("when", ["found after the end was lost", "found before the end was lost"])
def test_what_is_unattributed_is_named_so_everywhere(folder: Path, when: str) -> None:
    session = ClaudeCode(folder)
    session.ask("run the tests")
    session.write("b.txt", "the agent's\n")
    session.tell(session.shell_event("pytest", before=True))
    type_in(folder, "mine.txt")
    if when == "found before the end was lost":
        assert cas("record", folder=folder).status == 0  # it is the shell's, until its end is not reported
    session.stop()
    (found,) = [view for view in edits(folder) if view.edit.path == b"mine.txt"]
    assert found.is_unattributed
    groups = cas("status", folder=folder).text.partition("pending (")[2]
    named = dict(zip(groups.splitlines(), groups.splitlines()[1:], strict=False))
    assert "mine.txt" in named["  unattributed"]
    assert "external" not in groups
    (row,) = [line for line in cas("log", folder=folder).text.splitlines() if "mine.txt" in line]
    assert row.split("mine.txt")[1].split() == ["unattributed", *(["(session", "1?)"] * row.endswith("?)"))]
    assert cas("status", "--short", folder=folder).text == "1 pending, 1 unattributed\n"
    shapes = json.loads(cas("status", "--json", folder=folder).text)["pending_groups"]
    assert {Path(each["file_path"]).name: each["is_unattributed"] for each in shapes} == {
        "b.txt": False,
        "mine.txt": True,
    }


def test_a_persons_own_change_that_awaits_review_is_not_unattributed(folder: Path) -> None:
    assert cas("config", "set", "review.external", "pending", folder=folder).status == 0
    type_in(folder, "mine.txt")
    ClaudeCode(folder).start()
    assert "  external\n" in cas("status", folder=folder).text
    assert cas("status", "--short", folder=folder).text == "1 pending\n"


def test_after_a_lost_end_what_is_typed_between_two_tools_is_not_the_agents(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("work")
    session.tell(session.shell_event("first", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    session.calls += 1
    session.run("echo 2 >> b.txt")
    type_in(folder, "mine.txt")
    session.calls += 1
    session.run("true")
    assert whose(folder) == [("a.txt", "unattributed"), ("b.txt", session.name), ("mine.txt", "unattributed")]
    (first, *_) = edits(folder)
    assert first.edit.notes["candidates"] == session.name
    assert first.edit.notes["unattributed"] == "the end of a tool was not reported yet"
    session.stop()
    type_in(folder, "mine.txt")
    session.ask("and on")
    assert whose(folder)[-1] == ("mine.txt", "accepted")


def test_what_a_call_wrote_while_another_of_its_agent_ran_is_its_own_once_its_end_is_reported(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("work")
    first = session.shell_event("first", before=True)
    session.tell(first)
    shell("echo 1 >> a.txt", folder=folder)
    session.calls += 1
    session.run("echo 2 >> b.txt")
    assert whose(folder)[0] == ("a.txt", "unattributed")
    session.tell(first | {"hook_event_name": "PostToolUse"})
    assert whose(folder) == [("a.txt", session.name), ("b.txt", session.name)]


# ---- writes after the end


@pytest.mark.parametrize("agent", [ClaudeCode, VSCode])
def test_a_named_file_that_was_unchanged_at_the_end_of_its_call_is_expected_until_the_turn_ends(
    agent: type[ClaudeCode | VSCode], folder: Path
) -> None:
    session = agent(folder)
    session.ask("write it")
    session.calls += 1
    session.tell(session.write_event("a.txt", "late\n", before=True))
    session.tell(session.write_event("a.txt", "late\n", before=False))
    (folder / "a.txt").write_text("late\n")
    type_in(folder, "mine.txt")
    session.stop()
    assert sorted(whose(folder)) == [("a.txt", session.name), ("mine.txt", "accepted")]
    type_in(folder, "a.txt")
    session.ask("and on")
    assert whose(folder)[-1] == ("a.txt", "accepted")


@pytest.mark.parametrize("why", ["failed", "written with the same bytes"])
def test_no_change_is_expected_of_a_call_that_failed_or_has_written(folder: Path, why: str) -> None:
    session = ClaudeCode(folder)
    session.ask("write it")
    session.calls += 1
    session.tell(session.write_event("a.txt", "x\n", before=True))
    if why == "failed":
        session.tell(session.write_event("a.txt", "x\n", before=False) | {"hook_event_name": "PostToolUseFailure"})
    else:
        time.sleep(0.05)  # more than a tick: what changed in the tick of the beginning may have changed before it
        (folder / "a.txt").write_bytes((folder / "a.txt").read_bytes())
        session.tell(session.write_event("a.txt", "x\n", before=False))
    type_in(folder, "a.txt")
    session.stop()
    assert whose(folder) == [("a.txt", "accepted")]


# ---- turns without events of tools


def test_a_turn_without_events_of_tools_leaves_what_changed_unattributed_and_says_so_once(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("write it")
    shell("echo 1 >> a.txt", folder=folder)  # by a tool whose hooks are not called
    assert cas("record", folder=folder).status == 0
    shell("echo 1 >> b.txt", folder=folder)
    said = cas("hook", "claude-code", folder=folder, stdin=json.dumps(session.stopped()).encode()).json()
    assert "files changed in a turn of claude-code, but no event of its tools has arrived" in said["systemMessage"]
    assert whose(folder) == [("a.txt", "unattributed"), ("b.txt", "unattributed")]
    assert edits(folder)[0].edit.notes["unattributed"] == "no event of a tool had arrived from its session"
    type_in(folder, "mine.txt")  # after the turn
    session.ask("and on")
    assert whose(folder)[-1] == ("mine.txt", "accepted")
    session.run("echo 2 >> a.txt")
    type_in(folder, "mine.txt")
    again = cas("hook", "claude-code", folder=folder, stdin=json.dumps(session.stopped()).encode()).json()
    assert "no event" not in again["systemMessage"]
    assert whose(folder)[-1] == ("mine.txt", "accepted")


def silences(folder: Path) -> list[str]:
    """Return what status says that does not arrive."""
    found = cas("status", "--json", folder=folder).json()["cautions"]
    return [each["silence"]["lacks"] for each in found if each["kind"] == "silence"]


def test_the_doctor_names_a_repository_that_can_not_be_followed_as_the_status_does(folder: Path) -> None:
    git(folder, "init", "-q")
    assert "ok   git is followed\n" in cas("doctor", folder=folder).text
    (folder / ".git" / "reftable").mkdir()
    (folder / ".git" / "reftable" / "tables.list").write_text(
        "0x0-0x1.ref\n"
    )  # no git reads it: there is no such table
    git(folder, "config", "core.repositoryFormatVersion", "1")
    git(folder, "config", "extensions.refStorage", "reftable")
    (said,) = [line for line in cas("status", folder=folder).text.splitlines() if "in a reftable" in line]
    assert f"BAD  git is followed: {said.strip()}\n" in cas("doctor", folder=folder).text


def test_silence_is_in_status_and_doctor_until_it_is_acknowledged(folder: Path) -> None:
    session = ClaudeCode(folder)
    for prompt in ("write it", "and on"):
        session.ask(prompt)
        shell("echo 1 >> a.txt", folder=folder)
        session.stop()
    assert silences(folder) == ["no-events"]  # once for the session
    shown = cas("status", folder=folder).text
    assert "files changed in a turn of claude-code, but no event of its tools has arrived" in shown
    assert "BAD  events of tools arrive: " in cas("doctor", folder=folder).text
    assert "acknowledged: " in cas("doctor", "--forget", folder=folder).text
    assert "ok   events of tools arrive\n" in cas("doctor", folder=folder).text
    assert silences(folder) == []


def test_silence_of_a_session_whose_tools_are_heard_later_was_none(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("only talk")
    type_in(folder, "mine.txt")
    session.stop()
    assert silences(folder) == ["no-events"]
    session.ask("work")
    session.run("echo 1 >> a.txt")
    assert silences(folder) == []


@pytest.mark.parametrize("lacking", ["PreToolUse", "PostToolUse"])
def test_tools_of_which_only_one_half_is_reported_are_said(folder: Path, lacking: str) -> None:
    session = ClaudeCode(folder)
    session.ask("work")
    for number in range(2):
        session.calls += 1
        for before in (True, False):
            event = session.shell_event(f"echo {number} >> a.txt", before=before)
            if before:
                shell(f"echo {number} >> a.txt", folder=folder)
            if event["hook_event_name"] != lacking:
                session.tell(event)
    said = session.stop()
    half = "beginnings" if lacking == "PreToolUse" else "ends"
    assert f"the {half} of the tools of claude-code don't arrive" in said
    assert f"the {half} of the tools of claude-code don't arrive" in cas("status", folder=folder).text
    assert silences(folder) == [f"no-{half}"]


def test_an_interrupted_tool_and_a_session_that_only_reads_are_no_silence(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("work")
    session.tell(session.shell_event("sleep 99", before=True))
    session.ask("go on")  # after Esc, of which there is no event
    session.run("true")
    session.stop()
    other = ClaudeCode(folder, "other")
    other.ask("explain")
    other.stop()
    assert silences(folder) == []


def test_what_a_person_types_before_the_first_tool_of_a_session_is_the_persons(folder: Path) -> None:
    session, other = ClaudeCode(folder), ClaudeCode(folder, "other")
    other.ask("think")  # its own tools are not heard of yet
    session.ask("work")
    session.run("echo 1 >> a.txt")
    other.run("true")
    type_in(folder, "mine.txt")
    session.run("true")
    assert whose(folder) == [("a.txt", session.name), ("mine.txt", "accepted")]


# ---- processes that outlive their call


class Client:
    """An agent's program with a process of its own, which runs hooks and shells as its children."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session = ClaudeCode(folder)
        self._shell = subprocess.Popen(["bash"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(self, command: str) -> None:
        """Run a command in the client's process, and wait for it."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{command}\necho done\n")
        self._shell.stdin.flush()
        assert self._shell.stdout.readline() == "done\n"

    def report(self, event: dict[str, object]) -> None:
        """Run the hook for an event."""
        self.do(f"cas hook claude-code >/dev/null <<'EVENT'\n{json.dumps(event)}\nEVENT")

    def ask(self, prompt: str) -> None:
        """Report a prompt."""
        self.report(self._session.prompted(prompt))

    def run(self, command: str, task: str = "") -> None:
        """Run a shell command and report it. `task`: the id under which it runs on, as far as is reported."""
        self._session.calls += 1
        self.report(self._session.shell_event(command, before=True))
        self.do(f"sh -c '{command}'")
        answered = {"tool_response": {"backgroundTaskId": task}} if task else {}
        self.report(self._session.shell_event(command, before=False) | answered)

    def stop(self, *tasks: str) -> None:
        """Report the end of the turn, and what runs on."""
        self.report(self._session.stopped() | {"background_tasks": [{"id": task} for task in tasks]})

    def close(self) -> None:
        """End the process."""
        self._shell.communicate()


@pytest.fixture
def client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Return an agent's program in the workspace."""
    import sys  # noqa: PLC0415 - for the path of the command

    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    client = Client(folder)
    yield client
    client.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc only")
def test_while_a_process_of_a_shell_lives_only_named_calls_are_certain(client: Client, folder: Path) -> None:
    flag = folder.parent / "go"
    client.ask("start it")
    client.run(f"(while [ ! -e {flag} ]; do sleep 0.05; done; echo 1 >> a.txt) > /dev/null 2>&1 &")
    type_in(folder, "mine.txt")
    client.ask("and on")
    assert whose(folder) == [("mine.txt", "unattributed")]
    assert edits(folder)[0].edit.notes["unattributed"] == "a process that a tool left behind was still running"
    flag.touch()
    while "1\n2\n3\n1\n" not in (folder / "a.txt").read_text():
        time.sleep(0.01)
    time.sleep(0.1)
    client.stop()
    assert whose(folder)[1:] == [("a.txt", "unattributed")]
    type_in(folder, "mine.txt")
    client.ask("and on")
    assert whose(folder)[2:] == [("mine.txt", "accepted")]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc only")
@pytest.mark.parametrize("start", ["", "cd /; ", "cd /; exec setsid "])
def test_a_write_soon_after_a_shell_s_end_by_what_it_left_behind_is_unattributed(
    client: Client, folder: Path, start: str
) -> None:
    flag = folder.parent / "go"
    client.ask("work")
    waits = f"while [ ! -e {flag} ]; do sleep 0.02; done; echo 1 >> {folder}/a.txt"
    client.run(f'({start}sh -c "{waits}") > /dev/null 2>&1 &')
    flag.touch()
    while "1\n2\n3\n1\n" not in (folder / "a.txt").read_text():
        time.sleep(0.01)
    client.stop()
    assert whose(folder) == [("a.txt", "unattributed")]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc only")
def test_what_a_background_shell_leaves_behind_may_make_changes_after_its_end(client: Client, folder: Path) -> None:
    flag = folder.parent / "go"
    client.ask("serve")
    client.run(f"(while [ ! -e {flag} ]; do sleep 0.05; done; echo 1 >> a.txt) > /dev/null 2>&1 &", task="b1")
    client.stop("b1")
    client.stop()
    type_in(folder, "mine.txt")
    client.ask("and on")
    assert whose(folder) == [("mine.txt", "unattributed")]
    flag.touch()
    while "1\n2\n3\n1\n" not in (folder / "a.txt").read_text():
        time.sleep(0.01)
    client.stop()
    assert whose(folder)[1:] == [("a.txt", "unattributed")]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc only")
def test_a_shell_that_leaves_no_process_behind_leaves_nothing_unattributed(client: Client, folder: Path) -> None:
    client.ask("work")
    for _ in range(3):
        client.run("(echo 1 >> a.txt) & wait")
        type_in(folder, "mine.txt")
    client.stop()
    assert sorted(set(whose(folder))) == [("a.txt", "session-1"), ("mine.txt", "accepted")]
