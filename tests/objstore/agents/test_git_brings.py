"""Files that git brings or takes without moving HEAD are git's: sparse checkouts, large files, submodules."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from objstore import AgentCall, EditFilter, Origin, Status
from tests.support.git_project import GitProject
from tests.support.git_repository import git, new_repository

LINES: Final = "one\ntwo {}\nthree\nfour\nfive\n"
AGENTS: Final = LINES.format("b").replace("three", "agent's three")
FOLDERS: Final = ("a", "b", "c/d")

Run = Callable[..., None]
"""Runs git commands: a person's, or in one call of an agent."""


def folders_project(folder: Path) -> GitProject:
    new_repository(folder)
    (folder / ".gitignore").write_text(".cas/\n")
    for name in FOLDERS:
        (folder / name).mkdir(parents=True)
        for number in range(2):
            (folder / name / f"{number}.txt").write_text(LINES.format(name))
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return GitProject.at(folder)


def runner_of(project: GitProject, who: str) -> Run:
    def run(*commands: tuple[str, ...]) -> None:
        if who == "agent":
            project.agent_runs(*commands)
        else:
            for command in commands:
                project.git(*command)
        project.look()

    return run


@pytest.fixture
def project(tmp_path: Path) -> Iterator[GitProject]:
    with closing(folders_project(tmp_path / "project")) as project:
        yield project


by_both = pytest.mark.parametrize("who", ["person", "agent"])


def shown(project: GitProject) -> dict[str, str]:
    """Return the edits that are not git's, or that git made and that have no effect now, by path and operation."""
    return {
        f"{view.edit.path.decode()} {view.edit.operation.name.lower()}": view.status.value
        for view in project.workspace.history.edits(EditFilter())
        if view.edit.origin is not Origin.GIT
    }


# ---- sparse checkouts


@by_both
@pytest.mark.parametrize("options", [(), ("--sparse-index",)], ids=["full index", "sparse index"])
def test_a_sparse_checkout_takes_and_brings_files_without_an_edit(
    project: GitProject, who: str, options: tuple[str, ...]
) -> None:
    run = runner_of(project, who)
    project.agent_writes("b/0.txt", AGENTS)
    project.agent_runs(("commit", "-q", "-am", "work"))
    before, lines = shown(project), project.workspace.history.blame("b/0.txt")
    assert before == {"b/0.txt edit": "pending"}
    run(("sparse-checkout", "set", *options, "a"))
    assert not (project.folder / "b").exists()
    assert shown(project) == {"b/0.txt edit": "away"}
    run(("sparse-checkout", "add", "b"))
    assert shown(project) == before
    run(("sparse-checkout", "disable"))
    assert (project.folder / "c/d/1.txt").exists()
    assert (shown(project), project.workspace.history.blame("b/0.txt")) == (before, lines)
    assert project.events()[1:] == ["sparse checkout"] * 3
    project.reject(1)
    assert project.text("b/0.txt") == LINES.format("b")
    assert project.has_no_faults()


@by_both
def test_files_that_a_sparse_checkout_brings_for_the_first_time_are_gits(
    project: GitProject, tmp_path: Path, who: str
) -> None:
    git(tmp_path, "clone", "-q", str(project.folder), "sparse")
    git(tmp_path / "sparse", "sparse-checkout", "set", "a")
    with closing(GitProject.at(tmp_path / "sparse")) as sparse:
        run = runner_of(sparse, who)
        run(("sparse-checkout", "add", "b"))
        assert (shown(sparse), sparse.git_edits(), sparse.events()) == ({}, 2, ["sparse checkout"])


def test_a_file_that_an_agent_deletes_in_a_sparse_checkout_is_its_edit(project: GitProject) -> None:
    project.git("sparse-checkout", "set", "a", "b")
    project.look()
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    (project.folder / "b/0.txt").unlink()
    project.git("add", "-A")
    project.workspace.hooks.end(call)
    assert shown(project) == {"b/0.txt delete": "pending"}
    project.agent_runs(("restore", "--staged", "--worktree", "b/0.txt"))
    assert shown(project) == {"b/0.txt delete": "pending", "b/0.txt create": "pending"}


# ---- Large File Storage


CONTENT: Final = b"large\n" * 1000
POINTER: Final = (
    f"version https://git-lfs.github.com/spec/v1\noid sha256:{hashlib.sha256(CONTENT).hexdigest()}\n"
    f"size {len(CONTENT)}\n"
)


@pytest.fixture
def pointers(tmp_path: Path) -> Iterator[GitProject]:
    """Return a project with a large file of which only the pointer was checked out, and a filter that acts like LFS."""
    driver = tmp_path / "driver.py"
    driver.write_text(
        "import sys\n"
        "given = sys.stdin.buffer.read()\n"
        f"sys.stdout.buffer.write({POINTER.encode()!r} if sys.argv[1] == 'clean' else {CONTENT!r})\n"
    )
    folder = new_repository(tmp_path / "project")
    (folder / ".gitignore").write_text(".cas/\n")
    (folder / ".gitattributes").write_text("*.bin filter=lfs -text\n")
    (folder / "large.bin").write_text(POINTER)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    for name in ("clean", "smudge"):
        git(folder, "config", f"filter.lfs.{name}", f"{sys.executable} {driver} {name}")
    with closing(GitProject.at(folder)) as project:
        yield project


@by_both
@pytest.mark.parametrize("how", ["checkout", "replace"])
def test_the_content_that_a_pointer_names_is_gits(pointers: GitProject, who: str, how: str) -> None:
    path = pointers.folder / "large.bin"

    def pull() -> None:
        if how == "checkout":
            path.unlink()
            pointers.git("checkout", "--", "large.bin")
        else:  # as `git lfs pull`, which tells the index afterwards
            (pointers.folder.parent / "new").write_bytes(CONTENT)
            (pointers.folder.parent / "new").replace(path)
            pointers.git("update-index", "-q", "--refresh")

    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    if who == "agent":
        pointers.workspace.hooks.begin(call)
    pull()
    if who == "agent":
        pointers.workspace.hooks.end(call)
    pointers.look()
    assert path.read_bytes() == CONTENT
    assert (shown(pointers), pointers.git_edits()) == ({}, 1)


def test_other_bytes_than_a_pointer_names_are_an_edit(pointers: GitProject) -> None:
    pointers.agent_writes("large.bin", "small\n")
    assert shown(pointers) == {"large.bin edit": "pending"}


OTHER: Final = "other\n"
OTHER_POINTER: Final = (
    f"version https://git-lfs.github.com/spec/v1\noid sha256:{hashlib.sha256(OTHER.encode()).hexdigest()}\nsize 6\n"
)


def test_the_content_of_a_pointer_under_review_awaits_review(pointers: GitProject) -> None:
    pointers.agent_writes("large.bin", OTHER_POINTER)
    pointers.agent_writes("large.bin", OTHER)
    assert [view.status for view in pointers.workspace.history.edits(EditFilter())] == [Status.PENDING] * 2


def test_the_content_of_a_persons_pointer_is_gits_also_if_an_agent_pulls_it(pointers: GitProject) -> None:
    (pointers.folder / "large.bin").write_text(OTHER_POINTER)
    pointers.look()
    pointers.agent_writes("large.bin", OTHER)
    origins = [view.edit.origin for view in pointers.workspace.history.edits(EditFilter())]
    assert sorted(origins) == [Origin.EXTERNAL, Origin.GIT]


# ---- submodules


@by_both
def test_a_submodule_that_appears_moves_and_goes_is_one_event_each(tmp_path: Path, who: str) -> None:
    library = new_repository(tmp_path / "library")
    for text in ("first", "second"):
        for number in range(4):
            (library / f"{number}.py").write_text(f"{text}\nof {number}\n")
        git(library, "add", ".")
        git(library, "commit", "-q", "-m", text)
    outer = new_repository(tmp_path / "outer")
    (outer / ".gitignore").write_text(".cas/\n")
    git(outer, "add", ".")
    git(outer, "submodule", "--quiet", "add", str(library), "sub")
    git(outer, "commit", "-q", "-m", "second")
    git(outer, "branch", "newer")
    git(outer / "sub", "checkout", "-q", "HEAD~1")
    git(outer, "commit", "-q", "-am", "first")
    git(tmp_path, "clone", "-q", str(outer), "project")
    with closing(GitProject.at(tmp_path / "project")) as project:
        run = runner_of(project, who)
        first, second = (git(library, "rev-parse", name).strip()[:7] for name in ("HEAD~1", "HEAD"))
        run(("submodule", "--quiet", "update", "--init"))
        run(("checkout", "-q", "--recurse-submodules", "-b", "newer", "origin/newer"))
        assert project.text("sub/0.py") == "second\nof 0\n"
        run(("submodule", "--quiet", "deinit", "-f", "sub"))
        assert not any((project.folder / "sub").iterdir())
        run(("submodule", "--quiet", "update", "--init"))
        assert project.text("sub/0.py") == "second\nof 0\n"
        assert shown(project) == {}
        assert project.events() == [
            f"submodule sub at {first}",
            f"{first} → {second}",
            f"submodule at {second} removed",
            f"submodule sub at {second}",
        ]
        assert project.has_no_faults()


def test_what_an_agent_wrote_in_a_submodule_that_it_removes_is_taken_out_by_its_call(tmp_path: Path) -> None:
    library = new_repository(tmp_path / "library")
    (library / "0.py").write_text("first\n")
    (library / "1.py").write_text("first\n")
    git(library, "add", ".")
    git(library, "commit", "-q", "-m", "first")
    outer = new_repository(tmp_path / "outer")
    (outer / ".gitignore").write_text(".cas/\n")
    git(outer, "add", ".")
    git(outer, "submodule", "--quiet", "add", str(library), "sub")
    git(outer, "commit", "-q", "-m", "first")
    with closing(GitProject.at(outer)) as project:
        project.write("sub/0.py", "a person's\n")
        project.look()
        project.agent_runs(("submodule", "--quiet", "deinit", "-f", "sub"))
        assert shown(project) == {"sub/0.py edit": "accepted", "sub/0.py delete": "pending"}


# ---- repositories that can't be followed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
@pytest.mark.parametrize("where", ["around", "inside"])
def test_the_status_names_a_repository_of_another_user(project: GitProject, where: str) -> None:
    folder = project.folder
    if where == "inside":
        folder = new_repository(project.folder / "inner")
        (folder / "0.txt").write_text("first\n")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "first")
        project.look()
    for path in (folder, *folder.rglob("*")):
        if ".cas" not in path.parts:
            os.chown(path, 4321, 4321)
    (said,) = project.workspace.review.status().unreadable
    assert said.startswith(f"{folder / '.git'}: it belongs to another user")


def test_the_status_names_a_repository_inside_whose_refs_are_in_a_reftable(project: GitProject) -> None:
    inner = new_repository(project.folder / "inner")
    (inner / "0.txt").write_text("first\n")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "first")
    project.look()
    (inner / ".git" / "reftable").mkdir()
    (inner / ".git" / "reftable" / "tables.list").write_text("0x0-0x1.ref\n")  # no git reads it: there is no such table
    git(inner, "config", "core.repositoryFormatVersion", "1")
    git(inner, "config", "extensions.refStorage", "reftable")
    (said,) = project.workspace.review.status().unreadable
    assert said.startswith(f"{inner / '.git'}: its refs are in a reftable")


@pytest.mark.parametrize(
    "way", [("sparse-checkout", "set", "--no-cone", "/*", "!/b/"), ("rm", "-q", "-r", "--cached", "b")]
)
def test_what_a_person_commits_of_an_agents_unread_text_awaits_review_when_git_brings_it_back(
    project: GitProject, way: tuple[str, ...]
) -> None:
    hooks, path = project.workspace.hooks, project.folder / "b" / "0.txt"
    project.look()
    hooks.begin(AgentCall(conversation="one", id="1", tool="Write", paths=("b/0.txt",)))
    path.write_text(AGENTS)
    project.git("commit", "-q", "-a", "-m", "a person's, while the tool runs")
    project.git(*way)
    path.unlink(missing_ok=True)
    hooks.end(AgentCall(conversation="one", id="1", tool="Write", paths=("b/0.txt",)))
    hooks.pause("one")
    project.look()
    project.git("checkout", "-q", "HEAD", "--ignore-skip-worktree-bits", "--", "b")
    project.look()
    assert path.read_text() == AGENTS
    views = project.workspace.history.edits(EditFilter())
    assert Status.PENDING in {view.status for view in views if view.edit.path == b"b/0.txt"}
