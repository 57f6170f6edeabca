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
from objstore.integrity.fsck import StorePart
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
    assert scene.workspace.history.blob(blob_id(TEN.replace(b"2\n", b"twenty\n")))


def test_a_change_on_disk_between_question_and_answer_is_noticed(scene: Scene) -> None:
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


def test_a_shown_change_that_is_gone_is_noticed(scene: Scene) -> None:
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


def test_a_file_created_by_hand_where_one_was_deleted_is_an_external_change(scene: Scene) -> None:
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


def test_only_the_newest_of_several_files_deleted_at_a_path_claims_what_is_made_there(scene: Scene) -> None:
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


def replaced_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "in it").write_bytes(b"somebody's\n")  # an empty one gives way


def replaced_by_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("replace", [replaced_by_folder, replaced_by_link])
def test_something_else_in_a_files_place_counts_as_the_file_gone(scene: Scene, replace: Callable[[Path], None]) -> None:
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


# ---- lost recorded states

BY_HAND = [b"one\ntwo\nby hand\n", None]


def lost(scene: Scene, *paths: str) -> None:
    """Have the store go on without the last recorded states of some files, as a salvage leaves it."""
    names = [blob_id((scene.root / path).read_bytes()) for path in paths]
    scene.workspace.close()
    lose(scene.root, *names)
    scene.workspace = Workspace.open(scene.root, scene.disk())


def by_hand(scene: Scene, path: str, content: bytes | None) -> None:
    if content is None:
        (scene.root / path).unlink()
    else:
        (scene.root / path).write_bytes(content)


@pytest.fixture
def bereft(scene: Scene) -> Scene:
    """Return a workspace with a file of which the last recorded state is lost, and something recorded after it."""
    scene.write("f", b"one\n")
    scene.write("f", b"one\ntwo\n")
    scene.write("g", TEN)
    lost(scene, "f")
    return scene


def told(edits: Sequence[EditView]) -> list[tuple[Operation, bool, bytes | None]]:
    """Return of edits what they did, whether they begin a document, and what they led to."""
    return [
        (
            view.edit.operation,
            int(view.edit.seq) == int(view.edit.document),
            None if view.edit.after is None else view.edit.path,
        )
        for view in edits
    ]


@pytest.mark.parametrize("content", BY_HAND, ids=["changed", "gone"])
def test_a_file_whose_recorded_state_is_lost_can_be_written_and_reviewed_whatever_a_hand_made_of_it(
    bereft: Scene, content: bytes | None
) -> None:
    by_hand(bereft, "f", content)
    outcome = bereft.call(writes("f", b"new\n"))
    external = [(Operation.DELETE, False, None), (Operation.CREATE, True, b"f")]
    assert told(outcome.external) == (external if content else external[:1])
    assert bereft.text("f") == b"new\n"
    later = bereft.edit("f", b"new\n", b"newer\n")
    bereft.reject(later)
    assert bereft.text("f") == b"new\n"
    bereft.reject(outcome.edits[0].seq)
    assert bereft.text("f") == content
    assert {fault.part for fault in check_store(str(bereft.root)).faults} == {StorePart.BLOBS, StorePart.DOCUMENTS}
    bereft.workspace.retention.purge([blob_id(b"one\ntwo\n")], force=True)
    assert check_store(str(bereft.root)).faults == ()
    bereft.accept(outcome.edits[0].seq, later)
    assert bereft.text("f") == b"newer\n"


@pytest.mark.parametrize("content", BY_HAND, ids=["changed", "gone"])
def test_a_scan_records_a_persons_change_of_a_file_whose_recorded_state_is_lost(
    bereft: Scene, content: bytes | None
) -> None:
    by_hand(bereft, "f", content)
    by_hand(bereft, "g", b"by hand\n")
    found = bereft.workspace.record_changes(CallInfo(tool="Bash", conversation="c"))
    assert not found.skipped
    ended = [(Operation.DELETE, False, None), *([(Operation.CREATE, True, b"f")] if content else [])]
    assert told(found.edits) == [*ended, (Operation.EDIT, False, b"g")]
    assert not bereft.workspace.record_changes(CallInfo(tool="Bash", conversation="c")).edits
    bereft.write("f", b"new\n")
    bereft.reopen()
    assert bereft.text("f") == b"new\n"


def test_a_file_of_which_a_hand_changed_the_mode_alone_gives_back_the_bytes_that_were_lost(bereft: Scene) -> None:
    (bereft.root / "f").chmod(0o755)
    outcome = bereft.call(writes("f", b"one\ntwo\nthree\n"))
    assert told([*outcome.external, *outcome.edits]) == [
        (Operation.EDIT, False, b"f"),
        (Operation.REPLACE, False, b"f"),
    ]
    assert check_store(str(bereft.root)).faults == ()
    bereft.reject(2)
    assert (bereft.text("f"), bereft.mode("f")) == (b"one\nthree\n", 0o755)


@pytest.mark.parametrize("content", BY_HAND, ids=["changed", "gone"])
def test_a_killed_call_on_such_a_file_is_recorded_whole_or_not_at_all(
    bereft: Scene, tmp_path: Path, content: bytes | None
) -> None:
    by_hand(bereft, "f", content)
    bereft.reopen()
    found = set[str]()
    for step in count():
        root = Path(shutil.copytree(bereft.root, tmp_path / f"at {step}"))
        with suppress(PowerCut), Workspace.open(root, CountdownDisk(step)) as workspace:
            with workspace.call(CallInfo(tool="test")) as call:
                call.write("f", b"new\n")
                call.commit()
            found.add("done")
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            held = (root / "f").read_bytes() if (root / "f").exists() else None
            is_recorded = len(workspace.history.edits()) > len(bereft.workspace.history.edits())
            assert held == (b"new\n" if is_recorded else content), step
            assert not (is_recorded and workspace.review.external_changes())
            found.add("whole" if is_recorded else "not at all")
        if "done" in found:
            break
    assert found == {"whole", "not at all", "done"}


def test_a_deleted_file_with_a_lost_state_does_not_block_its_path(scene: Scene) -> None:
    scene.write("d/f", b"one\n")
    scene.write("g", TEN)
    lost(scene, "d/f")
    (scene.root / "d/f").unlink()
    (scene.root / "d").rmdir()
    scene.write("d", b"a file\n")
    assert scene.text("d") == b"a file\n"


def test_a_lost_state_that_comes_back_makes_its_history_whole_again(bereft: Scene) -> None:
    by_hand(bereft, "f", b"by hand\n")
    bereft.workspace.record_changes(CallInfo(tool="Bash", conversation="c"))
    bereft.write("h", b"one\ntwo\n")
    assert check_store(str(bereft.root)).faults == ()


def test_a_file_of_a_state_that_is_damaged_in_its_place_can_be_written(scene: Scene) -> None:
    scene.write("f", b"one\n")
    scene.write("g", TEN)
    scene.reopen()
    damage(scene.root, blob_id(b"one\n"))
    scene.reopen()
    by_hand(scene, "f", b"by hand\n")
    outcome = scene.call(writes("f", b"new\n"))
    assert told(outcome.external) == [(Operation.DELETE, False, None), (Operation.CREATE, True, b"f")]
