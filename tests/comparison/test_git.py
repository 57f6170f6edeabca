"""The stories of docs/comparison.md with git alone, where a person makes a stash after each prompt."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

import pytest

from tests.comparison.conftest import BASE, changed
from tests.support.git_repository import git

CELLS: Final = {
    "one_prompt": "by hand: reverse-apply the difference of two stashes",
    "one_hunk": "by hand: `git restore -p`, in the difference of all prompts together",
    "shell_command": "yes",
    "two_sessions": "no: both are in one difference; hunks can be picked by hand",
    "person_types": "by hand: `git restore -p`; you tell your hunks from the agent's",
    "kinds_of_files": "yes, with `--all`; of modes only the executable bit",
    "branch_and_back": "yes: this is what the stash is for",
    "killed": "some files may be back and others not; `.git/index.lock` may have to be removed",
    "next_day": "the stashes, yes; what was reviewed isn't noted",
    "formatter": "yes, with everything else in the file",
    "part_of_a_commit": "yes: `git add -p`",
    "same_lines_later": "`git apply -R` refuses, nothing changes; the patch and the line are named",
}


def snapshot(folder: Path) -> None:
    """Keep the files as they are in a stash, and go on with them."""
    git(folder, "stash", "push", "-q", "--include-untracked")
    git(folder, "stash", "apply", "-q")


def pick(folder: Path, answers: str) -> None:
    """Restore the hunks of app.txt for which the answer is y."""
    command = ["git", "restore", "-p", "app.txt"]
    subprocess.run(command, cwd=folder, input="\n".join(answers) + "\n", text=True, check=True, capture_output=True)


def reverse_first_prompt(folder: Path) -> subprocess.CompletedProcess[str]:
    """Take out what came before the older of two stashes."""
    patch = git(folder, "diff", "HEAD", "stash@{1}")
    return subprocess.run(["git", "apply", "-R"], cwd=folder, input=patch, text=True, check=False, capture_output=True)


def test_one_prompt(project: Path) -> None:
    first = changed(BASE, line_3="three")
    (project / "app.txt").write_text(first)
    snapshot(project)
    (project / "app.txt").write_text(changed(first, line_10="ten\nand more"))
    snapshot(project)
    assert reverse_first_prompt(project).returncode == 0
    assert (project / "app.txt").read_text() == changed(BASE, line_10="ten\nand more")


def test_one_hunk(project: Path) -> None:
    first = changed(BASE, line_3="three", line_18="eighteen")
    (project / "app.txt").write_text(changed(first, line_10="ten\nand more"))
    pick(project, "ny")  # lines 3 and 10 are one hunk of git's
    assert (project / "app.txt").read_text() == changed(BASE, line_3="three", line_10="ten\nand more")


def test_shell_command(project: Path) -> None:
    command = "sed -i 's/^line 3$/three/' app.txt; echo new > new.txt; rm notes.txt"
    subprocess.run(command, shell=True, cwd=project, check=True)  # noqa: S602 -- the story is a shell's
    git(project, "stash", "push", "-q", "--include-untracked")
    assert (project / "app.txt").read_text() == BASE
    assert (project / "notes.txt").read_text() == "notes\n"
    assert not (project / "new.txt").exists()


def test_two_sessions(project: Path) -> None:
    (project / "app.txt").write_text(changed(BASE, line_3="three"))
    (project / "app.txt").write_text(changed(BASE, line_3="three", line_13="thirteen"))
    git(project, "stash", "push", "-q")
    assert (project / "app.txt").read_text() == BASE


def test_person_types(project: Path) -> None:
    (project / "app.txt").write_text(changed(BASE, line_3="three", line_13="mine"))
    pick(project, "yn")
    assert (project / "app.txt").read_text() == changed(BASE, line_13="mine")


def test_kinds_of_files(project: Path) -> None:
    (project / "build").mkdir()
    (project / "logo.bin").write_bytes(b"\0\3")
    (project / "run.sh").chmod(0o755)
    (project / "app.txt").chmod(0o600)
    (project / "notes.txt").rename(project / "moved.txt")
    (project / "untracked.txt").write_text("u\n")
    (project / "build" / "out").write_text("1\n")
    git(project, "stash", "push", "-q", "--all")
    assert {path.name for path in project.iterdir()} == {
        *(".git", ".gitignore"),
        *("app.txt", "logo.bin", "notes.txt", "run.sh"),
    }
    assert (project / "logo.bin").read_bytes() == b"\0\1\2"
    assert (project / "run.sh").stat().st_mode & 0o111 == 0
    assert (project / "app.txt").stat().st_mode & 0o777 == 0o600


def test_branch_and_back(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "other")
    (project / "app.txt").write_text("another text\n")
    git(project, "commit", "-q", "-a", "-m", "other")
    git(project, "checkout", "-q", "main")
    (project / "app.txt").write_text(changed(BASE, line_3="three"))
    git(project, "stash", "-q")
    git(project, "checkout", "-q", "other")
    git(project, "checkout", "-q", "main")
    git(project, "stash", "pop", "-q")
    pick(project, "y")
    assert (project / "app.txt").read_text() == BASE


def test_killed(project: Path, tmp_path: Path) -> None:
    # A filter that waits at one file gives the time to kill git there.
    reached, names = tmp_path / "reached", [f"many-{letter}.txt" for letter in "abcdefgh"]
    (project / ".gitattributes").write_text("many-e.txt filter=waiting\n")
    for name in names:
        (project / name).write_text("before\n")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "many")
    git(project, "config", "filter.waiting.smudge", f"touch {reached}; sleep 60")
    for name in names:
        (project / name).write_text("after\n")
    process = subprocess.Popen(["git", "restore", "."], cwd=project, start_new_session=True)
    while not reached.exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert {(project / name).read_text() for name in names if (project / name).exists()} == {"before\n", "after\n"}
    assert (project / ".git" / "index.lock").exists()
    with pytest.raises(subprocess.CalledProcessError, match="128"):
        git(project, "add", ".")


def test_next_day(project: Path) -> None:
    (project / "app.txt").write_text(changed(BASE, line_3="three"))
    snapshot(project)
    assert git(project, "stash", "list").count("stash@{") == 1


def test_formatter(project: Path) -> None:
    (project / "app.txt").write_text(changed(BASE, line_3="  three"))  # the agent
    (project / "app.txt").write_text(changed(BASE, line_3="three"))  # the formatter
    git(project, "stash", "push", "-q")
    assert (project / "app.txt").read_text() == BASE


def test_part_of_a_commit(project: Path) -> None:
    (project / "app.txt").write_text(changed(BASE, line_3="three", line_13="thirteen"))
    command = ["git", "add", "-p", "app.txt"]
    subprocess.run(command, cwd=project, input="y\nn\n", text=True, check=True, capture_output=True)
    git(project, "commit", "-q", "-m", "part")
    assert git(project, "show", "HEAD:app.txt") == changed(BASE, line_3="three")
    assert (project / "app.txt").read_text() == changed(BASE, line_3="three", line_13="thirteen")


def test_same_lines_later(project: Path) -> None:
    (project / "app.txt").write_text(changed(BASE, line_3="three"))
    snapshot(project)
    (project / "app.txt").write_text(changed(BASE, line_3="THREE"))
    snapshot(project)
    ran = reverse_first_prompt(project)
    assert ran.returncode == 1
    assert "app.txt:1" in ran.stderr
    assert (project / "app.txt").read_text() == changed(BASE, line_3="THREE")
