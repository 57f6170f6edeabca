"""What git does to files is one event, edits come back with their bytes, and no agent's bytes are taken for git's."""

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from subprocess import CalledProcessError
from typing import Final

import pytest

from objstore import (
    Action,
    AgentCall,
    Configuration,
    Decided,
    EditFilter,
    Operation,
    Origin,
    Status,
    TurnInfo,
    Workspace,
)
from objstore.values.request_errors import EditAway
from tests.support.git_project import PERSON, GitProject
from tests.support.git_repository import git, new_repository
from tests.support.sampling import sampled_product


@pytest.fixture
def project(tmp_path: Path) -> Iterator[GitProject]:
    with closing(GitProject(tmp_path / "project")) as project:
        yield project


FEATURE = {f"{number}.txt": f"one\ntwo {number}\nthree\nfour\nfive\nsix of feature\n" for number in range(3)}
CHANGED = "one\nTWO 0\nthree\nfour\nfive\n"


def add_feature_branch(project: GitProject) -> None:
    """Create a branch on which every file differs, before anything is recorded of it."""
    project.git("checkout", "-q", "-b", "feature")
    for name, text in FEATURE.items():
        project.write(name, text)
    project.git("commit", "-q", "-am", "feature")
    project.git("checkout", "-q", "main")
    project.look()
    assert not project.statuses()


def test_a_branch_and_back_leaves_everything_as_it_was(project: GitProject) -> None:
    add_feature_branch(project)
    project.agent_writes("0.txt", CHANGED)
    project.agent_writes("new.txt", "new\n")
    project.agent_runs(("add", "."), ("commit", "-q", "-m", "work"))
    before, lines, events = project.statuses(), project.workspace.history.blame("0.txt"), project.events()
    assert set(before.values()) == {"pending"}
    project.git("checkout", "-q", "feature")
    project.look()
    assert project.statuses() == dict.fromkeys(before, "away")
    assert project.events() == [*events, "main → feature"]
    project.git("checkout", "-q", "main")
    project.look()
    assert project.events() == [*events, "main → feature", "feature → main"]
    assert (project.statuses(), project.workspace.history.blame("0.txt")) == (before, lines)
    edits = project.git_edits()
    for branch in ("feature", "main"):
        project.git("checkout", "-q", branch)
        project.look()
    assert (project.statuses(), project.git_edits()) == (before, edits)  # known by now
    project.reject(1)
    assert project.text("0.txt") == "one\ntwo 0\nthree\nfour\nfive\n"
    assert project.has_no_faults()


def test_an_edit_made_on_a_branch_is_away_on_the_other(project: GitProject) -> None:
    add_feature_branch(project)
    project.git("checkout", "-q", "feature")
    project.look()
    project.agent_writes("0.txt", FEATURE["0.txt"].replace("one", "ONE"))
    project.agent_runs(("commit", "-q", "-am", "work"))
    project.git("checkout", "-q", "main")
    project.look()
    (seq,) = project.statuses()
    assert project.statuses() == {seq: "away"}
    assert project.workspace.history.blame("0.txt")[0] == b"one\ntwo 0\nthree\nfour\nfive\n"
    project.git("checkout", "-q", "feature")
    project.look()
    assert project.statuses() == {seq: "pending"}
    project.reject(seq)
    assert project.text("0.txt") == FEATURE["0.txt"]


def test_a_commit_to_which_git_gives_the_second_before_its_call_began_is_the_agents(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    while True:
        call = AgentCall(conversation="c", id=os.urandom(4).hex(), tool="Bash", paths=None)
        second = int(time.time())
        project.workspace.hooks.begin(call)
        if second < time.time() < second + 0.1:
            break
        project.workspace.hooks.end(call)
    # The clock of whole seconds, which git reads, is behind by the time until the system's next tick.
    late = f"!GIT_COMMITTER_DATE='{second - 1} +0000' git commit -q -am work"
    project.git("-c", f"alias.late={late}", "late")
    project.workspace.hooks.end(call)
    assert project.git("log", "-1", "--format=%ct") == f"{second - 1}\n"
    assert project.statuses() == {1: "pending"}
    project.look()
    assert project.statuses() == {1: "pending"}


FIRST = "one\ntwo 0\nthree\nfour\nfive\n"


TEXTS: Final = {
    "the same line": (CHANGED, FIRST.replace("two 0", "zwei")),
    "fewer lines in both": ("one\nagent\nfive\n", "one\nbranch\nfive\n"),
    "all lines": ("a\nb\nc\n", "x\ny\nz\n"),
    "blocks with equal lines": (FIRST + "f {\n 1\n 2\n\n}\n", FIRST + "g {\n 3\n 4\n\n}\n"),
    "no file on the branch": (CHANGED, None),
    "deleted by the agent": (None, FIRST + "six\n"),
    "binary": ("\0a\n", "\0b\n"),
}
"""What the agent writes, and what is on another branch (None: no file)."""


@pytest.mark.parametrize(("texts", "kept"), sampled_product(list(TEXTS), ("committed", "stashed")))
def test_a_pending_edit_is_away_where_git_puts_a_text_that_was_never_recorded(
    project: GitProject, texts: str, kept: str
) -> None:
    written, on_branch = TEXTS[texts]
    is_committed = kept == "committed"
    project.git("checkout", "-q", "-b", "branch")
    project.put("0.txt", on_branch)
    project.git("commit", "-q", "-am", "branch")
    project.git("checkout", "-q", "main")
    project.look()
    project.agent_writes("0.txt", written)
    if is_committed:
        project.agent_runs(("commit", "-q", "-am", "work"))
    else:
        project.git("stash", "-q")
    project.git("checkout", "-q", "branch")
    project.look()
    assert project.statuses() == {1: "away"}
    with pytest.raises(EditAway):
        project.reject(1)
    assert on_branch is None or project.text("0.txt") == on_branch
    project.git("checkout", "-q", "main")
    if not is_committed:
        project.git("stash", "pop", "-q")
    project.look()
    assert project.statuses() == {1: "pending"}
    project.reject(1)
    assert project.text("0.txt") == FIRST
    assert project.has_no_faults()


def test_only_the_pending_edits_are_away_that_an_unknown_text_lacks(project: GitProject) -> None:
    """A colleague goes on from one commit of the agent, and changes one of the three lines that it added."""
    project.agent_writes("0.txt", FIRST + "six\nseven\neight\n")
    project.agent_runs(("commit", "-q", "-am", "first"), ("branch", "colleague"))
    for number in range(20):  # more states than are compared
        project.agent_writes("0.txt", project.text("0.txt").replace("one\n", f"{number}\none\n"))
    project.agent_runs(("commit", "-q", "-am", "second"))
    other = project.folder.parent / "colleague"
    git(project.folder, "clone", "-q", "-b", "colleague", ".", str(other))
    (other / "0.txt").write_text(FIRST + "six\nSEVEN\neight\n")
    git(other, "commit", "-q", "-am", "theirs")
    project.git("fetch", "-q", str(other), "colleague:refs/heads/theirs")
    project.git("checkout", "-q", "theirs")
    project.look()
    assert project.statuses() == {1: "pending"} | dict.fromkeys(range(2, 22), "away")
    assert project.text("0.txt") == FIRST + "six\nSEVEN\neight\n"
    assert project.has_no_faults()


def test_a_file_that_the_agent_and_a_branch_created_has_the_agents_edit_away_there(project: GitProject) -> None:
    project.git("checkout", "-q", "-b", "branch")
    project.write("new.txt", "branch\n")
    project.git("add", ".")
    project.git("commit", "-q", "-m", "branch")
    project.git("checkout", "-q", "main")
    project.agent_writes("new.txt", "agent\n")
    project.agent_runs(("add", "."), ("commit", "-q", "-m", "work"))
    project.git("checkout", "-q", "branch")
    project.look()
    assert (project.statuses(), project.text("new.txt")) == ({1: "away"}, "branch\n")
    project.git("checkout", "-q", "main")
    project.look()
    assert project.statuses() == {1: "pending"}
    project.reject(1)
    assert not (project.folder / "new.txt").exists()
    assert project.has_no_faults()


def test_a_stash_takes_pending_edits_away_and_brings_them_back(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.git("stash", "-q")
    project.look()
    assert project.statuses() == {1: "away"}
    project.git("stash", "pop", "-q")
    project.look()
    assert (project.statuses(), project.events()) == ({1: "pending"}, ["stash", "stash pop"])


def test_a_stash_takes_a_pending_move_away_and_brings_it_back(project: GitProject) -> None:
    project.agent_runs(("mv", "0.txt", "new.txt"), writes={"0.txt": CHANGED})
    assert project.statuses() == {1: "pending"}
    project.git("stash", "-q")
    project.look()
    assert project.statuses() == {1: "away"}
    project.git("stash", "pop", "-q")
    project.look()
    assert (project.statuses(), project.events()) == ({1: "pending"}, ["stash", "stash pop"])
    project.reject(1)
    assert project.text("0.txt") == FIRST
    assert not (project.folder / "new.txt").exists()


def test_a_hard_reset_takes_pending_edits_away(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.git("reset", "-q", "--hard")
    project.look()
    assert (project.statuses(), project.events()) == ({1: "away"}, ["reset"])


@pytest.mark.parametrize(
    ("commands", "event"),
    [
        ([("merge", "-q", "feature")], "merge feature"),
        ([("rebase", "-q", "feature")], "rebase"),
        ([("pull", "-q", ".", "feature")], "pull -q . feature"),
        ([("reset", "-q", "--hard", "feature")], "reset"),
        ([("checkout", "-q", "--detach", "feature")], None),
        ([("cherry-pick", "feature")], "cherry-pick"),
    ],
    ids=["merge", "rebase", "pull", "reset", "detached", "cherry-pick"],
)
def test_what_git_brings_is_one_event_and_awaits_no_review(
    project: GitProject, commands: list[tuple[str, ...]], event: str | None
) -> None:
    add_feature_branch(project)
    project.agent_writes("other.txt", "pending\n")
    for command in commands:
        project.git(*command)
    project.look()
    assert project.statuses() == {1: "pending"}
    assert len(project.events()) == 1
    assert event is None or project.events() == [event]
    assert project.git_edits() == 3
    assert project.text("0.txt") == FEATURE["0.txt"]


def test_what_a_person_typed_is_not_taken_for_gits(project: GitProject) -> None:
    add_feature_branch(project)
    project.git("checkout", "-q", "feature")
    project.write("0.txt", "typed\n")
    project.look()
    edits = {view.edit.path: view.edit.origin for view in project.workspace.history.edits(EditFilter())}
    assert edits == {b"0.txt": Origin.EXTERNAL, b"1.txt": Origin.GIT, b"2.txt": Origin.GIT}


def test_bytes_that_an_agent_wrote_unseen_and_committed_await_review(project: GitProject) -> None:
    project.agent_runs(
        ("add", "."),
        ("commit", "-q", "-m", "unseen"),
        ("checkout", "-q", "-b", "feature"),
        writes={"0.txt": "agent\n", "made.txt": "agent\n"},
    )
    assert set(project.statuses().values()) == {"pending"}
    assert len(project.statuses()) == 2
    assert project.git_edits() == 0


def test_bytes_that_an_agent_committed_on_another_branch_await_review_when_they_come(project: GitProject) -> None:
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    project.git("checkout", "-q", "-b", "feature")
    project.write("0.txt", "agent\n")
    project.git("rm", "-q", "1.txt")
    project.git("commit", "-q", "-am", "unseen")
    project.git("checkout", "-q", "main")
    project.workspace.hooks.end(call)
    assert not project.statuses()
    project.git("checkout", "-q", "feature")
    project.look()
    assert project.git_edits() == 0
    edits = {view.edit.path: view for view in project.workspace.history.edits(EditFilter())}
    assert {path: view.status.value for path, view in edits.items()} == {b"0.txt": "pending", b"1.txt": "pending"}
    assert {view.edit.notes["candidates"] for view in edits.values()} == {"c"}
    assert project.events() == ["commit", "main → feature"]


def test_a_persons_commit_accepts_the_edits_that_it_contains(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.agent_writes("1.txt", "all else\n")
    project.git("commit", "-q", "-m", "work", "0.txt")
    project.look()
    assert project.statuses() == {1: "accepted", 2: "pending"}
    commit = project.git("rev-parse", "HEAD").strip()
    (decision,) = [view.decision for view in project.workspace.history.decisions()]
    assert (decision.reason, decision.commit) == (f"committed in {commit[:7]}", commit)
    assert isinstance(project.workspace.review.undo(), Decided)
    assert project.statuses() == {1: "pending", 2: "pending"}
    project.git("commit", "-q", "--allow-empty", "-m", "unrelated")
    project.look()
    assert project.statuses() == {1: "pending", 2: "pending"}


def test_a_commit_of_some_lines_accepts_only_the_edits_with_these(project: GitProject) -> None:
    project.agent_writes("0.txt", "ONE\ntwo 0\nthree\nfour\nfive\n")
    project.agent_writes("0.txt", "ONE\ntwo 0\nthree\nfour\nFIVE\n")
    project.write("0.txt", "ONE\ntwo 0\nthree\nfour\nfive\n")
    project.git("add", "0.txt")
    project.write("0.txt", "ONE\ntwo 0\nthree\nfour\nFIVE\n")
    project.git("commit", "-q", "-m", "a part")
    project.look()
    assert project.statuses() == {1: "accepted", 2: "pending"}


def test_a_persons_commit_leaves_rejected_hunks_rejected(project: GitProject) -> None:
    project.agent_writes("0.txt", "ONE\ntwo 0\nthree\nfour\nFIVE\n")
    _, units = project.workspace.find_units("1:1")
    assert isinstance(project.workspace.decide(Action.REJECT, units), Decided)
    project.git("commit", "-q", "-am", "the rest")
    project.look()
    (edit,) = project.workspace.history.edits(EditFilter())
    assert project.text("0.txt") == "one\ntwo 0\nthree\nfour\nFIVE\n"
    assert [status.value for status in edit.units[1:]] == ["rejected", "accepted"]


@pytest.mark.parametrize("is_seen", [True, False], ids=["looked at", "found with the commit"])
def test_a_persons_commit_accepts_no_edit_that_the_person_overwrote(project: GitProject, *, is_seen: bool) -> None:
    agents = "one\ntwo 0\nagent\nfour\nFIVE\n"
    project.agent_writes("0.txt", agents.replace("agent", "agent's first"))
    project.agent_writes("0.txt", agents)
    project.write("0.txt", agents.replace("agent", "mine"))
    if is_seen:
        project.look()
    project.git("commit", "-q", "-am", "mine")
    project.look()
    first, *_ = project.workspace.history.edits(EditFilter())
    assert [status.value for status in first.units[1:]] == ["pending", "accepted"]
    assert project.statuses() == {1: "pending", 2: "pending", 3: "accepted"}
    project.write("0.txt", agents)  # as an editor's undo does
    project.look()
    assert project.statuses() == {1: "pending", 2: "pending", 3: "away"}


def test_a_persons_commit_accepts_what_the_agent_rewrote_itself(project: GitProject) -> None:
    for line in ("first", "second", "third"):
        project.agent_writes("0.txt", f"one\ntwo 0\n{line}\nfour\nfive\n")
    project.git("commit", "-q", "-am", "work")
    project.look()
    assert project.statuses() == {1: "accepted", 2: "accepted", 3: "accepted"}


def test_lines_under_review_that_git_brings_back_with_other_endings_await_review(project: GitProject) -> None:
    project.agent_writes("0.txt", "one\ntwo 0\nagent\nfour\nfive\n")
    project.agent_writes("new.txt", "agent's file\n")
    project.git("stash", "-q", "-u")
    project.git("config", "core.autocrlf", "true")
    project.look()
    project.git("stash", "pop", "-q")
    project.look()
    assert (project.folder / "0.txt").read_bytes() == b"one\r\ntwo 0\r\nagent\r\nfour\r\nfive\r\n"
    assert [writer_of(project, *of) for of in (("0.txt", b"agent\r"), ("new.txt", b"agent's file\r"))] == [
        (Origin.UNATTRIBUTED, "pending"),
        (Origin.UNATTRIBUTED, "pending"),
    ]


def test_a_persons_conversion_of_endings_leaves_the_agents_lines_to_be_rejected(project: GitProject) -> None:
    project.agent_writes("0.txt", "one\ntwo 0\nagent\nfour\nfive\n")
    (project.folder / "0.txt").write_bytes(b"one\r\ntwo 0\r\nagent\r\nmine\r\nfour\r\nfive\r\n")
    project.look()
    assert project.statuses() == {1: "pending", 2: "pending", 3: "accepted"}
    assert writer_of(project, "0.txt", b"agent\r") == (Origin.UNATTRIBUTED, "pending")
    units = [unit for seq in "12" for unit in project.workspace.find_units(seq)[1]]
    assert isinstance(project.workspace.decide(Action.REJECT, units), Decided)
    assert (project.folder / "0.txt").read_bytes() == b"one\r\ntwo 0\r\nthree\nmine\r\nfour\r\nfive\r\n"


def writer_of(project: GitProject, name: str, line: bytes) -> tuple[Origin, str]:
    """Return whose edit wrote a line, and that edit's status."""
    text, blamed = project.workspace.history.blame(name)
    at = text.split(b"\n").index(line)
    (view,) = [of.view for of in blamed if of.view is not None and of.start <= at < of.start + of.count]
    return view.edit.origin, view.status.value


def test_with_the_setting_keep_a_commit_accepts_nothing(project: GitProject) -> None:
    Configuration(str(project.folder)).set("git.commit", "keep")
    project.agent_writes("0.txt", CHANGED)
    project.git("commit", "-q", "-am", "work")
    project.look()
    assert project.statuses() == {1: "pending"}


def test_an_agents_commit_accepts_nothing_and_is_recorded(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.agent_runs(("commit", "-q", "-am", "work"))
    project.look()
    assert project.statuses() == {1: "pending"}
    (decision,) = [view.decision for view in project.workspace.history.decisions()]
    assert (decision.action, decision.conversation) == (Action.GIT, "c")
    assert decision.commit == project.git("rev-parse", "HEAD").strip()


def test_undo_looks_past_what_git_did(project: GitProject) -> None:
    add_feature_branch(project)
    project.agent_writes("other.txt", "agent\n")
    project.reject(1)
    for branch in ("feature", "main"):
        project.git("checkout", "-q", branch)
        project.look()
    outcome = project.workspace.review.undo()
    assert isinstance(outcome, Decided)
    assert project.text("other.txt") == "agent\n"


def test_repositories_below_the_workspace_are_watched(tmp_path: Path) -> None:
    inner = new_repository(tmp_path / "root" / "inner")
    (inner / "a.txt").write_text("one\n")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "first")
    git(inner, "checkout", "-q", "-b", "feature")
    (inner / "a.txt").write_text("two\n")
    git(inner, "commit", "-q", "-am", "second")
    with Workspace.init(tmp_path / "root") as workspace:
        workspace.hooks.notice(PERSON)
        git(inner, "checkout", "-q", "main")
        workspace.hooks.notice(PERSON)
        (view,) = workspace.history.edits(EditFilter())
        assert view.edit.origin is Origin.GIT


def test_a_workspace_below_the_repositorys_folder_is_understood(tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "repository")
    (repository / "sub").mkdir()
    (repository / "sub" / "a.txt").write_text("one\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "first")
    git(repository, "checkout", "-q", "-b", "feature")
    (repository / "sub" / "a.txt").write_text("two\n")
    git(repository, "commit", "-q", "-am", "second")
    with Workspace.init(repository / "sub") as workspace:
        workspace.hooks.notice(PERSON)
        git(repository, "checkout", "-q", "main")
        workspace.hooks.notice(PERSON)
        (view,) = workspace.history.edits(EditFilter())
        assert view.edit.origin is Origin.GIT


def test_names_that_are_not_text_are_understood(project: GitProject) -> None:
    names = [b"line\nfeed", b"\xff\xfe"]
    for name in names:
        (project.folder / os.fsdecode(name)).write_bytes(b"one\n")
    project.git("add", ".")
    project.git("commit", "-q", "-m", "names")
    project.look()
    recorded = len(project.statuses())
    project.git("checkout", "-q", "HEAD~1")
    project.look()
    project.git("checkout", "-q", "main")
    project.look()
    assert len(project.statuses()) == recorded
    assert len(project.events()) == 2


def test_without_git_changes_are_recorded_like_any_other(project: GitProject, monkeypatch: pytest.MonkeyPatch) -> None:
    add_feature_branch(project)
    project.git("checkout", "-q", "feature")
    monkeypatch.setenv("PATH", str(project.folder))
    project.look()
    origins = {view.edit.origin for view in project.workspace.history.edits(EditFilter())}
    assert (origins, project.events()) == ({Origin.EXTERNAL}, [])


def test_edits_that_a_commit_accepted_during_an_unannounced_shell_are_pending_again(project: GitProject) -> None:
    project.workspace.hooks.note_turn(TurnInfo(session="c", began=0, prompt="go"), has_begun=True)
    project.agent_writes("0.txt", CHANGED)
    project.git("commit", "-q", "-am", "by the agent's shell, or by the person")
    project.look()
    assert project.statuses() == {1: "accepted"}
    project.workspace.hooks.end(AgentCall(conversation="c", id="shell", tool="Bash", paths=None))
    assert project.statuses() == {1: "pending"}
    project.workspace.review.undo(who="me")
    assert project.statuses() == {1: "accepted"}
    assert project.has_no_faults()


LOSSES: Final = {
    "reset": (("reset", "-q", "--hard"),),
    "forced checkout": (("checkout", "-q", "-f", "main"),),
    "stash and drop": (("stash", "-q"), ("stash", "drop", "-q")),
    "reset to another branch": (("reset", "-q", "--hard", "feature"), ("reset", "-q", "--hard", "main")),
}


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "baseline only"])
@pytest.mark.parametrize("commands", LOSSES.values(), ids=LOSSES)
def test_rejecting_what_an_agents_git_took_away_brings_a_persons_lines_back(
    tmp_path: Path, commands: tuple[tuple[str, ...], ...], *, is_recorded: bool
) -> None:
    with closing(GitProject(tmp_path / "project")) as project:
        project.git("branch", "feature")
        if is_recorded:
            project.write("0.txt", CHANGED)
        else:
            other = tmp_path / "other"
            git(project.folder, "worktree", "add", "-q", "-f", str(other), "main")
            (other / "0.txt").write_text(CHANGED)
            project.close()
            project.open(other)
        project.look()
        project.agent_runs(*commands)
        assert project.text("0.txt") == FIRST
        (view,) = project.workspace.history.edits(EditFilter(status=Status.PENDING))
        assert (view.edit.origin, view.edit.conversation) == (Origin.AGENT, "c")
        project.reject(view.seq)
        assert project.text("0.txt") == CHANGED
        assert project.has_no_faults()


@pytest.mark.parametrize("keep", [("stash", "-q"), ("commit", "-q", "-am", "kept")], ids=["stash", "commit"])
def test_lines_that_git_keeps_are_away_after_an_agents_git(project: GitProject, keep: tuple[str, ...]) -> None:
    project.git("branch", "feature")
    project.write("0.txt", CHANGED)
    project.look()
    project.agent_runs(keep, ("checkout", "-q", "feature"))
    assert project.text("0.txt") == FIRST
    assert project.statuses() == {1: "away"}
    assert not project.workspace.history.edits(EditFilter(status=Status.PENDING))


def test_a_commit_that_an_agents_reset_leaves_without_a_name_is_that_calls_change(project: GitProject) -> None:
    project.write("0.txt", CHANGED)
    project.git("commit", "-q", "-am", "mine")
    project.look()
    project.agent_runs(("reset", "-q", "--hard", "HEAD~1"))
    (view,) = project.workspace.history.edits(EditFilter(status=Status.PENDING))
    project.reject(view.seq)
    assert project.text("0.txt") == CHANGED


AGENTS: Final = FIRST.replace("four", "agent's four")
MINE: Final = "my own line\n"


def commit_mine(project: GitProject) -> None:
    """Let the person change another line of the file, and commit it."""
    project.write("0.txt", project.text("0.txt") + MINE)
    project.git("commit", "-q", "-am", "mine")


HIDDEN_WORK: Final = {
    "a branch that is merged": (
        (("checkout", "-q", "-b", "agents"), ("commit", "-q", "-am", "work"), ("checkout", "-q", "main")),
        (("merge", "-q", "-m", "merge", "agents"),),
    ),
    "a branch that is picked": (
        (("checkout", "-q", "-b", "agents"), ("commit", "-q", "-am", "work"), ("checkout", "-q", "main")),
        (("cherry-pick", "agents"),),
    ),
    "a branch that is rebased onto": (
        (("checkout", "-q", "-b", "agents"), ("commit", "-q", "-am", "work"), ("checkout", "-q", "main")),
        (("rebase", "-q", "agents"),),
    ),
    "a stash that is popped": ((("stash", "-q"),), (("stash", "pop", "-q"),)),
}
"""What an agent's git does with text that no look has seen, and how the person brings it into a changed file."""


@pytest.mark.parametrize(("hides", "brings"), HIDDEN_WORK.values(), ids=HIDDEN_WORK)
def test_lines_that_an_agent_put_into_git_unseen_await_review_when_they_come(
    project: GitProject, hides: tuple[tuple[str, ...], ...], brings: tuple[tuple[str, ...], ...]
) -> None:
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    if hides[0][0] == "checkout":
        project.git(*hides[0])
    project.write("0.txt", AGENTS)
    for command in hides[1:] if hides[0][0] == "checkout" else hides:
        project.git(*command)
    project.workspace.hooks.end(call)
    assert project.text("0.txt") == FIRST
    assert not project.statuses()
    commit_mine(project)
    project.look()
    for command in brings:
        project.git(*command)
    project.look()
    assert project.text("0.txt") == AGENTS + MINE
    (view,) = project.workspace.history.edits(EditFilter(status=Status.PENDING))
    assert (view.edit.origin, view.edit.notes["candidates"]) == (Origin.UNATTRIBUTED, "c")
    project.reject(view.seq)
    assert project.text("0.txt") == FIRST + MINE
    assert project.has_no_faults()


def test_what_an_agent_only_staged_awaits_review_when_it_comes_into_the_file(project: GitProject) -> None:
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    project.write("0.txt", AGENTS)
    project.git("add", "0.txt")
    project.write("0.txt", FIRST)
    project.workspace.hooks.end(call)
    project.git("checkout", "--", "0.txt")
    project.look()
    (view,) = project.workspace.history.edits(EditFilter())
    assert (view.edit.origin, view.status) == (Origin.UNATTRIBUTED, Status.PENDING)


@pytest.mark.parametrize("moves", [("checkout", "-q", "-b", "other"), ("commit", "-q", "-m", "other", "1.txt")])
def test_what_an_agent_staged_stays_unread_while_head_moves(project: GitProject, moves: tuple[str, ...]) -> None:
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    project.write("0.txt", AGENTS)
    project.git("add", "0.txt")
    project.write("0.txt", FIRST)
    project.workspace.hooks.end(call)
    project.write("1.txt", MINE)
    project.git(*moves)
    project.look()
    project.git("checkout", "-q", "--", "0.txt")
    project.look()
    (view,) = project.workspace.history.edits(EditFilter(status=Status.PENDING))
    assert (view.edit.path, view.edit.origin) == (b"0.txt", Origin.UNATTRIBUTED)


@pytest.mark.parametrize("is_new", [False, True], ids=["a changed file", "a new file"])
def test_what_an_agent_staged_and_a_person_commits_unseen_awaits_review_when_it_comes(
    project: GitProject, *, is_new: bool
) -> None:
    name, before = ("new.txt", None) if is_new else ("0.txt", FIRST)
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    project.write(name, AGENTS)
    project.git("add", name)
    project.put(name, before)
    project.workspace.hooks.end(call)
    project.git("commit", "-q", "-m", "what is staged")
    project.look()
    project.git("checkout", "-q", "--", name)
    project.look()
    (view,) = project.workspace.history.edits(EditFilter())
    assert (view.edit.origin, view.status) == (Origin.UNATTRIBUTED, Status.PENDING)
    project.reject(view.seq)
    assert not (project.folder / name).exists() if is_new else project.text(name) == FIRST


@pytest.mark.parametrize("stages", [("add", "-A"), ("update-index", "-q", "--refresh")])
def test_a_person_who_commits_some_of_what_an_agent_staged_accepts_it(
    project: GitProject, stages: tuple[str, ...]
) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.agent_writes("1.txt", "an agent's\n")
    project.agent_runs(stages)
    project.git("reset", "-q")
    project.write("2.txt", FIRST + MINE + MINE)
    project.look()
    project.write("part", FIRST + MINE)
    blob = project.git("hash-object", "-w", "part").strip()
    (project.folder / "part").unlink()
    project.git("update-index", "--cacheinfo", f"100644,{blob},2.txt")
    project.git("add", "0.txt")
    project.git("commit", "-q", "-m", "some of it")
    project.look()
    assert project.statuses() == {1: "accepted", 2: "pending", 3: "accepted"}


@pytest.mark.parametrize("branch", [(), ("checkout", "-q", "-b", "agents")], ids=["here", "on another branch"])
def test_a_commit_is_the_agents_whatever_date_it_has(project: GitProject, branch: tuple[str, ...]) -> None:
    project.agent_writes("1.txt", "an agent's\n")
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    if branch:
        project.git(*branch)
    project.write("0.txt", AGENTS)
    dated = "!GIT_COMMITTER_DATE='2020-02-02T02:02:02 +0000' git commit -q -am work"
    project.git("-c", f"alias.dated={dated}", "dated")
    if branch:
        project.git("checkout", "-q", "main")
    project.workspace.hooks.end(call)
    project.look()
    if branch:
        project.git("merge", "-q", "-m", "merge", "agents")
        project.look()
    assert (project.text("0.txt"), project.text("1.txt")) == (AGENTS, "an agent's\n")
    assert set(project.statuses().values()) == {"pending"}
    assert not project.git_edits()


@pytest.mark.parametrize("name", ["sub/0.txt", "copy.txt", "2.txt"])
def test_what_an_agent_committed_unseen_awaits_review_under_any_name(project: GitProject, name: str) -> None:
    project.agent_runs(
        ("checkout", "-q", "-b", "agents"),
        ("-c", "alias.put=!sed -i s/four/agents/ 0.txt && git commit -q -am work", "put"),
        ("checkout", "-q", "main"),
    )
    if name == "sub/0.txt":
        project.git("read-tree", "--prefix=sub/", "-u", "agents")
    else:
        project.write(name, project.git("show", "agents:0.txt"))
    project.look()
    (view,) = project.workspace.history.edits(EditFilter(status=Status.PENDING))
    assert (view.edit.path, view.edit.origin) == (name.encode(), Origin.UNATTRIBUTED)
    assert writer_of(project, name, b"agents") == (Origin.UNATTRIBUTED, "pending")


@pytest.mark.parametrize("how", ["merges", "commits"])
def test_a_file_under_review_that_git_renames_keeps_its_pending_edits(project: GitProject, how: str) -> None:
    Configuration(str(project.folder)).set("git.commit", "keep")
    project.git("checkout", "-q", "-b", "renames")
    project.git("mv", "0.txt", "renamed.txt")
    project.git("commit", "-q", "-m", "a rename")
    project.git("checkout", "-q", "main")
    project.look()
    project.agent_writes("0.txt", AGENTS)
    project.agent_runs(("commit", "-q", "-a", "-m", "work"))
    if how == "merges":
        project.git("merge", "-q", "-m", "merge", "renames")
    else:
        project.git("mv", "0.txt", "renamed.txt")
        project.git("commit", "-q", "-m", "another rename")
    project.look()
    views = list(project.workspace.history.edits(EditFilter()))
    assert [(view.edit.operation, view.status) for view in views] == [
        (Operation.EDIT, Status.PENDING),
        (Operation.MOVE, Status.ACCEPTED),
    ]
    assert views[1].edit.origin is (Origin.GIT if how == "merges" else PERSON.origin)
    project.git("checkout", "-q", "HEAD~1")
    project.look()
    assert writer_of(project, "0.txt", b"agent's four") == (Origin.AGENT, "pending")
    project.git("checkout", "-q", "main")
    project.look()
    project.reject(1)
    assert project.text("renamed.txt") == FIRST
    assert project.has_no_faults()


def test_agents_lines_that_a_merge_brings_with_others_can_be_rejected(project: GitProject) -> None:
    project.agent_runs(
        ("checkout", "-q", "-b", "agents"),
        ("-c", "alias.put=!sed -i s/two/agents/ 0.txt && git commit -q -am work", "put"),
        ("checkout", "-q", "main"),
    )
    project.git("checkout", "-q", "-b", "mine")
    commit_mine(project)
    project.git("merge", "-q", "-m", "merge", "agents")
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "mine")
    project.look()
    (view,) = project.workspace.history.edits(EditFilter(status=Status.PENDING))
    assert (view.edit.origin, view.edit.notes["candidates"]) == (Origin.UNATTRIBUTED, "c")
    assert project.text("0.txt") == FIRST.replace("two", "agents") + MINE
    assert writer_of(project, "0.txt", b"agents 0") == (Origin.UNATTRIBUTED, "pending")
    project.reject(view.seq)
    assert project.text("0.txt") == FIRST + MINE
    assert project.has_no_faults()


def test_agents_lines_that_a_person_takes_while_typing_can_be_rejected(project: GitProject) -> None:
    project.agent_runs(
        ("checkout", "-q", "-b", "agents"),
        ("-c", "alias.put=!sed -i s/two/agents/ 0.txt && git commit -q -am work", "put"),
        ("checkout", "-q", "main"),
    )
    project.write("0.txt", project.git("show", "agents:0.txt") + MINE)
    project.look()
    (view,) = project.workspace.history.edits(EditFilter(status=Status.PENDING))
    assert view.edit.origin is Origin.UNATTRIBUTED
    project.reject(view.seq)
    assert project.text("0.txt") == FIRST + MINE
    assert project.has_no_faults()


@pytest.mark.parametrize("where", ["worktree", "plumbing"])
def test_commits_that_an_agent_made_beside_head_await_review_when_they_come(
    project: GitProject, tmp_path: Path, where: str
) -> None:
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    if where == "worktree":
        other = tmp_path / "linked"
        project.git("worktree", "add", "-q", "-b", "agents", str(other))
        (other / "0.txt").write_text(AGENTS)
        git(other, "commit", "-q", "-am", "work")
    else:
        (tmp_path / "text").write_text(AGENTS)
        blob = project.git("hash-object", "-w", str(tmp_path / "text")).strip()
        project.git("update-index", "--cacheinfo", f"100644,{blob},0.txt")
        tree = project.git("write-tree").strip()
        project.git("reset", "-q")
        project.git(
            "update-ref", "refs/heads/agents", project.git("commit-tree", "-p", "HEAD", "-m", "p", tree).strip()
        )
    project.workspace.hooks.end(call)
    commit_mine(project)
    project.look()
    project.git("merge", "-q", "-m", "merge", "agents")
    project.look()
    assert project.text("0.txt") == AGENTS + MINE
    (view,) = project.workspace.history.edits(EditFilter(status=Status.PENDING))
    assert view.edit.origin is Origin.UNATTRIBUTED
    project.reject(view.seq)
    assert project.text("0.txt") == FIRST + MINE


@pytest.mark.parametrize("is_agents", [True, False], ids=["an agent's", "a person's"])
def test_what_a_merge_with_conflicts_deletes_is_gits_or_awaits_review(
    project: GitProject, tmp_path: Path, *, is_agents: bool
) -> None:
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    if is_agents:
        project.workspace.hooks.begin(call)
    other = tmp_path / "linked"
    project.git("worktree", "add", "-q", "-b", "side", str(other))
    (other / "1.txt").unlink()
    (other / "0.txt").write_text(FIRST.replace("two 0", "zwei"))
    git(other, "commit", "-q", "-am", "work")
    if is_agents:
        project.workspace.hooks.end(call)
    project.write("0.txt", CHANGED)
    project.git("commit", "-q", "-am", "mine")
    project.look()
    with pytest.raises(CalledProcessError):
        project.git("merge", "-q", "side")
    project.look()
    (view,) = (each for each in project.workspace.history.edits(EditFilter()) if each.edit.path == b"1.txt")
    expected = (Origin.UNATTRIBUTED, Status.PENDING) if is_agents else (Origin.GIT, Status.ACCEPTED)
    assert (view.edit.origin, view.status) == expected


def test_what_an_agent_deletes_where_git_left_the_file_in_a_conflict_awaits_review(project: GitProject) -> None:
    project.git("checkout", "-q", "-b", "side")
    project.git("rm", "-q", "1.txt")
    project.write("0.txt", FIRST.replace("two 0", "zwei"))
    project.git("commit", "-q", "-am", "deleted")
    project.git("checkout", "-q", "main")
    project.write("1.txt", "mine\n")
    project.write("0.txt", CHANGED)
    project.git("commit", "-q", "-am", "mine")
    project.look()
    call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
    project.workspace.hooks.begin(call)
    with pytest.raises(CalledProcessError):
        project.git("merge", "-q", "side")
    assert project.text("1.txt") == "mine\n"
    (project.folder / "1.txt").unlink()
    project.workspace.hooks.end(call)
    pending = {view.edit.path: view.seq for view in project.workspace.history.edits(EditFilter(status=Status.PENDING))}
    assert pending.keys() == {b"0.txt", b"1.txt"}
    project.reject(pending[b"1.txt"])
    assert project.text("1.txt") == "mine\n"


def test_a_stash_that_a_later_call_drops_is_lost_by_that_call(project: GitProject) -> None:
    project.write("0.txt", CHANGED)
    project.look()
    project.agent_runs(("stash", "-q"))
    assert project.statuses() == {1: "away"}
    project.agent_runs(("stash", "drop", "-q"))
    (view,) = project.workspace.history.edits(EditFilter(status=Status.PENDING))
    assert (view.edit.origin, view.edit.notes["candidates"]) == (Origin.UNATTRIBUTED, "c")
    project.reject(view.seq)
    assert project.text("0.txt") == CHANGED
    assert project.has_no_faults()


def test_a_stash_that_a_person_drops_stays_away(project: GitProject) -> None:
    project.agent_writes("0.txt", CHANGED)
    project.git("stash", "-q")
    project.look()
    project.git("stash", "drop", "-q")
    project.look()
    assert project.statuses() == {1: "away"}


def test_a_link_that_git_writes_as_a_file_is_gits_and_what_an_agent_makes_of_it_is_pending(project: GitProject) -> None:
    project.git("config", "core.symlinks", "false")
    for branch, target in (("main", "0.txt"), ("feature", "1.txt")):
        if branch != "main":
            project.git("checkout", "-q", "-b", branch)
        project.write("link", target)
        name = project.git("hash-object", "-w", "link").strip()
        project.git("update-index", "--add", "--cacheinfo", f"120000,{name},link")
        project.git("commit", "-q", "-m", target)
        project.look()
    pending = project.statuses()
    project.git("checkout", "-q", "main")
    project.look()
    assert (project.folder / "link").is_file()
    assert project.text("link") == "0.txt"
    project.git("checkout", "-q", "feature")
    project.look()
    assert project.text("link") == "1.txt"
    assert "feature → main" in project.events()
    assert "main → feature" in project.events()
    assert project.statuses() == pending  # git's alone
    project.agent_writes("link", "2.txt")
    (made,) = project.statuses().keys() - pending.keys()
    assert project.statuses()[made] == "pending"
    project.reject(made)
    assert (project.text("link"), (project.folder / "link").is_symlink()) == ("1.txt", False)
    assert project.git("status", "--porcelain") == ""
    assert project.has_no_faults()
