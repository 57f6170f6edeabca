"""Test that a failed creation of a store leaves nothing, and that what exists stays as it is."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from objstore import CasError, Workspace, check_store
from objstore.disk.fs.writer_lock import WriterLock
from objstore.storage.store.create import create_workspace
from objstore.values.errors import StoreLinked, StoreLocked, StorePlaceTaken
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import CountdownDisk, PowerCut, UnsyncedDisk, broken_disk, full_disk, power_cut
from tests.support.interruption import interrupted_at, interruption_points


def put_file(place: Path) -> None:
    place.write_bytes(b"mine\n")


def put_pipe(place: Path) -> None:
    os.mkfifo(place)


def put_dangling_link(place: Path) -> None:
    place.symlink_to("nowhere")


def put_link_to_itself(place: Path) -> None:
    place.symlink_to(place.name)


@pytest.mark.parametrize("put", [put_file, put_pipe, put_dangling_link, put_link_to_itself])
def test_creation_at_an_occupied_path_leaves_nothing(tmp_path: Path, put: Callable[[Path], None]) -> None:
    put(tmp_path / ".cas")
    before = os.lstat(tmp_path / ".cas")
    for _ in range(2):
        with pytest.raises(CasError, match=r"\.cas"):
            Workspace.init(tmp_path, UnsyncedDisk())
    assert list(tmp_path.iterdir()) == [tmp_path / ".cas"]
    assert os.lstat(tmp_path / ".cas") == before


@pytest.mark.parametrize("failure", [full_disk, broken_disk])
def test_failed_creation_leaves_nothing(tmp_path: Path, failure: Callable[[str], BaseException]) -> None:
    whole = CountdownDisk(None)
    (tmp_path / "whole").mkdir()
    Workspace.init(tmp_path / "whole", whole).close()
    for step in range(whole.done.index("move_store_folder") + 1):
        root = tmp_path / str(step)
        root.mkdir()
        with pytest.raises(CasError):
            Workspace.init(root, CountdownDisk(step, failure, lasting=False))
        assert not list(root.iterdir()), whole.done[step]


# ---- a folder of that name without segments


def tree(folder: Path) -> dict[str, bytes]:
    """Return every path below a folder, with the content of files."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        for path in folder.rglob("*")
    }


def make_empty(store: Path) -> None:
    store.mkdir()


def leave_gitignore(store: Path) -> None:
    """Do the same as `rm -rf .cas/*`."""
    store.mkdir()
    (store / ".gitignore").write_bytes(b"*\n")


def remove_while_writers_wait(store: Path) -> None:
    """Remove a store while writers wait for its lock: the one that waits for its turn creates its files again."""
    used_store(store)
    (store.parent / "a.txt").unlink()
    first, second, third = (WriterLock(str(store / "lock")) for _ in range(3))
    with closing(first), closing(second), closing(third), first.held():
        assert not second.acquire_in_turn()
        assert not third.acquire_in_turn()
        shutil.rmtree(store)
        with suppress(StoreLocked):
            third.acquire(0.5)
    assert {"lock.queue"} <= {path.name for path in store.iterdir()} <= {"lock", "lock.queue"}


@pytest.mark.parametrize("prepare", [make_empty, leave_gitignore, remove_while_writers_wait])
def test_store_is_created_in_place_of_an_emptied_one(tmp_path: Path, prepare: Callable[[Path], None]) -> None:
    prepare(tmp_path / ".cas")
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        write(workspace, "a.txt", b"ours\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".cas", "a.txt"]
    assert (tmp_path / ".cas" / ".gitignore").read_bytes() == b"*\n"
    assert check_store(str(tmp_path)).faults == ()


def other_ignores(store: Path) -> None:
    store.mkdir()
    (store / ".gitignore").write_bytes(b"*\n!mine\n")


def ignores_elsewhere(store: Path) -> None:
    store.mkdir()
    (store.parent / "ignores").write_bytes(b"*\n")
    (store / ".gitignore").symlink_to("../ignores")


def folder_of_ignores(store: Path) -> None:
    (store / ".gitignore").mkdir(parents=True)


def pipe_of_ignores(store: Path) -> None:
    store.mkdir()
    os.mkfifo(store / ".gitignore")


def foreign_file(store: Path) -> None:
    leave_gitignore(store)
    (store / "mine").write_bytes(b"mine\n")


def settings_alone(store: Path) -> None:
    leave_gitignore(store)
    (store / "config.toml").write_bytes(b'gc.every = "5min"\n')


def lock_with_content(store: Path) -> None:
    leave_gitignore(store)
    (store / "lock").write_bytes(b"mine\n")


def used_store(store: Path) -> None:
    with Workspace.init(store.parent, UnsyncedDisk()) as workspace:
        write(workspace, "a.txt", b"one\n")


def segments_moved_away(store: Path) -> None:
    used_store(store)
    (store / "segments").rename(store.parent / "kept")


def segments_removed_one_by_one(store: Path) -> None:
    used_store(store)
    for path in (store / "segments").iterdir():
        path.unlink()


@pytest.mark.parametrize(
    "prepare",
    [
        other_ignores,
        ignores_elsewhere,
        folder_of_ignores,
        pipe_of_ignores,
        foreign_file,
        settings_alone,
        lock_with_content,
        segments_moved_away,
        segments_removed_one_by_one,
    ],
)
def test_store_folder_with_other_content_is_named_and_left_unchanged(
    tmp_path: Path, prepare: Callable[[Path], None]
) -> None:
    prepare(tmp_path / ".cas")
    before = tree(tmp_path)
    with pytest.raises(StorePlaceTaken, match=rf"{tmp_path / '.cas'} exists and holds no store"):
        Workspace.init(tmp_path, UnsyncedDisk())
    assert tree(tmp_path) == before


def test_restored_segments_are_the_former_store(tmp_path: Path) -> None:
    segments_moved_away(tmp_path / ".cas")
    with pytest.raises(StorePlaceTaken):
        Workspace.init(tmp_path, UnsyncedDisk())
    (tmp_path / "kept").rename(tmp_path / ".cas" / "segments")
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        assert [view.edit.path for view in workspace.history.edits()] == [b"a.txt"]
    assert check_store(str(tmp_path)).faults == ()


def test_link_to_a_store_is_named_and_left_unchanged(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    used_store(other / ".cas")
    (root / ".cas").symlink_to(other / ".cas")
    before = tree(tmp_path)
    with pytest.raises(StoreLinked, match=r"root/\.cas"):
        Workspace.init(root, UnsyncedDisk())
    assert tree(tmp_path) == before


def test_concurrent_creations_of_a_store_lose_nothing(tmp_path: Path) -> None:
    for moment in interruption_points():
        root = tmp_path / str(moment.step)
        root.mkdir()
        leave_gitignore(root / ".cas")

        def other(root: Path = root) -> None:
            with Workspace.init(root, UnsyncedDisk()) as workspace:
                write(workspace, "a.txt", b"theirs\n")

        with interrupted_at(moment, other):
            create_workspace(str(root), UnsyncedDisk())
        assert [path.name for path in root.glob(".cas*")] == [".cas"]
        assert (root / ".cas" / ".gitignore").read_bytes() == b"*\n"
        with Workspace.open(root, UnsyncedDisk()) as workspace:
            assert [view.edit.path for view in workspace.history.edits()] == [b"a.txt"] * moment.came
        shutil.rmtree(root)


def test_file_added_during_a_creation_is_kept(tmp_path: Path) -> None:
    for moment in interruption_points():
        root = tmp_path / str(moment.step)
        root.mkdir()
        leave_gitignore(root / ".cas")
        with interrupted_at(moment, (root / ".cas" / "mine").touch), suppress(StorePlaceTaken):
            create_workspace(str(root), UnsyncedDisk())
        assert (root / ".cas" / "mine").exists() or not moment.came
        assert [path.name for path in root.glob(".cas*")] == [".cas"]


@pytest.mark.parametrize("prepare", [make_empty, leave_gitignore, remove_while_writers_wait])
def test_interrupted_creation_can_be_repeated(tmp_path: Path, prepare: Callable[[Path], None]) -> None:
    step, failed = 0, True
    while failed:
        root = tmp_path / str(step)
        root.mkdir()
        prepare(root / ".cas")
        disk = CountdownDisk(step, power_cut)
        with suppress(PowerCut):
            Workspace.init(root, disk).close()
        with Workspace.init(root, UnsyncedDisk()) as workspace:
            write(workspace, "a.txt", b"ours\n")
        assert [path.name for path in root.glob(".cas*")] == [".cas"], disk.failed
        step, failed = step + 1, disk.failed is not None
