"""What changed since an edit, the growth of the store, and the lines of turns."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore import Action, CallInfo, NoSuchName, Seq, Status, TurnInfo, Unit, Workspace
from tests.support.faulty_disk import UnsyncedDisk


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        yield workspace


def write(workspace: Workspace, path: str, content: bytes, turn: TurnInfo | None = None) -> Seq:
    with workspace.call(CallInfo(tool="write", conversation="c", turn=turn)) as call:
        call.write(path, content)
        return call.commit().edits[0].seq


def differing(workspace: Workspace, seq: int, limit: int = 100) -> list[tuple[str | None, str | None]]:
    return [(each.path_before, each.path_after) for each in workspace.history.files_changed_since(seq, limit)]


# ---- files that differ since an edit


def test_files_that_differ_are_those_that_later_records_changed(workspace: Workspace) -> None:
    first = write(workspace, "a", b"1\n")
    second = write(workspace, "b", b"1\n")
    third = write(workspace, "a", b"2\n")
    with workspace.call(CallInfo(tool="move", conversation="c")) as call:
        call.move("b", "c")
        fourth = call.commit().edits[0].seq
    assert differing(workspace, first) == [("a", "a"), (None, "c")]
    assert differing(workspace, second) == [("a", "a"), ("b", "c")]
    assert differing(workspace, third) == [("b", "c")]
    assert differing(workspace, fourth) == []
    assert len(differing(workspace, first, 1)) == 1


def test_a_decision_makes_a_file_differ_until_it_is_undone(workspace: Workspace) -> None:
    write(workspace, "a", b"1\n")
    second = write(workspace, "a", b"2\n")
    workspace.decide(Action.REJECT, [Unit(second, 1)])
    (effect,) = workspace.history.files_changed_since(second, 9)
    assert effect.before is not None
    assert workspace.history.blob(effect.before) == b"2\n"
    assert effect.after is not None
    assert workspace.history.blob(effect.after) == b"1\n"
    workspace.review.undo()
    assert differing(workspace, second) == []


def test_what_an_edit_found_existed_before_it(workspace: Workspace, tmp_path: Path) -> None:
    first = write(workspace, "a", b"1\n")
    (tmp_path / "b").write_bytes(b"there\n")
    with workspace.call(CallInfo(tool="delete", conversation="c")) as call:
        call.delete("b")
        call.commit()
    assert differing(workspace, first) == [("b", None)]


def test_nothing_differs_since_an_edit_that_there_is_not(workspace: Workspace) -> None:
    with pytest.raises(NoSuchName):
        workspace.history.files_changed_since(1, 9)


def test_files_that_differ_are_as_all_files_at_both_moments_say(workspace: Workspace) -> None:
    for number in range(1, 25):
        write(workspace, f"f{number % 5}", b"%d\n" % number)
        if number % 6 == 0:
            view = workspace.history.edit(number - 2)
            units = [Unit(view.seq, hunk) for hunk in view.telling]
            workspace.decide(Action.REJECT, units, cascade=True)
    now = workspace.history.files_at()
    for seq in range(1, 25):
        then = workspace.history.files_at(seq)
        expected = {path for path in {*then, *now} if then.get(path) != now.get(path)}
        found = {path for pair in differing(workspace, seq) for path in pair if path is not None}
        assert found == expected, seq


# ---- growth, and lines by turn


def test_the_store_grows_up_to_its_size(workspace: Workspace) -> None:
    assert workspace.history.growth(10) == []
    for number in range(30):
        write(workspace, "a", b"%d\n" % number)
    grown = workspace.history.growth(10)
    assert len(grown) == 10
    assert grown == sorted(grown)
    assert 0 < grown[0][1] < grown[-1][1] <= workspace.retention.stored_bytes()
    assert len(workspace.history.growth(1_000)) == 30


def test_lines_are_counted_by_turn_and_status(workspace: Workspace) -> None:
    asked = TurnInfo(session="s", began=1_000, prompt="p")
    write(workspace, "a", b"1\n2\n", asked)
    second = write(workspace, "a", b"1\n3\n", asked)
    write(workspace, "b", b"1\n")
    workspace.decide(Action.ACCEPT, [Unit(second, 1)])
    found = {
        (each.turn, each.status): (each.edits, each.added, each.removed) for each in workspace.sessions.turn_lines()
    }
    assert found == {
        (1, Status.PENDING): (1, 2, 0),
        (1, Status.ACCEPTED): (1, 1, 1),
        (0, Status.PENDING): (1, 1, 0),
    }


def test_a_blob_is_mentioned_if_an_edit_has_it(workspace: Workspace) -> None:
    write(workspace, "a", b"1\n")
    (state,) = workspace.history.files_at().values()
    assert workspace.history.is_mentioned(state.blob)
    others = [blob for blob in workspace.history.blobs() if blob != state.blob]
    assert not any(map(workspace.history.is_mentioned, others))
