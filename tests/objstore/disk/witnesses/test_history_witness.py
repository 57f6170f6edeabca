"""A history that is gone, as a whole or in part, is said by status, doctor and the next stop, once."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command_runner import CommandRunner, cas
from tests.support.hooked_agents import ClaudeCode, Codex, Gemini, recorded_project


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def runner(tmp_path: Path, state: Path) -> CommandRunner:
    """Return a workspace with three edits."""
    assert not state.exists()
    folder = tmp_path / "ws"
    folder.mkdir()
    runner = CommandRunner(folder)
    for number in range(3):
        runner.write("a.txt", b"%d\n" % number)
    return runner


def test_folder_whose_store_is_gone_says_how_much_was_there(runner: CommandRunner) -> None:
    shutil.rmtree(runner.folder / ".cas")
    (runner.folder / "below").mkdir()
    for place in (runner.folder, runner.folder / "below"):
        ran = cas("status", folder=place)
        assert ran.status == 10
        assert f"In {runner.folder}, a history of 3 edits was here until " in ran.said
        assert ran.said.endswith(", and is gone.\n")


@pytest.mark.parametrize("begins", ["start", "prompt", "stop"])
@pytest.mark.parametrize("agent_of", [ClaudeCode, Codex, Gemini])
def test_git_clean_is_said_by_the_first_hook_of_a_session_once(
    runner: CommandRunner, agent_of: type[ClaudeCode | Codex | Gemini], begins: str
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=runner.folder, check=True)
    subprocess.run(["git", "clean", "-qfdx"], cwd=runner.folder, check=True)
    assert not (runner.folder / ".cas").exists()
    agent = agent_of(runner.folder)
    first = agent.started() if begins == "start" else agent.prompted("go on") if begins == "prompt" else agent.stopped()
    assert f"in {runner.folder}, a history of 3 edits was here until" in agent.answer(first)["systemMessage"]
    for event in (agent.started(), agent.prompted("go on"), agent.stopped()):
        assert agent.answer(event) == {}


def test_new_store_in_place_of_one_that_is_gone_says_so_until_a_person_knows(runner: CommandRunner) -> None:
    shutil.rmtree(runner.folder / ".cas")
    runner.done("init")
    for number in range(2):  # before and after more is recorded
        assert "a history of 3 edits was here until" in runner.done("status").text
        assert runner.done("status", "--json").json()["lost_histories"][0]["missing"] == 3
        found = {one["check"]: one for one in runner.cas("doctor", "--json").lines()}
        assert not found["the history is there"]["ok"]
        runner.write("b.txt", b"%d\n" % number)
    agent = ClaudeCode(runner.folder)
    assert "a history of 3 edits was here" in agent.answer(agent.prompted("go on"))["systemMessage"]
    assert "history" not in agent.stop()
    runner.cas("doctor", "--forget")
    assert "history" not in runner.done("status").text


def test_store_of_yesterday_says_how_many_edits_are_missing(runner: CommandRunner, tmp_path: Path) -> None:
    shutil.copytree(runner.folder / ".cas", tmp_path / "yesterday")
    for number in range(2):
        runner.write("a.txt", b"later %d\n" % number)
    shutil.rmtree(runner.folder / ".cas")
    shutil.copytree(tmp_path / "yesterday", runner.folder / ".cas")
    agent = ClaudeCode(runner.folder)
    assert ", and 2 of them are gone" in agent.answer(agent.started())["systemMessage"]
    for _ in range(2):
        assert ", and 2 of them are gone (see `cas doctor`)" in runner.done("status").text
        assert ", and 2 of them are gone; `cas doctor --forget` if you know why" in runner.cas("doctor").text


def test_loss_and_rejection_reach_the_person_and_the_agent_by_one_answer(runner: CommandRunner, tmp_path: Path) -> None:
    agent = ClaudeCode(runner.folder)
    agent.ask("go on")
    agent.run("echo agent > new.txt")
    runner.done("reject", "4", "-m", "not asked for")
    shutil.copytree(runner.folder / ".cas", tmp_path / "yesterday")
    runner.write("a.txt", b"later\n")
    shutil.rmtree(runner.folder / ".cas")
    shutil.copytree(tmp_path / "yesterday", runner.folder / ".cas")
    answer = agent.answer(agent.prompted("and on"))
    assert "and 1 of them is gone" in answer["systemMessage"]
    assert "not asked for" in agent.context_in(answer)


def test_store_of_yesterday_that_went_on_differently_is_said_however_much_it_has_now(
    runner: CommandRunner, tmp_path: Path
) -> None:
    shutil.copytree(runner.folder / ".cas", tmp_path / "yesterday")
    runner.write("a.txt", b"later\n")
    shutil.rmtree(runner.folder / ".cas")
    shutil.copytree(tmp_path / "yesterday", runner.folder / ".cas")
    for number in range(3):
        runner.write("b.txt", b"%d\n" % number)
    assert "a history of 4 edits was here until" in runner.done("status").text
    assert "some of it is gone" in runner.done("status").text
    runner.cas("doctor", "--forget")
    assert "history" not in runner.done("status").text
    runner.write("b.txt", b"more\n")
    assert "history" not in runner.done("status").text


def test_what_hooks_alone_record_is_witnessed(tmp_path: Path, state: Path) -> None:
    folder = recorded_project(tmp_path / "ws", "a.txt")
    agent = ClaudeCode(folder)
    for number in range(3):
        agent.ask("go on")
        agent.run(f"echo {number} >> a.txt")
        agent.stop()
    assert (state / "editledger" / "workspaces").exists()
    shutil.rmtree(folder / ".cas")
    assert "a history of 3 edits was here until " in cas("status", folder=folder).said


@pytest.mark.parametrize("command", [("purge", "a.txt", "--yes", "--force"), ("gc", "--older-than", "0s"), ("fsck",)])
def test_what_a_person_removes_is_no_loss(runner: CommandRunner, command: tuple[str, ...]) -> None:
    runner.done("accept", "--all")
    runner.done(*command)
    assert "was here until" not in runner.done("status").text
    runner.write("a.txt", b"more\n")
    assert "was here until" not in runner.done("status").text


def test_workspace_that_moved_has_lost_nothing(runner: CommandRunner, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    runner.folder.rename(moved)
    assert "history" not in cas("status", folder=moved).text
    runner.folder.mkdir()
    ran = cas("status", folder=runner.folder)
    assert (ran.status, "history" in ran.said) == (10, False)
    assert cas("init", folder=runner.folder).status == 0
    assert "history" not in runner.done("status").text


def test_workspace_without_edits_leaves_no_loss(tmp_path: Path, state: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    assert cas("init", folder=folder).status == 0
    shutil.rmtree(folder / ".cas")
    assert "history" not in cas("status", folder=folder).said
    assert not (state / "editledger" / "workspaces").exists()


@pytest.mark.parametrize("content", [b"", b"\0" * 9, b"/x\0aa\0x\0y\0z", b"\xff" * 99, json.dumps([1]).encode()])
def test_damaged_witness_is_no_crash(content: bytes, runner: CommandRunner, state: Path) -> None:
    (witness,) = (state / "editledger" / "workspaces").iterdir()
    witness.write_bytes(content)
    assert "history" not in runner.done("status").text
    runner.write("a.txt", b"more\n")
    assert "history" not in runner.done("status").text


def test_state_folder_that_can_t_be_written_changes_nothing(runner: CommandRunner, state: Path) -> None:
    shutil.rmtree(state)
    state.write_text("a file")
    runner.write("a.txt", b"more\n")
    assert "history" not in runner.done("status").text
