"""Test file systems without permission bits (FAT, NTFS, some network ones), where every file has the same ones.

Some ignore a change of mode silently, others refuse it.
"""

import errno
import os
from pathlib import Path
from typing import Final

import pytest

from objstore import Action, CallAborted, CallInfo, Origin
from objstore.disk.fs.disk import Disk, Pieces
from objstore.values.errors import PermissionRefused
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.scene import Scene, lines

SAME_MODE: Final = 0o777


class SilentDisk(UnsyncedDisk):
    """A disk that silently gives every file the same permission bits."""

    def stage(self, directory: int, content: Pieces, like: os.stat_result | None, mode: int, name: str) -> str:
        del mode
        return super().stage(directory, content, like, SAME_MODE, name)

    def chmod(self, directory: int, name: str, mode: int) -> None:
        pass

    def new_file_mode(self, directory: int, name: str) -> int:
        del directory, name
        return SAME_MODE


class RefusingDisk(SilentDisk):
    """A disk that gives every file the same permission bits, and refuses to change them."""

    def chmod(self, directory: int, name: str, mode: int) -> None:
        super().chmod(directory, name, mode)
        raise PermissionRefused(name)


@pytest.fixture(params=[SilentDisk, RefusingDisk])
def disk(request: pytest.FixtureRequest) -> type[Disk]:
    kind: type[Disk] = request.param
    return kind


def test_files_can_be_created_edited_moved_and_rejected_without_modes(tmp_path: Path, disk: type[Disk]) -> None:
    scene = Scene(tmp_path / "ws", disk)
    new = scene.write("d/new", lines("one two three"))
    edit = scene.edit("d/new", b"two", b"2")
    move = scene.move("d/new", "moved")
    gone = scene.delete("moved")
    assert scene.external() == {}
    for seq in (gone, move, edit):
        scene.reject(seq)
        assert scene.external() == {}
    assert scene.text("d/new") == lines("one two three")
    scene.reject(new)
    assert not (scene.root / "d").exists()
    scene.accept(new, edit)
    assert scene.text("d/new") == lines("one 2 three")
    assert scene.mode("d/new") == SAME_MODE
    assert scene.external() == {}
    scene.close()


def test_file_recorded_with_a_mode_is_restored_without_it(tmp_path: Path, disk: type[Disk]) -> None:
    """The workspace was copied to such a file system, or its history was imported there."""
    scene = Scene(tmp_path / "ws")
    scene.write("file", lines("one two"), mode=0o600)
    gone = scene.delete("file")
    scene.disk = disk
    scene.reopen()
    scene.reject(gone)
    assert scene.text("file") == lines("one two")
    assert scene.mode("file") == SAME_MODE
    assert list(scene.external()) == ["file"]
    recorded = scene.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    assert [view.edit.path for view in recorded.edits] == [b"file"]
    assert scene.external() == {}
    scene.close()


def test_mode_that_the_file_system_ignores_is_not_reported_as_restored(tmp_path: Path, disk: type[Disk]) -> None:
    scene = Scene(tmp_path / "ws")
    for name in ("mode alone", "both"):
        scene.write(name, lines("one two"), mode=0o644)
    edits = [
        scene.write("mode alone", lines("one two"), mode=0o600),
        scene.write("both", lines("one 2"), mode=0o600),
    ]
    scene.disk = disk
    scene.reopen()
    statuses = scene.statuses()
    for seq in edits:
        with pytest.raises(CallAborted, match="Permission denied"):
            scene.decide(Action.REJECT, seq)
    assert scene.text("mode alone") == lines("one two")
    assert scene.text("both") == lines("one 2")
    assert scene.statuses() == statuses
    scene.close()


def test_file_is_staged_although_its_mode_can_not_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAT reports modes that it can't store as not permitted."""

    def refuse(_: int, __: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    scene = Scene(tmp_path / "ws")
    monkeypatch.setattr(os, "fchmod", refuse)
    scene.write("file", lines("one two"))
    scene.edit("file", b"two", b"2")
    assert scene.text("file") == lines("one 2")
    assert scene.external() == {}
    scene.close()
