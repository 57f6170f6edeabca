"""Test that a call or a decision that was rolled back counts as never made, and that its blobs may be removed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore import CallAborted, DiskFailed, RetentionLimits, blob_id, check_store
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.scene import Scene, deletes, moves, writes


class StubbornDisk(UnsyncedDisk):
    """A disk on which a file of a certain name can't be replaced or created."""

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        self._refuse(name)
        return super().exchange(source_directory, source, directory, name)

    def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:
        self._refuse(name)
        super().rename_new(source_directory, source, directory, name)

    def _refuse(self, name: str) -> None:
        if name == "stubborn":
            raise DiskFailed(name, "Input/output error")


@pytest.fixture
def failing_scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "workspace", StubbornDisk)
    yield made
    made.close()


def is_sound(scene: Scene) -> bool:
    """Return whether the store is undamaged, as it is and with a rebuilt index."""
    faults = check_store(str(scene.root)).faults
    scene.forget_index()
    return not faults and not check_store(str(scene.root)).faults


def recorded_paths(scene: Scene) -> list[str]:
    return sorted(scene.workspace.history.files_at())


def test_the_voided_first_edit_of_an_unrecorded_file_leaves_it_unrecorded(failing_scene: Scene) -> None:
    (failing_scene.root / "a").write_bytes(b"never recorded\n")
    (failing_scene.root / "stubborn").write_bytes(b"nor this\n")
    with pytest.raises(CallAborted):
        failing_scene.call(writes("a", b"new\n"), writes("stubborn", b"new\n"))
    assert (failing_scene.text("a"), failing_scene.text("stubborn")) == (b"never recorded\n", b"nor this\n")
    assert recorded_paths(failing_scene) == []
    assert failing_scene.workspace.history.edits() == []
    assert is_sound(failing_scene)


def test_file_with_a_voided_first_edit_is_recorded_by_the_next(failing_scene: Scene) -> None:
    (failing_scene.root / "a").write_bytes(b"never recorded\n")
    with pytest.raises(CallAborted):
        failing_scene.call(writes("a", b"new\n"), writes("stubborn", b"new\n"))
    seq = failing_scene.write("a", b"newer\n")
    assert int(failing_scene.view(seq).edit.document) == int(seq)
    failing_scene.reject(seq)
    assert failing_scene.text("a") == b"never recorded\n"
    assert is_sound(failing_scene)


def test_voided_calls_of_every_kind_leave_a_sound_store(failing_scene: Scene) -> None:
    for name in ("edited", "moved", "deleted"):
        failing_scene.write(name, b"recorded\n")
    for name in ("new/edited", "new/moved", "new/deleted"):
        (failing_scene.root / name).parent.mkdir(exist_ok=True)
        (failing_scene.root / name).write_bytes(b"never recorded\n")
    before, tips = failing_scene.files(), recorded_paths(failing_scene)
    with pytest.raises(CallAborted):
        failing_scene.call(
            writes("edited", b"new\n"),
            moves("moved", "elsewhere/moved"),
            deletes("deleted"),
            writes("new/edited", b"new\n"),
            moves("new/moved", "new/place"),
            writes("new/place", b"new\n"),
            deletes("new/deleted"),
            writes("stubborn", b"new\n"),
        )
    after = failing_scene.files()
    assert {name: look.content for name, look in after.items()} == {name: look.content for name, look in before.items()}
    assert recorded_paths(failing_scene) == tips
    assert is_sound(failing_scene)


def test_blobs_of_voided_calls_are_not_kept(failing_scene: Scene) -> None:
    failing_scene.write("a", b"kept\n")
    size = failing_scene.workspace.retention.stored_bytes()
    texts = [os.urandom(50_000) for _ in range(5)]
    for text in texts:
        with pytest.raises(CallAborted):
            failing_scene.call(writes("stubborn", text))
    assert failing_scene.workspace.retention.stored_bytes() > size + 250_000
    failing_scene.workspace.retention.collect(RetentionLimits(older_than=None, max_size=None))
    assert not {blob_id(text) for text in texts} & set(failing_scene.workspace.history.blobs())
    assert failing_scene.workspace.retention.stored_bytes() < size + 10_000
    assert is_sound(failing_scene)


def test_blobs_of_voided_calls_held_elsewhere_are_kept(failing_scene: Scene) -> None:
    failing_scene.write("a", b"held\n")
    with pytest.raises(CallAborted):
        failing_scene.call(writes("b", b"held\n"), writes("stubborn", b"let go\n"))
    failing_scene.workspace.retention.collect(RetentionLimits(older_than=None, max_size=None), thorough=True)
    assert set(failing_scene.workspace.history.blobs()) == {blob_id(b"held\n")}
    assert is_sound(failing_scene)


def test_voided_records_are_purged_like_all_others(failing_scene: Scene) -> None:
    secret = os.urandom(5_000)
    with pytest.raises(CallAborted):
        failing_scene.call(writes("stubborn", secret))
    failing_scene.workspace.retention.purge([blob_id(secret)], force=False, who="person")
    assert blob_id(secret) not in failing_scene.workspace.history.blobs()
    assert is_sound(failing_scene)


def test_blobs_of_voided_decisions_are_not_kept(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "workspace")
    scene.write("stubborn", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    scene.write("stubborn", b"one\n2\n3\n4\n5\n6\n7\n8\nnine\n")
    scene.disk = StubbornDisk
    scene.reopen()
    before = scene.statuses()
    with pytest.raises(CallAborted):
        scene.reject("2:1")
    assert scene.statuses() == before
    assert is_sound(scene)
    scene.workspace.retention.collect(RetentionLimits(older_than=None, max_size=None), thorough=True)
    assert blob_id(b"1\n2\n3\n4\n5\n6\n7\n8\nnine\n") not in scene.workspace.history.blobs()
    assert is_sound(scene)
    scene.close()
