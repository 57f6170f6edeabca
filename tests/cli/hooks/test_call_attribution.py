"""Calls without a plain begin and end: refused, made by subagents, changed on the way, with words nobody can spell."""

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
from pathlib import Path
from typing import Any

import pytest

from objstore import AgentCall, EditFilter, Operation, Workspace
from tests.support.command_runner import (
    PATIENCE,
    PROGRAM,
    CommandRunner,
    cas,
    cas_on_full_disk,
    cas_unprivileged,
    environment,
)
from tests.support.hooked_agents import ClaudeCode, Codex, Copilot, Cursor, Gemini, OpenCode, Session, VSCode, shell
from tests.support.mounts import can_mount_unreachable, unreachable_mount

WORKER = {"agent_id": "agent-7", "agent_type": "worker"}
FORKED = {"agent_id": "agent-8", "agent_type": ""}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a workspace with some files, of which a baseline has been taken."""
    root = tmp_path / "ws"
    (root / "src").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "src" / "b.py").write_text("x = 1\n")
    CommandRunner(root)
    assert cas("record", folder=root).status == 0
    return root


def whose(folder: Path) -> list[tuple[str, str]]:
    """Return path and conversation of each recorded edit."""
    with Workspace.open(folder) as workspace:
        views = workspace.history.edits(EditFilter())
    return [(os.fsdecode(view.edit.path), view.edit.conversation) for view in views]


def files(folder: Path) -> list[Path]:
    """Return the files in a workspace."""
    return [path for path in folder.rglob("*") if path.is_file() and ".cas" not in path.parts]


def typed(folder: Path, path: str = "a.txt") -> None:
    """Have the person add a line to a file."""
    with (folder / path).open("a") as file:
        file.write("mine\n")


def asked(event: dict[str, Any]) -> dict[str, Any]:
    """Return what tells that the person is asked about a tool: it comes without the call's id."""
    told = {name: value for name, value in event.items() if name != "tool_use_id"}
    return told | {"hook_event_name": "PermissionRequest", "permission_suggestions": []}


# ---- what is recorded by hand while a tool runs


@pytest.mark.parametrize("words", [(), (".",), ("a.txt", "src")], ids=["all", "the folder", "both"])
def test_what_a_running_tool_did_is_its_agents_though_a_person_has_it_recorded(
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
    typed(folder)
    ran = cas("record", *words, "--json", folder=folder)
    mine = ran.json()["conversation_id"]
    assert [Path(edit["file_path"]).name for edit in ran.json()["edits"]] == ["b.py", "a.txt"]
    session.tell(written | {"hook_event_name": "PostToolUse"})
    assert whose(folder) == [("a.txt", session.name), ("src/b.py", session.name), ("a.txt", mine)]


# ---- what runs on behind its answer


@pytest.mark.parametrize("is_asked", [False, True])
def test_what_a_shell_does_in_the_background_is_its_agents_until_the_turn_ends(folder: Path, *, is_asked: bool) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    began = session.shell_event("make", before=True)
    session.tell(began)
    if is_asked:
        session.tell(asked(began))
    shell("echo 1 >> a.txt", folder=folder)
    done = began | {"hook_event_name": "PostToolUse"}
    answered = done | {"tool_response": {"stdout": "", "interrupted": False, "backgroundTaskId": "b1"}}
    session.tell(answered)
    shell("echo 2 >> a.txt", folder=folder)
    session.run("true")
    shell("echo 3 >> a.txt", folder=folder)
    running = {"id": "b1", "type": "shell", "status": "running", "command": "make"}
    session.tell(session.stopped() | {"background_tasks": [running]})
    assert whose(folder) == [("a.txt", session.name)] * 3
    typed(folder)  # while the shell may still run, but the person is back at work
    session.ask("and on")
    assert whose(folder)[3:] == [("a.txt", "external")]


def test_a_shell_that_runs_while_the_clock_is_set_back_made_its_changes(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.tell(session.shell_event("work", before=True))
    (call,) = (folder / ".cas" / "agents").glob("open-*")
    later = call.stat().st_mtime_ns + 600 * 10**9  # as a step back by ten minutes leaves it
    os.utime(call, ns=(later, later))
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(session.shell_event("work", before=False))
    assert whose(folder) == [("a.txt", "session-1")]


def test_of_a_shell_in_the_background_that_never_told_of_its_beginning_nothing_is_believed(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.calls += 1
    answered = {"tool_response": {"backgroundTaskId": "b1"}}
    session.tell(session.shell_event("make", before=False) | answered)
    typed(folder)
    session.stop()
    assert whose(folder) == [("a.txt", "external")]


# ---- what may be several agents' doing


def test_what_shells_of_two_agents_may_have_done_is_no_persons(folder: Path) -> None:
    for name in ("one", "other"):
        session = ClaudeCode(folder, name)
        session.tell(session.shell_event("make", before=True))
    typed(folder)
    assert cas("record", folder=folder).status == 0
    typed(folder, "src/b.py")
    assert cas("record", "--agent", "third", "--conversation", "c", folder=folder).status == 0
    assert whose(folder) == [("a.txt", "external"), ("src/b.py", "c")]


# ---- what a person does not let run


@pytest.mark.parametrize("agent", [ClaudeCode, Codex])
@pytest.mark.parametrize("by_shell", [True, False], ids=["shell", "write"])
@pytest.mark.parametrize("is_stopped", [True, False], ids=["stop", "prompt"])
def test_a_tool_that_a_person_was_asked_about_and_that_never_ended_changed_nothing(
    agent: type[Session], folder: Path, *, by_shell: bool, is_stopped: bool
) -> None:
    session = agent(folder)
    session.ask("do it")
    session.calls += 1
    event = session.shell_event("make", before=True) if by_shell else session.write_event("a.txt", "x\n", before=True)
    session.tell(event)
    session.tell(asked(event))
    typed(folder)  # after the person said no, of which nobody tells
    if is_stopped:
        session.stop()
    else:
        session.ask("never mind")
    assert whose(folder) == [("a.txt", "external")]
    session.run("echo more >> a.txt")
    assert whose(folder)[1:] == [("a.txt", session.name)]


@pytest.mark.parametrize("agent", [ClaudeCode, Codex])
def test_a_tool_that_a_person_was_asked_about_and_let_run_is_recorded(agent: type[Session], folder: Path) -> None:
    session = agent(folder)
    for by_shell in (True, False):
        session.calls += 1
        event = (
            session.shell_event("x", before=True) if by_shell else session.write_event("src/b.py", "y\n", before=True)
        )
        session.tell(event)
        session.tell(asked(event))
        (folder / "src" / "b.py").write_text(f"by shell: {by_shell}\n")
        session.tell(event | {"hook_event_name": "PostToolUse"})
    session.stop()
    assert whose(folder) == [("src/b.py", session.name)] * 2


def test_of_two_calls_alike_the_one_is_refused_that_was_asked_about(folder: Path) -> None:
    session = ClaudeCode(folder)
    events = []
    for path in ("a.txt", "src/b.py"):
        session.calls += 1
        events.append(session.write_event(path, "x\n", before=True))
        session.tell(events[-1])
    session.tell(asked(events[0]))
    for path in ("a.txt", "src/b.py"):
        typed(folder, path)
    session.stop()
    assert sorted(whose(folder)) == [("a.txt", "external"), ("src/b.py", session.name)]


@pytest.mark.parametrize("questions", [1, 2])
@pytest.mark.parametrize("by_shell", [True, False], ids=["shell", "write"])
def test_of_two_calls_that_nothing_tells_apart_neither_claims_anything_until_its_end(
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
        session.tell(asked(event))
    typed(folder)
    session.stop()
    assert whose(folder) == [("a.txt", "external")]
    for event in events:
        session.tell(event)
    session.tell(asked(events[0]))
    typed(folder)  # by the first, which was allowed
    session.tell(events[0] | {"hook_event_name": "PostToolUse"})
    typed(folder)
    session.stop()
    assert whose(folder)[1:] == [("a.txt", session.name), ("a.txt", "external")]


def test_who_is_asked_whether_a_running_command_may_use_the_network_does_not_stop_it(folder: Path) -> None:
    session = Codex(folder)
    session.calls += 1
    event = session.shell_event("fetch", before=True)
    session.tell(event)
    typed(folder)  # what it does before
    given = event["tool_input"] | {"description": "network-access example.org"}
    session.tell(asked(event) | {"tool_input": given})
    session.stop()
    assert whose(folder) == [("a.txt", session.name)]


def test_a_turn_that_a_person_broke_off_is_over_when_claude_waits_for_them(folder: Path) -> None:
    """Nothing tells of that itself."""
    session = ClaudeCode(folder)
    session.tell(session.shell_event("make", before=True))
    typed(folder)
    session.tell(session.base("Notification") | {"notification_type": "permission_prompt"})
    assert whose(folder) == []
    session.tell(session.base("Notification") | {"notification_type": "idle_prompt", "message": "Claude is waiting"})
    typed(folder)
    session.ask("go on")
    assert whose(folder) == [("a.txt", session.name), ("a.txt", "external")]


def test_what_a_person_types_while_a_question_is_open_is_theirs_whoever_looks_meanwhile(folder: Path) -> None:
    session, other = ClaudeCode(folder), ClaudeCode(folder, "other")
    session.ask("do it")
    for event in (session.write_event("a.txt", "x\n", before=True), session.shell_event("rm -rf x", before=True)):
        for look in (lambda: other.ask("hello"), lambda: other.run("ls"), lambda: cas("record", folder=folder)):
            session.tell(event)
            session.tell(asked(event))
            typed(folder)
            typed(folder, "src/b.py")
            look()
            session.ask("never mind")
    conversations = {conversation for _, conversation in whose(folder)}
    assert conversations.isdisjoint({session.name, other.name})


def test_a_shell_that_ends_claims_nothing_of_a_file_that_a_person_is_asked_about(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("do both")
    question = session.write_event("a.txt", "x\n", before=True) | {"tool_use_id": "question"}
    allowed = session.shell_event("make", before=True) | {"tool_use_id": "allowed"}
    session.tell(question)
    session.tell(allowed)
    session.tell(asked(question))
    typed(folder)
    shell("echo 1 >> src/b.py", folder=folder)
    session.tell(allowed | {"hook_event_name": "PostToolUse"})
    assert whose(folder) == [("src/b.py", session.name)]
    # Nor does a shell of another's that runs when it is clear that the file was not written.
    other = ClaudeCode(folder, "other")
    other.tell(other.shell_event("make", before=True))
    session.ask("never mind")
    assert whose(folder)[1:] == [("a.txt", "external")]


def test_a_file_that_was_asked_about_and_written_is_its_tools_though_others_looked(folder: Path) -> None:
    session, other = ClaudeCode(folder), ClaudeCode(folder, "other")
    event = session.write_event("a.txt", "x\n", before=True)
    session.tell(event)
    session.tell(asked(event))
    (folder / "a.txt").write_text("x\n")
    other.run("ls")
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert whose(folder) == [("a.txt", session.name)]


def test_a_shell_that_may_have_been_let_run_leaves_its_work_to_no_other_agent(folder: Path) -> None:
    session, other = ClaudeCode(folder), ClaudeCode(folder, "other")
    event = session.shell_event("make", before=True)
    session.tell(event)
    session.tell(asked(event))
    other.run("echo 1 >> a.txt")
    shell("echo 2 >> src/b.py", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert whose(folder) == [("a.txt", "external"), ("src/b.py", session.name)]


# ---- subagents


def test_a_file_that_was_asked_about_and_written_is_not_another_agents_that_named_it_too(folder: Path) -> None:
    one, two = ClaudeCode(folder, "one"), ClaudeCode(folder, "two")
    for session in (one, two):
        session.ask("go")
        session.calls += 1
        session.tell(session.write_event("a.txt", "1\n", before=True))
    two.tell(asked(two.write_event("a.txt", "1\n", before=True)))
    (folder / "a.txt").write_text("1\n")  # two was let
    one.tell(one.write_event("a.txt", "1\n", before=False) | {"hook_event_name": "PostToolUseFailure"})
    two.tell(two.write_event("a.txt", "1\n", before=False))
    assert whose(folder) == [("a.txt", "external")]


@pytest.mark.parametrize("is_stopped", [True, False], ids=["stop", "prompt"])
def test_a_subagents_shell_goes_on_when_its_session_does(folder: Path, *, is_stopped: bool) -> None:
    session = ClaudeCode(folder)
    session.ask("have it done")
    session.tell(session.base("SubagentStart") | WORKER)
    if is_stopped:
        session.stop()  # it works in the background
    session.calls += 1
    event = session.shell_event("make", before=True) | WORKER
    session.tell(event)
    session.ask("how is it going?")
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert whose(folder) == [("a.txt", session.name)]
    session.tell(session.shell_event("make", before=True) | WORKER | {"tool_use_id": "lost"})
    session.tell(session.base("SubagentStop") | WORKER)
    typed(folder)
    session.ask("and now?")
    assert whose(folder)[1:] == [("a.txt", "external")]


@pytest.mark.parametrize("end", ["SessionEnd", "SessionStart"])
def test_a_session_that_is_over_leaves_no_subagent(folder: Path, end: str) -> None:
    session = ClaudeCode(folder)
    session.ask("have it done")
    session.calls += 1
    session.tell(session.shell_event("make", before=True) | WORKER)
    session.tell(session.base(end) | {"source": "resume"})
    typed(folder)
    assert cas("record", folder=folder).status == 0
    ((path, conversation),) = whose(folder)
    assert (path, conversation != session.name) == ("a.txt", True)


def test_a_session_that_is_made_shorter_keeps_its_shell_in_the_background(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("serve it")
    session.calls += 1
    session.tell(session.shell_event("serve", before=True))
    session.tell(session.shell_event("serve", before=False) | {"tool_response": {"backgroundTaskId": "b1"}})
    session.tell(session.base("SessionStart") | {"source": "compact"})
    shell("echo 1 >> a.txt", folder=folder)
    session.stop()
    assert whose(folder) == [("a.txt", session.name)]


def test_a_session_that_is_made_shorter_waits_for_nobody_so_an_agent_may_begin(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("have it done")
    session.tell(session.base("SessionStart") | {"source": "compact"})
    session.calls += 1
    event = session.shell_event("make", before=True) | WORKER  # that it begins was not told
    session.tell(event)
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert whose(folder) == [("a.txt", session.name)]


@pytest.mark.parametrize("agent", [ClaudeCode, Codex, VSCode, Copilot])
@pytest.mark.parametrize("is_shell", [False, True], ids=["write", "shell"])
def test_a_session_that_is_made_shorter_in_the_middle_of_a_call_goes_on_with_it(
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
    assert whose(folder) == [("a.txt", session.name)]


@pytest.mark.parametrize("agent", [ClaudeCode, Codex])
def test_a_session_that_is_made_shorter_keeps_its_subagents(agent: type[Session], folder: Path) -> None:
    session = agent(folder)
    session.ask("have it done")
    session.calls += 1
    event = session.shell_event("make", before=True) | WORKER
    session.tell(event)
    session.tell(session.started() | {"source": "compact"})
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert whose(folder) == [("a.txt", session.name)]


def test_an_agent_that_nobody_told_of_does_nothing_while_its_session_waits(folder: Path) -> None:
    """Claude Code has one guess what a person might say next, and lets it run no tool: its calls only begin."""
    session = ClaudeCode(folder)
    session.ask("do it")
    session.run("echo 1 >> a.txt")
    session.stop()
    session.calls += 1
    session.tell(session.shell_event("ls", before=True) | FORKED)
    typed(folder)
    session.ask("the next thing")
    assert whose(folder) == [("a.txt", session.name), ("a.txt", "external")]


# ---- calls without ids


def test_subagents_that_begin_at_the_same_moment_are_all_known(folder: Path) -> None:
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
    assert whose(folder) == [(name, session.name) for name in names]


def test_a_call_is_known_again_though_its_input_was_changed_on_the_way(folder: Path) -> None:
    """Gemini CLI tells the input before and after other people's hooks have had their say; it gives calls no ids."""
    session = Gemini(folder)
    session.ask("build it")
    session.tell(session.shell_event("make", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(session.shell_event("wrapped make", before=False))
    typed(folder, "src/b.py")
    session.stop()
    assert whose(folder) == [("a.txt", session.name), ("src/b.py", "external")]


@pytest.mark.parametrize("agent", [ClaudeCode, Codex, Copilot, Gemini, OpenCode], ids=lambda agent: agent.__name__)
@pytest.mark.parametrize("tool", ["mcp_fs_write", "shell"])
def test_two_calls_of_one_tool_with_other_input_are_two_though_they_have_no_ids(
    agent: type[Session], tool: str, folder: Path
) -> None:
    session = agent(folder)
    session.ask("do both")

    def event(name: str, *, before: bool) -> dict[str, Any]:
        told = session.shell_event("make", before=before)
        for number in ("tool_use_id", "callID"):
            told.pop(number, None)
        given = "args" if "args" in told else "tool_input"
        if tool == "shell":
            return told | {given: told[given] | {"dir_path": name}}
        return told | {"tool" if given == "args" else "tool_name": tool, given: {"target": name}}

    for name in ("one", "two"):
        session.tell(event(name, before=True))
    for name in ("one", "two"):
        shell(f"echo 1 > {name}", folder=folder)
        session.tell(event(name, before=False))
    typed(folder)
    session.stop()
    assert whose(folder) == [("one", session.name), ("two", session.name), ("a.txt", "external")]


@pytest.mark.parametrize("agent", [Gemini, Copilot], ids=lambda agent: agent.__name__)
@pytest.mark.parametrize("is_rewritten", [False, True], ids=["as begun", "changed on the way"])
def test_an_end_without_an_id_that_comes_twice_ends_no_other_call(
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
        assert list((folder / ".cas" / "agents").glob("open-*")) == []
    assert whose(folder) == [("one", session.name), ("two", session.name)] * 2


# ---- notes


LONG = "word " * 40_000


@pytest.mark.parametrize("said", [LONG, "half \ud83d a face", "\x1b[31m\n\0"], ids=["long", "half", "controls"])
@pytest.mark.parametrize("agent", [ClaudeCode, Codex, Gemini], ids=lambda agent: agent.__name__)
def test_no_word_of_an_agent_keeps_its_edits_from_being_recorded(
    agent: type[ClaudeCode | Gemini], said: str, folder: Path
) -> None:
    session: Session = agent(folder)
    session.ask(said)
    session.tell(session.shell_event(said, before=True) | {"model": said})
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(session.shell_event(said, before=False) | {"model": said})
    odd = session.shell_event("x", before=True)
    session.tell(odd | {"tool_name": said})
    shell("echo 2 >> a.txt", folder=folder)
    session.tell(odd | session.shell_event("x", before=False) | {"tool_name": said})
    session.stop()
    assert whose(folder) == [("a.txt", session.name)] * 2
    assert not (folder / ".cas" / "hook.log").exists()
    assert max(path.stat().st_size for path in (folder / ".cas" / "agents").iterdir()) < 20_000


# ---- files by other names


def test_a_file_that_is_named_by_a_link_is_its_tools(folder: Path, tmp_path: Path) -> None:
    (folder / "src" / "link.txt").symlink_to("../a.txt")
    (tmp_path / "in").symlink_to(folder)
    assert cas("record", folder=folder).status == 0
    session = ClaudeCode(folder)
    done = len(whose(folder))
    for number, path in enumerate((folder / "src" / "link.txt", tmp_path / "in" / "a.txt")):
        session.calls += 1
        event = session.write_event(str(path), f"{number}\n", before=True)
        session.tell(event)
        path.write_text(f"{number}\n")
        session.tell(event | {"hook_event_name": "PostToolUse"})
    typed(folder)
    session.stop()
    assert whose(folder)[done:] == [("a.txt", session.name), ("a.txt", session.name), ("a.txt", "external")]


def test_a_name_that_no_file_can_have_is_nobodys_fault(folder: Path) -> None:
    session = Codex(folder)
    for odd in ("a\0b", "half \ud83d"):
        for patch in ([odd, "a.txt"], ["a.txt", odd], [odd]):
            lines = "".join(f"*** Update File: {path}\n@@\n+new\n" for path in patch)
            session.calls += 1
            event = session.tool_event(
                "apply_patch", {"command": f"*** Begin Patch\n{lines}*** End Patch\n"}, before=True
            )
            session.tell(event)
            typed(folder)
            session.tell(event | {"hook_event_name": "PostToolUse"})
    assert [conversation for _, conversation in whose(folder)].count(session.name) == 4
    assert not (folder / ".cas" / "hook.log").exists()


def test_a_patch_is_recorded_in_each_workspace_that_it_reaches_into(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "o.txt").write_text("o\n")
    CommandRunner(other)
    assert cas("record", folder=other).status == 0
    nowhere = tmp_path / "notes.md"
    session = Codex(folder)
    names = (nowhere, other / "o.txt", folder / "a.txt")
    patch = "".join(f"*** Update File: {path}\n@@\n+new\n" for path in names)
    event = session.tool_event("apply_patch", {"command": f"*** Begin Patch\n{patch}*** End Patch\n"}, before=True)
    session.tell(event)
    for path in names:
        path.write_text("new\n")
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert whose(folder) == [("a.txt", session.name)]
    assert whose(other) == [("o.txt", session.name)]


@pytest.mark.parametrize("way", ["end", "stop", "prompt", "session's end"])
@pytest.mark.parametrize(
    ("is_apart", "is_said"),
    [(False, False), (False, True), (True, True)],
    ids=["inside", "inside, said", "beside, said"],
)
def test_a_shell_that_goes_into_another_workspace_is_over_when_its_agent_says_so(
    folder: Path, tmp_path: Path, *, way: str, is_apart: bool, is_said: bool
) -> None:
    inner = (tmp_path if is_apart else folder) / "inner"
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
    settings = {"CLAUDE_PROJECT_DIR": str(folder)} if is_said else {}
    given = json.dumps(ended[way] | {"cwd": str(inner)}).encode()
    ran = cas("hook", "claude-code", folder=inner, settings=settings, stdin=given)
    assert (ran.status, ran.err) == (0, b"")
    typed(folder)
    ClaudeCode(folder, "other").ask("hello")
    assert whose(folder)[-1] == ("a.txt", "external")
    assert ("src/b.py", session.name) in whose(folder)
    assert not (folder / ".cas" / "hook.log").exists()


def beside(tmp_path: Path, name: str = "beside") -> Path:
    """Return another workspace, of which a baseline has been taken."""
    root = tmp_path / name
    root.mkdir()
    (root / "o.txt").write_text("o\n")
    CommandRunner(root)
    assert cas("record", folder=root).status == 0
    return root


@pytest.mark.parametrize("way", ["stop", "prompt", "session's end", "resumed"])
@pytest.mark.parametrize("place", ["beside", "below", "gone on"])
def test_a_tool_whose_file_is_in_another_workspace_is_over_with_its_turn(
    folder: Path, tmp_path: Path, *, way: str, place: str
) -> None:
    other = beside(folder if place == "below" else tmp_path)
    session = ClaudeCode(folder)
    session.ask("write it")
    session.calls += 1
    # Its end is never told: a hook of somebody else's has denied it.
    session.tell(session.write_event(str(other / "o.txt"), "new\n", before=True))
    ended = {
        "stop": session.stopped(),
        "prompt": session.prompted("and now?"),
        "session's end": session.base("SessionEnd"),
        "resumed": session.base("SessionStart") | {"source": "resume"},
    }
    here = beside(tmp_path, "third") if place == "gone on" else folder
    given = json.dumps(ended[way] | {"cwd": str(here)}).encode()
    ran = cas("hook", "claude-code", folder=here, settings={"CLAUDE_PROJECT_DIR": str(folder)}, stdin=given)
    assert (ran.status, ran.err) == (0, b"")
    typed(other, "o.txt")
    ClaudeCode(other, "other").ask("hello")
    assert whose(other) == [("o.txt", "external")]
    assert not list((other / ".cas" / "agents").glob("open-*"))


@pytest.mark.parametrize("way", ["stop", "prompt", "session's end"])
@pytest.mark.parametrize("is_shell", [False, True], ids=["write", "shell"])
@pytest.mark.parametrize("place", ["beside", "below", "beside, unheard of"])
def test_a_tool_that_begins_while_its_agent_is_in_another_workspace_is_over_with_its_turn(
    folder: Path, tmp_path: Path, *, way: str, is_shell: bool, place: str
) -> None:
    other = beside(folder if place == "below" else tmp_path)
    settings = {} if place == "below" else {"CLAUDE_PROJECT_DIR": str(folder)}
    session, gone = ClaudeCode(folder), ClaudeCode(other)
    if "unheard" not in place:
        session.ask("write it")
    began = gone.shell_event("make", before=True) if is_shell else gone.write_event("o.txt", "new\n", before=True)
    ended = {
        "stop": session.stopped(),
        "prompt": session.prompted("and now?"),
        "session's end": session.base("SessionEnd"),
    }
    for event in (began, ended[way]):  # the tool's own end is never told
        ran = cas("hook", "claude-code", folder=folder, settings=settings, stdin=json.dumps(event).encode())
        assert (ran.status, ran.err) == (0, b"")
    typed(other, "o.txt")
    ClaudeCode(other, "other").ask("hello")
    assert whose(other) == [("o.txt", "external")]
    assert not list((other / ".cas" / "agents").glob("open-*"))


def test_what_an_agent_does_in_another_workspace_is_explained_by_what_it_was_asked(
    folder: Path, tmp_path: Path
) -> None:
    other = beside(tmp_path)
    session = ClaudeCode(folder)
    for number in range(3):
        session.ask(f"prompt {number}")
        session.write(str(other / "o.txt"), f"{number}\n")
    with Workspace.open(other) as workspace:
        prompts = [view.edit.notes.get("prompt") for view in workspace.history.edits(EditFilter())]
    assert prompts == ["prompt 0", "prompt 1", "prompt 2"]


def test_a_workspace_that_is_gone_is_nobodys_fault(folder: Path) -> None:
    other = beside(folder)
    session = ClaudeCode(folder)
    session.write(str(other / "o.txt"), "new\n")
    shutil.rmtree(other)
    session.stop()
    assert not (folder / ".cas" / "hook.log").exists()


def test_what_a_person_lets_opencode_do_is_known_in_the_workspace_of_its_file(folder: Path, tmp_path: Path) -> None:
    other = beside(tmp_path)
    session = OpenCode(folder)
    session.calls += 1
    session.tell(session.write_event(str(other / "o.txt"), "new\n", before=True))
    session.tell(session.base("permission.asked") | {"callID": session.call})
    typed(other, "o.txt")
    session.tell(session.base("permission.rejected") | {"callID": session.call})
    assert whose(other) == [("o.txt", "external")]


def test_a_workspace_above_where_an_agent_never_was_is_left_alone(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    CommandRunner(inner)
    typed(folder)
    session = ClaudeCode(inner)
    session.ask("build it")
    session.run("echo 1 > made")
    session.stop()
    assert whose(inner) == [("made", session.name)]
    assert whose(folder) == []
    assert not list((folder / ".cas" / "agents").glob("session-*"))


def test_a_workspace_above_that_is_damaged_keeps_the_agents_own_from_nothing(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    CommandRunner(inner)
    session = ClaudeCode(folder)
    session.ask("build it")
    segment = next((folder / ".cas" / "segments").iterdir())
    segment.write_bytes(b"nothing of ours")
    below = ClaudeCode(inner, session.name)
    below.ask("and this")
    below.run("echo 1 > made")
    assert whose(inner) == [("made", session.name)]
    assert "UserPromptSubmit" in (folder / ".cas" / "hook.log").read_text()


def test_a_subagents_call_is_not_waited_for_for_ever(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("have it done")
    session.calls += 1
    session.tell(session.shell_event("make", before=True) | WORKER)
    (begun,) = (folder / ".cas" / "agents").glob("open-*")
    began = int(time.time() - 16 * 60) * 1_000_000
    begun.write_bytes(begun.read_bytes().replace(b'"began": ', b'"began": %d, "was": ' % began))
    session.stop()
    typed(folder)
    session.ask("and now?")
    assert whose(folder) == [("a.txt", "external")]


def test_a_subagent_of_codex_is_over_when_it_is_back_and_may_go_on_nevertheless(folder: Path) -> None:
    session = Codex(folder)
    session.ask("have it looked through")
    inner = {"agent_id": "agent-7", "agent_type": "reviewer"}
    session.tell(session.base("SubagentStart") | inner)
    for turn in (1, 2):
        session.calls += 1
        session.tell(session.shell_event("make", before=True) | inner)  # and no end
        session.stop()  # its session's turn, not its own
        typed(folder)
        session.tell(session.base("SubagentStop") | inner | {"stop_hook_active": False})
        typed(folder)
        session.ask("go on")
        assert whose(folder) == [("a.txt", session.name), ("a.txt", "external")] * turn


# ---- a named file whose folder is none any more


@pytest.mark.parametrize("end", ["its own", "the turn's", "nobody's"])
@pytest.mark.parametrize("command", ["echo f > src", "ln -s /tmp src", "ln -s src src", "ln -s more src"])
def test_a_named_file_whose_folder_became_another_thing_keeps_nobody_from_the_record(
    folder: Path, command: str, end: str
) -> None:
    (folder / "more").mkdir()
    (folder / "more" / "b.py").write_text("y = 1\n")
    assert cas("record", folder=folder).status == 0
    done = len(whose(folder))
    session, other = ClaudeCode(folder), ClaudeCode(folder, "other")
    session.calls += 1
    named = session.write_event("src/b.py", "x\n", before=True)
    session.tell(named)
    session.run(f"rm -r src && {command}")
    if end == "its own":
        session.tell(named | {"hook_event_name": "PostToolUse", "tool_use_id": "call-session-1-1"})
    elif end == "the turn's":
        session.stop()
    other.run("echo more >> a.txt")
    ran = cas("record", folder=folder)
    assert (ran.status, ran.err) == (0, b"")
    made = [("src", session.name)] if "echo" in command else []
    assert sorted(whose(folder)[done:]) == [("a.txt", "other"), *made, ("src/b.py", session.name)]
    assert not (folder / ".cas" / "hook.log").exists()
    if end == "the turn's":
        assert not list((folder / ".cas" / "agents").glob("open-*"))


def test_a_patch_of_several_files_is_one_call_and_moves_what_it_moves(folder: Path) -> None:
    (folder / "c.txt").write_text("x\n")
    os.link(folder / "c.txt", folder / "linked.txt")
    assert cas("record", folder=folder).status == 0
    already = len(whose(folder))
    session = Codex(folder)
    patch = "*** Update File: a.txt\n*** Move to: b.txt\n*** Update File: c.txt\n*** Add File: d.txt\n"
    event = session.tool_event("apply_patch", {"command": f"*** Begin Patch\n{patch}*** End Patch\n"}, before=True)
    session.tell(event)
    shell("mv a.txt b.txt; echo y > c.txt; echo d > d.txt", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    with Workspace.open(folder) as workspace:
        edits = [view.edit for view in workspace.history.edits(EditFilter())][already:]
    assert {(edit.conversation, edit.call) for edit in edits} == {(session.name, 0)}
    assert [(edit.operation, edit.path, edit.source) for edit in edits] == [
        (Operation.MOVE, b"b.txt", b"a.txt"),
        (Operation.EDIT, b"c.txt", None),
        (Operation.CREATE, b"d.txt", None),
        (Operation.EDIT, b"linked.txt", None),
    ]


def test_a_patch_may_make_a_folder_a_file(folder: Path) -> None:
    session = Codex(folder)
    patch = "*** Delete File: src/b.py\n*** Add File: src\n+new\n"
    event = session.tool_event("apply_patch", {"command": f"*** Begin Patch\n{patch}*** End Patch\n"}, before=True)
    session.tell(event)
    shell("rm -r src; echo new > src", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    assert whose(folder) == [("src/b.py", session.name), ("src", session.name)]
    assert not list((folder / ".cas" / "agents").glob("open-*"))


def test_what_a_patch_makes_of_a_file_that_becomes_a_folder_is_all_its_own(folder: Path) -> None:
    session = Codex(folder)
    patch = "*** Delete File: a.txt\n*** Add File: a.txt/main\n+new\n"
    event = session.tool_event("apply_patch", {"command": f"*** Begin Patch\n{patch}*** End Patch\n"}, before=True)
    session.tell(event)
    shell("rm a.txt; mkdir a.txt; echo new > a.txt/main", folder=folder)
    session.tell(event | {"hook_event_name": "PostToolUse"})
    session.stop()
    assert whose(folder) == [("a.txt", session.name), ("a.txt/main", session.name)]
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert (folder / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_call_that_is_not_let_run_is_over_whatever_became_of_the_folder_of_its_file(folder: Path) -> None:
    session = Cursor(folder)
    session.calls += 1
    event = session.write_event("src/b.py", "x\n", before=True)
    session.tell(event)
    shell("rm -r src; ln -s src src", folder=folder)
    session.tell(event | {"hook_event_name": "postToolUseFailure", "failure_type": "permission_denied"})
    assert not list((folder / ".cas" / "agents").glob("open-*"))
    assert cas("record", folder=folder).status == 0
    assert [path for path, conversation in whose(folder) if conversation != session.name] == ["src/b.py"]


def test_a_named_file_that_may_not_be_read_any_more_keeps_no_other_from_the_record(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.tell(session.write_event("src/b.py", "x\n", before=True))
    typed(folder)
    (folder / "src").chmod(0)
    ran = cas_unprivileged("record", folder=folder)
    (folder / "src").chmod(0o755)
    assert ran.status == 0, ran.said
    assert [path for path, _ in whose(folder)] == ["a.txt"]


@pytest.mark.parametrize("end", ["its own", "the turn's"])
@pytest.mark.parametrize("named", ["src/b.py", "src/new.py", "src"])
def test_a_patch_that_names_what_may_not_be_looked_at_leaves_a_persons_line_theirs(
    folder: Path, named: str, end: str
) -> None:
    session = Codex(folder)
    patch = f"*** Begin Patch\n*** Update File: {named}\n*** Update File: a.txt\n*** End Patch\n"
    event = session.tool_event("apply_patch", {"command": patch}, before=True)
    ended = event | {"hook_event_name": "PostToolUse"} if end == "its own" else session.stopped()
    typed(folder)
    (folder / "src").chmod(0)
    try:
        before = cas_unprivileged("hook", session.client, folder=folder, stdin=json.dumps(event).encode())
        typed(folder)
        after = cas_unprivileged("hook", session.client, folder=folder, stdin=json.dumps(ended).encode())
    finally:
        (folder / "src").chmod(0o755)
    assert (before.status, after.status) == (0, 0)
    assert whose(folder) == [("a.txt", "external"), ("a.txt", session.name)]
    assert not list((folder / ".cas" / "agents").glob("open-*"))
    assert not (folder / ".cas" / "hook.log").exists()


@pytest.mark.parametrize("end", ["its own", "the turn's"])
@pytest.mark.parametrize("named", ["src/b.py", "src/new.py", "src"])
def test_a_patch_that_names_what_lies_on_a_mount_whose_server_has_gone_leaves_a_persons_line_theirs(
    folder: Path, named: str, end: str
) -> None:
    if not can_mount_unreachable(folder / "src"):
        pytest.skip("no file system can be mounted here")
    session = Codex(folder)
    patch = f"*** Begin Patch\n*** Update File: {named}\n*** Update File: a.txt\n*** End Patch\n"
    event = session.tool_event("apply_patch", {"command": patch}, before=True)
    ended = event | {"hook_event_name": "PostToolUse"} if end == "its own" else session.stopped()
    typed(folder)
    with unreachable_mount(folder / "src"):
        before = cas("hook", session.client, folder=folder, stdin=json.dumps(event).encode())
        typed(folder)
        after = cas("hook", session.client, folder=folder, stdin=json.dumps(ended).encode())
    assert (before.status, after.status) == (0, 0)
    assert whose(folder) == [("a.txt", "external"), ("a.txt", session.name)]
    assert not list((folder / ".cas" / "agents").glob("open-*"))
    assert not (folder / ".cas" / "hook.log").exists()


# ---- an end that is told twice, late, or that we could not hear


@contextmanager
def kept_waiting(folder: Path, event: dict[str, Any], held: str = "lock") -> Iterator["subprocess.Popen[bytes]"]:
    """Have Claude Code's hook wait, because somebody looks, once it has noted what it could; then it goes on.

    `held`: the lock that it waits for.
    """
    agents = folder / ".cas" / "agents"

    def noted() -> set[tuple[str, bytes]]:
        return {(path.name, path.read_bytes()) for kind in ("open-*", "over-*") for path in agents.glob(kind)}

    before = noted()
    with (
        subprocess.Popen(
            [*PROGRAM, "hook", "claude-code"], cwd=folder, env=environment({}), stdin=subprocess.PIPE
        ) as waiting,
        (agents / held).open("rb") as lock,
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


def unheard(folder: Path, event: dict[str, Any], held: str = "lock") -> None:
    """Tell of an event while somebody else looks, and kill its hook once it has noted what it could."""
    with kept_waiting(folder, event, held) as hook:
        hook.kill()


def cut_off(folder: Path, command: str) -> ClaudeCode:
    """Return a session whose shell has run a command, and whose end could not be heard out."""
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.shell_event(command, before=True))
    shell(command, folder=folder)
    unheard(folder, session.shell_event(command, before=False))
    return session


@pytest.mark.parametrize("tool", ["Bash", "Write"])
def test_what_changes_after_an_end_that_we_could_not_hear_is_nobodys(folder: Path, tool: str) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    began, ended = session.another_call(is_shell=tool == "Bash", content="x")
    session.tell(began)
    shell("echo 1 >> a.txt", folder=folder)
    unheard(folder, ended)
    typed(folder, "src/b.py")
    (folder / "c.txt").write_text("mine\n")
    session.calls += 1
    session.tell(session.tool_event("Read", {"file_path": str(folder / "a.txt")}, before=True))
    session.run("true")
    typed(folder)
    session.run("true")
    assert sorted(whose(folder)) == [
        ("a.txt", "external"),
        ("a.txt", session.name),
        ("c.txt", "external"),
        ("src/b.py", "external"),
    ]


def test_a_folder_that_a_person_renames_after_an_end_that_we_could_not_hear_is_theirs(folder: Path) -> None:
    (folder / "src" / "deep").mkdir()
    typed(folder, "src/deep/c.py")
    assert cas("record", folder=folder).status == 0
    session = cut_off(folder, "echo 1 >> a.txt")
    (folder / "src").rename(folder / "lib")
    session.ask("and on")
    assert sorted(whose(folder)[1:]) == [
        ("a.txt", session.name),
        ("lib/b.py", "external"),
        ("lib/deep/c.py", "external"),
    ]
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert (folder / "lib" / "b.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("tool", ["Bash", "Write"])
@pytest.mark.parametrize("inner", ["", "deep"], ids=["in it", "below"])
def test_what_a_person_takes_away_with_its_folder_after_an_end_that_we_could_not_hear_is_theirs(
    folder: Path, tool: str, inner: str
) -> None:
    for place in ("src", "old"):
        (folder / place / inner).mkdir(parents=True, exist_ok=True)
        typed(folder, f"{place}/{inner}/{place}.py")
    assert cas("record", folder=folder).status == 0
    already = len(whose(folder))
    path = str(Path("src", inner, "src.py"))
    session = ClaudeCode(folder)
    session.ask("go")
    began, ended = session.another_call(is_shell=tool == "Bash", command="mkdir new", path=path, content="x")
    session.tell(began)
    shell(f"mkdir -p new/{inner}; echo 1 > new/{inner}/z", folder=folder)
    unheard(folder, ended)
    shutil.rmtree(folder / "src")
    (folder / ("new" if tool == "Bash" else "old")).rename(folder / "src")
    session.stop()
    assert (path, "external") in whose(folder)[already:]
    assert session.name not in dict(whose(folder)[already:]).values()


def test_a_move_whose_end_we_could_not_hear_is_one_though_somebody_else_comes_where_it_left(folder: Path) -> None:
    session = cut_off(folder, "mv src/b.py b.py")
    (folder / "src" / "c.py").write_text("mine\n")
    session.ask("and on")
    assert sorted(whose(folder)) == [("b.py", session.name), ("src/c.py", "external")]
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert (folder / "src" / "b.py").read_text() == "x = 1\n"
    assert not (folder / "b.py").exists()


def test_what_makes_room_is_recorded_first_whoever_did_it(folder: Path) -> None:
    session = cut_off(folder, "rm a.txt; mkdir a.txt; echo 1 > a.txt/x")
    (folder / "c.txt").write_text("mine\n")
    session.ask("and on")
    assert whose(folder)[0] == ("a.txt", "external")
    assert sorted(whose(folder)[1:]) == [("a.txt/x", session.name), ("c.txt", "external")]


def test_what_changes_while_the_end_of_a_shell_waits_for_another_look_is_not_its_doing(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.shell_event("make", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    with kept_waiting(folder, session.shell_event("make", before=False)):
        typed(folder, "src/b.py")
    assert sorted(whose(folder)) == [("a.txt", session.name), ("src/b.py", "external")]


def test_what_a_formatter_makes_of_a_written_file_while_its_end_is_told_is_the_tools(folder: Path) -> None:
    """Claude Code runs all its hooks for one event at once, and one of them may be a formatter."""
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.write_event("a.txt", "1\n", before=True))
    (folder / "a.txt").write_text("1\n")
    with kept_waiting(folder, session.write_event("a.txt", "1\n", before=False)):
        (folder / "a.txt").write_text("1\n\n")
    assert whose(folder) == [("a.txt", session.name)]


@pytest.mark.parametrize("held", ["lock", "sessions"])
@pytest.mark.parametrize(
    "said",
    [
        {"hook_event_name": "Stop"},
        {"hook_event_name": "UserPromptSubmit", "prompt": "and on"},
        {"hook_event_name": "Notification", "notification_type": "idle_prompt"},
        {"hook_event_name": "SessionEnd"},
        {"hook_event_name": "SubagentStop", **WORKER},
    ],
    ids=lambda said: said["hook_event_name"],
)
def test_the_end_of_a_turn_that_we_could_not_hear_out_ends_what_ran_in_it(
    folder: Path, said: dict[str, Any], held: str
) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    of_worker = WORKER if "agent_id" in said else {}
    session.tell(session.shell_event("make", before=True) | of_worker)
    shell("echo 1 >> a.txt", folder=folder)
    unheard(folder, session.base("") | said, held)
    typed(folder, "src/b.py")
    session.ask("what now?")
    assert sorted(whose(folder)) == [("a.txt", session.name), ("src/b.py", "external")]


@pytest.mark.parametrize("name", ["Stop", "SessionEnd"])
def test_the_end_of_a_turn_for_which_the_disk_had_no_room_ends_what_ran_in_it(folder: Path, name: str) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.shell_event("make", before=True))
    told = cas_on_full_disk("hook", "claude-code", folder=folder, stdin=json.dumps(session.base(name)).encode())
    assert (told.status, told.out) == (0, b"")
    time.sleep(0.05)  # more than a tick of the file system's clock
    typed(folder)
    session.ask("what now?")
    assert whose(folder) == [("a.txt", "external")]


def test_a_call_that_was_denied_claims_nothing_though_we_could_not_hear_that_out(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    event = session.shell_event("make", before=True)
    session.tell(event)
    unheard(folder, event | {"hook_event_name": "PermissionDenied", "reason": "no"})
    typed(folder)
    session.run("true")
    session.stop()
    assert whose(folder) == [("a.txt", "external")]


def test_what_was_asked_about_and_ran_is_recorded_though_we_could_not_hear_its_end_out(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    event = session.shell_event("make", before=True)
    session.tell(event)
    session.tell(asked(event))
    shell("echo 1 >> a.txt", folder=folder)
    unheard(folder, session.shell_event("make", before=False))
    session.stop()
    assert whose(folder) == [("a.txt", session.name)]


def test_a_hook_that_is_interrupted_ends_well_and_what_it_should_have_told_is_found(folder: Path) -> None:
    """A terminal sends Ctrl-C to all that its client has started, unless that sees to it."""
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.shell_event("make", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    with kept_waiting(folder, session.shell_event("make", before=False)) as hook:
        hook.send_signal(signal.SIGINT)
        assert hook.wait(PATIENCE) == 0
    assert not (folder / ".cas" / "hook.log").exists()
    session.stop()
    assert whose(folder) == [("a.txt", session.name)]


@pytest.mark.parametrize("agent", [Gemini, ClaudeCode], ids=lambda agent: agent.__name__)
def test_what_a_killed_hook_left_of_an_end_ends_no_later_call(agent: type[Session], folder: Path) -> None:
    session = agent(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.shell_event("make", before=True))
    (begun,) = (folder / ".cas" / "agents").glob("open-*")
    session.tell(session.shell_event("make", before=False))
    (begun.parent / begun.name.replace("open-", "over-")).touch()  # the hook was killed between the two files
    session.ask("and on")
    time.sleep(0.05)  # more than a tick of the file system's clock
    session.tell(session.shell_event("make", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(session.shell_event("make", before=False))
    assert whose(folder) == [("a.txt", session.name)]


def test_a_prompt_is_remembered_though_its_turn_could_not_be_begun(folder: Path) -> None:
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


# ---- what comes into view while a tool runs


@pytest.mark.parametrize("is_lost", [False, True], ids=["", "looks lost"])
@pytest.mark.parametrize("path", [".env", "notes/deep/diary", "src/b.py"])
def test_what_comes_into_view_while_a_shell_runs_is_not_its_doing_where_it_changed_before(
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
    session.tell(asked(session.shell_event("make", before=True)))  # its file is written anew
    shell("rm .casignore; echo '*.log' > .casignore; echo 1 >> a.txt", folder=folder)
    if is_lost:
        shutil.rmtree(folder / ".cas" / "cache")
    session.tell(session.shell_event("make", before=False))
    found = [(".casignore", session.name), (path, "external"), ("a.txt", session.name)]
    assert sorted(whose(folder)[1:]) == sorted(found)
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert (folder / path).read_text() == "mine\n"


def test_what_lay_in_a_folder_that_a_shell_takes_the_tag_from_is_not_its_doing(folder: Path) -> None:
    cache = folder / "cache"
    (cache / "deep").mkdir(parents=True)
    (cache / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
    (cache / "deep" / "diary").write_text("mine\n")
    assert cas("record", folder=folder).status == 0
    time.sleep(0.05)  # more than a tick of the file system's clock
    session = ClaudeCode(folder)
    session.ask("go")
    session.run("rm cache/CACHEDIR.TAG; echo 1 > cache/deep/new")
    assert sorted(whose(folder)) == [("cache/deep/diary", "external"), ("cache/deep/new", session.name)]


@pytest.mark.parametrize("source", ["ignored", "outside", "known"])
def test_a_folder_that_a_shell_moves_is_its_doing_whenever_what_is_in_it_was_written(
    folder: Path, tmp_path: Path, source: str
) -> None:
    (folder / ".casignore").write_text("ignored\n")
    came_from = tmp_path / source if source == "outside" else folder / source
    (came_from / "deep").mkdir(parents=True)
    (came_from / "deep" / "c.py").write_text("c\n")
    assert cas("record", folder=folder).status == 0
    already = len(whose(folder))
    time.sleep(0.05)  # more than a tick of the file system's clock
    session = ClaudeCode(folder)
    session.ask("go")
    session.run(f"mv {came_from} new")
    assert whose(folder)[already:] == [("new/deep/c.py", session.name)]


@pytest.mark.parametrize(
    "command",
    [
        "rm -r src; mv old src",
        "mv src t; mv old src; mv t old; echo 1 >> old/b.py; echo 1 >> old/deep/c.py",
        "touch -r src stamp; rm -r src/b.py src/deep; touch -r stamp src; rm stamp",
    ],
    ids=["replaced", "swapped", "with its time put back"],
)
def test_what_a_shell_takes_away_is_its_doing_whatever_times_its_folder_has_then(folder: Path, command: str) -> None:
    for path in ("src/deep/c.py", "old/deep/d.py", "old/e.py"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        typed(folder, path)
    assert cas("record", folder=folder).status == 0
    already = len(whose(folder))
    before = {path: path.read_bytes() for path in files(folder)}
    time.sleep(0.05)  # more than a tick of the file system's clock
    session = ClaudeCode(folder)
    session.ask("go")
    session.run(command)
    assert {name for _, name in whose(folder)[already:]} == {session.name}
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert {path: path.read_bytes() for path in files(folder)} == before


# ---- what is told again


@pytest.mark.parametrize("agent", [ClaudeCode, Codex, Cursor, OpenCode, VSCode])
@pytest.mark.parametrize("is_shell", [False, True], ids=["write", "shell"])
def test_an_end_or_a_beginning_that_is_told_again_claims_nothing(
    agent: type[Session], folder: Path, *, is_shell: bool
) -> None:
    session = agent(folder)
    session.ask("go")
    began, ended = session.another_call(is_shell=is_shell)
    session.tell(began)
    (folder / "a.txt").write_text("1\n")
    session.tell(ended)
    typed(folder)
    session.tell(ended)
    session.tell(began)
    typed(folder)
    typed(folder, "src/b.py")
    session.run("true")
    session.stop()
    assert [name for _, name in whose(folder)] == [session.name, "external", "external", "external"]


@pytest.mark.parametrize("agent", [ClaudeCode, Codex, Cursor, OpenCode, VSCode])
@pytest.mark.parametrize("is_shell", [False, True], ids=["write", "shell"])
@pytest.mark.parametrize("is_over", [False, True], ids=["in the turn", "behind it"])
def test_a_beginning_that_is_told_behind_its_end_claims_nothing(
    agent: type[Session], folder: Path, *, is_shell: bool, is_over: bool
) -> None:
    session = agent(folder)
    session.ask("go")
    began, ended = session.another_call(is_shell=is_shell)
    session.tell(ended)
    if is_over:
        session.stop()
    session.tell(began)
    typed(folder)
    session.stop()
    session.ask("and on")
    assert whose(folder) == [("a.txt", "external")]


@pytest.mark.parametrize("is_shell", [False, True], ids=["write", "shell"])
def test_a_beginning_that_is_told_again_when_the_call_was_denied_claims_nothing(
    folder: Path, *, is_shell: bool
) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    began = session.shell_event("make", before=True) if is_shell else session.write_event("a.txt", "1\n", before=True)
    for event in (began, began | {"hook_event_name": "PermissionDenied"}, began):
        session.tell(event)
    typed(folder)
    session.stop()
    assert whose(folder) == [("a.txt", "external")]


def test_a_tool_of_opencodes_that_was_refused_and_then_failed_claims_nothing(folder: Path) -> None:
    session = OpenCode(folder)
    session.ask("go")
    session.calls += 1
    began = session.write_event("a.txt", "1\n", before=True)
    session.tell(began)
    for word in ("asked", "rejected"):
        session.tell(session.base(f"permission.{word}") | {"callID": session.call})
    typed(folder)
    session.tell(began | {"hook": "tool.execute.failed"})
    assert whose(folder) == [("a.txt", "external")]


@pytest.mark.parametrize("agent", [ClaudeCode, Codex, OpenCode])
@pytest.mark.parametrize("since", ["the turn's end", "the next prompt", "both", "a later prompt"])
@pytest.mark.parametrize("is_again", [False, True], ids=["late", "again"])
def test_an_end_that_comes_after_that_of_its_turn_claims_nothing(
    agent: type[Session], folder: Path, *, since: str, is_again: bool
) -> None:
    session = agent(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.write_event("a.txt", "1\n", before=True))
    (folder / "a.txt").write_text("1\n")
    ended = session.write_event("a.txt", "1\n", before=False)
    if is_again:
        session.tell(ended)
    if since in {"the turn's end", "both"}:
        session.stop()
    for _ in range({"the turn's end": 0, "a later prompt": 2}.get(since, 1)):
        session.ask("and on")
    typed(folder)
    session.tell(ended)
    assert whose(folder) == [("a.txt", session.name), ("a.txt", "external")]


@pytest.mark.parametrize("is_shell", [False, True], ids=["write", "shell"])
@pytest.mark.parametrize("is_killed", [False, True], ids=["ended", "killed"])
def test_a_call_that_was_put_off_and_begins_again_when_its_session_goes_on_is_its_agents(
    folder: Path, *, is_shell: bool, is_killed: bool
) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    began, ended = session.another_call(is_shell=is_shell)
    session.tell(began)  # another hook answers "defer"
    if not is_killed:
        session.tell(session.base("SessionEnd") | {"reason": "other"})
    typed(folder)
    session.tell(session.base("SessionStart") | {"source": "resume"})
    session.tell(began)
    (folder / "a.txt").write_text("1\n")
    session.tell(ended)
    assert whose(folder)[-1] == ("a.txt", session.name)


@pytest.mark.parametrize("other", ["in the next turn", "of another file"])
def test_a_call_that_has_the_name_of_another_is_a_call_of_its_own(folder: Path, other: str) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.write("a.txt", "1\n")
    session.calls -= 1
    if other == "in the next turn":
        session.ask("and on")
        session.write("a.txt", "2\n")
    else:
        session.write("src/b.py", "2\n")
    assert [name for _, name in whose(folder)] == [session.name] * 2


@pytest.mark.parametrize("has_other", [False, True], ids=["alone", "beside another's shell"])
def test_a_tool_that_names_a_folder_claims_nothing_in_it(folder: Path, *, has_other: bool) -> None:
    session, other = ClaudeCode(folder), ClaudeCode(folder, "session-2")
    session.ask("go")
    session.calls += 1
    event = session.write_event("src", "x", before=True)
    session.tell(event)
    if has_other:
        other.calls += 1
        other.tell(other.shell_event("make", before=True))
    typed(folder, "src/b.py")
    session.tell(event | {"hook_event_name": "PostToolUseFailure"})
    other.tell(other.shell_event("make", before=False))
    session.stop()
    assert whose(folder) == [("src/b.py", other.name if has_other else "external")]


def test_a_tool_whose_file_became_a_folder_took_the_file_away_and_claims_nothing_in_it(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    session.calls += 1
    session.tell(session.write_event("a.txt", "x", before=True))
    shell("rm a.txt; mkdir a.txt; echo mine > a.txt/mine", folder=folder)
    session.tell(session.write_event("a.txt", "x", before=False))
    assert whose(folder) == [("a.txt", session.name), ("a.txt/mine", "external")]


@pytest.mark.parametrize("looks", [False, True], ids=["at the end", "and before"])
def test_a_tool_that_names_a_folder_which_is_gone_then_took_all_away_that_was_in_it(
    folder: Path, *, looks: bool
) -> None:
    (folder / "src" / "deep").mkdir()
    typed(folder, "src/deep/c.py")
    assert cas("record", folder=folder).status == 0
    session, beside = Cursor(folder), ClaudeCode(folder, "session-2")
    session.ask("go")
    session.calls += 1
    session.tell(session.tool_event("Delete", {"path": str(folder / "src")}, before=True))
    shutil.rmtree(folder / "src")
    typed(folder)
    if looks:
        beside.run("true")
    session.tell(session.tool_event("Delete", {"path": str(folder / "src")}, before=False))
    session.stop()
    assert sorted(whose(folder)[1:]) == [
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
def test_what_a_person_took_away_before_a_tool_that_names_it_is_theirs(
    folder: Path, command: str, found: set[tuple[str, str]]
) -> None:
    (folder / "src" / "deep").mkdir()
    (folder / "src" / "deep" / "c.py").write_text("c\n")
    assert cas("record", folder=folder).status == 0
    already = len(whose(folder))
    shell(command, folder=folder)
    session = Cursor(folder)
    session.calls += 1
    event = session.tool_event("Delete", {"path": str(folder / "src")}, before=True)
    session.tell(event)
    failed = {"hook_event_name": "postToolUseFailure", "failure_type": "error", "error_message": "no such file"}
    session.tell(event | failed)
    with Workspace.open(folder) as workspace:
        views = workspace.history.edits(EditFilter())[already:]
    assert {(view.edit.operation.name, os.fsdecode(view.edit.path)) for view in views} == found
    assert {view.edit.conversation for view in views} == {"external"}
    assert [view.edit.operation.name for view in views][:1] != ["CREATE"]  # what makes room comes first
    session.stop()
    assert len(whose(folder)) == already + len(found)


@pytest.mark.parametrize("looks", [False, True], ids=["at the end", "and before"])
def test_a_file_with_two_names_is_changed_by_whoever_named_one_of_them(folder: Path, *, looks: bool) -> None:
    (folder / "src" / "other").hardlink_to(folder / "a.txt")
    assert cas("record", folder=folder).status == 0
    session, beside = ClaudeCode(folder), ClaudeCode(folder, "session-2")
    for each in (session, beside):
        each.ask("go")
        each.calls += 1
    beside.tell(beside.shell_event("make", before=True))
    session.tell(session.write_event("a.txt", "1\n", before=True))
    (folder / "a.txt").write_text("1\n")
    if looks:
        beside.run("true")
    session.tell(session.write_event("a.txt", "1\n", before=False))
    beside.tell(beside.shell_event("make", before=False))
    beside.stop()
    assert whose(folder)[1:] == [("a.txt", session.name), ("src/other", session.name)]
    assert cas("reject", "--conversation", session.name, folder=folder).status == 0
    assert (folder / "src" / "other").read_text() == (folder / "a.txt").read_text() == "one\ntwo\nthree\n"
