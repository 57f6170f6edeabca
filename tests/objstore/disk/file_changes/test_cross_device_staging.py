"""Test that files on another file system are staged there, and that leftovers of a killed process are found."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from objstore import Workspace, blob_id, check_store
from objstore.upkeep.integrity.fsck import repair_store
from tests.support.crash_scenarios import change, write
from tests.support.faulty_disk import CountdownDisk, PowerCut
from tests.support.mounts import can_mount, small_disk

SECRET: Final = b"a secret\n"
INNER: Final = ("disk/a", "disk/new/folder/b", "c")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Return a workspace with a file, in which another file system is mounted."""
    root = tmp_path / "ws"
    (root / "disk").mkdir(parents=True)
    if not can_mount(root / "disk"):
        pytest.skip("no disk can be mounted here")
    with small_disk(root / "disk"):
        with Workspace.init(root, CountdownDisk(None)) as workspace:
            write(workspace, "disk/a", b"before\n")
        yield root


def staged(root: Path) -> list[Path]:
    """Return the staged files on the other file system."""
    return [*(root / "disk").rglob(".cas-*"), *(root / ".cas" / "tmp").iterdir()]


def kill_after_staging_a_secret(root: Path) -> None:
    """Kill a process that has staged a secret on the other disk and has not moved it to its path."""
    for step in count():
        with Workspace.open(root, CountdownDisk(step)) as workspace, pytest.raises(PowerCut):
            change(workspace, *((name, SECRET) for name in INNER))
        if any(path.read_bytes() == SECRET for path in (root / "disk").glob(".cas-*")):
            return
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            write(workspace, "disk/a", b"before %d\n" % step)


def test_writes_on_another_disk_leave_no_staged_files(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        change(workspace, *((name, SECRET) for name in INNER))
        assert staged(root) == []
        workspace.review.undo()
    assert staged(root) == []


def test_next_writer_removes_files_that_a_killed_process_staged_on_another_disk(root: Path) -> None:
    left = 0
    for step in count():
        disk = CountdownDisk(step)
        with Workspace.open(root, disk) as workspace:
            try:
                change(workspace, *((name, b"%d\n" % step) for name in INNER))
            except PowerCut:
                left += bool([*(root / "disk").rglob(".cas-*")])
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            write(workspace, "afterwards", b"%d\n" % step)
        assert staged(root) == [], disk.failed
        if disk.failed is None:
            break
    assert left


def test_purge_removes_files_that_a_killed_process_staged_on_another_disk(root: Path) -> None:
    kill_after_staging_a_secret(root)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        workspace.retention.purge([blob_id(SECRET)], force=True, who="me")
    assert staged(root) == []


def test_fsck_reports_and_removes_files_staged_on_another_disk(root: Path) -> None:
    kill_after_staging_a_secret(root)
    left = [path for path in staged(root) if path.parent.name == "disk"]
    report = check_store(str(root))
    assert report.faults == ()
    for path in left:
        assert any(
            note.what.startswith(f"{path.relative_to(root)} belongs to an interrupted or running write on another disk")
            for note in report.notes
        )
    assert report.leftovers == len(staged(root))
    assert repair_store(report).leftovers == 0
    assert staged(root) == []


def test_files_with_names_similar_to_staged_ones_are_kept(root: Path) -> None:
    kill_after_staging_a_secret(root)
    others = {
        "disk/.cas-0123456789abcde": b"shorter",
        "disk/.cas-mine": b"mine",
        "disk/new/.cas-0123456789abcdef": b"x",
    }
    (root / "disk/new").mkdir(exist_ok=True)
    for name, content in others.items():
        (root / name).write_bytes(content)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "afterwards", b"")
    assert {str(path.relative_to(root)): path.read_bytes() for path in staged(root)} == others


def test_note_about_another_disk_is_kept_while_it_is_not_mounted(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    (root / "disk").mkdir(parents=True)
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        write(workspace, "a", b"")
        note = root / ".cas" / "tmp" / "beside-0123456789abcdef"
        note.write_bytes(b"disk/gone")
    for number in range(2):
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            write(workspace, "a", b"%d\n" % number)
        assert staged(root) == [note]


@pytest.mark.parametrize("note", [b"../elsewhere", b"/", b"", b"\0", b"link", b"disk/../link", b"x" * 9000])
def test_note_about_another_disk_does_not_lead_outside(tmp_path: Path, note: bytes) -> None:
    root, elsewhere = tmp_path / "ws", tmp_path / "elsewhere"
    for folder in (root, elsewhere):
        folder.mkdir()
    (root / "link").symlink_to(elsewhere)
    (root / "disk").mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        write(workspace, "a", b"")
    for folder in (root, elsewhere):
        (folder / ".cas-0123456789abcdef").write_bytes(b"somebody's")
    (root / ".cas" / "tmp" / "beside-0123456789abcdef").write_bytes(note)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "a", b"1\n")
    check_store(str(root))
    for folder in (root, elsewhere):
        assert (folder / ".cas-0123456789abcdef").read_bytes() == b"somebody's"


def test_store_on_another_disk_leaves_no_staged_files_in_the_workspace(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a", b"before\n")
    scratch = tmp_path / ".cas" / "tmp"
    if not can_mount(scratch):
        pytest.skip("no disk can be mounted here")
    with small_disk(scratch):
        for step in count():
            disk = CountdownDisk(step)
            with Workspace.open(tmp_path, disk) as workspace, suppress(PowerCut):
                write(workspace, "a", b"%d\n" % step)
            with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
                write(workspace, "b", b"%d\n" % step)
            assert [path.name for path in tmp_path.glob(".cas*")] == [".cas"], disk.failed
            if disk.failed is None:
                break
