"""Test that whose a file is, and whether it is new, doesn't depend on how far the times of files are from the clock.

A file gets the time of the system's last tick: a few milliseconds ago, and more on a busy machine. A server that keeps
the files has a clock of its own.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from objstore import (
    Action,
    AgentCall,
    CallOutcome,
    Decided,
    FileMayBeOlder,
    Origin,
    TurnInfo,
    Unit,
    Workspace,
)
from objstore.model.results import EXTERNAL_CALL
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.hooked_agents import evidence, put_evidence

SHELL: Final = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
WRITER: Final = AgentCall(conversation="c", id="2", tool="Write", paths=("a.py",))
FIRST: Final = b"a = 1\n\n\nb = 2\n"
WRITTEN: Final = b"a=10\n\n\nb = 2\n"
FORMATTED: Final = b"a = 10\n\n\nb = 2\n"
SECOND: Final = 1_000_000_000
MORE_THAN_A_TICK: Final = 0.05
"""Seconds."""

clocks = pytest.mark.parametrize("ahead", [-SECOND, 0, SECOND], ids=["clock behind", "same clock", "clock ahead"])
"""How far the clock is ahead of the file system's (ns)."""


@contextmanager
def recorded(folder: Path) -> Iterator[Workspace]:
    """Make a workspace with one file, of which a baseline is taken."""
    folder.mkdir()
    (folder / "a.py").write_bytes(FIRST)
    with Workspace.init(folder, UnsyncedDisk()) as workspace:
        workspace.record_changes(EXTERNAL_CALL)
        yield workspace


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: int) -> Iterator[Workspace]:
    """Return a workspace whose files have times of another clock."""
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + ahead)
    with recorded(tmp_path / "project") as workspace:
        yield workspace


def prompt(workspace: Workspace) -> None:
    workspace.hooks.note_turn(TurnInfo(session="c", began=0, prompt="go"), has_begun=True)


def creation(workspace: Workspace, name: str) -> Unit:
    """Return the unit that creates a file, which is an agent's."""
    (view,) = (view for view in workspace.history.edits() if view.edit.path == name.encode())
    assert view.edit.origin is Origin.AGENT
    return Unit(view.seq, 0)


def is_removed(workspace: Workspace, name: str, *, by: str) -> bool:
    """Take out what an agent did; return whether that removes a file that it created."""
    if by == "rewind":
        assert isinstance(workspace.review.rewind_exactly(1), CallOutcome)
    else:
        try:
            assert isinstance(workspace.decide(Action.REJECT, [creation(workspace, name)]), Decided)
        except FileMayBeOlder:
            assert Path(workspace.root, name).exists()
    return not Path(workspace.root, name).exists()


@clocks
@pytest.mark.parametrize("by", ["reject", "rewind"])
@pytest.mark.parametrize("is_reported", [True, False], ids=["a prompt", "no prompt"])
def test_a_file_that_a_shell_makes_as_soon_as_its_turn_begins_is_new(
    workspace: Workspace, by: str, *, is_reported: bool
) -> None:
    if is_reported:
        prompt(workspace)
    workspace.hooks.begin(SHELL)
    Path(workspace.root, "new").write_bytes(b"new\n")
    workspace.hooks.end(SHELL)
    assert is_removed(workspace, "new", by=by)


@clocks
@pytest.mark.parametrize("by", ["reject", "rewind"])
def test_a_file_that_was_made_outside_before_the_prompt_and_moved_in_is_kept(
    workspace: Workspace, tmp_path: Path, by: str
) -> None:
    (tmp_path / "outside").write_bytes(b"person's\n")
    time.sleep(MORE_THAN_A_TICK)
    prompt(workspace)
    workspace.hooks.begin(SHELL)
    (tmp_path / "outside").rename(Path(workspace.root, "seen"))
    workspace.hooks.end(SHELL)
    assert not is_removed(workspace, "seen", by=by)


@clocks
def test_a_file_that_an_agent_moves_to_a_workspace_which_hears_of_the_turn_later_is_new(
    workspace: Workspace, tmp_path: Path
) -> None:
    with recorded(tmp_path / "other") as other:
        prompt(workspace)
        (tmp_path / "outside").write_bytes(b"agent's\n")
        time.sleep(MORE_THAN_A_TICK)
        turn = workspace.hooks.turn("c")
        assert turn is not None
        other.hooks.note_turn(turn, has_begun=True)
        other.hooks.begin(SHELL)
        (tmp_path / "outside").rename(Path(other.root, "moved"))
        other.hooks.end(SHELL)
        assert is_removed(other, "moved", by="reject")


@pytest.mark.parametrize("ahead", [0])
def test_a_file_may_be_older_than_a_turn_of_which_the_log_lacks_the_file_systems_time(workspace: Workspace) -> None:
    """The log of an earlier version does."""
    prompt(workspace)
    ((name, held),) = evidence(Path(workspace.root), "session-").items()
    del held["turn"]["since"]
    put_evidence(Path(workspace.root), name, held)
    workspace.hooks.begin(SHELL)
    Path(workspace.root, "new").write_bytes(b"new\n")
    workspace.hooks.end(SHELL)
    assert not is_removed(workspace, "new", by="reject")


@pytest.mark.parametrize("ahead", [0, SECOND], ids=["same clock", "clock ahead"])
def test_what_a_formatter_does_as_soon_as_a_tool_has_written_belongs_to_its_call(workspace: Workspace) -> None:
    path = Path(workspace.root, "a.py")
    prompt(workspace)
    workspace.hooks.begin(WRITER)
    path.write_bytes(WRITTEN)
    workspace.hooks.end(WRITER)
    path.write_bytes(FORMATTED)
    workspace.hooks.pause("c")
    assert [view.edit.origin for view in workspace.history.edits()] == [Origin.AGENT, Origin.FORMATTER]
