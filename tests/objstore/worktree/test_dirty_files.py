"""Test which files a status skips: only those that match their records."""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from objstore import Action, Workspace
from objstore.worktree.dirty_files import changed_tips
from tests.support.scene import Scene

FOLDERS: Final = ("", "a", "a/b", "a/bc", "d e", "deep/er/est", *(f"more{number}" for number in range(40)))
GRACE_SECONDS: Final = 2.05
"""Until a file's times are old enough to be believed."""


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Return a workspace of which a status knows that every file is as recorded."""
    scene = Scene(tmp_path_factory.mktemp("settled") / "ws")
    for folder in FOLDERS:
        for name in ("one", "two"):
            scene.write(f"{folder}/{name}".lstrip("/"), b"as recorded\n")
    time.sleep(GRACE_SECONDS)  # the system's clock is what makes a file old
    assert found(scene) == []
    yield scene
    scene.close()


def found(scene: Scene) -> list[str]:
    """Return the paths that a status finds to be otherwise than recorded."""
    return [change.path for change in scene.workspace.review.status().external]


def found_without_memory(scene: Scene) -> list[str]:
    """Return the same, as a store tells it that remembers nothing of any file."""
    copy = scene.root.parent / "copy"
    shutil.copytree(scene.root / ".cas", copy)
    try:
        db = sqlite3.connect(copy / "index.sqlite")
        for table in ("file_stats", "clean_folders", "clean_until"):
            db.execute(f"DELETE FROM {table}")  # noqa: S608 - one of three names
        db.commit()
        db.close()
        kept = scene.root.parent / "kept"
        (scene.root / ".cas").rename(kept)
        copy.rename(scene.root / ".cas")
        try:
            with Workspace.open(scene.root) as workspace:
                return [change.path for change in workspace.review.status().external]
        finally:
            shutil.rmtree(scene.root / ".cas")
            kept.rename(scene.root / ".cas")
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def folders_asked_about(scene: Scene) -> int:
    """Return about how many folders a status asks the index file by file."""
    journal = scene.workspace._journal  # noqa: SLF001 - to trace its queries
    asked: list[str] = []
    with journal.reading() as store:
        store.index._db.connection.set_trace_callback(asked.append)  # noqa: SLF001 - as above
        try:
            changed_tips(journal)
        finally:
            store.index._db.connection.set_trace_callback(None)  # noqa: SLF001 - as above
    return sum("JOIN file_stats" in question for question in asked)


def rewritten(path: Path) -> None:
    path.write_bytes(b"otherwise!!\n")


def of_the_same_times(path: Path) -> None:
    seen = path.stat()
    path.write_bytes(b"otherwise!!\n")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"otherwise!!\n")
    other.rename(path)


def of_another_mode(path: Path) -> None:
    path.chmod(0o700)


def gone_with_its_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def behind_a_link(path: Path) -> None:
    moved = path.parent.with_name("moved")
    path.parent.rename(moved)
    path.parent.symlink_to(moved)
    path.write_bytes(b"otherwise!!\n")


def restored(path: Path, held: list[bytes], modes: list[int]) -> None:
    folder = path.parent
    if folder.is_symlink():
        target = folder.resolve()
        folder.unlink()
        target.rename(folder)
    folder.mkdir(exist_ok=True)
    for name, content, mode in zip(("one", "two"), held, modes, strict=True):
        (folder / name).write_bytes(content)
        (folder / name).chmod(mode)


def test_a_status_queries_the_index_only_for_changed_folders(settled: Scene) -> None:
    # The first of these tests: what others put back is as recorded, and too young to be believed.
    assert folders_asked_about(settled) == 0
    (settled.root / "a" / "one").write_bytes(b"otherwise\n")
    assert folders_asked_about(settled) == 1
    settled.write("deep/er/est/one", b"recorded anew\n")
    for _ in range(2):  # what is this young may change again without showing it
        assert folders_asked_about(settled) == 2
    assert found(settled) == ["a/one"]
    (settled.root / "a" / "one").write_bytes(b"as recorded\n")
    assert found(settled) == []


@pytest.mark.parametrize(
    "change",
    [rewritten, of_the_same_times, replaced, of_another_mode, gone_with_its_folder, behind_a_link, Path.unlink],
)
@pytest.mark.parametrize("folder", ["a/b", "d e"])
def test_every_external_change_is_found(settled: Scene, change: Callable[[Path], None], folder: str) -> None:
    path = settled.root / folder / "two"
    states = [path.with_name(name) for name in ("one", "two")]
    held, modes = [each.read_bytes() for each in states], [each.stat().st_mode & 0o777 for each in states]
    change(path)
    try:
        changes = found(settled)
        assert changes == found_without_memory(settled) == found(settled)
        assert f"{folder}/two" in changes
    finally:
        restored(path, held, modes)
    assert found(settled) == []


def test_a_parent_folder_that_was_replaced_by_a_symlink_is_noticed(settled: Scene) -> None:
    """The files behind it are the very same, but they are out of bounds now."""
    above, moved = settled.root / "deep", settled.root.parent / "moved"
    above.rename(moved)
    above.symlink_to(moved)
    try:
        assert found(settled) == found_without_memory(settled) == ["deep/er/est/one", "deep/er/est/two"]
        assert found(settled) == ["deep/er/est/one", "deep/er/est/two"]
    finally:
        above.unlink()
        moved.rename(above)
    assert found(settled) == []


def test_only_the_few_dirty_files_of_a_large_folder_are_queried(tmp_path: Path) -> None:
    """However they come to be so, and cease to be."""
    scene = Scene(tmp_path / "ws")
    path = [scene.root / f"file{number:02}" for number in range(16)]
    for each in path:
        scene.write(each.name, b"as recorded\n")

    def grow_old() -> None:
        time.sleep(GRACE_SECONDS)

    def is_another() -> None:
        path[7].write_bytes(b"as recorded\n")
        path[3].write_bytes(b"otherwise\n")

    def becomes_a_folder() -> None:
        path[3].unlink()
        path[3].mkdir()

    acts: list[tuple[Callable[[], object], list[int]]] = [
        (lambda: path[7].write_bytes(b"otherwise\n"), [7]),
        (lambda: path[2].chmod(0o600), [2, 7]),
        (grow_old, [2, 7]),
        (lambda: path[2].chmod(0o644), [7]),
        (is_another, [3]),
        (path[9].unlink, [3, 9]),
        (becomes_a_folder, [3, 9]),
        (grow_old, [3, 9]),
        (lambda: path[9].write_bytes(b"as recorded\n"), [3]),
        (lambda: scene.write("file09", b"recorded anew\n"), [3]),
        (grow_old, [3]),
        (lambda: [each.write_bytes(b"otherwise\n") for each in path[4:16]], [3, *range(4, 16)]),
    ]
    for act, expected in acts:
        act()
        names = [path[number].name for number in expected]
        assert found(scene) == found_without_memory(scene) == found(scene) == names
        if act is grow_old:
            assert folders_asked_about(scene) == len(expected)
    scene.close()


def test_the_next_status_knows_what_was_recorded_since(settled: Scene) -> None:
    """Whatever becomes of the journal: edits, decisions, moves, deletions, new folders."""
    path = settled.root / "a/bc/one"
    seq = settled.write("a/bc/one", b"pending\n")
    assert found(settled) == []
    settled.decide(Action.REJECT, seq)
    assert found(settled) == []
    path.write_bytes(b"pending\n")
    assert found(settled) == ["a/bc/one"]
    path.write_bytes(b"as recorded\n")
    settled.decide(Action.ACCEPT, seq)
    assert found(settled) == found_without_memory(settled) == []
    settled.move("a/bc/two", "new/two")
    assert found(settled) == []
    (settled.root / "new/two").write_bytes(b"changed\n")
    assert found(settled) == found_without_memory(settled) == ["new/two"]
    (settled.root / "new/two").write_bytes(b"as recorded\n")
    settled.delete("new/two")
    assert found(settled) == []
    (settled.root / "new").mkdir(exist_ok=True)
    (settled.root / "new/two").write_bytes(b"as recorded\n")
    assert found(settled) == found_without_memory(settled) == ["new/two"]
    (settled.root / "new/two").unlink()


def test_a_new_recorded_file_in_a_clean_folder_is_checked(settled: Scene) -> None:
    settled.write("more1/three", b"as recorded\n")
    assert found(settled) == []
    (settled.root / "more1/three").write_bytes(b"otherwise\n")
    assert found(settled) == ["more1/three"]
    (settled.root / "more1/three").write_bytes(b"as recorded\n")
    settled.delete("more1/three")
