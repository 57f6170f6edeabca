"""Test external changes: a decision finds, keeps or discards them, or stops."""

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from objstore import (
    Action,
    CallInfo,
    Conflicted,
    Decided,
    EditTakenOut,
    EditView,
    ExternalChanges,
    FileChanged,
    FileExists,
    OnExternal,
    Operation,
    Origin,
    PathIsDirectory,
    PathIsSymlink,
    Seq,
    Status,
    Unit,
    Workspace,
    blob_id,
    check_store,
)
from objstore.upkeep.integrity.fsck import StorePart
from tests.support.damaged_stores import damage, lose
from tests.support.faulty_disk import CountdownDisk, PowerCut
from tests.support.scene import TEN, Scene, lines, writes

# ---- external changes


def after_hand_edit(scene: Scene) -> Seq:
    """Record a file and an edit, and let a person change another line."""
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    (scene.root / "f").write_bytes(TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n"))
    return edit


def test_external_change_stops_a_decision_without_an_answer(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    before = scene.everything()
    outcome = scene.decide(Action.REJECT, edit)
    assert isinstance(outcome, ExternalChanges)
    (change,) = outcome.changes
    assert change == scene.external()["f"]
    assert (change.path, change.recorded_mode, change.found_mode) == ("f", scene.mode("f"), scene.mode("f"))
    assert (scene.root / "f").read_bytes() == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")
    assert scene.everything() == before


def test_kept_external_changes_are_part_of_the_result(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == TEN.replace(b"9\n", b"nine\n")
    (external,) = outcome.external
    assert (external.edit.origin, external.status) == (Origin.EXTERNAL, Status.ACCEPTED)
    assert scene.external() == {}
    scene.accept(edit)
    assert scene.text("f") == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")


def test_discarded_external_changes_can_be_restored(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    typed = scene.text("f")
    assert typed is not None
    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == TEN
    assert scene.workspace.history.blob(blob_id(typed)) == typed
    (external,) = outcome.external
    assert external.status is Status.REJECTED
    scene.accept(external.seq)
    assert scene.text("f") == TEN.replace(b"9\n", b"nine\n")


def test_undo_restores_discarded_changes(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    typed = scene.text("f")
    scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD)
    scene.undo()
    assert scene.text("f") == typed


def test_external_edit_of_a_rejected_line_is_a_conflict(scene: Scene) -> None:
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
    assert scene.workspace.history.blob(blob_id(TEN.replace(b"2\n", b"twenty\n")))


def test_change_on_disk_between_question_and_answer_is_detected(scene: Scene) -> None:
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


def test_disappeared_external_change_is_detected(scene: Scene) -> None:
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
    shown = scene.workspace.review.external_changes()
    outcome = scene.decide(Action.REJECT, 2, 1, on_external=OnExternal.DISCARD, expected=shown)
    assert isinstance(outcome, Decided)


def test_a_changed_mode_is_an_external_change(scene: Scene) -> None:
    scene.write("f", TEN, mode=0o644)
    edit = scene.edit("f", b"2\n", b"two\n")
    (scene.root / "f").chmod(0o755)
    (change,) = scene.external().values()
    assert (change.recorded_mode, change.found_mode, change.recorded) == (0o644, 0o755, change.found)

    scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP)
    assert (scene.mode("f"), scene.text("f")) == (0o755, TEN)


def test_externally_deleted_file_is_restored_or_stays_deleted(scene: Scene) -> None:
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


def test_file_created_externally_at_a_deleted_path_is_an_external_change(scene: Scene) -> None:
    scene.write("f", TEN)
    gone = scene.delete("f")
    (scene.root / "f").write_bytes(b"by hand\n")
    assert scene.external()["f"].recorded is None
    before = scene.everything()
    assert isinstance(scene.decide(Action.REJECT, gone, on_external=OnExternal.KEEP), Conflicted)
    assert scene.everything() == before
    assert isinstance(scene.decide(Action.REJECT, gone, on_external=OnExternal.DISCARD), Decided)
    assert scene.text("f") == TEN
    assert scene.workspace.history.blob(blob_id(b"by hand\n")) == b"by hand\n"


def test_new_file_at_a_path_belongs_to_the_file_deleted_there_last(scene: Scene) -> None:
    scene.write("a", lines("one"))
    first_gone = scene.delete("a")
    scene.write("b", lines("two"))
    scene.move("b", "a")
    second_gone = scene.delete("a")
    (scene.root / "a").write_bytes(b"by hand\n")

    (change,) = scene.workspace.review.external_changes()
    outcome = scene.decide(Action.ACCEPT, first_gone, second_gone)
    assert isinstance(outcome, ExternalChanges)
    assert outcome.changes == (change,)
    outcome = scene.decide(Action.ACCEPT, first_gone, second_gone, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert len(outcome.external) == 1
    assert scene.text("a") == b"by hand\n"


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "in it").write_bytes(b"somebody's\n")  # an empty folder would be replaced


def replace_by_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("replace", [replace_by_folder, replace_by_link])
def test_file_replaced_by_a_folder_or_link_counts_as_deleted(scene: Scene, replace: Callable[[Path], None]) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    replace(scene.root / "f")

    assert scene.external()["f"].found is None
    assert [change.path for change in scene.workspace.review.status().external] == ["f"]
    assert isinstance(scene.decide(Action.ACCEPT, edit), ExternalChanges)
    before = scene.everything()
    with pytest.raises((FileExists, PathIsSymlink, PathIsDirectory)):
        scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD)
    assert scene.everything() == before
    with pytest.raises(EditTakenOut, match=f"{edit}:1 can't be accepted: .* because you took it out"):
        scene.decide(Action.ACCEPT, edit, on_external=OnExternal.KEEP)
    assert scene.everything() == before
    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert scene.files() == before[0]
    assert scene.external() == {}


def test_file_whose_folder_became_a_file_counts_as_deleted(scene: Scene) -> None:
    scene.write("d/f", TEN)
    (scene.root / "d" / "f").unlink()
    (scene.root / "d").rmdir()
    (scene.root / "d").write_bytes(b"not a folder")
    assert scene.external()["d/f"].found is None
    assert isinstance(scene.decide(Action.ACCEPT, 1), ExternalChanges)


def delete(path: Path) -> None:
    path.unlink()


def make_executable(path: Path) -> None:
    path.chmod(0o755)


def restore_recorded(path: Path) -> None:
    path.write_bytes(TEN.replace(b"2\n", b"two\n"))


@pytest.mark.parametrize("cascade", [False, True])
@pytest.mark.parametrize("meanwhile", [delete, make_executable, restore_recorded, replace_by_folder, replace_by_link])
@pytest.mark.parametrize("overlapping", [False, True])
def test_change_between_question_and_answer_writes_nothing(
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


# ---- lost recorded states

EXTERNAL_CONTENTS = [b"one\ntwo\nby hand\n", None]


def lose_last_states(scene: Scene, *paths: str) -> None:
    """Remove the last recorded states of some files from the store, as a salvage may."""
    names = [blob_id((scene.root / path).read_bytes()) for path in paths]
    scene.workspace.close()
    lose(scene.root, *names)
    scene.workspace = Workspace.open(scene.root, scene.disk())


def change_externally(scene: Scene, path: str, content: bytes | None) -> None:
    if content is None:
        (scene.root / path).unlink()
    else:
        (scene.root / path).write_bytes(content)


@pytest.fixture
def with_lost_state(scene: Scene) -> Scene:
    """Return a workspace with a file whose last recorded state is lost, and a later edit of another file."""
    scene.write("f", b"one\n")
    scene.write("f", b"one\ntwo\n")
    scene.write("g", TEN)
    lose_last_states(scene, "f")
    return scene


def summary_of(edits: Sequence[EditView]) -> list[tuple[Operation, bool, bytes | None]]:
    """Return the operation of each edit, whether it starts a document, and its path after."""
    return [
        (
            view.edit.operation,
            int(view.edit.seq) == int(view.edit.document),
            None if view.edit.after is None else view.edit.path,
        )
        for view in edits
    ]


@pytest.mark.parametrize("content", EXTERNAL_CONTENTS, ids=["changed", "gone"])
def test_file_with_a_lost_state_can_be_written_and_reviewed_after_any_change(
    with_lost_state: Scene, content: bytes | None
) -> None:
    change_externally(with_lost_state, "f", content)
    outcome = with_lost_state.call(writes("f", b"new\n"))
    external = [(Operation.DELETE, False, None), (Operation.CREATE, True, b"f")]
    assert summary_of(outcome.external) == (external if content else external[:1])
    assert with_lost_state.text("f") == b"new\n"
    later = with_lost_state.edit("f", b"new\n", b"newer\n")
    with_lost_state.reject(later)
    assert with_lost_state.text("f") == b"new\n"
    with_lost_state.reject(outcome.edits[0].seq)
    assert with_lost_state.text("f") == content
    assert {fault.part for fault in check_store(str(with_lost_state.root)).faults} == {
        StorePart.BLOBS,
        StorePart.DOCUMENTS,
    }
    with_lost_state.workspace.retention.purge([blob_id(b"one\ntwo\n")], force=True)
    assert check_store(str(with_lost_state.root)).faults == ()
    with_lost_state.accept(outcome.edits[0].seq, later)
    assert with_lost_state.text("f") == b"newer\n"


@pytest.mark.parametrize("content", EXTERNAL_CONTENTS, ids=["changed", "gone"])
def test_a_scan_records_a_persons_change_of_a_file_whose_recorded_state_is_lost(
    with_lost_state: Scene, content: bytes | None
) -> None:
    change_externally(with_lost_state, "f", content)
    change_externally(with_lost_state, "g", b"by hand\n")
    found = with_lost_state.workspace.record_changes(CallInfo(tool="Bash", conversation="c"))
    assert not found.skipped
    ended = [(Operation.DELETE, False, None), *([(Operation.CREATE, True, b"f")] if content else [])]
    assert summary_of(found.edits) == [*ended, (Operation.EDIT, False, b"g")]
    assert not with_lost_state.workspace.record_changes(CallInfo(tool="Bash", conversation="c")).edits
    with_lost_state.write("f", b"new\n")
    with_lost_state.reopen()
    assert with_lost_state.text("f") == b"new\n"


def test_lost_bytes_are_stored_again_from_a_file_with_a_changed_mode(with_lost_state: Scene) -> None:
    (with_lost_state.root / "f").chmod(0o755)
    outcome = with_lost_state.call(writes("f", b"one\ntwo\nthree\n"))
    assert summary_of([*outcome.external, *outcome.edits]) == [
        (Operation.EDIT, False, b"f"),
        (Operation.REPLACE, False, b"f"),
    ]
    assert check_store(str(with_lost_state.root)).faults == ()
    with_lost_state.reject(2)
    assert (with_lost_state.text("f"), with_lost_state.mode("f")) == (b"one\nthree\n", 0o755)


@pytest.mark.parametrize("content", EXTERNAL_CONTENTS, ids=["changed", "gone"])
def test_killed_call_on_a_file_with_a_lost_state_is_whole_or_absent(
    with_lost_state: Scene, tmp_path: Path, content: bytes | None
) -> None:
    change_externally(with_lost_state, "f", content)
    with_lost_state.reopen()
    found = set[str]()
    for step in count():
        root = Path(shutil.copytree(with_lost_state.root, tmp_path / f"at {step}"))
        with suppress(PowerCut), Workspace.open(root, CountdownDisk(step)) as workspace:
            with workspace.call(CallInfo(tool="test")) as call:
                call.write("f", b"new\n")
                call.commit()
            found.add("done")
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            held = (root / "f").read_bytes() if (root / "f").exists() else None
            is_recorded = len(workspace.history.edits()) > len(with_lost_state.workspace.history.edits())
            assert held == (b"new\n" if is_recorded else content), step
            assert not (is_recorded and workspace.review.external_changes())
            found.add("whole" if is_recorded else "not at all")
        if "done" in found:
            break
    assert found == {"whole", "not at all", "done"}


def test_a_deleted_file_with_a_lost_state_does_not_block_its_path(scene: Scene) -> None:
    scene.write("d/f", b"one\n")
    scene.write("g", TEN)
    lose_last_states(scene, "d/f")
    (scene.root / "d/f").unlink()
    (scene.root / "d").rmdir()
    scene.write("d", b"a file\n")
    assert scene.text("d") == b"a file\n"


def test_lost_state_that_is_stored_again_repairs_the_history(with_lost_state: Scene) -> None:
    change_externally(with_lost_state, "f", b"by hand\n")
    with_lost_state.workspace.record_changes(CallInfo(tool="Bash", conversation="c"))
    with_lost_state.write("h", b"one\ntwo\n")
    assert check_store(str(with_lost_state.root)).faults == ()


def test_file_with_a_damaged_state_can_be_written(scene: Scene) -> None:
    scene.write("f", b"one\n")
    scene.write("g", TEN)
    scene.reopen()
    damage(scene.root, blob_id(b"one\n"))
    scene.reopen()
    change_externally(scene, "f", b"by hand\n")
    outcome = scene.call(writes("f", b"new\n"))
    assert summary_of(outcome.external) == [(Operation.DELETE, False, None), (Operation.CREATE, True, b"f")]
