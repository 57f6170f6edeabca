"""Test edits that are away, and the final states that every decision records."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from objstore import Action, Decided, Decision, EditAway, EditFilter, Status, Unit, blob_id
from objstore.model.records import WrittenFile
from tests.support.scene import TEN, Scene, lines

AWAY = Status.AWAY


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with closing(Scene(tmp_path / "workspace")) as scene:
        yield scene


def newest_decision(scene: Scene) -> Decision:
    return scene.workspace.history.decisions()[-1].decision


@pytest.mark.parametrize("action", [Action.ACCEPT, Action.REJECT, Action.RESET])
def test_deciding_on_what_is_away_is_refused_with_the_way_out(scene: Scene, action: Action) -> None:
    scene.write("f", lines("a b"))
    edit = scene.edit("f", b"a", b"A")
    scene.git("f", lines("a b"), {Unit(edit, 0): AWAY, Unit(edit, 1): AWAY})
    before = scene.everything()
    with pytest.raises(EditAway, match="git checkout") as refused:
        scene.decide(action, edit)
    assert refused.value.units == (f"{edit}:1",)
    assert scene.everything() == before


def test_an_edit_can_be_decided_on_again_when_git_brings_its_file_back(scene: Scene) -> None:
    scene.write("f", lines("a b"))
    edit = scene.edit("f", b"a", b"A")
    back = {Unit(edit, 0): Status.PENDING, Unit(edit, 1): Status.PENDING}
    scene.git("f", lines("a b"), dict.fromkeys(back, AWAY))
    assert [view.status for view in scene.workspace.history.edits(EditFilter(status=AWAY))] == [AWAY]
    assert scene.workspace.review.status().away == 1
    scene.git("f", lines("A b"), back)
    scene.reject(edit)
    assert scene.text("f") == lines("a b")


def test_other_edits_of_a_file_can_be_decided_on_while_one_is_away(scene: Scene) -> None:
    scene.write("f", TEN)
    two, nine = scene.edit("f", b"2\n", b"two\n"), scene.edit("f", b"9\n", b"nine\n")
    scene.git("f", TEN.replace(b"9\n", b"nine\n"), {Unit(two, 0): AWAY, Unit(two, 1): AWAY})
    scene.accept(nine)
    scene.reject(nine)
    assert scene.text("f") == TEN
    scene.undo()
    assert scene.text("f") == TEN.replace(b"9\n", b"nine\n")
    assert scene.view(two).status is AWAY
    scene.forget_index()
    assert scene.text("f") == TEN.replace(b"9\n", b"nine\n")
    assert scene.view(two).status is AWAY


def test_blame_does_not_name_what_is_away(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    scene.git("f", TEN, {Unit(edit, 0): AWAY, Unit(edit, 1): AWAY})
    content, blamed = scene.workspace.history.blame("f")
    assert content == TEN
    assert {each.unit.seq for each in blamed if each.unit is not None} == {1}


# ---- final states


def final_states(scene: Scene) -> dict[bytes | None, bytes]:
    return {each.path_after: each.after.blob for each in newest_decision(scene).written if each.after is not None}


def test_a_decision_that_changes_no_file_records_the_final_states(scene: Scene) -> None:
    one, two = scene.write("f", TEN), scene.write("g", b"g\n")
    outcome = scene.accept(one, two)
    assert outcome.files == ()
    assert newest_decision(scene).changed_files == ()
    assert final_states(scene) == {b"f": blob_id(TEN), b"g": blob_id(b"g\n")}
    state = newest_decision(scene).written[0].after
    assert newest_decision(scene).written[0] == WrittenFile(
        document=scene.view(one).edit.document, path_before=b"f", before=state, path_after=b"f", after=state
    )


def test_a_decision_on_two_files_that_changes_one_records_both(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    other = scene.write("g", b"g\n")
    scene.reject(edit)
    assert final_states(scene) == {b"f": blob_id(TEN)}
    outcome = scene.decide(Action.RESET, edit, other)
    assert isinstance(outcome, Decided)
    assert [each.path_after for each in outcome.files] == ["f"]
    assert final_states(scene) == {b"f": blob_id(TEN.replace(b"2\n", b"two\n")), b"g": blob_id(b"g\n")}


def test_a_decision_on_a_deletion_records_no_state_of_the_file(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.delete("f")
    scene.accept(edit)
    assert newest_decision(scene).written == ()
    scene.reject(edit)
    assert final_states(scene) == {b"f": blob_id(TEN)}


def test_history_is_the_same_with_decisions_that_change_no_file(scene: Scene) -> None:
    one = scene.write("f", TEN)
    two = scene.edit("f", b"2\n", b"two\n")
    for _ in range(3):
        scene.accept(one, two)
        scene.reset(one, two)
    assert scene.workspace.history.files_at(one)["f"].blob == blob_id(TEN)
    assert scene.workspace.history.find_state("f").blob == blob_id(TEN.replace(b"2\n", b"two\n"))
    content, _ = scene.workspace.history.blame("f")
    assert content == TEN.replace(b"2\n", b"two\n")
    scene.reject(two)
    scene.forget_index()
    assert scene.text("f") == TEN
