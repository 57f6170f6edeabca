"""A branch switched and back: the commands show git's doing as events, and the edits of then as they were."""

import json
import os
from pathlib import Path

import pytest

from tests.support.command_runner import CommandRunner, cas
from tests.support.git_repository import git, new_repository

FILES = 40


def write_by_agent(runner: CommandRunner, name: str, text: str) -> None:
    """Let Claude Code write a file, with its hooks before and after."""
    path = runner.folder / name
    tool = {"tool_name": "Write", "tool_use_id": os.urandom(4).hex(), "tool_input": {"file_path": str(path)}}
    event = {"session_id": "s", "cwd": str(runner.folder), **tool}
    for moment in ("PreToolUse", "PostToolUse"):
        given = json.dumps({**event, "hook_event_name": moment}).encode()
        assert cas("hook", "claude-code", folder=runner.folder, stdin=given).status == 0
        path.write_text(text)


@pytest.fixture
def repository(runner: CommandRunner) -> CommandRunner:
    """Return a workspace in a repository whose branch `feature` differs in 40 files."""
    folder = new_repository(runner.folder)
    (folder / ".gitignore").write_text(".cas/\n")
    for number in range(FILES):
        (folder / f"{number}.txt").write_text(f"one\ntwo of {number}\nthree\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    git(folder, "checkout", "-q", "-b", "feature")
    for number in range(FILES):
        (folder / f"{number}.txt").write_text(f"one\ntwo of {number}\nthree\nfour on feature\n")
    git(folder, "commit", "-q", "-am", "feature")
    git(folder, "checkout", "-q", "main")
    runner.done("record")
    return runner


def shown(runner: CommandRunner) -> tuple[str, str, str]:
    """Return status without the size of the store, blame and the pending edits."""
    status = runner.done("status").text.partition("store: ")[0]
    return status, runner.done("blame", "7.txt").text, runner.done("log", "--status", "pending").text


def test_after_a_branch_and_back_all_is_as_before_and_the_log_has_two_lines_more(repository: CommandRunner) -> None:
    write_by_agent(repository, "7.txt", "one\nTWO\nthree\n")
    git(repository.folder, "-c", "core.hooksPath=/dev/null", "commit", "-q", "-am", "kept back", "--no-verify")
    repository.done("status")
    assert repository.done("undo").text  # the commit accepted the edit
    before, log = shown(repository), repository.done("log").text.splitlines()
    git(repository.folder, "checkout", "-q", "feature")
    away = repository.done("status").text
    assert "1 away" in away
    assert "away" in repository.done("log").text
    git(repository.folder, "checkout", "-q", "main")
    assert shown(repository) == before
    lines = repository.done("log").text.splitlines()
    assert [line.partition("git: ")[2] for line in lines[:2]] == [
        f"feature → main, {FILES} files",
        f"main → feature, {FILES} files",
    ]
    assert lines[2:] == log
    repository.done("reject", "1")
    assert (repository.folder / "7.txt").read_text() == "one\ntwo of 7\nthree\n"
    assert repository.done("fsck").status == 0


def test_undo_takes_back_what_a_commit_accepted_if_that_is_the_newest_thing_done(repository: CommandRunner) -> None:
    write_by_agent(repository, "7.txt", "one\nTWO\nthree\n")
    write_by_agent(repository, "8.txt", "new\n")
    write_by_agent(repository, "9.txt", "new\n")
    repository.done("accept", "3")
    git(repository.folder, "commit", "-q", "-m", "both", "7.txt", "8.txt")
    commit = git(repository.folder, "rev-parse", "HEAD").strip()[:7]
    planned = repository.done("undo", "--dry-run").text
    assert f"Would undo the acceptance by commit {commit} of edits 1 2.\n" in planned
    assert repository.done("undo").text == f"Undid the acceptance by commit {commit} of edits 1 2.\nNo file changed.\n"
    assert [edit["seq"] for edit in repository.done("log", "--status", "pending", "--json").lines()] == [2, 1]
    assert repository.done("redo").text == f"Redid the acceptance by commit {commit} of edits 1 2.\nNo file changed.\n"
    repository.done("reject", "1")
    assert repository.done("undo").text.startswith("Undid the rejection of edit 1.")
    assert repository.done("undo").text.startswith(f"Undid the acceptance by commit {commit} of edits 1 2.")
    assert repository.done("undo").text.startswith("Undid the acceptance of edit 3.")


def test_an_edit_that_is_away_is_not_decided_on(repository: CommandRunner) -> None:
    write_by_agent(repository, "7.txt", "one\nTWO\nthree\n")
    git(repository.folder, "stash", "-q")
    ran = repository.cas("reject", "1")
    assert ran.status == 1
    assert "away" in ran.said
    git(repository.folder, "stash", "pop", "-q")
    repository.done("reject", "1")


def test_a_commit_is_shown_with_the_edits_that_it_accepted(repository: CommandRunner) -> None:
    write_by_agent(repository, "7.txt", "one\nTWO\nthree\n")
    write_by_agent(repository, "8.txt", "new\n")
    git(repository.folder, "commit", "-q", "-m", "seven", "7.txt")
    commit = git(repository.folder, "rev-parse", "HEAD").strip()
    assert f"committed in {commit[:7]}" in repository.done("log").text
    for name in (commit[:8], "HEAD", "main"):
        edits = repository.done("log", "--commit", name, "--json").lines()
        assert [edit["seq"] for edit in edits] == [1]
    assert commit[:7] in repository.done("blame", "7.txt").text
    missing = repository.cas("log", "--commit", "HEAD~1")
    assert (missing.status, missing.said) == (1, "cas: No commit is named 'HEAD~1' here.\n")
    assert repository.cas("log", "--commit", "--output=x").status != 0
    assert not Path("x").exists()


def test_a_status_says_what_a_commit_accepted_until_it_is_taken_back(repository: CommandRunner) -> None:
    write_by_agent(repository, "7.txt", "one\nTWO\nthree\n")
    assert "commit " not in repository.done("status").text
    git(repository.folder, "commit", "-q", "-m", "seven", "7.txt")
    commit = git(repository.folder, "rev-parse", "HEAD").strip()
    said = f"commit {commit[:7]} accepted edit 1 (`cas undo` takes that back)"
    assert repository.done("record").text == f"{said}\n"
    assert repository.done("record").text == "Nothing changed.\n"
    assert said in repository.done("status").text
    assert repository.done("status", "--json").json()["committed"] == {"commit": commit, "edits": [1]}
    repository.done("undo")
    assert commit[:7] not in repository.done("status").text


def test_a_commit_accepts_nothing_of_files_that_review_always_names(repository: CommandRunner) -> None:
    repository.done("config", "set", "review.always", "7.txt")
    write_by_agent(repository, "7.txt", "one\nTWO\nthree\n")
    write_by_agent(repository, "8.txt", "one\nTWO\nthree\n")
    git(repository.folder, "commit", "-q", "-m", "both", "7.txt", "8.txt")
    assert [edit["status"] for edit in repository.done("log", "--json").lines()] == ["accepted", "pending"]


def test_a_restored_file_is_one_line_of_the_log_and_its_edits_are_away_until_it_is_back(
    repository: CommandRunner,
) -> None:
    write_by_agent(repository, "7.txt", "one\nTWO\nthree\n")
    git(repository.folder, "restore", "7.txt")
    assert repository.done("record").text.endswith("git: restore, 1 file\n")
    assert repository.done("record").text == "Nothing changed.\n"
    assert "0 pending, 0 accepted, 0 rejected, 1 away" in repository.done("status").text
    assert "git: restore, 1 file\n" in repository.done("log").text
    assert repository.cas("diff").said == "Nothing is pending.\n"
    assert "1:1 is away: its change is not there now. When it is there again" in repository.cas("accept", "1").said
    (repository.folder / "7.txt").write_text("one\nTWO\nthree\n")
    assert "1 pending" in repository.done("status").text
    assert "  earlier text returned, 1 file\n" in repository.done("log").text
    repository.done("reject", "1")
    assert (repository.folder / "7.txt").read_text() == "one\ntwo of 7\nthree\n"


def test_an_undo_of_a_decision_on_what_is_away_names_an_earlier_one(repository: CommandRunner) -> None:
    write_by_agent(repository, "8.txt", "new\n")
    write_by_agent(repository, "7.txt", "one\nTWO\nthree\n")
    repository.done("reject", "1")
    repository.done("accept", "2")
    git(repository.folder, "restore", "7.txt")
    ran = repository.cas("undo")
    assert ran.status == 1
    assert ran.said.endswith("To undo the decision on edit 1 instead:  cas undo --decision 1\n")
    repository.done("undo", "--decision", "1")
    assert (repository.folder / "8.txt").read_text() == "new\n"


def test_an_agents_commit_is_named_until_it_is_reviewed(repository: CommandRunner) -> None:
    path = repository.folder / "7.txt"
    tool = {"tool_name": "Bash", "tool_use_id": "1", "tool_input": {"command": "make"}}
    event = {"session_id": "s", "cwd": str(repository.folder), **tool}
    for moment in ("PreToolUse", "PostToolUse"):
        given = json.dumps({**event, "hook_event_name": moment}).encode()
        assert cas("hook", "claude-code", folder=repository.folder, stdin=given).status == 0
        if moment == "PreToolUse":
            path.write_text("one\nTWO\nthree\n")
            git(repository.folder, "commit", "-q", "-am", "work")
    commit = git(repository.folder, "rev-parse", "HEAD").strip()
    assert f"committed by an agent, not reviewed:\n  {commit[:7]}  edit 1\n" in repository.done("status").text
    assert f"git: commit {commit[:7]} by an agent, not reviewed\n" in repository.done("log").text
    assert repository.done("status", "--json").json()["commits"] == [
        {"commit": commit, "conversation_id": "s", "edits": [1]}
    ]
    repository.done("accept", "1")
    assert "not reviewed" not in repository.done("status").text + repository.done("log").text
