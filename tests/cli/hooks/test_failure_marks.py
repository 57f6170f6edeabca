"""Hooks that fail leave a mark, with Python or without it; what changed meanwhile is nobody's for certain."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from objstore import (
    FAILED,
    forget_hook_failures,
    hook_failures,
    note_hook_failure,
    note_noticed,
    unnoticed_failures,
)
from tests.support.command_runner import CommandRunner, environment
from tests.support.hooked_agents import ClaudeCode, recorded_project


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
        assert len(unnoticed_failures(str(folder), "said")) == 1, count
        note_noticed(str(folder), "said")


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
