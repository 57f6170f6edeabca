"""What git does to single files: restores them, merges them while others are in conflict, in any kind of work tree."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from objstore import Action, AgentCall, Decided, EditFilter, Origin, Status, TurnInfo
from tests.support.git_project import GitProject
from tests.support.git_repository import git, new_repository

FIRST = "one\ntwo 0\nthree\nfour\nfive\n"
CHANGED = "one\nTWO 0\nthree\nfour\nfive\n"
TWICE = "one\nTWO 0\nthree\nfour\nFIVE\n"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[GitProject]:
    with closing(GitProject(tmp_path / "project")) as project:
        yield project


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Return what closes the projects that a test opens."""
    with ExitStack() as stack:
        yield stack


# ---- git restore


@pytest.mark.parametrize("command", [("restore", "0.txt"), ("checkout", "--", "0.txt"), ("checkout", "0.txt")])
def test_edits_of_a_restored_file_are_away(project: GitProject, command: tuple[str, ...]) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.agent_writes("1.txt", "other\n")
    project.git(*command)
    project.look()
    assert (project.statuses(), project.events()) == ({1: "away", 2: "pending"}, ["restore"])
    assert project.has_no_faults()


def test_edits_come_back_with_their_bytes_however_these_come(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.agent_writes("0.txt", TWICE)
    project.git("restore", "0.txt")
    project.look()
    project.write("0.txt", CHANGED)
    project.workspace.note_git()
    assert project.statuses() == {1: "pending", 2: "away"}
    project.write("0.txt", TWICE)
    project.look()
    assert (project.statuses(), project.events()) == ({1: "pending", 2: "pending"}, ["restore", "returned", "returned"])
    project.reject(1)
    assert project.text("0.txt") == FIRST.replace("five", "FIVE")


def test_bytes_that_an_agent_writes_again_are_its_edit(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    _, units = project.workspace.find_units("1")
    project.workspace.decide(Action.ACCEPT, units)
    project.git("restore", "0.txt")
    project.look()
    project.agent_writes("0.txt", CHANGED)
    assert project.statuses() == {1: "away", 2: "pending"}


def test_other_bytes_in_a_restored_file_are_a_persons_edit(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.git("restore", "0.txt")
    project.look()
    project.write("0.txt", "mine\n")
    project.look()
    assert project.statuses() == {1: "away", 2: "accepted"}
    project.write("0.txt", FIRST)
    project.look()
    assert project.statuses() == {1: "away", 2: "accepted", 3: "accepted"}


def test_a_file_is_restored_to_what_was_staged(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.git("add", "0.txt")
    project.look()
    project.agent_writes("0.txt", TWICE)
    project.git("restore", "0.txt")
    project.look()
    assert (project.text("0.txt"), project.statuses()) == (CHANGED, {1: "pending", 2: "away"})


def test_what_an_agent_restores_is_an_edit_of_its_own(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.agent_runs(("restore", "0.txt"))
    assert (project.statuses(), project.events()) == ({1: "pending", 2: "pending"}, [])


def test_bytes_that_nothing_but_the_index_has_are_a_persons(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.write("0.txt", "typed\n")
    project.git("add", "0.txt")
    project.look()
    assert (project.statuses(), project.events()) == ({1: "pending", 2: "accepted"}, [])


def test_a_rejected_edit_stays_rejected_when_git_takes_the_file_back(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.agent_writes("0.txt", TWICE)
    project.reject(1)
    for command in (("restore", "0.txt"), ("stash", "-q"), ("reset", "-q", "--hard")):
        project.write("0.txt", FIRST.replace("five", "FIVE"))
        project.look()
        assert project.statuses() == {1: "rejected", 2: "pending"}
        project.git(*command)
        project.look()
        assert (project.text("0.txt"), project.statuses()) == (FIRST, {1: "rejected", 2: "away"})


def test_git_is_not_asked_where_nothing_below_its_folder_moved(
    project: GitProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A program of that name that leaves a trace is put in git's place."""
    trace = tmp_path / "asked"
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {trace}\nexit 1\n")
    program.chmod(0o755)
    project.agent_writes("0.txt", CHANGED)
    project.look()
    project.git("add", "1.txt")  # the index is written, and no file differs
    monkeypatch.setenv("PATH", str(program.parent))
    project.look()
    project.write("1.txt", "mine\n")
    project.agent_writes("2.txt", "agent\n")
    project.look()
    assert not trace.exists()
    assert project.statuses() == {1: "pending", 2: "pending", 3: "accepted"}


# ---- a merge with conflicts


def conflicting_branches(project: GitProject) -> None:
    """Let both branches change different lines of 0.txt, and the same line of 1.txt."""
    for branch, line, number in (("other", 1, "other"), ("main", 5, "own")):
        if branch != "main":
            project.git("checkout", "-q", "-b", branch)
        for name, lines in (("0.txt", {line: number}), ("1.txt", {2: number})):
            text = project.text(name).split("\n")
            for at, word in lines.items():
                text[at - 1] = word
            project.write(name, "\n".join(text))
        project.git("commit", "-q", "-am", number)
        if branch != "main":
            project.git("checkout", "-q", "main")
    project.look()


def merge(project: GitProject) -> None:
    with pytest.raises(Exception, match="merge"):
        project.git("merge", "-q", "other")
    project.look()


def test_files_that_git_merged_next_to_a_conflict_are_gits(project: GitProject) -> None:
    conflicting_branches(project)
    before = project.git_edits()
    project.agent_writes("2.txt", "agent\n")
    merge(project)
    assert project.text("0.txt") == "other\ntwo 0\nthree\nfour\nown\n"
    assert project.git_edits() == before + 1
    newest = project.workspace.history.edits(EditFilter(newest_first=True))
    assert {view.edit.path: view.edit.origin for view in newest if view.seq > 3}[b"0.txt"] is Origin.GIT
    project.git("checkout", "--theirs", "1.txt")
    project.git("commit", "-q", "-am", "merged")
    project.look()
    assert project.has_no_faults()


def test_later_changes_of_a_merged_file_are_not_gits(project: GitProject) -> None:
    conflicting_branches(project)
    before = project.git_edits()
    with pytest.raises(Exception, match="merge"):
        project.git("merge", "-q", "other")
    project.write("0.txt", project.text("0.txt") + "six\n")
    project.git("add", "0.txt")
    project.look()
    assert project.git_edits() == before


def test_a_merged_file_with_bytes_of_an_agents_commit_awaits_review(project: GitProject) -> None:
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    conflicting_branches(project)
    project.workspace.hooks.end(call)
    before = set(project.statuses())
    merge(project)
    found = {view.edit.path: view for view in project.workspace.history.edits(EditFilter()) if view.seq not in before}
    merged = found[b"0.txt"]
    assert (merged.edit.origin, merged.status) == (Origin.UNATTRIBUTED, Status.PENDING)


# ---- commits of agents


def test_status_names_an_agents_commit_until_its_edits_are_reviewed(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.agent_writes("1.txt", "uncommitted\n")
    project.agent_writes("2.txt", "all\n")
    project.agent_runs(("add", "0.txt", "2.txt"), ("commit", "-q", "-m", "work"))
    commit = project.git("rev-parse", "HEAD").strip()
    (found,) = project.workspace.review.status().commits
    assert (found.commit, found.conversation, found.edits) == (commit, "c", (1, 3))
    assert project.statuses() == {1: "pending", 2: "pending", 3: "pending"}
    project.reject(1)
    (found,) = project.workspace.review.status().commits
    assert found.edits == (3,)
    _, units = project.workspace.find_units("3")
    assert isinstance(project.workspace.decide(Action.ACCEPT, units), Decided)
    assert project.workspace.review.status().commits == ()


# ---- linked worktrees and submodules


def test_a_workspace_in_a_linked_worktree_follows_its_own_head(tmp_path: Path, opened: ExitStack) -> None:
    main = opened.enter_context(closing(GitProject(tmp_path / "main")))
    main.git("branch", "feature")
    main.git("worktree", "add", "-q", str(tmp_path / "linked"), "feature")
    linked = opened.enter_context(closing(GitProject.at(tmp_path / "linked")))
    linked.agent_writes("0.txt", CHANGED)
    on_main = FIRST.replace("five", "main")
    main.write("0.txt", on_main)
    main.git("commit", "-q", "-am", "on main")
    linked.look()
    assert (linked.statuses(), linked.events()) == ({1: "pending"}, [])
    linked.git("commit", "-q", "-am", "work")
    linked.look()
    assert linked.statuses() == {1: "accepted"}
    linked.git("checkout", "-q", "--detach", "main")
    linked.look()
    assert (linked.text("0.txt"), linked.statuses()[1]) == (on_main, "away")
    linked.git("checkout", "-q", "feature")
    linked.look()
    assert linked.statuses() == {1: "accepted"}
    linked.agent_writes("0.txt", TWICE)
    linked.git("restore", "0.txt")
    linked.look()
    assert linked.statuses() == {1: "accepted", 3: "away"}
    main.look()
    assert linked.has_no_faults()
    assert main.has_no_faults()


def test_a_workspace_with_a_submodule_follows_both_heads(tmp_path: Path, opened: ExitStack) -> None:
    library = opened.enter_context(closing(GitProject(tmp_path / "library")))
    library.git("checkout", "-q", "-b", "feature")
    library.write("0.txt", "feature\n")
    library.git("commit", "-q", "-am", "feature")
    outer = new_repository(tmp_path / "outer")
    (outer / ".gitignore").write_text(".cas/\n")
    (outer / "0.txt").write_text(FIRST)
    git(outer, "add", ".")
    git(outer, "submodule", "--quiet", "add", str(library.folder), "sub")
    git(outer, "commit", "-q", "-m", "with a submodule")
    project = opened.enter_context(closing(GitProject.at(outer)))
    sub = outer / "sub"
    project.agent_writes("0.txt", CHANGED)
    project.agent_writes("sub/1.txt", CHANGED)
    git(sub, "checkout", "-q", "--detach", "origin/main")
    project.look()
    changed = {
        view.edit.path for view in project.workspace.history.edits(EditFilter()) if view.edit.origin is Origin.GIT
    }
    assert changed == {b"sub/0.txt"}
    assert project.statuses() == {1: "pending", 2: "pending"}
    git(sub, "commit", "-q", "-am", "in the submodule")
    project.look()
    assert project.statuses() == {1: "pending", 2: "accepted"}
    project.git("commit", "-q", "-am", "all")
    project.look()
    assert project.statuses() == {1: "accepted", 2: "accepted"}
    project.agent_writes("sub/1.txt", TWICE)
    git(sub, "restore", "1.txt")
    project.look()
    assert project.statuses() == {1: "accepted", 2: "accepted", 4: "away"}
    assert project.has_no_faults()


# ---- repositories that appear and go


def pending(project: GitProject) -> set[bytes]:
    edits = project.workspace.history.edits(EditFilter(status=Status.PENDING))
    return {view.edit.path for view in edits}


@pytest.mark.parametrize("is_in_call", [True, False], ids=["in a call", "by a person"])
def test_a_new_worktree_is_one_event_and_so_is_its_removal(project: GitProject, *, is_in_call: bool) -> None:
    run = project.agent_runs if is_in_call else lambda *commands: [project.git(*each) for each in commands]
    run(("worktree", "add", "-q", "-b", "agents", "linked"))
    project.look()
    commit = project.git("rev-parse", "HEAD").strip()[:7]
    assert project.events() == [f"worktree linked at {commit}"]
    assert (project.statuses(), project.git_edits()) == ({}, 4)
    project.agent_writes("linked/0.txt", CHANGED)
    assert pending(project) == {b"linked/0.txt"}
    run(("worktree", "remove", "--force", "linked"))
    project.look()
    assert project.events()[1:] == [f"worktree at {commit} removed"]
    assert pending(project) == {b"linked/0.txt"}
    assert len(project.statuses()) == 2
    assert project.has_no_faults()


def test_a_cloned_repository_is_one_event(project: GitProject, tmp_path: Path) -> None:
    other = new_repository(tmp_path / "other")
    for number in range(5):
        (other / f"{number}.py").write_text(f"{number}\n")
    git(other, "add", ".")
    git(other, "commit", "-q", "-m", "first")
    project.agent_runs(("clone", "-q", str(other), "inner"))
    assert project.statuses() == {}
    assert [event.partition(" at ")[0] for event in project.events()] == ["repository inner"]


def test_what_an_agent_commits_in_a_repository_of_its_own_awaits_review(project: GitProject) -> None:
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    inner = new_repository(project.folder / "inner")
    (inner / "a.py").write_text("agent\n")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "agent's")
    project.workspace.hooks.end(call)
    assert pending(project) == {b"inner/a.py"}


def test_a_commit_in_a_new_worktree_awaits_review(project: GitProject) -> None:
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    project.git("worktree", "add", "-q", "-b", "agents", "linked")
    (project.folder / "linked" / "0.txt").write_text(CHANGED)
    git(project.folder / "linked", "commit", "-q", "-am", "agent's")
    project.workspace.hooks.end(call)
    assert pending(project) == {b"linked/0.txt"}
    project.look()
    project.git("merge", "-q", "agents")
    project.look()
    assert pending(project) == {b"linked/0.txt", b"0.txt"}


def test_the_status_names_an_ignored_worktree_where_an_agent_works(project: GitProject) -> None:
    project.write(".gitignore", ".cas/\n/hidden/\n")
    project.git("commit", "-q", "-am", "ignore")
    project.look()
    project.git("worktree", "add", "-q", "hidden/linked")
    project.look()
    assert project.workspace.review.status().unreadable == ()
    project.agent_writes("0.txt", CHANGED)
    project.workspace.hooks.note_turn(TurnInfo(session="c", began=0, prompt="go"), has_begun=True)
    (said,) = project.workspace.review.status().unreadable
    assert said.startswith("hidden/linked: a linked worktree that is ignored")


def test_the_status_names_a_repository_that_can_not_be_followed(project: GitProject) -> None:
    reftable = project.folder / ".git" / "reftable"
    reftable.mkdir()
    (reftable / "tables.list").write_text("0x0-0x1.ref\n")  # no git reads it: there is no such table
    project.git("config", "core.repositoryFormatVersion", "1")
    project.git("config", "extensions.refStorage", "reftable")
    (said,) = project.workspace.review.status().unreadable
    assert "its refs are in a reftable, which the git here can't read" in said
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    project.write("0.txt", "an agent's\n")
    project.workspace.hooks.end(call)
    assert set(project.statuses().values()) == {"pending"}
