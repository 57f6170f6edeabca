"""The version of a store changes with what a reader of it would see."""

from pathlib import Path

from objstore import Action, CallInfo, Unit, Workspace, store_version
from tests.support.faulty_disk import UnsyncedDisk


def test_the_version_changes_with_every_record_and_mark(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        versions = [store_version(str(tmp_path))]

        def note() -> None:
            versions.append(store_version(str(tmp_path)))

        with workspace.call(CallInfo(tool="t")) as call:
            call.write("a", b"1\n")
            seq = call.commit().edits[0].seq
        note()
        (file,) = workspace.review.changes()
        workspace.review.mark_seen([file.changes[0].key])
        note()
        workspace.comments.add_to_units([Unit(seq, 0)], "Why?")
        note()
        workspace.decide(Action.ACCEPT, [Unit(seq, 0)])
        note()
        workspace.review.undo()
        note()
    assert len(set(versions)) == len(versions)


def test_reading_leaves_the_version_as_it_is(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace, workspace.call(CallInfo(tool="t")) as call:
        call.write("a", b"1\n")
        call.commit()
    before = store_version(str(tmp_path))
    with Workspace.open(tmp_path) as workspace:
        workspace.review.status()
        workspace.review.change_summaries()
        workspace.history.stats()
    assert store_version(str(tmp_path)) == before


def test_a_folder_without_a_store_has_a_version(tmp_path: Path) -> None:
    assert store_version(str(tmp_path)) == store_version(str(tmp_path / "gone"))
