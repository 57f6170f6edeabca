"""The stories of docs/comparison.md with jj: each prompt is a change of its own, begun with `jj new`."""

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.comparison.conftest import BASE, changed

pytestmark = pytest.mark.skipif(shutil.which("jj") is None, reason="jj is not installed")

CELLS: Final = {
    "one_prompt": "yes, if you ran `jj new` before each prompt: `jj abandon`",
    "one_hunk": "yes, the same: `jj diffedit -r` of that prompt's change",
    "shell_command": "yes",
    "two_sessions": "no: both are in one change; hunks can be picked by hand",
    "person_types": "yes, if you ran `jj new` before you typed; else by hand: `jj diffedit`",
    "kinds_of_files": "yes, but for files that git ignores; of modes only the executable bit",
    "branch_and_back": "yes, without a further step: `jj new`, `jj edit`",
    "killed": "some files are back and others not; the next command says so, and `jj workspace update-stale` finishes",
    "next_day": "the changes and every operation, yes; what was reviewed isn't noted",
    "formatter": "yes, with everything else in the change",
    "part_of_a_commit": "yes: `jj split`, `jj commit FILE`",
    "same_lines_later": "done, with a conflict in the later change and markers in the file; jj says so",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Jj:
    """jj in one folder, without settings of the machine."""

    folder: Path
    settings: dict[str, str]

    def __call__(self, *words: str) -> str:
        """Run jj and return all that it prints."""
        ran = subprocess.run(
            ["jj", *words], cwd=self.folder, env=self.settings, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran
        return ran.stdout + ran.stderr


@pytest.fixture
def jj(project: Path) -> Jj:
    """Make the project a repository of jj and git."""
    home = str(project.parent)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JJ_", "GIT_"))}
    settings = kept | {"HOME": home, "XDG_CONFIG_HOME": home, "JJ_USER": "A", "JJ_EMAIL": "a@example.org"}
    started = Jj(folder=project, settings=settings | {"JJ_EDITOR": "true"})
    started("git", "init", "--colocate")
    return started


def write(project: Path, text: str) -> None:
    (project / "app.txt").write_text(text)


def test_one_prompt(jj: Jj, project: Path) -> None:
    first = changed(BASE, line_3="three")
    write(project, first)
    jj("new")
    write(project, changed(first, line_10="ten\nand more"))
    jj("abandon", "@-")
    assert (project / "app.txt").read_text() == changed(BASE, line_10="ten\nand more")


def test_one_hunk(jj: Jj, project: Path) -> None:
    first = changed(BASE, line_3="three", line_15="fifteen")
    write(project, first)
    jj("new")
    write(project, changed(first, line_10="ten\nand more"))
    # The editor of the difference is a program that takes one of two hunks back.
    script = 'sed -i "s/^fifteen$/line 15/" "$1/app.txt"'
    tool = f"merge-tools.pick={{program='sh', edit-args=['-c', '''{script}''', 'sh', '$right']}}"
    jj("diffedit", "-r", "@-", "--tool", "pick", "--config", tool)
    assert (project / "app.txt").read_text() == changed(BASE, line_3="three", line_10="ten\nand more")


def test_shell_command(jj: Jj, project: Path) -> None:
    command = "sed -i 's/^line 3$/three/' app.txt; echo new > new.txt; rm notes.txt"
    subprocess.run(command, shell=True, cwd=project, check=True)  # noqa: S602 -- the story is a shell's
    jj("abandon")
    assert (project / "app.txt").read_text() == BASE
    assert (project / "notes.txt").read_text() == "notes\n"
    assert not (project / "new.txt").exists()


def test_two_sessions(jj: Jj, project: Path) -> None:
    write(project, changed(BASE, line_3="three"))
    write(project, changed(BASE, line_3="three", line_13="thirteen"))
    jj("abandon")
    assert (project / "app.txt").read_text() == BASE


def test_person_types(jj: Jj, project: Path) -> None:
    first = changed(BASE, line_3="three")
    write(project, first)
    jj("new")
    write(project, changed(first, line_13="mine"))
    jj("abandon", "@-")
    assert (project / "app.txt").read_text() == changed(BASE, line_13="mine")


def test_kinds_of_files(jj: Jj, project: Path) -> None:
    (project / "build").mkdir()
    (project / "logo.bin").write_bytes(b"\0\3")
    (project / "run.sh").chmod(0o755)
    (project / "app.txt").chmod(0o600)
    (project / "notes.txt").rename(project / "moved.txt")
    (project / "untracked.txt").write_text("u\n")
    (project / "build" / "out").write_text("1\n")
    jj("abandon")
    assert {path.name for path in project.iterdir()} == {
        *(".git", ".gitignore", ".jj", "build"),
        *("app.txt", "logo.bin", "notes.txt", "run.sh"),
    }
    assert (project / "logo.bin").read_bytes() == b"\0\1\2"
    assert (project / "run.sh").stat().st_mode & 0o111 == 0
    assert (project / "app.txt").stat().st_mode & 0o777 == 0o600


def test_branch_and_back(jj: Jj, project: Path) -> None:
    write(project, "another text\n")
    jj("commit", "-m", "other")
    jj("bookmark", "create", "other", "-r", "@-")
    jj("new", "main")
    write(project, changed(BASE, line_3="three"))
    jj("bookmark", "create", "work")
    jj("new", "other")
    assert (project / "app.txt").read_text() == "another text\n"
    jj("edit", "work")
    assert (project / "app.txt").read_text() == changed(BASE, line_3="three")
    jj("abandon")
    assert (project / "app.txt").read_text() == BASE


def test_killed(jj: Jj, project: Path) -> None:
    names = [f"many-{number:04}.txt" for number in range(2000)]
    for content in ("before\n", "after\n"):
        for name in names:
            (project / name).write_text(content)
        jj("new", "-m", content)
    jj("edit", "@-")
    process = subprocess.Popen(["jj", "abandon"], cwd=project, env=jj.settings, start_new_session=True)
    while (
        process.poll() is None and (project / names[500]).exists() and (project / names[500]).read_text() != "before\n"
    ):
        time.sleep(0.0001)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    jj("workspace", "update-stale")
    assert {(project / name).read_text() for name in names} == {"before\n"}


def test_next_day(jj: Jj, project: Path) -> None:
    write(project, changed(BASE, line_3="three"))
    jj("new")
    assert jj("op", "log", "--no-graph").count("snapshot working copy") == 1


def test_formatter(jj: Jj, project: Path) -> None:
    write(project, changed(BASE, line_3="  three"))  # the agent
    write(project, changed(BASE, line_3="three"))  # the formatter
    jj("abandon")
    assert (project / "app.txt").read_text() == BASE


def test_part_of_a_commit(jj: Jj, project: Path) -> None:
    write(project, changed(BASE, line_3="three"))
    (project / "notes.txt").write_text("more notes\n")
    jj("commit", "-m", "part", "app.txt")
    assert jj("diff", "--name-only") == "notes.txt\n"


def test_same_lines_later(jj: Jj, project: Path) -> None:
    write(project, changed(BASE, line_3="three"))
    jj("new")
    write(project, changed(BASE, line_3="THREE"))
    assert "conflict" in jj("abandon", "@-")
    assert "<<<<<<<" in (project / "app.txt").read_text()
    jj("undo")
    assert (project / "app.txt").read_text() == changed(BASE, line_3="THREE")
