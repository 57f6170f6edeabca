"""Git is asked so that nothing in a repository runs a program, or keeps the caller waiting."""

import os
from pathlib import Path

import pytest

from objstore import ask_git
from tests.support.git_repository import git, new_repository


@pytest.fixture
def work_tree(tmp_path: Path) -> Path:
    folder = new_repository(tmp_path / "repo")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", ".")
    return folder


def test_no_program_that_a_repository_names_is_run(work_tree: Path, tmp_path: Path) -> None:
    program, trace = tmp_path / "program", tmp_path / "trace"
    program.write_text(f"#!/bin/sh\ntouch '{trace}'\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "filter.x.clean", "diff.external"):
        git(work_tree, "config", name, str(program))
    git(work_tree, "config", "core.hooksPath", str(tmp_path))
    assert ask_git(str(work_tree), "ls-files", "-z") == b"a.txt\0"
    assert not trace.exists()


@pytest.mark.parametrize(
    "text",
    [
        "[include]\n\tpath = {fifo}\n",
        "[include] path = {fifo} ; why\n",
        '[include]\n\tPATH = "{fifo}"\n',
        "[include]\n\tpath = ../../\\\nfifo\n",
        '[includeIf "onbranch:main"]\n\tpath = {fifo}\n',
        "[include]\n\tpath = ../../between\n",
    ],
)
def test_git_is_not_asked_if_it_would_wait_for_a_fifo(work_tree: Path, tmp_path: Path, text: str) -> None:
    fifo = tmp_path / "fifo"
    (tmp_path / "between").write_text(f"[include]\npath={fifo}\n")
    with (work_tree / ".git" / "config").open("a") as config:
        config.write(text.format(fifo=fifo))
    assert ask_git(str(work_tree), "ls-files", "-z") == b"a.txt\0"  # what is missing is no obstacle
    os.mkfifo(fifo)
    assert ask_git(str(work_tree), "ls-files", "-z") is None


def test_where_no_repository_is_git_is_not_asked(tmp_path: Path) -> None:
    assert ask_git(str(tmp_path), "rev-parse", "--git-dir") is None
