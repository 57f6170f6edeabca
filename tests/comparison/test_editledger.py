"""The stories of docs/comparison.md with editledger: the real command, and hooks as Claude Code and Codex call them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.comparison.conftest import BASE, changed
from tests.support.command_runner import PROGRAM, CommandResult, cas, environment
from tests.support.git_repository import git
from tests.support.hooked_agents import ClaudeCode, Codex, Session
from tests.support.scene import observe_tree

CELLS: Final = {
    "one_prompt": "yes: `cas reject --turn 1`",
    "one_hunk": "yes: `cas reject 1:2`, or one key in `cas review`",
    "shell_command": "yes: `cas reject --turn 1`",
    "two_sessions": "yes, in one file too: `cas reject --session 1`; what two shells changed at once, you claim first",
    "person_types": "yes: your lines are recorded as yours first (`--my-changes keep`; at a terminal, it asks)",
    "kinds_of_files": "yes; a file that git ignores only if a tool names it, or with `record.ignored`",
    "branch_and_back": "yes; to switch branches you use git, with the stash where git asks for it",
    "killed": "all files or none, once any `cas` command has run again",
    "next_day": "yes: what is pending, accepted and rejected is recorded",
    "reason": "yes: `cas reject -m`; the agent reads it with the next prompt, once",
    "formatter": "yes: it belongs to the edit before it",
    "part_of_a_commit": "yes, with git: edits that are in the commit as a whole become accepted, others stay pending",
    "same_lines_later": "refused, nothing changes; both edits and the command to go on are named",
    "conversation_too": "files only; the agent reads what was taken out",
}


@pytest.fixture
def agent(project: Path) -> ClaudeCode:
    """Return a session of Claude Code in the project, with its hooks set up."""
    done(project, "init")
    session = ClaudeCode(project)
    session.start()
    return session


def done(folder: Path, *words: str) -> CommandResult:
    """Run `cas`, which must do what it was asked."""
    ran = cas(*words, folder=folder)
    assert (ran.status, ran.err) == (0, b""), ran
    return ran


def turn(session: Session, prompt: str, text: str) -> None:
    """Let an agent write app.txt for a prompt."""
    session.ask(prompt)
    session.write("app.txt", text)
    session.stop()


def statuses(folder: Path) -> dict[int, str]:
    return {edit["seq"]: edit["status"] for edit in cas("log", "--json", folder=folder).lines()}


def test_one_prompt(agent: ClaudeCode, project: Path) -> None:
    first = changed(BASE, line_3="three")
    turn(agent, "Spell three", first)
    turn(agent, "Spell ten", changed(first, line_10="ten\nand more"))
    done(project, "reject", "--turn", "1")
    assert (project / "app.txt").read_text() == changed(BASE, line_10="ten\nand more")


def test_one_hunk(agent: ClaudeCode, project: Path) -> None:
    first = changed(BASE, line_3="three", line_15="fifteen")
    turn(agent, "Spell numbers", first)
    turn(agent, "Spell ten", changed(first, line_10="ten\nand more"))
    done(project, "reject", "1:2")
    assert (project / "app.txt").read_text() == changed(BASE, line_3="three", line_10="ten\nand more")


def test_shell_command(agent: ClaudeCode, project: Path) -> None:
    before = observe_tree(project)
    agent.ask("Spell three, by a command")
    agent.run("sed -i 's/^line 3$/three/' app.txt; echo new > new.txt; rm notes.txt")
    agent.stop()
    done(project, "reject", "--turn", "1")
    assert contents(project) == {path: seen.content for path, seen in before.items() if is_work(path)}


def test_two_sessions(agent: ClaudeCode, project: Path) -> None:
    other = Codex(project, "other")
    other.start()
    agent.ask("Spell odd lines")
    other.ask("Spell even lines")
    agent.write("app.txt", changed(BASE, line_3="three"))
    other.run("sed -i 's/^line 8$/eight/' app.txt")
    agent.write("app.txt", (project / "app.txt").read_text().replace("line 13\n", "thirteen\n"))
    other.run("sed -i 's/^line 18$/eighteen/' app.txt")
    before, after = agent.another_call(is_shell=True)
    other_before, other_after = other.another_call(is_shell=True)
    agent.tell(before)
    other.tell(other_before)
    (project / "notes.txt").write_text("by one of two shells\n")
    agent.tell(after)
    other.tell(other_after)
    agent.stop()
    other.stop()
    done(project, "reject", "--session", "1")
    assert (project / "app.txt").read_text() == changed(BASE, line_8="eight", line_18="eighteen")
    assert (project / "notes.txt").read_text() == "by one of two shells\n"
    done(project, "claim", "5", "--session", "1")
    done(project, "reject", "--session", "1")
    assert (project / "notes.txt").read_text() == "notes\n"


def test_person_types(agent: ClaudeCode, project: Path) -> None:
    first = changed(BASE, line_3="three")
    turn(agent, "Spell three", first)
    (project / "app.txt").write_text(changed(first, line_10="mine"))
    done(project, "reject", "1", "--my-changes", "keep")
    assert (project / "app.txt").read_text() == changed(BASE, line_10="mine")


def test_kinds_of_files(agent: ClaudeCode, project: Path) -> None:
    (project / "build").mkdir()
    (project / "build/named").write_text("1\n")
    (project / "build/unnamed").write_text("1\n")
    before = {path: (seen.content, seen.mode) for path, seen in observe_tree(project).items() if is_work(path)}
    agent.ask("Change everything")
    agent.run("printf '\\0\\3' > logo.bin; chmod 700 run.sh; mv notes.txt moved.txt; echo u > untracked.txt")
    agent.write("build/named", "2\n")
    agent.run("echo 2 > build/unnamed")
    agent.stop()
    done(project, "reject", "--turn", "1")
    after = {path: (seen.content, seen.mode) for path, seen in observe_tree(project).items() if is_work(path)}
    assert after.pop("build/unnamed")[0] == b"2\n"
    del before["build/unnamed"]
    assert after == before


def test_branch_and_back(agent: ClaudeCode, project: Path) -> None:
    other_branch(project)
    turn(agent, "Spell three", changed(BASE, line_3="three"))
    git(project, "stash", "-q")
    git(project, "checkout", "-q", "other")
    done(project, "status")
    git(project, "checkout", "-q", "main")
    git(project, "stash", "pop", "-q")
    done(project, "reject", "1")
    assert (project / "app.txt").read_text() == BASE


def test_killed(agent: ClaudeCode, project: Path) -> None:
    agent.ask("Write many files")
    agent.run("for n in $(seq 200); do echo $n > many-$n.txt; done")
    agent.stop()
    process = subprocess.Popen(
        [*PROGRAM, "reject", "--turn", "1"], cwd=project, env=environment({}), start_new_session=True
    )
    while process.poll() is None and len(list(project.glob("many-*.txt"))) == 200:
        time.sleep(0.0005)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done(project, "status")
    assert len(list(project.glob("many-*.txt"))) == (0 if set(statuses(project).values()) == {"rejected"} else 200)
    done(project, "fsck")


def test_next_day(agent: ClaudeCode, project: Path) -> None:
    first = changed(BASE, line_3="three")
    turn(agent, "Spell three", first)
    turn(agent, "Spell ten", changed(first, line_10="ten"))
    done(project, "accept", "1")
    ran = subprocess.run(
        [*PROGRAM, "log", "--turns"], cwd=project, env=environment({}), capture_output=True, text=True, check=True
    )
    assert [row.split()[3] for row in ran.stdout.splitlines()] == ["pending", "accepted"]


def test_reason(agent: ClaudeCode, project: Path) -> None:
    turn(agent, "Spell three", changed(BASE, line_3="three"))
    done(project, "reject", "1", "-m", "Numbers stay digits.")
    assert "Numbers stay digits." in agent.ask("Go on")
    assert "Numbers stay digits." not in agent.ask("And on")


def test_formatter(agent: ClaudeCode, project: Path) -> None:
    (project / "app.py").write_text("x = 1\n")
    done(project, "record")
    agent.ask("Add a list")
    agent.write("app.py", "x = 1\ny = [1,\n  2]\n")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--isolated", "-q", "app.py"], cwd=project, check=True)
    assert (project / "app.py").read_text() == "x = 1\ny = [1, 2]\n"
    agent.stop()
    written = cas("log", "--turn", "1", "--reverse", "--json", folder=project).lines()[0]["seq"]
    done(project, "reject", str(written))
    assert (project / "app.py").read_text() == "x = 1\n"


def test_part_of_a_commit(agent: ClaudeCode, project: Path) -> None:
    agent.ask("Change two files")
    agent.write("app.txt", changed(BASE, line_3="three"))
    agent.write("notes.txt", "more notes\n")
    agent.write("run.sh", "echo one\necho run\necho two\n")
    agent.stop()
    git(project, "add", "app.txt")
    add = ["git", "add", "-p", "run.sh"]
    subprocess.run(add, cwd=project, input="s\ny\nn\n", text=True, check=True, capture_output=True)
    git(project, "commit", "-q", "-m", "part")
    assert git(project, "show", "HEAD:run.sh") == "echo one\necho run\n"
    done(project, "status")
    assert statuses(project) == {1: "accepted", 2: "pending", 3: "pending"}


def test_same_lines_later(agent: ClaudeCode, project: Path) -> None:
    turn(agent, "Spell three", changed(BASE, line_3="three"))
    turn(agent, "In capitals", changed(BASE, line_3="THREE"))
    ran = cas("reject", "1", folder=project)
    assert ran.status == 1
    assert "refused, nothing was changed" in ran.said
    assert "cas reject --cascade 1" in ran.said
    assert "edit 2" in ran.said
    assert (project / "app.txt").read_text() == changed(BASE, line_3="THREE")


def test_conversation_too(agent: ClaudeCode, project: Path) -> None:
    turn(agent, "Spell three", changed(BASE, line_3="three"))
    done(project, "rewind", "1", "--yes")
    assert (project / "app.txt").read_text() == BASE
    assert "app.txt" in agent.ask("Go on")


def other_branch(project: Path) -> None:
    """Make a branch where app.txt has another text."""
    git(project, "checkout", "-q", "-b", "other")
    (project / "app.txt").write_text("another text\n")
    git(project, "commit", "-q", "-a", "-m", "other")
    git(project, "checkout", "-q", "main")


def is_work(path: str) -> bool:
    """Return whether a path is a file of the project's own."""
    return not path.startswith((".git/", ".cas/")) and path not in {".git", ".cas"}


def contents(project: Path) -> dict[str, bytes]:
    return {path: seen.content for path, seen in observe_tree(project).items() if is_work(path)}
