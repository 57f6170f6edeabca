"""Attribute changes to calls whose start or end event is missing, late, repeated or rewritten, or that were refused."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from objstore import AgentCall, EditFilter, Operation, Status, Workspace
from tests.support.command_runner import (
    PATIENCE,
    PROGRAM,
    CommandRunner,
    cas,
    cas_on_full_disk,
    cas_unprivileged,
    environment,
)
from tests.support.hooked_agents import (
    ClaudeCode,
    Codex,
    Copilot,
    Cursor,
    Gemini,
    OpenCode,
    Session,
    VSCode,
    evidence,
    put_evidence,
    shell,
)
from tests.support.mounts import can_mount_unreachable, unreachable_mount
from tests.support.sampling import sampled_product

WORKER = {"agent_id": "agent-7", "agent_type": "worker"}
FORKED = {"agent_id": "agent-8", "agent_type": ""}


def record_files(runner: CommandRunner) -> None:
    (runner.folder / "src").mkdir()
    (runner.folder / "a.txt").write_text("one\ntwo\nthree\n")
    (runner.folder / "src" / "b.py").write_text("x = 1\n")
    runner.done("record")


@pytest.fixture
def folder(runner: CommandRunner) -> Path:
    """Return a workspace with some files, of which a baseline has been taken."""
    return runner.prepared(record_files).folder


def attributed_edits(folder: Path) -> list[tuple[str, str]]:
    """Return path and owner of each recorded edit; for an unattributed one, "unattributed"."""
    with Workspace.open(folder) as workspace:
        views = workspace.history.edits(EditFilter())
    return [(os.fsdecode(view.edit.path), "unattributed" if view.is_unattributed else view.owner) for view in views]


def files_in(folder: Path) -> list[Path]:
    """Return the files in a workspace."""
    return [path for path in folder.rglob("*") if path.is_file() and ".cas" not in path.parts]


def edit_by_hand(folder: Path, path: str = "a.txt") -> None:
    """Have the person add a line to a file."""
    with (folder / path).open("a") as file:
        file.write("mine\n")


def permission_request(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event that a person is asked for permission to run a tool; it has no call id."""
    without_id = {name: value for name, value in event.items() if name != "tool_use_id"}
    return without_id | {"hook_event_name": "PermissionRequest", "permission_suggestions": []}


# ---- `cas record` while a tool runs


@pytest.mark.parametrize("words", [(), (".",), ("a.txt", "src")], ids=["all", "the folder", "both"])
def test_changes_of_a_running_tool_are_attributed_to_its_agent_by_cas_record(
    folder: Path, words: tuple[str, ...]
) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    command = session.shell_event("make", before=True)
    session.tell(command)
    shell("echo 1 >> a.txt", folder=folder)
    assert cas("record", *words, folder=folder).status == 0
    session.tell(command | {"hook_event_name": "PostToolUse"})
    session.calls += 1
    written = session.write_event("src/b.py", "y\n", before=True)
    session.tell(written)
    (folder / "src" / "b.py").write_text("y\n")
    edit_by_hand(folder)
    ran = cas("record", *words, "--json", folder=folder)
    external = ran.json()["conversation_id"]
    assert [Path(edit["file_path"]).name for edit in ran.json()["edits"]] == ["b.py", "a.txt"]
    session.tell(written | {"hook_event_name": "PostToolUse"})
    assert attributed_edits(folder) == [("a.txt", session.name), ("src/b.py", session.name), ("a.txt", external)]


# ---- shells that run in the background


@pytest.mark.parametrize("asks_permission", [False, True])
def test_changes_of_a_background_shell_are_attributed_to_its_agent_until_the_turn_ends(
    folder: Path, *, asks_permission: bool
) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    began = session.shell_event("make", before=True)
    session.tell(began)
    if asks_permission:
        session.tell(permission_request(began))
    shell("echo 1 >> a.txt", folder=folder)
    done = began | {"hook_event_name": "PostToolUse"}
    answered = done | {"tool_response": {"stdout": "", "interrupted": False, "backgroundTaskId": "b1"}}
    session.tell(answered)
    shell("echo 2 >> a.txt", folder=folder)
    session.run("true")
    shell("echo 3 >> a.txt", folder=folder)
    running = {"id": "b1", "type": "shell", "status": "running", "command": "make"}
    session.tell(session.stopped() | {"background_tasks": [running]})
    assert attributed_edits(folder) == [("a.txt", session.name)] * 3
    edit_by_hand(folder)  # while the shell may still run, but the person is back at work
    session.ask("and on")
    assert attributed_edits(folder)[3:] == [("a.txt", "unattributed")]
    session.run("echo 4 >> a.txt")
    assert attributed_edits(folder)[4:] == [("a.txt", session.name)]
    session.tell(session.stopped() | {"background_tasks": []})
    edit_by_hand(folder)
    session.ask("and on")
    assert attributed_edits(folder)[5:] == [("a.txt", "external")]


@pytest.mark.parametrize("end", ["kill", "session", "other session"])
def test_a_background_shell_may_have_made_changes_until_it_or_its_session_ends(folder: Path, end: str) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    began = session.shell_event("make", before=True)
    session.tell(began)
    session.tell(began | {"hook_event_name": "PostToolUse", "tool_response": {"backgroundTaskId": "b1"}})
    session.stop()
    edit_by_hand(folder, "src/b.py")
    if end == "kill":
        session.calls += 1
        session.tell(session.tool_event("KillShell", {"shell_id": "b1"}, before=True))
        session.tell(session.tool_event("KillShell", {"shell_id": "b1"}, before=False))
    elif end == "session":
        session.tell(session.base("SessionEnd") | {"reason": "exit"})
    else:
        ClaudeCode(folder, "other").tell(session.base("SessionEnd") | {"session_id": "other", "reason": "exit"})
    edit_by_hand(folder)
    session.start()
    last = "unattributed" if end == "other session" else "external"
    assert attributed_edits(folder) == [("src/b.py", "unattributed"), ("a.txt", last)]
    with Workspace.open(folder) as workspace:
        (found, *_) = workspace.history.edits(EditFilter())
        assert (found.edit.notes["candidates"], found.status) == (session.name, Status.PENDING)


def test_changes_of_a_shell_are_attributed_to_it_when_the_clock_is_set_back(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.tell(session.shell_event("work", before=True))
    ((call, held),) = evidence(folder, "open-").items()
    later = time.time_ns() + 600 * 10**9  # as a step back by ten minutes leaves it
    put_evidence(folder, call, held | {"since": later})
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(session.shell_event("work", before=False))
    assert attributed_edits(folder) == [("a.txt", "session-1")]


def test_changes_during_a_background_shell_without_a_reported_beginning_are_unattributed(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.calls += 1
    answered = {"tool_response": {"backgroundTaskId": "b1"}}
    session.tell(session.shell_event("make", before=False) | answered)
    edit_by_hand(folder)
    session.stop()
    assert attributed_edits(folder) == [("a.txt", "unattributed")]


# ---- shells of several agents at once


def test_changes_while_shells_of_two_agents_run_are_external_or_of_the_agent_that_records_them(folder: Path) -> None:
    for name in ("one", "other"):
        session = ClaudeCode(folder, name)
        session.tell(session.shell_event("make", before=True))
    edit_by_hand(folder)
    assert cas("record", folder=folder).status == 0
    edit_by_hand(folder, "src/b.py")
    assert cas("record", "--agent", "third", "--conversation", "c", folder=folder).status == 0
    assert attributed_edits(folder) == [("a.txt", "unattributed"), ("src/b.py", "c")]


# ---- calls that need a person's permission


@pytest.mark.parametrize(
    ("agent", "by_shell", "is_stopped"), sampled_product([ClaudeCode, Codex], [True, False], [True, False])
)
def test_changes_are_unattributed_if_a_person_was_asked_about_a_call_that_never_ended(
    agent: type[Session], folder: Path, *, by_shell: bool, is_stopped: bool
) -> None:
    session = agent(folder)
    session.ask("do it")
    session.calls += 1
    event = session.shell_event("make", before=True) if by_shell else session.write_event("a.txt", "x\n", before=True)
    session.tell(event)
    session.tell(permission_request(event))
    edit_by_hand(folder)  # after the person refused, for which there is no event
    if is_stopped:
        session.stop()
    else:
        session.ask("never mind")
    assert attributed_edits(folder) == [("a.txt", "unattributed")]
    session.run("echo more >> a.txt")
    assert attributed_edits(folder)[1:] == [("a.txt", session.name)]


@pytest.mark.parametrize("agent", [ClaudeCode, Codex])
def test_a_tool_that_a_person_permitted_is_recorded(agent: type[Session], folder: Path) -> None:
    session = agent(folder)
    for by_shell in (True, False):
        session.calls += 1
        event = (
            session.shell_event("x", before=True) if by_shell else session.write_event("src/b.py", "y\n", before=True)
        )
        session.tell(event)
        session.tell(permission_request(event))
        (folder / "src" / "b.py").write_text(f"by shell: {by_shell}\n")
        session.tell(event | {"hook_event_name": "PostToolUse"})
    session.stop()
    assert attributed_edits(folder) == [("src/b.py", session.name)] * 2


def test_of_two_calls_of_one_tool_only_the_one_that_needed_permission_is_refused(folder: Path) -> None:
    session = ClaudeCode(folder)
    events = []
    for path in ("a.txt", "src/b.py"):
        session.calls += 1
        events.append(session.write_event(path, "x\n", before=True))
        session.tell(events[-1])
    session.tell(permission_request(events[0]))
    for path in ("a.txt", "src/b.py"):
        edit_by_hand(folder, path)
    session.tell(events[1] | {"hook_event_name": "PostToolUse"})
    session.stop()
    assert sorted(attributed_edits(folder)) == [("a.txt", "unattributed"), ("src/b.py", session.name)]


@pytest.mark.parametrize(("questions", "by_shell"), sampled_product([1, 2], [True, False]))
def test_two_identical_calls_of_which_one_needed_permission_claim_nothing_until_they_end(
    folder: Path, questions: int, *, by_shell: bool
) -> None:
    session = ClaudeCode(folder)
    events = []
    for _ in range(2):
        session.calls += 1
        events.append(
            session.shell_event("make", before=True) if by_shell else session.write_event("a.txt", "x\n", before=True)
        )
        session.tell(events[-1])
    for event in events[:questions]:
        session.tell(permission_request(event))
    edit_by_hand(folder)
    session.stop()
    assert attributed_edits(folder) == [("a.txt", "unattributed")]
    for event in events:
        session.tell(event)
    session.tell(permission_request(events[0]))
    edit_by_hand(folder)  # by the first, which was allowed
    session.tell(events[0] | {"hook_event_name": "PostToolUse"})
    edit_by_hand(folder)
    session.stop()
    assert attributed_edits(folder)[1:] == [("a.txt", session.name), ("a.txt", "unattributed")]


def test_a_permission_request_for_network_access_does_not_end_the_running_command(folder: Path) -> None:
    session = Codex(folder)
    session.calls += 1
    event = session.shell_event("fetch", before=True)
    session.tell(event)
    edit_by_hand(folder)  # a change that the command makes before it asks
    given = event["tool_input"] | {"description": "network-access example.org"}
    session.tell(permission_request(event) | {"tool_input": given})
    session.tell(event | {"hook_event_name": "PostToolUse"})
    session.stop()
    assert attributed_edits(folder) == [("a.txt", session.name)]


def test_an_interrupted_turn_ends_when_claude_code_reports_that_it_is_idle(folder: Path) -> None:
    """Claude Code sends no event for the interruption itself."""
    session = ClaudeCode(folder)
    session.tell(session.shell_event("make", before=True))
    edit_by_hand(folder)
    session.tell(session.base("Notification") | {"notification_type": "permission_prompt"})
    assert attributed_edits(folder) == []
    session.tell(session.base("Notification") | {"notification_type": "idle_prompt", "message": "Claude is waiting"})
    edit_by_hand(folder)
    session.ask("go on")
    assert attributed_edits(folder) == [("a.txt", "unattributed"), ("a.txt", "external")]


def test_edits_by_hand_during_a_permission_request_are_external_whichever_command_scans(folder: Path) -> None:
    session, other = ClaudeCode(folder), ClaudeCode(folder, "other")
    session.ask("do it")
    for event in (session.write_event("a.txt", "x\n", before=True), session.shell_event("rm -rf x", before=True)):
        for scan in (lambda: other.ask("hello"), lambda: other.run("ls"), lambda: cas("record", folder=folder)):
            session.tell(event)
            session.tell(permission_request(event))
            edit_by_hand(folder)
            edit_by_hand(folder, "src/b.py")
            scan()
            session.ask("never mind")
    conversations = {conversation for _, conversation in attributed_edits(folder)}
    assert conversations.isdisjoint({session.name, other.name})


def test_a_shell_that_ends_claims_no_change_to_a_file_that_waits_for_permission(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("do both")
    question = session.write_event("a.txt", "x\n", before=True) | {"tool_use_id": "question"}
    allowed = session.shell_event("make", before=True) | {"tool_use_id": "allowed"}
    session.tell(question)
    session.tell(allowed)
    session.tell(permission_request(question))
    edit_by_hand(folder)
    shell("echo 1 >> src/b.py", folder=folder)
    session.tell(allowed | {"hook_event_name": "PostToolUse"})
    assert attributed_edits(folder) == [("src/b.py", session.name)]
    # Neither does a shell of another agent that runs when the refusal becomes known.
    other = ClaudeCode(folder, "other")
    other.tell(other.shell_event("make", before=True))
    session.ask("never mind")
    assert attributed_edits(folder)[1:] == [("a.txt", "unattributed")]


def test_a_permitted_write_is_attributed_to_its_tool_after_a_scan_by_another_agent(folder: Path) -> None:
    session, other = ClaudeCode(folder), ClaudeCode(folder, "other")
    event = session.write_event("a.txt", "x\n", before=True)
    session.tell(event)
    session.tell(permission_request(event))
    (folder / "a.txt").write_text("x\n")
    other.run("ls")
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert attributed_edits(folder) == [("a.txt", session.name)]


def test_changes_of_a_shell_that_waits_for_permission_go_to_no_other_agent(folder: Path) -> None:
    session, other = ClaudeCode(folder), ClaudeCode(folder, "other")
    event = session.shell_event("make", before=True)
    session.tell(event)
    session.tell(permission_request(event))
    other.run("echo 1 >> a.txt")
    shell("echo 2 >> src/b.py", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert attributed_edits(folder) == [("a.txt", "unattributed"), ("src/b.py", session.name)]


# ---- subagents


def test_a_permitted_write_is_not_attributed_to_another_agent_that_named_the_same_file(folder: Path) -> None:
    one, two = ClaudeCode(folder, "one"), ClaudeCode(folder, "two")
    for session in (one, two):
        session.ask("go")
        session.calls += 1
        session.tell(session.write_event("a.txt", "1\n", before=True))
    two.tell(permission_request(two.write_event("a.txt", "1\n", before=True)))
    (folder / "a.txt").write_text("1\n")  # agent two was permitted
    one.tell(one.write_event("a.txt", "1\n", before=False) | {"hook_event_name": "PostToolUseFailure"})
    two.tell(two.write_event("a.txt", "1\n", before=False))
    assert attributed_edits(folder) == [("a.txt", "unattributed")]


@pytest.mark.parametrize("ends_turn", [True, False], ids=["stop", "prompt"])
def test_a_shell_of_a_subagent_continues_after_its_session_gets_a_prompt(folder: Path, *, ends_turn: bool) -> None:
    session = ClaudeCode(folder)
    session.ask("have it done")
    session.tell(session.base("SubagentStart") | WORKER)
    if ends_turn:
        session.stop()  # it works in the background
    session.calls += 1
    event = session.shell_event("make", before=True) | WORKER
    session.tell(event)
    session.ask("how is it going?")
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert attributed_edits(folder) == [("a.txt", session.name)]
    session.tell(session.shell_event("make", before=True) | WORKER | {"tool_use_id": "lost"})
    session.tell(session.base("SubagentStop") | WORKER)
    edit_by_hand(folder)
    session.ask("and now?")
    assert attributed_edits(folder)[1:] == [("a.txt", "external")]


@pytest.mark.parametrize("end", ["SessionEnd", "SessionStart"])
def test_calls_of_subagents_end_with_their_session(folder: Path, end: str) -> None:
    session = ClaudeCode(folder)
    session.ask("have it done")
    session.calls += 1
    session.tell(session.shell_event("make", before=True) | WORKER)
    session.tell(session.base(end) | {"source": "resume"})
    edit_by_hand(folder)
    assert cas("record", folder=folder).status == 0
    ((path, conversation),) = attributed_edits(folder)
    assert (path, conversation != session.name) == ("a.txt", True)


def test_a_compacted_session_keeps_its_background_shell(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("serve it")
    session.calls += 1
    session.tell(session.shell_event("serve", before=True))
    session.tell(session.shell_event("serve", before=False) | {"tool_response": {"backgroundTaskId": "b1"}})
    session.tell(session.base("SessionStart") | {"source": "compact"})
    shell("echo 1 >> a.txt", folder=folder)
    session.stop()
    assert attributed_edits(folder) == [("a.txt", session.name)]


def test_a_subagent_may_start_after_its_session_is_compacted(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("have it done")
    session.tell(session.base("SessionStart") | {"source": "compact"})
    session.calls += 1
    event = session.shell_event("make", before=True) | WORKER  # without an event for the subagent's start
    session.tell(event)
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert attributed_edits(folder) == [("a.txt", session.name)]


@pytest.mark.parametrize(("agent", "is_shell"), sampled_product([ClaudeCode, Codex, VSCode, Copilot], [False, True]))
def test_a_session_compacted_during_a_call_continues_the_call(
    agent: type[Session], folder: Path, *, is_shell: bool
) -> None:
    session = agent(folder)
    session.ask("make it")
    began, ended = session.another_call(is_shell=is_shell)
    session.tell(began)
    session.tell(session.started() | {"source": "compact"})
    shell("echo 1 > a.txt", folder=folder)
    session.tell(ended)
    session.stop()
    assert attributed_edits(folder) == [("a.txt", session.name)]


@pytest.mark.parametrize("agent", [ClaudeCode, Codex])
def test_a_compacted_session_keeps_its_subagents(agent: type[Session], folder: Path) -> None:
    session = agent(folder)
    session.ask("have it done")
    session.calls += 1
    event = session.shell_event("make", before=True) | WORKER
    session.tell(event)
    session.tell(session.started() | {"source": "compact"})
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert attributed_edits(folder) == [("a.txt", session.name)]


def test_a_call_of_an_unreported_subagent_claims_nothing_while_its_session_waits(folder: Path) -> None:
    """Claude Code runs an agent that guesses the next prompt and may run no tool: its calls start and never end."""
    session = ClaudeCode(folder)
    session.ask("do it")
    session.run("echo 1 >> a.txt")
    session.stop()
    session.calls += 1
    session.tell(session.shell_event("ls", before=True) | FORKED)
    edit_by_hand(folder)
    session.ask("the next thing")
    assert attributed_edits(folder) == [("a.txt", session.name), ("a.txt", "external")]


# ---- calls without ids


def test_subagents_that_start_at_the_same_moment_are_all_noted(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    names = [f"agent-{n}" for n in range(24)]

    def begin(name: str) -> None:
        with Workspace.open(folder) as workspace:
            workspace.hooks.note_subagent(session.name, name)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(begin, names))
    session.stop()
    with Workspace.open(folder) as workspace:
        calls = workspace.hooks
        for name in names:
            call = AgentCall(conversation=session.name, id=name, tool="Bash", paths=None, agent=name)
            calls.begin(call, reports_subagents=True)
            (folder / name).write_text(name)
            calls.end(call)
    assert attributed_edits(folder) == [(name, session.name) for name in names]


def test_an_end_event_matches_its_call_when_a_hook_rewrote_the_input(folder: Path) -> None:
    """Gemini CLI gives calls no ids, and a user's own hook may change a call's input between start and end."""
    session = Gemini(folder)
    session.ask("build it")
    session.tell(session.shell_event("make", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(session.shell_event("wrapped make", before=False))
    edit_by_hand(folder, "src/b.py")
    session.stop()
    assert attributed_edits(folder) == [("a.txt", session.name), ("src/b.py", "external")]


@pytest.mark.parametrize(
    ("agent", "tool"), sampled_product([ClaudeCode, Codex, Copilot, Gemini, OpenCode], ["mcp_fs_write", "shell"])
)
def test_two_calls_of_one_tool_with_different_input_are_distinct_without_ids(
    agent: type[Session], tool: str, folder: Path
) -> None:
    session = agent(folder)
    session.ask("do both")

    def event(name: str, *, before: bool) -> dict[str, Any]:
        tool_event = session.shell_event("make", before=before)
        for number in ("tool_use_id", "callID"):
            tool_event.pop(number, None)
        given = "args" if "args" in tool_event else "tool_input"
        if tool == "shell":
            return tool_event | {given: tool_event[given] | {"dir_path": name}}
        return tool_event | {"tool" if given == "args" else "tool_name": tool, given: {"target": name}}

    for name in ("one", "two"):
        session.tell(event(name, before=True))
    for name in ("one", "two"):
        shell(f"echo 1 > {name}", folder=folder)
        session.tell(event(name, before=False))
    edit_by_hand(folder)
    session.stop()
    assert attributed_edits(folder) == [("one", session.name), ("two", session.name), ("a.txt", "external")]


@pytest.mark.parametrize(("agent", "is_rewritten"), sampled_product([Gemini, Copilot], [False, True]))
def test_a_repeated_end_event_without_id_ends_no_other_call(
    agent: type[Session], folder: Path, *, is_rewritten: bool
) -> None:
    session = agent(folder)
    session.ask("do both, twice")
    for turn in ("first", "second"):
        for command in ("one", "two"):
            for _ in range(2):
                session.tell(session.shell_event(command, before=True))
        for command in ("one", "two"):
            shell(f"echo {turn} > {command}", folder=folder)
            for _ in range(2):
                session.tell(session.shell_event(f"wrapped {command}" if is_rewritten else command, before=False))
        assert not evidence(folder, "open-")
    assert attributed_edits(folder) == [("one", session.name), ("two", session.name)] * 2


# ---- long and odd texts


ODD_TEXTS = {"long": "word " * 40_000, "lone surrogate": "half \ud83d a face", "control characters": "\x1b[31m\n\0"}


@pytest.mark.parametrize(("kind", "agent"), sampled_product(list(ODD_TEXTS), [ClaudeCode, Codex, Gemini]))
def test_edits_are_recorded_whatever_text_an_agent_sends(
    agent: type[ClaudeCode | Gemini], kind: str, folder: Path
) -> None:
    text = ODD_TEXTS[kind]
    session: Session = agent(folder)
    session.ask(text)
    session.tell(session.shell_event(text, before=True) | {"model": text})
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(session.shell_event(text, before=False) | {"model": text})
    odd = session.shell_event("x", before=True)
    session.tell(odd | {"tool_name": text})
    shell("echo 2 >> a.txt", folder=folder)
    session.tell(odd | session.shell_event("x", before=False) | {"tool_name": text})
    session.stop()
    assert attributed_edits(folder) == [("a.txt", session.name)] * 2
    assert not (folder / ".cas" / "hook.log").exists()
    assert max(len(json.dumps(held)) for held in evidence(folder).values()) < 20_000


# ---- files behind links and in other workspaces


def test_a_file_named_through_a_symlink_is_attributed_to_its_tool(folder: Path, tmp_path: Path) -> None:
    (folder / "src" / "link.txt").symlink_to("../a.txt")
    (tmp_path / "in").symlink_to(folder)
    assert cas("record", folder=folder).status == 0
    session = ClaudeCode(folder)
    count_before = len(attributed_edits(folder))
    for number, path in enumerate((folder / "src" / "link.txt", tmp_path / "in" / "a.txt")):
        session.calls += 1
        event = session.write_event(str(path), f"{number}\n", before=True)
        session.tell(event)
        path.write_text(f"{number}\n")
        session.tell(event | {"hook_event_name": "PostToolUse"})
    edit_by_hand(folder)
    session.stop()
    assert attributed_edits(folder)[count_before:] == [
        ("a.txt", session.name),
        ("a.txt", session.name),
        ("a.txt", "external"),
    ]


def test_a_patch_with_an_impossible_file_name_logs_no_fault(folder: Path) -> None:
    session = Codex(folder)
    for odd in ("a\0b", "half \ud83d"):
        for patch in ([odd, "a.txt"], ["a.txt", odd], [odd]):
            lines = "".join(f"*** Update File: {path}\n@@\n+new\n" for path in patch)
            session.calls += 1
            event = session.tool_event(
                "apply_patch", {"command": f"*** Begin Patch\n{lines}*** End Patch\n"}, before=True
            )
            session.tell(event)
            edit_by_hand(folder)
            session.tell(event | {"hook_event_name": "PostToolUse"})
    assert [conversation for _, conversation in attributed_edits(folder)].count(session.name) == 4
    assert not (folder / ".cas" / "hook.log").exists()


def test_a_patch_is_recorded_in_each_workspace_that_it_changes(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "o.txt").write_text("o\n")
    CommandRunner(other)
    assert cas("record", folder=other).status == 0
    outside_any_workspace = tmp_path / "notes.md"
    session = Codex(folder)
    names = (outside_any_workspace, other / "o.txt", folder / "a.txt")
    patch = "".join(f"*** Update File: {path}\n@@\n+new\n" for path in names)
    event = session.tool_event("apply_patch", {"command": f"*** Begin Patch\n{patch}*** End Patch\n"}, before=True)
    session.tell(event)
    for path in names:
        path.write_text("new\n")
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert attributed_edits(folder) == [("a.txt", session.name)]
    assert attributed_edits(other) == [("o.txt", session.name)]


@pytest.mark.parametrize(
    ("way", "place"),
    sampled_product(
        ["end", "stop", "prompt", "session's end"], ["nested", "nested, project dir set", "separate, project dir set"]
    ),
)
def test_a_shell_that_changes_into_another_workspace_ends_with_its_event_or_turn(
    folder: Path, tmp_path: Path, way: str, place: str
) -> None:
    inner = (tmp_path if place.startswith("separate") else folder) / "inner"
    inner.mkdir()
    CommandRunner(inner)
    assert cas("record", folder=inner).status == 0
    session = ClaudeCode(folder)
    session.ask("build it")
    session.calls += 1
    began = session.shell_event("cd inner && make", before=True)
    session.tell(began)
    shell("echo 1 >> src/b.py", folder=folder)
    shell("echo 1 > made", folder=inner)
    ended = {
        "end": began | {"hook_event_name": "PostToolUse"},
        "stop": session.stopped(),
        "prompt": session.prompted("and now?"),
        "session's end": session.base("SessionEnd"),
    }
    settings = {"CLAUDE_PROJECT_DIR": str(folder)} if place.endswith("project dir set") else {}
    given = json.dumps(ended[way] | {"cwd": str(inner)}).encode()
    ran = cas("hook", "claude-code", folder=inner, settings=settings, stdin=given)
    assert (ran.status, ran.err) == (0, b"")
    edit_by_hand(folder)
    ClaudeCode(folder, "other").ask("hello")
    assert attributed_edits(folder)[-1] == ("a.txt", "external")
    assert ("src/b.py", session.name if way == "end" else "unattributed") in attributed_edits(folder)
    assert not (folder / ".cas" / "hook.log").exists()


def second_workspace(tmp_path: Path, name: str = "second") -> Path:
    """Return another workspace, of which a baseline has been taken."""
    root = tmp_path / name
    root.mkdir()
    (root / "o.txt").write_text("o\n")
    CommandRunner(root)
    assert cas("record", folder=root).status == 0
    return root


@pytest.mark.parametrize(
    ("way", "place"),
    sampled_product(["stop", "prompt", "session's end", "resumed"], ["separate", "nested", "session in a third"]),
)
def test_a_tool_whose_file_is_in_another_workspace_ends_with_its_turn(
    folder: Path, tmp_path: Path, *, way: str, place: str
) -> None:
    other = second_workspace(folder if place == "nested" else tmp_path)
    session = ClaudeCode(folder)
    session.ask("write it")
    session.calls += 1
    # It has no end event: a hook of the user's own denied it.
    session.tell(session.write_event(str(other / "o.txt"), "new\n", before=True))
    ended = {
        "stop": session.stopped(),
        "prompt": session.prompted("and now?"),
        "session's end": session.base("SessionEnd"),
        "resumed": session.base("SessionStart") | {"source": "resume"},
    }
    here = second_workspace(tmp_path, "third") if place == "session in a third" else folder
    given = json.dumps(ended[way] | {"cwd": str(here)}).encode()
    ran = cas("hook", "claude-code", folder=here, settings={"CLAUDE_PROJECT_DIR": str(folder)}, stdin=given)
    assert (ran.status, ran.err) == (0, b"")
    edit_by_hand(other, "o.txt")
    ClaudeCode(other, "other").ask("hello")
    assert attributed_edits(other) == [("o.txt", "external")]
    assert not evidence(other, "open-")


@pytest.mark.parametrize(
    ("way", "place", "is_shell"),
    sampled_product(
        ["stop", "prompt", "session's end"], ["separate", "nested", "separate, without prompt"], [False, True]
    ),
)
def test_a_tool_that_starts_while_its_agent_is_in_another_workspace_ends_with_its_turn(
    folder: Path, tmp_path: Path, *, way: str, is_shell: bool, place: str
) -> None:
    other = second_workspace(folder if place == "nested" else tmp_path)
    settings = {} if place == "nested" else {"CLAUDE_PROJECT_DIR": str(folder)}
    session, elsewhere = ClaudeCode(folder), ClaudeCode(other)
    if place != "separate, without prompt":
        session.ask("write it")
    began = (
        elsewhere.shell_event("make", before=True) if is_shell else elsewhere.write_event("o.txt", "new\n", before=True)
    )
    ended = {
        "stop": session.stopped(),
        "prompt": session.prompted("and now?"),
        "session's end": session.base("SessionEnd"),
    }
    for event in (began, ended[way]):  # the tool itself has no end event
        ran = cas("hook", "claude-code", folder=folder, settings=settings, stdin=json.dumps(event).encode())
        assert (ran.status, ran.err) == (0, b"")
    edit_by_hand(other, "o.txt")
    ClaudeCode(other, "other").ask("hello")
    assert attributed_edits(other) == [("o.txt", "external")]
    assert not evidence(other, "open-")


def test_edits_in_another_workspace_carry_the_prompt_of_their_turn(folder: Path, tmp_path: Path) -> None:
    other = second_workspace(tmp_path)
    session = ClaudeCode(folder)
    for number in range(3):
        session.ask(f"prompt {number}")
        session.write(str(other / "o.txt"), f"{number}\n")
    with Workspace.open(other) as workspace:
        prompts = [view.edit.notes.get("prompt") for view in workspace.history.edits(EditFilter())]
    assert prompts == ["prompt 0", "prompt 1", "prompt 2"]


def test_a_deleted_workspace_logs_no_fault(folder: Path) -> None:
    other = second_workspace(folder)
    session = ClaudeCode(folder)
    session.write(str(other / "o.txt"), "new\n")
    shutil.rmtree(other)
    session.stop()
    assert not (folder / ".cas" / "hook.log").exists()


def test_permission_events_of_opencode_reach_the_workspace_of_the_file(folder: Path, tmp_path: Path) -> None:
    other = second_workspace(tmp_path)
    session = OpenCode(folder)
    session.calls += 1
    session.tell(session.write_event(str(other / "o.txt"), "new\n", before=True))
    session.tell(session.base("permission.asked") | {"callID": session.call})
    edit_by_hand(other, "o.txt")
    session.tell(session.base("permission.rejected") | {"callID": session.call})
    assert attributed_edits(other) == [("o.txt", "external")]


def test_a_workspace_around_the_agents_own_gets_what_its_calls_do(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    CommandRunner(inner)
    edit_by_hand(folder)
    session = ClaudeCode(inner)
    session.ask("build it")
    session.run("echo 1 > made; echo 1 > ../outside")
    session.tell(session.write_event("made", "2\n", before=True))
    (inner / "made").write_text("2\n")
    session.tell(session.write_event("made", "2\n", before=False))
    session.stop()
    assert attributed_edits(inner) == [("made", session.name)] * 2
    assert sorted(attributed_edits(folder)) == [
        ("a.txt", "external"),
        ("inner/made", session.name),
        ("inner/made", session.name),
        ("outside", session.name),
    ]


def test_a_workspace_inside_the_agents_own_that_its_tools_visited_gets_what_its_shells_do(folder: Path) -> None:
    inner = second_workspace(folder, "inner")
    session = ClaudeCode(folder)
    session.ask("build it")
    session.write("inner/o.txt", "new\n")
    session.run("echo more >> inner/o.txt; echo 1 > inner/made")
    edit_by_hand(inner, "o.txt")
    session.stop()
    assert sorted(attributed_edits(inner)) == [
        ("made", session.name),
        ("o.txt", "external"),
        ("o.txt", session.name),
        ("o.txt", session.name),
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a store to another user")
def test_a_workspace_of_another_user_around_the_agents_own_is_left_alone(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    CommandRunner(inner)
    os.chown(folder / ".cas", 61_500, -1)
    session = ClaudeCode(inner)
    session.ask("build it")
    session.run("echo 1 > made")
    assert attributed_edits(inner) == [("made", session.name)]
    os.chown(folder / ".cas", os.geteuid(), -1)
    assert not evidence(folder, "session-")


def test_a_damaged_enclosing_workspace_does_not_stop_recording_in_the_inner_one(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    CommandRunner(inner)
    session = ClaudeCode(folder)
    session.ask("build it")
    segment = next((folder / ".cas" / "segments").iterdir())
    segment.write_bytes(b"nothing of ours")
    in_inner = ClaudeCode(inner, session.name)
    in_inner.ask("and this")
    in_inner.run("echo 1 > made")
    assert attributed_edits(inner) == [("made", session.name)]
    assert "StoreDamaged" in (folder / ".cas" / "hook.log").read_text()


def test_changes_long_after_a_subagents_call_without_an_end_are_unattributed(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("have it done")
    session.calls += 1
    session.tell(session.shell_event("make", before=True) | WORKER)
    ((begun, held),) = evidence(folder, "open-").items()
    put_evidence(folder, begun, held | {"began": int(time.time() - 16 * 60) * 1_000_000})
    session.stop()
    edit_by_hand(folder)
    session.ask("and now?")
    assert attributed_edits(folder) == [("a.txt", "unattributed")]


def test_calls_of_a_codex_subagent_end_with_it_and_it_may_start_again(folder: Path) -> None:
    session = Codex(folder)
    session.ask("have it looked through")
    inner = {"agent_id": "agent-7", "agent_type": "reviewer"}
    session.tell(session.base("SubagentStart") | inner)
    for turn in (1, 2):
        session.calls += 1
        session.tell(session.shell_event("make", before=True) | inner)  # without an end event
        session.stop()  # its session's turn, not its own
        edit_by_hand(folder)
        session.tell(session.base("SubagentStop") | inner | {"stop_hook_active": False})
        edit_by_hand(folder)
        session.ask("go on")
        assert attributed_edits(folder) == [("a.txt", "unattributed"), ("a.txt", "external")] * turn


# ---- named files whose folder was replaced or became unreadable


@pytest.mark.parametrize(
    ("command", "end"),
    sampled_product(["echo f > src", "ln -s /tmp src", "ln -s src src", "ln -s more src"], ["call", "turn", "none"]),
)
def test_changes_are_recorded_when_the_folder_of_a_named_file_was_replaced(
    folder: Path, command: str, end: str
) -> None:
    (folder / "more").mkdir()
    (folder / "more" / "b.py").write_text("y = 1\n")
    assert cas("record", folder=folder).status == 0
    count_before = len(attributed_edits(folder))
    session, other = ClaudeCode(folder), ClaudeCode(folder, "other")
    session.calls += 1
    named = session.write_event("src/b.py", "x\n", before=True)
    session.tell(named)
    session.run(f"rm -r src && {command}")
    if end == "call":
        session.tell(named | {"hook_event_name": "PostToolUse", "tool_use_id": "call-session-1-1"})
    elif end == "turn":
        session.stop()
    other.run("echo more >> a.txt")
    ran = cas("record", folder=folder)
    assert (ran.status, ran.err) == (0, b"")
    first, *others = sorted(attributed_edits(folder)[count_before:])
    assert [first, *others[:-1]] == [("a.txt", "other"), ("src", session.name)]
    # Unless the end of the call is reported, it may have ended before the shell, and the file have changed in between.
    assert others[-1] in {("src/b.py", session.name), ("src/b.py", "unattributed" if end != "call" else session.name)}
    assert not (folder / ".cas" / "hook.log").exists()
    if end == "turn":
        assert not evidence(folder, "open-")


def test_a_patch_of_several_files_is_one_call_and_records_its_move(folder: Path) -> None:
    (folder / "c.txt").write_text("x\n")
    os.link(folder / "c.txt", folder / "linked.txt")
    assert cas("record", folder=folder).status == 0
    count_before = len(attributed_edits(folder))
    session = Codex(folder)
    patch = "*** Update File: a.txt\n*** Move to: b.txt\n*** Update File: c.txt\n*** Add File: d.txt\n"
    event = session.tool_event("apply_patch", {"command": f"*** Begin Patch\n{patch}*** End Patch\n"}, before=True)
    session.tell(event)
    shell("mv a.txt b.txt; echo y > c.txt; echo d > d.txt", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    with Workspace.open(folder) as workspace:
        edits = [view.edit for view in workspace.history.edits(EditFilter())][count_before:]
    assert {(edit.conversation, edit.call) for edit in edits} == {(session.name, 0)}
    assert [(edit.operation, edit.path, edit.source) for edit in edits] == [
        (Operation.MOVE, b"b.txt", b"a.txt"),
        (Operation.EDIT, b"c.txt", None),
        (Operation.CREATE, b"d.txt", None),
        (Operation.EDIT, b"linked.txt", None),
    ]


def test_a_patch_may_replace_a_folder_by_a_file(folder: Path) -> None:
    session = Codex(folder)
    patch = "*** Delete File: src/b.py\n*** Add File: src\n+new\n"
    event = session.tool_event("apply_patch", {"command": f"*** Begin Patch\n{patch}*** End Patch\n"}, before=True)
    session.tell(event)
    shell("rm -r src; echo new > src", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert attributed_edits(folder) == [("src/b.py", session.name), ("src", session.name)]
    assert not evidence(folder, "open-")


def test_a_patch_that_replaces_a_file_by_a_folder_is_attributed_and_rejectable(folder: Path) -> None:
    session = Codex(folder)
    patch = "*** Delete File: a.txt\n*** Add File: a.txt/main\n+new\n"
    event = session.tool_event("apply_patch", {"command": f"*** Begin Patch\n{patch}*** End Patch\n"}, before=True)
    session.tell(event)
    shell("rm a.txt; mkdir a.txt; echo new > a.txt/main", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    session.stop()
    assert attributed_edits(folder) == [("a.txt", session.name), ("a.txt/main", session.name)]
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert (folder / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_refused_call_ends_when_the_folder_of_its_file_was_replaced(folder: Path) -> None:
    session = Cursor(folder)
    session.calls += 1
    event = session.write_event("src/b.py", "x\n", before=True)
    session.tell(event)
    shell("rm -r src; ln -s src src", folder=folder)
    session.tell(event | {"hook_event_name": "postToolUseFailure", "failure_type": "permission_denied"})
    assert not evidence(folder, "open-")
    assert cas("record", folder=folder).status == 0
    others = [path for path, conversation in attributed_edits(folder) if conversation != session.name]
    assert others == ["src/b.py", "src"]


def test_an_unreadable_named_file_does_not_stop_other_files_from_being_recorded(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.tell(session.write_event("src/b.py", "x\n", before=True))
    edit_by_hand(folder)
    (folder / "src").chmod(0)
    ran = cas_unprivileged("record", folder=folder)
    (folder / "src").chmod(0o755)
    assert ran.status == 0, ran.said
    assert [path for path, _ in attributed_edits(folder)] == ["a.txt"]


@pytest.mark.parametrize("name", ["a.txt", "new.txt"])
def test_what_a_shell_wrote_into_a_file_that_then_became_readable_is_unattributed(folder: Path, name: str) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    (folder / name).touch()
    (folder / name).chmod(0)
    assert cas_unprivileged("record", folder=folder).status == 0
    for event in (
        session.shell_event("edit", before=True),
        session.shell_event("edit", before=False),
        session.stopped(),
    ):
        ran = cas_unprivileged("hook", session.client, folder=folder, stdin=json.dumps(event).encode())
        assert ran.status == 0
        if event["hook_event_name"] == "PreToolUse":
            edit_by_hand(folder, name)
    (folder / name).chmod(0o644)
    assert cas_unprivileged("record", folder=folder).status == 0
    assert attributed_edits(folder) == [(name, "unattributed")]


@pytest.mark.parametrize(("named", "end"), sampled_product(["src/b.py", "src/new.py", "src"], ["call", "turn"]))
def test_a_patch_that_names_an_unreadable_path_does_not_claim_edits_by_hand(folder: Path, named: str, end: str) -> None:
    session = Codex(folder)
    patch = f"*** Begin Patch\n*** Update File: {named}\n*** Update File: a.txt\n*** End Patch\n"
    event = session.tool_event("apply_patch", {"command": patch}, before=True)
    ended = event | {"hook_event_name": "PostToolUse"} if end == "call" else session.stopped()
    edit_by_hand(folder)
    (folder / "src").chmod(0)
    try:
        before = cas_unprivileged("hook", session.client, folder=folder, stdin=json.dumps(event).encode())
        edit_by_hand(folder)
        after = cas_unprivileged("hook", session.client, folder=folder, stdin=json.dumps(ended).encode())
    finally:
        (folder / "src").chmod(0o755)
    assert (before.status, after.status) == (0, 0)
    whose = session.name if end == "call" else "unattributed"
    assert attributed_edits(folder) == [("a.txt", "external"), ("a.txt", whose)]
    assert not evidence(folder, "open-")
    assert not (folder / ".cas" / "hook.log").exists()


@pytest.mark.parametrize(("named", "end"), sampled_product(["src/b.py", "src/new.py", "src"], ["call", "turn"]))
def test_a_patch_that_names_a_path_on_an_unreachable_mount_does_not_claim_edits_by_hand(
    folder: Path, named: str, end: str
) -> None:
    if not can_mount_unreachable(folder / "src"):
        pytest.skip("no file system can be mounted here")
    session = Codex(folder)
    patch = f"*** Begin Patch\n*** Update File: {named}\n*** Update File: a.txt\n*** End Patch\n"
    event = session.tool_event("apply_patch", {"command": patch}, before=True)
    ended = event | {"hook_event_name": "PostToolUse"} if end == "call" else session.stopped()
    edit_by_hand(folder)
    with unreachable_mount(folder / "src"):
        before = cas("hook", session.client, folder=folder, stdin=json.dumps(event).encode())
        edit_by_hand(folder)
        after = cas("hook", session.client, folder=folder, stdin=json.dumps(ended).encode())
    assert (before.status, after.status) == (0, 0)
    whose = session.name if end == "call" else "unattributed"
    assert attributed_edits(folder) == [("a.txt", "external"), ("a.txt", whose)]
    assert not evidence(folder, "open-")
    assert not (folder / ".cas" / "hook.log").exists()


# ---- end events that are late or whose hook was killed


@contextmanager
def hook_waiting_for_lock(
    folder: Path, event: dict[str, Any], lock_name: str = "lock"
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run Claude Code's hook under a held lock; yield it when it has noted the event and waits, then release the lock.

    `lock_name`: the file in `.cas/agents` that is locked.
    """
    agents = folder / ".cas" / "agents"

    def noted() -> dict[str, dict[str, Any]]:
        return evidence(folder, "open-", "over-")

    before = noted()
    with (
        subprocess.Popen(
            [*PROGRAM, "hook", "claude-code"], cwd=folder, env=environment({}), stdin=subprocess.PIPE
        ) as waiting,
        (agents / lock_name).open("rb") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert waiting.stdin is not None
        waiting.stdin.write(json.dumps(event).encode())
        waiting.stdin.close()
        until = time.monotonic() + PATIENCE
        while noted() == before:
            assert time.monotonic() < until
            time.sleep(0.01)
        time.sleep(0.05)  # more than a tick of the file system's clock
        yield waiting


def send_and_kill_hook(folder: Path, event: dict[str, Any], lock_name: str = "lock") -> None:
    """Send an event while a lock is held, and kill its hook once it has noted the event."""
    with hook_waiting_for_lock(folder, event, lock_name) as hook:
        hook.kill()


def session_whose_end_hook_was_killed(folder: Path, command: str) -> ClaudeCode:
    """Return a session whose shell ran a command, and whose hook was killed while it handled the end event."""
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.shell_event(command, before=True))
    shell(command, folder=folder)
    send_and_kill_hook(folder, session.shell_event(command, before=False))
    return session


@pytest.mark.parametrize("tool", ["Bash", "Write"])
def test_changes_after_an_end_that_was_not_recorded_are_not_the_calls(folder: Path, tool: str) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    began, ended = session.another_call(is_shell=tool == "Bash", content="x")
    session.tell(began)
    shell("echo 1 >> a.txt", folder=folder)
    send_and_kill_hook(folder, ended)
    edit_by_hand(folder, "src/b.py")
    (folder / "c.txt").write_text("mine\n")
    session.calls += 1
    session.tell(session.tool_event("Read", {"file_path": str(folder / "a.txt")}, before=True))
    session.run("true")
    edit_by_hand(folder)
    session.run("true")
    # After a hook that failed, an agent may have worked unheard.
    assert sorted(attributed_edits(folder)) == [
        ("a.txt", "external"),
        ("a.txt", session.name),
        ("c.txt", "unattributed"),
        ("src/b.py", "unattributed"),
    ]


def test_a_folder_renamed_after_an_end_that_was_not_recorded_is_not_the_calls(folder: Path) -> None:
    (folder / "src" / "deep").mkdir()
    edit_by_hand(folder, "src/deep/c.py")
    assert cas("record", folder=folder).status == 0
    session = session_whose_end_hook_was_killed(folder, "echo 1 >> a.txt")
    (folder / "src").rename(folder / "lib")
    session.ask("and on")
    assert sorted(attributed_edits(folder)[1:]) == [
        ("a.txt", session.name),
        ("lib/b.py", "unattributed"),
        ("lib/deep/c.py", "unattributed"),
    ]
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert (folder / "lib" / "b.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(("tool", "inner"), sampled_product(["Bash", "Write"], ["", "deep"]))
def test_files_removed_with_a_folder_after_an_end_that_was_not_recorded_are_not_the_calls(
    folder: Path, tool: str, inner: str
) -> None:
    for place in ("src", "old"):
        (folder / place / inner).mkdir(parents=True, exist_ok=True)
        edit_by_hand(folder, f"{place}/{inner}/{place}.py")
    assert cas("record", folder=folder).status == 0
    count_before = len(attributed_edits(folder))
    path = str(Path("src", inner, "src.py"))
    session = ClaudeCode(folder)
    session.ask("go")
    began, ended = session.another_call(is_shell=tool == "Bash", command="mkdir new", path=path, content="x")
    session.tell(began)
    shell(f"mkdir -p new/{inner}; echo 1 > new/{inner}/z", folder=folder)
    send_and_kill_hook(folder, ended)
    shutil.rmtree(folder / "src")
    (folder / ("new" if tool == "Bash" else "old")).rename(folder / "src")
    session.stop()
    assert (path, "unattributed") in attributed_edits(folder)[count_before:]
    assert session.name not in dict(attributed_edits(folder)[count_before:]).values()


def test_a_move_before_a_killed_end_hook_is_a_move_though_its_old_folder_has_a_new_file(folder: Path) -> None:
    session = session_whose_end_hook_was_killed(folder, "mv src/b.py b.py")
    (folder / "src" / "c.py").write_text("mine\n")
    session.ask("and on")
    assert sorted(attributed_edits(folder)) == [("b.py", session.name), ("src/c.py", "unattributed")]
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert (folder / "src" / "b.py").read_text() == "x = 1\n"
    assert not (folder / "b.py").exists()


def test_a_deletion_is_recorded_before_the_creation_that_needs_its_path(folder: Path) -> None:
    session = session_whose_end_hook_was_killed(folder, "rm a.txt; mkdir a.txt; echo 1 > a.txt/x")
    (folder / "c.txt").write_text("mine\n")
    session.ask("and on")
    assert attributed_edits(folder)[0] == ("a.txt", "unattributed")
    assert sorted(attributed_edits(folder)[1:]) == [("a.txt/x", session.name), ("c.txt", "unattributed")]


def test_changes_while_the_end_hook_of_a_shell_waits_for_a_lock_are_external(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.shell_event("make", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    with hook_waiting_for_lock(folder, session.shell_event("make", before=False)):
        edit_by_hand(folder, "src/b.py")
    assert sorted(attributed_edits(folder)) == [("a.txt", session.name), ("src/b.py", "unattributed")]


def test_changes_of_a_formatter_to_a_written_file_during_its_end_hook_belong_to_the_tool(folder: Path) -> None:
    """Claude Code runs all its hooks for one event at once, and one of them may be a formatter."""
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.write_event("a.txt", "1\n", before=True))
    (folder / "a.txt").write_text("1\n")
    with hook_waiting_for_lock(folder, session.write_event("a.txt", "1\n", before=False)):
        (folder / "a.txt").write_text("1\n\n")
    assert attributed_edits(folder) == [("a.txt", session.name)]


TURN_ENDS: dict[str, dict[str, Any]] = {
    "Stop": {},
    "UserPromptSubmit": {"prompt": "and on"},
    "Notification": {"notification_type": "idle_prompt"},
    "SessionEnd": {},
    "SubagentStop": WORKER,
}
"""What the events that end a turn hold besides their names."""


@pytest.mark.parametrize(("name", "lock_name"), sampled_product(list(TURN_ENDS), ["lock", "sessions"]))
def test_a_turn_end_whose_hook_was_killed_ends_the_calls_of_the_turn(folder: Path, name: str, lock_name: str) -> None:
    turn_end = TURN_ENDS[name]
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    of_worker = WORKER if "agent_id" in turn_end else {}
    session.tell(session.shell_event("make", before=True) | of_worker)
    shell("echo 1 >> a.txt", folder=folder)
    send_and_kill_hook(folder, session.base(name) | turn_end, lock_name)
    edit_by_hand(folder, "src/b.py")
    session.ask("what now?")
    # An end that is only inferred proves nothing of what came before it.
    assert sorted(attributed_edits(folder)) == [("a.txt", "unattributed"), ("src/b.py", "unattributed")]
    edit_by_hand(folder)
    session.stop()
    assert attributed_edits(folder)[-1] == ("a.txt", "external")


@pytest.mark.parametrize("name", ["Stop", "SessionEnd"])
def test_a_turn_end_on_a_full_disk_ends_the_calls_of_the_turn(folder: Path, name: str) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.shell_event("make", before=True))
    ran = cas_on_full_disk("hook", "claude-code", folder=folder, stdin=json.dumps(session.base(name)).encode())
    assert (ran.status, ran.out) == (1, b"")  # no mark of the failure fits anywhere: the command line leaves it
    time.sleep(0.05)  # more than a tick of the file system's clock
    edit_by_hand(folder)
    session.ask("what now?")
    assert attributed_edits(folder) == [("a.txt", "unattributed")]


def test_a_denied_call_claims_nothing_when_the_hook_of_the_denial_was_killed(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    event = session.shell_event("make", before=True)
    session.tell(event)
    send_and_kill_hook(folder, event | {"hook_event_name": "PermissionDenied", "reason": "no"})
    edit_by_hand(folder)
    session.run("true")
    session.stop()
    assert attributed_edits(folder) == [("a.txt", "unattributed")]


def test_a_permitted_call_is_recorded_when_its_end_hook_was_killed(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    event = session.shell_event("make", before=True)
    session.tell(event)
    session.tell(permission_request(event))
    shell("echo 1 >> a.txt", folder=folder)
    send_and_kill_hook(folder, session.shell_event("make", before=False))
    session.stop()
    assert attributed_edits(folder) == [("a.txt", session.name)]


def test_an_interrupted_hook_exits_with_zero_and_its_event_is_handled_later(folder: Path) -> None:
    """A terminal sends Ctrl-C to every process of its foreground group, hooks included."""
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.shell_event("make", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    with hook_waiting_for_lock(folder, session.shell_event("make", before=False)) as hook:
        hook.send_signal(signal.SIGINT)
        assert hook.wait(PATIENCE) == 0
    assert not (folder / ".cas" / "hook.log").exists()
    session.stop()
    assert attributed_edits(folder) == [("a.txt", session.name)]


def test_parallel_tools_of_which_one_end_is_noted_and_not_handled_yet_made_their_changes(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    first, first_end = session.another_call(is_shell=False, path="a.txt")
    second, second_end = session.another_call(is_shell=False, path="src/b.py")
    for event in (first, second):
        session.tell(event)
    shell("echo 1 >> a.txt; echo 1 >> src/b.py", folder=folder)
    send_and_kill_hook(folder, first_end)
    session.tell(second_end)
    session.stop()
    assert sorted(attributed_edits(folder)) == [("a.txt", session.name), ("src/b.py", session.name)]


@pytest.mark.parametrize("agent", [Gemini, ClaudeCode], ids=lambda agent: agent.__name__)
def test_files_left_by_a_killed_end_hook_end_no_later_call(agent: type[Session], folder: Path) -> None:
    session = agent(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.shell_event("make", before=True))
    (begun,) = evidence(folder, "open-")
    session.tell(session.shell_event("make", before=False))
    put_evidence(folder, begun.replace("open-", "over-"), {})  # the hook was killed between the two lines
    session.ask("and on")
    time.sleep(0.05)  # more than a tick of the file system's clock
    session.tell(session.shell_event("make", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(session.shell_event("make", before=False))
    assert attributed_edits(folder) == [("a.txt", session.name)]


def test_a_prompt_is_remembered_when_the_lock_of_the_agents_folder_cannot_be_opened(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    agents = folder / ".cas" / "agents"
    (agents / "lock").rename(folder / ".cas" / "old")
    (agents / "lock").mkdir()
    session.ask("and on")
    (agents / "lock").rmdir()
    session.write("a.txt", "1\n")
    with Workspace.open(folder) as workspace:
        (view,) = workspace.history.edits(EditFilter())
    assert view.edit.notes["prompt"] == "and on"


# ---- files that stop being ignored while a tool runs


@pytest.mark.parametrize(
    ("path", "is_lost"), sampled_product([".diary", "notes/deep/diary", "src/b.py"], [False, True])
)
def test_a_file_that_stops_being_ignored_during_a_shell_is_external_if_it_changed_before(
    folder: Path, path: str, *, is_lost: bool
) -> None:
    (folder / ".casignore").write_text(f"{path.partition('/')[0]}\n")
    assert cas("record", folder=folder).status == 0
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text("mine\n")
    time.sleep(0.05)  # more than a tick of the file system's clock
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.shell_event("make", before=True))
    session.tell(permission_request(session.shell_event("make", before=True)))  # which rewrites the call's file
    shell("rm .casignore; echo '*.log' > .casignore; echo 1 >> a.txt", folder=folder)
    if is_lost:
        shutil.rmtree(folder / ".cas" / "cache")
    session.tell(session.shell_event("make", before=False))
    found = [(".casignore", session.name), (path, "external"), ("a.txt", session.name)]
    assert sorted(attributed_edits(folder)[1:]) == sorted(found)
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert (folder / path).read_text() == "mine\n"


def test_files_in_a_cache_folder_whose_tag_a_shell_removes_are_no_ones_unless_older_than_its_work(folder: Path) -> None:
    cache = folder / "cache"
    (cache / "deep").mkdir(parents=True)
    (cache / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
    (cache / "deep" / "diary").write_text("mine\n")
    assert cas("record", folder=folder).status == 0
    time.sleep(0.05)  # more than a tick of the file system's clock
    session = ClaudeCode(folder)
    session.ask("go")
    session.run("rm cache/CACHEDIR.TAG; echo 1 > cache/deep/new")
    assert sorted(attributed_edits(folder)) == [("cache/deep/diary", "external"), ("cache/deep/new", "unattributed")]


@pytest.mark.parametrize("source", ["ignored", "outside", "known"])
def test_a_folder_that_a_shell_moves_is_attributed_to_it_whatever_its_modification_times(
    folder: Path, tmp_path: Path, source: str
) -> None:
    (folder / ".casignore").write_text("ignored\n")
    came_from = tmp_path / source if source == "outside" else folder / source
    (came_from / "deep").mkdir(parents=True)
    (came_from / "deep" / "c.py").write_text("c\n")
    assert cas("record", folder=folder).status == 0
    count_before = len(attributed_edits(folder))
    time.sleep(0.05)  # more than a tick of the file system's clock
    session = ClaudeCode(folder)
    session.ask("go")
    session.run(f"mv {came_from} new")
    assert attributed_edits(folder)[count_before:] == [("new/deep/c.py", session.name)]


@pytest.mark.parametrize(
    "command",
    [
        "rm -r src; mv old src",
        "mv src t; mv old src; mv t old; echo 1 >> old/b.py; echo 1 >> old/deep/c.py",
        "touch -r src stamp; rm -r src/b.py src/deep; touch -r stamp src; rm stamp",
    ],
    ids=["replaced", "swapped", "with its time restored"],
)
def test_deletions_by_a_shell_are_attributed_to_it_whatever_times_their_folder_has(folder: Path, command: str) -> None:
    for path in ("src/deep/c.py", "old/deep/d.py", "old/e.py"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        edit_by_hand(folder, path)
    assert cas("record", folder=folder).status == 0
    count_before = len(attributed_edits(folder))
    before = {path: path.read_bytes() for path in files_in(folder)}
    time.sleep(0.05)  # more than a tick of the file system's clock
    session = ClaudeCode(folder)
    session.ask("go")
    session.run(command)
    assert {name for _, name in attributed_edits(folder)[count_before:]} == {session.name}
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert {path: path.read_bytes() for path in files_in(folder)} == before


@pytest.mark.parametrize(
    "command",
    [
        "mv src lib; echo 1 >> lib/b.py; echo 1 >> lib/deep/c.py",
        "mkdir lib; mv src/* lib; rmdir src; echo 1 >> lib/deep/c.py; echo 2 > lib/b.py",
        "mv src/deep deeper; ln -s ../deeper src/deep; echo 1 >> deeper/c.py",
    ],
    ids=["renamed", "emptied", "replaced by a link"],
)
def test_files_that_a_shell_moves_with_their_folder_and_changes_can_be_rejected(folder: Path, command: str) -> None:
    for path in ("src/b.py", "src/deep/c.py"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        edit_by_hand(folder, path)
    assert cas("record", folder=folder).status == 0
    before = {path: path.read_bytes() for path in files_in(folder)}
    time.sleep(0.05)  # more than a tick of the file system's clock
    session = ClaudeCode(folder)
    session.ask("go")
    session.run(command)
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert {path: path.read_bytes() for path in files_in(folder)} == before


# ---- repeated and late events


@pytest.mark.parametrize(
    ("agent", "is_shell"), sampled_product([ClaudeCode, Codex, Cursor, OpenCode, VSCode], [False, True])
)
def test_repeated_start_and_end_events_claim_nothing(agent: type[Session], folder: Path, *, is_shell: bool) -> None:
    session = agent(folder)
    session.ask("go")
    began, ended = session.another_call(is_shell=is_shell)
    session.tell(began)
    (folder / "a.txt").write_text("1\n")
    session.tell(ended)
    edit_by_hand(folder)
    session.tell(ended)
    session.tell(began)
    edit_by_hand(folder)
    edit_by_hand(folder, "src/b.py")
    session.run("true")
    session.stop()
    assert [name for _, name in attributed_edits(folder)] == [session.name, "external", "external", "external"]


@pytest.mark.parametrize(
    ("agent", "call"),
    sampled_product([ClaudeCode, Codex, Cursor, OpenCode, VSCode], list(product([False, True], [False, True]))),
)
def test_a_start_event_that_arrives_after_its_end_event_claims_nothing(
    agent: type[Session], folder: Path, call: tuple[bool, bool]
) -> None:
    is_shell, turn_ended = call
    session = agent(folder)
    session.ask("go")
    began, ended = session.another_call(is_shell=is_shell)
    session.tell(ended)
    if turn_ended:
        session.stop()
    session.tell(began)
    edit_by_hand(folder)
    session.stop()
    session.ask("and on")
    assert attributed_edits(folder) == [("a.txt", "external")]


@pytest.mark.parametrize("is_shell", [False, True], ids=["write", "shell"])
def test_a_repeated_start_event_of_a_denied_call_claims_nothing(folder: Path, *, is_shell: bool) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    began = session.shell_event("make", before=True) if is_shell else session.write_event("a.txt", "1\n", before=True)
    for event in (began, began | {"hook_event_name": "PermissionDenied"}, began):
        session.tell(event)
    edit_by_hand(folder)
    session.stop()
    assert attributed_edits(folder) == [("a.txt", "external")]


def test_an_opencode_tool_that_was_refused_and_then_failed_claims_nothing(folder: Path) -> None:
    session = OpenCode(folder)
    session.ask("go")
    session.calls += 1
    began = session.write_event("a.txt", "1\n", before=True)
    session.tell(began)
    for word in ("asked", "rejected"):
        session.tell(session.base(f"permission.{word}") | {"callID": session.call})
    edit_by_hand(folder)
    session.tell(began | {"hook": "tool.execute.failed"})
    assert attributed_edits(folder) == [("a.txt", "external")]


@pytest.mark.parametrize(
    ("agent", "since", "is_repeated"),
    sampled_product(
        [ClaudeCode, Codex, OpenCode], ["the turn's end", "the next prompt", "both", "a later prompt"], [False, True]
    ),
)
def test_an_end_event_after_the_end_of_its_turn_claims_nothing(
    agent: type[Session], folder: Path, *, since: str, is_repeated: bool
) -> None:
    session = agent(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.write_event("a.txt", "1\n", before=True))
    (folder / "a.txt").write_text("1\n")
    ended = session.write_event("a.txt", "1\n", before=False)
    if is_repeated:
        session.tell(ended)
    if since in {"the turn's end", "both"}:
        session.stop()
    for _ in range({"the turn's end": 0, "a later prompt": 2}.get(since, 1)):
        session.ask("and on")
    edit_by_hand(folder)
    session.tell(ended)
    # An end that was never reported before shows that the call may have run until now.
    assert attributed_edits(folder) == [
        ("a.txt", session.name if is_repeated else "unattributed"),
        ("a.txt", "external" if is_repeated else "unattributed"),
    ]


@pytest.mark.parametrize(("is_shell", "is_killed"), sampled_product([False, True], [False, True]))
def test_a_deferred_call_that_starts_again_in_the_resumed_session_is_attributed(
    folder: Path, *, is_shell: bool, is_killed: bool
) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    began, ended = session.another_call(is_shell=is_shell)
    session.tell(began)  # another hook answers "defer"
    if not is_killed:
        session.tell(session.base("SessionEnd") | {"reason": "other"})
    edit_by_hand(folder)
    session.tell(session.base("SessionStart") | {"source": "resume"})
    session.tell(began)
    (folder / "a.txt").write_text("1\n")
    session.tell(ended)
    assert attributed_edits(folder)[-1] == ("a.txt", session.name)


@pytest.mark.parametrize("other", ["in the next turn", "of another file"])
def test_two_calls_with_the_same_id_are_both_recorded(folder: Path, other: str) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.write("a.txt", "1\n")
    session.calls -= 1
    if other == "in the next turn":
        session.ask("and on")
        session.write("a.txt", "2\n")
    else:
        session.write("src/b.py", "2\n")
    assert [name for _, name in attributed_edits(folder)] == [session.name] * 2


@pytest.mark.parametrize("has_other", [False, True], ids=["alone", "during another agent's shell"])
def test_a_tool_that_names_a_folder_claims_no_file_in_it(folder: Path, *, has_other: bool) -> None:
    session, other = ClaudeCode(folder), ClaudeCode(folder, "session-2")
    session.ask("go")
    session.calls += 1
    event = session.write_event("src", "x", before=True)
    session.tell(event)
    if has_other:
        other.calls += 1
        other.tell(other.shell_event("make", before=True))
    edit_by_hand(folder, "src/b.py")
    session.tell(event | {"hook_event_name": "PostToolUseFailure"})
    if has_other:
        other.tell(other.shell_event("make", before=False))
    session.stop()
    assert attributed_edits(folder) == [("src/b.py", other.name if has_other else "external")]


def test_a_tool_whose_file_became_a_folder_claims_the_deletion_and_no_file_in_the_folder(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.write_event("a.txt", "x", before=True))
    shell("rm a.txt; mkdir a.txt; echo mine > a.txt/mine", folder=folder)
    session.tell(session.write_event("a.txt", "x", before=False))
    assert attributed_edits(folder) == [("a.txt", session.name), ("a.txt/mine", "external")]


@pytest.mark.parametrize("scans_before", [False, True], ids=["scan at the end", "scan before the end"])
def test_a_tool_that_names_a_folder_that_is_gone_afterwards_deleted_every_file_in_it(
    folder: Path, *, scans_before: bool
) -> None:
    (folder / "src" / "deep").mkdir()
    edit_by_hand(folder, "src/deep/c.py")
    assert cas("record", folder=folder).status == 0
    session, other = Cursor(folder), ClaudeCode(folder, "session-2")
    session.ask("go")
    session.calls += 1
    session.tell(session.tool_event("Delete", {"path": str(folder / "src")}, before=True))
    shutil.rmtree(folder / "src")
    edit_by_hand(folder)
    if scans_before:
        other.run("true")
    session.tell(session.tool_event("Delete", {"path": str(folder / "src")}, before=False))
    session.stop()
    assert sorted(attributed_edits(folder)[1:]) == [
        ("a.txt", "external"),
        ("src/b.py", session.name),
        ("src/deep/c.py", session.name),
    ]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("rm -r src", {("DELETE", "src/b.py"), ("DELETE", "src/deep/c.py")}),
        ("mv src lib", {("MOVE", "lib/b.py"), ("MOVE", "lib/deep/c.py")}),
        ("rm -r src; echo 1 > src", {("DELETE", "src/b.py"), ("DELETE", "src/deep/c.py"), ("CREATE", "src")}),
    ],
    ids=["removed", "renamed", "a file now"],
)
def test_files_deleted_by_hand_before_a_tool_names_them_are_external(
    folder: Path, command: str, found: set[tuple[str, str]]
) -> None:
    (folder / "src" / "deep").mkdir()
    (folder / "src" / "deep" / "c.py").write_text("c\n")
    assert cas("record", folder=folder).status == 0
    count_before = len(attributed_edits(folder))
    shell(command, folder=folder)
    session = Cursor(folder)
    session.calls += 1
    event = session.tool_event("Delete", {"path": str(folder / "src")}, before=True)
    session.tell(event)
    failed = {"hook_event_name": "postToolUseFailure", "failure_type": "error", "error_message": "no such file"}
    session.tell(event | failed)
    with Workspace.open(folder) as workspace:
        views = workspace.history.edits(EditFilter())[count_before:]
    assert {(view.edit.operation.name, os.fsdecode(view.edit.path)) for view in views} == found
    assert {view.edit.conversation for view in views} == {"external"}
    assert [view.edit.operation.name for view in views][:1] != [
        "CREATE"
    ]  # deletions come before a creation at their path
    session.stop()
    assert len(attributed_edits(folder)) == count_before + len(found)


@pytest.mark.parametrize("scans_before", [False, True], ids=["scan at the end", "scan before the end"])
def test_a_hard_linked_file_is_attributed_to_the_tool_that_named_one_of_its_names(
    folder: Path, *, scans_before: bool
) -> None:
    (folder / "src" / "other").hardlink_to(folder / "a.txt")
    assert cas("record", folder=folder).status == 0
    session, other = ClaudeCode(folder), ClaudeCode(folder, "session-2")
    for each in (session, other):
        each.ask("go")
        each.calls += 1
    other.tell(other.shell_event("make", before=True))
    session.tell(session.write_event("a.txt", "1\n", before=True))
    (folder / "a.txt").write_text("1\n")
    if scans_before:
        other.run("true")
    session.tell(session.write_event("a.txt", "1\n", before=False))
    other.tell(other.shell_event("make", before=False))
    other.stop()
    assert attributed_edits(folder)[1:] == [("a.txt", session.name), ("src/other", session.name)]
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert (folder / "src" / "other").read_text() == (folder / "a.txt").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize("is_workspace", [False, True])
def test_a_call_ends_although_the_folder_of_its_file_leads_out_of_the_workspace(
    folder: Path, tmp_path: Path, *, is_workspace: bool
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    if is_workspace:
        assert cas("init", folder=outside).status == 0
    session = ClaudeCode(folder)
    session.calls += 1
    named = session.write_event("src/b.py", "x\n", before=True)
    session.tell(named)
    session.run(f"rm -r src && ln -s {outside} src")
    assert b"running now" in cas("status", folder=folder).out
    session.tell(named | {"hook_event_name": "PostToolUse", "tool_use_id": "call-session-1-1"})
    assert b"running now" not in cas("status", folder=folder).out
    assert {owner for _, owner in attributed_edits(folder)} == {session.name}
