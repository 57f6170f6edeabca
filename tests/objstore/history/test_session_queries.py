"""Test the turns that calls record, and what a workspace says of sessions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore import (
    Action,
    AmbiguousName,
    CallAborted,
    CallInfo,
    DiskFailed,
    EditFilter,
    NoSuchName,
    Origin,
    Seq,
    Status,
    Turn,
    TurnInfo,
    TurnView,
    Unit,
    Workspace,
    check_store,
)
from tests.support.faulty_disk import UnsyncedDisk

ASKED = TurnInfo(session="run-1", began=1_000, prompt="Write a list", client="claude", model="large")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        yield workspace


def write(
    workspace: Workspace, path: str, content: bytes, turn: TurnInfo | None = ASKED, *, conversation: str = "run-1"
) -> Seq:
    with workspace.call(CallInfo(tool="write", conversation=conversation, turn=turn)) as call:
        call.write(path, content)
        return call.commit().edits[0].seq


def records(workspace: Workspace) -> list[str]:
    return [type(view.record).__name__ for view in workspace.history.records()]


def later(began: int, prompt: str = "", session: str = "run-1") -> TurnInfo:
    return TurnInfo(session=session, began=began, prompt=prompt, client="claude", model="large")


# ---- recording


def test_a_turn_is_recorded_before_its_first_edit_and_used_by_the_others(workspace: Workspace) -> None:
    write(workspace, "a", b"1\n")
    write(workspace, "b", b"1\n")
    assert records(workspace) == ["Turn", "Edit", "Edit"]
    assert [view.edit.turn for view in workspace.history.edits()] == [1, 1]
    write(workspace, "a", b"2\n", later(2_000))
    assert records(workspace)[3:] == ["Turn", "Edit"]
    assert workspace.history.edit(3).edit.turn == 2


def test_a_turn_is_found_again_by_another_process(workspace: Workspace, tmp_path: Path) -> None:
    write(workspace, "a", b"1\n")
    with Workspace.open(tmp_path, UnsyncedDisk()) as other:
        write(other, "b", b"1\n")
    write(workspace, "c", b"1\n")
    assert records(workspace) == ["Turn", "Edit", "Edit", "Edit"]


def test_turns_of_several_conversations_do_not_mix(workspace: Workspace) -> None:
    write(workspace, "a", b"1\n", conversation="x")
    write(workspace, "b", b"1\n", conversation="y")
    write(workspace, "c", b"1\n", conversation="x")
    write(workspace, "d", b"1\n", later(1_000, session="run-2"), conversation="x")
    assert [view.edit.turn for view in workspace.history.edits()] == [1, 2, 1, 3]


def test_a_call_without_a_turn_records_none(workspace: Workspace) -> None:
    seq = write(workspace, "a", b"1\n", None)
    assert records(workspace) == ["Edit"]
    assert workspace.history.edit(seq).edit.turn == 0


def test_a_dry_run_records_no_turn(workspace: Workspace) -> None:
    info = CallInfo(tool="write", conversation="run-1", turn=ASKED)
    with workspace.call(info, dry_run=True) as call:
        call.write("a", b"1\n")
        call.commit(dry_run=True)
    assert records(workspace) == []


def test_a_call_that_changes_nothing_records_no_turn(workspace: Workspace) -> None:
    write(workspace, "a", b"1\n", None)
    with workspace.call(CallInfo(tool="write", conversation="run-1", turn=ASKED)) as call:
        call.write("a", b"1\n")
        call.commit()
    assert records(workspace) == ["Edit"]


class Failing(UnsyncedDisk):
    """A disk on which one file can't be replaced."""

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        if name == "a":
            raise DiskFailed(name, "as the test says")
        return super().exchange(source_directory, source, directory, name)


def test_the_turn_of_a_call_that_was_rolled_back_is_used_by_the_next(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        write(workspace, "a", b"1\n", None)
    with Workspace.open(tmp_path, Failing()) as workspace, pytest.raises(CallAborted):
        write(workspace, "a", b"2\n")
    with Workspace.open(tmp_path, UnsyncedDisk()) as workspace:
        assert records(workspace) == ["Edit", "Turn", "Edit", "Void"]
        assert workspace.sessions.turn(1).seqs == ()
        write(workspace, "a", b"3\n")
        assert records(workspace)[4:] == ["Edit"]
        assert workspace.sessions.turn(1).seqs == (3,)
    assert check_store(str(tmp_path)).faults == ()


def test_a_long_prompt_is_cut(workspace: Workspace) -> None:
    write(workspace, "a", b"1\n", later(1, "x" * 70_000))
    (turn,) = [view.record for view in workspace.history.records() if isinstance(view.record, Turn)]
    assert len(turn.prompt) == 65_536


# ---- looking up


def test_a_turn_says_what_was_done_in_it(workspace: Workspace) -> None:
    first = write(workspace, "a", b"1\n2\n")
    second = write(workspace, "b", b"1\n")
    third = write(workspace, "a", b"1\n", later(2_000, "Shorter"))
    workspace.review.decide(Action.ACCEPT, [Unit(first, 0)], who="me")
    assert workspace.sessions.turns() == [
        TurnView(
            number=1,
            session=1,
            conversation="run-1",
            time=1_000,
            prompt="Write a list",
            client="claude",
            model="large",
            seqs=(first, second),
            paths=("a", "b"),
            added=3,
            removed=0,
            counts={Status.ACCEPTED: 1, Status.PENDING: 1},
        ),
        workspace.sessions.turn(2),
    ]
    assert (workspace.sessions.turn(2).seqs, workspace.sessions.turn(2).removed) == ((third,), 1)
    with pytest.raises(NoSuchName, match="turn"):
        workspace.sessions.turn(3)


def test_sessions_are_listed_with_their_first_prompt(workspace: Workspace) -> None:
    write(workspace, "a", b"1\n")
    write(workspace, "a", b"2\n", later(2_000, "Again"))
    write(workspace, "b", b"1\n", later(5, "Other", "run-2"), conversation="x")
    with workspace.call(CallInfo(tool="t", conversation="old", notes={"client": "gemini", "prompt": "Do it"})) as call:
        call.write("c", b"1\n")
        call.commit()
    found = workspace.sessions.sessions()
    assert [(view.number, view.name, view.client, view.prompt, view.turns, view.edits) for view in found] == [
        (1, "run-1", "claude", "Write a list", 2, 2),
        (2, "run-2", "claude", "Other", 1, 1),
        (3, "old", "gemini", "Do it", 0, 1),
    ]
    assert found[0].began == 1_000
    assert found[0].ended == workspace.history.edit(2).edit.time
    assert [view.number for view in workspace.sessions.turns(1)] == [1, 2]
    assert workspace.sessions.of_edits([1, 2, 3, 4, 9]) == {1: 1, 2: 1, 3: 2, 4: 3}


def test_a_session_is_found_by_number_name_or_the_beginning_of_its_name(workspace: Workspace) -> None:
    write(workspace, "a", b"1\n")
    write(workspace, "b", b"1\n", later(5, session="run-12"), conversation="x")
    write(workspace, "c", b"1\n", later(5, session="2f"), conversation="y")
    sessions = workspace.sessions
    assert [sessions.find_session(name).number for name in ("1", "run-1", "run-12", "2f", "2")] == [1, 1, 2, 3, 2]
    assert sessions.session(3) == sessions.find_session("2f")
    with pytest.raises(AmbiguousName):
        sessions.find_session("run")
    for missing in ("4", "walk", "", "\udc80"):
        with pytest.raises(NoSuchName):
            sessions.find_session(missing)


def test_edits_are_listed_by_turn_and_session(workspace: Workspace) -> None:
    one = write(workspace, "a", b"1\n")
    two = write(workspace, "a", b"2\n", later(2_000))
    three = write(workspace, "b", b"1\n", later(5, session="run-2"), conversation="x")
    write(workspace, "c", b"1\n", None, conversation="y")

    def seqs(wanted: EditFilter) -> list[int]:
        return [view.seq for view in workspace.history.edits(wanted)]

    assert seqs(EditFilter(turn=2)) == [two]
    assert seqs(EditFilter(session="1")) == [one, two]
    assert seqs(EditFilter(session="run-2")) == [three]
    assert seqs(EditFilter(session="1", turn=1, path="a")) == [one]
    assert seqs(EditFilter(turn=9)) == []
    with pytest.raises(NoSuchName):
        seqs(EditFilter(session="9"))


def test_edits_of_a_person_or_an_unknown_author_belong_to_no_session(workspace: Workspace, tmp_path: Path) -> None:
    write(workspace, "a", b"1\n")
    (tmp_path / "a").write_bytes(b"2\n")
    workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    with workspace.call(CallInfo(tool="restore", origin=Origin.PERSON)) as call:
        call.write("a", b"3\n")
        call.commit()
    assert workspace.sessions.of_edits([1, 2, 3]) == {1: 1}
    assert len(workspace.sessions.sessions()) == 1
