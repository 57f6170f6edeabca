"""Test that two names of one file are recorded, decided and restored together, and stay one file."""

import os
from pathlib import Path

import pytest

from objstore import CallAborted, CallInfo, NamesShared, PathReserved
from objstore.disk.fs.reserved_names import linked_in_store
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.scene import Scene, deletes, writes


@pytest.fixture
def linked(scene: Scene) -> Scene:
    """Return a scene with `f` and `g`, two names of one recorded file."""
    scene.write("f", b"old\n")
    (scene.root / "g").hardlink_to(scene.root / "f")
    scene.workspace.record_changes(CallInfo(tool="test"))
    return scene


def is_one_file(scene: Scene) -> bool:
    return (scene.root / "f").samefile(scene.root / "g")


def test_change_of_a_file_with_two_names_can_be_rejected_and_accepted(linked: Scene) -> None:
    (linked.root / "f").write_bytes(b"new\n")
    found = linked.workspace.record_changes(CallInfo(tool="test", conversation="agent")).edits
    seqs = [view.seq for view in found]
    assert [view.edit.path for view in found] == [b"f", b"g"]
    linked.reject(*seqs)
    assert (linked.text("f"), linked.text("g"), is_one_file(linked)) == (b"old\n", b"old\n", True)
    linked.accept(*seqs)
    assert (linked.text("f"), linked.text("g"), is_one_file(linked)) == (b"new\n", b"new\n", True)
    assert not linked.external()


def test_a_call_gives_two_names_the_same_bytes(linked: Scene) -> None:
    linked.call(writes("f", b"new\n"), writes("g", b"new\n"))
    assert (linked.text("f"), linked.text("g"), is_one_file(linked)) == (b"new\n", b"new\n", True)


def test_a_call_that_would_make_two_names_different_is_refused(linked: Scene) -> None:
    before = linked.everything()
    with pytest.raises(NamesShared):
        linked.call(writes("f", b"new\n"), writes("g", b"other\n"))
    assert linked.everything() == before


def test_a_call_that_would_make_two_names_different_is_refused_in_a_dry_run(linked: Scene) -> None:
    before = linked.everything()
    with linked.workspace.call(CallInfo(tool="test")) as call:
        call.write("f", b"new\n")
        call.write("g", b"other\n")
        with pytest.raises(NamesShared):
            call.commit(dry_run=True)
    assert linked.everything() == before


def test_a_call_removes_one_name_and_changes_the_other(linked: Scene) -> None:
    linked.call(deletes("f"), writes("g", b"new\n"))
    assert (linked.text("f"), linked.text("g")) == (None, b"new\n")


def test_a_snapshot_of_two_names_is_restored(linked: Scene) -> None:
    linked.workspace.snapshots.take(who="person")
    number = max(view.number for view in linked.workspace.snapshots.all())
    (linked.root / "f").write_bytes(b"new\n")
    linked.workspace.snapshots.restore(number)
    assert (linked.text("f"), linked.text("g"), is_one_file(linked)) == (b"old\n", b"old\n", True)


@pytest.mark.parametrize("paths", [[], ["g"], ["f", "g"]])
@pytest.mark.parametrize("current_content", [b"f\n", b"g\n", b"other\n"])
def test_restore_of_two_files_that_became_hard_links_is_refused(
    scene: Scene, current_content: bytes, paths: list[str]
) -> None:
    scene.write("f", b"f\n")
    scene.write("g", b"g\n")
    number = scene.workspace.snapshots.take(who="person").view.number
    (scene.root / "g").unlink()
    (scene.root / "g").hardlink_to(scene.root / "f")
    (scene.root / "f").write_bytes(current_content)
    before = scene.everything()
    for dry_run in (True, False):
        if paths == ["g"] and current_content == b"g\n":
            assert not scene.workspace.snapshots.restore(number, paths, dry_run=dry_run).changes
            continue
        with pytest.raises(NamesShared):
            scene.workspace.snapshots.restore(number, paths, dry_run=dry_run)
    assert scene.everything() == before


def test_restore_does_not_write_through_a_hard_link_that_is_now_ignored(scene: Scene) -> None:
    scene.write("f", b"f\n")
    scene.write("g", b"g\n")
    number = scene.workspace.snapshots.take(who="person").view.number
    (scene.root / ".casignore").write_bytes(b"f\n")
    (scene.root / "g").unlink()
    (scene.root / "g").hardlink_to(scene.root / "f")
    with pytest.raises(NamesShared):
        scene.workspace.snapshots.restore(number, ["g"])
    assert (scene.text("f"), scene.text("g")) == (b"f\n", b"f\n")


def test_restore_removes_a_newer_hard_link_and_restores_the_file(scene: Scene) -> None:
    scene.write("d/f", b"old\n")
    scene.write("e", b"e\n")
    number = scene.workspace.snapshots.take("d", who="person").view.number
    (scene.root / "d/g").hardlink_to(scene.root / "d/f")
    (scene.root / "d/f").write_bytes(b"new\n")
    scene.workspace.snapshots.restore(number)
    assert (scene.text("d/f"), scene.text("d/g")) == (b"old\n", None)
    (scene.root / "e").unlink()
    (scene.root / "e").hardlink_to(scene.root / "d/f")  # the snapshot of the folder doesn't cover this name
    (scene.root / "d/f").write_bytes(b"new\n")
    scene.workspace.snapshots.restore(number)
    assert (scene.text("d/f"), scene.text("e")) == (b"old\n", b"old\n")


def test_rolled_back_call_leaves_a_hard_link_outside_unchanged(tmp_path: Path) -> None:
    class WriteBeforeExchange(UnsyncedDisk):
        """A disk on which another process writes to h just before it is exchanged."""

        def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
            if name == "h":
                with (tmp_path / "workspace" / "h").open("ab") as file:
                    file.write(b"typed by a person\n")
            return super().exchange(source_directory, source, directory, name)

    scene = Scene(tmp_path / "workspace", WriteBeforeExchange)
    (tmp_path / "outside").write_bytes(b"old\n")
    os.link(tmp_path / "outside", scene.root / "f")
    scene.write("h", b"h\n")
    with pytest.raises(CallAborted, match="every file of the call is as it was before"):
        scene.call(writes("f", b"new\n"), writes("h", b"new\n"))
    assert ((tmp_path / "outside").read_bytes(), scene.text("f")) == (b"old\n", b"old\n")
    assert (tmp_path / "outside").samefile(scene.root / "f")
    scene.close()


def test_the_store_is_listed_once_for_all_linked_files_of_a_decision(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{number}" for number in range(10)]
    for name in names:
        scene.write(name, b"old\n")
        (scene.root / f"{name}.too").hardlink_to(scene.root / name)
    listings: list[str] = []

    def listed(root: str) -> frozenset[tuple[int, int]]:
        listings.append(root)
        return linked_in_store(root)

    monkeypatch.setattr("objstore.disk.fs.confined_path.linked_in_store", listed)
    scene.call(*(writes(name, b"new\n") for name in names))
    assert len(listings) == 2  # when the call looks, and before it changes anything
    scene.reject(*range(len(names) + 1, 2 * len(names) + 1))
    assert len(listings) == 3
    assert {scene.text(name) for name in names} == {b"old\n"}


def test_hard_link_to_the_store_created_during_a_call_is_refused(scene: Scene) -> None:
    scene.write("f", b"old\n")
    (scene.root / "f.too").hardlink_to(scene.root / "f")
    with scene.workspace.call(CallInfo(tool="test")) as call:
        call.write("f", b"new\n")
        stored = scene.root / ".cas" / "segments" / "00000001.seg"
        (scene.root / "g").hardlink_to(stored)
        call.write("g", b"over it\n")
        before = stored.read_bytes()
        with pytest.raises(PathReserved):
            call.commit()
    assert stored.read_bytes() == before
