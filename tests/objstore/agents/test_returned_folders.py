"""Folders that leave a workspace and return: what no one touched is as it was, and what no look read awaits review."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from objstore import Action, AgentCall, CallInfo, Decided, EditFilter, Seq, TurnInfo, Unit, Workspace
from objstore.model.results import EXTERNAL_CALL
from objstore.values.clock import FILE_TIME_LAG_NS
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.git_repository import git, new_repository

FIRST: Final = b"one\ntwo\nthree\nfour\nfive\n"
NEW: Final = b"new\n"


class Place:
    """A workspace with a folder that can leave it."""

    def __init__(self, workspace: Workspace, root: Path, away: Path) -> None:
        self.workspace: Final = workspace
        self.root: Final = root
        self.part: Final = root / "part"
        self.away: Final = away
        self._calls = 0

    def look(self) -> None:
        """Let a command look at the files."""
        self.workspace.hooks.notice(EXTERNAL_CALL)

    def shell(self, *acts: Callable[[], object]) -> None:
        """Do something in a shell of an agent, in a turn of its own."""
        self._calls += 1
        hooks = self.workspace.hooks
        call = AgentCall(conversation="c", id=str(self._calls), tool="Bash", paths=None)
        hooks.note_turn(TurnInfo(session="c", began=0, prompt="do it"), has_begun=True)
        hooks.begin(call)
        for act in acts:
            act()
        hooks.end(call)
        hooks.pause("c")

    def leave(self) -> None:
        """Move the folder out."""
        self.part.rename(self.away)

    def leave_unseen(self) -> None:
        """Move the folder out, and let a look find that."""
        self.leave()
        self.look()

    def come_back(self) -> None:
        """Move the folder back, and let a look find that."""
        self.away.rename(self.part)
        self.look()

    def write(self, text: bytes, name: str = "a") -> None:
        """Write a file of the folder, wherever that is now."""
        ((self.part if self.part.exists() else self.away) / name).write_bytes(text)

    def decide(self, action: Action, seq: int = 1) -> None:
        """Let a person decide on an edit."""
        (view,) = [each for each in self.workspace.history.edits(EditFilter()) if each.seq == seq]
        units = [Unit(Seq(seq), number) for number in range(len(view.units))]
        assert isinstance(self.workspace.decide(action, units, who="me"), Decided)

    def edits(self) -> list[str]:
        """Return what was recorded of the folder that is not away."""
        views = self.workspace.history.edits(EditFilter())
        return [
            f"{view.edit.operation.value} {view.edit.origin.value} {view.status.value}"
            for view in views
            if view.edit.path.startswith(b"part/") and view.status.value != "away"
        ]

    def status_of(self, line: bytes, path: str = "part/a") -> str:
        """Return whose a line is."""
        text, blamed = self.workspace.history.blame(path)
        at = text.splitlines().index(line)
        (part,) = [each for each in blamed if each.start <= at < each.start + each.count]
        if part.view is None or part.unit is None:
            return "baseline"
        return f"{part.view.edit.origin.value} {part.view.units[part.unit.hunk].value}"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    root = tmp_path / "root"
    (root / "part").mkdir(parents=True)
    for name in ("part/a", "other"):
        (root / name).write_bytes(FIRST)
    Workspace.init(root, UnsyncedDisk()).close()
    with closing(Workspace.open(root, UnsyncedDisk())) as workspace:
        place = Place(workspace, root, tmp_path / "away")
        place.look()
        yield place


def works_elsewhere(place: Place) -> None:
    """Let an agent work while the folder is away."""
    place.shell(lambda: (place.root / "other").write_bytes(FIRST + b"elsewhere\n"))


# ---- what no one touched


def test_a_folder_that_leaves_and_returns_is_as_it_was_though_an_agent_worked_meanwhile(place: Place) -> None:
    place.write(FIRST + NEW)
    place.look()
    place.leave_unseen()
    works_elsewhere(place)
    place.come_back()
    assert place.edits() == ["edit external accepted"]


def test_pending_lines_are_pending_still_when_their_folder_returns(place: Place) -> None:
    place.shell(lambda: place.write(FIRST + NEW))
    place.leave_unseen()
    works_elsewhere(place)
    place.come_back()
    assert place.edits() == ["edit agent pending"]


def test_an_edit_that_is_reopened_while_its_folder_is_away_is_pending_when_it_returns(place: Place) -> None:
    place.shell(lambda: place.write(FIRST + NEW))
    place.decide(Action.ACCEPT)
    place.leave_unseen()
    place.decide(Action.RESET)
    place.come_back()
    assert place.edits() == ["edit agent pending"]


def test_a_persons_folder_is_as_it_was_when_it_left_not_as_it_was_when_it_left_before(place: Place) -> None:
    """The edit is away when the folder leaves again: the state without a file that is then met had it accepted."""
    new_repository(place.root)
    git(place.root, "add", "other", "part")
    git(place.root, "commit", "-q", "-m", "first")
    place.look()
    place.write(FIRST + NEW)
    place.look()
    place.leave_unseen()
    place.come_back()
    git(place.root, "stash", "-q")
    place.look()
    place.leave_unseen()
    works_elsewhere(place)
    place.come_back()
    assert (place.part / "a").read_bytes() == FIRST
    assert place.edits() == []


@pytest.mark.parametrize("is_person", [True, False], ids=["a person's line", "an agent's line"])
def test_a_folder_is_as_it_was_though_git_wrote_its_file_while_it_was_away(place: Place, *, is_person: bool) -> None:
    new_repository(place.root)
    git(place.root, "add", "other", "part")
    git(place.root, "commit", "-q", "-m", "first")
    place.look()
    if is_person:
        place.write(FIRST + NEW)
    else:
        place.shell(lambda: place.write(FIRST + NEW))
    place.look()
    time.sleep(2 * FILE_TIME_LAG_NS / 1e9)
    place.leave_unseen()
    works_elsewhere(place)
    git(place.root, "checkout", "-q", "-f", "HEAD", "--", ".")
    place.look()
    shutil.rmtree(place.part)
    place.look()
    place.come_back()
    assert place.status_of(b"new") == ("external accepted" if is_person else "agent pending")


# ---- what no look has read


@pytest.mark.parametrize("text", ["as it was", "rejected"])
def test_what_a_shell_wrote_while_git_had_a_file_at_its_path_awaits_review(place: Place, text: str) -> None:
    place.shell(lambda: place.write(FIRST + NEW))
    place.decide(Action.REJECT if text == "rejected" else Action.ACCEPT)
    place.look()
    place.leave_unseen()
    place.part.mkdir()
    (place.part / "a").write_bytes(FIRST)
    place.look()
    shutil.rmtree(place.part)
    place.look()
    place.shell(lambda: place.write(FIRST + NEW))
    place.come_back()
    assert place.status_of(b"new") == "unattributed pending"


@pytest.mark.parametrize("has_left", [True, False], ids=["while it is away", "before it leaves"])
@pytest.mark.parametrize("text", ["new", "rejected", "accepted long ago", "of another file"])
def test_what_a_shell_wrote_where_no_look_saw_it_awaits_review(place: Place, text: str, *, has_left: bool) -> None:
    written = FIRST + NEW
    if text in {"rejected", "accepted long ago"}:
        place.shell(lambda: place.write(written))
        place.decide(Action.REJECT if text == "rejected" else Action.ACCEPT)
    if text == "of another file":
        (place.root / "other").write_bytes(written)
    place.look()
    place.write(FIRST)
    place.look()
    if has_left:
        place.leave_unseen()
        place.shell(lambda: place.write(written))
    else:
        place.shell(lambda: place.write(written), place.leave)
    place.come_back()
    assert place.status_of(b"new") == "unattributed pending"
    assert place.status_of(b"one") == "baseline"
    newest = place.workspace.history.edits(EditFilter())[-1]
    place.decide(Action.REJECT, newest.seq)
    assert (place.part / "a").read_bytes() == FIRST


def test_what_a_shell_replaced_in_a_folder_that_is_away_awaits_review(place: Place) -> None:
    def replaces() -> None:
        place.write(FIRST + NEW, "copy")
        (place.away / "copy").rename(place.away / "a")

    place.leave_unseen()
    place.shell(replaces)
    place.come_back()
    assert place.status_of(b"new") == "unattributed pending"


@pytest.mark.parametrize("has_left", [True, False], ids=["while it is away", "before it leaves"])
def test_a_file_that_a_shell_made_where_no_look_saw_it_awaits_review(place: Place, *, has_left: bool) -> None:
    if has_left:
        place.leave_unseen()
        place.shell(lambda: place.write(NEW, "b"))
    else:
        place.shell(lambda: place.write(NEW, "b"), place.leave)
    place.come_back()
    assert place.status_of(b"new", "part/b") == "unattributed pending"


def test_unread_text_awaits_review_though_a_person_accepted_that_its_file_seemed_to_move(place: Place) -> None:
    place.shell(
        lambda: shutil.copyfile(place.part / "a", place.root / "copy"), lambda: place.write(FIRST + NEW), place.leave
    )
    place.decide(Action.ACCEPT)
    place.come_back()
    assert place.status_of(b"new") == "unattributed pending"


@pytest.mark.parametrize("before", [Action.ACCEPT, None], ids=["accepted before", "pending before"])
def test_text_that_was_rejected_while_its_folder_was_away_awaits_review(place: Place, before: Action | None) -> None:
    place.shell(lambda: place.write(FIRST + NEW))
    if before is not None:
        place.decide(before)
    place.leave_unseen()
    place.decide(Action.REJECT)
    place.come_back()
    assert place.status_of(b"new") == "unattributed pending"


def test_unread_text_awaits_review_where_a_tool_of_the_server_finds_it(place: Place) -> None:
    place.leave_unseen()
    place.shell(lambda: place.write(FIRST + NEW))
    place.away.rename(place.part)
    with place.workspace.call(CallInfo(tool="write", conversation="ours")) as call:
        call.write("part/a", call.read("part/a").bytes + b"of the tool\n")
        call.commit()
    assert place.status_of(b"new") == "unattributed pending"


# ---- what is no return


def test_a_file_that_a_person_makes_at_a_path_that_was_free_is_the_persons(place: Place) -> None:
    works_elsewhere(place)
    (place.part / "a").unlink()
    place.look()
    place.write(FIRST + NEW)
    place.look()
    assert place.status_of(b"new") == "external accepted"


def test_a_folder_that_a_person_makes_at_a_path_that_was_free_is_the_persons(place: Place) -> None:
    works_elsewhere(place)
    place.leave_unseen()
    place.part.mkdir()
    for name in ("a", "b"):
        place.write(NEW, name)
    place.look()
    assert [place.status_of(b"new", f"part/{name}") for name in ("a", "b")] == ["external accepted"] * 2
