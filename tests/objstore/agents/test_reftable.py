"""What git does in a repository whose refs are in a reftable, with a git that has them."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from objstore import EditFilter, Status
from tests.support.git_project import GitProject
from tests.support.git_repository import git


def version() -> tuple[int, ...]:
    """Return the version of the git of this machine."""
    said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, re.findall(r"\d+", said)[:2]))


pytestmark = pytest.mark.skipif(version() < (2, 45), reason="this git has no reftables")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[GitProject]:
    git(tmp_path, "init", "-q", "--ref-format=reftable", "-b", "main", "project")
    with closing(GitProject(tmp_path / "project")) as project:
        assert (project.folder / ".git" / "reftable" / "tables.list").read_bytes()
        project.git("branch", "feature")
        project.look()
        yield project


def test_edits_of_an_agent_are_away_on_another_branch_and_come_back(project: GitProject) -> None:
    project.agent_writes("0.txt", "an agent's\n")
    project.agent_runs(("commit", "-q", "-am", "work"))
    project.git("checkout", "-q", "feature")
    project.look()
    assert (project.statuses(), project.events()) == ({1: "away"}, ["commit", "main → feature"])
    project.git("checkout", "-q", "main")
    project.look()
    assert project.statuses() == {1: "pending"}
    assert project.events() == ["commit", "main → feature", "feature → main"]
    assert project.workspace.review.status().unreadable == ()


def test_what_an_agent_committed_unseen_awaits_review_when_it_comes(project: GitProject) -> None:
    project.agent_runs(
        ("checkout", "-q", "feature"),
        ("commit", "-q", "--allow-empty", "-m", "nothing"),
        ("checkout", "-q", "main"),
    )
    project.agent_runs(
        ("worktree", "add", "-q", "../elsewhere", "feature"),
        ("-C", "../elsewhere", "rm", "-q", "1.txt"),
        ("-C", "../elsewhere", "commit", "-q", "-m", "remove"),
    )
    project.git("merge", "-q", "feature")
    project.look()
    (view,) = project.workspace.history.edits(EditFilter())
    assert (view.edit.path, view.status) == (b"1.txt", Status.PENDING)
