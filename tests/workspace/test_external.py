"""Changes from outside: what nobody recorded is seen, kept, discarded, or stops the decision."""

from collections.abc import Callable
from pathlib import Path

import pytest

from objstore import (
    Action,
    Conflicted,
    Decided,
    ExternalChanges,
    FileChanged,
    FileExists,
    OnExternal,
    Origin,
    PathIsDirectory,
    PathIsSymlink,
    Seq,
    Status,
    Unit,
    blob_id,
)
from tests.workspace.scene import TEN, Scene, lines

# ---- changes from outside


def after_hand_edit(scene: Scene) -> Seq:
    """Record a file and an edit, and let a person change another line."""
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    (scene.root / "f").write_bytes(TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n"))
    return edit


def test_without_an_answer_a_change_from_outside_stops_the_decision(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    before = scene.everything()
    outcome = scene.decide(Action.REJECT, edit)
    assert isinstance(outcome, ExternalChanges)
    (change,) = outcome.changes
    assert change == scene.external()["f"]
    assert (change.path, change.recorded_mode, change.found_mode) == ("f", scene.mode("f"), scene.mode("f"))
    assert (scene.root / "f").read_bytes() == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")
    assert scene.everything() == before


def test_kept_changes_from_outside_are_carried_through(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == TEN.replace(b"9\n", b"nine\n")
    (external,) = outcome.external
    assert (external.edit.origin, external.status) == (Origin.EXTERNAL, Status.ACCEPTED)
    assert scene.external() == {}
    scene.accept(edit)
    assert scene.text("f") == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")


def test_discarded_changes_from_outside_stay_retrievable(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    typed = scene.text("f")
    assert typed is not None
    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == TEN
    assert scene.workspace.blob(blob_id(typed)) == typed
    (external,) = outcome.external
    assert external.status is Status.REJECTED
    scene.accept(external.seq)
    assert scene.text("f") == TEN.replace(b"9\n", b"nine\n")


def test_undo_brings_back_what_was_discarded(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    typed = scene.text("f")
    scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD)
    scene.undo()
    assert scene.text("f") == typed


def test_a_hand_edit_of_a_rejected_line_is_a_conflict(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    (scene.root / "f").write_bytes(TEN.replace(b"2\n", b"twenty\n"))
    before = scene.everything()

    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Conflicted)
    assert [(c.unit.seq, [need.seq for need in c.needs]) for c in outcome.conflicts] == [(3, [edit])]
    assert scene.everything() == before

    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP, cascade=True)
    assert isinstance(outcome, Decided)
    assert outcome.cascaded == (Unit(Seq(3), 1),)
    assert scene.text("f") == TEN
    assert scene.workspace.blob(blob_id(TEN.replace(b"2\n", b"twenty\n")))


def test_a_disk_that_moves_between_question_and_answer_is_noticed(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    shown = scene.decide(Action.REJECT, edit)
    assert isinstance(shown, ExternalChanges)
    (scene.root / "f").write_bytes(b"all new\n")
    before = scene.everything()
    for on_external in (OnExternal.KEEP, OnExternal.DISCARD):
        with pytest.raises(FileChanged):
            scene.decide(Action.REJECT, edit, on_external=on_external, expected=shown.changes)
    assert scene.everything() == before

    shown = scene.decide(Action.REJECT, edit)
    assert isinstance(shown, ExternalChanges)
    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD, expected=shown.changes)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == TEN


def test_a_change_that_was_shown_and_is_gone_is_noticed(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    shown = scene.decide(Action.REJECT, edit)
    assert isinstance(shown, ExternalChanges)
    (scene.root / "f").write_bytes(TEN.replace(b"2\n", b"two\n"))
    with pytest.raises(FileChanged):
        scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP, expected=shown.changes)


def test_the_changes_shown_may_be_named_in_any_order(scene: Scene) -> None:
    scene.write("a", TEN)
    scene.write("b", TEN)
    for name in ("a", "b"):
        (scene.root / name).write_bytes(b"by hand\n")
    shown = scene.workspace.external_changes()
    outcome = scene.decide(Action.REJECT, 2, 1, on_external=OnExternal.DISCARD, expected=shown)
    assert isinstance(outcome, Decided)


def test_a_changed_mode_is_a_change_from_outside(scene: Scene) -> None:
    scene.write("f", TEN, mode=0o644)
    edit = scene.edit("f", b"2\n", b"two\n")
    (scene.root / "f").chmod(0o755)
    (change,) = scene.external().values()
    assert (change.recorded_mode, change.found_mode, change.recorded) == (0o644, 0o755, change.found)

    scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP)
    assert (scene.mode("f"), scene.text("f")) == (0o755, TEN)


def test_a_file_deleted_by_hand_comes_back_or_stays_gone(scene: Scene) -> None:
    scene.write("d/f", TEN)
    edit = scene.edit("d/f", b"2\n", b"two\n")
    (scene.root / "d" / "f").unlink()
    (scene.root / "d").rmdir()
    assert scene.external()["d/f"].found is None

    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP, dry_run=True)
    assert isinstance(outcome, Decided)
    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD)
    assert isinstance(outcome, Decided)
    assert scene.text("d/f") == TEN


def test_a_file_made_by_hand_where_one_was_deleted_is_a_change_from_outside(scene: Scene) -> None:
    scene.write("f", TEN)
    gone = scene.delete("f")
    (scene.root / "f").write_bytes(b"by hand\n")
    assert scene.external()["f"].recorded is None
    before = scene.everything()
    assert isinstance(scene.decide(Action.REJECT, gone, on_external=OnExternal.KEEP), Conflicted)
    assert scene.everything() == before
    assert isinstance(scene.decide(Action.REJECT, gone, on_external=OnExternal.DISCARD), Decided)
    assert scene.text("f") == TEN
    assert scene.workspace.blob(blob_id(b"by hand\n")) == b"by hand\n"


def test_only_the_newest_of_several_files_deleted_at_a_path_claims_what_is_made_there(scene: Scene) -> None:
    scene.write("a", lines("one"))
    first_gone = scene.delete("a")
    scene.write("b", lines("two"))
    scene.move("b", "a")
    second_gone = scene.delete("a")
    (scene.root / "a").write_bytes(b"by hand\n")

    (change,) = scene.workspace.external_changes()
    outcome = scene.decide(Action.ACCEPT, first_gone, second_gone)
    assert isinstance(outcome, ExternalChanges)
    assert outcome.changes == (change,)
    outcome = scene.decide(Action.ACCEPT, first_gone, second_gone, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert len(outcome.external) == 1
    assert scene.text("a") == b"by hand\n"


def replaced_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replaced_by_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("replace", [replaced_by_folder, replaced_by_link])
def test_something_else_in_a_files_place_counts_as_the_file_gone(scene: Scene, replace: Callable[[Path], None]) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    replace(scene.root / "f")

    assert scene.external()["f"].found is None
    assert [change.path for change in scene.workspace.status().external] == ["f"]
    assert isinstance(scene.decide(Action.ACCEPT, edit), ExternalChanges)
    before = scene.everything()
    with pytest.raises((FileExists, PathIsSymlink, PathIsDirectory)):
        scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD)
    assert scene.everything() == before
    outcome = scene.decide(Action.ACCEPT, edit, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert scene.files() == before[0]
    assert scene.external() == {}


def test_a_file_in_the_place_of_a_files_folder_counts_as_the_file_gone(scene: Scene) -> None:
    scene.write("d/f", TEN)
    (scene.root / "d" / "f").unlink()
    (scene.root / "d").rmdir()
    (scene.root / "d").write_bytes(b"not a folder")
    assert scene.external()["d/f"].found is None
    assert isinstance(scene.decide(Action.ACCEPT, 1), ExternalChanges)


def deleted(path: Path) -> None:
    path.unlink()


def made_executable(path: Path) -> None:
    path.chmod(0o755)


def put_back(path: Path) -> None:
    path.write_bytes(TEN.replace(b"2\n", b"two\n"))


@pytest.mark.parametrize("cascade", [False, True])
@pytest.mark.parametrize("meanwhile", [deleted, made_executable, put_back, replaced_by_folder, replaced_by_link])
@pytest.mark.parametrize("overlapping", [False, True])
def test_whatever_happens_between_question_and_answer_nothing_is_written(
    scene: Scene, meanwhile: Callable[[Path], None], *, overlapping: bool, cascade: bool
) -> None:
    edit = after_hand_edit(scene)
    if overlapping:
        (scene.root / "f").write_bytes(TEN.replace(b"2\n", b"mine\n"))
    shown = scene.decide(Action.REJECT, edit)
    assert isinstance(shown, ExternalChanges)
    meanwhile(scene.root / "f")
    before = scene.everything()
    for on_external in (OnExternal.KEEP, OnExternal.DISCARD):
        with pytest.raises(FileChanged):
            scene.decide(Action.REJECT, edit, on_external=on_external, expected=shown.changes, cascade=cascade)
    assert scene.everything() == before
