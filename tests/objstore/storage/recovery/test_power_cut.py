"""Test what a power cut leaves: each path is before or after, and what was acknowledged is in the log and in the file.

`make powercut` does the same on real file systems. Here the names that folders have lost since their last sync are
worked out: a file system may have written any number of the first of them.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from objstore import CallInfo, Workspace
from objstore.disk.fs.disk import Pieces
from tests.objstore.storage.recovery.test_crash import (
    Stage,
    assert_whole,
    copy_workspace,
    named,
    run_scenario,
    running,
    steps,
)
from tests.support.crash_scenarios import SCENES, change, files, write
from tests.support.faulty_disk import CountdownDisk, PowerCut, power_cut

CHANGES: Final = frozenset(
    {"replace", "exchange", "rename_new", "respell", "unlink", "chmod", "make_directory", "remove_directory"}
)

INFO: Final = CallInfo(tool="t", conversation="power")


class CutDisk(CountdownDisk):
    """A disk that fails after some operations, and then has only what was synced and some of what came after."""

    def __init__(self, root: Path, steps: int | None) -> None:
        super().__init__(steps, power_cut)
        self._root = root
        self._unsynced: set[str] = set()  # staged files
        self.possible: list[dict[str, tuple[str, bytes, int]]] = []  # states since the last sync, the oldest first

    def _step(self, operation: str, name: str, tear: object = None) -> None:  # noqa: ARG002 - nothing is torn here
        if operation in CHANGES and not self.failed:
            self.possible.append(snapshot(self._root))
        super()._step(operation, name)

    def sync_folder(self, directory: int, name: str) -> None:
        super().sync_folder(directory, name)
        self.possible.clear()

    def stage(self, directory: int, content: Pieces, like: os.stat_result | None, mode: int, name: str) -> str:
        staged = super().stage(directory, content, like, mode, name)
        self._unsynced.add(staged)
        return staged

    def sync_staged(self, directory: int, staged: str, name: str) -> None:
        super().sync_staged(directory, staged, name)
        self._unsynced.discard(staged)

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        assert source not in self._unsynced, "the bytes would be lost"
        return super().exchange(source_directory, source, directory, name)

    def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:
        assert source not in self._unsynced, "the bytes would be lost"
        super().rename_new(source_directory, source, directory, name)


def snapshot(root: Path) -> dict[str, tuple[str, bytes, int]]:
    """Return every file, link and folder outside the store: its kind, its bytes and its mode."""
    found: dict[str, tuple[str, bytes, int]] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.split("/", maxsplit=1)[0] == ".cas":
            continue
        mode = path.lstat().st_mode & 0o7777
        if path.is_symlink():
            found[name] = "link", os.fsencode(path.readlink()), mode
        elif path.is_dir():
            found[name] = "folder", b"", mode
        else:
            found[name] = "file", path.read_bytes(), mode
    return found


def left(root: Path, state: dict[str, tuple[str, bytes, int]]) -> None:
    """Give the workspace the files of a snapshot, in place of those it has."""
    for path in root.iterdir():
        if path.name != ".cas":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, (kind, content, mode) in state.items():
        path = root / name
        if kind == "link":
            path.symlink_to(os.fsdecode(content))
        elif kind == "folder":
            path.mkdir(mode)
        else:
            path.write_bytes(content)
            path.chmod(mode)


@pytest.fixture(scope="module", params=SCENES, ids=named)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return run_scenario(request.param, tmp_path_factory.mktemp("stage"))


@pytest.mark.parametrize("share", [0, 0.5])
def test_a_call_is_whole_after_a_power_cut_at_any_step(stage: Stage, tmp_path: Path, share: float) -> None:
    """`share`: how many of the changes since the last sync have reached the disk."""
    for step in steps(stage, 3):
        root = tmp_path / str(step)
        disk = CutDisk(root, step)
        with running(stage, root, disk) as raised:
            assert isinstance(raised, PowerCut)
            if disk.possible:
                left(root, disk.possible[int(share * len(disk.possible))])
            disk.lose_unsynced()
            assert_whole(stage, root, f"after {', '.join(disk.done)}: {disk.failed}")


def test_an_acknowledged_call_is_in_its_files_even_if_the_marker_is_lost(stage: Stage, tmp_path: Path) -> None:
    root = tmp_path / "root"
    disk = CutDisk(root, None)
    marker = stage.start / ".cas" / "applied"
    with running(stage, root, disk) as raised:
        assert raised is None
    assert not disk.possible
    disk.lose_unsynced()
    (root / ".cas" / "applied").write_bytes(marker.read_bytes())
    assert assert_whole(stage, root, "after everything")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        change(workspace, ("a", b"one\n"), ("b", b"one\n"))
    return root


def found_next(root: Path) -> tuple[dict[str, bytes], list[str]]:
    """Let the next writer run; return the files but its own, and which of them show as changed."""
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "next", b"")
        found = {name: content for name, (content, _) in files(root).items() if name != "next"}
        return found, [change.path for change in workspace.review.status().external]


@pytest.mark.parametrize("marker", [b"", b"short", bytes(200), None], ids=["empty", "short", "long", "missing"])
def test_without_a_marker_no_file_is_changed(root: Path, marker: bytes | None) -> None:
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "a", b"two\n")
    (root / "a").write_bytes(b"one\n")  # a person brings back the first text
    (root / ".cas" / "applied").unlink() if marker is None else (root / ".cas" / "applied").write_bytes(marker)
    assert found_next(root) == ({"a": b"one\n", "b": b"one\n"}, ["a"])
    assert found_next(root) == ({"a": b"one\n", "b": b"one\n"}, ["a"])


def test_with_an_old_marker_only_the_last_call_is_looked_at(root: Path) -> None:
    old = (root / ".cas" / "applied").read_bytes()
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "a", b"two\n")
        write(workspace, "b", b"two\n")
    (root / "a").write_bytes(b"one\n")
    (root / ".cas" / "applied").write_bytes(old)
    assert found_next(root) == ({"a": b"one\n", "b": b"two\n"}, ["a"])


@pytest.mark.parametrize("content", [b"mine\n", b"", b"two", bytes(4)], ids=["text", "empty", "cut", "zeros"])
def test_a_persons_file_is_kept_whatever_it_resembles(root: Path, content: bytes) -> None:
    old = (root / ".cas" / "applied").read_bytes()
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        change(workspace, ("a", b"two\n"), ("b", b"two\n"))
    (root / "a").write_bytes(content)
    (root / "b").write_bytes(b"one\n")
    (root / ".cas" / "applied").write_bytes(old)
    assert found_next(root) == ({"a": content, "b": b"two\n"}, ["a"])


@pytest.mark.parametrize("with_marker", [True, False])
def test_a_store_that_is_copied_to_other_files_changes_none_of_them(
    root: Path,
    tmp_path: Path,
    with_marker: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    other = tmp_path / "other"
    copy_workspace(root, other)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "a", b"two\n")
    shutil.rmtree(other / ".cas")
    shutil.copytree(root / ".cas", other / ".cas")
    if not with_marker:
        (other / ".cas" / "applied").unlink()
    assert found_next(other) == ({"a": b"one\n", "b": b"one\n"}, ["a"])


OLD: Final = b"".join(b"line %4d\n" % number for number in range(400))
NEW: Final = OLD.replace(b"line", b"LINE") + b"more\n" * 200
SECTOR: Final = 512


class CutInPlace(CountdownDisk):
    """A disk on which the power fails when a file is written in place."""

    def rewrite(self, directory: int, name: str, content: Pieces) -> None:  # noqa: ARG002 - nothing is written
        raise PowerCut


def sectors(before: bytes, after: bytes, every: int) -> bytes:
    """Return a file that was being written in place: every n-th sector is new, and its size still the larger one."""
    size = max(len(before), len(after))
    old, new = before.ljust(size, b"\0"), after + before[len(after) :]
    starts = range(0, size, SECTOR)
    return b"".join((old if at // SECTOR % every else new)[at : at + SECTOR] for at in starts)


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize(("before", "after"), [(OLD, NEW), (NEW, OLD)], ids=["grows", "shrinks"])
def test_a_file_with_two_names_is_completed_whichever_sectors_were_written(
    tmp_path: Path, before: bytes, after: bytes, every: int
) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "f", before)
        (tmp_path / "g").hardlink_to(tmp_path / "f")
    with suppress(PowerCut), Workspace.open(tmp_path, CutInPlace(None)) as workspace:
        write(workspace, "f", after)
    (tmp_path / "f").write_bytes(sectors(before, after, every))
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        assert (tmp_path / "f").read_bytes() == (tmp_path / "g").read_bytes() == after
        assert workspace.review.status().external == ()
