"""Random histories in real repositories: whatever git, copies and moves do, lines under review stay under review.

Every line that an agent or a person adds is unique, so it is known whose each line of a file is. The laws:

- a line that an undecided edit wrote is never recorded as accepted;
- an undecided line that is in a file can be decided on: rejecting its edit takes it out, or the conflict is named;
- rejecting an agent's edit takes no line away that the person typed;
- a line of the person's that an agent's call took away, and that git keeps nowhere, is taken out by a pending edit.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from subprocess import CalledProcessError, run
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given, settings, strategies as st

from objstore import (
    Action,
    AgentCall,
    CallInfo,
    Configuration,
    Conflicted,
    Decided,
    EditFilter,
    EditTakenOut,
    FileChanged,
    FileMayBeOlder,
    FileState,
    NothingToDo,
    OnExternal,
    Operation,
    Origin,
    Seq,
    Status,
    Unit,
)
from objstore.model.views import EditView
from objstore.values.clock import FILE_TIME_LAG_NS
from objstore.values.request_errors import EditAway, NoSuchName
from tests.support.git_project import GitProject
from tests.support.git_repository import git

NAMES: Final = ("a.py", "sub/b.py")
BASE: Final = [f"base {number}" for number in range(12)]


class History:
    """A repository in which an agent and a person work, and what is true of each line."""

    def __init__(self, folder: Path) -> None:
        """Make two files, and a branch beside main."""
        self.decided: set[str] = set()  # lines of agents that a person decided on
        self.number = 0
        self.said: list[str] = []
        self.project: Final = GitProject(folder)
        self.folder: Final = folder
        (folder / "sub").mkdir()
        for name in NAMES:
            self.project.write(name, "".join(f"{line} of {name}\n" for line in BASE))
        self.git("add", ".")
        self.git("commit", "-q", "-m", "base")
        self.git("branch", "other")
        self.project.look()
        Configuration(str(folder)).set("git.commit", "keep")

    def git(self, *arguments: str) -> bool:
        """Run git; return whether it succeeded."""
        self.said.append("git " + " ".join(arguments))
        try:
            self.project.git(*arguments)
        except CalledProcessError:
            return False
        return True

    def files(self) -> list[str]:
        found = [path for path in self.folder.rglob("*.py") if ".git" not in path.parts]
        return sorted(str(path.relative_to(self.folder)) for path in found)

    def file(self, choice: int) -> str | None:
        files = self.files()
        return files[choice % len(files)] if files else None

    def add_line(self, author: str, choice: int) -> None:
        """Insert a line into a file, or replace one by it."""
        name = self.file(choice)
        if name is None:
            return
        self.number += 1
        lines = self.project.text(name).splitlines()
        at = choice // 3 % (len(lines) + 1)
        is_replaced = choice % 4 == 0 and at < len(lines) and lines[at].startswith("base")
        lines[at : at + is_replaced] = [f"{author} {self.number}"]
        self.project.write(name, "".join(f"{line}\n" for line in lines))
        self.said.append(f"{author} {self.number} at {at} of {name}, replacing: {is_replaced}")

    def look(self) -> None:
        self.said.append("look")
        self.project.look()
        self.check()

    # ---- what happens

    def agent_edits(self, choice: int) -> None:
        name = self.file(choice)
        if name is not None:
            self.in_call(lambda: self.add_line("agent", choice), (name,))

    def agent_runs(self, choice: int) -> None:
        def run() -> None:
            self.add_line("agent", choice)
            if choice % 3 == 1:
                self.git("commit", "-q", "-am", "agent's")
            if choice % 3 == 2:
                self.git("stash", "-q")

        self.in_call(run, None)

    def agent_destroys(self, choice: int) -> None:
        before = self.lines("person")
        losses = (
            (("reset", "-q", "--hard"),),
            (("checkout", "-q", "-f", "main"),),
            (("stash", "-q"), ("stash", "drop", "-q")),
            (("checkout", "-q", "--", "."),),
            (("reset", "-q", "--hard", "HEAD~1"),),
            (("worktree", "remove", "--force", "inside"),),
        )
        commands = losses[choice % len(losses)]

        def run() -> None:
            for command in commands:
                self.git(*command)

        self.in_call(run, None)
        lost = before - self.lines("person")
        kept = self.kept_lines() if lost else set()
        pending = self.project.workspace.history.edits(EditFilter(status=Status.PENDING))
        taken = {
            line
            for view in pending
            for line in set(self.text(view.edit.before).splitlines()) - set(self.text(view.edit.after).splitlines())
        }
        assert lost <= kept | taken, (lost - kept - taken, self.said)

    def kept_lines(self) -> set[str]:
        """Return the lines of the person that a branch, the stash or the index has."""
        found: set[str] = set()
        refs = self.project.git("for-each-ref", "--format=%(refname)").split()
        for where in (*refs, "HEAD", "--cached"):
            with suppress(CalledProcessError):
                found |= set(self.project.git("grep", "-h", "-e", "^person", where).splitlines())
        return found

    def in_call(self, act: Callable[[], None], paths: tuple[str, ...] | None) -> None:
        call = AgentCall(conversation="c", id=os.urandom(4).hex(), tool="tool", paths=paths)
        self.project.workspace.hooks.begin(call)
        self.check()
        act()
        self.project.workspace.hooks.end(call)
        self.said.append("call ends")
        self.check()

    def person_types(self, choice: int) -> None:
        self.add_line("person", choice)

    def person_stashes(self, choice: int) -> None:
        self.git("stash", *(("-u",) if choice % 2 else ()), "-q")

    def person_pops(self, _: int) -> None:
        if not self.git("stash", "pop", "-q"):
            self.git("checkout", "-q", "-f", "HEAD", "--", ".")

    def person_commits(self, _: int) -> None:
        self.git("add", "-A", ".", ":!inside")
        self.git("commit", "-q", "-m", "work")

    def person_switches(self, choice: int) -> None:
        self.git("checkout", "-q", "other" if choice % 2 else "main")

    def person_merges(self, choice: int) -> None:
        if not self.git("merge", "-q", "-m", "merge", "other" if choice % 2 else "main"):
            self.git("merge", "--abort")

    def person_picks(self, choice: int) -> None:
        if not self.git("cherry-pick", "other" if choice % 2 else "main"):
            self.git("cherry-pick", "--abort")

    def person_rebases(self, choice: int) -> None:
        if not self.git("rebase", "-q", "--autostash", "other" if choice % 2 else "main"):
            self.git("rebase", "--abort")

    def person_takes_away_and_applies(self, choice: int) -> None:
        patch = self.folder.parent / "patch"
        patch.write_bytes(self.project.git("diff", "HEAD").encode())
        if not patch.stat().st_size:
            return
        self.git("checkout", "-q", "-f", "HEAD", "--", ".")
        if choice % 2:
            self.look()
        if choice % 3:
            self.add_line("person", choice)
        if choice % 5:
            self.look()
        self.git("apply", *(("--index",) if choice % 7 == 0 else ()), str(patch))

    def sparse_checkout(self, choice: int) -> None:
        """Let git leave out a folder, or bring it back, for a person or in an agent's call."""
        commands = (("set", "--no-cone", "/*", "!/sub/"), ("disable",))

        def run() -> None:
            self.git("sparse-checkout", *commands[choice % 2])

        if choice % 3:
            run()
        else:
            self.in_call(run, None)

    def worktree_inside(self, choice: int) -> None:
        """Add a linked worktree inside the workspace, or remove it, for a person or in an agent's call."""
        is_there = (self.folder / "inside").exists()

        def run() -> None:
            self.git("worktree", *(("remove",) if is_there else ("add", "-q", "-f", "--detach")), "inside")

        if choice % 3:
            run()
        else:
            self.in_call(run, None)

    def agent_merges(self, choice: int) -> None:
        self.in_call(lambda: self.person_merges(choice), None)

    def agent_commits_beside_head(self, choice: int) -> None:
        """Let an agent commit a line in a linked worktree elsewhere, on a branch that a person then merges or picks."""
        elsewhere = self.folder.parent / f"elsewhere{self.number}"

        def run() -> None:
            self.git("worktree", "add", "-q", "-f", "--detach", str(elsewhere), "HEAD")
            files = sorted(path for path in elsewhere.rglob("*.py") if ".git" not in path.parts)
            if files:
                self.number += 1
                path = files[choice % len(files)]
                lines = path.read_text().splitlines()
                lines.insert(choice % (len(lines) + 1), f"agent {self.number}")
                path.write_text("".join(f"{line}\n" for line in lines))
                git(elsewhere, "commit", "-q", "-am", "agent's")
                git(elsewhere, "branch", "-q", "-f", "agents")
                self.said.append(f"agent {self.number} beside HEAD in {path.name}")
            self.git("worktree", "remove", "--force", str(elsewhere))

        self.in_call(run, None)
        if choice % 2:
            self.add_line("person", choice)
            self.person_commits(choice)
        command = ("cherry-pick", "agents") if choice % 3 else ("merge", "-q", "-m", "merge", "agents")
        if not self.git(*command):
            self.git(command[0], "--abort")

    def person_copies(self, choice: int) -> None:
        name = self.file(choice)
        if name is None:
            return
        copy = self.folder.parent / "copy"
        shutil.copy(self.folder / name, copy)
        self.git("checkout", "-q", "HEAD", "--", name)
        self.look()
        if (self.folder / name).parent.is_dir():
            shutil.copy(copy, self.folder / name)

    def person_moves(self, choice: int) -> None:
        name = self.file(choice)
        if name is None:
            return
        self.number += 1
        target = f"moved{self.number}.py"
        self.said.append(f"mv {name} {target}")
        if choice % 2:
            self.git("mv", name, target)
        else:
            (self.folder / name).rename(self.folder / target)
        if choice % 3 == 0:
            self.project.write(target, self.project.text(target) + f"person {self.number}\n") if (
                self.folder / target
            ).exists() else None

    def folder_leaves_and_returns(self, choice: int) -> None:
        sub, outside = self.folder / "sub", self.folder.parent / "outside"
        if not sub.is_dir():
            return
        self.said.append("sub leaves")
        sub.rename(outside)
        self.look()
        if choice % 2:
            self.agent_edits(choice)
        self.look()
        if not sub.exists():
            outside.rename(sub)
            self.said.append("sub returns")
        else:
            shutil.rmtree(outside)

    def person_decides(self, choice: int) -> None:
        pending = self.project.workspace.history.edits(EditFilter(status=Status.PENDING))
        if not pending:
            return
        view = pending[choice % len(pending)]
        self.decide(view.seq, Action.ACCEPT if choice % 2 else Action.REJECT)

    def decide(self, seq: int, action: Action) -> bool:
        """Decide on an edit; return whether it was decided on. A refusal has a name."""
        self.look()
        workspace = self.project.workspace
        view, units = workspace.find_units(str(seq))
        if view.status is not Status.PENDING:
            return True
        self.said.append(f"{action.value} {seq}")
        typed = self.lines("person")
        try:
            decided = workspace.decide(action, units)
        except (EditTakenOut, EditAway, FileMayBeOlder):
            return False
        assert isinstance(decided, Decided | Conflicted | NothingToDo), self.said
        if not isinstance(decided, Decided):
            assert isinstance(decided, NothingToDo) or decided.conflicts, self.said
            return False
        texts = [set(self.text(state).splitlines()) for state in (view.edit.after, view.edit.before)]
        self.decided |= {line for line in texts[0] - texts[1] if line.startswith("agent")}
        if action is Action.REJECT and view.edit.origin is Origin.AGENT:
            assert typed <= self.lines("person"), self.said
        self.check()
        return True

    def text(self, state: FileState | None) -> str:
        return "" if state is None else self.project.workspace.history.text(state.blob).decode()

    def lines(self, author: str) -> set[str]:
        """Return the lines of an author that are in the files."""
        texts = (self.project.text(name).splitlines() for name in self.files())
        return {line for lines in texts for line in lines if line.startswith(author)}

    # ---- the laws

    def undecided(self) -> list[tuple[str, str, EditView]]:
        """Return the undecided lines of agents, each with its file and the edit that it is shown as."""
        found: list[tuple[str, str, EditView]] = []
        for name in self.files():
            try:
                text, blamed = self.project.workspace.history.blame(name)
            except NoSuchName:  # not recorded yet
                continue
            lines = text.decode().splitlines()
            for each in blamed:
                own = lines[each.start : each.start + each.count]
                wanted = [line for line in own if line.startswith("agent") and line not in self.decided]
                assert not wanted or (each.unit is not None and each.view is not None), (name, wanted, self.said)
                if each.unit is not None and each.view is not None:
                    found += [(name, line, each.view) for line in wanted]
                    status = each.view.units[each.unit.hunk]
                    origin = each.view.edit.origin
                    assert not wanted or status is Status.PENDING, (name, wanted, str(each.unit), origin, self.said)
        return found

    def check(self) -> None:
        """Hold that no undecided line of an agent is accepted."""
        self.undecided()

    def end(self) -> None:
        """Hold that each undecided line can be decided on."""
        self.look()
        for name, line, view in self.undecided():
            if line not in self.decided and self.decide(view.seq, Action.REJECT):
                path = self.folder / name
                assert not path.exists() or line not in path.read_text().splitlines(), (name, line, self.said)
        assert self.project.has_no_faults()


STEPS: Final = (
    History.agent_edits,
    History.agent_edits,
    History.agent_runs,
    History.agent_destroys,
    History.person_types,
    History.person_types,
    History.person_stashes,
    History.person_pops,
    History.person_commits,
    History.person_switches,
    History.person_merges,
    History.person_picks,
    History.person_rebases,
    History.person_takes_away_and_applies,
    History.sparse_checkout,
    History.worktree_inside,
    History.agent_merges,
    History.agent_commits_beside_head,
    History.person_copies,
    History.person_moves,
    History.folder_leaves_and_returns,
    History.person_decides,
)


@settings(deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1000), st.booleans()), min_size=3, max_size=14))
def test_lines_under_review_stay_under_review_whatever_git_does(
    steps: list[tuple[Callable[[History, int], None], int, bool]],
) -> None:
    with TemporaryDirectory() as folder:
        history = History(Path(folder) / "project")
        with closing(history.project):
            for act, choice, is_seen in steps:
                history.said.append(f"-- {act.__name__} {choice}")
                act(history, choice)
                if is_seen:
                    history.look()
            history.end()


# ---- single cases


@pytest.fixture
def project(tmp_path: Path) -> Iterator[GitProject]:
    with closing(GitProject(tmp_path / "project")) as project:
        yield project


FIRST: Final = "one\ntwo 0\nthree\nfour\nfive\n"
AGENTS: Final = FIRST.replace("three", "agent's three")


def seen(project: GitProject) -> dict[int, tuple[str, str]]:
    """Return origin and status of every edit."""
    edits = project.workspace.history.edits(EditFilter())
    return {view.seq: (view.edit.origin.value, view.status.value) for view in edits}


@pytest.mark.parametrize("conversation", ["", "c", "d"], ids=["a person", "the same agent", "another agent"])
def test_a_folder_that_leaves_and_returns_is_no_edit(project: GitProject, conversation: str) -> None:
    (project.folder / "sub").mkdir()
    project.write("sub/a.txt", FIRST)
    project.look()
    project.agent_writes("sub/a.txt", AGENTS)
    before, lines = seen(project), project.workspace.history.blame("sub/a.txt")
    outside = project.folder.parent / "outside"
    time.sleep(FILE_TIME_LAG_NS / 1e9)
    (project.folder / "sub").rename(outside)
    project.look()
    call = AgentCall(conversation=conversation, id="mv", tool="Bash", paths=None)
    if conversation:
        project.workspace.hooks.begin(call)
    outside.rename(project.folder / "sub")
    if conversation:
        project.workspace.hooks.end(call)
    project.look()
    after = seen(project)
    assert {seq: after[seq] for seq in before} == before
    assert (len(after), after[3]) == (3, ("external", "away"))  # that it was gone
    assert project.workspace.history.blame("sub/a.txt") == lines
    project.reject(2)
    assert project.text("sub/a.txt") == FIRST
    assert project.has_no_faults()


def test_a_file_of_the_baseline_that_leaves_and_returns_is_as_it_was(project: GitProject) -> None:
    outside = project.folder.parent / "outside"
    (project.folder / "0.txt").rename(outside)
    project.look()
    outside.rename(project.folder / "0.txt")
    project.look()
    assert seen(project) == {1: ("external", "away")}


def test_an_agent_that_brings_back_what_a_person_deleted_has_an_edit(project: GitProject) -> None:
    (project.folder / "0.txt").unlink()
    project.look()
    project.agent_writes("0.txt", FIRST)
    assert seen(project) == {1: ("external", "accepted"), 2: ("agent", "pending")}


def test_lines_under_review_are_kept_through_a_move_with_a_change(project: GitProject) -> None:
    project.agent_writes("0.txt", AGENTS)
    (project.folder / "0.txt").unlink()
    project.write("moved.txt", AGENTS + "my line\n")
    project.look()
    assert seen(project)[1] == ("agent", "pending")
    project.reject(1)
    assert project.text("moved.txt") == FIRST + "my line\n"
    assert project.has_no_faults()


def test_a_copy_of_lines_under_review_awaits_review(project: GitProject) -> None:
    project.agent_writes("0.txt", AGENTS)
    project.write("copy.txt", AGENTS)
    project.look()
    assert seen(project) == {1: ("agent", "pending"), 2: ("unattributed", "pending")}
    (view,) = [view for view in project.workspace.history.edits(EditFilter()) if view.seq == 2]
    assert view.edit.notes["candidates"] == "c"


@pytest.mark.parametrize("brings", ["cherry-pick", "the person"])
def test_lines_of_a_file_that_is_gone_await_review_in_a_copy_of_it(project: GitProject, brings: str) -> None:
    Configuration(str(project.folder)).set("git.commit", "keep")
    project.git("branch", "agents")
    project.git("rm", "-q", "0.txt")
    project.git("commit", "-q", "-m", "gone")
    project.look()
    project.write("copy.txt", FIRST + "my line\n")
    project.git("add", ".")
    project.git("commit", "-q", "-m", "copy")
    project.look()
    project.git("checkout", "-q", "agents")
    project.look()
    project.agent_writes("0.txt", AGENTS)
    project.git("commit", "-q", "-am", "work")
    project.look()
    project.git("checkout", "-q", "-")
    project.look()
    if brings == "cherry-pick":
        project.git("cherry-pick", "agents")
    else:
        project.write("copy.txt", AGENTS + "my line\nmy last\n")
    project.look()
    assert project.text("copy.txt").startswith(AGENTS)
    newest = [view for view in project.workspace.history.edits(EditFilter()) if view.edit.path == b"copy.txt"][1:]
    assert (newest[0].edit.origin, newest[0].status) == (Origin.UNATTRIBUTED, Status.PENDING)
    assert newest[0].edit.notes["candidates"] == "c"
    assert [view.status for view in newest[1:]] == [Status.ACCEPTED] * (brings == "the person")
    project.reject(newest[0].seq)
    assert project.text("copy.txt").startswith(FIRST + "my line\n")
    assert project.has_no_faults()


@pytest.mark.parametrize("command", ["mv 0.txt x.txt", "cp 0.txt x.txt", "mv x.txt t; mv 0.txt x.txt; mv t 0.txt"])
@pytest.mark.parametrize("typed", ["", "my own line\n"])
def test_lines_under_review_that_a_person_puts_over_another_file_await_review_there(
    project: GitProject, command: str, typed: str
) -> None:
    project.write("x.txt", "".join(f"line {number}\n" for number in range(9)))
    project.look()
    project.agent_writes("0.txt", AGENTS)
    run(["/bin/sh", "-c", command], cwd=project.folder, check=True)
    project.write("x.txt", AGENTS + typed)
    project.look()
    views = project.workspace.history.edits(EditFilter(status=Status.PENDING))
    (view,) = [view for view in views if view.edit.path == b"x.txt"]
    assert (view.edit.origin, view.edit.added) == (Origin.UNATTRIBUTED, AGENTS.count("agent"))
    assert view.edit.notes["candidates"] == "c"
    project.reject(view.seq)
    assert [line for line in AGENTS.splitlines() if line not in project.text("x.txt").splitlines()] == [
        line for line in AGENTS.splitlines() if "agent" in line
    ]
    assert project.text("x.txt").endswith(typed)
    assert project.has_no_faults()


@pytest.mark.parametrize("is_back", [False, True], ids=["away", "and back"])
def test_a_file_that_a_person_renames_keeps_its_pending_edits(project: GitProject, *, is_back: bool) -> None:
    project.agent_writes("0.txt", AGENTS)
    (project.folder / "0.txt").rename(project.folder / "renamed.txt")
    project.look()
    name = "renamed.txt"
    if is_back:
        name = "0.txt"
        (project.folder / "renamed.txt").rename(project.folder / name)
        project.look()
    edits = list(project.workspace.history.edits(EditFilter()))
    assert [view.edit.operation for view in edits[1:]] == [Operation.MOVE] * (1 + is_back)
    assert [view.status for view in edits] == [Status.PENDING, *[Status.ACCEPTED] * (1 + is_back)]
    project.reject(1)
    assert project.text(name) == FIRST
    assert project.has_no_faults()


def test_a_renamed_file_that_git_brings_awaits_review_if_lines_under_review_are_in_it(project: GitProject) -> None:
    Configuration(str(project.folder)).set("git.commit", "keep")
    project.git("branch", "other")
    project.agent_writes("0.txt", AGENTS)
    project.git("commit", "-q", "-am", "work")
    project.look()
    project.git("checkout", "-q", "other")
    project.git("rm", "-q", "0.txt")
    project.git("commit", "-q", "-m", "gone")
    project.look()
    project.git("checkout", "-q", "-")  # no look in between
    project.git("mv", "0.txt", "renamed.txt")
    project.git("commit", "-q", "-m", "renamed")
    project.look()
    newest = list(project.workspace.history.edits(EditFilter()))[-1]
    assert (newest.edit.path, newest.edit.origin) == (b"renamed.txt", Origin.UNATTRIBUTED)
    assert newest.status is Status.PENDING


def test_lines_under_review_that_a_clone_pulls_await_review_there(project: GitProject) -> None:
    Configuration(str(project.folder)).set("git.commit", "keep")
    project.git("clone", "-q", ".", "clone")
    project.look()
    project.agent_writes("0.txt", AGENTS)
    project.git("commit", "-q", "-am", "work")
    project.look()
    git(project.folder / "clone", "pull", "-q")
    project.look()
    newest = list(project.workspace.history.edits(EditFilter()))[-1]
    assert (newest.edit.path, newest.edit.origin) == (b"clone/0.txt", Origin.UNATTRIBUTED)
    assert newest.status is Status.PENDING


def test_lines_under_review_that_a_person_moves_await_review(project: GitProject) -> None:
    project.agent_writes("0.txt", AGENTS)
    project.write("0.txt", FIRST.replace("three\n", "") + "agent's three\n")
    project.look()
    pending = project.workspace.history.edits(EditFilter(status=Status.PENDING))
    lines, blamed = project.workspace.history.blame("0.txt")
    last = [each.view for each in blamed if each.start + each.count == lines.count(b"\n")]
    assert last[0] is not None
    assert last[0].seq in {view.seq for view in pending}


@pytest.mark.parametrize("moves", [False, True], ids=["git doesn't move", "git moves"])
def test_what_changes_while_a_path_is_ignored_is_unattributed_where_an_agent_works(
    project: GitProject, *, moves: bool
) -> None:
    project.git("rm", "-q", "2.txt")
    project.git("commit", "-q", "-m", "without")
    project.look()
    before = seen(project)
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    project.write(".casignore", "0.txt\n.casignore\n")
    project.workspace.hooks.end(call)
    project.write("0.txt", "changed\n")
    project.look()
    assert seen(project) == before
    (project.folder / ".casignore").unlink()
    if moves:
        project.git("checkout", "-q", "HEAD~1")
    project.agent_writes("1.txt", "other\n")
    project.look()
    found = {view.edit.path: view for view in project.workspace.history.edits(EditFilter())}
    assert found[b"0.txt"].edit.origin is Origin.UNATTRIBUTED
    assert found[b"0.txt"].status is Status.PENDING


@pytest.mark.parametrize("writer", ["agent", "person", "person without agents"])
def test_what_was_written_where_no_look_saw_it_is_a_persons_only_where_no_agent_was(
    project: GitProject, tmp_path: Path, writer: str
) -> None:
    (project.folder / "deep").mkdir()
    project.write("deep/f.txt", FIRST)
    project.look()
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    if writer != "person without agents":
        project.workspace.hooks.begin(call)
    if writer != "person":
        project.write("deep/f.txt", AGENTS)
    (project.folder / "deep").rename(tmp_path / "away")
    if writer != "person without agents":
        project.workspace.hooks.end(call)
        project.workspace.hooks.pause("c")
    project.look()
    if writer == "person":
        (tmp_path / "away" / "f.txt").write_text(AGENTS)
    (tmp_path / "away").rename(project.folder / "deep")
    project.look()
    newest = project.workspace.history.edits(EditFilter())[-1]
    assert newest.edit.path == b"deep/f.txt"
    assert newest.status is (Status.ACCEPTED if writer == "person without agents" else Status.PENDING)


def test_what_changes_while_a_path_is_ignored_is_a_persons_where_no_agent_was(project: GitProject) -> None:
    project.write(".casignore", "0.txt\n.casignore\n")
    project.look()
    project.write("0.txt", "changed\n")
    project.look()
    (project.folder / ".casignore").unlink()
    project.look()
    assert seen(project) == {1: ("external", "accepted")}


def test_an_edit_that_is_away_when_the_end_of_its_tool_is_reported_late_is_that_tools(project: GitProject) -> None:
    shell = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(shell)
    project.workspace.hooks.begin(AgentCall(conversation="c", id="2", tool="Write", paths=("1.txt",)))
    project.write("0.txt", AGENTS)
    project.look()
    assert seen(project) == {1: ("unattributed", "pending")}
    project.git("stash", "-q")
    project.look()
    assert seen(project)[1] == ("unattributed", "away")
    project.workspace.hooks.end(shell)
    project.git("stash", "pop", "-q")
    project.look()
    (view,) = project.workspace.history.edits(EditFilter(status=Status.PENDING))
    assert (view.owner, view.is_unattributed) == ("c", False)
    assert project.text("0.txt") == AGENTS


# ---- whoever finds what comes back


def find(project: GitProject, how: str, seq: int = 2) -> None:
    """Let something find what changed in 0.txt: a scan, a person's decision on an edit of it, or our server's tool."""
    if how == "scan":
        project.look()
    elif how == "decision":
        units = [Unit(Seq(seq), number) for number in range(2)]
        outcome = project.workspace.decide(Action.ACCEPT, units, who="me", on_external=OnExternal.KEEP)
        assert isinstance(outcome, Decided)
    else:
        with project.workspace.call(CallInfo(tool="write", conversation="ours")) as call:
            call.write("0.txt", call.read("0.txt").bytes + b"of the tool\n")
            call.commit()


def status_of(project: GitProject, line: str) -> str:
    """Return the status of the edit that wrote a line of 0.txt, and its origin."""
    text, blamed = project.workspace.history.blame("0.txt")
    at = text.decode().splitlines().index(line)
    (view,) = [each.view for each in blamed if each.start <= at < each.start + each.count]
    assert view is not None
    return f"{view.edit.origin.value} {view.status.value}"


@pytest.mark.parametrize("how", ["scan", "decision", "tool"])
def test_lines_under_review_that_come_back_elsewhere_are_never_accepted(project: GitProject, how: str) -> None:
    project.agent_writes("0.txt", AGENTS)
    project.agent_writes("0.txt", AGENTS + "agent's last\n")
    project.write("0.txt", "mine\n" + FIRST.replace("three\n", "") + "agent's last\nagent's three\n")
    find(project, how)
    assert status_of(project, "agent's three") == "unattributed pending"
    assert status_of(project, "agent's last") == ("agent accepted" if how == "decision" else "agent pending")
    assert status_of(project, "mine") == "external accepted"
    assert how != "tool" or status_of(project, "of the tool") == "agent pending"
    assert project.has_no_faults()


@pytest.mark.parametrize("how", ["scan", "tool"])
def test_an_edit_that_is_away_is_back_with_its_lines_whoever_finds_them(project: GitProject, how: str) -> None:
    project.agent_writes("0.txt", AGENTS)
    project.git("stash", "-q")
    project.look()
    assert seen(project)[1] == ("agent", "away")
    project.write("0.txt", AGENTS + "mine\n")
    find(project, how)
    assert seen(project)[1] == ("agent", "pending")
    assert (status_of(project, "agent's three"), status_of(project, "mine")) == ("agent pending", "external accepted")
    project.reject(1)
    assert project.text("0.txt") == FIRST + "mine\n" + ("of the tool\n" if how == "tool" else "")
    assert project.has_no_faults()


@pytest.mark.parametrize("how", ["scan", "tool"])
def test_a_new_file_with_lines_under_review_awaits_review_whoever_finds_it(project: GitProject, how: str) -> None:
    project.agent_writes("1.txt", AGENTS)
    project.git("rm", "-q", "--cached", "0.txt")
    (project.folder / "0.txt").unlink()
    project.look()
    project.write("0.txt", AGENTS)
    find(project, how)
    assert status_of(project, "agent's three").endswith("pending")
    assert how != "tool" or status_of(project, "of the tool") == "agent pending"
    assert project.has_no_faults()


@pytest.mark.parametrize("text", ["{new}{line}", "{line}{new}"])
def test_a_line_under_review_in_a_file_that_is_made_again_awaits_review(project: GitProject, text: str) -> None:
    project.agent_writes("0.txt", AGENTS)
    (project.folder / "0.txt").unlink()
    project.look()
    new = "".join(f"quite new {number}\n" for number in range(9))
    project.write("0.txt", text.format(new=new, line="agent's three\n"))
    project.look()
    assert status_of(project, "agent's three") == "unattributed pending"
    project.reject(3)
    assert not (project.folder / "0.txt").exists()
    assert project.has_no_faults()


def test_a_file_that_is_made_again_with_no_line_under_review_is_the_persons(project: GitProject) -> None:
    project.agent_writes("0.txt", AGENTS)
    (project.folder / "0.txt").unlink()
    project.look()
    project.write("0.txt", FIRST + "quite new\n")
    project.look()
    assert status_of(project, "quite new") == "external accepted"


def test_a_decision_that_was_shown_something_else_records_nothing_that_came_back(project: GitProject) -> None:
    project.agent_writes("0.txt", AGENTS)
    project.agent_writes("0.txt", AGENTS + "agent's last\n")
    project.write("0.txt", AGENTS + "agent's last\nshown\n")
    shown = project.workspace.review.external_changes()
    project.write("0.txt", FIRST + "agent's last\nagent's three\n")
    before = seen(project)
    with pytest.raises(FileChanged):
        project.workspace.decide(
            Action.ACCEPT, [Unit(Seq(2), 1)], who="me", on_external=OnExternal.KEEP, expected=shown
        )
    assert seen(project) == before


def test_a_file_in_place_of_a_deleted_link_begins_a_document_where_other_lines_come_back(project: GitProject) -> None:
    link = project.folder / "l"
    link.symlink_to("0.txt")
    project.look()
    link.unlink()
    project.look()
    project.agent_writes("0.txt", AGENTS)
    project.write("0.txt", FIRST.replace("three\n", "") + "agent's three\n")
    project.write("l", "text\n")
    with project.workspace.call(CallInfo(tool="write", conversation="ours")) as call:
        for name in ("0.txt", "l"):
            call.write(name, call.read(name).bytes + b"of the tool\n")
        call.commit()
    assert status_of(project, "agent's three") == "unattributed pending"
    found = {view.seq: view.edit for view in project.workspace.history.edits(EditFilter())}
    of_link = [edit for edit in found.values() if edit.path == b"l"]
    numbers = [int(edit.document) for edit in of_link]
    assert numbers == [int(of_link[at].seq) for at in (0, 0, 2, 2)]
    assert project.has_no_faults()
